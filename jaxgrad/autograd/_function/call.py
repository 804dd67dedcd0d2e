"""A call of a Function: its `forward`, the node it leaves, and the run of its `backward`.

`forward` runs without being recorded, and its outputs get the call's node for their history. What
it computed on the way from inputs that require grad is marked (`modes.MARK`): if such a tensor was
saved, a second derivative needs its history, and `forward` runs once more, recorded.
"""

from __future__ import annotations

import functools
import inspect

import jax

from ... import ops
from ...core import executor
from ...tape import (
    dual_level,
    interception,
    node_annotations,
    untracked_reason,
    version_counter,
)
from ...tape.mode import INFERENCE, MARK, PLAIN, RECORD, current_mode, is_grad_enabled, off
from ...tape.node import FREED, SECOND_TIME, Node, next_sequence_number
from ...tape.record import refuse_inference
from ...tape.tensor import INFERENCE_TENSOR, Tensor, current, known_edge_of
from . import user_rules
from .ctx_attributes import put_aside, reserved
from .forward_ad import move, moving
from .outputs import Outputs
from .saved_variables import Saved, SavedOutput, refuse_attributes, sever
from .user_rules import gradients_of, has_setup

CONSUMED = object()


class FunctionNode(Node):
    """The node of a Function's call, which is also the call's `ctx`.

    Names without an underscore are the author's to set, whatever they are (function_names.py).
    """

    edges, extras, output_count, sequence = (), None, 0, 0
    to_save = saved_for_forward = dirty_tensors = non_differentiable = None
    materialize_grads = True
    needs_input_grad = ()
    _saved = ()  # what `backward` finds in `saved_tensors`: `Saved` or None each
    _in_jvp = False  # whether they are for the moment those of `save_for_forward`
    _again = None  # the arguments, where `forward` must run again for a second derivative
    _args = None  # the arguments, during the call
    _tensors = ()  # of each argument whether it is a tensor
    _inputs = ()  # of each that needs a gradient the abstract value
    _avals = ()  # of each output the abstract value, None for what is no tensor
    _moving = False  # whether an argument had a tangent
    _checks = None  # the versions of what is saved, where they are to be checked
    _authors = None  # attributes of the author's that are put aside: see function_names.py
    _reserved = frozenset()

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self):
        edges = iter(super().next_functions)
        pairs = zip(self.needs_input_grad, self._tensors, strict=True)
        return tuple(next(edges) if needed else (None, 0) for needed, tensor in pairs if tensor)

    def outputs(self):
        return self._avals

    @property
    def is_freed(self):
        return self._saved is FREED

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `save_for_backward` was given. Raises RuntimeError once it is freed."""
        saved = self._saved
        if saved is FREED:
            raise RuntimeError(f"{SECOND_TIME} This is {self.name()}")
        if saved is CONSUMED:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True: "
                f"{self.name()} has read them before"
            )
        if self._checks is not None:
            self._checks.check(self.name())
        if is_grad_enabled() or (self._moving and dual_level.is_any_begun()):
            found = self._with_history(saved)
        else:
            found = tuple([None if each is None else each.tensor(self) for each in saved])
        if self._forward_cls.clear_saved_tensors_on_access and saved:
            self._saved = CONSUMED
        return found

    def _with_history(self, saved):
        """What was saved, what was computed on the way by a `forward` that is recorded."""
        if not any(each is not None and each.derived for each in saved):
            return tuple([None if each is None else each.tensor(self) for each in saved])
        return tuple(
            None if each is None else again if each.derived else each.tensor(self)
            for each, again in zip(saved, recomputed(self), strict=True)
        )

    saved_variables = saved_tensors

    @property
    def _raw_saved_tensors(self):
        return () if self._saved in (FREED, CONSUMED) else self._saved

    def run(self, run, gradients):
        """The author's `backward`, as the engine runs it."""
        if run.create_graph:
            sever(self)
        elif self._moving and dual_level.is_any_begun():
            refuse_attributes(self)
        results = list(map(run.carried, gradients_of(self, list(map(run.as_tensor, gradients)))))
        if not run.retain_graph and self._saved:
            self._saved, self._again = FREED, None
        return results[0] if len(results) == 1 else results

    def _checked(self, found):
        """What `backward` gave: for each edge a gradient of its input's shape and dtype, or None.

        Raises RuntimeError for what cannot be one.
        """
        found = found if isinstance(found, tuple) else (found,)
        needs, inputs, results = self.needs_input_grad, self._inputs, []
        if len(found) != len(needs):
            self._check_count(found)
        for position, needed in enumerate(needs):
            gradient = found[position]
            if gradient is not None:
                self._check_kind(gradient, position)
            if needed:
                aval = inputs[len(results)]
                if gradient is not None and gradient._aval is not aval:
                    gradient = self._conformed(gradient, aval, len(results))
                results.append(gradient)
        return results

    def _check_count(self, found):
        count = len(self.needs_input_grad)
        if len(found) < count or any(extra is not None for extra in found[count:]):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(found)}): one for each argument of forward, None for what has "
                "none"
            )

    def _check_kind(self, gradient, position):
        if not isinstance(gradient, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(gradient).__name__}): {self.name()} "
                f"returned it as the gradient of argument {position}"
            )
        if not self._tensors[position]:
            raise RuntimeError(
                f"function {self.name()} returned a gradient different than None at position "
                f"{position + 1}, but the corresponding forward input was not a Variable"
            )

    def _conformed(self, gradient, aval, index):
        """A gradient summed to its input's shape, in its dtype."""
        shape, wanted = gradient.shape, aval.shape
        lead = len(shape) - len(wanted)
        pairs = list(zip(shape[max(lead, 0) :], wanted, strict=False))
        if lead < 0 or any(want not in (extent, 1) for extent, want in pairs):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {index} - got "
                f"{list(shape)} but expected shape compatible with {list(wanted)}"
            )
        if gradient.dtype.is_complex and not aval.dtype.is_complex:
            raise RuntimeError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == "
                f"grad_is_complex) to be true: {self.name()} returned a complex gradient at index "
                f"{index} for a real input of {aval.dtype}; take its real part"
            )
        if shape != wanted:
            stretched = [lead + i for i, (e, want) in enumerate(pairs) if want == 1 != e]
            gradient = ops.sum(gradient, (*range(lead), *stretched), True).reshape(wanted)
        return gradient if gradient.dtype is aval.dtype else gradient.to(aval.dtype)


