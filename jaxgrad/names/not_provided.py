"""Imports of PyTorch's modules and names that jaxgrad does not provide.

An import of such a module gives a module of placeholders. `from module import name` gives a
placeholder too, while `hasattr(module, name)` stays False: the finder puts the placeholder into
`sys.modules`, where Python looks for a name that the module does not have.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import threading
import types
from collections.abc import Callable

from .missing import MissingName
from .placeholders import NotProvided, NotProvidedValue, note_asker, placeholder
from .pytorch import FOLDER, Entry, all_names, entry_of, modules, names_in, paths_of, shown_path

# the modules without a file here that are attributes of jaxgrad
MODULES = frozenset(
    (
        *("_custom_ops", "_export", "_jit_internal", "_subclasses"),
        *("monitor", "package"),
    )
)


def path_of(name: str) -> str:
    """The name in PyTorch of a module or name of jaxgrad."""
    return f"torch{name.removeprefix('jaxgrad')}" if name.startswith("jaxgrad") else name


def own_name(path: str) -> str:
    """The name in jaxgrad of a module or name of PyTorch."""
    return f"jaxgrad{path.removeprefix('torch')}"


def is_placeholder(value) -> bool:
    """Whether a value stands for a name or module that is not provided."""
    return isinstance(value, NotProvidedValue | NotProvidedModule) or (
        isinstance(value, type) and issubclass(value, NotProvided)
    )


# ---- what a name is here


class _Searched(threading.local):
    """The names that this thread is looking for: modules ask one another."""

    def __init__(self):
        self.entries = set()


_searched = _Searched()


def provided(entry: Entry):
    """What jaxgrad has for a name of PyTorch, in its module or in a package of that; None if it has
    nothing.
    """
    if entry in _searched.entries:
        return None
    _searched.entries.add(entry)
    try:
        values = map(_value_at, paths_of(entry))
        return next((value for value in values if value is not None), None)
    finally:
        _searched.entries.discard(entry)


def imported(module: str, name: str):
    """What jaxgrad has elsewhere for a name that PyTorch has in a module of jaxgrad; None if it has
    nothing.
    """
    entry = entry_of(f"{path_of(module)}.{name}")
    return None if entry is None else provided(entry)


def _value_at(path: str):
    value = sys.modules["jaxgrad"]
    for part in path.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError:
            value = own_module(value, part)
        if value is None or is_placeholder(value):
            return None
    return value


def own_module(package, name: str):
    """A module of jaxgrad that has a file, None where there is none."""
    path, folders = f"{getattr(package, '__name__', '')}.{name}", getattr(package, "__path__", ())
    spec = importlib.machinery.PathFinder.find_spec(path, folders) if folders else None
    return None if spec is None else importlib.import_module(path)


@functools.cache
def path_in_pytorch(value) -> str | None:
    """The full name in PyTorch of a class or function of jaxgrad; None if PyTorch has none."""
    name = value.__qualname__
    named = {names[name] for names in all_names().values() if name in names}
    entries = sorted(named, key=lambda entry: (len(entry.home), entry.home))
    paths = (entry.path for entry in entries if provided(entry) is value)
    return next(paths, None)


def resolve(path: str):
    """What an import of a name of PyTorch gives."""
    module, _, name = path.rpartition(".")
    entry = entry_of(path) or Entry("alias", module, name)  # the list has not all aliases of types
    note_asker(shown_path(entry))
    return meaning(entry)


def meaning(entry: Entry):
    """What jaxgrad has elsewhere for a name of PyTorch, or a placeholder."""
    value = provided(entry)
    return placeholder(entry) if value is None else value


# ---- attributes of modules


@functools.cache
def listed() -> dict[str, frozenset[str]]:
    """The names that modules of jaxgrad have as placeholders, also for `hasattr`, by PyTorch's
    module.
    """
    lines = (FOLDER / "not_provided.tsv").read_text().splitlines()[1:]
    rows = (line.partition("\t") for line in lines)
    return {path: frozenset(names.replace("!", "").split()) for path, _, names in rows}


def names_of(module: str) -> tuple[Callable, Callable]:
    """The `__getattr__` and the `__dir__` of a module of jaxgrad, some of whose names are
    placeholders.
    """
    path = path_of(module)

    def find(name):
        if name == "__path__":
            return []  # as of a package, so that names which are absent can be imported
        if name in listed().get(path, ()):  # before a module that PyTorch's function hides
            return resolve(f"{path}.{name}")
        if f"{path}.{name}" in listed():
            return importlib.import_module(f"{module}.{name}")
        raise MissingName(module, name)

    def offered():
        inner = (name.removeprefix(f"{path}.") for name in listed() if name.startswith(f"{path}."))
        defined = (name for name in vars(sys.modules[module]) if name[0] != "_")
        names = listed().get(path, ())
        return sorted({*names, *(name for name in inner if "." not in name), *defined})

    return find, offered


class ImportedModule(types.ModuleType):
    """A module that is sent to another process by its name, as modules of Python's class are."""

    def __reduce__(self):
        return importlib.import_module, (self.__name__,)


