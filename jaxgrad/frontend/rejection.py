"""PyTorch's samplers that reject: how many words a sample takes depends on the numbers drawn.

XLA makes the samples one after the other, in double precision, of words that NumPy has drawn. One
program serves all counts: it takes `CHUNK` parameters at a time.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..core import executor
from .mersenne import Twister, doubles
from .number_arrays import namespace
from .request import Ready, never_waits
from .torch_numbers import fused, until_accepted
from .traced_twister import TracedState, TracedTwister, window

CHUNK, WINDOW = 256, 1 << 13


class Draws(NamedTuple):
    """What a sample draws from: a window of words and the place in it; the second of a pair of
    normal numbers, and whether there is one.
    """

    words: jax.Array
    place: jax.Array
    normal: jax.Array
    has_normal: jax.Array

    @property
    def is_over(self):
        """Whether the words did not suffice."""
        return self.place > WINDOW

    def uniform(self):
        """A uniform number in [0, 1), and the draws after it."""
        high, low = (self.words[self.place + i].astype(np.uint64) for i in (0, 1))
        bits = (high << 32 | low) & np.uint64(2**53 - 1)
        return bits.astype(np.float64) * 2.0**-53, self._replace(place=self.place + 2)

    def standard_normal(self):
        """A normal number, as `Twister.normals` makes it."""
        first, after = self.uniform()
        second, after = after.uniform()
        radius, angle = jnp.sqrt(-2 * jnp.log1p(-second)), 2 * np.pi * first
        number = jnp.where(self.has_normal, self.normal, radius * jnp.cos(angle))
        after = after._replace(
            place=jnp.where(self.has_normal, self.place, after.place),
            normal=jnp.where(self.has_normal, 0.0, radius * jnp.sin(angle)),
            has_normal=~self.has_normal,
        )
        return number, after


def _until_accepted(draws, attempt):
    """The first accepted value of `attempt(draws)`, which gives a value, whether it is accepted,
    and the draws after it.
    """

    def again(state):
        _, is_accepted, after = state
        return ~is_accepted & ~after.is_over

    start = jnp.float64(0), jnp.bool_(False), draws
    value, _, after = lax.while_loop(again, lambda state: attempt(state[2]), start)
    return value, after


# ---- Poisson


def _poisson(draws, rate):
    return lax.cond(rate >= 10, _poisson_of_much, _poisson_of_little, draws, rate)


def _poisson_of_much(draws, rate):
    """Source: Hoermann, "The transformed rejection method for generating Poisson random variables",
    1993.
    """
    b = 0.931 + 2.53 * jnp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    height, squeeze = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def attempt(draws):
        u, draws = draws.uniform()
        v, draws = draws.uniform()
        u = u - 0.5
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + rate + 0.43)
        is_inside = (us >= 0.07) & (v <= squeeze)
        is_outside = (k < 0) | ((us < 0.013) & (v > us))
        is_below = jnp.log(v) + jnp.log(height) - jnp.log(a / (us * us) + b) <= (
            -rate + k * jnp.log(rate) - lax.lgamma(k + 1)
        )
        return k, is_inside | (~is_outside & is_below), draws

    return _until_accepted(draws, attempt)


def _poisson_of_little(draws, rate):
    """The number of uniform numbers whose product exceeds exp(-rate)."""
    end = jnp.exp(-rate)

    def step(state):
        count, product, draws = state
        u, draws = draws.uniform()
        return count + 1, product * u, draws

    def goes_on(state):
        return (state[1] > end) & ~state[2].is_over

    count, _, after = lax.while_loop(goes_on, step, (jnp.float64(-1), jnp.float64(1), draws))
    is_zero = rate == 0
    after = jax.tree.map(functools.partial(jnp.where, is_zero), draws, after)
    return jnp.where(is_zero, 0, count), after


# ---- gamma


def _gamma(draws, shape, increased, inverse):
    """increased: the shape, plus 1 where it is less than 1; inverse: 1 / shape; both rounded to the
    dtype. Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
    """
    is_small = shape < 1
    u, after = draws.uniform()
    scale = jnp.where(is_small, (1 - u) ** inverse, 1.0)
    draws = draws._replace(place=jnp.where(is_small, after.place, draws.place))
    # PyTorch's constants have single precision
    d = increased
    c = 1 / jnp.sqrt(9 * d)

    def attempt(draws):
        x, draws = draws.standard_normal()
        y = 1 + c * x
        u, after = draws.uniform()
        is_positive = y > 0
        draws = draws._replace(place=jnp.where(is_positive, after.place, draws.place))
        v, u, squared = y * y * y, 1 - u, x * x
        is_inside = u < 1 - float(np.float32(0.0331)) * squared * squared
        is_below = jnp.log(u) < 0.5 * squared + d * (1 - v + jnp.log(v))
        return scale * d * v, is_positive & (is_inside | is_below), draws

    return _until_accepted(draws, attempt)


# ---- binomial

_TAILS = (
    *(0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509),
    *(0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720),
    *(0.00925546218271273, 0.00833056343336287),
)


def _tail(k):
    """What Stirling's formula lacks of the logarithm of a factorial."""
    squared = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / squared) / squared) / (k + 1)
    known = jnp.asarray(_TAILS)[jnp.clip(k, 0, 9).astype(np.int32)]
    return jnp.where(k <= 9, known, series)


