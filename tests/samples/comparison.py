"""Comparisons, logic, bits, and tests of what a number is."""

from samples import Int, Mask, S, T, samples_of

COMPARISONS = "eq ne lt le gt ge"
SPECIAL = [0.0, -0.0, 1.0, float("nan"), float("inf"), -float("inf")]
INTEGERS = Int(values=[1, -2, 0, 7])

SAMPLES = [
    *samples_of(COMPARISONS, T(2, 3), T(3)),
    *samples_of(COMPARISONS, T(values=SPECIAL), T(values=SPECIAL)),
    *samples_of(COMPARISONS, T(values=SPECIAL), T(values=1.0)),
    *samples_of(COMPARISONS, T(values=SPECIAL), 1),
    *samples_of(COMPARISONS, T(), 0.3),
    *samples_of(COMPARISONS, Int(2, 3), Int(2, 1)),
    *samples_of(COMPARISONS, Int(3), 4.5),
    *samples_of(COMPARISONS, Int(3), T(2, 3)),
    *samples_of(COMPARISONS, Int(4), other=3),
    *samples_of(COMPARISONS, Mask(3), Mask(3)),
    *samples_of(COMPARISONS, T(0, 3), T(3)),
    *samples_of("eq ne", T(2, 3), T(2, 1), complex=True),
    *samples_of("eq ne", T(values=[1.0, 2.0]), 1, complex=True),
    S("eq", Int(values=[255, 1], dtype="uint8"), -1),
    *samples_of("logical_and logical_or logical_xor", T(values=SPECIAL), Mask(2, 1), complex=True),
    *samples_of("logical_and logical_or logical_xor", INTEGERS, T(values=[[0.0], [0.5]])),
    *samples_of("logical_and logical_or logical_xor", Mask(), Mask(0)),
    S("logical_not", T(values=SPECIAL), complex=True),
    *samples_of("logical_not bitwise_not", INTEGERS),
    *samples_of("logical_not bitwise_not", Mask(2, 2)),
    *samples_of("bitwise_and bitwise_or bitwise_xor", INTEGERS, Int(2, 1)),
    *samples_of("bitwise_and bitwise_or bitwise_xor", INTEGERS, Mask(4)),
    *samples_of("bitwise_and bitwise_or bitwise_xor", Mask(4), Mask(4)),
    *samples_of("bitwise_and bitwise_or bitwise_xor", INTEGERS, 5),
    *samples_of("bitwise_and bitwise_or bitwise_xor", 5, INTEGERS),
    *samples_of("bitwise_and bitwise_or bitwise_xor", Mask(3), True),
    S("bitwise_not", Int(3, dtype="uint8")),
    *samples_of("bitwise_left_shift bitwise_right_shift", INTEGERS, Int(2, 1, high=5)),
    *samples_of("bitwise_left_shift bitwise_right_shift", INTEGERS, 2),
    *samples_of("bitwise_left_shift bitwise_right_shift", 20, Int(3, high=5)),
    *samples_of("bitwise_left_shift bitwise_right_shift", INTEGERS, Int(values=[-1, 63, 64, 70])),
    *samples_of(
        "bitwise_left_shift bitwise_right_shift", Int(3, dtype="uint8"), Int(3, dtype="uint8")
    ),
    *samples_of(
        "Tensor.__lshift__ Tensor.__rshift__ Tensor.__rlshift__ Tensor.__rrshift__", INTEGERS, 1
    ),
    *samples_of("isposinf isneginf signbit", T(values=SPECIAL)),
    *samples_of("isposinf isneginf isreal signbit", INTEGERS),
    S("isreal", T(values=SPECIAL), complex=True),
    S("isclose", T(values=SPECIAL), T(values=SPECIAL), equal_nan=True),
    S("isclose", T(values=[1.0, 2.0, 3.0]), T(values=[[1.05], [2.0]]), 0.1, 0.0, complex=True),
    S("isclose", INTEGERS, Int(values=[2, -2, 1, 5]), atol=1),
    S("isclose", Mask(3), Mask(3)),
    S("isin", Int(2, 3), Int(4)),
    S("isin", T(values=SPECIAL), T(values=[1.0, 0.0, float("nan")]), invert=True),
    S("isin", INTEGERS, 7),
    S("isin", 7, INTEGERS),
    S("isin", Int(3), Int(0)),
    *samples_of("isnan isinf isfinite", T(values=SPECIAL), complex=True),
    *samples_of("isnan isinf isfinite", Int(3)),
    *samples_of("isnan isinf isfinite", Mask(3)),
    *samples_of("isnan isinf isfinite", T(0)),
]
