"""Imports that jaxgrad misses."""

from ..late import LateModule

_not_provided = LateModule("jaxgrad.names.not_provided")


class MissingFinder:
    """Finds the modules and names of PyTorch that an import of jaxgrad misses, after all others."""

    def find_spec(self, fullname, path=None, target=None):
        is_own = fullname.startswith("jaxgrad.")
        return _not_provided.find_spec(fullname) if is_own else None
