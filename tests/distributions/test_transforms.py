"""Transforms and the registries of transforms, against PyTorch's recorded answers."""

import copy

import pytest
from helpers.as_torch import error
from helpers.distribution_cases import as_recorded, compiled, weighted

import jaxgrad
from jaxgrad import distributions as D
from jaxgrad.distributions import constraints

REAL = [-2.0, 0.3, 1.5]
MATRIX = [[0.1, 0.2], [0.3, 0.4]]


def transforms(torch):
    """Each transform with a value of its domain."""
    D = torch.distributions

    def t(value):
        return torch.tensor(value, dtype=torch.float64)

    exp, affine = D.ExpTransform(), D.AffineTransform(1.0, 2.0)
    return {
        "abs": (D.AbsTransform(), REAL),
        "affine": (D.AffineTransform(t([1.0, 2.0, 3.0]), t([0.5, -2.0, 3.0])), REAL),
        "affine of vectors": (D.AffineTransform(1.0, -2.0, 1), REAL),
        "cat": (D.CatTransform([exp, D.SigmoidTransform()], 0, [1, 2]), REAL),
        "cat of vectors": (
            D.CatTransform([exp, D.AffineTransform(0.0, 2.0, 1)], -1, [1, 2]),
            [REAL, REAL],
        ),
        "cdf": (D.CumulativeDistributionTransform(D.Normal(t(0.0), t(1.0))), REAL),
        "compose": (D.ComposeTransform([affine, exp]), REAL),
        "compose to vectors": (D.ComposeTransform([affine, D.StickBreakingTransform()]), [REAL]),
        "correlation": (D.CorrCholeskyTransform(), [REAL, [0.1, 0.2, -0.3]]),
        "exp": (exp, REAL),
        "identity": (D.identity_transform, REAL),
        "independent": (D.IndependentTransform(exp, 1), [REAL, REAL]),
        "inverse": (exp.inv, [0.1, 2.0, 3.0]),
        "lower": (D.LowerCholeskyTransform(), MATRIX),
        "positive definite": (D.PositiveDefiniteTransform(), MATRIX),
        "power": (D.PowerTransform(t([0.5, 2.0, -1.0])), [0.2, 1.5, 3.0]),
        "reshape": (D.ReshapeTransform((4,), (2, 2)), [[1.0, 2.0, 3.0, 4.0]]),
        "sigmoid": (D.SigmoidTransform(), REAL),
        "softmax": (D.SoftmaxTransform(), [REAL]),
        "softplus": (D.SoftplusTransform(), REAL),
        "stack": (D.StackTransform([exp, D.TanhTransform(), D.identity_transform]), REAL),
        "stick": (D.StickBreakingTransform(), [REAL, [0.1, 0.2, -0.3]]),
        "tanh": (D.TanhTransform(), REAL),
    }


def numbers_of(torch, transform, value):
    x = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    y = transform(x)
    outputs = [y]
    if transform.bijective:
        outputs.append(transform.log_abs_det_jacobian(x, y))
    results = [transform.inv(y), *outputs]
    for output in outputs:
        if output.requires_grad:
            total = weighted(torch, output)
            results += torch.autograd.grad(total, x, retain_graph=True, allow_unused=True)
    return [result.detach() for result in results if result is not None]


@pytest.mark.slow
@as_recorded
def test_numbers_of_transforms(torch):
    """With gradients, all in one compiled function."""
    return compiled(
        torch, lambda: {name: numbers_of(torch, *case) for name, case in transforms(torch).items()}
    )()


def traits(transform, value):
    description = {
        "domain": [repr(transform.domain), transform.domain.event_dim],
        "codomain": [repr(transform.codomain), transform.codomain.event_dim],
        "bijective": transform.bijective,
        "printed": repr(transform),
    }
    for name in ("event_dim", "sign"):
        try:
            trait = getattr(transform, name)
            description[name] = trait.tolist() if hasattr(trait, "tolist") else trait
        except (NotImplementedError, ValueError) as raised:
            description[name] = type(raised).__name__
    return description


@as_recorded
def test_traits_of_transforms(torch):
    results = {}
    for name, (transform, value) in transforms(torch).items():
        shape = torch.tensor(value).shape
        forward = transform.forward_shape(shape)
        shapes = [list(forward), list(transform.inverse_shape(forward))]
        results[name] = {**traits(transform, value), "shapes": shapes}
        inverse = transform.inv
        results[name]["inverse"] = [inverse.bijective, inverse.inv is transform]
        results[name]["inverse shapes"] = [
            list(inverse.forward_shape(forward)),
            list(inverse.inverse_shape(shape)),
        ]
    return results


