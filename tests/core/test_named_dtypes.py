"""Dtypes that XLA lacks can be named and compared, and every computation refuses them."""

import copy
import pickle

import pytest
from helpers.as_torch import as_torch

import jaxgrad

NAMES = ["complex32", "qint8", "quint8", "qint32", "quint4x2", "quint2x4"]
BITS = ["bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float4_e2m1fn_x2"]


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


@pytest.mark.parametrize(
    "name", NAMES[1:] + BITS
)  # tests/frontend/test_half_complex.py has complex32
@pytest.mark.parametrize(
    "call",
    [
        lambda dtype: jaxgrad.ones(2, dtype=dtype),
        lambda dtype: jaxgrad.tensor([1], dtype=dtype),
        lambda dtype: jaxgrad.ones(2).to(dtype),
        lambda dtype: jaxgrad.ones(2).sum(dtype=dtype),
        lambda dtype: jaxgrad.jit(lambda x: x.to(dtype))(jaxgrad.ones(2)),
    ],
    ids=["ones", "tensor", "to", "sum", "compiled"],
)
def test_computations_refuse_them(call, name):
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        call(getattr(jaxgrad, name))


def test_limits_and_signs():
    dtypes = [getattr(jaxgrad, name) for name in BITS]
    assert [dtype.itemsize for dtype in dtypes] == [1, 1, 1, 1, 2, 1]
    assert [dtype.is_floating_point for dtype in dtypes] == [False] * 5 + [True]
    assert (jaxgrad.int4.is_signed, jaxgrad.uint4.is_signed) == (True, False)
    limits = [jaxgrad.iinfo(dtype) for dtype in (jaxgrad.qint8, jaxgrad.quint8, jaxgrad.qint32)]
    bounds = [(limit.bits, limit.min, limit.max) for limit in limits]
    assert bounds == [(8, -128, 127), (8, 0, 255), (32, -(2**31), 2**31 - 1)]
    assert jaxgrad.can_cast(jaxgrad.float32, jaxgrad.quint8)  # as PyTorch 2.13
    assert not jaxgrad.can_cast(jaxgrad.complex64, jaxgrad.bits8)
    for call, error in (
        (lambda: jaxgrad.quint8.is_signed, RuntimeError),
        (lambda: jaxgrad.finfo(jaxgrad.float4_e2m1fn_x2), NotImplementedError),
        (lambda: jaxgrad.iinfo(jaxgrad.int4), TypeError),
        (lambda: jaxgrad.iinfo(jaxgrad.bits8), TypeError),
    ):
        with pytest.raises(error):
            call()


def test_dtypes_are_themselves_after_pickling():
    for dtype in (jaxgrad.complex32, jaxgrad.qint8, jaxgrad.float32, jaxgrad.bfloat16):
        for again in (
            pickle.loads(pickle.dumps(dtype)),
            copy.copy(dtype),
            copy.deepcopy([dtype])[0],
        ):
            assert again is dtype
