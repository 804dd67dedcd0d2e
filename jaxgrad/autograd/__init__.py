"""Gradients of tensors, as torch.autograd: `backward`, `grad`, and the modes that switch recording on and off.

The gradient of a complex tensor is PyTorch's, the conjugate of JAX's.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import jax

from .. import avals, execution
from ..tensor import INFERENCE_TENSOR, Tensor, edge_of, leaf_state, wrap
from . import grad_mode, graph
from .engine import Pass
from .grad_mode import enable_grad as enable_grad
from .grad_mode import inference_mode as inference_mode
from .grad_mode import no_grad as no_grad
from .grad_mode import set_grad_enabled as set_grad_enabled
from .graph import GradientEdge

CREATES_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
    "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this "
    "function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak."
)


def backward(
    tensors,
    grad_tensors=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables=None,
    inputs=None,
) -> None:
    """Add to the `.grad` of each leaf the gradient of the sum of `tensors`, each times its entry of `grad_tensors`.

    tensors: a tensor, a GradientEdge or a sequence of them; grad_tensors: a tensor of each one's shape, None for ones where
    a tensor has one element; inputs: fill the `.grad` of these tensors alone. Raises RuntimeError for a tensor without a graph,
    a gradient of another shape, and a graph whose saved values were freed (see `retain_graph`).

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> jaxgrad.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    outputs = _sequence(tensors)
    wanted = None if inputs is None else _inputs(inputs, "backward")[1]
    gradients = _gradients(outputs, grad_tensors)
    for tensor in wanted or ():
        if isinstance(tensor, Tensor) and not tensor._requires_grad:
            raise RuntimeError(
                f"can't retain_grad on Tensor that has requires_grad=False: one of `inputs`, of shape {list(tensor.shape)}"
            )
    if create_graph:
        warnings.warn(CREATES_CYCLE, UserWarning, stacklevel=2)
    roots = _roots(outputs)
    edges = None if wanted is None else [_edge(tensor) for tensor in wanted]
    run = Pass(_retain(retain_graph, create_graph), create_graph, _keys(edges))
    found = run.run(roots, _carried(gradients, create_graph))
    for tensor, key in zip(wanted or (), _keys(edges) or (), strict=True):
        if key in found:
            run.accumulate(tensor, found[key])


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
    """The gradients of the sum of `outputs`, each times its entry of `grad_outputs`, with respect to each of `inputs`.

    A tuple, or for a dict of inputs a dict; no `.grad` is touched. With `create_graph` the gradients can be differentiated in
    their turn. An input that was not used is an error, None with `allow_unused`, or zeros with `materialize_grads`. With
    `is_grads_batched` the first dimension of each of `grad_outputs` counts gradients, and that of each result too.

    >>> x = jaxgrad.tensor(2.0, requires_grad=True)
    >>> jaxgrad.autograd.grad(x**3, x)
    (tensor(12.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other "
            "parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    names, wanted = _inputs(inputs, "grad")
    if materialize_grads and any(isinstance(tensor, GradientEdge) for tensor in wanted):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    outputs = _sequence(outputs)
    if is_grads_batched:
        results = _batched(outputs, wanted, grad_outputs, retain_graph, create_graph)
    else:
        results = _captured(outputs, wanted, _gradients(outputs, grad_outputs), retain_graph, create_graph)
    results = [_present(*item, allow_unused, materialize_grads, create_graph) for item in enumerate(zip(wanted, results))]
    return tuple(results) if names is None else dict(zip(names, results, strict=True))


def _captured(outputs, wanted, gradients, retain_graph, create_graph):
    """The gradient of each wanted tensor, None where it was not reached."""
    roots = _roots(outputs)
    for tensor in wanted:
        if isinstance(tensor, Tensor) and not tensor._requires_grad:
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad: one of shape {list(tensor.shape)}"
            )
    keys = _keys([_edge(tensor) for tensor in wanted])
    run = Pass(_retain(retain_graph, create_graph), create_graph, keys)
    found = run.run(roots, _carried(gradients, create_graph))
    return [_handle(found.get(key)) for key in keys]


def _handle(gradient):
    return wrap(gradient) if gradient is not None and not isinstance(gradient, Tensor) else gradient


def _batched(outputs, wanted, grad_outputs, retain_graph, create_graph):
    """The gradients for each of a batch of `grad_outputs`: one pass under `jax.vmap`, or where it is recorded one after another."""
    if any(isinstance(item, GradientEdge) for item in (*outputs, *wanted)):
        raise RuntimeError("Batched grads are not supported with GradientEdge")
    batches = _sequence(grad_outputs)
    _check_batches(outputs, batches)
    if create_graph:
        rows = [
            _captured(outputs, wanted, [batch[i] for batch in batches], True, True)
            for i in range(batches[0].shape[0])
        ]
        return [None if column[0] is None else _stack(column) for column in zip(*rows, strict=True)]

    def one(*arrays):
        gradients = _captured(outputs, wanted, list(map(wrap, arrays)), retain_graph, False)
        return [None if gradient is None else gradient._array for gradient in gradients]

    with jax.enable_x64(True):
        return [None if r is None else wrap(r) for r in jax.vmap(one)(*[batch._array for batch in batches])]


def _stack(tensors):
    total = [tensor.unsqueeze(0) for tensor in tensors]
    return total[0].cat(total) if hasattr(total[0], "cat") else jax.numpy.stack(total)


def _check_batches(outputs, batches):
    for position, (output, batch) in enumerate(zip(outputs, batches, strict=True)):
        if tuple(batch.shape[1:]) != tuple(output.shape):
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                f"mismatch was detected: grad_output[{position}] has a shape of {batch.shape} and output[{position}] has a "
                f"shape of {output.shape}."
            )


def _present(position, item, allow_unused, materialize, create_graph):
    """A gradient as the caller asked for it."""
    tensor, gradient = item
    if gradient is not None:
        return gradient
    if not allow_unused:
        raise RuntimeError(
            f"The differentiated Tensor at index {position} appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    if not materialize:
        return None
    return wrap(execution.zeros(tensor._aval), requires_grad=create_graph)


def _sequence(tensors) -> tuple:
    if tensors is None:
        return ()
    return (tensors,) if isinstance(tensors, Tensor | GradientEdge) else tuple(tensors)


def _inputs(inputs, function):
    """The keys of a dict of inputs, or None; and the inputs."""
    if isinstance(inputs, Mapping) and type(inputs) is not dict:
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not {type(inputs).__name__}. "
            "Other Mapping types are not supported."
        )
    names = tuple(inputs) if isinstance(inputs, dict) else None
    wanted = _sequence(inputs if names is None else inputs.values())
    if not wanted:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    return names, wanted


def _retain(retain_graph, create_graph):
    return create_graph if retain_graph is None else retain_graph


def _edge(tensor):
    return tensor[:2] if isinstance(tensor, GradientEdge) else edge_of(tensor)


def _keys(edges):
    return None if edges is None else [(node.sequence, output_nr) for node, output_nr in edges]


def _roots(outputs):
    for position, output in enumerate(outputs):
        if isinstance(output, Tensor) and not output._requires_grad:
            raise RuntimeError(
                f"element {position} of tensors does not require grad and does not have a grad_fn: it has shape "
                f"{list(output.shape)}, and nothing it was computed from requires grad, or it was computed under no_grad"
            )
    return [_edge(output) for output in outputs]


def _gradients(outputs, given) -> list:
    """A tensor for each output, ones by default, each checked against its output."""
    given = (None,) * len(outputs) if given is None else _sequence(given)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    return [_gradient(position, *pair) for position, pair in enumerate(zip(outputs, given, strict=True))]


def _gradient(position, output, gradient):
    aval = output.node.outputs()[output.output_nr] if isinstance(output, GradientEdge) else output._aval
    if gradient is None:
        return _ones(output, aval)
    if not isinstance(gradient, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    if gradient.shape != aval.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {gradient.shape} and output[{position}] has a shape "
            f"of {aval.shape}."
        )
    if gradient.dtype.is_complex != aval.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{position}] has a dtype of {gradient.dtype} and output[{position}] has a dtype of {aval.dtype}."
        )
    return gradient if gradient.dtype == aval.dtype else gradient.to(aval.dtype)


def _ones(output, aval):
    if isinstance(output, Tensor) and not output._requires_grad:
        return None
    if aval.shape.numel() != 1:
        raise RuntimeError(
            f"grad can be implicitly created only for scalar outputs, not for one of shape {list(aval.shape)}: "
            "pass its gradient, or reduce it with sum() or mean() first"
        )
    if not aval.dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {aval.dtype}")
    return wrap(execution.ones(aval), aval)


def _carried(gradients, create_graph):
    """Gradients as the engine carries them: tensors when the pass is recorded, else their arrays."""
    return gradients if create_graph else [gradient._array for gradient in gradients]


def _tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Add the gradient of this tensor to the `.grad` of the leaves it was computed from; see `autograd.backward`.

    >>> x = jaxgrad.tensor(3.0, requires_grad=True)
    >>> (x * x).backward()
    >>> x.grad
    tensor(6.)
    """
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


Tensor.backward = _tensor_backward
