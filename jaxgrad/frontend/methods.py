"""The methods of `Tensor`: Python's protocols, conversions, and the operators."""

from __future__ import annotations

import numbers
import sys
import warnings

import numpy as np

from .. import ops
from ..autograd import variable
from ..core import dtypes, pending, promotion, world
from ..core.aval import Size, has_numbers
from ..core.dtypes import RawBitsResult
from ..core.jax_internals import is_asked_as_operand
from ..core.pending import Pending
from ..core.program import broadcasts
from ..core.pytorch_tensors import type_name
from ..core.symbolic_extents import is_exported
from ..core.tracebacks import shows_users_frames, users_stacklevel
from ..late import LateModule
from ..tape import interception, mode
from ..tape.mode import is_grad_enabled
from ..tape.pytree import LOST
from ..tape.sparse_tensor import by_layout
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, check_no_tangent, concrete, current, is_concrete
from ..tape.torch_function import api_boundary
from . import (
    copying,
    factories,
    indexing,
    legacy_methods,
    memory_methods,
    reflected_methods,
    subclassing,
    tensor_data,
    to,
)
from .printing.tensors import TextMethods

documentation = LateModule("jaxgrad.ops.documentation")
half_complex = LateModule("jaxgrad.frontend.half_complex")
raw_bits = LateModule("jaxgrad.frontend.raw_bits")

# functions of JAX that refuse what has the method: the result of a function that it transforms
_ASKING = ("typeof", "shaped_abstractify")

RESULT = (
    "a function that JAX transforms, as by jax.grad, returned a tensor: make it a function of "
    "arrays by jaxgrad.to_jax(function), or return jax.numpy.asarray(tensor)"
)


class LazyMethod:
    """A method of `Tensor` that is made at its first use and then replaces this descriptor.

    make: returns the function.
    """

    def __init__(self, name: str, make):
        self.name, self.make = name, make

    def __get__(self, instance, owner=None):
        function = self.make()
        if "<locals>" in getattr(function, "__qualname__", ""):  # it is pickled by its name
            function.__module__, function.__qualname__ = "jaxgrad", f"Tensor.{self.name}"
        setattr(Tensor, self.name, function)
        return function if instance is None else function.__get__(instance)


def install():
    """Install the methods of the frontend and of the shipped table on `Tensor`."""
    for name in operators() - vars(Tensor).keys():
        setattr(Tensor, name, operator_method(name, name))
    for source in METHOD_CLASSES:
        for name, member in vars(source).items():
            if name not in ("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__"):
                setattr(Tensor, name, member)
    for name, operator in ops.library.table.protocols.items():
        setattr(Tensor, name, operator_method(name, operator, True))


def operators() -> set[str]:
    """The operators, aliases and in-place forms of the shipped table that are methods."""
    library, aliases = ops.library, ops.library.table.aliases
    names = {name for name in library.methods if ops.is_public(name)}
    names = {name for name in names if "no_method" not in library.tags(name)}
    forms = library.inplace_forms
    written = {form for form, name in forms.items() if "inplace_function" not in library.tags(name)}
    written |= {f"{alias}_" for alias, name in aliases.items() if f"{name}_" in written}
    return names | written


def operator_method(name: str, operator: str, is_protocol: bool = False) -> LazyMethod:
    """An operator of the table as a method; is_protocol: as a special method."""
    public = operator if is_protocol and name not in OWN_NAMES else name

    def make():
        function = getattr(ops, operator)
        beside_array = reflected_methods.beside_array(name, function) if is_protocol else None
        return documentation.as_method(function, public, is_protocol, beside_array)

    return LazyMethod(name, make)


# the special methods that a `__torch_function__` gets by their own names: PyTorch's table or its
# Python code defines them, and the others are methods of an operator's name
OWN_NAMES = frozenset(
    f"__{name}__"
    for name in (
        *("and", "or", "xor", "lshift", "rshift", "iand", "ior", "ixor", "ilshift", "irshift"),
        *("eq", "floordiv", "rsub"),
    )
)


def numbers_of(tensor: Tensor, what: str) -> np.ndarray:
    """The tensor's numbers as NumPy's array, which no code writes to. Raises as `concrete` does."""
    value = tensor._value
    if mode.scope.get() is None and world.current is None:
        if type(value) is Pending:
            return pending.numbers_of(value)
        if has_numbers(value):
            return np.asarray(value)
    return np.asarray(concrete(tensor, what))


