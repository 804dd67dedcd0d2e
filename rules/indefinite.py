"""The factorization `A = P L D L^H P^T` of a Hermitian or symmetric matrix that may be indefinite.

D has blocks of one or two rows, by Bunch and Kaufman, Some stable methods for calculating inertia
and solving symmetric linear systems (1977). Factors are packed as in LAPACK's `sytrf`: D on the
diagonal, and below it within a block of two rows, L below the blocks. A negative pivot means such a
block. The rows of L are not exchanged by the pivots of later columns.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy
from jaxgrad.rules import matrices

from jaxgrad.core import device_axes, linalg_error

ALPHA = (1 + math.sqrt(17)) / 8  # bounds the growth of elements best


def linalg_ldl_factor_ex(self, *, hermitian=False, check_errors=False):
    matrices.check_matrix("torch.linalg.ldl_factor_ex", self, square=True)
    matrices.check_numbers("torch.linalg.ldl_factor_ex", self)
    *batch, size, _ = self.shape
    if not self.size:
        return self, jnp.zeros((*batch, size), jnp.int32), jnp.zeros(batch, jnp.int32)
    hermitian = hermitian and jnp.iscomplexobj(self)
    factored = jax.vmap(functools.partial(_factored, hermitian=hermitian))
    results = factored(self.reshape(-1, size, size))
    return tuple(result.reshape(*batch, *result.shape[1:]) for result in results)


def _refuse_zero_pivot(results, self, hermitian, check_errors):
    if check_errors:
        matrices.raise_for_failures("linalg.ldl_factor_ex", results[2], matrices.ZERO_PIVOT)


linalg_ldl_factor_ex.postcondition = _refuse_zero_pivot
linalg_ldl_factor_ex.undefined = linalg_error.missing_derivative(
    "linalg.ldl_factor", "no block of D is singular"
)


def _factored(matrix, hermitian):
    size = matrix.shape[0]
    lower = matrices.below_diagonal(matrix)
    diagonal = matrices.diagonal_of(matrix)
    diagonal = diagonal.real.astype(matrix.dtype) if hermitian else diagonal
    rest = lower + _turned(lower, hermitian) + jnp.diag(diagonal)
    state = rest, jnp.zeros_like(rest), jnp.zeros(size, jnp.int32), jnp.asarray(False), jnp.int32(0)
    step = functools.partial(_step, hermitian=hermitian)
    _, packed, pivots, _, info = device_axes.fori_loop(jnp.int32(0), jnp.int32(size), step, state)
    return packed, pivots, info


def _turned(matrix, hermitian):
    turned = jnp.swapaxes(matrix, -1, -2)
    return turned.conj() if hermitian else turned


def _step(number, state, hermitian):
    """Eliminate one row or two; the second of two rows has been eliminated before."""
    rest, packed, pivots, is_done, info = state
    exchanged, is_pair, is_zero = _pivot(rest, number)
    second = jnp.minimum(number + 1, rest.shape[0] - 1)
    rest = _exchanged(rest, jnp.where(is_pair, second, number), exchanged)
    single, pair = _single(rest, number, is_zero), _pair(rest, number, second)
    multipliers = jnp.where(is_pair, pair, single)
    columns = jnp.stack([rest[number], jnp.where(is_pair, rest[second], 0)])
    entries = jnp.where(is_pair, -exchanged - 1, exchanged + 1)
    new_pivots = pivots.at[number].set(entries)
    new_pivots = jnp.where(is_pair, new_pivots.at[second].set(entries), new_pivots)
    new_packed = _stored(packed, rest, multipliers, number, second, is_pair)
    after = rest - matrices.product(multipliers, columns)
    info = jnp.where((info == 0) & is_zero & ~is_done, number + 1, info)
    kept = [
        jnp.where(is_done, old, new)
        for old, new in zip(state[:3], (after, new_packed, new_pivots), strict=True)
    ]
    return *kept, is_pair & ~is_done, info


def _size_of(numbers):
    """The size that LAPACK compares, without a square root."""
    return abs(numbers.real) + abs(numbers.imag) if jnp.iscomplexobj(numbers) else abs(numbers)


def _pivot(rest, number):
    """The row to exchange, whether two are eliminated at once, and whether all is zero."""
    places = jnp.arange(rest.shape[0], dtype=jnp.int32)
    below = jnp.where(places > number, _size_of(rest[:, number]), 0)
    pivot, greatest = _size_of(rest[number, number]), below.max()
    chosen = jnp.where(greatest > 0, jnp.argmax(below), number).astype(jnp.int32)
    row = _size_of(rest[chosen])
    others = jnp.where((places >= number) & (places != chosen), row, 0).max()
    is_zero = ~(jnp.maximum(pivot, greatest) > 0)
    is_own = (pivot >= ALPHA * greatest) | (pivot * others >= ALPHA * greatest * greatest) | is_zero
    is_pair = ~is_own & (row[chosen] < ALPHA * others)
    return jnp.where(is_own, number, chosen), is_pair, is_zero


def _exchanged(matrix, first, second):
    places = jnp.arange(matrix.shape[0], dtype=jnp.int32)
    order = jnp.where(places == first, second, jnp.where(places == second, first, places))
    return matrix[order][:, order]


def _single(rest, number, is_zero):
    """The multipliers of one row, with a column of zeros behind."""
    places = jnp.arange(rest.shape[0])
    pivot = jnp.where(is_zero, 1, rest[number, number])
    column = jnp.where(places > number, rest[:, number] / pivot, 0)
    return jnp.stack([column, jnp.zeros_like(column)], -1)


def _pair(rest, first, second):
    """The multipliers of two rows."""
    places = jnp.arange(rest.shape[0])
    inverse = _inverse_of_pair(
        rest[first, first], rest[second, first], rest[first, second], rest[second, second]
    )
    columns = jnp.stack([rest[:, first], rest[:, second]], -1)
    return jnp.where((places > second)[:, None], columns @ jnp.stack(inverse).reshape(2, 2), 0)


def _inverse_of_pair(first, below, above, second):
    """The inverse of a block of two rows, row by row; of zeros it is infinite."""
    scaled = first / below, second / above
    common = 1 / (scaled[0] * scaled[1] - 1)
    return common * scaled[1] / below, -common / below, -common / above, common * scaled[0] / above


def _stored(packed, rest, multipliers, first, second, is_pair):
    single = multipliers[:, 0].at[first].set(rest[first, first])
    pair = multipliers[:, 1].at[second].set(rest[second, second])
    single = jnp.where(is_pair, single.at[second].set(rest[second, first]), single)
    packed = packed.at[:, first].set(single)
    return jnp.where(is_pair, packed.at[:, second].set(pair), packed)


# factors


def _starts(pivots):
    """Where blocks of two rows start."""
    negative = pivots < 0
    return negative & (jnp.cumsum(negative, -1) % 2 == 1)


def _exchanges(pivots):
    """The rows that each step exchanges with; only the second row of a block has been moved."""
    places = jnp.arange(pivots.shape[-1], dtype=jnp.int32)
    return jnp.where(_starts(pivots), places, abs(pivots) - 1)


def _order(pivots):
    """Which row of A is each row of the factors; which row of each column of packed ones is each
    row of L.
    """
    size = pivots.shape[-1]
    places, starts = jnp.arange(size, dtype=jnp.int32), _starts(pivots)
    seconds = jnp.concatenate([jnp.zeros_like(starts[:1]), starts[:-1]])
    others = _exchanges(pivots)

    def step(number, state):
        order, rows = state
        swapped = jnp.where(places == number, others[number], places)
        swapped = jnp.where(places == others[number], number, swapped)
        # columns before the block
        earlier = places < number - seconds[number]
        return order[swapped], jnp.where(earlier, rows[swapped], rows)

    rows = jnp.broadcast_to(places[:, None], (size, size))
    return device_axes.fori_loop(jnp.int32(0), jnp.int32(size), step, (places, rows))


def _unpacked(packed, pivots, hermitian):
    """The order of rows, L, and D; of one matrix."""
    order, rows = _order(pivots)
    starts = _starts(pivots)
    inside = jnp.diag(starts[:-1], -1)
    strict = jnp.where(inside, 0, matrices.below_diagonal(packed))
    lower = jnp.take_along_axis(strict, rows, 0) + matrices.identity_like(packed)
    beside = jnp.where(inside, packed, 0)
    blocks = jnp.diag(jnp.diagonal(packed)) + beside + _turned(beside, hermitian)
    return order, lower, blocks


def _block_inverse(blocks, starts):
    """The inverse of D."""
    first, second = starts[:-1], jnp.concatenate([jnp.zeros_like(starts[:1]), starts[:-1]])
    diagonal = jnp.diagonal(blocks)
    # numbers that are not used are such that they divide by 1
    upper_left, other = jnp.where(first, diagonal[:-1], 2), jnp.where(first, diagonal[1:], 1)
    beside = [jnp.where(first, jnp.diagonal(blocks, offset), 1) for offset in (-1, 1)]
    inverse = _inverse_of_pair(upper_left, *beside, other)
    entries = [jnp.where(first, entry, 0) for entry in inverse]
    single = ~(starts | second)
    whole = jnp.where(single, 1 / jnp.where(single, diagonal, 1), 0)
    whole = whole.at[:-1].add(entries[0]).at[1:].add(entries[3])
    return jnp.diag(whole) + jnp.diag(entries[1], 1) + jnp.diag(entries[2], -1)


def _batched(function, *arrays):
    """A function of single matrices and vectors for batches of them, the last dimensions of each;
    batches broadcast.
    """
    ranks = (2, 1, 2)[: len(arrays)]
    batch = jnp.broadcast_shapes(
        *(a.shape[: a.ndim - rank] for a, rank in zip(arrays, ranks, strict=True))
    )
    whole = [
        jnp.broadcast_to(a, batch + a.shape[a.ndim - rank :])
        for a, rank in zip(arrays, ranks, strict=True)
    ]
    for _ in batch:
        function = jax.vmap(function)
    return function(*whole)


def linalg_ldl_solve(LD, pivots, B, *, hermitian=False):
    name = "torch.linalg.ldl_solve"
    matrices.check_system(name, LD, B)
    if not jnp.issubdtype(pivots.dtype, jnp.integer):
        raise RuntimeError(
            f"{name}: Expected pivots to be integers. Got {pivots.dtype}: convert with .int()"
        )
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots.shape)} instead"
        )
    if not LD.size or not B.size:
        batch = jnp.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
        return jnp.broadcast_to(B, batch + B.shape[-2:])
    hermitian = hermitian and jnp.iscomplexobj(LD)
    return _batched(functools.partial(_solved, hermitian=hermitian), LD, pivots, B)


def _check_pivots(LD, pivots, *options, **named):
    matrices.check_pivots("ldl_solve", LD, numpy.abs(numpy.asarray(pivots)), "ldl_factor")


linalg_ldl_solve.precondition = _check_pivots


def _solved(packed, pivots, right, hermitian):
    order, lower, blocks = _unpacked(packed, pivots, hermitian)
    inner = matrices.triangular_solution(lower, right[order], False, unit=True)
    inner = matrices.product(_block_inverse(blocks, _starts(pivots)), inner)
    inner = matrices.triangular_solution(_turned(lower, hermitian), inner, True, unit=True)
    return inner[jnp.argsort(order)]


# gradients


def ldl_factor_backward(grad, packed, pivots, hermitian):
    """The gradient of A, Hermitian or symmetric, with the pivots held constant.

    `M = L^-1 P^T dA P L^-H` is `S D + dD + D S^H` with `dL = L S`: dD is M within the blocks, and
    `S D` is M below them.
    """
    if not packed.size:
        return grad
    hermitian = hermitian and jnp.iscomplexobj(packed)

    def of_one(packed, pivots, grad):
        order, lower, blocks = _unpacked(packed, pivots, hermitian)
        _, rows = _order(pivots)
        inside = jnp.diag(_starts(pivots)[:-1], -1)
        strict = jnp.where(inside, 0, matrices.below_diagonal(grad))
        of_lower = jnp.take_along_axis(strict, rows, 0)
        inner = matrices.product(matrices.hermitian_transpose(lower), of_lower)
        # the rows of a column below its block
        below = jnp.where(inside, 0, matrices.below_diagonal(inner))
        inverse = _block_inverse(blocks, _starts(pivots))
        below = matrices.product(below, matrices.hermitian_transpose(inverse))
        below = jnp.where(inside, 0, matrices.below_diagonal(below))
        within = jnp.where(inside, grad, 0) + jnp.diag(jnp.diagonal(grad))
        gradient = matrices.triangular_solution(
            lower, below + within, False, adjoint=True, unit=True
        )
        right = lower if hermitian else lower.conj()
        gradient = matrices.triangular_solution(right, gradient, False, left=False, unit=True)
        back = jnp.argsort(order)
        gradient = gradient[back][:, back]
        return (gradient + _turned(gradient, hermitian)) / 2

    return _batched(of_one, packed, pivots, grad)
