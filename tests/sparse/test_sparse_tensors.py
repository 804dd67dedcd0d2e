"""Sparse tensors as PyTorch has them: making, reading, printing, operators, errors."""

import numpy
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad


def example(torch, **options):
    """A coalesced 2 x 3 matrix with three elements."""
    indices = torch.tensor([[0, 1, 1], [2, 0, 2]])
    values = torch.tensor([3.0, 4.0, 5.0], dtype=torch.float64)
    return torch.sparse_coo_tensor(indices, values, (2, 3)).coalesce().requires_grad_(**options)


def twice(torch):
    """A matrix with two elements at one index, and not in order."""
    indices = torch.tensor([[1, 0, 1], [0, 2, 0]])
    return torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0, 4.0]), (2, 3))


def short(refusal):
    """An error whose message lists all backends of PyTorch, without this list."""
    return refusal | {"says": refusal["says"].split(" with arguments")[0]}


def parts(tensor):
    """What a sparse tensor consists of, in a form that can be compared."""
    name = tensor.grad_fn.name() if tensor.grad_fn is not None else None
    return {
        "indices": tensor._indices(),
        "values": tensor._values(),
        "size": list(tensor.shape),
        "facts": [tensor.is_coalesced(), tensor.requires_grad, name, str(tensor.layout)],
    }


@as_torch
def test_a_sparse_tensor_of_indices_and_values(torch):
    tensor = twice(torch)
    sizeless = torch.sparse_coo_tensor([[0, 3]], [[1.0, 2.0], [3.0, 4.0]])
    empty = torch.sparse_coo_tensor((2, 3))
    return [
        parts(tensor),
        parts(tensor.coalesce()),
        parts(sizeless),
        parts(empty),
        [tensor.sparse_dim(), tensor.dense_dim(), tensor._nnz(), tensor.is_sparse, tensor.numel()],
        [sizeless.sparse_dim(), sizeless.dense_dim(), sizeless.ndim, str(sizeless.dtype)],
    ]


@as_torch
def test_a_sparse_tensor_prints(torch):
    complex_one = torch.sparse_coo_tensor([[1]], torch.tensor([1 + 2j]), (2,))
    hybrid = torch.sparse_coo_tensor([[0, 1]], torch.arange(4.0).reshape(2, 2), (2, 2))
    texts = [twice(torch), example(torch), example(torch) * 2, complex_one, hybrid]
    texts += [torch.sparse_coo_tensor((2, 3)), twice(torch).double(), twice(torch).long()]
    return list(map(repr, texts))


@pytest.mark.slow
@as_torch
def test_a_dense_tensor_becomes_sparse_and_dense_again(torch):
    x = torch.tensor([[0.0, 1.0], [0.0, 0.0], [2.0, 3.0]], requires_grad=True)
    results = [parts(x.to_sparse()), parts(x.to_sparse(1)), parts(x.detach().to_sparse_coo())]
    scalar = torch.tensor(2.0).to_sparse()
    return [*results, x.to_sparse().to_dense(), x.to_sparse(1).to_dense(), scalar.to_dense()]


@pytest.mark.slow
@as_torch
def test_operators_that_keep_the_pattern(torch):
    x = example(torch)
    results = [-x, x * 2, 2 * x, x / 4, x.abs(), x.sin(), torch.relu(x), x.sqrt(), x.square()]
    results += [x.tanh(), x.expm1(), x.log1p(), x.sign(), x.pow(2), x.clone(), x.float()]
    results += [x * torch.tensor(2.0), x * x.to_dense(), x + x, x - x, x * x]
    return [parts(result) for result in results]


@pytest.mark.slow
@as_torch
def test_sums_and_products_of_other_patterns(torch):
    x, other = example(torch).float(), twice(torch)
    coalesced = other.coalesce()
    results = [x + coalesced, x - coalesced, x * coalesced, coalesced * x, x.add(x, alpha=3)]
    results += [torch.cat([x, coalesced]), torch.cat([x, x], 1).coalesce()]
    dense = torch.ones(2, 3)
    return [
        [parts(result.detach()) for result in results],
        [(x + other).to_dense(), (other - x).to_dense(), dense + other, dense - 2 * x],
        [dense.add(other, alpha=3), dense.clone().add_(other)],
    ]


