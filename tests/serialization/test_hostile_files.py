"""Files that are damaged or want to do harm: each is read or refused, nothing of it is executed,
and none takes much time or memory.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from saved_objects import FILES
from serialization import hostile_files

SECONDS, MEGABYTES = 2.0, 200
MARK = "/tmp/jaxgrad_was_here"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What came of each file: its name, what was expected, and what it was."""
    folder = tmp_path_factory.mktemp("hostile")
    for number, path in enumerate(sorted(FILES.glob("*.pt"))):
        shutil.copy(path, folder / f"good{number:04d}")
    shutil.copy(FILES.parent / "plain.safetensors", folder / "good.safetensors")
    expected = {}
    for number, (what, outcome, data) in enumerate(hostile_files.files()):
        name = f"hostile{number:04d}"
        (folder / name).write_bytes(data)
        expected[name] = what, outcome
    child = subprocess.run(
        [sys.executable, Path(__file__).parent / "load_hostile_files.py", folder],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-2000:]
    answer = json.loads(child.stdout)
    return expected, answer["results"], answer["events"]


def test_each_is_read_or_refused(outcomes):
    expected, results, _ = outcomes
    assert len(expected) >= 200 and results.keys() == expected.keys()
    wrong = []
    for name, (what, outcome) in expected.items():
        found = results[name][0]
        kind = found if found == "read" else found[0]
        if kind not in ([outcome] if outcome else ["read", "refused"]):
            wrong.append((what, outcome, found))
    assert wrong == []


def test_nothing_is_executed(outcomes):
    _, _, events = outcomes
    assert events == [] and not os.path.exists(MARK)


def test_none_takes_long_or_much(outcomes):
    expected, results, _ = outcomes
    slowest = max(results, key=lambda name: results[name][1])
    largest = max(results, key=lambda name: results[name][2])
    assert results[slowest][1] < SECONDS, expected[slowest][0]
    assert results[largest][2] < MEGABYTES, [(expected[n][0], results[n][2]) for n in results]


def test_every_text_is_short_and_clean(outcomes):
    _, results, _ = outcomes
    texts = [found[1] for found, *_ in results.values() if found != "read"]
    assert [text for text in texts if len(text) > 1000 or not text.isprintable()] == []
