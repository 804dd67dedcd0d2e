"""Storages: the memory of tensors as scripts look at it."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest
from helpers.as_torch import as_torch

import jaxgrad


@as_torch
def test_sizes_and_elements_of_storages(torch):
    x = torch.arange(12.0).reshape(3, 4)
    answers = {}
    for name, tensor in {
        "whole": x,
        "turned": x.t(),
        "part": x[1, 1:3],
        "expanded": torch.tensor([1.0, 2.0]).expand(3, 2),
        "integers": torch.tensor([1, 2, 300], dtype=torch.int16),
        "halves": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "complex": torch.tensor([1 + 2j]),
        "empty": torch.zeros(0),
    }.items():
        bytes_, typed = tensor.untyped_storage(), tensor.storage()
        answers[name] = [
            bytes_.nbytes(),
            bytes_.size(),
            len(bytes_),
            bytes_.tolist(),
            typed.size(),
            len(typed),
            typed.nbytes(),
            typed.element_size(),
            str(typed.dtype),
            str(typed.device),
            [str(number) for number in typed.tolist()],
            typed.data_ptr() == bytes_.data_ptr(),
            type(bytes_).__name__,
            type(typed).__name__,
            bytes_.element_size(),
        ]
    return answers


@as_torch
def test_kinds_of_storages(torch):
    x = torch.arange(3)
    storage = x.storage()
    return [
        isinstance(storage, torch.LongStorage),
        isinstance(storage, torch.FloatStorage),
        isinstance(storage, torch.TypedStorage),
        isinstance(storage, torch.UntypedStorage),
        isinstance(x.untyped_storage(), torch.UntypedStorage),
        isinstance(x.untyped_storage(), torch.TypedStorage),
        torch.is_storage(storage),
        torch.is_storage(x.untyped_storage()),
        torch.is_storage(x),
        storage[1],
        list(storage),
        storage.untyped().nbytes(),
    ]


def test_a_storage_shows_pending_writes():
    x = jaxgrad.zeros(4)
    storage = x.storage()
    x[1:].add_(jaxgrad.tensor([1.0, 2.0, 3.0]))
    assert storage.tolist() == [0, 1, 2, 3]
    assert storage == x[2:].storage() and storage != jaxgrad.zeros(4).storage()


def test_a_storage_of_a_result_in_another_order_of_dimensions():
    """A pointwise result has the strides of its argument, so its memory has that order too."""
    y = jaxgrad.arange(6.0).reshape(2, 3).t() + 1
    assert y.stride() == (1, 3) and y.storage().tolist() == [1, 2, 3, 4, 5, 6]


def test_storages_that_are_made():
    assert jaxgrad.UntypedStorage(2).tolist() == [0, 0] and len(jaxgrad.UntypedStorage()) == 0
    assert jaxgrad.FloatStorage([1, 2.5]).tolist() == [1, 2.5]
    assert jaxgrad.TypedStorage([1, 2], dtype=jaxgrad.int16).nbytes() == 4
    typed = jaxgrad.FloatStorage(wrap_storage=jaxgrad.UntypedStorage(8))
    assert (typed.size(), typed.dtype, typed.type()) == (2, jaxgrad.float32, "torch.FloatStorage")
    x = jaxgrad.empty(0).set_(typed)
    typed[1] = 3
    x[0] = 4
    assert (x.tolist(), typed.tolist()) == ([4, 3], [4, 3])
    for arguments, error in [((1, 2), RuntimeError), (("a",), TypeError)]:
        with pytest.raises(error):
            jaxgrad.FloatStorage(*arguments)


def test_writes_through_storages():
    x = jaxgrad.arange(3.0)
    bytes_, typed = x.untyped_storage(), x.storage()
    assert bytes_ is x[1:].untyped_storage()
    bytes_[3], bytes_[2] = 64, 0  # 2.0 is 0x40000000
    typed[-1] = 7
    assert x.tolist() == [2, 1, 7] and x._version == 0
    copied = typed.clone()
    assert bytes_.fill_(0) is bytes_ and x.tolist() == [0, 0, 0] and copied.tolist() == [2, 1, 7]
    assert typed.copy_(copied).tolist() == [2, 1, 7] and typed.long().tolist() == [2, 1, 7]
    swapped = jaxgrad.UntypedStorage([1, 2, 3, 4])
    swapped.byteswap(jaxgrad.int16)
    assert swapped.tolist() == [2, 1, 4, 3] and jaxgrad.tensor(typed).tolist() == [2, 1, 7]
    aliased = jaxgrad.asarray(typed)
    aliased[0] = 5
    assert x.tolist() == [5, 1, 7]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s[3], IndexError, "index 3 out of range for storage of size 2"),
        (lambda s: s[0:1], RuntimeError, "slices are only supported in UntypedStorage"),
        (lambda s: s["a"], RuntimeError, "can't index a"),
        (lambda s: s.__setitem__(0, "a"), TypeError, "can't assign a str to a torch.FloatTensor"),
        (lambda s: s.untyped()[::2], RuntimeError, "only a step of 1 is supported"),
        (lambda s: s.copy_(jaxgrad.FloatStorage(3)), RuntimeError, "size does not match"),
        (lambda s: s.untyped().resize_(3), RuntimeError, "multiple of 4 bytes"),
        (lambda s: s.share_memory_(), RuntimeError, "processes cannot share it"),
        (lambda s: s.untyped()[:2].resize_(3), RuntimeError, "storage that is not resizable"),
        (lambda s: jaxgrad.zeros(0).set_(s.untyped()[3:]), RuntimeError, "has no elements of"),
        (lambda s: type(s).from_buffer(b"abc", "big", dtype=s.dtype), ValueError, "multiple of"),
        (lambda s: type(s).from_buffer(b"abcd", "x", dtype=s.dtype), ValueError, "byte_order"),
    ],
)
def test_refused_uses_of_storages(call, error, message):
    storage = jaxgrad.FloatStorage([1, 2])
    with pytest.raises(error, match=message):
        call(storage)
    assert storage.tolist() == [1, 2]


def test_a_slice_of_a_storage_shares_its_memory():
    x = jaxgrad.arange(6.0)
    storage = x.untyped_storage()
    part = storage[8:16]
    assert part.nbytes() == 8 and part.data_ptr() - storage.data_ptr() == 8
    assert part != storage and not part.resizable()
    part[2:4].fill_(0)
    part[3] = 64
    assert x.tolist() == [0, 1, 2, 3, 4, 5]  # whose bytes these were
    typed = jaxgrad.TypedStorage(wrap_storage=part, dtype=jaxgrad.float32)
    typed[1] = 7
    assert x.tolist() == [0, 1, 2, 7, 4, 5]
    shown = jaxgrad.zeros(0).set_(part)
    shown.mul_(2)
    assert x.tolist() == [0, 1, 4, 14, 4, 5]
    x.zero_()
    assert part.tolist() == [0] * 8
    copied = copy.deepcopy(part)
    copied[0] = 1
    assert part[0] == 0 and copied.resizable()
    part.copy_(jaxgrad.ones(2).untyped_storage())
    assert x.tolist() == [0, 0, 1, 1, 0, 0]
    part.byteswap(jaxgrad.float32)
    part.byteswap(jaxgrad.float32)
    assert shown.tolist() == [1, 1]


def test_a_slice_of_a_storage_in_a_file(tmp_path):
    storage = jaxgrad.arange(6, dtype=jaxgrad.uint8).untyped_storage()
    jaxgrad.save([storage[1:3], storage], tmp_path / "file.pt")
    part, whole = jaxgrad.load(tmp_path / "file.pt")
    assert part.tolist() == [1, 2] and whole.tolist() == [0, 1, 2, 3, 4, 5]


def test_storages_have_no_numbers_in_a_trace():
    with pytest.raises(RuntimeError, match="has no numbers inside of a function"):
        jaxgrad.jit(lambda x: x.storage().tolist())(jaxgrad.ones(2))


def test_a_storage_as_text():
    shown = repr(jaxgrad.tensor([1, 2], dtype=jaxgrad.uint8).untyped_storage())
    assert shown == " 1\n 2\n[torch.storage.UntypedStorage(device=cpu) of size 2]"
    shown = repr(jaxgrad.ones(1, device="cpu").storage())
    assert shown == " 1.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 1]"


def test_bytes_of_numbers():
    values = np.arange(5, dtype=np.int32)
    bytes_ = jaxgrad.from_numpy(values).untyped_storage().tolist()
    assert bytes(bytes_) == values.tobytes()


def test_the_device_of_a_storage_of_a_noted_result():
    assert (jaxgrad.ones(3) + 1).untyped_storage().device == jaxgrad.device("cpu")


def test_the_module_torch_storage():
    assert jaxgrad.storage.UntypedStorage is jaxgrad.UntypedStorage
    assert jaxgrad.storage.TypedStorage is jaxgrad.TypedStorage
    assert not hasattr(jaxgrad.storage, "MissingStorage")


@pytest.mark.parametrize("kind", [jaxgrad.TypedStorage, jaxgrad.UntypedStorage])
def test_storages_without_data(kind):
    storage = kind([1, 2, 3], device="meta")
    assert (storage.device.type, storage.size(), storage.data_ptr()) == ("meta", 3, 0)
    storage.resize_(10)
    assert storage.size() == 10
    for read in (lambda: storage[0], storage.tolist, lambda: kind(device="meta")[0]):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            read()
    written = kind(10, device="cpu")
    for copied in (storage.cpu, lambda: written.copy_(storage)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            copied()
    for shared in (storage._share_fd_cpu_, storage._share_filename_cpu_, storage.share_memory_):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            shared()


def test_tensors_of_storages():
    floats = jaxgrad.FloatStorage([1, 2])
    assert jaxgrad.tensor(floats, dtype=jaxgrad.float32).tolist() == [1, 2]
    for make in (jaxgrad.tensor, jaxgrad.as_tensor):  # the bytes 0 0 128 63 0 0 0 64
        assert make(floats.untyped(), dtype=jaxgrad.int64).tolist() == [4611686019492741120]
        words = "Expected a Storage of type Double or an UntypedStorage, but got Float"
        with pytest.raises(RuntimeError, match=words):
            make(floats, dtype=jaxgrad.float64)
    assert jaxgrad.Tensor(floats.untyped()).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="type Long or an UntypedStorage, but got type Float"):
        jaxgrad.LongTensor(floats)


def test_the_types_of_storages():
    names = jaxgrad.storage._dtype_to_storage_type_map()
    assert names[jaxgrad.bfloat16] == "BFloat16Storage" and names[jaxgrad.quint8] == "QUInt8Storage"
    assert {jaxgrad.QUInt4x2Storage, jaxgrad.UntypedStorage} < jaxgrad._storage_classes
    storage = jaxgrad.QInt32Storage(4)
    storage[1:3] = -7
    assert storage.tolist() == [0, -7, -7, 0] and storage.nbytes() == 16


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: jaxgrad.storage._LegacyStorage(), RuntimeError, "Only child classes"),
        (lambda: jaxgrad.IntStorage(device="cpu"), RuntimeError, "'device' cannot be specified"),
        (lambda: jaxgrad.IntStorage(dtype=jaxgrad.int32), RuntimeError, "'dtype' cannot be"),
        (lambda: jaxgrad.IntStorage(0, 0), RuntimeError, "Too many positional arguments"),
        (lambda: jaxgrad.IntStorage("word"), TypeError, "invalid data type"),
        (lambda: jaxgrad.IntStorage(jaxgrad.ones(1)), TypeError, "Argument type not recognized"),
        (lambda: _wrapped(0), RuntimeError, "No positional arguments"),
        (lambda: _wrapped(dtype=None), RuntimeError, "Argument 'dtype' must be specified"),
        (lambda: _wrapped(dtype=0), TypeError, "Argument 'dtype' must be torch.dtype"),
        (lambda: _wrapped(device="cpu"), RuntimeError, "'device' should not be specified"),
        (lambda: _wrapped(wrap_storage=jaxgrad.IntStorage()), TypeError, "must be UntypedStorage"),
        (lambda: jaxgrad.IntStorage(1).fill_(jaxgrad.IntStorage(1)), RuntimeError, "cannot set"),
    ],
)
def test_storages_that_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def _wrapped(*size, **options):
    known = {"wrap_storage": jaxgrad.UntypedStorage(4), "dtype": jaxgrad.int32}
    return jaxgrad.TypedStorage(*size, **(known | options))


def test_storages_of_sequences_and_writes_to_slices_with_steps():
    assert jaxgrad.UntypedStorage(b"abc").tolist() == [97, 98, 99]
    source = jaxgrad.UntypedStorage([1, 2])
    assert jaxgrad.UntypedStorage(source).fill_(3).tolist() == [3, 3] and source.tolist() == [1, 2]
    x = jaxgrad.arange(4.0)
    x.storage()[::2] = 5
    assert x.tolist() == [5, 1, 5, 3] and x.storage().resizable()
    assert jaxgrad.UntypedStorage([1, 2]).float8_e5m2().tolist() == [1, 2]
    assert not source.is_sparse_csr
    with pytest.raises(RuntimeError, match="unable to open file <no such file>"):
        jaxgrad.from_file("no such file", size=4)


def test_a_storage_is_written_to_a_file():
    file = io.BytesIO()
    jaxgrad.ShortStorage([1, 2])._write_file(file, False, True, 2)
    assert file.getvalue() == b"\2\0\0\0\0\0\0\0\1\0\2\0"


def test_the_address_of_no_elements():
    x = jaxgrad.ones(2, 2)
    assert x[0:0].data_ptr() == 0 and x.untyped_storage().data_ptr() != 0


@as_torch("""
    'torch.float32'
    'torch.float64'
    True
