"""autograd.grad, row by row of PyTorch's behaviour."""

import collections
import contextlib
import functools
import io
import types

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters, warned
from helpers.compiled import under_jit

import jaxgrad


@pytest.mark.row("B01")
@as_torch
def test_grad_returns_gradients_and_touches_no_leaf(torch):
    x, y = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    gradients = torch.autograd.grad((x * y).sum(), (x, y))
    return gradients, type(gradients).__name__, x.grad, y.grad, parameters(torch.autograd.grad)


@pytest.mark.row("B02")
@as_torch("""
    [tensor(6.0)]
    'tuple'
    [tensor(7.0)]
""")
def test_grad_of_single_tensors(torch):
    x = leaf(torch, 3.0)
    gradients = torch.autograd.grad(x * x, x)
    several = torch.autograd.grad(iter([x * x, x]), iter([x]))
    return gradients, type(gradients).__name__, several


@pytest.mark.row("B03")
@as_torch
def test_inputs_as_a_dict(torch):
    x, y, unused = leaf(torch, 2.0), leaf(torch, 3.0), leaf(torch, 4.0)
    gradients = torch.autograd.grad(x * y, {"y": y, "x": x})
    keys = list(gradients)
    partly = torch.autograd.grad(x * y, {1: x, "unused": unused}, allow_unused=True)
    others = collections.OrderedDict(x=x), types.MappingProxyType({"x": x})
    refused = [error(torch.autograd.grad, x * y, other) for other in others]
    return gradients, keys, type(gradients).__name__, partly, refused


@pytest.mark.row("B04")
@as_torch("""
    RuntimeError('`inputs` argument to `grad()` cannot be empty.')
    RuntimeError('`inputs` argument to `grad()` cannot be empty.')
    RuntimeError('`inputs` argument to `grad()` cannot be empty.')
""")
def test_empty_inputs_of_grad(torch):
    x = leaf(torch, 2.0)
    return [error(torch.autograd.grad, x * x, empty) for empty in ([], (), {})]


@pytest.mark.row("B04")
@as_torch("RuntimeError('all inputs have to be Tensors or GradientEdges, but got int')")
def test_inputs_that_are_no_tensors(torch):
    x = leaf(torch, 2.0)
    return error(torch.autograd.grad, x * x, [3])


@pytest.mark.row("B04")
def test_arguments_that_are_no_sequences():
    x = leaf(jaxgrad, 2.0)
    for wrong in (None, 3):
        with pytest.raises(TypeError, match="expected a tensor or a sequence of tensors, but got"):
            jaxgrad.autograd.grad(x * x, wrong)
        with pytest.raises(TypeError, match="expected a tensor or a sequence of tensors, but got"):
            jaxgrad.autograd.grad(wrong, x)


@pytest.mark.row("B05")
@as_torch
def test_forms_of_grad_outputs(torch):
    x, two = leaf(torch, 1.0, 2.0), torch.tensor([2.0, 2.0])
    grad = torch.autograd.grad
    return (
        grad([x * x, x.sum()], x, [two, None]),
        grad([x * x], [x], grad_outputs=two),
        grad(x * x, x, two.to(torch.float64)),
        error(grad, x * x, x),
        error(grad, x * x, x, torch.ones(3)),
        error(grad, [x * x, x], x, [two]),
        error(grad, x * x, x, [2.0]),
        error(grad, x * x, x, two * 1j),
    )


@pytest.mark.row("B06")
@as_torch
def test_retain_and_create_graph(torch):
    answers = []
    for retain_graph, create_graph in (
        (None, False),
        (False, False),
        (True, False),
        (None, True),
        (False, True),
        (True, True),
    ):
        x = leaf(torch, 2.0)
        y = x.exp() * x
        gradient = torch.autograd.grad(y, x, None, retain_graph, create_graph)
        answers.append((gradient, error(torch.autograd.grad, y, x)))
    return answers


