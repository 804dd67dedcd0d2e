"""How samples become a batch: `default_collate` joins them, `default_convert` makes tensors."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np

from .... import ops
from ....core.device import default_device
from ....frontend.tensor_data import as_tensor, from_numpy
from ....tape.tensor import Tensor, is_concrete

UNKNOWN = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}. "
    "Pass a collate_fn= that joins such samples"
)

# of Python's numbers the dtypes that their tensors get
_NUMBERS = {bool: np.bool_, int: np.int64, float: np.float64}


def default_collate(batch):
    """Join samples into a batch: a new first dimension for tensors, of the length of the batch.

    batch: a list of samples of one structure. Tensors and NumPy arrays of one shape are stacked;
    numbers become a tensor of dtype int64, float64 or bool; strings and bytes stay a list; dicts,
    lists, tuples and named tuples are joined element by element, where tuples become lists.

    Raises TypeError for other samples, RuntimeError for lists of several lengths and for tensors of
    several shapes.

    >>> jaxgrad.utils.data.default_collate([(jaxgrad.ones(2), 0), (jaxgrad.zeros(2), 1)])
    [tensor([[1., 1.],
            [0., 0.]]), tensor([0, 1])]
    """
    return join(batch, from_numpy)


def join(batch, made):
    """The batch of samples, whose arrays are passed to `made`."""
    first = batch[0]
    if isinstance(first, Tensor):
        return _stacked(batch, made)
    if type(first) in _NUMBERS:
        return made(np.array(batch, _number_type(batch)))
    if isinstance(first, np.ndarray | np.generic) and first.dtype.kind not in "SUO":
        return _stacked_arrays(batch, made)
    if isinstance(first, int | float):  # of a subclass, such as an enumeration
        return made(np.array([*batch], _NUMBERS[int if isinstance(first, int) else float]))
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        joined = {key: join([each[key] for each in batch], made) for key in first}
        return _like(first, joined)
    if isinstance(first, Sequence):
        return _joined_sequences(first, list(batch), made)
    raise TypeError(UNKNOWN.format(getattr(first, "dtype", type(first))))


def _number_type(batch):
    # True and 1 in one batch are numbers, as are 1 and 2.0 where the first sample is a float
    kinds = set(map(type, batch))
    return _NUMBERS[type(batch[0])] if len(kinds) == 1 else None


def _joined_sequences(first, batch, made):
    sizes = set(map(len, batch))
    if len(sizes) > 1:
        raise RuntimeError(
            f"each element in list of batch should be of equal size, and these have {sorted(sizes)}"
        )
    joined = [join(list(column), made) for column in zip(*batch, strict=True)]
    if hasattr(first, "_fields"):
        return type(first)(*joined)
    return joined if isinstance(first, tuple) else _like(first, joined)


def _like(first, contents):
    """The contents in a container of the class of `first`, as far as that can be made."""
    kind = type(first)
    if kind in (dict, list):
        return contents
    try:
        if hasattr(first, "__setitem__") and isinstance(first, Mapping):
            made = copy.copy(first)
            made.update(contents)
            return made
        return kind(contents)
    except TypeError:
        return contents


def _stacked(batch, made):
    """Tensors as one: of those with values in the memory of the host without a kernel."""
    if all(map(_is_on_host, batch)):
        return _stacked_arrays([np.asarray(each._array) for each in batch], made)
    return ops.stack(list(batch))


def _is_on_host(tensor) -> bool:
    if not isinstance(tensor, Tensor) or tensor.requires_grad or not is_concrete(tensor):
        return False
    return tensor.device.type == "cpu" and default_device().type == "cpu"


def _stacked_arrays(arrays, made):
    shapes = [np.shape(each) for each in arrays]
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shapes[0])} at entry 0 "
                f"and {list(shape)} at entry {number}"
            )
    return made(np.stack(arrays))


def default_convert(data):
    """Make tensors of the NumPy arrays and NumPy numbers in a sample; the rest stays as it is.

    >>> jaxgrad.utils.data.default_convert({"x": np.ones(2, "float32"), "name": "a"})
    {'x': tensor([1., 1.]), 'name': 'a'}
    """
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(each) for key, each in data.items()})
    if hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(each) for each in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like(data, [default_convert(each) for each in data])
    return data
