"""What a Function's ctx keeps and reports, row by row of PyTorch's behaviour."""

import warnings

import pytest
from helpers.as_torch import as_torch, error, leaf, warned
from helpers.compiled import under_jit
from helpers.functions import double, function, giving, noting, square

import jaxgrad

# ---- what is saved


@pytest.mark.row("G18")
@as_torch("[[3.0]]")
def test_save_for_backward_keeps_values(torch):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.save_for_backward(y)
        return x * y

    seen = []

    def backward(ctx, grad):
        seen.append([tensor.tolist() for tensor in ctx.saved_tensors])
        return grad, grad

    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    function(torch, forward, backward).apply(x, y).backward()
    return seen


@pytest.mark.row("G18")
@as_torch("""
    TypeError('save_for_backward can only save variables, but argument 0 is of type int')
    TypeError('save_for_backward can only save variables, but argument 1 is of type str')
    TypeError('save_for_backward can only save variables, but argument 0 is of type list')
    tensor(1.0)
    tensor(1.0)
""")
def test_what_may_be_saved(torch):
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


@pytest.mark.row("G19")
@as_torch("[[None, 2.0, None]]")
def test_none_may_be_saved(torch):
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


@pytest.mark.row("G22")
@as_torch("""
    0
    [True, [True, True, True], [None, 'MulBackward0', 'FBackward']]
""")
def test_saved_tensors_as_they_come_back(torch):
    seen = []

    def forward(ctx, x, y):
        z = x * y
        ctx.save_for_backward(x, y, z)
        seen.append(len(ctx.saved_tensors))
        return z

    def backward(ctx, grad):
        saved = ctx.saved_tensors
        names = [tensor.grad_fn and tensor.grad_fn.name() for tensor in saved]
        seen.append((saved[0] is x, [tensor.requires_grad for tensor in saved], names))
        return grad, grad

    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = function(torch, forward, backward).apply(x, y * 1)
    z.backward()
    return seen


@pytest.mark.row("G22")
@as_torch("[['tuple', 0]]")
def test_the_kind_of_saved_tensors(torch):
    seen = []

    def backward(ctx, grad):
        seen.append((type(ctx.saved_tensors).__name__, len(ctx.saved_tensors)))
        return grad

    x = leaf(torch, 2.0)
    function(torch, lambda ctx, x: x * 2, backward).apply(x).backward()
    return seen


@pytest.mark.row("G22")
@as_torch
def test_saved_tensors_once_freed(torch):
    x = leaf(torch, 2.0)
    y = square(torch).apply(x)
    node = y.grad_fn
    before = [tensor.tolist() for tensor in node.saved_tensors]
    y.backward()
    return before, error(lambda: node.saved_tensors), error(y.backward), x.grad


@pytest.mark.row("G22")
@as_torch("tensor(28.0)")
def test_a_function_that_saves_nothing_can_run_again(torch):
    x = leaf(torch, 2.0)
    y = double(torch).apply(x)
    y.backward()
    y.backward()
    return x.grad


@pytest.mark.row("G22")
@as_torch("""
    tensor(8.0)
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
""")
def test_saved_tensors_of_a_retained_graph(torch):
    x = leaf(torch, 2.0)
    y = square(torch).apply(x)
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, error(y.backward)


@pytest.mark.row("G23")
@as_torch("""
    [['word', 3, [1, 2], False]]
    'word'
    3
""")
def test_attributes_of_ctx(torch):
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


NAMES = [
    "edges",
    "extras",
    "hooks_of",
    "more",
    "output_count",
    "outputs",
    "retain",
    "reverse",
    "run",
]
NAMES += ["retained_at", "saved", "sequence", "inputs", "value", "function"]


@pytest.mark.row("G23")
@as_torch
def test_attributes_of_any_name(torch):
    def forward(ctx, x):
        for number, name in enumerate(NAMES):
            setattr(ctx, name, number)
        return x * 2, x * 3

    seen = []

    def backward(ctx, *grads):
        seen.append([getattr(ctx, name) for name in NAMES])
        ctx.edges = "written"
        return grads[0] * 7 + grads[1] * 11

    x = leaf(torch, 2.0)
    y, z = function(torch, forward, backward).apply(x * 1)
    for output in (y, z):
        output.retain_grad()
    y.grad_fn.register_hook(lambda i, o: seen.append(len(o)))
    (y * z).backward(retain_graph=True)
    seen.append(type(seen[0]).__name__)
    (y + z).backward()
    again = torch.autograd.grad(function(torch, forward, backward).apply(x)[0], x)
    return seen, x.grad, y.grad, z.grad, again, len(y.grad_fn.next_functions)


