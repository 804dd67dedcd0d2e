"""Sparse tensors under jit, and the steps of optimizers for sparse gradients."""

import numpy
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad
from jaxgrad.nn.functional import embedding

INDICES = [[0, 1, 1], [2, 0, 2]]


def adjacency(**options):
    return jaxgrad.sparse_coo_tensor(INDICES, [3.0, 4.0, 5.0], (2, 3), **options).coalesce()


def descended(torch, optimizer, **options):
    """A table after three steps on lookups, one of them of a row twice."""
    table = torch.arange(12.0, dtype=torch.float64).reshape(4, 3).requires_grad_()
    run = getattr(torch.optim, optimizer)([table], **options)
    for ids in ([1, 3, 1], [0, 3], [1, 1]):
        run.zero_grad()
        rows = torch.nn.functional.embedding(torch.tensor(ids), table, sparse=True)
        (rows**2).sum().backward()
        run.step()
    return table


@pytest.mark.slow
@as_torch(precision=1e-12)
def test_optimizers_step_on_sparse_gradients(torch):
    return [
        descended(torch, "SGD", lr=0.1),
        descended(torch, "SGD", lr=0.1, maximize=True),
        descended(torch, "SGD", lr=0.1, momentum=0.9),
        descended(torch, "Adagrad", lr=0.1),
        descended(torch, "Adagrad", lr=0.1, lr_decay=0.1, initial_accumulator_value=0.1),
        descended(torch, "SparseAdam", lr=0.1),
        descended(torch, "SparseAdam", lr=0.1, betas=(0.5, 0.9), maximize=True),
    ]


@as_torch("""
    RuntimeError('Adam does not support sparse gradients, please consider SparseAdam instead')
    RuntimeError('RMSprop does not support sparse gradients')
    RuntimeError('weight_decay option is not compatible with sparse gradients')
    RuntimeError('SparseAdam does not support dense gradients, please consider Adam instead')
""")
def test_optimizers_that_refuse_sparse_gradients(torch):
    dense = torch.ones(2, requires_grad=True)
    sparse_adam = torch.optim.SparseAdam([dense])
    dense.sum().backward()
    return [
        error(descended, torch, "Adam"),
        error(descended, torch, "RMSprop"),
        error(lambda: descended(torch, "Adagrad", weight_decay=0.1)),
        error(sparse_adam.step),
    ]


def test_weight_decay_makes_a_sparse_gradient_dense():
    table = jaxgrad.ones(2, 1, requires_grad=True)
    optimizer = jaxgrad.optim.SGD([table], lr=0.5, weight_decay=1.0)
    embedding(jaxgrad.tensor([1]), table, sparse=True).sum().backward()
    optimizer.step()
    assert table.tolist() == [[0.5], [0.0]]


