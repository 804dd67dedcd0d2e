"""Transformers against PyTorch."""

import functools
import math
import warnings

import pytest
from helpers.as_torch import as_torch, error, warned
from helpers.layers import fix_weights, in_float64, irregular, without_rounding

import jaxgrad
from jaxgrad import nn


@in_float64
def test_transformer_encoder_layers(torch):
    nn, x = torch.nn, irregular(torch, 2, 3, 4)
    options = {"dim_feedforward": 5, "dropout": 0.0, "batch_first": True}
    skipped = torch.tensor([[False, True, False], [False, False, True]])
    first = fix_weights(torch, nn.TransformerEncoderLayer(4, 2, **options))
    second = fix_weights(torch, nn.TransformerEncoderLayer(4, 2, 5, 0.0, "gelu", norm_first=True))
    many = nn.TransformerEncoder(first, 2, nn.LayerNorm(4), enable_nested_tensor=False)
    output = first(x, src_key_padding_mask=skipped)
    return [
        without_rounding(output),
        without_rounding(torch.autograd.grad(output.sum(), first.linear1.weight)[0]),
        without_rounding(second(x, src_mask=irregular(torch, 2, 2))),
        without_rounding(many(x)),
        list(many.state_dict()),
        error(lambda: nn.TransformerEncoderLayer(4, 2, activation="bent"), words="should be relu/"),
    ]


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
def test_encoder_and_decoder_layers(torch):
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


@pytest.mark.slow
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


@pytest.mark.slow
@wide
def test_warnings_of_an_encoder_about_nested_tensors(torch):
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


def nested_encoder(**options):
    """An encoder in inference that may leave out padding."""
    import jaxgrad as torch

    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    return torch.nn.TransformerEncoder(fix_weights(torch, layer), 2, **options).eval()


ENDS = [[False, False, True], [False, True, True]]
GAPS = [[False, True, False], [False, True, True]]


@pytest.mark.parametrize(
    ("mask", "options", "is_zero"),
    [
        (ENDS, {}, True),
        (ENDS, {"mask_check": False}, True),
        (GAPS, {}, False),
        (ENDS, {"enable_nested_tensor": False}, False),
    ],
)
def test_encoders_give_zero_at_the_padding(mask, options, is_zero):
    import jaxgrad as torch

    encoder, x = nested_encoder(**options), irregular(torch, 2, 3, 4)
    is_padded = torch.tensor(mask)
    with torch.no_grad():
        result = encoder(x, src_key_padding_mask=is_padded)
        compiled = torch.compile(encoder)(x, src_key_padding_mask=is_padded)
    assert (result[is_padded] == 0).all().item() is is_zero
    assert torch.allclose(result, compiled, atol=1e-6)
    if mask is ENDS:
        assert torch.allclose(result[0, :2], encoder(x[:1, :2])[0], atol=1e-6)
    # what is recorded has no zeros, as in PyTorch
    assert not (encoder(x, src_key_padding_mask=is_padded)[is_padded] == 0).any()


def test_the_norm_of_an_encoder_sees_the_zeros():
    import jaxgrad as torch

    encoder = nested_encoder(norm=torch.nn.LayerNorm(4))
    torch.nn.init.constant_(encoder.norm.bias, 3.0)
    with torch.no_grad():
        is_padded = torch.tensor(ENDS)
        result = encoder(irregular(torch, 2, 3, 4), src_key_padding_mask=is_padded)
    assert (result[is_padded] == 3).all()


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_encoders_of_nested_tensors(layout):
    import jaxgrad as torch

    encoder = nested_encoder()
    parts = irregular(torch, 2, 4), irregular(torch, 3, 4)
    x = torch.nested.nested_tensor(parts, layout=getattr(torch, layout))
    with torch.no_grad():
        result = encoder(x)
    for part, other in zip(result.unbind(), parts, strict=True):
        assert torch.allclose(part, encoder(other[None])[0].detach(), atol=1e-6)


def test_layers_whose_blocks_are_overridden():
    class Silent(nn.TransformerEncoderLayer):
        def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
            return jaxgrad.zeros_like(x)

        def _ff_block(self, x):
            return x + 1

    class Deaf(nn.TransformerDecoderLayer):
        def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
            return mem

        _sa_block, _ff_block = Silent._sa_block, Silent._ff_block

    x, memory = jaxgrad.tensor([[[1.0, 5.0]]]), jaxgrad.tensor([[[2.0, 3.0]]])
    # the norm of two numbers is -1 and 1
    options = {"norm_first": True, "layer_norm_eps": 0.0}
    assert Silent(2, 1, 2, **options)(x).tolist() == [[[1 - 1 + 1, 5 + 1 + 1]]]
    assert Deaf(2, 1, 2, **options)(x, memory).tolist() == [[[3 - 1 + 1, 8 + 1 + 1]]]


def test_the_parameters_of_an_activation_are_the_last_ones():
    for layer in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer):
        block = layer(4, 2, 4, activation=nn.PReLU())
        assert [name for name, _ in block.named_parameters()][-1] == "activation.weight"
        assert [name for name, _ in block.named_children()][-1] == "activation"
