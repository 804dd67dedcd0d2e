"""Data in and out, dtypes and devices. Expected values are PyTorch 2.13's answers, written out."""

import os
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import hangs

import jaxgrad
from jaxgrad.core import dtypes

EVERY_DTYPE = pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)


# ---- numpy


def test_a_numpy_array_is_copied_before_the_call_returns():
    for _ in range(50):
        source = np.zeros(300_000, np.float32)
        tensors = jaxgrad.tensor(source), jaxgrad.as_tensor(source), jaxgrad.from_numpy(source)
        total = jaxgrad.zeros(300_000) + source
        source[:] = 7
        assert not any(tensor.numpy().any() for tensor in (*tensors, total))


@EVERY_DTYPE
def test_numpy_and_back(dtype):
    values = np.array([[0, 1, 3], [2, 1, 0]]).astype(dtype.numpy)
    tensor = jaxgrad.tensor(values)
    assert tensor.dtype is dtype
    out = tensor.numpy()
    assert out.dtype == values.dtype
    np.testing.assert_array_equal(out, values)
    assert out.flags.writeable is False
    np.testing.assert_array_equal(np.asarray(tensor), values)
    assert tensor.tolist() == values.tolist()


def test_strides_byte_order_and_order():
    values = np.arange(12.0).reshape(3, 4)
    for view in (values[::-1], values.T, values[:, 1::2], np.asfortranarray(values)):
        np.testing.assert_array_equal(jaxgrad.tensor(view).numpy(), view)
    swapped = values.astype(">f4")
    assert jaxgrad.tensor(swapped).dtype is jaxgrad.float32
    np.testing.assert_array_equal(jaxgrad.tensor(swapped).numpy(), values)


@pytest.mark.parametrize("values", [np.array(["a"]), np.array([None]), np.array("2020", "M8[D]")])
def test_arrays_without_a_dtype_are_refused(values):
    with pytest.raises(TypeError, match=r"can't convert n.*supported types are: .*float32"):
        jaxgrad.tensor(values)


def test_numpy_of_what_requires_grad():
    x = jaxgrad.ones(2, requires_grad=True)
    message = r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\)"
    for read in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(RuntimeError, match=message):
            read()
    with jaxgrad.no_grad():
        assert x.numpy().tolist() == [1, 1]
    assert x.numpy(force=True).tolist() == x.detach().numpy().tolist() == [1, 1]


def test_array_protocol_of_numpy():
    x = jaxgrad.arange(3)
    assert np.asarray(x, dtype="float32").dtype == np.float32
    copied = np.array(x)
    copied[0] = 5
    assert x.tolist() == [0, 1, 2]
    assert (np.float64(2) * jaxgrad.ones(1)).dtype is jaxgrad.float32
    assert isinstance(np.ones(2) + jaxgrad.ones(2), jaxgrad.Tensor)
    assert isinstance(jaxgrad.ones(2) + np.ones(2), jaxgrad.Tensor)


# ---- DLPack


def test_dlpack_gives_arrays_to_others():
    x = jaxgrad.arange(3)
    np.testing.assert_array_equal(np.from_dlpack(x), [0, 1, 2])
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        np.from_dlpack(jaxgrad.ones(1, requires_grad=True))


@pytest.mark.parametrize("wrapper", [np.array, jnp.array, jaxgrad.tensor], ids=["np", "jnp", "our"])
def test_dlpack_takes_arrays_of_others(wrapper):
    tensor = jaxgrad.from_dlpack(wrapper([1, 2, 3]))
    assert tensor.tolist() == [1, 2, 3] and not tensor.requires_grad


def test_dlpack_of_a_tensor_shares_its_memory():
    x = jaxgrad.arange(6.0).reshape(2, 3).t()
    shared, copied = jaxgrad.from_dlpack(x), jaxgrad.from_dlpack(x, copy=True)
    shared[0] = 9
    assert x[0].tolist() == [9, 9] and shared.stride() == (1, 3) and copied[0].tolist() == [0, 3]
    for refused in (jaxgrad.ones(1, requires_grad=True), jaxgrad.tensor([1j]).conj()):
        with pytest.raises(BufferError, match="Can't export"):
            jaxgrad.from_dlpack(refused)


