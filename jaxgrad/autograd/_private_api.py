"""Names that PyTorch's module has from its native part, and code asks for."""

from __future__ import annotations

import contextvars

from ..tape.node import next_sequence_number
from ._engine.graph_task import current
from ._engine.saved_tensor_hooks import saved_tensors_hooks

# the pairs of hooks that were pushed, here and now, the last one at the end
_pushed = contextvars.ContextVar("jaxgrad.pushed_hooks", default=())


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


def _push_saved_tensors_default_hooks(pack_hook, unpack_hook):
    """Begin what `graph.saved_tensors_hooks` is for a block, until it is popped.

    >>> jaxgrad.autograd._push_saved_tensors_default_hooks(lambda x: x.numpy(), jaxgrad.tensor)
    >>> y = jaxgrad.ones(2, requires_grad=True).exp()
    >>> jaxgrad.autograd._pop_saved_tensors_default_hooks()
    """
    hooks = saved_tensors_hooks(pack_hook, unpack_hook)
    hooks.__enter__()
    _pushed.set((*_pushed.get(), hooks))


def _pop_saved_tensors_default_hooks():
    """End what was pushed last. Raises RuntimeError where nothing was."""
    if not _pushed.get():
        raise RuntimeError("no saved-tensor hooks were pushed that could be popped")
    *before, hooks = _pushed.get()
    hooks.__exit__(None, None, None)
    _pushed.set(tuple(before))
