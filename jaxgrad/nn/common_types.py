"""Types of arguments of layers, as torch.nn.common_types, for annotations.

A size is an int, or a tuple of one for each of so many dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..names.missing import missing_in
from ..tape.tensor import Tensor

_T = TypeVar("_T")
_scalar_or_tuple_any_t = _T | tuple[_T, ...]
_scalar_or_tuple_1_t = _T | tuple[_T]
_scalar_or_tuple_2_t = _T | tuple[_T, _T]
_scalar_or_tuple_3_t = _T | tuple[_T, _T, _T]
_scalar_or_tuple_4_t = _T | tuple[_T, _T, _T, _T]
_scalar_or_tuple_5_t = _T | tuple[_T, _T, _T, _T, _T]
_scalar_or_tuple_6_t = _T | tuple[_T, _T, _T, _T, _T, _T]

_size_any_t = _scalar_or_tuple_any_t[int]
_size_1_t = _scalar_or_tuple_1_t[int]
_size_2_t = _scalar_or_tuple_2_t[int]
_size_3_t = _scalar_or_tuple_3_t[int]
_size_4_t = _scalar_or_tuple_4_t[int]
_size_5_t = _scalar_or_tuple_5_t[int]
_size_6_t = _scalar_or_tuple_6_t[int]

_size_any_opt_t = _scalar_or_tuple_any_t[int | None]
_size_2_opt_t = _scalar_or_tuple_2_t[int | None]
_size_3_opt_t = _scalar_or_tuple_3_t[int | None]

_ratio_2_t = _scalar_or_tuple_2_t[float]
_ratio_3_t = _scalar_or_tuple_3_t[float]
_ratio_any_t = _scalar_or_tuple_any_t[float]

_tensor_list_t = _scalar_or_tuple_any_t[Tensor]
Extents = int | Sequence[int]  # one for all dimensions, or one for each
Ratios = float | Sequence[float]

_maybe_indices_t = _scalar_or_tuple_2_t[Tensor]  # the result of a max-pooling layer


__getattr__ = missing_in(__name__)
