"""gradcheck of gradients, row by row of PyTorch's behaviour. See also test_gradcheck_modes.py."""

import functools
import gc
import itertools
import sys
import tracemalloc
import warnings

import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters, warned

import jaxgrad

MISMATCH = "Jacobian mismatch for output 0 with respect to input 0,"
ZERO = "Numerical gradient for function expected to be zero"
gradcheck = jaxgrad.autograd.gradcheck


def module(torch):
    """The module gradcheck, which the function hides."""
    return sys.modules[f"{torch.__name__}.autograd.gradcheck"]


def rule(torch, forward, backward, name="Rule", **others):
    """The `apply` of a Function with these rules."""
    rules = {"forward": forward, "backward": backward, **others}
    members = {key: staticmethod(value) for key, value in rules.items()}
    return type(torch.autograd.Function)(name, (torch.autograd.Function,), members).apply


def times(factor):
    """A `backward` for x * x: right for factor 2."""

    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return factor * x * gradient

    return backward


def square(ctx, x):
    ctx.save_for_backward(x)
    return x * x


def vector(torch, *values, **options):
    return leaf(torch, *(values or (1.0, 2.0)), dtype=torch.float64, **options)


def complex_vector(torch):
    return torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)


# ---- L01, L02: what passes, and what is said otherwise


@pytest.mark.row("L01")
@as_torch
def test_signatures_of_gradcheck(torch):
    functions = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    signatures = [[p for p in parameters(check) if p[0] != "check_nested"] for check in functions]
    raised = module(torch).GradcheckError
    return (
        signatures,
        sorted(module(torch).__all__),
        raised.__name__,
        issubclass(raised, RuntimeError),
    )


@pytest.mark.row("L01")
@pytest.mark.slow
@as_torch
def test_gradients_that_are_right(torch):
    x, y, check = vector(torch), vector(torch, 3.0, 4.0), torch.autograd.gradcheck
    matrix = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=torch.float64)
    weight = matrix.clone().requires_grad_()
    return [
        check(torch.exp, x),
        check(torch.exp, (x,)),
        check(lambda x: x.sin() * x, [x]),
        check(lambda x, y: (x * y, x.sum(), y.exp()), (x, y)),
        check(lambda x, n: x**n, (x, 3)),
        check(lambda x, n: x * n, (x, torch.tensor([1, 2]))),
        check(lambda x, y: x * y, (x, torch.tensor([1.0, 2.0], dtype=torch.float64))),
        check(lambda w: w @ w.t(), weight),
        check(lambda x: [x * 2], [x]),
        check(lambda x: x, x),
        check(lambda x: x.clone().mul_(x), x),
        check(torch.exp, torch.zeros(0, dtype=torch.float64, requires_grad=True)),
        check(torch.exp, leaf(torch, 0.5, dtype=torch.float64)),
        check(lambda x, y: x * y, (x, x)),
        check(torch.abs, vector(torch, 0.0, 1.0)),
    ]


@pytest.mark.row("L01")
@as_torch
def test_inputs_that_the_function_holds(torch):
    """As with parameters of a module, gradcheck moves the tensor itself."""
    x, w = vector(torch), vector(torch, 3.0, 4.0)
    y = x * 2
    results = [
        torch.autograd.gradcheck(lambda *_: w * w, w),
        torch.autograd.gradcheck(lambda x, *_: x * w, (x, w)),
        torch.autograd.gradcheck(lambda y: y * y, y),
        torch.autograd.gradcheck(lambda y: y * (x * 3), y),
    ]
    base = torch.ones(4, dtype=torch.float64)
    part = base[1:3].requires_grad_()
    seen = error(torch.autograd.gradcheck, lambda part: part * base[1:3], part, words=MISMATCH)
    return results, x, w, y, x.grad, w.grad, w._version, seen


