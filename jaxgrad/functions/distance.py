"""Distances and similarities of vectors."""

from __future__ import annotations

from .. import ops
from ..core import dtypes, promotion
from ..core.symbolic_extents import chosen
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults

_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}
_MANY = 25  # rows, beyond which PyTorch computes Euclidean distances by a product of matrices


@names_defaults
@api_boundary
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the distances of order `p` of each row of `x1` from each row of `x2`.

    x1: (..., n, m). x2: (..., k, m), where the dimensions `...` broadcast; one floating dtype. The
    result is (..., n, k). p: from 0, the number of elements that differ, to inf. compute_mode:
    whether Euclidean distances are computed by a product of matrices, which loses digits of small
    distances: "use_mm_for_euclid_dist_if_necessary" (for more than 25 rows),
    "use_mm_for_euclid_dist" or "donot_use_mm_for_euclid_dist". The gradient of the distance of
    equal rows is 0. Raises ValueError for another mode, RuntimeError for other shapes and dtypes.

    >>> jaxgrad.cdist(jaxgrad.zeros(1, 2), jaxgrad.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    mode = _MODES[compute_mode]
    rows = max((x.shape[-2] for x in (x1, x2) if x.ndim >= 2), default=0)
    if p == 2 and (mode == 1 or (mode is None and chosen(lambda: rows > _MANY))):
        return ops._euclidean_dist(x1, x2)
    return ops._cdist_forward(x1, x2, p, mode)


@api_boundary
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the distances of order `p` of the pairs of rows, (0, 1), (0, 2), ..., (1, 2), ...

    input: (n, m), floating point; the result is (n * (n - 1) / 2,). p: from 0, the number of
    elements that differ, to inf. The gradient of the distance of equal rows is 0.
    Raises RuntimeError for other shapes and dtypes.

    >>> jaxgrad.pdist(jaxgrad.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    return ops._pdist_forward(input, p)


@api_boundary
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return `x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))` along `dim`.

    x1, x2: tensors that broadcast, at least one floating point; the result lacks `dim`.
    Raises RuntimeError if both are integers, or for a negative `eps`.

    >>> F.cosine_similarity(jaxgrad.tensor([[3.0, 4.0]]), jaxgrad.tensor([[6.0, 0.0]]))
    tensor([0.6000])
    """
    if not eps >= 0:  # NaN too
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    common = promotion.result_type(x1, x2)
    if common.category < dtypes.FLOATING:
        raise RuntimeError(
            "expected common dtype to be floating point, yet common dtype is "
            f"{common.scalar_type}: cosine_similarity"
        )
    shape = promotion.broadcast_shapes("cosine_similarity", x1.shape, x2.shape)
    one, two = (_unit(x.to(common).expand(shape), dim, eps) for x in (x1, x2))
    return (one * two).sum(dim)


def _unit(x, dim, eps):
    return x / ops.clamp_min(ops.linalg_vector_norm(x, 2, dim, True), eps)


@api_boundary
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the p-norm of `x1 - x2 + eps` along the last dimension.

    x1, x2: (..., D), floating point, that broadcast; the result is (...,), or (..., 1) with
    `keepdim`.

    >>> F.pairwise_distance(jaxgrad.tensor([3.0, 4.0]), jaxgrad.zeros(2))
    tensor(5.0000)
    """
    return ops.norm(x1 - x2 + eps, p, -1, keepdim)
