"""The line of the user's code that runs."""

import sys


def place_of_caller() -> str:
    """The file and line that called jaxgrad, past the frames of jaxgrad and JAX."""
    frame = sys._getframe(1)
    while frame.f_back and _root(frame) in ("jaxgrad", "jax"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _root(frame) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]
