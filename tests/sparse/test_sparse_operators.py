"""Operators on sparse tensors in coordinate format: values, layouts, errors, gradients."""

import pickle
import warnings

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad


def matrix(torch, seed=0, is_coalesced=True, dtype="float64"):
    """A 3 x 4 matrix; without `is_coalesced` two elements are at one index."""
    rows, columns = [0, 2, 1, 2, 0], [1, 3, 0, 0, 2]
    if not is_coalesced:
        rows[-1], columns[-1] = 0, 1
    values = torch.tensor([1.5, -2.0, 0.5, 4.0, -1.0], dtype=torch.float64) + seed
    tensor = torch.sparse_coo_tensor([rows, columns], values.to(getattr(torch, dtype)), (3, 4))
    return tensor.coalesce() if is_coalesced else tensor


def hybrid(torch):
    """A tensor with two sparse dimensions and a dense one."""
    values = torch.arange(6.0).reshape(3, 2) - 2
    return torch.sparse_coo_tensor([[0, 1, 2], [3, 0, 2]], values, (3, 4, 2)).coalesce()


def shown(tensor):
    """The elements of a tensor, added where they are at one index, and its layout."""
    if not tensor.is_sparse:
        return tensor
    merged = tensor.detach().coalesce()
    return [merged.indices(), merged.values(), list(tensor.shape), tensor.is_coalesced()]


ROW = [0, 2, -1]
CHANGED = "changing the number of sparse dimensions"


@as_torch
def test_parts_of_a_sparse_tensor(torch):
    x, h = matrix(torch), hybrid(torch)
    chosen = torch.tensor(ROW)
    results = [x.index_select(0, chosen), x.index_select(1, chosen), h.index_select(0, chosen)]
    results += [x[1], x[2, 3], x[None, 0], x[..., 1], h[0], h[2, 2], x[:, 0]]
    results += [x.narrow_copy(0, 1, 2), x.narrow_copy(1, 0, 2), h.narrow_copy(2, 1, 1)]
    results += [x.select(-1, 0), *x.unbind(0), x.index_select(0, chosen[:0])]
    return list(map(shown, results))


@as_torch
def test_errors_of_parts(torch):
    x = matrix(torch)
    return [
        error(lambda: x.index_select(0, torch.tensor([3]))),
        error(lambda: x.narrow_copy(-1, 0, 1)),
        error(lambda: x.narrow_copy(0, 1, 7)),
        error(lambda: torch.cat([x, x.to_dense()])),
        error(lambda: x.permute(dims=(1, 1))),
        error(lambda: x.__setitem__(0, 1.0)),
    ]


@as_torch
def test_dimensions_in_another_order(torch):
    x, h = matrix(torch), hybrid(torch)
    turned, transposed = matrix(torch), matrix(torch)
    turned.t_()
    transposed.transpose_(0, 1)
    results = [x.permute(dims=(1, 0)), x.permute(0, 1), x.swapaxes(0, 1), x.movedim(0, 1), x.H]
    results += [h.permute(1, 0, 2), h.transpose(0, 1), turned, transposed]
    return list(map(shown, results))


@as_torch
def test_sparse_tensors_are_joined(torch):
    x, h = matrix(torch), hybrid(torch)
    results = [torch.hstack([x, x]), torch.vstack([x, x]), torch.cat([h, h], 2), torch.cat([h, h])]
    return list(map(shown, results))


@as_torch
def test_reductions(torch):
    x, y, h = matrix(torch), matrix(torch, is_coalesced=False), hybrid(torch)
    results = [x.norm(), y.norm(1), h.norm(p=float("inf")), x.any(), (x * 0).any(), x.isnan()]
    results += [x.sum(0, True), x.sum((0, 1), keepdim=True), y.sum(1, keepdim=True), y.signbit()]
    refused = [{"keepdim": True}, {"dim": 0}, {"dtype": torch.float64, "p": 0}]
    errors = [error(lambda options=options: x.norm(**options)) for options in refused]
    return [*map(shown, results), errors, error(lambda: x.norm(dtype=torch.float64))]


