"""Models of transformers whose attention is flex_attention: padding, windows, soft-capped scores.

PyTorch's flex_attention has no backward pass on CPUs and says so; there the model trains with the
scaled dot product of the same numbers, while jaxgrad trains through flex_attention.
"""

import functools

from harness import fill, integers, named, program, train

VOCABULARY = 64
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
FAMILIES = {
    "llama": {},
    "mistral": {"sliding_window": 4},
    "gemma2": {"sliding_window": 4, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 8},
    "qwen3": {},
}


def trains_with() -> str:
    """The implementation that has gradients here."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    row = torch.ones(1, 1, 1, 2, requires_grad=True)
    try:
        flex_attention(row, row, row).sum().backward()
    except NotImplementedError:
        return "eager"  # which caps scores as flex_attention does; sdpa leaves that out
    return "flex_attention"


def run(family, options):
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(family, **{**SMALL, **options})
    tokens = integers(VOCABULARY, 2, 16, low=4)
    mask = torch.ones_like(tokens)
    mask[0, :5] = 0  # padding on the left

    def model_with(implementation):
        automatic = transformers.AutoModelForCausalLM
        return fill(automatic.from_config(config, attn_implementation=implementation)).eval()

    with torch.no_grad():
        outputs = model_with("flex_attention")(input_ids=tokens, attention_mask=mask)
    # what a padded query gives is no one's: it attends to nothing
    results = named(outputs.logits[mask.bool()], "flex.logits")

    # nor does a padded query predict the first token
    labels = tokens.masked_fill((mask == 0) | (mask.cumsum(1) == 1), -100)
    model = model_with(trains_with())

    def loss_of(model):
        return model(input_ids=tokens, attention_mask=mask, labels=labels).loss

    return results | train(model, loss_of)


for family, options in FAMILIES.items():
    name = f"{family} with flex_attention"
    program("transformers", name, compiled=True)(functools.partial(run, family, options))
