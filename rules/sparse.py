"""Sparse tensors in coordinate format, taken apart: operators on values and indices.

`values` has shape (elements, *dense sizes), `indices` (sparse dimensions, elements). Elements at
equal indices add up. The operators gather and scatter themselves: XLA compiles them to the same
code as jax.experimental.sparse (measured), and their derivatives are such operators again.
"""

import jax
import jax.numpy as jnp

from jaxgrad.core import dtypes
from jaxgrad.core.primitive import op


def _check(is_right, what, *arrays):
    if not is_right:
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise RuntimeError(f"{what}, not tensors of shapes {shapes}")


def _check_indices(indices, count, dims):
    """Check that indices have `count` elements (None: any number) in at most `dims` dimensions."""
    is_right = indices.ndim == 2 and indices.shape[0] <= dims and indices.dtype.kind == "i"
    wanted = f"a sparse tensor needs integer indices of shape (at most {dims}, {count})"
    _check(is_right and count in (None, indices.shape[1]), wanted, indices)


def _check_groups(values, groups):
    is_right = values.ndim > 0 and groups.ndim == 1 and groups.shape[0] == values.shape[0]
    _check(is_right and groups.dtype.kind == "i", "each element needs a group", values, groups)


def _places(indices, extents):
    """An index for each sparse dimension, of 32 bits where these are enough."""
    small = all(isinstance(extent, int) and extent < 2**31 for extent in extents)
    return tuple(index.astype(jnp.int32) if small else index for index in indices)


# Indices are not negative: without JAX's correction of those, products are twice as fast. Under a
# trace an element out of range is dropped.
ADDED = {"mode": "drop", "wrap_negative_indices": False}


def _at(array, places):
    """The elements of an array at indices, 0 at those out of range."""
    return array.at[places].get(mode="fill", fill_value=0, wrap_negative_indices=False)


def _is(factor, number):
    return isinstance(factor, int | float) and factor == number


def _scaled(array, factor):
    return array if _is(factor, 1) else (array * factor).astype(array.dtype)


# ---- to and from dense arrays


def coo_to_dense(values, indices, size):
    """The dense array; elements at equal indices add up."""
    _check(values.ndim > 0, "values have a dimension for the elements", values)
    _check_indices(indices, values.shape[0], len(size))
    is_right = values.shape[1:] == tuple(size[indices.shape[0] :])
    _check(is_right, f"values do not fit into a tensor of size {list(size)}", values, indices)
    if not indices.shape[0]:
        return jnp.sum(values, 0, dtype=values.dtype)
    zeros = jnp.zeros(size, values.dtype)
    if zeros.size == 0 or values.size == 0:
        return zeros
    target = zeros.at[_places(indices, size)]
    return target.max(values, **ADDED) if values.dtype == bool else target.add(values, **ADDED)


def coo_mask(self, indices):
    """The elements of a dense array at the indices."""
    _check_indices(indices, None, self.ndim)
    sizes = indices.shape[1], *self.shape[indices.shape[0] :]
    if not indices.shape[0]:
        return jnp.broadcast_to(self, sizes)
    if not indices.shape[1] or not self.size:
        return jnp.zeros(sizes, self.dtype)
    return _at(self, _places(indices, self.shape))


def coo_add_to(self, values, indices, alpha):
    """`self` plus `alpha` times a sparse tensor of its sizes."""
    if not indices.shape[0] or not values.size or values.shape[0] != indices.shape[1]:
        return self + coo_to_dense(_scaled(values, alpha), indices, self.shape)
    _check_indices(indices, values.shape[0], self.ndim)
    return self.at[_places(indices, self.shape)].add(_scaled(values, alpha), **ADDED)


# ---- products of a sparse and a dense matrix


def _check_matrix(values, indices):
    _check(values.ndim == 1, "a sparse matrix has no dense dimensions", values)
    _check_indices(indices, values.shape[0], 2)
    _check(indices.shape[0] == 2, "a sparse matrix has two dimensions", indices)


def coo_mm(values, indices, rows, mat2):
    """The product of a sparse matrix with `rows` rows and a dense matrix."""
    _check_matrix(values, indices)
    _check(mat2.ndim == 2, "the second operand must be a matrix", mat2)
    if mat2.shape[0] == 0 or not values.size:
        return jnp.zeros((rows, mat2.shape[1]), values.dtype)
    row, column = _places(indices, (rows, mat2.shape[0]))
    products = jnp.expand_dims(values, 1) * _at(mat2, column)
    return jnp.zeros((rows, mat2.shape[1]), products.dtype).at[row].add(products, **ADDED)


