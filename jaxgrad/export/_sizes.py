"""The varying sizes of arguments that the user has not named."""

from __future__ import annotations

from ..tape.tensor import Tensor
from ..utils import _pytree as pytree
from .dynamic_shapes import Dim, Shapes, named_arguments, shapes_of


def open_shapes(target, args, kwargs) -> Shapes:
    """Shapes in which all sizes of the arguments vary that can."""
    arguments = named_arguments(target, args, kwargs)
    specs = pytree.tree_map(_spec, arguments)
    return shapes_of(target, args, kwargs, specs)


def _spec(leaf):
    if not isinstance(leaf, Tensor):
        return None
    return dict.fromkeys(range(leaf.ndim), Dim.AUTO)
