"""`map`: a function of each slice of tensors."""

from __future__ import annotations

from collections.abc import Callable

from ..capture.control_flow import scan
from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)


def map(f: Callable, xs, *args):
    """Return `f(x, *args)` for all slices `x` of dimension 0, stacked along a new dimension 0.

    f: returns a tensor or a tree of them, of the same shapes and dtypes for each slice. xs: a
    tensor or a tree of tensors of one size in dimension 0. args: what all calls get.

    In a trace `f` is traced once, for any number of slices; differentiation and errors are those of
    `scan`.

    >>> from jaxgrad._higher_order_ops import map
    >>> map(lambda x, y: x * y, jaxgrad.tensor([1, 2, 3]), jaxgrad.tensor([1, 10]))
    tensor([[ 1, 10],
            [ 2, 20],
            [ 3, 30]])
    """
    return scan(lambda nothing, x: (nothing, f(x, *args)), (), xs)[1]
