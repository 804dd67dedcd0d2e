"""Functions that make nested tensors, and tensors of one shape of them."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..core import device as devices
from ..frontend.tensor_data import as_tensor, tensor
from ..tape.tensor import Tensor
from . import _tensor
from ._length import Length
from ._tensor import NestedTensor, nested


def nested_tensor(
    tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> NestedTensor:
    """Return a new leaf with a copy of each component.

    tensor_list: tensors, or what `tensor` takes, that have one number of dimensions and differ in
    one extent, the first by default. layout: `strided` (the default) or `jagged`. dtype, device:
    those of the first component if left out.

    Raises RuntimeError for components of different numbers of dimensions, NotImplementedError where
    they differ in several extents.

    >>> x = jaxgrad.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=jaxgrad.jagged)
    >>> x.to_padded_tensor(0.0)
    tensor([[1., 2.],
            [3., 0.]])
    """
    parts = [
        part.detach() if isinstance(part, Tensor) else tensor(part, dtype=dtype, device=device)
        for part in tensor_list
    ]
    result = as_nested_tensor(parts, dtype=dtype, layout=layout, device=device)
    return _tensor.as_leaf(result, requires_grad)


def as_nested_tensor(ts, dtype=None, device=None, layout=None) -> NestedTensor:
    """Return the nested tensor of components, through which gradients flow to them.

    ts: tensors as for `nested_tensor`, or a nested tensor. Other arguments and errors as there.

    >>> a = jaxgrad.ones(2, requires_grad=True)
    >>> jaxgrad.nested.as_nested_tensor([a, 2 * a]).sum().backward()
    >>> a.grad
    tensor([3., 3.])
    """
    layout = devices.strided if layout is None else layout
    if layout not in (devices.strided, devices.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    if isinstance(ts, NestedTensor):
        return ts.to(ts.dtype if dtype is None else dtype)
    parts = [as_tensor(part) for part in (ts.unbind(0) if isinstance(ts, Tensor) else ts)]
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    parts = [part.to(dtype=dtype or parts[0].dtype, device=device) for part in parts]
    dim = _dim_of_lengths(parts)
    bounds = np.cumsum([0, *(part.shape[dim] for part in parts)])
    return nested(ops.cat(parts, dim), Length(bounds), dim + 1, layout)


def _dim_of_lengths(parts):
    """The dimension in which components differ; the first if they have one shape."""
    if len({part.ndim for part in parts}) > 1:
        raise RuntimeError(
            "All Tensors given to nested_tensor must have the same dimension: "
            f"found {sorted({part.ndim for part in parts})}"
        )
    if not parts[0].ndim:
        raise RuntimeError("Cannot construct a nested tensor of tensors without dimensions")
    extents = zip(*(part.shape for part in parts), strict=True)
    dims = [dim for dim, different in enumerate(map(set, extents)) if len(different) > 1]
    if len(dims) > 1:
        raise NotImplementedError(
            f"nested_tensor: the components differ in the dimensions {dims}, and here they may in "
            "one alone: pad them in the others"
        )
    return dims[0] if dims else 0


def nested_tensor_from_jagged(
    values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None
) -> NestedTensor:
    """Return the nested tensor of joined components, through which gradients flow to them.

    values: the components, joined along the dimension before `jagged_dim`. offsets: where they
    begin and end, of shape (components + 1,). lengths: how many elements each has, of shape
    (components,), without `offsets` one behind the other. jagged_dim: 1 by default.
    min_seqlen, max_seqlen: without effect, since offsets are known.

    Raises RuntimeError without offsets and lengths, and in a trace, where they have no values.

    >>> x = jaxgrad.nested.nested_tensor_from_jagged(jaxgrad.arange(5), jaxgrad.tensor([0, 2, 5]))
    >>> x.unbind()
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    if offsets is None and lengths is None:
        raise RuntimeError(
            "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
        )
    ragged = 1 if jagged_dim is None else jagged_dim
    sizes = None if lengths is None else lengths.tolist()
    starts = np.cumsum([0, *sizes]) if offsets is None else np.array(offsets.tolist())
    if offsets is not None and sizes is not None:
        places = [np.arange(start, start + n) for start, n in zip(starts, sizes, strict=False)]
        values = ops.index_select(values, ragged - 1, tensor(np.concatenate(places)))
        starts = np.cumsum([0, *sizes])
    return nested(ops.alias(values), Length(starts), ragged)


def to_padded_tensor(input: NestedTensor, padding: float, output_size=None) -> Tensor:
    """Return the components in a tensor of one shape, filled with `padding`.

    output_size: the shape, at least as large as the components; the smallest if it is None.
    Gradients flow to the components. Raises RuntimeError for a smaller shape.

    >>> x = jaxgrad.nested.nested_tensor([[1.0], [2.0, 3.0]])
    >>> jaxgrad.nested.to_padded_tensor(x, -1.0)
    tensor([[ 1., -1.],
            [ 2.,  3.]])
    """
    return _tensor.to_padded_tensor(input, padding, output_size)


def narrow(tensor, dim, start, length, layout=devices.strided) -> NestedTensor:
    """Return the nested tensor of a part of each row: `tensor[i, start[i]:start[i] + length[i]]`.

    dim: 1. start, length: ints, or int64 tensors of shape (rows,). layout: `jagged`.

    >>> x = jaxgrad.arange(6).view(2, 3)
    >>> jaxgrad.nested.narrow(x, 1, 0, jaxgrad.tensor([1, 3]), jaxgrad.jagged).unbind()
    (tensor([0]), tensor([3, 4, 5]))
    """
    if dim != 1:
        raise RuntimeError(f"jagged layout only supports dim=1, not {dim}")
    count = len(tensor)
    starts, lengths = (
        [value] * count if isinstance(value, int) else value.tolist() for value in (start, length)
    )
    parts = [row.narrow(0, *span) for row, *span in zip(tensor, starts, lengths, strict=True)]
    return as_nested_tensor(parts, layout=layout)
