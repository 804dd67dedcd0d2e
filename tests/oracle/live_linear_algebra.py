"""Linear algebra, Fourier transforms and slopes of samples on random inputs: `make oracle`."""

import itertools

import numpy
import pytest
import torch
from oracle.seed import SEED

import jaxgrad

RANDOM = numpy.random.default_rng(SEED)
INF = float("inf")
SHAPES = (3, 3), (2, 4, 3), (3, 5), (0, 3), (3, 0), (2, 0, 0), (0, 2, 3)


def numbers(shape, is_complex=False):
    array = RANDOM.standard_normal(shape)
    return array + 1j * RANDOM.standard_normal(shape) if is_complex else array


def in_both(function, *arrays):
    """The result in PyTorch and here, or the kinds of the errors."""
    results = []
    for module in (torch, jaxgrad):
        tensors = [module.tensor(array, requires_grad=True) for array in arrays]
        try:
            result = function(module, *tensors)
            results.append([item.detach().resolve_conj().numpy() for item in result])
        except (RuntimeError, IndexError) as error:
            results.append(IndexError if isinstance(error, IndexError) else RuntimeError)
    return results


def compare(function, *arrays, rtol=1e-8):
    expected, computed = in_both(function, *arrays)
    if isinstance(expected, type) or isinstance(computed, type):
        assert computed == expected
        return
    for left, right in zip(computed, expected, strict=True):
        assert left.dtype == right.dtype
        numpy.testing.assert_allclose(left, right, rtol, 1e-9)


def with_gradient(function):
    def both(module, *tensors):
        result = function(module, *tensors)
        total = (result * result.conj()).real.sum()
        return [result, *module.autograd.grad(total, tensors)]

    return both


@pytest.mark.parametrize("ord", ["fro", "nuc", INF, -INF, 1, -1, 2, -2])
def test_matrix_norms(ord):
    for shape, is_complex in itertools.product(SHAPES, (False, True)):
        compare(lambda m, x: [m.linalg.matrix_norm(x, ord)], numbers(shape, is_complex))


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (2, 5, 4), (4, 4)])
def test_pseudoinverses_and_least_squares(shape, is_complex):
    compare(with_gradient(lambda m, x: m.linalg.pinv(x)), numbers(shape, is_complex))
    right = numbers((*shape[:-1], 2), is_complex)
    solution = with_gradient(lambda m, x, y: m.linalg.lstsq(x, y).solution)
    if shape[-2] >= shape[-1]:  # PyTorch's usual driver takes the gradient of these alone as exact
        compare(solution, numbers(shape, is_complex), right)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("is_complex", [False, True])
def test_functions_of_matrices_at_equal_eigenvalues(is_complex, is_compiled):
    """By eigenvectors here; in PyTorch without a decomposition, since its gradient is NaN."""
    without = {
        "exp": (lambda L: L.exp(), torch.matrix_exp),
        "reciprocal": (lambda L: 1 / L, torch.linalg.inv),
        "square": (lambda L: L**2, lambda A: A @ A),
    }
    for groups in ([2, 2], [3, 1], [1, 2, 2], [5]):
        values = numpy.repeat(RANDOM.uniform(0.5, 3, len(groups)), groups)
        n = len(values)
        vectors, _ = numpy.linalg.qr(numbers((n, n), is_complex))
        array = (vectors * values) @ vectors.conj().T
        array, weights = (a + a.conj().T for a in (array, numbers((n, n), is_complex)))
        for of_values, of_matrix in without.values():
            A = torch.tensor(array, requires_grad=True)
            (of_matrix(A) * torch.tensor(weights).conj()).sum().real.backward()

            def loss(A, of_values=of_values, weights=weights):
                L, V = jaxgrad.linalg.eigh(A)
                result = (V * of_values(L)) @ V.mH
                return (result * jaxgrad.tensor(weights).conj()).sum().real

            gradient = jaxgrad.func.grad(loss)
            if is_compiled:
                gradient = jaxgrad.jit(gradient)
            computed = gradient(jaxgrad.tensor(array)).numpy()
            numpy.testing.assert_allclose(computed, A.grad.numpy(), 1e-7, 1e-7)


