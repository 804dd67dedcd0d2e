"""Attention in heads and transformers, with given weights: values, gradients, errors, warnings."""

import functools
import math
import warnings

import pytest
from helpers.as_torch import as_torch, error, warned

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

    return pytest.mark.slow(as_torch(run, precision=1e-8))


def numbers(torch, *shape, first=0):
    """Numbers without a pattern that a mistake could reproduce."""
    places = torch.arange(first, first + math.prod(shape)).double()
    return (1.3 * places * places + 0.7).sin().reshape(shape)


def with_fixed_weights(torch, module):
    """The module with fixed weights."""
    with torch.no_grad():
        for position, parameter in enumerate(module.parameters()):
            parameter.copy_(0.5 * numbers(torch, *parameter.shape, first=position))
    return module


def rounded(tensor):
    """The numbers with rounding errors of zero removed."""
    return None if tensor is None else (tensor.detach() * 1e9).round() / 1e9


def summary(torch, module, *inputs, **options):
    """The result, and the size of each gradient along given numbers."""
    output = with_fixed_weights(torch, module)(*inputs, **options)
    result = output[0] if isinstance(output, tuple) else output
    weights = numbers(torch, *result.shape, first=4)
    leaves = list(module.parameters())
    gradients = torch.autograd.grad((result * weights).sum(), leaves, allow_unused=True)
    along = [None if g is None else (g * numbers(torch, *g.shape)).sum() for g in gradients]
    outputs = output if isinstance(output, tuple) else (output,)
    return [list(map(rounded, outputs)), list(map(rounded, along)), list(module.state_dict())]


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
def test_layers_of_encoder_and_decoder(torch):
    nn, x = torch.nn, numbers(torch, 2, 4, 4)
    memory, causal = numbers(torch, 2, 3, 4, first=3), torch.ones(4, 4).tril() == 0
    padding = torch.tensor([[False, False, False, True], [False, False, True, True]])
    usual = {"dropout": 0.0, "batch_first": True}
    encoder = functools.partial(nn.TransformerEncoderLayer, 4, 2, 6, **usual)
    decoder = functools.partial(nn.TransformerDecoderLayer, 4, 2, 6, **usual)
    after = {"tgt_mask": causal, "memory_key_padding_mask": padding[:, 1:]}
    after |= {"tgt_key_padding_mask": padding, "memory_mask": numbers(torch, 4, 3)}
    floats = nn.Transformer.generate_square_subsequent_mask(4)
    return [
        summary(torch, encoder(norm_first=True, bias=False), x, src_key_padding_mask=padding),
        summary(torch, encoder(activation=nn.Tanh()), x, src_mask=floats, is_causal=True),
        summary(torch, encoder(activation="gelu", layer_norm_eps=0.1), x[0], causal),
        summary(torch, decoder(), x, memory, **after),
        summary(torch, decoder(norm_first=True, activation="gelu", bias=False), x, memory),
        summary(torch, decoder(), x[0], memory[0], tgt_mask=floats, tgt_is_causal=True),
        [str(encoder()), str(decoder(bias=False))],
        [floats, nn.Transformer.generate_square_subsequent_mask(2, dtype=torch.float32)],
        error(lambda: encoder(activation="bent"), words="should be relu/gelu"),
    ]


@wide
def test_transformer(torch):
    nn, src, tgt = torch.nn, numbers(torch, 3, 2, 4), numbers(torch, 4, 2, 4, first=2)
    small = functools.partial(nn.Transformer, 4, 2, 1, 2, 6, 0.0)
    model, causal = small(), nn.Transformer.generate_square_subsequent_mask(4)
    padding = torch.tensor([[False, False, True], [False, False, False]])
    masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
    masks |= {"tgt_mask": causal, "tgt_is_causal": True, "src_mask": numbers(torch, 3, 3)}
    first = small(batch_first=True, norm_first=True, bias=False)
    turned = src.transpose(0, 1), tgt.transpose(0, 1)
    layer = nn.TransformerDecoderLayer(4, 2, 5, 0.0)
    return [
        summary(torch, model, src, tgt, **masks),
        summary(torch, first, *turned, tgt_mask=causal),
        summary(torch, small(custom_encoder=nn.Linear(4, 4).eval()).decoder, tgt, src),
        summary(torch, nn.TransformerDecoder(layer, 2, nn.LayerNorm(4)), tgt[:, 0], src[:, 0]),
        str(model),
        error(model, src, tgt[:, :1]),
        error(model, src[..., :3], tgt),
    ]


@wide
def test_what_an_encoder_says_of_nested_tensors(torch):
    nn = torch.nn
    make = functools.partial(nn.TransformerEncoderLayer, 6, 2, 4)
    layers = [
        make(),
        make(batch_first=True),
        make(batch_first=True, norm_first=True),
        make(batch_first=True, bias=False),
        make(batch_first=True, activation=nn.Tanh()),
        nn.TransformerEncoderLayer(6, 3, 4, batch_first=True),
        nn.Linear(6, 6),
    ]

    def stacked(layer, enable):
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=enable).use_nested_tensor

    plain = stacked(layers[0], False)
    return [plain, *(warned(stacked, layer, True) for layer in layers)]


@wide
def test_what_attention_refuses(torch):
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
def test_dropout_of_weights_keeps_their_mean(causal):
    """By the mean over many draws: dropout leaves the expected output as it is."""
    x = numbers(jaxgrad, 1, 1, 4, 2)
    many = x.expand(4000, 1, 4, 2)
    attend = jaxgrad.nn.functional.scaled_dot_product_attention
    plain = attend(x, x, x, is_causal=causal)
    mean = attend(many, many, many, dropout_p=0.3, is_causal=causal).mean(0, True)
    assert (mean - plain).abs().max() < 0.05
