"""Compiles and runs programs; no other module does.

There are three executors: `immediate` compiles a program into one XLA kernel, `inline` adds its
operations to the current trace, `abstract` gives results without data. `prepare` chooses by the
program's mode and sets `program.kernel` (core/kernel.py).
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import operator
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy

from ..late import LateModule
from . import aval as avals
from . import bounded_cache, device, fork, spread, world
from . import kernel as kernels
from .aval import IMMEDIATE, META, Aval, meta_array
from .jax_internals import is_traced
from .jax_state import put_back_wide_types
from .kernel import Kernel
from .linalg_error import LinAlgError
from .meta_array import NO_DATA, MetaArray
from .pending import run_all, value_of
from .program import Program, Reverse, is_bare
from .spread import on_mesh

communication = LateModule("jaxgrad.core.communication")
disk_cache = LateModule("jaxgrad.core.disk_cache")
host_kernel = LateModule("jaxgrad.core.host_kernel")


# Which executor makes eager calls where both can: one alone, or "auto", the host and then XLA.
EXECUTORS = "host", "compiled"
chosen = "auto"


def choose(name: str):
    """Let one executor make eager calls, or both by "auto"."""
    global chosen
    chosen = name
    kernels.choose_all()


def prepare(program: Program) -> Program:
    """Set the program's kernel, unless it has one. It maps arrays to one array, or to a tuple of
    arrays if the program has several outputs.
    """
    if program.kernel is None:
        if program.compact is not program:
            # calls that differ only in the strides they show share one kernel
            program.kernel = prepare(program.compact).kernel.copy_for(program)
        else:
            kernel = Kernel(program)
            kernel.use(_function_of(kernel))
            program.kernel = kernel
    return program


def _function_of(kernel: Kernel):
    """The function of arrays by which a kernel computes at first."""
    program = kernel.program
    if program.mode == META:
        return abstract(program)
    return immediate(kernel) if avals.is_concrete(program.mode) else inline(program)


def immediate(kernel: Kernel):
    program, put = kernel.program, jax.device_put
    of_xla = among_processes(program) if world.is_several() else _late(kernel)
    if program.wide:
        of_xla, put = with_wide_types(of_xla), with_wide_types(put)

    def retire():
        count_compiled(kernel)
        kernel.host = None
        compiled = with_wide_types(program.to_compile) if program.wide else program.to_compile
        kernel.use(with_checks(kernel, compiled))

    def compile_later():
        count_compiled(kernel)
        lower = _lower_of(program)
        return in_background(lambda: disk_cache.compile(lower()))

    if not (program.may_run_on_host and host_kernel.has_one_cpu()):
        return with_checks(kernel, of_xla)
    kernel.host = host_kernel.HostKernel(program, of_xla, put, compile_later, retire)
    bounded_cache.kernels.count(bounded_cache.HOSTED)
    return with_checks(kernel, kernel.host)


def count_compiled(kernel: Kernel):
    """Count a kernel that XLA compiles towards the limits, once."""
    if not kernel.is_compiled:
        kernel.is_compiled = True
        bounded_cache.kernels.count(bounded_cache.weight_of_kernel(kernel.program.equations))


def _late(kernel: Kernel):
    """The kernel of XLA: JAX has no function to compile before its first call."""
    functions = []

    def call(*arrays):
        if not functions:
            count_compiled(kernel)
            functions.append(disk_cache.from_disk(kernel.program.to_compile))
        try:
            return functions[0](*arrays)
        except ValueError as error:
            raise device.of_tensors(kernel.program.name, error, arrays) from None

    return call


def among_processes(program: Program):
    """The kernel of a program where several processes train: one that communicates, or takes arrays
    of this process and arrays that span processes, runs on all.
    """
    trace = with_wide_types(program.trace) if program.wide else program.trace
    mesh = communication.mesh_of(trace(*map(avals.struct_of, program.inputs))[0])
    if mesh is None and avals.is_mixed(program.inputs):
        mesh = world.current.mesh
    shown = ", ".join(map(repr, program.outputs))
    what = f"{program.name}, which gives {shown}"
    if mesh is None:
        kernel, spans = program.to_compile, program.mode == avals.SPREAD
        return spread.compared(kernel, what) if spans else kernel
    stays_shared = [output.mode == avals.SPREAD for output in program.outputs]
    return on_mesh(program.to_compile, mesh, stays_shared, what)


class Compilers:
    """Threads that compile kernels, one for each core, while the program goes on."""

    def __init__(self):
        self.pool, self.lock, self.is_starting = None, threading.RLock(), False

    def start(self, compile):
        """Call `compile()` in a thread. An error is left to the call of the kernel. Raises
        RuntimeError when the interpreter ends, and in a signal handler that interrupts this.
        """
        with self.lock:
            if self.is_starting:
                raise RuntimeError("the pool is locked")
            self.is_starting = True
            try:
                if self.pool is None:
                    self.pool = ThreadPoolExecutor(os.cpu_count(), "jaxgrad-compiler")
                self.pool.submit(compile)
            finally:
                self.is_starting = False

    def finish(self):
        """Wait until all is compiled, and end the threads."""
        with self.lock:
            # a signal handler may read a value while `start` has locked the pool
            if self.pool is not None and not self.is_starting:
                pool, self.pool = self.pool, None
                pool.shutdown()


compilers = Compilers()


def in_background(compile):
    """Call `compile()` in a thread; a function that waits for its end. An error is left to the call
    of the kernel.
    """

    def run():
        with contextlib.suppress(Exception):
            compile()

    # the interpreter waits for it at its end: XLA cannot be interrupted
    thread = threading.Thread(target=run, name="jaxgrad-compiler")
    thread.start()
    return thread.join


def compile_ahead(program: Program) -> bool:
    """Prepare the first call of a program, so that it can be noted: trace it, and start to compile
    its kernel in a thread, unless the host makes the call.

    False if the call must run at once: it is part of a trace, or tracing it raises an error, which
    is to show at the line of the call.
    """
    if observers or is_traced() or jax.config.jax_disable_jit or jax.device_count() > 1:
        return False
    program = program.compact
    try:
        host = program.kernel.host
        if host is not None and host.serves():
            return True
        compilers.start(functools.partial(disk_cache.compile, _lower_of(program)()))
    except Exception:
        return False
    return True


def host_jaxpr_of(program: Program):
    """The jaxpr of a program as the host runs it."""
    jaxpr = vars(program).pop("host_jaxpr", None)  # another thread may take it
    if jaxpr is not None:
        return jaxpr
    trace = with_wide_types(program.trace_for_host) if program.wide else program.trace_for_host
    return trace(*map(avals.struct_of, program.inputs))


def _lower_of(program: Program):
    """A function that lowers the kernel of a program."""

    def lower():
        structs = map(avals.struct_of, program.inputs)
        return program.to_compile.trace(*structs).lower()

    return with_wide_types(lower) if program.wide else lower


def with_checks(kernel: Kernel, function):
    """`function` with the checks of the program's arrays and results; without them the kernel keeps
    it as `unchecked`.
    """
    program, kernel.unchecked = kernel.program, function
    if program.undefined is not None:
        function = verified(function, functools.partial(check_defined, program.undefined))
    if program.precondition is not None:
        function = checked(function, program.precondition)
    return function if program.postcondition is None else verified(function, program.postcondition)


def compiled(function, wide: bool, weight=bounded_cache.KERNEL, options=None):
    """The kernel of a function of arrays, whose weight counts towards the limits.

    options: those of XLA's compiler.
    """
    bounded_cache.kernels.count(weight)
    kernel = disk_cache.from_disk(jax.jit(function, compiler_options=options))
    return with_wide_types(kernel) if wide else kernel


def checked(kernel, precondition):
    """`kernel` after a call of `precondition` with its arrays, which raises for wrong values."""

    def call(*arrays):
        precondition(*arrays)
        return kernel(*arrays)

    return call


def verified(kernel, postcondition):
    """`kernel` with a call of `postcondition` on its results and arrays, which raises where the
    values of a result say that there is none. What JAX traces has no values, and is not checked.
    """

    def call(*arrays):
        results = kernel(*arrays)
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(results)):
            postcondition(results, *arrays)
        return results

    return call


def check_defined(message: str, results, *arrays):
    """Raise LinAlgError if a derivative is infinite or NaN, and all that it reads is finite."""
    if not _is_finite(results, numpy) and _is_finite(arrays, numpy):
        raise LinAlgError(message)


def _is_finite(arrays, module):
    """Whether all floating point numbers are finite. module: numpy, or jax.numpy for tracers."""
    leaves = map(module.asarray, jax.tree.leaves(arrays))
    inexact = (leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact))
    flags = (module.isfinite(leaf).all() for leaf in inexact)
    return functools.reduce(operator.and_, flags, numpy.bool_(True))


# While a function is traced that can check its runs: takes the error of a derivative, and a
# function that computes whether the derivative does not exist.
note_undefined = contextvars.ContextVar("jaxgrad.note_undefined", default=None)


def refuse_undefined(message: str, flag):
    """Raise LinAlgError where a flag says that a derivative does not exist; a trace around notes a
    flag without a value.
    """
    if not isinstance(flag, jax.core.Tracer):
        if numpy.any(flag):
            raise LinAlgError(message)
    elif (note := note_undefined.get()) is not None:
        note(message, lambda: jnp.any(flag))


def noted(function, message: str):
    """`function` of a derivative, which gives the trace around it a flag: whether it exists."""

    def call(*arrays):
        results = function(*arrays)
        if (note := note_undefined.get()) is not None:
            note(message, lambda: ~_is_finite(results, jnp) & _is_finite(arrays, jnp))
        return results

    return call


def inline(program: Program):
    # its equations join the trace around, and only the first call runs formulas
    single, bare = program.single, program.jitted

    def value(*arrays):
        arrays = tuple(map(value_of, arrays))
        # without derivative rules, unless JAX may differentiate the trace: they cost tracing time
        if is_bare():
            return bare(*arrays)
        results = program.function(*arrays)
        return results[0] if single else results

    value = value if program.undefined is None else noted(value, program.undefined)
    # the code around may run with 64-bit types off; in a trace that has none they stay off
    return value if program.mode == avals.INLINE32 else with_wide_types(value)


def abstract(program: Program):
    """The kernel on arrays without data: nothing is compiled, and nothing computed."""
    _refuse_gradient_of_data(program)
    avals_of_results = [meta_array(output.shape, output.dtype).aval for output in program.outputs]
    if program.single:
        (aval,) = avals_of_results
        return lambda *arrays: MetaArray(aval)
    return lambda *arrays: tuple([MetaArray(aval) for aval in avals_of_results])


def _refuse_gradient_of_data(program):
    """Raise NotImplementedError for the gradient of a tensor that has data: it has none."""
    for i in program.wanted if isinstance(program, Reverse) else ():
        aval = program.program.inputs[i]
        if isinstance(aval, Aval) and aval.mode != META:
            raise NotImplementedError(
                f"{NO_DATA} {program.name} computes the gradient of a tensor {aval} that has data "
                "from tensors of the device meta, which have none: move all of them to one device"
            )


_wide_types = jax.enable_x64  # in a forked process it raises


def with_wide_types(function):
    """`function`, compiled and called with JAX's 64-bit types on."""

    @functools.wraps(function)
    def call(*arrays):
        is_wide = jax.config.jax_enable_x64
        try:
            with _wide_types(True):
                # compilation included: argmax and random bits do not lower with 64-bit types on in
                # tracing alone
                return function(*arrays)
        except BaseException:
            put_back_wide_types(is_wide)  # an interrupt may come before the end of the `with`
            raise

    return call


