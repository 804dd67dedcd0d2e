"""Random numbers: torch's functions and generators (generator.py).

The numbers depend on the state of the generator alone: not on the device, and not on draws from
other generators.
"""

from __future__ import annotations

import functools
import warnings
from typing import Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from ..core import dtypes, spread, world
from ..core.aval import meta_array, types_of_trace
from ..core.communication import Broadcast, FromLocal, is_global
from ..core.executor import run
from ..core.host_values import values_or_array
from ..core.tracebacks import users_stacklevel
from ..late import LateModule
from ..tape import mode
from ..tape.argument_types import is_index
from ..tape.communicate import communicated
from ..tape.sparse_tensor import implementation, is_compressed
from ..tape.tensor import (
    Tensor,
    concrete,
    held,
    is_concrete,
    is_on_meta,
    spans_processes,
    wrap,
)
from ..tape.torch_function import api_boundary
from . import draw
from .array_creation import from_host
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
from .request import order_in_memory

rejection = LateModule("jaxgrad.frontend.rejection")  # it needs NumPy's random numbers


class RandomOptions(FactoryOptions, total=False):
    """`FactoryOptions`, and the generator to draw from; None means the default generator."""

    generator: Generator | None


def generator_of(name, options) -> Generator:
    generator = options.pop("generator", None)
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        kind = type(generator).__name__
        raise TypeError(f"{name}(): argument 'generator' must be Generator, not {kind}")
    return generator


def steps_of(tensor: Tensor) -> tuple | None:
    """The option `_steps` of a draw for a tensor: its strides, behind those of the examples of the
    `vmap`s around, where they are known.
    """
    scope, base = mode.scope.get(), tensor._base
    if scope is None:
        return tensor.stride()
    return scope.steps_of_draw(tensor if base is None else base, tensor.stride())


def like_in_memory(name: str, tensor: Tensor, options: dict) -> dict:
    """The options of a draw in the shape of a tensor, for all examples in their order in memory."""
    steps = steps_of(tensor) if mode.scope.get() is not None else None
    if steps is not None and len(steps) > tensor.ndim:
        options = {**options, "_steps": steps}
    return like(name, tensor, options)


def random_tensor(name, distribution, shape, dtype, options, *numbers) -> Tensor:
    """Draw a tensor with the options of a factory. The option `_steps` are the strides of a tensor
    that the numbers are for; by default they are those of the result.
    """
    generator = generator_of(name, options)
    steps = options.pop("_steps", None) or _steps_of(options, shape)
    if check_options(name, options):
        return implementation().make(name, (), None, options)
    if has_no_data(options):
        return from_array(name, meta_array(shape, dtype), options)
    if world.is_several() and _spans(options.get("_sharded_like")):
        generator = _OfRankZero(generator)
    where = generator, options.get("device")
    order = steps and _order(shape, steps)
    drawing = draw.draw if order is None else functools.partial(draw.draw, order=order)
    array = run(name, drawing, distribution, shape, dtype.numpy, *where, *numbers)
    return from_array(name, array, options)


def _order(shape, steps):
    """The order of a draw: of all axes, or of those of `shape` alone."""
    whole = (*draw.sizes_of_examples(), *shape)
    if len(steps) == len(whole):
        return order_in_memory(whole, steps)
    return order_in_memory(shape, steps[len(steps) - len(shape) :])


def drawn_below(probability, shape, options) -> Tensor:
    """Draw bools, each true with a probability, a Python number, maybe one of a trace."""
    if type(probability) in (int, float):
        number = float(probability)
        return random_tensor("bernoulli_like", draw.kept, shape, dtypes.bool, options, number)
    return random_tensor("rand_like", draw.uniform, shape, dtypes.float64, options) < probability


def _steps_of(options, shape):
    """The strides that a new tensor will have; None for those of a contiguous one."""
    out = options.get("out")
    if isinstance(out, Tensor) and out.shape == tuple(shape):
        return out.stride() or None
    wanted = options.get("memory_format")
    if wanted is None or isinstance(wanted, tuple):
        return wanted
    return wanted.strides(shape) if wanted.rank == len(shape) else None


def draw_floats(name, distribution, shape, options, kernel, *numbers) -> Tensor:
    """Draw floats or complex numbers. kernel: the name in PyTorch's error for other dtypes."""
    dtype = dtype_of(options, dtypes.get_default_dtype())
    if (not dtype.is_floating_point and not dtype.is_complex) or dtype in dtypes.FLOAT8:
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{dtype.scalar_type}': "
            f"{name}() gives floating point or complex numbers"
        )
    if dtype is dtypes.complex64 and draw.is_of_half.get():
        distribution = draw.NORMAL_OF_HALF.get(distribution, distribution)
    return random_tensor(name, distribution, shape, dtype, options, *numbers)