@pytest.mark.row("B07")
@as_torch("""
    warned([FutureWarning(
             'only_inputs argument is deprecated and is ignored now (defaults to True). To '
             'accumulate gradient for other parts of the graph, please use '
             'torch.autograd.backward.')],
           [tensor(6.0)])
""")
def test_only_inputs_is_ignored(torch):
    x = leaf(torch, 3.0)
    return warned(functools.partial(torch.autograd.grad, x * x, x, only_inputs=False))


@pytest.mark.row("B08")
@as_torch("""
    RuntimeError(
     'The differentiated Tensor at index 1 appears to not have been used in the graph. '
     'Set allow_unused=True if this is the desired behavior.')
    [tensor(6.0), tensor([0.0, 0.0])]
    [tensor(6.0), tensor([0.0, 0.0])]
    RuntimeError(
     'The differentiated Tensor at index 1 appears to not have been used in the graph. '
     'Set allow_unused=True if this is the desired behavior.')
""")
def test_allow_unused_by_default(torch):
    x, unused = leaf(torch, 3.0), leaf(torch, 1.0, 2.0)
    grad = functools.partial(torch.autograd.grad, x * x * 1, [x, unused], retain_graph=True)
    return (
        error(grad),
        grad(materialize_grads=True),
        grad(allow_unused=True, materialize_grads=True),
        error(functools.partial(grad, allow_unused=None, materialize_grads=False)),
    )


@pytest.mark.row("B09")
@as_torch
def test_an_unused_input(torch):
    x, unused = leaf(torch, 3.0), leaf(torch, 1.0)
    later = unused * unused
    grad = torch.autograd.grad
    return (
        error(grad, x * x, unused),
        error(grad, x * x, [x, unused]),
        error(grad, x * x, later),
        error(grad, [], x),
        grad([], x, allow_unused=True),
        grad(x * x, [unused, x, later], allow_unused=True),
    )


@pytest.mark.row("B10")
@as_torch
def test_materialize_grads_gives_zeros(torch):
    x = leaf(torch, 3.0)
    unused = [
        torch.ones(2, 0, 3, requires_grad=True),
        torch.ones(2, 1, dtype=torch.float64, requires_grad=True),
        leaf(torch, 1.0j, 2.0),
        torch.ones(3, requires_grad=True) * 2,
    ]
    return [
        torch.autograd.grad(x * x, [x, *unused], create_graph=create, materialize_grads=True)
        for create in (False, True)
    ]


@pytest.mark.row("B11")
@as_torch("""
    ValueError(
     'Expected allow_unused to be True or not passed when materialize_grads=True, but '
     'got: allow_unused=False.')
    [tensor(6.0)]
""")
def test_materialize_grads_without_allow_unused(torch):
    x = leaf(torch, 3.0)
    grad = functools.partial(torch.autograd.grad, x * x, x, allow_unused=False)
    return error(functools.partial(grad, materialize_grads=True)), grad()


@pytest.mark.row("B12")
@as_torch("""
    [tensor(6.0)]
    RuntimeError('materialize_grads cannot be used when the given input is a GradientEdge')
""")
def test_materialize_grads_with_an_edge(torch):
    x, unused = leaf(torch, 3.0), leaf(torch, 1.0)
    edge = torch.autograd.graph.get_gradient_edge
    used = torch.autograd.grad(x * x, edge(x), materialize_grads=True)
    call = functools.partial(torch.autograd.grad, x * x, edge(unused), materialize_grads=True)
    return used, error(call)


@pytest.mark.row("B12")
@as_torch
def test_edges_as_inputs_of_grad(torch):
    edge, grad = torch.autograd.graph.get_gradient_edge, torch.autograd.grad
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    first, second = (y * 3).unbind()
    return (
        grad(edge(y), x, torch.tensor([1.0, 10.0]), retain_graph=True),
        grad([edge(first), second], [edge(y), x], retain_graph=True),
        grad(second, [edge(x), edge(y)], retain_graph=True, create_graph=True),
        edge(second).output_nr,
        error(grad, edge(y), x),
        error(grad, edge(y), x, torch.ones(3)),
        error(edge, torch.ones(2)),
    )


