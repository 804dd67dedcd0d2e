"""Hooks, row by row of PyTorch's behaviour: on tensors, nodes, leaves, and several tensors."""

import copy
import pickle
import warnings
import weakref

import pytest
from helpers.as_torch import as_torch, error, leaf, warned
from helpers.compiled import under_jit

import jaxgrad

MULTI = "register_multi_grad_hook"


def log(seen, name, factor=None):
    """A hook that notes what it was given, and gives it times a factor."""

    def hook(grad):
        seen.append((name, None if grad is None else grad.tolist()))
        return None if factor is None else grad * factor

    return hook


def numbers(values):
    """The gradients that a node's hook was given."""
    return [None if value is None else value.tolist() for value in values]


# ---- on tensors


@pytest.mark.row("F01")
@as_torch("""
    [['y', 12.0]]
    tensor(36.0)
    'RemovableHandle'
""")
def test_register_hook_sees_the_gradient_of_a_tensor(torch):
    x = leaf(torch, 2.0)
    seen = []
    y = x * 3
    handle = y.register_hook(log(seen, "y"))
    (y * 5 + y * 7).backward()
    return seen, x.grad, type(handle).__name__


@pytest.mark.row("F01")
@as_torch("tensor(360.0)")
def test_the_result_of_a_hook_takes_the_gradients_place(torch):
    x = leaf(torch, 2.0)
    y = x * 3
    y.register_hook(lambda grad: grad * 10)
    (y * 5 + y * 7).backward()
    return x.grad


@pytest.mark.row("F01")
@as_torch("""
    RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
""")
def test_no_hook_without_a_gradient(torch):
    x = torch.ones(2)
    return [
        error(x.register_hook, lambda grad: grad),
        error(x.register_hook, 3),
        error(x.detach().register_hook, lambda grad: grad),
    ]


@pytest.mark.row("F01")
@as_torch("""
    []
    tensor(4.0)
""")
def test_a_hook_is_not_called_where_no_gradient_arrives(torch):
    x, seen = leaf(torch, 2.0), []
    y, z = x * 3, x * 4
    y.register_hook(log(seen, "y"))
    z.backward()
    return seen, x.grad


@pytest.mark.row("F01")
@as_torch("""
    [['y', 1.0], ['x', 4.0], ['y', 1.0], ['x', 4.0], ['y', 1.0], ['x', 4.0]]
    tensor(12.0)
""")
def test_a_hook_runs_once_in_each_pass(torch):
    x, seen = leaf(torch, 2.0), []
    y = x * x
    y.register_hook(log(seen, "y"))
    x.register_hook(log(seen, "x"))
    for _ in range(3):
        y.backward(retain_graph=True)
    return seen, x.grad


@pytest.mark.row("F01")
@as_torch("""
    [['first', [1.0, 1.0]], ['second', [2.0, 2.0]]]
    tensor([10.0, 10.0, 200.0, 200.0])
""")
def test_hooks_of_the_outputs_of_one_operator(torch):
    x, seen = leaf(torch, 1.0, 2.0, 3.0, 4.0), []
    parts = x.chunk(2)
    parts[0].register_hook(log(seen, "first", 10))
    parts[1].register_hook(log(seen, "second", 100))
    (parts[0].sum() + 2 * parts[1].sum()).backward()
    return sorted(seen), x.grad


@pytest.mark.row("F01")
@as_torch("""
    [True, ['second', [1.0, 1.0]]]
    tensor([0.0, 0.0, 100.0, 100.0])
""")
def test_a_hook_of_an_output_that_gets_no_gradient(torch):
    x, seen = leaf(torch, 1.0, 2.0, 3.0, 4.0), []
    parts = x.chunk(2)
    parts[0].register_hook(lambda grad: seen.append(grad is None))
    parts[1].register_hook(log(seen, "second", 100))
    parts[1].sum().backward()
    return seen, x.grad


@pytest.mark.row("F01")
@as_torch("tensor(60.0)")
def test_a_hook_through_a_detached_handle(torch):
    x = leaf(torch, 2.0)
    y = (x * 3).register_hook(lambda grad: grad * 10)
    del y
    z = x * 3
    z.register_hook(lambda grad: grad * 10)
    z = z * 2
    z.backward()
    return x.grad


@pytest.mark.row("F01")
@as_torch("""
    None
    1
    0
""")
def test_the_hooks_of_a_tensor_by_its_attribute(torch):
    x = leaf(torch, 2.0)
    before = x._backward_hooks
    handle = x.register_hook(lambda grad: grad)
    during = len(x._backward_hooks)
    handle.remove()
    return before, during, len(x._backward_hooks)


