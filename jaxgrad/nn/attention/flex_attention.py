"""Attention whose scores a function changes, as torch.nn.attention.flex_attention.

The function is traced for one score, and JAX maps it over all of them inside of the program that
computes the attention (rules/attention.py): where the scores are many, block by block.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple, NotRequired, TypedDict

import jax

from ... import ops
from ...capture.subgraph import ControlFlow, Subgraph, apply
from ...core import dtypes
from ...core.aval import types_of_trace
from ...core.tracebacks import shows_users_frames, users_stacklevel
from ...func import shared_function
from ...func.mapped_function import is_in_trace
from ...late import LateModule
from ...names.missing import missing_in
from ...tape import pytree
from ...tape.tensor import Tensor, wrap
from .block_mask import _DEFAULT_SPARSE_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE
from .block_mask import BlockMask, noop_mask
from .masks import _mask_mod_signature as _mask_mod_signature
from .masks import _score_mod_signature as _score_mod_signature
from .masks import and_masks, create_block_mask, create_mask, or_masks

rules = LateModule("jaxgrad.rules.attention")

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

__getattr__ = missing_in(__name__)

BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's kernels for GPUs, which `flex_attention` takes and ignores: XLA chooses
    how it computes.

    >>> jaxgrad.nn.attention.flex_attention.FlexKernelOptions(BLOCK_M=64)
    {'BLOCK_M': 64}
    """

    num_warps: NotRequired[int]
    num_stages: NotRequired[int]
    BLOCK_M: NotRequired[int]
    BLOCK_N: NotRequired[int]
    BLOCK_M1: NotRequired[int]
    BLOCK_N1: NotRequired[int]
    BLOCK_M2: NotRequired[int]
    BLOCK_N2: NotRequired[int]
    PRESCALE_QK: NotRequired[bool]
    ROWS_GUARANTEED_SAFE: NotRequired[bool]
    BLOCKS_ARE_CONTIGUOUS: NotRequired[bool]
    WRITE_DQ: NotRequired[bool]
    FORCE_USE_FLEX_ATTENTION: NotRequired[bool]
    USE_TMA: NotRequired[bool]
    kpack: NotRequired[int]
    matrix_instr_nonkdim: NotRequired[int]
    waves_per_eu: NotRequired[int]
    BACKEND: NotRequired[Literal["AUTO", "TRITON", "FLASH", "TRITON_DECODE"]]


