"""Functions that are written anew at each call share programs, and never a stale one.

Each probe yields functions of one example, and changes something in between. Each of them is mapped
and compared with the function itself, called uncompiled for each example.
"""

import dataclasses
import enum
import functools
import gc
import sys
import types

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import func, nn
from jaxgrad.autograd import functional
from jaxgrad.core import deferred, executor
from jaxgrad.func import shared_function

ROWS = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]

PROBES = {}


def probe(function):
    PROBES[function.__name__] = function
    return function


@pytest.fixture(autouse=True)
def no_programs(monkeypatch):
    shared_function._functions.clear()
    # calls of a function that is compiled as a whole before it is
    monkeypatch.setattr(deferred, "REPEATS", 0)


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
    result = func.vmap(function)(rows)
    assert result.dtype == expected.dtype and result.requires_grad == expected.requires_grad
    np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), rtol=1e-6)
    for one, other in zip(gradients_of(result, wanted), slopes, strict=True):
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
    modules = []
    for number, k in enumerate((2.0, 3.0)):
        module = types.ModuleType(f"probe_{number}")
        sys.modules[module.__name__] = module
        exec(f"k = {k}\ndef make():\n    return lambda x: x * k", vars(module))
        modules.append(module)
    for module in (*modules, *modules):
        function = module.make()
        function.__module__ = __name__  # as `functools.wraps` may leave it
        yield function
    modules[0].k = 11.0
    yield modules[0].make()
    for module in modules:
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
GLOBAL_READER = None


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
        factor = w * k
        yield lambda x: x * factor, w  # noqa: B023
        yield lambda x: x * factor.detach(), w  # noqa: B023


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

    def make():
        return lambda x: x * held[0] + held[1] + named["a"] + len(held) + sum(named["b"])

    yield make()
    held[0] = 5.0
    yield make()
    held[1] = tensor(9.0, 9.0, 9.0)
    yield make()
    held.append(1)
    yield make()
    named["b"].append(8.0)
    yield make()
    named["a"] = 3
    yield make()
    named["c"] = 3
    yield make()


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
        yield lambda x, a=a, b=b: x + (a is b)
    a, b = [1.0], [1.0]
    for third in (a, b, a):
        yield lambda x, held=(a, b, third): x + (held[2] is held[0]) + 2 * (held[2] is held[1])


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


def times_two_lists(held):
    return lambda x: x * held[0] + GLOBAL_LIST[0]


@probe
def lists_of_equal_contents_of_which_one_is_a_global():
    GLOBAL_LIST[:] = [1.0]
    yield times_two_lists(GLOBAL_LIST)
    GLOBAL_LIST[0] = 5.0
    yield times_two_lists([1.0])


def read_and_changed(k):
    def change(value):
        nonlocal k
        k = value

    return (lambda: k), change, lambda x: x * k + GLOBAL_READER()


@probe
def variables_of_equal_contents_of_which_one_is_shared_with_a_global():
    global GLOBAL_READER
    GLOBAL_READER, change, function = read_and_changed(1.0)
    yield function
    change(5.0)
    yield read_and_changed(1.0)[2]
    yield read_and_changed(5.0)[2]


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
    for holder in kept:
        yield holder.times
        yield lambda x, holder=holder: x * holder.k
        holder.k += 1
        yield holder.times
        yield lambda x, holder=holder: x * holder.k


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


def rows_of_jacobian(function, point):
    """The Jacobian by backward passes one after the other; None for complex outputs."""
    point = point.clone().requires_grad_()
    with torch.enable_grad():
        output = function(point)
        if output.is_complex():
            return None
        entries = [output[index] for index in np.ndindex(*output.shape)]
    slopes = [
        torch.autograd.grad(entry, point, retain_graph=True)[0]
        for entry in (entries if output.requires_grad else ())
    ]
    return torch.stack(slopes or [point.detach() * 0] * len(entries))


def compare_rows(function, tensors=()):
    """Compare a Jacobian, and its product, with backward passes one after the other."""
    for row in torch.tensor(ROWS):
        expected = rows_of_jacobian(function, row)
        if expected is None:
            return
        jacobian = func.jacrev(function)(row)
        assert jacobian.dtype == expected.dtype and jacobian.shape == expected.shape
        np.testing.assert_allclose(jacobian.detach().numpy(), expected.numpy(), rtol=1e-6)
        value, slope = func.jvp(function, (row,), (torch.ones(3),))
        sums = expected.sum(-1).numpy()
        output = function(row)
        np.testing.assert_allclose(value.detach().numpy(), output.detach().numpy(), rtol=1e-6)
        np.testing.assert_allclose(slope.detach().numpy(), sums, rtol=1e-6, atol=1e-6)


def compare_functional(function, tensors=()):
    """The same for autograd.functional, whose results are detached."""
    for row in torch.tensor(ROWS):
        expected = rows_of_jacobian(function, row)
        if expected is None:
            return
        with torch.enable_grad():
            output = function(row)
        for options in ({}, {"vectorize": True}):
            jacobian = functional.jacobian(function, row, **options)
            assert jacobian.shape == expected.shape and not jacobian.requires_grad
            np.testing.assert_allclose(jacobian.numpy(), expected.numpy(), rtol=1e-6)
        value, slope = functional.vjp(function, row, torch.ones_like(output))
        np.testing.assert_allclose(value.numpy(), output.detach().numpy(), rtol=1e-6)
        np.testing.assert_allclose(slope.numpy(), expected.sum(0).numpy(), rtol=1e-6, atol=1e-6)


COMPARISONS = compare, compare_rows, compare_functional


def probes_and_comparisons():
    """Each probe by each comparison. One comparison of every third probe is quick."""
    for number, name in enumerate(PROBES):
        for position, comparison in enumerate(COMPARISONS):
            is_quick = number % 3 == 0 and number // 3 % len(COMPARISONS) == position
            marks = [] if is_quick else [pytest.mark.slow]
            yield pytest.param(name, comparison, marks=marks)


@pytest.mark.parametrize(("name", "compared"), [*probes_and_comparisons()])
def test_probe(name, compared, monkeypatch):
    if name == "signs_of_zero":
        monkeypatch.setattr(executor, "chosen", "compiled")  # XLA takes x + 0 to be x, also of -0
    for case in PROBES[name]():
        function, *tensors = case if isinstance(case, tuple) else (case,)
        compared(function, tensors)
