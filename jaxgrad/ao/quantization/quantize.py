"""Models in which layers become quantized ones: after training, in it, or at each call."""

from __future__ import annotations

import copy
import warnings

from ... import nn
from ...core import dtypes, named_dtypes
from ...core.tracebacks import users_stacklevel
from ...names.not_provided import names_of
from ..nn import quantizable
from ..nn.quantized import of_observed
from .insertion import (
    add_observers,
    convert_layers,
    is_observed,
    propagate_qconfig_,
    remove_qconfig_of,
)
from .insertion import (
    swap_module as swap_module,
)
from .qconfig import (
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from .quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
)
from .stubs import QuantWrapper

# what `prepare` puts in place of layers of `nn`, and `convert` in place of that
_OBSERVED = {
    nn.LSTM: quantizable.LSTM,
    nn.MultiheadAttention: quantizable.MultiheadAttention,
}
_QUANTIZED = {
    quantizable.LSTM: of_observed.LSTM,
    quantizable.MultiheadAttention: of_observed.MultiheadAttention,
}


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
    prepare_custom_config_dict: under "float_to_observed_custom_module_class" classes with a method
    `from_float`, by those that they replace.

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
    if not any(is_observed(module) for module in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct "
            "configuration by assigning the `.qconfig` attribute directly on submodules",
            stacklevel=users_stacklevel(),
        )
    layers = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    config = prepare_custom_config_dict or {}
    observed = config.get("float_to_observed_custom_module_class", _OBSERVED)
    add_observers(model, layers, observer_non_leaf_module_list or (), observed)
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
    observers are taken away. convert_custom_config_dict: under
    "observed_to_quantized_custom_module_class" classes with a method `from_observed`.
    """
    if is_reference:
        raise NotImplementedError("convert: reference layers are not provided by jaxgrad")
    module = module if inplace else copy.deepcopy(module)
    known = get_default_static_quant_module_mappings() if mapping is None else mapping
    config = convert_custom_config_dict or {}
    custom = config.get("observed_to_quantized_custom_module_class", _QUANTIZED)
    convert_layers(module, known, custom, use_precomputed_fake_quant)
    if remove_qconfig:
        remove_qconfig_of(module)
    return module


def add_quant_dequant(module):
    """Put each layer that has a `qconfig` into a `QuantWrapper`, and return the module."""
    if not module._modules and is_observed(module):
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


_PRODUCTS = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
_DYNAMIC = {
    named_dtypes.qint8: (_PRODUCTS, default_dynamic_qconfig),
    dtypes.float16: (_PRODUCTS, float16_dynamic_qconfig),
    named_dtypes.quint8: ((nn.Embedding, nn.EmbeddingBag), float_qparams_weight_only_qconfig),
    named_dtypes.quint4x2: ((nn.EmbeddingBag,), float_qparams_weight_only_qconfig_4bit),
}


def quantize_dynamic(
    model, qconfig_spec=None, dtype=named_dtypes.qint8, mapping=None, inplace=False
):
    """Return a model whose linear and recurrent layers have weights of 8 bits, and quantize their
    input at each call.

    qconfig_spec: a set of classes or names of layers; a dict of these to a `qconfig`. dtype: of the
    weights, `qint8` or `float16`; of embeddings, `quint8` or `quint4x2`. mapping: classes of
    layers, by those that they replace. inplace: whether the model itself is changed. Raises
    ValueError for another dtype.

    >>> model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(4, 2), jaxgrad.nn.ReLU())
    >>> jaxgrad.ao.quantization.quantize_dynamic(model)[0]._get_name()
    'DynamicQuantizedLinear'
    """
    if not isinstance(qconfig_spec, dict):
        if dtype not in _DYNAMIC:
            raise ValueError(
                f"Don't know how to quantize with default settings for {dtype}. Provide full "
                "qconfig please: qint8, float16 and, for embeddings, quint8 and quint4x2 have one"
            )
        layers, qconfig = _DYNAMIC[dtype]
        qconfig_spec = dict.fromkeys(qconfig_spec or layers, qconfig)
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
