"""Objects that a checkpoint saves by their `state_dict`."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ...names.missing import missing_in


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict` and `load_state_dict`: `save` and `load` take it as a value of
    the dict.

    >>> from jaxgrad.distributed.checkpoint.stateful import Stateful
    >>> isinstance(jaxgrad.nn.Linear(1, 1), Stateful)
    True
    """

    def state_dict(self) -> dict[str, Any]:
        """What to save: nested dicts and lists of tensors, numbers and strings."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...


__getattr__ = missing_in(__name__)
