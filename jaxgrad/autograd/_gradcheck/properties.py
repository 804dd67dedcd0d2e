"""Properties of derivatives other than their values; each check raises GradcheckError."""

from __future__ import annotations

import contextlib
import functools
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy

from ...core.tracebacks import users_stacklevel
from ...tape.mode import refuse_draws
from ...tape.tensor import Tensor, wrap
from .. import _gradients
from .._function.call import FunctionNode
from .._function.user_rules import Rules
from .problem import directions, nodes, one_hot, parts, product

# up to this many outputs or inputs, all subsets of them are left undefined
IN_ALL_COMBINATIONS = 4

BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation"
BATCHED_FORWARD = f"{BATCHED} with forward-mode AD"
RANDOM = (
    "vmap: We do not yet support calling random operations inside of vmap. Please perform random "
    "operations outside of vmap as a workaround"
)


def without_outputs(problem, settings):
    """Without an output that requires grad, no output may change with the inputs."""
    dtypes = [output.dtype for output in problem.all_outputs]
    chosen = [i for i, d in enumerate(dtypes) if d.is_floating_point or d.is_complex]
    for k in range(len(problem.moving)):
        tensor = problem.input(k)
        for index, unit in itertools.product(range(tensor.numel()), parts(tensor)):
            slopes = problem.slopes(k, index, unit, settings.eps, chosen)
            moved = [i for i, slope in zip(chosen, slopes, strict=True) if slope.any()]
            if moved:
                raise settings.error(
                    "reverse",
                    f"Numerical gradient for function expected to be zero: output {moved[0]} of "
                    f"{problem.name} does not require grad, but element {index} of input "
                    f"{problem.moving[k]} changes it. It may be cut off by detach() or no_grad.",
                )


def zero_gradients(problem, settings):
    """For gradients of zero, `backward` gives zeros, in the dtypes and shapes of the inputs."""
    zeros = [numpy.zeros(o.shape, o.dtype.numpy) for o in problem.outputs]
    for k, gradient in enumerate(problem.pull(zeros)):
        if gradient is None:
            continue
        tensor, which = problem.input(k), f"input {problem.moving[k]} of {problem.name}"
        grad = wrap(gradient)
        if grad.dtype != tensor.dtype:
            text = f"grad is incorrect type: {grad.dtype} for {which}, of {tensor.dtype}"
        elif grad.shape != tensor.shape:
            text = f"grad is incorrect size: {list(grad.shape)} for {which}, {list(tensor.shape)}"
        elif numpy.asarray(gradient).any():
            text = (
                "backward not multiplied by grad_output: with gradients of zeros for all outputs "
                f"the gradient of {which} is {numpy.asarray(gradient)}"
            )
        else:
            continue
        raise settings.error("reverse", text)


def linear_gradients(problem, settings):
    """The gradients for a sum are the sum of the gradients. Slow mode compares rows for gradients
    of 1, which a square or an absolute value leaves as they are.
    """
    generator = numpy.random.default_rng(2)
    first, other = (directions(problem.outputs, generator) for _ in range(2))
    # in each element of the other sign
    second = [0.5 * b - 2 * a for a, b in zip(first, other, strict=True)]
    both = [a + b for a, b in zip(first, second, strict=True)]
    pulled = [problem.pull(weights) for weights in (first, second, both)]
    for k, gradients in enumerate(zip(*pulled, strict=True)):
        a, b, whole = (0 if gradient is None else numpy.ravel(gradient) for gradient in gradients)
        with numpy.errstate(all="ignore"):
            wrong = abs(a + b - whole) > settings.tolerance.allowed(abs(a) + abs(b))
        if numpy.any(wrong):
            index = int(numpy.argmax(wrong))
            raise settings.error(
                "reverse",
                f"Backward of {problem.name} is not linear in the gradient that it gets: for the "
                f"sum of two gradients element {index} of the gradient of input "
                f"{problem.moving[k]} is {whole[index]:.6g}, and those for each of them add up to "
                f"{(a + b)[index]:.6g}",
            )


def undefined_gradients(problem, settings):
    """An undefined gradient, None, counts as zeros."""
    generator = numpy.random.default_rng(1)
    weights = directions(problem.outputs, generator)
    for missing in subsets(len(weights)):
        kept = [None if i in missing else weight for i, weight in enumerate(weights)]
        zeros = [weight * 0 if i in missing else weight for i, weight in enumerate(weights)]
        which = ", ".join(str(problem.chosen[i]) for i in missing)
        gradients = _undefined(problem, kept, which, settings)
        everything = len(missing) == len(weights)
        expected = [None] * len(gradients) if everything else problem.pull(zeros)
        for k, pair in enumerate(zip(gradients, expected, strict=True)):
            if not _same(*pair, settings.tolerance):
                _warn_of_new_check(problem)
                raise settings.error(
                    "reverse",
                    "Expected all input grads to be undefined or zero when all output grads are "
                    "undefined or zero, and an undefined one to count as zero: "
                    f"with those of output {which} of {problem.name} undefined, the gradient of "
                    f"input {problem.moving[k]} is\n{pair[0]}\nand not\n{pair[1]}",
                )


