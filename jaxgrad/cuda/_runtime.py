"""The functions of CUDA's runtime that programs call by torch.cuda.cudart()."""

from __future__ import annotations

from ..core.device import device, jax_device, wait_for
from . import profiler


class CudaError(RuntimeError):
    """A function of CUDA's runtime has failed. code: its number.

    >>> str(jaxgrad.cuda.CudaError(2))
    'CUDA error (2)'
    """

    def __init__(self, code: int):
        super().__init__(f"CUDA error ({code})")


def cudart() -> Runtime:
    """Return functions of CUDA's runtime. Raises RuntimeError if there is no GPU.

    >>> if jaxgrad.cuda.is_available():
    ...     code = jaxgrad.cuda.cudart().cudaProfilerStart()  # 0
    """
    jax_device(device("cuda"))
    return Runtime()


def check_error(res: int) -> None:
    """Raise CudaError for a code other than 0, that of success.

    >>> jaxgrad.cuda.check_error(0)
    """
    if res != 0:
        raise CudaError(res)


class Runtime:
    """CUDA's runtime, which JAX calls for itself.

    cudaProfilerStart and cudaProfilerStop do nothing, as `jaxgrad.cuda.profiler`; cudaMemGetInfo
    is `mem_get_info`; cudaDeviceSynchronize waits. Other functions raise AttributeError.
    """

    cudaProfilerStart = staticmethod(profiler.start)
    cudaProfilerStop = staticmethod(profiler.stop)

    def cudaMemGetInfo(self, index: int) -> tuple[int, int]:
        """Return the free and the total bytes of a GPU; zeros where JAX counts nothing."""
        stats = jax_device(device("cuda", index)).memory_stats() or {}
        limit = stats.get("bytes_limit", 0)
        return limit - stats.get("bytes_in_use", 0), limit

    def cudaDeviceSynchronize(self) -> int:
        """Wait until all work of the current GPU is done."""
        wait_for(device("cuda"))
        return 0
