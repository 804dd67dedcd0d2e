"""Checks the shapes and dtypes of a table's gradients by abstract evaluation.

Each entry is called on abstract arguments of several shapes, made from its schema. If the value
function accepts them, every gradient must have the shape of its input, or one to which the input
broadcasts, every tangent the shape of its output, and each a floating-point dtype. The outputs of
an entry without formulas must be integers or booleans, and no value function may call itself.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import jax

from ..table import REQUIRED, Formula, Mistake, circular
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
CURE = "jaxgrad adds only sums over broadcast dimensions to a gradient; write all else into it"


def mistakes_of(library) -> list[Mistake]:
    """The mistakes that abstract evaluation finds in the formulas of a library's table."""
    found: list[Mistake] = []
    for name in library.table.names:
        try:
            primitives = library.find(name).primitives
        except NameError:  # `jaxgrad check` does not import a user's functions
            continue
        for primitive in primitives:
            if primitive.compute is None:
                continue
            check = _missing_formulas if primitive.rule.has_no_formulas else _mistakes_of_entry
            try:
                found.extend(check(primitive))
            except RecursionError:
                found.append(circular(primitive.rule))
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
    """The first mistake of each gradient and tangent."""
    found: dict[str, Mistake] = {}
    for call in _calls(primitive):
        for what, name, derive in _derivatives(call):
            why = None if name in found else _failure(call, derive)
            if why:
                found[name] = _mistake(primitive.rule, name, f"the {what} of {name!r} {why}")
    return list(found.values())


def _derivatives(call: Call):
    """Each gradient and each tangent formula of a call: what it is, of what, and a function that
    evaluates it alone, so that a mistake in one hides none in another.
    """
    if not (any(call.tracked) and call.differentiable_outputs):
        return
    for position in range(len(call.inputs)):
        if call.tracked[position]:
            mask = tuple(i == position for i in range(len(call.inputs)))
            yield "gradient", call.owners[position], functools.partial(_gradient, call, mask)
    names = output_names(call)
    for position, formula in enumerate(call.tangent_map(call.tracked).formulas):
        if isinstance(formula, Formula):
            name = names[call.differentiable_outputs[position]]
            yield "tangent", name, functools.partial(_tangent, call, position)


def _gradient(call: Call, mask):
    return call.reverse(mask).outputs


def _tangent(call: Call, position: int):
    tangent_map = call.tangent_map(call.tracked)
    inputs, outputs = ([each.struct for each in of] for of in (call.inputs, call.outputs))
    moving = [inputs[i] for i in tangent_map.moving]
    with jax.enable_x64(True):  # as where the gradients are evaluated
        of_one = functools.partial(tangent_map.tangent, position)
        return jax.eval_shape(of_one, tangent_map.select(inputs, outputs), moving)


def _failure(call: Call, derive) -> str | None:
    """Why a derivative of a call does not fit it; None if it fits or is unknown."""
    try:
        derive()
    except (NotImplementedError, NameError):
        return None
    except GradientError as error:
        why = error.why
    except (TypeError, ValueError, IndexError, RuntimeError) as error:  # for a wrong shape
        why = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    else:
        return None
    return f"for {', '.join(map(repr, call.inputs))}: {why}"


def _mistake(rule, name, cause) -> Mistake:
    line, column = rule.places.get(name, (rule.line, 1))
    return Mistake(rule.path, line, column, rule.schema.full_name, cause, CURE)


def _calls(primitive: Primitive) -> Iterator[Call]:
    """The calls of an entry on abstract arguments that its value function accepts."""
    yield from list(_calls_of_shapes(primitive, SHAPES)) or _calls_of_shapes(
        primitive, SPARE_SHAPES
    )


def _calls_of_shapes(primitive: Primitive, shapes) -> Iterator[Call]:
    rule = primitive.rule
    constants = [name for name in rule.tensor_arguments if name in rule.non_differentiable]
    # one dtype for all constant arguments: their combinations would multiply the calls
    kinds = CONSTANT_DTYPES if constants else CONSTANT_DTYPES[:1]
    for shape, kind, smaller in itertools.product(shapes, kinds, _smaller(rule)):
        extents = {name: shape[1:] if name == smaller else shape for name in rule.tensor_arguments}
        arguments = [_argument(each, rule, shape, extents, kind) for each in rule.schema.arguments]
        structure, leaves = flatten(arguments, _is_aval)
        # not `primitive.call`: the cache is for calls that users make
        call = Call(primitive, structure, tuple(leaves))
        try:
            output_names(call)
        except RecursionError:
            raise
        except Exception:  # the value function refused these arguments
            continue
        yield call


def _smaller(rule) -> tuple[str | None, ...]:
    """The tensor arguments that get fewer dimensions than the others, in turn; None: all alike."""
    return None, *(rule.tensor_arguments if len(rule.tensor_arguments) > 1 else ())


def _is_aval(value):
    return isinstance(value, Aval)


def _argument(argument, rule, shape, extents, constant):
    kind = argument.type
    if kind.base == "Tensor":
        dtype = constant if argument.name in rule.non_differentiable else dtypes.float32
        tensor = make_aval(extents.get(argument.name, shape), dtype, INLINE)
        return (tensor, tensor) if kind.list else tensor
    if argument.default is not REQUIRED:
        return argument.default
    is_integral = bool(rule.non_differentiable) and constant.category < dtypes.FLOATING
    value = 1 if kind.base == "Scalar" and is_integral else NUMBERS.get(kind.base)
    return (value,) * (kind.size or max(len(shape), 1)) if kind.list else value
