"""Tensors of other libraries by the DLPack protocol, as torch.utils.dlpack."""

from __future__ import annotations

import enum

from ..frontend.tensor_data import from_dlpack as from_dlpack
from ..names.missing import missing_in
from ..tape.tensor import Tensor


class DLDeviceType(enum.IntEnum):
    """The numbers of kinds of devices in the DLPack protocol.

    >>> from jaxgrad.utils.dlpack import DLDeviceType
    >>> DLDeviceType(jaxgrad.ones(2).__dlpack_device__()[0]).name
    'kDLCPU'
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor):
    """Return a capsule of the memory of a tensor, which the reader must not write to.

    Raises BufferError where JAX cannot share it, such as for a tensor that requires grad.

    >>> jaxgrad.from_dlpack(jaxgrad.ones(2))
    tensor([1., 1.])
    """
    return tensor.__dlpack__()


__getattr__ = missing_in(__name__)
