"""What functions that are written anew share, and what is theirs alone: side effects, derivatives,
memory.
"""

import gc
import importlib
import threading
import time
import weakref

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import func, nn
from jaxgrad.autograd import functional
from jaxgrad.core import deferred
from jaxgrad.func import shared_function
from jaxgrad.tape import interception

ROWS = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]
GLOBAL = 1.0


class Plain:
    def __init__(self, k):
        self.k = k


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        self.scale = 2.0

    def forward(self, x):
        return x * self.weight * self.scale


def tensor(*values, **options):
    return torch.tensor(values, **options)


@pytest.fixture(autouse=True)
def no_programs(monkeypatch):
    shared_function._functions.clear()
    # calls of a function that is compiled as a whole before it is
    monkeypatch.setattr(deferred, "REPEATS", 0)


def traces() -> int:
    """How many traces there were of shared functions."""
    return sum(function.count for function in shared_function._functions.all_values())


# ---- which functions find a program


FOUND_AGAIN = {
    "vmap": lambda w: func.vmap(lambda x: x * w)(torch.tensor(ROWS)),
    "vmap of a gradient": lambda w: func.vmap(func.grad(lambda x: (x**3 * w).sum()))(
        torch.tensor(ROWS)
    ),
    "vmap of a vmap": lambda w: func.vmap(func.vmap(lambda x: x * 2))(torch.tensor(ROWS)) * w,
    "in chunks": lambda w: func.vmap(lambda x: x * w, chunk_size=1)(torch.tensor(ROWS)),
    "jacfwd": lambda w: func.jacfwd(lambda x: x**3 * w)(w),
    "jacfwd of two": lambda w: func.jacfwd(lambda x, y: x * y, (0, 1))(w, w + 1)[1],
    "jacfwd with aux": lambda w: func.jacfwd(lambda x: (x**3, (x, "a")), has_aux=True)(w)[0],
    "jvp": lambda w: func.jvp(lambda x: x**3 * w, (w,), (torch.ones(3),))[1],
    "jvp that returns its argument": lambda w: func.jvp(lambda x: (x, w), (w,), (w * 2,))[0][0],
    "jacrev": lambda w: func.jacrev(lambda x, k: x**3 * w * k)(w, 2.0),
    "jacrev with aux": lambda w: func.jacrev(lambda x: (x**3, (x, "a")), has_aux=True)(w)[0],
    "jacrev of arguments by name": lambda w: func.jacrev(lambda x, y: x * y)(w, y=w),
    "hessian": lambda w: func.hessian(lambda x: (x**3 * w).sum())(w),
    "jacfwd of a jacfwd": lambda w: func.jacfwd(func.jacfwd(lambda x: x**3 * w))(w),
    "functional.vjp": lambda w: functional.vjp(lambda x: x**3 * w, w, w * 2)[1],
    "functional.jvp": lambda w: functional.jvp(lambda x: x**3 * w, w, w * 2)[1],
    "functional.vhp": lambda w: functional.vhp(lambda x, y: (x**3 * y).sum(), (w, w), (w, w))[1][1],
    "functional.hvp": lambda w: functional.hvp(lambda x: (x**3 * w).sum(), w, w * 2)[1],
    "functional.jacobian": lambda w: functional.jacobian(lambda x: x**3 * w, w),
    "functional.jacobian, strict": lambda w: functional.jacobian(lambda x: x**3, w, strict=True),
    "functional.jacobian in one pass": lambda w: functional.jacobian(
        lambda x: x**3 * w, w, vectorize=True
    ),
    "functional.jacobian, forward": lambda w: functional.jacobian(
        lambda x: x**3 * w, w, vectorize=True, strategy="forward-mode"
    ),
    "functional.hessian": lambda w: functional.hessian(lambda x: (x**3 * w).sum(), w),
    "functional.hessian, forward": lambda w: functional.hessian(
        lambda x: (x**3 * w).sum(), w, vectorize=True, outer_jacobian_strategy="forward-mode"
    ),
    "list": lambda w: func.vmap(lambda x, held=[w, {"k": 2.0}]: x * held[0] * held[1]["k"])(
        torch.tensor(ROWS)
    ),
}


