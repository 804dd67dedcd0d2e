"""A compiled program of a function, and how its arrays are the function's inputs and outcome."""

from __future__ import annotations

import functools
import sys
import weakref

import jax

from ..core import executor
from ..core.aval import IMMEDIATE, aval_of
from ..core.program import bare
from ..tape.mode import casting, current_mode
from ..tape.node import FREED
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, edge_of
from .captured import Argument
from .code_guards import Surroundings
from .graph_input import ArgumentInput, Input
from .partition import Compiled, CompiledNode, Pullback, Split, part
from .replay import again, replay
from .scope import Scope, captured
from .side_effects import Outcome


class Trace:
    """One compiled program, and how its arrays are the function's inputs and its outcome.

    `places`: the tensors that go in; `survivors`: at the first call, which has just traced it, the
    tensors that the trace has made, and `alive` those in the places, which nobody else may hold any
    more; `left`: what the first of the survivors is, None where there is none.
    """

    mode = IMMEDIATE
    is_inner = False  # whether it is a program in another
    outcome_class = Outcome

    def __init__(self, jitted, leaves, structure, varying=frozenset()):
        self.varying = varying
        self.jitted, self.structure, self.name = jitted, structure, jitted.__name__
        self.leaves = [None if isinstance(leaf, Tensor | jax.Array) else leaf for leaf in leaves]
        self.grad_mode, self.casting = current_mode.get(), casting.get()
        self.derivative, self.held = None, []
        scope = self.scope()
        with self.wide():
            closed = jax.make_jaxpr(functools.partial(self.run, scope, leaves))()
        if scope.outside.is_run:
            for place in scope.places.values():
                place.fix_history()
        self.alive = [place.tensor for place in scope.places.values()]
        self.places = [place.settle() for place in scope.places.values()]
        self.left = self.described(scope)
        self.others = [each for each in scope.inputs if each.is_given]
        self.met, self.constants = scope.outside, closed.consts
        reads = [getattr(each, "read", None) for each in self.others]
        self.unseen = [read.__code__ for read in reads if hasattr(read, "__code__")]
        self.objects = scope.objects
        self.objects.end()
        self.program = self.compiled(closed.jaxpr, scope.inputs, leaves)
        executor.adopt(self, executor.with_wide_types(self.program))

    def locate(self, leaves) -> list[Tensor]:
        """The tensors that were in its places when it was traced, which has just been done."""
        tensors = []
        for place, tensor in zip(self.places, self.alive, strict=True):
            tensors.append(tensor if place.is_outside else place.source.find(leaves, tensors))
        self.alive = [None] * len(tensors)
        return tensors

    def described(self, scope) -> str | None:
        for tensor in self.survivors.values():
            line = scope.lines.get(id(tensor))
            where = "" if line is None else f", made at {line},"
            return f"a tensor of shape {list(tensor.shape)}{where}"
        return None

    def guard(self, tensors):
        """Note what else must be as it is for the program to serve: what the function names, and
        arguments that it may also have read by itself.
        """
        self.surroundings = Surroundings(self.jitted.function, self.leaves, self.unseen)
        given = [place for place in self.places if isinstance(place.source, Argument)]
        tensors = [tensors[place.number] for place in given]
        reached = self.surroundings.reached(self.leaves, tensors)
        self.held = [
            (place.number, weakref.ref(tensor))
            for place, tensor in zip(given, tensors, strict=True)
            if id(tensor) in reached
        ]

    # ---- tracing

    def scope(self) -> Scope:
        return Scope(self.name, notes_lines=self.jitted.in_a_row > 0)

    def wide(self):
        return jax.enable_x64(True)

    def rules(self):
        """The tape differentiates what is traced, so operators need no rules for JAX."""
        return bare()

    def run(self, scope: Scope, leaves):
        """What JAX traces: the function on tensors of tracers."""
        with self.rules(), scope.open():
            given = self.arguments(scope, leaves)
            args, kwargs = jax.tree.unflatten(self.structure, given)
            self.outcome = self.outcome_of(scope, [self.jitted.function(*args, **kwargs)])
            del given, args, kwargs
            gradients, self.pullback = [], None
            if self.outcome.live:
                self.pullback = Pullback(scope, self.outcome.live)
                gradients = self.pullback.take()
            arrays, self.survivors = self.outcome.finish()
            return arrays + gradients

    def outcome_of(self, scope, held) -> Outcome:
        return self.outcome_class(scope, held)

    def arguments(self, scope, leaves):
        given, self.positions = [], {}
        for position, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                number = scope.meet(leaf, Argument(position)).number
                self.positions.setdefault(number, []).append(position)
            elif isinstance(leaf, jax.Array):
                leaf = scope.input(leaf, ArgumentInput(position))
            elif position in self.varying:
                leaf = Varying(scope.input(leaf, ArgumentInput(position)))
            given.append(leaf)
        return given

    def compiled(self, jaxpr, inputs: list[Input], leaves):
        """The program, as a function of the tensors in the places and the other inputs."""
        found = {
            inputs[equation.params["number"]]: equation.outvars[0]
            for equation in jaxpr.eqns
            if equation.primitive is captured
        }
        order = [each for each in inputs if each.place is not None] + self.others
        jaxpr = jaxpr.replace(
            constvars=[],
            invars=[*map(found.get, order), *jaxpr.constvars],
            eqns=[each for each in jaxpr.eqns if each.primitive is not captured],
        )
        if self.pullback is None:
            run = part(jaxpr, jaxpr.invars, jaxpr.outvars, jaxpr.eqns)
        else:
            gradients = [found.get(each) for each in self.pullback.cotangents]
            self.split = Split(jaxpr, self.outcome.count, gradients, self.name)
            run = self.split.forward
        program = self.forward(run, order)
        program.__name__ = program.__qualname__ = self.name
        donated = self.donated(leaves)
        self.donation = [number for number, place in enumerate(self.places) if number in donated]
        return jax.jit(program, donate_argnums=self.donation)

    def forward(self, run, order: list[Input]):
        """The program of a part of the jaxpr, which takes inputs and constants."""
        constants = self.constants

        def program(*arrays):
            return run(*arrays, *constants)

        return program

    def backward(self, gradients, residuals):
        """The gradients of the tensors that the pullback leads to."""
        return self.split.backward(*gradients, *residuals)

    def donated(self, leaves) -> set[int]:
        """The places whose memory the results may take."""
        if not self.jitted.donates or (self.pullback and self.pullback.places):
            return set()
        args, kwargs = jax.tree.unflatten(self.structure, range(self.structure.num_leaves))
        chosen = {
            leaf
            for key in self.jitted.donate
            for leaf in jax.tree.leaves(argument_at(args, kwargs, key))
        }
        told = {p.number for p in self.places if getattr(p.source, "position", None) in chosen}
        return told | {c.number for c in self.outcome.changes if c.value is not None}

    # ---- running

    def find(self, leaves) -> list[Tensor] | None:
        """The tensors that are in its places now; None where the program is not for them."""
        tensors = []
        for place in self.places:
            found = place.reference
            tensor = place.source.find(leaves, tensors) if found is None else found()
            if tensor is None or not place.suits(tensor):
                return None
            tensors.append(tensor)
        return None if self.refusal_of(leaves, tensors) else tensors

    def refusal_of(self, leaves, tensors) -> str | None:
        """Why it cannot be called with tensors that suit one by one; None where it can."""
        if len(set(map(id, tensors))) < len(tensors):
            return "two tensors are the same one now"
        for number, positions in self.positions.items():
            if len(positions) > 1 and any(leaves[i] is not tensors[number] for i in positions):
                return "two arguments are not the same tensor any more"
        for number, reference in self.held:
            if reference() is not tensors[number]:
                return "a tensor that it was given and has read by itself is another one now"
        if self.met.has_changed():
            return "the hooks of a node from outside have changed"
        why = self.objects.refusal()
        if why is not None:
            return why
        return self.surroundings.changed()

    def refusal(self, leaves) -> str | None:
        """Why it cannot be called again, None where it can."""
        tensors = []
        for place in self.places:
            tensor = place.source.find(leaves, tensors)
            why = place.refusal(tensor)
            if why is not None:
                return (
                    f"of the tensor of shape {list(place.aval.shape)} read at {place.line}: {why}"
                )
            tensors.append(tensor)
        return self.refusal_of(leaves, tensors)

    def inputs_of(self, leaves, tensors):
        arrays = [tensor._raw for tensor in tensors]
        for number in self.donation:
            if sys.getrefcount(arrays[number]) > _ALONE + _is_stored(tensors[number]):
                arrays[number] = jax.numpy.copy(arrays[number])
        arrays += [source.array(leaves) for source in self.others]
        return arrays

    def __call__(self, leaves, tensors):
        inputs = self.inputs_of(leaves, tensors)
        arrays = self.kernel(*inputs)
        survivors, self.survivors = self.survivors, ()
        nodes = () if self.pullback is None else self.nodes(tensors, inputs, arrays)
        result = self.outcome.apply(arrays, tensors, nodes, survivors)
        if self.objects.settled:
            self.objects.apply()
        return result

    # ---- differentiating from outside

    def nodes(self, tensors, inputs, arrays):
        """For each result with a history the node that it comes from: that of the call, or where
        the function has used its graph up, one that says so.
        """
        if self.derivative is None:
            self.derivative = self.differentiable(inputs, arrays)
        freed, made = self.pullback.freed, {}
        tracked = [number for number, place in enumerate(self.places) if place.tracked]
        for number in range(self.outcome.live):
            up = number in freed
            if up not in made:
                wanted = tracked if up else self.pullback.places
                reverse = self.derivative.reverse(
                    tuple(i in wanted for i in range(len(self.derivative.inputs)))
                )
                saved = FREED if up else [*inputs, *[arrays[n] for n in self.split.numbers]]
                edges = [edge_of(tensors[n]) for n in wanted]
                made[up] = CompiledNode(reverse, saved, edges, self.outcome.live)
        return [made[number in freed] for number in range(self.outcome.live)]

    def differentiable(self, inputs, arrays):
        shown = [place.aval for place in self.places]
        shown += [
            aval_of(each) if hasattr(each, "shape") else type(each) for each in inputs[len(shown) :]
        ]
        kept = [aval_of(arrays[number]) for number in self.split.numbers]
        return Compiled(self, shown, self.pullback.shown, kept)

    def replayed(self, inputs, gradients=None, wanted=()):
        """See `replaying.replay`."""
        return replay(self, inputs, gradients, wanted)

    def kept(self, arrays):
        """The inputs of a run as they can be used after it, those that are donated copied."""
        with jax.enable_x64(True):
            return [
                jax.numpy.copy(array) if number in self.donation else array
                for number, array in enumerate(arrays)
            ]

    def again(self, arrays):
        """See `replaying.again`."""
        return again(self, arrays)

    def is_over(self) -> bool:
        """Whether a tensor that it needs is gone, or a hook that it has."""
        return any(place.is_over() for place in self.places)


def _is_stored(tensor) -> bool:
    """Whether what a tensor shares with its views has its array too."""
    return tensor._alias is not None and tensor._alias.storage.array is tensor._raw


def _alone() -> int:
    """How many references there are to an array that only its tensor has, in `inputs_of`."""
    arrays = [Tensor.__new__(Tensor)]
    arrays[0]._raw = object()
    arrays = [arrays[0]._raw, arrays.pop()]
    return sys.getrefcount(arrays[0])


_ALONE = _alone()


def argument_at(args, kwargs, key):
    if isinstance(key, str):
        return kwargs.get(key)
    return args[key] if key < len(args) else None
