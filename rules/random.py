"""Samplers. Their random numbers, or the key of a draw, are inputs, which a generator supplies
(jaxgrad/frontend/random.py), so that a compiled function draws new numbers in each call.

Samples of discrete distributions and those that replace a tensor's values have gradients of zero,
as in PyTorch. A gamma sample has the gradient of implicit reparameterization: its distribution
function stays the same when the shape parameter moves. Source: Figurnov, Mohamed and Mnih,
"Implicit Reparameterization Gradients", 2018.
"""

import functools

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.primitive import op

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
        return of_one(words[0], *parameters), True

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


def _wide(tensor):
    """Samples of half precision are drawn in single precision."""
    is_half = tensor.dtype in (jnp.float16, jnp.bfloat16)
    return tensor.astype(jnp.float32) if is_half else tensor


def _precise(tensor):
    """In double precision, if it is enabled."""
    return tensor.astype(jnp.result_type(float))


def _check_floating(name, tensor, error=NotImplementedError):
    if not jnp.issubdtype(tensor.dtype, jnp.floating):
        kind = dtypes.from_numpy(tensor.dtype).scalar_type
        raise error(f"\"{name}\" not implemented for '{kind}': it takes floating point tensors")


# discrete distributions


def sampled_bernoulli(self, sample):
    """1 where a uniform number is less than the probability `self`, else 0."""
    _check_floating("bernoulli", self)
    return (sample < self).astype(self.dtype)


def overwritten_bernoulli(self, p, sample):
    """0 and 1 with probability p in the shape and dtype of `self`."""
    if hasattr(p, "dtype") and p.ndim:
        _check_floating("bernoulli_", p)
        together = promotion.broadcast_shapes("bernoulli_", self.shape, p.shape)
        if together != self.shape:
            raise RuntimeError(
                f"bernoulli_(): the shape {list(p.shape)} of the probabilities does not broadcast "
                f"to the shape {list(self.shape)} of the tensor"
            )
    return jnp.broadcast_to(sample < p, self.shape).astype(self.dtype)


def sampled_poisson(self, key):
    _check_floating("poisson", self)
    return _poisson(key, _wide(self)).astype(self.dtype)


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
    trials = jnp.broadcast_to(jnp.maximum(_wide(count), 0), shape)
    chance = jnp.broadcast_to(jnp.clip(_wide(prob), 0, 1), shape)
    return _binomial(key, trials, chance).astype(count.dtype)


def sampled_multinomial(self, num_samples, replacement, uniform):
    """Categories with probabilities in proportion to `self`, by uniform numbers.

    With replacement by the inverse of the distribution function. Without it the categories whose
    waiting times, exponential with the rates `self`, are least. Source: Efraimidis and Spirakis,
    "Weighted random sampling with a reservoir", 2006.
    """
    weights = _wide(self)
    if not replacement:
        tiny = jnp.finfo(weights.dtype).tiny
        times = jnp.maximum(-jnp.log1p(-uniform.astype(weights.dtype)), tiny)
        return lax.top_k(weights / times, num_samples)[1].astype(promotion.available(dtypes.int64))
    totals = jnp.cumsum(weights, axis=-1)
    wanted = uniform.astype(weights.dtype) * totals[..., -1:]
    find = functools.partial(jnp.searchsorted, side="right")
    categories = (jax.vmap(find) if self.ndim == 2 else find)(totals, wanted)
    # rounding may reach the total
    places = jnp.arange(self.shape[-1])
    last = jnp.max(jnp.where(weights > 0, places, 0), axis=-1, keepdims=True)
    return jnp.minimum(categories, last).astype(promotion.available(dtypes.int64))


# gamma and Dirichlet


def sampled_gamma(self, key):
    """Samples of gamma distributions with shape `self` and rate 1, not less than the smallest
    normal number.
    """
    _check_floating("_standard_gamma", self)
    # the logarithm does not underflow for a small shape
    samples = jnp.exp(_log_of_gamma(key, _wide(self)))
    return jnp.maximum(samples, jnp.finfo(self.dtype).tiny).astype(self.dtype)


def gamma_sample_slope(self, output):
    """The derivative of a gamma sample `output` by the shape `self`."""
    shape, sample = _together(self, output)
    slope = lax.random_gamma_grad(_wide(shape), jnp.where(sample > 0, _wide(sample), 1))
    return jnp.where(sample > 0, slope, 0).astype(shape.dtype)


def _together(*tensors):
    """The tensors in one dtype and shape."""
    dtype = jnp.result_type(*tensors)
    shape = jnp.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return [jnp.broadcast_to(tensor, shape).astype(dtype) for tensor in tensors]


