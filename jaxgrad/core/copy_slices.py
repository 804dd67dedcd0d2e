"""Chains of views, and a write through a view as a program.

The program takes the base and the new value, and returns the base with the value in place of the
view. It is linear in both. Its reverse reads neither: the gradient of the base is zero where the
base was overwritten, and the gradient of the value is cut out. So a chain of writes saves no arrays
for its backward pass.
"""

from __future__ import annotations

import jax.numpy as jnp

from ..cached import cached_property
from ..late import LateModule
from . import view_ops
from .aval import IMMEDIATE, joint_mode
from .bounded_cache import ENTRY, BoundedCache, bounded, kernels
from .program import Program, Reverse, is_bare

template_store = LateModule("jaxgrad.core.template_store")
templates = LateModule("jaxgrad.core.templates")

_patterns = BoundedCache(kernels, lambda pattern: ENTRY)


class ViewStep:
    """A call of a view operator with its numbers, and the step before it."""

    __slots__ = ("before", "call", "numbers")

    def __init__(self, call, numbers, before):
        self.call, self.numbers, self.before = call, numbers, before


def same(first: ViewStep | None, second: ViewStep | None) -> bool:
    """Whether two chains cut out the same elements."""
    while first is not second:
        if first is None or second is None or first.call is not second.call:
            return False
        # traced numbers are equal only if they are the same tracer
        if any(a is not b and (type(a) is not int or a != b) for a, b in _numbers(first, second)):
            return False
        first, second = first.before, second.before
    return True


def _numbers(first, second):
    return zip(first.numbers, second.numbers, strict=True)


def in_order(place):
    """The calls of a chain in order, each with its numbers."""
    steps = []
    while place is not None:
        steps.append((place.call, place.numbers))
        place = place.before
    return reversed(steps)


def chain(step):
    """The calls of a chain in order, and the numbers of all of them."""
    steps = list(in_order(step))
    return tuple([call for call, _ in steps]), [n for _, numbers in steps for n in numbers]


def without_symbols(_avals):
    """Raise NotImplementedError for a template: the calls of a chain have no symbols."""
    raise NotImplementedError("a write through a view for other extents")


class CopySlices(Program):
    """`base` with `value` in place of the part that the chain of `calls` cuts out."""

    name, defers = "CopySlices", True

    def __init__(self, base, value, calls):
        self.calls = calls
        numbers = [number for call in calls for number in call.inputs[1:]]
        self.overlapping = any(view_ops.overlaps(call.outputs[0]) for call in calls)
        self.inputs = (base, value, *numbers)
        self.mode = joint_mode("copy_", (base, value))

    @staticmethod
    # cached with its kernel, so that a loop which writes to one place compiles once
    @bounded(Program.weight)
    def of(base, value, calls) -> CopySlices:
        """The cached `CopySlices` of these abstract values and calls."""
        # one program for all strides, and for duals too: their tangents are written apart
        return CopySlices(
            view_ops.compact(view_ops.plain(base)), view_ops.compact(view_ops.plain(value)), calls
        )

    @cached_property
    def pattern(self):
        """It is kept for these extents alone: the calls of views have no symbols."""
        if self.mode != IMMEDIATE:
            return None
        return templates.pattern_of(_patterns, self.calls, self.inputs, self.text, without_symbols)

    def text(self) -> str | None:
        """The text of the calls, which with the base and the value say what is computed."""
        parts = [template_store.text_of_call(call.primitive, call.structure) for call in self.calls]
        if None in parts:
            return None
        return f"{self.name}({','.join([repr(self.overlapping), *parts])})"

    def steps(self, numbers):
        supply = iter(numbers)
        return [(call, [next(supply) for _ in call.inputs[1:]]) for call in self.calls]

    def cut(self, array, numbers):
        """The result of each call in turn, after the whole array."""
        arrays = [array]
        for call, data in self.steps(numbers):
            run = call.compact.value if is_bare() else call.compact.function
            arrays.append(run(arrays[-1], *data)[0])
        return arrays

    def write(self, base, value, numbers):
        # nothing to write, and a formula need not stand an empty value
        if not value.size:
            return base
        if self.overlapping:
            # elements overlap (expand): inverting each call could not tell which copy is newer
            places = self.cut(jnp.arange(base.size).reshape(base.shape), numbers)[-1]
            return base.reshape(-1).at[places].set(value).reshape(base.shape)
        # from the innermost view outwards: each step puts the new value of a view into its source
        *wholes, _ = self.cut(base, numbers)
        for whole, (call, data) in reversed(list(zip(wholes, self.steps(numbers), strict=True))):
            value = view_ops.written(call, whole, value, data)
        return value

    def function(self, base, value, *numbers):
        return (self.write(base, value, numbers),)

    def make_reverse(self, mask):
        return WriteReverse(self, mask)


class WriteReverse(Reverse):
    """The gradients of a write: cut out for the value, zero where the base was overwritten."""

    saved_outputs, defers = (), True

    def __init__(self, program, mask):
        super().__init__(program, mask)
        self.node_name = program.name
        self.saved_inputs = tuple(range(2, len(program.inputs)))

    def function(self, gradient, *numbers):
        value = self.program.inputs[1].struct
        results = []
        if 0 in self.wanted:
            zeros = jnp.zeros(value.shape, value.dtype)
            results.append(self.program.write(gradient, zeros, numbers))
        if 1 in self.wanted:
            results.append(self.program.cut(gradient, numbers)[-1])
        return tuple(results)
