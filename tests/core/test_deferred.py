"""Deferred execution: calls are noted and run later. The oracle is the mode "immediate", which runs
one kernel for each call by the same executor, or numbers that a test states.
"""

import gc
import math
import os
import random
import subprocess
import sys
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers import hangs
from helpers.modes import eager
from jax.extend.backend import get_backend

import jaxgrad as torch
from jaxgrad.core import deferred, executor
from jaxgrad.core.pending import Pending


@pytest.fixture(autouse=True)
def nothing_pending():
    deferred.run_all()
    with eager("deferred"):
        yield
    deferred.run_all()


@pytest.fixture
def compiled(monkeypatch):
    """The programs of stretches that are made in a test."""
    deferred._compiled.clear()
    deferred._times.clear()
    programs, make = [], deferred.Whole

    def noting(*key):
        programs.append(make(*key))
        return programs[-1]

    monkeypatch.setattr(deferred, "Whole", noting)
    return programs


def is_pending(tensor) -> bool:
    value = tensor._raw
    return type(value) is Pending and value.array is None and value.stretch.waits


def bits(tensor) -> bytes:
    return numpy.asarray(tensor.detach()._array).tobytes()


def warm(*operators):
    """Run operators once, so that their kernels are known, and forget their structure."""
    for operator in operators:
        operator()
    deferred.run_all()
    deferred._times.clear()


# ---- when calls run


def test_calls_are_noted_until_a_value_is_needed():
    x = torch.tensor([1.0, 2.0])
    warm(lambda: x.sin() * x)
    y = x.sin() * x
    assert is_pending(y) and y.shape == (2,) and y.dtype is torch.float32
    numpy.testing.assert_allclose(y.numpy(), numpy.sin([1, 2]) * [1, 2], rtol=1e-6)
    assert not is_pending(y)


@pytest.mark.parametrize(
    "need",
    [
        lambda y: y.sum().item(),
        lambda y: repr(y),
        lambda y: bool((y > 0).all()),
        lambda y: y.tolist(),
        lambda y: jnp.sin(y._array),
        lambda y: torch.synchronize(),
        lambda y: torch.cpu.synchronize(),
        lambda y: jax.tree.leaves(y),
        lambda y: numpy.asarray(y),
    ],
)
def test_what_needs_a_value_runs_what_is_pending(need):
    x = torch.tensor([1.0, 2.0])
    warm(lambda: x.exp() + x)
    y = x.exp() + x
    assert is_pending(y)
    need(y)
    assert not is_pending(y)


def test_the_end_of_a_backward_pass_runs_what_is_pending():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    warm(lambda: (x * x).sum().backward())
    x.grad = None
    (x * x).sum().backward()
    assert not is_pending(x.grad) and x.grad.tolist() == [2, 4]


def test_a_long_stretch_runs_by_itself():
    x = torch.tensor(1.0)
    warm(lambda: x + 1)
    y = x
    for _ in range(3 * deferred.LONGEST):
        y = y + 1
        assert len(deferred.local.stretch.entries) <= deferred.LONGEST
    assert y.item() == 1 + 3 * deferred.LONGEST


# ---- stretches that repeat


def chain(x, y):
    for _ in range(5):
        x = torch.tanh(torch.sin(x * y) + y)
    return x


@pytest.fixture
def by_xla():
    """Kernels alone: the host gives other bits."""
    with eager("deferred,compiled"):
        yield


@pytest.mark.slow
def test_a_structure_is_compiled_once_after_it_has_repeated(by_xla, compiled, monkeypatch):
    monkeypatch.setattr(deferred, "REPEATS", 3)
    x, y = torch.rand(8, 8, requires_grad=True), torch.rand(8, 8)
    warm(lambda: chain(x, y).sum().backward())

    def grad():
        x.grad = None
        chain(x, y).sum().backward()
        return bits(x.grad)

    gradients = {grad() for _ in range(3)}
    assert not compiled
    gradients |= {grad()}
    with monkeypatch.context() as patch:
        patch.setattr(deferred.Stretch, "run_one_by_one", None)
        gradients |= {grad() for _ in range(9)}
    assert len(compiled) == 1
    with eager("immediate,compiled"):
        assert gradients == {grad()}


