"""Drawn numbers of runs in double precision: the second run takes those of the first."""

import numpy as np

from jaxgrad.compare.recorder.doubling import SharedDraws

FIRST = [np.array([0.25, -1.5], np.float32), np.array([[3.0]], np.float32)]


def test_numbers_of_the_first_run_replace_those_that_differ_by_rounding(tmp_path):
    path = str(tmp_path / "draws")
    writer = SharedDraws(path, True)
    for numbers in FIRST:
        assert writer.exchanged(numbers) is numbers
    reader = SharedDraws(path, False)
    rounded = np.nextafter(FIRST[0], np.float32(9))
    assert np.array_equal(reader.exchanged(rounded), FIRST[0])
    others = np.array([[3.1]], np.float32)  # a fault, which is to be seen
    assert reader.exchanged(others) is others


def test_a_second_run_that_draws_more_keeps_its_numbers(tmp_path):
    path = str(tmp_path / "draws")
    SharedDraws(path, True).exchanged(FIRST[0])
    reader = SharedDraws(path, False)
    reader.exchanged(FIRST[0])
    assert reader.exchanged(FIRST[1]) is FIRST[1]


def test_numbers_of_another_shape_are_kept(tmp_path):
    path = str(tmp_path / "draws")
    SharedDraws(path, True).exchanged(FIRST[0])
    assert SharedDraws(path, False).exchanged(FIRST[1]) is FIRST[1]
