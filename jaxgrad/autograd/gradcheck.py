"""Gradients against finite differences, as torch.autograd.gradcheck.

How they are compared is in `gradcheck_jacobian.py` and `gradcheck_fast.py`, what else must hold in
`gradcheck_laws.py`. Random directions come from generators of fixed seed: a check that passed
passes again.
"""

from __future__ import annotations

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy

from .. import autograd, ops
from ..core.tracebacks import api_boundary, users_stacklevel
from ..tape.tensor import Tensor, concrete, wrap
from ._function.user_rules import TWICE
from ._gradcheck import fast_mode as gradcheck_fast
from ._gradcheck import properties, rule_dtypes, slow_mode
from ._gradcheck.legacy import get_analytical_jacobian as get_analytical_jacobian
from ._gradcheck.legacy import get_numerical_jacobian as get_numerical_jacobian
from ._gradcheck.legacy import (
    get_numerical_jacobian_wrt_specific_input as get_numerical_jacobian_wrt_specific_input,
)
from ._gradcheck.problem import Subject, directions, name_of, tensors_of
from ._gradcheck.report import GradcheckError as GradcheckError
from ._gradcheck.report import Settings, Tolerance
from .grad_mode import enable_grad

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    "get_numerical_jacobian",
    "get_analytical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]


