"""What else holds of a derivative: each a function that raises GradcheckError where it does not."""

from __future__ import annotations

import contextlib
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy

from ... import autograd
from ...tape.tensor import Tensor, wrap
from ..function import BackwardCFunction, Function
from .problem import directions, nodes, one_hot, parts, product

# so many outputs or inputs are left undefined in all combinations
IN_ALL_COMBINATIONS = 4

BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation"


def without_outputs(problem, settings):
    """Where no output requires grad none may change with the inputs."""
    dtypes = [each.dtype for each in problem.everything]
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
                    f"{problem.moving[k]} moves it. Is there a detach(), or no_grad?",
                )


def zero_gradients(problem, settings):
    """Gradients of zero give gradients of zero, of the input's dtype and shape."""
    zeros = [numpy.zeros(o.shape, o.dtype.numpy) for o in problem.outputs]
    for k, gradient in enumerate(problem.pull(zeros)):
        if gradient is None:
            continue
        tensor, which = problem.input(k), f"input {problem.moving[k]} of {problem.name}"
        found = wrap(gradient)
        if found.dtype != tensor.dtype:
            said = f"grad is incorrect type: {found.dtype} for {which}, of {tensor.dtype}"
        elif found.shape != tensor.shape:
            said = f"grad is incorrect size: {list(found.shape)} for {which}, {list(tensor.shape)}"
        elif numpy.asarray(gradient).any():
            said = (
                "backward not multiplied by grad_output: with a gradient of zeros for every output "
                f"that of {which} is {numpy.asarray(gradient)}"
            )
        else:
            continue
        raise settings.error("reverse", said)


def undefined_gradients(problem, settings):
    """A gradient that is undefined, None, counts as zeros."""
    generator = numpy.random.default_rng(1)
    weights = directions(problem.outputs, generator)
    for missing in subsets(len(weights)):
        kept = [None if i in missing else each for i, each in enumerate(weights)]
        zeros = [each * 0 if i in missing else each for i, each in enumerate(weights)]
        which = ", ".join(str(problem.chosen[i]) for i in missing)
        found = _undefined(problem, kept, which, settings)
        everything = len(missing) == len(weights)
        expected = [None] * len(found) if everything else problem.pull(zeros)
        for k, pair in enumerate(zip(found, expected, strict=True)):
            if not _same(*pair, settings.tolerance):
                raise settings.error(
                    "reverse",
                    "Expected all input grads to be undefined or zero when all output grads are "
                    "undefined or zero, and an undefined one to count as zero: "
                    f"with those of output {which} of {problem.name} undefined, the gradient of "
                    f"input {problem.moving[k]} is\n{pair[0]}\nand not\n{pair[1]}",
                )


def _undefined(problem, gradients, which, settings):
    try:
        return problem.pull(gradients)
    except RuntimeError as error:
        raise settings.error(
            "reverse",
            "Expected backward function to handle undefined output grads: that of "
            f"{problem.name} raised {type(error).__name__}: {error}, when those of output {which} "
            "were None",
        ) from error
    except Exception as error:
        error.add_note(f"gradcheck: the gradients of output {which} of {problem.name} were None")
        raise


def undefined_tangents(problem, settings):
    """A tangent that is undefined counts as zeros."""
    along = _inputs(problem, numpy.random.default_rng(2))
    for missing in subsets(len(along)):
        if len(missing) == len(along):
            continue
        kept = [None if k in missing else each for k, each in enumerate(along)]
        zeros = [each * 0 if k in missing else each for k, each in enumerate(along)]
        which = ", ".join(str(problem.moving[k]) for k in missing)
        try:
            found = problem.push(kept)
        except Exception as error:
            error.add_note(f"gradcheck: input {which} of {problem.name} had no tangent")
            raise
        for i, pair in enumerate(zip(found, problem.push(zeros), strict=True)):
            if not _same(*pair, settings.tolerance):
                raise settings.error(
                    "forward",
                    "Mismatch in tangent values for output with index: "
                    f"{problem.chosen[i]} of {problem.name} when input: {which} has an undefined "
                    f"tangent value. Got:\n{pair[0]}\nbut expected, as for zeros:\n{pair[1]}",
                )


def adjoint(problem, settings):
    """Forward and reverse mode are the same map: <u, J v> = <J^T u, v>."""
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
    """Gradients of a batch, under `jax.vmap`, are those of one after another."""
    generator = numpy.random.default_rng(4)
    inputs = [problem.input(k) for k in range(len(problem.moving))]
    for i, output in enumerate(problem.outputs):
        two = [directions([output], generator)[0] for _ in range(2)]
        expected = [problem.pull_one(i, gradient) for gradient in two]
        with jax.enable_x64(True):
            batch = wrap(jnp.asarray(numpy.stack(two)))
        found = _batched(
            lambda output=output, batch=batch: autograd.grad(
                output, inputs, batch, True, allow_unused=True, is_grads_batched=True
            ),
            problem,
            settings,
        )
        for k, pair in enumerate(zip(found, zip(*expected, strict=True), strict=True)):
            got = None if pair[0] is None else pair[0]._array
            names = f"For output {problem.chosen[i]} and input {problem.moving[k]}"
            _compare_batches(got, pair[1], names, problem, settings)


