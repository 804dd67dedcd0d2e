"""Names of torch.utils.hooks that code which registers hooks uses."""

from __future__ import annotations

from ..tape.hooks import RemovableHandle as RemovableHandle


def unserializable_hook(f):
    """Mark a hook as one that is lost when its tensor is saved: kept for PyTorch's code, which says
    so to silence a warning. Tensors are not pickled here.

    >>> @jaxgrad.utils.hooks.unserializable_hook
    ... def double(grad):
    ...     return grad * 2
    >>> double.__torch_unserializable__
    True
    """
    f.__torch_unserializable__ = True
    return f
