"""Optimizers as functions on lists of tensors: numbers of PyTorch 2.13."""

import importlib

import pytest

import jaxgrad as torch

MOMENTS = {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8}

# by the function: the number of lists of state, the options, and the parameter and its state after
# two steps from [1, -2] with state 0.5, gradients [1, 2] and step 3
FORMS = {
    "adadelta": (2, {"lr": 0.1, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1, "maximize": False}),
    "adagrad": (
        1,
        {"lr": 0.1, "weight_decay": 0.1, "lr_decay": 0.2, "eps": 1e-8, "maximize": False},
    ),
    "adam": (3, {**MOMENTS, "amsgrad": True, "maximize": False}),
    "adamw": (3, {**MOMENTS, "amsgrad": True, "maximize": True}),
    "adamax": (2, MOMENTS),
    "nadam": (2, {**MOMENTS, "momentum_decay": 0.004}),
    "radam": (2, MOMENTS),
    "rmsprop": (
        3,
        {
            "lr": 0.1,
            "alpha": 0.9,
            "eps": 1e-8,
            "weight_decay": 0.1,
            "momentum": 0.9,
            "centered": True,
        },
    ),
    "rprop": (
        2,
        {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2},
    ),
}

PYTORCH = {
    "adadelta": [[0.794913, -2.288549], [0.632646, 1.015413], [0.60471, 0.800376], 5.0],
    "adagrad": [[0.911763, -2.095957], [2.908461, 6.959092], 5.0],
    "adam": [
        [0.908345, -2.104276],
        [0.613546, 0.746499],
        [0.514029, 0.554346],
        [0.514029, 0.554346],
        5.0,
    ],
    "adamw": [[0.935679, -1.981522], [0.215, 0.025], [0.50995, 0.56965], [0.50995, 0.56965], 5.0],
    "adamax": [[0.714616, -2.203552], [0.61252, 0.745982], [1.089, 1.789823], 5.0],
    "nadam": [[0.931, -2.101731], [0.613631, 0.74645], [0.514048, 0.554328], 0.182518, 5.0],
    "radam": [[0.687624, -2.365159], [0.612372, 0.745168], [0.513773, 0.55387], 5.0],
    "rmsprop": [
        [0.29008, -2.904099],
        [0.629209, 1.008542],
        [0.611382, 0.743619],
        [4.481056, 5.659797],
        5.0,
    ],
    "rprop": [[-0.32, -3.32], [1.0, 2.0], [0.72, 0.72], 5.0],
}


def run(name, library=torch):
    count, options = FORMS[name]
    function = getattr(importlib.import_module(f"{library.__name__}.optim.{name}"), name)
    param = library.tensor([1.0, -2.0], requires_grad=True)
    lists = [[library.tensor([0.5, 0.5])] for _ in range(count)]
    lists += [[library.tensor(0.9)]] if name == "nadam" else []
    lists += [[library.tensor(3.0)]]
    with library.no_grad():
        for _ in range(2):
            assert function([param], [library.tensor([1.0, 2.0])], *lists, **options) is None
    assert param.grad is None
    return [param.detach(), *(values[0] for values in lists)]


@pytest.mark.parametrize("name", FORMS)
def test_two_steps(name):
    results = run(name)
    for result, expected in zip(results, PYTORCH[name], strict=True):
        torch.testing.assert_close(result, torch.tensor(expected), rtol=2e-5, atol=2e-6)


def test_sgd_fills_its_buffers():
    from jaxgrad.optim.sgd import sgd

    param, buffers = torch.tensor([1.0, -2.0]), [None]
    options = {"weight_decay": 0.1, "lr": 0.5, "dampening": 0.2, "nesterov": False}
    for _ in range(2):
        sgd([param], [torch.ones(2)], buffers, momentum=0.5, maximize=False, **options)
    assert buffers[0].tolist() == pytest.approx([1.386, 1.008], abs=1e-6)
    assert param.tolist() == pytest.approx([-0.243, -2.904], abs=1e-6)


def test_skipped_and_scaled_steps():
    from jaxgrad.optim.adam import adam

    param = torch.tensor([1.0])
    lists = [[torch.zeros(1)], [torch.zeros(1)], [], [torch.tensor(0.0)]]
    options = {**MOMENTS, "weight_decay": 0.0, "amsgrad": False, "maximize": False}
    adam([param], [torch.ones(1)], *lists, found_inf=torch.tensor(1.0), **options)
    assert param.tolist() == [1.0] and lists[-1][0].item() == 0
    adam([param], [torch.ones(1)], *lists, grad_scale=torch.tensor(4.0), **options)
    assert lists[0][0].item() == pytest.approx(0.025) and lists[-1][0].item() == 1


def test_recorded_step():
    from jaxgrad.optim.adadelta import adadelta

    param = torch.tensor([2.0], requires_grad=True)
    value, grad = param * 1.0, torch.tensor([3.0], requires_grad=True)
    lists = [[torch.zeros(1)], [torch.zeros(1)], [torch.tensor(0.0)]]
    options = {"lr": 1.0, "rho": 0.5, "eps": 1.0, "weight_decay": 0.0, "maximize": False}
    adadelta([value], [grad], *lists, differentiable=True, **options)
    value.backward()
    # the step is g / sqrt(1 + g**2 / 2)
    assert param.grad.item() == 1 and value.item() == pytest.approx(2 - 3 / 5.5**0.5)
    assert grad.grad.item() == pytest.approx(-1 / 5.5**1.5)


def test_names_and_errors():
    from jaxgrad.optim import _functional, adam, adamw

    assert _functional.adamw is adamw.adamw and adamw.AdamW is adam.AdamW
    with pytest.raises(TypeError, match="missing a required argument"):
        adam.adam([torch.ones(1)], [torch.ones(1)])
    options = {**MOMENTS, "amsgrad": False, "maximize": False}
    with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of singl"):
        adam.adam(
            [torch.ones(1)], [torch.ones(1)], [torch.ones(1)], [torch.ones(1)], [], [1], **options
        )
    with pytest.raises(AttributeError, match="no attribute 'sgd'"):
        _ = adam.sgd
