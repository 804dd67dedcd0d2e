"""Products that are composed of others."""

import pytest
from helpers.pytorch_answers import check_refusal, refusals

import jaxgrad

REFUSED = [
    (
        "torch.tensordot(zeros(2), zeros(3), ([0], [0]))",
        RuntimeError,
        "contracted dimensions need to match, but first has size 2 in dim 0 and second has size 3",
    ),
    (
        "torch.linalg.multi_dot([zeros(2, 3), zeros(2, 3)])",
        RuntimeError,
        "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied",
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


def test_chain_matmul_is_deprecated():
    x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.warns(UserWarning, match="chain_matmul is deprecated"):
        product = jaxgrad.chain_matmul(x, x, x)
    assert (product == x @ x @ x).all()


def test_out_of_norms_and_products():
    x, out = jaxgrad.tensor([3.0, 4.0]), jaxgrad.empty(())
    assert jaxgrad.norm(x, out=out) is out and out.item() == 5
    assert jaxgrad.linalg.vector_norm(x, 1, out=out) is out and out.item() == 7
    target = jaxgrad.empty(2, 2)
    assert jaxgrad.tensordot(x, x, 0, out=target)[1, 1].item() == 16
