"""Edge cases 1 to 23: passes, hooks, tensors and modes, eager and, where possible, compiled."""

import copy
import threading
from collections import OrderedDict

import pytest
from helpers.as_torch import as_torch, error, leaf, warned
from helpers.compiled import under_jit

import jaxgrad


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


def word(report):
    """The type of a warning or error and the words that both libraries share."""
    return [(warning["error"], warning["says"].split(". ")[0]) for warning in report["warnings"]]


# ---- graphs that run more than once


@pytest.mark.row("edge_01")
@as_torch("""
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
    tensor(6.0)
    tensor(2.0)
""")
def test_backward_twice_raises(torch):
    x, y = leaf(torch, 3.0), leaf(torch, 3.0)
    square, sum_ = x * x, y + 1
    square.backward()
    second = error(square.backward)
    sum_.backward()
    sum_.backward()
    return second, x.grad, y.grad


@pytest.mark.row("edge_02")
@as_torch("""
    tensor(8.0)
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
""")
def test_retain_graph_lets_a_pass_run_again(torch):
    x = leaf(torch, 2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, error(y.backward)


@pytest.mark.row("edge_03")
@as_torch
def test_graphs_freed_in_part(torch):
    a = leaf(torch, 3.0)
    y = a * a
    z = y * y
    outer, inner = torch.autograd.grad(z, y), torch.autograd.grad(y, a)
    b = leaf(torch, 3.0)
    shared = b * b
    z, w = shared * 2, shared * 3
    z.backward()
    return outer, inner, b.grad, error(w.backward), b.grad


@pytest.mark.row("edge_04")
@as_torch("""
    True
    tensor(12.0)
    False
    tensor(12.0)
    tensor(18.0, requires_grad=True)
    [['UserWarning',
      ('Using backward() with create_graph=True will create a reference cycle between the '
       'parameter and its gradient which can cause a memory leak')]]
""")
def test_accumulation_and_identity_of_grad(torch):
    a = leaf(torch, 3.0)
    (a * a).backward()
    g = a.grad
    (a * a).backward()
    same, total = a.grad is g, g.clone()
    told = warned(lambda: (a * a).backward(create_graph=True))
    answers = same, total, a.grad is g, g, a.grad, word(told)
    a.grad = None
    return answers


@pytest.mark.row("edge_05")
@as_torch("""
    tensor(3.0)
    tensor(3.0)
    True
""")
def test_a_preset_gradient(torch):
    a, gradient = leaf(torch, 1.0), torch.tensor(1.0)
    a.grad = gradient
    (a * 2).backward()
    return a.grad, gradient, a.grad is gradient


@pytest.mark.row("edge_06")
@as_torch
def test_allow_unused_gives_none(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 5.0)
    grad = torch.autograd.grad
    return (
        error(grad, x * x, [x, y]),
        error(grad, x * x, [y, x]),
        error(lambda: grad(x * x, [x, y], allow_unused=False)),
        grad(x * x, [x, y], allow_unused=True),
        grad(x * x, [x, y], allow_unused=None, materialize_grads=True),
    )


@pytest.mark.row("edge_07")
@as_torch("""
    [tensor(4.0), tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=float64)]
    [tensor(4.0, requires_grad=True),
     tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=float64, requires_grad=True)]
    ValueError(
     'Expected allow_unused to be True or not passed when materialize_grads=True, but '
     'got: allow_unused=False.')
""")
def test_materialize_grads_gives_zeros(torch):
    x, y = leaf(torch, 2.0), torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    grad = torch.autograd.grad
    return (
        grad(x * x, [x, y], materialize_grads=True),
        grad(x * x, [x, y], materialize_grads=True, create_graph=True),
        error(lambda: grad(x * x, [x, y], materialize_grads=True, allow_unused=False)),
    )


@pytest.mark.row("edge_08")
@as_torch("""
    [tensor([[3.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 27.0]], dtype=float64)]
    RuntimeError(
     'If `is_grads_batched=True`, we interpret the first dimension of each grad_output '
     'as the batch dimension. The sizes of the remaining dimensions are expected to '
     'match the shape of corresponding output, but a mismatch was detected: '
     'grad_output[0] has a shape of torch.Size([]) and output[0] has a shape of '
     'torch.Size([3]). If you only want some tensors in `grad_output` to be considered '
     'batched, consider using vmap.')
""")
def test_is_grads_batched_of_several_inputs(torch):
    x = numbers(torch, 1.0, 2.0, 3.0)
    y, eye = x * x * x, torch.eye(3, dtype=torch.float64)
    gradients = torch.autograd.grad(y, x, eye, retain_graph=True, is_grads_batched=True)
    wrong = torch.ones(4, 4, dtype=torch.float64)
    words = "If `is_grads_batched=True`, we interpret the first dimension of each grad_output"
    refused = error(lambda: torch.autograd.grad(y, x, wrong, is_grads_batched=True), words=words)
    return gradients, refused


@pytest.mark.row("edge_09")
@as_torch("""
    [[tensor(12.0), None], [None, tensor(2.0)], [tensor(12.0), None], [tensor(12.0), tensor(2.0)]]
    None
    [RuntimeError('`inputs` argument to `backward()` cannot be empty.'),
     TypeError(
      '`inputs` argument to `backward()` must be a dict, not OrderedDict. Other Mapping '
      'types are not supported.'),
     RuntimeError("can't retain_grad on Tensor that has requires_grad=False")]
""")
def test_inputs_of_backward(torch):
    gradients = []
    for form in (lambda a, b: [a], lambda a, b: b, lambda a, b: {"a": a}, lambda a, b: (a, b)):
        a = leaf(torch, 3.0)
        b = a * a
        (b * 2).backward(inputs=form(a, b))
        gradients.append((a.grad, b.grad if b.retains_grad else None))
    a, other, plain = leaf(torch, 3.0), leaf(torch, 1.0), torch.tensor(1.0)
    y = a * a
    y.backward(inputs=[other], retain_graph=True)
    refused = [error(lambda w=w: y.backward(inputs=w)) for w in ([], OrderedDict(a=a))]
    words = "can't retain_grad on Tensor that has requires_grad=False"
    refused.append(error(lambda: y.backward(inputs=[plain]), words=words))
    return gradients, other.grad, refused


@pytest.mark.row("edge_10")
@as_torch("""
    [tensor(2.0), tensor([2.0]), tensor([[2.0]])]
    [RuntimeError('grad can be implicitly created only for scalar outputs'),
     RuntimeError('grad can be implicitly created only for scalar outputs'),
     RuntimeError(
      'grad can be implicitly created only for real scalar outputs but got '
      'torch.complex64')]
""")
def test_implicit_gradient_of_one_element(torch):
    words = "grad can be implicitly created only for"
    gradients, refused = [], []
    for shape in ((), (1,), (1, 1)):
        x = torch.full(shape, 3.0, requires_grad=True)
        (x * 2).backward()
        gradients.append(x.grad)
    for shape in ((3,), (0,)):
        x = torch.ones(shape, requires_grad=True)
        refused.append(error((x * 2).backward, words=f"{words} scalar outputs"))
    z = torch.tensor(1 + 2j, requires_grad=True)
    refused.append(error((z * z).backward, words=f"{words} real scalar outputs but got"))
    return gradients, refused


@pytest.mark.row("edge_11")
@as_torch("""
    tensor([2.0, 4.0])
    RuntimeError(
     'For complex Tensors, both grad_output and output are required to have the same '
     'dtype. Mismatch in dtype: grad_output[0] has a dtype of torch.complex64 and '
     'output[0] has a dtype of torch.float32.')
    TypeError('gradients can be either Tensors or None, but got float')
""")
def test_dtype_of_a_gradient(torch):
    x = leaf(torch, 1.0, 2.0)
    (x * x).backward(torch.ones(2, dtype=torch.float64))
    complex_, words = torch.ones(2, dtype=torch.complex64), "For complex Tensors, both grad_output"
    return x.grad, error((x * x).backward, complex_, words=words), error((x * x).backward, [1.0])


@pytest.mark.row("edge_12")
@as_torch("""
    tensor(12.0, requires_grad=True)
    tensor(12.0)
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    [['UserWarning',
      ('Using backward() with create_graph=True will create a reference cycle between the '
       'parameter and its gradient which can cause a memory leak')]]
    tensor(12.0, requires_grad=True)
""")
def test_double_backward_of_nested_calls(torch):
    x = leaf(torch, 2.0)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    (plain,) = torch.autograd.grad(x**3, x)
    words = "element 0 of tensors does not require grad and does not have a grad_fn"
    refused = error(torch.autograd.grad, plain, x, words=words)
    told = warned(lambda: (x**3).backward(create_graph=True))
    answers = first, second, refused, word(told), x.grad
    x.grad = None
    return answers


def once(torch):
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
def test_once_differentiable_in_a_second_derivative(torch):
    Double, x, weight = once(torch), *(leaf(torch, value) for value in (3.0, 5.0))
    first = torch.autograd.grad(Double.apply(x), x, create_graph=True)
    (weighted,) = torch.autograd.grad(Double.apply(x) * weight, x, create_graph=True)
    refused = error(weighted.backward), error(torch.autograd.grad, first[0], x)
    (other,) = torch.autograd.grad(Double.apply(x) + weight**2, weight, create_graph=True)
    return first, weighted, refused, torch.autograd.grad(other, weight)


@pytest.mark.row("edge_13")
def test_what_such_a_gradient_was_multiplied_by():
    """PyTorch says that it was not used, and with allow_unused=True gives None."""
    x, weight = leaf(jaxgrad, 3.0), leaf(jaxgrad, 5.0)
    y = once(jaxgrad).apply(x) * weight
    (gradient,) = jaxgrad.autograd.grad(y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that"):
        jaxgrad.autograd.grad(gradient, weight, allow_unused=True)


# ---- hooks


@pytest.mark.row("edge_14")
@as_torch("""
    [['b1', [tensor(3.0)]],
     ['b2', [tensor(30.0)]],
     ['pre', [[tensor(31.0)]]],
     ['node', [[tensor(62.0), None], [tensor(31.0)]]],
     ['a', [tensor(62.0)]],
     ['post', tensor(62.0)]]
    tensor(31.0)
    tensor(62.0)
""")
def test_order_of_hooks(torch):
    seen = []

    def note(name, result=None):
        def hook(*gradients):
            seen.append((name, gradients))
            return None if result is None else result(*gradients)

        return hook

    a = leaf(torch, 2.0)
    b = a * 2
    c = b * 3
    b.register_hook(note("b1", lambda g: g * 10))
    b.register_hook(note("b2", lambda g: g + 1))
    b.grad_fn.register_prehook(note("pre"))
    b.grad_fn.register_hook(note("node"))
    b.retain_grad()
    a.register_hook(note("a"))
    a.register_post_accumulate_grad_hook(lambda leaf: seen.append(("post", leaf.grad.clone())))
    c.backward()
    return seen, b.grad, a.grad


@pytest.mark.row("edge_15")
@as_torch("""
    [1, 2, 2, 2]
    tensor(48.0)
""")
def test_hooks_that_are_removed(torch):
    x, seen, handles = leaf(torch, 2.0), [], {}

    def once(g):
        seen.append(1)
        handles["once"].remove()

    handles["once"] = x.register_hook(once)
    x.register_hook(lambda g: seen.append(2))
    for _ in range(2):
        (x * x).backward()
    with x.register_hook(lambda g: g * 10):
        (x * x).backward()
    return seen, x.grad


@pytest.mark.row("edge_15")
@as_torch("""
    TypeError("expected Variable, but hook returned 'int'")
    RuntimeError("hook '<lambda>' has changed the size of value")
    RuntimeError(
     "hook '<lambda>' has changed the type of value (was torch.FloatTensor got "
     'torch.DoubleTensor)')
    ZeroDivisionError('division by zero')
""")
def test_what_hooks_return(torch):
    errors = []
    for wrong in (lambda g: 3, lambda g: torch.ones(3), lambda g: g.double(), lambda g: 1 / 0):
        x = leaf(torch, 2.0)
        y = x * x
        y.register_hook(wrong)
        errors.append(error(y.backward))
    return errors


@pytest.mark.row("edge_15")
@as_torch("""
    [['new', tensor(1.0)], ['old', tensor(3.0)], ['sum', tensor(7.0)]]
    tensor(3.0)
""")
def test_hooks_and_writes(torch):
    x, seen = leaf(torch, 2.0), []
    y = x * 1
    y.register_hook(lambda g: seen.append(("old", g)))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("new", g)))
    y.backward()
    z = leaf(torch, 2.0) * 1
    z.register_hook(lambda g: seen.append(("sum", g)))
    (z * 3 + z * 4).backward()
    return seen, x.grad


