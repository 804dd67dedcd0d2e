"""The words by which files name devices: those of PyTorch, and those of packages for others."""

from __future__ import annotations

from ..core.device import as_device, has

# A device of a package is asked for in the order of the first number.
_package_registry: list[tuple] = []


def register_package(priority: int, tagger, deserializer) -> None:
    """Let files name storages by further words, as packages for other devices do.

    priority: those of smaller numbers are asked first; the CPU has 10, and CUDA 20. tagger: gives
    the word for a storage, or None. deserializer: takes a storage and the word in a file, and gives
    the storage on its device, or None for a word that it does not know. While a file is read, the
    storage has a device and a size alone, as the one that a function `map_location` gets.

    >>> from jaxgrad.serialization import register_package
    >>> register_package(30, lambda storage: None, lambda storage, word: None)
    >>> _ = jaxgrad.serialization._package_registry.pop()
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda package: package[0])


def is_changed() -> bool:
    """Whether there are others than those of PyTorch."""
    return len(_package_registry) != len(_OF_PYTORCH)


def restored(storage, location: str):
    """The storage that a package of the user gives for a word in a file, else None."""
    for _, _, deserializer in _package_registry:
        if deserializer not in _DESERIALIZERS:
            result = deserializer(storage, location)
            if result is not None:
                return result
        elif deserializer.kind == location.partition(":")[0]:
            return None
    return None


def location_tag(storage) -> str:
    """Return the word by which a file names the device of a storage.

    >>> jaxgrad.serialization.location_tag(jaxgrad.zeros(1, device="cpu").untyped_storage())
    'cpu'
    """
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return location
    return str(storage.device)


def default_restore_location(storage, location: str):
    """Return a storage on the device that a file names.

    Raises RuntimeError for a word that no package knows.

    >>> storage = jaxgrad.zeros(1, device="cpu").untyped_storage()
    >>> jaxgrad.serialization.default_restore_location(storage, "cpu") is storage
    True
    """
    for _, _, deserializer in _package_registry:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {type(storage).__name__} (tagged with "
        f"{location}): register_package() adds words"
    )


class _Deserializer:
    """Gives a storage on the device of a kind that a file names."""

    def __init__(self, kind: str):
        self.kind = kind

    def __call__(self, storage, location: str):
        if location.partition(":")[0] != self.kind:
            return None
        if not has(self.kind):
            raise RuntimeError(
                f"Attempting to deserialize object on a {self.kind.upper()} device, and JAX has "
                "found none: give map_location=torch.device('cpu')"
            )
        device = as_device(location)
        return storage if storage.device == device else storage.to(device=device)


def _tagger(kind: str):
    def tag(storage):
        return str(storage.device) if storage.device.type == kind else None

    return tag


_cpu_tag, _cpu_deserialize = _tagger("cpu"), _Deserializer("cpu")
_cuda_tag, _cuda_deserialize = _tagger("cuda"), _Deserializer("cuda")
_OF_PYTORCH = (10, _cpu_tag, _cpu_deserialize), (20, _cuda_tag, _cuda_deserialize)
_DESERIALIZERS = _cpu_deserialize, _cuda_deserialize
_package_registry += _OF_PYTORCH
