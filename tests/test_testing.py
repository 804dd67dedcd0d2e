"""`torch.testing.assert_close`, with the texts of PyTorch 2.13 that programs match on."""

import numpy as np
import pytest

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
        (1.0, 1, {}),
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