@pytest.mark.row("edge_16")
@as_torch("""
    [[tensor(3.0)], []]
    ['before', 'node']
""")
def test_hooks_under_grad(torch):
    x, seen = leaf(torch, 2.0), []
    y = x * x
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("accumulated"))
    y.grad_fn.register_hook(lambda results, gradients: seen.append("node"))
    y.grad_fn.register_prehook(lambda gradients: seen.append("before"))
    z = y * 3
    captured = torch.autograd.grad(z, y, retain_graph=True), list(seen)
    torch.autograd.grad(z, x)
    return captured, seen


@pytest.mark.row("edge_17")
@as_torch("""
    [[True, True, True, False], [True, False, False, False]]
    1
    2
    ValueError("Expects mode to be one of ('all', 'any') but got x")
""")
def test_multi_grad_hook(torch):
    a, b, c, unused = (leaf(torch, float(i)) for i in range(1, 5))
    seen, first, graph = [], [], torch.autograd.graph
    graph.register_multi_grad_hook(
        (a, b, c, unused), lambda gradients: seen.append([g is not None for g in gradients])
    )
    graph.register_multi_grad_hook((b, a), lambda gradient: first.append(gradient), mode="any")
    y = a * b * 1 + c * a
    y.backward(retain_graph=True)
    counted = len(first)
    y.backward(inputs=(a,))
    z = leaf(torch, 1.0)
    wrong = error(lambda: graph.register_multi_grad_hook((z,), print, mode="x"))
    return seen, counted, len(first), wrong


