"""Masks as functions of four numbers, and block masks of them."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable

from ... import ops
from ...core import dtypes
from ...core.device import DeviceLike
from ...core.tracebacks import shows_users_frames, users_stacklevel
from ...frontend import factories
from ...func import shared_function
from ...func.vmap import vmap
from ...tape.tensor import Tensor
from .block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE,
    BlockMask,
    block_size,
    of_dense,
)

_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """Return a mask that lets pass what all the `mask_mods` do, functions of the numbers of batch,
    head, query and key.

    Raises RuntimeError for one that cannot be called.

    >>> from jaxgrad.nn.attention.flex_attention import and_masks, create_mask
    >>> band = and_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: i - j < 2)
    >>> create_mask(band, None, None, 3, 3)[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    """
    _check_callable(mask_mods)

    def and_mask(batch, head, token_q, token_kv):
        passes = batch.new_ones((), dtype=dtypes.bool)
        for mask_mod in mask_mods:
            passes = passes & mask_mod(batch, head, token_q, token_kv)
        return passes

    return and_mask


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """Return a mask that lets pass what one of the `mask_mods` does, functions of the numbers of
    batch, head, query and key.

    Raises RuntimeError for one that cannot be called.

    >>> from jaxgrad.nn.attention.flex_attention import create_mask, or_masks
    >>> prefix = or_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: j < 2)
    >>> create_mask(prefix, None, None, 3, 3)[0, 0].int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    _check_callable(mask_mods)

    def or_mask(batch, head, token_q, token_kv):
        passes = batch.new_zeros((), dtype=dtypes.bool)
        for mask_mod in mask_mods:
            passes = passes | mask_mod(batch, head, token_q, token_kv)
        return passes

    return or_mask


def _check_callable(mask_mods):
    if not all(callable(mask_mod) for mask_mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def _is_mask_mod(function) -> bool:
    """Whether a function takes four arguments, the numbers alone, and not five with the score."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    arguments = inspect.signature(function).parameters.values()
    count = sum(a.kind in positional and a.default is a.empty for a in arguments)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count == 4


@shows_users_frames
def create_mask(
    mod_fn: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return the mask of a function as a tensor of booleans, (B, H, Q_LEN, KV_LEN).

    mod_fn: a `mask_mod(batch, head, query, key)`, or a `score_mod(score, batch, head, query, key)`,
    whose mask leaves out what it maps to -inf. B, H: None for 1. Its arguments are tensors without
    dimensions, int64, and a score of 0.

    Raises AssertionError for a function of another number of arguments without a default, and what
    `func.vmap` raises.

    >>> from jaxgrad.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, i, j: i >= j, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    is_mask = _is_mask_mod(mod_fn)
    extents = [1 if extent is None else extent for extent in (B, H, Q_LEN, KV_LEN)]
    numbers = [factories.arange(extent, device=device) for extent in extents]
    if 0 in extents:  # no function to map, and nothing to ask it
        return factories.zeros(extents, dtype=dtypes.bool, device=device)
    if is_mask:
        return _for_all(mod_fn)(*numbers)
    score = factories.zeros((), device=device)
    changed = _for_all(lambda *numbers: mod_fn(score, *numbers))(*numbers)
    return ops.logical_not(ops.isneginf(changed))


def _for_all(function):
    """The function of four numbers, for all combinations of four lists of numbers."""
    for place in reversed(range(4)):
        function = vmap(function, tuple(0 if n == place else None for n in range(4)))
    return function


@shows_users_frames
def create_block_mask(
    mask_mod: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """Return the `BlockMask` of a function.

    mask_mod: `mask_mod(batch, head, query, key)` says whether a score counts: a function of tensors
    without dimensions, which may index other tensors by them. B, H: None for a mask that all
    batches and heads share. BLOCK_SIZE: the queries and keys of a block. separate_full_blocks:
    whether blocks without any masked score are listed by themselves. _compile: without effect, with
    a DeprecationWarning: it is compiled in any case. compute_dq_write_order: whether to list in
    which order a kernel would add the gradients of blocks; dq_kv_order: from the last block of keys
    to the first, or from the first to the last.

    Raises AssertionError for a function of another number of arguments than four without a default,
    or that gives other numbers than booleans.

    >>> from jaxgrad.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, i, j: i >= j, None, None, 512, 512)
    BlockMask(
        kv_num_blocks=torch.Size([1, 1, 4]),
        kv_indices=torch.Size([1, 1, 4, 4]),
        full_kv_num_blocks=torch.Size([1, 1, 4]),
        full_kv_indices=torch.Size([1, 1, 4, 4]),
        q_num_blocks=torch.Size([1, 1, 4]),
        q_indices=torch.Size([1, 1, 4, 4]),
        full_q_num_blocks=torch.Size([1, 1, 4]),
        full_q_indices=torch.Size([1, 1, 4, 4]),
        BLOCK_SIZE=(128, 128),
        shape=(1, 1, 512, 512),
        sparsity=37.50%,
        mask_mod=<lambda>
    )
    """
    if not _is_mask_mod(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if _compile:
        warnings.warn(
            "_compile flag on create_block_mask has no effect: the block mask is compiled in any "
            "case",
            DeprecationWarning,
            stacklevel=users_stacklevel(),
        )
    size = block_size(BLOCK_SIZE)
    batches = [1 if extent is None else extent for extent in (B, H)]
    blocks = functools.partial(
        _blocks, mask_mod, batches, (Q_LEN, KV_LEN), size, device, separate_full_blocks
    )
    some, full = shared_function.compiled(blocks, ())
    lengths = (Q_LEN, KV_LEN)
    return of_dense(some, full, size, mask_mod, lengths, compute_dq_write_order, dq_kv_order)


def _blocks(mask_mod, batches, lengths, size, device, is_separate):
    """Which blocks have some scores that count, and which have no others, or None."""
    mask = create_mask(mask_mod, *batches, *lengths, device)
    if mask.dtype is not dtypes.bool:
        raise AssertionError(f"mask.dtype must be torch.bool, got {mask.dtype}")
    missing = [-length % extent for length, extent in zip(lengths, size, strict=True)]
    mask = ops.constant_pad_nd(mask, (0, missing[1], 0, missing[0]))
    counts = mask.unflatten(-2, (-1, size[0])).unflatten(-1, (-1, size[1])).sum((-3, -1))
    if not is_separate:
        return counts > 0, None
    full = counts == math.prod(size)
    return (counts > 0) & ~full, full
