"""The gradient of a traced function from outside: its backward pass, traced together with it.

Where results of a function have a history, a pass from them to what the function has read is traced
at its end. The one jaxpr of both is then split: what the results need is the forward program; of
the rest, which needs gradients of the results as well, comes the backward program, and what that
reads of the first is kept by the node of the call.
"""

from __future__ import annotations

from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from ..autograd._engine.graph_task import PassTo
from ..core.aval import Aval
from ..core.program import Program, Reverse
from ..tape.node import ProgramNode
from ..tape.tensor import wrap
from ..tape.traversal import nodes_from
from .graph_input import Input


class Cotangent(Input):
    """The gradient of a result."""

    def __init__(self, number: int):
        self.key = ("gradient", number)


class Pullback:
    """The pass from the results of a function that have a history to the tensors that it has met.

    `shown`: what these results show; `freed`: the numbers of those whose graph the function has
    itself used up; `cotangents`: where the pass starts from; `places`: those that it leads to;
    `arrays`: their gradients.
    """

    def __init__(self, scope, live):
        self.shown = [aval for _, aval, _ in live]
        self.freed = {number for number, (edge, _, _) in enumerate(live) if is_freed(edge[0])}
        self.cotangents = [Cotangent(number) for number in range(len(live))]
        self.places, self.arrays = [], []
        met = [place for place in scope.places.values() if place.edge is not None]
        refuse_graphs_from_outside(scope, live, [place.edge[0] for place in met])
        if len(self.freed) == len(live) or not met:
            return
        gradients = [
            None if number in self.freed else scope.input(array, self.cotangents[number])
            for number, (_, _, array) in enumerate(live)
        ]
        for place in met:
            place.before.hooks.mute()  # they are called when the gradient has come out
        found = pull([edge for edge, _, _ in live], gradients, [place.edge for place in met])
        for place, array in zip(met, found, strict=True):
            if array is not None:
                self.places.append(place.number)
                self.arrays.append(array)

    def take(self) -> list:
        """The gradients, which it does not keep."""
        arrays, self.arrays = self.arrays, None
        return arrays


def pull(roots, gradients, ends):
    """The gradients that arrive at edges, from those of roots; None for none, of both. What comes
    to one edge is not taken on to others: the engine does so when it has come out.
    """
    given = [pair for pair in zip(roots, gradients, strict=True) if pair[1] is not None]
    run = PassTo(True, False, ends, stops=True)
    run.run([root for root, _ in given], [run.carried(wrap(array)) for _, array in given])
    found = [run.as_tensor(run.captured.get((node.sequence, number))) for node, number in ends]
    return [None if gradient is None else gradient._array for gradient in found]


def refuse_graphs_from_outside(scope, live, ends):
    """Raises RuntimeError where a result's history goes on beyond what the function has read, as
    that of gradients of an outer graph does: it would be lost.
    """
    ends = set(ends)
    for node in nodes_from([edge[0] for edge, _, _ in live], lambda node: node not in ends):
        if scope.is_beyond(node):
            raise RuntimeError(
                f"{scope.name}: a result has a history in a graph that was recorded outside, by a "
                f"pass with create_graph that went on to {node.name()}. Compute what is "
                "differentiated inside of the function, or leave create_graph"
            )


def is_freed(node) -> bool:
    """Whether a backward pass from a node would reach a node whose saved values were freed."""
    return any(each.is_freed for each in nodes_from([node]))


class Split:
    """A jaxpr of a function and its pullback as two.

    `forward`, `backward`: the two; `kept`: what the second reads besides gradients, each a pair of
    a flag and a number, of the first one's outputs where the flag is set, else of its inputs.
    """

    def __init__(self, jaxpr, count: int, gradients, name: str):
        outvars, wanted = list(jaxpr.outvars[:count]), list(jaxpr.outvars[count:])
        forward = needed(jaxpr.eqns, outvars)
        given = {variable for variable in gradients if variable is not None}
        for equation in forward:
            if given.intersection(variables(equation.invars)):
                raise RuntimeError(
                    f"{name}, compiled by jaxgrad.jit: a hook leaves behind what it computes from "
                    "the gradient of a result, which comes from outside. Take the gradient inside "
                    "of the function, or register the hook outside"
                )
        inside = set(map(id, forward))
        backward = [each for each in needed(jaxpr.eqns, wanted) if id(each) not in inside]
        made = {variable for each in backward for variable in each.outvars} | given
        read = [v for each in backward for v in variables(each.invars)] + variables(wanted)
        residuals = list(dict.fromkeys(v for v in read if v not in made))
        inputs = {variable: number for number, variable in enumerate(jaxpr.invars)}
        computed = {v: n for n, v in enumerate(outvars) if not isinstance(v, Literal)}
        self.kept = []
        for variable in residuals:
            if variable in inputs:
                self.kept.append((False, inputs[variable]))
                continue
            if variable not in computed:
                computed[variable] = len(outvars)
                outvars.append(variable)
            self.kept.append((True, computed[variable]))
        self.numbers = [number for flag, number in self.kept if flag]
        self.forward = part(jaxpr, jaxpr.invars, outvars, forward)
        self.equations, self.inputs, self.outputs = forward, jaxpr.invars, outvars
        present = [variable for variable in gradients if variable is not None]
        self.backward = part(jaxpr, [*present, *residuals], wanted, backward)
        self.gradients, self.wanted, self.later = gradients, wanted, backward
        self.influence: dict[int, set[int]] = {}

    def influenced_by(self, number: int) -> set[int]:
        """The numbers of the gradients that that of one of the results has an influence on."""
        if number not in self.influence:
            reached = depending(self.later, {self.gradients[number]} - {None})
            pairs = enumerate(self.wanted)
            self.influence[number] = {n for n, v in pairs if variables([v]) and v in reached}
        return self.influence[number]


