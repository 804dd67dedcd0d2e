"""Attention: softmax(query @ key.T * scale + mask) @ value, in blocks of queries where it is long.

Scores have the shape (batch, heads of key, group, queries, keys): the query heads of a group share
one head of key and value. Where the scores are many, a loop computes them for a block of queries at
a time, and again in the backward pass, so that memory grows with the keys and not with keys times
queries. Source: Rabe and Staats, "Self-attention Does Not Need O(n^2) Memory", 2021, and Dao et
al., "FlashAttention", 2022, for the gradient from the logarithm of the sum. The gradient of a mask
and derivatives of the gradient go block by block too, and so do the random numbers of dropout. On
one TPU a kernel computes long calls without a mask, and their gradients
(jaxgrad/core/tpu_attention.py).
"""

import functools
import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxgrad.core import (
    device_axes,
    dtypes,
    program,
    promotion,
    symbolic_extents,
    threefry,
    tpu_attention,
)

# The scores of a call that are made at once, and those of a block. Measured on CPUs: see
# tests/benchmarks/README.md. Accelerators need larger blocks to be busy: WIDER times, not measured.
# PARTS: a causal call is cut so often, to leave out masked keys.
AT_ONCE, BLOCK, LEAST_ROWS, PARTS, WIDER = 2**21, 2**20, 16, 4, 64


def _product(subscripts, left, right):
    """A product with sums in single precision at least."""
    is_half = left.dtype.itemsize == 2
    return jnp.einsum(
        subscripts,
        left,
        right,
        precision=promotion.product_precision(left),
        preferred_element_type=jnp.float32 if is_half else None,
    )


def _scale(query, scale):
    if scale is not None:
        return scale
    width = int(query.shape[-1])
    return 1 / math.sqrt(width) if width else math.inf


# shapes


class _Heads:
    """The shapes of a call, and its arrays with one batch dimension and groups of query heads."""

    def __init__(self, query, key, value):
        shapes = [(*(1,) * (4 - x.ndim), *x.shape) for x in (query, key, value)]
        heads = [shape[-3] for shape in shapes]
        self.ndim = max(x.ndim for x in (query, key, value))
        self.kept = max(heads[1:]) if 0 not in heads else 0
        self.heads = max(heads[0], self.kept) if self.kept else 0
        if self.kept and (self.heads % self.kept or {*heads[1:]} - {1, self.kept}):
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads in query, but "
                f"got {heads[1]} and {heads[2]} in key and value and {heads[0]} in query"
            )
        name = "scaled_dot_product_attention"
        batches = [shape[:-3] for shape in shapes]
        self.batch = functools.reduce(lambda a, b: promotion.broadcast_shapes(name, a, b), batches)
        self.group = self.heads // self.kept if self.kept else 1

    def flat(self, x, heads):
        """(..., heads, n, e) as (batch, heads, n, e)."""
        shape = (*self.batch, heads, *x.shape[-2:])
        return jnp.broadcast_to(x, shape).reshape(math.prod(self.batch), *shape[-3:])

    def query(self, x):
        flat = self.flat(x, self.heads)
        return flat.reshape(
            -1 if flat.size else flat.shape[0], self.kept, self.group, *x.shape[-2:]
        )

    def key(self, x):
        return self.flat(x, self.kept)

    def by_row(self, grad, query, output, logsumexp, grad_logsumexp):
        """Values with a number for each query; the last may be None."""
        sums = [
            None if x is None else self.query(x[..., None])[..., 0]
            for x in (logsumexp, grad_logsumexp)
        ]
        return *(self.query(x) for x in (grad, query, output)), *sums

    def mask(self, x):
        if x is None:
            return None
        x = x.reshape((1,) * (len(self.batch) + 3 - x.ndim) + x.shape)
        together = math.prod(x.shape[:-3]) == 1
        batch = (1,) if together else (math.prod(self.batch),)
        if not together:
            x = jnp.broadcast_to(x, (*self.batch, *x.shape[-3:]))
        split = (1, 1) if x.shape[-3] == 1 else (self.kept, self.group)
        return x.reshape(*batch, *split, *x.shape[-2:])

    def patterns(self, query, key, is_causal, mask, drawn=None, keep=None):
        """Of tensors in the shapes of the call; drawn, keep: as `attention_with_dropout` has."""
        if drawn is not None and drawn.dtype == bool:
            drawn = self.mask(drawn)
        extents = math.prod(self.batch), self.kept, self.group, query.shape[-2], key.shape[-2]
        return _Patterns(self.mask(mask), is_causal, drawn, keep, extents)

    def back(self, x, shape):
        """The inverse of `query` and `key`, summed over what was broadcast from the shape."""
        wide = (self.heads if x.ndim == 5 else self.kept), *x.shape[-2:]
        return program.sum_to_shape(x.reshape(*self.batch, *wide), shape)

    def back_row(self, x, shape):
        return self.back(x[..., None], (*shape, 1))[..., 0]

    def back_mask(self, x, mask):
        """The inverse of `mask`, summed over what was broadcast."""
        batch = (1,) * len(self.batch) if x.shape[0] == 1 else self.batch
        wide = x.reshape(*batch, x.shape[1] * x.shape[2], *x.shape[3:])
        return program.sum_to_shape(wide, mask.shape)

    def result(self, x):
        """(batch, heads of key, group, queries, e) as (..., heads, queries, e)."""
        shape = (*self.batch, self.heads, *x.shape[-2:])
        return x.reshape(shape[len(shape) - self.ndim :])


