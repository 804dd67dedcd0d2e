"""gradcheck of tangents, batches, complex numbers and second derivatives, row by row."""

import functools
import itertools

import pytest
from helpers.as_torch import as_torch, error, leaf

import jaxgrad

MISMATCH = "Jacobian mismatch for output 0 with respect to input 0,"
FORWARD = "Jacobian computed with forward mode mismatch for output 0 with respect to input 0,"
BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation"
IMAGINARY = "While considering the imaginary part of complex"

gradcheck, gradgradcheck = jaxgrad.autograd.gradcheck, jaxgrad.autograd.gradgradcheck


def new_function(torch, forward, name="Rule", **rules):
    """The `apply` of a Function of one tensor that saves it for its rules."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    rules = {"forward": forward, "setup_context": setup_context, **rules}
    members = {key: staticmethod(value) for key, value in rules.items()}
    return type(torch.autograd.Function)(name, (torch.autograd.Function,), members).apply


def scaled(factor):
    """A rule of x * x, right for factor 2, backward or forward."""

    def rule(ctx, direction):
        (x,) = ctx.saved_tensors
        return x * direction * factor

    return rule


def square(x):
    return x * x


def cube(x):
    return x**3


def vector(torch, *values):
    return leaf(torch, *(values or (1.0, 2.0)), dtype=torch.float64)


def complex_vector(torch):
    return torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)


# ---- L08: batches


@pytest.mark.row("L08")
@pytest.mark.slow
@as_torch
def test_gradcheck_of_batched_gradients(torch):
    x, z = vector(torch), complex_vector(torch)
    check = functools.partial(torch.autograd.gradcheck, check_batched_grad=True)
    decides = new_function(torch, square, backward=lambda ctx, g: g * 2 if g.sum() > 0 else 2 * g)
    words = "While computing batched gradients, got:"
    lists = new_function(
        torch,
        lambda x: x * 1,
        backward=lambda ctx, g: torch.as_tensor(g.tolist(), dtype=torch.float64),
    )
    one = vector(torch, 1.0, 1.0)
    return (
        check(lambda x: (x.sin() * x, x.sum()), x),
        check(lambda x, y: x * y, (x, vector(torch, 3.0, 4.0))),
        check(lambda z: z * z.conj(), z),
        check(torch.exp, x, fast_mode=True),
        torch.autograd.gradcheck(
            torch.exp, x, check_forward_ad=True, check_batched_forward_grad=True
        ),
        error(check, lists, x, words=words),
        error(check, decides, one, words=words),
        error(functools.partial(check, fast_mode=True), lists, x, words=words),
        error(functools.partial(check, raise_exception=False), lists, x),
        error(torch.autograd.gradcheck, lists, x),
    )


def wrong_when_batched():
    """The identity, multiplied by three in a batch."""
    same = {"backward": lambda ctx, g: g, "jvp": lambda ctx, t: t * 1}
    return new_function(
        jaxgrad, lambda x: x * 1, vmap=lambda info, dims, x: (x * 3, dims[0]), **same
    )


@pytest.mark.row("L08")
@pytest.mark.slow
@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_rule_that_is_wrong_only_in_a_batch(fast_mode):
    # PyTorch's check does not reach a Function's own vmap rule
    inner, x = wrong_when_batched(), vector(jaxgrad)
    rules = {"backward": lambda ctx, g: inner(g), "jvp": lambda ctx, t: inner(t)}
    outer = new_function(jaxgrad, lambda x: x * 1, **rules)
    check = functools.partial(gradcheck, outer, x, fast_mode=fast_mode, check_forward_ad=True)
    assert check()
    with pytest.raises(RuntimeError, match=f"For output 0 and input 0:\n\n{BATCHED}"):
        check(check_batched_grad=True)
    with pytest.raises(RuntimeError, match=f"input 0 in forward mode:\n\n{BATCHED}"):
        check(check_batched_forward_grad=True)


# ---- L09: tangents


@pytest.mark.row("L09")
@pytest.mark.slow
@as_torch
def test_gradcheck_of_forward_mode(torch):
    x, y, z = vector(torch), vector(torch, 3.0, 4.0), complex_vector(torch)
    check = functools.partial(torch.autograd.gradcheck, check_forward_ad=True)
    only = functools.partial(check, check_backward_ad=False)
    moved = new_function(torch, square, backward=scaled(2), jvp=scaled(3))
    right = new_function(torch, square, backward=scaled(2), jvp=scaled(2))
    pulled = new_function(torch, square, backward=scaled(3), jvp=scaled(2))
    return (
        check(lambda x, y: (x * y, x.sum(), y.exp()), (x, y)),
        check(lambda x: x[0:1], x),
        check(lambda z: z * z.conj(), z),
        check(right, x),
        error(check, moved, x, words=FORWARD),
        error(only, moved, x, words=FORWARD),
        error(check, pulled, x, words=MISMATCH),
        only(pulled, x),
        torch.autograd.gradcheck(moved, x),
        error(functools.partial(check, fast_mode=True), moved, x, words=FORWARD),
        error(functools.partial(only, raise_exception=False), moved, x),
    )


def product_rules(undefined):
    """Rules of x * y; `undefined` multiplies the tangent where that of x is None."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
        ctx.set_materialize_grads(False)

    def backward(ctx, gradient):
        x, y = ctx.saved_tensors
        return (None, None) if gradient is None else (gradient * y, gradient * x)

    def jvp(ctx, first, second):
        x, y = ctx.saved_tensors
        if first is None:
            return second * x * undefined
        return first * y if second is None else first * y + second * x

    return {"setup_context": setup_context, "backward": backward, "jvp": jvp}


