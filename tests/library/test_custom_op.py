"""Operators that users define. Expected texts and errors are those of torch 2.13, unless a test
says otherwise; expected gradients are closed forms.
"""

from collections.abc import Sequence

import jax
import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import Tensor, library
from jaxgrad.tape import handle_lock


@library.custom_op("tests::numpy_sin", mutates_args=())
def numpy_sin(x: Tensor) -> Tensor:
    return torch.from_numpy(np.sin(x.detach().numpy()))


@library.custom_op("tests::numpy_cos", mutates_args=())
def numpy_cos(x: Tensor) -> Tensor:
    return torch.from_numpy(np.cos(x.detach().numpy()))


numpy_sin.register_fake(lambda x: torch.empty_like(x))
numpy_cos.register_fake(lambda x: torch.empty_like(x))


def _keep_input(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


numpy_sin.register_autograd(
    lambda ctx, grad: grad * numpy_cos(ctx.saved_tensors[0]), setup_context=_keep_input
)
numpy_cos.register_autograd(
    lambda ctx, grad: -grad * numpy_sin(ctx.saved_tensors[0]), setup_context=_keep_input
)


@library.custom_op("tests::scaled", mutates_args=())
def scaled(x: Tensor, n: int = 2, *, s: float = 1.0) -> Tensor:
    return x * n * s


@library.custom_op("tests::accumulate", mutates_args={"total"})
def accumulate(x: Tensor, total: Tensor) -> Tensor:
    total.add_(x.detach())
    return x * 2


POINTS = np.array([0.25, -1.5, 2.0])


def points(**options):
    return torch.tensor(POINTS, **options)


def close(tensor, expected):
    np.testing.assert_allclose(np.asarray(tensor.detach()), expected, rtol=1e-12, atol=1e-12)


# modes


@pytest.mark.parametrize("wrap", [lambda f: f, torch.jit], ids=["eager", "jit"])
def test_value_and_derivatives_of_a_numpy_kernel(wrap):
    x = points(requires_grad=True)

    def gradients(x):
        (first,) = torch.autograd.grad(numpy_sin(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        return numpy_sin(x), first, second

    value, first, second = wrap(gradients)(x)
    close(value, np.sin(POINTS))
    close(first, np.cos(POINTS))
    close(second, -np.sin(POINTS))


def test_backward_of_a_compiled_result():
    x = points(requires_grad=True)
    torch.jit(lambda x: numpy_sin(x) * 3)(x).sum().backward()
    close(x.grad, 3 * np.cos(POINTS))


def test_func_transforms():
    x, batch = points(), torch.tensor(np.stack([POINTS, 2 * POINTS]))
    close(torch.func.grad(lambda x: numpy_sin(x).sum())(x), np.cos(POINTS))
    close(torch.func.jacrev(numpy_sin)(x), np.diag(np.cos(POINTS)))
    close(torch.func.vmap(numpy_sin)(batch), np.sin(batch.numpy()))
    mapped = torch.jit(torch.func.vmap(torch.func.grad(lambda x: numpy_sin(x).sum())))
    close(mapped(batch), np.cos(batch.numpy()))


@pytest.mark.slow
def test_transformations_of_jax():
    f, x = torch.to_jax(numpy_sin), jax.numpy.array([0.25, -1.5], "float32")
    sine, cosine = np.sin([0.25, -1.5]), np.cos([0.25, -1.5])
    options = {"rtol": 1e-6}
    np.testing.assert_allclose(jax.jit(f)(x), sine, **options)
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(x), cosine, **options)
    twice = jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum())
    np.testing.assert_allclose(twice(x), -sine, **options)
    np.testing.assert_allclose(jax.vmap(f)(jax.numpy.stack([x, x])), [sine] * 2, **options)


def test_checkpoint_and_gradcheck():
    x = points(requires_grad=True)
    torch.utils.checkpoint.checkpoint(numpy_sin, x, use_reentrant=False).sum().backward()
    close(x.grad, np.cos(POINTS))
    assert torch.autograd.gradcheck(numpy_sin, (x,))
    assert torch.autograd.gradgradcheck(numpy_sin, (x,))


def test_forward_mode_is_the_transpose_of_a_traceable_backward():
    @library.custom_op("tests::cube", mutates_args=())
    def cube(x: Tensor) -> Tensor:
        return x**3

    cube.register_autograd(
        lambda ctx, grad: 3 * ctx.saved_tensors[0] ** 2 * grad, setup_context=_keep_input
    )
    _, tangent = torch.func.jvp(cube, (points(),), (torch.ones_like(points()),))
    close(tangent, 3 * POINTS**2)
    hessian = torch.func.hessian(lambda x: cube(x).sum())(points())
    close(hessian, np.diag(6 * POINTS))


def test_forward_mode_without_a_rule_names_the_operator():
    with pytest.raises((NotImplementedError, RuntimeError), match=r"tests.scaled"):
        torch.func.jvp(scaled, (points(),), (points(),))


def test_an_operator_without_derivative_raises_in_backward():
    y = scaled(points(requires_grad=True))
    assert "GeneratedBackwardFor_tests_scaled_default" in y.grad_fn.name()
    with pytest.raises(RuntimeError, match=r"Trying to backward through tests.scaled.default but"):
        y.sum().backward()


def test_dtypes_survive_a_compiled_numpy_kernel():
    close(torch.jit(numpy_sin)(points() + 1e-12), np.sin(POINTS + 1e-12))

    @library.custom_op("tests::negate", mutates_args=())
    def negate(x: Tensor) -> Tensor:
        return torch.from_numpy(-x.numpy())

    negate.register_fake(lambda x: torch.empty_like(x))
    assert torch.jit(negate)(torch.tensor([10**15])).tolist() == [-(10**15)]


def test_a_numpy_kernel_without_fake_is_refused_by_name_under_jit():
    @library.custom_op("tests::no_fake", mutates_args=())
    def no_fake(x: Tensor) -> Tensor:
        return torch.from_numpy(x.numpy() + 1)

    close(no_fake(points()), POINTS + 1)
    with pytest.raises(RuntimeError, match=r"no fake impl registered for tests::no_fake"):
        torch.jit(no_fake)(points())


def test_a_wrong_fake_is_told_when_the_program_runs():
    @library.custom_op("tests::wrong_fake", mutates_args=())
    def wrong_fake(x: Tensor) -> Tensor:
        return torch.from_numpy(x.numpy() + 1)

    wrong_fake.register_fake(lambda x: x.new_empty(7))
    with pytest.raises(RuntimeError, match=r"tests::wrong_fake: its kernel returned float64\[3\]"):
        torch.jit(wrong_fake)(points()).numpy()


def test_an_error_of_the_kernel_stays_itself_under_jit():
    @library.custom_op("tests::raising", mutates_args=())
    def raising(x: Tensor) -> Tensor:
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        torch.jit(raising)(points())


def test_a_numpy_kernel_in_a_program_that_changes_state():
    # the callback runs while the thread at the program holds the lock of handles
    @library.custom_op("tests::mixed", mutates_args=())
    def mixed(x: Tensor) -> Tensor:
        y = torch.from_numpy(np.sin(x.detach().numpy())).clone()
        y[:1].add_(1.0)
        return y * 2

    mixed.register_fake(lambda x: torch.empty_like(x))
    state = torch.zeros(3, dtype=torch.float64)
    step = torch.jit(lambda x: (state.add_(1), mixed(x + state))[1])
    for count in (1, 2, 3):
        close(step(points()), 2 * (np.sin(POINTS + count) + [1, 0, 0]))
    assert state._version == 3
    assert handle_lock.lock is handle_lock._held


# written arguments


def test_written_arguments_and_their_versions():
    total, x = torch.zeros(3, dtype=torch.float64), points(requires_grad=True)
    result = accumulate(x, total)
    close(result, 2 * POINTS)
    close(total, POINTS)
    assert total._version == 1 and not total.requires_grad
    torch.jit(lambda x: accumulate(x, total) * 1)(points())
    close(total, 2 * POINTS)
    assert total._version == 2


def test_writes_reach_the_base_of_a_view():
    base = torch.zeros(5, dtype=torch.float64)
    accumulate(points(), base[1:4])
    close(base, [0, *POINTS, 0])


def test_written_arguments_under_vmap():
    def summed(x):
        total = torch.zeros_like(x)
        accumulate(x, total)
        accumulate(x, total)
        return total

    batch = torch.tensor(np.stack([POINTS, POINTS + 1]))
    close(torch.func.vmap(summed)(batch), 2 * batch.numpy())


def test_a_numpy_kernel_that_writes_runs_compiled():
    @library.custom_op("tests::store", mutates_args=["out"])
    def store(x: Tensor, out: Tensor) -> None:
        out.copy_(torch.from_numpy(np.sin(x.numpy())))

    store.register_fake(lambda x, out: None)
    out = torch.zeros(3, dtype=torch.float64)
    compiled = torch.jit(lambda x: (store(x, out), x + out)[1])
    for factor in (1, 2):
        close(compiled(points() * factor), POINTS * factor + np.sin(POINTS * factor))
        close(out, np.sin(POINTS * factor))
    assert out._version == 2


def test_writes_that_would_give_wrong_gradients_are_refused():
    # stricter than PyTorch, which leaves the old history on the new values
    leaf = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    for target, what in ((leaf, "a leaf Variable that requires grad"), (leaf * 2, "history")):
        with pytest.raises(RuntimeError, match=rf"tests::accumulate.*{what}"):
            accumulate(points(), target)
        close(target, [0, 0, 0])
    with torch.no_grad():
        accumulate(points(), leaf)
    close(leaf, POINTS)
    same = torch.zeros(3)
    with pytest.raises(RuntimeError, match=r"tests::accumulate.*shares its memory"):
        accumulate(same, same)


def test_a_write_that_the_schema_does_not_tell_raises():
    @library.custom_op("tests::secret", mutates_args=())
    def secret(x: Tensor) -> Tensor:
        return x.add_(1).clone()

    with pytest.raises(RuntimeError, match="Argument x is not defined as mutable but was mutated"):
        secret(points())


def test_an_operator_that_writes_has_no_autograd():
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional"):
        accumulate.register_autograd(lambda ctx, grad: (grad, None))


# arguments and results


def test_arguments_are_converted_by_the_schema():
    seen = []

    @library.custom_op("tests::seen", mutates_args=())
    def see(x: Tensor, n: int, f: float, y: Tensor | None = None, *, b: bool = True) -> Tensor:
        seen.append((type(n), type(f), y, b))
        return x.clone()

    see(points(), torch.tensor(3), 2, b=False)
    see(points(), True, torch.tensor(2.0))
    assert seen == [(int, float, None, False), (int, float, None, True)]


SCALED = r"tests::scaled\(\) "


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1.0,), {}, SCALED + "Expected a value of type 'Tensor' for argument 'x'"),
        ((np.ones(2),), {}, SCALED + ".*but instead found type 'ndarray'"),
        ((torch.ones(2), 2.5), {}, SCALED + "Expected a value of type 'int' for argument 'n'"),
        ((torch.ones(2), None), {}, SCALED + ".*found type 'NoneType'"),
        ((torch.ones(2),), {"s": "q"}, SCALED + "Expected a value of type 'float'"),
        ((), {}, SCALED + "is missing value for argument 'x'"),
        ((torch.ones(2), 1, 2), {}, SCALED + r"takes 2 positional argument\(s\) but 3"),
        ((torch.ones(2),), {"q": 1}, "Unknown keyword argument 'q' for operator 'tests::scaled'"),
        ((torch.ones(2), 1), {"n": 1}, "two values for argument 'n'"),
    ],
)
def test_wrong_arguments(args, kwargs, message):
    with pytest.raises(RuntimeError, match=message):
        scaled(*args, **kwargs)


