"""`torch.testing.make_tensor`."""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad


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


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16", "complex64"])
def test_make_tensor_gives_no_view(dtype):
    tensor = jaxgrad.testing.make_tensor((2, 3), dtype=getattr(jaxgrad, dtype), device="cpu")
    assert not tensor._is_view() and tensor.stride() == (3, 1)
