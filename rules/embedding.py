"""Lookups in a table of embeddings, and sums, means and maxima of bags of them.

Under a trace indices have no values: a lookup out of range then gives NaN.
"""

import typing

import jax
import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import norm as norms

from jaxgrad.core import dtypes, promotion
from jaxgrad.core import symbolic_extents as symbolic

SUM, MEAN, MAX = 0, 1, 2


def _check_indices(name, indices):
    dtype = dtypes.from_numpy(indices.dtype)
    if dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{dtype.scalar_type}Tensor instead (while checking arguments "
            f"for {name}). Indices are integers: convert them with .long()"
        )


def _check_table(weight):
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, not of shape {list(weight.shape)}")


def _first_beyond(indices, count):
    """The first index that is no row of the table, or None."""
    numbers = numpy.asarray(indices)
    wrong = numbers[(numbers < 0) | (numbers >= count)]
    return wrong.flat[0] if wrong.size else None


def _rows(table, indices, beyond=None):
    """The rows of a table; `beyond` or NaN for an index outside."""
    if not table.shape[0]:
        return jnp.zeros((*indices.shape, *table.shape[1:]), table.dtype)
    return jnp.take(table, indices, 0, mode="fill", fill_value=beyond)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    _check_table(weight)
    _check_indices("embedding", indices)
    return _rows(weight, indices)


def _refuse_other_rows(weight, indices, *_):
    wrong = None if weight.ndim != 2 else _first_beyond(indices, weight.shape[0])
    if wrong is not None:
        raise IndexError(f"index out of range in self: row {wrong} of {weight.shape[0]}")


embedding.precondition = _refuse_other_rows


def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    """The gradient of the table: the sum of the gradients of all lookups of a row."""
    _check_indices("embedding_backward", indices)
    if grad_output.shape[:-1] != indices.shape or not grad_output.ndim:
        raise RuntimeError(
            "embedding_dense_backward: expected a gradient (*, d) of indices (*), but their shapes "
            f"are {list(grad_output.shape)} and {list(indices.shape)}"
        )
    grad = grad_output.reshape(indices.size, grad_output.shape[-1])
    rows = indices.reshape(-1)
    if scale_grad_by_freq:
        grad = grad / _frequencies(rows, num_weights)[:, None]
    return _added(grad, _without_padding(rows, padding_idx, num_weights), num_weights)


def _added(values, rows, count):
    """The sums of the values of each row; half ones are added up in float32."""
    wide = values.astype(jnp.float32) if values.dtype.itemsize == 2 else values
    table = jnp.zeros((count, *values.shape[1:]), wide.dtype)
    if not count:
        return table.astype(values.dtype)
    return table.at[rows].add(wide, mode="drop").astype(values.dtype)


def _without_padding(rows, padding_idx, count):
    """The rows, with one beyond the table, which is dropped, for the padding."""
    return rows if padding_idx < 0 else jnp.where(rows == padding_idx, count, rows)


def _frequencies(rows, count):
    """For each lookup the number of lookups of its row."""
    counts = jnp.zeros(count, jnp.int32).at[rows].add(1, mode="drop")
    return jnp.maximum(_rows(counts, rows, 1), 1)


def embedding_dense_double_backward(
    grad, indices, shape, num_weights, padding_idx, scale_grad_by_freq
):
    """The gradient of `grad_output`, whose shape is given, in `embedding_dense_backward`."""
    rows = _rows(grad, indices)
    if scale_grad_by_freq:
        frequencies = _frequencies(indices.reshape(-1), num_weights)
        rows = rows / frequencies.reshape(*indices.shape, 1)
    if padding_idx >= 0:
        rows = jnp.where((indices == padding_idx)[..., None], 0, rows)
    return rows.reshape(shape)


def embedding_renorm(self, indices, max_norm, norm_type):
    """The table, with the rows that are listed scaled to a norm of at most `max_norm`."""
    _check_table(self)
    _check_indices("embedding_renorm_", indices)
    return jnp.where(_is_listed(self, indices), norms.renorm(self, norm_type, 0, max_norm), self)


