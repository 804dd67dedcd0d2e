"""`autograd.Function`, row by row of PyTorch's behaviour."""

import pytest
from helpers.as_torch import as_torch, error, leaf
from helpers.compiled import under_jit
from helpers.functions import double, function, giving, noting, square

import jaxgrad

# ---- the class


@pytest.mark.row("G01")
@as_torch("""
    tensor([4.0, 6.0], requires_grad=True)
    tensor([14.0, 14.0])
    False
""")
def test_a_function_and_its_gradient(torch):
    x = leaf(torch, 2.0, 3.0)
    y = double(torch).apply(x)
    y.sum().backward()
    return y, x.grad, y.is_leaf


@pytest.mark.row("G01")
@as_torch("""
    NotImplementedError('You must implement the forward function for custom autograd.Function.')
    NotImplementedError('You must implement the forward function for custom autograd.Function.')
    TypeError(
     'test_a_function_without_forward.<locals>.Both.forward() takes 1 positional '
     'argument but 2 were given')
""")
def test_a_function_without_forward(torch):
    class F(torch.autograd.Function):
        pass

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

    x = leaf(torch, 2.0)
    return error(F.apply, x), error(F.apply), error(Both.apply, x)


@pytest.mark.row("G02")
@as_torch("""
    tensor(4.0, requires_grad=True)
    NotImplementedError(
     'You must implement either the backward or vjp method for your custom '
     'autograd.Function to use it with backward mode AD.')
    True
    None
""")
def test_a_function_without_backward(torch):
    F = function(torch, lambda ctx, x: x * 2)
    x = leaf(torch, 2.0)
    y = F.apply(x)
    return y, error(y.backward), torch.is_grad_enabled(), x.grad


@pytest.mark.row("G03")
@as_torch("tensor(7.0)")
def test_vjp_is_another_name_of_backward(torch):
    F = function(torch, lambda ctx, x: x * 2, vjp=lambda ctx, grad: grad * 7)
    x = leaf(torch, 2.0)
    F.apply(x).backward()
    return x.grad


@pytest.mark.row("G03")
@as_torch("""
    RuntimeError(
     "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
     'should only implement one of them.')
""")
def test_both_vjp_and_backward(torch):
    F = double(torch, vjp=lambda ctx, grad: grad * 7)
    x = leaf(torch, 2.0)
    y = F.apply(x)
    return error(y.backward)


@pytest.mark.row("G03")
@as_torch("""
    tensor(6.0, requires_grad=True)
    tensor(14.0)
    'SubBackward'
""")
def test_inherited_rules(torch):
    F = double(torch)

    class Sub(F):
        @staticmethod
        def forward(ctx, x):
            return x * 3

    x = leaf(torch, 2.0)
    y = Sub.apply(x)
    y.backward()
    return y, x.grad, y.grad_fn.name()


@pytest.mark.row("G04")
@as_torch("""
    [[True, True, True], [False, True, False, True]]
    tensor(5.0)
    True
""")
def test_grad_mode_in_forward(torch):
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


@pytest.mark.row("G04")
@as_torch("tensor([12.0, 27.0])")
def test_a_gradient_taken_in_forward(torch):
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


@pytest.mark.row("G04")
@as_torch("""
    tensor(6.0, requires_grad=True)
    tensor(5.0)
    'FBackward'
""")
def test_what_was_recorded_in_forward_is_not_the_outputs_history(torch):
    def forward(ctx, x):
        with torch.enable_grad():
            return x * 3

    F = function(torch, forward, lambda ctx, grad: grad * 5)
    x = leaf(torch, 2.0)
    y = F.apply(x)
    y.backward()
    return y, x.grad, y.grad_fn.name()


@pytest.mark.row("G05")
@as_torch("""
    [False, False]
    [True, False]
    [True, True]
""")
def test_grad_mode_in_backward(torch):
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


@pytest.mark.row("G05")
@as_torch("""
    tensor([32.0, 108.0], requires_grad=True)
    tensor([48.0, 108.0], requires_grad=True)
    tensor([48.0, 72.0])
""")
def test_second_derivatives_of_a_function(torch):
    x = leaf(torch, 2.0, 3.0)
    y = square(torch).apply(square(torch).apply(x)).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    return first, second, third


