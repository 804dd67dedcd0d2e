"""The divergences of pairs of distributions, which `kl_divergence` finds.

Where p and q are of different kinds, the divergence is `-p.entropy() - E[log q(x)]`, and the mean
of `log q(x)` needs few moments of p: those of x for a normal q, of `log(x)` for a gamma q.
"""

from __future__ import annotations

import math

from .. import ops
from ..frontend.factories import full
from ..functions.shape import broadcast_shapes
from ..tape.tensor import is_concrete
from ._formulas import HALF_LOG_TAU, fused, xlog1py, xlogy
from ._special import log_beta, log_sinh_quotient
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli, log_normalizer
from .dirichlet import Dirichlet, dirichlet_log_normalizer
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_cauchy import HalfCauchy
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    lowrank_log_det,
    lowrank_mahalanobis,
)
from .multivariate_normal import MultivariateNormal, half_log_det, mahalanobis, solved
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _options_of, _sum_rightmost, euler_constant
from .wishart import Wishart, mvdigamma


def _register(kinds_of_p, kind_of_q):
    """Register a function for several kinds of p."""

    def decorated(function):
        for kind in kinds_of_p:
            register_kl(kind, kind_of_q)(function)
        return function

    return decorated


def _infinite(p, q):
    """p has values of a positive probability where q has no density."""
    parameter = getattr(p, next(iter(p.arg_constraints)))
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    return full(shape, math.inf, **_options_of(parameter))


_register((Exponential, Gamma, Gumbel, Laplace, Normal, Pareto), Beta)(_infinite)
_register((Exponential, Gamma, Gumbel, Laplace, Normal, Pareto), ContinuousBernoulli)(_infinite)
_register((Exponential, Gamma, Gumbel, Laplace, Normal, Pareto), Uniform)(_infinite)
_register((Gumbel, Laplace, Normal), Exponential)(_infinite)
_register((Gumbel, Laplace, Normal), Gamma)(_infinite)
_register((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal), Pareto)(
    _infinite
)
_register((Poisson,), Bernoulli)(_infinite)
_register((Poisson,), Binomial)(_infinite)


# ---- of one kind


@fused
def _normal_normal(p_loc, p_scale, q_loc, q_scale):
    ratio = p_scale / q_scale
    return (ops.square(ratio) + ops.square((p_loc - q_loc) / q_scale) - 1) / 2 - ops.log(ratio)


@register_kl(Normal, Normal)
def _(p, q):
    return _normal_normal(p.loc, p.scale, q.loc, q.scale)


@register_kl(HalfNormal, HalfNormal)
@register_kl(HalfCauchy, HalfCauchy)
def _(p, q):
    return kl_divergence(p.base_dist, q.base_dist)  # they are the halves of these


@fused
def _laplace_laplace(p_loc, p_scale, q_loc, q_scale):
    distance, ratio = ops.abs(p_loc - q_loc), p_scale / q_scale
    return distance / q_scale + ratio * ops.exp(-distance / p_scale) - ops.log(ratio) - 1


@register_kl(Laplace, Laplace)
def _(p, q):
    return _laplace_laplace(p.loc, p.scale, q.loc, q.scale)


@fused
def _cauchy_cauchy(p_loc, p_scale, q_loc, q_scale):
    squares = ops.square(p_scale + q_scale) + ops.square(p_loc - q_loc)
    return ops.log(squares / (4 * p_scale * q_scale))


@register_kl(Cauchy, Cauchy)
def _(p, q):
    return _cauchy_cauchy(p.loc, p.scale, q.loc, q.scale)


@fused
def _exponential_exponential(p_rate, q_rate):
    ratio = q_rate / p_rate
    return ratio - 1 - ops.log(ratio)


@register_kl(Exponential, Exponential)
def _(p, q):
    return _exponential_exponential(p.rate, q.rate)


