"""`__constants__` of layers: the attributes that TorchScript takes for constants. Here nothing
reads them; subclasses of the layers add to them.

>>> jaxgrad.nn.Linear.__constants__
['in_features', 'out_features']
"""

from __future__ import annotations

import functools

# layers, the bases among them, and their constants
LAYERS = """
_Convolution: stride padding dilation groups padding_mode output_padding in_channels out_channels
 kernel_size
_RunningNorm: track_running_stats momentum eps num_features affine
_Dropout: p inplace
_AdaptiveAvg: output_size
_AdaptiveMax: output_size return_indices
_MaxPool: kernel_size stride padding dilation return_indices ceil_mode
_LPPool: norm_type kernel_size stride ceil_mode
_FractionalMaxPool: kernel_size return_indices output_size output_ratio
_AvgPool: kernel_size stride padding ceil_mode count_include_pad
AvgPool2d AvgPool3d: kernel_size stride padding ceil_mode count_include_pad divisor_override
_ConstantPad: padding value
_CircularPad _ReflectionPad _ReplicationPad: padding
BCELoss KLDivLoss L1Loss MSELoss MultiLabelMarginLoss MultiLabelSoftMarginLoss SmoothL1Loss
 SoftMarginLoss: reduction
CosineEmbeddingLoss HingeEmbeddingLoss MarginRankingLoss: margin reduction
CrossEntropyLoss: ignore_index reduction label_smoothing
CTCLoss: blank reduction
GaussianNLLLoss: full eps reduction
HuberLoss: reduction delta
LinearCrossEntropyLoss: num_classes out_features reduction ignore_index label_smoothing
MultiMarginLoss: p margin reduction
NLLLoss: ignore_index reduction
PoissonNLLLoss: log_input full eps reduction
TripletMarginLoss: margin p eps swap reduction
TripletMarginWithDistanceLoss: margin swap reduction
Hardsigmoid Hardswish Mish ReLU SELU SiLU: inplace
CELU ELU: alpha inplace
GELU: approximate
GLU LogSoftmax Softmax Softmin: dim
Hardshrink Softshrink: lambd
Hardtanh ReLU6: min_val max_val inplace
LeakyReLU: inplace negative_slope
PReLU: num_parameters
RReLU: lower upper inplace
Softplus: beta threshold
Threshold: threshold value inplace
RNNBase: mode input_size hidden_size num_layers bias batch_first dropout bidirectional proj_size
RNNCellBase: input_size hidden_size bias
RNNCell: input_size hidden_size bias nonlinearity
GroupNorm: num_groups num_channels eps affine
LayerNorm RMSNorm: normalized_shape eps elementwise_affine
CrossMapLRN2d LocalResponseNorm: size alpha beta k
Linear: in_features out_features
Bilinear: in1_features in2_features out_features
Embedding: num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse
EmbeddingBag: num_embeddings embedding_dim max_norm norm_type scale_grad_by_freq mode sparse
 include_last_offset padding_idx
Flatten: start_dim end_dim
Unflatten: dim unflattened_size
Fold: output_size kernel_size dilation padding stride
Unfold: kernel_size dilation padding stride
CosineSimilarity: dim eps
PairwiseDistance: norm eps keepdim
MultiheadAttention: batch_first
TransformerDecoder TransformerEncoder: norm
_Layer: norm_first
ChannelShuffle: groups
PixelShuffle: upscale_factor
PixelUnshuffle: downscale_factor
Upsample: size scale_factor mode align_corners name recompute_scale_factor
"""


@functools.cache
def _constants() -> dict[str, str]:
    """The constants by the name of a layer."""
    lines = LAYERS.strip().replace("\n ", " ").splitlines()
    rows = (line.split(": ") for line in lines)
    return {name: constants for names, constants in rows for name in names.split()}


def of(layer: type) -> list[str]:
    """The constants of a class of modules. Raises AttributeError if it has none."""
    for base in layer.__mro__:
        if base.__module__.startswith(__package__) and base.__name__ in _constants():
            return _constants()[base.__name__].split()
    raise AttributeError(f"type object {layer.__name__!r} has no attribute '__constants__'")
