"""What a Function's `jvp` may return, and Functions that return a tensor twice."""

import pytest
from helpers.as_torch import as_torch, error, leaf

import jaxgrad
import jaxgrad.autograd.forward_ad as fwAD


def new_function(torch, forward, jvp=None, backward=None):
    rules = {"forward": forward, "jvp": jvp, "backward": backward}
    members = {name: staticmethod(rule) for name, rule in rules.items() if rule is not None}
    return type("Rule", (torch.autograd.Function,), members)


def along(torch, function, values=(1.0, 2.0, 3.0, 4.0), write=None):
    """The results' tangents for the tangent (1, 2, ...), then the argument's, and its value."""
    forward_ad = torch.autograd.forward_ad
    x = torch.tensor(values, dtype=torch.float64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone(), torch.arange(1.0, len(values) + 1).double())
        results = function(dual)
        results = results if isinstance(results, tuple) else (results,)
        if write is not None:
            write(results[0])
        tangents = [forward_ad.unpack_dual(result).tangent for result in results]
        return tangents, forward_ad.unpack_dual(dual).tangent, dual.detach()


# ---- writes in place


def doubles(ctx, x):
    return x.mul_(2)


@as_torch("""
    RuntimeError(
     "A custom Function's forward is returning a view (or an input as-is) but the jvp "
     'is not returning a view.')
""")
def test_a_write_without_mark_dirty(torch):
    rule = new_function(torch, doubles, lambda ctx, t: t.mul_(2))
    return error(along, torch, rule.apply)


@as_torch("""
    [[tensor([2.0, 4.0, 6.0, 8.0], dtype=float64)],
     tensor([2.0, 4.0, 6.0, 8.0], dtype=float64),
     tensor([2.0, 4.0, 6.0, 8.0], dtype=float64)]
    [[tensor([2.0, 4.0], dtype=float64)],
     tensor([2.0, 4.0, 3.0, 4.0], dtype=float64),
     tensor([2.0, 4.0, 3.0, 4.0], dtype=float64)]
""")
def test_a_write_with_mark_dirty(torch):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    rule = new_function(torch, forward, lambda ctx, t: t.mul_(2))
    return along(torch, rule.apply), along(torch, lambda x: rule.apply(x[:2]))


def test_the_tangent_of_a_written_argument_may_be_a_new_tensor():  # PyTorch raises
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    rule = new_function(jaxgrad, forward, lambda ctx, t: t * 2)
    (tangent,), whole, value = along(jaxgrad, lambda x: rule.apply(x[:2]))
    assert tangent.tolist() == [2, 4] and whole.tolist() == [2, 4, 3, 4]
    assert value.tolist() == [2, 4, 3, 4]


# ---- views


@pytest.mark.slow
@as_torch
def test_views_whose_jvp_returns_views(torch):
    told = []
    for jvp in (
        lambda ctx, t: t.narrow(0, 0, 2),
        lambda ctx, t: t[:2],
        lambda ctx, t: t.view(-1)[:2],
    ):
        rule = new_function(torch, lambda ctx, x: x.narrow(0, 0, 2), jvp)
        for base in (lambda x: x, lambda x: x.view_as(x), lambda x: x[:3]):

            def function(x, rule=rule, base=base):
                return rule.apply(base(x))

            told.append(along(torch, function))
            # a write to the view changes the tangent of the argument
            told.append(along(torch, function, write=lambda y: y.mul_(10)))
    return told


@as_torch
def test_views_whose_jvp_returns_something_else(torch):
    told = []
    for jvp in (
        lambda ctx, t: t.narrow(0, 0, 2).clone(),
        lambda ctx, t: t.narrow(0, 0, 2).clone().view(2),
        lambda ctx, t: t.narrow(0, 0, 2) * 1,
    ):
        rule = new_function(torch, lambda ctx, x: x.narrow(0, 0, 2), jvp)
        told.append(error(along, torch, rule.apply))
        told.append(error(along, torch, lambda x, rule=rule: rule.apply(x.view_as(x))))
    return told


