"""The planner of `load`: which tensors a load may leave out."""

from __future__ import annotations

from ...names.not_provided import names_of


class DefaultLoadPlanner:
    """Tells `load` what to do with keys that the checkpoint lacks.

    allow_partial_load: leave them as they are, instead of an error. The other arguments are taken
    and not used.

    >>> from jaxgrad.distributed.checkpoint import DefaultLoadPlanner
    >>> DefaultLoadPlanner(allow_partial_load=True).allow_partial_load
    True
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ):
        self.allow_partial_load = allow_partial_load


__getattr__, __dir__ = names_of(__name__)
