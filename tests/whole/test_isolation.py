"""A test that leaves JAX in another state fails itself, and the tests after it pass."""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = """
import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import set_current_trace

import jaxgrad
from jaxgrad.core.jax_internals import current_trace


def ended_trace():
    traces = []
    jax.make_jaxpr(lambda x: traces.append(current_trace()) or x)(1.0)
    return traces[0]


CHANGES = {
    "no trace": lambda: set_current_trace(None),
    "an ended trace": lambda: set_current_trace(ended_trace()),
    "64-bit types": lambda: jax.enable_x64(True),
}


@pytest.mark.parametrize("is_broken", [True, False], ids=["broken", "sound"])
@pytest.mark.parametrize("name", CHANGES)
def test_of_jax(name, is_broken):
    if is_broken:
        CHANGES[name]().__enter__()
    else:
        assert jnp.arange(3).dtype == jnp.int32
        assert (jaxgrad.ones(3) * 2).tolist() == jnp.full(3, 2.0).tolist() == [2.0, 2.0, 2.0]
        assert jaxgrad.jit(lambda x: x + 1)(jaxgrad.ones(2)).tolist() == [2.0, 2.0]
"""


OPTIONS = ["-p", "conftest", "-p", "no:cacheprovider", "-rAE", "--color=no"]


def test_tests_after_those_that_break_jax_pass(tmp_path):
    """In the order of the file a sound test follows each broken one."""
    (tmp_path / "test_inner.py").write_text(TESTS)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    results = re.findall(r"^([A-Z]+) test_inner.py::test_of_jax\[(.*?)\]", ran.stdout, re.M)
    # a broken test passes, and its end fails
    names = ["no trace", "an ended trace", "64-bit types"]
    expected = {("PASSED", f"{name}-{kind}") for name in names for kind in ("broken", "sound")}
    assert set(results) == expected | {("ERROR", f"{name}-broken") for name in names}, ran.stdout
