"""The gradient of a traced function from outside: its backward pass, traced together with it.

Where outputs of a function have a history, a pass from them to the captured tensors is traced after
the function. The jaxpr of both is then partitioned, like PyTorch's joint graph: what the outputs
need is the forward program, the rest is the backward program, and the residuals that the second
reads from the first are saved by the node of the call.
"""

from __future__ import annotations

import itertools
from operator import attrgetter

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun
from jax.interpreters import partial_eval

from ..autograd._engine.graph_task import PassTo
from ..autograd._function.call import FunctionNode
from ..core.aval import Aval
from ..core.bounded_cache import weight_of_kernel
from ..core.program import Program, Reverse
from ..tape.node import FREED, AccumulateGrad, ProgramNode
from ..tape.tensor import wrap
from ..tape.traversal import nodes_from
from .graph_input import GraphInput


class Cotangent(GraphInput):
    """The cotangent of an output."""

    def __init__(self, number: int):
        self.key = ("cotangent", number)


class Pullback:
    """The pass from the outputs of a function that have a history to its captured tensors.

    `avals`: those of these outputs; `freed`: the numbers of those whose graph the function has used
    up; `freeing`, `calling`: of those whose pass frees what a node has saved, and whose pass runs a
    Function or hooks; `groups`: for each output the first one that shares a node with it;
    `cotangents`: the inputs that the pass starts from; `reached`: the numbers of the captured
    tensors that get a gradient; `arrays`: these gradients; `leaves`: the ids of the leaves from
    inside that the outputs depend on, which get none.
    """

    def __init__(self, scope, roots):
        self.avals = [aval for _, aval, _ in roots]
        self.freed = {number for number, (edge, _, _) in enumerate(roots) if is_freed(edge[0])}
        self.cotangents = [Cotangent(number) for number in range(len(roots))]
        self.reached, self.arrays = [], []
        ends = [(captured, end_of(captured)) for captured in scope.captured.values()]
        ends = [(captured, edge) for captured, edge in ends if edge is not None]
        nodes = nodes_between(scope, roots, [edge[0] for _, edge in ends])
        sources = [edge[0] for edge, _, _ in roots]
        saving, calling = above(nodes, has_saved), above(nodes, runs_users_code)
        self.freeing = {number for number, node in enumerate(sources) if node in saving}
        self.calling = {number for number, node in enumerate(sources) if node in calling}
        self.groups = groups_of(sources, saving, self.freed)
        lasting = [edge[0] for n, (edge, _, _) in enumerate(roots) if n not in self.freed]
        self.leaves = leaves_of(lasting) - {id(captured.tensor) for captured, _ in ends}
        if len(self.freed) == len(roots) or not ends:
            return
        cotangents = [
            None if number in self.freed else scope.add_input(array, self.cotangents[number])
            for number, (_, _, array) in enumerate(roots)
        ]
        for captured, _ in ends:
            captured.snapshot.hooks.mute()  # the engine calls them on the gradient outside
        given = [None if array is None else wrap(array) for array in cotangents]
        found = pull([edge for edge, _, _ in roots], given, [edge for _, edge in ends])
        for (captured, _), gradient in zip(ends, found, strict=True):
            if gradient is not None:
                self.reached.append(captured.number)
                self.arrays.append(gradient._array)

    def reads_state(self, number: int) -> bool:
        """Whether the pass from an output reads more than gradients."""
        return number in self.freeing or number in self.calling

    def take_arrays(self) -> list:
        """The gradients, which it does not keep."""
        arrays, self.arrays = self.arrays, None
        return arrays


def end_of(captured):
    """The edge at which the gradient of a captured tensor arrives; None where it gets none."""
    if captured.edge is not None:
        return captured.edge
    # a leaf that requires grad since the function said so
    leaf = captured.tensor._leaf
    node = None if leaf is None else leaf.node()
    return None if node is None else (node, 0)


def pull(roots, cotangents, ends, create_graph=False):
    """The gradients that arrive at the edges `ends`, from the cotangents of the edges `roots`, all
    tensors; None stands for no gradient in both. The pass stops at these edges.
    """
    given = [pair for pair in zip(roots, cotangents, strict=True) if pair[1] is not None]
    run = PassTo(True, create_graph, ends, stops=True)
    run.run([root for root, _ in given], [run.carried(cotangent) for _, cotangent in given])
    return [run.as_tensor(run.captured.get((node.sequence, number))) for node, number in ends]


