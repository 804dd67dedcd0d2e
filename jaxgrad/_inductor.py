"""Names of torch._inductor, the code generator of PyTorch, that programs call.

`config` has its options, which have no effect.
"""

from __future__ import annotations

from .compiled.ignored_options import IgnoredOptions
from .names.not_provided import names_of

config = IgnoredOptions("jaxgrad._inductor.config")

__getattr__, __dir__ = names_of(__name__)


def cudagraph_mark_step_begin():
    """Do nothing: a compiled step is one program."""


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict:
    """Return an empty dict: XLA chooses by itself what modes choose."""
    return {}


def list_options() -> list[str]:
    """Return an empty list: there are no options with an effect."""
    return []