def test_dlpack_in_is_a_copy_unless_asked():
    memory = np.zeros(1008)
    start = -memory.ctypes.data % 64 // memory.itemsize
    source = memory[start : start + 1000]
    tensor = jaxgrad.from_dlpack(source)
    shared = jaxgrad.from_dlpack(source, copy=False)
    source[:] = 7
    assert not tensor.numpy().any()
    assert tensor.dtype is jaxgrad.float64
    assert shared.numpy().all()
    with pytest.raises(ValueError, match="not aligned to 64 bytes"):
        jaxgrad.from_dlpack(source[1:], copy=False)
    with pytest.raises(TypeError, match="takes an object that has __dlpack__, not int"):
        jaxgrad.from_dlpack(3)


# ---- tensor, as_tensor, asarray


def test_tensor_of_a_tensor_warns_and_is_a_leaf():
    x = jaxgrad.ones(2, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="To copy construct from a tensor, it is recommended"):
        tensor = jaxgrad.tensor(x)
    assert tensor.tolist() == [2, 2] and tensor.is_leaf and not tensor.requires_grad
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert jaxgrad.ones(1).new_tensor(x, dtype=jaxgrad.int32).tolist() == [2, 2]


def test_as_tensor_stays_in_the_graph():
    x = jaxgrad.ones(2, requires_grad=True)
    assert jaxgrad.as_tensor(x) is x
    assert jaxgrad.as_tensor(x, dtype=jaxgrad.float32, device="cpu") is x
    jaxgrad.as_tensor(x, dtype=jaxgrad.float64).sum().backward()
    assert x.grad.tolist() == [1, 1] and x.grad.dtype is jaxgrad.float32


def test_asarray_shares_or_copies():
    x = jaxgrad.ones(2, requires_grad=True)
    assert jaxgrad.asarray(x) is x
    assert jaxgrad.asarray(x, requires_grad=False).requires_grad is False
    assert jaxgrad.asarray([1.0], requires_grad=True).requires_grad is True
    assert jaxgrad.asarray(x, copy=True) is not x
    assert jaxgrad.asarray(x.detach(), copy=False).tolist() == [1, 1]
    for refused in ([1], np.ones(1)):
        with pytest.raises(ValueError, match="can't alias"):
            jaxgrad.asarray(refused, copy=False)
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'Char'"):
        jaxgrad.asarray(x, dtype=jaxgrad.int8, copy=False)


def test_lists_of_many_arrays_become_one():
    rows = [np.full(3, i) for i in range(4)]
    with pytest.warns(UserWarning, match="from a list of numpy.ndarrays is extremely slow"):
        assert jaxgrad.tensor([rows, rows]).shape == (2, 4, 3)
    with pytest.raises(ValueError, match="expected sequence of length 3 at dim 1"):
        jaxgrad.tensor([np.ones(3), np.ones(2)])


def test_memory_that_cannot_be_written_to():
    """PyTorch shares it, and warns; here the tensor has a copy."""
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        x = jaxgrad.from_numpy(array)
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        y = jaxgrad.frombuffer(b"abc", dtype=jaxgrad.uint8)
    assert x.add_(1).tolist() == [1, 2, 3] and y.tolist() == [97, 98, 99]
    assert array.tolist() == [0, 1, 2]


def test_tensors_have_the_strides_of_arrays():
    array = np.arange(6.0).reshape(2, 3)
    for make in (jaxgrad.from_numpy, jaxgrad.as_tensor):
        x = make(array.T)
        assert x.stride() == (1, 3) and x.tolist() == array.T.tolist()
        assert not x.is_contiguous() and (x + 1).stride() == (1, 3)
    assert jaxgrad.tensor(array.T).stride() == (2, 1)


def test_reversed():
    x = jaxgrad.arange(6).reshape(2, 3)
    assert reversed(x).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert reversed(jaxgrad.tensor(1)).item() == 1


def test_complex_arrays_lose_their_imaginary_part_with_a_warning():
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert jaxgrad.tensor(np.array([1 + 2j]), dtype=jaxgrad.float32).tolist() == [1]


# ---- to