@pytest.mark.row("L09")
@as_torch("""
    True
    GradcheckError(
     "('Mismatch in tangent values for output with index: ', 0, ' when input: ', "
     "tensor([1., 2.], dtype=torch.float64, requires_grad=True), ' has an undefined "
     "tangent value. ', ' Got: ', tensor([0.6396, 1.5375], dtype=torch.float64), ' but "
     "expected: ', tensor([1.2791, 3.0750], dtype=torch.float64))")
    True
""")
def test_gradcheck_of_undefined_tangents(torch):
    inputs = vector(torch), vector(torch, 3.0, 4.0)
    check = functools.partial(torch.autograd.gradcheck, check_forward_ad=True)
    right = new_function(torch, lambda x, y: x * y, **product_rules(1))
    wrong = new_function(torch, lambda x, y: x * y, **product_rules(2))
    return (
        check(right, inputs),
        error(check, wrong, inputs, words="Mismatch in tangent values for output with index: "),
        check(wrong, inputs, check_undefined_grad=False),
    )


@pytest.mark.row("L09")
def test_undefined_tangents_are_said_to_be():
    rules = product_rules(1)
    rules["jvp"] = lambda ctx, first, second: first * ctx.saved_tensors[1] + second * 1.0
    with pytest.raises(TypeError) as raised:
        gradcheck(
            new_function(jaxgrad, lambda x, y: x * y, **rules),
            (vector(jaxgrad, 1.0, 1.0), vector(jaxgrad, 3.0, 4.0)),
            check_forward_ad=True,
        )
    assert raised.value.__notes__ == ["gradcheck: input 0 of Rule.apply had no tangent"]


@pytest.mark.row("L09")
def test_gradcheck_of_dtypes_in_forward_mode():
    # PyTorch also casts gradients and tangents, after which the check sees no difference
    x = vector(jaxgrad)
    loose = functools.partial(gradcheck, atol=1e-4, check_forward_ad=True)
    narrow = {"backward": lambda ctx, g: g.float(), "jvp": lambda ctx, t: t.float()}
    same = {"backward": lambda ctx, g: g * 1, "jvp": lambda ctx, t: t * 1}
    for name, said in (
        ("backward", "Gradient has dtype"),
        ("jvp", "Forward AD gradient has dtype"),
    ):
        wrong = new_function(jaxgrad, lambda x: x * 1, "Narrow", **(same | {name: narrow[name]}))
        with pytest.raises(RuntimeError, match=f"{said} mismatch: Narrow.{name} returned torch.fl"):
            loose(wrong, x, check_grad_dtypes=True)
        assert loose(wrong, x)
        assert wrong.__self__.backward in (narrow["backward"], same["backward"])
    right = new_function(jaxgrad, lambda x: x * 1, **same)
    assert loose(lambda x: right(x) * x, x, check_grad_dtypes=True)


@pytest.mark.row("L09")
def test_without_jvp_the_tangent_is_derived():
    # PyTorch: NotImplementedError
    derived = new_function(jaxgrad, square, backward=scaled(2))
    assert gradcheck(derived, vector(jaxgrad), check_forward_ad=True)
    wrong = new_function(jaxgrad, square, backward=scaled(3))
    with pytest.raises(RuntimeError, match=FORWARD):
        gradcheck(wrong, vector(jaxgrad), check_forward_ad=True, check_backward_ad=False)


