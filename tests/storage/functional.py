"""PyTorch's aliasing without in-place writes, on JAX arrays alone: the oracle of the random
programs.

A `Memory` is a block of numbers. A `Handle` looks at it through `places`, a numpy array of its
shape that says where in the block each element is; so a view is an indexing of `places`, and its
strides are numpy's. Reading gathers; a write makes a new block by scattering into the old one.
Gradients come from JAX, through all of it.

Tensors that share memory may differ in what was differentiated: a `History` is the block as one
line of derivatives has it. A base and its views have one history; `detach()`, `.data` and a view
made under no_grad start another one, with the same numbers and without derivatives. A write of
`new` over `old` gives every history the new numbers; the derivative becomes that of `new` in the
history of the handle that was written through, and stays that of `old` in all others (in all,
under no_grad): they hold `stop_gradient(new) + (old - stop_gradient(old))`.

Complex numbers take two places, real part first, so that `real`, `imag` and `view_as_real` are
handles like others, and so that the gradient of a leaf is PyTorch's: d/dre + i d/dim.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy

gather = jax.jit(lambda numbers, places: numbers[places])
scatter = jax.jit(lambda numbers, places, values: numbers.at[places].set(values))


@jax.jit
def keep(old, new):
    """The values of `new` with the derivative of `old`."""
    return jax.lax.stop_gradient(new) + (old - jax.lax.stop_gradient(old))


class Memory:
    def __init__(self, size):
        self.places = numpy.arange(size)
        self.histories = []


class History:
    """The values of a block with one row of derivatives."""

    def __init__(self, memory, numbers, requires_grad):
        self.memory, self.numbers, self.requires_grad = memory, numbers, requires_grad
        memory.histories.append(self)


@dataclasses.dataclass
class Handle:
    """A tensor: in-place functions that change its shape (`t_`) replace its `places`."""

    history: History
    places: numpy.ndarray
    is_complex: bool = False
    sign: int = 1  # of the imaginary part, or of all numbers of a view of it

    @property
    def memory(self):
        return self.history.memory

    @property
    def shape(self):
        return self.places.shape

    @property
    def requires_grad(self):
        return self.history.requires_grad


def laid_out(value, dims, requires_grad=True):
    """A new tensor whose dimensions are in memory in the order `dims`."""
    handle = contiguous(value.transpose(dims), requires_grad)
    return dataclasses.replace(handle, places=handle.places.transpose(numpy.argsort(dims)))


def contiguous(value, requires_grad=True):
    """A new tensor."""
    numbers = jnp.reshape(value, -1)
    memory = Memory(numbers.size)
    return Handle(History(memory, numbers, requires_grad), memory.places.reshape(value.shape))


def contiguous_complex(parts, requires_grad=True):
    """A new complex tensor, of an array that ends in a dimension of real and imaginary part."""
    pairs = contiguous(parts, requires_grad)
    return Handle(pairs.history, pairs.places[..., 0], is_complex=True)


def read(handle):
    numbers = gather(handle.history.numbers, handle.places)
    if not handle.is_complex:
        return numbers if handle.sign == 1 else -numbers
    imaginary = gather(handle.history.numbers, handle.places + 1)
    return jax.lax.complex(numbers, imaginary * handle.sign)


def write(handle, value, tracked=True):
    """Writes an array of the handle's shape; not tracked: under no_grad."""
    numbers = _written(handle, value)
    for history in handle.memory.histories:
        mine = tracked and history is handle.history
        history.numbers = numbers if mine else keep(history.numbers, numbers)


def _written(handle, value):
    numbers = handle.history.numbers
    if not handle.is_complex:
        return scatter(numbers, handle.places, value if handle.sign == 1 else -value)
    numbers = scatter(numbers, handle.places, jnp.real(value))
    return scatter(numbers, handle.places + 1, jnp.imag(value) * handle.sign)


def viewed(handle, index):
    """The view that `index` makes of the places; a copy where numpy must copy them."""
    places = index(handle.places)
    if numpy.may_share_memory(places, handle.memory.places):
        return dataclasses.replace(handle, places=places)
    return contiguous(read(dataclasses.replace(handle, places=places)), handle.requires_grad)


def detached(handle):
    """`detach()`, `.data`: the same memory with its own history."""
    numbers = jax.lax.stop_gradient(handle.history.numbers)
    return dataclasses.replace(handle, history=History(handle.memory, numbers, False))


def overlaps_itself(handle):
    """Whether several elements are at one place because a dimension was expanded."""
    sizes_and_strides = zip(handle.places.shape, handle.places.strides, strict=True)
    return any(size > 1 and stride == 0 for size, stride in sizes_and_strides)


def real(handle):
    return dataclasses.replace(handle, is_complex=False, sign=1)


def imag(handle):
    return dataclasses.replace(handle, is_complex=False, places=_next(handle.places))


def view_as_real(handle):
    assert handle.sign == 1  # PyTorch refuses a conjugated tensor
    places = handle.places
    pairs = numpy.lib.stride_tricks.as_strided(
        places, (*places.shape, 2), (*places.strides, places.itemsize)
    )
    return dataclasses.replace(handle, is_complex=False, places=pairs)


def conj(handle):
    return dataclasses.replace(handle, sign=-handle.sign)


def _next(places):
    """The places one further on, with the same strides."""
    pairs = numpy.lib.stride_tricks.as_strided(
        places, (*places.shape, 2), (*places.strides, places.itemsize)
    )
    return pairs[..., 1]
