"""torch.distributed.tensor under its earlier name."""

from __future__ import annotations

from ..names.not_provided import names_of
from .device_mesh import DeviceMesh as DeviceMesh
from .device_mesh import init_device_mesh as init_device_mesh
from .tensor import DTensor as DTensor
from .tensor import Partial as Partial
from .tensor import Placement as Placement
from .tensor import Replicate as Replicate
from .tensor import Shard as Shard
from .tensor import distribute_module as distribute_module
from .tensor import distribute_tensor as distribute_tensor
from .tensor import empty as empty
from .tensor import full as full
from .tensor import ones as ones
from .tensor import rand as rand
from .tensor import randn as randn
from .tensor import zeros as zeros

__getattr__, __dir__ = names_of(__name__)
