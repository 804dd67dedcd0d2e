"""Random masked tensors in PyTorch and here: pointwise functions, reductions and gradients.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import warnings

import numpy
import pytest
import torch
from helpers import checks
from oracle.seed import SEED

import jaxgrad
from jaxgrad.masked.maskedtensor import binary, reductions, unary

SHAPES = [(5,), (3, 4), (2, 1, 3)]
DTYPES = ["float32", "float64", "int64", "bool"]
OPTIONS = {"clamp": {"min": -0.5, "max": 0.5}, "clip": {"min": -0.5, "max": 0.5}}


def outcome(library, call):
    """The data where it counts, dtype and mask of a result; the class of an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(library)
    except Exception as error:
        return type(error)
    if not library.masked.is_masked_tensor(result):
        return TypeError  # the gradient of sgn in PyTorch
    data, mask = result.get_data().detach(), result.get_mask()
    return library.where(mask, data, library.zeros_like(data)).numpy(), mask.tolist()


def compare(call, where):
    """The outcomes of a call are equal, where PyTorch has one."""
    theirs = outcome(torch, call)
    if isinstance(theirs, type):
        return
    ours = outcome(jaxgrad, call)
    assert not isinstance(ours, type), f"{where}: {ours}"
    assert ours[0].dtype == theirs[0].dtype and ours[1] == theirs[1], where
    numpy.testing.assert_allclose(ours[0], theirs[0], 1e-4, 1e-6, err_msg=where)
    checks.count("masked")


def arguments(random):
    """Data of two tensors and a mask, with NaN where the mask is False."""
    shape = SHAPES[random.integers(len(SHAPES))]
    dtype = DTYPES[random.integers(len(DTYPES))]
    mask = random.random(shape) > 0.4
    numbers = [(random.standard_normal(shape) * 3).astype(dtype) for _ in range(2)]
    if dtype.startswith("float"):
        numbers[0][~mask] = numpy.nan
    return (*numbers, mask)


def masked(library, data, mask, **options):
    return library.masked.masked_tensor(library.tensor(data), library.tensor(mask), **options)


@pytest.mark.parametrize("name", unary.UNARY_NAMES)
def test_unary(name):
    random = numpy.random.default_rng([SEED, *name.encode()])
    numbers = [2.0] if name == "pow" else []
    for _ in range(4):
        data, _, mask = arguments(random)

        def value(library, data=data, mask=mask):
            function = getattr(library.ops.aten, name)
            return function(masked(library, data, mask), *numbers, **OPTIONS.get(name, {}))

        def gradient(library, data=data, mask=mask):
            x = masked(library, data, mask, requires_grad=True)
            getattr(library.ops.aten, name)(x, *numbers).sum().backward()
            return x.grad

        for call in (value, gradient):
            compare(call, f"SEED={SEED} {name} {data} {mask}")


@pytest.mark.parametrize("name", binary.BINARY_NAMES)
def test_binary(name):
    random = numpy.random.default_rng([SEED, *name.encode()])
    for _ in range(4):
        data, other, mask = arguments(random)

        def value(library, data=data, other=other, mask=mask):
            function = getattr(library.ops.aten, name)
            return function(masked(library, data, mask), masked(library, other, mask))

        def of_plain(library, data=data, other=other, mask=mask):
            return getattr(library.ops.aten, name)(
                library.tensor(other), masked(library, data, mask)
            )

        for call in (value, of_plain):
            compare(call, f"SEED={SEED} {name} {data} {other} {mask}")


@pytest.mark.parametrize("name", reductions.REDUCE_NAMES)
def test_reductions(name):
    random = numpy.random.default_rng([SEED, *name.encode()])
    for _ in range(4):
        data, _, mask = arguments(random)
        dim, keepdim = int(random.integers(-1, data.ndim)), bool(random.integers(2))

        def of_all(library, data=data, mask=mask):
            return getattr(masked(library, data, mask), name)()

        def of_dim(library, data=data, mask=mask, dim=dim, keepdim=keepdim):
            return getattr(masked(library, data, mask), name)(dim=dim, keepdim=keepdim)

        def gradient(library, data=data, mask=mask, dim=dim):
            x = masked(library, data, mask, requires_grad=True)
            getattr(x, name)(dim=dim).sum().backward()
            return x.grad

        for call in (of_all, of_dim, gradient):
            compare(call, f"SEED={SEED} {name} {data} {mask} {dim} {keepdim}")