def coo_mv(values, indices, rows, vec):
    """The product of a sparse matrix with `rows` rows and a dense vector."""
    _check(vec.ndim == 1, "the second operand must be a vector", vec)
    return coo_mm(values, indices, rows, jnp.expand_dims(vec, 1))[:, 0]


def coo_sampled_mm(self, indices, mat2):
    """The elements of `self @ mat2.T` at the indices."""
    is_right = self.ndim == mat2.ndim == 2 and self.shape[1] == mat2.shape[1]
    _check(is_right, "matrices of as many columns are expected", self, mat2)
    _check_indices(indices, None, 2)
    _check(indices.shape[0] == 2, "a sparse matrix has two dimensions", indices)
    if not self.shape[0] or not mat2.shape[0]:
        return jnp.zeros(indices.shape[1:], self.dtype)
    row, column = _places(indices, (self.shape[0], mat2.shape[0]))
    return jnp.sum(_at(self, row) * _at(mat2, column), -1)


def coo_addmm(self, values, indices, rows, mat2, beta, alpha):
    """`beta * self + alpha * (sparse @ mat2)`; a term whose factor is 0 is dropped."""
    product = coo_mm(values, indices, rows, mat2)
    product = jnp.zeros_like(product) if _is(alpha, 0) else _scaled(product, alpha)
    summand = jnp.broadcast_to(self, product.shape)
    return product if _is(beta, 0) else _scaled(summand, beta) + product


# ---- groups of elements


def coo_group(values, groups, count):
    """The sums of the values in each of `count` groups; `groups` has the number of each value's."""
    _check_groups(values, groups)
    zeros = jnp.zeros((count, *values.shape[1:]), values.dtype)
    if not zeros.size or not values.size:
        return zeros
    target = zeros.at[_places((groups,), (count,))]
    return target.max(values, **ADDED) if values.dtype == bool else target.add(values, **ADDED)


def coo_ungroup(values, groups):
    """For each element the value of its group: the transpose of `coo_group`."""
    is_right = values.ndim > 0 and groups.ndim == 1 and groups.dtype.kind == "i"
    _check(is_right, "each element needs a group", values, groups)
    if not groups.size or not values.size:
        return jnp.zeros((*groups.shape, *values.shape[1:]), values.dtype)
    return _at(values, _places((groups,), values.shape[:1]))


def coo_sum(values, groups, count):
    """The sums of groups, or without groups of all elements."""
    _check(values.ndim > 0, "values have a dimension for the elements", values)
    return jnp.sum(values, 0) if groups is None else coo_group(values, groups, count)


def coo_sum_backward(grad, groups, shape):
    if groups is not None:
        return op._coo_ungroup(grad, groups)
    return op.expand(op.unsqueeze(grad, 0), shape)


def coo_add(self, other, groups, count, alpha):
    """The values of a sum of sparse tensors, whose elements are joined and grouped."""
    is_right = self.ndim > 0 and self.shape[1:] == other.shape[1:]
    _check(is_right, "both tensors need the same dense sizes", self, other)
    joined = jnp.concatenate([self, _scaled(other, alpha)])
    return joined if groups is None else coo_group(joined, groups, count)


def coo_add_backward(grad, groups):
    return grad if groups is None else op._coo_ungroup(grad, groups)


def coo_softmax(values, groups, count):
    """The softmax over the elements of each group."""
    return jnp.exp(coo_log_softmax(values, groups, count))


def coo_log_softmax(values, groups, count):
    """The logarithm of the softmax over the elements of each group."""
    _check_groups(values, groups)
    if values.dtype.kind in "iub":
        kind = dtypes.from_numpy(values.dtype).scalar_type
        raise NotImplementedError(
            f"\"log_softmax\" not implemented for '{kind}': convert to float32 first"
        )
    if not values.size:
        return values
    places = _places((groups,), (count,))
    least = jnp.full((count, *values.shape[1:]), -jnp.inf, values.dtype)
    shifted = values - jax.lax.stop_gradient(least.at[places].max(values))[places]
    return shifted - jnp.log(coo_group(jnp.exp(shifted), groups, count))[places]


# ---- products of two sparse matrices


def coo_matmul(self, other, left, right, groups, count):
    """The values of a product of sparse matrices: the sums of groups of products of two values.

    left, right: the positions of each product's factors in `self` and `other`.
    """
    is_right = self.ndim == other.ndim == 1 and left.shape == right.shape == groups.shape
    _check(is_right and left.ndim == 1, "each product needs two factors", left, right, groups)
    if not left.size:
        return jnp.zeros((count,), self.dtype)
    return coo_group(coo_ungroup(self, left) * coo_ungroup(other, right), groups, count)