@pytest.mark.slow
def test_a_structure_is_compiled_in_a_thread_and_used_after_a_fixed_count(
    compiled, compilations, monkeypatch
):
    monkeypatch.setattr(deferred, "repeats_of", lambda _: (3, 3))
    whole_runs, run_whole = [], deferred.Stretch.run_whole
    monkeypatch.setattr(
        deferred.Stretch,
        "run_whole",
        lambda *args: run_whole(*args) and not whole_runs.append(count),
    )
    x, y = torch.rand(8, 8), torch.rand(8, 8)
    warm(lambda: chain(x, y).sum())
    expected = chain(x, y).sum().item()
    deferred._times.clear()
    compilations.clear()
    for count in range(1, 12):
        assert chain(x, y).sum().item() == pytest.approx(expected, rel=1e-5)
        assert len(compiled) == (count > 3)
    assert whole_runs == [*range(7, 12)]
    assert len(compilations) == 1 and compilations[0] != threading.get_ident()


@pytest.mark.slow
def test_programs_keep_what_somebody_holds_and_nothing_else(compiled, monkeypatch):
    monkeypatch.setattr(deferred, "REPEATS", 0)
    x = torch.rand(4, 4)
    warm(lambda: x.exp().sin().cos().neg())
    compiled.clear()
    kept = x.exp()
    last = kept.sin().cos().neg()
    expected = numpy.exp(x.numpy())
    last.numpy()
    (whole,) = compiled
    assert whole.needed == [True, False, False, True]
    numpy.testing.assert_allclose(kept.numpy(), expected, rtol=1e-6)
    numpy.testing.assert_allclose(last.numpy(), -numpy.cos(numpy.sin(expected)), rtol=1e-6)


def test_several_results_of_one_call_are_kept_each_by_itself(compiled, monkeypatch):
    monkeypatch.setattr(deferred, "REPEATS", 0)
    x = torch.tensor([[3.0, 1.0, 2.0]])
    warm(lambda: x.neg().sort(), lambda: x.neg().unbind(1))
    values = x.neg().sort().values
    *_, last = x.neg().unbind(1)
    assert values.tolist() == [[-3, -2, -1]] and last.tolist() == [-2]
    assert compiled


def test_numbers_are_inputs_of_a_program(compiled, monkeypatch):
    monkeypatch.setattr(deferred, "REPEATS", 1)
    x = torch.tensor([1.0, 2.0])
    warm(lambda: (x * 1.5 + 0.25).sin())
    for i in range(6):
        factor, term = 10.0 + i, 0.1 * i + 0.05
        expected = numpy.sin(numpy.float32([1, 2]) * numpy.float32(factor) + numpy.float32(term))
        numpy.testing.assert_allclose((x * factor + term).sin().numpy(), expected, rtol=2e-6)
    assert len(compiled) == 1


@pytest.mark.slow
@pytest.mark.parametrize("wide", [torch.float64, torch.int64])
def test_programs_of_several_widths(by_xla, compiled, monkeypatch, wide):
    monkeypatch.setattr(deferred, "REPEATS", 0)
    x, n = torch.tensor([0.1, 0.7]), torch.tensor([1, 2], dtype=wide)

    def compute():
        y = x * 0.3 + 1.1
        m = n * 3 + n
        return y.half().float() / 0.7, m, (m.to(torch.float32) * y).sum()

    warm(compute)
    results = [(tensor.dtype, bits(tensor)) for tensor in compute()]
    assert compiled
    with eager("immediate,compiled"):
        assert results == [(tensor.dtype, bits(tensor)) for tensor in compute()]


# ---- random programs: the same bits in both modes, by each executor


