"""Losses that are scaled, so that small gradients of half precision are not zero, and steps that
are left out where a gradient has become infinite.
"""

from __future__ import annotations

import contextlib
import enum
import warnings

import jax

from .. import ops
from ..autograd.grad_mode import no_grad
from ..capture import scope as tracing
from ..core import dtypes
from ..core.device import has
from ..frontend import factories
from ..ops import autocast
from ..optim.sgd import SGD
from ..tape import mode
from ..tape.tensor import Tensor, is_concrete, wrap


class Stage(enum.Enum):
    """What has been done with an optimizer since the last `update()`."""

    READY, UNSCALED, STEPPED = range(3)


class GradScaler:
    """A loss times a factor, its gradients divided by it before a step, and the step left out where
    one of them is infinite or NaN.

    Call `scaler.scale(loss).backward()`, `scaler.step(optimizer)`, then `scaler.update()`: that
    multiplies the factor by `backoff_factor` after a step that was left out, and by `growth_factor`
    after `growth_interval` others. To look at gradients before, call `unscale_(optimizer)`. device:
    "cuda", "cpu" or "tpu"; for "cuda" without one it gives a warning, and is not enabled. Where it
    is not enabled, `step` is the optimizer's, and the rest does nothing.

    A function compiled by `jaxgrad.jit` that calls all three is one program: parameters and state
    of an optimizer keep their values where a step is left out.

    >>> weight = jaxgrad.ones(2, requires_grad=True)
    >>> optimizer = jaxgrad.optim.SGD([weight], lr=0.5)
    >>> scaler = jaxgrad.amp.GradScaler("cpu", init_scale=4.0)
    >>> scaler.scale((weight * weight).sum()).backward()
    >>> weight.grad
    tensor([8., 8.])
    >>> scaler.step(optimizer), scaler.update()
    (None, None)
    >>> weight, scaler.get_scale()
    (tensor([0., 0.], requires_grad=True), 4.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if enabled and device == "cuda" and not has(device):
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            enabled = False
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._device, self._enabled = device, enabled
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        # by the `id` of an optimizer, its stage and whether one of its gradients is infinite
        self._stages: dict[int, tuple[Stage, Tensor]] = {}

    # ---- a step

    def scale(self, outputs):
        """A tensor, or an iterable of tensors, times the factor. ValueError for anything else."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._begun()
        if isinstance(outputs, list | tuple):
            return type(outputs)(map(self.scale, outputs))
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _begun(self) -> Tensor:
        if self._scale is None:
            with contextlib.nullcontext() if mode.scope.get() is None else tracing.outside():
                self._scale = factories.full((), self._init_scale, dtype=dtypes.float32)
                self._growth_tracker = factories.full(
                    (), self._init_growth_tracker, dtype=dtypes.int32
                )
        return self._scale

    def _known(self, what) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    def unscale_(self, optimizer):
        """Divide the gradients of an optimizer by the factor, and note whether all are finite.

        Raises RuntimeError where that has been done since the last `update()`, ValueError for
        gradients of float16.
        """
        if not self._enabled:
            return
        scale = self._known("unscale_")
        stage, _ = self._stages.get(id(optimizer), (Stage.READY, None))
        if stage is Stage.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if stage is Stage.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with no_grad(), autocast.entered(None):
            inverse = scale.double().reciprocal().float()
            found = [_unscale(grad, inverse) for grad in _gradients(optimizer)]
        if found:
            flag = ops.stack(found).any()
            self._stages[id(optimizer)] = Stage.UNSCALED, flag

    def step(self, optimizer, *args, **kwargs):
        """`unscale_(optimizer)`, unless that has been done, and the optimizer's step, unless a
        gradient is not finite. Gives what the step gives; arguments are passed on.

        Raises RuntimeError for a closure, and where a step has been taken since the last
        `update()`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._known("step")
        if self._stages.get(id(optimizer), (None,))[0] is Stage.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._stages:
            self.unscale_(optimizer)
        if id(optimizer) not in self._stages:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        _, found = self._stages[id(optimizer)]
        if is_concrete(found):
            result = None if found.item() else optimizer.step(*args, **kwargs)
        else:
            del self._stages[id(optimizer)]  # nothing of a trace is kept, should it end here
            result = _step_unless(found, optimizer, args, kwargs)
        self._stages[id(optimizer)] = Stage.STEPPED, found
        return result

    def update(self, new_scale: float | Tensor | None = None):
        """Adapt the factor to what the steps since the last `update()` have found, or set it."""
        if not self._enabled:
            return
        scale, stages = self._known("update"), self._stages
        self._stages = {}
        if new_scale is not None:
            if isinstance(new_scale, Tensor) and (
                new_scale.numel() != 1 or new_scale.requires_grad
            ):
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.FloatTensor with "
                    "requires_grad=False."
                )
            with no_grad():
                scale.copy_(new_scale) if isinstance(new_scale, Tensor) else scale.fill_(new_scale)
            return
        if not stages:
            raise AssertionError("No inf checks were recorded prior to update.")
        with no_grad():
            self._adapt(ops.stack([found for _, found in stages.values()]).any())

    def _adapt(self, found):
        scale, tracker = self._scale, self._growth_tracker
        growth = tracing.number(lambda: self._growth_factor)
        backoff = tracing.number(lambda: self._backoff_factor)
        interval = tracing.number(lambda: self._growth_interval)
        grown, counted = scale * growth, tracker + 1
        is_time = counted == interval
        grown = ops.where(is_time & grown.isfinite(), grown, scale)
        counted = ops.where(is_time | found, 0, counted)
        scale.copy_(ops.where(found, scale * backoff, grown))
        tracker.copy_(counted)

    # ---- what it is set to

    def is_enabled(self) -> bool:
        return self._enabled

    def get_scale(self) -> float:
        """The factor; 1.0 where it is not enabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float):
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float):
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int):
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def state_dict(self) -> dict:
        """What it is set to, as numbers; empty where it is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict):
        """Take on what `state_dict` gave. Raises RuntimeError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)


