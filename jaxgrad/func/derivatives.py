"""Jacobian products and Jacobians of functions of pytrees of tensors.

Reverse mode is a pass over the tape, forward mode a level of dual tensors. Both nest in each other
and in the other transforms. If the arguments are JAX arrays, the results are too.
"""

from __future__ import annotations

import functools
import itertools

import jax

from .. import autograd, ops
from ..autograd import _jacobian_blocks, forward_ad
from ..core import elementary
from ..core.pytorch_tensors import class_of
from ..core.tracebacks import shows_users_frames
from ..tape.dual_level import entered, is_any_begun
from ..tape.mode import is_grad_enabled, recording, transform, transforms, without_inference
from ..tape.pytree import flatten, is_tensor, map_leaves, ordered_as
from ..tape.tensor import Tensor, abstract_value, may_require_grad, wrap
from . import shared_function
from .arguments import (
    TangentsLevel,
    are_arrays,
    array_of,
    aux_of,
    check_leaves,
    forget_leaves,
    give_back,
    leaf_of,
    may_be_differentiated,
    positions_of,
    reaches_others,
    reverse_mode,
    shown_as,
    split_aux,
    unrecorded,
)
from .shared_function import Constants
from .vmap import vmap


class LeafCall:
    """One call of a function, with new leaves in place of the arguments at `positions`.

    inner: the leaves. outputs, structure: the flat outputs and their structure. is_connected:
    whether they depend on what an outer transform or the caller differentiates with respect to.
    nested: whether these may differentiate the results, which were not computed under `no_grad`.
    """

    def __init__(self, name, func, args, positions, has_aux):
        self.name, self.has_aux = name, has_aux
        arguments = [args[position] for position in positions]
        self.leaves, self.inputs = flatten(arguments)
        for leaf in self.leaves:
            if not isinstance(leaf, Tensor | jax.Array):
                kind = class_of(leaf)
                raise ValueError(f"Thing passed to transform API must be Tensor, got {kind}")
        self.arrays = are_arrays(self.leaves)
        recorded = is_grad_enabled()
        self.is_connected = may_be_differentiated(args)
        token = transforms.set(transforms.get() + 1)
        try:
            with recording():
                self.inner = [leaf_of(leaf) for leaf in self.leaves]
                replaced = list(args)
                for position, argument in zip(positions, self.input_tree(self.inner), strict=True):
                    replaced[position] = argument
                with reverse_mode(self.inner) as changed:
                    self.set_outputs(func(*replaced))
                check_leaves(self.inner)
                give_back(self.leaves, self.inner)
                forget_leaves(changed, self.inner, self.outputs)
        finally:
            transforms.reset(token)
        self.aux = aux_of(self.aux, self.inner, recorded)
        self.is_connected |= reaches_others(self.outputs, self.inner)
        self.nested = recorded and self.is_connected

    def set_outputs(self, output):
        output, self.aux = split_aux(self.name, output, self.has_aux)
        self.outputs, self.structure = outputs_of(self.name, output)
        for output in self.outputs:
            if not may_require_grad(output):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                    f"Tensor with dtype {output.dtype}"
                )

    def input_tree(self, leaves):
        return jax.tree.unflatten(self.inputs, leaves)

    def released(self, tensor):
        """A result as the caller gets it."""
        tensor = tensor if self.nested else unrecorded(tensor, True)
        return array_of(tensor) if self.arrays else tensor

    def output(self):
        return jax.tree.unflatten(self.structure, list(map(self.released, self.outputs)))

    def gradients(self, outputs, cotangents, batched=False):
        """The gradients of some outputs with respect to the leaves, zeros for unused leaves."""
        pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
        create = is_grad_enabled() and (self.is_connected or may_be_differentiated(cotangents))
        gradients = [None] * len(self.inner)
        if pairs:
            gradients = autograd.grad(
                [output for output, _ in pairs],
                self.inner,
                [cotangent for _, cotangent in pairs],
                retain_graph=True,
                create_graph=create,
                allow_unused=True,
                is_grads_batched=batched,
            )
        count = (cotangents[0].shape[0],) if batched else ()
        return [
            zeros(leaf, count) if gradient is None else gradient
            for leaf, gradient in zip(self.inner, gradients, strict=True)
        ]


def zeros(like, first=()):
    zero = shown_as(like, wrap(elementary.filled(abstract_value(like.detach()), 0)))
    return zero.expand(*first, *like.shape).contiguous() if first else zero


