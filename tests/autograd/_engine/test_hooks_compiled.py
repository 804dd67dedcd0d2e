"""Hooks under `jaxgrad.jit`: they run while a function is traced, and a changed hook traces again.

What is expected is written out; each program is also run as it is, uncompiled, to the same.
"""

import gc
import queue
import weakref

import pytest
from helpers.as_torch import leaf

import jaxgrad as torch
from jaxgrad.utils.hooks import RemovableHandle, unserializable_hook

MULTI = torch.autograd.graph.register_multi_grad_hook


def vector(*values):
    return leaf(torch, *values, dtype=torch.float64)


def square(x):
    x.grad = None
    return square_more(x)


def square_more(x):
    (x * x).sum().backward()
    return x.grad


class Counted:
    """A function that is compiled, and how often it was traced."""

    def __init__(self, function=square):
        self.noted = queue.SimpleQueue()  # which capture cannot see into: a trace alone puts one
        self.jitted = torch.jit(self.function)
        self.plain = function

    def function(self, *args):
        self.noted.put(None)
        return self.plain(*args)

    @property
    def traces(self):
        return self.noted.qsize()

    def __call__(self, *args):
        return self.jitted(*args)


def times(factor):
    return lambda grad: grad * factor


# ---- what is registered inside


def inside_on_a_tensor(x):
    y = x * 3
    y.register_hook(times(10))
    y.sum().backward()
    return x.grad


def inside_on_an_argument(x):
    x.register_hook(times(10))
    return square(x)


def inside_removed(x):
    handle = x.register_hook(times(10))
    handle.remove()
    return square(x)


def inside_for_one_pass(x):
    with x.register_hook(times(10)):
        square(x)
    return square_more(x)


def inside_on_a_node(x):
    y = x * x
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda i, o: tuple(g * 5 for g in i))
    y.sum().backward()
    return x.grad


def inside_after_accumulation(x):
    def clip(x):
        x.grad = x.grad.clamp(max=5.0)

    x.register_post_accumulate_grad_hook(clip)
    return square(x)


def inside_retained(x):
    y = x * x
    y.retain_grad()
    y.register_hook(times(10))
    (y * y).sum().backward()
    return y.grad


def inside_on_several(x):
    y, z = x * 2, x * 3
    gradients = []
    MULTI((y, z), gradients.extend)
    (y * z).sum().backward()
    return gradients[0] + 10 * gradients[1]


def inside_at_the_first_of_several(x):
    y, z, gradients = x * 2, x * 3, []
    MULTI((y, z), gradients.append, mode="any")
    (y * z).sum().backward()
    return gradients[0] * (10 if len(gradients) == 1 else 0)


def inside_under_create_graph(x):
    y = x * x
    y.register_hook(lambda grad: grad * x)  # first derivative 2 x^2, second 4 x
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0]


def inside_after_a_write(x):
    y, seen = x * 3, []
    y.register_hook(lambda grad: seen.append("old") or grad * 10)
    y.mul_(5)
    y.register_hook(lambda grad: seen.append("new") or grad + 1)
    y.sum().backward()
    return x.grad if seen == ["new", "old"] else None


INSIDE = {
    inside_on_a_tensor: [30, 30],
    inside_on_an_argument: [20, 40],
    inside_removed: [2, 4],
    inside_for_one_pass: [22, 44],
    inside_on_a_node: [20, 40],
    inside_after_accumulation: [2, 4],
    inside_retained: [20, 80],
    inside_on_several: [23, 46],
    inside_at_the_first_of_several: [20, 40],
    inside_under_create_graph: [4, 8],
    inside_after_a_write: [300, 300],
}


@pytest.mark.row("edge_40")
@pytest.mark.parametrize("program", INSIDE, ids=lambda program: program.__name__)
def test_hooks_registered_inside(program):
    counted = Counted(program)
    for _ in range(3):
        x = vector(1.0, 2.0)
        assert counted(x).tolist() == INSIDE[program]
        assert not x._backward_hooks
    assert counted.traces == 1
    assert program(vector(1.0, 2.0)).tolist() == INSIDE[program]


# ---- what arguments have


@pytest.mark.row("F01")
def test_a_hook_added_after_compilation_has_it_traced_anew():
    step, x = Counted(), vector(1.0, 2.0)
    assert step(x).tolist() == [2, 4]
    handle = x.register_hook(times(10))
    assert isinstance(handle, RemovableHandle)
    assert step(x).tolist() == [20, 40]
    x.register_hook(lambda grad: grad + 1)
    assert step(x).tolist() == [21, 41]
    assert step(x).tolist() == [21, 41]
    assert step.traces == 3
    handle.remove()
    assert step(x).tolist() == [3, 5]
    assert step.traces == 4 and len(step.jitted.traces) == 2


