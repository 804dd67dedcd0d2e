"""`GradScaler`: loss scaling, which keeps small float16 gradients from underflow."""

from __future__ import annotations

import contextlib
import enum
import warnings
from collections import defaultdict

import jax

from .. import ops
from ..autograd.grad_mode import no_grad
from ..capture import scope as tracing
from ..core import dtypes
from ..core.device import device_of_jax, has
from ..frontend import factories
from ..names.missing import missing_in
from ..ops import autocast
from ..optim.sgd import SGD
from ..tape import mode
from ..tape.tensor import Tensor, is_traced, wrap


class OptState(enum.Enum):
    """The calls for an optimizer since the last `update()`."""

    READY, UNSCALED, STEPPED = range(3)


def _refresh_per_optimizer_state() -> dict:
    """What PyTorch notes of an optimizer at first: files name it."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Dynamic loss scaling: multiply the loss by a scale, divide the gradients by it before the
    step, and skip the step if one of them is infinite or NaN.

    Call `scaler.scale(loss).backward()`, `scaler.step(optimizer)` and `scaler.update()`, which
    multiplies the scale by `backoff_factor` after a skipped step and by `growth_factor` after
    `growth_interval` steps in a row. device: "cuda", "cpu" or "tpu"; "cuda" without a GPU warns and
    disables. A disabled scaler only calls `optimizer.step`. In a function compiled by
    `jaxgrad.jit`, a skipped step keeps the values of parameters and state. Raises AssertionError
    unless `growth_factor > 1 > backoff_factor`. Source: Micikevicius et al., "Mixed Precision
    Training", 2017.

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
        # By `id` of an optimizer: its stage, and whether a gradient is not finite.
        self._stages: dict[int, tuple[OptState, Tensor]] = {}

    def __getstate__(self):
        """The attributes that PyTorch saves, with numbers in place of tensors."""
        if self._enabled and self._stages:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at "
                "the end after scaler.update()."
            )
        state = {name: value for name, value in vars(self).items() if name != "_stages"}
        state["_per_optimizer_states"] = defaultdict(_refresh_per_optimizer_state)
        if not self._enabled:
            return state
        state |= {"_init_scale": self.get_scale(), "_scale": None, "_growth_tracker": None}
        return state | {"_init_growth_tracker": self._get_growth_tracker()}

    def __setstate__(self, state):
        vars(self).update({"_stages": {}, **state})
        vars(self).pop("_per_optimizer_states", None)

    # ---- a step

    def scale(self, outputs):
        """Multiply a tensor, or each tensor of a nested iterable, by the scale.

        Raises ValueError for other types.

        >>> jaxgrad.amp.GradScaler("cpu", init_scale=4.0).scale(jaxgrad.ones(1))
        tensor([4.])
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._lazy_scale()
        if isinstance(outputs, list | tuple):
            return type(outputs)(map(self.scale, outputs))
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _lazy_scale(self) -> Tensor:
        if self._scale is None:
            with contextlib.nullcontext() if mode.scope.get() is None else tracing.outside():
                place = device_of_jax()
                scale = factories.full((), self._init_scale, dtype=dtypes.float32, device=place)
                tracker = factories.full(
                    (), self._init_growth_tracker, dtype=dtypes.int32, device=place
                )
            self._scale, self._growth_tracker = scale, tracker
            observation = mode.open_observation()
            if observation is not None:  # or the next call would find other state
                observation.begin(self, _scale=scale, _growth_tracker=tracker)
        return self._scale

    def _require_scale(self, method) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {method} but _scale is None.  This may indicate your script did not "
                "use scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    def unscale_(self, optimizer):
        """Divide the gradients of an optimizer by the scale in place, and check whether all are
        finite.

        Call it before `step` to clip gradients. Raises RuntimeError on a second call before
        `update()`, ValueError for float16 gradients.

        >>> x = jaxgrad.ones(1, requires_grad=True)
        >>> scaler = jaxgrad.amp.GradScaler("cpu", init_scale=4.0)
        >>> scaler.scale(x.sum()).backward()
        >>> scaler.unscale_(jaxgrad.optim.SGD([x]))
        >>> x.grad
        tensor([1.])
        """
        if not self._enabled:
            return
        scale = self._require_scale("unscale_")
        stage, _ = self._stages.get(id(optimizer), (OptState.READY, None))
        if stage is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with no_grad(), autocast.entered(None):
            inverse = scale.double().reciprocal().float()
            flags = [_unscale(grad, inverse) for grad in _gradients(optimizer)]
        if flags:
            found_inf = ops.stack(flags).any()
            self._stages[id(optimizer)] = OptState.UNSCALED, found_inf

    def step(self, optimizer, *args, **kwargs):
        """Call `optimizer.step(*args, **kwargs)` and return its result, unless a gradient is not
        finite.

        Calls `unscale_` first if that has not been done. Raises RuntimeError for a closure and on a
        second call before `update()`.

        >>> x = jaxgrad.ones(1, requires_grad=True)
        >>> scaler = jaxgrad.amp.GradScaler("cpu")
        >>> scaler.scale(x.sum() * float("inf")).backward()
        >>> scaler.step(jaxgrad.optim.SGD([x]))
        >>> x
        tensor([1.], requires_grad=True)
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._require_scale("step")
        if self._stages.get(id(optimizer), (None,))[0] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._stages:
            self.unscale_(optimizer)
        if id(optimizer) not in self._stages:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        _, found_inf = self._stages[id(optimizer)]
        if not is_traced(found_inf):
            result = None if found_inf.item() else optimizer.step(*args, **kwargs)
        else:
            del self._stages[id(optimizer)]  # keeps no tracer if the step raises
            result = _step_if_finite(found_inf, optimizer, args, kwargs)
        self._stages[id(optimizer)] = OptState.STEPPED, found_inf
        return result

    def update(self, new_scale: float | Tensor | None = None):
        """Update the scale from the steps since the last `update()`, or set it to `new_scale`.

        new_scale: a number or a one-element tensor without grad. Raises AssertionError for another
        tensor, or if no step was taken.

        >>> scaler = jaxgrad.amp.GradScaler("cpu", init_scale=4.0)
        >>> _ = scaler.scale(jaxgrad.ones(1))
        >>> scaler.update(2.0)
        >>> scaler.get_scale()
        2.0
        """
        if not self._enabled:
            return
        scale, stages = self._require_scale("update"), dict(self._stages)
        self._stages.clear()  # the same dict: a compiled step would be traced for each other one
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
            found_inf = ops.stack([found_inf for _, found_inf in stages.values()]).any()
            # of DTensors it is one, and the scale is a tensor of the process
            is_sharded = hasattr(found_inf, "full_tensor")
            self._update_scale(found_inf.full_tensor() if is_sharded else found_inf)

    def _update_scale(self, found_inf):
        scale, tracker = self._scale, self._growth_tracker
        growth = tracing.number(lambda: self._growth_factor)
        backoff = tracing.number(lambda: self._backoff_factor)
        interval = tracing.number(lambda: self._growth_interval)
        grown, counted = scale * growth, tracker + 1
        grows = counted == interval
        grown = ops.where(grows & grown.isfinite(), grown, scale)
        counted = ops.where(grows | found_inf, 0, counted)
        scale.copy_(ops.where(found_inf, scale * backoff, grown))
        tracker.copy_(counted)

    # ---- settings

    def is_enabled(self) -> bool:
        """Return whether the scaler is enabled.

        >>> jaxgrad.amp.GradScaler("cpu", enabled=False).is_enabled()
        False
        """
        return self._enabled

    def get_scale(self) -> float:
        """Return the scale as a number; 1.0 if disabled.

        >>> jaxgrad.amp.GradScaler("cpu").get_scale()
        65536.0
        """
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Return the growth factor."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float):
        """Set the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the backoff factor."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float):
        """Set the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the growth interval."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int):
        """Set the growth interval.

        >>> scaler = jaxgrad.amp.GradScaler("cpu")
        >>> scaler.set_growth_interval(100)
        >>> scaler.get_growth_interval()
        100
        """
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def state_dict(self) -> dict:
        """Return scale, factors, interval and growth tracker as numbers; empty if disabled.

        >>> jaxgrad.amp.GradScaler("cpu").state_dict()["scale"]
        65536.0
        """
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
        """Restore what `state_dict` returned. Raises RuntimeError for an empty dict if enabled.

        >>> scaler = jaxgrad.amp.GradScaler("cpu")
        >>> scaler.load_state_dict(scaler.state_dict() | {"scale": 8.0})
        >>> scaler.get_scale()
        8.0
        """
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
    """Multiply a gradient in place; return whether an element is not finite."""
    if grad.dtype is dtypes.float16:
        raise ValueError("Attempting to unscale FP16 gradients.")
    found_inf = grad.isfinite().logical_not().any()
    grad.mul_(inverse.to(grad.dtype))
    return found_inf


# ---- a step under a trace, where it is not known whether it is skipped


def _tensors(optimizer) -> list[Tensor]:
    """Return the parameters of an optimizer and the tensors of its state."""
    state = [value for entry in optimizer.state.values() for value in entry.values()]
    parameters = [param for group in optimizer.param_groups for param in group["params"]]
    tensors = [value for value in (*parameters, *state) if isinstance(value, Tensor)]
    return list({id(tensor): tensor for tensor in tensors}.values())


def _step_if_finite(found_inf: Tensor, optimizer, args, kwargs):
    """Take a step, and restore all tensors where it is to be skipped."""
    state = {param: dict(entry) for param, entry in optimizer.state.items()}
    before = {id(tensor): tensor._array for tensor in _tensors(optimizer)}
    result = optimizer.step(*args, **kwargs)
    after = _tensors(optimizer)
    created = [tensor for tensor in after if id(tensor) not in before]
    before |= {id(tensor): _initial_value(optimizer, tensor) for tensor in created}
    if any(before[id(tensor)] is None for tensor in created):
        optimizer.state.clear()
        optimizer.state.update(state)
        raise RuntimeError(
            f"the first step of {type(optimizer).__name__} creates state from gradients, which a "
            "compiled function cannot undo for a skipped step: call scaler.step(optimizer) once "
            "before it is compiled"
        )
    with no_grad():
        for tensor in after:
            tensor.copy_(ops.where(found_inf, wrap(before[id(tensor)]), tensor.detach()))
    return result


def _initial_value(optimizer, tensor: Tensor):
    """Return the value before the step of a tensor that the step added to the state.

    None if that value is unknown.
    """
    scope = mode.scope.get()
    captured = None if scope is None else scope.captured.get(id(tensor))
    if captured is not None:
        return captured.tracer
    has_zeros = isinstance(optimizer, SGD) and scope is not None
    if has_zeros and not any(group["dampening"] for group in optimizer.param_groups):
        return jax.numpy.zeros_like(tensor._array)  # equals a first step without a buffer
    return None


__getattr__ = missing_in(__name__)
