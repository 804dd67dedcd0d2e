"""What hooks learn of the backward pass that runs them."""

import pytest

import jaxgrad as torch
from jaxgrad import _C


def _node(tensor):
    return torch.autograd.graph.get_gradient_edge(tensor).node


def _graph():
    x, y = (torch.tensor([2.0], requires_grad=True) for _ in range(2))
    product = x * y
    return x, y, product, product * 2, product.cos()


def test_the_nodes_that_a_pass_runs():
    x, y, product, result, other = _graph()
    nodes, answers = [_node(tensor) for tensor in (x, y, product, other)], []
    product.register_hook(lambda _: answers.append([*map(_C._will_engine_execute_node, nodes)]))
    result.backward(inputs=(x, product), retain_graph=True)
    result.backward(retain_graph=True)
    torch.autograd.grad(result, product, retain_graph=True)
    assert answers[:2] == [[True, False, True, False], [True, True, True, False]]
    with pytest.raises(RuntimeError, match=r"currently running autograd.grad\(\)"):
        torch.autograd.grad(result, x)
    with pytest.raises(RuntimeError, match="during the backward pass"):
        _C._will_engine_execute_node(nodes[0])
    nodes[:] = [3]
    with pytest.raises(RuntimeError, match="expects an grad_fn"):
        result.backward()
    nodes.clear()


def test_the_number_of_a_pass():
    numbers = []
    x = torch.tensor(1.0, requires_grad=True).clone()
    x.register_hook(lambda _: numbers.append(_C._current_graph_task_id()))
    for _ in range(3):
        x.backward(retain_graph=True)
    first = numbers[0]
    assert numbers == [first, first + 1, first + 2] and _C._current_graph_task_id() == -1


def test_the_order_of_a_pass():
    orders = []
    x = torch.tensor(1.0, requires_grad=True).sin().exp()
    x.register_hook(lambda _: orders.append(_C._current_graph_task_execution_order()))
    with torch.autograd.set_multithreading_enabled(False):
        x.backward(retain_graph=True)
    assert [node.name() for node in orders[0]] == ["ExpBackward0", "SinBackward0", "AccumulateGrad"]
    with pytest.raises(RuntimeError, match="executed with multithreading disabled"):
        x.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="only be called during the backward pass"):
        _C._current_graph_task_execution_order()
    orders.clear()


def test_leaves_have_nodes_of_one_class():
    x = torch.ones(1, requires_grad=True)
    assert isinstance((x * 2).grad_fn.next_functions[0][0], _C._functions.AccumulateGrad)
