"""Runs a program on tensors: its kernel on their arrays, and a node if one requires grad.

Callers pass tensors that are up to date (`tape/tensor.current`).
"""

from __future__ import annotations

import warnings

import jax

from ..core import executor
from ..core.aval import SPREAD, is_concrete, traced_aval
from ..core.deferred import LONGEST, local
from ..core.pending import Pending
from ..core.program import Program
from ..core.tracebacks import users_stacklevel
from ..core.unrecorded import unrecorded
from . import handle_lock, interception, mode, node_annotations, untracked_reason, version_counter
from .handle_lock import owner
from .mode import FOLLOWED, INFERENCE, MARK, PLAIN, RECORD, current_mode
from .node import ProgramNode, next_sequence_number
from .source_location import jax_is_called_by_user, lines
from .tensor import (
    DERIVED,
    INFERENCE_TENSOR,
    PLAIN_TENSORS,
    Tensor,
    has_tangent,
    known_edge_of,
    wrap,
)

# inlined: the accessors of tape/tensor.py

_new = object.__new__
_Tracer = jax.core.Tracer
# a result of this very type is no tracer: one comparison in place of an isinstance
_plain = None  # the type of JAX's arrays, after the first kernel has run

FROZEN = (
    "a tensor that requires grad is read while JAX traces (jax.jit, jax.lax, shard_map): it is a "
    "constant of JAX's program, which sees no later change of it and gives it no gradient. Compile "
    "with jaxgrad.jit, or pass it as an argument (of a module by func.functional_call); detach() "
    "what is a constant"
)


def _seen(result, aval, leaves, mask):
    """The abstract value of a result, which is a tracer if a kernel of concrete inputs ran under a
    trace. Warns of an input that such a trace freezes.
    """
    global _plain
    if not isinstance(result, _Tracer):
        _plain = type(result)
        return aval
    is_read = True in mask and mode.scope.get() is None and any(map(_is_concrete, leaves, mask))
    # inside jax.grad and jax.vmap alone, the tensor is read anew at each call
    if is_read and executor.is_traced() and jax_is_called_by_user():
        warnings.warn(FROZEN, stacklevel=users_stacklevel())
    return traced_aval(aval, result) if is_concrete(aval.mode) else aval


def _is_concrete(leaf, requires_grad) -> bool:
    return requires_grad and is_concrete(leaf._aval.mode)


def apply(program: Program, leaves: list):
    """Run a program on tensors and numbers; record it if grad mode is on and one requires grad."""
    if interception.tangents is not None:
        program = interception.tangents(program, leaves)
    arrays, mask = [], []
    for leaf in leaves:
        # the usual case of `_value_of` inlined
        is_tensor = type(leaf) in PLAIN_TENSORS
        is_usual = is_tensor and leaf._alias is None and interception.read is None
        arrays.append(leaf._raw if is_usual else _value_of(leaf))
        mask.append(leaf._tracked if is_usual else isinstance(leaf, Tensor) and leaf._tracked)
    arrays, mask = tuple(arrays), tuple(mask)
    return finish(program, leaves, arrays, mask)


def finish(program: Program, leaves, arrays: tuple, mask):
    """`apply` with the arrays of the leaves and, in `mask`, whether each leaf requires grad."""
    if owner.thread is not None and handle_lock.is_owned_by_another():
        arrays = _settled(leaves)
    kernel, stretch = program.kernel, local.stretch
    aval = kernel.noted
    if aval is not None and 0 < len(stretch.entries) < LONGEST and interception.read is None:
        # the kernel inlined
        results = _new(Pending)
        results.array, results.aval, results.stretch = None, aval, stretch
        stretch.entries.append((program, arrays, (results,)))
    else:
        results = kernel.call(*arrays)
    current, node, requires_grad = current_mode.get(), None, False
    if current is RECORD:
        if True in mask:
            reverse = program.reverses.get(mask) or _reverse_of(program, mask)
            if reverse.wanted:
                node, requires_grad = _record(reverse, leaves, arrays, results), True
    elif current is not PLAIN or interception.read is not None:
        node, results = _unrecorded(program, leaves, mask, results)
    if program.single:
        # `_wrap` inlined
        aval = program.outputs[0]
        if type(results) is not Pending and type(results) is not _plain:
            aval = _seen(results, aval, leaves, mask)
        tensor = _new(Tensor)
        tensor._raw, tensor._aval = results, aval
        tensor._tracked = requires_grad
        tensor._node = node
        tensor._nr = 0
        tensor._leaf = tensor._alias = tensor._counter = None
        if program.attach is not None:
            _note_births((tensor,))
            program.attach(leaves, (tensor,))
        if interception.is_noted:
            _note(program, leaves, mask, node, (tensor,))
        return tensor
    return _several(program, leaves, mask, results, requires_grad, node)


