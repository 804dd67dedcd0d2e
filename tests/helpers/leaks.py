"""Finds nodes of graphs that are still alive after a test."""

import contextlib
import gc
import traceback
from pathlib import Path

from jaxgrad.autograd._engine import graph_task
from jaxgrad.tape import node

TESTS = str(Path(__file__).parents[1])


@contextlib.contextmanager
def no_graph_is_left(monkeypatch):
    """Raises AssertionError where a node that was made within is alive at the end.

    A graph dies with its last handle: without a collection, but where a pass with `create_graph`
    ran, which may tie a leaf to its own gradient.
    """
    recorded = []
    begin = graph_task.Pass.__init__

    def noting(run, retain_graph, create_graph, *args, **kwargs):
        recorded.append(create_graph)
        begin(run, retain_graph, create_graph, *args, **kwargs)

    monkeypatch.setattr(graph_task.Pass, "__init__", noting)
    gc.freeze()  # so that earlier objects are not searched; conftest.py unfreezes them at times
    yield
    if alive():
        empty_frames()
    left = alive()
    if left and any(recorded):
        gc.collect()
        left = alive()
    assert not left, f"{len(left)} nodes are left: {sorted(set(left))[:8]}"


def alive() -> list[str]:
    """The nodes made since the last `gc.freeze()`, also those in garbage cycles."""
    return [repr(entry) for entry in gc.get_objects() if issubclass(type(entry), node.Node)]


def empty_frames():
    """Clear the frames of tests that an exception passed through: they may hold nodes."""
    for error in [error for error in gc.get_objects() if issubclass(type(error), BaseException)]:
        for frame in [frame for frame, _ in traceback.walk_tb(error.__traceback__)]:
            if frame.f_code.co_filename.startswith(TESTS):
                frame.clear()
                error.__traceback__ = None
