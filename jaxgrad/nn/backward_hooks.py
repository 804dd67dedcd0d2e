"""Hooks of a module's backward pass.

Inputs and outputs pass through an identity each, and the hooks are on the nodes of the two.
"""

from __future__ import annotations

import warnings

from ..autograd import Function
from ..tape.mode import is_grad_enabled
from ..tape.tensor import Tensor


class BackwardHookFunction(Function):
    """Its arguments as views of them."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[each for each in tensors if not each.requires_grad])
        return tuple(each.view_as(each) for each in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        return gradients


class BackwardHook:
    """One call of a module with backward hooks: called for each pass through its graph."""

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, tuple(hooks), tuple(pre_hooks)
        self.gradients = None  # of the outputs, in the pass that is under way
        self.positions = None  # of the inputs that are tensors, where one requires grad
        self.inputs = self.outputs = 0

    def enter(self, args):
        """The inputs, as the module is to get them."""
        args, positions = _through(args, self._at_inputs)
        self.inputs, self.positions = len(args), positions
        return args

    def leave(self, output):
        """The output, as the caller is to get it."""
        several = isinstance(output, tuple)
        made, positions = _through(output if several else (output,), self._at_outputs)
        self.outputs, self.output_positions = len(made), positions
        if not several:
            return made[0]
        return type(output)(*made) if hasattr(output, "_fields") else made

    def _at_outputs(self, _, gradients):
        """The gradients of the outputs have arrived."""
        self.gradients = _spread(self.output_positions, gradients, self.outputs)
        for hook in self.pre_hooks:
            found = hook(self.module, self.gradients)
            if found is not None:
                self.gradients = _checked("pre hook", "grad_output", found, self.gradients)
        given = tuple(self.gradients[position] for position in self.output_positions)
        if self.positions is None:
            self._without_inputs()
        return given

    def _without_inputs(self):
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            f"outputs since no inputs require gradients: {type(self.module).__name__}",
            stacklevel=2,
        )
        nothing = (None,) * self.inputs
        for hook in self.hooks:
            found = hook(self.module, nothing, self.gradients)
            if found is not None and any(each is not None for each in found):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.gradients = None

    def _at_inputs(self, gradients, _):
        """The gradients of the inputs are known."""
        if self.gradients is None:
            return None  # the outputs were not on the way
        found = _spread(self.positions, gradients, self.inputs)
        for hook in self.hooks:
            other = hook(self.module, found, self.gradients)
            if other is not None:
                found = _checked("hook", "grad_input", other, found)
        self.gradients = None
        return tuple(found[position] for position in self.positions)


def _through(values, hook):
    """The values with their tensors led through a node that has a hook, and where these are; as
    they were, and None, where no tensor requires grad."""
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in positions):
        return values, None
    made = BackwardHookFunction.apply(*[values[i] for i in positions])
    node = next(each.grad_fn for each in made if each.requires_grad)
    node.register_hook(hook)
    values = list(values)
    for position, tensor in zip(positions, made, strict=True):
        values[position] = tensor
    return tuple(values), positions


def _spread(positions, gradients, count):
    """The gradients of tensors, with None for what is no tensor."""
    found = [None] * count
    for position, gradient in zip(positions, gradients, strict=True):
        found[position] = gradient
    return tuple(found)


def _checked(what, name, found, before):
    found = found if isinstance(found, tuple | list) else (found,)
    if len(found) != len(before):
        raise RuntimeError(
            f"Backward {what} returned an invalid number of {name}, got {len(found)}, but expected "
            f"{len(before)}"
        )
    return tuple(found)
