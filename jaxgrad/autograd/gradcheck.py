"""Gradients compared with finite differences, as torch.autograd.gradcheck.

`_gradcheck/jacobian.py` compares the Jacobians, `_gradcheck/properties.py` checks other properties.
Random directions come from generators with fixed seeds, so a check that passed passes again.
"""

from __future__ import annotations

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy

from .. import ops
from ..core.tracebacks import shows_users_frames, users_stacklevel
from ..late import LateModule
from ..names.missing import missing_in
from ..tape.tensor import Tensor, concrete, wrap
from . import _gradients
from .grad_mode import enable_grad

forward_ad = LateModule("jaxgrad.autograd.forward_ad")
jacobian = LateModule("jaxgrad.autograd._gradcheck.jacobian")
problems = LateModule("jaxgrad.autograd._gradcheck.problem")
properties = LateModule("jaxgrad.autograd._gradcheck.properties")
reports = LateModule("jaxgrad.autograd._gradcheck.report")
sparse_inputs = LateModule("jaxgrad.autograd._gradcheck.sparse_inputs")
user_rules = LateModule("jaxgrad.autograd._function.user_rules")

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",  # noqa: F822  __getattr__ gives it
    "get_numerical_jacobian",
    "get_analytical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]


@shows_users_frames
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
    """Compare the gradients of `func` with central differences.

    A derivative `a` agrees with the numerical one `n` if `|a - n| <= atol + rtol * |n|`, for
    tensors of any size. The real and the imaginary part of complex tensors are moved, and weighted,
    separately.

    func: a function of tensors that returns a tensor or a tuple of tensors.
    inputs: a tensor or a sequence of arguments. The tensors that require grad are moved in place by
        `eps`; they should have dtype float64 or complex128.
    raise_exception: raise GradcheckError for a mismatch; else return False.
    nondet_tol: the largest difference allowed between two backward passes.
    check_undefined_grad: check that a missing gradient or tangent counts as zeros.
    check_grad_dtypes: check that the rules of Functions return the dtypes of their inputs.
    check_batched_grad, check_batched_forward_grad: check gradients, and tangents, under `jax.vmap`.
    check_forward_ad: check forward mode as well, and that reverse mode is its transpose:
        <u, J v> = <J^T u, v>.
    check_backward_ad: check reverse mode.
    fast_mode: compare random projections of the Jacobian, which takes few evaluations.
    masked: whether only the elements that sparse inputs have are moved; else all of them are.

    Returns True if all checks pass. Raises ValueError if no input requires grad, AssertionError for
    options that exclude each other, RuntimeError for a negative tolerance.

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
    tolerance = reports.Tolerance(atol, rtol)
    settings = reports.CheckSettings(eps, tolerance, nondet_tol, *laws, *modes)
    func, inputs = sparse_inputs.over_values(func, _sequence(inputs), masked)
    return _passes([(func, inputs, None, settings)], raise_exception)


@shows_users_frames
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
    """Check second derivatives: `gradcheck` of the gradient of `func`.

    The gradient is a function of `inputs` and `grad_outputs`. Options that are not listed are those
    of `gradcheck`.

    func, inputs: as for `gradcheck`.
    grad_outputs: a tensor or a sequence, one for each output that requires grad, of its shape and
        dtype; random by default.
    gen_non_contig_grad_outputs: make random `grad_outputs` that are not contiguous.
    check_rev_over_rev, check_fwd_over_rev: check the derivatives of the gradient by reverse mode,
        and by forward mode.
    check_nested: check all four nestings of the modes, the derivatives of the tangent included.
        PyTorch does not have this option.

    Returns True if all checks pass. Raises what `gradcheck` raises.

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
    tolerance = reports.Tolerance(atol, rtol)
    settings = reports.CheckSettings(eps, tolerance, nondet_tol, *laws, *modes, inner="reverse")
    func, inputs = sparse_inputs.over_values(func, _sequence(inputs), masked)
    _moving(inputs)
    checks = _second_order(func, inputs, grad_outputs, gen_non_contig_grad_outputs, settings)
    return _passes(checks if check_nested else checks[:1], raise_exception)


