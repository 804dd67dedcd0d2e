"""Hooks of tensors: on the gradient of one, after its accumulation, on gradients of several."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

from ...tape import interception
from ...tape.asked_edge import find_edge
from ...tape.hooks import Hooks, RemovableHandle, register, register_in_transform
from ...tape.mode import current_pass
from ...tape.node import Node
from ...tape.tensor import Tensor, edge_of, known_leaf_state, known_node, leaf_state
from ...tape.torch_function import api_boundary


class HookMethods:
    """Methods of `Tensor`."""

    @api_boundary
    def register_hook(self, hook) -> RemovableHandle:
        """Call `hook(grad)` with the gradient of this tensor, once in each backward pass.

        A tensor of the same shape and dtype that it returns replaces the gradient. Hooks run in the
        order of registration; under `jaxgrad.jit`, when the program is traced. Returns a handle
        whose `remove()` removes the hook. Raises RuntimeError for a tensor that does not require
        grad, TypeError if `hook` is not callable.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
        >>> handle.remove()
        """
        if not self.requires_grad:
            raise RuntimeError(
                "cannot register a hook on a tensor that doesn't require gradient: one of shape "
                f"{list(self.shape)}"
            )
        return register_in_transform(hooks_of(self), hook)

    @api_boundary
    def register_post_accumulate_grad_hook(self, hook) -> RemovableHandle:
        """Call `hook(tensor)` after each accumulation into the `.grad` of this leaf.

        Returns a handle whose `remove()` removes the hook. Raises RuntimeError for a tensor that
        does not require grad or is not a leaf, TypeError if `hook` is not callable.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
        """
        if not self.requires_grad:
            raise RuntimeError(
                "cannot register a hook on a tensor that doesn't require gradient: one of shape "
                f"{list(self.shape)}"
            )
        if self.grad_fn is not None:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors: this one "
                f"comes from {self.grad_fn.name()}; use register_hook"
            )
        return register(_post_hooks_of(self), hook)

    @property
    def _backward_hooks(self) -> Hooks | None:
        return known_hooks(self)

    @_backward_hooks.setter
    def _backward_hooks(self, hooks):
        _set_hooks(self, _checked("_backward_hooks", hooks))

    @_backward_hooks.deleter
    def _backward_hooks(self):
        raise RuntimeError("Deletion of _backwards_hooks not allowed! Set None to have no hooks")

    @property
    def _post_accumulate_grad_hooks(self) -> Hooks | None:
        state = known_leaf_state(self)
        return None if state is None else state.post_hooks

    @_post_accumulate_grad_hooks.setter
    def _post_accumulate_grad_hooks(self, hooks):
        leaf_state(self).post_hooks = _checked("_post_accumulate_grad_hooks", hooks)

    @_post_accumulate_grad_hooks.deleter
    def _post_accumulate_grad_hooks(self):
        raise RuntimeError(
            "Deletion of _post_accumulate_grad_hooks not allowed! Set None to have no hooks"
        )


def _checked(name: str, hooks: dict | None) -> Hooks | None:
    """A dict of functions as Hooks; None for None. Raises TypeError for anything else."""
    if hooks is None:
        return None
    if not (isinstance(hooks, dict) and all(map(callable, hooks.values()))):
        raise TypeError(f"{name} must be a dict of functions or None, not {type(hooks).__name__}")
    return Hooks(hooks)


def _set_hooks(tensor, hooks):
    node = tensor.grad_fn
    if node is None:
        leaf_state(tensor).hooks = hooks
        return
    extras = node.more()
    others = {nr: e for nr, e in (extras.tensor_hooks or {}).items() if nr != tensor.output_nr}
    extras.tensor_hooks = others if hooks is None else {**others, tensor.output_nr: hooks}


def _post_hooks_of(tensor: Tensor) -> Hooks:
    state = leaf_state(tensor)
    state.post_hooks = Hooks() if state.post_hooks is None else state.post_hooks
    return state.post_hooks


def hooks_of(tensor: Tensor) -> Hooks:
    """The hooks of a tensor, created if it has none: a leaf's own, else its node's."""
    if interception.hooked is not None:
        interception.hooked(tensor)
    if find_edge(tensor).grad_fn is not None:
        return tensor.grad_fn.hooks_of(tensor.output_nr)
    state = leaf_state(tensor)
    state.hooks = Hooks() if state.hooks is None else state.hooks
    return state.hooks


def known_hooks(tensor: Tensor) -> Hooks | None:
    """The hooks of a tensor, None if it never had one."""
    node = known_node(tensor)
    if node is None:
        state = known_leaf_state(tensor)
        return None if state is None else state.hooks
    return node.extras and (node.extras.tensor_hooks or {}).get(tensor.output_nr)


class MultiHandle:
    """Removes the hooks of a `register_multi_grad_hook`; also a context manager."""

    def __init__(self, handles: Sequence[RemovableHandle]):
        self.handles = tuple(handles)

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn, *, mode: str = "all") -> MultiHandle:
    """Call a function with the gradients of several tensors, once in each backward pass.

    mode: "all" calls `fn(grads)` after the last gradient, with a list that has None for each one
    that the pass does not compute; "any" calls `fn(grad)` with the first gradient. Returns a handle
    whose `remove()` removes the hooks. Raises ValueError for another mode; AssertionError in mode
    "all" for a tensor that does not require grad, which "any" ignores.

    >>> x, y = jaxgrad.ones(2, requires_grad=True), jaxgrad.ones(2, requires_grad=True)
    >>> handle = jaxgrad.autograd.graph.register_multi_grad_hook((x, y), print)
    >>> (x * 2 + y * 3).sum().backward()
    [tensor([2., 2.]), tensor([3., 3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    if mode == "any":
        tensors = tuple(tensor for tensor in tensors if tensor.requires_grad)
    assert all(tensor.requires_grad for tensor in tensors), "Expected gradient function to be set"
    gathering = (_All if mode == "all" else _First)(fn)
    gathering.watch(tensors)
    return MultiHandle(gathering.handles)


class _Gathering:
    """The state that the hooks of several tensors share, for each running pass."""

    def __init__(self, fn):
        self.fn, self.passes, self.lock = fn, {}, threading.Lock()
        self.handles, self.places = [], []

    def watch(self, tensors):
        for position, tensor in enumerate(tensors):
            self.handles.append(tensor.register_hook(self.hook(position)))
            # weak, since the leaf or node holds this object
            self.places.append(weakref.ref(tensor.grad_fn or tensor))

    def hook(self, position):
        def hook(gradient):
            self.arrive(current_pass.get(), position, gradient)

        return hook

    def begin(self, run):
        """Drop the state of a pass at its end."""
        run.ending.append(lambda: self.passes.pop(run, None))

    def awaited(self, run) -> int:
        """The number of gradients that a pass will compute."""
        return sum(run.will_run(node) for node in self.nodes())

    def nodes(self):
        """The nodes of the tensors."""
        for reference in self.places:
            place = reference()
            if place is not None:
                yield place if isinstance(place, Node) else edge_of(place)[0]


class _All(_Gathering):
    def arrive(self, run, position, gradient):
        with self.lock:
            if run not in self.passes:
                self.begin(run)
                self.passes[run] = [self.awaited(run), [None] * len(self.handles)]
            state = self.passes[run]
            state[0] -= 1
            state[1][position] = gradient
        if not state[0]:
            self.fn(state[1])


class _First(_Gathering):
    def arrive(self, run, position, gradient):
        with self.lock:
            if run in self.passes:
                return
            self.begin(run)
            self.passes[run] = True
        self.fn(gradient)


def install():
    """Give `Tensor` its methods."""
    for name, method in vars(HookMethods).items():
        if not name.startswith("__"):
            setattr(Tensor, name, method)