@pytest.mark.row("L01")
@as_torch("""
    False
    False
    False
    True
    ValueError(
     'gradcheck expects at least one input tensor to require gradient, but none of them '
     'have requires_grad=True.')
    AssertionError('Expected at least one of check_forward_ad or check_backward_ad to be True')
""")
def test_raise_exception_of_gradcheck(torch):
    wrong, x = rule(torch, square, times(3)), vector(torch)
    check = functools.partial(torch.autograd.gradcheck, raise_exception=False)
    return (
        check(wrong, x),
        check(wrong, x, fast_mode=True),
        check(lambda x: x.detach(), x),
        check(lambda x: x * x, x),
        error(check, torch.exp, torch.ones(2)),
        error(functools.partial(check, check_backward_ad=False), torch.exp, x),
    )


@pytest.mark.row("L02")
@pytest.mark.slow
@as_torch
def test_the_message_of_a_mismatch(torch):
    x, y, check = vector(torch), vector(torch, 3.0, 4.0), torch.autograd.gradcheck
    wrong = rule(torch, square, times(3))
    other = "Jacobian mismatch for output 1 with respect to input 0,"
    second = "Jacobian mismatch for output 0 with respect to input 1,"
    nan = float("nan")
    return (
        error(check, wrong, x, words=MISMATCH),
        error(check, lambda x: (x * x, wrong(x)), x, words=other),
        error(check, lambda x, y: x * wrong(y), (x, y), words=second),
        error(check, lambda x: x * nan, x, words=MISMATCH),
        error(check, torch.relu, vector(torch, 0.0), words=MISMATCH),
        error(check, lambda x: 1 / (x - x.detach()), x, words=MISMATCH),
    )


@pytest.mark.row("L02")
def test_what_is_said_of_a_mismatch():
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x.cos() + (x == 5.0) * gradient.sum(0)

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    wrong = rule(jaxgrad, forward, backward, "Wavy")
    x = jaxgrad.tensor([[1.0, 2.0], [4.0, 5.0]], dtype=jaxgrad.float64, requires_grad=True)
    with pytest.raises(RuntimeError) as raised:
        gradcheck(wrong, x)
    said = str(raised.value)
    column = 0, 0, 0, numpy.cos(5)
    numerical, analytical = (line.partition(":")[2] for line in said.splitlines()[1:3])
    numpy.testing.assert_allclose(numpy.fromstring(numerical[1:-1], sep=","), column, atol=1e-6)
    numbers = numpy.fromstring(analytical[1:-1], sep=",")
    numpy.testing.assert_allclose(numbers, (0, 1, 0, column[3] + 1), atol=1e-6)
    assert "function: Wavy.apply" in said and "WavyBackward" in said
    assert "of the output and (1, 1) of the input" in said
    assert "of 16 derivatives 2 are wrong" in said
    assert "Every operator is right by itself; look at WavyBackward" in said


@pytest.mark.row("L02")
@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (3.0, "is the numerical one times 1.5."),
        (-2.0, "is the numerical one times -1."),
        (0.0, "The analytical derivative is zero."),
        (float("nan"), "of 4 derivatives 4 are wrong.\nThere is a nan or an inf."),
    ],
)
def test_what_the_mistake_looks_like(factor, said):
    with pytest.raises(RuntimeError, match=said):
        gradcheck(rule(jaxgrad, square, times(factor)), vector(jaxgrad))


