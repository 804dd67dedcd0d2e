"""What programs set for files: whether their elements are written, and how files are read."""

from __future__ import annotations

import enum
import mmap
import threading


class LoadEndianness(enum.Enum):
    """The order of the bytes of numbers in a file that does not say it.

    >>> jaxgrad.serialization.LoadEndianness.BIG.name
    'BIG'
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class load:
    """How `jaxgrad.load` reads files. mmap: the default of its argument; endianness: a
    `LoadEndianness` or None; mmap_flags: how files are mapped.
    """

    # before `mmap`, which hides the module in this block
    mmap_flags = getattr(mmap, "MAP_PRIVATE", None)
    mmap = False
    endianness = None
    calculate_storage_offsets = False


class save:
    """How `jaxgrad.save` writes files. compute_crc32: whether entries of archives have a checksum;
    storage_alignment: storages begin at a multiple of this number of bytes.
    """

    compute_crc32 = True
    use_pinned_memory_for_d2h = False
    storage_alignment = 64


class _OfThread(threading.local):
    """skips_data: whether files have zeros in place of elements, and tensors that are read any."""

    skips_data = False


of_thread = _OfThread()


class skip_data:
    """A block in which `save` leaves room for the elements of tensors without writing them, and
    `load` makes tensors with any elements.

    materialize_fake_tensors: has no effect, since there are no fake tensors.

    >>> import io
    >>> file = io.BytesIO()
    >>> with jaxgrad.serialization.skip_data():
    ...     jaxgrad.save(jaxgrad.ones(2), file)
    >>> _ = file.seek(0)
    >>> jaxgrad.load(file)
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self.before, of_thread.skips_data = of_thread.skips_data, True

    def __exit__(self, *exception):
        of_thread.skips_data = self.before


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether `save` computes a checksum of each entry of an archive, the default. Without
    it PyTorch and jaxgrad read the file, and other programs for zip files may not.
    """
    save.compute_crc32 = compute_crc32


def get_crc32_options() -> bool:
    """Return whether `save` computes checksums.

    >>> jaxgrad.serialization.get_crc32_options()
    True
    """
    return save.compute_crc32


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose the order of the bytes in files that do not say it; None is that of this machine.

    Raises TypeError for anything but a `LoadEndianness`.
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            "Invalid argument type in function set_default_load_endianness: a LoadEndianness or "
            f"None, not {type(endianness).__name__}"
        )
    load.endianness = endianness


def get_default_load_endianness() -> LoadEndianness | None:
    """Return what `set_default_load_endianness` has set.

    >>> jaxgrad.serialization.get_default_load_endianness() is None
    True
    """
    return load.endianness


def get_default_mmap_options() -> int | None:
    """Return the flags with which `load(mmap=True)` maps files: `mmap.MAP_PRIVATE` or
    `mmap.MAP_SHARED`. Tensors are read-only copies of what is mapped, whichever it is.
    """
    return load.mmap_flags


class set_default_mmap_options:
    """Set the flags with which `load(mmap=True)` maps files, for good or in a `with` block.

    flags: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`; ValueError for others.
    """

    def __init__(self, flags: int):
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.before, load.mmap_flags = load.mmap_flags, flags

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        load.mmap_flags = self.before
