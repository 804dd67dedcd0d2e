"""The names of torch.utils.hooks."""

from __future__ import annotations

from ..names.missing import missing_in
from ..tape.hooks import RemovableHandle as RemovableHandle


def unserializable_hook(f):
    """Mark a hook as not serializable, and return it.

    f: a function. Pickling a tensor warns of hooks without this mark; the copy has none.

    >>> @jaxgrad.utils.hooks.unserializable_hook
    ... def double(grad):
    ...     return grad * 2
    >>> double.__torch_unserializable__
    True
    """
    f.__torch_unserializable__ = True
    return f


__getattr__ = missing_in(__name__)
