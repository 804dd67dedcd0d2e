"""Control flow that depends on values: `cond`, `while_loop`, `scan`, `fori_loop`.

Eagerly these are Python's own `if` and `for`, and the tape records what runs. In a trace
(jaxgrad.jit, jax.jit, vmap) tensors have no values: each function is traced by itself
(capture/subgraph.py), and the call is one node, whose program uses JAX's control flow and whose
derivatives JAX derives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import ops
from ..core import dtypes, executor
from ..core.aval import types_of_trace
from ..core.meta_array import MetaArray
from ..core.pytorch_tensors import type_name
from ..core.tracebacks import shows_users_frames
from ..frontend import tensor_data
from ..tape import mode, pytree
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, wrap
from .subgraph import (
    ControlFlow,
    CountedScope,
    SharedReads,
    Subgraph,
    WhileLoop,
    apply,
    as_tensor,
    flatten,
    refuse_write,
    strong,
)


def is_traced(leaves) -> bool:
    """Whether a trace is under way, in which tensors have no values."""
    if mode.scope.get() is not None or executor.is_traced():
        return True
    # under jax.grad alone JAX computes at once, and still the values are tracers
    return any(isinstance(leaf._array, jax.core.Tracer) for leaf in leaves)


def check_same(name: str, first, second, what: str):
    """Raises RuntimeError where the shapes or dtypes in two lists of abstract values differ."""
    lists = [[(tuple(aval.shape), aval.dtype) for aval in one] for one in (first, second)]
    if lists[0] != lists[1]:
        shown = [", ".join(f"{dtype}{list(shape)}" for shape, dtype in one) for one in lists]
        raise RuntimeError(f"{name}: {what}: ({shown[0]}) and ({shown[1]})")


def call(name, function, arguments):
    """Call a function eagerly. Raises RuntimeError where it writes to its arguments."""
    tensors = list(filter(pytree.is_tensor, pytree.flatten(arguments)[0]))
    # refused here too, as in a trace: code must not fail only once it is compiled
    before = [tensor._version for tensor in tensors]
    result = function(*arguments)
    for tensor, version in zip(tensors, before, strict=True):
        if tensor._version != version:
            refuse_write(name, tensor)
    return result


@shows_users_frames
def cond(pred, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    pred: a tensor of one element and any dtype, or a bool.
    true_fn, false_fn: return tensors, or the same tree of them, of the same shapes and dtypes.
    operands: a tuple or list of tensors, or trees of them.

    Eagerly only the chosen function is called. In a trace both are traced, and the chosen one runs.
    Gradients flow to the operands and to captured tensors.

    Raises RuntimeError for results of different structure, shapes or dtypes, for a `pred` of more
    than one element, for a function that writes to an operand or a captured tensor, and in a trace
    for one that draws random numbers. Raises TypeError for results that are no tensors.

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
    first = Subgraph("cond", true_fn, leaves, structure)
    second = Subgraph("cond", _in_order(first.structure, false_fn), leaves, structure)
    branches = [first, second]
    if first.structure != second.structure:
        raise RuntimeError(
            "cond: true_fn and false_fn return trees of different structure: "
            f"{first.structure} and {second.structure}"
        )
    check_same("cond", first.avals, second.avals, "true_fn and false_fn return different tensors")
    reads, count = SharedReads(branches), len(leaves)

    def run(flag, *arrays):
        def branch(subgraph):
            return lambda *arrays: reads.run(subgraph, arrays[:count], arrays[count:])

        return jax.lax.cond(flag, *map(branch, branches), *arrays)

    leaves = [pred, *leaves, *reads.take()]
    return apply(ControlFlow("Cond", leaves, run), leaves, first.structure)


def _predicate(name, pred):
    """A bool; in a trace, and on the device meta, a tensor of a bool."""
    if type(pred) is Varying and pred.is_open:
        pred = pred._array
    if not isinstance(pred, Tensor | jax.Array):
        if not isinstance(pred, bool | int | float):
            raise RuntimeError(
                f"{name}: pred is a tensor of one element or a bool, not {type_name(pred)}"
            )
        return bool(pred)
    array = pred._array if isinstance(pred, Tensor) else pred
    if array.size != 1:
        raise RuntimeError(
            f"{name}: Expected pred to be bool or single-element tensor, but it has shape "
            f"{list(array.shape)}"
        )
    if isinstance(array, MetaArray):
        return pred.detach().reshape(()) != 0  # both functions are traced, for their results
    with types_of_trace():
        array = jax.lax.stop_gradient(array).reshape(()) != 0
    return wrap(array) if isinstance(array, jax.core.Tracer) else bool(array)


@shows_users_frames
def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """Compute `carried = body_fn(*carried)` while `cond_fn(*carried)` holds; returns the last ones.

    cond_fn: returns a bool, or a tensor of one element.
    body_fn: returns the next carried values, of the same structure, shapes and dtypes.
    carried_inputs: a tuple or list of tensors, or trees of them: the first carried values.

    Eagerly every mode of differentiation works, captured tensors included. In a trace only forward
    mode does: a backward pass raises RuntimeError there.

    Raises RuntimeError where the body changes the structure, a shape or a dtype, for a function
    that writes to a carried value or a captured tensor, and in a trace for one that draws random
    numbers.

    >>> @jaxgrad.jit
    ... def f(x):
    ...     return jaxgrad.while_loop(lambda x: x < 100, lambda x: (x * 2,), (x,))[0]
    >>> f(jaxgrad.tensor(3))
    tensor(192)
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(
            "while_loop: carried_inputs are a tuple or a list of tensors, but got "
            f"{type(carried_inputs).__name__}"
        )
    leaves, structure = flatten("while_loop", tuple(carried_inputs))
    if not is_traced(leaves):
        return _while_eagerly(cond_fn, body_fn, leaves, structure)
    test = Subgraph("while_loop", cond_fn, leaves, structure)
    next_values = _in_order(structure, _as_tuple(body_fn))
    body = Subgraph("while_loop", next_values, leaves, structure)
    _check_carried("while_loop", leaves, structure, body.avals, body.structure)
    if len(test.avals) != 1 or test.avals[0].shape.numel() != 1:
        raise RuntimeError("while_loop: cond_fn must give a bool, or a tensor of one element")
    reads, count = SharedReads([test, body]), len(leaves)

    def run(*arrays):
        read = arrays[count:]
        return jax.lax.while_loop(
            lambda carried: reads.run(test, carried, read)[0].reshape(()) != 0,
            lambda carried: reads.run(body, carried, read),
            # the body gives strong types, and a carry keeps its type
            list(map(strong, arrays[:count])),
        )

    leaves = [*leaves, *reads.take()]
    return apply(WhileLoop("WhileLoop", leaves, run), leaves, structure)


