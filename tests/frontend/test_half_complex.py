"""Tensors of complex32: PyTorch's values, dtypes and texts; gradients against complex64."""

import copy
import io
import pickle

import numpy as np
import pytest

import jaxgrad as torch

VALUES = [1 + 2j, 3.3 - 4.7j, 0.1]
HELD = [1 + 2j, 3.30078125 - 4.69921875j, 0.0999755859375]  # nearest numbers of float16


@pytest.fixture
def z():
    return torch.tensor(VALUES, dtype=torch.complex32)


def test_elements_are_rounded_to_half_precision(z):
    assert z.dtype is torch.complex32 is torch.chalf
    assert z.tolist() == HELD
    assert (z.element_size(), z.nbytes, z.type()) == (4, 12, "torch.ComplexHalfTensor")
    assert (z * 1.5).tolist()[1] == 4.953125 - 7.046875j
    assert torch.full((), 70000j, dtype=torch.complex32).item().imag == float("inf")


DTYPES = [
    (lambda z: z + z, "complex32"),
    (lambda z: z * 2, "complex32"),
    (lambda z: z * torch.ones(()), "complex32"),
    (lambda z: z * torch.ones(3).half(), "complex32"),
    (lambda z: z * torch.ones(3), "complex64"),
    (lambda z: z * torch.ones(3, dtype=torch.bfloat16), "complex64"),
    (lambda z: z * torch.ones(3, dtype=torch.float64), "complex128"),
    (lambda z: torch.cat([z, torch.ones(1)]), "complex64"),
    (lambda z: torch.ones(3).half() * 1j, "complex32"),
    (lambda z: torch.complex(torch.ones(2).half(), torch.ones(2).half()), "complex32"),
    (lambda z: torch.view_as_complex(torch.ones(2, 2).half()), "complex32"),
    (lambda z: torch.ones(3).chalf(), "complex32"),
    (lambda z: torch.ones(3).to(z), "complex32"),
    (lambda z: z.to(torch.complex64), "complex64"),
    (lambda z: z.cfloat(), "complex64"),
    (lambda z: z.float(), "float32"),
    (abs, "float16"),
    (lambda z: z.real, "float16"),
    (lambda z: torch.view_as_real(z), "float16"),
    (lambda z: z.isnan(), "bool"),
    (lambda z: z.new_zeros(2), "complex32"),
    (lambda z: torch.zeros_like(z), "complex32"),
    (lambda z: z.unsqueeze(0).expand(2, 3), "complex32"),
    (lambda z: torch.sum(z, dtype=torch.complex64), "complex64"),
]


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize(("function", "dtype"), DTYPES)
def test_dtypes_of_results(z, function, dtype):
    assert function(z).dtype is getattr(torch, dtype)


def test_promotion():
    assert torch.promote_types(torch.complex32, torch.bfloat16) is torch.complex64
    assert torch.promote_types(torch.complex32, torch.int8) is torch.complex32
    assert torch.result_type(torch.ones(2).half(), 1j) is torch.complex32
    assert torch.float16.to_complex() is torch.complex32
    assert torch.complex32.to_real() is torch.float16


def test_text(z):
    assert repr(z[:2]) == "tensor([1.0000+2.0000j, 3.3008-4.6992j], dtype=torch.complex32)"
    assert str(z[0]) == f"{z[0]!r}" == "tensor(1.+2.j, dtype=torch.complex32)"


def test_writes(z):
    view, out = z[:1], torch.empty(3, dtype=torch.complex32)
    view.fill_(2j)
    assert z[0].item() == 2j
    assert z.mul_(1.5).tolist()[1] == 4.953125 - 7.046875j
    assert torch.add(z, z, out=out) is out
    assert (out.dtype, out[0].item().imag) == (torch.complex32, 6.0)


def test_gradients(z):
    wide = z.to(torch.complex64).requires_grad_()
    (wide * wide).abs().sum().backward()
    leaf = z.clone().requires_grad_()
    (leaf * leaf).abs().sum().backward()
    assert leaf.grad.dtype is torch.complex32
    np.testing.assert_allclose(leaf.grad.tolist(), wide.grad.tolist(), rtol=2e-3)
    half = torch.ones(2, dtype=torch.float16, requires_grad=True)
    (half * 3j).abs().sum().backward()
    assert (half.grad.dtype, half.grad.tolist()) == (torch.float16, [3.0, 3.0])