@pytest.mark.row("L09")
@as_torch("""
    True
    RuntimeError(
     "A custom Function's forward is returning a view (or an input as-is) but the jvp "
     'is not returning a view.')
    True
""")
def test_gradcheck_of_views_in_forward_mode(torch):
    same = {"backward": lambda ctx, g: g, "jvp": lambda ctx, t: t.view_as(t)}
    view = new_function(torch, lambda x: x.view_as(x), **same)
    wrong = new_function(torch, lambda x: x.view_as(x), **(same | {"jvp": lambda ctx, t: t * 1}))
    check = functools.partial(torch.autograd.gradcheck, check_forward_ad=True)
    said = "forward is returning a view (or an input as-is) but the jvp is not returning a view"
    x = vector(torch)
    return check(view, x), error(check, wrong, x, words=said), check(lambda x: x.t(), x)


# ---- L10: fast mode


@pytest.mark.row("L10")
@pytest.mark.slow
@as_torch
def test_fast_mode_of_gradcheck(torch):
    x, y, z = vector(torch), vector(torch, 3.0, 4.0), complex_vector(torch)
    check = functools.partial(torch.autograd.gradcheck, fast_mode=True)
    wrong = new_function(torch, square, backward=scaled(3), jvp=scaled(3))
    both = functools.partial(check, check_forward_ad=True)
    return (
        check(torch.exp, x),
        both(lambda x, y: (x * y, x.sum(), y.exp()), (x, y)),
        both(lambda z: z * z.conj(), z),
        both(torch.abs, z),
        check(torch.exp, torch.zeros(0, dtype=torch.float64, requires_grad=True)),
        error(check, wrong, x, words=MISMATCH),
        error(check, wrong, x, words="fast mode"),
        error(both, wrong, x, words=MISMATCH),
        error(check, lambda x, y: x * wrong(y), (x, y), words="output 0 with respect to input 1,"),
    )


@pytest.mark.row("L10")
@pytest.mark.slow
@pytest.mark.parametrize("forward", [False, True])
def test_cost_does_not_grow(forward):
    def calls(size):
        count = 0

        def function(x):
            nonlocal count
            count += 1
            return x.sin() * x

        x = jaxgrad.ones(size, dtype=jaxgrad.float64, requires_grad=True)
        assert gradcheck(function, x, fast_mode=True, check_forward_ad=forward)
        return count

    assert calls(3) == calls(500) <= 8


@pytest.mark.row("L10")
def test_slow_mode_says_where():
    wrong, x = new_function(jaxgrad, square, backward=scaled(3)), vector(jaxgrad)
    with pytest.raises(RuntimeError) as fast:
        gradcheck(wrong, x, fast_mode=True)
    with pytest.raises(RuntimeError) as slow:
        gradcheck(wrong, x)
    assert str(fast.value).endswith(str(slow.value))


@pytest.mark.row("L10")
def test_a_gradient_that_is_not_linear():
    # right for gradients of 1, as slow mode's rows are
    def backward(ctx, gradient):
        return scaled(2)(ctx, gradient.clamp(0, 1))

    odd, x = new_function(jaxgrad, square, backward=backward), vector(jaxgrad)
    with pytest.raises(RuntimeError, match=r"Backward of Rule\.apply is not linear"):
        gradcheck(odd, x)
    with pytest.raises(RuntimeError, match="a derivative that is not linear in the direction"):
        gradcheck(odd, x, fast_mode=True)


# ---- L11: complex numbers


def with_conjugate(ctx, direction):
    return ctx.saved_tensors[0].conj() * direction * 2


def parts_apart(real, imaginary):
    """A rule of the identity that multiplies the two parts."""
    return lambda ctx, direction: direction.real * real + direction.imag * imaginary * 1j


