"""Reductions of losses by numbers, as torch.nn._reduction."""

from __future__ import annotations

from ..names.missing import missing_in
from . import loss


def get_enum(reduction: str) -> int:
    """The number of "none", "mean" or "sum". Raises ValueError for other words.

    >>> from jaxgrad.nn import _reduction
    >>> _reduction.get_enum("sum")
    2
    """
    return loss.number_of(reduction)


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction that two deprecated arguments stand for."""
    return loss.deprecated_reduction(size_average, reduce, emit_warning)


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of that reduction."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


__getattr__ = missing_in(__name__)
