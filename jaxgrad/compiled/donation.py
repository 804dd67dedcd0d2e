"""Donation: a program takes the memory of input arrays. JAX deletes these arrays, so only one
tensor may hold each.
"""

import itertools
import operator

import jax
import numpy

from ..capture.graph_input import argument_at
from ..core.aval import has_numbers
from ..core.reference_counts import Held
from ..tape import pytree
from ..tape.tensor import Tensor, alias_of, held, hold


def copy_shared(arrays: list, tensors, numbers: list[int], replaced):
    """Replace arrays by copies if anything else refers to them.

    arrays: the arrays of the captured `tensors`; numbers: of the arrays that the program deletes;
    replaced: the numbers of the arrays whose storages get another array.
    """
    for number in numbers:
        if type(arrays[number]) is numpy.ndarray:  # of a new tensor: only arrays are donated
            arrays[number] = held(tensors[number])
    counts, sole = [*_OF_TENSOR.counts(itertools.repeat(arrays), numbers)], _OF_TENSOR.sole
    if counts.count(sole) == len(counts):
        return
    for number, count in zip(numbers, counts, strict=True):
        has_storage = alias_of(tensors[number]) is not None and number not in replaced
        if count - sole > (has_storage and _is_stored(tensors[number])):
            arrays[number] = _copied(arrays[number])


def _copied(array):
    """A copy of an array; `lower` gives some without data."""
    return jax.numpy.copy(array) if has_numbers(array) else array


def _is_stored(tensor) -> bool:
    """Whether the storage that a tensor shares with its views holds its array too."""
    return alias_of(tensor).storage.array is held(tensor)


def _sole() -> list:
    """An array to which only this list and a tensor refer, and the tensor."""
    tensor = object.__new__(Tensor)
    hold(tensor, object())
    return [held(tensor), tensor]


# the array of a number in a list of arrays, which its tensor holds too
_OF_TENSOR = Held(operator.getitem, _sole(), 0)


def saves_inputs(trace) -> bool:
    """Whether a node of a call saves the inputs: arrays of this process, whose memory must outlive
    the call.
    """
    pullback = trace.pullback
    return pullback is not None and any(group.reached for group in pullback.groups)


def numbers_to_donate(trace, leaves) -> set[int]:
    """The numbers of the captured tensors whose memory the outputs may take."""
    function, structure, output = trace.function, trace.arguments.structure, trace.output
    # a run that may raise leaves its inputs as they are
    if not function.donates or saves_inputs(trace) or output.undefined:
        return set()
    args, kwargs = jax.tree.unflatten(structure, range(structure.num_leaves))
    chosen = {
        leaf
        for key in function.donate
        for leaf in pytree.flatten(argument_at(args, kwargs, key))[0]
    }
    named = {captured.number for captured in trace.captured if captured.position in chosen}
    return ((named - output.sources) | output.written) - output.joined
