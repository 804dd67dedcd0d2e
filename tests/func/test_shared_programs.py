"""Functions that are written anew at each call share programs, and never a stale one.

Each probe yields functions of one example, and changes something in between. Each of them is mapped
and compared with the function itself, called uncompiled for each example.
"""

import dataclasses
import enum
import functools
import gc
import sys
import threading
import time
import types
import weakref

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import func, nn
from jaxgrad.func import shared_function

ROWS = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]

PROBES = {}


def probe(function):
    PROBES[function.__name__] = function
    return function


@pytest.fixture(autouse=True)
def no_programs():
    shared_function._functions.clear()


def traces() -> int:
    """How many traces there were of shared functions."""
    return sum(each.count for each in shared_function._functions.everything())


def gradients_of(output, tensors):
    if not output.requires_grad:
        return [None] * len(tensors)
    return torch.autograd.grad(output.sum(), tensors, allow_unused=True)


def compare(function, tensors=()):
    """Compare the mapped function with the function of each example, and gradients."""
    rows = torch.tensor(ROWS)
    wanted = [tensor for tensor in tensors if tensor.requires_grad and tensor.is_leaf]
    expected = torch.stack([function(row) for row in rows])
    slopes = gradients_of(expected, wanted)
    found = func.vmap(function)(rows)
    assert found.dtype == expected.dtype and found.requires_grad == expected.requires_grad
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-6)
    for one, other in zip(gradients_of(found, wanted), slopes, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)


def tensor(*values, **options):
    return torch.tensor(values, **options)


# ---- numbers and other values in the closure


def times(k):
    return lambda x: x * k


@probe
def numbers_of_several_kinds():
    for k in (1, 2, 2.0, True, False, 1.0, 1 + 2j, 3, 1):
        yield times(k)
        yield times(k)


@probe
def signs_of_zero():
    def divided(k):
        return lambda x: 1 / (x * 0 + k)

    for k in (0.0, -0.0, 0.0, float("nan"), float("nan"), float("inf")):
        yield divided(k)


@probe
def numbers_that_change_at_each_call():
    for k in range(20):
        yield times(k)


@probe
def a_variable_that_is_bound_anew():
    k = 1.0
    for k in (1.0, 2.0, 3.0, 2.0):
        yield lambda x: x + k  # noqa: B023


@probe
def strings_and_flags():
    for way in ("sin", "cos", None, "sin", b"sin"):
        yield lambda x, way=way: getattr(x, way)() if isinstance(way, str) else x


@probe
def defaults():
    for k in (1.0, 2.0, 1.0):

        def scaled(x, k=k, *, shift=k + 1):
            return x * k + shift

        yield scaled
        scaled.__defaults__ = (7.0,)
        yield scaled
        scaled.__kwdefaults__["shift"] = 9.0
        yield scaled


@probe
def attributes_of_functions():
    for k in (1.0, 2.0, 1.0):

        def scaled(x):
            return x * scaled.k

        scaled.k = k
        yield scaled
        scaled.k = k + 1
        yield scaled


@probe
def partial_arguments():
    w = tensor(1.0, 2.0, 3.0, requires_grad=True)
    for k in (2.0, 3.0):
        yield functools.partial(lambda k, x, w: x * k + w, k, w=w), w
        yield functools.partial(lambda k, x, w: x * k + w, k, w=tensor(5.0, 5.0, k)), w


@probe
def two_lambdas_of_equal_code():
    a, b = (lambda x: x.sin(), lambda x: x.cos())
    c, d = (lambda x: x + 1, lambda x: x + 2)
    yield from (a, b, c, d, a, b, c, d)


@probe
def constants_of_the_code():
    yield from (lambda x: x + 1, lambda x: x + 1.0, lambda x: x + True, lambda x: x + 2)


@probe
def equal_code_in_other_modules():
    made = []
    for number, k in enumerate((2.0, 3.0)):
        module = types.ModuleType(f"probe_{number}")
        sys.modules[module.__name__] = module
        exec(f"k = {k}\ndef make():\n    return lambda x: x * k", vars(module))
        made.append(module)
    for module in (*made, *made):
        yield module.make()
    made[0].k = 11.0
    yield made[0].make()
    for module in made:
        del sys.modules[module.__name__]


