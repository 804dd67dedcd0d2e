"""The graphs of exported programs against those of the installed PyTorch: random programs of
operators, whose nodes and values are compared.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import random

import numpy as np
import pytest
import torch as pytorch
from oracle.seed import SEED

import jaxgrad
from jaxgrad import fx

pytestmark = pytest.mark.filterwarnings("ignore::Warning")  # of PyTorch

# of x and y (3, 4), w (4, 4), i (3, 4) of ints below 4; each gives (3, 4)
STEPS = """
x + 1; 1 - x; x * y; 2 / (x.abs() + 1); x**2; -x; x // 2; x.remainder(2); torch.rsub(x, y, alpha=2)
F.relu(x); F.gelu(x, approximate="tanh"); F.silu(x.clone(), inplace=True); F.leaky_relu(x, 0.2)
F.hardtanh(x); F.elu(x); x.sigmoid(); torch.tanh(x); F.softplus(x); F.hardswish(x); F.selu(x)
F.layer_norm(x, (4,)); F.group_norm(x, 2); F.batch_norm(x, w[0], w[1].abs() + 1)
x.softmax(-1); F.log_softmax(x, dim=1); x.logsumexp(1, keepdim=True) + x
torch.cat([x[:1], x[1:]]); torch.cat([x, y], dim=1)[:, 2:6]; torch.stack([x, y]).mean(0)
x.t().t(); x.transpose(0, 1).permute(1, 0); x.view(-1).view(3, 4); x.flatten().reshape(3, 4)
x.reshape(2, 6).flip(0).reshape(3, 4); x.unsqueeze(0).squeeze(0); x[None][0]; x.roll(1, 0)
x.clamp(-1, 1); x.clamp(min=0.1); torch.where(y > 0, x, y); torch.where(x > 0, x, 0.0)
x / (x.abs().sum(1, keepdim=True) + 1); x - x.mean(dim=(0, 1)); x.std(1, keepdim=True) + x
x.var(0, unbiased=False) + x; x.amax(1, keepdim=True) - x; x.max(1, keepdim=True).values * x
x.chunk(2, 1)[0].repeat(1, 2); torch.hstack(x.split(2, 1)); torch.stack(x.unbind(1), 1)
x.masked_fill(y > 0, 0.5); x @ w; F.linear(x, w); torch.addmm(x, x, w)
torch.einsum("ij,jk->ik", x, w)
x.sort(1).values; x.topk(4, 1).values; x.cumsum(0); x.gather(1, i); x.scatter(1, i, 1.0)
x.clone().add_(1).mul_(y); x.clone().clamp_(0, 1); x[i[:, 0] % 3]; x.index_select(0, i[:, 0] % 3)
F.dropout(x, 0.5, False); F.pad(x, (1, 0))[:, :4]; F.pad(x, (0, 1), value=2.0)[:, 1:]
F.one_hot(i, 4).sum(1) + x; F.embedding(i[:, 0], w); x.triu(); x.tril(-1); x.new_zeros(4) + x
torch.zeros_like(x) + x; torch.arange(4) + x; torch.full((4,), 2.0) * x; torch.ones(3, 4) * x
F.max_pool2d(x[None, None], 3, 1, 1)[0, 0]; F.avg_pool2d(x[None, None], 3, 1, 1)[0, 0]
F.adaptive_avg_pool2d(x[None, None], (3, 4)).squeeze(0).squeeze(0)
F.interpolate(x[None, None], scale_factor=2).view(6, 8)[:3, :4]
F.conv2d(x[None, None], w[None, None, :3, :3], padding=1)[0, 0]
F.conv1d(x[None], w[:3, :3, None])[0]
F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)[0]
F.cross_entropy(x, i[:, 0]) + x; F.binary_cross_entropy_with_logits(x, y.sigmoid()) + x
x.norm(dim=1, keepdim=True) * x; torch.linalg.vector_norm(x) + x; x.expand(2, 3, 4).sum(0)
torch.maximum(x, y); torch.lerp(x, y, 0.5); torch.addcmul(x, x, y, value=2); x.nan_to_num()
"""
STEPS = [step for line in STEPS.strip().splitlines() for step in line.split("; ")]
COUNT, LENGTH = 60, 8


def program_of(library, steps):
    body = "\n".join(f"        x = {step}" for step in steps)
    scope = {"torch": library, "nn": library.nn, "F": library.nn.functional}
    exec(
        f"class M(nn.Module):\n    def forward(self, x, y, w, i):\n{body}\n        return x", scope
    )
    return scope["M"]()


def arguments(generator):
    x, y, w = (generator.normal(size=size).astype(np.float32) for size in ((3, 4), (3, 4), (4, 4)))
    return x, y, w, generator.integers(0, 4, (3, 4))


def nodes(program):
    """The nodes without what PyTorch checks and jaxgrad does not."""
    shown = [n for n in program.graph.nodes if "_assert_tensor_metadata" not in n.name]
    return [f"{n.op} {n.name} = {n.target}{n.args}{dict(n.kwargs)}" for n in shown]


@pytest.mark.parametrize("number", range(COUNT))
def test_random_programs(number):
    chooser = random.Random(SEED * 1000 + number)
    steps = [chooser.choice(STEPS) for _ in range(LENGTH)]
    arrays = arguments(np.random.default_rng(SEED * 1000 + number))
    args = tuple(map(jaxgrad.tensor, arrays))
    try:
        program_of(pytorch, steps)(*map(pytorch.tensor, arrays))
    except RuntimeError:  # a view that strides forbid
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            program_of(jaxgrad, steps)(*args)
        return
    program = jaxgrad.export.export(program_of(jaxgrad, steps), args, platforms=("cpu",))
    expected = pytorch.export.export(program_of(pytorch, steps), tuple(map(pytorch.tensor, arrays)))
    assert nodes(program) == nodes(expected), steps
    values = [(n.meta["val"].shape, str(n.meta["val"].dtype)) for n in tensors(program)]
    wanted = [(n.meta["val"].shape, str(n.meta["val"].dtype)) for n in tensors(expected)]
    assert [(tuple(s), d) for s, d in values] == [(tuple(s), d) for s, d in wanted]
    (result,) = fx.Interpreter(program.graph_module).run(*args)
    jaxgrad.testing.assert_close(result, program.module()(*args), equal_nan=True)
    decomposed = fx.Interpreter(program.run_decompositions().graph_module).run(*args)
    wanted = expected.run_decompositions().module()(*map(pytorch.tensor, arrays)).numpy()
    np.testing.assert_allclose(decomposed[0].numpy(), wanted, rtol=1e-4, atol=1e-4)


def tensors(program):
    kinds = jaxgrad.Tensor, pytorch.Tensor
    return [
        node
        for node in program.graph.nodes
        if isinstance(node.meta.get("val"), kinds) and "_assert" not in node.name
    ]