@fused
def _gamma_gamma(p_concentration, p_rate, q_concentration, q_rate):
    center = (p_concentration - q_concentration) * ops.digamma(p_concentration)
    logs = q_concentration * ops.log(p_rate / q_rate)
    gammas = ops.lgamma(q_concentration) - ops.lgamma(p_concentration)
    return logs + gammas + center + (q_rate - p_rate) * p_concentration / p_rate


@register_kl(Gamma, Gamma)
def _(p, q):
    return _gamma_gamma(p.concentration, p.rate, q.concentration, q.rate)


@fused
def _beta_beta(p1, p0, q1, q0):
    total = ops.digamma(p1 + p0)
    centers = (p1 - q1) * (ops.digamma(p1) - total) + (p0 - q0) * (ops.digamma(p0) - total)
    return log_beta(q1, q0) - log_beta(p1, p0) + centers


@register_kl(Beta, Beta)
def _(p, q):
    return _beta_beta(p.concentration1, p.concentration0, q.concentration1, q.concentration0)


@fused
def _dirichlet_dirichlet(p, q):
    center = ops.digamma(p) - ops.digamma(ops.sum(p, -1, keepdim=True))
    return dirichlet_log_normalizer(q) - dirichlet_log_normalizer(p) + ops.sum((p - q) * center, -1)


@register_kl(Dirichlet, Dirichlet)
def _(p, q):
    return _dirichlet_dirichlet(p.concentration, q.concentration)


@fused
def _uniform_uniform(p_low, p_high, q_low, q_high):
    divergence = ops.log((q_high - q_low) / (p_high - p_low))
    return ops.masked_fill(divergence, (q_low > p_low) | (q_high < p_high), math.inf)


@register_kl(Uniform, Uniform)
def _(p, q):
    return _uniform_uniform(p.low, p.high, q.low, q.high)


@fused
def _pareto_pareto(p_scale, p_alpha, q_scale, q_alpha):
    ratio = q_alpha / p_alpha
    divergence = q_alpha * ops.log(p_scale / q_scale) - ops.log(ratio) + ratio - 1
    return ops.masked_fill(divergence, p_scale < q_scale, math.inf)


@register_kl(Pareto, Pareto)
def _(p, q):
    return _pareto_pareto(p.scale, p.alpha, q.scale, q.alpha)


@fused
def _continuous_bernoulli_continuous_bernoulli(mean, p_logits, q_logits):
    return mean * (p_logits - q_logits) - log_normalizer(p_logits) + log_normalizer(q_logits)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _(p, q):
    return _continuous_bernoulli_continuous_bernoulli(p.mean, p.logits, q.logits)


# ---- of counts


def _terms(p, log_p, q, log_q):
    """`p * (log_p - log_q)`: 0 where p is 0, infinite where q is 0 and p is not."""
    difference = ops.masked_fill(log_p - log_q, (p == 0) | (q == 0), 0)
    return ops.masked_fill(p * difference, (p != 0) & (q == 0), math.inf)


@fused
def _bernoulli_bernoulli(p, p_logits, q, q_logits):
    ones = _terms(p, ops.log_sigmoid(p_logits), q, ops.log_sigmoid(q_logits))
    zeros = _terms(1 - p, ops.log_sigmoid(-p_logits), 1 - q, ops.log_sigmoid(-q_logits))
    return ones + zeros


@register_kl(Bernoulli, Bernoulli)
def _one_trial(p, q):
    return _bernoulli_bernoulli(p.probs, p.logits, q.probs, q.logits)


@register_kl(Binomial, Binomial)
def _(p, q):
    fewer = (p.total_count < q.total_count).any()
    if is_concrete(fewer) and bool(fewer):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    divergence = (p.total_count * _one_trial(p, q)).masked_fill(p.total_count == 0, 0)
    divergence = divergence.masked_fill(p.total_count > q.total_count, math.inf)
    return divergence.masked_fill(p.total_count < q.total_count, math.nan)  # under a trace


