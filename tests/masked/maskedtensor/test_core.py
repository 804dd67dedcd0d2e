"""Masked tensors: making them, their parts, text and gradients."""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad

DATA = [[0.5, 1.0, 2.0, 6.0], [3.0, 4.0, 5.0, 7.0]]
MASK = [[True, False, False, True], [False, True, False, True]]


def parts(torch, tensor):
    """The data where it counts, and the mask, of a masked tensor."""
    data, mask = tensor.get_data().detach(), tensor.get_mask()
    if data.layout != torch.strided:
        data, mask = data.to_dense(), mask.to_dense()
    return [torch.where(mask, data, torch.zeros_like(data)), mask]


def masked(torch, data=DATA, mask=MASK, **options):
    return torch.masked.masked_tensor(torch.tensor(data), torch.tensor(mask), **options)


@as_torch
def test_text(torch):
    rows = masked(torch)
    return [
        repr(x) for x in (rows, rows[0], rows[0, 0], rows[0, 1], rows.int(), rows[None], rows > 1)
    ]


@as_torch("""
    tensor([[0.5, 0.0, 0.0, 6.0], [0.0, 4.0, 0.0, 7.0]])
    tensor([[True, False, False, True], [False, True, False, True]])
    tensor([[0.5, -1.0, -1.0, 6.0], [-1.0, 4.0, -1.0, 7.0]])
    'torch.float32'
    [2, 4]
    2
    8
""")
def test_data_is_a_copy(torch):
    data, mask = torch.tensor(DATA), torch.tensor(MASK)
    x = torch.masked.masked_tensor(data, mask)
    data.zero_(), mask.zero_()
    return [*parts(torch, x), x.to_tensor(-1), str(x.dtype), list(x.shape), x.dim(), x.numel()]


@as_torch
def test_wrong_data_and_masks(torch):
    make = torch.masked.masked_tensor
    data, mask = torch.tensor(DATA), torch.tensor(MASK)
    return [
        error(make, *arguments, words=words)
        for arguments, words in [
            ((DATA, mask), "data must be a Tensor"),
            ((data, MASK), "mask must be a Tensor"),
            ((make(data, mask), mask), "data must be a Tensor"),
            ((data, mask.float()), "mask must have dtype bool"),
            ((data, mask[0]), "data.dim() must equal mask.dim()"),
            ((data, mask[:, :3]), "data.size() must equal mask.size()"),
            ((data.to(torch.complex64), mask), "is not supported in MaskedTensor"),
            ((data.bfloat16(), mask), "is not supported in MaskedTensor"),
            ((data.to_sparse(), mask), "must have the same layout"),
            ((data.int(), mask, True), "floating point"),
        ]
    ]


def test_warns_of_data_that_requires_grad():
    data = jaxgrad.tensor(DATA, requires_grad=True)
    with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
        x = jaxgrad.masked.masked_tensor(data, jaxgrad.tensor(MASK), requires_grad=True)
    x.sum().backward()
    assert data.grad is None and x.grad.get_mask().tolist() == MASK


@as_torch("""
    [tensor([[1.5, 0.0, 0.0, 12.5], [0.0, 8.5, 0.0, 14.5]]),
     tensor([[True, False, False, True], [False, True, False, True]])]
    [tensor([[3.0, 0.0, 0.0, 3.0], [0.0, 3.0, 0.0, 3.0]]),
     tensor([[True, False, False, True], [False, True, False, True]])]
    True
    False
""")
def test_gradients_have_the_mask_of_their_tensor(torch):
    x = masked(torch, requires_grad=True)
    (x * x).sum().backward()
    x.mean(1).sum().backward()
    (other,) = torch.autograd.grad((x * 3).sum(), x)
    return [parts(torch, x.grad), parts(torch, other), x.is_leaf, (x * 2).is_leaf]


@as_torch("""
    tensor([[0.25, 0.0, 0.0, 0.25], [0.0, 0.25, 0.0, 0.25]])
    tensor([[True, False, False, True], [False, True, False, True]])
""")
def test_gradient_of_plain_data_is_masked(torch):
    data = torch.tensor(DATA, requires_grad=True)
    torch.masked.as_masked_tensor(data, torch.tensor(MASK)).mean().backward()
    return parts(torch, data.grad)


@as_torch("RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')")
def test_without_history_there_is_no_backward(torch):
    return error(masked(torch).mean().backward, words="does not require grad")


def test_second_derivative():
    """x³ has the second derivative 6x, where the mask is True."""
    x = masked(jaxgrad, requires_grad=True)
    (slope,) = jaxgrad.autograd.grad((x * x * x).sum(), x, create_graph=True)
    slope.sum().backward()
    assert parts(jaxgrad, x.grad)[0].tolist() == [[3.0, 0.0, 0.0, 36.0], [0.0, 24.0, 0.0, 42.0]]


