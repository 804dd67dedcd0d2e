"""`svd_lowrank` and `pca_lowrank` beside NumPy's singular values."""

import numpy as np
import pytest

import jaxgrad as torch


def of_rank(rank, *shape, dtype=np.float64, seed=0):
    """Matrices of a rank, with singular values that are far apart."""
    generator = np.random.default_rng(seed)
    *batch, rows, columns = shape
    parts = [generator.standard_normal((*batch, n, rank)) for n in (rows, columns)]
    if np.dtype(dtype).kind == "c":
        parts = [part + 1j * generator.standard_normal(part.shape) for part in parts]
    left, right = (np.linalg.qr(part)[0] for part in parts)
    values = np.arange(rank, 0, -1.0)
    return ((left * values) @ right.conj().swapaxes(-1, -2)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(7, 5), (5, 7), (2, 6, 9)])
def test_singular_values(shape, dtype):
    array = of_rank(3, *shape, dtype=dtype)
    U, S, V = torch.svd_lowrank(torch.tensor(array), q=4)
    assert S.shape == (*shape[:-2], 4) and U.shape[-1] == V.shape[-1] == 4
    values = np.linalg.svd(array, compute_uv=False)[..., :4]
    np.testing.assert_allclose(S.numpy(), values, atol=1e-12)
    product = (U * S.unsqueeze(-2).to(U.dtype)) @ V.mH
    np.testing.assert_allclose(product.numpy(), array, atol=1e-12)
    for vectors in (U, V):
        unit = (vectors.mH @ vectors).numpy()
        np.testing.assert_allclose(unit, np.broadcast_to(np.eye(4), unit.shape), atol=1e-12)


def test_what_is_subtracted_and_sparse_matrices():
    array = of_rank(2, 6, 5)
    _, S, _ = torch.svd_lowrank(torch.tensor(array + 3.0), q=2, M=torch.full((1, 5), 3.0))
    np.testing.assert_allclose(S.numpy(), [2, 1], atol=1e-6)
    _, S, _ = torch.svd_lowrank(torch.tensor(array).to_sparse(), q=2)
    np.testing.assert_allclose(S.numpy(), [2, 1], atol=1e-12)
    assert torch.svd_lowrank(torch.ones(3, 4))[1].shape == (3,)


def test_the_gradient_of_the_sum_of_singular_values():
    """It is U @ V^T of the largest singular values."""
    array = of_rank(3, 6, 5)
    x = torch.tensor(array, requires_grad=True)
    torch.svd_lowrank(x, q=3)[1].sum().backward()
    left, _, right = np.linalg.svd(array)
    np.testing.assert_allclose(x.grad.numpy(), left[:, :3] @ right[:3], atol=1e-10)


def test_principal_components():
    array = np.random.default_rng(1).standard_normal((20, 4)) * [5.0, 2.0, 0.5, 0.1] + 7
    deviations = array - array.mean(0)
    _, values, directions = np.linalg.svd(deviations)
    _, S, V = torch.pca_lowrank(torch.tensor(array), q=2, niter=12)
    np.testing.assert_allclose(S.numpy(), values[:2], rtol=1e-10)
    np.testing.assert_allclose(np.abs(V.numpy().T), np.abs(directions[:2]), atol=1e-8)
    _, S, _ = torch.pca_lowrank(torch.tensor(array), center=False)
    np.testing.assert_allclose(S.numpy(), np.linalg.svd(array, compute_uv=False), rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: torch.pca_lowrank(x, q=9), r"q\(=9\) must be non-negative integer and not"),
        (lambda x: torch.svd_lowrank(x, q=-1), r"q\(=-1\) must be non-negative integer"),
        (lambda x: torch.svd_lowrank(x, niter=-1), r"niter\(=-1\) must be non-negative"),
        (lambda x: torch.svd_lowrank(x[0]), "A is a matrix"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.ones(3, 4))