def calls_of_to():
    other = jaxgrad.ones(1, dtype=jaxgrad.int8)
    return [
        ((), {}, jaxgrad.float32),
        ((None,), {}, jaxgrad.float32),
        ((jaxgrad.float64,), {}, jaxgrad.float64),
        (("cpu",), {}, jaxgrad.float32),
        ((jaxgrad.device("cpu"), jaxgrad.int64), {}, jaxgrad.int64),
        (("cpu", None), {}, jaxgrad.float32),
        ((other,), {}, jaxgrad.int8),
        ((jaxgrad.int8, True, True), {}, jaxgrad.int8),
        (("cpu", jaxgrad.int8, True, False), {}, jaxgrad.int8),
        ((), {"dtype": jaxgrad.int32}, jaxgrad.int32),
        ((), {"device": "cpu", "dtype": jaxgrad.int32, "non_blocking": True}, jaxgrad.int32),
        ((), {"dtype": jaxgrad.int32, "copy": True}, jaxgrad.int32),
        (("cpu",), {"dtype": jaxgrad.bool}, jaxgrad.bool),
        ((float,), {}, jaxgrad.float64),
        ((jaxgrad.bfloat16,), {"memory_format": jaxgrad.preserve_format}, jaxgrad.bfloat16),
    ]


@pytest.mark.parametrize(("args", "kwargs", "dtype"), calls_of_to())
def test_forms_of_to(args, kwargs, dtype):
    x = jaxgrad.tensor([0.0, 2.5])
    result = x.to(*args, **kwargs)
    assert result.dtype is dtype
    assert result.tolist() == np.array([0.0, 2.5]).astype(dtype.numpy).tolist()
    assert (result is x) == (dtype is x.dtype)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((jaxgrad.int8, "cpu"), {}),
        ((jaxgrad.int8, None), {}),
        ((), {"spam": 1}),
        (([1],), {}),
        ((), {"dtype": "a"}),
        ((jaxgrad.int8, True, True, True), {}),
        ((jaxgrad.preserve_format,), {}),
    ],
)
def test_to_refuses_other_calls(args, kwargs):
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments"):
        jaxgrad.ones(1).to(*args, **kwargs)


def test_to_returns_itself_unless_copied():
    x = jaxgrad.ones(2, requires_grad=True)
    assert x.to(jaxgrad.float32) is x.to("cpu") is x.cpu() is x
    copied = x.to(jaxgrad.float32, copy=True)
    assert copied is not x and repr(copied) == "tensor([1., 1.], grad_fn=<ToCopyBackward0>)"
    (copied * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_gradients_through_dtypes():
    x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    (gradient,) = jaxgrad.autograd.grad((x.to(jaxgrad.float64) ** 3).sum(), x, create_graph=True)
    assert gradient.dtype is jaxgrad.float32 and gradient.tolist() == [3, 12]
    gradient.sum().backward()
    assert x.grad.tolist() == [6, 12]
    assert not x.to(jaxgrad.int64).requires_grad


def test_shorthands_of_dtype_conversions():
    x = jaxgrad.tensor([0.0, 2.0])
    for name, dtype in {
        "float": jaxgrad.float32,
        "double": jaxgrad.float64,
        "half": jaxgrad.float16,
        "bfloat16": jaxgrad.bfloat16,
        "int": jaxgrad.int32,
        "long": jaxgrad.int64,
        "short": jaxgrad.int16,
        "char": jaxgrad.int8,
        "byte": jaxgrad.uint8,
        "bool": jaxgrad.bool,
        "cfloat": jaxgrad.complex64,
        "cdouble": jaxgrad.complex128,
    }.items():
        assert getattr(x, name)().dtype is dtype
    assert x.type_as(jaxgrad.arange(1)).dtype is jaxgrad.int64
    assert x.type(jaxgrad.int8).dtype is jaxgrad.int8
    assert (x.type(), x.double().type()) == ("torch.FloatTensor", "torch.DoubleTensor")


def test_to_inside_a_trace():
    def program(x):
        x = jaxgrad.tensor(x)
        return x.to("cpu").to(jaxgrad.int32).to(x)._array + x.cpu()._array

    assert jax.jit(program)(2.5) == 4.5
    assert jaxgrad.jit(lambda x: x.to(jaxgrad.float64, copy=True))(jaxgrad.ones(1)).tolist() == [1]


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x.float(),
        lambda x: x.cpu(),
        lambda x: x.to("cpu"),
        lambda x: x.to(jaxgrad.float32),
        lambda x: x.type_as(jaxgrad.ones(1)),
        lambda x: x.to("cpu", copy=True),
        lambda x: x.double().float(),
    ],
)
def test_to_as_the_first_use_of_a_captured_tensor(convert):
    w = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    compiled = jaxgrad.jit(lambda: (convert(w) * 3).sum())
    for times in (1, 2):
        compiled().backward()
        assert w.grad.tolist() == [3 * times, 3 * times]
    with jaxgrad.no_grad():
        w.mul_(10)
    assert compiled().item() == 90


