"""Models in which layers become quantized ones: after training, in it, or at each call."""

from __future__ import annotations

import copy
import warnings

from ... import nn
from ...core import dtypes, named_dtypes
from ...core.tracebacks import users_stacklevel
from ...names.not_provided import names_of
from ...nn.utils.parametrize import type_before_parametrizations
from ..nn.intrinsic.fused import _FusedModule
from ..nn.quantized.functional_modules import FloatFunctional, QFunctional
from .fake_quantize import FakeQuantizeBase
from .observer import ObserverBase
from .qconfig import (
    check,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    is_memoryless,
)
from .quantization_mappings import (
    FIXED,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
)
from .stubs import DeQuantStub, QuantWrapper


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Give every submodule a `qconfig`: its own, that of its name or class in `qconfig_dict`, or
    that of the module around it.
    """
    _propagate(module, qconfig_dict or {}, None, "")


def _propagate(module, known, of_parent, name):
    qconfig = known.get(type_before_parametrizations(module), of_parent)
    qconfig = getattr(module, "qconfig", known.get(name, qconfig))
    check(qconfig, module)
    module.qconfig = qconfig
    for key, child in module.named_children():
        _propagate(child, known, qconfig, f"{name}.{key}" if name else key)


def _observe_output(self, input, output):
    return self.activation_post_process(output)


def _observe_input(self, input):
    return self.activation_post_process(input[0])


_OBSERVING, _HOOKS = (_observe_output, _observe_input), ("_forward_hooks", "_forward_pre_hooks")


def _is_observed(module):
    return getattr(module, "qconfig", None) is not None


def _observe(module, make=None):
    """Let an observer record what a layer gives, or what it takes if that has a range of its own at
    each call.
    """
    if not _is_observed(module) or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", (make or module.qconfig.activation)())
    if is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observe_input, prepend=True)
    else:
        module.register_forward_hook(_observe_output, prepend=True)


def _add_observers(module, layers, whole):
    """Observe the layers of some classes; `whole`: classes whose submodules are not looked at."""
    for child in module.children():
        kind = type_before_parametrizations(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, FloatFunctional | QFunctional):
            if _is_observed(child):
                child.activation_post_process = child.qconfig.activation()
        elif issubclass(kind, _FusedModule) or kind in whole:
            _observe(child)
        elif module.training and kind in FIXED:
            _observe(child, FIXED[kind])
        else:
            _add_observers(child, layers, whole)
    is_leaf = not module._modules and not isinstance(module, nn.Sequential)
    rounds = hasattr(module, "weight_fake_quant")
    if (is_leaf or rounds) and type_before_parametrizations(module) in layers:
        _observe(module)


def prepare(
    model,
    inplace=False,
    allow_list=None,
    observer_non_leaf_module_list=None,
    prepare_custom_config_dict=None,
):
    """Return a model whose layers have observers, of their `qconfig`.

    model: it, or modules in it, have a `qconfig`; evaluate the result on typical inputs, then call
    `convert`. inplace: whether the model itself is changed. allow_list: the classes of layers that
    get observers. observer_non_leaf_module_list: classes of modules that get one as a whole.

    >>> q = jaxgrad.ao.quantization
    >>> model = jaxgrad.nn.Sequential(q.QuantStub(), jaxgrad.nn.Linear(2, 2), q.DeQuantStub())
    >>> model.qconfig = q.get_default_qconfig("x86")
    >>> prepared = q.prepare(model.eval())
    >>> prepared(jaxgrad.ones(1, 2)).shape
    torch.Size([1, 2])
    >>> q.convert(prepared)[1]._get_name()
    'QuantizedLinear'
    """
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(_is_observed(module) for module in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct "
            "configuration by assigning the `.qconfig` attribute directly on submodules",
            stacklevel=users_stacklevel(),
        )
    layers = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    _add_observers(model, layers, observer_non_leaf_module_list or ())
    return model


def convert(
    module,
    mapping=None,
    inplace=False,
    remove_qconfig=True,
    is_reference=False,
    convert_custom_config_dict=None,
    use_precomputed_fake_quant=False,
):
    """Return a model with quantized layers in place of those that have a `qconfig`.

    module: `prepare` or `prepare_qat` gave it. mapping: classes of layers, by those that they
    replace. inplace: whether the module itself is changed. remove_qconfig: whether `qconfig` and
    observers are taken away.
    """
    if is_reference:
        raise NotImplementedError("convert: reference layers are not provided by jaxgrad")
    module = module if inplace else copy.deepcopy(module)
    known = get_default_static_quant_module_mappings() if mapping is None else mapping
    _convert(module, known, use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(module, mapping, use_precomputed_fake_quant):
    for name, child in list(module.named_children()):
        if not isinstance(child, _FusedModule):
            _convert(child, mapping, use_precomputed_fake_quant)
        module._modules[name] = swap_module(child, mapping, {}, use_precomputed_fake_quant)


def swap_module(mod, mapping, custom_module_class_mapping, use_precomputed_fake_quant=False):
    """The layer in place of `mod` that `mapping` has for its class, if it has a `qconfig`."""
    kind = mapping.get(type_before_parametrizations(mod))
    if kind is None or not _is_observed(mod):
        return mod
    replaced = kind.from_float(mod, use_precomputed_fake_quant=use_precomputed_fake_quant)
    for name in _HOOKS:
        hooks = getattr(mod, name).items()
        others = {key: hook for key, hook in hooks if hook.function not in _OBSERVING}
        getattr(replaced, name).update(others)
    return replaced


def _remove_qconfig(module):
    for part in module.modules():
        part.__dict__.pop("qconfig", None)
        observer = getattr(part, "activation_post_process", None)
        if isinstance(observer, ObserverBase | FakeQuantizeBase):
            del part.activation_post_process
        for hooks in (getattr(part, name) for name in _HOOKS):
            for key in [key for key, hook in hooks.items() if hook.function in _OBSERVING]:
                del hooks[key]


def add_quant_dequant(module):
    """Put each layer that has a `qconfig` into a `QuantWrapper`, and return the module."""
    if not module._modules and _is_observed(module):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """`prepare` a model, evaluate it by `run_fn(model, *run_args)`, and `convert` it."""
    model = (model if inplace else copy.deepcopy(model)).eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


_DYNAMIC = {named_dtypes.qint8: default_dynamic_qconfig, dtypes.float16: float16_dynamic_qconfig}


def quantize_dynamic(
    model, qconfig_spec=None, dtype=named_dtypes.qint8, mapping=None, inplace=False
):
    """Return a model whose linear and recurrent layers have weights of 8 bits, and quantize their
    input at each call.

    qconfig_spec: a set of classes or names of layers; a dict of these to a `qconfig`. dtype: of the
    weights, `qint8` or `float16`. mapping: classes of layers, by those that they replace. inplace:
    whether the model itself is changed. Raises ValueError for another dtype.

    >>> model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(4, 2), jaxgrad.nn.ReLU())
    >>> jaxgrad.ao.quantization.quantize_dynamic(model)[0]._get_name()
    'DynamicQuantizedLinear'
    """
    if not isinstance(qconfig_spec, dict):
        if dtype not in _DYNAMIC:
            raise ValueError(
                f"Don't know how to quantize with default settings for {dtype}. Provide full "
                "qconfig please: qint8 and float16 have one"
            )
        usual = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
        qconfig_spec = dict.fromkeys(qconfig_spec or usual, _DYNAMIC[dtype])
    model = (model if inplace else copy.deepcopy(model)).eval()
    propagate_qconfig_(model, qconfig_spec)
    known = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    return convert(model, known, inplace=True)


def prepare_qat(model, mapping=None, inplace=False):
    """Return a model whose layers round their weights and results in training, as their `qconfig`
    says.

    model: in training mode. mapping: classes of layers, by those that they replace. Raises
    AssertionError in evaluation mode.
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping, inplace=True, remove_qconfig=False)
    return prepare(model, inplace=True, observer_non_leaf_module_list={*mapping.values()})


def quantize_qat(model, run_fn, run_args, inplace=False):
    """`prepare_qat` a model, train it by `run_fn(model, *run_args)`, and `convert` it."""
    model = (model if inplace else copy.deepcopy(model)).train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


__getattr__, __dir__ = names_of(__name__)
