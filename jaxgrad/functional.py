"""The functions of torch.functional, which are those of `jaxgrad` itself."""

from __future__ import annotations

import jaxgrad

from .names.missing import MissingName

__all__ = [
    *("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors"),
    *("cartesian_prod", "block_diag", "cdist", "chain_matmul", "einsum", "istft", "lu", "norm"),
    *("meshgrid", "split", "stft", "tensordot", "unique", "unique_consecutive", "unravel_index"),
    *("pca_lowrank", "svd_lowrank"),
]


__path__ = []  # as of a package: names that are absent can be imported


def __getattr__(name):
    if name not in __all__:
        raise MissingName(__name__, name)
    return getattr(jaxgrad, name)


def __dir__():
    return __all__
