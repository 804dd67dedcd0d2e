"""How long processes wait for one another, as torch.distributed.constants."""

from __future__ import annotations

from ..names.not_provided import names_of
from .process_group import DEFAULT_TIMEOUT

default_pg_timeout = DEFAULT_TIMEOUT

__getattr__, __dir__ = names_of(__name__)
