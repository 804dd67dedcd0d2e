"""`set_`, `resize_` and `as_strided`: what they show of the memory of tensors, as in PyTorch."""

import pytest

import jaxgrad as torch
from jaxgrad import tensor

SET = [
    (lambda x: torch.zeros(2).set_(x.storage(), 3, (2, 2), (2, 1)), [[3, 4], [5, 6]], (2, 1), 3),
    (lambda x: torch.zeros(2).set_(x.storage(), 3, (2, 2), (0, 1)), [[3, 4], [3, 4]], (0, 1), 3),
    (lambda x: torch.zeros(2).set_(x[2:], 3, (2, 2), (2, 1)), [[5, 6], [7, 8]], (2, 1), 5),
    (lambda x: torch.zeros(2).set_(x.untyped_storage(), 10, (2,)), [10, 11], (1,), 10),
    (lambda x: torch.zeros(2).set_(x.view(3, 4).t()[:1]), [[0, 4, 8]], (1, 4), 0),
    (lambda x: torch.zeros(2).set_(), [], (1,), 0),
    (lambda x: x.clone().resize_(2).resize_(4), [0, 1, 2, 3], (1,), 0),
    (lambda x: x[1:5].resize_(2, 1), [[1], [2]], (1, 1), 1),
    (lambda x: x[::2].resize_(3), [0, 1, 2], (1,), 0),
    (lambda x: x[:6].view(2, 3).t().resize_(2, 3), [[0, 1, 2], [3, 4, 5]], (3, 1), 0),
    (lambda x: x[:6].view(2, 3).t().resize_(3, 2), [[0, 3], [1, 4], [2, 5]], (1, 3), 0),
    (lambda x: x[3:].detach().as_strided((3,), (1,), 0), [0, 1, 2], (1,), 0),
    (lambda x: x[::2].detach().as_strided((3,), (1,), 2), [2, 3, 4], (1,), 2),
]


@pytest.mark.parametrize(("make", "values", "strides", "offset"), SET)
def test_memory_that_a_tensor_shows(make, values, strides, offset):
    x = torch.arange(12.0)
    shown = make(x)
    assert (shown.tolist(), shown.stride(), shown.storage_offset()) == (values, strides, offset)
    if shown.numel() and shown.untyped_storage() is x.untyped_storage():
        x.fill_(-1)
        assert (shown == -1).all()


def test_resize_in_a_memory_format():
    x = torch.arange(16.0).reshape(1, 2, 2, 4)
    x.resize_(1, 2, 4, 2, memory_format=torch.channels_last)
    assert x.stride() == (16, 1, 4, 2)
    assert x[0, :, 0].tolist() == [[0, 2], [1, 3]]
    y = torch.arange(8.0).resize_as_(x[..., :1], memory_format=torch.channels_last)
    assert y.stride() == (8, 1, 2, 2)
    with pytest.raises(RuntimeError, match="rank 4 tensor"):
        x.resize_(16, memory_format=torch.channels_last)


def test_growing_memory_stays_shared():
    x = torch.arange(4.0)
    part, detached = x[1:], x.detach()
    part.resize_(6)
    assert part.tolist() == [1, 2, 3, 0, 0, 0] and x.untyped_storage().nbytes() == 28
    part[0] = 9
    detached[3] = 7
    assert (x.tolist(), part.tolist()) == ([0, 9, 2, 7], [9, 2, 7, 0, 0, 0])
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 0"):
        x.tolist()
    x.untyped_storage().resize_(16).copy_(torch.ones(4).untyped_storage())
    assert x.tolist() == [1, 1, 1, 1]