@pytest.mark.row("F01")
def test_the_hooks_of_one_tensor_are_not_those_of_another():
    step, x, y = Counted(), vector(1.0, 2.0), vector(1.0, 2.0)
    x.register_hook(times(10))
    y.register_hook(times(100))
    assert [step(tensor).tolist() for tensor in (x, y, x)] == [[20, 40], [200, 400], [20, 40]]
    assert step(vector(1.0, 2.0)).tolist() == [2, 4]
    assert step.traces == 3


@pytest.mark.row("F03")
def test_hooks_run_in_order_with_those_registered_inside():
    seen = []

    def function(x):
        x.register_hook(lambda grad: seen.append("inside") or grad + 1)
        return square(x)

    x = vector(1.0, 2.0)
    x.register_hook(lambda grad: seen.append("outside") or grad * 10)
    assert torch.jit(function)(x).tolist() == [21, 41]
    assert seen == ["outside", "inside"] and len(x._backward_hooks) == 1


def by_grad(x):
    return torch.autograd.grad((x * x).sum(), x)[0]


@pytest.mark.row("F01")
def test_a_hook_of_an_argument_that_is_no_leaf_compiled():
    step = Counted(by_grad)
    y = vector(1.0, 2.0) * 1
    handle = y.register_hook(times(10))
    assert step(y).tolist() == [20, 40]
    handle.remove()
    assert step(y).tolist() == [2, 4]
    assert step.traces == 2


@pytest.mark.row("F01")
def test_a_hook_of_one_output_of_several_compiled():
    step = Counted(by_grad)
    first, second = vector(1.0, 2.0, 3.0, 4.0).chunk(2)
    # an output that no gradient reaches gets None, as in PyTorch
    second.register_hook(lambda grad: None if grad is None else grad * 10)
    assert step(first).tolist() == [2, 4]
    assert step(second).tolist() == [60, 80]


@pytest.mark.row("F08")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_hook_that_removes_itself(compiled):
    x = vector(1.0, 2.0)

    def once(grad):
        handle.remove()
        return grad * 10

    def twice(x):
        return square(x).clone(), square_more(x)

    step = torch.jit(twice) if compiled else twice
    handle = x.register_hook(once)
    first, both = step(x)
    assert (first.tolist(), both.tolist()) == ([20, 40], [22, 44])
    x.grad = None
    assert step(x)[1].tolist() == [4, 8]


@pytest.mark.row("F08")
def test_programs_of_hooks_that_are_gone_are_dropped():
    step, x = Counted(), vector(1.0, 2.0)
    step(x)
    for _ in range(5):
        with x.register_hook(times(10)):
            assert step(x).tolist() == [20, 40]
    assert len(step.jitted.traces) <= 2
    assert step(x).tolist() == [2, 4] and step.traces == 6


@pytest.mark.row("F11")
def test_register_post_accumulate_grad_hook_runs_after_accumulation():
    step, x, seen = Counted(), vector(1.0, 2.0), []
    step(x)

    def hook(x):
        seen.append(x.is_leaf)
        x.grad *= 10

    x.grad = None
    handle = x.register_post_accumulate_grad_hook(hook)
    assert step(x).tolist() == [20, 40]
    assert step(x).tolist() == [20, 40]
    assert seen == [True, True]
    handle.remove()
    assert step(x).tolist() == [2, 4]


@pytest.mark.row("F11")
def test_post_accumulate_hooks_are_not_called_by_grad():
    x, seen = vector(1.0, 2.0), []
    x.register_post_accumulate_grad_hook(seen.append)
    x.register_hook(times(10))
    gradient = torch.jit(lambda x: torch.autograd.grad((x * x).sum(), x)[0])(x)
    assert gradient.tolist() == [20, 40] and seen == []


@pytest.mark.row("F14")
def test_the_hooks_of_a_leafs_node():
    step, x = Counted(), vector(1.0, 2.0)
    node = torch.autograd.graph.get_gradient_edge(x).node
    step(x)
    handle = node.register_prehook(lambda grads: (grads[0] * 10,))
    assert step(x).tolist() == [20, 40]
    seen = []
    node.register_hook(lambda inputs, outputs: seen.append((inputs, outputs[0].shape)))
    assert step(x).tolist() == [20, 40]
    assert seen == [((), (2,))]
    handle.remove()
    assert step(x).tolist() == [2, 4]


@pytest.mark.row("F15")
def test_a_multi_grad_hook_of_several_arguments_compiled():
    x, y, z = vector(1.0), vector(2.0), vector(3.0)
    seen = []
    handle = MULTI((x, y, z), lambda grads: seen.append([grad is not None for grad in grads]))

    @torch.jit
    def step(x, y):
        x.grad = y.grad = None
        (x * y).sum().backward()
        return x.grad, y.grad

    step(x, y)
    assert seen == [[True, True, False]]
    step(x, y)
    assert len(seen) == 1  # the hook is part of the program
    (x * y).sum().backward()
    assert seen[1:] == [[True, True, False]]
    handle.remove()
    step(x, y)
    assert len(seen) == 2