def _as_tuple(body):
    def carried(*args):
        result = body(*args)
        return tuple(result) if isinstance(result, tuple | list) else (result,)

    return carried


def _in_order(structure, function):
    """The function, whose dicts come out in the order of `structure`."""
    return lambda *args: pytree.ordered_as(structure, function(*args))


def _check_carried(name, leaves, structure, next_leaves, next_structure):
    if structure != next_structure:
        raise RuntimeError(
            f"{name}: the body changes the structure of the carried values from {structure} to "
            f"{next_structure}"
        )
    check_same(name, leaves, next_leaves, "the carry must keep its shapes and dtypes")


def _while_eagerly(test, body, leaves, structure):
    carried = jax.tree.unflatten(structure, leaves)
    next_values = _in_order(structure, _as_tuple(lambda *args: call("while_loop", body, args)))
    while _predicate("while_loop", call("while_loop", test, carried)):
        carried = next_values(*carried)
        next_leaves, next_structure = flatten("while_loop", carried)
        _check_carried("while_loop", leaves, structure, next_leaves, next_structure)
        carried = jax.tree.unflatten(structure, next_leaves)
    return carried


@shows_users_frames
def scan(combine_fn: Callable, init, xs, *, dim: int = 0, reverse: bool = False):
    """Compute `carry, y = combine_fn(carry, x)` for each slice `x` of `xs`; returns the last carry
    and all `y`, stacked along a new dimension `dim`, the last one where `y` has fewer dimensions.

    combine_fn: returns a pair: the next carry, of the same structure, shapes and dtypes, and `y`, a
    tensor or a tree of them.
    init: the first carry, a tensor or a tree of them.
    xs: a tensor or a tree of them, all of one size in dimension `dim`, along which they are sliced.
    reverse: whether to go from the last slice to the first. The order of the `y` stays that of the
    slices.

    Every mode of differentiation works, captured tensors included. In a trace the function is
    traced once, for any number of slices.

    Raises RuntimeError for arguments of other types, for different numbers of slices, for a carry
    that changes its structure, a shape or a dtype, for a function that writes to an argument or a
    captured tensor, and for one that draws random numbers in a trace of JAX's own.

    >>> add = lambda total, x: (total + x, total * x)
    >>> jaxgrad.scan(add, jaxgrad.tensor(0.0), jaxgrad.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    check_scan(RuntimeError, combine_fn, dim, reverse)
    carry, structure = flatten("scan", init)
    slices, shape = flatten("scan", xs)
    if not slices:
        return init, []
    check_has_dim(RuntimeError, slices, dim)
    dim = dim % slices[0].ndim
    lengths = {leaf.shape[dim] for leaf in slices}
    if len(lengths) > 1:
        raise RuntimeError(f"scan: xs have different numbers of slices: {sorted(lengths)}")
    slices = [ops.movedim(leaf, dim, 0) for leaf in slices] if dim else slices
    arguments = combine_fn, carry, structure, slices, shape, reverse
    if is_traced([*carry, *slices]):
        carry, outputs = _scan_traced(*arguments)
    elif lengths == {0}:  # only a trace tells the shapes of the outputs
        with jax.enable_x64(True):
            carry, outputs = _scan_traced(*arguments)
    else:
        carry, outputs = _scan_eagerly(*arguments)
    if dim:
        outputs = pytree.map_leaves(lambda y: ops.movedim(y, 0, min(dim, y.ndim - 1)), outputs)
    return carry, outputs


def check_scan(error: type[Exception], combine_fn, dim, reverse):
    """Raise the error for arguments of `scan` and its kin that have other types."""
    if not callable(combine_fn):
        raise error(f"Combine_fn must be a callable, but got {combine_fn}")
    if type(dim) is not int:
        raise error(f"Dim must be an int, but got {type(dim)}")
    if type(reverse) is not bool:
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")


def check_has_dim(error: type[Exception], tensors, dim):
    if any(not -tensor.ndim <= dim < tensor.ndim for tensor in tensors):
        raise error(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0, "
            f"but dim is {dim} and their shapes are {[list(tensor.shape) for tensor in tensors]}"
        )


def _pair(structure, result):
    """The next carry, in the order of the carry, and the output."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise RuntimeError("scan: combine_fn must give a pair: the next carry and an output")
    return pytree.ordered_as(structure, result[0]), result[1]


