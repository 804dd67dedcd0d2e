"""Who looks on while gradients are computed: anomaly mode, and profiles.

A watch sees every kernel that runs, every node that is made and every node that a backward pass
runs. It is in place while somebody needs it, in whatever thread; then it asks, each time, whether
it is wanted here and now.
"""

from __future__ import annotations

import functools
import threading

from ...core import executor
from ...tape import node_annotations

_lock = threading.Lock()
started: tuple[Watch, ...] = ()  # the first stands nearest to what is watched


class Watch:
    """A way to look on. Subclasses say what for; this one looks away."""

    nearest = False  # whether it stands inside of the others, and does not see what they do

    def __init__(self):
        self.count = 0

    def start(self):
        """Be in place until `stop` has been called as often."""
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
                started = tuple(each for each in started if each is not self)

    def wanted(self) -> bool:
        """Whether to look, here and now."""
        raise NotImplementedError(f"{type(self).__name__}.wanted")

    def kernel(self, program, kernel, *arrays):
        """Run a kernel."""
        return kernel(*arrays)

    def node(self, node):
        """A node has been made."""

    def begin(self, run):
        """A backward pass begins."""

    def visit(self, run, proceed, node, gradients):
        """Run a node of a backward pass by `proceed(node, gradients)`."""
        proceed(node, gradients)

    def results(self, run, node, results):
        """A node has given its gradients."""

    def sum(self, node, first, second, total):
        """Two gradients that go to a node have been added."""


def watch(run) -> tuple[Watch, ...]:
    """Those who look on at a backward pass that begins here and now."""
    wanted = tuple([each for each in started if each.wanted()])
    for each in wanted:
        each.begin(run)
    return wanted


def visit(run):
    """How a pass visits its nodes while somebody looks on."""
    proceed = run.visit
    for each in run.watchers:
        proceed = functools.partial(each.visit, run, proceed)
    return proceed


def results(run, node, found):
    """Show what a node gave."""
    for each in run.watchers:
        each.results(run, node, found)


def summed(run, node, first, second, total):
    """Show a sum of two gradients."""
    for each in run.watchers:
        each.sum(node, first, second, total)
