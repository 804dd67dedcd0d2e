"""Anomaly mode: messages about a failing backward pass and a NaN, row by row of PyTorch's
behaviour.
"""

import asyncio
import contextlib
import ctypes
import gc
import io
import math
import sys
import threading
import warnings
import weakref

import jax
import numpy as np
import pytest
from helpers.as_torch import as_torch, error, leaf, warned
from helpers.kernels import states

import jaxgrad
from jaxgrad.autograd._engine import observers
from jaxgrad.autograd._inspect import anomaly_detection
from jaxgrad.core import executor, kernel
from jaxgrad.tape import interception, node_annotations

NAN = float("nan")


@contextlib.contextmanager
def anomaly(torch, *args, **options):
    """`detect_anomaly` without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(*args, **options):
            yield


def failing(torch, raised=None):
    """A Function whose backward raises, or else returns NaN for its second input."""

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, gradient):
            if raised is not None:
                raise raised
            return gradient, gradient * NAN

    return Failing


def root_of_zero(torch):
    """A backward pass that multiplies 0 by the infinite slope of the root."""
    x = leaf(torch, 0.0)
    y = x.sqrt() * 0
    y.backward()
    return x.grad


def flags(torch):
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def said(function, *args):
    """The message of the error that a call raises."""
    with pytest.raises(RuntimeError) as raised:
        function(*args)
    return str(raised.value)


def here():
    """The file and line of the caller, as messages name it."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


# ---- M01: detect_anomaly


@pytest.mark.row("M01")
@as_torch
def test_detect_anomaly_warns_and_sets_both_flags(torch):
    def run(*args, **options):
        with torch.autograd.detect_anomaly(*args, **options):
            return flags(torch)

    before = flags(torch)
    reports = [warned(run), warned(run, False), warned(lambda: run(check_nan=False))]
    return before, reports, flags(torch)


@pytest.mark.row("M01")
@as_torch("""
    [[True, False], [True, True], [True, True]]
    [False, True]
""")
def test_nested_and_left_by_an_exception(torch):
    seen = []
    with anomaly(torch):
        with anomaly(torch, False):
            seen.append(flags(torch))
        seen.append(flags(torch))
        with contextlib.suppress(ValueError), anomaly(torch, check_nan=False):
            raise ValueError
        seen.append(flags(torch))
    return seen, flags(torch)


@pytest.mark.row("M01")
@as_torch
def test_an_error_is_told_with_its_forward_call(torch):
    def of_function():
        x = leaf(torch, 1.0, 2.0)
        failing(torch, ValueError("no gradient")).apply(x, x).sum().backward()

    def of_hook():
        x = leaf(torch, 1.0, 2.0)
        y = x.sin()
        y.register_hook(lambda gradient: 1 / 0)
        y.sum().backward()

    def of_second_pass():
        x = leaf(torch, 1.0, 2.0)
        y = (x * x).sum()
        y.backward()
        y.backward()

    outcomes = []
    for case in (of_function, of_hook, of_second_pass):
        with torch.autograd.set_detect_anomaly(True):
            report = warned(error, case)
        (warning,) = report["warnings"]
        last = [line.strip() for line in warning["says"].split("\n") if line.startswith("    ")]
        calls = ("y = x.sin()", "y = (x * x).sum()", ").apply(x, x).sum().backward()")
        told = warning["error"], warning["says"].split("\n")[0], report["result"]
        outcomes.append((told, [any(call in line for line in last) for call in calls]))
    return outcomes


@pytest.mark.row("M01")
@as_torch("""
    'UserWarning'
    ('Error detected in SqrtBackward0. No forward pass information available. Enable '
     'detect anomaly during forward pass for more information.')
    RuntimeError("Function 'SqrtBackward0' returned nan values in its 0th output.")
""")
def test_a_node_from_outside_of_the_mode_has_no_traceback(torch):
    y = leaf(torch, 0.0).sqrt() * 0
    with torch.autograd.set_detect_anomaly(True):
        report = warned(error, y.backward)
    (warning,) = report["warnings"]
    return warning["error"], warning["says"].split(" (Triggered")[0], report["result"]


