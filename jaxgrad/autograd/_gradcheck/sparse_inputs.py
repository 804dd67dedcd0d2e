"""Checks of functions of sparse tensors: as functions of the values."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...tape.sparse_tensor import implementation, is_sparse, values_of


def over_values(func: Callable, inputs: tuple, masked: bool | None) -> tuple[Callable, tuple]:
    """A function of the values of sparse inputs that require grad, and its inputs.

    masked: whether only the elements that the tensors have are moved; else all of them are.
    """
    places = [k for k, x in enumerate(inputs) if is_sparse(x) and x.requires_grad]
    if not places:
        return func, inputs
    patterns, moved = {}, list(inputs)
    for place in places:
        tensor = inputs[place].detach()
        patterns[place] = tensor if masked else implementation().all_elements(tensor)
        moved[place] = values_of(patterns[place]).clone().requires_grad_()

    @functools.wraps(func)
    def of_values(*arguments):
        arguments = list(arguments)
        for place, pattern in patterns.items():
            arguments[place] = implementation().with_values(pattern, arguments[place])
        return func(*arguments)

    return of_values, tuple(moved)
