"""Writes files of PyTorch; its `torch.load(weights_only=True)` reads those that hold only data.

The instructions are those of protocol 2 that `_instructions.py` reads; an object of any other class
is written as the module pickle writes it.
"""

from __future__ import annotations

import copyreg
import functools
import io
import struct
import sys
import types
from collections import Counter, OrderedDict

import numpy as np

from .. import ops
from ..core import device as devices
from ..core import dtypes
from ..core import strides as layouts
from ..core.aval import Size
from ..core.named_dtypes import complex32, quint4x2
from ..core.pytorch_tensors import is_of_pytorch
from ..frontend import raw_bits
from ..frontend.copying import python_state, warn_of_hooks
from ..frontend.half_complex import HalfComplex
from ..frontend.storages import TYPES, TypedStorage, UntypedStorage
from ..functions.quantization import QuantizedTensor, per_tensor_affine, qscheme
from ..late import LateModule
from ..names.not_provided import path_in_pytorch
from ..nn.module_hooks import Changes
from ..nn.parameter import Buffer, Parameter, is_lazy
from ..tape.sparse_tensor import SparseTensor, is_compressed
from ..tape.tensor import Tensor, concrete
from . import _options, _packages
from ._archive import ArchiveWriter
from ._memory import Candidate, Place
from ._refused import refusal
from ._safe_classes import INTERNAL, NUMPY_TYPE
from ._saved_memory import (
    DIFFERENT_DTYPES,
    HeldBytes,
    SavedMemory,
    memory_of,
    memory_of_storage,
)

masked = LateModule("jaxgrad.masked")
pickled_module = LateModule("jaxgrad.nn.pickled_module")

STORAGE_NAMES = {kind.dtype: name for name, kind in TYPES.items()}


# the function that makes a tensor without data
META = "torch._utils _rebuild_meta_tensor_no_storage"

# what begins a file of PyTorch before 1.6
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
SIZES = {"short": 2, "int": 4, "long": 4}


def encode_archive(obj, protocol: int = 2, has_byte_order: bool = True, pickle_module=None):
    """A function that writes an object as an archive, by a function that takes bytes. Errors as for
    `save`.
    """
    encoder = Encoder(protocol, pickle_module=pickle_module)
    encoder.value(obj, ())
    return functools.partial(_write, encoder, has_byte_order)


def encode_stream(obj, protocol: int = 2, pickle_module=None):
    """A function that writes an object in the format of PyTorch before 1.6."""
    encoder = Encoder(protocol, of_stream=True, pickle_module=pickle_module)
    encoder.value(obj, ())
    return functools.partial(_write_stream, encoder)


