"""Calls of checkpointed functions: what a call keeps, and how the function is recomputed.

Nodes recorded inside of such a call save their arrays through a pair of saved-tensor hooks
(tape/node_annotations.py), and so keep a `SavedSlot` in place of each. When a backward pass first
unpacks a slot, the function runs again, and the arrays saved then fill the slots in order. They are
kept for that pass, until each is used.
"""

from __future__ import annotations

import contextvars
import functools
import weakref
from contextlib import ExitStack, contextmanager

import jax

from ..autograd._engine.saved_tensor_hooks import saved_tensors_hooks
from ..autograd._function.saved_variables import SavedVariable
from ..core import dtypes, executor
from ..frontend.request import Ready
from ..ops import autocast
from ..tape import mode, node_annotations
from ..tape.mode import RECORD, Draws
from ..tape.node import AccumulateGrad, Node, next_sequence_number
from ..tape.source_location import place_of_caller
from ..tape.sparse_tensor import is_sparse, sparse
from ..tape.tensor import (
    Tensor,
    abstract_value,
    held,
    hold,
    is_traced,
    is_tracked,
    node_or_mark,
    output_number,
    recorded_node,
    set_node,
)
from .checkpoint_state import CheckpointError, OuterState, mapped, once, tensors_in, version_of
from .delayed_recompute import after_gradients

# the call that is running in this context, and its recomputation, None for the first run
around = contextvars.ContextVar("jaxgrad.checkpoint", default=None)

# functions that give contexts: what modules around a call do for it, and for its recomputations
surroundings = contextvars.ContextVar("jaxgrad.checkpoint_surroundings", default=())

# whether an argument of an inner call is being unpacked, which may be needed again
of_argument = contextvars.ContextVar("jaxgrad.checkpoint_argument", default=False)

# the GraphExecGroup that is entered in this context
group = contextvars.ContextVar("jaxgrad.checkpoint_group", default=None)

TIP = (
    "The function must do the same whenever it runs. To see which operators differ, pass "
    "`debug=True` to checkpoint(), or use set_checkpoint_debug_enabled(True)"
)


def _is_traced(result) -> bool:
    """Whether what a draw gave is a tracer."""
    return type(result) is Ready and isinstance(result.values, jax.core.Tracer)


class StopRecomputation(BaseException):
    """Ends a recomputation once every needed tensor has been saved."""


class SavedSlot:
    """Stands in a node for an array that it saved."""

    __slots__ = ("__weakref__", "call", "number")

    def __init__(self, call: CheckpointedCall, number: int):
        self.call, self.number = call, number


class Recomputation:
    """A further run of a function.

    `count`: how many tensors it has saved; `tensors`: by number those that the backward pass needs;
    `shown`: the compared properties of each; `names`: the nodes that saved them; `log`: with
    `debug`, the operators.
    """

    def __init__(self):
        self.count, self.tensors, self.shown, self.names, self.log = 0, {}, {}, [], []


