"""Every distribution in compiled functions with a backward pass inside, under vmap, and in the
other modes of differentiation, against what it gives operator by operator.
"""

import jax
import pytest
from helpers.checks import count
from helpers.distribution_cases import (
    CASES,
    RECORDED,
    leaves,
    make,
    same,
    value_of,
    weighted,
    weights_of,
)

import jaxgrad
from jaxgrad import distributions as D

SLOW = {"beta", "kumaraswamy", "wishart", "student", "fisher", "multinomial", "gamma"}
SLOW |= {"continuous_bernoulli", "inverse_gamma", "dirichlet", "lkj", "negative_binomial"}

# one case of each class
NAMES = list({case.kind: name for name, case in reversed(CASES.items())}.values())
MARKED = [
    pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in sorted(NAMES)
]

VECTORS = {"Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Dirichlet"}
VECTORS |= {"Multinomial", "RelaxedOneHotCategorical", "LogisticNormal", "MultivariateNormal"}
VECTORS |= {"LowRankMultivariateNormal"}


def batched(case, values):
    """The parameters, each with the dimension of the batch that the value has in front."""
    size = len(case.value)
    parameters = {}
    for name, value in values.items():
        dims = 2 if name in ("covariance_matrix", "scale_tril", "cov_factor") else 1
        dims = dims if case.kind in VECTORS or (case.kind == "Wishart" and name != "df") else 0
        dims = 0 if name == "temperature" else dims
        parameters[name] = value if value.ndim > dims else value.expand(size, *value.shape)
    return parameters


def log_prob(case, names):
    """The sum of the log_prob of one value, as a function of its distribution's parameters."""
    return lambda value, *parameters: (
        make(jaxgrad, case, dict(zip(names, parameters, strict=True))).log_prob(value).sum()
    )


# whose samples have parameters of gamma variables, which jump with the number of rejections, or are
# constant: test_samples.py tests their gradients
NO_PATH = {"beta", "chi2", "dirichlet", "fisher", "gamma", "inverse_gamma", "student", "wishart"}
NO_PATH |= {"straight_through"}
STEP = 1e-6


class Compiled:
    """A compiled function of the parameters of a case: log_prob, the gradients of its sum and those
    that `vmap` computes for each example by itself, and a sample with its gradients.
    """

    def __init__(self, case, names, follows_samples):
        self.case, self.names, self.follows_samples = case, names, follows_samples
        self.step = jaxgrad.jit(self.uncompiled)

    def make(self, parameters):
        return make(jaxgrad, self.case, dict(zip(self.names, parameters, strict=True)))

    def uncompiled(self, value, *parameters):
        result = self.make(parameters).log_prob(value)
        slopes = jaxgrad.autograd.grad(weighted(jaxgrad, result), parameters)
        return result, slopes, self.mapped(value, parameters, result), self.sampled(parameters)

    def mapped(self, value, parameters, result):
        arguments = tuple(range(1, 1 + len(parameters)))
        gradient = jaxgrad.func.grad(log_prob(self.case, self.names), arguments)
        batch = batched(self.case, dict(zip(self.names, parameters, strict=True)))
        slopes = jaxgrad.func.vmap(gradient)(value, *(tensor.detach() for tensor in batch.values()))
        weights = weights_of(jaxgrad, result)
        return [
            (slope * weights.reshape(-1, *[1] * (slope.ndim - 1))).sum_to_size(parameter.shape)
            for slope, parameter in zip(slopes, parameters, strict=True)
        ]

    def sampled(self, parameters):
        distribution = self.make(parameters)
        if not (distribution.has_rsample and self.follows_samples):
            return distribution.sample(), 0, ()
        sample = distribution.rsample()
        total = weighted(jaxgrad, sample)
        return sample.detach(), total.detach(), jaxgrad.autograd.grad(total, parameters)


