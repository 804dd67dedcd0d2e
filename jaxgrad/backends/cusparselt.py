"""cuSPARSELt, which jaxgrad does not use, as torch.backends.cusparselt."""

from __future__ import annotations

from ..names.missing import missing_in


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.backends.cusparselt.is_available()
    False
    """
    return False


def version() -> None:
    """Return None: there is no library.

    >>> jaxgrad.backends.cusparselt.version()
    """


get_max_alg_id = version

__getattr__ = missing_in(__name__)