def random_program(seed):
    """Operators, views, writes in place, hooks and passes, drawn by a seed. Returns the bits of all
    that can be seen afterwards.
    """
    draw = random.Random(seed)
    torch.manual_seed(seed)
    leaves = [torch.rand(4, 4, requires_grad=True) for _ in range(3)]
    buffer, seen = torch.zeros(4, 4), []
    tensors = [*leaves, torch.rand(4, 4)]
    unary = [torch.sin, torch.tanh, torch.exp, torch.sigmoid, torch.square, lambda t: t.t()]
    unary += [
        lambda t: t * 0.37,
        lambda t: t / 1.7 + 0.1,
        lambda t: t.softmax(1),
        torch.relu,
    ]
    binary = [torch.add, torch.mul, torch.sub, torch.matmul, torch.maximum]
    for _ in range(draw.randrange(10, 60)):
        kind = draw.random()
        one, other = draw.choice(tensors), draw.choice(tensors)
        if kind < 0.4:
            tensor = draw.choice(unary)(one)
        elif kind < 0.75:
            tensor = torch.tanh(draw.choice(binary)(one, other))
        elif kind < 0.85:
            tensor = one.clone()
            tensor[draw.randrange(4)].mul_(0.5)
            tensor[:, draw.randrange(4)] += other[0]
        elif kind < 0.9:
            with torch.no_grad():
                buffer[draw.randrange(4)] = one.detach()[0]
            continue
        elif kind < 0.95 and one.requires_grad:
            one.register_hook(lambda g: seen.append(bits(g)) or g * 0.9)
            continue
        else:
            tensor = torch.where(one > 0.5, one, other)
        tensors = [*tensors[-7:], tensor]
        if draw.random() < 0.05:
            seen.append(bits(tensor))
    loss = sum((t.sum() for t in (*leaves, *tensors)), torch.zeros(()))
    if draw.random() < 0.3:
        grads = torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        loss = sum((g.square().sum() for g in grads if g is not None), loss)
    loss.backward()
    grads = [None if leaf.grad is None else bits(leaf.grad) for leaf in leaves]
    return [*seen, *map(bits, tensors), bits(buffer), *grads, bits(loss)]


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40, 4))]


@pytest.mark.parametrize("first", SEEDS)
def test_random_programs_give_the_same_bits_in_both_modes(monkeypatch, compiled, by_xla, first):
    for seed in range(first, first + 4):
        with eager("immediate,compiled"):
            expected = random_program(seed)
        assert random_program(seed) == expected  # one by one
        monkeypatch.setattr(deferred, "REPEATS", 0)
        assert random_program(seed) == expected  # compiled whole
        monkeypatch.undo()


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
def test_random_programs_give_the_same_bits_on_the_host(seed):
    with eager("immediate,host"):
        expected = random_program(seed)
    with eager("deferred,host"):
        assert random_program(seed) == expected


# ---- errors and interrupts


def test_errors_of_shapes_come_at_the_line_of_the_call():
    x = torch.ones(2, 3)
    y = x.sin()
    with pytest.raises(RuntimeError, match="must match"):
        y + torch.ones(4)
    assert y.sum().item() == pytest.approx(6 * numpy.sin(1), rel=1e-6)


def test_wrong_numbers_are_refused_at_the_line_of_the_call():
    x = torch.ones(3)
    index = torch.tensor([0, 1]) + 1
    warm(lambda: x.sin().index_select(0, index * 1))
    y, wrong = x.sin(), index * 2
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
        y.index_select(0, wrong)
    assert is_pending(y)  # only the index was computed
    assert y.tolist() == pytest.approx([numpy.sin(1)] * 3, rel=1e-6)


def failing(monkeypatch, program, error):
    """Let the kernel of a program raise."""

    def fail(*_):
        raise error

    monkeypatch.setattr(program.kernel, "host", None)
    monkeypatch.setattr(program.kernel, "unchecked", fail)