@as_torch("'RuntimeError'")
def test_a_jvp_that_returns_a_view_of_another_part(torch):
    rule = new_function(torch, lambda ctx, x: x[:2], lambda ctx, t: t[1:3])
    return error(along, torch, rule.apply, words="")["error"]


@as_torch("""
    ['RuntimeError', 'RuntimeError', 'RuntimeError', 'RuntimeError']
    [[tensor([[1.0, 3.0], [2.0, 4.0]], dtype=float64)],
     tensor([1.0, 2.0, 3.0, 4.0], dtype=float64),
     tensor([1.0, 2.0, 3.0, 4.0], dtype=float64)]
""")
def test_a_jvp_that_returns_a_view_in_another_order(torch):
    def square(x):
        return x.view(2, 2)

    rules = (
        (lambda ctx, x: x.t(), lambda ctx, t: t.view_as(t)),
        (lambda ctx, x: x, lambda ctx, t: t.t()),
        (lambda ctx, x: x.t(), lambda ctx, t: t),
        (lambda ctx, x: x[:1].expand(2, 2), lambda ctx, t: t),
    )
    told = []
    for forward, jvp in rules:
        rule = new_function(torch, forward, jvp)
        told.append(error(along, torch, lambda x, rule=rule: rule.apply(square(x)), words=""))
    turned = new_function(torch, rules[0][0], lambda ctx, t: t.t())
    return [refusal["error"] for refusal in told], along(torch, lambda x: turned.apply(square(x)))


def test_a_view_without_jvp_has_the_transpose_of_backward():
    def backward(ctx, gradient):
        return jaxgrad.cat([gradient * 10, gradient * 0])

    rule = new_function(jaxgrad, lambda ctx, x: x[:2], backward=backward)
    tangents, whole, _ = along(jaxgrad, rule.apply, write=lambda y: y.mul_(3))
    assert tangents[0].tolist() == [30, 60] and whole.tolist() == [1, 2, 3, 4]


@as_torch
def test_new_tensors_whose_jvp_returns_views(torch):
    told = []
    for jvp in (lambda ctx, t: t.view_as(t), lambda ctx, t: t, lambda ctx, t: (t * 2).view_as(t)):
        told.append(along(torch, new_function(torch, lambda ctx, x: x.clone(), jvp).apply))
    return told


@as_torch("""
    [tensor([6.0], dtype=float64)]
    tensor([1.0, 2.0, 3.0, 4.0], dtype=float64)
    tensor([1.0, 2.0, 3.0, 4.0], dtype=float64)
""")
def test_a_view_of_an_intermediate_result(torch):
    rule = new_function(torch, lambda ctx, x: (x * 2)[:1], lambda ctx, t: (t * 2)[:1])
    return along(torch, rule.apply, write=lambda y: y.mul_(3))


def test_a_view_of_an_intermediate_result_whose_tangent_is_none():
    rule = new_function(jaxgrad, lambda ctx, x: (x * 2)[:1], lambda ctx, t: t[:1] * 2)
    results = along(jaxgrad, rule.apply, write=lambda y: y.mul_(3))
    assert [value.tolist() for value in results[0]] == [[6]] and results[1].tolist() == [1, 2, 3, 4]


def test_a_view_of_an_argument_without_tangent():
    rule = new_function(jaxgrad, lambda ctx, x, z: (x[:1], z * 2), lambda ctx, t, u: (t[:1], u * 2))
    with fwAD.dual_level():
        x = jaxgrad.tensor([1.0, 2.0])
        z = fwAD.make_dual(jaxgrad.tensor([3.0, 4.0]), jaxgrad.tensor([5.0, 6.0]))
        y, w = rule.apply(x, z)
        y.mul_(z[:1])
        assert fwAD.unpack_dual(y).tangent.tolist() == [5.0]
        assert fwAD.unpack_dual(x).tangent.tolist() == [5.0, 0.0]  # the memory of y
        assert fwAD.unpack_dual(w).tangent.tolist() == [10.0, 12.0]


