"""Functions of tensors inside of a trace, each traced by itself: the branches and bodies of control
flow (capture/control_flow.py), as programs.

What such a function reads from outside is found by the tensors' handles, as `jaxgrad.jit` finds it
(capture/scope.py); but it finds tensors of the trace around it too, so that gradients flow to them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import jax
import numpy as np

from ..core import dtypes, executor
from ..core.aval import IMMEDIATE, aval_of, make_aval
from ..core.program import DerivedReverse, Program
from ..frontend import tensor_data
from ..tape import dual_level, mode, record
from ..tape.node import Node, next_sequence_number
from ..tape.tensor import Tensor, current, wrap
from ..tape.traversal import nodes_from
from .graph_input import Input, words_of
from .partition import part
from .scope import Scope, captured


class Branch(Scope):
    """A function that is traced for itself; around it another may be under way."""

    is_inner = True

    @contextlib.contextmanager
    def open(self):
        with super().open():
            seen, again = dual_level.hide(), mode.draws.set(None)
            try:
                yield self
            finally:
                mode.draws.reset(again)
                dual_level.window.reset(seen)

    def draw(self, generator):
        raise RuntimeError(
            f"{self.name}: a function inside draws random numbers, which would be the same ones at "
            "each run: draw them outside, and pass them in"
        )

    def slot(self, tensor, written):
        if not self.is_own(tensor):
            raise RuntimeError(
                f"{self.name}: a function inside reads or changes the .grad of a tensor of shape "
                f"{list(tensor.shape)} from outside: use autograd.grad, and return the gradient"
            )

    def refuse_writes(self, given):
        """Raises RuntimeError where a tensor was written to that is there afterwards."""
        met = [(place.tensor, place.array) for place in self.places.values()]
        for tensor, array in [*met, *given]:
            if current(tensor)._raw is not array:
                refuse_write(self.name, tensor)


class Step(Branch):
    """A function that runs so often as is known, so that each run can draw numbers of its own.

    `drawing`: by generator what it draws.
    """

    def __init__(self, name):
        super().__init__(name)
        self.drawing: dict[int, Drawing] = {}

    def draw(self, generator):
        counts = (
            isinstance(self.parent, Step) or getattr(type(self.parent), "draw", None) is Scope.draw
        )
        if not counts:  # a trace of JAX's own, a branch, or a vmap
            return super().draw(generator)
        found = self.drawing.get(id(generator))
        if found is None:
            found = self.drawing[id(generator)] = Drawing(generator)
            found.words = self.input(np.zeros(2, np.uint64), found)
        number, found.count = found.count, found.count + 1
        return words_of(found.words, number)


class Drawing(Input):
    """The state of a generator at a run, which makes `count` draws."""

    def __init__(self, generator):
        self.generator, self.count, self.words = generator, 0, None

    def reserve(self, runs: int):
        """The state before so many runs, whose draws are made in the trace around them."""
        scope = mode.scope.get()
        known = getattr(scope, "drawing", scope.generators)

        def draw():
            words = scope.draw(self.generator)
            known[id(self.generator)].count += runs * self.count - 1
            return words

        words = mode.drawn(draw)
        return wrap(jax.lax.bitcast_convert_type(words.reshape(2, 2), np.uint64))

    def at(self, state, run):
        """The state at a run."""
        return state.at[1].add(run.astype(np.uint64) * np.uint64(self.count))


def refuse_write(name, tensor):
    raise RuntimeError(
        f"{name}: a function inside writes to a tensor of shape {list(tensor.shape)} that it is "
        "given or reaches outside: clone() it first, and return its new value"
    )


class Traced:
    """A function of tensors as one of arrays.

    `reads`: the tensors from outside that it reads; `outputs`: abstract values; `structure`: of its
    result; `drawing`: what it draws; `run(given, read)`: the function, of its arguments, and of the
    arrays of `reads` and what is drawn from.
    """

    def __init__(self, name: str, function: Callable, leaves: list[Tensor], structure, kind=Branch):
        scope, self.name = kind(name), name
        closed = jax.make_jaxpr(
            lambda *arrays: self.trace(scope, function, arrays, leaves, structure)
        )(*[leaf._array for leaf in leaves])
        places = sorted(scope.places.values(), key=lambda place: place.number)
        self.reads = [place.tensor for place in places]
        self.drawing = list(getattr(scope, "drawing", {}).values())
        equations = [each for each in closed.jaxpr.eqns if each.primitive is captured]
        found = {scope.inputs[e.params["number"]]: e.outvars[0] for e in equations}
        met = {each.place.number: variable for each, variable in found.items() if each.place}
        inner = [met[place.number] for place in places] + list(map(found.get, self.drawing))
        self.constants = closed.consts
        if any(isinstance(each, jax.core.Tracer) for each in closed.consts):
            raise RuntimeError(
                f"{name}: a function inside reads a value of the trace around it that is in no "
                "tensor (an array of JAX's): pass it in"
            )
        jaxpr = closed.jaxpr
        inputs = [*jaxpr.invars, *inner, *jaxpr.constvars]
        rest = [each for each in jaxpr.eqns if each.primitive is not captured]
        self.function = part(jaxpr, inputs, jaxpr.outvars, rest)
        self.avals = [make_aval(a.shape, dtypes.from_numpy(a.dtype)) for a in closed.out_avals]

    def trace(self, scope, function, arrays, leaves, structure):
        begun = next_sequence_number()
        with scope.open():
            given = [
                wrap(array, None, leaf._tracked) for array, leaf in zip(arrays, leaves, strict=True)
            ]
            pairs = [(tensor, tensor._raw) for tensor in given]
            result = function(*jax.tree.unflatten(structure, given))
            scope.refuse_writes(pairs)
            outputs, self.structure = flatten(self.name, result)
            if any(map(is_hooked, [*given, *nodes_behind(outputs, begun)])):
                raise RuntimeError(
                    f"{self.name}: a function inside registers a hook, which would not be called, "
                    "as JAX derives the gradient of what is inside: register it outside"
                )
            return [strong(current(output)._raw) for output in outputs]

    def run(self, given, read):
        return self.function(*given, *read, *self.constants)


def nodes_behind(tensors, begun: int):
    """The nodes with sequence numbers from `begun` on that tensors were computed by."""
    roots = [tensor._node for tensor in tensors if isinstance(tensor._node, Node)]
    return nodes_from(roots, lambda node: node.sequence >= begun)


def is_hooked(where) -> bool:
    """Whether users have registered hooks on a leaf, or on a node and what came out of it."""
    if isinstance(where, Tensor):
        leaf = where._leaf
        return leaf is not None and bool(leaf.hooks or leaf.post_hooks)
    found = where.extras
    if found is None:
        return False
    return any([found.pre_hooks, found.post_hooks, *(found.tensor_hooks or {}).values()])


def strong(array):
    """The array, of its dtype also where JAX took it for a Python number."""
    return jax.lax.convert_element_type(array, array.dtype)


def flatten(name: str, value):
    """The tensors of a tree, numbers and arrays made tensors, and its structure."""
    leaves, structure = jax.tree.flatten(value, is_leaf=lambda each: isinstance(each, Tensor))
    return [as_tensor(name, leaf) for leaf in leaves], structure


def as_tensor(name, value):
    if isinstance(value, Tensor):
        return value
    if isinstance(value, jax.Array):
        return wrap(value)
    if isinstance(value, bool | int | float | complex):
        return tensor_data.tensor(value)
    raise TypeError(
        f"{name}: what goes in and comes out are tensors, and trees of them, not "
        f"{type(value).__name__}"
    )


class Flow(Program):
    """Control flow over traced functions: `run` takes the arrays of `leaves`."""

    def __init__(self, name: str, leaves: list[Tensor], run: Callable):
        self.name, self.run = name, run
        self.inputs = tuple(aval_of(leaf._array) for leaf in leaves)
        self.mode = max((aval.mode for aval in self.inputs), default=IMMEDIATE)

    def function(self, *arrays):
        return tuple(self.run(*arrays))


class Loop(Flow):
    """A loop that runs nobody knows how often, which has no reverse mode."""

    def make_reverse(self, mask):
        return NoReverse(self, mask)


class NoReverse(DerivedReverse):
    def function(self, *arrays):
        raise RuntimeError(
            "while_loop: a loop whose number of runs depends on values has no "
            "reverse mode in a trace: how many values to keep is not known. Use scan, or fori_loop "
            "with bounds that are Python numbers; forward mode works, and so does the loop without "
            "jit. Where no gradient is wanted, run it under no_grad"
        )


def apply(program: Flow, leaves, structure):
    """The program's results as the tree that the functions return."""
    found = record.apply(executor.prepare(program), leaves)
    return jax.tree.unflatten(structure, [found] if isinstance(found, Tensor) else found)


class Reads:
    """The tensors that several traced functions read from outside, each once."""

    def __init__(self, functions):
        self.tensors = list({id(t): t for f in functions for t in f.reads}.values())
        numbers = {id(tensor): number for number, tensor in enumerate(self.tensors)}
        self.numbers = {id(f): [numbers[id(t)] for t in f.reads] for f in functions}

    def run(self, function: Traced, given, arrays):
        """A function, given the arrays of all tensors that are read."""
        return function.run(given, [arrays[number] for number in self.numbers[id(function)]])
