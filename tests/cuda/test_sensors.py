"""What NVIDIA's library tells of a GPU, by a library that stands for it."""

import sys
from types import SimpleNamespace

import pytest

import jaxgrad as torch
from jaxgrad.cuda import _sensors

NAMES = "utilization", "memory_usage", "device_memory_used", "temperature", "power_draw"


def test_without_the_library():
    """As in PyTorch."""
    for name in (*NAMES, "clock_rate"):
        with pytest.raises(ModuleNotFoundError, match="nvidia-ml-py does not seem to be installed"):
            getattr(torch.cuda, name)()
    text = "pynvml module not found, please install nvidia-ml-py"
    assert torch.cuda.list_gpu_processes() == text


def test_gpus_that_are_visible(monkeypatch):
    """The second of the visible ones is number 5 of the machine."""
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetUtilizationRates=lambda gpu: SimpleNamespace(gpu=gpu + 90, memory=gpu),
        nvmlDeviceGetMemoryInfo=lambda gpu: SimpleNamespace(used=gpu * 2**20),
        NVML_TEMPERATURE_GPU=0,
        NVML_CLOCK_SM=1,
        nvmlDeviceGetTemperature=lambda gpu, sensor: 40 + gpu + sensor,
        nvmlDeviceGetClockInfo=lambda gpu, clock: 1000 + gpu + clock,
        nvmlDeviceGetPowerUsage=lambda gpu: 1000 * gpu,
        nvmlDeviceGetComputeRunningProcesses=lambda gpu: [
            SimpleNamespace(pid=7, usedGpuMemory=3 * 2**20)
        ],
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    monkeypatch.setattr(
        _sensors, "jax_device", lambda place: SimpleNamespace(local_hardware_id=place.index)
    )
    cuda = torch.cuda
    assert [getattr(cuda, name)("cuda:1") for name in NAMES] == [95, 5, 5 * 2**20, 45, 5000]
    assert cuda.utilization() == 93 and cuda.clock_rate(1) == 1006
    lines = ["GPU:1", "process          7 uses        3.000 MB GPU memory"]
    assert cuda.list_gpu_processes(1).splitlines() == lines
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert cuda.utilization(1) == 91
