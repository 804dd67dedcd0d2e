# Made by `make stubs`; do not edit.
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from types import ModuleType, TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

from numpy.typing import NDArray as _NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
_Number: TypeAlias = _bool | _int | _float | _complex

from jaxgrad import (
    Tensor,
    dtype as _dtype,
    memory_format as _memory_format,
)
class Library:
    pointwise: Any
    names: Any
    table: Any
    functions: Any
    parent: Any
    def __getitem__(self, name: Any) -> Any: ...
    def __init__(self, table: Any, functions: Mapping[_str, Callable[..., Any]], parent: Library | None = None, pointwise: frozenset[_str] = ...) -> None: ...
    def canonical(self, name: _str) -> _str: ...
    def find(self, name: _str) -> Any: ...
    def function(self, name: Any) -> Any: ...
    def functional(self, name: _str) -> _str | None: ...
    def has(self, name: _str) -> _bool: ...
    @property
    def methods(self) -> list[_str]: ...
    def primitives(self, name: _str) -> list[Any]: ...
    def value_function(self, rule: Any) -> Any: ...
class Namespace(ModuleType):
    def __getattr__(self, name: Any) -> Any: ...
    def __init__(self, name: _str, library: Library) -> None: ...
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
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum `beta * input + alpha * (batch1 @ batch2)` over batches of matrices; a term whose factor is 0 is dropped, NaN included."""
def baddbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """Sum `beta * input + alpha * (batch1 @ batch2)` over batches of matrices; a term whose factor is 0 is dropped, NaN included."""
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Binary cross entropy of the probability `sigmoid(input)` and `target`, without overflow; averaged, summed, or for each element."""
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
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of the matrices of two batches."""
def broadcast_to(input: Tensor, size: Sequence[_int]) -> Tensor:
    """View broadcast to `size` without copying."""
def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the dimension `dim`."""
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Smallest integer not less than each element; the gradient is 0."""
def ceil_(input: Tensor) -> Tensor:
    """Smallest integer not less than each element; the gradient is 0."""
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
def copy(input: Tensor, src: Tensor, non_blocking: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Elements of `src`, broadcast to the shape and converted to the dtype of `input`."""
def copy_(input: Tensor, src: Tensor, non_blocking: _bool = False) -> Tensor:
    """Elements of `src`, broadcast to the shape and converted to the dtype of `input`."""
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
def cross_entropy_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, label_smoothing: _float = 0.0, *, out: Tensor | None = None) -> Tensor:
    """Negative log-softmax of `input` at the target classes, or weighted by class probabilities; averaged, summed, or for each target."""
