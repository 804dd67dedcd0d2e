"""`__torch_function__`: subclasses of `Tensor`, other classes and modes override functions.

A public function of tensors leaves its call to the innermost mode, else to the first argument whose
class has a `__torch_function__` of its own. It looks for these only once such a class or a mode
exists (`interception.override`), so programs without them pay one comparison a call.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..core.dtypes import LackingDtype
from ..core.pytorch_tensors import is_class_of_pytorch
from ..core.tracebacks import hide_frames
from ..late import LateModule
from . import interception
from .tensor import Tensor

argument_types = LateModule("jaxgrad.tape.argument_types")

P, R = ParamSpec("P"), TypeVar("R")

NOT_OVERRIDDEN = object()

# The modes that are entered, and whether classes override functions. Both belong to a thread or an
# asyncio task.
modes = contextvars.ContextVar("jaxgrad.torch_function_modes", default=())
classes_override = contextvars.ContextVar("jaxgrad.torch_function_classes", default=True)

# the classes of most arguments; none of them overrides functions
_PLAIN = frozenset((Tensor, int, float, complex, bool, str, slice, type(None), type(...)))


def disabled(function, types, args=(), kwargs=None):
    """The `__torch_function__` of a class that overrides nothing, such as `Parameter`."""
    raise NotImplementedError(f"{function.__name__}: {types} override no functions")


def overrides(kind: type) -> bool:
    """Whether functions of tensors leave calls with an instance of a class to that class."""
    if kind is Tensor:
        return False
    if getattr(kind, "__torch_function__", disabled) is disabled:
        return False
    return not is_class_of_pytorch(kind)


def stands_for_tensor(value) -> bool:
    """Whether the `__torch_function__` of a value handles calls with it."""
    return overrides(type(value))


def is_overridden(values) -> bool:
    """Whether a mode, or the class of one of the values, takes over a call with them."""
    if modes.get():
        return True
    if _PLAIN.issuperset(map(type, values)):
        return False
    return classes_override.get() and any(map(stands_for_tensor, values))


def overriding(values) -> list:
    """The values whose classes override functions, one of each class: from left to right, those of
    subclasses before those of their base classes.
    """
    asked: list = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        for candidate in value if kind is list or kind is tuple else (value,):
            if overrides(type(candidate)):
                insert(asked, candidate)
    return asked


def insert(asked: list, value):
    """Insert a value among those that are asked, unless one of its class is there."""
    kind = type(value)
    if kind not in map(type, asked):
        places = [i for i, before in enumerate(asked) if issubclass(kind, type(before))]
        asked.insert(min(places, default=len(asked)), value)


# ---- the types of arguments

_NO_NUMBERS = frozenset((complex, str, bytes, list, tuple, dict, type(None)))
# the types that an annotation excludes before a call: a flag of another type would count as True
_EXCLUDED = {
    "bool": _NO_NUMBERS | {int, float, Tensor},
    "int": _NO_NUMBERS | {float, bool, Tensor},  # of integers it may be one
    "float": _NO_NUMBERS,
    "Tensor": frozenset((bool, int, float, complex)),
    "str": _NO_NUMBERS - {str} | {bool, int, float},
}
_EXCLUDED |= {f"{kind} | None": types - {type(None)} for kind, types in _EXCLUDED.items()}
# flags that PyTorch's Python code reads: any object is True or False
_TRUTHS = frozenset(
    (
        *("inplace", "return_indices", "recompute_scale_factor", "antialias", "full", "hard"),
        *("size_average", "reduce", "swap", "center", "largest", "get_infos", "force", "assign"),
        "cond",
        *("need_weights", "add_zero_attn", "use_separate_proj_weight", "average_attn_weights"),
    )
)


# text that PyTorch's C++ reads: its Python code compares other text, and says that it is no choice
_TEXTS = frozenset(("indexing", "interpolation", "norm", "pad_mode"))


def _checked_arguments(function: Callable) -> list[tuple[str, int, frozenset]]:
    """The arguments that are annotated as a bool, an int or a float, and the input if it is a
    tensor: name, position, refused types.
    """
    annotations = getattr(function, "__annotations__", {})
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    if code is None or not any(kind in _EXCLUDED for kind in annotations.values()):
        return []
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [
        (name, place if place < code.co_argcount else sys.maxsize, _EXCLUDED[annotations[name]])
        for place, name in enumerate(names)
        if annotations.get(name) in _EXCLUDED
        and name not in _TRUTHS
        and (name == "input" or annotations[name] != "Tensor")
        and (name in _TEXTS or not annotations[name].startswith("str"))
    ]


# ---- overriding a call


def activate():
    """From now on the functions of tensors ask who overrides them."""
    if interception.override is None:
        interception.intercept(override=override)


def override(public: Callable, args, kwargs):
    """The result of a mode or a class for a call; NOT_OVERRIDDEN if none overrides it.

    public: the function that users call, which a `__torch_function__` gets.
    """
    asked = overriding((*args, *kwargs.values())) if classes_override.get() else []
    if asked or modes.get():
        if hasattr(public, "names_defaults"):
            args, kwargs = _with_defaults(public, args, kwargs)
        return ask(public, asked, args, kwargs)
    return NOT_OVERRIDDEN


def names_defaults(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function of tensors that PyTorch has in Python: a handler gets its required arguments
    by position and all others by name, defaults included. Others get arguments as they are passed.
    """
    function.names_defaults = True
    return function


