"""Nested tensors of the strided layout, whose components may differ in every extent.

A `StridedNestedTensor` is a handle on the memory of its components, an array of one dimension; its
`Places` say where in it they lie, so `transpose` and `select` are views. While no class overrides
functions, it is the tensor of its memory.

An elementwise operator computes on the memory, every other function on the components.
"""

from __future__ import annotations

import inspect
import itertools
import math
from typing import NamedTuple

import numpy as np

from .. import autograd, ops
from ..autograd.grad_mode import no_grad
from ..core import device as devices
from ..frontend import factories, random
from ..frontend import to as to_methods
from ..frontend.array_creation import finish
from ..frontend.tensor_data import tensor as new_tensor
from ..tape import torch_function
from ..tape.tensor import Tensor, name_of_node
from ._common import (
    functional,
    is_elementwise,
    is_in_place,
    padded_attention,
    unsupported,
    values_of,
    wrapped_dim,
)


class Places(NamedTuple):
    """Where the components lie in memory."""

    sizes: tuple
    strides: tuple
    offsets: tuple

    @classmethod
    def packed(cls, sizes) -> Places:
        """Of components that lie one behind the other."""
        sizes = tuple(map(tuple, sizes))
        offsets = itertools.accumulate(map(math.prod, sizes), initial=0)
        return cls(sizes, tuple(map(_contiguous, sizes)), tuple(offsets)[:-1])

    @property
    def is_packed(self) -> bool:
        return self == Places.packed(self.sizes)

    @property
    def ndim(self) -> int:
        """Dimensions of the nested tensor."""
        return len(self.sizes[0]) + 1 if self.sizes else 1

    @property
    def largest(self) -> list[int]:
        return [max(extents) for extents in zip(*self.sizes, strict=True)]

    def extent(self, dim: int) -> int:
        """The extent in a dimension of the nested tensor, in which all components agree."""
        if not dim:
            return len(self.sizes)
        extents = {size[dim - 1] for size in self.sizes}
        if len(extents) > 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return extents.pop()

    def in_padded(self, shape) -> np.ndarray:
        """The place of every element in a contiguous tensor of a shape, one component after the
        other.
        """
        whole = np.arange(math.prod(shape)).reshape(shape)
        parts = [
            whole[number][tuple(map(slice, size))].ravel() for number, size in enumerate(self.sizes)
        ]
        return np.concatenate(parts) if parts else np.arange(0)


def _contiguous(size):
    steps = itertools.accumulate((max(extent, 1) for extent in size[:0:-1]), int.__mul__, initial=1)
    return tuple(steps)[::-1] if size else ()


class StridedNestedTensor(Tensor):
    """A tensor of components that have one number of dimensions; `nested_tensor` makes it.

    >>> x = jaxgrad.nested.nested_tensor([jaxgrad.ones(2, 1), jaxgrad.ones(1, 2)])
    >>> (2 * x).unbind()[1]
    tensor([[2., 2.]])
    """

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return call(func, args, kwargs or {})

    @property
    def shape(self):
        if not torch_function.classes_override.get():
            return Tensor.shape.fget(self)
        raise RuntimeError(
            "Internal error: NestedTensorImpl doesn't support sizes. Components differ in them: "
            "call size(dim), or unbind() for the components"
        )

    @property
    def ndim(self):
        return self._places.ndim if torch_function.classes_override.get() else 1

    @property
    def grad(self):
        gradient = Tensor.grad.fget(self)
        if gradient is None or isinstance(gradient, StridedNestedTensor):
            return gradient
        return strided(gradient, self._places)

    @grad.setter
    def grad(self, gradient):
        with torch_function.DisableTorchFunctionSubclass():
            Tensor.grad.fset(self, gradient)

    is_nested = property(lambda self: True)
    layout = property(lambda self: devices.strided)
    mT = property(lambda self: transpose(self, -1, -2))

    def dim(self) -> int:
        return self.ndim

    def size(self, dim=None):
        return self.shape if dim is None else self._places.extent(wrapped_dim(dim, self.ndim))

    def stride(self, dim=None):
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides.")

    def storage_offset(self) -> int:
        return 0

    def numel(self) -> int:
        return sum(map(math.prod, self._places.sizes))

    def is_contiguous(self, memory_format=None) -> bool:
        return self._places.is_packed

    def __repr__(self):
        return text_of(self)

    def values(self) -> Tensor:
        """The elements of all components, in one dimension."""
        return values_of(self)

    def to_padded_tensor(self, padding, output_size=None) -> Tensor:
        """The components in a tensor of one shape, filled with `padding`."""
        return to_padded_tensor(self, padding, output_size)

    def padding_mask(self) -> Tensor:
        """Where the components of two dimensions, padded, have no rows: (components, length)."""
        lengths = np.array([size[0] for size in self._places.sizes])
        return new_tensor(np.arange(lengths.max(initial=0)) >= lengths[:, None])

    def from_padded(self, padded: Tensor) -> StridedNestedTensor:
        """The nested tensor of the elements of a padded one that this tensor has too."""
        return from_padded(padded, self._places.sizes)

    def tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """The sizes, strides and offsets of the components."""
        return tuple(map(_table, self._places))

    def _nested_tensor_size(self) -> Tensor:
        return _table(self._places.sizes)

    def _nested_tensor_strides(self) -> Tensor:
        return _table(self._places.strides)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        return _table(self._places.offsets)


