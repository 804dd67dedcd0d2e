"""The classes of the operators in `torch.ops`, as torch._ops.

>>> from jaxgrad._ops import OpOverload
>>> isinstance(jaxgrad.ops.aten.add.Tensor, OpOverload)
True
"""

from __future__ import annotations

import importlib

from .names.missing import missing_in

_aten = importlib.import_module("jaxgrad.ops.aten")  # `ops.aten` is the namespace

OpOverload, OpOverloadPacket = _aten.Overload, _aten.Packet

__getattr__ = missing_in(__name__)
