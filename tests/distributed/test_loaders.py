"""Processes that train together load their data by workers of their own."""

import numpy as np
import pytest
from distributed.processes import found

pytestmark = pytest.mark.slow


def test_workers_of_two_processes():
    first, second = found("loaders.py", processes=2)
    assert first["compilations"] == second["compilations"] == 0
    weight = np.zeros(2)
    for numbers in ([0, 2, 1, 3], [4, 6, 5, 7]):  # of both processes at one step
        x = np.repeat(np.float64(numbers), 2).reshape(4, 2)
        weight -= 1e-2 * 2 / 4 * (x @ weight - 1) @ x
    for method in ("fork", "spawn"):
        assert first[method][0] == [[0, 2], [4, 6]]
        assert second[method][0] == [[1, 3], [5, 7]]
        assert first[method][1] == second[method][1]
        np.testing.assert_allclose(first[method][1], [weight], rtol=1e-5)
