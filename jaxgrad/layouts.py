"""Strides: where PyTorch lays the elements of a tensor in its storage, as arithmetic on tuples.

A layout is a shape and its strides, both tuples of ints. XLA decides for itself where an array's
elements are; here is what PyTorch would have decided, for code that asks and for views, which exist
only where the strides allow them.
"""

import math

MOST_SUMS = 10_000  # of those that `overlaps` looks at before it gives up


def contiguous(shape):
    """The strides of a new tensor: rows one after another, an extent of 0 counting as 1.

    >>> contiguous((2, 0, 3))
    (3, 3, 1)
    """
    return _compact(tuple(max(extent, 1) for extent in shape), range(len(shape))[::-1])


def channels_last(shape):
    """The strides of a new 4-D or 5-D tensor whose dimension 1 is the innermost.

    >>> channels_last((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    return _compact(shape, _channels_last_order(len(shape)))


def _channels_last_order(ndim):
    return (1, *range(ndim - 1, 1, -1), 0)


def _compact(shape, order):
    """Strides without gaps; the dimension `order` begins with is the innermost."""
    strides, count = [0] * len(shape), 1
    for dim in order:
        strides[dim] = count
        count *= shape[dim]
    return tuple(strides)


def is_contiguous(shape, strides):
    """Whether a tensor is laid out as a new one; dimensions of extent 1 do not matter.

    >>> is_contiguous((2, 1, 3), (3, 99, 1)), is_contiguous((2, 3), (1, 2))
    (True, False)
    """
    return 0 in shape or _is_compact(shape, strides, range(len(shape))[::-1])


def is_channels_last(shape, strides):
    """Whether a 4-D or 5-D tensor is laid out as `channels_last` says.

    >>> is_channels_last((2, 3, 4, 5), (60, 1, 15, 3))
    True
    """
    return len(shape) in (4, 5) and _is_compact(shape, strides, _channels_last_order(len(shape)))


def is_dense(shape, strides):
    """Whether the elements fill one stretch of the storage, in any order of the dimensions.

    >>> is_dense((2, 3), (1, 2)), is_dense((2, 3), (6, 2))
    (True, False)
    """
    innermost_first = sorted(range(len(shape)), key=strides.__getitem__)
    return 0 in shape or _is_compact(shape, strides, innermost_first)


def _is_compact(shape, strides, order):
    count = 1
    for dim in order:
        if shape[dim] != 1 and strides[dim] != count:
            return False
        count *= shape[dim]
    return True


def overlaps(shape, strides):
    """Whether two places of a tensor may be one element.

    Exact, unless more than `MOST_SUMS` differences between places have to be looked at, which no
    layout made of slices, permutations, diagonals, expansions and unfoldings comes near: then True.

    >>> overlaps((3, 4), (0, 1)), overlaps((3, 4), (2, 1)), overlaps((3, 2), (5, 4))
    (True, True, False)
    """
    if 0 in shape:
        return False
    steps = sorted(((s, n - 1) for n, s in zip(shape, strides, strict=True) if n > 1), reverse=True)
    reach = sum(stride * most for stride, most in steps)
    distances = (
        set()
    )  # of places that differ in a dimension so far, where later ones may close them
    for stride, most in steps:
        reach -= stride * most
        if stride == 0 or (len(distances) + 1) * (reach // stride) > MOST_SUMS:
            return True
        further = {
            distance + step * stride
            for distance in distances
            for step in _steps_within(distance, stride, most, reach)
        }
        distances = further.union(range(stride, min(most * stride, reach) + 1, stride))
    return bool(distances)


def _steps_within(distance, stride, most, reach):
    """How many strides, forward or back, lead from `distance` to at most `reach` from 0."""
    first, last = -((reach + distance) // stride), (reach - distance) // stride
    return range(max(first, -most), min(last, most) + 1)


def reshaped(shape, strides, new_shape):
    """The strides of a view in `new_shape`, or None where the elements would have to move.

    >>> reshaped((4, 6), (6, 1), (2, 2, 6)), reshaped((4, 6), (1, 4), (24,))
    ((12, 6, 1), None)
    """
    if 0 in shape:
        return strides if shape == new_shape else contiguous(new_shape)
    found, rest = [], list(new_shape)
    for count, stride in _runs(shape, strides):
        covered = 1
        while rest and (covered < count or rest[-1] == 1):
            found.append(covered * stride)
            covered *= rest.pop()
        if covered != count:
            return None
    return tuple(found[::-1])


def _runs(shape, strides):
    """From the innermost out: number and distance of the elements that lie at one distance."""
    count, step = 1, strides[-1] if strides else 1
    for extent, stride in zip(shape[::-1], strides[::-1], strict=True):
        if extent != 1 and stride != count * step:
            yield count, step
            count, step = 1, stride
        count *= extent
    yield count, step


def like(shape, strides):
    """The strides of `empty_like` and `clone`: without gaps, dimensions in the order they have.

    >>> like((2, 3), (1, 20))
    (1, 2)
    """
    return strides if is_dense(shape, strides) else _compact(shape, _order(shape, [strides]))


def pointwise(shape, operands):
    """The strides of a new result of a pointwise operator: those that its operands agree on, the
    first that has an opinion deciding.

    `shape`: the operands' common shape; `operands`: shape and strides of each, in the order of the
    arguments. A number that PyTorch makes a tensor of counts as `((), ())`.

    >>> pointwise((2, 3), [((2, 3), (1, 2)), ((3,), (1,))])
    (1, 2)
    """
    if all(extents == shape for extents, _ in operands):
        layouts = [strides for _, strides in operands]
        if all(is_contiguous(shape, strides) for strides in layouts):
            return contiguous(shape)
        if len(shape) == 4 and all(is_channels_last(shape, strides) for strides in layouts):
            return channels_last(shape)
        if is_dense(shape, layouts[0]) and len({*layouts}) == 1:
            return layouts[0]
    order = _order(shape, [_broadcast(shape, *operand) for operand in operands])
    return contiguous(shape) if order == [*range(len(shape))][::-1] else _compact(shape, order)


def _broadcast(shape, extents, strides):
    """The strides of an operand in the common shape."""
    missing = len(shape) - len(extents)
    pairs = zip(shape[missing:], extents, strides, strict=True)
    return (0,) * missing + tuple(0 if old == 1 != new else stride for new, old, stride in pairs)


def _order(shape, layouts):
    """The dimensions, innermost first, by the strides in `layouts`.

    This is no sorting by a key: two dimensions may be without an order, and then stay in the order
    they have without keeping others from moving past.
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


