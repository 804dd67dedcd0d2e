"""`torch.testing.assert_close`, with the texts of PyTorch 2.13 that programs match on."""

import numpy as np
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad
import jaxgrad as torch

close = torch.testing.assert_close


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]), {}),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]), {"equal_nan": True}),
        (torch.tensor([1, 2]), torch.tensor([1, 2]), {}),
        (torch.ones(2, dtype=torch.bfloat16), torch.full((2,), 1.01, dtype=torch.bfloat16), {}),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), {"check_dtype": False}),
        (1.0, 1, {"check_dtype": False}),
        (1 + 1e-8, 1.0, {}),
        (1j, 1j + 1e-9, {}),
        (None, None, {}),
        ([1, {"a": torch.ones(2)}], (1, {"a": np.ones(2, np.float32)}), {}),
        (torch.zeros(0), torch.zeros(0), {}),
        (float("inf"), float("inf"), {}),
        (torch.tensor([1.0]), torch.tensor([1.4]), {"rtol": 0, "atol": 0.5}),
    ],
)
def test_assert_close_passes(actual, expected, options):
    close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (torch.ones(2), torch.ones(3), r"attribute 'shape' do not match: torch.Size\(\[2\]\) != "),
        (
            torch.ones(2),
            torch.ones(2).double(),
            "'dtype' do not match: torch.float32 != ",
        ),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "Tensor-likes are not equal!"),
        (1.0, 2.0, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0"),
        (1, 2, "Scalars are not equal!"),
        (1, 1.0, r"\(d\)types do not match: <class 'int'> != <class 'float'>."),
        ([1, 2], [1], "The length of the sequences mismatch: 2 != 1"),
        ({"a": 1}, {"b": 1}, "The keys of the mappings do not match"),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 3.0]}, r"occurred for item \['a'\]\[1\]"),
        (None, 1, "None mismatch: None is not 1"),
        (float("nan"), float("nan"), "Scalars are not close!"),
        (torch.tensor([float("inf")]), torch.tensor([1.0]), "Greatest absolute difference: inf"),
    ],
)
def test_assert_close_fails(actual, expected, text):
    with pytest.raises(AssertionError, match=text):
        close(actual, expected)


def test_messages_name_the_greatest_differences():
    expected = torch.tensor([[1.0, 10.0], [100.0, 1000.0]])
    with pytest.raises(AssertionError) as told:
        close(expected + torch.tensor([[0.5, 0.0], [0.0, 3.0]]), expected)
    lines = str(told.value).splitlines()
    assert lines[0] == "Tensor-likes are not close!"
    assert lines[2] == "Mismatched elements: 2 / 4 (50.0%)"
    assert lines[3] == "Greatest absolute difference: 3.0 at index (1, 1) (up to 1e-05 allowed)"
    assert lines[4] == "Greatest relative difference: 0.5 at index (0, 0) (up to 1.3e-06 allowed)"


def test_assert_close_with_a_message():
    with pytest.raises(AssertionError, match=r"^mine$"):
        close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"^mine: Scalars are not equal!"):
        close(1, 2, msg=lambda text: f"mine: {text}")


def test_wrong_arguments():
    with pytest.raises(ValueError, match="both be unspecified, but got no atol"):
        close(1.0, 1.0, rtol=1e-3)
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        close("a", "a")


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int64", "int8", "uint8"])
def test_make_tensor(dtype):
    dtype, make = getattr(jaxgrad, dtype), jaxgrad.testing.make_tensor
    x = make(40, 50, dtype=dtype, device="cpu")
    numbers = jaxgrad.view_as_real(x) if dtype.is_complex else x
    least = 0 if dtype == jaxgrad.uint8 else -9
    assert x.shape == (40, 50) and x.dtype == dtype
    assert least <= numbers.min() and numbers.max() <= 9 and len(set(x.flatten().tolist())) > 8
    y = make((40, 50), dtype=dtype, device="cpu", low=0, high=2, exclude_zero=True)
    assert (y != 0).all()
    spread = make((3, 4), dtype=dtype, device="cpu", noncontiguous=True)
    assert spread.shape == (3, 4) and not spread.is_contiguous()


@as_torch
def test_errors_of_make_tensor(torch):
    make, options = torch.testing.make_tensor, {"dtype": torch.float32, "device": "cpu"}
    image = make((2, 3, 4, 5), memory_format=torch.channels_last, **options)
    return [
        list(image.stride()),
        make(2, requires_grad=True, **options).requires_grad,
        error(lambda: make(2, low=3, high=1, **options), words="`low` must be less than `high`"),
        error(lambda: make(2, low=float("nan"), **options), words="cannot be NaN"),
        error(
            lambda: make(2, dtype=torch.int64, device="cpu", requires_grad=True), words="integral"
        ),
        error(
            lambda: make(2, dtype=torch.uint8, device="cpu", low=300, high=400), words="supports"
        ),
    ]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@as_torch
def test_assert_allclose(torch):
    close, x = torch.testing.assert_allclose, torch.ones(2)
    for other in (x.double(), [1, 1], x + 5e-5):
        close(x, other)
    return [error(close, x, y, words="Tensor-likes are not close!") for y in (x * 2, x + 2e-4)]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16", "complex64"])
def test_make_tensor_gives_no_view(dtype):
    tensor = jaxgrad.testing.make_tensor((2, 3), dtype=getattr(jaxgrad, dtype), device="cpu")
    assert not tensor._is_view() and tensor.stride() == (3, 1)


def test_numbers_of_two_types_are_close_if_types_are_not_checked():
    close([1], [1.0], check_dtype=False)
