"""Distributions with a parameter that is given as probabilities or as logits."""

from __future__ import annotations

from ..core import dtypes
from ..tape.tensor import Tensor
from . import constraints
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def check_one(probs, logits):
    """Raise ValueError unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ProbsOrLogits:
    """The attributes `probs` and `logits`: the one that was given, and the other made of it."""

    _is_binary = True

    def _take(self, probs, logits, *others) -> tuple[Tensor, ...]:
        """Keep the one that is given, broadcast with other parameters; return these."""
        check_one(probs, logits)
        name = "logits" if probs is None else "probs"
        parameter, *others = broadcast_all(logits if probs is None else probs, *others)
        if name == "logits" and not parameter.is_floating_point():
            parameter = parameter.to(dtypes.get_default_dtype())
        setattr(self, name, parameter)
        self._parameter_name = name
        return tuple(tensor.to(parameter.dtype) for tensor in others)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds of a success."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of a success."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def _param(self) -> Tensor:
        return getattr(self, self._parameter_name)

    @property
    def param_shape(self):
        """The shape of the probabilities."""
        return self._param.shape

    def _new(self, *args, **kwargs) -> Tensor:
        """A tensor of the dtype and device of the parameter."""
        return self._param.new(*args, **kwargs)


BINARY = {"probs": constraints.unit_interval, "logits": constraints.real}
