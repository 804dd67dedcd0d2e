"""The engine: runs the nodes of a graph, each once, by descending sequence number.

A node's edges lead to nodes that were recorded before it, with lower numbers. So all gradients of a
node have arrived when its turn comes. The only state is a heap of the nodes that have received a
gradient: no recursion, no count of dependencies. Gradients are arrays, or tensors if the pass is
recorded or has tangents. A gradient that a user's rule leaves undefined is None and stays None.
"""

from __future__ import annotations

import itertools
import logging
from heapq import heappop, heappush
from operator import attrgetter

import jax

from ...cached import cached_property
from ...core import deferred, elementary, executor, pending
from ...core.aval import META, is_concrete
from ...core.deferred import LONGEST
from ...core.meta_array import MetaArray
from ...core.pending import Pending
from ...core.strides import is_dense
from ...core.unrecorded import unrecorded
from ...storage import commit
from ...storage.alias import assign
from ...tape import dual, dual_level, handle_lock, interception, node_annotations, traced_hooks
from ...tape.mode import INFERENCE, current_mode, current_pass, off, with_grad
from ...tape.node import FREED, SECOND_TIME, AccumulateGrad, ProgramNode
from ...tape.record import apply, leaves_out
from ...tape.sparse_tensor import CARRIED
from ...tape.tensor import OWN_DTYPE, Tensor, leaf_state, wrap
from ...tape.tensor import current as current_value
from ...tape.traversal import nodes_from
from . import debug_log, observers, reentrant, run_hooks, sparse_gradient
from .residuals import saved_tensors

# inlined: the accessors of tape/tensor.py

_new = object.__new__

_numbers = itertools.count()


