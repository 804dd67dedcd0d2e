"""Where a call changes nothing, the result is the tensor itself exactly where it is in PyTorch."""

import jax
import jax.numpy as jnp
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad

CALLS = [
    "flatten()",
    "flatten(0, 0)",
    "flatten(-1)",
    "flatten(1, 1)",
    "ravel()",
    "conj()",
    "real",
    "conj_physical()",
    "resolve_conj()",
    "resolve_neg()",
    "positive()",
    "contiguous()",
    "clone()",
    "to(x.dtype)",
    "to(x)",
    "to('cpu')",
    "type(x.dtype)",
    "type_as(x)",
    "cpu()",
    "detach()",
    "expand(x.shape)",
    "expand_as(x)",
    "view(x.shape)",
    "view_as(x)",
    "reshape(x.shape)",
    "t()",
    "squeeze()",
    "permute(*range(x.ndim))",
    "transpose(0, 0)",
    "sum_to_size(x.shape)",
    "requires_grad_(False)",
    "broadcast_to(x.shape)",
    "unflatten(0, (-1,))",
    "narrow(0, 0, 2)",
]


def sources(torch):
    row, matrix = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return row, matrix, matrix.t(), torch.tensor([1, 2]), torch.tensor([1 + 2j, 3j]), matrix[0]


def called(call, x):
    return eval(f"x.{call}", {"x": x, "range": range})


@as_torch
def test_the_tensor_itself(torch):
    answers = {}
    for call in CALLS:
        for number, x in enumerate(sources(torch)):
            try:
                result = called(call, x)
            except (RuntimeError, IndexError) as raised:
                answers[f"{number} {call}"] = type(raised).__name__
            else:
                answers[f"{number} {call}"] = result is x, result._is_view() and not x._is_view()
    return answers


@as_torch("""
    [[True, True, True, True, True, True],
     [True, True, True, True, True, True],
     [True, True, True, True, True, True],
     [True, True, True, True, True, True],
     [True, False, False, True, True, False],
     [True, True, True, True, True, True]]
    RuntimeError('The `+` operator, on a bool tensor is not supported.')
""")
def test_the_functions_and_operators_of_these_methods(torch):
    answers = []
    for x in sources(torch):
        results = torch.flatten(x, 0, 0), torch.conj(x), torch.real(x), torch.positive(x), +x
        answers.append([result is x for result in (*results, torch.conj_physical(x))])
    return answers, error(lambda: +torch.tensor([True]))


@as_torch("""
    tensor([3.0, 12.0])
    None
    tensor([3.0, 6.0])
    1
    True
""")
def test_the_tensor_itself_stays_a_leaf_and_is_written_to(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x.flatten() * x.real * +x).sum().backward()
    y = torch.tensor([1.0, 2.0])
    y.conj().mul_(3)
    return x.grad, x.flatten().grad_fn, y, y._version, x.flatten().is_leaf


@pytest.mark.parametrize("call", ["flatten()", "conj()", "conj_physical()", "real", "positive()"])
def test_the_tensor_itself_in_compiled_functions_and_transformations(call):
    seen = []

    def function(x):
        y = x * 2
        seen.append((called(call, x) is x, called(call, y) is y))
        return (called(call, y) * x).sum()

    x = jaxgrad.tensor([1.0, 2.0])
    assert jaxgrad.jit(function)(x).item() == 10
    assert jaxgrad.func.grad(function)(x).tolist() == [4.0, 8.0]
    assert jaxgrad.func.vmap(function)(x[None]).tolist() == [10.0]
    assert jaxgrad.func.jvp(function, (x,), (x,))[1].item() == 20
    assert set(seen) == {(True, True)}


@pytest.mark.slow
@as_torch
def test_sum_to_size(torch):
    x = torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 4).requires_grad_()
    answers = []
    for size in ((2, 3, 4), (3, 4), (4,), (1, 4), (1, 1, 1), (2, 1, 4), ((1, 3, 1),), ([3, 1],)):
        x.grad = None
        result = x.sum_to_size(*size)
        (result * result).sum().backward()
        answers.append((result, result is x, x.grad))
    words = "is not expandable to size"
    answers += [error(x.sum_to_size, *size, words=words) for size in ((2, 3), (5,), (1, 2, 3, 4))]
    narrow = torch.ones(2, 3, dtype=torch.int32).sum_to_size(3), torch.zeros(0, 3).sum_to_size(1, 3)
    return answers, narrow


@as_torch("""
    tensor(3)
    tensor(1)
    6.0
""")
def test_sum_to_no_dimensions_is_the_sum(torch):
    small, is_true = torch.tensor(3, dtype=torch.int32), torch.tensor([True])
    return (
        small.sum_to_size([]),
        is_true.sum_to_size(()),
        torch.full((2, 1), 3.0).sum_to_size([]).item(),
    )


@as_torch("""
    [[60, 15, 3, 1], [60, 5, 1, 20], [60, 1, 12, 4], [60, 5, 1, 20]]
    [tensor(7140.0), tensor(7140.0), tensor(7140.0), tensor(7140.0)]
    RuntimeError('required rank 4 tensor to use channels_last format')
""")
def test_clone_takes_a_memory_format(torch):
    x = torch.arange(120.0).reshape(2, 3, 4, 5).permute(0, 2, 3, 1)
    formats = torch.contiguous_format, torch.preserve_format, torch.channels_last, None
    clones = [torch.clone(x, memory_format=memory_format) for memory_format in formats]
    refused = error(
        lambda: torch.clone(x[0], memory_format=torch.channels_last),
        words="required rank 4 tensor to use channels_last format",
    )
    return [clone.stride() for clone in clones], [clone.sum() for clone in clones], refused


@as_torch
def test_memory_formats_with_three_extents(torch):
    last, flat = torch.channels_last_3d, torch.arange(24.0).reshape(2, 3, 4)
    x = flat[..., None, None].expand(2, 3, 4, 2, 2)
    tensors = [
        x.clone(memory_format=last),
        x.contiguous(memory_format=last),
        torch.zeros_like(x, memory_format=last),
        torch.empty(2, 3, 4, 5, 6, memory_format=last),
        torch.zeros_like(x[..., 0], memory_format=torch.channels_last),
        flat.contiguous(memory_format=torch.legacy_contiguous_format),
    ]
    is_last = [tensor.is_contiguous(memory_format=last) for tensor in tensors]
    is_flat = [tensor.is_contiguous(memory_format=torch.channels_last) for tensor in tensors]
    words = "required rank 5 tensor to use channels_last_3d format"
    calls = (
        lambda: flat.clone(memory_format=last),
        lambda: flat.contiguous(memory_format=last),
        lambda: torch.zeros_like(flat, memory_format=last),
        lambda: torch.empty(2, 3, memory_format=last),
    )
    refused = [error(call, words=words) for call in calls]
    few = "required rank 4 tensor to use channels_last format"
    refused.append(error(lambda: x.contiguous(memory_format=torch.channels_last), words=few))
    return [tensor.stride() for tensor in tensors], tensors[0], is_last, is_flat, refused


def test_positive_of_an_array_has_the_gradient_one():
    gradient = jax.grad(lambda x: (jaxgrad.ops.positive(x) ** 2).sum())(jnp.asarray([1.0, -3.0]))
    assert gradient.tolist() == [2.0, -6.0]
