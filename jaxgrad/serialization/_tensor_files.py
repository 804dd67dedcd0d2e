"""Files in the format of safetensors, which holds numbers and names but no code.

A file has the length of its header in 8 bytes, the header in JSON, and the bytes of the tensors
without gaps. Tensors have dotted names, so every reader of safetensors reads a flat dict of
tensors. The metadata hold the structure and the other values, in JSON too.

The structure says which tensors share memory. Their numbers are in the file under each name, for
other readers; where another program has changed one of them, the tensors come back apart.
"""

from __future__ import annotations

import functools
import json
from collections import Counter, OrderedDict

import numpy as np

from ..core import device as devices
from ..core import dtypes
from ..core import strides as layouts
from ..core.aval import Size, with_strides
from ..nn.parameter import Parameter, is_lazy, mark
from ..tape.sparse_tensor import SparseTensor, is_compressed
from ..tape.tensor import Tensor, abstract_value, concrete, held, hold
from ._instructions import Keys
from ._memory import FileStorage, Loading, Place, count_of
from ._objects import LAYOUTS, compressed, device, requiring, sparse
from ._refused import RefusedFile, refusal, shown
from ._saved_memory import DIFFERENT_DTYPES, memory_of
from ._source import ALIGNMENT, Source

# the key of the metadata that holds the structure
STRUCTURE = "jaxgrad"

LONGEST_HEADER = 100_000_000

CODES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "BF16": "bfloat16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}
CODE_OF = {name: code for code, name in CODES.items()}


# ---- writing


def encode_tensors(obj):
    """A function that writes an object as safetensors, by a function that takes bytes. Errors as
    for `save`.
    """
    encoder = Encoder()
    structure = encoder.value(obj, ())
    encoder.tie()
    return functools.partial(_write, encoder.arrays, json.dumps(structure))


def _write(arrays: dict[str, np.ndarray], structure: str, write):
    # by the size of an element, so that each tensor begins at a multiple of it
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    header: dict = {"__metadata__": {"format": "pt", STRUCTURE: structure}}
    place = 0
    for name, array in ordered:
        code = CODE_OF[dtypes.from_numpy(array.dtype).name]
        offsets = [place, place + array.nbytes]
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": offsets}
        place += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    write(len(text).to_bytes(8, "little") + text)
    for _, array in ordered:
        write(memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))


def _held(value) -> str:
    """The types that a file of safetensors holds, for the error of another object."""
    advice = "save its state_dict(), or " if hasattr(value, "state_dict") else ""
    return (
        "a file of safetensors holds tensors, numbers, strings, None, dicts, lists and tuples: "
        f'{advice}give format="pt"'
    )


