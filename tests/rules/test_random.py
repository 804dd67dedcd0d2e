"""Samplers: errors, dtypes, nodes and gradients as PyTorch has them; the derivatives of gamma and
Dirichlet samples. tests/frontend/test_random.py tests the distributions.
"""

import math

import jax
import jax.numpy as jnp
import numpy
import pytest
import scipy.special
import scipy.stats
from helpers.as_torch import as_torch
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals
from helpers.recorded import node_and_next

import jaxgrad
from jaxgrad import ops

WEIGHTS = "torch.multinomial(tensor([{}]), {})"

REFUSED = [
    ("torch.bernoulli(tensor([1]))", NotImplementedError, "not implemented for 'Long'"),
    ("torch.bernoulli(tensor([nan]))", RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
    ("torch.bernoulli(zeros(2), 1.5)", RuntimeError, "expects p to be in [0, 1], but got p=1.5"),
    ("torch.bernoulli(zeros(2), zeros(2))", TypeError, "bernoulli()"),
    ("zeros(2).bernoulli_(tensor([2.0]))", RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
    ("zeros(2).bernoulli_(tensor([1]))", NotImplementedError, "not implemented for 'Long'"),
    ("torch.poisson(tensor([-1.0]))", RuntimeError, "expected rate to be non-negative"),
    ("torch.poisson(tensor([1]))", NotImplementedError, "not implemented for 'Long'"),
    ("torch.binomial(tensor([1]), tensor([0.5]))", ValueError, "floating-point dtypes for count"),
    (
        "torch.binomial(zeros(1), zeros(1, dtype=torch.float64))",
        RuntimeError,
        "Found dtype Double but expected Float",
    ),
    (WEIGHTS.format("1.0", 0), RuntimeError, "cannot sample n_sample <= 0 samples"),
    (WEIGHTS.format("1.0", 2), RuntimeError, "n_sample > prob_dist.size(-1)"),
    (WEIGHTS.format("1", 1), RuntimeError, "only supports floating-point dtypes for input"),
    (WEIGHTS.format("-1.0", 1), RuntimeError, "either `inf`, `nan` or element < 0"),
    (WEIGHTS.format("0.0", 1), RuntimeError, "invalid multinomial distribution"),
    ("torch.multinomial(tensor(1.0), 1)", RuntimeError, "prob_dist must be 1 or 2 dim"),
    ("torch.normal(zeros(2), -1.0)", RuntimeError, "normal expects std >= 0.0, but found std -1"),
    ("torch.normal(0.0, tensor([-1.0]))", RuntimeError, "normal expects all elements of std >="),
    ("torch.normal(zeros(2), zeros(2).cfloat())", RuntimeError, "deviation to be non-complex"),
    ("torch.normal(0.0, 1.0)", TypeError, "normal() received an invalid combination"),
    ("torch.normal(0.0, zeros(2), (2,))", TypeError, "normal() received an invalid combination"),
    ("tensor([1]).normal_()", NotImplementedError, "not implemented for 'Long'"),
    ("tensor([1]).uniform_()", NotImplementedError, "not implemented for 'Long'"),
    ("zeros(2).uniform_(1, 0)", RuntimeError, "uniform_ expects to return a [from, to) range"),
    ("zeros(2).uniform_(nan, 0)", RuntimeError, "from is out of bounds for"),
    ("zeros(2).uniform_(-3e38, 3e38)", RuntimeError, "uniform_ expects to-from <="),
    ("zeros(2).half().uniform_(0, 1e6)", RuntimeError, "to is out of bounds for"),
    ("tensor([1]).cauchy_()", RuntimeError, "Cauchy distribution is a continuous"),
    ("zeros(2).cauchy_(0, 0)", RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=0"),
    ("tensor([1]).exponential_()", RuntimeError, "Exponential distribution is a continuous"),
    ("zeros(2).exponential_(0)", RuntimeError, "exponential_ expects lambda > 0.0, but found"),
    ("zeros(2).geometric_(1.0)", RuntimeError, "geometric_ expects p to be in (0, 1), but got"),
    ("tensor([True]).geometric_(0.5)", NotImplementedError, "not implemented for 'Bool'"),
    ("tensor([1]).log_normal_()", NotImplementedError, "not implemented for 'Long'"),
    ("zeros(2).log_normal_(0, 0)", RuntimeError, "log_normal_ expects std > 0.0, but found"),
    ("zeros(2).random_(3, 3)", RuntimeError, "random_ expects 'from' to be less than 'to'"),
    ("zeros(2).random_(0.5)", TypeError, "random_() received an invalid combination"),
    ("tensor([True]).random_(0, 3)", RuntimeError, "to - 1 is out of bounds for"),
    ("tensor([1j]).random_()", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("torch.native_dropout(tensor([1]), 0.5, True)", RuntimeError, "can't be cast to the desired"),
]

ANSWERS = [
    ("torch.bernoulli(tensor([0.0, 1.0]))", "float32", [0.0, 1.0]),
    ("torch.bernoulli(tensor([3, 4]), 1.0)", "int64", [1, 1]),
    ("tensor([3, 4]).bernoulli_(tensor([0.0, 1.0]))", "int64", [0, 1]),
    ("tensor([False]).bernoulli_(1.0)", "bool", [True]),
    ("torch.poisson(zeros(2))", "float32", [0.0, 0.0]),
    ("torch.binomial(full((2,), 3.0), tensor([0.0, 9.0]))", "float32", [0.0, 3.0]),
    ("torch.binomial(tensor([-3.0]), tensor([0.5]))", "float32", [0.0]),
    ("torch.multinomial(tensor([0.0, 1.0, 0.0]), 3, True)", "int64", [1, 1, 1]),
    ("torch.multinomial(tensor([[0.0, 1.0], [1.0, 0.0]]), 1)", "int64", [[1], [0]]),
    ("torch.multinomial(zeros(0, 3), 2)", "int64", numpy.zeros((0, 2))),
    ("torch.normal(tensor([1.0, 2.0]).double(), zeros(2))", "float64", [1.0, 2.0]),
    ("torch.normal(tensor([1.0, 2.0]), zeros(2).double())", "float32", [1.0, 2.0]),
    ("torch.normal(3, 0, (2,))", "float32", [3.0, 3.0]),
    ("torch.normal(zeros(2, 1), 0.0).new_zeros(2)", "float32", [0.0, 0.0]),
    ("zeros(2).half().normal_(1, 0)", "float16", [1.0, 1.0]),
    ("zeros(2).exponential_(inf)", "float32", [0.0, 0.0]),
    ("tensor([0, 0]).geometric_(1 - 1e-12)", "int64", [1, 1]),
    ("tensor([0, 0]).random_(5, 6)", "int64", [5, 5]),
    ("zeros(2).random_(to=1)", "float32", [0.0, 0.0]),
    ("torch.native_dropout(full((2,), 3.0), 0.0, True)[0]", "float32", [3.0, 3.0]),
    ("torch.native_dropout(full((2,), 3.0), 0.5, False)[0]", "float32", [3.0, 3.0]),
    ("torch.native_dropout(full((2,), 3.0), 1.0, None)[1]", "bool", [False, False]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@pytest.mark.slow
@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


SAMPLERS = {
    "bernoulli": lambda torch, x: torch.bernoulli(x),
    "bernoulli_": lambda torch, x: (x * 1).bernoulli_(),
    "bernoulli_p": lambda torch, x: (x * 1).bernoulli_(x),
    "poisson": lambda torch, x: torch.poisson(x),
    "normal": lambda torch, x: torch.normal(x, 1.0),
    "normal_std": lambda torch, x: torch.normal(0.0, x),
    "normal_both": lambda torch, x: torch.normal(x, x),
    "normal_": lambda torch, x: (x * 1).normal_(),
    "uniform_": lambda torch, x: (x * 1).uniform_(1, 2),
    "cauchy_": lambda torch, x: (x * 1).cauchy_(),
    "exponential_": lambda torch, x: (x * 1).exponential_(),
    "geometric_": lambda torch, x: (x * 1).geometric_(0.5),
    "log_normal_": lambda torch, x: (x * 1).log_normal_(),
    "random_": lambda torch, x: (x * 1).random_(),
    "random_to": lambda torch, x: (x * 1).random_(9),
    "random_from": lambda torch, x: (x * 1).random_(3, 9),
}


@pytest.mark.slow
@as_torch
def test_samples_have_pytorchs_nodes_and_gradients_of_zero(torch):
    told = []
    for sampler in SAMPLERS.values():
        x = torch.tensor([0.25, 0.5], requires_grad=True)
        sample = sampler(torch, x)
        sample.sum().backward()
        told.append([node_and_next(sample), x.grad.tolist()])
    return told


@pytest.mark.slow
@as_torch("""
    False
    False
    [1.0, 1.0]
    'NativeDropoutBackward0'
    'StandardGammaBackward0'
""")
def test_what_is_no_function_of_its_input_has_no_node(torch):
    x = torch.tensor([0.25, 0.5], requires_grad=True)
    drawn = torch.multinomial(x, 1)
    kept, mask = torch.native_dropout(x, 0.0, True)
    kept.sum().backward()
    names = [kept.grad_fn.name(), torch._standard_gamma(x).grad_fn.name()]
    return [drawn.requires_grad, mask.requires_grad, x.grad.tolist(), *names]


@pytest.mark.parametrize("name", SAMPLERS)
def test_tangents_of_samples_are_zero(name):
    primal, tangent = jaxgrad.tensor([0.25, 0.5]), jaxgrad.ones(2)
    _, derivative = jaxgrad.func.jvp(lambda x: SAMPLERS[name](jaxgrad, x), (primal,), (tangent,))
    assert derivative.tolist() == [0.0, 0.0]


def test_names_and_argument_order_of_early_pytorch():
    x, generator = jaxgrad.zeros(3), jaxgrad.Generator(stream="jax")
    for name, *arguments in (
        ("normal_", 1.0, 0.0),
        ("uniform_", 1.0, 1.0),
        ("random_", 1, 2),
        ("bernoulli_", 1.0),
        ("bernoulli_", jaxgrad.ones(3)),
    ):
        assert getattr(ops, name)(x, *arguments, generator).tolist() == [1.0] * 3
    for name, *arguments in (
        ("cauchy_", 0.0, 1.0),
        ("exponential_", 1.0),
        ("geometric_", 0.5),
        ("log_normal_", 1.0, 2.0),
        ("random_", 9),
        ("random_",),
    ):
        _, draws = generator.snapshot
        assert getattr(ops, name)(x, *arguments, generator) is x
        assert generator.snapshot == (generator.initial_seed(), draws + 1)
    assert ops.poisson(jaxgrad.zeros(2), generator).tolist() == [0.0, 0.0]


@pytest.mark.slow
def test_fused_dropout_takes_the_probability_to_keep():
    x = jaxgrad.full((1000,), 2.0, requires_grad=True)
    output, mask = ops._fused_dropout(x, 0.8, jaxgrad.Generator().manual_seed(0))
    assert mask.dtype is jaxgrad.uint8 and 750 < mask.sum() < 850
    assert output.tolist() == (mask * 2.5).tolist()
    output.sum().backward()
    assert x.grad.tolist() == (mask * 1.25).tolist()
    assert output.grad_fn.name() == "FusedDropoutBackward0"
    assert ops._fused_dropout(x, 0.0)[0].sum() == 0


# gamma and Dirichlet

SHAPES = numpy.array([0.02, 0.1, 0.5, 1.0, 3.0, 30.0, 500.0])
PLACES = numpy.array([0.3, 0.05, 0.7, 0.2, 4.0, 25.0, 510.0])


def gamma_slope(shape, place):
    """-(dF/da) / p, by differences of the distribution function F(a, x) with density p."""
    step = 1e-4 * shape
    below, above = (scipy.special.gammainc(shape + k * step, place) for k in (-1, 1))
    return -(above - below) / (2 * step) / scipy.stats.gamma.pdf(place, shape)


@pytest.mark.slow
def test_the_derivative_of_a_gamma_sample_keeps_its_distribution_function():
    slopes = ops._standard_gamma_grad(jaxgrad.tensor(SHAPES), jaxgrad.tensor(PLACES)).numpy()
    numpy.testing.assert_allclose(slopes, gamma_slope(SHAPES, PLACES), rtol=1e-5)
    single = ops._standard_gamma_grad(*(jaxgrad.tensor(x).float() for x in (SHAPES, PLACES)))
    numpy.testing.assert_allclose(single.numpy(), slopes, rtol=2e-5)
    count("derivatives", 2)


@pytest.mark.slow
def test_gamma_samples_have_that_gradient():
    shape = jaxgrad.tensor(SHAPES, requires_grad=True)
    sample = jaxgrad._standard_gamma(shape)
    (2 * sample).sum().backward()
    expected = 2 * ops._standard_gamma_grad(shape.detach(), sample.detach())
    numpy.testing.assert_allclose(shape.grad.numpy(), expected.numpy(), rtol=1e-12)
    count("derivatives")


@pytest.mark.slow
def test_the_mean_of_the_gradients_is_that_of_the_mean():
    """The mean of a gamma distribution is its shape, so the gradients have mean 1."""
    shape = jaxgrad.full((20000,), 2.5, requires_grad=True)
    sample = jaxgrad._standard_gamma(shape, jaxgrad.Generator().manual_seed(1))
    sample.sum().backward()
    deviation = shape.grad.numpy().std() / math.sqrt(20000)
    assert abs(shape.grad.numpy().mean() - 1) < 5 * deviation < 0.05
    count("derivatives")


@pytest.mark.slow
def test_second_derivatives_of_gamma_samples():
    shape = jaxgrad.tensor(SHAPES[:5], requires_grad=True)
    place = jaxgrad.tensor(PLACES[:5], requires_grad=True)
    function = ops._standard_gamma_grad
    assert jaxgrad.autograd.gradcheck(function, (shape, place))
    slopes = jaxgrad.autograd.grad(function(shape, place).sum(), (shape, place))
    for slope in slopes:
        assert slope.isfinite().all()
    count("derivatives", 2)


@pytest.mark.slow
def test_a_sample_of_zero_has_no_slope():
    zero, shape = jaxgrad.zeros(1, requires_grad=True), jaxgrad.full((1,), 0.01, requires_grad=True)
    slope = ops._standard_gamma_grad(shape, zero)
    slope.sum().backward()
    assert slope.tolist() == shape.grad.tolist() == zero.grad.tolist() == [0.0]


@pytest.mark.slow
def test_the_derivative_of_a_beta_sample_keeps_its_distribution_function():
    place = numpy.array([0.2, 0.5, 0.9, 0.01, 0.999, 0.3])
    first = numpy.array([0.3, 2.0, 40.0, 0.1, 5.0, 300.0])
    total = numpy.array([1.0, 5.0, 44.0, 3.0, 5.5, 900.0])
    step = 1e-4 * first
    below, above = (scipy.special.betainc(first + k * step, total - first, place) for k in (-1, 1))
    density = scipy.stats.beta.pdf(place, first, total - first)
    expected = -(above - below) / (2 * step) / density / (1 - place)
    tensors = [jaxgrad.tensor(array, requires_grad=True) for array in (place, first, total)]
    slopes = ops._dirichlet_grad(*tensors)
    numpy.testing.assert_allclose(slopes.detach().numpy(), expected, rtol=1e-5)
    single = ops._dirichlet_grad(*(tensor.detach().float() for tensor in tensors))
    numpy.testing.assert_allclose(single.numpy(), expected, rtol=1e-4)
    few = [tensor.detach()[:3].requires_grad_() for tensor in tensors]
    assert jaxgrad.autograd.gradcheck(ops._dirichlet_grad, few)
    count("derivatives", 3)


@pytest.mark.slow
def test_gradients_of_dirichlet_samples():
    """Samples of equal gamma numbers: their derivatives, by the quotient rule."""
    parameters = jaxgrad.tensor([[0.5, 2.0, 3.0]] * 20000, requires_grad=True)
    samples = jaxgrad._sample_dirichlet(parameters, jaxgrad.Generator().manual_seed(2))
    numpy.testing.assert_allclose(samples.detach().sum(-1).numpy(), 1, rtol=1e-6)
    samples[:, 0].sum().backward()
    gradients = parameters.grad.numpy()
    # the mean of the first is 0.5 / 5.5, whose derivatives these are
    expected = numpy.array([5.0, -0.5, -0.5]) / 5.5**2
    errors = gradients.std(0) / math.sqrt(len(gradients))
    assert (abs(gradients.mean(0) - expected) < 5 * errors).all() and (errors < 0.01).all()
    count("derivatives")


@pytest.mark.parametrize("dtype", [jaxgrad.float32, jaxgrad.float64])
def test_samples_and_gradients_of_tiny_concentrations(dtype):
    """All gamma samples underflow for most: PyTorch has 0.5 there, and 1 is no sample."""
    p = jaxgrad.full((500,), 1e-4, dtype=dtype, requires_grad=True)
    jaxgrad.manual_seed(0)
    samples = jaxgrad.distributions.Beta(p, p.detach()).rsample()
    assert ((samples > 0) & (samples < 1)).all()
    assert 0.8 < (samples == 0.5).double().mean() < 0.95  # 0.86 in PyTorch
    samples.sum().backward()
    # PyTorch's largest gradient, that at 0.5
    numpy.testing.assert_allclose(p.grad.max().item(), 1.2501733e7, rtol=1e-5)
    many = jaxgrad.distributions.Dirichlet(jaxgrad.full((50, 4), 1e-4, dtype=dtype)).sample()
    assert many.isfinite().all()
    count("derivatives", 4)


def test_derivatives_of_beta_samples_at_the_ends():
    numbers = jaxgrad.tensor([[0.0, 0.01, 0.02], [1.0, 1e5, 1e5], [1.0, 2.0, 5.0]])
    slopes = jaxgrad._dirichlet_grad(*numbers.mT.contiguous())
    numpy.testing.assert_allclose(slopes.numpy(), [0, 0, 0.36111113], rtol=1e-6)  # PyTorch's
    count("derivatives")


@pytest.mark.slow
def test_samplers_are_functions_of_jax_arrays_and_a_key():
    key = jnp.array([1, 2], jnp.uint32)
    rate = jnp.array([2.0, 3.0])
    drawn = jax.jit(ops._poisson)(rate, key)
    assert (drawn == ops._poisson(rate, key)).all() and drawn.dtype == rate.dtype
    slope = jax.jit(jax.grad(lambda rate: ops._gamma_sample(rate, key).sum()))(rate)
    assert (slope > 0).all()
