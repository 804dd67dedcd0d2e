"""The functions that PyTorch composes of operators, one module for each family. The operators are
recorded and have the derivatives, as in PyTorch.

`import jaxgrad` imports no module of this package: one is imported at the first use of a name.
"""

from __future__ import annotations

import functools
import importlib

from .. import ops
from ..frontend.methods import LazyMethod
from ..tape.tensor import Tensor

# the functions of `jaxgrad` by module
FUNCTIONS = {
    "activation": ("_masked_softmax _safe_softmax prelu rrelu rrelu_ selu selu_"),
    "combinations": "cartesian_prod combinations",
    "compressed_indices": "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo",
    "convolution": (
        "_convolution _convolution_mode conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
        "conv_transpose3d"
    ),
    "creation": (
        "_efficientzerotensor empty_permuted empty_strided from_file frombuffer range "
        "scalar_tensor tril_indices triu_indices"
    ),
    "distance": "cdist cosine_similarity pairwise_distance pdist",
    "dropout": (
        "_fused_dropout alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout "
        "feature_alpha_dropout_ feature_dropout feature_dropout_ native_dropout"
    ),
    "einsum": "einsum",
    "embedding": "embedding_bag",
    "grid_sampling": (
        "_grid_sampler_2d_cpu_fallback cudnn_affine_grid_generator cudnn_grid_sampler grid_sampler"
    ),
    "histogram": "bincount histogramdd",
    "indexing": (
        "_index_put_impl_ _unsafe_index _unsafe_index_put _unsafe_masked_index "
        "_unsafe_masked_index_put_accumulate argwhere index_put index_put_ unravel_index"
    ),
    "inspection": (
        "allclose equal get_device is_distributed is_nonzero is_same_size is_signed typename"
    ),
    "linalg_solve": "_lu_with_info lu",
    "linalg_spectral": "lobpcg logdet matrix_power",
    "loss": (
        "_ctc_loss _cudnn_ctc_loss binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss "
        "hinge_embedding_loss kl_div margin_ranking_loss poisson_nll_loss triplet_margin_loss"
    ),
    "low_rank": "pca_lowrank svd_lowrank",
    "matmul": (
        "_addmm_activation _compute_linear_combination _int_mm _scaled_mm _scaled_mm_v2 bilinear "
        "chain_matmul inner kron tensordot"
    ),
    "memory": "as_strided_ detach_ resize_as_",
    "norm": "frobenius_norm native_norm norm norm_except_dim nuclear_norm",
    "normalization": (
        "_native_batch_norm_legit _native_batch_norm_legit_no_training _weight_norm batch_norm "
        "cudnn_batch_norm group_norm instance_norm layer_norm miopen_batch_norm native_batch_norm "
        "rms_norm"
    ),
    "pointwise": "_conj _neg_view float_power where",
    "polynomial": "vander",
    "pooling": (
        "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d max_pool1d max_pool1d_with_indices "
        "max_pool2d max_pool3d"
    ),
    "fake_quantization": (
        "_fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine "
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fused_moving_avg_obs_fq_helper "
        "fused_moving_avg_obs_fake_quant"
    ),
    "quantization": (
        "_empty_affine_quantized _make_per_channel_quantized_tensor "
        "_make_per_tensor_quantized_tensor dequantize "
        "int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
        "q_zero_point quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic"
    ),
    "random": (
        "_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad bernoulli "
        "binomial multinomial normal poisson"
    ),
    "recurrent": (
        "_cudnn_rnn _pack_padded_sequence _pad_packed_sequence gru gru_cell lstm lstm_cell "
        "rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell"
    ),
    "reduction": (
        "_aminmax _is_all_true _is_any_true _logcumsumexp _segment_reduce cumulative_trapezoid "
        "diff nanmean nanquantile quantile trapezoid trapz"
    ),
    "removed": "lstsq matrix_rank solve",
    "shape": (
        "_chunk_cat adjoint atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes "
        "broadcast_tensors column_stack diagflat dsplit dstack fliplr flipud hsplit meshgrid "
        "repeat_interleave tensor_split unsafe_chunk vsplit"
    ),
    "sorting": "_unique _unique2 msort unique unique_consecutive",
    "spectral": "istft stft",
    "statistics": "corrcoef cov",
    "view_copies": (
        "_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long "
        "_cast_Short _conj_copy _neg_view_copy _reshape_alias_copy alias_copy as_strided_copy "
        "detach_copy diagonal_copy expand_copy narrow_copy permute_copy select_copy slice_copy "
        "split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy "
        "unfold_copy unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy"
    ),
    "windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
}

# the functions that are methods of Tensor too
METHODS = (
    "_addmm_activation _conj _is_all_true _is_any_true _neg_view adjoint allclose argwhere "
    "bernoulli bincount corrcoef cov diagflat diff dsplit equal "
    "fliplr flipud float_power hsplit index_put index_put_ inner is_nonzero "
    "is_same_size istft kron logdet lstsq lu matrix_power msort multinomial nanmean nanquantile "
    "narrow_copy norm prelu quantile repeat_interleave solve stft tensor_split unique "
    "unique_consecutive unsafe_chunk vsplit"
)

# methods of Tensor that are no functions of `jaxgrad`, by module
ONLY_METHODS = {
    "creation": "new_empty_strided",
    "random": "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_",
}