@fused
def _categorical_categorical(p, p_logits, q, q_logits):
    return ops.sum(_terms(p, p_logits, q, q_logits), -1)


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _(p, q):
    return _categorical_categorical(p.probs, p.logits, q.probs, q.logits)


@fused
def _geometric_geometric(entropy, p, q):
    return -entropy - ops.log(q) - xlog1py(1 / p - 1, -q)


@register_kl(Geometric, Geometric)
def _(p, q):
    return _geometric_geometric(p.entropy(), p.probs, q.probs)


@fused
def _poisson_poisson(p, q):
    return xlogy(p, p) - xlogy(p, q) - p + q


@register_kl(Poisson, Poisson)
def _(p, q):
    return _poisson_poisson(p.rate, q.rate)


@register_kl(Bernoulli, Poisson)
def _(p, q):
    return q.rate - p.entropy() - xlogy(p.probs, q.rate)


# ---- of vectors and matrices


def _check_events(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes "
            f"cannot be computed: {p.event_shape} and {q.event_shape}"
        )


def _sum_of_squares(matrix):
    return ops.sum(ops.square(matrix), (-2, -1))


@fused
def _normal_to_normal(mean_difference, p_factor, q_factor):
    trace = _sum_of_squares(solved(q_factor, p_factor))
    squares = mahalanobis(q_factor, mean_difference)
    log_dets = half_log_det(q_factor) - half_log_det(p_factor)
    return log_dets + (trace + squares - p_factor.shape[-1]) / 2


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p, q):
    _check_events(p, q)
    factors = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    return _normal_to_normal(q.loc - p.loc, *factors)


@fused
def _lowrank_to_normal(mean_difference, factor, diagonal, capacitance, q_factor):
    of_diagonal = solved(q_factor, ops.diag_embed(ops.sqrt(diagonal)))
    trace = _sum_of_squares(solved(q_factor, factor)) + _sum_of_squares(of_diagonal)
    squares = mahalanobis(q_factor, mean_difference)
    log_dets = 2 * half_log_det(q_factor) - lowrank_log_det(diagonal, capacitance)
    return (log_dets + trace + squares - diagonal.shape[-1]) / 2


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _(p, q):
    _check_events(p, q)
    parts = *p._unbroadcasted, p._capacitance_tril
    return _lowrank_to_normal(q.loc - p.loc, *parts, q._unbroadcasted_scale_tril)


def _weighted(factor, diagonal, capacitance):
    """The factor by which `lowrank_mahalanobis` multiplies a vector before it squares it."""
    return solved(capacitance, factor.mT / diagonal.unsqueeze(-2))


@fused
def _normal_to_lowrank(mean_difference, p_factor, factor, diagonal, capacitance):
    scaled = p_factor * ops.rsqrt(diagonal).unsqueeze(-1)
    weighted = _weighted(factor, diagonal, capacitance)
    trace = _sum_of_squares(scaled) - _sum_of_squares(weighted @ p_factor)
    squares = lowrank_mahalanobis(factor, diagonal, mean_difference, capacitance)
    log_dets = lowrank_log_det(diagonal, capacitance) - 2 * half_log_det(p_factor)
    return (log_dets + trace + squares - diagonal.shape[-1]) / 2


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _(p, q):
    _check_events(p, q)
    parts = *q._unbroadcasted, q._capacitance_tril
    return _normal_to_lowrank(q.loc - p.loc, p._unbroadcasted_scale_tril, *parts)