embedding_renorm.precondition = _refuse_other_rows


def _is_listed(table, indices):
    listed = jnp.zeros(table.shape[0], bool).at[indices.reshape(-1)].set(True, mode="drop")
    return listed[:, None]


def embedding_renorm_backward(grad, self, indices, max_norm, norm_type):
    scaled = norms.renorm_backward(grad, self, norm_type, 0, max_norm)
    return jnp.where(_is_listed(self, indices), scaled, grad)


# bags


class _Bags(typing.NamedTuple):
    """The bag of each lookup, or the number of bags for one that is left out; how many there are;
    how many lookups each has.
    """

    of_lookups: jax.Array
    count: int
    sizes: jax.Array

    @classmethod
    def of(cls, indices, offsets, include_last_offset, padding_idx):
        count = max(offsets.shape[0] - include_last_offset, 0)
        places = lax.iota(offsets.dtype, indices.shape[0])
        if any(map(symbolic.is_symbolic, (*offsets.shape, *indices.shape))):
            bags = (offsets <= places[:, None]).sum(1) - 1
        else:
            bags = jnp.searchsorted(offsets, places, side="right", method="scan_unrolled") - 1
        if padding_idx >= 0:
            bags = jnp.where(indices == padding_idx, count, bags)
        bags = jnp.where((bags < 0) | (bags > count), count, bags).astype(indices.dtype)
        sizes = jnp.zeros(count, indices.dtype).at[bags].add(1, mode="drop")
        return cls(bags, count, sizes)


def _check_bags(weight, indices, offsets, mode, per_sample_weights):
    _check_table(weight)
    if dtypes.from_numpy(weight.dtype).category != dtypes.FLOATING:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
            f"Half, BFloat16, Float, Double; but got {weight.dtype} instead (embedding_bag)"
        )
    if mode not in (SUM, MEAN, MAX):
        raise RuntimeError(f"`mode` must be sum, mean, or max: 0, 1 or 2, not {mode}")
    _check_indices("embedding_bag", indices)
    _check_indices("embedding_bag", offsets)
    if indices.ndim != 1 or offsets.ndim != 1:
        raise RuntimeError(
            f"embedding_bag: input and offsets have to be 1D tensors, not of shapes "
            f"{list(indices.shape)} and {list(offsets.shape)}"
        )
    if per_sample_weights is None:
        return
    if mode != SUM:
        raise RuntimeError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            "for mode='sum'"
        )
    if per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as per_sample_weights; "
            f"but {weight.dtype} does not equal {per_sample_weights.dtype}: embedding_bag"
        )
    if per_sample_weights.shape != indices.shape:
        raise RuntimeError(
            "embedding_bag: expected per_sample_weights to be a 1D tensor of the length of input, "
            f"{list(indices.shape)}, not {list(per_sample_weights.shape)}"
        )


def embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=SUM,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=-1,
):
    """The sum, mean or maximum of the rows of each bag, 0 for an empty bag; the bag of each
    lookup; the sizes of the bags; for a maximum the row of each element.
    """
    _check_bags(weight, indices, offsets, mode, per_sample_weights)
    bags = _Bags.of(indices, offsets, include_last_offset, padding_idx)
    rows = _rows(weight, indices)
    if mode == MAX:
        reduced, places = _greatest(rows, bags)
        chosen = _rows(indices, places, 0)
        return reduced, bags.of_lookups, bags.sizes, chosen
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    reduced = _added(rows, bags.of_lookups, bags.count)
    if mode == MEAN:
        reduced = reduced / jnp.maximum(bags.sizes, 1).astype(reduced.dtype)[:, None]
    return reduced, bags.of_lookups, bags.sizes, bags.sizes