def standard_gamma_grad_self_backward(grad, self, output):
    """`grad` times the derivative by the shape, at a constant sample."""
    shape, sample = _precise(self), _precise(output)
    by_shape = functools.partial(_gamma_slope, sample=jnp.where(sample > 0, sample, 1))
    slope = jax.jvp(by_shape, (shape,), (jnp.ones_like(shape),))[1]
    slope = jnp.where(sample > 0, slope, 0)
    return grad * slope.astype(grad.dtype)


def standard_gamma_grad_output_backward(grad, self, output, result):
    """`grad` times the derivative by the sample, which is known in closed form."""
    inside = output > 0
    sample = jnp.where(inside, output, 1)
    slope = lax.digamma(self) - jnp.log(sample) - result * ((self - 1) / sample - 1)
    return grad * jnp.where(inside, slope, 0)


@functools.cache
def _nodes(dtype):
    """Places and weights of a double exponential quadrature over the positive numbers.

    Source: Takahasi and Mori, "Double Exponential Formulas for Numerical Integration", 1974.
    """
    step = 0.125
    places = numpy.arange(-3.75, 14, step)
    nodes = numpy.exp(places - numpy.exp(-places))
    weights = step * nodes * (1 + numpy.exp(-places))
    return nodes.astype(dtype), weights.astype(dtype)


def _gamma_slope(shape, sample):
    """The value of `gamma_sample_slope`, by integrals that JAX can differentiate.

    For the density p, the derivative of the distribution function by the shape is the integral of
    p(t) (log t - digamma(shape)) up to the sample, or minus that from the sample on.
    """
    places, weights = _nodes(shape.dtype)
    shape, sample = shape[..., None], sample[..., None]
    is_low = sample <= shape
    # up to the sample, t = sample * exp(-w / shape)
    low = jnp.where(is_low, sample, shape / 2)
    decay = jnp.exp(-places + low * -jnp.expm1(-places / shape))
    center = lax.digamma(shape)
    below = decay * (jnp.log(low) - places / shape - center) * low / shape
    # from the sample on, t = sample + w
    high = jnp.where(is_low, shape + 1, sample)
    decay = jnp.exp((shape - 1) * jnp.log1p(places / high) - places)
    above = decay * (jnp.log(high + places) - center)
    return jnp.sum(jnp.where(is_low, -below, above) * weights, axis=-1)


def sampled_dirichlet(self, key):
    """Samples of Dirichlet distributions with the concentrations in the last dimension."""
    _check_floating("dirichlet", self)
    samples = jax.nn.softmax(_log_of_gamma(key, _wide(self)), axis=-1)
    return jnp.clip(samples, jnp.finfo(self.dtype).tiny, 1).astype(self.dtype)


def sample_dirichlet_backward(grad, self, result):
    total = jnp.broadcast_to(jnp.sum(self, axis=-1, keepdims=True), self.shape)
    centered = grad - jnp.sum(result * grad, axis=-1, keepdims=True)
    return op._dirichlet_grad(result, self, total) * centered


def beta_sample_slope(x, alpha, total):
    """The derivative of a beta sample x by its first parameter alpha, divided by 1 - x; the second
    parameter is total - alpha.
    """
    _check_floating("_dirichlet_grad", x)
    slope = _beta_slope(_precise(alpha), _precise(total) - _precise(alpha), _precise(x))
    return slope.astype(x.dtype)


def _beta_slope(alpha, beta, x):
    """As `_gamma_slope`, for a beta distribution, and divided by 1 - x."""
    places, weights = _nodes(x.dtype)
    alpha, beta, x = (tensor[..., None] for tensor in jnp.broadcast_arrays(alpha, beta, x))
    mean = alpha / (alpha + beta)
    is_low = x <= mean
    center = lax.digamma(alpha) - lax.digamma(alpha + beta)
    # up to x, t = x * exp(-w / alpha)
    low = jnp.where(is_low, x, mean / 2)
    t = low * jnp.exp(-places / alpha)
    decay = jnp.exp(-places + (beta - 1) * (jnp.log1p(-t) - jnp.log1p(-low)))
    below = decay * (jnp.log(low) - places / alpha - center) * low / (alpha * (1 - low))
    # from x on, 1 - t = (1 - x) * exp(-w / beta)
    high = jnp.where(is_low, (1 + mean) / 2, x)
    t = 1 - (1 - high) * jnp.exp(-places / beta)
    decay = jnp.exp(-places + (alpha - 1) * (jnp.log(t) - jnp.log(high)))
    above = decay * (jnp.log(t) - center) / beta
    return jnp.sum(jnp.where(is_low, -below, above) * weights, axis=-1)


# dropout


def dropped(self, mask, scale):
    """`self` times `scale` where the mask is true, else 0."""
    return jnp.where(mask, self * scale, jnp.zeros((), self.dtype)).astype(self.dtype)
