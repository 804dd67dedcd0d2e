"""The program of an optimizer's step: from parameters, gradients and state to their new values.

The rule of an optimizer updates each parameter of a group by itself. XLA gets one program for all.
The host runs the block of one parameter for each, which has a template, so that no trace grows with
the number of parameters.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from ..cached import cached_property
from ..core import executor
from ..core.aval import IMMEDIATE, SPREAD, joint_mode, make_aval
from ..core.bounded_cache import ENTRY, BoundedCache, bounded, kernels
from ..core.program import DerivedReverse, Program
from ..late import LateModule
from ..state.objects import exact

group_block = LateModule("jaxgrad.optim.group_block")
template_store = LateModule("jaxgrad.core.template_store")
templates = LateModule("jaxgrad.core.templates")
rules = LateModule("jaxgrad.optim.rules")


class UpdateReverse(DerivedReverse):
    """The reverse of a step. PyTorch composes a step of operators on copies, so that the writes of
    the step itself, and of later steps, change nothing that it saves.
    """

    checked = ((), ())


class UpdateProgram(Program):
    """The program of an update rule for the parameters of a group.

    Inputs: parameters; gradients; each kind of state, of the parameters that have it; step
    counters; hyperparameters. Outputs: parameters; each kind of state for all of them, of the shape
    and dtype that it had or, where it is made here, of its parameter; step counters. `count_of`:
    the index of each parameter's step counter. `fresh`: the indices of parameters without state.
    """

    wide = True  # hyperparameters keep Python's double precision
    defers = True

    def __init__(self, rule, count_of, fresh, inputs, counts: int):
        self.rule, self.count_of, self.fresh, self.inputs = rule, count_of, fresh, inputs
        self.number_of_counts = counts
        self.name = type(rule).__name__
        self.mode = joint_mode(self.name, inputs)
        self.equations = 6 * len(inputs)  # of Adam; the outputs are known without a trace
        self.counts = slice(
            len(inputs) - len(rule.numbers) - counts, len(inputs) - len(rule.numbers)
        )
        self.states_end = len(count_of) * (1 + len(rule.states))  # of the outputs

    def make_reverse(self, mask):
        return UpdateReverse(self, mask)

    def abstract_outputs(self):
        size = len(self.count_of)
        params, rest = self.inputs[:size], iter(self.inputs[2 * size :])
        states = [
            params[i] if i in self.fresh else next(rest)
            for _ in self.rule.states
            for i in range(size)
        ]
        avals = [_concrete_aval(aval, self.mode) for aval in (*params, *states)]
        counts = self.inputs[self.counts]
        # step counters stay in this process
        apart = self.mode == SPREAD
        return (*avals, *(aval if apart else _concrete_aval(aval, self.mode) for aval in counts))

    @cached_property
    def pattern(self):
        """Steps of one optimizer on parameters of other shapes are alike (core/templates.py)."""
        if self.mode != IMMEDIATE:
            return None
        rule, places = self.rule, (self.count_of, self.fresh)
        key = type(rule), tuple(map(exact, rule)), places, self.number_of_counts
        text = functools.partial(_text_of, rule, (*places, self.number_of_counts))

        def remade(inputs):
            return UpdateProgram(rule, *places, inputs, self.number_of_counts)

        return templates.pattern_of(_patterns, key, self.inputs, text, remade)

    @cached_property
    def block(self):
        return group_block.of(self) or super().block

    def places_of(self, i: int) -> list[int]:
        """The positions of the inputs of one parameter: itself, its gradient, its states."""
        size = len(self.count_of)
        if i in self.fresh:
            return [i, size + i]
        kept = size - len(self.fresh)
        begin = 2 * size + i - sum(other < i for other in self.fresh)
        return [i, size + i, *[begin + kind * kept for kind, _ in enumerate(self.rule.states)]]

    def places_of_numbers(self, i: int) -> list[int]:
        """The positions of the inputs that parameters share: a step counter, hyperparameters."""
        count = [self.counts.start + self.count_of[i]] if self.rule.counts else ()
        return [*count, *range(self.counts.stop, len(self.inputs))]

    def only(self, i: int, extent: int) -> UpdateProgram:
        """The program of so many elements of a parameter as an array of one dimension."""
        param = self.inputs[i]
        inputs = [self.inputs[place] for place in self.places_of(i)]
        inputs = [
            make_aval((extent,), aval.dtype) if aval.shape == param.shape else aval
            for aval in inputs
        ]
        inputs += [self.inputs[place] for place in self.places_of_numbers(i)]
        fresh = (0,) if i in self.fresh else ()
        return UpdateProgram(self.rule, (0,), fresh, tuple(inputs), int(self.rule.counts))

    def function(self, *arrays):
        size = len(self.count_of)
        params, grads, rest = list(arrays[:size]), arrays[size : 2 * size], iter(arrays[2 * size :])
        kept = [i not in self.fresh for i in range(size)]
        state = [[next(rest) if flag else None for flag in kept] for _ in self.rule.states]
        counts = [count + 1 for count in arrays[self.counts]]
        numbers = dict(zip(self.rule.numbers, arrays[self.counts.stop :], strict=True))
        for members in self.alike():
            count = counts[self.count_of[members[0]]] if counts else None
            parts = [_as_real([values[i] for i in members]) for values in (params, grads, *state)]
            new_params, after = self.apply_to(*parts, count=count, numbers=numbers)
            for values, results in zip((params, *state), (new_params, *after), strict=True):
                for i, result in zip(members, results, strict=True):
                    like = params[i] if values[i] is None else values[i]
                    values[i] = _restore_dtype(result, like)
        return (*params, *[array for values in state for array in values], *counts)

    def alike(self) -> list[list[int]]:
        """Return the indices of the parameters, grouped into calls of the rule."""
        groups: dict[tuple, list[int]] = {}
        for i, (number, shown) in enumerate(zip(self.count_of, self.inputs, strict=False)):
            groups.setdefault((number, shown.dtype, i in self.fresh), []).append(i)
        return list(groups.values())

    def apply_to(self, params, grads, *state, count, numbers):
        dtype = params[0].dtype
        # half precision has too few digits for a formula, and none for the factor 0.9999
        wide = jnp.float32 if dtype.itemsize == 2 else dtype
        params, *state = [_widened(values, dtype, wide) for values in (params, *state)]
        grads = [grad.astype(wide) for grad in grads]
        numbers = {name: _cast_number(number, wide) for name, number in numbers.items()}
        numbers["eps_of_dtype"] = float(jnp.finfo(dtype).eps)
        if count is not None:
            count = count.astype(jnp.result_type(float))
        with jax.named_scope(f"{self.name.removesuffix('Update')}.step"):  # names them in HLO
            return self.rule.update(params, grads, state, count, numbers)


_patterns = BoundedCache(kernels, lambda pattern: ENTRY)


def _text_of(rule, places) -> str | None:
    """An update rule of jaxgrad as text; None for one of somebody else."""
    if type(rule).__module__ != rules.__name__:
        return None
    parts = ",".join(map(template_store.text_of, (*rule, *places)))
    return f"{type(rule).__name__}.step({parts})"


@bounded(Program.weight)
def prepared(kind, rule, count_of, fresh, inputs, counts) -> UpdateProgram:
    """Return the interned program, ready to run; `kind` is the rule's type, because rules are
    tuples.
    """
    return executor.prepare(UpdateProgram(rule, count_of, fresh, inputs, counts))


def _concrete_aval(aval, mode):
    return make_aval(aval.shape, aval.dtype, mode)


def _as_real(values):
    """Split complex arrays into real and imaginary parts, which PyTorch's rules treat apart."""
    if values[0] is None or not jnp.iscomplexobj(values[0]):
        return values
    return [jnp.stack([array.real, array.imag], axis=-1) for array in values]


def _widened(values, dtype, wide):
    """The arrays of `dtype` as `wide`; None stands for state that begins with this step."""
    return [
        value if value is None or value.dtype != dtype else value.astype(wide) for value in values
    ]


def _restore_dtype(result, like):
    if jnp.iscomplexobj(like) and not jnp.iscomplexobj(result):
        result = jax.lax.complex(result[..., 0], result[..., 1])
    return result.astype(like.dtype)


def _cast_number(number, dtype):
    """Cast a hyperparameter that was a tensor to the parameters' dtype; Python numbers adapt."""
    if isinstance(number, float) or getattr(number, "weak_type", True):
        return number
    return number.reshape(()).astype(dtype)
