"""Observers of the computation: anomaly mode and profiles.

A `Watch` sees every kernel that runs, every new node and every node that a backward pass runs. It
is installed for all threads while any thread needs it; `wanted` says whether the current context
needs it.
"""

from __future__ import annotations

import functools
import threading

from ...core import executor
from ...tape import node_annotations

_lock = threading.Lock()
started: tuple[Watch, ...] = ()  # the first is innermost


class Watch:
    """An observer. Subclasses override what they need; these methods do nothing."""

    nearest = False  # whether it is innermost, so that it does not see what other observers do

    def __init__(self):
        self.count = 0

    def start(self):
        """Install it, until `stop` was called as often as `start`."""
        global started
        with _lock:
            self.count += 1
            if self.count == 1:
                executor.observe(self.kernel, self.nearest)
                node_annotations.observe(self.node)
                started = (self, *started) if self.nearest else (*started, self)

    def stop(self):
        global started
        with _lock:
            self.count -= 1
            if self.count == 0:
                executor.unobserve(self.kernel)
                node_annotations.unobserve(self.node)
                started = tuple(watcher for watcher in started if watcher is not self)

    def wanted(self) -> bool:
        """Whether the current context is observed."""
        raise NotImplementedError(f"{type(self).__name__}.wanted")

    def kernel(self, program, kernel, *arrays):
        """Run a kernel."""
        return kernel(*arrays)

    def node(self, node):
        """A node was recorded."""

    def begin(self, run):
        """A backward pass begins."""

    def visit(self, run, proceed, node, gradients):
        """Run a node of a backward pass by `proceed(node, gradients)`."""
        proceed(node, gradients)

    def results(self, run, node, results):
        """A node computed its gradients."""

    def sum(self, node, first, second, total):
        """Two gradients for a node were added."""


def watch(run) -> tuple[Watch, ...]:
    """The observers of a backward pass that begins in the current context."""
    wanted = tuple([watcher for watcher in started if watcher.wanted()])
    for watcher in wanted:
        watcher.begin(run)
    return wanted


def visit(run):
    """The `visit` of a pass, wrapped in its observers."""
    proceed = run.visit
    for watcher in run.watchers:
        proceed = functools.partial(watcher.visit, run, proceed)
    return proceed


def results(run, node, results):
    """Show observers the gradients that a node computed."""
    for watcher in run.watchers:
        watcher.results(run, node, results)


def summed(run, node, first, second, total):
    """Show observers a sum of two gradients."""
    for watcher in run.watchers:
        watcher.sum(node, first, second, total)
