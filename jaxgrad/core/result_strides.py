"""PyTorch's strides of the results of operators that are neither views nor pointwise.

A tag of an operator's entry names the rule: `channels_strides` for pooling. A rule takes the call
and its outputs, and gives the strides of each; None means contiguous.
"""

from __future__ import annotations

import functools
import math
import operator

from . import dtypes
from . import strides as layouts
from .aval import Aval, strides_of
from .symbolic_extents import chosen


def of(call, outputs):
    """The strides of the outputs of a call by the tag of its operator, None without a tag."""
    for tag in call.primitive.rule.tags:
        if tag in RULES:
            return RULES[tag](call, outputs)
    return None


def is_free(call) -> bool:
    """Whether contiguous arrays may give results that are not."""
    return not call.primitive.rule.tags.isdisjoint(OF_ALL)


def _operands(call):
    return [(tuple(i.shape), strides_of(i)) for i in call.inputs if isinstance(i, Aval)]


def _pointwise(call, outputs):
    operands = _operands(call)
    shape = layouts.joint_shape([extents for extents, _ in operands])
    return [
        layouts.pointwise(shape, operands) if output.shape == shape else None for output in outputs
    ]


def _reversed(call, outputs):
    """Those of a pointwise operator that PyTorch calls with its two tensors exchanged."""
    shape = tuple(outputs[0].shape)
    return [layouts.pointwise(shape, _operands(call)[::-1])]


def _target(call, outputs):
    """Those of `1 - target`, in which PyTorch accumulates."""
    _, (shape, strides), *_ = _operands(call)
    laid = layouts.pointwise(shape, [(shape, strides), ((), ())])
    return [laid if output.shape == shape else None for output in outputs]


def _reshaped(call, outputs):
    layout = _operands(call)[0]
    return [layouts.reshaped(*layout, tuple(output.shape)) for output in outputs]


def _binary(call, outputs):
    several = len(_operands(call)) > 1
    return _pointwise(call, outputs) if several else [None] * len(outputs)


def _same(call, outputs):
    shape, strides = _operands(call)[0]
    like = layouts.like(shape, strides)
    return [like if output.shape == shape else None for output in outputs]


def _channels(call, outputs):
    (shape, strides), *_ = _operands(call)
    is_last = layouts.suggests_channels_last(shape, strides)
    return [
        layouts.channels_last(output.shape) if is_last and output.ndim == len(shape) else None
        for output in outputs
    ]


def _rolled(call, outputs):
    """PyTorch joins two parts along a dimension; where one is empty, the result is contiguous."""
    source, shifts, dims = call.arguments(call.inputs)
    extents = [source.shape[dim] for dim in dims]
    if not all(extents) or not all(map(operator.mod, shifts, extents)):
        return [None]
    return _channels(call, outputs)


def _volume_channels(call, outputs):
    (shape, _), *_ = _operands(call)
    return _channels(call, outputs) if len(shape) == 5 else [None] * len(outputs)


def _attention(call, outputs):
    """The order of the queries, if PyTorch's fast kernel takes them: with heads, rows in memory."""
    (_, strides), *_ = _operands(call)
    is_fast = len(strides) == 4 and strides[-1] == 1
    return _same(call, outputs) if is_fast else [None] * len(outputs)


def _normalized(call, outputs):
    """Contiguous or channels last as the input is, whatever the strides of extents of 1."""
    shape, strides = _operands(call)[0]
    if layouts.is_contiguous(shape, strides):
        return [None] * len(outputs)
    if layouts.is_channels_last(shape, strides):
        last = layouts.channels_last(shape)
        return [last if output.shape == shape else None for output in outputs]
    if layouts.suggests_channels_last(shape, strides):
        return _same(call, outputs)
    return [None] * len(outputs)


def _columns(call, outputs):
    rank = max(len(shape) for shape, _ in _operands(call))
    return [_by_columns(output.shape) if output.ndim >= rank else None for output in outputs]


def _left_columns(call, outputs):
    first, *rest = outputs
    return [*_columns(call, [first]), *[None] * len(rest)]


def _solution_columns(call, outputs):
    """The solutions of a batch of vectors lie as the columns of one matrix. With the unknown on the
    left of the matrix PyTorch solves the transposed equation.
    """
    solution, *rest = outputs
    names = call.primitive.argument_names
    from_left = "left" not in names or call.structure[names.index("left")]
    by_columns = from_left and solution.ndim > 1
    return [_by_columns(solution.shape) if by_columns else None, *_columns(call, rest)]


