"""Attention on TPUs by Pallas' kernel, splash attention, in the place of blocks of queries.

The kernel keeps scores on the chip. XLA cannot split it over devices, so only a program for one
device, or a part of one under `shard_map`, has it. On a CPU it runs in Pallas' interpreter.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from ..late import LateModule

# it takes half a second to import, and only a program for TPUs needs it
splash = LateModule("jax.experimental.pallas.ops.tpu.splash_attention")

# queries and keys of a block, the first that divides; the widest heads whose blocks fit on a chip
BLOCKS, WIDEST = (512, 256, 128), 256

# JAX's settings of precision that Mosaic, the compiler of the kernel, has products for
PRECISIONS = "default", "fastest", "bfloat16", "highest", "float32"


def serves(query, key, value, scale) -> bool:
    """Whether the kernel computes attention of such arrays."""
    extents = *query.shape, *key.shape, *value.shape
    return (
        query.dtype in (jnp.float32, jnp.bfloat16)
        and all(isinstance(extent, int) and extent for extent in extents)
        and isinstance(scale, float)
        and max(key.shape[-1], value.shape[-1]) <= WIDEST
        and _precision(query) in PRECISIONS
    )


def _precision(factor) -> str:
    """JAX's setting of precision for products with a factor, as `promotion.product_precision`."""
    is_half = factor.dtype.itemsize == 2
    return "default" if is_half else jax.config.jax_default_matmul_precision or "highest"


def by_platform(kernel: Callable, plain: Callable, *arrays, is_causal: bool, scale: float):
    """`plain(*arrays, is_causal, scale)`, a sequence of arrays, by the kernel on one TPU.

    kernel: `outputs` or `gradients`; plain: a function of a module, with the same results.
    """
    precision = _precision(arrays[0])

    def on_tpu(*arrays):
        return tuple(
            attention_p.bind(
                *arrays, kernel=kernel, plain=plain, options=(is_causal, scale), precision=precision
            )
        )

    def elsewhere(*arrays):
        return tuple(plain(*arrays, is_causal, scale))

    return lax.platform_dependent(*arrays, tpu=on_tpu, default=elsewhere)


def outputs(query, key, value, is_causal, scale, interpret):
    """The output, and the logarithm of the sum of exponentials.

    query: (batch, heads of key, group, L, E); key: (batch, heads, S, E); value: (..., S, V).
    """
    call = _kernel(query.shape, key.shape, is_causal, True, interpret)
    output, (logsumexp,) = call(*_flat(query, key, value, scale))
    shape = query.shape[:-1]
    return (x[:, :, : shape[3]].reshape(*shape, *x.shape[3:]) for x in (output, logsumexp))


def gradients(grad, query, output, logsumexp, key, value, is_causal, scale, interpret):
    """The gradients of query, key and value. The kernel computes output and logsumexp again."""
    call = _kernel(query.shape, key.shape, is_causal, False, interpret)

    def output_of(*arrays):
        flat = call(*_flat(*arrays, scale))
        return flat[:, :, : query.shape[3]].reshape(grad.shape)

    return jax.vjp(output_of, query, key, value)[1](grad)


def _kernel(queries, keys, is_causal, has_sums, interpret):
    """The kernel for arrays of these shapes with one dimension of heads, padded to blocks."""
    (rows, count), (columns, total) = _block(queries[3]), _block(keys[2])
    mask = (splash.CausalMask if is_causal else splash.FullMask)((count, total))
    kernel = splash.make_splash_mha(
        splash.MultiHeadMask([mask] * (queries[1] * queries[2])),
        block_sizes=splash.BlockSizes(
            *(rows, columns, columns), *(rows, columns, columns), *(rows, columns)
        ),
        head_shards=1,
        q_seq_shards=1,
        save_residuals=has_sums,
        interpret=interpret,
    )
    if total == keys[2] or (is_causal and queries[3] <= keys[2]):
        return jax.vmap(lambda *arrays: kernel(*arrays))
    # no query sees a key that was added to fill a block
    is_added = (jnp.arange(total) >= keys[2]).astype(jnp.int32)
    segments = splash.SegmentIds(jnp.zeros(count, jnp.int32), is_added)
    return jax.vmap(lambda *arrays: kernel(*arrays, segments))


def _block(length):
    """The length of a block, and of all together."""
    total = -(-length // BLOCKS[-1]) * BLOCKS[-1]
    return next(block for block in BLOCKS if total % block == 0), total


def _flat(query, key, value, scale):
    """The arguments of the kernel, which has no scale."""
    query = query.reshape(query.shape[0], -1, *query.shape[3:]) * jnp.asarray(scale, query.dtype)
    return map(_padded, (query, key, value))


def _padded(x):
    missing = _block(x.shape[2])[1] - x.shape[2]
    return jnp.pad(x, ((0, 0), (0, 0), (0, missing), (0, 0))) if missing else x


# the primitive: whether a program is for one device is known where it is lowered


attention_p = Primitive("jaxgrad_tpu_attention")
attention_p.multiple_results = True


@attention_p.def_impl
def _impl(*arrays, **parameters):
    return jax.jit(functools.partial(attention_p.bind, **parameters))(*arrays)


@attention_p.def_abstract_eval
def _abstract(*arrays, plain, options, **parameters):
    results = jax.eval_shape(lambda *arrays: tuple(plain(*arrays, *options)), *arrays)
    return [arrays[0].update(shape=result.shape, dtype=result.dtype) for result in results]


def _lowered(context, *operands, kernel, plain, options, precision):
    is_interpreted = "tpu" not in context.module_context.platforms

    def computed(*arrays):
        # the index types of a kernel have 32 bits
        with jax.enable_x64(False), jax.default_matmul_precision(precision):
            results = kernel(*arrays, *options, is_interpreted)
        pairs = zip(results, context.avals_out, strict=True)
        return [result.astype(expected.dtype) for result, expected in pairs]

    def in_blocks(*arrays):
        return plain(*arrays, *options)

    is_whole = _is_for_one_device(context.module_context.axis_context)
    function = computed if is_whole else in_blocks
    return mlir.lower_fun(function, multiple_results=True)(context, *operands)


def _is_for_one_device(axes) -> bool:
    """Whether XLA does not split the program; axes: where its arrays are, as JAX says it."""
    manual = getattr(axes, "manual_axes", None)
    if manual is None:
        return getattr(axes, "num_devices", None) == 1
    return manual | {*axes.mesh.manual_axes} == {*axes.mesh.axis_names}


@dataclasses.dataclass(frozen=True)
class _ForAll:
    """A function of arrays and options, over the first dimension of the arrays."""

    function: Callable
    count: int

    def __call__(self, *arguments):
        arrays, options = arguments[: self.count], arguments[self.count :]
        return jax.vmap(lambda *arrays: tuple(self.function(*arrays, *options)))(*arrays)


def _batched(arrays, dims, *, kernel, plain, **parameters):
    size = next(x.shape[d] for x, d in zip(arrays, dims, strict=True) if d is not None)
    arrays = [
        jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(arrays, dims, strict=True)
    ]
    kernel, plain = (_ForAll(function, len(arrays)) for function in (kernel, plain))
    results = attention_p.bind(*arrays, kernel=kernel, plain=plain, **parameters)
    return results, [0] * len(results)


mlir.register_lowering(attention_p, _lowered)
batching.primitive_batchers[attention_p] = _batched
