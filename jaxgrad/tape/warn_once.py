"""Warnings that a process shows once, or at every call under `set_warn_always`."""

from __future__ import annotations

import warnings

from ..core.tracebacks import users_stacklevel
from . import settings

_shown: set[str] = set()  # the messages


def warn_once(message: str):
    """Warn of what the user's code does, unless this process has shown the message before."""
    if settings.get("warn_always") or message not in _shown:
        _shown.add(message)
        warnings.warn(message, stacklevel=users_stacklevel())
