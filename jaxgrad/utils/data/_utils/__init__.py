"""The parts of the DataLoader: how samples become batches, and the processes that load them."""

from __future__ import annotations

from . import collate as collate
from . import pin_memory as pin_memory
from . import worker as worker
