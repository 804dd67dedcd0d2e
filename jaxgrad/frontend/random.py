"""Random numbers: torch's functions and generators on JAX's counter-based threefry.

A `Generator` is a seed and a count of draws. The numbers of a draw depend on these two alone: not
on the device, and not on draws from other generators. They differ from PyTorch's numbers.

XLA takes 100 milliseconds to compile a program for one size. So a few sizes are compiled, and a
small draw takes the first numbers of the next larger one. These are the numbers that a program of
its own size would give. A frequent size gets its own program.
"""

from __future__ import annotations

import functools
import math
from operator import attrgetter
from typing import Unpack

import jax
import jax.numpy as jnp
import numpy as np

from ..core import dtypes
from ..core.aval import META, check_bytes, meta_array, types_of_trace
from ..core.executor import run
from ..core.tracebacks import api_boundary
from ..tape.mode import draws
from ..tape.tensor import Tensor, wrap
from .array_creation import compiled, from_host, is_frequent, on_device
from .factories import from_array, like
from .factory_options import (
    FactoryOptions,
    check_options,
    dtype_of,
    has_no_data,
    shape_of,
    size_of,
)
from .generator import Generator, default_generator
from .generator import get_rng_state as get_rng_state
from .generator import initial_seed as initial_seed
from .generator import manual_seed as manual_seed
from .generator import seed as seed
from .generator import set_rng_state as set_rng_state

_ALGORITHM = "threefry2x32"
# the counts of the shared programs; a smaller draw takes the first numbers of one
_SIZES = (256, 1024, 4096, 16384, 65536)


class RandomOptions(FactoryOptions, total=False):
    """`FactoryOptions`, and the generator to draw from; None means the default generator."""

    generator: Generator | None


def _fold(words):
    """The key of a draw: the key of the seed, with the number of the draw folded in."""
    key = jax.random.wrap_key_data(words[:2], impl=_ALGORITHM)
    for word in (words[2], words[3]):
        key = jax.random.fold_in(key, word)
    return jax.random.key_data(key)


def _flat(distribution, count, dtype, key, *numbers):
    key = jax.random.wrap_key_data(key, impl=_ALGORITHM)
    return distribution(key, (count,), dtype, *numbers)


def _shaped(distribution, shape, dtype, key, *numbers):
    return _flat(distribution, math.prod(shape), dtype, key, *numbers).reshape(shape)


def _draw(distribution, shape, dtype, generator, device, *numbers) -> jax.Array:
    """Draw an array from `distribution(key, shape, dtype, *numbers)`; `dtype` is numpy's.

    The distribution must draw its numbers one by one. Raises RuntimeError for 2**63 bytes or more.
    """
    # a number of a narrow dtype comes from one of up to 64 bits
    check_bytes(shape, max(dtype, np.dtype(np.int64), key=attrgetter("itemsize")))
    words, shape = generator.next_key(), tuple(shape)
    if isinstance(words, jax.core.Tracer):
        with types_of_trace():
            return _shaped(distribution, shape, dtype, _fold(words), *numbers)
    if draws.get() is None:
        return _numbers(distribution, shape, dtype, words, device, *numbers)
    # a recomputation repeats earlier draws, possibly inside a trace, where they are constants
    with jax.ensure_compile_time_eval():
        return _numbers(distribution, shape, dtype, words, device, *numbers)


def _numbers(distribution, shape, dtype, words, device, *numbers):
    count = math.prod(shape)
    size = next((size for size in _SIZES if count <= size), None)
    if size is None or is_frequent(distribution, shape, dtype):
        draw = compiled(_shaped, distribution, shape, dtype)
        return on_device(draw(compiled(_fold)(words), *numbers), device)
    with jax.default_device(_host()):
        flat = compiled(_flat, distribution, size, dtype)(compiled(_fold)(words), *numbers)
    return from_host(np.asarray(flat)[:count].reshape(shape), device)


@functools.cache
def _host():
    return jax.local_devices(backend="cpu")[0]


def _uniform(key, shape, dtype):
    return jax.random.uniform(key, shape, dtype)


def _normal(key, shape, dtype):
    # float16 has few numbers between 0 and 1, which give few and small normal numbers
    return jax.random.normal(key, shape, jnp.promote_types(dtype, jnp.float32)).astype(dtype)


def _complex_uniform(key, shape, dtype):
    parts = _uniform(key, (*shape, 2), jnp.finfo(dtype).dtype)
    return jax.lax.complex(parts[..., 0], parts[..., 1])


def _complex_normal(key, shape, dtype):
    # each part has half of the variance of 1
    parts = _normal(key, (*shape, 2), jnp.finfo(dtype).dtype) * math.sqrt(0.5)
    return jax.lax.complex(parts[..., 0], parts[..., 1])