def nodes_between(scope, roots, ends) -> list:
    """The nodes that lead from the outputs to those of the captured tensors, `ends`.

    Raises RuntimeError where the history of an output goes on in a graph from outside, beyond the
    captured tensors: it would be lost.
    """
    ends = set(ends)
    nodes = [*nodes_from([edge[0] for edge, _, _ in roots], lambda node: node not in ends)]
    for node in nodes:
        if scope.is_outer_node(node):
            raise RuntimeError(
                f"{scope.name}: a result has a history in a graph that was recorded outside: a "
                f"pass with create_graph ran on to {node.name()}. Compute what is differentiated "
                "inside of the function, or omit create_graph"
            )
    return nodes


def leaves_of(nodes) -> set[int]:
    """The ids of the leaves that nodes lead to."""
    return {id(node.variable) for node in nodes_from(nodes) if type(node) is AccumulateGrad}


def has_saved(node) -> bool:
    """Whether a node has saved anything, which a pass frees."""
    return bool(node._saved if isinstance(node, FunctionNode) else node.saved)


def runs_users_code(node) -> bool:
    """Whether a node runs a Function or hooks."""
    return not isinstance(node, ProgramNode) or node.extras is not None


def above(nodes, condition) -> set:
    """Of nodes those that meet a condition, and those that lead to one of them."""
    found = set()
    for node in sorted(nodes, key=attrgetter("sequence")):
        if condition(node) or not found.isdisjoint([edge[0] for edge in node.edges]):
            found.add(node)
    return found


def groups_of(sources, saving, freed) -> list[int]:
    """For each of the nodes `sources` the number of the first one that shares a node with it which
    a pass frees. Those that share none are one group, and so are those that are freed already.

    saving: the nodes that have saved something, and all that lead to them.
    """
    first, owners = list(range(len(sources))), {}

    def group(number):
        while first[number] != number:
            number = first[number]
        return number

    def join(one, other):
        low, high = sorted([group(one), group(other)])
        first[high] = low

    for number, source in enumerate(sources):
        kind = "freed" if number in freed else source if source in saving else "lasting"
        waiting = [kind]
        while waiting:
            node = waiting.pop()
            if node in owners:
                join(number, owners[node])
                continue
            owners[node] = number
            if not isinstance(node, str):
                waiting += [edge[0] for edge in node.edges if edge[0] in saving]
    return list(map(group, range(len(sources))))


def is_freed(node) -> bool:
    """Whether a pass from a node would reach one whose saved arrays are freed."""
    return any(each.is_freed for each in nodes_from([node]))