def test_growing_memory_in_a_compiled_function():
    @torch.jit
    def grown(x):
        y = x * 1
        part = y[1:]
        part.resize_(3)
        part[2] = 5
        return y, part

    y, part = grown(torch.arange(3.0))
    assert (y.tolist(), part.tolist()) == ([0, 1, 2], [1, 2, 5])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.set_(3), TypeError, "invalid combination of arguments"),
        (lambda x: x.set_(torch.zeros(2, dtype=torch.int64)), RuntimeError, "Could not set tensor"),
        (
            lambda x: x.set_(torch.LongStorage(2)),
            RuntimeError,
            "Expected a Storage of type Float or an UntypedStorage",
        ),
        (lambda x: x.set_(x.storage(), -1, (2,), (1,)), RuntimeError, "invalid storage offset"),
        (lambda x: x.resize_(-1), RuntimeError, "negative"),
        (lambda x: x.resize_as_(3), TypeError, "argument 'the_template'"),
        (lambda x: x.__delitem__(0), TypeError, "Tensor does not support deleting items"),
    ],
)
def test_refused_memory(call, error, message):
    x = torch.arange(2.0)
    with pytest.raises(error, match=message):
        call(x)
    assert x.tolist() == [0, 1]


def test_as_strided_of_a_leaf_that_is_a_view():
    x = torch.arange(9.0).reshape(3, 3).t().requires_grad_()
    windows = x.as_strided((2, 2), (1, 2), 1)
    windows.sum().backward()
    assert windows.tolist() == [[1, 3], [2, 4]] and windows.grad_fn.name() == "AsStridedBackward0"
    assert x.grad.tolist() == [[0, 1, 0], [1, 1, 0], [1, 0, 0]]
    y = torch.arange(9.0)[::2].requires_grad_()
    with pytest.raises(RuntimeError, match="they have no history"):
        y.as_strided((3,), (1,), 0)


def test_as_strided_of_a_view_in_another_dtype():
    z = tensor([1 + 2j, 3 + 4j], requires_grad=True)
    parts = torch.view_as_real(z)[1].as_strided((3,), (1,), 1)
    parts.sum().backward()
    assert parts.tolist() == [2, 3, 4] and z.grad.tolist() == [1j, 1 + 1j]


def test_as_strided_scatter_follows_the_memory():
    x, src = torch.arange(9.0).reshape(3, 3).t(), torch.full((2, 2), 7.0)
    written = torch.as_strided_scatter(x, src, (2, 2), (1, 2), 3)
    assert written.tolist() == [[0, 7, 7], [1, 7, 7], [2, 7, 8]] and written.stride() == (1, 3)
    part = x.t()[1:]
    assert part.as_strided_scatter(src, (2, 2), (1, 2)).tolist() == [[7, 7, 7], [7, 7, 8]]


def test_complex_numbers_begin_at_even_offsets():
    x = torch.arange(12.0)
    assert torch.view_as_complex(x[2:6].view(2, 2)).tolist() == [2 + 3j, 4 + 5j]
    with pytest.raises(RuntimeError, match="storage_offset divisible by 2"):
        torch.view_as_complex(x[1:5].view(2, 2))


def test_capsules_of_dlpack_are_read_once():
    capsule = torch.arange(3.0).__dlpack__()
    assert torch.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="consumed only once"):
        torch.from_dlpack(capsule)


@pytest.mark.parametrize(
    ("view", "offset"),
    [
        (lambda: torch.arange(12.0)[1:3].view(torch.float64), 1),
        (lambda: torch.arange(12.0).reshape(3, 4)[:, 1:3].view(torch.complex64), 1),
        (lambda: torch.zeros(9, dtype=torch.uint8)[3:5].view(torch.int16), 3),
    ],
)
def test_a_view_as_wider_elements_begins_at_one_of_them(view, offset):
    message = rf"storage_offset\(\) must be divisible by 2 to view .* but got {offset}"
    with pytest.raises(RuntimeError, match=message):
        view()


