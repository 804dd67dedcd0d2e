"""The mode of eager calls in a test, whichever the run has."""

import contextlib

import jaxgrad
from jaxgrad.core import deferred, executor


@contextlib.contextmanager
def eager(mode):
    """Run the block in a mode of `set_eager`, such as "deferred" or "immediate,compiled"."""
    before = deferred.mode
    if executor.chosen != "auto":
        before = f"{before},{executor.chosen}"
    jaxgrad.set_eager(mode)
    try:
        yield
    finally:
        jaxgrad.set_eager(before)
