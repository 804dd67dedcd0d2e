"""Tracing: a function runs once on tracers, so that a program can be made of what it does."""

from __future__ import annotations

import contextlib
import functools

import jax

from ..compiled import one_shot
from ..compiled.executable import Executable
from ..core.aval import tracing
from ..core.jaxprs import equations_of
from ..core.program import bare
from ..draws.python_runs import drawn_in, taking_in
from ..draws.seed_effects import seed_effects
from ..tape import settings
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor
from .argument_containers import ArgumentContainers
from .graph_input import ArgumentInput, ArgumentSource, argument_of
from .joined_effects import JoinedOutput, joined_after_errors
from .joined_memory import released
from .observation import Observation, changed_numbers
from .outputs import OutputSpec
from .places import note_rebound
from .pullback import Pullback
from .reachable import refuse_numbers
from .scope import CaptureScope
from .side_effects import AttributeEffect, SettingEffect, StateEffect
from .trace import Modes, Trace, TracedArguments, TraceGuards


class Tracing(TraceGuards):
    """One trace of a function, and its results.

    `function`: the function that runs; `scope`: the tensors that it reads and creates;
    `observation`: the Python state that it reads and changes; `closed`: its jaxpr with constants;
    `captured`: the captured tensors as the trace describes them; `tensors`: their handles;
    `output`: its results and side effects; `escaped_tensors`: by number the tensors that it created
    and that are still referenced, `escaped` describes one of them; `changed_numbers`: the names of
    holders at which it puts other numbers.
    """

    is_inner = False  # whether it is a part of another program
    is_inline = False  # whether that program is being traced, which observes all state
    sees_containers = True  # whether calls change containers among their arguments
    output_class, executable_class = OutputSpec, Executable

    def __init__(self, jitted, leaves, structure, varying=frozenset()):
        self.jitted, self.function = jitted, jitted.traced_function()
        self.arguments = TracedArguments(jitted.__name__, leaves, structure, varying)
        self.arguments.sees_containers = self.sees_containers
        kept = settings.lasting_values()
        wide = jax.config.jax_enable_x64
        self.modes = Modes(wide, self.is_inner, self.is_inline, kept)
        self.observation, self.changed_numbers = None, set()
        self.scope = self.new_scope()
        self.drawn = drawn_in(self.scope, jitted)
        with self.wide(), joined_after_errors(self.scope):
            # without arguments: each input is met while tracing, as an equation of `input_p`
            self.closed = jax.make_jaxpr(functools.partial(self.run, leaves))()
        self.take_captured()
        self.output.effects += self.attribute_effects()

    @property
    def name(self) -> str:
        return self.arguments.name

    @property
    def captured(self) -> list:
        """The captured tensors."""
        return list(self.scope.captured.values())

    @property
    def equations(self) -> int:
        return sum(1 for _ in equations_of(self.closed))

    @property
    def other_inputs(self) -> list:
        """The inputs that are no captured tensors."""
        return [source for source in self.scope.inputs if source.is_read]

    def discard(self):
        """Undo the changes of modules, optimizers and passes, since the trace is discarded."""
        if not self.is_inner:
            self.scope.take_back()

    # ---- while the function runs

    def new_scope(self) -> CaptureScope:
        return CaptureScope(self.name, records_lines=self.jitted.traces_in_a_row > 0)

    def wide(self):
        return tracing(wide=True)

    def rules(self):
        """The tape differentiates what is traced, so operators need no rules for JAX."""
        return bare()

    def run(self, leaves):
        """The function that JAX traces: calls the traced function on tensors of tracers."""
        scope = self.scope
        with self.rules(), scope.open(), self.observed():
            self.containers = self.new_containers(leaves)
            scope.take_containers(self.containers)
            with contextlib.nullcontext([]) if self.is_inner else settings.put_back() as left:
                called = self.call(*self.containers.arguments)
            result = [one_shot.refuse_result(self.name, called)]
            del called
            if not self.is_inner:
                scope.raise_refused()
            changes = [] if self.is_inline else self.observation.changes()
            self.containers.refuse_changes(self.name, changes)
            # or what the function put into lists among its arguments would count as escaped
            self.containers.release_copies()
            if not self.is_inline:
                scope.exchanged = self.observation.exchanged_containers(changes)
            self.output = self.output_of(result)
            self.output.add_undefined(scope.undefined)
            scope.undefined = []
            self.add_effects(changes)
            self.output.effects += [SettingEffect(*change) for change in left]
            self.output.share_memory()
            gradients, inner_leaves, self.pullback = [], (), None
            if self.output.roots:
                self.pullback = Pullback(scope, self.output.roots)
                gradients, inner_leaves = self.pullback.take_arrays(), self.pullback.leaves
                self.pullback.undefined = next((error for error, _ in scope.undefined), None)
            # before the search for tensors that escape: what was stored in objects comes out
            del changes
            if not self.is_inline:
                self.observation.restore()
                refuse_numbers(self.output.objects.constants)
            arrays, self.escaped_tensors = self.output.finish(inner_leaves)
            return arrays + gradients

    def new_containers(self, leaves) -> ArgumentContainers:
        """The containers among the arguments, with the traced leaves."""
        observation = self.observation if self.sees_containers else None
        structure = self.arguments.structure
        return ArgumentContainers(leaves, self.traced_leaves(leaves), structure, observation)

    def call(self, args, kwargs):
        return self.function(*args, **kwargs)

    @contextlib.contextmanager
    def observed(self):
        """Observe the state that the function reads and changes; put it back at the end."""
        if self.is_inline:
            yield  # the program around observes
            return
        roots, known_parts = (self.function, self.arguments.leaves), self.own_parts()
        rebound, number = self.jitted.cache.rebound, self.scope.number
        self.observation = Observation(*roots, rebound, number, known_parts, self.drawn)
        self.scope.observation = self.observation
        try:
            self.observation.open()
            with taking_in(self.drawn):
                yield
        except BaseException:
            self.observation.restore()
            self.observation.release()
            raise
        finally:
            self.observation.close()

    def traced_leaves(self, leaves) -> list:
        """The arguments as the traced function gets them."""
        inputs = []
        for position, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                number = self.scope.capture(leaf, self.source_of(position)).number
                self.arguments.positions.setdefault(number, []).append(position)
            elif isinstance(leaf, jax.Array):
                leaf = argument_of(self.scope, leaf, position)
            elif position in self.arguments.varying:
                source = ArgumentInput(position, is_number=True)
                leaf = Varying.of_input(self.scope.add_input(leaf, source), source, leaf)
            inputs.append(leaf)
        return inputs

    def source_of(self, position) -> ArgumentSource:
        return ArgumentSource(position)

    def output_of(self, held) -> OutputSpec:
        output_class = JoinedOutput if self.scope.groups else self.output_class
        return output_class(self.scope, held)

    def add_effects(self, changes):
        """Add what the function changes of Python objects to its side effects."""
        for change in changes:
            effect = self.containers.effect_of(self.output, change)
            if effect is not None:
                self.output.effects.append(effect)
                continue
            self.output.effects.append(StateEffect(self.output, change))
            self.changed_numbers |= changed_numbers(change)
            note_rebound(change.holder, change.bound)
        self.output.effects += seed_effects(self.output, self.scope)

    def attribute_effects(self) -> list[AttributeEffect]:
        return [AttributeEffect(*values) for values in self.scope.objects.final_values()]

    def take_captured(self):
        """Take over the captured tensors of the scope, without the tensors themselves."""
        self.groups = released(self.scope.groups)
        rebound = [] if self.is_inline else self.observation.rebound_tensors()
        rebound += [] if self.drawn is None else self.drawn.tensors.values()
        places = {id(tensor): source for tensor, source in reversed(rebound)}
        for captured in self.captured:
            is_argument = captured.position is not None
            if captured.is_outside and not is_argument and id(captured.tensor) in places:
                captured.find_at(places[id(captured.tensor)])
        if self.scope.outer.is_run:
            for captured in self.captured:
                captured.require_history()
        # once it is known where each call finds the tensors
        for effect in self.output.effects:
            if isinstance(effect, StateEffect):
                effect.exchange(self.scope.captured)
        self.tensors = [captured.tensor for captured in self.captured]
        for captured in self.captured:
            captured.release()

    @property
    def escaped(self) -> str | None:
        for tensor in self.escaped_tensors.values():
            line = (self.scope.lines or {}).get(id(tensor))
            where = "" if line is None else f" (made at {line})"
            return f"a tensor of shape {list(tensor.shape)}{where}"
        return None

    # ---- afterwards

    def executable(self, trace: Trace, tensors, leaves) -> Executable:
        """The compiled program of the trace; if compiling fails, the trace is discarded."""
        try:
            return self.executable_class(self, trace, tensors, leaves)
        except BaseException:
            self.discard()
            raise

    def tensors_of(self, leaves) -> list[Tensor]:
        """The captured tensors at the call that traced, with these arguments."""
        tensors = []
        for captured, tensor in zip(self.captured, self.tensors, strict=True):
            is_known = captured.is_outside
            tensors.append(tensor if is_known else captured.source.find(leaves, tensors))
        return tensors

    def trace(self, tensors=None) -> Trace:
        """The `Trace`, with the guards on the captured `tensors`; without these it has no guards,
        and serves no later call.
        """
        if tensors is None:
            return Trace(self, [], {})
        reached = self.reached_arguments(tensors)
        guards = self.guards(tensors, reached)
        self.arguments.uses_containers = self.containers.is_used
        self.observation.release()
        return Trace(self, guards, reached)