def test_compiled_functions(z):
    compiled = torch.compile(lambda z: z * z + 1j)
    for _ in range(2):
        assert compiled(z).dtype is torch.complex32
        assert compiled(z).tolist() == (z * z + 1j).tolist()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda z: z.numpy(), TypeError, "unsupported ScalarType ComplexHalf"),
        (lambda z: z[0].view(torch.int16), RuntimeError, r"cannot be 0 to view ComplexHalf"),
        (lambda z: z[::2].view(torch.int16), RuntimeError, r"stride\(-1\) must be 1 to view"),
        (lambda z: z.view(torch.float64), RuntimeError, r"size\(-1\) must be divisible by 2"),
        (
            lambda z: torch.view_as_complex(z.real.clone().repeat(2)[1:5].view(2, 2)),
            RuntimeError,
            "must have a storage_offset divisible by 2",
        ),
        (lambda z: torch.ones(3).half().mul_(1j), RuntimeError, "can't be cast"),
    ],
)
def test_what_raises(z, call, error, words):
    with pytest.raises(error, match=words):
        call(z)


C = torch.tensor([[0j, 1 + 1j, 2 + 2j], [3 + 3j, 4 + 4j, 5 + 5j]], dtype=torch.complex32)
W = torch.tensor([1 - 2j] * 3, dtype=torch.complex32)
SQUARES = [[0j, 2j, 8j], [18j, 32j, 50j]]
DOUBLE = [[0j, 2 + 2j, 4 + 4j], [6 + 6j, 8 + 8j, 10 + 10j]]
PRODUCTS = [[0j, 3 - 1j, 6 - 2j], [9 - 3j, 12 - 4j, 15 - 5j]]


def of_squares(x):
    return (x * x.conj()).real.float().sum()


# PyTorch's answers
MAPPED = {
    "product": (lambda: torch.vmap(lambda x: x * x)(C), SQUARES),
    "dimensions": (lambda: torch.vmap(lambda x: x * x, 1, 1)(C), SQUARES),
    "two levels": (lambda: torch.vmap(torch.vmap(lambda x: x * 2))(C), DOUBLE),
    "captured": (lambda: torch.vmap(lambda x: x * W)(C), PRODUCTS),
    "shared": (lambda: torch.vmap(lambda x, w: x * w, (0, None))(C, W), PRODUCTS),
    "conversion": (lambda: torch.vmap(lambda x: x.to(torch.complex32))(C.real) * 2, C.real * 2),
    "zeros_like": (lambda: torch.vmap(torch.zeros_like)(C) + C, C),
    "in place": (lambda: torch.vmap(lambda x: x.mul_(2))(C.clone()), DOUBLE),
    "gradient inside": (lambda: torch.vmap(torch.func.grad(of_squares))(C), DOUBLE),
    "gradient": (lambda: torch.func.grad(lambda x: torch.vmap(of_squares)(x).sum())(C), DOUBLE),
    "tangent": (
        lambda: torch.func.jvp(torch.vmap(lambda x: x * x), (C,), (C,))[1] / 2,
        SQUARES,
    ),
    "a constant derivative": (
        lambda: torch.func.jvp(torch.func.grad(lambda x: x.real.float().sum()), (C,), (C,))[1],
        [[0j] * 3] * 2,
    ),
    "tangent inside": (
        lambda: torch.vmap(lambda x: torch.func.jvp(lambda y: y * y, (x,), (x,))[1])(C) / 2,
        SQUARES,
    ),
}


@pytest.mark.parametrize("name", MAPPED)
def test_vmap(name):
    call, expected = MAPPED[name]
    result = call()
    assert result.dtype is torch.complex32
    assert result.tolist() == (
        expected.tolist() if isinstance(expected, torch.Tensor) else expected
    )


def test_vmap_to_another_dtype():
    wide = torch.vmap(lambda x: x.to(torch.complex64))(C)
    parts = torch.vmap(lambda x: x.real * 2)(C)
    assert (wide.dtype, parts.dtype) == (torch.complex64, torch.float16)
    assert wide.tolist() == C.tolist() and parts.tolist() == (C.real * 2).tolist()


