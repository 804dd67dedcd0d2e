"""The debug level: how much of the communication of processes is checked and logged."""

from __future__ import annotations

import enum
import os

from ..core import spread


class DebugLevel(enum.Enum):
    """How much processes check of what they do together. DETAIL: before each program that
    communicates they compare what they are about to run, and raise where they differ.

    >>> jaxgrad.distributed.DebugLevel.DETAIL.name
    'DETAIL'
    """

    OFF, INFO, DETAIL = range(3)


_level = DebugLevel.OFF


def set_debug_level(level: DebugLevel) -> None:
    """Set how much processes check; all must set the same. Raises TypeError for another type.

    >>> jaxgrad.distributed.set_debug_level(jaxgrad.distributed.DebugLevel.OFF)
    """
    global _level
    if not isinstance(level, DebugLevel):
        raise TypeError(f"set_debug_level: level must be a DebugLevel, not {level!r}")
    _level = level
    spread.set_compares_calls(level is DebugLevel.DETAIL)


def get_debug_level() -> DebugLevel:
    """How much processes check.

    >>> jaxgrad.distributed.get_debug_level().name
    'OFF'
    """
    return _level


def set_debug_level_from_env() -> None:
    """Set the level by TORCH_DISTRIBUTED_DEBUG in the environment: OFF, INFO or DETAIL. Raises
    RuntimeError for another value.

    >>> jaxgrad.distributed.set_debug_level_from_env()
    >>> jaxgrad.distributed.get_debug_level().name
    'OFF'
    """
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"TORCH_DISTRIBUTED_DEBUG is OFF, INFO or DETAIL, not {name!r}")
    set_debug_level(DebugLevel[name])
