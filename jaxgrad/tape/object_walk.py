"""Walks over Python objects: from some objects to everything that they hold.

Capture looks for the names that a function's code reads and for the tensors that it can reach,
checkpointing for the tensors that it must put back, a Function's context for intermediate results.
"""

from __future__ import annotations

import dis
import functools
import types
from typing import NamedTuple

from .tensor import Tensor

# in the place of the contents of a cell or an attribute that does not exist
UNSET = object()


class ObjectWalk:
    """A depth-first walk over objects, which visits each of them once.

    Subclasses choose how far it goes: `opaque`, the types that it leaves out; `most`, the number of
    objects after which it ends; and what it enters of a function (`of_function`) and of any other
    object (`of_object`).
    """

    opaque: tuple[type, ...] = ()
    most = 10_000

    def __init__(self):
        self.seen: dict[int, object] = {}

    def walk(self, *roots):
        """Yield the roots and everything reachable from them."""
        stack = [*reversed(roots)]
        while stack and len(self.seen) < self.most:
            value = stack.pop()
            if id(value) in self.seen or isinstance(value, self.opaque):
                continue
            self.seen[id(value)] = value  # keeps it alive: a freed object's id is used again
            yield value
            stack.extend(self.contents(value))

    def contents(self, value):
        """The objects that an object holds."""
        if isinstance(value, Tensor):
            return ()
        if isinstance(value, list | tuple | set | frozenset):
            return value
        if isinstance(value, dict):
            return value.values()
        if isinstance(value, functools.partial):
            return value.func, *value.args, *value.keywords.values()
        if isinstance(value, types.MethodType):
            return value.__self__, value.__func__
        if isinstance(value, types.FunctionType):
            return self.of_function(value)
        return self.of_object(value)

    def of_function(self, function):
        return [cell.cell_contents for cell in full_cells(function)]

    def of_object(self, value):
        return vars(value).values() if hasattr(value, "__dict__") else ()


# ---- what the code of a function reads


class CodeNames(NamedTuple):
    """The names in a code object: the attributes that it reads, its constant strings, the
    attributes that it sets, and the closure variables that it reads.
    """

    attributes: frozenset
    strings: frozenset
    stored: frozenset
    cells: frozenset


@functools.lru_cache(maxsize=4096)
def names_in(code) -> CodeNames:
    instructions = list(dis.get_instructions(code))

    def named(*kinds):
        return frozenset(each.argval for each in instructions if each.opname in kinds)

    return CodeNames(
        # the words of Python 3.11 and of later versions
        named("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"),
        frozenset(each for each in code.co_consts if isinstance(each, str)),
        named("STORE_ATTR"),
        named("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"),
    )


def codes(code, unseen=frozenset()):
    """Yield a code object and those of the functions defined in it, except those in `unseen`."""
    if code not in unseen:
        yield code
        for each in code.co_consts:
            if isinstance(each, types.CodeType):
                yield from codes(each, unseen)


def global_names(function, unseen=frozenset()) -> list[str]:
    """The globals that a function's code names."""
    names = set().union(*[code.co_names for code in codes(function.__code__, unseen)])
    return sorted(names & function.__globals__.keys())


def full_cells(function) -> list:
    """The cells of a function's closure that hold a value."""
    return [cell for cell in function.__closure__ or () if cell_value(cell) is not UNSET]


def cell_value(cell):
    """What a closure variable is bound to; UNSET before its first assignment."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNSET
