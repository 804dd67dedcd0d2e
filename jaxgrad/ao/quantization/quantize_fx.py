"""Models that are traced and quantized as graphs, as torch.ao.quantization.quantize_fx.

>>> q = jaxgrad.ao.quantization
>>> model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(2, 2), jaxgrad.nn.ReLU()).eval()
>>> x = jaxgrad.ones(1, 2)
>>> prepared = q.quantize_fx.prepare_fx(model, q.get_default_qconfig_mapping(), (x,))
>>> prepared(x).shape
torch.Size([1, 2])
>>> next(q.quantize_fx.convert_fx(prepared).children())._get_name()
'QuantizedLinearReLU'
"""

from __future__ import annotations

import copy

from ...fx import GraphModule, Tracer
from ...names.not_provided import names_of
from .fx.convert import convert
from .fx.custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from .fx.fuse import fuse
from .fx.prepare import prepare
from .qconfig_mapping import QConfigMapping


class _Tracer(Tracer):
    """Takes the modules whose names or classes are given for one node."""

    def __init__(self, names=(), kinds=()):
        super().__init__()
        self.names, self.kinds = names, tuple(kinds)

    def is_leaf_module(self, m, module_qualified_name):
        is_chosen = module_qualified_name in self.names or isinstance(m, self.kinds)
        return is_chosen or super().is_leaf_module(m, module_qualified_name)


def _traced(model, config):
    """The graph of a copy of a model. config: a custom config, a dict of it or None."""
    if isinstance(config, dict):
        names = config.get("non_traceable_module_name", ())
        kinds = config.get("non_traceable_module_class", ())
        kept = config.get("preserved_attributes", ())
    else:
        names = getattr(config, "non_traceable_module_names", ())
        kinds = getattr(config, "non_traceable_module_classes", ())
        kept = getattr(config, "preserved_attributes", ())
    model = copy.deepcopy(model)
    traced = GraphModule(model, _Tracer(names, kinds).trace(model))
    for name in kept:
        setattr(traced, name, getattr(model, name))
    return traced


def _check(name, **options):
    unknown = [key for key, value in options.items() if value is not None]
    if unknown:
        raise NotImplementedError(
            f"{name}: {unknown[0]} is not provided by jaxgrad: leave it out, and layers are "
            "quantized as PyTorch's native backend does"
        )


def fuse_fx(model, fuse_custom_config=None, backend_config=None):
    """Return a traced model in evaluation mode in which layers that follow one another are one.

    Arguments: `prepare_fx` has them.
    """
    _check("fuse_fx", backend_config=backend_config)
    return fuse(_traced(model, fuse_custom_config), False)


def prepare_fx(
    model,
    qconfig_mapping,
    example_inputs,
    prepare_custom_config=None,
    _equalization_config=None,
    backend_config=None,
):
    """Return a traced model with observers, for evaluation on typical inputs and `convert_fx`.

    model: in evaluation mode; its control flow may not depend on tensors. qconfig_mapping: a
    `QConfigMapping`, or a dict of one. example_inputs: not used. prepare_custom_config: a
    `PrepareCustomConfig`. Raises NotImplementedError for a backend_config.
    """
    _check("prepare_fx", _equalization_config=_equalization_config, backend_config=backend_config)
    return _prepared(model, qconfig_mapping, prepare_custom_config, False)


def prepare_qat_fx(
    model, qconfig_mapping, example_inputs, prepare_custom_config=None, backend_config=None
):
    """Return a traced model whose layers round weights and results in training.

    model: in training mode; other arguments and errors: those of `prepare_fx`.
    """
    _check("prepare_qat_fx", backend_config=backend_config)
    return _prepared(model, qconfig_mapping, prepare_custom_config, True)


def _prepared(model, mapping, config, is_qat):
    if isinstance(mapping, dict):
        mapping = QConfigMapping.from_dict(mapping)
    return prepare(_traced(model, config), mapping, is_qat)


def convert_fx(
    graph_module,
    convert_custom_config=None,
    _remove_qconfig=True,
    qconfig_mapping=None,
    backend_config=None,
    keep_original_weights=False,
):
    """Return a model with quantized layers and functions.

    graph_module: `prepare_fx` or `prepare_qat_fx` gave it, and observers have seen inputs. Raises
    NotImplementedError for a backend_config and a qconfig_mapping.
    """
    _check("convert_fx", backend_config=backend_config, qconfig_mapping=qconfig_mapping)
    return convert(graph_module, _remove_qconfig)


__all__ = [
    "ConvertCustomConfig",
    "FuseCustomConfig",
    "PrepareCustomConfig",
    "convert_fx",
    "fuse_fx",
    "prepare_fx",
    "prepare_qat_fx",
]

__getattr__, __dir__ = names_of(__name__)