def depending(equations, inputs) -> set:
    """The variables that some of the inputs of equations have an influence on."""
    found = set(inputs)
    for equation in equations:
        if not found.isdisjoint(variables(equation.invars)):
            found.update(equation.outvars)
    return found


def variables(atoms) -> list:
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def needed(equations, outputs) -> list:
    """The equations that outputs come from, and those that have effects."""
    wanted, found = set(variables(outputs)), []
    for equation in reversed(equations):
        if equation.effects or not wanted.isdisjoint(equation.outvars):
            found.append(equation)
            wanted.update(variables(equation.invars))
    return found[::-1]


def part(jaxpr, inputs, outputs, equations):
    """A function of some of the equations of a jaxpr."""
    effects = frozenset().union(*[each.effects for each in equations])
    made = jaxpr.replace(
        constvars=[], invars=list(inputs), outvars=list(outputs), eqns=equations, effects=effects
    )
    return jaxpr_as_fun(ClosedJaxpr(made, []))


class Compiled(Program):
    """A traced function as a program: from the arrays that go in to its results with a history."""

    def __init__(self, trace, inputs, live, kept):
        self.mode = max([i.mode for i in inputs if isinstance(i, Aval)], default=0)
        self.trace, self.name = trace, trace.name
        self.inputs, self.live = tuple(inputs), len(live)
        self.outputs = (*live, *kept)
        self.differentiable_outputs = tuple(range(len(live)))

    def function(self, *arrays):
        return self.trace.replayed(arrays)

    def make_reverse(self, mask):
        return CompiledReverse(self, mask)


class CompiledNode(ProgramNode):
    """The call of a compiled function. Hooks of a result that no gradient arrives at are not
    called: they would not be, were the results computed apart.
    """

    __slots__ = ()
    tells_none = False


class CompiledReverse(Reverse):
    """The backward program of a traced function, which reads its inputs and what it has kept.

    Where JAX differentiates it in its turn, it is the pass over the function run again.
    """

    tells_apart = True

    def __init__(self, program: Compiled, mask):
        super().__init__(program, mask)
        self.saved_inputs = tuple(range(len(program.inputs)))
        self.saved_outputs = tuple(range(program.live, len(program.outputs)))
        self.outputs = tuple(program.inputs[i] for i in self.wanted)

    def function(self, *arrays):
        count = self.program.live
        gradients, inputs = arrays[:count], arrays[count : count + len(self.program.inputs)]
        return self.program.trace.replayed(inputs, gradients, self.wanted)

    def value(self, *arrays):
        trace, count = self.program.trace, self.program.live
        gradients = [arrays[i] for i in range(count) if i not in trace.pullback.freed]
        rest = arrays[count:]
        kept = iter(rest[len(self.program.inputs) :])
        known = (*rest[: len(self.program.inputs)], *trace.constants)
        residuals = [next(kept) if flag else known[number] for flag, number in trace.split.kept]
        return tuple(trace.backward(gradients, residuals))

    def reached(self, given, results):
        """The gradients, None for those that no gradient which arrived has an influence on: the
        results of a function are as little connected as they would be, were it not compiled.
        """
        if all(gradient is not None for gradient in given):
            return results
        trace = self.program.trace
        present = [n for n, gradient in enumerate(given) if gradient is not None]
        numbers = set().union(*map(trace.split.influenced_by, present))
        reached = {trace.pullback.places[number] for number in numbers}
        if self.single:
            return results if self.wanted[0] in reached else None
        return [r if n in reached else None for n, r in zip(self.wanted, results, strict=True)]
