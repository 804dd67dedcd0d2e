"""flex_attention and block masks: the answers of PyTorch."""

import functools
import importlib
import itertools
import math

from helpers.as_torch import as_torch, error

near = functools.partial(as_torch, precision=1e-10)


def of(torch):
    """The module of the framework."""
    return importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")


def numbers(torch, *shape, first=0):
    """Numbers without a pattern that a mistake could reproduce."""
    places = torch.arange(first, first + math.prod(shape)).double()
    return (1.3 * places * places + 0.7).sin().reshape(shape)


def three(torch, heads=2, of_key=2, queries=5, keys=5, batch=2, of_batch=2):
    """Query, key and value."""
    return (
        numbers(torch, batch, heads, queries, 3),
        numbers(torch, of_batch, of_key, keys, 3, first=7),
        numbers(torch, of_batch, of_key, keys, 2, first=11),
    )


def causal(b, h, i, j):
    return i >= j


def summary(torch, query, key, value, score_mod=None, mask_mod=None, **options):
    """The result and the logarithms of the sums."""
    module, block_mask = of(torch), None
    if mask_mod is not None:
        lengths = query.shape[0], None, query.shape[2], key.shape[2]
        block_mask = module.create_block_mask(mask_mod, *lengths, device="cpu", BLOCK_SIZE=4)
    result, aux = module.flex_attention(
        query, key, value, score_mod, block_mask, return_aux=module.AuxRequest(lse=True), **options
    )
    return [result, aux.lse]


# ---- values, as PyTorch's


@near
def test_without_functions(torch):
    return [summary(torch, *three(torch)), summary(torch, *three(torch, keys=4), scale=0.3)]


@near
def test_causal(torch):
    return summary(torch, *three(torch), mask_mod=causal)


@near
def test_sliding_window(torch):
    return summary(torch, *three(torch), mask_mod=lambda b, h, i, j: (i >= j) & (i - j < 2))


@near
def test_document_mask_of_a_captured_tensor(torch):
    documents = torch.tensor([[0, 0, 1, 1, 2], [0, 1, 1, 1, 1]])

    def same(b, h, i, j):
        return documents[b, i] == documents[b, j]

    return summary(torch, *three(torch), mask_mod=of(torch).and_masks(same, causal))


@near
def test_alibi(torch):
    slopes = torch.tensor([0.5, 0.25], dtype=torch.float64)
    return summary(torch, *three(torch), lambda s, b, h, i, j: s + slopes[h] * (j - i))


@near
def test_relative_bias_of_a_table(torch):
    table = numbers(torch, 9, 2, first=3)
    return summary(torch, *three(torch), lambda s, b, h, i, j: s + table[i - j + 4, h], causal)


@near
def test_indices_one_after_the_other(torch):
    bias = numbers(torch, 2, 2, 5, 5, first=3)
    return summary(torch, *three(torch), lambda s, b, h, i, j: s + bias[b][h][i][j])


@near
def test_soft_capping(torch):
    return summary(torch, *three(torch), lambda s, b, h, i, j: 2 * torch.tanh(s / 2), causal)


@near
def test_grouped_heads(torch):
    heads = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    tensors = three(torch, heads=4, of_key=2)
    return summary(torch, *tensors, lambda s, b, h, i, j: s * heads[h], causal, enable_gqa=True)


@near
def test_one_batch_of_keys(torch):
    tensors = three(torch, of_batch=1)
    return summary(torch, *tensors, mask_mod=lambda b, h, i, j: i + b >= j)


@near
def test_rows_that_are_masked_whole(torch):
    tensors = three(torch)
    return [
        summary(torch, *tensors, mask_mod=lambda b, h, i, j: (i > 1) & (i > j)),
        summary(torch, *tensors, lambda s, b, h, i, j: torch.where(i > 1, s, -math.inf)),
    ]


@near
def test_the_mask_of_the_function_alone_counts(torch):
    module, tensors = of(torch), three(torch)
    block_mask = module.create_block_mask(causal, None, None, 5, 5, device="cpu", BLOCK_SIZE=4)
    block_mask.mask_mod = lambda b, h, i, j: (i <= j) & (h > 0)
    return module.flex_attention(*tensors, block_mask=block_mask)


@near
def test_scores_of_other_dtypes(torch):
    tensors = three(torch)
    singles = [tensor.float() for tensor in tensors]
    return [
        of(torch).flex_attention(*singles, lambda s, b, h, i, j: i).dtype is torch.float32,
        of(torch).flex_attention(*singles, lambda s, b, h, i, j: s.double()).dtype is torch.float32,
        of(torch).flex_attention(*tensors, lambda s, b, h, i, j: i - j),
        of(torch).flex_attention(tensors[0], *singles[1:], lambda s, b, h, i, j: s).dtype
        is torch.float64,
        of(torch).flex_attention(singles[0], *tensors[1:]),
    ]


@near
def test_halves_have_scores_of_single_precision(torch):
    query, key, value = (tensor.bfloat16() for tensor in three(torch))
    query, key = query * 40, key * 40
    _, lse = summary(torch, query, key, value, lambda s, b, h, i, j: s + 0.001)
    return [lse.dtype is torch.float32, lse]


