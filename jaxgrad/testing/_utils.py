"""What tests do to random numbers, as torch.testing._utils."""

from __future__ import annotations

import contextlib

from ..frontend.generator import get_rng_state, manual_seed, set_rng_state
from ..names.missing import missing_in


@contextlib.contextmanager
def freeze_rng_state():
    """Restore the state of the default generator at the end of a block."""
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def wrapper_set_seed(op, *args, **kwargs):
    """Call a function with the seed 42, and restore the state of the default generator."""
    with freeze_rng_state():
        manual_seed(42)
        return op(*args, **kwargs)


__getattr__ = missing_in(__name__)
