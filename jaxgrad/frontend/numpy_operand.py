"""Python's operators on a tensor and an array of NumPy.

In PyTorch `tensor + array` is what NumPy computes, in the dtype of NumPy's promotion, and
`tensor += array` is `tensor = tensor + array`. Here the operator of tensors computes it, in the
same dtype, so that gradients flow and `array + tensor` has a value too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import ops
from ..core import dtypes

_UFUNCS = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide},
    **{"floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul},
    **{"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor},
    **{"lshift": np.left_shift, "rshift": np.right_shift},
}


def beside_array(name: str, function: Callable) -> Callable | None:
    """What a special method such as `__add__` does with an array of NumPy, if tensors do something
    else. function: that of tensors.
    """
    stem = name.strip("_")
    if stem.startswith("i") and stem[1:] in _UFUNCS:
        return _not_in_place
    ufunc = _UFUNCS.get(stem) or _UFUNCS.get(stem.removeprefix("r"))
    if stem == "rtruediv":  # `tensor.reciprocal() * array`, as in PyTorch
        return None
    return None if ufunc is None else lambda tensor, array: _result(ufunc, function, tensor, array)


def _not_in_place(tensor, array):
    return NotImplemented  # so that Python computes `tensor + array`


def _result(ufunc, function, tensor, array):
    kinds = ufunc.resolve_dtypes((tensor.dtype.numpy, array.dtype, None))
    result = function(ops.to(tensor, dtypes.from_numpy(kinds[0])), array.astype(kinds[1]))
    # NumPy's booleans are bytes in PyTorch, also those of `numpy.isnan(tensor)`
    return ops.to(result, dtypes.uint8) if kinds[-1].kind == "b" else result
