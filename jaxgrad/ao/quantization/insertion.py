"""Observers and other layers are put into a model."""

from __future__ import annotations

from ... import nn
from ...names.not_provided import names_of
from ...nn.utils.parametrize import type_before_parametrizations
from ..nn.intrinsic.fused import _FusedModule
from ..nn.quantized.functional_modules import FloatFunctional, QFunctional
from . import fake_quantize
from .fake_quantize import FakeQuantizeBase
from .observer import ObserverBase, PerChannelMinMaxObserver
from .stubs import DeQuantStub

# layers whose results have the same range always, which training rounds to
_FIXED = {
    nn.Hardsigmoid: fake_quantize.default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: fake_quantize.default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: fake_quantize.default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: fake_quantize.default_fixed_qparams_range_neg1to1_fake_quant,
}


class OfParts:
    """The base of layers whose parts have observers."""


def _check(qconfig, mod):
    """Raise AssertionError for observers of channels where their axis is another one."""
    is_transposed = isinstance(mod, nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d)
    if qconfig is None or not is_transposed or qconfig.weight is None:
        return
    if isinstance(qconfig.weight(), PerChannelMinMaxObserver):
        raise AssertionError(
            "Per channel weight observer is not supported yet for ConvTranspose{n}d."
        )


def _is_memoryless(qconfig) -> bool:
    """Whether results have the range of a call alone."""
    known = qconfig.activation()
    known = getattr(known, "activation_post_process", known)
    return getattr(known, "averaging_constant", None) == 1 and known.is_dynamic


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Give every submodule a `qconfig`: its own, that of its name or class in `qconfig_dict`, or
    that of the module around it.
    """
    _propagate(module, qconfig_dict or {}, None, "")


def _propagate(module, known, of_parent, name):
    qconfig = known.get(type_before_parametrizations(module), of_parent)
    qconfig = getattr(module, "qconfig", known.get(name, qconfig))
    _check(qconfig, module)
    module.qconfig = qconfig
    for key, child in module.named_children():
        _propagate(child, known, qconfig, f"{name}.{key}" if name else key)


def _observe_output(self, input, output):
    return self.activation_post_process(output)


def _observe_input(self, input):
    return self.activation_post_process(input[0])


_OBSERVING, _HOOKS = (_observe_output, _observe_input), ("_forward_hooks", "_forward_pre_hooks")


def is_observed(module):
    """Whether a module has a `qconfig`."""
    return getattr(module, "qconfig", None) is not None


def _observe(module, make=None):
    """Let an observer record what a layer gives, or what it takes if that has a range of its own at
    each call.
    """
    if not is_observed(module) or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", (make or module.qconfig.activation)())
    if _is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observe_input, prepend=True)
    else:
        module.register_forward_hook(_observe_output, prepend=True)


def add_observers(module, layers, whole, observed):
    """Observe the layers of some classes; `whole`: classes whose submodules are not looked at;
    `observed`: the classes of layers of parts, by those of `nn`.
    """
    for name, child in list(module.named_children()):
        kind = type_before_parametrizations(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, FloatFunctional | QFunctional):
            if is_observed(child):
                child.activation_post_process = child.qconfig.activation()
        elif issubclass(kind, _FusedModule) or kind in whole:
            _observe(child)
        elif module.training and kind in _FIXED:
            _observe(child, _FIXED[kind])
        elif kind in observed and is_observed(child):
            module._modules[name] = child = observed[kind].from_float(child)
            if not isinstance(child, OfParts):
                _observe(child)
        else:
            add_observers(child, layers, whole, observed)
    is_leaf = not module._modules and not isinstance(module, nn.Sequential)
    rounds = hasattr(module, "weight_fake_quant")
    if (is_leaf or rounds) and type_before_parametrizations(module) in layers:
        _observe(module)


def convert_layers(module, mapping, custom=(), use_precomputed_fake_quant=False):
    """Swap the layers in a module; arguments: those of `swap_module`."""
    for name, child in list(module.named_children()):
        is_one = isinstance(child, _FusedModule) or hasattr(child, "weight_fake_quant")
        if not is_one and type(child) not in custom:
            convert_layers(child, mapping, custom, use_precomputed_fake_quant)
        module._modules[name] = swap_module(child, mapping, custom, use_precomputed_fake_quant)


def swap_module(mod, mapping, custom_module_class_mapping, use_precomputed_fake_quant=False):
    """The layer in place of `mod` that `mapping` has for its class, if it has a `qconfig`;
    `custom_module_class_mapping` has classes with a method `from_observed`.
    """
    kind = type_before_parametrizations(mod)
    if not is_observed(mod) or (kind not in mapping and kind not in custom_module_class_mapping):
        return mod
    if kind in custom_module_class_mapping:
        replaced = custom_module_class_mapping[kind].from_observed(mod)
    else:
        options = {"use_precomputed_fake_quant": use_precomputed_fake_quant}
        replaced = mapping[kind].from_float(mod, **options)
    for name in _HOOKS:
        hooks = getattr(mod, name).items()
        others = {key: hook for key, hook in hooks if hook not in _OBSERVING}
        getattr(replaced, name).update(others)
    return replaced


def remove_qconfig_of(module):
    """Take away what `prepare` put into a module."""
    for part in module.modules():
        part.__dict__.pop("qconfig", None)
        observer = getattr(part, "activation_post_process", None)
        if isinstance(observer, ObserverBase | FakeQuantizeBase):
            del part.activation_post_process
        for hooks in (getattr(part, name) for name in _HOOKS):
            for key in [key for key, hook in hooks.items() if hook in _OBSERVING]:
                del hooks[key]


__getattr__, __dir__ = names_of(__name__)
