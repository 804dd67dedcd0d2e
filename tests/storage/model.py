"""What PyTorch allows and forbids for the handles of a random program, beside their values."""

import dataclasses

import jax
import numpy
from storage import functional

LARGEST = 50.0  # the largest value of a program: products of products stay exact enough
MOST_ELEMENTS = 64
MOST_DIMENSIONS = 3


class Skipped(Exception):
    """The step is none: its shapes do not fit, or its numbers would become large."""


class Forbidden(Exception):
    """PyTorch raises a RuntimeError at this step."""


@dataclasses.dataclass
class Tracked(functional.Handle):
    """A handle that knows how it was made.

    creation: "several" for one of several views, "no_grad" for a view made under no_grad, of the
    history `origin`, when its memory had been written `seen` times. PyTorch refuses to write both
    in place once derivatives are involved, and to read them after another handle was written.
    The former read what the base has; of the latter nothing is promised, so programs do not.
    """

    creation: str = ""
    origin: functional.History | None = None
    seen: int = 0

    @property
    def bound(self):
        """No number of the memory is larger."""
        return getattr(self.memory, "bound", 1.0)

    @property
    def writes(self):
        return getattr(self.memory, "writes", 0)

    @property
    def is_readable(self):
        stale = self.creation == "no_grad" and self.seen != self.writes
        return not (stale and self.origin.requires_grad)

    @property
    def needs_gradient(self):
        """requires_grad as PyTorch sees it for a write: a view made under no_grad asks its base."""
        return self.requires_grad or (self.origin is not None and self.origin.requires_grad)

    @property
    def strides(self):
        return tuple(stride // self.places.itemsize for stride in self.places.strides)


def tracked(handle, **options):
    fields = {field.name: getattr(handle, field.name) for field in dataclasses.fields(handle)}
    return Tracked(**(fields | options))


def tracks(grad_mode, *sources):
    """Whether what is computed from the sources requires grad.

    Of a view that was made under no_grad PyTorch says that it requires grad if its base does; it
    is constant all the same. Nothing is promised of that, so programs compute nothing from one.
    """
    if grad_mode and any(h.needs_gradient and not h.requires_grad for h in sources):
        raise Skipped
    return grad_mode and any(h.requires_grad for h in sources)


def new(value, dims, bound, requires_grad):
    """A new tensor, its dimensions in memory in the order `dims` (None: their own)."""
    if bound > LARGEST or value.ndim > MOST_DIMENSIONS or value.size > MOST_ELEMENTS:
        raise Skipped
    value = value if requires_grad else jax.lax.stop_gradient(value)
    handle = functional.laid_out(value, dims or range(value.ndim), requires_grad)
    handle.memory.bound = bound
    return tracked(handle)


def view(handle, index, grad_mode, several=False):
    places = index(handle.places)
    if places.ndim > MOST_DIMENSIONS or not 0 < places.size <= MOST_ELEMENTS:
        raise Skipped
    if not numpy.may_share_memory(places, handle.memory.places):
        raise Forbidden
    if grad_mode or handle.creation == "no_grad":
        kind = handle.creation or ("several" if several else "")
        return dataclasses.replace(handle, places=places, creation=kind)
    apart = functional.detached(handle)
    return dataclasses.replace(
        apart, places=places, creation="no_grad", origin=handle.history, seen=handle.writes
    )


def detached(handle):
    return dataclasses.replace(functional.detached(handle), creation="", origin=None)


def check_write(handle, grad_mode, *sources):
    """Raises what PyTorch raises; False for a write without derivatives."""
    needs = tracks(grad_mode, *sources) or (grad_mode and handle.needs_gradient)
    if needs and handle.creation:
        raise Forbidden
    return needs


def write(handle, value, bound, grad_mode, *sources, uniform=False):
    """Writes an array that was computed from the sources.

    uniform: one number everywhere, which may be written over an expanded dimension too.
    """
    if bound > LARGEST:
        raise Skipped
    needs = check_write(handle, grad_mode, *sources)
    if functional.overlaps_itself(handle) and not uniform:
        raise Forbidden
    functional.write(handle, value, grad_mode)
    handle.history.requires_grad |= needs
    handle.memory.bound = max(handle.bound, bound)
    handle.memory.writes = handle.writes + 1


def rearrange(handle, places, grad_mode):
    """An in-place function that moves dimensions."""
    if places.ndim > MOST_DIMENSIONS:
        raise Skipped
    check_write(handle, grad_mode)
    handle.places = places
    handle.memory.writes = handle.writes + 1


def same_elements(one, other):
    """Whether two handles are at the same places of the same memory, dimension by dimension."""
    same_memory = one.memory is other.memory
    return same_memory and one.shape == other.shape and bool((one.places == other.places).all())
