"""Loads the files of a folder in a process of its own, and prints what came of each as JSON.

python load_hostile_files.py FOLDER
"""

import json
import resource
import sys
import time
from pathlib import Path

import jaxgrad

FOLDER = Path(sys.argv[1])

# what reading a file does; importing, compiling and executing are none of it
USUAL = {"open", "builtins.id", "mmap.__new__", "object.__getattr__"}


def peak() -> float:
    """The most memory that the process has had, in MB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def load(path):
    begin = time.perf_counter()
    try:
        jaxgrad.load(path)
        found = "read"
    except jaxgrad.serialization.RefusedFile as error:
        found = "refused", str(error)
    except Exception as error:
        found = type(error).__name__, str(error)
    return found, time.perf_counter() - begin


events, is_watching = set(), False


def watch(event, arguments):
    if not is_watching or event in USUAL - {"open"}:
        return
    if (
        event == "open"
        and str(arguments[0]).startswith(str(FOLDER))
        and arguments[1] in ("r", "rb")
    ):
        return
    events.add(f"{event} {arguments[:2]}"[:200])


for path in sorted(FOLDER.glob("good*")):
    jaxgrad.load(path)
sys.addaudithook(watch)
before, results = peak(), {}
for path in sorted(FOLDER.glob("hostile*")):
    print(path.name, file=sys.stderr)
    is_watching = True
    found, seconds = load(path)
    is_watching = False
    results[path.name] = found, seconds, peak() - before
print(json.dumps({"results": results, "events": sorted(events)}))
