"""Products of matrices and vectors.

Products of float32 use the highest precision until the user sets another one, as in PyTorch: by
JAX's default an accelerator rounds the factors to fewer bits (`promotion.product_precision`).
"""

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxgrad.rules import arithmetic
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes, promotion


@promotion.of_float8
def _contract(first, second, contracting, batch=((), ())):
    """The product of two tensors summed over the dimensions `contracting` of both.

    All products of this module are such products.
    """
    precision = promotion.product_precision(first)
    place = _place(first, second, contracting, batch)
    return lax.dot_general(
        first, second, (contracting, batch), precision=precision, out_sharding=place
    )


def _place(first, second, contracting, batch):
    """The sharding of a product on a mesh with explicit axes, else None.

    Each dimension is sharded as in its factor. A sum over a sharded dimension is replicated.
    """
    shardings = [jax.typeof(factor).sharding for factor in (first, second)]
    mesh = next((s.mesh for s in shardings if not s.mesh.empty), None)
    if mesh is None or AxisType.Explicit not in mesh.axis_types:
        return None
    wanted, names = [shardings[0].spec[dim] for dim in batch[0]], set()
    for sharding, summed, taken in zip(shardings, contracting, batch, strict=True):
        wanted += [name for i, name in enumerate(sharding.spec) if i not in (*summed, *taken)]
    for number, name in enumerate(wanted):  # an axis of the mesh can shard one dimension only
        wanted[number] = None if name in names else name
        names.add(name)
    return NamedSharding(mesh, PartitionSpec(*wanted))


def _sizes(shape):
    return "x".join(map(str, shape))


# checks of the factors


_OF_MATRICES = "expected m1 and m2 to have the same dtype, but got: {first} != {second}"
_OF_BATCHES = "expected scalar type {First} but found {Second}"
_OF_VECTORS = "dot : expected both vectors to have same dtype, but found {First} and {Second}"
_OF_LAYER = "mat1 and mat2 must have the same dtype, but got {First} and {Second}"
_OF_ADDED = "self and mat2 must have the same dtype, but got {First} and {Second}"
_OF_MATRIX_AND_VECTOR = "addmv input tensors must have the same dtype, but got {all}"

# PyTorch's words, by which programs tell these errors
_TWO_DTYPES = {
    **dict.fromkeys(("mm", "linear", "matmul"), _OF_MATRICES),
    "linear with a bias": _OF_LAYER,
    **dict.fromkeys(("bmm", "baddbmm"), _OF_BATCHES),
    **dict.fromkeys(("dot", "vdot"), _OF_VECTORS),
    **dict.fromkeys(("addmm", "addbmm"), _OF_ADDED),
    **dict.fromkeys(("mv", "addmv"), _OF_MATRIX_AND_VECTOR),
}


def _check_dtypes(name, *operands):
    kinds = [dtypes.from_numpy(operand.dtype) for operand in operands]
    if any(kind is not kinds[0] for kind in kinds):
        first = kinds[0]
        second = next(kind for kind in kinds if kind is not first)
        names = ", ".join(kind.scalar_type for kind in kinds)
        words = _TWO_DTYPES.get(name, "expected all tensors to have the same dtype, but got {all}")
        if name == "matmul":
            words = _words_of_product(*operands)
        words = words.format(
            first=first.scalar_type.lower(),
            second=second.scalar_type.lower(),
            First=first.scalar_type,
            Second=second.scalar_type,
            all=names,
        )
        if name.startswith("linear"):
            roles = f"the input has {operands[0].dtype}, the weight {operands[1].dtype}"
            raise RuntimeError(f"{name}: {words}: {roles}; convert one of them with .to(dtype)")
        raise RuntimeError(f"{name}: {words}: convert with .to(dtype)")
    promotion.refuse(name, operands[0], dtypes.BOOLEAN)


def _words_of_product(first, second):
    """The words of the operator that PyTorch computes `matmul` by."""
    if second.ndim == 1:
        return _OF_VECTORS if first.ndim == 1 else _OF_MATRIX_AND_VECTOR
    return _OF_BATCHES if min(first.ndim, second.ndim) > 2 else _OF_MATRICES