NEW_CHECK = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by "
    "default, but it may break existing callers of this function. check_undefined_grad=False "
    "disables it: {} does not treat an undefined gradient as zeros"
)


def _warn_of_new_check(problem):
    # where warnings are errors, this one must not take the place of the GradcheckError
    with contextlib.suppress(UserWarning):
        warnings.warn(NEW_CHECK.format(problem.name), UserWarning, users_stacklevel())


def _undefined(problem, gradients, which, settings):
    try:
        return problem.pull(gradients)
    except RuntimeError as error:
        _warn_of_new_check(problem)
        raise settings.error(
            "reverse",
            "Expected backward function to handle undefined output grads: the backward of "
            f"{problem.name} raised {type(error).__name__}: {error}, when the gradients of output "
            f"{which} were None",
        ) from error
    except Exception as error:
        error.add_note(f"gradcheck: the gradients of output {which} of {problem.name} were None")
        raise


def undefined_tangents(problem, settings):
    """An undefined tangent counts as zeros, and so do tangents of zeros."""
    along = _inputs(problem, numpy.random.default_rng(2))
    for missing in subsets(len(along)):
        if len(missing) == len(along) > 1:
            continue
        kept = [None if k in missing else tangent for k, tangent in enumerate(along)]
        zeros = [tangent * 0 if k in missing else tangent for k, tangent in enumerate(along)]
        which = ", ".join(str(problem.moving[k]) for k in missing)
        try:
            tangents = problem.push(kept)
        except Exception as error:
            error.add_note(f"gradcheck: input {which} of {problem.name} had no tangent")
            raise
        for i, pair in enumerate(zip(tangents, problem.push(zeros), strict=True)):
            if not _same(*pair, settings.tolerance):
                raise settings.error(
                    "forward",
                    "Mismatch in tangent values for output with index: "
                    f"{problem.chosen[i]} of {problem.name} when input: {which} has an undefined "
                    f"tangent value. Got:\n{pair[0]}\nbut expected, as for zeros:\n{pair[1]}",
                )


def adjoint(problem, settings):
    """Forward and reverse mode are one linear map and its transpose: <u, J v> = <J^T u, v>."""
    generator = numpy.random.default_rng(3)
    weights, along = directions(problem.outputs, generator), _inputs(problem, generator)
    pairs = zip(weights, problem.push(along), strict=True)
    forward = sum(product(u, tangent) for u, tangent in pairs if tangent is not None)
    pairs = zip(problem.pull(weights), along, strict=True)
    reverse = sum(product(gradient, v) for gradient, v in pairs if gradient is not None)
    if settings.tolerance.excess(numpy.array(reverse), numpy.array(forward)) > 0:
        raise settings.error(
            "forward and reverse",
            "The adjoint (dot-product) test <u, J v> = <J^T u, v> failed for "
            f"{problem.name}: forward mode gives {forward:.12g}, reverse mode {reverse:.12g}, for "
            "random directions of all inputs and outputs. Each alone agrees with the numerical "
            "Jacobian, so one of them is not linear in its direction.",
        )


def batched_gradients(problem, settings):
    """The gradients of a batch under `jax.vmap` equal those of single examples."""
    generator = numpy.random.default_rng(4)
    inputs = [problem.input(k) for k in range(len(problem.moving))]
    for i, output in enumerate(problem.outputs):
        two = [directions([output], generator)[0] for _ in range(2)]
        expected = [problem.pull_one(i, gradient) for gradient in two]
        with jax.enable_x64(True):
            batch = wrap(jnp.asarray(numpy.stack(two)))
        gradients = _batched(
            lambda output=output, batch=batch: _gradients.grad(
                output, inputs, batch, True, allow_unused=True, is_grads_batched=True
            ),
            problem,
            settings,
        )
        for k, pair in enumerate(zip(gradients, zip(*expected, strict=True), strict=True)):
            got = None if pair[0] is None else pair[0]._array
            names = f"For output {problem.chosen[i]} and input {problem.moving[k]}"
            _compare_batches(got, pair[1], names, problem, settings)


def batched_tangents(problem, settings):
    """The tangents of a batch under `jax.vmap` equal those of single examples."""
    generator = numpy.random.default_rng(5)
    for k in range(len(problem.moving)):
        two = [directions([problem.input(k)], generator)[0] for _ in range(2)]
        zeros = [one_hot(problem.input(j), 0, 0) for j in range(len(problem.moving))]

        def push(tangent, k=k, zeros=zeros):
            tangents = problem.push([tangent if j == k else z for j, z in enumerate(zeros)])
            pairs = zip(tangents, problem.outputs, strict=True)
            return [jnp.zeros(o.shape, o.dtype.numpy) if t is None else t for t, o in pairs]

        with jax.enable_x64(True):
            expected = [push(tangent) for tangent in two]
            tangents = _batched(
                lambda push=push, two=two: jax.vmap(push)(numpy.stack(two)),
                problem,
                settings,
                BATCHED_FORWARD,
            )
        for i, pair in enumerate(zip(tangents, zip(*expected, strict=True), strict=True)):
            names = f"For output {problem.chosen[i]} and input {problem.moving[k]} in forward mode"
            _compare_batches(*pair, names, problem, settings)