def _integers(key, shape, dtype, low, high):
    return jax.random.randint(key, shape, low, high, jnp.int64).astype(dtype)


def _bits(key, shape, dtype):
    return jax.random.bits(key, shape, dtype)


def generator_of(name, options) -> Generator:
    generator = options.pop("generator", None)
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        kind = type(generator).__name__
        raise TypeError(f"{name}(): argument 'generator' must be Generator, not {kind}")
    return generator


def random_tensor(name, distribution, shape, dtype, options, *numbers) -> Tensor:
    """Draw a tensor with the options of a factory."""
    generator = generator_of(name, options)
    check_options(name, options)
    if has_no_data(options):
        return from_array(name, meta_array(shape, dtype), options)
    where = generator, options.get("device")
    array = run(name, _draw, distribution, shape, dtype.numpy, *where, *numbers)
    return from_array(name, array, options)


def _real_or_complex(name, distributions, shape, options, default, kernel) -> Tensor:
    """Draw floats or complex numbers. kernel: the name in PyTorch's error for other dtypes."""
    dtype = dtype_of(options, default)
    if not dtype.is_floating_point and not dtype.is_complex:
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{dtype.scalar_type}': "
            f"{name}() gives floating point or complex numbers"
        )
    return random_tensor(name, distributions[dtype.is_complex], shape, dtype, options)


def _rand(name, shape, options, default=None):
    default = default or dtypes.get_default_dtype()
    distributions = (_uniform, _complex_uniform)
    return _real_or_complex(name, distributions, shape, options, default, "check_uniform_bounds")


def new_key(generator: Generator | None, name: str, like: Tensor) -> Tensor:
    """The key of a new draw, for operators that draw by themselves: uint32 of shape (2,).

    like: a tensor that the draw is for; no draw is taken where it has no data.
    """
    generator = generator_of(name, {"generator": generator})
    if like._aval.mode == META:
        return wrap(meta_array((2,), dtypes.uint32))
    words = generator.next_key()
    if isinstance(words, jax.core.Tracer):
        with types_of_trace():
            return wrap(_fold(words))
    with jax.ensure_compile_time_eval():
        return wrap(from_host(np.asarray(compiled(_fold)(words))))


def draw_normal(name, shape, options, default=None):
    default = default or dtypes.get_default_dtype()
    distributions = (_normal, _complex_normal)
    return _real_or_complex(name, distributions, shape, options, default, "normal_kernel_cpu")


@api_boundary
def rand(*size, **options: Unpack[RandomOptions]) -> Tensor:
    """Return numbers from the uniform distribution on [0, 1).

    size: the shape, as ints or as one list of ints.
    dtype: a floating-point or complex dtype, the default dtype if it is None; both parts of a
    complex number are uniform. generator: the default one if it is None. Other options as for
    `zeros`.

    Raises NotImplementedError for another dtype, TypeError for a wrong size or generator,
    RuntimeError for a negative size.

    >>> jaxgrad.rand(2, 3).shape
    torch.Size([2, 3])
    """
    return _rand("rand", size_of("rand", size, options), options)


@api_boundary
def randn(*size, **options: Unpack[RandomOptions]) -> Tensor:
    """Return numbers from the normal distribution with mean 0 and variance 1.

    The parts of a complex number have variance 1/2 each. Arguments and errors as for `rand`.

    >>> jaxgrad.randn(2, 3, requires_grad=True).requires_grad
    True
    """
    return draw_normal("randn", size_of("randn", size, options), options)


