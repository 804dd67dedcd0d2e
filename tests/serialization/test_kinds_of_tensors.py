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


FORMATS = pytest.mark.parametrize("is_new", [True, False])


def passed_on(value, is_new=True, weights_only=True):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=is_new)
    with warnings.catch_warnings(action="ignore"):
        return torch.load(io.BytesIO(file.getvalue()), weights_only=weights_only)


def tensors_of_all_kinds():
    x = torch.ones(3, 2)
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    return [
        *(x, x.to_sparse(), x.to_sparse_csr(), x.to(torch.complex64).to(torch.complex32)),
        torch.quantize_per_tensor(x, 0.5, 2, torch.quint8),
        *(jagged, torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])),
        *(torch.empty(2, device="meta"), torch.empty(2, device="meta", dtype=torch.complex32)),
        torch.nn.Parameter(torch.ones(2)),
    ]


@pytest.mark.parametrize("weights_only", [True, False])
@FORMATS
def test_attributes_stay_on_tensors_of_all_kinds(is_new, weights_only):
    """As in PyTorch, where each of these tensors comes back with the attribute."""
    tensors, shared = tensors_of_all_kinds(), [1]
    for number, tensor in enumerate(tensors):
        tensor.note, tensor.other = {"number": number}, shared
    read = passed_on(tensors, is_new, weights_only)
    assert [tensor.note["number"] for tensor in read] == [*range(len(tensors))]
    assert all(tensor.other is read[0].other for tensor in read)
    assert [tensor.layout for tensor in read] == [tensor.layout for tensor in tensors]


def test_attributes_of_classes_are_not_those_of_a_file():
    x = torch.quantize_per_tensor(torch.ones(2), 0.5, 2, torch.quint8)
    x.skala = 7.0
    file = io.BytesIO()
    torch.save(x, file, _use_new_zipfile_serialization=False)
    hostile = file.getvalue().replace(b"skala", b"_axis")
    with pytest.raises(RuntimeError, match="the attribute _axis of its class"):
        torch.load(io.BytesIO(hostile))


@FORMATS
def test_buffers_stay_buffers(is_new):
    buffers = [torch.nn.Buffer(torch.ones(2)), torch.nn.Buffer(torch.ones(2), persistent=False)]
    assert [buffer.persistent for buffer in buffers] == [True, False]
    read = passed_on(buffers, is_new)
    assert all(isinstance(buffer, torch.nn.Buffer) for buffer in read)
    module = torch.nn.Module()
    module.first, module.second = read
    assert list(module.state_dict()) == ["first"] and len(list(module.buffers())) == 2


@FORMATS
def test_schemes_of_quantized_tensors(is_new):
    schemes = [torch.per_tensor_affine, torch.per_channel_symmetric]
    assert passed_on(schemes, is_new) == schemes


@FORMATS
def test_places_and_strides(is_new):
    """Where a tensor without elements begins, and the strides of one without numbers."""
    turned = torch.empty(3, 2, device="meta").t()
    behind, beyond = torch.ones(4)[4:], torch.empty(0).as_strided((0,), (1,), 2)
    read = passed_on([turned, behind, beyond], is_new)
    assert read[0].stride() == (1, 2) and read[0].shape == (2, 3)
    assert read[1].shape == read[2].shape == (0,) and (read[2] + 1).numel() == 0


@FORMATS
def test_conjugates_stay_views_of_conjugates(is_new):
    z = torch.tensor([1 + 2j, 3j])
    alone, (whole, part) = passed_on([z.clone().conj(), [z, z.conj()[1:]]], is_new)
    assert alone.is_conj() and alone.tolist() == [1 - 2j, -3j]
    assert part.is_conj() and not whole.is_conj()
    whole.mul_(2)
    assert part.tolist() == [-6j]


def test_files_of_the_old_format_that_end_too_early():
    """PyTorch raises EOFError for most of these, and programs catch it."""
    file = io.BytesIO()
    torch.save([1, {"a": 2}], file, _use_new_zipfile_serialization=False)
    data = file.getvalue()
    for count in (1, 30, len(data) - 20):
        with pytest.raises(EOFError, match="ends in the middle"):
            torch.load(io.BytesIO(data[:count]))