def _second_order(func, inputs, grad_outputs, non_contiguous, settings) -> list:
    """The checks for second derivatives: of the gradient, then of the tangent."""
    name = problems.name_of(func)
    with enable_grad():
        outputs = problems.GradcheckProblem(func, inputs).outputs
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
    """The inputs that require grad, with their positions. Raises ValueError if there is none."""
    moving = [
        (i, argument)
        for i, argument in enumerate(inputs)
        if isinstance(argument, Tensor) and argument.requires_grad
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
                _check(problems.GradcheckProblem(func, inputs, name), settings)
        except reports.GradcheckError:
            if raise_exception:
                raise
            return False
        except RuntimeError as error:
            if user_rules.TWICE not in str(error):
                raise
            if raise_exception:
                raise settings.error("reverse", str(error)) from error
            return False
    return True


def _check(problem, settings):
    """Run all checks that `settings` selects. Raises GradcheckError."""
    laws = properties
    if not problem.outputs:
        laws.without_outputs(problem, settings)
        return
    compare = jacobian.check_projections if settings.fast else jacobian.check_elements
    compare(problem, settings)
    checks = (
        (settings.forward and settings.backward, laws.adjoint),
        (settings.batched_forward, laws.batched_tangents),
        (settings.batched, laws.batched_gradients),
        (settings.backward, laws.zero_gradients),
        (settings.backward and settings.undefined, laws.undefined_gradients),
        (settings.forward and settings.undefined, laws.undefined_tangents),
        (settings.dtypes, laws.rule_dtypes),
        (settings.backward, laws.linear_gradients),
    )
    for wanted, law in checks:
        if wanted:
            law(problem, settings)


def _grad_outputs(outputs, grad_outputs, non_contiguous) -> tuple:
    if grad_outputs is not None:
        return _sequence(grad_outputs)
    arrays = problems.directions(outputs, numpy.random.default_rng(7))
    return tuple(_leaf(array, non_contiguous) for array in arrays)


def _tangents(inputs) -> tuple:
    moving = [tensor for _, tensor in _moving(inputs)]
    return tuple(map(_leaf, problems.directions(moving, numpy.random.default_rng(8))))


def _leaf(array, non_contiguous=False) -> Tensor:
    with jax.enable_x64(True):
        leaf = wrap(jnp.asarray(array))
    if non_contiguous:
        leaf = ops.select(ops.stack([leaf, leaf], -1), -1, 0).detach()
    return leaf.requires_grad_()


def _gradient_of(func, count):
    """The gradient of a function, as a function of its inputs and the gradients of its outputs."""

    def gradient(*args):
        inputs, grad_outputs = args[:count], args[count:]
        outputs = [output for output in problems.tensors_of(func(*inputs)) if output.requires_grad]
        moving = [tensor for _, tensor in _moving(inputs)]
        gradients = _gradients.grad(
            outputs, moving, grad_outputs, create_graph=True, allow_unused=True
        )
        return tuple(gradient for gradient in gradients if gradient is not None)

    return gradient


def _tangent_of(func, count):
    """The tangent of a function, as a function of its inputs and their tangents."""

    def tangent(*args):
        inputs, tangents = list(args[:count]), iter(args[count:])
        with forward_ad.dual_level():
            for position, argument in enumerate(inputs):
                if isinstance(argument, Tensor) and argument.requires_grad:
                    inputs[position] = forward_ad.make_dual(argument, next(tangents))
            outputs = problems.tensors_of(func(*inputs))
            output_tangents = [forward_ad.unpack_dual(output).tangent for output in outputs]
        return tuple(tangent for tangent in output_tangents if tangent is not None)

    return tangent


# PyTorch's old helpers, kept for code that calls them


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
    ...     (jacobian,) = get_numerical_jacobian(lambda xs: xs[0] * 3, (x,))
    >>> round((jacobian - 3 * jaxgrad.eye(2)).abs().max().item(), 6)
    0.0
    """
    _warn_of_legacy("get_numerical_jacobian", grad_out)
    wanted = _sequence(inputs if target is None else target)
    wanted = [tensor for tensor in wanted if isinstance(tensor, Tensor) and tensor.requires_grad]
    with enable_grad():
        problem = problems.GradcheckProblem(lambda *_: fn(inputs), tuple(wanted))
        _refuse_complex(problem.all_outputs[0], "get_numerical_jacobian")
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
    ...     results = get_analytical_jacobian(x, x * 3)
    >>> results[1:]
    (True, True, True)
    """
    _warn_of_legacy("get_analytical_jacobian", grad_out)
    _refuse_complex(output, "get_analytical_jacobian")
    inputs = [
        tensor
        for tensor in _sequence(inputs)
        if isinstance(tensor, Tensor) and tensor.requires_grad
    ]
    problem = problems.GradcheckProblem(lambda *_: output, tuple(inputs))
    first, second = jacobian.rows(problem)[0, 1], jacobian.rows(problem)[0, 1]
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
    >>> (jacobian,) = get_numerical_jacobian_wrt_specific_input(fn, 0, (x,), (fn(x),), eps)
    >>> jacobian.shape
    torch.Size([2, 2])
    """
    moving = inputs[input_idx] if input is None else input
    with enable_grad():
        problem = problems.GradcheckProblem(lambda *_: fn(*inputs), (moving,))
        return _numerical(problem, 0, list(range(len(outputs))), eps, is_forward_ad)


def _numerical(problem, position, chosen, eps, is_forward=False):
    """For each chosen output the Jacobian, with a row for each element of an input."""
    tensor = problem.input(position)
    jacobians = [[] for _ in chosen]
    for index in range(tensor.numel()):
        along = [problem.slopes(position, index, d, eps, chosen) for d in problems.parts(tensor)]
        for lines, slopes in zip(jacobians, zip(*along, strict=True), strict=True):
            complex_to_complex = len(slopes) == 2 and numpy.iscomplexobj(slopes[0])
            assert not complex_to_complex, (
                "Expected ds_dx to be real-valued, not complex: take the real or imaginary part of "
                "the function's output"
            )
            assert not (len(slopes) == 2 and is_forward), (
                "Expected a real input for is_forward_ad, not complex: move one part of it"
            )
            directions = problems.parts(tensor)
            lines.append(sum(s * d for s, d in zip(slopes, directions, strict=True)).ravel())
    shapes = [(tensor.numel(), problem.all_outputs[i].numel()) for i in chosen]
    pairs = zip(jacobians, shapes, strict=True)
    return tuple(_tensor(numpy.reshape(lines, shape), tensor) for lines, shape in pairs)


def _tensor(array, like=None):
    if like is not None and not numpy.iscomplexobj(array):
        array = array.astype(like.dtype.numpy)
    with jax.enable_x64(True):
        return wrap(jnp.asarray(array))


def _refuse_complex(output, name):
    if output.dtype.is_complex:
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return "
            "complex outputs."
        )


def _warn_of_legacy(name, grad_out):
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


_missing = missing_in(__name__)


def __getattr__(name):
    return reports.GradcheckError if name == "GradcheckError" else _missing(name)
