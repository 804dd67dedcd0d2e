"""Functions that classes and modes override by `__torch_function__`, as torch.overrides.

>>> from jaxgrad.overrides import TorchFunctionMode
>>> class Counted(TorchFunctionMode):
...     def __torch_function__(self, func, types, args=(), kwargs=None):
...         print(func.__name__)
...         return func(*args, **(kwargs or {}))
>>> with Counted():
...     _ = jaxgrad.ones(2).sum()
ones
sum
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import itertools
from collections import defaultdict

from .names.missing import missing_in
from .tape import torch_function
from .tape.tensor import Tensor
from .tape.torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass


class TorchFunctionMode:
    """A context in which `__torch_function__` of the mode gets the functions that are called.

    Define `__torch_function__(self, func, types, args=(), kwargs=None)`; what it calls itself goes
    to the modes around it. NotImplemented leaves the call to the classes of the arguments.

    >>> from jaxgrad.overrides import TorchFunctionMode
    >>> class Doubled(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         return func(*args, **(kwargs or {})) * 2
    >>> with Doubled():
    ...     y = jaxgrad.add(jaxgrad.ones(2), 1)
    >>> y
    tensor([6., 6.])
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_function__")

    def __enter__(self):
        torch_function.enter_mode(self)
        return self

    def __exit__(self, *exception):
        torch_function.exit_mode(self)


def _get_current_function_mode():
    """The innermost mode, or None."""
    modes = torch_function.modes.get()
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list:
    """The modes that are entered, the innermost last."""
    return list(torch_function.modes.get())


def _push_mode(mode):
    torch_function.enter_mode(mode)


def _pop_mode():
    """Leave the innermost mode, and return it."""
    mode = _get_current_function_mode()
    torch_function.exit_mode(mode)
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily():
    """A context in which the innermost mode is left; it gets that mode."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it is.

    >>> from jaxgrad.overrides import BaseTorchFunctionMode
    >>> with BaseTorchFunctionMode():
    ...     jaxgrad.ones(2) + 1
    tensor([2., 2.])
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


# what a mode calls goes to the modes around it, in each call anew
enable_reentrant_dispatch = contextlib.nullcontext


def has_torch_function(relevant_args) -> bool:
    """Return whether the class of one of the values overrides functions.

    >>> jaxgrad.overrides.has_torch_function([jaxgrad.ones(2), 1.0])
    False
    """
    return has_torch_function_variadic(*relevant_args)


def has_torch_function_variadic(*relevant_args) -> bool:
    """Return whether the class of one of the arguments overrides functions.

    >>> jaxgrad.overrides.has_torch_function_variadic(jaxgrad.ones(2), 1.0)
    False
    """
    return torch_function.is_overridden(relevant_args)


def has_torch_function_unary(relevant_arg) -> bool:
    """Return whether the class of a value overrides functions.

    >>> jaxgrad.overrides.has_torch_function_unary(jaxgrad.ones(2))
    False
    """
    return has_torch_function_variadic(relevant_arg)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Return what the mode or the first overriding class makes of a call of a function.

    public_api: the function, which `__torch_function__` gets; relevant_args: the arguments whose
    classes may override it; args, kwargs: those of the call. Raises TypeError if all return
    NotImplemented.

    >>> class Fixed:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return 7
    >>> jaxgrad.overrides.handle_torch_function(jaxgrad.add, [Fixed()], Fixed(), 1)
    7
    """
    return torch_function.handle(public_api, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher):
    """Return a decorator by which `__torch_function__` overrides a function of the user.

    dispatcher: takes the arguments of the function, and returns those whose classes may override
    it.

    >>> @jaxgrad.overrides.wrap_torch_function(lambda x: (x,))
    ... def double(x):
    ...     return x * 2
    >>> double(jaxgrad.ones(2))
    tensor([2., 2.])
    """

    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


def is_tensor_like(inp) -> bool:
    """Return whether a value is a tensor, or of a class that overrides functions.

    >>> jaxgrad.overrides.is_tensor_like(jaxgrad.ones(2)), jaxgrad.overrides.is_tensor_like(1.0)
    (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


# by PyTorch's names the modules whose functions can be overridden
_SPACES = ("", ".nn.functional", ".linalg", ".fft", ".special")


@functools.cache
def get_overridable_functions() -> dict:
    """Return the functions that `__torch_function__` overrides, by the module or class.

    >>> jaxgrad.add in jaxgrad.overrides.get_overridable_functions()[jaxgrad]
    True
    """
    functions = defaultdict(list)
    for space, _, member in _members():
        if _is_overridable(member):
            functions[space].append(member)
    return dict(functions)


def _members():
    """The modules whose functions can be overridden and `Tensor`, with each name and member."""
    spaces = [importlib.import_module(f"jaxgrad{space}") for space in _SPACES]
    for space in (*spaces, Tensor):
        for name in dir(space):
            is_special = name.startswith("__") and space is Tensor
            if is_special or not name.startswith("_"):
                yield space, name, getattr(space, name, None)


def _is_overridable(member) -> bool:
    is_function = inspect.isfunction(member)
    return is_function and (hasattr(member, "operator") or hasattr(member, "overridable"))


@functools.cache
def get_ignored_functions() -> set:
    """Return the public functions that no class overrides: those that take no tensors.

    >>> jaxgrad.is_tensor in jaxgrad.overrides.get_ignored_functions()
    True
    """
    members = (member for _, _, member in _members() if inspect.isroutine(member))
    return {member for member in members if not _is_overridable(member)} | _factories()


def _factories() -> set:
    """The functions that modes override, and no class, since they take no tensors."""
    names = "arange empty eye full linspace logspace ones rand randint randn randperm zeros tensor"
    torch = importlib.import_module("jaxgrad")
    return {getattr(torch, name) for name in names.split()}


@functools.cache
def get_testing_overrides() -> dict:
    """Return for each function that can be overridden one with its signature that returns -1.

    >>> import inspect
    >>> dummy = jaxgrad.overrides.get_testing_overrides()[jaxgrad.neg]
    >>> dummy(1), list(inspect.signature(dummy).parameters)[:1]
    (-1, ['input'])
    """
    functions = itertools.chain(*get_overridable_functions().values())
    return {function: _dummy(function) for function in functions}


def _dummy(function):
    def dummy(*args, **kwargs):
        return -1

    dummy.__signature__ = inspect.signature(function)
    return dummy


def is_tensor_method_or_property(func) -> bool:
    """Return whether a function that `__torch_function__` got is a method of `Tensor`, or reads a
    property of it.

    >>> jaxgrad.overrides.is_tensor_method_or_property(jaxgrad.Tensor.add)
    True
    """
    name = getattr(func, "__name__", "")
    return name == "__get__" or getattr(Tensor, name, None) is func or func in _names()[Tensor]


@functools.cache
def _names() -> dict:
    """PyTorch's names of the functions of each module and of `Tensor`, by the function."""
    names = defaultdict(dict)
    for space, name, member in _members():
        if inspect.isfunction(member):
            place = "Tensor" if space is Tensor else space.__name__.removeprefix("jaxgrad")
            text = f"torch.{place.lstrip('.')}.{name}" if place else f"torch.{name}"
            names[space].setdefault(member, text)
    return names


def resolve_name(f) -> str | None:
    """Return PyTorch's name of a function that can be overridden; None for others.

    >>> jaxgrad.overrides.resolve_name(jaxgrad.Tensor.add)
    'torch.Tensor.add'
    """
    if getattr(f, "__name__", "") == "__get__":
        names = sorted(dir(Tensor), key=lambda name: name.startswith("_"))
        owned = (name for name in names if getattr(Tensor, name, None) is f.__self__)
        return next((f"torch.Tensor.{name}.__get__" for name in owned), None)
    return next((names[f] for names in _names().values() if f in names), None)


def get_default_nowrap_functions() -> set:
    """Return what reads the attributes whose tensors keep their class in a subclass: `_base` and
    `grad`.

    >>> len(jaxgrad.overrides.get_default_nowrap_functions())
    2
    """
    return {Tensor._base.__get__, Tensor.grad.__get__}


__getattr__ = missing_in(__name__)
