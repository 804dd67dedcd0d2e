"""The derivatives of one call: gradients (`CallReverse`) and tangents (`TangentMap`).

Both evaluate the formulas of an entry, save only the residuals that these read, and pass each
result through `conform`, which gives it the right shape and dtype.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from ..cached import cached_property
from ..table import Formula, Word
from .device_axes import alike
from .program import Reverse, conform, conform_gradient, conjugate, pullback, takes_part


class Metadata:
    """Stands in a formula for a tensor that is not saved: shape and dtype without an array."""

    def __init__(self, aval):
        self.shape, self.ndim, self.dtype = tuple(aval.shape), aval.ndim, aval.dtype.numpy


class _Tensors(tuple):
    """A list of tensors or numbers; in a formula `tensors.shape` is the tuple of the shapes."""

    __slots__ = ()

    @property
    def shape(self):
        return tuple(tensor.shape for tensor in self)


class Saved:
    """The residuals of some formulas: positions of inputs and outputs, and their names in scope."""

    def __init__(self, call, inputs: set[str], outputs: set[str]):
        self.call = call
        self.inputs = tuple(i for i, owner in enumerate(call.owners) if owner in inputs)
        self.outputs = tuple(i for i, name in enumerate(output_names(call)) if name in outputs)

    def select(self, inputs, outputs) -> tuple:
        """The arrays to save."""
        return (*(inputs[i] for i in self.inputs), *(outputs[i] for i in self.outputs))

    def leaves(self, arrays):
        """All inputs and all outputs: the saved array of each, or its metadata."""
        count = len(self.inputs)
        inputs = _fill(self.call.inputs, self.inputs, arrays[:count])
        return inputs, _fill(self.call.outputs, self.outputs, arrays[count:])

    def names(self, arrays) -> dict:
        """The scope of a formula: arguments and outputs by name."""
        inputs, outputs = self.leaves(arrays)
        arguments = [
            _Tensors(a) if isinstance(a, tuple) else a for a in self.call.arguments(inputs)
        ]
        scope = dict(zip(self.call.primitive.argument_names, arguments, strict=True))
        # older tables say result0, result1; newer ones name the outputs
        scope |= {f"result{i}": output for i, output in enumerate(outputs)}
        names = output_names(self.call)
        scope |= dict(zip(names, outputs, strict=True))
        if names.count("result") != 1:  # not where one of several outputs has that name
            scope["result"] = self.call.result(outputs)
        return scope


def _fill(avals, positions, arrays):
    values = [Metadata(aval) if hasattr(aval, "shape") else aval for aval in avals]
    for position, array in zip(positions, arrays, strict=True):
        values[position] = array
    return values


def output_names(call) -> tuple[str, ...]:
    """A name for each output; the tensors of a list all have the list's name."""
    names = call.primitive.rule.outputs
    return tuple(names) if len(names) == len(call.outputs) else names * len(call.outputs)


def where(call, name: str) -> str:
    """An entry and one of its keys, for error messages."""
    rule = call.primitive.rule
    return f"{rule.schema.full_name} ({rule.path}:{rule.line}), {name}"


