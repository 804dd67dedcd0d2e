"""What JAX has no kernel for on a platform: an error of jaxgrad's in the place of JAX's.

It comes where a program is lowered for the platform: at the call of an eager operator whose arrays
are there, at the first call of a compiled function, and from `torch.export`.
"""

from __future__ import annotations

from jax import lax
from jax.interpreters import mlir

# by primitive of JAX: the operators that are it, and by platform what to do there
LACKING = {
    lax.linalg.eig_p: (
        "linalg.eig, and linalg.eigvals",
        {
            "tpu": "move the matrix to the CPU with .cpu() and the results back with .to(device), "
            "or use linalg.eigh or linalg.eigvalsh if the matrix is symmetric or Hermitian"
        },
    ),
}


def refuse(primitive, operators: str, platform: str, cure: str):
    """Let what is lowered for a platform and uses a primitive raise NotImplementedError."""

    def rule(context, *operands, **parameters):
        raise NotImplementedError(
            f"{operators}: there is no kernel for the platform {platform}: {cure}"
        )

    mlir.register_lowering(primitive, rule, platform=platform)


def register():
    """Let JAX raise these errors."""
    for primitive, (operators, cures) in LACKING.items():
        for platform, cure in cures.items():
            refuse(primitive, operators, platform, cure)
