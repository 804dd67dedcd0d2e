"""What a function reads and changes, with leaves that are no tensors: no JAX, no compilation.

The oracle is what Python does: a guard must hold as long as the function would read the same, and
not once it would read something else; changes, repeated on the state of before, give the state that
the function has left.
"""

import collections
import functools
import types

import pytest

from jaxgrad.state.code import python_function
from jaxgrad.state.holder import LeafHolder, Place
from jaxgrad.state.merged_guards import merged_checks
from jaxgrad.state.reads import ObservedClasses, ReadGuards, Reads
from jaxgrad.state.snapshot import Leaves


class Leaf:
    """A leaf of the tests: its slot is no state, its attributes and its hooks are."""

    __slots__ = ("__dict__", "__weakref__", "hooks", "value")

    def __init__(self, value, hooks=()):
        self.value, self.hooks = value, list(hooks)


class AttributesOfLeaf(LeafHolder):
    leaf = Leaf


class LeavesOfTests(Leaves):
    kind, holder = Leaf, AttributesOfLeaf

    def functions(self, leaf):
        return leaf.hooks


class Run:
    """A run of a function, observed; then everything is put back."""

    def __init__(self, function):
        self.current = None
        classes = ObservedClasses(lambda: self.current)
        roots = [("function", function)]
        self.reads = Reads(roots, python_function(function), classes, LeavesOfTests())
        self.reads.open()
        self.current = self.reads
        try:
            self.result = function()
        finally:
            self.current = None
            self.changes = self.reads.changes()
            self.reads.restore()
            self.reads.close()
        self.guards = ReadGuards(self.reads).all()
        self.checks = merged_checks(self.guards)

    def holds(self) -> bool:
        """Whether the guards hold, by themselves and merged."""
        single = all(guard.check() for guard in self.guards)
        assert single == all(check() for check in self.checks)
        return single

    def repeat(self):
        """Repeat the changes."""
        for change in self.changes:
            change.holder.put(change.holder.reference(), change.bound, change.removed)


class Plain:
    kind = "class"


class Slots:
    __slots__ = ("a", "b")


class Computed:
    @property
    def double(self):
        return 2 * self.number

    def __getattr__(self, name):
        return f"no {name}"


settings = {"rate": 1.0}
number = 1


def change_global():
    globals()["number"] = 2


def world():
    """Objects of many kinds."""
    plain, slots, computed = Plain(), Slots(), Computed()
    plain.a, slots.a, computed.number = 1, 1, 1
    plain.inner = Plain()
    plain.inner.a = 1
    leaf = Leaf(1)
    leaf.mark = 0
    return types.SimpleNamespace(
        plain=plain,
        slots=slots,
        computed=computed,
        items={"a": 1, "b": 2},
        ordered=collections.OrderedDict(a=1, b=2),
        listed=[1, 2],
        queue=collections.deque([1, 2]),
        chosen={1, 2},
        leaf=leaf,
    )


# what a function reads of the world `w`, and what a caller changes of it
READS_AND_CHANGES = {
    "attribute": (lambda w: w.plain.a, lambda w: setattr(w.plain, "a", 2)),
    "class attribute": (lambda w: w.plain.kind, lambda w: w.plain.__dict__.update(kind="own")),
    "attribute within": (lambda w: w.plain.inner.a, lambda w: setattr(w.plain.inner, "a", 2)),
    "object within": (lambda w: w.plain.inner.a, lambda w: setattr(w.plain, "inner", w.plain)),
    "class": (lambda w: w.plain.a, lambda w: setattr(w.plain, "__class__", Computed)),
    "slot": (lambda w: w.slots.a, lambda w: setattr(w.slots, "a", 2)),
    "empty slot": (lambda w: hasattr(w.slots, "b"), lambda w: setattr(w.slots, "b", 2)),
    "property": (lambda w: w.computed.double, lambda w: setattr(w.computed, "number", 2)),
    "getattr": (lambda w: w.computed.other, lambda w: setattr(w.computed, "other", 2)),
    "absent": (lambda w: getattr(w.plain, "b", 0), lambda w: setattr(w.plain, "b", 2)),
    "removed": (lambda w: w.plain.a, lambda w: delattr(w.plain, "a")),
    "item": (lambda w: w.items["a"], lambda w: w.items.update(a=2)),
    "absent item": (lambda w: w.items.get("c", 0), lambda w: w.items.update(c=2)),
    "item of all": (lambda w: sum(w.items.values()), lambda w: w.items.update(c=2)),
    "order": (lambda w: [*w.ordered], lambda w: w.ordered.move_to_end("a")),
    "element": (lambda w: w.listed[1], lambda w: w.listed.insert(0, 0)),
    "length": (lambda w: len(w.listed), lambda w: w.listed.append(3)),
    "deque": (lambda w: w.queue[0], lambda w: w.queue.rotate()),
    "set": (lambda w: 3 in w.chosen, lambda w: w.chosen.add(3)),
    "attribute of a leaf": (
        lambda w: w.leaf.mark,
        lambda w: vars(w.leaf).update(mark=1),
    ),
}


