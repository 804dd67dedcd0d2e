"""The extents that vary, from `dynamic_shapes` and `dynamic_axes`."""

from __future__ import annotations

from collections.abc import Mapping

from ..tape.pytree import is_tensor
from ._traced import Arguments, count_tensors


def extents_of(arguments: Arguments, names, dynamic_shapes, dynamic_axes) -> list[dict[int, str]]:
    """For each tensor a dict from the dimensions that vary to the names of their extents.

    names: of the tensors.
    """
    specs = _specs(arguments, dynamic_shapes)
    specs = [spec for value, spec in specs for spec in _flat(value, spec)]
    axes = dynamic_axes or {}
    return [
        _extents(name, tensor, spec if spec is not None else axes.get(name))
        for name, tensor, spec in zip(names, arguments.tensors, specs, strict=True)
    ]


def _specs(arguments, dynamic_shapes) -> list[tuple]:
    """Pairs of an argument and what `dynamic_shapes` says of it."""
    shapes = dynamic_shapes or {}
    if isinstance(shapes, Mapping):
        unknown = [*shapes.keys() - dict(arguments.pairs).keys()]
        if unknown:
            raise ValueError(
                f"dynamic_shapes names {unknown[0]!r}, which is no argument: "
                f"they are {[name for name, _ in arguments.pairs]}"
            )
        return [(value, shapes.get(name)) for name, value in arguments.pairs]
    if len(shapes) != len(arguments.pairs):
        raise ValueError(f"dynamic_shapes has {len(shapes)} of {len(arguments.pairs)} arguments")
    return [(value, spec) for (_, value), spec in zip(arguments.pairs, shapes, strict=True)]


def _flat(value, spec) -> list:
    """What is said of each tensor of a tree."""
    if is_tensor(value):
        return [spec]
    if spec is None:
        return [None] * count_tensors(value)
    keys = value.keys() if isinstance(value, Mapping) else range(len(value))
    return [part for key in keys for part in _flat(value[key], spec[key])]


def _extents(name, tensor, spec) -> dict[int, str]:
    if spec is None:
        return {}
    if not isinstance(spec, Mapping):
        is_axes = all(isinstance(axis, int) for axis in spec) and len(spec) < tensor.dim()
        spec = {axis: f"{name}_{axis}" for axis in spec} if is_axes else dict(enumerate(spec))
    extents = {}
    for axis, dim in spec.items():
        if not -tensor.dim() <= axis < tensor.dim():
            raise ValueError(f"{name} has {tensor.dim()} dimensions, and no dimension {axis}")
        axis %= tensor.dim()
        symbol = _symbol(dim, f"{name}_{axis}")
        if symbol:
            extents[axis] = symbol
    return extents


def _symbol(dim, name):
    """The name of an extent: of a `Dim`, or of the place if it has none; None if it is fixed."""
    if dim is None or isinstance(dim, int):
        return None
    if isinstance(dim, str):
        return dim
    kind = getattr(getattr(dim, "type", None), "name", None)  # Dim.AUTO, DYNAMIC, STATIC
    if kind:
        return None if kind == "STATIC" else name
    return dim.__name__
