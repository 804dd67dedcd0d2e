"""Options of PyTorch's compiler, which have no effect."""

from __future__ import annotations

import contextlib
import types


class IgnoredOptions(types.ModuleType):
    """Options that keep what they are set to, without effect; one that has not been set is false,
    and a group of options.

    >>> jaxgrad._dynamo.config.suppress_errors = True
    >>> jaxgrad._dynamo.config.suppress_errors, bool(jaxgrad._dynamo.config.verbose)
    (True, False)
    """

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"{self.__name__} has no attribute {name!r}")
        group = IgnoredOptions(f"{self.__name__}.{name}")
        setattr(self, name, group)
        return group

    def __bool__(self):
        return False

    @contextlib.contextmanager
    def patch(self, *changed, **options):
        """A block, or a decorator, with other options: by keywords, in a dict, or as a name and a
        value.
        """
        changes = {changed[0]: changed[1]} if len(changed) == 2 else dict(*changed)
        before = dict(vars(self))
        vars(self).update(changes | options)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)
