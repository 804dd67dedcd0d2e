"""The log of a run: a line of JSON for each record, and for each summary the first time."""

from __future__ import annotations

import json
import os

from .summary import summarize


class Log:
    """Writes the log of a run.

    path: the file. A process that is forked from this one writes nothing.
    """

    def __init__(self, path: str):
        self.file = open(path, "w")  # noqa: SIM115  # it is open until the process ends
        self.process, self.written, self.count = os.getpid(), set(), 0

    def is_of_this_process(self) -> bool:
        return os.getpid() == self.process

    def write(self, kind: str, **fields) -> int:
        """Write a record, and return its number."""
        self.file.write(json.dumps({"kind": kind, **fields}) + "\n")
        self.count += 1
        return self.count - 1

    def digest(self, tensor) -> str | None:
        """The hash of a tensor, whose summary is written once; None where it has no numbers, as in
        `vmap` or on the device meta.
        """
        try:
            summary = summarize(tensor)
        except Exception:
            return None
        digest = summary.pop("digest")
        if digest not in self.written:
            self.written.add(digest)
            self.file.write(json.dumps({"digest": digest, **summary}) + "\n")
        return digest

    def digests(self, tensors) -> list:
        return [self.digest(tensor) for tensor in tensors]

    def close(self):
        self.file.close()