@pytest.mark.row("M01")
@as_torch(r"""
    {}
    {}
    ['traceback_']
    [True, True]
    'test_nodes_keep_the_traceback_of_their_call\n    y = x.exp().sin()\n'
""")
def test_nodes_keep_the_traceback_of_their_call(torch):
    x = leaf(torch, 2.0)
    before = x.exp().grad_fn.metadata
    with anomaly(torch):
        y = x.exp().sin()
    lines = y.grad_fn.metadata["traceback_"]
    after = x.exp().grad_fn.metadata
    kinds = isinstance(lines, list), {isinstance(line, str) for line in lines} == {True}
    return before, after, list(y.grad_fn.metadata), kinds, lines[-1].split(", in ")[1]


@as_torch("""
    [ValueError('refused')]
    True
""")
def test_where_warnings_are_errors_the_text_is_printed(torch):
    x = leaf(torch, 1.0, 2.0)
    printed, told = io.StringIO(), []

    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("refused")

    with torch.autograd.set_detect_anomaly(True):
        y = Refuses.apply(x)
        with warnings.catch_warnings(), contextlib.redirect_stderr(printed):
            warnings.simplefilter("error")
            told.append(error(y.sum().backward))
    text = printed.getvalue()
    return told, "Error detected in RefusesBackward. Traceback of forward call" in text


@as_torch("""
    ValueError('refused')
    True
    True
    ValueError('refused')
    True
    True
""")
def test_errors_in_hooks_of_leaves_show_the_call_that_first_used_the_leaf(torch):
    def fails(_):
        raise ValueError("refused")

    told = []
    for register in ("register_hook", "register_post_accumulate_grad_hook"):
        x = leaf(torch, 1.0, 2.0)
        getattr(x, register)(fails)
        with anomaly(torch):
            y = (x * 2).sum()
            report = warned(error, y.backward)
        text = report["warnings"][0]["says"]
        told += [report["result"], "AccumulateGrad. Traceback of forward call" in text]
        told += ["y = (x * 2).sum()" in text]
    return told


def test_the_node_of_a_leaf_shows_its_first_use_alone():
    x = leaf(jaxgrad, 1.0)
    with anomaly(jaxgrad):
        first = x * math.inf
        second = x * -math.inf
    (node, _), _ = second.grad_fn.next_functions
    assert "first = x" in node.metadata["traceback_"][-1]
    with anomaly(jaxgrad), pytest.raises(RuntimeError, match="The sum of gradients") as raised:
        (first * 1 + second * 1).backward()
    assert "AccumulateGrad" in str(raised.value) and "belongs to" not in str(raised.value)


@pytest.mark.row("M01")
def test_the_error_names_the_forward_call_where_warnings_are_errors():
    x = leaf(jaxgrad, 0.0)
    with jaxgrad.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError) as raised:
        root_of_zero(jaxgrad)
    (note,) = raised.value.__notes__
    assert note.startswith("Error detected in SqrtBackward0. Traceback of forward call that caused")
    assert "    y = x.sqrt() * 0\n" in note
    assert x.grad is None


@pytest.mark.row("M01")
def test_the_warning_points_at_the_line_that_began_the_pass():
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        with jaxgrad.autograd.set_detect_anomaly(True), contextlib.suppress(RuntimeError):
            root_of_zero(jaxgrad)
    (warning,) = records
    line = root_of_zero.__code__.co_firstlineno + 4
    assert (warning.filename, warning.lineno) == (__file__, line)


@pytest.mark.row("M01")
def test_detect_anomaly_as_a_decorator_of_functions_generators_and_coroutines():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode = jaxgrad.autograd.detect_anomaly(check_nan=False)

    @mode
    def function():
        return flags(jaxgrad)

    @mode
    def generator():
        yield flags(jaxgrad)

    @mode
    async def coroutine():
        await asyncio.sleep(0)
        return flags(jaxgrad)

    seen = []
    for inside in generator():
        seen.append((inside, flags(jaxgrad)))
    assert function() == (True, False)
    assert seen == [((True, False), (False, True))]
    assert asyncio.run(coroutine()) == (True, False)
    assert flags(jaxgrad) == (False, True)


