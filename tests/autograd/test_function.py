"""`autograd.Function`, row by row of PyTorch's behaviour."""

import warnings

import pytest
from as_torch import as_torch, error, leaf, warned

import jaxgrad


def function(torch, forward, backward=None, **members):
    """A Function `F` of these static methods."""
    members = {name: staticmethod(method) for name, method in members.items()}
    members["forward"] = staticmethod(forward)
    if backward is not None:
        members["backward"] = staticmethod(backward)
    return type("F", (torch.autograd.Function,), members)


def double(torch, **members):
    """Twice its input, with a gradient that is seven times too large."""
    return function(torch, lambda ctx, x: x * 2, lambda ctx, grad: grad * 14, **members)


def square(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    return function(torch, forward, backward)


def giving(torch, gradients, inputs=1):
    """A Function of so many inputs, the sum of them, whose backward gives what is told."""
    return function(torch, lambda ctx, *x: sum(x), lambda ctx, grad: gradients(grad))


def noting(torch, note, outputs=1):
    """A Function whose backward notes what it is given."""

    def forward(ctx, x):
        note.append("forward")
        return x * 1 if outputs == 1 else tuple(x * (i + 1) for i in range(outputs))

    def backward(ctx, *grads):
        note.append([None if grad is None else grad.tolist() for grad in grads])
        return sum(grad for grad in grads if grad is not None)

    return function(torch, forward, backward)


# ---- the class


@as_torch
def test_G01_a_function_and_its_gradient(torch):
    x = leaf(torch, 2.0, 3.0)
    y = double(torch).apply(x)
    y.sum().backward()
    return y, x.grad, y.is_leaf


@as_torch
def test_G01_without_forward(torch):
    class F(torch.autograd.Function):
        pass

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

    x = leaf(torch, 2.0)
    return error(F.apply, x), error(F.apply), error(Both.apply, x)


@as_torch
def test_G02_without_backward(torch):
    F = function(torch, lambda ctx, x: x * 2)
    x = leaf(torch, 2.0)
    y = F.apply(x)
    return y, error(y.backward), torch.is_grad_enabled(), x.grad


@as_torch
def test_G03_vjp_is_another_name_of_backward(torch):
    F = function(torch, lambda ctx, x: x * 2, vjp=lambda ctx, grad: grad * 7)
    x = leaf(torch, 2.0)
    F.apply(x).backward()
    return x.grad


@as_torch
def test_G03_both_vjp_and_backward(torch):
    F = double(torch, vjp=lambda ctx, grad: grad * 7)
    x = leaf(torch, 2.0)
    y = F.apply(x)
    return error(y.backward)


@as_torch
def test_G03_inherited(torch):
    F = double(torch)

    class Sub(F):
        @staticmethod
        def forward(ctx, x):
            return x * 3

    x = leaf(torch, 2.0)
    y = Sub.apply(x)
    y.backward()
    return y, x.grad, y.grad_fn.name()


@as_torch
def test_G04_grad_mode_in_forward(torch):
    """Edge case 21."""
    seen = []

    def forward(ctx, x):
        y = x * 2
        with torch.enable_grad():
            z = x * 3
            seen.append((torch.is_grad_enabled(), z.requires_grad, z.grad_fn is not None))
        seen.append((torch.is_grad_enabled(), x.requires_grad, y.requires_grad, y.is_leaf))
        return y

    F = function(torch, forward, lambda ctx, grad: grad * 5)
    x = leaf(torch, 2.0)
    y = F.apply(x)
    y.backward()
    return seen, x.grad, torch.is_grad_enabled()


@as_torch
def test_G04_a_gradient_taken_in_forward(torch):
    def forward(ctx, x):
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad((inner**3).sum(), inner)
        ctx.save_for_backward(slope)
        return x**3

    F = function(torch, forward, lambda ctx, grad: grad * ctx.saved_tensors[0])
    x = leaf(torch, 2.0, 3.0)
    F.apply(x).sum().backward()
    return x.grad


@as_torch
def test_G04_what_was_recorded_in_forward_is_not_the_outputs_history(torch):
    def forward(ctx, x):
        with torch.enable_grad():
            return x * 3

    F = function(torch, forward, lambda ctx, grad: grad * 5)
    x = leaf(torch, 2.0)
    y = F.apply(x)
    y.backward()
    return y, x.grad, y.grad_fn.name()


@as_torch
def test_G05_grad_mode_in_backward(torch):
    seen = []

    def backward(ctx, grad):
        seen.append((torch.is_grad_enabled(), grad.requires_grad))
        return grad * 2

    F = function(torch, lambda ctx, x: x * 2, backward)
    x = leaf(torch, 2.0)
    torch.autograd.grad(F.apply(x), x)
    torch.autograd.grad(F.apply(x), x, create_graph=True)
    torch.autograd.grad(F.apply(x), x, torch.ones(()).requires_grad_(), create_graph=True)
    return seen


@as_torch
def test_G05_second_derivatives(torch):
    x = leaf(torch, 2.0, 3.0)
    y = square(torch).apply(square(torch).apply(x)).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    return first, second, third


@as_torch
def test_G05_a_second_derivative_of_an_output_that_was_saved(torch):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    F = function(torch, forward, lambda ctx, grad: grad * ctx.saved_tensors[0])
    x = leaf(torch, 1.0, 2.0, dtype=torch.float64)
    (first,) = torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    return first, second, third


@as_torch
def test_G06_the_combined_style(torch):
    def forward(ctx, x, factor, *rest):
        ctx.factor = factor
        return x * factor + sum(rest)

    F = function(torch, forward, lambda ctx, grad: (grad * ctx.factor, None, None))
    x = leaf(torch, 2.0)
    y = F.apply(x, 3.0, 1.0)
    y.backward()
    return y, x.grad


@as_torch
def test_G06_arguments_by_name(torch):
    def run(*args, **kwargs):
        F = function(
            torch,
            lambda ctx, x, y, factor=3.0: x * y * factor,
            lambda ctx, grad: (grad * 2, grad * 5, None),
        )
        return F.apply(*args, **kwargs)

    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    run(x, y=y, factor=7.0).backward()
    run(y=y, x=x).backward()
    return x.grad, y.grad, error(lambda: run(x, y=y, other=1), words="'other'")


def test_G06_nothing_is_taken_by_name_alone():
    """A tensor that came so would silently have no gradient."""

    def forward(ctx, x, *, factor):
        return x * factor

    F = function(jaxgrad, forward, lambda ctx, grad: grad)
    x = leaf(jaxgrad, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'factor'"):
        F.apply(x, factor=x)


@as_torch
def test_G07_the_separate_style(torch):
    seen = []

    def forward(x, y):
        return x * y

    def setup_context(ctx, inputs, output):
        seen.append((torch.is_grad_enabled(), [each.requires_grad for each in inputs]))
        ctx.save_for_backward(*inputs)

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return y * grad, x * grad * 10

    F = function(torch, forward, backward, setup_context=setup_context)
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = F.apply(x, y)
    z.backward()
    return seen, z, x.grad, y.grad


@as_torch
def test_G07_arguments_by_name_and_defaults(torch):
    def run(*args, **kwargs):
        seen = []

        def forward(x, factor=3.0, shift=0.0):
            return x * factor + shift

        def setup_context(ctx, inputs, output):
            seen.append([len(inputs), *inputs[1:]])
            ctx.factor = inputs[1]

        def backward(ctx, grad):
            return grad * ctx.factor, None, None

        F = function(torch, forward, backward, setup_context=setup_context)
        x = leaf(torch, 2.0)
        y = F.apply(x, *args, **kwargs)
        y.backward()
        return seen, y, x.grad

    return run(), run(5.0), run(shift=1.0), run(factor=7.0), run(4.0, shift=1.0)


@as_torch
def test_G08_only_tensors_given_by_position_are_differentiated(torch):
    """Edge case 28."""
    x = leaf(torch, 2.0)

    def run(forward, *args):
        F = function(torch, forward, lambda ctx, *grads: (None,) * len(args))
        return F.apply(*args)

    found = [
        run(lambda ctx, several: several[0] * 2, [x]),
        run(lambda ctx, several: several[0] * 2, (x,)),
        run(lambda ctx, several: several["x"] * 2, {"x": x}),
    ]
    return found, [each.grad_fn is None for each in found]


@as_torch
def test_G08_a_list_beside_a_tensor(torch):
    def forward(ctx, x, several, named):
        return x * several[0] * named["factor"]

    F = function(torch, forward, lambda ctx, grad: (grad * 7, None, None))
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = F.apply(x, [y], {"factor": 2})
    z.backward()
    return z, x.grad, y.grad


@as_torch
def test_G09_without_an_input_that_requires_grad(torch):
    F = double(torch)
    x = leaf(torch, 2.0)
    plain = F.apply(torch.tensor(2.0))
    with torch.no_grad():
        off = F.apply(x)
    with torch.inference_mode():
        inference = F.apply(x)
    return plain, off, off.grad_fn, plain.grad_fn, inference, inference.is_inference()


@as_torch
def test_G09_what_is_kept_there(torch):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        seen.append((ctx.needs_input_grad, ctx.saved_tensors))
        return x * 2

    F = function(torch, forward, lambda ctx, grad: grad)
    F.apply(torch.ones(()))
    with torch.no_grad():
        F.apply(leaf(torch, 2.0))
    return seen


@as_torch
def test_G10_what_forward_may_return(torch):
    def run(result, *grads):
        def backward(ctx, *given):
            return sum(grad for grad in given if grad is not None)

        F = function(torch, lambda ctx, x: result(x), backward)
        x = leaf(torch, 2.0)
        return F.apply(x), x

    one, _ = run(lambda x: x * 2)
    pair, x = run(lambda x: (x * 2, x * 3))
    (pair[0] + 10 * pair[1]).backward()
    mixed, y = run(lambda x: (x * 2, 5, None, "word", x * 3))
    mixed[4].backward()
    listed, _ = run(lambda x: [x * 2, x * 3])
    nothing, _ = run(lambda x: None)
    single, z = run(lambda x: (x * 2,))
    single[0].backward()
    return one, pair, x.grad, mixed, y.grad, listed, nothing, single, z.grad, type(pair).__name__


@as_torch
def test_G10_gradients_for_what_is_no_tensor(torch):
    seen = []

    def backward(ctx, *grads):
        seen.append([None if grad is None else grad.tolist() for grad in grads])
        return grads[0]

    F = function(torch, lambda ctx, x: (x * 2, 5, None), backward)
    x = leaf(torch, 2.0)
    F.apply(x)[0].backward()
    return seen


@as_torch
def test_G10_a_list_or_a_dict_is_opaque(torch):
    x = leaf(torch, 2.0)
    listed = function(torch, lambda ctx, x: [x * 2], lambda ctx, grad: grad).apply(x)
    named = function(torch, lambda ctx, x: {"y": x * 2}, lambda ctx, grad: grad).apply(x)
    return listed[0].requires_grad, named["y"].requires_grad


@as_torch
def test_G11_an_input_returned_as_it_is(torch):
    x = leaf(torch, 2.0, 3.0)
    F = function(torch, lambda ctx, x: x, lambda ctx, grad: grad * 7)
    y = F.apply(x)
    y.sum().backward()
    return y is x, y, x.grad, y._base is x, y.grad_fn.name(), y._version, x._version


@as_torch
def test_G11_an_input_returned_without_a_gradient(torch):
    x = torch.ones(2)
    F = function(torch, lambda ctx, x, y: (x, y * 2), lambda ctx, g, h: (g, h))
    y = leaf(torch, 1.0, 2.0)
    same, other = F.apply(x, y)
    alone = F.apply(x, torch.ones(2))[0]
    return same is x, same, other, alone is x, alone, alone.grad_fn


def test_G11_one_tensor_returned_twice():
    """In PyTorch both are one tensor, the second output, which gets all of the gradient."""

    def forward(ctx, x):
        y = x * 2
        return y, y

    seen = []

    def backward(ctx, g, h):
        seen.append([g.tolist(), h.tolist()])
        return 2 * (g + h)

    x = leaf(jaxgrad, 2.0)
    a, b = function(jaxgrad, forward, backward).apply(x)
    (a * 3 + b * 5).backward()
    assert seen == [[3, 5]] and x.grad.item() == 16


@as_torch
def test_G11_an_input_returned_twice(torch):
    F = function(torch, lambda ctx, x: (x, x), lambda ctx, g, h: g + 10 * h)
    x = leaf(torch, 2.0)
    a, b = F.apply(x)
    (a * 3 + b * 5).backward()
    return x.grad, a is b


@as_torch
def test_G12_integer_outputs(torch):
    """Edge case 25."""
    seen = []

    def forward(ctx, x):
        return x.max(0)[0], x.argmax(0), x > 1

    def backward(ctx, *grads):
        seen.append([(str(grad.dtype), grad.tolist()) for grad in grads])
        return torch.ones(3) * grads[0]

    F = function(torch, forward, backward)
    x = leaf(torch, 1.0, 3.0, 2.0)
    value, index, mask = F.apply(x)
    value.backward()
    return value, index, mask, x.grad, seen, index.grad_fn, mask.is_leaf


@as_torch
def test_G12_integer_inputs(torch):
    def forward(ctx, x, index):
        ctx.index = index
        return x[index]

    def backward(ctx, grad):
        return torch.zeros(3).index_add(0, ctx.index, grad), None

    F = function(torch, forward, backward)
    x = leaf(torch, 1.0, 3.0, 2.0)
    y = F.apply(x, torch.tensor([0, 0, 2]))
    y.sum().backward()
    return y, x.grad


@as_torch
def test_G12_an_output_that_is_only_integer(torch):
    F = function(torch, lambda ctx, x: x.argmax(), lambda ctx, grad: None)
    y = F.apply(leaf(torch, 1.0, 3.0))
    return y, y.grad_fn


# ---- what backward returns


@as_torch
def test_G13_a_value_for_each_argument(torch):
    """Edge case 27."""

    def run(gradients, count=2):
        x = [leaf(torch, float(i + 1)) for i in range(count)]
        y = giving(torch, gradients).apply(*x)
        result = error(lambda: y.backward(retain_graph=True))
        return result, [each.grad for each in x], torch.is_grad_enabled()

    return [
        run(lambda g: g),
        run(lambda g: (g,)),
        run(lambda g: (g, g, g)),
        run(lambda g: ()),
        run(lambda g: (g, g, None)),
        run(lambda g: (g, g, None, None)),
        run(lambda g: (g, None), 1),
        run(lambda g: (g,), 1),
        run(lambda g: None, 1),
        run(lambda g: (None, g, g)),
    ]


@as_torch
def test_G13_arguments_that_are_no_tensors_count(torch):
    def run(gradients):
        F = function(torch, lambda ctx, x, factor: x * factor, lambda ctx, grad: gradients(grad))
        x = leaf(torch, 2.0)
        return error(F.apply(x, 3.0).backward), x.grad

    return [run(lambda g: g), run(lambda g: (g, None)), run(lambda g: (g, g))]


@as_torch
def test_G14_none_means_no_gradient(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    giving(torch, lambda g: (None, g)).apply(x, y).backward()
    z = leaf(torch, 2.0)
    giving(torch, lambda g: (None, g)).apply(z * 2, y).backward()
    return x.grad, y.grad, z.grad


@as_torch
def test_G14_none_through_a_chain_of_functions(torch):
    seen = []
    inner, outer = noting(torch, seen), giving(torch, lambda g: None)
    x = leaf(torch, 2.0)
    outer.apply(inner.apply(x)).backward()
    return seen, x.grad


@as_torch
def test_G14_none_under_grad(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = giving(torch, lambda g: (None, g)).apply(x, y)
    return (
        torch.autograd.grad(z, [x, y], retain_graph=True, allow_unused=True),
        error(lambda: torch.autograd.grad(z, [x, y], retain_graph=True)),
        torch.autograd.grad(z, [x, y], materialize_grads=True),
    )


@as_torch
def test_G15_what_a_gradient_must_be(torch):
    def run(gradients):
        x = leaf(torch, 2.0)
        return error(giving(torch, gradients).apply(x).backward), x.grad

    wrong = [lambda g: 1.5, lambda g: [g], lambda g: "word", lambda g: (1.5,), lambda g: {"x": g}]
    return [run(each) for each in wrong]


@as_torch
def test_G16_the_shape_of_a_gradient(torch):
    def run(shape, of, fits):
        x = torch.ones(of).requires_grad_()
        F = function(torch, lambda ctx, x: x.sum(), lambda ctx, g: torch.ones(shape))
        y = F.apply(x)
        return error(y.backward, words="" if fits else "invalid gradient at index 0"), x.grad

    fit = [((2, 3), (3,)), ((3,), (1,)), ((2, 3), ()), ((4, 2, 3), (2, 3)), ((2, 3), (1, 3))]
    misfit = [((3,), (2,)), ((2,), (2, 2)), ((1, 3), (2, 3)), ((), (2,)), ((3, 2), (3,))]
    return [run(*each, True) for each in fit], [run(*each, False) for each in misfit]


@as_torch
def test_G16_the_index_of_the_argument_that_a_gradient_does_not_fit(torch):
    def run(*shapes):
        x, y = torch.ones(2).requires_grad_(), torch.ones(2).requires_grad_()
        F = function(
            torch,
            lambda ctx, x, factor, y: x.sum() + y.sum(),
            lambda ctx, g: (torch.ones(shapes[0]), None, torch.ones(shapes[1])),
        )
        z = F.apply(x, 3, y)
        return error(z.backward)

    return run((2,), (3,)), run((3,), (2,))


@as_torch
def test_G17_the_dtype_of_a_gradient(torch):
    def run(dtype, of):
        x = torch.ones(2, dtype=of).requires_grad_()
        F = function(torch, lambda ctx, x: x.sum(), lambda ctx, g: torch.ones(2, dtype=dtype) * 2)
        F.apply(x).backward()
        return x.grad

    return [
        run(torch.float64, torch.float32),
        run(torch.int64, torch.float32),
        run(torch.float32, torch.float64),
        run(torch.float16, torch.float32),
        run(torch.bool, torch.float32),
    ]


@as_torch
def test_G17_complex(torch):
    def run(dtype, of):
        x = torch.ones(2, dtype=of).requires_grad_()

        def forward(ctx, x):
            return torch.ones(())

        F = function(torch, forward, lambda ctx, g: torch.ones(2, dtype=dtype) * 2)
        y = F.apply(x)
        words = "Expected isFloatingType(grad.scalar_type())"
        return error(y.backward, words="" if of.is_complex else words), x.grad

    return [
        run(torch.complex64, torch.float32),
        run(torch.complex64, torch.complex64),
        run(torch.float32, torch.complex64),
        run(torch.complex128, torch.complex64),
    ]


# ---- what is saved


@as_torch
def test_G18_saved_tensors(torch):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.save_for_backward(y)
        return x * y

    seen = []

    def backward(ctx, grad):
        seen.append([each.tolist() for each in ctx.saved_tensors])
        return grad, grad

    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    function(torch, forward, backward).apply(x, y).backward()
    return seen


@as_torch
def test_G18_what_may_be_saved(torch):
    def run(*values):
        def forward(ctx, x):
            ctx.save_for_backward(*values)
            return x * 2

        x = leaf(torch, 2.0)
        y = function(torch, forward, lambda ctx, grad: grad).apply(x)
        y.backward()
        return x.grad

    return [
        error(run, 3),
        error(run, torch.ones(2), "word"),
        error(run, [torch.ones(2)]),
        run(torch.ones(2)),
        run(),
    ]


@as_torch
def test_G19_none_may_be_saved(torch):
    def forward(ctx, x):
        ctx.save_for_backward(None, x, None)
        return x * 2

    seen = []

    def backward(ctx, grad):
        first, second, third = ctx.saved_tensors
        seen.append([first, second.tolist(), third])
        return grad

    x = leaf(torch, 2.0)
    function(torch, forward, backward).apply(x).backward()
    return seen


@as_torch
def test_G22_saved_tensors_as_they_come_back(torch):
    seen = []

    def forward(ctx, x, y):
        z = x * y
        ctx.save_for_backward(x, y, z)
        seen.append(len(ctx.saved_tensors))
        return z

    def backward(ctx, grad):
        saved = ctx.saved_tensors
        names = [each.grad_fn and each.grad_fn.name() for each in saved]
        seen.append((saved[0] is x, [each.requires_grad for each in saved], names))
        return grad, grad

    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = function(torch, forward, backward).apply(x, y * 1)
    z.backward()
    return seen


@as_torch
def test_G22_the_kind_of_saved_tensors(torch):
    seen = []

    def backward(ctx, grad):
        seen.append((type(ctx.saved_tensors).__name__, len(ctx.saved_tensors)))
        return grad

    x = leaf(torch, 2.0)
    function(torch, lambda ctx, x: x * 2, backward).apply(x).backward()
    return seen


@as_torch
def test_G22_once_freed(torch):
    x = leaf(torch, 2.0)
    y = square(torch).apply(x)
    node = y.grad_fn
    before = [each.tolist() for each in node.saved_tensors]
    y.backward()
    return before, error(lambda: node.saved_tensors), error(y.backward), x.grad


@as_torch
def test_G22_a_function_that_saves_nothing_can_run_again(torch):
    x = leaf(torch, 2.0)
    y = double(torch).apply(x)
    y.backward()
    y.backward()
    return x.grad


@as_torch
def test_G22_retained(torch):
    x = leaf(torch, 2.0)
    y = square(torch).apply(x)
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, error(y.backward)


@as_torch
def test_G23_attributes_of_ctx(torch):
    def forward(ctx, x, word):
        ctx.word, ctx.number, ctx.list = word, 3, [1, 2]
        return x * 2

    seen = []

    def backward(ctx, grad):
        seen.append((ctx.word, ctx.number, ctx.list, hasattr(ctx, "other")))
        return grad, None

    x = leaf(torch, 2.0)
    y = function(torch, forward, backward).apply(x, "word")
    y.backward()
    return seen, y.grad_fn.word, y.grad_fn.number


@as_torch
def test_G24_save_for_forward(torch):
    def run(*values):
        def forward(ctx, x):
            ctx.save_for_forward(*values)
            return x * 2

        x = leaf(torch, 2.0)
        y = function(torch, forward, lambda ctx, grad: grad).apply(x)
        y.backward()
        return x.grad

    words = "save_for_forward expects all arguments to be tensors"
    return error(run, 3, words=words), run(None, torch.ones(2)), run()


# ---- marks


@as_torch
def test_G30_outputs_marked_as_not_differentiable(torch):
    """Edge case 25."""
    seen = []

    def forward(ctx, x):
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        return a, b

    def backward(ctx, g, h):
        seen.append((g.tolist(), h.tolist(), str(h.dtype)))
        return g * 2

    x = leaf(torch, 1.0, 2.0)
    a, b = function(torch, forward, backward).apply(x)
    a.sum().backward()
    return seen, x.grad, b, b.grad_fn, b.is_leaf


@as_torch
def test_G31_all_outputs_marked(torch):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    y = function(torch, forward, lambda ctx, g: g).apply(leaf(torch, 2.0))
    return y, y.grad_fn, y.requires_grad


@as_torch
def test_G32_what_may_be_marked(torch):
    def run(choose):
        def forward(ctx, x):
            y = x * 2
            ctx.mark_non_differentiable(*choose(x, y))
            return y

        x = leaf(torch, 2.0)
        y = function(torch, forward, lambda ctx, g: g * 7).apply(x)
        return y

    return error(run, lambda x, y: [3]), run(lambda x, y: [x]), run(lambda x, y: [x * 1])


@as_torch
def test_G30_an_input_returned_and_marked(torch):
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x

    x = leaf(torch, 2.0)
    y = function(torch, forward, lambda ctx, g: g * 7).apply(x)
    return y, y is x, y.grad_fn, x.requires_grad


def unused(torch, materialize, seen):
    def forward(ctx, x):
        if materialize is not None:
            ctx.set_materialize_grads(materialize)
        return x * 2, x * 3

    def backward(ctx, g, h):
        seen.append([None if each is None else each.tolist() for each in (g, h)])
        return g * 2 if g is not None else None

    return function(torch, forward, backward)


@as_torch
def test_G33_gradients_that_are_not_there(torch):
    """Edge case 26."""
    seen, found = [], []
    for materialize in (None, True, False):
        x = leaf(torch, 1.0, 2.0)
        a, b = unused(torch, materialize, seen).apply(x)
        a.sum().backward()
        found.append(x.grad)
        y = leaf(torch, 1.0, 2.0)
        a, b = unused(torch, materialize, seen).apply(y)
        b.sum().backward()
        found.append(y.grad)
    return seen, found


@as_torch
def test_G33_takes_a_bool(torch):
    def run(value):
        def forward(ctx, x):
            ctx.set_materialize_grads(value)
            return x * 2

        return function(torch, forward, lambda ctx, g: g).apply(leaf(torch, 2.0))

    words = "set_materialize_grads"
    return [error(run, value, words=words) for value in (1, None, "word")], run(False), run(True)


@as_torch
def test_G34_a_function_that_is_not_used_is_not_called(torch):
    seen = []
    F = noting(torch, seen)
    x = leaf(torch, 2.0)
    F.apply(x)
    (x * 2).backward()
    return seen, x.grad


@as_torch
def test_G34_none_gradients_reach_a_function(torch):
    """The gradient of a Function's input is undefined, and it comes to another Function."""
    found = []
    for materialize in (True, False):
        seen = []

        def forward(ctx, x, materialize=materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2

        def backward(ctx, g, seen=seen):
            seen.append(None if g is None else g.tolist())
            return g

        inner = function(torch, forward, backward)
        x = leaf(torch, 1.0, 2.0)
        giving(torch, lambda g: None).apply(inner.apply(x)).sum().backward()
        found.append((seen, x.grad))
    return found


# ---- once_differentiable


def once(torch, factor=None):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        assert not torch.is_grad_enabled()
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    return function(torch, forward, backward)


@as_torch
def test_G35_once_differentiable(torch):
    """Edge case 13."""
    x = leaf(torch, 2.0)
    y = once(torch).apply(x)
    y.backward()
    (first,) = torch.autograd.grad(once(torch).apply(x), x, create_graph=True)
    return x.grad, first, error(first.backward)


@as_torch
def test_G35_with_a_gradient_that_requires_grad(torch):
    x = leaf(torch, 2.0)
    g = torch.ones((), requires_grad=True)
    (first,) = torch.autograd.grad(once(torch).apply(x), x, g, create_graph=True)
    return first, first.grad_fn is not None, error(first.backward)


@as_torch
def test_G35_a_second_pass_that_does_not_come_to_it(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = once(torch).apply(x) * y
    dx, dy = torch.autograd.grad(z, [x, y], create_graph=True)
    return dx, dy, torch.autograd.grad(dy, x), error(dx.backward)


@as_torch
def test_G35_of_several_inputs(torch):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[1], None

    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = function(torch, forward, backward).apply(x, y) * x
    first = torch.autograd.grad(z, [x, y], create_graph=True, allow_unused=True)
    return first, error(first[0].backward)


# ---- ctx


@as_torch
def test_G36_needs_input_grad(torch):
    seen = []

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return args[0] * 2

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return (grad * 2, *[None] * (len(ctx.needs_input_grad) - 1))

    F = function(torch, forward, backward)
    x, y = leaf(torch, 2.0), torch.tensor(3.0)
    F.apply(x, y, 3, [x], torch.tensor(1)).backward()
    F.apply(y, x)
    F.apply(y)
    return seen


@as_torch
def test_G36_under_grad_of_one_input(torch):
    """It says what forward was called with, and not what is asked for."""
    seen = []

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return grad * 2, grad * 3

    F = function(torch, lambda ctx, x, y: x * y, backward)
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    return torch.autograd.grad(F.apply(x, y), x), seen, y.grad


@as_torch
def test_G37_ctx_is_the_node(torch):
    seen, nodes_run = [], []

    def forward(ctx, x, y):
        ctx.metadata["word"] = 3
        return x * y

    def backward(ctx, grad):
        nodes = [None if to is None else to.name().split("::")[-1] for to, _ in ctx.next_functions]
        seen.append((ctx.name(), nodes, ctx.metadata["word"]))
        nodes_run.append(id(ctx))
        return grad, grad

    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = function(torch, forward, backward).apply(x * 1, y)
    z.grad_fn.register_hook(lambda i, o: seen.append(("post", [g.tolist() for g in i])))
    z.grad_fn.register_prehook(lambda o: seen.append(("pre", [g.tolist() for g in o])))
    z.register_hook(lambda g: seen.append(("tensor", g.tolist())))
    z.backward()
    is_node = isinstance(z.grad_fn, torch.autograd.graph.Node)
    return seen, nodes_run == [id(z.grad_fn)], is_node


@as_torch
def test_G37_next_functions_of_inputs_that_need_none(torch):
    F = function(torch, lambda ctx, x, n, y: x * y, lambda ctx, g: (g, None, g))
    z = F.apply(torch.ones(()), 3, leaf(torch, 2.0))
    return [None if to is None else to.name().split("::")[-1] for to, _ in z.grad_fn.next_functions]


@as_torch
def test_G37_a_hook_that_changes_a_functions_gradients(torch):
    F = function(torch, lambda ctx, x, n, y: x * y, lambda ctx, g: (g * 2, None, g * 3))
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = F.apply(x, 3, y)
    seen = []
    z.grad_fn.register_hook(lambda i, o: seen.append(len(i)) or tuple(g and g * 10 for g in i))
    z.backward()
    return x.grad, y.grad, seen


@as_torch
def test_G38_the_class_of_the_node(torch):
    F = double(torch)
    y = F.apply(leaf(torch, 2.0))
    kind = type(y.grad_fn)
    base = torch.autograd.function.BackwardCFunction
    return kind.__name__, issubclass(kind, base), kind is F._backward_cls, kind._forward_cls is F


@as_torch
def test_G39_running_a_node_by_hand(torch):
    F = square(torch)
    x = leaf(torch, 3.0)
    node = F.apply(x).grad_fn
    return node.apply(torch.tensor(5.0))


@as_torch
def test_G41_instances(torch):
    F = double(torch)
    made = warned(F)
    message = made["warnings"][0]["says"].partition(" should not be instantiated")[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        instance = F()
    return message, made["warnings"][0]["error"], error(instance, leaf(torch, 2.0))


@as_torch
def test_G42_names_of_old_code(torch):
    from_module = torch.autograd.function
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = from_module.InplaceFunction(inplace=True)
    return (
        old.inplace,
        issubclass(from_module.NestedIOFunction, torch.autograd.Function),
        torch.autograd.NestedIOFunction is from_module.NestedIOFunction,
        issubclass(from_module.InplaceFunction, torch.autograd.Function),
    )


@as_torch
def test_G43_mark_shared_storage(torch):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_shared_storage((x, y))
        return y

    found = warned(function(torch, forward, lambda ctx, g: g).apply, leaf(torch, 2.0))
    return found["result"], [each["error"] for each in found["warnings"]]


def read_once(torch, reads):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        for _ in range(reads):
            (x,) = ctx.saved_tensors
        return 2 * x * grad

    F = function(torch, forward, backward)
    F.clear_saved_tensors_on_access = True
    return F


@as_torch
def test_G44_saved_tensors_read_once(torch):
    x = leaf(torch, 2.0)
    read_once(torch, 1).apply(x).backward()
    y = read_once(torch, 1).apply(x)
    y.backward(retain_graph=True)
    words = "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True"
    return (
        x.grad,
        error(read_once(torch, 2).apply(x).backward, words=words),
        error(y.backward, words=words),
    )


@as_torch
def test_G45_gradients_in_a_list(torch):
    seen = []

    def backward(ctx, grads):
        seen.append((type(grads).__name__, [g.tolist() for g in grads]))
        first = grads[0]
        grads.clear()
        return first * 7

    F = function(torch, lambda ctx, x: (x * 2, x * 3), backward)
    F.boxed_grads_call = True
    x = leaf(torch, 2.0)
    F.apply(x)[0].backward()
    return seen, x.grad


@as_torch
def test_G48_one_tensor_given_twice(torch):
    """Edge case 28."""
    x = leaf(torch, 2.0)
    F = function(torch, lambda ctx, x, y: x * y, lambda ctx, g: (g * 10, g * 100))
    F.apply(x, x).backward()
    return x.grad


@as_torch
def test_G49_the_name_of_the_node(torch):
    class WeirdName(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = WeirdName.apply(leaf(torch, 2.0))
    return y.grad_fn.name(), type(y.grad_fn).__name__, repr(y.grad_fn).startswith("<")


@as_torch
def test_G51_arguments_without_a_gradient_need_no_declaration(torch):
    def forward(ctx, x, power, name, flags):
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.power * x ** (ctx.power - 1), None, None, None

    x = leaf(torch, 2.0)
    function(torch, forward, backward).apply(x, 3, "cube", {"unhashable": []}).backward()
    return x.grad


# ---- errors leave everything as it was


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError, SystemExit])
@pytest.mark.parametrize("where", ["forward", "backward", "setup_context"])
def test_interrupts(kind, where):
    calls = []

    def at(place):
        if place == where and not calls:
            calls.append(place)
            raise kind("mine")

    def forward(x):
        at("forward")
        return x * x

    def setup_context(ctx, inputs, output):
        at("setup_context")
        ctx.save_for_backward(*inputs)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        at("backward")
        return 2 * x * grad

    F = function(jaxgrad, forward, backward, setup_context=setup_context)
    x = leaf(jaxgrad, 3.0)
    if where == "backward":
        y = F.apply(x)
        z = y * y
        with pytest.raises(kind, match="mine"):
            z.backward(retain_graph=True)
        assert x.grad is None
        z.backward()
        assert x.grad.item() == 108
    else:
        with pytest.raises(kind, match="mine"):
            F.apply(x)
        y = F.apply(x)
        y.backward()
        assert x.grad.item() == 6
    assert jaxgrad.is_grad_enabled() and not jaxgrad.is_inference_mode_enabled()
    assert (x * 2).requires_grad and jaxgrad.ones(2).grad_fn is None
