"""Derivatives at kinks, and where several elements tie: the conventions of PyTorch."""

import pytest
from helpers.as_torch import as_torch
from helpers.compiled import under_jit


def kinks(torch):
    """Functions and arguments where the gradient is a convention."""
    F, t = torch.nn.functional, torch.tensor
    return {
        "relu": (F.relu, 0.0),
        "relu6": (F.relu6, 6.0),
        "abs": (torch.abs, 0.0),
        "max": (torch.max, [1.0, 1.0, 0.0]),
        "max_dim": (lambda x: x.max(0)[0], [1.0, 1.0, 0.0]),
        "amax": (torch.amax, [1.0, 1.0, 0.0]),
        "maximum": (torch.maximum, 1.0, 1.0),
        "fmax": (torch.fmax, 1.0, 1.0),
        "clamp": (lambda x: x.clamp(0, 6), [0.0, 6.0]),
        "hardtanh": (F.hardtanh, 1.0),
        "leaky_relu": (F.leaky_relu, 0.0),
        "elu": (F.elu, 0.0),
        "pow": (torch.pow, 0.0, 0.0),
        "prod": (torch.prod, [0.0, 2.0, 3.0]),
        "atan2": (torch.atan2, 0.0, 0.0),
        "hypot": (torch.hypot, 0.0, 0.0),
        "std": (torch.std, [1.0, 1.0]),
        "sqrt": (torch.sqrt, 0.0),
        "xlogy": (torch.xlogy, 0.0, 0.0),
        "scatter": (lambda s: torch.zeros(1).scatter(0, t([0, 0]), s), [1.0, 2.0]),
        "where": (lambda x: torch.where(x > 0, x.log(), torch.zeros(())), 0.0),
        "remainder": (torch.remainder, 5.0, 3.0),
        "fmod": (torch.fmod, 5.0, 3.0),
        "angle": (lambda z: z.angle(), 0j),
    }


AGREEING = (
    *("relu", "abs", "max", "max_dim", "maximum", "clamp", "hardtanh", "leaky_relu", "elu"),
    *("pow", "prod", "remainder", "fmod", "relu6", "amax", "sqrt", "hypot"),
)


@pytest.mark.row("edge_36")
@pytest.mark.slow
@as_torch
def test_gradients_at_ties_and_kinks(torch):
    gradients = {}
    for name, (function, *values) in kinks(torch).items():
        leaves = [torch.tensor(value, requires_grad=True) for value in values]
        gradients[name] = torch.autograd.grad(function(*leaves).sum(), leaves)
    return gradients


@pytest.mark.row("edge_36")
@as_torch
def test_tangents_at_ties_and_kinks(torch):
    forward, tangents = torch.autograd.forward_ad, {}
    cases = kinks(torch)
    for name in AGREEING:
        function, *values = cases[name]
        with forward.dual_level():
            points = [torch.tensor(value) for value in values]
            duals = [forward.make_dual(point, torch.ones_like(point)) for point in points]
            tangents[name] = forward.unpack_dual(function(*duals)).tangent
    return tangents


@pytest.mark.slow
@pytest.mark.parametrize(
    "test",
    [test_gradients_at_ties_and_kinks, test_tangents_at_ties_and_kinks],
    ids=lambda test: test.__name__,
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
