"""What is there after a traced function has run: its results, and what it changed outside.

An `Outcome` is read off when the function ends, and made so again after each run of its program.
"""

from __future__ import annotations

import jax

from ..core.aval import make_aval
from ..storage.alias import assign
from ..tape import pytree, version_counter
from ..tape.node import Node
from ..tape.tensor import Tensor, current, is_moving, leaf_state, wrap
from ..tape.version_counter import counter_of
from .captured import Place
from .scope import ReadsTangent, Scope

UNCHANGED = object()


class Value:
    """The value of a tensor after a run: `output`, the number of the array; what it shows; whether
    it requires grad; `live`: its number among those with a history, else None.
    """

    __slots__ = ("aval", "live", "output", "tracked")

    def __init__(self, outcome: Outcome, tensor: Tensor):
        if is_moving(tensor):
            raise ReadsTangent(f"{outcome.scope.name} gives a tensor with a tangent")
        shown = current(tensor)._aval
        self.output = outcome.put(tensor._raw)
        self.aval = make_aval(tuple(shown.shape), shown.dtype, strides=shown.strides)
        self.tracked, self.live = tensor._tracked, None
        if self.tracked and isinstance(tensor._node, Node):
            edge = tensor._node, tensor._nr
            self.live = outcome.live_at(edge, self.aval, tensor._raw)

    def make(self, arrays, nodes) -> Tensor:
        """A new tensor of it."""
        if self.live is None:
            return wrap(arrays[self.output], self.aval, self.tracked)
        return wrap(arrays[self.output], self.aval, True, nodes[self.live], self.live)

    def give(self, tensor: Tensor, arrays, nodes):
        """Have a tensor be it: one that was made in the trace, or one without aliases."""
        tensor._raw, tensor._aval, tensor._alias = arrays[self.output], self.aval, None
        if self.live is not None:
            tensor._node, tensor._nr = nodes[self.live], self.live


class Change:
    """What has become of a tensor from outside: its value, how often it was written to, whether it
    requires grad, and its `.grad`.
    """

    __slots__ = ("number", "slot", "tracked", "value", "writes")

    def __init__(self, outcome: Outcome, place: Place):
        tensor, before = current(place.tensor), place.before
        self.number, self.tracked = place.number, tensor._tracked
        written = tensor._raw is not place.array or tensor._node is not before.fields[2]
        self.value = Value(outcome, tensor) if written else None
        self.writes = outcome.scope.writes_to(place)
        self.slot = UNCHANGED
        if self.value is not None and before.alias is not None:
            self.refuse_turned(outcome.scope.name, place)

    def read_slot(self, outcome: Outcome, place: Place):
        """Note its `.grad`, which may have been another one at a call where it is set unread."""
        grad = getattr(current(place.tensor)._leaf, "grad", None)
        if grad is not place.before.grad or place.writes_slot:
            self.slot = outcome.name(grad)

    def refuse_turned(self, name, place: Place):
        """Raises RuntimeError where a tensor that has views, or is one, came to show another."""
        if self.value.aval is not place.aval or not self.writes:
            raise RuntimeError(
                f"{name}, compiled by jaxgrad.jit: a tensor of shape {list(place.aval.shape)}, "
                "which shares its memory with others, is given other data or another shape "
                "(data=, set_, t_, unsqueeze_ and their kin): do that outside of the function"
            )

    def is_none(self, place: Place) -> bool:
        kept = self.value is None and self.slot is UNCHANGED and not self.writes
        return kept and self.tracked is place.tracked

    def apply(self, tensor: Tensor, arrays, nodes, named):
        """Make it so for the tensor that is in the place now."""
        value = self.value
        if value is not None and value.live is None and tensor._alias is None:
            tensor._raw, tensor._aval = arrays[value.output], value.aval  # as `write`, in a hurry
        elif value is not None:
            self.write(tensor, arrays, nodes)
        if self.writes:
            counter = tensor._counter
            if counter is None or counter.places is not None:
                count(tensor, self.writes)
            else:
                counter.value += self.writes
        tensor._tracked = self.tracked
        if self.slot is not UNCHANGED:
            leaf_state(tensor).grad = named(self.slot)

    def write(self, tensor, arrays, nodes):
        value = self.value
        if tensor._alias is None:
            value.give(tensor, arrays, nodes)
        else:
            assign(tensor, value.make(arrays, nodes), value.live is not None)
            counter_of(tensor).value -= 1


def count(tensor: Tensor, writes: int):
    counter = counter_of(tensor)
    counter.value += writes
    if counter.places is not None:
        counter.places += [version_counter.place_of_caller()] * writes


