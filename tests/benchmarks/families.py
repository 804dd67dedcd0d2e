"""Five operators of each family, forward and backward, beside plain JAX and torch.

    python tests/benchmarks/families.py                    all families
    python tests/benchmarks/families.py linalg --sizes 1e4

A line: operator; number of elements; the compiled time of ten calls with their gradient in
microseconds, and as a ratio to `jax.jit(jax.value_and_grad)` of the same mathematics; the eager
time of one call with its gradient, and as a ratio to torch's where torch is installed.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import math

import figures
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg as jsl
from jax.scipy import special as jsp
from run import least_of

import jaxgrad

try:
    import torch
except ImportError:
    torch = None

CHAIN = 10


def vector(count, draw):
    return draw.uniform(0.2, 1.8, count)


def square(count, draw):
    """A well conditioned square matrix."""
    size = max(2, math.isqrt(count))
    return draw.standard_normal((size, size)) / size**0.5 + 2 * np.eye(size)


def definite(count, draw):
    matrix = square(count, draw)
    return matrix @ matrix.T


def wide(count, draw):
    """A matrix of 10 rows."""
    return draw.standard_normal((10, max(1, count // 10)))


def positions(x):
    """Half as many positions as x has elements, in no order and with repetitions."""
    count = x.shape[-1]
    return np.random.default_rng(1).integers(0, count, count // 2)


def _gather(t, x):
    return t.index_select(x, 0, t.as_tensor(positions(x)))


def _scatter(t, x):
    index = t.as_tensor(positions(x))
    return t.zeros_like(x).index_add(0, index, x[: len(index)])


def _selected(t, x):
    return t.where(x > 1.0, x, t.zeros_like(x))


def _index_put(t, x):
    index = t.as_tensor(positions(x))
    return x.index_put((index,), x[: len(index)], accumulate=True)


def _take_first(t, x):
    return x[: x.shape[0] // 2]


# by family: by operator: how the input is drawn, the function of torch or jaxgrad, that of JAX
FAMILIES = {
    "pointwise": {
        "lgamma": (vector, lambda t, x: t.lgamma(x), jsp.gammaln),
        "digamma": (vector, lambda t, x: t.digamma(x), jsp.digamma),
        "logit": (vector, lambda t, x: t.logit(x / 2), lambda x: jsp.logit(x / 2)),
        "copysign": (vector, lambda t, x: t.copysign(x, -x), lambda x: jnp.copysign(x, -x)),
        "sinc": (vector, lambda t, x: t.sinc(x), jnp.sinc),
    },
    "special": {
        "i0e": (vector, lambda t, x: t.special.i0e(x), jsp.i0e),
        "i1e": (vector, lambda t, x: t.special.i1e(x), jsp.i1e),
        "entr": (vector, lambda t, x: t.special.entr(x), jsp.entr),
        "ndtr": (vector, lambda t, x: t.special.ndtr(x), jsp.ndtr),
        "log_ndtr": (vector, lambda t, x: t.special.log_ndtr(x), jsp.log_ndtr),
    },
    "reduction": {
        "norm": (vector, lambda t, x: t.norm(x), jnp.linalg.norm),
        "cumprod": (vector, lambda t, x: t.cumprod(x, 0), jnp.cumprod),
        "logcumsumexp": (vector, lambda t, x: t.logcumsumexp(x, 0), jax.lax.cumlogsumexp),
        "nansum": (vector, lambda t, x: t.nansum(x), jnp.nansum),
        "std": (vector, lambda t, x: t.std(x), lambda x: jnp.std(x, ddof=1)),
    },
    "shape": {
        "repeat_interleave": (
            vector,
            lambda t, x: t.repeat_interleave(x, 3),
            lambda x: jnp.repeat(x, 3),
        ),
        "flip": (vector, lambda t, x: t.flip(x, (0,)), jnp.flip),
        "roll": (vector, lambda t, x: t.roll(x, 3), lambda x: jnp.roll(x, 3)),
        "slice": (vector, _take_first, lambda x: x[: x.shape[0] // 2]),
        "diag_embed": (
            lambda count, draw: vector(math.isqrt(count), draw),
            lambda t, x: t.diag_embed(x),
            jnp.diag,
        ),
    },
    "indexing": {
        "index_select": (vector, _gather, lambda x: x[positions(x)]),
        "index_add": (
            vector,
            _scatter,
            lambda x: jnp.zeros_like(x).at[positions(x)].add(x[: x.shape[0] // 2]),
        ),
        "index_put": (
            vector,
            _index_put,
            lambda x: x.at[positions(x)].add(x[: x.shape[0] // 2]),
        ),
        "where": (vector, _selected, lambda x: jnp.where(x > 1.0, x, jnp.zeros_like(x))),
        "masked_fill": (
            vector,
            lambda t, x: t.masked_fill(x, x > 1.0, 0.0),
            lambda x: jnp.where(x > 1.0, 0.0, x),
        ),
    },
    "sorting": {
        "sort": (vector, lambda t, x: t.sort(x)[0], jnp.sort),
        "topk": (vector, lambda t, x: t.topk(x, 10)[0], lambda x: jax.lax.top_k(x, 10)[0]),
        "median": (
            wide,
            lambda t, x: t.median(x, 1)[0],
            lambda x: jnp.sort(x, 1)[:, x.shape[1] // 2],
        ),
        "kthvalue": (wide, lambda t, x: t.kthvalue(x, 1, 1)[0], lambda x: jnp.sort(x, 1)[:, 0]),
        "cummax": (vector, lambda t, x: t.cummax(x, 0)[0], jax.lax.cummax),
    },
    "linalg": {
        "cholesky": (definite, lambda t, x: t.linalg.cholesky(x), jnp.linalg.cholesky),
        "solve": (square, lambda t, x: t.linalg.solve(x, x.T), lambda x: jnp.linalg.solve(x, x.T)),
        "inv": (square, lambda t, x: t.linalg.inv(x), jnp.linalg.inv),
        "eigh": (
            definite,
            lambda t, x: t.linalg.eigh(x)[0],
            lambda x: jnp.linalg.eigh(x, symmetrize_input=False)[0],
        ),
        "solve_triangular": (
            square,
            lambda t, x: t.linalg.solve_triangular(x, x, upper=True),
            lambda x: jsl.solve_triangular(x, x),
        ),
    },
    "fft": {
        "rfft": (vector, lambda t, x: t.fft.rfft(x).abs(), lambda x: jnp.abs(jnp.fft.rfft(x))),
        "fft": (vector, lambda t, x: t.fft.fft(x).abs(), lambda x: jnp.abs(jnp.fft.fft(x))),
        "irfft": (vector, lambda t, x: t.fft.irfft(x), jnp.fft.irfft),
        "rfft2": (square, lambda t, x: t.fft.rfft2(x).abs(), lambda x: jnp.abs(jnp.fft.rfft2(x))),
        "fftn": (square, lambda t, x: t.fft.fftn(x).abs(), lambda x: jnp.abs(jnp.fft.fftn(x))),
    },
}


def compiled(function, array):
    """Value and gradient of a sum of CHAIN calls, as one program."""

    def step(x):
        x = x.detach().requires_grad_()
        loss = sum(function(jaxgrad, x * (1 + i / 100)).sum() for i in range(CHAIN))
        loss.backward()
        return loss.detach(), x.grad

    step, tensor = jaxgrad.jit(step), jaxgrad.tensor(array)
    return lambda: jax.block_until_ready(step(tensor)[1]._array)


def by_hand(function, array):
    def loss(x):
        return sum(function(x * (1 + i / 100)).sum() for i in range(CHAIN))

    step, array = jax.jit(jax.value_and_grad(loss)), jnp.asarray(array)
    return lambda: jax.block_until_ready(step(array))


def eager(module, function, array):
    """The operator and its backward pass, with ones for its gradient."""
    leaf = module.tensor(array, requires_grad=True)
    ones = module.ones_like(function(module, leaf).detach())

    def run():
        leaf.grad = None
        function(module, leaf).backward(ones)
        if module is jaxgrad:
            jax.block_until_ready(leaf.grad._array)

    return run


def measure(family, name, count, draw, function, plain):
    array = draw(count, np.random.default_rng(0)).astype(np.float32)
    functions = [compiled(function, array), by_hand(plain, array)]
    functions += [eager(m, function, array) for m in (jaxgrad, torch) if m is not None]
    ours, jax_time, ours_eager, *torch_eager = least_of(
        functions, rounds=3, repetitions=50, seconds=0.5
    )
    line = f"{name:<18}{array.size:>9}{ours:12.1f} us {ours / jax_time:6.2f} of jax.jit"
    line += f"{ours_eager:12.1f} us eager"
    if torch_eager:
        line += f" {ours_eager / torch_eager[0]:6.2f} of torch"
    print(line, flush=True)
    rows = {
        "Compiled, ten calls": {"jaxgrad": ours, "JAX by hand": jax_time},
        "Eager": dict(zip(("jaxgrad", "torch"), (ours_eager, *torch_eager), strict=False)),
    }
    for (title, row), base in zip(rows.items(), ("JAX by hand", "torch"), strict=True):
        chart = {f"{family}: {name}": row}
        figures.note("k", f"{title}, {count:,} elements", "us", base, chart)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e2, 1e4, 1e6])
    options = parser.parse_args()
    for family in options.families or FAMILIES:
        print(f"== {family}")
        for name, row in FAMILIES[family].items():
            for size in options.sizes:
                measure(family, name, int(size), *row)


if __name__ == "__main__":
    main()
