"""Functions on the parameters of modules, as torch.nn.utils.

A function is imported at its first use.
"""

from __future__ import annotations

import importlib

from ...names.missing import MissingName, offered

_MODULES = (
    "parametrizations",
    "parametrize",
    "prune",
    "rnn",
    "stateless",
    *("clip_grad", "convert_parameters", "fusion", "init", "memory_format"),
)  # submodules that are public

# Public names by the module that defines them.
_NAMES = {
    "clip_grad": (
        "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm"
    ),
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": ("fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights"),
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
    "weight_hooks": "remove_spectral_norm remove_weight_norm spectral_norm weight_norm",
}
_LAZY = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name):
    if name == "__all__":
        return offered(__name__)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise MissingName(__name__, name)


def __dir__():
    return sorted({*globals(), *_MODULES, *_LAZY})
