"""The programs of the matrix: a base, a view of it and a slice of it, and one write.

    base = leaf * 1.0;  view = <view of base>;  sibling = base[1:4]
    use = (base * base + view * view + sibling * sibling).sum()    # before the write, or after it
    <write to base, view or sibling, of the tensor `other`>
    loss = use + (weights * base + weights * view + weights * sibling).sum()

`run` gives what they come to in PyTorch or jaxgrad, `interpret` what they do without in-place.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy
from storage import functional, views, writes

TARGETS = ("base", "view", "sibling")
ORDERS = ("before", "after")


@dataclasses.dataclass(frozen=True)
class Program:
    view: views.View
    write: writes.Write
    target: str
    order: str

    def __str__(self):
        return f"{self.view}-{self.write}-{self.target}-{self.order}"

    @property
    def leaf_shape(self):
        """Of the real numbers of the leaf: a complex one has a last dimension of two."""
        return self.view.shape + (2,) * self.view.is_complex

    @property
    def other_is_complex(self):
        return kinds(self.view)[self.target][1]

    def leaf(self):
        return numbers(self.leaf_shape, 1.0)

    def other(self):
        shape = self.write.source(kinds(self.view)[self.target][0])
        return numbers(shape + (2,) * self.other_is_complex, 2.0)

    def applies(self):
        return self.write.applies(*kinds(self.view)[self.target])


@functools.cache
def kinds(view):
    """Shape of the base, the view and the sibling, and whether they are complex."""
    targets = handles(view, jnp.zeros(view.shape + (2,) * view.is_complex))
    return {name: (h.shape, h.is_complex) for name, h in zip(TARGETS, targets, strict=True)}


def programs(view, write):
    every = [Program(view, write, target, order) for target in TARGETS for order in ORDERS]
    return [program for program in every if program.applies()]


def numbers(shape, phase):
    """Numbers between -1 and 1, no two alike."""
    return numpy.round(numpy.sin(phase + 1.3 * numpy.arange(numpy.prod(shape))), 3).reshape(shape)


def weights(shape):
    return numpy.cos(0.7 * numpy.arange(numpy.prod(shape)) + len(shape)).reshape(shape)


def tensor(torch, values, is_complex):
    """A leaf."""
    if is_complex:
        values = values[..., 0] + 1j * values[..., 1]
    dtype = torch.complex128 if is_complex else torch.float64
    return torch.tensor(values.tolist(), dtype=dtype, requires_grad=True)


def total(torch, tensor):
    """The weighted sum of a tensor, real."""
    factors = torch.tensor(weights(tuple(tensor.shape)).tolist(), dtype=torch.float64)
    return part(torch, (tensor * factors).sum())


def part(torch, number):
    return number.real + number.imag if torch.is_complex(number) else number


def square(torch, tensor):
    return part(torch, (tensor * tensor).sum())


def tensors(torch, leaf, make_view):
    base = leaf * 1.0
    return {"base": base, "view": make_view(torch, base), "sibling": base[1:4]}


def run(torch, program, leaf, other, make_view, fresh=lambda tensor: tensor):
    """Base, view and sibling after the program, and the gradients of leaf and other.

    fresh: what is done to tensors before they are used.
    """
    handles_by_name = tensors(torch, leaf, make_view)

    def use():
        return sum(square(torch, fresh(tensor)) for tensor in handles_by_name.values())

    used = use() if program.order == "before" else 0
    handles_by_name[program.target] = program.write.call(
        torch, handles_by_name[program.target], other
    )
    used = used if program.order == "before" else use()
    loss = used + sum(total(torch, handles_by_name[name]) for name in TARGETS)
    gradients = torch.autograd.grad(loss, [leaf, other], materialize_grads=True)
    return [handles_by_name[name].detach() for name in TARGETS] + list(gradients)


def handles(view, values):
    """Base, view and sibling."""
    make = functional.contiguous_complex if view.is_complex else functional.contiguous
    base = make(values)
    return base, view.handle(base), functional.viewed(base, lambda places: places[1:4])


def interpret(program):
    """The results of `run` as arrays; complex ones end in a dimension of real and imaginary."""
    values, *gradients = _interpreted(program.view, program.write, program.target)
    return values + gradients[ORDERS.index(program.order)]


@functools.lru_cache(1)
def _interpreted(view, write, target):
    """The values, and the gradients of the program with the use before the write and after it."""

    def losses(leaf, other):
        aliases = handles(view, leaf)
        before = sum(map(square_of, aliases))
        write(aliases[TARGETS.index(target)], as_complex(other) if is_complex else other)
        values = [functional.read(handle) for handle in aliases]
        rest = sum(map(total_of, values))
        reals = [as_real(value) if jnp.iscomplexobj(value) else value for value in values]
        return (before + rest, sum(map(square_of, aliases)) + rest), reals

    is_complex = kinds(view)[target][1]
    program = Program(view, write, target, ORDERS[0])
    leaves = jnp.asarray(program.leaf()), jnp.asarray(program.other())
    _, gradients, values = jax.vjp(losses, *leaves, has_aux=True)
    arrays = [values, gradients((1.0, 0.0)), gradients((0.0, 1.0))]
    return [[numpy.asarray(array) for array in part] for part in arrays]


@jax.jit
def as_complex(pairs):
    return jax.lax.complex(pairs[..., 0], pairs[..., 1])


@jax.jit
def as_real(value):
    return jnp.stack([value.real, value.imag], -1)


def square_of(handle):
    return _square(functional.read(handle))


@jax.jit
def _square(value):
    return _part(jnp.sum(value * value))


@jax.jit
def total_of(value):
    return _part(jnp.sum(value * weights(value.shape)))


def _part(number):
    return number.real + number.imag if jnp.iscomplexobj(number) else number


def digest(arrays):
    """Two numbers of a program's results: of the three values and of the two gradients."""
    sums = [
        float(numpy.dot(array.ravel(), numpy.cos(position + 0.7 * numpy.arange(array.size))))
        for position, array in enumerate(arrays)
    ]
    return sum(sums[:3]), sum(sums[3:])
