"""Placeholders for names of PyTorch that jaxgrad does not provide: they can be imported, and their
first use raises NotImplementedError.

A class can be a base class, an annotation and an argument of `isinstance`; a function can decorate,
and what it decorates raises when it is called; a constant equals itself alone.
"""

from __future__ import annotations
import __future__

import abc
import builtins
import functools
import sys
import types
import typing

from ..late import LateModule
from .missing import reasons
from .pytorch import Entry, instead_of, shown_path

dis = LateModule("dis")

# the module and line that asked first for a placeholder, by its path
_askers: dict[str, str] = {}


def why(path: str) -> str:
    """The end of a sentence about a name: that it is not provided, and what to use."""
    reason = reasons().get(path)
    return f"not provided by jaxgrad: {reason or instead_of(path)}"


def refusal(path: str) -> NotImplementedError:
    """The error of a use of a placeholder or of a member of one."""
    known = path
    while known and known not in _askers:
        known = known.rpartition(".")[0]
    asker = f" ({_askers[known]} asks for it)" if known else ""
    return NotImplementedError(f"{path} is {why(path)}{asker}")


def note_asker(path: str):
    """Remember the module and line that import a placeholder or look it up."""
    if path in _askers:
        return
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module.partition(".")[0] not in ("importlib", "jaxgrad"):
            place = module if module not in ("", "__main__") else frame.f_code.co_filename
            _askers[path] = f"{place}, line {frame.f_lineno},"
            return
        frame = frame.f_back


# ---- classes


_PACKAGE = __name__.partition(".")[0]


class NotProvidedType(abc.ABCMeta):
    """The class of the classes that are not provided: a member of one is a placeholder too
    (`Dim.AUTO`).
    """

    def __getattr__(cls, name):
        if name.startswith("_") or "path" not in cls.__dict__:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return NotProvidedFunction(f"{cls.path}.{name}")

    def __instancecheck__(cls, instance):
        if cls.__dict__.get("is_alias"):
            raise refusal(cls.path)
        return super().__instancecheck__(instance)

    def __iter__(cls):
        raise refusal(cls.path)


class NotProvided(metaclass=NotProvidedType):
    """A class of PyTorch that jaxgrad does not provide: nothing is an instance of it, and a call
    raises NotImplementedError. path: its name; why: the end of a sentence about it; is_alias:
    whether PyTorch has an alias of several types there.
    """

    path = why = ""
    is_alias = False

    def __new__(cls, *args, **kwargs):
        raise refusal(cls.path)

    def __init_subclass__(cls, **kwargs):
        following = cls.__mro__[cls.__mro__.index(NotProvided) + 1 :]
        # those of object and of jaxgrad's own classes take no options
        takes_options = any(
            "__init_subclass__" in vars(base) and base.__module__.partition(".")[0] != _PACKAGE
            for base in following[:-1]
        )
        super().__init_subclass__(**(kwargs if takes_options else {}))

    def __class_getitem__(cls, parameters):
        return cls


@functools.cache
def not_provided_class(path: str, kind: str) -> type[NotProvided]:
    """The class of PyTorch at a path, as "torch.export.Dim"."""
    space, _, name = path.rpartition(".")
    known = {"path": path, "why": why(path), "is_alias": kind == "alias"}
    layers = (sys.modules["jaxgrad"].nn.Module,) if kind == "layer" else ()
    bases = (NotProvided, *layers)
    return NotProvidedType(name, bases, {"__module__": space, **known})


@functools.cache
def _exception(path: str, base: str) -> type[BaseException]:
    """A class of exceptions of PyTorch, which is never raised, for `except` and filters."""
    space, _, name = path.rpartition(".")
    text = (
        "PyTorch raises it; jaxgrad never does. It is for `except` and filters.\n\n"
        f">>> issubclass(jaxgrad{path.removeprefix('torch')}, {base})\nTrue\n"
    )
    return type(name, (getattr(builtins, base),), {"__module__": space, "__doc__": text})


# ---- functions and constants


class NotProvidedValue:
    """A constant of PyTorch that jaxgrad does not provide. path: its name."""

    def __init__(self, path: str):
        self.path, self.why = path, why(path)

    def __repr__(self):
        return f"<{self.path}, {self.why}>"

    def __reduce__(self):
        return self.path  # copies are the placeholder itself

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"{self.path!r} has no attribute {name!r}")
        return NotProvidedFunction(f"{self.path}.{name}")