@as_torch
def test_products_of_sparse_matrices(torch):
    x, y, z = matrix(torch), matrix(torch, is_coalesced=False), matrix(torch, 3).t()
    dense = torch.arange(12, dtype=torch.float64).reshape(4, 3)
    batch = torch.stack([x, y])
    results = [torch.smm(x, dense), torch.hspmm(y, dense), torch.bmm(batch, dense.expand(2, 4, 3))]
    total = torch.sspaddmm(torch.mm(x, z), x, dense, beta=0.5, alpha=2.0)
    results += [total, x * torch.arange(4.0), x // 2, torch.eye(3, dtype=torch.float64) @ x]
    return [result.to_dense() for result in results] + [results[1].sparse_dim()]


@as_torch
def test_out_gets_the_pattern_of_the_result(torch):
    x, y = matrix(torch), matrix(torch, 1)
    results = []
    for call in (torch.add, torch.sub, torch.mul):
        out = torch.zeros_like(x, dtype=torch.float32)
        assert call(x, y, out=out) is out
        results.append(shown(out))
    out = matrix(torch)
    torch.neg(matrix(torch, 2), out=out)
    refused = torch.sparse_coo_tensor([[0]], [1.0], (2,))
    errors = [error(lambda: torch.neg(x, out=refused), words=CHANGED)]
    errors.append(error(lambda: torch.sin(x, out=torch.zeros_like(x, dtype=torch.int64))))
    filled = matrix(torch)
    torch.zeros(2, 5, out=filled)
    return [*results, shown(out), errors, shown(filled)]


@as_torch("""
    RuntimeError('sin_ requires coalesced input')
    RuntimeError("result type Float can't be cast to the desired output type Long")
    [tensor([[0, 1, 2, 2], [1, 0, 0, 3]]),
     tensor([-0.5, -0.5, -4.0, 2.0], dtype=float64),
     [3, 4],
     False]
""")
def test_writes_in_place_need_coalesced_tensors(torch):
    y = matrix(torch, is_coalesced=False)
    integers = matrix(torch).long()
    return [error(lambda: y.sin_()), error(lambda: integers.sin_()), shown(y.neg_())]


@as_torch
def test_sizes_change(torch):
    x = matrix(torch)
    x.sparse_resize_((5, 6), 2, 0)
    cleared = matrix(torch).sparse_resize_and_clear_((2, 3), 1, 1)
    same = matrix(torch).resize_as_(torch.zeros(4, 4, layout=torch.sparse_coo))
    zero = matrix(torch).zero_()
    errors = [
        error(lambda: x.sparse_resize_((1, 1), 2, 0), words="shrinking the size of sparse"),
        error(lambda: x.sparse_resize_((9, 9), 1, 1), words=CHANGED),
        error(lambda: x.sparse_resize_((9, 9, 9), 2, 0)),
    ]
    return [shown(x), shown(cleared), cleared.sparse_dim(), shown(same), shown(zero), errors]


@as_torch
def test_factories_with_a_sparse_layout(torch):
    x = matrix(torch)
    results = [
        torch.zeros(2, 3, layout=torch.sparse_coo),
        torch.empty((), layout=torch.sparse_coo),
        torch.zeros_like(x.to_dense(), layout=torch.sparse_coo),
        x.new_zeros(2),
        x.new_empty((2, 3)),
        x.new(torch.tensor([[1]]), torch.tensor([2.0], dtype=torch.float64), torch.Size([3])),
        torch.sparse_coo_tensor(torch.zeros(0, 1), 12.5, []),
    ]
    errors = [
        error(lambda: torch.full((2,), 1.0, layout=torch.sparse_coo), words="full(...)"),
        error(
            lambda: torch.ones(2, layout=torch.sparse_coo), words="is not implemented for sparse"
        ),
        error(lambda: torch.zeros_like(x, memory_format=torch.preserve_format)),
        error(lambda: torch.sparse_coo_tensor([[9]] * 4, [1.0], (100001,) * 4)),
    ]
    kinds = [isinstance(x, torch.DoubleTensor), isinstance(x, torch.sparse.DoubleTensor)]
    kinds += [x.type(), x.type("torch.sparse.FloatTensor").type(), x.is_nested, x.is_sparse_csr]
    return [*map(shown, results), errors, kinds]


@as_torch("""
    tensor([6.0, 0.0, 0.0])
    [tensor([[0, 0, 1, 2, 2], [1, 2, 0, 0, 3]]),
     tensor([5.0, 0.0, 3.0, 10.0, -2.0], dtype=float64),
     [3, 4],
     True]
""")
def test_memory_is_shared(torch):
    values, indices = torch.tensor([5.0]), torch.tensor([[2]])
    x = torch.sparse_coo_tensor(indices, values, (3,))
    values[0] = 6
    indices[0, 0] = 0
    y = matrix(torch)
    y.detach()._values().add_(1)
    y.data._values().mul_(2)
    return [x.to_dense(), shown(y)]


@as_torch("""
    tensor([[2.0, 3.5, 1.0, 2.0], [2.5, 2.0, 2.0, 2.0], [6.0, 2.0, 2.0, 0.0]], dtype=float64)
    [3, 4]
""")
def test_a_dense_gradient_is_added_to_a_sparse_one(torch):
    w = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    w.grad = matrix(torch)
    (w * 2).sum().backward()
    return [w.grad, list(w.grad.shape)]


GRADIENTS = {
    "index_select": lambda torch, x: x.index_select(0, torch.tensor(ROW)),
    "narrow_copy": lambda torch, x: x.narrow_copy(1, 1, 2),
    "smm": lambda torch, x: torch.smm(x, torch.ones(4, 2, dtype=torch.float64)),
    "hspmm": lambda torch, x: torch.hspmm(x, torch.ones(4, 2, dtype=torch.float64)),
    "mul": lambda torch, x: x * torch.arange(4.0),
    "cat": lambda torch, x: torch.cat([x, 2 * x], 1),
    "norm": lambda torch, x: x.norm(),
    "slice": lambda torch, x: x[1:, 0],
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("is_coalesced", [True, False])
def test_gradients_are_those_of_finite_differences(name, is_coalesced):
    x = matrix(jaxgrad, is_coalesced=is_coalesced).requires_grad_()
    assert jaxgrad.autograd.gradcheck(
        lambda x: GRADIENTS[name](jaxgrad, x).to_dense(), (x,), masked=True
    )


def test_gradcheck_moves_all_elements_unless_masked():
    x = matrix(jaxgrad).requires_grad_()
    weights = jaxgrad.arange(12, dtype=jaxgrad.float64).reshape(3, 4)
    assert jaxgrad.autograd.gradcheck(lambda x: (x.to_dense() * weights).sum(), (x,), masked=False)
    moved = []
    jaxgrad.autograd.gradcheck(lambda x: moved.append(x._nnz()) or x.to_dense(), (x,), masked=False)
    assert set(moved) == {12}


def test_a_sparse_gradient_is_clipped_by_its_norm():
    table = jaxgrad.nn.Parameter(jaxgrad.zeros(4, 2))
    rows = jaxgrad.nn.functional.embedding(jaxgrad.tensor([1, 1, 3]), table, sparse=True)
    (rows * jaxgrad.tensor([[3.0, 0.0], [0.0, 4.0], [0.0, 12.0]])).sum().backward()
    total = jaxgrad.nn.utils.clip_grad_norm_(table, 6.5)
    assert total.item() == 13  # of the rows (3, 4) and (0, 12)
    expected = jaxgrad.tensor([[0.0, 0.0], [1.5, 2.0], [0.0, 0.0], [0.0, 6.0]])
    jaxgrad.testing.assert_close(table.grad.to_dense(), expected)


def test_a_used_leaf_keeps_its_pattern():
    fresh, used = matrix(jaxgrad).requires_grad_(), matrix(jaxgrad).requires_grad_()
    loss = (used * used).sum()
    fresh.data = matrix(jaxgrad, 1).t()
    assert fresh.is_leaf and fresh.requires_grad and fresh.shape == (4, 3)
    with pytest.raises(RuntimeError, match="changes the pattern"):
        used.data = matrix(jaxgrad, 1).t()
    loss.backward()
    assert used.grad.values().tolist() == (2 * used.detach().values()).tolist()


def test_sparse_tensors_are_pickled():
    for x in (matrix(jaxgrad, is_coalesced=False), hybrid(jaxgrad).requires_grad_()):
        y = pickle.loads(pickle.dumps(x))
        jaxgrad.testing.assert_close(y, x)
        assert y.is_coalesced() == x.is_coalesced() and y.requires_grad == x.requires_grad


def test_assert_close_compares_the_elements():
    x = matrix(jaxgrad)
    jaxgrad.testing.assert_close(x, x.clone())
    jaxgrad.testing.assert_close(x, x.to_dense(), check_layout=False)
    for other, words in (
        (matrix(jaxgrad, is_coalesced=False).coalesce(), "number of specified values"),
        (matrix(jaxgrad, 1), "Sparse COO values are not close"),
        (x.to_dense(), "layout"),
    ):
        with pytest.raises(AssertionError, match=words):
            jaxgrad.testing.assert_close(x, other)


def test_old_types_warn_once():
    parts = jaxgrad.tensor([[0]]), jaxgrad.tensor([1.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            jaxgrad.sparse.FloatTensor(*parts)
            jaxgrad.sparse.FloatTensor(*parts, (2,))
    texts = [str(warning.message) for warning in caught]
    assert all("is deprecated.  Please use torch.sparse_coo_tensor" in text for text in texts)
    assert len(texts) == len(set(texts)) <= 2


def test_what_sparse_tensors_refuse_has_the_words_of_pytorch():
    import jaxgrad as torch

    coo, csr = torch.eye(4).to_sparse(), torch.eye(4).to_sparse_csr()
    for x, words in ((coo, "reshape is not implemented for sparse"), (csr, "Sparse CSR tensors")):
        for call in (lambda x: x.reshape(-1), lambda x: x.flatten(), torch.ravel):
            with pytest.raises(RuntimeError, match=words):
                call(x)
    for x, words in ((coo, "for Sparse tensors"), (csr, "for SparseCsr tensors")):
        for call in (lambda x: x.expand(2, 4, 4), lambda x: x.repeat(2, 2), lambda x: x.tile(2)):
            with pytest.raises(RuntimeError, match=f"expand is unsupported {words}"):
                call(x)
    with pytest.raises(NotImplementedError, match=r"aten::any\.dim"):
        coo.any(0)


def test_gradients_with_other_indices_are_refused():
    import jaxgrad as torch

    x = torch.eye(3).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match=r"has 6 others, such as \(0, 1\)"):
        x.grad = torch.ones(3, 3).to_sparse()
    x.grad = 2 * torch.eye(3).to_sparse()
    assert x.grad.values().tolist() == [2, 2, 2]


def test_products_broadcast_the_sparse_tensor():
    import jaxgrad as torch

    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    rows = torch.sparse_coo_tensor([[0, 2]], values, (3, 2))
    dense = torch.arange(12.0).reshape(2, 3, 2).requires_grad_()
    for product in (lambda: rows * dense, lambda: dense * rows):
        assert product().sparse_dim() == 2
        assert product().to_dense().tolist() == [
            [[0, 2], [0, 0], [12, 20]],
            [[6, 14], [0, 0], [30, 44]],
        ]
    for function in (torch.sum, torch.compile(torch.sum)):
        grads = torch.autograd.grad(function((rows * dense).to_dense()), (values, dense))
        assert grads[0].tolist() == [[0 + 6, 1 + 7], [4 + 10, 5 + 11]]
        assert grads[1].tolist() == [[[1, 2], [0, 0], [3, 4]]] * 2
    column = torch.sparse_coo_tensor([[0, 2]], torch.tensor([[2.0], [5.0]]), (3, 1))
    assert (rows * column).to_dense().tolist() == [[2, 4], [0, 0], [15, 20]]
    assert torch.autograd.grad((rows * column).to_dense().sum(), values)[0].tolist() == [
        [2, 2],
        [5, 5],
    ]
    assert torch._sparse_broadcast_to(column, (2, 3, 2)).to_dense().tolist() == [
        [[2, 2], [0, 0], [5, 5]],
        [[2, 2], [0, 0], [5, 5]],
    ]
    with pytest.raises(RuntimeError, match="does not broadcast"):
        torch._sparse_broadcast_to(column, (3,))
    with pytest.raises(RuntimeError, match="must match the size"):
        rows * torch.ones(2, 4)


def test_products_of_zero_dimensional_tensors_promote_as_equals():
    import jaxgrad as torch

    double, single = torch.tensor(2.0, dtype=torch.float64), torch.tensor(3.0)
    for other in (single, single.to_sparse()):
        assert (double.to_sparse() * other).dtype is (other * double.to_sparse()).dtype
        assert (double.to_sparse() * other).dtype is torch.float64
    assert (single.to_sparse() * double).dtype is torch.float64


def test_a_tensor_without_elements_is_added_whatever_its_sparse_dimensions():
    import jaxgrad as torch

    values = torch.tensor([[1.0, 2.0]], requires_grad=True)
    row, nothing = torch.sparse_coo_tensor([[1]], values, (2, 2)), torch.sparse_coo_tensor((2, 2))
    for total, sign in ((nothing + row, 1), (row + nothing, 1), (nothing - row, -1)):
        assert total.sparse_dim() == 1 and total.to_dense().tolist() == [[0, 0], [sign, 2 * sign]]
        assert torch.autograd.grad(total.to_dense().sum(), values)[0].tolist() == [[sign, sign]]
    with pytest.raises(RuntimeError, match="same number of sparse dimensions"):
        row + torch.eye(2).to_sparse()


def test_sparse_tensors_are_made_of_sparse_tensors():
    import jaxgrad as torch

    for dtype in (torch.float16, torch.complex128, torch.bool):
        x = torch.eye(2).to_sparse().to(dtype)
        with pytest.warns(UserWarning, match="copy construct"):
            copied = torch.tensor(x)
        assert copied.dtype is dtype and copied.to_dense().equal(x.to_dense())
        copied.values().zero_()
        assert x.to_dense().any()
        assert x.new(2, 3).dtype is dtype
        assert x.new(x.indices(), x.values()).to_dense().equal(x.to_dense())


def test_values_stay_in_order_where_dense_parts_grow():
    import jaxgrad as torch

    x = torch.sparse_coo_tensor([[0]], torch.arange(6.0).reshape(1, 2, 3), (2, 2, 3))
    x.resize_as_(torch.sparse_coo_tensor([[0]], torch.ones(1, 2, 4), (2, 2, 4)))
    assert x.values().flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]


def test_permuted_tensors_without_elements_are_not_coalesced():
    import jaxgrad as torch

    x = torch.sparse_coo_tensor((2, 0, 3))
    assert [x.permute(dims).is_coalesced() for dims in ((0, 1, 2), (-3, -2, -1), (1, 0, 2))] == [
        True,
        False,
        False,
    ]
    assert x.transpose(0, 1).is_coalesced()


def test_narrow_copy_and_softmax_of_layouts():
    x = jaxgrad.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]).to_sparse()
    assert jaxgrad.narrow_copy(x, 1, 1, 2).to_dense().tolist() == [[0, 2], [3, 0]]
    with pytest.raises(RuntimeError, match="Invalid range to narrow"):
        jaxgrad.narrow_copy(x, 0, 1, 2)
    for function in (jaxgrad.sparse.softmax, jaxgrad.sparse.log_softmax):
        with pytest.raises(NotImplementedError, match="SparseCsrCPU"):
            function(x.to_sparse_csr(), 1)


