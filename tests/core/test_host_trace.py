"""Programs whose trace for the host is another one than that for XLA."""

import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy
import pytest
from helpers.modes import eager
from scipy import signal

import jaxgrad
from jaxgrad.core import executor
from jaxgrad.core.jaxprs import equations_of

SHAPE = 3, 8, 7, 6
DRAW = numpy.random.default_rng(0)


@pytest.fixture
def programs(monkeypatch):
    """The programs of convolutions that have been prepared."""
    noted, prepare = [], executor.prepare

    def noting(program):
        noted.append(program)
        return prepare(program)

    monkeypatch.setattr(executor, "prepare", noting)
    jaxgrad.compiler.reset()
    yield lambda: [program for program in noted if program.name.startswith("Convolution")]
    jaxgrad.compiler.reset()


def convolved(dtype=jaxgrad.float32):
    """A depthwise convolution by jaxgrad, and by SciPy in double precision."""
    image, weight = DRAW.standard_normal(SHAPE), DRAW.standard_normal((8, 1, 3, 3))
    inputs = [jaxgrad.tensor(array).to(dtype).requires_grad_() for array in (image, weight)]
    result = jaxgrad.nn.functional.conv2d(*inputs, padding=1, groups=8)
    result.sum().backward()
    exact = [
        [
            signal.correlate2d(channel, w[0], "same")
            for channel, w in zip(sample, weight, strict=True)
        ]
        for sample in image
    ]
    return result, numpy.array(exact)


def names_of(jaxpr):
    return {equation.primitive.name for equation in equations_of(jaxpr)}


@pytest.mark.parametrize("mode", ["host", "compiled", "deferred"])
def test_each_executor_computes_a_depthwise_convolution(mode, programs):
    with eager(mode):
        result, exact = convolved()
        numpy.testing.assert_allclose(result.detach().numpy(), exact, rtol=1e-5, atol=1e-5)
        assert len(programs()) == 2


def test_xla_has_a_trace_of_its_own(programs):
    """The host has a convolution where XLA is given sums of shifted products."""
    convolved()
    for program in programs():
        structs = [*map(jaxgrad.core.aval.struct_of, program.inputs)]
        assert "conv_general_dilated" in names_of(program.trace_for_host(*structs))
        lowered = program.to_compile.trace(*structs).lower().as_text()
        assert "convolution" not in lowered
        operands = [numpy.ones(struct.shape, struct.dtype) for struct in structs]
        by_host = program.kernel.host.function(*operands)
        by_xla = jax.tree.leaves(program.to_compile(*operands))
        for result, expected in zip(by_host, by_xla, strict=True):
            numpy.testing.assert_allclose(result, expected, rtol=1e-5)


def test_threads_may_trace_one_program_at_once():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(10):
            jaxgrad.compiler.reset()
            with ThreadPoolExecutor(4) as pool:
                for result, exact in pool.map(lambda _: convolved(), range(4)):
                    numpy.testing.assert_allclose(result.tolist(), exact, rtol=1e-5, atol=1e-5)
    finally:
        sys.setswitchinterval(interval)
