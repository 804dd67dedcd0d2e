"""Which functions jaxgrad finds to be linear, against mathematics."""

import jax
import jax.numpy as jnp
import pytest

from jaxgrad.autograd._function.linearity import is_linear

M = jnp.arange(9.0).reshape(3, 3)


def scanned(step):
    return lambda x: jax.lax.scan(step, jnp.zeros(()), x)[0]


LINEAR = {
    "identity": lambda x: x,
    "zero": lambda x: jnp.zeros(3),
    "nothing of it": lambda x: 0 * x,
    "sum": lambda x: x.sum() - x[0] + 2 * x[::-1],
    "product": lambda x: M @ x + jnp.sin(M) @ x,
    "quotient": lambda x: x / (1 + M),
    "where": lambda x: jnp.where(M > 3, x, 0.0),
    "where both": lambda x: jnp.where(M > 3, x, -x),
    "written to": lambda x: x.at[0].set(0.0).at[1].multiply(3.0),
    "added into zeros": lambda x: jnp.zeros(4).at[jnp.array([1, 1, 2])].add(x),
    "put into zeros": lambda x: jnp.zeros((2, 3)).at[1].set(x),
    "put together": lambda x: jnp.concatenate([x, jnp.zeros(2), 3 * x]),
    "padded": lambda x: jnp.pad(x, 2),
    "complex": lambda x: jnp.real(jax.lax.complex(x, 2 * x) * (1 + 2j)),
    "another dtype": lambda x: x.astype(jnp.float16),
    "inside of jit": jax.jit(lambda x: x * 2),
    "inside of checkpoint": jax.checkpoint(lambda x: x * 2),
    "a loop": scanned(lambda c, x: (2 * c + x, None)),
    "a branch": lambda x: jax.lax.cond(M[0, 1] > 0, lambda x: 2 * x, lambda x: 0 * x, x),
    "cumulative": jnp.cumsum,
    "transformed": lambda x: jnp.real(jnp.fft.fft(x)),
}

OTHER = {
    "plus one": lambda x: x + 1,
    "square": lambda x: x * x,
    "clamp": lambda x: jnp.clip(x, -1, 1),
    "sign": jnp.sign,
    "absolute": jnp.abs,
    "normed": lambda x: x / jnp.linalg.norm(x),
    "by itself": lambda x: x / x.sum(),
    "constant": lambda x: jnp.ones(3),
    "where itself": lambda x: jnp.where(x > 0, x, 0.0),
    "where else a constant": lambda x: jnp.where(M > 3, x, 1.0),
    "a constant written to it": lambda x: x.at[0].set(1.0),
    "added into ones": lambda x: jnp.ones(3).at[0].add(x[0]),
    "put beside ones": lambda x: jnp.concatenate([x, jnp.ones(2)]),
    "integers": lambda x: x.astype(jnp.int32).astype(jnp.float32),
    "its largest": lambda x: x.max(),
    "indexed by itself": lambda x: M[x.astype(jnp.int32)],
    "inside of jit": jax.jit(lambda x: x * x),
    "a loop": scanned(lambda c, x: (c * x + x, None)),
    "a loop from one": lambda x: jax.lax.scan(lambda c, x: (c + x, None), jnp.ones(()), x)[0],
    "a branch by itself": lambda x: jax.lax.cond(x[0] > 0, lambda x: x, lambda x: 2 * x, x),
    "a branch to a constant": lambda x: jax.lax.cond(M[0, 1] > 0, lambda x: x, jnp.ones_like, x),
    "one and one taken away": lambda x: (x + 1) - 1,
}


@pytest.mark.parametrize("name", LINEAR)
def test_functions_that_are_linear(name):
    assert is_linear(lambda x: (LINEAR[name](x),), jnp.zeros(3))


@pytest.mark.parametrize("name", OTHER)
def test_functions_that_are_not_linear(name):
    assert not is_linear(lambda x: (OTHER[name](x),), jnp.zeros(3))


def test_linearity_in_several_arguments():
    zeros = jnp.zeros(3), jnp.zeros(())
    assert is_linear(lambda x, y: (x + y, M @ x), *zeros)
    assert not is_linear(lambda x, y: (x, x * y), *zeros)
