"""Addresses: what ctypes reads at `data_ptr()` are the elements, where `stride()` says."""

import ctypes

import jax
import numpy as np
import pytest
from helpers import checks
from helpers.modes import eager

import jaxgrad
from jaxgrad.storage import address

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
LAYOUTS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2),
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1:, ::2],
    "expanded": lambda x: x[:, :1].expand(-1, 5, -1),
    "as_strided": lambda x: x.as_strided((2, 3), (7, 2), 3),
    "flat": lambda x: x.view(-1)[5:],
    "detached": lambda x: x.detach()[0],
    "copy in strides": lambda x: x.transpose(0, 1).clone(),
    "channels last": lambda x: x[None].contiguous(memory_format=jaxgrad.channels_last),
    "with gaps": lambda x: jaxgrad.empty_strided((2, 3), (9, 2), dtype=x.dtype).copy_(x[0, :2, :3]),
}


def tensor(dtype="float32"):
    return jaxgrad.arange(24).remainder(7).to(getattr(jaxgrad, dtype)).reshape(2, 3, 4)


def read(x):
    """The elements of a tensor, read from the memory of the process."""
    kind = np.dtype(x.dtype.numpy)
    steps = [step * kind.itemsize for step in x.stride()]
    reach = sum(step * (n - 1) for step, n in zip(steps, x.shape, strict=True)) + kind.itemsize
    content = (ctypes.c_ubyte * reach).from_address(x.data_ptr())
    memory = np.frombuffer(content, np.uint8).copy().view(np.uint8)
    shown = np.ndarray(tuple(x.shape), kind, memory.tobytes(), 0, steps)
    return shown.astype(np.complex128)


def assert_true(x):
    np.testing.assert_array_equal(read(x), np.array(x.tolist(), np.complex128))
    checks.count("aliasing")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_elements_are_at_the_address(dtype, layout):
    assert_true(LAYOUTS[layout](tensor(dtype)))


@pytest.mark.parametrize("copied", [0, address.COPIED])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_elements_are_there_after_writes(layout, copied, monkeypatch):
    monkeypatch.setattr(address, "COPIED", copied)
    base = tensor()
    view = LAYOUTS[layout](base)
    for write in (base.add_, base[1].mul_, base.view(-1)[3:9].sub_):
        write(3)
        assert_true(base)
        assert_true(view)


@pytest.mark.parametrize("x", [tensor(), jaxgrad.zeros(3), jaxgrad.ones(2, 2) @ jaxgrad.ones(2, 2)])
def test_aliases_share_an_address_and_copies_do_not(x):
    assert x.data_ptr() == x.detach().data_ptr() == x.view(-1).data_ptr() == x[:1].data_ptr()
    assert x[1:].data_ptr() - x.data_ptr() == x.stride(0) * 4
    assert x.untyped_storage().data_ptr() == x[1:].untyped_storage().data_ptr() == x.data_ptr()
    copies = [x, x.clone(), x + 0, jaxgrad.tensor(x.tolist()), jaxgrad.zeros_like(x)]
    assert len({copy.data_ptr() for copy in copies}) == len(copies)


def test_tensors_of_one_array_have_addresses_of_their_own(monkeypatch):
    monkeypatch.setattr(address, "COPIED", 0)
    array = jax.numpy.arange(4.0)
    first, second = (jaxgrad.asarray(array, copy=False) for _ in range(2))
    assert first.data_ptr() != second.data_ptr()
    assert_true(first)
    assert_true(second)


def test_the_address_of_a_small_tensor_stays_when_it_is_written_to():
    x = jaxgrad.tensor([1.0, 2.0])
    before = x.data_ptr()
    x.add_(1)
    x[0] = 5
    assert x.data_ptr() == before
    jaxgrad.jit(lambda x: x.mul_(2))(x)
    assert x.data_ptr() == before
    assert_true(x)


@pytest.mark.parametrize("holds", [False, True])
def test_the_values_move_to_the_old_memory_unless_somebody_reads_it(holds, monkeypatch):
    monkeypatch.setattr(address, "COPIED", 0)
    with eager("immediate,compiled"):
        x = jaxgrad.tensor([1.0, 2.0, 3.0]) * 2
        before, held = x.data_ptr(), x.numpy() if holds else None
        x.add_(1)
        assert (x.data_ptr() == before) is not holds
    assert_true(x)
    if holds:
        assert held.tolist() == [2.0, 4.0, 6.0]


def test_no_bytes_have_no_address():
    assert jaxgrad.zeros(0, 3).data_ptr() == 0
    assert jaxgrad.zeros(3, device="meta").data_ptr() == 0


def test_what_has_no_memory_is_refused():
    with pytest.raises(RuntimeError, match="inside of a function that is being traced"):
        jaxgrad.jit(lambda x: x.data_ptr())(jaxgrad.ones(2))
    with pytest.raises(RuntimeError, match="inside of a function that is being traced"):
        jax.jit(lambda a: jaxgrad.asarray(a, copy=False).data_ptr() + a)(jax.numpy.ones(2))


def test_the_storage_of_a_file_is_its_bytes(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(5, dtype="<i2").tobytes())
    storage = jaxgrad.UntypedStorage.from_file(path, nbytes=8)
    assert (storage.nbytes(), len(storage), storage[2]) == (8, 8, 1)
    assert storage[2:6].tolist() == [1, 0, 2, 0]
    assert storage[2:6].untyped().nbytes() == 4
    part = jaxgrad.asarray(storage[2:6], dtype=jaxgrad.uint8)
    assert (part.tolist(), part.dtype) == ([1, 0, 2, 0], jaxgrad.uint8)
    assert ctypes.string_at(storage.data_ptr(), 8) == path.read_bytes()[:8]
    assert jaxgrad.UntypedStorage.from_file(path).nbytes() == 10
    with pytest.raises(RuntimeError, match="smaller than the required mapping size <11>"):
        jaxgrad.UntypedStorage.from_file(path, nbytes=11)
    with pytest.raises(RuntimeError, match="do not reach the file"):
        jaxgrad.UntypedStorage.from_file(path, shared=True)
    with pytest.raises(RuntimeError, match="only a step of 1 is supported"):
        storage[::2]
    path.write_bytes(b"")
    assert jaxgrad.UntypedStorage.from_file(path).tolist() == []


def test_addresses_of_objects():
    x = jaxgrad.arange(4.0)
    view, other = x[1:], jaxgrad.arange(4.0)
    assert x._cdata == x._cdata and len({x._cdata, view._cdata, other._cdata, x.data._cdata}) == 4
    storages = [tensor.untyped_storage() for tensor in (x, view, x.detach(), other)]
    assert (
        len({storage._cdata for storage in storages}) == 2
        and storages[0]._cdata != storages[3]._cdata
    )