@pytest.mark.row("F02")
@as_torch
def test_what_a_hook_may_return(torch):
    def backward(result, number=1):
        x = leaf(torch, 1.0, 2.0)
        y = x * 2

        def hook(grad):
            return result

        (x, y)[number].register_hook(hook)
        y.sum().backward()
        return x.grad

    wrong = [3, "word", [torch.ones(2)], (torch.ones(2),), torch.ones(3), torch.ones(2, 1)]
    wrong += [torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.int64)]
    return (
        [error(backward, result, number) for result in wrong for number in (0, 1)],
        backward(torch.ones(2) * 4),
        backward(None),
    )


@pytest.mark.row("F02")
@as_torch("""
    RuntimeError("hook '<lambda>' has changed the size of value")
""")
def test_a_hook_gets_the_shape_of_a_gradient_that_was_broadcast(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda grad: torch.ones(1))
    return error(y.sum().backward)


@pytest.mark.row("F02")
@as_torch("""
    RuntimeError(
     "hook '<unknown>' has changed the type of value (was torch.FloatTensor got "
     'torch.DoubleTensor)')
""")
def test_a_hook_without_a_name(torch):
    class Hook:
        def __call__(self, grad):
            return grad.double()

    x = leaf(torch, 1.0)
    y = x * 2
    y.register_hook(Hook())
    return error(y.backward, words="has changed the type of value (was torch.FloatTensor got")


@pytest.mark.row("F03")
@as_torch("""
    [['a', 1.0], ['b', 2.0], ['c', 2.0], ['d', 10.0], ['e', 30.0], ['f', 210.0]]
    tensor(210.0)
""")
def test_hooks_run_in_the_order_of_registration(torch):
    x, seen = leaf(torch, 2.0), []
    y = x * 3
    for name, factor in (("a", 2), ("b", None), ("c", 5), ("d", None)):
        y.register_hook(log(seen, name, factor))
    for name, factor in (("e", 7), ("f", None)):
        x.register_hook(log(seen, name, factor))
    y.backward()
    return seen, x.grad


@pytest.mark.row("F04")
@as_torch("""
    [['b1', 3.0],
     ['b2', 30.0],
     ['pre', [31.0]],
     ['node', [62.0, None], [31.0]],
     ['a', 62.0],
     ['post', 62.0]]
    tensor(62.0)
    tensor(31.0)
""")
def test_the_order_of_all_kinds_of_hooks(torch):
    """Edge case 14."""
    a, seen = leaf(torch, 2.0), []
    b = a * 2
    b.register_hook(log(seen, "b1", 10))
    b.retain_grad()
    b.register_hook(lambda grad: seen.append(("b2", grad.item())) or grad + 1)
    b.grad_fn.register_prehook(lambda grads: seen.append(("pre", numbers(grads))))
    b.grad_fn.register_hook(lambda i, o: seen.append(("node", numbers(i), numbers(o))))
    a.register_hook(log(seen, "a"))
    a.register_post_accumulate_grad_hook(lambda a: seen.append(("post", a.grad.item())))
    (b * 3).backward()
    return seen, a.grad, b.grad


@pytest.mark.row("F04")
@as_torch("""
    ['a', 2.0]
    ['pre', [6.0], None]
    ['accumulated', 6.0]
    ['node', [], [6.0], 6.0]
""")
def test_the_order_of_hooks_at_a_leaf(torch):
    a, seen = leaf(torch, 2.0), []
    b = a * 2
    node = b.grad_fn.next_functions[0][0]
    node.register_hook(lambda i, o: seen.append(("node", i, numbers(o), a.grad.item())))
    node.register_prehook(lambda grads: seen.append(("pre", numbers(grads), a.grad)))
    a.register_post_accumulate_grad_hook(lambda a: seen.append(("accumulated", a.grad.item())))
    a.register_hook(log(seen, "a", 3))
    b.backward()
    return seen


@pytest.mark.row("F05")
@as_torch("""
    tensor(60.0)
    tensor(60.0)
    tensor(360.0)
""")
def test_a_retained_gradient_is_the_hooked_one(torch):
    x = leaf(torch, 2.0)
    before, after = x * 3, x * 3
    before.retain_grad()
    before.register_hook(lambda grad: grad * 10)
    after.register_hook(lambda grad: grad * 10)
    after.retain_grad()
    (before * after).backward()
    return before.grad, after.grad, x.grad


