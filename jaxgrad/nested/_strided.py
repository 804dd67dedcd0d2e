"""Nested tensors of the strided layout, whose components may differ in every extent.

A `StridedNestedTensor` is a handle on the memory of its components, an array of one dimension; its
`Places` say where in it they lie, so `transpose` and `select` are views. While no class overrides
functions, it is the tensor of its memory.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

import numpy as np

from .. import ops
from ..core import device as devices
from ..frontend.array_creation import finish
from ..frontend.tensor_data import tensor as new_tensor
from ..tape import torch_function
from ..tape.tensor import Tensor, name_of_node
from ._common import is_elementwise, is_in_place, unsupported, values_of, wrapped_dim
from ._places import Places

# by the names of PyTorch's; the package has them from its import on
FUNCTIONS: dict[str, Callable] = {}


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
    mT = property(lambda self: FUNCTIONS["transpose"](self, -1, -2))

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


def text_of(tensor: StridedNestedTensor) -> str:
    """The printed form of a nested tensor."""
    parts = [part.requires_grad_(tensor.requires_grad) for part in unbind(tensor.detach())]
    text = ",\n".join(f"  {part!r}".replace("\n", "\n  ") for part in parts)
    node = name_of_node(tensor)
    history = f", grad_fn=<{node}>" if node else ""
    history = history or (", requires_grad=True" if tensor.requires_grad else "")
    return f"nested_tensor([\n{text}\n]{history})"


def is_nested(value):
    return isinstance(value, StridedNestedTensor)


def fills_memory(tensor):
    return tensor._places.is_packed and tensor.numel() == values_of(tensor).numel()


def packed(tensor: StridedNestedTensor) -> Tensor:
    """The elements of all components, one component behind the other."""
    if fills_memory(tensor):
        return values_of(tensor)
    return values_of(joined(unbind(tensor)))


def unbind(input, dim=0):
    if wrapped_dim(dim, input.ndim):
        raise RuntimeError(
            "NestedTensor can only be unbound along dimension 0 got dimension "
            f"{wrapped_dim(dim, input.ndim)} instead."
        )
    values, places = values_of(input), input._places
    if fills_memory(input):
        parts = ops.split(values, [*map(math.prod, places.sizes)]) if places.sizes else ()
        return tuple(part.view(size) for part, size in zip(parts, places.sizes, strict=True))
    start = values.storage_offset()
    return tuple(
        ops.as_strided(values, size, stride, start + offset)
        for size, stride, offset in zip(*places, strict=True)
    )


def call(function, args, kwargs):
    """The result of a function with nested tensors among its arguments."""
    name = function.__name__
    if name in FUNCTIONS:
        return FUNCTIONS[name](*args, **kwargs)
    if is_in_place(name):
        return FUNCTIONS["copy_"](args[0], getattr(Tensor, name[:-1])(*args, **kwargs))
    if is_elementwise(function):
        return elementwise(function, args, kwargs)
    names = [*inspect.signature(function).parameters]
    if "dim" in names and isinstance(args[0], StridedNestedTensor):
        return _along(function, names, args, kwargs)
    raise unsupported(name)


def elementwise(function, args, kwargs):
    nested = [value for value in (*args, *kwargs.values()) if is_nested(value)]
    sizes = nested[0]._places.sizes
    if any(other._places.sizes != sizes for other in nested):
        raise RuntimeError(
            f"{function.__name__} does not support broadcasting when given a NestedTensor"
        )
    args = [_operand(value, sizes) for value in args]
    kwargs = {name: _operand(value, sizes) for name, value in kwargs.items()}
    return strided(function(*args, **kwargs), Places.packed(sizes))


def _operand(value, sizes):
    """An operand of an elementwise operator, beside the elements of all components."""
    if is_nested(value):
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


def _along(function, names, args, kwargs):
    """A function along a dimension of the components."""
    tensor, options = args[0], dict(zip(names[1:], args[1:], strict=False)) | kwargs
    dim = options.get("dim")
    if dim is None:
        raise NotImplementedError(f"{function.__name__} over all dimensions of a nested tensor")
    dims = [of_component(one, tensor, function.__name__) for one in np.atleast_1d(dim).tolist()]
    options["dim"] = dims[0] if isinstance(dim, int) else dims
    results = [function(part, **options) for part in unbind(tensor)]
    if isinstance(results[0], Tensor):
        return joined(results)
    columns = [joined(column) for column in zip(*results, strict=True)]
    kind = type(results[0])
    return kind(*columns) if hasattr(kind, "_fields") else kind(columns)


def of_component(dim, tensor, name):
    """A dimension counted as in the components."""
    if not (dim := wrapped_dim(dim, tensor.ndim)):
        raise RuntimeError(f"{name}(): Cannot apply {name} across nested dimension 0")
    return dim - 1


def to_padded_tensor(input, padding, output_size=None):
    if not is_nested(input):
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


def as_leaf(tensor: StridedNestedTensor, requires_grad: bool) -> StridedNestedTensor:
    with torch_function.DisableTorchFunctionSubclass():
        values = packed(tensor).detach().requires_grad_(requires_grad)
    return strided(values, packed_places(tensor))


def packed_places(input):
    return Places.packed(input._places.sizes)
