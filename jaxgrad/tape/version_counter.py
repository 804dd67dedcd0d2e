"""Version counters: how often a tensor's memory was written to, and PyTorch's check of it.

A node saves arrays, which never change, so gradients need no check. Code that relies on PyTorch's
error can turn the check on (`strict_versions`): then nodes note the versions of the tensors that
they save, and compare them when they run.
"""

from __future__ import annotations

import contextvars

from .node import FREED, Node, ProgramNode
from .source_location import place_of_caller

# inlined: the accessors of tape/tensor.py

# whether nodes note versions and check them
strict = contextvars.ContextVar("jaxgrad.strict_versions", default=False)

# the innermost `allow_mutation_on_saved_tensors`
mutation = contextvars.ContextVar("jaxgrad.allow_mutation", default=None)

# False until one of the two is first used; writes check it at every call
watching = False


def watch():
    """Let writes look for the versions that nodes note from now on."""
    global watching
    watching = True


class Counter:
    """The version of tensors that share memory.

    places: the source lines of the writes since a node first noted the version; None before that.
    """

    __slots__ = ("places", "value")

    def __init__(self):
        self.value, self.places = 0, None

    def count(self):
        """Count a write."""
        self.value += 1
        if self.places is not None:
            self.places.append(place_of_caller())


def counter_of(tensor) -> Counter:
    tensor._counter = tensor._counter or Counter()
    return tensor._counter


class Checks:
    """The versions of the tensors that a node saved, and their check."""

    __slots__ = ("inside", "noted", "place")

    def __init__(self):
        self.inside, self.place = mutation.get(), place_of_caller()
        self.noted = []

    def note(self, tensor, source, output_nr, position=None):
        """Note a saved tensor; position: among the inputs, None for a result."""
        counter = counter_of(tensor)
        counter.places = [] if counter.places is None else counter.places
        what = (tensor._aval, source, output_nr)
        self.noted.append((counter, counter.value, len(counter.places), what, position))

    def check(self, name: str):
        """Raise RuntimeError for a version that has changed, and AssertionError outside of the
        `allow_mutation_on_saved_tensors` in which it was noted. name: the node's name.
        """
        if self.inside is not None and mutation.get() is not self.inside:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                f"which the graph was originally recorded: {name}, at {self.place}"
            )
        # `allow_mutation_on_saved_tensors` permits what strict versions refuse
        if self.inside is not None or not strict.get():
            return
        for counter, version, write, what, _ in self.noted:
            if counter.value != version:
                raise RuntimeError(self.refusal(name, counter, version, write, *what))

    def refusal(self, name, counter, version, write, aval, source, output_nr):
        origin = "" if source is None else f", which is output {output_nr} of {source},"
        return (
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [torch.{aval.dtype.scalar_type}Tensor {list(aval.shape)}]{origin} is at "
            f"version {counter.value}; expected version {version} instead. {name} saved it "
            f"at {self.place}; it was written to at {counter.places[write]}. "
            "Clone it before one of the two, or leave strict_versions: then the gradient is that "
            "of the value that was saved"
        )


def source_of(tensor) -> str | None:
    """The name of the node that made a tensor; None for a leaf."""
    return tensor._node.name() if isinstance(tensor._node, Node) else None


class CheckedNode(ProgramNode):
    """A node that checks the versions of its saved tensors when it runs."""

    __slots__ = ("checks", "kept")
    _residuals = ("kept",)

    def __init__(self, reverse, saved, edges, output_count, leaves):
        self.checks = Checks()
        super().__init__(reverse, saved, edges, output_count)
        inputs, _ = reverse.checked
        for position in inputs:
            leaf = leaves[position]
            if hasattr(leaf, "_counter"):
                self.checks.note(leaf, source_of(leaf), leaf._nr, position)

    def note_results(self, tensors):
        _, outputs = self.reverse.checked
        for position in outputs:
            self.checks.note(tensors[position], self.name(), position)

    def written(self, value, target):
        """Note that its result was written into its first input, whose version rises by that."""
        results = [
            what for counter, _, _, what, _ in self.checks.noted if counter is value._counter
        ]
        self.checks.noted = [
            entry for entry in self.checks.noted if entry[0] is not value._counter and entry[4] != 0
        ]
        for _, source, output_nr in results:
            self.checks.note(target, source, output_nr)

    @property
    def saved(self):
        if self.kept is not FREED and (len(self.kept) or self.checks.noted):
            self.checks.check(self.name())
        return self.kept

    @saved.setter
    def saved(self, saved):
        self.kept = saved


def new_node(reverse, saved, edges, output_count, leaves) -> ProgramNode:
    """A node, which checks versions if that is asked for."""
    if strict.get() or mutation.get() is not None:
        return CheckedNode(reverse, saved, edges, output_count, leaves)
    return ProgramNode(reverse, saved, edges, output_count)
