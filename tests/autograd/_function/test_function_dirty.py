"""Functions that write to their inputs or return views, row by row of PyTorch's behaviour."""

import pytest
from helpers.as_torch import as_torch, error, leaf, strict, warned
from helpers.compiled import under_jit
from helpers.functions import function

import jaxgrad


def tripling(torch, mark=True, returned=True):
    """Multiplies its input by three in place; backward multiplies by seven."""

    def forward(ctx, x):
        x.mul_(3)
        if mark:
            ctx.mark_dirty(x)
        return x if returned else x * 1

    return function(torch, forward, lambda ctx, grad: grad * 7)


@pytest.mark.row("G27")
@as_torch("""
    tensor([15.0, 30.0], requires_grad=True)
    ['FBackward', True, 2]
    tensor([35.0, 35.0])
""")
def test_mark_dirty_of_an_input_that_is_written_to(torch):
    """Edge case 24."""
    x = leaf(torch, 1.0, 2.0)
    y = x * 5
    z = tripling(torch).apply(y)
    names = y.grad_fn.name(), z is y, y._version
    z.sum().backward()
    return z, names, x.grad


@pytest.mark.row("G27")
@as_torch("""
    tensor([6.0, 11.0], requires_grad=True)
    tensor([35.0, 35.0])
""")
def test_mark_dirty_before_the_write(torch):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x += 1
        return x

    x = leaf(torch, 1.0, 2.0)
    y = x * 5
    function(torch, forward, lambda ctx, grad: grad * 7).apply(y)
    y.sum().backward()
    return y, x.grad


@pytest.mark.row("G27")
@as_torch("""
    True
    tensor([15.0, 30.0], requires_grad=True)
    tensor([35.0, 35.0])
""")
def test_mark_dirty_in_setup_context(torch):
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])

    x = leaf(torch, 1.0, 2.0)
    y = x * 5
    F = function(
        torch, lambda x: x.mul_(3), lambda ctx, grad: grad * 7, setup_context=setup_context
    )
    z = F.apply(y)
    z.sum().backward()
    return z is y, z, x.grad


@pytest.mark.row("G27")
@as_torch
def test_mark_dirty_without_a_gradient(torch):
    x = torch.ones(2)
    y = tripling(torch).apply(x)
    with torch.no_grad():
        z = leaf(torch, 1.0, 2.0)
        w = tripling(torch).apply(z)
    return y is x, x, x._version, x.grad_fn, w is z, z, z._version, z.is_leaf, z.requires_grad


@pytest.mark.row("G27")
@as_torch("""
    True
    tensor(3.0, requires_grad=True)
    tensor(6.0, requires_grad=True)
    tensor(14.0)
    tensor(33.0)
    True
""")
def test_mark_dirty_of_one_of_two_inputs(torch):
    def forward(ctx, x, y):
        x.add_(y)
        ctx.mark_dirty(x)
        return x, x * y

    x, y = leaf(torch, 1.0), leaf(torch, 2.0)
    a = x * 1
    F = function(torch, forward, lambda ctx, g, h: (g * 7, h * 11))
    b, c = F.apply(a, y)
    (b * 2 + c * 3).backward()
    return b is a, b, c, x.grad, y.grad, c.grad_fn is b.grad_fn


@pytest.mark.row("G27")
@as_torch("""
    True
    True
    tensor([3.0, 4.0], requires_grad=True)
    'FBackward'
    tensor([11.0, 11.0])
    False
""")
def test_an_input_that_requires_no_grad_beside_one_that_does(torch):
    def forward(ctx, x, y):
        x.add_(y)
        ctx.mark_dirty(x)
        return x

    x, y = torch.ones(2), leaf(torch, 2.0, 3.0)
    F = function(torch, forward, lambda ctx, g: (g * 7, g * 11))
    z = F.apply(x, y)
    z.sum().backward()
    return z is x, x.requires_grad, x, x.grad_fn.name(), y.grad, x.is_leaf


