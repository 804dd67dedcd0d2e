"""Names that PyTorch's module has from its native part, and code asks for."""

from __future__ import annotations

from ..nodes import next_sequence_number
from .engine import current


def _is_checkpoint_valid() -> bool:
    """Whether no pass around this place is one to chosen inputs, by `grad` or `inputs=`: what is
    recomputed under such a one would lose the gradients of all else.

    >>> jaxgrad.autograd._is_checkpoint_valid()
    True
    """
    run = current.get()
    return run is None or run.is_to_all


def _get_sequence_nr() -> int:
    """The number that the next node of the graph gets.

    >>> number = jaxgrad.autograd._get_sequence_nr()
    >>> (jaxgrad.ones(2, requires_grad=True) * 2).grad_fn._sequence_nr() >= number
    True
    """
    # a count shows where it is, without moving on, in its text alone: count(3)
    return int(repr(next_sequence_number.__self__)[len("count(") : -1])


def _register_py_tensor_class_for_device(device, cls):
    """Kept for PyTorch's code, and without effect: tensors are of one class on every device.

    Raises RuntimeError where `cls` is no class.
    """
    if not isinstance(cls, type):
        raise RuntimeError(f"cls isn't a typeinfo object: a class is wanted, not {cls!r}")
