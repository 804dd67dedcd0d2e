"""Samples against their distributions (Kolmogorov-Smirnov and chi-squared tests with fixed seeds),
and the gradients of rsample against finite differences, distribution functions and moments.
"""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
from helpers.checks import count
from helpers.distribution_cases import weighted

import jaxgrad
from jaxgrad import distributions as D

COUNT = 2000
SURE = 1e-3  # the seeds are fixed, so a test that passes passes always


def tensor(values):
    return jaxgrad.tensor(values)


LOC, SCALE = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.3, 5.0])
A, B = np.array([0.5, 2.0, 5.0]), np.array([0.7, 1.5, 4.0])


def kumaraswamy_cdf(x):
    return 1 - (1 - x**A) ** B


def continuous_bernoulli_cdf(x, logits=np.array([-2.0, 0.001, 4.0])):  # noqa: B008
    return np.expm1(logits * x) / np.expm1(logits)


def relaxed_cdf(x, temperature=0.7, logits=np.array([-2.0, 0.001, 4.0])):  # noqa: B008
    return scipy.special.expit(temperature * scipy.special.logit(x) - logits)


def von_mises_cdf(x):
    around = (x - LOC + math.pi) % (2 * math.pi) - math.pi
    return scipy.stats.vonmises(SCALE).cdf(around)


def mixture_cdf(x):
    return 0.3 * scipy.stats.norm.cdf(x, -1, 1) + 0.7 * scipy.stats.norm.cdf(x, 2, 0.5)


def continuous(loc, scale, a, b):
    """Distributions by name, and their distribution functions by SciPy."""
    logits = tensor([-2.0, 0.001, 4.0])
    tails = tensor([0.5, 0.0, -0.4])
    components = D.Normal(tensor([-1.0, 2.0]), tensor([1.0, 0.5]))
    mixture = D.MixtureSameFamily(D.Categorical(tensor([0.3, 0.7])), components)
    moved = D.TransformedDistribution(D.Normal(loc, scale), [D.AffineTransform(1.0, -2.0)])
    stats = scipy.stats
    return {
        "beta": (D.Beta(a, b), stats.beta(A, B).cdf),
        "cauchy": (D.Cauchy(loc, scale), stats.cauchy(LOC, SCALE).cdf),
        "chi2": (D.Chi2(a), stats.chi2(A).cdf),
        "continuous_bernoulli": (D.ContinuousBernoulli(logits=logits), continuous_bernoulli_cdf),
        "exponential": (D.Exponential(a), stats.expon(scale=1 / A).cdf),
        "fisher": (D.FisherSnedecor(a, b), stats.f(A, B).cdf),
        "gamma": (D.Gamma(a, b), stats.gamma(A, scale=1 / B).cdf),
        "generalized_pareto": (
            D.GeneralizedPareto(loc, scale, tails),
            stats.genpareto([0.5, 0.0, -0.4], LOC, SCALE).cdf,
        ),
        "gumbel": (D.Gumbel(loc, scale), stats.gumbel_r(LOC, SCALE).cdf),
        "half_cauchy": (D.HalfCauchy(scale), stats.halfcauchy(0, SCALE).cdf),
        "half_normal": (D.HalfNormal(scale), stats.halfnorm(0, SCALE).cdf),
        "inverse_gamma": (D.InverseGamma(a, b), stats.invgamma(A, scale=B).cdf),
        "kumaraswamy": (D.Kumaraswamy(a, b), kumaraswamy_cdf),
        "laplace": (D.Laplace(loc, scale), stats.laplace(LOC, SCALE).cdf),
        "log_normal": (D.LogNormal(loc, scale), stats.lognorm(SCALE, scale=np.exp(LOC)).cdf),
        "mixture": (mixture.expand((3,)), mixture_cdf),
        "normal": (D.Normal(loc, scale), stats.norm(LOC, SCALE).cdf),
        "pareto": (D.Pareto(scale, b), stats.pareto(B, scale=SCALE).cdf),
        "relaxed_bernoulli": (D.RelaxedBernoulli(0.7, logits=logits), relaxed_cdf),
        "student": (D.StudentT(b, loc, scale), stats.t(B, LOC, SCALE).cdf),
        "transformed": (moved, stats.norm(1 - 2 * LOC, 2 * SCALE).cdf),
        "uniform": (D.Uniform(loc, loc + scale), stats.uniform(LOC, SCALE).cdf),
        "von_mises": (D.VonMises(loc, scale), von_mises_cdf),
        "weibull": (D.Weibull(scale, b), stats.weibull_min(B, scale=SCALE).cdf),
    }


