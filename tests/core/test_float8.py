"""Numbers of 8 bits: stored and converted as PyTorch does, and refused by arithmetic."""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad

NAMES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
# with its halves between two numbers, ends, and beyond them
VALUES = (
    *(1.0, 0.3, 3.3, 448.0, 449.0, 464.0, 480.0, 500.0, 57344.0, 61440.0, 1e6, float("inf")),
    *(float("nan"), 1e-3, 2.0**-9, 2.0**-10, 2.0**-16, 2.0**-17, 240.0, 247.9, 250.0, 1.5),
)
SIGNED = (0.0, -0.0, -1.5, -1e9, float("-inf"))


def dtypes(torch):
    return [getattr(torch, name) for name in NAMES]


@pytest.mark.slow
@as_torch
def test_conversion_to_8_bits(torch):
    answers = []
    for dtype in dtypes(torch):
        values = VALUES if dtype is torch.float8_e8m0fnu else VALUES + SIGNED
        x = torch.tensor(values, dtype=torch.float64)
        answers.append(
            [
                x.float().to(dtype).double().tolist(),
                x.to(dtype).double().tolist(),
                x.bfloat16().to(dtype).float().tolist(),
                torch.arange(1, 5).to(dtype).int().tolist(),
                torch.tensor([1.0, 500.0], dtype=dtype).float().tolist(),
                torch.ones(2).to(torch.float16).to(dtype).to(torch.bool).tolist(),
                torch.empty(2, dtype=dtype).copy_(torch.tensor([2.0, 1e9])).float().tolist(),
            ]
        )
    return answers


@as_torch
def test_numbers_of_8_bits_are_known(torch):
    answers = []
    for dtype in dtypes(torch):
        limits = torch.finfo(dtype)
        answers.append(
            [
                repr(dtype),
                dtype.itemsize,
                dtype.is_floating_point,
                dtype.is_complex,
                dtype.is_signed,
                limits.bits,
                limits.max,
                limits.min,
                limits.tiny,
                limits.resolution,
                limits.dtype,
                repr(torch.tensor([1.0, 2.0]).to(dtype)),
                torch.promote_types(dtype, dtype) is dtype,
                torch.can_cast(dtype, torch.float32),
                torch.can_cast(torch.float32, dtype),
                torch.can_cast(dtype, torch.int64),
                torch.result_type(torch.ones(2).to(dtype), 1.0) is dtype,
                error(lambda dtype=dtype: dtype.to_complex(), words="Unknown Complex ScalarType"),
            ]
        )
    return answers


@pytest.mark.slow
@as_torch
def test_operators_that_move_numbers_of_8_bits(torch):
    answers = []
    for dtype in dtypes(torch)[:4]:
        y = torch.tensor([1.0, 2.0, 3.0, 4.0]).to(dtype)
        results = [
            y.reshape(2, 2),
            y[1:3],
            y[torch.tensor([0, 2])],
            y.clone(),
            torch.cat([y, y]),
            torch.stack([y, y]),
            y.t(),
            y.roll(1),
            y.repeat(2),
            y.expand(2, 4),
            y.unbind()[1],
            torch.where(y.float() > 1, y, y),
            y.index_select(0, torch.tensor([3])),
            y.diag(),
            torch.nn.functional.embedding(torch.tensor([1]), y.reshape(2, 2)),
            torch.nn.functional.pad(y, (1, 1)),
            torch.zeros_like(y),
            torch.full_like(y, 2),
            torch.ones(2, dtype=dtype),
            torch.eye(2, dtype=dtype),
            y.clone().fill_(3.0),
            y.clone().zero_(),
            y.index_put((torch.tensor([0]),), y[1]),
            y.abs(),
            y.mul(y),
        ]
        tests = [y == y, y != y, y.isnan(), y.any(), y.all(), y[2].item(), y.tolist()]
        assert all(result.dtype is dtype for result in results)
        answers.append([[result.float() for result in results], tests])
    return answers


@as_torch
def test_operators_that_refuse_numbers_of_8_bits(torch):
    y = torch.tensor([1.0, 2.0]).to(torch.float8_e5m2)
    words = "not implemented for 'Float8_e5m2'"
    calls = [
        lambda: y + y,
        lambda: y + 1.0,
        lambda: -y,
        lambda: y < y,
        lambda: y.sum(),
        lambda: y.max(),
        lambda: y.exp(),
        lambda: y.mean(),
        lambda: y.sort(),
        lambda: y.pow(2),
        lambda: y.relu(),
        lambda: torch.softmax(y, 0),
        lambda: y.round(),
        lambda: y.clamp(0, 1),
        lambda: y.add_(1),
        lambda: y.cumsum(0),
        lambda: y.argmax(),
        lambda: y.norm(),
        lambda: y.topk(1),
        lambda: torch.arange(3, dtype=y.dtype),
        lambda: torch.rand(2, dtype=y.dtype),
        lambda: torch.randn(2, dtype=y.dtype),
        lambda: torch.linspace(0, 1, 3, dtype=y.dtype),
        lambda: y.uniform_(),
        lambda: torch.maximum(y, y),
        lambda: y.sqrt(),
    ]
    mixed = [
        lambda: y + torch.ones(2),
        lambda: torch.ones(2) * y,
        lambda: torch.promote_types(y.dtype, torch.int64),
        lambda: torch.promote_types(torch.float8_e4m3fn, y.dtype),
        lambda: torch.result_type(y, torch.ones(1)),
    ]
    refused = "Promotion for Float8 Types is not supported, attempted to promote"
    return [error(call, words=words) for call in calls], [error(c, words=refused) for c in mixed]