def _refused(name: str):
    def method(self, *args, **kwargs):
        raise refusal(self.path)

    method.__name__ = name
    return method


_BINARY = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift"),
    *("rshift", "and", "xor", "or"),
)
_OTHERS = (
    *("neg", "pos", "abs", "invert", "round", "trunc", "floor", "ceil", "lt", "le", "gt", "ge"),
    *("call", "bool", "len", "iter", "next", "contains", "getitem", "setitem", "delitem", "int"),
    *("float", "complex", "index", "array", "enter", "exit", "aenter", "aexit", "await"),
)
for _name in (*_BINARY, *(f"r{name}" for name in _BINARY), *_OTHERS):
    setattr(NotProvidedValue, f"__{_name}__", _refused(f"__{_name}__"))


class NotProvidedFunction(NotProvidedValue):
    """A function of PyTorch that jaxgrad does not provide, or a member of a class.

    A call raises, unless it decorates. A call with one function returns a function that raises when
    it is called. A call in the body of a module or class returns a decorator.
    """

    def __bool__(self):
        return True

    def __call__(self, *args, **kwargs):
        caller = sys._getframe(1)
        if _is_statement(caller):
            raise refusal(self.path)
        is_outside = not caller.f_code.co_flags & _IN_FUNCTION
        if len(args) == 1 and not kwargs and _can_be_decorated(args[0], is_outside):
            return _undone(args[0], self.path)
        if is_outside and all(map(_is_plain, (*args, *kwargs.values()))):
            return NotProvidedDecorator(self.path)
        raise refusal(self.path)


class NotProvidedDecorator(NotProvidedFunction):
    """What a call of a decorator with options returns."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"{self.path!r} has no attribute {name!r}")
        raise refusal(self.path)


not_provided_function = functools.cache(NotProvidedFunction)

_IN_FUNCTION = 1  # inspect.CO_OPTIMIZED: the code of a function, not of a module or class
_METHODS = (staticmethod, classmethod)


def _is_statement(frame) -> bool:
    """Whether a frame drops what its current call returns: such a call decorates nothing."""
    after = (op for op in dis.get_instructions(frame.f_code) if op.offset > frame.f_lasti)
    return next((op.opname for op in after if op.opname != "CACHE"), "") == "POP_TOP"


def _can_be_decorated(target, is_outside: bool) -> bool:
    kinds = (types.FunctionType, *_METHODS)
    return isinstance(target, (*kinds, type) if is_outside else kinds)


def _is_plain(value) -> bool:
    """Whether a value can be an option of a decorator: a number, a text, a function, a class, or a
    container of such.
    """
    if isinstance(value, dict):
        return all(map(_is_plain, (*value.keys(), *value.values())))
    if isinstance(value, tuple | list | set | frozenset):
        return all(map(_is_plain, value))
    return value is None or callable(value) or isinstance(value, str | bytes | int | float)


def _undone(target, path: str):
    """The replacement of a function or class that a missing decorator decorates: it raises at a
    call.
    """
    if isinstance(target, _METHODS):
        return type(target)(_undone(target.__func__, path))

    def refuse(*args, **kwargs):
        raise refusal(path)

    if not isinstance(target, type):
        return functools.wraps(target)(refuse)
    names = ("__module__", "__qualname__", "__doc__")
    known = {name: getattr(target, name) for name in names} | {"__new__": refuse}
    try:
        return types.new_class(target.__name__, (target,), {}, lambda space: space.update(known))
    except TypeError as error:  # a class that has no subclasses, as an enumeration
        raise refusal(path) from error


def _nothing_is_available(*args, **kwargs) -> bool:
    """Return False: jaxgrad does not provide what it asks for."""
    return False


# ---- all kinds


# what modules of PyTorch import of Python's own, which is no placeholder
_OF_PYTHON = {"TYPE_CHECKING": False, "annotations": __future__.annotations}


@functools.cache
def placeholder(entry: Entry):
    """What stands for a name of PyTorch."""
    path, kind = shown_path(entry), entry.kind
    if entry.name in _OF_PYTHON:
        return _OF_PYTHON[entry.name]
    if kind in ("class", "layer", "alias"):
        return not_provided_class(path, kind)
    if kind == "function":
        asks = entry.name in ("is_available", "is_built")
        return _nothing_is_available if asks else not_provided_function(path)
    if kind == "value":
        return NotProvidedValue(path)
    if hasattr(builtins, kind):
        return _exception(path, kind)
    return getattr(typing, kind)(entry.name)
