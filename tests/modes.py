"""The mode of eager calls in a test, whichever the run has."""

import contextlib

import jaxgrad
from jaxgrad.core import deferred, host_kernel


@contextlib.contextmanager
def eager(mode):
    """Run the block in a mode of `set_eager`, such as "deferred" or "immediate,compiled"."""
    before = deferred.mode
    if host_kernel.chosen != "auto":
        before = f"{before},{host_kernel.chosen}"
    jaxgrad.set_eager(mode)
    try:
        yield
    finally:
        jaxgrad.set_eager(before)