def trained(name, compiled, **options):
    table = jaxgrad.arange(12.0).reshape(4, 3).requires_grad_()
    optimizer = getattr(jaxgrad.optim, name)([table], **options)

    def step(ids):
        optimizer.zero_grad()
        loss = (embedding(ids, table, sparse=True) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    step = jaxgrad.jit(step) if compiled else step
    losses = [step(jaxgrad.tensor(ids)).item() for ids in ([1, 3, 1], [0, 2, 0], [3, 3, 3])]
    return losses, table, step


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_a_compiled_step_is_the_uncompiled_one(name):
    losses, table, step = trained(name, True, lr=0.1)
    wanted_losses, wanted, _ = trained(name, False, lr=0.1)
    numpy.testing.assert_allclose(losses, wanted_losses, rtol=1e-5)
    numpy.testing.assert_allclose(table.detach().numpy(), wanted.detach().numpy(), rtol=1e-5)
    assert table.grad.is_sparse and table.grad.shape == (4, 3)
    assert (table.grad.to_dense() - wanted.grad.to_dense()).abs().max() < 1e-4
    assert len(step.traces) == 1


def test_a_compiled_step_has_no_dense_gradient():
    table = jaxgrad.zeros(1000, 3, requires_grad=True)
    optimizer = jaxgrad.optim.SGD([table], lr=0.1)

    @jaxgrad.jit
    def step(ids):
        optimizer.zero_grad()
        embedding(ids, table, sparse=True).sum().backward()
        optimizer.step()

    text = step.lower(jaxgrad.tensor([1, 2])).as_text()
    assert text.count('"stablehlo.scatter"(') == 1
    whole = [line for line in text.splitlines() if "-> tensor<1000x3x" in line or "= " in line]
    dense = ("multiply", "subtract", "broadcast_in_dim")
    assert not [line for line in whole if "1000x3x" in line and any(op in line for op in dense)]


def test_gradients_accumulate_in_compiled_functions():
    table = jaxgrad.arange(12.0).reshape(4, 3).requires_grad_()

    @jaxgrad.jit
    def accumulate(ids):
        embedding(ids, table, sparse=True).sum().backward()

    for _ in range(3):
        accumulate(jaxgrad.tensor([1, 1]))
    assert table.grad.to_dense().tolist() == [[0, 0, 0], [6, 6, 6], [0, 0, 0], [0, 0, 0]]


@pytest.mark.slow
def test_sparse_arguments_results_and_closures_of_compiled_functions():
    x, d = adjacency(), jaxgrad.arange(12.0).reshape(3, 4)
    product = jaxgrad.jit(lambda a, d: a @ d)
    assert (product(x, d) == x @ d).all() and (product(x * 2, d) == 2 * (x @ d)).all()
    assert len(product.traces) == 1
    doubled = jaxgrad.jit(lambda a: a * 2)(x)
    assert doubled.is_sparse and doubled.is_coalesced()
    assert doubled.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    closed = jaxgrad.jit(lambda d: (x @ d).sum())
    assert closed(d) == (x @ d).sum() and closed(d + 1) == (x @ (d + 1)).sum()
    assert len(closed.traces) == 1
    built = jaxgrad.jit(lambda i, v: jaxgrad.sparse_coo_tensor(i, v, (2, 3)).to_dense())
    assert (built(x.indices(), x.values()) == x.to_dense()).all()


@pytest.mark.slow
def test_gradients_through_a_compiled_function_lie_on_the_pattern():
    d = jaxgrad.arange(12.0).reshape(3, 4)
    outside, inside = adjacency().requires_grad_(), adjacency().requires_grad_()

    @jaxgrad.jit
    def step():
        inside.grad = None
        (inside @ d).pow(2).sum().backward()

    jaxgrad.jit(lambda a: (a @ d).pow(2).sum())(outside).backward()
    step()
    step()
    wanted = adjacency().requires_grad_()
    (wanted @ d).pow(2).sum().backward()
    assert (outside.grad.values() == wanted.grad.values()).all()
    assert (inside.grad.values() == wanted.grad.values()).all()


@pytest.mark.slow
def test_a_trace_keeps_the_number_of_elements():
    u = jaxgrad.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2))
    compiled = [
        lambda a: (a + a * 2).to_dense(),
        lambda a: (a + a.t()).to_dense(),
        lambda a: jaxgrad.sparse.sum(a, 0).to_dense(),
        lambda a: a @ a.to_dense(),
        lambda a: jaxgrad.sparse.sum(a),
    ]
    for function in compiled:
        assert (jaxgrad.jit(function)(u) == function(u)).all()
    x = adjacency()
    softmax = jaxgrad.jit(lambda a: jaxgrad.sparse.softmax(a, 1).to_dense())
    assert (softmax(x) - jaxgrad.sparse.softmax(x, 1).to_dense()).abs().max() < 1e-6
    assert jaxgrad.jit(lambda a: a.coalesce())(u).values().tolist() == [3, 3]
    with pytest.raises(RuntimeError, match=r"values\(\) needs the numbers"):
        jaxgrad.jit(lambda a: a.coalesce().values())(u)
    with pytest.raises(RuntimeError, match="to_sparse"):
        jaxgrad.jit(lambda a: a.to_sparse())(jaxgrad.eye(2))


@pytest.mark.slow
def test_the_gradient_of_elements_at_one_index_under_jit():
    u = jaxgrad.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2)).requires_grad_()

    @jaxgrad.jit
    def gradient():
        u.grad = None
        (u.to_dense() ** 2).sum().backward()
        return u.grad

    assert gradient().to_dense().tolist() == u.grad.to_dense().tolist() == [[0, 6], [6, 0]]


