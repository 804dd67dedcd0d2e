"""Conditions on numbers that a program which is exported computes: they are among its results."""

from __future__ import annotations

import contextlib
import contextvars
from typing import Any, NamedTuple

from ..core.jax_internals import current_trace
from .symbolic_number import Varying, within


class Requirement(NamedTuple):
    """A bool of the program, and what an error says where it is False."""

    array: Any
    text: str


class _Requirements(NamedTuple):
    trace: Any
    conditions: list


_open = contextvars.ContextVar("jaxgrad.requirements", default=None)


@contextlib.contextmanager
def requirements():
    """A block whose requirements are collected in the list that it gives."""
    conditions: list[Requirement] = []
    token = _open.set(_Requirements(current_trace(), conditions))
    try:
        yield conditions
    finally:
        _open.reset(token)


def require(condition: Varying, text: str):
    """Require that a bool of a program holds, at each call of it; comparisons of its numbers with
    others may follow from it.

    Raises NotImplementedError inside of a function that is traced for itself, as by torch.cond.
    """
    known = _open.get()
    if known is not None:
        if known.trace is not current_trace():
            raise NotImplementedError(
                "torch._check of a number of the inputs inside of torch.cond, vmap or a loop is "
                "not exported: check it outside"
            )
        known.conditions.append(Requirement(condition._array, text))
    within(condition)