def _write_stream(encoder: Encoder, write):
    facts = {"protocol_version": VERSION, "little_endian": True, "type_sizes": SIZES}
    for part in (MAGIC, VERSION, facts):
        write(_instructions(part))
    write(bytes(encoder.code) + b".")
    storages = {str(number): parts for number, *parts in encoder.storages.values()}
    write(_instructions(sorted(storages)))
    for _, (memory, dtype) in sorted(storages.items()):
        elements = _elements(memory, dtype)
        # as bytes where PyTorch has no type of storages of the dtype
        size = dtype.itemsize if dtype in STORAGE_NAMES else 1
        write(struct.pack("<q", elements.size // size))
        write(memoryview(elements))


def _instructions(value) -> bytes:
    """The instructions that make data."""
    encoder = Encoder()
    encoder.value(value, ())
    return bytes(encoder.code) + b"."


def _elements(memory: SavedMemory, dtype) -> np.ndarray:
    """The bytes of a memory; zeros where the user asks for files without them."""
    if _options.of_thread.skips_data:
        return np.zeros(memory.count(dtypes.uint8), np.uint8)
    return memory.elements(dtype).view(np.uint8)


def _write(encoder: Encoder, has_byte_order: bool, write):
    alignment = _options.save.storage_alignment
    archive = ArchiveWriter(write, _options.save.compute_crc32, alignment)
    archive.add("archive/data.pkl", bytes(encoder.code) + b".")
    archive.add("archive/.format_version", b"1")
    archive.add("archive/.storage_alignment", str(alignment).encode())
    if has_byte_order:
        archive.add("archive/byteorder", b"little")
    for number, memory, dtype in encoder.storages.values():
        archive.add(f"archive/data/{number}", memoryview(_elements(memory, dtype)))
    archive.add("archive/version", b"3\n")
    archive.close()


class ModulePickling:
    """How a module that stands for pickle makes objects that are no data. pickle_module, protocol:
    as for `save`.
    """

    def __init__(self, pickle_module, protocol: int):
        self.module, self.protocol = pickle_module, protocol
        pickler = pickle_module.Pickler(io.BytesIO(), protocol)
        self.override = getattr(pickler, "reducer_override", None)
        self.table = getattr(pickler, "dispatch_table", {})

    def parts(self, value):
        """What makes an object, as its methods for pickling say; NotImplemented for no answer."""
        parts = NotImplemented if self.override is None else self.override(value)
        if parts is NotImplemented and type(value) in self.table:
            return self.table[type(value)](value)
        return parts

    def whole(self, value):
        """The call of the module's `loads` that makes an object."""
        return self.module.loads, (self.module.dumps(value, self.protocol),)

    def named(self, value):
        """What makes a class or function that has no place in a module."""
        parts = self.parts(value)
        return self.whole(value) if parts is NotImplemented else parts


class Encoder:
    """The instructions that make an object, and the memory of its tensors.

    protocol: the version that the file names; the instructions are those of 2. of_stream: whether
    storages are described as before PyTorch 1.6. pickle_module: as for `save`. storages: by the key
    of a memory its number in the file, the memory and the dtype.
    """

    def __init__(self, protocol: int = 2, of_stream: bool = False, pickle_module=None):
        if protocol > 5:  # Python's newest
            raise ValueError(f"save(): pickle protocol must be <= 5, and it is {protocol}")
        self.protocol, self.of_stream = max(protocol, 2), of_stream
        self.pickling = None if pickle_module is None else ModulePickling(pickle_module, protocol)
        self.code = bytearray((0x80, self.protocol))
        # by the id of an object, or by the name of a global, the number that it is kept under
        self.memo: dict = {}
        self.kept: list = []
        self.storages: dict[int, tuple[int, SavedMemory, dtypes.dtype]] = {}

    def value(self, value, path):
        """Make a value. path: the keys that lead to it."""
        if id(value) in self.memo:
            self._recall(id(value))
            return
        write = DATA.get(type(value))
        if write is None:
            fitting = (write for kinds, write in KINDS if isinstance(value, kinds))
            write = next(fitting, Encoder._object)
        write(self, value, path)

    # ---- parts

    def _keep(self, value):
        """Keep what has been made, for later uses of the same object."""
        self.kept.append(value)  # so that no other object gets its id
        self._put(id(value))

    def _put(self, key):
        number = self.memo[key] = len(self.memo)
        self.code += b"q%c" % number if number < 256 else b"r" + struct.pack("<L", number)

    def _recall(self, key):
        number = self.memo[key]
        self.code += b"h%c" % number if number < 256 else b"j" + struct.pack("<L", number)

    def _global(self, name: str):
        """Push what a name stands for: its module, a blank, and its name there."""
        if self.protocol > 2:  # the modules have their names of Python 3 from there on
            name = name.replace("__builtin__", "builtins")
        if name in self.memo:
            self._recall(name)
            return
        self.code += f"c{name.replace(' ', chr(10))}\n".encode()
        self._put(name)

    def _call(self, name: str, *arguments):
        self._global(name)
        self._tuple(arguments, ())
        self.code += b"R"

    def _tuple(self, items, path):
        self.code += b"(" if items else b")"
        for number, item in enumerate(items):
            self.value(item, (*path, number))
        self.code += b"t" if items else b""

    def _pairs(self, items, path):
        self.code += b"("
        for key, value in items:
            self.value(key, (*path, key))
            self.value(value, (*path, key))
        self.code += b"u"

    # ---- Python's objects

    def write_none(self, value, path):
        self.code += b"N"

    def write_boolean(self, value, path):
        self.code += b"\x88" if value else b"\x89"

    def write_integer(self, value, path):
        value = int(value)
        if -(2**31) <= value < 2**31:
            self.code += b"J" + struct.pack("<l", value)
            return
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        size = b"\x8a%c" % len(data) if len(data) < 256 else b"\x8b" + struct.pack("<l", len(data))
        self.code += size + data

    def write_number(self, value, path):
        self.code += b"G" + struct.pack(">d", value)

    def write_scalar(self, value, path):
        """A number of NumPy as one of Python, which PyTorch reads with weights_only=True."""
        if NUMPY_TYPE.fullmatch(value.dtype.str.lstrip("<|=")) is None:
            self._object(value, path)
        else:
            self.value(value.item(), path)

    def write_text(self, value, path):
        data = str(value).encode("utf-8", "surrogatepass")
        self.code += b"X" + struct.pack("<L", len(data)) + data

    def write_data(self, value, path):
        self._call("_codecs encode", value.decode("latin1"), "latin1")

    def write_byte_array(self, value, path):
        self._call("__builtin__ bytearray", bytes(value))
        self._keep(value)

    def write_complex(self, value, path):
        self._call("__builtin__ complex", value.real, value.imag)

    def write_set(self, value, path):
        self._call("__builtin__ set", [*value])
        self._keep(value)

    def write_list(self, value, path):
        self.code += b"]"
        self._keep(value)
        self.code += b"("
        for number, item in enumerate(value):
            self.value(item, (*path, number))
        self.code += b"e"

    def write_tuple(self, value, path):
        self._tuple(value, path)
        if value:
            self._keep(value)

    def write_dict(self, value, path):
        self.code += b"}"
        self._keep(value)
        self._pairs(value.items(), path)

    def write_ordered_dict(self, value, path):
        self._call("collections OrderedDict")
        self._keep(value)
        self._pairs(value.items(), path)
        if hasattr(value, "_metadata"):
            self.value({"_metadata": value._metadata}, path)
            self.code += b"b"

    def write_counter(self, value, path):
        self._call("collections Counter", dict(value))
        self._keep(value)

    def write_name(self, value, path):
        """A class or function, by its name in its module."""
        for only in (None, NotImplemented, ...):
            if value is type(only):  # a class without a name
                self._call("__builtin__ type", only)
                return
        module, name = getattr(value, "__module__", None) or "builtins", value.__qualname__
        if module.partition(".")[0] == "jaxgrad" and "." not in name:
            path = path_in_pytorch(value)
            if path is not None:
                self._global(" ".join(path.rsplit(".", 1)))
                return
        outer, _, last = name.rpartition(".")
        holder = sys.modules.get(module)
        for part in filter(None, outer.split(".")):
            holder = getattr(holder, part, None)
        if getattr(holder, last, None) is not value:
            if self.pickling is not None:
                self._object_of(self.pickling.named(value), value, path)
                return
            why = f"Can't pickle it, since {module}.{name} is another object or none"
            raise refusal(value, path, f"{why}: a file has the names of functions and classes")
        if outer:
            self._call("__builtin__ getattr", holder, last)
        else:
            self._global(f"{module} {name}")

    def _object(self, value, path):
        """An object of any class, as its methods for pickling describe it (PEP 307)."""
        if is_of_pytorch(value):
            raise refusal(value, path, "a file holds tensors of jaxgrad")
        self._object_of(self._parts(value, path), value, path)

    def _object_of(self, parts, value, path):
        """An object, by what its methods for pickling give."""
        if isinstance(parts, str):
            self._global(f"{getattr(value, '__module__', 'builtins')} {parts}")
            return
        function, arguments, state, items, pairs, set_state = (*parts, *[None] * 4)[:6]
        if function is copyreg.__newobj__:
            self.value(arguments[0], path)
            self._tuple(arguments[1:], path)
            self.code += b"\x81"
        else:
            if function is copyreg.__newobj_ex__:
                new, positional, named = arguments
                function, arguments = functools.partial(new.__new__, new, *positional, **named), ()
            self.value(function, path)
            self._tuple(arguments, path)
            self.code += b"R"
        self._keep(value)
        self._contents(value, path, items, pairs)
        self._state(value, path, state, set_state)

    def _parts(self, value, path):
        """What the methods of an object for pickling give."""
        parts = NotImplemented if self.pickling is None else self.pickling.parts(value)
        if parts is not NotImplemented:
            return parts
        reduce = copyreg.dispatch_table.get(type(value))
        try:
            parts = reduce(value) if reduce else value.__reduce_ex__(2)
        except TypeError as error:
            if self.pickling is not None:
                return self.pickling.whole(value)
            raise refusal(value, path, str(error)) from error
        return parts

    def _contents(self, value, path, items, pairs):
        """The elements of a list of any class, and the items of a dict."""
        if items is not None:
            self.code += b"("
            for number, item in enumerate(items):
                self.value(item, (*path, number))
            self.code += b"e"
        if pairs is not None:
            self._pairs(pairs, path)

    def _state(self, value, path, state, set_state):
        if state is None:
            return
        if set_state is not None:
            self.value(set_state, path)
            self._tuple((value, state), path)
            self.code += b"R0"
            return
        if isinstance(state, dict):
            if isinstance(state.get("_changes"), Changes):  # a copy of the attributes of a module
                state = pickled_module.pickled(state)
            self.code += b"}("
            for name, attribute in state.items():
                self.value(name, path)
                self.value(attribute, (*path, name))
            self.code += b"u"
        else:
            self.value(state, path)
        self.code += b"b"

    def write_array(self, value, path):
        """An array of NumPy, as NumPy does: PyTorch reads it only with weights_only=False."""
        code = value.dtype.str.lstrip("<|=")
        if NUMPY_TYPE.fullmatch(code) is None:
            self._object(value, path)
            return
        self._global("numpy._core.multiarray _reconstruct")
        self.code += b"("
        self._global("numpy ndarray")
        self._tuple((0,), path)
        self.value(b"b", path)
        self.code += b"tR"
        self._keep(value)
        self.code += b"("
        self.value(1, path)
        self._tuple(value.shape, path)
        self._call("numpy dtype", code, False, True)
        self._tuple((3, "<" if value.itemsize > 1 else "|", None, None, None, -1, -1, 0), path)
        is_fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        self.code += b"b"
        self.value(is_fortran, path)
        self.value(value.tobytes("F" if is_fortran else "C"), path)
        self.code += b"tb"

    # ---- PyTorch's objects

    def write_size(self, value, path):
        self._call("torch Size", tuple(value))

    def write_device(self, value, path):
        index = () if value.index is None else (value.index,)
        self._call("torch device", value.type, *index)

    def write_constant(self, value, path):
        self._global(f"torch {value.name}")

    def write_layout(self, value, path):
        self._call("torch.serialization _get_layout", str(value))

    def write_tensor(self, value, path):
        is_own = type(value).__reduce_ex__ is Tensor.__reduce_ex__
        is_of_jaxgrad = type(value).__module__.partition(".")[0] == "jaxgrad"
        if is_lazy(value):
            self._lazy(value, path)
        elif isinstance(value, Parameter) and (is_of_jaxgrad or Parameter in type(value).__mro__):
            self._parameter(value, path)
        elif type(value) is HalfComplex and value.is_meta:
            self._plain(value, path)
        elif type(value) is HalfComplex:
            self._call_for(value, path, "torch._utils _rebuild_tensor_v3", self._half_complex)
        elif isinstance(value, raw_bits.RawBits):
            self._call_for(value, path, "torch._utils _rebuild_tensor_v3", self._raw_bits)
        elif isinstance(value, QuantizedTensor):
            self._call_for(value, path, "torch._utils _rebuild_qtensor", self._quantized)
        elif is_of_jaxgrad and value.is_nested and value.layout is devices.strided:
            self._call_for(value, path, "torch._utils _rebuild_nested_tensor", self._nested)
        elif is_of_jaxgrad and value.is_nested:
            self._jagged(value, path)
        elif is_of_jaxgrad and isinstance(value, masked.MaskedTensor):
            self._masked(value, path)
        elif is_of_jaxgrad and not isinstance(value, Buffer) and type(value) is not Tensor:
            raise refusal(value, path, "no file holds such a tensor: save what it is made of")
        elif is_own:
            self._plain(value, path)
        else:
            self._object(value, path)
            return
        self._keep(value)

    def _lazy(self, value, path):
        """A tensor without a shape: how it is made."""
        self.value(type(value), path)
        options = {"device": value.device, "dtype": value.dtype}
        is_default = value.dtype is dtypes.get_default_dtype() and value.device.type == "cpu"
        self._tuple((value.requires_grad, *(() if is_default else options.values())), path)
        self.code += b"R"

    def _parameter(self, value, path):
        state = python_state(value)
        self._global(f"torch._utils _rebuild_parameter{'' if state is None else '_with_state'}")
        self.code += b"("
        if value.is_meta:
            self._global(META)
            self._meta(value.detach())
            self.code += b"R"
        else:
            self._dense(value)
        self.value(value.requires_grad, path)
        self._call("collections OrderedDict")
        if state is not None:
            self.value(state, path)
        self.code += b"tR"

    def _plain(self, value, path):
        """A tensor of the class `Tensor`, or of a user's, with what users have set on it."""
        warn_of_hooks(value)
        if value.is_meta and type(value) in (Tensor, HalfComplex):
            self._call_for(value, path, META, self._meta)
            return
        state = python_state(value)
        if type(value) is Tensor and state is None:
            self._dense(value)
            return
        self._global("torch._tensor _rebuild_from_type_v2")
        self.code += b"("
        if value.is_meta:
            self._global(META)
        else:
            place = self._function(value)
        self.value(type(value), path)
        if value.is_meta:
            self._meta(value)
        else:
            self._arguments(value, *place)
        self.value(state or {}, path)
        self.code += b"tR"

    def _meta(self, value):
        shape = tuple(value.shape), value.stride(), value.requires_grad
        self._tuple((value.dtype, *shape), ())

    def _call_for(self, value, path, function, write):
        """The call of a function that makes a tensor, whose arguments `write` writes, with what
        users have set on the tensor.
        """
        state = _attributes(value)
        if not state:
            self._global(function)
            write(value)
            self.code += b"R"
            return
        self._global("torch._tensor _rebuild_from_type_v2")
        self.code += b"("
        self._global(function)
        self._global("torch Tensor")
        write(value)
        self.value(state, path)
        self.code += b"tR"

    def _half_complex(self, value):
        """A tensor of complex32, contiguous: pairs of float16."""
        pairs = np.asarray(concrete(ops.view_as_real(value.detach()), "save"), np.float16)
        shape = tuple(value.shape)
        place = Place(complex32, 0, shape, layouts.contiguous(shape))
        self._arguments(value, HeldBytes(id(value), np.ascontiguousarray(pairs)), place)

    def _raw_bits(self, value):
        """A tensor of bits, contiguous: its bytes."""
        held = np.asarray(concrete(raw_bits.plain(value), "save"))
        shape = tuple(value.shape)
        place = Place(value.dtype, 0, shape, layouts.contiguous(shape))
        self._arguments(value, HeldBytes(id(value), np.ascontiguousarray(held)), place)

    def _quantized(self, value):
        """A quantized tensor: its integers, with the scale and the zero point."""
        if value.dtype is quint4x2:
            raise NotImplementedError(
                "torch.save: jaxgrad does not write tensors of quint4x2: save tensor.dequantize()"
            )
        integers, per_channel = value.int_repr(), value.qscheme() is not per_tensor_affine
        self.kept.append(integers)
        memory, place = memory_of(integers)
        self.code += b"("
        self._storage(memory, place.dtype, False, f"{value.dtype.scalar_type}Storage")
        for part in (place.offset, place.size, place.stride):
            self.value(part, ())
        self.code += b"("
        # also of float zero points: a reader tells these by the dtype
        self._global(f"torch {'per_channel_affine' if per_channel else 'per_tensor_affine'}")
        if per_channel:
            for part in (value.q_per_channel_scales(), value.q_per_channel_zero_points()):
                self._dense(part)
            self.value(value.q_per_channel_axis(), ())
        else:
            self.value(value.q_scale(), ())
            self.value(value.q_zero_point(), ())
        self.code += b"t"
        self.value(False, ())
        self._call("collections OrderedDict")
        self.code += b"t"

    def _nested(self, value):
        """A strided nested tensor: its memory, and where in it the components lie."""
        memory = value.values().detach().requires_grad_(value.requires_grad)
        self.code += b"("
        for part in (memory, *value.tables()):
            self._dense(part)
        self.code += b"t"

    def _jagged(self, value, path):
        """A jagged nested tensor: its values, and where in them the components lie."""
        parts = {"values": value.values().detach(), "offsets": value.offsets(), "lengths": None}
        parts |= {"_ragged_idx": value._ragged, "_metadata_cache": {}}
        parts["requires_grad"] = value.requires_grad
        self._global("torch._tensor _rebuild_from_type_v2")
        self.code += b"("
        self._global("torch.nested._internal.nested_tensor _rebuild_njt")
        self._global("torch.nested._internal.nested_tensor NestedTensor")
        self._tuple((parts,), path)
        self.value(_attributes(value), path)
        self.code += b"tR"

    def _masked(self, value, path):
        """A masked tensor: its data and its mask."""
        kind = "torch.masked.maskedtensor.core MaskedTensor"
        data, mask = value.get_data().detach(), value.get_mask()
        self._global("torch._tensor _rebuild_from_type_v2")
        self.code += b"("
        self._global("torch._utils _rebuild_wrapper_subclass")
        self._global(kind)
        self.code += b"("
        self._global(kind)
        self.value(value.dtype, path)
        for part in (tuple(value.shape), layouts.contiguous(tuple(value.shape)), 0):
            self.value(part, path)
        for part in (value.layout, data.device, value.requires_grad):
            self.value(part, path)
        self.code += b"t"
        self.value({"_masked_data": data, "_masked_mask": mask}, path)
        self.code += b"tR"

    def _dense(self, value):
        self._arguments(value, *self._function(value))
        self.code += b"R"

    def _function(self, value):
        """The function that makes a tensor; the memory of the tensor and its place there."""
        memory, place = memory_of(value)
        self.kept.append(value)
        version = "v2" if place.dtype in STORAGE_NAMES else "v3"
        self._global(f"torch._utils _rebuild_tensor_{version}")
        return memory, place

    def write_storage(self, value, path):
        self.kept.append(value)
        self._storage(memory_of_storage(value), value.dtype, isinstance(value, UntypedStorage))

    def _storage(self, memory, dtype, is_untyped, name=None):
        """The memory of tensors, by the number that the file has it under. name: of its class, by
        default that for the dtype.
        """
        # one without elements shares nothing
        key = memory.key if memory.count(dtypes.uint8) else (memory.key, dtype)
        number, _, known = self.storages.setdefault(key, (len(self.storages), memory, dtype))
        if known is not dtype:
            raise RuntimeError(DIFFERENT_DTYPES.format(known, dtype))
        self.code += b"("
        self.value("storage", ())
        name = name or (None if is_untyped else STORAGE_NAMES.get(dtype))
        self._global("torch.storage UntypedStorage" if name is None else f"torch {name}")
        count = memory.count(dtypes.uint8 if name is None else dtype)
        location = memory.location
        if _packages.is_changed():
            location = _packages.location_tag(Candidate(location, memory.count(dtypes.uint8)))
        for part in (str(number), location, count, *[None] * self.of_stream):
            self.value(part, ())
        self.code += b"tQ"

    def _arguments(self, value, memory, place):
        dtype = place.dtype
        self.code += b"("
        self._storage(memory, dtype, False)
        self.value(place.offset, ())
        self._tuple(place.size, ())
        self._tuple(place.stride, ())
        self.value(value.requires_grad, ())
        self._call("collections OrderedDict")
        if dtype not in STORAGE_NAMES:
            self.write_constant(dtype, ())
        flags = {"conj": place.is_conj, "neg": place.is_neg}
        if any(flags.values()):
            self.value({flag: True for flag, is_set in flags.items() if is_set}, ())
        self.code += b"t"

    def write_sparse(self, value, path):
        self._call_for(value, path, "torch._utils _rebuild_sparse_tensor", self._sparse)
        self._keep(value)

    def _sparse(self, value):
        part = value.detach()
        self.code += b"("
        self.write_layout(value.layout, ())
        self.code += b"("
        if is_compressed(value):
            self._dense(part._coalesced.indices)
            self._dense(part._indices_held)
            self._values(part.values())
            self.write_size(value.shape, ())
        else:
            self._dense(part._indices())
            self._values(part._values())
            self.write_size(value.shape, ())
            self.value(part.is_coalesced(), ())
        self.code += b"tt"

    def _values(self, values):
        """The values of a sparse tensor."""
        if type(values) is HalfComplex:
            self.write_tensor(values, ())
        else:
            self._dense(values)


def _attributes(tensor) -> dict:
    """What users have set on a tensor of one of jaxgrad's classes."""
    hidden = frozenset() if type(tensor) is Tensor else INTERNAL
    return {name: value for name, value in vars(tensor).items() if name not in hidden}


NAMED = (type, types.FunctionType)

# a subclass of these is written as an object, which keeps its class
DATA = {
    type(None): Encoder.write_none,
    bool: Encoder.write_boolean,
    int: Encoder.write_integer,
    float: Encoder.write_number,
    complex: Encoder.write_complex,
    str: Encoder.write_text,
    bytes: Encoder.write_data,
    bytearray: Encoder.write_byte_array,
    OrderedDict: Encoder.write_ordered_dict,
    Counter: Encoder.write_counter,
    dict: Encoder.write_dict,
    list: Encoder.write_list,
    tuple: Encoder.write_tuple,
    set: Encoder.write_set,
}

# the first that fits is taken
KINDS = (
    (SparseTensor, Encoder.write_sparse),
    (Tensor, Encoder.write_tensor),
    ((TypedStorage, UntypedStorage), Encoder.write_storage),
    (np.generic, Encoder.write_scalar),
    (Size, Encoder.write_size),
    (np.ndarray, Encoder.write_array),
    ((dtypes.dtype, qscheme), Encoder.write_constant),
    (devices.device, Encoder.write_device),
    (devices.memory_format, Encoder.write_constant),
    (devices.layout, Encoder.write_layout),
    (NAMED, Encoder.write_name),
)
