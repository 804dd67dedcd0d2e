"""Types for annotations, as torch.types."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any

from .core.aval import Size as Size
from .core.device import device
from .core.dtypes import dtype
from .frontend.checks import SymBool as SymBool
from .frontend.checks import SymFloat as SymFloat
from .frontend.checks import SymInt as SymInt
from .names.missing import missing_in
from .tape.tensor import Tensor as Tensor

Number = builtins.int | builtins.float | builtins.bool
Device = device | builtins.str | builtins.int | None
FileLike = builtins.str | os.PathLike | IO[bytes]
BoolLikeType, FloatLikeType = builtins.bool | SymBool, builtins.float | SymFloat
IntLikeType = builtins.int | SymInt
PySymType = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)

_device, _dtype = device, dtype
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_size = Size | list[builtins.int] | tuple[builtins.int, ...]
_symsize = Size | Sequence[builtins.int]
_dispatchkey = _layout = _qscheme = Any
_TensorOrTensors = Tensor | Sequence[Tensor]

__getattr__ = missing_in(__name__)
