"""Handles that remove hooks, as torch.utils.hooks."""

from __future__ import annotations

import warnings

from ..core.tracebacks import users_stacklevel
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


def warn_if_has_hooks(tensor) -> None:
    """Warn of the hooks of a tensor that its copies lack: those that nothing marks.

    >>> jaxgrad.utils.hooks.warn_if_has_hooks(jaxgrad.ones(2))
    """
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized: decorate the function "
                "with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=users_stacklevel(),
            )


__getattr__ = missing_in(__name__)