AUTHORS = (
    *("to_save", "saved_for_forward", "dirty_tensors", "non_differentiable"),
    *("materialize_grads", "needs_input_grad"),
)
FunctionNode._reserved = reserved(FunctionNode, AUTHORS)


@functools.lru_cache(maxsize=1024)
def _signature(cls):
    """The signature of a `forward`, without `ctx`, and the defaults of what it takes by position.

    Nothing is taken by name alone: a tensor that came so would have no gradient.
    """
    signature = inspect.signature(cls.forward)
    named = list(signature.parameters.values())[0 if has_setup(cls) else 1 :]
    alone = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    named = [parameter for parameter in named if parameter.kind not in alone]
    defaults = [p.default for p in named if p.kind is not inspect.Parameter.VAR_POSITIONAL]
    return signature.replace(parameters=named), tuple(defaults)


def bound(cls, args, kwargs):
    """The arguments of a call, all by position; with `setup_context`, defaults included."""
    if not kwargs and not has_setup(cls):
        return args
    signature, defaults = _signature(cls)
    if kwargs or inspect.Parameter.empty in defaults[len(args) :]:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return given.args
    return (*args, *defaults[len(args) :])


def apply(cls, args):
    """Call a Function on tensors."""
    return begin(cls, args)[0]


def begin(cls, args):
    """The outputs of a call, as `forward` gave them, and its node."""
    ctx, now = cls._backward_cls(), current_mode.get()
    tensors, needs, edges, inputs, before = [], [], [], [], []
    for argument in args:
        is_tensor = isinstance(argument, Tensor)
        tensors.append(is_tensor)
        needed = is_tensor and current(argument)._tracked
        needs.append(needed)
        if needed and now is RECORD:
            node = argument._node
            edges.append(known_edge_of(argument) if node is None else (node, argument._nr))
            inputs.append(argument._aval)
            before.append(argument._raw)
    ctx.needs_input_grad = tuple(needs)
    recorded = bool(edges)
    if recorded:
        number = next_sequence_number()  # higher than those of the leaves' new nodes
    moved = () if interception.tangents is None or now >= INFERENCE else moving(args)
    output = forward(cls, ctx, args, recorded or bool(moved), now)
    if not ctx._reserved.isdisjoint(ctx.__dict__):
        put_aside(ctx)
    ctx._tensors = tensors
    made = finished(ctx, args, output, recorded)
    if recorded or moved:
        ctx.edges, ctx._inputs, ctx._args, ctx._moving = edges, inputs, args, bool(moved)
        if recorded:
            ctx.sequence = number
        if ctx.to_save:
            keep(ctx, output, made, before)
        if interception.is_noted:
            node_annotations.note(ctx)
            if node_annotations.lines.get():
                untracked_reason.note_call(ctx, args, made if isinstance(made, tuple) else (made,))
    if moved:
        move(ctx, made if isinstance(made, tuple) else (made,), moved)
    ctx._args = ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = None
    return made, ctx


