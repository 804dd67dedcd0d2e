"""What all distributions have: shapes, checks of parameters and values, `expand`, subclasses,
`validate_args`, with PyTorch's recorded answers and errors.
"""

import copy
import math
import warnings

import pytest
from helpers.as_torch import error, warned
from helpers.distribution_cases import CASES, as_recorded, leaves, make, result, value_of

import jaxgrad
from jaxgrad import distributions
from jaxgrad.distributions import Distribution, Normal, constraints

SATISFY, SUPPORT = "to satisfy the constraint", "to be within the support"


@pytest.mark.slow
@as_recorded
def test_shapes_and_flags(torch):
    results = {}
    for name, case in CASES.items():
        d = make(torch, case, leaves(torch, case.parameters))
        results[name] = [d.batch_shape, d.event_shape, d.has_rsample, d.has_enumerate_support]
        results[name] += [d.support.event_dim, d.support.is_discrete, d._extended_shape((2, 3))]
    return results


@pytest.mark.slow
@as_recorded
def test_constraints_of_parameters(torch):
    results = {}
    for name, case in CASES.items():
        d = make(torch, case, leaves(torch, case.parameters))
        dims = {key: constraint.event_dim for key, constraint in d.arg_constraints.items()}
        results[name] = dict(sorted(dims.items()))
    return results


@pytest.mark.slow
@as_recorded
def test_expand(torch):
    results = {}
    for name, case in CASES.items():
        d = make(torch, case, leaves(torch, case.parameters))
        e = d.expand((4, *d.batch_shape))
        names = sorted(key for key in d.arg_constraints if hasattr(d, key))
        shapes = [getattr(e, key).shape for key in names]
        results[name] = [type(e).__name__, e.batch_shape, e.event_shape, *shapes]
    return results


@pytest.mark.slow
@as_recorded
def test_expanded_log_prob(torch):
    log_probs = []
    for name in ("normal", "gumbel", "beta", "categorical", "multivariate_normal_factor"):
        case = CASES[name]
        d = make(torch, case, leaves(torch, case.parameters))
        log_probs.append(d.expand((2, *d.batch_shape)).log_prob(value_of(torch, case)))
    return log_probs


@as_recorded
def test_enumerate_support(torch):
    D = torch.distributions
    supports = []
    for d in (
        D.Bernoulli(torch.tensor([0.5, 0.2])),
        D.Binomial(2, torch.tensor([0.5, 0.2])),
        D.Categorical(torch.tensor([[0.5, 0.2, 0.3]] * 2)),
        D.OneHotCategorical(torch.tensor([[0.5, 0.5]])),
        D.Independent(D.Bernoulli(torch.tensor([0.5])), 0),
    ):
        supports += [d.enumerate_support(), d.enumerate_support(expand=False)]
    return supports


@as_recorded(r"""
    'Normal(loc: 0.0, scale: 1.0)'
    'Normal(loc: torch.Size([3]), scale: torch.Size([3]))'
    'Independent(Normal(loc: 0.0, scale: 1.0), 0)'
    ('MixtureSameFamily(\n'
     '  Categorical(logits: torch.Size([2])),\n'
     '  Normal(loc: torch.Size([2]), scale: torch.Size([2])))')
""")
def test_printed(torch):
    D = torch.distributions
    normal = D.Normal(0.0, 1.0)
    weights = D.Categorical(logits=torch.zeros(2))
    mixture = D.MixtureSameFamily(weights, D.Normal(torch.zeros(2), 1.0))
    return list(
        map(repr, (normal, D.Normal(torch.zeros(3), 1.0), D.Independent(normal, 0), mixture))
    )


