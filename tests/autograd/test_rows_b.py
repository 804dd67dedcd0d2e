"""Rows of autograd.grad that stand in no other file: what hooks it runs."""

from as_torch import as_torch, leaf

import jaxgrad


def hooked(torch, seen):
    x = leaf(torch, 3.0)
    y = x * x
    z = y * 2
    for name, tensor in (("x", x), ("y", y), ("z", z)):
        tensor.register_hook(lambda g, name=name: seen.append((name, g.item())))
    x.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    return x, y, z


@as_torch
def test_hooks_of_tensors_run_B22(torch):
    seen = []
    x, y, z = hooked(torch, seen)
    found = [torch.autograd.grad(z, wanted, retain_graph=True) for wanted in (x, y, z)]
    return found, seen, x.grad


def test_a_gradient_that_is_returned_is_that_after_the_hooks_B22():
    """PyTorch returns the one before them where the pass goes on from there."""
    seen = []
    x, y, z = hooked(jaxgrad, seen)
    found = jaxgrad.autograd.grad(z, [x, y])
    assert [gradient.item() for gradient in found] == [3 * 6 * 10, 3]
    assert seen == [("z", 1), ("y", 2), ("x", 18)]


@as_torch
def test_no_hook_for_what_is_accumulated_runs_B22(torch):
    x, seen = leaf(torch, 3.0), []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("accumulated"))
    y = x * x
    torch.autograd.grad(y, x, retain_graph=True)
    before = list(seen)
    y.backward(inputs=[x], retain_graph=True)
    y.backward()
    return before, seen


@as_torch
def test_hooks_of_a_captured_node_do_not_run_B22(torch):
    x, seen = leaf(torch, 3.0), []
    y = x * x
    z = y * 2
    for name, node in (("y", y.grad_fn), ("z", z.grad_fn)):
        node.register_prehook(lambda gradients, name=name: seen.append(f"before {name}"))
        node.register_hook(lambda results, gradients, name=name: seen.append(f"after {name}"))
    torch.autograd.grad(z, y, retain_graph=True)
    captured = list(seen)
    torch.autograd.grad(z, x)
    return captured, seen