# ---- M02: NaN in the backward pass


@pytest.mark.row("M02")
@as_torch
def test_nan_in_backward(torch):
    def quotient():
        (leaf(torch, 0.0) / leaf(torch, 0.0)).backward()

    def of_function():
        x, y = leaf(torch, 1.0, 2.0), leaf(torch, 1.0, 2.0)
        failing(torch).apply(x, y).sum().backward()

    def masked():
        x = leaf(torch, -1.0, 2.0)
        torch.where(x > 0, x.sqrt(), torch.zeros(2)).sum().backward()

    def from_hook():
        y = leaf(torch, 1.0, 2.0).sin()
        y.register_hook(lambda gradient: gradient * NAN)
        y.sum().backward()

    def from_post_hook():
        y = leaf(torch, 1.0, 2.0).sin()
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * NAN,))
        y.sum().backward()

    def argument():
        leaf(torch, 1.0, 2.0).sin().backward(torch.tensor([NAN, 1.0]))

    def in_second_input():
        torch.where(
            torch.tensor(True), leaf(torch, 1.0) * 1, leaf(torch, 0.0).sqrt() * 0
        ).backward()

    cases = (quotient, of_function, masked, from_hook, from_post_hook, argument, in_second_input)
    with anomaly(torch):
        first = [error(root_of_zero, torch), *map(error, cases)]
    with anomaly(torch, check_nan=False):
        return first, root_of_zero(torch), [error(case) for case in cases]


@pytest.mark.row("M02")
@as_torch("""
    [tensor(inf), tensor(nan), tensor(nan), tensor([-1.0, 0.5]), tensor([-0.0, 0.5])]
    tensor([nan, 0.6931471824645996])
    [tensor(inf)]
""")
def test_what_is_no_nan_of_a_node_goes_on(torch):
    with anomaly(torch):
        infinite = leaf(torch, 0.0)
        infinite.sqrt().backward()
        hooked = leaf(torch, 1.0)
        hooked.register_hook(lambda gradient: gradient * NAN)
        (hooked * 2).backward()
        itself = leaf(torch, 1.0)
        itself.backward(torch.tensor(NAN))
        negative = leaf(torch, -1.0, 2.0)
        logarithm = negative.log()
        logarithm.sum().backward()
        chosen = leaf(torch, -1.0, 2.0)
        torch.where(chosen > 0, chosen.log(), torch.zeros(2)).sum().backward()
        dividend = leaf(torch, 0.0)
        asked = torch.autograd.grad(dividend / leaf(torch, 0.0), dividend)
    leaves = infinite, hooked, itself, negative, chosen
    return [tensor.grad for tensor in leaves], logarithm.detach(), asked


@pytest.mark.row("M02")
@as_torch("""
    'RuntimeError'
    True
""")
def test_nan_in_a_second_derivative(torch):
    def run():
        x = leaf(torch, 0.0)
        (slope,) = torch.autograd.grad(x**1.5, x, create_graph=True)
        (slope * 0).backward()

    with anomaly(torch):
        return error(run, words=None)["error"], "returned nan values in its" in error(run)["says"]


@pytest.mark.row("M02")
def test_the_error_names_the_line_and_what_is_to_blame():
    x, y = leaf(jaxgrad, 0.0), leaf(jaxgrad, -1.0, 2.0)
    z = leaf(jaxgrad, 1.0, 2.0)
    z.register_hook(lambda gradient: gradient)
    with anomaly(jaxgrad):
        root, line_of_root = x.sqrt(), here()
        again, line_of_again = y.sqrt(), here()
        sine, line_of_sine = z.sin(), here()
        sine.register_hook(lambda gradient: gradient * NAN)
        for_root = said((root * 0).backward)
        for_again = said((again * 0).sum().backward)
        for_sine = said(sine.sum().backward)
    begin = "Function 'SqrtBackward0' returned nan values in its 0th output. "
    assert for_root.startswith(f"{begin}It belongs to the call at {line_of_root}, `root, line_of")
    assert "What had arrived and what it had saved held neither nan nor inf" in for_root
    assert for_again.startswith(f"{begin}It belongs to the call at {line_of_again}, `again")
    assert "What it had saved held nan." in for_again
    assert f"The first nan of the forward pass came out of sqrt, at {line_of_again}," in for_again
    assert f"call at {line_of_sine}, `sine, line_of_sine = z.sin(), here()`." in for_sine
    assert "What had arrived held nan." in for_sine