@pytest.mark.slow
@pytest.mark.parametrize("name", MARKED)
def test_compiled_and_mapped(name):
    """The numbers are PyTorch's, the samples those of uncompiled code, and their gradients finite
    differences: the same noise makes the samples for shifted parameters.
    """
    case, recorded = CASES[name], RECORDED["answers"][name]
    leaf = leaves(jaxgrad, case.parameters)
    value, values = value_of(jaxgrad, case), list(leaf.values())
    compiled = Compiled(case, list(leaf), name not in NO_PATH)

    def run(values):
        jaxgrad.manual_seed(0)
        return compiled.step(value, *values)

    result, slopes, mapped, (sample, _, gradients) = run(values)
    same(recorded["log_prob"], result.tolist(), name)
    for key, *derivative in zip(leaf, slopes, mapped, strict=True):
        for slope in derivative:
            same(recorded[f"log_prob by {key}"], slope.tolist(), f"{name} by {key}")
            count("distributions")
    jaxgrad.manual_seed(0)
    same(make(jaxgrad, case, leaf).sample().tolist(), sample.tolist(), name, 1e-10)
    for position, gradient in enumerate(gradients):
        direction, ends = jaxgrad.cos(0.1 + values[position].detach()), []
        for step in (STEP, -STEP):
            shifted = list(values)
            shifted[position] = (values[position] + step * direction).detach().requires_grad_()
            ends.append(run(shifted)[3][1].item())
        derivative = (gradient * direction).sum().item()
        expected = (ends[0] - ends[1]) / (2 * STEP)
        assert derivative == pytest.approx(expected, rel=1e-5, abs=1e-6), (name, position)
        count("samples")
    assert len(compiled.step.traces) == 1


def listed(tensors):
    if isinstance(tensors, jaxgrad.Tensor):
        return tensors.tolist()
    return [listed(part) for part in tensors]


@pytest.mark.slow
def test_different_samples_of_examples():
    sample = jaxgrad.func.vmap(lambda loc: D.Normal(loc, 1.0).rsample(), randomness="different")
    assert len(set(sample(jaxgrad.zeros(4)).tolist())) == 4
    same_draws = jaxgrad.func.vmap(lambda loc: loc + D.Gamma(3.0, 1.0).sample(), randomness="same")
    assert len(set(same_draws(jaxgrad.ones(4)).tolist())) == 1
    with pytest.raises(RuntimeError, match="randomness"):
        jaxgrad.func.vmap(lambda loc: D.Normal(loc, 1.0).rsample())(jaxgrad.zeros(2))


@pytest.mark.slow
def test_loops_of_samplers_are_mapped():
    draw = jaxgrad.func.vmap(lambda x: D.VonMises(x, x).sample(), randomness="different")
    samples = draw(jaxgrad.ones(3))
    assert bool(samples.isfinite().all()) and len(set(samples.tolist())) == 3


@pytest.mark.slow
def test_new_samples_in_each_call():
    normal, von_mises = D.Normal(0.0, 1.0), D.VonMises(0.0, 1.0)
    draw = jaxgrad.jit(lambda: (normal.rsample(), von_mises.sample()))
    jaxgrad.manual_seed(0)
    samples = [[sample.item() for sample in draw()] for _ in range(2)]
    jaxgrad.manual_seed(0)
    expected = [[normal.rsample().item(), von_mises.sample().item()] for _ in range(2)]
    assert samples == [pytest.approx(pair, 1e-6) for pair in expected]
    assert len({*samples[0], *samples[1]}) == 4 and len(draw.traces) == 1


def test_a_distribution_from_outside_keeps_its_parameters():
    scale = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    normal = D.Normal(jaxgrad.zeros(2), scale)
    loss = jaxgrad.jit(lambda x: normal.log_prob(x).sum())
    loss(jaxgrad.ones(2)).backward()
    assert scale.grad.tolist() == [0.0, -0.375]
    with jaxgrad.no_grad():
        scale.mul_(2)
    # a compiled function reads the tensor, and not the value that it had
    expected = normal.log_prob(jaxgrad.ones(2)).sum().item()
    assert loss(jaxgrad.ones(2)).item() == pytest.approx(expected)


def test_lazy_attributes_in_compiled_functions():
    bernoulli = D.Bernoulli(jaxgrad.tensor([0.5, 0.2]))
    log_prob = jaxgrad.jit(lambda x: bernoulli.log_prob(x))
    one = jaxgrad.ones(2)
    values = [log_prob(one).tolist() for _ in range(3)]
    assert values == [pytest.approx([-0.693147, -1.609438], 1e-5)] * 3 and len(log_prob.traces) == 1


