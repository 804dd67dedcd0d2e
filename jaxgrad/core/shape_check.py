"""Checks the derivatives of a table, mostly by abstract evaluation.

Each entry is called on abstract arguments of several shapes, made from its schema. If the value
function accepts them, every gradient must have the shape of its input, or one to which the input
broadcasts, every tangent the shape of its output, and each a floating-point dtype. Both must be
linear (core/linearity.py), and no formula may decide by the numbers of a tensor. The outputs of an
entry without formulas must be integers or booleans, and no value function may call itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax

from ..table import REQUIRED, Formula, Mistake, Word, circular
from ..table.mistakes import printable
from . import dtypes, linearity
from .aval import INLINE, Aval, make_aval
from .derivative_rules import output_names
from .linear_jaxprs import is_linear
from .primitive import Call, Primitive, flatten
from .program import GradientError

# all extents differ, so that no wrong shape equals the right one by chance; the spare shapes serve
# value functions that accept none of these
SHAPES = ((2, 3), (3,), (2, 3, 4))
SPARE_SHAPES = ((3, 3), (2, 3, 3), ())
# dtypes of a non-differentiable argument, which may be data, an index or a mask
CONSTANT_DTYPES = (dtypes.float32, dtypes.int64, dtypes.bool)
# dtypes of the other tensors; the second serves value functions that accept only complex numbers
DATA_DTYPES = (dtypes.float32, dtypes.complex64)
NUMBERS = {
    "Scalar": 0.5,
    "int": 0,
    "float": 0.5,
    "bool": False,
    "str": "none",
    "ScalarType": dtypes.float32,
}
# in place of a default, which may hide a mistake: `grad.pow(p)` is linear for the default 1
OTHER_NUMBER = 0.7
SHAPES_CURE = (
    "`{}` does not fit these shapes, which forward accepts: change the formula, or let forward "
    "refuse them, as `a.dot(b)` refuses matrices; to a gradient jaxgrad adds only sums over "
    "broadcast dimensions"
)
LINEAR_CURE = (
    "write {} times the derivative: nothing may be added to it, and no function such as abs, clamp "
    "or a product of two be taken of it"
)
DECIDES = "`{}` decides by the numbers of a tensor, which no compiled program knows"
DECIDES_CURE = "write where(condition, a, b) instead of `a if condition else b`"
WORD = {"gradient": "grad", "tangent": "the tangent"}


class Derivative(NamedTuple):
    """A gradient or tangent formula of a call.

    kind: "gradient" or "tangent"; name: of what; formula: a Formula or Word; evaluate: gives
    its jaxpr, alone, so that a mistake in one hides none in another, and a flag for each input of
    that: whether it is a gradient or tangent; apply: a function of inputs, outputs, and the
    gradients or tangents, whose structs are `moving`.
    """

    kind: str
    name: str
    formula: Formula | Word
    evaluate: Callable[[], Any]
    apply: Callable
    moving: list

    @property
    def text(self) -> str:
        is_word = isinstance(self.formula, Word)
        return self.formula.kind if is_word else printable(self.formula.text)


def mistakes_of(library) -> list[Mistake]:
    """The mistakes of a library's table that evaluation finds in its formulas."""
    mistakes: list[Mistake] = []
    for name in library.table.names:
        try:
            primitives = library.find(name).primitives
        except NameError:  # `jaxgrad check` does not import a user's functions
            continue
        for primitive in primitives:
            try:
                mistakes.extend(_mistakes_of(primitive))
            except RecursionError:
                mistakes.append(circular(primitive.rule))
    return sorted(set(mistakes))


def _mistakes_of(primitive: Primitive) -> list[Mistake]:
    if primitive.compute is None:
        return []
    calls, decides = _calls(primitive)
    if decides and (primitive.rule.forward is not None or not calls):
        return [_deciding_value(primitive.rule)]
    check = _missing_formulas if primitive.rule.has_no_formulas else _mistakes_of_entry
    return check(primitive, calls)


def _missing_formulas(primitive: Primitive, calls) -> list[Mistake]:
    """The mistake of an entry without formulas, unless its outputs are integers or booleans."""
    if calls and not any(output.differentiable for call in calls for output in call.outputs):
        return []
    rule, cause = primitive.rule, "it has no formula, but its outputs may be floating point"
    cure = "write a gradient for each Tensor, or `output_differentiability: [False]`"
    return [Mistake(rule.path, *rule.places["name"], rule.schema.full_name, cause, cure)]


def _deciding_value(rule) -> Mistake:
    place = rule.places["name"] if rule.forward is None else rule.forward.place("")
    cause = DECIDES.format(
        rule.schema.name if rule.forward is None else printable(rule.forward.text)
    )
    return Mistake(rule.path, *place, rule.schema.full_name, cause, DECIDES_CURE)


