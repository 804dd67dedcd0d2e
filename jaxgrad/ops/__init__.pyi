# Made by `make stubs`; do not edit.
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from enum import Enum, IntEnum
from types import ModuleType, TracebackType
from typing import Any, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

from numpy.typing import NDArray as _NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True)
_Number: TypeAlias = _bool | _int | _float | _complex

from jaxgrad import (
    Generator,
    Tensor,
    dtype as _dtype,
    memory_format as _memory_format,
)
class _RoiPooling2d_forward_result(NamedTuple):
    output: Tensor
    indices: Tensor
def RoiPooling2d_forward(input: Tensor, rois: Tensor, pooledHeight: _int, pooledWidth: _int, spatialScale: _float, *, out: tuple[Tensor, ...] | None = None) -> _RoiPooling2d_forward_result:
    """Maximum of each of `pooledHeight * pooledWidth` boxes of regions of images, and its index; an empty box gives 0 and -1."""
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Absolute value; the gradient at 0 is 0."""
def abs_(input: Tensor) -> Tensor:
    """Absolute value; the gradient at 0 is 0."""
def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Absolute value; the gradient at 0 is 0."""
def absolute_(input: Tensor) -> Tensor:
    """Absolute value; the gradient at 0 is 0."""
def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse cosine, in radians; the gradient at -1 and 1 is infinite."""
def acos_(input: Tensor) -> Tensor:
    """Inverse cosine, in radians; the gradient at -1 and 1 is infinite."""
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic cosine; the gradient at 1 is infinite."""
def acosh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic cosine; the gradient at 1 is infinite."""
def adaptive_avg_pool2d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor: ...
def adaptive_avg_pool2d_backward(grad_output: Tensor, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `adaptive_avg_pool2d`."""
def adaptive_avg_pool3d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor: ...
def adaptive_avg_pool3d_backward(grad_output: Tensor, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `adaptive_avg_pool3d`."""
class _adaptive_max_pool2d_result(NamedTuple):
    output: Tensor
    indices: Tensor
def adaptive_max_pool2d(input: Tensor, output_size: _int | Sequence[_int], *, out: tuple[Tensor, ...] | None = None) -> _adaptive_max_pool2d_result:
    """Maximum of each of `output_size` bins of an image, and its index; the first of equal elements gets the gradient, and NaN is the greatest number."""
def adaptive_max_pool2d_backward(grad_output: Tensor, input: Tensor, indices: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `adaptive_max_pool2d`; gradients at equal indices add up."""
class _adaptive_max_pool3d_result(NamedTuple):
    output: Tensor
    indices: Tensor
def adaptive_max_pool3d(input: Tensor, output_size: _int | Sequence[_int], *, out: tuple[Tensor, ...] | None = None) -> _adaptive_max_pool3d_result:
    """Maximum of each of `output_size` bins of an volume, and its index; the first of equal elements gets the gradient, and NaN is the greatest number."""
def adaptive_max_pool3d_backward(grad_output: Tensor, input: Tensor, indices: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `adaptive_max_pool3d`; gradients at equal indices add up."""
@overload
def add(input: Tensor, other: Tensor, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum `input + alpha * other`."""
@overload
def add(input: Tensor, other: _Number, alpha: _Number = 1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def add_(input: Tensor, other: Tensor, *, alpha: _Number = 1) -> Tensor:
    """Sum `input + alpha * other`."""
@overload
def add_(input: Tensor, other: _Number, alpha: _Number = 1) -> Tensor: ...
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum of `beta * input` and `alpha` times the sum of the products of the matrices of two batches; a term whose factor is 0 is dropped."""
def addbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """Sum of `beta * input` and `alpha` times the sum of the products of the matrices of two batches; a term whose factor is 0 is dropped."""
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum `input + value * tensor1 / tensor2`."""
def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor:
    """Sum `input + value * tensor1 / tensor2`."""
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum `input + value * tensor1 * tensor2`."""
def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor:
    """Sum `input + value * tensor1 * tensor2`."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum `beta * input + alpha * (mat1 @ mat2)`; a term whose factor is 0 is dropped, NaN included."""
def addmm_(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """Sum `beta * input + alpha * (mat1 @ mat2)`; a term whose factor is 0 is dropped, NaN included."""
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum `beta * input + alpha * (mat @ vec)`; a term whose factor is 0 is dropped, NaN included."""
def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """Sum `beta * input + alpha * (mat @ vec)`; a term whose factor is 0 is dropped, NaN included."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum `beta * input + alpha * outer(vec1, vec2)`; a term whose factor is 0 is dropped, NaN included."""
def addr_(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """Sum `beta * input + alpha * outer(vec1, vec2)`; a term whose factor is 0 is dropped, NaN included."""
def affine_grid_generator(theta: Tensor, size: Sequence[_int], align_corners: _bool = True, *, out: Tensor | None = None) -> Tensor:
    """The places of all pixels under an affine map, a grid for `grid_sampler_2d` and `grid_sampler_3d`."""
def alias(input: Tensor) -> Tensor:
    """View of the same elements with the same shape."""
@overload
def all(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True if every element is nonzero, of all elements or over the dimensions `dim`."""
@overload
def all(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def all(input: Tensor, dim: Sequence[_int] | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
def amax(input: Tensor, dim: _int | Sequence[_int] = ..., keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Greatest element over the dimensions `dim`; ties share the gradient equally."""
def amin(input: Tensor, dim: _int | Sequence[_int] = ..., keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Least element over the dimensions `dim`; ties share the gradient equally."""
class _aminmax_result(NamedTuple):
    min: Tensor
    max: Tensor
def aminmax(input: Tensor, *, dim: _int | None = None, keepdim: _bool = False, out: tuple[Tensor, ...] | None = None) -> _aminmax_result:
    """Least and greatest element, of all or along `dim`; ties share the gradient equally."""
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Argument of a complex number in radians, 0 or pi of a real one; the gradient at 0 and that of real numbers is 0."""
@overload
def any(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True if any element is nonzero, of all elements or over the dimensions `dim`."""
@overload
def any(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def any(input: Tensor, dim: Sequence[_int] | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse cosine, in radians; the gradient at -1 and 1 is infinite."""
def arccos_(input: Tensor) -> Tensor:
    """Inverse cosine, in radians; the gradient at -1 and 1 is infinite."""
def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic cosine; the gradient at 1 is infinite."""
def arccosh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic cosine; the gradient at 1 is infinite."""
def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse sine, in radians; the gradient at -1 and 1 is infinite."""
def arcsin_(input: Tensor) -> Tensor:
    """Inverse sine, in radians; the gradient at -1 and 1 is infinite."""
def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic sine."""
def arcsinh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic sine."""
def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse tangent, in radians."""
def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle of the point with ordinate `input` and abscissa `other`, from -pi to pi; both gradients at the origin are 0."""
def arctan2_(input: Tensor, other: Tensor) -> Tensor:
    """Angle of the point with ordinate `input` and abscissa `other`, from -pi to pi; both gradients at the origin are 0."""
def arctan_(input: Tensor) -> Tensor:
    """Inverse tangent, in radians."""
def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic tangent."""
def arctanh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic tangent."""
def argmax(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Index of the greatest element along `dim`, or in the flattened tensor; the first of several."""
def argmin(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Index of the least element along `dim`, or in the flattened tensor; the first of several."""
@overload
def argsort(input: Tensor, dim: _int = -1, descending: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Indices that sort the elements along `dim`; the order is stable, and NaN is the greatest number."""
@overload
def argsort(input: Tensor, *, stable: _bool, dim: _int = -1, descending: _bool = False, out: Tensor | None = None) -> Tensor: ...
def as_strided(input: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor:
    """View of given sizes, strides and storage offset."""
def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `src` where `as_strided` reads; of elements for one place one is written."""
def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse sine, in radians; the gradient at -1 and 1 is infinite."""
def asin_(input: Tensor) -> Tensor:
    """Inverse sine, in radians; the gradient at -1 and 1 is infinite."""
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic sine."""
def asinh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic sine."""
def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse tangent, in radians."""
def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle of the point with ordinate `input` and abscissa `other`, from -pi to pi; both gradients at the origin are 0."""
def atan2_(input: Tensor, other: Tensor) -> Tensor:
    """Angle of the point with ordinate `input` and abscissa `other`, from -pi to pi; both gradients at the origin are 0."""
def atan_(input: Tensor) -> Tensor:
    """Inverse tangent, in radians."""
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic tangent."""
def atanh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic tangent."""
def avg_pool2d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Mean of each window of an image; means of integers are truncated."""
def avg_pool2d_backward(grad_output: Tensor, input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int], ceil_mode: _bool, count_include_pad: _bool, divisor_override: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `avg_pool2d`."""
def avg_pool3d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Mean of each window of a volume; means of integers are truncated."""
def avg_pool3d_backward(grad_output: Tensor, input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int], ceil_mode: _bool, count_include_pad: _bool, divisor_override: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `avg_pool3d`."""
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum `beta * input + alpha * (batch1 @ batch2)` over batches of matrices; a term whose factor is 0 is dropped, NaN included."""
def baddbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """Sum `beta * input + alpha * (batch1 @ batch2)` over batches of matrices; a term whose factor is 0 is dropped, NaN included."""
def bernoulli(input: Tensor, p: _float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
def bernoulli_(self: Tensor, p: Any = 0.5, generator: Generator | None = None) -> Tensor: ...
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Binary cross entropy of the probabilities `input` and `target`, with logarithms of at least -100; averaged, summed, or for each element."""
def binary_cross_entropy_backward(grad_output: Tensor, input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `binary_cross_entropy`, whose denominator is at least 1e-12."""
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Binary cross entropy of the probability `sigmoid(input)` and `target`, without overflow; averaged, summed, or for each element."""
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bitwise "and" of integers; logical "and" of booleans."""
@overload
def bitwise_and(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_and(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_and_(input: Tensor, other: Tensor) -> Tensor:
    """Bitwise "and" of integers; logical "and" of booleans."""
@overload
def bitwise_and_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def bitwise_and_(input: _Number, other: Tensor) -> Tensor: ...
@overload
def bitwise_left_shift(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Integers with their bits shifted to the left, `input * 2 ** other`, without those that do not fit."""
@overload
def bitwise_left_shift(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_left_shift(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_left_shift_(input: Tensor, other: Tensor) -> Tensor:
    """Integers with their bits shifted to the left, `input * 2 ** other`, without those that do not fit."""
@overload
def bitwise_left_shift_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def bitwise_left_shift_(input: _Number, other: Tensor) -> Tensor: ...
def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bitwise complement of integers; logical negation of booleans."""
def bitwise_not_(input: Tensor) -> Tensor:
    """Bitwise complement of integers; logical negation of booleans."""
@overload
def bitwise_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bitwise "or" of integers; logical "or" of booleans."""
@overload
def bitwise_or(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_or(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_or_(input: Tensor, other: Tensor) -> Tensor:
    """Bitwise "or" of integers; logical "or" of booleans."""
@overload
def bitwise_or_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def bitwise_or_(input: _Number, other: Tensor) -> Tensor: ...
@overload
def bitwise_right_shift(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Integers with their bits shifted to the right, `input / 2 ** other` rounded down."""
@overload
def bitwise_right_shift(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_right_shift(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_right_shift_(input: Tensor, other: Tensor) -> Tensor:
    """Integers with their bits shifted to the right, `input / 2 ** other` rounded down."""
@overload
def bitwise_right_shift_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def bitwise_right_shift_(input: _Number, other: Tensor) -> Tensor: ...
@overload
def bitwise_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bitwise "exclusive or" of integers; logical "exclusive or" of booleans."""
@overload
def bitwise_xor(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_xor(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_xor_(input: Tensor, other: Tensor) -> Tensor:
    """Bitwise "exclusive or" of integers; logical "exclusive or" of booleans."""
@overload
def bitwise_xor_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def bitwise_xor_(input: _Number, other: Tensor) -> Tensor: ...
def block_diag(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Matrix with the given matrices along its diagonal and zeros elsewhere."""
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of the matrices of two batches."""
def broadcast_to(input: Tensor, size: Sequence[_int]) -> Tensor:
    """View broadcast to `size` without copying."""
class _btrifact_result(NamedTuple):
    LU: Tensor
    pivots: Tensor
def btrifact(input: Tensor, pivot: _bool = True, *, out: tuple[Tensor, ...] | None = None) -> _btrifact_result:
    """Packed factors of `A = P L U`; raises LinAlgError for a zero pivot."""
class _btrifact_with_info_result(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor
def btrifact_with_info(input: Tensor, pivot: _bool = True, *, out: tuple[Tensor, ...] | None = None) -> _btrifact_with_info_result:
    """Packed factors of `A = P L U`, with the number of the first pivot that is zero in place of an error."""
def btrisolve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Solution X of `A X = B` by the packed factors of A, with B as first argument."""
@overload
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor:
    """The number of the bucket of each element, buckets being bounded by a sorted sequence."""
@overload
def bucketize(input: _Number, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor: ...
def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the dimension `dim`."""
def cauchy_(self: Tensor, median: _float = 0.0, sigma: _float = 1.0, generator: Generator | None = None) -> Tensor: ...
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Smallest integer not less than each element; the gradient is 0."""
def ceil_(input: Tensor) -> Tensor:
    """Smallest integer not less than each element; the gradient is 0."""
def celu(input: Tensor, alpha: _Number = 1.0, *, out: Tensor | None = None) -> Tensor:
    """Exponential linear unit without a kink at 0, `input` or, where negative, `alpha * (exp(input / alpha) - 1)`."""
def celu_(input: Tensor, alpha: _Number = 1.0) -> Tensor:
    """Exponential linear unit without a kink at 0, `input` or, where negative, `alpha * (exp(input / alpha) - 1)`."""
def channel_shuffle(input: Tensor, groups: _int, *, out: Tensor | None = None) -> Tensor:
    """Channels in another order, one of each of the `groups` in turn."""
def cholesky(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Cholesky factor of a Hermitian positive-definite matrix; the older form of `torch.linalg.cholesky`."""
def cholesky_inverse(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Inverse of the matrix whose Cholesky factor is `input`; the gradient is 0 in the triangle that is not read."""
def cholesky_solve(input: Tensor, input2: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Solution X of `A X = B` by the Cholesky factor of A; the gradient of the factor is 0 in the triangle that is not read."""
def chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` consecutive pieces of equal size along `dim`, the last one smaller if need be, as views."""
@overload
def clamp(input: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements limited to the range from `min` to `max`, and `max` where the bounds cross; at a bound `input` gets the gradient."""
@overload
def clamp(input: Tensor, min: _Number | None = None, max: _Number | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_(input: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Elements limited to the range from `min` to `max`, and `max` where the bounds cross; at a bound `input` gets the gradient."""
@overload
def clamp_(input: Tensor, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...
@overload
def clamp_max(input: Tensor, max: _Number, *, out: Tensor | None = None) -> Tensor:
    """Elements limited from above by `max`; at the bound `input` gets the gradient."""
@overload
def clamp_max(input: Tensor, max: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_max_(input: Tensor, max: _Number) -> Tensor:
    """Elements limited from above by `max`; at the bound `input` gets the gradient."""
@overload
def clamp_max_(input: Tensor, max: Tensor) -> Tensor: ...
@overload
def clamp_min(input: Tensor, min: _Number, *, out: Tensor | None = None) -> Tensor:
    """Elements limited from below by `min`; at the bound `input` gets the gradient."""
@overload
def clamp_min(input: Tensor, min: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_min_(input: Tensor, min: _Number) -> Tensor:
    """Elements limited from below by `min`; at the bound `input` gets the gradient."""
@overload
def clamp_min_(input: Tensor, min: Tensor) -> Tensor: ...
@overload
def clip(input: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements limited to the range from `min` to `max`, and `max` where the bounds cross; at a bound `input` gets the gradient."""
@overload
def clip(input: Tensor, min: _Number | None = None, max: _Number | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clip_(input: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Elements limited to the range from `min` to `max`, and `max` where the bounds cross; at a bound `input` gets the gradient."""
@overload
def clip_(input: Tensor, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...
def clone(input: Tensor, *, memory_format: _memory_format | None = None, out: Tensor | None = None) -> Tensor:
    """Copy of a tensor; the gradient passes through."""
def coalesce(self: Tensor) -> Tensor: ...
def col2im(input: Tensor, output_size: _int | Sequence[_int], kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int], padding: _int | Sequence[_int], stride: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Image that is the sum of windows, given as columns; the transpose of `im2col`."""
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of their real and imaginary parts."""
def concat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the dimension `dim`."""
def concatenate(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the dimension `dim`."""
def conj(input: Tensor) -> Tensor:
    """Complex conjugate; a real tensor is returned itself."""
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex conjugate as a new tensor; a real tensor is returned itself."""
def conj_physical_(input: Tensor) -> Tensor:
    """Complex conjugate as a new tensor; a real tensor is returned itself."""
def constant_pad_nd(input: Tensor, pad: Sequence[_int], value: _Number = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensor extended by `value` at the ends of its last dimensions, or cropped there."""
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Convolution of sequences whose first dimension is time, plus `bias`."""
def conv_tbc_backward(grad_output: Tensor, input: Tensor, weight: Tensor, bias: Tensor, pad: _int, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the input, the weight and the bias of `conv_tbc`."""
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[_int], padding: Sequence[_int], dilation: Sequence[_int], transposed: _bool, output_padding: Sequence[_int], groups: _int, *, out: Tensor | None = None) -> Tensor:
    """Convolution in one to three dimensions, or transposed convolution, plus `bias`; the kernel is not flipped."""
def convolution_backward(grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Sequence[_int] | None, stride: Sequence[_int], padding: Sequence[_int], dilation: Sequence[_int], transposed: _bool, output_padding: Sequence[_int], groups: _int, output_mask: _bool | Sequence[_bool], *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the input, the weight and the bias of `convolution`, None where `output_mask` has False."""
def copy(input: Tensor, src: Tensor, non_blocking: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Elements of `src`, broadcast to the shape and converted to the dtype of `input`."""
def copy_(input: Tensor, src: Tensor, non_blocking: _bool = False) -> Tensor:
    """Elements of `src`, broadcast to the shape and converted to the dtype of `input`."""
@overload
def copysign(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Absolute value of `input` with the sign of `other`; the gradient at 0 is 0."""
@overload
def copysign(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def copysign_(input: Tensor, other: Tensor) -> Tensor:
    """Absolute value of `input` with the sign of `other`; the gradient at 0 is 0."""
@overload
def copysign_(input: Tensor, other: _Number) -> Tensor: ...
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Cosine of an angle in radians."""
def cos_(input: Tensor) -> Tensor:
    """Cosine of an angle in radians."""
def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic cosine."""
def cosh_(input: Tensor) -> Tensor:
    """Hyperbolic cosine."""
@overload
def count_nonzero(input: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Number of nonzero elements, of all or over the dimensions `dim`."""
@overload
def count_nonzero(input: Tensor, dim: Sequence[_int], *, out: Tensor | None = None) -> Tensor: ...
def cross(input: Tensor, other: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Cross product of vectors of three elements along `dim`, without it along the first dimension of extent 3."""
def cross_entropy_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, label_smoothing: _float = 0.0, *, out: Tensor | None = None) -> Tensor:
    """Negative log-softmax of `input` at the target classes, or weighted by class probabilities; averaged, summed, or for each target."""
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: _int = 0, reduction: _int = 0, zero_infinity: _bool = False) -> Tensor: ...
def cudnn_affine_grid_generator(theta: Tensor, N: _int, C: _int, H: _int, W: _int) -> Tensor: ...
def cudnn_batch_norm(input: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor, running_var: Tensor, training: Any, exponential_average_factor: Any, epsilon: Any) -> Any: ...
def cudnn_batch_norm_backward(input: Tensor, grad_output: Any, weight: Tensor, running_mean: Tensor, running_var: Tensor, save_mean: Any, save_var: Any, epsilon: Any) -> Any: ...
def cudnn_convolution(self: Tensor, weight: Tensor, bias: Tensor, padding: _int | Sequence[_int] | _str, stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any, benchmark: _bool = False, deterministic: _bool = False) -> Any: ...
def cudnn_convolution_backward(self: Tensor, grad_output: Any, weight: Tensor, padding: _int | Sequence[_int] | _str, stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any, benchmark: _bool = False, deterministic: _bool = False, output_mask: Any = ...) -> Any: ...
def cudnn_convolution_transpose(self: Tensor, weight: Tensor, bias: Tensor, padding: _int | Sequence[_int] | _str, output_padding: _int | Sequence[_int], stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any, benchmark: _bool = False, deterministic: _bool = False) -> Any: ...
def cudnn_convolution_transpose_backward(self: Tensor, grad_output: Any, weight: Tensor, padding: _int | Sequence[_int] | _str, output_padding: _int | Sequence[_int], stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any, benchmark: _bool = False, deterministic: _bool = False, output_mask: Any = ...) -> Any: ...
def cudnn_grid_sampler(self: Tensor, grid: Tensor) -> Tensor: ...
class _cummax_result(NamedTuple):
    values: Tensor
    indices: Tensor
def cummax(input: Tensor, dim: _int, *, out: tuple[Tensor, ...] | None = None) -> _cummax_result:
    """Running maximum along `dim`, and the index of its last occurrence, which gets the gradient."""
class _cummin_result(NamedTuple):
    values: Tensor
    indices: Tensor
def cummin(input: Tensor, dim: _int, *, out: tuple[Tensor, ...] | None = None) -> _cummin_result:
    """Running minimum along `dim`, and the index of its last occurrence, which gets the gradient."""
def cumprod(input: Tensor, dim: _int, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Running product along the dimension `dim`; the gradient is exact where elements are 0."""
def cumprod_(input: Tensor, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
    """Running product along the dimension `dim`; the gradient is exact where elements are 0."""
def cumsum(input: Tensor, dim: _int, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Running sum along the dimension `dim`."""
def cumsum_(input: Tensor, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
    """Running sum along the dimension `dim`."""
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angles in radians, of angles in degrees."""
def deg2rad_(input: Tensor) -> Tensor:
    """Angles in radians, of angles in degrees."""
def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Determinant of square matrices, as `linalg.det`."""
def detach(input: Tensor) -> Tensor:
    """The same elements without their history; no gradient passes through."""
def diag(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrix with a vector on a diagonal, or the diagonal of a matrix as a new vector."""
def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *, out: Tensor | None = None) -> Tensor:
    """Matrices in the dimensions `dim1` and `dim2` with the last dimension of `input` on a diagonal, zeros elsewhere."""
def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """Diagonal of the dimensions `dim1` and `dim2` as a view, in the last dimension; `offset` > 0 is above the main one."""
def diagonal_backward(grad_output: Tensor, input_sizes: Sequence[_int], offset: _int, dim1: _int, dim2: _int, *, out: Tensor | None = None) -> Tensor:
    """Zeros of shape `input_sizes` with `grad_output` on a diagonal."""
def diagonal_scatter(input: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `src` on a diagonal."""
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Derivative of `lgamma`; infinite at 0, and NaN at -1, -2, and so on."""
def digamma_(input: Tensor) -> Tensor:
    """Derivative of `lgamma`; infinite at 0, and NaN at -1, -2, and so on."""
def dist(input: Tensor, other: Tensor, p: _float = 2, *, out: Tensor | None = None) -> Tensor:
    """Norm of order `p` of the difference of two tensors; where it is 0 the gradient is 0."""
@overload
def div(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Quotient `input / other`; with `rounding_mode` "trunc" or "floor" it is rounded, and its gradients are 0."""
@overload
def div(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def div(input: Tensor, other: Tensor, *, rounding_mode: _str | None, out: Tensor | None = None) -> Tensor: ...
@overload
def div(input: Tensor, other: _Number, *, rounding_mode: _str | None, out: Tensor | None = None) -> Tensor: ...
@overload
def div_(input: Tensor, other: Tensor) -> Tensor:
    """Quotient `input / other`; with `rounding_mode` "trunc" or "floor" it is rounded, and its gradients are 0."""
@overload
def div_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def div_(input: Tensor, other: Tensor, *, rounding_mode: _str | None) -> Tensor: ...
@overload
def div_(input: Tensor, other: _Number, *, rounding_mode: _str | None) -> Tensor: ...
@overload
def divide(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Quotient `input / other`; with `rounding_mode` "trunc" or "floor" it is rounded, and its gradients are 0."""
@overload
def divide(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def divide(input: Tensor, other: Tensor, *, rounding_mode: _str | None, out: Tensor | None = None) -> Tensor: ...
@overload
def divide(input: Tensor, other: _Number, *, rounding_mode: _str | None, out: Tensor | None = None) -> Tensor: ...
@overload
def divide_(input: Tensor, other: Tensor) -> Tensor:
    """Quotient `input / other`; with `rounding_mode` "trunc" or "floor" it is rounded, and its gradients are 0."""
@overload
def divide_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def divide_(input: Tensor, other: Tensor, *, rounding_mode: _str | None) -> Tensor: ...
@overload
def divide_(input: Tensor, other: _Number, *, rounding_mode: _str | None) -> Tensor: ...
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of the products of the elements of two vectors, neither conjugated."""
class _eig_result(NamedTuple):
    values: Tensor
    vectors: Tensor
def eig(input: Tensor, eigenvectors: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _eig_result:
    """Eigenvalues and eigenvectors in real numbers, as LAPACK packs them; the name of 2018."""
def elu(input: Tensor, alpha: _Number = 1, scale: _Number = 1, input_scale: _Number = 1, *, out: Tensor | None = None) -> Tensor:
    """Exponential linear unit, `scale * input` or, where negative, `alpha * scale * (exp(input_scale * input) - 1)`."""
def elu_(input: Tensor, alpha: _Number = 1, scale: _Number = 1, input_scale: _Number = 1) -> Tensor:
    """Exponential linear unit, `scale * input` or, where negative, `alpha * scale * (exp(input_scale * input) - 1)`."""
def elu_backward(grad_output: Tensor, alpha: _Number, scale: _Number, input_scale: _Number, is_result: _bool, self_or_result: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `elu` from its input, or from its output if `is_result`."""
def embedding(weight: Tensor, indices: Tensor, padding_idx: _int = -1, scale_grad_by_freq: _bool = False, sparse: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Rows of a table at indices; the row `padding_idx` gets no gradient, and with `scale_grad_by_freq` others theirs divided by their lookups."""
def embedding_dense_backward(grad_output: Tensor, indices: Tensor, num_weights: _int, padding_idx: _int, scale_grad_by_freq: _bool, *, out: Tensor | None = None) -> Tensor:
    """Gradient of the table in `embedding`."""
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: _float, norm_type: _float) -> Tensor:
    """A table whose rows at indices are scaled to a norm of at most `max_norm`; `embedding_renorm_` is the in-place form."""
@overload
def eq(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` equals `other`."""
@overload
def eq(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def eq_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` equals `other`."""
@overload
def eq_(input: Tensor, other: _Number) -> Tensor: ...
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Error function."""
def erf_(input: Tensor) -> Tensor:
    """Error function."""
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complementary error function, `1 - erf(input)`, accurate for large elements."""
def erfc_(input: Tensor) -> Tensor:
    """Complementary error function, `1 - erf(input)`, accurate for large elements."""
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse of the error function."""
def erfinv_(input: Tensor) -> Tensor:
    """Inverse of the error function."""
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Exponential function."""
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Power of two, `2 ** input`."""
def exp2_(input: Tensor) -> Tensor:
    """Power of two, `2 ** input`."""
def exp_(input: Tensor) -> Tensor:
    """Exponential function."""
def expand(input: Tensor, size: Sequence[_int], *, implicit: _bool = False) -> Tensor:
    """View broadcast to `size` without copying; -1 keeps a size."""
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """View broadcast to the shape of `other` without copying."""
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Exponential minus one, `exp(input) - 1`, accurate near 0."""
def expm1_(input: Tensor) -> Tensor:
    """Exponential minus one, `exp(input) - 1`, accurate near 0."""
def exponential_(self: Tensor, lambd: _float = 1.0, generator: Generator | None = None) -> Tensor: ...
def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: _int, quant_min: _int, quant_max: _int, *, out: Tensor | None = None) -> Tensor:
    """Elements rounded to multiples of the scale of their channel; the gradient passes where they are within the range."""
@overload
def fake_quantize_per_tensor_affine(input: Tensor, scale: _float, zero_point: _int, quant_min: _int, quant_max: _int, *, out: Tensor | None = None) -> Tensor:
    """Elements rounded to multiples of `scale` that integers stand for; the gradient passes where they are within the range."""
@overload
def fake_quantize_per_tensor_affine(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: _int, quant_max: _int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def fill(input: Tensor, value: _Number, *, out: Tensor | None = None) -> Tensor:
    """One value in the shape and dtype of `input`."""
@overload
def fill(input: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def fill_(input: Tensor, value: _Number) -> Tensor:
    """One value in the shape and dtype of `input`."""
@overload
def fill_(input: Tensor, value: Tensor) -> Tensor: ...
def fill_diagonal_(input: Tensor, fill_value: _Number, wrap: _bool = False) -> Tensor:
    """Copy of `input` with a number on the main diagonal; in a tall matrix it starts again below if `wrap`."""
def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Integer part, rounded toward 0; the gradient is 0."""
def fix_(input: Tensor) -> Tensor:
    """Integer part, rounded toward 0; the gradient is 0."""
def flatten(input: Tensor, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` merged into one; the tensor itself if there is one."""
def flip(input: Tensor, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Elements in reverse order along the dimensions `dims`."""
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Greatest integer not greater than each element; the gradient is 0."""
def floor_(input: Tensor) -> Tensor:
    """Greatest integer not greater than each element; the gradient is 0."""
@overload
def floor_divide(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Quotient rounded down to an integer; the gradients are 0."""
@overload
def floor_divide(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def floor_divide_(input: Tensor, other: Tensor) -> Tensor:
    """Quotient rounded down to an integer; the gradients are 0."""
@overload
def floor_divide_(input: Tensor, other: _Number) -> Tensor: ...
def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Greater of two elements, of a number and NaN the number; a tie gives the gradient to `input`."""
def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Lesser of two elements, of a number and NaN the number; a tie gives the gradient to `input`."""
@overload
def fmod(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor:
    """Remainder of division, with the sign of `input`; the gradient of `other` is `-grad * trunc(input / other)`."""
@overload
def fmod(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def fmod_(input: Tensor, other: _Number) -> Tensor:
    """Remainder of division, with the sign of `input`; the gradient of `other` is `-grad * trunc(input / other)`."""
@overload
def fmod_(input: Tensor, other: Tensor) -> Tensor: ...
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Fractional part `input - trunc(input)`; the derivative is 1 everywhere."""
def frac_(input: Tensor) -> Tensor:
    """Fractional part `input - trunc(input)`; the derivative is 1 everywhere."""
class _fractional_max_pool2d_result(NamedTuple):
    output: Tensor
    indices: Tensor
def fractional_max_pool2d(input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int], random_samples: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _fractional_max_pool2d_result:
    """Maximum of each of `output_size` windows that random samples place in an image, and its index; the first of equal elements gets the gradient."""
def fractional_max_pool2d_backward(grad_output: Tensor, input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int], indices: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `fractional_max_pool2d`; gradients at equal indices add up."""
class _fractional_max_pool3d_result(NamedTuple):
    output: Tensor
    indices: Tensor
def fractional_max_pool3d(input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int], random_samples: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _fractional_max_pool3d_result:
    """Maximum of each of `output_size` windows that random samples place in an volume, and its index; the first of equal elements gets the gradient."""
def fractional_max_pool3d_backward(grad_output: Tensor, input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int], indices: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `fractional_max_pool3d`; gradients at equal indices add up."""
class _frexp_result(NamedTuple):
    mantissa: Tensor
    exponent: Tensor
def frexp(input: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _frexp_result:
    """Mantissa with an absolute value from 0.5 to 1 and exponent, so that `input` is `mantissa * 2 ** exponent`."""
def gather(input: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = False, out: Tensor | None = None) -> Tensor:
    """Elements at the indices along `dim`, one index for each element of the result."""
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Greatest common divisor, not negative."""
def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """Greatest common divisor, not negative."""
@overload
def ge(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` is greater than or equal to `other`."""
@overload
def ge(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ge_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` is greater than or equal to `other`."""
@overload
def ge_(input: Tensor, other: _Number) -> Tensor: ...
class _gels_result(NamedTuple):
    solution: Tensor
    QR: Tensor
def gels(input: Tensor, A: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _gels_result:
    """Solution of least squares, or of least norm if A is wide, with B as first argument; A must have full rank."""
def gelu(input: Tensor, *, approximate: _str = 'none', out: Tensor | None = None) -> Tensor:
    """Gaussian error linear unit `input * Phi(input)`, Phi the normal distribution function, or its approximation by tanh."""
def gelu_backward(grad_output: Tensor, input: Tensor, *, approximate: _str = 'none', out: Tensor | None = None) -> Tensor:
    """Gradient of `gelu`."""
def geometric_(self: Tensor, p: _float, generator: Generator | None = None) -> Tensor: ...
class _geqrf_result(NamedTuple):
    a: Tensor
    tau: Tensor
def geqrf(input: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _geqrf_result:
    """QR factorization as a product of reflections `1 - tau v v^H`; the first min(m, n) columns must be independent for a gradient."""
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix of the products of each element of `input` with each element of `vec2`."""
class _gesv_result(NamedTuple):
    solution: Tensor
    LU: Tensor
def gesv(input: Tensor, A: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _gesv_result:
    """Solution X of `A X = B`, with B as first argument, and the factors of A, which have no gradient."""
def glu(input: Tensor, dim: _int = -1, *, out: Tensor | None = None) -> Tensor:
    """First half of `input` along `dim` times the sigmoid of the second half."""
def glu_backward(grad_output: Tensor, input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `glu`."""
@overload
def greater(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` is greater than `other`."""
@overload
def greater(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def greater_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` is greater than `other`."""
@overload
def greater_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def greater_equal(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` is greater than or equal to `other`."""
@overload
def greater_equal(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def greater_equal_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` is greater than or equal to `other`."""
@overload
def greater_equal_(input: Tensor, other: _Number) -> Tensor: ...
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor: ...
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool = True, *, out: Tensor | None = None) -> Tensor:
    """Images read at the places of a grid; the gradient of a place beyond the border is 0 with `padding_mode` 1."""
def grid_sampler_2d_backward(grad_output: Tensor, input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool = True, output_mask: _bool | Sequence[_bool] = ..., *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """Gradients of `grid_sampler_2d` with respect to `input` and `grid`; those that `output_mask` leaves out are zeros."""
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool = True, *, out: Tensor | None = None) -> Tensor:
    """Volumes read at the places of a grid; the gradient of a place beyond the border is 0 with `padding_mode` 1."""
def grid_sampler_3d_backward(grad_output: Tensor, input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool = True, output_mask: _bool | Sequence[_bool] = ..., *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """Gradients of `grid_sampler_3d` with respect to `input` and `grid`; those that `output_mask` leaves out are zeros."""
@overload
def gt(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` is greater than `other`."""
@overload
def gt(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def gt_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` is greater than `other`."""
@overload
def gt_(input: Tensor, other: _Number) -> Tensor: ...
def hardshrink(input: Tensor, lambd: _Number = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Elements, 0 in place of those from `-lambd` to `lambd`; the gradient at both bounds is 0."""
def hardshrink_backward(grad_out: Tensor, input: Tensor, lambd: _Number, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `hardshrink`, 0 where `abs(input)` is at most `lambd`."""
def hardsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Piecewise linear sigmoid, `min(max(input + 3, 0), 6) / 6`; the gradient at -3 and 3 is 0."""
def hardsigmoid_(input: Tensor) -> Tensor:
    """Piecewise linear sigmoid, `min(max(input + 3, 0), 6) / 6`; the gradient at -3 and 3 is 0."""
def hardsigmoid_backward(grad_output: Tensor, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `hardsigmoid`."""
def hardswish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product `input * hardsigmoid(input)`; the gradient at -3 is 0 and at 3 it is 1."""
def hardswish_(input: Tensor) -> Tensor:
    """Product `input * hardsigmoid(input)`; the gradient at -3 is 0 and at 3 it is 1."""
def hardswish_backward(grad_output: Tensor, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `hardswish`."""
def hardtanh(input: Tensor, min_val: _Number = -1, max_val: _Number = 1, *, out: Tensor | None = None) -> Tensor:
    """Elements limited to the range from `min_val` to `max_val`; the gradient at both bounds is 0."""
def hardtanh_(input: Tensor, min_val: _Number = -1, max_val: _Number = 1) -> Tensor:
    """Elements limited to the range from `min_val` to `max_val`; the gradient at both bounds is 0."""
def hardtanh_backward(grad_output: Tensor, input: Tensor, min_val: _Number, max_val: _Number, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `hardtanh`, `grad_output` strictly between the bounds, else 0."""
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Step function, 0 for negative and 1 for positive elements, `values` at 0; the gradient of `input` is 0."""
def heaviside_(input: Tensor, values: Tensor) -> Tensor:
    """Step function, 0 for negative and 1 for positive elements, `values` at 0; the gradient of `input` is 0."""
def histc(input: Tensor, bins: _int = 100, min: _Number = 0, max: _Number = 0, *, out: Tensor | None = None) -> Tensor:
    """Number of elements in each of `bins` bins of one width; elements outside, and NaN, count nowhere."""
class _histogram_result(NamedTuple):
    hist: Tensor
    bin_edges: Tensor
@overload
def histogram(input: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: _bool = False, out: tuple[Tensor, ...] | None = None) -> _histogram_result:
    """Number of elements in each bin, or the sum of their weights, and the edges of the bins; the counts have the gradient 0."""
@overload
def histogram(input: Tensor, bins: _int = 100, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, out: tuple[Tensor, ...] | None = None) -> _histogram_result: ...
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the second dimension, vectors along the first."""
def huber_loss(input: Tensor, target: Tensor, reduction: _int = 1, delta: _float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """Half the square of the difference, and `delta * (difference - delta / 2)` where it is above `delta`; averaged, summed, or for each element."""
def huber_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: _int, delta: _float, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `huber_loss`."""
def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hypotenuse `sqrt(input ** 2 + other ** 2)`, without overflow; the gradients at the origin are NaN."""
def hypot_(input: Tensor, other: Tensor) -> Tensor:
    """Hypotenuse `sqrt(input ** 2 + other ** 2)`, without overflow; the gradients at the origin are NaN."""
def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind, of order 0."""
def i0_(input: Tensor) -> Tensor:
    """Modified Bessel function of the first kind, of order 0."""
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Regularized lower incomplete gamma function of order `input`, the integral of `t ** (input - 1) * exp(-t) / gamma(input)` from 0 to `other`."""
def igamma_(input: Tensor, other: Tensor) -> Tensor:
    """Regularized lower incomplete gamma function of order `input`, the integral of `t ** (input - 1) * exp(-t) / gamma(input)` from 0 to `other`."""
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Regularized upper incomplete gamma function of order `input`, `1 - igamma(input, other)`, accurate where it is small."""
def igammac_(input: Tensor, other: Tensor) -> Tensor:
    """Regularized upper incomplete gamma function of order `input`, `1 - igamma(input, other)`, accurate where it is small."""
def im2col(input: Tensor, kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int], padding: _int | Sequence[_int], stride: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Windows of an image as columns."""
def imag(input: Tensor) -> Tensor:
    """Imaginary part of a complex tensor, as a view."""
def index(input: Tensor, indices: Sequence[Tensor | None], *, out: Tensor | None = None) -> Tensor:
    """Elements at the positions that index tensors name, one tensor for each indexed dimension, broadcast together."""
def index_add(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum of `input` and `alpha` times the slices of `source`, each added at its index of `dim`."""
def index_add_(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: _Number = 1) -> Tensor:
    """Sum of `input` and `alpha` times the slices of `source`, each added at its index of `dim`."""
def index_copy(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with slices of `source` at indices of `dim`; of duplicates one is written, and each gets the gradient."""
def index_copy_(input: Tensor, dim: _int, index: Tensor, source: Tensor) -> Tensor:
    """Copy of `input` with slices of `source` at indices of `dim`; of duplicates one is written, and each gets the gradient."""
@overload
def index_fill(input: Tensor, dim: _int, index: Tensor, value: _Number, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `value` in the slices at indices of `dim`."""
@overload
def index_fill(input: Tensor, dim: _int, index: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def index_fill_(input: Tensor, dim: _int, index: Tensor, value: _Number) -> Tensor:
    """Copy of `input` with `value` in the slices at indices of `dim`."""
@overload
def index_fill_(input: Tensor, dim: _int, index: Tensor, value: Tensor) -> Tensor: ...
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `values` at indexed positions; duplicates add up under `accumulate`, else one of them is written."""
def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
    """Copy of `input` with `values` at indexed positions; duplicates add up under `accumulate`, else one of them is written."""
def index_reduce(input: Tensor, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with the slices of `source` reduced into it at indices of `dim`; equal maxima and minima share the gradient."""
def index_reduce_(input: Tensor, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor:
    """Copy of `input` with the slices of `source` reduced into it at indices of `dim`; equal maxima and minima share the gradient."""
def index_select(input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Slices of `dim` at the indices of a vector."""
def indices(self: Tensor) -> Tensor: ...
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse of a square matrix."""
def isclose(input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """True where two elements are equal or differ by at most `atol + rtol * abs(other)`."""
def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where an element is neither infinite nor NaN."""
@overload
def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None) -> Tensor:
    """True where an element is among the test elements, or with `invert` where it is not."""
@overload
def isin(elements: Tensor, test_element: _Number, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def isin(element: _Number, test_elements: Tensor, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None) -> Tensor: ...
def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where an element is infinite."""
def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where an element is NaN."""
def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where an element is negative infinity."""
def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where an element is positive infinity."""
def isreal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where the imaginary part is zero, so for every real element."""
def kl_div(input: Tensor, target: Tensor, reduction: _int = 1, *, log_target: _bool = False, out: Tensor | None = None) -> Tensor:
    """Pointwise Kullback-Leibler divergence `target * (log(target) - input)` of log-probabilities `input`; averaged, summed, or for each element."""
def kl_div_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `kl_div` of 2018, 0 where `target` is not positive."""
class _kthvalue_result(NamedTuple):
    values: Tensor
    indices: Tensor
def kthvalue(input: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _kthvalue_result:
    """The `k`-th least element along `dim` and its index; of equal elements the index alone gets the gradient."""
def l1_loss(input: Tensor, target: Tensor, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Absolute difference of `input` and `target`, averaged, summed, or for each element; where they are equal the gradient is 0."""
def l1_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `l1_loss`, 0 where `input` equals `target`."""
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Least common multiple, not negative."""
def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """Least common multiple, not negative."""
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product `input * 2 ** other`."""
def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """Product `input * 2 ** other`."""
@overload
def le(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` is less than or equal to `other`."""
@overload
def le(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def le_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` is less than or equal to `other`."""
@overload
def le_(input: Tensor, other: _Number) -> Tensor: ...
def leaky_relu(input: Tensor, negative_slope: _Number = 0.01, *, out: Tensor | None = None) -> Tensor:
    """Elements, the negative ones multiplied by `negative_slope`; the derivative at 0 is `negative_slope`."""
def leaky_relu_(input: Tensor, negative_slope: _Number = 0.01) -> Tensor:
    """Elements, the negative ones multiplied by `negative_slope`; the derivative at 0 is `negative_slope`."""
def leaky_relu_backward(grad_output: Tensor, input: Tensor, negative_slope: _Number, self_is_result: _bool, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `leaky_relu` from its input, or from its output if `self_is_result`."""
@overload
def lerp(input: Tensor, end: Tensor, weight: _Number, *, out: Tensor | None = None) -> Tensor:
    """Linear interpolation `input + weight * (end - input)`."""
@overload
def lerp(input: Tensor, end: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def lerp_(input: Tensor, end: Tensor, weight: _Number) -> Tensor:
    """Linear interpolation `input + weight * (end - input)`."""
@overload
def lerp_(input: Tensor, end: Tensor, weight: Tensor) -> Tensor: ...
@overload
def less(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` is less than `other`."""
@overload
def less(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def less_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` is less than `other`."""
@overload
def less_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def less_equal(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` is less than or equal to `other`."""
@overload
def less_equal(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def less_equal_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` is less than or equal to `other`."""
@overload
def less_equal_(input: Tensor, other: _Number) -> Tensor: ...
def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, and so on."""
def lgamma_(input: Tensor) -> Tensor:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, and so on."""
class _linalg_cholesky_ex_result(NamedTuple):
    L: Tensor
    info: Tensor
def linalg_cholesky_ex(input: Tensor, *, upper: _bool = False, check_errors: _bool = False, out: tuple[Tensor, ...] | None = None) -> _linalg_cholesky_ex_result:
    """Cholesky factor L of a Hermitian positive-definite matrix, `A = L L^H`, and the order of the first minor that is not positive; the gradient is Hermitian."""
def linalg_cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """Cross product of vectors of three elements along `dim`."""
def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Determinant of square matrices; the gradient is the matrix of cofactors, of singular matrices too."""
class _linalg_eig_result(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor
def linalg_eig(input: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _linalg_eig_result:
    """Eigenvalues of square matrices, and unit eigenvectors as columns; a loss must not depend on their phase."""
class _linalg_eigh_result(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor
def linalg_eigh(input: Tensor, UPLO: _str = 'L', *, out: tuple[Tensor, ...] | None = None) -> _linalg_eigh_result:
    """Eigenvalues of Hermitian matrices in ascending order, and eigenvectors as columns; a loss must not depend on their phase."""
def linalg_eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of square matrices; one of several equal eigenvalues has no derivative."""
def linalg_eigvalsh(input: Tensor, UPLO: _str = 'L', *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of Hermitian matrices in ascending order; the gradient of equal ones is one of the possible ones."""
def linalg_householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """First n columns of a product of reflections `1 - tau v v^H`, as `torch.geqrf` packs them."""
class _linalg_inv_ex_result(NamedTuple):
    inverse: Tensor
    info: Tensor
def linalg_inv_ex(A: Tensor, *, check_errors: _bool = False, out: tuple[Tensor, ...] | None = None) -> _linalg_inv_ex_result:
    """Inverse of a square matrix, with the number of the first pivot that is zero in place of an error."""
class _linalg_ldl_factor_ex_result(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor
def linalg_ldl_factor_ex(input: Tensor, *, hermitian: _bool = False, check_errors: _bool = False, out: tuple[Tensor, ...] | None = None) -> _linalg_ldl_factor_ex_result:
    """Packed factors of `A = P L D L^T P^T`, or with `L^H` if Hermitian, where D has blocks of one or two rows; the gradient is symmetric or Hermitian."""
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """Solution X of `A X = B` by the packed factors that `torch.linalg.ldl_factor` returns."""
class _linalg_lstsq_result(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
def linalg_lstsq(input: Tensor, b: Tensor, rcond: _float | None = None, *, driver: _str | None = None, out: tuple[Tensor, ...] | None = None) -> _linalg_lstsq_result:
    """Solution of least norm among those that minimize the norm of `A X - B`; the gradient is that of constant rank."""
class _linalg_lu_result(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor
def linalg_lu(A: Tensor, *, pivot: _bool = True, out: tuple[Tensor, ...] | None = None) -> _linalg_lu_result:
    """Factors of `A = P L U`, a permutation, a unit lower triangle and an upper one; the last pivot may be zero for a gradient, unless A is tall."""
class _linalg_lu_factor_ex_result(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor
def linalg_lu_factor_ex(A: Tensor, *, pivot: _bool = True, check_errors: _bool = False, out: tuple[Tensor, ...] | None = None) -> _linalg_lu_factor_ex_result:
    """Packed factors of `A = P L U`, and the number of the first zero pivot; the last pivot may be zero for a gradient, unless A is tall."""
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: _bool = True, adjoint: _bool = False, out: Tensor | None = None) -> Tensor:
    """Solution X of `A X = B`, or `A^H X = B`, by the packed factors of A."""
def linalg_matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of matrices or vectors in the last two dimensions; the others are batches and broadcast."""
def linalg_matrix_exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Exponential of square matrices."""
@overload
def linalg_pinv(input: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """Pseudoinverse of matrices; the gradient is that along which the rank stays the same."""
@overload
def linalg_pinv(input: Tensor, *, atol: _float | None = None, rtol: _float | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_pinv(input: Tensor, rcond: _float, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_pinv(input: Tensor, rcond: Tensor, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
class _linalg_qr_result(NamedTuple):
    Q: Tensor
    R: Tensor
def linalg_qr(A: Tensor, mode: _str = 'reduced', *, out: tuple[Tensor, ...] | None = None) -> _linalg_qr_result:
    """Factors of `A = Q R`, orthonormal columns and an upper triangle, with LAPACK's signs; the first min(m, n) columns must be independent for a gradient."""
class _linalg_slogdet_result(NamedTuple):
    sign: Tensor
    logabsdet: Tensor
def linalg_slogdet(A: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _linalg_slogdet_result:
    """Sign of the determinant, of complex matrices its phase, and logarithm of its absolute value, -inf for singular matrices."""
def linalg_solve_triangular(input: Tensor, B: Tensor, *, upper: _bool, left: _bool = True, unitriangular: _bool = False, out: Tensor | None = None) -> Tensor:
    """Solution X of `A X = B` with a triangular matrix; the gradient of A is 0 where it is not read."""
class _linalg_svd_result(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor
def linalg_svd(A: Tensor, full_matrices: _bool = True, *, driver: _str | None = None, out: tuple[Tensor, ...] | None = None) -> _linalg_svd_result:
    """Singular value decomposition `U diag(S) Vh`; a loss must not depend on the phase of singular vectors."""
def linalg_svdvals(A: Tensor, *, driver: _str | None = None, out: Tensor | None = None) -> Tensor:
    """Singular values, in descending order; the gradient of equal or zero singular values is one of the possible ones."""
def linalg_vector_norm(input: Tensor, ord: _float = 2, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Norm of order `ord` of the elements, of all or over the dimensions `dim`; where it is 0 the gradient is 0."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """Affine map `input @ weight.T + bias`."""
def load(path: Any, namespace: _str = 'my', functions: Any = None) -> Any: ...
def load_library(path: Any) -> None: ...
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Natural logarithm."""
def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm to base 10."""
def log10_(input: Tensor) -> Tensor:
    """Logarithm to base 10."""
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Natural logarithm of `1 + input`, accurate near 0."""
def log1p_(input: Tensor) -> Tensor:
    """Natural logarithm of `1 + input`, accurate near 0."""
def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm to base 2."""
def log2_(input: Tensor) -> Tensor:
    """Logarithm to base 2."""
def log_(input: Tensor) -> Tensor:
    """Natural logarithm."""
def log_normal_(self: Tensor, mean: _float = 1.0, std: _float = 2.0, generator: Generator | None = None) -> Tensor: ...
def log_sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the logistic function, without overflow."""
def log_sigmoid_backward(grad_output: Tensor, input: Tensor, buffer: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `log_sigmoid`; `buffer` is not read."""
class _log_sigmoid_forward_result(NamedTuple):
    output: Tensor
    buffer: Tensor
def log_sigmoid_forward(input: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _log_sigmoid_forward_result:
    """Logarithm of the logistic function, and the buffer `exp(-abs(input))`, which PyTorch keeps for the backward pass."""
def log_softmax(input: Tensor, dim: _int, dtype: _dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the softmax along `dim`, without overflow."""
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the sum of exponentials, `log(exp(input) + exp(other))`, without overflow."""
def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm to base 2 of a sum of powers, `log2(2 ** input + 2 ** other)`, without overflow."""
def logcumsumexp(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the running sum of exponentials along `dim`, without overflow."""
def logdet(input: Tensor) -> Tensor: ...
def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where both elements are nonzero."""
def logical_and_(input: Tensor, other: Tensor) -> Tensor:
    """True where both elements are nonzero."""
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where an element is zero."""
def logical_not_(input: Tensor) -> Tensor:
    """True where an element is zero."""
def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where at least one of two elements is nonzero."""
def logical_or_(input: Tensor, other: Tensor) -> Tensor:
    """True where at least one of two elements is nonzero."""
def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where exactly one of two elements is nonzero."""
def logical_xor_(input: Tensor, other: Tensor) -> Tensor:
    """True where exactly one of two elements is nonzero."""
def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `sigmoid`, `log(input / (1 - input))`; with `eps` of elements limited to the range from `eps` to `1 - eps`."""
def logit_(input: Tensor, eps: _float | None = None) -> Tensor:
    """Inverse of `sigmoid`, `log(input / (1 - input))`; with `eps` of elements limited to the range from `eps` to `1 - eps`."""
def logsumexp(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the sum of exponentials over the dimensions `dim`, without overflow."""
@overload
def lt(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` is less than `other`."""
@overload
def lt(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def lt_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` is less than `other`."""
@overload
def lt_(input: Tensor, other: _Number) -> Tensor: ...
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Solution X of `A X = B` by the packed factors of A, with B as first argument."""
class _lu_unpack_result(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: tuple[Tensor, ...] | None = None) -> _lu_unpack_result:
    """Factors P, L and U of packed ones, as `torch.linalg.lu_factor` returns them."""
@overload
def masked_fill(input: Tensor, mask: Tensor, value: _Number, *, out: Tensor | None = None) -> Tensor:
    """Elements with `value` where `mask` is true."""
@overload
def masked_fill(input: Tensor, mask: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def masked_fill_(input: Tensor, mask: Tensor, value: _Number) -> Tensor:
    """Elements with `value` where `mask` is true."""
@overload
def masked_fill_(input: Tensor, mask: Tensor, value: Tensor) -> Tensor: ...
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with consecutive elements of `source` where `mask` is true."""
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Copy of `input` with consecutive elements of `source` where `mask` is true."""
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of matrices or vectors in the last two dimensions; the others are batches and broadcast."""
def matrix_exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Exponential of square matrices."""
class _max_result(NamedTuple):
    values: Tensor
    indices: Tensor
@overload
def max(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _max_result:
    """Greatest element, or that of each slice along `dim` with its index, or that of two tensors; only along `dim` ties do not share the gradient, the first gets it."""
@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
class _max_pool2d_with_indices_result(NamedTuple):
    output: Tensor
    indices: Tensor
def max_pool2d_with_indices(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _max_pool2d_with_indices_result:
    """Maximum of each window of an image, and its index in the plane; the first of equal elements gets the gradient, and NaN is the greatest number."""
def max_pool2d_with_indices_backward(grad_output: Tensor, input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int], dilation: _int | Sequence[_int], ceil_mode: _bool, indices: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `max_pool2d_with_indices`; gradients at equal indices add up."""
class _max_pool3d_with_indices_result(NamedTuple):
    output: Tensor
    indices: Tensor
def max_pool3d_with_indices(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _max_pool3d_with_indices_result:
    """Maximum of each window of a volume, and its index in it; the first of equal elements gets the gradient, and NaN is the greatest number."""
def max_pool3d_with_indices_backward(grad_output: Tensor, input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int], dilation: _int | Sequence[_int], ceil_mode: _bool, indices: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `max_pool3d_with_indices`; gradients at equal indices add up."""
def max_unpool2d(input: Tensor, indices: Tensor, output_size: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Zeros with the elements of `input` at their indices in each plane; of equal indices the last is written, and each gets the gradient."""
def max_unpool2d_backward(grad_output: Tensor, input: Tensor, indices: Tensor, output_size: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Gradient of `max_unpool2d`, the elements of `grad_output` at indices in each plane."""
def max_unpool3d(input: Tensor, indices: Tensor, output_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Zeros with the elements of `input` at their indices in each volume; of equal indices the last is written, and each gets the gradient."""
def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Greater of two elements, NaN if one is NaN; a tie gives half of the gradient to each."""
@overload
def mean(input: Tensor, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Mean of all elements, or over the dimensions `dim`."""
@overload
def mean(input: Tensor, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
class _median_result(NamedTuple):
    values: Tensor
    indices: Tensor
@overload
def median(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Median of all elements, the lower one of two, or along `dim` with its index; NaN if an element is. Only without `dim` ties share the gradient."""
@overload
def median(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _median_result: ...
class _min_result(NamedTuple):
    values: Tensor
    indices: Tensor
@overload
def min(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _min_result:
    """Least element, or that of each slice along `dim` with its index, or that of two tensors; only along `dim` ties do not share the gradient, the first gets it."""
@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Lesser of two elements, NaN if one is NaN; a tie gives half of the gradient to each."""
def miopen_batch_norm(input: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor, running_var: Tensor, training: Any, exponential_average_factor: Any, epsilon: Any) -> Any: ...
def miopen_batch_norm_backward(input: Tensor, grad_output: Any, weight: Tensor, running_mean: Tensor, running_var: Tensor, save_mean: Any, save_var: Any, epsilon: Any) -> Any: ...
def miopen_convolution(self: Tensor, weight: Tensor, bias: Tensor, padding: _int | Sequence[_int] | _str, stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any, benchmark: _bool = False, deterministic: _bool = False) -> Any: ...
def miopen_convolution_backward(self: Tensor, grad_output: Any, weight: Tensor, padding: _int | Sequence[_int] | _str, stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any, benchmark: _bool = False, deterministic: _bool = False, output_mask: Any = ...) -> Any: ...
def miopen_convolution_transpose(self: Tensor, weight: Tensor, bias: Tensor, padding: _int | Sequence[_int] | _str, output_padding: _int | Sequence[_int], stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any, benchmark: _bool = False, deterministic: _bool = False) -> Any: ...
def miopen_convolution_transpose_backward(self: Tensor, grad_output: Any, weight: Tensor, padding: _int | Sequence[_int] | _str, output_padding: _int | Sequence[_int], stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any, benchmark: _bool = False, deterministic: _bool = False, output_mask: Any = ...) -> Any: ...
def mish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Smooth activation `input * tanh(softplus(input))`."""
def mish_(input: Tensor) -> Tensor:
    """Smooth activation `input * tanh(softplus(input))`."""
def mish_backward(grad_output: Tensor, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `mish`."""
def mkldnn_convolution(self: Tensor, weight: Tensor, bias: Tensor, padding: _int | Sequence[_int] | _str, stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any) -> Any: ...
def mkldnn_convolution_backward(self: Tensor, grad_output: Any, weight: Tensor, padding: _int | Sequence[_int] | _str, stride: _int | Sequence[_int], dilation: _int | Sequence[_int], groups: Any, output_mask: Any = ...) -> Any: ...
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two matrices."""
class _mode_result(NamedTuple):
    values: Tensor
    indices: Tensor
def mode(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _mode_result:
    """The most frequent element along `dim`, the least of several, and the index of its last occurrence, which alone gets the gradient."""
@overload
def moveaxis(input: Tensor, source: _int, destination: _int) -> Tensor:
    """View with the dimensions `source` moved to the positions `destination`, the others in their order."""
@overload
def moveaxis(input: Tensor, source: Sequence[_int], destination: Sequence[_int]) -> Tensor: ...
@overload
def movedim(input: Tensor, source: _int, destination: _int) -> Tensor:
    """View with the dimensions `source` moved to the positions `destination`, the others in their order."""
@overload
def movedim(input: Tensor, source: Sequence[_int], destination: Sequence[_int]) -> Tensor: ...
def mse_loss(input: Tensor, target: Tensor, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Squared difference of `input` and `target`, averaged, summed, or for each element."""
def mse_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: _int, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `mse_loss`."""
@overload
def mul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product `input * other`."""
@overload
def mul(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def mul_(input: Tensor, other: Tensor) -> Tensor:
    """Product `input * other`."""
@overload
def mul_(input: Tensor, other: _Number) -> Tensor: ...
def multi_margin_loss(input: Tensor, target: Tensor, p: _int = 1, margin: _Number = 1, weight: Tensor | None = None, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Sum over the other classes of `max(0, margin - target's score + score) ** p`, divided by the number of classes; averaged, summed, or for each sample."""
def multi_margin_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, p: _int, margin: _Number, weight: Tensor | None = None, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `multi_margin_loss`, 0 for a margin that is met exactly."""
def multilabel_margin_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: _int, is_target: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `multilabel_margin_loss_forward`; `is_target` is not read."""
class _multilabel_margin_loss_forward_result(NamedTuple):
    output: Tensor
    is_target: Tensor
def multilabel_margin_loss_forward(input: Tensor, target: Tensor, reduction: _int, *, out: tuple[Tensor, ...] | None = None) -> _multilabel_margin_loss_forward_result:
    """Sum over each label and each other class of `max(0, 1 - label's score + score)`, divided by the number of classes, and which classes are labels."""
def multinomial(input: Tensor, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Any: ...
@overload
def multiply(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product `input * other`."""
@overload
def multiply(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def multiply_(input: Tensor, other: Tensor) -> Tensor:
    """Product `input * other`."""
@overload
def multiply_(input: Tensor, other: _Number) -> Tensor: ...
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of a matrix and a vector."""
def mvlgamma(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension `p`, for elements greater than `(p - 1) / 2`."""
def mvlgamma_(input: Tensor, p: _int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension `p`, for elements greater than `(p - 1) / 2`."""
def nan_to_num(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements with NaN replaced by `nan` or 0, infinities by `posinf` and `neginf` or the dtype's limits; the gradient there is 0."""
def nan_to_num_(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """Elements with NaN replaced by `nan` or 0, infinities by `posinf` and `neginf` or the dtype's limits; the gradient there is 0."""
class _nanmedian_result(NamedTuple):
    values: Tensor
    indices: Tensor
@overload
def nanmedian(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Median of the elements that are not NaN, the lower one of two, or along `dim` with its index. Only without `dim` ties share the gradient."""
@overload
def nanmedian(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _nanmedian_result: ...
def nansum(input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Sum of the elements that are not NaN, of all or over the dimensions `dim`; the gradient of a NaN is 0."""
def narrow(input: Tensor, dim: _int, start: _int, length: _int) -> Tensor:
    """View of `length` elements along `dim` from `start` on."""
def native_batch_norm(input: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor, running_var: Tensor, training: Any, momentum: Any, eps: Any) -> Any: ...
def native_batch_norm_backward(grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, save_mean: Tensor | None, save_invstd: Tensor | None, train: _bool, eps: _float, output_mask: _bool | Sequence[_bool], *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of input, weight and bias in `native_batch_norm`; the saved statistics count as functions of input."""
def native_channel_shuffle(input: Tensor, groups: _int, *, out: Tensor | None = None) -> Tensor:
    """Channels in another order, one of each of the `groups` in turn."""
def native_dropout(input: Tensor, p: _float, train: _bool | None) -> tuple[Tensor, Tensor]: ...
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: _int, C: _int, HxW: _int, group: _int, eps: _float, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Normalization of groups of channels, times `weight`, plus `bias`; with mean and `1 / sqrt(variance + eps)` of each group."""
def native_layer_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None, bias: Tensor | None, eps: _float, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Normalization to mean 0 and variance 1 over the last dimensions, times `weight`, plus `bias`; with mean and `1 / sqrt(variance + eps)`."""
def native_layer_norm_backward(grad_out: Tensor, input: Tensor, normalized_shape: Sequence[_int], mean: Tensor, rstd: Tensor, weight: Tensor | None, bias: Tensor | None, output_mask: _bool | Sequence[_bool], *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of input, weight and bias in `native_layer_norm`; mean and rstd count as functions of input."""
@overload
def ne(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` differs from `other`."""
@overload
def ne(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ne_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` differs from `other`."""
@overload
def ne_(input: Tensor, other: _Number) -> Tensor: ...
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Negative `-input`."""
def neg_(input: Tensor) -> Tensor:
    """Negative `-input`."""
def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Negative `-input`."""
def negative_(input: Tensor) -> Tensor:
    """Negative `-input`."""
def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Next number after `input` toward `other`; the gradient passes to `input`, where both are equal it is 0."""
def nextafter_(input: Tensor, other: Tensor) -> Tensor:
    """Next number after `input` toward `other`; the gradient passes to `input`, where both are equal it is 0."""
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, *, out: Tensor | None = None) -> Tensor:
    """Negative log-likelihood, `-weight * input` at each target class; targets equal to `ignore_index` count nothing."""
def nll_loss2d(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, *, out: Tensor | None = None) -> Tensor:
    """Negative log-likelihood of an image of classes, `-weight * input` at each target class; `ignore_index` counts nothing."""
def nll_loss2d_backward(grad_output: Tensor, input: Tensor, target: Tensor, weight: Tensor | None, reduction: _int, ignore_index: _int, total_weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `nll_loss2d`."""
class _nll_loss2d_forward_result(NamedTuple):
    output: Tensor
    total_weight: Tensor
def nll_loss2d_forward(input: Tensor, target: Tensor, weight: Tensor | None, reduction: _int, ignore_index: _int, *, out: tuple[Tensor, ...] | None = None) -> _nll_loss2d_forward_result:
    """Negative log-likelihood of an image of classes, and the sum of the weights of its targets."""
def nll_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, weight: Tensor | None, reduction: _int, ignore_index: _int, total_weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `nll_loss`."""
class _nll_loss_forward_result(NamedTuple):
    output: Tensor
    total_weight: Tensor
def nll_loss_forward(input: Tensor, target: Tensor, weight: Tensor | None, reduction: _int, ignore_index: _int, *, out: tuple[Tensor, ...] | None = None) -> _nll_loss_forward_result:
    """Negative log-likelihood, and the sum of the weights of its targets, by which a mean is divided."""
def nonzero_static(input: Tensor, *, size: _int, fill_value: _int = -1, out: Tensor | None = None) -> Tensor:
    """Indices of the first `size` elements that are not zero, and rows of `fill_value` if there are fewer; the shape does not depend on values."""
@overload
def norm(input: Tensor, p: _float = 2, *, out: Tensor | None = None) -> Tensor:
    """Norm of order `p` of the elements, of all or over the dimensions `dim`; where it is 0 the gradient is 0."""
@overload
def norm(input: Tensor, p: _float | None, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def norm(input: Tensor, p: _float | None, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def norm(input: Tensor, p: _float | None, dim: _int | Sequence[_int], keepdim: _bool, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def normal(mean: Any = 0.0, std: Any = 1.0, size: _int | Sequence[_int] | None = None, *, generator: Generator | None = None, out: Tensor | None = None, **options: Any) -> Tensor: ...
def normal_(self: Tensor, mean: _float = 0.0, std: _float = 1.0, generator: Generator | None = None) -> Tensor: ...
@overload
def not_equal(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where `input` differs from `other`."""
@overload
def not_equal(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def not_equal_(input: Tensor, other: Tensor) -> Tensor:
    """True where `input` differs from `other`."""
@overload
def not_equal_(input: Tensor, other: _Number) -> Tensor: ...
def one_hot(input: Tensor, num_classes: _int = -1, *, out: Tensor | None = None) -> Tensor:
    """Vectors of `num_classes` integers, 1 at the class that each element names and 0 elsewhere."""
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """First n columns of a product of reflections; `torch.linalg.householder_product` under its older name."""
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Product of a matrix and the square Q that is a product of reflections, as `torch.geqrf` packs them."""
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix of the products of each element of `input` with each element of `vec2`."""
def permute(input: Tensor, dims: Sequence[_int]) -> Tensor:
    """View with the dimensions in the order `dims`."""
def pinverse(input: Tensor, rcond: _float = 1e-15, *, out: Tensor | None = None) -> Tensor:
    """Pseudoinverse of matrices, as `linalg.pinv` with another default of the relative tolerance."""
def pixel_shuffle(input: Tensor, upscale_factor: _int, *, out: Tensor | None = None) -> Tensor:
    """Channels moved into space, each block of `upscale_factor ** 2` of them as a square of pixels."""
def pixel_unshuffle(input: Tensor, downscale_factor: _int, *, out: Tensor | None = None) -> Tensor:
    """Squares of pixels moved into channels, the inverse of `pixel_shuffle`."""
def poisson(input: Tensor, generator: Generator | None = None, *, out: Tensor | None = None) -> Tensor: ...
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of their absolute values and arguments, `abs * exp(1j * angle)`."""
@overload
def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Derivative of order `n` of `digamma`."""
@overload
def polygamma(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def polygamma_(n: _int, input: Tensor) -> Tensor:
    """Derivative of order `n` of `digamma`."""
@overload
def polygamma_(input: Tensor, n: _int) -> Tensor: ...
def positive(input: Tensor) -> Tensor:
    """The tensor itself, as `+input` gives it; booleans are refused."""
def potri(input: Tensor, upper: _bool = True, *, out: Tensor | None = None) -> Tensor:
    """Inverse of the matrix whose Cholesky factor is `input`, the upper one unless told otherwise."""
@overload
def pow(input: Tensor, exponent: _Number, *, out: Tensor | None = None) -> Tensor:
    """Power `input ** exponent`; both gradients of `0 ** 0` are 0."""
@overload
def pow(input: Tensor, exponent: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pow(input: _Number, exponent: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pow_(input: Tensor, exponent: _Number) -> Tensor:
    """Power `input ** exponent`; both gradients of `0 ** 0` are 0."""
@overload
def pow_(input: Tensor, exponent: Tensor) -> Tensor: ...
@overload
def pow_(input: _Number, exponent: Tensor) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor) -> Tensor: ...
def prelu_backward(grad_output: Tensor, input: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]: ...
@overload
def prod(input: Tensor, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Product of all elements, or along the dimension `dim`; the gradient is exact where elements are 0."""
@overload
def prod(input: Tensor, dim: _int, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
class _pstrf_result(NamedTuple):
    u: Tensor
    pivots: Tensor
def pstrf(input: Tensor, upper: _bool = True, tol: _Number = -1, *, out: tuple[Tensor, ...] | None = None) -> _pstrf_result:
    """Cholesky factor with pivoting, `A[p][:, p] = U^H U` for `p = pivots - 1`; the order is constant for the gradient, which is NaN below full rank."""
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with elements of `source` at indices of the flattened tensor; duplicates add up under `accumulate`, else one is written."""
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
    """Copy of `input` with elements of `source` at indices of the flattened tensor; duplicates add up under `accumulate`, else one is written."""
class _qr_result(NamedTuple):
    Q: Tensor
    R: Tensor
def qr(input: Tensor, some: _bool = True, *, out: tuple[Tensor, ...] | None = None) -> _qr_result:
    """Factors of `A = Q R`; the older form of `torch.linalg.qr`."""
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angles in degrees, of angles in radians."""
def rad2deg_(input: Tensor) -> Tensor:
    """Angles in degrees, of angles in radians."""
def random_(self: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor: ...
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
def real(input: Tensor) -> Tensor:
    """Real part, as a view; a real tensor is returned itself."""
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Reciprocal `1 / input`."""
def reciprocal_(input: Tensor) -> Tensor:
    """Reciprocal `1 / input`."""
def recurrent(input: Tensor, weight: Sequence[Tensor], hx: Tensor, cx: Tensor | None, batch_sizes: Tensor | None, dropout_state: Tensor | None, mode: _str, has_biases: _bool, bidirectional: _bool, batch_first: _bool, keep: _bool) -> tuple[Tensor, ...]:
    """Stack of recurrent layers, which `lstm`, `gru`, `rnn_tanh` and `rnn_relu` call."""
def reflection_pad1d(input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The last dimension mirrored at their ends, which are not repeated."""
def reflection_pad1d_backward(grad_output: Tensor, input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Gradient of `reflection_pad1d`."""
def reflection_pad2d(input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The last 2 dimensions mirrored at their ends, which are not repeated."""
def reflection_pad2d_backward(grad_output: Tensor, input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Gradient of `reflection_pad2d`."""
def reflection_pad3d(input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The last 3 dimensions mirrored at their ends, which are not repeated."""
def reflection_pad3d_backward(grad_output: Tensor, input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Gradient of `reflection_pad3d`."""
def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Positive part `max(input, 0)`; the gradient at 0 is 0."""
def relu_(input: Tensor) -> Tensor:
    """Positive part `max(input, 0)`; the gradient at 0 is 0."""
@overload
def remainder(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor:
    """Remainder of division, with the sign of `other`; the gradient of `other` is `-grad * floor(input / other)`."""
@overload
def remainder(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def remainder(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def remainder_(input: Tensor, other: _Number) -> Tensor:
    """Remainder of division, with the sign of `other`; the gradient of `other` is `-grad * floor(input / other)`."""
@overload
def remainder_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def remainder_(input: _Number, other: Tensor) -> Tensor: ...
def renorm(input: Tensor, p: _float, dim: _int, maxnorm: _float, *, out: Tensor | None = None) -> Tensor:
    """Slices along `dim`, those whose norm of order `p` exceeds `maxnorm` scaled to it; the others pass unchanged, as does their gradient."""
def renorm_(input: Tensor, p: _float, dim: _int, maxnorm: _float) -> Tensor:
    """Slices along `dim`, those whose norm of order `p` exceeds `maxnorm` scaled to it; the others pass unchanged, as does their gradient."""
def repeat(input: Tensor, repeats: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The tensor copied `repeats` times along each dimension."""
def replication_pad1d(input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The last dimension extended by copies of the elements at their ends."""
def replication_pad1d_backward(grad_output: Tensor, input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Gradient of `replication_pad1d`."""
def replication_pad2d(input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The last 2 dimensions extended by copies of the elements at their ends."""
def replication_pad2d_backward(grad_output: Tensor, input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Gradient of `replication_pad2d`."""
def replication_pad3d(input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The last 3 dimensions extended by copies of the elements at their ends."""
def replication_pad3d_backward(grad_output: Tensor, input: Tensor, padding: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Gradient of `replication_pad3d`."""
def reshape(input: Tensor, shape: Sequence[_int]) -> Tensor:
    """The same elements with another shape, as a view where strides allow; a size of -1 is inferred."""
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The same elements with the shape of `other`, as a view where strides allow."""
def roll(input: Tensor, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] = ..., *, out: Tensor | None = None) -> Tensor:
    """Elements shifted along dimensions, those beyond the end back in at the start; without `dims` of the flattened tensor."""
def rot90(input: Tensor, k: _int = 1, dims: Sequence[_int] = ..., *, out: Tensor | None = None) -> Tensor:
    """Rotation by `k` times 90 degrees in the plane of two dimensions."""
@overload
def round(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Nearest integer, or nearest number with that many `decimals`, halves to even; the gradient is 0."""
@overload
def round(input: Tensor, *, decimals: _int, out: Tensor | None = None) -> Tensor: ...
@overload
def round_(input: Tensor) -> Tensor:
    """Nearest integer, or nearest number with that many `decimals`, halves to even; the gradient is 0."""
@overload
def round_(input: Tensor, *, decimals: _int) -> Tensor: ...
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the first dimension; a vector counts as a row."""
def rrelu(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, generator: Generator | None = None) -> Tensor: ...
def rrelu_(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, generator: Generator | None = None) -> Tensor: ...
def rrelu_with_noise(input: Tensor, noise: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, generator: Generator | None = None) -> Tensor: ...
def rrelu_with_noise_(input: Tensor, noise: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, generator: Generator | None = None) -> Tensor: ...
def rrelu_with_noise_backward(grad_output: Tensor, input: Tensor, noise: Tensor, lower: _Number, upper: _Number, training: _bool, self_is_result: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `rrelu_with_noise` from its input, or from its output if `self_is_result`."""
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Reciprocal of the square root, `1 / sqrt(input)`."""
def rsqrt_(input: Tensor) -> Tensor:
    """Reciprocal of the square root, `1 / sqrt(input)`."""
@overload
def rsub(input: Tensor, other: Tensor, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Difference with the operands exchanged, `other - alpha * input`."""
@overload
def rsub(input: Tensor, other: _Number, alpha: _Number = 1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with elements of `src` or a number at indices along `dim`; of duplicates one is written, and each gets the gradient."""
@overload
def scatter(input: Tensor, dim: _int, index: Tensor, value: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, reduce: _str, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter(input: Tensor, dim: _int, index: Tensor, value: _Number, *, reduce: _str, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, src: Tensor) -> Tensor:
    """Copy of `input` with elements of `src` or a number at indices along `dim`; of duplicates one is written, and each gets the gradient."""
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, value: _Number) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, reduce: _str) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, value: _Number, *, reduce: _str) -> Tensor: ...
def scatter_add(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of `input` and the elements of `src`, each added at its index along `dim`."""
def scatter_add_(input: Tensor, dim: _int, index: Tensor, src: Tensor) -> Tensor:
    """Sum of `input` and the elements of `src`, each added at its index along `dim`."""
def scatter_reduce(input: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with the elements of `src` reduced into it at indices along `dim`; equal maxima and minima share the gradient."""
def scatter_reduce_(input: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor:
    """Copy of `input` with the elements of `src` reduced into it at indices along `dim`; equal maxima and minima share the gradient."""
@overload
def searchsorted(sorted_sequence: Tensor, input: Tensor, *, out_int32: _bool = False, right: _bool = False, side: _str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """Where elements can be inserted into a sorted sequence to keep it sorted, by bisection."""
@overload
def searchsorted(sorted_sequence: Tensor, input: _Number, *, out_int32: _bool = False, right: _bool = False, side: _str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor: ...
def segment_reduce(data: Tensor, reduce: _str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None, axis: _int = 0, unsafe: _bool = False, initial: _Number | None = None, out: Tensor | None = None) -> Tensor:
    """Sum, mean, product or extremum of each of consecutive segments of `axis`; ties share the gradient of an extremum."""
def select(input: Tensor, dim: _int, index: _int) -> Tensor:
    """View of the slice at `index` of `dim`, without that dimension."""
def select_backward(grad_output: Tensor, input_sizes: Sequence[_int], dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """Zeros of shape `input_sizes` with `grad_output` in the slice at `index` of `dim`."""
def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `src` in the slice at `index` of `dim`."""
def selu(input: Tensor) -> Tensor: ...
def selu_(input: Tensor) -> Tensor: ...
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sign of a real number, and `z / abs(z)` of a complex one; the gradient at 0 and that of real numbers is 0."""
def sgn_(input: Tensor) -> Tensor:
    """Sign of a real number, and `z / abs(z)` of a complex one; the gradient at 0 and that of real numbers is 0."""
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logistic function `1 / (1 + exp(-input))`."""
def sigmoid_(input: Tensor) -> Tensor:
    """Logistic function `1 / (1 + exp(-input))`."""
def sigmoid_backward(grad_output: Tensor, output: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `sigmoid` from its output, `grad_output * output * (1 - output)`, with the factor conjugated."""
def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sign of a real number, -1, 0 or 1; the gradient is 0."""
def sign_(input: Tensor) -> Tensor:
    """Sign of a real number, -1, 0 or 1; the gradient is 0."""
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where the sign is negative, also that of -0."""
def silu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Swish function `input * sigmoid(input)`."""
def silu_(input: Tensor) -> Tensor:
    """Swish function `input * sigmoid(input)`."""
def silu_backward(grad_output: Tensor, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `silu`."""
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sine of an angle in radians."""
def sin_(input: Tensor) -> Tensor:
    """Sine of an angle in radians."""
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Normalized sine, `sin(pi * input) / (pi * input)`, 1 at 0."""
def sinc_(input: Tensor) -> Tensor:
    """Normalized sine, `sin(pi * input) / (pi * input)`, 1 at 0."""
def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic sine."""
def sinh_(input: Tensor) -> Tensor:
    """Hyperbolic sine."""
def slice(input: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """View of the elements from `start` to before `end` along `dim`, every `step`th."""
def slice_backward(grad_output: Tensor, input_sizes: Sequence[_int], dim: _int, start: _int, end: _int, step: _int, *, out: Tensor | None = None) -> Tensor:
    """Zeros of shape `input_sizes` with `grad_output` in a slice of `dim`."""
def slice_scatter(input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `src` in a slice of `dim`."""
class _slogdet_result(NamedTuple):
    sign: Tensor
    logabsdet: Tensor
def slogdet(input: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _slogdet_result:
    """Sign of the determinant and logarithm of its absolute value, as `linalg.slogdet`."""
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: _int = 1, beta: _float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """Absolute difference less `beta / 2`, and `difference ** 2 / (2 * beta)` where it is below `beta`; averaged, summed, or for each element."""
def smooth_l1_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: _int, beta: _float, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `smooth_l1_loss`; 0 where `input` equals `target`."""
def soft_margin_loss(input: Tensor, target: Tensor, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Logistic loss `log(1 + exp(-target * input))`, without overflow; averaged, summed, or for each element."""
def soft_margin_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: _int, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `soft_margin_loss`."""
def softmax(input: Tensor, dim: _int, dtype: _dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """Exponentials divided by their sum along `dim`."""
def softplus(input: Tensor, beta: _Number = 1, threshold: _Number = 20, *, out: Tensor | None = None) -> Tensor:
    """Smooth approximation of `relu`, `log(1 + exp(beta * input)) / beta`; the identity where `beta * input > threshold`."""
def softplus_backward(grad_output: Tensor, input: Tensor, beta: _Number, threshold: _Number, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `softplus`."""
def softshrink(input: Tensor, lambd: _Number = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Elements moved towards 0 by `lambd`, 0 from `-lambd` to `lambd`; the gradient at both bounds is 0."""
def softshrink_backward(grad_output: Tensor, input: Tensor, lambd: _Number, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `softshrink`, 0 where `abs(input)` is at most `lambd`."""
class _sort_result(NamedTuple):
    values: Tensor
    indices: Tensor
@overload
def sort(input: Tensor, dim: _int = -1, descending: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _sort_result:
    """Elements in order along `dim`, and their indices; the order is stable, and NaN is the greatest number."""
@overload
def sort(input: Tensor, *, stable: _bool | None, dim: _int = -1, descending: _bool = False, out: tuple[Tensor, ...] | None = None) -> _sort_result: ...
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor: ...
def special_airy_ai(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Airy function Ai."""
def special_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the first kind of order 0."""
def special_bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the first kind of order 1."""
def special_bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the second kind of order 0, NaN for negative numbers."""
def special_bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the second kind of order 1, NaN for negative numbers."""
@overload
def special_chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the first kind, of degree `n`; 0 for negative `n`."""
@overload
def special_chebyshev_polynomial_t(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_t(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the second kind, of degree `n`; 0 for negative `n`."""
@overload
def special_chebyshev_polynomial_u(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_u(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the third kind, of degree `n`; 0 for negative `n`."""
@overload
def special_chebyshev_polynomial_v(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_v(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the fourth kind, of degree `n`; 0 for negative `n`."""
@overload
def special_chebyshev_polynomial_w(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_w(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
def special_entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Entropy `-input * log(input)`, 0 at 0 and minus infinity below."""
def special_erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Scaled complementary error function, `exp(input ** 2) * erfc(input)`."""
@overload
def special_hermite_polynomial_h(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hermite polynomial of the physicists, of degree `n`; 0 for negative `n`."""
@overload
def special_hermite_polynomial_h(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_hermite_polynomial_h(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_hermite_polynomial_he(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hermite polynomial of the probabilists, of degree `n`; 0 for negative `n`."""
@overload
def special_hermite_polynomial_he(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_hermite_polynomial_he(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
def special_i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 0, scaled by `exp(-abs(input))`."""
def special_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 1."""
def special_i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 1, scaled by `exp(-abs(input))`; the second derivative jumps at 0."""
@overload
def special_laguerre_polynomial_l(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Laguerre polynomial, of degree `n`; 0 for negative `n`."""
@overload
def special_laguerre_polynomial_l(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_laguerre_polynomial_l(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_legendre_polynomial_p(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Legendre polynomial, of degree `n`; 0 for negative `n`."""
@overload
def special_legendre_polynomial_p(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_legendre_polynomial_p(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
def special_log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the distribution function of the normal distribution, accurate in its tail."""
def special_modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 0."""
def special_modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 1, as `special_i1`."""
def special_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 0, NaN for negative numbers."""
def special_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 1, NaN for negative numbers."""
def special_ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Quantile of the normal distribution."""
def special_scaled_modified_bessel_k0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 0, scaled by `exp(x)`."""
def special_scaled_modified_bessel_k1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 1, scaled by `exp(x)`."""
@overload
def special_shifted_chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the first kind at `2 * x - 1`, of degree `n`; 0 for negative `n`."""
@overload
def special_shifted_chebyshev_polynomial_t(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_t(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the second kind at `2 * x - 1`, of degree `n`; 0 for negative `n`."""
@overload
def special_shifted_chebyshev_polynomial_u(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_u(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the third kind at `2 * x - 1`, of degree `n`; 0 for negative `n`."""
@overload
def special_shifted_chebyshev_polynomial_v(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_v(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the fourth kind at `2 * x - 1`, of degree `n`; 0 for negative `n`."""
@overload
def special_shifted_chebyshev_polynomial_w(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_w(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
def special_spherical_bessel_j0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Spherical Bessel function of the first kind of order 0, `sin(x) / x`."""
@overload
def special_xlog1py(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product `input * log1p(other)`, 0 where `input` is 0; where also `other <= -1` the gradient of `input` is 0."""
@overload
def special_xlog1py(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_xlog1py(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_zeta(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz zeta function, the sum of `(k + other) ** -input` over k from 0; differentiable in `other`."""
@overload
def special_zeta(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_zeta(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def split(input: Tensor, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces along `dim` as views, of `split_size` elements each, or of the sizes in a list."""
@overload
def split(input: Tensor, split_size: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]: ...
def split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces along `dim` as views, of the sizes given."""
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Square root; the gradient at 0 is infinite."""
def sqrt_(input: Tensor) -> Tensor:
    """Square root; the gradient at 0 is infinite."""
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Square `input ** 2`."""
def square_(input: Tensor) -> Tensor:
    """Square `input ** 2`."""
@overload
def squeeze(input: Tensor) -> Tensor:
    """View without the dimensions of size 1, all of them or those among `dim`."""
@overload
def squeeze(input: Tensor, dim: _int) -> Tensor: ...
@overload
def squeeze(input: Tensor, dim: Sequence[_int]) -> Tensor: ...
def squeeze_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def stack(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape joined along a new dimension `dim`."""
@overload
def std(input: Tensor, unbiased: _bool = True, *, out: Tensor | None = None) -> Tensor:
    """Standard deviation, the square root of `var`; where it is 0 the gradient is 0."""
@overload
def std(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def std(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def std_mean(input: Tensor, unbiased: _bool = True, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of all elements or over the dimensions `dim`; see `std`."""
@overload
def std_mean(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def std_mean(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def sub(input: Tensor, other: Tensor, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Difference `input - alpha * other`."""
@overload
def sub(input: Tensor, other: _Number, alpha: _Number = 1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sub_(input: Tensor, other: Tensor, *, alpha: _Number = 1) -> Tensor:
    """Difference `input - alpha * other`."""
@overload
def sub_(input: Tensor, other: _Number, alpha: _Number = 1) -> Tensor: ...
@overload
def subtract(input: Tensor, other: Tensor, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Difference `input - alpha * other`."""
@overload
def subtract(input: Tensor, other: _Number, alpha: _Number = 1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def subtract_(input: Tensor, other: Tensor, *, alpha: _Number = 1) -> Tensor:
    """Difference `input - alpha * other`."""
@overload
def subtract_(input: Tensor, other: _Number, alpha: _Number = 1) -> Tensor: ...
@overload
def sum(input: Tensor, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Sum of all elements, or over the dimensions `dim`."""
@overload
def sum(input: Tensor, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
class _svd_result(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor
def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: tuple[Tensor, ...] | None = None) -> _svd_result:
    """Singular value decomposition `U diag(S) V.mH`; a loss must not depend on the phase of singular vectors."""
def swapaxes(input: Tensor, axis0: _int, axis1: _int) -> Tensor:
    """View with the dimensions `axis0` and `axis1` exchanged."""
def swapdims(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """View with the dimensions `dim0` and `dim1` exchanged."""
class _symeig_result(NamedTuple):
    values: Tensor
    vectors: Tensor
def symeig(input: Tensor, eigenvectors: _bool = False, upper: _bool = True, *, out: tuple[Tensor, ...] | None = None) -> _symeig_result:
    """Eigenvalues of Hermitian matrices and, where asked for, eigenvectors, as `linalg.eigh`; the name of 2018."""
def t(input: Tensor) -> Tensor:
    """Transpose of a matrix, as a view; a vector or a scalar is unchanged."""
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements of the flattened tensor at indices."""
def take_along_dim(input: Tensor, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements at indices along `dim`, broadcast against the tensor; without `dim` of the flattened tensor."""
def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tangent of an angle in radians."""
def tan_(input: Tensor) -> Tensor:
    """Tangent of an angle in radians."""
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic tangent."""
def tanh_(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
def tanh_backward(grad_output: Tensor, output: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `tanh` from its output, `grad_output * (1 - output ** 2)`, with the factor conjugated."""
def thnn_col2im(input: Tensor, output_size: _int | Sequence[_int], kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int], padding: _int | Sequence[_int], stride: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Image that is the sum of windows, given as columns; the transpose of `im2col`."""
def thnn_conv2d_backward(grad_output: Any, self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, finput: Any = None, fgrad_input: Any = None, output_mask: Any = ...) -> Any: ...
def thnn_conv2d_forward(self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], bias: Tensor, stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str) -> Any: ...
def thnn_conv3d_backward(grad_output: Any, self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, finput: Any = None, fgrad_input: Any = None, output_mask: Any = ...) -> Any: ...
def thnn_conv3d_forward(self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], bias: Tensor, stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str) -> Any: ...
def thnn_conv_depthwise2d_backward(grad_output: Any, self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, dilation: _int | Sequence[_int], output_mask: Any = ...) -> Any: ...
def thnn_conv_depthwise2d_forward(self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], bias: Tensor, stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, dilation: _int | Sequence[_int]) -> Any: ...
def thnn_conv_dilated2d_backward(grad_output: Any, self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, dilation: _int | Sequence[_int], columns: Any = None, ones: Any = None, output_mask: Any = ...) -> Any: ...
def thnn_conv_dilated2d_forward(self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], bias: Tensor, stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, dilation: _int | Sequence[_int]) -> Any: ...
def thnn_conv_dilated3d_backward(grad_output: Any, self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, dilation: _int | Sequence[_int], columns: Any = None, ones: Any = None, output_mask: Any = ...) -> Any: ...
def thnn_conv_dilated3d_forward(self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], bias: Tensor, stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, dilation: _int | Sequence[_int]) -> Any: ...
def thnn_conv_transpose2d_backward(grad_output: Any, self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, output_padding: _int | Sequence[_int], dilation: _int | Sequence[_int], columns: Any = None, ones: Any = None, output_mask: Any = ...) -> Any: ...
def thnn_conv_transpose2d_forward(self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], bias: Tensor, stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, output_padding: _int | Sequence[_int], dilation: _int | Sequence[_int]) -> Any: ...
def thnn_conv_transpose3d_backward(grad_output: Any, self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, output_padding: _int | Sequence[_int], dilation: _int | Sequence[_int], columns: Any = None, ones: Any = None, output_mask: Any = ...) -> Any: ...
def thnn_conv_transpose3d_forward(self: Tensor, weight: Tensor, kernel_size: _int | Sequence[_int], bias: Tensor, stride: _int | Sequence[_int], padding: _int | Sequence[_int] | _str, output_padding: _int | Sequence[_int], dilation: _int | Sequence[_int]) -> Any: ...
def thnn_im2col(input: Tensor, kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int], padding: _int | Sequence[_int], stride: _int | Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Windows of an image as columns."""
def threshold(input: Tensor, threshold: _Number, value: _Number, *, out: Tensor | None = None) -> Tensor:
    """Elements greater than `threshold`, and `value` in place of the others; the gradient at the threshold is 0."""
def threshold_(input: Tensor, threshold: _Number, value: _Number) -> Tensor:
    """Elements greater than `threshold`, and `value` in place of the others; the gradient at the threshold is 0."""
def threshold_backward(grad_output: Tensor, input: Tensor, threshold: _Number, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `threshold`, `grad_output` where `input` is greater than `threshold`, else 0."""
def tile(input: Tensor, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The tensor copied `dims` times along its last dimensions."""
def to(input: Tensor, dtype: _dtype, non_blocking: _bool = False, copy: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Conversion to another dtype; the gradient is converted back."""
def to_dense(self: Tensor, dtype: _dtype | None = None, *, masked_grad: _bool | None = None) -> Tensor: ...
class _topk_result(NamedTuple):
    values: Tensor
    indices: Tensor
def topk(input: Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: tuple[Tensor, ...] | None = None) -> _topk_result:
    """The `k` greatest elements along `dim`, or the least, and their indices; of equal elements those that come first."""
def trace(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of the diagonal of a matrix."""
def transpose(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """View with the dimensions `dim0` and `dim1` exchanged."""
def transpose_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
class _triangular_solve_result(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor
def triangular_solve(input: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _triangular_solve_result:
    """Solution X of `A X = B` with a triangular matrix, and a copy of A; the gradient of A is 0 where it is not read."""
def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrices with zeros above a diagonal."""
def tril_(input: Tensor, diagonal: _int = 0) -> Tensor:
    """Matrices with zeros above a diagonal."""
def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrices with zeros below a diagonal."""
def triu_(input: Tensor, diagonal: _int = 0) -> Tensor:
    """Matrices with zeros below a diagonal."""
def trtrs(input: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> _triangular_solve_result:
    """Solution X of `A X = B` with a triangular matrix, and a copy of A; the gradient of A is 0 where it is not read."""
@overload
def true_divide(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Quotient `input / other`; with `rounding_mode` "trunc" or "floor" it is rounded, and its gradients are 0."""
@overload
def true_divide(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def true_divide(input: Tensor, other: Tensor, *, rounding_mode: _str | None, out: Tensor | None = None) -> Tensor: ...
@overload
def true_divide(input: Tensor, other: _Number, *, rounding_mode: _str | None, out: Tensor | None = None) -> Tensor: ...
@overload
def true_divide_(input: Tensor, other: Tensor) -> Tensor:
    """Quotient `input / other`; with `rounding_mode` "trunc" or "floor" it is rounded, and its gradients are 0."""
@overload
def true_divide_(input: Tensor, other: _Number) -> Tensor: ...
@overload
def true_divide_(input: Tensor, other: Tensor, *, rounding_mode: _str | None) -> Tensor: ...
@overload
def true_divide_(input: Tensor, other: _Number, *, rounding_mode: _str | None) -> Tensor: ...
def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Integer part, rounded toward 0; the gradient is 0."""
def trunc_(input: Tensor) -> Tensor:
    """Integer part, rounded toward 0; the gradient is 0."""
def unbind(input: Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim` as views, without that dimension."""
def unflatten(input: Tensor, dim: _int, sizes: Sequence[_int]) -> Tensor:
    """The dimension `dim` split into the dimensions `sizes`; a size of -1 is inferred."""
def unfold(input: Tensor, dimension: _int, size: _int, step: _int) -> Tensor:
    """View of all windows of `size` elements along `dimension`, `step` apart, with the elements of a window in a new last dimension."""
def unfold_backward(grad_in: Tensor, input_sizes: Sequence[_int], dim: _int, size: _int, step: _int, *, out: Tensor | None = None) -> Tensor:
    """Zeros of shape `input_sizes` with the windows `grad_in` added at their places."""
def uniform_(self: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor: ...
def unsafe_split(input: Tensor, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces along `dim` of `split_size` elements each, which count as no views."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces along `dim` of the sizes given, which count as no views."""
def unsqueeze(input: Tensor, dim: _int) -> Tensor:
    """View with a new dimension of size 1 at `dim`."""
def unsqueeze_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def upsample_bicubic2d(input: Tensor, output_size: _int | Sequence[_int], align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Images of another size, interpolated by cubic convolution (a = -0.75) of the 4 neighbours along each dimension."""
def upsample_bicubic2d_backward(grad_output: Tensor, output_size: _int | Sequence[_int], input_size: _int | Sequence[_int], align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `upsample_bicubic2d`."""
def upsample_bilinear2d(input: Tensor, output_size: _int | Sequence[_int], align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Images of 2 dimensions of another size, interpolated linearly between the 2 neighbours along each dimension."""
def upsample_bilinear2d_backward(grad_output: Tensor, output_size: _int | Sequence[_int], input_size: _int | Sequence[_int], align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `upsample_bilinear2d`."""
def upsample_linear1d(input: Tensor, output_size: _int | Sequence[_int], align_corners: _bool, scales: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Images of 1 dimension of another size, interpolated linearly between the 2 neighbours along each dimension."""
def upsample_linear1d_backward(grad_output: Tensor, output_size: _int | Sequence[_int], input_size: _int | Sequence[_int], align_corners: _bool, scales: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `upsample_linear1d`."""
def upsample_nearest1d(input: Tensor, output_size: _int | Sequence[_int], scales: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Images of 1 dimension of another size, each element that at the place `floor(i * size / output_size)`."""
def upsample_nearest1d_backward(grad_output: Tensor, output_size: _int | Sequence[_int], input_size: _int | Sequence[_int], scales: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `upsample_nearest1d`."""
def upsample_nearest2d(input: Tensor, output_size: _int | Sequence[_int], scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Images of 2 dimensions of another size, each element that at the place `floor(i * size / output_size)`."""
def upsample_nearest2d_backward(grad_output: Tensor, output_size: _int | Sequence[_int], input_size: _int | Sequence[_int], scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `upsample_nearest2d`."""
def upsample_nearest3d(input: Tensor, output_size: _int | Sequence[_int], scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Images of 3 dimensions of another size, each element that at the place `floor(i * size / output_size)`."""
def upsample_nearest3d_backward(grad_output: Tensor, output_size: _int | Sequence[_int], input_size: _int | Sequence[_int], scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `upsample_nearest3d`."""
def upsample_trilinear3d(input: Tensor, output_size: _int | Sequence[_int], align_corners: _bool, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Images of 3 dimensions of another size, interpolated linearly between the 2 neighbours along each dimension."""
def upsample_trilinear3d_backward(grad_output: Tensor, output_size: _int | Sequence[_int], input_size: _int | Sequence[_int], align_corners: _bool, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `upsample_trilinear3d`."""
def values(self: Tensor) -> Tensor: ...
@overload
def var(input: Tensor, unbiased: _bool = True, *, out: Tensor | None = None) -> Tensor:
    """Variance of all elements or over the dimensions `dim`, divided by the number of elements less `correction`, which is 1 unless given."""
@overload
def var(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def var(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def var_mean(input: Tensor, unbiased: _bool = True, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """Variance and mean of all elements or over the dimensions `dim`; see `var`."""
@overload
def var_mean(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def var_mean(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]: ...
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of the products of the elements of two vectors, the first conjugated."""
@overload
def view(input: Tensor, size: Sequence[_int]) -> Tensor:
    """View of the same elements with another shape, in which a size of -1 is inferred; or of their bytes as another dtype, without history."""
@overload
def view(input: Tensor, dtype: _dtype) -> Tensor: ...
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """View of the same elements with the shape of `other`."""
def view_as_complex(input: Tensor) -> Tensor:
    """View of a real tensor, whose last dimension holds real and imaginary part, as complex numbers."""
def view_as_real(input: Tensor) -> Tensor:
    """View of a complex tensor with real and imaginary part in a last dimension of size 2."""
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the first dimension; a vector counts as a row."""
@overload
def where(condition: Tensor, input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements of `input` where `condition` is true, else of `other`; the gradient goes to the element chosen."""
@overload
def where(condition: Tensor, input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(condition: Tensor, input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(condition: Tensor, input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product `input * log(other)`, 0 where `input` is 0; where also `other <= 0` the gradient of `input` is 0."""
@overload
def xlogy(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy_(input: Tensor, other: Tensor) -> Tensor:
    """Product `input * log(other)`, 0 where `input` is 0; where also `other <= 0` the gradient of `input` is 0."""
@overload
def xlogy_(input: _Number, other: Tensor) -> Tensor: ...
@overload
def xlogy_(input: Tensor, other: _Number) -> Tensor: ...
def zero(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Zeros in the shape and dtype of `input`."""
def zero_(input: Tensor) -> Tensor:
    """Zeros in the shape and dtype of `input`."""
