"""Runs of programs that take the memory of their inputs: an interrupt or a lack of memory may lose
no tensor.

JAX deletes the inputs and then, whenever arguments are of a new kind (an array in place of NumPy's,
another setting of JAX), runs Python code before the results exist. So signals wait until they do. A
failed run deletes its inputs too, so before the first run memory is compared with what the program
needs, if the device tells how much it has. Later runs need the same memory.
"""

from __future__ import annotations

import _signal  # without the enumerations of `signal`, which take more time than a run
import collections
import itertools
import signal
import threading
from pathlib import Path

import jax

try:
    import resource
except ImportError:  # not on Windows
    resource = None

# lowered programs whose compilation was interrupted: XLA's threads go on and read them
interrupted: collections.deque = collections.deque(maxlen=64)

SIGNALS = sorted(map(int, signal.valid_signals()))


def run_whole(run, *arguments):
    """`run(*arguments)`; signals that arrive meanwhile are handled after it. Only the main thread
    handles any.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return run(*arguments)
    waiting, arrived = {}, []
    try:
        for number in itertools.compress(SIGNALS, map(callable, map(_signal.getsignal, SIGNALS))):
            waiting[number] = _signal.getsignal(number)
            _signal.signal(number, lambda *received: arrived.append(received))
        return run(*arguments)
    finally:
        handlers = waiting.copy()
        _put_back(waiting)
        for number, frame in arrived:
            handlers[number](number, frame)


def _put_back(handlers: dict):
    """Set the handlers of signals and remove them from the dict: all of them, even if one of those
    set again raises at once.
    """
    try:
        for number in [*handlers]:
            _signal.signal(number, handlers[number])
            del handlers[number]
    finally:
        if handlers:
            _put_back(handlers)


def inputs_of(name: str, compiled, inputs, donated: list[int]):
    """The inputs of the first run: copies of the inputs at the positions `donated`, if there is
    room for copies.

    compiled: the compiled program. Raises JaxRuntimeError with RESOURCE_EXHAUSTED if its results
    and intermediate values do not fit.
    """
    sizes = compiled.memory_analysis()
    if sizes is None:
        return inputs
    reused = sizes.alias_size_in_bytes
    needed = sizes.temp_size_in_bytes + sizes.output_size_in_bytes - reused
    devices = {device for n in donated for device in inputs[n].sharding.addressable_devices}
    for device in devices:
        room = free_bytes(device)
        if room is None:
            return inputs
        if needed > room:
            raise jax.errors.JaxRuntimeError(
                f"RESOURCE_EXHAUSTED: Out of memory: {name}, compiled by jaxgrad.jit, needs "
                f"{needed} bytes on {device}, besides its inputs, and {room} are free. Nothing has "
                "been changed: call it with smaller arguments, such as half of the batch"
            )
        if needed + reused > room:
            return inputs
    return [jax.numpy.copy(x) if n in donated else x for n, x in enumerate(inputs)]


def free_bytes(device) -> int | None:
    """The memory that is free on a device; None where nothing limits it."""
    known = device.memory_stats() or {}
    if "bytes_limit" in known:
        return known["bytes_limit"] - known.get("bytes_in_use", 0)
    if device.platform != "cpu" or resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = Path("/proc/self/statm")
    if limit == resource.RLIM_INFINITY or not used.exists():
        return None
    return limit - int(used.read_text().split()[0]) * resource.getpagesize()
