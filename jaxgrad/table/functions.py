"""The functions of `jax.lax` and `jax.numpy` that a `forward:` formula may call.

They compute on arrays. Functions that take functions, do input or output, or run on the host are
not listed, nor those of COUNTED.
"""


def words(text):
    return frozenset(text.split())


LAX = words(
    """
    abs acos acosh add asin asinh atan atan2 atanh bessel_i0e bessel_i1e bitwise_and bitwise_not
    bitwise_or bitwise_xor broadcast broadcast_in_dim broadcast_shapes cbrt ceil clamp clz collapse
    complex concatenate conj conv conv_general_dilated conv_transpose convert_element_type cos cosh
    cumlogsumexp cummax cummin cumprod cumsum digamma div dot dot_general dynamic_index_in_dim
    dynamic_slice dynamic_slice_in_dim dynamic_update_slice dynamic_update_slice_in_dim eq erf
    erf_inv erfc exp exp2 expand_dims expm1 fft floor full full_like ge gt igamma igammac imag
    index_in_dim index_take integer_pow iota is_finite le lgamma log log1p logistic lt max min mul
    ne neg nextafter pad polygamma population_count pow random_gamma_grad real reciprocal
    reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_prod reduce_sum rem reshape
    rev round rsqrt select select_n shift_left shift_right_arithmetic shift_right_logical sign sin
    sinh slice slice_in_dim sort sort_key_val split sqrt square squeeze stop_gradient sub tan tanh
    top_k transpose zeta argmax argmin
    linalg.cholesky linalg.eigh linalg.lu linalg.qr linalg.svd linalg.triangular_solve
    """
)

JNP = words(
    """
    abs absolute acos acosh add all allclose amax amin angle any append arange arccos arccosh arcsin
    arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere around array_equal
    asarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bincount
    bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor block broadcast_arrays broadcast_shapes broadcast_to cbrt ceil
    clip column_stack concat concatenate conj conjugate convolve copy copysign corrcoef correlate
    cos cosh count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees
    delete diag diagflat diagonal digitize divide divmod dot dstack
    ediff1d empty empty_like equal exp exp2 expand_dims expm1 extract eye fabs fill_diagonal
    flatnonzero flip fliplr flipud float_power floor floor_divide fmax fmin fmod frexp full
    full_like gcd geomspace gradient greater greater_equal heaviside histogram histogram_bin_edges
    hstack hypot i0 identity imag indices inner insert interp intersect1d invert isclose
    iscomplex isfinite isin isinf isnan isneginf isposinf isreal kron lcm ldexp left_shift less
    less_equal lexsort linspace log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
    logical_or logical_xor logspace matmul matrix_transpose matvec max maximum mean median meshgrid
    min minimum mod modf moveaxis multiply nan_to_num nanargmax nanargmin nancumprod nancumsum
    nanmax nanmean nanmedian nanmin nanprod nanquantile nanstd nansum nanvar negative nextafter
    nonzero not_equal ones ones_like outer packbits pad partition permute_dims polyval positive pow
    power prod ptp quantile rad2deg radians ravel real reciprocal remainder repeat reshape resize
    right_shift rint roll rollaxis rot90 round searchsorted select setdiff1d sign signbit sin sinc
    sinh size sort sqrt square squeeze stack std subtract sum swapaxes take take_along_axis
    tan tanh tensordot tile trace transpose trapezoid tri tril tril_indices triu triu_indices
    true_divide trunc unique unravel_index unwrap vander var vdot vecdot vecmat vstack where
    zeros zeros_like
    linalg.cholesky linalg.cond linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh
    linalg.eigvals linalg.eigvalsh linalg.inv linalg.lstsq linalg.matmul linalg.matrix_norm
    linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.multi_dot linalg.norm
    linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals
    linalg.tensordot linalg.tensorinv linalg.tensorsolve linalg.trace linalg.vecdot
    linalg.vector_norm
    fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn
    fft.ifftshift fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq
    fft.rfftn
    """
)

NAMESPACES = {"lax": LAX, "jnp": JNP}

# an argument is the number of their steps or results: 1,000,000,000 would never end
COUNTED = words("array_split diag_indices diff dsplit hsplit split vsplit")
