"""Which languages for kernels can be used, as torch._native.dsl_registry: none, XLA makes kernels.

>>> from jaxgrad._native.dsl_registry import dsl_registry
>>> dsl_registry.list_all_dsls(), dsl_registry.list_available_dsls()
(('cutedsl', 'triton'), ())
"""

from __future__ import annotations

from ..names.missing import missing_in

LANGUAGES = ("cutedsl", "triton")


class DSLRegistry:
    """The languages that PyTorch knows."""

    def list_all_dsls(self) -> tuple[str, ...]:
        """The names of the languages."""
        return LANGUAGES

    def list_available_dsls(self) -> tuple[str, ...]:
        """The names of those that can be used."""
        return ()

    def is_dsl_available(self, name: str) -> bool:
        """Whether a language can be used."""
        return False


dsl_registry = DSLRegistry()

__getattr__ = missing_in(__name__)