@pytest.mark.row("L02")
@pytest.mark.slow
def test_the_operator_is_named(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "- name: told(Tensor self) -> Tensor\n"
        "  forward: self * self\n"
        "  self: grad * self * 3\n"
        "  result: self_t * self_p * 2\n"
        "- name: moved(Tensor self) -> Tensor\n"
        "  forward: self * self\n"
        "  self: grad * self * 2\n"
        "  result: self_t * self_p * 3\n"
    )
    mine = jaxgrad.ops.load(path, namespace="gradcheck_blame")
    x = vector(jaxgrad)
    with pytest.raises(RuntimeError, match="By itself the derivative of Told is wrong") as raised:
        gradcheck(lambda x: (mine.told(x.sin()) * x).exp(), x)
    assert "recorded as: ExpBackward0, MulBackward0, ToldBackward0, SinBackward0" in str(
        raised.value
    )
    assert "test_gradcheck.py:" in str(raised.value)
    forward = functools.partial(gradcheck, check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(RuntimeError, match="By itself the derivative of Moved is wrong"):
        forward(lambda x: mine.moved(x.sin()) * x, x)
    assert gradcheck(mine.moved, x) and forward(mine.told, x)


@pytest.mark.row("L02")
def test_a_function_that_is_not_one():
    count = itertools.count()
    with pytest.raises(RuntimeError, match=r"Called twice with the same inputs .* gives different"):
        gradcheck(lambda x: x * next(count), vector(jaxgrad))


@pytest.mark.row("L02")
@pytest.mark.slow
@pytest.mark.parametrize("fast_mode", [False, True])
def test_tolerance_does_not_grow_with_size(fast_mode):
    # PyTorch's fast mode passes this: it multiplies atol by the sums of its directions
    def backward(ctx, gradient):
        return gradient * 0 + gradient[:1] * wrong

    x = vector(jaxgrad, *numpy.linspace(-1, 1, 300 if fast_mode else 20))
    nothing = rule(jaxgrad, lambda ctx, x: x * 0, backward)
    wrong = 2e-5 * (numpy.arange(x.numel()) == 7)
    wrong = jaxgrad.tensor(wrong)
    with pytest.raises(RuntimeError, match=MISMATCH):
        gradcheck(nothing, x, fast_mode=fast_mode)
    wrong = wrong * 0
    assert gradcheck(nothing, x, fast_mode=fast_mode)


def wrong_in_one_element(ctx, gradient):
    result = times(2)(ctx, gradient)
    result[1] = result[0]
    return result


@pytest.mark.row("L02")
@pytest.mark.slow
@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    "backward",
    [
        times(2 + 1e-2),
        times(-2),
        lambda ctx, gradient: None,
        lambda ctx, gradient: gradient,
        lambda ctx, gradient: times(2)(ctx, gradient).flip(0),
        lambda ctx, gradient: times(2)(ctx, gradient) + 1e-4,
        wrong_in_one_element,
        lambda ctx, gradient: times(2)(ctx, gradient).sum().expand(3),
    ],
)
def test_every_mistake_is_found(backward, fast_mode):
    x = vector(jaxgrad, 1.0, 2.0, -0.7)
    with pytest.raises(module(jaxgrad).GradcheckError):
        gradcheck(rule(jaxgrad, square, backward), x, fast_mode=fast_mode)
    assert gradcheck(rule(jaxgrad, square, times(2)), x, fast_mode=fast_mode)


# ---- L03, L04: what it is called with


@pytest.mark.row("L03")
@pytest.mark.slow
@as_torch
def test_checks_of_the_inputs_of_gradcheck(torch):
    x, check = vector(torch), torch.autograd.gradcheck
    one = leaf(torch, 1.0, dtype=torch.float64)
    single = torch.ones(2, requires_grad=True)
    loose = functools.partial(check, eps=1e-2, atol=1e-2)
    return (
        error(check, torch.exp, torch.ones(2)),
        error(check, torch.exp, ()),
        warned(loose, torch.exp, single),
        warned(loose, lambda x, y: x * y, (x, single)),
        warned(loose, torch.exp, torch.ones(2, dtype=torch.complex64, requires_grad=True)),
        error(check, torch.exp, one.expand(3)),
        error(check, lambda x, y: x * y, (x, one.expand(2))),
        check(torch.exp, one.expand(1)),
        check(lambda x, y: x * y, (x, torch.ones(1, dtype=torch.float64).expand(2))),
        check(torch.exp, torch.ones(2, 3, dtype=torch.float64, requires_grad=True).t()),
    )


@pytest.mark.row("L03")
def test_a_step_as_it_was_made_in_single_precision():
    # PyTorch divides by the step that was asked for, and finds 1.967 for 2
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double"):
        assert gradcheck(lambda x: x * x, jaxgrad.ones(2, requires_grad=True))


@pytest.mark.row("L03")
def test_gradcheck_is_refused_under_a_trace():
    with pytest.raises(RuntimeError, match="gradcheck needs the numbers of a tensor"):
        jaxgrad.jit(lambda x: gradcheck(jaxgrad.exp, x))(vector(jaxgrad))