class CallReverse(Reverse):
    """The gradient formulas of a call for the inputs that `mask` names.

    The formulas of few operators tell a missing gradient, which is None, from zeros
    (`tells_missing`).
    """

    defers = True

    def __init__(self, call, mask, present=None):
        super().__init__(call, mask, present)
        self.tells_missing = call.primitive.tells_missing
        self.undefined = call.primitive.undefined
        self.node_name = call.primitive.rule.node
        owners = {call.owners[i] for i in self.wanted}
        gradients = call.primitive.rule.gradients
        self.formulas = [(names, formula) for names, formula in gradients if owners & set(names)]
        # the residuals: what the formulas of the wanted gradients read, and nothing else
        reads = [_gradient_reads(call, formula) for _, formula in self.formulas]
        self.saved = Saved(call, set().union(*reads), _outputs_among(call, set().union(*reads)))
        self.saved_inputs, self.saved_outputs = self.saved.inputs, self.saved.outputs

    @cached_property
    def shown(self):
        return self.program.slots

    @property
    def checked(self):
        rule = self.program.primitive.rule
        if rule.saves is None:
            return super().checked
        call, names = self.program, output_names(self.program)
        read = {call.owners[i] for i in self.saved_inputs} | {names[i] for i in self.saved_outputs}
        ever = set().union(*[_gradient_reads(call, formula) for _, formula in rule.gradients])
        # under a mask PyTorch too leaves out what only the other formulas read
        left_out = (ever | _outputs_among(call, ever)) - read
        saved = Saved(call, set(rule.saves) - left_out, set(rule.saves) - left_out)
        return saved.inputs, saved.outputs

    def function(self, *arrays):
        before = takes_part.set(self.is_partial or takes_part.get())
        try:
            return self.gradients(*arrays)
        finally:
            takes_part.reset(before)

    def gradients(self, *arrays):
        call = self.program
        gradients, saved = self.with_missing(arrays)
        scope = self.saved.names(saved) | self.gradient_names(gradients)
        by_name = {}
        # so that HLO and profiles tell the backward pass from the forward
        with jax.named_scope(self.node_name):
            for names, formula in self.formulas:
                results = self.evaluate(names, formula, scope, gradients, saved)
                by_name |= dict(zip(names, results, strict=True))
        supply = {name: iter(_as_list(call, name, by_name[name])) for name in by_name}
        results = {i: next(supply[owner]) for i, owner in enumerate(call.owners) if owner in supply}
        return tuple(
            conform_gradient(results[i], call.inputs[i], where(call, call.owners[i]))
            for i in self.wanted
        )

    def gradient_names(self, gradients) -> dict:
        """`grad`, `grads` and `grad_<output>`; None for an output that is None."""
        names, positions = output_names(self.program), self.program.differentiable_outputs
        pairs = list(zip(positions, gradients, strict=True))
        gradients = tuple(None if i in self.program.missing else g for i, g in pairs)
        scope = {f"grad_{names[i]}": g for i, g in zip(positions, gradients, strict=True)}
        # `retain_variables` is always true: no formula may reuse the memory of a residual
        return scope | {"grad": gradients[0], "grads": gradients, "retain_variables": True}

    def evaluate(self, names, formula, scope, gradients, saved):
        """The gradients of the arguments `names`: one each, a list for a list of tensors."""
        call = self.program
        mask = tuple(any(call.owners[i] == name for i in self.wanted) for name in names)
        if isinstance(formula, Formula):
            results = call.primitive.evaluate_formula(formula, scope | {"grad_input_mask": mask})
            return results if len(names) > 1 else (results,)
        if formula.kind == "auto":
            return self.derive(names, gradients, saved)
        if formula.kind == "zeros":
            return [self.zeros(name) for name in names]
        raise NotImplementedError(
            f"the derivative for '{call.primitive.name}' with respect to "
            f"{', '.join(map(repr, names))} "
            f"is not implemented in reverse mode: {formula.message}"
        )

    def zeros(self, name):
        call = self.program
        owned = [a for a, owner in zip(call.inputs, call.owners, strict=True) if owner == name]
        zeros = [jnp.zeros(a.shape, a.dtype.numpy) for a in owned]
        return zeros if call.is_list(name) else next(iter(zeros), None)

    def derive(self, names, gradients, saved):
        """The gradients that JAX derives from the value function."""
        call = self.program
        inputs, _ = self.saved.leaves(saved)
        wanted = [i for i in self.wanted if call.owners[i] in names]
        function = replacing(call.plain, inputs, wanted, call.differentiable_outputs)
        by_position = dict(
            zip(wanted, pullback(function, [inputs[i] for i in wanted])(*gradients), strict=True)
        )
        by_name = {
            name: [by_position.get(i) for i, owner in enumerate(call.owners) if owner == name]
            for name in names
        }
        # an optional tensor that was not given has no gradient
        return [
            by_name[name] if call.is_list(name) else next(iter(by_name[name]), None)
            for name in names
        ]


def _as_list(call, name, gradient):
    return gradient if call.is_list(name) else [gradient]


def replacing(function, inputs, positions, outputs):
    """`function` of the inputs at `positions` alone, with the outputs at positions `outputs`."""

    def of_some(*values):
        replaced = list(inputs)
        for position, value in zip(positions, values, strict=True):
            replaced[position] = value
        results = function(*replaced)
        return tuple(results[i] for i in outputs)

    return of_some