# which scores count, and which weights dropout keeps


class _Pattern(NamedTuple):
    """Of one block of queries: a mask, the number of the first query of a causal call, and dropout:
    which weights are kept, and the probability of that. All None: every score counts.
    """

    mask: jax.Array | None = None
    first: jax.Array | int | None = None
    kept: jax.Array | None = None
    keep: jax.Array | float | None = None

    def dropped(self, weights):
        """Weights, or what is multiplied by them, after dropout."""
        return weights if self.kept is None else jnp.where(self.kept, weights / self.keep, 0)


class _Patterns(NamedTuple):
    """Of all queries. drawn: which weights dropout keeps, or the key and the first counter from
    which these are drawn, uint32 of shape (4,), in rows of the last two of `extents`.
    """

    mask: jax.Array | None
    is_causal: bool
    drawn: jax.Array | None = None
    keep: jax.Array | float | None = None
    extents: tuple = ()

    def padded(self, rows):
        drawn = self.drawn if self._is_key() else _padded(self.drawn, rows)
        return self._replace(mask=_padded(self.mask, rows), drawn=drawn)

    def whole(self):
        return self.block(0, *self.extents[-2:])

    def block(self, start, rows, keys):
        """Of `rows` queries from `start` on, and the first keys."""
        mask = _cut(_seen(self.mask, keys), start, rows)
        kept = None if self.drawn is None else self._kept(start, rows, keys)
        return _Pattern(mask, start if self.is_causal else None, kept, self.keep)

    def _is_key(self):
        return self.drawn is None or self.drawn.dtype == jnp.uint32

    def _kept(self, start, rows, keys):
        if not self._is_key():
            return _cut(_seen(self.drawn, keys), start, rows)
        *outer, count, width = self.extents
        pairs = lax.iota(jnp.uint32, math.prod(outer)).reshape(*outer, 1)
        queries = lax.convert_element_type(start, jnp.uint32) + lax.iota(jnp.uint32, rows)
        return _kept_from(self.drawn, pairs * jnp.uint32(count) + queries, width, keys, self.keep)


def _kept_from(drawn, rows, width, keys, keep):
    """Which elements of a draw in rows of a width are kept, of the first `keys` of some rows: as
    `jax.random.uniform` below a probability, whose element i has the bits of the counter i.
    """
    first, second, base_high, base_low = drawn
    # row * width, of 64 bits
    width, half = jnp.uint32(width), jnp.uint32(16)
    low = rows * width
    parts = (rows & 0xFFFF, rows >> half), (width & 0xFFFF, width >> half)
    (row_low, row_high), (width_low, width_high) = parts
    middle = row_high * width_low + (row_low * width_low >> half)
    carried = row_low * width_high + (middle & 0xFFFF)
    high = row_high * width_high + (middle >> half) + (carried >> half)
    low, high = _added(low + base_low, base_low, high + base_high)
    counts = jnp.broadcast_to(lax.iota(jnp.uint32, keys), (*rows.shape, keys))
    low, high = _added(low[..., None] + counts, counts, high[..., None])
    left, right = threefry.traced(first, second, high, low)
    # random bits after the point of a number in [1, 2)
    fraction = (left ^ right) >> 9 | jnp.uint32(0x3F800000)
    return lax.bitcast_convert_type(fraction, jnp.float32) - 1 < keep