@pytest.mark.row("F05")
@as_torch("""
    tensor([10.0, 10.0])
    tensor([60.0, 60.0])
    [['new', [1.0, 1.0]], ['old', [30.0, 30.0]]]
""")
def test_a_retained_gradient_of_a_tensor_written_to(torch):
    """Edge case 18."""
    x, seen = leaf(torch, 1.0, 2.0), []
    b = x * 2
    b.retain_grad()
    b.register_hook(log(seen, "old"))
    b.mul_(3)
    b.register_hook(log(seen, "new", 10))
    b.sum().backward()
    return b.grad, x.grad, seen


@pytest.mark.row("F06")
@as_torch("""
    tensor(300.0)
    tensor(2.0)
""")
def test_a_hook_of_a_leaf_changes_its_grad_alone(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    x.register_hook(lambda grad: grad * 100)
    (x * y).backward()
    return x.grad, y.grad


@pytest.mark.row("F06")
@as_torch("tensor(300.0)")
def test_a_hook_of_a_leaf_registered_after_the_graph_was_made(torch):
    x = leaf(torch, 2.0)
    y = x * 3
    x.register_hook(lambda grad: grad * 100)
    y.backward()
    return x.grad


@pytest.mark.row("F06")
@as_torch("""
    [tensor(300.0)]
    [['x', 3.0]]
""")
def test_a_hook_of_a_leaf_under_grad_of_it(torch):
    x, seen = leaf(torch, 2.0), []
    x.register_hook(log(seen, "x", 100))
    return torch.autograd.grad(x * 3, x), seen


@pytest.mark.row("F07")
@as_torch("tensor(6.0)")
def test_a_hook_that_writes_to_its_gradient(torch):
    x = leaf(torch, 2.0)
    y = x * 3
    y.register_hook(lambda grad: grad.mul_(2) and None)
    y.backward()
    return x.grad


@pytest.mark.row("F07")
def test_a_hook_that_writes_to_a_gradient_that_others_get_too():
    """PyTorch forbids it: there the other operand may get the changed gradient as well."""
    x, y = leaf(jaxgrad, 2.0), leaf(jaxgrad, 3.0)
    a, b = x * 1, y * 1
    a.register_hook(lambda grad: grad.mul_(2) and None)
    (a + b).backward()
    assert (x.grad.item(), y.grad.item()) == (2, 1)


@pytest.mark.row("F08")
@as_torch("""
    ['first', 1.0]
    ['second', 1.0]
    ['second', 1.0]
""")
def test_removing_hooks(torch):
    x, seen = leaf(torch, 2.0), []
    first = x.register_hook(log(seen, "first"))
    x.register_hook(log(seen, "second"))
    (x * 1).backward()
    first.remove()
    first.remove()
    (x * 1).backward()
    return seen


@pytest.mark.row("F08")
@as_torch("""
    'once'
    'always'
    'always'
""")
def test_removing_hooks_from_inside_a_hook(torch):
    x, seen = leaf(torch, 2.0), []

    def once(grad):
        seen.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda grad: seen.append("always"))
    (x * 1).backward()
    (x * 1).backward()
    return seen


@pytest.mark.row("F08")
@as_torch("['later']")
def test_a_hook_that_removes_a_later_one(torch):
    x, seen = leaf(torch, 2.0), []
    x.register_hook(lambda grad: later.remove())
    later = x.register_hook(lambda grad: seen.append("later"))
    (x * 1).backward()
    (x * 1).backward()
    return seen


@pytest.mark.row("F08")
@as_torch("""
    []
    ['added']
""")
def test_a_hook_that_adds_another(torch):
    x, seen = leaf(torch, 2.0), []

    def add(grad):
        x.register_hook(lambda grad: seen.append("added"))

    handle = x.register_hook(add)
    (x * 1).backward()
    first = list(seen)
    handle.remove()
    (x * 1).backward()
    return first, seen


@pytest.mark.row("F08")
@as_torch("""
    tensor(11.0)
    'RemovableHandle'
""")
def test_a_handle_as_context_manager(torch):
    x = leaf(torch, 2.0)
    with x.register_hook(lambda grad: grad * 10) as handle:
        (x * 1).backward()
        kind = type(handle).__name__
    (x * 1).backward()
    return x.grad, kind


@pytest.mark.row("F08")
def test_a_handle_does_not_keep_the_tensor():
    x = leaf(jaxgrad, 2.0)
    y = x * 2
    handle = y.register_hook(lambda grad: grad)
    gone = weakref.ref(y.grad_fn)
    del y
    assert gone() is None
    handle.remove()


@pytest.mark.row("F09")
@as_torch("""
    [['new', 7.0], ['old', 35.0]]
    tensor(105.0)
""")
def test_hooks_stay_with_the_value_before_a_write(torch):
    """Edge case 15."""
    x, seen = leaf(torch, 2.0), []
    y = x * 3
    y.register_hook(log(seen, "old"))
    y.mul_(5)
    y.register_hook(log(seen, "new"))
    y.mul_(7)
    y.backward()
    return seen, x.grad


