"""Compiled programs: how the arrays of a program are a function's inputs, outputs and side effects.

A `CompiledProgram` traces the function once, records the guards under which it serves again
(capture/guards.py), and at each call runs the kernel and applies the side effects.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from threading import get_ident

import jax

from ..core import executor
from ..core.aval import IMMEDIATE, aval_of, tracing
from ..core.bounded_cache import Weight, weight_of_kernel
from ..core.jax_state import keeps_jax_state
from ..core.jaxprs import equations_of
from ..core.program import bare
from ..late import LateModule
from ..tape import handle_lock, pytree
from ..tape.mode import casting, current_mode
from ..tape.node import FREED
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, edge_of, held, wrap
from . import donation, first_run, graph_input, host_calls, one_shot, placement
from .argument_containers import arguments_of, containers_of
from .compiler_options import options_for
from .graph_input import ArgumentInput, GeneratorInput, GraphInput, argument_of, in_order
from .guards import (
    ArgumentSource,
    DistinctTensors,
    NodeHooks,
    ReachedArgument,
    RepeatedArgument,
    key_of,
)
from .input_names import NamedInputs, input_names
from .joined_effects import JoinedOutput, joined_after_errors
from .joined_memory import PLACEHOLDER, is_viewed, released
from .merged_guards import merged_checks
from .observation import Observation
from .partition import (
    CompiledCall,
    CompiledNode,
    CompiledReverse,
    LastingNode,
    PartitionedJaxpr,
    function_of,
)
from .places import DerivedNumbers, note_rebound
from .pullback import Pullback
from .reachable import reachable_tensors, refuse_numbers
from .replay import replay, run_operators
from .scope import CaptureScope, input_p
from .side_effects import AttributeEffect, OutputSpec, ProgramRun, StateEffect
from .varying_numbers import argument_at

disk_cache = LateModule("jaxgrad.core.disk_cache")


class CompiledProgram:
    """A compiled program of a function.

    `captured`: the captured tensors, whose arrays are the first inputs; `other_inputs`: those that
    follow; `output`: outputs and side effects; `guards`: when it serves again. Until its first
    call: `escaped_tensors`, those that tracing created and that are still referenced. `escaped`
    describes one of them; such a program runs once.
    """

    mode = IMMEDIATE
    defers, may_get_pending = False, False
    is_inner = False  # whether it is a part of another program
    is_inline = False  # whether that program is being traced, which observes all state
    runs_jaxpr = True  # whether it computes what was traced, and not a transform of it
    sees_containers = True  # whether calls change containers among their arguments
    uses_containers = False
    output_class = OutputSpec

    def __init__(self, jitted, leaves, structure, varying=frozenset()):
        self.jitted, self.structure, self.varying = jitted, structure, varying
        self.name = jitted.__name__
        self.function = jitted.traced_function()  # until the guards are recorded
        # a program outlives the call, and must not keep the memory of its arguments: no tensors,
        # and objects weakly
        self.weak_leaves = list(map(_weakly, leaves))
        self.weak_objects = [each for each in self.weak_leaves if isinstance(each, weakref.ref)]
        self.grad_mode, self.casting = current_mode.get(), casting.get()
        self.enable_x64 = jax.config.jax_enable_x64  # the user's own setting
        self.call_program, self.reached_arguments, self.guards = None, {}, []
        self.observation, self.changed_numbers = None, set()
        scope = self.scope()
        scope.belong_to(jitted)
        with self.wide(), joined_after_errors(scope):
            # without arguments: each input is found while tracing, as an equation of `input_p`
            closed = jax.make_jaxpr(functools.partial(self.run, scope, leaves))()
        self.equations = sum(1 for _ in equations_of(closed))
        self.constants, self.objects = closed.consts, scope.objects
        self.derived, self.answers = scope.derived, scope.answers
        self.discard = None if self.is_inner else scope.take_back
        self.take_captured(scope)
        self.escaped = self.describe_escaped(scope)
        self.other_inputs = [each for each in scope.inputs if each.is_read]
        self.output.effects += self.attribute_effects()
        self.node_hooks = scope.outer.hook_ids.values()
        self.program = self.compile(closed.jaxpr, scope.inputs, leaves)
        self.generators = [each for each in self.other_inputs if isinstance(each, GeneratorInput)]
        self.changes_state = bool(
            self.output.effects
            or self.donation
            or self.escaped_tensors
            or self.generators
            or self.output.shared
        )
        self.made, self.has_run = None, not self.donation
        self.held = placement.reader(self)
        kernel = self.keep_results if self.changes_state else self.program
        # adopted as any program is, so that profiles and anomaly mode see one kernel
        executor.adopt(self, self.first_call(executor.with_wide_types(kernel)))

    def first_call(self, kernel):
        """The kernel until it has run once: JAX traces it in that call."""

        @keeps_jax_state
        def call(*arrays):
            if self.has_run:  # else `first_kernel` has compiled it
                with jax.enable_x64(True):
                    disk_cache.compile_for(self.program, arrays)
            results = kernel(*arrays)
            executor.adopt(self, kernel)
            return results

        return call

    @property
    def leaves(self) -> list:
        """The arguments of the call that traced, without tensors. Raises RuntimeError where an
        object among them is gone.
        """
        if any(each() is None for each in self.weak_objects):
            raise RuntimeError(
                f"{self.name}, compiled by jaxgrad.jit, runs again for a derivative, and an object "
                "among its arguments is gone: keep a reference to it, or to the result of the call"
            )
        return [each() if isinstance(each, weakref.ref) else each for each in self.weak_leaves]

    def take_captured(self, scope):
        """Take over the captured tensors of the scope, without the tensors themselves."""
        self.captured, self.groups = list(scope.captured.values()), released(scope.groups)
        self.members = [cut.number for group in self.groups for cut in group.cuts]
        rebound = [] if self.is_inline else self.observation.rebound_tensors()
        places = {id(tensor): source for tensor, source in reversed(rebound)}
        for captured in self.captured:
            is_given = captured.position is not None
            if captured.is_outside and not is_given and id(captured.tensor) in places:
                captured.find_at(places[id(captured.tensor)])
        if scope.outer.is_run:
            for captured in self.captured:
                captured.require_history()
        self.traced_tensors = [captured.tensor for captured in self.captured]
        for captured in self.captured:
            captured.release()

    def attribute_effects(self) -> list[AttributeEffect]:
        return [AttributeEffect(*each) for each in self.objects.final_values()]

    def describe_escaped(self, scope) -> str | None:
        for tensor in self.escaped_tensors.values():
            line = scope.lines.get(id(tensor))
            where = "" if line is None else f" (made at {line})"
            return f"a tensor of shape {list(tensor.shape)}{where}"
        return None

    def take_tensors(self, leaves) -> list[Tensor]:
        """The captured tensors at the call that traced, which the program does not keep."""
        tensors = []
        for captured, tensor in zip(self.captured, self.traced_tensors, strict=True):
            found = tensor if captured.is_outside else captured.source.find(leaves, tensors)
            tensors.append(found)
        self.traced_tensors = None
        return tensors

    # ---- guards

    def record_guards(self, tensors):
        """Record when the program serves again. tensors: the captured ones."""
        unseen = graph_input.number_readers(self.other_inputs)
        given = [c for c in self.captured if c.position is not None or is_viewed(c)]
        own = [tensors[captured.number] for captured in given]
        reachable = reachable_tensors(self.roots(), own, self.observation.attributes_read)
        # such a tensor was captured once, as the argument: with another argument the function would
        # read two tensors, and this program one
        self.reached_arguments = {
            captured.number: weakref.ref(tensor)
            for captured, tensor in zip(given, own, strict=True)
            if id(tensor) in reachable
        }
        several = [pair for pair in self.positions.items() if len(pair[1]) > 1]
        self.guards = [
            # first, since each appends its tensor to `tensors`, which the guards after it read
            *self.captured,
            *self.distinct(tensors),
            *([] if self.output.separate is None else [self.output.separate]),
            *[RepeatedArgument(number, positions) for number, positions in several],
            *[ReachedArgument(number, tensors[number]) for number in self.reached_arguments],
            *[NodeHooks(reference, ids) for reference, ids in self.node_hooks],
            *self.objects.guards(self.exchanged(tensors)),
            *self.observation.same_tensors(self.captured, tensors),
            *self.observation.guards(unseen, tensors, self.exchanged(tensors)),
            *([DerivedNumbers(self.derived)] if self.derived else ()),
            *self.containers.guards(self.output.effects),
        ]
        self.observation.release()
        self.uses_containers = self.containers.is_used
        self.function = self.observation = self.discard = self.derived = self.containers = None
        self.checks = merged_checks(self.guards)

    def distinct(self, tensors) -> list[DistinctTensors]:
        """The guard that the tensors are different ones, where they might not be."""
        others = [each.number for each in self.captured if each.is_exchanged]
        handles = frozenset(map(id, tensors)).difference([id(tensors[n]) for n in others])
        return [DistinctTensors(tensors, handles, others)] if len(tensors) > 1 else []

    def roots(self) -> list:
        """From where the function may reach a tensor that is also an argument."""
        return [*self.leaves, self.function]

    def exchanged(self, tensors) -> dict[int, int]:
        """The numbers of the captured tensors in whose place a call may have others, by id."""
        return {
            id(tensors[each.number]): each.number for each in self.captured if each.is_exchanged
        }

    def own_parts(self):
        """The ids of objects whose contents need no guard; None for a function of the user's."""
        return None

    def weight(self) -> Weight:
        """One program, and the bytes of its kernel and of its derivatives."""
        made = weight_of_kernel(self.equations)
        return made if self.call_program is None else Weight(1, self.call_program.weight().bytes)

    def has_expired(self) -> bool:
        """Whether a tensor that it needs is gone, an object among its arguments, or a hook that it
        runs.
        """
        return any(each() is None for each in self.weak_objects) or any(
            captured.has_expired() for captured in self.captured
        )

    # ---- tracing

    def scope(self) -> CaptureScope:
        return CaptureScope(self.name, records_lines=self.jitted.traces_in_a_row > 0)

    def wide(self):
        return tracing(wide=True)

    def rules(self):
        """The tape differentiates what is traced, so operators need no rules for JAX."""
        return bare()

    def run(self, scope: CaptureScope, leaves):
        """What JAX traces: the function on tensors of tracers."""
        with self.rules(), scope.open(), self.observed(scope):
            containers = self.containers = arguments_of(self, scope, leaves)
            result = [one_shot.refuse_result(self.name, self.call_traced(*containers.arguments))]
            if not self.is_inner:
                scope.raise_refused()
            changes = [] if self.is_inline else self.observation.changes()
            containers.refuse_changes(self.name, changes)
            # what it put into lists among its arguments would count as escaped
            containers.release_copies()
            self.output = self.output_of(scope, result)
            self.add_effects(scope, changes)
            self.output.share_memory()
            gradients, leaves, self.pullback = [], (), None
            if self.output.roots:
                self.pullback = Pullback(scope, self.output.roots)
                gradients, leaves = self.pullback.take_arrays(), self.pullback.leaves
            # before the search for tensors that escape: what was stored in objects comes out
            del changes
            if not self.is_inline:
                self.observation.restore()
                refuse_numbers(self.output.constants)
            del self.output.constants
            arrays, self.escaped_tensors = self.output.finish(leaves)
            return arrays + gradients

    def call_traced(self, args, kwargs):
        return self.function(*args, **kwargs)

    @contextlib.contextmanager
    def observed(self, scope):
        """Observe the state that the function reads and changes; put it back at the end."""
        if self.is_inline:
            yield  # the program around observes
            return
        rebound = self.jitted.cache.rebound
        self.observation = Observation(self.function, self.leaves, rebound, scope.number)
        self.observation.own = self.own_parts()
        scope.observation = self.observation
        try:
            self.observation.open()
            yield
        except BaseException:
            self.observation.restore()
            self.observation.release()
            raise
        finally:
            self.observation.close()

    def add_effects(self, scope, changes):
        """Add what the function changes of Python objects to its side effects."""
        for change in changes:
            effect = self.containers.effect_of(self.output, change)
            if effect is None:
                captured = scope.captured.get(id(change.holder.reference()))
                is_exchanged = captured is not None and captured.is_exchanged
                number = captured.number if is_exchanged else None
                effect = StateEffect(self.output, change, number)
                self.changed_numbers |= change.numbers()
                note_rebound(change.holder, change.bound)
            self.output.effects.append(effect)

    def output_of(self, scope, held) -> OutputSpec:
        if scope.groups:
            self.output_class = JoinedOutput
        return self.output_class(scope, held)

    def arguments(self, scope, leaves):
        """The arguments as the traced function gets them. Sets `positions`: by the number of a
        captured tensor its positions among them.
        """
        given, self.positions = [], {}
        for position, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                number = scope.capture(leaf, self.source_of(position)).number
                self.positions.setdefault(number, []).append(position)
            elif isinstance(leaf, jax.Array):
                leaf = argument_of(scope, leaf, position)
            elif position in self.varying:
                source = ArgumentInput(position, is_number=True)
                leaf = Varying.of_input(scope.add_input(leaf, source), source, leaf)
            given.append(leaf)
        return given

    def source_of(self, position) -> ArgumentSource:
        return ArgumentSource(position)

    def compile(self, jaxpr, inputs: list[GraphInput], leaves):
        """The program as a jitted function of the captured arrays and the other inputs."""
        found = {
            inputs[equation.params["number"]]: equation.outvars[0]
            for equation in jaxpr.eqns
            if equation.primitive is input_p
        }
        order = in_order(inputs) + self.other_inputs
        jaxpr = jaxpr.replace(
            # constants become inputs of the jaxpr, since both parts of a partition may read them
            constvars=[],
            invars=[*map(found.get, order), *jaxpr.constvars],
            eqns=[each for each in jaxpr.eqns if each.primitive is not input_p],
        )
        if self.pullback is None:
            run = function_of(jaxpr, jaxpr.invars, jaxpr.outvars, jaxpr.eqns)
        else:
            cotangents = [found.get(each) for each in self.pullback.cotangents]
            self.partition = PartitionedJaxpr(
                jaxpr, self.output.count, cotangents, self.pullback.groups, self.name
            )
            run = self.partition.forward
        program = self.forward(run, order)
        program.__name__ = program.__qualname__ = self.name
        program.__signature__ = NamedInputs(input_names(self, order))
        donated = self.donated(leaves)
        # captured tensors are the first inputs, so their numbers are positions of arguments
        self.donation = [each.number for each in self.captured if each.number in donated]
        outputs = jaxpr.outvars if self.pullback is None else self.partition.outputs
        may_be_of_host = self.runs_jaxpr and not self.groups
        self.host = host_calls.planned(self, jaxpr, outputs) if may_be_of_host else None
        options = {"donate_argnums": self.donation, "compiler_options": options_for(jaxpr)}
        return placement.compiled(program, self, jaxpr, outputs, **options)

    def forward(self, run, order: list[GraphInput]):
        """The program of a part of the jaxpr, which takes inputs and constants."""
        constants = self.constants

        def program(*arrays):
            return run(*arrays, *constants)

        return program

    def backward(self, group, run, cotangents, residuals, reads):
        """The gradients of the captured tensors that a pass from a group of outputs reaches, by a
        backward program of the partition, which reads the residuals `reads`.
        """
        return run(*cotangents, *residuals)

    @property
    def saves_inputs(self) -> bool:
        """Whether a node of the call saves the inputs: arrays of this process, whose memory must
        outlive it.
        """
        return self.pullback is not None and any(each.reached for each in self.pullback.groups)

    def donated(self, leaves) -> set[int]:
        """The numbers of the captured tensors whose memory the outputs may take."""
        if not self.jitted.donates or self.saves_inputs:
            return set()
        args, kwargs = jax.tree.unflatten(self.structure, range(self.structure.num_leaves))
        chosen = {
            leaf
            for key in self.jitted.donate
            for leaf in pytree.flatten(argument_at(args, kwargs, key))[0]
        }
        named = {each.number for each in self.captured if each.position in chosen}
        return ((named - self.output.sources) | self.output.written) - self.output.joined

    # ---- running

    def inputs_of(self, leaves, tensors):
        """The arrays that a call passes; those to be donated copied where they are shared."""
        # up to date already: the guards read each tensor, or in the call that traces, capture did
        if self.host is not None:
            arrays = placement.values_of(tensors)
        else:
            # observers may run the operators on the arrays of this process
            arrays = placement.arrays_of(tensors, held if executor.observers else self.held)
            donation.make_own(arrays, tensors, self.donation, self.output.replaced)
        for number in self.members:
            arrays[number] = PLACEHOLDER
        arrays += [source.array(leaves) for source in self.other_inputs]
        return arrays

    def keep_results_of_host(self, *inputs):
        """Run the program on the host; the results are in `made`."""
        self.made.append(self.host.run(*inputs))

    def __call__(self, leaves, tensors, inputs):
        """A call of a program that changes nothing."""
        only = self.output.only
        if only is not None and self.pullback is None:
            return wrap(self.kernel(*inputs)[only.output], only.aval, only.tracked, only.mark)
        return self.output.result_of(self.run_of(leaves, tensors, inputs, self.kernel(*inputs)))

    def change(self, leaves, tensors):
        """A call of a program that changes state, under the lock of handles: all of it or nothing.

        The program may delete the arrays of before. Once it has, or once a change is made, the rest
        is changed too, whatever comes in between, such as an interrupt.
        """
        made, run, inputs = [], None, None
        before, around = handle_lock.owner, self.made
        draws = self.draws() if self.generators else ()
        try:
            is_ready = self.has_run or self.host is not None
            kernel = self.kernel if is_ready else self.first_kernel(leaves, tensors)
            handle_lock.owner, self.made = get_ident(), made
            inputs = self.inputs_of(leaves, tensors)
            kernel(*inputs)
            run = self.run_of(leaves, tensors, inputs, made[0])
            self.output.apply(run)
        except BaseException:
            if made and ((run is not None and run.applied) or self.has_deleted(inputs)):
                self.output.apply(run or self.run_of(leaves, tensors, inputs, made[0]))
            else:
                self.set_draws(draws)
            raise
        finally:
            # the program may be kept, and must not keep these tensors
            self.escaped_tensors = ()
            self.made, handle_lock.owner = around, before
        return self.output.result_of(run)

    def run_of(self, leaves, tensors, inputs, arrays) -> ProgramRun:
        """The run that gave these arrays."""
        nodes = () if self.pullback is None else self.nodes(tensors, inputs, arrays)
        numbers = self.numbers(inputs) if self.output.has_numbers else None
        containers = containers_of(leaves) if self.uses_containers else ()
        return self.output.run(arrays, tensors, nodes, self.escaped_tensors, numbers, containers)

    @keeps_jax_state
    def first_kernel(self, leaves, tensors):
        """The kernel for the first run, compiled already. It raises JaxRuntimeError with
        RESOURCE_EXHAUSTED where there is too little memory.
        """
        draws = self.draws()
        with jax.enable_x64(True):
            lowered = self.program.lower(*self.inputs_of(leaves, tensors))
            try:
                compiled = disk_cache.compile(lowered)
            except BaseException:
                # after an interrupt XLA's thread goes on, and reads it
                first_run.interrupted.append(lowered)
                raise
        self.set_draws(draws)

        def kernel(*inputs):
            inputs = first_run.inputs_of(self.name, compiled, inputs, self.donation)
            with first_run.deferred_signals():
                self.kernel(*inputs)
                jax.block_until_ready(self.made)
            self.has_run = True

        return kernel

    def keep_results(self, *inputs):
        """Run the program; the results are in `made` before Python handles a signal."""
        self.made.extend(itertools.starmap(self.program, (inputs,)))
        return self.made[0]

    def has_deleted(self, inputs) -> bool:
        """Whether the program has taken the memory of an input."""
        return self.host is None and any(inputs[number].is_deleted() for number in self.donation)

    def draws(self) -> list[int]:
        """How many draws the generators have given."""
        return [each.generator.draws for each in self.generators]

    def set_draws(self, draws: list[int]):
        for each, count in zip(self.generators, draws, strict=True):
            each.generator.draws = count

    def numbers(self, inputs) -> dict:
        """The values of the inputs that are no tensors, by input."""
        return dict(zip(self.other_inputs, inputs[len(self.captured) :], strict=True))

    # ---- differentiating from outside

    def nodes(self, tensors, inputs, arrays):
        """For each output with a history its node, one for each group of the pullback. Where the
        function has used its graph up, the saved arrays of the node are freed.
        """
        # at the first call: only its arrays tell the abstract values of the residuals
        if self.call_program is None:
            self.make_call_program(inputs, arrays)
        made: list = [None] * self.output.roots
        for group, reverse, numbers in self.reverses:
            saved = [*inputs, *[arrays[n] for n in reverse.numbers]] if reverse.saves else []
            saved = FREED if group.is_freed else saved
            node_class = CompiledNode if group.is_freed or group.frees else LastingNode
            edges = [edge_of(tensors[number]) for number in numbers]
            node = node_class(reverse, saved, edges, self.output.roots)
            if self.weak_objects:
                node.more().objects = [each() for each in self.weak_objects]
            for number in group.outputs:
                made[number] = node
        return made

    def make_call_program(self, inputs, arrays):
        """Make the program that nodes record, and for each group of outputs with a history its
        reverse program and the numbers of the captured tensors that get a gradient.
        """
        shown = [captured.aval for captured in self.captured]
        shown += map(graph_input.seen_input, inputs[len(shown) :])
        kept = [aval_of(arrays[number]) for number in self.partition.numbers]
        self.call_program = CompiledCall(self, shown, self.pullback.avals, kept)
        tracked = [captured.number for captured in self.captured if captured.tracked]
        self.reverses = []
        for group in self.pullback.groups:
            numbers = tracked if group.is_freed else group.reached
            mask = tuple(map(set(numbers).__contains__, range(len(shown))))
            present = tuple(map(set(group.outputs).__contains__, range(self.output.roots)))
            reverse = CompiledReverse(self.call_program, mask, present)
            # so that its kernels count
            self.call_program.reverses[present] = reverse
            self.reverses.append((group, reverse, numbers))

    def replayed(self, inputs, passes=()):
        """See `replay.replay`."""
        return replay(self, inputs, passes)

    def copy_donated(self, arrays):
        """The inputs of a run in a form that can be used after it: those to be donated copied."""
        with jax.enable_x64(True):
            return [
                jax.numpy.copy(array) if number in self.donation else array
                for number, array in enumerate(arrays)
            ]

    def run_operators(self, arrays):
        """See `replay.run_operators`."""
        return run_operators(self, arrays)


def _weakly(leaf):
    """An argument as a program keeps it: no tensor, an object without a value weakly."""
    if isinstance(leaf, Tensor | jax.Array):
        return None
    key = key_of(leaf)[1]
    reference = getattr(key, "reference", key)
    return reference if isinstance(reference, weakref.ref) else leaf