class Pass:
    """One run of the engine, which accumulates into every leaf that it reaches.

    `tensors`: whether gradients are tensors; `callbacks`: functions to call after the last node;
    `ending`: functions to call at the end, also after an exception; `is_to_all`: whether neither it
    nor an enclosing pass is limited to chosen inputs; `is_traced`: whether JAX traces it; `before`:
    each `.grad` before it changed, put back after an interrupt or a lack of memory; `around`: the
    enclosing pass.
    """

    is_selective = False  # whether `visit` skips some nodes
    takes_sparse = True  # whether leaves may get sparse gradients
    ends = ()  # the numbers of the nodes at which it ends, if it goes to some alone

    def __init__(self, retain_graph: bool, create_graph: bool):
        self.retain_graph, self.create_graph = retain_graph, create_graph
        # forward mode sets its interception point before its first level begins
        has_tangents = interception.tangents is not None and dual_level.is_any_begun()
        self.tensors = create_graph or has_tangents
        self.is_traced = executor.is_traced()
        self.logs = debug_log.logger.isEnabledFor(logging.DEBUG)
        self.arrived: dict[int, list] = {}
        self.heap: list[tuple] = []
        self.callbacks, self.ending = [], []
        self.before, self.around = commit.Before(), current_pass.get()
        self.depth = 0 if self.around is None else self.around.depth + 1
        self.is_to_all = self.around is None or self.around.is_to_all
        self.watchers = observers.watch(self) if observers.started else ()
        # whether a node without hooks only runs its kernel
        self.is_usual = not (self.tensors or self.logs or self.watchers)

    def run(self, roots, gradients):
        """Send each gradient along its root, an edge, and run all nodes that they reach.

        gradients: a list, which is empty afterwards: what only this pass reads needs no memory.
        """
        if self.depth % reentrant.DEPTH or not self.depth or self.is_traced:
            self.run_here(roots, gradients)
        else:
            reentrant.run_in_thread(lambda: self.run_here(roots, gradients))

    def run_here(self, roots, gradients):
        self.roots = roots
        if traced_hooks.outer_nodes.get() is not None:
            traced_hooks.outer_nodes.get().record(roots, self.runs)
        before, around = current_mode.get(), current_pass.get()
        try:
            current_pass.set(self)
            # `with_grad` inlined for the usual case
            is_usual = not self.create_graph and before < INFERENCE
            current_mode.set(off.get() if is_usual else with_grad(self.create_graph))
            for node, output_nr in roots:
                self.arrive(node, output_nr, gradients.pop(0))
            heap, arrived, step = self.heap, self.arrived, self.step
            visit = observers.visit(self) if self.watchers else self.visit
            usual = self.is_usual and not self.is_selective
            while heap:
                node = heappop(heap)[1]
                if usual and node.extras is None and node.reverse is not None:
                    step(node, arrived.pop(node.sequence))  # `visit` inlined
                else:
                    visit(node, arrived.pop(node.sequence))
            for callback in self.callbacks:
                callback()
            stretch = deferred.local.stretch
            if stretch.entries and not self.depth:
                stretch.run()
        except BaseException as error:
            # after an error in a hook, the gradients of before it stay, as in PyTorch
            if commit.is_from_outside(error):
                self.before.restore()
            raise
        else:
            if self.around is not None:
                self.around.before.values += self.before.values
        finally:
            try:
                current_mode.set(before)
            finally:
                current_pass.set(around)
            while self.ending:
                self.ending.pop(0)()

    def arrive(self, node, output_nr, gradient):
        """Add a gradient to those that have arrived for a node."""
        sequence = node.sequence
        waiting = self.arrived.get(sequence)
        if waiting is None:
            self.arrived[sequence] = waiting = [None] * node.output_count
            heappush(self.heap, (-sequence, node))
        before = waiting[output_nr]
        if before is not None:
            total = self.sum(before, gradient, node.outputs()[output_nr])
            if self.watchers:
                observers.summed(self, node, before, gradient, total)
            gradient = total
        waiting[output_nr] = gradient

    def sum(self, first, second, aval):
        if second is None:
            return first
        if type(first) in CARRIED or type(second) in CARRIED:
            return sparse_gradient.total(self, first, second)
        return first + second if self.tensors else elementary.add(first, second, aval)

    def visit(self, node, gradients):
        """Run a node and its hooks, after all its gradients have arrived."""
        if node.extras is None:
            if type(node) is not AccumulateGrad:
                self.step(node, gradients)
            elif self.is_plain(node.variable, gradients[0]):
                self.accumulate(node.variable, gradients[0])
            else:
                self.visit_leaf(node, run_hooks.at_leaf(self, node.variable, gradients[0]))
        elif type(node) is AccumulateGrad:
            self.visit_leaf(node, run_hooks.at_leaf(self, node.variable, gradients[0]))
        else:
            self.step(node, run_hooks.at_outputs(self, node, gradients))

    def is_plain(self, leaf, gradient) -> bool:
        """Whether a leaf accumulates the gradient without hooks, conversion or log."""
        state = leaf._leaf
        return not (gradient is None or self.logs) and (
            state is None
            or (state.hooks is None and state.post_hooks is None and state.grad_dtype is OWN_DTYPE)
        )

    def visit_leaf(self, node, gradient):
        leaf, (gradient,) = node.variable, run_hooks.before(self, node, [gradient])
        if self.logs:
            debug_log.log_run(node, [gradient])
        if gradient is not None:
            self.accumulate(leaf, gradient)
            run_hooks.accumulated(leaf)
        run_hooks.after(self, node, (), [gradient])

    def step(self, node, gradients):
        """Run a node and send its gradients along its edges."""
        saved, reverse = node.saved, node.reverse
        usual = self.is_usual and node.extras is None and reverse is not None
        if usual and saved is not FREED and gradients[0] is not None:
            # `execute` inlined
            arrived = gradients
            if saved and not self.retain_graph and reverse.saves_tensors:
                node.saved = FREED
            try:
                if reverse.kernel is None:
                    executor.prepare(reverse)
                if not reverse.program.single:
                    reverse, gradients = self.filled(reverse, gradients)
                kernel, stretch = reverse.kernel, deferred.local.stretch
                aval = kernel.noted
                if aval is None or not 0 < len(stretch.entries) < LONGEST or pending.suspended:
                    results = kernel.call(*gradients, *saved)
                else:
                    # the kernel inlined
                    results = _new(Pending)
                    results.array, results.aval, results.stretch = None, aval, stretch
                    stretch.entries.append((reverse, (*gradients, *saved), (results,)))
                if reverse.tells_apart:
                    results = reverse.reached(arrived, results)
            except BaseException:
                node.saved = saved
                raise
        else:
            results = self.called(node, gradients)
        edges = node.edges
        if len(edges) == 1:
            if results is not None or node.tells_none:
                target, output_nr = edges[0]
                self.arrive(target, output_nr, results)
            return
        for (target, output_nr), gradient in zip(edges, results, strict=True):
            if gradient is not None or node.tells_none:
                self.arrive(target, output_nr, gradient)

    def called(self, node, gradients):
        """The gradients that a node computes, with its hooks."""
        gradients = run_hooks.before(self, node, gradients)
        if self.logs:
            debug_log.log_run(node, gradients)
        results = run_hooks.after(self, node, self.execute(node, gradients), gradients)
        if self.watchers:
            observers.results(self, node, results)
        return results

    def execute(self, node, gradients):
        """The gradients that a node computes: a list with one for each edge, or the one alone."""
        saved, reverse = node.saved, node.reverse
        if reverse is None:
            return node.run(self, gradients)
        if saved is FREED:
            raise RuntimeError(SECOND_TIME)
        if saved and not self.retain_graph and reverse.saves_tensors:
            # before it runs, so that a second thread raises
            node.saved = FREED
        try:
            if gradients[0] is None and all(gradient is None for gradient in gradients):
                return None if len(node.edges) == 1 else [None] * len(node.edges)
            return self.computed(node, reverse, gradients, saved)
        except BaseException:
            node.saved = saved
            raise

    def computed(self, node, reverse, gradients, saved):
        if reverse.kernel is None:
            executor.prepare(reverse)
        arrived = gradients
        if not reverse.program.single:
            reverse, gradients = self.filled(reverse, gradients)
        extras = node.extras
        if extras is not None and extras.packed:
            saved = node_annotations.unpacked(node, saved)
        if self.tensors:
            results = apply(reverse, [*gradients, *saved_tensors(node, saved)])
            if extras is not None and extras.objects:
                keep_objects(results, extras.objects)
        else:
            results = reverse.kernel.call(*gradients, *saved)
        if extras is not None and node.saved is FREED:
            extras.packed = None
        return reverse.reached(arrived, results) if reverse.tells_apart else results

    def filled(self, reverse, gradients):
        """The program to run, and the gradients that it takes: zeros for missing ones, unless it
        has a program without them.
        """
        outputs = reverse.program.outputs
        listed = [gradients[i] for i in reverse.program.differentiable_outputs]
        if reverse.tells_missing:
            reverse, listed = reverse.without_missing(listed)
            return executor.prepare(reverse), listed
        kept = zip(reverse.program.differentiable_outputs, listed, strict=True)
        return reverse, [self.zeros(outputs[i]) if g is None else g for i, g in kept]

    def zeros(self, aval):
        array = elementary.filled(aval, 0)
        return wrap(array) if self.tensors else array

    def as_tensor(self, gradient) -> Tensor | None:
        """A gradient as a tensor, for users."""
        if gradient is None or self.tensors or type(gradient) in CARRIED:
            return gradient
        return wrap(gradient)

    def carried(self, gradient):
        """A gradient, a tensor or a new array, in the form of this pass: an array, or a tensor if
        `tensors`.
        """
        if isinstance(gradient, Tensor):
            is_carried = self.tensors or type(gradient) in CARRIED
            return gradient if is_carried else gradient._value
        return wrap(gradient) if self.tensors and gradient is not None else gradient

    def left_out(self, gradient):
        """A gradient without history for JAX too, where it differentiates the pass."""
        is_recorded = self.create_graph or not isinstance(gradient, jax.Array)
        return gradient if is_recorded or not leaves_out() else unrecorded(gradient)

    def accumulate(self, leaf: Tensor, gradient):
        """Add to the `.grad` of a leaf: in place, or as a new tensor under `create_graph`.

        A leaf that was told after the forward pass that it requires no grad gets none.
        """
        if not leaf._tracked:
            return
        if interception.grad is not None:
            interception.grad(leaf)
        self.refuse_leak(leaf, gradient)
        if interception.read is not None:
            gradient = self.left_out(gradient)
        with handle_lock.lock:
            before = (leaf._leaf or leaf_state(leaf)).grad
            self.before.values.append((leaf._leaf, "grad", before))
            if before is not None and leaf._leaf.grad_dtype is None:
                gradient = run_hooks.in_dtype(self, gradient, before.dtype)
            if type(gradient) in CARRIED or type(before) in CARRIED:
                sparse_gradient.accumulate(self, leaf, before, gradient)
            elif before is None or self.create_graph:
                leaf._leaf.grad = self.total(before, gradient, leaf)
            else:
                total = self.sum(self.carried(before), gradient, before._aval)
                if self.watchers:
                    observers.summed(self, leaf._leaf.node(), before, gradient, total)
                self.before.save_value(before)
                assign(before, total if self.tensors else wrap(total, before._aval), False)

    def refuse_leak(self, leaf, gradient):
        """Raise RuntimeError for a gradient that is traced or on another device than the leaf."""
        array = current_value(gradient)._value if isinstance(gradient, Tensor) else gradient
        kind, mode = type(array), leaf._aval.mode
        is_from_trace = self.is_traced if kind is Pending else isinstance(array, jax.core.Tracer)
        if is_from_trace and is_concrete(mode):
            raise RuntimeError(
                f"the gradient of a tensor of shape {list(leaf.shape)} was traced, but the tensor "
                "was not: pass the tensor to the compiled function as an argument instead of "
                "reaching it from outside, and return its gradient"
            )
        if (kind is MetaArray) != (mode == META):
            raise RuntimeError(
                f"the gradient of a tensor of shape {list(leaf.shape)} on {leaf.device} is on "
                "another device, and one of both is meta: a hook or a Function returned it, or the "
                "tensor was moved after it was used"
            )

    def total(self, before, gradient, tensor) -> Tensor:
        """A new tensor: `before`, a `.grad` or None, plus a gradient."""
        if before is not None:
            if self.tensors:
                return before + gradient
            return wrap(elementary.add(before._value, gradient, tensor._aval))
        grad, strides = gradient.clone() if self.tensors else wrap(gradient), tensor._aval.strides
        if strides is not None and is_dense(tensor.shape, strides):
            dual.show(grad, strides)
        return grad

    def will_run(self, node) -> bool:
        """Whether a gradient will arrive at a node, or has arrived."""
        return node.sequence in self.reachable()

    def runs(self, node) -> bool:
        """Whether the pass runs this node, which it can reach."""
        return True

    @cached_property
    def number(self) -> int:
        """The number of the pass, among those that were asked for theirs."""
        return next(_numbers)

    def reachable(self) -> set[int]:
        """The sequence numbers of all nodes that the roots lead to."""
        if not hasattr(self, "_reachable"):
            nodes = nodes_from([node for node, _ in self.roots])
            self._reachable = {node.sequence for node in nodes}
        return self._reachable

    def graph_has_grown(self):
        """Take nodes into account that were recorded below others since the pass began."""
        vars(self).pop("_reachable", None)


