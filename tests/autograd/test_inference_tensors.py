"""Inference tensors, and derivatives that are asked for in inference mode."""

import contextlib

import pytest
from helpers.as_torch import as_torch, error, leaf
from helpers.compiled import under_jit

import jaxgrad


def vector(torch, **options):
    return torch.tensor([1.0, 2.0], dtype=torch.float64, **options)


def inside(torch):
    return torch.inference_mode()


# ---- transforms


def weighted(w):
    return lambda x: (x * x * x * w).sum()


@pytest.mark.slow
@as_torch
def test_derivatives_inside_of_inference_mode(torch):
    func, told = torch.func, []
    x = vector(torch)
    with inside(torch):
        w = vector(torch)  # an inference tensor that the function captures
        for point in (x, vector(torch)):
            f = weighted(w)
            answers = [
                func.grad(f)(point),
                func.grad_and_value(f)(point),
                func.vjp(f, point)[1](torch.tensor(2.0, dtype=torch.float64)),
                func.jvp(f, (point,), (w,)),
                func.jacrev(lambda x: x * x * w)(point),
                func.jacfwd(lambda x: x * x * w)(point),
                func.hessian(f)(point),
                func.vmap(func.grad(f))(torch.stack([point, point * 2])),
                func.grad(lambda x: func.grad(f)(x).sum())(point),  # noqa: B023
            ]
            told.append(answers)
        told.append(
            [answers[0].is_inference(), answers[4].is_inference(), answers[5].is_inference()]
        )
    told.append(func.grad(weighted(w))(x))
    return told


@as_torch("""
    [False, True, True]
    [False, False, False]
    [False, True, True]
    [False, False, False]
    [False, True, True]
    [False, True, False]
""")
def test_modes_that_a_function_sees_inside_of_inference_mode(torch):
    seen = []

    def function(x):
        y = x * 2
        seen.append([torch.is_inference_mode_enabled(), torch.is_grad_enabled(), y.requires_grad])
        return (y * y).sum()

    for block in (torch.inference_mode, torch.no_grad, contextlib.nullcontext):
        with block():
            torch.func.grad(function)(vector(torch))
            torch.func.jvp(function, (vector(torch),), (vector(torch),))
    return seen


def test_linearize_inside_of_inference_mode():  # PyTorch gives zeros
    with jaxgrad.inference_mode():
        w = vector(jaxgrad)
        output, derivative = jaxgrad.func.linearize(lambda x: x * x * w, w)
        assert derivative(jaxgrad.ones(2, dtype=jaxgrad.float64)).tolist() == [2.0, 8.0]
        assert output.tolist() == [1.0, 8.0]


def test_functional_inside_of_inference_mode():  # PyTorch gives zeros
    functional, x = jaxgrad.autograd.functional, vector(jaxgrad)
    with jaxgrad.inference_mode():
        w = vector(jaxgrad)
        for point in (x, vector(jaxgrad)):
            assert functional.jacobian(lambda x: x * x * w, point).tolist() == [[2, 0], [0, 8]]
            forward = functional.jacobian(
                lambda x: x * x * w, point, vectorize=True, strategy="forward-mode"
            )
            assert forward.tolist() == [[2, 0], [0, 8]]
            assert functional.hessian(weighted(w), point).tolist() == [[6, 0], [0, 24]]
            for product in (functional.hvp, functional.vhp):
                assert product(weighted(w), point, w)[1].tolist() == [6, 48]
            assert functional.vjp(lambda x: x * x * w, point, w)[1].tolist() == [2, 16]
            assert functional.jvp(lambda x: x * x * w, point, w)[1].tolist() == [2, 16]


def test_a_compiled_function_that_differentiates_in_inference_mode():
    w = vector(jaxgrad)
    slope = jaxgrad.jit(lambda x: jaxgrad.func.grad(weighted(w))(x))
    with jaxgrad.inference_mode():
        inner = jaxgrad.func.grad(weighted(vector(jaxgrad)))
        assert slope(w).tolist() == [3.0, 24.0] and slope(w * 1).tolist() == [3.0, 24.0]
        assert jaxgrad.jit(inner)(w).tolist() == [3.0, 24.0]
    assert slope(w).tolist() == [3.0, 24.0]


def test_an_operator_outside_of_transforms_does_not_save_an_inference_tensor():
    with jaxgrad.inference_mode():
        w = vector(jaxgrad)
    jaxgrad.func.grad(weighted(w))(vector(jaxgrad))
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        vector(jaxgrad).requires_grad_() * w


