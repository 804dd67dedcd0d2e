"""Operators on sparse tensors by name, and gradients on their patterns, for
`jaxgrad.tape.sparse_tensor`.
"""

from __future__ import annotations

import functools

from .. import ops
from ..frontend.methods import METHOD_CLASSES
from ..storage.alias import assign, detached
from ..storage.inplace_check import check_fit, permit
from ..tape.mode import RECORD, current_mode
from ..tape.sparse_tensor import Padding, SparseTensor, sparse, values_of
from ..tape.tensor import abstract_value, has_tangent
from . import _methods, _operators, _pattern


@functools.cache
def prepare():
    """Give the class of sparse tensors its methods, before the first of them."""
    _methods.install(METHOD_CLASSES)


def refuse(name: str):
    """Raise the NotImplementedError of an operator that takes no sparse tensors."""
    raise NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend: {name} takes "
        "no tensors of layout torch.sparse_coo here. Call it on tensor.values(), or on "
        "tensor.to_dense()"
    )


def call(name: str, args, kwargs):
    """Call an operator with a sparse tensor among its arguments."""
    operator = _operators.operator(name)
    if operator is None:
        refuse(name)
    return operator(*args, **kwargs)


def empty_like(tensor: SparseTensor, options):
    """A tensor of the same shape without elements; options: those of `zeros_like`."""
    result = _operators.zero(tensor)
    result = result.to(dtype=options.get("dtype") or result.dtype, device=options.get("device"))
    return result.requires_grad_() if options.get("requires_grad") else result


def write(written_as: str, name: str, args, kwargs):
    """Call an operator in place: `written_as` is `mul_` for `mul`."""
    target = args[0]
    if _operators.operator(name) is None:
        refuse(written_as)
    requires_grad = any(getattr(argument, "requires_grad", False) for argument in args)
    permit(written_as, target, requires_grad)
    result = call(name, args, kwargs)
    if isinstance(result, SparseTensor) is not isinstance(target, SparseTensor):
        refuse(written_as)
    if not isinstance(target, SparseTensor):
        check_fit(written_as, abstract_value(result), target)
        result = result.to(target.dtype)
        assign(target, result, current_mode.get() is RECORD)
        return target
    if result.shape != target.shape or result.dtype is not target.dtype:
        raise RuntimeError(
            f"{written_as}: the result has shape {list(result.shape)} and dtype {result.dtype}, "
            f"which does not fit into a sparse tensor of shape {list(target.shape)} and "
            f"{target.dtype}"
        )
    _methods.replace(target, result)
    return target


def on_pattern(tensor: SparseTensor, gradient):
    """A gradient of the values of a tensor as a sparse tensor.

    The function of a tensor depends on the sum of the elements at one index, so each of these
    elements has the gradient of the sum. The result has this gradient at one of them, or in a trace
    in equal parts at all of them.
    """
    if _operators.is_coalesced(tensor) and not tensor._coalesced:
        # no other element changes the function
        return _operators.like_or_nothing(tensor, gradient)
    known = None if tensor._coalesced else _pattern.known(tensor)
    if tensor._coalesced:
        is_followed = gradient.requires_grad or has_tangent(gradient)
        shown = ops.alias(gradient) if is_followed else detached(gradient)
        return sparse(shown, tensor._indices_held, tensor._sizes, True)
    if known is None:
        kept, first, _, present = _pattern.traced_distinct(tensor)
        values = _operators.at_present(ops._coo_ungroup(gradient, first), present)
        return sparse(values, kept, tensor._sizes, Padding(present, True))
    kept, first, _ = _pattern.distinct(known, _pattern.sparse_sizes(tensor))
    values = ops._coo_ungroup(gradient, _pattern.as_indices(first))
    return sparse(values, _pattern.as_indices(kept), tensor._sizes, True)


without_padding = _operators.without_padding


def drop_padding(tensor: SparseTensor):
    """Give a tensor the elements that it has besides padding."""
    _methods.give_pattern(tensor, without_padding(tensor))


def at_pattern(tensor: SparseTensor, gradient):
    """The elements of a gradient, sparse or dense, at the indices of a tensor."""
    if gradient.shape != tensor.shape:
        raise RuntimeError(
            f"Mismatch in shape: the gradient has shape {list(gradient.shape)} and the sparse "
            f"tensor has shape {list(tensor.shape)}"
        )
    if not isinstance(gradient, SparseTensor):
        return ops._coo_mask(gradient, tensor._indices_held)
    if _pattern.is_same(tensor, gradient) and gradient._coalesced:
        return values_of(gradient)
    return _operators.elements_at(gradient, tensor)
