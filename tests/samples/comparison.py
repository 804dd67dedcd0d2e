"""Comparisons, logic, bits, and tests of what a number is."""

from samples import Int, Mask, S, T, each

COMPARISONS = "eq ne lt le gt ge"
SPECIAL = [0.0, -0.0, 1.0, float("nan"), float("inf"), -float("inf")]
INTEGERS = Int(values=[1, -2, 0, 7])

SAMPLES = [
    *each(COMPARISONS, T(2, 3), T(3)),
    *each(COMPARISONS, T(values=SPECIAL), T(values=SPECIAL)),
    *each(COMPARISONS, T(values=SPECIAL), T(values=1.0)),
    *each(COMPARISONS, T(values=SPECIAL), 1),
    *each(COMPARISONS, T(), 0.3),
    *each(COMPARISONS, Int(2, 3), Int(2, 1)),
    *each(COMPARISONS, Int(3), 4.5),
    *each(COMPARISONS, Int(3), T(2, 3)),
    *each(COMPARISONS, Int(4), other=3),
    *each(COMPARISONS, Mask(3), Mask(3)),
    *each(COMPARISONS, T(0, 3), T(3)),
    *each("eq ne", T(2, 3), T(2, 1), complex=True),
    *each("eq ne", T(values=[1.0, 2.0]), 1, complex=True),
    S("eq", Int(values=[255, 1], dtype="uint8"), -1),
    *each("logical_and logical_or logical_xor", T(values=SPECIAL), Mask(2, 1), complex=True),
    *each("logical_and logical_or logical_xor", INTEGERS, T(values=[[0.0], [0.5]])),
    *each("logical_and logical_or logical_xor", Mask(), Mask(0)),
    S("logical_not", T(values=SPECIAL), complex=True),
    *each("logical_not bitwise_not", INTEGERS),
    *each("logical_not bitwise_not", Mask(2, 2)),
    *each("bitwise_and bitwise_or bitwise_xor", INTEGERS, Int(2, 1)),
    *each("bitwise_and bitwise_or bitwise_xor", INTEGERS, Mask(4)),
    *each("bitwise_and bitwise_or bitwise_xor", Mask(4), Mask(4)),
    *each("bitwise_and bitwise_or bitwise_xor", INTEGERS, 5),
    *each("bitwise_and bitwise_or bitwise_xor", 5, INTEGERS),
    *each("bitwise_and bitwise_or bitwise_xor", Mask(3), True),
    S("bitwise_not", Int(3, dtype="uint8")),
    *each("isnan isinf isfinite", T(values=SPECIAL), complex=True),
    *each("isnan isinf isfinite", Int(3)),
    *each("isnan isinf isfinite", Mask(3)),
    *each("isnan isinf isfinite", T(0)),
]