@probe
def modules_that_are_no_modules():
    for k in (2.0, 3.0, 2.0):
        scope = {"k": k}
        exec("f = lambda x: x * k", scope)
        yield scope["f"]


GLOBAL = 2.0
GLOBAL_TENSOR = None
GLOBAL_LIST = []


def with_globals():
    return lambda x: x * GLOBAL + GLOBAL_TENSOR


@probe
def globals_that_change():
    global GLOBAL, GLOBAL_TENSOR
    for k in (2.0, 3.0, 2.0):
        GLOBAL = k
        GLOBAL_TENSOR = tensor(k, 1.0, 2.0, requires_grad=k > 2)
        yield with_globals(), GLOBAL_TENSOR
        GLOBAL_TENSOR = GLOBAL_TENSOR.detach() + 1
        yield with_globals(), GLOBAL_TENSOR


@probe
def nested_lambdas():
    for k in (1.0, 2.0, 1.0):

        def outer(k):
            def inner(x):
                return (lambda y: y * k)(x) + k

            return inner

        yield (lambda f: lambda x: f(x) * 2)(outer(k))
        yield (lambda f: lambda x: f(x) * k)(outer(3.0))  # noqa: B023


@probe
def functions_that_share_a_variable():
    k = 1.0

    def change(value):
        nonlocal k
        k = value

    def read():
        return k

    for value in (1.0, 2.0, 1.0):
        change(value)
        yield lambda x: x * read() + k


@probe
def recursion():
    for depth in (1, 2, 3, 1):

        def power(x, n=depth):
            return x if n == 0 else x * power(x, n - 1)

        yield power


# ---- tensors


@probe
def tensors_that_are_replaced():
    for k in (1.0, 2.0, 3.0):
        w = tensor(k, 2.0, 3.0, requires_grad=True)
        yield lambda x: (x * w).sin(), w  # noqa: B023
        w = tensor(k + 5, 2.0, 3.0, requires_grad=True)
        yield lambda x: (x * w).sin(), w  # noqa: B023


@probe
def tensors_that_are_written_to():
    w = tensor(1.0, 2.0, 3.0)
    for _ in range(3):
        yield lambda x: x * w
        w.mul_(2)
        w[0] = 7.0


@probe
def tensors_that_require_grad_or_not():
    w = tensor(1.0, 2.0, 3.0)
    for flag in (False, True, True, False):
        yield lambda x: x * w, w.requires_grad_(flag)


@probe
def tensors_of_other_kinds():
    for w in (
        tensor(1.0, 2.0, 3.0),
        tensor(1.0, 2.0, 3.0, dtype=torch.float64),
        tensor(1, 2, 3),
        torch.tensor(2.0),
        torch.tensor(2.0, dtype=torch.float64),
        torch.ones(2, 3)[0],
        torch.arange(6.0)[::2],
        nn.Parameter(tensor(1.0, 2.0, 3.0)),
        torch.ones(1).expand(3),
    ):
        yield lambda x, w=w: x * w, w
        yield lambda x, w=w: x * w + 0 * w.stride(-1) if w.ndim else x * w, w


@probe
def strides_that_the_function_reads():
    for w in (torch.ones(3, 3), torch.ones(3, 3).T, torch.ones(3, 6)[:, ::2]):
        yield lambda x, w=w: x * sum(w.stride())


@probe
def numbers_and_tensors_in_turns():
    for w in (2.0, torch.tensor(2.0), 2, torch.tensor(2), np.float32(2.0), torch.tensor(3.0)):
        yield times(w)
        yield times(w)


@probe
def tensors_with_a_history():
    w = tensor(1.0, 2.0, 3.0, requires_grad=True)
    for k in (1.0, 2.0):
        made = w * k
        yield lambda x: x * made, w  # noqa: B023
        yield lambda x: x * made.detach(), w  # noqa: B023


@probe
def one_tensor_in_two_variables():
    w, v = tensor(1.0, 2.0, 3.0, requires_grad=True), tensor(3.0, 1.0, 3.0, requires_grad=True)
    for a, b in ((w, w), (w, v), (v, v), (v, w), (w, w)):
        yield lambda x, a=a, b=b: x * a * a + b * x + (a is b), w, v


@probe
def views_of_captured_tensors():
    w = torch.arange(6.0)
    for a, b in ((w[:3], w[3:]), (w[:3], w[:3]), (w[:3], w[1:4])):
        yield lambda x, a=a, b=b: x * a + b
        w.add_(1)
        yield lambda x, a=a, b=b: x * a + b


