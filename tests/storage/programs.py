"""Random programs of views, in-place writes and operators, with their expected results.

A program is up to twelve steps over three tensors: `a` and `b` are leaves times one, `c` does not
require grad. Hypothesis draws numbers; `interpret` turns them into steps that fit the shapes at
hand, and computes their results without writes in place (functional.py); `run` runs the same steps
with PyTorch or with jaxgrad.

A write through a detached handle, through `.data` or under no_grad changes the numbers of every
handle of the memory. It changes the history of the handle that is written through, and of no other;
under no_grad it changes none. So a value read later through another history is the written number
with the derivative of the old value: `stop_gradient(new) + old - stop_gradient(old)`.
"""

import dataclasses
from collections.abc import Callable

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy
from storage import functional, model
from storage.model import Forbidden, Skipped

SHAPES = {"a": (2, 4), "b": (4,), "c": (2, 4)}


@dataclasses.dataclass(frozen=True)
class Step:
    kind: str
    operands: tuple  # positions among the handles
    parameters: tuple
    grad_mode: bool = True

    def __str__(self):
        arguments = ", ".join([*(f"h{i}" for i in self.operands), *map(str, self.parameters)])
        return f"{self.kind}({arguments})" + ("" if self.grad_mode else "  # under no_grad")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of step.

    call(module, tensors, parameters): runs the step; returns the new tensor, or None.
    interpret(grad mode, handles, parameters): the same with the model's handles.
    choose(first handle, drawn numbers): the parameters, or None if the handle allows none.
    partner(first, second): whether two handles can be operands; None for a step with one operand.
    """

    call: Callable
    interpret: Callable
    choose: Callable = lambda handle, b, c: ()
    partner: Callable | None = None


# ---- views


def any_dim(handle, b, c):
    return (b % handle.places.ndim,) if handle.places.ndim else None


def element(handle, b, c):
    """A dimension and an index of it."""
    if not handle.shape:
        return None
    dim = b % len(handle.shape)
    return dim, c % handle.shape[dim]


def halves(handle, b, c):
    """A dimension of two or more, and which of its two halves."""
    return next(((d, c % 2) for d in range(len(handle.shape)) if handle.shape[d] % 2 == 0), None)


def part(handle, b, c):
    """A dimension, where to start and the step."""
    if not handle.shape:
        return None
    dim = b % len(handle.shape)
    return dim, c % handle.shape[dim], 1 + c % 2


def two_dims(handle, b, c):
    count = len(handle.shape)
    return (b % count, c % count) if count > 1 else None


def new_dim(handle, b, c):
    return (b % (len(handle.shape) + 1),)


def two_rows(handle, b, c):
    return (2, handle.places.size // 2) if handle.places.size % 2 == 0 else None


def along(dim, where):
    """An index that says `where` in one dimension; of an array a view even without dimensions."""
    return (*(slice(None),) * dim, where, ...)


def a_half(places, dim, which):
    size = places.shape[dim] // 2
    return places[along(dim, slice(which * size, (which + 1) * size))]


def view_kind(call, index, choose=lambda handle, b, c: (), several=False):
    def interpret(grad_mode, handle, *parameters):
        return model.view(handle, lambda p: index(p, *parameters), grad_mode, several)

    return Kind(lambda torch, x, *parameters: call(x, *parameters), interpret, choose)


def reshaped(grad_mode, handle, *shape):
    try:
        return model.view(handle, lambda p: p.reshape(shape), grad_mode)
    except Forbidden:
        value = functional.read(handle).reshape(shape)
        return model.new(value, None, handle.bound, model.tracks(grad_mode, handle))


VIEWS = {
    "select": view_kind(lambda x, d, i: x.select(d, i), lambda p, d, i: p[along(d, i)], element),
    "slice": view_kind(
        lambda x, d, start, step: x[along(d, slice(start, None, step))],
        lambda p, d, start, step: p[along(d, slice(start, None, step))],
        part,
    ),
    "transpose": view_kind(
        lambda x, d, e: x.transpose(d, e), lambda p, d, e: p.swapaxes(d, e), two_dims
    ),
    "movedim": view_kind(
        lambda x, d, e: x.movedim(d, e), lambda p, d, e: numpy.moveaxis(p, d, e), two_dims
    ),
    "unsqueeze": view_kind(
        lambda x, d: x.unsqueeze(d), lambda p, d: numpy.expand_dims(p, d), new_dim
    ),
    "squeeze": view_kind(lambda x: x.squeeze(), lambda p: p.squeeze()),
    "expand": view_kind(
        lambda x: x.expand(2, *x.shape), lambda p: numpy.broadcast_to(p, (2, *p.shape))
    ),
    "diagonal": view_kind(
        lambda x, d, e: x.diagonal(0, d, e),
        lambda p, d, e: p.diagonal(0, d, e),
        lambda h, b, c: (0, len(h.shape) - 1) if len(h.shape) > 1 else None,
    ),
    "view": view_kind(lambda x, *s: x.view(*s), lambda p, *s: p.reshape(s), two_rows),
    "reshape": Kind(lambda torch, x, *s: x.reshape(*s), reshaped, two_rows),
    "flatten": Kind(
        lambda torch, x, size: x.reshape(size), reshaped, lambda h, b, c: (h.places.size,)
    ),
    "unbind": view_kind(
        lambda x, d, i: x.unbind(d)[i], lambda p, d, i: p[along(d, i)], element, several=True
    ),
    "chunk": view_kind(lambda x, d, i: x.chunk(2, d)[i], a_half, halves, several=True),
    "detach": Kind(lambda torch, x: x.detach(), lambda grad_mode, h: model.detached(h)),
    "data": Kind(lambda torch, x: x.data, lambda grad_mode, h: model.detached(h)),
}

# ---- operators


def broadcast_together(one, other):
    try:
        numpy.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return False
    return True


def multiplicable(one, other):
    return len(one.shape) == 2 and len(other.shape) in (1, 2) and one.shape[1] == other.shape[0]


def pointwise(function, bound):
    """A step of an element-wise function of handles and numbers."""
    compiled = jax.jit(function)

    def interpret(grad_mode, *operands):
        handles = [h for h in operands if isinstance(h, functional.Handle)]
        value = compiled(*map(content, operands))
        dims = layout(value.shape, [h.places for h in handles])
        requires_grad = model.tracks(grad_mode, *handles)
        return model.new(value, dims, bound(*map(size, operands)), requires_grad)

    return interpret


def layout(shape, places):
    """The dimensions from the outermost to the innermost loop of PyTorch's kernels.

    The inner one of two dimensions has the smaller stride in the first operand that has both; if
    the strides are equal, fewer elements; if these are equal too, it comes later in the shape.
    """
    strides = [numpy.broadcast_to(operand, shape).strides for operand in places]
    inwards = list(reversed(range(len(shape))))
    for start in range(1, len(shape)):
        place = start
        for position in reversed(range(start)):
            order = further_out(strides, shape, inwards[position], inwards[place])
            if order < 0:
                break
            if order > 0:
                inwards[position], inwards[place] = inwards[place], inwards[position]
                place = position
    return tuple(reversed(inwards))


def further_out(strides, shape, one, other):
    """1 if `one` is an outer dimension of `other` in memory, -1 if an inner one, 0 if undecided."""
    for steps in strides:
        if 0 in (steps[one], steps[other]):
            continue
        if steps[one] != steps[other]:
            return 1 if steps[one] > steps[other] else -1
        if shape[one] > shape[other]:
            return 1
    return 0


def content(operand):
    return functional.read(operand) if isinstance(operand, functional.Handle) else operand


def size(operand):
    return operand.bound if isinstance(operand, functional.Handle) else abs(operand)


def summed(grad_mode, handle, dim):
    value = functional.read(handle).sum(dim)
    requires_grad = model.tracks(grad_mode, handle)
    return model.new(value, None, handle.bound * handle.shape[dim], requires_grad)


def multiplied(grad_mode, one, other):
    value = functional.read(one) @ functional.read(other)
    requires_grad = model.tracks(grad_mode, one, other)
    return model.new(value, None, one.bound * other.bound * one.shape[1], requires_grad)


def made_contiguous(grad_mode, handle):
    if handle.places.flags.c_contiguous:
        raise Skipped  # it is the tensor itself
    value = functional.read(handle)
    return model.new(value, None, handle.bound, model.tracks(grad_mode, handle))


def a_number(handle, b, c):
    return (0.25 * (c + 1) - 1.1,)


OPERATORS = {
    "add": Kind(
        lambda torch, x, y: x + y,
        pointwise(lambda x, y: x + y, lambda x, y: x + y),
        partner=broadcast_together,
    ),
    "mul": Kind(
        lambda torch, x, y: x * y,
        pointwise(lambda x, y: x * y, lambda x, y: x * y),
        partner=broadcast_together,
    ),
    "scale": Kind(
        lambda torch, x, number: x * number,
        pointwise(lambda x, number: x * number, lambda x, number: x * number),
        a_number,
    ),
    "sin": Kind(lambda torch, x: x.sin(), pointwise(jnp.sin, lambda x: 1.0)),
    "clone": Kind(lambda torch, x: x.clone(), pointwise(lambda x: x, lambda x: x)),
    "sum": Kind(lambda torch, x, dim: x.sum(dim), summed, any_dim),
    "matmul": Kind(lambda torch, x, y: x @ y, multiplied, partner=multiplicable),
    "contiguous": Kind(lambda torch, x: x.contiguous(), made_contiguous),
}

# ---- writes


def fits(target, source):
    """Whether the source broadcasts to the target's shape."""
    both = broadcast_together(target, source)
    return both and numpy.broadcast_shapes(target.shape, source.shape) == target.shape


