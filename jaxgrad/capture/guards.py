"""When a compiled function is traced again: the guards of its programs, and the search for a
program that serves a call.

A program is valid for what tracing saw: the modes, the kinds of the arguments and of the captured
tensors, the attributes, variables, items and hooks that the function read. Arguments and modes are
the key under which a program is filed. Everything else is a `Guard` in the program's one list,
recorded while tracing (capture/scope.py, capture/reports.py) and right after it
(capture/observation.py).
"""

from __future__ import annotations

import enum
import functools
import operator
import weakref
from collections import Counter, deque

import jax

from ..core.aval import Aval, aval_of, is_key
from ..core.bounded_cache import ENTRY, BoundedCache, Clock, Weight, total
from ..draws.event_log import EventLog
from ..state.guards import Guard, ObjectRead
from ..state.merged_guards import MergedGuard
from ..state.objects import PLAIN, exact
from ..state.ownership import HEAP_TYPE, is_of_library, is_value_class
from ..storage.alias import with_history
from ..storage.sole_owner import is_shared, leave_storage
from ..tape import settings, traced_hooks
from ..tape.dual import mark
from ..tape.node import Node
from ..tape.source_location import place_of_caller
from ..tape.tensor import INFERENCE_TENSOR, Tensor, current, grad_of, held
from .graph_input import TensorSource, VaryingNumbers

# inlined: the accessors of tape/tensor.py

# how many programs are kept for one kind of arguments
MOST_KEPT = 32

# ---- the decision


