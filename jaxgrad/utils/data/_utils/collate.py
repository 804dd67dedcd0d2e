"""How samples become a batch: `default_collate` joins them, `default_convert` makes tensors."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .... import ops
from ....core import dtypes, promotion
from ....core.device import default_device
from ....frontend.array_creation import finish, taken_over
from ....frontend.tensor_data import as_tensor, tensor
from ....names.missing import missing_in
from ....tape.sparse_tensor import is_sparse
from ....tape.tensor import PLAIN_TENSORS, Tensor, is_concrete

UNKNOWN = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}. "
    "Pass a collate_fn= that joins such samples"
)

NO_BATCH = (
    "Batches of {} tensors are not currently supported by the default collate_fn; please provide a "
    "custom collate_fn to handle them appropriately."
)

# of Python's numbers the dtypes that their tensors get
_NUMBERS = {bool: np.bool_, int: np.int64, float: np.float64}


def default_collate(batch):
    """Join samples into a batch: a new first dimension for tensors, of the length of the batch.

    batch: a list of samples of one structure. Tensors and NumPy arrays of one shape are stacked;
    numbers become a tensor of dtype int64, float64 or bool; strings and bytes stay a list; dicts,
    lists, tuples and named tuples are joined element by element, where tuples become lists. For
    other classes, put functions into `_utils.collate.default_collate_fn_map`.

    Raises TypeError for other samples, RuntimeError for lists of several lengths and for tensors of
    several shapes.

    >>> jaxgrad.utils.data.default_collate([(jaxgrad.ones(2), 0), (jaxgrad.zeros(2), 1)])
    [tensor([[1., 1.],
            [0., 0.]]), tensor([0, 1])]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch, *, collate_fn_map: dict | None = None):
    """Join samples by functions for their classes, and inside of dicts and sequences.

    collate_fn_map: by class, or tuple of classes, a function that joins a list of samples and takes
    the map as `collate_fn_map=`. Raises TypeError for samples that it has no function for.
    """
    functions, first = collate_fn_map or {}, batch[0]
    join = functions.get(type(first)) or _of_base(functions, first)
    if join is not None:
        return join(batch, collate_fn_map=functions)
    if isinstance(first, Mapping):
        columns = {key: _column(batch, key) for key in first}
        joined = {key: collate(column, collate_fn_map=functions) for key, column in columns.items()}
        return like(first, joined)
    if isinstance(first, Sequence):
        return _joined_sequences(first, list(batch), functions)
    raise TypeError(UNKNOWN.format(type(first)))


def _column(batch, key):
    """The values of all samples for a key. Raises KeyError if one has none."""
    try:
        return [sample[key] for sample in batch]
    except KeyError:
        number = next(number for number, sample in enumerate(batch) if key not in sample)
        raise KeyError(
            f"{key!r}: sample {number} of a batch has the keys {list(batch[number])}, and the "
            f"first {list(batch[0])}"
        ) from None


def _of_base(functions, first):
    matches = (join for kind, join in functions.items() if isinstance(first, kind))
    return next(matches, None)


def _joined_sequences(first, batch, functions):
    sizes = set(map(len, batch))
    if len(sizes) > 1:
        raise RuntimeError(
            f"each element in list of batch should be of equal size, and these have {sorted(sizes)}"
        )
    columns = zip(*batch, strict=True)  # tuples, which texts stay
    joined = [collate(column, collate_fn_map=functions) for column in columns]
    if hasattr(first, "_fields"):
        return type(first)(*joined)
    return joined if isinstance(first, tuple) else like(first, joined)


def like(first, contents):
    """The contents in a container of the class of `first`, as far as that can be made."""
    kind = type(first)
    if kind in (dict, list):
        return contents
    try:
        if hasattr(first, "__setitem__") and isinstance(first, Mapping):
            container = copy.copy(first)
            container.update(contents)
            return container
        return kind(contents)
    except TypeError:
        return contents


# ---- functions for the classes of samples


def as_leaf(array: np.ndarray) -> Tensor:
    """The tensor that takes over a NumPy array of its own."""
    return finish(taken_over(array))


def functions_of(convert: Callable) -> dict:
    """The functions for tensors, arrays, numbers and texts, which pass new arrays to `convert`."""
    return {
        Tensor: functools.partial(_stacked_tensors, convert=convert),
        np.ndarray: functools.partial(_stacked_arrays, convert=convert),
        (np.bool_, np.number): functools.partial(_joined_scalars, convert=convert),
        float: functools.partial(_joined_numbers, convert=convert),
        int: functools.partial(_joined_numbers, convert=convert),
        str: _unchanged,
        bytes: _unchanged,
    }