class Encoder:
    """Turns an object into what JSON holds, and collects its tensors.

    arrays: the numbers by name; users: by the key of a memory the tensors that show it.
    """

    def __init__(self):
        self.arrays: dict[str, np.ndarray] = {}
        # what stands for each tensor by its id, and by the key of a memory what shows it
        self.tensors: dict[int, tuple[Tensor, str]] = {}
        self.users: dict[int, list] = {}
        self.open: set[int] = set()

    def value(self, value, path):
        """What stands for a value. path: the keys that lead to it."""
        for kinds, encode in ENCODERS:
            if isinstance(value, kinds):
                return encode(self, value, path)
        raise refusal(value, path, _held(value))

    def encode_number(self, value, path):
        return value.item() if isinstance(value, np.generic) else value

    def encode_complex(self, value, path):
        return {"complex": [value.real, value.imag]}

    def encode_data(self, value, path):
        kind = "bytes" if isinstance(value, bytes) else "bytearray"
        return {kind: value.decode("latin1")}

    def encode_list(self, value, path):
        kinds = {Size: "size", tuple: "tuple", list: "list"}
        kind = next(word for kind, word in kinds.items() if isinstance(value, kind))
        return {kind: self.inside(value, path, enumerate(value), lambda number, item: item)}

    def encode_set(self, value, path):
        return {"set": [self.key(element) for element in value]}

    def encode_dict(self, value, path):
        items = self.inside(value, path, value.items(), lambda key, item: [self.key(key), item])
        if not isinstance(value, OrderedDict):
            return {"counter" if isinstance(value, Counter) else "dict": items}
        encoded = {"ordered": items}
        if hasattr(value, "_metadata"):
            encoded["metadata"] = self.value(value._metadata, (*path, "_metadata"))
        return encoded

    def inside(self, value, path, items, join):
        """The items of a container, each joined with its key."""
        if id(value) in self.open:
            raise ValueError(
                "save(): an object contains itself, which safetensors cannot hold: save it with "
                'format="pt"'
            )
        self.open.add(id(value))
        encoded = [join(key, self.value(item, (*path, key))) for key, item in items]
        self.open.remove(id(value))
        return encoded

    def key(self, key):
        if isinstance(key, tuple):
            return {"tuple": [self.key(item) for item in key]}
        if key is None or isinstance(key, bool | int | float | str | np.generic):
            return self.encode_number(key, ())
        raise TypeError(
            f"save(): a key of a dict is a number or a string, not {type(key).__name__}"
        )

    def encode_dtype(self, value, path):
        return {"dtype": value.name}

    def encode_device(self, value, path):
        return {"device": str(value)}

    def encode_layout(self, value, path):
        return {"layout": value.name}

    # ---- tensors

    def encode_tensor(self, value, path):
        if is_lazy(value):
            raise refusal(value, path, _held(value))
        name, first = self.new_name(path), self.tensors.get(id(value))
        encoded = self.numbers(name, np.asarray(concrete(value, "save")))
        if first is not None:
            return encoded | {"object": first[1]}
        self.tensors[id(value)] = value, name
        if value.requires_grad:
            encoded["requires_grad"] = True
        if isinstance(value, Parameter):
            encoded["parameter"] = True
        memory, place = memory_of(value)
        self.users.setdefault(memory.key, []).append((encoded, memory, place))
        dense = layouts.is_dense(place.size, place.stride)
        if dense and not place.is_contiguous:
            encoded["stride"] = place.stride
        return encoded

    def numbers(self, name, array: np.ndarray):
        """Keep numbers under a name."""
        dtype = dtypes.from_numpy(array.dtype)
        if dtype is dtypes.complex128:  # safetensors has no such dtype
            self.arrays[name] = np.ascontiguousarray(array)[..., None].view(np.float64)
            return {"tensor": name, "pairs": True}
        if dtype.name not in CODE_OF:
            raise TypeError(f'save(): safetensors has no dtype {dtype}: save it with format="pt"')
        self.arrays[name] = array
        return {"tensor": name}

    def new_name(self, path):
        name = ".".join(map(str, path)) or "tensor"
        while name in self.arrays or name == "__metadata__":
            name += "_"
        return name

    def encode_sparse(self, value, path):
        plain = value.detach()
        if is_compressed(value):
            parts = {"compressed": plain._coalesced.indices, "indices": plain._indices_held}
            parts["values"] = plain.values()
        else:
            parts = {"indices": plain._indices(), "values": plain._values()}
        encoded = {
            part: self.numbers(self.new_name((*path, part)), np.asarray(concrete(tensor, "save")))
            for part, tensor in parts.items()
        }
        encoded["size"] = list(value.shape)
        if is_compressed(value):
            encoded["layout"] = value.layout.name
        else:
            encoded["is_coalesced"] = plain.is_coalesced()
        return {"sparse": encoded, "requires_grad": value.requires_grad}

    def encode_array(self, value, path):
        if value.dtype.kind not in "biufc" or not value.dtype.isnative:
            raise refusal(value, path, _held(value))
        return {"array": self.numbers(self.new_name(path), value)}

    def tie(self):
        """Say of tensors that share memory which part of it each shows."""
        for users in self.users.values():
            if len(users) < 2:
                continue
            _, memory, first = users[0]
            for _, _, place in users:
                if place.dtype is not first.dtype:
                    raise RuntimeError(DIFFERENT_DTYPES.format(first.dtype, place.dtype))
            owner = self._owner(users, memory, first.dtype)
            for encoded, _, place in users:
                if encoded["tensor"] != owner:
                    encoded |= {"memory": owner, "offset": place.offset, "stride": place.stride}
                    flags = {"conj": place.is_conj, "neg": place.is_neg}
                    encoded |= {flag: True for flag, is_set in flags.items() if is_set}

    def _owner(self, users, memory, dtype) -> str:
        """The name of a tensor that shows all of a memory, which is added if there is none."""
        for encoded, _, place in users:
            is_whole = np.prod(place.size, dtype=int) == memory.count(dtype)
            if is_whole and place.is_contiguous and not any(place[4:]):
                return encoded["tensor"]
        name = self.new_name((users[0][0]["tensor"], "memory"))
        elements = memory.elements(dtype)
        is_pairs = dtype is dtypes.complex128
        self.arrays[name] = elements[:, None].view(np.float64) if is_pairs else elements
        return name


