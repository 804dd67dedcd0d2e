"""Bags of embeddings, which PyTorch composes of the operator `_embedding_bag`."""

from __future__ import annotations

from .. import ops
from ..autograd._engine.sparse_gradient import give
from ..tape.mode import is_grad_enabled
from ..tape.torch_function import api_boundary


@api_boundary
def embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Return the sums, means or maxima of the rows of `weight` in each bag, the bag of each index,
    the sizes of the bags, and for maxima the row of each element.

    The arguments are those of `torch.nn.functional.embedding_bag`, in another order; mode: 0 for
    sums, 1 for means, 2 for maxima. Raises RuntimeError for shapes and indices that do not fit.

    >>> table = jaxgrad.tensor([[1.0], [2.0]])
    >>> jaxgrad.embedding_bag(table, jaxgrad.tensor([0, 1, 1]), jaxgrad.tensor([0, 2]))[0]
    tensor([[3.],
            [2.]])
    """
    count = weight.shape[0]
    if padding_idx is not None and not -count <= padding_idx < count:
        raise RuntimeError(
            "padding_idx must be within the number of embeddings, "
            f"{-count} through {count - 1}, but got {padding_idx}"
        )
    padding_idx = -1 if padding_idx is None else padding_idx % count
    if sparse and scale_grad_by_freq:
        refuse_gradient(weight)
    outputs = ops._embedding_bag(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
    if not sparse:
        return outputs
    # the node of one lookup for each index can send a sparse gradient
    return _sums(weight, indices, outputs, mode, per_sample_weights, padding_idx), *outputs[1:]


def refuse_gradient(weight):
    """Raise RuntimeError if the table gets a gradient, as none is both sparse and scaled."""
    if weight.requires_grad and is_grad_enabled():
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients: take one "
            "of sparse=True and scale_grad_by_freq=True, or call it under no_grad()"
        )


def _sums(weight, indices, outputs, mode, per_sample_weights, padding_idx):
    """The sums or means of bags, by lookups whose gradient is sparse."""
    result, bags, sizes, _ = outputs
    rows = ops.embedding(weight, indices, padding_idx, False, True)
    give(rows, "EmbeddingBackward0", lambda grad: (weight.shape, indices.long()[None], grad, False))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    count = result.shape[0]
    # index `count` stands for lookups that are in no bag
    sums = (
        result.new_zeros(count + 1, result.shape[1])
        .index_add(0, bags, rows)
        .narrow_copy(0, 0, count)
    )
    return sums / sizes.clamp(min=1)[:, None] if mode == 1 else sums
