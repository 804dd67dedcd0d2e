"""The line of the user's code that runs."""

import sys

from ..core.tracebacks import is_internal


def place_of_caller() -> str:
    """The file and line of the user's code that called jaxgrad, through JAX too."""
    frame = sys._getframe(1)
    while frame.f_back and is_internal(frame):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
