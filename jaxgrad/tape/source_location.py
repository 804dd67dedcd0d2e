"""The line of the user's code that runs, and the caller of JAX."""

import contextvars
import sys

from ..state.ownership import is_internal, root

# whether new nodes note the source line that records them
lines = contextvars.ContextVar("jaxgrad.lines", default=False)


def place_of_caller() -> str:
    """The file and line of the user's code that called jaxgrad, through JAX too."""
    frame = sys._getframe(1)
    while frame.f_back and is_internal(frame):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def jax_is_called_by_user() -> bool:
    """Whether code outside of jaxgrad called the function of JAX that is running."""
    frame = sys._getframe(1)
    while frame and root(frame) != "jax":
        frame = frame.f_back
    # JAX calls itself through decorators of the standard library
    while frame and root(frame) in ("jax", "contextlib", "functools"):
        frame = frame.f_back
    return frame is not None and root(frame) != "jaxgrad"
