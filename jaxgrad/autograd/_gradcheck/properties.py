"""What else holds of a derivative: each a function that raises GradcheckError where it does not."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy

from ... import autograd
from ...tape.tensor import wrap
from .problem import directions, one_hot, parts, product

# so many outputs or inputs are left undefined in all combinations
IN_ALL_COMBINATIONS = 4

BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation"


def without_outputs(subject, settings):
    """Where no output requires grad none may change with the inputs."""
    dtypes = [each.dtype for each in subject.everything]
    chosen = [i for i, d in enumerate(dtypes) if d.is_floating_point or d.is_complex]
    for k in range(len(subject.moving)):
        tensor = subject.input(k)
        for index, unit in itertools.product(range(tensor.numel()), parts(tensor)):
            slopes = subject.slopes(k, index, unit, settings.eps, chosen)
            moved = [i for i, slope in zip(chosen, slopes, strict=True) if slope.any()]
            if moved:
                raise settings.error(
                    "reverse",
                    f"Numerical gradient for function expected to be zero: output {moved[0]} of "
                    f"{subject.name} does not require grad, but element {index} of input "
                    f"{subject.moving[k]} moves it. Is there a detach(), or no_grad?",
                )


def zero_gradients(subject, settings):
    """Gradients of zero give gradients of zero, of the input's dtype and shape."""
    zeros = [numpy.zeros(o.shape, o.dtype.numpy) for o in subject.outputs]
    for k, gradient in enumerate(subject.pull(zeros)):
        if gradient is None:
            continue
        tensor, which = subject.input(k), f"input {subject.moving[k]} of {subject.name}"
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


def undefined_gradients(subject, settings):
    """A gradient that is undefined, None, counts as zeros."""
    generator = numpy.random.default_rng(1)
    weights = directions(subject.outputs, generator)
    for missing in subsets(len(weights)):
        kept = [None if i in missing else each for i, each in enumerate(weights)]
        zeros = [each * 0 if i in missing else each for i, each in enumerate(weights)]
        which = ", ".join(str(subject.chosen[i]) for i in missing)
        found = _undefined(subject, kept, which, settings)
        everything = len(missing) == len(weights)
        expected = [None] * len(found) if everything else subject.pull(zeros)
        for k, pair in enumerate(zip(found, expected, strict=True)):
            if not _same(*pair, settings.tolerance):
                raise settings.error(
                    "reverse",
                    "Expected all input grads to be undefined or zero when all output grads are "
                    "undefined or zero, and an undefined one to count as zero: "
                    f"with those of output {which} of {subject.name} undefined, the gradient of "
                    f"input {subject.moving[k]} is\n{pair[0]}\nand not\n{pair[1]}",
                )


def _undefined(subject, gradients, which, settings):
    try:
        return subject.pull(gradients)
    except RuntimeError as error:
        raise settings.error(
            "reverse",
            "Expected backward function to handle undefined output grads: that of "
            f"{subject.name} raised {type(error).__name__}: {error}, when those of output {which} "
            "were None",
        ) from error
    except Exception as error:
        error.add_note(f"gradcheck: the gradients of output {which} of {subject.name} were None")
        raise


def undefined_tangents(subject, settings):
    """A tangent that is undefined counts as zeros."""
    along = _inputs(subject, numpy.random.default_rng(2))
    for missing in subsets(len(along)):
        if len(missing) == len(along):
            continue
        kept = [None if k in missing else each for k, each in enumerate(along)]
        zeros = [each * 0 if k in missing else each for k, each in enumerate(along)]
        which = ", ".join(str(subject.moving[k]) for k in missing)
        try:
            found = subject.push(kept)
        except Exception as error:
            error.add_note(f"gradcheck: input {which} of {subject.name} had no tangent")
            raise
        for i, pair in enumerate(zip(found, subject.push(zeros), strict=True)):
            if not _same(*pair, settings.tolerance):
                raise settings.error(
                    "forward",
                    "Mismatch in tangent values for output with index: "
                    f"{subject.chosen[i]} of {subject.name} when input: {which} has an undefined "
                    f"tangent value. Got:\n{pair[0]}\nbut expected, as for zeros:\n{pair[1]}",
                )