FORWARD = ["gamma", "multivariate_normal_factor"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_and_second_derivatives(name):
    case = CASES[name]
    value = value_of(jaxgrad, case)
    parameters = [jaxgrad.tensor(v, dtype=jaxgrad.float64) for v in case.parameters.values()]
    function = log_prob(case, list(case.parameters))
    reverse = jaxgrad.func.jacrev(lambda *p: function(value, *p), tuple(range(len(parameters))))
    forward = jaxgrad.func.jacfwd(lambda *p: function(value, *p), tuple(range(len(parameters))))
    same(listed(reverse(*parameters)), listed(forward(*parameters)), name, 1e-9)
    direction = [jaxgrad.cos(0.1 + parameter) for parameter in parameters]
    step = 1e-5
    ends = [
        reverse(*(p + sign * step * d for p, d in zip(parameters, direction, strict=True)))
        for sign in (1, -1)
    ]
    expected = [((a - b) / (2 * step)).tolist() for a, b in zip(*ends, strict=True)]
    _, second = jaxgrad.func.jvp(lambda *p: reverse(*p), tuple(parameters), tuple(direction))
    same(expected, listed(second), f"{name}, second order", 1e-6)
    count("distributions", 2)


@pytest.mark.slow
def test_second_derivatives_of_a_sample():
    concentration = jaxgrad.tensor(2.5, dtype=jaxgrad.float64, requires_grad=True)

    def slope(concentration):
        jaxgrad.manual_seed(0)
        sample = D.Gamma(concentration, 1.0).rsample()
        return jaxgrad.autograd.grad(sample, concentration, create_graph=True)[0]

    (second,) = jaxgrad.autograd.grad(slope(concentration), concentration)
    assert bool(second.isfinite()) and second.item() != 0


def test_under_transformations_of_jax():
    def log_prob(loc, scale):
        return D.Normal(loc, scale).log_prob(jaxgrad.zeros(3)).sum()

    pure = jaxgrad.to_jax(log_prob)
    gradient = jax.jit(jax.grad(pure, argnums=1))(jax.numpy.ones(3), jax.numpy.full(3, 2.0))
    assert gradient.tolist() == [-0.375] * 3


@pytest.mark.slow
def test_exponential_families_keep_the_history():
    """PyTorch's general entropy and divergence lose it."""
    loc, scale = (jaxgrad.tensor(value, requires_grad=True) for value in (0.5, 2.0))
    normal = D.Normal(loc, scale)
    entropy = D.ExponentialFamily.entropy(normal)
    assert entropy.item() == pytest.approx(normal.entropy().item())
    assert jaxgrad.autograd.grad(entropy, scale)[0].item() == pytest.approx(0.5)

    class Mine(D.ExponentialFamily):
        arg_constraints = {}  # noqa: RUF012
        _mean_carrier_measure = 0
        _natural_params = D.Normal._natural_params
        _log_normalizer = D.Normal._log_normalizer

        def __init__(self, loc, scale):
            self.loc, self.scale = loc, scale
            super().__init__(validate_args=False)

    other = Mine(jaxgrad.tensor(1.0), jaxgrad.tensor(1.0))
    divergence = D.kl_divergence(Mine(loc, scale), other)
    expected = D.kl_divergence(normal, D.Normal(1.0, 1.0))
    assert divergence.item() == pytest.approx(expected.item())
    slopes = jaxgrad.autograd.grad(divergence, (loc, scale))
    theirs = jaxgrad.autograd.grad(expected, (loc, scale))
    assert [slope.item() for slope in slopes] == pytest.approx([slope.item() for slope in theirs])
    assert not D.ExponentialFamily.entropy(D.Normal(0.0, 1.0)).requires_grad
    with jaxgrad.no_grad():
        assert not D.ExponentialFamily.entropy(normal).requires_grad


@pytest.mark.slow
def test_binomials_of_a_known_count_in_compiled_functions():
    probs = jaxgrad.tensor([0.2, 0.5])
    entropy = jaxgrad.jit(lambda probs: D.Binomial(3, probs).entropy())
    expected = D.Binomial(3, probs).entropy().tolist()
    assert entropy(probs).tolist() == pytest.approx(expected)
    counts = jaxgrad.tensor([3.0, 3.0])
    with pytest.raises(RuntimeError, match="needs the numbers"):
        jaxgrad.jit(lambda counts: D.Binomial(counts, probs).entropy())(counts)