EAGER = "jvp", "jacrev", "functional."


@pytest.mark.parametrize("name", FOUND_AGAIN)
def test_functions_that_are_written_anew_find_their_program(name):
    call = FOUND_AGAIN[name]
    for k in (1.0, 2.0, 3.0):
        w = tensor(k, 2.0, 3.0)
        result, before = call(w), traces()
        expected = func_with_programs_of_its_own(call, w)
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6)
        if k == 1.0:
            most = before
    assert traces() == most
    # one kernel an operator: no function is compiled as a whole
    assert (most > 0) is (deferred.mode == "deferred" or not name.startswith(EAGER))


def func_with_programs_of_its_own(call, w):
    """The result where no program is shared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_function, "mapped", unshared)
        for owner, name in ((shared_function, "called"), (interception, "repeated")):
            patch.setattr(owner, name, lambda call, args: call(*args))
        return call(w)


def unshared(function, dims, out_dims, randomness, unshared, args, kwargs):
    return unshared(*args, **kwargs)


def test_auxiliary_outputs_are_those_of_the_call():
    for k in (1.0, 2.0):
        w = tensor(k, 2.0)
        slopes, (first, text, second) = func.jacfwd(
            lambda x, k=k: (x * w, (x * k, f"is {k}", None)),  # noqa: B023
            has_aux=True,
        )(w)
        assert text == f"is {k}" and second is None
        assert first.tolist() == (w * k).tolist() and slopes.diag().tolist() == w.tolist()


@pytest.mark.slow
def test_dimensions_tell_functions_apart():
    batch = torch.arange(4.0).reshape(2, 2)
    for _ in range(2):
        for in_dim in (0, 1):
            for out_dims in (0, 1, (0,), (1,)):
                function = func.vmap(lambda x: x * 2, in_dim, out_dims)
                is_turned = in_dim != (out_dims if isinstance(out_dims, int) else out_dims[0])
                wanted = (batch.T if is_turned else batch) * 2
                assert function(batch).tolist() == wanted.tolist()


def test_an_out_dim_of_none_is_refused_after_others():
    for _ in range(2):
        for out_dims in (0, None):
            function = func.vmap(lambda x: x * 2, out_dims=out_dims)
            if out_dims is None:
                with pytest.raises(ValueError, match="out_dim"):
                    function(torch.ones(2))
            else:
                assert function(torch.ones(2)).tolist() == [2.0, 2.0]


def test_numbers_among_the_arguments_of_one_mapped_function():
    batch = tensor(1.0, 2.0)
    scaled = func.vmap(lambda x, k: x * k, (0, None))
    for k in (3.0, 4.0, 5.0, 6, True, 5.0):
        assert scaled(batch, k).tolist() == (batch * k).tolist()


# ---- what a program would lose


def test_changes_of_variables_and_lists_reach_the_functions_own():
    rows = torch.tensor(ROWS)

    def run(k):
        count, seen = 0, []

        def counted(x):
            nonlocal count
            count += 1
            seen.append(k)
            return x * count * k

        result = func.vmap(counted)(rows)
        return count, seen, result.tolist()

    for k in (2.0, 2.0, 3.0, 3.0):
        assert run(k) == (1, [k], (rows * k).tolist())


def test_changes_of_state_that_is_not_the_functions_own_happen_at_each_call():
    counter = Plain(0)

    def call():
        def counted(x):
            counter.k += 1
            return x * 2

        func.vmap(counted)(torch.ones(2))

    for number in range(1, 6):
        call()
        assert counter.k == number


def test_code_that_prints_or_reads_the_time_runs_at_each_call(capsys):
    for _ in range(3):

        def shown(x):
            print("called", end=" ")
            return x

        func.vmap(shown)(torch.ones(2))
        assert capsys.readouterr().out == "called "
    first, second = [
        func.vmap(lambda x: x * 0 + time.perf_counter())(torch.ones(1, dtype=torch.float64))
        for _ in range(2)
    ]
    assert first.item() < second.item()


def test_an_iterator_gives_each_call_another_element():
    elements = iter([1.0, 2.0, 3.0, 4.0])
    numbers = [func.vmap(lambda x: x * next(elements))(torch.ones(1)).item() for _ in range(4)]
    assert numbers == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.slow
@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers(randomness):
    def draw():
        return func.vmap(lambda x: x + torch.rand(2), randomness=randomness)(torch.zeros(3))

    torch.manual_seed(0)
    first = [draw() for _ in range(4)]
    assert traces() == 1
    torch.manual_seed(0)
    again = [draw() for _ in range(4)]
    assert [sample.tolist() for sample in first] == [sample.tolist() for sample in again]
    assert len({sample[0].sum().item() for sample in first}) == 4
    assert len({row.sum().item() for row in first[0]}) == (1 if randomness == "same" else 3)


@pytest.mark.slow
def test_ways_of_random_numbers_in_turns():
    for randomness in ("same", "different") * 2:
        drawn = func.vmap(lambda x: x + torch.rand(()), randomness=randomness)(torch.zeros(3))
        assert len(set(drawn.tolist())) == (1 if randomness == "same" else 3)


def test_random_numbers_of_numpy():
    np.random.seed(0)
    numbers = {func.vmap(lambda x: x + np.random.rand())(torch.zeros(1)).item() for _ in range(4)}
    assert len(numbers) == 4


def test_errors_of_the_function_are_raised_at_each_call():
    for k in (1.0, 2.0, 1.0):

        def failing(x):
            if k > 1:  # noqa: B023
                raise KeyError(k)  # noqa: B023
            return x

        if k > 1:
            with pytest.raises(KeyError):
                func.vmap(failing)(torch.ones(2))
        else:
            assert func.vmap(failing)(torch.ones(2)).tolist() == [1.0, 1.0]


def test_a_shared_tensor_that_is_written_to_is_refused():
    for _ in range(2):
        w = torch.zeros(())
        with pytest.raises(RuntimeError, match="share"):
            func.vmap(lambda x: w.add_(x))(torch.ones(2))  # noqa: B023
        assert w.item() == 0


# ---- derivatives of found programs


@pytest.mark.slow
@pytest.mark.parametrize("created", ["first", "later"])
def test_second_derivatives_with_respect_to_captured_tensors(created):
    rows = torch.tensor(ROWS, dtype=torch.float64)

    def slopes(w, k):
        held = {"w": w, "k": k}
        result = func.vmap(lambda x: (x * held["w"] ** 3).sum() * held["k"])(rows)
        (first,) = torch.autograd.grad(result.sum(), w, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), w, create_graph=True)
        (third,) = torch.autograd.grad(second.sum(), w)
        return first, second, third

    sums = rows.sum(0)
    for k in (2.0,) if created == "first" else (2.0, 2.0, 2.0, 3.0):
        w = torch.tensor([1.0, 2.0, k], dtype=torch.float64, requires_grad=True)
        first, second, third = slopes(w, k)
        gc.collect()
        np.testing.assert_allclose(first.tolist(), (3 * w**2 * sums * k).tolist())
        np.testing.assert_allclose(second.tolist(), (6 * w * sums * k).tolist())
        np.testing.assert_allclose(third.tolist(), (6 * sums * k).tolist())


@pytest.mark.slow
def test_second_derivatives_through_objects():
    rows = torch.tensor(ROWS, dtype=torch.float64)
    for k in (1.0, 2.0):
        model = Model().double()
        x = rows.clone().requires_grad_()
        result = func.vmap(lambda row, model=model: (model(row) ** 3).sum())(x)
        (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        del result
        model.scale = 99.0 * k  # the call has seen 2.0
        (second,) = torch.autograd.grad(first.sum(), x)
        factor = (model.weight.detach() * 2) ** 3
        np.testing.assert_allclose(first.tolist(), (3 * factor * rows**2).tolist())
        np.testing.assert_allclose(second.tolist(), (6 * factor * rows).tolist())


@pytest.mark.slow
def test_a_recorded_gradient_keeps_what_its_derivative_needs():
    rows = torch.tensor(ROWS, dtype=torch.float64)
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)

    def slope(k, is_compiled):
        held = Plain(k)
        cubed = (lambda held, x: (w * x).sum() ** 3 * held.k) if is_compiled else None
        if is_compiled:
            result = torch.jit(cubed)(held, rows)
        else:
            result = func.vmap(lambda x: (w * x).sum() ** 3 * held.k)(rows).sum()
        return torch.autograd.grad(result, w, create_graph=True)[0]

    for is_compiled in (True, False):
        for k in (2.0, 3.0):
            first = slope(k, is_compiled)
            gc.collect()
            second = torch.autograd.grad(first.sum(), w, create_graph=True)[0]
            del first
            gc.collect()
            third = torch.autograd.grad(second.sum(), w)[0]
            summands = rows.sum(0)[None] if is_compiled else rows
            expected = sum(6 * k * row * row.sum() ** 2 for row in summands)
            np.testing.assert_allclose(third.tolist(), expected.tolist())


def test_numbers_of_captured_tensors_that_code_looks_at():
    for k in (1.0, -1.0, 2.0, 2.0):
        w = tensor(k, 2.0)
        result = func.vmap(lambda x, w=w: x * 3 if w[0].item() > 0 else -x)(torch.ones(2))
        assert result.tolist() == ([3.0, 3.0] if k > 0 else [-1.0, -1.0])


def test_functions_that_are_returned_hold_the_tensors_of_their_call():
    for k in (1.0, 2.0):
        w = tensor(k, 2.0)
        _, times_w = func.jacfwd(lambda x, w=w: (x * w, lambda y: y * w), has_aux=True)(w)
        assert times_w(torch.ones(2)).tolist() == w.tolist()


def test_objects_that_are_left_behind_are_those_of_the_call():
    kept = Plain(None)
    for k in (1.0, 2.0):
        held = [k]

        def leave(x, held=held):
            kept.k = held
            return x

        func.vmap(leave)(torch.ones(2))
        assert kept.k is held


def test_numbers_that_each_call_reads():
    kept = []
    for k in (1.0, 1.0, 2.0, 1.0):
        held = [k]
        kept.append(held)
        result = func.vmap(lambda x, held=held: x * torch.tracing.number(lambda: held[0]))(
            torch.ones(1)
        )
        assert result.item() == k
        held[0] = 99.0


def cube_times_global(x):
    return (x**3).sum() * GLOBAL


@pytest.mark.slow
def test_a_replay_has_the_globals_of_the_call_and_leaves_those_of_now():
    global GLOBAL
    rows = torch.tensor(ROWS, dtype=torch.float64)
    for _ in range(2):
        GLOBAL = 2.0
        x = rows.clone().requires_grad_()
        result = func.vmap(cube_times_global)(x)
        (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        GLOBAL = 5.0
        (second,) = torch.autograd.grad(first.sum(), x)
        assert GLOBAL == 5.0
        np.testing.assert_allclose(second.tolist(), (12 * rows).tolist())


@pytest.mark.slow
def test_forward_mode_through_captured_tensors():
    rows = torch.tensor(ROWS)
    for k in (1.0, 2.0):
        w = tensor(k, 2.0, 3.0)
        value, tangent = func.jvp(
            lambda w: func.vmap(lambda x: (x * w**2).sum())(rows),
            (w,),
            (torch.ones(3),),
        )
        np.testing.assert_allclose(value.tolist(), (rows * w**2).sum(1).tolist(), rtol=1e-6)
        np.testing.assert_allclose(tangent.tolist(), (rows * 2 * w).sum(1).tolist(), rtol=1e-6)


def test_a_mapped_function_in_a_compiled_one():
    rows = torch.tensor(ROWS)
    step = torch.jit(lambda w: func.vmap(lambda x: x * w)(rows))
    for k in (1.0, 2.0):
        assert step(tensor(k, 1.0, 1.0)).tolist() == (rows * tensor(k, 1.0, 1.0)).tolist()
        result = func.vmap(lambda x: x * k)(rows)  # noqa: B023
        assert result.tolist() == (rows * k).tolist()


# ---- functions that are compiled as a whole


@pytest.mark.slow
def test_products_have_gradients_of_all_orders_with_respect_to_captured_tensors():
    point = tensor(1.0, -2.0, dtype=torch.float64)
    for k in (1.0, 2.0, 3.0):
        w = tensor(k, 2.0, dtype=torch.float64, requires_grad=True)
        value, slope = func.jvp(lambda x, w=w: x**3 * w**3, (point,), (torch.ones(2) * k,))
        assert value.requires_grad and slope.requires_grad
        (first,) = torch.autograd.grad((value + slope).sum(), w, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), w)
        factor = point**3 + 3 * k * point**2
        np.testing.assert_allclose(first.tolist(), (factor * 3 * w**2).tolist())
        np.testing.assert_allclose(second.tolist(), (factor * 6 * w).tolist())


@pytest.mark.slow
def test_jacobians_with_a_history():
    point = tensor(1.0, -2.0, dtype=torch.float64)
    for transform in (func.jacrev, func.jacfwd, func.hessian):
        for k in (1.0, 2.0, 3.0):
            w = tensor(k, 2.0, dtype=torch.float64, requires_grad=True)
            x = point.clone().requires_grad_(k > 1)
            end = torch.sum if transform is func.hessian else torch.clone
            derivative = transform(lambda x, w=w, end=end: end(x**3 * w))(x)
            expected = 6 * x if transform is func.hessian else 3 * x**2
            np.testing.assert_allclose(derivative.diag().tolist(), (expected * w).tolist())
            (slope,) = torch.autograd.grad(derivative.sum(), w)
            np.testing.assert_allclose(slope.tolist(), expected.tolist())


def test_branches_on_numbers_of_the_argument():
    for k in (1.0, -1.0, 2.0, -2.0):
        derivative = func.jacrev(lambda x: x * 2 if x.sum() > 0 else x * 3)(tensor(k))
        assert derivative.item() == (2.0 if k > 0 else 3.0)


@pytest.mark.slow
@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
def test_random_numbers_are_those_of_eager_calls(transform):
    def draw(call):
        torch.manual_seed(3)
        return [call().tolist() for _ in range(3)]

    def call():
        options = {"randomness": "same"} if transform is func.jacfwd else {}
        return transform(lambda x: x * torch.rand(2), **options)(torch.ones(2))

    draws = draw(call)
    assert draws == draw(lambda: func_with_programs_of_its_own(lambda w: call(), None))
    assert draws[0] != draws[1]


def test_hooks_of_saved_tensors_run_at_each_call():
    seen = []

    def pack(value):
        seen.append(value.shape)
        return value

    def call():
        return func.jacrev(lambda x: x.sin() * x)(torch.ones(2))

    call()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
        call()
        count = len(seen)
        call()
    assert count > 0 and len(seen) == 2 * count


def test_anomalies_are_found():
    def call():
        return func.jvp(lambda x: x.log() * 0, (tensor(-1.0),), (torch.ones(1),))[0]

    for _ in range(2):
        assert np.isnan(call().item())
    with (
        torch.autograd.set_detect_anomaly(True, check_forward=True),
        pytest.raises(RuntimeError, match="nan"),
    ):
        call()


def test_arguments_that_are_written_to():
    for k in (1.0, 2.0):
        x = tensor(k, 2.0)
        jacobian = func.jacfwd(lambda x: (x * 1).mul_(3))(x)
        assert jacobian.tolist() == [[3.0, 0.0], [0.0, 3.0]] and x.tolist() == [k, 2.0]
        held = torch.zeros(2)
        func.jacrev(lambda x, held=held: held.add_(x.detach()) * x)(x)
        assert held.tolist() == x.tolist()


def test_results_that_share_memory_with_an_argument():
    for k in (1.0, 2.0):
        x = tensor(k, 2.0)
        value, _ = func.jvp(lambda x: x[:1], (x,), (x,))
        value.add_(5)
        assert x.tolist() == [k + 5, 2.0]


def test_leaves_that_a_function_sets_requires_grad_of():
    for _ in range(3):
        w = torch.ones(2)
        func.jacrev(lambda x, w=w: x * w.requires_grad_())(torch.ones(2))
        assert w.requires_grad


@pytest.mark.slow
def test_products_of_functional_are_detached_and_may_be_recorded():
    point = tensor(1.0, -2.0, dtype=torch.float64)
    for k in (1.0, 2.0, 3.0):
        w = tensor(k, 2.0, dtype=torch.float64, requires_grad=True)
        x = point.clone().requires_grad_(k > 1)
        for create_graph in (False, True):
            value, slope = functional.vhp(lambda x, w=w: (x**3 * w).sum(), x, x, create_graph)
            np.testing.assert_allclose(slope.tolist(), (6 * point**2 * w).tolist())
            assert value.requires_grad is slope.requires_grad is create_graph
        (gradient,) = torch.autograd.grad(slope.sum(), w)
        np.testing.assert_allclose(gradient.tolist(), (6 * point**2).tolist())


def test_strict_products_of_functional_refuse_at_each_call():
    for _ in range(3):
        with pytest.raises(RuntimeError, match="is independent of input 1"):
            functional.vjp(lambda x, y: x * 2, (tensor(1.0), tensor(2.0)), strict=True)
        with pytest.raises(RuntimeError, match="v has invalid size"):
            functional.jvp(lambda x: x * 2, tensor(1.0, 2.0), tensor(1.0))


def test_rows_of_a_large_jacobian_are_computed_one_by_one():
    for _ in range(3):
        jacobian = functional.jacobian(lambda x: x * x, torch.arange(12.0))
        assert jacobian.diag().tolist() == (2 * torch.arange(12.0)).tolist()
    assert all(function.is_refused for function in shared_function._functions.all_values())


# ---- what programs keep


@pytest.mark.slow
def test_no_tensor_and_no_function_is_kept():
    def run():
        w, held = tensor(1.0, 2.0, 3.0), Plain(2.0)
        copy = w.clone()

        def scaled(x, v=copy):
            return x * w * v * held.k + scaled.k

        scaled.k = w.sum()
        func.vmap(scaled)(torch.tensor(ROWS))
        func.hessian(lambda x: (x**3 * w).sum())(w)
        referents = [w, held, scaled, scaled.__defaults__[0], scaled.k]
        return [weakref.ref(referent) for referent in referents]

    references = [*run(), *run()]
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)


@pytest.mark.slow
def test_many_functions_made_of_text_are_bounded(nothing_compiled):
    limit = shared_function._functions.clock
    most = 0
    for number in range(300):
        namespace = {}
        exec(f"def f(x):\n    return x * {number}.5", globals(), namespace)
        assert func.vmap(namespace["f"])(torch.ones(1)).item() == number + 0.5
        most = max(most, len(shared_function._functions.all_values()))
    assert limit.limit == "programs" and most <= 128


def test_functions_in_threads():
    rows, failed = torch.tensor(ROWS), []

    def run(k):
        for number in range(20):
            w = tensor(k, number, 1.0)
            result = func.vmap(lambda x, w=w: x * w + k)(rows)
            if result.tolist() != (rows * w + k).tolist():
                failed.append((k, number))

    threads = [threading.Thread(target=run, args=(float(k % 2),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def times_global(x):
    return x * GLOBAL


@pytest.mark.slow
def test_a_function_that_finds_nothing_stops_looking():
    global GLOBAL
    for number in range(30):
        GLOBAL = float(number)
        assert func.vmap(times_global)(torch.ones(1)).item() == number
    (shared,) = shared_function._functions.all_values()
    assert shared.is_refused and shared.count < 15


def test_functions_that_an_installed_package_makes_share_programs(tmp_path, monkeypatch):
    # each call of the package makes its function anew
    folder = tmp_path / "site-packages"
    folder.mkdir()
    lines = (
        "def factor(number):\n    def scaled(x):\n        return x * number\n    return scaled\n"
    )
    (folder / "makes_factors.py").write_text(lines)
    monkeypatch.syspath_prepend(folder)
    factor = importlib.import_module("makes_factors").factor
    x = torch.ones(2, 3)
    begun = traces()
    for number in (2.0, 3.0, 2.0):
        assert torch.func.vmap(factor(number))(x).tolist() == (x * number).tolist()
    assert traces() == begun + 2