def test_the_complex_form_of_a_default_dtype():
    torch.set_default_dtype(torch.float16)
    try:
        for x in (torch.tensor(2j), torch.tensor([1]) * 2j):
            assert x.dtype is torch.complex32
            assert x.sum().item() == 2j
        assert torch.full((1,), 2j).dtype is torch.complex64  # as in torch 2.13
        x = torch.where(torch.tensor([True, False]), torch.tensor([3, 4]), 1 + 2j)
        assert x.dtype is torch.complex32 and x.tolist() == [3, 1 + 2j]
        assert torch.get_default_dtype() is torch.float16
    finally:
        torch.set_default_dtype(torch.float32)


def test_tangents_have_the_dtype_of_their_tensors(z):
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(z, torch.ones(3, dtype=torch.complex32))
        primal, tangent = forward_ad.unpack_dual(dual * z)
    assert primal.dtype is tangent.dtype is torch.complex32 and tangent.tolist() == HELD


def test_gradients_have_the_dtype_of_their_inputs(z):
    z.requires_grad_()
    for result in (z.to(torch.complex128), z * z, z.abs()):
        weight = torch.ones_like(result)
        (gradient,) = torch.autograd.grad(result, z, weight)
        assert gradient.dtype is torch.complex32 and gradient.shape == z.shape
    (first,) = torch.autograd.grad(z * z, z, torch.ones_like(z), create_graph=True)
    (second,) = torch.autograd.grad(first, z, torch.ones_like(z))
    assert first.tolist() == [2 * value.conjugate() for value in HELD]
    assert second.dtype is torch.complex32 and second.tolist() == [2, 2, 2]


def test_real_results_are_written_to_half_precision(z):
    out = torch.zeros(0, dtype=torch.float16)
    assert torch.norm(z[:1], out=out) is out and out.tolist() == pytest.approx(5**0.5, rel=1e-3)
    out = torch.ones(1, dtype=torch.float16)
    assert torch.abs(z[:1] * 0, out=out) is out and out.tolist() == [0]


IN_PLACE = [
    (lambda x: x.eq_(1 + 0j), [1.0, 0.0]),
    (lambda x: x.ne_(torch.tensor(1 + 0j)), [0.0, 1.0]),
    (lambda x: torch.compile(lambda y: y.eq_(1 + 0j))(x), [1.0, 0.0]),
    (lambda x: torch.eq(torch.ones(2).half(), 1 + 0j, out=x), [1.0, 1.0]),
    (lambda x: torch.ne(x, 2 + 0j, out=x), [1.0, 0.0]),
]


@pytest.mark.parametrize("function, values", IN_PLACE)
def test_comparisons_with_complex_numbers_are_written(function, values):
    x = torch.tensor([1.0, 2.0], dtype=torch.float16)
    assert function(x) is x
    assert (x.dtype, x.tolist()) == (torch.float16, values)


@pytest.mark.parametrize("name", ["add_", "mul_", "div_", "pow_", "__iadd__", "copysign_", "lt_"])
@pytest.mark.parametrize("number", [1 + 2j, torch.tensor(1 + 2j)])
def test_complex_results_are_not_written_to_real_tensors(name, number):
    x = torch.tensor([1.0, 2.0], dtype=torch.float16)
    with pytest.raises(RuntimeError, match=r"result type ComplexHalf can't|not implemented for"):
        getattr(x, name)(number)
    assert (x.dtype, x.tolist(), x._version) == (torch.float16, [1.0, 2.0], 0)


