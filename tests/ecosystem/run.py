"""Run the programs of tests/ecosystem/programs under PyTorch and jaxgrad, and write the page.

    python tests/ecosystem/run.py [--only transformers,timm/resnet18] [--anew] [--page]

Each program has a process of its own in each framework. What PyTorch computes is kept in
build/ecosystem/torch as long as the file of the program is the same. Results are merged into
results/PACKAGE.json, from which page.py writes docs/ecosystem.md.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import compare
import numpy as np
import page

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
BUILD = CHECKOUT / "build" / "ecosystem"


def main():
    options = arguments()
    chosen = {} if options.page else programs(options)
    for key, entry in chosen.items():
        result = outcome(key, entry, options)
        print(key, *page.summary(result), flush=True)
        page.keep(key, result)
    (CHECKOUT / "docs" / "ecosystem.md").write_text(page.page(page.load()))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="packages or programs, separated by commas")
    parser.add_argument("--anew", action="store_true", help="run PyTorch anew too")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    parser.add_argument("--seconds", type=int, default=180, help="the limit of one run")
    parser.add_argument("--torch", default=str(CHECKOUT / ".venv-torch/bin/python"))
    parser.add_argument("--jaxgrad", default=sys.executable, help="the Python that has jaxgrad")
    return parser.parse_args()


def programs(options):
    """The entries of all programs that `--only` names, by key, with the file of each."""
    wanted = [name for name in options.only.split(",") if name]
    entries = {}
    for file in sorted((HERE / "programs").glob("*.py")):
        for key, entry in registered(file, options).items():
            if not wanted or entry["package"] in wanted or key in wanted or file.stem in wanted:
                entries[key] = entry | {"file": str(file)}
    return entries


def registered(file, options):
    """The programs of one file, read by PyTorch's Python once as long as the file is the same."""
    path = BUILD / "lists" / f"{file.stem}-{digest(file)}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        process = start([options.torch, HERE / "one.py", "list", file, path])
        if process.wait():
            sys.exit(f"{file} cannot be imported")
    return json.loads(path.read_text())


def digest(*files):
    """What the text of files changes."""
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()[:12]


def start(command, **variables):
    environment = os.environ | {"JAXGRAD_CACHE": "off", "HF_HUB_OFFLINE": "1"} | variables
    environment["TOKENIZERS_PARALLELISM"] = "false"
    return subprocess.Popen([*map(str, command)], env=environment, start_new_session=True)


def outcome(key, entry, options):
    """What is known of a program after it has run in both frameworks."""
    file, limit = entry["file"], options.seconds
    version = digest(file, HERE / "harness.py")
    answer = BUILD / "torch" / f"{key.replace('/', '-')}-{version}"
    if options.anew or not answer.with_suffix(answer.suffix + ".json").exists():
        run([options.torch], file, key, answer, limit)
    jaxgrad = [options.jaxgrad, "-m", "jaxgrad", "run"]
    known = {field: entry[field] for field in ("package", "version", "dtype", "tolerance")}
    known["torch"] = report_of(answer)
    for mode in ("eager", "compiled") if entry["compiled"] else ("eager",):
        out = BUILD / "jaxgrad" / f"{key.replace('/', '-')}-{mode}"
        compiled = {"ECOSYSTEM_COMPILED": "1"} if mode == "compiled" else {}
        run(jaxgrad, file, key, out, limit, **compiled)
        known[mode] = report_of(out)
        if "error" not in known["torch"] and "error" not in known[mode]:
            differences = compare.differences(arrays(out), arrays(answer), entry["tolerance"])
            known[mode]["differences"] = [" ".join(one) for one in differences[:3]]
    return known


def run(python, file, key, out, limit, **variables):
    """Run a program in a process that is ended at the limit."""
    out.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".json", ".npz"):
        Path(f"{out}{suffix}").unlink(missing_ok=True)
    process = start([*python, HERE / "one.py", "run", file, key, out], **variables)
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        code = f"took more than {limit} s"
    if not Path(f"{out}.json").exists():
        error = {"type": "no result", "message": f"the process ended: {code}", "place": ""}
        Path(f"{out}.json").write_text(json.dumps({"error": error}))


def report_of(out):
    """Times, rounded to three digits, and the error of a run."""
    report = json.loads(Path(f"{out}.json").read_text())
    report.pop("traceback", None)
    rounded = {"seconds", "step"} & report.keys()
    return report | {field: float(f"{report[field]:.3g}") for field in rounded}


def arrays(out):
    with np.load(f"{out}.npz", allow_pickle=False) as file:
        return dict(file)


if __name__ == "__main__":
    main()
