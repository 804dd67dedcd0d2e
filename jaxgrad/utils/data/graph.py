"""The pipes that a pipe has elements of."""

from __future__ import annotations

from ...names.missing import missing_in


def traverse_dps(datapipe) -> dict:
    """The graph of a pipe: by its id the pipe, and the graphs of the pipes in its attributes.

    >>> data = jaxgrad.utils.data
    >>> pipe = data.datapipes.iter.IterableWrapper([1]).map(str)
    >>> ((same, inner),) = data.graph.traverse_dps(pipe).values()
    >>> same is pipe, len(inner)
    (True, 1)
    """
    return datapipe._graph()


def traverse(datapipe, only_datapipe: bool | None = None) -> dict:
    """The graph of a pipe, as `traverse_dps`."""
    return traverse_dps(datapipe)


__getattr__ = missing_in(__name__)
