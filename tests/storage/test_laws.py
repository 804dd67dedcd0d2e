"""Laws that every view obeys, over the samples of all view operators.

Where an element of a view comes from is found by the operator itself, of the numbers 0, 1, 2, ...;
what a write through the view must do to its base, and to gradients, then needs no operator.
"""

import numpy as np
import pytest
from helpers import checks, recorded
from helpers.problems import to_tensor

import jaxgrad

LEAST = {"indexing": 6, "pointwise": 8, "shape": 60}


def problems(family):
    for sample in recorded.FAMILIES[family]:
        for field in sample.fields:
            if not sample.name.endswith("detach"):
                yield recorded.problem(family, sample, field)


def views(problem, base):
    """The views of a base that the sample's operator gives; the rest of its arguments as it is."""
    with jaxgrad.no_grad():
        tensors = [to_tensor(array) for array in problem.arrays]
    tensors[0] = base
    return problem.outputs(tensors)


def whole(problem):
    """A base with the sample's values, which requires grad and is no leaf, and its leaf."""
    leaf = to_tensor(problem.arrays[0], requires_grad=True)
    return leaf * 1, leaf


def numbers(problem, shape, dtype, what):
    return to_tensor(problem.sample.direction(what, list(shape), str(np.dtype(dtype))))


def places(problem):
    """For each view the numbers of the base's elements that it shows."""
    shape = problem.arrays[0].shape
    numbered = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape)
    return [view.numpy().astype(int) for view in views(problem, to_tensor(numbered))]


def each_view(problem):
    """Base, leaf and one view of it, for each view; all new, since the next is to see no write."""
    base, _ = whole(problem)
    shown = views(problem, base)
    # `real` and `conj` of a real tensor are the tensor itself, for which the laws hold as well
    assert all(view is base or view._base is base for view in shown)
    for position in range(len(shown)):
        base, leaf = whole(problem)
        yield position, base, leaf, views(problem, base)[position]


def is_one_of_several(problem):
    """Whether the operator gives a list, whose tensors must not be written to in grad mode."""
    return any(name in problem.sample.name for name in ("split", "unbind", "chunk"))


def gives_views(problem):
    """Whether the entry says so, and its first argument is a tensor that moves."""
    library, name = jaxgrad.ops.library, problem.sample.name.rpartition(".")[2]
    entry = name in library.names and any(rule.is_view for rule in library.table.rules(name))
    return entry and 0 in problem.moving


CASES = {
    family: [problem for problem in problems(family) if gives_views(problem)] for family in LEAST
}


def cases(*, real=False, alone=False):
    """The samples as parameters; `make test` takes one of every third operator."""
    parameters, seen = [], []
    for family, problem in (
        (name, problem) for name, all_of in CASES.items() for problem in all_of
    ):
        if real and (problem.field == "complex" or "complex" in problem.sample.name):
            continue
        if alone and is_one_of_several(problem):
            continue
        quick = problem.sample.name not in seen and len(set(seen)) % 3 == 0
        seen.append(problem.sample.name)
        name = f"{family}-{problem.sample}-{problem.field}"
        marks = () if quick else pytest.mark.slow
        parameters.append(pytest.param(family, problem, id=name, marks=marks))
    return pytest.mark.parametrize(("family", "problem"), parameters)


@pytest.mark.parametrize("family", LEAST)
def test_the_samples_give_views(family):
    assert len(CASES[family]) >= LEAST[family]


def overlaps(where):
    return len(set(where.ravel())) < where.size


@cases(real=True)
def test_a_write_changes_what_the_view_shows_and_nothing_else(family, problem):
    for position, base, _, view in each_view(problem):
        where = places(problem)[position]
        value = numbers(problem, view.shape, np.float64, f"write {position}")
        expected = base.detach().clone().numpy().copy()
        with jaxgrad.no_grad():
            if overlaps(where):
                with pytest.raises(RuntimeError, match="more than one element"):
                    view.copy_(value)
                continue
            view.copy_(value)
        expected.reshape(-1)[where] = value.numpy()
        assert np.array_equal(base.detach().numpy(), expected)
        assert base._version == view._version == 1
        checks.count(family)


@cases(real=True, alone=True)
def test_gradients_go_where_the_values_came_from(family, problem):
    for position, base, leaf, view in each_view(problem):
        where = places(problem)[position]
        if overlaps(where):
            continue
        source = numbers(problem, view.shape, np.float64, "source").requires_grad_()
        weights = numbers(problem, base.shape, np.float64, "weights")
        view.copy_(source * 1)
        (base * weights).sum().backward()
        kept = weights.numpy().copy()
        kept.reshape(-1)[where] = 0
        assert np.array_equal(leaf.grad.numpy(), kept)
        assert np.array_equal(source.grad.numpy(), weights.numpy().reshape(-1)[where])
        checks.count(family)


@cases(alone=True)
def test_what_was_written_is_read_again(family, problem):
    for position, base, _, view in each_view(problem):
        shown = view.detach().clone()
        before = base.detach().clone().numpy()
        if jaxgrad.core.view_ops.overlaps(view._aval):
            continue
        view.copy_(shown)
        assert np.array_equal(base.detach().numpy(), before)
        value = numbers(problem, view.shape, shown.numpy().dtype, "again")
        view.copy_(value)
        again = views(problem, base)[position].detach()
        assert np.array_equal(again.numpy(), value.numpy())
        assert np.array_equal(view.detach().numpy(), value.numpy())
        checks.count(family)
