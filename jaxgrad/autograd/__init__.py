"""Gradients of tensors, as in torch.autograd: `backward`, `grad`, and the grad modes.

Gradients of complex tensors follow PyTorch's convention, the conjugate of JAX's.
"""

from __future__ import annotations

import importlib

from ..names.missing import MissingName
from . import _gradients
from . import grad_mode as grad_mode
from . import graph as graph
from . import variable as variable
from ._engine import node_call as node_call
from ._engine import sparse_gather, tensor_hooks
from ._engine.saved_tensor_hooks import SavedTensor as SavedTensor
from ._gradients import backward as backward
from ._gradients import grad as grad
from ._private_api import _get_sequence_nr as _get_sequence_nr
from ._private_api import _is_checkpoint_valid as _is_checkpoint_valid
from ._private_api import _pop_saved_tensors_default_hooks as _pop_saved_tensors_default_hooks
from ._private_api import _push_saved_tensors_default_hooks as _push_saved_tensors_default_hooks
from ._private_api import (
    _register_py_tensor_class_for_device as _register_py_tensor_class_for_device,
)
from .grad_mode import _force_original_view_tracking as _force_original_view_tracking
from .grad_mode import _unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from .grad_mode import enable_grad as enable_grad
from .grad_mode import enforce_grad_layout_policy as enforce_grad_layout_policy
from .grad_mode import inference_mode as inference_mode
from .grad_mode import is_multithreading_enabled as is_multithreading_enabled
from .grad_mode import is_view_replay_enabled as is_view_replay_enabled
from .grad_mode import no_grad as no_grad
from .grad_mode import set_grad_enabled as set_grad_enabled
from .grad_mode import set_multithreading_enabled as set_multithreading_enabled
from .gradcheck import gradcheck as gradcheck
from .gradcheck import gradgradcheck as gradgradcheck
from .variable import Variable as Variable

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]

_gradients.install()
tensor_hooks.install()
sparse_gather.install()

# names that few programs use, with their modules, which are imported at the first use
_LATER = {
    **dict.fromkeys(["Function", "NestedIOFunction"], "function"),
    **dict.fromkeys(["detect_anomaly", "set_detect_anomaly"], "anomaly_mode"),
    **dict.fromkeys(["DeviceType", "ProfilerActivity"], "_profiler.events"),
    **dict.fromkeys(["_profiler_enabled", "kineto_available"], "profiler"),
}
_LATER_MODULES = ("anomaly_mode", "forward_ad", "function", "functional")
_LATER_MODULES += ("profiler", "profiler_util")


def __getattr__(name):
    if name in _LATER_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise MissingName(__name__, name)
