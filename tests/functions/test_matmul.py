"""Products that are composed of others."""

import pytest
from helpers.pytorch_answers import check_refusal, refusals

import jaxgrad

REFUSED = [
    (
        "torch.tensordot(zeros(2), zeros(3), ([0], [0]))",
        RuntimeError,
        "contracted dimensions need to match, but first has size 2 in dim 0 and second has size 3",
    ),
    (
        "torch.linalg.multi_dot([zeros(2, 3), zeros(2, 3)])",
        RuntimeError,
        "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied",
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


def test_chain_matmul_is_deprecated():
    x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.warns(UserWarning, match="chain_matmul is deprecated"):
        product = jaxgrad.chain_matmul(x, x, x)
    assert (product == x @ x @ x).all()


def test_out_of_norms_and_products():
    x, out = jaxgrad.tensor([3.0, 4.0]), jaxgrad.empty(())
    assert jaxgrad.norm(x, out=out) is out and out.item() == 5
    assert jaxgrad.linalg.vector_norm(x, 1, out=out) is out and out.item() == 7
    target = jaxgrad.empty(2, 2)
    assert jaxgrad.tensordot(x, x, 0, out=target)[1, 1].item() == 16


def scaled(*shape, dtype=jaxgrad.float8_e4m3fn):
    numbers = jaxgrad.arange(float(shape[0] * shape[1])).reshape(shape)
    return (numbers % 7 - 3).to(dtype)


def test_scaled_products_of_narrow_floats():
    """The values are exact: small integers, and factors that are powers of 2."""
    a, b, half, two = scaled(2, 3), scaled(3, 4), jaxgrad.tensor(0.5), jaxgrad.tensor(2.0)
    product = a.float() @ b.float()
    result = jaxgrad._scaled_mm(a, b, half, two * 4, out_dtype=jaxgrad.float32)
    assert result.tolist() == (product * 4).tolist()
    rows, columns = jaxgrad.tensor([[1.0], [2.0]]), jaxgrad.tensor([[1.0, 2.0, 4.0, 8.0]])
    bias = jaxgrad.ones(4, dtype=jaxgrad.bfloat16)
    result = jaxgrad._scaled_mm(a, b, rows, columns, bias, out_dtype=jaxgrad.bfloat16)
    assert result.float().tolist() == (product * rows * columns + 1).tolist()
    assert jaxgrad._scaled_mm(a, b, half, half).dtype is jaxgrad.float8_e4m3fn
    result = jaxgrad._scaled_mm_v2(a, b, [half], [0], [0], [two], [0], [], None, jaxgrad.float32)
    assert result.tolist() == product.tolist()
    recipes = [rows], [1], [0], [columns], [1], [0]
    result = jaxgrad._scaled_mm_v2(a, b, *recipes, bias, jaxgrad.bfloat16)
    assert result.float().tolist() == (product * rows * columns + 1).tolist()


def test_scaled_products_by_kinds_of_scales():
    a = jaxgrad.tensor([[1.0, 2.0, -3.0], [0.5, 4.0, 8.0]]).to(jaxgrad.float8_e4m3fn)
    b = jaxgrad.tensor([[1.0, 0.25], [2.0, -1.0], [3.0, 0.5]]).to(jaxgrad.float8_e4m3fn)
    half, two = jaxgrad.tensor(0.5), jaxgrad.tensor(2.0)
    F = jaxgrad.nn.functional
    whole, rows, plain = F.ScalingType.TensorWise, F.ScalingType.RowWise, F.SwizzleType.NO_SWIZZLE
    result = F.scaled_mm(a, b, half, whole, two, whole)
    # what PyTorch gives
    assert result.dtype is jaxgrad.bfloat16 and result.tolist() == [[-4, -3.25], [32.5, 0.125]]
    scales = [jaxgrad.tensor([[1.0], [2.0]])], [jaxgrad.tensor([[2.0, 4.0]])]
    bias, dtype = jaxgrad.tensor([1.0, 2.0]), jaxgrad.float32
    result = F.scaled_mm(a, b, scales[0], [rows], scales[1], rows, [plain], plain, bias, dtype)
    assert result.dtype is dtype and result.tolist() == [[-7, -11], [131, 3]]
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        F.scaled_mm(a, b, half, rows, two, whole)


@pytest.mark.parametrize(
    ("recipes", "words"),
    [
        (([1.0], [0], [1], [1.0], [0], [0]), "CPU does not support swizzle"),
        (([1.0], [2], [0], [1.0], [2], [0]), "Invalid scaling configuration"),
        (([1.0], [0], [0], [1.0], [1], [0]), "Invalid scaling configuration"),
        (([[1.0, 1.0]], [0], [0], [1.0], [0], [0]), "scale_a must have 1 Float element"),
    ],
)
def test_errors_of_scaled_products_with_recipes(recipes, words):
    first, *middle, second, third, fourth = recipes
    first, second = [[jaxgrad.tensor(value) for value in scales] for scales in (first, second)]
    with pytest.raises(ValueError, match=words):
        jaxgrad._scaled_mm_v2(
            scaled(2, 3), scaled(3, 4), first, *middle, second, third, fourth, None, jaxgrad.float32
        )


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((scaled(2, 3), scaled(4, 4)), RuntimeError, "shapes cannot be multiplied .2x3 and 4x4."),
        ((scaled(2, 3)[0], scaled(3, 4)), RuntimeError, "mat1 must be a matrix"),
        ((scaled(2, 3).float(), scaled(3, 4)), ValueError, "Invalid scaling configuration"),
    ],
)
def test_errors_of_scaled_products(arguments, error, words):
    scale = jaxgrad.tensor(1.0)
    with pytest.raises(error, match=words):
        jaxgrad._scaled_mm(*arguments, scale, scale)
