"""Helpers of PyTorch's old gradcheck, kept for code that calls them."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy

from ...tape.tensor import Tensor, wrap
from ..grad_mode import enable_grad
from .jacobian import rows
from .problem import Problem, parts


def get_numerical_jacobian(fn, inputs, target=None, eps: float = 1e-3, grad_out: float = 1.0):
    """The Jacobians of the first output of `fn(inputs)`, by central differences.

    fn: a function of the sequence `inputs`, which returns a tensor or a tuple of tensors.
    inputs: a tensor or a sequence of tensors.
    target: the tensors to differentiate with respect to; by default those of `inputs` that require
        grad.
    eps: the step.
    Returns for each of them a tensor of shape `(input.numel(), output.numel())`. Raises ValueError
    for a complex output and for a `grad_out` other than 1.

    >>> x = jaxgrad.tensor([1.0, 2.0], dtype=jaxgrad.float64, requires_grad=True)
    >>> import warnings
    >>> from jaxgrad.autograd.gradcheck import get_numerical_jacobian
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     (found,) = get_numerical_jacobian(lambda xs: xs[0] * 3, (x,))
    >>> round((found - 3 * jaxgrad.eye(2)).abs().max().item(), 6)
    0.0
    """
    _warn("get_numerical_jacobian", grad_out)
    wanted = _sequence(inputs if target is None else target)
    wanted = [each for each in wanted if isinstance(each, Tensor) and each.requires_grad]
    with enable_grad():
        problem = _problem(lambda *_: fn(inputs), wanted)
        _refuse_complex(problem.everything[0], "get_numerical_jacobian")
        return tuple(_numerical(problem, k, [0], eps)[0] for k in range(len(wanted)))


def get_analytical_jacobian(inputs, output, nondet_tol: float = 0.0, grad_out: float = 1.0):
    """The Jacobians of a tensor by backward passes, and whether they are reliable.

    inputs: a tensor or a sequence of tensors; those that require grad count.
    output: a real tensor.
    nondet_tol: the largest difference allowed between two passes.
    Returns `(jacobians, reentrant, correct_sizes, correct_types)`; the last two are always True.
    Raises ValueError for a complex output and for a `grad_out` other than 1.

    >>> import warnings
    >>> from jaxgrad.autograd.gradcheck import get_analytical_jacobian
    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     found = get_analytical_jacobian(x, x * 3)
    >>> found[1:]
    (True, True, True)
    """
    _warn("get_analytical_jacobian", grad_out)
    _refuse_complex(output, "get_analytical_jacobian")
    inputs = [each for each in _sequence(inputs) if isinstance(each, Tensor) and each.requires_grad]
    problem = _problem(lambda *_: output, inputs)
    first, second = rows(problem)[0, 1], rows(problem)[0, 1]
    pairs = zip(first, second, strict=True)
    reentrant = all(abs(a - b).max(initial=0) <= nondet_tol for a, b in pairs)
    return tuple(_tensor(block.T) for block in first), reentrant, True, True


def get_numerical_jacobian_wrt_specific_input(
    fn, input_idx, inputs, outputs, eps, input=None, is_forward_ad: bool = False
):
    """The Jacobians of all outputs with respect to one input, by central differences.

    fn: a function of `*inputs`, which returns `outputs`.
    input_idx: the position of the input.
    eps: the step.
    input: the tensor to move in place of `inputs[input_idx]`.
    is_forward_ad: refuse complex inputs, as PyTorch does.
    Returns for each output a tensor of shape `(input.numel(), output.numel())`.

    >>> from jaxgrad.autograd.gradcheck import get_numerical_jacobian_wrt_specific_input
    >>> x = jaxgrad.tensor([1.0, 2.0], dtype=jaxgrad.float64, requires_grad=True)
    >>> fn, eps = jaxgrad.neg, 1e-3
    >>> (found,) = get_numerical_jacobian_wrt_specific_input(fn, 0, (x,), (fn(x),), eps)
    >>> found.shape
    torch.Size([2, 2])
    """
    moving = inputs[input_idx] if input is None else input
    with enable_grad():
        problem = _problem(lambda *_: fn(*inputs), [moving])
        return _numerical(problem, 0, list(range(len(outputs))), eps, is_forward_ad)


def _numerical(problem, position, chosen, eps, is_forward=False):
    """For each chosen output the Jacobian, with a row for each element of an input."""
    tensor = problem.input(position)
    found = [[] for _ in chosen]
    for index in range(tensor.numel()):
        along = [problem.slopes(position, index, d, eps, chosen) for d in parts(tensor)]
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
    shapes = [(tensor.numel(), problem.everything[i].numel()) for i in chosen]
    pairs = zip(found, shapes, strict=True)
    return tuple(_tensor(numpy.reshape(lines, shape), tensor) for lines, shape in pairs)


def _problem(func, moving):
    return Problem(func, tuple(moving))


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
        f"`{name}` was part of PyTorch's private API and not meant to be exposed; it is kept for "
        "old code. Use autograd.functional.jacobian, or gradcheck.",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0."
        )
