"""DTensors compute what plain tensors do, and say what cannot be."""

import functools

import pytest
from distributed.processes import printed

pytestmark = pytest.mark.slow


@functools.cache
def results(where):
    return printed("dtensors.py", **{where: 4 if where == "devices" else 2})


@pytest.mark.parametrize("where", ["devices", "processes"])
def test_values_gradients_writes_placements_and_errors(where):
    """On four devices of one process, and in two processes."""
    answers = results(where)
    assert len(answers) > 60
    assert not [name for name, is_right in answers.items() if not is_right]
