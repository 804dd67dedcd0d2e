"""Choose how attention is computed, as torch.nn.attention."""

from __future__ import annotations

import contextlib
import contextvars
import enum
from collections.abc import Iterator
from typing import Any

from ...names.not_provided import names_of
from ...tape import settings

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """The implementations of `scaled_dot_product_attention`.

    FLASH_ATTENTION is one operator, which works in blocks where the scores are many; MATH is
    composed of products and a softmax. The others do not exist on this platform.

    >>> jaxgrad.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __str__ = enum.Enum.__str__


_enabled = contextvars.ContextVar("jaxgrad.sdpa_backends", default=tuple(SDPBackend)[1:])
settings.let_last(_enabled.get, _enabled.set)


def enabled() -> tuple[SDPBackend, ...]:
    """Return the implementations that the current context allows."""
    return settings.noted(_enabled_in_context)


def _enabled_in_context(_) -> tuple[SDPBackend, ...]:
    return _enabled.get()


def enable(backend: SDPBackend, is_enabled: bool) -> None:
    """Allow or forbid an implementation from now on."""
    others = [implementation for implementation in enabled() if implementation is not backend]
    _enabled.set((*others, backend) if is_enabled else tuple(others))


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[str, Any]]:
    """Let `scaled_dot_product_attention` use only these implementations within the context.

    backends: an `SDPBackend` or a list of them. set_priority: accepted; of several the fused
    operator is always taken first. A call that none of them can serve raises RuntimeError. A
    compiled function is traced again for another choice. Raises AssertionError for another type of
    `backends`.

    >>> attention = jaxgrad.nn.attention
    >>> with attention.sdpa_kernel(attention.SDPBackend.MATH):
    ...     F.scaled_dot_product_attention(*[jaxgrad.ones(1, 2, 3)] * 3).shape
    torch.Size([1, 2, 3])
    """
    if not isinstance(backends, list | SDPBackend):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    chosen = (backends,) if isinstance(backends, SDPBackend) else tuple(dict.fromkeys(backends))
    token = _enabled.set(chosen)
    try:
        yield {}
    finally:
        _enabled.reset(token)


__getattr__, __dir__ = names_of(__name__)