@pytest.mark.row("L11")
@pytest.mark.slow
@as_torch
def test_gradcheck_of_complex_numbers(torch):
    x, z = vector(torch), complex_vector(torch)
    check = functools.partial(torch.autograd.gradcheck, check_forward_ad=True)
    fast = functools.partial(check, fast_mode=True)
    one = lambda z: z * 1  # noqa: E731
    right = new_function(torch, square, backward=with_conjugate, jvp=scaled(2))
    without = new_function(torch, square, backward=scaled(2), jvp=scaled(2))
    too_many = new_function(torch, square, backward=with_conjugate, jvp=with_conjugate)
    pulled = new_function(torch, one, backward=parts_apart(1, 2), jvp=parts_apart(1, 1))
    pulled_real = new_function(torch, one, backward=parts_apart(2, 1), jvp=parts_apart(1, 1))
    moved = new_function(torch, one, backward=parts_apart(1, 1), jvp=parts_apart(1, 2))
    moved_real = new_function(torch, one, backward=parts_apart(1, 1), jvp=parts_apart(2, 1))
    outputs, inputs = f"{IMAGINARY} outputs only, ", f"{IMAGINARY} inputs only, "
    real = "While considering the real part of complex"
    return (
        [
            mode(f, z)
            for f in (torch.exp, torch.abs, right, lambda z: z * z.conj())
            for mode in (check, fast)
        ],
        [
            mode(f, x)
            for f in (lambda x: x * (1 + 2j), lambda x: (x * 1j).real * x)
            for mode in (check, fast)
        ],
        check(lambda z, x: (z * x, x.sin(), z.real), (z, x)),
        error(check, without, z, words=f"{outputs}{MISMATCH}"),
        error(fast, without, z, words="fast mode"),
        error(check, too_many, z, words=f"{inputs}{FORWARD}"),
        error(check, pulled, z, words=f"{outputs}{MISMATCH}"),
        error(check, pulled_real, z, words=f"{real} outputs only, {MISMATCH}"),
        error(check, moved, z, words=f"{inputs}{FORWARD}"),
        error(check, moved_real, z, words=f"{real} inputs only, {FORWARD}"),
    )


@pytest.mark.row("L11")
def test_a_conjugate_too_few_is_called_so():
    for rules in ({"backward": scaled(2)}, {"backward": with_conjugate, "jvp": with_conjugate}):
        wrong = new_function(jaxgrad, square, **rules)
        with pytest.raises(RuntimeError, match="is conjugated where the numerical one is not"):
            gradcheck(wrong, complex_vector(jaxgrad), check_forward_ad=True)


# ---- L14: second derivatives


@pytest.mark.row("L14")
@pytest.mark.slow
@as_torch
def test_gradgradcheck_of_second_derivatives(torch):
    x, y, z = vector(torch), vector(torch, 3.0, 4.0), complex_vector(torch)
    twice = torch.autograd.gradgradcheck
    forward = functools.partial(twice, check_fwd_over_rev=True)

    def constant(ctx, gradient):
        return 3 * ctx.saved_tensors[0].detach() ** 2 * gradient

    first = new_function(torch, cube, backward=constant)
    return (
        twice(cube, x),
        twice(cube, x, y),
        twice(cube, (x,), (y,)),
        twice(cube, x, torch.ones(2, dtype=torch.float64)),
        twice(cube, x, gen_non_contig_grad_outputs=True),
        twice(cube, x, fast_mode=True, check_batched_grad=True),
        twice(lambda x: x * 2, x),
        twice(lambda x, y: (x * y, x + y), (x, y)),
        twice(lambda x, n: x**n, (x, 3)),
        twice(lambda x: (x * x, x.long()), x),
        twice(lambda x, y: x**3, (x, y)),
        forward(lambda x, y: (x * y.sin(), x), (x, y)),
        forward(lambda z: z * z.conj(), z),
        torch.autograd.gradcheck(first, x),
        error(twice, first, x, words=MISMATCH),
        error(functools.partial(twice, fast_mode=True), first, x, words=MISMATCH),
        error(functools.partial(twice, raise_exception=False), first, x),
        error(twice, cube, x, vector(torch, 1.0, 2.0, 3.0), words="Mismatch in shape: grad_output"),
        error(twice, cube, torch.ones(2, dtype=torch.float64)),
        error(twice, cube, leaf(torch, 1.0, dtype=torch.float64).expand(2)),
        x.grad,
    )


@pytest.mark.row("L14")
@as_torch("""
    'GradcheckError'
    False
""")
def test_gradgradcheck_of_once_differentiable(torch):
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return 3 * ctx.saved_tensors[0] ** 2 * gradient

    once = new_function(torch, cube, backward=backward)
    twice = functools.partial(torch.autograd.gradgradcheck, once, vector(torch))
    return error(twice)["error"], twice(raise_exception=False)


@pytest.mark.row("L14")
def test_nothing_to_differentiate():
    # PyTorch calls the function without arguments
    x = vector(jaxgrad)
    assert gradgradcheck(lambda x: jaxgrad.ones(2), x)
    with pytest.raises(RuntimeError, match="Numerical gradient for function expected to be zero"):
        gradgradcheck(lambda x: x.detach() * 2, x)


