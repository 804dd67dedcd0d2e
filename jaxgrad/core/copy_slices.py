"""The way from a tensor to a view of it, and a write through the view as a program: what the view
was cut from, with the new value in its place.

That is linear in both, and its reverse needs neither: the gradient of the one is cleared where it
was overwritten, that of the other is cut out. So a chain of writes keeps no arrays for its backward
pass.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp

from . import view_ops
from .program import Program, Reverse, is_bare


class ViewStep:
    """A call of a view operator, with the numbers that are its data, after those before it."""

    __slots__ = ("before", "call", "numbers")

    def __init__(self, call, numbers, before):
        self.call, self.numbers, self.before = call, numbers, before


def same(first: ViewStep | None, second: ViewStep | None) -> bool:
    """Whether two chains lead to the same place."""
    while first is not second:
        if first is None or second is None or first.call is not second.call:
            return False
        if any(a is not b and (type(a) is not int or a != b) for a, b in _numbers(first, second)):
            return False
        first, second = first.before, second.before
    return True


def _numbers(first, second):
    return zip(first.numbers, second.numbers, strict=True)


def in_order(place):
    """The calls of a chain in order, each with its numbers."""
    found = []
    while place is not None:
        found.append((place.call, place.numbers))
        place = place.before
    return reversed(found)


def chain(step):
    """The calls of a chain in order, and the numbers of all of them."""
    found = list(in_order(step))
    return tuple([call for call, _ in found]), [n for _, numbers in found for n in numbers]


class CopySlices(Program):
    """`base` with `value` where the calls, one after another, would have cut it out."""

    name = "CopySlices"

    def __init__(self, base, value, calls):
        self.calls = calls
        numbers = [number for call in calls for number in call.inputs[1:]]
        self.overlapping = any(view_ops.overlaps(call.outputs[0]) for call in calls)
        self.inputs = (base, value, *numbers)
        self.mode = max(base.mode, value.mode)

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def of(base, value, calls) -> CopySlices:
        """The one `CopySlices` of these abstract values and calls."""
        return CopySlices(
            view_ops.compact(view_ops.plain(base)), view_ops.compact(view_ops.plain(value)), calls
        )

    def steps(self, numbers):
        supply = iter(numbers)
        return [(call, [next(supply) for _ in call.inputs[1:]]) for call in self.calls]

    def cut(self, array, numbers):
        """What each call cuts out, beginning with the whole."""
        found = [array]
        for call, data in self.steps(numbers):
            run = call.compact.value if is_bare() else call.compact.function
            found.append(run(found[-1], *data)[0])
        return found

    def write(self, base, value, numbers):
        if not value.size:
            return base
        if self.overlapping:
            # part of something expanded: each call's inverse would not know which copy is newer
            places = self.cut(jnp.arange(base.size).reshape(base.shape), numbers)[-1]
            return base.reshape(-1).at[places].set(value).reshape(base.shape)
        *wholes, _ = self.cut(base, numbers)
        for whole, (call, data) in reversed(list(zip(wholes, self.steps(numbers), strict=True))):
            value = view_ops.written(call, whole, value, data)
        return value

    def function(self, base, value, *numbers):
        return (self.write(base, value, numbers),)

    def make_reverse(self, mask):
        return WriteReverse(self, mask)


class WriteReverse(Reverse):
    """The gradient of a write: of the base where it was kept, of the value where it is now."""

    saved_outputs = ()

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