# the first that fits is taken
ENCODERS = (
    (SparseTensor, Encoder.encode_sparse),
    (Tensor, Encoder.encode_tensor),
    ((type(None), bool, int, float, str), Encoder.encode_number),
    (complex, Encoder.encode_complex),
    (np.generic, Encoder.encode_number),
    ((bytes, bytearray), Encoder.encode_data),
    (dict, Encoder.encode_dict),
    ((list, tuple), Encoder.encode_list),
    (set, Encoder.encode_set),
    (np.ndarray, Encoder.encode_array),
    (dtypes.dtype, Encoder.encode_dtype),
    (devices.device, Encoder.encode_device),
    (devices.layout, Encoder.encode_layout),
)


# ---- reading

# what a structure that jaxgrad did not write may raise
_WRONG = (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError)


def load_tensors(source: Source, map_location):
    """The object in a file of safetensors. Raises RefusedFile for a damaged file."""
    loading = Loading(source, map_location)
    metadata, entries = _header(source)
    try:
        text = metadata.get(STRUCTURE)
        encoded = {"dict": [[name, {"tensor": name}] for name in sorted(entries)]}
        value = Decoder(loading, entries).value(json.loads(text) if text else encoded)
    except RefusedFile:
        raise
    except _WRONG as error:
        raise source.refuse(f"the structure of its tensors is damaged ({error})") from None
    loading.finish()
    source.end_at(source.size)
    return value