def wrong_inside(rule):
    """x ** 3 whose first derivatives are right but contain an identity with a wrong `rule`."""
    rules = {"backward": lambda ctx, g: g * 1, "jvp": lambda ctx, t: t * 1}
    rules |= {rule: lambda ctx, direction: direction * 5}
    inner = new_function(jaxgrad, lambda x: x * 1, "Inner", **rules)

    def slope(ctx, direction):
        return inner(3 * ctx.saved_tensors[0] ** 2) * direction

    def plain(ctx, direction):
        return 3 * ctx.saved_tensors[0] ** 2 * direction

    return slope, plain


@pytest.mark.row("L14")
@pytest.mark.slow
@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("outer", "inner", "rule"),
    [
        ("reverse", "reverse", ("backward", "backward")),
        ("forward", "reverse", ("backward", "jvp")),
        ("reverse", "forward", ("jvp", "backward")),
        ("forward", "forward", ("jvp", "jvp")),
    ],
)
def test_each_of_the_four_nestings(outer, inner, rule, fast_mode):
    where, wrong = rule
    slope, plain = wrong_inside(wrong)
    rules = {"backward": plain, "jvp": plain} | {where: slope}
    function, x = new_function(jaxgrad, cube, **rules), vector(jaxgrad)
    assert gradcheck(function, x, check_forward_ad=True)
    with pytest.raises(RuntimeError, match=f"{outer} over {inner}: ") as raised:
        gradgradcheck(function, x, check_nested=True, fast_mode=fast_mode)
    mode = FORWARD if outer == "forward" else MISMATCH
    assert mode in str(raised.value) and "Rule.apply" in str(raised.value)
    others = {"check_fwd_over_rev": outer == "reverse" or inner == "forward"}
    if (outer, inner) != ("reverse", "reverse"):
        assert gradgradcheck(function, x, fast_mode=fast_mode, **others)
    right = new_function(jaxgrad, cube, backward=plain, jvp=plain)
    assert gradgradcheck(right, x, check_nested=True, fast_mode=fast_mode)


@pytest.mark.row("L14")
@pytest.mark.slow
def test_all_nestings_of_what_is_right():
    x, y, z = vector(jaxgrad), vector(jaxgrad, 3.0, 4.0), complex_vector(jaxgrad)
    nested = functools.partial(gradgradcheck, check_nested=True)
    assert nested(lambda x, y: (x.sin() * y, x.exp() @ y), (x, y), fast_mode=True)
    assert nested(lambda x, y: x * 2 + y.detach(), (x, y), fast_mode=True)
    assert nested(lambda z: z * z.conj() * z, z, fast_mode=True)
    assert nested(lambda x: x.sin() * x, x)


# ---- L16: the adjoint test


@pytest.mark.row("L16")
@pytest.mark.slow
@pytest.mark.parametrize("fast_mode", [False, True])
def test_the_adjoint_test_compares_both_modes(fast_mode):
    # each right for one element at a time
    x = vector(jaxgrad)
    check = functools.partial(gradcheck, check_forward_ad=True, fast_mode=fast_mode)
    odd = lambda ctx, direction: scaled(2)(ctx, direction.clamp(-1, 1))  # noqa: E731
    for rules in ({"backward": odd, "jvp": scaled(2)}, {"backward": scaled(2), "jvp": odd}):
        function = new_function(jaxgrad, square, **rules)
        said = "fast mode" if fast_mode else r"The adjoint \(dot-product\) test <u, J v> = <J\^T u"
        with pytest.raises(RuntimeError, match=said) as raised:
            check(function, x)
        assert "Rule.apply" in str(raised.value)
    right = new_function(jaxgrad, square, backward=scaled(2), jvp=scaled(2))
    assert check(right, x) and check(lambda z: z * z.conj() * right(z).real, vector(jaxgrad))
    assert check(lambda z, x: (z * x, z.abs()), (complex_vector(jaxgrad), x))


@pytest.mark.row("L16")
def test_only_where_both_modes_are_checked():
    odd = lambda ctx, direction: scaled(2)(ctx, direction.clamp(-1, 1))  # noqa: E731
    function, x = new_function(jaxgrad, square, backward=scaled(2), jvp=odd), vector(jaxgrad)
    modes = {"check_forward_ad": True, "check_backward_ad": True}
    for mode in modes:
        assert gradcheck(function, x, **(modes | {mode: False}))


# ---- what is checked does not depend on how often


def test_a_check_that_passed_passes_again():
    count = itertools.count()
    x = vector(jaxgrad)
    seen = []

    def function(x):
        next(count)
        seen.append(x.tolist())
        return x.sin()

    runs = []
    for _ in range(2):
        seen.clear()
        assert gradcheck(function, x, fast_mode=True, check_forward_ad=True)
        runs.append(list(seen))
    assert runs[0] == runs[1]