class TensorMethods:
    """Special methods, conversions and queries; `install` copies them to `Tensor`."""

    __hash__ = object.__hash__

    def size(self, dim: int | None = None):
        """Return the shape, or the size of one dimension.

        dim: an int. Raises IndexError if it does not exist.

        >>> jaxgrad.zeros(2, 3).size(), jaxgrad.zeros(2, 3).size(-1)
        (torch.Size([2, 3]), 3)
        """
        return self.shape if dim is None else self.shape[_dimension(dim, self.ndim)]

    def dim(self) -> int:
        """Return the number of dimensions.

        >>> jaxgrad.zeros(2, 3).dim()
        2
        """
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements.

        >>> jaxgrad.zeros(2, 3).numel()
        6
        """
        return self.shape.numel()

    nelement = numel

    def element_size(self) -> int:
        """Return the size of one element in bytes.

        >>> jaxgrad.zeros(2).element_size()
        4
        """
        return self.dtype.itemsize

    itemsize = property(element_size)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes.

        >>> jaxgrad.zeros(2, 3).nbytes
        24
        """
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Return whether the dtype is a floating-point one.

        >>> jaxgrad.zeros(2).is_floating_point()
        True
        """
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return whether the dtype is complex.

        >>> jaxgrad.tensor(1j).is_complex()
        True
        """
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Return whether the dtype has negative numbers.

        >>> jaxgrad.zeros(2, dtype=jaxgrad.uint8).is_signed()
        False
        """
        return self.dtype.is_signed

    @api_boundary
    def item(self):
        """Return the only element as a Python number.

        Raises RuntimeError for a tensor of another size, and in a trace, where there is no value;
        in a program that is exported it is a number that varies.

        >>> jaxgrad.tensor([1.5]).item()
        1.5
        """
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar: "
                "tolist() gives all of them"
            )
        if is_exported() and not is_concrete(current(self)):
            return Varying.of_tensor(current(self))
        return numbers_of(self, "item()").item()

    @api_boundary
    @by_layout
    def tolist(self):
        """Return the elements as nested lists of Python numbers, or a number for a 0-d tensor.

        Raises RuntimeError in a trace.

        >>> jaxgrad.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        if is_exported() and not is_concrete(current(self)):
            return [item.tolist() for item in self] if self.ndim else self.item()
        return numbers_of(self, "tolist()").tolist()

    @api_boundary
    @by_layout
    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the elements as a read-only numpy array of the same shape and dtype.

        The array is read-only because tensors may share its memory. force: accept a tensor that
        requires grad, as `no_grad` does. Raises RuntimeError for such a tensor otherwise, and in a
        trace.

        >>> jaxgrad.ones(2).numpy()
        array([1., 1.], dtype=float32)
        """
        if self._requires_grad and not force and is_grad_enabled():
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        array = numbers_of(self, "numpy(force=True)" if force else "numpy()")
        return tensor_data.shown(array)

    @api_boundary
    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    @api_boundary
    def __array_wrap__(self, array, context=None, return_scalar=False):
        """The tensor of what a function of NumPy makes of this one: `numpy.sin(x)`."""
        # as in PyTorch: `numpy.isnan(x)` is of uint8
        return tensor_data.from_numpy(array.astype("uint8") if array.dtype == bool else array)

    @api_boundary
    def __dlpack__(self, **arguments):
        tensor_data.check_exported(self)
        stream = arguments.get("stream")
        if isinstance(stream, int) and self.device.type == "cpu":
            raise AssertionError(f"stream should be None on cpu. Got stream={stream}")
        return concrete(self, "__dlpack__()").__dlpack__(**arguments)

    @api_boundary
    def __dlpack_device__(self):
        return concrete(self, "__dlpack_device__()").__dlpack_device__()

    @property
    def __jax_array__(self):
        caller = sys._getframe(1)
        is_of_jax = str(caller.f_globals.get("__name__")).partition(".")[0] == "jax"
        if is_of_jax and caller.f_code.co_name in _ASKING:
            raise RuntimeError(RESULT)  # JAX has another text for a TypeError
        if is_exported() and is_asked_as_operand(caller):
            raise AttributeError  # a number of sizes: the tensor computes
        return self._as_jax_array

    def _as_jax_array(self):
        if self._requires_grad:
            raise TypeError(LOST)
        return check_no_tangent(self, "a JAX function")._array

    @api_boundary
    def __bool__(self):
        if self.numel() != 1:
            raise RuntimeError(
                f"Boolean value of Tensor with "
                f"{'no values' if not self.numel() else 'more than one value'} is ambiguous: "
                f"its shape is {list(self.shape)}; use any() or all()"
            )
        return bool(numbers_of(self, "bool()").item())

    @api_boundary
    def __float__(self):
        if self._requires_grad:
            warnings.warn(tensor_data.CONVERTING, UserWarning, stacklevel=users_stacklevel())
        return float(_real_number(self, "double"))

    @api_boundary
    def __int__(self):
        return int(_real_number(self, "int64_t"))

    @api_boundary
    def __complex__(self):
        return complex(_one_number(self))

    @api_boundary
    def __index__(self):
        if self.dtype.is_floating_point or self.dtype.is_complex or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    @api_boundary
    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    @property
    def real(self):
        """The real parts of a complex tensor, a view; a real tensor itself. Assigning a tensor or a
        number writes to it.

        >>> z = jaxgrad.tensor([1 + 2j])
        >>> z.real = 5
        >>> z, z.real
        (tensor([5.+2.j]), tensor([5.]))
        """
        return ops.real(self)

    @real.setter
    @api_boundary
    def real(self, value: Tensor | float):
        _write(ops.real(self), value)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts of a complex tensor, a view, to which an assignment writes. Raises
        RuntimeError for a real tensor.

        >>> jaxgrad.tensor([1 + 2j]).imag
        tensor([2.])
        """
        return ops.imag(self)

    @imag.setter
    @api_boundary
    def imag(self, value: Tensor | float):
        _write(ops.imag(self), value)

    @api_boundary
    def sum_to_size(self, *size) -> Tensor:
        """Return the sum over the dimensions that broadcasting from `size` adds or stretches.

        size: ints or a list of them, a shape that broadcasts to that of this tensor. For `()` this
        is `sum()`; for its other shapes the tensor itself. Raises RuntimeError for another shape,
        TypeError for no ints.

        >>> jaxgrad.ones(2, 3).sum_to_size(1, 3)
        tensor([[2., 2., 2.]])
        """
        if not size:
            raise TypeError('sum_to_size() missing 1 required positional arguments: "size"')
        size = Size(size[0] if len(size) == 1 and isinstance(size[0], list | tuple) else size)
        if not broadcasts(size, self.shape):
            raise RuntimeError(
                f"size {{{list(size)}}} is not expandable to size {{{list(self.shape)}}}. "
                "sum_to_size takes a shape that broadcasts to that of the tensor"
            )
        if not size:
            return self.sum()
        extra = self.ndim - len(size)
        stretched = (
            extra + i for i, extent in enumerate(size) if extent == 1 != self.shape[extra + i]
        )
        dims = (*range(extra), *stretched)
        summed = self.sum(dims, keepdim=True) if dims else self
        return summed.view(size) if extra else summed

    @api_boundary
    def float_power_(self, exponent) -> Tensor:
        """Raise the elements to a power in place.

        exponent: a tensor or a number. Raises RuntimeError for a tensor that is not float64, or
        complex128 where an operand is complex.

        >>> jaxgrad.tensor([2.0], dtype=jaxgrad.float64).float_power_(3)
        tensor([8.], dtype=torch.float64)
        """
        is_complex = promotion.result_type(self, exponent).is_complex
        dtype = dtypes.complex128 if is_complex else dtypes.float64
        if self.dtype is not dtype:
            raise RuntimeError(
                f"the base given to float_power_ has dtype {self.dtype.scalar_type} but the "
                f"operation's result requires dtype {dtype.scalar_type}"
            )
        return self.pow_(exponent)

    @api_boundary
    def where(self, condition, other):
        """Return this tensor where `condition` is true, `other` elsewhere; see `jaxgrad.where`.

        condition: a bool tensor. other: a tensor or a number. All three broadcast.

        >>> x = jaxgrad.tensor([-1.0, 2.0])
        >>> x.where(x > 0, 0.0)
        tensor([0., 2.])
        """
        return ops.where(condition, self, other)

    @api_boundary
    def __invert__(self):
        if self.dtype.category > dtypes.INTEGRAL:
            raise TypeError(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors, not "
                f"on {self.dtype}"
            )
        return ops.bitwise_not(self)

    @shows_users_frames
    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    @api_boundary
    def __reversed__(self):
        """The tensor backwards in its first dimension."""
        return ops.flip(self, (0,)) if self.ndim else self

    @api_boundary
    def __contains__(self, element):
        if not isinstance(element, Tensor | numbers.Number):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                f"{type(element)}."
            )
        return bool((self == element).any())


