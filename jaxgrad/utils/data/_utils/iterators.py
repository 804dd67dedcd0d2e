"""The iterators of a DataLoader: batches that this process loads, or that its workers do."""

from __future__ import annotations

import itertools
import queue
import signal
import warnings

from ....core.tracebacks import hide_frames, users_stacklevel
from .. import sampler
from ..dataset import IterableDataset
from .fetch import fetcher, parts_of
from .pin_memory import pin_memory, place_of
from .worker import End, Failure
from .workers import GONE, PATIENCE, Crew

LENGTH = (
    "Length of IterableDataset {!r} was reported to be {}(when accessing len(dataloader)), but {} "
    "samples have been fetched. "
)
OF_EACH_WORKER = (
    "For multiprocessing data-loading, each worker iterates over its own copy of the dataset: "
    "split it by torch.utils.data.get_worker_info()"
)


class _BaseDataLoaderIter:
    """The batches of one iteration over a DataLoader. It does not refer to the loader, which may
    keep it.
    """

    def __init__(self, loader):
        self._reset(loader)

    def _reset(self, loader, base_seed=None):
        """Begin an iteration; base_seed: that of workers which run already."""
        self._index_sampler, self._dataset = loader._index_sampler, loader.dataset
        self._shared_seed = _seed_of_pipes(loader)
        self._indices = iter(self._index_sampler)
        # drawn without workers too, so that what follows is the same
        self._base_seed = sampler.new_seed(loader.generator) if base_seed is None else base_seed
        self._place = place_of(loader)
        self._num_workers, self._timeout = loader.num_workers, loader.timeout
        self._known_length, self._num_yielded = loader._IterableDataset_len_called, 0

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._index_sampler)

    def __next__(self):
        try:
            batch = self._next_data()
        except StopIteration:
            raise
        except Exception as error:
            hide_frames(error)
            raise
        self._num_yielded += 1
        if self._known_length is not None and self._num_yielded > self._known_length:
            self._warn_of_length()
        return batch if self._place is None else pin_memory(batch, self._place)

    def _next_data(self):
        raise NotImplementedError(f"{type(self).__name__} must define _next_data")

    def _warn_of_length(self):
        text = LENGTH.format(self._dataset, self._known_length, self._num_yielded)
        if self._num_workers:
            text += OF_EACH_WORKER
        warnings.warn(text, stacklevel=users_stacklevel())


def _seed_of_pipes(loader):
    """The seed of the pipes of an iteration; None for other datasets."""
    is_random = isinstance(loader.dataset, IterableDataset) and hasattr(
        loader.dataset, "_set_seeds"
    )
    return sampler.new_seed(loader.generator) if is_random else None


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """The batches that this process loads."""

    def _reset(self, loader):
        if loader.timeout:
            raise AssertionError(
                "timeout= needs num_workers > 0: a DataLoader without workers waits for no process"
            )
        super()._reset(loader)
        if self._shared_seed is not None:
            loader.dataset._set_seeds(sampler.seeded(self._shared_seed))
        self._fetch = fetcher(parts_of(loader))

    def _next_data(self):
        return self._fetch(next(self._indices))


def _signal_of(process) -> str:
    """What ended a process that a signal has ended."""
    if process.exitcode >= 0:
        return ""
    text = signal.strsignal(-process.exitcode)
    hint = " Memory may have run out." if -process.exitcode == signal.SIGKILL else ""
    return f": DataLoader worker (pid {process.pid}) is killed by signal: {text}.{hint}"


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """The batches that workers load."""

    def _reset(self, loader):
        before = loader._iterator
        if before is None or not before._crew.shut_down.alive:
            super()._reset(loader)
            self._crew = Crew(loader, self._base_seed)
            _seed_of_pipes(loader)  # which PyTorch draws, and does not use
        else:
            super()._reset(loader, before._base_seed)
            self._crew = before._crew
        self._crew.epoch, self._crew.shared_seed = self._crew.epoch + 1, self._shared_seed
        self._epoch, self._next = self._crew.epoch, self._crew.asked
        self._prefetch_factor, self._in_order = loader.prefetch_factor, loader.in_order
        self._persists = loader.persistent_workers
        self._ready: dict[int, object] = {}
        # batches of an iteration that was left may still come: they are not pending
        self._pending: set[int] = set()
        workers = self._crew.workers
        self._active, self._turns = set(workers), itertools.cycle(workers)
        self._assign()

    @property
    def _workers(self) -> list:
        """The processes."""
        return self._crew.processes

    def _shutdown_workers(self):
        self._crew.shut_down()

    def _next_data(self):
        try:
            while True:
                batch = self._next_message()
                if isinstance(batch, Failure):
                    batch.throw()
                if not isinstance(batch, End):
                    return batch
        except Exception:
            raise
        except BaseException:  # a KeyboardInterrupt, whose traceback would keep the workers
            self._shutdown_workers()
            raise

    def _next_message(self):
        if self._crew.epoch != self._epoch:
            raise RuntimeError(
                "another iteration of this DataLoader has begun, which its persistent workers serve"
            )
        while self._next not in self._ready if self._in_order else not self._ready:
            if not self._pending:
                self._end()
                raise StopIteration
            self._receive()
        number = self._next if self._in_order else next(iter(self._ready))
        self._next += 1
        batch = self._ready.pop(number)
        self._assign()
        return batch

    # ---- asking workers for batches

    def _assign(self):
        """Ask workers for batches until as many are on their way as may be loaded ahead."""
        most = self._prefetch_factor
        while len(self._pending) + len(self._ready) < most * len(self._active):
            try:
                indices = next(self._indices)
            except StopIteration:
                self._active = set()
                return
            self._ask(self._next_worker(), indices)

    def _next_worker(self):
        """In order, workers take turns; else one that is slow is asked for no more."""
        for worker in self._turns:
            is_free = self._in_order or worker.load < self._prefetch_factor
            if worker in self._active and is_free:
                return worker

    def _ask(self, worker, indices):
        try:
            self._pending.add(self._crew.ask(worker, indices))
        except OSError:
            self._raise_exited(worker)

    # ---- receiving them

    def _receive(self):
        """Wait for what a worker sends next."""
        try:
            worker, number, batch = self._crew.arrived.get(timeout=self._timeout or None)
        except queue.Empty:
            self._raise_too_late()
        if batch is GONE:
            self._raise_exited(worker)
        worker.load -= 1
        if number not in self._pending:
            return
        self._pending.remove(number)
        self._ready[number] = batch
        if isinstance(batch, End):
            self._active.discard(worker)

    def _raise_too_late(self):
        for process in self._workers:
            process.terminate()  # it would go on until its batch is loaded
        self._end(is_over=True)
        raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None

    def _raise_exited(self, worker):
        process = worker.process
        process.join(PATIENCE)
        self._end(is_over=True)
        raise RuntimeError(
            f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly, with exit code "
            f"{process.exitcode}{_signal_of(process)}"
        ) from None

    def _end(self, is_over=False):
        self._indices = iter(())
        self._pending, self._active = set(), set()
        if is_over or not self._persists:
            self._shutdown_workers()
