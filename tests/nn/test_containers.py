"""Sequences and dicts of modules and parameters."""

from collections import OrderedDict

import pytest

import jaxgrad as torch
from jaxgrad import nn


def test_products_of_sequences_share_their_modules():
    net = nn.Sequential(nn.ReLU(), nn.Linear(1, 1))
    for twice in (net * 2, 2 * net):
        assert [module is net[i % 2] for i, module in enumerate(twice)] == [True] * 4
        assert len(list(twice.parameters())) == 2
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        net * 0
    with pytest.raises(TypeError, match="unsupported operand type"):
        net * 1.5


def test_bilinear_of_no_features():
    with pytest.raises(ValueError, match="in1_features must be > 0, but got 0"):
        nn.Bilinear(0, 1, 1)


def test_products_in_place():
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    same = net
    net *= 2
    assert net is same and [type(module) for module in net] == [nn.ReLU, nn.Tanh] * 2
    for factor, error in ((0, ValueError), ("a", TypeError)):
        with pytest.raises(error):
            net *= factor


class Pair(nn.Sequential):
    """A sequence whose constructor takes no modules."""

    def __init__(self):
        super().__init__(nn.ReLU(), nn.Tanh())


class Layers(nn.ModuleList):
    def __init__(self, count):
        super().__init__(nn.ReLU() for _ in range(count))


def test_sums_and_products_of_subclasses_are_plain():
    for result in (Pair() + Pair(), Pair() * 2, 2 * Pair()):
        assert type(result) is nn.Sequential and len(result) == 4
    assert type(Layers(2) + [nn.Tanh()]) is nn.ModuleList


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda net: net + 3, ValueError, "add operator supports only objects of Sequential"),
        (lambda net: net + [nn.ReLU()], ValueError, "add operator supports only objects"),
        (lambda net: net.__iadd__(nn.ReLU()), ValueError, "add operator supports only objects"),
        (lambda net: net.insert(-5, nn.ReLU()), IndexError, "Index out of range: -5"),
        (lambda net: net.insert(3, nn.ReLU()), IndexError, "Index out of range: 3"),
        (lambda net: net.insert(1, [nn.ReLU()]), AssertionError, "module should be of type"),
    ],
)
def test_what_a_sequence_refuses(call, error, words):
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    with pytest.raises(error, match=words):
        call(net)
    assert len(net) == 2


@pytest.mark.parametrize("kind", (nn.ModuleDict, nn.ParameterDict))
@pytest.mark.parametrize(
    "values, error, words",
    [
        (3, TypeError, "update should be called with an iterable of key/value pairs, but got int"),
        ([3], TypeError, "update sequence element #0 should be Iterable"),
        ([("a", None), ("b",)], ValueError, "element #1 has length 1; 2 is required"),
        ([("a", None, 1)], ValueError, "element #0 has length 3; 2 is required"),
    ],
)
def test_what_dicts_are_not_updated_by(kind, values, error, words):
    container = kind()
    with pytest.raises(error, match=words):
        container.update(values)
    assert len(container) == 0


def test_order_of_the_parameters_of_a_dict():
    """PyTorch sorts the keys of a plain dict, so optimizers hold the parameters in this order."""
    values = {"b": torch.ones(1), "a": torch.ones(2)}
    assert list(nn.ParameterDict(values)) == ["a", "b"]
    assert [name for name, _ in nn.ParameterDict(values).named_parameters()] == ["a", "b"]
    for ordered in (OrderedDict(values), list(values.items())):
        assert list(nn.ParameterDict(nn.ParameterDict(ordered))) == ["b", "a"]


def test_keys_of_dicts_of_parameters():
    weights = nn.ParameterDict({"w": torch.ones(1)})
    for call in (
        lambda: weights["training"],
        lambda: weights.pop("q"),
    ):
        with pytest.raises(AttributeError, match="object has no attribute"):
            call()
    for call in (lambda: weights[1], lambda: weights.update({1: torch.ones(1)})):
        with pytest.raises(TypeError, match="cannot be used as a key as it is not a string"):
            call()
    assert {"q": 1} | weights == {"q": 1, "w": weights["w"]}


@pytest.mark.parametrize("kind", (nn.ParameterList, nn.ParameterDict))
def test_containers_of_parameters_are_not_called(kind):
    with pytest.raises(RuntimeError, match=f"{kind.__name__} should not be called"):
        kind()(torch.ones(1))
