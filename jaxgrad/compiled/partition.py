"""The jaxpr of a function and its backward passes, partitioned like PyTorch's joint graph.

The equations that the outputs need are the forward program, and the others are the backward
programs. The nodes of the call save the residuals that the backward programs read from the forward
program.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal
from jax.interpreters import partial_eval

from ..core.aval import joint_mode
from ..core.bounded_cache import weight_of_kernel
from ..core.jax_internals import traced_function
from ..core.program import Program, Reverse
from ..tape.node import FREED, ProgramNode


class BackwardProgram:
    """The pass from a group of outputs, as a function of their cotangents and of residuals.

    `residuals`: what it reads besides cotangents, as pairs `(is_output, number)` of an output or
    input of the forward program; `gradients`: the variables that it computes.

    group: an `OutputGroup`; cotangents: a variable for each output of it; forward: the equations of
    the forward program.
    """

    def __init__(self, jaxpr, forward, group, cotangents, gradients):
        self.group, self.cotangents, self.gradients = group, cotangents, gradients
        # what the results need is not computed again: it is read as a residual
        inside = set(map(id, forward))
        self.equations = [e for e in needed(jaxpr.eqns, gradients) if id(e) not in inside]
        bound = {variable for e in self.equations for variable in e.outvars}.union(cotangents)
        read = [v for e in self.equations for v in variables(e.invars)] + variables(gradients)
        self.variables = list(dict.fromkeys(v for v in read if v not in bound))
        inputs = [*cotangents, *self.variables]
        self.function = function_of(jaxpr, inputs, gradients, self.equations)
        self.residuals: list[tuple[bool, int]] = []
        self.partial, self.influence = {}, {}

    @property
    def numbers(self) -> list[int]:
        """The numbers of the outputs of the forward program that it reads."""
        return [number for is_output, number in self.residuals if is_output]

    def of(self, present: tuple[bool, ...]):
        """The function for some of the cotangents, and the residuals that it reads; None if it is
        not known to be linear.

        Zeros for missing cotangents would give NaN if a derivative is infinite. A linear function
        is its own derivative, from which JAX leaves out what depends on no given cotangent.
        """
        if all(present):
            return self.function, self.residuals
        if present not in self.partial:
            self.partial[present] = self.derived(present)
        return self.partial[present]

    def derived(self, present):
        if self.group.calling.intersection(itertools.compress(self.group.outputs, present)):
            return None
        cotangents, residuals = [
            list(map(struct_of, atoms)) for atoms in (self.cotangents, self.variables)
        ]
        present_cotangents = list(itertools.compress(cotangents, present))

        def derivative(at, moved, saved):
            def gradients(*at):
                supply, pairs = iter(at), zip(present, cotangents, strict=True)
                every = [next(supply) if flag else jnp.zeros(s.shape, s.dtype) for flag, s in pairs]
                return self.function(*every, *saved)

            return jax.jvp(gradients, at, moved)[1]

        with jax.enable_x64(True):
            traced = jax.make_jaxpr(derivative)(present_cotangents, present_cotangents, residuals)
        outputs, count = [True] * len(self.gradients), len(present_cotangents)
        jaxpr, read = partial_eval.dce_jaxpr(traced.jaxpr, outputs)
        if any(read[:count]):
            return None
        run = traced_function(ClosedJaxpr(jaxpr, traced.consts))
        moved, kept = read[count : 2 * count], read[2 * count :]

        def function(*arrays):
            return run(*itertools.compress(arrays[:count], moved), *arrays[count:])

        return function, list(itertools.compress(self.residuals, kept))

    def influenced_by(self, position: int) -> set[int]:
        """The numbers of the gradients that a pass from the output at a position alone computes."""
        # kept, since the same cotangents are missing in each pass of a loop
        if position not in self.influence:
            reached = depending(self.equations, {self.cotangents[position]})
            pairs = enumerate(self.gradients)
            numbers = {n for n, v in pairs if variables([v]) and v in reached}
            # zeros, as for what was overwritten, depend on nothing
            self.influence[position] = numbers | self.group.always[position]
        return self.influence[position]


class PartitionedJaxpr:
    """The jaxpr of a function and its pullback, partitioned into a forward program and backward
    programs.

    `forward`: the forward program as a function, whose outputs are those of the function, then
    residuals; `backwards`: the backward programs, one for each group of the pullback that is not
    freed, by its first output; `numbers`: the numbers of the residuals among the outputs.

    count: how many outputs are the function's own; groups: the `OutputGroup`s; cotangents: the
    variable of each output with a history, None where it is freed.
    """

    def __init__(self, jaxpr, count: int, cotangents, groups: list, name: str):
        outputs, gradients = list(jaxpr.outvars[:count]), iter(jaxpr.outvars[count:])
        forward = needed(jaxpr.eqns, outputs)
        refuse_cotangents(
            name, forward, [cotangent for cotangent in cotangents if cotangent is not None]
        )
        self.backwards: dict[int, BackwardProgram] = {}
        for group in groups:
            group_cotangents = [cotangents[number] for number in group.outputs]
            group_gradients = list(itertools.islice(gradients, len(group.reached)))
            if group_gradients:
                program = BackwardProgram(jaxpr, forward, group, group_cotangents, group_gradients)
                self.backwards[group.outputs[0]] = program
        inputs = {variable: number for number, variable in enumerate(jaxpr.invars)}
        computed = {v: n for n, v in enumerate(outputs) if not isinstance(v, Literal)}
        for backward in self.backwards.values():
            for variable in backward.variables:
                if variable in inputs:
                    # an input need not be an output too: the node keeps the inputs in any case
                    backward.residuals.append((False, inputs[variable]))
                    continue
                if variable not in computed:
                    computed[variable] = len(outputs)
                    outputs.append(variable)
                backward.residuals.append((True, computed[variable]))
        numbers = [number for backward in self.backwards.values() for number in backward.numbers]
        self.numbers = list(dict.fromkeys(numbers))
        self.forward = function_of(jaxpr, jaxpr.invars, outputs, forward)
        self.equations, self.inputs, self.outputs = forward, jaxpr.invars, outputs


def struct_of(variable):
    return jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype)


def refuse_cotangents(name, equations, cotangents):
    """Raises RuntimeError where the forward program needs a cotangent."""
    refused = set(cotangents)
    for equation in equations:
        if not refused.isdisjoint(variables(equation.invars)):
            raise RuntimeError(
                f"{name}, compiled by jaxgrad.jit: a hook leaves behind what it computes from "
                "the gradient of a result, which comes from outside. Take the gradient inside "
                "of the function, or register the hook outside"
            )


def depending(equations, inputs) -> set:
    """The variables that depend on some inputs of equations, these inputs among them."""
    reached = set(inputs)
    for equation in equations:
        if not reached.isdisjoint(variables(equation.invars)):
            reached.update(equation.outvars)
    return reached


def variables(atoms) -> list:
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def needed(equations, outputs) -> list:
    """The equations that compute outputs, and those that have effects."""
    wanted, kept = set(variables(outputs)), []
    for equation in reversed(equations):
        if equation.effects or not wanted.isdisjoint(equation.outvars):
            kept.append(equation)
            wanted.update(variables(equation.invars))
    return kept[::-1]


def function_of(jaxpr, inputs, outputs, equations):
    """Some of the equations of a jaxpr as a function from `inputs` to `outputs`."""
    effects = frozenset().union(*[equation.effects for equation in equations])
    part = jaxpr.replace(
        constvars=[], invars=list(inputs), outvars=list(outputs), eqns=equations, effects=effects
    )
    return traced_function(ClosedJaxpr(part, []))


class CompiledCall(Program):
    """A call of a compiled function, as nodes record it: from the program's inputs to its outputs
    with a history, followed by residuals.
    """

    def __init__(self, compiled, inputs, roots, residuals):
        self.compiled, self.name = compiled, compiled.name
        # as the program itself: users ask for XLA's kernel
        self.may_run_on_host = compiled.host is not None
        self.mode = joint_mode(self.name, inputs, mixes=True)
        self.inputs, self.root_count = tuple(inputs), len(roots)
        self.outputs = (*roots, *residuals)
        self.differentiable_outputs = tuple(range(len(roots)))

    def own_weight(self):
        return weight_of_kernel(self.compiled.trace.equations)

    def function(self, *arrays):
        return self.compiled.replayed(arrays)

    def make_reverse(self, mask):
        return CompiledReverse(self, mask)


class CompiledNode(ProgramNode):
    """The call of a compiled function. If an output gets no gradient, or an input does not depend
    on it, the pass does not go on there, as if the outputs were computed by separate nodes.
    """

    __slots__ = ()
    tells_none = False


class LastingNode(CompiledNode):
    """The call of a compiled function whose graph has saved nothing, though its hooks may read
    arrays: a pass does not free it.
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

    If it is differentiated itself, the function and its pass are replayed instead. A linear program
    needs no replay, and reads only the cotangents.
    """

    tells_apart = tells_missing = True
    wide = True  # as its equations were traced

    def __init__(self, program: CompiledCall, mask, present=None):
        super().__init__(program, mask, present)
        self.compiled = program.compiled
        self.outputs = tuple(program.inputs[i] for i in self.wanted)
        self.saved_inputs = self.saved_outputs = self.numbers = ()
        first, count = self.present.index(True), len(program.inputs)
        groups = self.compiled.trace.pullback.groups
        self.group = next(group for group in groups if first in group.outputs)
        self.backward = self.compiled.partition.backwards.get(self.group.outputs[0])
        self.undefined, self.saves = self.compiled.trace.pullback.undefined, False
        if self.backward is None:  # the function has used up the graph, or it reaches nothing
            return
        # numbers from `count` on are constants
        reads = any(is_output or number < count for is_output, number in self.backward.residuals)
        self.saves = reads or self.group.reads_state
        if self.saves:
            # all inputs, since a replay reads them; the backward program needs only residuals
            self.saved_inputs, self.numbers = tuple(range(count)), self.backward.numbers
            places = map(self.compiled.partition.numbers.index, self.numbers)
            self.saved_outputs = tuple([program.root_count + place for place in places])

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
        partial = self.backward.of(tuple([self.present[number] for number in self.group.outputs]))
        if partial is None:
            return self.function(*arrays)
        run, reads = partial
        cotangents, rest = self.with_missing(arrays)
        inputs = (*(rest[:count] if self.saves else [None] * count), *compiled.trace.constants)
        outputs = dict(zip(self.numbers, rest[count:], strict=False))
        residuals = [(outputs if is_output else inputs)[number] for is_output, number in reads]
        present = {number: c for number, c in enumerate(cotangents) if c is not None}
        return tuple(compiled.backward(self.group, run, present, residuals, reads))

    def reached(self, present, results):
        """The gradients; None for inputs that none of the present cotangents reaches, as if the
        function were not compiled.
        """
        is_present = [present[number] is not None for number in self.group.outputs]
        if all(is_present):
            return results
        positions = itertools.compress(range(len(is_present)), is_present)
        reached = set().union(*map(self.backward.influenced_by, positions))
        if self.single:
            return results if reached else None
        return [result if n in reached else None for n, result in enumerate(results)]


class ReplayedReverse(Reverse):
    """The gradients of the gradients of a compiled function, of any order.

    The tape records a replay of the function and its passes. So `no_grad`, writes in place, hooks
    and Functions have the same effect on gradients as in the uncompiled function. JAX's derivative
    of the replay would differ, since it follows values.
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
