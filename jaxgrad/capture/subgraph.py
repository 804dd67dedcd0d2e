"""Subgraphs: functions of tensors inside of a trace, each traced by itself, such as the branches
and bodies of control flow (capture/control_flow.py).

What a subgraph reads from outside is captured as `jaxgrad.jit` captures it (capture/scope.py), but
tensors of the trace around it count as outside too, so gradients flow to them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import jax
import numpy as np

from ..compiled.partition import function_of
from ..core import dtypes, executor
from ..core.aval import aval_of, joint_mode, make_aval, strong, types_of_trace
from ..core.device import device_of_jax
from ..core.program import DerivedReverse, Program
from ..frontend import tensor_data
from ..frontend.array_creation import from_host
from ..frontend.request import KeyRequest, RunsRequest
from ..tape import dual_level, mode, pytree, record
from ..tape.node import next_sequence_number
from ..tape.tensor import (
    Tensor,
    held,
    is_tracked,
    known_leaf_state,
    recorded_node,
    wrap,
)
from ..tape.traversal import nodes_from
from .graph_input import GraphInput
from .known_numbers import input_p
from .scope import CaptureScope


class SubgraphScope(CaptureScope):
    """The scope of a function traced by itself, inside of a trace."""

    is_inner = True

    def __init__(self, name):
        super().__init__(name)
        self.is_differentiated = True

    @contextlib.contextmanager
    def open(self):
        with super().open():
            # JAX differentiates the subgraph as a whole, so its operators see no level of forward
            # mode; and what it draws is traced, which a checkpoint outside could not keep to repeat
            seen, again = dual_level.hide(), mode.draws.set(None)
            try:
                yield self
            finally:
                mode.draws.reset(again)
                dual_level.window.reset(seen)

    def draw(self, generator, request):
        raise RuntimeError(
            f"{self.name}: a function inside draws random numbers, which would be the same ones at "
            "each run: draw them outside, and pass them in"
        )

    def record_grad_access(self, tensor, written):
        if not self.is_created_here(tensor):
            raise RuntimeError(
                f"{self.name}: a function inside reads or changes the .grad of a tensor of shape "
                f"{list(tensor.shape)} from outside: use autograd.grad, and return the gradient"
            )

    def refuse_writes(self, arguments):
        """Raises RuntimeError where a captured tensor or an argument was written to. arguments:
        pairs of an argument and its array.
        """
        captured = [(capture.tensor, capture.tracer) for capture in self.captured.values()]
        for tensor, array in [*captured, *arguments]:
            if tensor._array is not array:
                refuse_write(self.name, tensor)


class CountedScope(SubgraphScope):
    """The scope of a function whose number of runs is known, so each run can draw its own numbers.

    `draws`: what a run draws, by the id of a generator of JAX's stream, and by number.
    """

    def __init__(self, name):
        super().__init__(name)
        self.draws: dict[int | tuple, RunDraws | RunNumbers] = {}
        self.by_generator: dict[int, RunsOfGenerator] = {}

    def draw(self, generator, request):
        is_counted = isinstance(self.parent, CountedScope)
        if not is_counted and getattr(type(self.parent), "draw", None) is not CaptureScope.draw:
            return super().draw(generator, request)  # in a trace of JAX's own, a branch, or a vmap
        if generator.stream == "jax":
            return [self.next_words(generator, self.draws, RunDraws, request.count)]
        runs = self.by_generator.setdefault(id(generator), RunsOfGenerator(generator))
        runs.requests.append(request)
        tracers = []
        for struct in request.structs:
            key = "drawn", len(self.draws)
            self.draws[key] = RunNumbers(runs, runs.count, key)
            runs.count += 1
            tracers.append(self.add_input(struct, self.draws[key]))
        return tracers


class RunDraws(GraphInput):
    """The state of a generator at the start of a run, which takes `count` draws."""

    def __init__(self, generator):
        self.generator, self.count, self.words = generator, 0, None

    def reserve(self, runs: int):
        """The state before the first of `runs` runs; takes all their draws in the trace around."""
        scope = mode.scope.get()
        known = getattr(scope, "draws", scope.seeded.inputs)

        def draw():
            (words,) = scope.draw(self.generator, KeyRequest())
            source = scope.seeded.get(self.generator) or known[id(self.generator)]
            # `scope.draw` has counted one
            source.count += runs * self.count - 1
            return words

        # a checkpoint that runs the loop again gets the draws of its first run
        words = mode.drawn(draw)
        with types_of_trace():
            return wrap(jax.lax.bitcast_convert_type(words.reshape(2, 2), np.uint64))

    def at(self, state, run):
        """The state at the start of run number `run`."""
        return state.at[1].add(run.astype(np.uint64) * np.uint64(self.count))


class RunsOfGenerator:
    """What a run draws from a generator of PyTorch's stream: its requests, and how many arrays they
    give. `arrays`: these for all runs, in the trace around.
    """

    def __init__(self, generator):
        self.generator, self.requests, self.count, self.arrays = generator, [], 0, None

    def reserve(self, runs: int) -> list:
        """The arrays of so many runs; takes all their draws in the trace around."""
        if self.arrays is None:
            results = self.generator.numbers(RunsRequest(tuple(self.requests), runs))
            self.arrays = [result.array() for result in results]
        return self.arrays


class RunNumbers(GraphInput):
    """An array that a run draws, by its number among those of the generator."""

    def __init__(self, of_generator: RunsOfGenerator, number: int, key):
        self.of_generator, self.number, self.key = of_generator, number, key

    def reserve(self, runs: int):
        array = self.of_generator.reserve(runs)[self.number]
        if isinstance(array, jax.core.Tracer):
            return wrap(array)
        with jax.ensure_compile_time_eval():
            return wrap(from_host(array))

    def at(self, array, run):
        return jax.lax.dynamic_index_in_dim(array, run, keepdims=False)


def refuse_write(name, tensor):
    raise RuntimeError(
        f"{name}: a function inside writes to a tensor of shape {list(tensor.shape)} that it is "
        "given or reaches outside: clone() it first, and return the new value"
    )


class Subgraph:
    """A function of tensors, traced to a function of arrays.

    `reads`: the captured tensors; `draws`: the generators from which it draws; `avals`,
    `structure`: of its result; `run(arguments, read)`: the function of the arrays of its arguments,
    and of the arrays of `reads` followed by the states of `draws`.
    """

    def __init__(
        self, name: str, function: Callable, leaves: list[Tensor], structure, kind=SubgraphScope
    ):
        scope, self.name = kind(name), name
        closed = jax.make_jaxpr(
            lambda *arrays: self.trace(scope, function, arrays, leaves, structure)
        )(*[leaf._array for leaf in leaves])
        self.reads = [captured.tensor for captured in scope.captured.values()]
        self.draws = list(getattr(scope, "draws", {}).values())
        equations = [equation for equation in closed.jaxpr.eqns if equation.primitive is input_p]
        variables = {scope.inputs[e.params["number"]]: e.outvars[0] for e in equations}
        arrays = {
            source.captured: variable for source, variable in variables.items() if source.captured
        }
        inner = [*map(arrays.get, scope.captured.values()), *map(variables.get, self.draws)]
        self.constants = closed.consts
        if any(isinstance(constant, jax.core.Tracer) for constant in closed.consts):
            raise RuntimeError(
                f"{name}: a function inside reads a value of the trace around it that is in no "
                "tensor (an array of JAX's): pass it in"
            )
        jaxpr = closed.jaxpr
        inputs = [*jaxpr.invars, *inner, *jaxpr.constvars]
        rest = [equation for equation in jaxpr.eqns if equation.primitive is not input_p]
        self.function = function_of(jaxpr, inputs, jaxpr.outvars, rest)
        self.avals = [make_aval(a.shape, dtypes.from_numpy(a.dtype)) for a in closed.out_avals]

    def trace(self, scope, function, arrays, leaves, structure):
        begun = next_sequence_number()
        with scope.open():
            # as tracked as outside, for code that asks `requires_grad`
            arguments = [
                wrap(array, None, is_tracked(leaf))
                for array, leaf in zip(arrays, leaves, strict=True)
            ]
            pairs = [(tensor, held(tensor)) for tensor in arguments]
            result = function(*jax.tree.unflatten(structure, arguments))
            scope.refuse_writes(pairs)
            outputs, self.structure = flatten(self.name, result)
            if any(map(is_hooked, [*arguments, *nodes_since(begun, outputs)])):
                raise RuntimeError(
                    f"{self.name}: a function inside registers a hook, which would not be called, "
                    "as JAX derives the gradient of what is inside: register it outside"
                )
            return [strong(output._array) for output in outputs]

    def run(self, arguments, read):
        return self.function(*arguments, *read, *self.constants)

    def take(self) -> list[Tensor]:
        """The captured tensors, which it no longer keeps alive."""
        tensors, self.reads = self.reads, None
        return tensors


def nodes_since(begun: int, tensors):
    """The nodes recorded since sequence number `begun` in the history of tensors."""
    roots = [node for node in map(recorded_node, tensors) if node is not None]
    return nodes_from(roots, lambda node: node.sequence >= begun)


def is_hooked(leaf_or_node) -> bool:
    """Whether a leaf has hooks, or a node, its output tensors included."""
    if isinstance(leaf_or_node, Tensor):
        leaf = known_leaf_state(leaf_or_node)
        return leaf is not None and bool(leaf.hooks or leaf.post_hooks)
    extras = leaf_or_node.extras
    if extras is None:
        return False
    return any([extras.pre_hooks, extras.post_hooks, *(extras.tensor_hooks or {}).values()])


def flatten(name: str, value):
    """The leaves of a tree as tensors, and its structure."""
    leaves, structure = pytree.flatten(value)
    return [as_tensor(name, leaf) for leaf in leaves], structure


def as_tensor(name, value):
    if isinstance(value, Tensor):
        return value
    if isinstance(value, jax.Array):
        return wrap(value)
    if isinstance(value, bool | int | float | complex):
        return tensor_data.tensor(value, device=device_of_jax())
    raise TypeError(
        f"{name}: arguments and results are tensors, and trees of them, not {type(value).__name__}"
    )


class ControlFlow(Program):
    """Control flow over subgraphs. run: takes the arrays of `leaves`."""

    def __init__(self, name: str, leaves: list[Tensor], run: Callable):
        self.name, self.run = name, run
        self.inputs = tuple(aval_of(leaf._array) for leaf in leaves)
        self.mode = joint_mode(name, self.inputs)

    def function(self, *arrays):
        return tuple(self.run(*arrays))


class WhileLoop(ControlFlow):
    """A loop whose number of runs depends on values. It has no reverse mode."""

    def make_reverse(self, mask):
        return NoReverse(self, mask)


class NoReverse(DerivedReverse):
    def function(self, *arrays):
        raise RuntimeError(
            "while_loop: a loop whose number of runs depends on values has no reverse mode in a "
            "trace: the number of residuals is not known. Use scan, or fori_loop with bounds that "
            "are Python numbers; forward mode works, and so does the loop without jit. Without "
            "need of a gradient, run it under no_grad"
        )


def apply(program: ControlFlow, leaves, structure):
    """Run the program; gives its results as the tree that the functions return."""
    results = record.apply(executor.prepare(program), leaves)
    return jax.tree.unflatten(structure, [results] if isinstance(results, Tensor) else results)


class SharedReads:
    """The captured tensors of several subgraphs, each once."""

    def __init__(self, subgraphs):
        # one operand for a tensor that several read, so its node gets one edge and one gradient
        reads = {id(subgraph): subgraph.take() for subgraph in subgraphs}
        self.tensors = list({id(t): t for read in reads.values() for t in read}.values())
        numbers = {id(tensor): number for number, tensor in enumerate(self.tensors)}
        self.numbers = {key: [numbers[id(t)] for t in read] for key, read in reads.items()}

    def take(self) -> list[Tensor]:
        """The captured tensors, which it no longer keeps alive."""
        tensors, self.tensors = self.tensors, None
        return tensors

    def run(self, subgraph: Subgraph, arguments, arrays):
        """Run a subgraph. arrays: those of all captured tensors."""
        return subgraph.run(arguments, [arrays[number] for number in self.numbers[id(subgraph)]])
