"""The arguments of `backward` and `grad`: checks them and brings them into one form."""

from __future__ import annotations

from collections.abc import Mapping

from ...core import elementary
from ...core.aval import META
from ...core.device import may_differ
from ...core.pytorch_tensors import type_name
from ...tape import sparse_tensor
from ...tape.asked_edge import GradientEdge, find_edge
from ...tape.tensor import (
    PLAIN_TENSORS,
    Tensor,
    current,
    edge_of,
    is_on_meta,
    known_edge_of,
)
from ...tape.torch_function import stands_for_tensor

# inlined: the accessors of tape/tensor.py


def outputs_of(tensors) -> tuple:
    """The tensors and edges where gradients start, as a tuple."""
    if type(tensors) in PLAIN_TENSORS:
        return (tensors,)
    outputs = sequence(tensors)
    for output in outputs:
        if not _is_place(output):
            raise TypeError(
                "Expected output to be a torch.Tensor or a GradientEdge, but got "
                f"{type_name(output)}"
            )
    return outputs


def inputs_of(inputs, function: str):
    """The keys if inputs is a dict, else None; and a tuple of the inputs."""
    if isinstance(inputs, Mapping) and type(inputs) is not dict:
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not {type_name(inputs)}. "
            "Other Mapping types are not supported."
        )
    names = tuple(inputs) if isinstance(inputs, dict) else None
    wanted = sequence(inputs if names is None else inputs.values())
    if not wanted:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    for tensor in wanted:
        if not _is_place(tensor):
            raise RuntimeError(
                f"all inputs have to be Tensors or GradientEdges, but got {type_name(tensor)}"
            )
    return names, wanted


def _is_place(value) -> bool:
    return isinstance(value, Tensor | GradientEdge) or stands_for_tensor(value)


def sequence(tensors) -> tuple:
    if _is_place(tensors):
        return (tensors,)
    if not hasattr(tensors, "__iter__"):
        raise TypeError(f"expected a tensor or a sequence of tensors, but got {type_name(tensors)}")
    return tuple(tensors)


def edge(tensor):
    return tensor[:2] if isinstance(tensor, GradientEdge) else edge_of(tensor)


def edges_of_outputs(outputs) -> list:
    edges = []
    for position, output in enumerate(outputs):
        if isinstance(output, GradientEdge):
            edges.append(output[:2])
            continue
        if not current(output)._tracked:
            raise RuntimeError(
                f"element {position} of tensors does not require grad and does not have a grad_fn: "
                f"it has shape {list(output.shape)}, and no path of operators leads from it to a "
                "leaf that requires grad: look for a detach(), item(), numpy() or torch.tensor() "
                "on the way, integers, or no_grad()"
            )
        edges.append(known_edge_of(output))
    return edges


def edges_of_inputs(inputs, complaint: str) -> list:
    """The edges of the inputs. Raises RuntimeError(complaint) if one does not require grad."""
    for tensor in inputs:
        if isinstance(tensor, Tensor) and not tensor._requires_grad:
            raise RuntimeError(f"{complaint}: one of `inputs`, of shape {list(tensor.shape)}")
        if isinstance(tensor, Tensor):
            find_edge(tensor)
    return list(map(edge, inputs))


def gradients_of(outputs, gradients) -> list:
    """A gradient for each output, checked against it: a tensor, or by default an array of 1."""
    if gradients is None:
        return list(map(_ones, outputs))
    pairs = zip(outputs, _gradients_of_outputs(outputs, gradients), strict=True)
    return [gradient_for(position, *pair) for position, pair in enumerate(pairs)]


def _gradients_of_outputs(outputs, gradients) -> tuple:
    if gradients is None:
        return (None,) * len(outputs)
    if not isinstance(gradients, Tensor) and not hasattr(gradients, "__iter__"):
        gradients = (gradients,)
    gradients = sequence(gradients)
    if len(gradients) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    return gradients