def outputs_of(name, returned):
    """The tensors that a function returned, and their structure.

    Raises RuntimeError if there is none, and for other objects, among which None counts.
    """
    everything, _ = flatten(returned, lambda value: value is None)
    if not everything or (len(everything) == 1 and everything[0] is None):
        raise RuntimeError(
            f"{name}: Expected f to be a function that has non-empty output (got output = "
            f"{everything})"
        )
    for output in everything:
        if not isinstance(output, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(output)}"
            )
    return flatten(returned)


@shows_users_frames
def vjp(func, *primals, has_aux: bool = False):
    """Return the outputs of `func` and a function that computes vector-Jacobian products.

    func: a function of the primals that returns a pytree of floating-point or complex tensors, or
    with `has_aux` a pair of it and anything else.
    primals: pytrees of tensors of any shapes.
    has_aux: return the second part of the pair as a third result.

    The returned function takes cotangents in the structure and shapes of the outputs and returns a
    tuple with the gradient of each primal. It may be called many times.

    Raises RuntimeError for a function without outputs, for outputs of other types and for
    cotangents that do not fit, ValueError for a primal that is not a tensor.

    >>> output, pullback = jaxgrad.func.vjp(jaxgrad.sin, jaxgrad.zeros(2))
    >>> pullback(jaxgrad.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    run = LeafCall("vjp(f, *primals)", func, primals, range(len(primals)), has_aux)

    @shows_users_frames
    def pullback(cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        if not isinstance(retain_graph, bool):
            kind = type(retain_graph).__name__
            raise TypeError(
                f"vjp_fn(): argument 'retain_graph' must be bool, not {kind}: the cotangents of "
                "several outputs are one tuple, as the outputs are"
            )
        leaves, structure = flatten(ordered_as(run.structure, cotangents))
        if structure != run.structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {structure}, primal output: {run.structure}"
            )
        leaves = list(map(_cotangent, leaves))
        for number, (cotangent, output) in enumerate(zip(leaves, run.outputs, strict=True)):
            if cotangent.shape != output.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{number}] has a shape of {cotangent.shape} "
                    f"and output[{number}] has a shape of {output.shape}."
                )
        gradients = run.gradients(run.outputs, leaves)
        return tuple(run.input_tree([array_of(g) if run.arrays else g for g in gradients]))

    return (run.output(), pullback, run.aux) if has_aux else (run.output(), pullback)


def _cotangent(value):
    if not isinstance(value, Tensor | jax.Array):
        kind = type(value).__name__
        raise TypeError(f"gradients can be either Tensors or None, but got {kind}")
    return value if isinstance(value, Tensor) else wrap(value)


@shows_users_frames
def jvp(func, primals, tangents, *, strict: bool = False, has_aux: bool = False):
    """Return the outputs of `func` and its Jacobian-vector product.

    func: a function of the primals that returns a pytree of tensors, or with `has_aux` a pair of it
    and anything else.
    primals: a tuple of pytrees of floating-point or complex tensors.
    tangents: in the structure, shapes and dtypes of the primals.
    strict: raise RuntimeError for an output that does not depend on the primals; otherwise its
    tangent is zero.
    has_aux: return the second part of the pair as a third result.

    Raises RuntimeError for primals that are not a tuple, for tangents that do not fit, and for a
    function without outputs or with others than tensors; ValueError for a primal of another dtype.

    >>> jaxgrad.func.jvp(jaxgrad.sin, (jaxgrad.zeros(2),), (jaxgrad.tensor([1.0, 2.0]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    push = functools.partial(_push_forward, func, strict, has_aux)
    return shared_function.called(push, (primals, tangents))


def _push_forward(func, strict, has_aux, primals, tangents):
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    points, structure = flatten(primals)
    directions, other = flatten(ordered_as(structure, tangents))
    if structure != other:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            "structure "
            f"{structure} and tangents with structure {other}"
        )
    arrays = are_arrays(points)
    points, directions = _tensors(name, "primals", points), _tensors(name, "tangents", directions)
    with without_inference(), forward_ad._set_fwd_grad_enabled(True), forward_ad.dual_level():
        duals = [forward_ad.make_dual(*pair) for pair in zip(points, directions, strict=True)]
        with transform(TangentsLevel(entered.get()[-1])):
            output = func(*jax.tree.unflatten(structure, duals))
        output, aux = split_aux(name, output, has_aux)
        outputs, structure = outputs_of(name, output)
        pairs = [forward_ad.unpack_dual(output) for output in outputs]
        aux = map_leaves(_primal, aux)
    if strict and any(pair.tangent is None for pair in pairs):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
            "This is not allowed with strict=True."
        )
    shown = array_of if arrays else lambda tensor: tensor
    values = [shown(pair.primal) for pair in pairs]
    derivatives = [shown(zeros(p.primal) if p.tangent is None else p.tangent) for p in pairs]
    results = jax.tree.unflatten(structure, values), jax.tree.unflatten(structure, derivatives)
    return (*results, aux) if has_aux else results


def _tensors(name, what, leaves):
    if not leaves:
        raise RuntimeError(f"{name}: Expected {what} to contain at least one Tensor.")
    for leaf in leaves:
        if not isinstance(leaf, Tensor | jax.Array):
            raise RuntimeError(f"{name}: Expected {what} to only contain Tensors, got {type(leaf)}")
    return list(map(_tensor, leaves))


def _tensor(value):
    if not isinstance(value, Tensor | jax.Array):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {class_of(value)}")
    return value if isinstance(value, Tensor) else wrap(value)


def _primal(value):
    return forward_ad.unpack_dual(value).primal if isinstance(value, Tensor) else value


@shows_users_frames
def linearize(func, *primals):
    """Return the outputs of `func` and its derivative, a linear function of tangents.

    func: a function of the primals that returns a pytree of tensors.
    primals: pytrees of floating-point or complex tensors of any shapes.

    The derivative takes tangents and returns those of the outputs. It raises RuntimeError for
    tangents whose structure, shapes or dtypes differ from those of the primals. Raises ValueError
    for a primal that is not such a tensor.

    >>> output, derivative = jaxgrad.func.linearize(jaxgrad.sin, jaxgrad.zeros(2))
    >>> derivative(jaxgrad.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    points, structure = flatten(primals)
    for point in map(_tensor, points):
        if not may_require_grad(point):
            raise ValueError(
                f"Expected primal to be floating point or complex, but got: {point.dtype}"
            )

    @shows_users_frames
    def derivative(*tangents):
        leaves, other = flatten(ordered_as(structure, tangents))
        if structure != other:
            raise RuntimeError(
                f"Expected the tangents {other} to have the same argspec as the primals {structure}"
            )
        for number, (tangent, point) in enumerate(zip(leaves, points, strict=True)):
            for what in ("shape", "dtype"):
                value, wanted = getattr(tangent, what), getattr(point, what)
                if value != wanted:
                    raise RuntimeError(
                        f"tangent:{number} with {what} {value} in flattened pytree doesn't match "
                        f"the {what} {wanted} of the corresponding primal."
                    )
        return jvp(func, primals, tangents)[1]

    return func(*primals), derivative


def jacrev(
    func,
    argnums=0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
):
    """Return a function that computes the Jacobian of `func` by reverse mode.

    func: a function that returns a pytree of real tensors, or with `has_aux` a pair of it and
    anything else.
    argnums: the positions of the arguments to differentiate with respect to, an int or a tuple.
    Each is a real tensor or a pytree of them.
    has_aux: return the pair of the Jacobian and the second part of the pair.
    chunk_size: the number of rows that are computed at once; all by default.
    _preallocate_and_copy: without effect, since XLA allocates the memory.

    The Jacobian has for each output and each tensor of these arguments a block. Its shape is the
    shape of the output followed by that of the tensor.

    Raises ValueError for a `chunk_size` below 1 and for an argument that is not a tensor,
    RuntimeError for complex arguments and outputs and for `argnums` out of range.

    >>> jaxgrad.func.jacrev(lambda x: x * x)(jaxgrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    @shows_users_frames
    def jacobian(*args, **kwargs):
        call = functools.partial(func, **kwargs) if kwargs else func
        rows = functools.partial(_by_rows, call, argnums, has_aux, chunk_size)
        return shared_function.called(rows, args)

    return jacobian


def _by_rows(func, argnums, has_aux, chunk_size, *args):
    """The Jacobian of a function, by reverse mode."""
    positions = positions_of(argnums, len(args))
    _refuse_complex("jacrev", "inputs", [args[position] for position in positions])
    run = LeafCall("vjp(f, *primals)", func, args, positions, has_aux)
    _refuse_complex("jacrev", "outputs", run.outputs)
    blocks = [_blocks(run, output, chunk_size) for output in run.outputs]
    jacobian = _tree(run, blocks, isinstance(argnums, int))
    return (jacobian, run.aux) if has_aux else jacobian


def _refuse_complex(name, what, tree):
    for number, leaf in enumerate(flatten(tree)[0]):
        if jax.numpy.iscomplexobj(leaf._array if isinstance(leaf, Tensor) else leaf):
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {number}"
            )


def _blocks(run, output, chunk_size):
    """The Jacobian of one output with respect to each leaf."""
    (rows,) = _jacobian_blocks.basis([output])
    size = rows.shape[0] if chunk_size is None else chunk_size
    if run.nested or is_any_begun():
        shared_function.refuse_passes(rows.shape[0])
    parts = [
        run.gradients([output], [rows[start : start + size]], batched=True)
        for start in range(0, rows.shape[0], max(size, 1))
    ]
    columns = zip(*parts, strict=True) if parts else [[zeros(leaf, (0,))] for leaf in run.inner]
    return [
        (ops.cat(column) if len(column) > 1 else column[0]).reshape((*output.shape, *leaf.shape))
        for column, leaf in zip(columns, run.inner, strict=True)
    ]


def _tree(run, blocks, is_single):
    """The blocks, a list for each output, in the structures of outputs and arguments."""
    rows = []
    for row in blocks:
        arguments = run.input_tree([run.released(block) for block in row])
        rows.append(arguments[0] if is_single else tuple(arguments))
    return jax.tree.unflatten(run.structure, rows)


def jacfwd(func, argnums=0, has_aux: bool = False, *, randomness: str = "error"):
    """Return a function that computes the Jacobian of `func` by forward mode.

    randomness: as for `vmap`, which computes all columns at once. Other arguments, result and
    errors as for `jacrev`.

    >>> jaxgrad.func.jacfwd(lambda x: x * x)(jaxgrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func, updated=())
    @shows_users_frames
    def jacobian(*args, **kwargs):
        call = functools.partial(func, **kwargs) if kwargs else func
        columns = functools.partial(_by_columns, call, argnums, has_aux, randomness)
        return shared_function.called(columns, args)

    return jacobian


def _by_columns(func, argnums, has_aux, randomness, *args):
    """The Jacobian of a function, by forward mode."""
    positions = positions_of(argnums, len(args))
    _refuse_complex("jacfwd", "inputs", [args[position] for position in positions])
    leaves, inputs = flatten(tuple([args[position] for position in positions]))
    points = list(map(_tensor, leaves))
    others = [None if n in positions else argument for n, argument in enumerate(args)]
    column = functools.partial(_column, func, others, positions, has_aux)
    basis = _jacobian_blocks.basis(points)
    arguments = [jax.tree.unflatten(inputs, tensors) for tensors in (points, basis)]
    with without_inference():
        run = vmap(column, (None, 0), (0, 0, None), randomness=randomness)
        tangents, aux, constants = run(*arguments)
    tangents, outputs = flatten(tangents)
    rows = []
    for columns in tangents:
        row = list(_columns(columns, points))
        row = jax.tree.unflatten(inputs, map(array_of, row) if are_arrays(leaves) else row)
        rows.append(row[0] if isinstance(argnums, int) else row)
    jacobian = jax.tree.unflatten(outputs, rows)
    return (jacobian, constants.with_tensors([leaf[0] for leaf in aux])[0]) if has_aux else jacobian


def _column(func, others, positions, has_aux, points, directions):
    """The derivative of a function along one direction, and the tensors and other leaves of its
    auxiliary output.

    others: the arguments, without the points at `positions`.
    """

    def at(*points):
        args = list(others)
        for position, point in zip(positions, points, strict=True):
            args[position] = point
        return func(*args)

    _, tangents, *aux = jvp(at, points, directions, has_aux=has_aux)
    leaves, structure = flatten(aux)
    return tangents, list(filter(is_tensor, leaves)), Constants(leaves, structure)


def _columns(columns, leaves):
    """The blocks of one output, from its derivatives along all directions."""
    ends = list(itertools.accumulate(leaf.numel() for leaf in leaves))
    for leaf, end in zip(leaves, ends, strict=True):
        part = ops.movedim(columns[end - leaf.numel() : end], 0, -1)
        yield part.reshape((*columns.shape[1:], *leaf.shape))


def hessian(func, argnums=0):
    """Return a function that computes the Hessian of `func`, as `jacfwd(jacrev(func))`.

    func: a function that returns a real tensor or a pytree of them.
    argnums: the positions of the arguments to differentiate with respect to, real tensors or
    pytrees of them.

    The Hessian of an output has the output's shape followed by twice that of the argument. Errors
    as for `jacrev`.

    >>> jaxgrad.func.hessian(lambda x: (x**3).sum())(jaxgrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
