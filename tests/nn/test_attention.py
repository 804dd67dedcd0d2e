"""Attention in heads and transformers, with given weights: values, gradients, errors, warnings."""

import functools
import math
import warnings

import pytest
from helpers.as_torch import as_torch, error, warned
from helpers.layers import fix_weights, in_float64, irregular, of_function, without_rounding

import jaxgrad


def wide(body):
    """`as_torch` in float64, with the precision of sums added up in another order."""

    @functools.wraps(body)
    def run(torch):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "enable_nested_tensor|Support for mismatched")
                warnings.filterwarnings("ignore", "Flash attention|Both fused|All fused")
                return body(torch)
        finally:
            torch.set_default_dtype(before)

    return as_torch(run, precision=1e-8)


def numbers(torch, *shape, first=0):
    """Numbers without a pattern that a mistake could reproduce."""
    places = torch.arange(first, first + math.prod(shape)).double()
    return (1.3 * places * places + 0.7).sin().reshape(shape)


def rounded(tensor):
    """The numbers with rounding errors of zero removed."""
    return None if tensor is None else (tensor.detach() * 1e9).round() / 1e9


@pytest.mark.slow
@pytest.mark.slow
@wide
def test_multi_head_attention_with_every_argument(torch):
    attend, x = torch.nn.functional.multi_head_attention_forward, numbers(torch, 3, 2, 4)
    other, third = numbers(torch, 5, 2, 3, first=2), numbers(torch, 5, 2, 6, first=3)
    weight, bias = numbers(torch, 12, 4, first=5), numbers(torch, 12, first=6)
    out = numbers(torch, 4, 4, first=7), numbers(torch, 4, first=8)
    separate = [numbers(torch, 4, n, first=n) for n in (4, 3, 6)]
    extra = numbers(torch, 1, 1, 4), numbers(torch, 1, 1, 4, first=1)
    none = (None, None, False, 0.0)
    static = numbers(torch, 4, 5, 2, first=9)
    mask = torch.tensor([[False, True, False], [False, False, True], [False, False, False]])

    def call(*arguments, **options):
        return list(map(rounded, attend(*arguments, **options)))

    def fails(*arguments, words=None, **options):
        return error(lambda: attend(*arguments, **options), words=words)

    usual = (x, x, x, 4, 2, weight, bias)
    apart = {"use_separate_proj_weight": True} | dict(
        zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), separate, strict=True)
    )
    return [
        call(*usual, *none, *out),
        call(x, other, third, 4, 2, None, bias, *none, *out, **apart),
        call(*usual, *extra, True, 0.0, *out, attn_mask=mask, key_padding_mask=mask[:2]),
        call(*usual, *none, *out, static_k=static, static_v=static, need_weights=False),
        call(*usual, *none, *out, attn_mask=numbers(torch, 4, 3, 3), average_attn_weights=False),
        call(*usual, *none, *out, attn_mask=mask, is_causal=True, need_weights=False),
        call(*(tensor[:, 0] for tensor in (x, x, x)), *usual[3:], *none, *out, attn_mask=mask),
        call(*usual, None, None, False, 0.9, *out, training=False),
        fails(x[0, 0], *usual[1:], *none, *out),
        fails(x, x[0], *usual[2:], *none, *out),
        fails(x, x, other, *usual[3:], *none, *out),
        fails(*usual, *none, *out, key_padding_mask=mask[0]),
        fails(*usual, *none, *out, key_padding_mask=mask),
        fails(*usual, *none, *out, attn_mask=mask[0]),
        fails(*usual, *none, *out, attn_mask=mask[:2]),
        fails(*usual, *none, *out, attn_mask=mask.long()),
        fails(x, x, x, 5, *usual[4:], *none, *out),
        fails(x, x, x, 4, 3, *usual[5:], *none, *out),
        fails(*usual, extra[0], None, False, 0.0, *out),
        fails(*usual[:5], None, bias, *none, *out),
        fails(*usual, *none, *out, static_k=static[1:]),
        warned(
            lambda: call(
                *usual, *none, *out, attn_mask=numbers(torch, 3, 3), key_padding_mask=mask[:2]
            )
        ),
    ]


