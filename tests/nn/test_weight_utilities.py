"""jaxgrad.nn.utils: pruning, the older normalization hooks, fusion and older names."""

import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters, warned

import jaxgrad
from jaxgrad import nn


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


# ---- pruning


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
def test_pruning_that_is_refused(torch):
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
def test_pruning_at_random():
    jaxgrad.manual_seed(0)
    prune, layer = nn.utils.prune, nn.Linear(20, 10)
    prune.random_unstructured(layer, "weight", 0.25)
    mask = layer.weight_mask.numpy()
    assert mask.sum() == 150 and (mask.sum(0) > 0).all()
    prune.random_structured(layer, "weight", 4, dim=0)
    after = layer.weight_mask.numpy()
    assert ((after == 0).all(1)).sum() == 4 and (after <= mask).all()


# ---- the older normalization hooks


@pytest.mark.slow
@as_torch(precision=1e-9)
def test_weight_norm_as_a_hook(torch):
    results = []
    for dim in (0, None):
        layer = linear(torch).double()
        told = warned(lambda layer=layer, dim=dim: torch.nn.utils.weight_norm(layer, dim=dim).bias)
        layer(torch.ones(1, 3).double()).sum().backward()
        results += [told, shown(layer), layer.weight_g.grad, layer.weight_v.grad]
        with torch.no_grad():
            layer.weight_g.fill_(2.0)
        layer(torch.ones(1, 3).double())
        results.append(layer.weight)
    results.append(error(warned, lambda: torch.nn.utils.weight_norm(layer)))
    torch.nn.utils.remove_weight_norm(layer)
    return [*results, shown(layer), error(torch.nn.utils.remove_weight_norm, layer)]


@pytest.mark.slow
@as_torch(precision=1e-9)
def test_spectral_norm_as_a_hook(torch):
    spectral_norm, results = torch.nn.utils.spectral_norm, []
    start = torch.tensor([0.6, 0.8]), torch.tensor([0.0, 0.6, 0.8])
    for dim in (0, 1):
        layer = spectral_norm(linear(torch).double(), n_power_iterations=2, dim=dim)
        u, v = start if dim == 0 else start[::-1]
        layer.weight_u.copy_(u)
        layer.weight_v.copy_(v)
        layer(torch.ones(1, 3).double()).sum().backward()
        results += [layer.weight_orig.grad, shown(layer), layer.eval()(torch.ones(1, 3).double())]
    refused = error(spectral_norm, layer)
    words = "Expected n_power_iterations to be positive"
    results += [refused, error(spectral_norm, linear(torch).double(), "bias", 0, words=words)]
    state = layer.state_dict()
    results.append(str(dict(state._metadata[""]["spectral_norm"])))
    older = {"weight": layer.weight.detach() * 1, **state}
    del older["weight_v"]
    other = spectral_norm(linear(torch).double(), dim=1)
    other.load_state_dict(older)
    results += [other.eval()(torch.ones(1, 3).double())]
    torch.nn.utils.remove_spectral_norm(layer)
    return [*results, shown(layer), error(torch.nn.utils.remove_spectral_norm, layer)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["prune", "spectral_norm"])
def test_compiled_steps_with_hooks_on_weights(kind):
    results = []
    for compiled in (False, True):
        layer = linear(jaxgrad)
        jaxgrad.manual_seed(0)
        if kind == "prune":
            nn.utils.prune.l1_unstructured(layer, "weight", 2)
        else:
            nn.utils.spectral_norm(layer)
        optimizer = jaxgrad.optim.SGD(layer.parameters(), lr=0.1)

        def step(x, layer=layer, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (layer(x) * layer(-x).sin()).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = jaxgrad.jit(step) if compiled else step
        losses = [run(jaxgrad.ones(2, 3)).item() for _ in range(3)]
        results.append((losses, layer.weight.detach().numpy()))
        assert not compiled or len(run.traces) == 1
    numpy.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5)
    numpy.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5)


# ---- fusion, initialization, older names


@as_torch(precision=1e-6)
def test_batch_norm_as_part_of_the_layer_before(torch):
    utils, results = torch.nn.utils, []
    norm = torch.nn.BatchNorm1d(2)
    norm.running_mean.copy_(torch.tensor([0.5, -1.0]))
    norm.running_var.copy_(torch.tensor([4.0, 0.25]))
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([2.0, 3.0]))
        norm.bias.copy_(torch.tensor([0.1, 0.2]))
    layer = linear(torch)
    refused = error(utils.fuse_linear_bn_eval, layer, norm)
    norm.eval()
    fused = utils.fuse_linear_bn_eval(layer.eval(), norm)
    results += [fused.weight, fused.bias, isinstance(fused.bias, torch.nn.Parameter)]
    for transpose in (False, True):
        kind = torch.nn.ConvTranspose1d if transpose else torch.nn.Conv1d
        conv = kind(3, 2, 1, bias=transpose).eval()
        with torch.no_grad():
            conv.weight.copy_(layer.weight.reshape(conv.weight.shape))
            if transpose:
                conv.bias.fill_(0.5)
        conv.weight.requires_grad_(False)
        fused = utils.fuse_conv_bn_eval(conv, norm, transpose)
        results += [fused.weight, fused.bias]
    arguments = layer.weight, None, norm.running_mean, norm.running_var, 0.5, None, None
    results += utils.fuse_conv_bn_weights(*arguments)
    half = layer.weight.half(), layer.bias.double(), *arguments[2:5], norm.weight, norm.bias
    results += utils.fuse_linear_bn_weights(*half)
    few = error(utils.fuse_linear_bn_eval, layer, torch.nn.BatchNorm1d(3).eval())
    return [*results, refused, few]


@as_torch("""
    'Linear(in_features=2, out_features=3, bias=False)'
    True
    [RuntimeError("Module must support a 'device' arg to skip initialization")]
    True
""")
def test_modules_without_initialization(torch):
    class Other(torch.nn.Module):
        def __init__(self):
            super().__init__()

    torch.manual_seed(1)
    layer = torch.nn.utils.skip_init(torch.nn.Linear, 2, 3, bias=False)
    drawn = torch.rand(2)
    torch.manual_seed(1)
    same = (drawn == torch.rand(2)).all().item()
    refused = [error(torch.nn.utils.skip_init, kind) for kind in (Other,)]
    return repr(layer), same, refused, layer.weight.requires_grad


@pytest.mark.slow
@as_torch
def test_older_names(torch):
    init, empty = torch.nn.init, torch.empty
    results = [
        warned(lambda: init.constant(empty(2), 3.0)),
        warned(lambda: init.eye(empty(2, 2))),
        warned(lambda: init.dirac(empty(1, 1, 3))),
        warned(lambda: init.uniform(empty(1), 2, 2)),
        warned(lambda: init.normal(empty(1), 2, 0)),
    ]
    for name in ("kaiming_normal", "kaiming_uniform", "xavier_normal", "xavier_uniform"):
        results.append(warned(lambda name=name: getattr(init, name)(empty(2, 3)).shape == (2, 3)))
    results.append(warned(lambda: init.orthogonal(empty(1, 1)).abs()))
    results.append(warned(lambda: init.sparse(empty(2, 1), 1.0)))
    x = leaf(torch, 3.0, 4.0)
    x.grad = torch.tensor([3.0, 4.0])
    results.append(warned(lambda: torch.nn.utils.clip_grad_norm([x], 1.0)))
    return results
