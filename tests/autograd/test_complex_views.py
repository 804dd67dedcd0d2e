"""Writes of real values to complex tensors and to their views, in all modes."""

import numpy
import pytest
from helpers.as_torch import as_torch

import jaxgrad

WRITES = {
    "real.mul_": lambda torch, z, r: z.real.mul_(r),
    "imag.add_": lambda torch, z, r: z.imag.add_(r),
    "real.copy_": lambda torch, z, r: z.real.copy_(r),
    "imag.zero_": lambda torch, z, r: z.imag.zero_(),
    "view_as_real": lambda torch, z, r: torch.view_as_real(z).mul_(r[:, None]),
    "part of view_as_real": lambda torch, z, r: torch.view_as_real(z)[..., 0].mul_(r),
    "imag of conj": lambda torch, z, r: z.conj().imag.mul_(r),
    "conj": lambda torch, z, r: z.conj().mul_(r),
    "mul_": lambda torch, z, r: z.mul_(r),
    "add_": lambda torch, z, r: z.add_(r),
    "copy_": lambda torch, z, r: z.copy_(r),
    "copy_ of conj": lambda torch, z, r: z.conj().copy_(r),
    "copy_ of a slice": lambda torch, z, r: z[:1].copy_(r[:1]),
    "real of a slice": lambda torch, z, r: z[:1].real.copy_(r[:1]),
    "setitem": lambda torch, z, r: z.__setitem__(0, r[0]),
    "setitem of real": lambda torch, z, r: z.real.__setitem__(0, r[0]),
    "view": lambda torch, z, r: z.view(-1).div_(r),
    "round trip": lambda torch, z, r: torch.view_as_complex(torch.view_as_real(z)).mul_(r),
    "real by imag": lambda torch, z, r: z.real.add_(z.imag),
}


def points(torch):
    x = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128)
    return x, torch.tensor([2.0, 5.0], dtype=torch.float64)


def loss(torch, write, x, r):
    z = x * (1 + 1j)
    write(torch, z, r)
    w = torch.tensor([1 - 2j, 0.5 + 3j], dtype=torch.complex128)
    return z, (z * w).abs().sum() + z.real.sin().sum()


@pytest.mark.slow
@as_torch
def test_gradients_through_writes_of_real_values(torch):
    told = {}
    for name, write in WRITES.items():
        x, r = (tensor.requires_grad_() for tensor in points(torch))
        z, total = loss(torch, write, x, r)
        total.backward()
        told[name] = [z.detach(), x.grad, r.grad]
    return told


@as_torch("""
    [True, True, True, True]
    tensor([-4.0, 2.0], dtype=float64)
    tensor([6.0, 18.0], dtype=float64)
    'MulBackward0'
    tensor([30.0-4.0j, 30.0-4.0j], dtype=complex128)
""")
def test_results_of_writes_to_parts(torch):
    x = points(torch)[0].requires_grad_()
    z = x * 1
    real, imag = z.real, z.imag
    written = real.mul_(3)
    same = [written is real, written._is_view(), written._base is z, written.dtype == real.dtype]
    z.mul_(2j)
    (real.sum() * 2 + imag.sum() * 5).backward()
    return same, real.detach(), imag.detach(), z.grad_fn.name(), x.grad


@pytest.mark.slow
@pytest.mark.parametrize("name", list(WRITES))
def test_all_modes_agree_with_finite_differences(name):
    def function(x, r):
        return loss(jaxgrad, WRITES[name], x, r)[1]

    x, r = points(jaxgrad)
    along = jaxgrad.tensor([0.3 - 1j, 0.5 + 0.2j], dtype=jaxgrad.complex128), r * 0.7 - 1
    forward = jaxgrad.func.jvp(function, (x, r), along)[1].item()

    @jaxgrad.jit
    def gradients(x, r):
        return jaxgrad.autograd.grad(function(x, r), (x, r), allow_unused=True)

    of_x, of_r = gradients(x.requires_grad_(), r.requires_grad_())
    reverse = (of_x.conj() * along[0]).real.sum()
    reverse = (reverse if of_r is None else reverse + (of_r * along[1]).sum()).item()
    eps = 1e-6
    with jaxgrad.no_grad():
        ends = [function(*(p + s * eps * d for p, d in zip((x, r), along))) for s in (1, -1)]  # noqa: B905
        slope = ((ends[0] - ends[1]) / (2 * eps)).item()
    numpy.testing.assert_allclose([forward, reverse], slope, rtol=1e-7, atol=1e-8)
    assert forward == pytest.approx(reverse, rel=1e-12)