@pytest.mark.row("M02")
def test_the_error_says_that_infinity_had_arrived():
    x = leaf(jaxgrad, 0.0, 4.0)
    with anomaly(jaxgrad):
        message = said(((x * 0).sqrt()).sum().backward)
    assert message.startswith("Function 'MulBackward0' returned nan values in its 0th output.")
    assert "What had arrived held inf." in message


@pytest.mark.row("M02")
def test_the_first_nan_of_the_forward_pass_is_forgotten_with_a_pass_that_works():
    x = leaf(jaxgrad, 0.0)
    with anomaly(jaxgrad):
        jaxgrad.tensor(-1.0).log()
        (x * 2).backward()
        message = said((x.sqrt() * 0).backward)
    assert "of the forward pass" not in message


@pytest.mark.row("M02")
@pytest.mark.parametrize("name", ["log", "sqrt", "acos", "log1p"])
def test_check_forward_raises_at_the_operator(name):
    x = jaxgrad.tensor([0.5, -3.0], requires_grad=True)
    function, line = getattr(jaxgrad, name), None

    def run():
        nonlocal line
        held = x * 1
        line = here(), function(held)

    with anomaly(jaxgrad, check_forward=True):
        message = said(run)
        kept = jaxgrad.tensor([NAN, 1.0]) * 2  # it was there before
    assert message.startswith(f"Function '{name}' returned nan values in its 0th output, and no")
    assert f"at {__file__}:{run.__code__.co_firstlineno + 3}, `line = here()" in message
    np.testing.assert_array_equal(kept.numpy(), [NAN, 2.0])


@pytest.mark.row("M02")
def test_check_inf_finds_infinities():
    x = leaf(jaxgrad, 0.0)
    with anomaly(jaxgrad, check_inf=True):
        message = said(x.sqrt().backward)
        logarithm = jaxgrad.tensor(0.0).log()
    assert message.startswith("Function 'SqrtBackward0' returned inf values in its 0th output.")
    assert logarithm.item() == -np.inf
    with anomaly(jaxgrad, check_inf=True, check_forward=True):
        message = said(jaxgrad.tensor(0.0).log)
    assert message.startswith("Function 'log' returned inf values in its 0th output")
    with anomaly(jaxgrad, check_nan=False, check_inf=True):
        y = leaf(jaxgrad, -1.0)
        y.sqrt().backward()
    assert y.grad.isnan()


@pytest.mark.row("M02")
@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_every_dtype_is_looked_at(dtype, on_device, monkeypatch):
    if on_device:  # as if numpy could not read it
        monkeypatch.setattr(anomaly_detection, "_is_at_hand", lambda array: False)
    x = jaxgrad.tensor([0.0, 1.0], dtype=getattr(jaxgrad, dtype), requires_grad=True)
    with anomaly(jaxgrad):
        message = said(((x / x) * 0).abs().sum().backward)
        (x * 2).abs().sum().backward()
    assert "returned nan values in its" in message


@pytest.mark.row("M02")
def test_a_sum_of_gradients_that_makes_a_nan():
    x, y = leaf(jaxgrad, 0.0), leaf(jaxgrad, 0.0)
    with anomaly(jaxgrad):
        inner, line = x * 1, here()
        message = said((inner.sqrt() - inner.sqrt()).backward)
        y.sqrt().backward()
        of_leaf = said((-y.sqrt()).backward)
    begin = "The sum of gradients that go to"
    assert message.startswith(f"{begin} 'MulBackward0' returned nan values")
    assert f"It belongs to the call at {line}, `inner, line = x * 1, here()`." in message
    assert of_leaf.startswith(f"{begin} 'AccumulateGrad' returned nan values")
    assert y.grad.item() == np.inf