@pytest.mark.row("L03")
def test_gradcheck_leaves_everything_as_it_was():
    base = jaxgrad.tensor([0.5, 1.0, 1.5, 2.0], dtype=jaxgrad.float64)
    x = base[1:3].requires_grad_()
    before, versions = base.tolist(), (base._version, x._version)
    with jaxgrad.no_grad(), jaxgrad.autograd.graph.strict_versions():
        assert gradcheck(lambda x: x * base[3], x)
        assert not gradcheck(lambda x: x * x.detach(), x, raise_exception=False)
    assert base.tolist() == before and (base._version, x._version) == versions
    assert x.grad is None and x.is_leaf


@pytest.mark.row("L03")
def test_functions_that_do_not_return_tensors():
    x = vector(jaxgrad)
    for wrong in (None, 3.0, "x", {"a": x}, (x * x, None)):
        with pytest.raises(TypeError, match="must return a tensor or a tuple of tensors, but its"):
            gradcheck(lambda x, wrong=wrong: wrong, x)


@pytest.mark.row("L04")
@as_torch
def test_flags_of_gradcheck_that_need_one_another(torch):
    x = vector(torch)
    check = functools.partial(torch.autograd.gradcheck, torch.exp, x)
    twice = functools.partial(torch.autograd.gradgradcheck, torch.exp, x)
    forward = functools.partial(check, check_backward_ad=False, check_forward_ad=True)
    over = functools.partial(twice, check_rev_over_rev=False, check_fwd_over_rev=True)
    return (
        error(functools.partial(check, check_backward_ad=False)),
        error(functools.partial(forward, check_batched_grad=True)),
        error(functools.partial(check, check_batched_forward_grad=True)),
        forward(),
        forward(check_undefined_grad=True),
        error(functools.partial(twice, check_rev_over_rev=False)),
        error(over),
        over(check_undefined_grad=False),
        error(functools.partial(over, check_undefined_grad=False, check_batched_grad=True)),
    )


# ---- L05 to L07: laws


@pytest.mark.row("L05")
@as_torch
def test_a_rule_that_is_not_deterministic(torch):
    count = itertools.count()

    def backward(ctx, gradient):
        return 2 * gradient * (1 + 1e-8 * next(count))

    noisy, x = rule(torch, lambda ctx, x: x * 2, backward), vector(torch)
    check = functools.partial(torch.autograd.gradcheck, noisy, x)
    words = "Backward is not reentrant, i.e., running backward with same input and grad_output"
    return (
        error(check, words=words),
        error(functools.partial(check, fast_mode=True), words=words),
        error(functools.partial(check, nondet_tol=1e-9), words="for nondeterminism was 1e-09"),
        check(nondet_tol=1e-4),
        check(nondet_tol=1e-4, fast_mode=True),
        check(raise_exception=False),
    )


@pytest.mark.row("L05")
def test_every_second_time():
    # PyTorch compares the first row with the first, the second with the second, and passes this
    count = itertools.count()

    def backward(ctx, gradient):
        return 2 * gradient * (1 + 1e-8 * (next(count) % 2))

    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        gradcheck(rule(jaxgrad, lambda ctx, x: x * 2, backward), vector(jaxgrad))


@pytest.mark.row("L06")
@as_torch
def test_gradients_of_zeros(torch):
    x, check = vector(torch), torch.autograd.gradcheck

    def backward(ctx, gradient):
        return gradient if (gradient != 0).any() else gradient + 1e-3

    apart = rule(torch, lambda ctx, x: x * 1, backward)
    words = "backward not multiplied by grad_output"
    ones = rule(torch, lambda ctx, x: x * 1, lambda ctx, gradient: torch.ones_like(gradient))
    return (
        error(check, apart, x, words=words),
        error(functools.partial(check, fast_mode=True), apart, x, words=words),
        error(check, ones, vector(torch, 3.0), words=words),
        error(check, ones, x, words=MISMATCH),
    )


def two(ctx, x):
    ctx.set_materialize_grads(False)
    return x * 2, x * 3


