"""Parameters and buffers: tensors that belong to a module.

A mark in the leaf state makes `isinstance(tensor, Parameter)` true, as for a parameter of a user's
subclass of `Tensor`, which keeps its class. Buffers are of the type `Tensor`, as in PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.aval import Size
from ..core.device import DeviceLike, device
from ..core.pytorch_tensors import type_name
from ..frontend import factories
from ..names.missing import missing_in
from ..tape import pytree
from ..tape.noted_reads import noted_read
from ..tape.tensor import PLAIN_TENSORS, Tensor, kind_of, leaf_state, may_require_grad
from ..tape.torch_function import disabled

NOT_DIFFERENTIABLE = "Only Tensors of floating point and complex dtype can require gradients"


class _ParameterMeta(type(Tensor)):
    """The metaclass whose `isinstance` checks the mark."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        if not isinstance(instance, Tensor):
            return False
        kind = noted_read(instance, kind_of)
        if kind is not None and issubclass(kind, cls):
            return True
        return cls is Parameter and getattr(instance, "_is_param", False) is True


def mark(tensor: Tensor, kind: type, requires_grad: bool) -> Tensor:
    """Mark a tensor that has no other references as a parameter or buffer, and return it."""
    if requires_grad and not may_require_grad(tensor):
        raise RuntimeError(f"{NOT_DIFFERENTIABLE}: got {tensor.dtype}")
    _set_kind(tensor, kind)
    return tensor.requires_grad_(requires_grad)


def _set_kind(tensor: Tensor, kind: type):
    leaf_state(tensor).kind = kind
    if kind is Parameter and type(tensor) is Tensor:
        tensor.__class__ = Parameter


def from_data(data: Tensor | None, kind: type, requires_grad: bool) -> Tensor:
    """Return a marked leaf that shares the storage of `data`."""
    if data is None:
        return _as_instance(mark(factories.empty(0), kind, requires_grad), kind)
    if not isinstance(data, Tensor):
        raise TypeError(f"{kind.__name__} data has to be a tensor, but got {type_name(data)}")
    if not may_require_grad(data) and requires_grad:
        raise RuntimeError(f"{NOT_DIFFERENTIABLE}: got {data.dtype}")
    return _as_instance(mark(data.detach(), kind, requires_grad), kind)