@pytest.mark.slow
@as_torch
def test_products_with_matrices_and_vectors(torch):
    x, d = example(torch), torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    results = [torch.sparse.mm(x, d), x @ d, torch.mm(x, d), torch.mv(x, d[:, 1]), x @ d[:, 1]]
    results += [torch.addmm(torch.ones(2, 4).double(), x, d, beta=2, alpha=3)]
    nan = torch.full((2, 4), float("nan"), dtype=torch.float64)
    results += [torch.sparse.addmm(nan, x, d, beta=0, alpha=3), d.t() @ x.t()]
    results += [torch.sparse.mm(d.t(), x.t()), torch.nn.functional.linear(d.t()[:2], x)]
    product = torch.sparse.mm(x, x.t())
    names = [result.grad_fn.name() for result in results[:7]]
    return [results, names, parts(product), twice(torch) @ d.float()]


@pytest.mark.slow
@as_torch
def test_sums_over_dimensions(torch):
    x, total = example(torch), torch.sparse.sum
    hybrid = torch.sparse_coo_tensor([[0, 2]], torch.arange(6.0).reshape(2, 3), (4, 3)).coalesce()
    dense = [total(x), total(x, (0, 1)), x.sum(), total(hybrid), total(hybrid, (0, 1))]
    sums = [total(x, 0), total(x, 1), total(x, (-1,)), total(hybrid, 1)]
    return [
        dense,
        [parts(result) for result in sums],
        total(hybrid, 0),
        total(x, 0, torch.float32).to_dense(),
    ]


@pytest.mark.slow
@as_torch
def test_softmax_over_the_elements_that_are_stored(torch):
    x = example(torch)
    hybrid = torch.sparse_coo_tensor([[0, 2]], torch.arange(6.0).reshape(2, 3), (4, 3)).coalesce()
    functions = [torch.sparse.softmax, torch.sparse.log_softmax]
    results = [parts(f(x, dim)) for f in functions for dim in (0, 1, -1)]
    return [results, [parts(f(hybrid, dim)) for f in functions for dim in (0, 1)]]


@as_torch
def test_shapes(torch):
    x = example(torch)
    three = torch.sparse_coo_tensor([[0, 1], [1, 0], [2, 2]], [1.0, 2.0], (2, 2, 3))
    moved = [three.transpose(0, 2), three.permute(1, 2, 0), three.transpose(0, -1)]
    results = [(tensor.coalesce().to_dense(), list(tensor.shape)) for tensor in moved]
    transposed = [x.t(), x.transpose(0, 1), x.permute(1, 0), x.T]
    names = [tensor.grad_fn.name() for tensor in transposed]
    return [results, names, [tensor.to_dense() for tensor in transposed]]


@pytest.mark.slow
@as_torch("""
    [tensor([[0.0, 0.0, 2.0], [3.0, 0.0, 0.0]]), tensor([[0, 1], [2, 0]])]
    [tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]), tensor([[0, 1], [2, 0]])]
    [tensor([[0.0, 0.0, 2.0], [5.0, 0.0, 0.0]]), tensor([[0, 1, 1], [2, 0, 2]])]
""")
def test_masks(torch):
    x, mask = torch.arange(6.0).reshape(2, 3), twice(torch).coalesce()
    other = example(torch).detach().float()
    results = [x.sparse_mask(mask), other.sparse_mask(mask), mask.sparse_mask(other)]
    return [(result.to_dense(), result._indices()) for result in results]


@as_torch
def test_errors_of_sparse_tensors(torch):
    x, u, dense = example(torch), twice(torch), torch.ones(2, 3)
    make = torch.sparse_coo_tensor
    return [
        error(u.values),
        error(u.indices),
        error(dense.coalesce),
        error(dense.values),
        error(dense.is_coalesced),
        error(lambda: x + dense.double()),
        error(x.numpy),
        short(error(lambda: torch.cos(x), words="Could not run 'aten::cos")),
        short(error(lambda: x.exp(), words="Could not run 'aten::exp")),
        short(error(lambda: x.view(6), words="Could not run 'aten::view")),
        short(error(lambda: x == x, words="Could not run 'aten::eq")),
        error(x.item),
        error(lambda: bool(x)),
        error(lambda: x.mul_(2)),
        error(lambda: make(torch.tensor([0, 1]), torch.ones(2)), words="sparse_dim"),
        error(lambda: make([[0, 1]], torch.ones(3)), words="must have same nnz"),
        error(lambda: make([[0, 1]], torch.ones(2), (2, 2)), words="len(size) == sparse_dim"),
        error(lambda: make([[0, 5]], torch.ones(2), (2,), check_invariants=True), words="size is"),
        error(lambda: make([[0, -1]], torch.ones(2), (2,), check_invariants=True), words="found"),
        error(lambda: torch.sparse.sum(x, 2)),
        error(lambda: torch.sparse.sum(x, (0, 0))),
        error(lambda: torch.mm(x, dense.double()), words="Expected dim 0 size 3, got 2"),
        error(lambda: torch.sparse.sum(dense)),
    ]


