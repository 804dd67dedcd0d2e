"""Reading and writing files, as torch.serialization.

`load` reads the files of PyTorch and those of safetensors, and executes nothing of a file:
`_instructions.py` interprets the few instructions that make data. With `weights_only=False`
`_unpickler.py` reads files that need other instructions.
"""

from __future__ import annotations

import functools
import mmap as mmap_module
import os
import warnings
from collections.abc import Callable
from typing import TypeAlias

from ..core.device import device
from ..core.tracebacks import shows_users_frames, users_stacklevel
from ..frontend.storages import TYPES as STORAGES
from ..frontend.storages import UntypedStorage
from ..late import LateModule
from ..names.missing import missing_in
from . import _options
from ._encoder import MAGIC, SIZES, VERSION, encode_archive, encode_stream
from ._options import LoadEndianness as LoadEndianness
from ._options import get_crc32_options as get_crc32_options
from ._options import get_default_load_endianness as get_default_load_endianness
from ._options import get_default_mmap_options as get_default_mmap_options
from ._options import set_crc32_options as set_crc32_options
from ._options import set_default_load_endianness as set_default_load_endianness
from ._options import set_default_mmap_options as set_default_mmap_options
from ._options import skip_data as skip_data
from ._packages import _cpu_deserialize as _cpu_deserialize
from ._packages import _cpu_tag as _cpu_tag
from ._packages import _package_registry as _package_registry
from ._packages import default_restore_location as default_restore_location
from ._packages import location_tag as location_tag
from ._packages import register_package as register_package
from ._refused import EndedFile, MissingFolder, RefusedFile, shown
from ._replace import replacing
from ._safe_classes import add_safe_globals as add_safe_globals
from ._safe_classes import clear_safe_globals as clear_safe_globals
from ._safe_classes import get_safe_globals as get_safe_globals
from ._safe_classes import safe_globals as safe_globals
from ._source import opened
from ._tensor_files import encode_tensors, load_tensors
from ._torch_files import Archive, Stream
from ._zip_files import _open_zipfile_reader as _open_zipfile_reader
from ._zip_files import _open_zipfile_writer as _open_zipfile_writer

objects = LateModule("jaxgrad.serialization._objects")
tar_files = LateModule("jaxgrad.serialization._tar_files")

# what PyTorch's files begin with, and the sizes and words that they use
MAGIC_NUMBER, PROTOCOL_VERSION = MAGIC, VERSION
SHORT_SIZE, INT_SIZE, LONG_SIZE = SIZES.values()
DEFAULT_PROTOCOL, STORAGE_KEY_SEPARATOR = 2, ","
MAP_SHARED, MAP_PRIVATE = getattr(mmap_module, "MAP_SHARED", None), _options.load.mmap_flags

