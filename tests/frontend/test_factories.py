"""Factories against PyTorch's, as tests/oracle/record_factories.py recorded them, and inside
traces."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import checks
from helpers.answers import beside, load

import jaxgrad
from jaxgrad.core import device
from jaxgrad.frontend import array_creation

RECORDED = load(beside(__file__))


def decoded(argument):
    """The value that an argument of the recording stands for."""
    if not isinstance(argument, list):
        return argument
    kind, *rest = argument
    if kind == "dtype":
        return getattr(jaxgrad, rest[0])
    if kind == "complex":
        return complex(*rest)
    if kind == "tensor":
        return jaxgrad.tensor(rest[1], dtype=getattr(jaxgrad, rest[0]))
    if kind == "numpy":
        return np.array(decoded(rest[2]), rest[0]).reshape(rest[1])
    if kind == "numpy number":
        return np.dtype(rest[0]).type(decoded(rest[1]))
    return {"list": list, "tuple": tuple}[kind](map(decoded, rest[0]))


def call(recorded):
    name, args = recorded["name"], [decoded(argument) for argument in recorded["args"]]
    kwargs = {key: decoded(argument) for key, argument in recorded["kwargs"].items()}
    if name.startswith("."):
        return getattr(args[0], name[1:])(*args[1:], **kwargs)
    return getattr(jaxgrad, name)(*args, **kwargs)


def name_of(recorded):
    return f"{recorded['name']}-{recorded['args']}-{recorded['kwargs']}"[:90]


def tolerance_of(recorded):
    """PyTorch computes float ranges in the dtype itself, jaxgrad in float64; all else is exact."""
    floats = recorded["name"] in ("arange", "linspace", "logspace")
    dtype = getattr(jaxgrad, recorded["dtype"])
    return 4 * jaxgrad.finfo(dtype).eps if floats and dtype.category >= 2 else 0


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
@pytest.mark.parametrize("recorded", [entry for entry in RECORDED if "dtype" in entry], ids=name_of)
def test_values_of_factories(recorded):
    result = call(recorded)
    assert result.dtype is getattr(jaxgrad, recorded["dtype"])
    assert list(result.shape) == recorded["shape"]
    assert result.requires_grad == recorded["requires_grad"]
    expected = [decoded(value) for value in recorded["values"]]
    values = np.array(result.detach().tolist()).ravel()
    tolerance = tolerance_of(recorded)
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)
    checks.count("factories")


@pytest.mark.parametrize("recorded", [entry for entry in RECORDED if "error" in entry], ids=name_of)
def test_what_factories_refuse(recorded):
    with pytest.raises(Exception) as caught:
        call(recorded)
    assert type(caught.value).__name__ == recorded["error"]
    assert recorded["words"] in str(caught.value)
    checks.count("factories")


def test_signs_of_zero_are_kept():
    zeros = jaxgrad.full((2,), -0.0).tolist() + jaxgrad.full((2,), 0.0).tolist()
    assert [math.copysign(1, value) for value in zeros] == [-1, -1, 1, 1]


def test_memory_is_pinned_for_accelerators_alone(monkeypatch):
    calls = (
        lambda: jaxgrad.zeros(2, pin_memory=True),
        lambda: jaxgrad.tensor([0.0, 0.0], pin_memory=True),
        lambda: jaxgrad.zeros(2).pin_memory(),
    )
    for call in calls:
        # as PyTorch's without an accelerator
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is"):
            call()
    monkeypatch.setattr(device, "has", lambda type: type == "cuda")
    assert [call().tolist() for call in calls] == [[0, 0]] * 3
    assert not calls[0]().is_pinned()


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (["a"], ValueError, "too many dimensions 'str'"),
        ([["a", 1]], ValueError, "too many dimensions 'str'"),
        ([1, "a"], TypeError, r"new\(\): invalid data type 'str'"),
        ([[1, 2], [3, "b"]], TypeError, r"new\(\): invalid data type 'str'"),
        ([b"a"], TypeError, r"new\(\): invalid data type 'bytes'"),
    ],
)
def test_errors_for_texts_are_those_of_pytorch(data, kind, message):
    with pytest.raises(kind, match=message):
        jaxgrad.tensor(data)


def test_out_is_a_tensor_of_the_dtype():
    out = jaxgrad.zeros(0, dtype=jaxgrad.int32)
    assert jaxgrad.ones(2, 3, out=out) is out
    assert out.tolist() == [[1, 1, 1], [1, 1, 1]] and out.dtype is jaxgrad.int32
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not str"):
        jaxgrad.zeros(2, out="a tensor")
    with pytest.raises(RuntimeError, match="does not match dtype of out tensor"):
        jaxgrad.zeros(2, 3, dtype=jaxgrad.float64, out=out)


def test_the_usual_layout_and_memory_format_are_taken():
    zeros = jaxgrad.zeros(2, layout=jaxgrad.strided, pin_memory=False, out=None)
    assert jaxgrad.ones_like(zeros, memory_format=jaxgrad.preserve_format).layout is jaxgrad.strided
    with pytest.raises(TypeError, match=r"argument 'layout' must be torch\.layout, not str"):
        jaxgrad.zeros(2, layout="sparse")


def test_factories_use_the_default_dtype():
    jaxgrad.set_default_dtype(jaxgrad.float64)
    try:
        assert jaxgrad.zeros(1).dtype is jaxgrad.float64
        assert jaxgrad.tensor([1.5]).dtype is jaxgrad.float64
        assert jaxgrad.tensor([1j]).dtype is jaxgrad.complex128
        assert jaxgrad.arange(1.0).dtype is jaxgrad.float64
        assert jaxgrad.full((1,), 2.5).dtype is jaxgrad.float64
        assert jaxgrad.linspace(0, 1, 2).dtype is jaxgrad.float64
        assert jaxgrad.rand(1).dtype is jaxgrad.float64
        assert jaxgrad.arange(2).dtype is jaxgrad.int64
    finally:
        jaxgrad.set_default_dtype(jaxgrad.float32)


def test_gradients_are_required_under_no_grad_too():
    with jaxgrad.no_grad():
        tensor = jaxgrad.ones(2, requires_grad=True)
    assert tensor.requires_grad and tensor.is_leaf and tensor.grad_fn is None


def test_factories_in_inference_mode():
    with jaxgrad.inference_mode():
        tensors = [jaxgrad.zeros(2), jaxgrad.tensor(1.0), jaxgrad.rand(2), jaxgrad.arange(2)]
    assert all(tensor.is_inference() for tensor in tensors)
    assert not jaxgrad.zeros(2).is_inference()


def test_large_arrays_are_made_by_jax():
    count = 1 << 22  # of 8 bytes, beyond array_creation.LARGE
    assert jaxgrad.arange(count)[-3:].tolist() == [count - 3, count - 2, count - 1]
    assert jaxgrad.full((count,), 2.5, dtype=jaxgrad.float64).sum().item() == 2.5 * count
    assert jaxgrad.zeros(count, dtype=jaxgrad.int64)[0].item() == 0


def test_what_is_asked_for_often_is_made_by_jax(monkeypatch):
    expected = all_factories()
    monkeypatch.setattr(array_creation, "FREQUENT", 0)
    for name, tensor in all_factories().items():
        assert tensor.dtype is expected[name].dtype
        np.testing.assert_allclose(tensor.numpy(), expected[name].numpy(), rtol=1e-6)
    # separate buffers: a compiled function may overwrite one of them
    first, second = jaxgrad.zeros(3), jaxgrad.zeros(3)
    first._array.delete()
    assert second.tolist() == [0, 0, 0]


def all_factories():
    return {
        "zeros": jaxgrad.zeros(2, 3),
        "ones": jaxgrad.ones(2),
        "full": jaxgrad.full((2,), 2.5),
        "arange": jaxgrad.arange(1, 9, 3),
        "floats": jaxgrad.arange(0.0, 1.0, 0.25),
        "linspace": jaxgrad.linspace(0, 1, 5),
        "logspace": jaxgrad.logspace(0, 2, 3),
        "eye": jaxgrad.eye(2, 3),
        "tensor": jaxgrad.tensor([[1, 2], [3, 4]]),
        "numpy": jaxgrad.tensor(np.arange(3)),
        "like": jaxgrad.full_like(jaxgrad.ones(2), 7),
    }


@pytest.mark.parametrize("transform", [jax.jit, lambda f: jax.vmap(f, axis_size=1)])
def test_factories_inside_a_trace_are_the_same(transform):
    traced = transform(lambda: {name: tensor._array for name, tensor in all_factories().items()})()
    for name, expected in all_factories().items():
        values = np.asarray(traced[name]).reshape(expected.shape)
        np.testing.assert_allclose(values, expected.numpy(), rtol=1e-6)
        checks.count("factories")


def test_factories_inside_a_trace_without_wide_types():
    def program():
        dtypes.extend([jaxgrad.arange(2).dtype, jaxgrad.tensor([1]).dtype])
        for refused in (
            lambda: jaxgrad.zeros(1, dtype=jaxgrad.float64),
            lambda: jaxgrad.tensor(2**40),
        ):
            with pytest.raises(RuntimeError, match=r"use jaxgrad\.jit in place of\s+jax\.jit"):
                refused()
        return jaxgrad.ones(1)._array

    dtypes = []
    jax.jit(program)()
    assert dtypes == [jaxgrad.int32, jaxgrad.int32]


def test_factories_inside_a_trace_make_no_large_constants():
    program = jax.make_jaxpr(lambda: jaxgrad.zeros(100, 100)._array + jaxgrad.eye(100)._array)()
    assert all(np.size(constant) < 1000 for constant in program.consts)


def test_factories_inside_grad_alone_have_wide_types():
    def square(x):
        assert jaxgrad.zeros(1, dtype=jaxgrad.float64).dtype is jaxgrad.float64
        return x * x

    assert jax.grad(square)(3.0) == 6.0


def test_arrays_of_jax():
    x = jnp.arange(3.0)
    assert jaxgrad.tensor(x).tolist() == [0, 1, 2]
    assert jaxgrad.as_tensor(x, dtype=jaxgrad.float64).dtype is jaxgrad.float64
    assert not jaxgrad.tensor(jnp.asarray(2.0) * 1)._array.weak_type
    assert jax.jit(lambda x: jaxgrad.tensor(x).sum()._array)(x) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda size: jaxgrad.zeros(size),
        lambda size: jaxgrad.full(size, 2.0),
        lambda size: jaxgrad.empty(size, dtype=jaxgrad.int64),
        lambda size: jaxgrad.rand(size),
        lambda size: jaxgrad.randint(3, size, dtype=jaxgrad.int8),
        lambda size: jaxgrad.ones(1).new_zeros(size),
        lambda size: jaxgrad.jit(lambda: jaxgrad.ones(size))(),
    ],
)
def test_a_size_that_overflows_is_refused_before_anything_is_drawn(make):
    state = jaxgrad.get_rng_state().tolist()
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed with sizes="):
        make((2**31, 2**30, 4))
    assert jaxgrad.get_rng_state().tolist() == state


@pytest.mark.slow
def test_ranges_between_tensors_have_gradients():
    # PyTorch detaches them
    ends = jaxgrad.tensor([1.0, 4.0], requires_grad=True)
    jaxgrad.linspace(ends[0], ends[1], 4).backward(jaxgrad.tensor([1.0, 1.0, 1.0, 10.0]))
    np.testing.assert_allclose(ends.grad, [2.0, 11.0], 1e-6)
    (slope,) = jaxgrad.autograd.grad(jaxgrad.logspace(0, ends[1], 2, base=2)[1], ends)
    np.testing.assert_allclose(slope, [0.0, 16 * np.log(2)], 1e-6)
    checks.count("closed forms", 2)


@pytest.mark.parametrize("dtype", [None, jaxgrad.float64, jaxgrad.int32, jaxgrad.complex64])
def test_ranges_between_traced_tensors(dtype):
    start, end = jaxgrad.tensor(1.5), jaxgrad.tensor(9)
    for function in (jaxgrad.linspace, jaxgrad.logspace):
        expected = function(1.5, 9, 5, dtype=dtype)
        result = jaxgrad.jit(lambda a, b, f=function: f(a, b, 5, dtype=dtype))(start, end)
        assert result.dtype is expected.dtype
        np.testing.assert_allclose(result, expected, 1e-5)
    checks.count("closed forms", 2)


def test_ends_of_ranges_are_numbers_of_the_dtype():
    for start in (0.5, jaxgrad.tensor(0.5)):
        assert jaxgrad.logspace(start, 2.5, 3, dtype=jaxgrad.int64).tolist() == [1, 10, 100]
    assert jaxgrad.logspace(1.25, 3, 1, dtype=jaxgrad.int32).tolist() == [17]
    turned = jaxgrad.logspace(0, 1j, 3).numpy()
    np.testing.assert_allclose(turned, 10 ** np.array([0, 0.5j, 1j]), 1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: jaxgrad.zeros(2, memory_format=jaxgrad.contiguous_format),
            TypeError,
            "unexpected",
        ),
        (
            lambda: jaxgrad.zeros_like(jaxgrad.ones(2), out=None),
            TypeError,
            "keyword argument 'out'",
        ),
        (lambda: jaxgrad.ones(2).new_zeros(2, out=None), TypeError, "keyword argument 'out'"),
        (lambda: jaxgrad.hann_window(3, out=None), TypeError, "keyword argument 'out'"),
        (lambda: jaxgrad.full((2,), 7e4, dtype=jaxgrad.float16), RuntimeError, "c10::Half without"),
        (lambda: jaxgrad.ones(2).half().fill_(-1e9), RuntimeError, "without overflow"),
        (lambda: jaxgrad.arange(1, 2, 0.5, dtype=jaxgrad.int64), ValueError, "must be nonzero"),
        (lambda: jaxgrad.linspace(0, 1, 2.5), TypeError, r"got \(int, int, float\)"),
    ],
)
def test_options_that_factories_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_gradients_of_out():
    out = jaxgrad.empty(0)
    assert jaxgrad.zeros(2, out=out, requires_grad=True) is out
    assert out.requires_grad


def test_one_element_of_half_precision_overflows():
    for dtype in (jaxgrad.float16, jaxgrad.bfloat16):
        assert jaxgrad.full((1,), 1e40, dtype=dtype).tolist() == [float("inf")]
        assert jaxgrad.ones((), dtype=dtype).fill_(-1e40).item() == -float("inf")


def test_complex_numbers_as_booleans():
    assert jaxgrad.tensor([1j, 0], dtype=jaxgrad.bool).tolist() == [True, False]


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (lambda out: jaxgrad.arange(0, 4, out=out), [[0, 0, 1], [0, 2, 3]]),
        (lambda out: jaxgrad.linspace(0, 3, 4, out=out), [[0, 0, 1], [0, 2, 3]]),
        (lambda out: jaxgrad.logspace(0, 3, 4, base=2, out=out), [[0, 1, 2], [0, 4, 8]]),
        (lambda out: jaxgrad.linspace(jaxgrad.tensor(0.0), 3, 4, out=out), [[0, 0, 1], [0, 2, 3]]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_ranges_fill_an_out_of_as_many_elements_as_it_is(make, rows):
    x = jaxgrad.zeros(2, 3)
    make(x.narrow(1, 1, 2))
    assert x.tolist() == rows


@pytest.mark.filterwarnings("error")
def test_out_of_factories_is_resized_without_a_warning():
    out = jaxgrad.zeros(3)
    for make in (jaxgrad.zeros, jaxgrad.ones, jaxgrad.rand, jaxgrad.randn, jaxgrad.empty):
        assert make(2, 2, out=out).shape == (2, 2)
        out.resize_(3)
    assert jaxgrad.randperm(6, out=jaxgrad.zeros(2, 3)).shape == (6,)
    with pytest.warns(UserWarning, match="^The number of elements in the out tensor of shape"):
        jaxgrad.arange(5, out=out)
    # programs filter by how a message begins
    with pytest.warns(UserWarning, match="^An output with one or more elements was resized"):
        jaxgrad.add(jaxgrad.ones(2), 1, out=jaxgrad.ones(3))


class Numbers:
    """A sequence of no class of Python's."""

    def __init__(self, numbers, error=None):
        self.numbers, self.error = numbers, error

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, number):
        if self.error is not None:
            raise self.error
        return self.numbers[number]


