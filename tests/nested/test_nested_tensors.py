"""Nested tensors against the same functions of their components; texts, shapes and errors as
PyTorch has them.
"""

import copy
import pickle

import numpy as np
import pytest

import jaxgrad as torch

F = torch.nn.functional


def components():
    return torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3) * 0.5


def jagged(requires_grad=False):
    return torch.nested.nested_tensor(
        components(), layout=torch.jagged, requires_grad=requires_grad
    )


def assert_equal(result, expected):
    np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), 1e-5, 1e-5)


def test_what_a_nested_tensor_says():
    x = jagged()
    assert (x.is_nested, x.layout, x.dim(), len(x), x.numel()) == (True, torch.jagged, 3, 2, 18)
    assert (x.size(0), x.size(-1), x.offsets().tolist()) == (2, 3, [0, 2, 6])
    assert x.shape == (x + 1).shape != jagged().shape
    assert x.values().shape == (6, 3)
    text = repr(x).replace(repr(x.size(1)), "j1")
    assert text == "NestedTensor(size=(2, j1, 3), offsets=tensor([0, 2, 6]), contiguous=True)"
    assert x.transpose(1, 2).shape[2] is x.size(1)


def test_padding():
    x = torch.nested.nested_tensor([[1.0], [2.0, 3.0]], layout=torch.jagged)
    assert x.to_padded_tensor(-1.0).tolist() == [[1.0, -1.0], [2.0, 3.0]]
    assert torch.nested.to_padded_tensor(x, 0.0, (2, 3)).tolist() == [[1, 0, 0], [2, 3, 0]]


# functions of a nested tensor, and those of a component; the results are nested, or one tensor
OF_COMPONENTS = {
    "exp": lambda x: x.exp(),
    "add": lambda x: 1 + x * x / 2,
    "trailing": lambda x: x + torch.tensor([1.0, 2.0, 3.0]),
    "relu": lambda x: F.relu(x - 1),
    "gelu": lambda x: F.gelu(x),
    "where": lambda x: torch.where(x > 1, x, -x),
    "masked_fill": lambda x: x.masked_fill(x > 2, 0.0),
    "linear": lambda x: F.linear(x, torch.ones(2, 3), torch.ones(2)),
    "layer_norm": lambda x: F.layer_norm(x, (3,)),
    "matmul": lambda x: x @ torch.arange(6.0).view(3, 2),
    "softmax": lambda x: x.softmax(-1),
    "sum of features": lambda x: x.sum(-1),
    "double": lambda x: x.double(),
    "zeros_like": lambda x: torch.zeros_like(x),
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
}
SHIFTED = {
    "softmax": lambda x, dim: x.softmax(dim),
    "sum": lambda x, dim: x.sum(dim),
    "mean": lambda x, dim: x.mean(dim, keepdim=True),
    "max": lambda x, dim: x.max(dim)[0],
    "unsqueeze": lambda x, dim: x.unsqueeze(dim + 2),
    "transpose": lambda x, dim: x.transpose(dim, dim + 1),
    "unflatten": lambda x, dim: x.unflatten(dim + 1, (3, 1)),
    "cat": lambda x, dim: torch.cat([x, x], dim + 1),
    "chunk": lambda x, dim: x.chunk(3, dim + 1)[1],
}


def compare(result, expected):
    parts = result.unbind() if result.is_nested else result.unbind(0)
    for part, other in zip(parts, expected, strict=True):
        assert part.dtype is other.dtype
        assert_equal(part, other)


@pytest.mark.parametrize("name", OF_COMPONENTS)
def test_functions_of_components(name):
    compare(OF_COMPONENTS[name](jagged()), [OF_COMPONENTS[name](part) for part in components()])


@pytest.mark.parametrize("name", SHIFTED)
def test_functions_along_dimensions(name):
    compare(SHIFTED[name](jagged(), 1), [SHIFTED[name](part, 0) for part in components()])


def test_padded_operands():
    dense = torch.arange(24.0).view(2, 4, 3).requires_grad_()
    result = jagged() * dense
    compare(result, [components()[0] * dense[0, :2], components()[1] * dense[1]])
    result.sum().backward()
    assert_equal(dense.grad[0], torch.cat([components()[0], torch.zeros(2, 3)]))