def _several(program, leaves, mask, results, requires_grad, node):
    """The tensors of a program with several results."""
    if results and type(results[0]) is not Pending and type(results[0]) is not _plain:
        _seen(results[0], program.outputs[0], leaves, mask)
    several = list(_wrap_all(program, results, requires_grad, node))
    if program.attach is not None:
        _note_births(several)
        program.attach(leaves, several)
    if interception.is_noted:
        _note(program, leaves, mask, node, several)
    return program.result(several)


def is_differentiated() -> bool:
    """Whether JAX differentiates what is computed here, not the tape."""
    scope = mode.scope.get()
    return scope is not None and scope.is_differentiated


def _unrecorded(program, leaves, mask, results):
    """The mark of results that are not recorded, in place of a node, and these results: constants
    for JAX's reverse mode, where it differentiates.
    """
    current = current_mode.get()
    if leaves_out():
        stop = jax.lax.stop_gradient if current >= INFERENCE else unrecorded
        results = stop(results) if program.single else tuple(map(stop, results))
    if current >= INFERENCE:
        return INFERENCE_TENSOR, results
    return DERIVED if current == MARK and _is_derived(program, leaves, mask) else None, results


def leaves_out() -> bool:
    """Whether JAX differentiates what is computed here, and grad mode is off."""
    return is_differentiated() and current_mode.get() not in FOLLOWED


def _settled(leaves) -> tuple:
    with handle_lock.settled():
        return tuple(map(_value_of, leaves))


def _value_of(leaf):
    # a number may be Varying
    return leaf._value if isinstance(leaf, Tensor) else getattr(leaf, "_array", leaf)


def _record(reverse, leaves, arrays, results) -> ProgramNode:
    constants, take, outputs, wanted, single = reverse.recipe
    # a residual that gets a gradient requires grad, which no inference tensor does
    for i in constants:
        if leaves[i]._node is INFERENCE_TENSOR:
            refuse_inference(reverse.program.name, leaves[i])
    saved = take(arrays)
    if outputs:
        saved += (results,) if single else tuple([results[i] for i in outputs])
    # whoever read the arrays has brought the leaves up to date
    if len(wanted) == 1:
        leaf = leaves[wanted[0]]
        node = leaf._node
        edges = (known_edge_of(leaf) if node is None else (node, leaf._nr),)
    else:
        edges = tuple([known_edge_of(leaves[i]) for i in wanted])
    count = 1 if single else len(results)
    if interception.is_noted:
        return node_annotations.new_node(reverse, saved, edges, count, leaves)
    # its constructor inlined
    node = _new(ProgramNode)
    node.extras, node.output_count, node.reverse = None, count, reverse
    node.saved, node.edges, node.sequence = saved, edges, next_sequence_number()
    return node


def _note_births(results):
    if interception.created is not None:
        for result in results:
            interception.created(result)


def _note(program, leaves, mask, node, results):
    _note_births(results)
    if isinstance(node, version_counter.CheckedNode):
        node.note_results(results)
    if lines.get():
        untracked_reason.note(program, leaves, mask, node, results)


def _wrap_all(program, results, requires_grad, node):
    differentiable = () if node is INFERENCE_TENSOR else program.differentiable_outputs
    plain = INFERENCE_TENSOR if node is INFERENCE_TENSOR else None
    for i, (result, aval) in enumerate(zip(results, program.outputs, strict=True)):
        if i in differentiable:
            yield _wrap(result, aval, requires_grad, node, i)
        else:
            yield _wrap(result, aval, False, plain, 0)


def _is_derived(program, leaves, mask) -> bool:
    """Whether results depend by a derivative on a tensor that requires grad or has a tangent."""
    return bool(program.differentiable_outputs) and any(
        tracked and (required or getattr(leaf, "_node", None) is DERIVED or _is_dual(leaf))
        for leaf, required, tracked in zip(leaves, mask, program.tracked, strict=True)
    )


def _is_dual(leaf) -> bool:
    return isinstance(leaf, Tensor) and has_tangent(leaf)


def _wrap(array, aval, requires_grad, node, output_nr):
    if type(array) is not _plain and aval.mode <= SPREAD and isinstance(array, _Tracer):
        aval = traced_aval(aval, array)
    return wrap(array, aval, requires_grad, node, output_nr)


def _reverse_of(program: Program, mask):
    """The reverse program for the inputs that require grad and can have a gradient."""
    wanted = tuple(flag and tracked for flag, tracked in zip(mask, program.tracked, strict=True))
    if not program.differentiable_outputs:
        wanted = (False,) * len(mask)
    interception.recording(program)
    # under the mask that was asked for, so that the next call finds it at once
    reverse = program.reverses[mask] = program.reverse(wanted)
    return reverse


def refuse_inference(name: str, tensor: Tensor):
    """Raise RuntimeError for an inference tensor, which must not be saved."""
    if tensor.is_inference() and not mode.saves_inference.get():
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            f"inference mode in computation tracked by autograd: {name} got one of shape "
            f"{list(tensor.shape)}; use its clone(), made outside of inference mode"
        )
