"""Which observers record the results of layers, and which their weights."""

from __future__ import annotations

import warnings
from collections import namedtuple

from ... import nn
from ...core import dtypes, named_dtypes
from ...names.not_provided import names_of
from . import observer
from .fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
)
from .observer import HistogramObserver, MovingAverageMinMaxObserver, PlaceholderObserver

_Fields = namedtuple("QConfig", ["activation", "weight"])


class QConfig(_Fields):
    """The observers of a layer.

    activation, weight: classes of observers, or `Observer.with_args(...)`. Raises ValueError for
    an observer itself, since every layer gets new ones.

    >>> q = jaxgrad.ao.quantization
    >>> q.QConfig(activation=q.MinMaxObserver, weight=q.default_weight_observer).weight().dtype
    torch.qint8
    """

    __slots__ = ()

    def __new__(cls, activation, weight):
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(observer.default_observer, observer.default_weight_observer)
default_debug_qconfig = QConfig(observer.default_debug_observer, observer.default_weight_observer)
default_per_channel_qconfig = QConfig(
    observer.default_observer, observer.default_per_channel_weight_observer
)
default_dynamic_qconfig = QConfig(
    observer.default_dynamic_quant_observer, observer.default_weight_observer
)
per_channel_dynamic_qconfig = QConfig(
    observer.default_dynamic_quant_observer, observer.default_per_channel_weight_observer
)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=dtypes.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=dtypes.float16),
)
float16_static_qconfig = QConfig(*(PlaceholderObserver.with_args(dtype=dtypes.float16),) * 2)
float_qparams_weight_only_qconfig = QConfig(
    observer.default_placeholder_observer, observer.default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    observer.default_placeholder_observer, observer.default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_embedding_qat_qconfig = QConfig(
    observer.NoopObserver.with_args(dtype=dtypes.float32), default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    observer.NoopObserver.with_args(dtype=dtypes.float32), default_embedding_fake_quant_4bit
)
default_weight_only_qconfig = QConfig(nn.Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, nn.Identity)
default_reuse_input_qconfig = QConfig(observer.default_reuse_input_observer, observer.NoopObserver)
_SIGNED = HistogramObserver.with_args(dtype=named_dtypes.qint8, reduce_range=False, eps=2**-12)
default_symmetric_qnnpack_qconfig = QConfig(_SIGNED, observer.weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _SIGNED, observer.per_channel_weight_observer_range_neg_127_to_127
)
default_quint8_weight_qconfig = QConfig(HistogramObserver, observer.MinMaxObserver)

# whether an engine's products have room for 7 bits alone, and weights a scale for each channel
_ENGINES = {
    "x86": (True, True),
    "fbgemm": (True, True),
    "onednn": (False, True),
    "qnnpack": (False, False),
}


def _engine(backend, version, versions):
    if backend not in _ENGINES:
        raise AssertionError(
            f"backend: {backend} not supported. backend must be one of {list(_ENGINES)}"
        )
    if version not in versions:
        raise AssertionError(f"Version number: {version} is not supported: {versions} are")
    return _ENGINES[backend]


def get_default_qconfig(backend="x86", version=0) -> QConfig:
    """The observers for a model that is quantized after training.

    backend: "x86", "fbgemm", "qnnpack" or "onednn". Raises AssertionError for another one.

    >>> jaxgrad.ao.quantization.get_default_qconfig("qnnpack").activation().reduce_range
    False
    """
    reduce_range, of_channels = _engine(backend, version, (0,))
    weight = (
        observer.default_per_channel_weight_observer
        if of_channels
        else observer.default_weight_observer
    )
    return QConfig(HistogramObserver.with_args(reduce_range=reduce_range), weight)


def get_default_qat_qconfig(backend="x86", version=1) -> QConfig:
    """The modules that round in a training for quantization.

    backend, errors: as in `get_default_qconfig`. version: None or 1; 0 for PyTorch's earlier ones.

    >>> jaxgrad.ao.quantization.get_default_qat_qconfig("fbgemm").weight().qscheme
    torch.per_channel_symmetric
    """
    reduce_range, of_channels = _engine(backend, version, (None, 0, 1))
    is_early = version == 0
    rounds = FakeQuantize if is_early else FusedMovingAvgObsFakeQuantize
    options = {"observer": MovingAverageMinMaxObserver, "quant_min": 0, "quant_max": 255}
    if backend != "onednn":
        options["reduce_range"] = reduce_range
    of_tensor, of_channel = (
        (default_weight_fake_quant, default_per_channel_weight_fake_quant)
        if is_early
        else (default_fused_wt_fake_quant, default_fused_per_channel_wt_fake_quant)
    )
    return QConfig(rounds.with_args(**options), of_channel if of_channels else of_tensor)


def QConfigDynamic(activation=nn.Identity, weight=nn.Identity):
    """The older name of `QConfig`."""
    warnings.warn(
        "`QConfigDynamic` is going to be deprecated in PyTorch 1.12, please use `QConfig` instead",
        FutureWarning,
        stacklevel=2,
    )
    return QConfig(activation, weight)


__getattr__, __dir__ = names_of(__name__)
