"""The categorical distribution."""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.aval import Size
from ..frontend.factories import arange, full
from ..functions.random import multinomial
from ..functions.shape import broadcast_tensors
from ..names.missing import missing_in
from ..tape.tensor import Tensor, is_concrete
from . import constraints
from ._formulas import bound, fused
from ._probabilities import ProbsOrLogits, check_one
from .distribution import Distribution
from .utils import _options_of

VECTOR = {"probs": constraints.simplex, "logits": constraints.real_vector}


@fused
def _normalized_probs(probs):
    return probs / ops.sum(probs, -1, keepdim=True)


@fused
def _normalized_logits(logits):
    return logits - ops.logsumexp(logits, -1, keepdim=True)


@fused
def categorical_log_prob(value, logits):
    value, logits = broadcast_tensors(value.to(dtypes.int64).unsqueeze(-1), logits)
    logs = ops.gather(logits, -1, value[..., :1]).squeeze(-1)
    return ops.masked_fill(logs, value[..., 0] < 0, math.nan)


@fused
def categorical_entropy(logits, probs):
    return -ops.sum(ops.clamp(logits, dtypes.finfo(logits.dtype).min) * probs, -1)


def _check_range(value, size):
    """Raise RuntimeError for an index out of range, as `gather` does."""
    if is_concrete(value) and value.numel():
        low, high = (bound.item() for bound in ops.aminmax(value.detach().to(dtypes.int64)))
        if low < 0 or high >= size:
            index = low if low < 0 else high
            raise RuntimeError(f"index {index} is out of bounds for dimension -1 with size {size}")


class Categorical(ProbsOrLogits, Distribution):
    """The categorical distribution of the ints from 0 to k - 1.

    probs: weights of shape batch_shape + (k,), not negative, divided by their sum. logits: real
    numbers of this shape, the logarithms of weights. Give one of the two; ValueError for both, none
    or one without dimensions. Samples and values are int64.

    >>> jaxgrad.distributions.Categorical(jaxgrad.tensor([1.0, 3.0])).log_prob(jaxgrad.tensor(1))
    tensor(-0.2877)
    """

    arg_constraints = VECTOR
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        check_one(probs, logits)
        name = self._parameter_name = "logits" if probs is None else "probs"
        parameter = logits if probs is None else probs
        if parameter.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        normalized = _normalized_logits if probs is None else _normalized_probs
        setattr(self, name, normalized(parameter))
        super().__init__(parameter.shape[:-1], validate_args=validate_args)

    @property
    def _num_events(self) -> int:
        return self.param_shape[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return full(self._batch_shape, math.nan, **_options_of(self._param))

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape=()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            weights = self.probs.reshape(-1, self._num_events)
            samples = multinomial(weights, sample_shape.numel(), True).T
            return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if not self._validate_args:
            _check_range(value, self._num_events)
        return categorical_log_prob(self._checked(value), self.logits)

    entropy = bound(categorical_entropy)

    def enumerate_support(self, expand=True) -> Tensor:
        return self._enumerated(arange(self._num_events, device=self._param.device), expand)


__getattr__ = missing_in(__name__)
