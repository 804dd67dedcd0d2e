"""Writing an operator's result into an existing tensor: `x.add_(y)`, `out=z`.

Writes that PyTorch forbids raise before anything is computed: PyTorch's check_inplace.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ..core import dtypes, executor, promotion, view_ops
from ..core.aval import META, Aval, make_aval, strides_of, with_shape
from ..core.primitive import ARRAY
from ..core.pytorch_tensors import type_name
from ..core.strides import is_dense, reach
from ..core.tracebacks import users_stacklevel
from ..tape import handle_lock, interception
from ..tape.mode import INFERENCE, RECORD, current_mode
from ..tape.record import apply
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import DERIVED, INFERENCE_TENSOR, Tensor, current, held, hold
from ..tape.version_counter import counter_of
from .alias import (
    Alias,
    assign,
    begin,
    cut,
    offset_of,
    refuse_leak,
    root_of,
    snapshot,
    take,
)
from .creation_meta import (
    FUNCTION,
    IN_FUNCTION,
    NO_GRAD,
    ONE_OF_SEVERAL,
    SEVERAL,
    origin_of,
    unclear,
)
from .sole_owner import has_views

# inlined: the accessors of tape/tensor.py

OVERLAPPING = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)
PARTLY_SHARED = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)
RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match "
    "the required output shape {}: give {}() an empty one, or one of that shape"
)
NOT_DIFFERENTIABLE = (
    "functions with out=... arguments don't support automatic differentiation, but one of the "
    "arguments requires grad."
)


def overwrite(name: str, call, leaves, target: Tensor, fills: bool = False) -> Tensor:
    """Run a call, write its one result into `target`, and return `target`.

    fills: whether all elements of the result are one number.
    """
    tracked = any(isinstance(leaf, Tensor) and leaf._tracked for leaf in leaves)
    # what `permit` refuses is tracked, a view, an inference tensor, or shows strides
    is_usual = target._alias is None and target._node is None and target._aval.strides is None
    if tracked or not is_usual:
        # which of several places of one element gets the gradient of a recorded number is unknown
        is_equal = fills and not any(
            isinstance(leaf, Tensor) and leaf._tracked for leaf in leaves[1:]
        )
        permit(name, target, tracked, overlapping=is_equal)
    if target._alias is not None:
        check_sources(name, target, leaves)
    output = call.outputs[0]
    if output is not target._aval:
        check_fit(name, output, target)
        if target.dtype.is_complex and output.dtype.is_floating_point:
            operator = name.removesuffix("_")
            raise RuntimeError(
                f"In-place {operator} is not supported for complex tensors. Its result is real, so "
                f"call {operator}(), or assign to .real"
            )
    result = apply(call, leaves)
    follow = current_mode.get() is RECORD
    # a constant that overwrites a recorded tensor must end its history, which a recorded copy does
    forgets = follow and target._tracked and not result._tracked
    if output.dtype is not target._aval.dtype or forgets:
        result = _copied(call, target, result)
    assign(target, result, follow)
    return target


def replace(operator, target: Tensor, value: Tensor) -> Tensor:
    """Write a new tensor into `target`, as `operator(target, value)` does, whose result it is. If
    nothing records or observes the write, `target` takes the memory: nothing is copied, and the old
    values need not be computed. The caller has asked `permit`.
    """
    records = current_mode.get() is RECORD
    # annotations are of nodes, and none is made here
    is_seen = interception.is_general or interception.created is not None or executor.observers
    has_history = value._tracked or value._node is DERIVED or (records and target._tracked)
    if is_seen or has_history or value._aval is not target._aval:
        return operator(target, value)
    assign(target, value, records)
    return target


def check_fit(name, output: Aval, target: Tensor, result: str = "result"):
    """Raise RuntimeError for a result of another shape, without data for a target that has some, or
    of a dtype that does not cast to the target's. result: the name of the result.
    """
    if (output.mode == META) != (target._aval.mode == META):
        raise RuntimeError(
            f"{name}: Expected all tensors to be on the same device, but its result is "
            f"{'' if output.mode == META else 'not '}on meta, and the tensor {target._aval!r} that "
            f"it writes to is on {target.device}"
        )
    if output.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape "
            f"{list(output.shape)}: {name} never enlarges the tensor it writes to"
        )
    if not promotion.can_cast(output.dtype, target.dtype):
        kind, other = output.dtype.scalar_type, target.dtype.scalar_type
        if name.endswith("_"):
            raise RuntimeError(
                f"{name}: result type {kind} can't be cast to the desired output type {other}: "
                f"convert the tensor to {output.dtype!r} first, or use {name.strip('_')}, which "
                "makes a new one"
            )
        # the words of PyTorch's four checks
        raise RuntimeError(
            f"{name}: result type {kind} can't be cast to the desired output type {other}: "
            f"Expected {result} to be safely castable from {kind} dtype, but got {result} with "
            f"dtype {other}. {promotion.other_out(output.dtype, target.dtype)}"
        )


def fits(call, target: Tensor) -> bool:
    """Whether a call's result has the shape and dtype of the target."""
    output, shown = call.outputs[0], target._aval
    return (output.shape, output.dtype, output.mode) == (shown.shape, shown.dtype, shown.mode)


