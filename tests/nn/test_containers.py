"""Sequences of modules."""

import pytest

from jaxgrad import nn


def test_products_of_sequences_share_their_modules():
    net = nn.Sequential(nn.ReLU(), nn.Linear(1, 1))
    for twice in (net * 2, 2 * net):
        assert [module is net[i % 2] for i, module in enumerate(twice)] == [True] * 4
        assert len(list(twice.parameters())) == 2
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        net * 0
    with pytest.raises(TypeError, match="unsupported operand type"):
        net * 1.5


def test_bilinear_of_no_features():
    with pytest.raises(ValueError, match="in1_features must be > 0, but got 0"):
        nn.Bilinear(0, 1, 1)
