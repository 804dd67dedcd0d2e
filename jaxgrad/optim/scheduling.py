"""`LRScheduler`, the base class of learning rate schedulers."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Sequence

from ..autograd.grad_mode import no_grad
from ..state.objects import exact
from ..tape.tensor import Tensor
from .groups import outermost
from .new_optimizers import scope_of
from .optimizer import Optimizer
from .options import Options, Rate

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. An epoch uses the closed form "
    "of the schedule if it has one"
)
TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite "
    "order: otherwise the first learning rate of the schedule is never used"
)
OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`"
)
NOT_HERE = (
    "{}.step {} in a function that jaxgrad.jit is tracing. There schedulers step once, after the "
    "call: step it outside. Rates are inputs of the program, so new ones do not trace again"
)
NOT_YET = (
    "the learning rates after a scheduler's step are unknown in a function that jaxgrad.jit is "
    "tracing. There schedulers step after the call: call get_last_lr() outside"
)
NOT_LAST = "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."


def check_optimizer(optimizer: Optimizer) -> None:
    """Raise TypeError unless `optimizer` is an `Optimizer`."""
    if not isinstance(optimizer, Optimizer):
        is_class = isinstance(optimizer, type) and issubclass(optimizer, Optimizer)
        hint = f": call the class, {optimizer.__name__}(...), to make one" if is_class else ""
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer{hint}")


def rates(optimizer: Optimizer, name: str = "lr") -> list[Rate]:
    """Return the option `name` of each group; tensors are copied."""
    values = [group[name] for group in optimizer.param_groups]
    return [option.clone() if isinstance(option, Tensor) else option for option in values]


def set_rate(group: Options, value: Rate, name: str = "lr") -> None:
    """Set an option of a group; a tensor is filled in place."""
    if isinstance(group[name], Tensor):
        with no_grad():
            group[name].fill_(value)
    else:
        group[name] = value


def for_groups(name: str, optimizer: Optimizer, value: Rate | Sequence[Rate]) -> list[Rate]:
    """Return one value for each group; a single value serves all. Raises ValueError for another
    length.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        value = [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {count}."
        )
    return [option.clone() if isinstance(option, Tensor) else option for option in value]


def _after_traced_call(step):
    """Wrap a scheduler's `step` to run, under a trace, once after each call of the program."""

    @functools.wraps(step)
    def call(self, *args, **kwargs):
        scope = scope_of(self.optimizer)
        if scope is None:
            return step(self, *args, **kwargs)
        return self._wait(scope, args or kwargs)

    return call


class LRScheduler:
    """The base class of schedulers: each `step` sets the rates of all groups to `get_lr()`.

    optimizer: an `Optimizer`. last_epoch: the epoch to resume after, or -1 to start. A subclass
    defines `get_lr()`, from `self.last_epoch`, `self.base_lrs` and the groups. In a function
    compiled by `jaxgrad.jit`, `step` takes effect after the call. Raises TypeError for another
    optimizer, KeyError if a group lacks `initial_lr` to resume.

    >>> class Halved(jaxgrad.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=0.5)
    >>> scheduler = Halved(optimizer)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    _reported = frozenset()  # code other than jaxgrad's is observed where it reads a scheduler

    optimizer: Optimizer
    base_lrs: list[Rate]
    last_epoch: int
    _get_lr_called_within_step = False
    _is_initial = False

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = _after_traced_call(cls.__dict__["step"])

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for number, (group, rate) in enumerate(
            zip(optimizer.param_groups, rates(optimizer), strict=True)
        ):
            if last_epoch == -1:
                group.setdefault("initial_lr", rate)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming "
                    "scheduler with last_epoch >= 0: load the optimizer's state first, or leave "
                    "last_epoch out where training begins"
                )
        self.base_lrs = rates(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        if not optimizer._is_scheduled:
            optimizer._is_scheduled, optimizer._opt_called = True, False
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> Options:
        """Return the attributes of the scheduler except the optimizer.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
        >>> jaxgrad.optim.lr_scheduler.ExponentialLR(optimizer, 0.5).state_dict()["gamma"]
        0.5
        """
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: Options) -> None:
        """Restore what `state_dict` returned.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = jaxgrad.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> scheduler.load_state_dict({"gamma": 0.9})
        >>> scheduler.gamma
        0.9
        """
        vars(self).update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """Return the rates of the groups that the last step set.

        Raises RuntimeError under a trace after the scheduler's step.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
        >>> jaxgrad.optim.lr_scheduler.ExponentialLR(optimizer, 0.5).get_last_lr()
        [1.0]
        """
        scope = scope_of(self.optimizer)
        if scope is not None:
            if any(group.is_waiting(scope) for group in self.optimizer.param_groups):
                raise RuntimeError(NOT_YET)
            scope.objects.guard(self, _last)
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """Return the rates of the groups at `self.last_epoch`; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}.get_lr")

    # ---- steps

    def _wait(self, scope, arguments):
        if arguments:
            raise RuntimeError(NOT_HERE.format(type(self).__name__, "that is given a number"))
        if scope.is_inner or scope.objects.is_set(self, "_calls"):
            raise RuntimeError(NOT_HERE.format(type(self).__name__, "more than once"))
        scope.objects.record_set(self, "_calls")
        for group in self.optimizer.param_groups:
            group.waits_for = weakref.ref(outermost(scope))

    @property
    def _calls(self):
        """Return a value that always differs, so that it is set after each call of the program."""
        return object()

    @_calls.setter
    def _calls(self, _):
        """Step the scheduler."""
        self.step()

    @_after_traced_call
    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch and set the rates.

        epoch: deprecated; the epoch to jump to, by the closed form of the schedule if it has one.
        Raises RuntimeError under a trace if it is called twice or with an epoch.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = jaxgrad.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> optimizer.param_groups[0]["lr"]
        0.5
        """
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self):
        optimizer = self.optimizer
        if "step" in vars(optimizer):
            warnings.warn(OVERRIDDEN, UserWarning, stacklevel=3)
        elif not (optimizer._opt_called or optimizer._is_traced):
            warnings.warn(TOO_EARLY, UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        is_closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
        self._set_rates(self._get_closed_form_lr if is_closed else self.get_lr)

    def _set_rates(self, give):
        self._get_lr_called_within_step = True
        try:
            values = give()
        finally:
            self._get_lr_called_within_step = False
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_rate(group, value)
        self._last_lr = rates(self.optimizer)

    # ---- helpers of `get_lr`

    def _current_rates(self) -> list[Rate]:
        return rates(self.optimizer)

    def _multiply(self, factor: float) -> list[Rate]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _warn_outside(self):
        if not self._get_lr_called_within_step:
            warnings.warn(NOT_LAST, UserWarning, stacklevel=3)


def _last(scheduler):
    return list(map(exact, scheduler._last_lr))
