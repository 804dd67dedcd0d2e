"""Settings of PyTorch's CUDA libraries, as torch.backends.cuda.

`matmul.allow_tf32` and `matmul.fp32_precision` are `torch.set_float32_matmul_precision` in another
form; the other settings of `matmul` have no effect. Those of attention are
`torch.nn.attention.sdpa_kernel` in an older form.
"""

from __future__ import annotations

import contextlib
import enum
import warnings

from ..core.device import as_device, devices_of
from ..core.tracebacks import users_stacklevel
from ..frontend import settings
from ..names.missing import missing_in
from ..nn import attention
from ..nn.attention import SDPBackend
from ..tape.settings import flags


class _Matmul(
    type(
        flags(
            "torch.backends.cuda.matmul",
            allow_fp16_reduced_precision_reduction=True,
            allow_bf16_reduced_precision_reduction=True,
        )
    )
):
    """The settings of products of matrices."""

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may compute in shorter numbers."""
        return settings.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, enabled: bool):
        settings.set_float32_matmul_precision("high" if enabled else "highest")

    @property
    def fp32_precision(self) -> str:
        """How products of float32 compute: "ieee", "tf32", or "none" until it is set."""
        precision = settings.get_fp32_precision()
        return "tf32" if precision == "bf16" else precision

    @fp32_precision.setter
    def fp32_precision(self, precision: str):
        if precision == "bf16":
            raise RuntimeError("backend 'cuda' does not support precision 'bf16'")
        settings.set_fp32_precision(precision)


matmul = _Matmul()

_math_attention = flags("torch.backends.cuda.math_sdp", fp16_bf16_reduction=False)


class _LinalgBackend(enum.Enum):
    """The libraries of PyTorch for linear algebra on CUDA."""

    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(enum.Enum):
    """The libraries of PyTorch for products of matrices on CUDA."""

    Cublas = 0
    Cublaslt = 1
    Ck = 2


def preferred_linalg_library(backend: str | _LinalgBackend | None = None) -> _LinalgBackend:
    """Return which library computes linear algebra: the default, XLA's.

    Raises RuntimeError for any other that PyTorch has, and for an unknown name.

    >>> jaxgrad.backends.cuda.preferred_linalg_library("default").name
    'Default'
    """
    return _preferred(_LinalgBackend, backend, "default cusolver magma", "Default")


def preferred_blas_library(backend: str | _BlasBackend | None = None) -> _BlasBackend:
    """Return which library computes products of matrices: the default, XLA's.

    Raises RuntimeError for any other that PyTorch has, and for an unknown name.

    >>> jaxgrad.backends.cuda.preferred_blas_library().name
    'Cublas'
    """
    return _preferred(_BlasBackend, backend, "default cublas cublaslt hipblaslt ck", "Cublas")


def _preferred(kind, backend, names, default):
    name = backend.name if isinstance(backend, kind) else backend
    if name is not None and str(name).lower() not in names.split():
        raise RuntimeError(f"Unknown input value. Choose from: {', '.join(names.split())}.")
    if name is not None and str(name).lower() not in ("default", default.lower()):
        raise RuntimeError(
            f"Cannot set preferred backend to {name}: XLA computes here, with its own libraries"
        )
    return kind[default]


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Return what `allow_fp16_bf16_reduction_math_sdp` has set; it has no effect.

    >>> jaxgrad.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    False
    """
    return _math_attention.fp16_bf16_reduction


def allow_fp16_bf16_reduction_math_sdp(enabled: bool):
    """Set whether attention may add in half precision. It has no effect: XLA decides.

    >>> jaxgrad.backends.cuda.allow_fp16_bf16_reduction_math_sdp(False)
    """
    _math_attention.fp16_bf16_reduction = enabled


def is_flash_attention_available() -> bool:
    """Return False: PyTorch's kernels for CUDA are not here.

    >>> jaxgrad.backends.cuda.is_flash_attention_available()
    False
    """
    return False


