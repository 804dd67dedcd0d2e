"""The names of torch.utils.hooks."""

from __future__ import annotations

from ..tape.hooks import RemovableHandle as RemovableHandle


def unserializable_hook(f):
    """Mark a hook as not serializable, and return it.

    f: a function. The mark has no effect here, since tensors are not pickled; in PyTorch it
    silences a warning.

    >>> @jaxgrad.utils.hooks.unserializable_hook
    ... def double(grad):
    ...     return grad * 2
    >>> double.__torch_unserializable__
    True
    """
    f.__torch_unserializable__ = True
    return f
