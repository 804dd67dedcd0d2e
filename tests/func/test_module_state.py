"""Modules as functions of their parameters."""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad


def functions(torch):
    """functional_call and stack_module_state."""
    return torch.func.functional_call, torch.func.stack_module_state


def linear(torch, weight, bias):
    layer = torch.nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([weight]))
        layer.bias.fill_(bias)
    return layer


@pytest.mark.row("K17")
@as_torch
def test_a_call_with_other_parameters(torch):
    call, _ = functions(torch)
    layer, x = linear(torch, [1.0, 2.0], 0.5), torch.tensor([3.0, 4.0])
    weight = torch.tensor([[5.0, 6.0]], requires_grad=True)
    output = call(layer, {"weight": weight}, x)
    output.sum().backward()
    others = [
        call(layer, ({"weight": weight.detach()}, {"bias": torch.ones(1)}), (x,)),
        call(layer, {"unknown": weight}, None, {"input": x}),
        call(layer, {"weight": weight, "bias": torch.ones(1)}, x, strict=True),
    ]
    return [
        output,
        weight.grad,
        layer.weight,
        layer.weight.grad,
        layer.bias.grad,
        others,
        error(lambda: call(layer, {"weight": weight}, x, strict=True)),
        error(lambda: call(layer, {"weight": weight, "bias": x, "z": x}, x, strict=True)),
        error(call, layer, {"weight": weight, "x.y": weight}, x),
        error(call, layer, [{"weight": weight}, {"weight": weight}], x),
        error(call, layer, 3, x),
        error(call, layer, [3], x),
        error(call, layer, {"weight": 3}, x),
        isinstance(layer.weight, torch.nn.Parameter),
    ]


@pytest.mark.row("K17")
@as_torch("""
    tensor([9.0])
    tensor([6.0], requires_grad=True)
    tensor([9.0])
    tensor([12.0])
    ValueError(
     "functional_call got multiple values for keys ['0.weight', '1.weight'], which are "
     'tied. Consider using tie_weights=False')
""")
def test_parameters_with_two_names(torch):
    call, _ = functions(torch)
    pair = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False))
    pair[1].weight = pair[0].weight
    with torch.no_grad():
        pair[0].weight.fill_(2.0)
    three, four = torch.full((1, 1), 3.0), torch.full((1, 1), 4.0)
    x = torch.ones(1)
    return [
        call(pair, {"0.weight": three}, x),
        call(pair, {"0.weight": three}, x, tie_weights=False),
        call(pair, {"0.weight": three}, x, strict=True),
        call(pair, {"0.weight": three, "1.weight": four}, x, tie_weights=False),
        error(call, pair, {"0.weight": three, "1.weight": four}, x),
    ]


@pytest.mark.row("K17")
@as_torch("""
    {'running_mean': tensor([0.20000000298023224])}
    tensor([0.0])
    tensor([1.100000023841858])
""")
def test_buffers_that_are_written_to(torch):
    call, _ = functions(torch)
    norm = torch.nn.BatchNorm1d(1, affine=False)
    state = {"running_mean": torch.zeros(1)}
    call(norm, state, torch.tensor([[1.0], [3.0]]))
    return state, norm.running_mean, norm.running_var


@pytest.mark.row("K18")
@as_torch
def test_the_state_of_several_modules(torch):
    _, stack = functions(torch)
    models = [linear(torch, [1.0, 2.0], 0.5), linear(torch, [3.0, 4.0], 1.5)]
    params, buffers = stack(models)
    norms = [torch.nn.BatchNorm1d(1), torch.nn.BatchNorm1d(1)]
    relu = torch.nn.ReLU()
    return [
        params,
        [parameter.is_leaf for parameter in params.values()],
        buffers,
        stack(norms)[1],
        error(stack, []),
        error(stack, [models[0], relu]),
        error(stack, [models[0], linear(torch, [1.0, 1.0], 1.0).eval()]),
    ]


@pytest.mark.row("K17")
def test_calls_with_other_parameters_compiled():
    """One program for all parameters."""
    call, _ = functions(jaxgrad)
    layer = linear(jaxgrad, [1.0, 2.0], 0.5)
    apply = jaxgrad.jit(lambda weight, x: call(layer, {"weight": weight}, x))
    x = jaxgrad.tensor([3.0, 4.0])
    for number in (1.0, 2.0):
        assert apply(jaxgrad.full((1, 2), number), x).item() == 7 * number + 0.5
    assert len(apply.traces) == 1
    assert layer(x).item() == 11.5
