"""The calls of checkpointed functions: what each keeps to run again, and how that is done.

What nodes save inside of such a call goes through a pair of hooks (tape/node_annotations.py): in
the place of each array they keep a `Holder`. When a backward pass first needs one, the function
runs again, and what is saved then is taken in order. It is kept for that pass, until it is needed.
"""

from __future__ import annotations

import contextvars
import functools
import weakref
from contextlib import contextmanager

import jax

from ..autograd._engine import graph_task
from ..autograd._engine.saved_tensor_hooks import saved_tensors_hooks
from ..autograd._function.saved_variables import Saved
from ..core import dtypes, executor
from ..ops import autocast
from ..tape import mode, node_annotations
from ..tape.mode import RECORD, Draws
from ..tape.node import AccumulateGrad, Node, next_sequence_number
from ..tape.source_location import place_of_caller
from ..tape.tensor import Tensor
from .checkpoint_state import CheckpointError, Outside, mapped, once, tensors_in, version_of
from .delayed_recompute import late

# the call around this place, and whether it is its first run
around = contextvars.ContextVar("jaxgrad.checkpoint", default=None)

# whether what is unpacked is an argument of a call inside, which may need it again
of_argument = contextvars.ContextVar("jaxgrad.checkpoint_argument", default=False)

# the GraphExecGroup that is entered here and now
group = contextvars.ContextVar("jaxgrad.checkpoint_group", default=None)

TIP = (
    "The function must do the same whenever it runs. To see which operators differ, pass "
    "`debug=True` to checkpoint(), or use set_checkpoint_debug_enabled(True)"
)


class Stop(BaseException):
    """Ends a run once all that is needed has been saved."""


class Holder:
    """What a node keeps in the place of an array that it saved."""

    __slots__ = ("__weakref__", "frame", "number")

    def __init__(self, frame: Frame, number: int):
        self.frame, self.number = frame, number


class Again:
    """A run of a function once more: what it has saved so far, by number."""

    def __init__(self):
        self.count, self.found, self.shown, self.names, self.log = 0, {}, {}, [], []


