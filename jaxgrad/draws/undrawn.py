"""Functions that run uncompiled because they draw what no program can draw."""

from __future__ import annotations

import functools

from ..compiled.fallback import Fallback
from ..tape import pytree
from .python_runs import run_with_log


class Undrawn(Fallback):
    """The arguments for which a compiled function runs uncompiled because of its draws."""

    def leave_all(self, cache, leaves, structure, why: str):
        """Leave the function uncompiled from the next call on, with a warning that says why."""
        key = cache.key(leaves, structure)
        # which would draw in vain
        cache.programs.keep(key, [])[:] = []
        self.leave(key, why)

    def run(self, compiled, args, kwargs):
        """Call the function uncompiled, with what has been drawn for this call."""
        log = compiled.cache.log
        if not log.entries:
            return compiled.uncompiled(args, kwargs)
        roots = [("an argument", leaf) for leaf in pytree.flatten((args, kwargs))[0]]
        roots.append(("function", compiled.function))
        call = functools.partial(compiled.uncompiled, args, kwargs)
        try:
            return run_with_log(compiled.function, roots, log, call)
        finally:
            log.clear()


def why_undrawn(reads, why: str) -> str:
    """Why no program can repeat the draws of a function, with the line if it is known. reads: the
    reads that its code names.
    """
    places = [read.place for read in reads.named]
    return f"{why} (at {places[0]})" if places else why
