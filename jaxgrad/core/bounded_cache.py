"""Caches whose size is bounded: what has not been used for the longest time goes.

A kernel takes 1.5 MB that JAX frees with the kernel, so each new shape would cost that for ever.
A hit must cost no more than a lookup in a dict, so no use is noted. Instead a cache has
generations: what is found in an older one moves to the youngest, and the oldest ones are dropped.
So whatever is found in the youngest generation is found at the price of a dict.
"""

from __future__ import annotations

import functools
import gc
import threading
import weakref

# how many kernels of operators are kept, and how many programs of each compiled function
LIMITS = {"kernels": 2048, "programs": 128}

# The part of a limit that is made between two turns, so 8 generations are full. With fewer, the
# entries of too long a time go at once; with more, too many hits are the first after a turn.
SHARE = 1 / 8

# what an entry without a kernel of its own counts as, in kernels: a few kilobytes
ENTRY = 1 / 16

# taken where something is missing, never for a hit
_lock = threading.RLock()


class Clock:
    """Ages the caches that share a limit, each time when a share of it has been made.

    limit: its name in LIMITS.
    """

    def __init__(self, limit: str):
        self.limit, self.made = limit, 0
        self.caches: weakref.WeakValueDictionary[int, BoundedCache] = weakref.WeakValueDictionary()
        _clocks[id(self)] = self

    def count(self, made=ENTRY):
        """Count what was made, and turn where a share of the limit is reached."""
        with _lock:
            self.made += made
            is_due = self.made >= LIMITS[self.limit] * SHARE
            if is_due:
                self.made = 0
        if is_due:
            self.turn()

    def turn(self):
        """Begin a new generation, and drop the oldest ones, as many as the limit demands."""
        with _lock:
            caches, dropped = living(self.caches), False
            for cache in caches:
                cache.age()
            # room for what is made until the next turn
            most = LIMITS[self.limit] * (1 - SHARE)
            while sum(cache.size() for cache in caches) > most:
                oldest = max(len(cache.older) for cache in caches) - 1
                for cache in caches:
                    dropped |= any(cache.older[oldest:])
                    del cache.older[oldest:]
        if dropped:
            # programs and their kernels refer to each other; without the lock, since finalizers run
            gc.collect()


_clocks: weakref.WeakValueDictionary[int, Clock] = weakref.WeakValueDictionary()


def exact(value) -> tuple:
    """A value as a key. 1, 1.0 and True are equal, and so are 0.0 and -0.0, and NaN equals nothing;
    what is computed with them differs, and does not differ from one NaN to the next.
    """
    kind = type(value)
    if kind is complex or (kind is float and not (value > 0 or value < 0)):
        return kind, repr(value)
    return kind, value


def living(weak: weakref.WeakValueDictionary) -> list:
    """The values of a weak dict, copied: threads and finalizers may add others meanwhile."""
    return [value for reference in weak.valuerefs() if (value := reference()) is not None]


def set_limits(**limits):
    """Set limits in LIMITS by name, and drop what is beyond them."""
    LIMITS.update(limits)
    for clock in living(_clocks):
        clock.turn()


def forget_all():
    """Empty all caches."""
    with _lock:
        for clock in living(_clocks):
            for cache in living(clock.caches):
                cache.clear()
    gc.collect()


class BoundedCache(dict):
    """The youngest generation of a cache; in `older` the others, the younger ones first.

    `get` finds what was used since the last turn; after a miss `find` looks for the rest. weigh:
    what a value counts towards the limit of the clock.
    """

    __slots__ = ("__weakref__", "clock", "older", "weigh")

    def __init__(self, clock: Clock, weigh):
        self.clock, self.weigh, self.older = clock, weigh, []
        clock.caches[id(self)] = self

    def find(self, key):
        """The value of a key in any generation, then in the youngest; None without one."""
        with _lock:
            for generation in (self, *self.older):
                if key in generation:
                    found = self[key] = generation.pop(key)
                    return found
        return None

    def keep(self, key, value):
        """Add a value unless the key has one by now, as from another thread; returns the kept."""
        with _lock:
            kept = self.find(key)
            if kept is None:
                kept = self[key] = value
        if kept is value:
            self.clock.count()
        return kept

    def everything(self) -> list:
        """The values of all generations."""
        with _lock:
            return [value for each in (self, *self.older) for value in list(each.values())]

    def size(self) -> float:
        """What its values count."""
        return sum(map(self.weigh, self.everything()))

    def age(self):
        """Make the youngest generation an older one."""
        self.older.insert(0, dict(self))
        super().clear()

    def clear(self):
        """Forget everything."""
        self.older.clear()
        super().clear()


class _Remembered(BoundedCache):
    """A cache whose youngest generation is also in a faster one, which is asked first."""

    __slots__ = ("forget",)

    def age(self):
        super().age()
        self.forget()

    def clear(self):
        super().clear()
        self.forget()


kernels = Clock("kernels")


def bounded(weigh=lambda made: 1):
    """A decorator like `functools.cache`, for a function whose results hold kernels."""

    def decorate(make):
        cache = _Remembered(kernels, weigh)

        @functools.cache
        def call(*key):
            found = cache.find(key)
            return cache.keep(key, make(*key)) if found is None else found

        cache.forget = call.cache_clear
        return functools.update_wrapper(call, make)

    return decorate