def test_results_that_do_not_fit():
    x = points()
    for kernel, message in (
        (lambda x: x, "must not also be an input"),
        (lambda x: x[:1], "may not alias any inputs"),
        (lambda x: 3, "its kernel returned int"),
    ):
        operator = library.custom_op(
            "tests::bad", kernel, mutates_args=(), schema="(Tensor x) -> Tensor"
        )
        with pytest.raises(RuntimeError, match=rf"tests::bad: .*{message}"):
            operator(x)
    twice = library.custom_op(
        "tests::bad",
        lambda x: (y := x.clone(), y),
        mutates_args=(),
        schema="(Tensor x) -> (Tensor, Tensor)",
    )
    with pytest.raises(RuntimeError, match="or other returns"):
        twice(x)


@library.custom_op("tests::parts", mutates_args=())
def parts(xs: Sequence[Tensor], n: int, *, k: int = 1) -> list[Tensor]:
    return [x * n * k for x in xs]


def test_lists_of_tensors_in_every_rule():
    needs = []

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        ctx.factor = inputs[1] * keyword_only_inputs["k"]

    def backward(ctx, grads):
        needs.append(ctx.needs_input_grad)
        return [grad * ctx.factor for grad in grads], None

    parts.register_autograd(backward, setup_context=setup_context)
    a, b = points(requires_grad=True), points()
    first, _ = parts([a, b], 3, k=2)
    first.sum().backward()
    close(a.grad, [6, 6, 6])
    # torch says the same: one flag for each tensor of the list
    assert needs == [([True, False], False)]
    parts.register_vmap(
        lambda info, in_dims, xs, n, *, k: ([x * -n for x in xs], [in_dims[0][0], 0])
    )
    batch = torch.tensor(np.stack([POINTS, POINTS + 1]))
    # a rule of another sign shows that it is the rule that runs
    close(torch.func.vmap(lambda x: parts([x, x], 5)[1])(batch), -5 * batch.numpy())


