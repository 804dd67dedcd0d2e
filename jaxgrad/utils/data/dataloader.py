"""The DataLoader: batches of a dataset, loaded here or by worker processes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeAlias, TypeVar

from ...core.device import has_accelerator
from ...core.tracebacks import users_stacklevel
from ...frontend.generator import Generator
from ...names.missing import missing_in
from . import graph_settings
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _DatasetKind
from ._utils.iterators import (
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from ._utils.worker import get_worker_info as get_worker_info
from .datapipes.datapipe import IterDataPipe
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

# what decides how batches are made, so that a change would come too late
_FIXED = (
    "dataset",
    "batch_size",
    "sampler",
    "batch_sampler",
    "drop_last",
    "persistent_workers",
)

MANY = (
    "This DataLoader will create {} worker processes in total. Our suggested max number of worker "
    "in current system is {}, the number of processors that this process may use: more of them "
    "wait for each other"
)

_T_co = TypeVar("_T_co", covariant=True)

_T = TypeVar("_T")

_collate_fn_t: TypeAlias = Callable[[list[_T]], Any]

_worker_init_fn_t: TypeAlias = Callable[[int], None]


class DataLoader(Generic[_T_co]):
    """Iterates over the batches of a dataset.

    dataset: a `Dataset`, any object with `__getitem__` and `__len__`, or an `IterableDataset`.
    batch_size: how many samples a batch has; None: samples are yielded one by one, as the sampler
    and the dataset give them. shuffle: whether their order is random. sampler, batch_sampler: what
    yields indices, and lists of them, in place of that. drop_last: whether a last batch that is
    smaller is left out. collate_fn: makes a batch of a list of samples, `default_collate` by
    default. generator: draws the order and the seeds; the default one if it is None.

    num_workers: how many processes load batches; 0: this one does. Each draws from `random`, NumPy
    and the default generator with a seed of its own; the order of batches does not depend on the
    number, but for an IterableDataset: each worker has a copy. prefetch_factor: how many
    batches each worker loads ahead, 2 by default; a thread receives them and puts them on the
    default device, while the program computes the steps before. persistent_workers: whether workers
    serve later iterations too. timeout: the seconds after which a missing batch raises
    RuntimeError; 0: none. worker_init_fn: called by each worker with its number.
    multiprocessing_context: the start method or a context of `multiprocessing`; see
    docs/conventions.md for the default. in_order: whether batches come in the order of the sampler;
    False: as they are ready. pin_memory: batches go to an accelerator, so that `to` need not copy
    them; those of a class with a method `pin_memory` are replaced by its result.
    pin_memory_device: that accelerator, such as "cuda:1"; by default the current one.

    An exception of a worker is raised here, as its own type, with the traceback of the worker; a
    worker that was killed raises RuntimeError. Raises ValueError for options that exclude each
    other.

    >>> data = jaxgrad.utils.data.TensorDataset(jaxgrad.arange(5))
    >>> [batch.tolist() for (batch,) in jaxgrad.utils.data.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    __initialized = False

    # where workers persist, the iterator that has them; the length that the user was told
    _iterator = _IterableDataset_len_called = None

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler | Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if isinstance(dataset, IterDataPipe):
            dataset, shuffle = graph_settings.apply_shuffle_settings(dataset, shuffle), None
        _check_sampling(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        sampler = _default_sampler(dataset, shuffle, generator) if sampler is None else sampler
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        elif not callable(collate_fn):
            raise TypeError(f"DataLoader: collate_fn must be a function, not {collate_fn!r}")
        self.dataset, self.sampler, self.batch_sampler = dataset, sampler, batch_sampler
        self.batch_size, self.drop_last = batch_size, drop_last
        self.num_workers, self.persistent_workers = num_workers, persistent_workers
        self.timeout, self.in_order = timeout, in_order
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.collate_fn, self.generator = worker_init_fn, collate_fn, generator
        self.multiprocessing_context = multiprocessing_context
        self.__initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name, value):
        if self.__initialized and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized: "
                "make another one"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """The context that starts the workers, None for the default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            context = _as_context(context, self.num_workers)
        self._context = context

    def __iter__(self) -> Iterator[Any]:
        iterator = self._get_iterator()
        if self.persistent_workers:
            self._iterator = iterator
        return iterator

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.pin_memory and not has_accelerator():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=users_stacklevel(),
            )
        if not self.num_workers:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)

    def __len__(self):
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = len(self.dataset)
        if self.batch_size is not None:
            size, rest = divmod(length, self.batch_size)
            length = size + (rest > 0 and not self.drop_last)
        self._IterableDataset_len_called = length  # an iteration that has more warns
        return length

    def check_worker_number_rationality(self):
        """Warn where there are more workers than processors for them."""
        has_set = hasattr(os, "sched_getaffinity")
        most = len(os.sched_getaffinity(0)) if has_set else os.cpu_count()
        if most is not None and self.num_workers > most:
            warnings.warn(MANY.format(self.num_workers, most), stacklevel=users_stacklevel())

    @property
    def _dataset_kind(self) -> int:
        is_iterable = isinstance(self.dataset, IterableDataset)
        return _DatasetKind.Iterable if is_iterable else _DatasetKind.Map

    @property
    def _auto_collation(self) -> bool:
        """Whether samples are joined into batches."""
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        """The sampler of the indices of each batch, or of each sample if there are no batches."""
        return self.batch_sampler if self._auto_collation else self.sampler


def _default_sampler(dataset, shuffle, generator) -> Sampler:
    if isinstance(dataset, IterableDataset):
        return _InfiniteConstantSampler()
    return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)


class _InfiniteConstantSampler(Sampler):
    """In place of indices: an iterable dataset decides when it ends."""

    def __iter__(self):
        return itertools.repeat(None)


# ---- checks


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            f"multiprocessing. DataLoader() got {num_workers}"
        )
    if timeout < 0:
        raise ValueError(f"timeout option should be non-negative: DataLoader() got {timeout}")
    if prefetch_factor is not None and not num_workers:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: pass num_workers > "
            "0 too, or leave it out"
        )
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(
            f"prefetch_factor option should be non-negative and not 0: got {prefetch_factor}"
        )
    if persistent_workers and not num_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle, sampler, batch_sampler):
    for name, value, is_given in (
        ("shuffle", shuffle, shuffle not in (None, False)),
        ("sampler", sampler, sampler is not None),
        ("batch_sampler", batch_sampler, batch_sampler is not None),
    ):
        if is_given:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}. The dataset decides the order itself"
            )


def _check_sampling(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last):
    if isinstance(dataset, IterableDataset):
        _check_iterable(shuffle, sampler, batch_sampler)
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                "drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )
    elif batch_size is not None and (not isinstance(batch_size, int) or batch_size <= 0):
        raise ValueError(
            f"batch_size should be a positive integer value, but got batch_size={batch_size!r}"
        )


def _as_context(context, num_workers) -> BaseContext:
    if not num_workers:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > "
            f"0), but got num_workers={num_workers}"
        )
    if isinstance(context, BaseContext):
        return context
    if not isinstance(context, str):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    methods = multiprocessing.get_all_start_methods()
    if context not in methods:
        raise ValueError(
            "multiprocessing_context option should specify a valid start method in "
            f"{methods}, but got multiprocessing_context={context!r}"
        )
    return multiprocessing.get_context(context)


__getattr__ = missing_in(__name__)