def _scan_traced(combine, carry, structure, slices, shape, reverse):
    firsts = [_slice_like(leaf) for leaf in slices]
    example = jax.tree.unflatten(structure, carry), jax.tree.unflatten(shape, firsts)
    both = pytree.flatten(example)[1]
    inputs = [*carry, *firsts]
    body = Subgraph(
        "scan", lambda c, x: _pair(structure, combine(c, x)), inputs, both, CountedScope
    )
    next_structure, _ = body.structure.children()
    # numbers and no tensors, which the program would keep alive
    counts = next_structure.num_leaves, len(slices), len(body.reads)
    count, length = counts[0], slices[0].shape[0]
    _check_carried("scan", carry, structure, body.avals[:count], next_structure)
    states = [draw.reserve(length) for draw in body.draws if length]
    # run 0 is the one that happens first, so that compiled and eager loops draw the same numbers
    numbers = range(length)[::-1] if reverse else range(length)

    def run(*arrays):
        init, xs, read, drawn = split(arrays, *counts)

        def step(carried, x):
            *x, number = x
            # not strict: a loop without runs draws nothing, and has no states
            pairs = zip(body.draws, drawn, strict=False)
            states = [draw.at(*pair, number) for draw, *pair in pairs]
            results = body.run([*carried, *x], [*read, *states])
            return list(results[:count]), list(results[count:])

        xs = [*xs, jnp.asarray(numbers, jnp.int32)]
        last, outputs = jax.lax.scan(step, list(map(strong, init)), xs, reverse=reverse)
        return [*last, *outputs]

    leaves = [*carry, *slices, *body.take(), *states]
    return apply(ControlFlow("Scan", leaves, run), leaves, body.structure)