@pytest.mark.row("B13")
@pytest.mark.slow
@as_torch
def test_is_grads_batched_takes_many_gradients_in_one_pass(torch):
    gradients = []
    for name in ("float32", "float64", "complex128"):
        x = torch.tensor([1.5, -2.0, 3.0], dtype=getattr(torch, name), requires_grad=True)
        y = x * x * x[0]
        rows = torch.eye(3, dtype=getattr(torch, name))
        grad = functools.partial(torch.autograd.grad, y, x, rows, is_grads_batched=True)
        again = grad(retain_graph=True)
        recorded = grad(create_graph=True)
        second = torch.autograd.grad(recorded[0].sum().abs(), x, retain_graph=True)
        gradients.append((again, recorded, second, grad()))
    return gradients, error(functools.partial(torch.autograd.grad, y, x, rows))


@pytest.mark.row("B13")
@as_torch("""
    RuntimeError(
     'The differentiated Tensor at index 2 appears to not have been used in the graph. '
     'Set allow_unused=True if this is the desired behavior.')
    [tensor([[5.0, 4.0], [20.0, 46.0]]), tensor([1.0, 4.0]), None]
    [tensor([[5.0, 4.0], [20.0, 46.0]], requires_grad=True),
     tensor([1.0, 4.0], requires_grad=True),
     None]
    [tensor([[5.0, 4.0], [20.0, 46.0]]), tensor([1.0, 4.0]), tensor(0.0)]
""")
def test_a_batch_for_several_outputs_and_inputs(torch):
    x, y, unused = leaf(torch, 1.0, 2.0), leaf(torch, 3.0), leaf(torch, 4.0)
    outputs = [x * y, (x * x).sum()]
    batches = [torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([1.0, 10.0])]
    grad = functools.partial(
        torch.autograd.grad, outputs, [x, y, unused], batches, is_grads_batched=True
    )
    return (
        error(functools.partial(grad, retain_graph=True)),
        grad(retain_graph=True, allow_unused=True),
        grad(create_graph=True, allow_unused=True),
        grad(materialize_grads=True),
    )


