"""Settings of PyTorch's CUDA libraries, as torch.backends.cuda. They have no effect.

`jax.config.update("jax_default_matmul_precision", ...)` sets the precision of products.
"""

from __future__ import annotations

import types

from ..core.missing_names import missing_in

matmul = types.SimpleNamespace(
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


__getattr__ = missing_in(__name__)