def split(arrays, *counts):
    """Split a list into parts of the given lengths, and the rest."""
    parts = []
    for count in counts:
        parts.append(arrays[:count])
        arrays = arrays[count:]
    return *parts, arrays


def _slice_like(tensor):
    """A tensor of the shape of a slice, to trace with."""
    with types_of_trace():
        array = jnp.zeros(tensor.shape[1:], tensor.dtype.numpy)
    # as tracked as a slice, for code that asks `requires_grad`
    return wrap(array, None, tensor._requires_grad)


def _scan_eagerly(combine, carry, structure, slices, shape, reverse):
    carried, outputs = jax.tree.unflatten(structure, carry), []
    numbers = range(slices[0].shape[0])
    for number in reversed(numbers) if reverse else numbers:
        x = jax.tree.unflatten(shape, [leaf[number] for leaf in slices])
        carried, output = _pair(structure, call("scan", combine, (carried, x)))
        next_leaves, next_structure = flatten("scan", carried)
        _check_carried("scan", carry, structure, next_leaves, next_structure)
        carried = jax.tree.unflatten(structure, next_leaves)
        output = pytree.ordered_as(outputs[0][1], output) if outputs else output
        outputs.append(flatten("scan", output))
        if outputs[-1][1] != outputs[0][1]:
            raise RuntimeError(
                "scan: the outputs of combine_fn have different structure: "
                f"{outputs[0][1]} and {outputs[-1][1]}"
            )
    lists = [leaves for leaves, _ in (outputs[::-1] if reverse else outputs)]
    stacked = [ops.stack(list(tensors)) for tensors in zip(*lists, strict=True)]
    return carried, jax.tree.unflatten(outputs[0][1], stacked)


@shows_users_frames
def fori_loop(lower, upper, body: Callable, init):
    """Compute `value = body(i, value)` for each `i` in `range(lower, upper)`; returns the last one.

    lower, upper: ints, with which every mode of differentiation works; or tensors of one integer,
    with which the loop is a `while_loop`.
    body: gets `i` as an int64 tensor without dimensions, and returns the next value, of the same
    structure, shapes and dtypes.
    init: the first value, a tensor or a tree of them.

    Raises TypeError for a bound of another type, and RuntimeError as `scan` and `while_loop` do.

    >>> jaxgrad.fori_loop(0, 4, lambda i, x: x * 2 + i, jaxgrad.tensor(1.0))
    tensor(27.)
    """
    bounds = [_bound(bound) for bound in (lower, upper)]
    if not any(isinstance(bound, Tensor) for bound in bounds):
        numbers = ops.alias(tensor_data.from_numpy(np.arange(*bounds, dtype=np.int64)))
        return scan(lambda value, i: (body(i, value), ()), init, numbers)[0]
    first, last = (as_tensor("fori_loop", bound).to(dtypes.int64).reshape(()) for bound in bounds)
    carried = while_loop(
        lambda i, value: i < last, lambda i, value: (i + 1, body(i, value)), (first, init)
    )
    return carried[1]


def _bound(bound):
    """A bound as an int; in a trace a tensor stays one."""
    if isinstance(bound, Tensor):
        return bound if is_traced([bound]) else int(bound.item())
    if isinstance(bound, bool) or not hasattr(bound, "__index__"):
        raise TypeError(
            f"fori_loop: a bound is an int or a tensor of one, not {type(bound).__name__}"
        )
    return int(bound)