@pytest.mark.row("G23")
def test_attributes_of_ctx_that_the_call_needs_itself():
    def forward(ctx, x):
        ctx._saved = x
        return x * 2

    F = function(jaxgrad, forward, lambda ctx, grad: grad)
    with pytest.raises(AttributeError, match=r"FBackward: ctx\._saved is a name that the call"):
        F.apply(leaf(jaxgrad, 2.0))


@pytest.mark.row("G24")
@as_torch("""
    AssertionError(
     'save_for_forward expects all arguments to be tensors; you should save non-tensors '
     'as attributes on ctx.')
    tensor(1.0)
    tensor(1.0)
""")
def test_save_for_forward_keeps_values_for_jvp(torch):
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


@pytest.mark.row("G30")
@as_torch("""
    [[[1.0, 1.0], [0.0, 0.0], 'torch.float32']]
    tensor([2.0, 2.0])
    tensor([3.0, 6.0])
    None
    True
""")
def test_outputs_marked_as_not_differentiable(torch):
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


@pytest.mark.row("G31")
@as_torch("""
    tensor(4.0)
    None
    False
""")
def test_all_outputs_marked_as_not_differentiable(torch):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    y = function(torch, forward, lambda ctx, g: g).apply(leaf(torch, 2.0))
    return y, y.grad_fn, y.requires_grad


@pytest.mark.row("G32")
@as_torch("""
    RuntimeError('mark_non_differentiable only accepts variable arguments, but got ')
    tensor(4.0, requires_grad=True)
    tensor(4.0, requires_grad=True)
""")
def test_what_may_be_marked_as_not_differentiable(torch):
    def run(choose):
        def forward(ctx, x):
            y = x * 2
            ctx.mark_non_differentiable(*choose(x, y))
            return y

        x = leaf(torch, 2.0)
        y = function(torch, forward, lambda ctx, g: g * 7).apply(x)
        return y

    return error(run, lambda x, y: [3]), run(lambda x, y: [x]), run(lambda x, y: [x * 1])


@pytest.mark.row("G30")
@as_torch("""
    tensor(2.0)
    False
    None
    True
""")
def test_an_input_returned_and_marked(torch):
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
        seen.append([None if gradient is None else gradient.tolist() for gradient in (g, h)])
        return g * 2 if g is not None else None

    return function(torch, forward, backward)


@pytest.mark.row("G33")
@as_torch
def test_undefined_gradients(torch):
    """Edge case 26."""
    seen, gradients = [], []
    for materialize in (None, True, False):
        x = leaf(torch, 1.0, 2.0)
        a, b = unused(torch, materialize, seen).apply(x)
        a.sum().backward()
        gradients.append(x.grad)
        y = leaf(torch, 1.0, 2.0)
        a, b = unused(torch, materialize, seen).apply(y)
        b.sum().backward()
        gradients.append(y.grad)
    return seen, gradients


@pytest.mark.row("G33")
@as_torch
def test_set_materialize_grads_takes_a_bool(torch):
    def run(value):
        def forward(ctx, x):
            ctx.set_materialize_grads(value)
            return x * 2

        return function(torch, forward, lambda ctx, g: g).apply(leaf(torch, 2.0))

    words = "set_materialize_grads"
    return [error(run, value, words=words) for value in (1, None, "word")], run(False), run(True)


@pytest.mark.row("G34")
@as_torch("""
    ['forward']
    tensor(2.0)
""")
def test_a_function_that_is_not_used_is_not_called(torch):
    seen = []
    F = noting(torch, seen)
    x = leaf(torch, 2.0)
    F.apply(x)
    (x * 2).backward()
    return seen, x.grad


@pytest.mark.row("G34")
@as_torch("""
    [[[0.0, 0.0]], tensor([0.0, 0.0])]
    [[None], None]
""")
def test_none_gradients_reach_a_function(torch):
    """An undefined gradient of one Function's input reaches another Function."""
    results = []
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
        results.append((seen, x.grad))
    return results


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


@pytest.mark.row("G35")
@as_torch("""
    tensor(4.0)
    tensor(4.0)
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
""")
def test_once_differentiable_refuses_second_derivatives(torch):
    """Edge case 13."""
    x = leaf(torch, 2.0)
    y = once(torch).apply(x)
    y.backward()
    (first,) = torch.autograd.grad(once(torch).apply(x), x, create_graph=True)
    return x.grad, first, error(first.backward)


