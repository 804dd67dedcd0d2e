"""Splitting a dimension as a layer."""

import pytest

import jaxgrad
from jaxgrad import nn


@pytest.mark.parametrize("sizes", [2, (("a", 2), ("b", 2)), (2.0, 2)])
def test_sizes_that_are_no_ints(sizes):
    with pytest.raises(TypeError, match="unflattened_size must be tuple of ints"):
        nn.Unflatten(1, sizes)


def test_sizes_of_ints():
    assert nn.Unflatten(1, (2, -1))(jaxgrad.ones(3, 4)).shape == (3, 2, 2)
