"""A few samples of each kind, until there are families."""

from samples import Dtype, Int, S, T, each

SAMPLES = [
    S("add", T(2, 3), T(3), alpha=2, complex=True),
    S("add", T(2, 3), T(2, 1), complex=True),
    S("add", T(), 1.5, complex=True),
    S("add", T(0, 3), T(3)),
    S("add", Int(3), Int(2, 1)),
    S("mul", T(2, 3), T(3, real=True), complex=True),
    S("mul", T(2, 3), T(3, constant=True)),
    *each("sin cos exp", T(2, 3), complex=True),
    S("sum", T(2, 3), complex=True),
    S("sum", T(2, 3), dtype=Dtype("float64")),
    S("sum", T(2, 3), dim=(0, 1), keepdim=True),
    S("abs", T(values=[0.0, 1.0]), kink=True),
    S("cat", [T(2, 3), T(1, 3)], dim=0),
    S("gather", T(3, 4), 1, Int(3, 2, high=4)),
]