# ---- tensors that keep gradients, and that do not


@pytest.mark.row("edge_18")
@as_torch("""
    False
    tensor([1.0, 1.0], dtype=float64)
    tensor([6.0, 6.0], dtype=float64)
    RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
""")
def test_retain_grad_of_written_tensors(torch):
    x = numbers(torch, 1.0, 2.0)
    x.retain_grad()
    b = x * 2
    b.retain_grad()
    b.mul_(3)
    b.sum().backward()
    return x.retains_grad, b.grad, x.grad, error(torch.ones(1).retain_grad)


@pytest.mark.row("edge_19")
@as_torch("""
    [['UserWarning', 'The .grad attribute of a Tensor that is not a leaf Tensor is being accessed']]
    None
""")
def test_grad_of_what_is_no_leaf(torch):
    y = leaf(torch, 2.0) * 3
    y.backward()
    told = warned(lambda: y.grad)
    return word(told), told["result"]


@pytest.mark.row("edge_20")
@as_torch
def test_errors_of_requires_grad(torch):
    x, i = numbers(torch, 1.0, 2.0), torch.tensor([1, 2])
    y, out = x * 2, torch.zeros(2, dtype=torch.float64)
    differentiable = "can require gradients"
    resized = "cannot resize variables that require grad"
    copied = "Only Tensors created explicitly by the user (graph leaves) support the deepcopy"
    return (
        error(i.requires_grad_, words=differentiable),
        error((i > 1).requires_grad_, words=differentiable),
        error(y.requires_grad_, False),
        error(y.numpy),
        error(copy.deepcopy, y, words=copied),
        error(lambda: torch.add(x, x, out=out), words="don't support automatic differentiation"),
        error(x.resize_, 3, words=resized),
        error(lambda: torch.ones(2, dtype=torch.bool, requires_grad=True), words=differentiable),
    )


