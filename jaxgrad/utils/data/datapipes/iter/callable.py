"""Pipes that apply a function to each element."""

from __future__ import annotations

from .....names.missing import missing_in
from ..._utils.collate import default_collate
from ..datapipe import IterDataPipe, functional_datapipe, length_of
from ..functions import check_columns, checked, on_columns, with_result


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """The results of a function of each element: `pipe.map(fn)`.

    fn: the function. input_col: the places of its arguments in an element, by default the element
    itself. output_col: the place of the result; None for that of the first argument, -1 for a new
    one. Raises ValueError for an output_col without input_col, or of several places, and for
    a function of another number of arguments.

    >>> pipes = jaxgrad.utils.data.datapipes.iter
    >>> list(pipes.IterableWrapper([(1, 2), (3, 4)]).map(sum))
    [3, 7]
    """

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        self.datapipe, self.fn, self.input_col = datapipe, checked(fn), input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, list | tuple):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col
        check_columns(fn, input_col)

    def __iter__(self):
        for element in self.datapipe:
            result = on_columns(self.fn, self.input_col, element)
            yield with_result(element, result, self.input_col, self.output_col)

    def __len__(self):
        return length_of(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors, by a function that is `default_collate` by default: `pipe.collate()`."""

    def __init__(self, datapipe, conversion=None, collate_fn=None):
        function = collate_fn or conversion or default_collate
        super().__init__(datapipe, fn=function)


__getattr__ = missing_in(__name__)
