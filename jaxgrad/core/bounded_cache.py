"""Caches of bounded size, which drop the entries that have not been used for the longest time.

A kernel takes 1.4 MB, which JAX frees together with the kernel. Without a bound each new shape
would cost as much for ever. A hit must cost no more than a lookup in a dict, so uses are not
counted. Instead a cache has generations: an entry that is found in an older generation moves to the
youngest, and the oldest generations are dropped. A hit in the youngest generation is a lookup in a
dict.

Entries may depend on a setting of the process, such as the default dtype. A generation belongs to
the settings under which it began: a change of a setting begins a new generation, and `find` looks
only at generations of the settings in force.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import threading
import weakref
from typing import NamedTuple

import jax

# How many kernels of operators are kept, how many programs of each compiled function, and how many
# bytes of executables of both together. Eager training of MobileNetV2 takes 0.9 GB, and 1.3 GB with
# its evaluation and a last batch of another size.
LIMITS = {"kernels": 2048, "programs": 128, "bytes": 2**31}

# How many turns there are while a limit is made once, so 8 generations are full. With fewer, the
# entries of too long a time go at once; with more, too many hits are the first after a turn.
TURNS = 8


# after so many bytes that caches have dropped the garbage is collected: a collection looks at all
# objects of JAX and jaxgrad, which takes 0.1 to 0.25 s
MOST_DROPPED = 2**26


class Weight(NamedTuple):
    """The weight of a cache entry: how many entries and how many bytes it counts as."""

    number: float
    bytes: float


def weight_of_kernel(equations=0) -> Weight:
    """The weight of a kernel whose jaxpr has so many equations.

    JAX reports no size of executables on a CPU. In resident memory the smallest take 1.3 to 1.45
    MB, and jaxprs of 200 to 2600 equations 5 to 23 KB an equation.
    """
    return Weight(1, 1.4e6 + 1e4 * equations)


KERNEL = weight_of_kernel()

# an entry without a kernel of its own: a few kilobytes
ENTRY = Weight(1 / 16, 5e3)

# a program that only the host has run: its calls take as long to note as those of a kernel
HOSTED = Weight(1 / 2, 1.2e4)


def total(weights) -> Weight:
    """The sum of weights."""
    weights = list(weights)
    return Weight(sum(weight.number for weight in weights), sum(weight.bytes for weight in weights))


# taken where something is missing, never for a hit
_lock = threading.RLock()

_times = itertools.count()

# by name the settings that may change what is kept, and all of them as a part of a generation's key
_settings: dict[str, object] = {}
_in_force: tuple = ()


class Clock:
    """Ages the caches that share a limit, each time when entries for a fixed share of it have been
    added.

    limit: its name in LIMITS; measure: the position in a weight of the limited quantity.
    """

    def __init__(self, limit: str, measure=0):
        self.limit, self.measure, self.added = limit, measure, 0
        self.caches: weakref.WeakValueDictionary[int, BoundedCache] = weakref.WeakValueDictionary()
        _clocks[id(self)] = self

    def count(self, weight: Weight = ENTRY):
        """Count the weight of new entries, and turn once a share of the limit is reached."""
        with _lock:
            self.added += weight[self.measure]
            is_due = self.added >= LIMITS[self.limit] / TURNS
            if is_due:
                self.added = 0
        if is_due:
            self.turn()
        if self is not memory:
            memory.count(weight)

    def turn(self):
        """Begin a new generation, and drop the oldest ones, as many as the limit demands."""
        with _lock:
            caches, time = living(self.caches), next(_times)
            for cache in caches:
                cache.age(time)
            # room for what is made until the next turn
            most = LIMITS[self.limit] * (1 - 1 / TURNS)
            sizes = before = [cache.size() for cache in caches]
            while sum(size[self.measure] for size in sizes) > most:
                oldest = min(time for cache in caches for time in cache.older)
                for cache in caches:
                    cache.older.pop(oldest, None)
                sizes = [cache.size() for cache in caches]
            memory.dropped += total(before).bytes - total(sizes).bytes
            is_due = memory.dropped >= MOST_DROPPED
            if is_due:
                memory.dropped = 0
        if is_due:
            # programs and their kernels refer to each other; without the lock, since finalizers run
            gc.collect()


class Memory(Clock):
    """Ages all caches, and those of JAX. `dropped`: bytes that no collection has given back."""

    def __init__(self):
        super().__init__("bytes", measure=1)
        self.turns, self.dropped = 0, 0

    def turn(self):
        super().turn()
        self.turns += 1
        if self.turns % TURNS == 0:
            forget_traces()


_clocks: weakref.WeakValueDictionary[int, Clock] = weakref.WeakValueDictionary()
kernels, memory = Clock("kernels"), Memory()


def living(weak: weakref.WeakValueDictionary) -> list:
    """The values of a weak dict, copied: threads and finalizers may add others meanwhile."""
    return [value for reference in weak.valuerefs() if (value := reference()) is not None]


_Jitted = type(jax.jit(len))
# those found so far: a later search misses what gc.freeze() has put away
_jitted: weakref.WeakSet = weakref.WeakSet()


@functools.lru_cache(maxsize=1)
def _find_jitted(_modules: int):
    """Find JAX's own jitted functions, again when modules were imported."""
    for candidate in gc.get_objects():
        # isinstance would ask a weakref.proxy for its object, which may be gone
        # what was defined outside of modules, as by exec, has the module None
        if type(candidate) is _Jitted and (candidate.__module__ or "").partition(".")[0] == "jax":
            _jitted.add(candidate)