class ProgramCache:
    """The programs of a compiled function, by the key of the arguments they were traced with.

    static: the arguments, by position or name, whose numbers are always part of the key; None for
    all of them.
    """

    def __init__(self, name: str, static: tuple | None = ()):
        self.name, self.static = name, static
        self.clock = Clock("programs")
        # lists of programs, from which expired ones go
        self.programs = BoundedCache(self.clock, _weight_of_programs)
        self.numbers = BoundedCache(self.clock, lambda numbers: ENTRY)
        # the numbers in Python objects that the function changes, by the id of what holds them and
        # their name: those that are inputs, and those that it looks at
        self.rebound, self.looked_at = set(), set()
        # the memory that programs have as one input where several captured tensors share it
        self.joined = weakref.WeakSet()
        # the inputs whose numbers the function looked at while it was traced
        self.inspected: set = set()
        # of the program traced last: the structure, the keys of the arguments, the guards, and what
        # escaped; the program itself may go
        self.last = None
        # what has been drawn for the call that is going on; whether numbers among that are inputs
        self.log, self.has_symbolic_draws, self.has_drawn = EventLog(), True, False

    def find(self, leaves, structure):
        """The program that serves a call, and its captured tensors. If the function must be traced:
        None, and the programs for arguments of this kind. Raises TypeError for an argument that
        cannot be hashed.
        """
        key = self.key(leaves, structure)
        try:
            programs = self.programs.get(key) or self.programs.find(key) or ()
        except TypeError as error:
            error = TypeError(
                f"{self.name}: an argument is neither a tensor nor hashable: {error}. Make a "
                "NumPy array a tensor; pass the tensors of an object in a tuple, a list, a dict or "
                "a dataclass"
            )
            error.is_of_key = True
            raise error from None
        for program in programs:
            tensors = []
            for check in program.trace.checks:
                if not check(leaves, tensors):
                    break
            else:
                if program is not programs[0]:
                    # the one that was not used for the longest time is the last
                    programs[:] = [program, *[other for other in programs if other is not program]]
                return program, tensors
        return None, programs

    def key(self, leaves, structure) -> tuple:
        """The key that selects programs before any guard is checked: the structure of the
        arguments, the modes, and each argument's abstract value or value.
        """
        keys = list(map(key_of, leaves))
        numbers = self.numbers.get(structure) or self.numbers.find(structure)
        for position in () if numbers is None else numbers.varying:
            keys[position] = type(leaves[position])
        return structure, settings.in_key(), *keys

    def reason(self, leaves, structure) -> str:
        """Why no program serves a call, compared with the last used program for arguments of this
        kind, or else with the last traced one.
        """
        if self.last is None:
            return "it was called for the first time"
        before, known, guards, escaped = self.last
        if escaped is not None:
            return ESCAPED.format(escaped)
        programs = self.programs.find(self.key(leaves, structure))
        if programs:
            guards, known = programs[0].trace.guards, ()
        elif structure != before:
            return f"the structure of the arguments was {before}, and is {structure}"
        for position, (old, new) in enumerate(zip(known, _compared(leaves), strict=False)):
            if old != new:
                return f"argument {position} was {_shown(old[0])}, and is {_shown(new[0])}"
        tensors = []
        reasons = []
        for guard in guards:
            if guard.is_performed:  # at the call itself, where all that stands before it holds
                reasons += [] if reasons else filter(None, [guard.reason(leaves, tensors)])
                break  # what follows needs what is drawn
            elif not guard.check(leaves, tensors):
                reasons.append(guard.reason(leaves, tensors))
                if isinstance(guard, TensorGuard):
                    break  # the guards that follow read the tensors that those before have found
        return "; ".join(reasons) or "grad mode or another setting was changed"

    def add(self, program, leaves, structure):
        """File a program under its key. A program that leaves tensors behind is not filed: it runs
        once, since another run would have to create them anew.
        """
        trace = program.trace
        self.last = structure, _compared(leaves), trace.guards, trace.escaped
        key = self.key(leaves, structure)
        if trace.escaped is None:
            programs = self.programs.keep(key, [])
            programs[:] = [program, *programs[: MOST_KEPT - 1]]
            self.clock.count(program.weight())

    def drop_expired(self):
        """Drop the programs that can never serve again."""
        for programs in self.programs.all_values():
            programs[:] = [program for program in programs if not program.trace.has_expired()]

    def give_up(self, numbers: VaryingNumbers) -> bool:
        """Turn inputs that are numbers into constants again, for good: those that the function
        looked at, or all of them if that is not known. Returns whether there were any.
        """
        positions = {getattr(source, "position", None) for source in self.inspected}
        places = {source.key[1] for source in self.inspected if hasattr(source, "key")}
        constants = self.rebound & places if self.inspected else set(self.rebound)
        self.rebound -= constants
        self.looked_at |= constants
        return numbers.give_up(positions if self.inspected else numbers.varying) or bool(constants)

    def give_up_draws(self) -> bool:
        """Turn drawn numbers from inputs into constants that checks compare, for good; returns
        whether they were inputs.
        """
        had, self.has_symbolic_draws = self.has_symbolic_draws and self.has_drawn, False
        return had

    def numbers_in(self, leaves, structure) -> VaryingNumbers:
        """The Python numbers among the arguments; notes which of them differ from earlier calls."""
        numbers = self.numbers.get(structure) or self.numbers.find(structure)
        if numbers is None:
            varying = VaryingNumbers(self.static, leaves, structure)
            numbers = self.numbers.keep(structure, varying)
        numbers.update(leaves)
        return numbers


def _weight_of_programs(programs) -> Weight:
    return total([ENTRY, *[program.weight() for program in programs]])


ESCAPED = (
    "it leaves behind {}, which each run would have to create anew: write into an existing tensor, "
    "as in `state.copy_(new)`, or return it"
)


def key_of(leaf):
    if isinstance(leaf, Tensor):
        if leaf._aval.dual:
            # levels end without a notice to their tensors, and an ended one must not cause a trace
            mark(leaf)
        return leaf._aval if type(leaf) is Tensor else (leaf._aval, type(leaf))
    if isinstance(leaf, jax.Array):
        if is_key(leaf):
            return leaf.shape, leaf.dtype
        # a weak type promotes as a number does, so it is part of the kind
        return aval_of(leaf), leaf.weak_type
    kind = type(leaf)
    return exact(leaf) if kind in PLAIN else (kind, way_of(kind)(leaf))


class Identity:
    """An argument that is compared by identity. It is held weakly if its class allows that, so that
    it and its tensors may be freed.
    """

    __slots__ = ("number", "reference")

    def __init__(self, value):
        self.number = id(value)
        self.reference = weakref.ref(value) if type(value).__weakrefoffset__ else lambda: value

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        if not isinstance(other, Identity) or self.number != other.number:
            return False
        # another object may have the number of one that is gone
        value = self.reference()
        return value is not None and value is other.reference()