@pytest.mark.slow
@as_recorded
def test_refused_parameters(torch):
    D, t = torch.distributions, torch.tensor
    return [
        error(D.Normal, 0.0, -1.0, words=SATISFY),
        error(D.Normal, t([0.0, float("nan")]), 1.0, words=SATISFY),
        error(D.Uniform, 1.0, 0.0, words=SATISFY),
        error(D.Bernoulli, 1.5, words=SATISFY),
        error(D.Categorical, t([-0.5, 1.5]), words=SATISFY),
        error(D.Poisson, -1.0, words=SATISFY),
        error(D.Binomial, -1, t(0.5), words=SATISFY),
        error(D.Geometric, 0.0, words="Expected parameter probs"),
        error(D.MultivariateNormal, torch.zeros(2), -torch.eye(2), words=SATISFY),
        error(D.Dirichlet, t([0.0, 1.0]), words=SATISFY),
        error(D.StudentT, 0.0, words=SATISFY),
        error(D.Bernoulli, words="Either `probs` or `logits` must be specified, but not both"),
        error(D.Bernoulli, 0.5, 0.5, words="Either `probs` or `logits` must be specified"),
        error(D.Categorical, words="Either `probs` or `logits` must be specified"),
        error(D.Categorical, t(0.5), words="parameter must be at least one-dimensional"),
        error(D.Dirichlet, t(0.5), words="parameter must be at least one-dimensional"),
        error(D.MultivariateNormal, t(0.0), torch.eye(2), words="loc must be at least one-dim"),
        error(D.MultivariateNormal, torch.zeros(2), words="Exactly one of covariance_matrix or"),
        error(D.MultivariateNormal, torch.zeros(2), t([1.0]), words="at least two-dimensional"),
        error(D.Wishart, t(3.0), words="Exactly one of covariance_matrix or precision_matrix"),
        error(D.Wishart, t(0.5), torch.eye(2), words="expected to be greater than ndim - 1"),
        error(D.LKJCholesky, 1, words="Expected dim to be an integer greater than or equal to 2"),
        error(D.Multinomial, t(3), t([0.5, 0.5]), words="inhomogeneous total_count is not"),
        error(D.Normal, "a", 1.0, words="Input arguments must all be instances of Number"),
        error(D.Normal, t([0.0, 1.0]), torch.ones(3)),
        error(D.Independent, D.Normal(0.0, 1.0), 1, words="Expected reinterpreted_batch_ndims <="),
        error(Lowrank(torch), (2,), (3, 1), (2,), words="cov_factor must be a batch of matrices"),
        error(Lowrank(torch), (2,), (2, 1), (3,), words="cov_diag must be a batch of vectors"),
        error(Lowrank(torch), (2, 2), (3, 2, 1), (2,), words="Incompatible batch shapes"),
    ]


class Lowrank:
    """Makes a distribution of ones from three shapes."""

    def __init__(self, torch):
        self.torch = torch

    def __call__(self, *shapes):
        ones = map(self.torch.ones, shapes)
        return self.torch.distributions.LowRankMultivariateNormal(*ones)


@as_recorded
def test_refused_values(torch):
    D, t = torch.distributions, torch.tensor
    normal = D.Normal(torch.zeros(3), 1.0)
    dirichlet = D.Dirichlet(torch.ones(2))
    return [
        error(normal.log_prob, 0.0, words="The value argument to log_prob must be a Tensor"),
        error(normal.log_prob, t([0.0, 1.0]), words="Value is not broadcastable with batch_shape"),
        error(normal.log_prob, t(float("nan")), words=SUPPORT),
        error(normal.cdf, t(float("nan")), words=SUPPORT),
        error(dirichlet.log_prob, torch.ones(3), words="The right-most size of value must match"),
        error(dirichlet.log_prob, t([0.5, 0.6]), words=SUPPORT),
        error(D.Uniform(0.0, 1.0).log_prob, t(1.5), words=SUPPORT),
        error(D.Bernoulli(0.5).log_prob, t(0.5), words=SUPPORT),
        error(D.Binomial(2, t(0.5)).log_prob, t(3.0), words=SUPPORT),
        error(D.Categorical(torch.ones(2)).log_prob, t(2), words=SUPPORT),
        error(D.OneHotCategorical(torch.ones(2)).log_prob, t([1.0, 1.0]), words=SUPPORT),
        error(D.Multinomial(2, torch.ones(2)).log_prob, t([2.0, 1.0]), words=SUPPORT),
        error(D.Pareto(1.0, 1.0).log_prob, t(0.5), words=SUPPORT),
        error(D.LKJCholesky(2).log_prob, torch.ones(2, 2), words=SUPPORT),
        error(D.Wishart(t(3.0), torch.eye(2)).log_prob, torch.ones(2, 2), words=SUPPORT),
        error(D.Exponential(1.0).log_prob, t(-1.0), words=SUPPORT),
        error(D.Gamma(1.0, 1.0).log_prob, -1.0, words=SUPPORT),
    ]


@pytest.mark.slow
@as_recorded("""
    tensor([1.0, -1.0])
    tensor([-inf, -inf])
    tensor([-inf, -0.725791335105896])
    tensor(-2.0)
    tensor(-2.061020612716675)
    tensor(-1.0)
""")
def test_unchecked_values(torch):
    D, t = torch.distributions, torch.tensor
    return [
        D.Exponential(1.0, validate_args=False).log_prob(t([-1.0, 1.0])),
        D.Uniform(0.0, 1.0, validate_args=False).log_prob(t([-1.0, 1.0])),
        D.HalfNormal(1.0, validate_args=False).log_prob(t([-1.0, 1.0])),
        D.Gamma(1.0, 1.0).log_prob(2.0),
        D.HalfCauchy(1.0, validate_args=False).log_prob(2.0),
        D.Normal(0.0, -1.0, validate_args=False).scale,
    ]