class Outcome:
    """What a function has left behind, read off in its scope, which is at its end.

    `arrays`: what the trace returns; `fresh`: tensors that it made and that are there afterwards;
    `results`: for each result which it is; `changes`: those of tensors from outside; `live`: of
    what has a history the edge, what it shows and its array, and afterwards how many these were.
    """

    def __init__(self, scope: Scope, held: list):
        """held: a list of the function's result alone, which is taken out."""
        self.scope, self.arrays, self.live = scope, [], []
        self.fresh: list[Value] = []
        self.slots: dict[int, int] = {}
        self.kept, self.numbers = [], {}
        # What is overwritten comes first: JAX gives an output the memory of the first donated input
        # of its kind, and of another tensor's memory the program would have to make a copy.
        changes = [Change(self, place) for place in scope.places.values()]
        outputs, self.structure = pytree.flatten(held.pop())
        self.results = list(map(self.name, outputs))
        number = 0
        while number < len(scope.places):  # a result or a `.grad` may not have been met before
            place = list(scope.places.values())[number]
            if number == len(changes):
                changes.append(Change(self, place))
            changes[number].read_slot(self, place)
            number += 1
        places = scope.places.values()
        self.changes = [c for c, place in zip(changes, places, strict=True) if not c.is_none(place)]
        self.refuse_overlaps()

    def put(self, array) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def live_at(self, edge, aval, array) -> int:
        for number, (known, _, _) in enumerate(self.live):
            if known == edge:
                return number
        self.live.append((edge, aval, array))
        return len(self.live) - 1

    def name(self, value):
        """How a result is found after a run: a kind, and a number or the value itself."""
        if isinstance(value, jax.Array):
            return "array", self.put(value)
        if not isinstance(value, Tensor):
            return "constant", value
        if self.scope.is_outside(value):
            return "place", self.scope.meet(value).number
        return "fresh", self.keep(value)

    def keep(self, tensor: Tensor) -> int:
        """The number of a tensor among those that the function made."""
        number = self.numbers.get(id(tensor))
        if number is None:
            self.kept.append(tensor)  # while its id is in use
            number = self.numbers[id(tensor)] = len(self.fresh)
            self.fresh.append(Value(self, tensor))
            grad = getattr(tensor._leaf, "grad", None)
            if grad is not None:
                self.slots[number] = self.keep(grad)
        return number

    def refuse_overlaps(self):
        """Raises RuntimeError where two tensors of one memory were used and one was written to."""
        written = {change.number for change in self.changes if change.value is not None}
        places: dict[int, list] = {}
        for place in self.scope.places.values():
            if place.before.alias is not None:
                places.setdefault(id(place.before.alias.storage), []).append(place)
        for sharing in places.values():
            if len(sharing) > 1 and written.intersection(place.number for place in sharing):
                shapes = " and ".join(str(list(place.aval.shape)) for place in sharing)
                raise RuntimeError(
                    f"{self.scope.name}, compiled by jaxgrad.jit, uses tensors from outside, of "
                    f"shapes {shapes}, that share memory, and writes to one of them: take the "
                    "views inside of the function, or clone() before it"
                )

    def finish(self) -> tuple[list, dict[int, Tensor]]:
        """End the scope; gives what the trace returns, and the tensors made in it that somebody
        still holds, by number.
        """
        scope = self.scope
        self.kept, self.live = None, len(self.live)
        scope.restore()
        survivors = {}
        for tensor in scope.survivors():
            number = self.numbers.get(id(tensor))
            if number is None and tensor._tracked and isinstance(tensor._node, Node):
                raise RuntimeError(
                    f"{scope.name}, compiled by jaxgrad.jit, leaves behind a tensor of shape "
                    f"{list(tensor.shape)} with a history (it was computed by "
                    f"{tensor._node.name()}): detach() it, or return it"
                )
            survivors[self.keep_late(tensor) if number is None else number] = tensor
        arrays, self.count = self.arrays, len(self.arrays)
        self.numbers = self.scope = self.arrays = None
        return arrays, survivors

    def keep_late(self, tensor):
        self.fresh.append(Value(self, tensor))
        return len(self.fresh) - 1

    def apply(self, arrays, tensors, nodes, survivors=()):
        """Make it so; gives the function's result. `tensors`: those in the places now; `nodes`: for
        each of `live` its node.
        """
        made = [value.make(arrays, nodes) for value in self.fresh]
        for number, tensor in dict(survivors).items():
            self.fresh[number].give(tensor, arrays, nodes)
            made[number] = tensor
        for number, slot in self.slots.items():
            leaf_state(made[number]).grad = made[slot]

        def named(name):
            kind, value = name
            if kind == "fresh":
                return made[value]
            if kind == "place":
                return tensors[value]
            return arrays[value] if kind == "array" else value

        for change in self.changes:
            change.apply(tensors[change.number], arrays, nodes, named)
        return jax.tree.unflatten(self.structure, list(map(named, self.results)))
