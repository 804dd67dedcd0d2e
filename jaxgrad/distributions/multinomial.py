"""The multinomial distribution."""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..frontend.factories import arange, full, ones_like, zeros
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, times_log
from .binomial import Binomial
from .one_hot_categorical import OfCategorical
from .utils import _options_of


@fused
def multinomial_log_prob(value, logits):
    powers = times_log(value, logits) - ops.lgamma(value + 1)
    return ops.sum(powers, -1) + ops.lgamma(ops.sum(value, -1) + 1)


@fused
def multinomial_entropy(entropy, count, log_probs, values):
    """entropy: of one trial; log_probs: of `values` counts of each category."""
    weights = ops.lgamma(values + 1).reshape(-1, *[1] * (log_probs.ndim - 1))
    expected = ops.sum(ops.sum(ops.exp(log_probs) * weights, -1), 0)
    return count * entropy - ops.lgamma(count + 1) + expected


class Multinomial(OfCategorical):
    """The multinomial distribution of the counts of k categories in `total_count` independent
    trials.

    total_count: the number of trials, one int; NotImplementedError for others. probs, logits: as of
    `Categorical`, of shape batch_shape + (k,); event_shape is (k,). `log_prob` takes any counts,
    and not only those whose sum is `total_count`.

    >>> multinomial = jaxgrad.distributions.Multinomial(2, jaxgrad.tensor([0.5, 0.5]))
    >>> multinomial.log_prob(jaxgrad.tensor([1.0, 1.0])).exp()
    tensor(0.5000)
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if not isinstance(total_count, int):
            raise NotImplementedError(
                "inhomogeneous total_count is not supported: it must be an int, not "
                f"{type(total_count).__name__}"
            )
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            counts = zeros(self._extended_shape(sample_shape), **_options_of(self._param))
            return counts.scatter_add(-1, drawn, ones_like(drawn, dtype=counts.dtype))

    log_prob = bound(multinomial_log_prob)

    def entropy(self) -> Tensor:
        values = arange(1, self.total_count + 1, **_options_of(self._param))
        binomial = Binomial(self.total_count, self.probs, validate_args=False)
        log_probs = binomial.log_prob(values.reshape(-1, *[1] * self.probs.ndim))
        count = full((), self.total_count, **_options_of(self._param))
        return multinomial_entropy(self._categorical.entropy(), count, log_probs, values)


__getattr__ = missing_in(__name__)
