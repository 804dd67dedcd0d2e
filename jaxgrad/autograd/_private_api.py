"""Names of torch.autograd that come from PyTorch's native part and that programs use."""

from __future__ import annotations

import contextvars

from ..tape.mode import current_pass
from ..tape.node import next_sequence_number
from ._engine.saved_tensor_hooks import saved_tensors_hooks

# the pushed hooks of this context, innermost last
_pushed = contextvars.ContextVar("jaxgrad.pushed_hooks", default=())


def _is_checkpoint_valid() -> bool:
    """Whether no backward pass to chosen inputs, by `grad` or `inputs=`, runs around this call.

    A checkpoint that is recomputed in such a pass would lose the gradients of all other leaves.

    >>> jaxgrad.autograd._is_checkpoint_valid()
    True
    """
    run = current_pass.get()
    return run is None or run.is_to_all


def _get_sequence_nr() -> int:
    """The sequence number that the next node gets.

    >>> number = jaxgrad.autograd._get_sequence_nr()
    >>> (jaxgrad.ones(2, requires_grad=True) * 2).grad_fn._sequence_nr() >= number
    True
    """
    # Only the repr of a count, "count(3)", shows its position without advancing it.
    return int(repr(next_sequence_number.__self__)[len("count(") : -1])


def _register_py_tensor_class_for_device(device, cls):
    """Kept for PyTorch's code, without effect: all devices have the same class of tensors.

    Raises RuntimeError if `cls` is not a class.
    """
    if not isinstance(cls, type):
        raise RuntimeError(f"cls isn't a typeinfo object: expected a class, but got {cls!r}")


def _push_saved_tensors_default_hooks(pack_hook, unpack_hook):
    """Apply `graph.saved_tensors_hooks(pack_hook, unpack_hook)` until it is popped.

    >>> jaxgrad.autograd._push_saved_tensors_default_hooks(lambda x: x.numpy(), jaxgrad.tensor)
    >>> y = jaxgrad.ones(2, requires_grad=True).exp()
    >>> jaxgrad.autograd._pop_saved_tensors_default_hooks()
    """
    hooks = saved_tensors_hooks(pack_hook, unpack_hook)
    hooks.__enter__()
    _pushed.set((*_pushed.get(), hooks))


def _pop_saved_tensors_default_hooks():
    """Remove the hooks that were pushed last. Raises RuntimeError if there are none."""
    if not _pushed.get():
        raise RuntimeError("no saved-tensor hooks to pop: none were pushed")
    *before, hooks = _pushed.get()
    hooks.__exit__(None, None, None)
    _pushed.set(tuple(before))
