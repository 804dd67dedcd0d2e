"""Compares a random program with the same program without in-place writes."""

import importlib

import jax
import numpy
from storage import programs

import jaxgrad

OVERWRITTEN = "has been modified by an inplace operation"  # a number that was saved

# PyTorch's messages for programs that only PyTorch refuses.
REFUSALS = (
    OVERWRITTEN,
    "its base or another view of its base has been modified",  # one of several views is read
    "a leaf Variable that requires grad is being used",  # a view, older than its base's history
    "more than one element of the written-to tensor",  # the derivative of filling an expanded one
)


def check(draws, backwards, with_torch):
    with jax.enable_x64(True):
        expected = programs.interpret(draws)
        expected_numbers = arrays(expected)
    outcome, handles = programs.run(jaxgrad, expected, backwards)
    same(expected, expected_numbers, outcome, "jaxgrad")
    if with_torch:
        check_torch(expected, expected_numbers, backwards, handles)


def arrays(outcome):
    gradients = zip(("gradient of a", "gradient of b"), outcome.gradients, strict=True)
    numbers = {**outcome.values, **dict(gradients)}
    return {name: numpy.asarray(value) for name, value in numbers.items()}


def same(expected, numbers, outcome, module):
    """Fails where an outcome is not the expected one."""
    where = f"{module} in\n{expected}\n"
    assert outcome.errors == expected.errors, f"{where}{outcome.errors}"
    assert outcome.strides == expected.strides, f"{where}{outcome.strides}, {expected.strides}"
    for name, array in arrays(outcome).items():
        close(array, numbers[name], f"{where}{name}")


def close(array, wanted, where):
    array, wanted = numpy.asarray(array), numpy.asarray(wanted)
    assert array.shape == wanted.shape, f"{where}: {array.shape} for {wanted.shape}"
    scale = max(1.0, float(numpy.abs(wanted).max()))
    wrong = float(numpy.abs(array - wanted).max())
    assert wrong <= 1e-12 * scale, f"{where}: {array} for {wanted}"


def check_twice(draws):
    """Compares second derivatives."""
    with jax.enable_x64(True):
        program, expected = programs.interpret(draws), programs.interpret_twice(draws)
    derivatives = programs.run_twice(jaxgrad, program)
    for name, pair in zip("ab", zip(derivatives, expected, strict=True), strict=True):
        close(*pair, f"second derivative by {name} in\n{program}\n")


def check_compiled(draws):
    """Compares the program as one compiled function."""

    @jaxgrad.jit
    def compiled(a, b):
        handles, errors = programs.taken(jaxgrad, expected, a, b)
        error_names.extend(errors)
        readable, loss = programs.read(jaxgrad, expected, handles)
        values = {name: tensor.detach() for name, tensor in readable.items()}
        return values, list(programs.gradients_of(jaxgrad, loss, [a, b]))

    error_names = []
    with jax.enable_x64(True):
        expected = programs.interpret(draws)
        numbers = arrays(expected)
    values, gradients = compiled(*programs.leaves(jaxgrad))
    assert tuple(error_names) == expected.errors, f"jit of\n{expected}"
    by_name = {**values, "gradient of a": gradients[0], "gradient of b": gradients[1]}
    for name, tensor in by_name.items():
        close(tensor.numpy(), numbers[name], f"{name} of the jit of\n{expected}\n")


def check_torch(expected, numbers, backwards, handles):
    torch = importlib.import_module("torch")
    try:
        outcome, theirs = programs.run(torch, expected, backwards)
    except RuntimeError as error:
        assert any(words in str(error) for words in REFUSALS), f"{expected}\n{error}"
        if OVERWRITTEN in str(error):
            check_strict(expected, backwards, refuses=True)
        return
    if any(step.kind == "data" for step in expected.steps):
        return  # its gradients may be of other values, without an error
    same(expected, numbers, outcome, "PyTorch")
    check_strict(expected, backwards, refuses=False)
    if any(expected.errors) or not all(step.grad_mode for step in expected.steps):
        return
    for position, pair in enumerate(zip(handles, theirs, strict=True)):
        ours, their = map(observed, pair)
        assert ours == their, f"h{position} is {ours} for {their} in\n{expected}"


def check_strict(program, backwards, refuses):
    """Under strict_versions jaxgrad refuses the writes that PyTorch refuses."""
    try:
        with jaxgrad.autograd.graph.strict_versions():
            programs.run(jaxgrad, program, backwards)
    except RuntimeError as error:
        assert refuses, f"jaxgrad alone refuses\n{program}\n{error}"
        assert OVERWRITTEN in str(error), f"{program}\n{error}"
    else:
        assert not refuses, f"PyTorch alone refuses\n{program}"


def observed(tensor):
    """Other observable properties of a tensor."""
    return {
        "requires_grad": tensor.requires_grad,
        "version": tensor._version,
        "is_view": tensor._is_view(),
        "is_leaf": tensor.is_leaf,
        "offset": tensor.storage_offset(),
    }
