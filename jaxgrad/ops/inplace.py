"""In-place operators: `x.add_(y)` runs the functional operator and gives its result to `x`.

Each uses the functional entry of the table and its formulas. A table may also have a separate entry
for the in-place form, `add_(Tensor(a!) self, ...)`.
"""

from __future__ import annotations

from ..core import tracebacks, view_ops
from ..core.pytorch_tensors import type_name
from ..core.tracebacks import NOT_OVERRIDDEN, hide_frames
from ..storage.alias import assign
from ..storage.inplace_check import fits, overwrite, permit, unexpanded
from ..tape import interception, sparse_tensor
from ..tape.mode import RECORD, current_mode
from ..tape.record import finish
from ..tape.tensor import Tensor
from .dispatch import Operator, is_foreign

# the operators with an in-place form in PyTorch
NAMES = frozenset([
    "abs", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr",
    "asin", "asinh", "atan", "atan2", "atanh", "baddbmm", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clamp",
    "clamp_max", "clamp_min", "conj_physical", "copy", "copysign", "cos", "cosh", "cumprod",
    "cumsum", "deg2rad", "digamma", "div", "elu", "embedding_renorm",
    "eq", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "fill", "fill_diagonal", "float_power", "floor", "floor_divide", "fmod", "frac",
    "gcd", "ge", "gt", "hardtanh", "heaviside", "hypot", "i0", "igamma", "igammac", "index_add",
    "index_copy", "index_fill", "index_put", "index_reduce", "lcm", "ldexp", "le", "leaky_relu",
    "lerp", "lgamma", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logit", "lt", "masked_fill", "masked_scatter", "mul", "mvlgamma",
    "nan_to_num", "ne", "neg", "nextafter", "polygamma", "pow", "put", "rad2deg", "reciprocal",
    "relu", "remainder", "renorm", "round", "rsqrt", "scatter", "scatter_add", "scatter_reduce",
    "sgn", "sigmoid", "sign", "silu", "sin", "sinc", "sinh", "sqrt", "square", "sub", "tan",
    "tanh", "threshold", "tril", "triu", "trunc", "xlogy", "zero",
    "celu", "hardsigmoid", "hardswish", "mish", "_rrelu",
])  # fmt: skip


# these set all elements to one value, so that indices of the target may share elements
FILLING = frozenset(["fill_", "zero_"])


def inplace_operator(name: str, functional: str, find):
    """The in-place form of an operator; `find(functional)` returns the operator on JAX values."""
    made = InPlace(name, functional, find)
    call_of, general_call, is_protocol = made.fitting.get, made.general_call, False

    def call(*args, **kwargs):
        try:
            if len(args) != 2 or kwargs or interception.is_general:
                return general_call(args, kwargs)
            target, other = args
            if type(target) is not Tensor or type(other) is not Tensor:
                return general_call(args, kwargs)
            alias = target._alias
            if alias is not None and alias.seen != alias.storage.epoch:
                alias.refresh(target)
            alias = other._alias
            if alias is not None and alias.seen != alias.storage.epoch:
                alias.refresh(other)
            program = call_of((target._aval, other._aval))
            if program is None:
                return general_call(args, kwargs)
            return made.write(program, target, other, args)
        except Exception as error:
            if tracebacks.override is None and tracebacks.meets_override(args, kwargs):
                return general_call(args, kwargs)
            if is_protocol and is_foreign(args):
                return NotImplemented
            hide_frames(error)
            raise

    return made.called_by(call, name)


class InPlace(Operator):
    """The plans of an operator that writes to its first argument.

    `fitting`: calls on two tensors whose result needs no conversion, by the abstract values.
    """

    def __init__(self, name, functional, find):
        super().__init__(functional, find)
        self.written_as = name
        self.fitting: dict[tuple, object] = {}

    def write(self, program, target, other, args):
        mask = (target._tracked, other._tracked)
        # `permit` refuses tracked tensors, views and inference tensors alone
        if True in mask or target._alias is not None or target._node is not None:
            permit(self.written_as, target, True in mask)
        made = finish(program, args, (target._raw, other._raw), mask)
        follow = current_mode.get() is RECORD
        assign(target, made, follow)
        return target

    def general_call(self, args, kwargs, method: str | None = None):
        if tracebacks.override is not None:
            result = tracebacks.override(self.public(method), args, kwargs)
            if result is not NOT_OVERRIDDEN:
                return result
        return self.overwrite(args, kwargs)

    def overwrite(self, args, kwargs):
        """Write to the first argument, and return it."""
        if not args or not isinstance(args[0], Tensor):
            raise TypeError(
                f"{self.written_as}(): argument 'self' (position 1) must be Tensor, not "
                f"{type_name(args[0]) if args else 'missing'}"
            )
        target = args[0]
        if self.written_as in FILLING and view_ops.overlaps(target._aval):
            whole = unexpanded(target)
            if whole is not None:
                self.overwrite((whole, *args[1:]), kwargs)
                return target
        call, leaves = self.bind(args, kwargs)
        if call is None:  # an argument is sparse
            return sparse_tensor.implementation().write(self.written_as, self.name, args, kwargs)
        overwrite(self.written_as, call, leaves, target)
        # the fast path passes both arguments as they are, so neither may have been converted
        if (
            len(leaves) == len(args) == 2
            and not kwargs
            and call.only_arrays
            and leaves[1] is args[1]
        ):
            self.remember(call, args)
        return target

    def remember(self, call, args):
        """Add a call on two tensors to `fitting`, if its result needs no cast and the target cannot
        lose its history by it.
        """
        target, other = args
        tracked = call.tracked[0] and call.differentiable_outputs
        if fits(call, target) and (tracked or not target._aval.differentiable):
            self.fitting[target._aval, other._aval] = call