# ---- block masks, as PyTorch's


def parts(block_mask):
    """All parts but the function."""
    return [list(part) if isinstance(part, tuple) else part for part in block_mask.as_tuple()[:-1]]


def masks(torch, batch=None, heads=None):
    """Block masks of several kinds."""
    make = of(torch).create_block_mask
    window = lambda b, h, i, j: (i - j).abs() < 5  # noqa: E731
    return [
        make(causal, batch, heads, 8, 10, device="cpu", BLOCK_SIZE=4),
        make(window, batch, heads, 16, 16, device="cpu", BLOCK_SIZE=(4, 2)),
        make(window, None, None, 16, 16, device="cpu", BLOCK_SIZE=4, separate_full_blocks=False),
        make(of(torch).noop_mask, 1, 1, 6, 6, device="cpu", BLOCK_SIZE=4),
        make(lambda b, h, i, j: i < 0, 1, 1, 6, 6, device="cpu", BLOCK_SIZE=4),
        make(lambda b, h, i, j: (i >= j + 4 * b) & (h < 1), 2, 2, 8, 8, device="cpu", BLOCK_SIZE=4),
    ]


@as_torch
def test_blocks_of_block_masks(torch):
    return [parts(block_mask) for block_mask in masks(torch)]


@as_torch
def test_to_dense_and_sizes_of_block_masks(torch):
    return [
        [m.to_dense(), list(m.shape), m.numel(), m.sparsity(), list(m.seq_lengths)]
        for m in masks(torch, 2, 3)
    ]


@as_torch
def test_order_of_the_gradients_of_blocks(torch):
    make, results = of(torch).create_block_mask, []
    for separate, descending in itertools.product((True, False), repeat=2):
        block_mask = make(
            lambda b, h, i, j: (i - j).abs() < 5,
            None,
            None,
            16,
            16,
            device="cpu",
            BLOCK_SIZE=4,
            separate_full_blocks=separate,
            compute_dq_write_order=True,
            dq_kv_order=descending,
        )
        results.append([block_mask._dq_kv_order(), parts(block_mask), parts(block_mask.to("cpu"))])
    return results


@as_torch
def test_reprs_of_block_masks(torch):
    big = of(torch).create_block_mask(causal, 2, 3, 1024, 1024, device="cpu")
    band = of(torch).create_block_mask(
        lambda b, h, i, j: (i >= j) & (i - j < 900), 1, 2, 4096, 3000, device="cpu"
    )
    options = [{}, {"grid_size": 4, "limit": 1}, {"grid_size": (3, 5)}, {"grid_size": -1}]
    return [
        [str(m) for m in masks(torch, 2, 3)],
        [repr(m) for m in (*masks(torch)[2:4], big)],
        [m.to_string(**option) for m in (big, band) for option in options],
    ]


INDICES = (
    *(0, -1, 5, (0, 0), (1, 2, 0), slice(0, 1), (slice(None), 1), (slice(None),) * 4, ...),
    (slice(None), slice(None), slice(1, 3)),
)


@as_torch
def test_slices_of_block_masks(torch):
    big = of(torch).create_block_mask(causal, 2, 3, 32, 32, device="cpu", BLOCK_SIZE=8)
    numbered = [big[index] for index in INDICES]
    listed = [big[:, torch.tensor([0, 2])], big[:, :, torch.tensor([1])]]
    plain = masks(torch)[2][0]
    return [[parts(m), list(m.shape)] for m in (*numbered, *listed, plain)]


@as_torch
def test_block_masks_adjusted_to_other_lengths(torch):
    big = of(torch).create_block_mask(causal, 2, 1, 32, 32, device="cpu", BLOCK_SIZE=8)
    lengths = [(32, 32), (100, 70), (8, 32)]
    block_masks = [m._adjust(*pair) for m in (big, masks(torch)[2]) for pair in lengths]
    return [[parts(m), m.to_dense(), m.mask_mod is big.mask_mod] for m in block_masks]


@as_torch
def test_block_masks_from_kv_blocks(torch):
    make = of(torch).BlockMask.from_kv_blocks
    count, indices = torch.tensor([[[1, 2]]]), torch.tensor([[[[1, 1], [0, 1]]]])
    full = torch.tensor([[[1, 0]]]), torch.tensor([[[[0, 0], [0, 0]]]])
    block_masks = [
        make(count, indices),
        make(count.int(), indices.int(), BLOCK_SIZE=4, mask_mod=causal, seq_lengths=(7, 6)),
        make(count, indices, *full, BLOCK_SIZE=(4, 2)),
        make(count, indices, *full, compute_q_blocks=False, dq_kv_order=True),
        make(count[0, 0], indices[0, 0], dq_kv_order=count),
    ]
    names = [getattr(m.mask_mod, "__name__", None) for m in block_masks]
    tuples = [len(block_masks[0].as_tuple(flatten)) for flatten in (True, False)]
    return [names, tuples, [[parts(m), m.to_dense()] for m in block_masks]]


