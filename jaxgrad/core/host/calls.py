"""Blocks that call other blocks, and blocks in two parts, of which the first is shared."""

from __future__ import annotations

from .block import Block
from .equation import Equation, Form, rule

CALL = "block_call"


def call_of(block: Block, inputs, outputs) -> Equation:
    """The equation that runs a block on operands of these forms: they get the shapes of the block's
    inputs, and its results those of `outputs`, all of as many elements.
    """
    return Equation(CALL, {"block": block}, tuple(inputs), tuple(outputs))


@rule(CALL)
def _block_call(equation):
    block = equation.params["block"]
    function = block.function
    before = _shapes(equation.inputs, block.inputs)
    after = _shapes(block.outputs, equation.outputs)

    def call(*operands):
        operands = [_reshaped(*pair) for pair in zip(operands, before, strict=True)]
        return [_reshaped(*pair) for pair in zip(function(*operands), after, strict=True)]

    return call


def _shapes(forms, wanted) -> list:
    """The shapes that arrays of forms are to get; None where they have it."""
    pairs = zip(forms, wanted, strict=True)
    return [None if form.shape == like.shape else like.shape for form, like in pairs]


def _reshaped(array, shape):
    return array if shape is None else array.reshape(shape)


class Parts:
    """A block in two parts: what depends on some inputs alone, and the rest.

    inputs: the numbers of those inputs; shared: a block from them to `passed`, the numbers of the
    values that the rest or the results read; rest: a block from all other inputs, then `passed`.
    """

    def __init__(self, block: Block, inputs):
        self.inputs = [*inputs]
        known, shared, rest = {*inputs, *block.constants}, [], []
        for step in block.needed():
            _, operands, results = step
            is_shared = known.issuperset(operands)
            (shared if is_shared else rest).append(step)
            known.update(results if is_shared else ())
        forms = _forms(block)
        read = {place for _, operands, _ in rest for place in operands}.union(block.results)
        self.passed = sorted(read & known - block.constants.keys())
        others = [place for place in range(len(block.inputs)) if place not in known]
        self.shared = _part(block, forms, shared, self.inputs, self.passed)
        self.rest = _part(block, forms, rest, [*others, *self.passed], block.results)


def _forms(block) -> dict[int, Form]:
    """The form of each value, by its number."""
    forms = dict(enumerate(block.inputs))
    forms |= {place: Form(value.shape, value.dtype) for place, value in block.constants.items()}
    for equation, _, results in block.equations:
        forms.update(zip(results, equation.outputs, strict=True))
    return forms


def _part(block, forms, steps, inputs, results) -> Block:
    """A block of some steps, whose inputs are the values with these numbers."""
    numbers = {place: number for number, place in enumerate([*inputs, *block.constants])}
    equations = []
    for equation, operands, outputs in steps:
        begin = len(numbers)
        numbers |= {place: begin + i for i, place in enumerate(outputs)}
        placed = range(begin, len(numbers))
        equations.append((equation, [numbers[place] for place in operands], placed))
    constants = {numbers[place]: value for place, value in block.constants.items()}
    outputs = [forms[place] for place in results]
    places = [numbers[place] for place in results]
    return Block.of_parts([forms[place] for place in inputs], outputs, equations, constants, places)
