"""A pipe of the elements that fulfil a condition."""

from __future__ import annotations

from .....names.missing import missing_in
from ..datapipe import IterDataPipe, functional_datapipe
from ..functions import check_columns, checked, on_columns


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The elements for which a function is True: `pipe.filter(filter_fn)`.

    filter_fn: the condition; input_col: the places of its arguments in an element. Raises
    ValueError where the function gives no bool.
    """

    def __init__(self, datapipe, filter_fn, input_col=None):
        self.datapipe, self.filter_fn = datapipe, checked(filter_fn)
        self.input_col = input_col
        check_columns(filter_fn, input_col)

    def __iter__(self):
        for element in self.datapipe:
            is_wanted = on_columns(self.filter_fn, self.input_col, element)
            if not isinstance(is_wanted, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got "
                    f"{type(is_wanted)}"
                )
            if is_wanted:
                yield element


__getattr__ = missing_in(__name__)
