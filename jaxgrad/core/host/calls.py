"""Blocks that call other blocks, and blocks in two parts, of which the first is shared."""

from __future__ import annotations

import numpy

from .block import Block
from .equation import Equation, Form, rule

CALL, PIECES = "block_call", "block_of_pieces"


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


def pieces_of(piece: Block, last: Block, count: int, inputs, outputs) -> Equation:
    """The equation that runs a block on one piece of its operands after the other, so that
    intermediate values stay in the cache. Operands and results are flattened to one dimension and
    cut.

    piece, last: the blocks of a usual piece, and of the last one.
    """
    # as `length` and one block the model of cost counts the pieces
    params = {"block": piece, "length": count, "last": [last]}
    return Equation(PIECES, params, tuple(inputs), tuple(outputs))


@rule(PIECES)
def _block_of_pieces(equation):
    params, outputs = equation.params, equation.outputs
    block, (last,), count = params["block"], params["last"], params["length"]
    functions = [block.function] * (count - 1) + [last.function]
    are_cut = [bool(form.shape) for form in block.inputs]
    size = next(form.shape[0] for form in block.inputs if form.shape)
    bounds = [slice(size * i, size * (i + 1)) for i in range(count)]
    kept = [i for i, form in enumerate(block.outputs) if not form.shape]

    def call(*operands):
        whole = [
            array.reshape(-1) if is_cut else array
            for array, is_cut in zip(operands, are_cut, strict=True)
        ]
        arrays = [numpy.empty(*form) for form in outputs]
        flat = [array.reshape(-1) for array in arrays]
        for function, part in zip(functions, bounds, strict=True):
            pairs = zip(whole, are_cut, strict=True)
            results = function(*[array[part] if is_cut else array for array, is_cut in pairs])
            for array, result in zip(flat, results, strict=True):
                array[part] = result
        for i in kept:
            arrays[i] = results[i]
        return arrays

    return call


def _shapes(forms, wanted) -> list:
    """The shapes that arrays of forms are to get; None where they have it."""
    pairs = zip(forms, wanted, strict=True)
    return [None if form.shape == like.shape else like.shape for form, like in pairs]


def _reshaped(array, shape):
    return array if shape is None else array.reshape(shape)


class Parts:
    """A block in two parts: numbers that depend on some inputs alone, and the rest.

    inputs: the numbers of those inputs; shared: a block from them to `passed`, the numbers of the
    values that the rest or the results read; rest: a block from all other inputs, then `passed`.
    """

    def __init__(self, block: Block, inputs):
        self.inputs = [*inputs]
        known, shared, rest = {*inputs, *block.constants}, [], []
        for step in block.needed():
            equation, operands, results = step
            are_numbers = not any(form.shape for form in equation.outputs)
            is_shared = are_numbers and known.issuperset(operands)
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
