"""Anomaly mode: which operator of the forward pass an error names as the first with a NaN."""

import gc
import math
import sys

import pytest
from helpers.as_torch import leaf

import jaxgrad
from jaxgrad.autograd._inspect import anomaly_origins

pytestmark = pytest.mark.filterwarnings("ignore:Error detected")

FORWARD = "The first nan of the forward pass came out of"
INSIDE = "While it ran, the first nan came out of"


@pytest.fixture
def cycles():
    """What a compiled function leaves that ran again operator by operator: only `gc` frees it."""
    yield
    gc.collect()


def searching(**options):
    return jaxgrad.autograd.set_detect_anomaly(True, **options)


def said(function, *args):
    """The message of the error that a call raises in a block of its own."""
    with searching(), pytest.raises(RuntimeError) as raised:
        function(*args)
    return str(raised.value)


def here():
    """The file and line of the caller, as messages name it."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def line_of(function, offset):
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno + offset}"


class Divides(jaxgrad.autograd.Function):
    """Its backward makes a NaN out of 0, which `masked` puts away."""

    @staticmethod
    def forward(ctx, x, masked=False):
        ctx.save_for_backward(x)
        ctx.masked = masked
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        result = gradient * x / x
        return jaxgrad.where(x > 0, result, 0.0) if ctx.masked else result, None


def softmax_of_nothing(x):
    x.grad = None
    (x - math.inf).softmax(0).sum().backward()
    return x.grad


def divides(x):
    x.grad = None
    Divides.apply(x).sum().backward()
    return x.grad


# ---- another run


@pytest.mark.slow
@pytest.mark.parametrize("form", [lambda function: function, jaxgrad.jit], ids=["eager", "jit"])
def test_the_error_names_no_operator_of_another_block(form):
    x, first, second = leaf(jaxgrad, 0.0, 0.0), form(softmax_of_nothing), form(divides)
    for _ in range(2):  # compiled functions are traced in the first turn
        before, after = said(first, x), said(second, x)
        assert f"{FORWARD} softmax, at {line_of(softmax_of_nothing, 2)}" in before
        assert "Function 'DividesBackward' returned nan" in after
        assert "softmax" not in after and "of the forward pass" not in after


@pytest.mark.usefixtures("cycles")
@pytest.mark.parametrize("form", [lambda function: function, jaxgrad.jit], ids=["eager", "jit"])
def test_the_error_names_no_operator_of_another_graph_in_the_block(form):
    kept = []

    def run():
        kept.append(jaxgrad.tensor(-1.0).log())
        kept.append(form(jaxgrad.log)(leaf(jaxgrad, -1.0)))
        divides(leaf(jaxgrad, 0.0))

    assert "of the forward pass" not in said(run)


def test_the_first_nan_is_that_of_the_operator_which_leads_to_the_error():
    x, line = leaf(jaxgrad, -1.0), None

    def run():
        nonlocal line
        other = x.log()
        root, line = x.sqrt(), here()
        ((root * 1 + 1).sin() * 0 + other.detach() * 0).backward()

    message = said(run)
    assert f"{FORWARD} sqrt, at {line}," in message


def test_the_graph_remembers_its_operators_after_the_block():
    x = leaf(jaxgrad, -1.0)
    with searching():
        root, line = x.sqrt() * 2, here()
    said(softmax_of_nothing, leaf(jaxgrad, 0.0, 0.0))
    assert f"{FORWARD} sqrt, at {line}," in said((root * 0).backward)


def test_nothing_is_remembered_longer_than_the_arrays():
    before = len(anomaly_origins.known)
    with searching():
        result = jaxgrad.tensor([-1.0]).log() * 2
        assert len(anomaly_origins.known) > before
    said(softmax_of_nothing, leaf(jaxgrad, 0.0, 0.0))
    del result
    gc.collect()
    assert len(anomaly_origins.known) == before


# ---- where the NaN goes


class Keeps(jaxgrad.autograd.Function):
    """It saves its second input, or reads it from its own attribute."""

    @staticmethod
    def forward(ctx, x, factor, saves):
        ctx.save_for_backward(*[factor] * saves)
        ctx.factor = factor
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        factor = ctx.saved_tensors[0] if ctx.saved_tensors else ctx.factor
        return gradient * factor, None, None


FOLLOWED = {
    "a view": lambda x: x.log()[0:1].exp(),
    "a write": lambda x: (x * 1).log_().view(2, 1)[0].exp(),
    "parts": lambda x: jaxgrad.stack(x.log().unbind(0)).exp(),
    "a constant": lambda x: x * x.detach().log(),
    "no_grad": lambda x: x * jaxgrad.no_grad()(jaxgrad.log)(x),
    "what a Function saves": lambda x: Keeps.apply(x, x.detach().log(), True),
    "what a Function keeps": lambda x: Keeps.apply(x, x.detach().log(), False),
    "jit around": jaxgrad.jit(lambda x: x.log().exp()),
    "jit before": lambda x: x * jaxgrad.jit(jaxgrad.log)(x.detach()),
    "jit inside of jit": jaxgrad.jit(lambda x: x * jaxgrad.jit(jaxgrad.log)(x.detach())),
}


@pytest.mark.usefixtures("cycles")
@pytest.mark.parametrize("case", FOLLOWED)
def test_a_nan_is_followed_through(case):
    x = leaf(jaxgrad, -1.0, 2.0)
    said(softmax_of_nothing, leaf(jaxgrad, 0.0, 0.0))
    assert f"{FORWARD} log, at {__file__}:" in said(lambda: FOLLOWED[case](x).sum().backward())


def test_an_operator_that_saves_no_nan_is_named_for_its_own_result():
    x = leaf(jaxgrad, -1.0)
    power = x**0.5  # outside of the mode, so nobody knows
    assert "of the forward pass" not in said(power.backward)
    with searching():
        power, line = x**0.5, here()
    assert f"{FORWARD} pow, at {line}," in said(power.backward)


# ---- inside of a backward pass


def test_an_operator_of_a_backward_is_no_part_of_the_forward_pass():
    message, again = said(divides, leaf(jaxgrad, 0.0)), leaf(jaxgrad, 0.0)
    assert f"{INSIDE} div, at {line_of(Divides.backward, 3)}, `result = " in message
    assert "of the forward pass" not in message

    def run():
        Divides.apply(again, True).backward()
        (again.sqrt() * 0).backward()

    message = said(run)
    assert "SqrtBackward0" in message and "came out of" not in message


def test_an_operator_of_a_hook_is_no_part_of_the_forward_pass():
    sine = leaf(jaxgrad, 1.0).sin()
    sine.register_hook(lambda gradient: (gradient * -1).log())
    message = said(sine.backward)
    assert f"{INSIDE} log, at {__file__}" in message
    assert "of the forward pass" not in message


def test_what_a_hook_computes_is_no_forward_pass_for_a_later_one():
    x, kept = leaf(jaxgrad, 1.0), []
    x.register_hook(lambda gradient: kept.append((gradient * -1).log()))
    with searching():
        (x * 2).backward()
    message = said(lambda: (x * kept[0]).backward())
    assert "What it had saved held nan." in message and "came out of" not in message


def test_check_forward_leaves_the_operators_of_a_backward_alone():
    x = leaf(jaxgrad, 0.0)
    with searching(check_forward=True):
        Divides.apply(x, True).backward()
        assert x.grad.item() == 0.0
        with pytest.raises(RuntimeError, match="Function 'div' returned nan values"):
            x / x


def slope_of(x):
    (slope,) = jaxgrad.autograd.grad(Divides.apply(x, True), x, create_graph=True)
    return slope


def test_what_create_graph_records_is_the_forward_pass_of_the_next_one():
    x = leaf(jaxgrad, 0.0)

    def second():
        slope = slope_of(x)  # its NaN is put away, so the first pass is right
        slope.backward()

    message = said(second)
    assert f"{FORWARD} div, at {line_of(Divides.backward, 3)}," in message
    assert INSIDE not in message


def test_what_create_graph_records_is_not_the_forward_pass_of_the_pass_itself():
    x = leaf(jaxgrad, 0.0)
    message = said(lambda: jaxgrad.autograd.grad(Divides.apply(x), x, create_graph=True))
    assert f"{INSIDE} div" in message and "of the forward pass" not in message


def test_check_forward_finds_what_create_graph_records():
    with searching(check_forward=True), pytest.raises(RuntimeError, match="'div' returned nan"):
        slope_of(leaf(jaxgrad, 0.0))


def test_a_forward_pass_inside_of_a_backward_has_its_own_first_nan():
    class Recomputes(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            with jaxgrad.enable_grad():
                again = x.detach().requires_grad_()
                result = again.log().exp()
            return jaxgrad.autograd.grad(result, again, gradient)

    message = said(Recomputes.apply(leaf(jaxgrad, -1.0)).backward)
    assert "Function 'ExpBackward0' returned nan" in message
    assert f"{FORWARD} log, at {line_of(Recomputes.backward, 5)}," in message


# ---- jaxgrad.jit


def masked(x):
    root = (x * 1).sqrt()
    return jaxgrad.where(x > 0, root, 0.0).sum()


def test_a_nan_that_only_the_node_of_a_compiled_function_saves():
    x, step = leaf(jaxgrad, -1.0, 2.0), jaxgrad.jit(masked)
    message = said(lambda: step(x).backward())
    assert "Function 'maskedBackward0' returned nan" in message
    assert f"{FORWARD} sqrt, at {line_of(masked, 1)}," in message


def test_no_operator_is_named_where_several_might_be_it():
    def several(x):
        return masked(x), (x.detach() * 1).log()

    step, x = jaxgrad.jit(several), leaf(jaxgrad, -1.0, 2.0)
    message = said(lambda: step(x)[0].backward())
    assert "Function 'severalBackward0' returned nan" in message
    assert "of the forward pass" not in message


@pytest.mark.usefixtures("cycles")
def test_a_nan_that_a_compiled_function_only_saves_is_found_again():
    with searching():
        assert jaxgrad.jit(masked)(leaf(jaxgrad, -1.0, 4.0)).item() == 2.0
