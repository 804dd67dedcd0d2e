"""Ends of parameters and supports, where PyTorch's numbers or gradients are NaN, wrong or rough:
against closed forms and numbers of high precision; and where they are right, against PyTorch.
"""

import math

import numpy as np
import pytest
import scipy.stats
from helpers.checks import count
from helpers.distribution_cases import as_recorded, compiled, same

import jaxgrad
from jaxgrad import distributions as D

INF, NAN = math.inf, math.nan
HALF_LOG_TAU = math.log(2 * math.pi) / 2


def unchecked(kind, method):
    """A method of a distribution that checks nothing, as a function of its value and parameters."""

    def function(lib, value, *parameters, **named):
        d = getattr(lib.distributions, kind)(*parameters, **named, validate_args=False)
        member = getattr(d, method)
        return member(value) if value is not None else member() if callable(member) else member

    return function


def evaluated(lib, kind, method, value, *parameters, **named):
    """A result and its gradients with respect to value and parameters, 0 where there is none."""
    args = [None if value is None else value, *parameters, *named.values()]
    tensors = [
        arg if arg is None else lib.tensor(arg, dtype=lib.float64, requires_grad=True)
        for arg in args
    ]
    first, *others = tensors
    others, last = others[: len(parameters)], tensors[1 + len(parameters) :]
    function = unchecked(kind, method)
    result = function(lib, first, *others, **dict(zip(named, last, strict=True)))
    inputs = [tensor for tensor in tensors if tensor is not None]
    slopes = [None] * len(inputs)
    if result.requires_grad:
        slopes = lib.autograd.grad(result.sum(), inputs, allow_unused=True)
    pairs = zip(slopes, inputs, strict=True)
    return result.detach(), [lib.zeros_like(x) if slope is None else slope for slope, x in pairs]


# ---- as in PyTorch

FINITE = {
    "bernoulli of probs 0 and 1": ("Bernoulli", "log_prob", [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]),
    "entropy of probs 0 and 1": ("Bernoulli", "entropy", None, [0.0, 1.0, 0.5]),
    "geometric of probs 0": ("Geometric", "log_prob", [0.0, 1.0, 3.0], [0.0, 0.5, 1.0]),
    "ends of uniform": ("Uniform", "log_prob", [0.0, 1.0, 2.0], [0.0] * 3, [1.0] * 3),
    "cdf of ends of uniform": ("Uniform", "cdf", [0.0, 1.0, 2.0], [0.0] * 3, [1.0] * 3),
    "laplace at loc": ("Laplace", "log_prob", [0.5, -1.0, 2.0], [0.5, -1.0, 0.0], [1.0] * 3),
    "half normal below 0": ("HalfNormal", "log_prob", [-1.0, 0.0, 1.0], [1.0] * 3),
    "half cauchy below 0": ("HalfCauchy", "log_prob", [-1.0, 0.0, 1.0], [1.0] * 3),
    "exponential below 0": ("Exponential", "log_prob", [-1.0, 0.0, 1.0], [2.0] * 3),
    "variance of student": ("StudentT", "variance", None, [1.0, 2.0, 3.0]),
    "mean of fisher": ("FisherSnedecor", "mean", None, [1.0] * 3, [1.0, 2.0, 3.0]),
    "mode of fisher": ("FisherSnedecor", "mode", None, [1.0, 2.0, 3.0], [2.0] * 3),
    "mode of beta": ("Beta", "mode", None, [0.5, 1.0, 2.0], [0.5, 2.0, 2.0]),
    "mode of gamma": ("Gamma", "mode", None, [0.5, 1.0, 2.0], [2.0] * 3),
    "mean of cauchy": ("Cauchy", "mean", None, [0.5, 1.0, 2.0], [2.0] * 3),
    "variance of half cauchy": ("HalfCauchy", "variance", None, [0.5, 1.0, 2.0]),
    "mean of pareto": ("Pareto", "mean", None, [1.0] * 3, [2.0, 3.0, 4.0]),
    "mode of bernoulli": ("Bernoulli", "mode", None, [0.4, 0.5, 0.6]),
}


@pytest.mark.slow
@as_recorded
def test_ends_that_pytorch_has_right(torch):
    return compiled(
        torch, lambda: {name: evaluated(torch, *args) for name, args in FINITE.items()}
    )()