def _binomial(draws, count, chance, mean):
    """chance: at most 1/2; mean: count * chance, rounded to the dtype."""

    def nothing(draws, count, chance):
        return jnp.float64(0), draws

    kind = jnp.where((count <= 0) | (chance <= 0), 0, jnp.where(mean >= 10, 2, 1))
    kinds = [nothing, _binomial_of_little, _binomial_of_much]
    return lax.switch(kind, kinds, draws, count, chance)


def _binomial_of_little(draws, count, chance):
    """The number of geometric numbers whose sum does not exceed the count."""
    logarithm = jnp.log1p(-chance)

    def step(state):
        successes, total, draws = state
        u, draws = draws.uniform()
        return successes + 1, total + jnp.ceil(jnp.log(u) / logarithm), draws

    def goes_on(state):
        return (state[1] <= count) & ~state[2].is_over

    successes, _, after = lax.while_loop(goes_on, step, (jnp.float64(-1), jnp.float64(0), draws))
    return successes, after


def _binomial_of_much(draws, count, chance):
    """Source: Hoermann, "The generation of binomial random variates", 1993."""
    deviation = jnp.sqrt(count * chance * (1 - chance))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    center, squeeze = count * chance + 0.5, 0.92 - 4.2 / b
    odds, alpha = chance / (1 - chance), (2.83 + 5.1 / b) * deviation
    m = jnp.floor((count + 1) * chance)

    def attempt(draws):
        u, draws = draws.uniform()
        v, draws = draws.uniform()
        u = u - 0.5
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + center)
        is_outside = (k < 0) | (k > count)
        bound = (
            (m + 0.5) * jnp.log((m + 1) / (odds * (count - m + 1)))
            + (count + 1) * jnp.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * jnp.log(odds * (count - k + 1) / (k + 1))
            + (_tail(m) + _tail(count - m) - _tail(k) - _tail(count - k))
        )
        is_below = jnp.log(v * alpha / (a / (us * us) + b)) <= bound
        return k, ~is_outside & (((us >= 0.07) & (v <= squeeze)) | is_below), draws

    return _until_accepted(draws, attempt)


# ---- programs and requests


def _samples(sample, draws, begin, end, samples, parameters):
    """Overwrite the samples from `begin` to `end`, as far as the words suffice; gives them, the
    number of the first one that is missing, and the draws after the others.
    """

    def goes_on(state):
        number, _, _, is_over = state
        return (number < end) & ~is_over

    def step(state):
        number, samples, draws, _ = state
        value, after = sample(draws, *[parameter[number] for parameter in parameters])
        is_over = after.is_over
        after = jax.tree.map(functools.partial(jnp.where, is_over), draws, after)
        samples = samples.at[number].set(jnp.where(is_over, samples[number], value))
        return jnp.where(is_over, number, number + 1), samples, after, is_over

    state = begin, samples, draws, jnp.bool_(False)
    number, samples, draws, _ = lax.while_loop(goes_on, step, state)
    return samples, number, draws


def _draws(words, normal, has_normal) -> Draws:
    # beyond the end lies no word that is used
    return Draws(jnp.concatenate([words, jnp.zeros(4, np.uint32)]), np.int32(0), normal, has_normal)


def _chunk(sample, words, normal, has_normal, count, *parameters):
    """The samples for the first `count` of CHUNK parameters, as far as the words suffice."""
    draws = _draws(words, normal, has_normal)
    samples, number, draws = _samples(
        sample, draws, np.int32(0), count, jnp.zeros(CHUNK), parameters
    )
    return samples, number, draws.place, draws.normal, draws.has_normal


@functools.cache
def _program(sample):
    return executor.compiled(functools.partial(_chunk, sample), wide=True)


class SamplesRequest(NamedTuple):
    """Samples for given parameters, float64 of one shape. sampler: a name in SAMPLERS."""

    sampler: str
    parameters: tuple
    waits_after = never_waits

    @property
    def structs(self):
        return [jax.ShapeDtypeStruct(self.parameters[0].shape, np.float64)]

    def take(self, seed, state):
        if self.sampler in OF_ALL:
            twister = Twister(seed, state)
            return [Ready(OF_ALL[self.sampler](twister, *self.parameters))], twister.state()
        count = self.parameters[0].size
        samples, done = np.empty(count), 0
        while done < count:
            part = [parameter.ravel()[done : done + CHUNK] for parameter in self.parameters]
            values, state = _some(SAMPLERS[self.sampler], part, seed, state)
            samples[done : done + len(values)] = values
            done += len(values)
        return [Ready(samples.reshape(self.parameters[0].shape))], state


