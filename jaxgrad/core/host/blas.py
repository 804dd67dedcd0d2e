"""Products of matrices by the BLAS of NumPy."""

from __future__ import annotations

import ctypes
import functools
import sys

import numpy

# So many multiplications and more are shared among the threads of BLAS. To share fewer of them
# saves less than 3 ms, and takes 16 ms more where other work keeps a core busy.
SHARED = 1 << 27


def matmul(lhs, rhs, **options):
    """`numpy.matmul`, by one thread if it is small."""
    set_threads = _set_threads()
    if set_threads is None or lhs.size * rhs.shape[-1] >= SHARED:
        return numpy.matmul(lhs, rhs, **options)
    before = set_threads(1)
    try:
        return numpy.matmul(lhs, rhs, **options)
    finally:
        set_threads(before)


@functools.cache
def _set_threads():
    """OpenBLAS's function that sets the number of threads for calls of this thread, and gives the
    one of before; None if NumPy has another BLAS.
    """
    loaded = sys.modules.get("numpy._core._multiarray_umath")
    try:
        # also finds what that module is linked with
        return ctypes.CDLL(loaded.__file__).openblas_set_num_threads_local
    except (AttributeError, OSError):
        return None