@probe
def a_gradient_that_is_read():
    w = tensor(1.0, 2.0, 3.0, requires_grad=True)
    for k in (None, 1.0, 2.0, None):
        w.grad = None if k is None else torch.full((3,), k)
        yield lambda x: x if w.grad is None else x * w.grad


@probe
def hooks():
    w = tensor(1.0, 2.0, 3.0, requires_grad=True)
    for k in (2.0, 3.0):
        yield lambda x: x * w, w
        handle = w.register_hook(lambda g, k=k: g * k)
        yield lambda x: x * w, w
        handle.remove()


@probe
def tensors_of_a_users_class():
    class Mine(torch.Tensor):
        pass

    for w in (tensor(1.0, 2.0, 3.0), tensor(1.0, 2.0, 3.0).as_subclass(Mine)):
        yield lambda x, w=w: (x * w).as_subclass(torch.Tensor) + (type(w) is torch.Tensor)


@probe
def attributes_of_tensors():
    for k in (1.0, 2.0, 1.0):
        w = tensor(1.0, 2.0, 3.0)
        w.k = k
        yield lambda x, w=w: x * w * w.k


# ---- containers


@probe
def lists_and_dicts_that_change():
    held, named = [1.0, tensor(2.0, 1.0, 0.0)], {"a": 2.0, "b": [3.0]}

    def made():
        return lambda x: x * held[0] + held[1] + named["a"] + len(held) + sum(named["b"])

    yield made()
    held[0] = 5.0
    yield made()
    held[1] = tensor(9.0, 9.0, 9.0)
    yield made()
    held.append(1)
    yield made()
    named["b"].append(8.0)
    yield made()
    named["a"] = 3
    yield made()
    named["c"] = 3
    yield made()


@probe
def orders_of_dicts():
    for keys in ("ab", "ba", "ab"):
        held = {key: ord(key) for key in keys}
        yield lambda x, held=held: x * next(iter(held.values()))


@probe
def lists_that_are_the_same():
    for second in (True, False, True):
        a = [1.0]
        b = a if second else [1.0]
        yield lambda x, a=a, b=b: x + (a is b)


@probe
def a_list_that_is_a_global_too():
    GLOBAL_LIST[:] = [1.0]
    held = GLOBAL_LIST

    def grown():
        GLOBAL_LIST[0] += 1
        return held[0]

    for k in (1.0, 2.0):
        yield lambda x: x * held[0] + GLOBAL_LIST[0]
        GLOBAL_LIST[0] = k + 5
    other = [3.0]
    yield (lambda held: lambda x: x * held[0] + GLOBAL_LIST[0])(GLOBAL_LIST)
    yield (lambda held: lambda x: x * held[0] + GLOBAL_LIST[0])(other)
    GLOBAL_LIST[0] = 77.0
    yield (lambda held: lambda x: x * held[0] + GLOBAL_LIST[0])(other)


@probe
def other_containers():
    for value in ({1.0}, {2.0}, frozenset([1]), frozenset([True]), range(2), (1, 2), (True, 2)):
        yield lambda x, value=value: x * sum(value) + (next(iter(value)) is True)


@probe
def arrays_of_numpy():
    held = np.array([1.0, 2.0, 3.0], np.float32)
    for _ in range(3):
        yield lambda x: x * torch.tensor(held)
        held[0] += 1
    for value in (np.float32(0.0), np.float32(-0.0), np.int64(1), np.bool_(True)):
        yield lambda x, value=value: 1 / (x * 0 + float(value))


# ---- objects


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tensor(1.0, 2.0, 3.0))
        self.scale = 2.0

    def forward(self, x):
        return x * self.weight * self.scale if self.training else x * self.scale


@probe
def modules():
    for model in (Model(), Model()):
        weight = model.weight
        yield lambda x, model=model: model(x), weight
        model.eval()
        yield lambda x, model=model: model(x), weight
        model.train()
        model.scale = 5.0
        yield lambda x, model=model: model(x), weight
        yield model, weight
        with torch.no_grad():
            weight.add_(1)
        yield model, weight
        model.weight = nn.Parameter(tensor(7.0, 7.0, 7.0))
        yield model, model.weight
        yield functools.partial(Model.forward, model), model.weight


