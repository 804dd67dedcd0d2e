"""A tensor's way to another dtype or device: `to`, `type_as`, `cpu`, `cuda`. It stays in the
graph."""

from __future__ import annotations

import functools

import jax

from .. import ops
from ..core import device as devices
from ..core import dtypes, executor
from ..core.aval import IMMEDIATE, Aval
from ..core.device import as_device
from ..core.program import Program, Reverse
from ..core.tracebacks import api_boundary
from ..tape.record import apply
from ..tape.tensor import Tensor
from .array_creation import placed


class Move(Program):
    """A tensor copied from one device of JAX's to another."""

    name = "ToCopy"
    is_linear = True

    def __init__(self, aval: Aval, source: jax.Device, target: jax.Device):
        self.inputs = self.outputs = (aval,)
        self.mode = aval.mode
        self.source, self.target = source, target
        executor.adopt(self, functools.partial(_put, target))

    def function(self, array):
        return (array,)

    def make_reverse(self, mask):
        return MoveBack(self, mask)


class MoveBack(Reverse):
    """A gradient copied back to where its tensor came from."""

    saved_inputs = saved_outputs = ()
    is_linear = True

    def __init__(self, program, mask):
        super().__init__(program, mask)
        self.source, self.target = program.target, program.source
        executor.adopt(self, functools.partial(_put, self.target))

    def function(self, array):
        return (array,)

    def make_reverse(self, mask):
        return MoveBack(self, mask)


def _put(device, array):
    with jax.enable_x64(True):
        return jax.device_put(array, device, may_alias=False)


@functools.lru_cache(maxsize=4096)
def _move(aval, source, target):
    return Move(aval, source, target)


@api_boundary
def to(self, *args, **kwargs) -> Tensor:
    """The tensor in another dtype or on another device; itself where it is so already, unless
    `copy`.

    `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`, each with `non_blocking` (without
    effect: JAX never blocks) and `copy` after them, or by keyword. Gradients flow back through it,
    to the device they belong to. Inside a trace the device is the program's, and stays. Raises
    RuntimeError for a device that there is not.

    >>> jaxgrad.tensor([1.5, 2.5]).to(jaxgrad.int64)
    tensor([1, 2])
    """
    device, dtype, copy = _target(args, kwargs)
    result = self
    if dtype is not None and dtype is not self.dtype:
        result = ops.to(self, dtype)
    target = placed(device)
    if result._aval.mode != IMMEDIATE:  # a concrete one too becomes traced in a trace
        return result
    source = next(iter(result._array.devices()))
    if (target is None or target == source) and (not copy or result is not self):
        return result
    return apply(_move(result._aval, source, target or source), [result])


def _target(args, kwargs):
    """Device, dtype and copy of a call of `to`; None for what is not asked for."""
    unknown = kwargs.keys() - {"device", "dtype", "other", "non_blocking", "copy", "memory_format"}
    if unknown or len(args) > 4:
        raise _invalid(args, kwargs)
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    other, flags = kwargs.get("other"), args
    if args and isinstance(args[0], Tensor):
        other, flags = args[0], args[1:]
    elif args and not _is_device(args[0]):
        dtype, flags = args[0], args[1:]
    elif args:
        device, dtype, flags = args[0], (*args, dtype)[1], args[2:]
    if len(flags) > 2 or not all(isinstance(flag, bool) for flag in flags):
        raise _invalid(args, kwargs)
    copy = kwargs.get("copy", False) or (len(flags) == 2 and flags[1])
    if other is not None:
        return other.device, other.dtype, copy
    try:
        return device, None if dtype is None else dtypes.as_dtype(dtype), copy
    except TypeError:
        raise _invalid(args, kwargs) from None


def _is_device(given) -> bool:
    return given is None or (
        isinstance(given, str | int | devices.device) and not isinstance(given, bool)
    )


def _invalid(args, kwargs):
    got = [type(each).__name__ for each in args]
    got += [f"{name}={type(each).__name__}" for name, each in kwargs.items()]
    return TypeError(
        f"to() received an invalid combination of arguments - got ({', '.join(got)}), "
        "but expected (dtype), (device), (device, dtype) or (other), "
        "with non_blocking and copy after them"
    )


class Methods:
    """Methods of `Tensor` that lead to another dtype or device."""

    to = to

    def type_as(self, other: Tensor) -> Tensor:
        """The tensor in the dtype and on the device of another."""
        return self.to(other)

    def type(self, dtype=None):
        """The tensor in a dtype, or without one the name of its own as PyTorch's old classes have
        it.

        >>> jaxgrad.ones(1).type()
        'torch.FloatTensor'
        """
        if dtype is not None:
            return self.to(dtypes.as_dtype(dtype))
        place = "" if self.is_cpu else f"{self.device.type}."
        return f"torch.{place}{self.dtype.scalar_type}Tensor"

    def cpu(self) -> Tensor:
        """The tensor on the CPU."""
        return self.to("cpu")

    def cuda(self, device=None) -> Tensor:
        """The tensor on a GPU, the first unless another is named. Raises RuntimeError where there
        is none."""
        return self.to("cuda" if device is None else as_device(device))

    @property
    def is_cpu(self) -> bool:
        """Whether the tensor is on a CPU."""
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Whether the tensor is on a GPU."""
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """The number of the tensor's GPU; -1 on the CPU."""
        return -1 if self.is_cpu else self.device.index

    @property
    def layout(self) -> devices.layout:
        return devices.strided
