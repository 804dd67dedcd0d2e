"""Products of tensors."""

from __future__ import annotations

import math
import warnings

from .. import ops
from ..core import dtypes
from ..core.tracebacks import users_stacklevel
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from .linalg_products import multi_dot
from .out import takes_exact_out, takes_out


@names_defaults
@takes_exact_out
def tensordot(a: Tensor, b: Tensor, dims=2) -> Tensor:
    """Return the product summed over the last dimensions of `a` and the first of `b`.

    a, b: of one dtype, not bool. dims: how many dimensions, or a pair of lists: which dimensions of
    `a`, and which of `b`, or both as a tensor of two rows; dimensions of extent 1 broadcast. The
    result has the other dimensions of `a`, then those of `b`.
    Raises RuntimeError if dtypes or extents differ, or if `dims` is malformed.

    >>> jaxgrad.tensordot(jaxgrad.tensor([[1.0, 2.0]]), jaxgrad.tensor([3.0, 4.0]), 1)
    tensor([11.])
    """
    first, second = _dims_of(dims, a, b)
    if isinstance(first, int) or isinstance(second, int):
        raise TypeError("tensordot(): argument 'dims_self' (position 3) must be tuple of ints")
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length: of tensordot's dims")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"both inputs should have same dtype: {a.dtype} and {b.dtype}")
    first, second = (_wrapped(dims, x) for dims, x in ((first, a), (second, b)))
    for i, j in zip(first, second, strict=True):
        extents = a.shape[i], b.shape[j]
        if extents[1] == 1:
            a = a.sum(i, keepdim=True, dtype=a.dtype)
        elif extents[0] == 1:
            b = b.sum(j, keepdim=True, dtype=b.dtype)
        elif extents[0] != extents[1]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {extents[0]} in dim {i} "
                f"and second has size {extents[1]} in dim {j}: tensordot"
            )
    return _contracted(a, b, first, second)


def _contracted(a, b, first, second):
    rows = [n for n in range(a.ndim) if n not in first]
    columns = [n for n in range(b.ndim) if n not in second]
    shape = [*(a.shape[n] for n in rows), *(b.shape[n] for n in columns)]
    count = math.prod(a.shape[n] for n in first)
    if not rows and not columns:
        return ops.dot(a.permute(first).reshape(-1), b.permute(second).reshape(-1)).reshape(())
    left = a.permute(rows + first).reshape(math.prod(a.shape[n] for n in rows), count)
    right = b.permute(second + columns).reshape(count, math.prod(b.shape[n] for n in columns))
    return ops.mm(left, right).reshape(shape)


def _dims_of(dims, a, b):
    """The dimensions of both tensors that `dims` means."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, list | tuple):
        first, second = dims
        return first, second
    if not isinstance(dims, int):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}"
        )
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a.ndim, b.ndim):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    return range(-dims, 0), range(dims)


def _wrapped(dims, tensor):
    """Dimensions of a tensor counted from 0; each may occur once."""
    positions = []
    for dim in dims:
        if not -tensor.ndim <= dim < tensor.ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[{-tensor.ndim}, {tensor.ndim - 1}], but got {dim})"
            )
        if dim % tensor.ndim in positions:
            raise RuntimeError(
                f"dim {dim % tensor.ndim} appears multiple times in the list of dims"
            )
        positions.append(dim % tensor.ndim)
    return positions


@takes_out
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: `input` with each element replaced by its product with `other`.

    input, other: of any shape; one with fewer dimensions gets more in front. Dtypes promote. The
    extents of the result are the products of those of both.

    >>> jaxgrad.kron(jaxgrad.tensor([1.0, 10.0]), jaxgrad.tensor([1.0, 2.0]))
    tensor([ 1.,  2., 10., 20.])
    """
    count = max(input.ndim, other.ndim)
    first, second = ((1,) * (count - x.ndim) + tuple(x.shape) for x in (input, other))
    left = ops._unsafe_view(input, [extent for n in first for extent in (n, 1)])
    right = ops._unsafe_view(other, [extent for n in second for extent in (1, n)])
    shape = [n * m for n, m in zip(first, second, strict=True)]
    return ops._unsafe_view(left * right, shape)


