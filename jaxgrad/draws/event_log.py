"""The events that have been drawn for one call of a compiled function."""

from __future__ import annotations

import copy

import numpy as np


class Unrepeated(RuntimeError):
    """Raised if a run of a call draws in another order than the run before it."""

    def __init__(self, name: str, known: str):
        super().__init__(
            f"a function compiled by jaxgrad.jit comes to {name} where it came to {known} before: "
            "it depends on what no guard compares. Pass the numbers in as arguments"
        )


class EventLog:
    """The events of one call, up to the present one.

    `entries`: of each event its key, and its result or error; `position`: how many events the
    current run has had.
    """

    def __init__(self):
        self.entries: list[tuple] = []
        self.position = 0

    def perform(self, key, run):
        """The result of an event, from the first run or from the log. Raises Unrepeated if a run
        comes to another event than the run before it.
        """
        if self.position == len(self.entries):
            self.entries.append((key, *outcome_of(run)))
        known, value, error = self.entries[self.position]
        if known != key:
            raise Unrepeated(key[1], known[1])
        self.position += 1
        if error is not None:
            raise error
        # the run may write to an array or a list that it has drawn
        return copy.copy(value) if type(value) in (np.ndarray, list, bytearray) else value

    def clear(self):
        if self.entries:
            self.entries = []
        self.position = 0


def outcome_of(run) -> tuple:
    """The result and the error of a function: one of them is None."""
    try:
        return run(), None
    except Exception as error:
        return None, error
