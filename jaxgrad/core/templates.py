"""Programs that need no trace: their blocks come from templates.

A call belongs to a pattern: its structure, its dtypes, and which extents are 0, 1, or equal. What
earlier processes have traced is looked up at the first call of a pattern (template_store.py). When
several calls of a pattern have come up, the program is traced with symbols in place of the extents,
and the host runs later ones from that template. Where what is computed depends on the extents,
several templates share a pattern, each with conditions. The programs of derivatives have patterns
too, which belong to that of the call.
"""

from __future__ import annotations

import functools
import sys
import threading

import numpy

from ..late import LateModule
from . import aval as avals
from .aval import Aval
from .jax_internals import watched_trace

block = LateModule("jaxgrad.core.host.block")
executor = LateModule("jaxgrad.core.executor")
premises_module = LateModule("jaxgrad.core.premises")
store = LateModule("jaxgrad.core.template_store")
stored = LateModule("jaxgrad.core.host.stored")
template = LateModule("jaxgrad.core.host.template")

# After so many calls of a pattern there is a template, which takes as long as to trace these.
CALLS = 3
# how many templates a pattern may have, and how often a program is traced for one
TEMPLATES, TRACES = 4, 12

# one for all: programs of two threads may have one pattern
_lock = threading.RLock()
# has the attribute `is_here` in a thread that makes a template
_thread_state = threading.local()


class Pattern:
    """The programs of one pattern.

    key: its text in files, None if it is not kept there; symbols: how many it has; program_for:
    makes the program for extents, and may look into premises for programs with their symbols;
    source: for gradients, the pattern of the program that they belong to; unserved: the extents of
    the programs since the last template for which no template had a block.
    """

    def __init__(self, key: str | None, symbols: int, program_for, source=None):
        self.key, self.symbols, self.program_for = key, symbols, program_for
        self.source, self.unserved = source, []
        self.templates, self.premises = [], []  # the premises of those that were traced here
        self.is_open = True  # another template may be traced
        self.is_looked_up = key is None
        self.derived: dict[tuple, Pattern] = {}

    def reverse(self, mask, present) -> Pattern:
        """The pattern of the programs of gradients."""
        pattern = self.derived.get((mask, present))
        if pattern is None:
            key = self.key and f"{self.key} {_flags(mask)}<{_flags(present)}"
            program_for = functools.partial(self.reverse_for, mask, present)
            candidate = Pattern(key, self.symbols, program_for, self)
            pattern = self.derived.setdefault((mask, present), candidate)
        return pattern

    def reverse_for(self, mask, present, extents, premises=None):
        """The program of gradients for extents, or with the symbols of premises."""
        program = self.program_for(extents) if premises is None else self.program_with(premises)
        return program.reverse(mask).only(present)

    def program_with(self, premises):
        """The program with the symbols of premises."""
        if self not in premises.programs:
            premises.programs[self] = self.program_for(premises.symbols, premises)
        return premises.programs[self]

    def ready(self, program, extents):
        """The block and the traits of a program without a trace of it; None if there are none."""
        if not self.is_looked_up:
            self.templates, self.is_looked_up = store.find(self.key), True
            self.is_open = len(self.templates) < TEMPLATES
        # what was traced for these extents comes first: a second run has the bits of the first one
        exact = [] if self.key is None else store.find_exact(self.key, extents)
        ready = filled(exact, program, ()) or filled(self.templates, program, extents)
        if ready is not None:
            return ready
        if not self.is_open:
            return None
        self.unserved = [*self.unserved, extents]
        if len(self.unserved) <= CALLS:
            return None
        _in_own_thread(self.make_template, program, extents)
        return filled(self.templates, program, extents)

    def make_template(self, program, extents):
        """Trace a template, unless there is one for these extents by now.

        A thread of its own does it. If JAX refuses a symbol, its error stays in a cycle with all
        frames of the thread, and so with the tensors that they hold.
        """
        with _lock:
            if not self.is_open or any(template.serves(extents) for template in self.templates):
                return
            self.is_open = False  # meanwhile both programs are traced as without a template
            template = self.template_like(program, extents)
            if template is None:
                return
            self.templates, self.unserved = [*self.templates, template], []
            self.is_open = len(self.templates) < TEMPLATES
            if self.key is not None:
                store.keep(self.key, [template.record for template in self.templates])

    def template_like(self, program, extents):
        """The template; None if the program cannot be traced with symbols, or the host cannot run
        it. A symbol is true as a truth value, like `extent % 2`. So the template must give the
        results of traced programs on the same operands: of `program`, which has these extents, and
        of one with other extents.
        """
        source = self.source
        if source is not None and not source.templates and not source.is_open:
            return None
        if sys.getprofile() is not None:  # which would not see the tests of equality
            return None
        try:
            premises, template = self.traced_template(extents)
            is_right = self.agrees(template, extents, program)
            if extents:
                others = premises_module.other_extents_of(template, extents)
                is_right = is_right and others is not None and self.agrees(template, others)
        except Exception:  # a formula may do anything with a symbol
            return None
        if not is_right:
            return None
        self.premises.append(premises)
        return template

    def agrees(self, template, extents, program=None) -> bool:
        """Whether a template is for extents, and computes what the program of these does."""
        result = template(extents)
        program = program or self.program_for(extents)
        return result is not None and _agree(result, block.Block(executor.host_jaxpr_of(program)))

    def traced_template(self, extents):
        """The premises and the template by traces. Raises whatever a formula does."""
        steady = _steady(self.unserved)
        known = self.source.premises if self.source is not None else []
        fresh = functools.partial(premises_module.Premises, self.symbols)
        premises = (
            next((candidate for candidate in known if candidate.hold(extents)), None) or fresh()
        )
        for _ in range(TRACES):
            template = error = None
            try:
                template = self.template_with(premises)
            except Exception as raised:
                error = raised
            further = premises.further(extents, error, steady)
            if further is None and error is not None:
                raise error
            if further is None:
                return premises, template
            premises = further
        raise NotImplementedError("too many comparisons of symbols")

    def template_with(self, premises):
        """The template by a trace with symbols. Raises whatever a formula does."""
        program = self.program_with(premises)
        with watched_trace(premises.unequal):  # it may not warn: a template would not
            outputs = program.outputs
            jaxpr = executor.host_jaxpr_of(program)
        data, conditions = stored.data_of(block.Block(jaxpr)), premises.conditions()
        assert len(outputs) == len(data[-1])
        return template.Template([traits_of(program), conditions, data])