def test_operands_for_each_component():
    rows = torch.arange(6.0).view(2, 1, 3).requires_grad_()
    product = jagged() * rows
    compare(product, [part * row for part, row in zip(components(), rows, strict=True)])
    product.sum().backward()
    assert rows.grad.tolist() == [[[3.0, 5.0, 7.0]], [[9.0, 11.0, 13.0]]]


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention(is_causal):
    x = jagged(requires_grad=True)
    heads = x.unflatten(-1, (1, 3)).transpose(1, 2)
    result = F.scaled_dot_product_attention(heads, heads * 0.1, heads + 1, is_causal=is_causal)
    joined = result.transpose(1, 2).flatten(-2)
    parts = [part.clone().requires_grad_() for part in components()]
    expected = [
        F.scaled_dot_product_attention(p[None], p[None] * 0.1, p[None] + 1, is_causal=is_causal)[0]
        for p in parts
    ]
    compare(joined, expected)
    (joined * joined).sum().backward()
    sum((value * value).sum() for value in expected).backward()
    compare(x.grad, [part.grad for part in parts])


def test_keys_of_other_lengths():
    first, second = components()
    queries = torch.nested.as_nested_tensor([first, second], layout=torch.jagged)
    keys = torch.nested.as_nested_tensor([second, first], layout=torch.jagged)
    heads = [x.unflatten(-1, (1, 3)).transpose(1, 2) for x in (queries, keys, keys)]
    result = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(-2)
    expected = [
        F.scaled_dot_product_attention(q[None], k[None], k[None])[0]
        for q, k in ((first, second), (second, first))
    ]
    compare(result, expected)


def test_gradients_of_components():
    first, second = (part.clone().requires_grad_() for part in components())
    x = torch.nested.as_nested_tensor([first, second], layout=torch.jagged)
    (x * x).sum(1).sum().backward()
    assert_equal(first.grad, 2 * first)
    assert_equal(second.grad, 2 * second)


def test_gradients_of_softmax_along_the_lengths():
    x = jagged(requires_grad=True)
    sum(part.pow(2).sum() for part in x.softmax(1).unbind()).backward()
    parts = [part.clone().requires_grad_() for part in components()]
    sum(part.softmax(0).pow(2).sum() for part in parts).backward()
    compare(x.grad, [part.grad for part in parts])


def test_reductions_of_components_with_one_element():
    x = torch.nested.nested_tensor([[1.0], [2.0]], layout=torch.jagged)
    assert x.mean(1, keepdim=True).tolist() == [[1.0], [2.0]]
    assert x.softmax(1).is_nested


def test_second_derivatives():
    x = jagged(requires_grad=True)
    (gradient,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    assert gradient.is_nested
    (second,) = torch.autograd.grad(gradient.sum(), x)
    assert_equal(second.values(), 6 * x.values())


def test_compiled_functions_see_the_lengths():
    ones = torch.ones(2), torch.ones(4)
    short = torch.nested.nested_tensor(ones, layout=torch.jagged)
    long = torch.nested.nested_tensor(ones[::-1], layout=torch.jagged)
    compiled = torch.compile(lambda x: (x * 2).sum(1))
    assert [compiled(x).tolist() for x in (short, long, short)] == [[4, 8], [8, 4], [4, 8]]


def test_layers():
    x = jagged()
    layer = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4))
    compare(layer(x), [layer(part) for part in components()])
    ids = torch.nested.nested_tensor([[0, 1], [2]], layout=torch.jagged)
    assert F.embedding(ids, torch.arange(3.0).view(3, 1)).values().tolist() == [[0], [1], [2]]


def test_jagged_parts():
    values = torch.arange(5.0)
    x = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 5]))
    assert [part.tolist() for part in x.unbind()] == [[0, 1], [2, 3, 4]]
    y = torch.nested.nested_tensor_from_jagged(values, lengths=torch.tensor([4, 1]))
    assert y.offsets().tolist() == [0, 4, 5]
    z = torch.nested.narrow(torch.arange(6).view(2, 3), 1, 1, torch.tensor([1, 2]), torch.jagged)
    assert [part.tolist() for part in z.unbind()] == [[1], [4, 5]]


def test_masked_select():
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    result = torch.nested.masked_select(x, x > 1)
    assert [part.tolist() for part in result.unbind()] == [[2], [3, 4, 5]]
    (result * result).sum().backward()
    assert x.grad.tolist() == [[0, 0, 4], [6, 8, 10]]


def test_copies_and_writes():
    x = jagged(requires_grad=True)
    assert copy.deepcopy(x).requires_grad
    assert pickle.loads(pickle.dumps(x.detach())).offsets().tolist() == [0, 2, 6]
    y = jagged()
    assert y.add_(1).mul_(2) is y
    assert_equal(y.values(), 2 * (jagged().values() + 1))
    assert y.zero_().values().abs().sum().item() == 0


