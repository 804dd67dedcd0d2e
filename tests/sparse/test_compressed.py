"""Tensors in compressed layouts: CSR, CSC, BSR and BSC."""

import io
import pickle

import numpy
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad
import jaxgrad as torch

VALUES = [[0.0, 1.5, 0.0, -2.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.5, 0.0], [0.0, 0.0, 4.0, 1.0]]
LAYOUTS = {"csr": None, "csc": None, "bsr": (2, 2), "bsc": (2, 2)}


def matrix(torch, name="csr", **options):
    """A 4 x 4 matrix in a compressed layout."""
    dense = torch.tensor(VALUES, dtype=torch.float64)
    layout, block = getattr(torch, f"sparse_{name}"), LAYOUTS[name]
    return dense.to_sparse(layout=layout, blocksize=block).requires_grad_(**options)


def batch(torch):
    """Two matrices with three elements each."""
    dense = [[[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], [[0.0, 4.0, 0.0], [5.0, 0.0, 6.0]]]
    return torch.tensor(dense).to_sparse_csr()


def parts(tensor):
    """What a tensor consists of."""
    if str(tensor.layout) == "torch.strided":
        return tensor
    if tensor.is_sparse:
        return [tensor.coalesce().indices(), tensor.coalesce().values(), list(tensor.shape)]
    is_rows = str(tensor.layout) in ("torch.sparse_csr", "torch.sparse_bsr")
    names = ("crow_indices", "col_indices") if is_rows else ("ccol_indices", "row_indices")
    indices = [getattr(tensor, name)() for name in names]
    return [str(tensor.layout), *indices, tensor.values(), list(tensor.shape)]


def weights(torch, *shape):
    count = numpy.prod(shape).item()
    return torch.arange(count, dtype=torch.float64).reshape(shape) - 3


@as_torch
def test_parts_of_each_layout(torch):
    tensors = [matrix(torch, name, requires_grad=False) for name in LAYOUTS]
    facts = [[x._nnz(), x.sparse_dim(), x.dense_dim(), x.is_sparse, x.numel()] for x in tensors]
    x = tensors[0]
    return [*map(parts, [*tensors, batch(torch)]), facts, x.is_sparse_csr, repr(x), repr(x * 2)]


@as_torch
def test_conversions(torch):
    x, y = matrix(torch, requires_grad=False), matrix(torch, "csc", requires_grad=False)
    dense = torch.arange(8.0).reshape(2, 2, 2)
    results = [
        x.to_sparse_csc(),
        y.to_sparse_csr(),
        x.to_sparse_bsr((2, 2)),
        x.to_sparse_bsc((1, 2)),
    ]
    results += [x.to_sparse(), y.to_sparse(), x.to_dense(), x.to_sparse().to_sparse_csc()]
    results += [dense.to_sparse_csr(dense_dim=1), batch(torch).to_dense(), x.t(), y.t(), x.float()]
    return list(map(parts, results))


@as_torch
def test_errors_of_conversions(torch):
    x = matrix(torch, requires_grad=False)
    uneven = torch.tensor([[[1.0, 0.0]], [[1.0, 1.0]]])
    return [
        error(lambda: uneven.to_sparse_csr()),
        error(lambda: torch.ones(3, 3).to_sparse_bsr((2, 2))),
        error(lambda: torch.ones(3, 3).to_sparse(layout=torch.sparse_bsr)),
        error(lambda: torch.ones(3, 3).to_sparse(layout=torch.sparse_csr, blocksize=(1, 1))),
        error(lambda: torch.ones(3, 3).to_sparse_csr(dense_dim=2)),
        error(lambda: x.ccol_indices()),
        error(lambda: x.indices()),
        error(lambda: x.coalesce()),
        error(lambda: torch.ones(2).crow_indices()),
    ]


WRONG = [
    ([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2)),
    ([0, 1, 2], [0, -1], [1.0, 2.0], (2, 2)),
    ([1, 1, 2], [0, 1], [1.0, 2.0], (2, 2)),
    ([0, 1, 3], [0, 1], [1.0, 2.0], (2, 2)),
    ([0, 3, 2], [1, 1], [1.0, 2.0], (2, 2)),
    ([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2)),
    ([0, 1], [0, 1], [1.0, 2.0], (2, 2)),
    ([0, 1, 2], [0, 1], [1.0, 2.0], (2,)),
    ([[0, 1, 2]], [0, 1], [1.0, 2.0], (2, 2)),
    (2, [0, 1], [1.0, 2.0], (2, 2)),
]


@as_torch
def test_parts_that_do_not_fit_together(torch):
    def make(factory, compressed, plain, values, size):
        arguments = *map(torch.tensor, (compressed, plain, values)), size
        return factory(*arguments, check_invariants=True)

    factories = torch.sparse_csr_tensor, torch.sparse_csc_tensor
    return [error(make, factory, *wrong) for factory in factories for wrong in WRONG]


@as_torch
def test_tensors_of_their_parts(torch):
    ones = torch.ones(2, 2, 2)
    indices = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
    results = [
        torch.sparse_csr_tensor(*indices, torch.tensor([1.0, 2.0])),
        torch.sparse_csc_tensor(*indices, torch.tensor([1.0, 2.0]), (3, 2), dtype=torch.float64),
        torch.sparse_bsr_tensor(*indices, ones),
        torch.sparse_bsc_tensor(*indices, ones, (4, 4)),
        torch.sparse_compressed_tensor(*indices, [1.0, 2.0], layout=torch.sparse_csr),
        torch.zeros(2, 3, layout=torch.sparse_csr),
        torch.zeros(2, 3, layout=torch.sparse_csc),
        torch.zeros_like(torch.sparse_csr_tensor(*indices, torch.tensor([1.0, 2.0]))),
    ]
    return [*map(parts, results), repr(results[5])]


@as_torch
def test_operators(torch):
    x, y = matrix(torch, requires_grad=False), matrix(torch, "csr", requires_grad=False).t()
    w = weights(torch, 4, 2)
    results = [
        x @ w,
        x @ w[:, 0],
        weights(torch, 2, 4) @ x,
        torch.addmm(w, x, w, beta=0.5, alpha=2),
    ]
    results += [x.sin(), x.neg(), x.isnan(), x * 2, x + x, x * x, x.sum(), x.sum(0, keepdim=True)]
    results += [torch.sparse.sampled_addmm(x, w, w.t(), beta=0.5, alpha=2.0), batch(torch)[0]]
    results += [torch.sparse.mm(x, w, reduce) for reduce in ("sum", "mean", "amax", "amin")]
    results += [x[0], x[2, 0], x.select(1, 2), w @ w.t() + x, x * (w @ w.t()), (x @ y).to_dense()]
    results += [torch.addmv(w[:, 0], x, w[:, 1]), (w @ w.t()).sparse_mask(x)]
    return list(map(parts, results))


@as_torch
def test_writes_in_place(torch):
    x, y, z = (matrix(torch, requires_grad=False) for _ in range(3))
    x.mul_(2)
    x.sin_()
    y.zero_()
    z.values().add_(1)
    return [parts(x), parts(y), parts(z)]


FUNCTIONS = {
    "to_dense": lambda torch, x: x.to_dense(),
    "matmul": lambda torch, x: x @ weights(torch, 4, 2),
    "sparse.mm": lambda torch, x: torch.sparse.mm(x, weights(torch, 4, 2)),
    "sum of products": lambda torch, x: (x.sin() * x + 2 * x).to_dense(),
    "conversion": lambda torch, x: x.to_sparse().to_dense(),
    "transpose": lambda torch, x: x.t().to_dense(),
    "values": lambda torch, x: x.values(),
    "select": lambda torch, x: x[2].to_dense(),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("name", LAYOUTS)
def test_gradients_are_those_of_finite_differences(name, function):
    call = lambda x: function(jaxgrad, x)  # noqa: E731
    assert jaxgrad.autograd.gradcheck(call, (matrix(jaxgrad, name),), masked=True)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_gradients_of_reduced_products(reduce):
    call = lambda x, w: jaxgrad.sparse.mm(x, w, reduce)  # noqa: E731
    w = (weights(jaxgrad, 4, 2) ** 2).requires_grad_()
    assert jaxgrad.autograd.gradcheck(call, (matrix(jaxgrad), w), masked=True)


def test_a_gradient_has_the_layout_of_its_leaf():
    for name in LAYOUTS:
        x = matrix(jaxgrad, name)
        (x.to_dense() * weights(jaxgrad, 4, 4)).sum().backward()
        assert x.grad.layout is x.layout and x.grad.shape == x.shape
        inside = x.detach().to_sparse(layout=x.layout, blocksize=LAYOUTS[name]).values() * 0 + 1
        expected = weights(jaxgrad, 4, 4).sparse_mask(x.detach())
        jaxgrad.testing.assert_close(x.grad.values(), expected.values() * inside)
    v = jaxgrad.ones(2, requires_grad=True)
    y = jaxgrad.sparse_csr_tensor([0, 1, 2], [1, 0], v, (2, 2))
    (y.to_dense() * jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert v.grad.tolist() == [2, 3]


def test_products_of_batches():
    x = batch(jaxgrad)
    product = jaxgrad.bmm(x, jaxgrad.tensor([[1.0], [2.0], [3.0]]).expand(2, 3, 1))
    assert product.tolist() == [[[7], [6]], [[8], [23]]]
    assert (x @ jaxgrad.ones(2, 3, 1)).tolist() == [[[3], [3]], [[4], [11]]]


@pytest.mark.parametrize("name", LAYOUTS)
def test_in_compiled_functions(name):
    x, w = matrix(jaxgrad, name), weights(jaxgrad, 4, 2)

    def loss(x):
        return ((2 * x).sin() @ w).pow(2).sum()

    loss(x).backward()
    expected = x.grad.values()
    x.grad = None
    compiled = jaxgrad.jit(loss)(x)
    compiled.backward()
    jaxgrad.testing.assert_close(compiled.detach(), loss(x).detach())
    jaxgrad.testing.assert_close(x.grad.values(), expected)


@pytest.mark.parametrize("name", LAYOUTS)
def test_files_and_copies(name):
    x = matrix(jaxgrad, name)
    file = io.BytesIO()
    jaxgrad.save({"x": x}, file)
    file.seek(0)
    for y in (pickle.loads(pickle.dumps(x)), jaxgrad.load(file)["x"]):
        jaxgrad.testing.assert_close(y, x)
        assert y.layout is x.layout
    with pytest.raises(AssertionError, match=f"Sparse {name.upper()} values"):
        jaxgrad.testing.assert_close(x, x * 2)


def test_triangular_systems():
    import jaxgrad as torch

    matrix = torch.tensor([[2.0, 1.0, 0.0], [0.0, 4.0, 3.0], [0.0, 0.0, 5.0]], dtype=torch.float64)
    right = torch.ones(3, 2, dtype=torch.float64)
    csr, dense = matrix.to_sparse_csr().requires_grad_(), matrix.clone().requires_grad_()
    result = torch.triangular_solve(right, csr)
    # 5 z = 1, 4 y + 3 z = 1, 2 x + y = 1
    assert torch.allclose(
        result.solution[:, 0], torch.tensor([0.45, 0.1, 0.2], dtype=torch.float64)
    )
    assert result.cloned_coefficient.numel() == 0
    result.solution.pow(2).sum().backward()
    torch.linalg.solve(dense, right).pow(2).sum().backward()
    assert torch.allclose(csr.grad.to_dense(), dense.grad * (matrix != 0))


def test_swapped_axes_are_compressed_the_other_way():
    import jaxgrad as torch

    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse_csr()
    assert x.swapaxes(0, 1).layout is x.transpose(0, 1).layout is torch.sparse_csc


def test_errors_of_indices_tell_the_numbers():
    import jaxgrad as torch

    with pytest.raises(RuntimeError, match=r"== nnz` is not satisfied: .*\[3\].*has 2 elements"):
        torch.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2.0], (2, 2))
    with pytest.raises(RuntimeError, match=r"col_indices < ncols.*from 0 to 5.*ncols is 2"):
        torch.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2))


