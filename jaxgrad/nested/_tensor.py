"""Nested tensors of the jagged layout, whose components differ in one extent.

A `NestedTensor` is a handle on its values: the components joined along their dimension of different
lengths. The array, the node and the `.grad` are those of the values, so the tape handles it as any
tensor. Its class overrides all functions; while no class overrides functions, it is the tensor of
its values.

An elementwise operator, and one along a dimension that all components share, computes on the joined
components, with its dimensions counted as there. A function of this module takes the place of the
one of its name, `sum` of `torch.sum`; every other function raises.
"""

from __future__ import annotations

import inspect
import math
import sys

import numpy as np

from .. import autograd, ops
from ..autograd.grad_mode import no_grad
from ..core import device as devices
from ..core.aval import Size
from ..frontend import factories, random
from ..frontend import to as to_methods
from ..frontend.array_creation import finish
from ..frontend.tensor_data import tensor as new_tensor
from ..tape import torch_function
from ..tape.tensor import Tensor, abstract_value, name_of_node
from ._common import (
    functional,
    is_elementwise,
    is_in_place,
    padded_attention,
    unsupported,
    values_of,
    wrapped_dim,
)
from ._length import Length


class NestedTensor(Tensor):
    """A tensor of components that have different extents in one dimension; `nested_tensor` makes
    it.

    >>> x = jaxgrad.nested.nested_tensor([jaxgrad.ones(2), jaxgrad.ones(3)], layout=jaxgrad.jagged)
    >>> x.sum(1)
    tensor([2., 3.])
    """

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return call(func, args, kwargs or {})

    @property
    def shape(self):
        packed = abstract_value(self).shape
        if not torch_function.classes_override.get():
            return packed
        extents = list(packed)
        extents[self._ragged - 1] = self._length
        return _Shape((len(self._length.lengths), *extents))

    @property
    def ndim(self):
        return abstract_value(self).ndim + torch_function.classes_override.get()

    @property
    def grad(self):
        gradient = Tensor.grad.fget(self)
        if gradient is None or isinstance(gradient, NestedTensor):
            return gradient
        return nested(gradient, self._length, self._ragged)

    @grad.setter
    def grad(self, gradient):
        with torch_function.DisableTorchFunctionSubclass():
            Tensor.grad.fset(self, gradient)

    is_nested = property(lambda self: True)
    layout = property(lambda self: devices.jagged)

    def dim(self) -> int:
        return self.ndim

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def __len__(self):
        return len(self._length.lengths)

    def __repr__(self):
        return text_of(self)

    def offsets(self) -> Tensor:
        """Where the components begin and end in `values`, int64 of shape (components + 1,)."""
        return finish(np.array(self._length.offsets, "int64"))

    def lengths(self):
        """None: the components lie one behind the other."""

    def values(self) -> Tensor:
        """The components, joined along their dimension of different lengths."""
        return values_of(self)

    def to_padded_tensor(self, padding, output_size=None) -> Tensor:
        """The components in a tensor of one shape, filled with `padding`."""
        return to_padded_tensor(self, padding, output_size)

    def padding_mask(self) -> Tensor:
        """Where the padded components have no elements: (components, length)."""
        lengths = np.array(self._length.lengths)
        return new_tensor(np.arange(self._length.largest) >= lengths[:, None])

    def from_padded(self, padded: Tensor) -> NestedTensor:
        """The nested tensor of the elements of a padded one that this tensor has too."""
        return from_padded(padded, self._length, self._ragged)


class _Shape(Size):
    """The shape of a nested tensor, in which one extent is a `Length`."""

    __slots__ = ()

    def numel(self):
        length = next(extent for extent in self if isinstance(extent, Length))
        others = [extent for extent in self[1:] if extent is not length]
        return length.offsets[-1] * math.prod(others)


def nested(values: Tensor, length: Length, ragged: int) -> NestedTensor:
    """A nested tensor that takes the place of its values, a tensor without other references.

    ragged: the dimension of different lengths, counted with that of the components.
    """
    torch_function.activate()
    values.__class__ = NestedTensor
    values._length, values._ragged = length, ragged
    return values


def call(function, args, kwargs):
    """The result of a function with nested tensors among its arguments."""
    name = function.__name__
    special = _SPECIAL.get(name)
    if special is not None:
        return special(*args, **kwargs)
    if is_in_place(name):
        return _written(getattr(Tensor, name[:-1]), args, kwargs)
    if is_elementwise(function):
        return _elementwise(function, args, kwargs)
    names = [*inspect.signature(function).parameters]
    if "dim" in names and isinstance(args[0], NestedTensor):
        return _along(function, names, args, kwargs)
    raise unsupported(name)


