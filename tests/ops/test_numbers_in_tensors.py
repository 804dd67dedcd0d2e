"""Tensors in the place of numbers: each call takes the number that its tensor has by then."""

import pytest
from helpers.as_torch import as_torch

import jaxgrad


def calls(torch):
    """By name: a function of a number in a tensor, and two numbers."""
    x = torch.arange(12, dtype=torch.float64).reshape(3, 4)
    one, cat, long = torch.ones(2), torch.cat, torch.arange(200.0)
    functional = torch.nn.functional
    return {
        "narrow": (lambda k: torch.narrow(x, 1, k, 2), 1, 2),
        "narrow of a method": (lambda k: x.narrow(1, 1, k), 1, 2),
        "select": (lambda k: x.select(1, k), 1, 2),
        "roll": (lambda k: torch.roll(x, k, 1), 1, 2),
        "split": (lambda k: torch.split(x, k, 1), 2, 3),
        "chunk": (lambda k: x.chunk(k, 1), 2, 4),
        "topk": (lambda k: x.topk(k).values, 1, 2),
        "kthvalue": (lambda k: torch.kthvalue(x, k).values, 1, 3),
        "kthvalue of many": (lambda k: torch.kthvalue(long, k, 0).values, 3, 7),
        "tril": (lambda k: x.tril(k), 0, 1),
        "triu_": (lambda k: x.clone().triu_(k), 0, 1),
        "diagonal": (lambda k: x.diagonal(k), 0, 1),
        "unsqueeze": (lambda k: x.unsqueeze(k), 0, 2),
        "sum": (lambda k: x.sum(k), 0, 1),
        "cumsum": (lambda k: x.cumsum(k), 0, 1),
        "softmax": (lambda k: x.softmax(k), 0, 1),
        "transpose": (lambda k: x.transpose(0, k), 0, 1),
        "index_select": (lambda k: x.index_select(k, torch.tensor([0])), 0, 1),
        "stack": (lambda k: torch.stack([one, one + 1], k), 0, 1),
        "cat": (lambda k: cat([x, x], k), 0, 1),
        "out": (lambda k: cat([one, one], 0, out=torch.zeros(4)).narrow(0, 0, k), 1, 2),
        "pad": (lambda k: functional.pad(one, (0, k)), 1, 2),
        "one_hot": (lambda k: functional.one_hot(torch.tensor([0]), k), 1, 2),
        "isclose": (lambda k: torch.isclose(x, x + 0.1, k), 0.0, 2.0),
        "nan_to_num": (lambda k: (x / 0).nan_to_num(k, posinf=1.0), 0.0, 2.0),
        "leaky_relu": (lambda k: functional.leaky_relu(x - 5, k), 0.5, 0.25),
        "matrix_power": (lambda k: torch.matrix_power(x[:, :3], k), 1, 2),
        "extents of repeat": (lambda k: one.repeat(k, 2), 1, 3),
        "one extent of repeat": (lambda k: one.repeat(k), 1, 3),
        "extents of expand": (lambda k: one.expand(k, 2), 1, 3),
        "extents of view": (lambda k: x.view(k, -1), 2, 6),
        "extents of reshape": (lambda k: x.reshape(-1, k), 2, 6),
        "extents of permute": (lambda k: x.permute(k, 1 - k), 0, 1),
    }


@as_torch
def test_numbers_in_tensors(torch):
    return {
        name: [call(torch.tensor(number)) for number in numbers]
        for name, (call, *numbers) in calls(torch).items()
    }


@as_torch("""
    tensor([3.0, 0.0, 1.0, 2.0])
    tensor([2.0, 3.0, 0.0, 1.0])
    tensor([1.0, 2.0, 3.0, 0.0])
""")
def test_a_tensor_that_a_write_changes(torch):
    x, k, results = torch.arange(4.0), torch.tensor(1), []
    for _ in range(3):
        results.append(x.roll(k))
        k += 1
    return results


@as_torch("""
    tensor([0.0, 2.0, 4.0, 0.0])
    tensor([0.0, 0.0, 4.0, 6.0])
""")
def test_gradients_of_narrowed_tensors(torch):
    gradients = []
    for k in (1, 2):
        x = torch.arange(4.0, requires_grad=True)
        (x.narrow(0, torch.tensor(k), 2) ** 2).sum().backward()
        gradients.append(x.grad)
    return gradients


def test_a_compiled_function_reads_the_number_of_each_call():
    k = jaxgrad.tensor(1)
    roll = jaxgrad.jit(lambda x: x.roll(k))
    x = jaxgrad.arange(4.0)
    assert roll(x).tolist() == [3.0, 0.0, 1.0, 2.0]
    k += 1
    assert roll(x).tolist() == [2.0, 3.0, 0.0, 1.0]


@pytest.mark.parametrize("name", ["repeat", "expand", "view"])
def test_a_vector_is_no_list_of_ints(name):
    with pytest.raises(TypeError, match=rf"{name}\(\)"):
        getattr(jaxgrad.ones(4), name)(jaxgrad.tensor([2, 2]))


@pytest.mark.parametrize("name", ["stack", "cat", "hstack", "concat"])
def test_a_number_in_a_list_of_tensors_is_refused(name):
    join = getattr(jaxgrad, name)
    for call in (join, jaxgrad.jit(join)):
        with pytest.raises(TypeError, match="expected Tensor as element 0 in argument 0, but got"):
            call([1.0, 2.0])
