"""The helpers that gradcheck once was made of, which old code calls."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy

from ...tape.tensor import Tensor, wrap
from ..grad_mode import enable_grad
from .problem import Subject, parts
from .slow_mode import rows


def get_numerical_jacobian(fn, inputs, target=None, eps: float = 1e-3, grad_out: float = 1.0):
    """The Jacobians of the first output of `fn(inputs)` with respect to each input that requires
    grad, or each of `target`: by central differences, a row for each element of the input.

    >>> x = jaxgrad.tensor([1.0, 2.0], dtype=jaxgrad.float64, requires_grad=True)
    >>> numerical = jaxgrad.autograd.gradcheck_old.get_numerical_jacobian
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     (found,) = numerical(lambda xs: xs[0] * 3, (x,))
    >>> round((found - 3 * jaxgrad.eye(2)).abs().max().item(), 6)
    0.0
    """
    _warn("get_numerical_jacobian", grad_out)
    wanted = _sequence(inputs if target is None else target)
    wanted = [each for each in wanted if isinstance(each, Tensor) and each.requires_grad]
    with enable_grad():
        subject = _subject(lambda *_: fn(inputs), wanted)
        _refuse_complex(subject.everything[0], "get_numerical_jacobian")
        return tuple(_numerical(subject, k, [0], eps)[0] for k in range(len(wanted)))


def get_analytical_jacobian(inputs, output, nondet_tol: float = 0.0, grad_out: float = 1.0):
    """The Jacobians of a tensor with respect to each input that requires grad, by backward passes;
    then whether a second pass gave the same, and whether gradients have their inputs' shapes, and
    dtypes, which here they always have.
    """
    _warn("get_analytical_jacobian", grad_out)
    _refuse_complex(output, "get_analytical_jacobian")
    inputs = [each for each in _sequence(inputs) if isinstance(each, Tensor) and each.requires_grad]
    subject = _subject(lambda *_: output, inputs)
    first, second = rows(subject)[0, 1], rows(subject)[0, 1]
    pairs = zip(first, second, strict=True)
    reentrant = all(abs(a - b).max(initial=0) <= nondet_tol for a, b in pairs)
    return tuple(_tensor(block.T) for block in first), reentrant, True, True


def get_numerical_jacobian_wrt_specific_input(
    fn, input_idx, inputs, outputs, eps, input=None, is_forward_ad: bool = False
):
    """The Jacobian of each of `outputs`, those of `fn(*inputs)`, with respect to one input."""
    moving = inputs[input_idx] if input is None else input
    with enable_grad():
        subject = _subject(lambda *_: fn(*inputs), [moving])
        return _numerical(subject, 0, list(range(len(outputs))), eps, is_forward_ad)


def _numerical(subject, position, chosen, eps, is_forward=False):
    """For each of some outputs the Jacobian, a row for each element of an input."""
    tensor = subject.input(position)
    found = [[] for _ in chosen]
    for index in range(tensor.numel()):
        along = [subject.slopes(position, index, d, eps, chosen) for d in parts(tensor)]
        for lines, slopes in zip(found, zip(*along, strict=True), strict=True):
            complex_to_complex = len(slopes) == 2 and numpy.iscomplexobj(slopes[0])
            assert not complex_to_complex, (
                "Expected ds_dx to be real-valued, not complex: take the real or imaginary part of "
                "the function's output"
            )
            assert not (len(slopes) == 2 and is_forward), (
                "Expected a real input for is_forward_ad, not complex: move one part of it"
            )
            lines.append(sum(s * d for s, d in zip(slopes, parts(tensor), strict=True)).ravel())
    shapes = [(tensor.numel(), subject.everything[i].numel()) for i in chosen]
    pairs = zip(found, shapes, strict=True)
    return tuple(_tensor(numpy.reshape(lines, shape), tensor) for lines, shape in pairs)


def _subject(func, moving):
    return Subject(func, tuple(moving))


def _tensor(array, like=None):
    if like is not None and not numpy.iscomplexobj(array):
        array = array.astype(like.dtype.numpy)
    with jax.enable_x64(True):
        return wrap(jnp.asarray(array))


def _sequence(inputs):
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _refuse_complex(output, name):
    if output.dtype.is_complex:
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return "
            "complex outputs."
        )


def _warn(name, grad_out):
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed; it is here for "
        "code that calls it. Use autograd.functional.jacobian, or gradcheck.",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0."
        )