def _compared(shape, layouts, first, second):
    """Whether dimension `first` belongs inside of `second` (-1), outside (1), or neither."""
    for strides in layouts:
        inner, outer = strides[first], strides[second]
        if inner == 0 or outer == 0:
            continue
        if inner != outer:
            return -1 if inner < outer else 1
        if shape[first] > shape[second]:
            return 1
    return 0


# Views: (shape, strides, the operator's other arguments) -> (strides, offset), or None for a copy.


def _same(_shape, strides):
    return strides, 0


def _view(shape, strides, size):
    found = reshaped(shape, strides, _inferred(size, math.prod(shape)))
    return None if found is None else (found, 0)


def _inferred(size, count):
    """`size` with the extent in place of -1 that makes it hold `count` elements."""
    known = math.prod(extent for extent in size if extent != -1)
    return tuple(count // (known or 1) if extent == -1 else extent for extent in size)


def _flatten(shape, strides, start_dim=0, end_dim=-1):
    if not shape:
        return (1,), 0
    start, end = start_dim % len(shape), end_dim % len(shape)
    if start == end:
        return strides, 0
    merged = math.prod(shape[start : end + 1])
    return _view(shape, strides, (*shape[:start], merged, *shape[end + 1 :]))


def _ravel(shape, strides):
    return _view(shape, strides, (math.prod(shape),)) if is_contiguous(shape, strides) else None


def _unflatten(shape, strides, dim, sizes):
    dim %= len(shape)
    return _view(shape, strides, _instead(shape, dim, *_inferred(sizes, shape[dim])))


def _instead(items, dim, *new):
    return (*items[:dim], *new, *items[dim + 1 :])


def _squeeze(shape, strides, dim=None):
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    dropped = {dim % len(shape) for dim in dims if shape and shape[dim] == 1}
    return tuple(stride for dim, stride in enumerate(strides) if dim not in dropped), 0


def _unsqueeze(shape, strides, dim):
    dim %= len(shape) + 1
    new = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*strides[:dim], new, *strides[dim:]), 0