def test_several_results_and_numbers():
    @library.custom_op("tests::split", mutates_args=())
    def split(x: Tensor) -> tuple[Tensor, int, Tensor]:
        return x * 2, 3, x.long()

    split.register_autograd(lambda ctx, first, number, whole: first * 2)
    x = points(requires_grad=True)
    first, number, whole = split(x)
    assert number == 3 and whole.tolist() == [0, -1, 2] and not whole.requires_grad
    first.sum().backward()
    close(x.grad, [2, 2, 2])


def test_a_backward_of_a_wrong_structure():
    operator = library.custom_op("tests::wrong", scaled._init_fn, mutates_args=())
    operator.register_autograd(lambda ctx, grad: (grad, grad, grad))
    with pytest.raises(RuntimeError, match=r"tests.wrong.default.*incorrect number of gradients"):
        operator(points(requires_grad=True)).sum().backward()


def test_a_vmap_rule_is_called_with_the_batch():
    calls = []
    operator = library.custom_op("tests::ruled", scaled._init_fn, mutates_args=())

    @operator.register_vmap
    def _(info, in_dims, x, n, *, s):
        calls.append((info.batch_size, in_dims, tuple(x.shape), n, s))
        return scaled(x, n, s=s) + 1, in_dims[0]

    close(torch.func.vmap(operator)(torch.tensor(np.stack([POINTS] * 2))), [2 * POINTS + 1] * 2)
    assert calls[0] == (2, (0, None), (2, 3), 2, 1.0)


