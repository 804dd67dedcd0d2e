"""What operators do with their results here and now: leave them plain, record them, or mark them as
inference tensors.

The state belongs to the current context (`contextvars`): to a thread, to an asyncio task.
"""

from __future__ import annotations

import contextvars

PLAIN, RECORD, INFERENCE = 0, 1, 2

# the one of the three that holds: what an operator reads at every call
mode = contextvars.ContextVar("jaxgrad.mode", default=RECORD)
_enabled = contextvars.ContextVar("jaxgrad.grad_enabled", default=True)


def is_grad_enabled() -> bool:
    """Whether operators are being recorded, here and now.

    >>> with jaxgrad.no_grad():
    ...     jaxgrad.is_grad_enabled()
    False
    """
    return _enabled.get()


def is_inference_mode_enabled() -> bool:
    """Whether this is inference mode.

    >>> jaxgrad.is_inference_mode_enabled()
    False
    """
    return mode.get() == INFERENCE


def switch(enabled: bool, inference: bool) -> tuple[bool, bool]:
    """Set grad mode and inference mode; gives what they were."""
    before = (_enabled.get(), mode.get() == INFERENCE)
    _enabled.set(enabled)
    mode.set(INFERENCE if inference else RECORD if enabled else PLAIN)
    return before
