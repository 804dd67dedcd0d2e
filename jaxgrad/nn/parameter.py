"""Parameters and buffers: tensors that a module takes for its own.

They are plain tensors, which operators take fastest, with a mark in what few tensors have, by which
`isinstance(tensor, Parameter)` knows them.
"""

from __future__ import annotations

from ..frontend import factories
from ..tape.tensor import Tensor, leaf_state

NOT_DIFFERENTIABLE = "Only Tensors of floating point and complex dtype can require gradients"


class _Marked(type(Tensor)):
    """The class of tensors that have its mark."""

    def __instancecheck__(cls, instance):
        if type(instance) is not Tensor:
            return type.__instancecheck__(cls, instance)
        kind = getattr(instance._leaf, "kind", None)
        return kind is not None and issubclass(kind, cls)


def kind_of(tensor: Tensor) -> type | None:
    """The class that a tensor is taken for: `Parameter`, `Buffer`, one of theirs, or None."""
    return getattr(tensor._leaf, "kind", None)


def marked(tensor: Tensor, kind: type, requires_grad: bool) -> Tensor:
    """The tensor itself, which nobody else holds, as a parameter or buffer."""
    if requires_grad and not tensor._aval.differentiable:
        raise RuntimeError(f"{NOT_DIFFERENTIABLE}: this one is of {tensor.dtype}")
    leaf_state(tensor).kind = kind
    return tensor.requires_grad_(requires_grad)


def sharing(data: Tensor | None, kind: type, requires_grad: bool) -> Tensor:
    """A tensor without history in the memory of `data`, as a parameter or buffer."""
    if data is None:
        return marked(factories.empty(0), kind, requires_grad)
    if not isinstance(data, Tensor):
        name = type(data).__name__
        raise TypeError(f"{kind.__name__} data has to be a tensor, but got {name}")
    if not data._aval.differentiable and requires_grad:
        raise RuntimeError(f"{NOT_DIFFERENTIABLE}: this one is of {data.dtype}")
    return marked(data.detach(), kind, requires_grad)


class Parameter(Tensor, metaclass=_Marked):
    """A tensor that a module it is assigned to lists among its `parameters()`.

    data: a tensor whose memory it shares, an empty one by default. Raises RuntimeError for integers
    that are to require grad. Operators treat it as any other tensor: its class is `Tensor`, and
    `isinstance(tensor, Parameter)` tells it apart.

    >>> weight = jaxgrad.nn.Parameter(jaxgrad.ones(2))
    >>> weight
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(weight, jaxgrad.nn.Parameter), isinstance(weight * 2, jaxgrad.nn.Parameter)
    (True, False)
    """

    __slots__ = ()

    # what `repr` of such a tensor begins with, and whether a deep copy has its `.grad`
    heading, copies_gradient = "Parameter containing:\n", False

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        return sharing(data, cls, requires_grad)


class Buffer(Tensor, metaclass=_Marked):
    """A tensor that a module it is assigned to lists among its `buffers()`, and, if `persistent`,
    in its `state_dict()`. It is a plain tensor, as a parameter is.

    >>> module = jaxgrad.nn.Module()
    >>> module.count = jaxgrad.nn.Buffer(jaxgrad.zeros(1))
    >>> dict(module.state_dict())
    {'count': tensor([0.])}
    """

    __slots__ = ()

    heading, copies_gradient = "", True

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        requires_grad = data is not None and data.requires_grad
        return sharing(data, Buffer if persistent else TransientBuffer, requires_grad)


class TransientBuffer(Buffer):
    """A buffer that is no part of a module's state."""

    __slots__ = ()