@as_torch
def test_writes_in_place(torch):
    x = example(torch).detach()
    before = x.detach()
    x.mul_(2)
    x.neg_()
    x.add_(torch.ones(2, 3, dtype=torch.float64).to_sparse())
    y = example(torch) * 1
    y.mul_(3)
    values = example(torch).detach()
    values._values().mul_(2)
    values.values().mul_(5)
    return [parts(x.coalesce()), parts(before), y.grad_fn.name(), y.to_dense(), parts(values)]


@as_torch("""
    [False, True]
    [True,
     RuntimeError(
      'cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor')]
    RuntimeError('cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor')
    RuntimeError('cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor')
""")
def test_invariants_are_checked(torch):
    check = torch.sparse.check_sparse_tensor_invariants

    def wrong(**options):
        return torch.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (2,), is_coalesced=True, **options)

    with check(False):
        outside = [check.is_enabled(), wrong().is_coalesced()]
        with check():
            inside = [check.is_enabled(), error(wrong)]
        decorated = check()(wrong)
        return [outside, inside, error(decorated), error(lambda: wrong(check_invariants=True))]


def test_indices_out_of_range_are_refused_without_a_check_of_invariants():
    for indices in ([[0, 5]], [[0, -1]]):
        with pytest.raises(RuntimeError, match=r"size is inconsistent|found negative"):
            jaxgrad.sparse_coo_tensor(indices, [1.0, 2.0], (2,))


def test_operators_by_their_names_in_early_pytorch():
    ops, x = jaxgrad.ops, example(jaxgrad)
    tensor = ops._sparse_coo_tensor_with_dims_and_tensors(2, 0, (2, 3), x._indices(), x._values())
    assert tensor.to_dense().tolist() == [[0, 0, 3], [4, 0, 5]]
    dense = jaxgrad.ones(3, 1, dtype=jaxgrad.float64)
    total = jaxgrad.ones(2, 1, dtype=jaxgrad.float64)
    added = ops._sparse_addmm(total, x, dense, beta=2, alpha=10)
    assert added.tolist() == [[32], [92]] and added.grad_fn.name() == "SparseAddmmBackward0"
    assert ops._sparse_sum(x, [0]).to_dense().tolist() == [4, 0, 8]
    assert ops.coalesce(x) is x
    assert ops.indices(x).tolist() == ops._indices(x).tolist() == [[0, 1, 1], [2, 0, 2]]
    assert ops.values(x).requires_grad and not ops._values(x).requires_grad
    assert ops.to_dense(x).requires_grad
    masked = ops.sparse_mask(jaxgrad.ones(2, 3), x.detach())
    assert masked.values().tolist() == [1, 1, 1]


def test_a_product_is_added_to_a_dense_tensor_in_place():
    x, dense = example(jaxgrad).detach(), jaxgrad.ones(3, 1, dtype=jaxgrad.float64)
    total = jaxgrad.ones(2, 1, dtype=jaxgrad.float64)
    assert total.addmm_(x, dense, beta=2, alpha=10) is total and total.tolist() == [[32], [92]]


READING = [
    "tolist",
    "nonzero",
    "data_ptr",
    "untyped_storage",
    "__array__",
    "__jax_array__",
    "__dlpack__",
    "contiguous",
    "uniform_",
    "mT",
]


@pytest.mark.parametrize("name", READING)
def test_no_method_reads_the_values_as_a_dense_tensor(name):
    x = example(jaxgrad).detach()
    with pytest.raises((NotImplementedError, RuntimeError, TypeError, BufferError)):
        getattr(x, name)()