# registration


def test_names_and_namespaces():
    assert repr(scaled) == "<CustomOpDef(tests::scaled)>"
    overload = torch.ops.tests.scaled.default
    assert str(overload) == "tests.scaled.default" and overload.name() == "tests::scaled"
    assert repr(overload) == "<OpOverload(op='tests.scaled', overload='default')>"
    assert torch.ops.tests.scaled.overloads() == ["default"]
    assert str(overload._schema) == "tests::scaled(Tensor x, SymInt n=2, *, float s=1.0) -> Tensor"
    close(torch.ops.tests.scaled(points(), 3), 3 * POINTS)
    with pytest.raises(AttributeError, match="'_OpNamespace' 'tests' object has no attribute 'zz'"):
        _ = torch.ops.tests.zz
    with pytest.raises(AttributeError, match=r"'tests.scaled' has no overload name 'zz'"):
        _ = torch.ops.tests.scaled.zz
    for name in ("aten::mine", "sin::mine"):
        with pytest.raises(ValueError, match="reserved namespace"):
            library.custom_op(name, scaled._init_fn, mutates_args=())
    with pytest.raises(ValueError, match="namespace::name"):
        library.custom_op("mine", scaled._init_fn, mutates_args=())


def test_kernels_by_device():
    operator = library.custom_op(
        "tests::devices", scaled._init_fn, mutates_args=(), device_types="cuda"
    )
    with pytest.raises(NotImplementedError, match=r"Could not run 'tests::devices'.*'CPU' backend"):
        operator(points())
    library.register_kernel("tests::devices", "cpu", lambda x, n, *, s: x * 7)
    close(operator(points()), 7 * POINTS)
    with (
        operator.set_kernel_enabled("cpu", False),
        pytest.raises(NotImplementedError, match="tests::devices"),
    ):
        operator(points())
    with pytest.raises(RuntimeError, match="device type"):
        operator.register_kernel("foo", lambda x: x)


