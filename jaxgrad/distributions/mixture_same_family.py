"""Mixtures of distributions of one kind."""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core.aval import Size
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import fused
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution


@fused
def mixture_log_prob(log_probs, logits):
    terms = log_probs + ops.log_softmax(logits, -1)
    # where no component has a density, `logsumexp` has no gradient
    is_outside = ops.all(terms == -math.inf, -1, keepdim=True)
    log_prob = ops.logsumexp(ops.masked_fill(terms, is_outside, 0), -1)
    return ops.masked_fill(log_prob, is_outside.squeeze(-1), -math.inf)


class MixtureSameFamily(Distribution):
    """A mixture of k distributions of one kind.

    mixture_distribution: a `Categorical` distribution of the components, of a batch_shape that
    broadcasts to that of the mixture. component_distribution: the components along the last batch
    dimension, of batch_shape (..., k). Raises ValueError for others.

    >>> from jaxgrad.distributions import Categorical, MixtureSameFamily, Normal
    >>> weights = Categorical(jaxgrad.tensor([0.5, 0.5]))
    >>> mixture = MixtureSameFamily(weights, Normal(jaxgrad.tensor([-1.0, 1.0]), 1.0))
    >>> mixture.mean, mixture.variance
    (tensor(0.), tensor(2.))
    """

    arg_constraints = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        _check(mixture_distribution, component_distribution)
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        components = component_distribution
        super().__init__(components.batch_shape[:-1], components.event_shape, validate_args)

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @property
    def _component_dim(self):
        """The dimension of the components, counted from the end."""
        return -1 - len(self._event_shape)

    def _mean_of(self, values):
        """The mean over the components of values that each has."""
        probs = self._mixture_distribution.probs
        weights = probs.reshape(probs.shape + (1,) * len(self._event_shape))
        return (weights * values).sum(self._component_dim)

    @property
    def mean(self) -> Tensor:
        return self._mean_of(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        components = self._component_distribution
        distance = components.mean - self.mean.unsqueeze(self._component_dim)
        return self._mean_of(components.variance + distance.square())

    def cdf(self, value) -> Tensor:
        cdfs = self._component_distribution.cdf(value.unsqueeze(self._component_dim))
        return (cdfs * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value) -> Tensor:
        value = self._checked(value).unsqueeze(self._component_dim)
        log_probs = self._component_distribution.log_prob(value)
        return mixture_log_prob(log_probs, self._mixture_distribution.logits)

    def sample(self, sample_shape=()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            dim = len(sample_shape) + len(self._batch_shape)
            weights = self._mixture_distribution.expand(self._batch_shape)
            chosen = weights.sample(sample_shape).reshape(
                sample_shape + self._batch_shape + (1,) * (1 + len(self._event_shape))
            )
            values = self._component_distribution.sample(sample_shape)
            shape = sample_shape + self._batch_shape + (1,) + self._event_shape
            return ops.gather(values, dim, chosen.expand(shape)).squeeze(dim)

    def __repr__(self):
        parts = f"{self._mixture_distribution},\n  {self._component_distribution}"
        return f"{type(self).__name__}(\n  {parts})"


def _check(mixture, components):
    if not isinstance(mixture, Categorical):
        raise ValueError(
            "The Mixture distribution needs to be an instance of torch.distributions.Categorical, "
            f"not of {type(mixture).__name__}"
        )
    if not isinstance(components, Distribution):
        raise ValueError(
            "The Component distribution needs to be an instance of "
            f"torch.distributions.Distribution, not of {type(components).__name__}"
        )
    weights, batch = mixture.batch_shape, components.batch_shape[:-1]
    pairs = zip(reversed(weights), reversed(batch), strict=False)
    if any(1 not in pair and pair[0] != pair[1] for pair in pairs):
        raise ValueError(
            f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
            f"`component_distribution.batch_shape`({batch})"
        )
    count, wanted = mixture.param_shape[-1], components.batch_shape[-1]
    if count != wanted:
        raise ValueError(
            f"`mixture_distribution component` ({count}) does not equal "
            f"`component_distribution.batch_shape[-1]` ({wanted})"
        )


__getattr__ = missing_in(__name__)