def drawn(distribution, shape=(COUNT,)):
    jaxgrad.manual_seed(0)
    return distribution.sample(shape).double().numpy()


def check_uniform(values, name):
    """Fails unless each column is from the uniform distribution."""
    for column in np.atleast_2d(values.T):
        assert scipy.stats.kstest(column, "uniform").pvalue > SURE, name
        count("samples")


@pytest.mark.slow
def test_samples_of_numbers():
    cases = continuous(*(tensor(array.tolist()) for array in (LOC, SCALE, A, B)))
    for name, (distribution, cdf) in cases.items():
        check_uniform(cdf(drawn(distribution)), name)


PROBS = np.array([0.2, 0.5, 0.9])


def discrete(probs, a):
    stats = scipy.stats
    return {
        "bernoulli": (D.Bernoulli(probs), stats.bernoulli(PROBS)),
        "binomial": (D.Binomial(5, probs), stats.binom(5, PROBS)),
        "geometric": (D.Geometric(probs), stats.geom(PROBS, loc=-1)),
        "geometric_logits": (D.Geometric(logits=a), stats.geom(scipy.special.expit(A), loc=-1)),
        "negative_binomial": (D.NegativeBinomial(a, probs), stats.nbinom(A, 1 - PROBS)),
        "poisson": (D.Poisson(a), stats.poisson(A)),
    }


def check_counts(values, probabilities, name):
    """Fails unless the ints 0, 1, ... come with their probabilities; the last one and all above
    count as one.
    """
    seen = np.bincount(np.minimum(values, len(probabilities) - 1).astype(int))
    expected = probabilities * len(values)
    expected[-1] = len(values) - expected[:-1].sum()
    seen = np.pad(seen, (0, len(expected) - len(seen)))
    many = expected > 5
    statistic = ((seen - expected) ** 2 / np.maximum(expected, 1e-9))[many].sum()
    assert scipy.stats.chi2.sf(statistic, max(many.sum() - 1, 1)) > SURE, name
    assert seen[expected <= 0].sum() == 0 or not many.all()
    count("samples")


@pytest.mark.slow
def test_samples_of_counts():
    cases = discrete(tensor(PROBS.tolist()), tensor(A.tolist()))
    for name, (distribution, expected) in cases.items():
        probabilities = expected.pmf(np.arange(12)[:, None])
        for values, column in zip(drawn(distribution).T, probabilities.T, strict=True):
            check_counts(values, column, name)


WEIGHTS = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])


@pytest.mark.slow
def test_samples_of_categories():
    weights = tensor(WEIGHTS.tolist())
    for distribution in (D.Categorical(weights), D.OneHotCategorical(weights)):
        values = drawn(distribution)
        values = values if values.ndim == 2 else values.argmax(-1)
        for column, probabilities in zip(values.T, WEIGHTS, strict=True):
            check_counts(column, probabilities.copy(), "categories")
    values = drawn(D.Multinomial(4, weights))
    assert (values.sum(-1) == 4).all()
    for row, probabilities in enumerate(WEIGHTS):
        for column, probability in enumerate(probabilities):
            pmf = scipy.stats.binom(4, probability).pmf(np.arange(5))
            check_counts(values[:, row, column], pmf, "multinomial")


