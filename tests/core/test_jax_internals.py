"""What core/jax_internals.py takes for granted of JAX, compared with the JAX that is installed.

tests/distributed/test_lost_processes.py compares what XLA says of a lost process.
"""

import sys
import threading
import warnings

import jax
import jax.extend.core.primitives
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import interrupts
from jax import lax
from jax.extend.core import take_current_trace

from jaxgrad.autograd._function import linearity
from jaxgrad.compiled import compiler_options
from jaxgrad.core import jax_internals, linear_jaxprs, program
from jaxgrad.core.jaxprs import is_pure, jaxprs_within
from jaxgrad.utils import summary_cost

x = jnp.array([1.0, 2.0, 4.0])


def last_equation(function, *arrays):
    return jax.make_jaxpr(function)(*arrays).eqns[-1]


def inside_trace(look):
    """What a function gives of a tracer while JAX traces a function of one argument."""
    values = []
    jax.make_jaxpr(lambda argument: values.append(look(argument)) or argument)(x)
    return values[0]


# ---- the trace that is under way


def test_the_current_trace_is_put_back():
    outside = jax_internals.current_trace()
    assert outside is not None and inside_trace(lambda _: jax_internals.current_trace()) != outside
    taking = take_current_trace()
    jax_internals.put_back_trace(taking)  # before it has taken anything
    with taking as trace:
        assert jax_internals.current_trace() is not outside or trace is outside
    for _ in range(2):
        jax_internals.put_back_trace(taking)
        assert jax_internals.current_trace() is trace is outside
    assert (x + 1).tolist() == [2, 3, 5]


def test_functions_are_traced_outside_of_traces():
    def look(argument):
        with jax_internals.outside_of_traces():
            number = jnp.ones(2).sum() + jax.jit(lambda: jnp.ones(2).sum())()
            return float(number), len(jax.make_jaxpr(lambda: jnp.ones(2))().eqns)

    assert inside_trace(look) == (4.0, 1)


def test_whether_jax_traces():
    is_traced = jax_internals.is_traced

    def looked_at(transform):
        values = []
        transform(lambda array: values.append(is_traced()) or array.sum())(x)
        return values

    def at_once(_):
        with jax.ensure_compile_time_eval():
            return is_traced()

    assert not is_traced()
    assert looked_at(jax.jit) == looked_at(jax.make_jaxpr) == [True]
    assert looked_at(jax.grad) == looked_at(jax.vmap) == [False]
    assert inside_trace(at_once) is False
    states = []
    thread = threading.Thread(target=lambda: states.append(is_traced()))
    thread.start()
    thread.join()
    assert states == [False]


# ---- what tracers stand for


def test_the_equation_behind_a_tracer():
    def look(argument):
        total = lax.add(argument, jnp.float32(3))
        assert jax_internals.equation_behind(argument) is None
        equation = jax_internals.equation_behind(total)
        assert jax_internals.is_equation(equation) and equation.primitive is lax.add_p
        assert not jax_internals.is_equation(argument) and not jax_internals.is_equation(x)
        operands = jax_internals.operands_of(equation)
        assert operands[0] is argument and len(operands) == 2
        with jax.ensure_compile_time_eval():
            (result,) = jax_internals.results_of(equation, [x, jnp.float32(3)])
        assert jax_internals.result_behind(total, equation, [result]) is result
        return result

    assert inside_trace(look).tolist() == [4, 5, 7]


def test_results_of_an_equation_with_several():
    def look(argument):
        first, second = lax.split(argument, (1, 2))
        equation = jax_internals.equation_behind(second)
        with jax.ensure_compile_time_eval():
            results = jax_internals.results_of(equation, [x])
        pairs = [(first, results), (second, results)]
        return [jax_internals.result_behind(part, equation, of_all) for part, of_all in pairs]

    assert [result.tolist() for result in inside_trace(look)] == [[1], [2, 4]]


def test_what_a_tracer_stands_for():
    constant = jax.jit(lambda array: (array, x), inline=jax_internals.JOINS_TRACE)

    def look(argument):
        tracers = constant(argument)
        assert all(isinstance(tracer, jax.core.Tracer) for tracer in tracers)
        assert jax_internals.lowered(argument) is argument
        return jax_internals.lowered(tracers[1])

    value = inside_trace(look)
    assert not isinstance(value, jax.core.Tracer) and value.tolist() == [1, 2, 4]


SHAPE = jax.ShapeDtypeStruct((3,), jnp.float32)
IMPURE = {
    "pure_callback": lambda array: jax.pure_callback(np.sin, SHAPE, array),
    "io_callback": lambda array: jax.experimental.io_callback(np.sin, SHAPE, array),
    "debug callback": lambda array: jax.debug.callback(print, array),
    "a callback in a jitted function": jax.jit(lambda a: jax.pure_callback(np.sin, SHAPE, a)),
    "donation": jax.jit(lambda array: array * 2, donate_argnums=0),
}


@pytest.mark.parametrize("name", IMPURE)
def test_what_may_not_be_evaluated_once_more(name):
    assert not is_pure(last_equation(IMPURE[name], x))


