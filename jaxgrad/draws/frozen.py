"""Finds the lines of a function that read what no guard can watch: random numbers of Python and
NumPy, the time, files, the environment, iterators, queues.

A function that `jit` compiles draws such values at each call (draws/drawn.py), and takes the lines
from here. If a transform such as `vmap` compiles a function by itself and it reads such values, its
program is not kept.

The states of the generators before and after the trace show whether the function draws random
numbers. The names in its code, and in the code of the functions that it names, show the other reads
and the lines.
"""

from __future__ import annotations

import contextlib
import datetime
import dis
import functools
import inspect
import os
import queue
import random
import secrets
import time
import types
import uuid
import weakref
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..capture.graph_input import NumberInput
from ..state.code import UNSET, cell_value, codes
from ..state.ownership import is_of_library

_MOMENTS = frozenset([id(datetime.datetime), id(datetime.date)])
# by id, since not all of them can be hashed; all of them live on
_READS = frozenset(
    map(
        id,
        (
            time.time,
            time.time_ns,
            time.perf_counter,
            time.perf_counter_ns,
            time.monotonic,
            time.monotonic_ns,
            time.process_time,
            time.process_time_ns,
            open,
            os.environ,
            os.getenv,
            os.urandom,
            uuid.uuid1,
            uuid.uuid4,
            secrets.token_bytes,
            secrets.token_hex,
            secrets.randbelow,
        ),
    )
)
_QUEUES = (queue.Queue, queue.SimpleQueue)
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)
MOST_FUNCTIONS = 1000

READ = (
    "{name}, compiled by jaxgrad.jit, reads {read} at {place}: what it gave while the function was "
    "traced is a constant of the program. Pass the value as an argument, or read a number by "
    "jaxgrad.tracing.number"
)
DRAWN = (
    "{name}, compiled by jaxgrad.jit, draws random numbers from {read}: those of the trace "
    "are constants of the program. Draw with jaxgrad's functions, pass them as arguments, or read "
    "one by jaxgrad.tracing.number"
)
USED_UP = (
    "{name} takes elements from {read}, which can be read only once, and a trace would use them up"
)


class FrozenReads:
    """The reads of a function from the outside world: created before a trace, asked after it."""

    def __init__(self, function):
        self.named = list(_named(function))
        instances = [
            read.generator for read in self.named if isinstance(read.generator, _GENERATORS)
        ]
        self.generators = {
            id(generator): generator for generator in (random, np.random, *instances)
        }
        self.before = self.states()

    def states(self) -> dict:
        return {key: StateOf(generator) for key, generator in self.generators.items()}

    def messages(self, program):
        """Yield a message for each read, and for each generator that the trace drew from."""
        for read in self.readers_of(program)[1]:
            if read.generator is None:
                yield READ.format(name=program.name, read=read.text, place=read.place)
        for text in self.drawn(program):
            yield DRAWN.format(name=program.name, read=text)

    def drawn(self, program) -> list[str]:
        """The generators that the trace drew from, each with the line."""
        readers, named = self.readers_of(program)
        texts, after = [], self.states()
        for key, generator in self.generators.items():
            lines = [read for read in named if read.generator is generator]
            is_same = after[key].shown == self.before[key].shown
            if is_same or (readers and not lines):
                continue
            place = f" at {lines[0].place}" if lines else ""
            texts.append(f"{_kind(generator)}{place}")
        return texts

    def readers_of(self, program) -> tuple[list, list[Named]]:
        """The functions that each call runs for a number, and the reads that are not in them."""
        readers = [
            source.read for source in program.other_inputs if isinstance(source, NumberInput)
        ]
        unseen = {*map(id, readers), *[id(getattr(reader, "__code__", None)) for reader in readers]}
        return readers, [e for e in self.named if not unseen & {id(e.code), id(e.function)}]

    def refuse_iterators(self, name: str):
        """Raise RuntimeError for an iterator or a queue: a trace takes elements from it, which an
        uncompiled run then lacks.
        """
        for read in self.named:
            if read.is_used_up:
                error = RuntimeError(USED_UP.format(name=name, read=read.text))
                error.place = read.place
                raise error

    def put_back(self):
        """Give the generators the states of before the trace."""
        for key, generator in self.generators.items():
            self.before[key].restore(generator)


@contextlib.contextmanager
def put_back_after_errors(state):
    """Put a state back where the block fails, by an interrupt or a lack of memory too."""
    try:
        yield
    except BaseException:
        state.put_back()
        raise


def _kind(generator) -> str:
    return getattr(generator, "__name__", f"a {type(generator).__name__}")


class StateOf:
    """The state of a generator. `shown`: its numbers, for a comparison."""

    def __init__(self, generator):
        if isinstance(generator, np.random.Generator):
            self.state = generator.bit_generator.state
            self.shown = repr(self.state)
            return
        is_pythons = isinstance(generator, random.Random) or generator is random
        self.state = generator.getstate() if is_pythons else generator.get_state()
        arrays = [part.tobytes() if isinstance(part, np.ndarray) else part for part in self.state]
        self.shown = tuple(arrays)

    def restore(self, generator):
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = self.state
        elif isinstance(generator, random.Random) or generator is random:
            generator.setstate(self.state)
        else:
            generator.set_state(self.state)


# ---- names in the code