@as_torch
def test_a_forward_that_does_nothing(torch):
    def forward(ctx, x):
        return x

    rule = new_function(torch, forward, lambda ctx, t: t.view_as(t))
    told = [along(torch, rule.apply), along(torch, rule.apply, write=lambda y: y.mul_(2))]
    for jvp in (lambda ctx, t: t * 2, lambda ctx, t: t.clone(), lambda ctx, t: t.mul_(1)):
        told.append(error(along, torch, new_function(torch, forward, jvp).apply))
    return told


def test_a_forward_that_does_nothing_may_return_the_tangent_itself():  # PyTorch raises
    rule = new_function(jaxgrad, lambda ctx, x: x, lambda ctx, t: t)
    tangents, whole, value = along(jaxgrad, rule.apply, write=lambda y: y.mul_(3))
    assert tangents[0].tolist() == whole.tolist() == [3, 6, 9, 12] == [3 * v for v in (1, 2, 3, 4)]
    assert value.tolist() == [3, 6, 9, 12]


@as_torch("""
    {'view, new tangent': [tensor([1.0, 2.0]), tensor([2.0, 4.0])],
     'view, scaled tangent': [tensor([1.0, 2.0]), tensor([6.0, 12.0])],
     'new, view': [tensor([1.0, 2.0]), tensor([2.0, 4.0])],
     'argument': [tensor([1.0, 2.0]), tensor([2.0, 4.0])]}
""")
def test_views_under_func_jvp(torch):
    rules = {
        "view, new tangent": (lambda x: x.view_as(x), lambda ctx, t: t.clone()),
        "view, scaled tangent": (lambda x: x.view_as(x), lambda ctx, t: t * 3),
        "new, view": (lambda x: x.clone(), lambda ctx, t: t.view_as(t)),
        "argument": (lambda x: x, lambda ctx, t: t),
    }
    x, told = torch.tensor([1.0, 2.0]), {}
    for name, (forward, jvp) in rules.items():
        rule = new_function(torch, forward, jvp)
        rule.setup_context = staticmethod(lambda ctx, inputs, output: None)
        told[name] = torch.func.jvp(rule.apply, (x,), (x * 2,))
    return told


# ---- outputs without derivative


@as_torch
def test_tangents_of_outputs_without_derivative(torch):
    def forward(ctx, x):
        constant = x * 3
        ctx.mark_non_differentiable(constant)
        return x * 2, constant, x.long(), 5

    told, results = (
        [],
        {
            "none": lambda ctx, t: (t * 2, None, None, None),
            "of a constant": lambda ctx, t: (t * 2, t, None, None),
            "zeros of a constant": lambda ctx, t: (t * 2, t * 0, None, None),
            "of integers": lambda ctx, t: (t * 2, None, t, None),
            "of a number": lambda ctx, t: (t * 2, None, None, t),
            "too few": lambda ctx, t: (t * 2, None, None),
        },
    )
    words = "Function's jvp returned a gradient at position"
    for name, jvp in results.items():
        rule = new_function(torch, forward, jvp)
        said = error(lambda rule=rule: along(torch, lambda x: rule.apply(x)[:3]))
        if said["says"].startswith(words):
            said["words"] = words
        told.append([name, said])
    return told


@pytest.mark.parametrize("wrong", [lambda t: t.to(jaxgrad.complex128), lambda t: t.long()])
def test_tangents_of_dtypes_that_do_not_fit(wrong):
    rule = new_function(jaxgrad, lambda ctx, x: x * 2, lambda ctx, t: wrong(t))
    with pytest.raises(RuntimeError, match=r"returned a tangent of torch\.\w+ for output 0"):
        along(jaxgrad, rule.apply)