@as_recorded
def test_missing_methods(torch):
    D = torch.distributions
    beta = D.Beta(1.0, 1.0)
    return [
        error(lambda: beta.cdf(torch.tensor(0.5)), words=""),
        error(lambda: beta.icdf(torch.tensor(0.5)), words=""),
        error(lambda: beta.enumerate_support(), words=""),
        error(lambda: D.Bernoulli(0.5).rsample(), words=""),
        error(lambda: D.Poisson(1.0).entropy(), words=""),
        error(lambda: D.LKJCholesky(2).mean, words=""),
        error(lambda: D.Multinomial(2, torch.ones(2)).mode, words="does not implement mode"),
        error(lambda: D.Distribution(validate_args=False).log_prob(0), words=""),
        error(lambda: D.Distribution(validate_args=False).sample(), words=""),
        error(
            lambda: D.Independent(D.Bernoulli(torch.ones(1)), 1).enumerate_support(),
            words="Enumeration over cartesian product is not implemented",
        ),
        error(
            lambda: D.Binomial(torch.tensor([1.0, 2.0]), 0.5).enumerate_support(),
            words="Inhomogeneous total count not supported by `enumerate_support`",
        ),
    ]


@as_recorded("""
    'Plain'
    [2]
    NotImplementedError(
     'Subclass Shifted of Normal that defines a custom __init__ method must also define '
     'a custom .expand() method.')
    'n expanded'
    [2]
    'Named'
""")
def test_subclasses(torch):
    class Plain(torch.distributions.Normal):
        pass

    class Shifted(torch.distributions.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    class Named(torch.distributions.Normal):
        def __init__(self, loc, name):
            super().__init__(loc, 1.0)
            self.name = name

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Named, _instance)
            new.name = self.name + " expanded"
            return super().expand(batch_shape, _instance=new)

    plain, named = Plain(0.0, 1.0).expand((2,)), Named(torch.zeros(1), "n").expand((2,))
    return [
        type(plain).__name__,
        plain.batch_shape,
        error(Shifted(0.0).expand, (2,), words="must also define a custom .expand() method"),
        named.name,
        named.loc.shape,
        type(named).__name__,
    ]


def of_user(torch, **members):
    """A distribution that a user defines, with the density 1 on the real numbers."""

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return torch.zeros_like(value)

    return type("Mine", (torch.distributions.Distribution,), {"log_prob": log_prob, **members})


@as_recorded
def test_users_distributions(torch):
    c = torch.distributions.constraints
    no_constraints = of_user(torch, support=c.real)
    no_support = of_user(torch, arg_constraints={})
    whole = of_user(torch, arg_constraints={"p": c.positive, "q": c.dependent}, support=c.real)
    whole.p, whole.q = torch.tensor(1.0), torch.tensor(-1.0)
    wrong = of_user(torch, arg_constraints={"p": c.positive}, support=c.real)
    wrong.p = torch.tensor(-1.0)

    def words(outcome, text):
        return [[warning["error"], text in warning["says"]] for warning in outcome["warnings"]]

    return [
        words(warned(no_constraints), "does not define `arg_constraints`"),
        words(warned(no_constraints, (), (), False), "does not define `arg_constraints`"),
        words(warned(no_support().log_prob, torch.zeros(1)), "does not define `support`"),
        whole().log_prob(torch.zeros(2)),
        error(wrong, words="Expected parameter p"),
        error(whole().log_prob, torch.tensor([float("nan")]), words=SUPPORT),
    ]


@as_recorded
def test_default_of_validate_args(torch):
    D = torch.distributions
    set_default = D.Distribution.set_default_validate_args
    results = [error(set_default, "yes", words="")]
    try:
        set_default(False)
        results.append(D.Normal(0.0, -1.0).scale)
        results.append(error(lambda: D.Normal(0.0, -1.0, validate_args=True), words=SATISFY))
        set_default(True)
        results.append(error(lambda: D.Normal(0.0, -1.0), words=SATISFY))
    finally:
        set_default(__debug__)
    return results


@pytest.mark.slow
@as_recorded("""
    ['FutureWarning']
    [3]
    tensor(2.0, dtype=float64)
""")
def test_sample_n_and_perplexity(torch):
    d = torch.distributions.Categorical(torch.tensor([0.5, 0.5], dtype=torch.float64))
    drawn = warned(d.sample_n, 3)
    return [[w["error"] for w in drawn["warnings"]], drawn["result"].shape, d.perplexity()]


