"""Lists of hooks, and the handle that removes a hook."""

from __future__ import annotations

import functools
import itertools
import weakref

from .mode import current_pass, transform_levels

# one count for all lists, so that a number means one hook for good: guards compare numbers
_next_number = itertools.count().__next__


# a plain dict takes no weak references, which handles and guards need
class Hooks(dict):
    """Hooks by number, in the order of registration."""

    __slots__ = ("__weakref__",)


# the lists that belong to no single object: the hooks of all modules and of all optimizers
shared: list[Hooks] = []


def share(hooks: Hooks) -> Hooks:
    """Register a list of hooks as a list for all objects of a kind, and return it."""
    shared.append(hooks)
    return hooks


class RemovableHandle:
    """Removes a hook: by `remove()`, or at the end of a `with` block.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 2):
    ...     x.sum().backward()
    >>> x.sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """

    __slots__ = ("__weakref__", "hooks_dict_ref", "id")

    def __init__(self, hooks: Hooks):
        # weakly, as in PyTorch: a handle keeps neither the hooks alive nor what they hold
        self.hooks_dict_ref = weakref.ref(hooks)
        self.id = _next_number()

    def remove(self):
        hooks = self.hooks_dict_ref()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id

    def __setstate__(self, state):
        hooks, self.id = state[:2]
        self.hooks_dict_ref = weakref.ref(Hooks() if hooks is None else hooks)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def register(hooks: Hooks, hook) -> RemovableHandle:
    """Add a hook and return its handle. Raises TypeError for an object that cannot be called."""
    if not callable(hook):
        raise TypeError(f"a hook is a function, but got {type(hook).__name__}")
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_in_transform(hooks: Hooks, hook) -> RemovableHandle:
    """`register` for a hook of gradients. Inside of a transform by reverse mode it runs in the
    passes of that transform, and not in those of transforms around it or of the caller.
    """
    levels = [level for level in transform_levels.get() if hasattr(level, "is_differentiated_by")]
    if not levels or not callable(hook):
        return register(hooks, hook)
    level = levels[-1]

    @functools.wraps(hook)
    def in_transform(*arguments):
        if level in transform_levels.get() or level.is_differentiated_by(current_pass.get()):
            return hook(*arguments)
        return None

    return register(hooks, in_transform)


def name_of(hook) -> str:
    """The name of a hook in error messages."""
    return getattr(hook, "__name__", type(hook).__name__)
