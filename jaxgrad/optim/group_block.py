"""The step of a group on the host: it runs the block of one parameter for each parameter.

An elementwise rule needs no shapes, so a parameter is treated as a vector, and one template serves
all lengths. Values that depend only on step counters and hyperparameters, such as the correction of
a bias, are computed once for the group.
"""

from __future__ import annotations

import functools

import numpy

from ..core import executor
from ..core.aval import IMMEDIATE, Aval
from ..core.host.block import Block
from ..core.host.calls import Parts, call_of, pieces_of
from ..core.host.equation import Form
from ..late import LateModule

template_store = LateModule("jaxgrad.core.template_store")

# The most elements of a parameter that are updated at once: all that is computed of them stays in
# the cache.
PIECE = 1 << 15


def of(program) -> Block | None:
    """The block of an `UpdateProgram` (update_program.py); None if it must be traced as a whole, or
    is already the block of one parameter in one dimension.
    """
    if not getattr(program.rule, "elementwise", False) or program.mode != IMMEDIATE:
        return None
    is_usual = all(_has_usual_shapes(program, i) for i in range(len(program.count_of)))
    if not is_usual or _is_single(program):
        return None
    return Group(program).block()


def _is_single(program) -> bool:
    """Whether it is the program of one parameter in one dimension."""
    extents = program.inputs[0].shape
    return len(program.count_of) == len(extents) == 1 and extents[0] <= PIECE


def _has_usual_shapes(program, i) -> bool:
    """Whether gradient and states have the shape of the parameter, or no dimensions."""
    param, grad, *states = [program.inputs[place].shape for place in program.places_of(i)]
    return grad == param and {*states} <= {param, ()}


class Group:
    """The equations for a group, while they are put together."""

    def __init__(self, program):
        self.program, self.equations = program, []
        self.forms = [*map(_form, program.inputs)]
        self.parts: dict[tuple, Parts] = {}  # by the inputs of the program of a parameter
        self.shared: dict[tuple, list] = {}  # the places of what is computed once

    def block(self) -> Block:
        program, inputs = self.program, [*self.forms]
        updates = [self.update(i) for i in range(len(program.count_of))]
        columns = [*zip(*updates, strict=True)]
        if program.rule.counts:
            columns[-1] = dict(zip(program.count_of, columns[-1], strict=True)).values()
        results = [place for column in columns for place in column]
        outputs = [self.forms[place] for place in results]
        return Block.of_parts(inputs, outputs, self.equations, {}, results)

    def update(self, i) -> range:
        """Add the update of a parameter; gives the places of its new value, of its states, and of
        its step counter.
        """
        program, numbers = self.program, self.program.places_of_numbers(i)
        extent = program.inputs[i].shape.numel()
        # a last piece of one element would have equations of its own
        size = PIECE - (extent % PIECE == 1)
        count = max(1, -(-extent // size))
        parts = self.parts_of(program.only(i, min(size, extent)))
        last = self.parts_of(program.only(i, extent - (count - 1) * size))
        call = functools.partial(call_of, parts.rest)
        if count > 1:
            call = functools.partial(pieces_of, parts.rest, last.rest, count)
        key = (*numbers, parts.text)
        if key not in self.shared:
            of_numbers = functools.partial(call_of, parts.shared)
            self.shared[key] = self.add(of_numbers, numbers, parts.shared.outputs)
        outputs = [*map(_form, program.outputs[i : program.states_end : len(program.count_of)])]
        outputs += [self.forms[place] for place in numbers[: program.rule.counts]]
        return self.add(call, [*program.places_of(i), *self.shared[key]], outputs)

    def add(self, equation_of, operands, outputs) -> range:
        """Add an equation; gives the places of its results."""
        inputs = [self.forms[place] for place in operands]
        results = range(len(self.forms), len(self.forms) + len(outputs))
        self.equations.append((equation_of(inputs, outputs), operands, results))
        self.forms += outputs
        return results

    def parts_of(self, program) -> Parts:
        """The block of one parameter in two parts."""
        key = program.inputs, program.fresh
        if key not in self.parts:
            block = program.block
            if block is None:
                block = Block(executor.host_jaxpr_of(program))
                template_store.note(program, block)
            numbers = program.places_of_numbers(0)
            self.parts[key] = parts = Parts(block, numbers)
            parts.text = _text_of(parts.shared)
        return self.parts[key]


def _text_of(block) -> str:
    """A block of numbers without dimensions as text, where others differ."""
    steps = [
        (name, params, operands, results, [form.dtype.num for form in outputs])
        for (name, params, _, outputs), operands, results in block.equations
    ]
    constants = [(i, value.dtype.num, value.tolist()) for i, value in block.constants.items()]
    return repr((steps, constants, block.results))


def _form(entry) -> Form:
    """The form of an input or output; hyperparameters have double precision."""
    is_array = isinstance(entry, Aval)
    return Form(tuple(entry.shape), entry.dtype.numpy) if is_array else Form((), numpy.dtype(float))