ENCODINGS = ("ascii", "utf-8", "utf8", "latin1", "latin-1", "bytes")


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
    format: "pt" for a file that `torch.load` of PyTorch reads, with `weights_only=True` if it holds
    only data; or "safetensors", the default for a name that ends in .safetensors.
    pickle_protocol: the version that the file names; its instructions are those of version 2.
    pickle_module: a module such as cloudpickle, whose `Pickler` says how objects that are no data
    are made (`reducer_override`, `dispatch_table`), and whose `dumps` writes those that cannot be
    written otherwise, as functions without a name; jaxgrad writes all other instructions itself.
    _use_new_zipfile_serialization: False for the format of PyTorch before 1.6.
    _disable_byteorder_record: leave out the order of the bytes of numbers.

    Tensors that share memory share it when they are loaded. `safetensors.torch.load_file` reads a
    dict of tensors as it is. In nested dicts, as in the `state_dict()` of an optimizer, tensors
    have names like `state.0.exp_avg` there. A file of the format "pt" holds the whole memory of a
    view, as that of PyTorch does.

    Raises TypeError for other objects (functions without a name, open files), with their path in
    `obj`, RuntimeError in a trace and where the folder of the path does not exist,
    AttributeError for a file without a method `write`, and ValueError for a version above 5.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> jaxgrad.save({"weight": jaxgrad.ones(2), "epoch": 3}, path)
    >>> jaxgrad.load(path)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if format not in (None, "pt", "safetensors"):
        raise ValueError(f'save(): format is "safetensors" or "pt", not {format!r}')
    is_path = _is_path(f)
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(
            "save(): expected 'f' to be string, path, or a file-like object with a 'write' "
            f"attribute, not {type(f).__name__}"
        )
    if format is None and is_path and os.fspath(f).endswith(".safetensors"):
        format = "safetensors"
    if format == "safetensors":
        write = encode_tensors(obj)
    elif _use_new_zipfile_serialization:
        has_byte_order = not _disable_byteorder_record
        write = encode_archive(obj, pickle_protocol, has_byte_order, pickle_module)
    elif _options.of_thread.skips_data:
        raise RuntimeError(
            "Cannot use skip_data=True with _use_new_zipfile_serialization=False: the format "
            "before PyTorch 1.6 has no room without elements"
        )
    else:
        write = encode_stream(obj, pickle_protocol, pickle_module)
    if not is_path:
        write(_all_of(f))
        if hasattr(f, "flush"):
            f.flush()
        return
    path = os.path.realpath(f)
    if not os.path.isdir(os.path.dirname(path)):
        raise MissingFolder(f"Parent directory {os.path.dirname(path)} does not exist.")
    with replacing(path) as file:
        write(file.write)


@shows_users_frames
def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only: bool | None = None,
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
    weights_only: with True, the default, no code of a file is executed: what is no tensor, number,
    text or container of these is refused by its name. `add_safe_globals` allows further classes and
    functions. With False a file that holds other objects is read by Python's module pickle, with a
    warning: it runs what the file names, so do this only with a file that you trust.
    mmap: True maps the file at a path, so that only what is used is read; the file must not change
    as long as the tensors exist. encoding: of strings of Python 2, "bytes" to leave them as they
    are. pickle_module: a module whose `Unpickler` reads the file, for which `weights_only` is
    False.

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
    if pickle_module is not None and weights_only:
        raise RuntimeError(
            "Can not safely load weights when explicit pickle_module is specified: leave it out, "
            "or weights_only=True"
        )
    if weights_only is None:
        weights_only = pickle_module is None
    if encoding.lower() not in ENCODINGS:
        raise ValueError(f"load(): encoding is one of {', '.join(ENCODINGS)}, not {encoding!r}")
    with opened(f, _options.load.mmap if mmap is None else mmap) as source:
        begin = source.read(0, min(source.size, 512), "the file")
        # first, since the length of a header may begin with any byte
        if begin[8:9] == b"{":
            return load_tensors(source, map_location)
        kind = _kind_of(source, begin, weights_only)
        files = functools.partial(kind, source, map_location, encoding)
        return _load(files, weights_only, pickle_module)


def _kind_of(source, begin, weights_only: bool = True):
    """The class that reads a file of PyTorch, by the first bytes of the file."""
    if begin.startswith(b"PK\3\4"):
        return Archive
    if begin.startswith(b"\x80"):
        return Stream
    if begin[257:262] == b"ustar" and weights_only:
        raise source.refuse(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar format, which "
            "PyTorch wrote before 0.1.10: load it with weights_only=False if you trust it, and "
            "save it again"
        )
    if begin[257:262] == b"ustar":
        return tar_files.Tar
    raise _unknown(source, begin)


def _load(files, weights_only: bool, pickle_module):
    """The object of a file of PyTorch; `files` opens it."""
    reason = None
    if pickle_module is None:
        try:
            return files().load()
        except RefusedFile as error:
            if weights_only:
                raise
            reason = error
    opened_file = _opened_again(files, reason)
    warnings.warn(
        "load(weights_only=False): the file holds more than data, so the module pickle reads it, "
        "which runs what a file names: do this only with a file that you trust",
        stacklevel=users_stacklevel(),
    )
    return opened_file.load_by_names(pickle_module)