class CheckpointedCall:
    """One call of a checkpointed function.

    `slots`: weak references to the slots in its nodes, in order; `shown`: what is compared of the
    tensors saved there; `names`: the nodes that saved them; `recomputed`: for each pass, or group
    of passes, the recomputed tensors that are not used yet; `gradients`: in a trace, those that
    have arrived at the outputs; `log`: with `debug`, the operators.
    """

    def __init__(self, function, args, kwargs, options):
        self.function, self.options = function, options
        self.scope, self.traced = mode.scope.get(), executor.is_traced()
        self.draws = Draws() if options.preserve_rng_state else None
        self.dtype, self.off = dtypes.get_default_dtype(), mode.off.get()
        self.casting = mode.casting.get()
        arguments = list(tensors_in((args, kwargs)))
        self.patterns: dict[int, tuple] = {}  # of sparse arguments
        self.arguments = mapped((args, kwargs), once(self.saved))
        self.outer = OuterState(function, arguments)
        self.slots, self.shown, self.names, self.log = [], [], [], []
        self.recomputed, self.gradients = weakref.WeakKeyDictionary(), []
        self.completed, self.surroundings = False, surroundings.get()

    def saved(self, tensor: Tensor) -> SavedVariable:
        """An argument as it is now, packed by the saved-tensor hooks around the call."""
        saved, pair = SavedVariable(tensor), node_annotations.packing.get()
        if pair is not None:
            saved.pack(pair)
        if pair == PAIR.pair:
            call, recomputation = around.get()
            call.name_saved("checkpoint", recomputation)
        saved.source = None
        if is_sparse(tensor):
            self.patterns[id(saved)] = tensor._indices_held, tensor._sizes, tensor._coalesced
        return saved

    # ---- the first run

    def run(self, args, kwargs, forward_context):
        begun, arguments = next_sequence_number(), list(tensors_in((args, kwargs)))
        versions = list(map(version_of, arguments))
        with self.entered(self.draws), forward_context:
            result = self.function(*args, **kwargs)
            self.completed = True
        if not self.completed:
            raise RuntimeError(SUPPRESSED)
        outputs = list(tensors_in(result))
        self.outer.add_leaves(outputs, begun, arguments)
        self.outer.refuse_overlaps(arguments, versions)
        if self.traced:
            self.watch_gradients(outputs, begun)
        return result

    @contextmanager
    def entered(self, draws, recomputation=None):
        """Pack the tensors that nodes save inside of the block into slots of this call."""
        here = self, recomputation
        token = around.set(here)

        def observer(node):
            if around.get() is here:
                self.observe_node(node, recomputation)

        node_annotations.observe(observer)
        try:
            with PAIR.clone(), draws.again() if draws else contextmanager(_nothing)():
                yield
        finally:
            node_annotations.unobserve(observer)
            around.reset(token)

    def observe_node(self, node, recomputation: Recomputation | None):
        if self.options.debug:
            shapes = ", ".join(map(str, node.outputs()))
            log = self.log if recomputation is None else recomputation.log
            log.append(f"{node.name()} {shapes} at {place_of_caller()}")
        self.name_saved(node.name(), recomputation)

    def name_saved(self, name: str, recomputation: Recomputation | None):
        """Record which node saved the last tensors. Ends a recomputation that is complete."""
        names = self.names if recomputation is None else recomputation.names
        count = len(self.slots) if recomputation is None else recomputation.count
        names += [name] * (count - len(names))
        is_complete = count == len(self.slots)
        if recomputation is not None and self.options.early_stop and is_complete:
            raise StopRecomputation

    def pack(self, tensor: Tensor, recomputation: Recomputation | None):
        if not self.is_own(tensor):
            return tensor
        if recomputation is not None:
            return self.pack_again(tensor, recomputation)
        slot = SavedSlot(self, len(self.slots))
        self.slots.append(weakref.ref(slot))
        self.shown.append(self.options.shown(tensor))
        return slot

    def is_own(self, tensor) -> bool:
        """Whether a tensor belongs to the trace of this call, not to one inside of it."""
        inner = not self.traced and is_traced(tensor)
        return mode.scope.get() is self.scope and not inner

    def watch_gradients(self, outputs, begun):
        """Record the gradients that arrive at the outputs: in a trace the recomputation must depend
        on them, or XLA could run it before the backward pass.
        """
        recorded = map(recorded_node, outputs)
        nodes = {id(node): node for node in recorded if node is not None}
        for node in nodes.values():
            if node.sequence > begun and type(node) is not AccumulateGrad:
                node.register_prehook(self.record_gradients)

    def record_gradients(self, gradients):
        arrived = [gradient for gradient in gradients if gradient is not None]
        self.gradients = [gradient._array for gradient in arrived]

    # ---- recomputations

    def unpack(self, slot: SavedSlot) -> Tensor:
        run = mode.current_pass.get()
        key = group.get() or run or self
        tensors = None if key is self else self.recomputed.get(key)
        if tensors is None:
            tensors = self.recompute()
            if key is not self:
                self.recomputed[key] = tensors
        tensor = tensors.pop(slot.number, None)
        if tensor is None:
            raise CheckpointError(TWICE.format(OVERLAP if group.get() else ""))
        if run is not None and not run.retain_graph and not of_argument.get():
            slot.call = None  # its node is used up, and must keep nothing alive
        return tensor

    def argument(self, saved: SavedVariable) -> Tensor:
        """The argument that was saved, with the pattern that it had if it was sparse."""
        tensor, pattern = _unpacked_argument(saved), self.patterns.get(id(saved))
        return tensor if pattern is None else sparse(tensor, *pattern)

    def recompute(self) -> dict[int, Tensor]:
        """Run the function again; gives the tensors that it saves, by number."""
        run = Recomputation()
        token = of_argument.set(True)
        try:
            args, kwargs = mapped(self.arguments, once(self.argument), SavedVariable)
        finally:
            of_argument.reset(token)
        arguments = list(tensors_in((args, kwargs)))
        for tensor, array in zip(arguments, self.delayed([*map(held, arguments)]), strict=True):
            hold(tensor, array)
        delayed = functools.partial(self.delayed, choose=not arguments)
        with self.outer.restored(arguments, delayed), self.settings(), self.surrounded():
            try:
                with self.entered(self.draws and self.drawn(), run), self.options.recompute_context:
                    self.function(*args, **kwargs)
            except StopRecomputation:
                pass
        self.gradients = []
        if self.completed:
            self.check(run)
        return run.tensors

    @contextmanager
    def settings(self):
        """Restore grad mode, default dtype and autocast of the first run, outside of any pass."""
        before, off = mode.switch(RECORD), mode.off.set(self.off)
        current = mode.current_pass.set(None)
        dtypes.set_default_dtype(self.dtype)
        try:
            with autocast.entered(self.casting):
                yield
        finally:
            mode.current_pass.reset(current)
            mode.off.reset(off)
            mode.switch(before)

    @contextmanager
    def surrounded(self):
        with ExitStack() as stack:
            for make in self.surroundings:
                stack.enter_context(make())
            yield

    def delayed(self, arrays, choose=True):
        """In a trace the arrays made dependent on the gradients, see `after_gradients`."""
        return after_gradients(arrays, self.gradients, choose) if self.traced else arrays

    def drawn(self) -> Draws:
        """The random numbers that the first run drew."""
        draws = Draws()
        results = [result for of_draw in self.draws.results for result in of_draw]
        delayed = iter(self.delayed([result.values for result in results if _is_traced(result)]))
        draws.results = [
            [Ready(next(delayed)) if _is_traced(result) else result for result in of_draw]
            for of_draw in self.draws.results
        ]
        return draws

    def pack_again(self, tensor, run: Recomputation):
        number, run.count = run.count, run.count + 1
        if number >= len(self.slots):
            if self.options.early_stop:
                raise StopRecomputation
            if self.completed:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation "
                    f"than during the original forward pass. {len(self.slots)} were saved then. "
                    f"{TIP}"
                )
            return tensor  # in a pass inside of the function, whose first run has not ended
        if self.slots[number]() is not None:  # else a pass inside of the function has used it up
            run.tensors[number] = tensor
        run.shown[number] = self.options.shown(tensor)
        return tensor

    def check(self, run: Recomputation):
        """Raises CheckpointError where the recomputation saved other tensors."""
        if run.count != len(self.slots):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                f"original forward and recomputation.\nsaved by the original: {len(self.slots)}\n"
                f"saved by the recomputation: {run.count}\n{TIP}{self.logs(run)}"
            )
        differ = [
            f"tensor at position {number}:\nsaved metadata: {self.shown[number]}\n"
            f"recomputed metadata: {shown}"
            for number, shown in run.shown.items()
            if shown != self.shown[number] and self.slots[number]() is not None
        ]
        if differ:
            report = "\n".join(differ)
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{report}\n{TIP}{self.logs(run)}"
            )
        self.check_names(run)

    def check_names(self, run: Recomputation):
        """Raises CheckpointError where other nodes saved the tensors."""
        if None in self.shown:
            return
        for number, pair in enumerate(zip(self.names, run.names, strict=False)):
            if pair[0] != pair[1]:
                raise CheckpointError(
                    "torch.utils.checkpoint: the recomputation differs from the original forward: "
                    f"tensor {number} was saved by {pair[0]}, and now by "
                    f"{pair[1]}. {TIP}{self.logs(run)}"
                )

    def logs(self, run) -> str:
        if not self.options.debug:
            return ""
        parts = ("the original forward", self.log), ("the recomputation", run.log)
        return "".join(f"\n\nOperators of {what}:\n" + "\n".join(log) for what, log in parts)


