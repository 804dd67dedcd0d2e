"""Settings of the process that PyTorch's programs ask for; XLA decides most of them itself."""

from __future__ import annotations

import os
import tempfile
import warnings

import jax
from jax.experimental.compilation_cache import compilation_cache as cache

from ..core import bounded_cache, deferred, dtypes, pending
from ..core.device import as_device, default_device, device, is_meta, set_default, wait_for
from ..core.tracebacks import users_stacklevel
from ..tape import settings
from .legacy_types import DTYPES

# ---- eager execution


def set_eager(mode: str):
    """Choose how operators run outside of compiled functions, in all threads.

    mode: "deferred", the default, notes operators and runs them when a value is needed; what has
    repeated often enough runs as one compiled program. "immediate" runs each operator at once,
    which shows an error of the machine, such as a lack of memory, at its line. On one CPU device
    NumPy runs the first calls of each operator, and of compiled functions that take little time,
    and XLA those that come often; "host" takes NumPy alone where it can, and "compiled" XLA, whose
    numbers differ by rounding. Two words may be combined, as in "immediate,compiled". The
    environment variable JAXGRAD_EAGER sets the mode of a process. Raises ValueError for other
    words.

    >>> jaxgrad.set_eager("immediate")
    >>> jaxgrad.set_eager("deferred")
    """
    deferred.set_mode(mode, "set_eager")


def synchronize():
    """Run all operators that were put off, in all threads, and wait until all devices are done.

    PyTorch has this for each device: `cuda.synchronize()`, `cpu.synchronize()`, which do the same
    for theirs.

    >>> y = jaxgrad.ones(3) * 2
    >>> jaxgrad.synchronize()  # now it has been computed
    """
    pending.run_all()
    for jax_device in jax.local_devices():
        wait_for(device(jax_device))


# ---- what is compiled


def compilation_cache(dir: str | os.PathLike | None):
    """Keep what is compiled in a directory, so that later processes load it: JAX's persistent cache
    for programs of every size, those of your own `jax.jit` among them. Without it jaxgrad keeps its
    own programs in the user's cache: see JAXGRAD_CACHE. PyTorch has no such function.

    dir: a path, which is created where it is missing; None ends it. Tracing is not kept, and a
    program for another version of JAX or another kind of device is another one. Only point it at a
    directory that others cannot write to: its files are programs. Raises OSError if the directory
    cannot be created or written to; then nothing changes.

    >>> import tempfile
    >>> jaxgrad.compilation_cache(tempfile.mkdtemp())
    >>> jaxgrad.compilation_cache(None)
    """
    path = None if dir is None else os.path.abspath(os.path.expanduser(dir))
    if path is not None:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass  # raises where nothing can be written
    jax.config.update("jax_compilation_cache_dir", path)
    # kernels of operators are small, and hundreds of them are what a first step waits for
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0 if path else 1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1 if path else 0)
    # JAX looks for a directory once, at its first compilation
    cache.reset_cache()


# ---- the default device


def get_default_device() -> device:
    """Return the device of new tensors.

    >>> jaxgrad.get_default_device()
    device(type='cpu')
    """
    return default_device()


def set_default_device(device: str | device | int | None):
    """Set the device of new tensors: JAX's default device, or meta; None leaves the choice to JAX.

    `with jaxgrad.device("cpu"):` sets it for a block. Raises RuntimeError for a device that does
    not exist.

    >>> jaxgrad.set_default_device("cpu")
    >>> jaxgrad.set_default_device(None)
    """
    set_default(None if device is None else as_device(device))


def _chosen_device() -> device | None:
    """The argument of `set_default_device`."""
    return None if jax.config.jax_default_device is None and not is_meta(None) else default_device()