# ---- modes


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


@pytest.mark.row("edge_22")
@as_torch("""
    tensor(4.0)
    tensor(4.0)
    [[tensor(4.0), True], [tensor(6.0), True]]
    True
    [True]
    True
""")
def test_decorators_of_no_grad(torch):
    x = leaf(torch, 2.0)

    @torch.no_grad
    def bare(x):
        return x * 2

    @torch.no_grad()
    def called(x):
        return x * 2

    @torch.no_grad()
    def generator(x):
        yield x * 2
        yield x * 3

    steps = []
    for step in generator(x):
        steps.append((step, torch.is_grad_enabled()))
    with torch.no_grad():
        tensor = torch.ones(2, requires_grad=True)
        flags = []
        thread = threading.Thread(target=lambda: flags.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    return bare(x), called(x), steps, tensor.requires_grad, flags, torch.is_grad_enabled()


@pytest.mark.row("edge_22")
def test_one_object_nested():
    """PyTorch leaves grad mode off after it."""
    mode = jaxgrad.no_grad()
    with mode:
        with mode:
            assert not jaxgrad.is_grad_enabled()
        assert not jaxgrad.is_grad_enabled()
    assert jaxgrad.is_grad_enabled()


@pytest.mark.row("edge_23")
@as_torch
def test_inference_mode_and_saved_tensors(torch):
    x = leaf(torch, 3.0)
    with torch.inference_mode():
        tensor = torch.tensor(2.0)
        nested = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        with torch.inference_mode(False):
            nested += torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    saved = error(lambda: x * tensor)
    (x + tensor).backward()
    words = "Inplace update to inference tensor outside InferenceMode is not allowed"
    return saved, x.grad, error(tensor.add_, 1.0, words=words), nested


@pytest.mark.row("edge_23")
@as_torch("""
    None
    tensor(15.0)
    None
""")
def test_inference_mode_drops_tangents(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.tensor(2.0), torch.tensor(5.0))
        with torch.inference_mode():
            dropped = forward.unpack_dual(dual * 3).tangent
        with torch.no_grad():
            kept = forward.unpack_dual(dual * 3).tangent
        return dropped, kept, forward.unpack_dual(dual.detach()).tangent


# Cases without an answer of PyTorch, and those of several threads, run uncompiled alone.
COMPILED = [test for test in list(globals().values()) if hasattr(test, "body")]


@pytest.mark.parametrize("test", COMPILED, ids=lambda test: test.__name__)
def test_the_cases_compiled(test):
    under_jit(test)()
