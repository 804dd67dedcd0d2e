"""Changes of several tensors that happen entirely or not at all, despite interrupts, errors, and
other threads that read.

Python handles signals and switches threads between two instructions of its interpreter. So new
values are computed first and set by one call of C code. Changes that run Python code save the old
values, and put them back if they do not complete.
"""

from __future__ import annotations

import contextlib
import operator
from itertools import chain, repeat

import jax

from ..core import executor
from ..core.pending import Pending
from ..tape import interception
from ..tape.mode import current_mode
from ..tape.tensor import Tensor
from ..tape.version_counter import Counter, counter_of
from .alias import Alias, Storage, root_of

# inlined: the accessors of tape/tensor.py

# ---- in one step


def set_all(targets, names, values, calls=()):
    """Set attributes: of each target the attribute of its name to its value, after some calls. The
    calls are `functools.partial`s of functions in C that return None.
    """
    steps = map(setattr, targets, names, values)
    # `any` goes on, since each of them gives None
    any(chain(map(operator.call, calls), steps) if calls else steps)


def are_plain(targets: list[Tensor], arrays) -> list[bool]:
    """For each tensor whether `give_all` may give it its array: not if it shares its memory, or if
    anything is traced.
    """
    kinds = {*map(type, arrays)}
    # what is pending may have been noted in a trace
    is_open = Pending in kinds and executor.is_traced()
    if interception.is_noted or is_open or any(issubclass(k, jax.core.Tracer) for k in kinds):
        return [False] * len(targets)
    return [
        tensor._alias is None and not tensor._aval.mode and counter_of(tensor).places is None
        for tensor in targets
    ]


def give_all(targets: list[Tensor], arrays, calls=()):
    """Give plain tensors arrays of their abstract values in place, without history, after some
    calls.
    """
    counters = [tensor._counter for tensor in targets]
    versions = [counter.value + 1 for counter in counters]
    names = chain(repeat("_raw", len(targets)), repeat("value", len(targets)))
    set_all([*targets, *counters], names, [*arrays, *versions], calls)


def clear_gradients(tensors):
    """Set the `.grad` of tensors to None."""
    if interception.grad is not None:
        for tensor in tensors:
            tensor.grad = None
        return
    leaves = [tensor._leaf for tensor in tensors if tensor._leaf is not None]
    set_all(leaves, repeat("grad"), repeat(None, len(leaves)))


# ---- with what was there before


class Before:
    """The earlier state of tensors that change."""

    def __init__(self):
        self.values: list[tuple] = []

    def save(self, tensor: Tensor):
        """Save a tensor, with what it shares with others."""
        self.save_slots(tensor, Tensor)
        self.save_slots(tensor._counter, Counter)
        if tensor._leaf is not None:
            self.values.append((tensor._leaf, "grad", tensor._leaf.grad))
        alias = tensor._alias
        if alias is not None:
            self.save_slots(alias, Alias)
            self.save_slots(alias.storage, Storage)
            if alias.root is not None:
                self.save_slots(alias.root, Alias)
                self.save_slots(root_of(alias), Tensor)

    def save_value(self, tensor: Tensor):
        """Save what a write in place without history changes."""
        if tensor._alias is not None:
            self.save(tensor)
            return
        self.values.append((tensor, "_raw", tensor._raw))
        if tensor._counter is not None:
            self.values.append((tensor._counter, "value", tensor._counter.value))

    def save_slots(self, value, kind: type):
        slots = () if value is None else _SLOTS[kind]
        self.values += [(value, slot, getattr(value, slot)) for slot in slots]

    def restore(self):
        if self.values:
            set_all(*zip(*reversed(self.values), strict=True))


_SLOTS = {
    kind: [slot for slot in kind.__slots__ if slot not in ("__weakref__", "home")]
    for kind in (Tensor, Counter, Alias, Storage)
}


def is_from_outside(error: BaseException) -> bool:
    """Whether an error may come at any moment: an interrupt, or a lack of memory."""
    is_interrupt = not isinstance(error, Exception)
    return is_interrupt or isinstance(error, MemoryError | jax.errors.JaxRuntimeError)


@contextlib.contextmanager
def all_or_nothing(tensors):
    """Put tensors and the grad mode back to what they were if the block ends with an error or an
    interrupt.
    """
    before, grad_mode = Before(), current_mode.get()
    for tensor in tensors:
        before.save(tensor)
    try:
        yield
    except BaseException:
        before.restore()
        current_mode.set(grad_mode)  # which an interrupt at the end of a `with` leaves as it is
        raise
