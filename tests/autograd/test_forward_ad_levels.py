"""Levels of forward mode: nested, in threads, tasks and generators, and what ends with them."""

import asyncio
import gc
import itertools
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.as_torch import as_torch

import jaxgrad
from jaxgrad.autograd import forward_ad as fwAD
from jaxgrad.tape import dual_level


def number(value, **options):
    return jaxgrad.tensor(value, dtype=jaxgrad.float64, **options)


def tangent(tensor, level=None):
    slope = fwAD.unpack_dual(tensor, level=level).tangent
    return None if slope is None else slope.item()


# ---- derivatives of higher order

FUNCTIONS = {
    "x**5": (lambda x: x**5, lambda x: x**5),
    "exp": (lambda x: x.exp(), jnp.exp),
    "sin * exp": (lambda x: x.sin() * x.exp(), lambda x: jnp.sin(x) * jnp.exp(x)),
    "log": (lambda x: (1 + x).log(), jnp.log1p),
    "tanh": (lambda x: x.tanh(), jnp.tanh),
    "1 / x": (lambda x: 1 / x, lambda x: 1 / x),
    "sqrt": (lambda x: x.sqrt(), jnp.sqrt),
    "sigmoid": (lambda x: x.sigmoid(), jax.nn.sigmoid),
    "x**x": (lambda x: x**x, lambda x: x**x),
    "atan2": (lambda x: jaxgrad.atan2(x, 1 - x), lambda x: jnp.arctan2(x, 1 - x)),
}


def by_forward(function):
    def slope(x):
        with fwAD.dual_level():
            return fwAD.unpack_dual(function(fwAD.make_dual(x, jaxgrad.ones_like(x)))).tangent

    return slope


def by_reverse(function):
    return jaxgrad.func.grad(function)


def nested(ways, function):
    for way in ways:
        function = way(function)
    return function


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_third_derivatives_in_all_nestings(name):
    ours, theirs = FUNCTIONS[name]

    @jaxgrad.jit
    def third(x):
        ways = itertools.product((by_forward, by_reverse), repeat=3)
        return [nested(way, ours)(x) for way in ways]

    with jax.enable_x64(True):
        expected = jax.grad(jax.grad(jax.grad(theirs)))(0.7)
        derivatives = [derivative.item() for derivative in third(number(0.7))]
    numpy.testing.assert_allclose(derivatives, float(expected), rtol=1e-10)


@pytest.mark.slow
def test_third_derivative_operator_by_operator():
    x = number(0.7, requires_grad=True)
    ways = (by_forward, by_forward, by_forward)
    third = nested(ways, lambda x: x**4)(x)
    assert third.requires_grad
    numpy.testing.assert_allclose(third.item(), 24 * 0.7, rtol=1e-12)
    (fourth,) = jaxgrad.autograd.grad(third, x)
    numpy.testing.assert_allclose(fourth.item(), 24, rtol=1e-12)


def test_mixed_derivatives_of_three_levels():
    """x * y * z, each with its own level."""
    with fwAD.dual_level(), fwAD.dual_level(), fwAD.dual_level():
        duals = [fwAD.make_dual(number(v), number(1.0), level=i) for i, v in enumerate((2, 3, 5))]
        product = duals[2] * duals[0] * duals[1]
        assert [tangent(product, level) for level in range(3)] == [15, 10, 6]
        inner = fwAD.unpack_dual(product).tangent
        assert [tangent(inner, level) for level in range(3)] == [3, 2, None]
        assert tangent(fwAD.unpack_dual(inner, level=1).tangent, 0) == 1


@pytest.mark.slow
def test_views_and_writes_of_two_levels():
    with fwAD.dual_level(), fwAD.dual_level():
        x = jaxgrad.zeros(3)
        first = fwAD.make_dual(jaxgrad.tensor(2.0), jaxgrad.tensor(1.0), level=0)
        second = fwAD.make_dual(first, jaxgrad.tensor(1.0))
        part = x[1:]
        part[0] = second**3
        x.mul_(x)
        outer, inner = (fwAD.unpack_dual(part, level=level).tangent for level in (0, 1))
        assert part.tolist() == [64, 0]
        assert fwAD.unpack_dual(outer).primal.tolist() == [192, 0] == inner.tolist()
        assert fwAD.unpack_dual(inner, level=0).tangent.tolist() == [480, 0]
        for cut in (part.unbind(), part.split(1), part.chunk(2)):
            slope = fwAD.unpack_dual(cut[0]).tangent
            assert fwAD.unpack_dual(slope, level=0).tangent.item() == 480


# ---- who has which levels


