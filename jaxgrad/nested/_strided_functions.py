"""Functions of nested tensors of the strided layout, by the names of PyTorch's."""

from __future__ import annotations

import itertools
import math

from .. import autograd, ops
from ..autograd.grad_mode import no_grad
from ..frontend import factories, random
from ..frontend import to as to_methods
from ..tape import torch_function
from ..tape.tensor import Tensor
from ._common import (
    dropout_of,
    functional,
    is_same_size,
    native_dropout_of,
    padded_attention,
    unsupported,
    values_of,
    wrapped_dim,
)
from ._places import Places
from ._strided import (
    FUNCTIONS,
    as_leaf,
    elementwise,
    fills_memory,
    from_padded,
    is_nested,
    joined,
    of_component,
    packed,
    packed_places,
    strided,
    to_padded_tensor,
    unbind,
)


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
    inner = of_component(dim, input, "unflatten")
    return joined([part.unflatten(inner, sizes) for part in unbind(input)])


def flatten(input, start_dim=0, end_dim=-1):
    dims = [of_component(dim, input, "flatten") for dim in (start_dim, end_dim)]
    return joined([part.flatten(*dims) for part in unbind(input)])


def cat(tensors, dim=0):
    if not all(map(is_nested, tensors)):
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


def _of_packed(values, input):
    return strided(values, packed_places(input))


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    tensors = query, key, value
    if attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: Nested tensors for query / key are not supported when "
            "an explicit attn_mask is set"
        )
    ndim = query.ndim
    if ndim not in (3, 4) or not all(is_nested(one) and one.ndim == ndim for one in tensors):
        raise RuntimeError(
            "scaled_dot_product_attention: query, key and value must be nested tensors of shape "
            "(components, heads, length, features) or (components, length, features)"
        )
    dense = [to_padded_tensor(tensor, 0.0) for tensor in tensors]
    lengths = [size[-2] for size in key._places.sizes]
    if ndim == 3:  # one head
        dense = [tensor.unsqueeze(1) for tensor in dense]
    result = padded_attention(
        *dense, lengths, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    result = result.squeeze(1) if ndim == 3 else result
    pairs = zip(query._places.sizes, value._places.sizes, strict=True)
    return from_padded(result, [(*size[:-1], other[-1]) for size, other in pairs])


def masked_select(input, mask):
    raise unsupported("masked_select")


def equal(input, other):
    is_same = is_nested(other) and input._places.sizes == other._places.sizes
    return is_same and packed(input).equal(packed(other))


def copy_(input, src, non_blocking=False):
    if not is_nested(src) or src._places.sizes != input._places.sizes:
        raise RuntimeError(
            "copy_ only supports tensors that are the same size for Nested implementations"
        )
    if fills_memory(input):
        with torch_function.DisableTorchFunctionSubclass():
            input.copy_(packed(src))
        return input
    for part, other in zip(unbind(input), unbind(src), strict=True):
        part.copy_(other)
    return input


def detach(input):
    with torch_function.DisableTorchFunctionSubclass():
        return strided(input.detach(), input._places)


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
    if is_nested(gradient):
        gradient = packed(gradient) if fills_memory(tensor) else values_of(gradient)
    with torch_function.DisableTorchFunctionSubclass():
        return Tensor.backward(tensor, gradient, *args, **kwargs)


def grad(outputs, inputs, grad_outputs=None, *args, **kwargs):
    """`autograd.grad`: the gradient of a nested tensor is nested as it is."""
    asked = [*inputs] if isinstance(inputs, tuple | list) else [inputs]
    with torch_function.DisableTorchFunctionSubclass():
        gradients = autograd.grad(outputs, inputs, grad_outputs, *args, **kwargs)
        plain = [ops.alias(gradient) if is_nested(gradient) else gradient for gradient in gradients]
    return tuple(
        strided(gradient, tensor._places)
        if is_nested(tensor) and gradient is not None
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
        return strided(values_of(result), packed_places(input))

    return function


def _filled(name):
    """A function that writes one value to all elements."""

    def function(input, *args):
        if fills_memory(input):
            with torch_function.DisableTorchFunctionSubclass():
                getattr(Tensor, name)(input, *args)
            return input
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
        args = [values_of(other) if is_nested(other) else other for other in args]
        result = convert(input, *args, **kwargs)
        is_same = result.dtype is input.dtype and result.device == input.device
        return input if is_same and not kwargs.get("copy") else result

    return function


_FUNCTIONS = (
    *(unbind, to_padded_tensor, transpose, permute, select, narrow, chunk, split),
    *(split_with_sizes, squeeze, unsqueeze, view, reshape, unflatten, flatten, cat, linear),
    *(layer_norm, rms_norm, matmul, bmm, embedding, scaled_dot_product_attention),
    *(masked_select, equal, copy_, detach, requires_grad_, contiguous, item, backward, grad),
    *(__getitem__, __iter__, __deepcopy__, __format__, __bool__, __float__),
)
FUNCTIONS |= {function.__name__: function for function in _FUNCTIONS}
FUNCTIONS |= {
    "dropout": dropout_of(packed, _of_packed),
    "native_dropout": native_dropout_of(packed, _of_packed),
}
FUNCTIONS |= {"__int__": __float__, "__complex__": __float__, "is_same_size": is_same_size}
FUNCTIONS |= {"__matmul__": matmul, "swapaxes": transpose, "swapdims": transpose}
FUNCTIONS |= {name: _converted(name) for name in ("to", "cpu", "cuda", *to_methods.CONVERSIONS)}
FUNCTIONS |= {
    name: _on_memory(name, space)
    for space, names in {
        ops: ("clone",),
        factories: ("zeros_like", "ones_like", "empty_like", "full_like"),
        random: ("rand_like", "randn_like"),
    }.items()
    for name in names
}
FUNCTIONS |= {name: _filled(name) for name in ("zero_", "fill_")}
FUNCTIONS |= {name: _of_handles(name) for name in ("data_ptr", "element_size", "retain_grad")}
FUNCTIONS |= {name: _of_handles(name) for name in ("is_floating_point", "is_complex", "is_signed")}
FUNCTIONS |= {name: _of_handles(name) for name in torch_function.OF_HANDLES}
FUNCTIONS |= {
    name: _refused("Internal error: NestedTensorImpl doesn't support sizes.")
    for name in ("numpy", "tolist", "__len__")
}
FUNCTIONS["masked_fill"] = lambda *args, **kwargs: elementwise(ops.masked_fill, args, kwargs)
FUNCTIONS["where"] = lambda *args, **kwargs: elementwise(ops.where, args, kwargs)