def _stacked_tensors(batch, *, convert, collate_fn_map=None):
    """Tensors as one: those with values in the memory of the host without a kernel."""
    for number, sample in enumerate(batch):
        if not isinstance(sample, Tensor):
            raise TypeError(
                f"expected Tensor as element {number} in argument 0, but got "
                f"{type(sample).__name__}"
            )
        if is_sparse(sample) or sample.is_nested:
            raise RuntimeError(NO_BATCH.format("nested" if sample.is_nested else "sparse"))
    if default_device().type == "cpu" and all(map(_is_constant_on_host, batch)):
        return _stacked_arrays([np.asarray(sample._array) for sample in batch], convert=convert)
    return ops.stack(list(batch))


def _is_constant_on_host(tensor) -> bool:
    is_plain = type(tensor) in PLAIN_TENSORS and not tensor.requires_grad
    return is_plain and is_concrete(tensor) and tensor.device.type == "cpu"


def _stacked_arrays(batch, *, convert, collate_fn_map=None):
    if not all(isinstance(sample, np.ndarray | np.generic) for sample in batch):
        return _stacked_tensors([*map(as_tensor, batch)], convert=convert)
    shapes = [array.shape for array in batch]
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shapes[0])} at entry 0 "
                f"and {list(shape)} at entry {number}: samples of one batch have one shape; pad "
                "them, or join them by a collate_fn="
            )
    return convert(np.stack(batch, dtype=_common_type(batch), casting="unsafe"))


def _common_type(batch) -> np.dtype:
    """The dtype of arrays that are joined, by PyTorch's rules."""
    try:
        types = {dtypes.from_numpy(array.dtype.newbyteorder("=")) for array in batch}
    except TypeError:  # texts, times, objects
        raise TypeError(UNKNOWN.format(batch[0].dtype)) from None
    return functools.reduce(promotion.promote_types, types).numpy


def _joined_scalars(batch, *, convert, collate_fn_map=None):
    if all(isinstance(scalar, np.generic) for scalar in batch):
        return _stacked_arrays(batch, convert=convert)
    return tensor(batch)


def _joined_numbers(batch, *, convert, collate_fn_map=None):
    kinds = set(map(type, batch))
    kind = kinds.pop() if len(kinds) == 1 else None
    try:
        return convert(np.array(batch, _NUMBERS[kind]))
    except (KeyError, OverflowError):  # several kinds, a subclass, or more than 64 bits
        return tensor(batch, dtype=dtypes.float64 if isinstance(batch[0], float) else None)


def _unchanged(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map: dict = functions_of(as_leaf)

_INITIAL = dict(default_collate_fn_map)

# PyTorch's names for them, and for the dtypes of arrays that they refuse
collate_tensor_fn, collate_numpy_array_fn, collate_numpy_scalar_fn, *_ = _INITIAL.values()
collate_float_fn, collate_int_fn, collate_str_fn = _INITIAL[float], _INITIAL[int], _unchanged
np_str_obj_array_pattern = re.compile("[SaUO]")


def added_functions() -> dict:
    """The functions that the user has put into `default_collate_fn_map`."""
    entries = default_collate_fn_map.items()
    return {kind: join for kind, join in entries if _INITIAL.get(kind) is not join}


# ---- tensors of arrays


def default_convert(data):
    """Make tensors of the NumPy arrays and NumPy numbers in a sample; the rest stays as it is.

    >>> jaxgrad.utils.data.default_convert({"x": np.ones(2, "float32"), "name": "a"})
    {'x': tensor([1., 1.]), 'name': 'a'}
    """
    return converted(data, as_tensor)


def converted(data, convert):
    """A sample whose NumPy arrays and numbers are passed to `convert`."""
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SUO" else convert(data)
    if isinstance(data, Mapping):
        return like(data, {key: converted(value, convert) for key, value in data.items()})
    if hasattr(data, "_fields"):
        return type(data)(*(converted(element, convert) for element in data))
    if isinstance(data, tuple):
        return [converted(element, convert) for element in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return like(data, [converted(element, convert) for element in data])
    return data


__getattr__ = missing_in(__name__)
