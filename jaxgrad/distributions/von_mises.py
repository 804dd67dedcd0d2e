"""The von Mises distribution."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..frontend.jax_interop import own_operator
from ..frontend.random import default_generator, new_key, samples_in_turn
from ..late import LateModule
from ..names.missing import missing_in
from ..rules.gamma import polynomial
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

rejection = LateModule("jaxgrad.frontend.rejection")  # it needs NumPy's random numbers

ALGORITHM = "threefry2x32"


@fused
def von_mises_log_prob(value, loc, concentration):
    # concentration * cos(value - loc) less its greatest value, which `i0e` is divided by
    exponent = -2 * concentration * ops.square(ops.sin((value - loc) / 2))
    return exponent - ops.log(ops.special_i0e(concentration)) - math.log(2 * math.pi)


# 1 - i1(x) / i0(x) for a large x, times x, in powers of 1 / x
_VARIANCE = (1 / 2, 1 / 8, 1 / 8, 25 / 128, 13 / 32, 1073 / 1024, 103 / 32)


@fused
def von_mises_variance(concentration):
    bound = 200 if concentration.dtype is dtypes.float64 else 20
    is_large = concentration > bound
    small = ops.where(is_large, 1, concentration)
    large = ops.where(is_large, concentration, bound)
    plain = 1 - ops.special_i1e(small) / ops.special_i0e(small)
    return ops.where(is_large, polynomial(_VARIANCE, 1 / large) / large, plain)


@own_operator
def _angles(concentration, key, shape):
    """Angles of von Mises distributions around 0, by rejection.

    Source: Best and Fisher, "Efficient Simulation of the von Mises Distribution", 1979. What they
    subtract from 1 is computed as the difference, so that large and small concentrations lose no
    digits.
    """
    kappa = jnp.broadcast_to(jax.lax.stop_gradient(concentration), shape)
    root = jnp.hypot(1, 2 * kappa)
    tau = 1 + root
    sum_of_roots = tau + jnp.sqrt(2 * tau)
    rho = 2 * kappa / sum_of_roots
    rest = (1 + 1 / (root + 2 * kappa) + jnp.sqrt(2 * tau)) / sum_of_roots  # 1 - rho
    excess = rest**2 / (2 * rho)  # r - 1

    def draw(state):
        key, angle, is_done = state
        key, used = jax.random.split(key)
        u, v, sign = jax.random.uniform(used, (3, *shape), kappa.dtype)
        half = jnp.sin(jnp.pi / 2 * u) ** 2  # (1 - z) / 2
        depth = 2 * half * excess / (2 + excess - 2 * half)  # 1 - f
        c = kappa * (excess + depth)
        is_accepted = (c * (2 - c) > v) | (jnp.log(c / v) + 1 - c >= 0)
        new = jnp.where(sign < 0.5, -2, 2) * jnp.arcsin(jnp.sqrt(depth / 2))
        return key, jnp.where(is_done, angle, new), is_done | is_accepted

    start = jax.random.wrap_key_data(key, impl=ALGORITHM), jnp.zeros_like(kappa), kappa != kappa
    return jax.lax.while_loop(lambda state: ~jnp.all(state[2]), draw, start)[1]


class VonMises(Distribution):
    """The von Mises distribution of angles, with a density in proportion to `exp(concentration *
    cos(x - loc))`.

    loc: the mean direction, in radians. concentration: positive. Both are tensors or numbers, which
    broadcast to batch_shape. Samples are from -pi to pi. `variance` is the circular variance,
    `1 - i1(concentration) / i0(concentration)`.

    >>> von_mises = jaxgrad.distributions.VonMises(jaxgrad.tensor(0.0), jaxgrad.tensor(1.0))
    >>> von_mises.log_prob(jaxgrad.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(
        self,
        loc: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return von_mises_variance(self.concentration)

    def sample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return self._around_loc(self._around_zero(tuple(shape)))

    def _around_zero(self, shape) -> Tensor:
        kappa = self.concentration.expand(shape)
        name, sampler = "VonMises.sample", rejection.von_mises
        angles = samples_in_turn(default_generator, name, sampler, kappa)
        if angles is not None:
            return angles
        key = new_key(None, name, self.concentration)
        return _angles(self.concentration, key, shape)

    def _around_loc(self, angles) -> Tensor:
        """Angles from -pi to pi around the mean direction, given those around 0."""
        turned = (angles + math.pi + self.loc.to(angles.dtype)) % (2 * math.pi) - math.pi
        return turned.to(self.loc.dtype)

    log_prob = bound(von_mises_log_prob)


__getattr__ = missing_in(__name__)