@pytest.mark.slow
def test_samples_of_vectors():
    concentration = np.array([0.5, 2.0, 3.0])
    values = drawn(D.Dirichlet(tensor(concentration.tolist())))
    marginals = scipy.stats.beta(concentration, concentration.sum() - concentration)
    check_uniform(marginals.cdf(values), "dirichlet")

    factor = np.array([[1.5, 0.0], [0.5, 0.8]])
    mean, covariance = np.array([0.3, -0.2]), factor @ factor.T
    normals = {
        "factor": D.MultivariateNormal(tensor(mean.tolist()), scale_tril=tensor(factor.tolist())),
        "precision": D.MultivariateNormal(
            tensor(mean.tolist()), precision_matrix=tensor(np.linalg.inv(covariance).tolist())
        ),
    }
    for name, normal in normals.items():
        white = np.linalg.solve(factor, (drawn(normal) - mean).T).T
        check_uniform(scipy.stats.norm.cdf(white), name)
        assert abs(np.corrcoef(white.T)[0, 1]) < 0.1

    column, diagonal = np.array([[1.0], [0.5]]), np.array([0.5, 2.0])
    lowrank = D.LowRankMultivariateNormal(
        *map(tensor, (mean.tolist(), column.tolist(), diagonal.tolist()))
    )
    root = np.linalg.cholesky(column @ column.T + np.diag(diagonal))
    white = np.linalg.solve(root, (drawn(lowrank) - mean).T).T
    check_uniform(scipy.stats.norm.cdf(white), "low rank")


def test_samples_of_relaxed_categories():
    relaxed = D.RelaxedOneHotCategorical(0.7, tensor(WEIGHTS[0].tolist()))
    values = np.log(drawn(relaxed))
    check_counts(values.argmax(-1), WEIGHTS[0].copy(), "the greatest element")
    # differences of Gumbel variables are logistic
    logs = np.log(WEIGHTS[0])
    difference = 0.7 * (values[:, 0] - values[:, 1]) - (logs[0] - logs[1])
    check_uniform(scipy.stats.logistic.cdf(difference), "a difference")


def test_samples_of_the_logistic_normal_distribution():
    normal = D.LogisticNormal(tensor([0.5, -1.0]), tensor([1.0, 0.3]))
    values = D.StickBreakingTransform().inv(tensor(drawn(normal).tolist())).numpy()
    check_uniform(scipy.stats.norm([0.5, -1.0], [1.0, 0.3]).cdf(values), "logistic normal")


@pytest.mark.slow
@pytest.mark.parametrize("concentration", [0.5, 3.0])
def test_samples_of_correlations(concentration):
    factors = drawn(D.LKJCholesky(3, concentration))
    correlations = factors @ factors.transpose(0, 2, 1)
    assert np.allclose(correlations[:, range(3), range(3)], 1, atol=1e-6)
    shape = concentration - 1 + 3 / 2  # of each correlation, by Lewandowski et al.
    for i, j in ((0, 1), (0, 2), (1, 2)):
        cdf = scipy.stats.beta(shape, shape).cdf((correlations[:, i, j] + 1) / 2)
        check_uniform(cdf, f"correlation {i} {j}")


@pytest.mark.slow
def test_samples_of_covariances():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    values = drawn(D.Wishart(tensor(4.5), tensor(covariance.tolist())))
    for vector in np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -2.0]]):
        variances = (values @ vector) @ vector / (vector @ covariance @ vector)
        check_uniform(scipy.stats.chi2(4.5).cdf(variances), "a variance")
    # the determinant is that of the covariance times two chi-squared variables
    logs = np.linalg.slogdet(values)[1] - np.linalg.slogdet(covariance)[1]
    expected = sum(scipy.special.digamma((4.5 - i) / 2) + math.log(2) for i in range(2))
    assert abs(logs.mean() - expected) < 4 * logs.std() / math.sqrt(COUNT)


