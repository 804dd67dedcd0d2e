"""Calls of functions and methods with symbolic values stand in code as PyTorch writes them."""

import math

from helpers.as_torch import as_torch


def bodies(torch, *programs):
    """The lines of the code of programs, without the head."""
    codes = (torch.fx.symbolic_trace(program).code for program in programs)
    return [code.strip().split("\n", 1)[1] for code in codes]


@as_torch
def test_tensors_that_meet_symbolic_values(torch):
    c = torch.arange(6.0).reshape(2, 3)
    return bodies(
        torch,
        *(lambda x: c + x, lambda x: x - c, lambda x: c - x, lambda x: c @ x, lambda x: c**x),
        *(lambda x: c[x], lambda x: c[:, x], lambda x: x[c > 2], lambda x: c == x),
        *(lambda x: c < x, lambda x: c > x, lambda x: c / x, lambda x: c // x, lambda x: c % x),
        *(lambda x: c & x, lambda x: c.add_(x), lambda x: c.view(x.size(0), -1)),
        *(lambda x: c.to(x), lambda x: c.to(x.dtype), lambda x: c.reshape(x.shape)),
        *(lambda x: c.masked_fill(x, 0), lambda x: c.gather(0, x), lambda x: c.type_as(x)),
        *(lambda x: torch.stack((c, x)), lambda x: torch.cat([x, c], x.dim() - 1)),
        *(lambda x: torch.where(x, c, 1.0), lambda x: torch.broadcast_tensors(x, c)),
    )


@as_torch
def test_functions_of_sizes_and_dtypes(torch):
    return bodies(
        torch,
        *(lambda x: torch.zeros(x.shape), lambda x: torch.arange(x.shape[0])),
        *(lambda x: torch.linspace(0, 1, x.size(0)), lambda x: torch.eye(x.size(0))),
        lambda x: torch.empty(x.shape, device=x.device, dtype=x.dtype),
        *(lambda x: torch.full(x.shape, 2.0), lambda x: torch.full_like(x, 2)),
        *(lambda x: torch.zeros_like(x), lambda x: torch.randn_like(x), lambda x: x.half()),
        *(lambda x: x.to(torch.float16), lambda x: x.new_zeros(x.size(0), 3)),
        *(lambda x: torch.is_floating_point(x), lambda x: x.is_floating_point()),
        *(lambda x: x.to(memory_format=torch.channels_last), lambda x: torch.numel(x)),
        *(lambda x: math.pi * x, lambda x: x * float("nan"), lambda x: x**-0.5, lambda x: 2j * x),
    )


@as_torch
def test_composed_functions(torch):
    return bodies(
        torch,
        *(lambda x: torch.meshgrid(x, x), lambda x: torch.atleast_1d(x)),
        *(lambda x: torch.unique(x, return_counts=True), lambda x: torch.split(x, [1, 2])),
        *(lambda x: torch.chunk(x, 2), lambda x: torch.topk(x, 2), lambda x: torch.max(x, 1)[0]),
        *(lambda x: torch.stft(x, 4), lambda x: torch.cdist(x, x), lambda x: torch.erf(x)),
        *(lambda x: torch.linalg.inv(x), lambda x: torch.linalg.vector_norm(x, 2, dim=-1)),
        *(lambda x: torch.fft.rfft2(x), lambda x: torch.einsum("ij,jk", [x, x])),
    )


@as_torch
def test_functions_of_layers(torch):
    f = torch.nn.functional
    return bodies(
        torch,
        *(lambda x: f.max_pool2d(x, 2, return_indices=True), lambda x: f.group_norm(x, 2)),
        *(lambda x: f.embedding(x, x), lambda x: f.one_hot(x), lambda x: f.glu(x)),
        *(lambda x: f.hardtanh(x), lambda x: f.relu6(x), lambda x: f.leaky_relu(x, 0.2)),
        *(lambda x: f.elu(x), lambda x: f.silu(x), lambda x: f.logsigmoid(x)),
        *(lambda x: f.normalize(x, dim=1), lambda x: f.cosine_similarity(x, x)),
        *(lambda x: f.mse_loss(x, x), lambda x: f.conv_transpose2d(x, x)),
        *(lambda x: f.pixel_shuffle(x, 2), lambda x: f.unfold(x, 2), lambda x: f.softplus(x)),
        *(lambda x: f.bilinear(x, x, x), lambda x: f.prelu(x, x), lambda x: f.lp_pool2d(x, 2, 2)),
        *(lambda x: f.grid_sample(x, x), lambda x: f.rms_norm(x, (3,))),
        *(lambda x: f.ctc_loss(x, x, x, x), lambda x: f.dropout2d(x)),
        *(lambda x: f.gumbel_softmax(x), lambda x: f.adaptive_max_pool2d(x, 2)),
    )