def _like(values, tensor, ragged=None):
    with torch_function.DisableTorchFunctionSubclass():
        values = values if type(values) is Tensor else ops.alias(values)
    return nested(values, tensor._length, ragged or tensor._ragged)


def as_leaf(tensor: NestedTensor, requires_grad: bool) -> NestedTensor:
    with torch_function.DisableTorchFunctionSubclass():
        values = tensor.detach().requires_grad_(requires_grad)
    return _like_leaf(values, tensor)


def _like_leaf(values, tensor):
    return nested(values, tensor._length, tensor._ragged)


def text_of(tensor: NestedTensor) -> str:
    """The printed form of a nested tensor."""
    shape = ", ".join(map(str, tensor.shape))
    node = name_of_node(tensor)
    history = f", grad_fn=<{node}>" if node else ""
    history = history or (", requires_grad=True" if tensor.requires_grad else "")
    return (
        f"NestedTensor(size=({shape}), offsets={tensor.offsets()!r}{history}, "
        f"contiguous={tensor._ragged == 1})"
    )


# ---- operators on the joined components


def _model(args):
    """The nested tensor among the operands; all must have the same lengths."""
    tensors = [value for value in args if isinstance(value, NestedTensor)]
    first = tensors[0]
    for other in tensors[1:]:
        same = other._length.offsets == first._length.offsets and other._ragged == first._ragged
        if not same:
            raise RuntimeError(
                f"cannot call binary pointwise function with inputs of shapes {first.shape} and "
                f"{other.shape}: the components have different lengths"
            )
    return first


def _elementwise(function, args, kwargs):
    model = _model((*args, *kwargs.values()))
    args = [_operand(value, model) for value in args]
    kwargs = {name: _operand(value, model) for name, value in kwargs.items()}
    with torch_function.DisableTorchFunctionSubclass():
        result = function(*args, **kwargs)
    return _like(result, model)


def _operand(value, model):
    """An operand of an elementwise operator beside the joined components of `model`."""
    if isinstance(value, NestedTensor):
        return values_of(value)
    if not isinstance(value, Tensor) or value.ndim < model.ndim - model._ragged:
        return value
    is_one = _extent_at(value, model) == 1
    if is_one and value.ndim == model.ndim and value.shape[0] == len(model):
        rows = ops.index_select(value, 0, new_tensor(model._length.component_of()))
        # the rows take the place of the elements of one length
        return ops.movedim(rows.squeeze(model._ragged), 0, model._ragged - 1)
    is_padded = _extent_at(value, model) == model._length.largest
    if is_padded and value.ndim == model.ndim and value.shape[0] == len(model):
        return values_of(from_padded(value, model._length, model._ragged))
    if value.ndim == model.ndim and value.shape[0] == 1:
        value = value.squeeze(0)
    if is_one and value.ndim < model.ndim:
        return value
    raise RuntimeError(
        f"cannot broadcast a tensor of shape {list(value.shape)} with a nested tensor of shape "
        f"{model.shape}: its extent must be 1 where that of the components differs"
    )


def _extent_at(value, model):
    """The extent of a dense operand in the dimension of different lengths."""
    place = value.ndim - (model.ndim - model._ragged)
    return value.shape[place] if place >= 0 else 1


def _written(function, args, kwargs):
    """The first argument, with the result of a function written into its memory."""
    target, result = args[0], function(*args, **kwargs)
    with torch_function.DisableTorchFunctionSubclass():
        target.copy_(result)
    return target


def _along(function, names, args, kwargs):
    """A function along dimensions that all components share."""
    model, bound = args[0], dict(zip(names, args, strict=False)) | kwargs
    dim = bound.get("dim")
    if dim is None:
        raise NotImplementedError(f"{function.__name__} over all dimensions of a nested tensor")
    dims = [dim] if isinstance(dim, int) else [*dim]
    dims = [_wrapped(one, model) for one in dims]
    if 0 in dims:
        raise RuntimeError(
            f"{function.__name__}(): not supported when reducing across the batch dimension for "
            "NestedTensor"
        )
    if model._ragged in dims:
        return _over_lengths(function, model, dims, bound)
    inner = [one - 1 for one in dims]
    bound["dim"] = inner[0] if isinstance(dim, int) else inner
    bound.pop(names[0])
    with torch_function.DisableTorchFunctionSubclass():
        values = values_of(model)
        result = function(values, **bound)
        places = function(_marked(values, model), **bound)
    return _joined(result, places, model)


def _wrapped(dim, model):
    return wrapped_dim(dim, model.ndim)


_MARK = 100_003  # an extent that no shared dimension of the marked tensor has


def _marked(values, model):
    """A tensor without data that shows by an extent of its own where the lengths are."""
    shape = [*values.shape]
    shape[model._ragged - 1] = _MARK
    return values.new_empty(shape, device="meta")


