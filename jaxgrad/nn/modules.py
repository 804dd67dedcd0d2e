"""The modules of torch.nn.modules: here the classes of all of them are in `jaxgrad.nn`.

>>> isinstance(jaxgrad.nn.BatchNorm2d(3), jaxgrad.nn.modules.batchnorm._BatchNorm)
True
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Sequence

from .. import nn
from ..names.missing import MissingName, elsewhere
from ..names.pytorch import names_in
from ..tape.hooks import Hooks, RemovableHandle
from ..tape.tensor import Tensor
from . import (
    adaptive_softmax,
    init,
    loss,
    module_hooks,
    multi_head_attention,
    state,
    tuples,
)
from . import convolution as _convolution
from . import dropout as _dropout  # PyTorch has modules of these names
from . import lazy as _lazy
from . import normalization as _normalization
from . import padding as _padding
from . import pooling as _pooling
from . import transformer as _transformer


def _list_with_default(out_size, defaults: Sequence[int]):
    """The sizes in `out_size`, those that are None from the end of `defaults`.

    >>> from jaxgrad.nn.modules import _list_with_default
    >>> _list_with_default([None, 2], [5, 6, 7])
    [6, 2]
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size) :]
    return [last[i] if size is None else size for i, size in enumerate(out_size)]


def _addindent(text: str, count: int) -> str:
    """A text whose lines after the first, but for empty ones, are indented."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * count + line if line.strip() else "" for line in rest)])


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Take a prefix off the keys of a state dict, in place, as of one saved by `DataParallel`.

    >>> state = {"module.weight": 1, "step": 2}
    >>> from jaxgrad.nn.modules import consume_prefix_in_state_dict_if_present
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'step': 2, 'weight': 1}
    """
    for mapping in (state_dict, getattr(state_dict, "_metadata", None) or {}):
        for key in [key for key in mapping if key.startswith(prefix)]:
            mapping[key.removeprefix(prefix)] = mapping.pop(key)
        # in the metadata the module itself has no dot
        if mapping is not state_dict and prefix.endswith(".") and prefix[:-1] in mapping:
            mapping[""] = mapping.pop(prefix[:-1])


# the hooks of all modules, by PyTorch's names
_HOOKS_OF_ALL = {
    "_global_forward_hooks": module_hooks.of_all.forward,
    "_global_forward_pre_hooks": module_hooks.of_all.forward_pre,
    "_global_backward_hooks": module_hooks.of_all.backward,
    "_global_backward_pre_hooks": module_hooks.of_all.backward_pre,
    "_global_parameter_registration_hooks": module_hooks.of_all.parameters,
    "_global_buffer_registration_hooks": module_hooks.of_all.buffers,
    "_global_module_registration_hooks": module_hooks.of_all.modules,
    "_has_any_global_hook": module_hooks.has_any,
} | {
    name: getattr(module_hooks, name)
    for name in dir(module_hooks)
    if name[:16] == "register_module_"
}

# names of PyTorch's that programs ask for by isinstance, derive from, or call
_OTHERS = {
    "_AdaptiveAvgPoolNd": _pooling._AdaptiveAvg,
    "_AdaptiveMaxPoolNd": _pooling._AdaptiveMax,
    "_AvgPoolNd": _pooling._AvgPool,
    "_LPPoolNd": _pooling._LPPool,
    "_MaxPoolNd": _pooling._MaxPool,
    "_MaxUnpoolNd": _pooling._MaxUnpool,
    "_BatchNorm": _normalization._BatchNorm,
    "_InstanceNorm": _normalization._InstanceNorm,
    "_NormBase": _normalization._RunningNorm,
    "_LazyNormBase": _lazy._LazyNorm,
    "_LazyConvXdMixin": _lazy._LazyConvolution,
    "LazyModuleMixin": _lazy.LazyModuleMixin,
    "_ConvNd": _convolution._Convolution,
    "_ConvTransposeNd": _convolution._Transposed,
    "_DropoutNd": _dropout._Dropout,
    "_Loss": loss._Loss,
    "_WeightedLoss": loss._WeightedLoss,
    "_CircularPadNd": _padding._CircularPad,
    "_ConstantPadNd": _padding._ConstantPad,
    "_ReflectionPadNd": _padding._ReflectionPad,
    "_ReplicationPadNd": _padding._ReplicationPad,
    "_ASMoutput": adaptive_softmax._ASMoutput,
    "NonDynamicallyQuantizableLinear": multi_head_attention.NonDynamicallyQuantizableLinear,
    "_get_activation_fn": _transformer._activation,
    "_get_clones": _transformer._clones,
    "_WrappedHook": state._WrappedHook,
    "_IncompatibleKeys": state._IncompatibleKeys,
    "_EXTRA_STATE_KEY_SUFFIX": state.EXTRA_STATE_KEY,
    "_addindent": _addindent,
    "_list_with_default": _list_with_default,
    "consume_prefix_in_state_dict_if_present": consume_prefix_in_state_dict_if_present,
    "Tensor": Tensor,
    "RemovableHandle": RemovableHandle,
    **_HOOKS_OF_ALL,
    "init": init,
}

_MODULES = frozenset(
    (
        *("activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance"),
        *("dropout", "flatten", "fold", "instancenorm", "lazy", "linear", "loss", "module"),
        *("normalization", "padding", "pixelshuffle", "pooling", "rnn", "sparse", "transformer"),
        *("upsampling", "utils"),
    )
)

__path__ = []  # as of a package


class _Layers(types.ModuleType):
    """One of the modules. It has the names that PyTorch defines there, and finds all others."""

    def __init__(self, name):
        super().__init__(f"{__name__}.{name}", f"The layers of torch.nn.modules.{name}.")
        self.__path__ = []
        for layer in names_in(f"torch.nn.modules.{name}").keys() - {_IS_FULL}:
            with contextlib.suppress(AttributeError):
                setattr(self, layer, _layer(layer))

    def __setattr__(self, name, value):
        """Set a name; programs remove the hooks of all modules by setting an empty dict."""
        hooks = self.__dict__.get(name)
        if name == _IS_FULL:
            module_hooks.of_all.is_full = value
        elif isinstance(hooks, Hooks):
            value = dict(value)
            for number in list(hooks):
                hooks.pop(number)
            for number, hook in value.items():
                hooks[number] = hook
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise MissingName(self.__name__, name)
        try:
            return _layer(name)
        except MissingName:
            # what PyTorch's module imports
            value = elsewhere.find(self.__name__, name)
            if value is None:
                raise
            return value


_IS_FULL = "_global_is_full_backward_hook"


def _layer(name):
    if name == _IS_FULL:
        return module_hooks.of_all.is_full  # which changes
    if name in _OTHERS:
        return _OTHERS[name]
    if hasattr(tuples, name) and name.endswith(("single", "tuple", "pair", "triple", "quadruple")):
        return getattr(tuples, name)
    if name == "F":
        return nn.functional
    if name[:1].isupper() and hasattr(nn, name):
        return getattr(nn, name)
    raise MissingName("jaxgrad.nn", name)


def __getattr__(name):
    if name == "__all__":
        layers = (name for name in names_in("torch.nn.modules") if name[0] != "_")
        return [name for name in layers if hasattr(nn, name)]
    if name not in _MODULES:
        return _layer(name)
    module = globals()[name] = _Layers(name)
    return module
