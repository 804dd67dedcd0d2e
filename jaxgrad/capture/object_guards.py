"""What a program relies on in Python objects, modules and optimizers, and what it sets there."""

from __future__ import annotations

import weakref


class Objects:
    """What a function that is being traced takes from objects, and sets in them.

    `around`: those of the function around it, whose program relies on all this as well.
    """

    def __init__(self, around: Objects | None = None):
        self.around = around
        self.looks: dict[tuple, weakref.ref] = {}
        self.attributes: dict[tuple, Attribute] = {}

    def depend(self, owner, read):
        """Have the program serve only while `read(owner)` gives what it gives when the function has
        been traced.
        """
        self.looks[id(owner), read] = weakref.ref(owner)
        if self.around is not None:
            self.around.depend(owner, read)

    def expect(self, owner, name: str):
        """Have the program serve only where an attribute is what it is now, unless the function has
        set it before.
        """
        self._attribute(owner, name, getattr(owner, name))
        if self.around is not None:
            self.around.expect(owner, name)

    def settle(self, owner, name: str):
        """Have each call leave an attribute as the function leaves it."""
        self._attribute(owner, name, ANYTHING).is_set = True
        if self.around is not None:
            self.around.settle(owner, name)

    def _attribute(self, owner, name, expected) -> Attribute:
        known = self.attributes.get((id(owner), name))
        if known is None or known.owner() is not owner:
            known = self.attributes[id(owner), name] = Attribute(owner, name, expected)
        return known

    def end(self):
        """Note how the function has left all of it. What is gone by then was made by it."""
        looks = [(owner, read, owner()) for (_, read), owner in self.looks.items()]
        self.guards = [
            (owner, read, read(found)) for owner, read, found in looks if found is not None
        ]
        alive = [each for each in self.attributes.values() if each.owner() is not None]
        self.expected = [each for each in alive if each.expected is not ANYTHING]
        self.settled = [(a.owner, a.name, getattr(a.owner(), a.name)) for a in alive if a.is_set]

    def refusal(self) -> str | None:
        """Why the program cannot serve now, None where it can."""
        for reference, read, value in self.guards:
            owner = reference()
            if owner is None or read(owner) != value:
                return f"the {type(owner).__name__} that it uses has changed"
        for each in self.expected:
            found = getattr(each.owner(), each.name, ANYTHING)
            if found != each.expected:
                kind = type(each.owner()).__name__
                return f"{each.name} of a {kind} was {each.expected}, and is {found}"
        return None

    def apply(self):
        """Set what the function sets."""
        for reference, name, value in self.settled:
            owner = reference()
            if owner is not None and getattr(owner, name) is not value:
                setattr(owner, name, value)


ANYTHING = object()


class Attribute:
    """An attribute of an object: what it must be at a call, and whether the function sets it."""

    __slots__ = ("expected", "is_set", "name", "owner")

    def __init__(self, owner, name, expected):
        self.owner, self.name, self.expected = weakref.ref(owner), name, expected
        self.is_set = False