def test_no_function_reads_the_values_as_a_dense_tensor():
    x, dense = example(jaxgrad).detach(), jaxgrad.ones(2, 3, dtype=jaxgrad.float64)
    calls = [
        lambda: jaxgrad.ones_like(x),
        lambda: jaxgrad.normal(x, x),
        lambda: x.tolist(),
        lambda: jaxgrad.where(x > 0, x, x),
        lambda: dense.copy_(x),
        lambda: jaxgrad.nonzero(x),
        lambda: jaxgrad.as_strided(x, (1,), (1,)),
        lambda: jaxgrad.nn.functional.softmax(x, 1),
    ]
    for call in calls:
        with pytest.raises((NotImplementedError, RuntimeError, TypeError)):
            call()
    assert dense.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_zeros_like_a_sparse_tensor_are_sparse():
    zeros = jaxgrad.zeros_like(example(jaxgrad), dtype=jaxgrad.float32)
    assert zeros.is_sparse and zeros._nnz() == 0 and zeros.shape == (2, 3)
    assert zeros.dtype is jaxgrad.float32


def test_autocast_leaves_products_of_sparse_tensors_alone():
    x = example(jaxgrad).float()
    with jaxgrad.autocast("cpu"):
        assert jaxgrad.sparse.mm(x, jaxgrad.ones(3, 2)).dtype is jaxgrad.float32


def test_transposes_of_batches_of_matrices():
    dense = numpy.arange(12.0).reshape(2, 2, 3)
    x = jaxgrad.tensor(dense, requires_grad=True)
    turned = x.to_sparse().mT
    numpy.testing.assert_array_equal(
        turned.to_dense().detach().numpy(), dense.swapaxes(1, 2), strict=True
    )
    weight = jaxgrad.arange(12.0).reshape(2, 3, 2).double()
    (turned.to_dense() * weight).sum().backward()
    expected = weight.mT.numpy() * (dense != 0)
    numpy.testing.assert_array_equal(x.grad.to_dense().numpy(), expected)


@as_torch
def test_slices_of_sparse_tensors(torch):
    """They are sparse, or dense where no sparse dimension is left."""
    matrix, other = example(torch).detach(), twice(torch)
    hybrid = torch.sparse_coo_tensor([[0, 2, 2]], torch.arange(6.0).reshape(3, 2), (3, 2))
    rows = [parts(row) for x in (matrix, other) for row in x]
    chosen = [matrix[-1], matrix.select(1, 2), hybrid.select(1, 0), *other.unbind(1)]
    joined = [torch.stack([*other]), *(torch.stack([matrix] * 2, dim) for dim in (1, -1))]
    longer = [matrix.unsqueeze(1), other.unsqueeze(-1), hybrid.unsqueeze(2), hybrid.unsqueeze(0)]
    return [
        rows,
        [parts(x) for x in (*chosen, *joined, *longer)],
        [*hybrid],
        list(hybrid.long()),
        error(matrix.select, 0, 2, words="index 2 out of range for tensor of size [2, 3]"),
    ]


@as_torch("""
    tensor(40.0, dtype=float64)
    {'indices': tensor([[0, 1, 1], [2, 0, 2]]),
     'values': tensor([10.0, 0.0, 2.0], dtype=float64),
     'size': [2, 3],
     'facts': [True, False, None, 'torch.sparse_coo']}
""")
def test_gradients_through_rows(torch):
    x, factor = example(torch), torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    first, second = x
    loss = (torch.stack([second, first * 2]).to_dense() * factor).sum()
    return [loss.detach(), parts(torch.autograd.grad(loss, x)[0].coalesce())]


def test_new_takes_sizes_or_parts_alone():
    import jaxgrad as torch

    x = torch.eye(2).to_sparse()
    for wrong in (x.values(), x.values().untyped_storage(), [6]):
        with pytest.raises(TypeError):
            x.new(wrong)
    with pytest.raises(RuntimeError, match="nbytes is not defined"):
        _ = x.nbytes


def test_a_sparse_tensor_is_no_view():
    x = jaxgrad.eye(2).to_sparse()
    for tensor in (x, x.t(), x.detach(), x.to_sparse_csr()):
        assert tensor._base is None and not tensor._is_view()
