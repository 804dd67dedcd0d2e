"""When two values are the same one to a program: plain values by what is computed with them, other
objects by identity.
"""

from __future__ import annotations

from .objects import own_dict

PLAIN = (int, float, complex, str, bytes, bool, type(None))


def exact(value) -> tuple:
    """A value as a key. 1, 1.0 and True are equal, and so are 0.0 and -0.0, and NaN equals nothing;
    what is computed with them differs, and does not differ from one NaN to the next.
    """
    kind = type(value)
    if kind is complex or (kind is float and not (value > 0 or value < 0)):
        return kind, repr(value)
    return kind, value


def is_same_plain_value(value, known) -> bool:
    """Whether a value is the known object, or an equal number, text or tuple of them."""
    if value is known:
        return True
    if type(value) is not type(known):
        return False
    if type(known) is tuple:
        return len(value) == len(known) and all(map(is_same_plain_value, value, known))
    is_plain = isinstance(known, PLAIN)
    if type(known) not in PLAIN:  # what code sets on a number of a user's class is state, too
        is_plain &= not (own_dict(value) or own_dict(known))
    return is_plain and exact(value) == exact(known)


def show_change(name, known, value) -> str:
    """How a binding differs from the known one."""
    if isinstance(known, PLAIN) and isinstance(value, PLAIN):
        return f"{name} was {known!r}, and is {value!r}"
    return f"{name} is bound to something else"
