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
import itertools
import weakref
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import set_current_trace

from ..compiled.placement import form_of
from ..core.aval import (
    INLINE,
    INLINE32,
    traced_aval,
    tracing,
    types_of_trace,
    wide_trace,
    with_dual,
)
from ..core.jax_internals import current_trace
from ..core.meta_array import MetaArray
from ..draws.seeded import SeededGenerators
from ..state.reports import Reports
from ..storage.alias import begin
from ..storage.creation_meta import USUAL
from ..storage.sole_owner import leave_storage
from ..tape import handle_lock, mode, traced_hooks
from ..tape.interception import intercept, release
from ..tape.node import AccumulateGrad
from ..tape.source_location import place_of_caller
from ..tape.symbolic_number import Varying
from ..tape.tensor import LeafState, Tensor, current, hold, is_traced, restore_state, state_of
from .captured import CapturedTensor
from .graph_input import (
    GeneratorInput,
    GraphInput,
    NumberInput,
    TensorInput,
    number_reads,
    random_words,
    reader_of,
    scopes_around,
)
from .guards import GradSource, HandleSource, TensorSource
from .joined_memory import SharesMemory, is_joined, join
from .known_numbers import answer, input_p


class CaptureScope:
    """What a function reads and creates while it is traced.

    `captured`: the captured tensors, by id; `inputs`: the inputs of the trace; `tracers`: theirs;
    `created`: weak references to the tensors created inside, by id; `objects`: what modules and
    optimizers report; `observation`: what it reads and changes of other Python objects;
    `inspected`: the inputs whose numbers it looked at; `rebound`, `looked_at`: the numbers that are
    inputs as long as it does not look at them, and those that it looks at; `can_fall_back`: whether
    the function runs uncompiled where it cannot be traced; `outer`: nodes from
    outside that its passes reach; `undo`: functions that take back state created inside, called if
    tracing fails; `lines`: with `records_lines`, the source lines that created tensors, by id;
    `answers`: the numbers that code has looked at, by the lines that asked; `evaluated`: by the id
    of an equation it and its results, where code has looked at numbers that need it; `refused`: the
    error where code looked at numbers that are not known, and `why_refused`; `memo`: what
    jaxgrad's own code keeps for the trace alone, which it forgets at its end; `seeded`: the states
    that it has given to generators.
    """

    # An inner scope traces a part of another program: one example of a vmap, the body of a loop.
    # Tensors of the trace around it are from outside too.
    is_inner = False
    # the containers among the arguments, and whether a value of a result is one of them
    position_of, is_whole = staticmethod(lambda value: None), None
    # of a replay: the answers that it repeats, whether it has come to the passes, which may ask for
    # more, and by the id of what it is given for a captured tensor the numbers looked at
    given_answers, is_in_passes, given_numbers = None, False, MappingProxyType({})

    def __init__(self, name: str, records_lines: bool = False):
        self.name, self.trace = name, None
        self.lines: dict[int, str] = {}
        self.records_lines = records_lines
        self.parent = mode.scope.get()
        self.around = current_trace()
        # whether JAX differentiates what is traced here, not the tape
        self.is_differentiated = self.parent is not None and self.parent.is_differentiated
        self.is_around_wide = wide_trace.get()
        self.captured: dict[int, CapturedTensor] = {}
        self.inputs: list[GraphInput] = []
        self.tracers: list = []
        self.answers: dict[tuple, list] = {}
        self.evaluated: dict[int, tuple] = {}
        self.refused, self.why_refused = None, ""
        self.number_keys = itertools.count()
        self.created: dict[int, weakref.ref] = {}
        self.versions: dict[int, tuple] = {}
        self.generators: dict[int, GeneratorInput] = {}
        self.seeded = SeededGenerators(self)
        self.undo: list = []
        self.memo: dict = {}
        self.objects = Reports(self.parent and self.parent.objects)
        self.observation = self.parent and self.parent.observation
        self.inspected: set[GraphInput] = set()
        self.rebound, self.looked_at, self.can_fall_back = None, frozenset(), False
        self.derived: list[Varying] = []
        # the memory that is joined, None where none can be; by its id what is joined inside
        self.joined, self.groups = None, {}
        self.outer = traced_hooks.OuterNodes()

    def take_containers(self, containers):
        """Take in the containers among the arguments (capture/argument_containers.py)."""
        if containers.positions:
            self.position_of = containers.position_of
            self.is_whole = lambda value: containers.position_of(value) is not None

    def belong_to(self, function):
        """Belong to the trace of a compiled function, in whose cache looks at numbers are noted."""
        cache = function.cache
        self.inspected, self.rebound = cache.inspected, cache.rebound
        self.looked_at, self.can_fall_back = cache.looked_at, function.fallback is not None
        self.joined = None if self.is_inner else set(cache.joined)

    # ---- opening

    @contextlib.contextmanager
    def open(self):
        """Trace inside of the block; afterwards every tensor from outside is what it was before."""
        with handle_lock.changing():
            try:
                intercept(id(self), **_POINTS)
                mode.scope.set(self)
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
        """Undo what modules, optimizers and passes have set: nothing comes of this trace."""
        for undo in reversed(self.undo):
            undo()
        self.outer.put_back()
        if self.parent is None:
            self.objects.put_back()

    def close(self):
        """End the trace; a second call comes to the same."""
        mode.scope.set(self.parent)
        release(*_POINTS, user=id(self))
        self.restore()
        self.forget_tracers()

    def restore(self):
        """Put captured tensors and version counters back to what they were."""
        for captured in self.captured.values():
            captured.snapshot.restore(captured.tensor)
        for counter, version, writes in self.versions.values():
            counter.value = version
            if writes is not None:
                del counter.places[writes:]

    def forget_tracers(self):
        # the program keeps the captured tensors, and one tracer would keep the whole trace
        self.trace, self.tracers, self.evaluated = None, [], {}
        for captured in self.captured.values():
            captured.tracer = None
        for source in self.generators.values():
            source.words = None
        self.seeded = None

    # ---- capturing

    @contextlib.contextmanager
    def outer_trace(self):
        """Compute in the trace around this one, or immediately where there is none."""
        token = mode.scope.set(self.parent)
        try:
            with set_current_trace(self.around), tracing(self.is_around_wide):
                yield
        finally:
            mode.scope.reset(token)

    @contextlib.contextmanager
    def outer_memory(self, tensor):
        """Let a view that is out of date find what it is a view of as it is outside."""
        if not is_view_out_of_date(tensor):
            yield
            return
        storage = tensor._alias.storage
        aliases = [(each, each.snapshot.alias) for each in self.captured.values()]
        known = [captured for captured, alias in aliases if alias and alias.storage is storage]
        inside = [(captured.tensor, state_of(captured.tensor)) for captured in known]
        for captured in known:
            restore_state(captured.tensor, captured.snapshot.state)
        try:
            yield
        finally:
            for tensor, state in inside:
                restore_state(tensor, state)

    def is_created_here(self, tensor: Tensor) -> bool:
        known = self.created.get(id(tensor))
        return known is not None and known() is tensor

    def is_outside(self, tensor: Tensor) -> bool:
        """Whether a tensor is from outside of the trace."""
        if id(tensor) in self.captured:
            return True
        return not self.is_created_here(tensor) and (self.is_inner or not is_traced(tensor))

    def read_of(self, tensor: Tensor, read):
        """What `read` gives for a tensor. The program holds for tensors from outside with the same.

        A captured tensor has lost its place in a storage, which it gets back for this.
        """
        captured = self.captured.get(id(tensor))
        if captured is None:
            if self.is_outside(tensor):
                self.objects.guard(tensor, read)
            return read(tensor)
        self.objects.guard(tensor, read)
        if captured.is_moved:
            return read(tensor)  # the function has given it other memory
        inside, tensor._alias = tensor._alias, captured.snapshot.alias
        try:
            return read(tensor) if self.parent is None else self.parent.read_of(tensor, read)
        finally:
            tensor._alias = inside

    def is_outer_node(self, node) -> bool:
        """Whether a node, other than that of a captured tensor, was recorded outside."""
        # a leaf from outside may get its node inside, so the number of that says nothing
        if type(node) is AccumulateGrad:
            return self.is_outside(node.variable)
        return node.sequence < self.outer.begun

    def record_created(self, tensor: Tensor):
        """Record a tensor created inside."""
        self.created[id(tensor)] = weakref.ref(tensor)
        if self.records_lines:
            self.lines[id(tensor)] = place_of_caller()

    def capture(self, tensor: Tensor, source: TensorSource | None = None) -> CapturedTensor:
        """Capture a tensor from outside: its handle holds a tracer from now on."""
        captured = self.captured.get(id(tensor))
        if captured is not None:
            return captured
        # pending writes are settled in the trace around: the input is their result
        with self.outer_trace(), self.outer_memory(tensor):
            source = source or HandleSource(tensor)
            if current(tensor)._alias is not None:
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
        hold(tensor, captured.tracer, traced_aval(tensor._aval, captured.tracer))
        if captured.has_tangent:
            self.hide_tangents(tensor)
        # a write to the tracer must not reach the storage outside; `restore` puts the alias back
        tensor._alias = None
        if captured.made != USUAL:
            begin(tensor).made = captured.made  # that of the views that are cut from it
        return captured

    def require_joined(self, captured, is_of_memory: bool):
        """Raise RuntimeError where a function changes more of a captured tensor than its array, and
        its memory is not joined.
        """
        if is_of_memory:
            return
        raise self.refused_memory(
            f"gives another shape or history to a tensor of shape {list(captured.aval.shape)} that "
            "shares its memory (t_, unsqueeze_, detach_ and the like): do that outside of the "
            "function",
            captured.snapshot.alias.storage,
        )

    def refused_memory(self, what: str, storage) -> RuntimeError:
        """The error for what can be done to joined memory only."""
        message = f"{self.name}, compiled by jaxgrad.jit, {what}"
        can_join = self.joined is not None and storage not in self.joined
        return SharesMemory(message, storage) if can_join else RuntimeError(message)

    def hide_tangents(self, tensor):
        """Hide the tangents of a captured tensor: a program cannot take them in."""
        # its `.grad` and its hooks stay
        tensor._leaf = copy.copy(tensor._leaf) or LeafState()
        if self.is_inner:  # JAX differentiates the whole call in forward mode
            tensor._leaf.tangents = None
            tensor._aval = with_dual(tensor._aval, False)
        else:
            tensor._leaf.tangents = OuterTangents(self.name, tensor)

    def numbers_of(self, array, may_pin=True):
        """See `known_numbers.answer`."""
        return answer(self, array, may_pin)

    def record_refused(self, error: RuntimeError):
        """Record that code looked at numbers that are not known."""
        for scope in scopes_around(self):
            scope.refused = scope.refused or (str(error), error.place)

    def raise_refused(self):
        """Raise the error for numbers that were not known, where the function has caught it: with
        the numbers it would have gone another way.
        """
        if self.refused is not None:
            error = RuntimeError(self.refused[0])
            error.place = self.refused[1]
            raise error

    def record_version(self, tensor):
        counter = tensor._counter
        if counter is not None and id(counter) not in self.versions:
            writes = None if counter.places is None else len(counter.places)
            self.versions[id(counter)] = counter, counter.value, writes

    def write_count(self, captured: CapturedTensor) -> int:
        """How often a captured tensor has been written to."""
        counter = captured.tensor._counter
        if counter is None:
            return 0
        return counter.value - self.versions.get(id(counter), (None, 0))[1]

    def add_input(self, array, source: GraphInput):
        """A tracer for an array that each call supplies anew."""
        number = len(self.inputs)
        self.inputs.append(source)
        if type(array) is MetaArray:
            array = array.struct
        with types_of_trace():
            aval = jax.typeof(array if hasattr(array, "dtype") else jnp.asarray(array))
        # in the trace of the scope, also where the function reads the tensor inside a jax.vjp
        with set_current_trace(self.trace):
            self.tracers.append(input_p.bind(number=number, aval=aval))
        return self.tracers[-1]

    def draw(self, generator):
        """The random words of a generator's next draw."""
        return self.next_words(generator, self.generators, GeneratorInput)

    def next_words(self, generator, sources: dict, kind):
        """The words of a draw, from the state that is an input, or that was set inside."""
        state = self.seeded.get(generator)
        if state is not None:
            return state.next_words()
        source = self.source_of_draws(generator, sources, kind)
        number, source.count = source.count, source.count + 1
        return random_words(source.words, number)

    def source_of_draws(self, generator, sources: dict, kind):
        """The state of a generator that is an input: `kind` makes it, `sources` keeps it by the id
        of the generator.
        """
        source = sources.get(id(generator))
        if source is None:
            source = sources[id(generator)] = kind(generator)
            # zeros, for their type alone: each call supplies the state
            source.words = self.add_input(np.zeros(2, np.uint64), source)
        return source

    def number(self, read, key=None):
        """A symbolic number, which each call reads anew by `read()`.

        key: identifies it when the function is replayed; by default its place in the order of the
        reads, which a replay repeats.
        """
        if self.is_inner and self.parent is not None:
            return self.parent.number(read, key)
        known = [reader_of(each.read) for each in self.inputs if isinstance(each, NumberInput)]
        key = next(self.number_keys) if key is None else key
        source = NumberInput(read, key, known.count(reader_of(read)))
        run = mode.drawn_run.get()
        with self.unobserved(), contextlib.nullcontext() if run is None else run.reading():
            value = read()
        return Varying.of_input(self.add_input(value, source), source, value)

    @contextlib.contextmanager
    def unobserved(self):
        """What runs inside reads state at each call, so its reads need no guard."""
        observation = self.observation
        is_open = observation is not None and observation.is_open
        if is_open:
            observation.is_open = False
        try:
            yield
        finally:
            if is_open:
                observation.is_open = True

    def record_inspected(self, origins):
        """Record that the function looked at numbers that vary."""
        self.inspected |= origins
        if self.parent is not None:
            self.parent.record_inspected(origins)

    def record_derived(self, number: Varying):
        """Record a number that is computed from those that vary: a guard compares its kind."""
        self.derived.append(number)
        if self.parent is not None:
            self.parent.record_derived(number)

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


def is_view_out_of_date(tensor) -> bool:
    alias = tensor._alias
    return alias is not None and alias.root is not None and alias.seen != alias.storage.epoch


class RunsUncompiled(RuntimeError):
    """The function does what a program cannot do, so that its call runs uncompiled."""


class ReadsTangent(RunsUncompiled):
    """The function uses a tangent of forward mode from outside, which a program cannot take in."""


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
        with jax.ensure_compile_time_eval(), tracing(wide=False):
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
    if tensor._aval.mode in (INLINE, INLINE32) and not scope.is_inner:
        return
    if not scope.is_created_here(tensor):
        scope.capture(tensor)


def _created(tensor: Tensor):
    scope = mode.scope.get()
    if scope is not None:
        scope.record_created(tensor)


def _moved(tensor: Tensor, made: Tensor):
    scope = mode.scope.get()
    captured = None if scope is None else scope.captured.get(id(tensor))
    if captured is not None:
        captured.record_moved(made)


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
