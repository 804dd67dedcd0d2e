"""Learning rate schedulers that compute PyTorch's numbers.

In the formulas below, `lr0` is a group's initial rate and `t` is the epoch. A new rate compiles
nothing, eagerly or under `jaxgrad.jit`.

>>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
>>> scheduler = jaxgrad.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
>>> rates = []
>>> for _ in range(5):
...     rates += scheduler.get_last_lr()
...     optimizer.step()
...     scheduler.step()
>>> rates
[1.0, 1.0, 0.5, 0.5, 0.25]
"""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ..names.missing import missing_in
from .lr_combined import ChainedScheduler as ChainedScheduler
from .lr_combined import ReduceLROnPlateau as ReduceLROnPlateau
from .lr_combined import SequentialLR as SequentialLR
from .lr_cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from .lr_cycles import CyclicLR as CyclicLR
from .lr_cycles import OneCycleLR as OneCycleLR
from .optimizer import Optimizer
from .options import Options, Rate
from .scheduling import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .scheduling import LRScheduler as LRScheduler

_LRScheduler = LRScheduler
_Function = Callable[[int], float]


class _FunctionScheduler(LRScheduler):
    """Rates from a function of the epoch for each group."""

    lr_lambdas: list[_Function]

    def __init__(
        self, optimizer: Optimizer, lr_lambda: _Function | Sequence[_Function], last_epoch: int = -1
    ):
        count = len(optimizer.param_groups)
        several = isinstance(lr_lambda, list | tuple)
        if several and len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda) if several else [lr_lambda] * count
        for function in self.lr_lambdas:
            if not callable(function):
                kind = type(function).__name__
                raise TypeError(f"lr_lambda should be a function, but got {kind}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> Options:
        """Return the attributes except the optimizer; for callable objects theirs, for functions
        None.
        """
        known = [
            None if isinstance(function, types.FunctionType) else vars(function).copy()
            for function in self.lr_lambdas
        ]
        state = super().state_dict()
        del state["lr_lambdas"]
        return state | {"lr_lambdas": known}

    def load_state_dict(self, state_dict: Options) -> None:
        state = {name: value for name, value in state_dict.items() if name != "lr_lambdas"}
        super().load_state_dict(state)
        for function, known in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if known is not None:
                vars(function).update(known)


class LambdaLR(_FunctionScheduler):
    """Set each rate to `lr0 * lr_lambda(t)`.

    lr_lambda: a function of the epoch, or a list of one for each group. Raises ValueError for a
    list of another length, TypeError for a value that is not callable.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [rate * function(self.last_epoch) for function, rate in pairs]


class MultiplicativeLR(_FunctionScheduler):
    """Multiply each rate by `lr_lambda(t)` at each step.

    Arguments and errors are those of `LambdaLR`.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        if self._is_initial:
            return self._current_rates()
        pairs = zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        return [group["lr"] * function(self.last_epoch) for function, group in pairs]


class StepLR(LRScheduler):
    """Set each rate to `lr0 * gamma ** (t // step_size)`.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        if not self.step_size:
            raise ZeroDivisionError("StepLR: step_size is 0, and must be at least 1")
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._current_rates()
        return self._multiply(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiply each rate by `gamma` at each of the epochs `milestones`.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    milestones: Counter[int]

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ):
        if isinstance(milestones, int):
            raise TypeError(f"MultiStepLR: milestones is a list of epochs, not {milestones}")
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def load_state_dict(self, state_dict: Options) -> None:
        super().load_state_dict(state_dict)
        self.milestones = Counter(self.milestones)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        if self.last_epoch not in self.milestones:
            return self._current_rates()
        return self._multiply(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [rate * self.gamma**passed for rate in self.base_lrs]


class ConstantLR(LRScheduler):
    """Set each rate to `lr0 * factor` until epoch `total_iters`, then to `lr0`.

    Raises ValueError if `factor` is outside [0, 1].

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> jaxgrad.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5).get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 <= factor <= 1:
            raise ValueError(
                f"Constant multiplicative factor expected to be between 0 and 1. It is {factor}"
            )
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        if self.last_epoch == 0:
            return self._multiply(self.factor)
        if self.last_epoch != self.total_iters:
            return self._current_rates()
        return self._multiply(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Rate]:
        is_over = self.last_epoch >= self.total_iters
        return [rate * (self.factor + is_over * (1 - self.factor)) for rate in self.base_lrs]


class LinearLR(LRScheduler):
    """Multiply `lr0` by a factor that changes linearly from `start_factor` to `end_factor`.

    It reaches `end_factor` at epoch `total_iters` and stays there. Raises ValueError for a
    `start_factor` outside (0, 1] or an `end_factor` outside [0, 1].

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> jaxgrad.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25).get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to "
                f"1. It is {start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(
                f"Ending multiplicative factor expected to be between 0 and 1. It is {end_factor}"
            )
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        if self.last_epoch == 0:
            return self._multiply(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_rates()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._multiply(1.0 + rise / before)

    def _get_closed_form_lr(self) -> list[Rate]:
        rise = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return [
            rate * (self.start_factor + rise * done / self.total_iters) for rate in self.base_lrs
        ]


class ExponentialLR(LRScheduler):
    """Set each rate to `lr0 * gamma ** t`.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        return self._current_rates() if self._is_initial else self._multiply(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [rate * self.gamma**self.last_epoch for rate in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Set each rate to `lr0 * (1 - min(t, total_iters) / total_iters) ** power`.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_rates()
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._multiply((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Rate]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * left**self.power for rate in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Set each rate to `eta_min + (lr0 - eta_min) * (1 + cos(pi * t / T_max)) / 2`.

    Source: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2016.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        if self._is_initial:
            return self._current_rates()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            turn = 1 - math.cos(math.pi / self.T_max)
            pairs = zip(self.base_lrs, self._current_rates(), strict=True)
            return [rate + (base - self.eta_min) * turn / 2 for base, rate in pairs]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in self._current_rates()]

    def _height(self, epoch: float) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _get_closed_form_lr(self) -> list[Rate]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]


__getattr__ = missing_in(__name__)