def weak_key(value):
    """A weak reference that equals weak references to the same object, and no others."""
    kind = type(value)
    # a weak reference is compared in C, as its object is: by identity, in such a class
    by_identity = kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__
    return weakref.ref(value) if by_identity and kind.__weakrefoffset__ else Identity(value)


@functools.lru_cache(maxsize=4096)
def is_compared(kind: type) -> bool:
    """Whether equal instances of a class are the same to a function. An `__eq__` of a user's class
    may compare less than the function reads, so only classes that compare all attributes count
    (`is_value_class`). False for classes that compare by identity.
    """
    if kind.__hash__ is None:
        # an array is refused; an object is guarded by its attributes or elements
        is_guarded = kind.__flags__ & HEAP_TYPE or kind.__dictoffset__ or kind in (set, deque)
        return not is_guarded
    by_value = is_value_class(kind) or issubclass(kind, enum.Enum | tuple)
    return by_value or (kind.__hash__ is not object.__hash__ and is_of_library(kind.__module__))


@functools.lru_cache(maxsize=4096)
def way_of(kind: type):
    """How an argument of a class becomes a part of a key: as its value, as the object, or as a weak
    reference to it.
    """
    if is_compared(kind):
        return _itself
    # a weak reference is compared in C, as its object is: by identity, in such a class
    by_identity = kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__
    return weakref.ref if by_identity and kind.__weakrefoffset__ else Identity


def _itself(leaf):
    return leaf


def _compared(leaves) -> list:
    """The arguments as `reason` compares and shows them."""
    keys = map(key_of, leaves)
    return [(key, None) if isinstance(key, Aval) else key[::-1] for key in keys]


def _shown(key) -> str:
    """A part of a key as `reason` shows it."""
    if isinstance(key, Identity | weakref.ref):
        value = key.reference() if isinstance(key, Identity) else key()
        return "an object that is gone" if value is None else f"the object {value!r}"
    return str(key)


# ---- guards of captured tensors


class GradSource(TensorSource):
    """The `.grad` of another captured tensor. owner: its number."""

    def __init__(self, owner: int):
        self.owner = owner

    def find(self, leaves, tensors):
        leaf = tensors[self.owner]._leaf
        return None if leaf is None else leaf.grad


