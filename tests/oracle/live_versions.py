"""Which writes make a backward pass raise, in PyTorch and under `strict_versions`; and gradients
without it, which are those of the values that were saved.
"""

import numpy as np
import pytest
import torch
from helpers import checks
from oracle import op_db
from oracle.seed import SEED, drawn

import jaxgrad

# of tensors x, y (n, m), a positive `p` (n, m), a square `a` (n, n), and places `i` (n, m)
EXPRESSIONS = """
x + y
x * y
x / y
x ** 2
x ** y.abs()
x @ y.T
x.exp()
x.log()
x.sin()
x.tanh()
x.sigmoid()
x.relu()
x.abs()
x.sgn()
x.sqrt()
x.erfinv()
x.sum(0)
x.prod()
x.prod(1)
x.mean(1)
x.var(1)
x.amax(1)
x.max(1)[0]
x.cumsum(0)
x.cumprod(1)
x.cummax(1)[0]
x.sort(1)[0]
x.logsumexp(1)
x.softmax(1)
x.log_softmax(1)
x.norm()
x.gather(1, i)
x.take(i)
x.index_add(0, i[:, 0], y)
x.index_select(0, i[:, 0])
x.index_copy(0, torch.arange(x.shape[0]), y)
x.index_put((i[:, 0],), y)
x.scatter(1, i, y)
x.scatter_add(1, i, y)
x.where(x > 0, y)
x.masked_fill(x > 0, 2.0)
x.clamp(0.1, 0.5)
x.lerp(y, 0.3)
x.lerp(y, p)
x.addcmul(y, p)
x.addcdiv(y, p)
x.hypot(y)
x.atan2(y)
x.maximum(y)
torch.cat([x, y])
torch.stack([x, y])
torch.kron(x, y)
torch.outer(x[0], y[0])
torch.addmm(a, x, y.T)
torch.linalg.det(a)
torch.linalg.inv(a)
torch.linalg.qr(a)[0]
torch.linalg.svdvals(a)
torch.linalg.eigvalsh(a)
torch.linalg.cholesky(a @ a.T + torch.eye(len(a)))
torch.linalg.solve(a, x)
torch.linalg.matrix_norm(a, "nuc")
torch.special.i1(x)
torch.special.log_ndtr(x)
torch.polar(p, x).real
torch.fft.rfft(x).real
F.linear(x, y)
F.mse_loss(x, y)
F.l1_loss(x, y)
F.smooth_l1_loss(x, y)
F.cross_entropy(x, i[:, 0])
F.nll_loss(x, i[:, 0])
F.layer_norm(x, x.shape[1:], y[0], y[0])
F.gelu(x)
F.silu(x)
F.softplus(x)
F.leaky_relu(x)
F.elu(x)
F.glu(torch.cat([x, y], 1))
F.pad(x, (1, 1))
F.normalize(x)
F.cosine_similarity(x, y)
F.embedding(i, x)
F.max_pool1d(x[None], 1)
F.avg_pool1d(x[None], 1)
F.scaled_dot_product_attention(x[None], y[None], y[None])
F.scaled_dot_product_attention(x[None, None], y[None, None], y[None, None])
F.scaled_dot_product_attention(x[None, None], y[None, None], y[None, None, :, :1])
F.scaled_dot_product_attention(x[None, None], y[None, None], y[None, None], a[None, None])
""".strip().split("\n")