SUPPRESSED = (
    "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception "
    "raised during the checkpointed forward. This is not supported because checkpoint cannot "
    "return a value for a failed forward."
)
TWICE = (
    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked "
    "once. {}If a backward reads ctx.saved_tensors, let it do so only once"
)
OVERLAP = (
    "Performing two backward calls that overlap (i.e. require the same saved activation in order "
    "to compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup "
    "context. "
)


def _pack(tensor: Tensor):
    call, recomputation = around.get()
    return call.pack(tensor, recomputation)


def _unpack(value) -> Tensor:
    if not isinstance(value, SavedSlot):
        return value
    if value.call is None:
        raise CheckpointError(TWICE.format(""))
    return value.call.unpack(value)


# one pair for all calls, so that jaxgrad.jit compiles one program for them
PAIR = saved_tensors_hooks(_pack, _unpack)


def _nothing():
    yield


def _unpacked_argument(saved: SavedVariable) -> Tensor:
    array = saved.array if saved.packed is None else saved.packed.tensor()._array
    tensor = saved.with_history(array, None)
    if is_tracked(tensor) and type(node_or_mark(tensor)) is not AccumulateGrad:
        set_node(tensor, ArgumentNode(tensor))
    return tensor


class ArgumentNode(Node):
    """The node of an argument with a history, in a recomputation."""

    __slots__ = ("aval", "edges", "extras", "sequence")
    output_count = 1

    def __init__(self, tensor: Tensor):
        self.edges = [(node_or_mark(tensor), output_number(tensor))]
        self.extras, self.aval = None, abstract_value(tensor)
        self.sequence = next_sequence_number()

    def name(self):
        return self.edges[0][0].name()

    def outputs(self):
        return (self.aval,)

    def run(self, run, gradients):
        if not run.is_selective:
            raise CheckpointError(
                "torch.utils.checkpoint: a backward() inside of a checkpointed function leads "
                "through an argument to leaves outside, whose gradients it would add to whenever "
                "the function runs: use autograd.grad, or detach() the argument"
            )
        return gradients[0]