""")
def test_the_default_storage(torch):
    before, x = str(torch.Storage(3).dtype), torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return [before, str(torch.Storage(3).dtype), torch.Storage is torch.DoubleStorage]
    finally:
        torch.set_default_dtype(x)


def test_storages_are_pickled():
    typed = jaxgrad.tensor([1.5, -2.0], dtype=jaxgrad.bfloat16).storage()
    again = pickle.loads(pickle.dumps(typed))
    assert type(again) is type(typed) and again.dtype is jaxgrad.bfloat16
    again[0] = 3
    assert again.tolist() == [3, -2] and typed.tolist() == [1.5, -2]
    assert pickle.loads(pickle.dumps(jaxgrad.UntypedStorage([1, 2]))).tolist() == [1, 2]


def test_typed_storages_warn_once():
    jaxgrad.set_warn_always(True)
    try:
        for make in (jaxgrad.ones(1).storage, jaxgrad.FloatStorage, jaxgrad.TypedStorage):
            with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
                make()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert jaxgrad.ones(1).storage_type() is jaxgrad.FloatStorage
            assert jaxgrad.ones(1).untyped_storage().nbytes() == 4
    finally:
        jaxgrad.set_warn_always(False)
    jaxgrad.ones(1).storage()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxgrad.ones(1).storage()
