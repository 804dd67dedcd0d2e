"""Tracing a function of state: what it reads from outside becomes an input of the trace.

While a `CaptureScope` is open, reading a tensor from outside captures it: its handle holds a tracer
from then on, so operators, views, writes and the tape treat it like any other tensor. At the end
each handle is put back. What the function changed becomes side effects of its program
(capture/side_effects.py). Operators pay nothing for this while no scope is open.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import weakref

from jax.extend.core import set_current_trace

from ..compiled.placement import form_of
from ..core import executor
from ..core.aval import (
    INLINE,
    INLINE32,
    traced_aval,
    tracing,
    wide_trace,
    with_dual,
)
from ..core.jax_internals import current_trace, outside_of_traces
from ..storage.alias import begin
from ..storage.creation_meta import USUAL
from ..storage.sole_owner import leave_storage
from ..tape import handle_lock, mode, traced_hooks
from ..tape.interception import intercept, release
from ..tape.node import AccumulateGrad
from ..tape.source_location import place_of_caller
from ..tape.tensor import (
    LeafState,
    Tensor,
    abstract_value,
    alias_of,
    current,
    hold,
    is_traced,
    known_counter,
    known_leaf_state,
    set_abstract_value,
    set_alias,
    set_leaf_state,
)
from . import ReadsTangent
from .captured import CapturedTensor, TensorInput
from .graph_input import HandleSource, TensorSource, number_reads
from .guards import GradSource
from .joined_memory import is_joined, join
from .reports import Reports
from .scope_inputs import ScopeInputs, ScopeMemory


class CaptureScope(ScopeMemory, ScopeInputs):
    """The tensors that a function reads and creates while it is traced.

    `captured`: the captured tensors, by id; `undefined`: of each derivative that may not exist the
    error and a flag; `created`: weak references to the tensors created in
    the trace, by id; `objects`: the state that modules and optimizers report; `observation`: the
    other Python state that the function reads and changes; `outer`: nodes from outside that its
    passes reach; `undo`: functions that take back state created in the trace, called if tracing
    fails; `lines`: the source lines that created tensors, by id, None if they are not recorded;
    `memo`: what jaxgrad's own code keeps for the trace alone; `versions`: the first counts of
    writes; `around`: the trace around this one, and whether it has wide types; `is_differentiated`:
    whether JAX, not the tape, differentiates the trace.
    """

    # An inner scope traces a part of another program: one example of a vmap, the body of a loop.
    # Tensors of the trace around it are from outside too.
    is_inner = False
    is_forward = False  # whether JAX computes tangents of what is traced

    def __init__(self, name: str, records_lines: bool = False):
        self.name, self.trace = name, None
        self.lines: dict[int, str] | None = {} if records_lines else None
        self.parent = mode.scope.get()
        self.around = current_trace(), wide_trace.get()
        self.is_differentiated = self.parent is not None and self.parent.is_differentiated
        self.captured: dict[int, CapturedTensor] = {}
        self.created: dict[int, weakref.ref] = {}
        self.versions: dict[int, tuple] = {}
        self.undefined: list[tuple] = []
        self.undo: list = []
        self.memo: dict = {}
        self.objects = Reports(self.parent and self.parent.objects)
        self.observation = self.parent and self.parent.observation
        self.outer = traced_hooks.OuterNodes()
        self.begin_inputs()
        self.begin_memory()

    # ---- opening

    @contextlib.contextmanager
    def open(self):
        """Trace inside of the block; afterwards every tensor from outside is what it was before."""
        with handle_lock.changing():
            try:
                intercept(id(self), **_POINTS)
                mode.scope.set(self)
                executor.note_undefined.set(self.note_undefined)
                self.trace = current_trace()
                with self.outer.recording():
                    yield self
            # an interrupt too: a call takes effect entirely, or not at all
            except BaseException:
                self.take_back()
                raise
            finally:
                try:
                    self.close()
                except BaseException:
                    self.close()  # what an interrupt left over
                    raise

    def meet_hooks(self, hooks: list):
        """Observe what hooks from outside read and change."""
        if self.observation is not None:
            self.observation.meet_hooks(hooks)

    def take_back(self):
        """Undo the changes of modules, optimizers and passes, since the trace is discarded."""
        for undo in reversed(self.undo):
            undo()
        self.outer.put_back()
        if self.parent is None:
            self.objects.put_back()

    def close(self):
        """End the trace; a second call comes to the same."""
        mode.scope.set(self.parent)
        executor.note_undefined.set(self.parent and self.parent.note_undefined)
        release(*_POINTS, user=id(self))
        self.restore()
        self.forget_tracers()

    def restore(self):
        """Restore captured tensors and version counters to their earlier state."""
        for captured in self.captured.values():
            captured.snapshot.restore(captured.tensor)
        for counter, version, writes in self.versions.values():
            counter.value = version
            if writes is not None:
                del counter.places[writes:]

    def forget_tracers(self):
        # the program keeps the captured tensors, and one tracer would keep the whole trace
        self.trace, self.undefined = None, []
        for captured in self.captured.values():
            captured.tracer = None
        self.forget_inputs()

    def note_undefined(self, message: str, flag):
        """Note a derivative that may not exist. A trace inside, such as that of a loop's body, has
        no results by which a run could tell.

        message: the error; flag: a function that computes whether it does not exist.
        """
        if current_trace() is self.trace:
            self.undefined.append((message, flag()))

    # ---- capturing

    @contextlib.contextmanager
    def outer_trace(self):
        """Compute in the trace around this one, or immediately where there is none."""
        token = mode.scope.set(self.parent)
        trace, is_wide = self.around
        try:
            with set_current_trace(trace), tracing(is_wide):
                yield
        finally:
            mode.scope.reset(token)

    def is_created_here(self, tensor: Tensor) -> bool:
        known = self.created.get(id(tensor))
        return known is not None and known() is tensor

    def is_outside(self, tensor: Tensor) -> bool:
        """Whether a tensor is from outside of the trace."""
        if id(tensor) in self.captured:
            return True
        return not self.is_created_here(tensor) and (self.is_inner or not is_traced(tensor))

    def read_of(self, tensor: Tensor, read):
        """The result of `read` for a tensor. The program serves only tensors from outside with the
        same result.

        A captured tensor has lost its place in a storage, which it gets back for this read.
        """
        captured = self.captured.get(id(tensor))
        if captured is None:
            if self.is_outside(tensor):
                self.objects.guard(tensor, read)
            return read(tensor)
        self.objects.guard(tensor, read)
        if captured.moved is not None:
            return read(tensor)  # the function has given it other memory
        inside = alias_of(tensor)
        set_alias(tensor, captured.snapshot.alias)
        try:
            return read(tensor) if self.parent is None else self.parent.read_of(tensor, read)
        finally:
            set_alias(tensor, inside)

    def offset_outside(self, tensor: Tensor) -> int:
        """The number of elements of the storage before the argument of a `vmap` that a tensor is an
        example of.
        """
        return 0 if self.parent is None else self.parent.offset_outside(tensor)

    def is_outer_node(self, node) -> bool:
        """Whether a node, other than that of a captured tensor, was recorded outside."""
        # a leaf from outside may get its node inside, so the number of that says nothing
        if type(node) is AccumulateGrad:
            return self.is_outside(node.variable)
        return node.sequence < self.outer.begun

    def record_created(self, tensor: Tensor):
        """Record a tensor created inside."""
        self.created[id(tensor)] = weakref.ref(tensor)
        if self.lines is not None:
            self.lines[id(tensor)] = place_of_caller()

    def capture(self, tensor: Tensor, source: TensorSource | None = None) -> CapturedTensor:
        """Capture a tensor from outside: its handle holds a tracer from now on."""
        captured = self.captured.get(id(tensor))
        if captured is not None:
            return captured
        # pending writes are settled in the trace around: the input is their result
        with self.outer_trace(), self.outer_memory(tensor):
            source = source or HandleSource(tensor)
            if alias_of(current(tensor)) is not None:
                leave_storage(tensor)  # as each call does: the views of before may be gone
            captured = CapturedTensor(tensor, source, len(self.captured))
        self.captured[id(tensor)] = captured
        if self.observation is not None:
            self.observation.meet_tensor(tensor)
        self.record_version(tensor)
        captured.snapshot.hooks.enter_scope(tensor)
        if self.joined and is_joined(captured, self.joined):
            join(self, captured)
            return captured
        captured.tracer = self.add_input(form_of(tensor), TensorInput(captured))
        hold(tensor, captured.tracer, traced_aval(abstract_value(tensor), captured.tracer))
        if captured.snapshot.has_tangent:
            self.hide_tangents(tensor)
        # a write to the tracer must not reach the storage outside; `restore` puts the alias back
        set_alias(tensor, None)
        if captured.creation != USUAL:
            begin(tensor).creation = captured.creation  # that of the views that are cut from it
        return captured

    def hide_tangents(self, tensor):
        """Hide the tangents of a captured tensor: a program cannot take them in."""
        # its `.grad` and its hooks stay
        state = copy.copy(known_leaf_state(tensor)) or LeafState()
        set_leaf_state(tensor, state)
        if self.is_inner:  # JAX differentiates the whole call in forward mode
            state.tangents = None
            set_abstract_value(tensor, with_dual(abstract_value(tensor), False))
        else:
            state.tangents = OuterTangents(self.name, tensor)

    def record_version(self, tensor):
        counter = known_counter(tensor)
        if counter is not None and id(counter) not in self.versions:
            writes = None if counter.places is None else len(counter.places)
            self.versions[id(counter)] = counter, counter.value, writes

    def write_count(self, captured: CapturedTensor) -> int:
        """How often a captured tensor has been written to."""
        counter = known_counter(captured.tensor)
        if counter is None:
            return 0
        return counter.value - self.versions.get(id(counter), (None, 0))[1]

    def record_grad_access(self, tensor: Tensor, written: bool):
        """Record that the `.grad` of a tensor is read, or written; captures the gradient."""
        if self.is_created_here(tensor):
            return
        captured = self.capture(tensor)
        if captured.writes_grad or captured.ignores_grad:
            return
        # where `zero_grad` comes first, the old gradient is no input, and no guard compares it
        if written and not captured.reads_grad:
            captured.writes_grad = True
        elif not written:
            captured.reads_grad = True
            gradient = captured.snapshot.grad
            if gradient is not None and not self.is_created_here(gradient):
                self.capture(gradient, GradSource(captured.number))

    # ---- tensors that escape

    def escaped_tensors(self) -> list[Tensor]:
        """The tensors created while tracing that are still referenced."""
        self.memo.clear()
        self.forget_created()
        # a collection is slow, so only where a tensor seems to escape: a cycle alone may keep it
        if any(map(is_traced, self._alive())):
            gc.collect()
            self.forget_created()
        return [tensor for tensor in self._alive() if is_traced(tensor)]

    def forget_created(self):
        if self.observation is not None:
            self.observation.forget_created()

    def _alive(self):
        for reference in self.created.values():
            tensor = reference()
            if tensor is not None:
                yield tensor


class OuterTangents:
    """Stands for the tangents of a captured tensor; raises ReadsTangent when it is used."""

    def __init__(self, name: str, tensor: Tensor):
        self.message = (
            f"{name} uses a tangent of a tensor of shape {list(tensor.shape)} from outside"
        )

    def __getattr__(self, attribute):
        raise ReadsTangent(self.message)


def number(read):
    """The Python number that `read()` gives, read again at each call of a compiled function.

    read: a function without arguments that gives an int or a float. Outside of `jaxgrad.jit` the
    result is that number. Inside it is a symbolic number: operators and arithmetic take it, but its
    value cannot be inspected (`if`, `float()`), which raises RuntimeError. A number that code reads
    directly is a constant of the program instead, and a change of it causes a new trace.

    >>> rate = {"lr": 0.5}
    >>> @jaxgrad.jit
    ... def scaled(x):
    ...     return x * jaxgrad.tracing.number(lambda: rate["lr"])
    >>> x, _ = jaxgrad.ones(1), scaled(jaxgrad.ones(1))
    >>> rate["lr"] = 0.25
    >>> scaled(x), len(scaled.traces)
    (tensor([0.2500]), 1)
    """
    scope = mode.scope.get()
    if scope is not None:
        return scope.number(read)
    reads = number_reads.get()
    return read() if reads is None else reads.read(read)


@contextlib.contextmanager
def outside():
    """A context manager that computes immediately, outside of the trace that is under way.

    Tensors created in the block have values and are no part of the program: the function captures
    them when it reads them afterwards. The block runs when the function is traced, not at each
    call. Use it to create state once. Without a trace it changes nothing.

    >>> @jaxgrad.jit
    ... def count(x):
    ...     with jaxgrad.tracing.outside():
    ...         state.setdefault("count", jaxgrad.zeros(()))
    ...     return state["count"].add_(x)
    >>> state = {}
    >>> [count(jaxgrad.tensor(2.0)).item() for _ in range(3)]
    [2.0, 4.0, 6.0]
    """
    token = mode.scope.set(None)
    try:
        with outside_of_traces(), tracing(wide=False):
            yield
    finally:
        mode.scope.reset(token)


# ---- the points where operators report to the innermost scope (tape/interception.py)


def _read(tensor: Tensor):
    # the points serve the whole process: threads that trace nothing come here too
    scope = mode.scope.get()
    if scope is None:
        if handle_lock.is_owned_by_another():
            handle_lock.wait()
        return
    if abstract_value(tensor).mode in (INLINE, INLINE32) and not scope.is_inner:
        return
    if not scope.is_created_here(tensor):
        scope.capture(tensor)


def _created(tensor: Tensor):
    scope = mode.scope.get()
    if scope is not None:
        scope.record_created(tensor)


def _moved(tensor: Tensor, donor: Tensor):
    scope = mode.scope.get()
    captured = None if scope is None else scope.captured.get(id(tensor))
    if captured is not None:
        captured.record_moved(donor)


def _grad(tensor: Tensor, written: bool = False):
    scope = mode.scope.get()
    if scope is not None:
        scope.record_grad_access(tensor, written)


def _hooked(tensor: Tensor):
    scope = mode.scope.get()
    captured = None if scope is None else scope.captured.get(id(tensor))
    if captured is not None:
        captured.lead_past_hooks()


_POINTS = {"read": _read, "created": _created, "grad": _grad, "moved": _moved, "hooked": _hooked}