class PartitionedJaxpr:
    """The jaxpr of a function and its pullback, partitioned into a forward and a backward program.

    `forward`, `backward`: the two as functions; `residuals`: what the second reads besides
    cotangents, as pairs `(is_output, number)` of an output or input of the first.

    count: how many outputs are the function's own; cotangents: the variables of the cotangents,
    None for an output that is freed; calling: the numbers of the outputs whose pass runs code of
    the user's.
    """

    def __init__(self, jaxpr, count: int, cotangents, calling: set[int], name: str):
        outputs, self.gradients = list(jaxpr.outvars[:count]), list(jaxpr.outvars[count:])
        self.cotangents, present = cotangents, [each for each in cotangents if each is not None]
        forward = needed(jaxpr.eqns, outputs)
        refuse_cotangents(name, forward, present)
        # what the results need is not computed again: the backward program reads it as a residual
        inside = set(map(id, forward))
        backward = [each for each in needed(jaxpr.eqns, self.gradients) if id(each) not in inside]
        made = {variable for each in backward for variable in each.outvars}.union(present)
        read = [v for each in backward for v in variables(each.invars)] + variables(self.gradients)
        residuals = list(dict.fromkeys(v for v in read if v not in made))
        inputs = {variable: number for number, variable in enumerate(jaxpr.invars)}
        computed = {v: n for n, v in enumerate(outputs) if not isinstance(v, Literal)}
        self.residuals = []
        for variable in residuals:
            if variable in inputs:
                # an input need not be an output too: the node keeps the inputs in any case
                self.residuals.append((False, inputs[variable]))
                continue
            if variable not in computed:
                computed[variable] = len(outputs)
                outputs.append(variable)
            self.residuals.append((True, computed[variable]))
        self.numbers = [number for is_output, number in self.residuals if is_output]
        self.forward = function_of(jaxpr, jaxpr.invars, outputs, forward)
        self.backward = function_of(jaxpr, [*present, *residuals], self.gradients, backward)
        self.backward_inputs = present, residuals
        self.calling, self.partial_backwards = calling, {}
        self.equations, self.inputs, self.outputs = forward, jaxpr.invars, outputs
        self.later_equations = backward
        self.influence: dict[int, set[int]] = {}

    def backward_from(self, present: tuple[bool, ...]):
        """The backward program for the cotangents of some outputs, and the residuals that it reads;
        None if it is not known to be linear.

        Zeros for the missing ones would give NaN where a derivative is infinite. A linear program
        is its own derivative, in which JAX leaves out what depends on no cotangent that is given.
        """
        if present not in self.partial_backwards:
            self.partial_backwards[present] = self.partial_backward(present)
        return self.partial_backwards[present]

    def partial_backward(self, flags):
        present = [f for f, each in zip(flags, self.cotangents, strict=True) if each is not None]
        if all(present):
            return self.backward, self.residuals
        if any(itertools.compress(map(self.calling.__contains__, range(len(flags))), flags)):
            return None
        cotangents, residuals = [list(map(struct_of, each)) for each in self.backward_inputs]
        given = list(itertools.compress(cotangents, present))

        def derivative(at, moved, saved):
            def gradients(*at):
                supply, pairs = iter(at), zip(present, cotangents, strict=True)
                every = [next(supply) if flag else jnp.zeros(s.shape, s.dtype) for flag, s in pairs]
                return self.backward(*every, *saved)

            return jax.jvp(gradients, at, moved)[1]

        with jax.enable_x64(True):
            traced = jax.make_jaxpr(derivative)(given, given, residuals)
        outputs = [True] * len(self.gradients)
        jaxpr, read = partial_eval.dce_jaxpr(traced.jaxpr, outputs)
        if any(read[: len(given)]):
            return None
        run, read = jaxpr_as_fun(ClosedJaxpr(jaxpr, traced.consts)), read[len(given) :]

        def backward(*arrays):
            return run(*itertools.compress(arrays, [*read[: len(given)], *[True] * sum(read)]))

        return backward, list(itertools.compress(self.residuals, read[len(given) :]))

    def influenced_by(self, number: int) -> set[int]:
        """The numbers of the gradients that depend on the cotangent of an output."""
        # kept, since the same cotangents are missing in each pass of a loop
        if number not in self.influence:
            reached = depending(self.later_equations, {self.cotangents[number]} - {None})
            pairs = enumerate(self.gradients)
            self.influence[number] = {n for n, v in pairs if variables([v]) and v in reached}
        return self.influence[number]


def struct_of(variable):
    return jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype)


def refuse_cotangents(name, equations, cotangents):
    """Raises RuntimeError where the forward program needs a cotangent."""
    given = set(cotangents)
    for equation in equations:
        if not given.isdisjoint(variables(equation.invars)):
            raise RuntimeError(
                f"{name}, compiled by jaxgrad.jit: a hook leaves behind what it computes from "
                "the gradient of a result, which comes from outside. Take the gradient inside "
                "of the function, or register the hook outside"
            )


def depending(equations, inputs) -> set:
    """The variables that depend on some inputs of equations, these inputs among them."""
    found = set(inputs)
    for equation in equations:
        if not found.isdisjoint(variables(equation.invars)):
            found.update(equation.outvars)
    return found


def variables(atoms) -> list:
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def needed(equations, outputs) -> list:
    """The equations that compute outputs, and those that have effects."""
    wanted, found = set(variables(outputs)), []
    for equation in reversed(equations):
        if equation.effects or not wanted.isdisjoint(equation.outvars):
            found.append(equation)
            wanted.update(variables(equation.invars))
    return found[::-1]


def function_of(jaxpr, inputs, outputs, equations):
    """Some of the equations of a jaxpr as a function from `inputs` to `outputs`."""
    effects = frozenset().union(*[each.effects for each in equations])
    made = jaxpr.replace(
        constvars=[], invars=list(inputs), outvars=list(outputs), eqns=equations, effects=effects
    )
    return jaxpr_as_fun(ClosedJaxpr(made, []))


class CompiledCall(Program):
    """A call of a compiled function, as nodes record it: from the program's inputs to its outputs
    with a history, followed by residuals.
    """

    def __init__(self, compiled, inputs, roots, residuals):
        self.mode = max([i.mode for i in inputs if isinstance(i, Aval)], default=0)
        self.compiled, self.name = compiled, compiled.name
        self.inputs, self.root_count = tuple(inputs), len(roots)
        self.outputs = (*roots, *residuals)
        self.differentiable_outputs = tuple(range(len(roots)))

    def own_weight(self):
        return weight_of_kernel(self.compiled.equations)

    def function(self, *arrays):
        return self.compiled.replayed(arrays)

    def make_reverse(self, mask):
        return CompiledReverse(self, mask)


