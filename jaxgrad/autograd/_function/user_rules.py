"""The rules of a Function's author: which of them exist, and checked calls of them."""

from __future__ import annotations

from ...core import elementary
from ...core.pytorch_tensors import type_name
from ...tape.node import Extras
from ...tape.tensor import Tensor, abstract_value, may_require_grad, wrap
from .saved_variables import SavedVariable

TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


class Rules:
    """The static methods of a Function that its author overrides."""

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs: `forward(ctx, *args)`, or `forward(*args)` with `setup_context`.

        args: tensors of any shape and dtype, and other Python objects.
        Returns a tensor or a tuple. Raises NotImplementedError if the author has not overridden it.
        """
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx, inputs: tuple, output):
        """Save in `ctx` what `backward` and `jvp` need.

        inputs: the arguments of `forward`, as a tuple.
        output: what `forward` returned.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """The gradient of each argument of `forward`, from the gradients of the outputs.

        grad_outputs: a tensor for each output, of its shape and dtype; for an output without
            gradient zeros, or None after `ctx.set_materialize_grads(False)`.
        Returns a tensor or None for each argument, in the shape of the argument or one that
        broadcasting made of it. `vjp` is another name of this method. Raises NotImplementedError if
        the author has overridden neither.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """The tangent of each output of `forward`, from the tangents of the arguments.

        grad_inputs: for each argument a tensor of its shape and dtype, None for an argument that is
            not a tensor; for a tensor without tangent zeros, or None after
            `ctx.set_materialize_grads(False)`.
        Returns a tensor or None for each output, of its shape. Raises NotImplementedError if the
        author has not overridden it.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        """The outputs of `forward` for a batch of examples, and the batch dimension of each output.

        info: a `VmapInfo`, with `batch_size` and `randomness`.
        in_dims: for each argument its batch dimension, None for an argument that all examples
            share.
        Returns `(output, out_dims)`. Raises NotImplementedError if the author has not overridden
        it.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )


def gradients_of(ctx, output_gradients) -> list:
    """The gradients that the author's `backward` returns, one or None for each edge of the call.

    output_gradients: the gradient of each output, None if none has arrived.
    """
    cls = ctx._forward_cls
    backward = user_backward(cls)
    arrived = next((x._value for x in output_gradients if x is not None), None)
    for position, aval in enumerate(ctx._avals):
        if output_gradients[position] is None and ctx.materialize_grads and aval is not None:
            output_gradients[position] = wrap(elementary.filled_beside(arrived, aval, 0))
    args = (output_gradients,) if cls.boxed_grads_call else output_gradients
    return ctx._checked(call(ctx, backward, *args))


def tangents_of(ctx, tangents: list, outputs) -> list:
    """The tangents that the author's `jvp` returns, one or None for each output.

    tangents: the tangent of each argument, None if it has none, for which `jvp` gets zeros;
        outputs: what `forward` returned. Raises RuntimeError for a wrong number, type or shape of
        the results.
    """
    for position, is_tensor in enumerate(ctx._tensors):
        if is_tensor and tangents[position] is None and ctx.materialize_grads:
            aval = abstract_value(ctx._args[position])
            array = elementary.filled_beside(ctx._args[position]._value, aval, 0)
            tangents[position] = wrap(array) if aval.differentiable else None
    saved = ctx._saved
    if ctx.saved_for_forward is not None:
        ctx._saved = tuple(None if t is None else SavedVariable(t) for t in ctx.saved_for_forward)
        ctx._in_jvp = True
    try:
        output_tangents = call(ctx, ctx._forward_cls.jvp, *tangents)
    finally:
        ctx._saved, ctx._in_jvp = saved, False
    output_tangents = output_tangents if isinstance(output_tangents, tuple) else (output_tangents,)
    if len(output_tangents) != len(ctx._avals):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(ctx._avals)} but got {len(output_tangents)}): {ctx._forward_cls.__name__}"
        )
    constant = {id(tensor) for tensor in ctx.non_differentiable or ()}
    are_constant = [id(output) in constant for output in outputs]
    numbers = range(len(output_tangents))
    return list(map(_tangent, output_tangents, ctx._avals, are_constant, numbers))


def _tangent(tangent, aval, is_constant, number):
    if tangent is None or aval is None:
        return None
    if is_constant or not aval.differentiable:
        raise RuntimeError(
            f"Function's jvp returned a gradient at position {number}, but the corresponding "
            "forward output is not a differentiable Tensor. You should return None at that "
            "position instead."
        )
    if not isinstance(tangent, Tensor):
        raise RuntimeError(
            f"expected Variable or None (got {type_name(tangent)}) for grad output {number}."
        )
    if tangent.shape != aval.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(aval.shape)} while the given "
            f"forward gradient is of size {list(tangent.shape)}."
        )
    if not may_require_grad(tangent) or (tangent.dtype.is_complex and not aval.dtype.is_complex):
        raise RuntimeError(
            f"Function's jvp returned a tangent of {tangent.dtype} for output {number}, which is "
            f"of {aval.dtype}"
        )
    return tangent if tangent.dtype is aval.dtype else tangent.to(aval.dtype)


def batched(cls, result) -> tuple[tuple, tuple]:
    """The outputs that the author's `vmap` returned, and the batch dimension of each.

    Raises RuntimeError if it returned something else.
    """
    if not isinstance(result, tuple) or len(result) != 2:
        count = f"{len(result)} returns" if isinstance(result, tuple) else type(result).__name__
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with the "
            f"same structure as the output, but that of {cls.__name__} gave {count}"
        )
    output, dims = result
    outputs = output if isinstance(output, tuple) else (output,)
    dims = dims if isinstance(dims, tuple) else (dims,) * len(outputs)
    if len(dims) != len(outputs):
        raise RuntimeError(
            f"Expected the vmap staticmethod of {cls.__name__} to give out_dims with the same "
            f"structure as the output, but there are {len(outputs)} outputs and {len(dims)} of them"
        )
    return outputs, dims


def has_jvp(cls) -> bool:
    return cls.jvp is not Rules.jvp


def has_backward(cls) -> bool:
    return user_backward(cls) is not Rules.backward


def no_jvp(cls, why: str) -> str:
    """The error message for a Function that has no rule for forward mode."""
    return (
        "You must implement the jvp function for custom autograd.Function to use it with forward "
        f"mode AD: {cls.__name__} has none, and {why}, so it cannot be derived"
    )


def has_vmap(cls) -> bool:
    """Whether a Function has its own `vmap`.

    Raises RuntimeError if `generate_vmap_rule` is set as well.
    """
    has_rule = cls.vmap is not Rules.vmap
    if has_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overridden vmap staticmethod to avoid ambiguity."
        )
    return has_rule


def is_once_differentiable(cls) -> bool:
    return getattr(user_backward(cls), "is_once_differentiable", False)


def user_backward(cls):
    """The author's `backward` or `vjp`. Raises RuntimeError if there are both."""
    if cls.vjp is Rules.vjp:
        return cls.backward
    if cls.backward is not Rules.backward:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
            f"should only implement one of them: {cls.__name__}"
        )
    return cls.vjp


