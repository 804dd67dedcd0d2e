"""Exponential families: torch.distributions.exp_family."""

from __future__ import annotations

from ..autograd import grad
from ..autograd.grad_mode import enable_grad, no_grad
from ..names.missing import missing_in
from ..tape.mode import is_grad_enabled
from ..tape.tensor import Tensor
from .distribution import Distribution


class ExponentialFamily(Distribution):
    """A distribution with the density `exp((t(x) * p).sum() - F(p) + k(x))`, where p are its
    natural parameters.

    A subclass may define `_natural_params`, a tuple of tensors of shape batch_shape + (...),
    `_log_normalizer(*params)`, which is F, of shape batch_shape, and `_mean_carrier_measure`, the
    mean of k(x). Then the gradient of F, the mean of t(x), gives its entropy and the divergence of
    two of its kind. Source: Nielsen and Nock, "Entropies and Cross-entropies of Exponential
    Families", 2010.

    >>> from jaxgrad.distributions import ExponentialFamily, Normal
    >>> normal = Normal(0.0, 1.0)
    >>> abs(normal.entropy() - ExponentialFamily.entropy(normal)) < 1e-6
    tensor(True)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} does not define _natural_params")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{type(self).__name__} does not define _log_normalizer")

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError(f"{type(self).__name__} does not define _mean_carrier_measure")

    def entropy(self) -> Tensor:
        carrier = self._mean_carrier_measure
        return self._cross_entropy(self._natural_params, self._mean_statistics()) - carrier

    def _mean_statistics(self) -> list[Tensor]:
        """The means of t(x): the gradient of F."""
        natural_params = self._natural_params
        with enable_grad():
            # a clone has the tangents of forward mode
            params = [param if param.requires_grad else param.clone() for param in natural_params]
            normalizer = self._log_normalizer(*(param.requires_grad_() for param in params))
            means = grad(normalizer.sum(), params, create_graph=True)
        if is_grad_enabled() and any(param.requires_grad for param in natural_params):
            return list(means)
        with no_grad():
            return [mean.clone() for mean in means]

    def _cross_entropy(self, params, means) -> Tensor:
        """The mean of -log p(x) + k(x), for p with these parameters, where t(x) has these means."""
        products = [
            (param * mean).reshape(*self._batch_shape, -1).sum(-1)
            for param, mean in zip(params, means, strict=True)
        ]
        return self._log_normalizer(*params) - sum(products)


__getattr__ = missing_in(__name__)