class NamedKernel:
    """A computation without a program, as observers see it: a name and a kernel.

    inputs: the arguments of a user's own function, None for other computations.
    """

    mode = IMMEDIATE
    defers, may_get_pending = False, True

    def __init__(self, name: str, inputs: tuple | None = None):
        self.name, self.inputs = name, inputs


# called around every run of a kernel, the first innermost
observers: tuple = ()


def observed(program, kernel):
    """`kernel` wrapped in the observers."""
    for observer in observers:
        kernel = functools.partial(observer, program, kernel)
    return kernel


def observe(observer, nearest=False):
    """Run every kernel as `observer(program, kernel, *arrays)`, in all threads, until `unobserve`.

    nearest: wrap the kernel inside the existing observers, not around them. Without observers a
    kernel runs unwrapped, at no cost.
    """
    global observers
    run_all()
    with kernels.lock:
        # a new tuple, since other threads read it without the lock
        observers = (observer, *observers) if nearest else (*observers, observer)
        kernels.choose_all()


def unobserve(observer):
    """Remove an observer."""
    global observers
    with kernels.lock:
        observers = tuple(known for known in observers if known != observer)
        kernels.choose_all()


def refuse_forked(refusal: str = fork.REFUSAL):
    """Make every kernel of this forked process raise. Tensors of data hold NumPy arrays in it."""
    global _wide_types, observers
    if fork.note(refusal):
        kernels.renew_lock()
        _wide_types = fork.refuse_call
        observers = (*observers, fork.refuse_call)
        kernels.choose_all()


def _after_fork():
    if avals.has_seen_arrays():
        refuse_forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run(name: str, function, *args, inputs=None):
    """Call `function(*args)`, which has no program; observers see it as a NamedKernel."""
    if not observers:
        return function(*args)
    return observed(NamedKernel(name, inputs), function)(*args)


def mapped(function, arrays, out_axis: int = 0):
    """The arrays that a function of single examples gives for batches of them, as `jax.vmap` does.

    out_axis: the place of the batch among the dimensions of the results.
    """
    if not any(type(array) is MetaArray for array in arrays):
        return jax.vmap(function, out_axes=out_axis)(*arrays)
    one = [meta_array(array.shape[1:], array.aval.dtype) for array in arrays]
    size = arrays[0].shape[0]

    def batch(result):
        place = out_axis % (result.ndim + 1)
        shape = (*result.shape[:place], size, *result.shape[place:])
        return meta_array(shape, result.aval.dtype)

    return jax.tree.map(batch, function(*one))
