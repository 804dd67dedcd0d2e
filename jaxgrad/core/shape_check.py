"""Checks the shapes and dtypes of a table's gradients by abstract evaluation.

Each entry is called on abstract arguments of several shapes, made from its schema. If the value
function accepts them, every gradient must have the shape of its input, up to broadcasting, and a
floating-point dtype. The outputs of an entry without formulas must be integers or booleans.
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

# all extents differ, so that no wrong shape equals the right one by chance; the spare shapes serve
# value functions that accept none of these
SHAPES = ((2, 3), (3,), (2, 3, 4))
SPARE_SHAPES = ((3, 3), (2, 3, 3), ())
# dtypes of a non-differentiable argument, which may be data, an index or a mask
CONSTANT_DTYPES = (dtypes.float32, dtypes.int64, dtypes.bool)
NUMBERS = {
    "Scalar": 0.5,
    "int": 0,
    "float": 0.5,
    "bool": False,
    "str": "none",
    "ScalarType": dtypes.float32,
}
CURE = "jaxgrad adds only sums over broadcast dimensions to a formula; write all else into it"


def mistakes_of(library) -> list[Mistake]:
    """The mistakes that abstract evaluation finds in the formulas of a library's table."""
    found: list[Mistake] = []
    for name in library.table.names:
        try:
            primitives = library.find(name).primitives
        except NameError:  # `jaxgrad check` does not import a user's functions
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
        cause = "it has no formula, but its outputs may be floating point"
        cure = "write a gradient for each Tensor, or `output_differentiability: [False]`"
        name = rule.schema.full_name
        yield Mistake(rule.path, *rule.places["name"], name, cause, cure)


def _mistakes_of_entry(primitive: Primitive) -> list[Mistake]:
    """The first mistake of each gradient."""
    found: dict[str, Mistake] = {}
    for call in _calls(primitive):
        for position, (tracked, owner) in enumerate(zip(call.tracked, call.owners, strict=True)):
            if tracked and call.differentiable_outputs and owner not in found:
                # each gradient alone, so that a mistake in one hides none in another
                why = _failure(call, tuple(i == position for i in range(len(call.inputs))))
                found |= {owner: _mistake(primitive.rule, owner, why)} if why else {}
    return list(found.values())


def _failure(call: Call, mask) -> str | None:
    """Why the gradient of the input in `mask` does not fit it; None if it fits or is unknown."""
    try:
        call.reverse(mask).outputs  # noqa: B018  evaluated for what it raises
    except (NotImplementedError, NameError):
        return None
    except GradientError as error:
        why = error.why
    except (TypeError, ValueError, IndexError) as error:  # raised by JAX for a wrong shape
        why = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    else:
        return None
    return f"for {', '.join(map(repr, call.inputs))}: {why}"


def _mistake(rule, owner, why) -> Mistake:
    line, column = rule.places.get(owner, (rule.line, 1))
    return Mistake(
        rule.path, line, column, rule.schema.full_name, f"the gradient of {owner!r} {why}", CURE
    )


def _calls(primitive: Primitive) -> Iterator[Call]:
    """The calls of an entry on abstract arguments that its value function accepts."""
    yield from list(_calls_of_shapes(primitive, SHAPES)) or _calls_of_shapes(
        primitive, SPARE_SHAPES
    )


def _calls_of_shapes(primitive: Primitive, shapes) -> Iterator[Call]:
    rule = primitive.rule
    constants = [name for name in rule.tensor_arguments if name in rule.non_differentiable]
    for shape in shapes:
        # one dtype for all constant arguments: their combinations would multiply the calls
        for kinds in itertools.product(CONSTANT_DTYPES, repeat=min(len(constants), 1)):
            arguments = [_argument(each, rule, shape, kinds) for each in rule.schema.arguments]
            structure, leaves = flatten(arguments, _is_aval)
            # not `primitive.call`: the cache is for calls that users make
            call = Call(primitive, structure, tuple(leaves))
            try:
                output_names(call)
            except Exception:  # the value function refused these arguments
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
