"""`autocast`: matrix products in half precision, losses in float32, parameters unchanged.

PyTorch's lists for CPUs say which operators are converted, and on accelerators those for CUDA
besides (`ops/autocast.py`). The state belongs to the current thread or asyncio task; `jaxgrad.jit`
keeps one program per state.
"""

from __future__ import annotations

import contextvars
import functools
import warnings

from ..core.device import has
from ..core.dtypes import bfloat16, dtype, float16
from ..core.tracebacks import users_stacklevel
from ..names.missing import missing_in
from ..ops.autocast import Cache, is_eligible, switch
from ..tape import mode, settings
from ..tape.pytree import map_leaves
from ..tape.tensor import Tensor

_DEFAULT_DTYPES = {"cpu": bfloat16, "cuda": float16, "tpu": bfloat16}
HALVES = (bfloat16, float16)

_dtypes = contextvars.ContextVar("jaxgrad.autocast_dtypes", default=())
_cache_enabled = contextvars.ContextVar("jaxgrad.autocast_cache", default=True)
settings.let_last(_dtypes.get, _dtypes.set)
settings.let_last(_cache_enabled.get, _cache_enabled.set)
settings.let_last(mode.casting.get, switch)


def is_autocast_available(device_type: str) -> bool:
    """Return whether autocast supports a device type: "cpu", "cuda" or "tpu".

    >>> jaxgrad.amp.is_autocast_available("cpu")
    True
    """
    return device_type in _DEFAULT_DTYPES


# PyTorch's devices that JAX does not have
_ABSENT = frozenset(["hpu", "ipu", "maia", "mps", "mtia", "xla", "xpu"])