def _header(source):
    """The metadata, and for each tensor its dtype, its shape and its place in the file."""
    length = int.from_bytes(source.read(0, 8, "the length of the header"), "little")
    if length > LONGEST_HEADER:
        raise source.refuse(f"its header would have {length} bytes, more than safetensors allows")
    text = source.read(8, length, "the header")
    try:
        header = json.loads(text, object_pairs_hook=_without_duplicates)
        metadata = header.pop("__metadata__", {})
        entries = {name: _entry(source, name, **entry) for name, entry in header.items()}
        metadata.get("")
    except RefusedFile:
        raise
    except _WRONG as error:
        raise source.refuse(f"its header is no header of safetensors: {error}") from None
    begin = place = 8 + length
    for name, (_, _, start, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin + start != place:
            raise source.refuse(f"the bytes of {shown(name)} do not follow those before them")
        place = begin + end
    if place != source.size:
        raise source.refuse(
            f"its tensors end at byte {place}, and the file has {source.size} bytes: it is damaged "
            "or was not written to its end"
        )
    return metadata, {
        name: (dtype, shape, begin + start) for name, (dtype, shape, start, _) in entries.items()
    }


def _without_duplicates(pairs):
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a name occurs twice")
    return mapping


def _entry(source, name, dtype, shape, data_offsets):
    kind = getattr(dtypes, CODES.get(dtype, ""), None)
    if kind is None:
        raise source.refuse(f"jaxgrad has no dtype {shown(dtype)}, which {shown(name)} has")
    start, end = data_offsets
    if not {*map(type, (*shape, start, end))} <= {int}:
        raise source.refuse(f"the shape or the place of {shown(name)} is no list of integers")
    if end - start != count_of(source, shape, kind.itemsize) * kind.itemsize:
        raise source.refuse(f"the shape of {shown(name)} does not fit its bytes")
    return kind, tuple(shape), start, end


class Decoder:
    """Makes the object that a structure describes.

    loading: has the numbers by name; entries: the dtype and the shape of each.
    """

    def __init__(self, loading: Loading, entries: dict):
        self.loading, self.source, self.entries = loading, loading.source, entries
        self.tensors: dict[str, Tensor] = {}
        self.keys = Keys(self.source.refuse)

    def value(self, encoded):
        if not isinstance(encoded, dict):
            return encoded
        (kind, value), *further = encoded.items()
        return DECODERS[kind](self, value, **dict(further))

    def values(self, value):
        return [self.value(item) for item in value]

    def key(self, value):
        """A key of a dict, or an element of a set, after a check."""
        key = self.value(value)
        self.keys.parts_of(key)
        return key

    def make_dict(self, value):
        return {self.key(key): self.value(item) for key, item in value}

    def make_ordered(self, value, metadata=None):
        dictionary = OrderedDict(self.make_dict(value))
        if metadata is not None:
            dictionary._metadata = self.value(metadata)
        return dictionary

    def make_layout(self, value):
        return {layout.name: layout for layout in LAYOUTS.values()}[value]

    # ---- tensors

    def whole(self, name: str, pairs: bool = False) -> tuple[FileStorage, Place]:
        """The numbers of a name, and the place that is all of them."""
        dtype, shape, offset = self.entries[name]
        size = count_of(self.source, shape, dtype.itemsize) * dtype.itemsize
        if pairs:
            if dtype is not dtypes.float64 or shape[-1:] != (2,):
                raise ValueError(f"the numbers of {shown(name)} are no pairs")
            dtype, shape = dtypes.complex128, shape[:-1]
        read = functools.partial(self.source.array, offset, size, f"the tensor {shown(name)}")
        storage = self.loading.storage((name, pairs), dtype, size // dtype.itemsize, "cpu", read)
        return storage, storage.place(self.source, dtype, 0, shape, layouts.contiguous(shape))

    def make_tensor(
        self,
        name,
        pairs=False,
        requires_grad=False,
        parameter=False,
        stride=None,
        memory=None,
        offset=0,
        conj=False,
        neg=False,
        object=None,
    ):
        storage, place = self.whole(name, pairs)
        if object is not None and _agree(storage, place, *self.whole(object, pairs)):
            return self.tensors[object]
        stride = place.stride if stride is None else tuple(stride)
        if not {*map(type, (offset, *stride))} <= {int}:
            raise ValueError(f"the strides of {shown(name)} are no integers")
        if memory is not None:
            shared, _ = self.whole(memory, pairs)
            part = shared.place(
                self.source, place.dtype, offset, place.size, stride, bool(conj), bool(neg)
            )
            if _agree(storage, place, shared, part):
                storage, place = shared, part
        tensor = self.tensors[name] = storage.tensor(self.source, place)
        if layouts.is_dense(place.size, stride):
            hold(tensor, held(tensor), with_strides(abstract_value(tensor), stride))
        requiring(self.source, tensor, bool(requires_grad))
        return mark(tensor, Parameter, bool(requires_grad)) if parameter else tensor

    def make_sparse(self, value, requires_grad=False):
        if "layout" in value:
            *parts, size = map(
                self.value, map(value.get, ("compressed", "indices", "values", "size"))
            )
            layout = self.make_layout(value["layout"])
            tensor = compressed(self.source, self.loading, parts, size, layout)
            return requiring(self.source, tensor, bool(requires_grad))
        names = "indices", "values", "size", "is_coalesced"
        parts = [self.value(value[part]) for part in names]
        tensor = sparse(self.source, self.loading, *parts)
        return requiring(self.source, tensor, bool(requires_grad))

    def make_array(self, value):
        (_, name), *further = value.items()
        storage, place = self.whole(name, **dict(further))
        return np.array(storage.values(place))


def _agree(first: FileStorage, place: Place, second: FileStorage, other: Place) -> bool:
    """Whether two tensors have the same bytes."""
    pair = [
        np.ascontiguousarray(storage.values(where)).reshape(-1).view(np.uint8)
        for storage, where in ((first, place), (second, other))
    ]
    return place.size == other.size and place.dtype is other.dtype and np.array_equal(*pair)


DECODERS = {
    "dict": Decoder.make_dict,
    "counter": lambda self, value: Counter(self.make_dict(value)),
    "ordered": Decoder.make_ordered,
    "list": Decoder.values,
    "tuple": lambda self, value: tuple(self.values(value)),
    "size": lambda self, value: Size(self.values(value)),
    "set": lambda self, value: set(map(self.key, value)),
    "complex": lambda self, value: complex(*value),
    "bytes": lambda self, value: value.encode("latin1"),
    "bytearray": lambda self, value: bytearray(value.encode("latin1")),
    "dtype": lambda self, value: {dtype.name: dtype for dtype in dtypes.ALL}[value],
    "device": lambda self, value: device(self.source, value),
    "layout": Decoder.make_layout,
    "tensor": Decoder.make_tensor,
    "sparse": Decoder.make_sparse,
    "array": Decoder.make_array,
}
