"""Sizes: tuples of integers."""

import numpy as np
import pytest

import jaxgrad as torch


def test_elements_of_a_size_are_integers():
    size = torch.Size([0, True, torch.tensor(2), np.int64(3)])
    assert size == (0, 1, 2, 3) and {type(extent) for extent in size} == {int}
    assert torch.Size(iter([1, 2])) == torch.Size(torch.tensor([1, 2])) == (1, 2)


@pytest.mark.parametrize(
    ("extents", "kind"), [([1, 1.5], "float"), ([1, "a"], "str"), (torch.ones(2), "Tensor")]
)
def test_other_elements_are_refused(extents, kind):
    words = rf"torch.Size\(\) takes an iterable of 'int' \(item \d is '{kind}'\)"
    with pytest.raises(TypeError, match=words):
        torch.Size(extents)