@pytest.mark.row("F09")
@as_torch("tensor(465.0)")
def test_hooks_that_change_the_gradient_before_and_after_a_write(torch):
    x = leaf(torch, 2.0)
    y = x * 3
    y.register_hook(lambda grad: grad + 100)
    y.mul_(5)
    y.register_hook(lambda grad: grad * 11)
    y.backward()
    return x.grad


@pytest.mark.row("F09")
def test_hooks_of_a_view_and_of_its_base():
    """PyTorch loses the hook that the view had before the write."""
    x, seen = leaf(jaxgrad, 1.0, 2.0, 3.0), []
    y = x * 1
    view = y[:2]
    y.register_hook(log(seen, "base, old"))
    view.register_hook(log(seen, "view, old"))
    view.mul_(5)
    y.register_hook(log(seen, "base, new"))
    view.register_hook(log(seen, "view, new"))
    (y * 1).sum().backward(retain_graph=True)
    through_base = [
        ("base, new", [1, 1, 1]),
        ("view, old", [5, 5]),
        ("base, old", [5, 5, 1]),
    ]
    assert seen == through_base and x.grad.tolist() == [5, 5, 1]
    view.sum().backward()
    through_view = [
        ("view, new", [1, 1]),
        ("base, new", [1, 1, 0]),
        ("view, old", [5, 5]),
        ("base, old", [5, 5, 0]),
    ]
    assert seen == through_base + through_view and x.grad.tolist() == [10, 10, 1]


@pytest.mark.row("F09")
@as_torch("""
    [['y', [1.0, 1.0]]]
    tensor(2.0)
""")
def test_a_hook_of_a_tensor_that_becomes_part_of_the_graph(torch):
    x, seen = leaf(torch, 2.0), []
    y = torch.zeros(2)
    y[0] = x
    y.register_hook(log(seen, "y", 2))
    y.sum().backward()
    return seen, x.grad


@pytest.mark.row("F10")
@as_torch("""
    [[UserWarning(
       'backward hook <built-in function len> on tensor will not be serialized.  If this '
       'is expected, you can decorate the function with '
       '@torch.utils.hooks.unserializable_hook to suppress this warning')],
     []]
    tensor(2.0, requires_grad=True)
""")
def test_pickling_leaves_hooks_out_with_a_warning(torch):
    x, marked = leaf(torch, 2.0), leaf(torch, 2.0)
    x.register_hook(len)
    marked.register_hook(torch.utils.hooks.unserializable_hook(lambda grad: grad))
    told = warned(pickle.dumps, x)["warnings"], warned(pickle.dumps, marked)["warnings"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return told, pickle.loads(pickle.dumps(x))


@pytest.mark.row("F10")
@as_torch("""
    tensor(20.0)
    tensor(2.0)
    None
""")
def test_a_copy_has_no_hooks(torch):
    x = leaf(torch, 2.0)
    x.register_hook(lambda grad: grad * 10)
    y = copy.deepcopy(x)
    (x * y).backward()
    return x.grad, y.grad, y._backward_hooks


@pytest.mark.row("F11")
@as_torch("""
    [3.0, 6.0]
    tensor(9.0)
    'RemovableHandle'
    0
""")
def test_register_post_accumulate_grad_hook_runs_after_accumulation(torch):
    x, seen = leaf(torch, 2.0), []
    handle = x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.item()))
    (x * 3).backward()
    (x * 3).backward()
    handle.remove()
    (x * 3).backward()
    return seen, x.grad, type(handle).__name__, len(x._post_accumulate_grad_hooks)


@pytest.mark.row("F11")
@as_torch("[True]")
def test_a_post_accumulate_hook_gets_the_leaf_itself(torch):
    x, seen = leaf(torch, 2.0), []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf is x))
    (x * 3).backward()
    return seen


@pytest.mark.row("F11")
@as_torch("[7.0]")
def test_a_post_accumulate_hook_runs_once_for_all_uses_of_a_leaf(torch):
    x, seen = leaf(torch, 2.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.item()))
    (x * 3 + x * x).backward()
    return seen


@pytest.mark.row("F11")
@as_torch("""
    RuntimeError('post accumulate grad hooks cannot be registered on non-leaf tensors')
    RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    None
""")
def test_where_a_post_accumulate_hook_may_be_registered(torch):
    x = leaf(torch, 2.0)

    def hook(x):
        return None

    return [
        error((x * 2).register_post_accumulate_grad_hook, hook),
        error(torch.ones(2).register_post_accumulate_grad_hook, hook),
        x._post_accumulate_grad_hooks,
    ]


