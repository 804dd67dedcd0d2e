"""What a Function's `forward` returned, as its caller gets it: with the call for its history."""

from __future__ import annotations

import warnings

from ... import ops
from ...core.tracebacks import users_stacklevel
from ...storage.alias import assign
from ...storage.creation_meta import FUNCTION, FUNCTION_SEVERAL
from ...storage.inplace_check import permit
from ...tape import version_counter
from ...tape.mode import INFERENCE, MARK, PLAIN, current_mode, is_grad_enabled, switch
from ...tape.tensor import DERIVED, INFERENCE_TENSOR, Tensor, wrap


class Outputs:
    """The outputs of a call as its caller gets them."""

    def __init__(self, ctx, args, values, recorded):
        self.ctx, self.values, self.recorded = ctx, values, recorded
        self.args = {id(argument) for argument in args if isinstance(argument, Tensor)}
        self.dirty = {id(tensor) for tensor in ctx.dirty_tensors or ()}
        self.constant = {id(tensor) for tensor in ctx.non_differentiable or ()}
        self.count = sum(isinstance(value, Tensor) for value in values)
        self.seen = set()
        if self.dirty:
            self.check_dirty(args)

    def check_dirty(self, args):
        if self.dirty - {id(value) for value in self.values}:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
        if self.dirty - self.args:
            warnings.warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
                "have been mutated should be passed to ctx.mark_dirty().",
                UserWarning,
                stacklevel=users_stacklevel(),
            )
        for argument in args:
            is_view = id(argument) in self.dirty and argument._base is not None
            if is_view and self.count > 1 and self.recorded:
                raise RuntimeError(
                    "If your Function modifies inplace an input that is a view of another Tensor, "
                    "your Function cannot return more than one Tensor. This is not supported by "
                    "the current autograd engine. You should either make sure the input is not a "
                    "view (using .clone() for example) or make your Function only return one "
                    "Tensor: "
                    f"{self.ctx.name()} returns {self.count}"
                )

    def finished(self):
        values = [value if isinstance(value, Tensor) else None for value in self.values]
        self.ctx._avals = tuple([None if value is None else value._aval for value in values])
        self.ctx.output_count = len(values)
        return tuple([self.output(number) for number in range(len(values))])

    def output(self, number):
        value = self.values[number]
        if not isinstance(value, Tensor):
            return value
        constant = id(value) in self.constant or not value._aval.differentiable
        if id(value) in self.args and id(value) in self.dirty:
            return self.written(value, number, constant)
        if id(value) in self.args or id(value) in self.seen:
            value = self.shown_again(value, constant)
        self.seen.add(id(value))
        if self.recorded:
            self.give_history(value, number, constant)
        elif value._node is DERIVED and current_mode.get() != MARK:
            value._node = None
        return value

    def written(self, value, number, constant):
        """An input that `forward` wrote to: the same tensor, with a new history."""
        if not self.recorded or constant:
            version_counter.counter_of(value).count()
            return value.detach() if value._requires_grad else value
        permit_dirty(self.ctx, [value])
        permit(self.ctx.name(), value, True)
        assign(value, wrap(value._array, value._aval, True, self.ctx, number), True)
        return value

    def shown_again(self, value, constant):
        """Another tensor for an input that was returned as it is."""
        before = switch(current_mode.get() if current_mode.get() >= INFERENCE else PLAIN)
        try:
            return value.detach() if constant else ops.alias(value)
        finally:
            switch(before)

    def give_history(self, value, number, constant):
        if value._node is INFERENCE_TENSOR:
            return
        value._tracked = not constant
        value._node, value._nr = (None, 0) if constant else (self.ctx, number)
        alias = value._alias
        if alias is not None and alias.base is not None:
            alias.made = FUNCTION if self.count == 1 else FUNCTION_SEVERAL


def permit_dirty(ctx, tensors):
    """Raises RuntimeError for a leaf that requires grad and is to be written to."""
    recorded = current_mode.get() == MARK or is_grad_enabled()
    for tensor in tensors:
        if recorded and tensor._requires_grad and tensor.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation. "
                f"{ctx.name()} writes to a leaf of shape {list(tensor.shape)}"
            )