def adjoint(subject, settings):
    """Forward and reverse mode are the same map: <u, J v> = <J^T u, v>."""
    generator = numpy.random.default_rng(3)
    weights, along = directions(subject.outputs, generator), _inputs(subject, generator)
    pairs = zip(weights, subject.push(along), strict=True)
    forward = sum(product(u, tangent) for u, tangent in pairs if tangent is not None)
    pairs = zip(subject.pull(weights), along, strict=True)
    reverse = sum(product(gradient, v) for gradient, v in pairs if gradient is not None)
    if settings.tolerance.excess(numpy.array(reverse), numpy.array(forward)) > 0:
        raise settings.error(
            "forward and reverse",
            "The adjoint (dot-product) test <u, J v> = <J^T u, v> failed for "
            f"{subject.name}: forward mode gives {forward:.12g}, reverse mode {reverse:.12g}, for "
            "random directions of all inputs and outputs. Each alone agrees with the numerical "
            "Jacobian, so one of them is not linear in its direction.",
        )


def batched_gradients(subject, settings):
    """Gradients of a batch, under `jax.vmap`, are those of one after another."""
    generator = numpy.random.default_rng(4)
    inputs = [subject.input(k) for k in range(len(subject.moving))]
    for i, output in enumerate(subject.outputs):
        two = [directions([output], generator)[0] for _ in range(2)]
        expected = [subject.pull_one(i, gradient) for gradient in two]
        with jax.enable_x64(True):
            batch = wrap(jnp.asarray(numpy.stack(two)))
        found = _batched(
            lambda output=output, batch=batch: autograd.grad(
                output, inputs, batch, True, allow_unused=True, is_grads_batched=True
            ),
            subject,
            settings,
        )
        for k, pair in enumerate(zip(found, zip(*expected, strict=True), strict=True)):
            got = None if pair[0] is None else pair[0]._array
            names = f"For output {subject.chosen[i]} and input {subject.moving[k]}"
            _compare_batches(got, pair[1], names, subject, settings)


def batched_tangents(subject, settings):
    """Tangents of a batch are those of one after another."""
    generator = numpy.random.default_rng(5)
    for k in range(len(subject.moving)):
        two = [directions([subject.input(k)], generator)[0] for _ in range(2)]
        zeros = [one_hot(subject.input(j), 0, 0) for j in range(len(subject.moving))]

        def push(tangent, k=k, zeros=zeros):
            found = subject.push([tangent if j == k else z for j, z in enumerate(zeros)])
            pairs = zip(found, subject.outputs, strict=True)
            return [jnp.zeros(o.shape, o.dtype.numpy) if t is None else t for t, o in pairs]

        with jax.enable_x64(True):
            expected = [push(tangent) for tangent in two]
            found = _batched(lambda push=push, two=two: jax.vmap(push)(numpy.stack(two)), subject,
                             settings)  # fmt: skip
        for i, pair in enumerate(zip(found, zip(*expected, strict=True), strict=True)):
            names = f"For output {subject.chosen[i]} and input {subject.moving[k]} in forward mode"
            _compare_batches(*pair, names, subject, settings)


def _batched(compute, subject, settings):
    try:
        return compute()
    except Exception as error:
        raise settings.error(
            "reverse",
            f"While computing batched gradients, got: {error}\n\n{BATCHED} of "
            f"{subject.name}: what works for one works not under jax.vmap, which gives the "
            "derivative tensors without numbers. If that is to be so, pass "
            "`check_batched_grad=False`.",
        ) from error


def _compare_batches(found, expected, names, subject, settings):
    for row, each in enumerate(expected):
        got = None if found is None else found[row]
        if not _same(got, each, settings.tolerance):
            raise settings.error(
                "reverse",
                f"{names}:\n\n{BATCHED} of {subject.name}.\n\nGot:\n{got}\n\n"
                f"Expected, as when computed alone:\n{each}",
            )


def subsets(count):
    """The subsets of so many, the empty one left out; of many only the single ones, and all."""
    sizes = range(1, count + 1) if count <= IN_ALL_COMBINATIONS else (1, count)
    return [each for size in sizes for each in itertools.combinations(range(count), size)]


def _inputs(subject, generator):
    return directions([subject.input(k) for k in range(len(subject.moving))], generator)


def _same(found, expected, tolerance) -> bool:
    """Whether two arrays are, None being zeros."""
    if found is None and expected is None:
        return True
    found, expected = (0.0 if each is None else numpy.asarray(each) for each in (found, expected))
    return bool(numpy.all(tolerance.excess(found, expected) <= 0))