class Named(NamedTuple):
    """A read that code names: its words, the generator that it draws from, the value at the end of
    its name, the code object, the line, and whether a trace uses up the source.
    """

    text: str
    generator: object
    function: object
    code: types.CodeType
    place: str
    is_used_up: bool = False


def _named(function):
    """Yield the reads in the code of a function and of the functions and modules that it names."""
    waiting, seen = _entries(function), set()
    while waiting and len(seen) < MOST_FUNCTIONS:
        entered, owner = waiting.pop()
        is_library = bool(seen) and is_of_library(entered.__module__)
        if is_library or (entered, id(owner)) in seen:
            continue
        seen.add((entered, id(owner)))
        dotted = [(code, *pair) for code in codes(entered.__code__) for pair in _dotted(code)]
        for code, names, line in dotted:
            values = _values(names, entered, owner)
            yield from _reads(names, values, code, line)
            if len(values) == len(names):
                waiting += _entries(values[-1], values[-2] if len(values) > 1 else None)


def modules_of(value) -> list:
    """The modules that a value is and contains; none if it is no module.

    Unlike `value.modules()` it accepts objects without submodules whose class became a module's
    after they were created.
    """
    is_module = isinstance(getattr(type(value), "named_modules", None), types.FunctionType)
    modules, unmet = {}, [value] if is_module else []
    while unmet:
        module = unmet.pop()
        if module is not None and id(module) not in modules:
            modules[id(module)] = module
            unmet += vars(module).get("_modules", {}).values()
    return list(modules.values())


def _entries(value, owner=None) -> list:
    """The Python functions that a call of a value runs, each with the object it belongs to."""
    if "__wrapped__" in getattr(value, "__dict__", ()):
        return _entries(value.__wrapped__, owner)
    if isinstance(value, functools.partial):
        return _entries(value.func)
    if isinstance(value, types.MethodType):
        return _entries(value.__func__, value.__self__)
    if isinstance(value, types.FunctionType):
        return [(value, owner)]
    entries = [(getattr(type(module), "forward", None), module) for module in modules_of(value)]
    entries.append((vars(type(value)).get("__call__"), value))
    return [entry for entry in entries if isinstance(entry[0], types.FunctionType)]


@functools.lru_cache(maxsize=4096)
def _dotted(code) -> list[tuple[tuple, int]]:
    """The names with attributes that code reads, as ("time", "perf_counter"), and their lines."""
    dotted, is_open = [], False
    for operation in dis.get_instructions(code):
        if operation.opname in ("LOAD_ATTR", "LOAD_METHOD") and is_open:
            dotted[-1][0].append(operation.argval)
        elif operation.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST")):
            name = operation.argval if isinstance(operation.argval, str) else operation.argval[-1]
            dotted.append(([name], operation.positions.lineno))
            is_open = True
        else:
            is_open = False
    return [(tuple(names), line) for names, line in dotted]


def _values(names, function, owner) -> list:
    """The values of a dotted name, as far as they are known without running code."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    if names[0] in cells:
        value = cell_value(cells[names[0]])
    elif names[0] == next(iter(code.co_varnames), None):
        value = UNSET if owner is None else owner
    elif names[0] in code.co_varnames:
        value = UNSET
    else:
        value = function.__globals__.get(names[0], _BUILTINS.get(names[0], UNSET))
    values = []
    for name in (*names[1:], None):
        if value is UNSET or type(value) in weakref.ProxyTypes:  # whose object may be gone
            break
        values.append(value)
        value = _attribute(value, name)
    return values


_BUILTINS = {"open": open}


def _attribute(value, name):
    """An attribute as it is stored; UNSET where it is computed."""
    attribute = getattr(value, "__dict__", {}).get(name, UNSET)
    if attribute is UNSET and not isinstance(value, type | types.ModuleType):
        attribute = inspect.getattr_static(type(value), name, UNSET)
        return attribute if isinstance(attribute, types.FunctionType) else UNSET
    return attribute


def _reads(names, values, code, line):
    """Yield the read that a dotted name is, if it is one."""
    place = f"{code.co_filename}:{line}"
    text = ".".join(names)
    last = values[-1] if values else None
    is_moment = names[-1] in ("now", "utcnow", "today") and _MOMENTS & set(map(id, values))
    if isinstance(last, types.BuiltinFunctionType | types.MethodType):
        values = (*values, last.__self__)  # of `from random import random`
    has_no_state = any(isinstance(value, random.SystemRandom) for value in values)
    is_queue = names[-1][:3] == "get" and any(isinstance(value, _QUEUES) for value in values)
    is_used_up = is_queue or _is_iterator(last)
    if has_no_state or is_moment or is_used_up or _READS & set(map(id, values)):
        yield Named(text, None, last, code, place, is_used_up)
        return
    for value in values:
        if value is random or value is np.random or isinstance(value, _GENERATORS):
            yield Named(text, _MODULE_OF.get(id(value), value), last, code, place)


def _is_iterator(value) -> bool:
    """Whether a value is an iterator whose state is hidden: a generator, `iter([])`, `zip()`, that
    of a DataLoader.
    """
    root = type(value).__module__.partition(".")[0]
    return isinstance(value, Iterator) and root in ("builtins", "itertools", "jaxgrad")


# the instances whose methods are the functions of these modules
_MODULE_OF = {id(random.random.__self__): random, id(np.random.random.__self__): np.random}
