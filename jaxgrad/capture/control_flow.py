"""Control flow that depends on values: `cond`, `while_loop`, `scan`, `fori_loop`.

Where there are numbers these are Python's own `if` and `for`, and the tape records what runs. In a
trace (jaxgrad.jit, jax.jit, vmap) there are none: each function is traced by itself
(capture/subgraph.py), and the whole is one node, of a program on JAX's own control flow. Its
derivatives are those that JAX derives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .. import ops
from ..core import dtypes, executor
from ..core.tracebacks import api_boundary
from ..frontend import tensor_data
from ..tape import mode
from ..tape.tensor import Tensor, current, wrap
from .subgraph import (
    Flow,
    Loop,
    Reads,
    Step,
    Traced,
    apply,
    as_tensor,
    flatten,
    refuse_write,
    strong,
)


def is_traced(leaves) -> bool:
    """Whether there are no numbers here: inside of a trace."""
    if mode.scope.get() is not None or executor.is_traced():
        return True
    return any(isinstance(leaf._array, jax.core.Tracer) for leaf in leaves)


def same(name: str, first, second, what: str):
    """Raises RuntimeError where two lists of abstract values, or of tensors, differ."""
    lists = [[(tuple(each.shape), each.dtype) for each in one] for one in (first, second)]
    if lists[0] != lists[1]:
        shown = [", ".join(f"{dtype}{list(shape)}" for shape, dtype in one) for one in lists]
        raise RuntimeError(f"{name}: {what}: ({shown[0]}) and ({shown[1]})")


def call(name, function, arguments):
    """A function called where there are numbers. Raises RuntimeError where it writes to them."""
    tensors = [each for each in jax.tree.leaves(arguments, is_leaf=_is_tensor) if _is_tensor(each)]
    before = [tensor._version for tensor in tensors]
    result = function(*arguments)
    for tensor, version in zip(tensors, before, strict=True):
        if tensor._version != version:
            refuse_write(name, tensor)
    return result


def _is_tensor(value):
    return isinstance(value, Tensor)


@api_boundary
def cond(pred, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`.

    pred: a tensor of one element, or a bool; operands: tensors, or trees of them. Both functions
    give tensors, or the same tree of them, of the same shapes and dtypes; what they read from
    outside has its gradient. In a trace both are traced and the one that is needed runs.

    Raises RuntimeError for results that differ, for a function that writes to what it is given or
    reaches outside, and in a trace for one that draws random numbers.

    >>> @jaxgrad.jit
    ... def f(x):
    ...     return jaxgrad.cond(x.sum() > 0, lambda x: x * 2, lambda x: x.exp(), (x,))
    >>> f(jaxgrad.tensor([1.0, 2.0])), f(jaxgrad.tensor([0.0, 0.0]))
    (tensor([2., 4.]), tensor([1., 1.]))
    """
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, tuple | list):
        raise RuntimeError(
            f"cond: operands are a tuple or a list of tensors, but got {type(operands).__name__}"
        )
    pred = _predicate("cond", pred)
    if not isinstance(pred, Tensor):
        result = call("cond", true_fn if pred else false_fn, tuple(operands))
        leaves, structure = flatten("cond", result)
        return jax.tree.unflatten(structure, leaves)
    leaves, structure = flatten("cond", tuple(operands))
    functions = [Traced("cond", each, leaves, structure) for each in (true_fn, false_fn)]
    if functions[0].structure != functions[1].structure:
        raise RuntimeError(
            "cond: true_fn and false_fn give trees of different structure: "
            f"{functions[0].structure} and {functions[1].structure}"
        )
    same("cond", functions[0].avals, functions[1].avals, "true_fn and false_fn give other tensors")
    reads, count = Reads(functions), len(leaves)

    def run(flag, *arrays):
        def branch(function):
            return lambda *arrays: reads.run(function, arrays[:count], arrays[count:])

        return jax.lax.cond(flag, *map(branch, functions), *arrays)

    leaves = [pred, *leaves, *reads.tensors]
    return apply(Flow("Cond", leaves, run), leaves, functions[0].structure)


def _predicate(name, pred):
    """A bool, or in a trace a tensor of one."""
    if not isinstance(pred, Tensor | jax.Array):
        if not isinstance(pred, bool | int | float):
            raise RuntimeError(
                f"{name}: pred is a tensor of one element or a bool, not {type(pred).__name__}"
            )
        return bool(pred)
    array = current(pred)._raw if isinstance(pred, Tensor) else pred
    if array.size != 1:
        raise RuntimeError(
            f"{name}: Expected pred to be bool or single-element tensor, but it has shape "
            f"{list(array.shape)}"
        )
    array = jax.lax.stop_gradient(array).reshape(()) != 0
    return wrap(array) if isinstance(array, jax.core.Tracer) else bool(array)


