"""One command for a machine with a GPU or TPU: is jaxgrad right there, and how fast is it?

    make accelerator                              # ten minutes
    make accelerator ARGUMENTS="--minutes 30 --parts numerics"

It writes accelerator-report.json and accelerator-report.md: send both back. Each part runs in a
process of its own, with a share of the time; the report says which part ended early, and how.
Without an accelerator all of it runs on the CPU, and the report says so.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).parents[1]
# the parts: their modules, and their shares of the time
PARTS = {
    "numerics": ("numerics", 0.4),
    "programs": ("scripts", 0.12),
    "scripts": ("scripts", 0.16),
    "operators": ("speed", 0.06),
    "training": ("speed", 0.1),
    "attention": ("speed", 0.06),
    "gpt2": ("speed", 0.1),
}
# seconds beyond its share, for a start and for the last call on a slow machine
GRACE = 180.0


def environment() -> dict:
    """What the parts need: the samples of the tests, and kernels compiled as users compile them."""
    paths = os.pathsep.join([str(TESTS), str(TESTS / "benchmarks")])
    settings = {"PYTHONPATH": paths, "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}
    # the tests name the CPU where nothing is named; an empty name lets JAX choose
    settings["JAX_PLATFORMS"] = os.environ.get("JAX_PLATFORMS", "")
    return os.environ | settings


def result_of(part: str, seconds: float) -> dict:
    """What a part finds in its process, and how that ended."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "result.json")
        module = f"accelerator.{PARTS[part][0]}"
        command = [sys.executable, "-m", module, part, str(seconds), str(file)]
        try:
            child = subprocess.run(
                command, env=environment(), capture_output=True, text=True, timeout=seconds + GRACE
            )
            ended = "" if child.returncode == 0 else last_line(child)
        except subprocess.TimeoutExpired:
            ended = f"stopped after {seconds + GRACE:.0f} s"
        result = json.loads(file.read_text()) if file.exists() else {}
    return result | {"ended early": ended, "seconds": round(time.monotonic() - begun, 1)}


def last_line(child) -> str:
    lines = child.stderr.strip().splitlines() or ["no message"]
    return f"exit status {child.returncode}: {lines[-1]}"


MACHINE = """
import json, platform, jax, jaxlib
device = jax.devices()[0]
version = getattr(device.client, "platform_version", "").splitlines()
print(json.dumps({
    "platform": device.platform, "device": device.device_kind, "devices": len(jax.devices()),
    "jax": jax.__version__, "jaxlib": jaxlib.__version__, "python": platform.python_version(),
    "runtime": version[0] if version else "",
}))
"""


def machine() -> dict:
    child = subprocess.run(
        [sys.executable, "-c", MACHINE], env=environment(), capture_output=True, text=True
    )
    if child.returncode:
        raise SystemExit(f"JAX does not start on this machine: {last_line(child)}")
    facts = json.loads(child.stdout.splitlines()[-1])
    return facts | {"date": time.strftime("%Y-%m-%d"), "commit": commit()}


def commit() -> str:
    command = ["git", "-C", str(TESTS), "rev-parse", "--short", "HEAD"]
    child = subprocess.run(command, capture_output=True, text=True)
    return child.stdout.strip() or "no checkout"


def is_right(report: dict) -> bool:
    """Whether all parts came to their ends, and none found a difference."""
    parts = report["parts"].values()
    return not any(part["ended early"] or part.get("differences") for part in parts)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0, help="of all parts together")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--folder", default=".", help="where the two files go")
    options = parser.parse_args(arguments)
    report = {"machine": machine(), "minutes": options.minutes, "parts": {}}
    total = sum(PARTS[part][1] for part in options.parts)
    for part in options.parts:
        seconds = options.minutes * 60 * PARTS[part][1] / total
        print(f"{part}: {seconds:.0f} s", flush=True)
        report["parts"][part] = result_of(part, seconds)
        write(report, options.folder)
    print(f"{options.folder}/accelerator-report.md")
    return 0 if is_right(report) else 1


def write(report: dict, folder):
    from accelerator.page import page

    path = pathlib.Path(folder, "accelerator-report.json")
    path.write_text(json.dumps(report, indent=1) + "\n")
    path.with_suffix(".md").write_text(page(report))


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    sys.exit(main())
