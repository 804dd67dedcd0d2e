"""Functions of nested tensors of the jagged layout.

An elementwise operator, and one along a dimension that all components share, computes on the joined
components, with its dimensions counted as there. A function of this module takes the place of the
one of its name, `sum` of `torch.sum`; every other function raises.
"""

from __future__ import annotations

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
    values_of,
    wrapped_dim,
)
from ._jagged import (
    FUNCTIONS,
    NestedTensor,
    along,
    as_leaf,
    common_model,
    elementwise,
    from_padded,
    like,
    like_leaf,
    nested,
    to_padded_tensor,
    wrapped,
)
from ._length import Length


def _on_values(name, space=Tensor):
    """A function that treats the joined components as any tensor."""

    def function(input, *args, **kwargs):
        with torch_function.DisableTorchFunctionSubclass():
            result = getattr(space, name)(input, *args, **kwargs)
        if result is input:
            return input
        return nested(result, input._length, input._ragged)

    return function


def _of_last(name):
    """A function of the last dimensions of a tensor, which the components share."""

    def function(input, *args, **kwargs):
        if input._ragged == input.ndim - 1:
            raise RuntimeError(f"{name}: the components have different last extents")
        if any(isinstance(value, NestedTensor) for value in (*args, *kwargs.values())):
            raise NotImplementedError(f"{name}: one argument may be a nested tensor, the first")
        result = getattr(functional, name)(values_of(input), *args, **kwargs)
        return like(result, input)

    return function


def unbind(input, dim=0):
    if wrapped(dim, input):
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(ops.split(values_of(input), input._length.lengths, input._ragged - 1))