def _gradients(optimizer):
    parameters = [param for group in optimizer.param_groups for param in group["params"]]
    return [param.grad for param in parameters if param.grad is not None]


def _unscale(grad: Tensor, inverse: Tensor) -> Tensor:
    """Scale a gradient in place; gives whether it has a number that is not finite."""
    if grad.dtype is dtypes.float16:
        raise ValueError("Attempting to unscale FP16 gradients.")
    found = grad.isfinite().logical_not().any()
    grad.mul_(inverse.to(grad.dtype))
    return found


# ---- a step inside of a trace, where it is not known whether it is to be taken


def _tensors(optimizer) -> list[Tensor]:
    """The parameters of an optimizer, and its state."""
    state = [value for each in optimizer.state.values() for value in each.values()]
    parameters = [param for group in optimizer.param_groups for param in group["params"]]
    found = [each for each in (*parameters, *state) if isinstance(each, Tensor)]
    return list({id(each): each for each in found}.values())


def _step_unless(found: Tensor, optimizer, args, kwargs):
    """Take a step, and give back to all tensors what they were where it is to be left out."""
    state = {param: dict(entry) for param, entry in optimizer.state.items()}
    before = {id(each): each._array for each in _tensors(optimizer)}
    result = optimizer.step(*args, **kwargs)
    after = _tensors(optimizer)
    made = [each for each in after if id(each) not in before]
    before |= {id(each): _first(optimizer, each) for each in made}
    if any(before[id(each)] is None for each in made):
        optimizer.state.clear()
        optimizer.state.update(state)
        raise RuntimeError(
            f"the first step of {type(optimizer).__name__} makes state of its gradients, and a "
            "compiled function does not know whether it is to be left out: call "
            "scaler.step(optimizer) once before it is compiled"
        )
    with no_grad():
        for tensor in after:
            tensor.copy_(ops.where(found, wrap(before[id(tensor)]), tensor.detach()))
    return result


def _first(optimizer, tensor: Tensor):
    """What a tensor was before the step that has made it part of the state; None where that cannot
    be told."""
    scope = mode.scope.get()
    captured = None if scope is None else scope.captured.get(id(tensor))
    if captured is not None:
        return captured.tracer
    has_zeros = isinstance(optimizer, SGD) and scope is not None
    if has_zeros and not any(group["dampening"] for group in optimizer.param_groups):
        return jax.numpy.zeros_like(tensor._array)  # as good as no momentum
    return None
