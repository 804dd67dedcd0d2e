"""Rules of primitives that read and write at indices: dynamic slices, gather and scatter."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import numpy

from .equation import NotOnHostError, rule
from .number_types import BFLOAT16, check_type

# Windows of more elements are combined one by one, those of fewer all at once.
LARGE_WINDOW = 512
# The most updates that a function of one element makes.
MOST_APPLIED = 4096


# ---- dynamic slices


def _index_of(limits, sizes):
    """A function from start indices to the index of a slice inside of the operand."""
    pairs = [*zip(limits, sizes, strict=True)]

    def index(starts):
        clamped = [min(max(int(i), 0), n) for i, (n, _) in zip(starts, pairs, strict=True)]
        return tuple([slice(i, i + size) for i, (_, size) in zip(clamped, pairs, strict=True)])

    return index


def _limits(extents, sizes):
    return [extent - size for extent, size in zip(extents, sizes, strict=True)]


@rule("dynamic_slice")
def _dynamic_slice(equation):
    sizes, extents = equation.outputs[0].shape, equation.inputs[0].shape
    if len(equation.inputs) != 1 + len(extents):
        raise NotOnHostError("dynamic_slice of dynamic sizes")
    index = _index_of(_limits(extents, sizes), sizes)
    return lambda operand, *starts: operand[index(starts)]


@rule("dynamic_update_slice")
def _dynamic_update_slice(equation):
    extents, sizes = equation.inputs[0].shape, equation.inputs[1].shape
    if extents == sizes:
        return lambda operand, update, *starts: update
    index = _index_of(_limits(extents, sizes), sizes)

    def update_slice(operand, update, *starts):
        result = numpy.array(operand, order="C")
        result[index(starts)] = update
        return result

    return update_slice


# ---- places of windows


class Geometry(NamedTuple):
    """The windows that gather reads and scatter writes.

    extents: those of the operand; sizes: those of a window; collapsed: the dimensions of the
    operand that the result or the updates lack; mapped: the dimension for each component of an
    index vector; batching: pairs of a batch dimension of the operand and one of the indices;
    window_dims: the dimensions of the result or the updates that belong to windows.
    """

    extents: tuple[int, ...]
    sizes: tuple[int, ...]
    collapsed: frozenset[int]
    mapped: tuple[int, ...]
    batching: tuple[tuple[int, int], ...]
    window_dims: tuple[int, ...]


class Windows:
    """Where windows lie in an operand.

    The dimensions from `begin` to `end` hold all that have an index. The operand is seen as an
    array of three dimensions: those before, these, and those after. `located` gives the places of
    the elements of windows along the second one.
    """

    def __init__(self, geometry: Geometry, indices):
        self.geometry, self.batch = geometry, indices.shape[:-1]
        extents, sizes = geometry.extents, geometry.sizes
        indexed = set(geometry.collapsed)
        indexed |= {dim for dim, extent in enumerate(extents) if sizes[dim] != extent}
        self.begin, self.end = (
            (min(indexed), max(indexed) + 1) if indexed else (0, min(1, len(extents)))
        )
        self.before, self.after = extents[: self.begin], extents[self.end :]
        self.hull = extents[self.begin : self.end]
        self.shape = tuple(map(math.prod, (self.before, self.hull, self.after)))
        hull = range(self.begin, self.end)
        self.kept = tuple([sizes[dim] for dim in hull if dim not in geometry.collapsed])
        self.is_unsigned = indices.dtype == numpy.uint64
        self.limits = numpy.array([extents[d] - sizes[d] for d in geometry.mapped], numpy.int64)
        self.unsigned_limits = self.limits.view(numpy.uint64)
        self.strides = numpy.array([self._stride(dim) for dim in geometry.mapped], numpy.int64)
        self.offsets = self._offsets()
        self.permutation = self._permutation()

    def _stride(self, dim) -> int:
        is_inside = self.begin <= dim < self.end
        return math.prod(self.geometry.extents[dim + 1 : self.end]) if is_inside else 0

    def _offsets(self):
        """The places that do not depend on indices; None if all are 0."""
        offsets = numpy.zeros((1,) * (len(self.batch) + len(self.kept)), numpy.int64)
        for dim, batch_dim in self.geometry.batching:
            after = len(self.batch) - batch_dim - 1 + len(self.kept)
            steps = numpy.arange(self.geometry.extents[dim]) * self._stride(dim)
            offsets = offsets + steps.reshape(-1, *[1] * after)
        after = len(self.kept)
        for dim in range(self.begin, self.end):
            if dim not in self.geometry.collapsed:
                after -= 1
                steps = numpy.arange(self.geometry.sizes[dim]) * self._stride(dim)
                offsets = offsets + steps.reshape(-1, *[1] * after)
        return offsets if offsets.any() else None

    def _permutation(self):
        """Of the dimensions before, of the batch, of windows inside and after, those of the result
        in order; None if they are in order.
        """
        begin, count = self.begin, len(self.batch)
        window = [i if i < begin else i + count for i in range(len(self.geometry.window_dims))]
        batch, windows = iter(range(begin, begin + count)), iter(window)
        inside = self.geometry.window_dims
        order = [next(windows if d in inside else batch) for d in range(count + len(inside))]
        return None if order == sorted(order) else tuple(order)

    def starts(self, indices):
        """Index vectors, and for each component whether its windows lie inside, None if all do."""
        if self.is_unsigned:
            indices = numpy.minimum(indices, numpy.uint64(2**63 - 1))
        starts = indices.astype(numpy.int64, order="C")
        # a negative number is a large unsigned one
        is_inside = starts.view(numpy.uint64) <= self.unsigned_limits
        count = numpy.count_nonzero(is_inside)
        return starts, None if count == is_inside.size else is_inside

    def clamped(self, starts):
        return numpy.minimum(numpy.maximum(starts, 0), self.limits)

    def located(self, starts):
        """The places of windows with given start indices: the dimensions of the batch and those of
        windows inside.
        """
        if len(self.strides) == 1:
            places = starts[..., 0]
            places = places if self.strides[0] == 1 else places * self.strides[0]
        else:
            places = starts.dot(self.strides)
        places = places.reshape(self.batch + (1,) * len(self.kept))
        return places if self.offsets is None else places + self.offsets

    def index_of_one(self, starts):
        """The index of the only window, in the operand."""
        begins = [0] * len(self.geometry.extents)
        for dim, start in zip(self.geometry.mapped, starts.ravel().tolist(), strict=True):
            begins[dim] = start
        pairs = zip(begins, self.geometry.sizes, strict=True)
        return tuple([slice(start, start + size) for start, size in pairs])


def _clamps(mode, name) -> bool:
    """Whether windows outside are moved inside, in place of being filled or dropped."""
    modes = jax.lax.GatherScatterMode
    if mode not in (modes.CLIP, modes.FILL_OR_DROP, modes.PROMISE_IN_BOUNDS):
        raise NotOnHostError(f"{name} in mode {mode}")
    # XLA reads inside of the operand whatever was promised, and writes nothing outside
    return mode == modes.CLIP or (name == "gather" and mode == modes.PROMISE_IN_BOUNDS)


# ---- gather


@rule("gather")
def _gather(equation):
    (operand, indices), result = equation.inputs, equation.outputs[0]
    params = equation.params
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    clamps = _clamps(params["mode"], "gather")
    batching = numbers.operand_batching_dims
    geometry = Geometry(
        extents=operand.shape,
        sizes=tuple(sizes),
        # JAX may write a dimension as an array of no dimension
        collapsed=frozenset(map(int, (*numbers.collapsed_slice_dims, *batching))),
        mapped=numbers.start_index_map,
        batching=(*zip(batching, numbers.start_indices_batching_dims, strict=True),),
        window_dims=numbers.offset_dims,
    )
    if 0 in result.shape:
        return lambda operand, indices: numpy.empty(*result)
    windows = Windows(geometry, indices)
    read = _reader(windows, result.shape)
    if clamps:
        return _clamped_reader(windows, read)
    fill = _fill_value(params["fill_value"], result.dtype)
    inside = [d not in numbers.offset_dims for d in range(len(result.shape))]
    extents = [n if is_batch else 1 for n, is_batch in zip(result.shape, inside, strict=True)]

    def gather(operand, indices):
        starts, is_inside = windows.starts(indices)
        if is_inside is None:
            return read(operand, starts)
        values = read(operand, windows.clamped(starts))
        return numpy.where(is_inside.all(-1).reshape(extents), values, fill)

    return gather


def _clamped_reader(windows, read):
    def gather(operand, indices):
        starts, is_inside = windows.starts(indices)
        return read(operand, starts if is_inside is None else windows.clamped(starts))

    return gather


def _reader(windows, shape):
    """A function that reads the windows of an operand that have given start indices."""
    if math.prod(windows.batch) == 1:
        return lambda operand, starts: operand[windows.index_of_one(starts)].reshape(shape)
    begin, end, permutation = windows.begin, windows.end, windows.permutation
    before = (slice(None),) * begin
    raw = (*windows.before, *windows.batch, *windows.kept, *windows.after)
    size = math.prod(raw)

    def read(operand, starts):
        places = windows.located(starts)
        if operand.flags.c_contiguous:
            flat = operand.reshape(windows.shape)
            # all places are inside: this mode only saves a copy
            result = flat.take(places, 1, mode="clip").reshape(raw)
        elif end - begin == 1 and size > operand.size:
            result = operand.take(places, begin, mode="clip")
        else:
            # the operand is not copied
            result = operand[(*before, *numpy.unravel_index(places, windows.hull))].reshape(raw)
        return result if permutation is None else result.transpose(permutation)

    return read


def _fill_value(value, dtype):
    if value is None and dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        value = limits.min if dtype.kind == "i" else limits.max
    elif value is None:
        value = dtype.kind == "b" or numpy.nan
    return numpy.asarray(value).astype(dtype)


# ---- scatter


@rule("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def _scatter(equation):
    operand, indices, updates = equation.inputs
    params, name = equation.params, equation.name
    clamps = _clamps(params["mode"], name)
    windows = Windows(_scatter_geometry(operand, updates, params["dimension_numbers"]), indices)
    if 0 in updates.shape:
        return lambda operand, indices, updates: operand
    if indices.shape[-1] == 0 and math.prod(windows.batch) > 1:
        raise NotOnHostError(f"{name} of several windows at no index")
    write = _writer(equation, windows)
    dtype = operand.dtype
    # numbers of half precision are combined in single precision, and rounded once
    is_half = dtype in (BFLOAT16, numpy.float16) and name != "scatter"
    wider = numpy.dtype(numpy.float32) if is_half else dtype

    def scatter(operand, indices, updates):
        result = numpy.array(operand, wider, order="C")
        starts, is_inside = windows.starts(indices)
        if is_inside is not None and clamps:
            starts, is_inside = windows.clamped(starts), None
        kept = None if is_inside is None else is_inside.all(-1)
        write(result, starts, kept, updates.astype(wider, copy=False))
        return result.astype(dtype, copy=False)

    return scatter


def _scatter_geometry(operand, updates, numbers) -> Geometry:
    batching = numbers.operand_batching_dims
    collapsed = frozenset(map(int, (*numbers.inserted_window_dims, *batching)))
    extents = iter([updates.shape[dim] for dim in numbers.update_window_dims])
    return Geometry(
        extents=operand.shape,
        sizes=tuple([1 if d in collapsed else next(extents) for d in range(len(operand.shape))]),
        collapsed=collapsed,
        mapped=numbers.scatter_dims_to_operand_dims,
        batching=(*zip(batching, numbers.scatter_indices_batching_dims, strict=True),),
        window_dims=numbers.update_window_dims,
    )


_COMBINED = {
    "scatter-add": (numpy.add, "iufc"),
    "scatter-sub": (numpy.subtract, "iufc"),
    "scatter-mul": (numpy.multiply, "iufc"),
    "scatter-min": (numpy.minimum, "biuf"),
    "scatter-max": (numpy.maximum, "biuf"),
}


def _combination(equation):
    """The function that combines an element of the operand with an update: a ufunc, a function of
    two elements, or None if the update replaces the element.
    """
    dtype, params = equation.inputs[0].dtype, equation.params
    if equation.name in _COMBINED:
        function, kinds = _COMBINED[equation.name]
        check_type(equation.name, dtype, kinds)
        return function
    block = params["update_jaxpr"]
    if block is None:
        return None
    if params["update_consts"] or math.prod(equation.inputs[2].shape) > MOST_APPLIED:
        raise NotOnHostError("scatter by a function, of many elements")
    return block.function


def _writer(equation, windows):
    """A function that writes updates to a new array, where windows have given start indices and are
    kept.
    """
    function = _combination(equation)
    order = windows.permutation and tuple(numpy.argsort(windows.permutation).tolist())
    begin, count = windows.begin, math.prod(windows.batch)
    raw = (*windows.before, count, *windows.kept, *windows.after)
    by_three = (windows.shape[0], -1, windows.shape[2])
    if count == 1 and (function is None or isinstance(function, numpy.ufunc)):
        return _writer_of_one(windows, function)
    combine = _combiner(function, windows.shape)

    def write(result, starts, kept, updates):
        updates = updates if order is None else updates.transpose(order)
        updates, places = updates.reshape(raw), windows.located(starts)
        places = places.reshape(count, *windows.kept)
        if kept is not None:
            kept = kept.reshape(count)
            updates, places = updates.compress(kept, begin), places.compress(kept, 0)
        if places.size:
            combine(result.reshape(windows.shape), places.reshape(-1), updates.reshape(by_three))

    return write


def _writer_of_one(windows, function):
    sizes = windows.geometry.sizes

    def write(result, starts, kept, updates):
        if kept is None or kept.all():
            window, update = result[windows.index_of_one(starts)], updates.reshape(sizes)
            if function is None:
                window[...] = update
            else:
                function(window, update, out=window)

    return write


def _combiner(function, shape):
    """A function that writes updates at places of the second dimension of an array of three."""
    before, middle, after = shape
    if function is None:
        return _assign
    if not isinstance(function, numpy.ufunc):
        return _apply(function)
    if before * after >= LARGE_WINDOW:

        def one_by_one(array, places, updates):
            for number, place in enumerate(places.tolist()):
                window = array[:, place]
                function(window, updates[:, number], out=window)

        return one_by_one
    if before * after == 1:
        return lambda array, places, updates: function.at(
            array.reshape(-1), places, updates.reshape(-1)
        )
    within = numpy.arange(before).reshape(-1, 1, 1) * (middle * after) + numpy.arange(after)

    def at_once(array, places, updates):
        elements = within + places.reshape(-1, 1) * after
        function.at(array.reshape(-1), elements.reshape(-1), updates.reshape(-1))

    return at_once


def _assign(array, places, updates):
    if array.shape[0] == 1:
        array, updates = array[0], updates[0]
        array[places] = updates
    else:
        array[:, places] = updates


def _apply(function):
    """Replace elements one by one: a function that JAX has traced takes an element of both."""

    def combine(array, places, updates):
        for number, place in enumerate(places.tolist()):
            for first in range(array.shape[0]):
                for last in range(array.shape[2]):
                    index = first, place, last
                    array[index] = function(array[index], updates[first, number, last])[0]

    return combine
