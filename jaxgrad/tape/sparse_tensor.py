"""The handle of a sparse tensor in coordinate format (COO).

A sparse tensor is a handle on its values: the array, the node, the `.grad`, the tangents and the
memory of a `SparseTensor` are those of a dense tensor of shape (elements, *dense sizes). It also
has the indices, a tensor of shape (sparse dimensions, elements), and the sizes. So the tape, the
engine, capture and aliases handle it as they handle its values, and a gradient of a sparse tensor
lies on its pattern.

An operator on a `SparseTensor` leaves the fast path of dispatch, which compares types, finds no
plan, and asks `jaxgrad.sparse` (`implementation`), which computes with `values_of(tensor)`.
"""

from __future__ import annotations

import functools

import jax

from ..core import device as devices
from ..core.aval import Size
from . import interception, torch_function
from .node import AccumulateGrad
from .tensor import (
    PLAIN_TENSORS,
    Tensor,
    current,
    edge_of,
    held,
    hold,
    is_concrete,
    leaf_state,
    wrap,
)

# inlined: the accessors of tape/tensor.py


class SparseTensor(Tensor):
    """A tensor of layout `sparse_coo`; `sparse_coo_tensor` and `Tensor.to_sparse` make it.

    >>> x = jaxgrad.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> x.layout, x.values()
    (torch.sparse_coo, tensor([2.]))
    """

    # `_part`: the values from which a pytree put it together; `_is_grad`: whether it shows the
    # `.grad` of a sparse leaf, which holds the values alone; `_kind`: the class of the values
    __torch_function__ = torch_function.disabled

    __slots__ = ("_coalesced", "_indices_held", "_is_grad", "_kind", "_part", "_sizes")

    dtype = property(lambda self: self._kind.dtype.fget(self))
    shape = property(lambda self: self._sizes)
    ndim = property(lambda self: len(self._sizes))
    layout = property(lambda self: devices.sparse_coo)
    is_sparse = property(lambda self: True)

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, a sparse tensor on the pattern of this one, or None."""
        gradient = gradient_of(self, Tensor.grad.fget(self))
        if gradient is not None:
            gradient._is_grad, gradient._kind = True, self._kind
        return gradient

    @grad.setter
    def grad(self, gradient):
        if gradient is not None and not isinstance(gradient, SparseTensor):
            raise RuntimeError(
                "assigned grad of a sparse tensor must be a sparse tensor, not one of layout "
                f"{getattr(gradient, 'layout', type(gradient).__name__)}"
            )
        if gradient is not None:
            self._check_assigned(gradient)
            implementation().check_assigned(self, gradient)
            gradient = values_for(self, gradient)
        if interception.grad is not None:
            interception.grad(self, True)
        leaf_state(self).grad = gradient

    @grad.deleter
    def grad(self):
        self.grad = None

    def _shown_gradient(self, gradient):
        return implementation().on_pattern(self, gradient)


class Padding:
    """Takes the place of `is_coalesced` for a tensor in a trace, where the number of elements is
    fixed: it has more elements than the same code would give outside.

    `present`: a tensor of bool, which elements it would have; the values of the other elements are
    0. `is_coalesced`: whether the present ones would be sorted and distinct; here they need not be
    sorted.
    """

    __slots__ = ("is_coalesced", "present")

    def __init__(self, present: Tensor, is_coalesced: bool):
        self.present, self.is_coalesced = present, is_coalesced

    def __bool__(self):
        return False  # what needs sorted and distinct indices has none


class Compression:
    """Takes the place of `is_coalesced` for a tensor in a compressed layout, whose elements are
    sorted and distinct.

    `indices`: where each row begins among the plain indices, or each column; `layout`: which.
    """

    __slots__ = ("indices", "layout")

    def __init__(self, indices: Tensor, layout: devices.layout):
        self.indices, self.layout = indices, layout


class CompressedTensor(SparseTensor):
    """A tensor of layout `sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`.

    Its values have shape (*batch, elements, *block, *dense sizes), its indices are the plain ones,
    and `_coalesced` is a `Compression`. Operators compute with it in coordinate format.
    """

    __slots__ = ()

    layout = property(lambda self: self._coalesced.layout)
    is_sparse = property(lambda self: False)


def is_sparse(value) -> bool:
    return isinstance(value, SparseTensor)


def is_compressed(value) -> bool:
    return isinstance(value, CompressedTensor)


def by_layout(method):
    """A method of dense tensors, taken from the class too: a call with a sparse tensor, as
    `Tensor.set_(x)`, goes to the method of its layout.
    """
    name = method.__name__

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if isinstance(self, SparseTensor):
            return getattr(self, name)(*args, **kwargs)
        return method(self, *args, **kwargs)

    return call


# the classes of dense tensors with a dtype of their own, which values have too
KINDS = set()

# the classes of the gradients of dense leaves that the engine carries as tensors
CARRIED = {SparseTensor}


# the module of the operators on sparse tensors (sparse/_dispatch.py)
_implementation = None


def implement_by(module):
    """Let a module of a layer above compute with sparse tensors."""
    global _implementation
    _implementation = module


def implementation():
    """The module of the operators on sparse tensors."""
    return _implementation


def sparse(values: Tensor, indices: Tensor, size, is_coalesced: bool) -> SparseTensor:
    """A sparse tensor that takes the place of `values` in the graph, with its memory.

    values: the result of an operator, or a tensor that requires no grad; indices: int64, of shape
    (sparse dimensions, elements); is_coalesced: whether the indices are sorted and distinct, or in
    a trace a `Padding`, or of a compressed layout a `Compression`.
    """
    current(values)
    implementation().prepare()
    tensor = object.__new__(_class_of(is_coalesced))
    for slot in ("_raw", "_aval", "_tracked", "_node", "_nr", "_leaf", "_alias", "_counter"):
        setattr(tensor, slot, getattr(values, slot))
    tensor._indices_held, tensor._sizes, tensor._coalesced = indices, Size(size), is_coalesced
    tensor._part, tensor._is_grad = None, False
    tensor._kind = type(values) if type(values) in KINDS else Tensor
    if interception.created is not None:
        interception.created(tensor)
    return tensor


def _class_of(is_coalesced):
    return CompressedTensor if isinstance(is_coalesced, Compression) else SparseTensor


def values_of(tensor: SparseTensor) -> Tensor:
    """The values as a dense tensor with the history, the memory and the tangents of `tensor`."""
    current(tensor)
    node, output_nr = edge_of(tensor) if tensor._tracked else (tensor._node, tensor._nr)
    values = wrap(held(tensor), tensor._aval, tensor._tracked, node, output_nr)
    values._leaf, values._alias, values._counter = tensor._leaf, tensor._alias, tensor._counter
    return in_kind(tensor, values)


def in_kind(tensor: SparseTensor, values: Tensor) -> Tensor:
    """Values in the class that those of a tensor have, and so in its dtype."""
    kind = getattr(tensor, "_kind", Tensor)  # a masked tensor has none
    if kind is not Tensor:
        values.__class__ = kind
    return values


def gradient_of(tensor, gradient):
    """The gradient of a tensor as users see it: that of a sparse one lies on its pattern.

    gradient: what the engine computed, for a sparse tensor of the shape of its values; or None.
    """
    if gradient is None or type(tensor) in PLAIN_TENSORS:
        return gradient
    shown = getattr(tensor, "_shown_gradient", None)
    return gradient if shown is None else shown(gradient)


def values_for(tensor, gradient):
    """A gradient of a tensor as the engine carries it; the inverse of `gradient_of`."""
    if not isinstance(tensor, SparseTensor):
        return gradient
    return implementation().at_pattern(tensor, gradient)


def drop_padding(tensors):
    """Drop the padding of tensors that a trace has made and whose indices have values by now."""
    for tensor in tensors:
        if isinstance(tensor, SparseTensor) and isinstance(tensor._coalesced, Padding):
            implementation().drop_padding(tensor)


# ---- in JAX's pytrees, and so in the arguments and results of compiled functions


def _flatten(tensor: SparseTensor):
    values, padding = tensor._part, tensor._coalesced
    known, rest = (tensor._sizes, padding), ()
    if isinstance(padding, Padding):
        known, rest = (tensor._sizes, ("padded", padding.is_coalesced)), (padding.present,)
    if isinstance(padding, Compression):
        known, rest = (tensor._sizes, ("compressed", padding.layout)), (padding.indices,)
    if tensor._aval is None:  # JAX's trees hold other leaves than tensors too
        return (held(tensor), tensor._indices_held, *rest), known
    current(tensor)
    is_old = values is not None and held(values) is held(tensor) and values._node is tensor._node
    if not is_old:
        values = values_of(tensor)
    return (values, tensor._indices_held, *rest), known


def _unflatten(known, children):
    values, indices, *present = children
    size, is_coalesced = known
    if present:
        kind, fact = is_coalesced
        is_coalesced = (Padding if kind == "padded" else Compression)(*present, fact)
    if isinstance(values, Tensor):
        # a leaf that is taken apart and put together is that leaf
        node = values._node
        leaf = node.variable if type(node) is AccumulateGrad else None
        if isinstance(leaf, SparseTensor) and held(leaf) is held(values):
            return leaf
        tensor = sparse(values, indices, size, is_coalesced)
        if isinstance(is_coalesced, Padding) and is_concrete(indices):
            return implementation().without_padding(tensor)
        tensor._part = values
        return tensor
    tensor = object.__new__(_class_of(is_coalesced))
    hold(tensor, values)
    tensor._aval, tensor._tracked, tensor._node, tensor._nr = None, False, None, 0
    tensor._leaf = tensor._alias = tensor._counter = None
    tensor._indices_held, tensor._part, tensor._is_grad = indices, None, False
    tensor._kind = Tensor
    tensor._sizes, tensor._coalesced = size, is_coalesced
    return tensor


for _class in (SparseTensor, CompressedTensor):
    jax.tree_util.register_pytree_node(_class, _flatten, _unflatten)
