"""The settings of `jaxgrad.save` and `jaxgrad.load`, as torch.utils.serialization.config.

>>> from jaxgrad.utils.serialization import config
>>> with config.patch({"load.mmap": True}):
...     config.load.mmap
True
>>> config.load.mmap
False
"""

from __future__ import annotations

import contextlib

from ...names.missing import missing_in
from ...serialization._options import load as load
from ...serialization._options import save as save

_GROUPS = {"load": load, "save": save}


def _place(name: str):
    """The group of a setting, and its name there."""
    group, _, setting = name.partition(".")
    if not hasattr(_GROUPS.get(group), setting or " "):
        raise AttributeError(f"torch.utils.serialization.config.{name} does not exist")
    return _GROUPS[group], setting


@contextlib.contextmanager
def patch(changes: str | dict | None = None, value=None, **settings):
    """Change settings in a `with` block or in the calls of a function that this decorates.

    changes: a dict of new values by name, or a name with the new `value`. Raises AttributeError for
    a setting that does not exist.
    """
    if isinstance(changes, str):
        changes = {changes: value}
    changes = {_place(name): new for name, new in {**(changes or {}), **settings}.items()}
    before = {place: getattr(*place) for place in changes}
    try:
        for place, new in changes.items():
            setattr(*place, new)
        yield
    finally:
        for place, old in before.items():
            setattr(*place, old)


__getattr__ = missing_in(__name__)
