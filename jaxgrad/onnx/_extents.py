"""The extents that vary, from `dynamic_shapes` and `dynamic_axes`."""

from __future__ import annotations

from collections.abc import Mapping

from ..export.dynamic_shapes import Dim, Shapes, shapes_by_name, shapes_of
from ._traced import Arguments


def extents_of(arguments: Arguments, names, dynamic_shapes, dynamic_axes) -> Shapes:
    """The extents of the tensors of a call.

    names: of the inputs, by which `dynamic_axes` knows them. Raises UserError for what does not
    fit.
    """
    if dynamic_shapes is None and dynamic_axes:
        places = dict(zip(names, arguments.names, strict=True))
        specs = {places.get(name, name): _axes(name, axes) for name, axes in dynamic_axes.items()}
        return shapes_by_name(dict(zip(arguments.names, arguments.tensors, strict=True)), specs)
    shapes = _with_dims(dynamic_shapes)
    return shapes_of(arguments.model, arguments.args, arguments.kwargs, shapes)


def _axes(name, axes):
    """A list of dimensions names an extent for each."""
    named = axes if isinstance(axes, Mapping) else {axis: f"{name}_{axis}" for axis in axes}
    return _with_dims(named)


def _with_dims(spec):
    """A tree of what is said of dimensions, with a `Dim` for each name."""
    if isinstance(spec, str):
        return Dim(spec)
    if isinstance(spec, Mapping):
        return {key: _with_dims(part) for key, part in spec.items()}
    if isinstance(spec, tuple | list):
        return type(spec)([*map(_with_dims, spec)])
    return spec
