"""Conversion to another dtype or device: `to`, `type_as`, `cpu`, `cuda`. Gradients flow through
it."""

from __future__ import annotations

import functools

import jax

from .. import ops
from ..core import device as devices
from ..core import dtypes, executor, kernel, named_dtypes, strides
from ..core.aval import META, Aval, is_concrete, with_mode, with_strides
from ..core.device import as_device, chosen_place, is_meta, places_of
from ..core.program import Program, Reverse
from ..core.pytorch_tensors import is_of_pytorch, type_name
from ..late import LateModule
from ..tape import dual
from ..tape.record import apply
from ..tape.sparse_tensor import by_layout
from ..tape.tensor import Tensor, abstract_value, concrete, current, is_on_meta
from ..tape.torch_function import api_boundary
from .array_creation import device_of

legacy_types = LateModule("jaxgrad.frontend.legacy_types")


def _dense(aval: Aval) -> Aval:
    """The abstract value of a copy, without gaps in memory."""
    if aval.strides is None:
        return aval
    return with_strides(aval, strides.like(aval.shape, aval.strides))


class Move(Program):
    """The copy of a tensor from one device of JAX to another."""

    name = "ToCopy"
    is_linear = True

    def __init__(self, aval: Aval, source: jax.Device, target: jax.Device):
        self.inputs, self.outputs = (aval,), (_dense(aval),)
        self.mode = aval.mode
        self.source, self.target = source, target
        self.kernel = kernel.of(self, functools.partial(_put, target))

    def function(self, array):
        return (array,)

    def make_reverse(self, mask):
        return MoveBack(self, mask)


class MoveBack(Reverse):
    """The copy of a gradient back to the device of its tensor."""

    saved_inputs = saved_outputs = ()
    is_linear = True

    def __init__(self, program, mask):
        super().__init__(program, mask)
        self.source, self.target = program.target, program.source
        self.kernel = kernel.of(self, functools.partial(_put, self.target))

    def function(self, array):
        return (array,)

    def make_reverse(self, mask):
        return MoveBack(self, mask)


class ToMeta(Program):
    """The tensor on the device meta that has the shape and dtype of another. It has no gradient:
    the one that arrives has no numbers.
    """

    name = "ToCopy"
    is_linear = True

    def __init__(self, aval: Aval):
        self.inputs, self.mode = (aval,), META
        self.outputs = (with_mode(_dense(aval), META),)

    def function(self, array):
        return (array,)


def _put(device, array):
    with jax.enable_x64(True):
        return jax.device_put(array, device, may_alias=False)


@functools.lru_cache(maxsize=4096)
def _move(aval, source, target):
    return Move(aval, source, target)


@functools.lru_cache(maxsize=4096)
def _to_meta(aval):
    return executor.prepare(ToMeta(aval))


@api_boundary
def to(self, *args, **kwargs) -> Tensor:
    """Convert the tensor to another dtype or device; return the tensor itself if both fit already.

    Forms: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)` with a tensor `other`; then
    `non_blocking` and `copy`, by position or by keyword.
    non_blocking: without effect, since JAX never blocks. copy: copy even if both fit.
    memory_format: that of the result, the tensor's own by default.

    The shape stays. Gradients flow back in the dtype and to the device of this tensor. Inside a
    trace the device does not change, since a program runs on one device. On the device "meta" the
    result has no data, and its gradient cannot flow back.

    Raises TypeError for other forms, RuntimeError for a device that does not exist,
    NotImplementedError for a tensor on "meta", which has no data to copy to another device.

    >>> jaxgrad.tensor([1.5, 2.5]).to(jaxgrad.int64)
    tensor([1, 2])
    """
    memory_format = kwargs.get("memory_format")
    if memory_format in (None, devices.preserve_format):
        return _moved(self, *_target(args, kwargs))
    target = _target(args, kwargs)
    memory_format.check("to", self.shape)
    result = _moved(self, *target)
    if result is not self:
        dual.show(result, memory_format.strides(self.shape))
    elif memory_format is not suggested_format(self):
        return self.clone(memory_format=memory_format)
    return result


