"""Settings of PyTorch's CUDA libraries, as torch.backends.cuda.

Those of `matmul` have no effect: `jax.config.update("jax_default_matmul_precision", ...)` sets the
precision of products. Those of attention are `torch.nn.attention.sdpa_kernel` in an older form.
"""

from __future__ import annotations

import contextlib

from ..names.missing import missing_in
from ..nn import attention
from ..nn.attention import SDPBackend
from ..tape.settings import flags

matmul = flags(
    "torch.backends.cuda.matmul",
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
)


def is_built() -> bool:
    """Return False: jaxgrad has no CUDA code of its own.

    >>> jaxgrad.backends.cuda.is_built()
    False
    """
    return False


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
):
    """Let `scaled_dot_product_attention` use only these implementations within the context.

    >>> with jaxgrad.backends.cuda.sdp_kernel(enable_flash=False):
    ...     jaxgrad.backends.cuda.flash_sdp_enabled()
    False
    """
    flags = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.MATH: enable_math,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    with attention.sdpa_kernel([backend for backend, is_enabled in flags.items() if is_enabled]):
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


__getattr__ = missing_in(__name__)
