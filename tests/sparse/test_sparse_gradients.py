"""Gradients of sparse tensors lie on their patterns; sparse gradients of dense leaves."""

import numpy
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad
import jaxgrad.autograd.forward_ad as fwAD
from jaxgrad.func import hessian


def leaf(torch, dtype="float64"):
    """A coalesced 2 x 3 leaf with three elements."""
    indices = torch.tensor([[0, 1, 1], [2, 0, 2]])
    values = torch.tensor([3.0, 4.0, 5.0], dtype=getattr(torch, dtype))
    return torch.sparse_coo_tensor(indices, values, (2, 3)).coalesce().requires_grad_()


def pair(tensor):
    return [tensor._indices(), tensor._values(), list(tensor.shape), tensor.is_coalesced()]


def matrix(torch):
    return torch.arange(1.0, 13.0, dtype=torch.float64).reshape(3, 4)


@pytest.mark.slow
@as_torch
def test_the_gradient_of_a_sparse_leaf_lies_on_its_pattern(torch):
    d, gradients = matrix(torch), []
    for compute in (
        lambda x: torch.sparse.mm(x, d),
        lambda x: x @ d,
        lambda x: torch.mv(x, d[:, 0]),
        lambda x: torch.addmm(d[:2], x, d, alpha=3),
        lambda x: x.to_dense(),
        lambda x: torch.sparse.sum(x * 2, 0).to_dense(),
        lambda x: torch.sparse.sum(x) ** 2,
        lambda x: (x + x).to_dense(),
        lambda x: x.values() * 2,
        lambda x: (-x).t().to_dense(),
        lambda x: x.relu().to_dense(),
        lambda x: torch.sparse.softmax(x, 1).to_dense(),
        lambda x: d.t() @ x.t(),
        lambda x: torch.sparse.mm(x, x.t()).to_dense(),
    ):
        x = leaf(torch)
        (compute(x) ** 2).sum().backward()
        # PyTorch has gradients of other elements for some operators
        pattern = x.detach().to_dense() != 0
        gradients.append(x.grad.to_dense() * pattern)
        (again,) = torch.autograd.grad((compute(x) ** 2).sum(), x)
        gradients.append(again.to_dense() * pattern)
        if torch is jaxgrad:
            assert x.grad.indices().tolist() == again.indices().tolist() == [[0, 1, 1], [2, 0, 2]]
    return gradients


@pytest.mark.slow
@as_torch
def test_the_gradient_of_the_other_operand(torch):
    d, gradients = matrix(torch).requires_grad_(), []
    x, total = leaf(torch), torch.ones(2, 4, dtype=torch.float64, requires_grad=True)
    for result in (
        torch.sparse.mm(x, d),
        x @ d,
        torch.sparse.addmm(total, x, d, beta=2, alpha=3),
        d[:2, :3].sparse_mask(x.detach()).to_dense(),
        d[:2, :3] + x,
        d.to_sparse().to_dense(),
        (d * (d > 3)).to_sparse().to_dense(),
        torch.mv(x, d[:, 0]),
        d[:2].to_sparse(1).to_dense(),
    ):
        gradients.append(torch.autograd.grad((result**2).sum(), d)[0])
    torch.sparse.addmm(total, x, d, beta=2).sum().backward()
    return [*gradients, total.grad]


@pytest.mark.slow
@as_torch("""
    tensor([22.0, 10.0, 22.0])
    'SparseCooTensorWithDimsAndTensorsBackward0'
    False
""")
def test_the_gradient_of_values_that_a_sparse_tensor_is_made_of(torch):
    values = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    x = torch.sparse_coo_tensor([[1, 0, 1], [0, 2, 0]], values, (2, 3))
    (x.coalesce().values() ** 2).sum().backward(retain_graph=True)
    (x.to_dense() ** 2).sum().backward(retain_graph=True)
    torch.sparse.mm(x, torch.ones(3, 2)).sum().backward()
    return [values.grad, x.grad_fn.name(), x.is_leaf]


@pytest.mark.slow
@as_torch("""
    tensor([[0.0, 0.0, 4.0], [10.0, 0.0, 0.0]])
    tensor([[0.0, 0.0, 8.0], [20.0, 0.0, 0.0]])
""")
def test_elements_at_one_index_share_a_gradient(torch):
    x = torch.sparse_coo_tensor([[1, 0, 1], [0, 2, 0]], [1.0, 2.0, 4.0], (2, 3)).requires_grad_()
    (x.to_dense() ** 2).sum().backward()
    first = x.grad.to_dense()
    x.grad = None
    (torch.sparse.mm(x, torch.ones(3, 2)) ** 2).sum().backward()
    return [first, x.grad.to_dense()]


@pytest.mark.slow
@as_torch
def test_gradients_of_complex_sparse_tensors(torch):
    values = torch.tensor([1 + 2j, 3 - 1j, 2j], dtype=torch.complex128, requires_grad=True)
    d = (matrix(torch) * (1 + 1j)).requires_grad_()
    x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3))
    torch.sparse.mm(x, d).abs().sum().backward()
    return [values.grad, d.grad]


