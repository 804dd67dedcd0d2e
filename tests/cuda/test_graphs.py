"""Graphs of CUDA: compiled functions; what records a block raises."""

import pytest

import jaxgrad as torch


def test_graphed_functions_and_modules():
    model = torch.nn.Linear(2, 1)
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    graphed, same = torch.cuda.make_graphed_callables((torch.square, model), ((x,), (x,)))
    assert same is model
    for _ in range(3):
        graphed(x).sum().backward()
    assert x.grad.tolist() == [[6.0, 12.0]]  # 3 * 2 * x
    model(x).sum().backward()
    assert model.weight.grad.tolist() == [[1.0, 2.0]]
    with pytest.raises(AssertionError, match="must contain only Tensors"):
        torch.cuda.make_graphed_callables(torch.square, (1.0,))


def test_recorded_blocks_raise():
    from jaxgrad.cuda.graphs import CUDAGraph

    assert CUDAGraph is torch.cuda.CUDAGraph
    for call in (CUDAGraph, lambda: torch.cuda.graph(None)):
        with pytest.raises(RuntimeError, match=r"step = torch.compile\(step\)"):
            call()
    assert torch.cuda.graph_pool_handle() != torch.cuda.graph_pool_handle()
