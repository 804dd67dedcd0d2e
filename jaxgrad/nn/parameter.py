"""Parameters and buffers: tensors that belong to a module.

They are plain tensors, because operators dispatch on those fastest. A mark in their leaf state
makes `isinstance(tensor, Parameter)` true.
"""

from __future__ import annotations

from ..frontend import factories
from ..tape.tensor import Tensor, leaf_state

NOT_DIFFERENTIABLE = "Only Tensors of floating point and complex dtype can require gradients"


class _ParameterMeta(type(Tensor)):
    """The metaclass whose `isinstance` checks the mark."""

    def __instancecheck__(cls, instance):
        if type(instance) is not Tensor:
            return type.__instancecheck__(cls, instance)
        kind = getattr(instance._leaf, "kind", None)
        return kind is not None and issubclass(kind, cls)


def kind_of(tensor: Tensor) -> type | None:
    """Return the class that a tensor is marked with: `Parameter`, `Buffer`, a subclass, or None."""
    return getattr(tensor._leaf, "kind", None)


def mark(tensor: Tensor, kind: type, requires_grad: bool) -> Tensor:
    """Mark a tensor that has no other references as a parameter or buffer, and return it."""
    if requires_grad and not tensor._aval.differentiable:
        raise RuntimeError(f"{NOT_DIFFERENTIABLE}: got {tensor.dtype}")
    leaf_state(tensor).kind = kind
    return tensor.requires_grad_(requires_grad)


def from_data(data: Tensor | None, kind: type, requires_grad: bool) -> Tensor:
    """Return a marked leaf that shares the storage of `data`."""
    if data is None:
        return mark(factories.empty(0), kind, requires_grad)
    if not isinstance(data, Tensor):
        name = type(data).__name__
        raise TypeError(f"{kind.__name__} data has to be a tensor, but got {name}")
    if not data._aval.differentiable and requires_grad:
        raise RuntimeError(f"{NOT_DIFFERENTIABLE}: got {data.dtype}")
    return mark(data.detach(), kind, requires_grad)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes a parameter of the module to whose attribute it is assigned.

    data: the tensor whose storage it shares, an empty one by default; any shape, a floating-point
    or complex dtype. Its type is `Tensor`; `isinstance(tensor, Parameter)` tells it apart. Raises
    RuntimeError for another dtype with `requires_grad`, TypeError if `data` is no tensor.

    >>> weight = jaxgrad.nn.Parameter(jaxgrad.ones(2))
    >>> weight
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(weight, jaxgrad.nn.Parameter), isinstance(weight * 2, jaxgrad.nn.Parameter)
    (True, False)
    """

    __slots__ = ()

    # The start of `repr`, and whether a deep copy copies `.grad`.
    heading, copies_gradient = "Parameter containing:\n", False

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        return from_data(data, cls, requires_grad)


class Buffer(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes a buffer of the module to whose attribute it is assigned.

    data: the tensor whose storage it shares, of any shape and dtype. persistent: part of
    `state_dict()`. Raises TypeError if `data` is no tensor.

    >>> module = jaxgrad.nn.Module()
    >>> module.count = jaxgrad.nn.Buffer(jaxgrad.zeros(1))
    >>> dict(module.state_dict())
    {'count': tensor([0.])}
    """

    __slots__ = ()

    heading, copies_gradient = "", True

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        requires_grad = data is not None and data.requires_grad
        return from_data(data, Buffer if persistent else TransientBuffer, requires_grad)


class TransientBuffer(Buffer):
    """A buffer that is not part of `state_dict()`."""

    __slots__ = ()