def _check_matrices(name, **operands):
    for role, operand in operands.items():
        if operand.ndim != 2:
            raise RuntimeError(
                f"{role} must be a matrix, got {operand.ndim}-D tensor: {name} got one of shape "
                f"{list(operand.shape)} (Shape mismatch); use matmul for vectors and batches"
            )


def _check_product(name, first, second):
    """Check two shapes of matrices."""
    if first[1] != second[0]:
        reason = f"{name} needs as many columns in the first as rows in the second"
        if name == "linear":
            reason = (
                f"the last dimension of the input of linear must be {second[0]} (in_features), and "
                f"is {first[1]}; flatten(1) joins all dimensions but the first"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_sizes(first)} and {_sizes(second)}): "
            f"{reason}"
        )


def _check_mv(name, result, mat, vec):
    """Check shapes; `result` is the shape of the tensor that the product is added to, or ()."""
    if len(mat) != 2 or len(vec) != 1 or len(result) > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {len(result)}, {len(mat)}, {len(vec)} "
            f"dimensions in {name} (Shape mismatch)"
        )
    if mat[1] != vec[0] or (result and result[0] not in (1, mat[0])):
        raise RuntimeError(
            f"size mismatch, got input ({_sizes(result or mat[:1])}), mat ({_sizes(mat)}), vec "
            f"({vec[0]}): {name} needs a vec with as many elements as mat has columns"
        )


def _check_vectors(name, first, second):
    """Check two shapes of vectors."""
    if len(first) != 1 or len(second) != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {len(first)}D and {len(second)}D tensors: Got wrong "
            f"shapes for {name}, {list(first)} and {list(second)}"
        )
    if first != second:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(first)} and src {list(second)} to "
            f"have the same number of elements, but got {first[0]} and {second[0]} elements "
            f"respectively in {name}"
        )


def _check_two_vectors(name, first, second):
    """Check the dimensions, then the dtypes, then the extents, as PyTorch does."""
    if first.ndim == second.ndim == 1:
        _check_dtypes(name, first, second)
    _check_vectors(name, first.shape, second.shape)


def _check_batches(name, batch1, batch2):
    for role, operand in (("batch1", batch1), ("batch2", batch2)):
        if operand.ndim != 3:
            shape = list(operand.shape)
            raise RuntimeError(
                f"{role} must be a 3D tensor: {name} got one of shape {shape} (Shape mismatch)"
            )
    expected, got = [batch1.shape[0], batch1.shape[2]], list(batch2.shape[:2])
    if expected != got:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: "
            f"{got}: {name} got batch1 of shape {list(batch1.shape)}"
        )


def _check_matmul(name, self, other):
    """Check two shapes."""
    if not self or not other:
        raise RuntimeError(
            f"both arguments to {name} need to be at least 1D, but they are {len(self)}D and "
            f"{len(other)}D: multiply with * instead"
        )
    if len(self) == len(other) == 1:
        _check_vectors(name, self, other)
    elif len(other) == 1:
        _check_mv(name, (), (math.prod(self[:-1]), self[-1]), other)
    elif len(other) == 2:
        _check_product(name, (math.prod(self[:-1]), self[-1]), other)
    else:
        _check_broadcast(name, self, other)


def _check_broadcast(name, self, other):
    batch = math.prod(promotion.broadcast_shapes(name, self[:-2], other[:-2]))
    if self[-1] != other[-2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {self[-1]}] "
            f"but got: [{batch}, {other[-2]}]: {name} got shapes {list(self)} and {list(other)}"
        )


# two matrices, a matrix and a vector, two vectors


def mm(self, mat2):
    _check_matrices("mm", self=self, mat2=mat2)
    _check_dtypes("mm", self, mat2)
    _check_product("mm", self.shape, mat2.shape)
    return _contract(self, mat2, ((1,), (0,)))


def mv(self, vec):
    _check_mv("mv", (), self.shape, vec.shape)
    _check_dtypes("mv", self, vec)
    return _contract(self, vec, ((1,), (0,)))