def test_a_leaf_that_requires_grad_is_not_compared_in_place():
    x = torch.ones(2, dtype=torch.float16, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.eq_(1 + 2j)


def test_a_tensor_of_complex64_becomes_one_of_complex32(z):
    x = torch.tensor(VALUES, requires_grad=True)
    half = x.type_as(z)
    assert (half.dtype, half.tolist()) == (torch.complex32, HELD)
    assert x.dtype is torch.complex64
    half.real.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_result_types_of_numbers(z):
    assert torch.result_type(z, 1 + 2j) is torch.complex32
    assert torch.result_type(z, torch.ones(2)) is torch.complex64


def square():
    return torch.tensor([[1 + 2j, 3 - 4j], [7j, 9 - 1j]], dtype=torch.complex32)


# what PyTorch gives: the tensor after the view was doubled, then the view after 1 was added to the
# tensor, its strides and its offset
PARTS = {
    "real": (
        lambda z: z.real,
        [[2 + 2j, 6 - 4j], [7j, 18 - 1j]],
        ([[3.0, 7.0], [1.0, 19.0]], (4, 2), 0),
    ),
    "imag": (
        lambda z: z[:, 1].imag,
        [[1 + 2j, 3 - 8j], [7j, 9 - 2j]],
        ([-8.0, -2.0], (4,), 3),
    ),
    "transposed": (
        lambda z: z.t().real[1],
        [[1 + 2j, 6 - 4j], [7j, 18 - 1j]],
        ([7.0, 19.0], (4,), 2),
    ),
    "conjugate": (
        lambda z: z.conj().imag,
        [[1 + 4j, 3 - 8j], [14j, 9 - 2j]],
        ([[-4.0, 8.0], [-14.0, 2.0]], (4, 2), 1),
    ),
    "pairs": (
        lambda z: torch.view_as_real(z)[0],
        [[2 + 4j, 6 - 8j], [7j, 9 - 1j]],
        ([[3.0, 4.0], [7.0, -8.0]], (2, 1), 0),
    ),
    "numbers": (
        lambda z: z.view(torch.float16)[:, 1:],
        [[1 + 4j, 6 - 8j], [14j, 18 - 2j]],
        ([[4.0, 7.0, -8.0], [14.0, 19.0, -2.0]], (4, 1), 1),
    ),
    "complex numbers": (
        lambda z: torch.view_as_complex(torch.view_as_real(z))[1],
        [[1 + 2j, 3 - 4j], [14j, 18 - 2j]],
        ([1 + 14j, 19 - 2j], (1,), 2),
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_share_memory(part):
    view_of, written, shown = PARTS[part]
    z = square()
    view = view_of(z)
    view.mul_(2)
    assert z.tolist() == written
    z.add_(1)
    assert (view.tolist(), view.stride(), view.storage_offset()) == shown

    @torch.compile
    def doubled(z):
        view_of(z).mul_(2)

    z = square()
    doubled(z)
    assert z.dtype is torch.complex32 and z.tolist() == written


BYTES = [
    (lambda z: z.view(torch.int32), [[1073757184, -1006616064], [1191182336, -1140832128]]),
    (lambda z: z.t().view(torch.int32), [[1073757184, 1191182336], [-1006616064, -1140832128]]),
    (lambda z: z[0].view(torch.int16), [15360, 16384, 16896, -15360]),
    (lambda z: z[0].view(torch.uint8), [0, 60, 0, 64, 0, 66, 0, 196]),
    (lambda z: z.view(torch.complex64).view(torch.complex32), [[1 + 2j, 3 - 4j], [7j, 9 - 1j]]),
]


@pytest.mark.parametrize(("view_of", "numbers"), BYTES)
def test_bytes_as_other_numbers(view_of, numbers):
    assert view_of(square()).tolist() == numbers


@pytest.mark.parametrize("dtype", ["float16", "int32", "uint8"])
def test_bytes_as_complex_numbers(dtype):
    numbers = torch.arange(8.0).half()
    view = numbers.view(getattr(torch, dtype)).view(torch.complex32)
    view[1:].mul_(1j)
    assert view.tolist() == [1j, -3 + 2j, -5 + 4j, -7 + 6j]
    assert numbers.tolist() == [0, 1, -3, 2, -5, 4, -7, 6]


def test_gradients_of_parts():
    z = square().requires_grad_()
    (z.real * z.imag).sum().backward()
    assert z.grad.tolist() == [[2 + 1j, -4 + 3j], [7, -1 + 9j]]
    pairs = torch.ones(2, 2, dtype=torch.float16, requires_grad=True)
    torch.view_as_complex(pairs * 2).imag.mul(3).sum().backward()
    assert pairs.grad.tolist() == [[0, 6], [0, 6]] and pairs.grad.dtype is torch.float16


def test_data_changes_the_dtype():
    x = torch.nn.Parameter(torch.ones(2))
    x.data = square()
    assert (x.dtype, x.tolist()) == (torch.complex32, square().tolist())
    assert repr(x[0, :1].detach()) == "tensor([1.+2.j], dtype=torch.complex32)"
    assert repr(x).startswith("Parameter containing:\ntensor([[1.+2.j")
    x.data = torch.ones(1)
    assert type(x) is torch.nn.Parameter and repr(x).endswith("tensor([1.], requires_grad=True)")
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        layer = torch.nn.Linear(2, 2).to(torch.complex32)
    assert layer.weight.dtype is layer.state_dict()["bias"].dtype is torch.complex32


def test_buffers_of_pairs():

    pairs = np.array([1, 2, -3, 0.5], np.float16).tobytes()
    x = torch.frombuffer(bytearray(pairs), dtype=torch.complex32)
    assert x.dtype is torch.complex32 and x.tolist() == [1 + 2j, -3 + 0.5j]
    last = torch.frombuffer(bytearray(pairs), dtype=torch.complex32, count=1, offset=4)
    assert last.tolist() == [-3 + 0.5j]


def of_layout(layout):
    """A matrix of complex32 whose elements are no numbers of float16 before they are rounded."""
    matrix = torch.tensor([[0.0, 0.1 + 3j], [0.0, 1000.3]])
    return matrix.to(torch.complex32).to_sparse(layout=layout)


LAYOUTS = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_sparse_tensors(layout):
    x = of_layout(layout)
    assert x.dtype is x.values().dtype is x.to_dense().dtype is x.detach().dtype is torch.complex32
    rounded = [0.0999755859375 + 3j, 1000.5]
    assert x.values().tolist() == rounded
    assert (x * 3).values().tolist() == [0.2998046875 + 9j, 3002.0]
    assert (x * 3).dtype is (x @ torch.eye(2).to(torch.complex32)).dtype is torch.complex32
    assert x.abs().dtype is torch.float16 and x.to(torch.complex64).dtype is torch.complex64
    assert torch.eye(2).to_sparse(layout=layout).chalf().dtype is torch.complex32
    assert "dtype=torch.complex32" in repr(x)
    zeros = torch.zeros(2, 2, dtype=torch.complex32, layout=layout)
    assert zeros.dtype is torch.complex32 and zeros._nnz() == 0


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_files_and_copies_of_sparse_tensors(layout):
    x, file = of_layout(layout), io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    for copied in (torch.load(file), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert copied.dtype is torch.complex32 and copied.layout is layout
        assert copied.to_dense().tolist() == x.to_dense().tolist()


def test_sparse_tensors_under_transforms():
    x = of_layout(torch.sparse_coo)
    mapped = torch.func.vmap(lambda row: row * 3)(x)
    assert mapped.dtype is torch.complex32 and mapped.layout is torch.sparse_coo
    assert mapped.to_dense().tolist() == [[0, 0.2998046875 + 9j], [0, 3002]]
    vectors = torch.eye(2).to(torch.complex32)
    products = torch.func.vmap(lambda vector: x @ vector)(vectors)
    assert products.dtype is torch.complex32
    assert products.tolist() == x.to_dense().T.tolist()
    compiled = torch.jit(lambda x: x * 3)(x)
    assert compiled.dtype is torch.complex32 and compiled.values()[1] == 3002
    leaf = of_layout(torch.sparse_coo).requires_grad_()
    (leaf.to_dense() * 2j).imag.sum().backward()
    assert leaf.grad.dtype is torch.complex32
    assert leaf.grad.to_dense().tolist() == [[0, 2], [0, 2]]


def test_normal_numbers_are_pytorchs():
    torch.manual_seed(0)
    drawn = torch.randn(12, dtype=torch.complex32)[-2:].tolist()
    assert drawn == [0.982421875 + 1.1220703125j, 0.6689453125 - 0.5966796875j]
    torch.manual_seed(0)
    drawn = torch.zeros(9, dtype=torch.complex32).normal_(1, 2)[-1].item()
    assert abs(drawn - (2.337890625 - 0.193115234375j)) < 2e-3
    assert torch.rand(1).item() == 0.17591017484664917
