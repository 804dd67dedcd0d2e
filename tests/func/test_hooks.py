"""Hooks inside of transforms: they run in the passes of the innermost one by reverse mode alone.
The numbers are those of torch 2.13.
"""

import pytest

import jaxgrad as torch
from jaxgrad import func


def hooked(x):
    y = x.sin()
    y.register_hook(lambda grad: grad * 2)
    return y * y * x


def hooked_node(x):
    y = x.sin()
    y.grad_fn.register_hook(lambda gradients, _: (gradients[0] * 2,))
    return y * y * x


def around(x):
    z = x * 3
    z.register_hook(lambda grad: grad * 10)
    return func.grad(hooked)(z)


CASES = {
    "grad": (func.grad(hooked), 2.36653),
    "grad of grad": (func.grad(func.grad(hooked)), 2.10362),
    "of a node": (func.grad(func.grad(hooked_node)), 2.10362),
    "grad of a product": (func.grad(lambda x: func.grad(hooked)(x) * x), 4.25978),
    "vjp": (lambda x: func.vjp(hooked, x)[1](torch.ones(()))[0], 2.36653),
    "grad of vjp": (func.grad(lambda x: func.vjp(hooked, x)[1](torch.ones(()))[0]), 2.10362),
    "grad of the value of vjp": (func.grad(lambda x: func.vjp(hooked, x)[0]), 1.49006),
    "hooks of two": (func.grad(around), 136.09155),
    "jacrev": (func.jacrev(hooked), 2.36653),
    "jacrev of jacrev": (func.jacrev(func.jacrev(hooked)), 2.10362),
    "hessian": (func.hessian(hooked), 2.10362),
}


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_hooks_belong_to_the_transform_around(name, compile):
    function, expected = CASES[name]
    result = (torch.compile(function) if compile else function)(torch.tensor(0.9))
    assert result.item() == pytest.approx(expected, rel=1e-5)


def test_under_vmap():
    twice = func.vmap(func.grad(func.grad(hooked)))(torch.tensor([0.3, 0.9]))
    assert twice.tolist() == pytest.approx([2.68433, 2.10362], rel=1e-5)


def test_plain_passes():
    x = torch.tensor(0.9, requires_grad=True)
    func.grad(hooked)(x).backward()  # of the caller: the hook is not its own
    assert x.grad.item() == pytest.approx(2.10362, rel=1e-5)
    (first,) = torch.autograd.grad(hooked(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)  # without a transform each pass runs the hook
    assert second.item() == pytest.approx(4.4685, rel=1e-5)


def test_a_pass_inside_of_the_transform():
    def inside(x):
        y = x * x
        y.register_hook(lambda grad: grad * 10)
        (gradient,) = torch.autograd.grad(y, x, create_graph=True)
        return gradient

    assert func.grad(inside)(torch.tensor(3.0)).item() == 20
    assert inside(torch.tensor(3.0, requires_grad=True)).item() == 60