def dot(self, tensor):
    _check_two_vectors("dot", self, tensor)
    return _contract(self, tensor, ((0,), (0,)))


def vdot(self, other):
    _check_two_vectors("vdot", self, other)
    return _contract(self.conj(), other, ((0,), (0,)))


def outer(self, vec2):
    for role, vector in (("self", self), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {role}, but got {vector.ndim}-D")
    first, second = promotion.unify(self, vec2)
    multiply = jnp.logical_and if first.dtype == bool else jnp.multiply
    return multiply(first[:, None], second)


def outer_backward_self(grad, vec2):
    return _contract(*promotion.unify(grad, vec2.conj()), ((1,), (0,)))


def outer_backward_vec2(grad, self):
    return _contract(*promotion.unify(grad, self.conj()), ((0,), (0,)))


# batches of matrices


def bmm(self, mat2):
    _check_batches("bmm", self, mat2)
    _check_dtypes("bmm", self, mat2)
    return _contract(self, mat2, ((2,), (1,)), ((0,), (0,)))


def grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    _check_dtypes("grouped_mm", self, mat2)
    _check_groups(self, mat2, offs)
    if bias is not None:
        raise RuntimeError("grouped_mm: Bias not supported yet: add it to the result")
    if out_dtype is not None and out_dtype.numpy != self.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype: convert the result")
    if offs is None:
        return _contract(self, mat2, ((2,), (1,)), ((0,), (0,)))
    sizes = jnp.diff(offs, prepend=jnp.zeros(1, offs.dtype))
    if self.ndim == 3:  # of the columns of mat2
        return _by_groups(mat2.T, jnp.swapaxes(self, 1, 2), sizes).T
    return _by_groups(self, mat2, sizes)


def _by_groups(rows, factor, sizes):
    """Rows times the matrices of their groups, or one product for the columns of a group."""
    summed = factor.ndim == 2
    numbers = lax.RaggedDotDimensionNumbers(
        dot_dimension_numbers=(((1,), (factor.ndim - 2,)), ((), ())),
        lhs_ragged_dimensions=[1 if summed else 0],
        rhs_group_dimensions=[] if summed else [0],
    )
    precision = promotion.product_precision(rows)
    return lax.ragged_dot_general(rows, factor, sizes, numbers, precision=precision)


def _check_groups(self, mat2, offs):
    for role, operand in (("mat_a", self), ("mat_b", mat2)):
        if operand.ndim not in (2, 3):
            shape = list(operand.shape)
            raise RuntimeError(f"{role} has to be 2 or 3d: grouped_mm got one of shape {shape}")
    shapes = f"grouped_mm got shapes {list(self.shape)} and {list(mat2.shape)}"
    promotion.refuse("grouped_mm", self, dtypes.INTEGRAL)
    if (offs is None) is not (self.ndim == mat2.ndim == 3):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are "
            f"3d: {shapes}"
        )
    if self.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(f"contraction dimension of mat_a and mat_b must match: {shapes}")
    if offs is not None and (offs.ndim != 1 or offs.dtype != jnp.int32):
        raise RuntimeError("grouped_mm: offs has to be 1D, and Offsets have to be int32")
    groups = [
        *[operand.shape[0] for operand in (self, mat2) if operand.ndim == 3],
        *([] if offs is None else offs.shape),
    ]
    if any(count != groups[0] for count in groups):
        raise RuntimeError(f"matrix batch sizes have to match: {shapes}, and groups {groups}")


def matmul(self, other):
    _check_matmul("matmul", self.shape, other.shape)
    _check_dtypes("matmul", self, other)
    first = jnp.reshape(self, _lifted(self.shape, 0))
    second = jnp.reshape(other, _lifted(other.shape, 1))
    batch = promotion.broadcast_shapes("matmul", first.shape[:-2], second.shape[:-2])
    product = _product(first, second, (-1, -2), batch)
    rows, columns = self.shape[-2:-1], other.shape[-1:] if other.ndim > 1 else ()
    return jnp.reshape(product, (*batch, *rows, *columns))


def _lifted(shape, position):
    """The shape with at least two dimensions; a vector gets one of size 1 at `position`."""
    return shape if len(shape) > 1 else (1, *shape) if position == 0 else (*shape, 1)


