"""Clipping of gradients against PyTorch."""

import math

import pytest
from helpers.as_torch import as_torch, error, leaf, parameters, warned

UTILS = ("clip_grad_norm_", "clip_grad_value_", "get_total_norm", "clip_grads_with_norm_")


def with_gradients(torch):
    """Three parameters; the last one has no gradient."""
    parameters = [leaf(torch, 3.0, -4.0, dtype=torch.float64), leaf(torch, 12.0), leaf(torch, 1.0)]
    parameters[0].grad = torch.tensor([3.0, -4.0], dtype=torch.float64)
    parameters[1].grad = torch.tensor(12.0)
    return parameters


@pytest.mark.row("S04")
@pytest.mark.slow
@as_torch(precision=1e-7)
def test_get_total_norm_of_gradients(torch):
    total = torch.nn.utils.get_total_norm
    tensors = [torch.tensor([3.0, 0.0, -4.0]), torch.tensor([[12.0]])]
    norms = [total(tensors, p) for p in (2.0, 1, 3, 0.5, math.inf, "inf", -math.inf, 0)]
    words = "is non-finite, so it cannot be clipped"
    return [
        norms,
        total([]),
        total(tensors[0]),
        total([torch.tensor([300.0, 400.0], dtype=torch.float16)]),
        total([torch.ones(1), torch.ones(1, dtype=torch.float64)]),
        total([torch.tensor([3.0 + 4.0j])]),
        total([torch.tensor([math.nan])]),
        error(lambda: total([torch.tensor([math.inf])], 2.0, True), words=words),
        total(torch.ones(2, requires_grad=True)).requires_grad,
    ]


@pytest.mark.row("S04")
@as_torch(precision=1e-7)
def test_clipping_of_gradients(torch):
    utils, results = torch.nn.utils, []
    for options in ({"max_norm": 1.0}, {"max_norm": 100.0}, {"max_norm": 2, "norm_type": math.inf}):
        weights = with_gradients(torch)
        gradient = weights[0].grad
        results.append(utils.clip_grad_norm_(weights, **options))
        results.append([gradient, weights[1].grad, weights[2].grad, weights[0].grad is gradient])
    weights = with_gradients(torch)
    utils.clip_grad_value_(weights, 3.5)
    results.append([weight.grad for weight in weights])
    utils.clip_grads_with_norm_(weights[1], 0.5, torch.tensor(1.0))
    nothing = warned(lambda: utils.clip_grad_norm_((x for x in []), 1.0))
    weights[0].grad.fill_(math.inf)
    refused = error(
        lambda: utils.clip_grad_norm_(weights, 1.0, error_if_nonfinite=True),
        words="is non-finite, so it cannot be clipped",
    )
    return results, weights[1].grad, nothing, refused, weights[0].grad


@pytest.mark.row("S04")
@as_torch
def test_signatures_of_clipping(torch):
    return {name: parameters(getattr(torch.nn.utils, name)) for name in UTILS}