def _with_defaults(public: Callable, args, kwargs):
    signature = inspect.signature(public)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs  # the function itself refuses them
    bound.apply_defaults()
    positional, named = [], {}
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is parameter.empty:
            positional.append(value)
        else:
            named[name] = value
    return tuple(positional), named


def meets_override(args, kwargs) -> bool:
    """Whether an argument of a call that has failed is of a class that overrides functions."""
    if is_met := bool(overriding((*args, *kwargs.values()))):
        activate()
    return is_met


# methods of a tensor as an object, which read none of its elements
OF_HANDLES = frozenset(
    (
        *("register_hook", "register_post_accumulate_grad_hook", "is_shared", "share_memory_"),
        *("storage", "untyped_storage", "storage_type"),
    )
)


def api_boundary(function: Callable[P, R]) -> Callable[P, R]:
    """`function` of tensors, which a `__torch_function__` may override. Its exceptions show the
    frames of users alone (core/tracebacks.py). An argument that is annotated as a bool, an int or a
    float raises TypeError if it is something else, and a number for the input.
    """
    checked = _checked_arguments(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if interception.override is not None:
                result = interception.override(call, args, kwargs)
                if result is not NOT_OVERRIDDEN:
                    return result
            for name, place, excluded in checked:
                value = args[place] if place < len(args) else kwargs.get(name, ...)
                if type(value) in excluded and not argument_types.is_index(value):
                    raise TypeError(argument_types.refusal(function, name, place, args, value))
            return function(*args, **kwargs)
        except Exception as error:
            if interception.override is None and meets_override(args, kwargs):
                return override(call, args, kwargs)
            if isinstance(error, LackingDtype):
                return interception.lacking_dtype(call, args, kwargs, error)
            mistake = argument_types.mistake_in(function, args, kwargs, error)
            if mistake is not None:
                raise TypeError(mistake) from None
            hide_frames(error)
            raise

    call.overridable = True
    return call


def handle(public: Callable, relevant, args, kwargs):
    """`ask` for a function that looks for overriding arguments itself. `relevant`: the arguments
    that it looks at; plain tensors among them count as a class too.
    """
    asked: list = []
    for value in relevant:
        if type(value) is Tensor or stands_for_tensor(value):
            insert(asked, value)
    return ask(public, asked, args, kwargs)


def ask(public: Callable, asked, args, kwargs):
    """The first result that is not NotImplemented: of the innermost mode, then of the values.

    A mode that returns NOT_OVERRIDDEN leaves the call to the function itself, and gets the calls
    that it makes. Raises TypeError if all return NotImplemented.
    """
    types = tuple(map(type, asked))
    entered = modes.get()
    if entered:
        token = modes.set(entered[:-1])  # what the mode itself calls goes to those around it
        try:
            result = entered[-1].__torch_function__(public, types, args, kwargs)
        finally:
            modes.reset(token)
        if result is not NotImplemented:
            return result
    for value in filter(stands_for_tensor, asked):
        result = value.__torch_function__(public, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = name_of(public)
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned "
        f"NotImplemented: no implementation found for '{name}' on types that implement "
        f"__torch_function__: {list(types)}"
    )


def name_of(public: Callable) -> str:
    """PyTorch's name of a function of jaxgrad, or of a method of `Tensor`."""
    if getattr(Tensor, public.__name__, None) is public:
        return f"torch.Tensor.{public.__name__}"
    module = public.__module__.removeprefix("jaxgrad.")
    space = module if module.startswith(("autograd", "linalg")) else ""
    if module.startswith("nn."):
        space = "nn.functional"
    return ".".join(filter(None, ("torch", space, public.__name__)))


# ---- switching


class DisableTorchFunctionSubclass:
    """A context in which no class overrides functions; modes still do.

    >>> with jaxgrad._C.DisableTorchFunctionSubclass():
    ...     jaxgrad.ones(2) + 1
    tensor([2., 2.])
    """

    def __enter__(self):
        self._token = classes_override.set(False)

    def __exit__(self, *exception):
        classes_override.reset(self._token)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A context in which neither classes nor modes override functions.

    >>> with jaxgrad._C.DisableTorchFunction():
    ...     jaxgrad.ones(2) + 1
    tensor([2., 2.])
    """

    def __enter__(self):
        super().__enter__()
        self._modes_token = modes.set(())

    def __exit__(self, *exception):
        modes.reset(self._modes_token)
        super().__exit__(*exception)


@contextlib.contextmanager
def inside(mode):
    """A block in which a mode is the innermost one; afterwards functions of tensors pay nothing."""
    interception.intercept(override=override, calls=override)
    token = modes.set((*modes.get(), mode))
    try:
        yield
    finally:
        modes.reset(token)
        interception.release("override", "calls")


def enter_mode(mode):
    """Make a mode the innermost one."""
    activate()
    # so that operators leave their fast paths, which look at no mode
    interception.intercept(calls=override)
    modes.set((*modes.get(), mode))


def exit_mode(mode):
    """Leave the innermost mode."""
    interception.release("calls")
    entered = modes.get()
    if not entered or entered[-1] is not mode:
        raise RuntimeError(f"{type(mode).__name__}: left, but it is not the innermost mode")
    modes.set(entered[:-1])
