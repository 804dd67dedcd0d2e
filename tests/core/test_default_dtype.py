"""The default dtype holds from the moment it is set, also for operators that ran before."""

import pytest

import jaxgrad as torch
from jaxgrad.core import bounded_cache

INTS = torch.tensor([3, 4])
BOOLS = torch.tensor([True, False])

# what PyTorch computes in the default dtype, by its documentation of type promotion
IN_DEFAULT = {
    "a / a": lambda: INTS / INTS,
    "a * 1.5": lambda: INTS * 1.5,
    "1.5 - a": lambda: 1.5 - INTS,
    "a ** 0.5": lambda: INTS**0.5,
    "1 / a": lambda: 1 / INTS,
    "a % 1.5": lambda: INTS % 1.5,
    "add": lambda: torch.add(INTS, 1.5, alpha=2),
    "where": lambda: torch.where(BOOLS, 1.5, 0.5),
    "where beside ints": lambda: torch.where(BOOLS, INTS, 0.5),
    "clamp": lambda: INTS.clamp(0.5),
    "reciprocal": lambda: INTS.reciprocal(),
    "xlogy": lambda: torch.xlogy(INTS, INTS),
    "atan2": lambda: torch.atan2(INTS, INTS),
    "true_divide": lambda: torch.true_divide(INTS, 2),
    "zeta": lambda: torch.special.zeta(INTS, 2),
    "polygamma": lambda: torch.polygamma(1, INTS),
    "cov": lambda: torch.cov(INTS),
    "full": lambda: torch.full((2,), 1.5),
    "tensor": lambda: torch.tensor([1.5]),
    "ones": lambda: torch.ones(2),
    "arange": lambda: torch.arange(0, 1, 0.5),
    "linspace": lambda: torch.linspace(0, 1, 3),
    "rand": lambda: torch.rand(2),
    "hann_window": lambda: torch.hann_window(3),
    "Linear": lambda: torch.nn.Linear(2, 2).weight,
    "jit": torch.jit(lambda: INTS / INTS),
    **{
        name: lambda name=name: getattr(torch, name)(INTS)
        for name in ("sqrt", "exp", "log", "sin", "tanh", "sigmoid", "erf", "lgamma", "rad2deg")
    },
}
IN_ITS_COMPLEX_FORM = {"a * 1j": lambda: INTS * 1j, "fft": lambda: torch.fft.fft(INTS)}


@pytest.fixture(autouse=True)
def default_of_before():
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("call", IN_DEFAULT)
def test_results_follow_the_default_dtype(call):
    for dtype in (torch.float32, torch.float64, torch.float32, torch.float16, torch.float64):
        torch.set_default_dtype(dtype)
        if dtype is not torch.float16 or call not in ("zeta", "polygamma"):
            assert IN_DEFAULT[call]().dtype is dtype


@pytest.mark.parametrize("call", IN_ITS_COMPLEX_FORM)
def test_complex_results_follow_it(call):
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        assert IN_ITS_COMPLEX_FORM[call]().dtype is dtype.to_complex()


def test_values_and_gradients_are_those_of_the_dtype():
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    for dtype, third in ((torch.float32, 0.3333333432674408), (torch.float64, 1 / 3)):
        torch.set_default_dtype(dtype)
        (gradient,) = torch.autograd.grad((x * (torch.tensor([1]) / torch.tensor([3]))).sum(), x)
        assert gradient.item() == third


def test_plans_are_found_again_when_the_dtype_is_set_back():
    operator = torch.div.operator
    INTS / INTS
    plan = next(value for key, value in operator.plans.items() if key == (INTS._aval,) * 2)
    torch.set_default_dtype(torch.float64)
    assert not operator.plans
    torch.set_default_dtype(torch.float32)
    INTS / INTS
    assert operator.plans[(INTS._aval,) * 2] is plan


def test_what_was_kept_for_other_settings_counts_towards_the_limit():
    cache = bounded_cache.BoundedCache(
        bounded_cache.Clock("kernels"), lambda _: bounded_cache.KERNEL
    )
    cache.keep("key", 1)
    torch.set_default_dtype(torch.float64)
    assert cache.find("key") is None and cache.size().number == 1
    cache.keep("key", 2)
    torch.set_default_dtype(torch.float32)
    assert cache.find("key") == 1 and sorted(cache.all_values()) == [1, 2]
