"""What PyTorch's library tells of tensors inside of the transforms of `jaxgrad.func`."""

from __future__ import annotations

import enum

from .. import ops
from ..func import debug_unwrap
from ..func.arguments import LeavesLevel
from ..func.example_scope import ExampleScope
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


class TransformType(enum.Enum):
    """The kinds of transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


class RandomnessType(enum.Enum):
    """How the examples of a `vmap` draw random numbers."""

    Error = 0
    Same = 1
    Different = 2


class CInterpreter:
    """A transform that is entered: its kind and its number, from 1 for the outermost one."""

    def __init__(self, level, number: int):
        self._level, self._number = level, number

    def key(self) -> TransformType:
        """The kind of the transform."""
        if isinstance(self._level, ExampleScope):
            return TransformType.Vmap
        return TransformType.Grad if isinstance(self._level, LeavesLevel) else TransformType.Jvp

    def level(self) -> int:
        """Its number, from 1 for the outermost transform."""
        return self._number


def get_interpreter_stack() -> list[CInterpreter] | None:
    """The transforms that are entered, the outermost first; None where there are none."""
    levels = enumerate(transform_levels.get(), 1)
    return [CInterpreter(level, number) for number, level in levels] or None


def peek_interpreter_stack() -> CInterpreter | None:
    """The innermost transform that is entered; None where there is none."""
    stack = get_interpreter_stack()
    return None if stack is None else stack[-1]


def get_dynamic_layer_stack_depth() -> int:
    """How many transforms are entered."""
    return len(transform_levels.get())


def maybe_current_level() -> int | None:
    """The number of the innermost transform, from 1; None where there is none."""
    return get_dynamic_layer_stack_depth() or None


def current_level() -> int:
    """The number of the innermost transform, from 1. Raises RuntimeError where there is none."""
    if not transform_levels.get():
        raise RuntimeError("current_level: no transform of jaxgrad.func is entered")
    return get_dynamic_layer_stack_depth()


def is_dead_tensor_wrapper(tensor: Tensor) -> bool:
    """Return False: transforms wrap no tensors that could outlive them."""
    return False


def unwrap_if_dead(tensor: Tensor) -> Tensor:
    """Return the tensor: transforms wrap none."""
    return tensor


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