@pytest.mark.row("F15")
def test_a_multi_grad_hook_at_the_first_of_several_arguments_compiled():
    x, y, seen = vector(1.0), vector(2.0), []
    MULTI((x, y), seen.append, mode="any")

    @torch.jit
    def step(x, y):
        (x * y).sum().backward()
        return x.grad, y.grad

    step(x, y)
    assert len(seen) == 1


@pytest.mark.row("F15")
def test_a_multi_grad_hook_of_an_argument_given_twice_compiled():
    x, y, seen = vector(1.0), vector(2.0), []
    MULTI((x, y), seen.append)

    @torch.jit
    def step(a, b, y):
        (a * b * y).sum().backward()
        return a.grad, b.grad

    step(x, x, y)
    assert len(seen) == 1


@pytest.mark.row("F17")
def test_an_error_in_a_hook():
    step, x = Counted(), vector(1.0, 2.0)
    handle = x.register_hook(lambda grad: {}["mine"])
    with pytest.raises(KeyError, match="mine"):
        step(x)
    handle.remove()
    assert step(x).tolist() == [2, 4]
    assert torch.is_grad_enabled() and (x * 2).requires_grad


# ---- what is reached from outside


@pytest.mark.row("F01")
def test_a_hook_of_a_tensor_from_outside():
    weight = vector(3.0, 4.0)
    step = Counted(lambda x: torch.autograd.grad((x * weight * weight).sum(), weight)[0])
    x = vector(1.0, 2.0)
    assert step(x).tolist() == [6, 16]
    assert step(x).tolist() == [6, 16] and step.traces == 1
    handle = weight.register_hook(times(10))
    assert step(x).tolist() == [60, 160]
    assert step(x).tolist() == [60, 160] and step.traces == 2
    handle.remove()
    assert step(x).tolist() == [6, 16] and step.traces == 2


@pytest.mark.row("F01")
def test_a_hook_of_a_tensor_from_outside_that_is_no_leaf():
    x, weight = vector(1.0, 2.0), vector(3.0, 4.0)
    middle = weight * 2

    def function(x):
        return torch.autograd.grad((x * middle).sum(), weight, retain_graph=True)[0]

    step = Counted(function)
    assert step(x).tolist() == [2, 4]
    handle = middle.register_hook(times(10))
    assert step(x).tolist() == [20, 40]
    middle.grad_fn.register_prehook(lambda grads: (grads[0] + 1,))
    assert step(x).tolist() == [22, 42]
    handle.remove()
    assert step(x).tolist() == [4, 6]
    assert step(x).tolist() == [4, 6] and step.traces == 4
    del step, function
    gc.collect()  # a compiled function forms a cycle with its programs and holds `middle`


@pytest.mark.row("F01")
def test_a_hook_seen_by_a_compiled_function_inside_of_another():
    weight = vector(3.0, 4.0)

    @torch.jit
    def inner():
        return torch.autograd.grad((weight * weight).sum(), weight)[0]

    outer = Counted(lambda x: x + inner())
    x = vector(1.0, 1.0).detach()
    assert outer(x).tolist() == [7, 9]
    weight.register_hook(times(10))
    assert outer(x).tolist() == [61, 81]
    assert outer(x).tolist() == [61, 81] and outer.traces == 2


@pytest.mark.row("F01")
def test_a_hook_of_an_argument_of_a_compiled_function_inside_of_another():
    inner = torch.jit(square)
    outer = Counted(lambda x: inner(x) + 0)
    x = vector(1.0, 2.0)
    assert outer(x).tolist() == [2, 4]
    x.register_hook(times(10))
    assert outer(x).tolist() == [20, 40]


# ---- what is kept


def test_a_compiled_function_keeps_neither_hooks_nor_tensors():
    step, x = Counted(), vector(1.0, 2.0)

    class Hook:
        def __call__(self, grad):
            return grad * 10

    hook = Hook()
    x.register_hook(hook)
    x.register_post_accumulate_grad_hook(lambda x: None)
    assert step(x).tolist() == [20, 40]
    gone = weakref.ref(hook), weakref.ref(x)
    del x, hook
    gc.collect()
    assert all(reference() is None for reference in gone)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_of_several_tensors_makes_no_cycle(mode):
    gc.collect()
    gc.disable()
    try:
        x, y = vector(1.0), vector(2.0) * 2
        MULTI((x, y), lambda grads: None, mode=mode)
        (x * y).sum().backward()
        gone = weakref.ref(x), weakref.ref(y.grad_fn)
        del x, y
        assert all(reference() is None for reference in gone)
    finally:
        gc.enable()


@pytest.mark.row("F10")
def test_names_of_torch_utils_hooks():
    @unserializable_hook
    def hook(grad):
        return grad * 10

    x = vector(1.0, 2.0)
    x.register_hook(hook)
    assert square(x).tolist() == [20, 40] and hook.__torch_unserializable__