@pytest.mark.slow
def test_no_sample_of_a_wishart_distribution_is_singular():
    with pytest.warns(UserWarning, match="Low df"):
        wishart = D.Wishart(tensor(1.1), jaxgrad.eye(2))
    jaxgrad.manual_seed(0)
    once = jaxgrad.linalg.cholesky_ex(wishart.rsample((COUNT,), max_try_correction=0))[1]
    jaxgrad.manual_seed(0)
    again = jaxgrad.linalg.cholesky_ex(wishart.rsample((COUNT,)))[1]
    assert once.count_nonzero() > 100 and again.count_nonzero() == 0
    jaxgrad.manual_seed(0)
    single = jaxgrad.linalg.cholesky_ex(wishart._bartlett_sampling((COUNT,)))[1]
    assert single.tolist() == once.tolist()


@pytest.mark.parametrize("concentration", [1e-6, 1e-3, 1e3, 1e6])
def test_samples_of_extreme_von_mises_distributions(concentration):
    # in single precision; the deviation of a concentrated one is 1 / sqrt(concentration)
    values = drawn(D.VonMises(tensor(0.0), tensor(concentration)))
    if concentration < 1:
        cdf = (values + math.pi) / (2 * math.pi)
    else:
        cdf = scipy.stats.norm.cdf(values * math.sqrt(concentration))
    check_uniform(cdf, "von Mises")


# ---- gradients of samples with gamma variables; test_compiled.py has the others

IMPLICIT = {
    "beta": (D.Beta, scipy.stats.beta, [2.0, 0.7]),
    "chi2": (D.Chi2, scipy.stats.chi2, [3.0]),
    "gamma": (D.Gamma, lambda c, r: scipy.stats.gamma(c, scale=1 / r), [0.6, 2.0]),
    "inverse_gamma": (D.InverseGamma, lambda c, r: scipy.stats.invgamma(c, scale=r), [2.5, 2.0]),
    "dirichlet": (
        lambda a, b: First(D.Dirichlet(jaxgrad.stack([a, b]))),
        scipy.stats.beta,
        [2.0, 0.7],
    ),
    "wishart": (
        lambda df, scale: First(D.Wishart(df, scale_tril=scale.reshape(1, 1))),
        lambda df, scale: scipy.stats.chi2(df, scale=scale**2),
        [3.0, 1.5],
    ),
}


