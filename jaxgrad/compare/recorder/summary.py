"""A short summary of a tensor, from which the distance of two tensors is estimated.

The elements are added up, with random signs, in 32 buckets. The squared distance of two such
sketches is on average that of the tensors (an AMS sketch), with a deviation of a quarter. With up
to 32 elements there is one in each bucket, so that the distance is exact, and values can be shown.
"""

from __future__ import annotations

import functools
import hashlib
import math

import numpy as np

BUCKETS = 32
PIECE = BUCKETS << 15  # elements that are summarized together
SMALL = 1e-5


@functools.cache
def signs(piece: int) -> np.ndarray:
    """The signs of the elements of a piece of a tensor."""
    return np.random.RandomState(piece).randint(0, 2, PIECE).astype(np.int8) * 2 - 1


def array_of(tensor) -> np.ndarray:
    """The numbers of a tensor of either library as a NumPy array, of single precision for floats
    that NumPy does not have.
    """
    tensor = tensor.detach()
    if "strided" not in str(tensor.layout):
        tensor = tensor.to_dense()
    if any(kind in str(tensor.dtype) for kind in ("bfloat16", "float8")):
        tensor = tensor.float()
    return np.ascontiguousarray(tensor.numpy(force=True)).reshape(tuple(tensor.shape))


def summarize(tensor) -> dict:
    """The summary of a tensor of either library."""
    return of_array(array_of(tensor), str(tensor.dtype).rpartition(".")[2])


def small_elements(tensor) -> int:
    """How many elements are so much smaller than the largest one that they are rounding."""
    try:
        sizes = np.abs(array_of(tensor))
    except Exception:  # without numbers
        return 0
    return int(((sizes > 0) & (sizes <= SMALL * sizes.max(initial=0))).sum())


def of_array(array: np.ndarray, dtype: str) -> dict:
    """The shape, dtype, norm, extremes and sketch of numbers, a hash of their bytes, and one of the
    places of those that are not finite.
    """
    head = repr((dtype, array.shape)).encode()
    digest = hashlib.blake2b(head + array.tobytes(), digest_size=8).hexdigest()
    flat = array.reshape(-1)
    flat = flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat
    finite = np.isfinite(flat)
    others = ""
    if not finite.all():
        places = np.where(finite, 0, np.nan_to_num(flat, nan=1, posinf=2, neginf=3))
        others = hashlib.blake2b(places.astype(np.int8).tobytes(), digest_size=8).hexdigest()
        flat = np.where(finite, flat, 0)
    low, high = (float(flat.min()), float(flat.max())) if flat.size else (0.0, 0.0)
    sketch, square = sketch_of(flat)
    return {
        "digest": digest,
        "shape": list(array.shape),
        "dtype": dtype,
        "norm": math.sqrt(square),
        "low": low,
        "high": high,
        "others": others,
        "sketch": [float(number) for number in sketch],
    }


def sketch_of(flat: np.ndarray):
    """The sketch of numbers, and the sum of their squares."""
    sketch, square = np.zeros(min(BUCKETS, flat.size)), 0.0
    for piece in range(-(-flat.size // PIECE)):
        numbers = flat[piece * PIECE : (piece + 1) * PIECE].astype(np.float64)
        square += float(numbers @ numbers)
        if flat.size <= BUCKETS:
            return numbers, square
        signed = numbers * signs(piece)[: numbers.size]
        padded = np.zeros(-(-signed.size // BUCKETS) * BUCKETS)
        padded[: signed.size] = signed
        sketch += padded.reshape(-1, BUCKETS).sum(0)
    return sketch, square
