"""What in-place code keeps alive: one array under no_grad, and no garbage cycles."""

import gc
import weakref

import jax
import pytest
from helpers import checks
from helpers.modes import eager

import jaxgrad

SHAPE = (7, 11, 13)  # a shape that no other test uses


@pytest.fixture(autouse=True)
def without_collector():
    gc.collect()
    gc.disable()
    with eager("compiled"):  # JAX knows which of its arrays are alive
        yield
    gc.enable()
    checks.count("aliasing")


def alive(shape=SHAPE):
    """How many arrays of a shape there are."""
    return sum(array.shape == shape for array in jax.live_arrays())


def dead(*references):
    return all(reference() is None for reference in references)


UPDATES = {
    "number": lambda x, row, step: x.add_(0.5),
    "tensor": lambda x, row, step: x.add_(step, alpha=0.5),
    "augmented": lambda x, row, step: x.__isub__(step * -0.5),
    "whole view": lambda x, row, step: x.view(-1).add_(0.5),
    "detached": lambda x, row, step: x.detach().add_(0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", UPDATES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_updates_under_no_grad_keep_one_array(kind, requires_grad):
    update = UPDATES[kind]
    before = alive()
    x = jaxgrad.zeros(SHAPE, requires_grad=requires_grad)
    step = jaxgrad.ones(SHAPE[-1])
    with jaxgrad.no_grad():
        for count in range(1, 10_001):
            update(x, x[0], step)
            if count in (1, 10, 5_000, 10_000):
                assert x[0, 0, 0].item() == 0.5 * count
                assert alive() - before == 1
    assert x._version == 10_000
    assert x.grad_fn is None
    assert x.is_leaf
    del x
    assert alive() == before


@pytest.mark.slow
def test_updates_of_a_part_keep_one_array():
    before = alive()
    x = jaxgrad.zeros(SHAPE)
    for count in range(1, 10_001):
        x[count % 7, 3:].add_(1)
        x[:, 0] = 2
        if count % 2_500 == 0:
            assert x[:, 0].sum().item() == 2 * 7 * 13
            assert alive() - before == 1
    assert x[:, 3:].sum().item() == 10_000 * 8 * 13


@pytest.mark.slow
def test_a_long_history_frees_when_its_last_handle_dies():
    x = jaxgrad.ones(3, requires_grad=True)
    y = x * 1
    first = weakref.ref(y.grad_fn)
    for _ in range(100_000):
        y.mul_(1.0)
    last = weakref.ref(y.grad_fn)
    assert y._version == 100_000
    assert not dead(first)
    assert not dead(last)
    del y
    assert dead(first, last)


@pytest.mark.slow
def test_a_long_history_of_writes_through_a_view_frees():
    x = jaxgrad.ones(2, 3, requires_grad=True)
    base = x * 1
    view = base[0]
    first = weakref.ref(base.grad_fn)
    for _ in range(20_000):
        view.mul_(1.0)
    last = weakref.ref(view.grad_fn)
    handles = weakref.ref(base), weakref.ref(view)
    del base
    assert not dead(first)
    del view
    assert dead(first, last, *handles)


def write_view(base, view, sibling):
    view.mul_(2)


def write_base(base, view, sibling):
    base.mul_(2)


def write_all(base, view, sibling):
    base.mul_(2)
    view[0] = 3
    sibling.t_()
    sibling.mul_(base[:, :1].clone().detach().sum())


def write_detached(base, view, sibling):
    base.detach().add_(1)
    view.data.zero_()


def write_and_read(base, view, sibling):
    view.mul_(2)
    return sibling.sum() + base.sum()


def write_under_no_grad(base, view, sibling):
    with jaxgrad.no_grad():
        base.mul_(2)
        view[0] = 1


WRITES = (
    write_view,
    write_base,
    write_all,
    write_detached,
    write_and_read,
    write_under_no_grad,
)


def written_views(write):
    """Base, view and another view of a written tensor."""
    leaf = jaxgrad.ones(5, 3, requires_grad=True)
    base = leaf * 1.0
    view, sibling = base[1], base[2:4]
    write(base, view, sibling)
    return [base, view, sibling]


@pytest.mark.slow
@pytest.mark.parametrize("order", [(0, 0, 0), (2, 1, 0), (1, 0, 0)])
@pytest.mark.parametrize("write", WRITES)
def test_handles_die_without_the_collector(write, order):
    handles = written_views(write)
    references = [weakref.ref(handle) for handle in handles]
    references += [weakref.ref(handle.grad_fn) for handle in handles]
    for position in order:
        handles.pop(position)
    assert dead(*references)


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITES)
def test_handles_die_that_are_never_read_again(write):
    references = [weakref.ref(handle) for handle in written_views(write)]
    assert dead(*references)


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITES)
def test_one_handle_keeps_what_it_shows(write):
    """The base keeps its values when its views die, and a view when its base dies."""
    for position in range(3):
        expected = written_views(write)[position].tolist()
        handle = written_views(write)[position]
        assert handle.tolist() == expected
        reference = weakref.ref(handle)
        del handle
        assert dead(reference)


def test_a_gradient_does_not_keep_the_handles():
    x = jaxgrad.ones(5, 3, requires_grad=True)
    base = x * 1.0
    view = base[1]
    view.mul_(x[0])
    loss = (base * base).sum()
    references = [weakref.ref(tensor) for tensor in (base, view, loss)]
    node = weakref.ref(loss.grad_fn)
    loss.backward()
    del base, view, loss
    assert dead(node, *references)
