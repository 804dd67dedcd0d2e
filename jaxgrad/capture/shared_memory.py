"""Memory shared by the tensors that leave a compiled function: views of captured tensors, views of
one another, and detached tensors.

In a trace each tensor that shares memory has an `Alias`, as outside. At the end of the trace a
`SharedTensor` describes the place of each tensor that leaves the function and shares memory with
another tensor that lives on. At each call the `SharedTensor` gives the new tensor this place, as
the view operators would. A view whose base nobody else shows gets memory of its own, and the base
is no output of the program.
"""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp

from ..core.copy_slices import in_order
from ..storage.alias import Alias, place_detached, place_view, root_of, settle, watch
from ..storage.sole_owner import is_shared
from ..tape.tensor import Tensor, alias_of, known_counter, set_alias, set_counter, wrap
from ..tape.version_counter import counter_of
from .guards import SeparateMemory


class TracedNumber:
    """A number of a view's call that the program computes: its output of this number."""

    __slots__ = ("output",)

    def __init__(self, output: int):
        self.output = output


class SharedTensor:
    """How a created tensor shares memory: by the calls of view operators, from the tensor `source`.

    `number`: its own number among the created tensors; `creation`: how it was created as a view
    (storage/creation_meta.py), None for a detached tensor; `base`: its `_base`, if this is neither
    the source nor the base of the source; `is_turned`: whether it became a view of itself, as by
    `t_`. Source and base are results (`OutputSpec.result`).
    """

    __slots__ = ("base", "creation", "is_turned", "number", "source", "steps")

    def __init__(self, number: int, source: tuple, steps: list, creation: int | None = None):
        self.number, self.source, self.steps, self.creation = number, source, steps, creation
        self.base, self.is_turned = None, False

    def attach(self, arrays, tensors, created):
        """Give the tensor of a call its place in the memory of its source."""
        lists = {"captured": tensors, "created": created}
        source, tensor = lists[self.source[0]][self.source[1]], created[self.number]
        steps = [
            (call, [arrays[n.output] if type(n) is TracedNumber else n for n in numbers])
            for call, numbers in self.steps
        ]
        if self.creation is None:
            place_detached(tensor, source, steps)
            return
        place_view(tensor, source, steps, self.creation)
        alias = alias_of(tensor)
        if self.is_turned:
            alias.base, alias.before = None, source
        elif self.base is not None:
            alias.base = lists[self.base[0]][self.base[1]]

    def follow_source(self, created):
        """Mark the tensor as up to date after a write to its source: it already has its value and
        history from the end of the trace.
        """
        alias = alias_of(created[self.number])
        alias.seen = alias.storage.epoch
        if alias.root is not None:
            alias.followed = alias.root.followed


class SharedVersion:
    """How a created tensor with memory of its own shares the version of a captured tensor, whose
    memory it showed before the function set `data` of that tensor.

    `number`: its own number among the created tensors; `source`: the number of the captured tensor.
    """

    __slots__ = ("number", "source")

    def __init__(self, number: int, captured: int):
        self.number, self.source = number, ("version", captured)

    def attach(self, arrays, tensors, created):
        set_counter(created[self.number], counter_of(tensors[self.source[1]]))

    def follow_source(self, created):
        pass


def owner_of(alias: Alias) -> Tensor:
    """A tensor for all of a memory of which the others show parts."""
    settle(alias.storage)
    owner = wrap(alias.storage.array, alias.storage.aval)
    set_alias(owner, Alias(alias.storage))
    return owner


