"""Strides of results in random layouts against the installed PyTorch.

make oracle     (`--seed N` repeats a run: a failure names the seed, and shows the call)
"""

import numpy as np
import pytest
import torch
from helpers import checks
from oracle.seed import SEED, drawn

import jaxgrad

CALLS = 20

# of an image `x` (n, 4, h, w), a kernel `k` (4, 4, 2, 2), a matrix `a`, and places `i`
EXPRESSIONS = """
F.max_pool2d(x, 2)
F.avg_pool2d(x, 2)
F.adaptive_avg_pool2d(x, 1)
F.adaptive_avg_pool2d(x, 2)
F.batch_norm(x, None, None, training=True)
F.group_norm(x, 2)
F.layer_norm(x, x.shape[-1:])
F.interpolate(x, scale_factor=2)
F.interpolate(x, scale_factor=2, mode="bilinear")
F.pixel_shuffle(x, 2)
F.pad(x, (1, 0, 2, 0))
F.pad(x, (1, 0, 1, 1), "replicate")
F.conv2d(x, k)
F.conv2d(x, k, padding=1, groups=1)
F.conv_transpose2d(x, k, stride=2)
F.relu(x) + x
x * k[:1, :, :1, :1]
torch.where(x > 0, x, 0)
torch.cat([x, x], 1)
torch.cat([x, x.contiguous()])
torch.stack([x, x], 1)
torch.stack([x, x], 4)
x.flip(2)
x.roll(1, 1)
x.rot90(1, (1, 3))
x.sort(1).values
x.softmax(1)
x.cumsum(2)
x.sum(1)
x.mean((2, 3), keepdim=True)
x[i]
x[:, i]
x[i, :, i]
x[..., i, :]
x.index_select(1, i)
F.glu(x, 1)
F.dropout(x)
F.mse_loss(x, x, reduction="none")
x.clone()
x.contiguous(memory_format=torch.channels_last)
x.to(torch.float64)
x.to(torch.float64, memory_format=torch.channels_last)
x.to(memory_format=torch.contiguous_format)
torch.zeros_like(x)
torch.empty_like(x, memory_format=torch.channels_last)
torch.linalg.inv(a)
torch.linalg.qr(a).R
torch.linalg.solve(a, a[..., 0])
torch.linalg.solve(a, a, left=False)
torch.linalg.eigh(a).eigenvectors
torch.linalg.svd(a[:, :2]).U
torch.linalg.svd(a[:, :2]).Vh
torch.svd(a[:, :2]).U
torch.svd(a[:, :2]).V
torch.nonzero(x, as_tuple=True)[1]
torch.unravel_index(i, (3, 2))[0]
torch.unsafe_split(x, 2, 1)[0]
x.index_fill(1, i, 2)
a @ a.mT
torch.fft.fft(x, dim=1)
torch.fft.rfft2(x, dim=(0, 2))
torch.fft.irfftn(x, dim=(1, 2))
torch.nonzero(x)
torch.permute_copy(x, (1, 0, 3, 2))
""".strip().split("\n")


def layouts_of(draw, shape):
    """Strides without overlaps: the dimensions in a random order, some with gaps."""
    kind = draw.integers(4)
    order = [*range(len(shape))]
    if kind == 1 and len(shape) == 4:
        order = [0, 2, 3, 1]
    elif kind > 1:
        order = [*draw.permutation(len(shape))]
    gap = 2 if kind == 3 else 1
    strides, step = [0] * len(shape), gap
    for dim in order[::-1]:
        strides[dim] = step
        step *= shape[dim]
    return tuple(map(int, strides))


def pair(numbers, strides):
    """A tensor of PyTorch and one of jaxgrad, with these strides."""
    both = []
    for module in (torch, jaxgrad):
        tensor = module.empty_strided(numbers.shape, strides)
        both.append(tensor.copy_(module.from_numpy(numbers)))
    return both


def operands_of(draw):
    n, h, w = (int(extent) for extent in draw.integers(1, 4, 3) * [1, 2, 2])
    arrays = {"x": draw.normal(size=(n, 4, h, w)), "k": draw.normal(size=(4, 4, 2, 2))}
    arrays["a"] = np.eye(3) * 9 + draw.normal(size=(2, 3, 3))
    drawn = {name: array.astype(np.float32) for name, array in arrays.items()}
    pairs = {name: pair(array, layouts_of(draw, array.shape)) for name, array in drawn.items()}
    places = draw.integers(0, 1, 2)
    pairs["i"] = [torch.from_numpy(places), jaxgrad.from_numpy(places)]
    return pairs


def counting_strides(tensor):
    """The shape and the strides; those of an extent of 1 reach no element."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [(extent, stride if extent != 1 else None) for extent, stride in pairs]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_strides_of_results(expression):
    draw = np.random.default_rng(SEED)
    for _ in range(CALLS):
        pairs = operands_of(draw)
        modules = (torch, jaxgrad)
        scopes = [{name: both[i] for name, both in pairs.items()} for i in range(2)]
        results = [
            eval(expression, {"torch": module, "F": module.nn.functional} | scope)
            for module, scope in zip(modules, scopes, strict=True)
        ]
        operands = {name: (tuple(t.shape), t.stride()) for name, t in scopes[0].items()}
        expected, strides = map(counting_strides, results)
        assert strides == expected, f"SEED={SEED}\n{operands}"
        checks.count("strides of results")


def strides_of_grads(module, expression, scope):
    """Of the `.grad` that two backward passes fill, for each operand that has one."""
    leaves = [t for t in scope.values() if t.is_floating_point()]
    for leaf in leaves:
        leaf.requires_grad_()
    for _ in range(2):
        result = eval(expression, {"torch": module, "F": module.nn.functional} | scope)
        if result.requires_grad:
            result.abs().sum().backward()
    return [leaf.grad is not None and counting_strides(leaf.grad) for leaf in leaves]


@pytest.mark.parametrize("expression", drawn(EXPRESSIONS, 4))
def test_strides_of_grads(expression):
    pairs = operands_of(np.random.default_rng(SEED))
    expected, strides = (
        strides_of_grads(module, expression, {name: both[i] for name, both in pairs.items()})
        for i, module in enumerate((torch, jaxgrad))
    )
    assert strides == expected, f"SEED={SEED}"
    checks.count("strides of gradients")