@pytest.mark.row("G35")
@as_torch("""
    tensor(4.0, requires_grad=True)
    True
    RuntimeError(
     'trying to differentiate twice a function that was marked with @once_differentiable')
""")
def test_once_differentiable_with_a_gradient_that_requires_grad(torch):
    x = leaf(torch, 2.0)
    g = torch.ones((), requires_grad=True)
    (first,) = torch.autograd.grad(once(torch).apply(x), x, g, create_graph=True)
    return first, first.grad_fn is not None, error(first.backward)


@pytest.mark.row("G35")
@as_torch("""
    tensor(12.0, requires_grad=True)
    tensor(4.0, requires_grad=True)
    [tensor(4.0)]
    RuntimeError(
     'trying to differentiate twice a function that was marked with @once_differentiable')
""")
def test_once_differentiable_and_a_second_pass_that_does_not_reach_it(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = once(torch).apply(x) * y
    dx, dy = torch.autograd.grad(z, [x, y], create_graph=True)
    return dx, dy, torch.autograd.grad(dy, x), error(dx.backward)


@pytest.mark.row("G35")
@as_torch("""
    [tensor(12.0, requires_grad=True), None]
    RuntimeError(
     'trying to differentiate twice a function that was marked with @once_differentiable')
""")
def test_once_differentiable_of_several_inputs(torch):
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


@pytest.mark.row("G36")
@as_torch("""
    [True, False, False, False, False]
    [True, False, False, False, False]
    [False, True]
    [False]
""")
def test_needs_input_grad_of_each_argument(torch):
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


@pytest.mark.row("G36")
@as_torch("""
    [tensor(2.0)]
    [[True, True]]
    None
""")
def test_needs_input_grad_under_grad_of_one_input(torch):
    """It depends on the arguments of forward, not on the gradients that are asked for."""
    seen = []

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return grad * 2, grad * 3

    F = function(torch, lambda ctx, x, y: x * y, backward)
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    return torch.autograd.grad(F.apply(x, y), x), seen, y.grad


@pytest.mark.row("G37")
@as_torch("""
    [['tensor', 1.0],
     ['pre', [1.0]],
     ['FBackward', ['MulBackward0', 'AccumulateGrad'], 3],
     ['post', [1.0, 1.0]]]
    True
    True
""")
def test_ctx_is_the_node(torch):
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


@pytest.mark.row("G37")
@as_torch("""
    None
    'AccumulateGrad'
""")
def test_next_functions_of_inputs_that_need_none(torch):
    F = function(torch, lambda ctx, x, n, y: x * y, lambda ctx, g: (g, None, g))
    z = F.apply(torch.ones(()), 3, leaf(torch, 2.0))
    return [None if to is None else to.name().split("::")[-1] for to, _ in z.grad_fn.next_functions]


@pytest.mark.row("G37")
@as_torch("""
    tensor(20.0)
    tensor(30.0)
    [2]
""")
def test_a_hook_that_changes_a_functions_gradients(torch):
    F = function(torch, lambda ctx, x, n, y: x * y, lambda ctx, g: (g * 2, None, g * 3))
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = F.apply(x, 3, y)
    seen = []
    z.grad_fn.register_hook(lambda i, o: seen.append(len(i)) or tuple(g and g * 10 for g in i))
    z.backward()
    return x.grad, y.grad, seen


@pytest.mark.row("G38")
@as_torch("""
    'FBackward'
    True
    True
    True
""")
def test_the_class_of_the_node(torch):
    F = double(torch)
    y = F.apply(leaf(torch, 2.0))
    kind = type(y.grad_fn)
    base = torch.autograd.function.BackwardCFunction
    return kind.__name__, issubclass(kind, base), kind is F._backward_cls, kind._forward_cls is F


@pytest.mark.row("G39")
@as_torch("tensor(30.0, requires_grad=True)")
def test_running_a_node_by_hand(torch):
    F = square(torch)
    x = leaf(torch, 3.0)
    node = F.apply(x).grad_fn
    return node.apply(torch.tensor(5.0))


@pytest.mark.row("G41")
@as_torch("""
    ' should not be instantiated'
    'DeprecationWarning'
    RuntimeError(
     'Legacy autograd function with non-static forward method is deprecated. Please use '
     'new-style autograd function with static forward method. (Example: '
     'https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)')
""")
def test_instances_of_a_function(torch):
    F = double(torch)
    report = warned(F)
    message = report["warnings"][0]["says"].partition(" should not be instantiated")[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        instance = F()
    return message, report["warnings"][0]["error"], error(instance, leaf(torch, 2.0))


@pytest.mark.row("G42")
@as_torch("""
    True
    True
    True
    True
""")
def test_names_of_old_code(torch):
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


@pytest.mark.row("G43")
@as_torch("""
    tensor(4.0, requires_grad=True)
    ['FutureWarning']
""")
def test_mark_shared_storage(torch):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_shared_storage((x, y))
        return y

    report = warned(function(torch, forward, lambda ctx, g: g).apply, leaf(torch, 2.0))
    return report["result"], [warning["error"] for warning in report["warnings"]]


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


@pytest.mark.row("G44")
@as_torch
def test_saved_tensors_read_once(torch):
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


@pytest.mark.row("G45")
@as_torch("""
    [['list', [1.0, 0.0]]]
    tensor(7.0)
""")
def test_gradients_in_a_list(torch):
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


@pytest.mark.row("G48")
@as_torch("tensor(110.0)")
def test_one_tensor_given_twice_to_a_function(torch):
    """Edge case 28."""
    x = leaf(torch, 2.0)
    F = function(torch, lambda ctx, x, y: x * y, lambda ctx, g: (g * 10, g * 100))
    F.apply(x, x).backward()
    return x.grad


@pytest.mark.row("G49")
@as_torch("""
    'WeirdNameBackward'
    'WeirdNameBackward'
    True
""")
def test_the_name_of_the_node(torch):
    class WeirdName(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = WeirdName.apply(leaf(torch, 2.0))
    return y.grad_fn.name(), type(y.grad_fn).__name__, repr(y.grad_fn).startswith("<")


@pytest.mark.row("G51")
@as_torch("tensor(12.0)")
def test_arguments_without_a_gradient_need_no_declaration(torch):
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


@as_torch("""
    [[False, False]]
    [True, True]
    tensor([2.0, 2.0])
    tensor([1.0, 1.0])
""")
def test_needs_input_grad_belongs_to_the_author(torch):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.needs_input_grad = (False, False)
            return x * 2 + y

        @staticmethod
        def backward(ctx, gradient):
            seen.append(list(ctx.needs_input_grad))
            return gradient * 2, gradient

    seen, x, y = [], leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    result = Scale.apply(x, y)
    edges = [node is not None for node, _ in result.grad_fn.next_functions]
    result.sum().backward()
    return seen, edges, x.grad, y.grad


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


@pytest.mark.row("edge_25")
@as_torch("""
    tensor([6.0, 2.0, 4.0], dtype=float64)
    tensor([1, 0, 1])
    tensor([3.0, 30.0, 300.0], dtype=float64)
    [[tensor([0.0, 0.0, 0.0], dtype=float64), tensor([0, 0, 0])]]
""")
def test_mark_non_differentiable_of_a_float_and_an_integer_output(torch):
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
def test_set_materialize_grads_of_a_function_with_two_outputs(torch):
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


def differentiable_once(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return Double


@pytest.mark.row("edge_13")
@as_torch("""
    [tensor(6.0)]
    tensor(30.0, requires_grad=True)
    [RuntimeError(
      'trying to differentiate twice a function that was marked with @once_differentiable'),
     RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')]
    [tensor(2.0)]
""")
def test_once_differentiable_in_a_double_backward(torch):
    Double, x, weight = (
        differentiable_once(torch),
        *(leaf(torch, value) for value in (3.0, 5.0)),
    )
    first = torch.autograd.grad(Double.apply(x), x, create_graph=True)
    (weighted,) = torch.autograd.grad(Double.apply(x) * weight, x, create_graph=True)
    refused = error(weighted.backward), error(torch.autograd.grad, first[0], x)
    (other,) = torch.autograd.grad(Double.apply(x) + weight**2, weight, create_graph=True)
    return first, weighted, refused, torch.autograd.grad(other, weight)


@pytest.mark.row("edge_13")
def test_factors_of_a_once_differentiable_gradient():
    """PyTorch says that it was not used, and with allow_unused=True gives None."""
    x, weight = leaf(jaxgrad, 3.0), leaf(jaxgrad, 5.0)
    y = differentiable_once(jaxgrad).apply(x) * weight
    (gradient,) = jaxgrad.autograd.grad(y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that"):
        jaxgrad.autograd.grad(gradient, weight, allow_unused=True)


@pytest.mark.parametrize(
    "test",
    [
        test_mark_non_differentiable_of_a_float_and_an_integer_output,
        test_set_materialize_grads_of_a_function_with_two_outputs,
        test_once_differentiable_in_a_double_backward,
    ],
    ids=lambda test: test.__name__,
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
