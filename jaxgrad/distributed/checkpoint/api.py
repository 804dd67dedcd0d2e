"""The error of saving and loading checkpoints."""

from __future__ import annotations

from ...names.missing import missing_in


class CheckpointException(RuntimeError):
    """A checkpoint could not be saved or loaded.

    msg: what was tried; failures: for each rank that failed the error, and its stack or None.
    PyTorch's is a BaseException, which `except Exception` does not catch.

    >>> from jaxgrad.distributed.checkpoint import CheckpointException
    >>> print(CheckpointException("load of a", {0: (ValueError("no checkpoint"), None)}))
    load of a: ValueError: no checkpoint
    """

    def __init__(self, msg: str, failures: dict):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict:
        """The errors by rank."""
        return self._failures

    def __str__(self):
        shown = [
            f"{f'rank {rank}: ' if len(self._failures) > 1 or rank else ''}{_shown(error)}"
            for rank, (error, _) in sorted(self._failures.items())
        ]
        return f"{self.args[0]}: " + "; ".join(shown)


def _shown(error) -> str:
    return f"{type(error).__name__}: {error}"


__getattr__ = missing_in(__name__)
