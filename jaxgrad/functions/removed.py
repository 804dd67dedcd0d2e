"""Functions that PyTorch has removed, which raise."""

from __future__ import annotations

from collections.abc import Callable


def removed(name: str, instead: str) -> Callable:
    """Return a function that says what to call in its place."""

    def function(*arguments, **options):
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. torch.{name}: "
            f"call {instead}"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raise RuntimeError, as in PyTorch, which removed it: call {instead}."
    return function


lstsq = removed("lstsq", "torch.linalg.lstsq(A, B), which takes the matrix first")
solve = removed("solve", "torch.linalg.solve(A, B), which takes the matrix first")
matrix_rank = removed("matrix_rank", "torch.linalg.matrix_rank(A)")
