"""Programs that need no trace: their blocks come from templates.

A call belongs to a pattern: its structure, its dtypes, and which extents are 0, 1, or equal. What
earlier processes have traced is looked up at the first call of a pattern (template_store.py). When
several calls of a pattern have come up, the program is traced with symbols in place of the extents,
and the host runs later ones from that template. The programs of derivatives have patterns too,
which belong to that of the call.
"""

from __future__ import annotations

import functools
import sys
import threading
import warnings

import numpy

from ..late import LateModule
from . import aval as avals
from .aval import Aval
from .jax_internals import unequal_extents

block = LateModule("jaxgrad.core.host.block")
executor = LateModule("jaxgrad.core.executor")
extents_module = LateModule("jaxgrad.core.host.extents")
store = LateModule("jaxgrad.core.template_store")
stored = LateModule("jaxgrad.core.host.stored")
template = LateModule("jaxgrad.core.host.template")

# After so many calls of a pattern there is a template, which takes as long as to trace these.
CALLS = 3

# one for all: programs of two threads may have one pattern
_lock = threading.RLock()


class Pattern:
    """The programs of one pattern.

    key: its text in files, None if it is not kept there; make_program: makes the program with
    symbols; unequal: the pairs of extents with these symbols that traces took to be unequal; count:
    how many programs came up that it had no block for.
    """

    def __init__(self, key: str | None, make_program, unequal: list):
        self.key, self.make_program, self.unequal = key, make_program, unequal
        self.count = 0
        self.template = None  # False if there is none and none can be made
        self.is_looked_up = key is None
        self.derived: dict[tuple, Pattern] = {}

    @functools.cached_property
    def program(self):
        """The program with symbols."""
        return self.make_program()

    def reverse(self, mask, present) -> Pattern:
        """The pattern of the programs of gradients."""
        found = self.derived.get((mask, present))
        if found is None:
            key = self.key and f"{self.key} {_flags(mask)}<{_flags(present)}"
            # JAX keeps parts of traces that have the same symbols
            reverse = functools.partial(self.reverse_program, mask, present)
            made = Pattern(key, reverse, self.unequal)
            found = self.derived.setdefault((mask, present), made)
        return found

    def reverse_program(self, mask, present):
        return self.program.reverse(mask).only(present)

    def ready(self, program, extents):
        """The block and the traits of a program without a trace of it; None if there are none."""
        if not self.is_looked_up:
            self.template, self.is_looked_up = store.find(self.key), True
        found = self.template and filled(self.template, program, extents)
        if found:
            return found
        if self.key is not None:
            exact = store.find_own(self.key, extents)
            found = exact and filled(exact, program, ())
            if found:
                return found
        self.count += 1
        if self.count <= CALLS or self.template is not None:
            return None
        with _lock:
            if self.template is None:
                self.template = False  # meanwhile both programs are traced as without a template
                self.template = self.template_like(program, extents) or False
                if self.template and self.key is not None:
                    store.keep(self.key, self.template.record)
        return self.template and filled(self.template, program, extents)

    def template_like(self, program, extents):
        """The template; None if the program cannot be traced with symbols, or the host cannot run
        it. It must compute what `program` does, which has these extents: both run once, on the same
        numbers.
        """
        if sys.getprofile() is not None:  # which would not see the tests of equality
            return None
        try:
            made = self.traced_template()
            like = block.Block(executor.jaxpr_of(program))
            is_right = (found := made(extents)) is not None and _agree(found, like)
        except Exception:  # a formula may do anything with a symbol
            return None
        return made if is_right else None

    def traced_template(self):
        """The template by a trace. Raises whatever a formula does."""
        with warnings.catch_warnings(), unequal_extents(self.unequal):
            warnings.simplefilter("error")  # a template would not warn
            outputs = self.program.outputs
            jaxpr = executor.jaxpr_of(self.program)
        data, conditions = stored.data_of(block.Block(jaxpr)), conditions_of(self.unequal)
        assert len(outputs) == len(data[-1])
        return template.Template([traits_of(self.program), conditions, data])


def filled(made, program, extents):
    """The block and the traits that a template has for a program; None if it has none."""
    try:
        result = made(extents)
        traits = checked_traits(program, made.traits)
    except ValueError:  # of a file that somebody has written
        return None
    if result is None or len(result.inputs) != len(program.inputs):
        return None
    if not all(map(_fits, result.inputs, program.inputs)):
        return None
    return result, traits


def _fits(form, given) -> bool:
    """Whether an input of a block is that of a program. A number has the bits of JAX's setting."""
    if isinstance(given, Aval):
        return form == (given.shape, given.dtype.numpy)
    shape, dtype = form
    is_narrow = given is avals.LargeInteger and dtype.itemsize < 8
    return shape == () and dtype.kind == _KINDS.get(given) and not is_narrow


# of the dtypes of numbers among the inputs
_KINDS = {bool: "b", int: "i", avals.LargeInteger: "i", float: "f", complex: "c"}


def _flags(flags) -> str:
    return "".join("1" if flag else "0" for flag in flags)


def pattern_of(call):
    """The pattern of a call, and the extents that its symbols have; None if it has none."""
    shapes = [given.shape for given in call.inputs if isinstance(given, Aval)]
    pattern = template.pattern_of(shapes)
    if pattern is None:
        return None
    shapes, extents = pattern
    kinds = tuple([given.dtype if isinstance(given, Aval) else given for given in call.inputs])
    patterns = call.primitive.patterns
    key = call.key, kinds, shapes
    known = patterns.get(key) or patterns.find(key)
    if known is None:
        text = store.key_of(call, kinds, shapes)
        made = Pattern(text, functools.partial(_symbolic_call, call, shapes), [])
        known = patterns.keep(key, made)
    return known, extents


def _symbolic_call(call, shapes):
    supply = iter(template.symbolic(shapes))
    inputs = [
        avals.make_aval(next(supply), given.dtype)
        if isinstance(given, Aval)
        else given
        for given in call.inputs
    ]
    made = type(call)(call.primitive, call.structure, tuple(inputs))
    made.pattern = None
    return made


def conditions_of(pairs) -> list:
    """The differences that must not be 0, of pairs of extents that were taken to be unequal."""
    found = []
    for first, second in pairs:
        tree = extents_module.difference(first, second)
        if tree not in found and not _is_known(tree):
            found.append(tree)
    return found


def _is_known(tree) -> bool:
    """Whether a difference is never 0: different symbols stand for different extents of two or
    more.
    """
    symbols, numbers = [part for part in tree[1:] if type(part) is str], tree[1:]
    is_small = any(type(part) is int and part < 2 for part in numbers)
    return (len(symbols) == 2 and symbols[0] != symbols[1]) or (len(symbols) == 1 and is_small)


def checked_traits(program, traits: dict) -> dict:
    """Traits of a program as a template keeps them. Raises ValueError."""
    found = {name: tuple(part) if type(part) is list else part for name, part in traits.items()}
    are_right = {name: type(part) for name, part in found.items()} == program.TRAITS
    positions = found.get("missing_seen", ())
    if not are_right or not all(type(position) is int for position in positions):
        raise ValueError(f"no traits: {str(traits)[:80]}")
    return found


def traits_of(program) -> dict:
    """What the trace of a program has shown."""
    found = {name: getattr(program, name) for name in program.TRAITS}
    return {name: [*part] if type(part) is tuple else part for name, part in found.items()}


def record_of(program, of_program):
    """The record of a program of exact shapes, with its block; None if it is not kept."""
    try:
        return [traits_of(program), [], stored.data_of(of_program)]
    except ValueError:
        return None


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
