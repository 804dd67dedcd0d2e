"""PyTorch's devices and JAX's behind them; memory layouts and formats.

>>> from jaxgrad.core.device import device
>>> device("cuda:1"), device("cuda", 1).index
(device(type='cuda', index=1), 1)
"""

from __future__ import annotations

import contextlib
import contextvars
import copyreg
import functools
import operator
import re
import threading

import jax
import numpy as np

from . import pending
from .meta_array import MetaArray
from .pending import Pending, value_of
from .strides import channels_last as channels_last_strides

# PyTorch's device types, each with JAX's names of the platform; tensors on meta have no data
PLATFORMS = {"cpu": ("cpu",), "cuda": ("gpu", "cuda", "rocm"), "tpu": ("tpu",), "meta": ()}
# PyTorch's other types: programs compare with them, and no tensor can be there
_ABSENT = frozenset(
    ("fpga", "hip", "hpu", "ideep", "ipu", "lazy", "maia", "mkldnn", "mps", "mtia", "opencl")
    + ("opengl", "privateuseone", "ve", "vulkan", "xla", "xpu")
)
_TYPES = {platform: type for type, platforms in PLATFORMS.items() for platform in platforms}
_TEXT = re.compile(r"([a-z]+)(?::(0|[1-9][0-9]*))?")


class device:
    """The place of a tensor: a type and, optionally, which device of that type.

    type: "cpu", "cuda" (any GPU), "tpu", or "meta" for tensors that have a shape and no data; or
    another type of PyTorch, such as "mps", which no tensor can be on. Also with an index as in
    "cuda:1"; a device, also one of JAX's; or an int, the index of a GPU. index: an int >= 0. Raises
    RuntimeError for another type, a malformed text, or a negative index; TypeError for a `type` of
    another kind. A device that does not exist raises at its first use.

    >>> str(jaxgrad.device("cuda", 0)), jaxgrad.device("cpu") == jaxgrad.device("cpu:0")
    ('cuda:0', False)
    """

    __slots__ = ("index", "type")

    # by context the blocks that are open: the device of each, and what sets it in JAX
    _open = contextvars.ContextVar("jaxgrad.device_blocks", default=())

    def __init__(self, type: str | device | int | jax.Device, index: int | None = None):
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, jax.Device) and index is None:
            type, index = _name(type).type, _name(type).index
        elif isinstance(type, int) and not isinstance(type, bool) and index is None:
            type, index = "cuda", type
        elif not isinstance(type, str):
            raise TypeError(
                "device(): argument 'type' must be str, int or torch.device, "
                f"not {type.__class__.__name__}"
            )
        name, number = _parsed(type)
        if number is not None and index is not None:
            raise RuntimeError(
                "type (string) must not include an index because index was passed explicitly: "
                f"{type}"
            )
        if index is not None and not isinstance(index, int):
            raise TypeError(
                "device(): argument 'index' (position 2) must be int, not "
                f"{index.__class__.__name__}"
            )
        index = number if index is None else index
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must not be negative, got {index}")
        # past `__setattr__`: a device is a key of caches, so nobody may change it
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __enter__(self):
        """Make it the device of new tensors in a block, in this thread."""
        is_meta = self.type == "meta"
        block = contextlib.nullcontext() if is_meta else jax.default_device(jax_device(self))
        block.__enter__()
        device._open.set((*device._open.get(), (self, block)))
        return self

    def __exit__(self, *raised):
        *around, (_, block) = device._open.get()
        device._open.set(tuple(around))
        block.__exit__(*raised)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __getstate__(self):
        return str(self)

    def __setstate__(self, state):
        self.__init__(state)


_DTYPE = re.compile(r"(bfloat|float|double|half|u?int|long|short|bool|complex)\d*")


def _parsed(text):
    if not text:
        raise RuntimeError("Device string must not be empty")
    name = text.partition(":")[0]
    if name not in PLATFORMS and name not in _ABSENT:
        is_dtype = _DTYPE.fullmatch(text)
        raise RuntimeError(
            f"Expected one of {', '.join(PLATFORMS)} device type at start of device string: {text}"
            + (f": the dtype is torch.{text}, without quotation marks" if is_dtype else "")
            + (": GPUs are of type cuda" if name == "gpu" else "")
        )
    match = _TEXT.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    return name, None if match[2] is None else int(match[2])


def as_device(argument: str | device | int | jax.Device) -> device:
    """The device that a `device` argument names."""
    return argument if type(argument) is device else device(argument)


