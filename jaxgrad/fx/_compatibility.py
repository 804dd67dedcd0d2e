"""The mark that PyTorch puts on the names whose meaning it keeps."""

from __future__ import annotations

from ..names.missing import missing_in

__getattr__ = missing_in(__name__)


def compatibility(is_backward_compatible: bool):
    """Return a decorator that returns what it decorates.

    is_backward_compatible: whether later versions keep the name's meaning; nothing depends on it.

    >>> from jaxgrad.fx._compatibility import compatibility
    >>> compatibility(is_backward_compatible=True)(len) is len
    True
    """
    return lambda decorated: decorated
