"""What operators do with their results here and now: leave them plain, record them, or mark them.

The state belongs to the current context (`contextvars`): to a thread, to an asyncio task.
"""

from __future__ import annotations

import contextvars
from contextlib import contextmanager

# In inference mode results are marked, and nothing is recorded even where grad mode is on again.
# Inside the forward of a Function nothing is recorded either, but what depends on tensors that
# require grad is marked, so that it is not taken for a constant when the Function has saved it.
MARK, PLAIN, RECORD, INFERENCE, INFERENCE_WITH_GRAD = -1, 0, 1, 2, 3

# the one of the five that holds: what an operator reads at every call
current_mode = contextvars.ContextVar("jaxgrad.mode", default=RECORD)

# the mode that switching grad mode off leads to
off = contextvars.ContextVar("jaxgrad.grad_mode_off", default=PLAIN)

# how many of the functions of `jaxgrad.func` are running around this place
transforms = contextvars.ContextVar("jaxgrad.transforms", default=0)


def is_grad_enabled() -> bool:
    """Whether operators are being recorded, here and now.

    >>> with jaxgrad.no_grad():
    ...     jaxgrad.is_grad_enabled()
    False
    """
    return current_mode.get() in (RECORD, INFERENCE_WITH_GRAD)


def is_inference_mode_enabled() -> bool:
    """Whether this is inference mode.

    >>> jaxgrad.is_inference_mode_enabled()
    False
    """
    return current_mode.get() >= INFERENCE


def with_grad(enabled: bool) -> int:
    """The mode that holds here once grad mode is switched on or off."""
    if current_mode.get() >= INFERENCE:
        return INFERENCE_WITH_GRAD if enabled else INFERENCE
    return RECORD if enabled else off.get()


def switch(wanted: int) -> int:
    """Set the mode; gives what it was."""
    before = current_mode.get()
    current_mode.set(wanted)
    return before


# The innermost function that is being captured around this place (capture/scope.py).
scope = contextvars.ContextVar("jaxgrad.scope", default=None)

# To which dtypes autocast converts here and now (ops/autocast.py): pairs of a type of device and a
# dtype, None where it is off; and the parameters that have been converted since it was entered.
casting = contextvars.ContextVar("jaxgrad.casting", default=None)
casts = contextvars.ContextVar("jaxgrad.casts", default=None)

# what a function that may run several times draws, here and now
draws = contextvars.ContextVar("jaxgrad.draws", default=None)


class Draws:
    """The random numbers that a function draws: the same ones whenever it runs again."""

    def __init__(self):
        self.made = []

    @contextmanager
    def again(self):
        """Draw them from the first on."""
        token = draws.set((self, iter(range(len(self.made))), draws.get()))
        try:
            yield
        finally:
            draws.reset(token)


def drawn(draw):
    """The result of `draw()`, or of what it was when the function around this place first ran."""
    return _drawn(draws.get(), draw)


def _drawn(around, draw):
    if around is None:
        return draw()
    kept, numbers, further = around
    number = next(numbers, None)
    if number is None:
        kept.made.append(_drawn(further, draw))
        return kept.made[-1]
    return kept.made[number]
