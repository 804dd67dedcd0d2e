"""`backward` and `grad`: the calls that begin a backward pass."""

from __future__ import annotations

import warnings

import jax

from .. import ops
from ..core import elementary, executor
from ..core.tracebacks import hide_frames, shows_users_frames, users_stacklevel
from ..tape import dual_level, torch_function
from ..tape.asked_edge import GradientEdge
from ..tape.mode import transforms
from ..tape.sparse_tensor import gradient_of
from ..tape.tensor import ReadsNumbers, Tensor, abstract_value, wrap
from ..tape.torch_function import is_overridden
from ._engine.graph_task import Pass, PassTo
from ._engine.root_arguments import (
    batches_of,
    edges_of_inputs,
    edges_of_outputs,
    gradients_of,
    inputs_of,
    outputs_of,
)

CREATES_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter "
    "and its gradient which can cause a memory leak. We recommend using autograd.grad when "
    "creating the graph to avoid this. If you have to use this function, make sure to reset the "
    ".grad fields of your parameters to None after use to break the cycle and avoid the leak."
)


@shows_users_frames
def backward(
    tensors,
    grad_tensors=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables=None,
    inputs=None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of each leaf.

    tensors: a tensor, a GradientEdge or a sequence of them; grad_tensors: the gradient with respect
    to each, a tensor of its shape, or None for 1 if it has one real element; retain_graph: keep the
    residuals for another pass, by default as create_graph; create_graph: record the pass, so that
    gradients can be differentiated; grad_variables: the old name of grad_tensors; inputs: fill the
    `.grad` of these tensors alone.

    Raises RuntimeError for a tensor that does not require grad, a gradient of another shape, a
    freed graph, and inside a transform of `jaxgrad.func`; TypeError for other types.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> jaxgrad.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=users_stacklevel(),
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    return _backward(tensors, grad_tensors, retain_graph, create_graph, inputs)


def _backward(tensors, grad_tensors, retain_graph, create_graph, inputs):
    outputs = outputs_of(tensors)
    wanted = None if inputs is None else inputs_of(inputs, "backward")[1]
    relevant = outputs if wanted is None else (*outputs, *wanted)
    if is_overridden(relevant):
        options = {
            "grad_tensors": grad_tensors,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "inputs": wanted,
        }
        return torch_function.handle(backward, relevant, (outputs,), options)
    return _accumulate(outputs, grad_tensors, retain_graph, create_graph, wanted)


def _check_flags(retain_graph, create_graph):
    if not hasattr(create_graph, "__index__"):
        raise TypeError(f"argument 'create_graph' must be bool, not {type(create_graph).__name__}")
    if retain_graph is not None and not hasattr(retain_graph, "__index__"):
        raise TypeError(f"argument 'retain_graph' must be bool, not {type(retain_graph).__name__}")


def _accumulate(outputs, grad_tensors, retain_graph, create_graph, wanted):
    if transforms.get():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "func.grad or autograd.grad inside it, or call backward() outside of the transform."
        )
    if retain_graph is not None or create_graph is not False:
        _check_flags(retain_graph, create_graph)
    gradients = gradients_of(outputs, grad_tensors)
    if create_graph:
        warnings.warn(CREATES_CYCLE, UserWarning, stacklevel=users_stacklevel())
    roots = edges_of_outputs(outputs)
    retain_graph = create_graph if retain_graph is None else retain_graph
    if wanted is None:
        run = Pass(retain_graph, create_graph)
        gradients[:] = map(run.carried, gradients)
        run.run(roots, gradients)
        return
    ends = edges_of_inputs(wanted, "can't retain_grad on Tensor that has requires_grad=False")
    for tensor in wanted:
        if isinstance(tensor, Tensor):
            tensor.retain_grad()
    run = PassTo(retain_graph, create_graph, ends, accumulate=True, takes_sparse=True)
    run.run(roots, [run.carried(gradient) for gradient in gradients])