@as_recorded("""
    tensor([1.0, 1.0], dtype=float64)
    tensor(0.0)
    tensor(1.0)
    tensor([3.0], dtype=float64)
    tensor([1.0, 2.0])
    tensor([1.0, 1.0])
    [2, 3]
    [2, 3]
""")
def test_numbers_beside_tensors(torch):
    D = torch.distributions
    return [
        D.Normal(torch.zeros(2, dtype=torch.float64), 1).scale,
        D.Normal(0, 1).loc,
        D.Beta(1, 2).concentration1,
        D.Binomial(3, torch.tensor([0.5], dtype=torch.float64)).total_count,
        D.Binomial(torch.tensor([1, 2]), torch.tensor(0.5)).total_count,
        D.StudentT(torch.tensor([1.0, 2.0])).scale,
        D.Uniform(torch.zeros(2, 1), torch.ones(3)).low.shape,
        D.Gamma(torch.ones(2, 1), torch.ones(3)).batch_shape,
    ]


def test_a_float_beside_integers_is_not_cut():
    # PyTorch makes it an integer too: the probability is 0
    binomial = distributions.Binomial(jaxgrad.tensor([4]), 0.5)
    assert binomial.probs.item() == 0.5 and binomial.mean.item() == 2


def test_names_of_the_modules():
    for name, kind in vars(distributions).items():
        if isinstance(kind, type):
            assert getattr(distributions, name) is kind
    assert jaxgrad.distributions.normal.Normal is Normal
    assert jaxgrad.distributions.studentT.StudentT is distributions.StudentT
    with pytest.raises(AttributeError, match="did you mean 'Normal'"):
        _ = jaxgrad.distributions.Normall


def test_values_of_a_trace_are_not_checked_and_shapes_are():
    normal = Normal(jaxgrad.zeros(3), 1.0)
    log_prob = jaxgrad.jit(lambda value: normal.log_prob(value))
    assert bool(log_prob(jaxgrad.full((3,), jaxgrad.nan)).isnan().all())
    with pytest.raises(ValueError, match="not broadcastable"):
        log_prob(jaxgrad.zeros(2))
    scale = jaxgrad.jit(lambda scale: Normal(0.0, scale).scale)
    assert scale(jaxgrad.tensor(-1.0)).item() == -1


def test_a_lazy_attribute_is_kept_outside_of_traces_alone():
    bernoulli = distributions.Bernoulli(jaxgrad.tensor([0.4, 0.2]))
    logits = jaxgrad.func.vmap(lambda x: bernoulli.logits * x)(jaxgrad.ones(2))
    assert "logits" not in vars(bernoulli)
    assert jaxgrad.allclose(bernoulli.logits, logits[0]) and "logits" in vars(bernoulli)


def test_a_lazy_attribute_has_a_history_under_no_grad():
    probs = jaxgrad.tensor([0.5], requires_grad=True)
    bernoulli = distributions.Bernoulli(probs)
    with jaxgrad.no_grad():
        assert bernoulli.logits.requires_grad


def test_copies():
    transform = distributions.ExpTransform(cache_size=1)
    d = distributions.TransformedDistribution(Normal(0.0, 1.0), [transform, transform.inv])
    clone = copy.deepcopy(d)
    assert clone.log_prob(jaxgrad.tensor(0.5)) == d.log_prob(jaxgrad.tensor(0.5))
    assert result(clone, "cdf", jaxgrad.tensor(0.5)) == result(d, "cdf", jaxgrad.tensor(0.5))


@pytest.mark.parametrize("constraint", [constraints.real, constraints.positive_definite])
def test_the_checks_run_on_tensors_of_other_devices(constraint, monkeypatch):
    value = jaxgrad.eye(2)
    monkeypatch.setattr(constraints, "_is_of_numbers", lambda constraint: False)
    assert constraints.holds(constraint, value)
    assert not constraints.holds(constraint, value * jaxgrad.nan)


