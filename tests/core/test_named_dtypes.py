"""Dtypes that no tensor has can be named and compared, and every computation refuses them."""

import copy
import pickle

import pytest
from helpers.as_torch import as_torch

import jaxgrad

NAMES = ["complex32", "qint8", "quint8", "qint32", "quint4x2", "quint2x4"]


@as_torch("""
    text = ['torch.complex32', 'torch.qint8', 'torch.quint8', 'torch.qint32', 'torch.quint4x2',
            'torch.quint2x4']
    size = [4, 1, 1, 4, 1, 1]
    complex = [True, False, False, False, False, False]
    floating = [False, False, False, False, False, False]
    equal = [False, False, False, False, False, False]
    half = [True, 'torch.float16']
""")
def test_what_they_say(torch):
    dtypes = [getattr(torch, name) for name in NAMES]
    return {
        "text": [str(dtype) for dtype in dtypes],
        "size": [dtype.itemsize for dtype in dtypes],
        "complex": [dtype.is_complex for dtype in dtypes],
        "floating": [dtype.is_floating_point for dtype in dtypes],
        "equal": [dtype in (torch.complex64, torch.int8, torch.float16) for dtype in dtypes],
        "half": [torch.chalf is torch.complex32, str(torch.complex32.to_real())],
    }


@pytest.mark.parametrize("name", NAMES[1:])  # tests/frontend/test_half_complex.py has complex32
@pytest.mark.parametrize(
    "call",
    [
        lambda dtype: jaxgrad.zeros(2, dtype=dtype),
        lambda dtype: jaxgrad.tensor([1], dtype=dtype),
        lambda dtype: jaxgrad.ones(2).to(dtype),
        lambda dtype: jaxgrad.ones(2).sum(dtype=dtype),
        lambda dtype: jaxgrad.jit(lambda x: x.to(dtype))(jaxgrad.ones(2)),
    ],
    ids=["zeros", "tensor", "to", "sum", "compiled"],
)
def test_computations_refuse_them(call, name):
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        call(getattr(jaxgrad, name))


def test_dtypes_are_themselves_after_pickling():
    for dtype in (jaxgrad.complex32, jaxgrad.qint8, jaxgrad.float32, jaxgrad.bfloat16):
        for again in (
            pickle.loads(pickle.dumps(dtype)),
            copy.copy(dtype),
            copy.deepcopy([dtype])[0],
        ):
            assert again is dtype
