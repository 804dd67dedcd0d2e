"""What both layouts of nested tensors share."""

from __future__ import annotations

import inspect

import numpy as np

from .. import ops
from ..frontend.tensor_data import tensor as new_tensor
from ..functions.dropout import native_dropout
from ..late import LateModule
from ..tape import torch_function
from ..tape.tensor import Tensor

functional = LateModule("jaxgrad.nn.functional")
_ACTIVATIONS = "jaxgrad.nn.activation"  # its functions without a dimension are elementwise


def is_elementwise(function) -> bool:
    """Whether a function computes every element of its result from one element of its operands."""
    primitives = getattr(getattr(function, "operator", None), "overloads", None)
    if primitives is not None and primitives.primitives[0].pointwise:
        return True
    return (
        function.__module__ == _ACTIVATIONS and "dim" not in inspect.signature(function).parameters
    )


def is_in_place(name: str) -> bool:
    """Whether a method writes the result of another one, whose name lacks the underscore."""
    return name.endswith("_") and not name.startswith("__") and hasattr(Tensor, name[:-1])


def values_of(tensor: Tensor) -> Tensor:
    """The array of a nested tensor, as a tensor that shares its memory."""
    with torch_function.DisableTorchFunctionSubclass():
        return ops.alias(tensor)


def dropout_of(values, nested):
    """`F.dropout` of a layout. values: gives the values of a nested tensor; nested: the nested
    tensor of other values.

    In training a number is drawn for each value, also where `p` is 0 or 1, as PyTorch does for
    nested tensors, but not where it writes to the input.
    """

    def dropout(input, p=0.5, training=True, inplace=False):
        dense = functional.dropout(values(input), p, False)  # refuses probabilities
        if inplace and (not training or p in (0, 1)):
            return input.mul_(0) if training and p else input
        result = nested(native_dropout(dense, p, training)[0], input)
        return input.copy_(result) if inplace else result

    return dropout


def native_dropout_of(values, nested):
    """`native_dropout` of a layout, as `dropout_of`."""

    def function(input, p, train):
        return tuple([nested(part, input) for part in native_dropout(values(input), p, train)])

    return function


def wrapped_dim(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim


def is_same_size(input, other) -> bool:
    """Whether two nested tensors have components of the same shapes, in their order."""
    if not (input.is_nested and other.is_nested):
        kinds = ["is nested" if x.is_nested else "is not nested" for x in (input, other)]
        raise RuntimeError(
            f"Expected both self and other to be nested tensors. Self {kinds[0]}. While Other "
            f"{kinds[1]}."
        )
    shapes = [[part.shape for part in tensor.unbind()] for tensor in (input, other)]
    return shapes[0] == shapes[1]


def unsupported(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: not provided for nested tensors; call it on tensor.values(), on the components "
        "of tensor.unbind(), or on tensor.to_padded_tensor(padding)"
    )


def padded_attention(query, key, value, lengths, dropout_p, is_causal, **options):
    """Attention of padded tensors of shape (components, heads, length, features).

    lengths: how many keys of a component count.
    """
    rows, columns = query.shape[2], key.shape[2]
    seen = np.arange(columns) < np.array(lengths)[:, None]
    seen = np.broadcast_to(seen[:, None, None], (len(lengths), 1, rows, columns))
    if is_causal:
        seen = seen & np.tri(rows, columns, dtype=bool)
    # a row beyond the lengths sees something too, or its softmax has NaN
    seen = seen | (np.arange(columns) == 0)
    return functional.scaled_dot_product_attention(
        query, key, value, new_tensor(seen), dropout_p, **options
    )