@as_torch("""
    tensor([[0.0, 0.0, 9.0], [12.0, 0.0, 15.0]], dtype=float64)
    'RuntimeError'
""")
def test_backward_from_a_sparse_tensor(torch):
    x = leaf(torch)
    y = x * 3
    y.backward(x.detach())
    refused = error(lambda: (x * 3).backward())
    refused["says"] = refused["says"].split(" for")[0] + " for scalar outputs"
    return [x.grad.to_dense(), refused["error"]]


@as_torch("""
    [tensor([[0.0, 0.0, 24.0], [32.0, 0.0, 40.0]], dtype=float64)]
    tensor([[0.0, 0.0, 240.0], [320.0, 0.0, 400.0]], dtype=float64)
    tensor([[0.0, 0.0, 12.0], [16.0, 0.0, 20.0]], dtype=float64)
    True
""")
def test_hooks_get_sparse_gradients(torch):
    x, seen = leaf(torch), []
    x.register_hook(lambda gradient: seen.append(gradient.to_dense()))
    x.register_hook(lambda gradient: gradient * 10)
    y = x * 2
    y.retain_grad()
    (y.to_dense() ** 2).sum().backward()
    return [seen, x.grad.to_dense(), y.grad.to_dense(), x.grad.is_sparse]


@pytest.mark.slow
@as_torch
def test_embeddings_have_sparse_gradients(torch):
    embedding, gradients = torch.nn.functional.embedding, []
    ids, more = torch.tensor([[1, 3], [1, 0]]), torch.tensor([2])
    table = torch.arange(12.0).reshape(4, 3).requires_grad_()
    for options in ({}, {"padding_idx": 1}, {"padding_idx": -1}):
        table.grad = None
        (embedding(ids, table, sparse=True, **options) ** 2).sum().backward()
        gradients.append(pair(table.grad))
    embedding(more, table, sparse=True).sum().backward()
    gradients.append(pair(table.grad.coalesce()))
    table.grad = torch.ones(4, 3)
    embedding(more, table, sparse=True).sum().backward()
    gradients.append(table.grad)
    table.grad = None
    (embedding(more, table, sparse=True).sum() + (table**2).sum()).backward()
    gradients.append(table.grad)
    (gradient,) = torch.autograd.grad(embedding(ids, table, sparse=True).sum(), table)
    layer = torch.nn.Embedding(4, 3, sparse=True, _weight=table.detach())
    layer(ids).sum().backward()
    return [*gradients, pair(gradient), pair(layer.weight.grad)]


@pytest.mark.slow
@as_torch("""
    [tensor([[0, 0, 1], [0, 2, 1]]), tensor([0.0, 4.0, 16.0]), [4, 3], True]
    [tensor([[0, 3, 3], [1, 0, 2]]), tensor([2.0, 18.0, 22.0]), [4, 3], True]
    [tensor([[0], [2]]), tensor([4.0]), [4, 3], True]
""")
def test_gather_has_sparse_gradients(torch):
    x = torch.arange(12.0).reshape(4, 3).requires_grad_()
    gradients = []
    for dim, index in ((1, [[0, 2], [1, 1]]), (0, [[3, 0, 3]]), (-1, [[2]])):
        x.grad = None
        (torch.gather(x, dim, torch.tensor(index), sparse_grad=True) ** 2).sum().backward()
        gradients.append(pair(x.grad.coalesce()))
    return gradients


@as_torch("""
    True
    tensor([[0.0, 0.0, 0.0], [4.0, 4.0, 4.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
""")
def test_hooks_of_a_dense_leaf_get_its_sparse_gradient(torch):
    table = torch.arange(12.0).reshape(4, 3).requires_grad_()
    table.register_hook(lambda gradient: gradient * 2)
    torch.nn.functional.embedding(torch.tensor([1, 1]), table, sparse=True).sum().backward()
    return [table.grad.is_sparse, table.grad.to_dense()]


def test_a_sparse_gradient_becomes_dense_below_the_leaf():
    table = jaxgrad.arange(12.0).reshape(4, 3).requires_grad_()
    rows = jaxgrad.nn.functional.embedding(jaxgrad.tensor([1, 1]), table * 2, sparse=True)
    rows.sum().backward()
    assert not table.grad.is_sparse
    assert table.grad.tolist() == [[0, 0, 0], [4, 4, 4], [0, 0, 0], [0, 0, 0]]


def test_a_sparse_gradient_is_freed_with_the_graph():
    table = jaxgrad.ones(4, 3, requires_grad=True)
    rows = jaxgrad.nn.functional.embedding(jaxgrad.tensor([1, 1]), table, sparse=True)
    total = rows.sum()
    total.backward(retain_graph=True)
    total.backward()
    assert table.grad.to_dense()[1].tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="second time"):
        total.backward()