class NotProvidedModule(ImportedModule):
    """A module of PyTorch whose names are placeholders."""

    def __init__(self, name: str):
        super().__init__(name, "A module of PyTorch that jaxgrad does not provide.")
        self.__path__ = []

    def __getattr__(self, name):
        module = self.__name__
        path = path_of(module)
        if name == "__all__":
            return [member for member in names_in(path) if not member.startswith("_")]
        if name.startswith("__"):
            raise MissingName(module, name)
        if name in names_in(path):
            return resolve(f"{path}.{name}")
        if f"{path}.{name}" in modules():
            return importlib.import_module(f"{module}.{name}")
        raise MissingName(module, name)

    def __setattr__(self, name, value):
        # PyTorch has a function under the name of a module
        is_hidden = isinstance(value, NotProvidedModule) and name in names_in(
            path_of(self.__name__)
        )
        if not is_hidden:
            super().__setattr__(name, value)

    def __dir__(self):
        path = path_of(self.__name__)
        inner = (
            module.removeprefix(f"{path}.") for module in modules() if module.startswith(f"{path}.")
        )
        return sorted({*names_in(path), *(name for name in inner if "." not in name)})


class PackageOfItsNames(ImportedModule):
    """The class of a package of jaxgrad that has a function where PyTorch has a module too
    (`nn.utils.spectral_norm`): an import of the module leaves the function in its place.
    """

    def __setattr__(self, name, value):
        is_module = isinstance(value, NotProvidedModule | AliasModule)
        if not (is_module and callable(getattr(self, name, None))):
            super().__setattr__(name, value)


class AliasModule(ImportedModule):
    """A module of PyTorch whose names another module of jaxgrad has."""

    def __init__(self, name: str, module: types.ModuleType | types.SimpleNamespace):
        super().__init__(name, module.__doc__)
        self._module, self.__path__ = module, []

    def __getattr__(self, name):
        if name.startswith("__") and name != "__all__":
            raise MissingName(self.__name__, name)
        return getattr(self._module, name)

    def __dir__(self):
        return dir(self._module)


# ---- imports


def how_asked() -> str:
    """What an import of a module is for: "module"; "name", of `from module import name`; or
    "question", of `importlib.util.find_spec`.
    """
    frame = sys._getframe(1)
    while not _is_import(frame):
        frame = frame.f_back
    kind = "module"
    while frame is not None and _is_import(frame):
        if frame.f_globals["__name__"] == "importlib.util":
            return "question"
        if frame.f_code.co_name == "_handle_fromlist":
            kind = "name"
        frame = frame.f_back
    return kind


def _is_import(frame) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] == "importlib"


def has_module(path: str) -> bool:
    """Whether an import of a module of PyTorch that has no file here is to give one."""
    if path not in modules():
        return False
    return path in listed() or how_asked() != "question" or _value_at(path) is not None


def offer(fullname: str):
    """Let `from module import name` give what stands for a name of PyTorch, if that is asked for.

    Python passes over ModuleNotFoundError of that name, and then looks into `sys.modules`.
    """
    path = path_of(fullname)
    if entry_of(path) is not None and how_asked() == "name":
        sys.modules[fullname] = resolve(path)
        raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def find_spec(fullname: str) -> importlib.machinery.ModuleSpec | None:
    """How an import of jaxgrad gives a module or name of PyTorch that has no file here."""
    if not has_module(path_of(fullname)):
        return offer(fullname)
    loader, origin = NotProvidedLoader(), "not provided by jaxgrad"
    return importlib.machinery.ModuleSpec(fullname, loader, origin=origin, is_package=True)


class NotProvidedLoader(importlib.abc.Loader):
    """Loads a module of placeholders, or what a module of jaxgrad has as an attribute where PyTorch
    has a module.
    """

    def create_module(self, spec):
        module = spec.name
        # an attribute of a name that is listed asks for this very module
        known = None if path_of(module) in listed() else _value_at(path_of(module))
        is_space = isinstance(known, types.ModuleType | types.SimpleNamespace)
        if is_space and getattr(known, "__name__", "") != module:
            return AliasModule(module, known)
        if not (is_space or hasattr(known, "__path__")):
            return NotProvidedModule(module)
        self.spec, known.__name__ = getattr(known, "__spec__", None), module
        return known

    def exec_module(self, module):
        # Python is about to make the module an attribute of its package
        package, _, name = module.__name__.rpartition(".")
        package = sys.modules[package]
        is_plain = type(package) is types.ModuleType
        if is_plain and callable(getattr(package, name, None)):
            package.__class__ = PackageOfItsNames
        is_new = isinstance(module, NotProvidedModule | AliasModule) or self.spec is None
        if not is_new:
            module.__spec__ = self.spec  # import sets that of the alias
