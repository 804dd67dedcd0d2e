"""Nested tensors of the strided layout against the same functions of their components; texts and
errors as PyTorch has them.
"""

import copy
import io
import pickle

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad.nested import _places, _strided

F = torch.nn.functional


def ragged():
    """Components that differ in both extents."""
    return torch.arange(6.0).view(2, 3), torch.arange(8.0).view(4, 2) * 0.5 - 1


def rows():
    """Components of one last extent."""
    return torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3) - 5


def assert_components(result, expected):
    assert result.is_nested and result.layout is torch.strided
    for part, other in zip(result.unbind(), expected, strict=True):
        assert part.dtype is other.dtype and part.shape == other.shape
        np.testing.assert_allclose(part.detach().numpy(), other.detach().numpy(), 1e-5, 1e-6)


OF_COMPONENTS = {
    "exp": lambda x: x.exp(),
    "sum of two": lambda x: 1 + x * x / 2,
    "relu": lambda x: F.relu(x - 1),
    "gelu": lambda x: F.gelu(x),
    "comparison": lambda x: x > 1,
    "masked_fill": lambda x: x.masked_fill(x > 2, 0.0),
    "softmax": lambda x: x.softmax(-1),
    "double": lambda x: x.double(),
    "zeros_like": lambda x: torch.zeros_like(x),
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
    "transpose": lambda x: x.transpose(-1, -2),
    "after transpose": lambda x: x.transpose(-1, -2).sin() + 1,
    "matmul": lambda x: x @ x.transpose(-1, -2),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "amax": lambda x: x.amax(-1),
}
OF_ROWS = {
    "linear": lambda x: F.linear(x, torch.arange(6.0).view(2, 3), torch.ones(2)),
    "layer_norm": lambda x: F.layer_norm(x, (3,), torch.ones(3) * 2, torch.ones(3)),
    "select": lambda x: x.select(-1, 1),
    "chunk": lambda x: x.chunk(3, -1)[2] * 2,
    "split": lambda x: x.split([1, 2], -1)[1],
    "reshape": lambda x: x.unflatten(-1, (3, 1)),
    "cat": lambda x: torch.cat([x, x], -1),
}


@pytest.mark.parametrize("name", OF_COMPONENTS)
def test_functions_of_components(name):
    function = OF_COMPONENTS[name]
    assert_components(function(torch.nested.nested_tensor(ragged())), map(function, ragged()))


@pytest.mark.parametrize("name", OF_ROWS)
def test_functions_of_rows(name):
    function = OF_ROWS[name]
    assert_components(function(torch.nested.nested_tensor(rows())), map(function, rows()))


def test_padding():
    x = torch.nested.nested_tensor([[[1.0, 2.0]], [[3.0], [4.0]]])
    assert x.to_padded_tensor(-1.0).tolist() == [[[1, 2], [-1, -1]], [[3, -1], [4, -1]]]
    assert x.to_padded_tensor(0.0, (2, 3, 2)).shape == (2, 3, 2)
    with pytest.raises(RuntimeError, match="Truncation is not supported"):
        x.to_padded_tensor(0.0, (2, 1, 2))


def test_sizes():
    x = torch.nested.nested_tensor(rows())
    assert (x.size(0), x.size(2), x.dim(), x.numel(), x.is_contiguous()) == (2, 3, 3, 18, True)
    with pytest.raises(RuntimeError, match="dimension 1 is irregular"):
        x.size(1)
    with pytest.raises(RuntimeError, match="doesn't support sizes"):
        x.shape  # noqa: B018
    assert not x.transpose(1, 2).is_contiguous()
    assert x._nested_tensor_size().tolist() == [[2, 3], [4, 3]]


def test_text():
    x = torch.nested.nested_tensor([[1.0], [2.0, 3.0]])
    assert repr(x) == "nested_tensor([\n  tensor([1.]),\n  tensor([2., 3.])\n])"
    assert repr(torch.nested.nested_tensor([[1.0]], requires_grad=True)) == (
        "nested_tensor([\n  tensor([1.], requires_grad=True)\n], requires_grad=True)"
    )