class Plain:
    def __init__(self, k):
        self.k = k

    def times(self, x):
        return x * self.k

    def __eq__(self, other):
        return isinstance(other, Plain)

    def __hash__(self):
        return 1


@probe
def objects_and_their_methods():
    kept = [Plain(1.0), Plain(2.0), Plain(1.0)]
    for each in kept:
        yield each.times
        yield lambda x, each=each: x * each.k
        each.k += 1
        yield each.times
        yield lambda x, each=each: x * each.k


@probe
def objects_that_are_gone():
    for k in range(6):
        yield Plain(float(k)).times
        gc.collect()


@probe
def classes_that_are_defined_again():
    for k in (1.0, 2.0, 1.0):

        class Defined:
            scale = k

            @staticmethod
            def times(x):
                return x * Defined.scale

        yield Defined.times
        yield lambda x, kind=Defined: x * kind.scale
        Defined.scale = k + 5
        yield Defined.times
        yield lambda x, kind=Defined: x * kind.scale


class Way(enum.Enum):
    SIN, COS = 1, 2


@dataclasses.dataclass
class Options:
    scale: float


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: float


@probe
def enumerations_and_dataclasses():
    options = Options(1.0)
    for way in (Way.SIN, Way.COS, Way.SIN):
        yield lambda x, way=way: x.sin() if way is Way.SIN else x.cos()
        yield lambda x: x * options.scale
        options.scale += 1
        yield lambda x, frozen=Frozen(options.scale): x * frozen.scale


# ---- settings


@probe
def default_dtype_and_grad_mode():
    w = tensor(1.0, 2.0, 3.0, requires_grad=True)
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            yield lambda x: x * torch.ones(3)
        finally:
            torch.set_default_dtype(torch.float32)
    for enabled in (True, False, True):
        with torch.set_grad_enabled(enabled):
            yield lambda x: x * w, w
            yield lambda x: x * w + torch.is_grad_enabled(), w


@probe
def transforms_in_transforms():
    w = tensor(1.0, 2.0, 3.0, requires_grad=True)
    for k in (1.0, 2.0, 1.0):
        yield func.grad(lambda x: (x**3 * k * w).sum()), w  # noqa: B023
        yield lambda x: func.jvp(lambda y: y.sin() * k, (x,), (x,))[1]  # noqa: B023
        yield lambda x: func.vmap(lambda y: y * k)(x) * w, w  # noqa: B023
        yield func.vmap(lambda y: y * k)  # noqa: B023
        yield lambda x: func.hessian(lambda y: (y**3 * k).sum())(x).sum(0)  # noqa: B023


@pytest.mark.parametrize("name", PROBES)
def test_probe(name):
    for each in PROBES[name]():
        function, *tensors = each if isinstance(each, tuple) else (each,)
        compare(function, tensors)


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
    "hessian": lambda w: func.hessian(lambda x: (x**3 * w).sum())(w),
    "jacfwd of a jacfwd": lambda w: func.jacfwd(func.jacfwd(lambda x: x**3 * w))(w),
    "list": lambda w: func.vmap(lambda x, held=[w, {"k": 2.0}]: x * held[0] * held[1]["k"])(
        torch.tensor(ROWS)
    ),
}


@pytest.mark.parametrize("name", FOUND_AGAIN)
def test_functions_that_are_written_anew_find_their_program(name):
    call = FOUND_AGAIN[name]
    for k in (1.0, 2.0, 3.0):
        w = tensor(k, 2.0, 3.0)
        found, before = call(w), traces()
        expected = func_with_programs_of_its_own(call, w)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
        if k == 1.0:
            most = before
    assert traces() == most > 0


def func_with_programs_of_its_own(call, w):
    """The result where no program is shared."""
    kept, shared_function.mapped = shared_function.mapped, unshared
    try:
        return call(w)
    finally:
        shared_function.mapped = kept


def unshared(function, dims, out_dims, randomness, unshared, args, kwargs):
    return unshared()(*args, **kwargs)


def test_auxiliary_outputs_are_those_of_the_call():
    for k in (1.0, 2.0):
        w = tensor(k, 2.0)
        slopes, (first, text, second) = func.jacfwd(
            lambda x, k=k: (x * w, (x * k, f"is {k}", None)),  # noqa: B023
            has_aux=True,
        )(w)
        assert text == f"is {k}" and second is None
        assert first.tolist() == (w * k).tolist() and slopes.diag().tolist() == w.tolist()


