"""Where in the user's code something happens."""

import sys


def place_of_caller() -> str:
    """Where the code stands that called jaxgrad: its file and line. What JAX runs while it traces
    is of jaxgrad too."""
    frame = sys._getframe(1)
    while frame.f_back and _root(frame) in ("jaxgrad", "jax"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _root(frame) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]
