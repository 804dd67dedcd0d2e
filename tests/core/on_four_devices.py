"""The program that test_devices.py runs on four devices, in its own process; it prints its
results.
"""

import functools
import json
import sys
from itertools import chain

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxgrad.rules import attention

import jaxgrad as torch
from jaxgrad.nn import functional
from jaxgrad.tape.tensor import wrap

MESH = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Auto,))
ROWS, WHOLE = NamedSharding(MESH, P("batch")), NamedSharding(MESH, P())
EXPLICIT = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Explicit,))

NUMBERS = np.random.default_rng(0)
X, Y = (NUMBERS.normal(size=(8, n)).astype(np.float32) for n in (3, 4))
W = NUMBERS.normal(size=(3, 2)).astype(np.float32)

OPTIMIZERS = {
    "momentum": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, 0.1),
}


def training(optimizer, sharding=None, rows=ROWS, middle=torch.nn.Tanh):
    """Three steps: the losses, and all remaining tensors."""
    torch.manual_seed(0)
    place = (lambda array, _: array) if sharding is None else jax.device_put
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), middle(), torch.nn.Linear(4, 4))
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = wrap(place(tensor.detach()._array, sharding))
    x, y = (wrap(place(jnp.asarray(array), rows)) for array in (X, Y))
    chosen = OPTIMIZERS[optimizer](model.parameters())

    @torch.jit
    def step(x, y):
        chosen.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        chosen.step()
        return loss, model(x)

    results = [step(x, y) for _ in range(3)]
    states = [entry for state in chosen.state.values() for entry in state.values()]
    gradients = [parameter.grad for parameter in model.parameters()]
    left = [*model.parameters(), *model.buffers(), *gradients, *states]
    left = [entry for entry in left if isinstance(entry, torch.Tensor)]
    assert len(step.traces) == 1, step.explain()
    return [loss for loss, _ in results], [output for _, output in results], left


def steps(optimizer, sharding, rows=ROWS, **options):
    """The largest difference that four devices make, and how tensors lie on them."""
    alone = training(optimizer, **options)
    spread = training(optimizer, sharding, rows, **options)
    pairs = zip(chain(*alone), chain(*spread), strict=True)
    _, outputs, left = spread
    return {
        "difference": max(np.abs(a.detach().numpy() - b.detach().numpy()).max() for a, b in pairs),
        "state stays": all(
            tensor._array.sharding.is_equivalent_to(sharding, tensor.ndim)
            for tensor in left
            if tensor.ndim
        ),
        "results are in rows": all(
            tensor._array.sharding.is_equivalent_to(rows, tensor.ndim) for tensor in outputs
        ),
        "tensors": len(left),
    }


def loss(w, x):
    return ((x @ w).tanh() ** 2).sum(1).mean() + (w**2).sum()


def by_backward(w, x):
    w = w.detach().requires_grad_()
    loss(w, x).backward()
    return w.grad


def plain(w, x):
    return (jnp.tanh(x @ w) ** 2).sum(1).mean() + (w**2).sum()


def mapped(function, check_vma):
    """A function of parameters and rows, averaged over devices with their own rows."""

    def part(w, x):
        return jax.lax.pmean(function(w, x), "batch")

    return jax.shard_map(
        part, mesh=MESH, in_specs=(P(), P("batch")), out_specs=P(), check_vma=check_vma
    )


def gradients(check_vma):
    """Differences from JAX's gradient of the whole."""
    wanted, curvature = jax.grad(plain)(W, X), jax.hessian(plain)(W, X)
    whole = mapped(torch.to_jax(loss), check_vma)
    pairs = {
        "func.grad": (mapped(torch.to_jax(torch.func.grad(loss)), check_vma), wanted),
        "backward": (mapped(torch.to_jax(by_backward), check_vma), wanted),
        "from outside": (jax.grad(whole), wanted),
        "second": (jax.jacrev(jax.grad(whole)) if check_vma else jax.hessian(whole), curvature),
    }
    return {
        name: np.abs(jax.jit(f)(W, X) - expected).max() for name, (f, expected) in pairs.items()
    }


def network(w, x):
    steps, first = torch.stack([x, 2 * x]), torch.zeros(1, x.shape[0], 2)
    outputs = torch.rnn_tanh(steps, first, [w.T, w[:2]], False, 1, 0.0, False, False, False)
    return (outputs[0] ** 2).mean()


def plain_network(w, x):
    first = jnp.tanh(x @ w)
    return (jnp.stack([first, jnp.tanh(2 * x @ w + first @ w[:2].T)]) ** 2).mean()


def recurrent():
    """Differences from JAX's gradient: states begin alike on all devices, and inputs do not."""
    inside = mapped(torch.to_jax(torch.func.grad(network)), True)
    around = jax.grad(mapped(torch.to_jax(network), True))
    wanted = jax.grad(plain_network)(W, X)
    return [np.abs(jax.jit(function)(W, X) - wanted).max() for function in (inside, around)]


