"""Two tensors are exchanged, with all that refers to them."""

import pytest

import jaxgrad as torch
from jaxgrad.utils import swap_tensors


def test_modules_and_optimizers_have_the_other_tensor():
    layer, other = torch.nn.Linear(2, 1), torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    weight, other.note = layer.weight, "other"
    swap_tensors(weight, other)
    assert layer.weight is weight is optimizer.param_groups[0]["params"][0]
    assert weight.shape == (3,) and weight.note == "other" and not hasattr(other, "note")
    (weight * 4).sum().backward()
    optimizer.step()
    assert weight.tolist() == [-1, -1, -1] and other.shape == (1, 2) and other.grad is None


def test_classes_and_views():
    memory, plain = torch.zeros(3), torch.nn.Parameter(torch.ones(2))
    view = memory[:2]
    swap_tensors(view, plain)
    assert type(view) is torch.nn.Parameter and type(plain) is torch.Tensor
    plain.add_(5)
    assert memory.tolist() == [5, 5, 0] and view.tolist() == [1, 1] and plain._base is memory


def test_graphs_of_before_raise():
    leaf, other = torch.ones(2, requires_grad=True), torch.ones(2)
    loss = (leaf * 3).sum()
    swap_tensors(leaf, other)
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        loss.backward()
    assert other.requires_grad and other.grad is None
    (other * 2).sum().backward()
    assert other.grad.tolist() == [2, 2]


def test_tensors_that_cannot_be_exchanged():
    one = torch.ones(1)

    class Tagged(torch.Tensor):
        __slots__ = ("tag",)

    with pytest.raises(RuntimeError, match="different slots"):
        swap_tensors(one, torch.ones(1).as_subclass(Tagged))


def test_a_compiled_function_sees_the_other_tensor():
    kept, other = torch.ones(2), torch.ones(3) * 5
    step = torch.jit(lambda x: x * kept.sum())
    assert step(torch.tensor(1.0)).item() == 2
    swap_tensors(kept, other)
    assert step(torch.tensor(1.0)).item() == 15
