"""Imports that jaxgrad misses, and imports of jaxgrad under another name."""

import importlib
import importlib.machinery
import importlib.util
import sys

from ..late import LateModule

_not_provided = LateModule("jaxgrad.names.not_provided")


class MissingFinder:
    """Finds the modules and names of PyTorch that an import of jaxgrad misses, after all others."""

    def find_spec(self, fullname, path=None, target=None):
        is_own = fullname.startswith("jaxgrad.")
        return _not_provided.find_spec(fullname) if is_own else None


class AliasFinder:
    """Finds the modules of a package that is jaxgrad: `torch.nn` after
    `sys.modules["torch"] = jaxgrad`. Without it, Python would import the files of jaxgrad again,
    with a second class Tensor.
    """

    def find_spec(self, fullname, path=None, target=None):
        root, _, rest = fullname.partition(".")
        if not rest or root == "jaxgrad" or sys.modules.get(root) is not sys.modules["jaxgrad"]:
            return None
        provided = f"jaxgrad.{rest}"
        source = importlib.util.find_spec(provided)
        if source is None and not _not_provided.has_module(f"torch.{rest}"):
            return _not_provided.offer(fullname)
        return alias_spec(fullname, provided, getattr(source, "origin", None))


def alias_spec(fullname: str, provided: str, origin: str | None):
    """The spec of a module of jaxgrad under another name, which is a package as far as its imports
    go.
    """
    loader = AliasLoader(provided)
    return importlib.machinery.ModuleSpec(fullname, loader, origin=origin, is_package=True)


class AliasLoader:
    """Loads a module of jaxgrad, by its name, as a module of another package."""

    def __init__(self, provided: str):
        self.provided = provided

    def create_module(self, spec):
        module = importlib.import_module(self.provided)
        self.name, self.spec = spec.name, getattr(module, "__spec__", None)
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec  # import sets that of the alias
        for name, value in list(vars(module).items()):
            # a function under the name of its module, such as autograd.gradcheck, would be replaced
            # by an import that loads the module under the alias
            inner = sys.modules.get(f"{self.provided}.{name}", value)
            if inner is not value:
                sys.modules.setdefault(f"{self.name}.{name}", inner)
