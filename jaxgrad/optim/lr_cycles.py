"""Schedulers that go up and down: one cycle, many, warm restarts."""

from __future__ import annotations

import math
import types

from ..tape.tensor import Tensor
from .scheduling import LRScheduler, check_optimizer, for_groups, set_rate


class _OfMomentumToo(LRScheduler):
    """Schedulers that set the momentum too: `momentum`, or the first of `betas`."""

    def begin_momentum(self, optimizer, base, largest, last_epoch):
        """Note the two ends in the groups, and begin with the larger."""
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

    def set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


def _cosine(start, end, part):
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _line(start, end, part):
    return (end - start) * part + start


class OneCycleLR(_OfMomentumToo):
    """Up to `max_lr` and then far down, once in `total_steps` (or `epochs * steps_per_epoch`)
    steps; the momentum goes the other way. To be called after each batch.

    pct_start: the part of the steps that goes up; anneal_strategy: `"cos"` or `"linear"`;
    div_factor: how much less than `max_lr` the first rate is; final_div_factor: how much less than
    that the last is; three_phase: to come down as long as it went up, and then further. Raises
    ValueError for numbers that make no sense, and for a step too many.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = jaxgrad.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=10)
    >>> round(optimizer.param_groups[0]["lr"], 6), optimizer.param_groups[0]["momentum"]
    (0.02, 0.95)
    """

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
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

    def get_lr(self):
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
        between = {"cos": _cosine, "linear": _line}[self._anneal_func_type]
        for group in self.optimizer.param_groups if self.cycle_momentum else ():
            ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
            self.set_momentum(group, between(*ends, part))
        return [
            between(group[phase["start_lr"]], group[phase["end_lr"]], part)
            for group in self.optimizer.param_groups
        ]


def _steps(total, epochs, each) -> int:
    if total is not None:
        given = {"total_steps": total}
    elif epochs is not None and each is not None:
        given = {"epochs": epochs, "steps_per_epoch": each}
    else:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(part, total, is_three) -> list[dict]:
    """The phases of a cycle: where each ends, and what of a group its rate and momentum go
    between.
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


class CyclicLR(_OfMomentumToo):
    """Up from `base_lr` to `max_lr` in `step_size_up` steps and down again, again and again; the
    momentum goes the other way.

    mode: `"triangular"`, `"triangular2"` (half as high each time), `"exp_range"` (by `gamma` each
    step lower); or scale_fn, of the number of the cycle, or of the step, as `scale_mode` says.
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
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
        self.scale_mode, self.cycle_momentum = scale_mode, cycle_momentum
        if cycle_momentum:
            self.base_momentums = for_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_groups("max_momentum", optimizer, max_momentum)
            ends = self.base_momentums, self.max_momentums
            self.begin_momentum(optimizer, *ends, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x) -> float:
        """How high the cycle or the step `x` goes, in parts of the whole height."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self):
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

    def state_dict(self):
        state, function = super().state_dict(), self._scale_fn_custom
        is_object = function is not None and not isinstance(function, types.FunctionType)
        return state | {"_scale_fn_custom": vars(function).copy() if is_object else None}

    def load_state_dict(self, state_dict):
        rest = {name: value for name, value in state_dict.items() if name != "_scale_fn_custom"}
        super().load_state_dict(rest)
        if state_dict["_scale_fn_custom"] is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down to `eta_min` as half a cosine in `T_0` epochs, then from the top again, each time in
    `T_mult` times as many. `step` takes parts of epochs too.
    """

    def __init__(self, optimizer, T_0: int, T_mult: int = 1, eta_min=0.0, last_epoch: int = -1):
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

    def get_lr(self):
        self._warn_outside()
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch=None):
        """Go on to the next epoch, or to the one that is given, 0.5 for the middle of the first."""
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