def thirds(torch, *shape):
    """The numbers 0, 1, 2, 0, ... in a shape."""
    count = torch.Size(shape).numel()
    return (torch.arange(float(count)) % 3).reshape(shape)


def test_vmap_over_sparse_tensors():
    import jaxgrad as torch

    batch = thirds(torch, 3, 4).to_sparse()
    doubled = torch.func.vmap(lambda row: row * 2, out_dims=1)(batch)
    assert doubled.layout is torch.sparse_coo
    assert doubled.to_dense().tolist() == [[0, 2, 4], [2, 4, 0], [4, 0, 2], [0, 2, 4]]
    rows, columns = (torch.func.vmap(torch.sparse.sum, dim)(batch) for dim in (0, 1))
    assert rows.tolist() == [3, 4, 5] and columns.tolist() == [3, 3, 3, 3]
    torch.func.vmap(lambda row: row.mul_(-1))(batch)
    assert batch.to_dense().tolist() == [[0, -1, -2, 0], [-1, -2, 0, -1], [-2, 0, -1, -2]]
    with pytest.raises(ValueError, match="Expected all tensors to have the same size"):
        torch.func.vmap(torch.mul)(batch, torch.ones(4))


def test_gradients_flow_through_vmap_to_a_sparse_leaf():
    import jaxgrad as torch

    batch = thirds(torch, 2, 3).to_sparse().requires_grad_()
    torch.func.vmap(lambda row: (row * row).to_dense())(batch).sum().backward()
    assert batch.grad.to_dense().tolist() == [[0, 2, 4], [0, 2, 4]]


