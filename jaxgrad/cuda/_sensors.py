"""What NVIDIA's management library tells of a GPU: its load, heat and power. It needs the package
nvidia-ml-py.
"""

from __future__ import annotations

import importlib
import os

from ..core.device import device as Device
from ..core.device import jax_device
from ._utils import _get_device_index


def utilization(device=None) -> int:
    """Return the percentage of time in which kernels ran on a GPU.

    Raises ModuleNotFoundError without the package nvidia-ml-py, as do all functions that ask
    NVIDIA's management library; RuntimeError if the GPU does not exist.

    >>> try:
    ...     percent = jaxgrad.cuda.utilization()
    ... except (ModuleNotFoundError, RuntimeError):
    ...     percent = 0
    """
    library, gpu = _gpu(device)
    return library.nvmlDeviceGetUtilizationRates(gpu).gpu


def memory_usage(device=None) -> int:
    """Return the percentage of time in which the memory of a GPU was read or written; see
    `utilization`.
    """
    library, gpu = _gpu(device)
    return library.nvmlDeviceGetUtilizationRates(gpu).memory


def device_memory_used(device=None) -> int:
    """Return the bytes in use on a GPU, by all processes; see `utilization`."""
    library, gpu = _gpu(device)
    return library.nvmlDeviceGetMemoryInfo(gpu).used


def temperature(device=None) -> int:
    """Return the temperature of a GPU in degrees Celsius; see `utilization`."""
    library, gpu = _gpu(device)
    return library.nvmlDeviceGetTemperature(gpu, library.NVML_TEMPERATURE_GPU)


def power_draw(device=None) -> int:
    """Return the power that a GPU takes, in milliwatts; see `utilization`."""
    library, gpu = _gpu(device)
    return library.nvmlDeviceGetPowerUsage(gpu)


def clock_rate(device=None) -> int:
    """Return the clock rate of a GPU's processors in megahertz; see `utilization`."""
    library, gpu = _gpu(device)
    return library.nvmlDeviceGetClockInfo(gpu, library.NVML_CLOCK_SM)


def list_gpu_processes(device=None) -> str:
    """Return a text about the processes that use a GPU; see `utilization`.

    Without the package nvidia-ml-py the text says so.

    >>> try:
    ...     text = jaxgrad.cuda.list_gpu_processes()
    ... except RuntimeError:
    ...     text = ""
    """
    try:
        library, gpu = _gpu(device)
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    lines = [f"GPU:{_get_device_index(device, optional=True)}"]
    processes = library.nvmlDeviceGetComputeRunningProcesses(gpu)
    for process in processes:
        mebibytes = process.usedGpuMemory / 2**20
        lines.append(f"process {process.pid:>10d} uses {mebibytes:>12.3f} MB GPU memory")
    return "\n".join(lines if processes else [*lines, "no processes are running"])


def _gpu(device):
    """The library, and what it calls a GPU of JAX."""
    try:
        library = importlib.import_module("pynvml")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "nvidia-ml-py does not seem to be installed or it can't be imported. "
            "python -m pip install nvidia-ml-py"
        ) from error
    gpu = jax_device(Device("cuda", _get_device_index(device, optional=True)))
    library.nvmlInit()
    number = gpu.local_hardware_id
    return library, library.nvmlDeviceGetHandleByIndex(_visible(number))


def _visible(number: int) -> int:
    """The number of a GPU among all of the machine."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    numbers = [int(part) for part in listed if part.strip().isdigit()]
    return numbers[number] if number < len(numbers) else number
