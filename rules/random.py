"""Samplers. Their random numbers, or the key of a draw, are inputs, which a generator supplies
(jaxgrad/frontend/random.py), so that a compiled function draws new numbers in each call. In place
of a key, which is uint32, float64 samples are what PyTorch's stream has given.

Samples of discrete distributions and those that replace a tensor's values have gradients of zero,
as in PyTorch. The gradients of gamma and Dirichlet samples stand in `sample_slopes`.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxgrad.core import dtypes, promotion

ALGORITHM = "threefry2x32"


def _key(words):
    return jax.random.wrap_key_data(words, impl=ALGORITHM)


def _at_once(sample):
    """A sampler of a key and parameters of one shape. The examples of a `jax.vmap` that have a key
    each draw as one tensor by the first, since all of them have one key (`new_key`).
    """

    @jax.custom_batching.custom_vmap
    def of_one(words, *parameters):
        return sample(_key(words), *parameters)

    @of_one.def_vmap
    def of_many(size, are_batched, words, *parameters):
        has_keys, *are_batched = are_batched
        if not has_keys:
            axes = [0 if is_batched else None for is_batched in are_batched]
            return jax.vmap(of_one.fun, (None, *axes))(words, *parameters), True
        parameters = [
            parameter if is_batched else jnp.broadcast_to(parameter, (size, *parameter.shape))
            for parameter, is_batched in zip(parameters, are_batched, strict=True)
        ]
        words = words[0] if size else jnp.zeros_like(words, shape=words.shape[1:])
        return of_one(words, *parameters), True

    return of_one


@_at_once
def _poisson(key, rate):
    return jax.random.poisson(key, rate, rate.shape)


@_at_once
def _binomial(key, trials, chance):
    return jax.random.binomial(key, trials, chance, trials.shape)


@_at_once
def _log_of_gamma(key, shape):
    return jax.random.loggamma(key, shape, shape.shape, shape.dtype)


def _is_sample(key) -> bool:
    """Whether samples stand in the place of a key."""
    return key.dtype == jnp.float64


def single_of_half(tensor):
    """Samples of half precision are drawn in single precision."""
    is_half = tensor.dtype in (jnp.float16, jnp.bfloat16)
    return tensor.astype(jnp.float32) if is_half else tensor


def check_floating(name, tensor, error=NotImplementedError):
    if not jnp.issubdtype(tensor.dtype, jnp.floating):
        kind = dtypes.from_numpy(tensor.dtype).scalar_type
        raise error(f"\"{name}\" not implemented for '{kind}': it takes floating point tensors")


# discrete distributions


def sampled_bernoulli(self, sample):
    """1 where a uniform number is less than the probability `self`, else 0."""
    check_floating("bernoulli", self)
    return (sample < self).astype(self.dtype)


def overwritten_bernoulli(self, p, sample):
    """0 and 1 with probability p in the shape and dtype of `self`."""
    if hasattr(p, "dtype") and p.ndim:
        check_floating("bernoulli_", p)
        together = promotion.broadcast_shapes("bernoulli_", self.shape, p.shape)
        if together != self.shape:
            raise RuntimeError(
                f"bernoulli_(): the shape {list(p.shape)} of the probabilities does not broadcast "
                f"to the shape {list(self.shape)} of the tensor"
            )
    return jnp.broadcast_to(sample < p, self.shape).astype(self.dtype)


def sampled_poisson(self, key):
    check_floating("poisson", self)
    if _is_sample(key):
        return key.astype(self.dtype)
    return _poisson(key, single_of_half(self)).astype(self.dtype)


def sampled_binomial(count, prob, key):
    """The number of successes; a count below 0 counts as 0, a probability is kept in [0, 1]."""
    for name, tensor in (("count", count), ("prob", prob)):
        if not jnp.issubdtype(tensor.dtype, jnp.floating):
            kind = dtypes.from_numpy(tensor.dtype).scalar_type
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {kind}"
            )
    if count.dtype != prob.dtype:
        kinds = [dtypes.from_numpy(tensor.dtype).scalar_type for tensor in (prob, count)]
        raise RuntimeError(f"Found dtype {kinds[0]} but expected {kinds[1]}")
    shape = promotion.broadcast_shapes("binomial", count.shape, prob.shape)
    if _is_sample(key):
        # of the failures where these are less probable
        return jnp.where(prob > 0.5, count - key, key).astype(count.dtype)
    trials = jnp.broadcast_to(jnp.maximum(single_of_half(count), 0), shape)
    chance = jnp.broadcast_to(jnp.clip(single_of_half(prob), 0, 1), shape)
    return _binomial(key, trials, chance).astype(count.dtype)


def sampled_multinomial(self, num_samples, replacement, numbers):
    """Categories with probabilities in proportion to `self`.

    With replacement by the inverse of the distribution function, of uniform numbers. Without it the
    categories whose waiting times, of exponential numbers divided by the rates `self`, are least.
    Source: Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006.
    """
    weights = single_of_half(self)
    if not replacement:
        rates = weights / numbers.astype(weights.dtype)
        return lax.top_k(rates, num_samples)[1].astype(promotion.available(dtypes.int64))
    totals = jnp.cumsum(weights, axis=-1)
    shares = (totals / totals[..., -1:]).astype(numbers.dtype)
    # no number is 0, so that no category of weight 0 comes first
    wanted = jnp.maximum(numbers, jnp.finfo(numbers.dtype).tiny)
    find = jnp.searchsorted
    categories = (jax.vmap(find) if self.ndim == 2 else find)(shares, wanted)
    # rounding may reach the total
    places = jnp.arange(self.shape[-1])
    last = jnp.max(jnp.where(weights > 0, places, 0), axis=-1, keepdims=True)
    return jnp.minimum(categories, last).astype(promotion.available(dtypes.int64))


# gamma and Dirichlet


def sampled_gamma(self, key):
    """Samples of gamma distributions with shape `self` and rate 1, not less than the smallest
    normal number.
    """
    check_floating("_standard_gamma", self)
    # the logarithm does not underflow for a small shape
    samples = key if _is_sample(key) else jnp.exp(_log_of_gamma(key, single_of_half(self)))
    return jnp.maximum(samples, jnp.finfo(self.dtype).tiny).astype(self.dtype)


def sampled_dirichlet(self, key):
    """Samples of Dirichlet distributions with the concentrations in the last dimension: more than 0
    and less than 1.
    """
    check_floating("dirichlet", self)
    if _is_sample(key):
        gamma = jnp.maximum(key, jnp.finfo(key.dtype).tiny)  # all may underflow
        samples = (gamma / jnp.sum(gamma, -1, keepdims=True)).astype(self.dtype)
    else:
        samples = jax.nn.softmax(_log_of_gamma(key, single_of_half(self)), axis=-1)
    bounds = jnp.finfo(self.dtype)
    return jnp.clip(samples.astype(self.dtype), bounds.tiny, 1 - bounds.epsneg)


# dropout


def dropped(self, mask, scale):
    """`self` times `scale` where the mask is true, else 0."""
    return jnp.where(mask, self * scale, jnp.zeros((), self.dtype)).astype(self.dtype)