def matmul_backward_self(grad, shape, other):
    """The gradient `grad @ other.mH` of the first factor, of shape `shape`."""
    first, second = _lifted(shape, 0), jnp.reshape(other.conj(), _lifted(other.shape, 1))
    grad = _as_matrices(grad, first, second.shape)
    return jnp.reshape(_product(grad, second, (-1, -1), first[:-2]), shape)


def matmul_backward_other(grad, self, shape):
    """The gradient `self.mH @ grad` of the second factor, of shape `shape`."""
    first, second = jnp.reshape(self.conj(), _lifted(self.shape, 0)), _lifted(shape, 1)
    grad = _as_matrices(grad, first.shape, second)
    return jnp.reshape(_product(first, grad, (-2, -2), second[:-2]), shape)


def _as_matrices(grad, first, second):
    """The gradient of a product as matrices; a vector factor counts as a matrix."""
    batch = promotion.broadcast_shapes("matmul", first[:-2], second[:-2])
    return jnp.reshape(grad, (*batch, first[-2], second[-1]))


def _product(first, second, summed, batch):
    """Products of batches of matrices, summed to batches of shape `batch`.

    `summed`: the dimension of each factor, -1 or -2, that the product sums over. A batch times one
    matrix, or a sum over a whole batch, is computed as one product of two matrices.
    """
    rows, columns = first.shape[-3 - summed[0]], second.shape[-3 - summed[1]]
    if second.ndim == 2 and summed[0] == -1:
        product = _contract(_flat(first), second, ((1,), (second.ndim + summed[1],)))
    elif not batch and summed == (-2, -2) and first.shape[:-2] == second.shape[:-2]:
        product = _contract(_flat(first), _flat(second), ((0,), (0,)))
    else:
        product = _batched_product(first, second, summed, batch)
    return jnp.reshape(product, (*batch, rows, columns))


def _flat(tensor):
    """The rows of all matrices of a batch as one matrix."""
    return jnp.reshape(tensor, (math.prod(tensor.shape[:-1]), tensor.shape[-1]))


def _batched_product(first, second, summed, batch):
    """As `_product`, without batch dimensions of size 1, so that none is broadcast in memory."""
    operands, places = [first, second], [_wide(first.shape[:-2]), _wide(second.shape[:-2])]
    shared = [place for place in places[0] if place in places[1]]
    kept = [place for place in shared if place in _wide(batch)]
    gone = [place for place in shared if place not in kept]
    operands = [_squeezed(*pair) for pair in zip(operands, places, strict=True)]
    contracting, batches = [], []
    for operand, wide, dim in zip(operands, places, summed, strict=True):
        contracting.append((*map(wide.index, gone), operand.ndim + dim))
        batches.append(tuple(map(wide.index, kept)))
    result = _contract(*operands, contracting, batches)
    alone = [[place for place in wide if place not in shared] for wide in places]
    order = [*kept, *alone[0], 0, *alone[1], 1]  # 0 and 1: rows and columns
    return lax.transpose(result, sorted(range(len(order)), key=order.__getitem__))


def _wide(batch):
    """The batch dimensions of a size other than 1, counted from the end: -1, -2, ..."""
    return [i - len(batch) for i, extent in enumerate(batch) if extent != 1]


def _squeezed(tensor, wide):
    return jnp.reshape(tensor, (*(tensor.shape[i - 2] for i in wide), *tensor.shape[-2:]))


def linear(input, weight, bias=None):
    """`input @ weight.T + bias`, as one product of two matrices."""
    if weight.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D: linear got a "
            f"weight of shape {list(weight.shape)}"
        )
    _check_matmul("linear", input.shape, weight.shape[::-1])
    _check_dtypes("linear" if bias is None else "linear with a bias", input, weight)
    product = _contract(_flat(input), _rows(weight), ((1,), (1,)))
    product = jnp.reshape(product, input.shape[:-1] + weight.shape[:-1])
    return product if bias is None else _added("linear", bias, product)


def _rows(weight):
    return jnp.reshape(weight, _lifted(weight.shape, 0))


