"""The handle: a `Tensor` points to an immutable `jax.Array`, its abstract value and its node.

This module has the state of a handle, the properties that show it, and the functions by which the
rest of jaxgrad reads and replaces it. `frontend/methods.py` and the table add the other methods.
"""

from __future__ import annotations

import warnings
import weakref

import jax

from ..core import dtypes, spread, world
from ..core.aval import META, SPREAD, Aval, aval_of, has_numbers, seen_aval
from ..core.device import are_apart, device_of, may_differ
from ..core.meta_array import NO_DATA, ON_META
from ..core.pending import Pending, known, value_of
from ..core.pytorch_tensors import type_name
from . import handle_lock, interception, mode
from .asked_edge import find_edge
from .handle_lock import owner
from .mode import is_inference_mode_enabled
from .node import AccumulateGrad, Node, shown
from .noted_reads import history_of, noted_read
from .source_location import place_of_caller

# in place of a node: marks a tensor that was made in inference mode
INFERENCE_TENSOR = object()

# in place of a node: marks a tensor that a Function's forward computed from one that requires grad
DERIVED = object()

NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
    "attribute won't be populated "
    "during autograd.backward(). If you indeed want the .grad field to be populated for a "
    "non-leaf Tensor, use "
    ".retain_grad() on the non-leaf Tensor."
)

LEAVES_ONLY = "you can only change requires_grad flags of leaf variables."


def check_differentiable(tensor: Tensor, only: str = "Only"):
    """Raise RuntimeError for a tensor whose dtype has no derivatives."""
    if not tensor._aval.differentiable:
        raise RuntimeError(
            f"{only} Tensors of floating point and complex dtype can require gradients, not one of "
            f"{tensor.dtype}"
        )