@pytest.mark.row("F11")
@as_torch("""
    [TypeError("expected Variable, but hook returned 'int'"),
     TypeError("expected Variable, but hook returned 'str'"),
     RuntimeError("hook '<lambda>' has changed the size of value"),
     RuntimeError(
      "hook '<lambda>' has changed the type of value (was torch.FloatTensor got "
      'torch.DoubleTensor)'),
     RuntimeError('Tensor post accumulate grad hooks should return None.')]
    tensor(3.0)
""")
def test_what_a_post_accumulate_hook_returns(torch):
    def backward(result):
        x = leaf(torch, 2.0)
        x.register_post_accumulate_grad_hook(lambda x: result)
        (x * 3).backward()
        return x.grad

    wrong = [3, "word", torch.ones(7), torch.ones((), dtype=torch.float64), torch.ones(())]
    return [error(backward, result) for result in wrong], backward(None)


@pytest.mark.row("F11")
@as_torch("""
    [tensor([0.12699994444847107, 0.8560000658035278], requires_grad=True),
     tensor([2.7890002727508545, 3.5179998874664307], requires_grad=True)]
    [None, None]
""")
def test_an_optimizer_in_the_backward_pass(torch):
    weights = [leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)]

    def step(weight):
        weight.add_(weight.grad, alpha=-0.1)
        weight.grad = None

    for weight in weights:
        weight.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        (weights[0] * weights[1]).sum().backward()
    return weights, [weight.grad for weight in weights]


@pytest.mark.row("F11")
@as_torch("""
    ['first', 'first', 'third']
    ZeroDivisionError('division by zero')
    tensor(6.0)
""")
def test_post_accumulate_hooks_in_the_order_of_registration_after_an_error(torch):
    x, seen = leaf(torch, 2.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append("first"))
    handle = x.register_post_accumulate_grad_hook(lambda x: 1 / 0)
    x.register_post_accumulate_grad_hook(lambda x: seen.append("third"))
    raised = error((x * 3).backward)
    handle.remove()
    (x * 3).backward()
    return seen, raised, x.grad


@pytest.mark.row("F11")
@as_torch("""
    [tensor(3.0)]
    [['hook', 3.0]]
    None
""")
def test_post_accumulate_hooks_are_not_called_by_grad(torch):
    """Edge case 16."""
    x, seen = leaf(torch, 2.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append("post"))
    x.register_hook(log(seen, "hook"))
    y = x * 3
    y.grad_fn.next_functions[0][0].register_hook(lambda i, o: seen.append("node"))
    y.grad_fn.next_functions[0][0].register_prehook(lambda o: seen.append("pre"))
    return torch.autograd.grad(y, x), seen, x.grad


@pytest.mark.row("F11")
@as_torch("""
    ['x']
    tensor(3.0)
    None
""")
def test_post_accumulate_hooks_under_backward_with_inputs(torch):
    x, y, seen = leaf(torch, 2.0), leaf(torch, 3.0), []
    for name, tensor in (("x", x), ("y", y)):
        tensor.register_post_accumulate_grad_hook(lambda leaf, name=name: seen.append(name))
    (x * y).backward(inputs=[x])
    return seen, x.grad, y.grad


@pytest.mark.row("F12")
@as_torch("""
    [[[15.0, 10.0], [5.0]]]
    tensor(30.0)
    tensor(20.0)
""")
def test_a_node_hook_runs_after_the_node(torch):
    x, y, seen = leaf(torch, 2.0), leaf(torch, 3.0), []
    z = x * y
    handle = z.grad_fn.register_hook(lambda i, o: seen.append((numbers(i), numbers(o))))
    (z * 5).backward(retain_graph=True)
    handle.remove()
    (z * 5).backward()
    return seen, x.grad, y.grad