def linear_backward_input(grad, shape, weight):
    rows = _rows(weight)
    grad = jnp.reshape(grad, (math.prod(shape[:-1]), rows.shape[0]))
    return jnp.reshape(_contract(grad, rows.conj(), ((1,), (0,))), shape)


def linear_backward_weight(grad, input, shape):
    rows = _flat(input)
    grad = jnp.reshape(grad, (rows.shape[0], math.prod(shape[:-1])))
    return jnp.reshape(_contract(grad, rows.conj(), ((0,), (0,))), shape)


# a product added to something


def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    _check_matrices("addmm", mat1=mat1, mat2=mat2)
    _check_product("addmm", mat1.shape, mat2.shape)
    _check_dtypes("addmm", self, mat1, mat2)
    return _added("addmm", self, _contract(mat1, mat2, ((1,), (0,))), beta, alpha)


def addmv(self, mat, vec, *, beta=1, alpha=1):
    _check_mv("addmv", self.shape, mat.shape, vec.shape)
    _check_dtypes("addmv", self, mat, vec)
    return _added("addmv", self, _contract(mat, vec, ((1,), (0,))), beta, alpha)


def baddbmm(self, batch1, batch2, *, beta=1, alpha=1):
    _check_batches("baddbmm", batch1, batch2)
    _check_dtypes("baddbmm", self, batch1, batch2)
    product = _contract(batch1, batch2, ((2,), (1,)), ((0,), (0,)))
    return _added("baddbmm", self, product, beta, alpha)


def addbmm(self, batch1, batch2, *, beta=1, alpha=1):
    _check_addbmm(batch1.shape, batch2.shape)
    _check_batches("addbmm", batch1, batch2)
    _check_dtypes("addbmm", self, batch1, batch2)
    return _added("addbmm", self, _contract(batch1, batch2, ((0, 2), (0, 1))), beta, alpha)


def _check_addbmm(first, second):
    if len(first) == len(second) == 3 and first[0] != second[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {first[0]} and {second[0]}: "
            f"addbmm got shapes {list(first)} and {list(second)}"
        )
    if len(first) == len(second) == 3 and first[2] != second[1]:
        sizes = f"{_sizes(first[1:])} and {_sizes(second[1:])}"
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({sizes}) in addbmm")


for _function in (addmm, addmv, baddbmm, addbmm):
    _function.precondition = promotion.refuse_large_factors


def addr(self, vec1, vec2, *, beta=1, alpha=1):
    dtype = promotion.result_type(self, vec1, vec2)
    for name, number in (("beta", beta), ("alpha", alpha)):
        arithmetic.check_multiple(dtype, name, number)
    if dtype is not dtypes.bool:
        return _with_outer(self, vec1, vec2, beta, alpha)
    numbers = (operand.astype(jnp.int32) for operand in (self, vec1, vec2))
    return _with_outer(*numbers, beta != 0, alpha != 0) != 0


def _with_outer(self, vec1, vec2, beta, alpha):
    self, product = promotion.unify(self, outer(vec1, vec2))
    # not by `alpha` of `_added`: that drops NaN if it is 0, which PyTorch does for matrices alone
    return _added("addr", self, product * alpha, beta)


def _added(name, self, product, beta=1, alpha=1):
    """`beta * self + alpha * product`; a term whose factor is 0 is dropped, NaN included."""
    _check_dtypes(name, self, product)
    shapes.expanded_size(self.shape, product.shape)
    product = _times(product, alpha)
    return product if _is(beta, 0) else _times(self, beta) + product


def _is(scalar, number):
    return isinstance(scalar, int | float | complex) and scalar == number


def _times(tensor, scalar):
    """`scalar * tensor` in the dtype of the tensor, also if it is integral; zeros for 0."""
    if _is(scalar, 0):
        return jnp.zeros_like(tensor)
    if _is(scalar, 1):
        return tensor
    return tensor * promotion.cast(scalar, dtypes.from_numpy(tensor.dtype))


# other products, and the trace


def trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim=0):
    """The product of three tensors with dimensions inserted, summed over `sumdim`."""
    count = i1.ndim + len(expand1)
    if not 0 <= unroll_dim < count:
        raise RuntimeError(f"unroll_dim must be in [0,{count - 1}], not {unroll_dim}: _trilinear")
    _check_dtypes("_trilinear", i1, i2, i3)
    expanded = [{dim % count for dim in dims} for dims in (expand1, expand2, expand3)]
    operands = []
    for tensor, dims in zip((i1, i2, i3), expanded, strict=True):
        operands += [tensor, [dim for dim in range(count) if dim not in dims]]
    summed = {dim % count for dim in sumdim}
    kept = [dim for dim in range(count) if dim not in summed]
    everywhere = set.intersection(*expanded)  # einsum knows no extent for these
    named = [dim for dim in kept if dim not in everywhere]
    product = jnp.einsum(*operands, named, precision=promotion.product_precision(i1))
    return lax.expand_dims(product, [kept.index(dim) for dim in kept if dim in everywhere])


def trilinear_backward(shape, *arguments):
    """The gradient of one factor, of shape `shape`: a product with the other two."""
    product = trilinear(*arguments)
    return jnp.broadcast_to(product, promotion.broadcast_shapes("_trilinear", product.shape, shape))


def linalg_cross(self, other, *, dim=-1):
    if self.ndim != other.ndim:
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions. Got "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    along = shapes.wrap_dim(dim, self.ndim)
    if not self.ndim or (self.shape[along], other.shape[along]) != (3, 3):
        extents = f"{self.shape[along]} and {other.shape[along]}" if self.ndim else "1 and 1"
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {extents}"
        )
    _check_same_type("cross", self, other)
    promotion.broadcast_shapes("cross", self.shape, other.shape)
    return jnp.cross(self, other, axis=along)


def _check_same_type(name, self, other):
    first, second = (dtypes.from_numpy(operand.dtype) for operand in (self, other))
    if first is not second:
        raise RuntimeError(
            f"expected scalar type {first.scalar_type} but found {second.scalar_type}: {name} "
            "needs one dtype, convert with .to(dtype)"
        )
    promotion.refuse(name, self, dtypes.BOOLEAN)


def cross(self, other, dim=None):
    return linalg_cross(self, other, dim=cross_dim(self.shape, dim))


def cross_dim(shape, dim):
    """`dim`, or the first dimension of extent 3 in the shape of the first operand."""
    if dim is not None:
        return dim
    if 3 not in shape:
        raise RuntimeError(f"no dimension of size 3 in input of shape {list(shape)}")
    return shape.index(3)


def trace(self):
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    promotion.refuse("trace", self, dtypes.BOOLEAN)
    exact = jnp.issubdtype(self.dtype, jnp.integer)
    dtype = promotion.available(dtypes.int64) if exact else self.dtype
    return jnp.trace(self, dtype=dtype)


def trace_backward(grad, sizes):
    """`grad` along the diagonal of a matrix of zeros."""
    rows, columns = (lax.broadcasted_iota(jnp.int32, sizes, axis) for axis in (0, 1))
    return jnp.where(rows == columns, grad, 0)


def block_diag(tensors):
    blocks = promotion.unify(*map(_block, range(len(tensors)), tensors))
    width = sum(block.shape[1] for block in blocks)
    rows, start = [], 0
    for block in blocks:
        end = start + block.shape[1]
        rows.append(jnp.pad(block, ((0, 0), (start, width - end))))
        start = end
    return jnp.concatenate(rows)


def _block(position, tensor):
    if tensor.ndim > 2:
        raise RuntimeError(
            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
            f"{position} has {tensor.ndim} dimensions"
        )
    return jnp.reshape(tensor, _block_shape(tensor.shape))


def _block_shape(shape):
    return (1,) * (2 - len(shape)) + tuple(shape)


def block_diag_backward(grad, shapes):
    """The blocks of `grad` in these shapes."""
    blocks, row, column = [], 0, 0
    for shape in shapes:
        height, width = _block_shape(shape)
        blocks.append(jnp.reshape(grad[row : row + height, column : column + width], shape))
        row, column = row + height, column + width
    return blocks