def test_lobpcg():
    square = numbers((9, 9))
    values = with_gradient(lambda m, x: m.lobpcg(x, 2, tol=1e-13)[0])
    compare(values, square @ square.T + numpy.triu(square) / 10, rtol=1e-5)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_fourier_transforms(name):
    is_complex = name not in ("rfft", "ihfft")
    for shape, n, norm in itertools.product(
        [(6,), (3, 5), ()], [None, 4, 9, 0], [None, "ortho", "forward", "x"]
    ):

        def transform(m, x, n=n, norm=norm):
            return [getattr(m.fft, name)(x, n, norm=norm)]

        compare(transform, numbers(shape, is_complex))


@pytest.mark.parametrize("shape", [(20,), (2, 30), (3,), ()])
def test_short_time_fourier_transforms(shape):
    for hop, center, onesided in itertools.product([None, 3, 0], [True, False], [True, False]):

        def there_and_back(m, x, options=(hop, center, onesided)):
            options = dict(zip(("hop_length", "center", "onesided"), options, strict=True))
            options["window"] = m.hann_window(8, periodic=False, dtype=m.float64) + 0.1
            spectrum = m.stft(x, 8, return_complex=True, **options)
            return [spectrum, m.istft(spectrum, 8, **options)]

        compare(there_and_back, numbers(shape))


def test_slopes_of_samples():
    """PyTorch's approximations have four digits."""
    shape = 10 ** RANDOM.uniform(-3, 6, 200)
    sample = RANDOM.gamma(shape).clip(1e-300)
    compare(lambda m, a, x: [m._standard_gamma_grad(a, x)], shape, sample, rtol=1e-3)
    first, second = 10 ** RANDOM.uniform(-1, 3, (2, 200))
    place = RANDOM.beta(first, second).clip(1e-3, 1 - 1e-3)
    compare(lambda m, *x: [m._dirichlet_grad(*x)], place, first, first + second, rtol=2e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_samples_of_extreme_concentrations(dtype):
    """With the numbers of a seed; gradients to two digits, as PyTorch's formulas have no more."""
    for _ in range(12):
        first, second = 10 ** RANDOM.uniform((-4, -4), (5, 5))
        seed, results = int(RANDOM.integers(2**31)), []
        for module in (torch, jaxgrad):
            module.manual_seed(seed)
            parameters = [
                module.full((300,), value, dtype=getattr(module, dtype), requires_grad=True)
                for value in (first, second)
            ]
            sample = module.distributions.Beta(*parameters).rsample()
            module.autograd.grad(sample.sum(), parameters)
            results.append(sample.detach().numpy())
            slopes = module.autograd.grad(
                module._standard_gamma(parameters[0]).sum(), parameters[0]
            )
            results.append(slopes[0].numpy())
        assert (
            numpy.isfinite(results[2]).all() and (results[2] > 0).all() and (results[2] < 1).all()
        )
        rtol = 2e-4 if dtype == "float32" else 1e-9
        numpy.testing.assert_allclose(results[2], results[0], rtol)
        numpy.testing.assert_allclose(results[3], results[1], 2e-2, 1e-30)


@pytest.mark.parametrize("name", ["sqrt", "asin", "acos", "asinh", "acosh", "log", "atanh"])
def test_branch_cuts(name):
    """On the axes, with both signs of the other part: numpy compares -0 and 0 as equal, the side of
    a cut differs in the sign of a part that is not 0."""
    sizes = RANDOM.standard_normal(5) * 3
    for zero in (0.0, -0.0):
        for parts in ((sizes, zero), (zero, sizes)):
            array = numpy.empty(5, complex)
            array.real, array.imag = parts
            compare(lambda m, z: [getattr(m, name)(z.detach())], array)


@pytest.mark.parametrize("name", ["div", "true_divide", "sub", "add", "mul"])
def test_numbers_before_bytes(name):
    for dtype in (numpy.uint8, numpy.int8):
        array = RANDOM.integers(1, 100, 4).astype(dtype)
        for number in (*RANDOM.integers(-300, 300, 4).tolist(), 2.5):
            results = [
                getattr(module, name)(number, module.tensor(array)).numpy()
                for module in (torch, jaxgrad)
            ]
            assert results[0].dtype == results[1].dtype
            numpy.testing.assert_allclose(*results[::-1], 1e-6)


def test_tiny_numbers_in_lgamma():
    array = 10.0 ** RANDOM.uniform(-320, -1, 8)
    compare(lambda m, x: [m.lgamma(x.detach()), m.lgamma(-x.detach())], array, rtol=1e-12)