DeviceLike = device | str | int

_META = device("meta")


def is_meta(argument: str | device | int | None) -> bool:
    """Whether a `device` argument of a factory names the device meta, None the default device."""
    if argument is not None:
        return as_device(argument).type == "meta"
    blocks = device._open.get()
    return blocks[-1][0].type == "meta" if blocks else _is_meta_default


class NoCUDA(AssertionError, RuntimeError):
    """No GPU: for this device PyTorch raises AssertionError, for others RuntimeError."""


# the devices that types without an index stand for, in each thread, as in PyTorch
_current = threading.local()


def current_index(type: str) -> int:
    """The index that a device of a type without one stands for in this thread."""
    return _current.__dict__.get(type, 0)


def current_indices() -> tuple[tuple[str, int], ...]:
    """The indices that have been set in this thread, with their types."""
    return (*sorted(_current.__dict__.items()),)


def set_current_index(wanted: device):
    """Let the type of a device stand for it in this thread; nothing without an index. Raises
    RuntimeError if it does not exist.
    """
    jax_device(wanted)
    if wanted.index is None:
        return
    _current.__dict__[wanted.type] = wanted.index
    if _chosen == device(wanted.type):
        set_default(_chosen)


def jax_device(wanted: device) -> jax.Device:
    """JAX's device behind `wanted`. Raises RuntimeError, with all devices, if there is none."""
    if wanted.index is None and wanted.type in _current.__dict__:
        wanted = device(wanted.type, current_index(wanted.type))
    return _jax_device(wanted)


@functools.cache
def _jax_device(wanted):
    places = devices_of(wanted.type)
    index = wanted.index or 0
    if index < len(places):
        return places[index]
    existing = [str(_name(place)) for type in PLATFORMS for place in devices_of(type)]
    has_plugin = not places and wanted.type in PLATFORMS
    cure = f"; install jax with its plugin for {wanted.type}" if has_plugin else ""
    words = f"there is no device {wanted}: JAX found {', '.join(existing)}{cure}"
    if wanted.type == "cuda" and not places:
        raise NoCUDA(f"Torch not compiled with CUDA enabled: {words}")
    if wanted.type == "cuda":
        raise jax.errors.JaxRuntimeError(f"CUDA error: invalid device ordinal: {words}")
    raise RuntimeError(words)


def devices_of(type: str) -> list[jax.Device]:
    """JAX's devices of this process of one of PyTorch's types."""
    for platform in PLATFORMS.get(type, ()):
        try:
            return jax.local_devices(backend=platform)
        # JAX raises for a platform that it has no plugin for, or no device of
        except RuntimeError:
            continue
    return []


def of_tensors(name: str, error: ValueError, arrays) -> Exception:
    """The error for the operator of a name in place of JAX's, for arrays of several devices; other
    errors stay.
    """
    if "incompatible devices" not in str(error):
        return error
    return _several(name, [place for x in arrays if (place := chosen_place(x)) is not None])


def _several(name, places) -> RuntimeError:
    names = dict.fromkeys(str(_name(min(place, key=lambda chip: chip.id))) for place in places)
    return RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{' and '.join(names)}! {name} reads tensors of both: move them by `.to(device)`"
    )


def chosen_place(value) -> frozenset | None:
    """The devices that an array, or the pending result in its place, was moved to; None for one
    that stays on JAX's default device, as long as it meets no other.
    """
    if type(value) is Pending:
        if value.array is None:
            return getattr(value, "place", None)
        value = value.array
    is_array = isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
    return frozenset(value.devices()) if is_array and value.committed else None


def are_apart(*values) -> bool:
    """Whether no operator would take these arrays together, or the pending results in their place,
    because they are on several devices.
    """
    try:
        together("", values, True)
    except RuntimeError:
        return True
    return False


