"""Random programs of Functions, operators, hooks and in-place writes, and their expected results.

A program is a list of steps on vectors, each a few small numbers. `run` runs one with jaxgrad or
with PyTorch; `reference` is the same in jax.numpy alone, where a write makes a new value and a hook
is an identity whose gradient is multiplied: so the derivatives are JAX's own.
"""

import functools
import itertools
from typing import NamedTuple

import hypothesis.strategies as st
import jax
import jax.numpy as jnp

SIZE = 3
START = [0.4, -0.7, 1.1]


class Step(NamedTuple):
    kind: int
    first: int
    second: int
    number: int


steps = st.lists(
    st.builds(Step, *[st.integers(0, 2**10)] * 4),
    min_size=1,
    max_size=8,
)


# ---- Functions, each with the jax.numpy function that it is


def functions(torch):
    """Functions of one or two tensors, by name; their rules are right."""
    base, classes = torch.autograd.Function, {}

    def add(name, forward, backward, **members):
        members = {key: staticmethod(value) for key, value in members.items()}
        members |= {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        classes[name] = type(name, (base,), members)

    add("Sine", saving(lambda x: (x.sin(), [x])), lambda ctx, g: g * ctx.saved_tensors[0].cos())
    add("Exponential", saves_output, lambda ctx, g: g * ctx.saved_tensors[0])
    add(
        "Square",
        lambda x: x * x,
        lambda ctx, g: 2 * ctx.saved_tensors[0] * g,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    add(
        "Product",
        saving(lambda x, y: (x * y, [x, y])),
        lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
    )
    add("Scaled", scaled, lambda ctx, g: (g * ctx.factor, None))
    add("Both", both, lambda ctx, g, h: 2 * g + 2 * ctx.saved_tensors[0] * h)
    add("Tripled", tripled, lambda ctx, g: g * 3)
    add("Again", saving(lambda x: (x.sin() * x, [x])), functools.partial(again, torch))
    add("Nested", saving(lambda x: (classes["Square"].apply(x.cos()), [x])), nested(classes))
    add("Same", lambda ctx, x: x, lambda ctx, g: g * 1)
    return classes


def saving(compute):
    def forward(ctx, *tensors):
        output, kept = compute(*tensors)
        ctx.save_for_backward(*kept)
        return output

    return forward


def saves_output(ctx, x):
    output = (x * 0.5).exp() ** 2
    ctx.save_for_backward(output)
    return output


def scaled(ctx, x, factor):
    ctx.factor = factor
    return x * factor


def both(ctx, x):
    ctx.set_materialize_grads(True)
    ctx.save_for_backward(x)
    return x * 2, x * x


def tripled(ctx, x):
    x.mul_(3)
    ctx.mark_dirty(x)
    return x


def again(torch, ctx, grad):
    """The gradient by a pass inside the pass, as checkpointing does it."""
    (x,), recorded = ctx.saved_tensors, torch.is_grad_enabled()
    with torch.enable_grad():
        x = x if recorded else x.detach().requires_grad_()
        return torch.autograd.grad(x.sin() * x, x, grad, create_graph=recorded)[0]


def nested(classes):
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = classes["Scaled"].apply(
            classes["Product"].apply(x.cos(), classes["Sine"].apply(x)), -2.0
        )
        return slope * grad

    return backward


def intermediate(torch):
    """A Function that saves what is neither input nor output: PyTorch's second derivative of it is
    wrong.
    """

    def forward(ctx, x):
        ctx.save_for_backward(x.cos())
        return x.sin()

    members = {
        "forward": staticmethod(forward),
        "backward": staticmethod(lambda ctx, g: g * ctx.saved_tensors[0]),
    }
    return type("Intermediate", (torch.autograd.Function,), members)


class Operation(NamedTuple):
    name: str
    run: object  # with the functions and tensors
    reference: object  # with arrays
    # whether its backward goes by hooks that a reference knows nothing of: those of its result,
    # which it has saved, or by a pass of its own those of its input
    meets_hooks: bool = False

    def __repr__(self):
        return self.name


UNARY = [
    Operation("sine", lambda f, x: f["Sine"].apply(x), jnp.sin),
    Operation(
        "exponential",
        lambda f, x: f["Exponential"].apply(x * 0.3),
        lambda x: jnp.exp(0.3 * x),
        True,
    ),
    Operation("square", lambda f, x: f["Square"].apply(x), jnp.square),
    Operation("scaled", lambda f, x: f["Scaled"].apply(x, 0.5), lambda x: x * 0.5),
    Operation("first of both", lambda f, x: f["Both"].apply(x)[0], lambda x: x * 2),
    Operation("second of both", lambda f, x: f["Both"].apply(x)[1], jnp.square),
    Operation("all of both", lambda f, x: sum(f["Both"].apply(x)), lambda x: x * 2 + x * x),
    Operation("again", lambda f, x: f["Again"].apply(x), lambda x: jnp.sin(x) * x, True),
    Operation("nested", lambda f, x: f["Nested"].apply(x), lambda x: jnp.cos(x) ** 2),
    Operation("same", lambda f, x: f["Same"].apply(x), lambda x: x),
    Operation("tanh", lambda f, x: x.tanh(), jnp.tanh, True),
    Operation("cubed", lambda f, x: x**3, lambda x: x**3),
    Operation("turned", lambda f, x: x.flip(0), lambda x: x[::-1]),
    Operation("summed", lambda f, x: x.sum() * x, lambda x: x.sum() * x),
    Operation("intermediate", lambda f, x: f["Intermediate"].apply(x), jnp.sin),
]
BINARY = [
    Operation("product", lambda f, x, y: f["Product"].apply(x, y), lambda x, y: x * y),
    Operation("of one", lambda f, x, y: f["Product"].apply(x, x), lambda x, y: x * x),
    Operation("plus", lambda f, x, y: x + y, lambda x, y: x + y),
    Operation("minus", lambda f, x, y: x - 0.5 * y, lambda x, y: x - 0.5 * y),
    Operation("times", lambda f, x, y: x * y, lambda x, y: x * y),
]
WRITES = [
    Operation("tripled", lambda f, x, y: f["Tripled"].apply(x), lambda x, y: x * 3),
    Operation("add_", lambda f, x, y: x.add_(y), lambda x, y: x + y),
    Operation("mul_", lambda f, x, y: x.mul_(0.5), lambda x, y: x * 0.5),
    Operation("tanh_", lambda f, x, y: x.tanh_(), lambda x, y: jnp.tanh(x), True),
    Operation("set", lambda f, x, y: x.__setitem__(0, y[1]), lambda x, y: x.at[0].set(y[1])),
]
FACTORS = [0.5, 2.0, -1.0, None]


def plan(drawn, hooks=True, intermediates=True, meeting_hooks=False):
    """For each step its kind, the value that it takes, the other operand, and the operation or the
    factor of a hook. The first value is x.
    """
    program, count, fixed = [], 1, {0}
    kinds = ["unary"] * 3 + ["binary"] * 2 + ["write"] * 2 + ["hook"] * 2 * hooks
    operations = {"unary": UNARY if intermediates else UNARY[:-1], "binary": BINARY}
    operations |= {"write": WRITES, "hook": FACTORS}
    for step in drawn:
        kind, first, second = kinds[step.kind % len(kinds)], step.first % count, step.second % count
        what = operations[kind][step.number % len(operations[kind])]
        if kind == "write" and (first in fixed or first == second):
            continue  # a leaf; a view by a Function, or its base; what is read meanwhile
        if hooks and not meeting_hooks and getattr(what, "meets_hooks", False):
            continue
        program.append((kind, first, second, what))
        if getattr(what, "name", "") == "same":
            fixed |= {first, count}
        count += kind in ("unary", "binary")
    return program


def run(torch, planned, x):
    """The last value of a program, and how often hooks were called in what order."""
    classes, seen, values = functions(torch) | {"Intermediate": intermediate(torch)}, [], [x]
    for number, (kind, first, second, what) in enumerate(planned):
        if kind == "hook":
            values[first].register_hook(_hook(seen, number, what))
        elif kind == "unary":
            values.append(what.run(classes, values[first]))
        elif kind == "binary":
            values.append(what.run(classes, values[first], values[second]))
        else:
            what.run(classes, values[first], values[second])
    return sum(values[1:], values[0] * 0.1), seen


def _hook(seen, number, factor):
    def hook(grad):
        seen.append(number)
        return None if factor is None else grad * factor

    return hook


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def hooked(x, factor):
    """x, whose gradient is multiplied."""
    return x


hooked.defvjp(
    lambda x, factor: (hooked(x, factor), None),  # as for a derivative of the pass
    lambda factor, _, g: (g * factor,),
)


def reference(planned, x):
    """The same by jax.numpy. A hook applies to every use of the value it was registered on, also
    earlier ones, and not to a value that overwrites it.
    """
    factors, versions = {}, itertools.count(1)
    held = [0]
    for kind, first, _, what in planned:
        if kind == "hook":
            factors[held[first]] = factors.get(held[first], 1.0) * (what or 1.0)
        elif kind == "write":
            held[first] = next(versions)
        else:
            held.append(next(versions))
    versions = itertools.count(1)
    values = [hooked(x, factors.get(0, 1.0))]
    for kind, first, second, what in planned:
        if kind == "hook":
            continue
        operands = [values[first]] if kind == "unary" else [values[first], values[second]]
        value = hooked(what.reference(*operands), factors.get(next(versions), 1.0))
        if kind == "write":
            values[first] = value
        else:
            values.append(value)
    return sum(values[1:], values[0] * 0.1)


WEIGHTS = [1.0, -0.5, 0.25]


def derivatives(torch, planned, x):
    """The first derivative, and that of its product with weights; the order of the hooks."""
    weights = torch.tensor(WEIGHTS, dtype=torch.float64)
    value, seen = run(torch, planned, x)
    (first,) = torch.autograd.grad((value * weights).sum(), x, create_graph=True)
    order = list(seen)
    if not first.requires_grad:
        return value, first, torch.zeros(SIZE, dtype=torch.float64), order
    (second,) = torch.autograd.grad((first * weights).sum(), x, allow_unused=True)
    if second is None:
        second = torch.zeros(SIZE, dtype=torch.float64)
    return value, first, second, order


def expected(planned):
    """The expected result of `derivatives`, by JAX's own differentiation."""
    with jax.enable_x64(True):
        x, weights = jnp.array(START), jnp.array(WEIGHTS)

        def first(x):
            return jax.grad(lambda x: (reference(planned, x) * weights).sum())(x)

        second = jax.grad(lambda x: (first(x) * weights).sum())
        return reference(planned, x), first(x), second(x)