def _opened_again(files, reason):
    """The file for a second reading; `reason` is why it was not read."""
    try:
        return files()
    except RefusedFile:
        if reason is None:
            raise
        raise reason from None


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """Return the full names of the functions and classes in a file that `load` does not make with
    `weights_only=True`.

    f: as for `load`. Raises RuntimeError for anything but a file of `save`.

    >>> import argparse, io
    >>> file = io.BytesIO()
    >>> jaxgrad.save(argparse.Namespace(rate=1), file)
    >>> _ = file.seek(0)
    >>> jaxgrad.serialization.get_unsafe_globals_in_checkpoint(file)
    ['argparse.Namespace']
    """
    with opened(f, False) as source:
        begin = source.read(0, min(source.size, 512), "the file")
        files = _kind_of(source, begin)(source, "cpu", "utf-8")
        names = (name.rpartition(".") for name in files.names())
        find = files.objects.find
        unsafe = [(module, name) for module, _, name in names if find(module, name) is None]
        return [f"{module.replace('__builtin__', 'builtins')}.{name}" for module, name in unsafe]


class SourceChangeWarning(Warning):
    """The warning of PyTorch before 1.6 where the code of a class has changed since it was saved.
    jaxgrad keeps no code in files, and gives none.
    """


def normalize_storage_type(storage_type: type) -> type:
    """Return the class of storages with the name of a class.

    >>> jaxgrad.serialization.normalize_storage_type(jaxgrad.FloatStorage) is jaxgrad.FloatStorage
    True
    """
    return STORAGES.get(storage_type.__name__, storage_type)


def check_module_version_greater_or_equal(
    module, req_version_tuple: tuple, error_if_malformed: bool = True
) -> bool:
    """Return whether a module has a version or a later one.

    req_version_tuple: numbers or words, as many as are compared. Raises RuntimeError for a version
    of other words, or warns and returns True without `error_if_malformed`.

    >>> import types
    >>> module = types.SimpleNamespace(__version__="1.10.2")
    >>> jaxgrad.serialization.check_module_version_greater_or_equal(module, (1, 9))
    True
    """
    try:
        words = module.__version__.split(".")
        pairs = zip(req_version_tuple, words, strict=False)
        version = tuple(type(required)(word) for required, word in pairs)
    except Exception as error:
        message = f"'{module}' module version string is malformed: {module.__version__!r}"
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}; it is taken to be new enough", stacklevel=2)
        return True
    return version >= tuple(req_version_tuple)


def _check_seekable(f) -> bool:
    """Whether a file has a position that can be set. Raises AttributeError where it has none."""
    for name in ("seek", "tell"):
        if not hasattr(f, name):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute {name!r}. You can only torch.load "
                "from a file that is seekable: put its bytes into an io.BytesIO"
            )
    f.seek(f.tell())
    return True


def _maybe_decode_ascii(text: bytes | str) -> str:
    return text.decode("ascii") if isinstance(text, bytes) else text


def _is_path(f) -> bool:
    return isinstance(f, str | os.PathLike)


def _is_zipfile(f) -> bool:
    """Whether a binary file is an archive, as its first bytes say; its position stays."""
    start = f.tell()
    begin = f.read(4)
    f.seek(start)
    return begin == b"PK\3\4"


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
        return EndedFile(f"{source.name}: the file is empty")
    return source.refuse(
        f"it is no file of torch.save and no safetensors file: it begins with {shown(begin[:16])}"
    )


# what `map_location` may be, for annotations
MAP_LOCATION: TypeAlias = (
    Callable[[UntypedStorage, str], UntypedStorage] | device | str | dict[str, str] | None
)


def _get_layout(name: str):
    """The layout of a name in a pickle, as "torch.strided"."""
    return objects.LAYOUTS[name]


__getattr__ = missing_in(__name__)
