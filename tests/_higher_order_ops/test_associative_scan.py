"""`associative_scan`: functions of slices that are no pointwise ones, and errors."""

import pytest

import jaxgrad as torch
from jaxgrad._higher_order_ops import associative_scan

PAIRS = torch.arange(1.0, 9).reshape(4, 2)


def complex_product(a, b):
    return torch.stack([a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]])


@pytest.mark.parametrize("dim", [0, -2])
def test_the_function_gets_slices(dim):
    # (1 + 2i) (3 + 4i) ..., as PyTorch gives them in the mode "generic"
    products = associative_scan(complex_product, PAIRS, dim)
    assert products.tolist() == [[1, 2], [-5, 10], [-85, 20], [-755, -540]]
    columns = associative_scan(complex_product, PAIRS.t(), 1)
    assert columns.t().tolist() == products.tolist()


def test_gradient_of_products_of_matrices():
    x = torch.arange(1.0, 9).reshape(2, 2, 2).requires_grad_()
    product = associative_scan(lambda a, b: (b.T @ a.T).T, x, 0)[1]
    assert torch.equal(product, x[0] @ x[1])
    product.sum().backward()
    assert x.grad.tolist() == [[[11, 15], [11, 15]], [[4, 4], [6, 6]]]


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (ValueError, "Combine_fn must be a callable", (2, PAIRS, 0)),
        (ValueError, "Dim must be an int", (torch.add, PAIRS, 1.5)),
        (RuntimeError, "Reverse must be a bool", (torch.add, PAIRS, 0, 2)),
        (ValueError, "'dim' number of dimensions", (torch.add, PAIRS, 4)),
        (RuntimeError, "changes the structure", (lambda a, b: (a, b), PAIRS, 0)),
    ],
)
def test_errors(error, words, arguments):
    with pytest.raises(error, match=words):
        associative_scan(*arguments)