def is_built() -> bool:
    """Return False: jaxgrad has no CUDA code of its own.

    >>> jaxgrad.backends.cuda.is_built()
    False
    """
    return False


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
):
    """Let `scaled_dot_product_attention` use only these implementations within the context.
    Deprecated in favor of `jaxgrad.nn.attention.sdpa_kernel`, which says so in a FutureWarning.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     context = jaxgrad.backends.cuda.sdp_kernel(enable_flash=False)
    >>> with context:
    ...     jaxgrad.backends.cuda.flash_sdp_enabled()
    False
    """
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated: use `torch.nn.attention.sdpa_kernel()`",
        FutureWarning,
        stacklevel=users_stacklevel(),
    )
    flags = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.MATH: enable_math,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    return _with_backends([backend for backend, is_enabled in flags.items() if is_enabled])


@contextlib.contextmanager
def _with_backends(backends):
    with attention.sdpa_kernel(backends):
        yield {}


def flash_sdp_enabled() -> bool:
    """Return whether the fused operator may compute attention.

    >>> jaxgrad.backends.cuda.flash_sdp_enabled()
    True
    """
    return SDPBackend.FLASH_ATTENTION in attention.enabled()


def math_sdp_enabled() -> bool:
    """Return whether products and a softmax may compute attention.

    >>> jaxgrad.backends.cuda.math_sdp_enabled()
    True
    """
    return SDPBackend.MATH in attention.enabled()


def mem_efficient_sdp_enabled() -> bool:
    """Return whether an implementation that does not exist here is allowed.

    >>> jaxgrad.backends.cuda.mem_efficient_sdp_enabled()
    True
    """
    return SDPBackend.EFFICIENT_ATTENTION in attention.enabled()


def cudnn_sdp_enabled() -> bool:
    """Return whether an implementation that does not exist here is allowed.

    >>> jaxgrad.backends.cuda.cudnn_sdp_enabled()
    True
    """
    return SDPBackend.CUDNN_ATTENTION in attention.enabled()


def enable_flash_sdp(enabled: bool):
    """Allow or forbid the fused operator.

    >>> jaxgrad.backends.cuda.enable_flash_sdp(True)
    """
    attention.enable(SDPBackend.FLASH_ATTENTION, enabled)


def enable_math_sdp(enabled: bool):
    """Allow or forbid products and a softmax.

    >>> jaxgrad.backends.cuda.enable_math_sdp(True)
    """
    attention.enable(SDPBackend.MATH, enabled)


def enable_mem_efficient_sdp(enabled: bool):
    """Allow or forbid an implementation that does not exist here.

    >>> jaxgrad.backends.cuda.enable_mem_efficient_sdp(True)
    """
    attention.enable(SDPBackend.EFFICIENT_ATTENTION, enabled)


def enable_cudnn_sdp(enabled: bool):
    """Allow or forbid an implementation that does not exist here.

    >>> jaxgrad.backends.cuda.enable_cudnn_sdp(True)
    """
    attention.enable(SDPBackend.CUDNN_ATTENTION, enabled)


class SDPAParams:
    """The arguments of `scaled_dot_product_attention` about which `can_use_flash_attention` asks.

    >>> x = jaxgrad.ones(1, 1, 2, 2)
    >>> asked = jaxgrad.backends.cuda.SDPAParams(x, x, x, None, 0.0, False, False)
    >>> jaxgrad.backends.cuda.can_use_flash_attention(asked)
    False
    """

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Return False: none of CUDA's kernels for attention is here. XLA computes it in blocks.

    >>> x = jaxgrad.ones(1, 1, 2, 2)
    >>> asked = jaxgrad.backends.cuda.SDPAParams(x, x, x, None, 0.0, False, False)
    >>> jaxgrad.backends.cuda.can_use_cudnn_attention(asked)
    False
    """
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def is_ck_sdpa_available() -> bool:
    """Return False: AMD's kernel for attention is not here.

    >>> jaxgrad.backends.cuda.is_ck_sdpa_available()
    False
    """
    return False


class _PlanCache:
    """The plans of Fourier transforms on CUDA: XLA keeps its own, in programs."""

    size, max_size = 0, 0

    def clear(self):
        """Do nothing: there are no plans."""

    def __getitem__(self, device) -> _PlanCache:
        index, count = as_device(device).index, len(devices_of("cuda"))
        if index is None or index >= count:
            raise RuntimeError(
                f"cufft_plan_cache: expected 0 <= device index < {count}, but got device with "
                f"index {index}"
            )
        return self


cufft_plan_cache = _PlanCache()

__getattr__ = missing_in(__name__)
