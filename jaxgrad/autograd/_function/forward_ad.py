"""Forward mode through a Function: its `jvp`, or the transpose of its `backward`."""

from __future__ import annotations

import jax

from ...core import elementary
from ...core.meta_array import MetaArray
from ...core.program import bare
from ...storage.alias import known_offset_of
from ...tape import dual, interception
from ...tape.dual_level import enabled, in_order, see_below, window
from ...tape.mode import PLAIN, RECORD, current_mode, switch, transform_levels
from ...tape.tensor import Tensor, abstract_value, alias_of, edge_of, may_require_grad, wrap
from ...tape.version_counter import counter_of
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
        for level in in_order({level for tensor in tensors for level in dual.levels_of(tensor)})
    ]


def move(ctx, outputs, results, moved):
    """Give the results of a call their tangents.

    outputs: what `forward` returned; results: these outputs as the caller gets them;
    moved: as `moving` returns it.
    """
    is_derived = not has_jvp(ctx._forward_cls)
    levels = [transform.level for transform in transform_levels.get()]
    views = {
        n: place for n, result in enumerate(results) if (place := _source(ctx, result)) is not None
    }
    by_level, apart = [], set()
    for level, tangents in moved:
        supply, versions = list(tangents), list(map(_version, tangents)) if views else ()
        token = see_below(level)
        try:
            values = _transposed(ctx, tangents) if is_derived else tangents_of(ctx, supply, outputs)
        finally:
            window.reset(token)
        shared = set()
        for number, place in views.items():
            is_changed = _version(supply[place]) != versions[place]
            if _shares(
                values[number], supply[place], is_changed, results[number], ctx._args[place]
            ):
                shared.add(number)
            elif is_derived or level in levels:
                apart.add(number)
            elif tangents[place] is not None:
                _refuse_view(ctx, values[number], supply[place], ctx._args[place])
        by_level.append((level, values, shared))
    for number, output in enumerate(results):
        if not isinstance(output, Tensor) or not may_require_grad(output):
            continue
        if number in apart:
            dual.own_tangents(output)
        for level, values, shared in by_level:
            if number in apart or number not in shared:
                dual.give(output, level, values[number])
    for saved in ctx._saved:
        if isinstance(saved, SavedOutput):
            saved.tangents = dual.kept(results[saved.number])


def _source(ctx, output) -> int | None:
    """The position of the argument that an output is a view of; None for any other output."""
    if not isinstance(output, Tensor) or output._base is None:
        return None
    if any(output is dirty for dirty in ctx.dirty_tensors or ()):
        return None
    aliases = [
        alias_of(argument) if isinstance(argument, Tensor) else None for argument in ctx._args
    ]
    roots = [alias if alias is None or alias.root is None else alias.root for alias in aliases]
    root = alias_of(output).root
    return roots.index(root) if root in roots else None


def _version(tangent) -> int:
    return 0 if tangent is None else counter_of(tangent).value


def _shares(value, tangent, is_changed, output, argument) -> bool:
    """Whether a tangent shows the same part of an argument's tangent as an output of the argument.

    The output then needs no tangent: it has that part of the argument's, also after later writes.
    """
    if value is None or tangent is None:
        return False
    if value is tangent:
        is_whole = _steps(output) == _steps(argument)
        return not is_changed and is_whole and known_offset_of(output) == known_offset_of(argument)
    if not _is_view_of(value, tangent) or _steps(value) != _steps(output):
        return False
    ends = [known_offset_of(tensor) for tensor in (value, tangent, output, argument)]
    # the place of a view at a traced index is not known: the author's word counts
    return None in ends or ends[0] - ends[1] == ends[2] - ends[3]


def _is_view_of(value, tangent) -> bool:
    if value._base is None or alias_of(tangent) is None:
        return False
    return alias_of(value).storage is alias_of(tangent).storage


def _steps(tensor) -> list[int]:
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def _refuse_view(ctx, value, tangent, argument):
    name = ctx._forward_cls.__name__
    if value is None or value._base is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is "
            f"not returning a view. The jvp of {name} must call the view operators that its "
            "forward calls, on the tangent that it gets, and not write to that"
        )
    if not _is_view_of(value, tangent):
        of = "of the same base as" if dual.is_cut(argument) else "of"
        raise RuntimeError(
            f"A custom Function is returning a view but the jvp is not returning a view {of} the "
            f"given grad input: {name}"
        )
    raise RuntimeError(
        f"The forward of {name} returns a view, and its jvp a view of another part of the tangent. "
        "Both must call the same view operators"
    )


def _transposed(ctx, tangents) -> list:
    """The tangents of the outputs, as the transpose of `backward`.

    Raises NotImplementedError if `backward` is not linear in its gradients, or is not recorded.
    """
    if not has_backward(ctx._forward_cls):
        raise NotImplementedError(no_jvp(ctx._forward_cls, "it has no backward"))
    if is_once_differentiable(ctx._forward_cls):
        raise NotImplementedError(no_jvp(ctx._forward_cls, "its backward is @once_differentiable"))
    weights = [
        wrap(elementary.filled(aval, 0), None, True)
        if aval is not None and aval.differentiable
        else None
        for aval in ctx._avals
    ]
    before, needed = current_mode.get(), (ctx.needs_input_grad, ctx._needs, ctx._inputs)
    ctx.needs_input_grad = ctx._needs = tuple(tangent is not None for tangent in tangents)
    ctx._inputs = [abstract_value(tangent) for tangent in tangents if tangent is not None]
    saved = ctx._saved
    try:
        _refuse_others_than_linear(ctx, weights)
        switch(RECORD)
        gradients = gradients_of(ctx, list(weights))
        pairs = [
            (gradient, tangent)
            for gradient, tangent in zip(gradients, filter(_is_tangent, tangents), strict=True)
            if gradient is not None
        ]
        if not all(gradient._requires_grad for gradient, _ in pairs):
            why = "the results of its backward are not recorded"
            raise NotImplementedError(no_jvp(ctx._forward_cls, why))
        return _products(pairs, weights, before is RECORD)
    finally:
        current_mode.set(before)
        ctx.needs_input_grad, ctx._needs, ctx._inputs = needed
        ctx._saved = saved  # reading it may have cleared it


def _products(pairs, weights, recorded):
    """For each weight, the gradient of the inner product of the gradients with their tangents."""
    ends = [edge_of(weight) for weight in weights if weight is not None]
    run = PassTo(True, recorded, ends)
    roots = [edge_of(gradient) for gradient, _ in pairs]
    run.run(roots, [run.carried(tangent) for _, tangent in pairs])
    supply = iter([run.captured.get((node.sequence, 0)) for node, _ in ends])
    return [None if weight is None else run.as_tensor(next(supply)) for weight in weights]


def _refuse_others_than_linear(ctx, weights):
    def gradients(*arrays):
        supply = iter(arrays)
        output_gradients = [None if weight is None else wrap(next(supply)) for weight in weights]
        with bare():
            input_gradients = gradients_of(ctx, output_gradients)
        return [gradient._array for gradient in input_gradients if gradient is not None]

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


def _is_tangent(tangent) -> bool:
    return tangent is not None