@api_boundary
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `input1 @ weight[k] @ input2 + bias[k]` for each k.

    input1: (..., n). input2: (..., m), of the same dimensions `...`. weight: (p, n, m). bias: (p,).
    All of one dtype; the result is (..., p). Raises RuntimeError for other shapes and dtypes.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.nn.functional.bilinear(x, x, jaxgrad.ones(1, 2, 2))
    tensor([9.])
    """
    _check_bilinear(input1, input2, weight, bias)
    shape = (*input1.shape[:-1], weight.shape[0])
    first, second = (x.reshape(-1, x.shape[-1]) for x in (input1, input2))
    product = ops._trilinear(first, weight, second, [1, 3], [0], [1, 2], [2, 3]).reshape(shape)
    return product if bias is None else product + bias


def _check_bilinear(input1, input2, weight, bias):
    tensors = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        listed = ", ".join(f"{name}: {tensor.dtype}" for name, tensor in tensors.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {listed}")
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
    if not input1.ndim:
        raise IndexError("bilinear(): Dimension specified as -1 but tensor has no dimensions")
    for n, (one, two) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if one != two:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {n}: got {one} and {two}"
            )
    for role, got, expected in (
        ("input1", input1.shape[-1], weight.shape[1]),
        ("input2", input2.shape[-1], weight.shape[2]),
        ("bias", weight.shape[0] if bias is None else bias.shape[0], weight.shape[0]),
    ):
        if got != expected:
            raise RuntimeError(
                f"bilinear(): {role} size does not match weight size: got {got} but expected "
                f"{expected}"
            )


@takes_exact_out
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the products of all vectors along the last dimension of both tensors.

    input: (..., n). other: (*, n), of the same dtype. The result is (..., *); a tensor without
    dimensions is a factor. Raises RuntimeError if the last dimensions differ.

    >>> jaxgrad.inner(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([[3.0, 4.0], [5.0, 6.0]]))
    tensor([11., 17.])
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return tensordot(input, other, ([-1], [-1]))


@takes_exact_out
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Return the product of matrices; deprecated, see `linalg.multi_dot`.

    matrices: one or more, each with as many rows as the one before has columns.
    Raises RuntimeError for other shapes.

    >>> import warnings
    >>> x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.chain_matmul(x, x)
    tensor([[ 7., 10.],
            [15., 22.]])
    """
    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
        "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than "
        "multiple parameters.",
        stacklevel=users_stacklevel(),
    )
    for matrix in matrices:
        if matrix.ndim != 2:
            raise RuntimeError(
                f"Tensor dimension is {matrix.ndim}, expected 2 instead. chain_matmul takes "
                "matrices"
            )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


@takes_out
def _int_mm(self, mat2):
    """Return the product of two matrices of int8 in int32.

    >>> jaxgrad._int_mm(*jaxgrad.full((2, 1, 1), 100, dtype=jaxgrad.int8))
    tensor([[10000]], dtype=torch.int32)
    """
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.ndim != 2 or matrix.dtype is not dtypes.int8:
            raise RuntimeError(
                f"Expected {name} to be a matrix of int8, but got shape {list(matrix.shape)} of "
                f"{matrix.dtype}"
            )
    return ops.mm(self.int(), mat2.int())


@takes_out
def _addmm_activation(self, mat1, mat2, *, beta=1, alpha=1, use_gelu=False):
    """Return `relu(addmm(self, mat1, mat2))`, or with `use_gelu` `gelu` of it."""
    product = ops.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return ops.gelu(product) if use_gelu else product.relu()


