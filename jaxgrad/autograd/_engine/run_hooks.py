"""Runs hooks in a backward pass and checks what they return.

The order at a node: the hooks of its output tensors, their retained `.grad`, its pre-hooks, the
node, its post-hooks. At a leaf: its hooks, the pre-hooks of its node, the accumulation, its
post-accumulate hooks, the post-hooks of its node.
"""

from __future__ import annotations

from ...core.pytorch_tensors import type_name
from ...tape import handle_lock
from ...tape.hooks import name_of
from ...tape.sparse_tensor import is_sparse
from ...tape.tensor import OWN_DTYPE, Tensor, known_leaf_state, leaf_state


def at_leaf(run, leaf: Tensor, gradient):
    """A leaf's gradient, converted to the leaf's `grad_dtype`, after the leaf's hooks."""
    state = known_leaf_state(leaf)
    if state is None:
        return gradient
    if state.grad_dtype is not OWN_DTYPE:
        gradient = in_dtype(run, gradient, state.grad_dtype)
    return _through(run, state.hooks, gradient) if state.hooks else gradient


def in_dtype(run, gradient, dtype):
    """A gradient converted to a dtype; None converts nothing."""
    value = run.as_tensor(gradient)
    if value is None or dtype is None or value.dtype is dtype:
        return gradient
    return run.carried(value.to(dtype))


def at_outputs(run, node, gradients):
    """The gradients of a node's outputs after the hooks of the tensors; fills retained `.grad`s."""
    extras = node.extras
    for output_nr, hooks in (extras.tensor_hooks or {}).items():
        if gradients[output_nr] is None and not node.tells_none:
            continue
        gradients[output_nr] = _through(run, hooks, gradients[output_nr])
    for output_nr, kept in (extras.retained or {}).items():
        tensor, gradient = kept(), gradients[output_nr]
        if tensor is not None and gradient is not None:
            with handle_lock.lock:
                state = leaf_state(tensor)
                run.before.values.append((state, "grad", state.grad))
                state.grad = run.total(state.grad, gradient, tensor)
    return gradients


def _through(run, hooks, gradient):
    """A gradient after the hooks of one tensor, each of which gets the result of the last."""
    value = run.as_tensor(gradient)
    for hook in list(hooks.values()):
        replacement = hook(value)
        if replacement is not None:
            _check(hook, value, replacement)
            value = replacement
    return run.carried(value)


def before(run, node, gradients):
    """The gradients that arrived at a node, after its pre-hooks."""
    hooks = node.extras and node.extras.pre_hooks
    if not hooks:
        return gradients
    values = tuple(map(run.as_tensor, gradients))
    for hook in list(hooks.values()):
        values = _replaced(hook, values, hook(values))
    return list(map(run.carried, values))


def after(run, node, results, gradients):
    """The gradients that a node computed, after its post-hooks; `gradients`: those that arrived."""
    hooks = node.extras and node.extras.post_hooks
    if not hooks:
        return results
    single = len(node.edges) == 1
    tensors = list(map(run.as_tensor, [results] if single else results))
    values, arrived = for_each_input(node, tensors), tuple(map(run.as_tensor, gradients))
    for hook in list(hooks.values()):
        values = _replaced(hook, values, hook(values, arrived))
    edge_gradients = [
        v for v, (to, _) in zip(values, node.next_functions, strict=True) if to is not None
    ]
    edge_gradients = list(map(run.carried, edge_gradients))
    return edge_gradients[0] if single else edge_gradients


def for_each_input(node, results) -> tuple:
    """A node's results for users: one for each of `next_functions`, None where there is no edge."""
    supply = iter(results)
    return tuple(next(supply) if to is not None else None for to, _ in node.next_functions)


def accumulated(leaf: Tensor):
    """Call the post-accumulate hooks of a leaf."""
    for hook in list((known_leaf_state(leaf).post_hooks or {}).values()):
        result = hook(leaf)
        if result is not None:
            _check(hook, leaf, result)
            raise RuntimeError(
                "Tensor post accumulate grad hooks should return None. "
                f"'{name_of(hook)}' returned a tensor"
            )


def _replaced(hook, values, replacements):
    """The gradients after a node's hook. Raises TypeError or RuntimeError for a wrong result."""
    if replacements is None:
        return values
    if not isinstance(replacements, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(replacements).__name__}'")
    if len(replacements) != len(values):
        raise RuntimeError(
            f"hook '{name_of(hook)}' has returned an incorrect number of values "
            f"(got {len(replacements)}, but expected {len(values)})"
        )
    for value, replacement in zip(values, replacements, strict=True):
        if replacement is not None:
            _check(hook, value, replacement)
    return replacements


def _check(hook, value, replacement):
    """Raise TypeError or RuntimeError if a hook's gradient cannot replace the one it got."""
    if not isinstance(replacement, Tensor):
        raise TypeError(
            f"expected Variable, but hook returned '{type_name(replacement)}': a hook returns a "
            "tensor in place of the gradient, or None"
        )
    if value is None:
        return
    if is_sparse(replacement) and not is_sparse(value):
        raise RuntimeError(
            f"hook '{name_of(hook)}' returned a sparse tensor for a dense gradient: return its "
            "to_dense()"
        )
    if replacement.dtype is not value.dtype:
        was, returned = value.dtype.scalar_type, replacement.dtype.scalar_type
        raise RuntimeError(
            f"hook '{name_of(hook)}' has changed the type of value (was torch.{was}Tensor got "
            f"torch.{returned}Tensor): a hook must return a gradient of the dtype that it got"
        )
    if replacement.shape != value.shape:
        raise RuntimeError(
            f"hook '{name_of(hook)}' has changed the size of value: it got one of shape "
            f"{list(value.shape)} and returned one of shape {list(replacement.shape)}"
        )