REFUSED = {
    "other lengths": (lambda x: x + other(), RuntimeError, "shapes"),
    "batch": (lambda x: x.softmax(0), RuntimeError, "across the batch dimension"),
    "slice": (lambda x: x[:, 0], RuntimeError, "not supported for NestedTensor on dim=0"),
    "numpy": (lambda x: x.numpy(), RuntimeError, "not supported for tensor subclasses"),
    "sort": (lambda x: x.cov(), NotImplementedError, "not provided for nested tensors"),
    "both": (lambda x: x.sum((1, 2)), RuntimeError, "ragged and non-batch"),
    "view": (lambda x: x.view(-1, 3), RuntimeError, "cannot view shape"),
    "ranks": (
        lambda x: torch.nested.nested_tensor([[1.0], 2.0]),
        RuntimeError,
        "must have the same dimension",
    ),
    "offsets": (
        lambda x: torch.nested.nested_tensor_from_jagged(torch.ones(2)),
        RuntimeError,
        "offsets or lengths is required",
    ),
}


def other():
    return torch.nested.nested_tensor(components()[::-1], layout=torch.jagged)


@pytest.mark.parametrize("name", REFUSED)
def test_what_raises(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call(jagged())


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_is_same_size(layout):
    def nested(*lengths):
        return torch.nested.nested_tensor([torch.ones(n, 4) for n in lengths], layout=layout)

    assert nested(2, 3).is_same_size(nested(2, 3)) and not torch.is_same_size(
        nested(2, 3), nested(3, 2)
    )
    for pair in ((nested(2), torch.ones(2, 4)), (torch.ones(2, 4), nested(2))):
        with pytest.raises(RuntimeError, match="Expected both self and other to be nested tensors"):
            torch.is_same_size(*pair)


def test_numbers_and_dense_tensors_at_the_left():
    x = jagged() + 1
    for call in (lambda x: 2 / x, lambda x: 2**x, lambda x: 7 % x, lambda x: 7 // x):
        for result, component in zip(call(x).unbind(), components(), strict=True):
            assert_equal(result, call(component + 1))


def test_greatest_and_least_elements():
    x, (first, second) = jagged(), components()
    assert x.max().item() == 5.5 and x.min().item() == 0
    assert_equal(x.max(-1).values.values(), torch.cat([first, second]).max(-1).values)
    assert_equal(torch.max(x, x * -1 + 3).unbind()[1], torch.max(second, 3 - second))


def test_absolute_differences():
    x, joined = jagged(True), torch.cat(components())
    loss = F.l1_loss(x, x.detach() * 2, reduction="sum")
    assert loss.item() == joined.abs().sum().item()
    assert F.l1_loss(x, x * 2).item() == joined.abs().mean().item()
    assert_equal(F.l1_loss(x, x * 2, reduction="none").unbind()[0], components()[0])
    loss.backward()
    assert_equal(x.grad.values(), -joined.sign())


def test_slices_of_shared_dimensions():
    x, (first, second) = jagged(True), components()
    assert_equal(x[..., :2].unbind()[1], second[..., :2])
    assert_equal(x[:, :, 1].unbind()[0], first[:, 1])
    assert_equal(x.transpose(1, 2)[:, 1:].unbind()[1], second.mT[1:])
    assert_equal(x.transpose(1, 2)[:, 1].unbind()[1], second.mT[1])
    (x[..., :2] * 3).sum().backward()
    assert x.grad.values().tolist() == [[3, 3, 0]] * 6
    for index in ((slice(None), slice(1, None)), (slice(1, None),), (..., None)):
        with pytest.raises(RuntimeError, match="not supported for NestedTensor"):
            x[index]


def test_components_in_chunks():
    parts = [torch.ones(n, 2) * n for n in (2, 1, 3)]
    x = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
    first, last = x.chunk(2)
    assert [part.tolist() for part in first.unbind()] == [part.tolist() for part in parts[:2]]
    assert [part.tolist() for part in last.unbind()] == [parts[2].tolist()]
    last.sum().backward()
    assert x.grad.values().tolist() == [[0, 0]] * 3 + [[1, 1]] * 3
    assert [part.shape[-1] for part in x.chunk(2, -1)] == [1, 1]


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_the_kind_of_the_numbers(layout):
    x = torch.nested.nested_tensor(components(), layout=layout)
    assert x.is_floating_point() and not x.is_complex() and x.is_signed()


def test_expanded_and_stacked_tensors():
    x = jagged(True)
    first, second = components()
    wide = x.unsqueeze(-1).expand(2, -1, 3, 2)
    assert [tuple(part.shape) for part in wide.unbind()] == [(2, 3, 2), (4, 3, 2)]
    assert_equal(x.unsqueeze(-1).expand_as(wide).unbind()[1], second[..., None].expand(4, 3, 2))
    wide.sum(-1).sum().backward()
    assert x.grad.values().tolist() == [[2, 2, 2]] * 6
    assert_equal(torch.stack([x, 2 * x], -1).unbind()[0], torch.stack([first, 2 * first], -1))
    assert_equal(torch.stack([x, 2 * x], 2).unbind()[1], torch.stack([second, 2 * second], 1))
    above = torch.stack([x.transpose(1, 2)] * 2, 1)
    assert_equal(above.unbind()[1], torch.stack([second.mT] * 2))
    for dim, words in ((0, "on dim=0"), (1, "on ragged dim")):
        with pytest.raises(RuntimeError, match=f"not supported for NestedTensor {words}"):
            torch.stack([x, x], dim)
    for size in ((3, -1, 3), (2, 7, 3), (2, 2, -1, 3)):
        with pytest.raises(RuntimeError, match=r"expand\(\): cannot expand shape \(2, j"):
            x.expand(size)


def test_writes_into_a_component():
    x, (first, second) = jagged(True), components()
    y = x * 1
    y[0] = 5.0
    y[-1, 1] = torch.tensor([7.0, 8.0, 9.0])
    assert y.unbind()[0].tolist() == [[5, 5, 5]] * 2
    assert (
        y.unbind()[1][1].tolist() == [7, 8, 9] and y.unbind()[1][0].tolist() == second[0].tolist()
    )
    sum(part.sum() for part in y.unbind()).backward()
    assert x.grad.values().tolist() == [[0, 0, 0]] * 2 + [[1, 1, 1], [0, 0, 0]] + [[1, 1, 1]] * 2
    y = x.detach().transpose(1, 2).clone()
    y[0] = 0.0
    assert y.unbind()[0].tolist() == [[0, 0]] * 3
    y[:] = x.detach().transpose(1, 2)
    assert_equal(y.unbind()[0], first.mT)
    with pytest.raises(IndexError, match="index 2 is out of bounds for dimension 0 with size 2"):
        y[2] = 0.0
    with pytest.raises(RuntimeError, match=r"slice\(\): not supported for NestedTensor on dim=0"):
        y[:, :, 0] = 0.0


def test_strides_and_equality():
    x = jagged(False)
    length, *others = x.stride()
    assert length.lengths == [6, 12] and others == [3, 1]
    assert x.stride(-1) == 1 and x.transpose(1, 2).stride()[1:] == (1, 3)
    assert torch.equal(x, x.clone()) and not torch.equal(x, x + 1)
    assert not torch.equal(x, torch.ones(2, 3))


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
@pytest.mark.parametrize("inplace", [False, True])
def test_dropout_draws_a_number_for_each_element(layout, inplace):
    """The elements that torch 2.13 keeps, and the number that it draws next: it draws where p is 0
    or 1 too, but not where it writes to the input. There it refuses other p.
    """
    kept = {0.0: [1] * 9, 0.5: [0, 0, 2, 0, 0, 0, 2, 2, 0], 1.0: [0] * 9}
    for p, values in kept.items():
        torch.manual_seed(0)
        parts = [torch.ones(1, 3).double(), torch.ones(2, 3).double()]
        nested = torch.nested.nested_tensor(parts, layout=layout, requires_grad=True)
        copy = nested * 1
        result = F.dropout(copy, p, inplace=inplace)
        assert (result is copy) == inplace
        assert torch.cat(result.unbind()).flatten().tolist() == values
        draws = not inplace or p == 0.5
        number = torch.rand(1, dtype=torch.float64).item()
        assert number == (0.2882358921361502 if draws else 0.9700530018065531)
        torch.cat(result.unbind()).sum().backward()
        assert torch.cat(nested.grad.unbind()).flatten().tolist() == values


def test_native_dropout_gives_the_mask_too():
    """As torch 2.13 printed."""
    torch.manual_seed(0)
    nested = torch.nested.nested_tensor([torch.ones(1, 3), torch.ones(2, 3)], layout=torch.jagged)
    values, mask = torch.native_dropout(nested.double(), 0.5, True)
    assert values.values().flatten().tolist() == [0, 0, 2, 0, 0, 0, 2, 2, 0]
    assert mask.values().tolist() == (values.values() != 0).tolist()
