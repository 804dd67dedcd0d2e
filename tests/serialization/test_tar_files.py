"""Tar archives, PyTorch's first format; the expected values are those that PyTorch 2.13 reads."""

import io
import struct
import tarfile

import pytest

import jaxgrad as torch

FLOATS = b"ctorch\nFloatStorage\n", b"ctorch\nFloatTensor\n"


def instructions(code: bytes) -> bytes:
    return b"\x80\x02" + code + b"."


def storage(key: int, kind=FLOATS[0], location=b"cpu") -> bytes:
    return instructions(b"(K%cU%c%s%st" % (key, len(location), location, kind))


def tensor(key: int, of: int, size, stride, offset: int) -> bytes:
    places = struct.pack(f"<{2 * len(size) + 1}q", *size, *stride, offset)
    head = instructions(b"(K%cK%c%st" % (key, of, FLOATS[1]))
    return head + struct.pack("<i4x", len(size)) + places


STORAGES = (
    instructions(b"K\x01")
    + storage(11)
    + struct.pack("<q6f", 6, *range(6))
    + instructions(b"](K\x0cK\x0bK\x02K\x03te".replace(b"](", b"]((", 1))
)
TENSORS = instructions(b"K\x02") + tensor(21, 11, (2, 3), (3, 1), 0) + tensor(22, 12, (2,), (1,), 1)
OBJECT = instructions(b"}(U\x01aU\x0221QU\x01bU\x0222QU\x01nK\x03U\x01sU\x0212Qu")


def tar_of(**entries) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for name, data in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    file.seek(0)
    return file


def test_tensors_and_slices_of_storages():
    with pytest.warns(UserWarning, match="holds more than data"):
        value = torch.load(
            tar_of(storages=STORAGES, tensors=TENSORS, pickle=OBJECT), weights_only=False
        )
    assert value["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and value["n"] == 3
    value["a"][0, 2] = 9
    assert value["b"].tolist() == [3, 4] and value["s"].tolist() == [9, 3, 4]


def test_what_is_refused():
    whole = {"storages": STORAGES, "tensors": TENSORS, "pickle": OBJECT}
    with pytest.raises(RuntimeError, match=r"weights_only=True`` with files .*legacy \.tar format"):
        torch.load(tar_of(**whole))
    for name in whole:
        part = {key: data for key, data in whole.items() if key != name}
        with (
            pytest.warns(UserWarning, match="holds more than data"),
            pytest.raises(RuntimeError, match=f"no entry {name}"),
        ):
            torch.load(tar_of(**part), weights_only=False)


def test_a_slice_of_a_storage_under_a_tensor():
    part = torch.arange(6.0).untyped_storage()[8:20]
    floats = torch.TypedStorage(wrap_storage=part, dtype=torch.float32)
    assert torch._utils._rebuild_tensor(floats, 1, (2,), (1,)).tolist() == [3, 4]
