"""Samples by their indices, or the next ones of an iterable dataset."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from ....names.missing import missing_in


class _DatasetKind:
    """The kinds of datasets."""

    Map, Iterable = 0, 1


class Parts(NamedTuple):
    """The parts that make a batch. `is_batched`: whether the indices are those of a whole batch."""

    dataset: object
    collate: object
    is_batched: bool
    drops_last: bool
    is_iterable: bool


def parts_of(loader) -> Parts:
    """The Parts of a DataLoader, or of a class with the same attributes that a package gives to
    the iterators in its place.
    """
    is_iterable = loader._dataset_kind == _DatasetKind.Iterable
    return Parts(
        loader.dataset, loader.collate_fn, loader._auto_collation, loader.drop_last, is_iterable
    )


def fetcher(parts: Parts):
    """The function from indices to a batch. It raises StopIteration at the end of an iterable
    dataset.
    """
    dataset, collate, is_batched, drops_last, is_iterable = parts
    if is_iterable:
        samples = iter(dataset)
        return lambda indices: collate(_next(samples, indices, is_batched, drops_last))
    return lambda indices: collate(_find(dataset, indices) if is_batched else dataset[indices])


def _find(dataset, indices):
    if getattr(dataset, "__getitems__", None):
        return dataset.__getitems__(indices)
    return [dataset[index] for index in indices]


def _next(samples, indices, is_batched, drops_last):
    if not is_batched:
        return next(samples)
    batch = list(itertools.islice(samples, len(indices)))
    if not batch or (drops_last and len(batch) < len(indices)):
        raise StopIteration
    return batch


__getattr__ = missing_in(__name__)
