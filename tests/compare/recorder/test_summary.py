"""Summaries of tensors: their distance is that of the tensors, or an estimate of it."""

import numpy as np
import pytest

import jaxgrad
from jaxgrad.compare.recorder.summary import of_array, summarize
from jaxgrad.compare.run import distance


def summary(values):
    array = np.asarray(values, dtype=np.float32)
    return of_array(array, "float32")


def test_the_distance_of_small_tensors_is_exact():
    generator = np.random.RandomState(0)
    first, second = generator.randn(2, 4, 8).astype(np.float32)
    expected = np.linalg.norm((first - second).astype(np.float64))
    assert distance(summary(first), summary(second)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("size", [33, 1000, 70_001])
def test_the_distance_of_large_tensors_is_estimated(size):
    generator = np.random.RandomState(size)
    first = generator.randn(size)
    second = first + 1e-3 * generator.randn(size)
    expected = np.linalg.norm(first - second)
    assert 0.5 < distance(of_array(first, "float64"), of_array(second, "float64")) / expected < 1.6


def test_a_transposed_matrix_differs_though_its_norm_is_equal():
    matrix = np.random.RandomState(1).randn(20, 20)
    first, second = of_array(matrix, "float64"), of_array(np.ascontiguousarray(matrix.T), "float64")
    assert first["norm"] == pytest.approx(second["norm"], rel=1e-12)
    expected = np.linalg.norm(matrix - matrix.T)
    assert distance(first, second) == pytest.approx(expected, rel=0.4)


def test_infinities_at_other_places_are_infinitely_far():
    assert distance(summary([1, np.inf, 2]), summary([1, np.inf, 5])) == 3
    assert distance(summary([1, np.inf, 2]), summary([np.inf, 1, 2])) == np.inf
    assert distance(summary([1, np.inf]), summary([1, -np.inf])) == np.inf
    assert distance(summary([1, np.nan]), summary([1, np.inf])) == np.inf


def test_other_shapes_are_infinitely_far():
    assert distance(summary([[1, 2]]), summary([1, 2])) == np.inf


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int64", "bool"])
def test_tensors_of_all_dtypes_have_summaries(dtype):
    tensor = jaxgrad.tensor([0.0, 1.0, 1.0]).to(getattr(jaxgrad, dtype))
    fields = summarize(tensor)
    assert (fields["dtype"], fields["shape"]) == (dtype, [3])
    assert (fields["norm"], fields["low"], fields["high"]) == (2**0.5, 0, 1)


def test_a_tensor_without_elements_has_a_summary():
    assert summarize(jaxgrad.zeros(0, 2))["norm"] == 0
