"""Functions that move elements: they are applied to data and mask alike."""

from __future__ import annotations

from ...names.missing import missing_in
from .core import attach, is_masked_tensor, values


def apply_passthrough(function, args, kwargs):
    """The result of a function of data and of masks, as masked tensors."""
    return _joined(*(function(*_parts(args, part), **kwargs) for part in (values, _mask)))


def _mask(tensor):
    return tensor.get_mask()


def _parts(value, part):
    if is_masked_tensor(value):
        return part(value)
    if type(value) in (list, tuple):
        return type(value)(_parts(item, part) for item in value)
    return value


def _joined(data, mask):
    if isinstance(data, list | tuple):
        parts = map(_joined, data, mask)
        return type(data)(parts)
    return attach(data, mask)


__getattr__ = missing_in(__name__)