def _copied(call, target, result):
    """The result in the target's dtype, recorded as a copy into the target."""
    copy = call.primitive.scope["copy"].primitives[0]
    program = copy.call((ARRAY, ARRAY, False), (target._aval, result._aval))
    return apply(executor.prepare(program), [target, result])


def _cast(call, result, dtype):
    if result.dtype is dtype:
        return result
    to = call.primitive.scope["to"].primitives[0]
    program = to.call((ARRAY, dtype, False, False), (result._aval,))
    return apply(executor.prepare(program), [result])


def permit(name: str, target: Tensor, tracked: bool, overlapping: bool = False):
    """Raise RuntimeError if the tensor may not be written to.

    name: the operator; tracked: whether the tensor or an input of the write requires grad;
    overlapping: whether the write allows places of the target that share an element.
    """
    alias = current(target)._alias
    if target._node is INFERENCE_TENSOR and current_mode.get() < INFERENCE:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make "
            f"a clone to get a normal tensor before doing inplace update, here {name}"
        )
    is_view = alias is not None and alias.base is not None
    if is_view:
        _check_steps(alias.steps)
        # the base may have come to require grad after the view was made
        tracked = tracked or (target._aval.differentiable and alias.base._tracked)
    if tracked and current_mode.get() is RECORD:
        if is_view:
            _permit_view(name, target, alias)
        if target._tracked and target._node is None:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation. "
                f"Write `with torch.no_grad():` around {name} on a leaf of shape "
                f"{list(target.shape)}"
            )
    # a write to an expanded tensor would set one element several times
    if target._aval.strides is not None and not overlapping and view_ops.overlaps(target._aval):
        raise RuntimeError(f"{OVERLAPPING} {name} got one of shape {list(target.shape)}")


def check_sources(name: str, target: Tensor, leaves):
    """Raise RuntimeError if an argument shows a part of the memory that is written to, and not the
    same part as the target.
    """
    storage = target._alias.storage
    for leaf in leaves:
        if leaf is target or not isinstance(leaf, Tensor):
            continue
        alias = current(leaf)._alias
        if alias is not None and alias.storage is storage and _meet_partly(target, leaf):
            raise RuntimeError(
                f"{PARTLY_SHARED} {name} writes to one of shape {list(target.shape)} and reads one "
                f"of shape {list(leaf.shape)}"
            )


