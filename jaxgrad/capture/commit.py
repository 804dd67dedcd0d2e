"""What a call changes of tensors, set in one step: a signal arrives before it or after it.

Python handles signals between two instructions of its interpreter, and other threads run then too.
The new values are therefore computed first, and set by one call of C code.
"""

from __future__ import annotations

import functools
import operator

from ..storage.alias import Alias, Storage, root_of
from ..tape.tensor import LeafState, Tensor
from ..tape.version_counter import Counter


def set_all(targets, names, values):
    """Set attributes: of each target that of its name to its value."""
    # `any` goes on, since `setattr` gives None
    any(map(setattr, targets, names, values))


def items(numbers: list[int]):
    """A function that gives these items of a list."""
    if len(numbers) > 1:
        return operator.itemgetter(*numbers)
    return lambda found: [found[number] for number in numbers]


def extend_once(sequence, values, target, name: str, value):
    """Extend a list or deque and set an attribute."""
    extend = functools.partial(sequence.extend, values)
    any(map(operator.call, (extend, functools.partial(setattr, target, name, value))))


class Before:
    """The state of tensors before they change, for those that share memory."""

    def __init__(self):
        self.states: list[tuple] = []

    def save(self, tensor: Tensor):
        """Save a tensor, and what it shares with others."""
        alias = tensor._alias
        saved = [tensor, tensor._counter, tensor._leaf, alias, alias and alias.storage]
        if alias is not None and alias.root is not None:
            saved += [root_of(alias), alias.root]
        for each in saved:
            slots = next((slots for kind, slots in _SLOTS if isinstance(each, kind)), ())
            self.states.append((each, [(slot, getattr(each, slot)) for slot in slots]))

    def restore(self):
        for each, values in reversed(self.states):
            for slot, value in values:
                setattr(each, slot, value)


_SLOTS = (
    (Tensor, [slot for slot in Tensor.__slots__ if slot != "__weakref__"]),
    (LeafState, ["grad"]),
    (Counter, Counter.__slots__),
    (Alias, Alias.__slots__),
    (Storage, [slot for slot in Storage.__slots__ if slot != "_address"]),
)