def together(name: str, arrays, is_strict: bool) -> tuple[tuple, frozenset | None]:
    """The arrays of a call, and the devices that they were moved to. A number without dimensions on
    the CPU goes along.

    is_strict: whether an array that was not moved must be there too. Integers need not, such as the
    indices and keys that operators make for themselves, and beside arrays of the CPU none need:
    PyTorch has all tensors that were not moved there. Raises RuntimeError, for the operator of a
    name, if their devices differ.
    """
    chosen = [*map(chosen_place, arrays)]
    kinds = {*chosen} - {None}
    if len(kinds) > 1:
        numbers = [_is_number_of_cpu(x, place) for x, place in zip(arrays, chosen, strict=True)]
        kinds = {place for place, is_number in zip(chosen, numbers, strict=True) if not is_number}
        kinds -= {None}
        if len(kinds) == 1:
            (place,) = kinds
            pairs = zip(arrays, numbers, strict=True)
            arrays = tuple([_at(x, place) if is_number else x for x, is_number in pairs])
    if len(kinds) > 1:
        arrays, kinds = _spread(arrays, chosen, kinds)
    if is_strict and len(kinds) == 1 and len(*kinds) == 1 and not _takes_unmoved(*kinds):
        pairs = zip(arrays, chosen, strict=True)
        kinds |= {frozenset(places_of(x)) for x, place in pairs if place is None and _has_device(x)}
    if len(kinds) > 1:
        raise _several(name, [place for place in (*chosen, *kinds) if place in kinds])
    return arrays, next(iter(kinds), None)


def _has_device(value) -> bool:
    """Whether an array has dimensions, and numbers that are no integers."""
    return bool(getattr(value, "ndim", 0)) and getattr(value.dtype, "kind", "u") not in "biu"


def _spread(arrays, chosen, kinds) -> tuple[tuple, set]:
    """Copy arrays on some devices of a mesh to all of them, if another array is on all. Returns the
    arrays, and the devices where they are then; both as they were if no mesh has all devices.
    """
    widest = max(kinds, key=len)
    sharding = value_of(arrays[chosen.index(widest)]).sharding
    is_on_mesh = isinstance(sharding, jax.sharding.NamedSharding)
    if not is_on_mesh or not all(place <= widest for place in kinds):
        return arrays, kinds
    whole = jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec())
    copied = [
        x if place in (None, widest) else jax.device_put(value_of(x), whole)
        for x, place in zip(arrays, chosen, strict=True)
    ]
    return tuple(copied), {widest}


def _takes_unmoved(place) -> bool:
    """Whether arrays that were not moved go along to a place: to the CPU, unless the program has
    chosen a device for new tensors.
    """
    return jax.config.jax_default_device is None and is_cpu(place)


@functools.cache
def is_cpu(place: frozenset) -> bool:
    """Whether all devices of an array are CPUs."""
    return all(type_of(chip) == "cpu" for chip in place)


def _is_number_of_cpu(value, place) -> bool:
    return place is not None and value.ndim == 0 and is_cpu(place)


def _at(value, place):
    return jax.device_put(value_of(value), min(place, key=lambda chip: chip.id))


def at_first(arrays) -> tuple:
    """The arrays of a call, all on the device of the first."""
    first, *others = arrays
    place, chosen = chosen_place(first), [*map(chosen_place, others)]
    if all(other == place for other in chosen) or (place is not None and len(place) > 1):
        return arrays
    if place is None:
        # still to follow others: a copy through the host is on no device that was chosen
        moved = (jax.numpy.asarray(np.asarray(value_of(x))) for x in others)
    else:
        moved = (_at(x, place) if hasattr(x, "ndim") else x for x in others)
    return first, *moved


def wait_for(wanted: device):
    """Wait until all work that has been begun on a device is done. Raises RuntimeError if it does
    not exist.
    """
    place = jax_device(wanted)
    pending.run_all()
    # a device runs its programs in order
    jax.device_put(0, place).block_until_ready()
    for array in jax.live_arrays():
        if place in array.devices() and not array.is_deleted():
            array.block_until_ready()


def has(type: str) -> bool:
    """Whether a device of this type exists."""
    return bool(devices_of(type))


@functools.cache
def are_several() -> bool:
    """Whether JAX has more than one device, those of other processes included."""
    return jax.device_count() > 1


@functools.cache
def may_differ() -> bool:
    """Whether arrays of this process may be on different devices: with an accelerator there is a
    CPU too.
    """
    return are_several() or jax.default_backend() != "cpu"


def type_of(place: jax.Device) -> str:
    """PyTorch's type of a device of JAX, of any process."""
    local = (type for type in PLATFORMS if place in devices_of(type))
    return next(local, None) or _TYPES.get(place.platform, "cpu")


@functools.cache
def _name(place: jax.Device) -> device:
    type = type_of(place)
    index = devices_of(type).index(place)
    # PyTorch's one CPU has no index
    return device(type) if type == "cpu" and index == 0 else device(type, index)