def _rand(name, shape, options):
    return draw_floats(name, draw.uniform, shape, options, "check_uniform_bounds")


def check_draw(*parameters, target: Tensor | None = None):
    """Raise RuntimeError if a `vmap` around refuses a draw with these parameters of a distribution,
    tensors or numbers; target: the tensor that the draw overwrites.
    """
    scope = mode.scope.get()
    if scope is not None:
        scope.check_draw([value for value in parameters if isinstance(value, Tensor)], target)


def new_key(generator: Generator | None, name: str, like: Tensor, at_once=False) -> Tensor:
    """The key of a new draw, for operators that draw by themselves: uint32 of shape (2,).

    like: a tensor that the draw is for; no draw is taken where it has no data. at_once: whether the
    operator draws the numbers of all examples of a `vmap` by one key, which all of them get.
    """
    generator = generator_of(name, {"generator": generator})
    if is_on_meta(like):
        return wrap(meta_array((2,), dtypes.uint32))
    words = generator.next_key() if at_once else draw.words_of_example(generator)
    if isinstance(words, jax.core.Tracer):
        key = draw.fold(words)
        if at_once:  # they differ for `jax.vmap`, which has the operator draw for all of them
            key = draw.of_example(functools.partial(_copies, key))
        return _of_all(wrap(key), like)
    with jax.ensure_compile_time_eval():
        return _of_all(wrap(from_host(draw.fold(words))), like)


def new_counter(name: str, like: Tensor, count: int) -> Tensor:
    """A draw of the default generator for operators that make its bits by themselves, part by part:
    the key, and the counter of the first of `count` words of 32 bits; uint32 of shape (4,). Each
    example of the `vmap`s around has words that no other one has. See `new_key`.
    """
    if is_on_meta(like):
        return wrap(meta_array((4,), dtypes.uint32))
    key = draw.fold(default_generator.next_key())
    with types_of_trace() if isinstance(key, jax.core.Tracer) else jax.ensure_compile_time_eval():
        return _of_all(wrap(jnp.concatenate([key, draw.counter_of_example(count)])), like)


def follows_torch(generator, *parameters: Tensor) -> bool:
    """Whether samples for these parameters are drawn one after the other of PyTorch's stream."""
    if generator.stream == "jax" or any(map(is_on_meta, parameters)):
        return False
    return not (world.is_several() and any(map(_spans, parameters)))


def is_mapped() -> bool:
    """Whether draws are those of an example of a `vmap`."""
    scope = mode.scope.get()
    return scope is not None and scope.randomness != "error"


def samples_in_turn(generator, name, parameters_of, *parameters: Tensor) -> Tensor | None:
    """Samples that PyTorch's stream makes one after the other, float64; None where a key makes
    them: of JAX's stream, in a `vmap`, for tensors without data and for those of several processes.

    parameters_of: gives a sampler of frontend/rejection.py and its parameters for the values.
    """
    if not follows_torch(generator, *parameters):
        return None
    scope = mode.scope.get()
    if all(map(is_concrete, parameters)) and not is_mapped():
        sampler = parameters_of(*[_single_values(parameter, name) for parameter in parameters])
        (result,) = generator.numbers(rejection.SamplesRequest(*sampler))
        return wrap(from_values(result.array()))
    if scope is None:
        return None  # in a trace of JAX's own: a key raises there
    with types_of_trace():
        values = [single_of_half(held(parameter.detach())) for parameter in parameters]
        return wrap(scope.samples_in_turn(generator, name, *parameters_of(*values)))


def from_values(array):
    """An array of a tracer, or of NumPy's values."""
    return array if isinstance(array, jax.core.Tracer) else from_host(array)


def single_of_half(values):
    return values.astype(np.float32) if values.dtype.itemsize < 4 else values


def _single_values(tensor: Tensor, name: str) -> np.ndarray:
    return single_of_half(np.asarray(values_or_array(concrete(tensor.detach(), name))))


def _copies(key, sizes):
    with types_of_trace():
        return jnp.broadcast_to(key, (*sizes, 2))


def _spans(tensor: Tensor | None) -> bool:
    """Whether a tensor has shards in several processes."""
    return tensor is not None and (spans_processes(tensor) or is_global(held(tensor)))


class _OfRankZero:
    """A generator whose draws are those of rank 0 in all processes."""

    stream = "jax"

    def __init__(self, generator: Generator):
        self.generator = generator

    def next_key(self):
        drawn = wrap(jnp.asarray(self.generator.next_key()))
        words = communicated(drawn, Broadcast(world.current.mesh))._array
        return words if isinstance(words, jax.core.Tracer) else np.asarray(words)


