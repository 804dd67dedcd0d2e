"""Embeddings and bags of embeddings against PyTorch."""

import pytest
from helpers.as_torch import error
from helpers.layers import fix_weights, in_float64, irregular, of_layer

import jaxgrad
from jaxgrad import nn


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


@pytest.mark.parametrize("mode, rows", [("sum", [3, 2]), ("mean", [1, 2]), ("max", [2, 2])])
def test_the_last_offset_ends_the_last_bag(mode, rows):
    table, indices = jaxgrad.arange(5.0)[:, None], jaxgrad.tensor([0, 1, 2, 2, 3, 4])
    offsets = jaxgrad.tensor([0, 3, 4])
    bags = nn.functional.embedding_bag(indices, table, offsets, mode=mode, include_last_offset=True)
    assert bags.flatten().tolist() == rows


def test_offsets_that_decrease():
    table, indices = jaxgrad.ones(3, 2), jaxgrad.tensor([0, 1])
    with pytest.raises(RuntimeError, match="offsets must not decrease"):
        nn.functional.embedding_bag(indices, table, jaxgrad.tensor([0, 2, 1]))


@pytest.mark.parametrize("layer", ("Embedding", "EmbeddingBag"))
def test_sparse_gradients_under_strict_versions(layer):
    with jaxgrad.autograd.graph.strict_versions():
        table = getattr(nn, layer)(4, 2, sparse=True)
        indices = jaxgrad.tensor([[1, 3]])
        table(indices).sum().backward()
        assert table.weight.grad.is_sparse
        result = table(indices)
        indices[0, 0] = 0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()


@pytest.mark.parametrize("function", [nn.functional.embedding, nn.functional.embedding_bag])
def test_a_sparse_gradient_is_not_scaled_by_frequencies(function):
    table, indices = jaxgrad.eye(2), jaxgrad.tensor([[1, 1]])
    options = {"sparse": True, "scale_grad_by_freq": True}
    plain = function(indices, table)
    assert (function(indices, table, **options) == plain).all()
    table.requires_grad_()
    with jaxgrad.no_grad():
        assert (function(indices, table, **options) == plain).all()
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse"):
        function(indices, table, **options)