def test_views_share_memory():
    x = torch.nested.nested_tensor(rows())
    x[0].zero_()
    x.transpose(1, 2).unbind()[1].fill_(7)
    x.narrow(0, 1, 1).add_(1)
    assert [part.unique().tolist() for part in x.unbind()] == [[0], [8]]
    x.select(2, 0).zero_()
    assert x[1].tolist() == [[0, 8, 8]] * 4


def test_gradients():
    parts = [part.requires_grad_() for part in ragged()]
    x = torch.nested.as_nested_tensor(parts)
    (x * x).transpose(1, 2).softmax(-1).to_padded_tensor(0.0).pow(2).sum().backward()
    expected = [part.detach().requires_grad_() for part in ragged()]
    sum((p * p).t().softmax(-1).pow(2).sum() for p in expected).backward()
    for part, other in zip(parts, expected, strict=True):
        np.testing.assert_allclose(part.grad.numpy(), other.grad.numpy(), 1e-4, 1e-6)


def test_second_derivatives():
    x = torch.nested.nested_tensor(ragged(), requires_grad=True)
    (first,) = torch.autograd.grad((x * x * x).values().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.values().sum(), x)
    assert_components(second, [6 * part for part in ragged()])


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention(is_causal):
    parts = torch.arange(12.0).view(2, 2, 3) / 9, torch.arange(24.0).view(2, 4, 3) / 7 - 1
    x = torch.nested.nested_tensor(parts)
    result = F.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=is_causal)
    expected = [
        F.scaled_dot_product_attention(
            *(part[None], 2 * part[None], part[None] + 1), is_causal=is_causal
        )[0]
        for part in parts
    ]
    assert_components(result, expected)


def test_copies_and_writes():
    x = torch.nested.nested_tensor(ragged(), requires_grad=True)
    assert copy.deepcopy(x).requires_grad
    assert_components(pickle.loads(pickle.dumps(x.detach())), ragged())
    y = torch.nested.nested_tensor(ragged())
    assert y.add_(1).mul_(2) is y
    assert_components(y, [2 * (part + 1) for part in ragged()])
    y.transpose(1, 2).sub_(1)
    assert_components(y, [2 * part + 1 for part in ragged()])


def test_files():
    x = torch.nested.nested_tensor(ragged(), requires_grad=True)
    file = io.BytesIO()
    torch.save({"x": x, "turned": x.detach().transpose(1, 2)}, file)
    file.seek(0)
    result = torch.load(file)
    assert_components(result["x"], ragged())
    assert result["x"].requires_grad
    assert_components(result["turned"], [part.t() for part in ragged()])


@pytest.mark.parametrize(
    "place", [((3,), (2,), 0), ((2,), (-1,), 3), ((-1,), (1,), 0), ((2,), (1,), 3)]
)
def test_files_of_components_outside_of_memory(place):
    size, stride, offset = place
    x = _strided.strided(torch.ones(4), _places.Places((size,), (stride,), (offset,)))
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="out of bounds"):
        torch.load(file)


def test_masks_and_memory():
    t = torch.arange(12.0).view(2, 3, 2)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert_components(torch._nested_tensor_from_mask(t, mask), [t[0, :2], t[1, :1]])
    assert not torch._nested_tensor_from_mask_left_aligned(t, ~mask)
    with pytest.raises(RuntimeError, match="Mask size should match input size"):
        torch._nested_tensor_from_mask(t, torch.ones(3, 4, dtype=torch.bool))
    sizes = torch.tensor([[2, 2], [3, 1]])
    assert_components(torch._nested_from_padded(t, sizes), [t[0, :2], t[1, :, :1]])
    x = torch.nested.nested_tensor(ragged())
    table = x._nested_tensor_size(), x._nested_tensor_strides(), x._nested_tensor_storage_offsets()
    memory = torch.arange(14.0)
    view = torch._nested_view_from_buffer(memory, *table)
    memory[0] = 5
    assert view[0][0, 0].item() == 5


def test_compiled_functions():
    compiled = torch.compile(lambda x: (x * 2).softmax(-1).to_padded_tensor(0.0))
    for parts in (ragged(), ragged()[::-1], rows()):
        expected = torch.nested.nested_tensor([(part * 2).softmax(-1) for part in parts])
        result = compiled(torch.nested.nested_tensor(parts))
        np.testing.assert_allclose(result.numpy(), expected.to_padded_tensor(0.0).numpy(), 1e-5)