def _table(rows):
    return finish(np.array(rows, "int64"))


def strided(values: Tensor, places: Places) -> StridedNestedTensor:
    """A nested tensor that takes the place of its memory, a tensor without other references."""
    torch_function.activate()
    values.__class__ = StridedNestedTensor
    values._places = places
    return values


def of_tables(memory: Tensor, sizes, strides, offsets) -> StridedNestedTensor:
    """A nested tensor that takes the place of its memory. sizes, strides: int64 of shape
    (components, dimensions); offsets: (components,).
    """
    rows = [tuple(map(tuple, table.tolist())) for table in (sizes, strides)]
    return strided(memory, Places(*rows, tuple(offsets.tolist())))


def joined(parts) -> StridedNestedTensor:
    """The nested tensor of components, through which gradients flow to them."""
    values = ops.cat([part.reshape(-1) for part in parts])
    return strided(values, Places.packed(part.shape for part in parts))


def call(function, args, kwargs):
    """The result of a function with nested tensors among its arguments."""
    name = function.__name__
    if name in _SPECIAL:
        return _SPECIAL[name](*args, **kwargs)
    if is_in_place(name):
        return copy_(args[0], getattr(Tensor, name[:-1])(*args, **kwargs))
    if is_elementwise(function):
        return _elementwise(function, args, kwargs)
    names = [*inspect.signature(function).parameters]
    if "dim" in names and isinstance(args[0], StridedNestedTensor):
        return _along(function, names, args, kwargs)
    raise unsupported(name)


def text_of(tensor: StridedNestedTensor) -> str:
    """The printed form of a nested tensor."""
    parts = [part.requires_grad_(tensor.requires_grad) for part in unbind(tensor.detach())]
    text = ",\n".join(f"  {part!r}".replace("\n", "\n  ") for part in parts)
    node = name_of_node(tensor)
    history = f", grad_fn=<{node}>" if node else ""
    history = history or (", requires_grad=True" if tensor.requires_grad else "")
    return f"nested_tensor([\n{text}\n]{history})"


def _elementwise(function, args, kwargs):
    nested = [value for value in (*args, *kwargs.values()) if _is_nested(value)]
    sizes = nested[0]._places.sizes
    if any(other._places.sizes != sizes for other in nested):
        raise RuntimeError(
            f"{function.__name__} does not support broadcasting when given a NestedTensor"
        )
    args = [_operand(value, sizes) for value in args]
    kwargs = {name: _operand(value, sizes) for name, value in kwargs.items()}
    return strided(function(*args, **kwargs), Places.packed(sizes))


def _is_nested(value):
    return isinstance(value, StridedNestedTensor)


