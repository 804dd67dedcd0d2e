"""Programs over random worlds of Python state do the same compiled and uncompiled, call after call:
results, gradients, all state, and which names reach the same object (tests/capture/worlds).

`python tests/capture/worlds/run.py 0 20000` compares more of them.
"""

import pytest

from jaxgrad.capture import observation, places, side_effects
from jaxgrad.capture.guards import DistinctTensors
from jaxgrad.state import guards, merged_guards

from .worlds.check import Differs, check, seed_result
from .worlds.writer import write

PROGRAMS, PARTS = 500, 20


@pytest.mark.unverified
@pytest.mark.parametrize("part", range(PARTS))
def test_generated_programs(part):
    for seed in range(part, PROGRAMS, PARTS):
        seed_result(seed)


# ---- a mechanism that is broken on purpose is noticed


def holds(*_):
    return True


def without_absence(monkeypatch):
    begin = guards.StateGuard.__init__

    def without(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        self.absent = frozenset()

    monkeypatch.setattr(guards.StateGuard, "__init__", without)


def without_guards_of_values(monkeypatch):
    monkeypatch.setattr(guards.StateGuard, "check", holds)
    monkeypatch.setattr(merged_guards.Bindings, "check", holds)


def without_what_existed(monkeypatch):
    monkeypatch.setattr(observation.Observation, "has_existed", lambda *_: False)


def without_effects(monkeypatch):
    def apply(self, run, number):
        run.applied = number

    monkeypatch.setattr(side_effects.StateEffect, "apply", apply)


def without_reads(monkeypatch):
    monkeypatch.setattr(observation.Observation, "record_read", lambda *_: None)


def without_identity(monkeypatch):
    for kind in (places.PinnedTensorGuard, places.SameTensorGuard, DistinctTensors):
        monkeypatch.setattr(kind, "check", holds)


def without_code_and_classes(monkeypatch):
    monkeypatch.setattr(guards.AttributeValue, "check", holds)
    monkeypatch.setattr(merged_guards.Reads, "check", holds)


BROKEN = {
    without_absence: 80,
    without_guards_of_values: 40,
    without_what_existed: 40,
    without_effects: 10,
    without_reads: 80,
    without_identity: 300,
    without_code_and_classes: 300,
}


@pytest.mark.unverified
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(broken, marks=[pytest.mark.slow] if limit > 50 else [])
        for broken, limit in BROKEN.items()
    ],
    ids=lambda broken: broken.__name__,
)
def test_a_broken_mechanism_is_noticed(broken, monkeypatch):
    broken(monkeypatch)
    assert any(map(differs, range(BROKEN[broken])))


def differs(seed):
    """Whether the compiled function does something else, or fails."""
    try:
        check(write(seed))
    except Differs:
        return True
    return False


def test_a_program_that_differs_is_made_small(monkeypatch):
    without_effects(monkeypatch)
    seed = next(filter(differs, range(100)))
    with pytest.raises(AssertionError, match=f"seed {seed}: ") as raised:
        seed_result(seed)
    assert len(str(raised.value).splitlines()) < len(str(write(seed)).splitlines())
