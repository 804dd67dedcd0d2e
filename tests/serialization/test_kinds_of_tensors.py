"""Files of quantized, nested and masked tensors, those of PyTorch too."""

import io
import warnings

import numpy as np
import pytest
from helpers import saved_objects
from helpers.saved_objects import FILES

import jaxgrad as torch


def check(loaded):
    expected = saved_objects.kinds(torch)
    assert list(loaded) == list(expected)
    for name, value in expected.items():
        assert type(loaded[name]) is type(value) and repr(loaded[name]) == repr(value)
    assert loaded["whole"].int_repr().tolist() == [[5, 7], [9, 11]]
    assert loaded["channels"].int_repr().tolist() == [[5, 9], [9, 17]]
    assert loaded["channels"].q_per_channel_scales().tolist() == [0.5, 0.25]
    assert [part.tolist() for part in loaded["nested"].unbind()][1] == [[2], [6]]
    assert loaded["masked"].requires_grad


def test_a_file_of_pytorch():
    check(torch.load(FILES / "kinds.pt"))


@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_of_jaxgrad(is_new):
    file = io.BytesIO()
    torch.save(saved_objects.kinds(torch), file, _use_new_zipfile_serialization=is_new)
    file.seek(0)
    with warnings.catch_warnings(action="error"):
        check(torch.load(file))


def damaged(old: bytes, new: bytes):
    """The file of a quantized and a nested tensor with other instructions of one length."""
    objects = saved_objects.kinds(torch)
    file = io.BytesIO()
    kept = {name: objects[name] for name in ("whole", "channels", "nested", "masked")}
    torch.save(kept, file, _use_new_zipfile_serialization=False)
    data = file.getvalue()
    assert data.count(old) >= 1 and len(old) == len(new)
    return io.BytesIO(data.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"per_tensor_affine", b"per_channel_affin"),
        (b"QUInt8Storage", b"DoubleStorage"),
        # where the components of the nested tensor begin
        (np.array([0, 2, 4]).tobytes(), np.array([0, 2, 90]).tobytes()),
        (b"_masked_mask", b"_masked_mark"),
    ],
)
def test_parts_that_do_not_fit_are_refused(old, new):
    with pytest.raises(RuntimeError, match=r"^the file: "):
        torch.load(damaged(old, new))


def check_jagged(tensor):
    assert tensor.layout is torch.jagged and tensor.requires_grad and tensor.is_leaf
    assert tensor.offsets().tolist() == [0, 2, 6]
    parts = [[[1] * 3] * 2, np.arange(12).reshape(4, 3).tolist()]
    assert [part.tolist() for part in tensor.unbind()] == parts
    tensor.values().sum().backward()
    assert tensor.grad.values().tolist() == [[1] * 3] * 6


@pytest.mark.parametrize("is_new", [True, False])
def test_jagged_tensors(is_new):
    file = io.BytesIO()
    torch.save(saved_objects.jagged(torch), file, _use_new_zipfile_serialization=is_new)
    check_jagged(torch.load(file.seek(0) or file))
    check_jagged(torch.load(FILES / "jagged.pt"))


def test_jagged_tensors_that_do_not_fit():
    file = io.BytesIO()
    torch.save(saved_objects.jagged(torch), file, _use_new_zipfile_serialization=False)
    data, last = file.getvalue(), np.array([0, 2, 6]).tobytes()
    assert data.count(last) == 1
    changed = data.replace(last, np.array([0, 2, 7]).tobytes())
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.load(io.BytesIO(changed))