@api_boundary
def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """`carried = body_fn(*carried)` while `cond_fn(*carried)` holds; gives the last of them.

    carried_inputs: tensors, or trees of them, whose shapes and dtypes stay the same. What the two
    functions read from outside has its gradient. In a trace there is forward mode alone: a backward
    pass raises RuntimeError there, and works where there are numbers.

    Raises RuntimeError for a body that gives other shapes or dtypes, for a function that writes to
    what it is given or reaches outside, and in a trace for one that draws random numbers.

    >>> @jaxgrad.jit
    ... def f(x):
    ...     return jaxgrad.while_loop(lambda x: x < 100, lambda x: (x * 2,), (x,))[0]
    >>> f(jaxgrad.tensor(3))
    tensor(192)
    """
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(
            "while_loop: carried_inputs are a tuple or a list of tensors, but got "
            f"{type(carried_inputs).__name__}"
        )
    leaves, structure = flatten("while_loop", tuple(carried_inputs))
    if not is_traced(leaves):
        return _while_here(cond_fn, body_fn, leaves, structure)
    test = Traced("while_loop", cond_fn, leaves, structure)
    body = Traced("while_loop", _as_tuple(body_fn), leaves, structure)
    _check_carried("while_loop", leaves, structure, body.avals, body.structure)
    if len(test.avals) != 1 or test.avals[0].shape.numel() != 1:
        raise RuntimeError("while_loop: cond_fn must give a bool, or a tensor of one element")
    reads, count = Reads([test, body]), len(leaves)

    def run(*arrays):
        read = arrays[count:]
        return jax.lax.while_loop(
            lambda carried: reads.run(test, carried, read)[0].reshape(()) != 0,
            lambda carried: reads.run(body, carried, read),
            list(map(strong, arrays[:count])),
        )

    leaves = [*leaves, *reads.tensors]
    return apply(Loop("WhileLoop", leaves, run), leaves, structure)


def _as_tuple(body):
    def carried(*args):
        result = body(*args)
        return tuple(result) if isinstance(result, tuple | list) else (result,)

    return carried


def _check_carried(name, leaves, structure, found, found_structure):
    if structure != found_structure:
        raise RuntimeError(
            f"{name}: the body gives another tree than it is given: {found_structure} for "
            f"{structure}"
        )
    same(name, leaves, found, "what is carried must keep its shapes and dtypes")


def _while_here(test, body, leaves, structure):
    carried = jax.tree.unflatten(structure, leaves)
    while _predicate("while_loop", call("while_loop", test, carried)):
        carried = _as_tuple(lambda *args: call("while_loop", body, args))(*carried)
        found, found_structure = flatten("while_loop", carried)
        _check_carried("while_loop", leaves, structure, found, found_structure)
        carried = jax.tree.unflatten(structure, found)
    return carried


