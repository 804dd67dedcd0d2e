"""Functions of masked tensors, and those that they do not have."""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad

NAN = float("nan")
DATA = [[0.5, NAN, 2.0, 0.25], [NAN, 4.0, float("inf"), 7.0]]
MASK = [[True, False, False, True], [False, True, False, True]]


def masked(torch, data=DATA, mask=MASK, **options):
    return torch.masked.masked_tensor(torch.tensor(data), torch.tensor(mask), **options)


def parts(torch, tensor):
    """The data where it counts, and the mask, of a masked tensor, or of several."""
    if isinstance(tensor, list | tuple):
        return [parts(torch, part) for part in tensor]
    data, mask = tensor.get_data().detach(), tensor.get_mask()
    return [torch.where(mask, data, torch.zeros_like(data)), mask]


@as_torch
def test_unary(torch):
    x, aten = masked(torch), torch.ops.aten
    return parts(
        torch, [torch.sin(x), x.exp(), -x, abs(x), aten.clamp(x, min=1.0), x**2, x.isnan()]
    )


@as_torch("""
    [True, True, True]
    [tensor([[2.8284270763397217, 0.0, 0.0, 2.0], [0.0, 8.0, 0.0, 10.58300495147705]]),
     tensor([[True, False, False, True], [False, True, False, True]])]
""")
def test_in_place(torch):
    x = masked(torch)
    results = [torch.ops.aten.sqrt_(x) is x, torch.ops.aten.add_(x, x) is x, x.mul_(2) is x]
    return [results, parts(torch, x)]


@as_torch
def test_binary(torch):
    x, y = masked(torch), masked(torch, mask=[[True] * 4] * 2)
    plain = torch.tensor(DATA)
    results = parts(torch, [x + x, x * plain, plain / x, x < 2, 1 / x, torch.maximum(x, plain)])
    words = "Input masks must match"
    return [*results, error(torch.add, x, y, words=words), error(x.add_, y, words=words)]


@as_torch
def test_reductions(torch):
    x = masked(torch)
    results = [
        function(x)
        for name in ["sum", "mean", "amin", "amax", "prod", "var", "std", "argmin", "argmax"]
        for function in (getattr(torch, name), lambda x, name=name: getattr(x, name)(dim=0))
    ]
    return parts(torch, [*results, x.sum(1, True), (x > 1).all(), torch.all(x > 1, dim=1)])


@as_torch
def test_gradients_of_reductions(torch):
    gradients = []
    for name in ["sum", "mean", "amin", "amax", "prod"]:
        x = masked(torch, requires_grad=True)
        getattr(x, name)().backward()
        gradients.append(parts(torch, x.grad))
    return gradients


@as_torch
def test_moving_elements(torch):
    x = masked(torch)
    moved = [x[0], x[:, 1:3], x.t(), x.view(-1), x.unsqueeze(0), x.split(2, 1)]
    index = torch.tensor([1, 0])
    return parts(
        torch, [*moved, torch.cat([x, x]), torch.stack([x, x]), x[index], x.expand(2, 2, 4)]
    )


@as_torch("""
    [tensor([[0.11920291930437088, 0.0, 0.0, 0.8807970881462097], [0.0, 0.5, 0.0, 0.5]]),
     tensor([[True, False, False, True], [False, True, False, True]])]
    [tensor([[1.0, 0.0, 0.0, 0.7310585975646973], [0.0, 1.0, 0.0, 0.2689414322376251]]),
     tensor([[True, False, False, True], [False, True, False, True]])]
    [tensor([[-0.15992499887943268, 0.0, 0.0, 0.15992499887943268], [0.0, 0.0, 0.0, 0.0]]),
     tensor([[True, False, False, True], [False, True, False, True]])]
""")
def test_softmax(torch):
    x = masked(torch, data=[[1.0, 9.0, 9.0, 3.0], [9.0, 2.0, 9.0, 2.0]], requires_grad=True)
    y = torch.softmax(x, -1)
    (y * y).sum().backward()
    return parts(torch, [y, torch.nn.functional.softmax(x, 0), x.grad])


