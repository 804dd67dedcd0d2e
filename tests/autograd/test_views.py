"""Views, detach, data, strides and versions of tensors, row by row of PyTorch's behaviour."""

import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf
from helpers.compiled import under_jit

import jaxgrad


def vector(torch):
    return leaf(torch, 1.0, 2.0, 3.0, dtype=torch.float64)


def matrix(torch, **options):
    return torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=torch.float64, **options)


def assign_data(tensor, value):
    tensor.data = value


def shares(one, other):
    """Whether two tensors share their memory."""
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def geometry(tensor):
    return list(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.is_contiguous()


# Calls that give views, with their other arguments.
VIEWS = {
    "select": lambda torch, x: x.select(1, 2),
    "int": lambda torch, x: x[1],
    "slice": lambda torch, x: x[:, 1:],
    "slice with step": lambda torch, x: x[:, ::2],
    "none": lambda torch, x: x[None],
    "ellipsis": lambda torch, x: x[..., 0],
    "tuple": lambda torch, x: x[1, 1:, None],
    "narrow": lambda torch, x: x.narrow(1, 1, 2),
    "transpose": lambda torch, x: x.transpose(0, 1),
    "swapaxes": lambda torch, x: x.swapaxes(0, 1),
    "permute": lambda torch, x: x.permute(1, 0),
    "movedim": lambda torch, x: x.movedim(0, 1),
    "t": lambda torch, x: x.t(),
    "T": lambda torch, x: x.T,
    "mT": lambda torch, x: x.mT,
    "mH": lambda torch, x: x.mH,
    "squeeze": lambda torch, x: x[:1].squeeze(),
    "squeeze dim": lambda torch, x: x[:1].squeeze(0),
    "unsqueeze": lambda torch, x: x.unsqueeze(1),
    "expand": lambda torch, x: x.expand(2, 2, 3),
    "expand_as": lambda torch, x: x[:1].expand_as(x),
    "view": lambda torch, x: x.view(3, 2),
    "view of a view": lambda torch, x: x.view(6).view(-1),
    "view_as": lambda torch, x: x.view_as(torch.zeros(6)),
    "reshape": lambda torch, x: x.reshape(-1),
    "flatten": lambda torch, x: x.flatten(),
    "ravel": lambda torch, x: x.ravel(),
    "unflatten": lambda torch, x: x.unflatten(1, (3, 1)),
    "unfold": lambda torch, x: x.unfold(1, 2, 1),
    "diagonal": lambda torch, x: x.diagonal(),
    "as_strided": lambda torch, x: x.as_strided((2, 2), (1, 2), 1),
    "split": lambda torch, x: x.split(2, 1)[1],
    "chunk": lambda torch, x: x.chunk(2)[0],
    "unbind": lambda torch, x: x.unbind(1)[1],
    "detach": lambda torch, x: x.detach(),
    "data": lambda torch, x: x.data,
    "real": lambda torch, x: x.real,
}

SEVERAL = ("split", "chunk", "unbind")  # not read after a write

COPIES = {
    "reshape of a transpose": lambda torch, x: x.t().reshape(-1),
    "flatten of a transpose": lambda torch, x: x.t().flatten(),
    "contiguous of a transpose": lambda torch, x: x.t().contiguous(),
    "clone": lambda torch, x: x.clone(),
    "index": lambda torch, x: x[[0, 1]],
    "mask": lambda torch, x: x[x > 2],
    "times one": lambda torch, x: x * 1,
    "repeat": lambda torch, x: x.repeat(1, 1),
}


def observed(torch, make):
    x = matrix(torch)
    v = make(torch, x)
    plain = geometry(v), v._is_view(), v._base is x, shares(v, x)
    x.mul_(2)
    return plain, v


@pytest.mark.row("D20")
@pytest.mark.slow
@as_torch
def test_every_kind_of_view(torch):
    return {name: observed(torch, make) for name, make in VIEWS.items()}


@pytest.mark.row("D20")
@pytest.mark.slow
@as_torch
def test_which_calls_copy(torch):
    return {name: observed(torch, make) for name, make in COPIES.items()}


@pytest.mark.row("D20")
@pytest.mark.slow
@as_torch
def test_views_of_a_tensor_with_a_history(torch):
    answers = {}
    for name in [name for name in VIEWS if name not in SEVERAL]:
        x = matrix(torch, requires_grad=True)
        b = x * 1
        v = VIEWS[name](torch, b)
        b.mul_(b.detach().clone())
        (v.sum() * 2 + b.sum()).backward()
        answers[name] = v, v._is_view(), v._base is b, x.grad
    return answers


@pytest.mark.row("D20")
@as_torch("""
    [False, True, True]
    True
    True
    True
    True
    True
    True
    False
""")
def test_the_base_of_a_view_of_a_view(torch):
    x = matrix(torch)
    v = x[0]
    w = v[1:]
    return (
        [t._is_view() for t in (x, v, w)],
        x._base is None,
        v._base is x,
        w._base is x,
        x.view_as(x)._base is x,
        (x * 1)._base is None,
        x.contiguous() is x,
        x.t().contiguous()._is_view(),
    )


@pytest.mark.row("D20")
@pytest.mark.slow
@as_torch("""
    tensor([[[1.5, -2.0], [1.0, -6.0]], [[0.0, 0.5], [7.0, 1.0]]],
           dtype=float64, requires_grad=True)
    tensor([[[8.0, 0.0], [24.0, 0.0]], [[0.0, 4.0], [0.0, 4.0]]], dtype=float64)
    [[2, 2, 2], [4, 2, 1], 0, True]
""")
def test_complex_views(torch):
    values = [[1 + 2j, 3 - 1j], [0.5j, -2 + 1j]]
    x = torch.tensor(values, dtype=torch.complex128, requires_grad=True)
    b = x * 1
    b.real.mul_(2)
    b.imag[0] = b.imag[1].clone()
    pairs = torch.view_as_real(b)
    pairs[1, 1, 0] = 7
    b.conj()[0].mul_(1j)
    b.mH[0, 0] += 1
    (b * b.conj()).real.sum().backward()
    return torch.view_as_real(b.resolve_conj()), torch.view_as_real(x.grad), geometry(pairs)


@pytest.mark.row("D20")
@pytest.mark.slow
@as_torch("""
    tensor([[3.0, 1.0], [-4.0, 3.0]], dtype=float64, requires_grad=True)
    tensor([[3.0, 1.0], [-4.0, 3.0]], dtype=float64, requires_grad=True)
    tensor([[2.0, 0.0], [6.0, 8.0]], dtype=float64)
    True
""")
def test_real_pairs_as_complex_numbers(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    b = x * 1
    z = torch.view_as_complex(b)
    z.mul_(1j)
    b[0, 0] = 3
    (z * z.conj()).real.sum().backward()
    return b, torch.view_as_real(z), x.grad, z._base is b


@pytest.mark.row("D20")
@as_torch("""
    [1.0+2.0j, 3.0-1.0j]
    [1.0-2.0j, 3.0+1.0j]
""")
def test_conj_of_what_is_resolved(torch):
    z = torch.tensor([1 + 2j, 3 - 1j])
    return z.resolve_conj().tolist(), z.conj().resolve_conj().tolist()


# ---- strides


@pytest.mark.row("edge_33")
@as_torch
def test_strides_of_results(torch):
    x = torch.arange(24.0).reshape(2, 3, 4)
    tensors = [
        x,
        x.t() if x.dim() < 3 else x.transpose(0, 2),
        x.permute(1, 2, 0) * 2,
        x[:, 1:, ::2],
        x[:, 1:, ::2] + 1,
        x.expand(2, 2, 3, 4),
        x.permute(2, 0, 1).clone(),
        x.permute(2, 0, 1).contiguous(),
        x[0, 0, :0],
        x[0, 0, 0],
    ]
    return [geometry(tensor) for tensor in tensors]


@pytest.mark.row("edge_33")
@as_torch
def test_view_refuses_what_strides_do_not_allow(torch):
    x = matrix(torch)
    words = "view size is not compatible with input tensor's size and stride"
    calls = (x.t().view, -1), (x[:, :2].view, 4), (x.expand(2, 2, 3).view, 12)
    fine = x.t().view(3, 2, 1), x[:, :2].view(2, 2, 1), x[:1].expand(2, 3).view(2, 3, 1)
    return [error(*call, words=words) for call in calls], [geometry(v) for v in fine]


@pytest.mark.row("edge_33")
@as_torch("""
    tensor([[10.0, 3.0, 4.0], [5.0, 6.0, 7.0]], dtype=float64)
    tensor([0.0, 0.0, 0.0, 0.0, 0.0, 0.0], dtype=float64)
    tensor([10.0, 3.0, 4.0, 5.0, 6.0, 7.0], dtype=float64)
    1
    2
""")
def test_a_write_to_what_reshape_copied(torch):
    x = matrix(torch)
    copied, viewed = x.t().reshape(-1), x.reshape(-1)
    copied.zero_()
    viewed[0] = 9
    x.t().flatten()[1] = 100
    x.t().contiguous().add_(1)
    x.contiguous().add_(1)
    return x, copied, viewed, copied._version, x._version


@pytest.mark.row("edge_33")
@as_torch("""
    tensor([[2.0, 3.0], [2.0, 5.0], [3.0, 6.0]], dtype=float64, requires_grad=True)
    [[3, 2], [1, 3], 0, False]
    6
    6
    tensor([[1.0, 3.0, 1.0], [0.0, 2.0, 2.0]], dtype=float64)
""")
def test_in_place_functions_that_move_dimensions(torch):
    x = matrix(torch, requires_grad=True)
    b = x * 1
    row = b[0]
    b.t_()
    b.unsqueeze_(1)
    b.squeeze_()
    b.transpose_(0, 1)
    b.swapaxes_(0, 1)
    b[0] = row[:2] + 1
    (b * torch.tensor([1.0, 2.0])).sum().backward()
    return b, geometry(b), b._version, row._version, x.grad


@pytest.mark.row("edge_33")
@as_torch("""
    tensor([[3.0, 12.0], [9.0, 27.0], [15.0, 33.0]], dtype=float64, requires_grad=True)
    [1, 3]
    tensor([[72.0, 144.0, 90.0], [234.0, 360.0, 198.0]], dtype=float64)
""")
def test_a_transposed_tensor_in_place(torch):
    x = matrix(torch, requires_grad=True)
    b = (x * 1).t()
    b.mul_(3)
    b[1:] += b[:2].clone()
    (b * b).sum().backward()
    return b, b.stride(), x.grad


# ---- detach and data


@pytest.mark.row("D15")
@as_torch("""
    [False, None, True, True, False, 0]
    [1, tensor([4.0, 6.0, 8.0], dtype=float64)]
    tensor([4.0, 6.0, 8.0], dtype=float64, requires_grad=True)
    2
    tensor([1.0, 1.0, 1.0], dtype=float64)
""")
def test_detach_shares_values_and_has_no_history(torch):
    x = vector(torch)
    y = x * 1
    d = y.detach()
    state = d.requires_grad, d.grad_fn, d.is_leaf, shares(d, y), d._is_view(), d._version
    y.add_(1)
    seen = d._version, d
    with torch.no_grad():
        d.mul_(2)
    y.sum().backward()
    return state, seen, y, y._version, x.grad


@pytest.mark.row("D15")
@as_torch("""
    [True, True, True, False]
    tensor([1.0, 4.0, 9.0], dtype=float64, requires_grad=True)
    tensor([1.0, 4.0, 9.0], dtype=float64, requires_grad=True)
    tensor([3.0, 3.0, 3.0], dtype=float64)
    tensor([0.0, 2.0, 3.0], dtype=float64)
""")
def test_a_detached_tensor_with_a_history_of_its_own(torch):
    x, w = vector(torch), vector(torch)
    y = x * 1
    d = y.detach()
    part = d[1:]
    d.mul_(w)
    flags = d.requires_grad, part.requires_grad, y.requires_grad, d.is_leaf
    (part.sum() + (y * 3).sum()).backward()
    return flags, y, d, x.grad, w.grad


@pytest.mark.row("D15")
@as_torch("""
    tensor([5.0, 2.0, 3.0], dtype=float64, requires_grad=True)
    1
    tensor([10.0, 4.0, 6.0], dtype=float64)
    True
""")
def test_a_leaf_through_detach(torch):
    x = vector(torch)
    x.detach()[0] = 5
    x.detach().requires_grad_().sum().backward()
    (x * x).sum().backward()
    return x, x._version, x.grad, x.is_leaf


@pytest.mark.row("D16")
@as_torch
def test_detach_in_place(torch):
    x = vector(torch)
    y = x * 2
    returned = y.detach_()
    state = returned is y, y.requires_grad, y.grad_fn, y.is_leaf
    y.requires_grad_()
    y.sum().backward()
    b = x * 1
    return state, y.grad, x.grad, error(b[0].detach_)


@pytest.mark.row("D17")
@as_torch("""
    [False, True, True, False]
    tensor([7.0, 4.0, 6.0], dtype=float64, requires_grad=True)
    True
    tensor([14.0, 8.0, 12.0], dtype=float64)
""")
def test_data_shares_values_and_has_no_history(torch):
    x = vector(torch)
    d = x.data
    flags = d.requires_grad, d.is_leaf, shares(d, x), d is x.data
    d.mul_(2)
    x.data[0] = 7
    (x * x).sum().backward()
    return flags, x, x.is_leaf, x.grad


@pytest.mark.row("D17")
def test_a_write_through_data_after_the_value_was_saved():
    x = vector(jaxgrad)
    y = (x * x).sum()
    x.data.zero_()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert x.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.row("D17")
def test_data_shares_the_version_counter():
    x = vector(jaxgrad)
    x.data.add_(1)
    assert x._version == 1
    assert x.data._version == 1


@pytest.mark.row("D18")
@as_torch("""
    [tensor([[0.0, 0.0], [0.0, 0.0]], dtype=float64, requires_grad=True),
     True, True,
     tensor([2.0, 2.0, 2.0], dtype=float64),
     True]
    tensor([[0.0, 0.0], [0.0, 0.0]], dtype=float64, requires_grad=True)
    RuntimeError(
     'data set to a tensor that requires gradients must be floating point or complex '
     'dtype')
""")
def test_setting_data_of_a_leaf(torch):
    x = vector(torch)
    (x * 2).sum().backward()
    value = torch.tensor([5.0, 6.0, 7.0], dtype=torch.float64)
    x.data = value
    value.add_(1)
    state = x, x.requires_grad, x.is_leaf, x.grad, shares(x, value)
    x.data = torch.zeros(2, 2, dtype=torch.float64)
    return state, x, error(assign_data, x, torch.tensor([1, 2]))


@pytest.mark.row("D18")
@as_torch("""
    tensor([0.65912385390625, 0.9225146, 1.0103801039062499], dtype=float64, requires_grad=True)
    True
""")
def test_setting_data_of_an_optimizer_step(torch):
    x = vector(torch)
    for _ in range(3):
        x.grad = None
        (x**3).sum().backward()
        x.data = x.data - 0.05 * x.grad.data
    return x, x.is_leaf


@pytest.mark.row("D18")
@as_torch("'TypeError'")
def test_data_that_is_no_tensor(torch):
    return error(assign_data, vector(torch), 3.0, words=None)["error"]


# ---- versions


@pytest.mark.row("D19")
@as_torch
def test_versions_count_writes(torch):
    x = torch.zeros(2, 3)
    v, d = x[0], x.detach()
    versions = [x._version]
    for write in (
        lambda: x.add_(1),
        lambda: v.mul_(2),
        lambda: d.zero_(),
        lambda: x[1].fill_(3),
        lambda: x.__setitem__(0, 1.0),
        lambda: x.t().copy_(torch.ones(3, 2)),
        lambda: x.clone().add_(1),
        lambda: x + 1,
        lambda: x.requires_grad_(False),
        lambda: torch.add(x, 1, out=x),
        lambda: x.unsqueeze_(0),
    ):
        write()
        versions.append((x._version, v._version, d._version))
    return versions, x.clone()._version, x[0]._version, x.reshape(-1)._version


@pytest.mark.row("D19")
@as_torch("""
    0
    tensor([6.0, 12.0, 18.0], dtype=float64)
""")
def test_versions_of_leaves_and_gradients(torch):
    x = vector(torch)
    for _ in range(3):
        (x * x).sum().backward()
    return x._version, x.grad


@pytest.mark.row("D19")
@as_torch("'AttributeError'")
def test_version_cannot_be_set(torch):
    def assign():
        torch.zeros(2)._version = 3

    return error(assign)["error"]


# ---- numpy


@pytest.mark.row("D22")
@as_torch
def test_numpy_of_what_requires_grad(torch):
    x = vector(torch)
    with torch.no_grad():
        inside = error(x.numpy)["error"], error((x * 1).numpy)["error"]
    return error(x.numpy), error((x * 1).numpy), error(numpy.asarray, x), inside


@pytest.mark.row("D22")
def test_numpy_is_read_only():
    x = vector(jaxgrad)
    array = x.detach().numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5.0
    assert x.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.row("D22")
def test_an_array_of_numpy_keeps_its_numbers():
    x = jaxgrad.tensor([1.0, 2.0, 3.0])
    array = x.numpy()
    view = x[1:]
    x.add_(1)
    assert array.tolist() == [1.0, 2.0, 3.0]
    assert view.numpy().tolist() == [3.0, 4.0]


# ---- out= and resizing


@pytest.mark.row("D27")
@as_torch
def test_out_of_what_requires_grad(torch):
    x, y = vector(torch), torch.zeros(3, dtype=torch.float64)
    words = "functions with out=... arguments don't support automatic differentiation, but one of"
    refused = [
        error(lambda: torch.add(x, 1, out=y), words=words),
        error(lambda: torch.add(y, 1, out=x * 1), words=words),
        error(lambda: torch.sin(x, out=y), words=words),
        error(lambda: torch.matmul(x, x, out=torch.zeros((), dtype=torch.float64)), words=words),
    ]
    return refused, y


@pytest.mark.row("D27")
@as_torch("""
    True
    tensor([2.0, 4.0, 6.0], dtype=float64)
    tensor([[0.0, 0.0, 0.0], [0.8414709848078965, 0.9092974268256817, 0.1411200080598672]],
           dtype=float64)
    1
    1
    False
""")
def test_out_under_no_grad(torch):
    x, y = vector(torch), torch.zeros(3, dtype=torch.float64)
    base = torch.zeros(2, 3, dtype=torch.float64)
    row = base[1]
    with torch.no_grad():
        returned = torch.mul(x, 2, out=y)
        torch.sin(x, out=row)
    return returned is y, y, base, y._version, base._version, y.requires_grad


@pytest.mark.row("D27")
@as_torch("""
    tensor([[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]])
    tensor([2.0, 2.0, 2.0])
    3
    RuntimeError("result type Float can't be cast to the desired output type Long")
""")
def test_out_of_plain_tensors(torch):
    x, y = torch.ones(2, 3), torch.zeros(2, 3)
    v = y[0]
    torch.add(x, x, out=y)
    torch.exp(torch.zeros(3), out=v)
    torch.sum(x, 0, out=v)
    refused = error(lambda: torch.add(x, 1.5, out=torch.zeros(2, 3, dtype=torch.int64)))
    return y, v, y._version, refused


@pytest.mark.row("D28")
@as_torch("""
    RuntimeError('cannot resize variables that require grad')
    RuntimeError('cannot resize variables that require grad')
    tensor([1.0, 2.0, 3.0], dtype=float64, requires_grad=True)
""")
def test_resizing_what_requires_grad(torch):
    x = vector(torch)
    y = x * 1
    words = "cannot resize variables that require grad"
    return error(x.resize_, 2, words=words), error(y.resize_, 2, words=words), x


@as_torch
def test_views_in_place_outside_of_grad_mode(torch):
    """A computed tensor gets another shape under no_grad: its gradient arrives in that shape."""
    answers = []
    for change in (
        lambda v: v.squeeze_(),
        lambda v: v.unsqueeze_(0),
        lambda v: v.t_(),
        lambda v: v.unsqueeze_(0).transpose_(0, 2),
        lambda v: v.squeeze_().add_(1),
        lambda v: v.as_strided_((2,), (1,), 1),
    ):
        for of_leaf in (True, False):
            a = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
            base = a if of_leaf else a * 2
            v = base[0:1]
            with torch.no_grad():
                change(v)
            (v * torch.arange(1.0, v.numel() + 1).reshape(v.shape)).sum().backward()
            answers += [v, a.grad]
    return answers


@as_torch("""
    tensor([7.0, 13.0], requires_grad=True)
    tensor([[7.0, 13.0], [7.0, 9.0]], requires_grad=True)
    tensor([[[2.0, 3.0], [4.0, 5.0]]], requires_grad=True)
    tensor([[41.0, 67.0], [11.0, 13.0]])
""")
def test_a_view_in_place_outside_of_grad_mode_and_writes_after_it(torch):
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = a * 2
    v = base[0:1]
    v.retain_grad()
    with torch.no_grad():
        v.squeeze_()
    kept = v * 1
    v.mul_(3)
    base.add_(1)
    (v * kept + base.sum()).sum().backward()
    y = a + 1  # no view
    with torch.no_grad():
        y.unsqueeze_(0)
    (y * a).sum().backward()
    return v, base, y, a.grad


def test_tensors_that_are_no_views_of_another_layout_have_gradients_too():
    """PyTorch raises in the backward pass, or the gradient has the wrong elements."""
    for change, wanted in (
        (lambda y: y.t_(), [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]),
        (lambda y: y.as_strided_((2,), (1,), 1), [[0.0, 2.0], [4.0, 0.0], [0.0, 0.0]]),
    ):
        a = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
        y = a * 2
        with jaxgrad.no_grad():
            change(y)
        (y * jaxgrad.arange(1.0, y.numel() + 1).reshape(y.shape)).sum().backward()
        assert a.grad.tolist() == wanted


@as_torch
def test_views_of_another_dtype(torch):
    answer = []
    for old, new in (
        ("float32", "int32"),
        ("float32", "uint8"),
        ("uint8", "float32"),
        ("float64", "complex64"),
        ("complex64", "int16"),
        ("int64", "float16"),
        ("bfloat16", "int16"),
        ("bool", "uint8"),
        ("uint8", "bool"),
        ("int16", "int16"),
        ("complex128", "float64"),
    ):
        x = torch.arange(16).remainder(3).reshape(2, 8).to(getattr(torch, old))
        y = x.view(getattr(torch, new))
        answer.append([y, y.stride(), shares(x, y), y._is_view()])
    return answer


@as_torch
def test_writes_through_views_of_another_dtype(torch):
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], requires_grad=True)
    y = x * 1
    y.view(torch.complex64)[0].mul_(2)
    bits, part = y.view(torch.int32), y[:, 2:].view(torch.int16)
    bits[1, 0] = 0
    y.detach()[0, 0] = 9
    part[1] += 1
    y.sum().backward()
    return [y, bits, part, part.storage_offset(), y._version, x.grad, bits.requires_grad]


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


@pytest.mark.row("edge_29")
@as_torch
def test_writes_to_views_and_their_bases(torch):
    x = numbers(torch, 1.0, 2.0, 3.0)
    b = x * 1
    view = b[1:]
    b.mul_(3)
    (seen,) = torch.autograd.grad(view.sum(), x, retain_graph=True)
    view.mul_(5)
    (through,) = torch.autograd.grad(b.sum(), x, retain_graph=True)
    c = x * 1
    first, last = c[0:2], c[1:3]
    first.mul_(2)
    (overlapping,) = torch.autograd.grad(last.sum(), x)
    y = leaf(torch, 1.0, 1.0)
    chain = y * 2
    chain[0].mul_(2).mul_(3)
    chain[0].backward(retain_graph=True)
    parts = (x * 1).unbind(0)
    with torch.no_grad():
        made_there = (x * 1).detach().requires_grad_()
        quiet = made_there[:2]
    several = "is a view and is being modified inplace"
    return (
        (b, view, seen, through, overlapping, chain, y.grad),
        error(parts[0].mul_, 2.0, words=several),
        error(quiet.mul_, 2.0, words="is being"),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "test", [test_writes_to_views_and_their_bases], ids=lambda test: test.__name__
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