@pytest.mark.slow
@as_recorded
def test_categories_of_probability_0(torch):
    D, t = torch.distributions, torch.tensor
    probs = t([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    logits = t([-INF, 1.0], dtype=torch.float64, requires_grad=True)
    results = []
    for d, leaf in ((D.Categorical(probs), probs), (D.Categorical(None, logits, False), logits)):
        values = [d.log_prob(t(0)), d.log_prob(t(1)), d.entropy()]
        slopes = [torch.autograd.grad(v, leaf, retain_graph=True)[0] for v in values]
        results.append([values, slopes, d.mode])
    counts = D.Multinomial(2, logits=logits, validate_args=False).log_prob(t([0.0, 2.0]).double())
    return [*results, counts, torch.autograd.grad(counts, logits)]


@pytest.mark.slow
@as_recorded("""
    tensor([0.6931471805599451, inf, 0.0], dtype=float64, requires_grad=True)
    tensor([0.6931471805599451, inf, 0.0], dtype=float64, requires_grad=True)
    [tensor([[-0.6931471805599451, 0.0], [0.0, 0.0], [0.0, 0.0]], dtype=float64),
     tensor([[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]], dtype=float64)]
""")
def test_divergences_of_probability_0(torch):
    D, t = torch.distributions, torch.tensor
    p = t([[0.0, 1.0], [0.5, 0.5], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    q = t([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    of_two = D.kl_divergence(D.Bernoulli(p[:, 0]), D.Bernoulli(q[:, 0]))
    of_many = D.kl_divergence(D.Categorical(p), D.Categorical(q))
    return [of_two, of_many, torch.autograd.grad(of_two.sum() * 0 + of_many[0], (p, q))]


# ---- right where PyTorch is not: (result, gradients by value and parameters)


def row(*args, expected, slopes, **named):
    return args, named, expected, slopes


THREE = [1.0] * 3
LOG_2 = math.log(2)

RIGHT = [
    # NaN: one of two infinite terms is times 0
    row(
        "Bernoulli",
        "log_prob",
        [0.0, 1.0, 0.0],
        logits=[INF, INF, -INF],
        expected=[-INF, 0.0, 0.0],
        slopes=[[INF, 0.0, 0.0], [-1.0, 0.0, 0.0]],
    ),
    row(
        "Bernoulli",
        "entropy",
        None,
        logits=[INF, -INF, 0.0],
        expected=[0, 0, LOG_2],
        slopes=[[0.0, 0.0, 0.0]],
    ),
    row(
        "Binomial",
        "log_prob",
        [0.0, 3.0, 0.0],
        [3.0, 3.0, 3.0],
        logits=[INF, INF, -INF],
        expected=[-INF, 0.0, 0.0],
        slopes=None,
    ),
    row(
        "NegativeBinomial",
        "log_prob",
        [0.0, 1.0, 0.0],
        [3.0, 3.0, 0.0],
        logits=[-INF, -INF, 0.0],
        expected=[0.0, -INF, 0.0],
        slopes=None,
    ),
    row(
        "Geometric",
        "log_prob",
        [0.0, 3.0, 1.0],
        logits=[INF, 800.0, -800.0],
        expected=[0.0, -2400.0, -800.0],
        slopes=[[0.0, -800, 0], [0.0, -3.0, 1.0]],
    ),
    row(
        "Geometric",
        "log_prob",
        [0.0, 0.0, 1.0],
        [1.0, 0.5, 0.5],
        expected=[0.0, -LOG_2, -2 * LOG_2],
        slopes=[[0.0, -LOG_2, -LOG_2], [1.0, 2.0, 0.0]],
    ),
    # log(0) times 0
    row(
        "Poisson",
        "log_prob",
        [0.0, 0.0, 1.0],
        [0.0, 2.0, 2.0],
        expected=[0.0, -2.0, LOG_2 - 2],
        slopes=[
            [0.5772156649015329, LOG_2 + 0.5772156649015329, LOG_2 - 0.42278433509846713],
            [-1.0, -1.0, -0.5],
        ],
    ),
    row(
        "Gamma",
        "log_prob",
        [0.0, 0.0, 0.0],
        [1.0, 1.0, 1.0],
        [1.0, 2.0, 0.5],
        expected=[0.0, LOG_2, -LOG_2],
        slopes=[[-1.0, -2.0, -0.5], None, [1.0, 0.5, 2.0]],
    ),
    row(
        "Beta",
        "log_prob",
        [0.0, 1.0, 0.5],
        THREE,
        THREE,
        expected=[0.0] * 3,
        slopes=[[0.0] * 3, [1.0, 1.0, 1 - LOG_2], [1.0, 1.0, 1 - LOG_2]],
    ),
    row(
        "Weibull",
        "log_prob",
        [0.0, 0.0, 0.0],
        [1.0, 1.0, 1.0],
        [1.0, 1.0, 2.0],
        expected=[0.0, 0.0, -INF],
        slopes=[[-1.0, -1.0, INF], None, None],
    ),
    row(
        "Kumaraswamy",
        "log_prob",
        [0.0, 1.0, 0.5],
        THREE,
        THREE,
        expected=[0.0] * 3,
        slopes=[[0.0] * 3, [1.0, 1.0, 1 - LOG_2], [1.0, 1.0, 1 - LOG_2]],
    ),
    row(
        "Kumaraswamy",
        "mode",
        None,
        [2.0, 3.0, 0.5],
        [3.0, 1.0, 3.0],
        expected=[math.sqrt(1 / 5), 1.0, NAN],
        slopes=None,
    ),
    row(
        "Weibull",
        "mode",
        None,
        [2.0, 2.0, 2.0],
        [0.5, 1.0, 2.0],
        expected=[0.0, 0.0, math.sqrt(2)],
        slopes=None,
    ),
    # a gradient through what `where` leaves out
    row(
        "InverseGamma",
        "mean",
        None,
        [0.5, 1.0, 3.0],
        [2.0] * 3,
        expected=[INF, INF, 1.0],
        slopes=[[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]],
    ),
    row(
        "FisherSnedecor",
        "variance",
        None,
        THREE,
        [2.0, 4.0, 5.0],
        expected=[NAN, NAN, 200 / 9],
        slopes=[[0.0, 0.0, -50 / 3], None],
    ),
    row(
        "Pareto",
        "mean",
        None,
        [2.0] * 3,
        [0.5, 1.0, 3.0],
        expected=[INF, INF, 3.0],
        slopes=[[0.0, 0.0, 1.5], [0.0, 0.0, -0.5]],
    ),
    row(
        "Pareto",
        "cdf",
        [0.5, 1.0, 2.0],
        THREE,
        [2.0] * 3,
        expected=[0.0, 0.0, 0.75],
        slopes=[[0.0, 2.0, 0.25], [0.0, -2.0, -0.5], [0.0, 0.0, LOG_2 / 4]],
    ),
    # no gradient at all in PyTorch, which has a constant there
    row(
        "GeneralizedPareto",
        "log_prob",
        [1.0, 2.0, 1.0],
        [0.0] * 3,
        THREE,
        [0.0, 0.0, 1e-9],
        expected=[-1.0, -2.0, -1.0],
        slopes=[[-1.0] * 3, None, [0.0, 1.0, 0.0], [-0.5, 0.0, -0.5]],
    ),
    row(
        "GeneralizedPareto",
        "icdf",
        [0.5, 0.5, 0.5],
        [0.0] * 3,
        THREE,
        [0.0, 1e-9, 1e-4],
        expected=[LOG_2, LOG_2, math.expm1(1e-4 * LOG_2) / 1e-4],
        slopes=[
            [2.0, 2.0, 2.0 * math.exp(1e-4 * LOG_2)],
            THREE,
            None,
            [LOG_2**2 / 2, LOG_2**2 / 2, 0.240237607],
        ],
    ),
    row(
        "ContinuousBernoulli",
        "icdf",
        [0.3, 0.3, 0.5],
        logits=[0.0, 1e-9, 0.0],
        expected=[0.3, 0.3, 0.5],
        slopes=[THREE, [0.105, 0.105, 0.125]],
    ),
    row(
        "ContinuousBernoulli",
        "cdf",
        [0.3, 0.3, 0.5],
        logits=[0.0, 1e-9, 0.0],
        expected=[0.3, 0.3, 0.5],
        slopes=[THREE, [-0.105, -0.105, -0.125]],
    ),
    row(
        "ContinuousBernoulli",
        "variance",
        None,
        logits=[0.0, 1e-3, 0.1],
        expected=[1 / 12, 1 / 12 - 1e-6 / 240, 1 / 12 - 0.01 / 240 + 1e-4 / 6048 - 1e-6 / 172800],
        slopes=[[0.0, -1e-3 / 120, -0.1 / 120 + 1e-3 / 1512 - 1e-5 / 28800]],
    ),
    # tails without digits
    row(
        "Laplace",
        "cdf",
        [-40.0, 0.0, 40.0],
        [0.0] * 3,
        THREE,
        expected=[math.exp(-40) / 2, 0.5, 1.0],
        slopes=[[math.exp(-40) / 2, 0.5, math.exp(-40) / 2], None, None],
    ),
    row(
        "Laplace",
        "icdf",
        [1e-20, 0.5, 1.0],
        [0.0] * 3,
        THREE,
        expected=[math.log(2e-20), 0.0, INF],
        slopes=[[1e20, 2.0, INF], None, None],
    ),
    row(
        "Cauchy",
        "cdf",
        [-1e20, 0.0, 1.0],
        [0.0] * 3,
        THREE,
        expected=[1e-20 / math.pi, 0.5, 0.75],
        slopes=None,
    ),
    row(
        "Cauchy",
        "icdf",
        [1e-20, 0.5, 0.75],
        [0.0] * 3,
        THREE,
        expected=[-1e20 / math.pi, 0.0, 1.0],
        slopes=None,
    ),
    row(
        "Normal",
        "cdf",
        [-10.0, 0.0, 10.0],
        [0.0] * 3,
        THREE,
        expected=[7.619853024160526e-24, 0.5, 1.0],
        slopes=None,
    ),
    row(
        "Normal",
        "icdf",
        [1e-20, 0.5, 0.975],
        [0.0] * 3,
        THREE,
        expected=[-9.262340089798408, 0.0, 1.959963984540054],
        slopes=None,
    ),
    row(
        "Exponential",
        "cdf",
        [1e-20, 1.0, 2.0],
        THREE,
        expected=[1e-20, 1 - math.exp(-1), 1 - math.exp(-2)],
        slopes=None,
    ),
    row(
        "Gumbel",
        "cdf",
        [-3.0, -8.0, 0.0],
        [0.0] * 3,
        THREE,
        expected=[math.exp(-math.exp(3)), 0.0, math.exp(-1)],
        slopes=None,
    ),
    row(
        "HalfNormal",
        "icdf",
        [1e-10, 0.5, 0.9],
        THREE,
        expected=[1e-10 * math.sqrt(math.pi / 2), 0.6744897501960817, 1.6448536269514724],
        slopes=None,
    ),
    row(
        "InverseGamma",
        "cdf",
        [0.02, 1.0, 10.0],
        [3.0] * 3,
        THREE,
        expected=[math.exp(-50) * (1 + 50 + 1250), math.exp(-1) * 2.5, math.exp(-0.1) * 1.105],
        slopes=None,
    ),
    row(
        "RelaxedBernoulli",
        "log_prob",
        [0.5, 0.9, 0.1],
        THREE,
        logits=[800.0, 0.0, 0.0],
        expected=[2 * LOG_2 - 800, 0.0, 0.0],
        slopes=None,
    ),
]


@pytest.mark.slow
def test_ends_that_pytorch_has_wrong():
    """All in one compiled function."""
    everything = jaxgrad.jit(lambda: [evaluated(jaxgrad, *g, **named) for g, named, _, _ in RIGHT])
    for (args, named, expected, slopes), (result, grads) in zip(RIGHT, everything(), strict=True):
        assert result.tolist() == pytest.approx(expected, rel=2e-9, abs=1e-13, nan_ok=True), args
        for ours, known in zip(grads, slopes or [], strict=False):
            if known is not None:
                assert ours.tolist() == pytest.approx(known, rel=2e-8, abs=1e-9), (args, named)
        count("distributions")


def test_the_mode_of_a_uniform_distribution_with_integer_bounds():
    mode = D.Uniform(jaxgrad.tensor([1, 2]), jaxgrad.tensor([3, 4])).mode
    assert mode.dtype == jaxgrad.float32 and mode.isnan().all()  # as in PyTorch


@pytest.mark.slow
def test_outside_of_all_components_a_mixture_has_no_gradient():
    probs = jaxgrad.tensor([0.5, 0.5], requires_grad=True)
    box = D.Uniform(jaxgrad.zeros(2), jaxgrad.ones(2), validate_args=False)
    mixture = D.MixtureSameFamily(D.Categorical(probs), box, validate_args=False)
    log_prob = mixture.log_prob(jaxgrad.tensor(2.0))
    assert log_prob.item() == -INF
    assert jaxgrad.autograd.grad(log_prob, probs)[0].tolist() == [0.0, 0.0]


@pytest.mark.slow
def test_points_at_the_edge_of_a_simplex():
    concentration = jaxgrad.tensor([1.0, 1.0, 2.0], requires_grad=True)
    value = jaxgrad.tensor([0.0, 0.0, 1.0], requires_grad=True)
    log_prob = D.Dirichlet(concentration).log_prob(value)
    assert log_prob.item() == pytest.approx(math.log(6))
    by_value, by_concentration = jaxgrad.autograd.grad(log_prob, (value, concentration))
    assert by_value.tolist() == [0.0, 0.0, 1.0] and bool(by_concentration.isfinite().all())


# ---- divergences that PyTorch has wrong


def infinite(kind, *parameters):
    return getattr(D, kind)(*map(jaxgrad.tensor, parameters))


@pytest.mark.slow
def test_divergences_of_uniform_distributions_on_the_unit_interval():
    # PyTorch says infinite, as if an end of the support were outside
    uniform = D.Uniform(0.0, 1.0)
    continuous = D.ContinuousBernoulli(jaxgrad.tensor(0.5))
    assert D.kl_divergence(uniform, continuous).item() == pytest.approx(0, abs=1e-6)
    assert D.kl_divergence(continuous, uniform).item() == pytest.approx(0, abs=1e-6)
    assert D.kl_divergence(D.Uniform(-0.1, 1.0), continuous).item() == INF
    assert D.kl_divergence(continuous, D.Uniform(0.1, 1.0)).item() == INF


def test_divergences_that_are_infinite_have_the_shape_of_both():
    divergences = D.kl_divergence(D.Normal(0.0, 1.0), D.Exponential(jaxgrad.ones(3)))
    assert divergences.tolist() == [INF] * 3


@pytest.mark.slow
def test_gradients_of_infinite_divergences_are_not_nan():
    low = jaxgrad.tensor([0.2, -0.5], requires_grad=True)
    for other in (D.Beta(2.0, 3.0), D.Gamma(2.0, 3.0), D.Pareto(0.1, 3.0), D.Exponential(2.0)):
        divergences = D.kl_divergence(D.Uniform(low, low + 0.5), other)
        assert divergences[1].item() == INF and math.isfinite(divergences[0].item())
        slope = jaxgrad.autograd.grad(divergences[0], low)[0]
        assert bool(slope.isfinite().all()) and slope[1].item() == 0


@pytest.mark.slow
def test_divergences_of_counts_at_the_ends():
    p, q = jaxgrad.tensor([0.0, 1.0, 0.0]), jaxgrad.tensor([0.0, 1.0, 1.0])
    divergences = D.kl_divergence(D.Binomial(2, p), D.Binomial(2, q))
    assert divergences.tolist() == [0.0, 0.0, INF]
    rates = jaxgrad.tensor([0.0, 0.0, 1.0])
    divergences = D.kl_divergence(D.Poisson(rates), D.Poisson(jaxgrad.tensor([1.0, 0.0, 0.0])))
    assert divergences.tolist() == [1.0, 0.0, INF]
    ones = D.Geometric(jaxgrad.tensor([1.0, 0.5]))
    divergences = D.kl_divergence(ones, D.Geometric(jaxgrad.tensor([1.0, 1.0])))
    assert divergences.tolist() == [pytest.approx(0, abs=1e-6), INF]


@pytest.mark.slow
def test_divergence_of_batches_of_wishart_distributions():
    """PyTorch sums over the batch. For matrices of one row they are gamma distributions."""
    df, scale = jaxgrad.tensor([3.0, 5.0]), jaxgrad.tensor([[[2.0]], [[0.5]]])
    p, q = D.Wishart(df, scale), D.Wishart(df + 1, scale * 2)
    gammas = [D.Gamma(d.df / 2, 0.5 / d.covariance_matrix.reshape(2)) for d in (p, q)]
    expected = D.kl_divergence(*gammas).tolist()
    assert D.kl_divergence(p, q).tolist() == pytest.approx(expected, 1e-5)
    assert p.entropy().tolist() == pytest.approx(gammas[0].entropy().tolist(), 1e-5)
    values = jaxgrad.tensor([1.5, 0.7])
    log_prob = p.log_prob(values.reshape(2, 1, 1)).tolist()
    assert log_prob == pytest.approx(gammas[0].log_prob(values).tolist(), 1e-5)


def test_divergence_of_binomials_of_different_counts():
    fewer, more = D.Binomial(2, jaxgrad.tensor(0.5)), D.Binomial(3, jaxgrad.tensor(0.5))
    assert D.kl_divergence(more, fewer).item() == INF
    with pytest.raises(NotImplementedError, match=r"q\.total_count > p\.total_count"):
        D.kl_divergence(fewer, more)


@pytest.mark.parametrize("kind", ["left", "right"])
def test_ambiguous_divergences_warn(kind):
    class Left(D.Normal):
        pass

    class Right(D.Normal):
        pass

    known = D.kl._KL_REGISTRY.copy()
    try:
        D.register_kl(Left, D.Normal)(lambda p, q: "left")
        D.register_kl(D.Normal, Right)(lambda p, q: "right")
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Left, Right\). Please"):
            assert D.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == "left"
        D.register_kl(Left, Right)(lambda p, q: kind)
        assert D.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == kind
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(known)
        D.kl._formulas.clear()
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        D.register_kl(3, D.Normal)
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0))


# ---- precision, in float32: numbers of 50 digits by mpmath


@pytest.mark.slow
def test_precision_of_large_parameters():
    t = jaxgrad.tensor
    results = [
        D.StudentT(t(1e6), 0.0, 1.0).log_prob(t(1.5)),
        D.StudentT(t(1e6), 0.0, 1.0).entropy(),
        D.Binomial(t(1e5), t(0.25)).log_prob(t(25100.0)),
        D.NegativeBinomial(t(1e5), t(0.5)).log_prob(t(99900.0)),
        D.Poisson(t(1e6)).log_prob(t(1000500.0)),
        D.Gamma(t(1e6), t(1.0)).log_prob(t(1000500.0)),
        D.Beta(t(1e5), t(2e5)).log_prob(t(0.333251953125)),
        D.VonMises(t(0.0), t(1e6)).log_prob(t(0.0)),
        D.VonMises(t(0.0), t(1e6)).variance * 1e6,
        D.GeneralizedPareto(t(0.0), t(1.0), t(1e-6)).log_prob(t(3.0)),
        D.ContinuousBernoulli(logits=t(1e-3)).log_prob(t(0.25)) * 1e3,
    ]
    expected = [
        *(-2.0439386425803057, 1.4189395332049228, -6.106175728801779, -7.046238301204214),
        *(-7.951923004872761, -7.9521521195138805, 6.134519465094088, 5.988816620777402),
        *(0.500000125000125, -2.9999985000045037, -0.2500416785446404),
    ]
    assert [result.item() for result in results] == pytest.approx(expected, rel=1e-5)
    # PyTorch gives 0.0738
    variance = D.Kumaraswamy(t(50.0), t(1e5)).variance.item()
    assert variance == pytest.approx(3.945619473126405e-4, rel=2e-3)


@pytest.mark.slow
def test_entropy_of_binomials_of_different_counts():
    counts = jaxgrad.tensor([1.0, 2.0, 5.0], dtype=jaxgrad.float64)
    probs = jaxgrad.tensor([0.5, 0.2, 0.9], dtype=jaxgrad.float64, requires_grad=True)
    entropy = D.Binomial(counts, probs).entropy()
    expected = scipy.stats.binom([1, 2, 5], [0.5, 0.2, 0.9]).entropy()
    assert entropy.tolist() == pytest.approx(expected.tolist())
    slope = jaxgrad.autograd.grad(entropy.sum(), probs)[0].tolist()
    above, below = (
        scipy.stats.binom([1, 2, 5], np.array([0.5, 0.2, 0.9]) + step).entropy()
        for step in (1e-6, -1e-6)
    )
    assert slope == pytest.approx(((above - below) / 2e-6).tolist(), abs=1e-5)


@pytest.mark.slow
def test_log_prob_of_correlations_of_two_variables():
    """The correlation r has a density in proportion to (1 - r**2) ** (concentration - 1)."""
    r = 0.6
    factor = jaxgrad.tensor([[1.0, 0.0], [r, 0.8]], dtype=jaxgrad.float64)
    log_prob = D.LKJCholesky(2, jaxgrad.tensor(2.5, dtype=jaxgrad.float64)).log_prob(factor)
    expected = scipy.stats.beta(2.5, 2.5).logpdf((r + 1) / 2) - math.log(2)
    assert log_prob.item() == pytest.approx(expected)


@pytest.mark.slow
def test_mixtures_of_vectors():
    mean = jaxgrad.tensor([[[0.0, 1.0], [2.0, -1.0]]] * 3)
    components = D.Independent(D.Normal(mean, 1.0), 1)
    mixture = D.MixtureSameFamily(D.Categorical(jaxgrad.tensor([0.25, 0.75])), components)
    value = jaxgrad.tensor([1.0, 0.5])
    weights = [0.25, 0.75]
    densities = [
        math.exp(-((value - m).square().sum().item()) / 2 - 2 * HALF_LOG_TAU) for m in mean[0]
    ]
    expected = math.log(sum(w * d for w, d in zip(weights, densities, strict=True)))
    assert mixture.log_prob(value).tolist() == pytest.approx([expected] * 3, 1e-5)
    assert mixture.mean[0].tolist() == [1.5, -0.5] and mixture.variance[0].tolist() == [1.75, 1.75]
    assert mixture.sample((5,)).shape == (5, 3, 2)
    assert mixture.expand((4, 3)).log_prob(value).shape == (4, 3)
    same([[1.5, -0.5]] * 3, mixture.mean.tolist(), "mean")


@pytest.mark.parametrize(
    ("distribution", "last"),
    [
        (D.LogNormal(0.0, 1.0), 0.5),
        (D.Weibull(1.0, 2.0), 0.632121),
        (D.InverseGamma(3.0, 1.0), 0.919699),
    ],
    ids=lambda case: type(case).__name__,
)
def test_distribution_functions_begin_at_the_end_of_the_support(distribution, last):
    assert distribution.cdf(jaxgrad.tensor([0.0, 1.0])).tolist() == pytest.approx([0, last])
    with pytest.raises(ValueError, match="Expected value argument"):
        distribution.cdf(jaxgrad.tensor([-1.0]))
    with pytest.raises(ValueError, match="Expected value argument"):
        distribution.log_prob(jaxgrad.tensor([0.0, 1.0]))


def test_quantiles_of_numbers():
    assert D.Pareto(1.0, 2.0).icdf(0.5).item() == pytest.approx(2**0.5)
    assert D.Weibull(1.0, 2.0).icdf(0.5).item() == pytest.approx(math.log(2) ** 0.5)
    assert D.Kumaraswamy(1.0, 2.0).icdf(0.5).item() == pytest.approx(1 - 0.5**0.5)
    wide = D.Weibull(1.0, 2.0).icdf(jaxgrad.tensor(0.5, dtype=jaxgrad.float64))
    assert wide.dtype == jaxgrad.float64


def test_divergences_of_chi2_that_are_infinite():
    for other in (D.ContinuousBernoulli(0.3), D.Uniform(0.0, 1.0), D.Beta(1.0, 2.0)):
        assert D.kl_divergence(D.Chi2(1.0), other).item() == INF


def test_the_number_of_rows_may_be_a_tensor():
    assert D.LKJCholesky(jaxgrad.tensor(3)).sample().shape == (3, 3)


def test_moments_of_a_batch_of_wishart_distributions():
    """Of shapes as PyTorch's, whether the degrees of freedom or the matrices have the batch."""
    tensor = jaxgrad.tensor
    wishart = D.Wishart(tensor([3.0, 9.0]), scale_tril=tensor([[1.5, 0.0], [0.5, 1.0]]))
    assert wishart.mean.tolist() == [
        [[6.75, 2.25], [2.25, 3.75]],
        [[20.25, 6.75], [6.75, 11.25]],
    ]
    assert wishart.covariance_matrix.shape == wishart.variance.shape == (2, 2, 2)


def test_no_samples_of_a_wishart_distribution():
    wishart = D.Wishart(jaxgrad.tensor([3.0, 9.0]), jaxgrad.eye(2))
    assert wishart.sample((0,)).shape == wishart.rsample((0,)).shape == (0, 2, 2, 2)
    assert D.constraints.positive_definite.check(jaxgrad.zeros(0, 2, 2)).shape == (0,)
