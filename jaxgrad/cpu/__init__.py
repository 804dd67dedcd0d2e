"""The CPU, as torch.cpu.

>>> jaxgrad.cpu.is_available(), jaxgrad.cpu.current_device()
(True, 'cpu')
"""

from __future__ import annotations

import importlib
import os
import platform

from ..backends.cpu import processor as _processor
from ..core.device import device, devices_of, wait_for
from ..frontend.stream import Event as _Event
from ..frontend.stream import Stream as _Stream
from ..names.missing import missing_in


def is_available() -> bool:
    """Return True.

    >>> jaxgrad.cpu.is_available()
    True
    """
    return True


is_initialized = is_available


def device_count() -> int:
    """Return how many CPU devices JAX has, one unless XLA was told to make more.

    >>> jaxgrad.cpu.device_count() >= 1
    True
    """
    return len(devices_of("cpu"))


def current_device() -> str:
    """Return "cpu".

    >>> jaxgrad.cpu.current_device()
    'cpu'
    """
    return "cpu"


def set_device(device):
    """Do nothing: the CPU is one device.

    >>> jaxgrad.cpu.set_device("cpu")
    """


def synchronize(device_=None):
    """Wait until all work that has been begun on the CPU is done.

    >>> y = jaxgrad.ones(3, device="cpu") * 2
    >>> jaxgrad.cpu.synchronize()  # now it has been computed
    """
    wait_for(device("cpu"))


class Stream(_Stream):
    """A block that changes nothing: XLA orders the work of the CPU.

    >>> with jaxgrad.cpu.Stream() as stream:
    ...     y = jaxgrad.ones(3, device="cpu") * 2
    >>> stream.query()
    True
    """

    def __init__(self, priority: int = -1):
        super().__init__("cpu", priority)


class Event(_Event):
    """A moment at which all work of the CPU was done.

    >>> first, second = jaxgrad.cpu.Event(), jaxgrad.cpu.Event()
    >>> first.record(), second.record()
    (None, None)
    >>> first.elapsed_time(second) >= 0
    True
    """

    def __init__(self, enable_timing: bool = False):
        super().__init__("cpu")


def stream(stream: Stream | None) -> Stream:
    """Return a block that changes nothing: the stream itself, a new one for None.

    >>> with jaxgrad.cpu.stream(jaxgrad.cpu.Stream()):
    ...     y = jaxgrad.ones(3, device="cpu") * 2
    """
    return Stream() if stream is None else stream


StreamContext = stream


def current_stream(device=None) -> Stream:
    """Return a stream of the CPU.

    >>> jaxgrad.cpu.current_stream().device
    device(type='cpu')
    """
    return Stream()


# PyTorch's names of what processors can do that differ from those of Linux
_NAMES = {"sse3": "pni", "fma3": "fma", "lzcnt": "abm", "bmi": "bmi1", "sha": "sha_ni"}
_NAMES |= {f"avx512_{name}": f"avx512{name}" for name in ("f", "bw", "dq", "vl", "cd")}
_NAMES |= {f"avx512_{name}": f"avx512{name}" for name in ("ifma", "vbmi")}
_FEATURES = ("sse", "sse2", "sse3", "ssse3", "sse4_1", "sse4_2", "sse4a", "avx", "avx2", "f16c")
_FEATURES += ("fma3", "fma4", "lzcnt", "popcnt", "bmi", "bmi2", "aes", "sha", "clflush", "clwb")
_FEATURES += ("clflushopt", "avx512_f", "avx512_bw", "avx512_dq", "avx512_vl", "avx512_cd")
_FEATURES += ("avx512_ifma", "avx512_vbmi", "avx512_vbmi2", "avx512_bitalg", "avx512_vnni")
_FEATURES += ("avx512_bf16", "avx512_fp16", "avx512_vpopcntdq", "avx512_vp2intersect")
_FEATURES += ("avx512_4vnniw", "avx512_4fmaps", "avx_vnni", "avx_vnni_int8", "avx_vnni_int16")
_FEATURES += ("avx_ne_convert", "avx10_1", "avx10_2")
_FEATURES += ("amx_bf16", "amx_tile", "amx_int8", "amx_fp16")


def get_capabilities() -> dict[str, bool | int | str]:
    """Return what the processor can do, by PyTorch's names, with its architecture and its number of
    logical cores; what the system does not tell is not there.

    >>> jaxgrad.cpu.get_capabilities()["num_logical_cores"] >= 1
    True
    """
    known = _processor()
    result: dict = {"architecture": platform.machine(), "num_logical_cores": os.cpu_count() or 1}
    if "model name" in known:
        result["cpu_name"] = known["model name"]
    features = set(known.get("flags", "").split())
    if features:
        result |= {name: _NAMES.get(name, name) in features for name in _FEATURES}
    return result


def _is_avx2_supported() -> bool:
    """Whether the processor has AVX2."""
    return bool(get_capabilities().get("avx2"))


def _is_avx512_supported() -> bool:
    """Whether the processor has AVX-512."""
    return bool(get_capabilities().get("avx512_f"))


def _is_amx_fp16_supported() -> bool:
    """Whether the processor multiplies tiles of float16."""
    return bool(get_capabilities().get("amx_fp16"))


_missing = missing_in(__name__)


def __getattr__(name):
    # few programs use it
    return importlib.import_module(f"{__name__}.amp") if name == "amp" else _missing(name)