class TensorGuard(Guard):
    """The guard on a captured tensor; `check` finds the tensor and appends it to `tensors`.

    `source`: finds the tensor; `aval`, `tracked`, `kind`, `hooks`: its abstract value, its
    requires_grad, whether it is a leaf, and the ids of its hooks; `pinned`: its numbers, if the
    function looked at them; `history`: its node, if a pass in the trace ran through it; `has_grad`:
    whether `.grad` was set, compared only if the function `reads_grad`; `line`: the source line
    that read it first.
    """

    def __init__(self, tensor: Tensor, source: TensorSource):
        self.source, self.line = source, place_of_caller()
        # kept here as well: most are found by handle
        self.reference = getattr(source, "reference", None)
        self.pinned = self.history = None
        self.reads_grad = self.is_joined = False
        self.expect(tensor)

    def expect(self, tensor: Tensor):
        """Require what `tensor` is now."""
        self.aval, self.tracked, self.kind = tensor._aval, tensor._tracked, kind_of_history(tensor)
        # numbers, which are never used again, so that a guard keeps no hook alive
        self.hooks = traced_hooks.hook_ids(tensor)
        self.hook_lists = traced_hooks.weak_hook_lists(tensor)
        self.has_grad = grad_of(tensor) is not None

    def has_expired(self) -> bool:
        """Whether no tensor can pass any more: the tensor is gone, or one of its hooks."""
        is_gone = self.reference is not None and self.reference() is None
        return is_gone or any(not ids.issubset(hooks() or ()) for hooks, ids in self.hook_lists)

    def check(self, leaves, tensors):
        tensor = self.source.find(leaves, tensors)
        if tensor is None:
            return False
        tensors.append(tensor)
        is_same = self.difference(tensor) is None
        if is_same and tensor._alias is not None:
            leave_storage(tensor)  # the views of before may be gone
        return is_same

    def reason(self, leaves, tensors):
        tensor = self.source.find(leaves, tensors)
        why = "it is gone" if tensor is None else self.difference(tensor)
        return f"of the tensor of shape {list(self.aval.shape)} read at {self.line}: {why}"

    def group(self):
        return TensorGuard

    def merged(self, guards):
        return CapturedTensors(guards)

    def difference(self, tensor: Tensor) -> str | None:
        """How a tensor differs from the required one; None if it does not. `CapturedTensors`
        decides the common cases without this.
        """
        # a tensor of joined memory need not have its value
        if (with_history if self.is_joined else current)(tensor)._aval.dual:
            mark(tensor)
        if tensor._aval is not self.aval:
            return f"it was {self.aval}, and is {tensor._aval}"
        if self.pinned is not None and not self.pinned.holds(held(tensor)):
            return "its numbers were looked at, and have changed"
        if tensor._tracked is not self.tracked:
            return f"requires_grad was {self.tracked}, and is {tensor._tracked}"
        if kind_of_history(tensor) is not self.kind:
            return "it was a leaf, and is none" if self.kind is None else "it has another history"
        if self.history is not None and self.history() is not tensor._node:
            return "a pass ran through its history, which is another one now"
        if self.reads_grad and (grad_of(tensor) is not None) is not self.has_grad:
            was, present = ("a tensor", "None") if self.has_grad else ("None", "a tensor")
            return f"its grad was {was}, and is {present}"
        has_no_hooks = tensor._leaf is tensor._node is None
        if (() if has_no_hooks else traced_hooks.hook_ids(tensor)) != self.hooks:
            return "its hooks have changed"
        return None


class CapturedTensors(MergedGuard):
    """The guards on captured tensors, merged. Most tensors are leaves without hooks that share no
    memory: one loop compares these, and their guards check the others.
    """

    def __init__(self, guards):
        super().__init__(guards)
        self.rows = [*map(_row, guards)]

    def check(self, leaves, tensors):
        for guard, reference, position, aval, tracked, has_grad in self.rows:
            tensor = leaves[position] if reference is None else reference()
            if (
                tensor is None
                or tensor._aval is not aval
                or tensor._alias is not None
                or tensor._node is not None
                or tensor._tracked is not tracked
            ):
                if not guard.check(leaves, tensors):
                    return False
                continue
            leaf = tensor._leaf
            if leaf is None:
                is_same = not has_grad
            elif leaf.hooks or leaf.post_hooks or leaf.node() is not None:
                if not guard.check(leaves, tensors):
                    return False
                continue
            else:
                is_same = has_grad is None or (leaf.grad is not None) is has_grad
            if not is_same:
                return False
            tensors.append(tensor)
        return True


def _row(guard: TensorGuard) -> tuple:
    """A guard, a reference to its tensor or its position among the arguments, its abstract value,
    whether it is tracked, and whether it must have a `.grad` (None if that does not matter).
    Without an abstract value the guard itself compares the tensor.
    """
    reference, position = guard.reference, getattr(guard.source, "position", None)
    is_leaf = guard.kind is guard.pinned is guard.history is None and not guard.hooks
    if not is_leaf or guard.aval.dual or (reference is None and position is None):
        return guard, _nothing, None, None, None, None
    has_grad = guard.has_grad if guard.reads_grad else None
    return guard, reference, position, guard.aval, guard.tracked, has_grad


def _nothing():
    return None


def kind_of_history(tensor: Tensor):
    """None for a leaf, `Node` for a tensor with a history, INFERENCE_TENSOR for one of inference
    mode.
    """
    node = tensor._node
    return (
        Node if isinstance(node, Node) else INFERENCE_TENSOR if node is INFERENCE_TENSOR else None
    )


