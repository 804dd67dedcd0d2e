"""Operators on sparse tensors by name, and gradients on their patterns, for
`jaxgrad.tape.sparse_tensor`.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import ops
from ..core import device as devices
from ..core import promotion
from ..frontend.methods import METHOD_CLASSES
from ..late import LateModule
from ..storage.alias import assign, detached
from ..storage.inplace_check import NOT_DIFFERENTIABLE, check_fit, give, permit
from ..tape.mode import RECORD, current_mode
from ..tape.sparse_tensor import (
    CompressedTensor,
    Padding,
    SparseTensor,
    is_compressed,
    sparse,
    values_of,
)
from ..tape.tensor import Tensor, abstract_value, has_tangent
from . import (
    _compressed,
    _compressed_construction,
    _construction,
    _elements,
    _layouts,
    _methods,
    _operators,
    _pattern,
    _refusals,
    _replacing,
)


@functools.cache
def prepare():
    """Give the class of sparse tensors its methods, before the first of them."""
    _methods.install(METHOD_CLASSES)
    LateModule("jaxgrad.sparse._compressed_methods").install()


def refuse(name: str):
    """Raise the error of an operator that takes no sparse tensors."""
    raise _refusals.refusal(name, devices.sparse_coo)


def call(name: str, args, kwargs):
    """Call an operator with a sparse tensor among its arguments."""
    if name == "narrow_copy":  # no copy of what `narrow` shows: it takes no negative start
        return args[0].narrow_copy(*args[1:], **kwargs)
    if name == "flatten" and _is_one_dim(*args, **kwargs):
        return args[0]
    if name in ops.library.copies:
        return _copy_of_view(name, *args, **kwargs)
    if any(map(_holds_compressed, (*args, *kwargs.values()))):
        return _compressed.call(name, args, kwargs)
    operator = _operators.operator(name)
    if operator is None:
        refuse(name)
    return operator(*args, **kwargs)


def _is_one_dim(tensor, start_dim=0, end_dim=-1) -> bool:
    """Whether `flatten` joins no dimensions."""
    start, end = (_elements.wrapped(dim, max(tensor.ndim, 1)) for dim in (start_dim, end_dim))
    return start == end and tensor.ndim > 0


def _copy_of_view(name: str, tensor, *args, **kwargs):
    """What `select_copy` and its kin return: a copy of what the method without the suffix does."""
    view = getattr(tensor, name.removesuffix("_copy"), None)
    if view is None:
        refuse(name)
    parts = view(*args, **kwargs)
    return parts.clone() if isinstance(parts, Tensor) else tuple(part.clone() for part in parts)


def _holds_compressed(value) -> bool:
    if isinstance(value, list | tuple):
        return any(map(is_compressed, value))
    return is_compressed(value)


def zeros_like(tensor: SparseTensor, options):
    """A tensor of the same shape without elements; options: those of `torch.zeros_like`."""
    result = _compressed.zero(tensor) if is_compressed(tensor) else _elements.zero(tensor)
    return _with(options, result)


def empty_like(tensor: SparseTensor, options):
    """What `zeros_like` gives, but a compressed tensor keeps its indices."""
    layout = options.get("layout") or tensor.layout
    if layout is not tensor.layout:
        raise RuntimeError(
            "empty_like with different sparse layout is not supported (self is "
            f"{_compressed.name_of(tensor)} but you requested {layout})"
        )
    if is_compressed(tensor):
        return like_with(Tensor.zero_, tensor, options)
    return zeros_like(tensor, options)


def like_with(fill, tensor: CompressedTensor, options):
    """Other values at the indices of a tensor, which `fill` writes to a tensor; options: those of
    `zeros_like`.
    """
    return _with(options, _compressed.like(tensor, fill(values_of(tensor).detach().clone())))


def _with(options, result):
    if options.get("memory_format") is not None:
        raise RuntimeError("memory format option is only supported by strided tensors")
    result = result.to(dtype=options.get("dtype") or result.dtype, device=options.get("device"))
    return result.requires_grad_() if options.get("requires_grad") else result


def make(name: str, size, dtype, options):
    """A tensor of a factory with a sparse `layout`, or with a sparse `out`: it has no elements."""
    out, layout = options.get("out"), options.get("layout")
    if name in ("full", "full_like", "ones"):
        raise RuntimeError(f"{name}(...) is not implemented for sparse layout")
    if name.endswith("_window"):
        raise RuntimeError(f"{name} is not implemented for sparse types, here {layout}")
    if name not in ("zeros", "empty", "zeros_like", "new_zeros", "new_empty"):
        refuse({"empty_like": "empty_strided"}.get(name, name))
    factory = _construction.sparse_coo_tensor
    if layout in _layouts.LAYOUTS:
        factory = functools.partial(_compressed_construction.empty, layout=layout)
    tensor = factory(
        size,
        dtype=dtype,
        device=options.get("device"),
        requires_grad=options.get("requires_grad", False),
    )
    if out is None:
        return tensor
    if not isinstance(out, SparseTensor) or layout not in (None, out.layout):
        raise RuntimeError(f"{name}(): out= has layout {out.layout}, and layout= is {layout}")
    permit(name, out, False)
    _replacing.write_pattern(out, tensor.to(out.dtype))
    return out


def write(written_as: str, name: str, args, kwargs):
    """Call an operator in place: `written_as` is `mul_` for `mul`."""
    target = args[0]
    if written_as == "zero_":
        return target.zero_(*args[1:], **kwargs)
    if _operators.operator(name) is None:
        refuse(written_as)
    requires_grad = any(getattr(argument, "requires_grad", False) for argument in args)
    permit(written_as, target, requires_grad)
    is_on_values = "sparse_zero_to_zero" in ops.library.tags(name)
    if is_on_values and isinstance(target, SparseTensor) and not _elements.is_coalesced(target):
        raise RuntimeError(f"{written_as} requires coalesced input")
    result = call(name, args, kwargs)
    if result.layout is not target.layout:
        result = _in_layout(written_as, result, target)
    if not isinstance(target, SparseTensor):
        check_fit(written_as, abstract_value(result), target)
        result = result.to(target.dtype)
        assign(target, result, current_mode.get() is RECORD)
        return target
    if result.shape != target.shape:
        raise RuntimeError(
            f"{written_as}: the result has shape {list(result.shape)}, which does not fit into a "
            f"sparse tensor of shape {list(target.shape)}"
        )
    _check_dtype(written_as, result, target)
    _replacing.replace(target, result.to(target.dtype), is_on_values)
    return target


def _in_layout(written_as, result, target):
    """A sparse result for a dense tensor that it is written into."""
    if isinstance(target, SparseTensor):
        raise RuntimeError(
            f"{written_as}: a result of layout {result.layout} does not fit into a tensor of "
            f"layout {target.layout}"
        )
    return result.to_dense()


def _check_dtype(name, result, target):
    if not promotion.can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"result type {result.dtype.scalar_type} can't be cast to the desired output type "
            f"{target.dtype.scalar_type}: {name} keeps the dtype of the tensor it writes to"
        )


def write_out(name: str, args, kwargs, out):
    """Call an operator with `out=`, which gets the pattern of the result."""
    outs = out if isinstance(out, list | tuple) else [out]
    tensors = [one for one in (*args, *kwargs.values(), *outs) if isinstance(one, Tensor)]
    if current_mode.get() is RECORD and any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(f"{name}(): {NOT_DIFFERENTIABLE} Leave out=, or enter no_grad()")
    if isinstance(out, list | tuple):
        results = call(name, args, kwargs)
        return type(results)(
            *(give(name, one, part) for one, part in zip(results, out, strict=True))
        )
    permit(name, out, False)
    result = call(name, args, kwargs)
    if isinstance(result, SparseTensor) is not isinstance(out, SparseTensor):
        raise RuntimeError(
            f"{name}(): Expected out tensor to have layout {result.layout}, but got {out.layout}: "
            "Tensor should be sparse only if the result is"
        )
    _check_dtype(name, result, out)
    if not isinstance(out, SparseTensor):
        return give(name, result.to(out.dtype), out)
    if is_compressed(out):
        if result.layout is not out.layout:
            raise RuntimeError(f"{name}(): Expected out tensor to have layout {result.layout}")
        _replacing.write_pattern(out, result.to(out.dtype))
        return out
    dims = _pattern.sparse_dims(result), result.ndim - _pattern.sparse_dims(result)
    _replacing.check_resize(out, result.shape, *dims, may_shrink=True)
    _replacing.write_pattern(out, result.to(out.dtype))
    return out


def on_pattern(tensor: SparseTensor, gradient):
    """A gradient of the values of a tensor as a sparse tensor.

    The function of a tensor depends on the sum of the elements at one index, so each of these
    elements has the gradient of the sum. The result has this gradient at one of them, or in a trace
    in equal parts at all of them.
    """
    if _elements.is_coalesced(tensor) and not tensor._coalesced:
        # no other element changes the function
        return _elements.like_or_nothing(tensor, gradient)
    known = None if tensor._coalesced else _pattern.known(tensor)
    if tensor._coalesced:
        is_followed = gradient.requires_grad or has_tangent(gradient)
        shown = ops.alias(gradient) if is_followed else detached(gradient)
        return sparse(shown, tensor._indices_held, tensor._sizes, tensor._coalesced)
    if known is None:
        kept, first, _, present = _pattern.traced_distinct(tensor)
        values = _elements.at_present(ops._coo_ungroup(gradient, first), present)
        return sparse(values, kept, tensor._sizes, Padding(present, True))
    kept, first, _ = _pattern.distinct(known, _pattern.sparse_sizes(tensor))
    values = ops._coo_ungroup(gradient, _pattern.as_indices(first))
    return sparse(values, _pattern.as_indices(kept), tensor._sizes, True)


def with_values(tensor: SparseTensor, values: Tensor) -> SparseTensor:
    """Other values, which may be a leaf, at the indices of a tensor."""
    return _elements.like(tensor, ops._coo_tensor(values))


def merged_values(tensor: SparseTensor) -> Tensor:
    """The values of a tensor, those at equal indices added."""
    return values_of(_elements.merged(tensor))


without_padding = _elements.without_padding


def all_elements(tensor: SparseTensor) -> SparseTensor:
    """The tensor with an element at every index, 0 where it has none."""
    return (_compressed if is_compressed(tensor) else _elements).all_elements(tensor)


def drop_padding(tensor: SparseTensor):
    """Give a tensor the elements that it has besides padding."""
    _replacing.give_pattern(tensor, without_padding(tensor))


def _elements_of(gradient):
    return _compressed.as_coo(gradient) if is_compressed(gradient) else gradient


def check_assigned(tensor: SparseTensor, gradient: SparseTensor):
    """Raise RuntimeError for a gradient with elements where a tensor has none: its `.grad` holds
    the values at the indices of the tensor alone.
    """
    coordinates = [_compressed.as_coo(x) if is_compressed(x) else x for x in (tensor, gradient)]
    indices = [_pattern.known(x) for x in coordinates]
    if any(numbers is None for numbers in indices) or len(indices[0]) != len(indices[1]):
        return
    present, assigned = (np.unique(numbers, axis=1).T.tolist() for numbers in indices)
    extra = set(map(tuple, assigned)) - set(map(tuple, present))
    if extra:
        raise RuntimeError(
            "the .grad of a sparse tensor has elements at its indices alone, and the assigned "
            f"gradient has {len(extra)} others, such as {min(extra)}: keep it in a variable, or "
            "call sparse_mask"
        )


def at_pattern(tensor: SparseTensor, gradient):
    """The elements of a gradient, sparse or dense, at the indices of a tensor."""
    if gradient.shape != tensor.shape:
        raise RuntimeError(
            f"Mismatch in shape: the gradient has shape {list(gradient.shape)} and the sparse "
            f"tensor has shape {list(tensor.shape)}"
        )
    if is_compressed(tensor):
        return _compressed.at_pattern(tensor, gradient)
    gradient = _elements_of(gradient)
    if not isinstance(gradient, SparseTensor):
        return ops._coo_mask(gradient, tensor._indices_held)
    if _pattern.is_same(tensor, gradient) and gradient._coalesced:
        return values_of(gradient)
    return _elements.elements_at(gradient, tensor)