def _write(view: Tensor, value: Tensor | float):
    view.copy_(value) if isinstance(value, Tensor) else view.fill_(value)


def _conversion(name, dtype):
    @api_boundary
    def method(self, *, memory_format=None) -> Tensor:
        return self.to(dtype, memory_format=memory_format)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""Convert the tensor to {dtype}; see `to`.

    memory_format: as in `to`.

    >>> jaxgrad.ones(2).{name}().dtype
    {dtype}
    """
    return method


def _of_lacking_dtype(function, args, kwargs, error):
    """The result of a call that needs a dtype which XLA lacks."""
    if isinstance(error, RawBitsResult):
        return raw_bits.compute(function, args, kwargs, error.kind)
    return half_complex.compute(function, args, kwargs)


interception.intercept(lacking_dtype=_of_lacking_dtype)

for _name, _dtype in to.CONVERSIONS.items():
    setattr(TensorMethods, _name, _conversion(_name, _dtype))


METHOD_CLASSES = (
    factories.FactoryMethods,
    tensor_data.DataMethods,
    to.ConversionMethods,
    indexing.IndexingMethods,
    memory_methods.MemoryMethods,
    copying.CopyMethods,
    variable.VariableMethods,
    legacy_methods.LegacyMethods,
    subclassing.Subclassing,
    TextMethods,
    reflected_methods.ReflectedMethods,
    TensorMethods,
)


def _one_number(tensor):
    if tensor.numel() != 1:
        raise ValueError(
            f"only one element tensors can be converted to Python scalars, not one of shape "
            f"{list(tensor.shape)}"
        )
    return tensor.item()


def _real_number(tensor, kind):
    number = _one_number(tensor)
    if isinstance(number, complex):
        if number.imag:
            raise RuntimeError(
                f"value cannot be converted to type {kind} without overflow: {number}; take .real "
                f"first"
            )
        return number.real
    return number


def _dimension(dim, ndim):
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim


def _checked_tensor(name, input: Tensor) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}"
        )
    return input


def is_tensor(obj) -> bool:
    """Return whether `obj` is a tensor.

    >>> jaxgrad.is_tensor(jaxgrad.ones(2)), jaxgrad.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


@api_boundary
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is float16, bfloat16, float32 or float64.

    input: a tensor of any shape and dtype. Raises TypeError for anything else.

    >>> jaxgrad.is_floating_point(jaxgrad.arange(3))
    False
    """
    return _checked_tensor("is_floating_point", input).dtype.is_floating_point


@api_boundary
def is_inference(input: Tensor) -> bool:
    """Return whether a tensor was created in inference mode.

    input: a tensor of any shape and dtype. Raises TypeError for anything else.

    >>> with jaxgrad.inference_mode():
    ...     jaxgrad.is_inference(jaxgrad.ones(2))
    True
    """
    return _checked_tensor("is_inference", input).is_inference()


@api_boundary
def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is complex64 or complex128.

    input: a tensor of any shape and dtype. Raises TypeError for anything else.

    >>> jaxgrad.is_complex(jaxgrad.tensor(1j))
    True
    """
    return _checked_tensor("is_complex", input).dtype.is_complex


@api_boundary
def numel(input: Tensor) -> int:
    """Return the number of elements of a tensor.

    input: a tensor of any shape and dtype. Raises TypeError for anything else.

    >>> jaxgrad.numel(jaxgrad.zeros(2, 3))
    6
    """
    return _checked_tensor("numel", input).numel()
