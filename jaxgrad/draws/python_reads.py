"""Replaces the functions and methods by which Python draws random numbers, tells the time and asks
the operating system, where they are defined and while a function is traced.

What cannot be replaced where it is defined has stand-ins (stand_ins.py). Replacements and stand-ins
pass on the calls of threads that trace nothing.
"""

from __future__ import annotations

import builtins
import contextlib
import datetime
import functools
import itertools
import math
import os
import queue
import random
import sys
import threading
import time
from functools import partial

import numpy as np
from numpy.random import bit_generator

from ..state.ownership import is_internal
from ..tape import interception, mode
from .drawn_steps import TAKING
from .environment import replaced_methods
from .outside import REFUSED, REFUSED_OF_MODULES, REPEATED, is_of_function, is_read

PYTHONS, NUMPYS = random._inst, np.random.mtrand._rand
NUMPY_GENERATORS = (np.random.Generator, np.random.RandomState)
GENERATORS = (random.Random, *NUMPY_GENERATORS)

# methods of `random.Random` whose code makes its draws by others: it runs as any code of the user's
_COMPOSED = frozenset(["choice", "choices", "sample", "shuffle"])
RANDOM_METHODS = (
    "random",
    "uniform",
    "triangular",
    "gauss",
    "normalvariate",
    "lognormvariate",
    "expovariate",
    "vonmisesvariate",
    "gammavariate",
    "betavariate",
    "paretovariate",
    "weibullvariate",
    "binomialvariate",
    "randint",
    "randrange",
    "getrandbits",
    "randbytes",
    "_randbelow",
    "seed",
    "getstate",
    "setstate",
)
# methods of NumPy's generators that write to an array of the caller's
_WRITING = frozenset(["shuffle"])
_CLOCKS = (
    "time",
    "time_ns",
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "monotonic_ns",
    "process_time",
    "process_time_ns",
    "thread_time",
    "thread_time_ns",
    "clock_gettime",
    "clock_gettime_ns",
    "localtime",
    "gmtime",
    "ctime",
    "strftime",
)
# methods that tell what other threads have done
_TELLING = {
    queue.Queue: ("qsize", "empty", "full"),
    threading.Event: ("is_set", "wait"),
    threading.Thread: ("is_alive",),
}


def drawing():
    """The run that takes in draws here; None if there is none, and for the code of JAX and the
    library.
    """
    run = mode.drawn_run.get()
    return None if run is None or is_internal(_caller(sys._getframe(2))) else run


def _caller(frame):
    """The first function outside of Python's own modules, from one of their frames on."""
    while frame.f_back is not None and _is_of_python(frame):
        frame = frame.f_back
    return frame


def _is_of_python(frame) -> bool:
    root = frame.f_globals.get("__name__", "").partition(".")[0]
    return root in sys.stdlib_module_names and root != "__main__"


def _method(name, plain):
    """A replacement of a method in Python, which reports its results."""

    @functools.wraps(plain)
    def method(self, *args, **kwargs):
        run = drawing()
        if run is None or run.is_own(self):
            if run is not None and name == "seed" and not (args or kwargs) and _seeds(plain):
                run.refuse("a generator gets its seed from the operating system")
            return plain(self, *args, **kwargs)
        event = name if name in TAKING else f"{type(self).__name__}.{name}"
        return run.event(self, event, plain, args, kwargs)

    return method


def _seeds(plain) -> bool:
    return plain is not random.SystemRandom.seed


class Call:
    """Stands for a function that draws or tells the time."""

    def __init__(self, function, owner, name, of_system=False):
        """of_system: whether the operating system is asked, which other code does too."""
        self.original, self._owner, self._name = function, owner, name
        self._of_system = of_system
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args, **kwargs):
        run, function = drawing(), self.original
        if run is None or run.is_own(self._owner):
            return function(*args, **kwargs)
        if self._of_system and not is_of_function(sys._getframe(1)):
            return function(*args, **kwargs)
        if self._name.rpartition(".")[2] in _WRITING or "out" in kwargs:
            run.refuse(f"{self._name} writes to an array")
            with run.outside():
                return function(*args, **kwargs)
        return run.event(self._owner, self._name, _without_owner(function), args, kwargs)

    def __getattr__(self, name):
        return getattr(self.original, name)


class OfNumbers:
    """Replaces a function of `math` or NumPy, which may get drawn numbers."""

    def __init__(self, function):
        self.original = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args, **kwargs):
        run = mode.drawn_run.get()
        # a number has a method for these
        is_own = self.original in (math.floor, math.ceil, math.trunc)
        if run is None or is_own or not run.computes(args):
            return self.original(*args, **kwargs)
        return run.derived(self.original, args, kwargs)


