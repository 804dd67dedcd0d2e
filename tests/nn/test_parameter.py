"""The classes of parameters and buffers. Where nothing else is said, PyTorch gives these."""

import copy
import functools
import io
import pickle

import jax
import pytest

import jaxgrad
from jaxgrad import nn


def saved_and_loaded(parameter):
    file = io.BytesIO()
    jaxgrad.save(parameter, file)
    file.seek(0)
    return jaxgrad.load(file)


def applied(change):
    module = nn.Linear(2, 2)
    change(module)
    return module.weight


@pytest.mark.parametrize(
    "function",
    [
        copy.copy,
        copy.deepcopy,
        saved_and_loaded,
        lambda p: pickle.loads(pickle.dumps(p)),
        lambda p: type(p)(p.data, requires_grad=False),
        lambda p: p.requires_grad_(False),
        lambda p: p.to(p.dtype),
        lambda p: nn.ParameterList([p])[0],
        lambda p: nn.ParameterDict({"a": p})["a"],
        lambda p: applied(nn.Module.double),
        lambda p: applied(lambda module: module.to("cpu")),
        lambda p: copy.deepcopy(nn.Linear(2, 2)).weight,
    ],
)
def test_what_is_a_parameter(function):
    assert type(function(nn.Parameter(jaxgrad.ones(2)))) is nn.Parameter


@pytest.mark.parametrize(
    "function",
    [
        lambda p: p * 2,
        lambda p: p.data,
        jaxgrad.Tensor.detach,
        jaxgrad.Tensor.clone,
        lambda p: p[0],
        lambda p: p.double(),
        jaxgrad.zeros_like,
        lambda p: jaxgrad.zeros(2).add_(p),
        lambda p: nn.Linear(2, 2).state_dict()["weight"],
        lambda p: nn.Buffer(p.data),
    ],
)
def test_what_is_a_tensor(function):
    result = function(nn.Parameter(jaxgrad.ones(2)))
    assert type(result) is jaxgrad.Tensor


def test_dispatch_on_the_class():
    kind_of = functools.singledispatch(lambda value: None)
    kind_of.register(jaxgrad.Tensor, lambda value: "tensor")
    kind_of.register(nn.Parameter, lambda value: "parameter")
    parameter = nn.Parameter(jaxgrad.ones(2))
    assert (kind_of(parameter), kind_of(parameter * 2)) == ("parameter", "tensor")


def test_a_parameter_of_a_subclass_of_tensor():
    class Named(jaxgrad.Tensor):
        pass

    parameter = nn.Parameter(jaxgrad.ones(2).as_subclass(Named))
    assert type(parameter) is Named and isinstance(parameter, nn.Parameter)


def test_uninitialized_parameters_get_their_class():
    parameter, buffer = nn.UninitializedParameter(), nn.UninitializedBuffer()
    parameter.materialize((2,))
    buffer.materialize((2,))
    assert (type(parameter), type(buffer)) == (nn.Parameter, jaxgrad.Tensor)


def test_the_class_inside_of_a_compiled_function():
    module = nn.Linear(2, 1)

    @jaxgrad.compile
    def kinds(x):
        weight = module.weight
        kinds_of = type(weight), type(weight * x)
        return (weight * x).sum(), kinds_of == (nn.Parameter, jaxgrad.Tensor)

    assert kinds(jaxgrad.ones(2))[1]
    assert kinds(jaxgrad.ones(2))[1]


def test_a_compiled_function_makes_a_parameter():
    make = jaxgrad.compile(lambda x: nn.Parameter(x * 2))
    parameters = [make(jaxgrad.ones(2)) for _ in range(2)]
    assert [type(parameter) for parameter in parameters] == [nn.Parameter] * 2
    assert all(parameter.requires_grad and parameter.is_leaf for parameter in parameters)


def test_parameters_in_trees_of_jax():
    """`jax.tree.map` gives the structure that it gets."""
    parameters = {"a": nn.Parameter(jaxgrad.ones(2))}
    with jaxgrad.no_grad():
        doubled = jax.tree.map(lambda array: 2 * array, parameters)
        total = jax.tree.map(lambda a, b: a + b, parameters, doubled)
    assert total["a"].tolist() == [3, 3] and isinstance(total["a"], nn.Parameter)


def test_the_text_of_lists_and_dicts():
    entries = {"a": jaxgrad.ones(1), "b": jaxgrad.ones(2, 3)}
    assert repr(nn.ParameterDict(entries)) == (
        "ParameterDict(\n"
        "    (a): Parameter containing: [torch.FloatTensor of size 1]\n"
        "    (b): Parameter containing: [torch.FloatTensor of size 2x3]\n)"
    )
    assert repr(nn.ParameterList([3])) == "ParameterList(  (0): Object of type: int)"


def test_sizes_are_repeated_and_joined():
    size = jaxgrad.Size([2, 3])
    results = size * 2, 2 * size, (1,) + size, size + (1,)
    assert {type(result) for result in results} == {jaxgrad.Size}
    assert results[0] == (2, 3, 2, 3) and results[2] == (1, 2, 3)