class First:
    """The first element of the samples of a distribution of vectors or matrices."""

    def __init__(self, distribution):
        self.distribution = distribution

    def rsample(self, shape):
        return self.distribution.rsample(shape).reshape(*shape, -1)[..., 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", IMPLICIT)
def test_gradients_of_rsample_keep_the_distribution_function(name):
    """dx / dp = -(dF / dp) / density, for the distribution function F of SciPy."""
    kind, theirs, values = IMPLICIT[name]
    parameters = [jaxgrad.tensor(v, dtype=jaxgrad.float64, requires_grad=True) for v in values]

    @jaxgrad.jit
    def sample(*parameters):
        drawn = kind(*parameters).rsample((5,))
        return drawn.detach(), jaxgrad.autograd.grad(drawn.sum(), parameters)

    jaxgrad.manual_seed(0)
    drawn, gradients = sample(*parameters)
    x = drawn.numpy()
    for position, gradient in enumerate(gradients):
        ends = []
        for step in (1e-5, -1e-5):
            shifted = list(values)
            shifted[position] += step
            ends.append(theirs(*shifted).cdf(x))
        slope = (ends[0] - ends[1]) / 2e-5
        expected = (-slope / theirs(*values).pdf(x)).sum()
        assert gradient.item() == pytest.approx(expected, rel=1e-5)
        count("samples")


def mean_gradient(distribution, function, parameters, size=20_000):
    """The mean of the gradients of samples, and the deviation of that mean."""

    @jaxgrad.jit
    def block():
        value = function(distribution().rsample((size // 10,))).mean()
        return jaxgrad.autograd.grad(value, parameters)

    jaxgrad.manual_seed(0)
    blocks = [[gradient.tolist() for gradient in block()] for _ in range(10)]
    means = [np.array(gradients) for gradients in zip(*blocks, strict=True)]
    return [(array.mean(0), array.std(0, ddof=1) / math.sqrt(10)) for array in means]


def trigamma(x):
    return scipy.special.polygamma(1, x)


def leaf(values):
    return jaxgrad.tensor(values, dtype=jaxgrad.float64, requires_grad=True)


def student():
    df, scale = leaf(5.0), leaf(2.0)
    # of mean scale**2 * df / (df - 2)
    distribution = lambda: D.StudentT(df, 0.0, scale)  # noqa: E731
    return distribution, lambda x: x.square(), [df, scale], [-8 / 9, 20 / 3]


def fisher():
    df1, df2 = leaf(3.0), leaf(7.0)
    # of mean digamma(df1 / 2) - log(df1) - digamma(df2 / 2) + log(df2)
    slopes = [trigamma(1.5) / 2 - 1 / 3, -trigamma(3.5) / 2 + 1 / 7]
    return lambda: D.FisherSnedecor(df1, df2), lambda x: x.log(), [df1, df2], slopes


@pytest.mark.slow
@pytest.mark.parametrize("case", [student, fisher])
def test_mean_gradients_of_rsample_are_those_of_the_mean(case):
    distribution, function, parameters, expected = case()
    estimates = mean_gradient(distribution, function, parameters)
    for (mean, deviation), known in zip(estimates, expected, strict=True):
        assert (np.abs(mean - known) <= 4 * deviation + 1e-12).all(), (mean, known, deviation)
        assert (deviation < 0.1 * np.abs(known).max()).all()
        count("samples")


@pytest.mark.slow
def test_gradients_of_samples_of_covariances():
    """The same noise makes the samples for another factor."""
    factor = leaf([[1.5, 0.0], [0.5, 0.8]])

    @jaxgrad.jit
    def total(factor):
        sample = D.Wishart(4.5, scale_tril=factor.tril()).rsample((2,))
        return sample.detach(), jaxgrad.autograd.grad(weighted(jaxgrad, sample), factor)[0]

    jaxgrad.manual_seed(0)
    sample, gradient = total(factor)
    # sample = factor @ noise @ factor.mT
    lower = factor.detach().numpy()
    inverse = np.linalg.inv(lower)
    noise = inverse @ sample.numpy() @ inverse.T
    weights = (np.arange(8) * 0.37 + 1).reshape(2, 2, 2)
    expected = ((weights + weights.transpose(0, 2, 1)) @ lower @ noise).sum(0)
    assert gradient.numpy() == pytest.approx(np.tril(expected), rel=1e-9)


@pytest.mark.slow
def test_straight_through_samples_have_the_gradient_of_the_probabilities():
    probs = leaf([0.2, 0.3, 0.5])
    one_hot = D.OneHotCategoricalStraightThrough(probs)
    sample = one_hot.rsample()
    assert sorted(sample.tolist()) == [0, 0, 1]
    weights = leaf([1.0, 2.0, 4.0]).detach()
    (gradient,) = jaxgrad.autograd.grad((sample * weights).sum(), probs)
    # of (probs / probs.sum() * weights).sum()
    assert gradient.tolist() == pytest.approx([1 - 2.8, 2 - 2.8, 4 - 2.8])


@pytest.mark.slow
def test_samples_have_no_history_and_their_shape():
    loc = leaf([0.0, 1.0])
    for distribution in (
        D.Normal(loc, 1.0),
        D.Categorical(logits=loc),
        D.Independent(D.Normal(loc, 1.0), 1),
        D.TransformedDistribution(D.Normal(loc, 1.0), D.ExpTransform()),
    ):
        sample = distribution.sample((3, 2))
        assert sample.shape == distribution._extended_shape((3, 2)) and not sample.requires_grad
    assert D.Normal(loc, 1.0).sample((0,)).shape == (0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jaxgrad.float64, jaxgrad.float16])
def test_samples_have_the_dtype_of_the_parameters(dtype):
    one = jaxgrad.ones(2, dtype=dtype)
    for distribution in (D.Normal(one, one), D.Uniform(one - 1, one), D.Gamma(one, one)):
        assert distribution.sample().dtype is dtype
        assert distribution.log_prob(one / 2).dtype is dtype
