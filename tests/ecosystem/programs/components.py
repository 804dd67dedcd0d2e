"""Components of models: x_transformers and vector_quantize_pytorch."""

from harness import fill, integers, normal, program, train


@program("x-transformers", "decoder", compiled=True)
def decoder():
    import torch
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, rotary_pos_emb=True, ff_glu=True)
    model = fill(TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=layers))
    tokens = integers(32, 2, 9, name="tokens")

    def loss_of(model):
        scores = model(tokens[:, :-1])
        return torch.nn.functional.cross_entropy(scores.mT, tokens[:, 1:]), scores

    return train(model, loss_of)


@program("x-transformers", "generate")
def generate():
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(
        dim=32, depth=2, heads=4, attn_dim_head=8, alibi_pos_bias=True, use_rmsnorm=True
    )
    model = TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=layers)
    model = AutoregressiveWrapper(fill(model)).eval()
    prompt = integers(32, 2, 4, name="prompt")
    return {"tokens": model.generate(prompt, 8, temperature=0.0), "loss": model(prompt)}


@program("x-transformers", "encoder_with_mask")
def encoder_with_mask():
    from x_transformers import ContinuousTransformerWrapper, Encoder

    layers = Encoder(
        dim=32, depth=2, heads=4, attn_dim_head=8, rel_pos_bias=True, attn_qk_norm=True
    )
    model = ContinuousTransformerWrapper(dim_in=6, dim_out=3, max_seq_len=8, attn_layers=layers)
    inputs, mask = normal(2, 8, 6), integers(2, 2, 8, name="mask") == 1
    mask[:, 0] = True

    def loss_of(model):
        outputs = model(inputs, mask=mask)
        return outputs.square().mean(), outputs

    return train(fill(model), loss_of)


def quantize(quantizer):
    """Three steps of a projection before a quantizer, with the codes chosen."""
    import torch

    model = fill(torch.nn.Sequential(torch.nn.Linear(6, 8), quantizer), ("embed", "embed_avg"))
    inputs = normal(2, 5, 6)

    def loss_of(model):
        quantized, codes, *losses = model(inputs)
        extra = sum(loss.sum() for loss in losses)
        return quantized.square().mean() + extra, quantized, codes

    return train(model, loss_of)


@program("vector-quantize-pytorch", "vector_quantize", dtype="float64")
def vector_quantize():
    from vector_quantize_pytorch import VectorQuantize

    return quantize(VectorQuantize(dim=8, codebook_size=16, decay=0.8, threshold_ema_dead_code=0))


@program("vector-quantize-pytorch", "finite_scalar", compiled=True)
def finite_scalar():
    from vector_quantize_pytorch import FSQ

    return quantize(FSQ(levels=[4, 3, 3], dim=8))


@program("vector-quantize-pytorch", "residual", dtype="float64")
def residual():
    from vector_quantize_pytorch import ResidualVQ

    quantizer = ResidualVQ(dim=8, codebook_size=8, num_quantizers=2, threshold_ema_dead_code=0)
    return quantize(quantizer)
