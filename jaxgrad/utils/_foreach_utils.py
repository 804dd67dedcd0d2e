"""Lists of tensors by their kind, as torch.utils._foreach_utils: optimizers of other packages
group parameters by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.device import device as Device
from ..core.dtypes import dtype as DType
from ..names.missing import missing_in
from ..tape.tensor import Tensor


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[Device, DType], tuple[list[list[Tensor | None]], list[int]]]:
    """Split lists of one length by device and dtype of the tensors in the first.

    The result has the part of each list by device and dtype, and the positions of these parts in
    the lists, none without `with_indices`. Raises RuntimeError for lists of different lengths.

    >>> one, two, three = jaxgrad.ones(1), jaxgrad.ones(1, dtype=jaxgrad.int64), jaxgrad.ones(2)
    >>> from jaxgrad.utils._foreach_utils import _group_tensors_by_device_and_dtype
    >>> groups = _group_tensors_by_device_and_dtype([[one, two, three]], with_indices=True)
    >>> [positions for _, positions in groups.values()]
    [[0, 2], [1]]
    """
    lengths = [len(tensors) for tensors in tensorlistlist]
    if len({*lengths}) > 1:
        raise RuntimeError(
            f"_group_tensors_by_device_and_dtype: the lists must have one length, got {lengths}"
        )
    positions: dict = {}
    for position, tensor in enumerate(tensorlistlist[0]):
        positions.setdefault((tensor.device, tensor.dtype), []).append(position)
    return {
        kind: ([[tensors[i] for i in places] for tensors in tensorlistlist], places * with_indices)
        for kind, places in positions.items()
    }


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The types of devices on which `torch._foreach_` functions run: those that JAX may have.

    >>> "cpu" in jaxgrad.utils._foreach_utils._get_foreach_kernels_supported_devices()
    True
    """
    return ["cpu", "cuda", "tpu"]


def _device_has_foreach_support(device: Device) -> bool:
    """Return True: `torch._foreach_` functions call the operators one by one.

    >>> jaxgrad.utils._foreach_utils._device_has_foreach_support(jaxgrad.device("cpu"))
    True
    """
    return True


def _has_foreach_support(tensors: Sequence[Tensor], device: Device) -> bool:
    """Return whether all tensors are plain tensors or parameters.

    >>> jaxgrad.utils._foreach_utils._has_foreach_support([jaxgrad.ones(1)], "cpu")
    True
    """
    return all(isinstance(tensor, Tensor) for tensor in tensors)


__getattr__ = missing_in(__name__)
