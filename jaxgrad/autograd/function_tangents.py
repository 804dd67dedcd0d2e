"""Forward mode through a Function: by its `jvp`, or by its `backward`, transposed."""

from __future__ import annotations

from .. import execution, recording, tangents
from ..levels import enabled, in_order, see_below, window
from ..modes import RECORD, mode, switch
from ..tensor import Tensor, edge_of, wrap
from .engine import PassTo
from .function_rules import gradients_of, has_jvp, is_once_differentiable, tangents_of
from .saving import SavedOutput


def moving(args) -> list:
    """The levels at which arguments have tangents, the outermost first, each with what they have
    there.
    """
    if recording.with_tangents is None or not enabled.get():
        return []
    tensors = [a for a in args if isinstance(a, Tensor)]
    return [
        (level, [tangents.tangent(a, level) if isinstance(a, Tensor) else None for a in args])
        for level in in_order({level for each in tensors for level in tangents.levels_of(each)})
    ]


def move(ctx, made, moved):
    """Give the outputs of a call the tangents that those of its arguments lead to."""
    cls = ctx._forward_cls
    views = [_is_view(ctx, output) for output in made]
    for output, is_view in zip(made, views, strict=True):
        if is_view:
            tangents.own(output)
    for level, given in moved:
        token = see_below(level)
        try:
            found = tangents_of(ctx, list(given)) if has_jvp(cls) else _transposed(ctx, given)
        finally:
            window.reset(token)
        for output, value, is_view in zip(made, found, views, strict=True):
            if is_view and has_jvp(cls):
                _check_view(value, given)
            if isinstance(output, Tensor) and output._aval.differentiable:
                tangents.give(output, level, value)
    for saved in ctx._saved:
        if isinstance(saved, SavedOutput):
            saved.tangents = tangents.kept(made[saved.number])


def _is_view(ctx, output) -> bool:
    if not isinstance(output, Tensor) or output._base is None:
        return False
    return all(output is not dirty for dirty in ctx.dirty_tensors or ())


def _check_view(value, given):
    if value is not None and value._base is None and all(value is not each for each in given):
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is "
            "not returning a view."
        )


def _transposed(ctx, given) -> list:
    """The tangents of the outputs that `backward` implies, which is linear in its gradients.

    Raises NotImplementedError where it is not recorded, and so cannot be transposed.
    """
    if is_once_differentiable(ctx._forward_cls):
        raise NotImplementedError(_lacking(ctx, "its backward is @once_differentiable"))
    weights = [
        wrap(execution.filled(aval, 0), None, True)
        if aval is not None and aval.differentiable
        else None
        for aval in ctx._avals
    ]
    before, needed = mode.get(), (ctx.needs_input_grad, getattr(ctx, "_inputs", None))
    ctx.needs_input_grad = tuple(tangent is not None for tangent in given)
    ctx._inputs = [tangent._aval for tangent in given if tangent is not None]
    switch(RECORD)
    try:
        gradients = gradients_of(ctx, list(weights))
        pairs = [
            (gradient, tangent)
            for gradient, tangent in zip(gradients, filter(_is_given, given), strict=True)
            if gradient is not None
        ]
        if not all(gradient._requires_grad for gradient, _ in pairs):
            raise NotImplementedError(_lacking(ctx, "what its backward gives is not recorded"))
        return _products(pairs, weights, before is RECORD)
    finally:
        switch(before)
        ctx.needs_input_grad, ctx._inputs = needed


def _products(pairs, weights, recorded):
    """For each of the weights the gradient of what the gradients are multiplied by."""
    ends = [edge_of(weight) for weight in weights if weight is not None]
    run = PassTo(True, recorded, ends)
    roots = [edge_of(gradient) for gradient, _ in pairs]
    run.run(roots, [run.carried(tangent) for _, tangent in pairs])
    found = iter([run.captured.get((node.sequence, 0)) for node, _ in ends])
    return [None if weight is None else run.as_tensor(next(found)) for weight in weights]


def _is_given(tangent) -> bool:
    return tangent is not None


def _lacking(ctx, why) -> str:
    return (
        "You must implement the jvp function for custom autograd.Function to use it with forward "
        f"mode AD: {ctx._forward_cls.__name__} has none, and {why}, so that it cannot be derived"
    )