def test_another_thread_has_no_level_and_loses_no_tangent():
    with fwAD.dual_level(), ThreadPoolExecutor(1) as thread:
        x = fwAD.make_dual(number(2.0), number(1.0))

        def elsewhere():
            with pytest.raises(RuntimeError, match="no level exists"):
                fwAD.make_dual(number(1.0), number(1.0))
            return x * x, fwAD.unpack_dual(x).tangent

        product, seen = thread.submit(elsewhere).result()
        assert seen is None and tangent(product) == 4


def test_a_level_of_another_thread_of_the_same_number_is_another():
    with fwAD.dual_level() as level, ThreadPoolExecutor(1) as thread:
        x = fwAD.make_dual(number(2.0), number(1.0))

        def elsewhere():
            with fwAD.dual_level() as same:
                assert same == level and tangent(x) is None
                y = fwAD.make_dual(x, number(3.0))  # it has no tangent at this level
                slope = fwAD.unpack_dual(y**3).tangent
                return y**2, slope

        square, slope = thread.submit(elsewhere).result()
        assert (slope.item(), tangent(slope)) == (36, 36)
        assert tangent(square) == 4


def test_a_backward_pass_in_another_thread():
    x = number(3.0, requires_grad=True)
    with fwAD.dual_level(), ThreadPoolExecutor(1) as thread:
        y = fwAD.make_dual(x, number(1.0))
        (gradient,) = thread.submit(jaxgrad.autograd.grad, y**3, x).result()
        assert (gradient.item(), tangent(gradient)) == (27, 18)


def test_tasks_have_levels_of_their_own():
    async def slope(value):
        with fwAD.dual_level() as level:
            x = fwAD.make_dual(number(value), number(1.0))
            await asyncio.sleep(0)
            y = x * x
            await asyncio.sleep(0.001 * (5 - value))
            return level, tangent(y)

    async def run_all():
        return await asyncio.gather(*map(slope, (1.0, 2.0, 3.0, 4.0)))

    assert asyncio.run(run_all()) == [(0, 2), (0, 4), (0, 6), (0, 8)]


def test_a_task_goes_on_in_the_level_around_it_until_that_ends():
    async def inside(x):
        with fwAD.dual_level() as level:
            return level, tangent(x, 0), tangent(fwAD.make_dual(x, number(5.0)) * x)

    async def late(x):
        await asyncio.sleep(0.001)
        with pytest.raises(RuntimeError, match="Level 0 was exited"):
            fwAD.make_dual(x, x)
        return tangent(x)

    async def main():
        with fwAD.dual_level():
            x = fwAD.make_dual(number(2.0), number(1.0))
            answers = await asyncio.create_task(inside(x))
            task = asyncio.create_task(late(x))
            await asyncio.sleep(0)
        return answers, await task

    assert asyncio.run(main()) == ((1, 1, 10), None)


def slopes(values):
    with fwAD.dual_level():
        x = fwAD.make_dual(number(1.0), number(1.0))
        for value in values:
            yield tangent(x * value)


def test_levels_inside_generators():
    assert list(slopes([3, 4])) == [3, 4]
    running = slopes([3, 4])
    assert next(running) == 3
    running.close()
    assert not dual_level.entered.get()


def test_a_generator_that_ends_inside_of_a_later_level():
    running = slopes([3])
    next(running)
    with fwAD.dual_level() as level:
        assert level == 1
        with pytest.raises(RuntimeError, match="not the last one that was created"):
            next(running)
    fwAD.exit_dual_level()
    assert not dual_level.entered.get()


# ---- how levels end


def test_an_exception_ends_a_level_and_those_inside():
    class Stop(Exception):
        pass

    with pytest.raises(Stop), fwAD.dual_level():
        x = fwAD.make_dual(number(1.0), number(1.0))
        fwAD.enter_dual_level()
        raise Stop
    assert not dual_level.entered.get() and tangent(x) is None


def test_a_level_that_is_left_behind_is_reported():
    refused = pytest.raises(RuntimeError, match="not the last one that was created")
    with refused, fwAD.dual_level():
        fwAD.enter_dual_level()
    for _ in range(2):
        fwAD.exit_dual_level()


def test_one_object_entered_twice():
    context = fwAD.dual_level()
    with context as outer, context as inner:
        assert (outer, inner) == (0, 1)
    assert not dual_level.entered.get()


def test_a_mistake_in_an_operator_leaves_the_levels_as_they_were():
    window = dual_level.window.get()
    with fwAD.dual_level(), fwAD.dual_level():
        x = fwAD.make_dual(jaxgrad.ones(2), jaxgrad.ones(2), level=0)
        y = fwAD.make_dual(x, x.detach())
        with pytest.raises(RuntimeError):
            y @ jaxgrad.ones(3)
        assert dual_level.window.get() == window
        assert fwAD.unpack_dual(y * y, level=0).tangent.tolist() == [2, 2]


# ---- what outlives a level