def _meet_partly(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors of one memory share some elements, but not all in one order. As in
    PyTorch False where one of them has gaps or overlaps itself.
    """
    ends, strides = [], []
    for tensor in (first, second):
        shown, place = tensor._aval, tensor._alias.place
        strides.append(strides_of(shown))
        start = offset_of(place) if _has_layout(place) else None
        if start is None or not shown.shape.numel() or not is_dense(shown.shape, strides[-1]):
            return False
        ends.append((start, start + shown.shape.numel() * shown.dtype.itemsize))
    if ends[0] == ends[1]:
        return strides[0] != strides[1]
    return ends[0][0] < ends[1][1] and ends[1][0] < ends[0][1]


def share_elements(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors show an element of one memory; True where that takes long to find out."""
    aliases = first._alias, second._alias
    if None in aliases or aliases[0].storage is not aliases[1].storage:
        return first is second
    places = [offset_of(one.place) if _has_layout(one.place) else None for one in aliases]
    if None in places:
        return True
    layouts = [
        (tuple(shown.shape), shown.dtype.itemsize, strides_of(shown))
        for shown in (first._aval, second._aval)
    ]
    ends = [
        start + reach(shape, steps) * size
        for start, (shape, size, steps) in zip(places, layouts, strict=True)
    ]
    memory = np.empty(max(ends), np.uint8)  # which nothing touches
    arrays = [
        np.ndarray(shape, f"V{size}", memory, start, [step * size for step in steps])
        for start, (shape, size, steps) in zip(places, layouts, strict=True)
    ]
    try:
        return np.shares_memory(*arrays, max_work=10_000)
    except np.exceptions.TooHardError:
        return True


def _has_layout(step) -> bool:
    """Whether the strides of a view and of its sources are known."""
    while step is not None and view_ops.has_layout(step.call):
        step = step.before
    return step is None


def _check_steps(step):
    while step is not None:
        rule = step.call.primitive.rule
        if not step.call.writable:
            raise NotImplementedError(
                f"{rule.schema.full_name} ({rule.path}:{rule.line}) is a view of a part of its "
                "input: it can be written through only where its entry has `write:`"
            )
        step = step.before


def unexpanded(target: Tensor, kept: int = 0) -> Tensor | None:
    """The tensor that was expanded to `target`: filling it fills `target`.

    None if `target` shows only a part of it, or has another layout in the last `kept` dimensions.
    """
    alias = current(target)._alias
    steps = None if alias is None else alias.steps
    while steps is not None and steps.call.primitive.rule.write is None:
        steps = steps.before
        shown = root_of(alias)._aval if steps is None else steps.call.outputs[0]
        if not view_ops.overlaps(shown):
            return cut(alias, steps) if _last(shown, kept) == _last(target._aval, kept) else None
    return None


def _last(shown: Aval, kept: int) -> tuple:
    """The extents and strides of the last `kept` dimensions."""
    start = len(shown.shape) - kept
    return shown.shape[start:], strides_of(shown)[start:]


def _permit_view(name, target, alias):
    if alias.creation >= FUNCTION:
        why = IN_FUNCTION if alias.creation == FUNCTION else SEVERAL
        raise RuntimeError(f"{origin_of(target)} is a view and is being modified inplace. {why}")
    if alias.creation >= NO_GRAD:
        raise RuntimeError(unclear(alias.creation, "is being modified inplace"))
    if alias.creation == ONE_OF_SEVERAL:
        raise RuntimeError(
            f"{origin_of(target)} is a view and is being modified inplace. {SEVERAL}"
        )
    # the base as of its last read: reading it now would settle the pending write
    if (alias.base._tracked or target._tracked) and alias.base._node is None:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation. "
            f"Write `with torch.no_grad():` around {name} on a view of a leaf of shape "
            f"{list(alias.base.shape)}"
        )


def write_into(name: str, call, leaves, out):
    """Run a call, write its results into the tensors `out`, and return them."""
    targets = targets_of(name, leaves, out)
    check_kind(name, out, call.single)
    if call.primitive.rule.returns_list and not isinstance(out, Tensor):
        _check_count(name, call.outputs, targets)
    tags = call.primitive.rule.tags
    if "exact_real_out" in tags and not any(_is_complex(leaf) for leaf in leaves):
        tags |= {"exact_out"}
    check_outputs(name, call.outputs, targets, tags, call.primitive.rule.outputs)
    if "separate_out" in tags and any(share_elements(leaf, targets[0]) for leaf in leaves):
        raise RuntimeError(f"{PARTLY_SHARED} {name} reads the tensor that out= writes to")
    results = apply(call, leaves)
    for result, target in zip(
        [results] if isinstance(results, Tensor) else results, targets, strict=True
    ):
        give(name, _cast(call, result, target.dtype), target)
    return out if isinstance(out, Tensor) else call.primitive.pack(targets)


def _is_complex(leaf) -> bool:
    return isinstance(leaf, Tensor) and leaf.dtype.is_complex


def _check_count(name, outputs, targets):
    if len(outputs) != len(targets):
        raise RuntimeError(
            f"{name}(): expected an out= argument of size {len(outputs)}, got size {len(targets)}"
        )


def targets_of(name: str, leaves, out) -> list[Tensor]:
    """Return the tensors that `out=` names.

    leaves: the arguments of the call. Raises TypeError for other types, and RuntimeError if a
    gradient would be lost.
    """
    targets = list(out) if isinstance(out, tuple | list) else [out]
    inputs = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    if not all(isinstance(target, Tensor) for target in targets):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type_name(out)}")
    for target in filter(is_sparse, targets):
        raise NotImplementedError(
            f"{name}(): the result is a strided tensor, but got out= of layout {target.layout}"
        )
    if current_mode.get() is RECORD and any(tensor.requires_grad for tensor in (*inputs, *targets)):
        raise RuntimeError(f"{name}(): {NOT_DIFFERENTIABLE} Leave out=, or enter no_grad()")
    for target in targets:
        if current(target)._alias is not None:
            check_sources(name, target, inputs)
    return targets


def check_kind(name: str, out, is_single: bool):
    """Raise TypeError for a list or tuple as `out=` of a function with one result."""
    if is_single and not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type_name(out)}")