@pytest.mark.slow
def test_transforms_of_functions_with_sparse_tensors():
    x, d = adjacency(), jaxgrad.arange(12.0).reshape(3, 4)

    def loss(values):
        return (jaxgrad.sparse_coo_tensor(INDICES, values, (2, 3)) @ d).pow(2).sum()

    required = adjacency().requires_grad_()
    (required @ d).pow(2).sum().backward()
    assert (jaxgrad.func.grad(loss)(x.values()) == required.grad.values()).all()
    batch = jaxgrad.stack([d, d + 1])
    mapped = jaxgrad.func.vmap(lambda matrix: x @ matrix)(batch)
    assert (mapped == jaxgrad.stack([x @ d, x @ (d + 1)])).all()
    values = jaxgrad.stack([x.values(), 2 * x.values()])
    losses = jaxgrad.func.vmap(loss)(values)
    assert (losses == jaxgrad.stack([loss(x.values()), loss(2 * x.values())])).all()


@pytest.mark.slow
def test_a_module_has_sparse_buffers():
    class Convolution(jaxgrad.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("adjacency", adjacency())
            self.linear = jaxgrad.nn.Linear(4, 2)

        def forward(self, x):
            return self.adjacency @ self.linear(x)

    model, x = Convolution(), jaxgrad.arange(12.0).reshape(3, 4)
    model(x).sum().backward()
    gradient = model.linear.weight.grad.clone()
    assert (jaxgrad.jit(model)(x) - model(x)).abs().max() < 1e-5
    wanted = (adjacency().to_dense().sum(0) @ x).expand(2, 4)
    assert (gradient - wanted).abs().max() < 1e-4
    assert list(model.state_dict()) == ["adjacency", "linear.weight", "linear.bias"]
    assert model.double().adjacency.dtype is jaxgrad.float64


def after_steps(optimizer, padding, dtype, transform):
    weight = jaxgrad.arange(8.0, dtype=dtype).reshape(4, 2) * 0.1
    layer = jaxgrad.nn.Embedding(4, 2, padding_idx=padding, sparse=True, _weight=weight)
    run = getattr(jaxgrad.optim, optimizer)(layer.parameters(), lr=0.1)

    @transform
    def step(ids):
        run.zero_grad()
        loss = (layer(ids) ** 2).sum() + (layer(ids + 1) * 1.5).sum()  # one table, read twice
        loss.backward()
        run.step()
        return loss

    losses = [step(jaxgrad.tensor([0, 1, 0, 2])).item() for _ in range(3)]
    return numpy.array([*losses, *layer.weight.detach().reshape(-1).tolist()])


@pytest.mark.parametrize("padding", [0, -1, None])
@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "SparseAdam"])
@pytest.mark.parametrize("dtype", [jaxgrad.float32, jaxgrad.float64], ids=str)
def test_compiled_steps_leave_the_padding_alone_and_keep_digits(optimizer, padding, dtype):
    expected = after_steps(optimizer, padding, dtype, lambda step: step)
    precision = 1e-12 if dtype is jaxgrad.float64 else 1e-5
    numpy.testing.assert_allclose(
        after_steps(optimizer, padding, dtype, jaxgrad.jit), expected, precision, precision
    )
    if padding is not None:
        row = expected[3:].reshape(4, 2)[padding]
        numpy.testing.assert_allclose(row, [0.1 * (padding % 4 * 2), 0.1 * (padding % 4 * 2 + 1)])


# PyTorch's losses and weights of three steps of SGD with padding_idx 0
PYTORCH = [5.36, 1.6646, -0.862456, 0.0, 0.1, -0.6296, -0.5784, -0.1612, -0.11, 0.15, 0.25]


def test_compiled_steps_with_padding_are_those_of_pytorch():
    values = after_steps("SGD", 0, jaxgrad.float64, jaxgrad.jit)
    numpy.testing.assert_allclose(values, PYTORCH, rtol=0, atol=1e-12)


def test_sparse_adam_loads_states_that_lack_maximize():
    """As PyTorch's of 1.x wrote them."""
    x = jaxgrad.ones(3, 1, requires_grad=True)
    optimizer = jaxgrad.optim.SparseAdam([x], lr=0.5)
    state = optimizer.state_dict()
    del state["param_groups"][0]["maximize"]
    optimizer.load_state_dict(state)
    x.grad = jaxgrad.sparse_coo_tensor([[1]], [[2.0]], (3, 1))
    optimizer.step()
    assert x.flatten().tolist() == pytest.approx([1, 0.5, 1])
