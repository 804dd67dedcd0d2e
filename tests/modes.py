"""The mode of eager calls in a test, whichever the run has."""

import contextlib

import jaxgrad
from jaxgrad.core import deferred


@contextlib.contextmanager
def eager(mode):
    """Run the block in the mode "deferred" or "immediate"."""
    before = deferred.mode
    jaxgrad.set_eager(mode)
    try:
        yield
    finally:
        jaxgrad.set_eager(before)
