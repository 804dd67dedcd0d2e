"""Blocks in which sharded parameters are whole tensors of the process."""

from __future__ import annotations

import contextlib

from ...autograd.grad_mode import no_grad
from ...core.aval import aval_of
from ...names.missing import missing_in
from ...tape.tensor import Tensor, current, held, hold, set_alias
from ..process_group import get_rank, is_initialized
from ..tensor._distribute import place
from ..tensor._dtensor import full_tensor, is_distributed


def check_summoned(writeback: bool, rank0_only: bool, offload_to_cpu: bool, with_grads: bool):
    """Raise NotImplementedError for options that do not go together."""
    if with_grads and offload_to_cpu:
        raise NotImplementedError(
            f"with_grads={with_grads}, offload_to_cpu={offload_to_cpu} is not supported yet"
        )
    if writeback and rank0_only:
        raise NotImplementedError("writeback=True and rank0_only=True is not supported yet")


@contextlib.contextmanager
def summoned(state, writeback, rank0_only, offload_to_cpu, with_grads):
    """A block in which the parameters of a unit, and their gradients, are whole.

    A parameter stays the same object, so that an optimizer that has it reads and changes it too.
    """
    sharded = {id(slot.parameter): slot for slot in state.parameters}.values()
    leaves = [(slot.parameter, slot.sharding) for slot in sharded]
    if with_grads:
        leaves += [(leaf.grad, place) for leaf, place in leaves if leaf.grad is not None]
    wholes = [_whole(leaf, offload_to_cpu) for leaf, _ in leaves]
    if rank0_only and is_initialized() and get_rank() > 0:
        yield
        return
    before = [held(current(leaf)) for leaf, _ in leaves]
    for (leaf, _), array in zip(leaves, wholes, strict=True):
        _put(leaf, array)
    try:
        yield
    finally:
        for (leaf, sharding), array in zip(leaves, before, strict=True):
            if writeback:
                place(leaf, sharding)
            else:
                _put(leaf, array)


@no_grad()
def _whole(leaf: Tensor, on_cpu: bool):
    """The array of a leaf, whole in this process."""
    tensor = leaf.detach()
    tensor = full_tensor(tensor) if is_distributed(tensor) else tensor
    return held(current(tensor.cpu() if on_cpu else tensor))


def _put(leaf: Tensor, array):
    hold(leaf, array, aval_of(array))
    set_alias(leaf, None)


__getattr__ = missing_in(__name__)
