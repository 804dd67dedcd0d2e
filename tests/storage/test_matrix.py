"""Every kind of view x every kind of in-place write, through the base, the view and a sibling.

33 views x 33 writes x 3 targets x the other use before the write or after it: 6,480 programs where
the write applies to the shape. Each is compared with what PyTorch 2.13 came to
(test_matrix.answers.json), and those through one of the targets, pair by pair another, with the
same program without in-place (values and gradients, by JAX). `make test` runs three pairs of them.
Of every second pair one program is run under jit too; `make oracle` runs them all so, and compares
all with JAX (tests/oracle/live_matrix.py), which takes minutes to compile.
"""

import jax
import numpy
import pytest
from helpers import checks
from helpers.answers import beside, load
from storage import matrix, views, writes

import jaxgrad

RECORDED = load(beside(__file__))

PARTS = (*matrix.TARGETS, "gradient of leaf", "gradient of other")

# PyTorch warns of some of the writes to an expanded tensor that it does not refuse
pytestmark = [
    pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors:UserWarning"),
]


def pairs():
    parameters = []
    for row, view in enumerate(views.VIEWS):
        for column, write in enumerate(writes.ALL):
            marks = () if row == column and row % 12 == 0 else pytest.mark.slow
            if matrix.programs(view, write):
                parameters.append(pytest.param(view, write, id=f"{view}-{write}", marks=marks))
    return parameters


def as_numpy(tensor):
    return (jaxgrad.view_as_real(tensor) if tensor.is_complex() else tensor).numpy()


def leaves(program):
    return (
        matrix.tensor(jaxgrad, program.leaf(), program.view.is_complex),
        matrix.tensor(jaxgrad, program.other(), program.other_is_complex),
    )


def outcome(program, *tensors):
    """A program's results, or its error."""
    try:
        return matrix.run(jaxgrad, program, *tensors, program.view.call)
    except (RuntimeError, NotImplementedError) as error:
        return error


def differences(program, result, told, by_jax):
    """The mistakes in a program's results."""
    if isinstance(told[0], str):
        kind, words = told
        right = type(result).__name__ == kind and words in str(result)
        instead = repr(result) if isinstance(result, Exception) else "no error"
        return [] if right else [f"{program}: {instead} for {kind}: {words}"]
    if isinstance(result, Exception):
        return [f"{program}: {result!r}"]
    arrays, wrong = [as_numpy(tensor) for tensor in result], []
    if by_jax:
        with jax.enable_x64(True):
            compared = zip(PARTS, arrays, matrix.interpret(program), strict=True)
        wrong = [f"{program}: {name}" for name, *two in compared if not same(*two)]
    digests = numpy.allclose(matrix.digest(arrays), told[:2], rtol=1e-8, atol=1e-8)
    return wrong if wrong or digests else [f"{program}: not what PyTorch has"]


def same(result, expected):
    close = numpy.allclose(result, expected, rtol=1e-12, atol=1e-13)
    return result.shape == expected.shape and close


def told(view, write):
    every = matrix.programs(view, write)
    return list(zip(every, RECORDED[f"{view}-{write}"], strict=True))


@pytest.mark.parametrize(("view", "write"), pairs())
def test_every_view_and_write_eager(view, write):
    wrong = []
    place = views.VIEWS.index(view) + writes.ALL.index(write)
    chosen = matrix.TARGETS[place % len(matrix.TARGETS)]
    for program, answer in told(view, write):
        result = outcome(program, *leaves(program))
        wrong += differences(program, result, answer, program.target == chosen)
        checks.count("aliasing")
    assert not wrong, "\n".join(wrong)


def every_program(view):
    return [
        case for write in writes.ALL if matrix.programs(view, write) for case in told(view, write)
    ]


def sampled(view):
    """One program of every second kind of write; which one goes through the six of them."""
    start = views.VIEWS.index(view)
    cases = []
    for position, write in [*enumerate(writes.ALL)][start % 2 :: 2]:
        every = told(view, write) if matrix.programs(view, write) else []
        cases += every[(start + position // 2) % 6 :][:1]
    return cases


@pytest.mark.slow
@pytest.mark.parametrize("view", views.VIEWS, ids=str)
def test_every_view_and_write_compiled(view):
    check_compiled(sampled(view), by_jax=False)


def check_compiled(sample, by_jax=True):
    """All programs in one compiled function give the recorded results."""
    errors = {}

    @jaxgrad.jit
    def run(arguments):
        results = []
        for (program, _), tensors in zip(sample, arguments, strict=True):
            results.append(outcome(program, *tensors))
            if isinstance(results[-1], Exception):
                # without the frames' tensors, which would outlive the trace
                errors[str(program)] = results.pop().with_traceback(None)
        return results

    results = iter(run([leaves(program) for program, _ in sample]))
    wrong = []
    for program, answer in sample:
        result = errors[str(program)] if str(program) in errors else next(results)
        wrong += differences(program, result, answer, by_jax)
        checks.count("aliasing")
    assert not wrong, "\n".join(wrong)