class SharedMemory:
    """Which of the tensors that exist after a call share memory. It refers to tensors only by ids
    and numbers, since reference counts tell which tensors escape.

    `roots`: by the id of its alias each tensor from which views may be cut, as a result; `donors`:
    by the id of a storage a tensor that shows all of it; `counts`: how many tensors share a
    storage; `left`: by the id of a storage the captured tensor to which it belonged; `alone`: the
    numbers of the captured tensors that must share memory with no tensor outside; `counters`: by
    the id of a version counter the captured tensor that has it.
    """

    def __init__(self, outputs):
        self.outputs = outputs
        self.roots: dict[int, tuple] = {}
        self.donors: dict[int, tuple] = {}
        self.counts: Counter[int] = Counter()
        self.left: dict[int, int] = {}
        self.alone: set[int] = set()
        self.counters: dict[int, int] = {}
        self.detached: list[SharedTensor] = []
        self.views: list[SharedTensor] = []
        self.versions: list[SharedVersion] = []
        self.is_closed = False
        for captured in outputs.scope.captured.values():
            self.add_captured(captured)

    def add_captured(self, captured):
        tensor, alias = captured.tensor, alias_of(captured.tensor)
        if known_counter(tensor) is not None:
            self.counters[id(known_counter(tensor))] = captured.number
        if captured.moved is not None:
            if captured.moved.storage is not None:
                self.left[id(captured.moved.storage)] = captured.number
            if captured.moved.is_written:
                self.alone.add(captured.number)  # nothing else shows what it wrote
        if id(tensor) in self.outputs.numbers:
            # it takes the place of a created tensor, which `find` describes
            if captured.moved is None:
                self.alone.add(captured.number)
        elif alias is not None:
            self.counts[id(alias.storage)] += 1
            self.roots[id(alias)] = self.donors[id(alias.storage)] = "captured", captured.number

    def find(self, tensors: list[Tensor]):
        """Describe how these tensors, which are all created ones, share memory. Further tensors
        that they need are appended.
        """
        for number, tensor in enumerate(tensors):
            self.add(number, tensor)
        for number, tensor in enumerate(tensors):
            self.describe(number, tensor)

    def add_escaped(self, number: int, tensor: Tensor):
        """Describe how a tensor shares memory that is found only once `find` has ended."""
        self.is_closed = True
        self.add(number, tensor)
        self.describe(number, tensor)

    def add(self, number: int, tensor: Tensor):
        alias = alias_of(tensor)
        if alias is None:
            return
        self.counts[id(alias.storage)] += 1
        if id(alias.storage) in self.left:
            self.alone.add(self.left[id(alias.storage)])
        if alias.root is None:
            self.roots.setdefault(id(alias), ("created", number))
            if alias.place is None:
                self.donors.setdefault(id(alias.storage), ("created", number))

    def describe(self, number: int, tensor: Tensor):
        alias = alias_of(tensor)
        if alias is None:
            return
        if self.counts[id(alias.storage)] < 2:
            if id(known_counter(tensor)) in self.counters:
                captured = self.counters[id(known_counter(tensor))]
                self.versions.append(SharedVersion(number, captured))
            return
        if alias.root is None:
            source = self.donors.get(id(alias.storage)) or self.needed(tensor, owner_of)
            if source != ("created", number):
                steps = self.steps(source, alias.place)
                self.detached.append(SharedTensor(number, source, steps))
            elif self.is_closed:
                raise self.refusal(tensor)  # the others have been given memory of their own
            return
        source = self.roots.get(id(alias.root))
        if source is None:
            source = self.needed(tensor, root_of)
        shared = SharedTensor(number, source, self.steps(source, alias.steps), alias.creation)
        base = None if alias.base is None else self.known(alias.base)
        shared.base, shared.is_turned = None if base == source else base, alias.base is None
        self.views.append(shared)

    def known(self, tensor: Tensor) -> tuple | None:
        """A tensor that exists after a call, as a result."""
        captured = self.outputs.scope.captured.get(id(tensor))
        number = self.outputs.numbers.get(id(tensor))
        created = None if number is None else ("created", number)
        return created if captured is None else ("captured", captured.number)

    def needed(self, tensor: Tensor, find) -> tuple:
        """A further tensor that a call must create for the place of another one. find: finds it,
        given the alias.
        """
        if self.is_closed:
            raise self.refusal(tensor)
        viewed = find(alias_of(tensor))
        number = self.outputs.add_created(viewed)
        self.add(number, viewed)
        return "created", number

    def steps(self, source, place) -> list[tuple]:
        """The calls that lead from a source to a place, on concrete arrays, and their numbers."""
        kind, number = source
        scope, steps = self.outputs.scope, []
        known = self.outputs.created if kind == "created" else list(scope.captured.values())
        shown = known[number].aval
        for call, numbers in in_order(place):
            again = call.primitive.call(call.structure, (shown, *call.inputs[1:]))
            shown = again.outputs[0]
            steps.append((watch(again), list(map(self.number, numbers))))
        return steps

    def number(self, value):
        """A number of a call, or where the program finds it."""
        if not isinstance(value, jax.core.Tracer):
            return value
        bounds = jnp.iinfo(jnp.int32)
        # kernels take 32 bits; what does not fit is out of range before and after
        with jax.enable_x64(True):
            value = jnp.clip(value, bounds.min, bounds.max) if value.dtype.itemsize > 4 else value
            return TracedNumber(self.outputs.add_array(value.astype(jnp.int32)))

    def refusal(self, tensor):
        return RuntimeError(
            f"{self.outputs.scope.name}, compiled by jaxgrad.jit, leaves behind a tensor of shape "
            f"{list(tensor.shape)} that shares memory with another one: clone() it, or return it"
        )

    def refuse_shared(self):
        """Raise RuntimeError if a captured tensor shares memory with a tensor outside and leaves
        this memory to a tensor of the function, or the other way round.
        """
        scope = self.outputs.scope
        captured = list(scope.captured.values())
        for number in self.alone:
            alias = alias_of(captured[number].tensor)
            if alias is not None and is_shared(captured[number].tensor):
                raise scope.refused_memory(
                    "gives other memory to a tensor of shape "
                    f"{list(captured[number].aval.shape)} that shares its memory",
                    alias.storage,
                )

    def shared(self) -> list[SharedTensor | SharedVersion]:
        """The tensors that share memory or a version, in the order in which they get these."""
        # views are cut from tensors that have their places
        return self.detached + self.views + self.versions

    def separate(self) -> SeparateMemory | None:
        """The guard on captured tensors that must not share memory; None where all may."""
        self.refuse_shared()
        written = self.outputs.written
        return SeparateMemory(list(written), list(self.alone)) if written else None


def refuse_overlaps(scope, written: set[int]):
    """Raise RuntimeError if two captured tensors share memory and one of them is written to.

    written: the numbers of the written tensors.
    """
    storages: dict[int, list] = {}
    for captured in scope.captured.values():
        alias = captured.snapshot.alias
        if alias is not None and captured.entry is None:
            storages.setdefault(id(alias.storage), []).append(captured)
    for sharing in storages.values():
        if len(sharing) > 1 and written.intersection(captured.number for captured in sharing):
            shapes = " and ".join(str(list(captured.aval.shape)) for captured in sharing)
            raise scope.refused_memory(
                f"uses tensors from outside, of shapes {shapes}, that share memory, and writes to "
                "one of them: take the views inside of the function, or clone() before it",
                sharing[0].snapshot.alias.storage,
            )
