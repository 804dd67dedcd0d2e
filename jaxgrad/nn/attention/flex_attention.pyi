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
    device as _device,
)
from jaxgrad.utils._pytree import (
    FlattenFn,
)
class AuxOutput(NamedTuple):
    lse: Tensor | None
    max_scores: Tensor | None
class AuxRequest(NamedTuple):
    lse: _bool
    max_scores: _bool
class BlockMask:
    seq_lengths: Any
    kv_num_blocks: Any
    kv_indices: Any
    full_kv_num_blocks: Any
    full_kv_indices: Any
    q_num_blocks: Any
    q_indices: Any
    full_q_num_blocks: Any
    full_q_indices: Any
    BLOCK_SIZE: Any
    mask_mod: Any
    dq_write_order: Any
    dq_write_order_full: Any
    dq_kv_order: Any
    dq_kv_order_spt: Any
    def __getitem__(self, index: Any) -> Any: ...
    def __init__(self, seq_lengths: Any, kv_num_blocks: Any, kv_indices: Any, full_kv_num_blocks: Any, full_kv_indices: Any, q_num_blocks: Any, q_indices: Any, full_q_num_blocks: Any, full_q_indices: Any, BLOCK_SIZE: Any = ..., mask_mod: Any = ..., *, dq_write_order: Any = None, dq_write_order_full: Any = None, dq_kv_order: Any = None, dq_kv_order_spt: Any = None) -> None: ...
    def as_tuple(self, flatten: _bool = True) -> tuple[Any, ...]: ...
    @classmethod
    def from_kv_blocks(cls, kv_num_blocks: Any, kv_indices: Any, full_kv_num_blocks: Any = None, full_kv_indices: Any = None, BLOCK_SIZE: Any = 128, mask_mod: Any = None, seq_lengths: Any = None, compute_q_blocks: _bool = True, *, dq_write_order: Any = None, dq_write_order_full: Any = None, dq_kv_order: Any = None) -> Any: ...
    def numel(self) -> _int: ...
    @property
    def shape(self) -> tuple[Any, ...]: ...
    def sparsity(self) -> _float: ...
    def to(self, device: _device | _str | _int | None) -> Any: ...
    def to_dense(self) -> Any: ...
    def to_string(self, grid_size: Any = ..., limit: _int = 4) -> _str: ...
class FlexKernelOptions(dict[Any, Any]):
    num_warps: _int
    num_stages: _int
    BLOCK_M: _int
    BLOCK_N: _int
    BLOCK_M1: _int
    BLOCK_N1: _int
    BLOCK_M2: _int
    BLOCK_N2: _int
    PRESCALE_QK: _bool
    ROWS_GUARANTEED_SAFE: _bool
    BLOCKS_ARE_CONTIGUOUS: _bool
    WRITE_DQ: _bool
    FORCE_USE_FLEX_ATTENTION: _bool
    USE_TMA: _bool
    kpack: _int
    matrix_instr_nonkdim: _int
    waves_per_eu: _int
    BACKEND: Literal['AUTO', 'TRITON', 'FLASH', 'TRITON_DECODE']
def and_masks(*mask_mods: Any) -> Any: ...
def create_block_mask(mask_mod: FlattenFn, B: _int | None, H: _int | None, Q_LEN: _int, KV_LEN: _int, device: _device | _str | _int | None = None, BLOCK_SIZE: _int | tuple[_int, _int] = 128, separate_full_blocks: _bool = True, compute_dq_write_order: _bool = False, dq_kv_order: _bool = True) -> BlockMask: ...
def create_mask(mod_fn: FlattenFn, B: _int | None, H: _int | None, Q_LEN: _int, KV_LEN: _int, device: _device | _str | _int | None = None) -> Any: ...
def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: FlattenFn | None = None, block_mask: BlockMask | None = None, scale: _float | None = None, enable_gqa: _bool = False, return_lse: _bool = False, kernel_options: FlexKernelOptions | None = None, *, return_aux: AuxRequest | None = None) -> Any: ...
def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor: ...
def or_masks(*mask_mods: Any) -> Any: ...