def test_unknown_operators():
    for register in (
        library.register_fake,
        library.register_autograd,
        library.register_vmap,
        lambda name, f: library.register_kernel(name, "cpu", f),
        lambda name, f: library.impl(name, "cpu", f),
    ):
        with pytest.raises(RuntimeError, match="operator tests::absent does not exist"):
            register("tests::absent", lambda x: x)
    with pytest.raises(ValueError, match="unexpected type for op"):
        library.register_fake(3, lambda x: x)


def test_get_ctx():
    with pytest.raises(RuntimeError, match="register_fake"):
        library.get_ctx()
    operator = library.custom_op("tests::sized", numpy_sin._init_fn, mutates_args=())
    operator.register_fake(lambda x: x.new_empty(library.get_ctx().new_dynamic_size()))
    with pytest.raises(NotImplementedError, match="new_dynamic_size"):
        torch.jit(operator)(points())


# Library


def test_a_library_defines_and_implements():
    lib = library.Library("tests_lib", "DEF")
    assert lib.define("plus(Tensor x, int n=1) -> Tensor") == "plus"
    with pytest.raises(NotImplementedError, match="tests_lib::plus"):
        torch.ops.tests_lib.plus(points())
    lib.impl("plus", lambda x, n: x + n, "CPU")
    close(torch.ops.tests_lib.plus(points(), 4), POINTS + 4)
    lib.define("composite(Tensor x) -> Tensor")
    lib.impl("composite", lambda x: x.sin(), "CompositeImplicitAutograd")
    x = points(requires_grad=True)
    torch.ops.tests_lib.composite(x).sum().backward()
    close(x.grad, np.cos(POINTS))
    lib.define("grow_(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("grow_", lambda x: x.add_(1), "CPU")
    y = points()
    assert torch.ops.tests_lib.grow_(y) is y
    close(y, POINTS + 1)
    lib.define("many.pair(Tensor x) -> Tensor")
    lib.impl("many.pair", lambda x: x * 2, "CompositeExplicitAutograd")
    close(torch.ops.tests_lib.many.pair(points()), 2 * POINTS)
    lib._destroy()
    with pytest.raises(AttributeError):
        _ = torch.ops.tests_lib.plus
    library.Library("tests_lib", "DEF")._destroy()


def test_a_library_refuses():
    lib = library.Library("tests_refusing", "DEF")
    with pytest.raises(RuntimeError, match="Only a single Library"):
        library.Library("tests_refusing", "DEF")
    with pytest.raises(ValueError, match="Unsupported kind"):
        library.Library("tests_refusing", "X")
    with pytest.raises(ValueError, match="reserved namespace"):
        library.Library("aten", "DEF")
    lib.define("one(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("one(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="bracket"):
        lib.define("two(Tensor x")
    with pytest.raises(RuntimeError, match="view of an argument"):
        lib.define("view(Tensor(a) x) -> Tensor(a)")
    with pytest.raises(ValueError, match="dispatch key 'Foo'"):
        lib.impl("one", lambda x: x, "Foo")
    with pytest.raises(RuntimeError, match="use FRAGMENT"):
        library.Library("tests_refusing", "IMPL").define("three(Tensor x) -> Tensor")


def test_define_and_impl_by_name():
    library.define("tests::named", "(Tensor x) -> Tensor")

    @library.impl("tests::named", "default")
    def _(x):
        return x + 1

    library.register_autograd("tests::named", lambda ctx, grad: grad * 3)
    x = points(requires_grad=True)
    torch.ops.tests.named(x).sum().backward()
    close(x.grad, [3, 3, 3])
