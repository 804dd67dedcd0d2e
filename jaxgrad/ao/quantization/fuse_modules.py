"""Layers that follow one another, as one."""

from __future__ import annotations

import copy

from ... import nn
from ...names.not_provided import names_of
from ...nn.utils import fusion
from ...nn.utils.parametrize import type_before_parametrizations
from ..nn import intrinsic

_WITH_RELU = {
    nn.Linear: intrinsic.LinearReLU,
    nn.Conv1d: intrinsic.ConvReLU1d,
    nn.Conv2d: intrinsic.ConvReLU2d,
    nn.Conv3d: intrinsic.ConvReLU3d,
    nn.BatchNorm2d: intrinsic.BNReLU2d,
    nn.BatchNorm3d: intrinsic.BNReLU3d,
}
_NORMS = {
    nn.Linear: nn.BatchNorm1d,
    nn.Conv1d: nn.BatchNorm1d,
    nn.Conv2d: nn.BatchNorm2d,
    nn.Conv3d: nn.BatchNorm3d,
    nn.ConvTranspose1d: nn.BatchNorm1d,
    nn.ConvTranspose2d: nn.BatchNorm2d,
    nn.ConvTranspose3d: nn.BatchNorm3d,
}
_TRAINED = {
    kind.kinds: kind
    for kind in (
        *(intrinsic.ConvBn1d, intrinsic.ConvBn2d, intrinsic.ConvBn3d, intrinsic.LinearBn1d),
        *(intrinsic.ConvBnReLU1d, intrinsic.ConvBnReLU2d, intrinsic.ConvBnReLU3d),
    )
}


def fuse_known_modules(mod_list, is_qat, additional_fuser_method_mapping=None) -> list:
    """The layer that does what those in a list do, and identities in place of the others."""
    kinds = tuple(map(type_before_parametrizations, mod_list))
    method = (additional_fuser_method_mapping or {}).get(kinds)
    fused = method(is_qat, *mod_list) if method else _fused(kinds, mod_list, is_qat)
    for name, source in (("_forward_pre_hooks", mod_list[0]), ("_forward_hooks", mod_list[-1])):
        hooks = dict(getattr(source, name))
        getattr(source, name).clear()
        getattr(fused, name).update(hooks)
    others = [nn.Identity().train(mod_list[0].training) for _ in mod_list[1:]]
    return [fused, *others]


def _fused(kinds, layers, is_qat):
    first, *rest = layers
    if len(layers) > 1 and _NORMS.get(kinds[0]) is kinds[1]:
        if is_qat:
            return _trained(kinds, layers)
        first, rest, kinds = _normalized(first, rest[0]), rest[1:], (kinds[0], *kinds[2:])
    if not rest:
        return first
    if len(rest) > 1 or kinds[1] is not nn.ReLU or kinds[0] not in _WITH_RELU:
        raise AssertionError(
            f"did not find fuser method for: {kinds}: a convolution or Linear comes first, then "
            "its batch normalization, then ReLU"
        )
    return _WITH_RELU[kinds[0]](first, rest[0]).train(layers[0].training)


def _trained(kinds, layers):
    """A layer followed by its batch normalization; `prepare_qat` replaces the pair by one layer."""
    layer, norm = layers[:2]
    if isinstance(layer, nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d):
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    if kinds not in _TRAINED:
        raise NotImplementedError(f"Cannot fuse train modules: {kinds}")
    if layer.training != norm.training:
        raise AssertionError("a layer and its batch normalization must both be in one mode")
    if norm.num_features != len(layer.weight):
        raise AssertionError(
            f"{kinds[1].__name__} of {norm.num_features} channels must match the "
            f"{len(layer.weight)} outputs of {kinds[0].__name__}"
        )
    if not (norm.affine and norm.track_running_stats):
        raise AssertionError("Only support fusing BatchNorm with affine and track_running_stats")
    return _TRAINED[kinds](*layers).train(layer.training)


def _normalized(layer, norm):
    if layer.training or norm.training:
        raise AssertionError("Fusing a layer with its batch normalization needs eval mode")
    if isinstance(layer, nn.Linear):
        return fusion.fuse_linear_bn_eval(layer, norm)
    return fusion.fuse_conv_bn_eval(layer, norm, getattr(layer, "transposed", False))


def _fuse(model, modules_to_fuse, is_qat, inplace, fuser_func, config):
    model = model if inplace else copy.deepcopy(model)
    is_one = all(isinstance(name, str) for name in modules_to_fuse)
    more = (config or {}).get("additional_fuser_method_mapping", {})
    for names in [modules_to_fuse] if is_one else modules_to_fuse:
        layers = fuser_func([model.get_submodule(name) for name in names], is_qat, more)
        for name, layer in zip(names, layers, strict=True):
            parent, _, key = name.rpartition(".")
            setattr(model.get_submodule(parent), key, layer)
    return model


def fuse_modules(
    model,
    modules_to_fuse,
    inplace=False,
    fuser_func=fuse_known_modules,
    fuse_custom_config_dict=None,
):
    """Return a model in evaluation mode in which layers become one: of convolutions and linear
    layers with batch normalization, relu or both, and of batch normalization with relu.

    modules_to_fuse: the names of layers that follow one another, or lists of them. Raises
    NotImplementedError for other layers.

    >>> model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(2, 2), jaxgrad.nn.ReLU()).eval()
    >>> type(jaxgrad.ao.quantization.fuse_modules(model, ["0", "1"])[0]).__name__
    'LinearReLU'
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model,
    modules_to_fuse,
    inplace=False,
    fuser_func=fuse_known_modules,
    fuse_custom_config_dict=None,
):
    """`fuse_modules` for a model in training mode: a layer and its batch normalization become a
    pair, which `prepare_qat` replaces by a layer of `ao.nn.intrinsic.qat`.

    >>> nn = jaxgrad.nn
    >>> model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
    >>> fused = jaxgrad.ao.quantization.fuse_modules_qat(model, ["0", "1", "2"])
    >>> [type(layer).__name__ for layer in fused]
    ['ConvBnReLU2d', 'Identity', 'Identity']
    """
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)


__getattr__, __dir__ = names_of(__name__)