def _least_squares(call, outputs):
    """The solution is a part of the memory of the right-hand side, of as many rows or more."""
    (shape, _), *_ = _operands(call)
    solution, *rest = outputs
    is_vector = solution.ndim < len(shape)
    columns = () if is_vector else solution.shape[-1:]
    batch = solution.shape[: len(shape) - 2]
    strides = _by_columns((*batch, max(shape[-2:]), *(columns or (1,))))
    return [strides[:-1] if is_vector else strides, *_columns(call, rest)]


def _by_columns(shape):
    """Strides of contiguous matrices whose columns are contiguous."""
    *batch, rows, columns = shape
    *outer, inner, step = layouts.contiguous((*batch, columns, rows))
    return (*outer, step, inner)


def _cat(call, outputs):
    return [_joined(outputs[0].shape, _operands(call))]


def _joined(shape, operands):
    last = all(layouts.suggests_channels_last(*operand) for operand in operands)
    return layouts.channels_last(shape) if last else None


def _stack(call, outputs):
    operands, shape = _operands(call), tuple(outputs[0].shape)
    dim = call.structure[call.primitive.argument_names.index("dim")] % len(shape)
    if dim == len(shape) - 1:  # PyTorch joins views with a new dimension, and else splits one
        views = [layouts.unsqueezed(*operand, dim) for operand in operands]
        return [_joined(shape, views)]
    joined = (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :])
    strides = _joined(joined, operands)
    return [None if strides is None else layouts.reshaped(joined, strides, shape)]


def _convolution(call, outputs):
    return [layouts.channels_last(outputs[0].shape) if _convolves_channels_last(call) else None]


def _convolves_channels_last(call) -> bool:
    source, kernel, _, stride, *_, output_padding, groups = call.arguments(call.inputs)
    kernel_layout = tuple(kernel.shape), strides_of(kernel)
    if source.ndim == 3:  # PyTorch makes the input contiguous, and a line an image of one row
        layout = tuple(source.shape), strides_of(source)
        if not layouts.is_contiguous(*layout):
            layout = layout[0], layouts.contiguous(layout[0])
        images = [layouts.unsqueezed(*one, 2) for one in (layout, kernel_layout)]
        return any(layouts.suggests_channels_last(*image) for image in images)
    if source.ndim == 5 and not _is_by_onednn(source, kernel, stride, output_padding, groups):
        return False
    layout = tuple(source.shape), strides_of(source)
    return layouts.suggests_channels_last(*layout) or layouts.suggests_channels_last(*kernel_layout)


def _is_by_onednn(source, kernel, stride, output_padding, groups) -> bool:
    """Whether PyTorch calls oneDNN on CPUs; its own convolution of volumes keeps no format."""
    if any(extra >= step for extra, step in zip(output_padding, stride, strict=False)):
        return False
    if source.dtype in (dtypes.bfloat16, dtypes.float16):
        return True
    is_large = min(kernel.shape[-2:]) > 3 or math.prod(source.shape[:4]) > 20480
    return source.dtype is dtypes.float32 and (groups > 1 or source.shape[0] > 1 or is_large)


def _halves(call, outputs):
    _, strides = _operands(call)[0]
    shape = tuple(outputs[0].shape)
    return [layouts.pointwise(shape, [(shape, strides)] * 2)]


def _index(call, outputs):
    """TensorIterator's strides: in the indexed dimensions those of the indices decide."""
    source, indices = call.arguments(call.inputs)
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if not dims:
        return _same(call, outputs)
    extents, strides = tuple(source.shape), strides_of(source)
    before = dims[0] if dims == [*range(dims[0], dims[-1] + 1)] else 0
    others = [dim for dim in range(source.ndim) if dim not in dims]
    shape = tuple(outputs[0].shape)
    rank = len(shape) - len(others)
    kept = [strides[dim] for dim in others]
    joint = shape[before : before + rank]
    full = (*[1] * before, *joint, *[1] * (len(others) - before))
    operands = [(shape, (*kept[:before], *[0] * rank, *kept[before:]))]
    for dim in dims:
        spread = layouts.broadcast(joint, tuple(indices[dim].shape), strides_of(indices[dim]))
        laid = layouts.reshaped(joint, spread, full) or layouts.contiguous(full)
        operands.append((full, laid))
    return [layouts.pointwise(shape, operands)] if math.prod(extents) else [None]


