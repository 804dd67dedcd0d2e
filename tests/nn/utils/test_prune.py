"""Pruning against PyTorch."""

import pytest
from helpers.as_torch import as_torch, error, parameters

import jaxgrad
from jaxgrad import nn
from jaxgrad.nn.utils import prune


def prune_of(torch):
    """The module; PyTorch does not import it by itself."""
    return __import__(f"{torch.__name__}.nn.utils.prune", fromlist=["prune"])


def linear(torch, rows=2, columns=3):
    layer = torch.nn.Linear(columns, rows)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.1, -0.2, 0.3], [0.5, -0.05, 0.6]]))
        layer.bias.copy_(torch.tensor([0.25, -0.5]))
    return layer


def shown(layer):
    return layer.weight, list(layer.state_dict()), dict(layer.named_buffers())


@as_torch
def test_signatures_of_pruning(torch):
    prune = prune_of(torch)
    names = (
        "identity",
        "random_unstructured",
        "l1_unstructured",
        "random_structured",
        "ln_structured",
        "global_unstructured",
        "custom_from_mask",
        "remove",
        "is_pruned",
    )
    signatures = {name: parameters(getattr(prune, name)) for name in names}
    classes = ("RandomUnstructured", "L1Unstructured", "RandomStructured", "LnStructured")
    for name in (*classes, "CustomFromMask", "PruningContainer"):
        signatures[name] = parameters(getattr(prune, name))
        signatures[f"{name}.apply"] = parameters(getattr(prune, name).apply)
    return signatures


@pytest.mark.slow
@as_torch
def test_pruning_again_and_again(torch):
    prune, layer = prune_of(torch), linear(torch)
    results = [prune.is_pruned(layer)]
    assert prune.l1_unstructured(layer, "weight", amount=0.34) is layer
    results += [shown(layer), prune.is_pruned(torch.nn.Sequential(layer))]
    prune.ln_structured(layer, "weight", 1, n=2, dim=-1)
    results.append(shown(layer))
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    prune.custom_from_mask(layer, "weight", mask)
    prune.identity(layer, "weight")
    results.append(shown(layer))
    (hook,) = layer._forward_pre_hooks.values()
    hook = getattr(hook, "function", hook)
    results.append([type(method).__name__ for method in hook] + [len(hook), type(hook[0]).__name__])
    layer(torch.ones(1, 3)).sum().backward()
    with torch.no_grad():
        layer.weight_orig.add_(1)
    layer(torch.ones(1, 3))
    results += [layer.weight_orig.grad, layer.weight]
    assert prune.remove(layer, "weight") is layer
    return [*results, shown(layer), isinstance(layer.weight, torch.nn.Parameter)]


@pytest.mark.slow
@as_torch
def test_pruning_by_scores_and_over_several_layers(torch):
    prune = prune_of(torch)
    one, other = linear(torch), linear(torch)
    scores = torch.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    prune.l1_unstructured(one, "weight", 2, importance_scores=scores)
    prune.ln_structured(other, "weight", 0.5, float("inf"), 0, importance_scores=scores)
    results = [one.weight, other.weight]
    pairs = [(one, "weight"), (other, "weight"), (one, "bias")]
    prune.global_unstructured(
        pairs, prune.L1Unstructured, {(one, "bias"): torch.tensor([9.0, 0.001])}, amount=4
    )
    results += [one.weight, other.weight, one.bias, one.bias_mask]
    method = prune.LnStructured(1, 1, dim=0)
    return [*results, method.prune(scores), prune.L1Unstructured(0).prune(scores)]


@as_torch
def test_wrong_arguments_of_pruning(torch):
    prune, layer = prune_of(torch), linear(torch)
    calls = [
        lambda: prune.l1_unstructured(layer, "weight", -1),
        lambda: prune.l1_unstructured(layer, "weight", 1.5),
        lambda: prune.l1_unstructured(layer, "weight", "1"),
        lambda: prune.random_unstructured(layer, "weight", 7),
        lambda: prune.ln_structured(layer, "bias", 1, 2, 0),
        lambda: prune.random_structured(layer, "weight", 1, 3),
        lambda: prune.custom_from_mask(layer, "weight", torch.ones(2)),
        lambda: prune.l1_unstructured(layer, "weight", 1, importance_scores=torch.ones(2)),
        lambda: prune.remove(layer, "weight"),
        lambda: prune.global_unstructured(3, prune.L1Unstructured, amount=1),
        lambda: prune.global_unstructured([(layer, "weight")], prune.L1Unstructured, 3, amount=1),
        lambda: prune.global_unstructured([(layer, "weight")], prune.LnStructured, amount=1, n=2),
    ]
    return [error(call) for call in calls], list(layer.state_dict())


def test_containers_of_pruning_methods():
    prune = nn.utils.prune
    method, other = prune.L1Unstructured(1), prune.L1Unstructured(1)
    method._tensor_name, other._tensor_name = "weight", "bias"
    container = prune.PruningContainer(method)
    with pytest.raises(ValueError, match="acting on the parameter named 'weight' to Pruning"):
        container.add_pruning_method(other)
    with pytest.raises(TypeError, match="is not a BasePruningMethod subclass"):
        container.add_pruning_method(3)


@pytest.mark.slow
def test_random_pruning():
    jaxgrad.manual_seed(0)
    prune, layer = nn.utils.prune, nn.Linear(20, 10)
    prune.random_unstructured(layer, "weight", 0.25)
    mask = layer.weight_mask.numpy()
    assert mask.sum() == 150 and (mask.sum(0) > 0).all()
    prune.random_structured(layer, "weight", 4, dim=0)
    after = layer.weight_mask.numpy()
    assert ((after == 0).all(1)).sum() == 4 and (after <= mask).all()


def test_amounts():
    counts = [prune._compute_nparams_toprune(amount, 17) for amount in (0, 10, 1.0, 0.4)]
    assert counts == [0, 10, 17, 7]
    for amount, kind in (("3", TypeError), (1.1, ValueError), (-10, ValueError)):
        with pytest.raises(kind):
            prune._validate_pruning_amount_init(amount)
    with pytest.raises(ValueError, match="should be smaller than the number of parameters"):
        prune._validate_pruning_amount(20, 19)
