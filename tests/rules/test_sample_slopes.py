"""Derivatives of gamma and beta samples by the parameters.

The expected numbers are quotients of integrals, by the quadrature of mpmath with 30 digits.
"""

import numpy
import pytest
from helpers.checks import count

import jaxgrad
from jaxgrad import ops

# the shape, a sample, and its derivative
GAMMA = [
    (2.0**-7, 2.0**-100, 6.9420042975895e-27),
    (0.5, 0.25, 0.9080144917641113),
    (9, 12.5, 1.1951411537335233),
    (30, 25, 0.9166815997356572),
    (1000.0, 1010, 1.0051509296765344),
    (10000.0, 9950, 0.9975124479675925),
    (1000000.0, 1000500, 1.0002501250520885),
    (1000000.0, 998000, 0.9989994991657487),
]

# the concentrations, a sample, and its derivative by the first one, divided by 1 - sample
BETA = [
    (2.0**-7, 2.0**-7, 2.0**-100, 1.3460070694653386e-26),
    (2.0**-7, 2.0**-7, 0.75, 6172.436879116081),
    (0.5, 2, 0.875, 1.260157148212128),
    (30, 1000000.0, 3.0517578125e-05, 1.0141838304687942e-06),
    (10000.0, 5, 0.99951171875, 9.99555944699835e-05),
    (1000.0, 10000.0, 0.09375, 9.233318239637949e-05),
    (1000000.0, 1000000.0, 0.50048828125, 5.002442279593202e-07),
    (1000000.0, 1, 0.9999997615814209, 9.99999880790701e-07),
]


@pytest.mark.parametrize(
    ("dtype", "rtol"), [(jaxgrad.float32, 5e-7), (jaxgrad.float64, 5e-13)], ids=str
)
def test_slopes_of_samples(dtype, rtol):
    shape, sample, expected = numpy.array(GAMMA).T
    slope = ops._standard_gamma_grad(*(jaxgrad.tensor(x, dtype=dtype) for x in (shape, sample)))
    numpy.testing.assert_allclose(slope.numpy(), expected, rtol)
    first, second, sample, expected = numpy.array(BETA).T
    tensors = (jaxgrad.tensor(x, dtype=dtype) for x in (sample, first, first + second))
    numpy.testing.assert_allclose(ops._dirichlet_grad(*tensors).numpy(), expected, rtol)
    count("derivatives", len(GAMMA) + len(BETA))


@pytest.mark.slow
def test_second_derivatives_of_slopes():
    """By finite differences of the slopes, which the numbers above test."""
    shape, sample = jaxgrad.tensor([9.0, 30.0, 80.0]).double(), [12.5, 25.0, 80.5]
    pair = (shape.requires_grad_(), jaxgrad.tensor(sample).double().requires_grad_())
    assert jaxgrad.autograd.gradcheck(ops._standard_gamma_grad, pair)
    concentrations, places = [12.0, 9.0, 0.5, 40.0], [0.25, 0.75, 0.03125, 0.5]
    tensors = places, concentrations, [30.0, 20.0, 12.0, 80.5]
    inputs = [jaxgrad.tensor(x, dtype=jaxgrad.float64, requires_grad=True) for x in tensors]
    assert jaxgrad.autograd.gradcheck(ops._dirichlet_grad, inputs)
    count("derivatives", 2)