def test_writes_to_sparse_tensors_are_counted():
    import jaxgrad as torch

    writes = {
        "mul_": lambda x: x.mul_(2),
        "add_": lambda x: x.add_(x),
        "zero_": lambda x: x.zero_(),
        "copy_": lambda x: x.copy_(x.clone()),
        "t_": lambda x: x.t_(),
        "out": lambda x: torch.neg(x.clone(), out=x),
        "resize": lambda x: x.sparse_resize_((4, 5), 2, 0),
    }
    counts = {}
    for name, write in writes.items():
        x = torch.ones(2, 3).to_sparse()
        write(x)
        counts[name] = x._version
    assert counts == dict.fromkeys(writes, 1)
    x = torch.ones(2, 3).to_sparse()
    x.data = x * 2
    assert x._version == x.resize_as_(x)._version == 0


def test_products_of_dense_and_sparse_operands_of_other_dimensions():
    import jaxgrad as torch

    matrix, vector = thirds(torch, 2, 3), thirds(torch, 3).to_sparse()
    assert torch.mv(matrix, vector).tolist() == (matrix @ vector).tolist() == [5, 5]
    linear = torch.nn.functional.linear(vector, matrix, torch.ones(2))
    assert linear.tolist() == [6, 6]
    product = thirds(torch, 2, 2, 2) @ matrix.to_sparse_csr()
    assert product.tolist() == [[[0, 1, 2], [0, 2, 4]], [[0, 3, 6], [0, 1, 2]]]
    outer = torch.outer(torch.tensor([1.0, 2.0]), vector)
    assert outer.layout is torch.sparse_coo and outer.to_dense().tolist() == [[0, 1, 2], [0, 2, 4]]


