"""Operators on drawn numbers; tests/rules/test_random.py has the samplers themselves."""

from samples import Mask, T, samples_of

SAMPLES = [
    *samples_of("ops._fused_drop ops._native_drop", T(2, 3), Mask(2, 3), 1.5),
    *samples_of("ops._fused_drop ops._native_drop", T(0, 3), Mask(0, 3), 2.0),
]