@api_boundary
def gradcheck(
    func,
    inputs,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` are those that finite differences give; a GradcheckError
    where they are not, or False where not `raise_exception`.

    func: from tensors to a tensor or a tuple of tensors; inputs: a tensor or a sequence, of which
    those are moved that require grad, in place and by `eps`. They should have double precision. A
    derivative may be `atol + rtol * |numerical|` from the numerical one, whatever the tensors'
    size. Of complex tensors both parts are moved and weighed, each alone.

    check_forward_ad: also tangents, and that both modes are one map, <u, J v> = <J^T u, v>;
    check_batched_grad, check_batched_forward_grad: that under `jax.vmap` both are the same;
    check_undefined_grad: that what has no gradient, or no tangent, counts as zeros; nondet_tol: how
    far two backward passes may differ; check_grad_dtypes: that gradients have the dtype of their
    inputs; fast_mode: random projections of the Jacobian, by a few evaluations; masked: kept for
    PyTorch's code, as no tensor is sparse. Raises ValueError where no input requires grad.

    >>> x = jaxgrad.tensor([1.0, 2.0], dtype=jaxgrad.float64, requires_grad=True)
    >>> jaxgrad.autograd.gradcheck(jaxgrad.sin, x, check_forward_ad=True)
    True
    """
    _check_flags(
        (check_forward_ad or check_backward_ad, ONE_OF.format("check_forward_ad", BACKWARD)),
        (check_backward_ad or not check_batched_grad, NEEDS.format("check_batched_grad", BACKWARD)),
        (
            check_forward_ad or not check_batched_forward_grad,
            NEEDS.format("check_batched_forward_grad", "check_forward_ad"),
        ),
    )
    laws = check_undefined_grad, check_grad_dtypes, check_batched_grad, check_batched_forward_grad
    modes = check_forward_ad, check_backward_ad, fast_mode
    settings = Settings(eps, Tolerance(atol, rtol), nondet_tol, *laws, *modes)
    return _passes([(func, _sequence(inputs), None, settings)], raise_exception)


@api_boundary
def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
    check_nested: bool = False,
) -> bool:
    """Whether the second derivatives of `func` are right: `gradcheck` of its gradient, as a
    function of `inputs` and `grad_outputs`.

    grad_outputs: a tensor for each output that requires grad, random by default, with
    `gen_non_contig_grad_outputs` not contiguous; check_rev_over_rev, check_fwd_over_rev: the
    gradient's derivatives by reverse and by forward mode. With `check_nested`, which PyTorch does
    not have, all four nestings: the derivatives of the tangent of `func` too, by both modes. For
    the others see `gradcheck`.

    >>> x = jaxgrad.tensor([1.0, 2.0], dtype=jaxgrad.float64, requires_grad=True)
    >>> jaxgrad.autograd.gradgradcheck(jaxgrad.sin, x, check_nested=True)
    True
    """
    over_reverse, over_forward = check_rev_over_rev or check_nested, check_fwd_over_rev
    _check_flags(
        (over_reverse or over_forward, ONE_OF.format("check_fwd_over_rev", "check_rev_over_rev")),
        (over_reverse or not check_undefined_grad, NEEDS.format("check_undefined_grad", REVERSE)),
        (over_reverse or not check_batched_grad, NEEDS.format("check_batched_grad", REVERSE)),
    )
    laws = check_undefined_grad, check_grad_dtypes, check_batched_grad, False
    modes = check_fwd_over_rev or check_nested, over_reverse, fast_mode
    settings = Settings(eps, Tolerance(atol, rtol), nondet_tol, *laws, *modes, inner="reverse")
    inputs = _sequence(inputs)
    _moving(inputs)
    checks = _second_order(func, inputs, grad_outputs, gen_non_contig_grad_outputs, settings)
    return _passes(checks if check_nested else checks[:1], raise_exception)


def _second_order(func, inputs, grad_outputs, non_contiguous, settings) -> list:
    """What there is to check of second derivatives: the gradient, and then the tangent."""
    name = name_of(func)
    with enable_grad():
        outputs = Subject(func, inputs).outputs
    if not outputs:
        return [(func, inputs, name, settings)]
    gradients = _grad_outputs(outputs, grad_outputs, non_contiguous)
    gradient, tangent = _gradient_of(func, len(inputs)), _tangent_of(func, len(inputs))
    forward = dataclasses.replace(settings, inner="forward")
    return [
        (gradient, (*inputs, *gradients), f"the gradient of {name}", settings),
        (tangent, (*inputs, *_tangents(inputs)), f"the tangent of {name}", forward),
    ]


BACKWARD, REVERSE = "check_backward_ad", "check_rev_over_rev"
ONE_OF = "Expected at least one of {} or {} to be True"
NEEDS = "Setting {}=True requires {} to be True"


def _check_flags(*conditions):
    for holds, otherwise in conditions:
        if not holds:
            raise AssertionError(otherwise)


def _sequence(inputs) -> tuple:
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _moving(inputs) -> list:
    """The inputs that require grad, with their positions."""
    moving = [
        (i, each)
        for i, each in enumerate(inputs)
        if isinstance(each, Tensor) and each.requires_grad
    ]
    if not moving:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    return moving


def _check_inputs(inputs):
    for position, tensor in _moving(inputs):
        concrete(tensor, "gradcheck")
        if tensor.dtype.numpy not in (numpy.float64, numpy.complex128):
            warnings.warn(
                f"Input #{position} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                f"precision floating point or complex: it has dtype {tensor.dtype}.",
                UserWarning,
                stacklevel=users_stacklevel(),
            )
        steps = zip(tensor.stride(), tensor.shape, strict=True)
        if any(step == 0 and extent > 1 for step, extent in steps):
            raise RuntimeError(
                f"The {position}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )


def _passes(checks, raise_exception) -> bool:
    for func, inputs, name, settings in checks:
        _check_inputs(inputs)
        try:
            with enable_grad():
                _check(Subject(func, inputs, name), settings)
        except GradcheckError:
            if raise_exception:
                raise
            return False
        except RuntimeError as error:
            if TWICE not in str(error):
                raise
            if raise_exception:
                raise settings.error("reverse", str(error)) from error
            return False
    return True


def _check(subject, settings):
    """Everything that `settings` asks for. Raises GradcheckError."""
    laws = properties
    if not subject.outputs:
        laws.without_outputs(subject, settings)
        return
    mode = gradcheck_fast if settings.fast else slow_mode
    mode.check(subject, settings)
    checks = (
        (settings.forward and settings.backward, laws.adjoint),
        (settings.batched_forward, laws.batched_tangents),
        (settings.batched, laws.batched_gradients),
        (settings.backward, laws.zero_gradients),
        (settings.backward and settings.undefined, laws.undefined_gradients),
        (settings.forward and settings.undefined, laws.undefined_tangents),
        (settings.dtypes, rule_dtypes.check),
    )
    for wanted, law in checks:
        if wanted:
            law(subject, settings)


def _grad_outputs(outputs, given, non_contiguous) -> tuple:
    if given is not None:
        return _sequence(given)
    arrays = directions(outputs, numpy.random.default_rng(7))
    return tuple(_leaf(array, non_contiguous) for array in arrays)


def _tangents(inputs) -> tuple:
    moving = [each for _, each in _moving(inputs)]
    return tuple(map(_leaf, directions(moving, numpy.random.default_rng(8))))


def _leaf(array, non_contiguous=False) -> Tensor:
    with jax.enable_x64(True):
        made = wrap(jnp.asarray(array))
    if non_contiguous:
        made = ops.select(ops.stack([made, made], -1), -1, 0).detach()
    return made.requires_grad_()


def _gradient_of(func, count):
    """The gradient of a function, as a function of its inputs and its outputs' gradients."""

    def gradient(*args):
        inputs, given = args[:count], args[count:]
        outputs = [each for each in tensors_of(func(*inputs)) if each.requires_grad]
        moving = [each for _, each in _moving(inputs)]
        found = autograd.grad(outputs, moving, given, create_graph=True, allow_unused=True)
        return tuple(each for each in found if each is not None)

    return gradient


def _tangent_of(func, count):
    """The tangent of a function, as a function of its inputs and their tangents."""

    def tangent(*args):
        forward_ad, given, tangents = autograd.forward_ad, list(args[:count]), iter(args[count:])
        with forward_ad.dual_level():
            for position, each in enumerate(given):
                if isinstance(each, Tensor) and each.requires_grad:
                    given[position] = forward_ad.make_dual(each, next(tangents))
            outputs = tensors_of(func(*given))
            found = [forward_ad.unpack_dual(each).tangent for each in outputs]
        return tuple(each for each in found if each is not None)

    return tangent