def careful(ctx, first, second):
    total = 0
    for gradient, factor in ((first, 2), (second, 3)):
        if gradient is not None:
            total = total + gradient * factor
    return None if first is None and second is None else total


def refuses_none(ctx, gradient):
    if gradient is None:
        raise RuntimeError("there is no gradient")
    return gradient * 2


@pytest.mark.row("L07")
@as_torch
def test_gradcheck_of_undefined_gradients(torch):
    x, check = vector(torch), torch.autograd.gradcheck

    def single(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    def invents(ctx, gradient):
        return torch.ones(2, dtype=torch.float64) if gradient is None else gradient * 2

    refuses, inventive = rule(torch, single, refuses_none), rule(torch, single, invents)
    raw = rule(torch, single, lambda ctx, gradient: 2 * gradient)
    handles = "Expected backward function to handle undefined output grads"
    zero = "Expected all input grads to be undefined or zero when all output grads are undefined"
    off = functools.partial(check, check_undefined_grad=False)
    return (
        check(rule(torch, two, careful), x),
        error(check, refuses, x, words=handles),
        error(check, inventive, x, words=zero),
        error(check, raw, x, words="unsupported operand type(s) for *: 'int' and 'NoneType'"),
        [off(function, x) for function in (refuses, inventive, raw)],
        error(functools.partial(check, fast_mode=True), refuses, x, words=handles),
    )


@pytest.mark.row("L07")
def test_undefined_is_not_zero():
    # PyTorch uses zeros for the others and misses it
    def backward(ctx, first, second):
        if first is None or second is None:
            return careful(ctx, first, second)
        return careful(ctx, first, second) if second.any() else first * 5

    x = vector(jaxgrad)
    with pytest.raises(RuntimeError, match=r"those of output 1 of Rule\.apply undefined"):
        gradcheck(rule(jaxgrad, two, backward), x)
    with pytest.raises(TypeError) as raised:
        gradcheck(rule(jaxgrad, lambda ctx, x: two(ctx, x)[0], lambda ctx, g: 2 * g), x)
    assert raised.value.__notes__ == [
        "gradcheck: the gradients of output 0 of Rule.apply were None"
    ]


# ---- L12, L13: outputs without gradients


@pytest.mark.row("L12")
@as_torch
def test_outputs_without_gradients(torch):
    x, check = vector(torch), torch.autograd.gradcheck
    return (
        error(check, lambda x: x.detach() * 2, x, words=ZERO),
        error(functools.partial(check, fast_mode=True), lambda x: x.detach(), x, words=ZERO),
        error(functools.partial(check, check_forward_ad=True), lambda x: x.detach(), x, words=ZERO),
        check(lambda x: torch.ones(3, dtype=torch.float64), x),
        check(lambda x: x.detach().floor(), vector(torch, 0.5)),
        check(lambda x: x.long(), x),
        check(lambda x: (x * x, x.argmax()), x),
        check(lambda x: (x.detach(), x * 1), x),
        check(lambda x: (), x),
    )


@pytest.mark.row("L12")
@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_of_bool_outputs(fast_mode):
    # PyTorch subtracts them, which is an error
    x = vector(jaxgrad)
    check = functools.partial(gradcheck, fast_mode=fast_mode)
    assert check(lambda x: x > 1.0, x) and check(lambda x: (x > 1.0, x * x, x.argmax()), x)
    wrong = rule(jaxgrad, square, times(3))
    with pytest.raises(RuntimeError, match="for output 1 with respect to input 0"):
        check(lambda x: (x > 1.0, wrong(x)), x)


@pytest.mark.row("L13")
@as_torch(r"""
    [True, True, True]
    [True, True]
    GradcheckError(
     'Jacobian mismatch for output 0 with respect to input 0,\n'
     'numerical:tensor([[2.0000, 0.0000],\n'
     '        [0.0000, 4.0000]], dtype=torch.float64)\n'
     'analytical:tensor([[3., 0.],\n'
     '        [0., 6.]], dtype=torch.float64)\n')
""")
def test_gradcheck_masked(torch):
    x, wrong = vector(torch), rule(torch, square, times(3))
    check, twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    return (
        [check(torch.exp, x, masked=masked) for masked in (None, True, False)],
        [twice(torch.exp, x, masked=masked) for masked in (True, False)],
        error(functools.partial(check, masked=True), wrong, x, words=MISMATCH),
    )


@pytest.mark.row("L13")
def test_gradcheck_of_sparse_outputs():
    class Sparse:
        def todense(self):
            raise AssertionError

    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        gradcheck(lambda x: (x, Sparse()), vector(jaxgrad))


# ---- L15: the old helpers


def quietly(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


@pytest.mark.row("L15")
@as_torch
def test_analytical_jacobian_of_the_old_helpers(torch):
    x, y, z = vector(torch), vector(torch, 3.0, 4.0), complex_vector(torch)
    helper = functools.partial(quietly, module(torch).get_analytical_jacobian)
    return (
        helper((x,), x * x),
        helper((x, y), x * y),
        helper((x, y), x.exp()),
        helper((x, y.detach()), x * y),
        helper((z,), z.abs()),
        helper((x,), x.sum(), nondet_tol=1.0),
        error(functools.partial(helper, grad_out=2.0), (x,), x * x),
        error(helper, (z,), z * z),
        warned(module(torch).get_analytical_jacobian, (x,), x * 2),
    )


@pytest.mark.row("L15")
@as_torch
def test_numerical_jacobian_of_the_old_helpers(torch):
    x, y, z = vector(torch), vector(torch, 3.0, 4.0), complex_vector(torch)
    numerical = functools.partial(quietly, module(torch).get_numerical_jacobian)
    specific = module(torch).get_numerical_jacobian_wrt_specific_input
    both = lambda x, y: (x * y, x.sum())  # noqa: E731
    results = (
        numerical(lambda i: i[0] * i[1], (x, y)),
        numerical(lambda i: (i[0] * i[1], i[0].sum()), [x, y]),
        numerical(lambda i: i[0] * i[1], (x, y.detach())),
        numerical(lambda i: i[0] * i[1], (x, y), target=y),
        numerical(lambda i: i[0].abs(), (z,)),
        numerical(lambda i: i[0] ** 3, (x,), eps=1e-2),
        specific(both, 1, (x, y), both(x, y), 1e-6),
        specific(torch.exp, 0, (x,), (x.exp(),), 1e-6, input=x, is_forward_ad=True),
        specific(torch.abs, 0, (z,), (z.abs(),), 1e-6),
    )
    square = lambda z: z * z  # noqa: E731
    return (
        [[jacobian.mul(1e5).round() for jacobian in result] for result in map(real, results)],
        error(functools.partial(numerical, grad_out=2.0), lambda i: i[0], (x,)),
        error(numerical, lambda i: i[0] * i[0], (z,)),
        error(specific, square, 0, (z,), (z * z,), 1e-6),
        x,
    )


def real(jacobians):
    return [j.abs() if j.is_complex() else j for j in jacobians]


# ---- cost


@pytest.mark.slow
def test_memory_of_one_jacobian():
    size = 400  # beside it the calls of one stretch are few
    x = vector(jaxgrad, *numpy.linspace(1, 2, size))

    def peak():
        gc.collect()
        tracemalloc.start()
        assert gradcheck(jaxgrad.exp, x, check_forward_ad=True)
        try:
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak()  # compiles
    assert peak() < 1.5 * size * size * 8


def test_nothing_is_left():
    x = vector(jaxgrad)
    for fast_mode in (False, True):
        for wrong in (rule(jaxgrad, square, times(3)), rule(jaxgrad, square, times(2))):
            gradcheck(wrong, x, fast_mode=fast_mode, raise_exception=False, check_forward_ad=True)
    kinds = jaxgrad.autograd.graph.Node
    nodes = [value for value in gc.get_objects() if issubclass(type(value), kinds)]
    assert not [node for node in nodes if node.name() == "RuleBackward"]


def test_a_function_of_no_module():
    names = {"jaxgrad": jaxgrad}
    exec("def square(x):\n    return x * x", names)  # as a program that runs a text defines it
    assert names["square"].__module__ is None
    assert gradcheck(names["square"], vector(jaxgrad))