def matrices(w, x):
    """Positive definite matrices, one for each row."""
    columns = (x @ w).tanh()
    return torch.eye(2) + columns[:, :, None] * columns[:, None, :]


def attended(w, x):
    steps = x[..., None] @ w[:1]
    return functional.scaled_dot_product_attention(steps, steps + 1, steps, is_causal=True)


# functions of shared weights and of rows, which do not know one another
BY_ROW = {
    "attention in blocks": attended,
    "convolution": lambda w, x: functional.conv1d(
        functional.pad(x[:, None], (2, 2), mode="reflect"), w.T[:, None]
    ),
    "maximum": lambda w, x: functional.max_pool1d((x @ w)[:, None], 2, 1) * w.sum(),
    "sorting": lambda w, x: (x @ w).sort(1).values ** 3,
    "lookup": lambda w, x: functional.embedding((x > 0).long(), w) ** 2,
    "sign": lambda w, x: (x @ w).sign() * w.sum(0) ** 2,
    "interpolation": lambda w, x: functional.interpolate((x @ w)[:, None], 5, mode="linear") ** 2,
    "cholesky": lambda w, x: torch.linalg.cholesky(matrices(w, x)),
    "exponential": lambda w, x: torch.linalg.matrix_exp(matrices(w, x)),
    "eigenvalues": lambda w, x: torch.linalg.eigvalsh(matrices(w, x)) ** 2,
    "pseudoinverse": lambda w, x: torch.linalg.pinv(matrices(w, x)),
}


def inside(name):
    """Differences of gradients and second derivatives on four devices from those of the whole."""

    def loss(w, x):
        return BY_ROW[name](w, x).sin().mean()

    whole, parts = torch.to_jax(loss), mapped(torch.to_jax(loss), True)
    by_tape, slope = mapped(torch.to_jax(torch.func.grad(loss)), True), jax.jit(jax.grad(whole))
    pairs = [(by_tape, slope), (jax.grad(parts), slope)]
    pairs.append((jax.jacrev(jax.grad(parts)), jax.hessian(whole)))
    with pytest.MonkeyPatch.context() as patch:
        for limit, number in (("AT_ONCE", 0), ("BLOCK", 0), ("LEAST_ROWS", 2)):
            patch.setattr(attention, limit, number)
        return [np.abs(jax.jit(f)(W, X) - jax.jit(g)(W, X)).max() for f, g in pairs]


def devices():
    """The device of what is made or moved by a device of JAX."""
    other = jax.devices()[3]
    with torch.device(other):
        inside = torch.ones(1)
    tensors = [
        torch.ones(2).to(other),
        torch.ones(2).to(other, torch.float64),
        inside,
        torch.ones(2).to(device=other),
        torch.ones(2, device=other),
        torch.tensor([1.0], device=other),
        torch.rand(2, device=other),
        torch.arange(3, device=other),
        torch.zeros_like(torch.ones(1), device=other),
        torch.nn.Linear(1, 1).to(other).weight,
        torch.nn.Linear(1, 1, device=other).weight,
    ]
    return [str(tensor.device) for tensor in tensors] + [
        str(torch.device(d)) for d in (other, jax.devices()[0])
    ]


def new_tensors():
    """The devices of new tensors that are read while another device is the default one, and of what
    is computed of them; the same for tensors that have an array.
    """
    names, double = [], torch.jit(lambda x: x * 2)
    double(torch.ones(2))
    for has_array in (False, True):
        x, y, z = (torch.tensor([1.0, 2.0]) for _ in range(3))
        if has_array:
            x._array, y._array, z._array  # noqa: B018
        with jax.default_device(jax.devices()[2]):
            tensors = double(x), y + 1, z, torch.tensor([3.0])
            z._array  # noqa: B018
            names.append([str(tensor.device) for tensor in tensors])
        names[-1] += [str(tensor.device) for tensor in (x, y, z)]
    return names


def main():
    results = {name: steps(name, WHOLE) for name in OPTIMIZERS}
    results["Adam, spread"] = steps("Adam", ROWS)
    normalized = functools.partial(torch.nn.SyncBatchNorm, 4)
    results["momentum, normalized"] = steps("momentum", WHOLE, middle=normalized)
    explicit = [NamedSharding(EXPLICIT, spec) for spec in (P(), P("batch"))]
    results["momentum, explicit"] = steps("momentum", *explicit)
    results |= {f"gradients, {flag}": gradients(flag) for flag in (True, False)}
    results["recurrent"] = recurrent()
    results["inside"] = {name: inside(name) for name in BY_ROW}
    results["devices of JAX"] = devices()
    results["new tensors"] = new_tensors()
    json.dump(results, sys.stdout, default=float)


if __name__ == "__main__":
    assert len(jax.devices()) == 4
    main()
