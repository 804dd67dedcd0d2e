"""The error that ends a process, as torch.distributed.elastic.multiprocessing.errors."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from .....names.not_provided import names_of


def record(fn: Callable, error_handler=None) -> Callable:
    """A function whose error is written into the file that the environment variable
    TORCHELASTIC_ERROR_FILE names, if it is set, and raised; it decorates the main function.

    The file is JSON with the text, the traceback and the time of the error. `sys.exit(0)` ends the
    function, and not the program. error_handler: an object whose methods `initialize()` and
    `record_exception(error)` are called in place of this.

    >>> from jaxgrad.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main():
    ...     return 3
    >>> main()
    3
    """
    handler = error_handler or _ErrorFile()

    @functools.wraps(fn)
    def call(*args, **kwargs):
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as ended:
            if ended.code == 0:
                return None
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return call


class _ErrorFile:
    """Writes an error into the file of the environment."""

    def initialize(self):
        """Do nothing: the file is written at once."""

    def record_exception(self, error: Exception):
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if path is None:
            return
        lines = traceback.format_exception(error)
        more = {"py_callstack": "".join(lines), "timestamp": str(int(time.time()))}
        message = {"message": f"{type(error).__name__}: {error}", "extraInfo": more}
        Path(path).write_text(json.dumps({"message": message}))


__getattr__, __dir__ = names_of(__name__)
