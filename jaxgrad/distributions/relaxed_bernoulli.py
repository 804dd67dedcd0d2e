"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from .. import ops
from ..frontend.random import rand
from ..frontend.tensor_data import as_tensor
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import fused
from ._probabilities import BINARY, ProbsOrLogits
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import _options_of, clamp_probs


@fused
def logit_relaxed_bernoulli_log_prob(value, temperature, logits):
    more = logits - value * temperature
    return ops.log(temperature) + ops.log_sigmoid(more) + ops.log_sigmoid(-more)


@fused
def _logit_relaxed_sample(uniform, temperature, logits):
    uniform = clamp_probs(uniform)
    return (ops.log(uniform) - ops.log1p(-uniform) + logits) / temperature


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The distribution of the log-odds of a `RelaxedBernoulli` variable: the logistic distribution
    of location `logits`, divided by `temperature`.

    temperature: positive, a tensor that broadcasts or a number. probs: a probability. logits: its
    log-odds. Give one of the two, a tensor of shape batch_shape or a number; ValueError for both or
    none.

    >>> from jaxgrad.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(jaxgrad.tensor(1.0), 0.5).log_prob(jaxgrad.tensor(0.0))
    tensor(-1.3863)
    """

    arg_constraints = BINARY
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        self._take(probs, logits)
        self.temperature = as_tensor(temperature, **_options_of(self._param))
        super().__init__(self.param_shape, validate_args=validate_args)

    def rsample(self, sample_shape=()) -> Tensor:
        uniform = rand(self._extended_shape(sample_shape), **_options_of(self._param))
        return _logit_relaxed_sample(uniform, self.temperature, self.logits)

    def log_prob(self, value) -> Tensor:
        value = self._checked(value)
        return logit_relaxed_bernoulli_log_prob(value, self.temperature, self.logits)


class RelaxedBernoulli(TransformedDistribution):
    """A Bernoulli distribution relaxed to the numbers between 0 and 1, with gradients: the sigmoid
    of a variable of `LogitRelaxedBernoulli`.

    temperature: positive, a tensor that broadcasts or a number; near 0 the samples are near 0
    and 1. probs: the probability of a sample above 1/2. logits: its log-odds. Give one of the two,
    a tensor of shape batch_shape or a number; ValueError for both or none. Sources: Maddison, Mnih
    and Teh, "The Concrete Distribution", 2017; Jang, Gu and Poole, "Categorical Reparameterization
    with Gumbel-Softmax", 2017.

    >>> relaxed = jaxgrad.distributions.RelaxedBernoulli(jaxgrad.tensor(1.0), 0.5)
    >>> relaxed.log_prob(jaxgrad.tensor(0.5))
    tensor(0.)
    """

    arg_constraints = BINARY
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds of a sample above 1/2."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of a sample above 1/2."""
        return self.base_dist.probs


__getattr__ = missing_in(__name__)