REFUSED = {
    "sizes": (lambda x: x + x.transpose(1, 2), RuntimeError, "does not support broadcasting"),
    "dense": (lambda x: x + torch.ones(3), RuntimeError, "nested self and non-nested other"),
    "batch": (lambda x: x.softmax(0), RuntimeError, "across nested dimension 0"),
    "transpose": (lambda x: x.transpose(0, 1), RuntimeError, "dimension 0 cannot be transposed"),
    "unbind": (lambda x: x.unbind(1), RuntimeError, "along dimension 0 got dimension 1"),
    "view": (lambda x: x.view(-1, 3), RuntimeError, "implicit batch dimension"),
    "chunk": (lambda x: x.chunk(2, 1), RuntimeError, "only supported for the last dimension"),
    "linear": (lambda x: F.linear(x, torch.ones(2, 3)), RuntimeError, "same trailing dimension"),
    "copy": (lambda x: x.copy_(x.transpose(1, 2)), RuntimeError, "the same size for Nested"),
    "index": (lambda x: x[2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    "other": (lambda x: x.cov(), NotImplementedError, "not provided for nested tensors"),
    "list": (lambda x: torch.nested.nested_tensor(x), TypeError, "Only lists"),
    "jagged": (
        lambda x: torch.nested.as_nested_tensor([*x.unbind()], layout=torch.jagged),
        RuntimeError,
        "only allows for a single ragged dimension",
    ),
    "layouts": (
        lambda x: torch.nested.as_nested_tensor(x, layout=torch.jagged),
        RuntimeError,
        "Converting between nested tensor layouts",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_raises(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call(torch.nested.nested_tensor(ragged()))


def test_conversions_to_the_dtype_of_another_nested_tensor():
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])
    assert x.to(x) is x and x.to(torch.empty_like(x)) is x and x.to(x.dtype) is x
    assert x.to(x, copy=True) is not x
    wide = x.to(x.double())
    assert wide.dtype is torch.float64 and wide.is_nested and wide[1].tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_methods_of_handles(layout):
    """As in PyTorch: they need no elements."""
    parts, calls = [torch.ones(2, 3), torch.ones(1, 3)], []
    x = torch.nested.nested_tensor(parts, layout=layout, requires_grad=True)
    x.register_hook(lambda gradient: calls.append("hook"))
    x.register_post_accumulate_grad_hook(lambda leaf: calls.append(leaf is x))
    sum(part.sum() for part in (2 * x).unbind()).backward()
    assert calls == ["hook", True] and not x.is_shared()
    assert x.untyped_storage().nbytes() == x.storage().nbytes() == 9 * 4


def test_attention_of_one_head():
    """Numbers of components alone; in PyTorch 2.13, too, three dimensions are one head."""
    parts = [torch.arange(float(n * 4)).reshape(n, 4).sin() for n in (2, 3, 1)]
    x = torch.nested.nested_tensor(parts, requires_grad=True)
    attend = torch.nn.functional.scaled_dot_product_attention
    result = attend(x, x * 0.5, x * 2)
    rows = [part.clone().requires_grad_() for part in parts]
    for part, row in zip(result.unbind(), rows, strict=True):
        scores = (row @ (row.mT * 0.5) / 2).softmax(-1) @ (row * 2)
        torch.testing.assert_close(part, scores)
        scores.square().sum().backward()
    sum(part.square().sum() for part in result.unbind()).backward()
    torch.testing.assert_close(x.grad.unbind(), tuple(row.grad for row in rows))
    with pytest.raises(RuntimeError, match="query, key and value must be nested tensors of shape"):
        attend(x, torch.ones(3, 2, 4), x)


def test_one_value_for_all_elements_of_a_result():
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], requires_grad=True)
    for y in ((x * 2).fill_(4), (x * 2).zero_()):
        assert len({*y.to_padded_tensor(y[0][0, 0].item()).flatten().tolist()}) == 1
        y.unbind()[1].sum().backward()
    assert x.grad[0].tolist() == [[0, 0, 0]] * 2 and x.grad[1].tolist() == [[0, 0, 0]]


def test_equality():
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 2)])
    assert torch.equal(x, x.clone()) and not torch.equal(x, x + 1)
    assert not torch.equal(x, torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)]))
