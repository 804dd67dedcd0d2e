"""Kullback-Leibler divergences: torch.distributions.kl.

The formulas stand in _kl_formulas.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ..core.tracebacks import users_stacklevel
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from .distribution import Distribution

Pair = tuple[type[Distribution], type[Distribution]]

_KL_REGISTRY: dict[Pair, Callable] = {}
_formulas: dict[Pair, Callable | None] = {}  # of `_dispatch`, until a formula is registered


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable:
    """Register a function of two distributions for `kl_divergence`; a decorator.

    type_p, type_q: their classes; subclasses use the function too, unless there is one for them.
    Of several functions the one for the most special class of p is used, and RuntimeWarning is
    given if the most special class of q has another. A class may also be a root of other
    distributions. Raises TypeError for what is no class.

    >>> from jaxgrad.distributions import Normal, kl_divergence, register_kl
    >>> class Unit(Normal):
    ...     pass
    >>> @register_kl(Unit, Unit)
    ... def zero(p, q):
    ...     return jaxgrad.zeros(p.batch_shape)
    >>> kl_divergence(Unit(0.0, 1.0), Unit(0.0, 1.0))
    tensor(0.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorated(function):
        _KL_REGISTRY[type_p, type_q] = function
        _formulas.clear()
        return function

    return decorated


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence `E[log(p(x) / q(x))]`, for x from p, in nats.

    p, q: distributions of the same event_shape, whose batch shapes broadcast to that of the result.
    It is infinite where q has no density at some x of p. Raises NotImplementedError for a pair of
    classes that nothing is registered for; see `register_kl`.

    >>> from jaxgrad.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(jaxgrad.tensor([0.0, 1.0]), 1.0))
    tensor([0.0000, 0.5000])
    """
    pair = type(p), type(q)
    if pair not in _formulas:
        _formulas[pair] = _dispatch(*pair)
    function = _formulas[pair]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {pair[0].__name__} and q type "
            f"{pair[1].__name__}: register one by register_kl"
        )
    return function(p, q)


def _dispatch(type_p, type_q):
    """The function for the nearest classes, None if there is none."""
    kinds = type_p, type_q
    pairs = [pair for pair in _KL_REGISTRY if all(map(issubclass, kinds, pair))]
    if not pairs:
        return None
    depths = {
        pair: (type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])) for pair in pairs
    }
    by_p = min(pairs, key=lambda pair: depths[pair])
    by_q = min(pairs, key=lambda pair: depths[pair][::-1])
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=users_stacklevel(),
        )
    return _KL_REGISTRY[by_p]


__getattr__ = missing_in(__name__)
