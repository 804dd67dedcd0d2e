"""`autocast`: matrix products in half precision, losses in float32, parameters and their gradients
as they are.

Which operators these are is PyTorch's choice for CPUs, whatever the device (ops/autocast.py). What
holds is noted for the current thread or asyncio task, and a function compiled by `jaxgrad.jit` has
a program of its own for it.
"""

from __future__ import annotations

import contextvars
import functools
import warnings

import jax

from ..core.device import has
from ..core.dtypes import bfloat16, dtype, float16
from ..ops.autocast import Cache, is_eligible, switch
from ..tape import mode
from ..tape.tensor import Tensor

_USUAL = {"cpu": bfloat16, "cuda": float16, "tpu": bfloat16}
HALVES = (bfloat16, float16)

_chosen = contextvars.ContextVar("jaxgrad.autocast_dtypes", default=())
_caching = contextvars.ContextVar("jaxgrad.autocast_cache", default=True)


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a type of device: for "cpu", "cuda" and "tpu".

    >>> jaxgrad.amp.is_autocast_available("cpu")
    True
    """
    return device_type in _USUAL


def _known(device_type: str) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _USUAL:
        raise RuntimeError(
            f"User specified an unsupported autocast device_type '{device_type}': there are "
            f"{', '.join(_USUAL)}"
        )
    return device_type


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators are converted, here and now, on a type of device.

    >>> with jaxgrad.autocast("cpu"):
    ...     jaxgrad.is_autocast_enabled("cpu")
    True
    """
    return _known(device_type) in dict(mode.casting.get() or ())


def set_autocast_enabled(device_type: str, enabled: bool):
    """Have operators be converted on a type of device from here on, or no longer.

    >>> jaxgrad.set_autocast_enabled("cpu", True)
    >>> (jaxgrad.ones(2, 2) @ jaxgrad.ones(2, 2)).dtype
    torch.bfloat16
    >>> jaxgrad.set_autocast_enabled("cpu", False)
    """
    held = dict(mode.casting.get() or ())
    held.pop(_known(device_type), None)
    if enabled:
        held[device_type] = get_autocast_dtype(device_type)
    switch(tuple(sorted(held.items(), key=str)) or None)


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that operators are converted to on a type of device, where autocast is on.

    >>> jaxgrad.get_autocast_dtype("cpu"), jaxgrad.get_autocast_dtype("cuda")
    (torch.bfloat16, torch.float16)
    """
    return dict(_chosen.get()).get(_known(device_type), _USUAL[device_type])


def set_autocast_dtype(device_type: str, dtype: dtype):
    """Choose the dtype that operators are converted to on a type of device.

    >>> jaxgrad.set_autocast_dtype("cpu", jaxgrad.bfloat16)
    """
    _chosen.set(tuple({**dict(_chosen.get()), _known(device_type): dtype}.items()))
    if is_autocast_enabled(device_type):
        set_autocast_enabled(device_type, True)


def is_autocast_cache_enabled() -> bool:
    """Whether a parameter that is used several times is converted once.

    >>> jaxgrad.is_autocast_cache_enabled()
    True
    """
    return _caching.get()


def set_autocast_cache_enabled(enabled: bool):
    """Have a parameter that is used several times be converted once, or each time.

    >>> jaxgrad.set_autocast_cache_enabled(True)
    """
    _caching.set(enabled)
    if not enabled:
        mode.casts.set(None)


def clear_autocast_cache():
    """Convert parameters anew.

    >>> jaxgrad.clear_autocast_cache()
    """
    if mode.casts.get() is not None:
        mode.casts.get().entries.clear()


class autocast:
    """Inside of the block, or of the function that it decorates, matrix products and convolutions
    compute in half precision, losses in float32, and the rest in the dtype that it is given.

    Parameters stay as they are, and so do the dtypes of their gradients; run `backward()` after the
    block. device_type: "cpu", "cuda" or "tpu", whose tensors are meant. dtype: by default bfloat16,
    for "cuda" float16; another than these two gives a warning, and nothing is converted. enabled:
    False inside of another one switches that off. cache_enabled: convert a parameter that is used
    several times once. Raises RuntimeError for another type of device.

    >>> weight = jaxgrad.ones(2, 2, requires_grad=True)
    >>> with jaxgrad.autocast("cpu"):
    ...     made = jaxgrad.ones(1, 2) @ weight
    >>> made.sum().backward()
    >>> made.dtype, weight.grad.dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        self.device = _known(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled and self._serves()
        self._cache_enabled = _caching.get() if cache_enabled is None else cache_enabled
        self._before = []

    def _serves(self) -> bool:
        if self.device == "cuda" and not has(self.device):
            warnings.warn("CUDA is not available. Disabling autocast.", stacklevel=3)
            return False
        if self.fast_dtype not in HALVES:
            name = self.device.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=3,
            )
            return False
        return True

    def __enter__(self):
        self._before.append((mode.casting.get(), _chosen.get(), _caching.get(), mode.casts.get()))
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_cache_enabled(self._cache_enabled)
        if self._cache_enabled and mode.casts.get() is None:
            mode.casts.set(Cache())
        return self

    def __exit__(self, *exception):
        held, chosen, caching, casts = self._before.pop()
        mode.casts.set(casts)
        _caching.set(caching)
        _chosen.set(chosen)
        switch(held)

    def __call__(self, func):
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. To convert "
                "the operators of a block: with jaxgrad.autocast(device_type): ..."
            )

        @functools.wraps(func)
        def decorated(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return decorated


def custom_fwd(fwd=None, *, device_type: str, cast_inputs: dtype | None = None):
    """A decorator for `forward` of a Function: how its `backward` is to run is noted, and with
    `cast_inputs` tensors of floating point are converted to that dtype, and autocast is off inside.
    Outside of autocast it does nothing.

    >>> class Double(jaxgrad.autograd.Function):
    ...     @staticmethod
    ...     @jaxgrad.amp.custom_fwd(device_type="cpu", cast_inputs=jaxgrad.float32)
    ...     def forward(ctx, x):
    ...         return x + x
    >>> with jaxgrad.autocast("cpu"):
    ...     Double.apply(jaxgrad.ones(1, dtype=jaxgrad.bfloat16))
    tensor([2.])
    """
    _known(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx, *args, **kwargs):
        is_on = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_on and cast_inputs is None
        if not is_on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)

        def cast(value):
            fits = isinstance(value, Tensor) and is_eligible(value, (device_type,))
            return value.to(cast_inputs) if fits else value

        args, kwargs = jax.tree.map(cast, (args, kwargs), is_leaf=_is_tensor)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *args, **kwargs)

    return decorated


def custom_bwd(bwd=None, *, device_type: str):
    """A decorator for `backward` of a Function whose `forward` has `custom_fwd`: it runs under the
    autocast that `forward` ran under.

    >>> class Double(jaxgrad.autograd.Function):
    ...     @staticmethod
    ...     @jaxgrad.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, x):
    ...         return x + x
    ...     @staticmethod
    ...     @jaxgrad.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, gradient):
    ...         return gradient * 2
    """
    _known(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx, *args, **kwargs):
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return decorated


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)