@pytest.mark.row("B13")
@as_torch("""
    [tensor([[3.0, 0.0], [0.0, 12.0]], requires_grad=True)]
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
""")
def test_a_recorded_batch_frees_as_asked(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * x * x
    grad = functools.partial(torch.autograd.grad, y, x, torch.eye(2), is_grads_batched=True)
    return grad(create_graph=True, retain_graph=False), error(grad)


@pytest.mark.row("B13")
@as_torch("[tensor([[2.0, 0.0], [0.0, 4.0]])]")
def test_a_batch_of_another_dtype(torch):
    x = leaf(torch, 1.0, 2.0)
    rows = torch.eye(2, dtype=torch.float64)
    return torch.autograd.grad(x * x, x, rows, is_grads_batched=True)


@pytest.mark.row("B13")
@pytest.mark.slow
def test_jacobian_equals_that_of_jax():
    def function(x, module):
        return module.sin(x) * x[0] + module.exp(x * x[1])

    point = numpy.array([0.3, -1.2, 0.7])
    x = leaf(jaxgrad, *point, dtype=jaxgrad.float64)
    eye = jaxgrad.eye(3, dtype=jaxgrad.float64)
    (jacobian,) = jaxgrad.autograd.grad(function(x, jaxgrad), x, eye, is_grads_batched=True)
    with jax.enable_x64(True):
        expected = jax.jacrev(lambda x: function(x, jnp))(jnp.asarray(point))
    numpy.testing.assert_allclose(jacobian.numpy(), expected, rtol=1e-12)


@pytest.mark.row("B13")
def test_a_batch_of_none():
    """PyTorch checks the first one only."""
    x = leaf(jaxgrad, 1.0, 2.0)
    for create_graph in (False, True):
        (gradients,) = jaxgrad.autograd.grad(
            x * x, x, jaxgrad.ones(0, 2), is_grads_batched=True, create_graph=create_graph
        )
        assert (gradients.shape, gradients.dtype) == ((0, 2), jaxgrad.float32)


@pytest.mark.row("B14")
@as_torch
def test_is_grads_batched_mismatch(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    grad = functools.partial(torch.autograd.grad, is_grads_batched=True)
    return (
        error(grad, x * x, x, torch.ones(4, 4)),
        error(grad, x * x, x, torch.ones(2, 3, 1)),
        error(grad, x * x, x, torch.ones(3)),
        error(grad, x * x, x, torch.eye(3, dtype=torch.complex64)),
        error(grad, x * x, x, [1.0]),
    )


@pytest.mark.row("B14")
def test_what_PyTorch_says_in_other_words():
    x = leaf(jaxgrad, 1.0, 2.0, 3.0)
    grad = functools.partial(jaxgrad.autograd.grad, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="the first dimension of each grad_output as the batch"):
        grad(x.sum(), x, jaxgrad.tensor(1.0))
    with pytest.raises(ValueError, match=r"grad_outputs\[0\] is None"):
        grad(x.sum(), x)
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        grad(x.sum(), x, [jaxgrad.ones(1), jaxgrad.ones(1)])
    with pytest.raises(ValueError, match=r"same size in the mapped dimension.*got sizes \[4, 5\]"):
        grad([x * x, x * 3], x, [jaxgrad.ones(4, 3), jaxgrad.ones(5, 3)])


@pytest.mark.row("B15")
@as_torch("""
    [tensor([[2.0, 0.0], [0.0, 4.0]])]
    [tensor([[3.0, 0.0], [0.0, 3.0]])]
""")
def test_is_grads_batched_with_edges(torch):
    """jaxgrad accepts batches that fit an edge; PyTorch refuses every batch for an edge."""
    x = leaf(torch, 1.0, 2.0)
    edge = torch.autograd.graph.get_gradient_edge
    y = x * x
    grad = functools.partial(torch.autograd.grad, is_grads_batched=True, retain_graph=True)
    return grad(edge(y), edge(x), torch.eye(2)), grad(y * 3, edge(y), torch.eye(2))


@pytest.mark.row("B16")
@as_torch("""
    RuntimeError('One of the differentiated Tensors does not require grad')
    RuntimeError('One of the differentiated Tensors does not require grad')
    RuntimeError('One of the differentiated Tensors does not require grad')
    RuntimeError('One of the differentiated Tensors does not require grad')
""")
def test_an_input_that_requires_no_grad(torch):
    x, constant = leaf(torch, 2.0), torch.tensor(3.0)
    grad = torch.autograd.grad
    return (
        error(grad, x * constant, constant),
        error(grad, x * constant, [x, constant]),
        error(functools.partial(grad, x * constant, constant, allow_unused=True)),
        error(grad, x * constant, x.detach()),
    )


@pytest.mark.row("B17")
@as_torch("""
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 1 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
""")
def test_an_output_that_requires_no_grad(torch):
    x, constant = leaf(torch, 2.0), torch.tensor(3.0)
    grad = torch.autograd.grad
    return (
        error(grad, constant, x),
        error(grad, [x * x, constant], x),
        error(functools.partial(grad, constant, x, allow_unused=True)),
        error(grad, torch.ones(3), x, torch.ones(3)),
        error(grad, (x > 1), x),
    )


@pytest.mark.row("B18")
@as_torch("""
    [tensor(3.0)]
    [tensor(12.0), tensor(12.0)]
    [tensor(3.0), tensor(3.0), tensor(12.0)]
    [tensor(1.0)]
    [tensor(1.0), tensor(3.0), tensor(12.0), tensor(1.0)]
    [tensor(4.0), tensor(16.0)]
    [tensor(1.0)]
    [tensor(1.0), tensor(3.0)]
""")
def test_kinds_of_inputs(torch):
    x = leaf(torch, 2.0)
    y = x * x
    z = y * 3
    grad = functools.partial(torch.autograd.grad, z, retain_graph=True)
    return (
        grad(y),
        grad([x, x]),
        grad([y, y, x]),
        grad(z),
        grad([z, y, x, z]),
        torch.autograd.grad([z, y], [y, x], retain_graph=True),
        torch.autograd.grad(x, x),
        grad([z, y], create_graph=True),
    )


@pytest.mark.row("B18")
@as_torch("""
    [[tensor(41.0)], tensor(12.0)]
    [[tensor(12.0)], tensor(12.0)]
    [[tensor(1.0)], None]
""")
def test_a_retained_tensor_on_the_way(torch):
    """`retain_grad` holds under `grad` too, where the gradient passes."""
    gradients = []
    for wanted in ("x", "y", "beside"):
        x = leaf(torch, 2.0)
        y, beside = x * 3, x * 5
        y.retain_grad()
        z = y * y + beside
        gradient = torch.autograd.grad(z, {"x": x, "y": y, "beside": beside}[wanted])
        gradients.append((gradient, y.grad))
    return gradients


@pytest.mark.row("B19")
@as_torch("""
    tensor([0.0, 0.0], requires_grad=True)
    [tensor([3.0, 120.0])]
    [tensor([0.0, 0.0]), tensor([3.0, 12.0])]
    tensor([2.0, 4.0], requires_grad=True)
    [tensor([2.0, 4.0], dtype=float64)]
""")
def test_grad_outputs_that_require_grad(torch):
    x, v = leaf(torch, 1.0, 2.0), leaf(torch, 0.0, 0.0)
    (pulled,) = torch.autograd.grad(x * x * x, x, v, create_graph=True)
    pushed = torch.autograd.grad(pulled, v, torch.tensor([1.0, 10.0]), retain_graph=True)
    mixed = torch.autograd.grad(pulled.sum(), [x, v])
    wide = leaf(torch, 1.0, 1.0, dtype=torch.float64)
    (cast,) = torch.autograd.grad(x * x, x, wide, create_graph=True)
    return pulled, pushed, mixed, cast, torch.autograd.grad(cast.sum(), wide)


@pytest.mark.row("B20")
@as_torch("""
    tensor(12.0)
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
""")
def test_second_derivative_without_create_graph(torch):
    x = leaf(torch, 2.0)
    (gradient,) = torch.autograd.grad(x * x * x, x)
    return gradient, error(torch.autograd.grad, gradient, x), error(gradient.backward)


@pytest.mark.row("B20")
@as_torch("""
    tensor(12.0, requires_grad=True)
    tensor(12.0, requires_grad=True)
    [tensor(6.0)]
    tensor(3.0)
""")
def test_second_derivative_of_grad(torch):
    x = leaf(torch, 2.0)
    (first,) = torch.autograd.grad(x * x * x, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (linear,) = torch.autograd.grad((x * 3), x, create_graph=True)
    return first, second, torch.autograd.grad(second, x), linear


@pytest.mark.row("B23")
@as_torch("""
    True
    tensor(7.0)
    None
""")
def test_grad_accumulates_nothing(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    x.grad = torch.tensor(7.0)
    before = x.grad
    torch.autograd.grad(x * y, x)
    torch.autograd.grad(x * y, [x, y], create_graph=True)
    torch.autograd.grad(x * x, x, torch.ones(3), is_grads_batched=True)
    return x.grad is before, x.grad, y.grad


@pytest.mark.row("B24")
@as_torch("""
    None
    tensor([[2.0, 4.0], [2.0, 4.0], [2.0, 4.0], [2.0, 4.0]])
""")
def test_a_batch_passes_what_was_not_reached(torch):
    x, unused = leaf(torch, 1.0, 2.0), leaf(torch, 1.0, 2.0, 3.0)
    grad = functools.partial(torch.autograd.grad, x * x, [unused, x], torch.ones(4, 2))
    return grad(is_grads_batched=True, allow_unused=True)


# ---- dtypes and shapes of gradients


@as_torch("""
    tensor([[8.0], [8.0], [8.0]])
    tensor([6.0, 6.0, 6.0, 6.0])
    tensor(12.0)
""")
def test_broadcast_operands(torch):
    x, y = torch.ones(3, 1, requires_grad=True), torch.ones(4, requires_grad=True)
    scalar = leaf(torch, 2.0)
    return torch.autograd.grad((x * y * scalar).sum(), [x, y, scalar])


@as_torch("""
    [tensor([3.0, 4.0]), tensor([1.0, 2.0], dtype=float64)]
    [tensor([2.0, 2.0], dtype=float16), tensor(3.0, dtype=float64)]
    [tensor([1.0, 2.0])]
    [tensor([2.0, 2.0])]
""")
def test_promoted_operands(torch):
    single, double = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0, dtype=torch.float64)
    half, number = leaf(torch, 1.0, 2.0, dtype=torch.float16), leaf(torch, 2.0, dtype=torch.float64)
    whole = torch.tensor([1, 2])
    return (
        torch.autograd.grad((single * double).sum(), [single, double]),
        torch.autograd.grad((half * number).sum(), [half, number]),
        torch.autograd.grad((single * whole).sum(), single),
        torch.autograd.grad((single + single.to(torch.float64)).sum(), single),
    )


@as_torch("""
    [tensor([6.0, 16.0], requires_grad=True), tensor([1.0, 4.0], dtype=float64, requires_grad=True)]
    True
    [tensor([18.0, 96.0]), tensor([2.0, 16.0], dtype=float64)]
""")
def test_promoted_operands_to_second_order(torch):
    single, double = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0, dtype=torch.float64)
    both = [single, double]
    first = torch.autograd.grad((single * double * single).sum(), both, create_graph=True)
    total = (first[0] * first[1]).sum()
    return first, total.dtype == torch.float64, torch.autograd.grad(total, both)


@as_torch("""
    [tensor([2.0, 2.0]), tensor([1.0+2.0j, 2.0+4.0j])]
    [tensor([1.0, 4.0]), tensor([0.0+2.0j, 8.0+0.0j])]
""")
def test_real_in_complex(torch):
    x, z = leaf(torch, 1.0, 2.0), leaf(torch, 1.0j, 2.0)
    gradients = torch.autograd.grad((x * z).sum(), [x, z], torch.tensor(1.0 + 2.0j))
    squared = torch.autograd.grad((x * z * z.conj()).real.sum(), [x, z])
    return gradients, squared


@as_torch("""
    tensor([2.0, 4.0])
    tensor([2.0, 4.0], dtype=float64)
""")
def test_casts(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x.double()
    z = (y * y).to(torch.complex128)
    return torch.autograd.grad(z.real.sum(), [x, y])


@as_torch("""
    [tensor(6.0+8.0j)]
    [tensor(6.0+8.0j)]
    [tensor(6.0+8.0j)]
    [tensor(8.0+6.0j)]
""")
def test_complex_convention(torch):
    z = leaf(torch, 3.0 + 4.0j)
    return (
        torch.autograd.grad((z * z.conj()).real, z),
        torch.autograd.grad(z.real * z.real + z.imag * z.imag, z),
        torch.autograd.grad((z * z).abs(), z),
        torch.autograd.grad(z * z, z, torch.tensor(1.0j)),
    )


@pytest.mark.slow
@as_torch("""
    tensor(6.708203932499369+13.416407864998739j, dtype=complex128, requires_grad=True)
    tensor(26.832815729997478+20.12461179749811j, dtype=complex128, requires_grad=True)
""")
def test_complex_convention_to_second_order(torch):
    z = leaf(torch, 1.0 + 2.0j, dtype=torch.complex128)
    (first,) = torch.autograd.grad((z * z * z).abs(), z, create_graph=True)
    (second,) = torch.autograd.grad(first.real * 3 + first.imag, z, create_graph=True)
    return first, second


# ---- which hooks run


def hooked(torch, seen):
    x = leaf(torch, 3.0)
    y = x * x
    z = y * 2
    for name, tensor in (("x", x), ("y", y), ("z", z)):
        tensor.register_hook(lambda g, name=name: seen.append((name, g.item())))
    x.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    return x, y, z


@pytest.mark.row("B22")
@as_torch("""
    [[tensor(180.0)], [tensor(3.0)], [tensor(1.0)]]
    [['z', 1.0], ['y', 2.0], ['x', 18.0], ['z', 1.0], ['y', 2.0], ['z', 1.0]]
    None
""")
def test_hooks_of_tensors_run(torch):
    seen = []
    x, y, z = hooked(torch, seen)
    gradients = [torch.autograd.grad(z, wanted, retain_graph=True) for wanted in (x, y, z)]
    return gradients, seen, x.grad


@pytest.mark.row("B22")
def test_a_gradient_that_is_returned_is_that_after_the_hooks():
    """PyTorch returns the gradient before the hooks where the pass continues from that tensor."""
    seen = []
    x, y, z = hooked(jaxgrad, seen)
    gradients = jaxgrad.autograd.grad(z, [x, y])
    assert [gradient.item() for gradient in gradients] == [3 * 6 * 10, 3]
    assert seen == [("z", 1), ("y", 2), ("x", 18)]


@pytest.mark.row("B22")
@as_torch("""
    []
    ['accumulated', 'accumulated']
""")
def test_no_hook_for_what_is_accumulated_runs(torch):
    x, seen = leaf(torch, 3.0), []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("accumulated"))
    y = x * x
    torch.autograd.grad(y, x, retain_graph=True)
    before = list(seen)
    y.backward(inputs=[x], retain_graph=True)
    y.backward()
    return before, seen


@pytest.mark.row("B22")
@as_torch("""
    ['before z', 'after z']
    ['before z', 'after z', 'before z', 'after z', 'before y', 'after y']
""")
def test_hooks_of_a_captured_node_do_not_run(torch):
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


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


def word(report):
    """The type of a warning or error and the words that both libraries share."""
    return [(warning["error"], warning["says"].split(". ")[0]) for warning in report["warnings"]]


@pytest.mark.row("edge_06")
@as_torch
def test_allow_unused_gives_none(torch):
    x, y = leaf(torch, 2.0), leaf(torch, 5.0)
    grad = torch.autograd.grad
    return (
        error(grad, x * x, [x, y]),
        error(grad, x * x, [y, x]),
        error(lambda: grad(x * x, [x, y], allow_unused=False)),
        grad(x * x, [x, y], allow_unused=True),
        grad(x * x, [x, y], allow_unused=None, materialize_grads=True),
    )


@pytest.mark.row("edge_07")
@as_torch("""
    [tensor(4.0), tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=float64)]
    [tensor(4.0, requires_grad=True),
     tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=float64, requires_grad=True)]
    ValueError(
     'Expected allow_unused to be True or not passed when materialize_grads=True, but '
     'got: allow_unused=False.')
""")
def test_materialize_grads_keeps_shapes_and_dtypes(torch):
    x, y = leaf(torch, 2.0), torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    grad = torch.autograd.grad
    return (
        grad(x * x, [x, y], materialize_grads=True),
        grad(x * x, [x, y], materialize_grads=True, create_graph=True),
        error(lambda: grad(x * x, [x, y], materialize_grads=True, allow_unused=False)),
    )


@pytest.mark.row("edge_08")
@as_torch("""
    [tensor([[3.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 27.0]], dtype=float64)]
    RuntimeError(
     'If `is_grads_batched=True`, we interpret the first dimension of each grad_output '
     'as the batch dimension. The sizes of the remaining dimensions are expected to '
     'match the shape of corresponding output, but a mismatch was detected: '
     'grad_output[0] has a shape of torch.Size([]) and output[0] has a shape of '
     'torch.Size([3]). If you only want some tensors in `grad_output` to be considered '
     'batched, consider using vmap.')
""")
def test_is_grads_batched_of_several_inputs(torch):
    x = numbers(torch, 1.0, 2.0, 3.0)
    y, eye = x * x * x, torch.eye(3, dtype=torch.float64)
    gradients = torch.autograd.grad(y, x, eye, retain_graph=True, is_grads_batched=True)
    wrong = torch.ones(4, 4, dtype=torch.float64)
    words = "If `is_grads_batched=True`, we interpret the first dimension of each grad_output"
    refused = error(lambda: torch.autograd.grad(y, x, wrong, is_grads_batched=True), words=words)
    return gradients, refused


@pytest.mark.row("edge_12")
@as_torch("""
    tensor(12.0, requires_grad=True)
    tensor(12.0)
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    [['UserWarning',
      ('Using backward() with create_graph=True will create a reference cycle between the '
       'parameter and its gradient which can cause a memory leak')]]
    tensor(12.0, requires_grad=True)
""")
def test_double_backward_of_nested_grad(torch):
    x = leaf(torch, 2.0)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    (plain,) = torch.autograd.grad(x**3, x)
    words = "element 0 of tensors does not require grad and does not have a grad_fn"
    refused = error(torch.autograd.grad, plain, x, words=words)
    told = warned(lambda: (x**3).backward(create_graph=True))
    answers = first, second, refused, word(told), x.grad
    x.grad = None
    return answers


def looked_at(tensor):
    """Reads a tensor's numbers in every way and returns a Python number."""
    with contextlib.redirect_stdout(io.StringIO()):
        print(tensor, repr(tensor), f"{tensor}")
    numbers = [
        tensor.item(),
        tensor.tolist(),
        float(tensor.detach()),
        tensor.detach().numpy().item(),
    ]
    return numbers[0] + 0 * sum(numbers) + 0 * bool(tensor > 0)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_reading_values_leaves_the_gradient_alone(order):
    def value(x, look):
        y = x.exp()
        seen = look(y)
        return (y * seen + x.sin() * y).sum()

    def gradients(look):
        x = jaxgrad.tensor(0.7, dtype=jaxgrad.float64, requires_grad=True)
        derivative = value(x, look)
        for _ in range(order):
            look(derivative)
            (derivative,) = jaxgrad.autograd.grad(derivative, x, create_graph=True)
        return derivative.item()

    with jax.enable_x64(True):
        number = float(jnp.exp(jnp.float64(0.7)))
        slope = jax.grad(lambda x: jnp.exp(x) * number + jnp.sin(x) * jnp.exp(x))
        expected = (slope if order == 1 else jax.grad(slope))(jnp.float64(0.7))
        numpy.testing.assert_allclose(gradients(looked_at), expected, rtol=1e-12)
    assert gradients(looked_at) == gradients(lambda tensor: tensor.item())


@pytest.mark.parametrize(
    "test",
    [
        test_allow_unused_gives_none,
        test_materialize_grads_keeps_shapes_and_dtypes,
        test_is_grads_batched_of_several_inputs,
        test_double_backward_of_nested_grad,
    ],
    ids=lambda test: test.__name__,
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