SMALL = ([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3))

# a new size, and the parts that PyTorch gives
RESIZED = [
    ((3, 3), [0, 2, 3, 3], [0, 2, 1], [1, 2, 3]),
    ((1, 3), [0, 3], [0, 2, 1], [1, 2, 3]),
    ((2, 5), [0, 2, 3], [0, 2, 1], [1, 2, 3]),
]


def parts_of(x):
    return x.crow_indices().tolist(), x.col_indices().tolist(), x.values().tolist(), x.shape


def test_resize():
    import jaxgrad as torch

    for size, begin, plain, values in RESIZED:
        x = torch.sparse_csr_tensor(*SMALL)
        assert x.resize_(size) is x and parts_of(x) == (begin, plain, values, size)
    with pytest.raises(RuntimeError, match="Resizing columns of sparse CSR tensors to a smaller"):
        x.resize_(2, 2)
    parts = [[0, 1, 2], [0, 0, 2]], [[0, 1], [0, 1]], [[1.0, 2], [3, 4]], (2, 2, 2)
    batch = torch.sparse_csr_tensor(*parts)
    assert parts_of(batch.resize_(2, 2)) == ([0, 1, 2], [0, 1], [1, 2], (2, 2))


def test_resize_as():
    import jaxgrad as torch

    x = torch.sparse_csr_tensor(*SMALL)
    x.resize_as_sparse_(torch.ones(3, 4, dtype=torch.float64).to_sparse_csr())
    assert x.shape == (3, 4) and x._nnz() == 12 and x.dtype is torch.float32
    torch._validate_sparse_csr_tensor_args(x.crow_indices(), x.col_indices(), x.values(), x.shape)
    with pytest.raises(RuntimeError, match="self and src must have the same layout"):
        x.resize_as_sparse_(x.t())
    with pytest.raises(RuntimeError, match="src  expected sparse compressed tensor layout"):
        x.resize_as_sparse_(torch.ones(2, 2))