def sum(input, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        return ops.sum(values_of(input), dtype=dtype)
    options = {"dim": dim, "keepdim": keepdim, "dtype": dtype}
    return along(Tensor.sum, ["input"], (input,), options)


def mean(input, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        return ops.mean(values_of(input), dtype=dtype)
    options = {"dim": dim, "keepdim": keepdim, "dtype": dtype}
    return along(Tensor.mean, ["input"], (input,), options)


def _over_all(name):
    def function(input, dim=None, keepdim=False):
        if dim is None:
            return getattr(ops, name)(values_of(input))
        return along(getattr(Tensor, name), ["input"], (input,), {"dim": dim, "keepdim": keepdim})

    return function


def unsqueeze(input, dim):
    dim = dim % (input.ndim + 1)
    if not dim:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    ragged = input._ragged + (dim <= input._ragged)
    return like(ops.unsqueeze(values_of(input), dim - 1), input, ragged)


def embedding(input, weight, *args, **kwargs):
    return like(functional.embedding(values_of(input), weight, *args, **kwargs), input)


def _of_operands(name):
    """An elementwise function that is no elementwise operator of the table."""
    return lambda *args, **kwargs: elementwise(getattr(ops, name), args, kwargs)


def _new(name, space):
    """A factory of the shape of a nested tensor."""

    def function(input, *args, **kwargs):
        return like_leaf(getattr(space, name)(values_of(input), *args, **kwargs), input)

    return function


def _filled(name):
    def function(input, *args):
        with torch_function.DisableTorchFunctionSubclass():
            getattr(Tensor, name)(input, *args)
        return input

    return function


def transpose(input, dim0, dim1):
    dims = wrapped(dim0, input), wrapped(dim1, input)
    if 0 in dims:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    moved = dict(zip(dims, reversed(dims), strict=True))
    values = ops.transpose(values_of(input), *(dim - 1 for dim in dims))
    return like(values, input, moved.get(input._ragged, input._ragged))


def permute(input, *dims):
    dims = dims[0] if isinstance(dims[0], tuple | list) else dims
    dims = [wrapped(dim, input) for dim in dims]
    if dims[0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = ops.permute(values_of(input), [dim - 1 for dim in dims[1:]])
    return like(values, input, dims.index(input._ragged))


def view(input, *shape):
    shape = list(shape[0] if isinstance(shape[0], tuple | list) else shape)
    places = [place for place, extent in enumerate(shape) if isinstance(extent, Length)]
    if not places and -1 in shape:
        places = [shape.index(-1)]
    if not places or shape[0] != len(input) or places[0] == 0:
        raise RuntimeError(f"view(): cannot view shape {input.shape} as {shape}")
    packed = shape[1:]
    packed[places[0] - 1] = input._length.offsets[-1]
    return like(values_of(input).reshape(packed), input, places[0])


def unflatten(input, dim, sizes):
    dim = wrapped(dim, input)
    if dim in (0, input._ragged):
        raise RuntimeError("unflatten(): not supported for NestedTensor on this dim")
    ragged = input._ragged + (len(sizes) - 1 if dim < input._ragged else 0)
    return like(ops.unflatten(values_of(input), dim - 1, sizes), input, ragged)


def flatten(input, start_dim=0, end_dim=-1):
    start, end = wrapped(start_dim, input), wrapped(end_dim, input)
    if not start or start <= input._ragged <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    ragged = input._ragged - (end - start if end < input._ragged else 0)
    return like(values_of(input).flatten(start - 1, end - 1), input, ragged)


def cat(tensors, dim=0):
    model, dim = common_model(tensors), wrapped(dim, tensors[0])
    if dim in (0, model._ragged):
        raise RuntimeError("cat(): not supported for NestedTensor on this dim")
    return like(ops.cat([values_of(tensor) for tensor in tensors], dim - 1), model)


def stack(tensors, dim=0):
    if not all(isinstance(tensor, NestedTensor) for tensor in tensors):
        raise RuntimeError("stack(): expected all nested tensors inputs")
    model = common_model(tensors)
    dim = wrapped_dim(dim, model.ndim + 1)
    if dim in (0, model._ragged):
        place = "dim=0" if dim == 0 else "ragged dim"
        raise RuntimeError(f"stack(): not supported for NestedTensor on {place}")
    ragged = model._ragged + (dim < model._ragged)
    return like(ops.stack([values_of(tensor) for tensor in tensors], dim - 1), model, ragged)


def expand(input, *size):
    """The tensor with extents of 1 repeated: the number of components and their lengths stay."""
    size = size[0] if isinstance(size[0], tuple | list) else size
    is_kept = len(size) == input.ndim and size[0] in (-1, len(input))
    if not is_kept or not _is_length(size[input._ragged], input):
        raise RuntimeError(f"expand(): cannot expand shape {tuple(input.shape)} -> {[*size]}")
    packed = [-1 if dim == input._ragged else extent for dim, extent in enumerate(size)]
    return like(ops.expand(values_of(input), packed[1:]), input)


def _is_length(extent, input):
    """Whether an extent of a new shape leaves the lengths of the components as they are."""
    if isinstance(extent, Length):
        return extent.offsets == input._length.offsets
    return extent == -1


def expand_as(input, other):
    if not isinstance(input, NestedTensor):
        raise RuntimeError(
            f"expand_as(): a dense tensor of shape {[*input.shape]} does not expand to a nested one"
        )
    return expand(input, *other.shape)


def matmul(input, other):
    if isinstance(input, NestedTensor) and not isinstance(other, NestedTensor):
        if other.ndim == 2 and input._ragged < input.ndim - 1:
            return like(ops.matmul(values_of(input), other), input)
        pairs = zip(input.unbind(), other.unbind(0), strict=True)
    elif isinstance(input, NestedTensor):
        pairs = zip(input.unbind(), other.unbind(), strict=True)
    else:
        pairs = zip(input.unbind(0), other.unbind(), strict=True)
    parts = [ops.matmul(first, second) for first, second in pairs]
    if len({part.shape for part in parts}) == 1:
        return ops.stack(parts)
    model = input if isinstance(input, NestedTensor) else other
    extents = zip(*(part.shape for part in parts), strict=True)
    dims = [dim for dim, different in enumerate(extents) if len({*different}) > 1]
    if len(dims) > 1:
        raise RuntimeError(
            f"matmul(): not supported between inputs of shapes {input.shape} and {other.shape}: "
            "the products differ in two extents"
        )
    dim = dims[0]
    return nested(ops.cat(parts, dim), model._length, dim + 1)


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if attn_mask is not None:
        raise RuntimeError("attn_mask must be None for nested tensors: the lengths make one")
    if not all(
        isinstance(part, NestedTensor) and part._ragged == 2 for part in (query, key, value)
    ):
        raise RuntimeError(
            "scaled_dot_product_attention: query, key and value must be nested tensors of shape "
            "(components, heads, lengths, features): transpose(1, 2) the lengths and heads"
        )
    dense = [to_padded_tensor(part, 0.0) for part in (query, key, value)]
    options = {"scale": scale, "enable_gqa": enable_gqa}
    result = padded_attention(*dense, key._length.lengths, dropout_p, is_causal, **options)
    return from_padded(result, query._length, 2)


def item(input):
    raise RuntimeError(f"item(): not supported for a nested tensor of shape {input.shape}")


def _get(input, index):
    index = index if isinstance(index, tuple) else (index,)
    if index[0] is Ellipsis:
        index = (slice(None),) * (input.ndim - len(index) + 1) + index[1:]
    if isinstance(index[0], slice) and index[0] == slice(None):
        return _parts_of_all(input, index[1:])
    if not isinstance(index[0], int):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    part = input.unbind()[index[0]]
    return part[index[1:]] if index[1:] else part


def _parts_of_all(input, index):
    """The same elements of each component, by numbers and slices of the shared dimensions."""
    before = index[: input._ragged - 1]
    lengths = index[input._ragged - 1 : input._ragged]
    if not all(isinstance(one, int | slice) for one in index) or lengths not in (
        (),
        (slice(None),),
    ):
        raise RuntimeError(
            "slice(): not supported for NestedTensor on dim=0 and on ragged dim: index dimensions "
            "that all components share by numbers and slices"
        )
    dropped = [one for one in before if isinstance(one, int)]
    return like(values_of(input)[index], input, input._ragged - len(dropped))


def _set(input, index, value):
    component, *index = index if isinstance(index, tuple) else (index,)
    if not index and isinstance(component, slice) and component == slice(None):
        return copy_(input, value)
    if not isinstance(component, int):
        raise RuntimeError(
            "slice(): not supported for NestedTensor on dim=0: write into one component, x[0] = "
            "value, or into values()"
        )
    count = len(input)
    if not -count <= component < count:
        raise IndexError(f"index {component} is out of bounds for dimension 0 with size {count}")
    length = input._length
    start, extent = length.offsets[component % count], length.of(component % count)
    with torch_function.DisableTorchFunctionSubclass():
        input.narrow(input._ragged - 1, start, extent)[(*index, ...)] = value


def chunk(input, chunks, dim=0):
    dim = wrapped(dim, input)
    if dim:
        return along(Tensor.chunk, ["input", "chunks"], (input, chunks), {"dim": dim})
    offsets, size = input._length.offsets, -(-len(input) // chunks)
    parts = []
    for first in range(0, len(input), size):
        held = offsets[first : first + size + 1]
        values = values_of(input).narrow(input._ragged - 1, held[0], held[-1] - held[0])
        parts.append(nested(values, Length(one - held[0] for one in held), input._ragged))
    return tuple(parts)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    if weight is not None:
        raise NotImplementedError("l1_loss: nested tensors take no weight")
    differences = elementwise(ops.sub, (input, target), {}).abs()
    if size_average is not None or reduce is not None or reduction not in ("none", "sum", "mean"):
        raise ValueError(f"{reduction} is not a valid value for reduction: none, sum or mean")
    return differences if reduction == "none" else getattr(differences, reduction)()


def _extreme(name):
    """`max` or `min`: of all elements, along a dimension, or of two tensors."""

    def function(input, dim=None, keepdim=False, *, other=None):
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return elementwise(getattr(ops, f"{name}imum"), (input, other), {})
        return over_all(input, dim, keepdim)

    over_all = _over_all(name)
    return function


def _reflected(name):
    """An operator with the nested tensor at its right."""
    return lambda input, other: elementwise(getattr(ops, name), (other, input), {})


def _refused(words):
    def function(*args, **kwargs):
        raise RuntimeError(words)

    return function


def _equal(first, second):
    if not (isinstance(first, NestedTensor) and isinstance(second, NestedTensor)):
        return False
    is_same = first._length.offsets == second._length.offsets and first._ragged == second._ragged
    return is_same and values_of(first).equal(values_of(second))


def _method_of(name):
    def function(tensor, *args, **kwargs):
        with torch_function.DisableTorchFunctionSubclass():
            return getattr(Tensor, name)(tensor, *args, **kwargs)

    return function


def grad(outputs, inputs, *args, **kwargs):
    """`autograd.grad`: the gradient of a nested tensor is nested as it is."""
    asked = [*inputs] if isinstance(inputs, tuple | list) else [inputs]
    with torch_function.DisableTorchFunctionSubclass():
        gradients = autograd.grad(outputs, inputs, *args, **kwargs)
    pairs = zip(asked, gradients, strict=True)
    return tuple(
        like(gradient, tensor)
        if isinstance(tensor, NestedTensor) and gradient is not None
        else gradient
        for tensor, gradient in pairs
    )


def __format__(input, specification):
    return object.__format__(input, specification)


def requires_grad_(input, requires_grad=True):
    with torch_function.DisableTorchFunctionSubclass():
        Tensor.requires_grad_(input, requires_grad)
    return input


def copy_(input, src, non_blocking=False):
    common_model((input, src))
    with torch_function.DisableTorchFunctionSubclass():
        input.copy_(src)
    return input


def __deepcopy__(input, memo):
    with torch_function.DisableTorchFunctionSubclass(), no_grad():
        values = ops.clone(input)
    return as_leaf(like_leaf(values, input), input.requires_grad)


_FUNCTIONS = (
    *(unbind, to_padded_tensor, sum, mean, unsqueeze, embedding, transpose, permute),
    *(view, unflatten, flatten, cat, matmul, scaled_dot_product_attention, item, grad),
    *(requires_grad_, copy_, __format__, __deepcopy__, chunk, l1_loss),
    *(stack, expand, expand_as),
)
FUNCTIONS |= {function.__name__: function for function in _FUNCTIONS}
FUNCTIONS |= {
    "dropout": dropout_of(values_of, like),
    "native_dropout": native_dropout_of(values_of, like),
}
FUNCTIONS |= {"reshape": view, "bmm": matmul, "__matmul__": matmul}
FUNCTIONS |= {
    "equal": _equal,
    "__getitem__": _get,
    "__setitem__": _set,
    "is_same_size": is_same_size,
}
FUNCTIONS |= {name: _of_operands(name) for name in ("where", "masked_fill")}
FUNCTIONS |= {name: _filled(name) for name in ("zero_", "fill_")}
FUNCTIONS |= {
    name: _new(name, space)
    for space, names in {
        factories: ("zeros_like", "ones_like", "empty_like", "full_like"),
        random: ("rand_like", "randn_like"),
    }.items()
    for name in names
}
FUNCTIONS |= {name: _of_last(name) for name in ("linear", "layer_norm", "rms_norm")}
FUNCTIONS |= {name: _on_values(name) for name in ("detach", "clone", "contiguous")}
FUNCTIONS |= {name: _on_values(name) for name in ("to", "cpu", "cuda", *to_methods.CONVERSIONS)}
FUNCTIONS |= {name: _over_all(name) for name in ("any", "all")}
FUNCTIONS |= {name: _extreme(name) for name in ("max", "min")}
FUNCTIONS |= {"__rtruediv__": _reflected("div"), "__rpow__": _reflected("pow")}
FUNCTIONS |= {"__rmod__": _reflected("remainder"), "__rfloordiv__": _reflected("floor_divide")}
FUNCTIONS |= {name: _method_of(name) for name in ("backward", "numel", "is_contiguous", "data_ptr")}
FUNCTIONS |= {name: _method_of(name) for name in ("is_floating_point", "is_complex", "is_signed")}
FUNCTIONS |= {name: _method_of(name) for name in torch_function.OF_HANDLES}
FUNCTIONS["numpy"] = _refused(".numpy() is not supported for tensor subclasses.")
FUNCTIONS["tolist"] = _refused(".tolist() is not supported for tensor subclasses, got NestedTensor")