def test_a_copy_in_a_trace_is_one():
    def program(x):
        copied = x.to(jaxgrad.float32, copy=True)
        copied.add_(1)
        return copied

    x = jaxgrad.ones(2)
    assert jaxgrad.jit(program)(x).tolist() == [2, 2] and x.tolist() == [1, 1]
    assert jax.jit(lambda x: program(jaxgrad.tensor(x))._array.sum())(1.0) == 2


# ---- devices


def test_devices_of_tensors():
    device = jaxgrad.device
    assert repr(device("cuda:1")) == "device(type='cuda', index=1)"
    assert repr(device("cpu")) == "device(type='cpu')"
    assert str(device("cuda", 0)) == "cuda:0" and device(1) == device("cuda:1")
    assert device("cpu") == device(device("cpu")) != device("cpu:0")
    assert device("cpu") != "cpu"
    assert len({device("cpu"), device(type="cpu"), device("cuda", index=1), device("cuda:1")}) == 2
    with pytest.raises(AttributeError, match="not writable"):
        device("cpu").index = 1


def test_devices_that_no_tensor_can_be_on():
    """Programs compare with them: `x.device == torch.device("mps")`."""
    assert repr(jaxgrad.device("mps")) == "device(type='mps')"
    assert jaxgrad.device("xpu:1").index == 1 and jaxgrad.device("mps") != jaxgrad.ones(1).device
    for call in (lambda: jaxgrad.ones(2, device="mps"), lambda: jaxgrad.ones(2).to("xpu")):
        with pytest.raises(RuntimeError, match="there is no device"):
            call()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("spam",), RuntimeError, "Expected one of cpu, cuda, tpu, meta device type at start"),
        (("cuda:x",), RuntimeError, "Invalid device string: 'cuda:x'"),
        (("cuda:-1",), RuntimeError, "Invalid device string: 'cuda:-1'"),
        (("cuda:01",), RuntimeError, "Invalid device string: 'cuda:01'"),
        (("",), RuntimeError, "Device string must not be empty"),
        (("cuda:0", 1), RuntimeError, "must not include an index because index was passed"),
        (("cuda", -1), RuntimeError, "Device index must not be negative"),
        ((1.5,), TypeError, "must be str, int or torch.device, not float"),
    ],
)
def test_devices_that_are_none(arguments, error, words):
    with pytest.raises(error, match=words):
        jaxgrad.device(*arguments)


def test_the_device_of_a_tensor():
    x = jaxgrad.ones(1, device="cpu")
    assert x.device == jaxgrad.device("cpu")
    assert (x.is_cpu, x.is_cuda, x.get_device(), x.is_contiguous()) == (True, False, -1, True)


def test_a_device_that_does_not_exist_names_those_that_do():
    for use in (lambda: jaxgrad.ones(1, device="tpu:7"), lambda: jaxgrad.ones(1).to("tpu:7")):
        with pytest.raises(RuntimeError, match="there is no device tpu:7: JAX found cpu"):
            use()
    if jax.default_backend() == "cpu":
        with pytest.raises(RuntimeError, match="there is no device cuda: JAX found cpu"):
            jaxgrad.ones(1).cuda()


