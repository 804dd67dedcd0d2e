"""The order in which einsum multiplies, as torch.backends.opt_einsum.

jaxgrad.einsum takes the order of fewest multiplications. What programs set here has no effect.
"""

from __future__ import annotations

import importlib

from ..names.missing import missing_in
from ..tape.settings import make_flags

enabled, strategy = True, "auto"


def is_available() -> bool:
    """Return True: JAX needs the package opt_einsum.

    >>> jaxgrad.backends.opt_einsum.is_available()
    True
    """
    return True


def get_opt_einsum():
    """Return the package opt_einsum."""
    return importlib.import_module("opt_einsum")


__getattr__ = missing_in(__name__)
make_flags(__name__, "enabled", "strategy")