def set_default_tensor_type(t):
    """Set the default dtype by a type of tensors or its name, such as "torch.DoubleTensor"; one of
    `torch.cuda` sets the default device too.

    Deprecated: `set_default_dtype` and `set_default_device` do the same. Raises TypeError for one
    that is not floating-point, and for one of CUDA without a GPU.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.set_default_tensor_type("torch.DoubleTensor")
    ...     print(jaxgrad.ones(1).dtype)
    ...     jaxgrad.set_default_tensor_type("torch.FloatTensor")
    torch.float64
    """
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
        stacklevel=users_stacklevel(),
    )
    name = t if isinstance(t, str) else f"torch.{getattr(t, '__name__', t)}"
    dtype = DTYPES.get(name.rpartition(".")[2])
    if dtype is None or not dtype.is_floating_point:
        raise TypeError(
            f"set_default_tensor_type({t!r}): only floating-point types are supported as the "
            "default type, such as 'torch.FloatTensor'; set_default_dtype takes a dtype"
        )
    if "cuda" in (getattr(t, "device_type", None), *name.split(".")):
        try:
            set_default(as_device("cuda"))
        except RuntimeError as error:
            raise TypeError(f"type {t} not available. {error}") from error
    dtypes.set_default_dtype(dtype)


# ---- precision

# by PyTorch's name JAX's: it computes in float32, with three products of bfloat16, with one
PRECISIONS = {"highest": "highest", "high": "high", "medium": "default"}


def get_float32_matmul_precision() -> str:
    """Return the precision of products of float32: "highest", "high" or "medium".

    Until it is set it is "highest".

    >>> jaxgrad.get_float32_matmul_precision()
    'highest'
    """
    known = jax.config.jax_default_matmul_precision
    if known is None:
        return "highest"
    return {name: ours for ours, name in PRECISIONS.items()}.get(known, known)


def set_float32_matmul_precision(precision: str):
    """Set the precision of products and convolutions of float32 on GPUs and TPUs. It is JAX's
    `jax_default_matmul_precision`, and so holds for JAX's own functions too.

    precision: "highest", which computes in float32; "high" and "medium", which compute in shorter
    numbers. CPUs compute in float32. What is compiled already is compiled again. Raises ValueError
    for another one.

    >>> jaxgrad.set_float32_matmul_precision("high")
    >>> jaxgrad.get_float32_matmul_precision()
    'high'
    >>> jaxgrad.set_float32_matmul_precision("highest")
    """
    if precision not in PRECISIONS:
        raise ValueError(
            f"set_float32_matmul_precision: {precision!r} is not one of 'highest', 'high', 'medium'"
        )
    if PRECISIONS[precision] != jax.config.jax_default_matmul_precision:
        put_products(PRECISIONS[precision])


# by PyTorch's newer name JAX's
_FP32 = {"none": None, "ieee": "highest", "tf32": "high", "bf16": "default"}


def get_fp32_precision() -> str:
    """The precision of products of float32: "ieee", "tf32", "bf16", or "none" until it is set."""
    return next((name for name, known in _FP32.items() if known == products()), "ieee")


def set_fp32_precision(precision: str):
    """Set the precision of products of float32. Raises RuntimeError for an unknown one."""
    if precision not in _FP32:
        raise RuntimeError(f"Unknown precision: {precision}. Choose from: {', '.join(_FP32)}")
    put_products(_FP32[precision])


def products() -> str | None:
    """The precision of products by JAX's name, None where none is set."""
    return jax.config.jax_default_matmul_precision


def put_products(precision: str | None):
    """Set the precision of products by JAX's name."""
    jax.config.update("jax_default_matmul_precision", precision)
    bounded_cache.forget_all()


settings.let_last(products, put_products)
settings.let_last(_chosen_device, set_default_device)


# ---- what XLA decides

_MODES = ("default", "warn", "error")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def get_num_threads() -> int:
    """Return the number that `set_num_threads` was given; by default that of the processors.

    >>> jaxgrad.get_num_threads() >= 1
    True
    """
    return settings.get("threads") or _processors()


def get_num_interop_threads() -> int:
    """Return the number that `set_num_interop_threads` was given; by default that of the
    processors.

    >>> jaxgrad.get_num_interop_threads() >= 1
    True
    """
    return settings.get("interop_threads") or _processors()


def set_num_threads(n: int):
    """Keep a number for `get_num_threads`. XLA makes its threads at its start, one for each
    processor that the process may use: restrict these (`taskset`) before it starts.

    Raises RuntimeError for anything but a positive int.

    >>> before = jaxgrad.get_num_threads()
    >>> jaxgrad.set_num_threads(2)
    >>> jaxgrad.get_num_threads()
    2
    >>> jaxgrad.set_num_threads(before)
    """
    _set_threads("threads", "set_num_threads", n)


