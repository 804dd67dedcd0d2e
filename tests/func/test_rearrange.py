"""`rearrange`: dots in parentheses, and refused names. The answers are PyTorch's."""

import pytest

import jaxgrad as torch


def test_dots_in_parentheses_are_merged():
    x = torch.arange(24).reshape(2, 3, 4)
    assert torch.func.rearrange(x, "a ... -> ... a").shape == (3, 4, 2)
    merged = torch.func.rearrange(x, "a ... -> (...) a")
    assert merged.shape == (12, 2) and merged[:2].tolist() == [[0, 12], [1, 13]]
    assert torch.func.rearrange(x, "a ... -> (a ...)").tolist() == list(range(24))


@pytest.mark.parametrize("pattern", ["a _b c -> a _b c", "a b_ c -> a b_ c"])
def test_underscores_begin_and_end_no_name(pattern):
    with pytest.raises(ValueError, match="Invalid axis identifier"):
        torch.func.rearrange(torch.ones(2, 3, 4), pattern)
