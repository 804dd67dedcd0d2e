"""What the parts of a report share: their time, and the file of their results."""

import json
import pathlib
import time


class Part:
    """A part of a report. result: what it finds, a dict for JSON."""

    def __init__(self, name: str, seconds: str, file: str):
        self.name, self.file, self.result = name, pathlib.Path(file), {}
        self.end = time.monotonic() + float(seconds)

    def is_over(self) -> bool:
        return time.monotonic() > self.end

    def write(self):
        """Keep what there is: a later call may end the process."""
        self.file.write_text(json.dumps(self.result))
