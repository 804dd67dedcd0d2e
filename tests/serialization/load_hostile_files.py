"""Loads the files of a folder in a process of its own, and prints what came of each as JSON.

python load_hostile_files.py FOLDER
"""

import json
import resource
import sys
from pathlib import Path

import jaxgrad

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers.work import TooMuchWork, at_most

FOLDER = Path(sys.argv[1])

# what reading a file does, and the counter of calls; importing, compiling and executing are none
USUAL = {
    *("open", "builtins.id", "mmap.__new__", "object.__getattr__", "sys.setprofile"),
    "object.__setattr__",  # a tensor becomes a parameter
}

MOST_CALLS = 10_000_000  # of functions; "a long key many times" takes half of them


def peak() -> float:
    """The most memory that the process has had, in MB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def load(path):
    try:
        with at_most(MOST_CALLS):
            jaxgrad.load(path)
        return "read"
    except jaxgrad.serialization.RefusedFile as error:
        return "refused", str(error)
    except (Exception, TooMuchWork) as error:
        return type(error).__name__, str(error)


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
    outcome = load(path)
    is_watching = False
    results[path.name] = outcome, peak() - before
print(json.dumps({"results": results, "events": sorted(events)}))