@shows_users_frames
def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
):
    """The gradients of `outputs` with respect to `inputs`; no `.grad` changes.

    outputs, grad_outputs, retain_graph, create_graph: as for `backward`; inputs: a tensor, a
    GradientEdge, a sequence or a dict of them; only_inputs: deprecated and ignored; allow_unused:
    return None for an input that was not used; is_grads_batched: each of grad_outputs has a first
    dimension that counts gradients, and so has each result; materialize_grads: return zeros for an
    input that was not used.

    Returns a tuple with a tensor of the shape of each input, or a dict with the keys of `inputs`.
    Raises RuntimeError as `backward`, and for an input that was not used or does not require grad;
    ValueError if materialize_grads is True and allow_unused False.

    >>> x = jaxgrad.tensor(2.0, requires_grad=True)
    >>> jaxgrad.autograd.grad(x**3, x)
    (tensor(12.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    names, wanted = inputs_of(inputs, "grad")
    outputs = outputs_of(outputs)
    options = {
        "grad_outputs": grad_outputs,
        "retain_graph": retain_graph,
        "create_graph": create_graph,
        "only_inputs": only_inputs,
        "allow_unused": allow_unused,
        "is_grads_batched": is_grads_batched,
        "materialize_grads": materialize_grads,
    }
    if is_overridden((*outputs, *wanted)):
        results = torch_function.handle(grad, (*outputs, *wanted), (outputs, wanted), options)
    else:
        results = _grad(outputs, wanted, **options)
    return results if names is None else dict(zip(names, results, strict=True))


def _grad(
    outputs,
    wanted,
    *,
    grad_outputs,
    retain_graph,
    create_graph,
    only_inputs,
    allow_unused,
    is_grads_batched,
    materialize_grads,
) -> tuple:
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=users_stacklevel(),
        )
    retain_graph = create_graph if retain_graph is None else retain_graph
    compute = _batched if is_grads_batched else _single
    results = compute(outputs, wanted, grad_outputs, retain_graph, create_graph)
    _check_used(results, allow_unused)
    if materialize_grads:
        results = [
            _zeros(tensor, create_graph) if gradient is None else gradient
            for tensor, gradient in zip(wanted, results, strict=True)
        ]
    return tuple(results)


def _single(outputs, wanted, grad_outputs, retain_graph, create_graph):
    gradients = gradients_of(outputs, grad_outputs)
    return _captured(outputs, wanted, gradients, retain_graph, create_graph, takes_sparse=True)


def _captured(outputs, wanted, gradients, retain_graph, create_graph, takes_sparse=False):
    """The gradient of each wanted tensor, None if the pass did not reach it."""
    _check_flags(retain_graph, create_graph)
    roots = edges_of_outputs(outputs)
    ends = edges_of_inputs(wanted, "One of the differentiated Tensors does not require grad")
    run = PassTo(retain_graph, create_graph, ends, takes_sparse=takes_sparse)
    run.run(roots, [run.carried(gradient) for gradient in gradients])
    captured = [run.captured.get((node.sequence, output_nr)) for node, output_nr in ends]
    return list(map(gradient_of, wanted, map(run.as_tensor, captured)))


def _batched(outputs, wanted, grad_outputs, retain_graph, create_graph):
    """The gradients for a batch of gradients: one pass under `jax.vmap`, or one pass for each if
    they are recorded or may have tangents.
    """
    batches = batches_of(outputs, grad_outputs)
    if (create_graph or dual_level.is_any_begun()) and batches[0].shape[0]:
        return _one_by_one(outputs, wanted, batches, retain_graph, create_graph)

    def gradients_of_one(*arrays):
        results = _captured(outputs, wanted, list(map(wrap, arrays)), retain_graph, False)
        return [None if result is None else result._array for result in results]

    try:
        with jax.enable_x64(True):
            results = executor.mapped(gradients_of_one, [batch._array for batch in batches])
    except ReadsNumbers:
        # a backward pass by NumPy; without retain_graph the first nodes have freed their tensors
        if not retain_graph:
            raise
        return _one_by_one(outputs, wanted, batches, retain_graph, create_graph)
    return [None if result is None else wrap(result) for result in results]


def _one_by_one(outputs, wanted, batches, retain_graph, create_graph):
    last = batches[0].shape[0] - 1
    rows = [
        _captured(outputs, wanted, gradients, retain_graph or row < last, create_graph)
        for row, gradients in enumerate(zip(*[ops.unbind(batch) for batch in batches], strict=True))
    ]
    columns = zip(*rows, strict=True)
    return [None if column[0] is None else ops.stack(column) for column in columns]


def _check_used(gradients, allow_unused):
    if allow_unused:
        return
    for position, gradient in enumerate(gradients):
        if gradient is None:
            raise RuntimeError(
                f"The differentiated Tensor at index {position} appears to not have been used in "
                "the graph. Set allow_unused=True if this is the desired behavior."
            )


def _zeros(tensor, create_graph):
    if isinstance(tensor, GradientEdge):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    array = elementary.filled_beside(tensor._value, abstract_value(tensor), 0)
    zeros = wrap(array, requires_grad=create_graph)
    return gradient_of(tensor, zeros)


class _BackwardMethod:
    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add the gradient of this tensor to the `.grad` of the leaves that it was computed from.

        gradient: the gradient with respect to this tensor, a tensor of its shape; None means 1 for
        one real element. The other arguments and the errors are those of `autograd.backward`.

        >>> x = jaxgrad.tensor(3.0, requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad
        tensor(6.)
        """
        try:
            if is_overridden((self,)):
                options = {
                    "gradient": gradient,
                    "retain_graph": retain_graph,
                    "create_graph": create_graph,
                    "inputs": inputs,
                }
                return torch_function.handle(Tensor.backward, (self,), (self,), options)
            if inputs is None:
                return _accumulate((self,), gradient, retain_graph, create_graph, None)
            return _backward(self, gradient, retain_graph, create_graph, inputs)
        except Exception as error:
            hide_frames(error)
            raise


def install():
    """Give tensors the method."""
    Tensor.backward = _BackwardMethod.backward


# where users find them
backward.__module__ = grad.__module__ = "jaxgrad.autograd"
