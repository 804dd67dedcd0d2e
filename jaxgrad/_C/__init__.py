"""Names of PyTorch's own library that programs call."""

from __future__ import annotations

import contextlib
import enum
import importlib
import importlib.machinery
import sys
import types
import weakref

from .. import ops
from ..accelerator import current_accelerator
from ..compiled.script_names import is_tracing
from ..compiler import is_compiling as is_compiling
from ..core.device import as_device as _as_device
from ..core.device import device
from ..core.linalg_error import LinAlgError as _LinAlgError
from ..frontend.generator import Generator as Generator
from ..frontend.settings import get_default_device
from ..frontend.to import _target
from ..late import LateModule
from ..names.not_provided import names_of
from ..ops import autocast
from ..ops.aten import schemas
from ..tape import mode, torch_function
from ..tape.tensor import Tensor
from ..tape.torch_function import DisableTorchFunction as DisableTorchFunction
from ..tape.torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ..tape.torch_function import disabled as _disabled_torch_function_impl

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Generator",
    "_LinAlgError",
    "_disabled_torch_function_impl",
]

_not_provided, __dir__ = names_of(__name__)

running_pass = LateModule("jaxgrad.autograd._engine.running_pass")
_OF_PASSES = (
    *("_current_graph_task_id", "_current_graph_task_execution_order"),
    "_will_engine_execute_node",
)


