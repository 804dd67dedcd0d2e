"""Distances: errors, edges, and derivatives where points are equal."""

import pytest
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    ("torch.dist(tensor([1]), tensor([2]))", RuntimeError, "norm(): input dtype should be either"),
    (
        "torch.cdist(zeros(2, 3), zeros(2, 2))",
        RuntimeError,
        "X1 and X2 must have the same number of columns. X1: 3 X2: 2",
    ),
    ("torch.cdist(zeros(2), zeros(2))", RuntimeError, "cdist only supports at least 2D tensors"),
    ("torch.pdist(zeros(2))", RuntimeError, "pdist only supports 2D tensors, got: 1D"),
]

ANSWERS = [
    ("torch.pdist(zeros(1, 2))", "float32", []),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.slow
def test_second_derivative_of_distances_of_equal_rows_is_finite():
    x = jaxgrad.tensor([[1.0, 2.0], [1.0, 2.0]], requires_grad=True)
    for distances in (jaxgrad.pdist(x), jaxgrad.cdist(x, x), ops._euclidean_dist(x, x)):
        (first,) = jaxgrad.autograd.grad(distances.sum(), x, create_graph=True)
        (second,) = jaxgrad.autograd.grad(first.square().sum(), x)
        assert first.tolist() == second.tolist() == [[0, 0], [0, 0]]


def test_distances_of_torch_and_nn_functional_are_the_same_functions():
    for name in ("bilinear", "cosine_similarity", "pairwise_distance", "pdist"):
        assert getattr(jaxgrad, name) is getattr(jaxgrad.nn.functional, name)
