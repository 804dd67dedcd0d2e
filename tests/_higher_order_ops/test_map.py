"""`map` of slices: its values and gradients are those of the closed form."""

import pytest

import jaxgrad as torch
from jaxgrad import _higher_order_ops


@pytest.mark.parametrize("compile", [False, True])
def test_map_of_slices(compile):
    xs = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    scale = torch.tensor([10.0, 100.0], requires_grad=True)

    def products(xs, scale):
        return _higher_order_ops.map(lambda x, y: {"product": x * y, "sum": x.sum()}, xs, scale)

    results = (torch.compile(products) if compile else products)(xs, scale)
    assert results["product"].tolist() == [[10, 200], [30, 400]]
    assert results["sum"].tolist() == [3, 7]
    (results["product"].sum() + results["sum"].sum()).backward()
    assert xs.grad.tolist() == [[11, 101], [11, 101]] and scale.grad.tolist() == [4, 6]