@as_torch("""
    [tensor([4.539993096841499e-05, 0.0067379469983279705, 1.0, 1.0, 1.0]),
     tensor([True, True, True, True, True])]
    [tensor([4.539993096841499e-05, 0.0067379469983279705, 0.0, 0.0, 0.0]),
     tensor([True, True, False, False, False])]
    [tensor([0.0, 0.0, 1.0, 1.0, 1.0]), tensor([False, False, True, True, True])]
""")
def test_where(torch):
    data = torch.tensor([-10.0, -5.0, 0.0, 50.0, 100.0])
    mask = data < 0
    x = torch.masked.masked_tensor(data, mask, requires_grad=True)
    y = torch.masked.masked_tensor(torch.ones(5), ~mask, requires_grad=True)
    z = torch.where(mask, torch.exp(x), y)
    z.sum().backward()
    return parts(torch, [z, x.grad, y.grad])


@as_torch
def test_conversions(torch):
    x = masked(torch)
    results = [x.double(), x.half(), x.to(torch.float64), x.clone(), x.detach(), torch.ones_like(x)]
    return [
        *parts(torch, [*results, x.t().contiguous()]),
        [x.is_contiguous(), x.t().is_contiguous(), x[0, 0].item()],
        error(x[0, 1].item, words="expected a mask tensor"),
        error(x.bfloat16, words="is not supported in MaskedTensor"),
    ]


@as_torch
def test_functions_without_an_implementation(torch):
    x = masked(torch)
    calls = [x.sort, lambda: torch.relu(x)]
    return [error(x.max, words="Multiple dispatch failed for 'torch._ops.aten.max.default'")] + [
        error(call, words="Multiple dispatch failed for") for call in calls
    ]


def test_broadcast_operands_have_gradients_of_what_counts():
    """The derivative with respect to w of the sum of x·w is the sum of the x that count."""
    weight = jaxgrad.ones(4, requires_grad=True)
    (masked(jaxgrad) * weight).sum().backward()
    assert weight.grad.tolist() == [0.5, 4.0, 0.0, 7.25]


def test_masked_functions_of_masked_tensors():
    x = masked(jaxgrad)
    assert jaxgrad.masked.sum(x, 1).tolist() == [0.75, 11.0]
    assert jaxgrad.masked.mean(x, 0).tolist()[:2] == [0.5, 4.0]  # PyTorch divides by all elements
    assert jaxgrad.masked.amax(x, 1, mask=jaxgrad.tensor([True, False, True, False])).tolist() == [
        0.5,
        float("-inf"),
    ]


@as_torch
def test_masked_functions_of_sparse_tensors(torch):
    data = torch.tensor([[0.0, 1.0, 2.0, 6.0], [3.0, 0.0, 5.0, 7.0], [0.0] * 4]).to_sparse()
    mask = torch.tensor([*MASK, [False, True, False, False]])
    results = []
    for name in ("sum", "amax", "prod"):
        reduce = getattr(torch.masked, name)
        for options in ({"dim": 0}, {"dim": 1, "keepdim": True}, {}):
            results.append(reduce(data, mask=mask, **options).to_dense())
    return [*results, error(lambda: torch.masked.amax(data), words="expects explicit mask")]


@pytest.mark.parametrize("name", ["UNARY", "BINARY"])
def test_lists_of_functions(name):
    module = getattr(jaxgrad.masked.maskedtensor, name.lower())
    functions = getattr(module, f"NATIVE_{name}_FNS")
    assert [function.__name__ for function in functions] == getattr(module, f"{name}_NAMES")
    inplace = getattr(module, f"NATIVE_INPLACE_{name}_FNS")
    assert all(function.__name__.endswith("_") for function in inplace)
