"""The module functorch.experimental.control_flow."""

from __future__ import annotations

from ..._higher_order_ops import cond as cond
from ..._higher_order_ops import map as map
