"""Which `qconfig` the layers and functions of a traced model have."""

from __future__ import annotations

import re

from ... import nn, ops
from ...names.not_provided import names_of
from . import observer
from .fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from .qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

F = nn.functional


class QConfigMapping:
    """The `qconfig` of layers and functions. The first of these that fits holds: the number of a
    use in a module, a name, an expression for names, a class or function, and that of all.

    >>> q = jaxgrad.ao.quantization
    >>> mapping = q.QConfigMapping().set_global(q.default_qconfig)
    >>> mapping = mapping.set_module_name("head", None)
    >>> list(mapping.to_dict())[:2]
    ['', 'object_type']
    """

    def __init__(self):
        self.global_qconfig = None
        self.object_type_qconfigs, self.module_name_regex_qconfigs = {}, {}
        self.module_name_qconfigs, self.module_name_object_type_order_qconfigs = {}, {}

    def set_global(self, global_qconfig) -> QConfigMapping:
        """Set the `qconfig` of all that no other entry fits."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type, qconfig) -> QConfigMapping:
        """Set the `qconfig` of a class of layers, a function, or a method by its name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex, qconfig) -> QConfigMapping:
        """Set the `qconfig` of modules whose whole name matches a regular expression."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name, qconfig) -> QConfigMapping:
        """Set the `qconfig` of a module, and of what is in it."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name, object_type, index, qconfig
    ) -> QConfigMapping:
        """Set the `qconfig` of the use number `index` of a layer or function in a module."""
        key = module_name, object_type, index
        self.module_name_object_type_order_qconfigs[key] = qconfig
        return self

    def to_dict(self) -> dict:
        """The entries in lists, as `prepare_fx` took them in earlier versions of PyTorch."""
        return {
            "": self.global_qconfig,
            "object_type": list(self.object_type_qconfigs.items()),
            "module_name_regex": list(self.module_name_regex_qconfigs.items()),
            "module_name": list(self.module_name_qconfigs.items()),
            "module_name_object_type_order": [
                (*key, qconfig)
                for key, qconfig in self.module_name_object_type_order_qconfigs.items()
            ],
        }

    @classmethod
    def from_dict(cls, qconfig_dict) -> QConfigMapping:
        """The mapping of a dict as `to_dict` gives one."""
        mapping = cls().set_global(qconfig_dict.get(""))
        setters = (
            ("object_type", mapping.set_object_type),
            ("module_name_regex", mapping.set_module_name_regex),
            ("module_name", mapping.set_module_name),
            ("module_name_object_type_order", mapping.set_module_name_object_type_order),
        )
        for name, setter in setters:
            for entry in qconfig_dict.get(name, ()):
                setter(*entry)
        return mapping

    def __repr__(self):
        text = f"{type(self).__name__} ("
        for name, value in vars(self).items():
            if isinstance(value, dict):
                lines = [f"\n  {key}: {part}" for key, part in value.items()]
                lines = lines or ["\n  OrderedDict()"]
            else:
                lines = [f"\n  {value}"]
            text += f"\n {name}" + "".join(lines)
        return f"{text}\n)"

    def of(self, name: str, kinds: tuple, number: int):
        """The `qconfig` of a use.

        name: of the layer, or of the module around a function; kinds: its classes, functions or
        names; number: how many uses of these the module has before it.
        """
        places = [".".join(name.split(".")[:end]) for end in range(name.count(".") + 2)][::-1]
        for kind in kinds:
            key = places[1] if len(places) > 1 else "", kind, number
            if key in self.module_name_object_type_order_qconfigs:
                return self.module_name_object_type_order_qconfigs[key]
        for place in places:
            if place in self.module_name_qconfigs:
                return self.module_name_qconfigs[place]
        for pattern, qconfig in self.module_name_regex_qconfigs.items():
            if re.fullmatch(pattern, name):
                return qconfig
        for kind in kinds:
            if kind in self.object_type_qconfigs:
                return self.object_type_qconfigs[kind]
        return self.global_qconfig


_TRANSPOSED = tuple(
    getattr(module, name.format(dims))
    for module, name in ((nn, "ConvTranspose{}d"), (F, "conv_transpose{}d"))
    for dims in (1, 2, 3)
)
_FROM_0 = observer.default_fixed_qparams_range_0to1_observer
_FROM_MINUS_1 = observer.default_fixed_qparams_range_neg1to1_observer
# the functions whose results have the same range always, and its observer
FIXED = {
    nn.Hardsigmoid: _FROM_0,
    F.hardsigmoid: _FROM_0,
    "hardsigmoid": _FROM_0,
    "hardsigmoid_": _FROM_0,
    nn.Sigmoid: _FROM_0,
    ops.sigmoid: _FROM_0,
    "sigmoid": _FROM_0,
    "sigmoid_": _FROM_0,
    nn.Softmax: _FROM_0,
    nn.Tanh: _FROM_MINUS_1,
    ops.tanh: _FROM_MINUS_1,
    "tanh": _FROM_MINUS_1,
    "tanh_": _FROM_MINUS_1,
}


def _default(qconfig, backend, is_qat):
    weight = default_weight_fake_quant if is_qat else observer.default_weight_observer
    of_tensor = QConfig(qconfig.activation, weight)
    transposed = of_tensor if backend in ("fbgemm", "x86") else qconfig
    layer_norm = QConfig(qconfig.activation, observer.default_placeholder_observer)
    mapping = QConfigMapping().set_global(qconfig)
    mapping.set_object_type("reshape", default_reuse_input_qconfig)
    for kind in _TRANSPOSED:
        mapping.set_object_type(kind, transposed)
    mapping.set_object_type(F.layer_norm, layer_norm).set_object_type(nn.LayerNorm, layer_norm)
    mapping.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for kind, fixed in FIXED.items():
        activation = FixedQParamsFakeQuantize.with_args(observer=fixed) if is_qat else fixed
        mapping.set_object_type(kind, QConfig(activation, weight))
    return mapping


def get_default_qconfig_mapping(backend="x86", version=0) -> QConfigMapping:
    """The mapping for a model that `prepare_fx` observes; arguments: those of
    `get_default_qconfig`.

    >>> mapping = jaxgrad.ao.quantization.get_default_qconfig_mapping("qnnpack")
    >>> mapping.global_qconfig.weight().qscheme
    torch.per_tensor_symmetric
    """
    return _default(get_default_qconfig(backend, version), backend, False)


def get_default_qat_qconfig_mapping(backend="x86", version=1) -> QConfigMapping:
    """The mapping for a model that `prepare_qat_fx` trains; arguments: those of
    `get_default_qat_qconfig`.
    """
    return _default(get_default_qat_qconfig(backend, version), backend, True)


__getattr__, __dir__ = names_of(__name__)
