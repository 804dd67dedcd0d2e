"""Shapes and dtypes of a table's gradients, checked without any numbers.

Each entry is called on abstract arguments made up from its schema, of several shapes; where the
value function takes them, every gradient must come out with the shape of its input, broadcasting
aside, and be of floating point. No array is computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ..table import REQUIRED, Mistake
from . import dtypes
from .aval import INLINE, Aval, make_aval
from .derivative_rules import output_names
from .primitive import Call, Primitive, flatten
from .program import GradientError

# no two extents alike, so that no wrong shape passes for the right one; the rest where the value
# function takes none of them
SHAPES = ((2, 3), (3,), (2, 3, 4))
SPARE_SHAPES = ((3, 3), (2, 3, 3), ())
# of an argument that is not differentiated: a mask or an index as likely as data
CONSTANT_DTYPES = (dtypes.float32, dtypes.int64, dtypes.bool)
NUMBERS = {
    "Scalar": 0.5,
    "int": 0,
    "float": 0.5,
    "bool": False,
    "str": "none",
    "ScalarType": dtypes.float32,
}
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
            if primitive.compute is not None and primitive.rule.has_no_formulas:
                found.extend(_missing_formulas(primitive))
            elif primitive.compute is not None:
                found.extend(_mistakes_of_entry(primitive))
    return sorted(set(found))


def _missing_formulas(primitive: Primitive) -> Iterator[Mistake]:
    """The mistake of an entry without formulas, unless its outputs are integers or booleans."""
    rule, calls = primitive.rule, list(_calls(primitive))
    if not calls or any(output.differentiable for call in calls for output in call.outputs):
        cause = "it has no formula, and not all its outputs are seen to be integers or booleans"
        cure = "write a gradient for each Tensor, or `output_differentiability: [False]`"
        name = rule.schema.full_name
        yield Mistake(rule.path, *rule.places["name"], name, cause, cure)


def _mistakes_of_entry(primitive: Primitive) -> list[Mistake]:
    """The first mistake of each gradient."""
    found: dict[str, Mistake] = {}
    for call in _calls(primitive):
        for position, (tracked, owner) in enumerate(zip(call.tracked, call.owners, strict=True)):
            if tracked and call.differentiable_outputs and owner not in found:
                why = _failure(call, tuple(i == position for i in range(len(call.inputs))))
                found |= {owner: _mistake(primitive.rule, owner, why)} if why else {}
    return list(found.values())


def _failure(call: Call, mask) -> str | None:
    """Why the gradient that `mask` names does not fit its input, None where it does or nobody can
    tell.
    """
    try:
        call.reverse(mask).outputs  # noqa: B018  evaluated for what it raises
    except (NotImplementedError, NameError):
        return None
    except (
        GradientError,
        TypeError,
        ValueError,
        IndexError,
    ) as error:  # what JAX raises where shapes do not fit
        why = (
            error.why
            if isinstance(error, GradientError)
            else f"{type(error).__name__}: {str(error).splitlines()[0]}"
        )
        return f"for {', '.join(map(repr, call.inputs))}: {why}"
    return None


def _mistake(rule, owner, why) -> Mistake:
    line, column = rule.places.get(owner, (rule.line, 1))
    return Mistake(
        rule.path, line, column, rule.schema.full_name, f"the gradient of {owner!r} {why}", CURE
    )


def _calls(primitive: Primitive) -> Iterator[Call]:
    """The calls of an entry on made-up arguments that its value function accepts."""
    yield from list(_calls_of_shapes(primitive, SHAPES)) or _calls_of_shapes(
        primitive, SPARE_SHAPES
    )


def _calls_of_shapes(primitive: Primitive, shapes) -> Iterator[Call]:
    rule = primitive.rule
    constants = [name for name in rule.tensor_arguments if name in rule.non_differentiable]
    for shape in shapes:
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
    return isinstance(value, Aval)


def _argument(argument, rule, shape, kinds):
    kind = argument.type
    if kind.base == "Tensor":
        dtype = kinds[0] if argument.name in rule.non_differentiable else dtypes.float32
        tensor = make_aval(shape, dtype, INLINE)
        return (tensor, tensor) if kind.list else tensor
    if argument.default is not REQUIRED:
        return argument.default
    is_integral = any(dtype.category < dtypes.FLOATING for dtype in kinds)
    value = 1 if kind.base == "Scalar" and is_integral else NUMBERS.get(kind.base)
    return (value,) * (kind.size or max(len(shape), 1)) if kind.list else value
