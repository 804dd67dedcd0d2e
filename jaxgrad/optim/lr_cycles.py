"""Cyclic schedulers: `OneCycleLR`, `CyclicLR` and cosine annealing with warm restarts."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Literal

from ..tape.tensor import Tensor
from .optimizer import Optimizer
from .options import Options, Rate
from .scheduling import LRScheduler, check_optimizer, for_groups, set_rate


class _MomentumScheduler(LRScheduler):
    """The base class of schedulers that also set `momentum` or the first of `betas`."""

    use_beta1: bool

    def begin_momentum(
        self,
        optimizer: Optimizer,
        base: list[Rate],
        largest: list[Rate],
        last_epoch: int,
    ) -> None:
        """Store the bounds of the momentum in the groups and set it to the upper one.

        Raises ValueError if the optimizer has no momentum.
        """
        known = optimizer.defaults
        if "momentum" not in known and "betas" not in known:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled: "
                f"{type(optimizer).__name__} has neither"
            )
        self.use_beta1 = "betas" in known
        if last_epoch != -1:
            return
        for group, low, high in zip(optimizer.param_groups, base, largest, strict=True):
            self.set_momentum(group, high)
            group["max_momentum"], group["base_momentum"] = high, low

    def set_momentum(self, group: Options, value: Rate) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


def _cosine(start, end, part):
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _linear(start, end, part):
    return (end - start) * part + start


class OneCycleLR(_MomentumScheduler):
    """Raise the rates to `max_lr` and anneal them far below, in one cycle; the momentum does the
    reverse.

    Step it after each batch. total_steps: or `epochs` and `steps_per_epoch`. pct_start: the
    fraction of steps that raises. anneal_strategy: "cos" or "linear". The first rate is `max_lr /
    div_factor`, the last one the first divided by `final_div_factor`. three_phase: lower as long as
    it raised, then anneal. Raises ValueError for options out of range and for more than
    `total_steps` steps. Source: Smith and Topin, "Super-Convergence: Very Fast Training Using Large
    Learning Rates", 2017.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = jaxgrad.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=10)
    >>> round(optimizer.param_groups[0]["lr"], 6), optimizer.param_groups[0]["momentum"]
    (0.02, 0.95)
    """

    total_steps: int

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        self.total_steps = _steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        highest = for_groups("max_lr", optimizer, max_lr)
        for group, rate in zip(optimizer.param_groups, highest, strict=True):
            if last_epoch == -1:
                group["initial_lr"], group["max_lr"] = rate / div_factor, rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            low = for_groups("base_momentum", optimizer, base_momentum)
            high = for_groups("max_momentum", optimizer, max_momentum)
            self.begin_momentum(optimizer, low, high, last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start, phases = 0.0, list(self._schedule_phases)
        while self.last_epoch > phases[0]["end_step"] and len(phases) > 1:
            start = phases.pop(0)["end_step"]
        phase = phases[0]
        part = (self.last_epoch - start) / (phase["end_step"] - start)
        between = {"cos": _cosine, "linear": _linear}[self._anneal_func_type]
        for group in self.optimizer.param_groups if self.cycle_momentum else ():
            ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
            self.set_momentum(group, between(*ends, part))
        return [
            between(group[phase["start_lr"]], group[phase["end_lr"]], part)
            for group in self.optimizer.param_groups
        ]


def _steps(total, epochs, per_epoch) -> int:
    if total is not None:
        counts = {"total_steps": total}
    elif epochs is not None and per_epoch is not None:
        counts = {"epochs": epochs, "steps_per_epoch": per_epoch}
    else:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in counts.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(counts.values())


def _phases(part, total, is_three) -> list[dict]:
    """Return the phases of a cycle: the last step, and the options between which rate and momentum
    move.
    """
    names = "end_step", "start_lr", "end_lr", "start_momentum", "end_momentum"
    up = (float(part * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    down = (total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
    phases = [up, down]
    if is_three:
        back = float(2 * part * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"
        out = (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
        phases = [up, back, out]
    return [dict(zip(names, phase, strict=True)) for phase in phases]


class CyclicLR(_MomentumScheduler):
    """Move the rates between `base_lr` and `max_lr` and back, again and again; the momentum does
    the reverse.

    It rises for `step_size_up` and falls for `step_size_down` steps. mode: "triangular",
    "triangular2" (half the height each cycle) or "exp_range" (height `gamma**t`). scale_fn: the
    height as a function of the cycle or the step, by `scale_mode` "cycle" or "iterations". Raises
    ValueError for an unknown mode. Source: Smith, "Cyclical Learning Rates for Training Neural
    Networks", 2015.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> cycle = jaxgrad.optim.lr_scheduler.CyclicLR
    >>> scheduler = cycle(optimizer, base_lr=0.5, max_lr=1.5, step_size_up=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [1.0]
    """

    max_lrs: list[Rate]
    base_momentums: list[Rate]
    max_momentums: list[Rate]
    total_size: float
    step_ratio: float
    scale_mode: str

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
            if last_epoch == -1:
                set_rate(group, rate)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None: {mode!r}")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
            if mode == "exp_range":
                self._scale_fn_ref = functools.partial(CyclicLR._exp_range_scale_fn, gamma)
            else:
                self._scale_fn_ref = getattr(CyclicLR, f"_{mode}_scale_fn")
        self.scale_mode, self.cycle_momentum = scale_mode, cycle_momentum
        if cycle_momentum:
            self.base_momentums = for_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_groups("max_momentum", optimizer, max_momentum)
            ends = self.base_momentums, self.max_momentums
            self.begin_momentum(optimizer, *ends, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the relative height of the cycle or step `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return self._scale_fn_ref(x)

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        is_up = x <= self.step_ratio
        part = x / self.step_ratio if is_up else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ends = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, ends, strict=True):
                self.set_momentum(group, high - (high - low) * part * scale)
        ends = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * part * scale for low, high in ends]

    def state_dict(self) -> Options:
        state, function = super().state_dict(), self._scale_fn_custom
        for name in ("_scale_fn_ref", "_scale_fn_custom"):
            state.pop(name, None)
        is_object = function is not None and not isinstance(function, types.FunctionType)
        return state | {"_scale_fn_custom": vars(function).copy() if is_object else None}

    def load_state_dict(self, state_dict: Options) -> None:
        state = {name: value for name, value in state_dict.items() if name != "_scale_fn_custom"}
        super().load_state_dict(state)
        if state_dict["_scale_fn_custom"] is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])


class CosineAnnealingWarmRestarts(LRScheduler):
    """Anneal the rates as `eta_min + (lr0 - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2`, and
    restart.

    T_0: the epochs `T_i` of the first cycle. T_mult: the factor of each next cycle. T_cur: the
    epochs since the last restart. Raises ValueError for other types or ranges. Source: Loshchilov
    and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2016.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    T_i: int
    T_cur: float

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int) or isinstance(eta_min, Tensor):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min, self.T_cur = T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or jump to `epoch`, which may be fractional. Raises ValueError
        below 0.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr)

    def _jump(self, epoch):
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            times = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            begin = self.T_0 * (self.T_mult**times - 1) / (self.T_mult - 1)
            self.T_cur, self.T_i = epoch - begin, self.T_0 * self.T_mult**times