@fused
def _lowrank_to_lowrank(mean_difference, p_parts, q_parts):
    (p_factor, p_diagonal, p_capacitance), (_, q_diagonal, q_capacitance) = p_parts, q_parts
    weighted = _weighted(*q_parts)
    of_diagonal = ops.sum(p_diagonal / q_diagonal, -1) - _sum_of_squares(
        weighted * ops.sqrt(p_diagonal).unsqueeze(-2)
    )
    of_factor = _sum_of_squares(p_factor * ops.rsqrt(q_diagonal).unsqueeze(-1)) - _sum_of_squares(
        weighted @ p_factor
    )
    squares = lowrank_mahalanobis(*q_parts[:2], mean_difference, q_capacitance)
    log_dets = lowrank_log_det(q_diagonal, q_capacitance) - lowrank_log_det(
        p_diagonal, p_capacitance
    )
    return (log_dets + of_diagonal + of_factor + squares - q_diagonal.shape[-1]) / 2


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _(p, q):
    _check_events(p, q)
    parts = [
        (*distribution._unbroadcasted, distribution._capacitance_tril) for distribution in (p, q)
    ]
    return _lowrank_to_lowrank(q.loc - p.loc, *parts)


@fused
def _wishart_wishart(p_df, p_factor, q_df, q_factor):
    n = p_factor.shape[-1]
    trace = _sum_of_squares(solved(q_factor, p_factor))
    log_dets = 2 * half_log_det(q_factor) - 2 * half_log_det(p_factor)
    gammas = ops.mvlgamma(q_df / 2, n) - ops.mvlgamma(p_df / 2, n)
    center = (p_df - q_df) * mvdigamma(p_df / 2, n)
    return (q_df * log_dets + p_df * (trace - n) + center) / 2 + gammas


@register_kl(Wishart, Wishart)
def _(p, q):
    factors = [distribution._unbroadcasted_scale_tril for distribution in (p, q)]
    return _wishart_wishart(p.df, factors[0], q.df, factors[1])


# ---- of different kinds: by the moments of p


@fused
def _to_normal(entropy, mean, variance, loc, scale):
    squares = (variance + ops.square(mean - loc)) / ops.square(scale)
    return squares / 2 + ops.log(scale) + HALF_LOG_TAU - entropy


@_register((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform), Normal)
def _(p, q):
    return _to_normal(p.entropy(), p.mean, p.variance, q.loc, q.scale)


@register_kl(Pareto, Normal)
def _(p, q):
    mean = p.mean.masked_fill(p.alpha <= 1, 0)  # the variance is infinite, and decides
    return _to_normal(p.entropy(), mean, p.variance, q.loc, q.scale)


@fused
def _normal_to_laplace(p_loc, p_scale, q_loc, q_scale):
    distance = p_loc - q_loc
    z = distance / (math.sqrt(2) * p_scale)
    mean = math.sqrt(2 / math.pi) * p_scale * ops.exp(-ops.square(z)) + distance * ops.erf(z)
    return mean / q_scale - ops.log(p_scale / q_scale) - HALF_LOG_TAU - 0.5 + math.log(2)


@register_kl(Normal, Laplace)
def _(p, q):
    return _normal_to_laplace(p.loc, p.scale, q.loc, q.scale)


@fused
def _to_exponential(entropy, mean, rate):
    return rate * mean - ops.log(rate) - entropy


@_register((Beta, ContinuousBernoulli, Gamma, Pareto), Exponential)
def _(p, q):
    return _to_exponential(p.entropy(), p.mean, q.rate)


@register_kl(Uniform, Exponential)
def _(p, q):
    return _to_exponential(p.entropy(), p.mean, q.rate).masked_fill(p.low < 0, math.inf)


@fused
def _uniform_mean_log(low, high):
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


