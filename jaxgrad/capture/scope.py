"""Functions of state, traced: what a function reads from outside, and what it changes there.

While a `Scope` is open, a tensor from outside that is read becomes an input of the trace: its
handle holds a tracer from then on, so that operators, views, writes and the tape treat it as any
other. At the end each handle is what it was before, and what would have changed is told by its
`Place`, for whoever runs the program to make it so. Nothing of this costs an operator anything
while no scope is open.
"""

from __future__ import annotations

import contextlib
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive, set_current_trace, take_current_trace

from ..core.aval import IMMEDIATE, traced_aval, with_dual
from ..storage.alias import lock as writing
from ..tape import mode, traced_hooks
from ..tape.interception import intercept, release
from ..tape.node import AccumulateGrad
from ..tape.source_location import place_of_caller
from ..tape.symbolic_number import Varying
from ..tape.tensor import LeafState, Tensor, current
from .captured import GradientOf, Outside, Place, Source
from .graph_input import GeneratorInput, Input, NumberInput, TensorInput, words_of
from .object_guards import Objects

# An input of a trace that was found while it was under way: an equation without operands, which
# `jit` turns into an argument. `number`: its position among the inputs.
captured = Primitive("captured")
captured.def_abstract_eval(lambda *, number, aval: aval)


class Scope:
    """What a function reads and makes while it is being traced.

    `places`: the tensors that it has met, by `id`; `inputs`: for each input of the trace a function
    that gives it at a call; `made`: what takes back state that was made in here, should the
    function fail; `lines`: where `notes_lines`, by `id` the source lines that made the
    tensors in here.
    """

    # whether tensors of the trace around it are from outside as well, and what is traced is a
    # program in that: one of many examples, the body of a loop
    is_inner = False

    def __init__(self, name: str, notes_lines: bool = False):
        self.name, self.trace = name, None
        self.lines: dict[int, str] = {}
        self.notes_lines = notes_lines
        self.parent = mode.scope.get()
        with take_current_trace() as self.around:
            pass
        self.places: dict[int, Place] = {}
        self.inputs: list[Input] = []
        self.born: dict[int, weakref.ref] = {}
        self.counters: dict[int, tuple] = {}
        self.generators: dict[int, GeneratorInput] = {}
        self.made: list = []
        self.objects = Objects(self.parent and self.parent.objects)
        self.outside = traced_hooks.Outside()

    # ---- opening

    @contextlib.contextmanager
    def open(self):
        """Trace around this place; afterwards every tensor is what it was before."""
        token = mode.scope.set(self)
        intercept(read=_read, created=_created, grad=_grad)
        try:
            with take_current_trace() as self.trace:
                pass
            with self.outside.meeting():
                yield self
        except BaseException:
            for take_back in self.made:
                take_back()
            raise
        finally:
            release("read", "created", "grad")
            mode.scope.reset(token)
            self.restore()
            self.forget()

    def restore(self):
        for place in self.places.values():
            place.before.restore(place.tensor)
        for counter, version, writes in self.counters.values():
            counter.value = version
            if writes is not None:
                del counter.places[writes:]

    def forget(self):
        """Keep nothing of the trace."""
        self.trace = None
        for place in self.places.values():
            place.array = None
        for source in self.generators.values():
            source.words = None

    # ---- meeting

    @contextlib.contextmanager
    def surroundings(self):
        """Compute in the trace around this one, or here and now where there is none."""
        token = mode.scope.set(self.parent)
        try:
            with set_current_trace(self.around):
                yield
        finally:
            mode.scope.reset(token)

    def is_own(self, tensor: Tensor) -> bool:
        """Whether a tensor was made in here."""
        known = self.born.get(id(tensor))
        return known is not None and known() is tensor

    def is_beyond(self, node) -> bool:
        """Whether a node, which is not that of a tensor in a place, is from outside."""
        if type(node) is AccumulateGrad:
            return self.is_outside(node.variable)
        return node.sequence < self.outside.begun

    def is_outside(self, tensor: Tensor) -> bool:
        if id(tensor) in self.places:
            return True
        return not self.is_own(tensor) and (self.is_inner or not is_traced(tensor))

    def make(self, tensor: Tensor):
        """Note a tensor that was made in here."""
        self.born[id(tensor)] = weakref.ref(tensor)
        if self.notes_lines:
            self.lines[id(tensor)] = place_of_caller()

    def meet(self, tensor: Tensor, source: Source | None = None) -> Place:
        """The place of a tensor from outside, whose handle holds a tracer from now on."""
        place = self.places.get(id(tensor))
        if place is not None:
            return place
        with self.surroundings():
            place = Place(current(tensor), source or Outside(tensor), len(self.places))
        self.places[id(tensor)] = place
        self.note_counter(tensor)
        place.before.hooks.enter(tensor)
        place.array = self.input(tensor._raw, TensorInput(place))
        tensor._raw, tensor._aval = place.array, traced_aval(tensor._aval, place.array)
        if place.is_moving:
            self.hold(tensor)
        tensor._alias = None
        return place

    def hold(self, tensor):
        """Let the tangents of a tensor not be seen inside."""
        tensor._leaf = LeafState()
        if self.is_inner:  # the derivative of the whole call is taken
            tensor._aval = with_dual(tensor._aval, False)
        else:
            tensor._leaf.tangents = Moving(self.name, tensor)

    def numbers_of(self, tensor):
        """The array of a tensor that the function reaches by itself and has not written to; the
        program is for these numbers from then on. None for another tensor.
        """
        place = self.places.get(id(tensor))
        if place is None or not place.is_outside or tensor._raw is not place.array:
            return None
        array = place.before.fields[0]
        if isinstance(array, jax.core.Tracer):
            return None
        place.pinned = weakref.ref(array)
        return array

    def note_counter(self, tensor):
        counter = tensor._counter
        if counter is not None and id(counter) not in self.counters:
            writes = None if counter.places is None else len(counter.places)
            self.counters[id(counter)] = counter, counter.value, writes

    def writes_to(self, place: Place) -> int:
        """How often the tensor in a place has been written to."""
        counter = place.tensor._counter
        if counter is None:
            return 0
        return counter.value - self.counters.get(id(counter), (None, 0))[1]

    def input(self, array, source: Input):
        """A tracer in the place of an array, which is another one at each call."""
        number = len(self.inputs)
        self.inputs.append(source)
        aval = jax.typeof(array if hasattr(array, "dtype") else jnp.asarray(array))
        with set_current_trace(self.trace):
            return captured.bind(number=number, aval=aval)

    def draw(self, generator):
        """The words of a generator's next draw; at each call of the program it makes as many."""
        source = self.generators.get(id(generator))
        if source is None:
            source = self.generators[id(generator)] = GeneratorInput(generator)
            source.words = self.input(np.zeros(2, np.uint64), source)
        number, source.count = source.count, source.count + 1
        return words_of(source.words, number)

    def number(self, read):
        """A Python number that `read` gives, at each call anew."""
        if self.is_inner and self.parent is not None:
            return self.parent.number(read)
        source = NumberInput(read, sum(isinstance(each, NumberInput) for each in self.inputs))
        return Varying(self.input(read(), source))

    def slot(self, tensor: Tensor, written: bool):
        """Note that the `.grad` of a tensor is read, or written."""
        if self.is_own(tensor):
            return
        place = self.meet(tensor)
        if place.writes_slot or place.ignores_slot:
            return
        if written and not place.reads_slot:
            place.writes_slot = True
        elif not written:
            place.reads_slot = True
            gradient = place.before.grad
            if gradient is not None and not self.is_own(gradient):
                self.meet(gradient, GradientOf(place))

    # ---- what is left behind

    def survivors(self) -> list[Tensor]:
        """The tensors made in here that somebody still holds."""
        if any(map(is_traced, self.alive())):
            gc.collect()
        return [tensor for tensor in self.alive() if is_traced(tensor)]

    def alive(self):
        for reference in self.born.values():
            tensor = reference()
            if tensor is not None:
                yield tensor