def _joined(result, places, model):
    """Results on joined components as nested tensors, which have their lengths where `places` has
    the marked extent.
    """
    if isinstance(result, tuple | list):
        parts = [_joined(part, place, model) for part, place in zip(result, places, strict=True)]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return _like(result, model, [*places.shape].index(_MARK) + 1)


def _over_lengths(function, model, dims, bound):
    """A function along the dimension of different lengths, of one component after the other."""
    if len(dims) > 1:
        raise RuntimeError(
            f"{function.__name__}(): reducing along a ragged and non-batch dimension is not "
            "supported for nested tensors"
        )
    options = {name: value for name, value in bound.items() if value is not model} | {
        "dim": dims[0] - 1
    }
    components = model.unbind()
    parts = [function(part, **options) for part in components]
    places = function(_marked(components[0], model), **options)
    if isinstance(places, Tensor):
        return _together(parts, places, model)
    columns = [
        _together(column, place, model)
        for column, place in zip(zip(*parts, strict=True), places, strict=True)
    ]
    return type(places)(*columns) if hasattr(places, "_fields") else type(places)(columns)


def _together(parts, place, model):
    """Results of components: nested if `place` has kept the marked extent, else in one tensor."""
    if _MARK in place.shape:
        dim = [*place.shape].index(_MARK)
        return nested(ops.cat(parts, dim), model._length, dim + 1)
    return ops.stack(list(parts))


# ---- functions of their own, by the names of PyTorch's


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
        return _like(result, input)

    return function


def unbind(input, dim=0):
    if _wrapped(dim, input):
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(ops.split(values_of(input), input._length.lengths, input._ragged - 1))


def to_padded_tensor(input, padding, output_size=None):
    if not isinstance(input, NestedTensor):
        raise RuntimeError("to_padded_tensor: the input must be a nested tensor")
    values, length, dim = values_of(input), input._length, input._ragged - 1
    extent = length.largest if output_size is None else output_size[dim + 1]
    rows = max(extent, length.largest)
    front = ops.movedim(values, dim, 0)
    padded = front.new_full((len(input) * rows, *front.shape[1:]), padding)
    places = length.component_of() * rows + length.steps()
    padded = padded.index_copy(0, new_tensor(places), front)
    padded = padded.view(len(input), rows, *front.shape[1:]).narrow(1, 0, extent)
    return ops.movedim(padded, 1, dim + 1)


def from_padded(padded, length, ragged):
    """The nested tensor of the elements of a padded tensor that have these lengths."""
    front = ops.movedim(padded, ragged, 1)
    flat = front.reshape(-1, *front.shape[2:])
    places = length.component_of() * front.shape[1] + length.steps()
    values = ops.index_select(flat, 0, new_tensor(places))
    return nested(ops.movedim(values, 0, ragged - 1), length, ragged)


