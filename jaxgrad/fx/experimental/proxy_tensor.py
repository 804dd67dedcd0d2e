"""What jaxgrad has of torch.fx.experimental.proxy_tensor: no tensors are traced below operators."""

from __future__ import annotations

from ...names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)


def get_proxy_mode():
    """Return None: no mode traces the operators that tensors meet.

    >>> from jaxgrad.fx.experimental.proxy_tensor import get_proxy_mode
    >>> get_proxy_mode() is None
    True
    """
    return None