# the device of new tensors outside of blocks (`set_default_device`), and whether it is meta
_chosen = None
_is_meta_default = False


def set_default(wanted: device | None):
    """Set the device of new tensors; None leaves the choice to JAX."""
    global _chosen, _is_meta_default
    to_meta = wanted is not None and wanted.type == "meta"
    if not to_meta:
        jax.config.update("jax_default_device", None if wanted is None else jax_device(wanted))
    _chosen, _is_meta_default = wanted, to_meta


def default_device() -> device:
    """The device of new tensors without a `device` argument: JAX's default device, or meta."""
    return _META if is_meta(None) else device_of_jax()


def device_of_jax() -> device:
    """JAX's default device."""
    chosen = jax.config.jax_default_device
    return _name(chosen if isinstance(chosen, jax.Device) else jax.local_devices(backend=chosen)[0])


def accelerator() -> device | None:
    """The kind of accelerator that JAX has found, without an index; None for none."""
    types = [type for type in PLATFORMS if type != "cpu" and has(type)]
    return device(types[0]) if types else None


def has_accelerator() -> bool:
    """Whether JAX has devices other than CPUs."""
    return accelerator() is not None


def check_pinning(name: str):
    """Raise RuntimeError, for the function of a name, where no accelerator could read page-locked
    memory. Where one can, XLA copies from memory of its own, and nothing is to be done.
    """
    if not has_accelerator():
        raise RuntimeError(
            f"{name}: Cannot access accelerator device when none is available. JAX has only CPUs "
            "here, so leave out pin_memory"
        )


def device_of(array) -> device:
    """The device of an array, or of the pending result in its place. For a tracer JAX's default
    device, where its program should run.
    """
    if isinstance(array, jax.core.Tracer):
        return device_of_jax()
    if type(array) is MetaArray:
        return _META
    if isinstance(array, np.ndarray):  # of a forked process, which cannot use JAX's devices
        return device("cpu")
    # a sharded array is on several; PyTorch's code reads one, so always the same of this process
    places = places_of(array)
    if len(places) > 1:
        places = value_of(array).sharding.addressable_devices
    return _name(min(places, key=lambda place: place.id))


def places_of(value) -> set[jax.Device]:
    """The devices of an array, or of the pending result in its place. No array is made for this if
    there is one device, nor for the numbers of a new tensor.
    """
    is_pending = type(value) is Pending and value.array is None
    if is_pending and (jax.device_count() == 1 or value.stretch.is_new):
        return {jax.local_devices()[0]}
    return value_of(value).devices()


class layout:
    """The memory layout of a tensor: `strided`, or `sparse_coo` for coordinates and values.

    >>> jaxgrad.ones(2).layout, jaxgrad.eye(2).to_sparse().layout
    (torch.strided, torch.sparse_coo)
    """

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"


class memory_format(layout):
    """The order of dimensions in memory, as strides show it; XLA chooses an order of its own.

    rank: the number of dimensions that a tensor of the format has, None for any.

    >>> x = jaxgrad.ones(1, 2, 3, 4).contiguous(memory_format=jaxgrad.channels_last)
    >>> x.stride(), x.is_contiguous(memory_format=jaxgrad.channels_last)
    ((24, 1, 8, 2), True)
    """

    __slots__ = ("rank",)

    def __init__(self, name, rank=None):
        super().__init__(name)
        self.rank = rank

    def strides(self, shape) -> tuple[int, ...] | None:
        """The strides of a new tensor of this format; None for contiguous ones."""
        return channels_last_strides(shape) if self.rank else None

    def check(self, name: str, shape):
        """Raise RuntimeError, for the function of a name, unless a shape has the rank."""
        if self.rank not in (None, len(shape)):
            raise RuntimeError(
                f"required rank {self.rank} tensor to use {self.name} format: {name} got "
                f"{list(shape)}"
            )


# compared by identity, as dtypes are
copyreg.dispatch_table |= dict.fromkeys((layout, memory_format), operator.attrgetter("name"))

strided = layout("strided")
sparse_coo = layout("sparse_coo")
jagged = layout("jagged")  # of nested tensors
# no tensor has one of these, but programs compare the layout of theirs with them
sparse_csr, sparse_csc = layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc = layout("sparse_bsr"), layout("sparse_bsc")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
legacy_contiguous_format = contiguous_format
channels_last = memory_format("channels_last", 4)
channels_last_3d = memory_format("channels_last_3d", 5)
