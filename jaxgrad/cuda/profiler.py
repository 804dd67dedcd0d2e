"""Marks for a profiler that watches from outside, as torch.cuda.profiler: nothing is done.

JAX's own profiler records a GPU: `jax.profiler.start_trace(folder)` and `stop_trace()`, or
`torch.profiler`. A tool such as Nsight Systems records the whole process, or the part that its
options name.

>>> with jaxgrad.cuda.profiler.profile():
...     y = jaxgrad.ones(3) * 2
"""

from __future__ import annotations

import contextlib

from ..names.missing import missing_in


def start() -> int:
    """Do nothing, and return 0, CUDA's code of success.

    >>> jaxgrad.cuda.profiler.start()
    0
    """
    return 0


def stop() -> int:
    """Do nothing, and return 0, CUDA's code of success.

    >>> jaxgrad.cuda.profiler.stop()
    0
    """
    return 0


@contextlib.contextmanager
def profile():
    """A block that changes nothing.

    >>> with jaxgrad.cuda.profiler.profile():
    ...     y = jaxgrad.ones(3) * 2
    """
    yield


__getattr__ = missing_in(__name__)