def _greatest(rows, bags):
    """The greatest elements of each bag, 0 of an empty one, and the first lookups with them."""
    least = jnp.full((bags.count, rows.shape[1]), -jnp.inf, rows.dtype)
    greatest = least.at[bags.of_lookups].max(rows, mode="drop")
    is_chosen = rows == _rows(greatest, bags.of_lookups)
    numbers = lax.broadcasted_iota(jnp.int32, rows.shape, 0)
    places = jnp.full(greatest.shape, rows.shape[0], jnp.int32)
    places = places.at[bags.of_lookups].min(
        jnp.where(is_chosen, numbers, rows.shape[0]), mode="drop"
    )
    return jnp.where((bags.sizes == 0)[:, None], 0, greatest), places


def _refuse_other_bags(weight, indices, offsets, *rest):
    if not (weight.ndim == 2 and indices.ndim == offsets.ndim == 1):
        return
    starts = numpy.asarray(offsets)
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {starts[0]}"
        )
    if starts.size and starts[-1] > indices.shape[0]:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length({indices.shape[0]}) but got "
            f"offsets[-1] of {starts[-1]}"
        )
    if (numpy.diff(starts) < 0).any():
        raise RuntimeError(f"embedding_bag: offsets must not decrease, but got {starts.tolist()}")
    wrong = _first_beyond(indices, weight.shape[0])
    if wrong is not None:
        raise RuntimeError(
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
            f"{wrong} where there are {weight.shape[0]}"
        )


embedding_bag.precondition = _refuse_other_bags


def embedding_bag_backward(
    grad,
    indices,
    offsets,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    sparse,
    per_sample_weights,
    padding_idx=-1,
):
    """The gradient of the table."""
    if grad.ndim != 2:
        raise RuntimeError(f"_embedding_bag_backward: expected (bags, d), not {list(grad.shape)}")
    if mode == MAX:
        rows = jnp.where((bag_size == 0)[:, None], num_weights, maximum_indices)
        columns = lax.broadcasted_iota(rows.dtype, rows.shape, 1)
        table = jnp.zeros((num_weights, grad.shape[1]), grad.dtype)
        return table.at[rows, columns].add(grad, mode="drop")
    if mode == MEAN:
        grad = grad / jnp.maximum(bag_size, 1).astype(grad.dtype)[:, None]
    values = _rows(grad, offset2bag, 0)
    if per_sample_weights is not None:
        values = values * per_sample_weights[:, None]
    if scale_grad_by_freq:
        values = values / _frequencies(indices, num_weights)[:, None]
    return _added(values, _without_padding(indices, padding_idx, num_weights), num_weights)


def embedding_bag_per_sample_weights_backward(grad, weight, indices, offset2bag):
    """The gradients of the weights of lookups."""
    rows = _rows(weight, indices)
    return jnp.sum(_rows(grad, offset2bag, 0) * rows, 1)


# rows of the identity


def one_hot(self, num_classes):
    if not promotion.is_long(self.dtype):
        kind = dtypes.from_numpy(self.dtype).scalar_type
        raise RuntimeError(
            f"one_hot is only applicable to index tensor of type LongTensor, got {kind}"
        )
    if num_classes < 0:
        raise RuntimeError(
            f"one_hot needs num_classes, not {num_classes}: values do not make a result's shape"
        )
    classes = lax.broadcasted_iota(self.dtype, (*self.shape, num_classes), self.ndim)
    return promotion.cast(classes == jnp.expand_dims(self, -1), dtypes.int64)


def _refuse_classes_beyond(self, num_classes):
    classes = numpy.asarray(self)
    if classes.size and classes.min() < 0:
        raise RuntimeError(f"Class values must be non-negative. one_hot got {classes.min()}")
    if classes.size and classes.max() >= num_classes >= 0:
        raise RuntimeError(
            f"Class values must be smaller than num_classes. one_hot got {classes.max()}, and "
            f"num_classes is {num_classes}"
        )


one_hot.precondition = _refuse_classes_beyond
