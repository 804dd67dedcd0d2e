"""Edge cases 24 to 28: Functions, eager and compiled."""

import pytest
from helpers.as_torch import as_torch, error, leaf, strict, warned
from helpers.compiled import under_jit


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


@pytest.mark.row("edge_25")
@as_torch("""
    tensor([6.0, 2.0, 4.0], dtype=float64)
    tensor([1, 0, 1])
    tensor([3.0, 30.0, 300.0], dtype=float64)
    [[tensor([0.0, 0.0, 0.0], dtype=float64), tensor([0, 0, 0])]]
""")
def test_mark_non_differentiable(torch):
    seen = []

    class Three(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            marked = x * 2
            ctx.mark_non_differentiable(marked)
            return x * 3, marked, (x > 1).long()

        @staticmethod
        def backward(ctx, g, marked, integers):
            seen.append((marked, integers))
            return g * 3

    x = numbers(torch, 3.0, 1.0, 2.0)
    tripled, doubled, integers = Three.apply(x)
    (tripled * torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)).sum().backward()
    return doubled, integers, x.grad, seen


@pytest.mark.row("edge_26")
@as_torch("""
    [[tensor(1.0), tensor(0.0)], [tensor(1.0), tensor(0.0)], [tensor(1.0), None]]
    3
    3
    tensor(8.0)
""")
def test_set_materialize_grads(torch):
    gradients = []

    def function(materialize):
        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                if materialize is not None:
                    ctx.set_materialize_grads(materialize)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, g, h):
                gradients.append((g, h))
                return g * 2 if h is None else g * 2 + h * 3

        return Two

    x = leaf(torch, 2.0)
    for materialize in (None, True, False):
        first, _ = function(materialize).apply(x)
        first.backward()
    called = len(gradients)
    function(False).apply(x)
    (x * 2).backward()
    return gradients, called, len(gradients), x.grad


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
def test_what_backward_returns(torch):
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
def test_arguments_of_functions(torch):
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


# Cases without an answer of PyTorch, and those of several threads, run uncompiled alone.
COMPILED = [test for test in list(globals().values()) if hasattr(test, "body")]


@pytest.mark.parametrize("test", COMPILED, ids=lambda test: test.__name__)
def test_the_cases_compiled(test):
    under_jit(test)()