def has_setup(cls) -> bool:
    """Whether a Function has `setup_context`."""
    return cls.setup_context is not Rules.setup_context


# attributes of ctx


def reserved(node_class, authors) -> frozenset[str]:
    """The attributes that a node of this class needs, without those that authors may set."""
    return frozenset(
        name for name in dir(node_class) if not name.startswith("__") and name not in authors
    )


def put_aside(ctx):
    """Move attributes that `forward` has set under reserved names into `ctx._authors`.

    `call` puts them back while a rule runs, so `ctx.edges` is the author's for the author and the
    node's for the engine. Raises AttributeError for reserved names that begin with an underscore.
    """
    attributes = vars(ctx)
    taken = ctx._reserved.intersection(attributes)
    if isinstance(attributes.get("extras"), Extras):
        taken -= {"extras"}
    for name in sorted(taken):
        if name.startswith("_"):
            raise AttributeError(f"{ctx.name()}: ctx.{name} is a name that the call needs")
    if taken:
        ctx._authors = {name: attributes.pop(name) for name in taken}


def call(ctx, rule, *args):
    """Call a rule, with the author's attributes in their place."""
    if ctx._authors is None:
        return rule(ctx, *args)
    attributes, authors = vars(ctx), ctx._authors
    rules = {name: attributes[name] for name in authors if name in attributes}
    attributes.update(authors)
    try:
        return rule(ctx, *args)
    finally:
        ctx._authors = {name: attributes.pop(name) for name in authors if name in attributes}
        attributes.update(rules)
