"""Files of safetensors: `load` gives back what `save` wrote, and other readers agree.

`plain.safetensors` in tests/oracle was written by `safetensors.torch.save_file` of PyTorch 2.13.
"""

import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from helpers import saved_objects
from helpers.saved_objects import described

import jaxgrad

ORACLE = Path(__file__).parents[1] / "oracle"

DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "complex64",
    "complex128",
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
]


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
    jaxgrad.save(tensors, path, format="safetensors")
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


@pytest.mark.parametrize("first", range(0x78, 0x100, 8))
def test_a_header_of_any_length(first):
    """The first byte of a file is that of the length, and 0x80 begins old files of PyTorch."""
    header = json.dumps({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})
    data = struct.pack("<Q", first) + header.ljust(first).encode() + b"\x07"
    assert jaxgrad.load(io.BytesIO(data))["x"].tolist() == [7]


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
    jaxgrad.save(held, path, format="safetensors")
    same(jaxgrad.load(path), held)
    names = safetensors.numpy.load_file(path)
    assert {"3.tensor", "a.b", "a.b_", "grad"} == names.keys()


@pytest.mark.parametrize("value", [jaxgrad.tensor([1.0]), [jaxgrad.tensor(1)], 3, {}, None])
def test_what_is_no_dict(value):
    file = io.BytesIO()
    jaxgrad.save(value, file, format="safetensors")
    file.seek(0)
    same(jaxgrad.load(file), value)


def test_nan_and_signed_zero_are_kept_bit_by_bit():
    values = np.array([np.nan, -0.0, np.inf, 1e-310])
    file = io.BytesIO()
    jaxgrad.save({"x": jaxgrad.tensor(values)}, file, format="safetensors")
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

    jaxgrad.save(trained(2), path, format="safetensors")
    names = safetensors.numpy.load_file(path).keys()
    assert {"x", "optimizer.state.0.step", "optimizer.state.0.max_exp_avg_sq"} < names
    same(trained(2, jaxgrad.load(path))["x"], trained(4)["x"])


def test_a_tensor_with_a_pending_write():
    base = jaxgrad.zeros(3)
    base[1:].add_(1)
    file = io.BytesIO()
    jaxgrad.save([base], file, format="safetensors")
    file.seek(0)
    assert jaxgrad.load(file)[0].tolist() == [0, 1, 1]


def test_map_location_of_load():
    file = io.BytesIO()
    jaxgrad.save([jaxgrad.ones(1)], file, format="safetensors")
    file.seek(0)
    (read,) = jaxgrad.load(file, map_location=jaxgrad.device("cpu"), weights_only=True)
    assert read.device.type == "cpu"


# ---- what goes wrong


def test_objects_that_no_file_holds():
    file, x = io.BytesIO(), jaxgrad.ones(1, requires_grad=True)
    optimizer = jaxgrad.optim.SGD([x])
    with pytest.raises(TypeError, match=r"obj\['a'\]\[1\] is of type SGD.*save its state_dict\(\)"):
        jaxgrad.save({"a": [1, optimizer]}, file, format="safetensors")
    with pytest.raises(TypeError, match="obj is of type function"):
        jaxgrad.save(lambda: 1, file, format="safetensors")
    with pytest.raises(TypeError, match="a key of a dict is a number or a string, not object"):
        jaxgrad.save({object(): 1}, file, format="safetensors")
    assert file.getvalue() == b""


def test_a_tensor_that_is_traced():
    for form in ("safetensors", "pt"):
        save = jaxgrad.jit(lambda x, form=form: jaxgrad.save([x], io.BytesIO(), format=form))
        with pytest.raises(RuntimeError, match="save needs the numbers"):
            save(jaxgrad.ones(2))


def with_structure(structure):
    arrays = {"x": np.ones(1)}
    return safetensors.numpy.save(arrays, {"jaxgrad": json.dumps(structure)})


DAMAGED = {
    "empty": (b"", "the file is empty"),
    "text": (b"weights: 1, 2, 3", "no file of torch.save and no safetensors file"),
    "archive": (b"PK\x03\x04" + bytes(60), "the archive is damaged"),
    "long header": (struct.pack("<Q", 1 << 40) + b"{}", "more than safetensors allows"),
    "no header": (struct.pack("<Q", 2) + b"{]", "no header of safetensors"),
    "cut": (with_structure({"tensor": "x"})[:-3], "damaged or was not written to its end"),
    "unknown tensor": (with_structure({"tensor": "y"}), "structure of its tensors is damaged"),
    "unknown kind": (with_structure({"code": "print(1)"}), "structure of its tensors is damaged"),
    "deep": (safetensors.numpy.save({}, {"jaxgrad": "[" * 100_000}), "is damaged .*recursion"),
}


