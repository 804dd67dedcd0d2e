"""Which nodes of a graph can be quantized, and how."""

from __future__ import annotations

import operator

from .... import nn, ops
from ....core import dtypes, named_dtypes
from ....functions.quantization import per_channel_affine_float_qparams
from ....names.not_provided import names_of
from ...nn.intrinsic.fused import _FusedModule
from ...nn.qat.layers import _RoundsWeight
from ..qconfig_mapping import FIXED

F = nn.functional
OBSERVER = "activation_post_process_"  # the names of observers begin so

# what PyTorch's native backend knows: layers with weights, and those whose results have a range of
# their own
_LAYERS = (
    *(nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm),
    *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.ELU, nn.LeakyReLU),
    *(nn.Hardswish, nn.Dropout, nn.PReLU, nn.InstanceNorm1d, nn.InstanceNorm2d),
    *(nn.InstanceNorm3d, _FusedModule, _RoundsWeight),
)
# layers whose results have the scale of the input
_LAYERS_OF_SAME_SCALE = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.Hardtanh, nn.ReLU6),
    *(nn.ReLU, nn.Identity, nn.PixelShuffle, nn.PixelUnshuffle),
)
BINARY = {
    operator.add: "add",
    operator.iadd: "add",
    ops.add: "add",
    operator.mul: "mul",
    operator.imul: "mul",
    ops.mul: "mul",
    ops.matmul: "matmul",
    operator.matmul: "matmul",
}
LINEAR = (F.linear, ops.linear)
_CONVOLUTIONS = "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
CONVOLUTIONS = frozenset(_CONVOLUTIONS.split(" "))
_FUNCTIONS = "elu hardswish leaky_relu dropout group_norm instance_norm layer_norm hardsigmoid"
_WITH_RANGE = {
    "call_function": CONVOLUTIONS.union(f"{_FUNCTIONS} sigmoid tanh".split(" ")),
    "call_method": frozenset(kind for kind in FIXED if isinstance(kind, str)),
}
_POOLS = (
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d max_pool1d max_pool2d max_pool3d "
    "avg_pool1d avg_pool2d avg_pool3d"
)
_BOTH = "relu clamp mean repeat_interleave transpose squeeze unsqueeze"
_SHARED = {
    "call_function": frozenset(
        f"{_POOLS} {_BOTH} hardtanh interpolate pixel_shuffle pixel_unshuffle relu6 flatten narrow "
        "stack cat".split(" ")
    ),
    "call_method": frozenset(f"{_BOTH} contiguous detach permute repeat reshape view".split(" ")),
}
# functions without a kernel for quantized tensors: they compute with numbers
_OF_NUMBERS = frozenset(["avg_pool1d", "adaptive_avg_pool1d", "repeat_interleave", "dropout"])
_LAYERS_OF_NUMBERS = (nn.AvgPool1d, nn.AdaptiveAvgPool1d)
_FIXED_BY_KERNELS = (nn.Sigmoid, nn.Hardsigmoid, nn.Tanh)
_FIXED_NAMES = frozenset(("sigmoid", "hardsigmoid", "tanh"))


def has_kernel(node, layer) -> bool:
    """Whether a function or layer without weights takes quantized tensors as it is."""
    if layer is not None:
        is_shared = isinstance(layer, _LAYERS_OF_SAME_SCALE)
        return isinstance(layer, _FIXED_BY_KERNELS) or (
            is_shared and not isinstance(layer, _LAYERS_OF_NUMBERS)
        )
    name = name_of(node).removesuffix("_")
    return name in _FIXED_NAMES or (name in _SHARED[node.op] and name not in _OF_NUMBERS)


def name_of(node) -> str:
    """The name of a function or method."""
    return node.target if node.op == "call_method" else getattr(node.target, "__name__", "")


def is_joined(node) -> bool:
    """Whether a node joins tensors of a list."""
    return node.op == "call_function" and name_of(node) in ("cat", "stack")


def kind_of(node, modules) -> str | None:
    """How the result of a node is quantized: "own", with a range of its own; "shared", with the
    scale of its input; None if it is not.
    """
    if node.op == "call_module":
        layer = modules[node.target]
        if isinstance(layer, _LAYERS_OF_SAME_SCALE):
            return "shared"
        return "own" if isinstance(layer, _LAYERS) or type(layer) in FIXED else None
    if node.op not in _SHARED:
        return None
    if node.op == "call_function" and node.target in BINARY:
        tensors = sum(map(_is_node, node.args))
        return "own" if tensors == 2 else "shared" if BINARY[node.target] != "matmul" else None
    if node.op == "call_function" and node.target in LINEAR:
        return "own"
    name = name_of(node).removesuffix("_")
    if name in _WITH_RANGE[node.op]:
        return "own"
    return "shared" if name in _SHARED[node.op] else None


def _is_node(value) -> bool:
    return hasattr(value, "users")


def inputs_of(node) -> list:
    """The nodes whose tensors a node computes with, without weights of functions."""
    if is_joined(node):
        return list(node.args[0])
    if node.op == "call_function" and node.target in BINARY:
        return [value for value in node.args[:2] if _is_node(value)]
    return [value for value in node.args[:1] if _is_node(value)]


def is_static(qconfig) -> bool:
    """Whether results are rounded to integers of a range that observers record."""
    if qconfig is None:
        return False
    activation = qconfig.activation()
    if getattr(activation, "is_dynamic", False) or is_weight_only(qconfig):
        return False
    dtype = getattr(activation, "dtype", None)
    if dtype is dtypes.float16:
        raise NotImplementedError(
            "prepare_fx: results of float16 are not provided: model.half() gives those"
        )
    return dtype in (named_dtypes.quint8, named_dtypes.qint8)


def is_weight_only(qconfig) -> bool:
    """Whether the table of an embedding alone is quantized."""
    scheme = getattr(qconfig.weight(), "qscheme", None)
    return scheme is per_channel_affine_float_qparams


__getattr__, __dir__ = names_of(__name__)
