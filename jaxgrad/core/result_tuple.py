"""Named tuples for the results of functions that have several, as torch.return_types."""

from __future__ import annotations

import functools
from collections import namedtuple


@functools.cache  # overloads of one operator share it
def result_tuple(name: str, fields: tuple[str, ...]) -> type:
    """A class of named tuples that prints as PyTorch's and is pickled by its name in
    `jaxgrad.return_types`.
    """
    kind = namedtuple(name, fields, module="jaxgrad.return_types")
    kind.__new__ = _new
    kind.__repr__ = _text
    kind.__reduce__ = _reduce
    # what PyTorch's classes have, which are sequences of structs in C
    kind.n_fields = kind.n_sequence_fields = len(fields)
    kind.n_unnamed_fields = 0
    return kind


def _new(kind, *parts):
    """A tuple of a sequence, which PyTorch's classes take, or of its elements, as of named tuples.
    A dict after the sequence stands in pickles.
    """
    is_sequence = len(parts) == 1 or (len(parts) == 2 and type(parts[1]) is dict)
    parts = tuple(parts[0] if is_sequence else parts)
    if len(parts) != len(kind._fields):
        raise TypeError(
            f"torch.return_types.{kind.__name__}() takes a {len(kind._fields)}-sequence "
            f"({len(parts)}-sequence given)"
        )
    return tuple.__new__(kind, parts)


def _reduce(results):
    return type(results), (tuple(results), {})


def _text(results) -> str:
    parts = [f"{name}={part!r}" for name, part in zip(results._fields, results, strict=True)]
    return f"torch.return_types.{type(results).__name__}(\n" + ",\n".join(parts) + ")"
