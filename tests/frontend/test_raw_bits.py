"""Tensors of bits and of dtypes with less than a byte for a number, as PyTorch has them."""

import io

import pytest
from helpers.as_torch import as_torch

import jaxgrad
from jaxgrad.core import named_dtypes

NAMES = [dtype.name for dtype in named_dtypes.RAW_BITS]


@as_torch
def test_moves_of_bytes(torch):
    answers = {}
    for name in ("bits8", "bits16", "bits1x8", "float4_e2m1fn_x2"):
        dtype = getattr(torch, name)
        x = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 250]], dtype=torch.uint8)
        bits = x.view(dtype)
        moved = [
            *(bits, bits.t(), bits[1], bits[:, 1:], bits.flatten(), torch.cat([bits, bits])),
            *(torch.stack([bits, bits]), bits.flip(0), bits.roll(1), bits.unsqueeze(0)),
            *(torch.zeros(2, dtype=dtype), bits.clone(), bits.t().contiguous(), bits.detach()),
            *(torch.zeros_like(bits), bits.new_zeros(3), bits.repeat(2, 1), *bits.split(1)),
            *(bits.index_select(0, torch.tensor([1])), bits.data, bits.expand(1, *bits.shape)),
        ]
        answers[name] = [
            [str(part.dtype), part.type(), list(part.shape), part.stride(), part.element_size()]
            for part in moved
        ]
        answers[name + " bytes"] = [
            part.contiguous().view(torch.uint8) for part in moved if part.ndim
        ]
        copy = torch.empty(x.view(dtype).shape, dtype=dtype).copy_(bits)
        x.fill_(7)
        answers[name + " shared"] = [bits.view(torch.uint8), copy.view(torch.uint8)]
    return answers


def test_computations_are_refused():
    x = jaxgrad.tensor([1, 2], dtype=jaxgrad.uint8)
    for name in NAMES:
        dtype = getattr(jaxgrad, name)
        bits = x.view(dtype)
        for call in (
            lambda b=bits: b + 1,
            lambda b=bits: b.sum(),
            lambda b=bits: b.tolist(),
            lambda b=bits: b[[0]],
            lambda b=bits: b.to(jaxgrad.float32),
            lambda b=bits: jaxgrad.cat([b, x]),
            lambda b=bits: b.__setitem__(0, 1),
            lambda b=bits: b.fill_(1),
            lambda d=dtype: x.to(d),
            lambda d=dtype: jaxgrad.ones(2, dtype=d),
        ):
            with pytest.raises(
                NotImplementedError, match=f"not implemented for '{dtype.scalar_type}"
            ):
                call()
        with pytest.raises(TypeError, match="Got unsupported ScalarType"):
            bits.numpy()


def test_text_and_files():
    bits = jaxgrad.tensor([[1, 2], [3, 4]], dtype=jaxgrad.uint8).view(jaxgrad.bits8)
    assert repr(bits) == "tensor(..., size=(2, 2), dtype=torch.bits8)"
    assert repr(jaxgrad.empty(0, dtype=jaxgrad.uint4)) == "tensor([], dtype=torch.uint4)"
    assert "device='meta'" in repr(jaxgrad.empty(2, dtype=jaxgrad.bits8, device="meta"))
    for name in NAMES:
        bits = jaxgrad.arange(8, dtype=jaxgrad.uint8).view(2, 4).view(getattr(jaxgrad, name))
        file = io.BytesIO()
        jaxgrad.save({"bits": bits.t()}, file)
        file.seek(0)
        again = jaxgrad.load(file)["bits"]
        assert again.dtype is bits.dtype
        assert again.t().contiguous().view(jaxgrad.uint8).flatten().tolist() == [*range(8)]


def test_compiled_and_mapped():
    x = jaxgrad.tensor([[1, 2], [3, 4]], dtype=jaxgrad.uint8)

    def turned(t):
        return t.view(jaxgrad.bits8).flip(0).view(jaxgrad.uint8) + 1

    assert jaxgrad.jit(turned)(x).tolist() == [[4, 5], [2, 3]]
    assert jaxgrad.func.vmap(turned)(x).tolist() == [[3, 2], [5, 4]]
