"""Lookups in a table, and bags of them. Padding and `scale_grad_by_freq` change gradients alone, so
finite differences do not see them."""

from samples import Int, S, T

INDICES, OFFSETS = Int(5, high=4), Int(values=[0, 2, 2])
MODES = ("sum", "mean", "max")

SAMPLES = [
    S("nn.functional.embedding", Int(2, 3, high=4), T(4, 2)),
    S("nn.functional.embedding", Int(values=[1, 3, 1, 2]), T(4, 2), padding_idx=-1, kink=True),
    S(
        "nn.functional.embedding",
        Int(values=[1, 3, 1]),
        T(4, 2),
        scale_grad_by_freq=True,
        kink=True,
    ),
    # it writes to the table, so that a trace of the indices alone is refused
    S("nn.functional.embedding", Int(high=4), T(4, 2), max_norm=100.0, dynamic=True),
    S("nn.functional.embedding", Int(0), T(4, 2)),
    S("embedding", T(4, 2), Int(3, high=4, dtype="int32")),
    S("embedding", T(4, 2), Int(values=[[1], [2]]), 2, True, kink=True),
    S("ops.embedding_dense_backward", T(2, 3, 2), Int(2, 3, high=4), 5, -1, False),
    S("ops.embedding_dense_backward", T(4, 2), Int(values=[1, 3, 1, 2]), 5, 1, False),
    *[S("nn.functional.embedding_bag", INDICES, T(4, 2), OFFSETS, mode=mode) for mode in MODES],
    S(
        *("nn.functional.embedding_bag", INDICES, T(4, 2), OFFSETS),
        mode="sum",
        per_sample_weights=T(5),
    ),
    S("nn.functional.embedding_bag", Int(2, 3, high=4), T(4, 2)),
    *[
        S(
            *("nn.functional.embedding_bag", INDICES, T(4, 2), Int(values=[0, 2, 5])),
            mode=mode,
            include_last_offset=True,
            padding_idx=2,
        )
        for mode in MODES
    ],
    S(
        # with most other indices that repeat, PyTorch divides by the count of another row
        *("nn.functional.embedding_bag", Int(values=[3, 2, 3, 1, 2]), T(4, 2), OFFSETS),
        scale_grad_by_freq=True,
        kink=True,
    ),
    S("embedding_bag", T(4, 2), INDICES, OFFSETS, False, 1),
    S("embedding_bag", T(4, 2), INDICES, OFFSETS, False, 2),
]