def outcome(module, expression, arrays, place):
    """Whether the backward pass raises after a write to one tensor, or else the gradients."""
    operands = {name: module.tensor(array) for name, array in arrays.items()}
    leaves = [x.requires_grad_() for x in operands.values() if x.is_floating_point()]
    scope = {"torch": module, "F": module.nn.functional}
    result = eval(expression, scope | operands)
    targets = [*leaves, result]
    if place < len(targets):
        with module.no_grad():
            targets[place].mul_(1.5)
    try:
        result.sum().backward()
    except RuntimeError as error:
        assert "has been modified by an inplace operation" in str(error), error
        return "raises"
    # a sum, since PyTorch gives zeros without memory
    return [None if x.grad is None else (x.grad + 0).tolist() for x in leaves]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_writes_to_what_is_saved(expression):
    draw = np.random.default_rng(SEED)
    n, m = map(int, draw.integers(2, 4, 2))
    arrays = {
        "x": draw.uniform(0.1, 0.9, (n, m)).astype(np.float32),
        "y": draw.uniform(0.1, 0.9, (n, m)).astype(np.float32),
        "p": draw.uniform(0.1, 0.9, (n, m)).astype(np.float32),
        "a": (draw.normal(size=(n, n)) + 3 * np.eye(n)).astype(np.float32),
        "i": draw.permuted(np.tile(np.arange(n) % min(n, m), (m, 1)), axis=1).T.copy(),
    }
    # of the values that were saved: no write comes between
    usual = outcome(torch, expression, arrays, 99)
    for place in range(5):
        expected = outcome(torch, expression, arrays, place)
        with jaxgrad.autograd.graph.strict_versions():
            strict = outcome(jaxgrad, expression, arrays, place)
        assert (strict == "raises") is (expected == "raises"), f"{SEED=} {place=} {n, m}"
        actual = outcome(jaxgrad, expression, arrays, place)
        for gradient, reference in zip(actual, usual, strict=True):
            assert (gradient is None) is (reference is None)
            if reference is not None:
                np.testing.assert_allclose(gradient, reference, 1e-3, 1e-5)
        checks.count("writes to saved tensors")


# ---- the operators of PyTorch's own table

# entries that jaxgrad composes of other operators, or PyTorch does (docs/conventions.md)
COMPOSED = {
    *("combinations", "stft", "masked_select", "_softmax_backward_data", "svd_lowrank"),
    *("nn.functional.linear_cross_entropy", "_upsample_bilinear2d_aa", "nn.functional.kl_div"),
    *("torch.ops.aten._safe_softmax.default", "_unsafe_masked_index", "index_put", "tensordot"),
    *("_unsafe_masked_index_put_accumulate", "native_dropout_backward", "masked.std"),
}
# writes to overlapping memory raise, and numbers of uninitialized memory have no history
LEFT_OUT = {"as_strided", "unfold", "resize_", "resize_as_", "empty", "new_empty", "empty_like"}
ENTRIES = [
    entry
    for entry in op_db.operators()
    if entry.supports_autograd and entry.name not in COMPOSED | LEFT_OUT
]


def tensors_of(lib, value):
    return op_db.tensors(value, lib.Tensor)


def leaves(lib, value):
    """A value with new leaves in place of its tensors."""
    if isinstance(value, lib.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {name: leaves(lib, item) for name, item in value.items()}
    return type(value)(leaves(lib, v) for v in value) if type(value) in (list, tuple) else value


def after_a_write(lib, operator, arguments, place):
    """Whether the backward pass raises after a write to one tensor; None where there is none."""
    args, kwargs = leaves(lib, arguments)
    results = tensors_of(lib, operator(*args, **kwargs))
    targets = [*tensors_of(lib, (args, kwargs)), *results]
    ends = [x for x in results if x.requires_grad]
    if place >= len(targets) or not ends:
        return None
    with lib.no_grad():
        targets[place].copy_(targets[place].clone())
    try:
        lib.autograd.backward(ends, [lib.ones_like(x) for x in ends])
    except RuntimeError as error:
        assert "has been modified by an inplace operation" in str(error), error
        return True
    return False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "entry", drawn(ENTRIES, 12), ids=lambda entry: f"{entry.name} {entry.variant_test_name}"
)
def test_operators_of_the_table(entry):
    try:
        operator = op_db.function_of(entry.op)
    except AttributeError:
        return
    samples = list(entry.sample_inputs("cpu", torch.float64, requires_grad=True))
    for sample in (samples[0], samples[len(samples) // 2], samples[-1]):
        theirs = (sample.input, *sample.args), sample.kwargs
        ours = op_db.converted(theirs)
        for place in range(7):
            try:
                expected = after_a_write(torch, entry.op, theirs, place)
            except (AssertionError, RuntimeError, NotImplementedError):
                continue  # this write, or this backward pass, raises whatever was saved
            if expected is None:
                break
            with jaxgrad.autograd.graph.strict_versions():
                actual = after_a_write(jaxgrad, operator, ours, place)
            assert actual is expected, f"{SEED=} {place=}"
            checks.count("writes to what operators save")