def same_shape(target, source):
    return bool(target.shape) and target.shape == source.shape


def unaliased(torch, target, source):
    """The source, or its clone where PyTorch refuses because it overlaps the target."""
    apart = target.untyped_storage() != source.untyped_storage()
    whole = target.shape == source.shape and target.stride() == source.stride()
    together = whole and target.storage_offset() == source.storage_offset()
    return source if apart or together else source.clone()


def write_kind(call, function, bound, choose=lambda handle, b, c: (), partner=None, uniform=False):
    """A step that writes `function(target, source)`, or `function` of parameters, to the target."""
    compiled = jax.jit(function)

    def interpret(grad_mode, target, *operands):
        value = compiled(functional.read(target), *map(content, operands))
        sources = [h for h in operands if isinstance(h, functional.Handle)]
        limit = bound(target.bound, *map(size, operands))
        model.write(target, value, limit, grad_mode, *sources, uniform=uniform)

    def called(torch, target, *operands):
        if partner is not None:
            operands = (unaliased(torch, target, operands[0]), *operands[1:])
        call(torch, target, *operands)

    return Kind(called, interpret, choose, partner)


def set_row(grad_mode, target, *parameters):
    """`target[i] = source`: the row is a view of its own."""
    *source, dim, position = parameters
    row = model.view(target, lambda p: p[along(dim, position)], True)
    value = content(source[0]) if source else 0.5
    value = jnp.broadcast_to(value, row.shape)
    model.write(row, value, size(source[0]) if source else 0.5, grad_mode, *source)


