"""The host executor's rules of branches, loops, and maps of tangents."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.host_rules_indexing import check_bits, check_close, check_refused, results_of
from jax import lax

import jaxgrad
from jaxgrad.core.tangent_map import apply_tangent_map

ROW = numpy.array([3.0, -1.0, 2.0], numpy.float32)
# where each place leads to: 0, 3, 1, 4, 2, and there it stays
NEXT = numpy.array([3, 4, 2, 1, 2], numpy.int32)


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
def test_switch(index):
    branches = [lambda a: a[::-1], lambda a: lax.cumsum(a), lambda a: lax.sort(a)]
    check_bits(lambda i, a: lax.switch(i, branches, a), numpy.int32(index), ROW)


@pytest.mark.parametrize("flag", [True, False])
def test_cond(flag):
    check_bits(lambda p, a: lax.cond(p, lambda: (a, a), lambda: (a[::-1], -a)), flag, ROW)


def test_while():
    def walk(start, array):
        return lax.while_loop(
            lambda state: state[0] != jnp.asarray(NEXT)[2],
            lambda state: (jnp.asarray(NEXT)[state[0]], lax.cumsum(state[1])),
            (start, array),
        )

    for start in (0, 2, 3):
        check_bits(walk, numpy.int32(start), ROW)


def test_while_with_constants_of_both():
    def climb(limit, step, start):
        return lax.while_loop(lambda i: i < limit, lambda i: i + step, start)

    check_bits(climb, numpy.int32(10), numpy.int32(3), numpy.int32(0))
    check_bits(climb, numpy.int32(10), numpy.int32(3), numpy.int32(11))


def test_fori():
    check_bits(lambda n, a: lax.fori_loop(0, n, lambda i, b: lax.cumsum(b), a), numpy.int32(4), ROW)
    check_bits(lambda a: lax.fori_loop(0, 3, lambda i, b: b.at[i].add(b[0]), a), ROW)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_scan(length, reverse):
    """Constants, two carried arrays, two arrays of items, and two results of each step."""
    rows = numpy.arange(3 * length, dtype=numpy.float32).reshape(length, 3)
    places = numpy.arange(length, dtype=numpy.int32)

    def scan(constant, first, second, rows, places):
        def step(carried, item):
            row, place = item
            return (carried[1] + constant, lax.cumsum(row)), (carried[0], place + 1)

        return lax.scan(step, (first, second), (rows, places), reverse=reverse)

    check_bits(scan, ROW, ROW, ROW[::-1], rows, places)


def test_scan_without_items():
    check_bits(lambda a: lax.scan(lambda b, _: (lax.cumsum(b), b[0]), a, length=3), ROW)
    check_bits(lambda a: lax.scan(lambda _, b: ((), b[::-1]), (), a), ROW.reshape(3, 1))


def test_nested_loops():
    def outer(row, _):
        return lax.fori_loop(0, 2, lambda i, a: lax.cumsum(a), row), row

    check_bits(lambda a: lax.scan(outer, a, length=3), ROW)


def test_associative_scan():
    check_close(lambda a: lax.associative_scan(lambda b, c: b + c, a), ROW, within=1e-6)


def test_linear_solve():
    def solve(array, scale):
        return lax.custom_linear_solve(
            lambda b: b * scale, array, lambda _, b: b / scale, lambda _, b: b / scale
        )

    check_close(solve, ROW, numpy.float32(4), within=1e-6)


@jax.custom_jvp
def _reversed(array):
    return array[::-1]


@_reversed.defjvp
def _(primals, tangents):
    return _reversed(*primals), _reversed(*tangents)


@jax.custom_vjp
def _sorted(array):
    return lax.sort(array)


_sorted.defvjp(lambda a: (lax.sort(a), None), lambda _, b: (b,))

CALLS = {
    "jit": jax.jit(lambda a: a[::-1]),
    "checkpoint": jax.checkpoint(lambda a: a[::-1]),
    "custom_jvp": _reversed,
    "custom_vjp": _sorted,
    "nested": jax.jit(jax.checkpoint(lambda a: (_reversed(a), _sorted(a)))),
    "in a loop": lambda a: lax.fori_loop(0, 3, lambda i, b: _reversed(_sorted(b)), a),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    check_bits(CALLS[name], ROW)


CALLBACKS = {
    "pure": lambda a: jax.pure_callback(lambda b: b, a, a),
    "io": lambda a: jax.experimental.io_callback(lambda b: b, a, a),
    "debug": lambda a: (jax.debug.callback(lambda b: None, a), a[::-1])[1],
    "in a branch": lambda a: lax.cond(
        a[0] > 0, lambda b: jax.pure_callback(lambda c: c, b, b), lambda b: b, a
    ),
}


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_are_refused(name):
    check_refused(CALLBACKS[name], ROW)


class _Reversal:
    """A map of tangents whose residual tells how far to shift."""

    outputs = (jax.ShapeDtypeStruct((3,), numpy.float32),)
    is_reused, takes_none, is_plain = True, False, False

    def select(self, primals, outputs):
        return (primals[0],)

    def forward(self, saved, tangents):
        return [lax.dynamic_slice(lax.concatenate([tangents[0]] * 2, 0), saved, (3,))]


def test_map_of_tangents():
    def function(place, tangent):
        return apply_tangent_map(_Reversal(), (place,), (), (tangent,))

    (result,) = results_of(function, numpy.int32(1), ROW)
    numpy.testing.assert_array_equal(result, numpy.roll(ROW, -1))


def test_batch_of_maps_of_tangents():
    def function(place, tangents):
        return jax.vmap(lambda t: apply_tangent_map(_Reversal(), (place,), (), (t,)))(tangents)

    tangents = numpy.stack([ROW, -ROW])
    (result,) = results_of(function, numpy.int32(1), tangents)
    numpy.testing.assert_array_equal(result, numpy.roll(tangents, -1, axis=1))


def test_map_of_tangents_of_an_operator():
    """The forward derivative of an operator, as jaxgrad traces it."""

    def tangent(array, direction):
        return jax.jvp(lambda a: jaxgrad.cumsum(a, 0), (array,), (direction,))[1]

    assert "jaxgrad_tangent_map" in str(jax.make_jaxpr(tangent)(ROW, ROW))
    check_close(tangent, ROW, ROW[::-1], within=1e-6)
