"""The damages that `make mutate` does to formulas."""

import pytest

from commands import mutate


@pytest.mark.parametrize(
    ("formula", "damaged"),
    [
        ("grad", ["-grad"]),
        (
            "grad * self.cos().conj()",
            ["-(grad * self.cos().conj())", "grad", "grad * self.cos()", "self.cos().conj()"],
        ),
        ("-grad / other", ["-(-grad / other)", "-grad", "grad / other", "other / -grad"]),
        ("a @ b", ["-(a @ b)", "a", "b", "b @ a"]),
        ("x + y - 1", ["-(x + y - 1)", "x + y + 1", "x - y - 1"]),
        (
            "where(c, a, b)",
            ["-where(c, a, b)", "where(a, c, b)", "where(b, a, c)", "where(c, b, a)"],
        ),
        ("add(a, b)", ["-add(a, b)"]),
        ("x.f(y)", ["-x.f(y)", "f(y, x)"]),
        ("x ** 2", ["-x ** 2", "2 ** x"]),
        ("a if c else b", ["-(a if c else b)", "b if c else a"]),
        ("(a, b)", ["(-a, b)", "(a, -b)"]),
    ],
)
def test_mutants_of_formulas(formula, damaged):
    assert sorted(set(mutate.mutants(formula))) == sorted(damaged)


def test_a_helper_of_several_results_has_no_sign():
    assert mutate.mutants("split(grad)", parts=2) == []