def test_methods_of_handles():
    x, leaves = masked(jaxgrad, requires_grad=True), []
    x.register_post_accumulate_grad_hook(leaves.append)
    x.sum().backward()
    assert leaves[0] is x and not x.is_shared() and x.dim_order() == (0, 1)


def test_hooks_get_masked_gradients():
    x, gradients = masked(jaxgrad, requires_grad=True), []
    x.register_hook(gradients.append)
    x.sum().backward()
    assert gradients[0].get_mask().tolist() == MASK
    x.register_hook(lambda gradient: gradient * 5)
    x.grad = None
    x.sum().backward()
    assert parts(jaxgrad, x.grad)[0].sum().item() == 20


def squares(data, mask):
    """The sum of the squares of the elements that count."""
    x = jaxgrad.masked.as_masked_tensor(data, mask)
    return (x * x).sum().to_tensor(0)


def test_transforms_and_compiled_functions():
    """The derivative of the sum of squares is 2x where the mask is True, in every mode."""
    data, mask = jaxgrad.tensor(DATA), jaxgrad.tensor(MASK)
    slopes = [[1.0, 0.0, 0.0, 12.0], [0.0, 8.0, 0.0, 14.0]]
    assert jaxgrad.compile(squares)(data, mask).item() == 101.25
    assert jaxgrad.func.vmap(squares)(data, mask).tolist() == [36.25, 65.0]
    assert jaxgrad.func.grad(squares)(data, mask).to_tensor(0).tolist() == slopes
    _, tangent = jaxgrad.func.jvp(lambda x: squares(x, mask), (data,), (jaxgrad.ones(2, 4),))
    assert tangent.item() == 35

    @jaxgrad.compile
    def step(x):
        (x * x).sum().backward()

    leaf = data.clone().requires_grad_()
    step(jaxgrad.masked.as_masked_tensor(leaf, mask))
    assert parts(jaxgrad, leaf.grad)[0].tolist() == slopes


@as_torch
def test_sparse(torch):
    x = masked(torch, requires_grad=True)
    y = x.to_sparse()
    y.to_dense().sum().backward()
    mask = torch.tensor(MASK).to_sparse().coalesce()
    z = torch.masked.masked_tensor(torch.tensor(DATA).sparse_mask(mask), mask, requires_grad=True)
    z.to_dense().sum().backward()
    return [
        *(parts(torch, t) for t in (x.grad, y, z.grad, torch.sin(z), z + z, z * 2, z.sum())),
        [str(t.layout) for t in (y, z, z.grad)],
        [list(z.shape), list(z.size()), z.dim(), z.numel(), z.is_sparse, z.is_sparse_coo()],
        error(z.is_contiguous, words="MaskedTensors with sparse data do not have is_contiguous"),
        error(z.contiguous, words="MaskedTensors with sparse data do not have"),
    ]


@as_torch
def test_compressed_rows(torch):
    x = masked(torch, requires_grad=True)
    y = x.to_sparse_csr()
    y.to_dense().sum().backward()
    mask = torch.tensor(MASK).to_sparse_csr()
    z = torch.masked.masked_tensor(torch.tensor(DATA).sparse_mask(mask), mask, requires_grad=True)
    z.to_dense().sum().backward()
    results = [parts(torch, t) for t in (x.grad, y, z.grad, torch.sin(z), z + z, z * 2, z.sum())]
    return [*results, [str(t.layout) for t in (y, z, z.grad)], y.is_sparse_csr()]


@as_torch
def test_matching(torch):
    core = torch.masked.maskedtensor.core
    x, y = masked(torch), masked(torch, mask=[[True] * 4] * 2)
    a = torch.tensor([1.0, 2.0])
    return [
        core._masks_match(x, x), core._masks_match(x, y), core._masks_match(x, a),
        core._tensors_match(a, a.clone()), core._tensors_match(a, a + 1e-7),
        core._tensors_match(a, a + 1e-7, exact=False), core._tensors_match(a, a[None]),
        error(core._tensors_match, x, a, words="can be a MaskedTensor"),
        torch.masked.is_masked_tensor(x), torch.masked.is_masked_tensor(a),
    ]  # fmt: skip


def test_texts_and_numbers_of_one_element():
    masked_tensor = jaxgrad.masked.masked_tensor
    one = masked_tensor(jaxgrad.tensor([2.5]), jaxgrad.tensor([True]))
    assert f"{one}" == "MaskedTensor(\n  [  2.5000]\n)"
    assert bool(one) is True and float(one) == 2.5 and int(one) == 2
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{one:.2f}"
    hidden = masked_tensor(jaxgrad.tensor([2.5]), jaxgrad.tensor([False]))
    for convert in (bool, float, int):
        with pytest.raises(ValueError):
            convert(hidden)
    pair = masked_tensor(jaxgrad.ones(2), jaxgrad.tensor([True, True]))
    with pytest.raises(RuntimeError, match="more than one value"):
        bool(pair)
    with pytest.raises(ValueError, match="only one element"):
        float(pair)
