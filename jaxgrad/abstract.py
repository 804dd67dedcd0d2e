"""Shapes and dtypes of a table's gradients, checked without any numbers.

Each entry is called on abstract arguments made up from its schema, of several shapes; where the value function takes them, every
gradient must come out with the shape of its input, broadcasting aside, and be of floating point. No array is computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from . import avals, dtypes
from .formulas import output_names
from .primitive import Call, Primitive, flatten
from .programs import GradientError
from .table import REQUIRED, Mistake

SHAPES = ((2, 3), (3, 3), (3,), (), (2, 3, 4))
# of an argument that is not differentiated: a mask or an index as likely as data
CONSTANT_DTYPES = (dtypes.float32, dtypes.int64, dtypes.bool)
NUMBERS = {"Scalar": 0.5, "int": 0, "float": 0.5, "bool": False, "str": "none", "ScalarType": dtypes.float32}
CURE = "only broadcasting is undone for a formula, everything else is its own to undo"


def mistakes_of(library) -> list[Mistake]:
    """The mistakes that abstract evaluation finds in the formulas of a library's table."""
    found: list[Mistake] = []
    for name in library.table.names:
        try:
            primitives = library.find(name).primitives
        except NameError:  # a function that this check was not given
            continue
        for primitive in primitives:
            if primitive.compute is not None:
                found.extend(_mistakes_of_entry(primitive))
    return sorted(set(found))


def _mistakes_of_entry(primitive: Primitive) -> Iterator[Mistake]:
    for call in _calls(primitive):
        for position, tracked in enumerate(call.tracked):
            mask = tuple(tracked and i == position for i in range(len(call.inputs)))
            if tracked and call.differentiable_outputs:
                yield from _mistakes_of_gradient(call, call.owners[position], mask)


def _mistakes_of_gradient(call, owner, mask) -> Iterator[Mistake]:
    rule = call.primitive.rule
    try:
        assert call.reverse(mask).outputs
    except (NotImplementedError, NameError):
        return
    except Exception as error:  # whatever a formula raises on arguments that the value function takes
        why = error.why if isinstance(error, GradientError) else f"{type(error).__name__}: {str(error).splitlines()[0]}"
        shapes = ", ".join(map(repr, call.inputs))
        line, column = rule.places.get(owner, (rule.line, 1))
        cause = f"the gradient of {owner!r} for {shapes}: {why}"
        yield Mistake(rule.path, line, column, rule.schema.full_name, cause, CURE)


def _calls(primitive: Primitive) -> Iterator[Call]:
    """The calls of an entry on made-up arguments that its value function accepts."""
    rule = primitive.rule
    constants = [name for name in rule.tensor_arguments if name in rule.non_differentiable]
    for shape in SHAPES:
        for kinds in itertools.product(CONSTANT_DTYPES, repeat=min(len(constants), 1)):
            arguments = [_argument(each, rule, shape, kinds) for each in rule.schema.arguments]
            structure, leaves = flatten(arguments, _is_aval)
            call = Call(primitive, structure, tuple(leaves))
            try:
                output_names(call)
            except Exception:  # the value function refused what was made up, in whatever way
                continue
            yield call


def _is_aval(value):
    return isinstance(value, avals.Aval)


def _argument(argument, rule, shape, kinds):
    kind = argument.type
    if kind.base == "Tensor":
        dtype = kinds[0] if argument.name in rule.non_differentiable else dtypes.float32
        tensor = avals.aval(shape, dtype, avals.INLINE)
        return (tensor, tensor) if kind.list else tensor
    if argument.default is not REQUIRED:
        return argument.default
    value = NUMBERS.get(kind.base)
    return (value,) * (kind.size or max(len(shape), 1)) if kind.list else value