def _mistakes_of_entry(primitive: Primitive, calls) -> list[Mistake]:
    """The first mistake of each gradient and tangent."""
    mistakes: dict[str, Mistake] = {}
    linear: set[str] = set()
    for call in calls:
        for derivative in _derivatives(call):
            if derivative.name in mistakes:
                continue
            mistake = _mistake_of(call, derivative, derivative.name not in linear)
            linear.add(derivative.name)
            if mistake:
                mistakes[derivative.name] = mistake
    if calls and not mistakes:
        return _mistakes_with_other_numbers(primitive)
    return list(mistakes.values())


def _mistakes_with_other_numbers(primitive: Primitive) -> list[Mistake]:
    """The mistakes of formulas that are not linear for some numbers, and are for the defaults."""
    numbers = {a.name for a in primitive.rule.schema.arguments if _has_default_number(a)}
    read = [f for f in primitive.rule.formulas if isinstance(f, Formula) and f.names & numbers]
    calls = _calls_of_shapes(primitive, SHAPES[:1], other_numbers=True) if read else ()
    mistakes = {}
    for call, _ in calls:
        for derivative in _derivatives(call) if call else ():
            if derivative.formula in read and not mistakes.get(derivative.name):
                mistakes[derivative.name] = _mistake_of(call, derivative)
    return list(filter(None, mistakes.values()))


def _derivatives(call: Call) -> Iterator[Derivative]:
    """Each gradient and each tangent formula of a call."""
    if not (any(call.tracked) and call.differentiable_outputs):
        return
    rule, names = call.primitive.rule, output_names(call)
    gradients = [call.outputs[i].struct for i in call.differentiable_outputs]
    for position, owner in enumerate(call.owners):
        if call.tracked[position]:
            mask = tuple(i == position for i in range(len(call.inputs)))
            evaluate, apply = partial(_gradient, call, mask), partial(_gradient_map, call, mask)
            yield Derivative("gradient", owner, rule.gradient(owner), evaluate, apply, gradients)
    tangent_map = call.tangent_map(call.tracked)
    tangents = [call.inputs[i].struct for i in tangent_map.moving]
    for position, formula in enumerate(tangent_map.formulas):
        if isinstance(formula, Formula) or formula == Word("auto_linear"):
            name = names[call.differentiable_outputs[position]]
            apply = partial(_tangent_map, call, position)
            evaluate = partial(_tangent, call, apply, tangents)
            yield Derivative("tangent", name, formula, evaluate, apply, tangents)


def _gradient(call: Call, mask):
    reverse, count = call.reverse(mask), len(call.differentiable_outputs)
    reverse.outputs  # noqa: B018, which raises for a wrong shape
    with jax.enable_x64(True):
        closed, _ = reverse.trace(*[aval.struct for aval in reverse.inputs])
    return closed, [i < count for i in range(len(reverse.inputs))]


def _gradient_map(call: Call, mask, inputs, outputs, gradients):
    reverse = call.reverse(mask)
    return reverse.value(*gradients, *reverse.saved.select(inputs, outputs))


def _tangent(call: Call, apply, tangents):
    with jax.enable_x64(True):  # as where the gradients are evaluated
        closed = jax.make_jaxpr(linearity.without_rules(apply))(*_structs(call), tangents)
    count = len(call.inputs) + len(call.outputs)
    return closed, [i >= count for i in range(count + len(tangents))]


def _tangent_map(call: Call, position: int, inputs, outputs, tangents):
    tangent_map = call.tangent_map(call.tracked)
    return (tangent_map.tangent(position, tangent_map.select(inputs, outputs), tangents),)


def _structs(call: Call):
    """The structs of the inputs and of the outputs."""
    return [aval.struct for aval in call.inputs], [aval.struct for aval in call.outputs]


def _mistake_of(call: Call, derivative: Derivative, may_be_nonlinear=True) -> Mistake | None:
    """The mistake of a derivative of a call; None if it has none, or is unknown."""
    rule, cure = call.primitive.rule, SHAPES_CURE.format(derivative.text)
    try:
        closed, linear = derivative.evaluate()
    except (NotImplementedError, NameError):
        return None
    except jax.errors.TracerBoolConversionError:
        cause = f"the {derivative.kind} of {derivative.name!r}, {DECIDES.format(derivative.text)}"
        return _mistake(rule, derivative.name, cause, DECIDES_CURE)
    except GradientError as error:
        why = error.why
    except (TypeError, ValueError, IndexError, RuntimeError) as error:  # for a wrong shape
        why = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    else:
        # what has effects, such as sending, must not run now
        proven = bool(closed.effects) or is_linear(closed, linear)
        return _nonlinear(call, derivative) if may_be_nonlinear and not proven else None
    shapes = ", ".join(map(repr, call.inputs))
    return _mistake(
        rule,
        derivative.name,
        f"the {derivative.kind} of {derivative.name!r} for {shapes}: {why}",
        cure,
    )


