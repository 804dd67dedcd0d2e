"""Tensors on meshes of devices, as torch.distributed.tensor."""

from __future__ import annotations

from ...names.not_provided import names_of
from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from ._distribute import distribute_module as distribute_module
from ._distribute import distribute_tensor as distribute_tensor
from ._distribute import empty as empty
from ._distribute import full as full
from ._distribute import ones as ones
from ._distribute import rand as rand
from ._distribute import randn as randn
from ._distribute import zeros as zeros
from ._dtensor import DTensor as DTensor
from ._dtensor import install
from .placement_types import Partial as Partial
from .placement_types import Placement as Placement
from .placement_types import Replicate as Replicate
from .placement_types import Shard as Shard

install()

__getattr__, __dir__ = names_of(__name__)