def test_results_that_are_no_views():
    x = torch.arange(6.0).reshape(2, 3)
    results = {
        "quantile": torch.quantile(x, 0.5, 1),
        "several quantiles": torch.nanquantile(x, torch.tensor([0.25, 0.5]), 1),
        "einsum": torch.einsum("ij->", x),
        "empty_strided": torch.empty_strided((2, 2), (3, 1)),
        "stft": torch.stft(x.flatten(), 4, window=torch.ones(4), return_complex=True),
    }
    assert not [name for name, result in results.items() if result._is_view()]
    assert torch.einsum("ij->ji", x)._is_view()
    assert torch.einsum("ijk->kj", x[None]).stride() == (2, 1)


def test_a_scatter_that_begins_before_its_tensor():
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()
    source = torch.tensor([[7.0, 8.0], [9.0, 10.0]], requires_grad=True)
    result = torch.as_strided_scatter(x[1:], source, (2, 2), (4, 1), 2)
    # the first row of the source lands before the tensor, as in PyTorch
    assert result.tolist() == [[4, 5, 9, 10], [8, 9, 10, 11]]
    (result * torch.arange(8.0).reshape(2, 4)).sum().backward()
    # of the elements that are there: PyTorch's gradients are those of a scatter at offset 6
    assert x.grad.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [4, 5, 6, 7]]
    assert source.grad.tolist() == [[0, 0], [2, 3]]


# what PyTorch says of views of a complex tensor
NEGATIVES = {
    "imaginary part": (lambda z: z.imag, False),
    "of the conjugate": (lambda z: z.conj().imag, True),
    "real part": (lambda z: z.conj().real, False),
    "conjugated twice": (lambda z: z.conj().conj().imag, False),
    "slice": (lambda z: z.conj().imag[0], True),
    "transposed": (lambda z: z.conj().imag.t(), True),
    "detached": (lambda z: z.conj().imag.detach(), True),
    "reshaped": (lambda z: z.conj().imag.reshape(6), True),
    "copy": (lambda z: z.conj().imag.clone(), False),
    "product": (lambda z: z.conj().imag * 2, False),
    "resolved": (lambda z: z.conj().imag.resolve_neg(), False),
    "view of the negative": (lambda z: torch._neg_view(z.real), True),
    "negated twice": (lambda z: torch._neg_view(z.conj().imag), False),
    "conjugate": (lambda z: torch._conj(z), False),
}


@pytest.mark.parametrize("name", NEGATIVES)
def test_views_of_the_negative(name):
    function, expected = NEGATIVES[name]
    z = torch.tensor([[1 + 2j, 3 - 4j, 5j]] * 2)
    assert torch.is_neg(function(z)) is function(z).is_neg() is expected


def test_a_write_through_the_negative():
    x = torch.tensor([1.0, -2.0])
    view = torch._neg_view(x)
    view[0].add_(5)
    assert (x.tolist(), view.tolist()) == ([-4.0, -2.0], [4.0, 2.0])
    x.requires_grad_()
    (torch._neg_view(x * 1) * torch.tensor([2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [-2, -3]


def test_set_to_a_tensor_that_requires_grad():
    source, x = torch.ones(2, requires_grad=True), torch.zeros(3)
    with torch.no_grad():
        assert not x.set_(source).requires_grad
    assert x.set_(source).requires_grad and not x.is_leaf
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        (x * 2).sum().backward()


def test_the_order_of_dimensions_where_strides_fit_several():
    square, column = torch.zeros(2, 3).t(), torch.zeros(2, 1, 3, 3)
    assert square.dim_order(ambiguity_check=True) == (1, 0)
    assert torch.zeros(2, 1, 3).dim_order() == (0, 1, 2)
    for formats in (True, [torch.contiguous_format, torch.channels_last]):
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            column.dim_order(ambiguity_check=formats)
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
        column.dim_order(ambiguity_check="yes")


def test_a_resize_that_changes_nothing_is_no_write():
    x, versions = torch.ones(1), []
    for resize in (
        lambda: x.resize_(1, 2),
        lambda: x.resize_as_(torch.zeros(3)),
        lambda: x.resize_(3),
        lambda: x.resize_as_(torch.zeros(3)),
    ):
        resize()
        versions.append(x._version)
    assert versions == [1, 2, 2, 2]