@api_boundary
def scan(combine_fn: Callable, init, xs, *, dim: int = 0, reverse: bool = False):
    """`carry, y = combine_fn(carry, x)` for each slice `x` of `xs` along `dim`; gives the last
    carry, and all `y` as one, along a new dimension 0.

    init, xs, y: tensors, or trees of them; reverse: from the last slice to the first, whose `y`
    still comes first. Every mode of derivative works, with respect to what is read from outside
    too. In a trace the function is traced once, however many slices there are.

    Raises RuntimeError for slices of different number, for a carry that changes its shape or dtype,
    for a function that writes to what it is given or reaches outside, and for one that draws random
    numbers where the trace is one of JAX's own.

    >>> add = lambda total, x: (total + x, total * x)
    >>> jaxgrad.scan(add, jaxgrad.tensor(0.0), jaxgrad.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    carry, structure = flatten("scan", init)
    slices, shape = flatten("scan", xs)
    if not slices or any(each.ndim == 0 for each in slices):
        raise RuntimeError(
            "scan: All xs leaves must at least have 'dim' number of dimensions and scan dimension "
            "> 0"
        )
    lengths = {each.shape[dim] for each in slices}
    if len(lengths) > 1:
        raise RuntimeError(f"scan: xs have different numbers of slices: {sorted(lengths)}")
    slices = [ops.movedim(each, dim, 0) for each in slices] if dim else slices
    if is_traced([*carry, *slices]):
        return _scan_traced(combine_fn, carry, structure, slices, shape, reverse)
    if lengths == {0}:  # a trace alone says what the outputs are like
        with jax.enable_x64(True):
            return _scan_traced(combine_fn, carry, structure, slices, shape, reverse)
    return _scan_here(combine_fn, carry, structure, slices, shape, reverse)


def _pair(result):
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise RuntimeError("scan: combine_fn must give a pair: the next carry, and an output")
    return tuple(result)


def _scan_traced(combine, carry, structure, slices, shape, reverse):
    firsts = [_slice_like(each) for each in slices]
    example = jax.tree.unflatten(structure, carry), jax.tree.unflatten(shape, firsts)
    both = jax.tree.structure(example, is_leaf=_is_tensor)
    step = Traced("scan", lambda c, x: _pair(combine(c, x)), [*carry, *firsts], both, Step)
    next_structure, _ = step.structure.children()
    count, length = next_structure.num_leaves, slices[0].shape[0]
    _check_carried("scan", carry, structure, step.avals[:count], next_structure)
    states = [each.reserve(length) for each in step.drawing if length]
    numbers = range(length)[::-1] if reverse else range(length)

    def run(*arrays):
        given, xs, rest = split(arrays, count, len(slices))
        read, drawn = split(rest, len(step.reads))

        def body(carried, x):
            *x, number = x
            now = [each.at(*pair, number) for each, *pair in zip(step.drawing, drawn, strict=False)]
            found = step.run([*carried, *x], [*read, *now])
            return list(found[:count]), list(found[count:])

        xs = [*xs, jnp.asarray(numbers, jnp.int32)]
        last, outputs = jax.lax.scan(body, list(map(strong, given)), xs, reverse=reverse)
        return [*last, *outputs]

    leaves = [*carry, *slices, *step.reads, *states]
    return apply(Flow("Scan", leaves, run), leaves, step.structure)


def split(arrays, *counts):
    """Some arrays as so many each, and the rest."""
    found = []
    for count in counts:
        found.append(arrays[:count])
        arrays = arrays[count:]
    return *found, arrays


def _slice_like(tensor):
    """A tensor of the shape of a slice, for a trace to begin with."""
    array = jnp.zeros(tensor.shape[1:], tensor.dtype.numpy)
    return wrap(array, None, tensor._requires_grad)


def _scan_here(combine, carry, structure, slices, shape, reverse):
    carried, outputs = jax.tree.unflatten(structure, carry), []
    numbers = range(slices[0].shape[0])
    for number in reversed(numbers) if reverse else numbers:
        x = jax.tree.unflatten(shape, [each[number] for each in slices])
        carried, output = _pair(call("scan", combine, (carried, x)))
        found, found_structure = flatten("scan", carried)
        _check_carried("scan", carry, structure, found, found_structure)
        carried = jax.tree.unflatten(structure, found)
        outputs.append(flatten("scan", output))
    lists = [leaves for leaves, _ in (outputs[::-1] if reverse else outputs)]
    stacked = [ops.stack(list(each)) for each in zip(*lists, strict=True)]
    return carried, jax.tree.unflatten(outputs[0][1], stacked)


@api_boundary
def fori_loop(lower, upper, body: Callable, init):
    """`value = body(i, value)` for each `i` from `lower` up to `upper`, less `upper` itself,
    beginning with `init`; gives the last one.

    lower, upper: Python numbers, and then every mode of derivative works; or tensors of one
    integer, and then it is a `while_loop`. `i` is an int64 tensor; values are tensors, or trees of
    them.

    >>> jaxgrad.fori_loop(0, 4, lambda i, x: x * 2 + i, jaxgrad.tensor(1.0))
    tensor(27.)
    """
    bounds = [_bound(each) for each in (lower, upper)]
    if not any(isinstance(each, Tensor) for each in bounds):
        numbers = ops.alias(tensor_data.tensor(list(range(*bounds)), dtype=dtypes.int64))
        return scan(lambda value, i: (body(i, value), ()), init, numbers)[0]
    first, last = (as_tensor("fori_loop", each).to(dtypes.int64).reshape(()) for each in bounds)
    found = while_loop(
        lambda i, value: i < last, lambda i, value: (i + 1, body(i, value)), (first, init)
    )
    return found[1]


def _bound(bound):
    """A Python number where it is known."""
    if isinstance(bound, Tensor):
        return bound if is_traced([bound]) else int(bound.item())
    if isinstance(bound, bool) or not hasattr(bound, "__index__"):
        raise TypeError(
            f"fori_loop: a bound is an int or a tensor of one, not {type(bound).__name__}"
        )
    return int(bound)