def forget_traces():
    """Empty JAX's caches of its own functions. They keep the jaxprs of all shapes for ever, 5 KB
    each, even those that belonged to a dropped kernel.
    """
    with _lock:
        _find_jitted(len(sys.modules))
        functions = list(_jitted)
    for function in functions:
        function.clear_cache()


def set_limits(**limits):
    """Set limits in LIMITS by name, and drop what is beyond them."""
    LIMITS.update(limits)
    for clock in living(_clocks):
        clock.turn()


def set_setting(name: str, value):
    """Tell the caches that a setting changed: entries made under other values are found again only
    under these.
    """
    global _in_force
    with _lock:
        time = next(_times)
        for cache in living(memory.caches):
            cache.age(time)
        _settings[name] = value
        _in_force = tuple(_settings.items())


def settings_in_force() -> tuple:
    """All settings that may change what is kept, as a part of a key."""
    return _in_force


def forget_all():
    """Empty all caches."""
    with _lock:
        for cache in living(memory.caches):
            cache.clear()
    gc.collect()
    forget_traces()


class BoundedCache(dict):
    """The youngest generation of a cache. `older` has the other generations, by the time when each
    ended, with the settings under which it was made.

    `get` finds entries used since the last turn; after a miss `find` looks at the older
    generations. weigh: gives the weight of a value. clock: counts the entries.
    """

    __slots__ = ("__weakref__", "clock", "older", "weigh")

    def __init__(self, clock: Clock, weigh):
        self.clock, self.weigh = clock, weigh
        self.older: dict[int, tuple[tuple, dict]] = {}
        clock.caches[id(self)] = memory.caches[id(self)] = self

    def find(self, key):
        """The value of a key in a generation of the settings in force, which moves to the youngest;
        None without one.
        """
        with _lock:
            if key in self:
                return self[key]
            for settings, generation in reversed(self.older.values()):
                if settings == _in_force and key in generation:
                    value = self[key] = generation.pop(key)
                    return value
        return None

    def keep(self, key, value):
        """Add a value unless the key has one already, as from another thread; returns the kept
        value.
        """
        with _lock:
            kept = self.find(key)
            if kept is None:
                kept = self[key] = value
        if kept is value:
            self.clock.count()
        return kept

    def all_values(self) -> list:
        """The values of all generations."""
        with _lock:
            generations = [self, *(older for _, older in reversed(self.older.values()))]
            return [value for generation in generations for value in list(generation.values())]

    def size(self) -> Weight:
        """The weight of its values."""
        return total(map(self.weigh, self.all_values()))

    def age(self, time: int):
        """Make the youngest generation an older one, that ended at this time."""
        self.older = {time: older for time, older in self.older.items() if older[1]}
        if self:
            self.older[time] = _in_force, dict(self)
            super().clear()

    def clear(self):
        """Forget everything."""
        self.older.clear()
        super().clear()


class _Remembered(BoundedCache):
    """A cache whose youngest generation is also in a faster one, which is asked first."""

    __slots__ = ("forget",)

    def age(self, time):
        super().age(time)
        self.forget()

    def clear(self):
        super().clear()
        self.forget()


def bounded(weigh=lambda result: KERNEL):
    """A decorator like `functools.cache`, for a function whose results hold kernels."""

    def decorate(make):
        cache = _Remembered(kernels, weigh)

        @functools.cache
        def call(*key):
            result = cache.find(key)
            return cache.keep(key, make(*key)) if result is None else result

        cache.forget = call.cache_clear
        return functools.update_wrapper(call, make)

    return decorate
