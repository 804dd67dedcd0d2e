"""Functions that run uncompiled where they cannot be traced."""

from __future__ import annotations

import traceback
import warnings

from ..core.bounded_cache import ENTRY, BoundedCache, Clock
from ..core.tracebacks import is_internal, users_stacklevel


class Fallback:
    """For which arguments a compiled function runs uncompiled: by the key of their kind."""

    def __init__(self, name: str):
        self.name = name
        self.keys = BoundedCache(Clock("programs"), lambda _: ENTRY)
        self.told: set[str] = set()

    def holds(self, key) -> bool:
        """Whether the function could not be traced with arguments of this kind."""
        return bool(self.keys.get(key) or self.keys.find(key))

    def note(self, key, error: Exception):
        """Note that a trace raised an error, and the function did not when it ran uncompiled. Warn
        once for each line.
        """
        self.keys.keep(key, True)
        place = place_of(error)
        if place not in self.told:
            self.told.add(place)
            warnings.warn(
                f"{self.name} runs uncompiled, because it cannot be traced at {place}: {error}. "
                "torch.compile(fullgraph=True) and jit(fallback=False) raise this",
                stacklevel=users_stacklevel(),
            )


def place_of(error: Exception) -> str:
    """The file and line of the user's code that raised an error."""
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not is_internal(frame)
    ]
    return places[-1] if places else "an unknown line"