def __getattr__(name):
    if name in ("_functions", "_functorch"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("TensorBase", "_TensorBase"):  # the class that has the methods in a pickle
        return Tensor
    if name in _OF_PASSES:
        return getattr(running_pass, name)
    return _not_provided(name)


_is_tracing = is_tracing


class _WeakTensorRef:
    """A reference to a tensor that does not keep it alive."""

    def __init__(self, tensor: Tensor):
        self._tensor = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._tensor() is None


def _is_torch_function_enabled() -> bool:
    """Whether classes override functions: outside of `DisableTorchFunctionSubclass`."""
    return torch_function.classes_override.get()


def _is_torch_function_all_disabled() -> bool:
    """Whether neither classes nor modes override functions."""
    return not (torch_function.classes_override.get() or torch_function.modes.get())


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode is entered."""
    return bool(torch_function.modes.get())


def _len_torch_function_stack() -> int:
    """The number of modes that are entered."""
    return len(torch_function.modes.get())


def _pop_torch_function_stack():
    """Leave the innermost mode, and return it."""
    mode = torch_function.modes.get()[-1]
    torch_function.exit_mode(mode)
    return mode


class _TorchFunctionState(enum.Enum):
    """What overrides functions: classes and modes, modes alone, or nothing."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def _get_torch_function_state() -> _TorchFunctionState:
    """What overrides functions here."""
    if _is_torch_function_enabled():
        return _TorchFunctionState.ENABLED
    is_all = _is_torch_function_all_disabled()
    return _TorchFunctionState.ALL_DISABLED if is_all else _TorchFunctionState.SUBCLASSES_DISABLED


def _set_torch_function_state(state: _TorchFunctionState):
    """Let classes and modes override functions, modes alone, or nothing."""
    torch_function.classes_override.set(state is _TorchFunctionState.ENABLED)
    if state is _TorchFunctionState.ALL_DISABLED:
        torch_function.modes.set(())


# functions of tensors are never dispatched to `__torch_dispatch__`, so there is nothing to stop
_DisableTorchDispatch = contextlib.nullcontext

has_lapack = has_spectral = has_mkl = True  # XLA and LAPACK compute what these libraries do


def _get_cpu_capability() -> str:
    """PyTorch's name for the widest vectors of the processor."""
    return importlib.import_module("jaxgrad.backends.cpu").get_cpu_capability()


def _get_privateuse1_backend_name() -> str:
    """The name of devices that extensions of PyTorch add: there are none."""
    return "privateuseone"


class DispatchKey:
    """The names of the kinds of tensors by which PyTorch chooses a kernel: texts here."""

    def __getattr__(self, name):
        return name


DispatchKey = DispatchKey()


class DispatchKeySet(frozenset):
    """A set of such names."""

    def __new__(cls, key):
        return super().__new__(cls, [key])


@contextlib.contextmanager
def _ExcludeDispatchKeyGuard(keys):
    """In the block, the autocasts that `keys` names, such as "AutocastCPU", are off.

    Raises NotImplementedError for other keys.
    """
    unknown = sorted(key for key in keys if not key.startswith("Autocast"))
    if unknown:
        raise NotImplementedError(
            f"_ExcludeDispatchKeyGuard: only keys of autocast can be excluded, not {unknown}"
        )
    casting = mode.casting.get() or ()
    kept = tuple(pair for pair in casting if f"Autocast{pair[0].upper()}" not in keys)
    with autocast.entered(kept or None):
        yield


def _parse_to(*args, **kwargs):
    """Return the device, the dtype, whether a copy is asynchronous, and the memory format from the
    arguments of `Module.to`; None for each that is not given.

    >>> jaxgrad._C._nn._parse_to("cpu", jaxgrad.float64)
    (device(type='cpu'), torch.float64, False, None)
    """
    device, dtype, _ = _target(args, kwargs)
    flags = [value for value in args if isinstance(value, bool)]
    waits_not = kwargs.get("non_blocking", bool(flags and flags[0]))
    device = None if device is None else _as_device(device)
    return device, dtype, waits_not, kwargs.get("memory_format")


class _Functions(types.ModuleType):
    """A module of functions by the names that PyTorch's library has for them, which code of graphs
    calls.

    module: the module of jaxgrad that has them; prefix: what their names begin with there.
    """

    def __init__(self, name: str, module: str, prefix: str = ""):
        super().__init__(f"{__name__}.{name}")
        self._module, self._prefix = module, prefix
        self.__spec__ = importlib.machinery.ModuleSpec(self.__name__, None)
        self.__path__: list = []  # an import asks the finders for a name that it does not have
        sys.modules[self.__name__] = self  # `import torch._C._nn` gives it

    def __getattr__(self, name):
        public = name.removeprefix(self._prefix)
        if public.startswith("__"):
            raise AttributeError(name)
        if not name.startswith(self._prefix):
            return names_of(self.__name__)[0](name)
        module = importlib.import_module(self._module)
        if (position := _place_of_reduction(name)) is not None:
            return _loss(getattr(ops.aten, name), position)
        if hasattr(module, public) or not hasattr(module, public.removesuffix("_")):
            is_of_graphs = public in importlib.import_module("jaxgrad.library._aten").FORMS
            others = ops.aten if is_of_graphs else ops
            return getattr(module if hasattr(module, public) else others, public)
        function = getattr(module, public.removesuffix("_"))
        return lambda input, *args, **kwargs: input.copy_(function(input, *args, **kwargs))


def _place_of_reduction(name: str) -> int | None:
    """The position of the argument `reduction` in a schema, if it has a default."""
    for schema in schemas(name).values():
        for position, argument in enumerate(schema.arguments):
            if argument.name == "reduction" and argument.default == 1:
                return position
    return None


def _loss(operator, position: int):
    """A loss with the number of a reduction in this place, which is 0 by default, as in PyTorch,
    although schemas say 1.
    """

    def loss(*args, **kwargs):
        if len(args) <= position:
            kwargs.setdefault("reduction", 0)
        return operator(*args, **kwargs)

    return loss


_VariableFunctions = _VariableFunctionsClass = _Functions("_VariableFunctions", "jaxgrad")
_nn = _Functions("_nn", "jaxgrad.nn.functional")
_nn._parse_to = _parse_to
_linalg = _Functions("_linalg", "jaxgrad.linalg", "linalg_")
_fft = _Functions("_fft", "jaxgrad.fft", "fft_")
_special = _Functions("_special", "jaxgrad.special", "special_")


def _get_tracing_state():
    """Return None: there are no traces of torch.jit.trace."""
    return None


# a transform of a function is traced as a compiled function is
_are_functorch_transforms_active = is_compiling


def _log_api_usage_once(event: str):
    """Do nothing."""


class _OfTensors(type):
    """The class of `_TensorMeta`: `Tensor` and its subclasses count as instances of that."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, type) and issubclass(instance, Tensor)


class _TensorMeta(type, metaclass=_OfTensors):
    """Stands for the class of `Tensor` and of its subclasses."""


def _get_accelerator(check: bool | None = None) -> device:
    """The kind of the accelerator that JAX has found, the CPU where it has none."""
    return current_accelerator() or device("cpu")


def _get_default_device() -> str:
    """The kind of the device of new tensors, as text."""
    return get_default_device().type


def _jit_can_fuse_on_cpu() -> bool:
    """Return False: there are no scripts whose operators could be fused."""
    return False


_jit_can_fuse_on_gpu = _jit_can_fuse_on_cpu


def _jit_set_nvfuser_guard_mode(on: bool):
    """Do nothing: there is no interpreter of scripts."""


def _jit_set_profiling_mode(on: bool) -> bool:
    """Do nothing, and return the argument: there is no interpreter of scripts."""
    return on


_jit_set_profiling_executor = _jit_set_texpr_fuser_enabled = _jit_set_profiling_mode
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_profiling_mode
_jit_set_nvfuser_enabled = _jit_set_num_profiled_runs = _jit_set_profiling_mode
_jit_set_inline_everything_mode = _set_graph_executor_optimize = _jit_set_profiling_mode


def _get_graph_executor_optimize(on: bool | None = None) -> bool:
    """Return True: XLA optimizes what it compiles."""
    return True


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """Return False: `vmap` never computes the examples one by one, so there is no warning of it."""
    return False


def _debug_only_display_vmap_fallback_warnings(on: bool):
    """Do nothing: there is nothing to warn of."""
