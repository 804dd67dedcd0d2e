"""Constraints, against PyTorch's recorded answers."""

import pytest
from helpers.as_torch import error
from helpers.distribution_cases import as_recorded

import jaxgrad
from jaxgrad.distributions import Beta, Uniform, constraints

NAN, INF = float("nan"), float("inf")


def checked(torch):
    """Constraints with values, some of which satisfy them."""
    c = torch.distributions.constraints
    numbers = [-1.0, 0.0, 0.5, 1.0, 2.0, 7.0, NAN, INF]
    vectors = [[0.5, 0.5], [0.0, 1.0], [1.5, -0.5], [0.2, 0.2], [NAN, 1.0], [2.0, 3.0]]
    identity, lower = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.6, 0.8]]
    matrices = [identity, lower, [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]]
    matrices += [[[-1.0, 0.0], [0.5, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]
    return {
        "boolean": (c.boolean, numbers),
        "nonnegative_integer": (c.nonnegative_integer, numbers[:-1]),
        "positive_integer": (c.positive_integer, numbers[:-1]),
        "integer_interval": (c.integer_interval(0, 2), numbers[:-1]),
        "real": (c.real, numbers),
        "positive": (c.positive, numbers),
        "nonnegative": (c.nonnegative, numbers),
        "greater_than": (c.greater_than(torch.tensor(0.5)), numbers),
        "greater_than_eq": (c.greater_than_eq(0.5), numbers),
        "less_than": (c.less_than(0.5), numbers),
        "unit_interval": (c.unit_interval, numbers),
        "interval": (c.interval(0.5, torch.tensor(2.0)), numbers),
        "half_open_interval": (c.half_open_interval(0.5, 2.0), numbers),
        "real_vector": (c.real_vector, vectors),
        "independent": (c.independent(c.positive, 1), vectors),
        "simplex": (c.simplex, vectors),
        "one_hot": (c.one_hot, vectors),
        "multinomial": (c.multinomial(5), vectors),
        "lower_triangular": (c.lower_triangular, matrices),
        "lower_cholesky": (c.lower_cholesky, matrices),
        "corr_cholesky": (c.corr_cholesky, matrices),
        "square": (c.square, matrices),
        "rectangle": (c.square, [[[1.0, 2.0]]]),
        "symmetric": (c.symmetric, matrices[:4]),
        "positive_semidefinite": (c.positive_semidefinite, matrices[2:4]),
        "positive_definite": (c.positive_definite, matrices[2:4]),
        "cat": (c.cat([c.positive, c.unit_interval], 0, [5, 2]), numbers[:-1]),
        "stack": (c.stack([c.positive, c.unit_interval], -1), [[1.0, 2.0], [0.0, 0.5]]),
        "mixture": (c.MixtureSameFamilyConstraint(c.simplex), vectors),
    }


@pytest.mark.slow
@as_recorded
def test_checks(torch):
    return {
        name: [constraint.check(torch.tensor(value)), constraint.event_dim, constraint.is_discrete]
        for name, (constraint, value) in checked(torch).items()
    }


@as_recorded
def test_printed_constraints(torch):
    named = ("multinomial", "cat", "stack")  # whose arguments PyTorch does not show
    return {
        name: repr(constraint)
        for name, (constraint, _) in checked(torch).items()
        if name not in named
    }


@as_recorded
def test_dependent_constraints(torch):
    c, D = torch.distributions.constraints, torch.distributions
    known = c.dependent(is_discrete=True, event_dim=1)
    return [
        [c.is_dependent(constraint) for constraint in (c.dependent, D.Uniform.support, c.real)],
        [known.is_discrete, known.event_dim, repr(c.dependent)],
        [D.Binomial.support.is_discrete, D.Multinomial.support.event_dim],
        error(lambda: c.dependent.event_dim, words=".event_dim cannot be determined statically"),
        error(lambda: c.dependent.is_discrete, words=".is_discrete cannot be determined"),
        error(c.dependent.check, torch.zeros(1), words="Cannot determine validity of dependent"),
        error(c.independent, c.real, -1, words="reinterpreted_batch_ndims must be"),
        error(c.independent, 1, 1, words="base_constraint must be a Constraint"),
        error(c.independent(c.real, 2).check, torch.zeros(1), words="Expected value.dim() >= 2"),
        error(c.cat, [1], words="All elements of cseq must be Constraint instances"),
        error(c.cat, [c.real], 0, [1, 2], words="must match cseq"),
        error(c.stack([c.real], 1).check, torch.zeros(1), words="dim 1 out of range for value"),
        error(c.Constraint().check, torch.zeros(1), words=""),
    ]


@pytest.mark.parametrize("name", list(checked(jaxgrad)))
def test_holds_is_what_check_says(name):
    # distributions check NumPy arrays where they can
    constraint, values = checked(jaxgrad)[name]
    value = jaxgrad.tensor(values)
    assert constraints.holds(constraint, value) == bool(constraint.check(value).all())


def test_bounds_that_are_traced_count_as_satisfied():
    bound = jaxgrad.jit(lambda low: Uniform(low, 0.0).low)(jaxgrad.tensor(1.0))
    assert bound.item() == 1


@pytest.mark.slow
def test_a_users_check_gets_tensors():
    class Even(constraints.Constraint):
        def check(self, value):
            assert isinstance(value, jaxgrad.Tensor)
            return value.remainder(2) == 0

    class Narrow(type(constraints.positive)):
        def check(self, value):
            return super().check(value) & value.lt(3)

    assert constraints.holds(Even(), jaxgrad.tensor([2.0, 4.0]))
    assert not constraints.holds(Narrow(0.0), jaxgrad.tensor([1.0, 4.0]))


def test_a_mixture_of_dependent_supports():
    assert constraints.is_dependent(Beta.support) is False
