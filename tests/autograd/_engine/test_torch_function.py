"""`__torch_function__`: objects that stand for tensors decide what `backward` and `grad` do."""

import pytest
from helpers.as_torch import as_torch, error, leaf


class Wrapper:
    """Holds a tensor and records the calls of `__torch_function__`."""

    def __init__(self, tensor):
        self.tensor, self.asked = tensor, []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        seen = function.__name__, [kind.__name__ for kind in types], sorted(kwargs)
        for value in (*args, *args[0], *args[-1], *(kwargs.get("inputs") or ())):
            if isinstance(value, Wrapper):
                value.asked.append(seen)
        return function(*map(plain, args), **{name: plain(v) for name, v in kwargs.items()})


class Derived(Wrapper):
    pass


class Silent(Wrapper):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return NotImplemented


def plain(value):
    if isinstance(value, Wrapper):
        return value.tensor
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


@pytest.mark.row("A35")
@as_torch("""
    tensor(20.0)
    [['backward', ['Wrapper'], ['create_graph', 'grad_tensors', 'inputs', 'retain_graph']],
     ['backward', ['Wrapper'], ['create_graph', 'grad_tensors', 'inputs', 'retain_graph']]]
    [['backward',
      ['Tensor', 'Wrapper'],
      ['create_graph', 'grad_tensors', 'inputs', 'retain_graph']]]
""")
def test_backward_of_objects_with_torch_function(torch):
    x = leaf(torch, 3.0)
    output, input_ = Wrapper(x * x), Wrapper(x)
    torch.autograd.backward(output)
    torch.autograd.backward([x * x, Derived(x * 2)])
    torch.autograd.backward(x * x, inputs=[input_])
    return x.grad, output.asked, input_.asked


@pytest.mark.row("A35")
@as_torch("""
    True
    ['create_graph', 'gradient', 'inputs', 'retain_graph']
    1
""")
def test_the_backward_method_asks_torch_function(torch):
    class Kept(Wrapper):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function is torch.Tensor.backward, sorted(kwargs), len(args)

    return torch.Tensor.backward(Kept(None), retain_graph=True)


@pytest.mark.row("A35", "B21")
@as_torch
def test_the_order_in_which_torch_functions_are_asked(torch):
    x = leaf(torch, 3.0)
    wrappers = [Wrapper(x * x), Derived(x), Silent(x * 2)]
    first = torch.autograd.grad([wrappers[0], x * 5], [x, wrappers[1]], retain_graph=True)
    second = torch.autograd.grad([wrappers[2], wrappers[0]], x)
    unknown = "on types that implement __torch_function__"
    return (
        (first, second, [wrapper.asked for wrapper in wrappers]),
        error(torch.autograd.grad, Silent(x * x), x, words=unknown),
        error(torch.autograd.backward, Silent(x * x), words=unknown),
    )


@as_torch("['logdet', 'lobpcg', 'is_neg', 'is_signed', 'atleast_1d', 'atleast_2d', 'atleast_3d']")
def test_compositions_are_overridden_as_a_whole(torch):
    class Named:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function.__name__

    functions = (
        *(torch.logdet, torch.lobpcg, torch.is_neg, torch.is_signed),
        *(torch.atleast_1d, torch.atleast_2d, torch.atleast_3d),
    )
    return [function(Named()) for function in functions]


@as_torch(
    "[['einsum', 3], ['einsum', 3], ['einsum', 3], ['einsum', 2]]",
)
def test_einsum_is_overridden_with_its_operands_one_by_one(torch):
    class Counted:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return [function.__name__, len(args)]

    x, counted = torch.ones(2, 2), Counted()
    return [
        torch.einsum("ij,jk", [counted, x]),
        torch.einsum("ij,jk", x, counted),
        torch.einsum(x, [0, 1], counted, [1, 2]),
        torch.einsum("ij", (counted,)),
    ]
