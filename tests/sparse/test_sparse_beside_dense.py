"""Sparse tensors in functions whose results are dense, and in methods of the class."""

import pytest

import jaxgrad as torch

MATRIX = [[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_methods_taken_from_the_class(layout):
    """As in PyTorch, `Tensor.detach(x)` is `x.detach()`, whatever the layout."""
    x = torch.tensor(MATRIX).to_sparse(layout=layout).requires_grad_()
    part = torch.Tensor.detach(x)
    assert part.layout is layout and not part.requires_grad and part.to_dense().tolist() == MATRIX
    with pytest.raises(TypeError, match="layout tensor to numpy"):
        torch.Tensor.numpy(part)
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        torch.Tensor.tolist(part)
    assert torch.Tensor.type(part).startswith("torch.sparse")
    assert not torch.Tensor.is_contiguous(torch.eye(2).to_sparse())
    for name in ("data_ptr", "untyped_storage", "storage", "set_", "is_shared"):
        with pytest.raises((RuntimeError, NotImplementedError)):
            getattr(torch.Tensor, name)(part)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.Tensor.resize_(part, 0)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.Tensor.is_set_to(part, part)
    assert str(layout) in torch.Tensor.__repr__(part).replace("indices=", "layout=torch.sparse_coo")
    assert torch.Tensor.__getitem__(part, 1).to_dense().tolist() == MATRIX[1]
    assert torch.Tensor.__deepcopy__(part, {}).layout is layout
    assert torch.Tensor.zero_(part.clone()).to_dense().count_nonzero() == 0
    assert torch.Tensor.module_load(part, part).to_dense().tolist() == MATRIX
    if layout is torch.sparse_coo:
        assert torch.Tensor.stride(part) == (0, 0)
        assert torch.Tensor.transpose_(part, 0, 1).to_dense().tolist() == [[0, 3], [2, 0], [0, 4]]
        assert torch.Tensor.t_(part).to_dense().tolist() == MATRIX
        assert torch.Tensor.__getitem__(part, slice(1, 2)).to_dense().tolist() == MATRIX[1:]
        assert torch.Tensor.new(part, 2, 3).layout is layout
        part_of_other = torch.Tensor.resize_as_(part.clone(), torch.eye(3).to_sparse())
        assert part_of_other.shape == (3, 3) and torch.Tensor.__div__(part, 2).is_sparse
    else:
        with pytest.raises(NotImplementedError, match="t_"):
            torch.Tensor.t_(part)
        assert part.to_dense().tolist() == MATRIX


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_losses_and_outer_products_of_sparse_operands_are_dense(layout):
    dense = torch.tensor(MATRIX)
    x, target = dense.to_sparse(layout=getattr(torch, layout)), torch.full((2, 3), 0.5)
    F = torch.nn.functional
    for reduction in ("none", "sum"):
        options = {"reduction": reduction}
        loss = F.kl_div(x, target, **options)
        assert loss.layout is torch.strided
        assert loss.tolist() == F.kl_div(dense, target, **options).tolist()
        loss = F.soft_margin_loss(target, x, **options)
        assert loss.tolist() == F.soft_margin_loss(target, dense, **options).tolist()
    x.requires_grad_()
    left, right = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0, 3.0])
    result = torch.addr(x, left, right, beta=2)
    assert result.tolist() == [[1, 4, 3], [8, 0, 14]]  # PyTorch's for CSR
    (result * torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
    assert x.grad.to_dense().tolist() == [[0, 4, 0], [8, 0, 12]]
    assert torch.addr(x, left, right, beta=0).tolist() == [[1, 0, 3], [2, 0, 6]]


def test_compressed_tensors_like_others_keep_the_indices():
    x = torch.tensor(MATRIX).to_sparse_csr()
    y = torch.empty_like(x)
    assert y.crow_indices().tolist() == [0, 1, 3] and y.col_indices().tolist() == [1, 0, 2]
    assert torch.empty_like(x, dtype=torch.float64).dtype is torch.float64
    assert torch.zeros_like(x)._nnz() == 0
    product = (x.requires_grad_() * 2).grad_fn
    assert product.name() == "MulBackward0"


def test_mask_that_is_the_tensor():
    """PyTorch returns the tensor, with its elements at equal indices apart."""
    x = torch.sparse_coo_tensor([[0, 1, 0], [1, 2, 1]], [1.5, -2.0, 0.25], (2, 3))
    masked = x.sparse_mask(x)
    assert masked._values().tolist() == [1.5, -2.0, 0.25]
    assert x.coalesce().sparse_mask(x)._values().tolist() == [1.75, -2.0, 1.75]


def test_sums_of_integers_over_some_dimensions():
    """`torch.sparse.sum` with `dim` adds them in their dtype, other sums in int64."""
    x = torch.tensor([[1, 0], [2, 3]], dtype=torch.int32).to_sparse()
    assert torch.sparse.sum(x, 0).dtype is torch.int32
    assert torch.sparse.sum(x, 0).to_dense().tolist() == [3, 3]
    assert torch.sparse.sum(x).dtype is torch.sparse.sum(x, (0, 1)).dtype is torch.int64
    assert x.sum(0).dtype is torch.int64


def test_layouts_of_parts_of_compressed_tensors():
    x = torch.tensor([[[1.0, 5.0], [0.0, 0.0]], [[2.0, 6.0], [3.0, 7.0]]])
    x = x.to_sparse_csr(dense_dim=1)
    part = x.select(-1, 1)
    assert part.layout is torch.sparse_csr and part.to_dense().tolist() == [[5, 0], [6, 7]]
    blocks = torch.tensor([[1.0, 2.0], [0.0, 3.0]]).to_sparse_bsr((2, 1))
    assert blocks.H.layout is torch.sparse_bsc and blocks.H.to_dense().tolist() == [[1, 0], [2, 3]]
    assert torch.nn.functional.linear(part.to_sparse_csc(), part.to_sparse_csc()).layout is (
        torch.sparse_csr
    )


def test_one_element_is_coalesced():
    empty = torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0), (2, 2))
    one = torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2))
    assert torch.cat([empty, empty]).is_coalesced() and torch.stack([empty, one]).is_coalesced()
    assert not torch.cat([one, one]).is_coalesced()


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("bsr", [[1, 2, 0, 0], [5, 6, 0, 0]]),
        ("csc", [[1, 0, 0, 0], [0, 6, 0, 0]]),
        ("bsc", [[1, 2, 0, 0], [5, 6, 0, 0]]),
    ],
)
def test_gradients_of_dense_tensors_at_zeros_in_blocks(layout, expected):
    """A block holds zeros too, and so they are elements with a gradient."""
    x = torch.tensor([[1.0, 0, 0, 0], [0, 2, 0, 0]], requires_grad=True)
    options = {"blocksize": (2, 2)} if layout[0] == "b" else {}
    blocks = x.to_sparse(layout=getattr(torch, f"sparse_{layout}"), **options)
    (blocks.to_dense() * torch.arange(1.0, 9).reshape(2, 4)).sum().backward()
    assert x.grad.tolist() == expected
    zeros = torch.tensor([[-0.0, 1.0]]).to_sparse_bsr((1, 2))
    assert zeros.values().signbit().tolist() == [[[True, False]]]


def test_cross_entropy_with_sparse_probabilities():
    x = (torch.arange(8.0, dtype=torch.float64).reshape(2, 4) / 5).requires_grad_()
    target = torch.tensor([[1.0, 0, 0, 0], [0, 0.5, 0, 0.5]], dtype=torch.float64)
    loss = torch.nn.functional.cross_entropy(x, target.to_sparse())
    assert loss.item() == pytest.approx(1.5111541217815445)
    loss.backward()
    torch.testing.assert_close(x.grad, (x.detach().softmax(1) - target) / 2)
    with pytest.raises(NotImplementedError, match="_log_softmax"):
        torch.nn.functional.cross_entropy(target.to_sparse(), x.detach())


def test_dimensions_that_a_dense_tensor_has_not():
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.ones(3).to_sparse_csr()
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.ones(2, 2).to_sparse_bsr((1, 1), dense_dim=1)
    with pytest.raises(RuntimeError, match="dense_dim argument must be in"):
        torch.ones(2, 2).to_sparse_csr(dense_dim=1)