def _as_instance(tensor: Tensor, kind: type) -> Tensor:
    """A new parameter or buffer as an instance of a user's subclass, which may have methods."""
    if kind.__module__.partition(".")[0] != "jaxgrad":
        tensor.__class__ = kind
    elif kind is Parameter and type(tensor) is not Parameter:
        tensor._is_param = True  # PyTorch's attribute of one that keeps its class
    return tensor


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes a parameter of the module to whose attribute it is assigned.

    data: the tensor whose storage it shares, an empty one by default; any shape, a floating-point
    or complex dtype. Raises RuntimeError for another dtype with `requires_grad`, TypeError if
    `data` is no tensor.

    >>> weight = jaxgrad.nn.Parameter(jaxgrad.ones(2))
    >>> weight
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(weight, jaxgrad.nn.Parameter), isinstance(weight * 2, jaxgrad.nn.Parameter)
    (True, False)
    """

    __slots__ = ()
    __torch_function__ = disabled

    # The start of `repr`, and whether a deep copy copies `.grad`.
    heading, copies_gradient = "Parameter containing:\n", False

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        return from_data(data, cls, requires_grad)


PLAIN_TENSORS.add(Parameter)
pytree.register_subclass(Parameter, lambda tensor: _set_kind(tensor, Parameter))


def new_parameter(
    shape: Sequence[int],
    device: DeviceLike | None = None,
    dtype: dtypes.dtype | None = None,
    value: float | None = None,
) -> Tensor:
    """Return a new parameter: filled with `value`, or uninitialized."""
    options = {"device": device, "dtype": dtype}
    if value is None:
        return mark(factories.empty(shape, **options), Parameter, True)
    if dtype is None:
        options["dtype"] = dtypes.get_default_dtype()
    return mark(factories.full(shape, float(value), **options), Parameter, True)


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
    __torch_function__ = disabled

    heading, copies_gradient = "", True

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        requires_grad = data is not None and data.requires_grad
        buffer = from_data(data, Buffer, requires_grad)
        # PyTorch's attributes, which files keep
        buffer.persistent, buffer._is_buffer = persistent, True
        mark_buffer(buffer)
        return buffer


class TransientBuffer(Buffer):
    """A buffer that is not part of `state_dict()`."""

    __slots__ = ()


def mark_buffer(tensor: Tensor):
    """Mark a tensor that has the attributes of a buffer as one."""
    _set_kind(tensor, Buffer if getattr(tensor, "persistent", True) else TransientBuffer)


class _Uninitialized:
    """A tensor of unknown shape. Its type becomes `Tensor` when it gets a shape, so that what
    refers to it, such as an optimizer, goes on with the tensor.
    """

    __slots__ = ()

    @property
    def _aval(self):
        # operators and methods read it first
        raise ValueError(self._unknown())

    def _unknown(self):
        return (
            f"Attempted to use an uninitialized parameter: this {type(self).__name__} has no shape "
            "yet. Call the lazy module with a dummy batch first"
        )

    @property
    def shape(self) -> Size:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    @property
    def dtype(self) -> dtypes.dtype:
        return self._with_type(lambda tensor: tensor.dtype)

    @property
    def device(self) -> device:
        return self._with_type(lambda tensor: tensor.device)

    @property
    def data(self) -> Tensor:
        return self._with_type(lambda tensor: tensor.data)

    @data.setter
    def data(self, tensor: Tensor):
        self._with_type(lambda plain: setattr(plain, "data", tensor))

    @data.deleter
    def data(self):
        self._with_type(lambda plain: delattr(plain, "data"))

    def numel(self) -> int:
        """Raise ValueError: there are no elements yet."""
        raise ValueError(self._unknown())

    item = tolist = numel

    def is_shared(self) -> bool:
        """Raise ValueError: there is no memory yet."""
        raise ValueError(self._unknown())

    def _changed(self, method, *arguments, **options):
        """The result of a method that changes dtype or device, on this tensor as an empty one; the
        tensor itself where nothing changes.
        """
        return self._with_type(lambda tensor: method(tensor, *arguments, **options))

    cpu = functools.partialmethod(_changed, Tensor.cpu)
    cuda = functools.partialmethod(_changed, Tensor.cuda)
    to = functools.partialmethod(_changed, Tensor.to)
    half = functools.partialmethod(_changed, Tensor.half)
    float = functools.partialmethod(_changed, Tensor.float)
    double = functools.partialmethod(_changed, Tensor.double)

    def share_memory_(self) -> Tensor:
        """Raise RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def _with_type(self, function):
        """Return `function` of this tensor as a plain one, which is empty."""
        kind = type(self)
        self.__class__ = Tensor
        try:
            return function(self)
        finally:
            self.__class__ = kind

    def materialize(
        self,
        shape: Sequence[int],
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ) -> None:
        """Become a parameter or buffer of a shape, with uninitialized values.

        device, dtype: what it was made with by default.
        """
        kind, self.__class__ = type(self), Tensor
        options = {"device": device or self.device, "dtype": dtype or self.dtype}
        with no_grad():
            self.data = factories.empty(tuple(shape), **options)
        mark(self, kind.becomes, self.requires_grad)

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def _repr_html_(self):
        return None  # the text is enough

    def __deepcopy__(self, memo):
        options = {"device": self.device, "dtype": self.dtype}
        tensor = memo[id(self)] = type(self)(requires_grad=self.requires_grad, **options)
        return tensor

    def __reduce_ex__(self, protocol):
        return _uninitialized, (type(self), self.requires_grad, self.device, self.dtype)


def is_lazy(tensor: Any) -> bool:
    """Whether a tensor is an `UninitializedParameter` or `UninitializedBuffer`.

    >>> jaxgrad.nn.parameter.is_lazy(jaxgrad.nn.LazyLinear(2).weight)
    True
    """
    return isinstance(tensor, _Uninitialized)


def _uninitialized(kind, requires_grad, device, dtype):
    tensor = mark(factories.empty(0, device=device, dtype=dtype), kind, requires_grad)
    tensor.__class__ = kind
    return tensor


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is not known yet, of a lazy module.

    `materialize(shape)` makes it a `Parameter`. Its dtype and device can be read and changed by
    methods of modules; `.shape` raises RuntimeError, and any operator ValueError.

    >>> weight = jaxgrad.nn.UninitializedParameter()
    >>> weight
    <UninitializedParameter>
    >>> weight.materialize((2, 3))
    >>> weight.shape, type(weight) is type(jaxgrad.nn.Linear(1, 1).weight)
    (torch.Size([2, 3]), True)
    """

    __slots__ = ()

    becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device=None, dtype=None):
        return _uninitialized(cls, requires_grad, device, dtype)


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer whose shape is not known yet; see `UninitializedParameter`.

    >>> jaxgrad.nn.UninitializedBuffer()
    <UninitializedBuffer>
    """

    __slots__ = ()

    becomes = Buffer

    def __new__(cls, requires_grad: bool = False, device=None, dtype=None, persistent: bool = True):
        return _uninitialized(cls, requires_grad, device, dtype)


__getattr__ = missing_in(__name__)