class Tensor:
    """A multi-dimensional array with a gradient. `jaxgrad.tensor` and all operators make tensors.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = (
        # made when the user's code first sets an attribute of its own
        "__dict__",
        "__weakref__",
        # its place in a storage, and its version counter (storage/alias.py)
        "_alias",
        "_aval",
        "_counter",
        "_leaf",
        # the array, the node, its output number, and whether it requires grad: out of date after a
        # write to another alias, so call `current` before reading them
        "_node",
        "_nr",
        "_raw",
        "_tracked",
    )

    # makes numpy leave `array * tensor` to the tensor
    __array_priority__ = 1000

    @property
    def _array(self):
        array = self._value
        return computed(self) if type(array) is Pending else array

    @property
    def _value(self):
        # the array, or what is pending in its place
        value = current(self)._raw
        if owner.thread is None or not handle_lock.is_owned_by_another():
            return value
        with handle_lock.settled():
            return current(self)._raw

    @property
    def _grad_fn(self) -> Node | None:
        return current(self)._node

    @_grad_fn.setter
    def _grad_fn(self, node: None):
        if node is not None:
            raise RuntimeError("_grad_fn can be only set to None")
        self.detach_()

    @_grad_fn.deleter
    def _grad_fn(self):
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    _output_nr = property(lambda self: current(self)._nr)
    _requires_grad = property(lambda self: current(self)._tracked)

    @property
    def shape(self):
        """The extents, a `Size`, which is a tuple of ints.

        >>> jaxgrad.zeros(2, 3).shape
        torch.Size([2, 3])
        """
        return self._aval.shape

    @property
    def dtype(self):
        """The dtype of the elements.

        >>> jaxgrad.tensor([1, 2]).dtype
        torch.int64
        """
        return self._aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        >>> jaxgrad.zeros(2, 3).ndim
        2
        """
        return len(self._aval.shape)

    @property
    def requires_grad(self) -> bool:
        """Whether operators on this tensor are recorded. Settable on leaves; see `requires_grad_`.

        The setter raises RuntimeError for a value that is not a bool, and for a tensor that was
        computed.

        >>> x = jaxgrad.ones(2)
        >>> x.requires_grad = True
        >>> (x * 2).requires_grad
        True
        """
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool):
        if not isinstance(flag, bool):
            raise RuntimeError(f"requires_grad must be a bool, not {type(flag).__name__}")
        if flag and self.grad_fn is not None:
            raise RuntimeError(f"{LEAVES_ONLY} {self._origin()}, and requires grad by that")
        if flag:
            check_differentiable(self, "only")
        self.requires_grad_(flag)

    @requires_grad.deleter
    def requires_grad(self):
        raise RuntimeError("requires_grad must be a bool: set it to False in place of deleting it")

    def requires_grad_(self, requires_grad: bool = True):
        """Set whether operators on this leaf are recorded; returns the tensor itself.

        requires_grad: a bool. Raises TypeError for another type, RuntimeError to set it for a dtype
        that is not floating point or complex, or to clear it on a tensor that was computed.

        >>> jaxgrad.zeros(2).requires_grad_()
        tensor([0., 0.], requires_grad=True)
        """
        if not isinstance(requires_grad, bool):
            kind = type(requires_grad).__name__
            raise TypeError(
                f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}"
            )
        if not requires_grad and self.grad_fn is not None:
            raise RuntimeError(
                f"{LEAVES_ONLY} If you want to use a computed variable in a subgraph that doesn't "
                "require differentiation use var_no_grad = var.detach()."
            )
        if requires_grad and not self._aval.differentiable:
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients, or of complex dtype, "
                f"not one of {self.dtype}"
            )
        if requires_grad and self._grad_fn is INFERENCE_TENSOR:
            if not is_inference_mode_enabled():
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                    "allowed: use its clone()"
                )
            self._node = None  # now an ordinary leaf
        if requires_grad and self._node is DERIVED:
            self._node = None
        current(self)._tracked = requires_grad
        return self

    @property
    def grad_fn(self) -> Node | None:
        """The node that computed this tensor; None for a leaf.

        Raises RuntimeError for a view made under `no_grad` or in inference mode whose base was
        written to since: its history is not known.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> (x * 2).grad_fn.name(), x.grad_fn
        ('MulBackward0', None)
        """
        node = known_node(find_edge(self, False))
        if node is None and self._leaf is not None:
            self._leaf.check_history()
        return None if node is None else noted_read(self, history_of) and shown(node)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator computed this tensor.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        return known_node(self) is None and self.grad_fn is None

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is; 0 for a leaf.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> [view.output_nr for view in x.unbind()]
        [0, 1]
        """
        return self._output_nr if known_node(self) is None else noted_read(self, history_of)[1]

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode.

        >>> with jaxgrad.inference_mode():
        ...     x = jaxgrad.ones(2)
        >>> x.is_inference()
        True
        """
        return self._grad_fn is INFERENCE_TENSOR

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient: a tensor of this shape, or None before the first one.

        Backward passes fill it for leaves, and for tensors after `retain_grad`; reading it on other
        tensors warns. The setter raises TypeError for a value that is neither a tensor nor None,
        RuntimeError for another shape or a dtype other than `grad_dtype`.

        >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        if interception.grad is not None:
            interception.grad(self)
        leaf = self._leaf
        if leaf is not None and leaf.grad is not None:
            return leaf.grad
        if known_node(self) is not None and not self.retains_grad:
            warnings.warn(NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return None

    @grad.setter
    def grad(self, gradient: Tensor | None):
        if gradient is not None:
            self._check_assigned(gradient)
        if interception.grad is not None:
            interception.grad(self, True)
        (self._leaf or leaf_state(self)).grad = gradient

    @grad.deleter
    def grad(self):
        self.grad = None

    _grad = grad

    def _check_assigned(self, gradient):
        if not isinstance(gradient, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type "
                f"{type_name(gradient)}"
            )
        if gradient is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if gradient.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(gradient.shape)}' to a tensor of "
                f"size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the "
                f"same size"
            )
        modes = gradient._aval.mode, self._aval.mode
        is_elsewhere = may_differ() and META not in modes
        if is_elsewhere:
            is_elsewhere = are_apart(gradient._value, self._value)
        if is_elsewhere or (modes[0] == META) != (modes[1] == META):
            places = gradient.device, self.device
            theirs, ours = [f"with device type '{place.type}'" for place in places]
            if theirs == ours:
                theirs, ours = [f"located on device with index '{p.index}'" for p in places]
            raise RuntimeError(
                f"attempting to assign a gradient {theirs} to a tensor {ours}. Please ensure that "
                "the gradient and the tensor are on the same device"
            )
        wanted = _grad_dtype(self)
        if wanted not in (None, gradient.dtype):
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{gradient.dtype}' to a tensor with "
                f"grad_dtype '{wanted}'. Convert the gradient, or set the tensor's grad_dtype: to "
                "that dtype, or to None for any"
            )

    @property
    def grad_dtype(self) -> dtypes.dtype | None:
        """The dtype of this leaf's `.grad`: gradients are converted to it. By default the tensor's
        own; None allows any.

        Raises RuntimeError for a tensor that was computed. The setter raises it also for a dtype
        that cannot hold the gradient, and if `.grad` has another dtype already.

        >>> x = jaxgrad.ones(2, dtype=jaxgrad.float16, requires_grad=True)
        >>> x.grad_dtype = jaxgrad.float32
        >>> (x * 3).sum().backward()
        >>> x.grad
        tensor([3., 3.])
        """
        if self.grad_fn is not None:
            raise RuntimeError(f"grad_dtype can only be accessed on leaf tensors. {self._origin()}")
        return _grad_dtype(self)

    @grad_dtype.setter
    def grad_dtype(self, dtype: dtypes.dtype | None):
        if dtype is not None and not isinstance(dtype, dtypes.dtype):
            kind = type(dtype).__name__
            raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {kind}")
        if self.grad_fn is not None:
            raise RuntimeError(f"grad_dtype can only be set on leaf tensors. {self._origin()}")
        if dtype is not None and not _holds(dtype, self.dtype):
            raise RuntimeError(
                f"grad_dtype '{dtype}' cannot hold the gradient of a tensor of dtype '{self.dtype}'"
            )
        state = leaf_state(self)
        if state.grad is not None and dtype not in (None, state.grad.dtype):
            raise RuntimeError(
                f"Cannot set grad_dtype to '{dtype}' because there is already a gradient with "
                f"dtype '{state.grad.dtype}': set .grad to None first"
            )
        state.grad_dtype = dtype

    def _origin(self) -> str:
        return f"This one, of shape {list(self.shape)}, was computed by {self.grad_fn.name()}"

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this tensor; False for a leaf.

        >>> y = jaxgrad.ones(2, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> y.retains_grad
        True
        """
        return known_node(self) is not None and noted_read(self, history_of)[2]

    def retain_grad(self):
        """Fill `.grad` in backward passes although this tensor is not a leaf; no effect on leaves.

        Raises RuntimeError for a tensor that does not require grad.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> y = x * 2
        >>> y.retain_grad()
        >>> y.sum().backward()
        >>> y.grad
        tensor([1., 1.])
        """
        if not self._requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        node = known_node(find_edge(self))
        if node is not None:
            node.retain(self._output_nr, self)

    @property
    def device(self):
        """The device of the array; for a traced tensor the default device.

        >>> jaxgrad.zeros(2, device="cpu").device
        device(type='cpu')
        """
        return device_of(self._value)


# The classes whose tensors take the short paths of operators: no `__torch_function__` of theirs
# takes part. `nn/parameter.py` adds `Parameter`.
PLAIN_TENSORS = {Tensor}


def known_node(tensor: Tensor) -> Node | None:
    """The node that computed a tensor; None for a leaf, and where the history is not known."""
    node = tensor._grad_fn
    # a saved leaf comes back with its AccumulateGrad as node
    return node if isinstance(node, Node) and type(node) is not AccumulateGrad else None


# as a leaf's grad_dtype: the dtype of the leaf
OWN_DTYPE = object()


class LeafState:
    """The state that few tensors have.

    `grad`, `grad_dtype`: the gradient and its dtype; `node`: a weak reference to the leaf's node;
    `hooks`, `post_hooks`: on its gradient, and after accumulation; `tangents`: in forward mode;
    `causes`: why it has no `grad_fn`; `kind`: the class that a parameter or buffer of a module
    counts as (nn/parameter.py); `argument`: the argument of a transform that the leaf stands for.

    The node holds the leaf, so the leaf holds its node weakly; an edge keeps both alive.
    """

    __slots__ = (
        *("argument", "causes", "grad", "grad_dtype", "hooks", "kind", "node"),
        *("post_hooks", "tangents"),
    )

    def __init__(self):
        self.grad = self.hooks = self.post_hooks = self.tangents = self.causes = None
        self.kind = self.argument = None
        self.grad_dtype = OWN_DTYPE
        # called like the weak reference that takes its place
        self.node = lambda: None

    def check_history(self):
        """Raise RuntimeError if the history of the tensor is not known."""


def leaf_state(tensor: Tensor) -> LeafState:
    if tensor._leaf is None:
        with handle_lock.lock:
            tensor._leaf = tensor._leaf or LeafState()
    return tensor._leaf


def _grad_dtype(tensor: Tensor) -> dtypes.dtype | None:
    asked = OWN_DTYPE if tensor._leaf is None else tensor._leaf.grad_dtype
    return tensor.dtype if asked is OWN_DTYPE else asked


def _holds(dtype, of) -> bool:
    """Whether `dtype` can hold the gradient of a tensor of dtype `of`: complex needs complex."""
    is_complex = of.is_complex or dtype.is_complex
    return dtype.is_complex if is_complex else dtype.is_floating_point or dtype is of


def wrap(array, aval=None, requires_grad=False, node=None, output_nr=0) -> Tensor:
    """A tensor that holds a JAX array or tracer, or what is pending."""
    tensor = _new(Tensor)
    if type(array) is Pending:
        tensor._raw = array if array.array is None else known(array)
        tensor._aval = array.aval if aval is None else aval
    else:
        tensor._raw = array
        tensor._aval = aval_of(array) if aval is None else seen_aval(aval, array)
    tensor._tracked = requires_grad
    tensor._node = node
    tensor._nr = output_nr
    tensor._leaf = tensor._alias = tensor._counter = None
    if interception.created is not None:
        interception.created(tensor)
    return tensor


def placeholder(value) -> Tensor:
    """A handle that holds no array: JAX's trees may have other leaves, such as shardings."""
    handle = wrap(value, _NO_AVAL)
    handle._aval = None
    return handle


_NO_AVAL = object()


# `tensor._array` is the value of a handle, up to date, and `tensor._value` the same where it may be
# pending (core/pending.py). Only this module, record.py, storage/alias.py, storage/commit.py,
# compiled/placement.py and the fast paths of ops/ use the slot `_raw`; all other code calls these.


def computed(tensor: Tensor):
    """The array of a handle whose value is pending; from now on the handle holds it."""
    value = tensor._raw
    array = value_of(value)
    # no other thread comes between a comparison and an assignment without a call between them
    if tensor._raw is value:
        tensor._raw = array
    alias = tensor._alias
    if alias is not None and alias.storage.array is value:
        alias.storage.array = array
    return array


def held(tensor: Tensor):
    """The array that the handle holds, maybe out of date; its identity tells a replacement."""
    value = tensor._raw
    return computed(tensor) if type(value) is Pending else value


def hold(tensor: Tensor, value, aval=None):
    """Replace what the handle holds, and its abstract value if `aval` is given."""
    tensor._raw = value
    if aval is not None:
        tensor._aval = aval


def is_traced(tensor: Tensor) -> bool:
    """Whether the handle holds a tracer."""
    return isinstance(tensor._raw, jax.core.Tracer)


# ---- What a handle knows of its tensor, as it is: out of date after a write to another alias,
# unless `current` was called before. Where a call costs too much the slots are read in place of
# these; such a module says so in a line that begins with `# inlined`.


def abstract_value(tensor: Tensor) -> Aval:
    """Shape, dtype, strides and executor of the tensor."""
    return tensor._aval


def set_abstract_value(tensor: Tensor, aval: Aval):
    """Show other strides, or another executor; the array stays."""
    tensor._aval = aval


def is_on_meta(tensor: Tensor) -> bool:
    """Whether the tensor is on the device meta, without data."""
    return tensor._aval.mode == META


def spans_processes(tensor: Tensor) -> bool:
    """Whether several processes hold shards of the tensor."""
    return tensor._aval.mode == SPREAD


def may_require_grad(tensor: Tensor) -> bool:
    """Whether the dtype has gradients."""
    return tensor._aval.differentiable


def may_have_tangents(tensor: Tensor) -> bool:
    """Whether the tensor was given tangents of forward mode, maybe at a level that has ended."""
    return tensor._aval.dual


def is_tracked(tensor: Tensor) -> bool:
    """Whether the tensor requires grad."""
    return tensor._tracked


def set_tracked(tensor: Tensor, requires_grad: bool):
    """Record the operators on the tensor from now on, or no longer."""
    tensor._tracked = requires_grad


def node_or_mark(tensor: Tensor):
    """The node that computed the tensor, or INFERENCE_TENSOR or DERIVED in its place; mostly None
    for a leaf.
    """
    return tensor._node


def recorded_node(tensor: Tensor) -> Node | None:
    """The node that the tensor is an output of; None where it has none, or a mark in its place."""
    return tensor._node if isinstance(tensor._node, Node) else None


def output_number(tensor: Tensor) -> int:
    """Which output of its node the tensor is."""
    return tensor._nr


def set_node(tensor: Tensor, node, output_nr: int = 0):
    """Make the tensor an output of another node, or of none."""
    tensor._node, tensor._nr = node, output_nr


def alias_of(tensor: Tensor):
    """The place in the storage that the tensor shares, an `Alias`; None where it shares none."""
    return tensor._alias


def set_alias(tensor: Tensor, alias):
    """Let the tensor share another storage, or none."""
    tensor._alias = alias


def known_counter(tensor: Tensor):
    """The version counter; None before `version_counter.counter_of` made one."""
    return tensor._counter


def version_of(tensor: Tensor) -> int:
    """How often the memory of the tensor was written to."""
    return 0 if tensor._counter is None else tensor._counter.value


def set_counter(tensor: Tensor, counter):
    """Count the writes to the tensor by another counter."""
    tensor._counter = counter


def known_leaf_state(tensor: Tensor) -> LeafState | None:
    """The `leaf_state` of the tensor; None before it was needed."""
    return tensor._leaf


def set_leaf_state(tensor: Tensor, state: LeafState | None):
    """Give the tensor another `leaf_state`."""
    tensor._leaf = state


def grad_of(tensor: Tensor) -> Tensor | None:
    """The `.grad` as it is stored, without a notice to the trace under way."""
    return None if tensor._leaf is None else tensor._leaf.grad


def kind_of(tensor: Tensor) -> type | None:
    """The class that the tensor is marked with: `Parameter`, `Buffer`, a subclass, or None."""
    return None if tensor._leaf is None else tensor._leaf.kind


def state_of(tensor: Tensor) -> tuple:
    """The state of a handle, for `restore_state`: its value, its place in the graph, its alias."""
    return (tensor._raw, tensor._aval, tensor._node, tensor._nr, tensor._tracked, tensor._alias)


def restore_state(tensor: Tensor, state: tuple):
    """Return the handle to a state from `state_of`."""
    tensor._raw, tensor._aval, tensor._node, tensor._nr, tensor._tracked, tensor._alias = state


def swap_state(first: Tensor, second: Tensor):
    """Exchange all that two handles hold: values, places in graphs, gradients, classes and
    attributes. What refers to a handle then has the other tensor there.
    """
    for name in ("__class__", "__dict__", *_STATE, "_leaf", "_counter"):
        one, other = getattr(first, name), getattr(second, name)
        object.__setattr__(first, name, other)
        object.__setattr__(second, name, one)


_STATE = ("_raw", "_aval", "_node", "_nr", "_tracked", "_alias")


def tangents_of(tensor: Tensor):
    """The holder of the tangents of a tensor or of the root of its views; None if it has none."""
    alias = tensor._alias
    if alias is None:
        return None if tensor._leaf is None else tensor._leaf.tangents
    if alias.tangents is None and alias.root is not None:
        return alias.root.tangents
    return alias.tangents


def has_tangent(tensor: Tensor) -> bool:
    """Whether a tensor has a tangent at a level that has not ended."""
    held = tangents_of(tensor) if current(tensor)._aval.dual else None
    return held is not None and bool(held.of)


def check_no_tangent(tensor: Tensor, what: str) -> Tensor:
    """The tensor itself. Raises RuntimeError if it has a tangent, which `what` would lose."""
    if has_tangent(tensor):
        raise RuntimeError(
            f"{what} got a tensor of shape {list(tensor.shape)} that has a tangent of forward "
            "mode, which would be lost: call jaxgrad's operators on it, or use the parts that "
            "forward_ad.unpack_dual returns"
        )
    return tensor


def current(tensor: Tensor) -> Tensor:
    """The tensor itself, up to date: a scope captures it, and writes to its aliases are settled."""
    if interception.read is not None:
        interception.read(tensor)
    alias = tensor._alias
    if alias is not None and alias.seen != alias.storage.epoch:
        alias.refresh(tensor)
    return tensor


_new = object.__new__


def edge_of(tensor: Tensor):
    """The edge to a tensor: its node, or a leaf's `AccumulateGrad`, and its output number."""
    return known_edge_of(current(tensor))


def known_edge_of(tensor: Tensor):
    """`edge_of` for a tensor whose node is up to date; its array need not be."""
    if tensor._node is not None:
        return tensor._node, tensor._nr
    state = tensor._leaf or leaf_state(tensor)
    node = state.node()
    if node is None:
        # two threads must agree on the node of a leaf, where all its gradients arrive
        with handle_lock.lock:
            node = state.node()
            if node is None:
                node = AccumulateGrad(tensor)
                state.node = weakref.ref(node)
    return node, 0


def is_concrete(tensor: Tensor) -> bool:
    """Whether the tensor has values: it holds no tracer, and is not on the device meta."""
    return has_numbers(tensor._value)


class ReadsNumbers(RuntimeError):
    """An operator reads the numbers of one example of a `vmap`, such as a Function of the user that
    computes by NumPy, or `argwhere`: it can be called example by example, but not traced.
    """


def reads_traced_value(error: Exception) -> bool:
    """Whether an error says that code reads the numbers of a tensor under a trace."""
    return isinstance(error, RuntimeError) and NO_NUMBERS in str(error)


NO_NUMBERS = (
    "which is being traced: inside jaxgrad.jit, torch.export, jax.jit or a vmap there are none "
    "yet. "
)


def shown_array(tensor: Tensor):
    """The array for a tensor that is printed: under a trace that of a constant, else the tracer."""
    array, scope = tensor._array, mode.scope.get()
    return array if scope is None else scope.numbers_of(array, may_pin=False)


def concrete(tensor: Tensor, what: str):
    """The tensor's array. Raises RuntimeError under a trace, where it has no values yet, unless it
    depends on constants and captured tensors of `jaxgrad.jit` alone; and mostly NotImplementedError
    on the device meta, where it never has any.
    """
    if tensor._aval.mode == META:
        kind, words = ON_META.get(what, (NotImplementedError, NO_DATA))
        raise kind(
            f"{words} {what} needs the numbers of a tensor of shape {list(tensor.shape)} on the "
            "device meta, which has none: make the tensor on another device, or give its module "
            'data by to_empty(device="cpu") or load_state_dict(assign=True)'
        )
    array, scope = tensor._array, mode.scope.get()
    if scope is not None and not mode.withholds_numbers.get():
        array = scope.numbers_of(array)
    if not isinstance(array, jax.core.Tracer):
        return array if world.current is None else spread.ready(array, what)
    hint = getattr(scope, "hints", {}).get(what, "")
    why = "" if scope is None else scope.why_refused
    place = place_of_caller()
    kind = ReadsNumbers if what in getattr(scope, "looped", ()) else RuntimeError
    error = kind(
        f"{hint}{what} needs the numbers of a tensor of shape {list(tensor.shape)}, "
        f"{NO_NUMBERS}{why}Return the tensor and read it outside, or use jaxgrad.where in place of "
        f"an if. At {place}"
    )
    error.place = place
    if scope is not None and not mode.withholds_numbers.get():
        scope.record_refused(error)
    raise error


def name_of_node(tensor: Tensor) -> str | None:
    """The name of a tensor's `grad_fn` as it is printed."""
    try:
        # for a known one not `grad_fn`, which may record the graph of a compiled call
        node = known_node(tensor) or tensor.grad_fn
    except RuntimeError:
        return "Invalid"  # its history is not known
    return None if node is None else node.name()
