"""Operators of `torch.ops.aten` that are functions in Python."""

import pytest

import jaxgrad as torch

aten = torch.ops.aten


def test_functions_by_the_names_of_operators():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    statistics = torch.zeros(2), torch.ones(2)
    normalized = aten.batch_norm.default(x, None, None, *statistics, False, 0.1, 0.0, False)
    assert normalized.tolist() == x.tolist()
    assert aten.dropout.default(x, 0.5, False).tolist() == x.tolist()
    assert aten.linalg_inv.default(torch.eye(2) * 2).tolist() == [[0.5, 0], [0, 0.5]]
    assert aten.sym_size.int(x, 1) == 2
    assert [t.shape for t in aten.broadcast_tensors.default([x, x[0]])] == [(2, 2)] * 2
    zeros = aten.zeros.default([2], dtype=torch.int64, device=torch.device("cpu"), pin_memory=False)
    assert zeros.tolist() == [0, 0]


def test_forms_of_overloads():
    image = torch.tensor([[[[1.0, 2.0]]]])
    enlarged = aten.upsample_nearest2d.vec(image, None, [1.0, 2.0])
    assert enlarged.tolist() == [[[[1, 1, 2, 2]]]]
    losses = aten.nll_loss_nd.default(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]), None, 0)
    assert losses.tolist() == [2]


def test_names_and_schemas():
    add = aten.add.Tensor
    assert (str(add), add.name(), add.overloadpacket is aten.add) == (
        *("aten.add.Tensor", "aten::add.Tensor"),
        True,
    )
    assert (
        str(add._schema)
        == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    )
    assert {"default", "dim_IntList"} <= {*aten.sum.overloads()}
    with pytest.raises(NotImplementedError, match=r"aten\.no_such_name\.default is not"):
        aten.no_such_name.default()


def test_masks_are_indices():
    x, mask = torch.arange(6.0).reshape(2, 3), torch.tensor([True, False, True])
    for index in (aten.index, aten.index.Tensor):
        assert index(x, [None, mask]).tolist() == [[0, 2], [3, 5]]
    with pytest.raises(IndexError, match="at least one index must be provided"):
        aten.index.Tensor(x, [])
    zero, expected = torch.tensor(-1.0), [[-1, 1, -1], [-1, 4, -1]]
    assert aten.index_put.default(x, [None, mask], zero).tolist() == expected
    aten.index_put_(x, [None, mask], zero)
    assert x.tolist() == expected
