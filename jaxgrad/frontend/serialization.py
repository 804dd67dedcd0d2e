"""Saving and loading, as safetensors: numbers and names, and nothing that could run.

Tensors are in the file under dotted names, and a flat dict of tensors is what every reader of
safetensors takes for one. What holds them together, and all that is no tensor, is JSON among the
file's metadata.
"""

from __future__ import annotations

import json
import os
import secrets

import numpy as np
import safetensors
import safetensors.numpy

from ..core import dtypes
from ..core.tracebacks import api_boundary
from ..tape.tensor import Tensor, concrete
from . import tensor_data

# the entry of the metadata that says what the file holds
STRUCTURE = "jaxgrad"

# how files begin that torch.save has written: an archive, and the format before that
OF_TORCH = (b"PK\x03\x04", b"\x80\x02", b"\x80\x04")

ADVICE = (
    "jaxgrad reads and writes safetensors alone, since to load PyTorch's own format can run any "
    "code. Where PyTorch is installed, write the file anew with safetensors.torch.save_file"
)

# what reading a file of another format may raise
_WRONG = (
    safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError
)  # fmt: skip


@api_boundary
def save(obj, f):
    """Write tensors, numbers, strings and None, in dicts, lists and tuples of any depth, as
    safetensors.

    f: a path, whose file is replaced once all is written, or a binary file to write to. A dict of
    tensors is read by `safetensors.torch.load_file` as it is; of nested ones, as an optimizer's
    `state_dict()` is, tensors have names like `state.0.exp_avg`. Raises TypeError for other
    objects, and says where they are.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> jaxgrad.save({"weight": jaxgrad.ones(2), "epoch": 3}, path)
    >>> jaxgrad.load(path)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    tensors: dict[str, np.ndarray] = {}
    metadata = {"format": "pt", STRUCTURE: json.dumps(_told(obj, (), tensors))}
    data = safetensors.numpy.save(tensors, metadata)
    if hasattr(f, "write"):
        f.write(data)
    else:
        _replace(os.path.realpath(f), data)


@api_boundary
def load(f, map_location=None, *, weights_only: bool = True, mmap: bool | None = None):
    """What `save` has written to a path or a binary file, and of any other safetensors file a dict
    of its tensors.

    map_location: the device that tensors are moved to. weights_only, mmap: accepted, and without a
    meaning: nothing in such a file can run. Raises RuntimeError for a file of another format, one
    of `torch.save` too.
    """
    data = f.read() if hasattr(f, "read") else _bytes_of(f)
    name = f if isinstance(f, str | os.PathLike) else getattr(f, "name", "the file")
    try:
        arrays = _arrays(data)
        told = _metadata(data).get(STRUCTURE)
        told = json.loads(told) if told else {"dict": [[n, {"tensor": n}] for n in arrays]}
        return _made(told, arrays, map_location)
    except _WRONG as error:
        by = ", but looks like one of torch.save" if data.startswith(OF_TORCH) else ""
        raise RuntimeError(f"{name} is no safetensors file{by} ({error}): {ADVICE}") from None


# writing


def _told(value, path, tensors):
    """What JSON says of a value; tensors go into `tensors`, under a name made of the way there."""
    if isinstance(value, Tensor):
        return _of_tensor(value, path, tensors)
    if isinstance(value, dict):
        return {"dict": [[_key(k), _told(v, (*path, k), tensors)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        items = [_told(item, (*path, number), tensors) for number, item in enumerate(value)]
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


def _of_tensor(tensor, path, tensors):
    name = ".".join(map(str, path)) or "tensor"
    while name in tensors or name == "__metadata__":
        name += "_"
    array = np.asarray(concrete(tensor, "save"), order="C")
    told = {"tensor": name}
    if array.dtype == np.complex128:  # which the format lacks
        array, told["pairs"] = array[..., None].view(np.float64), True
    if tensor.requires_grad:
        told["requires_grad"] = True
    tensors[name] = array
    return told


def _key(key):
    if key is None or isinstance(key, bool | int | float | str):
        return key
    if isinstance(key, tuple):
        return {"tuple": [_key(item) for item in key]}
    raise TypeError(f"save(): a key of a dict is a number or a string, not {type(key).__name__}")


def _replace(path, data):
    """Write a file whole, or leave what is there."""
    begun = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(begun, "xb") as file:
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
    for name, told in found:
        kind = told["dtype"]
        kind = kinds.get(kind) or words[kind[0]] + kind[1:]
        numbers = np.frombuffer(told["data"], getattr(dtypes, kind).numpy)
        arrays[name] = numbers.reshape(told["shape"])
    return dict(sorted(arrays.items()))


def _metadata(data) -> dict[str, str]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]).get("__metadata__", {})


def _made(told, arrays, place):
    """The value that JSON tells of."""
    if not isinstance(told, dict):
        return told
    (kind, value), *further = told.items()
    if kind == "tensor":
        return _tensor(arrays[value], dict(further), place)
    if kind == "dict":
        return {_made(k, arrays, place): _made(item, arrays, place) for k, item in value}
    if kind == "complex":
        return complex(*value)
    if kind == "dtype":
        return dtypes.as_dtype(getattr(dtypes, value))
    return {"list": list, "tuple": tuple}[kind]([_made(item, arrays, place) for item in value])


def _tensor(array, told, place):
    if told.get("pairs"):
        array = array.view(np.complex128)[..., 0]
    made = tensor_data.tensor(array, requires_grad=told.get("requires_grad", False))
    return made if place is None else made.to(place)