def _steady(calls) -> list[int]:
    """The places in which the extents of several calls are equal."""
    columns = enumerate(zip(*calls, strict=True)) if len(calls) > 1 else ()
    return [place for place, column in columns if len({*column}) == 1]


def _in_own_thread(make, *arguments):
    """Call a function and wait for it, in a thread that has no frames of the caller's."""
    if getattr(_thread_state, "is_here", False):
        return make(*arguments)

    def work():
        _thread_state.is_here = True
        make(*arguments)

    thread = threading.Thread(target=work, name="jaxgrad template")
    try:
        thread.start()
    except RuntimeError:  # there can be no more threads: the program is traced as it is
        return None
    return thread.join()


def filled(templates, program, extents):
    """The block and the traits that the first template for extents has for a program; None if none
    has them.
    """
    for template in templates:
        try:
            result = template(extents)
            traits = result and checked_traits(program, template.traits)
        except ValueError:  # of a file that somebody has written
            continue
        if result is not None and _serves(result, program):
            return result, traits
    return None


def _serves(result, program) -> bool:
    """Whether a block has the inputs of a program."""
    forms = result.inputs
    return len(forms) == len(program.inputs) and all(map(_fits, forms, program.inputs))


def _fits(form, aval_or_type) -> bool:
    """Whether an input of a block is that of a program. A number has the bits of JAX's setting."""
    if isinstance(aval_or_type, Aval):
        return form == (aval_or_type.shape, aval_or_type.dtype.numpy)
    shape, dtype = form
    is_narrow = aval_or_type is avals.LargeInteger and dtype.itemsize < 8
    return shape == () and dtype.kind == _KINDS.get(aval_or_type) and not is_narrow


# of the dtypes of numbers among the inputs
_KINDS = {bool: "b", int: "i", avals.LargeInteger: "i", float: "f", complex: "c"}


def _flags(flags) -> str:
    return "".join("1" if flag else "0" for flag in flags)


def pattern_of(patterns, key, avals_of, make_text, remade, numbers=()):
    """The pattern of a program, and the extents that its symbols have; None if it has none.

    patterns: where patterns are kept; key: tells programs apart in there; avals_of: what has the
    extents: abstract values, and the types of numbers; make_text: makes the text of the program for
    keys in files, or None; remade: makes the program of other abstract values; numbers: what else
    symbols may stand for, of which `remade` then takes others too.
    """
    shapes = [aval.shape for aval in avals_of if isinstance(aval, Aval)]
    shapes += [numbers] if numbers else []
    pattern = template.pattern_of(shapes)
    if pattern is None:
        return None
    shapes, extents = pattern
    kinds = tuple([aval.dtype if isinstance(aval, Aval) else aval for aval in avals_of])
    key = key, kinds, shapes
    known = patterns.get(key) or patterns.find(key)
    if known is None:
        text = store.text_or_none(make_text)
        program_for = functools.partial(_program_for, avals_of, shapes, remade)
        known = Pattern(store.key_of(text, kinds, shapes), len(extents), program_for)
        # a function of the user's may wait for the thread that calls, whose settings count too
        if text is None or not store.has_usual_jax():
            known.is_open = False
        known = patterns.keep(key, known)
    return known, extents


def _program_for(avals_of, shapes, remade, extents, _premises=None):
    """The program of a pattern for extents, which may be symbols."""
    supply = iter(template.with_extents(shapes, extents))
    inputs = [
        avals.make_aval(next(supply), aval.dtype) if isinstance(aval, Aval) else aval
        for aval in avals_of
    ]
    program = remade(tuple(inputs), *supply)
    program.pattern = None
    return program


def checked_traits(program, traits: dict) -> dict:
    """Traits of a program as a template keeps them. Raises ValueError."""
    checked = {name: tuple(part) if type(part) is list else part for name, part in traits.items()}
    are_right = {name: type(part) for name, part in checked.items()} == program.TRAITS
    positions = checked.get("missing_seen", ())
    if not are_right or not all(type(position) is int for position in positions):
        raise ValueError(f"no traits: {str(traits)[:80]}")
    return checked


def traits_of(program) -> dict:
    """The facts that the trace of a program has shown."""
    traits = {name: getattr(program, name) for name in program.TRAITS}
    return {name: [*part] if type(part) is tuple else part for name, part in traits.items()}


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