# methods and functions in `jaxgrad.ops` under the names of PyTorch's operators that are no entries
# of the table: their shape depends on values, they make the tensor show a view of itself, or they
# draw from a generator
OPERATORS = (
    "masked_select squeeze_ transpose_ unsqueeze_ bernoulli bernoulli_ binomial cauchy_ "
    "exponential_ geometric_ log_normal_ multinomial normal normal_ poisson random_ uniform_ "
    "native_dropout _fused_dropout _sample_dirichlet _standard_gamma _unique _unique2 logdet "
    "_addmm_activation _aminmax _chunk_cat _convolution _convolution_mode "
    "_index_put_impl_ _int_mm _is_all_true _is_any_true _scaled_mm "
    "_scaled_mm_v2 _logcumsumexp _lu_with_info _native_batch_norm_legit "
    "_native_batch_norm_legit_no_training "
    "_masked_softmax _safe_softmax _unsafe_index _unsafe_index_put _unsafe_masked_index "
    "_unsafe_masked_index_put_accumulate _cudnn_rnn _pack_padded_sequence _pad_packed_sequence "
    "_grid_sampler_2d_cpu_fallback cudnn_affine_grid_generator cudnn_grid_sampler grid_sampler "
    "cudnn_batch_norm miopen_batch_norm native_batch_norm "
    "prelu rrelu rrelu_ "
    "selu selu_ ctc_loss _cudnn_ctc_loss "
    "_fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine "
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fused_moving_avg_obs_fq_helper "
    "fused_moving_avg_obs_fake_quant"
)

# functions in `jaxgrad.ops` alone, by module: most are names that libraries of GPUs had
ONLY_OPERATORS = {
    "dropout": "native_dropout_backward",
    "fake_quantization": (
        "fake_quantize_per_channel_affine_cachemask fake_quantize_per_tensor_affine_cachemask"
    ),
    "activation": "prelu_backward rrelu_with_noise rrelu_with_noise_",
    "pooling": "adaptive_avg_pool2d adaptive_avg_pool3d",
    "normalization": (
        "_batch_norm_no_update _batch_norm_with_update _weight_norm_cuda_interface "
        "cudnn_batch_norm_backward miopen_batch_norm_backward"
    ),
    "vendor_convolution": (
        "cudnn_convolution cudnn_convolution_backward cudnn_convolution_transpose "
        "cudnn_convolution_transpose_backward miopen_convolution miopen_convolution_backward "
        "miopen_convolution_transpose miopen_convolution_transpose_backward mkldnn_convolution "
        "mkldnn_convolution_backward thnn_conv2d_forward thnn_conv2d_backward thnn_conv3d_forward "
        "thnn_conv3d_backward thnn_conv_depthwise2d_forward thnn_conv_depthwise2d_backward "
        "thnn_conv_dilated2d_forward thnn_conv_dilated2d_backward thnn_conv_dilated3d_forward "
        "thnn_conv_dilated3d_backward thnn_conv_transpose2d_forward thnn_conv_transpose2d_backward "
        "thnn_conv_transpose3d_forward thnn_conv_transpose3d_backward"
    ),
}

# of sparse tensors (jaxgrad/sparse): the methods of all tensors, and the operators of early PyTorch
SPARSE_METHODS = (
    "to_sparse to_sparse_coo to_dense coalesce is_coalesced indices values _indices _values _nnz "
    "sparse_dim dense_dim sparse_mask _dimI _dimV to_sparse_csr to_sparse_csc to_sparse_bsr "
    "to_sparse_bsc crow_indices col_indices ccol_indices row_indices"
)
EARLY_SPARSE_METHODS = "smm sspaddmm"
SPARSE_OPERATORS = (
    "_sparse_coo_tensor_with_dims_and_tensors _sparse_addmm _sparse_sum _indices _values indices "
    "values coalesce to_dense sparse_mask _indices_copy _values_copy indices_copy values_copy "
    "crow_indices_copy col_indices_copy ccol_indices_copy row_indices_copy"
)

MODULE_OF = {name: module for module, names in FUNCTIONS.items() for name in names.split()}
_MODULE_OF_METHOD = {
    name: module for module, names in ONLY_METHODS.items() for name in names.split()
}
_MODULE_OF_OPERATOR = {
    name: module for module, names in ONLY_OPERATORS.items() for name in names.split()
}


def find(name: str):
    """Return the function of a name in FUNCTIONS, ONLY_METHODS or ONLY_OPERATORS."""
    module = MODULE_OF.get(name) or _MODULE_OF_METHOD.get(name) or _MODULE_OF_OPERATOR[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def install():
    """Install the methods on Tensor and the functions in `jaxgrad.ops`."""
    for name in (*METHODS.split(), *_MODULE_OF_METHOD):
        setattr(Tensor, name, LazyMethod(name, functools.partial(find, name)))
    for name in (*OPERATORS.split(), *_MODULE_OF_OPERATOR):
        is_here = any(
            name in known for known in (MODULE_OF, _MODULE_OF_METHOD, _MODULE_OF_OPERATOR)
        )
        source = (find,) if is_here else (getattr, Tensor)
        ops.compose(name, functools.partial(*source, name))
    ops.compose("quantized", lambda: importlib.import_module(f"{__name__}.quantized_kernels"))
    methods = (("_tensor_methods", SPARSE_METHODS), ("_early_names", EARLY_SPARSE_METHODS))
    for module, names in methods:
        for name in names.split():
            load = functools.partial(_of_sparse, module, name)
            setattr(Tensor, name, LazyMethod(name, load))
    for name in SPARSE_OPERATORS.split():
        ops.compose(name, functools.partial(_of_sparse, "_early_names", name))


def _of_sparse(module: str, name: str):
    return getattr(importlib.import_module(f"jaxgrad.sparse.{module}"), name)