class Frame:
    """One call of a checkpointed function.

    `holders`: weak references to what its nodes keep, in order; `shown`: what was saved there;
    `names`: by whom; `recomputed`: for each pass, or group of passes, what was saved anew and is
    not used yet; `gradients`: those that have arrived at its results, in a trace; `log`: for
    `debug` the operators.
    """

    def __init__(self, function, args, kwargs, options):
        self.function, self.options = function, options
        self.scope, self.traced = mode.scope.get(), executor.is_traced()
        self.draws = Draws() if options.preserve_rng_state else None
        self.dtype, self.off = dtypes.get_default_dtype(), mode.off.get()
        self.casting = mode.casting.get()
        arguments = list(tensors_in((args, kwargs)))
        self.arguments = mapped((args, kwargs), once(self.kept))
        self.outside = Outside(function, arguments)
        self.holders, self.shown, self.names, self.log = [], [], [], []
        self.recomputed, self.gradients = weakref.WeakKeyDictionary(), []
        self.completed = False

    def kept(self, tensor: Tensor) -> Saved:
        """An argument as it is now, through the hooks around the call."""
        saved, pair = Saved(tensor), node_annotations.packing.get()
        if pair is not None:
            saved.pack(pair)
        if pair == PAIR.pair:
            frame, again = around.get()
            frame.name("checkpoint", again)
        saved.source = None
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
        self.outside.add(outputs, begun, arguments)
        self.outside.refuse_overlaps(arguments, versions)
        if self.traced:
            self.listen(outputs, begun)
        return result

    @contextmanager
    def entered(self, draws, again=None):
        """Have what is saved inside come to this call."""
        here = self, again
        token = around.set(here)

        def observer(node):
            if around.get() is here:
                self.note_node(node, again)

        node_annotations.observe(observer)
        try:
            with PAIR.clone(), draws.again() if draws else contextmanager(_nothing)():
                yield
        finally:
            node_annotations.unobserve(observer)
            around.reset(token)

    def note_node(self, node, again: Again | None):
        if self.options.debug:
            shapes = ", ".join(map(str, node.outputs()))
            log = self.log if again is None else again.log
            log.append(f"{node.name()} {shapes} at {place_of_caller()}")
        self.name(node.name(), again)

    def name(self, name: str, again: Again | None):
        """Note who has saved what was saved last. Ends a run that has all that is needed."""
        names = self.names if again is None else again.names
        count = len(self.holders) if again is None else again.count
        names += [name] * (count - len(names))
        if again is not None and self.options.early_stop and count == len(self.holders):
            raise Stop

    def pack(self, tensor: Tensor, again: Again | None):
        if not self.concerns(tensor):
            return tensor
        if again is not None:
            return self.pack_again(tensor, again)
        holder = Holder(self, len(self.holders))
        self.holders.append(weakref.ref(holder))
        self.shown.append(self.options.shown(tensor))
        return holder

    def concerns(self, tensor) -> bool:
        """Whether what is saved is of this trace: not of one within, whose values end with it."""
        inner = not self.traced and isinstance(tensor._raw, jax.core.Tracer)
        return mode.scope.get() is self.scope and not inner

    def listen(self, outputs, begun):
        """Note the gradients that arrive at the results: in a trace the run again must come after
        them, or its values would be there from the beginning.
        """
        nodes = {id(each._node): each._node for each in outputs if isinstance(each._node, Node)}
        for node in nodes.values():
            if node.sequence > begun and type(node) is not AccumulateGrad:
                node.register_prehook(self.note)

    def note(self, gradients):
        found = [gradient for gradient in gradients if gradient is not None]
        self.gradients = [gradient._array for gradient in found]

    # ---- the runs after

    def unpack(self, holder: Holder) -> Tensor:
        run = graph_task.current.get()
        key = group.get() or run or self
        found = None if key is self else self.recomputed.get(key)
        if found is None:
            found = self.again()
            if key is not self:
                self.recomputed[key] = found
        tensor = found.pop(holder.number, None)
        if tensor is None:
            raise CheckpointError(TWICE.format(OVERLAP if group.get() else ""))
        if run is not None and not run.retain_graph and not of_argument.get():
            holder.frame = None  # its node is used up, and should hold nothing
        return tensor

    def again(self) -> dict[int, Tensor]:
        """What the function saves when it runs once more, by number."""
        run = Again()
        token = of_argument.set(True)
        try:
            args, kwargs = mapped(self.arguments, once(_tensor), Saved)
        finally:
            of_argument.reset(token)
        given = list(tensors_in((args, kwargs)))
        for tensor, array in zip(given, self.late([each._raw for each in given]), strict=True):
            tensor._raw = array
        late = functools.partial(self.late, choose=not given)
        with self.outside.again(given, late), self.settings():
            try:
                with self.entered(self.draws and self.drawn(), run), self.options.recompute_context:
                    self.function(*args, **kwargs)
            except Stop:
                pass
        self.gradients = []
        if self.completed:
            self.check(run)
        return run.found

    @contextmanager
    def settings(self):
        """Grad mode, default dtype and autocast of the first run, and no pass around."""
        before, off, current = mode.switch(RECORD), mode.off.set(self.off), None
        current = graph_task.current.set(None)
        dtypes.set_default_dtype(self.dtype)
        try:
            with autocast.entered(self.casting):
                yield
        finally:
            graph_task.current.reset(current)
            mode.off.reset(off)
            mode.switch(before)

    def late(self, arrays, choose=True):
        """The arrays as they are once the gradients have arrived."""
        return late(arrays, self.gradients, choose) if self.traced else arrays

    def drawn(self) -> Draws:
        """The numbers that the first run drew."""
        draws = Draws()
        draws.made = list(self.draws.made)
        traced = [i for i, words in enumerate(draws.made) if isinstance(words, jax.core.Tracer)]
        for i, words in zip(traced, self.late([draws.made[i] for i in traced]), strict=True):
            draws.made[i] = words
        return draws

    def pack_again(self, tensor, again: Again):
        number, again.count = again.count, again.count + 1
        if number >= len(self.holders):
            if self.options.early_stop:
                raise Stop
            if self.completed:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation "
                    f"than during the original forward pass. {len(self.holders)} were saved then. "
                    f"{TIP}"
                )
            return tensor  # of a pass begun inside, in a first run that has not ended
        holder = self.holders[number]()
        if holder is not None:  # else a pass begun inside has used it up
            again.found[number] = tensor
        again.shown[number] = self.options.shown(tensor)
        return tensor

    def check(self, run: Again):
        """Raises CheckpointError where not the same was saved."""
        if run.count != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                f"original forward and recomputation.\nsaved by the original: {len(self.holders)}\n"
                f"saved by the recomputation: {run.count}\n{TIP}{self.logs(run)}"
            )
        differ = [
            f"tensor at position {number}:\nsaved metadata: {self.shown[number]}\n"
            f"recomputed metadata: {shown}"
            for number, shown in run.shown.items()
            if shown != self.shown[number] and self.holders[number]() is not None
        ]
        if differ:
            found = "\n".join(differ)
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{found}\n{TIP}{self.logs(run)}"
            )

        self.check_names(run)

    def check_names(self, run: Again):
        """Raises CheckpointError where another operator saved what is like what was saved."""
        if None in self.shown:
            return
        for number, pair in enumerate(zip(self.names, run.names, strict=False)):
            if pair[0] != pair[1]:
                raise CheckpointError(
                    "torch.utils.checkpoint: the recomputation did something else than the "
                    f"original forward: tensor {number} was saved by {pair[0]}, and now by "
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
    frame, again = around.get()
    return frame.pack(tensor, again)


def _unpack(value) -> Tensor:
    if not isinstance(value, Holder):
        return value
    if value.frame is None:
        raise CheckpointError(TWICE.format(""))
    return value.frame.unpack(value)


# one pair for all calls, which jaxgrad.jit sees as one setting
PAIR = saved_tensors_hooks(_pack, _unpack)


def _nothing():
    yield


def _tensor(saved: Saved) -> Tensor:
    array = saved.array if saved.packed is None else saved.packed.tensor()._array
    tensor = saved.with_history(array, None)
    if tensor._tracked and type(tensor._node) is not AccumulateGrad:
        tensor._node, tensor._nr = Argument(tensor), 0
    return tensor


class Argument(Node):
    """The node of an argument of a function that runs again, where it has a history."""

    __slots__ = ("aval", "edges", "extras", "sequence")
    output_count = 1

    def __init__(self, tensor: Tensor):
        self.edges, self.extras, self.aval = [(tensor._node, tensor._nr)], None, tensor._aval
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