def set_num_interop_threads(n: int):
    """Keep a number for `get_num_interop_threads`; see `set_num_threads`.

    >>> before = jaxgrad.get_num_interop_threads()
    >>> jaxgrad.set_num_interop_threads(2)
    >>> jaxgrad.get_num_interop_threads()
    2
    >>> jaxgrad.set_num_interop_threads(before)
    """
    _set_threads("interop_threads", "set_num_interop_threads", n)


def _set_threads(name, function, n):
    if isinstance(n, bool) or not isinstance(n, int):
        raise RuntimeError(f"{function} expects an int, but got {type(n).__name__}")
    if n < 1:
        raise RuntimeError(f"{function} expects a positive integer, but got {n}")
    settings.put(name, n)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False):
    """Say whether results are to repeat. Then `put_` and `max_unpool1d` to `max_unpool3d` raise,
    whose indices may repeat. Others repeat on CPUs; on GPUs set
    `XLA_FLAGS=--xla_gpu_deterministic_ops=true` before the program starts: asking for it here
    without that flag warns where there is a GPU.

    warn_only: those functions warn. Raises TypeError for one that is no bool.

    >>> jaxgrad.use_deterministic_algorithms(True)
    >>> jaxgrad.are_deterministic_algorithms_enabled()
    True
    >>> jaxgrad.use_deterministic_algorithms(False)
    """
    for name, value in {"'mode' (position 1)": mode, "'warn_only'": warn_only}.items():
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument {name} must be bool, not "
                f"{type(value).__name__}"
            )
    settings.put("debug_mode", (1 if warn_only else 2) if mode else 0)
    flag = "xla_gpu_deterministic_ops=true"
    if mode and jax.default_backend() == "gpu" and flag not in os.environ.get("XLA_FLAGS", ""):
        warnings.warn(
            f"set XLA_FLAGS=--{flag} before the program starts: XLA chooses its algorithms then",
            stacklevel=2,
        )


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` was asked for.

    >>> jaxgrad.are_deterministic_algorithms_enabled()
    False
    """
    return settings.get("debug_mode") > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` was asked to warn alone.

    >>> jaxgrad.use_deterministic_algorithms(True, warn_only=True)
    >>> jaxgrad.is_deterministic_algorithms_warn_only_enabled()
    True
    >>> jaxgrad.use_deterministic_algorithms(False)
    """
    return settings.get("debug_mode") == 1


def get_deterministic_debug_mode() -> int:
    """Return 0 for "default", 1 for "warn", 2 for "error".

    >>> jaxgrad.get_deterministic_debug_mode()
    0
    """
    return settings.get("debug_mode")


def set_deterministic_debug_mode(debug_mode: int | str):
    """Set what `use_deterministic_algorithms` sets: 0 or "default", 1 or "warn", 2 or "error".

    Raises TypeError for another type, RuntimeError for another value.

    >>> jaxgrad.set_deterministic_debug_mode("warn")
    >>> jaxgrad.get_deterministic_debug_mode()
    1
    >>> jaxgrad.set_deterministic_debug_mode("default")
    """
    if isinstance(debug_mode, bool) or not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (*_MODES, 0, 1, 2):
        expected = "0, 1, or 2" if isinstance(debug_mode, int) else "`default`, `warn`, `error`"
        raise RuntimeError(
            f"invalid value of debug_mode, expected {expected}, but got {debug_mode}"
        )
    number = _MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` was given; False by default.

    >>> jaxgrad.is_warn_always_enabled()
    False
    """
    return settings.get("warn_always")


def set_warn_always(b: bool):
    """Keep a choice for `is_warn_always_enabled`. Filters of Python's `warnings` choose which
    warnings are shown. Raises RuntimeError for anything but a bool.

    >>> jaxgrad.set_warn_always(True)
    >>> jaxgrad.is_warn_always_enabled()
    True
    >>> jaxgrad.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"set_warn_always expects a bool, but got {type(b).__name__}")
    settings.put("warn_always", b)
