"""Processes and devices that train together, as torch.distributed, on JAX's engine.

>>> jaxgrad.distributed.is_available()
True
"""

from __future__ import annotations

import importlib

from ..core.world import DistBackendError as DistBackendError
from ..core.world import DistError as DistError
from ..core.world import DistNetworkError as DistNetworkError
from ..core.world import DistStoreError as DistStoreError
from ..names.not_provided import names_of
from .backends import Backend as Backend
from .collectives import *  # noqa: F403
from .collectives import ReduceOp as ReduceOp
from .object_collectives import all_gather_object as all_gather_object
from .object_collectives import broadcast_object_list as broadcast_object_list
from .object_collectives import gather_object as gather_object
from .object_collectives import scatter_object_list as scatter_object_list
from .process_group import DebugLevel as DebugLevel
from .process_group import GroupMember as GroupMember
from .process_group import ProcessGroup as ProcessGroup
from .process_group import destroy_process_group as destroy_process_group
from .process_group import get_backend as get_backend
from .process_group import get_debug_level as get_debug_level
from .process_group import get_global_rank as get_global_rank
from .process_group import get_group_rank as get_group_rank
from .process_group import get_node_local_rank as get_node_local_rank
from .process_group import get_process_group_ranks as get_process_group_ranks
from .process_group import get_rank as get_rank
from .process_group import get_world_size as get_world_size
from .process_group import group as group
from .process_group import init_process_group as init_process_group
from .process_group import is_available as is_available
from .process_group import is_backend_available as is_backend_available
from .process_group import is_gloo_available as is_gloo_available
from .process_group import is_initialized as is_initialized
from .process_group import is_mpi_available as is_mpi_available
from .process_group import is_nccl_available as is_nccl_available
from .process_group import is_torchelastic_launched as is_torchelastic_launched
from .process_group import is_ucc_available as is_ucc_available
from .process_group import is_xccl_available as is_xccl_available
from .process_group import new_group as new_group
from .process_group import new_subgroups as new_subgroups
from .process_group import new_subgroups_by_enumeration as new_subgroups_by_enumeration
from .process_group import set_debug_level as set_debug_level
from .process_group import set_debug_level_from_env as set_debug_level_from_env
from .process_group import split_group as split_group

reduce_op = ReduceOp.RedOpType = ReduceOp  # the class of its members

_find, __dir__ = names_of(__name__)


def __getattr__(name):
    if name in ("DeviceMesh", "init_device_mesh"):
        return getattr(importlib.import_module(f"{__name__}.device_mesh"), name)
    return _find(name)