def sum(input, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        return ops.sum(values_of(input), dtype=dtype)
    options = {"dim": dim, "keepdim": keepdim, "dtype": dtype}
    return _along(Tensor.sum, ["input"], (input,), options)


def mean(input, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        return ops.mean(values_of(input), dtype=dtype)
    options = {"dim": dim, "keepdim": keepdim, "dtype": dtype}
    return _along(Tensor.mean, ["input"], (input,), options)


def _over_all(name):
    def function(input, dim=None, keepdim=False):
        if dim is None:
            return getattr(ops, name)(values_of(input))
        return _along(getattr(Tensor, name), ["input"], (input,), {"dim": dim, "keepdim": keepdim})

    return function


def unsqueeze(input, dim):
    dim = dim % (input.ndim + 1)
    if not dim:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    ragged = input._ragged + (dim <= input._ragged)
    return _like(ops.unsqueeze(values_of(input), dim - 1), input, ragged)


def embedding(input, weight, *args, **kwargs):
    return _like(functional.embedding(values_of(input), weight, *args, **kwargs), input)


def dropout(input, p=0.5, training=True, inplace=False):
    return _like(functional.dropout(values_of(input), p, training), input)


def _of_operands(name):
    """An elementwise function that is no elementwise operator of the table."""
    return lambda *args, **kwargs: _elementwise(getattr(ops, name), args, kwargs)


def _new(name, space):
    """A factory of the shape of a nested tensor."""

    def function(input, *args, **kwargs):
        return _like_leaf(getattr(space, name)(values_of(input), *args, **kwargs), input)

    return function


def _filled(name):
    def function(input, *args):
        with torch_function.DisableTorchFunctionSubclass():
            getattr(Tensor, name)(input, *args)
        return input

    return function


def transpose(input, dim0, dim1):
    dims = _wrapped(dim0, input), _wrapped(dim1, input)
    if 0 in dims:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    moved = dict(zip(dims, reversed(dims), strict=True))
    values = ops.transpose(values_of(input), *(dim - 1 for dim in dims))
    return _like(values, input, moved.get(input._ragged, input._ragged))


def permute(input, *dims):
    dims = dims[0] if isinstance(dims[0], tuple | list) else dims
    dims = [_wrapped(dim, input) for dim in dims]
    if dims[0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = ops.permute(values_of(input), [dim - 1 for dim in dims[1:]])
    return _like(values, input, dims.index(input._ragged))


def view(input, *shape):
    shape = list(shape[0] if isinstance(shape[0], tuple | list) else shape)
    places = [place for place, extent in enumerate(shape) if isinstance(extent, Length)]
    if not places and -1 in shape:
        places = [shape.index(-1)]
    if not places or shape[0] != len(input) or places[0] == 0:
        raise RuntimeError(f"view(): cannot view shape {input.shape} as {shape}")
    packed = shape[1:]
    packed[places[0] - 1] = input._length.offsets[-1]
    return _like(values_of(input).reshape(packed), input, places[0])


def unflatten(input, dim, sizes):
    dim = _wrapped(dim, input)
    if dim in (0, input._ragged):
        raise RuntimeError("unflatten(): not supported for NestedTensor on this dim")
    ragged = input._ragged + (len(sizes) - 1 if dim < input._ragged else 0)
    return _like(ops.unflatten(values_of(input), dim - 1, sizes), input, ragged)


def flatten(input, start_dim=0, end_dim=-1):
    start, end = _wrapped(start_dim, input), _wrapped(end_dim, input)
    if not start or start <= input._ragged <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    ragged = input._ragged - (end - start if end < input._ragged else 0)
    return _like(values_of(input).flatten(start - 1, end - 1), input, ragged)


def cat(tensors, dim=0):
    model, dim = _model(tensors), _wrapped(dim, tensors[0])
    if dim in (0, model._ragged):
        raise RuntimeError("cat(): not supported for NestedTensor on this dim")
    return _like(ops.cat([values_of(tensor) for tensor in tensors], dim - 1), model)


def matmul(input, other):
    if isinstance(input, NestedTensor) and not isinstance(other, NestedTensor):
        if other.ndim == 2 and input._ragged < input.ndim - 1:
            return _like(ops.matmul(values_of(input), other), input)
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
    if not isinstance(index[0], int):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    part = input.unbind()[index[0]]
    return part[index[1:]] if index[1:] else part


def _refused(words):
    def function(*args, **kwargs):
        raise RuntimeError(words)

    return function


def _equal(first, second):
    is_same = first._length.offsets == second._length.offsets and first._ragged == second._ragged
    return is_same and ops.equal(values_of(first), values_of(second))


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
        _like(gradient, tensor)
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
    _model((input, src))
    with torch_function.DisableTorchFunctionSubclass():
        input.copy_(src)
    return input


def __deepcopy__(input, memo):
    with torch_function.DisableTorchFunctionSubclass(), no_grad():
        values = ops.clone(input)
    return as_leaf(_like_leaf(values, input), input.requires_grad)


where, masked_fill = map(_of_operands, ("where", "masked_fill"))
zero_, fill_ = map(_filled, ("zero_", "fill_"))
zeros_like, ones_like = (_new(name, factories) for name in ("zeros_like", "ones_like"))
empty_like, full_like = (_new(name, factories) for name in ("empty_like", "full_like"))
rand_like, randn_like = (_new(name, random) for name in ("rand_like", "randn_like"))
detach, clone, to = map(_on_values, ("detach", "clone", "to"))
linear, layer_norm, rms_norm = map(_of_last, ("linear", "layer_norm", "rms_norm"))
reshape, bmm, equal, __matmul__, __getitem__ = view, matmul, _equal, matmul, _get
numpy = _refused(".numpy() is not supported for tensor subclasses.")
tolist = _refused(".tolist() is not supported for tensor subclasses, got NestedTensor")

_SPECIAL = {
    name: function
    for name, function in vars(sys.modules[__name__]).items()
    if getattr(function, "__module__", None) == __name__
    and (not name.startswith("_") or name.startswith("__"))
    and name not in ("call", "as_leaf", "text_of", "nested", "from_padded")
    and not isinstance(function, type)
}
_SPECIAL |= {name: _on_values(name) for name in (*to_methods.CONVERSIONS, "cpu", "contiguous")}
_SPECIAL |= {name: _over_all(name) for name in ("any", "all")}
_SPECIAL |= {name: _method_of(name) for name in ("backward", "numel", "is_contiguous", "data_ptr")}
