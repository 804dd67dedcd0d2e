"""Functions that make nested tensors, and tensors of one shape of them."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..core import device as devices
from ..core import dtypes
from ..frontend import factories
from ..frontend.tensor_data import tensor
from ..tape.tensor import Tensor
from . import _jagged, _strided
from ._jagged import NestedTensor, nested
from ._length import Length
from ._places import Places
from ._strided import StridedNestedTensor


def nested_tensor(
    tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """Return a new leaf with a copy of each component.

    tensor_list: tensors, or what `tensor` takes, that have one number of dimensions. layout:
    `strided` (the default), or `jagged`, in which they differ in one extent alone, the first where
    they do not differ. dtype, device: those of the first component if left out.

    Raises TypeError for anything but a list, RuntimeError for components of different numbers of
    dimensions and for jagged ones that differ in several extents.

    >>> x = jaxgrad.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=jaxgrad.jagged)
    >>> x.to_padded_tensor(0.0)
    tensor([[1., 2.],
            [3., 0.]])
    """
    if not isinstance(tensor_list, list | tuple):
        raise TypeError(
            "Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor, "
            f"not {type(tensor_list).__name__}"
        )
    parts = [
        part.detach() if isinstance(part, Tensor) else tensor(part, dtype=dtype, device=device)
        for part in tensor_list
    ]
    result = as_nested_tensor(parts, dtype=dtype, layout=layout, device=device)
    kind = _strided if isinstance(result, StridedNestedTensor) else _jagged
    return kind.as_leaf(result, requires_grad)


def as_nested_tensor(ts, dtype=None, device=None, layout=None) -> Tensor:
    """Return the nested tensor of components, through which gradients flow to them.

    ts: tensors as for `nested_tensor`, the rows of a tensor, or a nested tensor of this layout.
    Other arguments and errors as there.

    >>> a = jaxgrad.ones(2, requires_grad=True)
    >>> jaxgrad.nested.as_nested_tensor([a, 2 * a]).values().sum().backward()
    >>> a.grad
    tensor([3., 3.])
    """
    layout = devices.strided if layout is None else layout
    if layout not in (devices.strided, devices.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    if getattr(ts, "is_nested", False):
        if ts.layout is not layout:
            raise RuntimeError(
                "as_nested_tensor(): Converting between nested tensor layouts is not supported: "
                "take the components of unbind()"
            )
        return ts.to(ts.dtype if dtype is None else dtype)
    parts = _components(ts, dtype, device)
    if layout is devices.strided:
        return _strided.joined(parts) if parts else _without_components(dtype)
    dim = _dim_of_lengths(parts)
    bounds = np.cumsum([0, *(part.shape[dim] for part in parts)])
    return nested(ops.cat(parts, dim), Length(bounds), dim + 1)


def _components(ts, dtype, device):
    """The components as tensors of one dtype and one number of dimensions."""
    rows = ts.unbind(0) if isinstance(ts, Tensor) else ts
    if not isinstance(rows, list | tuple) or not all(isinstance(row, Tensor) for row in rows):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of "
            "tensors"
        )
    for number, row in enumerate(rows):
        if row.ndim != rows[0].ndim:
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{row.ndim} for Tensor at index {number} and dimension {rows[0].ndim} for Tensor "
                "at index 0."
            )
    return [row.to(dtype=dtype or rows[0].dtype, device=device) for row in rows]


def _without_components(dtype):
    return _strided.strided(factories.empty(0, dtype=dtype), Places.packed(()))


def _dim_of_lengths(parts):
    """The dimension in which components differ; the first if they have one shape."""
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if not parts[0].ndim:
        raise RuntimeError("Cannot construct a nested tensor of tensors without dimensions")
    extents = zip(*(part.shape for part in parts), strict=True)
    dims = [dim for dim, different in enumerate(map(set, extents)) if len(different) > 1]
    if len(dims) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note "
            "that the jagged layout only allows for a single ragged dimension: the components "
            f"differ in the dimensions {dims}"
        )
    return dims[0] if dims else 0


def masked_select(tensor, mask) -> NestedTensor:
    """Return the elements of each row where a mask is True, in the jagged layout.

    tensor: of two dimensions. mask: bool, of a shape that broadcasts to that of `tensor`. Gradients
    flow to `tensor`.

    >>> x = jaxgrad.arange(6).view(2, 3)
    >>> jaxgrad.nested.masked_select(x, x > 1).unbind()
    (tensor([2]), tensor([3, 4, 5]))
    """
    if tensor.layout is not devices.strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    mask = mask.expand(tensor.shape)
    counts = mask.sum(-1).tolist()
    return nested(ops.masked_select(tensor, mask), Length(np.cumsum([0, *counts])), 1)


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


def to_padded_tensor(input: Tensor, padding: float, output_size=None) -> Tensor:
    """Return the components in a tensor of one shape, filled with `padding`.

    output_size: the shape, at least as large as the components; the smallest if it is None.
    Gradients flow to the components. Raises RuntimeError for a smaller shape.

    >>> x = jaxgrad.nested.nested_tensor([[1.0], [2.0, 3.0]])
    >>> jaxgrad.nested.to_padded_tensor(x, -1.0)
    tensor([[ 1., -1.],
            [ 2.,  3.]])
    """
    if not getattr(input, "is_nested", False):
        raise NotImplementedError("to_padded_tensor: the input is no nested tensor")
    return input.to_padded_tensor(padding, output_size)


def narrow(tensor, dim, start, length, layout=devices.strided) -> Tensor:
    """Return the nested tensor of a part of each row: `tensor[i, start[i]:start[i] + length[i]]`.

    dim: 1. start, length: ints, or int64 tensors of shape (rows,). layout: `jagged`; for `strided`,
    dim is 0, start and length are ints, and the result has some of the rows.

    >>> x = jaxgrad.arange(6).view(2, 3)
    >>> jaxgrad.nested.narrow(x, 1, 0, jaxgrad.tensor([1, 3]), jaxgrad.jagged).unbind()
    (tensor([0]), tensor([3, 4, 5]))
    """
    if layout is devices.strided:
        if not isinstance(start, int) or not isinstance(length, int):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(tensor).narrow(dim, start, length)
    if dim != 1:
        raise RuntimeError(f"jagged layout only supports dim=1, not {dim}")
    count = len(tensor)
    starts, lengths = (
        [value] * count if isinstance(value, int) else value.tolist() for value in (start, length)
    )
    parts = [row.narrow(0, *span) for row, *span in zip(tensor, starts, lengths, strict=True)]
    return as_nested_tensor(parts, layout=layout)


def _nested_tensor_from_mask(t, mask, mask_check=True) -> StridedNestedTensor:
    """Return the nested tensor of the first rows of each matrix, as many as its mask has True.

    t: (components, length, features). mask: bool, (components, length). Raises RuntimeError for
    True after False, unless `mask_check` is False.

    >>> x = jaxgrad._nested_tensor_from_mask(
    ...     jaxgrad.arange(4.0).view(2, 2, 1), jaxgrad.tensor([[True, True], [True, False]])
    ... )
    >>> [part.tolist() for part in x.unbind()]
    [[[0.0], [1.0]], [[2.0]]]
    """
    if mask.dtype is not dtypes.bool or mask.ndim != 2 or t.ndim != 3:
        raise RuntimeError("Expected a 3-D tensor and a 2-D mask of dtype bool")
    if mask.shape != t.shape[:2]:
        raise RuntimeError(
            f"Mask size should match input size, but got {list(mask.shape)} for {list(t.shape)}"
        )
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    return _strided.from_padded(t, [(length, t.shape[2]) for length in mask.sum(-1).tolist()])


def _nested_tensor_from_mask_left_aligned(t, mask) -> bool:
    """Return whether no row of a mask has True after False."""
    return bool((mask[:, 1:] <= mask[:, :-1]).all())


def _nested_from_padded(padded, cpu_nested_shape_example) -> StridedNestedTensor:
    """Return the nested tensor of the first elements of a padded one.

    cpu_nested_shape_example: the sizes of the components, int64 of shape (components, dimensions).
    """
    return _strided.from_padded(padded, cpu_nested_shape_example.tolist())


def _nested_view_from_buffer(self, nested_size, nested_strides, offsets) -> StridedNestedTensor:
    """Return a nested tensor that shares the memory of a tensor of one dimension.

    nested_size, nested_strides: int64 of shape (components, dimensions); offsets: (components,).
    """
    return _strided.of_tables(ops.alias(self), nested_size, nested_strides, offsets)