def _contiguous(call, outputs):
    return [None] * len(outputs)


def _power(call, outputs):
    """Those of a pointwise operator, but contiguous for a number as the base."""
    of_number = call.primitive.rule.schema.overload == "Scalar"
    return [None] if of_number else _pointwise(call, outputs)


def _exact(call, outputs):
    """Those of the first tensor, gaps included; PyTorch copies its memory, or shows parts of it."""
    shape, strides = _operands(call)[0]
    if layouts.overlaps(shape, strides):
        return _same(call, outputs)
    return [strides if output.ndim == len(shape) else None for output in outputs]


def _rotated(call, outputs):
    source, turns, dims = call.arguments(call.inputs)
    strides = list(layouts.like(tuple(source.shape), strides_of(source)))
    if turns % 4 in (1, 3):  # PyTorch flips, and shows the transposed result
        first, second = dims
        strides[first], strides[second] = strides[second], strides[first]
    return [tuple(strides) if turns % 4 else None]


def _transformed(call, outputs):
    """MKL's layout: batches in the order of the memory, then the transformed dimensions."""
    source, dims, name = call.inputs[0], call.structure[1], call.primitive.name
    (output,) = outputs
    if not dims:
        return _same(call, outputs)
    strides, rank = strides_of(source), source.ndim
    dims = [dim % rank for dim in dims]
    if name == "_fft_c2r" and len(dims) > 1:  # PyTorch transforms all but the last one before
        strides = _fft_strides(tuple(source.shape), strides, _sorted(strides, dims[:-1]))
        dims = dims[-1:]
    elif name == "_fft_r2c":
        dims = [*_sorted(strides, dims[:-1]), dims[-1]]
    elif name == "_fft_c2c":
        dims = _sorted(strides, dims)
    return [_fft_strides(tuple(output.shape), strides, dims)]


def _sorted(strides, dims):
    """The dimensions by their strides, the largest first; two whose order depends on sizes that
    vary stay as they are.
    """

    def compared(dim, other):
        if chosen(lambda: strides[dim] > strides[other]):
            return -1
        return int(chosen(lambda: strides[dim] < strides[other]))

    return sorted(dims, key=functools.cmp_to_key(compared))


def _fft_strides(shape, strides, dims):
    batches = _sorted(strides, [dim for dim in range(len(shape)) if dim not in dims])
    return layouts.compact(shape, [*batches, *dims][::-1])


def _distinct(call, outputs):
    """PyTorch joins the slices of a dimension in the first one, which it moves to its place."""
    source, _, dim = call.arguments(call.inputs)
    if dim is None:
        return [None]
    dim %= source.ndim
    extents = list(outputs[0].shape)
    first, *rest = layouts.contiguous((extents.pop(dim), *extents))
    return [(*rest[:dim], first, *rest[dim:])]


def _time_first(call, outputs):
    """Results of PyTorch's loops over time: the first is transposed where batches come first."""
    names = call.primitive.argument_names
    if not call.structure[names.index("batch_first")] or outputs[0].ndim != 3:
        return [None] * len(outputs)
    rows, _, size = outputs[0].shape
    return [(size, rows * size, 1), *[None] * (len(outputs) - 1)]


RULES = {
    "attention_strides": _attention,
    "binary_strides": _binary,
    "cat_strides": _cat,
    "channels_strides": _channels,
    "column_strides": _columns,
    "contiguous_strides": _contiguous,
    "convolution_strides": _convolution,
    "distinct_strides": _distinct,
    "exact_strides": _exact,
    "fft_strides": _transformed,
    "halves_strides": _halves,
    "index_strides": _index,
    "least_squares_strides": _least_squares,
    "left_column_strides": _left_columns,
    "normalized_strides": _normalized,
    "pointwise_strides": _pointwise,
    "power_strides": _power,
    "reshaped_strides": _reshaped,
    "reversed_strides": _reversed,
    "rolled_strides": _rolled,
    "rotated_strides": _rotated,
    "same_strides": _same,
    "solution_strides": _solution_columns,
    "stack_strides": _stack,
    "target_strides": _target,
    "time_first_strides": _time_first,
    "volume_channels_strides": _volume_channels,
}
OF_ALL = frozenset(
    (
        *("column_strides", "distinct_strides", "fft_strides", "least_squares_strides"),
        *("left_column_strides",),
        *("rotated_strides", "solution_strides", "time_first_strides"),
    )
)
