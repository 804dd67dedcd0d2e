"""How much Python code does, as a number that no clock and no other process changes."""

import contextlib
import sys


class TooMuchWork(BaseException):
    """Not an Exception, which the code under test may catch."""


@contextlib.contextmanager
def at_most(calls):
    """Raises TooMuchWork where the block calls more functions, built-in ones included."""
    left = calls

    def count(frame, event, _):
        nonlocal left
        if event in ("call", "c_call"):
            left -= 1
            if left < 0:
                raise TooMuchWork(f"more than {calls} calls of functions")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