def _moved(self, device, dtype, copy):
    # read before its mode is asked: reading a tensor in a trace may capture it
    result = current(self)
    goes_to_meta = device is not None and is_meta(device)
    if is_on_meta(result) and device is not None and not goes_to_meta:
        concrete(result, f"to({str(as_device(device))!r})")  # raises
    if goes_to_meta and not is_on_meta(result):
        result = apply(_to_meta(abstract_value(result)), [result])
    if dtype is not None and dtype is not self.dtype:
        result = ops.to(result, dtype)
    target = None if goes_to_meta else device_of(device)
    if not is_concrete(abstract_value(result).mode):
        return ops.clone(self) if copy and result is self else result
    places = places_of(result._value)
    source = next(iter(places))
    if len(places) > 1 and (target is None or target.platform == source.platform):
        # on several devices already, where a copy to one of them would lose how it is sharded
        return ops.clone(self) if copy and result is self else result
    is_there = target is None or (target == source and _is_settled(result._value))
    if is_there and (not copy or result is not self):
        return result
    return apply(_move(abstract_value(result), source, target or source), [result])


def _is_settled(value) -> bool:
    """Whether an array stays where it is. One that was not moved to the accelerator that is JAX's
    default device may go along with others; one that a loader put on another accelerator is there.
    """
    if not devices.may_differ() or chosen_place(value) is not None:
        return True
    place = frozenset(places_of(value))
    return devices.is_cpu(place) or place != {devices.jax_device(devices.device_of_jax())}


def suggested_format(tensor: Tensor) -> devices.memory_format:
    """The memory format that the strides of a tensor suggest, gaps allowed."""
    shown = abstract_value(tensor)
    if shown.strides is None or not strides.suggests_channels_last(shown.shape, shown.strides):
        return devices.contiguous_format
    return devices.channels_last if tensor.ndim == 4 else devices.channels_last_3d


def _target(args, kwargs):
    """Device, dtype and copy of a call of `to`; None for an argument that is not given."""
    unknown = kwargs.keys() - {"device", "dtype", "other", "non_blocking", "copy", "memory_format"}
    if unknown or len(args) > 4 or any(map(is_of_pytorch, args)):
        raise _invalid(args, kwargs)
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    _check_format(kwargs.get("memory_format"), args, kwargs)
    other, flags = kwargs.get("other"), args
    if args and isinstance(args[0], Tensor):
        other, flags = args[0], args[1:]
    elif args and not _is_device(args[0]):
        dtype, flags = args[0], args[1:]
    elif args:
        device, dtype, flags = args[0], (*args, dtype)[1], args[2:]
    if len(flags) > 2 or not all(isinstance(flag, bool) for flag in flags):
        raise _invalid(args, kwargs)
    named = (kwargs.get("copy", False), kwargs.get("non_blocking", False))
    if not all(isinstance(flag, bool) for flag in named):
        raise _invalid(args, kwargs)
    copy = named[0] or (len(flags) == 2 and flags[1])
    if other is not None:
        return other.device, other.dtype, copy
    try:
        return device, None if dtype is None else dtypes.as_dtype(dtype), copy
    except TypeError:
        raise _invalid(args, kwargs) from None


def _check_format(memory_format, args, kwargs):
    if not (memory_format is None or isinstance(memory_format, devices.memory_format)):
        raise _invalid(args, kwargs)


def _is_device(value) -> bool:
    return value is None or (
        isinstance(value, str | int | devices.device | jax.Device) and not isinstance(value, bool)
    )


def _invalid(args, kwargs):
    got = [type_name(argument) for argument in args]
    got += [f"{name}={type_name(argument)}" for name, argument in kwargs.items()]
    return TypeError(
        f"to() received an invalid combination of arguments - got ({', '.join(got)}), "
        "but expected (dtype), (device), (device, dtype) or (other), "
        "with non_blocking and copy after them"
    )


def _never(self) -> bool:
    """False: there are no such tensors."""
    return False


