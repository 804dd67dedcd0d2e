"""Nodes as functions: `tensor.grad_fn(gradient)`."""

import pytest
from helpers.as_torch import as_torch, error, leaf

import jaxgrad


def vector(torch):
    return leaf(torch, 1.0, 2.0, 3.0, dtype=torch.float64)


def ones(torch, *shape):
    return torch.ones(*shape, dtype=torch.float64)


@as_torch
def test_a_node_takes_one_gradient_for_each_differentiable_output(torch):
    x, g = vector(torch), ones(torch, 3)
    product, order, parts = (x * x).grad_fn, x.sort()[0].grad_fn, x.unbind()[0].grad_fn
    one = torch.tensor(2.0, dtype=torch.float64)
    return (
        [error(product), error(product, g, g), error(order), error(order, g, None)],
        [error(parts), error(parts, one), error(parts, *[one] * 4)],
        [product(g)[0], product(g)[1], order(g), parts(one, None, one)],
        product(None),
    )


@as_torch("""
    [TypeError('argument 0 is not a Variable'), TypeError('argument 0 is not a Variable')]
    'RuntimeError'
    [tensor([2.0, 4.0, 6.0], dtype=float64, requires_grad=True),
     tensor([2.0, 4.0, 6.0], dtype=float64, requires_grad=True)]
    [tensor([1.0, 2.0, 3.0], dtype=float64, requires_grad=True),
     tensor([1.0, 2.0, 3.0], dtype=float64, requires_grad=True)]
""")
def test_what_a_node_takes_as_a_gradient(torch):
    product = (vector(torch) * vector(torch)).grad_fn
    return (
        [error(product, 3), error(product, [ones(torch, 3)])],
        error(product, ones(torch, 2))["error"],
        product(torch.tensor(2.0, dtype=torch.float64)),
        product(ones(torch, 1)),
    )


@as_torch("""
    tensor([2.718281828459045, 7.38905609893065, 20.085536923187668],
           dtype=float64, requires_grad=True)
    tensor([2.718281828459045, 7.38905609893065, 20.085536923187668], dtype=float64)
    [tensor([2.718281828459045, 7.38905609893065, 20.085536923187668], dtype=float64),
     tensor([2.718281828459045, 7.38905609893065, 20.085536923187668], dtype=float64)]
""")
def test_calls_are_recorded_in_grad_mode_alone(torch):
    x = vector(torch)
    node, gradient = x.exp().grad_fn, ones(torch, 3).requires_grad_()
    result = node(gradient)
    with torch.no_grad():
        plain = node(gradient)
    again = torch.autograd.grad(result.sum(), (x, gradient))
    return result, plain, again


@as_torch("""
    [[], []]
    tensor([2.0, 2.0, 2.0], dtype=float64)
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    [TypeError('expected 1 arguments, got 0 instead'),
     TypeError('expected 1 arguments, got 2 instead')]
""")
def test_the_node_of_a_leaf_accumulates(torch):
    x, seen = vector(torch), []
    node = (x * 2).grad_fn.next_functions[0][0]
    x.register_hook(lambda gradient: seen.append("hook"))
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor.grad.tolist()))
    with torch.no_grad():
        results = node(ones(torch, 3)), node(ones(torch, 3))
    many = error(node), error(node, ones(torch, 3), ones(torch, 3))
    return results, x.grad, seen, many


@as_torch("""
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
""")
def test_a_freed_node_refuses_a_call(torch):
    y = vector(torch).exp()
    y.sum().backward()
    return error(y.grad_fn, ones(torch, 3))


def test_the_node_of_a_Function_can_be_called():  # not in PyTorch
    class Both(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y, x * y

        @staticmethod
        def backward(ctx, first, second):
            return first, second

    node = Both.apply(vector(jaxgrad), vector(jaxgrad))[0].grad_fn
    g = ones(jaxgrad, 3)
    assert [gradient.tolist() for gradient in node(g, g * 2)] == [[1.0] * 3, [2.0] * 3]
    assert [gradient.tolist() for gradient in node(g, None)] == [[1.0] * 3, [0.0] * 3]
    with pytest.raises(TypeError, match="expected 2 arguments, got 1 instead: BothBackward takes"):
        node(g)


def test_gradients_of_other_dtypes():
    node = (vector(jaxgrad) * 2).grad_fn
    (gradient, _) = node(jaxgrad.ones(3))
    assert gradient.dtype == jaxgrad.float64
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        node(jaxgrad.ones(3, dtype=jaxgrad.complex64))


def test_a_call_inside_of_a_compiled_function():
    @jaxgrad.jit
    def gradient(x, g):
        return (x * x * x).grad_fn(g)[0]

    x, g = vector(jaxgrad), ones(jaxgrad, 3) * 2
    assert gradient(x, g).tolist() == [2.0, 4.0, 6.0]  # of x * x times x, for the first factor

    @jaxgrad.jit
    def too_many(x):
        return (x * x).grad_fn(x, x)

    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        too_many(x)
