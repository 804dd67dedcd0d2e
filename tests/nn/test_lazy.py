"""Lazy modules: before and after their first call, and what loads into them."""

import copy
import pickle

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad


def states(module):
    return [(name, list(tensor.shape)) for name, tensor in module.state_dict().items()]


@pytest.mark.slow
@as_torch
def test_lazy_layers_become_plain(torch):
    nn, results = torch.nn, []
    for count in (1, 2, 3):
        for name in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm"):
            arguments = (4, 2) if name.startswith("Conv") else ()
            layer = getattr(nn, f"Lazy{name}{count}d")(*arguments)
            before = repr(layer), list(layer.state_dict())
            output = layer(torch.ones(2, 3, *[2] * count))
            results.append((*before, repr(layer), states(layer), list(output.shape)))
    return results


@as_torch
def test_a_lazy_parameter_before_and_after(torch):
    nn = torch.nn
    layer = nn.LazyLinear(3)
    weight, (first, _) = layer.weight, layer.parameters()
    kinds = nn.Parameter, nn.UninitializedParameter
    before = [isinstance(weight, kind) for kind in kinds], repr(weight), weight.requires_grad
    is_kept = layer.state_dict()["weight"] is weight
    layer(torch.ones(2, 4))
    after = [isinstance(weight, kind) for kind in kinds], list(weight.shape), first is layer.weight
    wide = nn.LazyLinear(2).double()
    unused = nn.LazyLinear(1).weight
    words = "Attempted to use an uninitialized parameter"
    return [
        before,
        is_kept,
        after,
        str(wide.weight.dtype),
        str(wide(torch.ones(1, 2, dtype=torch.float64)).dtype),
        error(lambda: unused.shape, words="Can't access the shape of an uninitialized parameter"),
        error(lambda: unused + 1, words=words),
        error(lambda: torch.matmul(torch.ones(1, 1), unused), words=words),
        error(nn.LazyConv2d(4, 2, groups=2), torch.ones(1, 3, 3, 3), words="must be divisible"),
        error(nn.LazyConv2d(4, 2), torch.ones(3), words="Expected 3D (unbatched) or 4D (batched)"),
    ]


@pytest.mark.slow
@as_torch("""
    tensor([[1.0, 1.0, 1.0]])
    tensor([[1.5, 1.5, 1.5]])
""")
def test_optimizers_made_before_the_first_call(torch):
    weights = []
    for make in (torch.optim.SGD, torch.optim.Adam):
        layer = torch.nn.LazyLinear(1, bias=False)
        optimizer = make(layer.parameters(), lr=0.5)
        optimizer.step()
        x = torch.ones(2, 3)
        layer(x)
        with torch.no_grad():
            layer.weight.fill_(2.0)
        layer(x).sum().backward()
        optimizer.step()
        weights.append(layer.weight.detach())
    return weights


@as_torch
def test_state_dicts_of_lazy_modules(torch):
    nn = torch.nn

    def lazy():
        return nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())

    full, empty = lazy(), lazy()
    full(torch.ones(2, 5))
    loaded = repr(empty.load_state_dict(full.state_dict()))
    same = bool((empty[0].weight == full[0].weight).all())
    before = repr(empty)
    empty(torch.ones(2, 5))
    other = nn.LazyLinear(3)
    other.load_state_dict(nn.Linear(2, 3).state_dict())
    words = "Can't access the shape of an uninitialized parameter"
    return [
        (loaded, same, before, repr(empty)),
        repr(lazy().load_state_dict(lazy().state_dict())),
        error(other, torch.ones(1, 4), words="is not equal to in_features from self.weight"),
        error(nn.Linear(2, 3).load_state_dict, nn.LazyLinear(3).state_dict(), words=words),
    ]


def test_copies_of_lazy_modules_are_initialized_alone():
    layer = jaxgrad.nn.LazyLinear(3)
    other = copy.deepcopy(layer)
    other(jaxgrad.ones(1, 2))
    assert type(other) is jaxgrad.nn.Linear and layer.has_uninitialized_params()


@pytest.mark.slow
def test_the_first_call_is_not_compiled():
    layer, x = jaxgrad.nn.LazyLinear(3), jaxgrad.ones(1, 2)
    with pytest.raises(RuntimeError, match="call the module once before"):
        jaxgrad.jit(lambda x: layer(x))(x)
    layer(x)
    assert jaxgrad.jit(lambda x: layer(x))(x).allclose(layer(x))


def test_a_lazy_module_is_pickled_before_its_first_call():
    restored = pickle.loads(pickle.dumps(jaxgrad.nn.LazyLinear(3)))
    assert restored.weight.dtype is jaxgrad.float32 and jaxgrad.nn.parameter.is_lazy(
        restored.weight
    )
    assert restored(jaxgrad.ones(1, 4)).shape == (1, 3)
    assert repr(restored) == "Linear(in_features=4, out_features=3, bias=True)"
    again = pickle.loads(pickle.dumps(restored))
    assert again.weight.tolist() == restored.weight.tolist()


def test_a_shallow_copy_of_a_lazy_module():
    layer = jaxgrad.nn.LazyLinear(3)
    restored = copy.copy(layer)
    assert restored(jaxgrad.ones(2, 4)).shape == (2, 3)
    assert type(restored) is jaxgrad.nn.Linear and type(layer) is jaxgrad.nn.LazyLinear
    assert layer.weight is restored.weight  # as in PyTorch