def finished(ctx, args, output, recorded):
    """What the caller gets for what `forward` returned."""
    if recorded and is_new(ctx, output, args):
        ctx._avals, ctx.output_count = (output._aval,), 1
        output._tracked, output._node, output._nr = True, ctx, 0
        return output
    several = isinstance(output, tuple)
    made = Outputs(ctx, args, output if several else (output,), recorded).finished()
    return made if several else made[0]


def is_new(ctx, output, args) -> bool:
    """Whether an output is one differentiable tensor of its own, as most are."""
    return (
        isinstance(output, Tensor)
        and output._alias is None
        and ctx.dirty_tensors is None
        and ctx.non_differentiable is None
        and output._aval.differentiable
        and output._node is not INFERENCE_TENSOR
        and all([output is not argument for argument in args])  # noqa: C419 (quicker)
    )


def forward(cls, ctx, args, recorded, now):
    """Run the author's `forward`, with grad mode off."""
    inside = MARK if recorded or now == MARK else PLAIN
    within = INFERENCE if now >= INFERENCE else inside
    if not executor.observers:
        return run_forward(cls, ctx, args, within, inside)
    run = cls, ctx, args, within, inside
    return executor.run(cls.__name__, run_forward, *run, inputs=args)


def run_forward(cls, ctx, args, within, turned_off):
    """`forward` in the mode `within`, in which switching grad mode off leads to `turned_off`."""
    before, outer, seen = current_mode.get(), off.get(), None
    current_mode.set(within)
    off.set(turned_off)
    if interception.tangents is not None and within != RECORD and dual_level.is_any_begun():
        seen = dual_level.hide()  # the tangents are the author's business
    try:
        if cls.setup_context is user_rules.BASE.setup_context:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output
    finally:
        off.set(outer)
        current_mode.set(before)
        if seen is not None:
            dual_level.window.reset(seen)


def recomputed(ctx) -> list:
    """The tensors that a call saved, computed again by a `forward` that is recorded.

    Raises RuntimeError where it does not come to the same, by drawing random numbers, say: the
    history of what was saved is then not to be had.
    """
    cls, again = ctx._forward_cls, type(ctx)()
    given = arguments(ctx) if ctx._again is None else ctx._again
    given = [a.tensor(ctx).clone() if isinstance(a, Saved) else a for a in given]
    again.needs_input_grad = ctx.needs_input_grad
    run_forward(cls, again, tuple(given), RECORD, RECORD)
    found = list((again.saved_for_forward if ctx._in_jvp else again.to_save) or ())
    if len(found) != len(ctx._saved) or not all(map(_same, found, ctx._saved)):
        raise RuntimeError(
            f"{ctx.name()} saved an intermediate result of its forward, and running forward once "
            "more gave another: without its history the second derivative would be wrong. Return "
            "it as an output, or compute it in backward from what was saved"
        )
    return found


def _same(tensor, saved) -> bool:
    if saved is None or tensor is None:
        return saved is tensor
    if not saved.derived:
        return True
    before = saved.array if saved.packed is None else saved.packed.tensor()._array
    if isinstance(before, jax.core.Tracer) or isinstance(tensor._array, jax.core.Tracer):
        return tensor.shape == saved.aval.shape  # nothing random can be drawn in a trace
    with jax.enable_x64(True):
        return tensor.shape == saved.aval.shape and bool(
            jax.numpy.array_equal(tensor._array, before, equal_nan=True)
        )


def keep(ctx, output, made, before):
    """Keep what `save_for_backward` was given. `before`: the arrays of the inputs that need a
    gradient, as they were when `forward` began.
    """
    values, made = (output, made) if isinstance(output, tuple) else ((output,), (made,))
    numbers = {id(value): i for i, value in enumerate(values) if isinstance(value, Tensor)}
    if version_counter.strict.get() or version_counter.mutation.get() is not None:
        ctx._checks = version_counter.Checks()
    pair, saved = node_annotations.packing.get(), []
    for tensor in ctx.to_save:
        if tensor is None:
            saved.append(None)
            continue
        number = numbers.get(id(tensor))
        refuse_inference(ctx.name(), tensor)
        saved.append(Saved(tensor) if number is None else SavedOutput(made[number], number))
        if ctx._checks is not None:
            source = version_counter.source_of(tensor)
            ctx._checks.note(tensor, source, tensor._nr)
        if pair is not None:
            saved[-1].pack(pair)
    ctx._saved = tuple(saved)
    if any(each is not None and each.derived for each in saved):
        ctx._again = arguments(ctx, before)


def arguments(ctx, before=()) -> list:
    """The arguments of a call, for `forward` to run again on what it was given."""
    found, places = [], iter(zip(before, ctx.edges, strict=False))
    for argument, needed in zip(ctx._args, ctx.needs_input_grad, strict=True):
        saved = Saved(argument) if isinstance(argument, Tensor) else argument
        if needed and before:
            saved.array, saved.edge = next(places)
        found.append(saved)
    return found
