"""What PyTorch's library tells of tensors inside of the transforms of `jaxgrad.func`."""

from __future__ import annotations

from .. import ops
from ..func import debug_unwrap
from ..func.batched_program import ExampleScope
from ..names.not_provided import names_of
from ..tape.mode import transform_levels
from ..tape.tensor import Tensor

__getattr__, __dir__ = names_of(__name__)


def _wrapping_level(tensor: Tensor):
    """The number of the innermost transform that the tensor depends on, from 1, and its level."""
    levels = transform_levels.get()
    for number, level in reversed([*enumerate(levels, 1)]):
        is_batched = isinstance(level, ExampleScope)
        if level.is_batched(tensor) if is_batched else level.wrapper(tensor) is not None:
            return number, level
    return -1, None


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor is that of one example, of the innermost transform it depends on."""
    return isinstance(_wrapping_level(tensor)[1], ExampleScope)


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """Whether the innermost transform that a tensor depends on differentiates."""
    return is_functorch_wrapped_tensor(tensor) and not is_batchedtensor(tensor)


def is_functorch_wrapped_tensor(tensor: Tensor) -> bool:
    """Whether a tensor depends on the arguments of a transform around."""
    return _wrapping_level(tensor)[1] is not None


def is_functionaltensor(tensor: Tensor) -> bool:
    """Return False: `functionalize` wraps no tensor."""
    return False


is_legacy_batchedtensor = is_functionaltensor


def maybe_get_level(tensor: Tensor) -> int:
    """The number of the innermost transform that a tensor depends on, from 1; -1 for none."""
    return _wrapping_level(tensor)[0]


def maybe_get_bdim(tensor: Tensor) -> int:
    """The mapped dimension of the tensor of an example, 0 for one that is computed; else -1."""
    level = _wrapping_level(tensor)[1]
    return level.batch_of(tensor)[1] if isinstance(level, ExampleScope) else -1


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor outside of the innermost transform it depends on: all examples of an argument.

    Raises RuntimeError for a tensor that no transform wraps, and under a `vmap` for a computed one,
    since `vmap` computes one example alone.
    """
    level = _wrapping_level(tensor)[1]
    if level is None:
        raise RuntimeError("get_unwrapped: no transform wraps the tensor")
    if not isinstance(level, ExampleScope):
        return debug_unwrap(tensor)
    whole = level.batch_of(tensor)[0]
    if whole is None:
        raise RuntimeError(
            f"get_unwrapped: the tensor of shape {list(tensor.shape)} is computed for one example, "
            "and JAX maps the program: there is no tensor of all examples"
        )
    return whole


def reshape_dim_into(source: int, target: int, tensor: Tensor) -> Tensor:
    """Merge dimension `source` into dimension `target` of the others, as its slower part."""
    source, target = source % tensor.ndim, target % (tensor.ndim - 1)
    return ops.movedim(tensor, source, target).flatten(target, target + 1)


def reshape_dim_outof(source: int, size: int, tensor: Tensor) -> Tensor:
    """Split dimension `source` into one of `size` and the rest."""
    source = source % tensor.ndim
    return tensor.unflatten(source, (size, tensor.shape[source] // size))


def _is_vmap_fallback_enabled() -> bool:
    """Return False: `vmap` never computes the examples one by one."""
    return False


def _set_vmap_fallback_enabled(on: bool):
    """Do nothing: `vmap` never computes the examples one by one."""


_set_vmap_fallback_warning_enabled = _set_vmap_fallback_enabled
