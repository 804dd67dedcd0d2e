"""PyTorch's strides, as arithmetic on tuples of ints.

XLA chooses the real memory layout of arrays. These functions compute the strides that PyTorch would
have, for code that reads them and for views, which exist only where strides allow them.
"""

import functools
import itertools
import math
import operator

from ..late import LateModule
from .symbolic_extents import chosen

symbolic_extents = LateModule("jaxgrad.core.symbolic_extents")


def contiguous(shape):
    """The strides of a new tensor: row by row; an extent of 0 counts as 1.

    >>> contiguous((2, 0, 3))
    (3, 3, 1)
    """
    return compact(tuple(max(extent, 1) for extent in shape), range(len(shape))[::-1])


def channels_last(shape):
    """The strides of a new 4-D or 5-D tensor whose dimension 1 is the innermost.

    >>> channels_last((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    return compact(shape, (1, *range(len(shape) - 1, 1, -1), 0))


def compact(shape, order):
    """Strides without gaps; the dimension `order` begins with is the innermost."""
    strides, count = [0] * len(shape), 1
    for dim in order:
        strides[dim] = count
        count *= shape[dim]
    return tuple(strides)


def is_contiguous(shape, strides):
    """Whether the strides are those of a new tensor, except in dimensions of extent 1.

    >>> is_contiguous((2, 1, 3), (3, 99, 1)), is_contiguous((2, 3), (1, 2))
    (True, False)
    """
    return 0 in shape or _agree(shape, strides, contiguous(shape))


def is_channels_last(shape, strides):
    """Whether a 4-D or 5-D tensor has the strides of `channels_last`.

    >>> is_channels_last((2, 3, 4, 5), (60, 1, 15, 3))
    True
    """
    return len(shape) in (4, 5) and _agree(shape, strides, channels_last(shape))


def suggests_channels_last(shape, strides):
    """Whether PyTorch takes a 4-D or 5-D tensor for one whose dimension 1 is the innermost, gaps
    allowed: `suggest_memory_format`. Where extents of 1 leave a doubt it does not.

    >>> suggests_channels_last((2, 3, 4, 5), (120, 1, 30, 6))
    True
    >>> suggests_channels_last((2, 3, 1, 1), (3, 1, 1, 1)), suggests_channels_last((3, 2), (1, 3))
    (False, False)
    """
    if len(shape) not in (4, 5) or 0 in shape or strides[1] == 0:
        return False
    least = 0
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if strides[dim] < least or (dim == 0 and least == strides[1]):
            return False
        least = strides[dim] * shape[dim]
    return True


def is_dense(shape, strides):
    """Whether the elements fill one stretch of the storage, in any order of the dimensions.

    >>> is_dense((2, 3), (1, 2)), is_dense((2, 3), (6, 2))
    (True, False)
    """
    innermost_first = sorted(range(len(shape)), key=strides.__getitem__)
    return 0 in shape or _agree(shape, strides, compact(shape, innermost_first))


def _agree(shape, strides, others):
    triples = zip(shape, strides, others, strict=True)
    return all(extent == 1 or stride == other for extent, stride, other in triples)


def reach(shape, strides):
    """The number of elements of the storage from a tensor's first element to its last.

    >>> reach((2, 3), (4, 1)), reach((5, 2), (0, 1)), reach((0, 3), (3, 1))
    (7, 2, 0)
    """
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


def overlaps(shape, strides):
    """Whether two indices of a tensor may share one element of the storage.

    Exact, unless it would take more than 10,000 distances between elements; then True. Layouts from
    slices, permutations, diagonals, expansions and unfoldings need far fewer.

    >>> overlaps((3, 4), (0, 1)), overlaps((3, 4), (2, 1)), overlaps((3, 2), (5, 4))
    (True, True, False)
    """
    pairs = zip(shape, strides, strict=True)
    spans = sorted(((s, (n - 1) * s) for n, s in pairs if n > 1 and 0 not in shape), reverse=True)
    reach = sum(span for _, span in spans)
    # Two indices share an element if their distances in all dimensions add up to 0. So this keeps
    # the sums over the dimensions seen that those still to come can cancel.
    distances = set()  # between different indices, if the remaining dimensions can bridge them
    for stride, span in spans:
        reach -= span
        if stride == 0 or (len(distances) + 1) * (reach // stride) > 10_000:
            return True
        nearer = (
            range(max(d - span, (d + reach) % stride - reach), min(d + span, reach) + 1, stride)
            for d in distances
        )
        distances = {*range(stride, min(span, reach) + 1, stride), *itertools.chain(*nearer)}
    return bool(distances)


def reshaped(shape, strides, new_shape):
    """The strides of a view of `new_shape`, or None if no strides fit without a copy.

    >>> reshaped((4, 6), (6, 1), (2, 2, 6)), reshaped((4, 6), (1, 4), (24,))
    ((12, 6, 1), None)
    """
    if 0 in shape:
        return strides if shape == new_shape else contiguous(new_shape)
    if strides == contiguous(shape) and math.prod(shape) == math.prod(new_shape):
        return contiguous(new_shape)
    # PyTorch's computeStride: whole dimensions of the new shape must fill each run exactly
    new_strides, rest = [], list(new_shape)
    for count, stride in _runs(shape, strides):
        covered = 1
        while rest and (rest[-1] == 1 or _is_less(covered, count)):
            new_strides.append(covered * stride)
            covered *= rest.pop()
        if covered != count:
            return None
    return tuple(new_strides[::-1])


def _is_less(covered, count) -> bool:
    """Whether a run goes on; it does where it depends on a symbolic extent, which may be large."""
    if isinstance(covered, int) and isinstance(count, int):
        return covered < count
    return symbolic_extents.chosen(lambda: covered < count, otherwise=True)


def _runs(shape, strides):
    """Runs of evenly spaced elements, the innermost first: their number and distance."""
    count, step = 1, strides[-1] if strides else 1
    for extent, stride in zip(shape[::-1], strides[::-1], strict=True):
        if extent != 1 and stride != count * step:
            yield count, step
            count, step = 1, stride
        count *= extent
    yield count, step


def like(shape, strides):
    """The strides of `empty_like` and `clone`: without gaps, in the same order of dimensions.

    >>> like((2, 3), (1, 20))
    (1, 2)
    """
    return strides if is_dense(shape, strides) else compact(shape, _order(shape, [strides]))


def pointwise(shape, operands):
    """The strides of the result of a pointwise operator, as TensorIterator chooses them.

    `shape`: the operands' common shape; `operands`: shape and strides of each, in the order of the
    arguments; the first decides where they disagree. A number that PyTorch converts to a tensor
    counts as `((), ())`.

    >>> pointwise((2, 3), [((2, 3), (1, 2)), ((3,), (1,))])
    (1, 2)
    """
    # TensorIterator's fast set-up, which it tries before it orders the dimensions
    if all(extents == shape for extents, _ in operands):
        layouts = [strides for _, strides in operands]
        if all(is_contiguous(shape, strides) for strides in layouts):
            return contiguous(shape)
        if len(shape) == 4 and all(is_channels_last(shape, strides) for strides in layouts):
            return channels_last(shape)
        if is_dense(shape, layouts[0]) and len({*layouts}) == 1:
            return layouts[0]
    order = _order(shape, [broadcast(shape, *operand) for operand in operands])
    return contiguous(shape) if order == [*range(len(shape))][::-1] else compact(shape, order)


def joint_shape(shapes):
    """The shape to which shapes broadcast; None if they do not."""
    joint = []
    for extents in itertools.zip_longest(*[shape[::-1] for shape in shapes], fillvalue=1):
        wide = {extent for extent in extents if extent != 1}
        if len(wide) > 1:
            return None
        joint.append(wide.pop() if wide else 1)
    return tuple(joint[::-1])


def unsqueezed(shape, strides, dim):
    """Shape and strides with a new dimension at a place counted from 0."""
    return (*shape[:dim], 1, *shape[dim:]), _unsqueeze(shape, strides, dim)[0]


def broadcast(shape, extents, strides):
    """The strides of an operand in the common shape."""
    missing = (0,) * (len(shape) - len(extents))
    triples = zip(shape[len(missing) :], extents, strides, strict=True)
    return missing + tuple(0 if old == 1 != new else stride for new, old, stride in triples)


def _order(shape, layouts):
    """The dimensions, innermost first: TensorIterator's insertion sort.

    Sorting by a key would not do. Some pairs have no order; they keep theirs, and others may pass.
    """
    order = [*range(len(shape))][::-1]
    for end in range(1, len(order)):
        place = end
        for before in range(end)[::-1]:
            verdict = _compared(shape, layouts, order[before], order[place])
            if verdict < 0:
                break
            if verdict > 0:
                order[before], order[place] = order[place], order[before]
                place = before
    return order


def outermost_first(shape, strides):
    """The dimensions in the order in which they lie in memory.

    >>> outermost_first((2, 3), (1, 2))
    (1, 0)
    """
    return tuple(_order(shape, [strides])[::-1])


def has_one_order(shape, strides) -> bool:
    """Whether the strides say of any two neighbouring dimensions in memory which is inside.

    >>> has_one_order((2, 3), (1, 2)), has_one_order((2, 1), (1, 1))
    (True, False)
    """
    order = _order(shape, [strides])
    return all(_compared(shape, [strides], *pair) < 0 for pair in itertools.pairwise(order))


def _compared(shape, layouts, first, second):
    """-1 if dimension `first` belongs inside `second`, 1 if outside, 0 if they have no order."""
    for strides in layouts:
        inner, outer = strides[first], strides[second]
        if inner and outer and inner != outer:
            return -1 if chosen(functools.partial(operator.lt, inner, outer)) else 1
        if inner and outer and chosen(lambda: shape[first] > shape[second]):
            return 1
    return 0


# The view operators. Arguments: shape and strides of self, then the operator's arguments in the
# order of its schema, a tensor as its shape. Result: strides and the offset from self's first
# element, in elements of the result's dtype; None if the operator copies. as_strided expects a
# storage_offset relative to self's; real, imag and view_as_real expect a complex self.


def _view(shape, strides, size):
    """size: the shape of the view, or the dtypes of the elements and of a view of their bytes."""
    if size and hasattr(size[0], "scalar_type"):
        return _view_as_dtype(shape, strides, *size)
    new_strides = reshaped(shape, strides, _inferred(size, math.prod(shape)))
    return None if new_strides is None else (new_strides, 0)


def _inferred(size, count):
    """`size` with -1 replaced so that it holds `count` elements."""
    known = math.prod(extent for extent in size if extent != -1)
    return tuple(count // known if extent == -1 else extent for extent in size)


def shape_as_dtype(shape, old, new):
    """The shape of a view of dtype `new` on elements of dtype `old`. Raises RuntimeError where the
    last dimension cannot be divided so.
    """
    if old.itemsize == new.itemsize:
        return shape
    how = f"to view {old.scalar_type} as {new.scalar_type} (different element sizes)"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {how}: give it a dimension by unsqueeze(0)")
    if shape[-1] * old.itemsize % new.itemsize:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {new.itemsize // old.itemsize} {how}, but got "
            f"{shape[-1]}"
        )
    return (*shape[:-1], shape[-1] * old.itemsize // new.itemsize)


def _view_as_dtype(shape, strides, old, new):
    shape_as_dtype(shape, old, new)
    if old.itemsize == new.itemsize:
        return strides, 0
    how = f"to view {old.scalar_type} as {new.scalar_type} (different element sizes)"
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {how}, but got {strides[-1]}")
    outer = [stride * old.itemsize for stride in strides[:-1]]
    for dim, stride in enumerate(outer):
        if stride % new.itemsize:
            raise RuntimeError(
                f"self.stride({dim}) must be divisible by {new.itemsize // old.itemsize} {how}, "
                f"but got {strides[dim]}"
            )
    return (*[stride // new.itemsize for stride in outer], 1), 0


def _flatten(shape, strides, start_dim=0, end_dim=-1):
    start, last = (dim % max(len(shape), 1) for dim in (start_dim, end_dim))
    if shape and start == last:
        return strides, 0
    merged = math.prod(shape[start : last + 1])
    return _view(shape, strides, (*shape[:start], merged, *shape[last + 1 :]))


def _unflatten(shape, strides, dim, sizes):
    return _view(shape, strides, _instead(shape, dim, *_inferred(sizes, shape[dim])))


def _instead(items, dim, *new):
    dim %= len(items)
    return (*items[:dim], *new, *items[dim + 1 :])


def _squeeze(shape, strides, dim=None):
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    dropped = {dim % len(shape) for dim in dims if shape and shape[dim] == 1}
    return tuple(stride for dim, stride in enumerate(strides) if dim not in dropped), 0


def _unsqueeze(shape, strides, dim):
    dim %= len(shape) + 1
    # PyTorch's choice for an extent of 1, which no element depends on
    new = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*strides[:dim], new, *strides[dim:]), 0


def _expand(shape, strides, size, _implicit=False):
    if not shape:
        return (0,) * len(size), 0
    missing = len(size) - len(shape)
    triples = zip(size[missing:], shape, strides, strict=True)
    new_strides = tuple(stride if new in (old, -1) else 0 for new, old, stride in triples)
    outermost = shape[0] if size[missing] == -1 else size[missing]
    # PyTorch's inferExpandGeometry: an added extent of 1 encloses the next dimension
    for extent in size[:missing][::-1]:
        new_strides = (outermost * new_strides[0] if extent == 1 else 0, *new_strides)
        outermost = extent
    return new_strides, 0


def _movedim(shape, strides, source, destination):
    if isinstance(source, int):
        source, destination = (source,), (destination,)
    ndim = max(len(shape), 1)
    moved = {new % ndim: old % ndim for old, new in zip(source, destination, strict=True)}
    order = [dim for dim in range(ndim) if dim not in moved.values()]
    for new in sorted(moved):
        order.insert(new, moved[new])
    return tuple(strides[dim] for dim in order if shape), 0


def _transpose(shape, strides, dim0, dim1):
    return _movedim(shape, strides, (dim0, dim1), (dim1, dim0))


def _diagonal(shape, strides, offset=0, dim1=0, dim2=1):
    rows, columns = shape[dim1], shape[dim2]
    start = offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    kept = (s for d, s in enumerate(strides) if d not in (dim1 % len(shape), dim2 % len(shape)))
    # PyTorch leaves the offset of an empty diagonal alone
    inside = -rows < offset < columns and rows and columns
    return (*kept, strides[dim1] + strides[dim2]), start if inside else 0


def _select(shape, strides, dim, index):
    return _instead(strides, dim), index % shape[dim] * strides[dim]


def _slice(shape, strides, dim=0, start=None, end=None, step=1):
    start, _, _ = symbolic_extents.bounds_of(slice(start, end, step), shape[dim])
    return _every(shape, strides, dim, start, None, step)


def _every(_shape, strides, dim, start, _length, step):
    return _instead(strides, dim, strides[dim] * step), start * strides[dim]


def _unfold(_shape, strides, dim, _size, step):
    return ((*_instead(strides, dim, strides[dim] * step), strides[dim]) if strides else (1,)), 0


def _as_strided(shape, strides, _size, stride, offset=None):
    """Strides of the elements in their order, as strides in memory, where there may be gaps."""
    if is_contiguous(shape, strides):
        return stride, offset or 0
    runs = [(row, step) for row, step, _ in _placed_runs(shape, strides)]
    *steps, start = [_exchanged(number, runs)[0] for number in (*stride, offset or 0)]
    return tuple(steps), start


def in_order(shape, strides, size, stride, offset):
    """Strides and an offset in the memory of a tensor as those of its elements in their order; None
    if they lead to other elements. Those of the tensor decrease.

    >>> in_order((4, 2), (14, 7), (2, 3), (7, 14), 14)
    ((1, 2), 2)
    >>> in_order((4, 2), (14, 7), (2,), (1,), 0)
    """
    runs = _placed_runs(shape, strides)
    pairs = [(step, row) for row, step, _ in runs]
    # no element is at the distance of an extent of 1
    distances = [0 if n == 1 else step for n, step in zip(size, stride, strict=True)]
    parts = [_exchanged(distance, pairs) for distance in (*distances, offset)]
    last = *[extent - 1 for extent in size], 1
    # the index in a run is the sum of those of all dimensions: none may reach into the next run
    ends = [
        sum(n * counts[run] for n, (_, _, counts) in zip(last, parts, strict=True))
        for run in range(len(runs))
    ]
    is_inside = all(end < count for end, (_, _, count) in zip(ends, runs, strict=True))
    if not is_inside or any(rest for _, rest, _ in parts):
        return None
    *steps, start = [total for total, _, _ in parts]
    return tuple(steps), start


def _placed_runs(shape, strides):
    """Runs of evenly spaced elements, the outermost first: the number of elements in an entry of
    one, the distance of two entries in memory, and the number of entries.
    """
    runs, row = [], 1
    for count, step in _runs(shape, strides):
        runs.append((row, step, count))
        row *= count
    return runs[::-1]


def _exchanged(number, units):
    """A distance in units of another kind, what remains of it, and how many there are of each.

    units: pairs of a unit and what replaces it, the largest first.
    """
    total, counts = 0, []
    for unit, other in units:
        count, number = divmod(number, unit) if unit else (0, number)
        total += count * other
        counts.append(count)
    return total, number, counts


def _doubled(strides):
    return tuple(2 * stride for stride in strides)


def _view_as_complex(shape, strides):
    if strides and strides[-1] != 1:
        raise RuntimeError(
            "Tensor must have a last dimension with stride 1: view_as_complex got strides "
            f"{list(strides)}; take its contiguous()"
        )
    lead = zip(shape[:-1], strides[:-1], strict=True)
    if any(stride % 2 for extent, stride in lead if extent != 1):
        raise RuntimeError(
            "Tensor must have a stride divisible by 2 for all but last dimension: view_as_complex "
            f"got strides {list(strides)}; take its contiguous()"
        )
    return tuple(stride // 2 for stride in strides[:-1]), 0


VIEWS = {
    **dict.fromkeys(("alias", "conj", "detach", "positive"), lambda _, strides: (strides, 0)),
    **dict.fromkeys(("reshape", "reshape_as", "view", "view_as"), _view),
    **dict.fromkeys(("broadcast_to", "expand", "expand_as"), _expand),
    **dict.fromkeys(("swapaxes", "transpose"), _transpose),
    "movedim": _movedim,
    "_neg_view": lambda _, strides: (strides, 0),
    "_rounded_view": lambda _, strides, _dtype: (strides, 0),
    "_select": lambda *known: _select(*known[:4]),
    "_slice": _every,
    "as_strided": _as_strided,
    "diagonal": _diagonal,
    "flatten": _flatten,
    "imag": lambda _, strides: (_doubled(strides), 1),
    "narrow": lambda shape, strides, dim, start, _: _slice(shape, strides, dim, start),
    "permute": lambda _, strides, dims: (tuple(strides[dim] for dim in dims), 0),
    "ravel": lambda *layout: _view(*layout, (-1,)) if is_contiguous(*layout) else None,
    "real": lambda _, strides: (_doubled(strides), 0),
    "select": _select,
    "slice": _slice,
    "squeeze": _squeeze,
    "t": lambda _, strides: (strides[::-1], 0),
    "unflatten": _unflatten,
    "unfold": _unfold,
    "unsqueeze": _unsqueeze,
    "view_as_complex": _view_as_complex,
    "view_as_real": lambda _, strides: ((*_doubled(strides), 1), 0),
}

# views to the shape of another tensor, and their forms that take a size
SHAPED = {"view_as": "view", "reshape_as": "reshape", "expand_as": "expand"}
