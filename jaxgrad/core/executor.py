"""Who runs a program. Nothing else compiles one or calls what was compiled.

Two executors: `immediate` runs a program as one compiled XLA kernel, `inline` adds its operations
to the trace that is under way. `prepare` chooses by the program's mode and leaves the result at
`program.kernel`.
"""

from __future__ import annotations

import functools
import threading
import weakref

import jax
import jax.numpy as jnp
from jax.extend.core import get_opaque_trace_state

from .aval import IMMEDIATE, Aval
from .program import Program, is_bare


def prepare(program: Program) -> Program:
    """Give the program its kernel: from arrays to one array, or to a tuple of arrays where it has
    several outputs.
    """
    if program.kernel is None:
        adopt(program, _kernel_of(program))
    return program


def _kernel_of(program: Program):
    if program.compact is not program:
        return prepare(program.compact).unobserved
    return immediate(program) if program.mode == IMMEDIATE else inline(program)


def immediate(program: Program):
    single = program.single

    def value(*arrays):
        results = program.value(*arrays)
        return results[0] if single else results

    value.__name__ = value.__qualname__ = program.name
    kernel = with_wide_types(jax.jit(value)) if program.wide else jax.jit(value)
    return kernel if program.precondition is None else checked(kernel, program.precondition)


def checked(kernel, precondition):
    """`kernel` behind a check of the numbers it is called with, which raises where they do not
    suit.
    """

    def call(*arrays):
        precondition(*arrays)
        return kernel(*arrays)

    return call


def inline(program: Program):
    single = program.single

    def value(*arrays):
        results = program.value(*arrays) if is_bare() else program.function(*arrays)
        return results[0] if single else results

    return value


def with_wide_types(function):
    """`function` called with JAX's 64-bit types switched on, its compilation included."""

    @functools.wraps(function)
    def call(*arrays):
        with jax.enable_x64(True):
            return function(*arrays)

    return call


class NamedKernel:
    """What is computed beside programs, as observers see it: a name and a kernel.

    inputs: of a user's own function, whose name it is, its arguments.
    """

    mode = IMMEDIATE

    def __init__(self, name: str, inputs: tuple | None = None):
        self.name, self.inputs = name, inputs


_lock = threading.RLock()
_prepared: weakref.WeakSet = weakref.WeakSet()  # all that has a kernel that computes here and now

# who sees every run of a kernel; the first stands next to the kernel
observers: tuple = ()


def adopt(program, kernel):
    """Give a program, or a step, its kernel. Gives the program."""
    with _lock:
        program.unobserved = kernel
        if program.mode == IMMEDIATE:
            _prepared.add(program)
            kernel = observed(program, kernel)
        program.kernel = kernel
    return program


def observed(program, kernel):
    """`kernel` as those who observe have it run."""
    for observer in observers:
        kernel = functools.partial(observer, program, kernel)
    return kernel


def observe(observer, nearest=False):
    """Have every kernel run as `observer(program, kernel, *arrays)`, in all threads, until
    `unobserve`. Nobody pays for it before or after.

    nearest: stand between the kernel and those who observe already, not around them.
    """
    global observers
    with _lock:
        observers = (observer, *observers) if nearest else (*observers, observer)
        _follow_observers()


def unobserve(observer):
    """Have an observer see no more."""
    global observers
    with _lock:
        observers = tuple(each for each in observers if each != observer)
        _follow_observers()


def _follow_observers():
    for program in list(_prepared):
        program.kernel = observed(program, program.unobserved)


def run(name: str, function, *args, inputs=None):
    """`function(*args)`, which no program computes; observers see it as a NamedKernel."""
    if not observers:
        return function(*args)
    return observed(NamedKernel(name, inputs), function)(*args)


_add = adopt(NamedKernel("add"), jax.jit(jnp.add))
_wide_add = adopt(NamedKernel("add"), with_wide_types(_add.kernel))


def add(first, second, wide: bool):
    """The sum of two arrays of one shape and dtype, which is `wide` when it has 64 bits."""
    if isinstance(first, jax.core.Tracer) or isinstance(second, jax.core.Tracer):
        return first + second
    return _wide_add.kernel(first, second) if wide else _add.kernel(first, second)


@functools.lru_cache(maxsize=1024)
def _filler(aval: Aval, value) -> NamedKernel:
    kernel = with_wide_types(jax.jit(lambda: jnp.full(aval.shape, value, aval.dtype.numpy)))
    return adopt(NamedKernel({0: "zeros_like", 1: "ones_like"}.get(value, "full")), kernel)


def filled(aval: Aval, value):
    """A new array of one value. Never a shared one, which somebody might donate."""
    if aval.mode == IMMEDIATE:
        return _filler(aval, value).kernel()
    return jnp.full(aval.shape, value, jax.dtypes.canonicalize_dtype(aval.dtype.numpy))


_probe = jax.jit(lambda: jnp.zeros((), bool), inline=True)
_untraced = None  # the state of JAX's traces that was last found to compute here and now


def is_traced() -> bool:
    """Whether JAX computes here and now, or a trace is under way: inside `jax.jit`, but not inside
    `jax.grad` alone."""
    global _untraced
    state = get_opaque_trace_state()
    if state == _untraced:
        return False
    traced = isinstance(_probe(), jax.core.Tracer)
    if not traced:
        _untraced = state
    return traced