class AuxRequest(NamedTuple):
    """The further results of `flex_attention` to return: see `AuxOutput`.

    >>> jaxgrad.nn.attention.flex_attention.AuxRequest(lse=True)
    AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The further results of `flex_attention`, (B, H, L), None for those not asked for.

    lse: the natural logarithm of the sum of the exponentials of a query's scores; -inf where all
    are masked. max_scores: the greatest of them, without a gradient.

    >>> jaxgrad.nn.attention.flex_attention.AuxOutput()
    AuxOutput(lse=None, max_scores=None)
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


@shows_users_frames
def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, AuxOutput]:
    """Return `softmax(score_mod(query @ key.mT * scale)) @ value`.

    query: (B, Hq, L, E); key: (B, Hkv, S, E); value: (B, Hkv, S, V); the result is (B, Hq, L, V).
    score_mod: `score_mod(score, batch, head, query, key)` returns the score that counts: a function
    of tensors without dimensions, of a score in float32 (float64 for float64) and the numbers of
    its batch, head, query and key in int32. It may read other tensors, by these numbers as indices
    too, and gradients flow to them. block_mask: its `mask_mod` says which scores count; the others
    are -inf, and a query all of whose scores are gives 0. scale: `1 / sqrt(E)` by default.
    enable_gqa: Hq may be a multiple of Hkv (grouped heads). kernel_options: accepted.
    return_aux: what else to return, as a pair of the result and an `AuxOutput`. return_lse: the
    older form, which returns a pair of the result and its `lse`, after a FutureWarning.

    All scores are computed, those of dropped blocks too. Where they are more than 2**21 on a CPU,
    or 2**27 elsewhere, they are computed for a block of queries at a time, and again in the
    backward pass, so that memory grows with S and not with L * S. So does that of the gradient of a
    table that is read by indexing; through `embedding` each score has a gradient of its own. It has
    all derivatives, to any order; in a compiled function it is compiled as a part.

    Raises ValueError for sizes that do not fit one another or the block mask, for `return_lse`
    together with `return_aux`, for another `BACKEND` among the options, and for tensors on meta;
    NotImplementedError for tensors that do not have four dimensions; RuntimeError for complex
    numbers, and for a `score_mod` that draws random numbers, writes to a tensor, or returns
    anything but a tensor without dimensions.

    >>> from jaxgrad.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> x = jaxgrad.eye(4).view(1, 1, 4, 4)
    >>> flex_attention(x, x, x, lambda score, b, h, i, j: score - (i - j).abs() * 1000.0)[0, 0, 1]
    tensor([0., 1., 0., 0.])
    >>> causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 4, 4)
    >>> flex_attention(0 * x, x, x, block_mask=causal)[0, 0, 1]
    tensor([0.5000, 0.5000, 0.0000, 0.0000])
    """
    _check(query, key, value, enable_gqa)
    if block_mask is not None:
        _check_lengths(block_mask, query, key)
    _check_batch(block_mask, query, key)
    _check_options(kernel_options, return_lse, return_aux)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else math.inf
    mask_mod = None if block_mask is None else block_mask.mask_mod
    attend = functools.partial(_attend, score_mod, mask_mod, scale)
    output, lse, greatest = shared_function.compiled(attend, _operands(query, key, value))
    if output.dtype is not query.dtype:
        output = output.to(query.dtype)
    if return_lse:
        return output, lse
    if return_aux is None:
        return output
    maxima = greatest.detach() if return_aux.max_scores else None
    return output, AuxOutput(lse if return_aux.lse else None, maxima)


flex_attention.compiles_itself = True


def _operands(query, key, value):
    """The three as they are, if they have one floating dtype, else in that of the scores."""
    if query.dtype is key.dtype is value.dtype and query.dtype.is_floating_point:
        return query, key, value
    if any(operand.dtype.is_complex for operand in (query, key, value)):
        raise RuntimeError("flex_attention: attention has no complex scores; pass real tensors")
    return tuple(operand.to(_dtype_of_scores(query)) for operand in (query, key, value))


def _dtype_of_scores(query):
    return dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32


def _attend(score_mod, mask_mod, scale, query, key, value):
    """The result, `lse` and the greatest scores, as one node whose derivatives JAX derives."""

    def change(score, *numbers):
        if score_mod is not None:
            score = score_mod(score, *numbers)
        if mask_mod is not None:
            score = ops.where(mask_mod(*numbers), score, -math.inf)
        return score

    if is_in_trace([query, key, value]):
        return _traced(change, scale, query, key, value)
    with jax.enable_x64(True):
        return _traced(change, scale, query, key, value)


def _traced(change, scale, query, key, value):
    with types_of_trace():
        score = jax.numpy.zeros((), _dtype_of_scores(query).numpy)
        number = jax.numpy.zeros((), "int32")
    is_tracked = any(operand.requires_grad for operand in (query, key, value))
    examples = [wrap(score, None, is_tracked), *(wrap(number) for _ in range(4))]
    structure = pytree.flatten(tuple(examples))[1]
    changed = Subgraph("flex_attention", change, examples, structure)
    if [tuple(aval.shape) for aval in changed.avals] != [()]:
        raise RuntimeError(
            "flex_attention: score_mod and mask_mod return one tensor without dimensions, not "
            f"{[list(aval.shape) for aval in changed.avals]}"
        )
    operands = [query, key, value, *changed.take()]

    def run(query, key, value, *read):
        def change_of(*numbers):
            return changed.run(numbers, read)[0]

        return rules.attend(query, key, value, change_of, scale)

    return apply(ControlFlow("FlexAttention", operands, run), operands, _THREE)


_THREE = jax.tree.structure((0, 0, 0))


# ---- checks, in PyTorch's order


def _check(query, key, value, enable_gqa):
    operands = query, key, value
    for operand in operands:
        if not isinstance(operand, Tensor):
            raise TypeError(
                f"flex_attention: query, key and value are tensors, not {type(operand).__name__}"
            )
    kinds = [operand.device.type for operand in operands]
    if len(set(kinds)) > 1:
        raise ValueError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device}, key.device: {key.device}, and value.device: {value.device} instead."
        )
    if query.ndim > 1 and key.ndim > 1 and query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    if "meta" in kinds:
        raise ValueError(
            "FlexAttention is only supported on CUDA, CPU, HPU, or MPS devices. Found input "
            "tensors on meta device."
        )
    if any(operand.ndim != 4 for operand in operands):
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if key.shape[2] != value.shape[2] or key.shape[1] != value.shape[1]:
        raise ValueError(
            "flex_attention: key and value have the same heads and length, but got "
            f"{list(key.shape)} and {list(value.shape)}"
        )
    _check_heads(query.shape[1], key.shape[1], enable_gqa)


def _check_heads(of_query, of_key, enable_gqa):
    got = f"got Hq={of_query} and Hkv={of_key}."
    if of_query != of_key and not enable_gqa:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but {got} Try setting "
            "enable_gqa=True for GQA."
        )
    if of_query != of_key and (not of_key or of_query % of_key):
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but {got}"
        )


def _check_batch(block_mask, query, key):
    of_query, of_key = query.shape[0], key.shape[0]
    if of_query == of_key:
        return
    if block_mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but "
            f"got block_mask=None, Bq={of_query}, and Bkv={of_key}."
        )
    of_mask = block_mask.kv_num_blocks.shape[0]
    if of_mask != of_query:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to "
            f"have the same batch size, but got Bq={of_query}, Bkv={of_key}, "
            f"B_block_mask={of_mask}."
        )
    if of_key != 1:
        raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={of_query} and Bkv={of_key}")


def _check_lengths(block_mask, query, key):
    if not isinstance(block_mask, BlockMask):
        raise TypeError(
            "flex_attention: block_mask is a BlockMask, which create_block_mask makes of a "
            f"mask_mod, not {type(block_mask).__name__}"
        )
    wanted, length = (query.shape[2], key.shape[2]), block_mask.seq_lengths
    if wanted == tuple(length):
        return
    start = (
        f"block_mask was created for block_mask.shape={block_mask.shape} but got "
        f"q_len={wanted[0]} and kv_len={wanted[1]}. As the block mask was created for a "
    )
    if wanted[0] > length[0] or wanted[1] > length[1]:
        raise ValueError(
            f"{start}smaller length than you're using it for, you likely need to create a new "
            "block mask."
        )
    raise ValueError(
        f"{start}larger length than you're using it for, you can either 1. create a new block mask "
        "with the correct length, or 2. 'adjust' the existing block mask to the correct length by "
        "calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the "
        "upper left corner, which does not work for all mask_mods!"
    )


def _check_options(kernel_options, return_lse, return_aux):
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        warnings.warn(
            "return_lse is deprecated and will be removed in v2.10. Please use "
            "return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
            stacklevel=users_stacklevel(),
        )
    if return_aux is not None and not isinstance(return_aux, AuxRequest):
        raise TypeError(
            f"flex_attention: return_aux is an AuxRequest, not {type(return_aux).__name__}"
        )
    backend = dict(kernel_options or {}).get("BACKEND", "AUTO")
    if backend not in BACKENDS:
        raise ValueError(f"Invalid BACKEND value '{backend}'. Must be one of {BACKENDS}")