def test_compressed_tensors_filled_and_drawn_on_their_pattern():
    import jaxgrad as torch

    x = thirds(torch, 2, 3).to_sparse_csr()
    assert torch.full_like(x, 2.5).to_dense().tolist() == [[0, 2.5, 2.5], [0, 2.5, 2.5]]
    torch.manual_seed(0)
    expected = torch.randn(4).tolist()
    for draw in (torch.randn_like, lambda x: x.clone().normal_()):
        torch.manual_seed(0)
        drawn = draw(x)
        assert drawn.values().tolist() == expected and drawn.layout is torch.sparse_csr


def test_complex_views_of_hybrid_tensors():
    import jaxgrad as torch

    pairs = torch.tensor([[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]]).to_sparse(1)
    numbers = torch.view_as_complex(pairs)
    assert numbers.to_dense().tolist() == [1 + 2j, 0, 3 + 4j]
    assert torch.view_as_real(numbers).to_dense().tolist() == pairs.to_dense().tolist()


def test_mistakes_with_sparse_tensors_among_dense_ones():
    import jaxgrad as torch

    sparse, dense = torch.ones(3).to_sparse(), torch.ones(3)
    for join in (torch.stack, torch.vstack, torch.hstack):
        with pytest.raises(RuntimeError, match="dense tensor was found at position 1"):
            join([sparse, dense])
    with pytest.raises(IndexError, match="must be 1-D strided"):
        torch.index_select(dense, 0, torch.tensor([0, 1]).to_sparse())
    with pytest.raises(RuntimeError, match="only supports memory format Preserve"):
        sparse.double(memory_format=torch.contiguous_format)
    assert sparse.float(memory_format=torch.contiguous_format) is sparse.resolve_conj() is sparse
    with pytest.raises(RuntimeError, match="batch dimensions to be non-zero"):
        torch.zeros(0, 2, 2).to_sparse_csr()
    assert [part.item() for part in torch.unbind_copy(torch.ones(2, 1).to_sparse())] == [1, 1]