@takes_out
def _scaled_mm(
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype=None,
    use_fast_accum: bool = False,
) -> Tensor:
    """Return `(input * scale_a) @ (mat2 * scale_b) + bias` of floats of 8 bits, computed in
    float32.

    input: (n, k). mat2: (k, m). scale_a, scale_b: float32, with one element, or (n, 1) and (1, m).
    bias: (m,). out_dtype: that of `input` by default. scale_result and use_fast_accum have no
    effect, as on PyTorch's CPUs. Raises RuntimeError for other shapes of matrices, ValueError for
    other scales and dtypes of matrices.

    >>> x, scale = jaxgrad.ones(2, 2).to(jaxgrad.float8_e4m3fn), jaxgrad.tensor(0.5)
    >>> jaxgrad._scaled_mm(x, x, scale, scale, out_dtype=jaxgrad.float32)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    _check_scaled(input, mat2, scale_a, scale_b)
    is_whole = scale_a.numel() == scale_b.numel() == 1
    scale = scale_a * scale_b
    scale = scale.reshape(()) if is_whole else scale
    product = ops.mm(input.to(dtypes.float32), mat2.to(dtypes.float32)) * scale
    if bias is not None:
        product = product + bias.to(dtypes.float32)
    return product.to(input.dtype if out_dtype is None else out_dtype)


# how the scales of `_scaled_mm_v2` are arranged: one for a matrix, or one for each row
WHOLE, ROWS = 0, 1


@takes_out
def _scaled_mm_v2(
    input: Tensor,
    mat2: Tensor,
    scale_a: list[Tensor],
    recipe_a: list[int],
    swizzle_a: list[int],
    scale_b: list[Tensor],
    recipe_b: list[int],
    swizzle_b: list[int],
    bias: Tensor | None,
    out_dtype,
    contraction_dim=(),
    use_fast_accum: bool = False,
) -> Tensor:
    """Return `_scaled_mm` with the scales in lists of one.

    recipe_a, recipe_b: `[0]` for scales with one element, `[1]` for those of rows. swizzle_a,
    swizzle_b: `[0]` or empty. contraction_dim and use_fast_accum have no effect, as on PyTorch's
    CPUs. Raises ValueError for other recipes, the errors of `_scaled_mm` besides.

    >>> x, scale = jaxgrad.ones(2, 2).to(jaxgrad.float8_e4m3fn), [jaxgrad.tensor(0.5)]
    >>> jaxgrad._scaled_mm_v2(x, x, scale, [0], [0], scale, [0], [0], None, jaxgrad.float32)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    if any((*swizzle_a, *swizzle_b)):
        raise ValueError(f"CPU does not support swizzle, but got {swizzle_a} and {swizzle_b}")
    recipes = list(recipe_a), list(recipe_b)
    if recipes not in (([WHOLE], [WHOLE]), ([ROWS], [ROWS])):
        raise ValueError(
            "Invalid scaling configuration. _scaled_mm_v2 takes the recipes [0] for one scale of a "
            f"matrix, or [1] for one of each row, of both matrices, but got {recipes}"
        )
    (first,), (second,) = scale_a, scale_b
    if recipes[0] == [WHOLE] and not first.numel() == second.numel() == 1:
        raise ValueError("scale_a must have 1 Float element, and so must scale_b, for recipe [0]")
    return _scaled_mm(input, mat2, first, second, bias, None, out_dtype, use_fast_accum)


def _check_scaled(input, mat2, scale_a, scale_b):
    for name, matrix in (("mat1", input), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, but its shape is {list(matrix.shape)}")
    (rows, inner), (other, columns) = input.shape, mat2.shape
    if inner != other:
        raise RuntimeError(
            f"mat_a and mat_b shapes cannot be multiplied ({rows}x{inner} and {other}x{columns})"
        )
    shapes = tuple(scale_a.shape), tuple(scale_b.shape)
    are_scales = scale_a.numel() == scale_b.numel() == 1 or shapes == ((rows, 1), (1, columns))
    are_narrow = all(t.dtype.is_floating_point and t.dtype.itemsize == 1 for t in (input, mat2))
    if not (are_scales and are_narrow and scale_a.dtype is scale_b.dtype is dtypes.float32):
        raise ValueError(
            "Invalid scaling configuration. _scaled_mm takes matrices of float8, and scales of "
            f"float32 with one element or of the shapes ({rows}, 1) and (1, {columns}), but got "
            f"{input.dtype}, {mat2.dtype}, {scale_a.dtype} {shapes[0]}, {scale_b.dtype} {shapes[1]}"
        )


@api_boundary
def _compute_linear_combination(
    input: Tensor, coefficients: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Return linear combinations of tensors.

    input: (n, ...), the tensors; coefficients: (m, n), converted to the dtype of input; out:
    (m, ...), to which they are added, as in PyTorch. Returns (m, ...). Raises RuntimeError for
    other shapes.

    >>> x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> jaxgrad._compute_linear_combination(x, jaxgrad.tensor([[1.0, 10.0]]))
    tensor([[31., 42.]])
    """
    combined = tensordot(coefficients.to(input.dtype), input, 1)
    return combined if out is None else out.add_(combined)