def _check_device_type(device_type: str) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _DEFAULT_DTYPES:
        raise RuntimeError(
            f"User specified an unsupported autocast device_type '{device_type}': choose one "
            f"of {', '.join(_DEFAULT_DTYPES)}"
        )
    return device_type


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether autocast is enabled for a device type, False for one of PyTorch's that is not
    here. Raises RuntimeError for any other.

    >>> with jaxgrad.autocast("cpu"):
    ...     jaxgrad.is_autocast_enabled("cpu")
    True
    """
    if device_type in _ABSENT:
        return False
    return _check_device_type(device_type) in dict(mode.casting.get() or ())


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None):
    """Enable or disable autocast for a device type, in the current thread or task.

    A bool alone is for the device type "cuda". Raises RuntimeError for an unsupported device type,
    TypeError for a flag that is no bool.

    >>> jaxgrad.set_autocast_enabled("cpu", True)
    >>> (jaxgrad.ones(2, 2) @ jaxgrad.ones(2, 2)).dtype
    torch.bfloat16
    >>> jaxgrad.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if not isinstance(enabled, bool):
        kind = type(enabled).__name__
        raise TypeError(f"set_autocast_enabled(): argument 'enabled' must be bool, not {kind}")
    states = dict(mode.casting.get() or ())
    states.pop(_check_device_type(device_type), None)
    if enabled:
        states[device_type] = get_autocast_dtype(device_type)
    switch(tuple(sorted(states.items(), key=str)) or None)


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the dtype to which autocast converts on a device type.

    Raises RuntimeError for an unsupported device type.

    >>> jaxgrad.get_autocast_dtype("cpu"), jaxgrad.get_autocast_dtype("cuda")
    (torch.bfloat16, torch.float16)
    """
    default = _DEFAULT_DTYPES[_check_device_type(device_type)]
    return dict(settings.noted(_dtypes_of_thread)).get(device_type, default)


def _dtypes_of_thread(_) -> tuple:
    return _dtypes.get()


def warn_of_older(name: str, today: str):
    """Warn of a call of a name that stands for another one."""
    warnings.warn(
        f"torch.{name} is deprecated. Please use torch.{today} instead.",
        DeprecationWarning,
        stacklevel=users_stacklevel(),
    )


def get_autocast_cpu_dtype() -> dtype:
    """`get_autocast_dtype("cpu")`, as older programs ask.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.get_autocast_cpu_dtype()
    torch.bfloat16
    """
    warn_of_older("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    """`get_autocast_dtype("cuda")`, as older programs ask.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.get_autocast_gpu_dtype()
    torch.float16
    """
    warn_of_older("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`, as older programs ask.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.is_autocast_cpu_enabled()
    False
    """
    warn_of_older("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_dtype(device_type: str, dtype: dtype):
    """Set the dtype to which autocast converts on a device type.

    Raises RuntimeError for an unsupported device type.

    >>> jaxgrad.set_autocast_dtype("cpu", jaxgrad.bfloat16)
    """
    _dtypes.set(tuple({**dict(_dtypes.get()), _check_device_type(device_type): dtype}.items()))
    if is_autocast_enabled(device_type):
        set_autocast_enabled(device_type, True)


def is_autocast_cache_enabled() -> bool:
    """Return whether autocast converts each parameter once and caches the result.

    >>> jaxgrad.is_autocast_cache_enabled()
    True
    """
    return settings.noted(_is_cache_enabled)


def _is_cache_enabled(_) -> bool:
    return _cache_enabled.get()


def set_autocast_cache_enabled(enabled: bool):
    """Enable or disable the cache of converted parameters.

    >>> jaxgrad.set_autocast_cache_enabled(True)
    """
    _cache_enabled.set(enabled)
    if not enabled:
        mode.casts.set(None)


def clear_autocast_cache():
    """Drop the cached conversions of parameters.

    >>> jaxgrad.clear_autocast_cache()
    """
    if mode.casts.get() is not None:
        mode.casts.get().entries.clear()


class autocast:
    """Run matrix products and convolutions in half precision and losses in float32.

    A context manager and decorator for the forward pass; call `backward()` outside. Parameters and
    their gradients keep their dtypes. device_type: "cpu", "cuda" or "tpu"; tensors on it are
    converted. dtype: bfloat16 or float16, by default bfloat16, for "cuda" float16; another one
    warns and disables. enabled: False disables an outer autocast. cache_enabled: convert each
    parameter once. Raises RuntimeError for another device type. Source: Micikevicius et al., "Mixed
    Precision Training", 2017.

    >>> weight = jaxgrad.ones(2, 2, requires_grad=True)
    >>> with jaxgrad.autocast("cpu"):
    ...     product = jaxgrad.ones(1, 2) @ weight
    >>> product.sum().backward()
    >>> product.dtype, weight.grad.dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        self.device = _check_device_type(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled and self._is_supported()
        is_unset = cache_enabled is None
        self._cache_enabled = is_autocast_cache_enabled() if is_unset else cache_enabled
        self._outer = []

    def _is_supported(self) -> bool:
        if self.device == "cuda" and not has(self.device):
            warnings.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3
            )
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
        state = mode.casting.get(), _dtypes.get(), _cache_enabled.get(), mode.casts.get()
        self._outer.append(state)
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_cache_enabled(self._cache_enabled)
        if self._cache_enabled and mode.casts.get() is None:
            mode.casts.set(Cache())
        return self

    def __exit__(self, *exception):
        enabled, dtypes, cache_enabled, casts = self._outer.pop()
        mode.casts.set(casts)
        _cache_enabled.set(cache_enabled)
        _dtypes.set(dtypes)
        switch(enabled)

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


def _enter_autocast(
    device_type: str,
    dtype: dtype | None = None,
    enabled: bool = True,
    cache_enabled: bool | None = None,
) -> autocast:
    """Switch autocast on in a graph; the arguments are those of `autocast`.

    >>> from jaxgrad.amp import autocast_mode
    >>> entered = autocast_mode._enter_autocast("cpu", jaxgrad.bfloat16)
    >>> (jaxgrad.ones(1, 1) @ jaxgrad.ones(1, 1)).dtype
    torch.bfloat16
    >>> autocast_mode._exit_autocast(entered)
    """
    return autocast(device_type, dtype, enabled, cache_enabled).__enter__()


def _exit_autocast(mode: autocast):
    """Switch off the autocast that `_enter_autocast` has returned."""
    mode.__exit__(None, None, None)


def _cast(value, device_type: str, dtype: dtype):
    """A value, with its floating-point tensors on a kind of device in another dtype.

    >>> jaxgrad.amp.autocast_mode._cast([jaxgrad.ones(1), 2], "cpu", jaxgrad.float64)
    [tensor([1.], dtype=torch.float64), 2]
    """

    def cast(leaf):
        casts = isinstance(leaf, Tensor) and is_eligible(leaf, (device_type,))
        return leaf.to(dtype) if casts else leaf

    return map_leaves(cast, value)


def custom_fwd(fwd=None, *, device_type: str, cast_inputs: dtype | None = None):
    """Decorate `forward` of a Function to save the autocast state for `custom_bwd`.

    device_type: "cpu", "cuda" or "tpu". cast_inputs: under autocast, convert floating-point tensors
    on the device to this dtype and disable autocast in `forward`. Raises RuntimeError for another
    device type.

    >>> class Double(jaxgrad.autograd.Function):
    ...     @staticmethod
    ...     @jaxgrad.amp.custom_fwd(device_type="cpu", cast_inputs=jaxgrad.float32)
    ...     def forward(ctx, x):
    ...         return x + x
    >>> with jaxgrad.autocast("cpu"):
    ...     Double.apply(jaxgrad.ones(1, dtype=jaxgrad.bfloat16))
    tensor([2.])
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx, *args, **kwargs):
        is_on = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_on and cast_inputs is None
        if not is_on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)

        args, kwargs = _cast((args, kwargs), device_type, cast_inputs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *args, **kwargs)

    return decorated


def custom_bwd(bwd=None, *, device_type: str):
    """Decorate `backward` of a Function to run under the autocast state of its `forward`.

    `forward` must be decorated with `custom_fwd`. device_type: "cpu", "cuda" or "tpu".
    Raises RuntimeError for another device type.

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
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx, *args, **kwargs):
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return decorated


__getattr__ = missing_in(__name__)
