"""Forward mode through a Function: its `jvp`, or the transpose of its `backward`."""

from __future__ import annotations

import jax

from ...core import executor
from ...core.meta_array import MetaArray
from ...core.program import bare
from ...tape import dual, interception
from ...tape.dual_level import enabled, in_order, see_below, window
from ...tape.mode import PLAIN, RECORD, current_mode, switch
from ...tape.tensor import Tensor, edge_of, wrap
from .._engine.graph_task import PassTo
from . import linearity
from .saved_variables import SavedOutput
from .user_rules import (
    gradients_of,
    has_backward,
    has_jvp,
    is_once_differentiable,
    no_jvp,
    tangents_of,
)


def moving(args) -> list:
    """The levels at which arguments have tangents, outermost first, with these tangents."""
    if interception.tangents is None or not enabled.get():
        return []
    tensors = [a for a in args if isinstance(a, Tensor)]
    return [
        (level, [dual.tangent(a, level) if isinstance(a, Tensor) else None for a in args])
        for level in in_order({level for each in tensors for level in dual.levels_of(each)})
    ]


def move(ctx, made, moved):
    """Give the outputs of a call their tangents."""
    cls = ctx._forward_cls
    views = [_is_view(ctx, output) for output in made]
    for output, is_view in zip(made, views, strict=True):
        if is_view:
            dual.own(output)
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
                dual.give(output, level, value)
    for saved in ctx._saved:
        if isinstance(saved, SavedOutput):
            saved.tangents = dual.kept(made[saved.number])


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
    """The tangents of the outputs, as the transpose of `backward`.

    Raises NotImplementedError if `backward` is not linear in its gradients, or is not recorded.
    """
    if not has_backward(ctx._forward_cls):
        raise NotImplementedError(no_jvp(ctx._forward_cls, "it has no backward"))
    if is_once_differentiable(ctx._forward_cls):
        raise NotImplementedError(no_jvp(ctx._forward_cls, "its backward is @once_differentiable"))
    weights = [
        wrap(executor.filled(aval, 0), None, True)
        if aval is not None and aval.differentiable
        else None
        for aval in ctx._avals
    ]
    before, needed = current_mode.get(), (ctx.needs_input_grad, getattr(ctx, "_inputs", None))
    ctx.needs_input_grad = tuple(tangent is not None for tangent in given)
    ctx._inputs = [tangent._aval for tangent in given if tangent is not None]
    saved = ctx._saved
    try:
        _refuse_others_than_linear(ctx, weights)
        switch(RECORD)
        gradients = gradients_of(ctx, list(weights))
        pairs = [
            (gradient, tangent)
            for gradient, tangent in zip(gradients, filter(_is_given, given), strict=True)
            if gradient is not None
        ]
        if not all(gradient._requires_grad for gradient, _ in pairs):
            why = "the results of its backward are not recorded"
            raise NotImplementedError(no_jvp(ctx._forward_cls, why))
        return _products(pairs, weights, before is RECORD)
    finally:
        current_mode.set(before)
        ctx.needs_input_grad, ctx._inputs = needed
        ctx._saved = saved  # reading it may have cleared it


def _products(pairs, weights, recorded):
    """For each weight, the gradient of the inner product of the gradients with their tangents."""
    ends = [edge_of(weight) for weight in weights if weight is not None]
    run = PassTo(True, recorded, ends)
    roots = [edge_of(gradient) for gradient, _ in pairs]
    run.run(roots, [run.carried(tangent) for _, tangent in pairs])
    found = iter([run.captured.get((node.sequence, 0)) for node, _ in ends])
    return [None if weight is None else run.as_tensor(next(found)) for weight in weights]


def _refuse_others_than_linear(ctx, weights):
    def gradients(*arrays):
        supply = iter(arrays)
        given = [None if weight is None else wrap(next(supply)) for weight in weights]
        with bare():
            found = gradients_of(ctx, given)
        return [gradient._array for gradient in found if gradient is not None]

    zeros = [weight._array for weight in weights if weight is not None]
    if any(isinstance(zero, MetaArray) for zero in zeros):
        return  # on the device meta only shapes are asked for
    saved, before, cause = ctx._saved, switch(PLAIN), None
    try:
        with jax.enable_x64(True):
            if linearity.is_linear(gradients, *zeros):
                return
    except (jax.errors.JAXTypeError, RuntimeError) as error:
        cause = error  # it reads the values of a gradient
    finally:
        current_mode.set(before)
        ctx._saved = saved
    why = "its backward is not linear in the gradients"
    raise NotImplementedError(no_jvp(ctx._forward_cls, why)) from cause


def _is_given(tangent) -> bool:
    return tangent is not None