def _added(low, summand, high):
    """The words of a sum, of its lower word and a summand of that."""
    return low, high + (low < summand).astype(jnp.uint32)


# one block of queries


def _scores(query, key, pattern, scale):
    """Masked scores."""
    scores = _product("bhgle,bhse->bhgls", query, key) * scale
    mask, first, *_ = pattern
    if mask is not None and mask.dtype == bool:
        scores = jnp.where(mask, scores, -jnp.inf)
    elif mask is not None:
        scores = scores + mask.astype(scores.dtype)
    if first is None:
        return scores
    queries = first + lax.broadcasted_iota(jnp.int32, scores.shape[-2:], 0)
    keys = lax.broadcasted_iota(jnp.int32, scores.shape[-2:], 1)
    return jnp.where(queries >= keys, scores, -jnp.inf)


def _attended(query, key, value, pattern, scale):
    """The output and the logarithm of the sum of exponentials; 0 and -inf where all is masked."""
    return _weighted(_scores(query, key, pattern, scale), value, pattern)[:2]


def _weighted(scores, value, pattern):
    """The values weighted by the softmax of scores, the logarithm of the sum of exponentials, and
    the greatest scores.
    """
    greatest = jnp.max(lax.stop_gradient(scores), -1, keepdims=True, initial=-jnp.inf)
    shift = jnp.where(greatest == -jnp.inf, 0, greatest)
    exponentials = jnp.exp(scores - shift)
    total = jnp.sum(exponentials, -1, keepdims=True)
    is_masked = total == 0
    positive = jnp.where(is_masked, 1, total)
    kept = pattern.dropped(exponentials).astype(value.dtype)
    output = _product("bhgls,bhse->bhgle", kept, value) / positive
    logsumexp = jnp.where(is_masked, -jnp.inf, shift + jnp.log(positive))
    return output.astype(value.dtype), logsumexp[..., 0], greatest[..., 0]


def _weights(query, key, pattern, scale, logsumexp):
    finite = jnp.where(logsumexp == -jnp.inf, 0, logsumexp)
    return jnp.exp(_scores(query, key, pattern, scale) - finite[..., None])


def _gradients(grad, query, output, logsumexp, grad_sum, key, value, pattern, scale):
    """The gradients of query, key, value and scores."""
    weights = _weights(query, key, pattern, scale, logsumexp)
    of_weights = pattern.dropped(_product("bhgle,bhse->bhgls", grad, value))
    inner = jnp.sum((grad * output).astype(of_weights.dtype), -1, keepdims=True)
    if grad_sum is not None:
        inner = inner - grad_sum[..., None]
    of_scores = weights * (of_weights - inner)
    scaled = (of_scores * scale).astype(query.dtype)
    return (
        _product("bhgls,bhse->bhgle", scaled, key),
        _product("bhgls,bhgle->bhse", scaled, query),
        _product("bhgls,bhgle->bhse", pattern.dropped(weights).astype(grad.dtype), grad),
        of_scores,
    )


# all blocks