def _without_owner(function):
    return lambda owner, *args, **kwargs: function(*args, **kwargs)


class Refusal:
    """Replaces a function whose results no later call can get again."""

    def __init__(self, function, why):
        self.original, self._why = function, why
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args, **kwargs):
        run = drawing()
        is_taken_in = run is not None and is_read(self._why, args, kwargs)
        if is_taken_in and is_of_function(sys._getframe(1)):
            run.refuse(self._why)
            with run.outside():
                return self.original(*args, **kwargs)
        return self.original(*args, **kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)


class Today(type):
    """The metaclass of the replacement of `datetime`: instances of the real class are its
    instances.
    """

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.original)

    def __subclasscheck__(cls, other):
        return issubclass(other, cls.original)

    def __call__(cls, *args, **kwargs):
        return cls.original(*args, **kwargs)

    def __getattribute__(cls, name):
        original = type.__getattribute__(cls, "original")
        if name in ("original", "__class__"):
            return original if name == "original" else Today
        attribute = getattr(original, name)
        if name in ("now", "utcnow", "today"):
            return Call(attribute, time, f"datetime.{name}")
        return attribute


def _datetime(kind):
    return Today(kind.__name__, (), {"original": kind})


def _draws():
    """Yield the functions that draw numbers or take them: the owner, the name, and the
    replacement.
    """
    for kind in (random.Random, random.SystemRandom):
        for name in RANDOM_METHODS:
            plain = getattr(kind, name, None)
            is_new = kind is random.Random or name in vars(kind)
            if plain is not None and is_new:
                yield kind, name, _method(name, plain)
    for name in RANDOM_METHODS:
        if hasattr(random, name):
            yield random, name, Call(getattr(random, name), PYTHONS, f"random.{name}")
    for name, function in vars(math).items():
        if callable(function):
            yield math, name, OfNumbers(function)
    for name in ("array", "asarray"):
        yield np, name, OfNumbers(getattr(np, name))
    for name in dir(np.random):
        value = getattr(np.random, name)
        if getattr(value, "__self__", None) is NUMPYS:
            yield np.random, name, Call(value, NUMPYS, f"numpy.random.{name}")
    yield bit_generator, "randbits", Refusal(bit_generator.randbits, "a generator has no seed")


def _reads():
    """Yield what reads from outside, in the same form."""
    for name in filter(partial(hasattr, time), _CLOCKS):
        yield time, name, Call(getattr(time, name), time, f"time.{name}")
    for name in filter(partial(hasattr, os), REPEATED):
        yield os, name, Call(getattr(os, name), os, f"os.{name}", of_system=True)
    yield datetime, "datetime", _datetime(datetime.datetime)
    yield datetime, "date", _datetime(datetime.date)
    for owner, name, why in REFUSED:
        if hasattr(owner, name):
            yield owner, name, Refusal(getattr(owner, name), why)
    yield queue.Queue, "get", _method("get", queue.Queue.get)
    for kind, names in _TELLING.items():
        for name in names:
            yield kind, name, _method(name, getattr(kind, name))
    yield from replaced_methods()


class _Replacements(interception.Members):
    """The replacements: `by_function`: by the id of a function its replacement where it has another
    name; `by_method`: by class and name the replacement of a method.
    """

    def __init__(self):
        super().__init__()
        self.by_function: dict[int, object] = {}
        self.by_method: dict[tuple, object] = {}
        self.modules = dict(REFUSED_OF_MODULES)
        for target, name, stand_in in itertools.chain(_draws(), _reads()):
            self.add(target, name, stand_in)

    def add(self, target, name, stand_in):
        """Replace a function or a method by what stands for it."""
        super().add(target, name, stand_in)
        if isinstance(target, type):
            self.by_method[target, name] = stand_in
        elif target is not builtins:
            self.by_function[id(getattr(target, name))] = stand_in

    def take_in_modules(self):
        """Replace more in modules that have been imported since."""
        for module in filter(_is_imported, [*self.modules]):
            for kind, names, why in self.modules.pop(module, ()):  # another thread may be first
                place = sys.modules[module]
                owner = place if kind is None else getattr(place, kind, None)
                for name in names if hasattr(owner, names[0]) else ():
                    self.add(owner, name, Refusal(getattr(owner, name), why))


def _is_imported(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


# what is there when jaxgrad is imported: what a program replaces later stays
replacements = _Replacements()


@contextlib.contextmanager
def replaced(user):
    """Replace functions and methods inside of the block."""
    try:
        replacements.replace(user)
        yield
    finally:
        replacements.restore(user)
