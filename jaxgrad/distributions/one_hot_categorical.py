"""Categorical distributions of one-hot vectors."""

from __future__ import annotations

from .. import ops
from ..core.aval import Size
from ..frontend.factories import eye
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from .categorical import VECTOR, Categorical
from .distribution import Distribution
from .utils import _options_of


class OfCategorical(Distribution):
    """A distribution of vectors with the parameters of a categorical distribution."""

    arg_constraints = VECTOR

    def __init__(self, probs, logits, validate_args):
        self._categorical = Categorical(probs, logits)
        event_shape = self.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities, of shape batch_shape + event_shape."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities, of shape batch_shape + event_shape."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._categorical.param_shape

    @property
    def _param(self):
        return self._categorical._param

    def _new(self, *args, **kwargs) -> Tensor:
        return self._categorical._new(*args, **kwargs)


class OneHotCategorical(OfCategorical):
    """The categorical distribution of vectors with one element 1 and the others 0.

    probs, logits: as of `Categorical`, of shape batch_shape + (k,); event_shape is (k,).

    >>> one_hot = jaxgrad.distributions.OneHotCategorical(jaxgrad.tensor([1.0, 3.0]))
    >>> one_hot.log_prob(jaxgrad.tensor([0.0, 1.0]))
    tensor(-0.2877)
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        super().__init__(probs, logits, validate_args)

    def _one_hot(self, index):
        return ops.one_hot(index, self._event_shape[0]).to(self._param.dtype)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value) -> Tensor:
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand=True) -> Tensor:
        n, batch = self._event_shape[0], self._batch_shape
        values = eye(n, **_options_of(self._param)).reshape(n, *[1] * len(batch), n)
        return values.expand(n, *batch, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` with `rsample`, whose samples have the gradient of the probabilities.

    Source: Bengio, Leonard and Courville, "Estimating or Propagating Gradients Through Stochastic
    Neurons for Conditional Computation", 2013.

    >>> probs = jaxgrad.tensor([0.5, 0.5], requires_grad=True)
    >>> one_hot = jaxgrad.distributions.OneHotCategoricalStraightThrough(probs)
    >>> one_hot.rsample()[0].backward()
    >>> probs.grad
    tensor([ 0.5000, -0.5000])
    """

    has_rsample = True

    def rsample(self, sample_shape=()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


__getattr__ = missing_in(__name__)