def test_what_outlives_its_level_is_plain_and_keeps_no_tangents():
    direction = number([1.0, 2.0])
    references = [weakref.ref(direction)]
    with fwAD.dual_level():
        x = fwAD.make_dual(number([1.0, 2.0], requires_grad=True), direction)
        del direction
        y = x * x
        view, base = y[0], jaxgrad.zeros(2, dtype=jaxgrad.float64)
        base[0] = view
        for tensor in (y, base):
            references.append(weakref.ref(fwAD.unpack_dual(tensor).tangent))
        assert all(reference() is not None for reference in references)
    assert [reference() for reference in references] == [None] * 3
    product = x * y * view * base
    assert not product._aval.dual and fwAD.unpack_dual(product).tangent is None
    with fwAD.dual_level():
        assert fwAD.unpack_dual(x * y).tangent is None
        z = fwAD.make_dual(x, jaxgrad.ones(2))
        assert fwAD.unpack_dual(z * y).tangent.tolist() == [1, 4]
    (gradient,) = jaxgrad.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [2, 4] and not gradient._aval.dual


def test_tangents_die_with_their_tensors_within_a_level():
    with fwAD.dual_level():
        x = fwAD.make_dual(number(1.0), number(1.0))
        (level,) = dual_level.entered.get()
        for _ in range(20):
            y = x * 2
            reference = weakref.ref(fwAD.unpack_dual(y).tangent)
        del y
        gc.collect()
        assert reference() is None and len(level.holders) < 5


def test_operators_on_what_outlived_its_level_take_the_usual_way():
    with fwAD.dual_level():
        x = fwAD.make_dual(number(1.0), number(1.0))
    assert x._aval.dual
    x * x
    assert not x._aval.dual


def test_a_compiled_function_is_not_traced_anew_for_what_outlived_a_level():
    @jaxgrad.jit
    def double(x):
        return x * 2

    x = number(1.0)
    double(x)
    with fwAD.dual_level():
        y = fwAD.make_dual(x, x) * 1
    assert double(y).item() == 2 and len(double.traces) == 1


def test_a_function_that_was_used_in_a_level_marks_nothing_after_it():
    """What a Function computes from a dual counts as depending on it."""

    class Keeps(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.double = y * 2
            return x * ctx.double

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.double, None

    x = number(3.0, requires_grad=True)
    with fwAD.dual_level():
        y = fwAD.make_dual(number(2.0), number(1.0))
    (gradient,) = jaxgrad.autograd.grad(Keeps.apply(x, y), x, create_graph=True)
    assert gradient.item() == 4


class HalfSquare(jaxgrad.autograd.Function):
    """Its tangent along 1 is the argument, returned unchanged."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_forward(x)
        return x * x / 2

    @staticmethod
    def jvp(ctx, tangent):
        return ctx.saved_tensors[0]


def test_a_tangent_is_no_dual_at_its_own_level():
    with fwAD.dual_level():
        x = fwAD.make_dual(number(3.0), number(1.0))
        slope = fwAD.unpack_dual(HalfSquare.apply(x)).tangent
        assert slope.item() == 3 and fwAD.unpack_dual(slope).tangent is None
        with fwAD.dual_level():
            y = fwAD.make_dual(x, number(1.0))
            inner = fwAD.unpack_dual(HalfSquare.apply(y)).tangent
            assert (inner.item(), tangent(inner, 0), tangent(inner, 1)) == (3, 1, None)
            assert repr(inner) == "tensor(3., dtype=torch.float64, tangent0=1.0)"


# ---- the current level


@as_torch("""
    -1
    0
    0
    0
    0
    -1
""")
def test_the_number_of_the_current_level(torch):
    forward_ad = torch.autograd.forward_ad
    numbers = [forward_ad._current_level]
    level = forward_ad.enter_dual_level()
    numbers += [level, forward_ad._current_level]
    forward_ad.exit_dual_level()
    with forward_ad.dual_level() as level:
        numbers += [level, forward_ad._current_level]
    return [*numbers, forward_ad._current_level]


@as_torch("""
    False
    True
""")
def test_whether_tangents_are_computed(torch):
    forward_ad = torch.autograd.forward_ad
    with forward_ad._set_fwd_grad_enabled(False):
        off = forward_ad._is_fwd_grad_enabled()
    return off, forward_ad._is_fwd_grad_enabled()


def test_the_current_level_counts_nested_ones():
    with fwAD.dual_level(), fwAD.dual_level():
        assert fwAD._current_level == 1
    with ThreadPoolExecutor(1) as pool, fwAD.dual_level():
        assert pool.submit(lambda: fwAD._current_level).result() == -1
    with pytest.raises(AttributeError, match="no attribute '_current_levels'"):
        fwAD._current_levels  # noqa: B018
