# Made by `make stubs`; do not edit.
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from enum import Enum, IntEnum
from types import ModuleType, TracebackType
from typing import Any, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

from numpy.typing import NDArray as _NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True)
_Number: TypeAlias = _bool | _int | _float | _complex

from jaxgrad import (
    Tensor,
)
class PackedSequence(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None
def batch_of(sequence: PackedSequence) -> _int: ...
def invert_permutation(permutation: Tensor | None) -> Tensor | None: ...
def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: _bool = False, enforce_sorted: _bool = True) -> PackedSequence: ...
def pack_sequence(sequences: Any, enforce_sorted: _bool = True) -> PackedSequence: ...
def pad_packed_sequence(sequence: PackedSequence, batch_first: _bool = False, padding_value: _float = 0.0, total_length: _int | None = None) -> tuple[Tensor, Tensor]: ...
def pad_sequence(sequences: Any, batch_first: _bool = False, padding_value: _float = 0.0, padding_side: _str = 'right') -> Tensor: ...
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]: ...
def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: _bool = False) -> list[Tensor]: ...
