"""Settings of the process, as PyTorch 2.13 gives them back."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad as torch


@pytest.fixture(autouse=True)
def as_before():
    names = "jax_default_device", "jax_default_matmul_precision"
    dtype, known = torch.get_default_dtype(), [jax.config.values[name] for name in names]
    yield
    torch.set_default_dtype(dtype)
    for name, value in zip(names, known, strict=True):
        jax.config.update(name, value)
    torch.set_deterministic_debug_mode(0)
    torch.set_warn_always(False)


def test_default_device():
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_default_device("cpu")
    with torch.device("cpu") as place, torch.device("cpu"):
        assert torch.ones(1).device == place == torch.get_default_device()
    torch.set_default_device(None)
    assert jax.config.jax_default_device is None
    with pytest.raises(RuntimeError, match="there is no device cuda:7"):
        torch.set_default_device("cuda:7")
    with pytest.raises(RuntimeError, match="there is no device tpu"), torch.device("tpu"):
        pass
    assert torch.ones(1).device == torch.device("cpu")


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type:UserWarning")
def test_default_tensor_type():
    torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.ones(1).dtype is torch.float64
    for wrong in ("torch.LongTensor", torch.float64, "x"):
        with pytest.raises(TypeError, match="only floating-point types are supported"):
            torch.set_default_tensor_type(wrong)
    assert torch.get_default_dtype() is torch.float64


@pytest.mark.slow
def test_precision_of_products():
    a = torch.tensor(np.linspace(0, 1, 12).reshape(3, 4), dtype=torch.float32)
    expected, compiled = a.numpy() @ a.numpy().T, torch.jit(lambda x: x @ x.T)
    for precision in ("high", "medium", "highest"):
        torch.set_float32_matmul_precision(precision)
        assert torch.get_float32_matmul_precision() == precision
        np.testing.assert_allclose(compiled(a), expected, rtol=1e-6)  # CPUs compute in float32
        np.testing.assert_allclose(a @ a.T, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="'low' is not one of 'highest', 'high', 'medium'"):
        torch.set_float32_matmul_precision("low")


def in_hlo(lowered):
    """The precisions of all products and convolutions of a program."""
    names = re.findall(r"precision[_ a-z]*= \[(?:#stablehlo<precision )?(\w+)", lowered.as_text())
    return set(names)


PRODUCTS = {
    "mm": lambda a: a @ a,
    "linear": lambda a: torch.nn.functional.linear(a, a),
    "bilinear": lambda a: torch.nn.functional.bilinear(a, a, a.expand(2, 4, 4)),
    "conv2d": lambda a: torch.nn.functional.conv2d(a[None, None], torch.ones(1, 1, 2, 2)),
    "attention": lambda a: torch.nn.functional.scaled_dot_product_attention(a, a, a),
    "rnn": lambda a: RNN(a)[0],
}
RNN = torch.nn.RNN(4, 4)


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_precision_of_products_in_programs(name):
    """What JAX gives a product of its own at each setting; without one, the highest."""
    a = torch.ones(4, 4)
    compiled = torch.jit(PRODUCTS[name])
    assert in_hlo(compiled.lower(a)) == {"HIGHEST"}
    assert torch.get_float32_matmul_precision() == "highest"
    for precision in ("high", "medium", "highest"):
        torch.set_float32_matmul_precision(precision)
        expected = in_hlo(jax.jit(lambda x: x @ x).lower(jnp.ones((2, 2))))
        assert in_hlo(compiled.lower(a)) == expected


def test_a_precision_of_jax_is_that_of_the_call():
    compiled, a = torch.jit(lambda a: a @ a), torch.ones(2, 2)
    compiled(a)
    with jax.default_matmul_precision("high"):
        compiled(a)
        assert in_hlo(compiled.lower(a)) == {"HIGH"}
    compiled(a)
    assert compiled.count == 2


def test_deterministic_algorithms():
    def told():
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.get_deterministic_debug_mode(),
        )

    assert told() == (False, False, 0)
    torch.use_deterministic_algorithms(True)
    assert told() == (True, False, 2)
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert told() == (True, True, 1)
    torch.set_deterministic_debug_mode("error")
    assert told() == (True, False, 2)
    torch.set_deterministic_debug_mode(0)
    assert told() == (False, False, 0)
    words = (
        r"_set_deterministic_algorithms\(\): argument 'mode' \(position 1\) must be bool, not int"
    )
    with pytest.raises(TypeError, match=words):
        torch.use_deterministic_algorithms(1)
    with pytest.raises(TypeError, match="argument 'warn_only' must be bool, not int"):
        torch.use_deterministic_algorithms(False, warn_only=1)
    with pytest.raises(RuntimeError, match="expected `default`, `warn`, `error`, but got x"):
        torch.set_deterministic_debug_mode("x")
    with pytest.raises(RuntimeError, match="expected 0, 1, or 2, but got 5"):
        torch.set_deterministic_debug_mode(5)
    with pytest.raises(TypeError, match="debug_mode must be str or int"):
        torch.set_deterministic_debug_mode(1.0)


@pytest.mark.parametrize("name", ["num_threads", "num_interop_threads"])
def test_threads(name):
    get, put = getattr(torch, f"get_{name}"), getattr(torch, f"set_{name}")
    before = get()
    assert before >= 1
    put(3)
    assert get() == 3
    with pytest.raises(RuntimeError, match=f"set_{name} expects a positive integer"):
        put(0)
    with pytest.raises(RuntimeError, match=f"set_{name} expects an int, but got float"):
        put(2.5)
    assert get() == 3
    put(before)


def test_warn_always():
    assert not torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    assert torch.is_warn_always_enabled()
    with pytest.raises(RuntimeError, match="expects a bool, but got int"):
        torch.set_warn_always(3)