@pytest.mark.parametrize("name", READS_AND_CHANGES)
def test_a_guard_holds_until_the_function_would_read_something_else(name):
    read, change = READS_AND_CHANGES[name]
    w = world()
    run = Run(lambda: read(w))
    before = run.result
    assert run.holds() and read(w) == before
    change(w)
    assert not run.holds()


# what a caller changes that the function does not read
@pytest.mark.parametrize(
    ("read", "change"),
    [
        (lambda w: w.plain.a, lambda w: setattr(w.plain, "other", 2)),
        (lambda w: w.plain.a, lambda w: setattr(w.plain.inner, "a", 2)),
        (lambda w: w.items["a"], lambda w: w.items.update(b=5)),
        (lambda w: w.plain.a, lambda w: w.listed.append(3)),
        (lambda w: w.computed.double, lambda w: setattr(w.computed, "other", 2)),
        (lambda w: w.plain.a, lambda w: setattr(w.leaf, "value", 3)),
    ],
)
def test_what_the_function_does_not_read_has_no_guard(read, change):
    w = world()
    run = Run(lambda: read(w))
    change(w)
    assert run.holds()


def state_of(w):
    """All that the world holds."""
    return {
        "plain": dict(vars(w.plain)),
        "slots": [getattr(w.slots, name, None) for name in ("a", "b")],
        "items": [*w.items.items()],
        "ordered": [*w.ordered.items()],
        "listed": [*w.listed],
        "queue": [*w.queue],
        "chosen": set(w.chosen),
        "leaf": dict(vars(w.leaf)),
    }


WRITES = [
    lambda w: setattr(w.plain, "a", 5),
    lambda w: setattr(w.plain, "new", 5),
    lambda w: delattr(w.plain, "a"),
    lambda w: setattr(w.slots, "b", 5),
    lambda w: delattr(w.slots, "a"),
    lambda w: w.items.update(c=5),
    lambda w: w.items.pop("a"),
    lambda w: w.items.clear(),
    lambda w: w.ordered.move_to_end("a"),
    lambda w: w.listed.append(5),
    lambda w: w.listed.insert(0, 5),
    lambda w: w.listed.clear(),
    lambda w: w.queue.appendleft(5),
    lambda w: w.chosen.symmetric_difference_update({1, 5}),
]


@pytest.mark.parametrize("write", WRITES)
def test_changes_are_put_back_and_can_be_repeated(write):
    w = world()
    before = state_of(w)
    run = Run(lambda: write(w))
    assert state_of(w) == before
    run.repeat()
    after, expected = state_of(w), world()
    write(expected)
    wanted = state_of(expected)
    wanted["plain"]["inner"] = w.plain.inner  # each world has its own
    assert after == wanted


def test_a_write_counts_as_no_read():
    w = world()
    run = Run(lambda: setattr(w.plain, "a", 5))
    w.plain.a = 9
    assert run.holds()


def test_globals_closures_and_defaults_are_places():
    counter = 1

    def read(scale=settings):
        return counter, number, scale["rate"]

    run = Run(read)
    assert run.holds()
    counter = 2
    assert not run.holds()
    counter = 1
    assert run.holds()
    settings["rate"] = 2.0
    assert not run.holds()
    settings["rate"] = 1.0
    read.__defaults__ = ({"rate": 3.0},)
    assert not run.holds()


def test_code_that_changes_is_seen():
    def inner():
        return 1

    def other():
        return 2

    run = Run(lambda: inner())
    assert run.holds()
    inner.__code__ = other.__code__
    assert not run.holds()


def test_a_global_that_a_function_sets_is_put_back_and_repeated():
    run = Run(change_global)
    assert number == 1
    run.repeat()
    assert number == 2
    globals()["number"] = 1


def test_hooks_of_leaves_are_entered():
    limits = {"most": 1}
    leaf = Leaf(1, hooks=[lambda: limits["most"]])
    run = Run(lambda: leaf.hooks[0]())
    limits["most"] = 2
    assert not run.holds()


def test_a_place_finds_what_its_name_is_bound_to_now():
    w = world()
    run = Run(lambda: w.plain.a)
    holder = next(h for h in run.reads.holders if h.reference() is w.plain)
    place = Place(holder, "a")
    w.plain.a = 7
    assert place.value() == 7
    place.put(8)
    assert w.plain.a == 8


def test_classes_are_as_they_were_after_a_run():
    names = {name: dict(vars(kind)) for name, kind in (("p", Plain), ("c", Computed))}
    w = world()
    Run(lambda: (w.plain.a, w.computed.double))
    assert {name: dict(vars(kind)) for name, kind in (("p", Plain), ("c", Computed))} == names


def test_an_error_puts_everything_back():
    w = world()

    def fail():
        w.plain.a = 5
        raise KeyError("a")

    with pytest.raises(KeyError):
        Run(fail)
    assert w.plain.a == 1


def test_a_cached_property_is_an_absence_and_a_change():
    class Cached:
        @functools.cached_property
        def value(self):
            return 3

    cached = Cached()
    run = Run(lambda: cached.value)
    assert run.result == 3 and "value" not in vars(cached)
    assert run.holds()
    vars(cached)["value"] = 4
    assert not run.holds()