def _operand(value, sizes):
    """An operand of an elementwise operator, beside the elements of all components."""
    if _is_nested(value):
        return packed(value)
    if not isinstance(value, Tensor) or value.numel() == 1:
        return value
    if not sizes or value.ndim != len(sizes[0]) + 1 or value.shape[0] != len(sizes):
        raise RuntimeError(
            "Expected both self and other to be nested, but got a nested self and non-nested other "
            f"of shape {list(value.shape)}: a dense operand has a row for each component"
        )
    parts = zip(value.unbind(0), sizes, strict=True)
    return ops.cat([part.expand(size).reshape(-1) for part, size in parts])


def _fills_memory(tensor):
    return tensor._places.is_packed and tensor.numel() == values_of(tensor).numel()


def packed(tensor: StridedNestedTensor) -> Tensor:
    """The elements of all components, one component behind the other."""
    if _fills_memory(tensor):
        return values_of(tensor)
    return values_of(joined(unbind(tensor)))


def _along(function, names, args, kwargs):
    """A function along a dimension of the components."""
    tensor, options = args[0], dict(zip(names[1:], args[1:], strict=False)) | kwargs
    dim = options.get("dim")
    if dim is None:
        raise NotImplementedError(f"{function.__name__} over all dimensions of a nested tensor")
    dims = [_of_component(one, tensor, function.__name__) for one in np.atleast_1d(dim).tolist()]
    options["dim"] = dims[0] if isinstance(dim, int) else dims
    results = [function(part, **options) for part in unbind(tensor)]
    if isinstance(results[0], Tensor):
        return joined(results)
    columns = [joined(column) for column in zip(*results, strict=True)]
    kind = type(results[0])
    return kind(*columns) if hasattr(kind, "_fields") else kind(columns)


def _of_component(dim, tensor, name):
    """A dimension counted as in the components."""
    if not (dim := wrapped_dim(dim, tensor.ndim)):
        raise RuntimeError(f"{name}(): Cannot apply {name} across nested dimension 0")
    return dim - 1


def _with_places(tensor, change):
    """A view of a nested tensor. change: the size, stride and offset of a component in it."""
    places = [change(*place) for place in zip(*tensor._places, strict=True)]
    return strided(values_of(tensor), Places(*zip(*places, strict=True)))


def _last_extent(tensor):
    sizes = tensor._places.sizes
    last = {size[-1] for size in sizes}
    if len(last) > 1:
        raise RuntimeError(
            "Expected all tensors in nested tensor to have the same trailing dimension, instead "
            f"last dimension equals: {sorted(last)}"
        )
    return last.pop()


# ---- functions by the names of PyTorch's


def unbind(input, dim=0):
    if wrapped_dim(dim, input.ndim):
        raise RuntimeError(
            "NestedTensor can only be unbound along dimension 0 got dimension "
            f"{wrapped_dim(dim, input.ndim)} instead."
        )
    values, places = values_of(input), input._places
    if _fills_memory(input):
        parts = ops.split(values, [*map(math.prod, places.sizes)]) if places.sizes else ()
        return tuple(part.view(size) for part, size in zip(parts, places.sizes, strict=True))
    start = values.storage_offset()
    return tuple(
        ops.as_strided(values, size, stride, start + offset)
        for size, stride, offset in zip(*places, strict=True)
    )