@pytest.mark.row("G05")
@as_torch("""
    tensor([2.718281828459045, 7.38905609893065], dtype=float64, requires_grad=True)
    tensor([2.718281828459045, 7.38905609893065], dtype=float64, requires_grad=True)
    tensor([2.718281828459045, 7.38905609893065], dtype=float64)
""")
def test_a_second_derivative_of_an_output_that_was_saved(torch):
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


@pytest.mark.row("G06")
@as_torch("""
    tensor(7.0, requires_grad=True)
    tensor(3.0)
""")
def test_forward_with_ctx(torch):
    def forward(ctx, x, factor, *rest):
        ctx.factor = factor
        return x * factor + sum(rest)

    F = function(torch, forward, lambda ctx, grad: (grad * ctx.factor, None, None))
    x = leaf(torch, 2.0)
    y = F.apply(x, 3.0, 1.0)
    y.backward()
    return y, x.grad


@pytest.mark.row("G06")
@as_torch("""
    tensor(4.0)
    tensor(10.0)
    TypeError("forward() got an unexpected keyword argument 'other'")
""")
def test_arguments_by_name_in_the_combined_style(torch):
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


@pytest.mark.row("G06")
def test_nothing_is_taken_by_name_alone():
    """A tensor passed this way would silently have no gradient."""

    def forward(ctx, x, *, factor):
        return x * factor

    F = function(jaxgrad, forward, lambda ctx, grad: grad)
    x = leaf(jaxgrad, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'factor'"):
        F.apply(x, factor=x)


@pytest.mark.row("G07")
@as_torch("""
    [[False, [True, True]]]
    tensor(6.0, requires_grad=True)
    tensor(3.0)
    tensor(20.0)
""")
def test_forward_and_setup_context(torch):
    seen = []

    def forward(x, y):
        return x * y

    def setup_context(ctx, inputs, output):
        seen.append((torch.is_grad_enabled(), [tensor.requires_grad for tensor in inputs]))
        ctx.save_for_backward(*inputs)

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return y * grad, x * grad * 10

    F = function(torch, forward, backward, setup_context=setup_context)
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = F.apply(x, y)
    z.backward()
    return seen, z, x.grad, y.grad


@pytest.mark.row("G07")
@as_torch("""
    [[[3, 3.0, 0.0]], tensor(6.0, requires_grad=True), tensor(3.0)]
    [[[3, 5.0, 0.0]], tensor(10.0, requires_grad=True), tensor(5.0)]
    [[[3, 3.0, 1.0]], tensor(7.0, requires_grad=True), tensor(3.0)]
    [[[3, 7.0, 0.0]], tensor(14.0, requires_grad=True), tensor(7.0)]
    [[[3, 4.0, 1.0]], tensor(9.0, requires_grad=True), tensor(4.0)]
""")
def test_arguments_by_name_and_defaults_in_the_separate_style(torch):
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


@pytest.mark.row("G08")
@as_torch("""
    [tensor(4.0), tensor(4.0), tensor(4.0)]
    [True, True, True]
""")
def test_only_tensors_given_by_position_are_differentiated(torch):
    """Edge case 28."""
    x = leaf(torch, 2.0)

    def run(forward, *args):
        F = function(torch, forward, lambda ctx, *grads: (None,) * len(args))
        return F.apply(*args)

    results = [
        run(lambda ctx, several: several[0] * 2, [x]),
        run(lambda ctx, several: several[0] * 2, (x,)),
        run(lambda ctx, several: several["x"] * 2, {"x": x}),
    ]
    return results, [result.grad_fn is None for result in results]


@pytest.mark.row("G08")
@as_torch("""
    tensor(12.0, requires_grad=True)
    tensor(7.0)
    None
""")
def test_a_list_beside_a_tensor(torch):
    def forward(ctx, x, several, named):
        return x * several[0] * named["factor"]

    F = function(torch, forward, lambda ctx, grad: (grad * 7, None, None))
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = F.apply(x, [y], {"factor": 2})
    z.backward()
    return z, x.grad, y.grad


@pytest.mark.row("G09")
@as_torch("""
    tensor(4.0)
    tensor(4.0)
    None
    None
    tensor(4.0)
    True
""")
def test_a_function_without_an_input_that_requires_grad(torch):
    F = double(torch)
    x = leaf(torch, 2.0)
    plain = F.apply(torch.tensor(2.0))
    with torch.no_grad():
        off = F.apply(x)
    with torch.inference_mode():
        inference = F.apply(x)
    return plain, off, off.grad_fn, plain.grad_fn, inference, inference.is_inference()


@pytest.mark.row("G09")
@as_torch("""
    [[False], []]
    [[True], []]
""")
def test_what_a_function_keeps_where_nothing_requires_grad(torch):
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


@pytest.mark.row("G10")
@as_torch
def test_what_forward_may_return(torch):
    def run(result, *grads):
        def backward(ctx, *gradients):
            return sum(grad for grad in gradients if grad is not None)

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


@pytest.mark.row("G10")
@as_torch("[[1.0, None, None]]")
def test_gradients_for_what_is_no_tensor(torch):
    seen = []

    def backward(ctx, *grads):
        seen.append([None if grad is None else grad.tolist() for grad in grads])
        return grads[0]

    F = function(torch, lambda ctx, x: (x * 2, 5, None), backward)
    x = leaf(torch, 2.0)
    F.apply(x)[0].backward()
    return seen


@pytest.mark.row("G10")
@as_torch("""
    False
    False
""")
def test_a_list_or_a_dict_is_opaque(torch):
    x = leaf(torch, 2.0)
    listed = function(torch, lambda ctx, x: [x * 2], lambda ctx, grad: grad).apply(x)
    named = function(torch, lambda ctx, x: {"y": x * 2}, lambda ctx, grad: grad).apply(x)
    return listed[0].requires_grad, named["y"].requires_grad


@pytest.mark.row("G11")
@as_torch("""
    False
    tensor([2.0, 3.0], requires_grad=True)
    tensor([7.0, 7.0])
    True
    'FBackward'
    0
    0
""")
def test_an_input_returned_as_it_is(torch):
    x = leaf(torch, 2.0, 3.0)
    F = function(torch, lambda ctx, x: x, lambda ctx, grad: grad * 7)
    y = F.apply(x)
    y.sum().backward()
    return y is x, y, x.grad, y._base is x, y.grad_fn.name(), y._version, x._version


@pytest.mark.row("G11")
@as_torch("""
    False
    tensor([1.0, 1.0], requires_grad=True)
    tensor([2.0, 4.0], requires_grad=True)
    False
    tensor([1.0, 1.0])
    None
""")
def test_an_input_returned_without_a_gradient(torch):
    x = torch.ones(2)
    F = function(torch, lambda ctx, x, y: (x, y * 2), lambda ctx, g, h: (g, h))
    y = leaf(torch, 1.0, 2.0)
    same, other = F.apply(x, y)
    alone = F.apply(x, torch.ones(2))[0]
    return same is x, same, other, alone is x, alone, alone.grad_fn


@pytest.mark.row("G11")
@as_torch("""
    tensor(53.0)
    False
""")
def test_an_input_returned_twice(torch):
    F = function(torch, lambda ctx, x: (x, x), lambda ctx, g, h: g + 10 * h)
    x = leaf(torch, 2.0)
    a, b = F.apply(x)
    (a * 3 + b * 5).backward()
    return x.grad, a is b


@pytest.mark.row("G12")
@as_torch("""
    tensor(3.0, requires_grad=True)
    tensor(1)
    tensor([False, True, True])
    tensor([1.0, 1.0, 1.0])
    [[['torch.float32', 1.0], ['torch.int64', 0], ['torch.bool', [False, False, False]]]]
    None
    True
""")
def test_integer_outputs(torch):
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


@pytest.mark.row("G12")
@as_torch("""
    tensor([1.0, 1.0, 2.0], requires_grad=True)
    tensor([2.0, 0.0, 1.0])
""")
def test_integer_inputs(torch):
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


@pytest.mark.row("G12")
@as_torch("""
    tensor(1)
    None
""")
def test_an_output_that_is_only_integer(torch):
    F = function(torch, lambda ctx, x: x.argmax(), lambda ctx, grad: None)
    y = F.apply(leaf(torch, 1.0, 3.0))
    return y, y.grad_fn


# ---- what backward returns


@pytest.mark.row("G13")
@as_torch
def test_backward_returns_a_value_for_each_argument(torch):
    """Edge case 27."""

    def run(gradients, count=2):
        x = [leaf(torch, float(i + 1)) for i in range(count)]
        y = giving(torch, gradients).apply(*x)
        result = error(lambda: y.backward(retain_graph=True))
        return result, [argument.grad for argument in x], torch.is_grad_enabled()

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


@pytest.mark.row("G13")
@as_torch("""
    [RuntimeError(
      'function FBackward returned an incorrect number of gradients (expected 2, got 1)'),
     None]
    [no_error, tensor(1.0)]
    [RuntimeError(
      'function FBackward returned a gradient different than None at position 2, but the '
      'corresponding forward input was not a Variable'),
     None]
""")
def test_arguments_that_are_no_tensors_count(torch):
    def run(gradients):
        F = function(torch, lambda ctx, x, factor: x * factor, lambda ctx, grad: gradients(grad))
        x = leaf(torch, 2.0)
        return error(F.apply(x, 3.0).backward), x.grad

    return [run(lambda g: g), run(lambda g: (g, None)), run(lambda g: (g, g))]


@pytest.mark.row("G14")
@as_torch("""
    None
    tensor(2.0)
    None
""")
def test_none_means_no_gradient(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    giving(torch, lambda g: (None, g)).apply(x, y).backward()
    z = leaf(torch, 2.0)
    giving(torch, lambda g: (None, g)).apply(z * 2, y).backward()
    return x.grad, y.grad, z.grad


@pytest.mark.row("G14")
@as_torch("""
    ['forward', [0.0]]
    tensor(0.0)
""")
def test_none_through_a_chain_of_functions(torch):
    seen = []
    inner, outer = noting(torch, seen), giving(torch, lambda g: None)
    x = leaf(torch, 2.0)
    outer.apply(inner.apply(x)).backward()
    return seen, x.grad


@pytest.mark.row("G14")
@as_torch("""
    [None, tensor(1.0)]
    RuntimeError(
     'The differentiated Tensor at index 0 appears to not have been used in the graph. '
     'Set allow_unused=True if this is the desired behavior.')
    [tensor(0.0), tensor(1.0)]
""")
def test_none_under_grad(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = giving(torch, lambda g: (None, g)).apply(x, y)
    return (
        torch.autograd.grad(z, [x, y], retain_graph=True, allow_unused=True),
        error(lambda: torch.autograd.grad(z, [x, y], retain_graph=True)),
        torch.autograd.grad(z, [x, y], materialize_grads=True),
    )


@pytest.mark.row("G15")
@as_torch("""
    [RuntimeError('expected Variable or None (got float)'), None]
    [RuntimeError('expected Variable or None (got list)'), None]
    [RuntimeError('expected Variable or None (got str)'), None]
    [RuntimeError('expected Variable or None (got float)'), None]
    [RuntimeError('expected Variable or None (got dict)'), None]
""")
def test_what_a_gradient_must_be(torch):
    def run(gradients):
        x = leaf(torch, 2.0)
        return error(giving(torch, gradients).apply(x).backward), x.grad

    wrong = [lambda g: 1.5, lambda g: [g], lambda g: "word", lambda g: (1.5,), lambda g: {"x": g}]
    return [run(gradients) for gradients in wrong]


@pytest.mark.row("G16")
@as_torch
def test_the_shape_of_a_gradient(torch):
    def run(shape, of, fits):
        x = torch.ones(of).requires_grad_()
        F = function(torch, lambda ctx, x: x.sum(), lambda ctx, g: torch.ones(shape))
        y = F.apply(x)
        return error(y.backward, words="" if fits else "invalid gradient at index 0"), x.grad

    fit = [((2, 3), (3,)), ((3,), (1,)), ((2, 3), ()), ((4, 2, 3), (2, 3)), ((2, 3), (1, 3))]
    misfit = [((3,), (2,)), ((2,), (2, 2)), ((1, 3), (2, 3)), ((), (2,)), ((3, 2), (3,))]
    return [run(*shapes, True) for shapes in fit], [run(*shapes, False) for shapes in misfit]


@pytest.mark.row("G16")
@as_torch("""
    RuntimeError(
     'Function FBackward returned an invalid gradient at index 1 - got [3] but expected '
     'shape compatible with [2]')
    RuntimeError(
     'Function FBackward returned an invalid gradient at index 0 - got [3] but expected '
     'shape compatible with [2]')
""")
def test_the_index_of_the_argument_that_a_gradient_does_not_fit(torch):
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


@pytest.mark.row("G17")
@as_torch("""
    tensor([2.0, 2.0])
    tensor([2.0, 2.0])
    tensor([2.0, 2.0], dtype=float64)
    tensor([2.0, 2.0])
    tensor([2.0, 2.0])
""")
def test_the_dtype_of_a_gradient(torch):
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


@pytest.mark.row("G17")
@as_torch("""
    [RuntimeError(
      'Expected isFloatingType(grad.scalar_type()) || (input_is_complex == '
      'grad_is_complex) to be true, but got false.  (Could this error message be '
      'improved?  If so, please report an enhancement request to PyTorch.)'),
     None]
    [no_error, tensor([2.0+0.0j, 2.0+0.0j])]
    [no_error, tensor([2.0+0.0j, 2.0+0.0j])]
    [no_error, tensor([2.0+0.0j, 2.0+0.0j])]
""")
def test_complex_gradients(torch):
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


# ---- errors leave everything as it was


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError, SystemExit])
@pytest.mark.parametrize("where", ["forward", "backward", "setup_context"])
def test_interrupts_in_rules_leave_the_graph_usable(kind, where):
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


def returning(torch, *results):
    class Returns(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return results[0] if len(results) == 1 else results

    return Returns


@pytest.mark.row("edge_27")
@as_torch
def test_what_backward_may_return(torch):
    x, ones = leaf(torch, 1.0, 2.0, 3.0), torch.ones(3)
    outcomes = []
    for results in (
        (ones,),
        (ones, None, None),
        (ones, None, ones),
        ([1.0], None),
        (2.0, None),
        (None, None),
        (torch.ones(2, 3), None),
        (ones.double(), None),
        (ones.long(), None),
        (torch.ones(2), None),
    ):
        x.grad = None
        y = returning(torch, *results).apply(x, 3).sum()
        outcomes.append((error(y.backward), x.grad))
    return outcomes


@pytest.mark.row("edge_28")
@as_torch("""
    False
    [tensor(5.0), None]
    tensor(110.0)
    [tensor(5.0, requires_grad=True),
     tensor(7.0, requires_grad=True),
     tensor(8.5, requires_grad=True)]
    tensor(9.0)
""")
def test_list_keyword_and_repeated_arguments(torch):
    class Lists(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensors, x):
            ctx.asked = ctx.needs_input_grad
            return sum(tensors) * x

        @staticmethod
        def backward(ctx, g):
            return None, g * 5

    class Named(torch.autograd.Function):
        @staticmethod
        def forward(x, scale=2.0, shift=1.0):
            return x * scale + shift

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.scale = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.scale, None, None

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g * 10, g * 100

    x, a = leaf(torch, 2.0), leaf(torch, 3.0)
    untracked = Lists.apply([a, a], torch.tensor(1.0)).requires_grad
    Lists.apply([a, a], x).backward()
    listed = x.grad, a.grad
    Product.apply(a, a).backward()
    b = leaf(torch, 2.0)
    named = Named.apply(b), Named.apply(b, scale=3.0), Named.apply(b, 4.0, shift=0.5)
    sum(named).backward()
    return untracked, listed, a.grad, named, b.grad


@pytest.mark.row("edge_21")
@as_torch("""
    tensor(12.0)
    [[False, True, False], True, False]
""")
def test_grad_mode_inside_a_function(torch):
    seen = []

    class Inside(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((torch.is_grad_enabled(), x.requires_grad, (x * x).requires_grad))
            with torch.enable_grad():
                z = x.detach().requires_grad_()
                (gradient,) = torch.autograd.grad(z**3, z)
                seen.append(torch.is_grad_enabled())
            ctx.save_for_backward(gradient)
            return x**3

        @staticmethod
        def backward(ctx, g):
            seen.append(torch.is_grad_enabled())
            return g * ctx.saved_tensors[0]

    x = leaf(torch, 2.0)
    Inside.apply(x).backward()
    return x.grad, seen


@pytest.mark.parametrize(
    "test",
    [
        test_what_backward_may_return,
        test_list_keyword_and_repeated_arguments,
        test_grad_mode_inside_a_function,
    ],
    ids=lambda test: test.__name__,
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
