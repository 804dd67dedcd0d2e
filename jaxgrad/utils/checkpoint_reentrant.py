"""Checkpointing with `use_reentrant=True`: one node, whose backward runs a nested pass."""

from __future__ import annotations

import contextlib
import functools
import warnings

from .. import autograd
from ..core import view_ops
from ..core.executor import is_traced
from ..ops import autocast
from ..tape import mode
from ..tape.mode import Draws, is_grad_enabled
from ..tape.tensor import Tensor, abstract_value, set_tracked, wrap
from .checkpoint_state import OuterState
from .delayed_recompute import after_gradients


class CheckpointFunction(autograd.Function):
    """A call of a function as one node, whose `backward` recomputes the function and runs a nested
    pass. `checkpoint(..., use_reentrant=True)` applies it.

    >>> x = jaxgrad.zeros(2, requires_grad=True)
    >>> y = jaxgrad.utils.checkpoint.CheckpointFunction.apply(jaxgrad.sin, True, x)
    >>> jaxgrad.autograd.backward(y.sum())
    >>> x.grad
    tensor([1., 1.])
    """

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function, ctx.draws = run_function, Draws() if preserve_rng_state else None
        ctx.casting = mode.casting.get()
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.places = [isinstance(arg, Tensor) for arg in args]
        ctx.outer = OuterState(run_function, tensors)
        ctx.save_for_backward(*tensors)
        with autograd.grad_mode.no_grad(), _drawing(ctx.draws):
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not autograd._is_checkpoint_valid():
            raise RuntimeError(REENTRANT)
        if is_grad_enabled():
            raise RuntimeError(RECORDED)
        tensors = ctx.saved_tensors
        arrays = _delayed(grads, [tensor._array for tensor in tensors])
        saved = iter(map(_like, tensors, arrays))
        pairs = zip(ctx.places, ctx.others, strict=True)
        inputs = detach_variable(tuple(next(saved) if place else other for place, other in pairs))
        leaves = [value for value in inputs if isinstance(value, Tensor)]
        restored = ctx.outer.restored(leaves, functools.partial(_delayed, grads, choose=not leaves))
        with restored, autograd.enable_grad(), _drawing(ctx.draws), autocast.entered(ctx.casting):
            outputs = ctx.run_function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        wanted = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not wanted:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        autograd.backward(*map(list, zip(*wanted, strict=True)))
        input_grads = [value.grad if isinstance(value, Tensor) else None for value in inputs]
        return None, None, *input_grads


REENTRANT = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
    "`inputs` parameter to .backward(). To resolve this error, you can either set "
    "use_reentrant=False, or call .backward() without passing the `inputs` argument."
)

RECORDED = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with create_graph=True: the "
    "second derivative would leave out what is inside of it. Set use_reentrant=False"
)


def _drawing(draws):
    return contextlib.nullcontext() if draws is None else draws.again()


def _delayed(gradients, arrays, choose=True):
    """In a trace the arrays made dependent on the gradients, see `after_gradients`."""
    arrived = [gradient._array for gradient in gradients if gradient is not None]
    return after_gradients(arrays, arrived, choose) if is_traced() else arrays


def _like(tensor, array):
    replacement = wrap(array, view_ops.plain(abstract_value(tensor)))
    set_tracked(replacement, tensor.requires_grad)
    return replacement


def detach_variable(inputs: tuple) -> tuple[Tensor, ...]:
    """The values of a tuple, with tensors detached; they keep their `requires_grad`.

    Raises RuntimeError for anything but a tuple.

    >>> (x,) = jaxgrad.utils.checkpoint.detach_variable((jaxgrad.ones(2, requires_grad=True) * 2,))
    >>> x.is_leaf, x.requires_grad
    (True, True)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(_detached(value) if isinstance(value, Tensor) else value for value in inputs)


def _detached(tensor):
    leaf = tensor.detach()
    leaf.requires_grad = tensor.requires_grad
    return leaf


def check_backward_validity(inputs) -> None:
    """Warn if none of the values is a tensor that requires grad.

    >>> jaxgrad.utils.checkpoint.check_backward_validity([jaxgrad.ones(2, requires_grad=True)])
    """
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )
