"""Saving and loading as safetensors, a format that holds numbers and names but no code.

Tensors are in the file under dotted names, so every reader of safetensors reads a flat dict of
tensors. JSON in the metadata of the file holds the structure and the other values.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil

import numpy as np
import safetensors
import safetensors.numpy

from ..core import dtypes
from ..core.tracebacks import api_boundary
from ..tape.tensor import Tensor, concrete
from . import tensor_data

# the key of the metadata that holds the structure
STRUCTURE = "jaxgrad"

# the first bytes of files of torch.save: an archive, and the formats before it
OF_TORCH = (b"PK\x03\x04", b"\x80\x02", b"\x80\x04")

ADVICE = (
    "jaxgrad reads and writes only safetensors, because loading PyTorch's own format can run any "
    "code. Where PyTorch is installed, write the file again with safetensors.torch.save_file"
)

# reading a file of another format may raise these
_WRONG = (
    safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError
)  # fmt: skip


@api_boundary
def save(obj, f):
    """Write an object to a safetensors file.

    obj: tensors of any shape and dtype, numbers, strings, dtypes and None, in dicts, lists and
    tuples of any depth.
    f: a path, or a binary file. A file at the path is replaced after the new one is complete.

    `safetensors.torch.load_file` reads a dict of tensors as it is. In nested dicts, as in the
    `state_dict()` of an optimizer, tensors have names like `state.0.exp_avg`.

    Raises TypeError for other objects, with their path in `obj`, and RuntimeError in a trace.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> jaxgrad.save({"weight": jaxgrad.ones(2), "epoch": 3}, path)
    >>> jaxgrad.load(path)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    tensors: dict[str, np.ndarray] = {}
    metadata = {"format": "pt", STRUCTURE: json.dumps(_encode(obj, (), tensors))}
    data = safetensors.numpy.save(tensors, metadata)
    if hasattr(f, "write"):
        f.write(data)
    else:
        _replace(os.path.realpath(f), data)


@api_boundary
def load(f, map_location=None, *, weights_only: bool = True, mmap: bool | None = None):
    """Read an object that `save` wrote, or the dict of tensors of any other safetensors file.

    f: a path or a binary file. map_location: the device of the tensors, the default one if it is
    None. weights_only, mmap: accepted without effect, since such a file holds no code.

    Tensors keep their shapes, dtypes and `requires_grad`. Raises RuntimeError for a file of another
    format, such as one of `torch.save`.

    >>> import io
    >>> file = io.BytesIO()
    >>> jaxgrad.save([jaxgrad.arange(2), "text"], file)
    >>> _ = file.seek(0)
    >>> jaxgrad.load(file)
    [tensor([0, 1]), 'text']
    """
    data = f.read() if hasattr(f, "read") else _bytes_of(f)
    name = f if isinstance(f, str | os.PathLike) else getattr(f, "name", "the file")
    try:
        arrays = _arrays(data)
        text = _metadata(data).get(STRUCTURE)
        encoded = json.loads(text) if text else {"dict": [[n, {"tensor": n}] for n in arrays]}
        return _decode(encoded, arrays, map_location)
    except _WRONG as error:
        by = ", but looks like one of torch.save" if data.startswith(OF_TORCH) else ""
        raise RuntimeError(f"{name} is no safetensors file{by} ({error}): {ADVICE}") from None


# writing


def _encode(value, path, tensors):
    """A value for JSON; adds its tensors to `tensors`, under names from their paths."""
    if isinstance(value, Tensor):
        return _encode_tensor(value, path, tensors)
    if isinstance(value, dict):
        items = value.items()
        return {"dict": [[_encode_key(k), _encode(v, (*path, k), tensors)] for k, v in items]}
    if isinstance(value, list | tuple):
        items = [_encode(item, (*path, number), tensors) for number, item in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": items}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, dtypes.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    where = "".join(f"[{key!r}]" for key in path)
    advice = ": save its state_dict()" if hasattr(value, "state_dict") else ""
    raise TypeError(
        f"save(): obj{where} is of type {type(value).__name__}, and a file holds tensors, numbers, "
        f"strings, None, dicts, lists and tuples{advice}"
    )


def _encode_tensor(tensor, path, tensors):
    name = ".".join(map(str, path)) or "tensor"
    while name in tensors or name == "__metadata__":
        name += "_"
    array = np.asarray(concrete(tensor, "save"), order="C")
    encoded = {"tensor": name}
    if array.dtype == np.complex128:  # safetensors has no such dtype
        array, encoded["pairs"] = array[..., None].view(np.float64), True
    if tensor.requires_grad:
        encoded["requires_grad"] = True
    tensors[name] = array
    return encoded


def _encode_key(key):
    if key is None or isinstance(key, bool | int | float | str):
        return key
    if isinstance(key, tuple):
        return {"tuple": [_encode_key(item) for item in key]}
    raise TypeError(f"save(): a key of a dict is a number or a string, not {type(key).__name__}")


def _replace(path, data):
    """Replace a file as a whole and keep its mode; if writing fails, the old file stays."""
    begun = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(begun, "xb") as file:
            if os.path.exists(path):
                shutil.copymode(path, begun)  # before there is anything to read
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(begun, path)
    except BaseException:
        if os.path.exists(begun):
            os.remove(begun)
        raise


# reading


def _bytes_of(path) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _arrays(data) -> dict[str, np.ndarray]:
    found = safetensors.deserialize(data)
    kinds = {"BOOL": "bool", "BF16": "bfloat16", "C64": "complex64"}
    words = {"F": "float", "I": "int", "U": "uint"}
    arrays = {}
    for name, entry in found:
        kind = entry["dtype"]
        kind = kinds.get(kind) or words[kind[0]] + kind[1:]
        numbers = np.frombuffer(entry["data"], getattr(dtypes, kind).numpy)
        arrays[name] = numbers.reshape(entry["shape"])
    return dict(sorted(arrays.items()))


def _metadata(data) -> dict[str, str]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]).get("__metadata__", {})


def _decode(encoded, arrays, device):
    """The value that `_encode` encoded."""
    if not isinstance(encoded, dict):
        return encoded
    (kind, value), *further = encoded.items()
    if kind == "tensor":
        return _decode_tensor(arrays[value], dict(further), device)
    if kind == "dict":
        return {_decode(k, arrays, device): _decode(item, arrays, device) for k, item in value}
    if kind == "complex":
        return complex(*value)
    if kind == "dtype":
        return dtypes.as_dtype(getattr(dtypes, value))
    return {"list": list, "tuple": tuple}[kind]([_decode(item, arrays, device) for item in value])


def _decode_tensor(array, flags, device):
    if flags.get("pairs"):
        array = array.view(np.complex128)[..., 0]
    made = tensor_data.from_numpy(array)
    made = made if device is None else made.to(device)
    return made.requires_grad_(flags.get("requires_grad", False))
