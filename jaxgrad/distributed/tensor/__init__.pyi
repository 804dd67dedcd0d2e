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
    dtype as _dtype,
)
from jaxgrad.distributed import (
    DeviceMesh,
    DeviceMesh as DeviceMesh,
    init_device_mesh as init_device_mesh,
)
from jaxgrad.distributed.tensor import (
    parallel as parallel,
)
from jaxgrad.nn import (
    Module,
)
from jaxgrad.utils._pytree import (
    FlattenFn,
)
class DTensor(Tensor):
    @property
    def device_mesh(self) -> DeviceMesh: ...  # type: ignore[override]
    @staticmethod
    def from_local(local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, run_check: _bool = False, shape: Any = None, stride: _int | Sequence[_int] | None = None, grad_placements: Any = None) -> Tensor: ...
    def full_tensor(self, *, grad_placements: Any = None) -> Tensor: ...
    @property
    def placements(self) -> tuple[Placement, ...]: ...  # type: ignore[override]
    def redistribute(self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, async_op: _bool = False, forward_dtype: Any = None, backward_dtype: Any = None) -> Tensor: ...
    def to_local(self, *, grad_placements: Any = None) -> Tensor: ...
class Partial(Placement):
    def __init__(self, reduce_op: _str = 'sum') -> None: ...
    reduce_op: _str
class Placement:
    def is_partial(self, reduce_op: _str | None = None) -> _bool: ...
    def is_replicate(self) -> _bool: ...
    def is_shard(self, dim: _int | None = None) -> _bool: ...
class Replicate(Placement):
    def __init__(self) -> None: ...
class Shard(Placement):
    dim: _int
    def __init__(self, dim: _int) -> None: ...
def distribute_module(module: Module, device_mesh: DeviceMesh | None = None, partition_fn: FlattenFn | None = None, input_fn: FlattenFn | None = None, output_fn: FlattenFn | None = None) -> Module: ...
def distribute_tensor(tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, src_data_rank: _int | None = 0) -> Tensor: ...
def empty(*size: _int | Sequence[_int], requires_grad: _bool = False, dtype: _dtype | None = None, layout: Any = None, device_mesh: Any = None, placements: Any = None, **options: Any) -> Tensor: ...
def full(*size: _int | Sequence[_int], requires_grad: _bool = False, dtype: _dtype | None = None, layout: Any = None, device_mesh: Any = None, placements: Any = None, **options: Any) -> Tensor: ...
def ones(*size: _int | Sequence[_int], requires_grad: _bool = False, dtype: _dtype | None = None, layout: Any = None, device_mesh: Any = None, placements: Any = None, **options: Any) -> Tensor: ...
def rand(*size: _int | Sequence[_int], requires_grad: _bool = False, dtype: _dtype | None = None, layout: Any = None, device_mesh: Any = None, placements: Any = None, **options: Any) -> Tensor: ...
def randn(*size: _int | Sequence[_int], requires_grad: _bool = False, dtype: _dtype | None = None, layout: Any = None, device_mesh: Any = None, placements: Any = None, **options: Any) -> Tensor: ...
def zeros(*size: _int | Sequence[_int], requires_grad: _bool = False, dtype: _dtype | None = None, layout: Any = None, device_mesh: Any = None, placements: Any = None, **options: Any) -> Tensor: ...
