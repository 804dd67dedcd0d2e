"""`torch._foreach_NAME`: an operator for each tensor of a list.

In a compiled function they are parts of one program, in which XLA fuses what belongs together.
"""

from __future__ import annotations

from .. import ops
from ..core.pytorch_tensors import type_name
from ..names.missing import MissingName
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary

# the functions that are no operators of the table with the tag `foreach`
COMPOSED = {
    "norm": lambda tensor, *args, **options: ops.linalg_vector_norm(tensor, *args, **options),
    "powsum": lambda tensor, ord=2, dtype=None: (tensor.abs() ** ord).sum(dtype=dtype),
}
# of a number
EXTREMES = {"maximum": "clamp_min", "minimum": "clamp_max"}
# whose last argument is a factor
VALUES = ("addcdiv", "addcmul")
# the names of the arguments after the list of tensors: one for a number, a tensor or a list of them
NAMES = dict.fromkeys(VALUES, (("tensor1",), ("tensor2",), ("value", "scalars")))
NAMES |= {"lerp": (("tensors1",), ("weight", "weights")), "pow": (("exponent",),)}
NAMES |= {"copy": (("src",),), "mm": (("mat2",),), "norm": (), "powsum": ()}
OTHERS = (("other", "scalar", "scalars"),)
PREFIX = "_foreach_"


def _extreme(operator: str):
    """The greater or smaller of a tensor and a number or tensor; in place if the name says so."""
    plain = operator.removesuffix("_")

    def function(tensor, other):
        name = plain if isinstance(other, Tensor) else EXTREMES[plain]
        result = getattr(tensor, name)(other)
        return result if operator == plain else tensor.copy_(result)

    return function


def find(name: str):
    """The function of a name, `_foreach_add`, or `_foreach_add_`, which writes in place.

    >>> jaxgrad._foreach_add([jaxgrad.ones(1), jaxgrad.zeros(2)], [1, 2])
    (tensor([2.]), tensor([2., 2.]))
    """
    operator = name.removeprefix(PREFIX)
    plain = operator.removesuffix("_")
    is_known = "foreach" in ops.library.table.tags.get(plain, ()) and hasattr(Tensor, operator)
    if operator not in COMPOSED and plain not in EXTREMES and not is_known:
        raise MissingName("jaxgrad", name)
    if plain in EXTREMES:
        one = _extreme(operator)
    else:
        one = COMPOSED.get(operator) or getattr(Tensor, operator)

    @api_boundary
    def function(self, *arguments, **options):
        if operator == "pow" and isinstance(self, int | float | complex):
            return tuple(self**exponent for exponent in checked(name, *arguments, **options))
        tensors = checked(name, self)
        arguments, options = by_position(plain, arguments, options)
        if plain in VALUES and len(arguments) == 3:
            *arguments, value = arguments
            _check_packed(value)
            values = column(name, value, len(tensors))
        else:
            values = [None] * len(tensors)
        for argument in arguments:
            _check_number(argument)
        columns = [column(name, argument, len(tensors)) for argument in arguments]
        keywords = [options if value is None else {**options, "value": value} for value in values]
        results = [
            one(tensor, *row, **more)
            for tensor, more, *row in zip(tensors, keywords, *columns, strict=True)
        ]
        return tensors if operator.endswith("_") else tuple(results)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Apply `{operator}` to each tensor of a list.\n\n"
        "Each further argument is a list of as many tensors or numbers, or one for all. Raises "
        "RuntimeError for a list of another length and for an empty one, TypeError for a list of "
        "anything but tensors."
    )
    return function


def _check_number(argument):
    if isinstance(argument, Tensor) and argument.ndim:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {argument.ndim} dimensions and "
            f"{argument.numel()} elements."
        )


def _check_packed(value):
    if isinstance(value, Tensor) and value.ndim != 1:
        raise RuntimeError(
            f"Expected packed scalar Tensor to be of dimension 1. Got {value.ndim} instead."
        )


def by_position(operator, arguments: tuple, options: dict) -> tuple[tuple, dict]:
    """Arguments with those that were passed by name, and the options that remain."""
    options = dict(options)
    for names in NAMES.get(operator, OTHERS)[len(arguments) :]:
        passed = [name for name in names if name in options]
        if not passed:
            break
        arguments = (*arguments, options.pop(passed[0]))
    return arguments, options


def checked(name, tensors) -> list[Tensor]:
    if not isinstance(tensors, list | tuple):
        raise TypeError(f"{name}: expected a list of tensors, but got {type_name(tensors)}")
    if not tensors:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"{name}: expected Tensor as element {number} in argument 0, but got "
                f"{type_name(tensor)}"
            )
    return list(tensors)


def column(name, argument, length: int) -> list:
    """An argument for each tensor."""
    if isinstance(argument, Tensor) and argument.ndim == 1:
        if len(argument) != length:
            raise RuntimeError(
                f"{name}: Expected length of scalars to match input of length {length} but got "
                f"{len(argument)} instead."
            )
        return list(argument.unbind())
    if not isinstance(argument, list | tuple):
        return [argument] * length
    if len(argument) != length and argument and not isinstance(argument[0], Tensor):
        raise RuntimeError(
            f"{name}: Tensor list must have same number of elements as scalar list. Got {length} "
            f"and {len(argument)}"
        )
    if len(argument) != length:
        raise RuntimeError(
            f"{name}: Tensor lists must have the same number of tensors, got {length} and "
            f"{len(argument)}"
        )
    return list(argument)