@pytest.mark.row("F12")
@as_torch("""
    tensor(30.0)
    tensor(200.0)
""")
def test_the_result_of_a_node_hook_takes_the_place_of_the_inputs_gradients(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = x * y
    z.grad_fn.register_hook(lambda i, o: (i[0] * 10, i[1] * 100))
    z.backward()
    return x.grad, y.grad


@pytest.mark.row("F12")
@as_torch("""
    [[[3.0, None], [1.0]]]
    tensor(3.0)
""")
def test_a_node_hook_sees_none_for_an_input_that_needs_no_gradient(torch):
    x, seen = leaf(torch, 2.0), []
    z = x * torch.tensor(3.0)
    z.grad_fn.register_hook(lambda i, o: seen.append((numbers(i), numbers(o))))
    z.backward()
    return seen, x.grad


@pytest.mark.row("F12")
@as_torch("""
    [[[3.0, None], [1.0]]]
    tensor(3.0)
""")
def test_a_node_hook_of_an_operator_with_a_number(torch):
    x, seen = leaf(torch, 2.0), []
    z = x * 3
    z.grad_fn.register_hook(lambda i, o: seen.append((numbers(i), numbers(o))))
    z.backward()
    return seen, x.grad


@pytest.mark.row("F12")
@as_torch
def test_what_a_node_hook_may_return(torch):
    def backward(result):
        x, y = leaf(torch, 2.0), leaf(torch, 3.0)
        z = x * y

        def hook(inputs, outputs):
            return result(inputs)

        z.grad_fn.register_hook(hook)
        z.backward()
        return x.grad, y.grad

    one = torch.ones(())
    wrong = [
        lambda i: (one, one, one),
        lambda i: (one,),
        lambda i: "word",
        lambda i: one,
        lambda i: [one, one],
        lambda i: (one, 3),
        lambda i: (one, torch.ones(2)),
        lambda i: (one, one.double()),
    ]
    right = [lambda i: None, lambda i: (one * 7, one * 9), lambda i: (None, one), lambda i: i]
    return [error(backward, result) for result in wrong], [backward(result) for result in right]


@pytest.mark.row("F12")
@as_torch("tensor(31.0)")
def test_two_hooks_of_a_node(torch):
    x = leaf(torch, 2.0)
    z = x * 3
    z.grad_fn.register_hook(lambda i, o: tuple(g if g is None else g * 10 for g in i))
    z.grad_fn.register_hook(lambda i, o: tuple(g if g is None else g + 1 for g in i))
    z.backward()
    return x.grad


@pytest.mark.row("F13")
@as_torch("""
    [[1.0], [10.0], [10.0]]
    tensor(60.0)
""")
def test_a_node_prehook_runs_before_the_node(torch):
    x, seen = leaf(torch, 2.0), []
    z = x * 3
    handle = z.grad_fn.register_prehook(lambda o: seen.append(numbers(o)))
    z.grad_fn.register_prehook(lambda o: (o[0] * 10,))
    z.grad_fn.register_prehook(lambda o: seen.append(numbers(o)))
    z.backward(retain_graph=True)
    handle.remove()
    z.backward()
    return seen, x.grad


@pytest.mark.row("F13")
@as_torch
def test_what_a_node_prehook_may_return(torch):
    def backward(result):
        x = leaf(torch, 2.0)
        z = x * 3

        def hook(outputs):
            return result

        z.grad_fn.register_prehook(hook)
        z.backward()
        return x.grad

    one = torch.ones(())
    wrong = [(one, one), (), "word", one, (3,), (torch.ones(2),), (one.double(),)]
    return [error(backward, result) for result in wrong], backward((one * 5,)), backward(None)


@pytest.mark.row("F13")
@as_torch("""
    None
    None
    None
""")
def test_a_node_prehook_that_makes_a_gradient_none(torch):
    def backward(function):
        x = leaf(torch, 2.0)
        z = function(x)
        z.grad_fn.register_prehook(lambda outputs: (None,))
        z.backward()
        return x.grad

    return backward(lambda x: x * 3), backward(lambda x: x * x), backward(torch.sin)


@pytest.mark.row("F13")
@as_torch("""
    [[None, [1.0, 1.0]]]
    tensor([0.0, 0.0, 1.0, 1.0])
""")
def test_a_prehook_of_a_node_with_several_outputs(torch):
    x, seen = leaf(torch, 1.0, 2.0, 3.0, 4.0), []
    parts = x.chunk(2)
    parts[0].grad_fn.register_prehook(lambda o: seen.append(numbers(o)))
    parts[1].sum().backward()
    return seen, x.grad


@pytest.mark.row("F14")
@as_torch("""
    [['pre', [3.0], None], ['post', [], [3.0], 3.0]]
    'AccumulateGrad'
""")
def test_hooks_of_the_node_of_a_leaf(torch):
    x, seen = leaf(torch, 2.0), []
    y = x * 3
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda o: seen.append(("pre", numbers(o), x.grad)))
    node.register_hook(lambda i, o: seen.append(("post", i, numbers(o), x.grad.item())))
    y.backward()
    return seen, node.name().split("::")[-1]


@pytest.mark.row("F14")
@as_torch("tensor(30.0)")
def test_a_prehook_changes_what_is_accumulated(torch):
    x = leaf(torch, 2.0)
    y = x * 3
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda o: (o[0] * 10,))
    y.backward()
    return x.grad


