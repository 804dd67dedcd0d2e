"""Storages: the memory of tensors as scripts look at it."""

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


def test_storages_are_made_of_tensors_alone():
    for kind in (jaxgrad.UntypedStorage, jaxgrad.TypedStorage, jaxgrad.FloatStorage):
        with pytest.raises(TypeError, match="jaxgrad makes no storage without a tensor"):
            kind(8)
    with pytest.raises(RuntimeError, match="has no numbers inside of a function"):
        jaxgrad.jit(lambda x: x.storage().tolist())(jaxgrad.ones(2))


def test_a_storage_as_text():
    shown = repr(jaxgrad.tensor([1, 2], dtype=jaxgrad.uint8).untyped_storage())
    assert shown == "[1, 2]\n[torch.storage.UntypedStorage(device=cpu) of size 2]"
    assert "torch.storage.TypedStorage" in repr(jaxgrad.ones(1).storage())


def test_bytes_of_numbers():
    values = np.arange(5, dtype=np.int32)
    bytes_ = jaxgrad.from_numpy(values).untyped_storage().tolist()
    assert bytes(bytes_) == values.tobytes()


def test_the_device_of_a_storage_of_a_noted_result():
    assert (jaxgrad.ones(3) + 1).untyped_storage().device == jaxgrad.device("cpu")