def block_rows(pairs, queries, keys):
    """How many queries a block has; `pairs`: batch times heads."""
    wider = 1 if jax.default_backend() == "cpu" else WIDER
    if symbolic_extents.chosen(lambda: pairs * queries * keys <= AT_ONCE * wider, otherwise=True):
        return queries
    rows = max(BLOCK * wider // (pairs * keys), LEAST_ROWS)
    return min(1 << rows.bit_length() - 1, queries)


def _ranges(blocks, rows, keys, is_causal):
    """Ranges of blocks, and how many keys they see."""
    if not is_causal:
        return [(0, blocks, keys)]
    cuts = sorted({blocks * i // PARTS for i in range(PARTS + 1)})
    return [(a, b, min(b * rows, keys)) for a, b in itertools.pairwise(cuts)]


def _padded(x, rows, fill=0.0):
    """x with a multiple of `rows` queries, unless it has one for all."""
    missing = 0 if x is None or x.shape[3] == 1 else -x.shape[3] % max(rows, 1)
    if not missing:
        return x
    return jnp.pad(x, [(0, missing if i == 3 else 0) for i in range(x.ndim)], constant_values=fill)


def _cut(x, start, rows):
    if x is None or x.shape[3] in (1, rows):
        return x
    return lax.dynamic_slice_in_dim(x, start, rows, 3)


def _seen(mask, keys):
    return mask if mask is None or mask.shape[-1] == 1 else mask[..., :keys]


def _joined(parts, count):
    """The blocks of queries of all ranges as one array."""
    stacked = jnp.moveaxis(jnp.concatenate(parts), 0, 3)
    flat = stacked.reshape(*stacked.shape[:3], -1, *stacked.shape[5:])
    return lax.slice_in_dim(flat, 0, count, axis=3)


def _forward(query, key, value, patterns, scale):
    count, keys = query.shape[3], key.shape[2]
    rows = block_rows(math.prod(query.shape[:3]), count, keys)
    if rows >= count:
        return _attended(query, key, value, patterns.whole(), scale)
    query, patterns, pairs = _padded(query, rows), patterns.padded(rows), []

    def attended(keys, block):
        arrays = _cut(query, block * rows, rows), key[:, :, :keys], value[:, :, :keys]
        return _attended(*arrays, patterns.block(block * rows, rows, keys), scale)

    for start, stop, seen in _ranges(query.shape[3] // rows, rows, keys, patterns.is_causal):
        pairs.append(lax.map(functools.partial(attended, seen), jnp.arange(start, stop)))
    outputs, sums = zip(*pairs, strict=True)
    return _joined(outputs, count), _joined(sums, count)


def _backward(by_row, key, value, patterns, scale):
    """The gradients of query, key and value; `by_row`: gradients, query, output and logsumexp."""

    def block(by_row, keyed, pattern):
        of_query, of_key, of_value, _ = _gradients(*by_row, *keyed, pattern, scale)
        return [of_query], [of_key, of_value]

    (of_query,), sums = _over_blocks(block, by_row, (key, value), patterns)
    return of_query, *sums


def _over_blocks(block, by_row, keyed, patterns):
    """What a function gives for all queries: values with a row for each, and sums over them.

    block: of arrays with some queries at axis 3, arrays with the keys that these see at axis 2, and
    the pattern between them, both lists. Keys have axis 2 in its sums. by_row: gradient, query,
    output, logsumexp, the gradient of logsumexp; then any.
    """
    count, keys = by_row[1].shape[3], keyed[0].shape[2]
    rows = block_rows(math.prod(by_row[1].shape[:3]), count, keys)
    if rows >= count:
        return block(by_row, keyed, patterns.whole())
    # a query that was added has weights of 0
    fills = [math.inf if place == LOGSUMEXP else 0.0 for place in range(len(by_row))]
    by_row = [_padded(x, rows, fill) for x, fill in zip(by_row, fills, strict=True)]
    patterns = patterns.padded(rows)

    def part(keys, number):
        cut = [_cut(x, number * rows, rows) for x in by_row]
        parts = [x[:, :, :keys] for x in keyed]
        return block(cut, parts, patterns.block(number * rows, rows, keys))

    def add(keys, sums, number):
        results, parts = part(keys, number)
        return [*map(jnp.add, sums, parts)], results

    shapes = jax.eval_shape(lambda: part(keys, 0))[1]
    sums, results = [jnp.zeros(x.shape, _wide(x.dtype)) for x in shapes], []
    for start, stop, seen in _ranges(by_row[1].shape[3] // rows, rows, keys, patterns.is_causal):
        begin, numbers = [x[:, :, :seen] for x in sums], jnp.arange(start, stop)
        end, rows_of_range = device_axes.scan(functools.partial(add, seen), begin, numbers)
        pairs = zip(sums, end, strict=True)
        sums = [lax.dynamic_update_slice_in_dim(*pair, 0, 2) for pair in pairs]
        results.append(rows_of_range)
    return [_joined(parts, count) for parts in zip(*results, strict=True)], sums


LOGSUMEXP = 3  # its place in `by_row`


def _wide(dtype):
    return jnp.promote_types(dtype, jnp.float32)


def _of_mask(of_scores, mask, keys):
    """The gradients of scores as those of a mask, as `_over_blocks` takes them: a value with a row
    for each query, or a sum over queries.
    """
    together = [axis for axis in range(5) if mask.shape[axis] == 1]
    part = jnp.sum(of_scores, together, keepdims=True)
    if 3 in together:
        return [], [jnp.moveaxis(part, 4, 2)]
    missing = 0 if 4 in together else keys - part.shape[4]
    return [jnp.pad(part, [(0, missing if axis == 4 else 0) for axis in range(5)])], []


def _as_mask(of_rows, sums):
    """What `_over_blocks` makes of results of `_of_mask`."""
    return of_rows[0] if of_rows else jnp.moveaxis(sums[0], 2, 4)


# on TPUs


def _has_kernel(query, key, value, mask, scale) -> bool:
    """Whether a call without a mask is large, and the kernel of TPUs serves it."""
    if mask is not None or not tpu_attention.serves(query, key, value, scale):
        return False
    return math.prod(query.shape[:-1]) * key.shape[2] > AT_ONCE


def _unmasked(query, key, is_causal):
    return _Patterns(None, is_causal, extents=(*query.shape[:-1], key.shape[2]))


def _in_blocks(query, key, value, is_causal, scale):
    return _forward(query, key, value, _unmasked(query, key, is_causal), scale)


def _gradients_in_blocks(grad, query, output, logsumexp, key, value, is_causal, scale):
    rows, patterns = (grad, query, output, logsumexp, None), _unmasked(query, key, is_causal)
    return _backward(rows, key, value, patterns, scale)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2, 3))
def _by_platform(kernel, plain, is_causal, scale, *arrays):
    """`plain(*arrays, is_causal, scale)`, whose derivatives have no kernel."""
    return tpu_attention.by_platform(kernel, plain, *arrays, is_causal=is_causal, scale=scale)


@_by_platform.defjvp
def _derivative(kernel, plain, is_causal, scale, primals, tangents):
    return jax.jvp(lambda *arrays: tuple(plain(*arrays, is_causal, scale)), primals, tangents)


# scores that a function changes


def attend(query, key, value, change, scale):
    """The output, the logarithm of the sum of exponentials and the greatest score of each query, of
    scores that a function changes.

    change: maps a score and the numbers of its batch, head, query and key, all without dimensions,
    to the score that counts. JAX differentiates this. Where it goes block by block, the backward
    pass computes each block again.
    """
    heads = _Heads(query, key, value)
    query, key, value = heads.query(query), heads.key(key), heads.key(value)
    count, keys = query.shape[3], key.shape[2]
    batch, change_all = query.shape[0], _for_all(change)
    rows = block_rows(batch * heads.heads, count, keys)
    query, (*places, last) = _padded(query, rows), map(_numbers, (batch, heads.heads, keys))

    def block(first):
        scores = _scores(_cut(query, first, rows), key, _Pattern(), scale)
        flat = scores.reshape(batch, heads.heads, rows, keys)
        # rows that were added only to fill a block repeat the last query
        numbers = jnp.minimum(first + _numbers(rows), count - 1)
        changed = change_all(flat, *places, numbers, last)
        return _weighted(changed.astype(scores.dtype).reshape(scores.shape), value, _Pattern())

    if rows >= count:
        output, *sums = block(0)
    else:
        starts = jnp.arange(0, query.shape[3], rows, dtype=jnp.int32)
        parts = lax.map(jax.checkpoint(block, prevent_cse=False), starts)
        output, *sums = (_joined([part], count) for part in parts)
    return heads.result(output), *(heads.result(x[..., None])[..., 0] for x in sums)


def _numbers(count):
    return jnp.arange(count, dtype=jnp.int32)


def _for_all(change):
    """The function of a score and its four numbers, for all scores."""
    for place in reversed(range(4)):
        axes = [0 if place == number else None for number in range(4)]
        change = jax.vmap(change, in_axes=(0, *axes))
    return change


# operators


def _checked(query, key, value, dropout_p, mask):
    name = "scaled_dot_product_attention"
    kinds = [dtypes.from_numpy(x.dtype) for x in (query, key, value)]
    for kind in kinds:
        if kind.category != dtypes.FLOATING:
            raise RuntimeError(
                f"{name}: Expected data type in FP32, FP64, BF16, FP16, but got {kind.scalar_type} "
                "instead"
            )
        if kind is not kinds[0]:
            raise RuntimeError(
                f"expected scalar type {kinds[0].scalar_type} but found {kind.scalar_type}"
            )
    if dropout_p:
        raise RuntimeError(f"{name}: Currently do not support dropout > 0")
    if min(query.ndim, key.ndim, value.ndim) < 2 or (mask is not None and mask.ndim < 2):
        raise RuntimeError(f"{name}: the tensors have two dimensions at least")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            f"{name}: the features of query and key and the lengths of key and value are the same, "
            f"but got {list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    heads = _Heads(query, key, value)
    if mask is not None:
        scores = (*heads.batch, heads.heads, query.shape[-2], key.shape[-2])
        scores = scores[len(scores) - heads.ndim :]
        together = promotion.broadcast_shapes("attn_mask", scores, mask.shape)
        if together != scores:
            raise RuntimeError(
                f"output with shape {list(scores)} doesn't match the broadcast shape "
                f"{list(together)} of scores and attn_mask"
            )
    return heads


def attention(query, key, value, dropout_p, is_causal, attn_mask, scale):
    heads = _checked(query, key, value, dropout_p, attn_mask)
    arrays, scale = (heads.query(query), heads.key(key), heads.key(value)), _scale(query, scale)
    if _has_kernel(*arrays, attn_mask, scale):
        pair = _by_platform(tpu_attention.outputs, _in_blocks, is_causal, scale, *arrays)
    else:
        pair = _forward(*arrays, heads.patterns(query, key, is_causal, attn_mask), scale)
    return _results(heads, *pair)


def _results(heads, output, logsumexp):
    return heads.result(output), heads.result(logsumexp[..., None])[..., 0]


attention.tells_missing = True


def attention_with_dropout(query, key, value, drawn, keep, is_causal, attn_mask, scale):
    """drawn: which weights are kept, or a key and a counter; keep: the probability of that."""
    heads, scale = _checked(query, key, value, 0.0, attn_mask), _scale(query, scale)
    patterns = heads.patterns(query, key, is_causal, attn_mask, drawn, keep)
    arrays = heads.query(query), heads.key(key), heads.key(value)
    return _results(heads, *_forward(*arrays, patterns, scale))


attention_with_dropout.tells_missing = True


def output_gradient(grad, output):
    """The gradient of the output; None where the loss takes the other output alone."""
    return jnp.zeros_like(output) if grad is None else grad


def attention_backward(
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    dropout_p,
    is_causal,
    attn_mask,
    scale,
    grad_logsumexp,
):
    heads = _checked(query, key, value, dropout_p, attn_mask)
    rows = heads.by_row(grad_out, query, out, logsumexp, grad_logsumexp)
    pair, scale = (heads.key(key), heads.key(value)), _scale(query, scale)
    if grad_logsumexp is None and _has_kernel(rows[1], *pair, attn_mask, scale):
        names = tpu_attention.gradients, _gradients_in_blocks
        gradients = _by_platform(*names, is_causal, scale, *rows[:4], *pair)
    else:
        gradients = _backward(rows, *pair, heads.patterns(query, key, is_causal, attn_mask), scale)
    return _back(heads, gradients, (query, key, value))


def _back(heads, gradients, tensors):
    return tuple(
        heads.back(x, like.shape).astype(like.dtype)
        for x, like in zip(gradients, tensors, strict=True)
    )


def attention_with_dropout_backward(
    grad, query, key, value, out, logsumexp, drawn, keep, is_causal, attn_mask, scale, grad_sum
):
    heads, scale = _checked(query, key, value, 0.0, attn_mask), _scale(query, scale)
    patterns = heads.patterns(query, key, is_causal, attn_mask, drawn, keep)
    rows = heads.by_row(grad, query, out, logsumexp, grad_sum)
    gradients = _backward(rows, heads.key(key), heads.key(value), patterns, scale)
    return _back(heads, gradients, (query, key, value))


def attention_mask_backward(
    grad,
    grad_logsumexp,
    query,
    key,
    value,
    out,
    logsumexp,
    is_causal,
    attn_mask,
    scale,
    drawn=None,
    keep=None,
):
    """The gradient of a mask that is added to the scores."""
    heads, scale = _Heads(query, key, value), _scale(query, scale)

    def block(by_row, keyed, pattern):
        of_scores = _gradients(*by_row, *keyed, pattern, scale)[3]
        return _of_mask(of_scores, pattern.mask, key.shape[-2])

    by_row = heads.by_row(grad, query, out, logsumexp, grad_logsumexp)
    patterns = heads.patterns(query, key, is_causal, attn_mask, drawn, keep)
    keyed = heads.key(key), heads.key(value)
    return heads.back_mask(_as_mask(*_over_blocks(block, by_row, keyed, patterns)), attn_mask)


def attention_double_backward(
    grads,
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    is_causal,
    attn_mask,
    scale,
    grad_logsumexp,
    drawn=None,
    keep=None,
):
    """The gradients of all tensors of the backward operator, in their order there."""
    heads, scale = _Heads(query, key, value), _scale(query, scale)
    by_row = heads.by_row(grad_out, query, out, logsumexp, grad_logsumexp)
    keyed = [heads.key(x) for x in (key, value, grads[1], grads[2])]
    has_mask = attn_mask is not None and attn_mask.dtype != bool

    def block(by_row, keyed, pattern):
        *rows, to_query = by_row
        results = _second_gradients((to_query, *keyed[2:]), *rows, *keyed[:2], pattern, scale)
        *of_rows, of_key, of_value, of_scores = results
        of_mask = _of_mask(of_scores, pattern.mask, key.shape[-2]) if has_mask else ([], [])
        return [*of_rows, *of_mask[0]], [of_key, of_value, *of_mask[1]]

    patterns = heads.patterns(query, key, is_causal, attn_mask, drawn, keep)
    of_rows, sums = _over_blocks(block, (*by_row, heads.query(grads[0])), keyed, patterns)
    of_grad, of_query, of_out, of_total, of_sum, *of_mask = of_rows
    of_key, of_value, *of_mask_sum = sums
    return (
        heads.back(of_grad, grad_out.shape),
        heads.back(of_query, query.shape),
        heads.back(of_key, key.shape),
        heads.back(of_value, value.shape),
        heads.back(of_out, out.shape),
        heads.back_row(of_total, logsumexp.shape),
        heads.back_mask(_as_mask(of_mask, of_mask_sum), attn_mask) if has_mask else None,
        None if grad_logsumexp is None else heads.back_row(of_sum, grad_logsumexp.shape),
    )


def _second_gradients(
    cotangents, grad, query, out, logsumexp, grad_sum, key, value, pattern, scale
):
    """Of gradient, query, output, logsumexp and its gradient; of key, value and scores."""
    weights, dropped = _weights(query, key, pattern, scale, logsumexp), pattern.dropped
    of_weights = dropped(_product("bhgle,bhse->bhgls", grad, value))
    inner = jnp.sum(grad * out, -1, keepdims=True)
    centred = of_weights - (inner if grad_sum is None else inner - grad_sum[..., None])
    to_query, to_key, to_value = cotangents
    along = _product("bhgle,bhse->bhgls", to_query, key)
    along = (along + _product("bhgle,bhse->bhgls", query, to_key)) * scale
    moved = weights * along
    total = jnp.sum(moved, -1, keepdims=True)
    to_weights = dropped(_product("bhgle,bhse->bhgls", grad, to_value))
    of_scores = weights * (along * centred + to_weights)
    back = weights * centred
    to_keys, to_rows = "bhgls,bhgle->bhse", "bhgls,bhse->bhgle"
    return (
        _product(to_rows, dropped(weights), to_value)
        + _product(to_rows, dropped(moved), value)
        - total * out,
        (_product(to_rows, of_scores, key) + _product(to_rows, back, to_key)) * scale,
        -total * grad,
        -jnp.sum(of_scores, -1),
        total[..., 0],
        (_product(to_keys, of_scores, query) + _product(to_keys, back, to_query)) * scale,
        _product(to_keys, dropped(moved), grad),
        of_scores,
    )
