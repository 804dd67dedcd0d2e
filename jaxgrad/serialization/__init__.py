"""Reading and writing files, as torch.serialization.

`load` reads the files of PyTorch and those of safetensors, and executes nothing of a file:
`_instructions.py` interprets the few instructions that make data. With `weights_only=False`
`_unpickler.py` reads files that need other instructions.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import TypeAlias

from ..core.device import device
from ..core.tracebacks import shows_users_frames, users_stacklevel
from ..frontend.storages import UntypedStorage
from ..names.missing import missing_in
from ._encoder import encode_archive
from ._refused import RefusedFile, shown
from ._replace import replacing
from ._safe_classes import add_safe_globals as add_safe_globals
from ._safe_classes import clear_safe_globals as clear_safe_globals
from ._safe_classes import get_safe_globals as get_safe_globals
from ._safe_classes import safe_globals as safe_globals
from ._source import opened
from ._tensor_files import encode_tensors, load_tensors
from ._torch_files import Archive, Stream

# names of files that PyTorch's users give the format of PyTorch
ENDINGS = (".pt", ".pth")

ENCODERS = {"safetensors": encode_tensors, "pt": encode_archive}

ENCODINGS = ("ascii", "utf-8", "utf8", "latin1", "latin-1")


@shows_users_frames
def save(
    obj,
    f,
    pickle_module=None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    format: str | None = None,
):
    """Write an object to a file.

    obj: tensors of any shape and dtype, numbers, strings, bytes, dtypes, devices, sizes and None,
    in dicts, lists, tuples and sets of any depth; NumPy's arrays. In the format "pt" any object
    that Python can pickle too, such as a module or an optimizer: `load` reads it with
    `weights_only=False`.
    f: a path, or a binary file. A file at the path is replaced after the new one is complete and on
    the disk; whatever interrupts that, the old one stays as it is.
    format: "safetensors", or "pt" for a file that `torch.load` of PyTorch reads, also with
    `weights_only=True`. By default "pt" for a name that ends in .pt or .pth, and for an object that
    "safetensors" does not hold; else "safetensors".
    pickle_protocol: has no effect. pickle_module, _use_new_zipfile_serialization: must be the
    defaults.

    Tensors that share memory share it when they are loaded. `safetensors.torch.load_file` reads a
    dict of tensors as it is. In nested dicts, as in the `state_dict()` of an optimizer, tensors
    have names like `state.0.exp_avg` there. A file of the format "pt" holds the whole memory of a
    view, as that of PyTorch does.

    Raises TypeError for other objects (functions without a name, open files), with their path in
    `obj`, and RuntimeError in a trace.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> jaxgrad.save({"weight": jaxgrad.ones(2), "epoch": 3}, path)
    >>> jaxgrad.load(path)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if getattr(pickle_module, "__name__", "pickle") != "pickle":  # PyTorch's default by its name
        raise RuntimeError("save(): jaxgrad writes files itself: leave out pickle_module=")
    if not _use_new_zipfile_serialization:
        raise RuntimeError(
            "save(): jaxgrad does not write the format of PyTorch before 1.6: leave out "
            "_use_new_zipfile_serialization=False"
        )
    if format is not None and format not in ENCODERS:
        raise ValueError(f'save(): format is "safetensors" or "pt", not {format!r}')
    write = ENCODERS[format](obj) if format else _encoded(obj, f)
    if hasattr(f, "write"):
        write(_all_of(f))
        return
    with replacing(os.path.realpath(f)) as file:
        write(file.write)


@shows_users_frames
def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    encoding: str = "utf-8",
):
    """Read an object from a file of PyTorch, of `save`, or the dict of tensors of any other
    safetensors file.

    f: a path, or a binary file that is read from its position on. What it holds decides how it is
    read, not its name.
    map_location: a device of all tensors; a dict of devices by those in the file, as in
    `{"cuda:1": "cuda:0"}`; or a function of a storage and its device in the file, which returns the
    storage itself (for the CPU), its `cuda(index)`, or None. By default tensors go to the device in
    the file, and those that the file has on a CPU to the default device.
    weights_only: with True no code of a file is executed: what is no tensor, number, text or
    container of these is refused by its name. `add_safe_globals` allows further classes of data.
    With False an archive that holds other objects is read by Python's module pickle, with a
    warning: it runs what the file names, so do this only with a file that you trust.
    mmap: True maps the file at a path, so that only what is used is read; the file must not change
    as long as the tensors exist. encoding: of strings of Python 2. pickle_module: must be None.

    Tensors keep their shapes, strides, dtypes and `requires_grad`; parameters stay parameters;
    tensors that share memory in the file share it. Raises RuntimeError (an
    `UnpicklingError` of the module pickle too) for a file that is damaged or holds something else.

    >>> import io
    >>> file = io.BytesIO()
    >>> jaxgrad.save([jaxgrad.arange(2), "text"], file)
    >>> _ = file.seek(0)
    >>> jaxgrad.load(file)
    [tensor([0, 1]), 'text']
    """
    if pickle_module is not None:
        raise RuntimeError(
            "Can not safely load weights when explicit picklers are provided: jaxgrad reads files "
            "itself, so leave out pickle_module="
        )
    if encoding.lower() not in ENCODINGS:
        raise ValueError(f"load(): encoding is one of {', '.join(ENCODINGS)}, not {encoding!r}")
    with opened(f, bool(mmap)) as source:
        begin = source.read(0, min(source.size, 512), "the file")
        # first, since the length of a header may begin with any byte
        if begin[8:9] == b"{":
            return load_tensors(source, map_location)
        if begin.startswith(b"PK\3\4"):
            archive = functools.partial(Archive, source, map_location, encoding)
            return _load_archive(archive, weights_only)
        if begin.startswith(b"\x80"):
            return Stream(source, map_location, encoding).load()
        raise _unknown(source, begin)


def _encoded(obj, f):
    """A function that writes an object in the format that the name of a file and the object ask
    for.
    """
    name = f if isinstance(f, str | os.PathLike) else getattr(f, "name", "")
    if str(name).endswith(ENDINGS):
        return encode_archive(obj)
    try:
        return encode_tensors(obj)
    except TypeError:
        return encode_archive(obj)


def _load_archive(archive, weights_only: bool):
    """The object of an archive; `archive` opens it."""
    try:
        return archive().load()
    except RefusedFile:
        if weights_only:
            raise
    warnings.warn(
        "load(weights_only=False): the file holds more than data, so the module pickle reads it, "
        "which runs what a file names: do this only with a file that you trust",
        stacklevel=users_stacklevel(),
    )
    return archive().load_by_names()


def _all_of(file):
    """A function that writes to a file, also where its `write` takes less than it gets."""

    def write(data):
        done = file.write(data)
        while isinstance(done, int) and 0 < done < len(data):
            data = data[done:]
            done = file.write(data)

    return write


def _unknown(source, begin) -> RefusedFile:
    if not begin:
        return source.refuse("the file is empty")
    if begin[257:262] == b"ustar":
        return source.refuse(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar format, which "
            "PyTorch wrote before 0.1.10: load it and save it again with PyTorch"
        )
    return source.refuse(
        f"it is no file of torch.save and no safetensors file: it begins with {shown(begin[:16])}"
    )


# what `map_location` may be, for annotations
MAP_LOCATION: TypeAlias = (
    Callable[[UntypedStorage, str], UntypedStorage] | device | str | dict[str, str] | None
)

__getattr__ = missing_in(__name__)