TWO_DEVICES = """
import jaxgrad as torch

there = torch.device("cpu:1")
for made in (
    torch.zeros(2, device=there),
    torch.tensor([1, 2], device="cpu:1"),
    torch.rand(2, device=there),
    torch.rand(300000, device=there),
    torch.arange(3, device=there),
    torch.zeros(1 << 22, device=there),
    torch.zeros(1 << 25, dtype=torch.uint8, device=there),
):
    assert made.device == there, made

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.to(there)
assert repr(y) == "tensor([1., 2.], device='cpu:1', grad_fn=<ToCopyBackward0>)", y
assert torch.ones_like(y).device == y.new_zeros(2).device == torch.rand_like(y).device == there
(y * y).sum().backward()
assert x.grad.tolist() == [2, 4] and x.grad.device == torch.device("cpu")

(gradient,) = torch.autograd.grad((x.to(there) ** 3).sum(), x, create_graph=True)
assert gradient.device == torch.device("cpu")
(second,) = torch.autograd.grad((gradient * gradient).sum(), x)
assert second.tolist() == [36, 288] and second.device == torch.device("cpu")

back = y.to(x.double())
assert back.device == torch.device("cpu") and back.dtype is torch.float64
assert y.cpu().device == torch.device("cpu") and y.is_cpu
try:
    torch.ones(1, device="cpu:2")
except RuntimeError as error:
    assert "there is no device cpu:2: JAX found cpu, cpu:1" in str(error)
else:
    raise AssertionError
"""


@pytest.mark.slow
def test_tensors_on_two_devices():
    settings = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", TWO_DEVICES],
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
        env=os.environ | settings,
    )
    assert child.returncode == 0, child.stderr


def test_nothing_here_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxgrad.tensor(np.array([np.nan, 1e300])).to(jaxgrad.float32).to(jaxgrad.int32)
        jaxgrad.tensor(np.array([np.nan, 300.0]), dtype=jaxgrad.int8)
        jaxgrad.full((1,), 1e300, dtype=jaxgrad.float16)


@pytest.mark.parametrize("name", ["float", "double", "half", "int", "long", "bool", "cfloat"])
def test_conversions_take_a_memory_format(name):
    x = jaxgrad.tensor([1.5, 0.0])
    expected = getattr(x, name)()
    for memory_format in (None, jaxgrad.preserve_format, jaxgrad.contiguous_format):
        result = getattr(x, name)(memory_format=memory_format)
        assert result.dtype is expected.dtype and result.tolist() == expected.tolist()
    with pytest.raises(TypeError):
        getattr(x, name)(memory_format=1)
    with pytest.raises(TypeError):
        getattr(x, name)(jaxgrad.contiguous_format)


# PyTorch's answers for numbers that an integer dtype does not hold, on processors with SSE
OUT_OF_RANGE = [255.5, 300.0, -1.5, 2.0**31 + 512, -1e19, np.inf, -np.inf, np.nan, 127.9]
LEAST, LEAST_64 = -(2**31), -(2**63)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("uint8", [255, 44, 255, 0, 0, 0, 0, 0, 127]),
        ("int8", [-1, 44, -1, 0, 0, 0, 0, 0, 127]),
        ("int16", [255, 300, -1, 0, 0, 0, 0, 0, 127]),
        ("uint16", [255, 300, 65535, 0, 0, 0, 0, 0, 127]),
        ("int32", [255, 300, -1, *[LEAST] * 5, 127]),
        ("int64", [255, 300, -1, 2**31 + 512, *[LEAST_64] * 4, 127]),
        ("uint32", [255, 300, 2**32 - 1, 2**31 + 512, 2**31, 0, 2**31, 2**31, 127]),
        ("uint64", [255, 300, 2**64 - 1, 2**31 + 512, 2**63, 0, 2**63, 2**63, 127]),
    ],
)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_out_of_range_of_an_integer_dtype(source, dtype, expected):
    x = jaxgrad.tensor(OUT_OF_RANGE, dtype=getattr(jaxgrad, source))
    to = getattr(jaxgrad, dtype)
    assert x.to(to).tolist() == expected
    assert jaxgrad.jit(lambda x: x.to(to))(x).tolist() == expected
    assert jaxgrad.zeros(len(expected), dtype=to).copy_(x).tolist() == expected


def test_functions_of_numpy_return_tensors():
    x = jaxgrad.tensor([0.0, 1.0])
    assert type(np.sin(x)) is jaxgrad.Tensor
    np.testing.assert_allclose(np.sin(x).tolist(), [0.0, 0.8414710], 1e-6)
    assert (np.isnan(x).dtype, np.add(np.ones(2), x).tolist()) == (jaxgrad.uint8, [1.0, 2.0])
