"""Functions that run uncompiled where they cannot be traced."""

from __future__ import annotations

import inspect
import traceback
import warnings

from ..core.bounded_cache import ENTRY, BoundedCache, Clock
from ..core.tracebacks import users_stacklevel
from ..draws.frozen import modules_of
from ..state.code import python_function
from ..state.ownership import is_internal


class Fallback:
    """The arguments for which a compiled function runs uncompiled: by the key of their kind, and
    the training modes of the module that it belongs to.
    """

    def __init__(self, name: str, function):
        self.name, self.function = name, function
        self.keys = BoundedCache(Clock("programs"), lambda _: ENTRY)
        self.warned: set[str] = set()

    def holds(self, key) -> bool:
        """Whether the function could not be traced with arguments of this kind."""
        key = key, self.training()
        return bool(self.keys.get(key) or self.keys.find(key))

    def training(self) -> tuple:
        """The training modes of the module that the function is, or whose method it is."""
        function = inspect.unwrap(self.function)
        owner = getattr(function, "__self__", function)
        return tuple([vars(module).get("training") for module in modules_of(owner)])

    def note(self, key, error: Exception):
        """Note that a trace raised an error and the function did not when it ran uncompiled. Warn
        once for each line. An error with `is_passing` concerns only this call.
        """
        if getattr(error, "is_passing", False):
            return
        self.keys.keep((key, self.training()), True)
        self.tell(error)

    def tell(self, error: Exception):
        """Warn that the function runs uncompiled because of an error, once for each line."""
        place = place_of(error) or place_of_function(self.function)
        why = f"because it cannot be traced at {place}: {error}"
        self.warn(place, f"{self.name} runs uncompiled, {why}. {RAISED}")

    def leave(self, key, why: str):
        """Leave the function uncompiled from the next call on, with a warning that says why."""
        self.keys.keep((key, self.training()), True)
        self.warn(why, f"{self.name} runs uncompiled from now on, because {why}")

    def warn(self, topic: str, message: str):
        if topic not in self.warned:
            self.warned.add(topic)
            warnings.warn(message, stacklevel=users_stacklevel())


RAISED = "torch.compile(fullgraph=True) and jit(fallback=False) raise this"


def place_of(error: Exception) -> str | None:
    """The file and line of the user's code that raised an error; None where it was jaxgrad's."""
    if hasattr(error, "place"):
        return error.place
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not is_internal(frame)
    ]
    return places[-1] if places else None


def place_of_function(function) -> str:
    """The file and line where a function is defined."""
    function = inspect.unwrap(function)
    definition = python_function(getattr(function, "forward", function))
    if definition is None:
        return "an unknown line"
    return f"{definition.__code__.co_filename}:{definition.__code__.co_firstlineno}"