@pytest.mark.slow
@as_recorded
def test_caches_of_transforms(torch):
    D, results = torch.distributions, []
    x = torch.tensor([0.5, 0.7])
    square = torch.tensor([[0.5, 0.1], [0.2, 0.7]])
    cases = [
        (D.TanhTransform(cache_size=1), x),
        (D.ExpTransform().with_cache(), x),
        (D.PowerTransform(2.0).with_cache(1), x),
        (D.AffineTransform(0.0, 2.0).with_cache(1), x),
        (D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)], cache_size=1), x),
        (D.IndependentTransform(D.ExpTransform(), 1, cache_size=1), x),
        (D.ReshapeTransform((2,), (1, 2)).with_cache(1), x),
        (D.CatTransform([D.ExpTransform(), D.ExpTransform()]).with_cache(1), x),
        (D.StackTransform([D.ExpTransform(), D.ExpTransform()]).with_cache(1), x),
        (D.ExpTransform().inv.with_cache(1), x),
        (D.LowerCholeskyTransform(cache_size=1), square),
        (D.CumulativeDistributionTransform(D.Uniform(0.0, 1.0)).with_cache(1), x),
        (D.ExpTransform(), x),
    ]
    for transform, value in cases:
        y = transform(value)
        same = transform.with_cache(0) is transform, transform.with_cache(1) is transform
        results.append([transform.inv(y) is value, transform(value) is y, *same])
    return results


@as_recorded
def test_equality_of_transforms(torch):
    D = torch.distributions
    two = torch.tensor([2.0])
    pairs = [
        (D.ExpTransform(), D.ExpTransform()),
        (D.ExpTransform(), D.TanhTransform()),
        (D.ExpTransform().inv, D.ExpTransform().inv),
        (D.ExpTransform().inv, D.ExpTransform()),
        (D.PowerTransform(two), D.PowerTransform(2.0)),
        (D.PowerTransform(two), D.PowerTransform(3.0)),
        (D.AffineTransform(0, two), D.AffineTransform(0, 2.0)),
        (D.AffineTransform(0, 1.0), D.AffineTransform(0, 2.0)),
        (D.AffineTransform(0, 1.0), D.ExpTransform()),
        (D.ComposeTransform([D.ExpTransform()]), D.ComposeTransform([D.ExpTransform()])),
        (D.identity_transform, D.ComposeTransform([])),
        (D.CorrCholeskyTransform(), D.CorrCholeskyTransform()),
        (D.StickBreakingTransform(), D.StickBreakingTransform()),
    ]
    return [[first == second, first != second] for first, second in pairs]


@as_recorded
def test_refused_transforms(torch):
    D = torch.distributions
    exp, stick = D.ExpTransform(), D.StickBreakingTransform()
    return [
        error(D.ExpTransform, 2, words="cache_size must be 0 or 1"),
        error(D.ReshapeTransform, (2,), (3,), words="have different numbers of elements"),
        error(D.ReshapeTransform((2,), (1, 2)).forward_shape, (3,), words="Shape mismatch"),
        error(D.ReshapeTransform((2,), (1, 2)).inverse_shape, (2,), words="Too few dimensions"),
        error(D.IndependentTransform(exp, 2), torch.zeros(1), words="Too few dimensions on input"),
        error(stick.forward_shape, (), words="Too few dimensions on input"),
        error(D.CorrCholeskyTransform().forward_shape, (2,), words="not a flattened lower-"),
        error(D.CorrCholeskyTransform().inverse_shape, (2, 3), words="Input is not square"),
        error(lambda: stick.sign, words=""),
        error(lambda: D.CorrCholeskyTransform().event_dim, words="Please use either .domain."),
        error(D.AbsTransform().log_abs_det_jacobian, None, None, words=""),
        error(D.CatTransform, [exp, 1], words="All elements of tseq must be Transform instances"),
        error(D.CatTransform, [exp], 0, [1, 2], words="must match transforms"),
        error(D.CatTransform([exp]), torch.zeros(2), words="must equal length 1"),
        error(D.StackTransform([exp], 1), torch.zeros(1), words="dim 1 out of range for"),
        error(D.Transform(), torch.zeros(1), words=""),
        error(D.TransformedDistribution, D.Normal(0.0, 1.0), 3, words="transforms must be a"),
        error(D.TransformedDistribution, D.Normal(0.0, 1.0), [3], words="must be a Transform or"),
        error(
            D.TransformedDistribution,
            D.Normal(0.0, 1.0),
            stick,
            words="base_distribution needs to have shape with size at least 1",
        ),
    ]


# ---- transformed distributions


