"""Schedulers composed of schedulers, and `ReduceLROnPlateau`."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

from .optimizer import Optimizer
from .options import Options, Rate
from .scheduling import EPOCH_DEPRECATION_WARNING, LRScheduler, check_optimizer, rates, set_rate


class _CompositeScheduler(LRScheduler):
    """The base class of schedulers that are composed of others."""

    def _check_schedulers(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
        name = type(self).__name__
        for number, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{name} at index {number} should have `optimizer` as its attribute."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{number} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {number} with another one"
                )

    def state_dict(self) -> Options:
        """Return the attributes except the optimizer, with the state dicts of the schedulers."""
        return super().state_dict() | {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: Options) -> None:
        options = {name: value for name, value in state_dict.items() if name != "_schedulers"}
        super().load_state_dict(options)
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_CompositeScheduler):
    """Run one scheduler after another; `milestones` are the epochs at which the next begins.

    schedulers: one more than milestones, all of `optimizer`. Raises ValueError for other lengths,
    TypeError or ValueError for schedulers that do not fit.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> known = jaxgrad.optim.lr_scheduler
    >>> first = known.ConstantLR(optimizer, factor=0.5, total_iters=10)
    >>> scheduler = known.SequentialLR(optimizer, [first, known.ExponentialLR(optimizer, 0.9)], [1])
    >>> optimizer.step()
    >>> before = scheduler.get_last_lr()
    >>> scheduler.step()
    >>> before, scheduler.get_last_lr()
    ([0.5], [1.0])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ):
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._check_schedulers(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Undo the initial step of each scheduler."""
        scheduler = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for inner in scheduler._schedulers:
                self.recursive_undo(inner)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:
        """Advance to the next epoch and set the rates."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_CompositeScheduler):
    """Step several schedulers at once; each changes the rates that the one before has set.

    schedulers: all of one optimizer. Raises ValueError for none, TypeError or ValueError for
    schedulers that do not fit.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> known = jaxgrad.optim.lr_scheduler
    >>> halvings = [known.ExponentialLR(optimizer, 0.5), known.ExponentialLR(optimizer, 0.5)]
    >>> scheduler = known.ChainedScheduler(halvings)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if not schedulers:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check_schedulers(schedulers, optimizer)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = rates(optimizer)

    def step(self) -> None:
        """Advance every scheduler to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = rates(self.optimizer)


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rates by `factor` when a metric has not improved for more than `patience`
    epochs.

    mode: "min" or "max". threshold: the least improvement, relative to the best value or with
    `threshold_mode="abs"` absolute. cooldown: epochs to wait after a reduction. min_lr: the lower
    bound of rates, a number or one for each group. eps: the smallest change of a rate. Raises
    ValueError for `factor >= 1` and unknown modes.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    >>> for loss in (1.0, 0.9, 0.9):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    default_min_lr: float | None
    min_lrs: list[float]
    mode: str
    mode_worse: float
    threshold: float
    threshold_mode: str
    best: float
    cooldown_counter: int
    num_bad_epochs: int

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0. It is {factor}")
        check_optimizer(optimizer)
        self.factor, self.optimizer = factor, optimizer
        count = len(optimizer.param_groups)
        several = isinstance(min_lr, list | tuple)
        if several and len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * count
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch, self._last_lr = 0, rates(optimizer)
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode, threshold, threshold_mode):
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode

    def _reset(self):
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    def step(self, metrics: Rate, epoch: int | None = None) -> None:
        """Record a metric, a number or one-element tensor, and reduce the rates if it has
        stagnated.
        """
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        metric = float(metrics)
        if self._is_better(metric, self.best):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = rates(self.optimizer)

    def _reduce_lr(self):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}): set "
                    "`min_lrs` to a list of as many"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            after = max(before * self.factor, least)
            if before - after > self.eps:
                set_rate(group, after)

    @property
    def in_cooldown(self) -> bool:
        """Whether the scheduler waits after a reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        if self.mode == "min":
            limit = best * (1.0 - self.threshold), best - self.threshold
            return a < limit[self.threshold_mode == "abs"]
        limit = best * (1.0 + self.threshold), best + self.threshold
        return a > limit[self.threshold_mode == "abs"]

    def load_state_dict(self, state_dict: Options) -> None:
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
