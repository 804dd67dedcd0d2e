"""The module functorch.experimental."""

from __future__ import annotations

from ...func import functionalize as functionalize
from ...func import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from ...func.vmap import chunk_vmap as chunk_vmap
from . import control_flow as control_flow