def _gradient_reads(call, formula) -> set[str]:
    if isinstance(formula, Formula):
        return formula.values
    return set(call.owners) if formula.kind == "auto" else set()


def _outputs_among(call, reads) -> set[str]:
    names = output_names(call)
    if "result" in reads and names.count("result") != 1:
        return set(names)
    return {name for i, name in enumerate(names) if name in reads or f"result{i}" in reads}


class TangentMap:
    """The derivative of a call as a linear map of the tangents of the inputs in `mask`.

    `core/tangent_map.py` describes the interface. `moving`: the positions of these inputs.
    """

    # its call keeps it (`Call.tangent_maps`)
    is_reused = True

    def __init__(self, call, mask):
        self.call, self.mask = call, mask
        self.moving = tuple(i for i, flag in enumerate(mask) if flag)
        self.reverse = call.reverse(mask)
        self.takes_none = call.primitive.tells_missing
        # the residuals of both formulas: whether JAX evaluates or transposes the map is open
        inputs, outputs = self.forward_reads()
        reverse = self.reverse.saved
        inputs |= {call.owners[i] for i in reverse.inputs}
        outputs |= {output_names(call)[i] for i in reverse.outputs}
        self.saved = Saved(call, inputs, outputs)
        self.select = self.saved.select

    def __repr__(self):
        return f"derivative of {self.call.primitive.name}"

    @property
    def outputs(self):
        return [self.call.outputs[i].struct for i in self.call.differentiable_outputs]

    def forward_reads(self) -> tuple[set[str], set[str]]:
        """The arguments and outputs whose values the forward formulas read."""
        call, inputs, outputs = self.call, set(), set()
        for formula in self.formulas:
            if isinstance(formula, Formula):
                inputs |= {
                    name.removesuffix("_p") for name in formula.values if name.endswith("_p")
                }
                inputs |= formula.values & set(call.owners)
                outputs |= _outputs_among(call, formula.values)
            elif formula is not None and formula.kind == "auto_linear":
                # an operator that is linear in an argument reads its tangent, not its value
                inputs |= {*call.owners} - {*call.primitive.rule.differentiable_inputs}
            elif formula is not None and formula.kind == "auto":
                inputs |= set(call.owners)
        return inputs, outputs

    @cached_property
    def formulas(self) -> list[Formula | Word | None]:
        """The forward formula of each differentiable output; None: derived from the reverse."""
        names, tangents = output_names(self.call), self.call.primitive.rule.tangents
        return [tangents.get(names[i]) for i in self.call.differentiable_outputs]

    def forward(self, saved, tangents):
        # what derives the tangents of all outputs together does so once
        once = functools.cache(lambda derive: derive(saved, tangents))
        with jax.named_scope(self.call.primitive.name):
            return tuple(self.tangent(i, saved, tangents, once) for i in range(len(self.formulas)))

    def tangent(self, position, saved, tangents, once=None):
        """The tangent of the differentiable output at `position`, in its shape and dtype.

        once: calls a function of `saved` and `tangents`, or knows its results.
        """
        once = once or (lambda derive: derive(saved, tangents))
        call, number = self.call, self.call.differentiable_outputs[position]
        result = self.evaluate(position, self.formulas[position], saved, tangents, once)
        return conform(result, call.outputs[number], where(call, output_names(call)[number]))

    def evaluate(self, position, formula, saved, tangents, once):
        """The tangent of the differentiable output at `position`."""
        if formula is None:
            return once(self.derived)[position]
        if isinstance(formula, Formula):
            return self.call.primitive.evaluate_formula(formula, self.names(saved, tangents))
        if formula.kind == "auto":
            return once(self.automatic)[position]
        if formula.kind == "auto_linear":
            return once(self.linear)[position]
        if formula.kind == "auto_element_wise":
            return self.element_wise(saved, tangents)
        raise NotImplementedError(
            f"the derivative for '{self.call.primitive.name}' with respect to "
            f"{', '.join(repr(self.call.owners[i]) for i in self.moving)} is not implemented in "
            f"forward mode: {formula.message}"
        )

    def all_tangents(self, tangents):
        """A tangent for every input: zeros for a constant, None where it cannot have one."""
        call = self.call
        # an integer input of a differentiable argument has zeros too
        can_move = call.primitive.rule.differentiable_inputs
        pairs = zip(call.inputs, call.owners, strict=True)
        filled = [
            jnp.zeros(a.shape, a.dtype.numpy) if owner in can_move else None for a, owner in pairs
        ]
        for position, tangent in zip(self.moving, tangents, strict=True):
            filled[position] = tangent
        return filled

    def names(self, saved, tangents) -> dict:
        """The scope of a forward formula: `x_p`, `x_t`, other arguments and outputs."""
        call = self.call
        scope = self.saved.names(saved)
        primals = {f"{name}_p": scope[name] for name in call.owners}
        moved = call.arguments(self.all_tangents(tangents))
        pairs = zip(call.primitive.argument_names, moved, strict=True)
        return scope | primals | {f"{name}_t": tangent for name, tangent in pairs}

    def derived(self, saved, tangents):
        """The tangents by the transpose of the reverse formula, which JAX derives."""
        inputs, outputs = self.saved.leaves(saved)
        constants = self.reverse.saved.select(inputs, outputs)

        def transposed(*cotangents):
            results = self.transpose_with(constants, cotangents)
            return tuple(alike([*results, *cotangents])[: len(results)])

        # linear in the cotangents: the derivative is the same everywhere, so take it at zero
        zeros = [jnp.zeros(struct.shape, struct.dtype) for struct in self.outputs]
        # inside shard_map a primal must vary over the devices as its tangent does
        zeros = alike([*zeros, *tangents])[: len(zeros)]
        return jax.vjp(transposed, *zeros)[1](tuple(tangents))

    def automatic(self, saved, tangents):
        inputs, _ = self.saved.leaves(saved)
        function = replacing(self.call.plain, inputs, self.moving, self.call.differentiable_outputs)
        return jax.jvp(function, [inputs[i] for i in self.moving], list(tangents))[1]

    def linear(self, saved, tangents):
        return self.in_places(self.call.function, saved, tangents)

    def in_places(self, function, saved, tangents):
        """The derivative of a map that is linear in some arguments: the map itself, with tangents
        in the places of these arguments.

        function: of all inputs of the call.
        """
        inputs, _ = self.saved.leaves(saved)
        moved = self.all_tangents(tangents)
        leaves = [i if t is None else t for i, t in zip(inputs, moved, strict=True)]
        outputs = function(*leaves)
        return [outputs[i] for i in self.call.differentiable_outputs]

    @cached_property
    def is_plain(self):
        """Whether `plain` computes the tangents: the operator is linear in all that moves."""
        return all(getattr(f, "kind", None) == "auto_linear" for f in self.formulas)

    def plain(self, saved, tangents):
        """The tangents by operations without rules, which JAX transposes."""
        call, results = self.call, self.in_places(self.call.value, saved, tangents)
        pairs = zip(call.differentiable_outputs, results, strict=True)
        return tuple(
            conform(r, call.outputs[n], where(call, output_names(call)[n])) for n, r in pairs
        )

    def element_wise(self, saved, tangents):
        (tangent,) = tangents
        # the formula multiplies by the conjugate of the derivative, a tangent by the derivative
        gradients = (conjugate(tangent),)
        names = (self.call.owners[self.moving[0]],)
        formula = self.reverse.formulas[0][1]
        scope = self.saved.names(saved) | self.reverse.gradient_names(gradients)
        constants = self.reverse.saved.select(*self.saved.leaves(saved))
        return conjugate(self.reverse.evaluate(names, formula, scope, gradients, constants)[0])

    def transpose(self, saved, cotangents):
        """Cotangents of the inputs in `mask`, in JAX's convention, by the reverse formulas."""
        inputs, outputs = self.saved.leaves(saved)
        return self.transpose_with(self.reverse.saved.select(inputs, outputs), cotangents)

    def transpose_with(self, constants, cotangents):
        reverse, present_cotangents = self.reverse, cotangents
        if self.takes_none:
            reverse, present_cotangents = reverse.without_missing(cotangents)
        gradients = reverse.function(*map(conjugate, present_cotangents), *constants)
        return tuple(conjugate(gradient) for gradient in gradients)