def _mean_log(p):
    """The mean of log(x), for x from p."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -p.rate.log() - euler_constant
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    is_possible = p.low >= 0
    return _uniform_mean_log(ops.where(is_possible, p.low, 0), ops.where(is_possible, p.high, 1))


@fused
def _to_gamma(entropy, mean, mean_log, concentration, rate):
    powers = concentration * ops.log(rate) + (concentration - 1) * mean_log
    return ops.lgamma(concentration) - powers + rate * mean - entropy


@_register((Beta, Exponential, Pareto), Gamma)
def _to_gamma_distribution(p, q):
    return _to_gamma(p.entropy(), p.mean, _mean_log(p), q.concentration, q.rate)


@register_kl(Uniform, Gamma)
def _(p, q):
    return _to_gamma_distribution(p, q).masked_fill(p.low < 0, math.inf)


def _log_mean_exp(p, x):
    """The logarithm of the mean of `exp(-x * v)`, for v from p and a positive x."""
    if isinstance(p, Exponential):
        return -ops.log1p(x / p.rate)
    if isinstance(p, Gamma):
        return -p.concentration * ops.log1p(x / p.rate)
    if isinstance(p, Gumbel):
        return ops.lgamma(1 + x * p.scale) - x * p.loc
    if isinstance(p, Normal):
        return ops.square(x * p.scale) / 2 - x * p.loc
    half = x * (p.high - p.low) / 2
    return log_sinh_quotient(half) - x * p.mean


@fused
def _to_gumbel(entropy, mean, log_mean_exp, loc, scale):
    return (mean - loc) / scale + ops.exp(loc / scale + log_mean_exp) + ops.log(scale) - entropy


@_register((Exponential, Gamma, Gumbel, Normal, Uniform), Gumbel)
def _(p, q):
    return _to_gumbel(p.entropy(), p.mean, _log_mean_exp(p, 1 / q.scale), q.loc, q.scale)


@fused
def _uniform_to_beta(low, high, concentration1, concentration0):
    is_inside = (low >= 0) & (high <= 1)
    low, high = ops.where(is_inside, low, 0), ops.where(is_inside, high, 1)
    length = high - low
    log_x = (xlogy(high, high) - xlogy(low, low)) / length - 1
    log_rest = (xlogy(1 - low, 1 - low) - xlogy(1 - high, 1 - high)) / length - 1
    powers = (concentration1 - 1) * log_x + (concentration0 - 1) * log_rest
    divergence = log_beta(concentration1, concentration0) - powers - ops.log(length)
    return ops.masked_fill(divergence, ~is_inside, math.inf)


@register_kl(Uniform, Beta)
def _(p, q):
    return _uniform_to_beta(p.low, p.high, q.concentration1, q.concentration0)


@fused
def _to_continuous_bernoulli(entropy, mean, logits):
    return log_normalizer(logits) - logits * mean - entropy


@register_kl(Beta, ContinuousBernoulli)
def _of_unit_interval(p, q):
    return _to_continuous_bernoulli(p.entropy(), p.mean, q.logits)


@register_kl(Uniform, ContinuousBernoulli)
def _(p, q):
    return _of_unit_interval(p, q).masked_fill((p.low < 0) | (p.high > 1), math.inf)


@_register((Beta, ContinuousBernoulli), Uniform)
def _(p, q):
    divergence = (q.high - q.low).log() - p.entropy()
    return divergence.masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(Uniform, Pareto)
def _(p, q):
    powers = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)
    return (-p.entropy() - powers).masked_fill(p.low < q.scale, math.inf)


# ---- of distributions made of others


@register_kl(Independent, Independent)
def _(p, q):
    count = p.reinterpreted_batch_ndims
    if count != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "No KL of Independent distributions with different reinterpreted_batch_ndims: "
            f"{count} and {q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), count)


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "No KL of transformed distributions with different transforms or event shapes: "
            f"{p} and {q}"
        )
    if not all(transform.bijective for transform in p.transforms):
        raise NotImplementedError(
            f"No KL of distributions transformed by {p.transforms}, which are not bijective: it is "
            "less than that of the base distributions"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _(p, q):
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            f"using Bregman divergences: {type(p).__name__} and {type(q).__name__}"
        )
    means = p._mean_statistics()
    entropy = p._cross_entropy(p._natural_params, means)
    return q._cross_entropy(q._natural_params, means) - entropy
