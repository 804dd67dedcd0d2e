"""The rules that the author of a Function wrote: which there are, and what they give, checked."""

from __future__ import annotations

from ...core import executor
from ...tape.tensor import Tensor, wrap
from .ctx_attributes import call
from .saved_variables import Saved

BASE = None  # the class Function, once it is made


TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


def gradients_of(ctx, given) -> list:
    """For each edge of a call the gradient that the author's `backward` gives, or None.

    given: for each output its gradient, None where none has arrived.
    """
    cls = ctx._forward_cls
    backward = user_backward(cls)
    for position, aval in enumerate(ctx._avals):
        if given[position] is None and ctx.materialize_grads and aval is not None:
            given[position] = wrap(executor.filled(aval, 0))
    args = (given,) if cls.boxed_grads_call else given
    return ctx._checked(call(ctx, backward, *args))


def tangents_of(ctx, given) -> list:
    """For each output of a call the tangent that the author's `jvp` gives, or None.

    given: for each argument its tangent, None where it does not move. Raises RuntimeError for what
    cannot be a tangent of the output.
    """
    for position, is_tensor in enumerate(ctx._tensors):
        if is_tensor and given[position] is None and ctx.materialize_grads:
            aval = ctx._args[position]._aval
            given[position] = wrap(executor.filled(aval, 0)) if aval.differentiable else None
    saved = ctx._saved
    if ctx.saved_for_forward is not None:
        ctx._saved = tuple(None if t is None else Saved(t) for t in ctx.saved_for_forward)
        ctx._in_jvp = True
    try:
        found = call(ctx, ctx._forward_cls.jvp, *given)
    finally:
        ctx._saved, ctx._in_jvp = saved, False
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(ctx._avals):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(ctx._avals)} but got {len(found)}): {ctx._forward_cls.__name__}"
        )
    return [_tangent(*item) for item in zip(found, ctx._avals, range(len(found)), strict=True)]


def _tangent(found, aval, number):
    if found is None or aval is None or not aval.differentiable:
        return None
    if not isinstance(found, Tensor):
        raise RuntimeError(
            f"expected Variable or None (got {type(found).__name__}) for grad output {number}."
        )
    if found.shape != aval.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(aval.shape)} while the given "
            f"forward gradient is of size {list(found.shape)}."
        )
    return found if found.dtype is aval.dtype else found.to(aval.dtype)


def batched(cls, found) -> tuple[tuple, tuple]:
    """The outputs that the author's `vmap` gave, and where each has its batch dimension.

    Raises RuntimeError where it gave something else.
    """
    if not isinstance(found, tuple) or len(found) != 2:
        count = f"{len(found)} returns" if isinstance(found, tuple) else type(found).__name__
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with the "
            f"same structure as the output, but that of {cls.__name__} gave {count}"
        )
    output, dims = found
    outputs = output if isinstance(output, tuple) else (output,)
    dims = dims if isinstance(dims, tuple) else (dims,) * len(outputs)
    if len(dims) != len(outputs):
        raise RuntimeError(
            f"Expected the vmap staticmethod of {cls.__name__} to give out_dims with the same "
            f"structure as the output, but there are {len(outputs)} outputs and {len(dims)} of them"
        )
    return outputs, dims


def has_jvp(cls) -> bool:
    return cls.jvp is not BASE.jvp


def has_backward(cls) -> bool:
    return user_backward(cls) is not BASE.backward


def no_jvp(cls, why: str) -> str:
    """What is said where forward mode finds no rule."""
    return (
        "You must implement the jvp function for custom autograd.Function to use it with forward "
        f"mode AD: {cls.__name__} has none, and {why}, so that it cannot be derived"
    )


def has_vmap(cls) -> bool:
    """Whether a Function says itself how it is batched. Raises RuntimeError where it also asks for
    a rule to be made.
    """
    own = cls.vmap is not BASE.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overridden vmap staticmethod to avoid ambiguity."
        )
    return own


def is_once_differentiable(cls) -> bool:
    return getattr(user_backward(cls), "is_once_differentiable", False)


def user_backward(cls):
    """The `backward` of a Function, or its `vjp`. Raises RuntimeError where it has both."""
    if cls.vjp is BASE.vjp:
        return cls.backward
    if cls.backward is not BASE.backward:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
            f"should only implement one of them: {cls.__name__}"
        )
    return cls.vjp


def has_setup(cls) -> bool:
    """Whether what is kept for `backward` is told by `setup_context`."""
    return cls.setup_context is not BASE.setup_context
