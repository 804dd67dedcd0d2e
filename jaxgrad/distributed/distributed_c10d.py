"""The names of torch.distributed.distributed_c10d that programs import from there."""

from __future__ import annotations

from ..names.not_provided import names_of
from .collectives import *  # noqa: F403
from .object_collectives import all_gather_object as all_gather_object
from .object_collectives import broadcast_object_list as broadcast_object_list
from .object_collectives import gather_object as gather_object
from .object_collectives import scatter_object_list as scatter_object_list
from .process_group import *  # noqa: F403
from .process_group import _pg_map as _pg_map
from .process_group import default_group

_get_default_group = default_group

__getattr__, __dir__ = names_of(__name__)
