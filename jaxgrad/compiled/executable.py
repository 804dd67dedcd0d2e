"""Executables: the program of a trace as XLA compiles it, and its calls.

An `Executable` passes the arrays of a call to its kernel, makes the results of the kernel's
outputs, and applies the side effects of the trace (capture/trace.py).
"""

from __future__ import annotations

import itertools
from threading import get_ident

import jax

from ..capture.argument_containers import containers_of
from ..capture.graph_input import GraphInput, RandomInput, in_order
from ..capture.input_names import NamedInputs, input_names
from ..capture.joined_memory import PLACEHOLDER
from ..capture.known_numbers import input_p
from ..capture.replay import replay, run_operators
from ..capture.side_effects import ProgramRun
from ..capture.trace import Trace
from ..core import executor
from ..core.aval import IMMEDIATE
from ..core.bounded_cache import Weight, weight_of_kernel
from ..core.jax_state import keeps_jax_state
from ..core.kernel import of as kernel_of
from ..late import LateModule
from ..tape.handle_lock import owner
from ..tape.tensor import held, wrap
from . import donation, first_run, host_calls, placement
from .compiler_options import options_for
from .opening import RecordedCalls
from .partition import PartitionedJaxpr, function_of

disk_cache = LateModule("jaxgrad.core.disk_cache")