def test_compiled_and_nested_calls_check_their_tangents_too():
    rule = new_function(jaxgrad, lambda ctx, x: x[:2], lambda ctx, t: t[:2].clone())
    call = jaxgrad.jit(lambda x: along(jaxgrad, rule.apply)[0][0])
    with pytest.raises(RuntimeError, match="the jvp is not returning a view"):
        call(jaxgrad.ones(4))
    right = new_function(jaxgrad, lambda ctx, x: x[:2], lambda ctx, t: t[:2])

    @jaxgrad.jit
    def written(x, t):
        with fwAD.dual_level():
            dual = fwAD.make_dual(x.clone(), t)
            right.apply(dual).mul_(10)
            return fwAD.unpack_dual(dual).tangent

    assert written(jaxgrad.ones(3), jaxgrad.tensor([1.0, 2.0, 3.0])).tolist() == [10, 20, 3]


# ---- a tensor that is returned twice


def twice(ctx, x):
    y = x * 2
    return y, y


@as_torch
def test_a_tensor_returned_twice_is_one_tensor(torch):
    rule = new_function(torch, twice, backward=lambda ctx, a, b: a * 2 + b * 20)
    x = leaf(torch, 1.0, 2.0, dtype=torch.float64)
    a, b = rule.apply(x)
    same = [a is b, a.output_nr, a._is_view()]
    sums = (a, b, a + b, a * 3 + b)
    gradients = [torch.autograd.grad(output.sum(), x, retain_graph=True)[0] for output in sums]
    seen = []
    a.register_hook(lambda g: seen.append(g.tolist()))
    (b * 2).sum().backward(retain_graph=True)
    a.mul_(3)
    return same, gradients, seen, x.grad, b.detach(), torch.autograd.grad(b.sum(), x)[0]


@as_torch("""
    [[True, False, True, False, True],
     [False, True, False, True, False],
     [True, False, True, False, True],
     [False, True, False, True, False],
     [True, False, True, False, True]]
    [10000.0, 1000.0, 10000.0, 1000.0, 10000.0]
""")
def test_tensors_returned_several_times(torch):
    def forward(ctx, x):
        y, z = x * 2, x * 3
        ctx.save_for_backward(y)
        return y, z, y, z, y

    def backward(ctx, *grads):
        (y,) = ctx.saved_tensors
        return sum(g * 10**i for i, g in enumerate(grads)) * y / y

    x = leaf(torch, 1.0, dtype=torch.float64)
    results = new_function(torch, forward, backward=backward).apply(x)
    slopes = [torch.autograd.grad(result, x, retain_graph=True)[0].item() for result in results]
    return [[a is b for a in results] for b in results], slopes


@as_torch("""
    [[True, True, True, False],
     [True, False, False, False],
     [False, False, True, True],
     [False, False, True, True]]
    True
    False
""")
def test_other_tensors_returned_twice(torch):
    def dirty(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x

    def constant(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y, y

    def backward(ctx, a, b):
        return a * 2 + b * 20

    x = leaf(torch, 1.0, 2.0, dtype=torch.float64)
    told = []
    for forward in (dirty, constant, lambda ctx, x: (x, x), lambda ctx, x: (x[:1], x[:1])):
        y = x * 1
        a, b = new_function(torch, forward, backward=backward).apply(y)
        told.append([a is b, a is y, a.requires_grad, a._is_view()])
    with torch.no_grad():
        a, b = new_function(torch, twice, backward=backward).apply(x)
    return told, a is b, a.requires_grad


def test_a_tensor_returned_twice_by_a_compiled_function():
    rule = new_function(jaxgrad, twice, backward=lambda ctx, a, b: a * 2 + b * 20)
    x = leaf(jaxgrad, 1.0, 2.0)
    a, b = jaxgrad.jit(rule.apply)(x)
    assert a is b and a.tolist() == [2.0, 4.0]
    assert jaxgrad.autograd.grad((a * 3 + b).sum(), x)[0].tolist() == [80.0, 80.0]


def test_the_tangent_of_a_tensor_returned_twice():  # PyTorch fails with an internal error
    rule = new_function(jaxgrad, twice, lambda ctx, t: (t * 2, t * 2))
    tangents = along(jaxgrad, rule.apply)[0]
    assert tangents[0] is not None and tangents[0].tolist() == tangents[1].tolist() == [2, 4, 6, 8]