def test_ones_copies_and_sums_of_products():
    # the expected numbers are PyTorch's
    import jaxgrad as torch

    x = torch.sparse_csr_tensor(*SMALL)
    ones = torch.ones_like(x, dtype=torch.float64)
    assert parts_of(ones) == (*SMALL[:2], [1, 1, 1], (2, 3)) and ones.dtype is torch.float64
    assert torch.empty_like(x, layout=torch.sparse_csr).shape == (2, 3) and x.nbytes == 24
    column = torch.select_copy(x, 1, 2)
    assert column.indices().tolist() == [[0]] and column.values().tolist() == [2]
    total = torch.addmm(x, x, torch.eye(3).to_sparse_csr(), beta=2, alpha=3)
    assert total.layout is torch.sparse_csr
    assert total.to_dense().tolist() == [[5, 0, 10], [0, 15, 0]]
    diagonals, offsets = torch.arange(1.0, 7).reshape(2, 3), torch.tensor([-1, 1])
    rows = torch.sparse.spdiags(diagonals, offsets, (3, 4), layout=torch.sparse_csr)
    assert parts_of(rows) == ([0, 1, 3, 4], [1, 0, 2, 1], [5, 1, 6, 2], (3, 4))
    with pytest.raises(RuntimeError, match="Only output layouts"):
        torch.sparse.spdiags(diagonals, offsets, (3, 4), layout=torch.sparse_bsr)