class PassTo(Pass):
    """A pass through the nodes that lead to `ends`, which are edges.

    `captured` gets the gradients that arrive at the ends. accumulate: run the ends too, so that
    leaves fill their `.grad`; stops: do not go through an end to reach another, since the caller
    continues from there.
    """

    is_selective = True

    def __init__(
        self, retain_graph, create_graph, ends, accumulate=False, stops=False, takes_sparse=False
    ):
        super().__init__(retain_graph, create_graph)
        self.takes_sparse = takes_sparse
        self.accumulates, self.is_to_all, self.stops = accumulate, False, stops
        self.captured: dict[tuple, object] = {}
        self.ends: dict[int, list[int]] = {}
        for node, output_nr in ends:
            self.ends.setdefault(node.sequence, []).append(output_nr)

    def run(self, roots, gradients):
        self.select(roots)
        super().run(roots, gradients)

    def select(self, roots):
        """Find the nodes that lead to an end."""
        self.needed = leading_to(self.ends, roots, self.stops)
        if self.accumulates:
            self.needed |= self.ends.keys()

    def graph_has_grown(self):
        super().graph_has_grown()
        self.select(self.roots)

    def visit(self, node, gradients):
        sequence = node.sequence
        ends = self.ends.get(sequence, ())
        if sequence not in self.needed and not ends:
            return
        is_leaf = type(node) is AccumulateGrad
        if is_leaf:
            gradients = [run_hooks.at_leaf(self, node.variable, gradients[0])]
        elif node.extras is not None:
            gradients = run_hooks.at_outputs(self, node, gradients)
        for output_nr in ends:
            gradient = gradients[output_nr]
            if interception.read is not None:
                gradient = self.left_out(gradient)
            self.captured[sequence, output_nr] = gradient
        if sequence in self.needed:
            self.visit_leaf(node, gradients[0]) if is_leaf else self.step(node, gradients)

    def will_run(self, node):
        is_wanted = node.sequence in self.needed or node.sequence in self.ends
        return is_wanted and super().will_run(node)  # the roots may lead to none of the ends

    def runs(self, node):
        return node.sequence in self.needed


def leading_to(ends, roots, stops: bool) -> set[int]:
    """The sequence numbers of the nodes that lead to an end, given by number.

    stops: leave out nodes that lead to an end only through another end.
    """
    lowest = min(ends)

    def is_before(node):
        return node.sequence > lowest and not (stops and node.sequence in ends)

    nodes = nodes_from([node for node, _ in roots], is_before)
    needed, reached = set(), set(ends)
    for node in sorted(nodes, key=attrgetter("sequence")):
        if not reached.isdisjoint([edge[0].sequence for edge in node.edges]):
            needed.add(node.sequence)
            reached.add(node.sequence)
    return needed


def queue_callback(callback):
    """Call `callback()` at the end of the running backward pass.

    Raises RuntimeError outside of a backward pass.
    """
    if current_pass.get() is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    current_pass.get().callbacks.append(callback)


def keep_objects(results, objects):
    """Let gradients that are recorded keep the objects that a replay of their call may need."""
    for result in results if isinstance(results, list | tuple) else [results]:
        if isinstance(result, Tensor) and type(result._node) is ProgramNode:
            result._node.more().objects = objects