class ConversionMethods:
    """Methods of `Tensor` about dtypes and devices."""

    to = to

    @api_boundary
    def type_as(self, other: Tensor) -> Tensor:
        """Convert the tensor to the dtype and device of another; see `to`.

        >>> jaxgrad.ones(1).type_as(jaxgrad.arange(2))
        tensor([1])
        """
        if not isinstance(other, Tensor):
            kind = type_name(other)
            raise TypeError(f"type_as(): argument 'other' must be Tensor, not {kind}")
        return self.to(other)

    @by_layout
    def type(self, dtype=None, non_blocking: bool = False):
        """Convert the tensor to a dtype; without one, return the name of its class in old PyTorch.

        dtype: a dtype, or a class or name of early PyTorch, "torch.DoubleTensor"; `Tensor` is the
        class of the default dtype. non_blocking: not used. Raises TypeError for anything else,
        ValueError for another name.

        >>> jaxgrad.ones(1).type(), jaxgrad.ones(1).type("torch.DoubleTensor")
        ('torch.FloatTensor', tensor([1.], dtype=torch.float64))
        """
        if isinstance(dtype, legacy_types.TensorType):
            return self.to(dtype.device_type, dtype.dtype)
        if dtype is Tensor:
            return self.to(dtypes.get_default_dtype())
        if isinstance(dtype, str):
            return self.to(*legacy_types.place_and_dtype_of(dtype))
        if dtype is not None:
            return self.to(dtypes.as_dtype(dtype))
        place = "" if self.is_cpu else f"{self.device.type}."
        return f"torch.{place}{self.dtype.scalar_type}Tensor"

    @api_boundary
    def cpu(self, memory_format=devices.preserve_format) -> Tensor:
        """Copy the tensor to the CPU; return the tensor itself if it is there.

        memory_format: that of a copy.

        >>> jaxgrad.ones(1).cpu()
        tensor([1.])
        """
        return self.to("cpu", memory_format=memory_format)

    @api_boundary
    def cuda(
        self, device=None, non_blocking=False, memory_format=devices.preserve_format
    ) -> Tensor:
        """Copy the tensor to a GPU; return the tensor itself if it is there.

        device: a device, the current GPU if it is None. non_blocking: no effect, since JAX never
        waits for a copy. memory_format: that of a copy. Raises RuntimeError for a device that does
        not exist.

        >>> x = jaxgrad.ones(2)
        >>> y = x.cuda() if jaxgrad.cuda.is_available() else x
        >>> y.is_cuda == jaxgrad.cuda.is_available()
        True
        """
        place = as_device("cuda" if device is None else device)
        if place.type != "cuda":
            raise RuntimeError(f"Invalid device, must be cuda device, but cuda() got {place}")
        return self.to(place, memory_format=memory_format)

    @property
    def is_cpu(self) -> bool:
        """Whether the tensor is on a CPU.

        >>> jaxgrad.ones(1).cpu().is_cpu
        True
        """
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Whether the tensor is on a GPU.

        >>> jaxgrad.ones(1).cpu().is_cuda
        False
        """
        return self.device.type == "cuda"

    # the kinds of tensors that are not here
    is_ipu = is_maia = is_mkldnn = is_mps = is_mtia = is_nested = property(_never)
    is_quantized = is_sparse_csr = is_vulkan = is_xla = is_xpu = property(_never)

    def get_device(self) -> int:
        """Return the number of the tensor's GPU, -1 for the CPU.

        >>> jaxgrad.ones(1).cpu().get_device()
        -1
        """
        return self.device.index if self.is_cuda else -1

    @property
    def layout(self) -> devices.layout:
        """The layout: `sparse_coo` for a sparse tensor, `strided` for others.

        >>> jaxgrad.ones(1).layout
        torch.strided
        """
        return devices.strided

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is `sparse_coo`.

        >>> jaxgrad.ones(1).is_sparse, jaxgrad.ones(1).to_sparse().is_sparse
        (False, True)
        """
        return False


# the methods that convert to a dtype
CONVERSIONS = {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "short": dtypes.int16,
    "char": dtypes.int8,
    "byte": dtypes.uint8,
    "bool": dtypes.bool,
    "chalf": named_dtypes.complex32,
    "cfloat": dtypes.complex64,
    "cdouble": dtypes.complex128,
}
