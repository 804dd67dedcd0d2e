"""Calls with numbers before tensors, as old programs write them, against NumPy."""

import numpy as np
import pytest

import jaxgrad

X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[3.0, -1.0], [0.5, 2.0]])
V = np.array([2.0, -3.0])
BATCH = np.stack([X, Y])

# name: positional arguments of the function, those of the method, and the answer
CASES = {
    "add": ((X, 2, Y), (X, 2, Y), X + 2 * Y),
    "sub": ((X, 2, Y), (X, 2, Y), X - 2 * Y),
    "addcmul": ((X, 2, Y, X), (X, 2, Y, X), X + 2 * Y * X),
    "addcdiv": ((X, -2, Y, X), (X, -2, Y, X), X - 2 * Y / X),
    "addmm": ((0.5, X, 2, X, Y), (X, 0.5, 2, X, Y), 0.5 * X + 2 * X @ Y),
    "addmv": ((0.5, V, 2, X, V), (V, 0.5, 2, X, V), 0.5 * V + 2 * X @ V),
    "addr": ((0.5, X, 2, V, V), (X, 0.5, 2, V, V), 0.5 * X + 2 * np.outer(V, V)),
    "baddbmm": (
        (0.5, BATCH, 2, BATCH, BATCH),
        (BATCH, 0.5, 2, BATCH, BATCH),
        0.5 * BATCH + 2 * BATCH @ BATCH,
    ),
    "addbmm": (
        (0.5, X, 2, BATCH, BATCH),
        (X, 0.5, 2, BATCH, BATCH),
        0.5 * X + 2 * (BATCH @ BATCH).sum(0),
    ),
}


def tensors(arguments):
    """The arguments with tensors in place of the arrays."""
    return [jaxgrad.tensor(a) if isinstance(a, np.ndarray) else a for a in arguments]


@pytest.mark.parametrize("name", CASES)
def test_numbers_before_tensors(name):
    of_function, of_method, answer = CASES[name]
    with pytest.warns(UserWarning, match=rf"This overload of {name} is deprecated"):
        result = getattr(jaxgrad, name)(*tensors(of_function))
    assert result.numpy() == pytest.approx(answer, 1e-13)
    target, *others = tensors(of_method)
    with pytest.warns(UserWarning, match=rf"This overload of {name}_ is deprecated"):
        written = getattr(target, f"{name}_")(*others)
    assert written is target and target.numpy() == pytest.approx(answer, 1e-13)


@pytest.mark.filterwarnings("ignore:.*is deprecated")
def test_beta_alone_and_gradients():
    target = jaxgrad.tensor(X, requires_grad=True)
    result = jaxgrad.addmm(0.5, target, jaxgrad.tensor(X), jaxgrad.tensor(Y))
    result.sum().backward()
    assert result.detach().numpy() == pytest.approx(0.5 * X + X @ Y, 1e-13)
    assert (target.grad == 0.5).all()


@pytest.mark.parametrize("arguments", [(2, X, Y), (X, Y, 2), (X, 2, 3, Y)])
def test_other_orders_are_refused(arguments):
    with pytest.raises(TypeError, match=r"invalid combination|positional"):
        jaxgrad.add(*tensors(arguments))


def test_numbers_before_sparse_matrices():
    eye = jaxgrad.eye(2, dtype=jaxgrad.float64).to_sparse()
    with pytest.warns(UserWarning, match="This overload of sspaddmm is deprecated"):
        result = jaxgrad.sspaddmm(2, eye, 3, eye, jaxgrad.tensor(Y))
    assert result.to_dense().numpy() == pytest.approx(2 * np.eye(2) + 3 * Y)
    with pytest.warns(UserWarning, match="deprecated"):
        assert (
            eye.sspaddmm(2, eye, jaxgrad.tensor(Y)).to_dense().numpy() == 2 * np.eye(2) + Y
        ).all()