@pytest.mark.slow
def test_sparse_gradients_can_be_differentiated():
    table = jaxgrad.arange(12.0).reshape(4, 3).requires_grad_()
    rows = jaxgrad.nn.functional.embedding(jaxgrad.tensor([1, 3, 1]), table, sparse=True)
    (gradient,) = jaxgrad.autograd.grad((rows**3).sum(), table, create_graph=True)
    (second,) = jaxgrad.autograd.grad(jaxgrad.sparse.sum(gradient), table)
    counts = jaxgrad.tensor([0.0, 2.0, 0.0, 1.0]).unsqueeze(1)
    assert (second.to_dense() - 6 * counts * table).abs().max() == 0


def dense_twin(values, d):
    """The cube of a product with the matrix that has the values of `leaf`, dense."""
    zero = jaxgrad.zeros((), dtype=values.dtype)
    rows = [jaxgrad.stack([zero, zero, values[0]]), jaxgrad.stack([values[1], zero, values[2]])]
    return (jaxgrad.stack(rows) @ d).pow(3).sum()


def sparse_twin(values, d):
    x = jaxgrad.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3))
    return (jaxgrad.sparse.mm(x, d)).pow(3).sum()


@pytest.mark.slow
def test_second_derivatives_are_those_of_the_dense_twin():
    values, d = leaf(jaxgrad).detach()._values(), matrix(jaxgrad)
    for argnums in (0, 1):
        result = hessian(sparse_twin, argnums)(values, d)
        wanted = hessian(dense_twin, argnums)(values, d)
        numpy.testing.assert_allclose(result.numpy(), wanted.numpy(), rtol=1e-12)
    x = leaf(jaxgrad)
    (first,) = jaxgrad.autograd.grad((x @ d).pow(3).sum(), x, create_graph=True)
    (second,) = jaxgrad.autograd.grad(jaxgrad.sparse.sum(first), x)
    wanted = hessian(dense_twin, 0)(values, d).sum(0)
    numpy.testing.assert_allclose(second.values().numpy(), wanted.numpy(), rtol=1e-12)


@pytest.mark.slow
def test_tangents_of_sparse_tensors():
    d, x = matrix(jaxgrad), leaf(jaxgrad).detach()
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, x * 2)
        y = (dual @ d).pow(3).sum()
        assert fwAD.unpack_dual(y).tangent.item() == pytest.approx(6 * (x @ d).pow(3).sum().item())
        parts = fwAD.unpack_dual(dual)
        assert parts.tangent.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
        assert fwAD.unpack_dual(parts.primal).tangent is None
        tensor = jaxgrad.sparse_coo_tensor(x._indices(), fwAD.make_dual(x._values(), x._values()))
        assert fwAD.unpack_dual(tensor).tangent.is_sparse
        required = leaf(jaxgrad)
        dual = fwAD.make_dual(required, x)
        (gradient,) = jaxgrad.autograd.grad((dual @ d).pow(3).sum(), required)
        assert fwAD.unpack_dual(gradient).tangent.is_sparse


@pytest.mark.slow
def test_gradcheck_of_sparse_products():
    values, d = leaf(jaxgrad).detach()._values().requires_grad_(), matrix(jaxgrad).requires_grad_()
    assert jaxgrad.autograd.gradcheck(sparse_twin, (values, d))
    assert jaxgrad.autograd.gradgradcheck(sparse_twin, (values, d))


def test_what_would_lose_a_gradient_is_refused():
    class Doubled(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    x = leaf(jaxgrad)
    with pytest.raises(NotImplementedError, match="Doubled"):
        Doubled.apply(x)
    x.to_dense().sum().backward()
    with pytest.raises(RuntimeError, match="pattern"):
        x.grad.add_(jaxgrad.ones(2, 3, dtype=jaxgrad.float64).to_sparse())
    with jaxgrad.no_grad(), pytest.raises(RuntimeError, match="pattern"):
        x.add_(jaxgrad.ones(2, 3, dtype=jaxgrad.float64).to_sparse())
    with pytest.raises(RuntimeError, match="sparse"):
        x.grad = jaxgrad.ones(2, 3, dtype=jaxgrad.float64)
    x.grad.mul_(3)
    assert x.grad.values().tolist() == [3, 3, 3]
    x.grad.zero_()
    assert x.grad.values().tolist() == [0, 0, 0]


@pytest.mark.slow
def test_a_function_takes_sparse_constants():
    class Product(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, d):
            ctx.save_for_backward(x)
            return jaxgrad.sparse.mm(x, d)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return None, jaxgrad.sparse.mm(x.t(), gradient)

    x, d = leaf(jaxgrad).detach(), matrix(jaxgrad).requires_grad_()
    Product.apply(x, d).sum().backward()
    assert (d.grad == x.to_dense().sum(0).unsqueeze(1)).all()