def to_padded_tensor(input, padding, output_size=None):
    if not _is_nested(input):
        raise unsupported("to_padded_tensor")
    places = input._places
    shape = [len(places.sizes), *places.largest]
    if output_size is not None:
        if len(output_size) != len(shape):
            raise RuntimeError(
                "Length of output_size does not match NestedTensor dims. Broadcasting is not "
                f"supported: {list(output_size)} for {len(shape)} dimensions"
            )
        if any(extent < needed for extent, needed in zip(output_size, shape, strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not "
                f"supported: {list(output_size)}, and the padded size is {shape}"
            )
        shape = [*output_size]
    values = packed(input)
    padded = values.new_full((math.prod(shape),), padding)
    return padded.index_copy(0, new_tensor(places.in_padded(shape)), values).view(shape)


def from_padded(padded, sizes) -> StridedNestedTensor:
    """The nested tensor of the first elements of a padded one, of these sizes."""
    places = Places.packed(sizes)
    indices = new_tensor(places.in_padded(padded.shape))
    return strided(ops.index_select(padded.reshape(-1), 0, indices), places)


def transpose(input, dim0, dim1):
    dims = [wrapped_dim(dim, input.ndim) for dim in (dim0, dim1)]
    if 0 in dims:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    order = [*range(input.ndim - 1)]
    first, second = (dim - 1 for dim in dims)
    order[first], order[second] = order[second], order[first]
    return _permuted(input, order)


def permute(input, *dims):
    dims = dims[0] if isinstance(dims[0], tuple | list) else dims
    dims = [wrapped_dim(dim, input.ndim) for dim in dims]
    if dims[0]:
        raise RuntimeError("Nested tensor dimension 0 cannot be permuted")
    return _permuted(input, [dim - 1 for dim in dims[1:]])


def _permuted(input, order):
    def change(size, stride, offset):
        return tuple(size[dim] for dim in order), tuple(stride[dim] for dim in order), offset

    return _with_places(input, change)


def select(input, dim, index):
    if not wrapped_dim(dim, input.ndim):
        return unbind(input)[index]
    inner = wrapped_dim(dim, input.ndim) - 1

    def change(size, stride, offset):
        if not -size[inner] <= index < size[inner]:
            raise IndexError(
                f"select(): index {index} out of range for a component of size {size} at dimension "
                f"{inner}"
            )
        place = offset + index % size[inner] * stride[inner]
        return size[:inner] + size[inner + 1 :], stride[:inner] + stride[inner + 1 :], place

    return _with_places(input, change)


def narrow(input, dim, start, length):
    if wrapped_dim(dim, input.ndim):
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    places = input._places
    part = Places(*(column[start : start + length] for column in places))
    return strided(values_of(input), part)


def chunk(input, chunks, dim=0):
    if wrapped_dim(dim, input.ndim) != input.ndim - 1:
        raise RuntimeError(
            "Chunk for nested tensors is currently only supported for the last dimension."
        )
    extent = _last_extent(input)
    if extent % chunks:
        raise RuntimeError(
            "Chunk for nested tensors is only supported for nested tensors with trailing dimension "
            f"divisible by chunks, got: {extent} % {chunks} != 0"
        )
    return split_with_sizes(input, [extent // chunks] * chunks, dim)


def split(input, split_size_or_sections, dim=0):
    sizes = split_size_or_sections
    if isinstance(sizes, int):
        extent = _last_extent(input)
        sizes = [min(sizes, extent - start) for start in range(0, extent, sizes)]
    return split_with_sizes(input, sizes, dim)


def split_with_sizes(input, split_sizes, dim=0):
    if wrapped_dim(dim, input.ndim) != input.ndim - 1:
        raise RuntimeError(
            "split_with_sizes for nested tensors is currently only supported for the last "
            "dimension."
        )
    if sum(split_sizes) != _last_extent(input):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {_last_extent(input)} (input "
            f"tensor's size at dimension -1), but got split_sizes={[*split_sizes]}"
        )
    starts = itertools.accumulate(split_sizes, initial=0)
    return tuple(
        _with_places(
            input,
            lambda size, stride, offset, start=start, length=length: (
                (*size[:-1], length),
                stride,
                offset + start * stride[-1],
            ),
        )
        for start, length in zip(starts, split_sizes, strict=False)
    )


def squeeze(input, dim=None):
    if dim is None:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeeze without the dim argument is not supported: "
            "call squeeze(dim)"
        )
    dim = wrapped_dim(dim, input.ndim)
    if not dim:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment"
        )
    return select(input, dim, 0) if all(s[dim - 1] == 1 for s in input._places.sizes) else input


def unsqueeze(input, dim):
    dim = wrapped_dim(dim, input.ndim + 1)
    if not dim:
        raise RuntimeError(
            "unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the "
            "moment"
        )

    def change(size, stride, offset):
        step = size[dim - 1] * stride[dim - 1] if dim <= len(size) else 1
        return size[: dim - 1] + (1, *size[dim - 1 :]), _inserted(stride, dim - 1, step), offset

    return _with_places(input, change)


def _inserted(values, place, value):
    return (*values[:place], value, *values[place:])


def _component_shapes(name, input, shape):
    """The shapes of the components in a view of `input`; -1 keeps an extent, or is inferred."""
    shape = [*shape[0]] if isinstance(shape[0], tuple | list) else [*shape]
    if shape[0] != len(input._places.sizes):
        raise RuntimeError(
            f"{name}: For now nested {name} cannot change or infer the implicit batch dimension"
        )
    result = []
    for size in input._places.sizes:
        kept = [
            size[dim] if extent == -1 and dim < len(size) else extent
            for dim, extent in enumerate(shape[1:])
        ]
        if math.prod(kept) != math.prod(size):
            raise RuntimeError(f"shape '{shape}' is invalid for input of size {math.prod(size)}")
        result.append(kept)
    return result


def view(input, *shape):
    if len(shape) == 1 and not isinstance(shape[0], int | tuple | list):
        raise NotImplementedError("view(dtype): not provided for nested tensors")
    shapes = _component_shapes("view", input, shape)
    parts = [part.view(size) for part, size in zip(unbind(input), shapes, strict=True)]
    places = [(tuple(part.shape), part.stride()) for part in parts]
    sizes, strides = zip(*places, strict=True)
    return strided(values_of(input), Places(sizes, strides, input._places.offsets))


def reshape(input, *shape):
    shapes = _component_shapes("reshape", input, shape)
    try:
        return view(input, *shape)
    except RuntimeError:
        parts = zip(unbind(input), shapes, strict=True)
        return joined([part.reshape(size) for part, size in parts])


def unflatten(input, dim, sizes):
    inner = _of_component(dim, input, "unflatten")
    return joined([part.unflatten(inner, sizes) for part in unbind(input)])


def flatten(input, start_dim=0, end_dim=-1):
    dims = [_of_component(dim, input, "flatten") for dim in (start_dim, end_dim)]
    return joined([part.flatten(*dims) for part in unbind(input)])


def cat(tensors, dim=0):
    if not all(map(_is_nested, tensors)):
        raise RuntimeError("cat(): Expected each tensor in given list to be nested.")
    if not wrapped_dim(dim, tensors[0].ndim):
        return joined([part for tensor in tensors for part in unbind(tensor)])
    inner = wrapped_dim(dim, tensors[0].ndim) - 1
    rows = zip(*map(unbind, tensors), strict=True)
    return joined([ops.cat([*row], inner) for row in rows])


def linear(input, weight, bias=None):
    if input.ndim < 3 or weight.ndim != 2:
        raise RuntimeError(
            f"Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
            f"{input.ndim}. Dense tensor dim: {weight.ndim}"
        )
    return _on_rows(input, lambda rows: functional.linear(rows, weight, bias))


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    if len(normalized_shape) != 1:
        parts = [
            functional.layer_norm(part, normalized_shape, weight, bias, eps)
            for part in unbind(input)
        ]
        return joined(parts)
    return _on_rows(
        input, lambda rows: functional.layer_norm(rows, normalized_shape, weight, bias, eps)
    )


def rms_norm(input, normalized_shape, weight=None, eps=None):
    parts = [functional.rms_norm(part, normalized_shape, weight, eps) for part in unbind(input)]
    return joined(parts)


def _on_rows(input, function):
    """A function of last dimensions, which all components share, on the rows of all."""
    rows = packed(input).view(-1, _last_extent(input))
    result = function(rows)
    sizes = [(*size[:-1], result.shape[-1]) for size in input._places.sizes]
    return strided(result.reshape(-1), Places.packed(sizes))


def matmul(input, other):
    pairs = [value.unbind(0) for value in (input, other)]
    if len(pairs[0]) != len(pairs[1]):
        raise RuntimeError(
            f"matmul: Expected size for the 1st dimension of both operands to be one, got "
            f"{len(pairs[0])} and {len(pairs[1])}"
        )
    return joined([ops.matmul(*pair) for pair in zip(*pairs, strict=True)])


def bmm(input, mat2):
    for name, value in (("self", input), ("mat2", mat2)):
        if value.ndim != 3:
            raise RuntimeError(f"batch1 must be a 3D tensor: {name} has {value.ndim} dimensions")
    return matmul(input, mat2)


def embedding(input, weight, *args, **kwargs):
    parts = [functional.embedding(part, weight, *args, **kwargs) for part in unbind(input)]
    return joined(parts)


def dropout(input, p=0.5, training=True, inplace=False):
    result = strided(functional.dropout(packed(input), p, training), _packed_places(input))
    return copy_(input, result) if inplace else result


def _packed_places(input):
    return Places.packed(input._places.sizes)


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    tensors = query, key, value
    if attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: Nested tensors for query / key are not supported when "
            "an explicit attn_mask is set"
        )
    if not all(_is_nested(tensor) and tensor.ndim == 4 for tensor in tensors):
        raise RuntimeError(
            "scaled_dot_product_attention: query, key and value must be nested tensors of shape "
            "(components, heads, length, features)"
        )
    dense = [to_padded_tensor(tensor, 0.0) for tensor in tensors]
    lengths = [size[1] for size in key._places.sizes]
    result = padded_attention(
        *dense, lengths, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    pairs = zip(query._places.sizes, value._places.sizes, strict=True)
    return from_padded(result, [(*size[:-1], other[-1]) for size, other in pairs])


def masked_select(input, mask):
    raise unsupported("masked_select")


def equal(input, other):
    is_same = _is_nested(other) and input._places.sizes == other._places.sizes
    return is_same and ops.equal(packed(input), packed(other))


def copy_(input, src, non_blocking=False):
    if not _is_nested(src) or src._places.sizes != input._places.sizes:
        raise RuntimeError(
            "copy_ only supports tensors that are the same size for Nested implementations"
        )
    if _fills_memory(input):
        with torch_function.DisableTorchFunctionSubclass():
            input.copy_(packed(src))
        return input
    for part, other in zip(unbind(input), unbind(src), strict=True):
        part.copy_(other)
    return input


def detach(input):
    with torch_function.DisableTorchFunctionSubclass():
        return strided(input.detach(), input._places)


def as_leaf(tensor: StridedNestedTensor, requires_grad: bool) -> StridedNestedTensor:
    with torch_function.DisableTorchFunctionSubclass():
        values = packed(tensor).detach().requires_grad_(requires_grad)
    return strided(values, _packed_places(tensor))


def requires_grad_(input, requires_grad=True):
    with torch_function.DisableTorchFunctionSubclass():
        Tensor.requires_grad_(input, requires_grad)
    return input


def contiguous(input, memory_format=None):
    return input if input._places.is_packed else joined(unbind(input))


def __getitem__(input, index):
    index = index if isinstance(index, tuple) else (index,)
    if index == (...,):
        return input
    if not isinstance(index[0], int):
        raise NotImplementedError("slice: not provided for nested tensors along dimension 0")
    part = select(input, 0, _checked(index[0], len(input._places.sizes)))
    return part[index[1:]] if index[1:] else part


def _checked(index, count):
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
    return index


def __iter__(input):
    return iter(unbind(input))


def __deepcopy__(input, memo):
    with no_grad():
        return as_leaf(joined(unbind(input)), input.requires_grad)


def __format__(input, specification):
    return object.__format__(input, specification)


def item(input):
    raise RuntimeError(f"a Tensor with {input.numel()} elements cannot be converted to Scalar")


def __float__(input):
    raise ValueError("only one element tensors can be converted to Python scalars")


def __bool__(input):
    raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")


def backward(tensor, gradient=None, *args, **kwargs):
    if _is_nested(gradient):
        gradient = packed(gradient) if _fills_memory(tensor) else values_of(gradient)
    with torch_function.DisableTorchFunctionSubclass():
        return Tensor.backward(tensor, gradient, *args, **kwargs)


def grad(outputs, inputs, grad_outputs=None, *args, **kwargs):
    """`autograd.grad`: the gradient of a nested tensor is nested as it is."""
    asked = [*inputs] if isinstance(inputs, tuple | list) else [inputs]
    with torch_function.DisableTorchFunctionSubclass():
        gradients = autograd.grad(outputs, inputs, grad_outputs, *args, **kwargs)
        plain = [
            ops.alias(gradient) if _is_nested(gradient) else gradient for gradient in gradients
        ]
    return tuple(
        strided(gradient, tensor._places)
        if _is_nested(tensor) and gradient is not None
        else gradient
        for tensor, gradient in zip(asked, plain, strict=True)
    )


def _refused(words):
    def function(input, *args, **kwargs):
        raise RuntimeError(words)

    return function


def _on_memory(name, space=Tensor):
    """A function that treats the elements of all components as any tensor."""

    def function(input, *args, **kwargs):
        result = getattr(space, name)(packed(input), *args, **kwargs)
        return strided(values_of(result), _packed_places(input))

    return function


def _filled(name):
    """A function that writes one value to all elements."""

    def function(input, *args):
        for part in unbind(input):
            getattr(part, name)(*args)
        return input

    return function


def _of_handles(name):
    """A function of handles, which treats a nested tensor as any other."""

    def function(input, *args, **kwargs):
        with torch_function.DisableTorchFunctionSubclass():
            return getattr(Tensor, name)(input, *args, **kwargs)

    return function


def _converted(name):
    """A conversion, which gives the tensor itself where nothing changes."""
    convert = _on_memory(name)

    def function(input, *args, **kwargs):
        args = [values_of(other) if _is_nested(other) else other for other in args]
        result = convert(input, *args, **kwargs)
        return result if kwargs.get("copy") or result.dtype is not input.dtype else input

    return function


_FUNCTIONS = (
    *(unbind, to_padded_tensor, transpose, permute, select, narrow, chunk, split),
    *(split_with_sizes, squeeze, unsqueeze, view, reshape, unflatten, flatten, cat, linear),
    *(layer_norm, rms_norm, matmul, bmm, embedding, dropout, scaled_dot_product_attention),
    *(masked_select, equal, copy_, detach, requires_grad_, contiguous, item, backward, grad),
    *(__getitem__, __iter__, __deepcopy__, __format__, __bool__, __float__),
)
_SPECIAL = {function.__name__: function for function in _FUNCTIONS}
_SPECIAL |= {"__int__": __float__, "__complex__": __float__}
_SPECIAL |= {"__matmul__": matmul, "swapaxes": transpose, "swapdims": transpose}
_SPECIAL |= {name: _converted(name) for name in ("to", "cpu", *to_methods.CONVERSIONS)}
_SPECIAL |= {
    name: _on_memory(name, space)
    for space, names in {
        ops: ("clone",),
        factories: ("zeros_like", "ones_like", "empty_like", "full_like"),
        random: ("rand_like", "randn_like"),
    }.items()
    for name in names
}
_SPECIAL |= {name: _filled(name) for name in ("zero_", "fill_")}
_SPECIAL |= {name: _of_handles(name) for name in ("data_ptr", "element_size", "storage")}
_SPECIAL |= {
    name: _of_handles(name) for name in ("untyped_storage", "register_hook", "retain_grad")
}
_SPECIAL |= {
    name: _refused("Internal error: NestedTensorImpl doesn't support sizes.")
    for name in ("numpy", "tolist", "__len__")
}
_SPECIAL["masked_fill"] = lambda *args, **kwargs: _elementwise(ops.masked_fill, args, kwargs)
_SPECIAL["where"] = lambda *args, **kwargs: _elementwise(ops.where, args, kwargs)