def set_item(torch, target, *parameters):
    *source, dim, position = parameters
    target[along(dim, position)] = unaliased(torch, target, source[0]) if source else 0.5


def fits_a_row(target, source):
    return bool(target.shape) and fits(target, source) and len(source.shape) < len(target.shape)


def first_row(handle, b, c):
    return (0, c % handle.shape[0]) if handle.shape else None


def every_third(shape):
    return numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) % 3 == 1


def masked_fill(torch, target, number):
    target.masked_fill_(torch.tensor(every_third(tuple(target.shape)).tolist()), number)


def distinct(handle, b, c):
    """A number, except where PyTorch would warn and write in an undefined order."""
    return None if functional.overlaps_itself(handle) else a_number(handle, b, c)


def add_backwards(torch, target, source):
    count = target.shape[0]
    target.index_add_(0, torch.tensor(list(range(count))[::-1]), source.clone())


def add_in_place(torch, target, source):
    target += source


def rearranging(call, places, choose):
    def interpret(grad_mode, handle, *parameters):
        model.rearrange(handle, places(handle.places, *parameters), grad_mode)

    def called(torch, target, *parameters):
        call(target, *parameters)

    return Kind(called, interpret, choose)


def added(x, y):
    return x + y


def scaled(x, y):
    return x * y