@api_boundary
def rand_like(input: Tensor, **options: Unpack[RandomOptions]) -> Tensor:
    """Return uniform numbers in the shape of another tensor, by default in its dtype and on its
    device; see `rand`.

    input: a tensor of any shape. Raises TypeError if it is not a tensor.

    >>> jaxgrad.rand_like(jaxgrad.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return _rand("rand_like", input.shape, like("rand_like", input, options))


@api_boundary
def randn_like(input: Tensor, **options: Unpack[RandomOptions]) -> Tensor:
    """Return normal numbers in the shape of another tensor, by default in its dtype and on its
    device; see `randn`.

    input: a tensor of any shape. Raises TypeError if it is not a tensor.

    >>> jaxgrad.randn_like(jaxgrad.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return draw_normal("randn_like", input.shape, like("randn_like", input, options))


@api_boundary
def randint(*bounds, **options) -> Tensor:
    """Return integers from the uniform distribution on [low, high).

    Forms: `randint(high, size)`, where `low` is 0, and `randint(low, high, size)`.
    low, high: ints of 64 bits. size: the shape, a list of ints.
    dtype: int64 if it is None; floating-point and bool dtypes are possible. Options as for `rand`.

    Raises RuntimeError if `low` is not less than `high`, and if the dtype is complex or cannot hold
    the numbers; ValueError for bounds of more than 64 bits; TypeError for other arguments.

    >>> jaxgrad.randint(5, 6, (3,))
    tensor([5, 5, 5])
    """
    bounds = list(bounds)
    size = bounds.pop() if "size" not in options and bounds else options.pop("size", None)
    low, high = _bounds("randint", bounds, options)
    return draw_integers("randint", low, high, shape_of("randint", size), options, dtypes.int64)


@api_boundary
def randint_like(input: Tensor, *bounds, **options) -> Tensor:
    """Return random integers in the shape of another tensor, by default in its dtype and on its
    device; see `randint`.

    input: a tensor of any shape. Forms: `randint_like(input, high)` and
    `randint_like(input, low, high)`.

    >>> jaxgrad.randint_like(jaxgrad.zeros(2), 3, 4)
    tensor([3., 3.])
    """
    low, high = _bounds("randint_like", list(bounds), options)
    return draw_integers(
        "randint_like", low, high, input.shape, like("randint_like", input, options), None
    )


def _bounds(name, bounds, options):
    """low and high, from positional and keyword arguments."""
    named = {which: options.pop(which) for which in ("low", "high") if which in options}
    alone = len(bounds) == 1 and "high" not in named
    given = dict(zip(("high",) if alone else ("low", "high"), bounds, strict=False)) | named
    if "high" not in given or len(given) < len(bounds) + len(named):
        raise TypeError(
            f"{name}() received an invalid combination of arguments: "
            "it takes (high) or (low, high), and the size as a list"
        )
    for which, bound in given.items():
        if isinstance(bound, bool) or not hasattr(bound, "__index__"):
            raise TypeError(f"{name}(): argument '{which}' must be int, not {type(bound).__name__}")
    return int(given.get("low", 0)), int(given["high"])


def draw_integers(name, low, high, shape, options, default):
    dtype = dtype_of(options, default)
    if dtype.is_complex:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types, "
            f"not {dtype}"
        )
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if low < -(2**63) or high >= 2**63:
        raise ValueError(
            f"Overflow when unpacking long long: {name}() draws from 64 bits, not [{low}, {high})"
        )
    for which, bound in (("from", low), ("to - 1", high - 1)):
        if not _fits(bound, dtype):
            raise RuntimeError(f"{which} is out of bounds for {dtype}: {bound}")
    return random_tensor(name, _integers, shape, dtype, options, low, high)


def _fits(bound, dtype):
    if dtype.is_floating_point:
        return abs(bound) <= dtypes.finfo(dtype).max
    if dtype is dtypes.bool:
        return bound in (0, 1)
    return dtypes.iinfo(dtype).min <= bound <= dtypes.iinfo(dtype).max


@api_boundary
def randperm(n: int, **options: Unpack[RandomOptions]) -> Tensor:
    """Return the integers from 0 to n - 1 in random order, with shape (n,).

    n: an int, 0 or more. dtype: int64 if it is None. Other options as for `rand`.

    Raises TypeError for another `n`, RuntimeError for a negative one and for a dtype that cannot
    hold n - 1, NotImplementedError for a bool or complex dtype.

    >>> sorted(jaxgrad.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"randperm(): argument 'n' must be int, not {type(n).__name__}")
    (count,) = shape_of("randperm", (n,))
    dtype = dtype_of(options, dtypes.int64)
    if dtype.is_complex or dtype is dtypes.bool:
        raise NotImplementedError(f"\"randperm\" not implemented for '{dtype.scalar_type}'")
    if count and not _fits(count - 1, dtype):
        raise RuntimeError(
            f"value cannot be converted to type {dtype.name} without overflow: {count - 1}"
        )
    generator = generator_of("randperm", options)
    check_options("randperm", options)
    if has_no_data(options):
        return from_array("randperm", meta_array((count,), dtype), options)
    # sorting by keys of 64 random bits; a pair of keys is equal with probability 2**-64
    draw = _draw, _bits, (count,), np.dtype(np.uint64), generator, None
    keys = run("randperm", *draw)
    if isinstance(keys, jax.core.Tracer):
        with types_of_trace():
            return from_array("randperm", jnp.argsort(keys).astype(dtype.numpy), options)
    order = np.argsort(np.asarray(keys), kind="stable").astype(dtype.numpy)
    return from_array("randperm", from_host(order, options.get("device")), options)