@pytest.mark.parametrize(("data", "message"), DAMAGED.values(), ids=DAMAGED.keys())
def test_files_that_are_damaged(data, message):
    with pytest.raises(RuntimeError, match=f"the file: .*{message}"):
        jaxgrad.load(io.BytesIO(data))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        jaxgrad.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        jaxgrad.save({}, tmp_path / "none" / "file")


def test_a_loaded_tensor_is_ones_own(tmp_path):
    path = tmp_path / "model"
    jaxgrad.save({"x": jaxgrad.ones(3)}, path, format="safetensors")
    read = jaxgrad.load(path)["x"]
    path.write_bytes(bytes(path.stat().st_size))
    assert read.add_(1).tolist() == [2, 2, 2]


# ---- memory that tensors share


def saved_and_loaded(value, **options):
    file = io.BytesIO()
    jaxgrad.save(value, file, format="safetensors")
    file.seek(0)
    return jaxgrad.load(file, **options)


@pytest.mark.slow
def test_views_and_ties_come_back():
    value = saved_objects.views(jaxgrad)
    result = saved_and_loaded(value)
    assert described(jaxgrad, result) == described(jaxgrad, value)
    result["whole"][0, 0] = 9
    assert result["turned"][0, 0].item() == result["reshaped"][0, 0].item() == 9
    result["parts alone"][0][2] = 100
    assert result["parts alone"][1].tolist() == [100, 5, 6, 7]


@pytest.mark.parametrize("name", ["tensors", "containers"])
def test_objects(name):
    """Lists that are one object are the one thing that JSON does not say."""
    value = saved_objects.all_objects(jaxgrad)[name]
    value.pop("shared", None)
    assert described(jaxgrad, saved_and_loaded(value)) == described(jaxgrad, value)


def test_lone_views_keep_their_values_and_their_order():
    value = saved_objects.lone_views(jaxgrad)
    result = saved_and_loaded(value)
    for name, tensor in value.items():
        assert result[name].tolist() == tensor.tolist() and result[name].dtype is tensor.dtype
    for name in ("turned", "channels last"):
        assert result[name].stride() == value[name].stride()


def test_arrays_of_numpy():
    value = {"array": np.arange(6.0).reshape(2, 3).T, "state": (np.arange(3, dtype=np.uint32), 1)}
    result = saved_and_loaded(value)
    assert result["array"].tolist() == value["array"].tolist() and result["array"].flags.writeable
    assert result["state"][0].dtype == np.uint32


def test_other_readers_find_every_name_of_tied_weights(tmp_path):
    path = tmp_path / "model.safetensors"
    embedding = jaxgrad.nn.Embedding(3, 2)
    head = jaxgrad.nn.Linear(2, 3, bias=False)
    head.weight = embedding.weight
    model = jaxgrad.nn.Sequential(embedding, head)
    jaxgrad.save(model.state_dict(), path, format="safetensors")
    arrays = safetensors.numpy.load_file(path)
    assert arrays["0.weight"].tolist() == arrays["1.weight"].tolist() == head.weight.tolist()
    read = jaxgrad.load(path)
    read["0.weight"].zero_()
    assert read["1.weight"].tolist() == [[0, 0]] * 3


def test_numbers_that_another_program_changed_are_taken(tmp_path):
    path = tmp_path / "model.safetensors"
    x = jaxgrad.arange(3.0)
    jaxgrad.save({"x": x, "y": x.detach(), "z": x}, path, format="safetensors")
    with safetensors.safe_open(path, "np") as file:
        metadata = file.metadata()
    arrays = safetensors.numpy.load_file(path)
    arrays["y"] = arrays["y"] + 1
    safetensors.numpy.save_file(arrays, path, metadata=metadata)
    read = jaxgrad.load(path)
    assert read["y"].tolist() == [1, 2, 3] and read["x"].tolist() == [0, 1, 2]
    assert read["z"] is read["x"] and read["y"].add_(1) is not None
    assert read["x"].tolist() == [0, 1, 2]


def test_an_object_that_contains_itself():
    itself = [1]
    itself.append(itself)
    with pytest.raises(ValueError, match=r'an object contains itself.*format="pt"'):
        jaxgrad.save(itself, io.BytesIO(), format="safetensors")
    file = io.BytesIO()
    jaxgrad.save(itself, file, format="pt")
    file.seek(0)
    result = jaxgrad.load(file)
    assert result[1] is result


def test_a_mapped_file(tmp_path):
    path = tmp_path / "model.safetensors"
    value = {"wide": jaxgrad.arange(1000.0), "bytes": jaxgrad.ones(3, dtype=jaxgrad.uint8)}
    jaxgrad.save(value, path, format="safetensors")
    for name, tensor in jaxgrad.load(path, mmap=True).items():
        assert tensor.tolist() == value[name].tolist()
        assert (tensor + 1).tolist() == (value[name] + 1).tolist()
