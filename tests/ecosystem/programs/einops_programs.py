"""Programs that use einops."""

from harness import fill, normal, program, train


@program("einops", "patches", compiled=True)
def patches():
    import torch
    from einops import rearrange, reduce
    from einops.layers.torch import Rearrange

    cut = Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
    model = fill(torch.nn.Sequential(cut, torch.nn.Linear(48, 32)))
    images = normal(2, 3, 16, 16)

    def loss_of(model):
        tokens = model(images)
        pooled = reduce(tokens, "b n c -> b c", "mean")
        return pooled.square().mean() + rearrange(tokens, "b n c -> (b n) c").abs().sum(), tokens

    return train(model, loss_of)