def batched_tangents(problem, settings):
    """Tangents of a batch are those of one after another."""
    generator = numpy.random.default_rng(5)
    for k in range(len(problem.moving)):
        two = [directions([problem.input(k)], generator)[0] for _ in range(2)]
        zeros = [one_hot(problem.input(j), 0, 0) for j in range(len(problem.moving))]

        def push(tangent, k=k, zeros=zeros):
            found = problem.push([tangent if j == k else z for j, z in enumerate(zeros)])
            pairs = zip(found, problem.outputs, strict=True)
            return [jnp.zeros(o.shape, o.dtype.numpy) if t is None else t for t, o in pairs]

        with jax.enable_x64(True):
            expected = [push(tangent) for tangent in two]
            found = _batched(lambda push=push, two=two: jax.vmap(push)(numpy.stack(two)), problem,
                             settings)  # fmt: skip
        for i, pair in enumerate(zip(found, zip(*expected, strict=True), strict=True)):
            names = f"For output {problem.chosen[i]} and input {problem.moving[k]} in forward mode"
            _compare_batches(*pair, names, problem, settings)


def _batched(compute, problem, settings):
    try:
        return compute()
    except Exception as error:
        raise settings.error(
            "reverse",
            f"While computing batched gradients, got: {error}\n\n{BATCHED} of "
            f"{problem.name}: what works for one works not under jax.vmap, which gives the "
            "derivative tensors without numbers. If that is to be so, pass "
            "`check_batched_grad=False`.",
        ) from error


def _compare_batches(found, expected, names, problem, settings):
    for row, each in enumerate(expected):
        got = None if found is None else found[row]
        if not _same(got, each, settings.tolerance):
            raise settings.error(
                "reverse",
                f"{names}:\n\n{BATCHED} of {problem.name}.\n\nGot:\n{got}\n\n"
                f"Expected, as when computed alone:\n{each}",
            )


def subsets(count):
    """The subsets of so many, the empty one left out; of many only the single ones, and all."""
    sizes = range(1, count + 1) if count <= IN_ALL_COMBINATIONS else (1, count)
    return [each for size in sizes for each in itertools.combinations(range(count), size)]


def _inputs(problem, generator):
    return directions([problem.input(k) for k in range(len(problem.moving))], generator)


def _same(found, expected, tolerance) -> bool:
    """Whether two arrays are, None being zeros."""
    if found is None and expected is None:
        return True
    found, expected = (0.0 if each is None else numpy.asarray(each) for each in (found, expected))
    return bool(numpy.all(tolerance.excess(found, expected) <= 0))


# the dtypes that the rules of Functions return, before the engine casts them


def rule_dtypes(problem, settings):
    """Raises GradcheckError where a rule returns another dtype than that of what it is for."""
    found: list[str] = []
    generator = numpy.random.default_rng(6)
    functions = [n._forward_cls for n in nodes(problem.outputs) if isinstance(n, BackwardCFunction)]
    with contextlib.ExitStack() as stack:
        for function in set(functions):
            stack.enter_context(_watched(function, found))
        if settings.backward:
            problem.pull(directions(problem.outputs, generator))
            _refuse(found, "reverse", "Gradient has dtype mismatch", settings)
        if settings.forward:
            inputs = [problem.input(k) for k in range(len(problem.moving))]
            problem.push(directions(inputs, generator))
            _refuse(found, "forward", "Forward AD gradient has dtype mismatch", settings)


def _refuse(found, mode, said, settings):
    if found:
        raise settings.error(mode, f"{said}: {found[0]}")


@contextlib.contextmanager
def _watched(function, found):
    """While it lasts the rules of a Function note the wrong dtypes that they return in `found`."""
    rules = {
        "backward": _inputs_of,
        "vjp": _inputs_of,
        "jvp": lambda ctx: [None if aval is None else aval.dtype for aval in ctx.outputs()],
    }
    own = {name: vars(function)[name] for name in rules if name in vars(function)}
    for name, expected in rules.items():
        rule = getattr(function, name)
        if rule is not getattr(Function, name):
            setattr(function, name, staticmethod(_noting(rule, expected, name, found)))
    try:
        yield
    finally:
        for name in rules:
            if name in own:
                setattr(function, name, own[name])
            elif name in vars(function):
                delattr(function, name)


def _noting(rule, expected, name, found):
    @functools.wraps(rule)
    def noting(ctx, *given):
        results = rule(ctx, *given)
        several = results if isinstance(results, tuple) else (results,)
        for position, (result, dtype) in enumerate(zip(several, expected(ctx), strict=False)):
            if isinstance(result, Tensor) and dtype is not None and result.dtype != dtype:
                found.append(
                    f"{ctx._forward_cls.__name__}.{name} returned {result.dtype} at position "
                    f"{position}, where it is {dtype}"
                )
        return results

    return noting


def _inputs_of(ctx):
    """For each argument of a call the dtype of its gradient, None for one that has none."""
    edges, found = iter(ctx.edges), []
    for needed in ctx.needs_input_grad:
        node, output_nr = next(edges) if needed else (None, 0)
        found.append(None if node is None else node.outputs()[output_nr].dtype)
    return found