@pytest.mark.row("G28")
@as_torch("""
    False
    tensor([15.0, 30.0], requires_grad=True)
    tensor([35.0, 35.0])
    'MulBackward0'
""")
def test_a_write_without_mark_dirty_is_no_part_of_the_gradient(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 5
    z = tripling(torch, mark=False).apply(y)
    z.sum().backward()
    return z is y, z, x.grad, y.grad_fn.name()


@pytest.mark.row("G28")
def test_what_others_saved_before_stays_what_it_was():
    """PyTorch raises for a marked input; the gradient is right."""
    x = leaf(jaxgrad, 2.0, 3.0)
    y = x * 1
    b = y * y  # saves y
    tripling(jaxgrad).apply(y)
    b.sum().backward()
    assert x.grad.tolist() == [4, 6]


@pytest.mark.row("G28")
@as_torch("""
    RuntimeError(
     'one of the variables needed for gradient computation has been modified by an '
     'inplace operation: [torch.FloatTensor [2]], which is output 0 of F, is at version '
     '2; expected version 0 instead. Hint: enable anomaly detection to find the '
     'operation that failed to compute its gradient, with '
     'torch.autograd.set_detect_anomaly(True, check_nan=False).')
""")
def test_a_write_without_mark_dirty_under_strict_versions(torch):
    x = leaf(torch, 2.0, 3.0)
    with strict(torch):
        y = x * 1
        b = y * y
        tripling(torch).apply(y)
        words = "one of the variables needed for gradient computation has been modified by an"
        return error(b.sum().backward, words=words)


@pytest.mark.row("G28")
@as_torch("""
    tensor([6.0, 9.0])
    [[[6.0, 9.0], True, 'FBackward']]
""")
def test_a_saved_input_written_to_by_the_function_itself(torch):
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    seen = []

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        seen.append((x.tolist(), x.requires_grad, x.grad_fn.name()))
        return grad * x

    x = leaf(torch, 2.0, 3.0)
    y = x * 1
    function(torch, forward, backward).apply(y).sum().backward()
    return x.grad, seen


@pytest.mark.row("G28")
def test_an_input_saved_before_the_function_writes_to_it():
    """PyTorch reads the new value or raises; jaxgrad reads the value that was saved."""

    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    x = leaf(jaxgrad, 2.0, 3.0)
    y = x * 1
    F = function(jaxgrad, forward, lambda ctx, grad: grad * ctx.saved_tensors[0])
    F.apply(y).sum().backward()
    assert x.grad.tolist() == [2, 3]


@pytest.mark.row("G29")
@as_torch("""
    RuntimeError('a leaf Variable that requires grad has been used in an in-place operation.')
""")
def test_mark_dirty_of_a_leaf(torch):
    x = leaf(torch, 1.0, 2.0)
    words = "a leaf Variable that requires grad"
    return error(tripling(torch).apply, x, words=words)


@pytest.mark.row("G29")
@as_torch("""
    RuntimeError('a leaf Variable that requires grad has been used in an in-place operation.')
    tensor([1.0, 2.0], requires_grad=True)
    True
""")
def test_mark_dirty_of_a_leaf_that_is_not_written_to(torch):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x

    F = function(torch, forward, lambda ctx, grad: grad)
    x = leaf(torch, 1.0, 2.0)
    words = "a leaf Variable that requires grad has been used in an in-place operation."
    return error(F.apply, x, words=words), x, x.is_leaf


@pytest.mark.row("G29")
@as_torch("""
    RuntimeError(
     'Some elements marked as dirty during the forward method were not returned as '
     'output. The inputs that are modified inplace must all be outputs of the Function.')
""")
def test_mark_dirty_of_what_is_not_returned(torch):
    x = leaf(torch, 1.0, 2.0)
    return error(tripling(torch, returned=False).apply, x * 1)


@pytest.mark.row("G29")
@as_torch("RuntimeError('mark_dirty can only accept variables, but argument ')")
def test_mark_dirty_of_what_is_no_tensor(torch):
    def forward(ctx, x):
        ctx.mark_dirty(3)
        return x

    F = function(torch, forward, lambda ctx, grad: grad)
    return error(F.apply, leaf(torch, 1.0), words="mark_dirty can only accept variables")


@pytest.mark.row("G29")
@as_torch("RuntimeError('ctx.mark_dirty() received a tensor that was not an input.')")
def test_mark_dirty_of_a_view_that_is_no_input(torch):
    def forward(ctx, x):
        y = x.clone().view_as(x)
        ctx.mark_dirty(y)
        return y

    F = function(torch, forward, lambda ctx, grad: grad)
    words = "ctx.mark_dirty() received a tensor that was not an input."
    return error(F.apply, leaf(torch, 1.0) * 2, words=words)


@pytest.mark.row("G29")
@as_torch("""
    warned([UserWarning(
             'ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that '
             'have been mutated should be passed to ctx.mark_dirty(). (Triggered internally at '
             '/__w/pytorch/pytorch/torch/csrc/autograd/custom_function.cpp:320.)')],
           tensor(2.0, requires_grad=True))
    tensor(7.0)
""")
def test_mark_dirty_of_what_is_no_input(torch):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    F = function(torch, forward, lambda ctx, grad: grad * 7)
    x = leaf(torch, 1.0)
    report = warned(F.apply, x)
    report["result"].backward()
    return report, x.grad


@pytest.mark.row("G29")
@as_torch
def test_mark_dirty_of_a_view_and_several_outputs(torch):
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x, x * 2

    F = function(torch, forward, lambda ctx, g, h: g)
    x = leaf(torch, 1.0, 2.0, 3.0)
    y = x * 1
    return error(F.apply, y[:2]), [output.tolist() for output in F.apply(y * 1)]


@pytest.mark.row("G27")
@as_torch("""
    [True, 'CopySlices', 2, 2, [3.0, 6.0, 3.0]]
    tensor([7.0, 7.0, 1.0])
""")
def test_mark_dirty_of_a_view(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    y = x * 1
    view = y[:2]
    z = tripling(torch).apply(view)
    kind = y.grad_fn.name().split("::")[-1]
    names = z is view, kind, y._version, view._version, y.tolist()
    y.sum().backward()
    return names, x.grad


@pytest.mark.row("G27")
@as_torch("""
    tensor([3.0, 6.0], requires_grad=True)
    tensor([42.0, 84.0, 0.0])
""")
def test_mark_dirty_of_a_view_that_is_used_afterwards(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    y = x * 1
    view = y[:2]
    tripling(torch).apply(view)
    (view * view).sum().backward()
    return view, x.grad


@pytest.mark.row("G27")
@as_torch("""
    tensor([3.0, 6.0], requires_grad=True)
    tensor([42.0, 84.0, 0.0])
    2
""")
def test_mark_dirty_of_the_base_of_a_view(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    y = x * 1
    view = y[:2]
    tripling(torch).apply(y)
    (view * view).sum().backward()
    return view, x.grad, view._version


@pytest.mark.row("G27")
@as_torch("""
    [['new', 2.0], ['old', 14.0]]
    tensor(70.0)
""")
def test_hooks_of_a_tensor_written_to(torch):
    """Hooks stay with the value that they were registered on (F09)."""
    x, seen = leaf(torch, 1.0), []
    y = x * 5
    y.register_hook(lambda grad: seen.append(("old", grad.item())))
    tripling(torch).apply(y)
    y.register_hook(lambda grad: seen.append(("new", grad.item())))
    (y * 2).backward()
    return seen, x.grad


@pytest.mark.row("G27")
@as_torch("""
    tensor(2.0)
    tensor(70.0)
    True
""")
def test_a_retained_gradient_of_a_tensor_written_to(torch):
    x = leaf(torch, 1.0)
    y = x * 5
    y.retain_grad()
    tripling(torch).apply(y)
    (y * 2).backward()
    return y.grad, x.grad, y.retains_grad


@pytest.mark.row("G27")
@as_torch("""
    False
    tensor(3.0)
    False
    tensor(4.0, requires_grad=True)
    tensor(7.0)
    3.0
""")
def test_mark_dirty_and_mark_non_differentiable(torch):
    def forward(ctx, x, y):
        x.mul_(3)
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x, y * 2

    F = function(torch, forward, lambda ctx, g, h: (None, h * 7))
    x, y = leaf(torch, 1.0), leaf(torch, 2.0)
    a = x * 1
    b, c = F.apply(a, y)
    c.backward()
    return b is a, b, b.requires_grad, c, y.grad, a.tolist()


@pytest.mark.row("G27")
@as_torch("""
    tensor([32.0, 108.0], dtype=float64, requires_grad=True)
    [tensor([48.0, 108.0], dtype=float64)]
""")
def test_second_derivative_of_a_function_that_writes(torch):
    def forward(ctx, x):
        x.mul_(x)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    def backward(ctx, grad):
        (square,) = ctx.saved_tensors
        return 2 * grad * square.sqrt()

    x = leaf(torch, 2.0, 3.0, dtype=torch.float64)
    y = function(torch, forward, backward).apply(x * 1)
    (first,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    return first, torch.autograd.grad(first.sum(), x)


# ---- views


@pytest.mark.row("E14")
@as_torch
def test_a_view_that_a_function_made(torch):
    def run(forward, write, of=None):
        x = leaf(torch, 1.0, 2.0)
        F = function(torch, forward, lambda ctx, *grads: grads[0])
        result = F.apply(x * 1 if of is None else of(x))
        y = result[0] if isinstance(result, tuple) else result
        return error(write, y)

    def add(y):
        y.add_(1)

    return [
        run(lambda ctx, x: x, add),
        run(lambda ctx, x: x.view(2, 1), add),
        run(lambda ctx, x: x[:1], add),
        run(lambda ctx, x: (x[:1], x[1:]), add),
        run(lambda ctx, x: (x, x * 2), add),
        run(lambda ctx, x: x * 2, add),
        run(lambda ctx, x: (x * 2, x * 3), add),
        run(lambda ctx, x: x.detach(), add),
        run(lambda ctx, x: x.clone(), add),
        run(lambda ctx, x: x, add, lambda x: (x * 1)[:1]),
    ]


@pytest.mark.row("E14")
def test_a_view_that_a_function_made_under_no_grad():
    """Nothing is recorded, so the gradient is the Function's. PyTorch refuses the backward pass."""
    x = leaf(jaxgrad, 1.0, 2.0)
    y = function(jaxgrad, lambda ctx, x: x, lambda ctx, grad: grad * 7).apply(x * 1)
    with jaxgrad.no_grad():
        y.add_(1)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist(), y._version) == ([2, 3], [7, 7], 1)


@pytest.mark.row("E14")
@as_torch
def test_a_view_of_a_view_that_a_function_made(torch):
    x = leaf(torch, 1.0, 2.0)
    y = function(torch, lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2)).apply(x * 1)
    view = y[0]
    return error(view.add_, 1), error(view.mul_, y[1])


@pytest.mark.row("E14")
@as_torch
def test_a_write_to_the_base_of_a_view_that_a_function_made(torch):
    def run(forward, backward, use):
        x = leaf(torch, 1.0, 2.0)
        y = x * 1
        z = function(torch, forward, backward).apply(y)
        y.mul_(3)
        return error(lambda: use(z).sum().backward()), x.grad

    return [
        run(lambda ctx, x: x, lambda ctx, g: g * 7, lambda z: z * 2),
        run(lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2), lambda z: z * 2),
        run(lambda ctx, x: x[:1], lambda ctx, g: torch.cat([g, g]), lambda z: z),
    ]


@pytest.mark.row("E14")
@as_torch
def test_a_view_of_a_tensor_without_gradient(torch):
    x, y = torch.ones(2), leaf(torch, 1.0, 2.0)
    F = function(torch, lambda ctx, x, y: x.view(2, 1), lambda ctx, g: (None, g.view(2)))
    z = F.apply(x, y)
    return z, error(z.add_, 1), z.grad_fn.name()


@pytest.mark.row("E14")
@as_torch("""
    tensor([[1.0], [2.0]], requires_grad=True)
    True
    tensor([7.0, 7.0])
    'FBackward'
    0
""")
def test_the_values_of_a_view_that_a_function_made(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 1
    z = function(torch, lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2) * 7).apply(y)
    z.sum().backward()
    return z, z._base is y, x.grad, z.grad_fn.name(), z._version


@pytest.mark.row("E14")
@as_torch("""
    tensor([1.0], requires_grad=True)
    True
    tensor([7.0, 0.0])
""")
def test_an_input_returned_as_it_is_that_is_a_view(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 1
    z = function(torch, lambda ctx, x: x, lambda ctx, g: g * 7).apply(y[:1])
    z.sum().backward()
    return z, z._base is y, x.grad


# ---- what forward writes to besides its inputs


@pytest.mark.row("G18")
@as_torch("""
    tensor([6.0, 4.0], requires_grad=True)
    tensor([3.0, 2.0])
""")
def test_a_buffer_that_forward_writes_to(torch):
    def forward(ctx, x):
        buffer = torch.zeros(2)
        buffer[0] = x[1]
        buffer.add_(x)
        ctx.save_for_backward(buffer)
        return buffer * 2

    F = function(torch, forward, lambda ctx, grad: grad * ctx.saved_tensors[0])
    x = leaf(torch, 1.0, 2.0)
    y = F.apply(x)
    y.sum().backward()
    return y, x.grad


@pytest.mark.row("G18")
@as_torch("""
    tensor([2.0, 4.0])
    False
    2
    tensor([2.0, 2.0])
""")
def test_a_buffer_from_outside(torch):
    count = torch.zeros(2)

    def forward(ctx, x):
        count.add_(x)
        return x * 2

    F = function(torch, forward, lambda ctx, grad: grad * 2)
    x = leaf(torch, 1.0, 2.0)
    F.apply(x)
    F.apply(x).sum().backward()
    return count, count.requires_grad, count._version, x.grad


@pytest.mark.row("G18")
@as_torch("""
    tensor([2.0, 4.0], requires_grad=True)
    tensor(1.0499999523162842)
    True
    False
    tensor([2.0, 2.0])
    None
""")
def test_a_buffer_given_as_argument(torch):
    def forward(ctx, x, buffer):
        buffer.mul_(0.9).add_(x.mean() * 0.1)
        ctx.mark_dirty(buffer)
        ctx.mark_non_differentiable(buffer)
        return x * 2, buffer

    F = function(torch, forward, lambda ctx, g, h: (g * 2, None))
    x, buffer = leaf(torch, 1.0, 2.0), torch.ones(())
    y, same = F.apply(x, buffer)
    y.sum().backward()
    return y, buffer, same is buffer, buffer.requires_grad, x.grad, buffer.grad_fn


@pytest.mark.row("G27")
@as_torch("tensor(42.0)")
def test_backward_that_writes_to_its_gradient(torch):
    def backward(ctx, grad):
        return grad.mul_(7)

    x = leaf(torch, 1.0)
    y = x * 2
    (function(torch, lambda ctx, x: x * 1, backward).apply(y) * 3).backward()
    return x.grad


# ---- writes to views that a Function made

MADE_INSIDE = (
    "is a view and is being modified inplace. This view was created inside a custom Function"
)


def viewing(torch, make):
    class Viewing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return make(x)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Viewing


@pytest.mark.row("E14")
@as_torch
def test_a_view_of_a_function_in_place(torch):
    results = []
    for make in (lambda x: x.view(3), lambda x: x, lambda x: x.view_as(x)):
        x = leaf(torch, 1.0, 2.0, 3.0) * 1
        y = viewing(torch, make).apply(x)
        whole = error(y.mul_, 3.0, words=MADE_INSIDE)
        results += [y._is_view(), whole, error(y[:1].add_, 1, words=MADE_INSIDE)]
    return results


@pytest.mark.row("E14")
@as_torch("""
    tensor([3.0, 6.0, 9.0], requires_grad=True)
    tensor([3.0, 6.0, 9.0], requires_grad=True)
    tensor([6.0, 6.0, 6.0])
""")
def test_which_views_of_a_function_may_be_written(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    y = viewing(torch, lambda x: x * 1).apply(x)
    y.mul_(3)
    z = viewing(torch, lambda x: x.view(3)).apply(x * 1)
    with torch.no_grad():
        z.mul_(3)
    y.sum().backward()
    return y, z, x.grad


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


@pytest.mark.row("edge_24")
@as_torch("""
    [True, tensor(6.0, requires_grad=True), tensor(2.0)]
    RuntimeError('a leaf Variable that requires grad has been used in an in-place operation.')
    RuntimeError(
     'Some elements marked as dirty during the forward method were not returned as '
     'output. The inputs that are modified inplace must all be outputs of the Function.')
    ['UserWarning']
""")
def test_mark_dirty_of_a_function(torch):
    class Write(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    class NotReturned(Write):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2).clone()

    class NoInput(Write):
        @staticmethod
        def forward(ctx, x):
            output = x * 2
            ctx.mark_dirty(output)
            return output

    x = leaf(torch, 3.0)
    y = x * 1
    written = Write.apply(y)
    same = written is y
    y.backward()
    no_leaf = "a leaf Variable that requires grad has been used in an in-place operation"
    lost = "Some elements marked as dirty during the forward method were not returned as output"
    return (
        (same, y, x.grad),
        error(Write.apply, leaf(torch, 3.0), words=no_leaf),
        error(NotReturned.apply, x * 1, words=lost),
        [warning["error"] for warning in warned(NoInput.apply, x)["warnings"]],
    )


@pytest.mark.row("edge_24")
@as_torch("""
    RuntimeError(
     'If your Function modifies inplace an input that is a view of another Tensor, your '
     'Function cannot return more than one Tensor. This is not supported by the current '
     'autograd engine. You should either make sure the input is not a view (using '
     '.clone() for example) or make your Function only return one Tensor (potentially '
     'splitting it into two Functions: one doing the inplace that returns a single '
     'Tensor and a second one that does the other operations). You can ask on the forum '
     'https://discuss.pytorch.org/ if you need help to do this change.')
""")
def test_mark_dirty_of_a_view_with_two_outputs(torch):
    class Write(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2), x.clone()

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 2 * h

    view = (numbers(torch, 1.0, 2.0) * 1)[:1]
    words = "If your Function modifies inplace an input that is a view of another Tensor"
    return error(Write.apply, view, words=words)


@pytest.mark.row("edge_24")
@as_torch("""
    RuntimeError(
     'one of the variables needed for gradient computation has been modified by an '
     'inplace operation: [torch.FloatTensor []], which is output 0 of Exp, is at '
     'version 2; expected version 0 instead. Hint: enable anomaly detection to find the '
     'operation that failed to compute its gradient, with '
     'torch.autograd.set_detect_anomaly(True, check_nan=False).')
""")
def test_mark_dirty_invalidates_what_was_saved(torch):
    class Write(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = leaf(torch, 3.0)
    with strict(torch):
        y = x.exp()
        z = y * 1
        Write.apply(y)
        words = "has been modified by an inplace operation"
        return error((z + y).backward, words=words)


@pytest.mark.parametrize(
    "test",
    [
        test_mark_dirty_of_a_function,
        test_mark_dirty_of_a_view_with_two_outputs,
        test_mark_dirty_invalidates_what_was_saved,
    ],
    ids=lambda test: test.__name__,
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
