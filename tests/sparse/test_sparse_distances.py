"""Distances, sums to a size, flattening of one dimension, adjoints and copies of parts: dense
tensors are the oracle.
"""

import numpy as np
import pytest

import jaxgrad as torch

ONE = np.array([[1.0, 0.0, 2.0], [0.0, -3.0, 0.5]])
TWO = np.array([[0.0, 0.0, 1.5], [4.0, 1.0, 0.0]])


def sparse(array, layout="coo"):
    block = ((1, 3),) if layout.startswith("bs") else ()
    return getattr(torch.tensor(array), f"to_sparse_{layout}")(*block)


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, float("inf")])
def test_distances(p):
    expected = np.linalg.norm((ONE - TWO).ravel(), p) if p >= 1 or p == 0 else None
    if p == 0.5:
        expected = (abs(ONE - TWO) ** 0.5).sum() ** 2
    for one in (sparse(ONE), torch.tensor(ONE)):
        np.testing.assert_allclose(torch.dist(one, sparse(TWO), p).item(), expected)


def test_gradients_of_distances_lie_on_the_pattern():
    x = sparse(ONE).requires_grad_()
    torch.dist(x, sparse(TWO)).backward()
    expected = (ONE - TWO) / np.linalg.norm(ONE - TWO) * (ONE != 0)
    np.testing.assert_allclose(x.grad.to_dense().numpy(), expected)


def test_absolute_differences():
    x = sparse(ONE).requires_grad_()
    loss = torch.nn.functional.l1_loss
    result = loss(x, sparse(TWO), reduction="none").to_dense().detach()
    np.testing.assert_allclose(result, abs(ONE - TWO))
    total = loss(x, sparse(TWO), reduction="sum")
    total.backward()
    np.testing.assert_allclose(total.item(), abs(ONE - TWO).sum())
    np.testing.assert_allclose(x.grad.to_dense(), np.sign(ONE - TWO) * (ONE != 0))
    np.testing.assert_allclose(loss(torch.tensor(ONE), x.detach()).item(), 0)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sums_to_a_size(layout):
    x = sparse(ONE, layout)
    for size in ((2, 3), (1, 3), (2, 1), (1, 1)):
        axes = tuple(i for i, extent in enumerate(size) if extent == 1)
        result = x.sum_to_size(*size).to_dense()
        np.testing.assert_allclose(result, ONE.sum(axes, keepdims=True))
    assert x.sum_to_size(()).item() == ONE.sum()
    with pytest.raises(RuntimeError, match="not expandable"):
        x.sum_to_size(2, 2)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_one_dimension_is_flattened_to_itself(layout):
    x = sparse(ONE, layout)
    for dims in ((1,), (-1,), (0, 0), (1, 1)):
        result = torch.flatten(x, *dims)
        assert result.layout is x.layout and result.to_dense().tolist() == ONE.tolist()
    with pytest.raises(RuntimeError):
        x.flatten()


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_adjoints(layout):
    z = ONE * (1 + 2j)
    for result in (torch.adjoint(sparse(z, layout)), sparse(z, layout).mH):
        np.testing.assert_allclose(result.to_dense().numpy(), z.conj().T)
    values = torch.svd_lowrank(sparse(ONE, layout), 2)[1]
    np.testing.assert_allclose(values, np.linalg.svd(ONE)[1])


def test_copies_of_parts():
    x = sparse(ONE, "csr")
    for name in ("values", "crow_indices", "col_indices"):
        copy = getattr(torch, f"{name}_copy")(x)
        assert copy.tolist() == getattr(x, name)().tolist()
        assert getattr(torch.ops.aten, f"{name}_copy")(x).tolist() == copy.tolist()
        assert copy.data_ptr() != getattr(x, name)().data_ptr()
    with pytest.raises(RuntimeError):
        torch.ccol_indices_copy(x)
    y = torch.zeros(4, 4).to_sparse()
    assert torch.resize_as_sparse_(y, sparse(ONE)) is y and y.shape == (2, 3)