@pytest.mark.row("M02")
def test_gradients_that_are_recorded_are_looked_at():
    x = leaf(jaxgrad, 0.0)
    with anomaly(jaxgrad):
        message = said(lambda: jaxgrad.autograd.grad(x.sqrt() * 0, x, create_graph=True))
    assert message.startswith("Function 'SqrtBackward0' returned nan values in its 0th output.")


# ---- M02 under jaxgrad.jit


def compiled(**options):
    @jaxgrad.jit(**options)
    def step(x):
        x.grad = None
        (x.sqrt() * 0).sum().backward()
        return {"gradient": x.grad, "twice": x.detach() * 2}

    return step


@pytest.mark.row("M02")
def test_a_compiled_function_is_run_again_operator_by_operator():
    step, x = compiled(), leaf(jaxgrad, 0.0, 4.0)
    expected = step(x)
    with anomaly(jaxgrad), pytest.raises(RuntimeError) as raised:
        step(x)
    line = compiled.__code__.co_firstlineno + 4
    assert str(raised.value).startswith("Function 'SqrtBackward0' returned nan values in its 0th")
    assert f"at {__file__}:{line}, `(x.sqrt() * 0).sum().backward()`" in str(raised.value)
    assert "step, compiled by jaxgrad.jit, returned nan values" in raised.value.__notes__[0]
    np.testing.assert_array_equal(expected["gradient"].numpy(), [NAN, 0.0])
    assert x.grad is expected["gradient"] and x.tolist() == [0.0, 4.0]


@pytest.mark.row("M02")
def test_a_compiled_function_that_finds_nothing_gives_what_it_always_gives():
    step, x = compiled(), leaf(jaxgrad, 1.0, 4.0)
    plain = step(x)
    traces = len(step.traces)
    with anomaly(jaxgrad):
        watched = step(x)
    assert watched["gradient"].tolist() == plain["gradient"].tolist() == [0.0, 0.0]
    assert watched["twice"].tolist() == [2.0, 8.0]
    assert len(step.traces) == traces  # it is the same program


@pytest.mark.row("M02")
def test_a_compiled_function_whose_forward_pass_makes_nan_on_purpose():
    @jaxgrad.jit
    def step(x):
        return x.log(), x.sum()

    with anomaly(jaxgrad):
        logarithm, total = step(jaxgrad.tensor([-1.0, 1.0]))
    np.testing.assert_array_equal(logarithm.numpy(), [NAN, 0.0])
    assert total.item() == 0.0
    with anomaly(jaxgrad, check_forward=True):
        message = said(step, jaxgrad.tensor([-1.0, 1.0]))
    assert message.startswith("Function 'log' returned nan values")


@pytest.mark.row("M02")
def test_a_donated_argument_can_be_run_again():
    step = compiled(donate=0)
    with anomaly(jaxgrad):
        message = said(step, leaf(jaxgrad, 0.0, 4.0))
    assert message.startswith("Function 'SqrtBackward0' returned nan values")


@pytest.mark.row("M02")
def test_a_compiled_function_that_reads_what_has_changed_since():
    factor = ctypes.c_double(-1.5)
    place = ctypes.addressof(factor)  # in memory, which capture does not see
    step = jaxgrad.jit(lambda x: (x * ctypes.c_double.from_address(place).value).log())
    x = jaxgrad.tensor(1.0)
    step(x)
    factor.value = 1.5
    with jaxgrad.autograd.set_detect_anomaly(True), pytest.warns(UserWarning) as records:
        assert step(x).isnan()
    assert "run again, operator by operator, it did not" in str(records[0].message)


@pytest.mark.row("M02")
def test_an_error_while_a_function_is_traced_is_told_with_its_forward_call():
    @jaxgrad.jit
    def step(x):
        y = failing(jaxgrad, ValueError("no gradient")).apply(x, x)
        y.sum().backward()
        return x.grad

    mode, warns = jaxgrad.autograd.set_detect_anomaly(True), pytest.warns(UserWarning)
    with mode, warns as records, pytest.raises(ValueError, match="no gradient"):
        step(leaf(jaxgrad, 1.0, 2.0))
    assert "Error detected in FailingBackward. Traceback" in str(records[0].message)
    assert "y = failing(jaxgrad" in str(records[0].message)


