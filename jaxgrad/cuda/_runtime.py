"""The functions of CUDA's runtime that programs call by torch.cuda.cudart()."""

from __future__ import annotations

from . import init, mem_get_info, profiler, synchronize


class CudaError(RuntimeError):
    """A function of CUDA's runtime has failed. code: its number."""

    def __init__(self, code: int):
        super().__init__(f"CUDA error ({code})")


def cudart() -> Runtime:
    """Return functions of CUDA's runtime. Raises RuntimeError if there is no GPU.

    >>> if jaxgrad.cuda.is_available():
    ...     code = jaxgrad.cuda.cudart().cudaProfilerStart()  # 0
    """
    init()
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

    def cudaMemGetInfo(self, device: int) -> tuple[int, int]:
        """Return the free and the total bytes of a GPU."""
        return mem_get_info(device)

    def cudaDeviceSynchronize(self) -> int:
        """Wait until all work of the current GPU is done."""
        synchronize()
        return 0
