"""Embeddings and bags of embeddings against PyTorch."""

from helpers.as_torch import error
from helpers.layers import fix_weights, in_float64, irregular, of_layer


@in_float64
def test_embedding_bag(torch):
    nn, results = torch.nn, []
    places, starts = torch.tensor([1, 2, 2, 0, 4]), torch.tensor([0, 2, 2])
    for mode in ("sum", "mean", "max"):
        layer = fix_weights(torch, nn.EmbeddingBag(5, 2, mode=mode, padding_idx=2))
        layer(places, starts).sum().backward()
        results.append((repr(layer), layer(places, starts).detach(), layer.weight.grad))
    short = nn.EmbeddingBag(5, 2, max_norm=0.5, norm_type=1.0)
    fix_weights(torch, short)(torch.tensor([[1, 1], [2, 4]])).sum().backward()
    frozen = nn.EmbeddingBag.from_pretrained(irregular(torch, 5, 2), include_last_offset=True)
    ends = torch.tensor([0, 2, 5])
    return [
        results,
        (repr(short), short.weight.detach(), short.weight.grad),
        (frozen(places, ends), frozen.weight.requires_grad, list(frozen.state_dict())),
        nn.EmbeddingBag(3, 2, padding_idx=-1).weight[2].detach(),
    ]


@in_float64
def test_embedding(torch):
    nn, F = torch.nn, torch.nn.functional
    places = torch.tensor([[1, 2, 2], [0, 4, 1]])
    plain = of_layer(torch, nn.Embedding(5, 2), places)
    padded = of_layer(torch, nn.Embedding(5, 2, padding_idx=-3), places)
    scaled = fix_weights(torch, nn.Embedding(5, 2, scale_grad_by_freq=True))
    scaled(places).sum().backward()
    table = torch.nn.Parameter(irregular(torch, 5, 2) * 3)
    short = F.embedding(places, table, max_norm=1.0)
    frozen = nn.Embedding.from_pretrained(table.detach())
    return [
        plain,
        padded,
        scaled.weight.grad,
        short.detach(),
        table.detach(),
        frozen(torch.tensor(1)),
        nn.Embedding(3, 2, padding_idx=1).weight[1].detach(),
        error(F.embedding, torch.tensor([5]), table, words="index out of range in self"),
        error(F.embedding, torch.tensor([-1]), table, words="index out of range in self"),
    ]
