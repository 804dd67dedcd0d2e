"""Results that come later: torch.futures.Future."""

from __future__ import annotations

import logging
import threading
import typing

from ..core import device as device_module

_T_co = typing.TypeVar("_T_co", covariant=True)
logger = logging.getLogger(__name__)

COMPLETED = (
    "Attempting to mark a completed Future as complete again. Note that a Future can only be "
    "marked completed once."
)
# the names of the threads in which jaxgrad compiles: they set no future
_COMPILING = ("jaxgrad-compiler", "jaxgrad template")
_STEP = 0.1  # seconds between two looks for a thread that may still set the result


class Future(typing.Generic[_T_co]):
    """A result that another thread, or later code, sets.

    devices: those of the tensors in the result, which have numbers. Raises ValueError for devices
    without a number, RuntimeError for those that are not there.

    >>> future = jaxgrad.futures.Future()
    >>> following = future.then(lambda done: done.value() + 1)
    >>> future.set_result(2)
    >>> following.wait()
    3
    """

    def __init__(self, *, devices=None):
        for device in map(device_module.device, devices or ()):
            if device.index is None:
                raise ValueError(f"Expected devices to have indices, got {device}")
        self._value, self._error, self._is_done, self._callbacks = None, None, False, []
        self._condition = threading.Condition()

    def __getstate__(self):
        raise RuntimeError("Can not pickle torch.futures.Future")

    def done(self) -> bool:
        """Return whether the result or an error is there."""
        return self._is_done

    def set_result(self, result: typing.Any) -> None:
        """Set the result, and call the callbacks. Raises RuntimeError if it is there already."""
        self._complete(result, None)

    def set_exception(self, result: Exception) -> None:
        """Set the error that `wait` raises in place of a result.

        Raises AssertionError for anything that is no exception, RuntimeError if a result is there.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value, error):
        with self._condition:
            if self._is_done:
                raise RuntimeError(COMPLETED)
            self._value, self._error, self._is_done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback()

    def wait(self) -> _T_co:
        """Return the result once it is there, or raise the error that is set in its place.

        Raises RuntimeError where no other thread runs that could set it.
        """
        with self._condition:
            while not self._is_done:
                if not _others_run():
                    raise RuntimeError(
                        "Future.wait(): nothing has set the result, and no thread will"
                    )
                self._condition.wait(_STEP)
        return self.value()

    def value(self) -> _T_co:
        """Return the result, or raise the error in its place. Raises RuntimeError without both."""
        if not self._is_done:
            raise RuntimeError("Future.value(): the result is not there yet: wait() for it")
        if self._error is not None:
            raise self._error
        return self._value

    def add_done_callback(self, callback) -> None:
        """Call `callback(future)` once the result is there; its errors are logged.

        Raises TypeError for what cannot be called.
        """
        _check_callable("add_done_callback", callback)

        def call():
            try:
                callback(self)
            except Exception as error:
                logger.exception("Got the following error when running the callback: %r", error)

        self._when_done(call)

    def then(self, callback) -> Future:
        """Return the future of `callback(future)`, which is called once the result is there.

        The error of a callback becomes a RuntimeError of that future. Raises TypeError for what
        cannot be called.
        """
        _check_callable("then", callback)
        following = Future()

        def call():
            try:
                value = callback(self)
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                failure = RuntimeError(f"Got the following error when running the callback: {text}")
                failure.__cause__ = error
                following.set_exception(failure)
            else:
                following.set_result(value)

        self._when_done(call)
        return following

    def _when_done(self, call):
        with self._condition:
            if not self._is_done:
                self._callbacks.append(call)
                return
        call()


def _check_callable(name, callback):
    if not callable(callback):
        raise TypeError(
            f"{name}(): incompatible function arguments: a callback is a function, not "
            f"{type(callback).__name__}"
        )


def _others_run() -> bool:
    """Whether a thread runs besides this one and those that compile."""
    threads = (thread for thread in threading.enumerate() if not thread.name.startswith(_COMPILING))
    return any(thread is not threading.current_thread() for thread in threads)


def collect_all(futures: list[Future]) -> Future:
    """Return a future whose result is the list of these futures, once all have a result.

    It has the first of their errors. Raises TypeError for anything but futures.

    >>> jaxgrad.futures.collect_all([]).wait()
    []
    """
    futures, collected = list(futures), Future()
    for future in futures:
        if not isinstance(future, Future):
            raise TypeError(
                "_collect_all(): incompatible function arguments: a list of futures is expected, "
                f"not one with {type(future).__name__}"
            )

    def complete(future):
        if collected.done():
            return
        if future._error is not None:
            collected.set_exception(future._error)
        elif all(future.done() for future in futures):
            collected.set_result(futures)

    if not futures:
        collected.set_result(futures)
    for future in futures:
        future.add_done_callback(complete)
    return collected


def wait_all(futures: list[Future]) -> list:
    """Return the results of futures, once all are there. Raises the first of their errors.

    >>> future = jaxgrad.futures.Future()
    >>> future.set_result(3)
    >>> jaxgrad.futures.wait_all([future])
    [3]
    """
    return [future.wait() for future in collect_all(futures).wait()]