@as_torch
def test_and_masks_or_masks_and_noop_mask(torch):
    module = of(torch)
    prefix = lambda b, h, i, j: j < 2  # noqa: E731
    window = lambda b, h, i, j: i - j < 2  # noqa: E731
    low = lambda s, b, h, i, j: torch.where(i >= j, s, -math.inf)  # noqa: E731
    with_default = lambda b, h, i, j, width=2: i - j < width  # noqa: E731
    scaled = lambda factor, b, h, i, j: factor * i >= j  # noqa: E731
    functions = [
        causal,
        low,
        with_default,
        functools.partial(scaled, 3),
        module.noop_mask,
        module.and_masks(causal, window),
        module.or_masks(causal, prefix),
        module.and_masks(),
        module.or_masks(),
        module.and_masks(causal, module.or_masks(prefix)),
    ]
    masks = [module.create_mask(f, None, None, 3, 4, device="cpu") for f in functions]
    by_batch = lambda b, h, i, j: i + b >= j + h  # noqa: E731
    return [*masks, module.create_mask(by_batch, 2, 3, 3, 2, device="cpu")]


# ---- errors


@as_torch
def test_errors_of_flex_attention(torch):
    module = of(torch)
    attend, (q, k, v) = module.flex_attention, three(torch)
    mask_of = lambda *lengths: module.create_block_mask(causal, *lengths, device="cpu")  # noqa: E731
    five, nine = mask_of(None, None, 5, 5), mask_of(None, None, 9, 9)
    with_batch = mask_of(2, None, 5, 5)

    def fails(*tensors, words=None, **options):
        return error(lambda: attend(*tensors, **options), words=words)

    both = {"return_lse": True, "return_aux": module.AuxRequest()}
    meta = [tensor.to("meta") for tensor in (q, k, v)]
    return [
        fails(q[0], k[0], v[0]),
        fails(q, k[0], v),
        fails(q[..., :2], k, v),
        fails(q[..., :2], k[:1], v),
        fails(q[:, :1, :, :2], k, v),
        fails(q, k[:, :1], v[:, :1]),
        fails(q[:1], k, v),
        fails(q, k[:1], v[:1]),
        fails(q, k[:1], v[:1], block_mask=five),
        fails(q[:1], k, v, block_mask=mask_of(1, None, 5, 5)),
        fails(q, k[:, :1, :, :2], v),
        fails(q, torch.cat([k, k[:, :1]], 1), torch.cat([v, v[:, :1]], 1), enable_gqa=True),
        fails(q[..., :2], k, v, block_mask=nine),
        fails(q[:, :1], k, v, block_mask=nine, **both),
        fails(q[:, :, :4], k, v, block_mask=with_batch),
        fails(q, k[:, :, :4], v[:, :, :4], block_mask=five),
        fails(q, k, v, block_mask=mask_of(None, None, 5, 4)),
        fails(q, k, v, block_mask=mask_of(None, None, 4, 8)),
        fails(q, k, v, block_mask=nine),
        fails(q, k, v, **both),
        fails(q, k, v, kernel_options={"BACKEND": "CUDNN"}),
        fails(*meta),
        fails(q, meta[1], v),
        fails(q, k, v, block_mask=with_batch[0], words="Cannot use mask_mod from a sliced BlockM"),
    ]


@as_torch
def test_block_masks_that_are_refused(torch):
    module = of(torch)
    count, indices = torch.tensor([[[1]]]), torch.tensor([[[[0]]]])

    def fails(function, *arguments, words=None, **options):
        return error(lambda: function(*arguments, **options), words=words)

    make, from_blocks = module.create_block_mask, module.BlockMask.from_kv_blocks
    sliced = make(causal, None, None, 4, 4, device="cpu")[0]
    number = torch.tensor(0)
    return [
        fails(make, lambda s, b, h, i, j: s, None, None, 4, 4, "cpu", words="requires a mask_mod"),
        fails(make, lambda b, h, i, j: i + j, None, None, 4, 4, "cpu"),
        fails(make, lambda b, h, i: i, None, None, 4, 4, "cpu"),
        fails(make, lambda *numbers: numbers[0], None, None, 4, 4, "cpu"),
        fails(module.create_mask, lambda b, h, i, j, k, m: i, None, None, 4, 4, "cpu"),
        fails(module.create_mask, 3, None, None, 4, 4, "cpu"),
        fails(
            module.create_mask,
            lambda b, h, i, j: True,
            None,
            None,
            4,
            4,
            "cpu",
            words="must only return Tensors, got type <class 'bool'>",
        ),
        fails(module.and_masks, causal, 3, words="All inputs should be callable mask_mods"),
        fails(module.or_masks, 3),
        fails(from_blocks, count, indices, count),
        fails(from_blocks, count[0, 0], indices[0, 0, 0]),
        fails(module.BlockMask, (4, 4), count, indices, count, *[None] * 5),
        fails(sliced.mask_mod, *[number] * 4, words="Cannot use mask_mod from a sliced BlockMask"),
    ]
