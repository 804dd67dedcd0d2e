"""A pipe of any iterable object."""

from __future__ import annotations

import copy
import warnings

from .....core.tracebacks import users_stacklevel
from .....names.missing import missing_in
from ..datapipe import IterDataPipe


class IterableWrapperIterDataPipe(IterDataPipe):
    """The elements of an iterable object.

    iterable: the object. deepcopy: whether an iteration is over a copy of it, so that what changes
    elements in place does not change the object; where it cannot be copied, there is a warning.

    >>> pipes = jaxgrad.utils.data.datapipes.iter
    >>> list(pipes.IterableWrapper(range(4)).filter(bool).map(str))
    ['1', '2', '3']
    """

    def __init__(self, iterable, deepcopy: bool = True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place "
                    "modification would affect source data.",
                    stacklevel=users_stacklevel(),
                )
        yield from source

    def __len__(self):
        return len(self.iterable)


__getattr__ = missing_in(__name__)
