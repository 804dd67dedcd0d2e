"""Distributions of transformed values."""

from __future__ import annotations

from collections.abc import Sequence

from ..autograd.grad_mode import no_grad
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost


class TransformedDistribution(Distribution):
    """The distribution of `y = t(x)`, for x from another distribution.

    base_distribution: the distribution of x. transforms: a transform, or a list of transforms in
    the order in which they are applied; `log_prob` needs bijective ones. Raises ValueError for
    others, and for a base without the dimensions that they need.

    The density of y is that of `x = t.inv(y)`, divided by the determinant of the Jacobian at x.

    >>> from jaxgrad.distributions import ExpTransform, Normal, TransformedDistribution
    >>> log_normal = TransformedDistribution(Normal(0.0, 1.0), ExpTransform())
    >>> log_normal.log_prob(jaxgrad.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ):
        self.transforms = _listed(transforms)
        transform = ComposeTransform(self.transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dims = len(base_distribution.event_shape)
        dims, new_dims = transform.domain.event_dim, transform.codomain.event_dim
        if len(shape) < dims:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {dims}, but got {shape}."
            )
        new_shape = transform.forward_shape(shape)
        own_shape = transform.inverse_shape(new_shape)
        if own_shape != shape:  # the parameters of the transforms have more dimensions
            base_distribution = base_distribution.expand(own_shape[: len(own_shape) - base_dims])
        if dims > base_dims:
            base_distribution = Independent(base_distribution, dims - base_dims)
        self.base_dist = base_distribution
        cut = len(new_shape) - max(new_dims, base_dims + new_dims - dims)
        super().__init__(new_shape[:cut], new_shape[cut:], validate_args)

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def sample(self, sample_shape=()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value) -> Tensor:
        y = self._checked(value)
        count, log_prob = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            count += transform.domain.event_dim - transform.codomain.event_dim
            log_det = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - _sum_rightmost(log_det, count - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return log_prob + _sum_rightmost(base, count - len(self.base_dist.event_shape))

    def cdf(self, value) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:  # so that a value may be at the end of the support
            self.base_dist._validate_sample(value)
        return self._increasing(self.base_dist.cdf(value))

    def icdf(self, value) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._increasing(value)))

    def _increasing(self, value):
        """A probability, or 1 minus it if the transforms are decreasing."""
        sign = ComposeTransform(self.transforms).sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5


class DirectDistribution(TransformedDistribution):
    """A transformed distribution with formulas of its own, which do not need the transforms:
    `base_dist` and `transforms` are properties.
    """

    has_rsample = True
    sample = Distribution.sample

    def __init__(self, batch_shape, validate_args):
        Distribution.__init__(self, batch_shape, validate_args=validate_args)


def _listed(transforms):
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(transform, Transform) for transform in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms


__getattr__ = missing_in(__name__)