def _nonlinear(call: Call, derivative: Derivative) -> Mistake | None:
    """The mistake of a derivative that is not linear; None if no numbers show it."""
    if isinstance(derivative.formula, Word) and derivative.formula.kind != "auto_linear":
        return None
    call, derivative = _widened(call, derivative)
    inputs = [aval.struct for aval in call.inputs]
    why = linearity.difference(
        call.value, derivative.apply, inputs, derivative.moving, WORD[derivative.kind]
    )
    if why is None:
        return None
    of = "grad" if derivative.kind == "gradient" else "the tangents"
    cause = (
        f"the {derivative.kind} of {derivative.name!r}, `{derivative.text}`, is not linear in "
        f"{of}: {why}"
    )
    return _mistake(
        call.primitive.rule, derivative.name, cause, LINEAR_CURE.format(WORD[derivative.kind])
    )


def _widened(call: Call, derivative: Derivative) -> tuple[Call, Derivative]:
    """The same in 64 bits, in which rounding hides less; unchanged if 64 bits are refused."""
    wide = Call(call.primitive, call.structure, linearity.widened(call.inputs))
    try:
        output_names(wide)
    except Exception:
        return call, derivative
    return wide, next(d for d in _derivatives(wide) if d[:2] == derivative[:2])


def _mistake(rule, name, cause, cure) -> Mistake:
    line, column = rule.places.get(name, (rule.line, 1))
    return Mistake(rule.path, line, column, rule.schema.full_name, cause, cure)


def _calls(primitive: Primitive) -> tuple[list[Call], bool]:
    """The calls of an entry on abstract arguments that its value function accepts, and whether it
    refused some because it decides by their numbers.
    """
    decides = False
    for data, shapes in itertools.product(DATA_DTYPES, (SHAPES, SPARE_SHAPES)):
        tried = list(_calls_of_shapes(primitive, shapes, data))
        decides = decides or any(refused for _, refused in tried)
        calls = [call for call, _ in tried if call]
        if calls:
            return calls, decides
    return [], decides


def _calls_of_shapes(
    primitive: Primitive, shapes, data=dtypes.float32, other_numbers=False
) -> Iterator[tuple[Call | None, bool]]:
    """Each call, None if it is refused, and whether it is for a decision by numbers."""
    rule = primitive.rule
    constants = [name for name in rule.tensor_arguments if name in rule.non_differentiable]
    # one dtype for all constant arguments: their combinations would multiply the calls
    kinds = CONSTANT_DTYPES if constants else CONSTANT_DTYPES[:1]
    for shape, kind, smaller in itertools.product(shapes, kinds, _smaller(rule)):
        extents = {name: shape[1:] if name == smaller else shape for name in rule.tensor_arguments}
        make = partial(_argument, rule=rule, shape=shape, constant=kind, data=data)
        arguments = [make(a, extents=extents) for a in rule.schema.arguments]
        if other_numbers:
            pairs = zip(rule.schema.arguments, arguments, strict=True)
            arguments = [OTHER_NUMBER if _has_default_number(a) else value for a, value in pairs]
        structure, leaves = flatten(arguments, _is_aval)
        # not `primitive.call`: the cache is for calls that users make
        call = Call(primitive, structure, tuple(leaves))
        try:
            output_names(call)
        except RecursionError:
            raise
        except Exception as error:  # the value function refused these arguments
            yield None, isinstance(error, jax.errors.TracerBoolConversionError)
        else:
            yield call, False


def _smaller(rule) -> tuple[str | None, ...]:
    """The tensor arguments that get fewer dimensions than the others, in turn; None: all alike."""
    return None, *(rule.tensor_arguments if len(rule.tensor_arguments) > 1 else ())


def _is_aval(value):
    return isinstance(value, Aval)


def _has_default_number(argument) -> bool:
    kind = argument.type
    return argument.default is not REQUIRED and kind.base in ("float", "Scalar") and not kind.list


def _argument(argument, rule, shape, extents, constant, data):
    kind = argument.type
    if kind.base == "Tensor":
        dtype = constant if argument.name in rule.non_differentiable else data
        tensor = make_aval(extents.get(argument.name, shape), dtype, INLINE)
        return (tensor, tensor) if kind.list else tensor
    if argument.default is not REQUIRED:
        return argument.default
    is_integral = bool(rule.non_differentiable) and constant.category < dtypes.FLOATING
    value = 1 if kind.base == "Scalar" and is_integral else NUMBERS.get(kind.base)
    return (value,) * (kind.size or max(len(shape), 1)) if kind.list else value
