"""Run the programs of tests/ecosystem/programs under PyTorch and jaxgrad, and write the page.

    python tests/ecosystem/run.py [--only transformers,timm/resnet18] [--anew] [--page]
    python tests/ecosystem/run.py --recorded    those of RECORDED, without PyTorch

Programs of one file share processes. What PyTorch computes is kept in build/ecosystem/torch as long
as the file of the program is the same; an error is not kept. Results are merged into
results/PACKAGE.json, from which ecosystem_page.py writes docs/ecosystem.md. build/ecosystem/log
has what the programs print, build/ecosystem/jaxgrad the traceback of what fails.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import compare
import ecosystem_page as page
import numpy as np

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
BUILD = CHECKOUT / "build" / "ecosystem"
PROGRAMS_OF_A_PROCESS = 12
MODES = {"eager": {}, "compiled": {"ECOSYSTEM_COMPILED": "1"}}
# packages and programs that take seconds; their packages are small, and need no other large ones
RECORDED = ("einops", "entmax", "higher", "lion-pytorch", "safetensors", "schedulefree")
RECORDED += ("torch_optimizer", "torchcde", "torchdiffeq/odeint", "torchdiffeq/event", "torchsde")


def main():
    options = arguments()
    BUILD.mkdir(parents=True, exist_ok=True)
    if options.recorded:
        sys.exit(compare_with_recorded(options))
    chosen = {} if options.page else programs(options)
    for file, entries in by_file(chosen):
        for start_of_batch in range(0, len(entries), PROGRAMS_OF_A_PROCESS):
            batch = [*entries][start_of_batch : start_of_batch + PROGRAMS_OF_A_PROCESS]
            run_batch(file, {key: entries[key] for key in batch}, options)
    (CHECKOUT / "docs" / "ecosystem.md").write_text(page.page(page.load()))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="packages or programs, separated by commas")
    parser.add_argument("--anew", action="store_true", help="run PyTorch anew too")
    parser.add_argument("--recorded", action="store_true", help="run RECORDED without PyTorch")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    parser.add_argument("--seconds", type=int, default=180, help="the limit of one run")
    parser.add_argument("--torch", default=str(CHECKOUT / ".venv-torch/bin/python"))
    parser.add_argument("--jaxgrad", default=sys.executable, help="the Python that has jaxgrad")
    return parser.parse_args()


def programs(options):
    """The entries of all programs that `--only` names, by key, with the file of each."""
    path = BUILD / "programs.json"
    files = sorted((HERE / "programs").glob("*.py"))
    if start([options.jaxgrad, HERE / "one.py", "list", path, *files]).wait():
        sys.exit(f"a file of programs cannot be imported: see {BUILD / 'log'}")
    wanted = {name for name in options.only.split(",") if name}
    return {
        key: entry
        for key, entry in json.loads(path.read_text()).items()
        if not wanted or wanted & {key, entry["package"], Path(entry["file"]).stem}
    }


def by_file(chosen):
    """Pairs of a file and those of the chosen programs that it registers."""
    for file in sorted({entry["file"] for entry in chosen.values()}):
        yield file, {key: entry for key, entry in chosen.items() if entry["file"] == file}


def digest(*files):
    """What the text of files changes."""
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()[:12]


def start(command, **variables):
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    environment |= {"OMP_NUM_THREADS": "1", "JAXGRAD_CACHE": str(BUILD / "cache")} | variables
    with open(BUILD / "log", "a") as log:
        outputs = {"stdout": log, "stderr": subprocess.STDOUT}
        return subprocess.Popen(
            [*map(str, command)], env=environment, start_new_session=True, **outputs
        )


def run_batch(file, entries, options):
    """Run programs of one file in both frameworks, and keep and print what came of them."""
    version = digest(file, HERE / "harness.py")
    answers = {key: folder_of("torch") / f"{stem(key)}-{version}" for key in entries}
    lacking = {key: out for key, out in answers.items() if not is_answered(out)}
    run_all([options.torch], file, answers if options.anew else lacking, options.seconds)
    outs = run_jaxgrad(file, entries, options)
    for key, entry in entries.items():
        runs = {mode: outs[mode][key] for mode in outs if key in outs[mode]}
        result = outcome(entry, answers[key], runs)
        print(key, *page.summary(result), flush=True)
        page.keep(key, result)
        if {key, entry["package"]} & {*RECORDED} and "error" not in result["torch"]:
            record(entry["package"], key, arrays(answers[key]))


def is_answered(out):
    """Whether a run has ended and has given numbers: its report is written last."""
    return out.with_suffix(".json").exists() and out.with_suffix(".npz").exists()


def run_jaxgrad(file, entries, options):
    """Run programs of one file, and compiled those that ask for it: results by mode and key."""
    outs = {}
    for mode, variables in MODES.items():
        keys = [key for key in entries if mode == "eager" or entries[key]["compiled"]]
        outs[mode] = {key: folder_of("jaxgrad") / f"{stem(key)}-{mode}" for key in keys}
        run_all(jaxgrad_of(options), file, outs[mode], options.seconds, **variables)
    return outs


def jaxgrad_of(options):
    return [options.jaxgrad, "-m", "jaxgrad", "run"]


def record(package, key, answer):
    """Keep the digests of what PyTorch computes."""
    path = HERE / "recorded" / f"{package}.json"
    path.parent.mkdir(exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    known = dict(sorted((known | {key: compare.digests(answer)}).items()))
    path.write_text(json.dumps(known, indent=1) + "\n")


def compare_with_recorded(options):
    """Run what is recorded, eager and compiled; 1 if anything differs or nothing was run."""
    recorded, problems = {}, []
    for path in sorted((HERE / "recorded").glob("*.json")):
        recorded |= json.loads(path.read_text())
    options.only = ",".join(recorded)
    for file, entries in by_file(programs(options)):
        for mode, outs in run_jaxgrad(file, entries, options).items():
            for key, out in outs.items():
                problem = problem_with(out, recorded[key], entries[key]["tolerance"])
                print(key, mode, problem or "equal", flush=True)
                problems.append(problem)
    failed = sum(map(bool, problems))
    print(f"{len(problems) - failed} passed, {failed} failed")
    return int(failed > 0 or not problems)


def problem_with(out, recorded, tolerance):
    """How the results of a run differ from what is recorded; empty where they do not."""
    report = report_of(out)
    if "error" in report:
        return page.complaint({}, report)
    differences = compare.differences_from_digests(arrays(out), recorded, tolerance)
    return "; ".join(" ".join(one) for one in differences[:3])


def folder_of(framework):
    folder = BUILD / framework
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def stem(key):
    """A name of a file for a program; it has no dot, so that suffixes can be added."""
    return key.replace("/", "-").replace(".", "_")


def outcome(entry, answer, runs):
    """What is known of a program after it has run in both frameworks."""
    known = {field: entry[field] for field in ("package", "version", "dtype", "tolerance")}
    known["torch"] = report_of(answer)
    for mode, out in runs.items():
        known[mode] = report_of(out)
        if "error" not in known["torch"] and "error" not in known[mode]:
            differences = compare.differences(arrays(out), arrays(answer), entry["tolerance"])
            known[mode]["differences"] = [" ".join(one) for one in differences[:3]]
    return known


def run_all(python, file, outs, limit, **variables):
    """Run programs one after the other in a process; go on in a new one after one that hangs."""
    for out in outs.values():
        out.with_suffix(".json").unlink(missing_ok=True)
        out.with_suffix(".npz").unlink(missing_ok=True)
    remaining = dict(outs)
    while remaining:
        keys_and_outs = [text for pair in remaining.items() for text in pair]
        process = start([*python, HERE / "one.py", "run", file, *keys_and_outs], **variables)
        for key, out in [*remaining.items()]:
            del remaining[key]
            if not is_written(out.with_suffix(".json"), process, limit):
                break
        end(process)


def is_written(path, process, limit):
    """Wait for the report of a program; write one if the process ends or the time is over."""
    deadline = time.monotonic() + limit
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if path.exists():
        return True
    hangs = process.poll() is None
    message = f"took more than {limit} s" if hangs else f"the process ended: {process.poll()}"
    error = {"type": "no result", "message": message, "place": ""}
    path.write_text(json.dumps({"error": error}))
    return False


def end(process):
    """End a process that has no program left to run, or whose program hangs."""
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def report_of(out):
    """Times, rounded to three digits, and the error of a run."""
    report = json.loads(out.with_suffix(".json").read_text())
    report.pop("traceback", None)
    rounded = {"seconds", "step"} & report.keys()
    return report | {field: float(f"{report[field]:.3g}") for field in rounded}


def arrays(out):
    with np.load(out.with_suffix(".npz"), allow_pickle=False) as file:
        return dict(file)


if __name__ == "__main__":
    main()