@pytest.mark.row("M02")
def test_tracers_are_let_through():
    with anomaly(jaxgrad, check_forward=True):
        batch = jax.vmap(jaxgrad.ops.sqrt)(np.float32([-1.0, 4.0]))
        slope = jax.grad(lambda x: jaxgrad.ops.mul(jaxgrad.ops.sqrt(x), 0.0))(0.0)
    np.testing.assert_array_equal(batch, [NAN, 2.0])
    assert np.isnan(slope)


# ---- M03, M04: flags


@pytest.mark.row("M03")
@as_torch("""
    [False, True]
    [True, False]
    [True, False]
    [False, True]
    [True, True]
    [False, True]
    [True, False]
    [False, True]
""")
def test_set_detect_anomaly(torch):
    seen = [flags(torch)]
    mode = torch.autograd.set_detect_anomaly(True, check_nan=False)
    seen.append(flags(torch))
    with mode:
        seen.append(flags(torch))
        with torch.autograd.set_detect_anomaly(False):
            seen.append(flags(torch))
            with torch.autograd.set_detect_anomaly(True):
                seen.append(flags(torch))
            seen.append(flags(torch))
        seen.append(flags(torch))
    seen.append(flags(torch))
    return seen


@pytest.mark.row("M03")
@as_torch("warned([], [True, True])")
def test_set_detect_anomaly_does_not_warn(torch):
    def run():
        with torch.autograd.set_detect_anomaly(True):
            return flags(torch)

    return warned(run)


@pytest.mark.row("M04")
@as_torch
def test_flags_of_anomaly_mode_as_functions(torch):
    seen = [flags(torch)]
    for arguments in ((True,), (False,), (True, False), (False, False), (False, True)):
        torch.set_anomaly_enabled(*arguments)
        seen.append(flags(torch))
    torch.set_anomaly_enabled(enabled=True, check_nan=False)
    seen.append(flags(torch))
    with anomaly(torch):
        torch.set_anomaly_enabled(False)
        seen.append(flags(torch))
    seen.append(flags(torch))
    torch.set_anomaly_enabled(False)
    return seen, flags(torch), error(torch.set_anomaly_enabled, 1)


@pytest.mark.row("M04")
@as_torch("[[True, False]]")
def test_what_a_function_sets_holds_in_all_threads(torch):
    seen = []

    def look():
        seen.append(flags(torch))

    torch.set_anomaly_enabled(True, False)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    torch.set_anomaly_enabled(False)
    return seen


@pytest.mark.row("D31")
def test_names_of_anomaly_mode_at_the_top_level():
    for name in ("is_anomaly_enabled", "is_anomaly_check_nan_enabled", "set_anomaly_enabled"):
        assert getattr(jaxgrad, name) is getattr(jaxgrad.autograd.anomaly_mode, name)
    assert jaxgrad.autograd.detect_anomaly is jaxgrad.autograd.anomaly_mode.detect_anomaly


# ---- M05: nested


def chain(torch):
    """The operators and lines in the tracebacks of a failing third derivative."""
    x = leaf(torch, 0.0)
    first = x**2.5
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x, create_graph=True)
    (third * 0).backward()


@pytest.mark.row("M05")
@as_torch(r"""
    ['Error detected in', True, [False, False, True]]
    ['\n\nPrevious calculation was induced by', True, [False, True, False]]
    ['\n\nPrevious calculation was induced by', True, [True, False, False]]
""")
def test_the_chain_of_parents(torch):
    with torch.autograd.set_detect_anomaly(True):
        report = warned(error, chain, torch)
    lines = [w["says"].rstrip().split("\n    ") for w in report["warnings"]]
    sources = ("first = x**2.5", "(second,) = ", "(third,) = ")
    return [
        (
            told[0].split(" Pow")[0],
            "Backward0. Traceback of forward call that" in told[0],
            [any(line.startswith(source) for line in told) for source in sources],
        )
        for told in lines
    ]