WRITES = {
    "add_": write_kind(lambda torch, x, y: x.add_(y), added, added, partner=fits),
    "mul_": write_kind(lambda torch, x, y: x.mul_(y), scaled, scaled, partner=fits),
    "iadd": write_kind(add_in_place, added, added, partner=fits),
    "copy_": write_kind(
        lambda torch, x, y: x.copy_(y),
        lambda x, y: jnp.broadcast_to(y, x.shape),
        lambda x, y: y,
        partner=fits,
    ),
    "index_add_": write_kind(add_backwards, lambda x, y: x + y[::-1], added, partner=same_shape),
    "add_number_": write_kind(lambda torch, x, y: x.add_(y), added, added, a_number),
    "mul_number_": write_kind(lambda torch, x, y: x.mul_(y), scaled, scaled, a_number),
    "fill_": write_kind(
        lambda torch, x, y: x.fill_(y),
        lambda x, y: jnp.full(x.shape, y, x.dtype),
        lambda x, y: y,
        a_number,
        uniform=True,
    ),
    "zero_": write_kind(lambda torch, x: x.zero_(), jnp.zeros_like, lambda x: 0.0, uniform=True),
    "sin_": write_kind(lambda torch, x: x.sin_(), jnp.sin, lambda x: 1.0),
    "clamp_": write_kind(
        lambda torch, x: x.clamp_(-0.4, 0.6),
        lambda x: jnp.where(x < -0.4, -0.4, jnp.where(x > 0.6, 0.6, x)),
        lambda x: x,
    ),
    "masked_fill_": write_kind(
        masked_fill,
        lambda x, y: jnp.where(every_third(x.shape), y, x),
        lambda x, y: max(x, y),
        distinct,
    ),
    "set_row": Kind(set_item, set_row, first_row, fits_a_row),
    "set_row_number": Kind(set_item, set_row, element),
    # under no_grad PyTorch moves the dimensions of the tensor and not those of its history
    "t_": rearranging(
        lambda x: x.t_(), lambda p: p.T, lambda h, b, c: () if len(h.shape) < 3 else None
    ),
    "unsqueeze_": rearranging(
        lambda x, d: x.unsqueeze_(d), lambda p, d: numpy.expand_dims(p, d), new_dim
    ),
}

REARRANGING = ("t_", "unsqueeze_")
KINDS = VIEWS | OPERATORS | WRITES
NAMES = (*VIEWS, *OPERATORS, *WRITES)

# ---- programs