# ---- tensors and views made in inference mode


@as_torch("""
    [True, False, True]
    [False, True]
    [True, [[3.0, 3.0]]]
    [True, False, True]
    [False, True]
    [False, [[3.0, 3.0]]]
""")
def test_results_and_views_inside_of_inference_mode(torch):
    told = []
    with inside(torch):
        for requires_grad in (True, False):
            c = torch.ones(1, 2, requires_grad=requires_grad)
            out, view = c * c, c.view(-1)
            told.append([out.is_inference(), out.requires_grad, out.is_leaf])
            told.append([view.requires_grad, view.is_leaf])
            c.add_(2)
            told.append([c.requires_grad, c.tolist()])
    return told


@as_torch
def test_views_of_normal_tensors_made_in_inference_mode(torch):
    told = []
    for requires_grad in (True, False):
        s = vector(torch, requires_grad=requires_grad)
        a = s.clone()
        with inside(torch):
            view = a.view(-1)
            view.add_(1)
        told.append([view.is_inference(), view._is_view(), a.is_inference(), a._version])
        told.append(error(view.mul_, 2))
        a.mul_(3)
        told.append([error(lambda view=view: view.grad_fn and 0), a.detach()])
    return told


def test_a_leaf_made_in_inference_mode_is_an_ordinary_one():
    # PyTorch makes an inference tensor: unary operators on it silently lose the gradient
    with jaxgrad.inference_mode():
        created = vector(jaxgrad, requires_grad=True)
        later = vector(jaxgrad).requires_grad_()
        layer = jaxgrad.nn.Linear(2, 1, bias=False)
    for x in (created, later):
        assert x.requires_grad and not x.is_inference() and x._version == 0
        (x.exp() * x).sum().backward()
        expected = [(v + 1) * jaxgrad.tensor(v, dtype=jaxgrad.float64).exp().item() for v in (1, 2)]
        assert x.grad.tolist() == pytest.approx(expected, rel=1e-15)
    layer(jaxgrad.ones(3, 2)).sum().backward()
    assert layer.weight.grad.tolist() == [[3.0, 3.0]]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        created.add_(1)


def test_a_pass_in_inference_mode_leaves_an_ordinary_gradient():
    x = leaf(jaxgrad, 1.0, 2.0)  # PyTorch refuses the second pass, which would write to `.grad`
    y = (x * x).sum()
    with jaxgrad.inference_mode():
        y.backward()
    (x * x).sum().backward()
    assert not x.grad.is_inference() and x.grad.tolist() == [4.0, 8.0]


@as_torch("""
    [[False, False, False, False, False, False, False]]
    tensor([128.0, 8.0], dtype=float64)
    7
    True
    True
""")
def test_views_of_views_and_of_results_of_Functions_in_inference_mode(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    x, told = vector(torch), []
    with torch.no_grad():
        quiet = x[:2]
    with inside(torch):
        first = x.view(-1, 1)
        views = [first[:, 0], first[0].reshape(1), x.unbind()[0].reshape(1), quiet[:1], first.t()]
        views += [Same.apply(x)[:1], Same.apply(first)[:1]]
    told.append([view.is_inference() for view in views])
    with torch.no_grad():
        for view in views:
            view.mul_(2)
    tensor = torch.zeros(2)
    with inside(torch):
        tensor = torch.zeros(2)[:1]
    return told, x, x._version, tensor.is_inference(), tensor[:1].is_inference()


@as_torch
def test_writes_to_inference_tensors_outside_of_inference_mode(torch):
    words = "Inplace update to inference tensor outside InferenceMode is not allowed"
    with inside(torch):
        tensor = vector(torch)
        tensor.resize_(1).resize_(2).fill_(1.0).unsqueeze_(0).squeeze_(0)
    writes = (
        lambda: tensor.mul_(2),
        lambda: tensor.copy_(vector(torch)),
        lambda: tensor[0].fill_(3.0),
        lambda: tensor.set_(vector(torch)),
        lambda: tensor.resize_(1),
        lambda: tensor.t_(),
        lambda: tensor.squeeze_(),
        lambda: torch.add(vector(torch), 1.0, out=tensor),
    )
    told = [error(write, words=words) for write in writes]
    with torch.no_grad():
        told += [error(write, words=words) for write in writes]
    # PyTorch has written the numbers by then
    assert torch is not jaxgrad or tensor.tolist() == [1.0, 1.0]
    return told


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


@pytest.mark.parametrize(
    "test", [test_inference_mode_and_saved_tensors], ids=lambda test: test.__name__
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
