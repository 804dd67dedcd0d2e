"""Layers that follow one another in a graph become one."""

from __future__ import annotations

from .... import nn, ops
from ....fx import GraphModule
from ....names.not_provided import names_of
from ..fuse_modules import fuse_known_modules

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_RELUS = (nn.functional.relu, nn.functional.relu_, ops.relu, "relu", "relu_")


def is_relu(node, modules) -> bool:
    """Whether a node is a relu: a layer, a function or a method."""
    if node.op == "call_module":
        return type(modules[node.target]) is nn.ReLU
    return node.op in ("call_function", "call_method") and node.target in _RELUS


def fuse(model, is_qat: bool):
    """Fuse the layers of a traced model: a convolution or linear layer with batch
    normalization, relu or both, and batch normalization with relu.
    """
    for node in list(model.graph.nodes):
        if node.op == "call_module" and not node._erased:
            _fuse_from(model, node, is_qat)
    return GraphModule(model, model.graph)  # without the layers that are parts of others


def _fuse_from(model, node, is_qat):
    modules = dict(model.named_modules(remove_duplicate=False))
    nodes, layers = [node], [modules[node.target]]
    while len(nodes[-1].users) == 1:
        (following,) = nodes[-1].users
        if is_relu(following, modules):
            nodes.append(following)
            layers.append(nn.ReLU().train(layers[0].training))
            break
        is_norm = following.op == "call_module" and isinstance(modules[following.target], _NORMS)
        if not is_norm or len(nodes) > 1:
            break
        nodes.append(following)
        layers.append(modules[following.target])
    while len(layers) > 1:
        try:
            fused = fuse_known_modules(layers, is_qat)[0]
        except NotImplementedError:
            nodes, layers = nodes[:-1], layers[:-1]
            continue
        _put(model, nodes, layers[0], fused)
        return


def _put(model, nodes, first, fused):
    if getattr(first, "qconfig", None) is not None:
        fused.qconfig = first.qconfig
    parent, _, name = nodes[0].target.rpartition(".")
    setattr(model.get_submodule(parent), name, fused)
    for node in reversed(nodes[1:]):
        node.replace_all_uses_with(nodes[0])
        model.graph.erase_node(node)


__getattr__, __dir__ = names_of(__name__)