def _expand(shape, strides, size, _implicit=False):
    if not shape:
        return (0,) * len(size), 0
    missing = len(size) - len(shape)
    pairs = zip(size[missing:], shape, strides, strict=True)
    found = tuple(stride if new in (old, -1) else 0 for new, old, stride in pairs)
    outermost = shape[0] if size[missing] == -1 else size[missing]
    for extent in size[:missing][::-1]:
        found = (outermost * found[0] if extent == 1 else 0, *found)
        outermost = extent
    return found, 0


def _permute(_shape, strides, dims):
    return tuple(strides[dim] for dim in dims), 0


def _transpose(_shape, strides, dim0, dim1):
    found = list(strides)
    if found:
        found[dim0], found[dim1] = found[dim1], found[dim0]
    return tuple(found), 0


def _t(_shape, strides):
    return strides[::-1], 0


def _movedim(_shape, strides, source, destination):
    if not strides:
        return strides, 0
    if isinstance(source, int):
        source, destination = (source,), (destination,)
    ndim = len(strides)
    moved = {b % ndim: a % ndim for a, b in zip(source, destination, strict=True)}
    rest = (dim for dim in range(ndim) if dim not in moved.values())
    return tuple(strides[moved[dim] if dim in moved else next(rest)] for dim in range(ndim)), 0


def _diagonal(shape, strides, offset=0, dim1=0, dim2=1):
    rows, columns = shape[dim1], shape[dim2]
    start = offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    kept = (s for d, s in enumerate(strides) if d not in (dim1 % len(shape), dim2 % len(shape)))
    inside = -rows < offset < columns and rows and columns
    return (*kept, strides[dim1] + strides[dim2]), start if inside else 0


def _select(shape, strides, dim, index):
    dim %= len(shape)
    return _instead(strides, dim), index % shape[dim] * strides[dim]


def _every(shape, strides, dim, start, _length, step):
    dim %= len(shape)
    return _instead(strides, dim, strides[dim] * step), start * strides[dim]


def _slice(shape, strides, dim=0, start=None, end=None, step=1):
    start, _, _ = slice(start, end, step).indices(shape[dim])
    return _every(shape, strides, dim, start, None, step)


def _narrow(shape, strides, dim, start, length):
    return _every(shape, strides, dim, start + shape[dim] if start < 0 else start, length, 1)


def _unfold(shape, strides, dimension, _size, step):
    if not shape:
        return (1,), 0
    dim = dimension % len(shape)
    return (*_instead(strides, dim, strides[dim] * step), strides[dim]), 0


def _as_strided(_shape, _strides, _size, stride, storage_offset=None):
    return stride, storage_offset or 0


def _real(_shape, strides):
    return tuple(2 * stride for stride in strides), 0


def _imag(_shape, strides):
    return tuple(2 * stride for stride in strides), 1


def _view_as_real(_shape, strides):
    return (*(2 * stride for stride in strides), 1), 0


def _view_as_complex(_shape, strides):
    return tuple(stride // 2 for stride in strides[:-1]), 0


VIEWS = {
    **dict.fromkeys(("alias", "conj", "detach", "positive"), _same),
    **dict.fromkeys(("reshape", "reshape_as", "view", "view_as"), _view),
    **dict.fromkeys(("broadcast_to", "expand", "expand_as"), _expand),
    **dict.fromkeys(("swapaxes", "swapdims", "transpose"), _transpose),
    **dict.fromkeys(("moveaxis", "movedim"), _movedim),
    "_select": _select,
    "_slice": _every,
    "as_strided": _as_strided,
    "diagonal": _diagonal,
    "flatten": _flatten,
    "imag": _imag,
    "narrow": _narrow,
    "permute": _permute,
    "ravel": _ravel,
    "real": _real,
    "select": _select,
    "slice": _slice,
    "squeeze": _squeeze,
    "t": _t,
    "unflatten": _unflatten,
    "unfold": _unfold,
    "unsqueeze": _unsqueeze,
    "view_as_complex": _view_as_complex,
    "view_as_real": _view_as_real,
}