drawn_steps = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(0, 11),  # which of the handles
        st.integers(0, 7),  # which of those that go with it, or a parameter
        st.integers(0, 7),  # a parameter
        st.integers(0, 7),  # under no_grad if 0
    ),
    min_size=2,
    max_size=12,
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The results of a program.

    values: by name, of every handle that may be read. errors: for each step the name of its
    exception, or None. strides: of every handle, without those of dimensions of one element.
    """

    steps: tuple
    errors: tuple
    values: dict
    gradients: tuple
    strides: dict

    def __str__(self):
        lines = ["h0, h1, h2 = a * 1.0, b * 1.0, c"]
        names = iter(range(3, 100))
        for step, error in zip(self.steps, self.errors, strict=True):
            makes = error is None and step.kind not in WRITES
            name = f"h{next(names)} = " if makes else ""
            lines.append(name + str(step) + (f"  # raises {error}" if error else ""))
        return "\n".join(lines)


def numbers(name):
    shape = SHAPES[name]
    values = numpy.sin(ord(name) + 1.3 * numpy.arange(numpy.prod(shape)))
    return numpy.round(values, 3).reshape(shape)


def weights(position, shape):
    phase = 0.3 + position
    return numpy.cos(phase + 0.7 * numpy.arange(numpy.prod(shape, dtype=int))).reshape(shape)


def significant(shape, strides):
    return [stride for extent, stride in zip(shape, strides, strict=True) if extent > 1]


def chosen(draw, handles):
    """The step that drawn numbers select; None if no operands have fitting shapes."""
    name, a, b, c, mode = draw
    kind = KINDS[name]
    readable = [i for i, handle in enumerate(handles) if handle.is_readable]
    first = readable[a % len(readable)]
    parameters = kind.choose(handles[first], b, c)
    if parameters is None:
        return None
    operands = (first,)
    if kind.partner is not None:
        partners = [i for i in readable if kind.partner(handles[first], handles[i])]
        if not partners:
            return None
        operands = (first, partners[b % len(partners)])
    if name == "copy_" and len(set(operands)) == 1:
        return None  # PyTorch does nothing and raises nothing
    return Step(name, operands, parameters, grad_mode=mode > 0 or name in REARRANGING)


def interpret(draws):
    """The drawn steps and their results, by JAX alone."""
    record = {}
    gradients, values = jax.grad(_loss, (0, 1), has_aux=True)(*_leaves(), draws, record)
    return Outcome(values=values, gradients=gradients, **record)


def interpret_twice(draws):
    """The gradients of the sum of the squares of the gradients."""

    def steepness(a, b):
        gradients, _ = jax.grad(_loss, (0, 1), has_aux=True)(a, b, draws, {})
        return sum(jnp.sum(gradient * gradient) for gradient in gradients)

    return jax.grad(steepness, (0, 1))(*_leaves())


def _leaves():
    return jnp.asarray(numbers("a")), jnp.asarray(numbers("b"))


def _loss(a, b, draws, record):
    """The weighted sum of all values that may be read after the steps; and its terms."""
    c = functional.contiguous(jnp.asarray(numbers("c")), requires_grad=False)
    handles = [model.tracked(h) for h in (functional.contiguous(a), functional.contiguous(b), c)]
    taken = list(filter(None, [taken_step(draw, handles) for draw in draws]))
    readable = {f"h{i}": handle for i, handle in enumerate(handles) if handle.is_readable}
    record["steps"] = tuple(step for step, error in taken)
    record["errors"] = tuple(error for step, error in taken)
    record["strides"] = {name: significant(h.shape, h.strides) for name, h in readable.items()}
    values = {name: functional.read(handle) for name, handle in readable.items()}
    return sum(weighted(int(name[1:]), value) for name, value in values.items()), values


def weighted(position, value):
    return _weighted(value, weights(position, value.shape))


@jax.jit
def _weighted(value, factors):
    return jnp.sum(value * factors)


def taken_step(draw, handles):
    """Run a step in the model; return it with its error, or None if nothing was run."""
    step = chosen(draw, handles)
    if step is None:
        return None
    operands = [handles[i] for i in step.operands]
    try:
        handle = KINDS[step.kind].interpret(step.grad_mode, *operands, *step.parameters)
    except Skipped:
        return None
    except Forbidden:
        return step, "RuntimeError"
    if handle is not None:
        handles.append(handle)
    return step, None


def take(torch, step, handles):
    """Run a step; return the name of its error, or None."""
    operands = [handles[i] for i in step.operands]
    with torch.set_grad_enabled(step.grad_mode):
        handle = KINDS[step.kind].call(torch, *operands, *step.parameters)
    if handle is not None:
        handles.append(handle)


def refuses(torch, step, handles):
    """Run a step that raises; return the name of the exception."""
    try:
        take(torch, step, handles)
    except RuntimeError as error:
        return type(error).__name__
    return None


def leaves(torch):
    """The leaves a and b."""
    return [
        torch.tensor(numbers(name).tolist(), dtype=torch.float64, requires_grad=True)
        for name in ("a", "b")
    ]


def taken(torch, program, a, b):
    """The handles after the steps of an interpreted program, and the errors of the steps."""
    c = torch.tensor(numbers("c").tolist(), dtype=torch.float64)
    handles = [a * 1.0, b * 1.0, c]
    errors = tuple(
        (refuses if error else take)(torch, step, handles)
        for step, error in zip(program.steps, program.errors, strict=True)
    )
    return handles, errors


def read(torch, program, handles, backwards=False):
    """The handles that may be read, by name, and the weighted sum of their values."""
    order = sorted(program.values, key=lambda name: int(name[1:]), reverse=backwards)
    readable = {name: handles[int(name[1:])] for name in order}
    return readable, sum(total(torch, int(name[1:]), tensor) for name, tensor in readable.items())


def run(torch, program, backwards=False):
    """The results of an interpreted program's steps with a module, and its handles."""
    inputs = leaves(torch)
    handles, errors = taken(torch, program, *inputs)
    readable, loss = read(torch, program, handles, backwards)
    outcome = Outcome(
        program.steps,
        errors,
        {name: tensor.detach().numpy() for name, tensor in readable.items()},
        tuple(gradient.numpy() for gradient in gradients_of(torch, loss, inputs)),
        {name: significant(t.shape, t.stride()) for name, t in readable.items()},
    )
    return outcome, handles


def run_twice(torch, program):
    """The gradients of the sum of the squares of the gradients."""
    inputs = leaves(torch)
    handles, _ = taken(torch, program, *inputs)
    _, loss = read(torch, program, handles)
    steepness = sum((g * g).sum() for g in gradients_of(torch, loss, inputs, create_graph=True))
    return [gradient.numpy() for gradient in gradients_of(torch, steepness, inputs)]


def total(torch, position, tensor):
    factors = weights(position, tuple(tensor.shape)).tolist()
    return (tensor * torch.tensor(factors, dtype=torch.float64)).sum()


def gradients_of(torch, loss, inputs, create_graph=False):
    if not loss.requires_grad:
        return [torch.zeros_like(tensor) for tensor in inputs]
    return torch.autograd.grad(loss, inputs, create_graph=create_graph, materialize_grads=True)
