"""Opened functions: a function taken apart into what tells it from others and its tensors.

`vmap(lambda x: x @ w)` in a loop makes a new function each time, with the same code. Opening it
gives a key: the code, the values of its variables, defaults and attributes, and of what these hold
in turn. Functions with equal keys do the same with their tensors if all other state is the same,
which guards check. So they can share a program, and the tensors are its inputs.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref

import jax

from ..capture.guards import is_compared, weak_key
from ..core import tracebacks
from ..state.code import UNSET, cell_value, named_cells
from ..state.objects import PLAIN, exact
from ..state.ownership import CLOSED, is_of_library
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor

# a function with a longer key is not opened: each call would compare all of it
LONGEST_KEY = 2000

# what the next elements of a key describe
FUNCTION, METHOD, PARTIAL, LIST, TUPLE, DICT, CELL, TENSOR, SAME = (
    "function",
    "method",
    "partial",
    "list",
    "tuple",
    "dict",
    "cell",
    "tensor",
    "same",
)


class Memory:
    """Values that a function holds only to be faster: its results do not depend on them."""


class CannotBeOpenedError(Exception):
    """A function holds what no key can describe."""


class OpenedFunction:
    """A function taken apart. settings: values that belong to its key too.

    `key`: equal for functions that differ in their tensors alone; `tensors`: these, in the order of
    the key; `part_numbers`: by id the numbers of the parts whose contents are in the key;
    `changing`: the ids of the parts that may be changed; `others`: weak references to the other
    objects that the parts hold; `functions`: the functions among the parts.

    Raises CannotBeOpenedError.
    """

    __slots__ = (
        "fixed",
        "function",
        "functions",
        "key",
        "others",
        "part_numbers",
        "tensors",
        "unfinished",
    )

    def __init__(self, function, *settings):
        self.function, self.functions = function, []
        self.key, self.tensors, self.others = [], [], []
        self.part_numbers: dict[int, int] = {}
        self.fixed: set[int] = set()
        self.unfinished: set[int] = set()
        self.add(function)
        for setting in settings:
            self.add(setting)
        self.key = tuple(self.key)

    def add(self, value):
        kind = type(value)
        if kind in PLAIN:
            self.key.append(exact(value))
        elif kind in _WAYS:
            self.enter(value, _WAYS[kind])
        elif isinstance(value, Tensor):
            if is_sparse(value):
                raise CannotBeOpenedError  # several arguments, its indices and its values
            self.key.append(TENSOR)
            self.tensors.append(value)
        elif issubclass(kind, Memory):
            self.key.append(kind)
        elif kind.__module__.startswith("jaxgrad.") and is_compared(kind):
            self.key.append((kind, value))  # a dtype, a device, a size
        else:
            self.add_object(value)

    def add_object(self, value):
        """Add an object that equals no other one, and whose contents guards compare."""
        # a program would keep an array of JAX
        if isinstance(value, jax.Array) or not type(value).__weakrefoffset__:
            raise CannotBeOpenedError
        self.key.append(weak_key(value))
        self.others.append(weakref.ref(value))

    def enter(self, value, way):
        number = self.part_numbers.get(id(value))
        if number is None:
            if len(self.key) > LONGEST_KEY:
                raise CannotBeOpenedError
            way(self, value)
        elif id(value) in self.unfinished:
            raise CannotBeOpenedError  # it holds itself, and could not be built again
        else:
            self.key += (SAME, number)

    def begin(self, value, *description):
        self.part_numbers[id(value)] = len(self.part_numbers)
        self.key += description

    @property
    def changing(self) -> set[int]:
        return self.part_numbers.keys() - self.fixed

    def add_all(self, value, contents):
        """Add the contents of an object that is made with them."""
        self.unfinished.add(id(value))
        self.fixed.add(id(value))
        for content in contents:
            self.add(content)
        self.unfinished.discard(id(value))

    # ---- what is entered

    def add_function(self, function):
        module = sys.modules.get(function.__globals__.get("__name__"))
        if module is None or vars(module) is not function.__globals__:
            raise CannotBeOpenedError
        name = function.__name__
        if _is_lasting(function):
            self.add_object(function)
            return
        self.functions.append(function)
        self.begin(
            function,
            FUNCTION,
            function.__code__,
            weakref.ref(module),
            name,
            function.__qualname__,
            function.__module__,
        )
        # the function is made with its cells, and these are filled afterwards: it may be in one
        new = []
        for cell in function.__closure__ or ():
            if id(cell) in self.part_numbers:
                self.key += (SAME, self.part_numbers[id(cell)])
            else:
                self.begin(cell, CELL)
                new.append(cell)
        for value in map(cell_value, new):
            if value is UNSET:
                raise CannotBeOpenedError
            self.add(value)
        self.add(function.__defaults__)
        self.add(function.__kwdefaults__)
        self.add(vars(function) or None)

    def add_method(self, method):
        self.begin(method, METHOD)
        self.add_object(method.__func__)  # that of the class
        self.add_all(method, [method.__self__])

    def add_partial(self, value):
        if vars(value):
            raise CannotBeOpenedError
        self.begin(value, PARTIAL)
        self.add_all(value, [value.func, value.args, value.keywords])

    def add_list(self, value):
        self.begin(value, LIST, len(value))
        for element in value:
            self.add(element)

    def add_tuple(self, value):
        self.begin(value, TUPLE, len(value))
        self.add_all(value, value)

    def add_dict(self, value):
        if not {type(name) for name in value} <= _PLAIN:
            raise CannotBeOpenedError
        self.begin(value, DICT, len(value))
        for name, content in value.items():
            self.key.append(exact(name))
            self.add(content)


_PLAIN = frozenset(PLAIN)
_WAYS = {
    types.FunctionType: OpenedFunction.add_function,
    types.MethodType: OpenedFunction.add_method,
    functools.partial: OpenedFunction.add_partial,
    list: OpenedFunction.add_list,
    tuple: OpenedFunction.add_tuple,
    dict: OpenedFunction.add_dict,
}


def _is_lasting(function) -> bool:
    """Whether a function is the same one at each call: that of a module, or of a library. What a
    call of an installed package or of a transform of `jaxgrad.func` or `autograd.functional` makes
    is not.
    """
    home = sys.modules.get(function.__module__)
    if home is not None and vars(home).get(function.__name__) is function:
        return True
    # code that ran in a namespace without a name has no module
    if function.__module__ is None or not is_of_library(function.__module__):
        return False
    root = function.__module__.partition(".")[0]
    is_own = root in CLOSED or root in sys.stdlib_module_names
    return not (_is_of_transform(function) if is_own else "<locals>" in function.__qualname__)


def _is_of_transform(function) -> bool:
    home = function.__globals__["__name__"]
    if home == tracebacks.__name__:
        inner = dict(named_cells(function)).get("function")
        value = None if inner is None else cell_value(inner)
        return isinstance(value, types.FunctionType) and _is_of_transform(value)
    return home.startswith(("jaxgrad.func", "jaxgrad.autograd.functional"))


class Rebuilder:
    """Builds functions from a key, each of them with given tensors."""

    def __init__(self, key: tuple, name: str):
        self.key, self.__name__ = key, name

    def build(self, tensors):
        """The function with these tensors. Raises RuntimeError where an object is gone."""
        return _Build(self.key, self.__name__, tensors).next_value()


class _Build:
    """One function being built from its key."""

    def __init__(self, key, name, tensors):
        self.elements, self.tensors, self.name = iter(key), iter(tensors), name
        self.parts = {}
        self.begun = 0

    def next_value(self):
        element = next(self.elements)
        if type(element) is tuple:
            kind, value = element
            # by `exact` some numbers are their text
            return value if isinstance(value, kind) else kind(value)
        if element is TENSOR:
            return next(self.tensors)
        if element is SAME:
            return self.parts[next(self.elements)]
        if isinstance(element, type):
            return element()
        if type(element) is not str:
            return self.object_of(element)
        number = self.begun
        self.begun += 1
        value = _BUILDS[element](self, number)
        self.parts[number] = value
        return value

    def object_of(self, reference):
        value = getattr(reference, "reference", reference)()
        if value is None:
            raise RuntimeError(
                f"{self.name} runs again for a derivative, and an object that it holds is gone: "
                "keep a reference to it, or to the result of the call"
            )
        return value

    def values(self, count):
        return [self.next_value() for _ in range(count)]

    def function(self, number):
        code, module, name, qualified, home = [next(self.elements) for _ in range(5)]
        cells, new = [], []
        for _ in code.co_freevars:
            if next(self.elements) is SAME:
                cells.append(self.parts[next(self.elements)])
                continue
            new.append(types.CellType())
            cells.append(new[-1])
            self.parts[self.begun] = new[-1]
            self.begun += 1
        function = types.FunctionType(code, vars(module()), name, None, tuple(cells))
        function.__qualname__, function.__module__ = qualified, home
        self.parts[number] = function
        for cell in new:
            cell.cell_contents = self.next_value()
        function.__defaults__, function.__kwdefaults__ = self.values(2)
        function.__dict__.update(self.next_value() or {})
        return function

    def method(self, number):
        return types.MethodType(*self.values(2))

    def partial(self, number):
        function, args, keywords = self.values(3)
        return functools.partial(function, *args, **keywords)

    def list(self, number):
        contents = self.parts[number] = []
        contents.extend(self.values(next(self.elements)))
        return contents

    def tuple(self, number):
        return tuple(self.values(next(self.elements)))

    def dict(self, number):
        contents = self.parts[number] = {}
        for _ in range(next(self.elements)):
            name = self.next_value()
            contents[name] = self.next_value()
        return contents


_BUILDS = {
    FUNCTION: _Build.function,
    METHOD: _Build.method,
    PARTIAL: _Build.partial,
    LIST: _Build.list,
    TUPLE: _Build.tuple,
    DICT: _Build.dict,
}