def traced_samples(sampler: str, state: TracedState, parameters):
    """The samples in a program, float64, and the state after them; parameters: float64."""
    if sampler in OF_ALL:
        twister = TracedTwister(state)
        samples = OF_ALL[sampler](twister, *parameters)
        return samples, twister.state
    shape, count = parameters[0].shape, parameters[0].size
    if not count:
        return jnp.zeros(shape), state
    parameters = [parameter.ravel() for parameter in parameters]

    def goes_on(carried):
        number, before, _, _ = carried
        # a parameter that is NaN takes words without an end
        return (number < count) & (number > before)

    def step(carried):
        number, _, samples, state = carried
        following = window(state, WINDOW)
        draws = _draws(following.words, state.normal, state.has_normal)
        samples, after, draws = _samples(
            SAMPLERS[sampler], draws, number, np.int32(count), samples, parameters
        )
        state = following.state_after(draws.place)
        state = state._replace(normal=draws.normal, has_normal=draws.has_normal)
        return after, number, samples, state

    start = jnp.int32(0), jnp.int32(-1), jnp.full(count, np.nan), state
    _, _, samples, state = lax.while_loop(goes_on, step, start)
    return samples.reshape(shape), state


def _some(sample, parameters, seed, state):
    """Samples for some of the parameters, the first ones, and the next state."""
    count = len(parameters[0])
    padded = [np.pad(parameter, (0, CHUNK - count)) for parameter in parameters]
    words = Twister(seed, state).words(WINDOW)
    normal = np.float64(state.normal or 0), np.bool_(state.normal is not None)
    with jax.ensure_compile_time_eval():
        results = _program(sample)(words, *normal, np.int32(count), *padded)
    samples, number, place, normal, has_normal = map(np.asarray, results)
    if not number:
        raise RuntimeError(f"a sample takes more than {WINDOW} random words: a parameter is NaN")
    twister = Twister(seed, state)
    twister.words(int(place))
    twister.normal = float(normal) if has_normal else None
    return samples[:number], twister.state()


SAMPLERS = {"poisson": _poisson, "gamma": _gamma, "binomial": _binomial}


# ---- samplers of all samples at once


def _slopes(twister, values, low, high):
    """A uniform number for each value that is not positive, 1 for the others."""
    is_random = (values <= 0).ravel()
    if isinstance(twister, Twister):
        slopes = np.ones(values.size)
        slopes[is_random] = fused(doubles(twister.words(2 * int(is_random.sum()))), high - low, low)
        return slopes.reshape(values.shape)
    places = jnp.cumsum(is_random)
    following = window(twister.state, 2 * values.size)
    twister.state = following.state_after(2 * places[-1]) if values.size else twister.state
    numbers = fused(doubles(following.words), high - low, low)
    return jnp.where(is_random, numbers[places - 1], 1.0).reshape(values.shape)


def _von_mises(twister, kappa):
    """Angles of von Mises distributions around 0. Numbers are drawn for all of them as long as one
    has none that is accepted. Source: Best and Fisher, "Efficient Simulation of the von Mises
    Distribution", 1979.
    """
    xp = namespace(kappa)
    tau = 1 + xp.sqrt(1 + 4 * kappa * kappa)
    rho = (tau - xp.sqrt(2 * tau)) / (2 * kappa)
    # for a small concentration its series, to the second order
    proposal = xp.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))

    def attempt(twister):
        u, v, sign = doubles(twister.words(6 * kappa.size)).reshape(3, *kappa.shape)
        z = xp.cos(np.pi * u)
        f = (1 + proposal * z) / (proposal + z)
        c = kappa * (proposal - f)
        is_accepted = (c * (2 - c) - v > 0) | (xp.log(c / v) + 1 - c >= 0)
        return xp.sign(sign - 0.5) * xp.arccos(f), ~is_accepted

    with np.errstate(divide="ignore", invalid="ignore"):
        return until_accepted(twister, attempt, keeps_first=False)


OF_ALL = {"slopes": _slopes, "von_mises": _von_mises}


# ---- the parameters of the samplers


def slopes(values, low: float, high: float):
    return "slopes", (values, np.float64(low), np.float64(high))


def von_mises(kappa):
    return "von_mises", (kappa.astype(np.float64),)


def poisson(rate):
    return "poisson", (rate.astype(np.float64),)


def gamma(shape):
    xp, one = namespace(shape), shape.dtype.type(1)
    # with PyTorch's constant, and rounded as there
    increased = xp.where(shape < 1, shape + one, shape) - np.float32(1 / 3)
    with np.errstate(divide="ignore"):
        inverse = one / shape
    numbers = shape, increased, inverse
    return "gamma", tuple([number.astype(np.float64) for number in numbers])


def gamma_of_double(shape):
    return gamma(shape.astype(np.float64))


def binomial(count, chance):
    """The number of successes or of failures, whichever is less probable."""
    xp = namespace(count)
    less = xp.where(chance > 0.5, chance.dtype.type(1) - chance, chance)
    numbers = xp.broadcast_arrays(count, less, count * less)
    return "binomial", tuple([number.astype(np.float64) for number in numbers])