@pytest.mark.row("F14")
@as_torch("""
    RuntimeError("hook 'hook' has returned an incorrect number of values (got 1, but expected 0)")
    TypeError("expected tuple, but hook returned 'int'")
    tensor(3.0)
    tensor(3.0)
""")
def test_what_a_hook_of_a_leafs_node_may_return(torch):
    def backward(result):
        x = leaf(torch, 2.0)
        y = x * 3
        node = y.grad_fn.next_functions[0][0]

        def hook(inputs, outputs):
            return result

        node.register_hook(hook)
        y.backward()
        return x.grad

    return error(backward, (torch.ones(()),)), error(backward, 3), backward(None), backward(())


@pytest.mark.row("F14")
@as_torch("""
    ['pre', 'post']
    tensor(3.0)
""")
def test_hooks_of_a_leafs_node_under_backward_with_inputs(torch):
    x, seen = leaf(torch, 2.0), []
    y = x * 3
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda o: seen.append("pre"))
    node.register_hook(lambda i, o: seen.append("post"))
    y.backward(inputs=[x])
    return seen, x.grad


@pytest.mark.row("F15")
@as_torch("""
    [True, True, True, False]
    [True, False, True, False]
""")
def test_a_multi_grad_hook_runs_when_all_gradients_are_known(torch):
    """Edge case 17."""
    x = [leaf(torch, float(i)) for i in range(1, 5)]
    seen = []

    def hook(grads):
        seen.append([grad is not None for grad in grads])

    handle = torch.autograd.graph.register_multi_grad_hook(x, hook)
    (x[0] * x[1] * x[2]).backward()
    (x[0] * x[1] * x[2]).backward(inputs=(x[0], x[2]))
    handle.remove()
    (x[0] * x[1] * x[2]).backward()
    return seen


@pytest.mark.row("F15")
@as_torch("""
    1
    2
""")
def test_a_multi_grad_hook_at_the_first_gradient(torch):
    x, seen = [leaf(torch, 1.0), leaf(torch, 2.0), leaf(torch, 3.0)], []

    def hook(grad):
        seen.append(grad.tolist())

    handle = torch.autograd.graph.register_multi_grad_hook(x, hook, mode="any")
    (x[0] * 10 + x[1] * 20).backward()
    first = len(seen)
    (x[0] * 10 + x[1] * 20).backward()
    handle.remove()
    (x[0] * 10 + x[1] * 20).backward()
    return first, len(seen)


@pytest.mark.row("F15")
@as_torch("""
    [4.0, 6.0, 36.0]
    [4.0, None, None]
""")
def test_a_multi_grad_hook_of_tensors_in_the_middle(torch):
    x, seen = leaf(torch, 2.0), []
    y, z = x * 3, x * x
    torch.autograd.graph.register_multi_grad_hook((y, z, x), lambda g: seen.append(numbers(g)))
    (y * z).backward(retain_graph=True)
    torch.autograd.grad(y * z, [y])
    return seen


@pytest.mark.row("F15")
@as_torch("""
    [False, True, True]
    [False, False, True]
""")
def test_a_multi_grad_hook_does_not_await_what_the_roots_do_not_lead_to(torch):
    x, seen = [leaf(torch, float(i)) for i in range(1, 4)], []

    def hook(grads):
        seen.append([grad is not None for grad in grads])

    torch.autograd.graph.register_multi_grad_hook(x, hook)
    product = x[1] * x[2]
    product.backward(inputs=(x[1], x[2]), retain_graph=True)
    product.backward(inputs=(x[0],), retain_graph=True)
    product.backward(inputs=(x[0], x[2]))
    return seen


@pytest.mark.row("F15")
def test_a_multi_grad_hook_of_the_root_of_a_pass():
    """PyTorch calls it twice, once for the root alone."""
    x, seen = leaf(jaxgrad, 2.0), []
    y, z = x * 3, x * x
    jaxgrad.autograd.graph.register_multi_grad_hook((y, z, x), lambda g: seen.append(numbers(g)))
    y.backward()
    assert seen == [[1, None, 3]]


@pytest.mark.row("F15")
@as_torch("""
    ValueError("Expects mode to be one of ('all', 'any') but got x")
    AssertionError('Expected gradient function to be set')
    no_error
""")
def test_what_a_multi_grad_hook_takes(torch):
    register = torch.autograd.graph.register_multi_grad_hook
    x = leaf(torch, 2.0)
    return [
        error(lambda: register((x,), print, mode="x")),
        error(register, (x, torch.ones(2)), print),
        error(lambda: register((torch.ones(2),), print, mode="any")),
    ]