def gradient_for(position: int, output, gradient):
    """A gradient, checked against its output and converted to its dtype; an array of 1 for None."""
    if gradient is None:
        return _ones(output)
    if sparse_tensor.is_sparse(output) or sparse_tensor.is_sparse(gradient):
        return _of_layout(position, output, gradient)
    aval = _aval(output)
    _check(position, aval, gradient)
    if gradient.shape != aval.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {gradient.shape} and "
            f"output[{position}] has a shape of {aval.shape}."
        )
    return gradient if gradient.dtype == aval.dtype else gradient.to(aval.dtype)


def _of_layout(position, output, gradient):
    """The gradient of an output where one of them is sparse, as the engine carries it."""
    _check(position, _aval(output), gradient)
    if sparse_tensor.is_sparse(output):
        gradient = sparse_tensor.values_for(output, gradient)
        return gradient if gradient.dtype == output.dtype else gradient.to(output.dtype)
    return gradient_for(position, output, gradient.to_dense())


def batches_of(outputs, gradients) -> list:
    """A batch of gradients for each output, stacked along the first dimension."""
    gradients = _gradients_of_outputs(outputs, gradients)
    batches = [
        _batch(*item) for item in zip(range(len(gradients)), outputs, gradients, strict=True)
    ]
    sizes = [batch.shape[0] for batch in batches]
    if len(set(sizes)) != 1:
        raise ValueError(
            "is_grads_batched: Expected all tensors to have the same size in the mapped dimension, "
            f"the first of each of grad_outputs, got sizes {sizes} for the mapped dimension"
        )
    return batches


def _batch(position, output, batch):
    aval = _aval(output)
    if batch is None:
        raise ValueError(
            "with is_grads_batched=True each of grad_outputs is a tensor whose first dimension is "
            f"the batch, but grad_outputs[{position}] is None"
        )
    _check(position, aval, batch)
    if not batch.ndim or batch.shape[1:] != aval.shape:
        raise RuntimeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as "
            "the batch dimension. The sizes of the remaining dimensions are expected to match the "
            f"shape of corresponding output, but a mismatch was detected: grad_output[{position}] "
            f"has a shape of {batch.shape[1:]} and output[{position}] has a shape of {aval.shape}."
        )
    return batch if batch.dtype == aval.dtype else batch.to(aval.dtype)


def _check(position, aval, gradient):
    if not isinstance(gradient, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type_name(gradient)}")
    if is_on_meta(gradient) != (aval.mode == META):
        place = "meta" if aval.mode == META else "a device with data"
        raise RuntimeError(
            f"invalid gradient at index {position} - expected device {place} but got "
            f"{gradient.device}"
        )
    if gradient.dtype.is_complex != aval.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{position}] has a dtype of {gradient.dtype} and "
            f"output[{position}] has a dtype of {aval.dtype}."
        )


def _ones(output):
    if isinstance(output, Tensor) and not current(output)._tracked:
        return None  # `edges_of_outputs` raises
    is_plain = type(output) in PLAIN_TENSORS
    if not is_plain and sparse_tensor.is_sparse(output):
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs, not for a sparse tensor of "
            f"shape {list(output.shape)}: pass its gradient, or reduce it with sum() first"
        )
    aval = output._aval if is_plain else _aval(output)
    if aval.is_real_scalar:
        if isinstance(output, GradientEdge) or not may_differ():
            return elementary.filled(aval, 1)
        return elementary.filled_beside(output._value, aval, 1)
    if aval.shape.numel() != 1:
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs, not for one of shape "
            f"{list(aval.shape)}: pass its gradient, or reduce it with sum() or mean() first"
        )
    raise RuntimeError(
        f"grad can be implicitly created only for real scalar outputs but got {aval.dtype}"
    )


def _aval(output):
    if isinstance(output, GradientEdge):
        return output.node.outputs()[output.output_nr]
    return output._aval
