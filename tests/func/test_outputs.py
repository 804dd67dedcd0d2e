"""Functions without outputs, with outputs that are no tensors, and functions that write to tensors
from outside, in the transforms of `func`.
"""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad

func = jaxgrad.func


def vector(torch):
    return torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def transforms(torch):
    func, x = torch.func, vector(torch)
    return {
        "vjp": lambda f: func.vjp(f, x)[0],
        "jvp": lambda f: func.jvp(f, (x,), (x,)),
        "jacrev": lambda f: func.jacrev(f)(x),
        "jacfwd": lambda f: func.jacfwd(f)(x),
        "hessian": lambda f: func.hessian(f)(x),
        "grad": lambda f: func.grad(f)(x),
    }


@as_torch
def test_functions_without_output_or_with_others_than_tensors(torch):
    functions = {
        "()": lambda x: (),
        "[]": lambda x: [],
        "{}": lambda x: {},
        "None": lambda x: None,
        "number": lambda x: 1.0,
        "text": lambda x: "a",
        "tensor and number": lambda x: (x, 1.0),
        "tensor and None": lambda x: (x, None),
        "in a dict": lambda x: {"a": x, "b": [None]},
    }
    told = {}
    for name, transform in transforms(torch).items():
        for kind, function in functions.items():
            told[f"{name} of {kind}"] = error(transform, function)
    return told


@as_torch
def test_outputs_of_other_dtypes(torch):
    told = {}
    for name, transform in transforms(torch).items():
        for dtype in (torch.int64, torch.bool):

            def function(x, dtype=dtype):
                return x.to(dtype)

            said = error(transform, function)
            told[f"{name} {dtype}"] = said if said["error"] else transform(function)
    return told


@as_torch("""
    TypeError('gradients can be either Tensors or None, but got float')
    TypeError('gradients can be either Tensors or None, but got str')
""")
def test_cotangents_that_are_no_tensors(torch):
    pullback = torch.func.vjp(lambda x: x * 2, vector(torch))[1]
    return error(pullback, 1.0), error(pullback, "a")


def test_linearize_needs_tensors():
    for wrong in (1.0, "a"):
        with pytest.raises(ValueError, match="Thing passed to transform API must be Tensor"):
            func.linearize(lambda x: jaxgrad.ones(()), wrong)
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
        func.linearize(lambda x: x, jaxgrad.tensor([1, 2]))


# ---- vmap


@pytest.mark.slow
@as_torch
def test_results_of_vmap_that_are_no_tensors(torch):
    x, told = vector(torch).reshape(3, 1), []
    for function, out_dims in (
        (lambda x: None, None),
        (lambda x: 3, None),
        (lambda x: "a", None),
        (lambda x: (x, 3), (0, None)),
        (lambda x: (x, None), (0, None)),
        (lambda x: [x, "a"], [0, None]),
        (lambda x: (), 0),
        (lambda x: {}, 0),
    ):
        told.append(torch.func.vmap(function, out_dims=out_dims)(x))
    for function, out_dims in (
        (lambda x: None, 0),
        (lambda x: 3, 0),
        (lambda x: (x, None), 0),
        (lambda x: (x, 3), (0, 0)),
        (lambda x: {"a": x, "b": None}, 1),
    ):
        told.append(error(torch.func.vmap(function, out_dims=out_dims), x))
    return told


def test_results_of_vmap_in_chunks_and_compiled():
    mapped = func.vmap(lambda x: (x * 2, 3, None), out_dims=(0, None, None), chunk_size=2)
    x = vector(jaxgrad)
    for call in (mapped, jaxgrad.jit(mapped), jaxgrad.jit(mapped)):
        doubled, number, nothing = call(x)
        assert doubled.tolist() == [2.0, 4.0, 6.0] and number == 3 and nothing is None


# ---- writes to tensors from outside, which PyTorch refuses


def test_a_tensor_that_a_function_writes_to_keeps_no_history():
    total = jaxgrad.zeros(3, dtype=jaxgrad.float64)

    def function(x):
        total.mul_(0.5).add_(x)
        return (total * x).sum()

    x, expected, value = vector(jaxgrad), [0.0] * 3, [1.0, 2.0, 3.0]
    for _ in range(3):
        slope = func.grad(function)(x)
        expected = [e / 2 + v for e, v in zip(expected, value, strict=True)]
        assert slope.tolist() == [e + v for e, v in zip(expected, value, strict=True)]
        assert total.tolist() == expected
        assert not (slope.requires_grad or total.requires_grad or total.grad_fn)