def _of_all(key: Tensor, like: Tensor) -> Tensor:
    """The key for a tensor that spans processes: that of rank 0, whatever the others have drawn."""
    if not (world.is_several() and _spans(like)):
        return key
    first = communicated(key, Broadcast(world.current.mesh))
    mesh = spread.mesh_of_value(held(like))
    return communicated(first, FromLocal(mesh, target=PartitionSpec()))


def draw_normal(name, shape, options) -> Tensor:
    return draw_floats(name, draw.normal, shape, options, "normal_kernel_cpu")


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
    return _rand("rand_like", input.shape, like_in_memory("rand_like", input, options))


@api_boundary
def randn_like(input: Tensor, **options: Unpack[RandomOptions]) -> Tensor:
    """Return normal numbers in the shape of another tensor, by default in its dtype and on its
    device; see `randn`.

    input: a tensor of any shape. Raises TypeError if it is not a tensor.

    >>> jaxgrad.randn_like(jaxgrad.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    if is_compressed(input):
        generator = options.pop("generator", None)
        return implementation().like_with(
            lambda values: values.normal_(generator=generator), input, options
        )
    return draw_normal("randn_like", input.shape, like_in_memory("randn_like", input, options))


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
        "randint_like", low, high, input.shape, like_in_memory("randint_like", input, options), None
    )


def _bounds(name, bounds, options):
    """low and high, from positional and keyword arguments."""
    named = {which: options.pop(which) for which in ("low", "high") if which in options}
    alone = len(bounds) == 1 and "high" not in named
    arguments = dict(zip(("high",) if alone else ("low", "high"), bounds, strict=False)) | named
    if "high" not in arguments or len(arguments) < len(bounds) + len(named):
        raise TypeError(
            f"{name}() received an invalid combination of arguments: "
            "it takes (high) or (low, high), and the size as a list"
        )
    for which, bound in arguments.items():
        is_int = is_index(bound) if isinstance(bound, Tensor) else hasattr(bound, "__index__")
        if isinstance(bound, bool) or not is_int:
            raise TypeError(f"{name}(): argument '{which}' must be int, not {type(bound).__name__}")
    low, high = int(arguments.get("low", 0)), int(arguments["high"])
    if high >= 2**63 > low:
        refuse_long(name, low, high)
    return low, high


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
    # without a user's end it may be 2**63
    if low < -(2**63) or high > 2**63:
        refuse_long(name, low, high)
    for which, bound in (("from", low), ("to - 1", high - 1)):
        if not _fits(bound, dtype):
            raise RuntimeError(f"{which} is out of bounds for {dtype}: {bound}")
        if dtype.is_floating_point and abs(bound) > 2 / dtypes.finfo(dtype).eps:
            warnings.warn(
                f"{which} is out of bounds: {bound}. {dtype} holds all integers only up to "
                f"{int(2 / dtypes.finfo(dtype).eps)}",
                stacklevel=users_stacklevel(),
            )
    return random_tensor(name, draw.integers, shape, dtype, options, low, high)


def refuse_long(name, low, high):
    raise ValueError(
        f"Overflow when unpacking long long: {name}() draws from 64 bits, not [{low}, {high})"
    )


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
    if dtype.is_floating_point and count > 2 / dtypes.finfo(dtype).eps + 1:
        scalar = dtype.scalar_type
        raise RuntimeError(
            f"n cannot be greater than {int(2 / dtypes.finfo(dtype).eps + 1)} for {scalar} type: "
            f"randperm({count}) has integers that {dtype} does not tell apart"
        )
    generator = generator_of("randperm", options)
    if check_options("randperm", options):
        return implementation().make("randperm", (), None, options)
    if has_no_data(options):
        return from_array("randperm", meta_array((count,), dtype), options)
    if generator.stream == "torch":
        where = generator, options.get("device"), count
        # the examples of the outermost `vmap` draw one after the other, for those of each inner one
        levels = len(draw.sizes_of_examples())
        order = (*reversed(range(levels)), levels) if levels > 1 else None
        drawing = functools.partial(draw.draw, order=order)
        array = run("randperm", drawing, draw.orders, (count,), dtype.numpy, *where)
        return from_array("randperm", array, options)
    # sorting by keys of 64 random bits; a pair of keys is equal with probability 2**-64
    bits = functools.partial(draw.draw, draw.bits, at_once=False)
    keys = run("randperm", bits, (count,), np.dtype(np.uint64), generator, None)
    if isinstance(keys, jax.core.Tracer):
        with types_of_trace():
            return from_array("randperm", jnp.argsort(keys).astype(dtype.numpy), options)
    order = np.argsort(np.asarray(values_or_array(keys)), kind="stable").astype(dtype.numpy)
    return from_array("randperm", from_host(order, options.get("device")), options)