def check_outputs(name: str, outputs: Sequence[Aval], targets, tags=frozenset(), names=()):
    """Raise an error if the outputs may not be written to the targets of `out=`; tags: what the
    table says of the operator; names: those of the outputs.
    """
    if len(outputs) != len(targets):
        raise TypeError(f"{name}(): out= takes {len(outputs)} tensors, but got {len(targets)}")
    is_exact = "exact_out" in tags or ("exact_outs" in tags and len(outputs) > 1)
    names = names if len(names) == len(outputs) else ["result"] * len(outputs)
    for output, target, result in zip(outputs, targets, names, strict=True):
        # all targets before the first is written to
        permit(name, target, False)
        # not for its shape: out= resizes its target
        dtype = dtypes.bool if "bool_out" in tags else output.dtype
        if "type_error_out" in tags and not promotion.can_cast(dtype, target.dtype):
            raise TypeError(
                f"{name}(): input types can't be cast to the desired output type "
                f"{target.dtype.scalar_type}; {promotion.other_out(dtype, target.dtype)}"
            )
        check_fit(name, make_aval(target.shape, dtype, output.mode), target, result)
        if is_exact and target.dtype is not output.dtype:
            raise RuntimeError(f"{name}: {promotion.other_out(output.dtype, target.dtype)}")
        if "bool_out" in tags and target.dtype not in (dtypes.bool, dtypes.uint8):
            raise RuntimeError(
                f"{name} only supports bool tensor for result, got: {target.dtype.scalar_type}"
            )
        if "real_out" in tags and target.dtype.is_complex:
            raise RuntimeError(
                f"{name} expects a floating point output tensor, but got {target.dtype.scalar_type}"
            )
    if len(set(map(id, targets))) < len(targets):
        raise RuntimeError(
            f"{name}(): out= has one tensor for several results, so one would overwrite another: "
            "pass a tensor for each"
        )


def give(name: str, source: Tensor, target: Tensor, warns: bool = True) -> Tensor:
    """Copy the values of one tensor into another, which is resized to its shape.

    warns: whether to warn of a new shape.
    """
    permit(name, target, target.requires_grad)
    check_fit(name, with_shape(source._aval, target.shape), target)
    if source.shape != target.shape:
        # PyTorch resizes an empty tensor without a warning
        if target.numel() and warns:
            message = RESIZED.format(list(target.shape), list(source.shape), name)
            warnings.warn(message, stacklevel=users_stacklevel())
        move(target, source)
    assign(target, source, False)
    return target


# changing the memory or the view that a handle shows


def move(target: Tensor, source: Tensor):
    """Make a tensor show the memory of another, as `set_` and `data=` do; its history stays.

    The tensors that shared its old memory keep that.
    """
    refuse_leak(target, source)
    if interception.moved is not None:
        interception.moved(target, source)
    with handle_lock.lock:
        alias = alias_of_other(target, source)
        hold(target, held(source), source._aval)
        target._alias = alias
        if target._leaf is not None:
            target._leaf.tangents = None


def alias_of_other(target: Tensor, source: Tensor) -> Alias | None:
    """The alias of a tensor that is about to show the memory of `source`."""
    # views of the old memory keep it, by a handle that stands in for this one
    before = _stand_in(target)
    if before is None:
        return source._alias
    alias = begin(source)
    alias.before = before
    return alias


def turn(target: Tensor, view_of, follow: bool):
    """Make a tensor a view of itself, as `t_` does; view_of: makes the view."""
    alone = target._alias is None and not target._aval.dual
    view = view_of(target)
    shown = view._alias
    if alone:
        target._alias = None  # the view shares its memory, and is not kept
    refuse_leak(target, view)
    if not alone:
        target._alias = _turned(target, shown)
    elif target._leaf is not None:
        target._leaf.tangents = None
    target._aval = view._aval
    take(target, view, follow)
    counter_of(target).count()


def _turned(target, shown):
    """The new alias of a tensor that becomes a view of itself; shown: the alias of that view."""
    if shown.base is not target:
        alias = Alias(
            shown.storage, shown.place, shown.root, shown.base, shown.steps, shown.creation
        )
        alias.tangents = shown.tangents
        return alias
    with handle_lock.lock:
        alias = Alias(shown.storage, shown.place, shown.root, None, shown.steps)
        alias.before = _stand_in(target)
    return alias


def _stand_in(target):
    """A handle that replaces the tensor as the root of its views, or of views of a memory that it
    showed before; None without views.
    """
    alias = current(target)._alias
    if alias is None or alias.base is not None:
        return None
    if alias.root is not None:
        return alias.before
    before = alias.before
    del alias  # it would count as a view
    if not has_views(target):
        # an earlier memory may still have views
        while before is not None and not has_views(before):
            before = before._alias.before
        return before
    handle = snapshot(target)
    handle._alias, handle._counter = target._alias, target._counter
    return handle
