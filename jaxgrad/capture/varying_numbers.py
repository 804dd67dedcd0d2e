"""The Python numbers among the arguments of a compiled function that become inputs."""

from __future__ import annotations

import jax

from ..tape import pytree

NUMBERS = (int, float)


class VaryingNumbers:
    """The Python numbers among the arguments of one structure.

    `varying`: the positions of those that have had several values; they are inputs of the program.
    """

    def __init__(self, static, leaves, structure):
        args, kwargs = jax.tree.unflatten(structure, range(len(leaves)))
        chosen = args, kwargs
        if static is not None:
            chosen = [argument_at(args, kwargs, key) for key in static]
        fixed = set(pytree.flatten(chosen)[0])
        self.first = {
            i: leaf for i, leaf in enumerate(leaves) if type(leaf) in NUMBERS and i not in fixed
        }
        self.varying = frozenset()

    def update(self, leaves):
        known = [(i, leaves[i], first) for i, first in self.first.items()]
        self.varying |= {i for i, leaf, first in known if type(leaf) in NUMBERS and leaf != first}

    def give_up(self, positions) -> bool:
        """Make the numbers at these positions constants again; whether there were any."""
        constants = self.varying.intersection(positions)
        self.varying -= constants
        for position in constants:
            # for good: the function needed the value, and would again
            del self.first[position]
        return bool(constants)


def argument_at(args, kwargs, key):
    """An argument by position or name; None where the call does not give it."""
    if isinstance(key, str):
        return kwargs.get(key)
    return args[key] if key < len(args) else None