def _batched(compute, problem, settings, failed=BATCHED):
    try:
        with refuse_draws(RANDOM):
            return compute()
    except Exception as error:
        option = "check_batched_grad" if failed == BATCHED else "check_batched_forward_grad"
        raise settings.error(
            "reverse" if failed == BATCHED else "forward",
            f"While computing batched gradients, got: {error}\n\n{failed} of "
            f"{problem.name}: it works for single examples but not under jax.vmap, where tensors "
            f"have no concrete values. If that is intended, pass `{option}=False`.",
        ) from error


def _compare_batches(batch, expected, names, problem, settings):
    for row, example in enumerate(expected):
        got = None if batch is None else batch[row]
        if not _same(got, example, settings.tolerance):
            raise settings.error(
                "reverse",
                f"{names}:\n\n{BATCHED} of {problem.name}.\n\nGot:\n{got}\n\n"
                f"Expected, as for a single example:\n{example}",
            )


def subsets(count):
    """The nonempty subsets of `range(count)`; for a large count only single ones and the whole."""
    sizes = range(1, count + 1) if count <= IN_ALL_COMBINATIONS else (1, count)
    return [subset for size in sizes for subset in itertools.combinations(range(count), size)]


def _inputs(problem, generator):
    return directions([problem.input(k) for k in range(len(problem.moving))], generator)


def _same(actual, expected, tolerance) -> bool:
    """Whether two arrays are equal within the tolerance; None counts as zeros."""
    if actual is None and expected is None:
        return True
    actual, expected = (
        0.0 if array is None else numpy.asarray(array) for array in (actual, expected)
    )
    return bool(numpy.all(tolerance.excess(actual, expected) <= 0))


# the dtypes that the rules of Functions return, before the engine casts them


def rule_dtypes(problem, settings):
    """The gradients and tangents that the rules of Functions return have the dtypes of their inputs
    and outputs.

    The engine casts a gradient to the dtype of its input, and a tangent to that of its output, so
    the results have the right dtype in any case. But a rule that returns another dtype has computed
    in it.
    """
    mismatches: list[str] = []
    generator = numpy.random.default_rng(6)
    functions = [n._forward_cls for n in nodes(problem.outputs) if isinstance(n, FunctionNode)]
    with contextlib.ExitStack() as stack:
        for function in set(functions):
            stack.enter_context(_watched(function, mismatches))
        if settings.backward:
            problem.pull(directions(problem.outputs, generator))
            _refuse(mismatches, "reverse", "Gradient has dtype mismatch", settings)
        if settings.forward:
            inputs = [problem.input(k) for k in range(len(problem.moving))]
            problem.push(directions(inputs, generator))
            _refuse(mismatches, "forward", "Forward AD gradient has dtype mismatch", settings)


def _refuse(mismatches, mode, text, settings):
    if mismatches:
        raise settings.error(mode, f"{text}: {mismatches[0]}")


@contextlib.contextmanager
def _watched(function, mismatches):
    """Replace the rules of a Function by ones that note results of wrong dtypes in `mismatches`."""
    rules = {
        "backward": _inputs_of,
        "vjp": _inputs_of,
        "jvp": lambda ctx: [None if aval is None else aval.dtype for aval in ctx.outputs()],
    }
    before = {name: vars(function)[name] for name in rules if name in vars(function)}
    for name, expected in rules.items():
        rule = getattr(function, name)
        if rule is not getattr(Rules, name):
            setattr(function, name, staticmethod(_noting(rule, expected, name, mismatches)))
    try:
        yield
    finally:
        for name in rules:
            if name in before:
                setattr(function, name, before[name])
            elif name in vars(function):
                delattr(function, name)


def _noting(rule, expected, name, mismatches):
    @functools.wraps(rule)
    def noting(ctx, *args):
        results = rule(ctx, *args)
        several = results if isinstance(results, tuple) else (results,)
        for position, (result, dtype) in enumerate(zip(several, expected(ctx), strict=False)):
            if isinstance(result, Tensor) and dtype is not None and result.dtype != dtype:
                mismatches.append(
                    f"{ctx._forward_cls.__name__}.{name} returned {result.dtype} at position "
                    f"{position}, but {dtype} was expected"
                )
        return results

    return noting


def _inputs_of(ctx):
    """The dtype of the gradient of each argument of a call; None for an argument without one."""
    edges, dtypes = iter(ctx.edges), []
    for needed in ctx._needs:
        node, output_nr = next(edges) if needed else (None, 0)
        dtypes.append(None if node is None else node.outputs()[output_nr].dtype)
    return dtypes
