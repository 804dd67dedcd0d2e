"""weight_norm, spectral_norm and pruning as hooks on weights, against PyTorch."""

import numpy
import pytest
from helpers.as_torch import as_torch, error, warned

import jaxgrad
from jaxgrad import nn


def linear(torch, rows=2, columns=3):
    layer = torch.nn.Linear(columns, rows)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.1, -0.2, 0.3], [0.5, -0.05, 0.6]]))
        layer.bias.copy_(torch.tensor([0.25, -0.5]))
    return layer


def shown(layer):
    return layer.weight, list(layer.state_dict()), dict(layer.named_buffers())


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
def test_compiled_steps_with_weight_hooks(kind):
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
