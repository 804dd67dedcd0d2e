"""Backward hooks of modules.

Inputs and outputs each pass through one identity node; the hooks run on these two nodes.
"""

from __future__ import annotations

import warnings

from ..autograd.function import Function
from ..tape.mode import is_grad_enabled
from ..tape.tensor import Tensor


class BackwardHookFunction(Function):
    """The identity: returns its arguments as views."""

    @staticmethod
    def forward(ctx, *tensors):
        views = tuple([tensor.view_as(tensor) for tensor in tensors])
        pairs = zip(tensors, views, strict=True)
        ctx.mark_non_differentiable(*[view for tensor, view in pairs if not tensor.requires_grad])
        return views

    @staticmethod
    def backward(ctx, *gradients):
        return gradients


class BackwardHook:
    """The backward hooks of one call of a module; they run in each backward pass through it."""

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, tuple(hooks), tuple(pre_hooks)
        self.gradients = None  # of the outputs, during a backward pass
        self.positions = None  # of the tensors among the inputs, if one requires grad
        self.inputs = self.outputs = 0

    def enter(self, args):
        """Return the inputs for the module's `forward`."""
        args, positions = _with_hook(args, self._on_input_gradients)
        self.inputs, self.positions = len(args), positions
        self.kinds = [(args[i].shape, args[i].dtype) for i in positions or ()]
        return args

    def leave(self, output):
        """Return the output for the caller."""
        is_tuple = isinstance(output, tuple)
        if not is_tuple and not isinstance(output, Tensor):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(output)} from {type(self.module).__name__}",
                stacklevel=2,
            )
        outputs = output if is_tuple else (output,)
        outputs, positions = _with_hook(outputs, self._on_output_gradients)
        self.outputs, self.output_positions = len(outputs), positions
        if not is_tuple:
            return outputs[0]
        return output._make(outputs) if hasattr(output, "_fields") else outputs

    def _on_output_gradients(self, _, gradients):
        """Run the pre-hooks when the gradients of the outputs have arrived."""
        self.gradients = _with_none(self.output_positions, gradients, self.outputs)
        for hook in self.pre_hooks:
            result = hook(self.module, self.gradients)
            if result is not None:
                self.gradients = _check_count("pre hook", "grad_output", result, self.gradients)
        gradients = tuple(self.gradients[position] for position in self.output_positions)
        if self.positions is None:
            self._call_without_inputs()
        return gradients

    def _call_without_inputs(self):
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            f"outputs since no inputs require gradients: {type(self.module).__name__}",
            stacklevel=2,
        )
        grad_input = (None,) * self.inputs
        for hook in self.hooks:
            result = hook(self.module, grad_input, self.gradients)
            if result is not None and any(gradient is not None for gradient in result):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.gradients = None

    def _on_input_gradients(self, gradients, _):
        """Run the hooks when the gradients of the inputs are known."""
        if self.gradients is None:
            return None  # this pass did not reach the outputs
        present = next(gradient for gradient in gradients if gradient is not None)
        # as in PyTorch, an input that does not require grad has a gradient of zeros
        gradients = [
            present.new_zeros(shape, dtype=dtype) if gradient is None else gradient
            for gradient, (shape, dtype) in zip(gradients, self.kinds, strict=True)
        ]
        grad_input = _with_none(self.positions, gradients, self.inputs)
        for hook in self.hooks:
            result = hook(self.module, grad_input, self.gradients)
            if result is not None:
                grad_input = _check_count("hook", "grad_input", result, grad_input)
        self.gradients = None
        return tuple(grad_input[position] for position in self.positions)


def _with_hook(values, hook):
    """Pass the tensors among `values` through a node with `hook`; return them and their positions.

    Return `values` unchanged and None if no tensor requires grad.
    """
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in positions):
        return values, None
    outputs = BackwardHookFunction.apply(*[values[i] for i in positions])
    node = next(tensor.grad_fn for tensor in outputs if tensor.requires_grad)
    node.register_hook(hook)
    values = list(values)
    for position, tensor in zip(positions, outputs, strict=True):
        values[position] = tensor
    return tuple(values), positions


def _with_none(positions, gradients, count):
    """Return one gradient for each value: None at the positions without a tensor."""
    result = [None] * count
    for position, gradient in zip(positions, gradients, strict=True):
        result[position] = gradient
    return tuple(result)


def _check_count(what, name, result, expected):
    result = result if isinstance(result, tuple | list) else (result,)
    if len(result) != len(expected):
        raise RuntimeError(
            f"Backward {what} returned an invalid number of {name}, got {len(result)}, but "
            f"expected {len(expected)}"
        )
    return tuple(result)
