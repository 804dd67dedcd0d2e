"""Subclasses of `Tensor` that users define.

jaxgrad's own tensors are of the class `Tensor`, parameters included, because operators dispatch on
it fastest. A tensor of a user's subclass takes the general path of operators, and its class decides
by `__torch_function__` what the results are.
"""

from __future__ import annotations

import functools
import inspect

from .. import ops
from ..core.pytorch_tensors import is_of_pytorch, type_name
from ..core.tracebacks import shows_users_frames
from ..late import LateModule
from ..tape import pytree, torch_function
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import PLAIN_TENSORS, Tensor
from .copying import instance_of

legacy_types = LateModule("jaxgrad.frontend.legacy_types")

NO_DISPATCH = (
    "{}: __torch_dispatch__ is not provided by jaxgrad, since operators are primitives of JAX. "
    "Define __torch_function__ in its place, which sees every function that is called with such a "
    "tensor"
)


class Subclassing:
    """`frontend/methods.py` installs these methods on `Tensor`."""

    def __new__(cls, *arguments, **options):
        tensor = legacy_types.construct(cls.__name__, None, None, arguments, options)
        return tensor if cls is Tensor else as_instance(tensor, cls)

    @classmethod
    def __init_subclass__(cls, **options):
        object.__init_subclass__(**options)
        if cls.__module__.partition(".")[0] == "jaxgrad":
            return
        pytree.register_subclass(cls)
        if torch_function.overrides(cls):
            torch_function.activate()
        if "__torch_function__" in vars(cls):
            _observe_attributes(cls)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Call a function for arguments of this class: the result is of this class too.

        A subclass overrides it to see the functions that are called with its tensors. func: the
        function or method of `Tensor`; types: the classes among the arguments that override it;
        args, kwargs: the arguments. NotImplemented leaves the call to the next of `types`.

        >>> class Named(jaxgrad.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return super().__torch_function__(func, types, args, kwargs)
        >>> x = jaxgrad.ones(2).as_subclass(Named)
        >>> type(x * 2).__name__
        mul
        'Named'
        """
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        kwargs = kwargs or {}
        foreign = next(filter(is_of_pytorch, (*args, *kwargs.values())), None)
        if foreign is not None:  # PyTorch asks too, for a call with tensors of both libraries
            raise TypeError(f"{func.__name__}() got a {type_name(foreign)}")
        with torch_function.DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
            return _of_class(result, cls, (*args, *kwargs.values()))

    @shows_users_frames  # in PyTorch no `__torch_function__` sees it either
    def as_subclass(self, cls: type) -> Tensor:
        """Return an alias of the tensor as an instance of a class.

        cls: `Tensor` or a subclass of it. Gradients flow through. Raises TypeError for anything
        else.

        >>> class Image(jaxgrad.Tensor):
        ...     pass
        >>> jaxgrad.zeros(2).as_subclass(Image) + 1
        Image([1., 1.])
        """
        if not isinstance(cls, type):
            raise TypeError(f"cls must be a type (got {type(cls).__name__})")
        if not issubclass(cls, Tensor):
            raise TypeError(
                "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
                f"possible. Make sure your class inherits from Tensor: {cls.__name__} does not."
            )
        with torch_function.DisableTorchFunction():
            alias = ops.alias(self)
        return alias if cls is Tensor else as_instance(alias, cls)

    @staticmethod
    def _make_subclass(cls, data: Tensor, require_grad: bool = False, **options) -> Tensor:
        if not isinstance(data, Tensor):
            raise TypeError(
                f"_make_subclass(): argument 'data' (position 2) must be Tensor, not "
                f"{type(data).__name__}"
            )
        if cls is not Tensor and cls in PLAIN_TENSORS:  # a parameter
            return cls(data, require_grad)
        with torch_function.DisableTorchFunctionSubclass():
            return as_instance(data.detach(), cls).requires_grad_(require_grad)

    @staticmethod
    def _make_wrapper_subclass(cls, *arguments, **options):
        raise NotImplementedError(NO_DISPATCH.format(cls.__name__))


# what has no array, and so no operator that asks
_SHAPES = ("size", "dim", "numel", "stride", "__len__", "element_size", "is_contiguous")


def _observe_attributes(cls):
    """Let a `__torch_function__` see reads and writes of the attributes of its tensors."""
    for name in {name for base in Tensor.__mro__ for name in vars(base)}:
        member = inspect.getattr_static(Tensor, name)  # which makes no operator
        if inspect.getattr_static(cls, name) is not member:
            continue
        if isinstance(member, property) and (name[0] != "_" or name in ("_version", "_base")):
            setattr(cls, name, _observed_attribute(member))
        elif name in _SHAPES:
            setattr(cls, name, _observed_method(member))


def _observed_attribute(member: property) -> property:
    def read(self):
        if torch_function.is_overridden((self,)):
            return torch_function.ask(member.__get__, [self], (self,), {})
        return member.__get__(self)

    def write(self, value):
        if torch_function.is_overridden((self,)):
            torch_function.ask(member.__set__, [self], (self, value), {})
        else:
            member.__set__(self, value)

    return property(read, write, member.__delete__, member.__doc__)


def _observed_method(member):
    @functools.wraps(member)
    def method(self, *args, **kwargs):
        if torch_function.is_overridden((self,)):
            return torch_function.ask(member, [self], (self, *args), kwargs)
        return member(self, *args, **kwargs)

    return method


def as_instance(tensor: Tensor, cls: type) -> Tensor:
    """Make a tensor without other references an instance of a user's subclass, and return it."""
    if not issubclass(cls, Tensor):
        raise TypeError(f"{cls.__name__} is no subclass of Tensor")
    if getattr(cls, "__torch_dispatch__", None) not in (None, torch_function.disabled):
        raise NotImplementedError(NO_DISPATCH.format(cls.__name__))
    if cls.__module__.partition(".")[0] == "jaxgrad":
        raise TypeError(
            f"a tensor cannot become an instance of {cls.__name__}: call {cls.__name__}(tensor)"
        )
    return instance_of(tensor, cls)


def _of_class(result, cls, arguments):
    """The result of a function with its tensors as instances of a class. arguments: the call's."""
    if type(result) is Tensor or (isinstance(result, Tensor) and not isinstance(result, cls)):
        if is_sparse(result) or cls is Tensor:
            return result
        # an argument that the function returns belongs to the caller
        is_given = any(argument is result for argument in arguments)
        return result.as_subclass(cls) if is_given else as_instance(result, cls)
    if isinstance(result, tuple | list):
        parts = [_of_class(part, cls, arguments) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result