class DistinctTensors(Guard):
    """The captured tensors are different objects, or the same ones, as in the trace. Under `vmap`
    an argument may be captured twice: example by example, and as a whole.

    handles: the ids of tensors that are found by their handles, and so are always the same; others:
    the numbers of the other tensors.
    """

    __slots__ = ("first", "handles", "others")

    def __init__(self, tensors, handles: frozenset[int], others: list[int]):
        self.handles, self.others = handles, others
        self.first = None if len(set(map(id, tensors))) == len(tensors) else self.places(tensors)

    @staticmethod
    def places(tensors) -> list[int]:
        """For each tensor where it is first."""
        numbers = list(map(id, tensors))
        return list(map(numbers.index, numbers))

    def check(self, leaves, tensors):
        # traced as two, a write to one does not reach the other
        if not self.others and self.first is None:
            return True
        if self.first is not None:
            return self.places(tensors) == self.first
        ids = {id(tensors[number]) for number in self.others}
        return len(ids) == len(self.others) and self.handles.isdisjoint(ids)

    def reason(self, leaves, tensors):
        return "two tensors are the same one now"


class SeparateMemory(Guard):
    """The captured tensors that are written to share no memory with other captured tensors, and
    those in `alone` share it with no tensor at all.
    """

    __slots__ = ("alone", "written")

    def __init__(self, written: list[int], alone: list[int]):
        self.written, self.alone = written, alone

    def check(self, leaves, tensors):
        return not any(map(_alias, tensors)) or self.is_separate(tensors)

    def is_separate(self, tensors) -> bool:
        aliases = [tensor._alias for tensor in tensors if tensor._alias is not None]
        counts = Counter(id(alias.storage) for alias in aliases)
        written = [tensors[number]._alias for number in self.written]
        if any(alias is not None and counts[id(alias.storage)] > 1 for alias in written):
            return False
        return not any(is_shared(tensors[number]) for number in self.alone)

    def reason(self, leaves, tensors):
        return "a tensor that it changes shares its memory now"


_alias = operator.attrgetter("_alias")


class RepeatedArgument(Guard):
    """One tensor is given at several positions of the arguments."""

    __slots__ = ("number", "positions")

    def __init__(self, number: int, positions: list[int]):
        self.number, self.positions = number, positions

    def check(self, leaves, tensors):
        return all(leaves[position] is tensors[self.number] for position in self.positions)

    def reason(self, leaves, tensors):
        return f"the arguments {self.positions} are not the same tensor any more"


class ReachedArgument(Guard):
    """An argument that the function may also have read by itself is the same tensor."""

    __slots__ = ("number", "reference")

    def __init__(self, number: int, tensor: Tensor):
        self.number, self.reference = number, weakref.ref(tensor)

    def check(self, leaves, tensors):
        return self.reference() is tensors[self.number]

    def reason(self, leaves, tensors):
        return "an argument that the function also reaches by itself is another tensor now"


class NodeHooks(Guard):
    """The hooks of a node outside of the function that a pass inside it can reach."""

    __slots__ = ("ids", "reference")

    def __init__(self, reference, ids):
        self.reference, self.ids = reference, ids

    def check(self, leaves, tensors):
        node = self.reference()
        # no pass reaches a node that is gone
        return node is None or traced_hooks.node_hook_ids(node) == self.ids

    def reason(self, leaves, tensors):
        return f"the hooks of {self.reference().name()}, from outside, have changed"


def read_guard(exchanged: dict[int, int], owner, read, value) -> Guard:
    """The guard that `read` gives a value for what a weak reference leads to.

    exchanged: by id the numbers of the captured tensors in whose place a call may have others.
    """
    if (number := exchanged.get(id(owner()))) is not None:
        return TensorRead(number, read, value)
    return getattr(type(owner()), "_read_guard", ObjectRead)(owner, read, value)


class TensorRead(Guard):
    """The result of `read` for the captured tensor of a number."""

    __slots__ = ("number", "read", "value")

    def __init__(self, number: int, read, value):
        self.number, self.read, self.value = number, read, value

    def check(self, leaves, tensors):
        return self.read(tensors[self.number]) == self.value

    def reason(self, leaves, tensors):
        name = self.read.__name__.strip("_").removesuffix("_of").replace("_", " ")
        value = self.read(tensors[self.number])
        return f"the {name} of a tensor was {self.value}, and is {value}"
