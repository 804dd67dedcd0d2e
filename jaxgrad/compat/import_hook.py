"""The import hook under which `torch` and its modules are jaxgrad's."""

from __future__ import annotations

import copyreg
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import types
from pathlib import Path

import jaxgrad

from ..names.finder import alias_spec
from ..names.missing import why_missing
from ..names.not_provided import has_module, how_asked, offer
from ..version import __version__

# what jaxgrad has and PyTorch has not, besides operators
JAXGRADS = {
    "MissingName",
    "fori_loop",
    "from_jax",
    "jit",
    "scan",
    "set_traceback_filtering",
    "to_jax",
}


def install():
    """Let `import torch` and the imports of its modules give jaxgrad, from now on.

    Packages that look for torch find it: `importlib.util.find_spec`, and
    `importlib.metadata.version("torch")`, the version of PyTorch whose interface jaxgrad follows.
    Raises RuntimeError where PyTorch itself has been imported. A second call does nothing.

    >>> import subprocess, sys
    >>> code = "import jaxgrad.compat; jaxgrad.compat.install(); import torch; print(torch.pi)"
    >>> print(subprocess.check_output([sys.executable, "-c", code], text=True).strip())
    3.141592653589793
    """
    known = sys.modules.get("torch")
    if known is not None and not isinstance(known, TorchModule):
        raise RuntimeError(
            "PyTorch itself has been imported already, from "
            f"{getattr(known, '__file__', None)}: call jaxgrad.compat.install() before the first "
            "import of torch, or run the program by python -m jaxgrad run"
        )
    if not any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchFinder())
        sys.meta_path.append(LastFinder())


class TorchModule(types.ModuleType):
    """The module `torch`: the names of `jaxgrad`, with the version of PyTorch."""

    def __init__(self):
        super().__init__("torch", jaxgrad.__doc__)
        self.__version__ = __version__
        self.__file__, self.__path__ = jaxgrad.__file__, list(jaxgrad.__path__)
        self.torch = self  # an import inside of PyTorch, by which a few programs write its names

    def __getattr__(self, name):
        if name == "__all__":
            return list(filter(is_of_torch, jaxgrad.__all__))
        value = getattr(jaxgrad, name)
        self.__dict__[name] = value
        return value

    def __dir__(self):
        return dir(jaxgrad)


def is_of_torch(name: str) -> bool:
    """Whether `from torch import *` imports a name: none that PyTorch lacks."""
    return name not in JAXGRADS


# the user's own pickling keeps the name of the module, as it does for other modules
copyreg.dispatch_table[TorchModule] = lambda module: (importlib.import_module, ("torch",))


class TorchFinder(importlib.abc.MetaPathFinder):
    """Finds `torch` and its modules in jaxgrad, and the package functorch, which is part of it."""

    def find_spec(self, fullname, path=None, target=None):
        root, _, rest = fullname.partition(".")
        if root == "functorch":
            # PyTorch's own package, where it is installed, takes the names from torch
            is_installed = importlib.machinery.PathFinder.find_spec(root) is not None
            # functorch._src has been torch._functorch since the two became one
            name = f".{rest or 'deprecated'}".removeprefix("._src")
            source = existing_module(f"jaxgrad._functorch{name}")
            if source is None and has_module(f"torch._functorch{name}"):
                source = f"jaxgrad._functorch{name}"
            return None if is_installed or source is None else spec_of(fullname, source)
        if root != "torch":
            return None
        if not rest:
            source = TorchModule
        else:
            source = existing_module(f"jaxgrad.{rest}")
            if source is None and has_module(fullname):
                source = f"jaxgrad.{rest}"
        if source is None:
            offer(fullname)
            refuse(fullname)
        return None if source is None else spec_of(fullname, source)

    def find_distributions(self, context):
        """The metadata of PyTorch's distribution, for `importlib.metadata`."""
        is_asked = context.name is None or context.name.lower() == "torch"
        return [TorchDistribution()] if is_asked else []


class LastFinder(importlib.abc.MetaPathFinder):
    """Says why a name is missing that `from torch.nn import name` asks for, and nothing has."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith("jaxgrad."):
            refuse(fullname)


def refuse(fullname: str):
    """Raise ModuleNotFoundError in an import, which shows its text. `importlib.util.find_spec` asks
    a question, and None is the answer.
    """
    asked = how_asked()
    if asked != "question":
        # `from torch import name` keeps to itself an error that names what it looks for
        raise ModuleNotFoundError(refusal(fullname), name=None if asked == "name" else fullname)


def refusal(fullname: str) -> str:
    place, _, name = fullname.rpartition(".")
    parent = sys.modules[place]
    known = getattr(parent, "__name__", place) if isinstance(parent, types.ModuleType) else place
    provided = known.replace("torch", "jaxgrad", 1)
    why = "it is no module" if hasattr(parent, name) else why_missing(provided, name)
    shown = place.replace("jaxgrad", "torch", 1)
    return f"cannot import {name!r} from {shown!r}: {why}"


def existing_module(name: str) -> str | None:
    """The name of a module of jaxgrad where it exists."""
    try:
        return None if importlib.util.find_spec(name) is None else name
    except ModuleNotFoundError:  # its parent is no package
        return None


def spec_of(fullname, provided):
    """The spec of the module `torch`, or of a module of jaxgrad as a module of torch."""
    if isinstance(provided, str):
        source = importlib.util.find_spec(provided)
        return alias_spec(fullname, provided, getattr(source, "origin", None))
    return importlib.machinery.ModuleSpec(
        fullname, TorchLoader(), origin=jaxgrad.__file__, is_package=True
    )


class TorchLoader(importlib.abc.Loader):
    """Makes the module `torch`."""

    def create_module(self, spec):
        return TorchModule()

    def exec_module(self, module):
        pass


class TorchDistribution(importlib.metadata.Distribution):
    """The metadata that `importlib.metadata` gives for torch."""

    def read_text(self, filename):
        texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n",
            "top_level.txt": "torch\n",
        }
        return texts.get(filename)

    def locate_file(self, path):
        return Path(jaxgrad.__file__).parent / path
