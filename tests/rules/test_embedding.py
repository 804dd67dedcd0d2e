"""Embeddings and their bags: derivatives and errors that the samples leave open."""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad

ROWS, STARTS = jaxgrad.tensor([1, 3, 1, 0]), jaxgrad.tensor([0, 3, 3])


def table():
    generator = jaxgrad.Generator().manual_seed(2)
    return jaxgrad.randn(4, 2, dtype=jaxgrad.float64, generator=generator).requires_grad_()


@pytest.mark.slow
def test_renorm_has_the_derivative_of_renorm_on_the_rows_that_are_listed():
    # PyTorch has none
    def renormed(weight):
        return jaxgrad.ops.embedding_renorm_(weight.clone(), ROWS, 0.5, 2.0)

    weight = table()
    assert jaxgrad.autograd.gradcheck(renormed, (weight,))
    assert jaxgrad.autograd.gradgradcheck(renormed, (weight,))
    assert renormed(weight)[2].tolist() == weight[2].tolist()
    assert renormed(weight).renorm(2, 0, 0.5)[ROWS].allclose(renormed(weight)[ROWS])


@pytest.mark.slow
def test_scaled_gradients_have_the_second_derivative_of_the_first():
    # PyTorch's second derivative of embedding_dense_backward leaves the scale out
    grad = jaxgrad.ones(4, 2, dtype=jaxgrad.float64, requires_grad=True)

    def scaled(grad):
        return jaxgrad.ops.embedding_dense_backward(grad, ROWS, 4, 0, True)

    assert scaled(grad).tolist() == [[0, 0], [1, 1], [0, 0], [1, 1]]
    assert jaxgrad.autograd.gradcheck(scaled, (grad,))


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_embedding_bag_backward_is_linear_in_the_gradient(mode):
    _, bags, sizes, greatest = jaxgrad.ops._embedding_bag(table(), ROWS, STARTS, mode=mode)
    grad = jaxgrad.ones(3, 2, dtype=jaxgrad.float64, requires_grad=True)

    def backward(grad):
        options = (4, False, mode, False, None)
        return jaxgrad.ops._embedding_bag_backward(
            grad, ROWS, STARTS, bags, sizes, greatest, *options
        )

    assert jaxgrad.autograd.gradcheck(backward, (grad,))


@pytest.mark.slow
def test_indices_sizes_and_maxima_of_embedding_bag():
    _, bags, sizes, greatest = jaxgrad.embedding_bag(table().abs(), ROWS, STARTS, mode=2)
    assert bags.tolist() == [0, 0, 0, 2] and sizes.tolist() == [3, 0, 1]
    assert greatest.shape == (3, 2) and greatest[1:].tolist() == [[0, 0], [0, 0]]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_sparse_gradient_of_embedding_bag_is_the_dense_one(mode):
    gradients = []
    for sparse in (False, True):
        weight = table()
        output = jaxgrad.nn.functional.embedding_bag(ROWS, weight, STARTS, mode=mode, sparse=sparse)
        (output * output).sum().backward()
        gradients.append(weight.grad.to_dense() if sparse else weight.grad)
        assert sparse == (weight.grad.layout is jaxgrad.sparse_coo)
    assert gradients[0].allclose(gradients[1])


def test_an_index_out_of_range_gives_nan_under_a_trace():
    look_up = jaxgrad.jit(jaxgrad.nn.functional.embedding)
    assert look_up(jaxgrad.tensor([9]), table()).isnan().all()


@as_torch
def test_errors_of_embeddings(torch):
    F, weight = torch.nn.functional, torch.ones(4, 2, dtype=torch.float64)
    rows, starts = torch.tensor([1, 3, 1, 0]), torch.tensor([0, 3, 3])

    def bag(*args, **options):
        return F.embedding_bag(*args, **options)

    def factors(mode):
        return bag(rows, weight, starts, mode=mode, per_sample_weights=torch.ones(4))

    return [
        error(F.embedding, rows + 1, weight, words="index out of range in self"),
        error(F.embedding, rows.float(), weight, words="Expected tensor for argument #1 'indices'"),
        error(F.embedding, rows, torch.ones(4), words="'weight' must be 2-D"),
        error(F.embedding, rows, weight, 4, words="Padding_idx must be within num_embeddings"),
        error(bag, rows + 1, weight, starts, words="Expected idx >= 0 && idx < num_embeddings"),
        error(bag, rows, weight, starts + 1, words="offsets[0] has to be 0"),
        error(bag, rows, weight, starts * 3, words="offsets[-1] can not be greater"),
        error(bag, rows, weight, words="offsets has to be a 1D Tensor but got None"),
        error(bag, rows[None], weight, starts, words="if input is 2D, then offsets has"),
        error(bag, rows, weight.long(), starts, words="Expected tensor for argument #1 'weight'"),
        error(
            lambda: bag(rows, weight, starts, mode="no"), words="mode has to be one of sum, mean"
        ),
        error(factors, "mean", words="per_sample_weights is only supported for mode='sum'"),
    ]
