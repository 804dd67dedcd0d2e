"""Adadelta, Adamax, NAdam, RAdam, Rprop, ASGD, Adafactor and Muon: errors, state and options.

Their numbers over 50 steps are in test_numbers.py.
"""

import copy

import numpy as np
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters

import jaxgrad

DIFFERENTIABLE = ("Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD")
NAMES = (*DIFFERENTIABLE, "Adafactor", "Muon")


def matrix(torch, dtype="float64"):
    values = [[0.5, -0.3, 0.8], [-0.7, 0.2, 0.4]]
    return torch.tensor(values, dtype=getattr(torch, dtype), requires_grad=True)


@as_torch
def test_signatures_of_adaptive_optimizers(torch):
    return {name: parameters(getattr(torch.optim, name)) for name in NAMES}


@as_torch
def test_errors_of_options_of_adaptive_optimizers(torch):
    x, optim = leaf(torch, 1.0), torch.optim
    calls = [
        lambda: optim.Adadelta([x], rho=1.5),
        lambda: optim.Adadelta([x], eps=-1.0),
        lambda: optim.Adamax([x], betas=(0.5, 1.0)),
        lambda: optim.Adamax([x], weight_decay=-1),
        lambda: optim.NAdam([x], momentum_decay=-1),
        lambda: optim.NAdam([x], lr=-1),
        lambda: optim.RAdam([x], betas=(-0.5, 0.5)),
        lambda: optim.RAdam([x], eps=-1),
        lambda: optim.Rprop([x], etas=(0.5, 0.9)),
        lambda: optim.ASGD([x], weight_decay=-1),
        lambda: optim.Adafactor([x], lr=-1),
        lambda: optim.Adafactor([x], beta2_decay=0.5),
        lambda: optim.Adafactor([x], eps=(-1, 0.1)),
        lambda: optim.Adafactor([x], eps=(None, -0.1)),
        lambda: optim.Adafactor([x], d=0.5),
        lambda: optim.Adafactor([x], weight_decay=-1),
        lambda: optim.Muon([x]),
        lambda: optim.Muon([matrix(torch)], lr=-1),
        lambda: optim.Muon([matrix(torch)], momentum=-1),
        lambda: optim.Muon([matrix(torch)], adjust_lr_fn="other"),
    ]
    several = torch.ones(2)
    makers = [lambda name=name: getattr(optim, name)([matrix(torch)], lr=several) for name in NAMES]
    words = "Tensor lr must be 1-element"
    return [error(call) for call in calls], [error(make, words=words) for make in makers]


def stepped(torch, name, begin, gradients, state=None):
    """An optimizer after one step for each gradient, and its parameter."""
    x = begin.detach().clone().requires_grad_()
    optimizer = getattr(torch.optim, name)([x], lr=0.1)
    if state is not None:
        optimizer.load_state_dict(state)
    for factor in gradients:
        x.grad = factor * begin.detach() + 0.1
        optimizer.step()
    return optimizer, x


@pytest.mark.slow
@as_torch(precision=1e-9)
def test_state_dicts_of_adaptive_optimizers_go_on(torch):
    results = {}
    for name in NAMES:
        # loaded into 64 bits, PyTorch's ASGD still rounds its rate to 32
        optimizer, x = stepped(torch, name, matrix(torch, "float32"), (1, -0.5))
        state = copy.deepcopy(optimizer.state_dict())
        other, y = stepped(torch, name, x, (2, 1), state)
        saved = optimizer.state_dict()
        results[name] = saved, other.state_dict(), x.detach(), y.detach()
    return results


@as_torch(precision=1e-9)
def test_state_dicts_of_older_versions(torch):
    results = []
    for name, numbers in (
        ("NAdam", {"step": 2, "mu_product": 0.25}),
        ("ASGD", {"step": 2, "eta": 0.25, "mu": 0.5}),
    ):
        optimizer, x = stepped(torch, name, matrix(torch), (1, -0.5))
        state = copy.deepcopy(optimizer.state_dict())
        state["state"][0].update(numbers)
        for option in ("foreach", "differentiable", "capturable"):
            del state["param_groups"][0][option]
        other, y = stepped(torch, name, x, (2,), state)
        results.append((other.state_dict(), y.detach()))
    return results


@as_torch("""
    step = 'torch.float32'
    mu_product = 'torch.float32'
    exp_avg = 'torch.complex64'
    exp_avg_sq = 'torch.complex64'
""")
def test_state_of_complex_parameters_is_loaded(torch):
    x = torch.tensor([1 + 2j], requires_grad=True)
    optimizer, _ = stepped(torch, "NAdam", x, (1,))
    other, _ = stepped(torch, "NAdam", x, (), copy.deepcopy(optimizer.state_dict()))
    return {name: str(value.dtype) for name, value in next(iter(other.state.values())).items()}


