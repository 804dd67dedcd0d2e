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
    kind.__repr__ = _text
    # what PyTorch's classes have, which are sequences of structs in C
    kind.n_fields = kind.n_sequence_fields = len(fields)
    kind.n_unnamed_fields = 0
    return kind


def _text(results) -> str:
    parts = [f"{name}={part!r}" for name, part in zip(results._fields, results, strict=True)]
    return f"torch.return_types.{type(results).__name__}(\n" + ",\n".join(parts) + ")"
