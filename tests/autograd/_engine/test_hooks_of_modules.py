"""Hooks by attribute, and the node hooks that hooks of modules are built on."""

import pytest
from helpers.as_torch import as_torch, error, leaf


@pytest.mark.row("D29")
@as_torch("""
    [1, 6.0, None, 3.0, 2, 16.0, 1, 16.0, [16.0]]
    [RuntimeError('Deletion of _backwards_hooks not allowed!'),
     RuntimeError('Deletion of _post_accumulate_grad_hooks not allowed!')]
""")
def test_the_hooks_of_a_tensor_by_attribute(torch):
    x = leaf(torch, 2.0)
    x.register_hook(lambda grad: grad * 2)

    def gradient():
        x.grad = None
        (x * 3).backward()
        return x.grad.item()

    values = [len(x._backward_hooks), gradient()]
    refused = [
        error(lambda: delattr(x, "_backward_hooks"), words="Deletion of _backwards_hooks not"),
        error(
            lambda: delattr(x, "_post_accumulate_grad_hooks"),
            words="Deletion of _post_accumulate_grad_hooks not allowed",
        ),
    ]
    x._backward_hooks = None
    values += [x._backward_hooks, gradient()]
    x._backward_hooks = {0: lambda grad: grad * 5, 1: lambda grad: grad + 1}
    values += [len(x._backward_hooks), gradient()]
    seen = []
    x._post_accumulate_grad_hooks = {0: lambda tensor: seen.append(tensor.grad.item())}
    values += [len(x._post_accumulate_grad_hooks), gradient(), list(seen)]
    return values, refused


@pytest.mark.row("F18")
@as_torch("""
    [[30.0, 2.0]]
    tensor(30.0)
    tensor(2.0)
    RuntimeError(
     'Output 0 of Boundary is a view and is being modified inplace. This view is the '
     'output of a function that returns multiple views. Such functions do not allow the '
     'output views to be modified inplace. You should replace the inplace operation by '
     'an out-of-place one.')
""")
def test_the_node_hooks_that_hooks_of_modules_need(torch):
    """Inputs and outputs of a module pass through an identity whose node has the hooks."""

    class Boundary(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            return tuple(tensor.view_as(tensor) for tensor in tensors)

        @staticmethod
        def backward(ctx, *gradients):
            return gradients

    seen = []
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    a, b = Boundary.apply(x, y)
    a.grad_fn.register_hook(lambda inputs, outputs: seen.append([g.item() for g in inputs]))
    a.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10, outputs[1]))
    in_place = error(lambda: a.add_(1))
    (a * b).backward()
    return seen, x.grad, y.grad, in_place