@pytest.mark.parametrize("function", [jnp.sin, jax.jit(jnp.sin), lambda a: lax.cumsum(a)])
def test_what_may_be_evaluated_once_more(function):
    assert is_pure(last_equation(function, x))


# ---- calls of jitted functions


def test_equations_of_a_joining_function_are_a_part_of_the_trace():
    doubled = jax.jit(lambda array: lax.sin(array) * 2, inline=jax_internals.JOINS_TRACE)
    equations = jax.make_jaxpr(lambda array: lax.cos(doubled(array)))(x).eqns
    assert [equation.primitive.name for equation in equations] == ["sin", "mul", "cos"]


@jax.custom_jvp
def with_jvp(array):
    return array * 2


@jax.custom_vjp
def with_vjp(array):
    return array * 2


with_jvp.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
with_vjp.defvjp(lambda array: (array * 2, ()), lambda _, cotangent: (cotangent * 2,))
CALLED = [jax.jit(jnp.sin), jax.checkpoint(jnp.sin), with_jvp, with_vjp]


@pytest.mark.parametrize("function", CALLED, ids=["jit", "checkpoint", "jvp", "vjp"])
def test_calls_run_the_jaxpr_in_their_parameters(function):
    equation = last_equation(function, x)
    assert equation.primitive.name in jax_internals.CALLS
    assert len(jaxprs_within(equation)) == 1
    assert any(key in equation.params for key in jax_internals.INNER)


def test_the_jaxpr_of_a_jitted_function():
    closed = jax_internals.jitted_jaxpr(last_equation(jax.jit(jnp.sin), x))
    assert [equation.primitive.name for equation in closed.eqns] == ["sin"]
    assert jax_internals.jitted_jaxpr(last_equation(jnp.sin, x)) is None


def test_a_jaxpr_as_a_function_is_one_equation():
    closed = jax.make_jaxpr(lambda first, second: (first * second, second.sum(), x))(x, x)
    function = jax_internals.traced_function(closed)
    (equation,) = jax.make_jaxpr(function)(x, x).eqns
    assert jax_internals.jitted_jaxpr(equation) is closed
    assert equation.params["name"] == "equations"
    for call in (function, jax.jit(function)):
        product, total, constant = call(x, x)
        np.testing.assert_array_equal(product, [1, 4, 16])
        np.testing.assert_array_equal(constant, x)
        assert total == 7
    np.testing.assert_array_equal(jax.grad(lambda array: function(array, x)[0].sum())(x), x)


def test_extents_that_were_found_unequal():
    first, second = jax.export.symbolic_shape("a, b")
    pairs = []
    with jax_internals.watched_trace(pairs):
        assert not (first % 2 == 0 or first == second or first in (2, 3) or (first, 4) == (5, 4))
        assert first != 6 and first is not None and first == first
        # a lookup of JAX's in a cache meets other shapes
        jax.eval_shape(lambda x: x + 1, jax.ShapeDtypeStruct((first,), "float32"))
    texts = [(str(one), str(other)) for one, other in pairs]
    expected = [("mod(a, 2)", "0"), ("a", "b"), ("a", "2"), ("a", "3"), ("a", "5"), ("a", "6")]
    assert texts[: len(expected)] == expected
    assert sys.getprofile() is None


def test_a_trace_that_does_not_end_is_given_up(monkeypatch):
    monkeypatch.setattr(jax_internals, "MOST_EVENTS", 10_000)
    calls = []
    with pytest.raises(RecursionError), jax_internals.watched_trace([]):
        while len(calls) < 100_000:
            calls.append(len(calls))
    assert sys.getprofile() is None and len(calls) < 10_000


def test_a_trace_may_not_warn_and_other_threads_may():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with jax_internals.watched_trace([]):
            thread = threading.Thread(target=warnings.warn, args=("of another thread",))
            thread.start()
            thread.join()
        with pytest.raises(UserWarning), jax_internals.watched_trace([]):
            warnings.warn("of the trace", stacklevel=2)
    assert [str(warning.message) for warning in caught] == ["of another thread"]
    assert sys.getprofile() is None


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a, b: a < b + 1, ("a", "<", "b + 1")),
        (lambda a, b: 2 * a >= b, ("2*a", ">=", "b")),
        (lambda a, b: int(a * b), ("a*b", "==", None)),
        (lambda a, b: jnp.reshape(structure((a, 6)), (4, -1)), ("mod(6*a, - 4)", "==", "0")),
    ],
)
def test_what_jax_could_not_decide_of_extents(function, expected):
    with pytest.raises(jax.errors.InconclusiveDimensionOperation) as caught:
        function(*jax.export.symbolic_shape("a, b"))
    assert jax_internals.inconclusive(caught.value) == expected


def structure(shape):
    """An array of a shape, of a trace."""
    tracers = []
    jax.eval_shape(tracers.append, jax.ShapeDtypeStruct(shape, "float32"))
    return tracers[0]


