"""The kinds of in-place write of the matrix: as PyTorch calls them, and as values that replace."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy
from storage import functional

compiled = functools.cache(jax.jit)


@dataclasses.dataclass(frozen=True)
class Write:
    """A kind of write.

    call: of the module, the target and the other tensor; gives the target as the caller has it
    afterwards. value: the new content, of the old one and the other array; None for a function
    that moves dimensions instead, which is `places` of the target's. source: the other tensor's
    shape, of the target's.
    """

    name: str
    call: Callable
    value: Callable | None = None
    places: Callable | None = None
    source: Callable = lambda shape: shape
    dimensions: tuple = (1, 2, 3)  # of targets that it can be called with
    takes_complex: bool = True
    tracked: bool = True

    def __str__(self):
        return self.name

    def applies(self, shape, is_complex):
        return len(shape) in self.dimensions and (self.takes_complex or not is_complex)

    def __call__(self, handle, other):
        if self.value is None:
            handle.places = self.places(handle.places)
            return
        content = compiled(self.value)(functional.read(handle), other)
        functional.write(handle, content, self.tracked)
        if self.tracked:
            handle.history.requires_grad = True


def method(name, *arguments, **options):
    """A method of the target, of these arguments alone."""
    return lambda torch, target, other: getattr(target, name)(*arguments, **options)


def under_no_grad(call):
    def write(torch, target, other):
        with torch.no_grad():
            return call(torch, target, other.detach())

    return write


def mask(shape):
    """True at some places of a shape, False at others."""
    return numpy.arange(numpy.prod(shape)).reshape(shape) % 3 == 1


def masked(torch, shape):
    return torch.tensor(mask(shape).tolist())


def rows(count=2):
    """The shape of some of the rows of a target."""
    return lambda shape: (count, *shape[1:])


def row(shape):
    return shape[1:]


def nothing(shape):
    return ()


def last(shape):
    return shape[:-1]


FIRST = [1, 0]  # the rows that index functions write, in this order


def index(torch):
    return torch.tensor(FIRST)


def crossed(shape):
    """An index for scatter: the first two rows, every other column of them exchanged."""
    first, *others = numpy.indices((2, *shape[1:]))
    return first ^ (others[-1] % 2) if others else 1 - first


def scattered(value):
    where = crossed(value.shape)
    return value.at[where, *numpy.indices(where.shape)[1:]]


def scatter_index(torch, target):
    return torch.tensor(crossed(tuple(target.shape)).tolist())


def points(shape):
    """Indices for index_put_: of two elements of the first two dimensions, or of one dimension."""
    return [numpy.array([0, 1]), numpy.array([1, 0]) % shape[1]] if shape[1:] else [[1, 0]]


def point_tensors(torch, target):
    return tuple(torch.tensor(list(map(int, places))) for places in points(target.shape))


def at_points(value):
    return value.at[tuple(map(numpy.array, points(value.shape)))]


def points_shape(shape):
    return 2, *shape[2:]


def assign(where):
    """`target[where] = other`; where may depend on the module and the target."""

    def write(torch, target, other):
        target[where(torch, target)] = other
        return target

    return write


def augmented_add(torch, target, other):
    target += other
    return target


def augmented_mul(torch, target, other):
    target *= other
    return target


def out(torch, target, other):
    return torch.mul(other, 2.0, out=target)


ALL = (
    Write("add_", lambda torch, x, y: x.add_(y, alpha=2), lambda v, y: v + 2 * y),
    Write("add_number_", method("add_", 0.75), lambda v, y: v + 0.75),
    Write("mul_", lambda torch, x, y: x.mul_(y), lambda v, y: v * y),
    Write(
        "copy_",
        lambda torch, x, y: x.copy_(y),
        lambda v, y: jnp.broadcast_to(y, v.shape),
        source=nothing,
    ),
    Write(
        "copy_row_",
        lambda torch, x, y: x.copy_(y),
        lambda v, y: jnp.broadcast_to(y, v.shape),
        source=row,
    ),
    Write("fill_", method("fill_", 1.25), lambda v, y: jnp.full_like(v, 1.25)),
    Write("zero_", method("zero_"), lambda v, y: jnp.zeros_like(v)),
    Write(
        "masked_fill_",
        lambda torch, x, y: x.masked_fill_(masked(torch, tuple(x.shape)), 0.5),
        lambda v, y: jnp.where(mask(v.shape), 0.5, v),
    ),
    Write(
        "masked_fill_tensor_",
        lambda torch, x, y: x.masked_fill_(masked(torch, tuple(x.shape)), y),
        lambda v, y: jnp.where(mask(v.shape), y, v),
        source=nothing,
    ),
    Write(
        "clamp_",
        method("clamp_", -0.6, 0.7),
        lambda v, y: jnp.where(v < -0.6, -0.6, jnp.where(v > 0.7, 0.7, v)),
        takes_complex=False,
    ),
    Write("exp_", method("exp_"), lambda v, y: jnp.exp(v)),
    Write("sigmoid_", method("sigmoid_"), lambda v, y: 1 / (1 + jnp.exp(-v))),
    Write(
        "index_add_",
        lambda torch, x, y: x.index_add_(0, index(torch), y),
        lambda v, y: v.at[numpy.array(FIRST)].add(y),
        source=rows(),
    ),
    Write(
        "index_copy_",
        lambda torch, x, y: x.index_copy_(0, index(torch), y),
        lambda v, y: v.at[numpy.array(FIRST)].set(y),
        source=rows(),
    ),
    Write(
        "index_fill_",
        lambda torch, x, y: x.index_fill_(0, index(torch), 0.5),
        lambda v, y: v.at[numpy.array(FIRST)].set(0.5),
    ),
    Write(
        "index_put_",
        lambda torch, x, y: x.index_put_(point_tensors(torch, x), y),
        lambda v, y: at_points(v).set(y),
        source=points_shape,
    ),
    Write(
        "index_put_accumulate_",
        lambda torch, x, y: x.index_put_(point_tensors(torch, x), y, accumulate=True),
        lambda v, y: at_points(v).add(y),
        source=points_shape,
    ),
    Write(
        "scatter_",
        lambda torch, x, y: x.scatter_(0, scatter_index(torch, x), y),
        lambda v, y: scattered(v).set(y),
        source=rows(),
    ),
    Write(
        "scatter_add_",
        lambda torch, x, y: x.scatter_add_(0, scatter_index(torch, x), y),
        lambda v, y: scattered(v).add(y),
        source=rows(),
    ),
    Write("set_int", assign(lambda torch, x: 1), lambda v, y: v.at[1].set(y), source=row),
    Write(
        "set_slice",
        assign(lambda torch, x: slice(0, 2)),
        lambda v, y: v.at[0:2].set(y),
        source=rows(),
    ),
    Write(
        "set_mask",
        assign(lambda torch, x: masked(torch, tuple(x.shape))),
        lambda v, y: jnp.where(mask(v.shape), y, v),
        source=nothing,
    ),
    Write(
        "set_index",
        assign(lambda torch, x: index(torch)),
        lambda v, y: v.at[numpy.array(FIRST)].set(y),
        source=rows(),
    ),
    Write(
        "set_ellipsis",
        assign(lambda torch, x: (..., 1)),
        lambda v, y: v.at[..., 1].set(y),
        source=last,
    ),
    Write("augmented_add", augmented_add, lambda v, y: v + y),
    Write("augmented_mul", augmented_mul, lambda v, y: v * y, source=row),
    Write("out", out, lambda v, y: 2 * y, tracked=False),
    Write("out_no_grad", under_no_grad(out), lambda v, y: 2 * y, tracked=False),
    Write(
        "mul_no_grad_",
        under_no_grad(lambda torch, x, y: x.mul_(y)),
        lambda v, y: v * y,
        tracked=False,
    ),
    Write(
        "squeeze_",
        method("squeeze_"),
        places=lambda p: p.squeeze(),
    ),
    Write("unsqueeze_", method("unsqueeze_", 1), places=lambda p: numpy.expand_dims(p, 1)),
    Write(
        "transpose_",
        method("transpose_", 0, 1),
        places=lambda p: p.swapaxes(0, 1),
        dimensions=(2, 3),
    ),
    Write("t_", method("t_"), places=lambda p: p.T, dimensions=(1, 2)),
)