def test_gradient_of_a_sum_of_sparse_products():
    import jaxgrad as torch

    terms = [torch.sparse_csr_tensor(*SMALL).requires_grad_() for _ in range(2)]
    right = torch.arange(9.0).reshape(3, 3)
    total = torch.addmm(terms[0], terms[1], right.to_sparse_csr(), beta=2, alpha=3)
    (total.to_dense() ** 2).sum().backward()
    dense = [t.detach().to_dense().requires_grad_() for t in terms]
    (torch.addmm(*dense, right, beta=2, alpha=3) ** 2).sum().backward()
    for sparse, strided in zip(terms, dense, strict=True):
        mask = sparse.detach().to_dense() != 0
        assert torch.allclose(sparse.grad.to_dense(), strided.grad * mask)


def test_checks_of_parts():
    import jaxgrad as torch

    begin, plain, values = map(torch.tensor, SMALL[:3])
    torch._validate_sparse_csr_tensor_args(begin, plain, values, (2, 3))
    with pytest.raises(RuntimeError, match="col_indices < ncols"):
        torch._validate_sparse_compressed_tensor_args(
            begin, plain + 2, values, (2, 3), torch.sparse_csr
        )
    indices = torch.tensor([[0, 0]])
    torch._validate_sparse_coo_tensor_args(indices, values[:2], (2,))
    with pytest.raises(RuntimeError, match="uncoalesced COO tensor"):
        torch._validate_sparse_coo_tensor_args(indices, values[:2], (2,), True)


