"""Settings of the process that a compiled function reads and sets."""

import functools

import jax
import pytest

import jaxgrad as torch

ONE = torch.ones(1)


SETTINGS = [
    (torch.get_default_dtype, torch.set_default_dtype, torch.float64, torch.float32),
    (
        lambda: torch.get_autocast_dtype("cpu"),
        lambda dtype: torch.set_autocast_dtype("cpu", dtype),
        torch.float16,
        torch.bfloat16,
    ),
    (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, False, True),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, True, False),
    (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
        True,
        False,
    ),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 1, 0),
    (torch.get_num_threads, torch.set_num_threads, 7, torch.get_num_threads()),
    (
        torch.get_num_interop_threads,
        torch.set_num_interop_threads,
        7,
        torch.get_num_interop_threads(),
    ),
    (torch.is_warn_always_enabled, torch.set_warn_always, True, False),
    (torch.initial_seed, torch.manual_seed, 3, 4),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "high", "highest"),
    (
        torch.backends.cuda.flash_sdp_enabled,
        torch.backends.cuda.enable_flash_sdp,
        False,
        True,
    ),
    *[
        (functools.partial(getattr, owner, name), functools.partial(setattr, owner, name), new, old)
        for owner, name, new, old in (
            (torch.backends.cudnn, "benchmark", True, False),
            (torch.backends.cudnn, "enabled", False, True),
            (torch.backends.mkldnn, "enabled", True, False),
            (torch.backends.opt_einsum, "strategy", "greedy", "auto"),
            (torch.backends.quantized, "engine", "fbgemm", "none"),
            (torch.backends.cuda.matmul, "allow_tf32", True, False),
        )
    ],
]


@pytest.mark.parametrize(("get", "put", "new", "old"), SETTINGS)
def test_a_setting_that_is_read_inside(get, put, new, old):
    precision = jax.config.jax_default_matmul_precision  # None, until someone sets it
    put(old)
    try:
        compiled = torch.jit(lambda x: x * len(repr(get())))
        for value in (old, new, old, new):
            put(value)
            assert get() == value
            assert compiled(ONE).item() == len(repr(value))
    finally:
        put(old)
        jax.config.update("jax_default_matmul_precision", precision)
    assert len(compiled.traces) <= 2


def test_a_setting_that_is_set_inside_is_set_by_each_call():
    def f(x):
        torch.set_num_threads(7)
        return x * 2

    compiled, threads = torch.jit(f), torch.get_num_threads()
    try:
        for _ in range(2):
            torch.set_num_threads(threads)
            compiled(ONE)
            assert torch.get_num_threads() == 7
    finally:
        torch.set_num_threads(threads)


def test_autocast_inside_takes_the_dtype_that_is_set():
    def f(x):
        with torch.autocast("cpu"):
            return x @ x

    compiled, x = torch.jit(f), torch.eye(2)
    assert compiled(x).dtype is torch.bfloat16
    torch.set_autocast_dtype("cpu", torch.float16)
    try:
        assert compiled(x).dtype is f(x).dtype is torch.float16
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)
