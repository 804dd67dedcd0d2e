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
    Tensor,
)
from jaxgrad.ops import (
    digamma as digamma,
    erf as erf,
    erfc as erfc,
    erfinv as erfinv,
    exp2 as exp2,
    expm1 as expm1,
    i0 as i0,
    log1p as log1p,
    log_softmax as log_softmax,
    logit as logit,
    logsumexp as logsumexp,
    polygamma as polygamma,
    round as round,
    sinc as sinc,
    softmax as softmax,
    xlogy as xlogy,
)
def airy_ai(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Airy function Ai."""
def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the first kind of order 0."""
def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the first kind of order 1."""
def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the second kind of order 0, NaN for negative numbers."""
def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the second kind of order 1, NaN for negative numbers."""
@overload
def chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the first kind, of degree `n`; 0 for negative `n`."""
@overload
def chebyshev_polynomial_t(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def chebyshev_polynomial_t(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the second kind, of degree `n`; 0 for negative `n`."""
@overload
def chebyshev_polynomial_u(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def chebyshev_polynomial_u(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the third kind, of degree `n`; 0 for negative `n`."""
@overload
def chebyshev_polynomial_v(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def chebyshev_polynomial_v(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the fourth kind, of degree `n`; 0 for negative `n`."""
@overload
def chebyshev_polynomial_w(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def chebyshev_polynomial_w(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Entropy `-input * log(input)`, 0 at 0 and minus infinity below."""
def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Scaled complementary error function, `exp(input ** 2) * erfc(input)`."""
def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logistic function `1 / (1 + exp(-input))`."""
def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Regularized lower incomplete gamma function of order `input`, the integral of `t ** (input - 1) * exp(-t) / gamma(input)` from 0 to `other`."""
def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Regularized upper incomplete gamma function of order `input`, `1 - igamma(input, other)`, accurate where it is small."""
def gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, and so on."""
@overload
def hermite_polynomial_h(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hermite polynomial of the physicists, of degree `n`; 0 for negative `n`."""
@overload
def hermite_polynomial_h(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def hermite_polynomial_h(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def hermite_polynomial_he(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hermite polynomial of the probabilists, of degree `n`; 0 for negative `n`."""
@overload
def hermite_polynomial_he(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def hermite_polynomial_he(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 0, scaled by `exp(-abs(input))`."""
def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 1."""
def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 1, scaled by `exp(-abs(input))`; the second derivative jumps at 0."""
@overload
def laguerre_polynomial_l(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Laguerre polynomial, of degree `n`; 0 for negative `n`."""
@overload
def laguerre_polynomial_l(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def laguerre_polynomial_l(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def legendre_polynomial_p(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Legendre polynomial, of degree `n`; 0 for negative `n`."""
@overload
def legendre_polynomial_p(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def legendre_polynomial_p(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the distribution function of the normal distribution, accurate in its tail."""
def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 0."""
def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 1, as `special_i1`."""
def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 0, NaN for negative numbers."""
def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 1, NaN for negative numbers."""
def multigammaln(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension `p`, for elements greater than `(p - 1) / 2`."""
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Quantile of the normal distribution."""
def psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Derivative of `lgamma`; infinite at 0, and NaN at -1, -2, and so on."""
def scaled_modified_bessel_k0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 0, scaled by `exp(x)`."""
def scaled_modified_bessel_k1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 1, scaled by `exp(x)`."""
@overload
def shifted_chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the first kind at `2 * x - 1`, of degree `n`; 0 for negative `n`."""
@overload
def shifted_chebyshev_polynomial_t(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def shifted_chebyshev_polynomial_t(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def shifted_chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the second kind at `2 * x - 1`, of degree `n`; 0 for negative `n`."""
@overload
def shifted_chebyshev_polynomial_u(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def shifted_chebyshev_polynomial_u(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def shifted_chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the third kind at `2 * x - 1`, of degree `n`; 0 for negative `n`."""
@overload
def shifted_chebyshev_polynomial_v(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def shifted_chebyshev_polynomial_v(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def shifted_chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomial of the fourth kind at `2 * x - 1`, of degree `n`; 0 for negative `n`."""
@overload
def shifted_chebyshev_polynomial_w(x: _Number, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def shifted_chebyshev_polynomial_w(x: Tensor, n: _Number, *, out: Tensor | None = None) -> Tensor: ...
def spherical_bessel_j0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Spherical Bessel function of the first kind of order 0, `sin(x) / x`."""
@overload
def xlog1py(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product `input * log1p(other)`, 0 where `input` is 0; where also `other <= -1` the gradient of `input` is 0."""
@overload
def xlog1py(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlog1py(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def zeta(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz zeta function, the sum of `(k + other) ** -input` over k from 0; differentiable in `other`."""
@overload
def zeta(input: _Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def zeta(input: Tensor, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
