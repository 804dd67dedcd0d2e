"""The relaxed categorical distribution."""

from __future__ import annotations

import math

from .. import ops
from ..frontend.random import rand
from ..frontend.tensor_data import as_tensor
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import fused
from .categorical import VECTOR
from .one_hot_categorical import OfCategorical
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import _options_of, clamp_probs


@fused
def exp_relaxed_categorical_log_prob(value, temperature, logits):
    count = logits.shape[-1]
    scores = ops.sum(ops.log_softmax(logits - value * temperature, -1), -1)
    return scores + math.lgamma(count) + (count - 1) * ops.log(temperature)


@fused
def _exp_relaxed_sample(uniform, temperature, logits):
    gumbel = -ops.log(-ops.log(clamp_probs(uniform)))
    return ops.log_softmax((logits + gumbel) / temperature, -1)


class ExpRelaxedCategorical(OfCategorical):
    """The distribution of the logarithm of a `RelaxedOneHotCategorical` variable.

    temperature: positive, a tensor that broadcasts or a number. probs, logits: as of `Categorical`,
    of shape batch_shape + (k,); event_shape is (k,).

    >>> from jaxgrad.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> relaxed = ExpRelaxedCategorical(jaxgrad.tensor(1.0), jaxgrad.tensor([0.5, 0.5]))
    >>> relaxed.log_prob(jaxgrad.tensor([0.5, 0.5]).log())
    tensor(-1.3863)
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        super().__init__(probs, logits, validate_args)
        self.temperature = as_tensor(temperature, **_options_of(self._param))

    def rsample(self, sample_shape=()) -> Tensor:
        uniform = rand(self._extended_shape(sample_shape), **_options_of(self._param))
        return _exp_relaxed_sample(uniform, self.temperature, self.logits)

    def log_prob(self, value) -> Tensor:
        value = self._checked(value)
        return exp_relaxed_categorical_log_prob(value, self.temperature, self.logits)


class RelaxedOneHotCategorical(TransformedDistribution):
    """A one-hot categorical distribution relaxed to vectors of probabilities, with gradients.

    temperature: positive, a tensor that broadcasts or a number; near 0 the samples are near one-hot
    vectors. probs, logits: as of `Categorical`, of shape batch_shape + (k,); event_shape is (k,).
    Sources: Maddison, Mnih and Teh, "The Concrete Distribution", 2017; Jang, Gu and Poole,
    "Categorical Reparameterization with Gumbel-Softmax", 2017.

    >>> probs = jaxgrad.tensor([0.5, 0.5])
    >>> relaxed = jaxgrad.distributions.RelaxedOneHotCategorical(jaxgrad.tensor(1.0), probs)
    >>> relaxed.log_prob(jaxgrad.tensor([0.5, 0.5]))
    tensor(0.)
    """

    arg_constraints = VECTOR
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities that an element is the greatest."""
        return self.base_dist.probs


__getattr__ = missing_in(__name__)