class CompiledNode(ProgramNode):
    """The call of a compiled function. Where an output gets no gradient, or an input that does not
    depend on it, a pass does not go on, as it would not if the outputs were computed apart.

    objects: those among the arguments, which a replay may need.
    """

    __slots__ = ("objects",)
    tells_none = False


class LastingNode(CompiledNode):
    """The call of a compiled function whose graph has saved nothing, though its hooks may read
    something: a pass does not free it.
    """

    __slots__ = ("kept",)

    @property
    def saved(self):
        return self.kept

    @saved.setter
    def saved(self, value):
        if value is not FREED:
            self.kept = value


class CompiledReverse(Reverse):
    """The backward program of a compiled function, which reads the inputs and the residuals.

    Where it is differentiated itself, the function and its pass are replayed instead. A linear
    program needs no replay, and reads the cotangents alone.
    """

    tells_apart = tells_missing = True

    def __init__(self, program: CompiledCall, mask, present=None):
        super().__init__(program, mask, present)
        self.compiled = program.compiled
        self.outputs = tuple(program.inputs[i] for i in self.wanted)
        self.saved_inputs = self.saved_outputs = ()
        pullback, count = self.compiled.pullback, len(program.inputs)
        roots = range(program.root_count)
        self.saves = any(itertools.compress(map(pullback.reads_state, roots), self.present))
        if not self.saves:
            # numbers from `count` on are constants
            _, reads = self.compiled.partition.backward_from(self.present)
            self.saves = any(is_output or number < count for is_output, number in reads)
        if self.saves:
            # all inputs, since a replay reads them; the backward program needs only residuals
            self.saved_inputs = tuple(range(len(program.inputs)))
            self.saved_outputs = tuple(range(program.root_count, len(program.outputs)))

    def function(self, *arrays):
        if not self.saves:
            return self.value(*arrays)
        return self.compiled.replayed(*self.passes(arrays))

    def passes(self, arrays):
        """The inputs of the function, and the passes to replay after it (`replay.replay`)."""
        cotangents, saved = self.with_missing(arrays)
        return saved[: len(self.program.inputs)], [(cotangents, self.wanted)]

    def make_reverse(self, mask):
        return ReplayedReverse(self, mask) if self.saves else super().make_reverse(mask)

    def value(self, *arrays):
        if not self.wanted:
            return ()
        compiled, count = self.compiled, len(self.program.inputs)
        cotangents, rest = self.with_missing(arrays)
        found = compiled.partition.backward_from(self.present)
        if found is None:
            return self.function(*arrays)
        run, reads = found
        inputs = (*(rest[:count] if self.saves else [None] * count), *compiled.constants)
        outputs = dict(zip(compiled.partition.numbers, rest[count:], strict=False))
        residuals = [(outputs if is_output else inputs)[number] for is_output, number in reads]
        freed = compiled.pullback.freed
        given = [c for n, c in enumerate(cotangents) if c is not None and n not in freed]
        return tuple(compiled.backward(run, given, residuals, reads))

    def reached(self, given, results):
        """The gradients; None for inputs that do not depend on any of the cotangents given, as if
        the function were not compiled.
        """
        if all(cotangent is not None for cotangent in given):
            return results
        present = [n for n, cotangent in enumerate(given) if cotangent is not None]
        numbers = set().union(*map(self.compiled.partition.influenced_by, present))
        reached = {self.compiled.pullback.reached[number] for number in numbers}
        if self.single:
            return results if self.wanted[0] in reached else None
        return [r if n in reached else None for n, r in zip(self.wanted, results, strict=True)]


class ReplayedReverse(Reverse):
    """The gradients of the gradients of a compiled function, of any order.

    The function and its passes are replayed and recorded, so `no_grad`, writes in place, hooks and
    Functions have the gradients that they have where the function is not compiled. JAX's derivative
    of the replay would be another one: it follows values.
    """

    saved_outputs = ()
    tells_missing = True

    def __init__(self, program: CompiledReverse | ReplayedReverse, mask, present=None):
        super().__init__(program, mask, present)
        self.compiled = program.compiled
        self.outputs = tuple(program.inputs[i] for i in self.wanted)
        self.saved_inputs = tuple(range(len(program.inputs)))

    def function(self, *arrays):
        return self.compiled.replayed(*self.passes(arrays))

    def passes(self, arrays):
        """As for a `CompiledReverse`."""
        cotangents, saved = self.with_missing(arrays)
        inputs, before = self.program.passes(saved)
        return inputs, [*before, (cotangents, self.wanted)]

    def make_reverse(self, mask):
        return ReplayedReverse(self, mask)
