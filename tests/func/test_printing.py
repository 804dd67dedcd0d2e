"""How tensors print inside of transforms: as PyTorch's wrapped tensors."""

import pytest
from helpers.as_torch import as_torch

import jaxgrad


def matrix(torch):
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]])


class Seen(list):
    """The texts of tensors; calling it with a tensor adds one, and gives the tensor back."""

    def __call__(self, tensor):
        self.append(repr(tensor))
        return tensor


@pytest.mark.slow
@as_torch
def test_wrapped_tensors_with_values(torch):
    func, see, x = torch.func, Seen(), matrix(torch)
    func.vmap(lambda a: see(a).sum())(x)
    func.vmap(lambda a: see(a).sum(), in_dims=1)(x)
    func.vmap(func.vmap(lambda a: see(a)))(x)
    func.grad(lambda a: see(a).sum())(x)
    func.grad(lambda a: see(a * 2).sum())(x)
    func.vmap(func.grad(lambda a: see(a).sum()))(x)
    func.grad(lambda a: func.vmap(lambda b: see(b))(a).sum())(x)
    func.jacrev(lambda a: see(a))(x)
    func.vjp(lambda a: see(a), x)
    func.grad(lambda a: func.grad(lambda b: see(b * b).sum())(a).sum())(x)
    func.vmap(lambda a: (see(str(a)), a)[1])(x)
    return list(see)


@as_torch("""
    'tensor([1., 1.])'
    'tensor([1., 1.])'
    'tensor([1., 1.])'
    'tensor([1., 1.])'
""")
def test_tensors_that_a_transform_does_not_wrap(torch):
    func, see, x = torch.func, Seen(), matrix(torch)
    shared = torch.ones(2)
    func.vmap(lambda a: (see(shared), a)[1])(x)
    func.vmap(lambda a, b: (see(b), a)[1], in_dims=(0, None))(x, shared)
    func.grad(lambda a: (see(shared), a.sum())[1])(x)
    func.jvp(lambda a: (see(shared), a)[1], (x,), (x,))
    return list(see)


def test_results_of_one_example_have_a_batch_dimension_and_no_values():
    see = Seen()
    jaxgrad.func.vmap(lambda a: see(a * 2))(matrix(jaxgrad))
    jaxgrad.func.vmap(jaxgrad.func.grad(lambda a: see(a * 2).sum()))(matrix(jaxgrad))
    traced = "tensor(<traced>, shape=[2, 2], dtype=torch.float32)"
    batched = f"BatchedTensor(lvl=1, bdim=0, value=\n    {traced}\n)"
    assert see[0] == batched
    inner = batched.replace("\n", "\n    ")
    assert see[1] == f"GradTrackingTensor(lvl=2, value=\n    {inner}\n)"


def test_forward_mode_shows_the_tangent():
    see = Seen()
    jaxgrad.func.jvp(lambda a: see(a * 2), (jaxgrad.ones(2),), (jaxgrad.tensor([3.0, 4.0]),))
    assert see == [
        "GradTrackingTensor(lvl=1, value=\n    tensor([2., 2.], tangent=tensor([6., 8.]))\n)"
    ]
    assert repr(jaxgrad.ones(2)) == "tensor([1., 1.])"


def test_a_function_that_prints_an_example_runs_at_each_call(capsys):
    shown = jaxgrad.func.vmap(lambda a: (print(a), a * 2)[1])
    for value in (1.0, 2.0):
        assert shown(jaxgrad.full((2,), value)).tolist() == [2 * value] * 2
        assert f"tensor([{value:.0f}., {value:.0f}.])" in capsys.readouterr().out


def test_printing_makes_no_tensor_an_input():
    x, see = matrix(jaxgrad), Seen()
    plain = jaxgrad.func.vmap(lambda a: a * 2)(x)
    result = jaxgrad.func.vmap(lambda a: see(a) * 2)(x)
    x.requires_grad_()
    loud = jaxgrad.func.vmap(lambda a: see(a) * 2)(x)
    loud.sum().backward()
    assert result.tolist() == plain.tolist() == loud.tolist()
    assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert see[-1].count("requires_grad=True") == 1


@pytest.mark.slow
@pytest.mark.parametrize("prints", [False, True])
def test_printing_changes_no_derivative(prints):
    see = Seen() if prints else lambda tensor: tensor
    f = lambda a: see(see(a).sin() * a).sum()  # noqa: E731
    x = jaxgrad.tensor([0.5, 1.0], dtype=jaxgrad.float64)
    hessian = jaxgrad.func.hessian(f)(x)
    expected = 2 * x.cos() - x * x.sin()
    assert (hessian - expected.diag()).abs().max().item() < 1e-14
    rows = jaxgrad.func.vmap(jaxgrad.func.grad(f))(jaxgrad.stack([x, x * 2]))
    assert (rows[0] - (x.cos() * x + x.sin())).abs().max().item() < 1e-14
