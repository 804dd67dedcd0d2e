"""`torch._linalg_utils` and `torch._lobpcg`."""

import pytest

import jaxgrad as torch
from jaxgrad import _linalg_utils as utils
from jaxgrad._lobpcg import lobpcg

MATRIX = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
VECTORS = torch.tensor([[1.0], [2.0]])


@pytest.mark.parametrize("matrix", [MATRIX, MATRIX.to_sparse()], ids=["dense", "sparse"])
def test_forms(matrix):
    assert utils.matmul(matrix, VECTORS).tolist() == [[4], [6]]
    assert utils.qform(matrix, VECTORS).tolist() == [[16]]
    assert utils.bform(VECTORS, matrix, torch.eye(2)).tolist() == [[2, 7]]
    assert utils.is_sparse(matrix) is (matrix is not MATRIX)


def test_none_is_the_identity():
    assert utils.matmul(None, VECTORS) is VECTORS
    assert utils.qform(None, VECTORS).tolist() == [[5]]


def test_basis_is_orthonormal():
    basis = utils.basis(torch.tensor([[3.0], [4.0]]))
    torch.testing.assert_close(basis.abs(), torch.tensor([[0.6], [0.8]]))


def test_floating_dtype():
    assert utils.get_floating_dtype(MATRIX.double()) is torch.float64
    assert utils.get_floating_dtype(MATRIX.int()) is torch.float32
    with pytest.raises(TypeError, match="expected Tensor"):
        utils.is_sparse(2)


def test_lobpcg_is_that_of_torch():
    assert lobpcg is torch.lobpcg
