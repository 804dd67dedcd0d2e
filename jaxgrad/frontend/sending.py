"""Tensors that Python's multiprocessing sends to another process; they have no history there."""

from __future__ import annotations

from multiprocessing import reduction

from ..tape.tensor import Tensor

NON_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
    "support crossing process boundaries: send tensor.detach()"
)


def _tensor(tensor):
    if tensor.grad_fn is not None:
        raise RuntimeError(NON_LEAF)
    return tensor.__reduce_ex__(2)


reduction.register(Tensor, _tensor)
