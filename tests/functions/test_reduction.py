"""Refusals of the reductions that are composed of operators."""

import pytest

import jaxgrad as torch


@pytest.mark.parametrize("function", [torch.trapezoid, torch.cumulative_trapezoid])
@pytest.mark.parametrize(("values", "places"), [((2,), (3,)), ((2,), (1,)), ((2, 3), (4,))])
def test_trapezoids_need_a_place_for_every_value(function, values, places):
    with pytest.raises(RuntimeError, match="There must be one `x` value for each sample point"):
        function(torch.ones(values), torch.ones(places))