def transformed(torch):
    """Transformed distributions without a name of their own, with values."""
    D = torch.distributions

    def t(value):
        return torch.tensor(value, dtype=torch.float64)

    normal = D.Normal(t([[0.0, 1.0], [2.0, -1.0]]), t([1.0, 2.0]))
    wide = D.AffineTransform(t([[[1.0]], [[2.0]]]), 1.0)
    several = [D.AffineTransform(1.0, -2.0), D.SigmoidTransform(), D.AffineTransform(0, 2)]
    return {
        "exp": (D.TransformedDistribution(normal, D.ExpTransform()), [0.5, 1.5]),
        "wide": (D.TransformedDistribution(normal, wide), [0.5, 1.5]),
        "stick": (D.TransformedDistribution(normal, D.StickBreakingTransform()), [0.2, 0.3, 0.5]),
        "reshape": (
            D.TransformedDistribution(normal, D.ReshapeTransform((2, 2), (4,))),
            [0.5, 1.5, 0.2, 0.1],
        ),
        "independent": (
            D.TransformedDistribution(D.Independent(normal, 1), D.ExpTransform()),
            [0.5, 1.5],
        ),
        "several": (D.TransformedDistribution(normal, several), [0.5, 1.5]),
        "identity": (D.TransformedDistribution(normal, []), [0.5, 1.5]),
        "correlation": (
            D.TransformedDistribution(D.Normal(t([0.0]), t(1.0)), D.CorrCholeskyTransform()),
            [[1.0, 0.0], [0.6, 0.8]],
        ),
    }


@pytest.mark.slow
@as_recorded
def test_transformed_distributions(torch):
    results = {}
    for name, (d, value) in transformed(torch).items():
        value = torch.tensor(value, dtype=torch.float64)
        expanded = d.expand((3, *d.batch_shape))
        results[name] = {
            "shapes": [list(d.batch_shape), list(d.event_shape), list(expanded.batch_shape)],
            "support": [d.support.event_dim, d.has_rsample],
            "log_prob": d.log_prob(value),
            "expanded": list(expanded.log_prob(value).shape),
        }
        if name in ("exp", "several"):
            results[name] |= {"cdf": d.cdf(value), "icdf": d.icdf(value / 3)}
    return results


@as_recorded("""
    tensor(2.0)
    tensor(2.0)
    tensor(0.0)
    NotImplementedError('')
    NotImplementedError('')
""")
def test_kl_of_transformed_distributions(torch):
    D, t = torch.distributions, torch.tensor
    exp = D.ExpTransform()

    def log_normal(loc, transform=exp):
        return D.TransformedDistribution(D.Normal(t(loc), t(1.0)), transform)

    return [
        D.kl_divergence(log_normal(0.0), log_normal(2.0)),
        D.kl_divergence(D.LogNormal(t(0.0), t(1.0)), D.LogNormal(t(2.0), t(1.0))),
        D.kl_divergence(D.Weibull(1.0, 2.0), D.Weibull(1.0, 2.0)),
        error(D.kl_divergence, log_normal(0.0), log_normal(0.0, D.TanhTransform()), words=""),
        error(D.kl_divergence, D.Weibull(1.0, 2.0), D.Weibull(1.0, 3.0), words=""),
    ]


# ---- registries


def registered(torch, registry):
    c = torch.distributions.constraints
    constraints = [
        *(c.real, c.positive, c.nonnegative, c.greater_than(2.0), c.greater_than_eq(-1.0)),
        *(c.less_than(3.0), c.unit_interval, c.interval(-1.0, 3.0), c.half_open_interval(0.0, 2.0)),
        *(c.simplex, c.corr_cholesky, c.real_vector, c.independent(c.positive, 1)),
        *(c.lower_cholesky, c.positive_definite, c.positive_semidefinite, c.boolean),
        c.cat([c.positive, c.unit_interval], 0, [1, 2]),
        c.stack([c.positive, c.real, c.unit_interval], 0),
    ]
    results = []
    for constraint in constraints:
        try:
            transform = registry(constraint)
        except NotImplementedError as raised:
            results.append(str(raised).split(":")[0])
            continue
        is_matrix = constraint.event_dim == 2 and constraint is not c.corr_cholesky
        x = torch.tensor(MATRIX if is_matrix else REAL, dtype=torch.float64)
        y = transform(x)
        holds = bool(constraint.check(y).all())
        results.append([repr(transform), transform.bijective, y, holds])
    return results


@pytest.mark.slow
@as_recorded
def test_transform_to(torch):
    return registered(torch, torch.distributions.transform_to)


@pytest.mark.slow
@as_recorded
def test_biject_to(torch):
    return registered(torch, torch.distributions.biject_to)


