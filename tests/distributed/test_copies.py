"""Between compiled steps a process uses its copy of a parameter that all processes hold."""

import pytest
from distributed.processes import found

pytestmark = pytest.mark.slow


def test_uses_of_parameters_between_steps():
    """The next step takes the memory of the parameter, unless somebody still needs it."""
    differences = found("copies.py", processes=2)
    assert "returned nan values" in differences.pop("anomaly")
    assert len(differences) == 34
    assert {use: each for use, each in differences.items() if not each < 2e-6} == {}