def test_wishart_warns_of_few_degrees_of_freedom():
    with pytest.warns(UserWarning, match="Low df values detected"):
        distributions.Wishart(jaxgrad.tensor(1.5), jaxgrad.eye(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distributions.Wishart(jaxgrad.tensor(2.5), jaxgrad.eye(2))


def test_the_base_refuses_what_it_lacks():
    assert Distribution.has_rsample is False
    with pytest.raises(NotImplementedError, match="has no rsample"):
        distributions.Poisson(1.0).rsample()


def test_the_dirichlet_distribution_of_a_beta():
    beta = jaxgrad.distributions.Beta(2.0, jaxgrad.tensor([3.0, 4.0]))
    assert beta._dirichlet.concentration.tolist() == [[2.0, 3.0], [2.0, 4.0]]


def test_a_formula_of_integers_has_the_default_dtype():
    jaxgrad.set_default_dtype(jaxgrad.float64)
    try:
        mode = jaxgrad.distributions.Dirichlet(jaxgrad.tensor([2, 2, 1])).mode
    finally:
        jaxgrad.set_default_dtype(jaxgrad.float32)
    assert mode.dtype is jaxgrad.float64
    assert mode.tolist() == [0.5, 0.5, 0.0]


def test_expand_after_a_lazy_attribute_was_read():
    """It is computed anew, of the expanded parameters."""
    factor, ones = jaxgrad.ones(2, 1), jaxgrad.ones(2)
    low_rank = distributions.LowRankMultivariateNormal(jaxgrad.zeros(2), factor, ones)
    von_mises = distributions.VonMises(jaxgrad.zeros(2), ones)
    names = ("variance", "covariance_matrix", "precision_matrix", "scale_tril")
    for d, count in ((low_rank, 4), (von_mises, 1)):
        before = {name: getattr(d, name) for name in names[:count]}
        after = d.expand((3, *d.batch_shape))
        for name, value in before.items():
            assert jaxgrad.equal(getattr(after, name), value.expand(3, *value.shape)), name


@pytest.mark.parametrize(
    ("d", "value", "expected"),
    [
        (distributions.Binomial(2, 0.5, validate_args=False), [-1.0, 3.0], [-math.inf] * 2),
        (distributions.NegativeBinomial(2, 0.5, validate_args=False), [-1.0], [-math.inf]),
        (distributions.GeneralizedPareto(0.0, 1.0, -0.5, validate_args=False), [2.5], [-math.inf]),
        (distributions.GeneralizedPareto(0.0, 1.0, -2.0, validate_args=False), [0.75], [-math.inf]),
    ],
)
def test_density_outside_of_the_support(d, value, expected):
    """Without checks it is 0, and its gradient too."""
    value = jaxgrad.tensor(value, requires_grad=True)
    density = d.log_prob(value)
    assert density.tolist() == expected
    assert jaxgrad.autograd.grad(density.sum(), value)[0].abs().sum() == 0


def test_distribution_function_above_the_support():
    d = distributions.GeneralizedPareto(0.0, 1.0, -0.5, validate_args=False)
    assert d.cdf(jaxgrad.tensor([1.0, 2.0, 3.0])).tolist() == [0.75, 1.0, 1.0]


def test_categories_that_do_not_exist():
    d = distributions.Categorical(jaxgrad.tensor([0.25, 0.75]), validate_args=False)
    for index in (-1, 2):
        match = f"index {index} is out of bounds for dimension -1 with size 2"
        with pytest.raises(RuntimeError, match=match):
            d.log_prob(jaxgrad.tensor([0, index]))
    compiled = jaxgrad.jit(d.log_prob)
    assert compiled(jaxgrad.tensor([-1, 2])).isnan().all()
    assert compiled(jaxgrad.tensor([0, 1])).exp().tolist() == pytest.approx([0.25, 0.75])


def test_values_are_tensors_where_they_are_checked():
    with pytest.raises(ValueError, match="The value argument to log_prob must be a Tensor"):
        distributions.HalfCauchy(1.0).log_prob(1.0)


def test_logits_that_are_integers():
    """They are odds in the default dtype; PyTorch's values."""
    logits = jaxgrad.tensor([2, 2, 1])
    d = distributions.Geometric(logits=logits)
    expected = [-2.2538560, -2.2538560, -1.6265234]
    assert d.log_prob(jaxgrad.ones(3)).tolist() == pytest.approx(expected)
    assert d.sample().dtype == jaxgrad.float32
    for d in (
        distributions.ContinuousBernoulli(logits=logits),
        distributions.RelaxedBernoulli(jaxgrad.tensor(2.0), logits=logits),
    ):
        assert ((d.rsample() > 0) & (d.rsample() < 1)).all()


def test_density_of_a_normal_vector_of_another_dtype():
    d = distributions.MultivariateNormal(jaxgrad.tensor([2.0, 1.0]), 2 * jaxgrad.eye(2))
    density = d.log_prob(jaxgrad.full((2,), 0.5, dtype=jaxgrad.float64))
    assert density.dtype == jaxgrad.float32
    assert density.item() == pytest.approx(-3.1560242)  # -(1.5**2 + 0.5**2) / 4 - log(4 pi)
