"""`torch.Tensor(...)` and the types of early PyTorch, as PyTorch 2.13 gives them."""

import copy
import pickle
from array import array
from collections import deque

import numpy as np
import pytest

import jaxgrad as torch


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: torch.Tensor([[1, 2], [3, 4]]), [[1.0, 2.0], [3.0, 4.0]]),
        (lambda: torch.Tensor((2, 3)), [2.0, 3.0]),
        (lambda: torch.Tensor(np.ones(2)), [1.0, 1.0]),
        (lambda: torch.Tensor(data=[1, 2]), [1.0, 2.0]),
        (lambda: torch.Tensor(), []),
        (lambda: torch.LongTensor([1, 2]), [1, 2]),
        (lambda: torch.BoolTensor([0, 2]), [False, True]),
        (lambda: torch.DoubleTensor([0.1]), [0.1]),
    ],
)
def test_of_data(make, expected):
    tensor = make()
    assert type(tensor) is torch.Tensor and tensor.tolist() == expected
    assert tensor.device == torch.device("cpu") and not tensor.requires_grad


@pytest.mark.parametrize("sizes", [(2, 3), (torch.Size([2, 3]),)])
@pytest.mark.parametrize("kind", ["Tensor", "FloatTensor", "LongTensor", "HalfTensor"])
def test_of_sizes(kind, sizes):
    tensor = getattr(torch, kind)(*sizes)
    assert tensor.shape == (2, 3)
    assert tensor.type() == ("torch.FloatTensor" if kind == "Tensor" else f"torch.{kind}")


def test_tensor_is_of_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.Tensor([1]).dtype is torch.float64
        assert torch.FloatTensor([1]).dtype is torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_of_a_tensor_is_an_alias():
    x = torch.zeros(2)
    y = torch.Tensor(x)
    y[0] = 5
    assert x.tolist() == [5, 0] and x._version == y._version == 1
    leaf = torch.ones(2, requires_grad=True)
    (torch.Tensor(leaf) * 3).sum().backward()
    assert leaf.grad.tolist() == [3, 3]
    assert torch.Tensor(torch.ones(2, dtype=torch.int64)).dtype is torch.int64


def test_a_new_tensor_is_like_others():
    tensor = torch.Tensor([1.0, 2.0]).requires_grad_()
    (tensor * tensor).sum().backward()
    assert tensor.grad.tolist() == [2, 4] and tensor.is_leaf
    for other in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert other.tolist() == [1, 2] and other.requires_grad
    view = torch.Tensor(2, 2).zero_()
    view[0].add_(1)
    assert view.tolist() == [[1, 1], [0, 0]]
    assert torch.jit(lambda x: x + torch.Tensor([1, 2]))(torch.ones(2)).tolist() == [2, 3]


def test_data_are_any_sequences():
    """As in PyTorch, which refuses text, sets and iterators."""
    for data in (range(1, 3), deque([1, 2]), bytearray(b"\1\2"), array("f", [1, 2])):
        for tensor in (torch.IntTensor(data), torch.Tensor(data), torch.zeros(1).new(data)):
            assert tensor.tolist() == [1, 2], data
    for other in ({1}, iter([1]), "12", b"12", {1: 2}):
        with pytest.raises(TypeError):
            torch.IntTensor(other)


def test_instances_and_conversions():
    x = torch.zeros(2)
    assert isinstance(x, torch.FloatTensor) and not isinstance(x, torch.DoubleTensor)
    assert isinstance(torch.nn.Parameter(x), torch.FloatTensor) and not isinstance(
        1, torch.IntTensor
    )
    assert x.type(torch.DoubleTensor).dtype is x.type("torch.DoubleTensor").dtype is torch.float64
    assert x.type(torch.FloatTensor) is x and x.type("torch.LongTensor").dtype is torch.int64
    kind = torch.FloatTensor
    assert (repr(kind), kind.dtype) == ("<class 'torch.FloatTensor'>", torch.float32)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: torch.Tensor(3.0), TypeError, r"data must be a sequence \(got float\)"),
        (lambda: torch.Tensor(None), TypeError, r"data must be a sequence \(got NoneType\)"),
        (lambda: torch.Tensor([1], [2]), TypeError, "Tensor"),
        (lambda: torch.Tensor([1.0], requires_grad=True), TypeError, "requires_grad"),
        (lambda: torch.Tensor(-1), RuntimeError, "negative dimension"),
        (lambda: torch.LongTensor(torch.ones(2)), TypeError, "expected a tensor of torch.int64"),
        (lambda: torch.FloatTensor(2, device="cuda"), RuntimeError, "expects device type: cpu"),
        (lambda: torch.ones(1).type("torch.Foo"), ValueError, "invalid type: 'torch.Foo'"),
        (lambda: torch.ones(1).type("float32"), ValueError, "invalid type: 'float32'"),
    ],
)
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_tensor_and_a_device_are_refused():
    x = torch.ones(1)
    for call in (lambda: torch.Tensor(x, device="cpu"), lambda: x.new(x, device="cpu")):
        with pytest.raises(RuntimeError, match="is not supported"):
            call()
    assert x.new(x).tolist() == [1] and x.new(2, device="cpu").shape == (2,)


def test_the_classes_of_tensors():
    assert {torch.FloatTensor, torch.cuda.HalfTensor} < torch._tensor_classes
    assert [kind.is_cuda for kind in (torch.FloatTensor, torch.cuda.FloatTensor)] == [False, True]
    assert torch.LongTensor.layout is torch.strided and not torch.LongTensor.is_sparse
    with pytest.raises(TypeError, match=r"type 'torch\.FloatTensor' is not an acceptable base"):
        type("Derived", (torch.FloatTensor,), {})
    assert torch.ones(1, dtype=torch.int32).type(torch.Tensor).dtype is torch.float32
    assert torch.Tensor(range(2)).tolist() == [0, 1] == torch.Tensor(other=[0, 1]).tolist()


def test_types_of_the_default():
    kinds = []
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        kinds.append(torch.Storage)
    assert kinds == [torch.DoubleStorage, torch.FloatStorage]
    if not torch.cuda.is_available():
        with (
            pytest.warns(UserWarning, match="deprecated"),
            pytest.raises(TypeError, match="Torch not compiled with CUDA enabled"),
        ):
            torch.set_default_tensor_type(torch.cuda.FloatTensor)