@pytest.mark.slow
def test_the_extent_of_what_a_scan_carries():
    def step(carried, item):
        return (carried[0] + item, carried[1] * x), item

    equation = last_equation(lambda first: lax.scan(step, (1.0, first), jnp.arange(5.0)), x)
    extent = jax_internals.extent_of_carry(equation.params)
    begin, end = extent
    # the constants stand before it, and the items after it
    assert end - begin == 2 and len(equation.invars) - end == 1
    assert [variable.aval.shape for variable in equation.invars[begin:end]] == [(), (3,)]
    assert jax_internals.extent_of_carry({}) is None


def test_the_scopes_of_an_equation():
    def function(array):
        with jax.named_scope("outer"), jax.named_scope("inner"):
            return jnp.sin(array)

    assert jax_internals.scopes_of(last_equation(function, x)) == "outer/inner"


# ---- events and errors


def test_events_of_a_compilation():
    events = []

    def note(event, _seconds, **_):
        events.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        jax.jit(lambda array: array * 3 + 1)(x)
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    phases = jax_internals.TRACE_EVENT, jax_internals.LOWER_EVENT, jax_internals.COMPILE_EVENT
    assert set(phases) <= set(events)
    assert events.count(jax_internals.COMPILE_EVENT) == 1


def test_names_of_tracers():
    types = []

    def note(argument):
        types.append(type(argument).__name__)
        return argument.sum()

    for transform in (jax.make_jaxpr, jax.grad, jax.vmap):
        transform(note)(x)
    jax.jvp(note, (x,), (x,))
    assert len(types) == 4 and all(jax_internals.names_tracer(f"a {name}, no") for name in types)
    assert not jax_internals.names_tracer("a tensor, no tracer")


@pytest.mark.parametrize("number", range(8))
def test_the_error_of_a_broken_cache(number):
    """From JAX 0.12 on an interrupt breaks no cache."""
    function, profile = jax.jit(lambda array: array * 3), interrupts.InCacheOfJax(number)
    interrupts.at_moment(profile, function, x)
    assert profile.has_raised
    try:
        result = function(x)
    except RecursionError as error:
        assert jax_internals.is_of_broken_cache(error)
        jax.clear_caches()
        result = function(x)
    assert result.tolist() == [3, 6, 12]


def test_the_error_of_a_late_initialization():
    x.block_until_ready()
    with pytest.raises(RuntimeError) as told:
        jax.distributed.initialize("localhost:1", 1, 0)
    assert jax_internals.is_of_late_initialization(told.value)


# ---- the names of primitives and of their parameters

INTERPRETERS = {
    linear_jaxprs: ("OF_FIRST", "SUMS", "PRODUCTS", "KEEP_ZERO"),
    linearity: ("FIRST", "TOGETHER", "PRODUCTS"),
    summary_cost: ("PRODUCTS", "_MOVES"),
    compiler_options: ("WRITES",),
    program: ("HEEDING",),
}
# names of an older JAX, and such as only a newer or a rare function of JAX has
OTHERS = {"copy_p", "expand_dims", "ragged_dot_general", "scatter_add", "scatter_mul"}


@pytest.mark.parametrize("module", INTERPRETERS, ids=lambda module: module.__name__)
def test_names_of_primitives(module):
    values = [*vars(lax).values(), *vars(jax.extend.core.primitives).values()]
    known = {value.name for value in values if isinstance(value, jax.extend.core.Primitive)}
    names = {name for table in INTERPRETERS[module] for name in getattr(module, table)}
    assert names - OTHERS <= known


PARAMETERS = {
    "broadcast_in_dim": (lambda a: lax.broadcast_in_dim(a, (2, 3), (1,)), ["broadcast_dimensions"]),
    "concatenate": (lambda a: lax.concatenate([a, a], 0), ["dimension"]),
    "conv_general_dilated": (
        lambda a: lax.conv(a.reshape(1, 1, 3), a.reshape(1, 1, 3), (1,), "SAME"),
        ["dimension_numbers"],
    ),
    "convert_element_type": (lambda a: lax.convert_element_type(a, jnp.int32), ["new_dtype"]),
    "dot_general": (jnp.dot, ["dimension_numbers"]),
    "pad": (lambda a: lax.pad(a, 0.0, [(1, 1, 0)]), ["padding_config"]),
    "reshape": (lambda a: lax.reshape(a, (3, 1)), ["dimensions"]),
    "rev": (lambda a: lax.rev(a, (0,)), ["dimensions"]),
    "scan": (lambda a: lax.scan(lambda c, i: (c + i, i), 0.0, a), ["jaxpr", "length"]),
    "slice": (
        lambda a: lax.slice(a, (0,), (2,), (1,)),
        ["start_indices", "limit_indices", "strides"],
    ),
    "split": (lambda a: lax.split(a, (1, 2)), ["sizes", "axis"]),
    "transpose": (lambda a: lax.transpose(a.reshape(3, 1), (1, 0)), ["permutation"]),
    "cond": (lambda a: lax.cond(a[0] > 0, jnp.sin, jnp.cos, a), ["branches"]),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_names_of_parameters(name):
    function, parameters = PARAMETERS[name]
    arrays = [x, x] if name == "dot_general" else [x]
    equation = last_equation(function, *arrays)
    assert equation.primitive.name == name and set(parameters) <= set(equation.params)
