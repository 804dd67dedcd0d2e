"""Orthogonal polynomials of degree n at x, by their recurrences.

The degree may be a tensor: the recurrence runs up to the largest, and each element keeps what its
own degree has reached. A degree that is not whole is rounded towards 0; for a negative one the
value is 0. Derivatives in x are again orthogonal polynomials: those of Chebyshev and Legendre
polynomials are Gegenbauer's, those of Laguerre polynomials have a higher parameter.
"""

import functools

import jax.numpy as jnp
from jax import lax

from jaxgrad.core import device_axes, dtypes, promotion

POINTWISE = True


def whole(n):
    """A degree as an integer, which holds more than any recurrence can reach."""
    n = jnp.asarray(n)
    if jnp.issubdtype(n.dtype, jnp.floating):
        n = jnp.where(jnp.isfinite(n), n, -1)
    return jnp.clip(n, -(2**30) if n.dtype != jnp.uint8 else 0, 2**30).astype(jnp.int32)


def _of_degree(function):
    """An operator of x and a degree; the function gets x and whole degrees of one shape."""
    name = function.__name__

    @functools.wraps(function)
    def computed(x, n, *parameters):
        x, n = promotion.unify_floating(x, n)
        dtype = dtypes.from_numpy(x.dtype)
        if dtype.is_complex or dtype.itemsize < 4:
            raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.scalar_type}'")
        shape = promotion.broadcast_shapes(name, x.shape, n.shape)
        x, n = jnp.broadcast_to(x, shape), whole(jnp.broadcast_to(n, shape))
        return jnp.where(n < 0, 0, function(x, n, *parameters)).astype(x.dtype)

    computed.result_dtype = "floating point for integers too"  # as `help` shows it
    return computed


def _recurrence(x, n, second, step):
    """Of the polynomials 1, `second` and `step(k, p_{k-1}, p_{k-2})` for k >= 2 the n-th."""

    def further(state):
        k, before, last, value = state
        polynomial = step(k.astype(x.dtype), last, before)
        return k + 1, last, polynomial, jnp.where(n == k, polynomial, value)

    most = jnp.max(n, initial=0)
    one = jnp.ones_like(x)
    start = jnp.int32(2), one, second, jnp.where(n <= 0, one, second)
    return device_axes.while_loop(lambda state: state[0] <= most, further, start)[-1]


def _sign(n):
    """(-1) ** n."""
    return jnp.where(n % 2 == 0, 1, -1)


# ---- Chebyshev polynomials

# above this degree a cosine or a sine is more accurate between -1 and 1 than the recurrence
_MOST_STEPS = {"t": 6, "u": 8, "v": 8, "w": 8}
_SECOND = {
    "t": lambda x: x,
    "u": lambda x: 2 * x,
    "v": lambda x: 2 * x - 1,
    "w": lambda x: 2 * x + 1,
}
_WAVES = {
    "t": lambda n, angle: lax.cos(n * angle),
    "u": lambda n, angle: lax.sin((n + 1) * angle) / lax.sin(angle),
    "v": lambda n, angle: lax.cos((n + 0.5) * angle) / lax.cos(angle / 2),
    "w": lambda n, angle: lax.sin((n + 0.5) * angle) / lax.sin(angle / 2),
}
# at 1, and at -1 without the sign (-1) ** n
_ENDS = {
    "t": (lambda n: jnp.ones_like(n), lambda n: jnp.ones_like(n)),
    "u": (lambda n: n + 1, lambda n: n + 1),
    "v": (lambda n: jnp.ones_like(n), lambda n: 2 * n + 1),
    "w": (lambda n: 2 * n + 1, lambda n: jnp.ones_like(n)),
}


def _chebyshev(kind, x, n):
    is_end = jnp.abs(x) == 1
    is_wave = (n > _MOST_STEPS[kind]) & (jnp.abs(x) < 1)
    degree = n.astype(x.dtype)
    angle = lax.acos(jnp.where(is_wave, x, 0.5))
    steps = jnp.where(is_end | is_wave, 0, n)
    value = _recurrence(x, steps, _SECOND[kind](x), lambda k, last, before: 2 * x * last - before)
    upper, lower = (end(degree) for end in _ENDS[kind])
    value = jnp.where(is_wave, _WAVES[kind](degree, angle), value)
    return jnp.where(is_end, jnp.where(x > 0, upper, lower * _sign(n)), value)


@_of_degree
def special_chebyshev_polynomial_t(x, n):
    return _chebyshev("t", x, n)


@_of_degree
def special_chebyshev_polynomial_u(x, n):
    return _chebyshev("u", x, n)


@_of_degree
def special_chebyshev_polynomial_v(x, n):
    return _chebyshev("v", x, n)


@_of_degree
def special_chebyshev_polynomial_w(x, n):
    return _chebyshev("w", x, n)


@_of_degree
def special_shifted_chebyshev_polynomial_t(x, n):
    return _chebyshev("t", 2 * x - 1, n)


@_of_degree
def special_shifted_chebyshev_polynomial_u(x, n):
    return _chebyshev("u", 2 * x - 1, n)


@_of_degree
def special_shifted_chebyshev_polynomial_v(x, n):
    return _chebyshev("v", 2 * x - 1, n)


@_of_degree
def special_shifted_chebyshev_polynomial_w(x, n):
    return _chebyshev("w", 2 * x - 1, n)


# ---- Hermite, Laguerre, Legendre and Gegenbauer polynomials

_MOST_OF_HERMITE = {jnp.dtype("float32"): 128, jnp.dtype("float64"): 512}


def _hermite(x, n, second, step):
    """Above a degree where the values overflow they are NaN, as in PyTorch."""
    most = _MOST_OF_HERMITE[x.dtype]
    value = _recurrence(x, jnp.minimum(n, most), second, step)
    return jnp.where(n > most, jnp.nan, value)


@_of_degree
def special_hermite_polynomial_h(x, n):
    return _hermite(x, n, 2 * x, lambda k, last, before: 2 * (x * last - (k - 1) * before))


@_of_degree
def special_hermite_polynomial_he(x, n):
    return _hermite(x, n, x, lambda k, last, before: x * last - (k - 1) * before)


@_of_degree
def special_laguerre_polynomial_l(x, n):
    return _laguerre(x, n, 0)


@_of_degree
def laguerre_polynomial(x, n, alpha):
    """The generalized Laguerre polynomial."""
    return _laguerre(x, n, alpha)


def _laguerre(x, n, alpha):
    def step(k, last, before):
        return ((2 * k - 1 + alpha - x) * last - (k - 1 + alpha) * before) / k

    return _recurrence(x, n, 1 + alpha - x, step)


@_of_degree
def special_legendre_polynomial_p(x, n):
    is_end = jnp.abs(x) == 1
    steps = jnp.where(is_end, 0, n)
    value = _recurrence(
        x, steps, x, lambda k, last, before: ((2 * k - 1) * x * last - (k - 1) * before) / k
    )
    return jnp.where(is_end, jnp.where(x > 0, 1, _sign(n)), value)


@_of_degree
def gegenbauer_polynomial(x, n, alpha):
    def step(k, last, before):
        return (2 * (k + alpha - 1) * x * last - (k + 2 * alpha - 2) * before) / k

    return _recurrence(x, n, 2 * alpha * x, step)