def cumsum(input: Tensor, dim: _int, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Running sum along the dimension `dim`."""
def cumsum_(input: Tensor, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
    """Running sum along the dimension `dim`."""
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
def elu(input: Tensor, alpha: _Number = 1, scale: _Number = 1, input_scale: _Number = 1, *, out: Tensor | None = None) -> Tensor:
    """Exponential linear unit, `scale * input` or, where negative, `alpha * scale * (exp(input_scale * input) - 1)`."""
def elu_(input: Tensor, alpha: _Number = 1, scale: _Number = 1, input_scale: _Number = 1) -> Tensor:
    """Exponential linear unit, `scale * input` or, where negative, `alpha * scale * (exp(input_scale * input) - 1)`."""
def elu_backward(grad_output: Tensor, alpha: _Number, scale: _Number, input_scale: _Number, is_result: _bool, self_or_result: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `elu` from its input, or from its output if `is_result`."""
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
def gather(input: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = False, out: Tensor | None = None) -> Tensor:
    """Elements at the indices along `dim`, one index for each element of the result."""
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
def gelu(input: Tensor, *, approximate: _str = 'none', out: Tensor | None = None) -> Tensor:
    """Gaussian error linear unit `input * Phi(input)`, Phi the normal distribution function, or its approximation by tanh."""
def gelu_backward(grad_output: Tensor, input: Tensor, *, approximate: _str = 'none', out: Tensor | None = None) -> Tensor:
    """Gradient of `gelu`."""
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix of the products of each element of `input` with each element of `vec2`."""
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
def hardtanh(input: Tensor, min_val: _Number = -1, max_val: _Number = 1, *, out: Tensor | None = None) -> Tensor:
    """Elements limited to the range from `min_val` to `max_val`; the gradient at both bounds is 0."""
def hardtanh_(input: Tensor, min_val: _Number = -1, max_val: _Number = 1) -> Tensor:
    """Elements limited to the range from `min_val` to `max_val`; the gradient at both bounds is 0."""
def hardtanh_backward(grad_output: Tensor, input: Tensor, min_val: _Number, max_val: _Number, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `hardtanh`, `grad_output` strictly between the bounds, else 0."""
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the second dimension, vectors along the first."""
def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hypotenuse `sqrt(input ** 2 + other ** 2)`, without overflow; the gradients at the origin are NaN."""
def hypot_(input: Tensor, other: Tensor) -> Tensor:
    """Hypotenuse `sqrt(input ** 2 + other ** 2)`, without overflow; the gradients at the origin are NaN."""
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
def index_select(input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Slices of `dim` at the indices of a vector."""
def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where an element is neither infinite nor NaN."""
def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where an element is infinite."""
def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where an element is NaN."""
def kl_div(input: Tensor, target: Tensor, reduction: _int = 1, *, log_target: _bool = False, out: Tensor | None = None) -> Tensor:
    """Pointwise Kullback-Leibler divergence `target * (log(target) - input)` of log-probabilities `input`; averaged, summed, or for each element."""
def l1_loss(input: Tensor, target: Tensor, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Absolute difference of `input` and `target`, averaged, summed, or for each element; where they are equal the gradient is 0."""
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
def linalg_matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of matrices or vectors in the last two dimensions; the others are batches and broadcast."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """Affine map `input @ weight.T + bias`."""
def load(path: Any, namespace: _str = 'my', functions: Any = None) -> Namespace: ...
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
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of matrices or vectors in the last two dimensions; the others are batches and broadcast."""
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
def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Greater of two elements, NaN if one is NaN; a tie gives half of the gradient to each."""
@overload
def mean(input: Tensor, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Mean of all elements, or over the dimensions `dim`."""
@overload
def mean(input: Tensor, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
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
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two matrices."""
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
def nan_to_num(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements with NaN replaced by `nan` or 0, infinities by `posinf` and `neginf` or the dtype's limits; the gradient there is 0."""
def nan_to_num_(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """Elements with NaN replaced by `nan` or 0, infinities by `posinf` and `neginf` or the dtype's limits; the gradient there is 0."""
def narrow(input: Tensor, dim: _int, start: _int, length: _int) -> Tensor:
    """View of `length` elements along `dim` from `start` on."""
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
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix of the products of each element of `input` with each element of `vec2`."""
def permute(input: Tensor, dims: Sequence[_int]) -> Tensor:
    """View with the dimensions in the order `dims`."""
def positive(input: Tensor) -> Tensor:
    """The tensor itself, as `+input` gives it; booleans are refused."""
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
@overload
def prod(input: Tensor, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Product of all elements, or along the dimension `dim`; the gradient is exact where elements are 0."""
@overload
def prod(input: Tensor, dim: _int, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with elements of `source` at indices of the flattened tensor; duplicates add up under `accumulate`, else one is written."""
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
    """Copy of `input` with elements of `source` at indices of the flattened tensor; duplicates add up under `accumulate`, else one is written."""
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
def real(input: Tensor) -> Tensor:
    """Real part, as a view; a real tensor is returned itself."""
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Reciprocal `1 / input`."""
def reciprocal_(input: Tensor) -> Tensor:
    """Reciprocal `1 / input`."""
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
def repeat(input: Tensor, repeats: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The tensor copied `repeats` times along each dimension."""
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
def scatter_(input: Tensor, dim: _int, index: Tensor, src: Tensor) -> Tensor:
    """Copy of `input` with elements of `src` or a number at indices along `dim`; of duplicates one is written, and each gets the gradient."""
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, value: _Number) -> Tensor: ...
def scatter_add(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of `input` and the elements of `src`, each added at its index along `dim`."""
def scatter_add_(input: Tensor, dim: _int, index: Tensor, src: Tensor) -> Tensor:
    """Sum of `input` and the elements of `src`, each added at its index along `dim`."""
def select(input: Tensor, dim: _int, index: _int) -> Tensor:
    """View of the slice at `index` of `dim`, without that dimension."""
def select_backward(grad_output: Tensor, input_sizes: Sequence[_int], dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """Zeros of shape `input_sizes` with `grad_output` in the slice at `index` of `dim`."""
def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `src` in the slice at `index` of `dim`."""
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
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: _int = 1, beta: _float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """Absolute difference less `beta / 2`, and `difference ** 2 / (2 * beta)` where it is below `beta`; averaged, summed, or for each element."""
def smooth_l1_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: _int, beta: _float, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `smooth_l1_loss`; 0 where `input` equals `target`."""
def softmax(input: Tensor, dim: _int, dtype: _dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """Exponentials divided by their sum along `dim`."""
def softplus(input: Tensor, beta: _Number = 1, threshold: _Number = 20, *, out: Tensor | None = None) -> Tensor:
    """Smooth approximation of `relu`, `log(1 + exp(beta * input)) / beta`; the identity where `beta * input > threshold`."""
def softplus_backward(grad_output: Tensor, input: Tensor, beta: _Number, threshold: _Number, *, out: Tensor | None = None) -> Tensor:
    """Gradient of `softplus`."""
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
def swapaxes(input: Tensor, axis0: _int, axis1: _int) -> Tensor:
    """View with the dimensions `axis0` and `axis1` exchanged."""
def swapdims(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """View with the dimensions `dim0` and `dim1` exchanged."""
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
def transpose(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """View with the dimensions `dim0` and `dim1` exchanged."""
def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrices with zeros above a diagonal."""
def tril_(input: Tensor, diagonal: _int = 0) -> Tensor:
    """Matrices with zeros above a diagonal."""
def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrices with zeros below a diagonal."""
def triu_(input: Tensor, diagonal: _int = 0) -> Tensor:
    """Matrices with zeros below a diagonal."""
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
def unsqueeze(input: Tensor, dim: _int) -> Tensor:
    """View with a new dimension of size 1 at `dim`."""
@overload
def var(input: Tensor, unbiased: _bool = True, *, out: Tensor | None = None) -> Tensor:
    """Variance of all elements or over the dimensions `dim`, divided by the number of elements less `correction`, which is 1 unless given."""
@overload
def var(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def var(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False, out: Tensor | None = None) -> Tensor: ...
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of the products of the elements of two vectors, the first conjugated."""
def view(input: Tensor, size: Sequence[_int]) -> Tensor:
    """View of the same elements with another shape; a size of -1 is inferred."""
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
