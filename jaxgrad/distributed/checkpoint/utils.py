"""The error of torch.distributed.checkpoint.utils."""

from __future__ import annotations

from ...names.not_provided import names_of
from .api import CheckpointException as CheckpointException

__getattr__, __dir__ = names_of(__name__)