def test_dimensions_tell_functions_apart():
    batch = torch.arange(4.0).reshape(2, 2)
    for _ in range(2):
        for in_dim in (0, 1):
            for out_dims in (0, 1, (0,), [1]):
                made = func.vmap(lambda x: x * 2, in_dim, out_dims)
                is_turned = in_dim != (out_dims if isinstance(out_dims, int) else out_dims[0])
                wanted = (batch.T if is_turned else batch) * 2
                assert made(batch).tolist() == wanted.tolist()


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
    found = [func.vmap(lambda x: x * next(elements))(torch.ones(1)).item() for _ in range(4)]
    assert found == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers(randomness):
    def draw():
        return func.vmap(lambda x: x + torch.rand(2), randomness=randomness)(torch.zeros(3))

    torch.manual_seed(0)
    first = [draw() for _ in range(4)]
    assert traces() == 1
    torch.manual_seed(0)
    again = [draw() for _ in range(4)]
    assert [each.tolist() for each in first] == [each.tolist() for each in again]
    assert len({each[0].sum().item() for each in first}) == 4
    assert len({each.sum().item() for each in first[0]}) == (1 if randomness == "same" else 3)


def test_random_numbers_of_numpy():
    np.random.seed(0)
    found = {func.vmap(lambda x: x + np.random.rand())(torch.zeros(1)).item() for _ in range(4)}
    assert len(found) == 4


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
            each = rows.sum(0)[None] if is_compiled else rows
            expected = sum(6 * k * row * row.sum() ** 2 for row in each)
            np.testing.assert_allclose(third.tolist(), expected.tolist())


def test_numbers_of_captured_tensors_that_code_looks_at():
    for k in (1.0, -1.0, 2.0, 2.0):
        w = tensor(k, 2.0)
        found = func.vmap(lambda x, w=w: x * 3 if w[0].item() > 0 else -x)(torch.ones(2))
        assert found.tolist() == ([3.0, 3.0] if k > 0 else [-1.0, -1.0])


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
    for k in (1.0, 2.0, 3.0):
        found = func.vmap(lambda x, k=k: x * torch.tracing.number(lambda: k))(torch.ones(1))
        assert found.item() == k


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
        found = func.vmap(lambda x: x * k)(rows)  # noqa: B023
        assert found.tolist() == (rows * k).tolist()


# ---- what programs keep


def test_no_tensor_and_no_function_is_kept():
    def run():
        w, held = tensor(1.0, 2.0, 3.0), Plain(2.0)
        copy = w.clone()

        def scaled(x, v=copy):
            return x * w * v * held.k + scaled.k

        scaled.k = w.sum()
        func.vmap(scaled)(torch.tensor(ROWS))
        func.hessian(lambda x: (x**3 * w).sum())(w)
        found = [w, held, scaled, scaled.__defaults__[0], scaled.k]
        return [weakref.ref(each) for each in found]

    references = [*run(), *run()]
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)


def test_many_functions_made_of_text_are_bounded(nothing_compiled):
    limit = shared_function._functions.clock
    most = 0
    for number in range(300):
        made = {}
        exec(f"def f(x):\n    return x * {number}.5", globals(), made)
        assert func.vmap(made["f"])(torch.ones(1)).item() == number + 0.5
        most = max(most, len(shared_function._functions.everything()))
    assert limit.limit == "programs" and most <= 128


def test_functions_in_threads():
    rows, failed = torch.tensor(ROWS), []

    def run(k):
        for number in range(20):
            w = tensor(k, number, 1.0)
            found = func.vmap(lambda x, w=w: x * w + k)(rows)
            if found.tolist() != (rows * w + k).tolist():
                failed.append((k, number))

    threads = [threading.Thread(target=run, args=(float(k % 2),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def times_global(x):
    return x * GLOBAL


def test_a_function_that_finds_nothing_stops_looking():
    global GLOBAL
    for number in range(30):
        GLOBAL = float(number)
        assert func.vmap(times_global)(torch.ones(1)).item() == number
    (shared,) = shared_function._functions.everything()
    assert shared.is_refused and shared.count < 15
