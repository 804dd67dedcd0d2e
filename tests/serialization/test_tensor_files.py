"""Files of tensors: `load` gives back what `save` wrote, and other safetensors readers agree.

`plain.safetensors` in tests/oracle was written by `safetensors.torch.save_file` of PyTorch 2.13.
"""

import io
import json
import os
import stat
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import jaxgrad

ORACLE = Path(__file__).parents[1] / "oracle"

DTYPES = [
    "float64", "float32", "float16", "bfloat16", "complex64", "complex128", "bool", "uint8", "int8",
    "int16", "int32", "int64", "uint16", "uint32", "uint64",
]  # fmt: skip


def same(first, second):
    if isinstance(first, jaxgrad.Tensor):
        assert first.dtype is second.dtype and first.shape == second.shape
        assert first.requires_grad == second.requires_grad
        assert first.detach().tolist() == second.detach().tolist()
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for key, value in first.items():
            same(value, second[key])
    elif isinstance(first, list | tuple):
        assert type(first) is type(second) and len(first) == len(second)
        for pair in zip(first, second, strict=True):
            same(*pair)
    else:
        assert type(first) is type(second) and first == second


def test_dicts_of_tensors(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {
        name: jaxgrad.tensor([[1, 0], [1, 1]], dtype=getattr(jaxgrad, name)) for name in DTYPES
    }
    tensors |= {"0-d": jaxgrad.tensor(2.5), "empty": jaxgrad.zeros(0, 3)}
    tensors["turned"] = jaxgrad.arange(6.0).reshape(2, 3).t()
    jaxgrad.save(tensors, path)
    same(jaxgrad.load(path), tensors)
    read = safetensors.numpy.load_file(path)
    assert read.keys() == tensors.keys()
    for name, array in read.items():
        if name == "complex128":  # the format stores pairs of numbers only
            array = array.view(np.complex128)[..., 0]
        assert array.dtype == tensors[name].dtype.numpy
        np.testing.assert_array_equal(array, np.asarray(tensors[name]))


def test_files_of_others(tmp_path):
    arrays = {"b": np.arange(3.0), "a.weight": np.ones((2, 2), np.float16)}
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(arrays, path, metadata={"format": "np", "note": "anything"})
    read = jaxgrad.load(path)
    assert sorted(read) == ["a.weight", "b"]
    assert read["a.weight"].dtype is jaxgrad.float16 and read["b"].tolist() == [0, 1, 2]


def test_a_file_of_PyTorch():
    read = jaxgrad.load(ORACLE / "plain.safetensors")
    same(
        dict(sorted(read.items())),
        {
            "count": jaxgrad.tensor(7),
            "layer.bias": jaxgrad.tensor([0.5, -0.25], dtype=jaxgrad.bfloat16),
            "layer.weight": jaxgrad.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        },
    )


def test_a_file_that_torch_save_has_written(tmp_path):
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", bytes(100))
        archive.writestr("model/version", "3")
    message = r"model\.pt is no safetensors file, but looks like one of torch.save .*save_file"
    with pytest.raises(RuntimeError, match=message):
        jaxgrad.load(path)
    path.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")  # as it did before 1.6
    with pytest.raises(RuntimeError, match=message):
        jaxgrad.load(path)


def test_everything_that_a_state_dict_holds(tmp_path):
    path = tmp_path / "state"
    held = {
        "numbers": [1, -2.5, True, None, float("inf"), 2**70, 1 + 2j],
        "words": ("a", ("b", [])),
        3: {"tensor": jaxgrad.ones(2), 0.5: {}},
        "a.b": jaxgrad.tensor(1),
        "a": {"b": jaxgrad.tensor(2)},
        "grad": jaxgrad.ones(1, requires_grad=True),
        "dtype": jaxgrad.bfloat16,
        ("of", "two"): np.float64(0.5).item(),
    }
    jaxgrad.save(held, path)
    same(jaxgrad.load(path), held)
    names = safetensors.numpy.load_file(path)
    assert {"3.tensor", "a.b", "a.b_", "grad"} == names.keys()


@pytest.mark.parametrize("value", [jaxgrad.tensor([1.0]), [jaxgrad.tensor(1)], 3, {}, None])
def test_what_is_no_dict(value):
    file = io.BytesIO()
    jaxgrad.save(value, file)
    file.seek(0)
    same(jaxgrad.load(file), value)


def test_nan_and_signed_zero_are_kept_bit_by_bit():
    values = np.array([np.nan, -0.0, np.inf, 1e-310])
    file = io.BytesIO()
    jaxgrad.save({"x": jaxgrad.tensor(values)}, file)
    file.seek(0)
    assert jaxgrad.load(file)["x"].numpy().tobytes() == values.tobytes()


def test_an_optimizer_goes_on_where_it_ended(tmp_path):
    path = tmp_path / "optimizer.safetensors"

    def trained(steps, begin=None):
        x = jaxgrad.tensor([1.0, -2.0], requires_grad=True)
        optimizer = jaxgrad.optim.Adam([x], lr=0.1, amsgrad=True)
        scheduler = jaxgrad.optim.lr_scheduler.MultiStepLR(optimizer, [2, 3])
        if begin is not None:
            with jaxgrad.no_grad():
                x.copy_(begin["x"])
            optimizer.load_state_dict(begin["optimizer"])
            scheduler.load_state_dict(begin["scheduler"])
        for _ in range(steps):
            optimizer.zero_grad()
            (x**2).sum().backward()
            optimizer.step()
            scheduler.step()
        parts = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
        return {"x": x.detach(), **parts}

    jaxgrad.save(trained(2), path)
    names = safetensors.numpy.load_file(path).keys()
    assert {"x", "optimizer.state.0.step", "optimizer.state.0.max_exp_avg_sq"} < names
    same(trained(2, jaxgrad.load(path))["x"], trained(4)["x"])


def test_a_tensor_with_a_pending_write():
    base = jaxgrad.zeros(3)
    base[1:].add_(1)
    file = io.BytesIO()
    jaxgrad.save([base], file)
    file.seek(0)
    assert jaxgrad.load(file)[0].tolist() == [0, 1, 1]


def test_map_location_of_load():
    file = io.BytesIO()
    jaxgrad.save([jaxgrad.ones(1)], file)
    file.seek(0)
    (read,) = jaxgrad.load(file, map_location=jaxgrad.device("cpu"), weights_only=True)
    assert read.device.type == "cpu"


# ---- what goes wrong


def test_objects_that_no_file_holds():
    file, x = io.BytesIO(), jaxgrad.ones(1, requires_grad=True)
    optimizer = jaxgrad.optim.SGD([x])
    with pytest.raises(TypeError, match=r"obj\['a'\]\[1\] is of type SGD.*save its state_dict\(\)"):
        jaxgrad.save({"a": [1, optimizer]}, file)
    with pytest.raises(TypeError, match="obj is of type function"):
        jaxgrad.save(lambda: 1, file)
    with pytest.raises(TypeError, match="a key of a dict is a number or a string, not object"):
        jaxgrad.save({object(): 1}, file)
    assert file.getvalue() == b""


def test_a_tensor_that_is_traced():
    with pytest.raises(RuntimeError, match="save needs the numbers"):
        jaxgrad.jit(lambda x: jaxgrad.save([x], io.BytesIO()))(jaxgrad.ones(2))


def with_structure(structure):
    arrays = {"x": np.ones(1)}
    return safetensors.numpy.save(arrays, {"jaxgrad": json.dumps(structure)})


DAMAGED = {
    "empty": b"",
    "text": b"weights: 1, 2, 3",
    "archive": b"PK\x03\x04" + bytes(60),
    "long header": struct.pack("<Q", 1 << 40) + b"{}",
    "no header": struct.pack("<Q", 2) + b"[]",
    "cut": with_structure({"tensor": "x"})[:-3],
    "unknown tensor": with_structure({"tensor": "y"}),
    "unknown kind": with_structure({"code": "print(1)"}),
    "unknown dtype": with_structure({"dtype": "annotations"}),
    "no pairs": with_structure({"dict": [1, 2]}),
    "list as key": with_structure({"dict": [[{"list": []}, 1]]}),
    "nothing": with_structure({}),
    "deep": safetensors.numpy.save({}, {"jaxgrad": "[" * 100_000}),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_files_that_are_damaged(data):
    with pytest.raises(RuntimeError, match="the file is no safetensors file"):
        jaxgrad.load(io.BytesIO(data))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        jaxgrad.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        jaxgrad.save({}, tmp_path / "none" / "file")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    jaxgrad.save({"x": jaxgrad.ones(1)}, path)
    before = path.read_bytes()

    def fails(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no space left"):
        jaxgrad.save({"x": jaxgrad.zeros(1000)}, path)
    monkeypatch.undo()
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]
    jaxgrad.save({"x": jaxgrad.zeros(1)}, path)
    assert jaxgrad.load(path)["x"].tolist() == [0]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "model"
    path.write_bytes(b"")
    path.chmod(mode)
    jaxgrad.save({"x": jaxgrad.ones(3)}, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode and jaxgrad.load(path)["x"].tolist() == [1] * 3


def test_a_link_is_followed(tmp_path):
    path, link = tmp_path / "model", tmp_path / "latest"
    jaxgrad.save([1], path)
    link.symlink_to(path)
    jaxgrad.save([2], link)
    assert link.is_symlink() and jaxgrad.load(path) == [2]


def test_a_loaded_tensor_is_ones_own(tmp_path):
    path = tmp_path / "model"
    jaxgrad.save({"x": jaxgrad.ones(3)}, path)
    read = jaxgrad.load(path)["x"]
    path.write_bytes(bytes(path.stat().st_size))
    assert read.add_(1).tolist() == [2, 2, 2]