class Executable:
    """The compiled program of a trace.

    `program`: the jitted function of the captured arrays and the other inputs; `partition`: its
    forward and backward programs; `recorded`: how the tape records its calls; `donation`: the
    numbers of the inputs whose memory it takes; `host`: makes the first calls, else None; `held`:
    reads the array of a captured tensor; `members`: the numbers of the tensors of joined memory;
    `generators`: the generators from which it draws; `has_run`: whether it has run, so that taking
    memory is known to be safe; `escaped_tensors`: until the first call, the tensors that tracing
    created and that are still referenced; `results`: while a call that changes state runs, the list
    to which its results go.
    """

    mode = IMMEDIATE
    defers, may_get_pending = False, False
    runs_jaxpr = True  # whether it computes what was traced, and not a transform of it

    def __init__(self, tracing, trace: Trace, tensors, leaves):
        """tracing: what the trace is of; tensors: the captured ones; leaves: the arguments."""
        self.trace, self.output = trace, trace.output
        self.partition = self.recorded = self.results = None
        self.members = [cut.number for group in trace.groups for cut in group.cuts]
        self.escaped_tensors = tracing.escaped_tensors
        self.program = self.compile(tracing, tensors, leaves)
        random = [one for one in trace.other_inputs if isinstance(one, RandomInput)]
        self.generators = [*{id(one.generator): one.generator for one in random}.values()]
        self.has_run = not self.donation
        self.held = placement.reader(self)
        kernel = self.keep_results if self.changes_state else self.program
        # as that of any program, so that profiles and anomaly mode see one
        self.kernel = kernel_of(self, self.first_call(executor.with_wide_types(kernel)))

    @property
    def name(self) -> str:
        return self.trace.name

    # ---- compiling

    def compile(self, tracing, tensors, leaves):
        """The program as a jitted function of the captured arrays and the other inputs."""
        trace, jaxpr, inputs = self.trace, tracing.closed.jaxpr, tracing.scope.inputs
        variables = {
            inputs[equation.params["number"]]: equation.outvars[0]
            for equation in jaxpr.eqns
            if equation.primitive is input_p
        }
        order = in_order(inputs) + trace.other_inputs
        jaxpr = jaxpr.replace(
            # constants become inputs of the jaxpr, since both parts of a partition may read them
            constvars=[],
            invars=[*map(variables.get, order), *jaxpr.constvars],
            eqns=[equation for equation in jaxpr.eqns if equation.primitive is not input_p],
        )
        run, outputs = self.forward_of(jaxpr, variables)
        program = self.forward(run, order)
        program.__name__ = program.__qualname__ = self.name
        program.__signature__ = NamedInputs(input_names(trace, tensors, order))
        donated = donation.numbers_to_donate(trace, leaves)
        # captured tensors are the first inputs, so their numbers are positions of arguments
        self.donation = [one.number for one in trace.captured if one.number in donated]
        changes = self.output.effects or self.output.shared or self.escaped_tensors
        draws = any(isinstance(source, RandomInput) for source in trace.other_inputs)
        self.changes_state = bool(changes or self.donation or draws)
        may_be_of_host = self.runs_jaxpr and not trace.groups
        self.host = host_calls.planned(self, tensors, jaxpr, outputs) if may_be_of_host else None
        options = {"donate_argnums": self.donation, "compiler_options": options_for(jaxpr)}
        return placement.compiled(program, self, tensors, jaxpr, outputs, **options)

    def forward_of(self, jaxpr, variables):
        """The function that the forward program computes, and the variables of its outputs.

        variables: by input the variable of the jaxpr.
        """
        pullback = self.trace.pullback
        if pullback is None:
            return function_of(jaxpr, jaxpr.invars, jaxpr.outvars, jaxpr.eqns), jaxpr.outvars
        cotangents = [variables.get(source) for source in pullback.cotangents]
        self.partition = PartitionedJaxpr(
            jaxpr, self.output.count, cotangents, pullback.groups, self.name
        )
        return self.partition.forward, self.partition.outputs

    def forward(self, run, order: list[GraphInput]):
        """The program of a part of the jaxpr, which takes inputs and constants."""
        constants = self.trace.constants

        def program(*arrays):
            return run(*arrays, *constants)

        return program

    def backward(self, group, run, cotangents, residuals, reads):
        """The gradients of the captured tensors that a pass from a group of outputs reaches, by a
        backward program of the partition, which reads the residuals `reads`.

        cotangents: those present, by the number of the output with a history.
        """
        return run(*cotangents.values(), *residuals)

    def weight(self) -> Weight:
        """One program, and the bytes of its kernel and of its derivatives."""
        if self.recorded is None:
            return weight_of_kernel(self.trace.equations)
        return Weight(1, self.recorded.program.weight().bytes)

    # ---- running

    def first_call(self, kernel):
        """The kernel until it has run once: JAX traces it in that call."""

        @keeps_jax_state
        def call(*arrays):
            if self.has_run:  # else `first_kernel` has compiled it
                with jax.enable_x64(True):
                    disk_cache.compile_for(self.program, arrays)
            results = kernel(*arrays)
            self.kernel.use(kernel)
            return results

        return call

    def inputs_of(self, leaves, tensors):
        """The arrays that a call passes; donated ones are copied if they are shared."""
        # up to date already: the guards read each tensor, or in the call that traces, capture did
        if self.host is not None:
            arrays = [*map(placement.raw, tensors)]
        else:
            # observers may run the operators on the arrays of this process
            arrays = placement.arrays_of(tensors, held if executor.observers else self.held)
            donation.copy_shared(arrays, tensors, self.donation, self.output.replaced)
        for number in self.members:
            arrays[number] = PLACEHOLDER
        arrays += [source.array(leaves) for source in self.trace.other_inputs]
        return arrays

    def __call__(self, leaves, tensors, inputs):
        """A call of a program that changes nothing."""
        only = self.output.only
        if only is not None and self.trace.pullback is None:
            return wrap(self.kernel.call(*inputs)[only.output], only.aval, only.tracked, only.mark)
        run = self.run_of(leaves, tensors, inputs, self.kernel.call(*inputs))
        return self.output.result_of(run)

    def change(self, leaves, tensors):
        """A call of a program that changes state, under the lock of handles: all of it or nothing.

        The program may delete the old arrays. Once it has, or once a change is made, the remaining
        changes are made too, even if an interrupt comes in between.
        """
        results, run, inputs = [], None, None
        before, around = owner.thread, self.results
        states = self.states() if self.generators else ()
        try:
            is_ready = self.has_run or self.host is not None
            kernel = self.kernel.call if is_ready else self.first_kernel(leaves, tensors)
            owner.thread, self.results = get_ident(), results
            inputs = self.inputs_of(leaves, tensors)
            kernel(*inputs)
            run = self.run_of(leaves, tensors, inputs, results[0])
            self.output.apply(run)
        except BaseException:
            if results and ((run is not None and run.applied) or self.has_deleted(inputs)):
                self.output.apply(run or self.run_of(leaves, tensors, inputs, results[0]))
            else:
                self.set_states(states)
            raise
        finally:
            # the program may be kept, and must not keep these tensors
            self.escaped_tensors = ()
            self.results, owner.thread = around, before
        return self.output.result_of(run)

    def run_of(self, leaves, tensors, inputs, arrays) -> ProgramRun:
        """The run that gave these arrays."""
        nodes = ()
        if self.trace.pullback is not None:
            recorded = self.recorded or self.record(inputs, arrays)
            nodes = recorded.nodes(tensors, inputs, arrays)
        numbers = self.numbers(inputs) if self.output.has_numbers else None
        containers = containers_of(leaves) if self.trace.arguments.uses_containers else ()
        return self.output.run(arrays, tensors, nodes, self.escaped_tensors, numbers, containers)

    @keeps_jax_state
    def first_kernel(self, leaves, tensors):
        """The kernel for the first run, compiled already. It raises JaxRuntimeError with
        RESOURCE_EXHAUSTED where there is too little memory.
        """
        states = self.states()
        with jax.enable_x64(True):
            lowered = self.program.lower(*self.inputs_of(leaves, tensors))
            try:
                compiled = disk_cache.compile(lowered)
            except BaseException:
                # after an interrupt XLA's thread goes on, and reads it
                first_run.interrupted.append(lowered)
                raise
        self.set_states(states)

        def kernel(*inputs):
            inputs = first_run.inputs_of(self.name, compiled, inputs, self.donation)
            first_run.run_whole(self.run_to_end, inputs)
            self.has_run = True

        return kernel

    def run_to_end(self, inputs):
        self.kernel.call(*inputs)
        jax.block_until_ready(self.results)

    def keep_results(self, *inputs):
        """Run the program; its results are in `results` before Python handles a signal."""
        run = itertools.starmap(self.program, (inputs,))
        if self.donation:
            first_run.run_whole(self.results.extend, run)
        else:
            self.results.extend(run)
        return self.results[0]

    def keep_results_of_host(self, *inputs):
        """Run the program on the host; its results are in `results`."""
        self.results.append(self.host.run(*inputs))

    def has_deleted(self, inputs) -> bool:
        """Whether the program has taken the memory of an input."""
        donated = [inputs[number] for number in self.donation]
        # the host takes others
        return any(isinstance(array, jax.Array) and array.is_deleted() for array in donated)

    def states(self) -> list[tuple]:
        """The states of the generators."""
        return [generator.snapshot for generator in self.generators]

    def set_states(self, states: list[tuple]):
        for generator, state in zip(self.generators, states, strict=True):
            generator.snapshot = state

    def numbers(self, inputs) -> dict:
        """The values of the inputs that are no tensors, by input."""
        others = self.trace.other_inputs
        return dict(zip(others, inputs[len(self.trace.captured) :], strict=True))

    # ---- differentiating from outside

    def record(self, inputs, arrays) -> RecordedCalls:
        """How the tape records calls, from the first call on: only its arrays tell the abstract
        values of the residuals.
        """
        self.recorded = RecordedCalls(self, inputs, arrays)
        return self.recorded

    def replayed(self, inputs, passes=()):
        """See `replay.replay`."""
        return replay(self.trace, inputs, passes)

    def run_operators(self, arrays):
        """See `replay.run_operators`."""
        return run_operators(self.trace, arrays)

    def copy_donated(self, arrays):
        """The inputs of a run in a form that can be used after it: donated inputs are copied."""
        with jax.enable_x64(True):
            return [
                jax.numpy.copy(array) if number in self.donation else array
                for number, array in enumerate(arrays)
            ]
