"""The parts of the DataLoader: how samples become batches, and the processes that load them."""

from __future__ import annotations

from . import collate as collate
from . import pin_memory as pin_memory
from . import worker as worker

# the seconds after which PyTorch's workers and loaders ask whether the other is there; jaxgrad's
# wait for pipes, which tell at once
MP_STATUS_CHECK_INTERVAL = 5.0

HAS_NUMPY = True

# whether Python is ending; workers see the ends of their pipes
python_exit_status = False
