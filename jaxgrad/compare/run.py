"""The run of a script as its log tells it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

COMPARED = {
    *("call", "module", "batch", "compiled", "loss", "result", "options"),
    *("initial parameter", "parameter gradient", "updated parameter"),
}


@dataclass
class Record:
    """A line of the log that tells of a call, a parameter or a value."""

    number: int
    kind: str
    name: str
    place: tuple | None
    step: int
    inputs: list
    outputs: list
    shapes: list
    fields: dict

    @property
    def line(self):
        """The file and line."""
        return self.place and self.place[:2]


@dataclass
class Run:
    """What a library did with a script.

    library: its name. records: those that are compared. gradients: of results, as records whose
    field `of` is the number of the result's record. summaries: by hash. losses: by training step.
    start, end: the first and last records of the log. ticks: the times. message: the last line that
    the script wrote to the standard error.
    """

    library: str
    records: list = field(default_factory=list)
    gradients: list = field(default_factory=list)
    summaries: dict = field(default_factory=dict)
    losses: list = field(default_factory=list)
    results: list = field(default_factory=list)
    ticks: list = field(default_factory=list)
    start: dict = field(default_factory=dict)
    end: dict = field(default_factory=dict)
    loaded: str | None = None
    message: str = ""

    def curve(self) -> list[float]:
        """The losses: of backward passes, or else the numbers that compiled functions returned."""
        return self.losses or self.results


def read(library: str, lines: Iterable[str]) -> Run:
    """The run that the lines of a log tell of."""
    run, number = Run(library), 0
    for line in lines:
        fields = json.loads(line)
        if "kind" in fields:
            note(run, number, fields)
            number += 1
        else:
            run.summaries[fields.pop("digest")] = fields
    return run


def note(run: Run, number: int, fields: dict):
    kind = fields.pop("kind")
    if kind == "loss":
        run.losses.append(fields["value"])
    elif kind == "result":
        run.results.append(fields["value"])
    if kind in COMPARED or kind == "gradient":
        place = fields.pop("place", None)
        record = Record(
            number,
            kind,
            fields.pop("name", ""),
            tuple(place) if place else None,
            fields.pop("step", 0),
            fields.pop("inputs", []),
            fields.pop("outputs", []),
            fields.pop("shapes", []),
            fields,
        )
        (run.gradients if kind == "gradient" else run.records).append(record)
    elif kind == "tick":
        run.ticks.append(fields)
    elif kind == "loaded":
        run.loaded = fields["name"]
    elif kind in ("start", "end"):
        setattr(run, kind, fields)


def distance(first: dict | None, second: dict | None) -> float:
    """The norm of the difference of two tensors, estimated from their summaries.

    Infinite for other shapes, for infinities or NaN at other places; zero where a summary is
    missing.
    """
    if first is None or second is None or first is second:
        return 0.0
    if first["shape"] != second["shape"] or first["others"] != second["others"]:
        return math.inf
    sketches = np.subtract(first["sketch"], second["sketch"])
    return float(np.sqrt((sketches * sketches).sum()))