@wide
def test_wrong_arguments_of_attention(torch):
    attend, nn = torch.nn.functional.scaled_dot_product_attention, torch.nn
    x, rows = numbers(torch, 2, 4, 3, 2), numbers(torch, 3, 2)
    kinds = nn.attention.SDPBackend

    def within(backends, *arguments, **options):
        def call():
            with nn.attention.sdpa_kernel(backends):
                return rounded(attend(*arguments, **options))

        return call

    return [
        error(attend, x[0, 0, 0], x, x),
        error(attend, x, x.float(), x),
        error(attend, x.long(), x.long(), x.long(), words="but found Long"),
        error(attend, x, x, x, torch.ones(3, 3).long(), words="Expected attn_mask dtype"),
        error(attend, x, x, x, torch.ones(3), words="Dimension out of range"),
        error(attend, x, x, x, torch.ones(4, 3), words=""),
        error(attend, x, x[:, :2], x[:, :2], words="must match the size of tensor"),
        error(lambda: attend(x, x[:, :3], x[:, :3], enable_gqa=True), words="Number of heads in"),
        error(lambda: attend(rows, rows, rows, enable_gqa=True), words="Dimension out of range"),
        error(lambda: attend(x, x, x, dropout_p=1.5), words="dropout probability has to be"),
        error(within(kinds.EFFICIENT_ATTENTION, x, x, x)),
        error(within([], x, x, x)),
        error(within(kinds.FLASH_ATTENTION, x, x, x, dropout_p=0.5)),
        error(within("math", x, x, x)),
        within(kinds.MATH, x, x[:, :2], x[:, :2], enable_gqa=True)(),
        within([kinds.MATH, kinds.FLASH_ATTENTION], x, x, x, is_causal=True)(),
        [(name, int(kind)) for name, kind in kinds.__members__.items()],
        str(kinds.MATH),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
def test_dropout_of_attention_weights_keeps_their_mean(causal):
    """By the mean over many draws: dropout leaves the expected output as it is."""
    x = numbers(jaxgrad, 1, 1, 4, 2)
    many = x.expand(4000, 1, 4, 2)
    attend = jaxgrad.nn.functional.scaled_dot_product_attention
    plain = attend(x, x, x, is_causal=causal)
    mean = attend(many, many, many, dropout_p=0.3, is_causal=causal).mean(0, True)
    assert (mean - plain).abs().max() < 0.05


@pytest.mark.slow
@in_float64
def test_scaled_dot_product_attention(torch):
    attend = torch.nn.functional.scaled_dot_product_attention

    def inputs(heads=2, length=4):
        return [
            irregular(torch, 1, 2, 3, 2),
            irregular(torch, 1, heads, length, 2, first=3),
            irregular(torch, 1, heads, length, 3, first=7),
        ]

    mask = irregular(torch, 3, 4)
    mask[1] = -math.inf
    mask[0, 2] = -math.inf

    def attended(options, *shape, second=False):
        return of_function(torch, lambda *a: attend(*a, **options), *inputs(*shape), second=second)

    return [
        attended({}, second=True),
        attended({"is_causal": True, "scale": 0.3}, 2, 3),
        attended({"attn_mask": mask}),
        attended({"attn_mask": mask > 0}),
        attended({"enable_gqa": True}, 1),
    ]


@pytest.mark.slow
@in_float64
def test_multihead_attention(torch):
    attend, x = torch.nn.MultiheadAttention, irregular(torch, 3, 2, 4)
    other, third = irregular(torch, 4, 2, 3, first=2), irregular(torch, 4, 2, 5, first=3)
    skipped = torch.tensor([[False, True, False], [False, False, True]])
    causal = torch.ones(3, 3).tril() == 0
    added = irregular(torch, 4, 3, 3, first=6)

    def attended(layer, *inputs, **options):
        return [*map(without_rounding, fix_weights(torch, layer)(*inputs, **options))]

    def learned(layer, *inputs, **options):
        output, _ = fix_weights(torch, layer)(*inputs, **options)
        return [*map(without_rounding, torch.autograd.grad(output.sum(), layer.parameters()))]

    masks = {"key_padding_mask": skipped, "attn_mask": causal}
    return [
        attended(attend(4, 2), x, x, x),
        learned(attend(4, 2, add_bias_kv=True), x, x, x, key_padding_mask=skipped),
        attended(attend(4, 2, kdim=3, vdim=5, bias=False), x, other, third, need_weights=False),
        attended(attend(4, 2, add_bias_kv=True, add_zero_attn=True), x, x, x, **masks),
        attended(
            attend(4, 2, batch_first=True),
            *[x.transpose(0, 1)] * 3,
            attn_mask=added,
            average_attn_weights=False,
        ),
        attended(attend(4, 1), x[0], x[1], x[1], need_weights=False),
        attended(attend(4, 2), x, x, x, need_weights=False, is_causal=True, attn_mask=causal),
        list(attend(4, 2, kdim=3, add_bias_kv=True).state_dict()),
        error(attend, 4, 3, words="embed_dim must be divisible by num_heads"),
        error(lambda: attend(4, 2)(x, x, x, is_causal=True), words="Need attn_mask if specifying"),
    ]


def nested_input(torch, layout):
    parts = torch.arange(8.0).view(2, 4) / 9, torch.arange(16.0).view(4, 4) / 7 - 1
    return parts, torch.nested.nested_tensor(parts, layout=getattr(torch, layout))


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_attention_of_nested_tensors(layout):
    import jaxgrad as torch

    module = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval().requires_grad_(False)
    parts, x = nested_input(torch, layout)
    result, weights = module(x, x, x)
    for number, (part, other) in enumerate(zip(result.unbind(), parts, strict=True)):
        expected, seen = module(other[None], other[None], other[None])
        assert torch.allclose(part, expected[0], atol=1e-6)
        length = len(other)
        assert torch.allclose(weights[number, :length, :length], seen[0], atol=1e-6)
        assert (weights[number, length:] == 0).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda module: module.train(), "training is enabled"),
        (lambda module: module.requires_grad_(True), "grad is enabled"),
        (lambda module: setattr(module, "batch_first", False), "batch_first was not True"),
    ],
)
def test_attention_refuses_nested_tensors_in_training(change, words):
    import jaxgrad as torch

    module = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval().requires_grad_(False)
    change(module)
    _, x = nested_input(torch, "strided")
    with pytest.raises(AssertionError, match=f"outside of its fast path.*{words}"):
        module(x, x, x)


@pytest.mark.parametrize(
    ("shapes", "outcomes"),
    [
        (((1, 1, 2, 3),) * 3, [True] * 4),
        (((1, 2, 3),) * 3, [False, False, True, False]),
        (((1, 1, 2, 3), (1, 1, 2, 3), (1, 1, 2, 2)), [False, False, True, False]),
    ],
)
def test_writes_that_pytorch_refuses_after_attention(shapes, outcomes):
    """Query, key, value and result: which of them PyTorch saves depends on how it computes."""
    for place, raises in enumerate(outcomes):
        tensors = [jaxgrad.ones(shape, requires_grad=True) for shape in shapes]
        with jaxgrad.autograd.graph.strict_versions():
            result = jaxgrad.nn.functional.scaled_dot_product_attention(*tensors)
            with jaxgrad.no_grad():
                [*tensors, result][place].mul_(2)
            if raises:
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    result.sum().backward()
            else:
                result.sum().backward()
