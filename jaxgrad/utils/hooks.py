"""Names of torch.utils.hooks."""

from __future__ import annotations

from ..tape.hooks import RemovableHandle as RemovableHandle


def unserializable_hook(f):
    """Mark a hook as not serializable, which silences a warning of PyTorch's.

    It exists for PyTorch's code: tensors are not pickled here.

    f: the hook, which is returned.

    >>> @jaxgrad.utils.hooks.unserializable_hook
    ... def double(grad):
    ...     return grad * 2
    >>> double.__torch_unserializable__
    True
    """
    f.__torch_unserializable__ = True
    return f
