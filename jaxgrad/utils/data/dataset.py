"""Datasets: samples by index, or one after the other, and those that are made of others."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from ...core.pytorch_tensors import type_name
from ...core.tracebacks import users_stacklevel
from ...frontend.generator import Generator, default_generator
from ...frontend.random import randperm
from ...names.missing import missing_in
from ...tape.tensor import Tensor

_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """Samples by index: subclasses define `__getitem__`, and `__len__` for most samplers.

    `__getitems__(indices)`, where it is defined, gives all samples of a batch at once.

    >>> class Squares(jaxgrad.utils.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return index * index
    ...     def __len__(self):
    ...         return 4
    >>> list(jaxgrad.utils.data.DataLoader(Squares(), batch_size=2))
    [tensor([0, 1]), tensor([4, 9])]
    """

    def __getitem__(self, index) -> _T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> Dataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """Samples one after the other: subclasses define `__iter__`.

    Each worker of a DataLoader has a copy and iterates over all of it, unless `__iter__` asks
    `get_worker_info()` for its part.

    >>> class Count(jaxgrad.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(jaxgrad.utils.data.DataLoader(Count(), batch_size=2))
    [tensor([0, 1]), tensor([2])]
    """

    def __add__(self, other: Dataset) -> Dataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors: a sample is a tuple with one row of each.

    tensors: of one length in their first dimension. Raises AssertionError for several lengths.

    >>> jaxgrad.utils.data.TensorDataset(jaxgrad.arange(3), jaxgrad.ones(3))[1]
    (tensor(1), tensor(1.))
    """

    def __init__(self, *tensors: Tensor):
        for tensor in tensors:
            if not callable(getattr(tensor, "size", None)):  # as of an array of NumPy
                raise TypeError(
                    f"TensorDataset takes tensors, but got {type_name(tensor)}: "
                    "torch.as_tensor makes one"
                )
        sizes = [tensor.size(0) for tensor in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(
                f"Size mismatch between tensors: TensorDataset() got first dimensions of {sizes}"
            )
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset[_T_co]):
    """Datasets side by side: a sample is a tuple, or a dict, with one sample of each.

    args: datasets of one length, for tuples; kwargs: by name, for dicts. Raises ValueError for
    none, for both, and for several lengths.

    >>> jaxgrad.utils.data.StackDataset(image=[1, 2], label=["a", "b"])[1]
    {'image': 2, 'label': 'b'}
    """

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if bool(args) == bool(kwargs):
            raise ValueError(
                "At least one dataset should be passed"
                if not args
                else "Supported either tuple (via args) or dict (via kwargs) like samples, but "
                "StackDataset() got both"
            )
        self.datasets = args or kwargs
        sizes = [len(dataset) for dataset in args or kwargs.values()]
        if len(set(sizes)) > 1:
            raise ValueError(f"Size mismatch between datasets: StackDataset() got {sizes}")
        self._length = sizes[0]

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list):
        is_dict = isinstance(self.datasets, dict)
        held = self.datasets.values() if is_dict else self.datasets
        columns = [_samples(dataset, indices) for dataset in held]
        rows = zip(*columns, strict=True)
        if is_dict:
            return [dict(zip(self.datasets, row, strict=True)) for row in rows]
        return list(rows)

    def __len__(self):
        return self._length


def _samples(dataset, indices) -> list:
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    samples = dataset.__getitems__(indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch: {type(dataset).__name__}.__getitems__ gave "
            f"{len(samples)} samples for {len(indices)} indices"
        )
    return samples


class ConcatDataset(Dataset[_T_co]):
    """Datasets one after the other, by one index.

    datasets: with lengths. Raises AssertionError for none and for an IterableDataset.

    >>> jaxgrad.utils.data.ConcatDataset([[1, 2], [3]])[2]
    3
    """

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable: ConcatDataset() got []")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset: use ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence) -> list[int]:
        """The number of samples up to the end of each dataset."""
        return list(itertools.accumulate(map(len, sequence)))

    @property
    def cummulative_sizes(self):
        """The old name of `cumulative_sizes`."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            FutureWarning,
            stacklevel=users_stacklevel(),
        )
        return self.cumulative_sizes

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < -len(self):
            raise ValueError(
                f"absolute value of index should not exceed dataset length: got {index} for "
                f"{len(self)} samples"
            )
        index += len(self) if index < 0 else 0
        number = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][index - before]


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other.

    datasets: each an IterableDataset; anything else raises AssertionError when it is reached.

    >>> class Count(jaxgrad.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(jaxgrad.utils.data.ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Dataset]):
        super().__init__()
        self.datasets = datasets

    def _checked(self) -> Iterator[IterableDataset]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(
                    f"ChainDataset only supports IterableDataset, not {type(dataset).__name__}"
                )
            yield dataset

    def __iter__(self):
        for dataset in self._checked():
            yield from dataset

    def __len__(self):
        return sum(map(len, self._checked()))


class Subset(Dataset[_T_co]):
    """The samples of a dataset at some indices.

    >>> jaxgrad.utils.data.Subset(["a", "b", "c"], [2, 0])[0]
    'c'
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[position] for position in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list):
        inner = [self.indices[position] for position in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(inner)
        return [self.dataset[index] for index in inner]

    def __len__(self):
        return len(self.indices)


def random_split(
    dataset: Dataset, lengths: Sequence[int | float], generator: Generator = default_generator
) -> list[Subset]:
    """Split a dataset at random into subsets without common samples.

    lengths: numbers of samples that add up to the dataset's, or fractions that add up to one, where
    the samples that are left over go to the first subsets in turn. Raises ValueError for others.

    >>> parts = jaxgrad.utils.data.random_split(range(10), [0.7, 0.3])
    >>> [len(part) for part in parts]
    [7, 3]
    """
    sizes = _sizes(len(dataset), lengths)
    order = iter(randperm(len(dataset), generator=generator).tolist())
    return [Subset(dataset, list(itertools.islice(order, size))) for size in sizes]


def _sizes(total: int, lengths) -> list[int]:
    sizes = list(lengths)
    if any(size < 0 for size in sizes if isinstance(size, int)):
        raise ValueError(f"lengths must not be negative: random_split() got {sizes}")
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1:
        for number, fraction in enumerate(sizes):
            if not 0 <= fraction <= 1:
                raise ValueError(
                    f"Fraction at index {number} is not between 0 and 1: random_split() got "
                    f"{fraction}"
                )
        sizes = [math.floor(total * fraction) for fraction in sizes]
        for number in range(total - sum(sizes)):
            sizes[number % len(sizes)] += 1
        for number, size in enumerate(sizes):
            if not size:
                warnings.warn(
                    f"Length of split at index {number} is 0. This might result in an empty "
                    "dataset.",
                    stacklevel=users_stacklevel(),
                )
    if sum(sizes) != total:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! random_split() "
            f"got {list(lengths)} for {total} samples"
        )
    return sizes


__getattr__ = missing_in(__name__)
