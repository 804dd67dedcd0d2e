"""View operators: calls whose result shares the storage of their first argument.

Arrays never change, so the array of a view is a copy. This module computes what sharing means: the
strides that PyTorch code sees, and the write of a value through a view into its base.
"""

from __future__ import annotations

import functools

from . import dtypes, result_strides
from . import strides as layouts
from .aval import Aval, strides_of, with_dual, with_strides
from .program import sum_to_shape
from .symbolic_extents import is_open

NOT_IN_PLACE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans "
    "across two contiguous subspaces). Use .reshape(...) instead."
)


def compact(value):
    """An `Aval` with contiguous strides; any other value unchanged."""
    shown = getattr(value, "strides", None)
    return value if shown is None else with_strides(value, None)


def plain(value):
    """An `Aval` without tangents; any other value unchanged."""
    return with_dual(value, False) if getattr(value, "dual", False) else value


def arranged(call, outputs) -> tuple[Aval, ...]:
    """The outputs of a call with PyTorch's strides."""
    if is_view(call) or "parts" in call.primitive.rule.tags:
        several = is_several(call)
        views = [piece(call, outputs, i)[0] if several else call for i in range(len(outputs))]
        return tuple(map(with_strides, outputs, [layout(view)[0] for view in views]))
    # contiguous operands give contiguous results, for pointwise operators too
    if call.compact is call and not result_strides.is_free(call):
        return outputs
    strides = result_strides.of(call, outputs)
    if strides is None and not call.primitive.pointwise:
        return tuple([with_strides(output, None) for output in outputs])
    if strides is None:
        arrays = [i for i in call.inputs if isinstance(i, Aval)]
        operands = [(i.shape, strides_of(i)) for i in arrays]
        if call.primitive.rule.schema.overload.startswith("Scalar"):
            operands.append(((), ()))  # PyTorch makes a tensor of the number
        strides = [layouts.pointwise(output.shape, operands) for output in outputs]
    return tuple(map(with_strides, outputs, strides))


@functools.lru_cache(maxsize=4096)
def overlaps(shown: Aval) -> bool:
    """Whether two indices of a tensor may share an element, by its strides."""
    if shown.strides is None:
        return False
    if is_open(shown.shape):
        return 0 in shown.strides
    return layouts.overlaps(shown.shape, shown.strides)


def is_view(call) -> bool:
    """Whether the result shares memory: for every view operator except a `reshape` that copies.

    Raises RuntimeError for a `view` if no strides fit.
    """
    if not call.primitive.rule.is_view or is_several(call) or layout(call) is not None:
        return call.primitive.rule.is_view
    if "may_copy" in call.primitive.rule.tags:
        return False
    shape, strides = list(call.inputs[0].shape), list(strides_of(call.inputs[0]))
    raise RuntimeError(f"{NOT_IN_PLACE} It is a {call.primitive.name} of {shape} with {strides}")


def is_detached(call) -> bool:
    """Whether a view leaves the graph, as `detach` does."""
    return call.primitive.argument_names[0] in call.primitive.rule.non_differentiable


def is_strided(call) -> bool:
    """Whether the elements of a view are those of its source at some strides: neither conjugates,
    negatives nor parts of complex numbers.
    """
    name = call.primitive.name
    is_of_one_dtype = call.inputs[0].dtype is call.outputs[0].dtype
    return name in layouts.VIEWS and name not in ("conj", "_neg_view") and is_of_one_dtype


def is_several(call) -> bool:
    """Whether the call returns a list of views."""
    return call.primitive.rule.returns_list


def is_rounded(call) -> bool:
    """Whether a view shows the elements in another precision than the memory has."""
    return call.primitive.name == "_rounded_view"


def has_layout(call) -> bool:
    """Whether a view shows the bytes of its source at known strides; one from a user's table may
    not.
    """
    return call.primitive.name in layouts.VIEWS and not is_rounded(call)


def layout(call, numbers=None):
    """The strides of a view and its offset from its source in elements; None if no strides fit.

    `numbers`: the call's numbers, for a right offset; without them they count as 0.
    """
    source = call.inputs[0]
    same = call.primitive.name == "real" and not source.dtype.is_complex
    function = layouts.VIEWS.get("alias" if same else call.primitive.name)
    if function is None:  # a view from a user's table
        return layouts.contiguous(call.compact.abstract_outputs()[0].shape), 0
    leaves = [source, *([0] * (len(call.inputs) - 1) if numbers is None else numbers)]
    shapes = [tuple(i.shape) if isinstance(i, Aval) else i for i in call.inputs[1:]]
    leaves[1:] = [s if isinstance(s, tuple) else n for s, n in zip(shapes, leaves[1:], strict=True)]
    arguments = [
        (source.dtype, argument) if isinstance(argument, dtypes.dtype) else argument
        for argument in call.arguments(leaves)[1:]
    ]
    return function(source.shape, strides_of(source), *arguments)


def alone(call):
    """The same view as a call on one tensor: `view` for `view_as`."""
    # a view is regenerated from its source alone: the tensor that gave the shape is not kept
    name = layouts.SHAPED.get(call.primitive.name)
    if name is None:
        return call
    primitive = call.primitive.scope[name].primitives[0]
    size = tuple(call.outputs[0].shape)
    structure = (call.structure[0], size, False) if name == "expand" else (call.structure[0], size)
    return primitive.call(structure, call.inputs[:1])


def piece(call, outputs, position: int):
    """One view of a list of views as a call of its own, and the numbers of that call."""
    # the place of a piece is a number of its call, so pieces of one shape share a kernel
    slot, scope = call.structure[0], call.primitive.scope
    dim = call.structure[call.primitive.argument_names.index("dim")] % call.inputs[0].ndim
    if outputs[position].ndim < call.inputs[0].ndim:
        return _call(scope["_select"], (slot, dim, slot, True), call.inputs[0]), (position,)
    start = sum(output.shape[dim] for output in outputs[:position])
    structure = (slot, dim, slot, outputs[position].shape[dim], 1)
    return _call(scope["_slice"], structure, call.inputs[0]), (start,)


def _call(operator, structure, source):
    return operator.primitives[0].call(structure, (source, int))


def written(call, array, value, numbers):
    """`array` with `value` in place of the elements that the view `call` selects."""
    rule = call.primitive.rule
    arguments = call.arguments((array, *numbers))
    scope = dict(zip(call.primitive.argument_names, arguments, strict=True))
    formula = rule.write or rule.gradient(call.primitive.argument_names[0])
    # where the gradient formula serves as the write, the value takes the place of `grad`
    result = call.primitive.evaluate_formula(formula, scope | {"value": value, "grad": value})
    return sum_to_shape(result, tuple(array.shape))


def is_writable(call) -> bool:
    """Whether values can be written through a view.

    They can if the entry has `write:`, if the view has all elements of its source, or if its
    elements overlap: then CopySlices writes by index.
    """
    if call.primitive.rule.write is not None or overlaps(call.outputs[0]):
        return True
    return _parts(call.outputs[0]) in (0, _parts(call.inputs[0]))


def _parts(shown):
    """The count of real numbers; a complex element has two."""
    return shown.shape.numel() * (2 if shown.dtype.is_complex else 1)