def test_a_view_that_a_function_writes_to_keeps_no_history():
    base = jaxgrad.zeros(4, dtype=jaxgrad.float64)
    view, other = base[:3], base[1:]

    def function(x):
        view.copy_(x)
        return view * x

    output, pullback = func.vjp(function, vector(jaxgrad))
    assert pullback(jaxgrad.ones_like(output))[0].tolist() == [2.0, 4.0, 6.0]
    assert base.tolist() == [1.0, 2.0, 3.0, 0.0] and other.tolist() == [2.0, 3.0, 0.0]
    assert not any(tensor.requires_grad for tensor in (base, view, other))
    view.mul_(2)
    assert base.tolist() == [2.0, 4.0, 6.0, 0.0] and not base.requires_grad


def test_history_that_leads_elsewhere_stays():
    total = jaxgrad.zeros(3, dtype=jaxgrad.float64)
    x = vector(jaxgrad).requires_grad_()

    def function(x):
        total.add_(x * x)
        return total.sum()

    assert func.grad(function)(x).tolist() == [2.0, 4.0, 6.0]
    assert jaxgrad.autograd.grad(total.sum(), x)[0].tolist() == [2.0, 4.0, 6.0]


def test_a_nested_transform_that_writes_to_a_tensor_from_outside():
    total = jaxgrad.zeros(3, dtype=jaxgrad.float64)

    def inner(y, x):
        total.copy_(x * y)
        return (total * y).sum()  # x y^2

    def outer(x):
        return func.grad(inner)(x, x).sum()  # 2 x^2

    assert func.grad(outer)(vector(jaxgrad)).tolist() == [4.0, 8.0, 12.0]
    assert total.tolist() == [1.0, 4.0, 9.0] and not (total.requires_grad or total.grad_fn)


@pytest.mark.slow
@as_torch
def test_results_that_a_function_writes_to(torch):
    func, x = torch.func, vector(torch)

    def whole(x):
        return torch.zeros(3, dtype=torch.float64).add_(x * x)

    def parts(x):
        base = torch.zeros(3, dtype=torch.float64)
        view = base[:1]
        view.copy_(x[:1] ** 2)
        return base, view

    told = [func.jacrev(function)(x) for function in (whole, parts)]
    told += [func.vjp(whole, x)[1](x), func.jacrev(func.jacrev(whole))(x)]
    y = x.clone().requires_grad_()
    return told, torch.autograd.grad(func.jacrev(whole)(y).sum(), y)


def test_a_compiled_transform_that_writes_to_a_tensor_from_outside():
    total = jaxgrad.zeros(3, dtype=jaxgrad.float64)

    @jaxgrad.jit
    def step(x):
        def function(x):
            total.add_(x)
            return (total * x).sum()

        return func.grad(function)(x)

    for number in (1, 2, 3):
        assert step(vector(jaxgrad)).tolist() == [(number + 1) * v for v in (1.0, 2.0, 3.0)]
        assert total.tolist() == [number * v for v in (1.0, 2.0, 3.0)]
        assert not total.requires_grad


def test_an_example_that_changes_its_shape_in_place():
    base = jaxgrad.arange(6.0)
    mapped = func.vmap(lambda a: a.mul_(2).unsqueeze_(0))
    for _ in range(2):
        x = base.reshape(2, 3).clone()
        x[0]  # a view that is gone
        assert mapped(x).shape == x.shape == (2, 1, 3)
        assert x.tolist() == [[[0.0, 2.0, 4.0]], [[6.0, 8.0, 10.0]]]
        with pytest.raises(RuntimeError, match="shares its memory with another tensor"):
            mapped(base.reshape(2, 3))  # the examples of the program before shared none
        assert base.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    square = base[:4].reshape(1, 2, 2)
    with pytest.raises(RuntimeError, match="shares its memory with another tensor"):
        func.vmap(lambda a: a.t_())(square)
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    x = base.reshape(2, 3).clone()
    with pytest.raises(RuntimeError, match="is mapped along dimension 1"):
        func.vmap(lambda a: a.unsqueeze_(0), in_dims=1)(x)
    func.vmap(lambda a: a.mul_(2), in_dims=1)(x)
    assert x.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