class ReadsTangent(RuntimeError):
    """The function uses a tangent of forward mode from outside, which a program cannot take in."""


class Moving:
    """In the place of the tangents of a tensor from outside."""

    def __init__(self, name: str, tensor: Tensor):
        self.what = f"{name} uses a tangent of a tensor of shape {list(tensor.shape)} from outside"

    def __getattr__(self, attribute):
        raise ReadsTangent(self.what)


def number(read):
    """The Python number that `read()` gives; inside of `jaxgrad.jit` what stands for it, as it is
    read anew at each call of the compiled function.

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
    return read() if scope is None else scope.number(read)


def is_traced(tensor: Tensor) -> bool:
    return isinstance(tensor._raw, jax.core.Tracer)


@contextlib.contextmanager
def outside():
    """Compute here and now, outside of the trace that is under way: what is made has numbers, and
    is from outside to the function that is being traced.

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
        with jax.ensure_compile_time_eval():
            yield
    finally:
        mode.scope.reset(token)


def _read(tensor: Tensor):
    scope = mode.scope.get()
    if scope is None or (tensor._aval.mode != IMMEDIATE and not scope.is_inner):
        return
    if scope.is_own(tensor):
        return
    with writing:
        scope.meet(tensor)


def _created(tensor: Tensor):
    scope = mode.scope.get()
    if scope is not None:
        scope.make(tensor)


def _grad(tensor: Tensor, written: bool = False):
    scope = mode.scope.get()
    if scope is not None:
        scope.slot(tensor, written)