@pytest.mark.row("F15")
@as_torch("[[3.0, 3.0]]")
def test_a_multi_grad_hook_of_one_tensor_given_twice(torch):
    x, seen = leaf(torch, 2.0), []
    torch.autograd.graph.register_multi_grad_hook((x, x), lambda g: seen.append(numbers(g)))
    (x * 3).backward()
    return seen


@pytest.mark.row("F15")
@as_torch("""
    ZeroDivisionError('division by zero')
    tensor(3.0)
    tensor(2.0)
""")
def test_an_error_in_a_multi_grad_hook(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    handle = torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: 1 / 0)
    z = x * y
    raised = error(lambda: z.backward(retain_graph=True))
    handle.remove()
    x.grad = y.grad = None
    z.backward()
    return raised, x.grad, y.grad


@pytest.mark.row("F15")
@as_torch("[[3.0]]")
def test_a_multi_grad_hook_as_context_manager(torch):
    x, seen = leaf(torch, 2.0), []
    register = torch.autograd.graph.register_multi_grad_hook
    with register((x,), lambda grads: seen.append(numbers(grads))):
        (x * 3).backward()
    (x * 3).backward()
    return seen


@pytest.mark.row("F16")
@as_torch("""
    [False, False, False, False, False]
    [True, True, True, True, True]
    [False, False, False, False, False]
    True
""")
def test_grad_mode_inside_hooks(torch):
    x, seen = leaf(torch, 2.0), []
    y = x * x

    def note(*args):
        seen.append(torch.is_grad_enabled())

    y.register_hook(note)
    y.grad_fn.register_hook(note)
    y.grad_fn.register_prehook(note)
    x.register_hook(note)
    x.register_post_accumulate_grad_hook(note)
    y.backward(retain_graph=True)
    plain = list(seen)
    warned(lambda: y.backward(create_graph=True))
    recorded = seen[len(plain) :]
    x.grad = None
    with torch.no_grad():
        y.backward()
    return plain, recorded, seen[len(plain) + len(recorded) :], torch.is_grad_enabled()


@pytest.mark.row("F16")
@as_torch("""
    tensor(8.0, requires_grad=True)
    [tensor(8.0)]
""")
def test_a_hooks_result_is_differentiated_under_create_graph(torch):
    x = leaf(torch, 2.0)
    y = x * x
    y.register_hook(lambda grad: grad * x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    return first, torch.autograd.grad(first, x)


@pytest.mark.row("F17")
@as_torch("""
    [KeyError("'mine'"), True]
    [KeyError("'mine'"), True]
    [KeyError("'mine'"), True]
    [KeyError("'mine'"), True]
    [KeyError("'mine'"), True]
""")
def test_errors_in_hooks_come_through_as_they_are(torch):
    def backward(register):
        x = leaf(torch, 2.0)
        y = x * x

        def hook(*args):
            raise KeyError("mine")

        register(x, y, hook)
        result = error(lambda: y.backward(retain_graph=True))
        return result, torch.is_grad_enabled()

    return [
        backward(lambda x, y, hook: y.register_hook(hook)),
        backward(lambda x, y, hook: x.register_hook(hook)),
        backward(lambda x, y, hook: y.grad_fn.register_hook(hook)),
        backward(lambda x, y, hook: y.grad_fn.register_prehook(hook)),
        backward(lambda x, y, hook: x.register_post_accumulate_grad_hook(hook)),
    ]


@pytest.mark.row("F17")
@as_torch("""
    ZeroDivisionError('division by zero')
    tensor(32.0)
""")
def test_the_graph_can_be_used_after_an_error_in_a_hook(torch):
    x = leaf(torch, 2.0)
    y = x * x
    z = y * y
    handle = y.register_hook(lambda grad: 1 / 0)
    raised = error(lambda: z.backward(retain_graph=True))
    handle.remove()
    z.backward()
    return raised, x.grad


@pytest.mark.row("F17")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interrupts_in_hooks(kind):
    x = leaf(jaxgrad, 2.0)
    y = x * x

    def hook(grad):
        raise kind

    handle = x.register_hook(hook)
    with pytest.raises(kind):
        y.backward(retain_graph=True)
    handle.remove()
    assert jaxgrad.is_grad_enabled() and x.grad is None
    y.backward()
    assert x.grad.item() == 4


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


@pytest.mark.parametrize(
    "test",
    [
        test_order_of_hooks,
        test_hooks_that_are_removed,
        test_what_hooks_return,
        test_hooks_and_writes,
        test_hooks_under_grad,
        test_multi_grad_hook,
    ],
    ids=lambda test: test.__name__,
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
