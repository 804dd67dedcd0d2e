"""Arguments that no overload takes; the types of the errors are PyTorch's."""

import pytest

import jaxgrad as torch

X = torch.ones(2, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.cumsum(2**70),
        lambda: X.chunk(2**70),
        lambda: torch.max(X, -(2**63) - 1),
        lambda: torch.sum(X, (2**70,)),
    ],
)
def test_an_int_has_64_bits(call):
    with pytest.raises(ValueError, match=r"Overflow when unpacking long long: .* argument '"):
        call()


def test_a_vector_is_no_int():
    assert X.cumsum(torch.tensor(1)).tolist() == [[1, 2, 3]] * 2
    for dim in (torch.tensor([1]), torch.tensor([[1]])):
        with pytest.raises(TypeError, match=r"argument 'dim'.* must be int, not Tensor"):
            X.cumsum(dim)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.cov(X, fweights="a"), r"'fweights' must be Tensor, not str"),
        (lambda: torch.cartesian_prod(X[0], 1.5), r"expected Tensor as element 1 .* got float"),
        (lambda: X.sum_to_size(1.5, 3), "takes an iterable of 'int'"),
    ],
)
def test_types_of_composed_functions(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_a_bool_is_a_float():
    assert torch.dist(X, torch.zeros(2, 3), True).item() == 6  # of p=1, and not of p=2
    assert torch.linalg.pinv(torch.eye(2), True).tolist() == [[0, 0], [0, 0]]  # of rcond=1
    with pytest.raises(TypeError, match="must be float, not str"):
        torch.dist(X, X, "1")
