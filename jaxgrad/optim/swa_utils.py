"""Averages of the weights of a model over training, as torch.optim.swa_utils."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.device import DeviceLike
from ..frontend.factories import zeros
from ..names.missing import missing_in
from ..nn.module import Module
from ..nn.normalization import _BatchNorm
from ..tape.tensor import Tensor, is_concrete
from .optimizer import Optimizer
from .options import Rate
from .scheduling import LRScheduler, for_groups

__all__ = [
    "AveragedModel",
    "update_bn",
    "SWALR",
    "get_ema_multi_avg_fn",
    "get_swa_multi_avg_fn",
    "get_ema_avg_fn",
    "get_swa_avg_fn",
]


_Average = Callable[[Tensor, Tensor, Tensor | int], Tensor]
_AverageOfLists = Callable[[list[Tensor], list[Tensor], Tensor | int], None]


def _checked(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )
    return decay


def get_ema_avg_fn(decay: float = 0.999) -> _Average:
    """Return the function of an exponential average: `decay` of the old one. Raises ValueError for
    a decay that is not between 0 and 1.

    >>> jaxgrad.optim.swa_utils.get_ema_avg_fn(0.9)(1.0, 2.0, 5)
    1.1
    """
    _checked(decay)
    return lambda average, current, count: decay * average + (1 - decay) * current


def get_swa_avg_fn() -> _Average:
    """Return the function of the mean of all models so far.

    >>> jaxgrad.optim.swa_utils.get_swa_avg_fn()(1.0, 2.0, 1)
    1.5
    """
    return lambda average, current, count: average + (current - average) / (count + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> _AverageOfLists:
    """Return the function of exponential averages that writes to a list of them: `decay` of the old
    ones. Averages of integers are rounded towards zero. Raises ValueError for a decay that is not
    between 0 and 1.

    >>> averages = [jaxgrad.tensor([1.0])]
    >>> jaxgrad.optim.swa_utils.get_ema_multi_avg_fn(0.5)(averages, [jaxgrad.tensor([2.0])], 1)
    >>> averages
    [tensor([1.5000])]
    """
    single = get_ema_avg_fn(decay)

    def average(averages, currents, count):
        for tensor, current in zip(averages, currents, strict=True):
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.lerp_(current, 1 - decay)
            else:
                tensor.copy_(single(tensor, current, count))

    return average


def get_swa_multi_avg_fn() -> _AverageOfLists:
    """Return the function of means of all models so far that writes to a list of them.

    >>> averages = [jaxgrad.tensor([1.0])]
    >>> jaxgrad.optim.swa_utils.get_swa_multi_avg_fn()(averages, [jaxgrad.tensor([4.0])], 2)
    >>> averages
    [tensor([2.])]
    """

    def average(averages, currents, count):
        for tensor, current in zip(averages, currents, strict=True):
            tensor.add_((current - tensor) / (count + 1))

    return average


class AveragedModel(Module):
    """The average of a model over training. It is called as the model is, and `module` has the
    averaged weights.

    model: is copied. device: of the copy. avg_fn: gives an average of the old one, the current
    weight and the count of models so far; multi_avg_fn: writes a list of them. By default it is the
    mean of all. use_buffers: whether to average buffers too, which are copied otherwise. Raises
    AssertionError if both functions are given.

    >>> model = jaxgrad.nn.Linear(1, 1, bias=False)
    >>> average = jaxgrad.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = jaxgrad.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    3.0
    """

    module: Module
    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: DeviceLike | None = None,
        avg_fn: _Average | None = None,
        multi_avg_fn: _AverageOfLists | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", zeros((), dtype=dtypes.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Include the present weights of a model in the average; the first are copied."""
        averages, currents = (self._averaged(module) for module in (self.module, model))
        pairs = zip(averages, currents, strict=True)
        currents = [current.detach().to(average.device) for average, current in pairs]
        count = self.n_averaged
        if not is_concrete(count):  # compiled, for the first call too
            copies = [average.clone() for average in averages]
            self._average(copies, currents, count)
            pairs = zip(currents, copies, strict=True)
            currents = [ops.where(count == 0, current, average) for current, average in pairs]
        elif count > 0:
            self._average(averages, currents, count)
            currents = averages
        for average, current in zip(averages, currents, strict=True):
            if average is not current:
                average.copy_(current)
        if not self.use_buffers:
            for average, current in zip(self.module.buffers(), model.buffers(), strict=True):
                average.copy_(current)
        self.n_averaged += 1

    def _averaged(self, model) -> list[Tensor]:
        buffers = model.buffers() if self.use_buffers else ()
        return list(itertools.chain(model.parameters(), buffers))

    def _average(self, averages, currents, count):
        if self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, currents, count)
            return
        average = self.avg_fn or get_swa_avg_fn()
        for tensor, current in zip(averages, currents, strict=True):
            tensor.copy_(average(tensor.detach(), current, count))


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: DeviceLike | None = None) -> None:
    """Compute the running statistics of all batch norms of a model anew, as means over batches.

    loader: gives the inputs of the model, or lists and tuples that begin with them. device:
    to which inputs go. The mode of the model, training or not, stays.

    >>> model = jaxgrad.nn.BatchNorm1d(1)
    >>> loader = [jaxgrad.zeros(2, 1), jaxgrad.full((2, 1), 4.0)]
    >>> jaxgrad.optim.swa_utils.update_bn(loader, model)
    >>> model.running_mean
    tensor([2.])
    """
    layers = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not layers:
        return
    momenta, was_training = [layer.momentum for layer in layers], model.training
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    model.train()
    try:
        for batch in loader:
            inputs = batch[0] if isinstance(batch, list | tuple) else batch
            model(inputs if device is None else inputs.to(device))
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Anneal the rates to `swa_lr`, and keep them there.

    swa_lr: a number, or one for each group. anneal_epochs: in how many steps; anneal_strategy:
    "cos" or "linear". Raises ValueError for others.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = jaxgrad.optim.swa_utils.SWALR(optimizer, 0.5, 2, "linear")
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ):
        for group, rate in zip(
            optimizer.param_groups, for_groups("swa_lr", optimizer, swa_lr), strict=True
        ):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, share = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            rate, target = group["lr"], group["swa_lr"]
            # the rate from which the annealing began
            start = target if before == 1 else (rate - before * target) / (1 - before)
            rates.append(target * share + start * (1 - share))
        return rates

    def _part(self, step) -> float:
        """How far the rates are annealed, from 0 to 1."""
        return self.anneal_func(max(0.0, min(1.0, step / max(1, self.anneal_epochs))))

    @property
    def anneal_func(self) -> Callable[[float], float]:
        """The function of the strategy, from 0 to 1."""
        return self._cosine_anneal if self._anneal_strategy == "cos" else self._linear_anneal

    @staticmethod
    def _cosine_anneal(part: float) -> float:
        return (1 - math.cos(math.pi * part)) / 2

    @staticmethod
    def _linear_anneal(part: float) -> float:
        return part

    def __getstate__(self):
        """The attributes, among which PyTorch saves the function."""
        return {**vars(self), "anneal_func": self.anneal_func}

    def __setstate__(self, state):
        vars(self).update(state)
        vars(self).pop("anneal_func", None)


__getattr__ = missing_in(__name__)