def test_sequences_of_any_class():
    assert jaxgrad.tensor(Numbers([1.0, 2.0])).tolist() == [1, 2]
    assert jaxgrad.as_tensor([Numbers([1, 2]), (3, 4)]).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="could not determine the shape of object type 'Numbers'"):
        jaxgrad.tensor(Numbers([1.0], TypeError()))


def test_lists_that_hold_themselves():
    number_first, alone = [0], []
    number_first.append(number_first)
    alone.append(alone)
    for data in (number_first, [[1, 2], number_first], alone):
        with pytest.raises(TypeError, match="self-referential lists are incompatible"):
            jaxgrad.tensor(data)


def test_integers_beyond_64_bits_become_floats():
    assert jaxgrad.tensor([2**64, 1], dtype=jaxgrad.float64).tolist() == [2.0**64, 1]
    assert jaxgrad.tensor([True, 1.5, 2**64]).tolist() == [1, 1.5, 2.0**64]
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        jaxgrad.tensor(2**64)


def test_asarray_of_a_capsule():
    x = jaxgrad.arange(3.0)
    assert jaxgrad.asarray(x.__dlpack__(), dtype=jaxgrad.float64).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="can't alias PyCapsule"):
        jaxgrad.asarray(x.__dlpack__(), copy=False)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: jaxgrad.asarray(jaxgrad.ones(1), dtype=jaxgrad.float64, copy=False),
            "with dtype 'Float' into dtype 'Double'",
        ),
        (lambda: jaxgrad.asarray([1], copy=False), "can't alias arbitrary sequence"),
    ],
)
def test_what_asarray_cannot_alias(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_complex_numbers_fill_in_single_precision():
    """PyTorch: `full` has complex64 where the default dtype is of half precision."""
    for default, kind in ((jaxgrad.half, "complex64"), (jaxgrad.float64, "complex128")):
        jaxgrad.set_default_dtype(default)
        try:
            assert jaxgrad.full((2,), 1j).dtype is getattr(jaxgrad, kind)
        finally:
            jaxgrad.set_default_dtype(jaxgrad.float32)


@pytest.mark.parametrize("name", ["hann", "hamming", "bartlett", "blackman", "kaiser"])
def test_windows_are_not_sparse(name):
    with pytest.raises(RuntimeError, match="not implemented for sparse types"):
        getattr(jaxgrad, f"{name}_window")(3, layout=jaxgrad.sparse_coo)


def test_random_integers_that_floats_do_not_hold():
    x = jaxgrad.zeros(3)
    with pytest.warns(UserWarning, match="to - 1 is out of bounds"):
        x.random_(0, 2**24 + 2)
    with pytest.warns(UserWarning, match="from is out of bounds"):
        x.random_(-(2**24) - 1, 0)
    assert x.dtype is jaxgrad.float32


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([(3, 3), (3, 0)], "expected sequence of length 3 at dim 2 .got 0."),
        ([(3, 3), (2, 3)], "expected sequence of length 3 at dim 1 .got 2."),
    ],
)
def test_lists_of_arrays_of_several_shapes(shapes, words):
    with pytest.raises(ValueError, match=words):
        jaxgrad.tensor([np.zeros(shape) for shape in shapes])


