"""Tensors that Python's multiprocessing sends to another process; they have no history there."""

from __future__ import annotations

import copyreg
from multiprocessing import reduction

from ..tape.tensor import Tensor

NON_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
    "support crossing process boundaries: send tensor.detach()"
)


def _tensor(tensor):
    if tensor.grad_fn is not None:
        raise RuntimeError(NON_LEAF)
    return copyreg.__newobj__, (type(tensor),), tensor.__getstate__()


reduction.register(Tensor, _tensor)
