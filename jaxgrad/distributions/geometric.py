"""The geometric distribution."""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..frontend.factories import zeros_like
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import fused, times_log, xlog1py
from ._probabilities import BINARY, ProbsOrLogits
from .bernoulli import bernoulli_entropy
from .distribution import Distribution
from .exponential import minus_log_uniform


@fused
def geometric_log_prob(value, probs):
    return xlog1py(value, -probs) + ops.log(probs)


@fused
def geometric_log_prob_of_logits(value, logits):
    return times_log(value, ops.log_sigmoid(-logits)) + ops.log_sigmoid(logits)


class Geometric(ProbsOrLogits, Distribution):
    """The geometric distribution of the number of failures before the first success: `(1 - probs)
    ** k * probs` for k = 0, 1, and so on.

    probs: the probability of a success, in (0, 1]. logits: its log-odds. Give one of the two, a
    tensor of shape batch_shape or a number; ValueError for both or none. `Tensor.geometric_` counts
    the success too.

    >>> jaxgrad.distributions.Geometric(0.5).log_prob(jaxgrad.tensor([0.0, 1.0]))
    tensor([-0.6931, -1.3863])
    """

    arg_constraints = BINARY
    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        self._take(probs, logits)
        super().__init__(self.param_shape, validate_args=validate_args)
        is_checked = self._validate_args and probs is not None
        if is_checked and not constraints.holds(constraints.positive, self.probs):
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=()) -> Tensor:
        with no_grad():
            noise = minus_log_uniform(self._extended_shape(sample_shape), self._param)
            if self._parameter_name == "probs":
                return (noise / -(-self.probs).log1p()).floor()
            return (noise / -ops.log_sigmoid(-self.logits)).floor()

    def log_prob(self, value) -> Tensor:
        value = self._checked(value)
        if self._parameter_name == "probs":
            return geometric_log_prob(value, self.probs)
        return geometric_log_prob_of_logits(value, self.logits)

    def entropy(self) -> Tensor:
        return bernoulli_entropy(self.logits, self.probs) / self.probs


__getattr__ = missing_in(__name__)