def test_arrays_whose_elements_are_not_aligned():
    array = np.lib.stride_tricks.as_strided(np.zeros(4), (2,), (3,))
    with pytest.raises(ValueError, match="strides not a multiple of the element byte size"):
        jaxgrad.from_numpy(array)


class Memory:
    """An object of another library, with the DLPack protocol alone."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_memory_of_other_libraries():
    memory = Memory(jaxgrad.arange(3.0))
    for make in (jaxgrad.tensor, jaxgrad.as_tensor, jaxgrad.asarray):
        assert make(memory).tolist() == [0, 1, 2]
    assert jaxgrad.tensor(memory, dtype=jaxgrad.int64).dtype is jaxgrad.int64


def test_memory_that_is_not_exported():
    sparse = jaxgrad.ones(2, 2).to_sparse()
    for tensor, words in ((jaxgrad.tensor([1j]).conj(), "conjugate bit"), (sparse, "strided")):
        with pytest.raises(BufferError, match=words):
            tensor.__dlpack__()
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        jaxgrad.ones(1).__dlpack__(stream=0)


def test_integers_compare_with_floats_in_the_default_dtype():
    """In double precision, also for integers of fewer bits."""
    jaxgrad.set_default_dtype(jaxgrad.float64)
    try:
        x = jaxgrad.tensor([2**24 + 1, 0], dtype=jaxgrad.int32)
        assert (x > 2.0**24).tolist() == [True, False]
        assert (jaxgrad.tensor([0], dtype=jaxgrad.uint8) < 0.5).tolist() == [True]
        assert (jaxgrad.tensor(True) == 0.5).item() is False
    finally:
        jaxgrad.set_default_dtype(jaxgrad.float32)


def test_a_format_of_a_tensor_that_is_written():
    with pytest.raises(RuntimeError, match="'memory_format' argument is incompatible with 'out'"):
        jaxgrad.empty(2, out=jaxgrad.ones(2), memory_format=jaxgrad.contiguous_format)


def test_ends_of_ranges_are_numbers_of_an_integer_dtype():
    """As PyTorch 2.13 prints them: -1 is 255 as a byte, 300 is none."""
    assert jaxgrad.linspace(-1, 3, 4, dtype=jaxgrad.uint8).tolist() == [255, 171, 87, 3]
    for function, end in ((jaxgrad.linspace, 300), (jaxgrad.logspace, 200)):
        with pytest.raises(
            RuntimeError, match=r"cannot be converted to type u?int8_t without overf"
        ):
            function(0, end, 4, dtype=jaxgrad.uint8 if end == 300 else jaxgrad.int8)
