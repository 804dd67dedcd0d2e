"""Random programs (programs.py) on duals, against JAX's tangents.

Forward mode does not ask for grad mode, and no tensor need require grad: so a step under no_grad is
like any other, and PyTorch refuses only to write where elements overlap. The interpretation is that
of programs.py without what it says of the two.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy
from storage import functional, model, programs
from storage.compare import close


@dataclasses.dataclass(frozen=True)
class Expected:
    """What a program comes to: its steps with their errors, and of every handle by name its value
    and its tangent. `twice`: likewise the tangents of the tangents, along other directions.
    """

    steps: tuple
    errors: tuple
    values: dict
    tangents: dict
    twice: dict

    __str__ = programs.Outcome.__str__


def direction(name, phase):
    shape = programs.SHAPES[name]
    return numpy.round(numpy.cos(phase + 0.9 * numpy.arange(numpy.prod(shape))), 3).reshape(shape)


def directions(phase):
    return tuple(jnp.asarray(direction(name, phase)) for name in "ab")


def leaves():
    return tuple(jnp.asarray(programs.numbers(name)) for name in "ab")


def interpret(draws) -> Expected:
    """The drawn steps and their results, by JAX alone."""
    steps = []

    def values_of(a, b):
        c = functional.contiguous(jnp.asarray(programs.numbers("c")), requires_grad=False)
        handles = [functional.contiguous(a), functional.contiguous(b), c]
        handles = [model.tracked(handle) for handle in handles]
        steps[:] = filter(None, [taken_step(draw, handles) for draw in draws])
        return {f"h{i}": functional.read(handle) for i, handle in enumerate(handles)}

    def tangents_of(a, b):
        return jax.jvp(values_of, (a, b), directions(0.2))

    results, (_, twice) = jax.jvp(tangents_of, leaves(), directions(1.7))
    errors = tuple(error for _, error in steps)
    return Expected(tuple(step for step, _ in steps), errors, *results, twice)


def taken_step(draw, handles):
    step = programs.chosen(draw, handles)
    if step is None:
        return None
    operands = [handles[i] for i in step.operands]
    try:
        handle = programs.KINDS[step.kind].interpret(True, *operands, *step.parameters)
    except model.Skipped:
        return None
    except model.Forbidden:
        return step, "RuntimeError"
    if handle is not None:
        handles.append(dataclasses.replace(handle, creation=""))
    return step, None


def leaf(torch, name):
    return torch.tensor(programs.numbers(name).tolist(), dtype=torch.float64)


def tangent_like(torch, name, phase):
    return torch.tensor(direction(name, phase).tolist(), dtype=torch.float64)


def run(torch, program, backwards=False, levels=(0.2,)):
    """The handles of a program over duals, by name, and their tangents at the innermost level."""
    forward_ad = torch.autograd.forward_ad
    leaves = [leaf(torch, name) for name in "ab"]
    for phase in levels:
        pairs = [
            (x, tangent_like(torch, name, phase)) for x, name in zip(leaves, "ab", strict=True)
        ]
        leaves = [forward_ad.make_dual(*pair, level=levels.index(phase)) for pair in pairs]
    handles, errors = programs.taken(torch, program, *leaves)
    assert errors == program.errors, f"{program}\n{errors}"
    names = sorted(program.values, key=lambda name: int(name[1:]), reverse=backwards)
    return {name: forward_ad.unpack_dual(handles[int(name[1:])]) for name in names}


def zeros_for_none(torch, pair):
    return torch.zeros_like(pair.primal) if pair.tangent is None else pair.tangent


def check(torch, draws, backwards=False):
    """Compares values and tangents."""
    with jax.enable_x64(True):
        expected = interpret(draws)
    with torch.autograd.forward_ad.dual_level():
        for name, pair in run(torch, expected, backwards).items():
            where = f"{torch.__name__}: {name} of\n{expected}\n"
            close(pair.primal.numpy(), expected.values[name], where)
            close(zeros_for_none(torch, pair).numpy(), expected.tangents[name], f"tangent, {where}")


def check_twice(torch, draws):
    """Compares tangents of tangents: of two levels, one inside the other."""
    with jax.enable_x64(True):
        expected = interpret(draws)
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level(), forward_ad.dual_level():
        for name, pair in run(torch, expected, levels=(1.7, 0.2)).items():
            inner = forward_ad.unpack_dual(zeros_for_none(torch, pair), level=0)
            where = f"{name} of\n{expected}\n"
            close(inner.primal.numpy(), expected.tangents[name], f"tangent, {where}")
            twice = zeros_for_none(torch, inner).numpy()
            close(twice, expected.twice[name], f"second tangent, {where}")


def check_with_gradients(torch, draws, backwards=False):
    """Compares values and gradients, and the tangents of both, of duals that require grad; grad
    mode is on, so that a write may be refused for the sake of gradients.
    """
    draws = [(*draw[:-1], 1) for draw in draws]

    def both(a, b):
        gradients, values = jax.grad(programs._loss, (0, 1), has_aux=True)(a, b, draws, {})
        return values, gradients

    with jax.enable_x64(True):
        program = programs.interpret(draws)
        expected, moved = jax.jvp(both, leaves(), directions(0.2))
    with torch.autograd.forward_ad.dual_level():
        duals = gradients_of_duals(torch, program, backwards)
        for pairs, wanted, slopes in zip(duals, expected, moved, strict=True):
            for name, pair in pairs.items():
                where = f"{name} of\n{program}\n"
                close(pair.primal.detach().numpy(), wanted[name], where)
                tangent = zeros_for_none(torch, pair).detach().numpy()
                close(tangent, slopes[name], f"tangent, {where}")


def gradients_of_duals(torch, program, backwards):
    """The handles of a program over duals that require grad, and the gradients of their sum."""
    forward_ad = torch.autograd.forward_ad
    inputs = programs.leaves(torch)
    pairs = [(x, tangent_like(torch, name, 0.2)) for x, name in zip(inputs, "ab", strict=True)]
    handles, errors = programs.taken(torch, program, *[forward_ad.make_dual(*p) for p in pairs])
    assert errors == program.errors, f"{program}\n{errors}"
    readable, loss = programs.read(torch, program, handles, backwards)
    gradients = programs.gradients_of(torch, loss, inputs)
    return (
        {name: forward_ad.unpack_dual(tensor) for name, tensor in readable.items()},
        dict(enumerate(map(forward_ad.unpack_dual, gradients))),
    )


def check_compiled(torch, draws):
    """Compares a program whose duals are made and unpacked in a compiled function."""
    with jax.enable_x64(True):
        expected = interpret(draws)

    @torch.jit
    def compiled():
        with torch.autograd.forward_ad.dual_level():
            pairs = run(torch, expected)
            return {name: zeros_for_none(torch, pair) for name, pair in pairs.items()}

    for name, tangent in compiled().items():
        close(tangent.numpy(), expected.tangents[name], f"jit of\n{expected}\n{name}")