def test_an_error_of_a_kernel_reaches_those_who_read_its_result(monkeypatch):
    x = torch.tensor([1.0, 2.0])
    warm(lambda: x.sinh() + x.cosh())
    before = x.cosh()
    failed = x.sinh()
    after, based = x.cosh() + x, failed + x
    failing(monkeypatch, torch.sinh.operator.plans[x._aval,].call, MemoryError("no room"))
    assert after.tolist() == (numpy.asarray(before) + numpy.asarray(x)).tolist()
    for tensor in (failed, based):
        with pytest.raises(MemoryError, match="no room"):
            tensor.numpy()
    assert (x + x).tolist() == [2, 4]


def test_an_interrupt_leaves_all_results_to_be_computed_later(monkeypatch):
    x = torch.tensor([1.0, 2.0])
    warm(lambda: x.sinh() + x.cosh())
    first, second = x.cosh(), x.sinh()
    third = second + first
    program = torch.sinh.operator.plans[x._aval,].call
    failing(monkeypatch, program, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        third.numpy()
    monkeypatch.undo()
    numpy.testing.assert_allclose(third.numpy(), numpy.exp([1, 2]), rtol=1e-6)
    numpy.testing.assert_allclose(second.numpy(), numpy.sinh([1, 2]), rtol=1e-6)


def test_an_interrupt_of_a_whole_program(monkeypatch, compiled):
    monkeypatch.setattr(deferred, "REPEATS", 0)
    x = torch.tensor([1.0, 2.0])
    warm(lambda: x.sinh() + x.cosh())
    (x.sinh() + x.cosh()).numpy()
    whole = compiled[-1]
    kernel = whole.kernel

    def interrupted(*arrays):
        whole.kernel = kernel
        raise KeyboardInterrupt

    whole.kernel = interrupted
    again = x.sinh() + x.cosh()
    with pytest.raises(KeyboardInterrupt):
        again.numpy()
    numpy.testing.assert_allclose(again.numpy(), numpy.exp([1, 2]), rtol=1e-6)


def test_too_little_memory_for_a_whole_program_runs_it_call_by_call(monkeypatch, compiled):
    monkeypatch.setattr(deferred, "REPEATS", 0)
    x = torch.tensor([1.0, 2.0])
    warm(lambda: x.sinh() + x.cosh())
    (x.sinh() + x.cosh()).numpy()

    def fails(*arrays):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED")

    compiled[-1].kernel = fails
    numpy.testing.assert_allclose((x.sinh() + x.cosh()).numpy(), numpy.exp([1, 2]), rtol=1e-6)


# ---- memory


def test_a_residual_outlives_the_calls_that_it_was_read_by():
    x = torch.ones(3, requires_grad=True)
    for _ in range(8):  # the structure comes up again, and so runs as a routine
        y = (x + 1).sin()  # saves its only operand, which nothing else holds
        assert y.sum().item() == pytest.approx(3 * math.sin(2), rel=1e-6)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert gradient.tolist() == pytest.approx([math.cos(2)] * 3, rel=1e-6)


@pytest.mark.slow
def test_what_nobody_holds_is_freed():
    x = torch.ones(1000)
    warm(lambda: (x * 2).sin().cos())
    gc.collect()
    before = len(jax.live_arrays())
    for _ in range(5):
        y = (x * 2).sin().cos()
        y.sum().item()
    del y
    gc.collect()
    assert len(jax.live_arrays()) <= before + 1


def test_large_results_do_not_wait_for_each_other(monkeypatch):
    monkeypatch.setattr(deferred, "MOST_BYTES", 2 * deferred.LARGE)
    x = torch.ones(deferred.LARGE // 4)
    warm(lambda: x * 2)
    first, second, third = x * 2, x * 2, x * 2
    assert not is_pending(first) and not is_pending(second) and is_pending(third)
    assert third.sum().item() == 2 * x.numel()


@pytest.mark.slow
def test_random_structures_leave_no_memory_behind(by_xla, compiled, monkeypatch):
    monkeypatch.setattr(deferred, "NEW_IN_A_ROW", 64)
    monkeypatch.setattr(deferred, "REMEMBERED", 512)
    draw, x = random.Random(0), torch.rand(4, 4)
    operators = [torch.sin, torch.cos, torch.tanh, torch.exp, torch.neg, torch.sigmoid]

    def work(count):
        y = x
        for _ in range(count):
            y = torch.tanh(draw.choice(operators)(y) + draw.choice((x, y)))
            if draw.random() < 0.02:
                y = torch.rand(()) + torch.zeros(4, 4) + y.sum().item() * 1e-3
        return y.sum().item()

    work(2000)
    gc.collect()
    before, programs = (
        len(jax.live_arrays()),
        len(jax.extend.backend.get_backend().live_executables()),
    )
    work(20_000)
    gc.collect()
    assert len(jax.live_arrays()) <= before + 2
    assert len(deferred._times) <= 512
    assert len(get_backend().live_executables()) <= programs + len(compiled)
    assert len(compiled) < 5
    deferred.local.stretch.pause = 0


def test_new_structures_pause_the_noting_and_old_ones_end_the_pause(monkeypatch):
    monkeypatch.setattr(deferred, "NEW_IN_A_ROW", 4)
    monkeypatch.setattr(deferred, "PAUSE", 10)
    stretch, x = deferred.local.stretch, torch.tensor([1.0])
    monkeypatch.setattr(stretch, "next_pause", 10)
    warm(lambda: x.sin().cos())
    for length in range(2, 7):
        y = x
        for _ in range(length):
            y = y.sin().cos()
        expected = 1.0
        for _ in range(length):
            expected = numpy.cos(numpy.sin(expected))
        assert y.item() == pytest.approx(expected, rel=1e-5)
        if stretch.pause:
            break
    assert stretch.pause
    monkeypatch.setattr(stretch, "run_together", None)  # nobody asks for it
    while stretch.pause:
        assert x.sin().cos().item() == pytest.approx(numpy.cos(numpy.sin(1)), rel=1e-6)


def test_a_compiled_function_does_not_delete_what_is_still_to_be_read():
    w = torch.tensor([1.0, 2.0])

    @torch.jit
    def step():
        w.mul_(2)

    step()
    warm(lambda: w + 1)
    for _ in range(3):
        before = w.tolist()
        later = w + 1  # still to run
        step()
        assert later.tolist() == [number + 1 for number in before]
        assert w.tolist() == [number * 2 for number in before]


# ---- threads


def test_results_of_other_threads():
    x = torch.tensor([1.0, 2.0])
    warm(lambda: x.sin() * x)
    y, results = x.sin(), []

    def other():
        mine = y * x
        results.append(mine)
        results.append(mine.tolist())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert results[0].tolist() == results[1] == (x.sin() * x).tolist()


def test_two_threads_that_need_results_of_each_other():
    x = torch.tensor([1.0])
    warm(lambda: x + x)
    turn, values = threading.Barrier(2, timeout=hangs.LIMIT), {}

    def work(name, other):
        values[name] = x
        for _ in range(20):
            turn.wait()
            mine = values[other] + x
            turn.wait()
            values[name] = mine
        turn.wait()
        values[name, "read"] = values[name].item()

    threads = [threading.Thread(target=work, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(hangs.LIMIT)
    assert values["a", "read"] == values["b", "read"] == 21


@pytest.mark.slow
def test_many_threads_at_once(by_xla, monkeypatch):
    monkeypatch.setattr(deferred, "REPEATS", 2)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    shared, errors = torch.rand(4, 4, requires_grad=True), []
    with eager("immediate,compiled"):
        expected = bits(torch.autograd.grad(chain(shared, shared).sum(), shared)[0])

    def work():
        try:
            for _ in range(20):
                (gradient,) = torch.autograd.grad(chain(shared, shared).sum(), shared)
                assert bits(gradient) == expected
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(hangs.LIMIT)
    sys.setswitchinterval(before)
    assert not errors


# ---- traces and settings of JAX


def test_a_trace_of_jax_gets_what_was_noted_before_it_as_numbers():
    w = torch.tensor([1.0, 2.0])
    warm(lambda: w.sin() * w)
    before = w.sin() * w
    assert is_pending(before)

    @jax.jit
    def function(a):
        inside = before * w
        return torch.to_jax(lambda a: a * before * inside)(a)

    value = numpy.sin([1, 2]) * [1, 2]
    numpy.testing.assert_allclose(function(jnp.float32(3)), 3 * value**2 * [1, 2], rtol=1e-6)
    numpy.testing.assert_allclose(before.numpy(), value, rtol=1e-6)


def test_a_trace_of_jax_may_not_write_to_a_tensor_from_outside():
    w, x = torch.tensor([1.0, 2.0]), torch.tensor([1.0], requires_grad=True)
    warm(lambda: w.clone().add_(1), lambda: (x * x).sum().backward())
    x.grad = None

    def write(a):
        w.add_(1)
        return a

    def backward(a):
        (x * x).sum().backward()
        return a

    for function in (write, backward):
        with warnings.catch_warnings(), pytest.raises(RuntimeError, match=r"outside|traced"):
            warnings.simplefilter("ignore")  # that the trace freezes x
            jax.jit(function)(1.0)
    assert w.tolist() == [1, 2] and x.grad is None


def test_settings_at_the_time_of_the_call_hold():
    x = torch.rand(4, 4)
    warm(lambda: x @ x)
    with jax.default_matmul_precision("highest"):
        y = x @ x
        assert deferred.local.stretch.context[0] == "highest"
    z = x @ x  # runs what was noted under the other setting
    assert not is_pending(y) and is_pending(z)
    assert torch.allclose(y, z)


def test_debug_nans_shows_the_operator():
    x = torch.tensor([-1.0])
    warm(lambda: x.sqrt())
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        x.sqrt()


def test_observers_see_operators_as_before():
    x = torch.tensor([1.0])
    warm(lambda: x.sin().cos())
    seen = []

    def observer(program, kernel, *arrays):
        assert not any(type(array) is Pending for array in arrays)
        seen.append(program.name)
        return kernel(*arrays)

    y = x.sin()
    executor.observe(observer)
    try:
        assert seen == [] and not is_pending(y)  # it was called before
        y.cos()
        assert seen == ["Cos"]
    finally:
        executor.unobserve(observer)
    assert is_pending(y.cos())


# ---- the modes


def test_immediate_mode_notes_nothing():
    x = torch.tensor([1.0])
    y = x.sin()
    with eager("immediate"):
        assert not is_pending(y) and not is_pending(y.cos()) and y.cos().cos().shape == (1,)
    warm(lambda: x.sin())
    assert is_pending(x.sin())


def test_wrong_modes():
    with pytest.raises(ValueError, match="set_eager: 'lazy' is not one of"):
        torch.set_eager("lazy")


@pytest.mark.slow
@pytest.mark.parametrize("mode, says", [("immediate", "False"), ("deferred", "True")])
def test_the_environment_chooses(mode, says):
    code = (
        "import jaxgrad as t; x = t.ones(2); x.sin(); y = x.sin();"
        "print(type(y._raw).__name__ == 'Pending')"
    )
    environment = os.environ | {"JAXGRAD_EAGER": mode}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert run.stdout.strip() == says, run.stderr


@pytest.mark.slow
def test_a_wrong_name_in_the_environment():
    environment = os.environ | {"JAXGRAD_EAGER": "lazy"}
    run = subprocess.run(
        [sys.executable, "-c", "import jaxgrad"], env=environment, capture_output=True, text=True
    )
    assert run.returncode and "JAXGRAD_EAGER: 'lazy' is not one of" in run.stderr


@pytest.mark.slow
def test_a_forked_process_raises_for_what_is_pending():
    code = """
import os, jaxgrad as t
x = t.ones(2); x.sin(); y = x.sin()
pid = os.fork()
if not pid:
    try:
        y.numpy()
    except RuntimeError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), y.sum().item() > 0)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.split() == ["7", "True"], run.stderr
