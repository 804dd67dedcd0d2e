"""One number for several dimensions, as torch.nn.modules.utils.

>>> from jaxgrad.nn.tuples import _pair
>>> _pair(3), _pair((1, 2))
((3, 3), (1, 2))
"""

from __future__ import annotations

import itertools

from ..functions.arguments import per_dimension


def _ntuple(count: int, name: str = "parse"):
    """A function that makes a tuple of an iterable, and a tuple of `count` times anything else."""

    def parse(value):
        return per_dimension(value, count)

    parse.__name__ = parse.__qualname__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values, count: int) -> tuple:
    """The elements in reverse order, each `count` times: padding by dimension as `F.pad` takes it.

    >>> from jaxgrad.nn.tuples import _reverse_repeat_tuple
    >>> _reverse_repeat_tuple((1, 2), 2)
    (2, 2, 1, 1)
    """
    repeated = [itertools.repeat(value, count) for value in reversed(values)]
    return tuple(itertools.chain(*repeated))
