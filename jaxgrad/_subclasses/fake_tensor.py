"""`FakeTensor`: PyTorch's compiler traces with such tensors, which have no data.

jaxgrad has none, since it traces with JAX's tracers.
"""

from __future__ import annotations

from ..names.not_provided import names_of


def is_fake(x: object) -> bool:
    """Return whether `x` is a fake tensor, which no tensor of jaxgrad is.

    >>> is_fake(jaxgrad.ones(1))
    False
    """
    return False


__getattr__, __dir__ = names_of(__name__)
