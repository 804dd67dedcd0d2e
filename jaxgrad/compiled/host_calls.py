"""The first calls of a compiled function's program, which NumPy makes as long as that pays.

XLA takes milliseconds to compile each equation of a program, and so seconds for a training step. On
small tensors NumPy runs such a step about as fast as XLA's program. So the host executor
(core/host) makes the first calls of a program whose compilation takes longer than many calls. XLA
then compiles it in a thread and takes over at a fixed call: a model of equations and shapes
decides, and no clock. `set_eager("compiled")` leaves all calls to XLA.
"""

from __future__ import annotations

import jax
import numpy

from ..capture.graph_input import RandomInput
from ..core import dtypes, executor, world
from ..core.aval import make_aval, struct_of
from ..core.host_kernel import has_one_cpu
from ..core.host_values import pending_results, values_or_array
from ..late import LateModule
from .placement import is_on_mesh

block = LateModule("jaxgrad.core.host.block")
cost = LateModule("jaxgrad.core.host.cost")
disk_cache = LateModule("jaxgrad.core.disk_cache")
equation = LateModule("jaxgrad.core.host.equation")

# microseconds that XLA takes for each equation of a whole program, more than for those of the small
# ones that the model of cost is about
COMPILE_EQUATION = 2_500

# The host makes the first calls where a compilation takes as long as this many: who compiles a
# function expects XLA's program, and not to notice the calls before it.
FEWEST = 100


def planned(compiling, tensors, jaxpr, outputs) -> HostCalls | None:
    """A `HostCalls` for the first calls of a program, if the host may make them: the program
    returns only tensors, takes tensors, numbers and random states, and its arguments need not be
    deleted.

    compiling: the Executable; tensors: the captured ones; outputs: the variables of the program's
    outputs.
    """
    output, others = compiling.output, compiling.trace.other_inputs
    if compiling.partition is not None:
        jaxpr = jaxpr.replace(eqns=compiling.partition.equations)
    effects = [effect.value for effect in output.tensor_effects.effects]
    numbers = {value.output for value in (*output.created, *effects) if value is not None}
    may_run = (
        has_one_cpu()
        and not world.is_several()
        and not any(eqn.effects for eqn in jaxpr.eqns)
        and not compiling.trace.function.donate
        and numbers.issuperset(range(output.count))
        and all(source.is_number or isinstance(source, RandomInput) for source in others)
        and not any(map(is_on_mesh, tensors))
    )
    return HostCalls(jaxpr, outputs, compiling.trace.constants) if may_run else None


class HostCalls:
    """The calls of a program that the host makes.

    `calls`: how many it has made; `start`, `end`: the numbers of calls after which XLA begins to
    compile the program, and takes over; `wait`: waits for the compilation; `of_xla`: the kernel of
    the later calls; `is_used`, `is_over`: whether the host and then XLA has taken over.
    """

    def __init__(self, jaxpr, outputs, constants):
        self.jaxpr = jaxpr.replace(outvars=outputs)  # until the first call
        self.constants = constants
        self.function = self.wait = self.of_xla = None
        self.is_used = self.is_over = False
        self.calls = self.start = self.end = 0

    def choose(self, compiling, leaves):
        """Let the host make the next call of an Executable, or XLA this and all later calls.

        leaves: the arguments of the call.
        """
        if self.is_over or not self.serves(compiling, leaves):
            self.is_over = True  # an interrupt may come anywhere in between
            if self.wait is not None:
                self.wait()
            if self.of_xla is not None:
                compiling.kernel.use(self.of_xla)
            compiling.host = None
            return
        kernel = compiling.keep_results_of_host if compiling.changes_state else self.run
        if not self.is_used:
            if compiling.kernel.compute != kernel:
                self.of_xla = compiling.kernel.compute
            compiling.kernel.use(kernel)
            self.is_used = True  # last, since an interrupt may come anywhere

    def serves(self, compiling, leaves) -> bool:
        """Whether the host makes the next call, which is counted."""
        config = jax.config
        is_watched = executor.observers or config.jax_debug_nans or config.jax_debug_infs
        if is_watched or config.jax_disable_jit or executor.chosen == "compiled":
            return False
        if self.function is None and not self.prepare():
            return False
        if executor.chosen == "auto":
            if self.calls >= self.end:
                return False
            if self.calls == self.start:
                self.wait = executor.in_background(compilation(compiling, leaves))
        self.calls += 1
        return True

    def prepare(self) -> bool:
        """Make the function of the host; whether it is to be used."""
        try:
            program = block.Block(self.jaxpr)
            with numpy.errstate(all="ignore"):  # what depends on no input is computed now
                function, model = program.function, cost.Cost(program)
        except equation.NotOnHostError:
            return False
        compiling = model.compile + COMPILE_EQUATION * len(program.equations)
        if executor.chosen == "auto" and model.host * FEWEST > compiling:
            return False
        self.start, self.end = cost.turns(model.host, model.saved - model.kernel, compiling)
        self.constants = [*map(_read_only, self.constants)]
        count = len(program.inputs) - len(self.constants)
        self.dtypes = [form.dtype for form in program.inputs[:count]]
        self.avals = [aval_of_form(form) for form in program.outputs]
        self.dtypes_of_results = [form.dtype for form in program.outputs]
        # last, since an interrupt may come anywhere
        self.function, self.jaxpr = function, None
        return True

    def run(self, *inputs) -> list:
        """The results of a call, which are pending and wait for nothing.

        inputs: what tensors hold, and numbers.
        """
        operands = [
            value if type(value) is numpy.ndarray else numpy.asarray(value, dtype)
            for value, dtype in zip(map(values_or_array, inputs), self.dtypes, strict=True)
        ]
        with numpy.errstate(all="ignore"):
            results = self.function(*operands, *self.constants)
        return pending_results(results, self.dtypes_of_results, self.avals)


def compilation(compiling, leaves):
    """A function that compiles an Executable, for arguments such as those of a call."""
    inputs = [struct_of(captured.aval) for captured in compiling.trace.captured]
    inputs += [source.example(leaves) for source in compiling.trace.other_inputs]
    program = compiling.program

    def compile():
        with jax.enable_x64(True):
            disk_cache.compile(program.lower(*inputs))

    return compile


def aval_of_form(form):
    """The abstract value of a tensor for a result of the host."""
    return make_aval(tuple(form.shape), dtypes.from_numpy(form.dtype))


def _read_only(constant) -> numpy.ndarray:
    """A constant that no result shares: what is read-only is copied (`host_values.owned`)."""
    array = block.array_of(constant).view()
    array.flags.writeable = False
    return array