@as_torch
def test_arguments_that_adaptive_optimizers_refuse(torch):
    errors = []
    for name in ("Adafactor", "Muon"):
        x = torch.ones(2, 2, dtype=torch.complex64, requires_grad=True)
        x.grad = torch.ones_like(x)
        errors.append(error(getattr(torch.optim, name)([x]).step))
    for name in NAMES:
        x = torch.ones(2, 2, requires_grad=True)
        x.grad = torch.sparse_coo_tensor([[0], [1]], [2.0], (2, 2))
        errors.append(error(getattr(torch.optim, name)([x]).step))
    for options in ({"ns_steps": 100}, {"ns_coefficients": (1.0, 2.0)}):
        x = torch.ones(2, 2, requires_grad=True)
        x.grad = torch.ones_like(x)
        errors.append(error(torch.optim.Muon([x], **options).step))
    optimizer = torch.optim.Muon([x])
    y = leaf(torch, 1.0, 2.0)
    optimizer.add_param_group({"params": [y]})
    y.grad = x.grad = None
    optimizer.step()
    y.grad = torch.ones_like(y)
    return [*errors, error(optimizer.step)]


def after_steps(torch, name, begin, count):
    x = begin.clone()
    optimizer = getattr(torch.optim, name)([x], lr=0.1, differentiable=True)
    for number in range(count):
        x.grad = (begin + 0.1 * number).square()
        optimizer.step()
    return x


@pytest.mark.slow
@as_torch(precision=1e-9)
def test_derivatives_through_a_step_of_adaptive_optimizers(torch):
    results, usual = {}, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # otherwise PyTorch's state has 32 bits here
    for name in DIFFERENTIABLE:
        begin = leaf(torch, 1.0, -2.0, dtype=torch.float64)
        x = after_steps(torch, name, begin, 1)
        (x * x).sum().backward()
        results[name] = x.detach(), begin.grad
    torch.set_default_dtype(usual)
    return results


@pytest.mark.slow
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_through_seven_steps(name):
    """By finite differences; PyTorch takes no several steps. RAdam rectifies the last two."""
    usual = jaxgrad.get_default_dtype()
    jaxgrad.set_default_dtype(jaxgrad.float64)
    begin = leaf(jaxgrad, 1.0, -2.0)
    after_steps(jaxgrad, name, begin, 7).square().sum().backward()
    for position in range(2):
        shift = jaxgrad.zeros(2)
        shift[position] = 1e-6
        above, below = (
            after_steps(jaxgrad, name, begin.detach() + sign * shift, 7).square().sum().item()
            for sign in (1, -1)
        )
        assert begin.grad[position].item() == pytest.approx((above - below) / 2e-6, rel=1e-6)
    jaxgrad.set_default_dtype(usual)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_compiled_steps_with_an_lr_that_is_a_tensor(name):
    results = []
    for compiled in (False, True):
        x = matrix(jaxgrad)
        rate = jaxgrad.tensor([0.1], dtype=jaxgrad.float64)
        optimizer = getattr(jaxgrad.optim, name)([x], lr=rate)

        def step(x=x, optimizer=optimizer):
            optimizer.zero_grad()
            (x * x).sum().backward()
            optimizer.step()

        run = jaxgrad.jit(step) if compiled else step
        for _ in range(3):
            run()
            rate.mul_(0.5)
        results.append((x.detach().numpy(), optimizer.state_dict()["state"][0]))
    (eager, states), (traced, others) = results
    np.testing.assert_allclose(traced, eager, rtol=1e-12)
    assert states.keys() == others.keys()
    for key, value in states.items():
        np.testing.assert_allclose(others[key].numpy(), value.numpy(), rtol=1e-6)


def test_eps_of_adafactor_is_that_of_each_dtype():
    """In PyTorch all parameters of a group get that of the first one."""
    values = []
    for dtypes in (("float32", "float64"), ("float64",)):
        params = [matrix(jaxgrad, dtype) for dtype in dtypes]
        optimizer = jaxgrad.optim.Adafactor(params, lr=0.1)
        for param in params:
            param.grad = param.detach() * 1e-9
        optimizer.step()
        values.append(params[-1].detach().numpy())
    np.testing.assert_allclose(*values, rtol=1e-14)


def test_newton_and_schulz_make_matrices_orthogonal():
    """By the singular values, which the coefficients bring near to 1."""
    x = jaxgrad.zeros(3, 5, requires_grad=True)
    optimizer = jaxgrad.optim.Muon([x], lr=1.0, weight_decay=0)
    jaxgrad.manual_seed(1)
    x.grad = jaxgrad.randn(3, 5)
    optimizer.step()
    values = np.linalg.svd(x.detach().numpy(), compute_uv=False)
    assert ((values > 0.6) & (values < 1.3)).all()
    left, _, right = np.linalg.svd(x.grad.numpy(), full_matrices=False)
    assert np.trace(-x.detach().numpy() @ (left @ right).T) == pytest.approx(values.sum(), rel=0.02)
