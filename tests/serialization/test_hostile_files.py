"""Files that are damaged or want to do harm: each is read or refused, nothing of it is executed,
and none takes much work or memory.
"""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import hangs
from helpers.saved_objects import FILES
from serialization import hostile_files

import jaxgrad
from jaxgrad.serialization import RefusedFile

MEGABYTES = 200

REFUSED = (
    hostile_files.dangerous,
    hostile_files.refused_instructions,
    hostile_files.refused_objects,
    hostile_files.refused_tensors,
)


@pytest.mark.parametrize("kind", REFUSED, ids=[kind.__name__ for kind in REFUSED])
def test_instructions_that_are_refused(kind):
    for what, code in kind():
        data = hostile_files.archive(hostile_files.program(code), hostile_files.RECORDS)
        with pytest.raises(RefusedFile):
            jaxgrad.load(io.BytesIO(data))
            pytest.fail(f"{what} was read")


@pytest.mark.slow
def test_damaged_and_hostile_files_in_a_process_that_is_watched(tmp_path):
    expected, results, events = outcomes(tmp_path)
    assert len(expected) >= 200 and results.keys() == expected.keys()
    wrong = []
    for name, (what, outcome) in expected.items():
        result, _ = results[name]
        kind = result if result == "read" else result[0]
        if kind not in ([outcome] if outcome else ["read", "refused"]):
            wrong.append((what, outcome, result))
    assert wrong == []
    # nothing was imported, compiled, executed or written
    assert events == [] and not os.path.exists(hostile_files.MARK)
    peaks = {name: peak for name, (_, peak) in results.items()}
    assert max(peaks.values()) < MEGABYTES, max(peaks, key=peaks.get)
    texts = [result[1] for result, *_ in results.values() if result != "read"]
    assert [text for text in texts if len(text) > 1000 or not text.isprintable()] == []


def outcomes(folder):
    """By the name of each file what it is and what should come of it, and what came of it; the
    events that Python's audit hook reported.
    """
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
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    answer = json.loads(child.stdout)
    return expected, answer["results"], answer["events"]
