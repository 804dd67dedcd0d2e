"""The operators on sparse tensors by name.

An operator of the table with the tag `sparse` is the function of its name in one of the modules
here, which compose it of operators on values and indices.
"""

from __future__ import annotations

import functools

from .. import ops
from . import _arithmetic, _elements, _products, _reductions, _shapes

_MODULES = (_arithmetic, _elements, _products, _reductions, _shapes)


@functools.cache
def operator(name: str):
    """An operator on sparse tensors, which the tags of the table tell; None if it takes none."""
    tags = ops.library.tags(name)
    if "sparse" in tags:
        return next(vars(module)[name] for module in _MODULES if name in vars(module))
    is_elementwise = not tags.isdisjoint(("sparse_linear", "sparse_zero_to_zero"))
    return functools.partial(_elements.elementwise, name) if is_elementwise else None