@pytest.mark.row("M05")
@as_torch("""
    ['parent_', 'traceback_']
    True
    ['traceback_']
""")
def test_a_node_that_a_backward_pass_made_knows_its_parent(torch):
    x = leaf(torch, 2.0)
    with anomaly(torch):
        y = x.exp()
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
    node = slope.grad_fn
    return sorted(node.metadata), node.metadata["parent_"] is y.grad_fn, list(y.grad_fn.metadata)


# ---- threads, and what is left behind


@pytest.mark.row("M01")
def test_a_block_holds_in_its_thread_alone():
    entered, looked = threading.Event(), threading.Event()
    seen = []

    def other():
        entered.wait()
        x = leaf(jaxgrad, 0.0)
        (x.sqrt() * 0).backward()
        seen.append((flags(jaxgrad), x.grad.isnan().item(), x.exp().grad_fn.metadata))
        looked.set()

    thread = threading.Thread(target=other)
    thread.start()
    with anomaly(jaxgrad):
        entered.set()
        looked.wait()
        assert "returned nan values" in said(root_of_zero, jaxgrad)
    thread.join()
    assert seen == [((False, True), True, {})]


@pytest.mark.row("M01")
@pytest.mark.slow
def test_many_threads_some_of_them_in_the_mode():
    outcomes = []

    def work(number):
        watched = number % 2 == 1
        for turn in range(4):
            x = jaxgrad.zeros(turn + 3, 5).requires_grad_()  # compilation of new programs
            mode = jaxgrad.autograd.detect_anomaly() if watched else contextlib.nullcontext()
            try:
                with mode:
                    (x.sqrt() * 0).sum().backward()
                outcomes.append((watched, "passed", bool(x.grad.isnan().all())))
            except RuntimeError as error:
                outcomes.append((watched, "raised", "returned nan values" in str(error)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(outcomes) == [(False, "passed", True)] * 12 + [(True, "raised", True)] * 12
    assert_nobody_looks_on()


@pytest.mark.row("M01")
def test_a_task_that_outlives_the_block_is_out_of_it():
    async def look():
        await asyncio.sleep(0.01)
        return flags(jaxgrad)

    async def main():
        with anomaly(jaxgrad):
            task = asyncio.create_task(look())
            inside = flags(jaxgrad)
        return inside, await task

    assert asyncio.run(main()) == ((True, True), (False, True))


@pytest.mark.row("M01")
def test_a_generator_closed_elsewhere_leaves_nothing_behind():
    def generate():
        with anomaly(jaxgrad):
            yield

    generator = generate()
    next(generator)
    assert jaxgrad.is_anomaly_enabled()
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    assert not jaxgrad.is_anomaly_enabled()
    assert_nobody_looks_on()


def assert_nobody_looks_on():
    assert executor.observers == () and node_annotations.observers == () and observers.started == ()
    assert kernel.OBSERVED not in states()


@pytest.mark.row("M01")
def test_nothing_is_left_behind():
    before, x = interception.is_noted, leaf(jaxgrad, 0.0)
    assert_nobody_looks_on()
    with anomaly(jaxgrad), anomaly(jaxgrad, check_nan=False):
        assert states() == {kernel.OBSERVED}
        (x * 3.25).tanh().backward()  # compilation of a new program may be among these
    with anomaly(jaxgrad):
        said(root_of_zero, jaxgrad)
    assert_nobody_looks_on()
    assert interception.is_noted == before
    assert (x * 2).grad_fn.metadata == {}


@pytest.mark.row("M01")
def test_graphs_are_not_kept():
    x = leaf(jaxgrad, 0.0)
    with anomaly(jaxgrad):
        y = (x + 1).sqrt()
        (slope,) = jaxgrad.autograd.grad(y, x, create_graph=True)
        slope.backward()
        said((x.sqrt() * 0).backward)
    nodes = [weakref.ref(y.grad_fn), weakref.ref(slope.grad_fn)]
    x.grad = None
    del y, slope
    gc.collect()
    assert [node() for node in nodes] == [None, None]
