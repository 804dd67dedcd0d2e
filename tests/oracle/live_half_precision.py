"""Half precision: results and gradients of formulas with numbers, and steps of optimizers.

make oracle     (`--seed N` repeats a run: a failure names its seed)

Numbers are random, so few have an exact value in half precision. The median error of our results,
in spacings of the floats near the exact ones, may not be above that of PyTorch's results.
"""

import numpy as np
import pytest
import torch
from helpers import checks
from oracle.seed import SEED

import jaxgrad

DTYPES = "float16", "bfloat16"

FORMULAS = {
    "product": lambda lib, x, y, a: x * a,
    "product with a number first": lambda lib, x, y, a: a * x,
    "product with a scalar tensor": lambda lib, x, y, a: x * lib.tensor(a),
    "quotient": lambda lib, x, y, a: x / a,
    "quotient by a scalar tensor": lambda lib, x, y, a: x / lib.tensor(a, dtype=lib.float64),
    "sum": lambda lib, x, y, a: lib.add(x, y, alpha=round(a)),
    "lerp": lambda lib, x, y, a: lib.lerp(x, y, a),
    "addcmul": lambda lib, x, y, a: lib.addcmul(x, x, y, value=a),
    "addcdiv": lambda lib, x, y, a: lib.addcdiv(x, x, y, value=a),
    "power": lambda lib, x, y, a: x.abs() ** 1.5,
    "power of a number": lambda lib, x, y, a: a**x,
    "leaky_relu": lambda lib, x, y, a: lib.nn.functional.leaky_relu(x, a),
    "elu": lambda lib, x, y, a: lib.nn.functional.elu(x, a),
    "celu": lambda lib, x, y, a: lib.nn.functional.celu(x, a),
    "softplus": lambda lib, x, y, a: lib.nn.functional.softplus(x, a),
    "log10": lambda lib, x, y, a: x.abs().log10(),
    "log2": lambda lib, x, y, a: x.abs().log2(),
    "erf": lambda lib, x, y, a: lib.erf(x),
    "exp2": lambda lib, x, y, a: lib.exp2(x),
    "logaddexp2": lambda lib, x, y, a: lib.logaddexp2(x, y),
    "smooth_l1": lambda lib, x, y, a: lib.nn.functional.smooth_l1_loss(
        x, y, beta=a, reduction="none"
    ),
    "huber": lambda lib, x, y, a: lib.nn.functional.huber_loss(x, y, delta=a, reduction="none"),
}
COMPILED = {"eager": lambda function: function, "compiled": jaxgrad.compile}


def numbers(place, size=512):
    generator = np.random.default_rng([SEED, place])
    return generator.normal(size=size) * 3, generator.normal(size=size), generator.uniform(0.1, 2)


def median_error(values, exact, dtype):
    """The median error in spacings of the dtype; where all are finite."""
    spacing = torch.finfo(getattr(torch, dtype)).eps * 2.0 ** np.floor(np.log2(abs(exact) + 1e-30))
    usual = np.isfinite(values) & np.isfinite(exact) & (abs(exact) > 1e-3)
    return np.median((abs(values - exact) / spacing)[usual])


def results(lib, formula, dtype, arrays, kind=None, compiled=COMPILED["eager"]):
    """The value of a formula of numbers of half precision, and its gradients, as float64."""
    *arrays, number = arrays
    tensors = [lib.tensor(array).to(getattr(lib, dtype)).to(kind) for array in arrays]
    tensors = [tensor.requires_grad_() for tensor in tensors]

    def call(x, y):
        result = formula(lib, x, y, number)
        cotangent = x.detach().flip(0)  # one of equal elements would round all in one direction
        return result, *lib.autograd.grad(result, [x, y], cotangent, materialize_grads=True)

    return [result.detach().double().numpy() for result in compiled(call)(*tensors)]


@pytest.mark.parametrize("way", COMPILED)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name, dtype, way):
    arrays = numbers([*FORMULAS].index(name))
    formula = FORMULAS[name]
    theirs = results(torch, formula, dtype, arrays, getattr(torch, dtype))
    exact = results(torch, formula, dtype, arrays, torch.float64)
    ours = results(jaxgrad, formula, dtype, arrays, getattr(jaxgrad, dtype), COMPILED[way])
    for part, *values, expected in zip(("value", "x", "y"), ours, theirs, exact, strict=True):
        if (abs(expected) > 1e-3).any():
            our_error, their_error = (median_error(value, expected, dtype) for value in values)
            where = f"SEED={SEED} {name} {part}: {our_error} spacings, {their_error} in PyTorch"
            assert our_error <= 1.1 * their_error + 0.02, where
            checks.count("half precision")


OPTIMIZERS = {
    "SGD": {"momentum": 0.87, "weight_decay": 0.013},
    "Adam": {"weight_decay": 0.013},
    "AdamW": {"weight_decay": 0.7},
    **{"NAdam": {}, "RAdam": {}, "Adamax": {}, "RMSprop": {}, "Adagrad": {}, "Rprop": {}},
}


def stepped(lib, name, dtype, kind, place):
    params, _, rate = numbers(place)
    param = lib.tensor(params).to(getattr(lib, dtype)).to(kind).requires_grad_()
    optimizer = getattr(lib.optim, name)([param], lr=rate / 50, **OPTIMIZERS[name])
    for step in range(5):
        gradient = lib.tensor(numbers(place + step)[1])
        param.grad = gradient.to(getattr(lib, dtype)).to(kind)
        optimizer.step()
    return param.detach().double().numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, dtype):
    place = 100 * (1 + [*OPTIMIZERS].index(name))
    exact = stepped(torch, name, dtype, torch.float64, place)
    theirs = stepped(torch, name, dtype, getattr(torch, dtype), place)
    ours = stepped(jaxgrad, name, dtype, getattr(jaxgrad, dtype), place)
    our_error, their_error = (median_error(value, exact, dtype) for value in (ours, theirs))
    where = f"SEED={SEED} {name}: {our_error} spacings, {their_error} in PyTorch"
    assert our_error <= 1.1 * their_error + 0.02, where
    checks.count("half precision")
