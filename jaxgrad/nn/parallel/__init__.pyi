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

from jaxgrad.distributed import (
    DeviceMesh,
    ProcessGroup,
)
from jaxgrad.nn import (
    DataParallel as DataParallel,
    Module,
)
class DistributedDataParallel(Module):
    require_backward_grad_sync: Any
    find_unused_parameters: Any
    broadcast_buffers: Any
    bucket_bytes: Any
    process_group: Any
    module: Any
    dim: Any
    device_mesh: Any
    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: _int = 0, broadcast_buffers: _bool | None = None, init_sync: _bool = True, process_group: ProcessGroup | None = None, bucket_cap_mb: _float | None = None, find_unused_parameters: _bool = False, check_reduction: _bool = False, gradient_as_bucket_view: _bool = False, static_graph: _bool = False, *, device_mesh: DeviceMesh | None = None) -> None: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any: ...
    def no_sync(self) -> Any: ...
def data_parallel(module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: _int = 0, module_kwargs: Any = None) -> Any: ...
def gather(outputs: Sequence[Any], target_device: Any, dim: _int = 0) -> Any: ...
def parallel_apply(modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Any = None) -> list[Any]: ...
def replicate(network: Module, devices: Sequence[Any], detach: _bool = False) -> list[Module]: ...
def scatter(inputs: Any, target_gpus: Sequence[Any], dim: _int = 0) -> list[Any]: ...
