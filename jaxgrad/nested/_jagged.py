"""Nested tensors of the jagged layout, whose components differ in one extent.

A `NestedTensor` is a handle on its values: the components joined along their dimension of different
lengths. The array, the node and the `.grad` are those of the values, so the tape handles it as any
tensor. Its class overrides all functions; while no class overrides functions, it is the tensor of
its values.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

import numpy as np

from .. import ops
from ..core import device as devices
from ..core.aval import Size
from ..frontend.array_creation import finish
from ..frontend.tensor_data import tensor as new_tensor
from ..tape import torch_function
from ..tape.tensor import Tensor, abstract_value, name_of_node
from ._common import is_elementwise, is_in_place, unsupported, values_of, wrapped_dim
from ._length import Length

# by the names of PyTorch's; the package has them from its import on
FUNCTIONS: dict[str, Callable] = {}


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

    def stride(self, dim=None):
        """The strides in elements. The first is a `Length`: components differ in their sizes."""
        strides = Tensor.stride(self)
        if torch_function.classes_override.get():
            step, first = strides[self._ragged - 1], self._length
            if step != 1:
                first = Length(offset * step for offset in first.offsets)
            strides = (first, *strides)
        return strides if dim is None else strides[wrapped(dim, self)]

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

    def __new__(cls, extents):
        return tuple.__new__(cls, extents)

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


def like(values, tensor, ragged=None):
    with torch_function.DisableTorchFunctionSubclass():
        values = values if type(values) is Tensor else ops.alias(values)
    return nested(values, tensor._length, ragged or tensor._ragged)


def as_leaf(tensor: NestedTensor, requires_grad: bool) -> NestedTensor:
    with torch_function.DisableTorchFunctionSubclass():
        values = tensor.detach().requires_grad_(requires_grad)
    return like_leaf(values, tensor)


def like_leaf(values, tensor):
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


def call(function, args, kwargs):
    """The result of a function with nested tensors among its arguments."""
    name = function.__name__
    special = FUNCTIONS.get(name)
    if special is not None:
        return special(*args, **kwargs)
    if is_in_place(name):
        return _written(getattr(Tensor, name[:-1]), args, kwargs)
    if is_elementwise(function):
        return elementwise(function, args, kwargs)
    names = [*inspect.signature(function).parameters]
    if "dim" in names and isinstance(args[0], NestedTensor):
        return along(function, names, args, kwargs)
    raise unsupported(name)


def common_model(args):
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


def elementwise(function, args, kwargs):
    model = common_model((*args, *kwargs.values()))
    args = [_operand(value, model) for value in args]
    kwargs = {name: _operand(value, model) for name, value in kwargs.items()}
    with torch_function.DisableTorchFunctionSubclass():
        result = function(*args, **kwargs)
    return like(result, model)


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


def along(function, names, args, kwargs):
    """A function along dimensions that all components share."""
    model, bound = args[0], dict(zip(names, args, strict=False)) | kwargs
    dim = bound.get("dim")
    if dim is None:
        raise NotImplementedError(f"{function.__name__} over all dimensions of a nested tensor")
    dims = [dim] if isinstance(dim, int) else [*dim]
    dims = [wrapped(one, model) for one in dims]
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


_MARK = 100_003  # an extent that no shared dimension of the marked tensor has


def wrapped(dim, model):
    return wrapped_dim(dim, model.ndim)


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
    return like(result, model, [*places.shape].index(_MARK) + 1)


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