@as_torch("""
    tensor([2.0, 4.5])
    tensor([3.0, 3.0])
    'torch.float8_e5m2'
""")
def test_gradients_through_conversions_to_8_bits(torch):
    x = torch.tensor([1.0, 2.2], requires_grad=True)
    (x.to(torch.float8_e4m3fn).float() ** 2).sum().backward()
    leaf = torch.tensor([1.0, 2.0]).to(torch.float8_e5m2).requires_grad_()
    (leaf.float() * 3).sum().backward()
    return x.grad, leaf.grad.float(), repr(leaf.grad.dtype)


def test_compiled_conversions_and_jax():
    x = jaxgrad.tensor([1.0, 500.0, 2.2])
    back = jaxgrad.jit(lambda x: x.to(jaxgrad.float8_e4m3fn).float())
    assert back(x).tolist() == [1.0, 448.0, 2.25]
    array = x.to(jaxgrad.float8_e5m2).numpy()
    assert array.dtype.name == "float8_e5m2" and jaxgrad.from_numpy(array).float().tolist()[0] == 1
    with pytest.raises(TypeError, match="only floating-point types are supported as the default"):
        jaxgrad.set_default_dtype(jaxgrad.float8_e5m2)
    with pytest.raises(TypeError, match="only floating-point types are supported as the default"):
        jaxgrad.set_default_dtype(jaxgrad.float4_e2m1fn_x2)
    # for a mantissa of two bits; PyTorch says 0.125
    assert jaxgrad.finfo(jaxgrad.float8_e5m2fnuz).eps == 0.25


def test_integers_in_8_bits():
    narrow = jaxgrad.tensor([-128, -3, 5, 127], dtype=jaxgrad.int8)
    assert narrow.to(jaxgrad.float8_e4m3fn).float().tolist() == [-128.0, -3.0, 5.0, 128.0]
    wide = jaxgrad.tensor([-1000, 1000])
    assert wide.to(jaxgrad.float8_e4m3fn).float().tolist() == [-448.0, 448.0]


# the bytes that PyTorch gives
BYTES = {
    "products": (lambda x: x * x, [65, 126, 126, 72]),
    "matrices": (lambda x: (x[:, None] @ x[None, :])[0], [65, 126, 126, 68]),
    "linear": (lambda x: jaxgrad.nn.functional.linear(x[None, 2:], x[None, 2:])[0], [126]),
    "in place": (lambda x: x.clone().mul_(x), [65, 126, 126, 72]),
    "other dtype": (lambda x: x.to(jaxgrad.float8_e5m2).to(x.dtype), [60, 120, 126, 64]),
}


@pytest.mark.parametrize("name", BYTES)
def test_numbers_that_are_too_large_become_the_largest(name):
    function, expected = BYTES[name]
    x = jaxgrad.tensor([1.5, 300.0, 448.0, 2.0]).to(jaxgrad.float8_e4m3fn)
    assert function(x).view(jaxgrad.uint8).tolist() == expected


def test_powers_of_two_alone():
    dtype = jaxgrad.float8_e8m0fnu
    for source in (jaxgrad.float32, jaxgrad.float64, jaxgrad.float16):
        x = jaxgrad.tensor([0.0, -1.0, 3.0, 0.3], dtype=source).to(dtype)
        assert x.view(jaxgrad.uint8).tolist() == [0, 127, 129, 125]
    assert x.zero_().view(jaxgrad.uint8).tolist() == [0] * 4
    flags = jaxgrad.tensor([True, False]).to(dtype)
    assert flags.view(jaxgrad.uint8).tolist() == [127, 0]
    assert jaxgrad.tensor([1e9, -1.0], dtype=dtype).view(jaxgrad.uint8).tolist() == [157, 127]


# the byte of a number that is too large
OVERFLOWS = {"float8_e4m3fn": 126, "float8_e4m3fnuz": 128, "float8_e5m2": 124}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_filling_with_a_number_that_does_not_fit(name):
    dtype = getattr(jaxgrad, name)
    x = jaxgrad.zeros(2, dtype=dtype)
    for call in (lambda: jaxgrad.full((2,), 1e9, dtype=dtype), lambda: x.fill_(-1e9)):
        with pytest.raises(RuntimeError, match="cannot be converted to type"):
            call()
    assert x.float().tolist() == [0, 0]
    x[:] = 1e9  # as a tensor of one element, which overflows
    assert x.view(jaxgrad.uint8).tolist() == [OVERFLOWS[name]] * 2