@as_recorded
def test_transforms_to_the_constraints_of_parameters(torch):
    D = torch.distributions
    results = []
    for kind in (D.Normal, D.Gamma, D.Dirichlet, D.Categorical, D.MultivariateNormal):
        for name, constraint in sorted(kind.arg_constraints.items()):
            results.append([name, repr(D.transform_to(constraint)), repr(constraint)])
    return results


@as_recorded("""
    'SoftplusTransform()'
    NotImplementedError('Cannot transform _Real constraints')
    TypeError('Expected constraint to be either a Constraint subclass or instance, but got 3')
""")
def test_users_registries(torch):
    D = torch.distributions
    registry = D.constraint_registry.ConstraintRegistry()
    registry.register(D.constraints.positive, lambda constraint: D.SoftplusTransform())
    return [
        repr(registry(D.constraints.greater_than(1.0))),
        error(registry, D.constraints.real, words="Cannot transform _Real constraints"),
        error(lambda: registry.register(3)(print), words="Expected constraint to be either a"),
    ]


# ---- where PyTorch has no answer


def test_divergence_of_transforms_that_are_not_bijective_is_refused():
    # PyTorch gives the divergence of the base distributions, which is greater
    folded = D.TransformedDistribution(D.Normal(1.0, 1.0), D.AbsTransform())
    with pytest.raises(NotImplementedError, match="not bijective"):
        D.kl_divergence(folded, folded)
    half = D.kl_divergence(D.HalfCauchy(1.0), D.HalfCauchy(2.0))
    assert half == D.kl_divergence(D.Cauchy(0.0, 1.0), D.Cauchy(0.0, 2.0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [D.TanhTransform, D.StickBreakingTransform])
def test_a_cache_in_a_compiled_function(kind):
    transform = kind(cache_size=1)
    base = D.Normal(jaxgrad.zeros(3), 1.0)
    d = D.TransformedDistribution(base, transform)

    @jaxgrad.jit
    def step():
        x = d.rsample()
        return x, d.log_prob(x)

    jaxgrad.manual_seed(0)
    expected = d.rsample()
    for _ in range(3):
        step()
    jaxgrad.manual_seed(0)
    x, log_prob = step()
    assert x.tolist() == pytest.approx(expected.tolist(), 1e-6)
    assert log_prob.tolist() == pytest.approx(d.log_prob(expected).tolist(), 1e-5)
    assert len(step.traces) == 2  # the first call finds no pair in the cache


def test_a_cache_under_vmap_leaves_nothing_behind():
    transform = D.TanhTransform(cache_size=1)
    x = jaxgrad.tensor([0.5, 0.7])
    mapped = jaxgrad.func.vmap(lambda x: transform.inv(transform(x)))(x)
    assert (mapped == x).all()
    assert (transform.inv(transform(x)) == x).all()


def test_a_copy_of_a_transform_has_a_cache_of_its_own():
    transform = D.TanhTransform(cache_size=1)
    x = jaxgrad.tensor([0.5])
    y = transform(x)
    clone = copy.copy(transform)
    assert clone.inv is not transform.inv and clone.inv(y) is not x and transform.inv(y) is x


def test_parameters_of_transforms_get_gradients():
    loc, scale = (jaxgrad.tensor(value, requires_grad=True) for value in (1.0, 2.0))
    d = D.TransformedDistribution(D.Normal(0.0, 1.0), D.AffineTransform(loc, scale))
    d.log_prob(jaxgrad.tensor(2.0)).backward()
    # that of a normal distribution of this loc and scale
    assert (loc.grad.item(), scale.grad.item()) == (0.25, -0.375)


def test_constraints_of_the_inverse_are_exchanged():
    inverse = D.SigmoidTransform().inv
    assert inverse.domain is constraints.unit_interval and inverse.codomain is constraints.real


class Shift(D.Transform, jaxgrad.nn.Module):
    """A transform that is a module, with a parameter."""

    bijective, domain, codomain = True, constraints.real, constraints.real

    def __init__(self, cache_size=0):
        super().__init__(cache_size)
        self.shift = jaxgrad.nn.Parameter(jaxgrad.tensor(2.0))

    __hash__ = jaxgrad.nn.Module.__hash__

    def _call(self, x):
        return x + self.shift

    def _inverse(self, y):
        return y - self.shift


def test_a_transform_can_be_a_module():
    transform = Shift()
    cached = transform.with_cache()
    x = jaxgrad.tensor(1.0)
    assert transform(x).item() == 3.0 and transform.inv(x).item() == -1.0
    assert cached.inv(cached(x)) is x and cached._parameters["shift"] is transform.shift
    assert list(transform.parameters()) == [transform.shift]
