"""Pending results: they stand for arrays that core/deferred.py has not computed yet."""

import threading
import weakref

import numpy

from .bounded_cache import living

# the stretches of all threads (core/deferred.py): the calls of each that have not run,
# by its id
stretches: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


class _Noted(threading.local):
    stretch = None


# `stretch`: that of this thread, None before its first
noted = _Noted()


# whether nothing is noted, in all threads: while a function is captured
suspended = False


def suspend(is_captured: bool):
    """Note nothing while a function is captured."""
    global suspended
    suspended = is_captured


def run():
    """Run what is pending in this thread."""
    stretch = noted.stretch
    if stretch is not None and stretch.entries:
        stretch.run()


def run_all():
    """Run what is pending in all threads."""
    for stretch in living(stretches):
        stretch.run()


class Pending:
    """The result of a call that was noted, in place of an array.

    aval: the abstract value of that array; array: None until it has been computed; stretch: the
    calls among which it is, or in their place an `OwnCopy` or `HostValues`
    (core/host_values.py); place: the devices that it will be on, set only where JAX has several and
    the arguments of the call were moved there.
    """

    __slots__ = ("array", "aval", "place", "stretch")

    shape = property(lambda self: self.aval.shape)
    ndim = property(lambda self: len(self.aval.shape))
    dtype = property(lambda self: self.aval.dtype.numpy)
    size = property(lambda self: self.aval.shape.numel())
    nbytes = property(lambda self: self.size * self.aval.dtype.itemsize)

    def __array__(self, dtype=None, copy=None):
        """The numbers, for what checks the arguments of a call before it is noted."""
        if self.array is None and self.stretch.waits:
            self.stretch.peek(self)
        values = getattr(self.stretch, "values", None) if self.array is None else None
        return numpy.asarray(value_of(self) if values is None else values, dtype)


class OwnCopy:
    """An array that spans processes, in place of a stretch. The pending result is this process's
    copy of it. It costs time to take the copy, and a compiled step takes the array itself.
    """

    __slots__ = ("whole",)
    waits = False  # whether a result waits for calls
    is_new = False  # whether it is the numbers of a new tensor, which are on no device yet

    def __init__(self, whole):
        self.whole = whole

    def run(self, wanted: Pending):
        """Take the copy."""
        whole = self.whole
        if whole is not None:  # else another thread has
            wanted.array = whole.addressable_data(0)
            # no second reference to the memory, or a step could not donate it
            self.whole = None

    peek = run


class Failure:
    """The error with which a computation ended, in place of an array."""

    __slots__ = ("error",)

    def __init__(self, error: Exception):
        self.error = error


def value_of(value):
    """The array of a pending result, which is computed now; any other value itself. Raises the
    error with which the computation ended.
    """
    if type(value) is not Pending:
        return value
    if value.array is None:
        value.stretch.run(value)
        if value.array is None:
            value.stretch.run(value)  # the host has computed it, and an array is made now
    if type(value.array) is Failure:
        raise value.array.error
    return value.array


def numbers_of(value: Pending) -> numpy.ndarray:
    """The numbers of a pending result, which is computed now. No array is made for them."""
    if value.array is None and value.stretch.waits:
        value.stretch.run(value)
    return value.__array__()


def at_hand(value):
    """The array of a pending result that waits for no call, or the numbers that NumPy holds in its
    place; any other value itself.
    """
    if type(value) is not Pending or value.array is not None or value.stretch.waits:
        return value
    numbers = getattr(value.stretch, "values", None)
    return value_of(value) if numbers is None else numbers


def known(value):
    """The array of a pending result that has been computed; any other value itself."""
    if type(value) is not Pending or value.array is None or type(value.array) is Failure:
        return value
    return value.array