def test_sums_with_products_of_sparse_matrices_are_dense():
    a, b = torch.tensor([[1.0, 0.0], [2.0, 3.0]]), torch.tensor([[0.0, 4.0], [5.0, 0.0]])
    for left, right in ((a.to_sparse_csr(), b.to_sparse_csc()), (a, b.to_sparse_csr())):
        result = torch.addmm(torch.ones(2, 2), left, right, beta=2, alpha=10)
        assert result.tolist() == [[2, 42], [152, 82]]
    with pytest.raises(RuntimeError, match="number of sizes provided"):
        torch.addmm(torch.ones(1, 2, 2), a.to_sparse_csr(), b)


def test_sampled_products_in_batches():
    pattern = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).to_sparse_csr()
    mat1 = torch.arange(12.0).reshape(2, 2, 3).requires_grad_()
    mat2 = torch.ones(2, 3, 2)
    batched = torch.stack([pattern.to_dense()] * 2).to_sparse_csr()
    for input in (pattern, batched):  # a matrix is for all of the batch
        result = torch.sparse.sampled_addmm(input, mat1, mat2, beta=10)
        assert result.to_dense().tolist() == [[[13, 0], [0, 22]], [[31, 0], [0, 40]]]
    (grad,) = torch.autograd.grad(result.to_dense().sum(), mat1)
    assert grad.tolist() == [[[1, 1, 1], [1, 1, 1]]] * 2
    with pytest.raises(RuntimeError, match="must match mat1"):
        torch.sparse.sampled_addmm(pattern, torch.ones(3, 3), torch.ones(3, 2))


def test_triangular_solutions_are_written_into_out():
    matrix = torch.tensor([[2.0, 1.0], [0.0, 4.0]]).to_sparse_csr()
    out = torch.empty(2, 1), torch.empty(0)
    torch.triangular_solve(torch.tensor([[4.0], [8.0]]), matrix, out=out)
    assert out[0].tolist() == [[1], [2]]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_bsc"])
@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck_of_functions_that_return_sparse_tensors(layout, masked):
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    options = {"blocksize": (1, 2)} if layout == "sparse_bsc" else {}
    x = torch.tensor([[1.0, 0.0], [2.0, 3.0]], dtype=torch.float64)
    x = x.to_sparse(layout=getattr(torch, layout), **options).requires_grad_()
    assert check(lambda x: x * 3, x, masked=masked)
    with pytest.raises(RuntimeError, match="Jacobian"):
        check(lambda x: x.detach() * x, x, masked=masked)


def test_products_of_a_dense_and_a_compressed_tensor_are_compressed():
    x = torch.tensor([[1.0, 0.0], [2.0, 3.0]]).to_sparse_csr()
    for product in (x * torch.full((2, 2), 2.0), torch.full((2, 2), 2.0) * x):
        assert product.layout is torch.sparse_csr and product.values().tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: torch.empty_like(x, layout=torch.sparse_csc), "different sparse layout"),
        (lambda x: x.copy_(torch.ones(2, 2)), "having different layouts is not supported"),
        (lambda x: x.copy_(torch.ones(2, 3).to_sparse_csr()), "expected shapes of self and src"),
        (lambda x: x.storage(), "Cannot access storage of SparseCsrTensorImpl"),
        (lambda x: torch.ones(2).resize_as_sparse_(x), "self  expected sparse compressed tensor"),
        (
            lambda x: torch.stack([x.to_dense()] * 2).to_sparse_csr().select(1, 0),
            "selecting sparse dimensions is not supported",
        ),
    ],
)
def test_calls_that_compressed_tensors_refuse(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(torch.tensor([[1.0, 0.0], [2.0, 3.0]]).to_sparse_csr())


def test_indices_with_strides_are_refused_where_invariants_are_checked():
    begin, plain = torch.tensor([0, 9, 1, 9, 2])[::2], torch.tensor([1, 0])
    parts = begin, plain, torch.ones(2), (2, 2)
    assert torch.sparse_csr_tensor(*parts).to_dense().tolist() == [[0, 1], [1, 0]]
    words = "expected crow_indices to be a contiguous tensor per batch"
    with pytest.raises(RuntimeError, match=words):
        torch.sparse_csr_tensor(*parts, check_invariants=True)
    with pytest.raises(RuntimeError, match=words):
        torch._validate_sparse_compressed_tensor_args(*parts, torch.sparse_csr)
