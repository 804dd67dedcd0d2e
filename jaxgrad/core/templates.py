"""Programs with symbols in place of extents: what is traced for all shapes of a pattern.

A call belongs to a pattern: its structure, its dtypes, and which extents are 0, 1, or equal. When
several calls of one pattern have come up, the program is traced with symbols, and the host runs
later ones from the template (core/host/template.py), without a trace of their own.
"""

from __future__ import annotations

import numpy

from ..late import LateModule
from . import aval as avals
from .aval import Aval

template = LateModule("jaxgrad.core.host.template")
block = LateModule("jaxgrad.core.host.block")

# After so many calls of a pattern there is a template, which takes as long as to trace these.
CALLS = 3


class Pattern:
    """The calls of one pattern: how many came up, and the program with symbols once it is made."""

    __slots__ = ("call", "count")

    def __init__(self):
        self.count, self.call = 0, None


def general_of(call):
    """The call with symbols that stands for a call on concrete arrays, and the extents of the
    symbols; None until enough calls of its pattern have come up.
    """
    shapes = [given.shape for given in call.inputs if isinstance(given, Aval)]
    pattern = template.pattern_of(shapes)
    if pattern is None or not pattern[1]:
        return None
    shapes, extents = pattern
    kinds = tuple([given.dtype if isinstance(given, Aval) else given for given in call.inputs])
    patterns = call.primitive.patterns
    key = call.key, kinds, shapes
    known = patterns.get(key) or patterns.find(key) or patterns.keep(key, Pattern())
    known.count += 1
    if known.count <= CALLS:
        return None
    if known.call is None:
        supply = iter(shapes)
        inputs = [
            avals.make_aval(template.symbolic(next(supply)), given.dtype)
            if isinstance(given, Aval)
            else given
            for given in call.inputs
        ]
        known.call = type(call)(call.primitive, call.structure, tuple(inputs))
        known.call.general = None
    return known.call, extents


def template_of(general, program, extents, jaxpr_of):
    """The template of a program with symbols; False if it cannot be traced with them, or the host
    cannot run it. It must compute what `program` does, which has these extents: both run once, on
    the same numbers.
    """
    try:
        made = template.Template(block.Block(jaxpr_of(general)))
        is_right = _agree(made(extents), block.Block(jaxpr_of(program)))
    except Exception:  # a formula may do anything with a symbol
        return False
    return made if is_right else False


def _agree(first, second) -> bool:
    if (first.inputs, first.outputs) != (second.inputs, second.outputs):
        return False
    draw = numpy.random.default_rng(0)
    operands = [_numbers(form, draw) for form in first.inputs]
    with numpy.errstate(all="ignore"):
        pairs = zip(first.function(*operands), second.function(*operands), strict=True)
        return all(_are_close(*pair) for pair in pairs)


def _numbers(form, draw):
    """Numbers of a form: indices that are in bounds, or numbers of both signs."""
    if form.dtype.kind in "biu":
        return draw.integers(0, 2, form.shape).astype(form.dtype)
    numbers = draw.standard_normal(form.shape)
    if form.dtype.kind == "c":
        numbers = numbers + 1j * draw.standard_normal(form.shape)
    return numbers.astype(form.dtype)


def _are_close(first, second) -> bool:
    first, second = (numpy.asarray(array).astype(_wide(array)) for array in (first, second))
    return numpy.allclose(first, second, rtol=1e-3, atol=1e-5, equal_nan=True)


def _wide(array):
    return numpy.complex128 if numpy.iscomplexobj(array) else numpy.float64
