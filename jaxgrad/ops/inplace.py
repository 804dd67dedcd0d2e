"""In-place operators: `x.add_(y)` runs the functional operator and gives its result to `x`.

Each uses the functional entry of the table and its formulas. A table may also have a separate entry
for the in-place form, `add_(Tensor(a!) self, ...)`.
"""

from __future__ import annotations

from ..core import view_ops
from ..core.dtypes import HalfComplexResult
from ..core.pytorch_tensors import type_name
from ..core.tracebacks import hide_frames
from ..storage.alias import assign
from ..storage.inplace_check import (
    check_sources,
    fits,
    overwrite,
    permit,
    unexpanded,
    write_into,
)
from ..tape import interception, sparse_tensor
from ..tape.mode import RECORD, current_mode
from ..tape.record import finish
from ..tape.tensor import PLAIN_TENSORS, Tensor
from ..tape.torch_function import NOT_OVERRIDDEN, meets_override
from .dispatch import ARRAYS, CONSTANTS, Operator, is_foreign, operator

# inlined: the accessors of tape/tensor.py

# the first set all elements to one value, so that indices of the target may share elements; the
# others do the same to every matrix, and allow it along the first dimension, as in PyTorch
FILLING, OF_MATRICES = frozenset(["fill_", "zero_"]), frozenset(["tril_", "triu_"])


def operator_of(name: str, library):
    """The operator of a library on tensors, or its in-place form for a name such as `add_`."""
    functional = library.functional(name)
    if functional is None:
        return operator(name, library.find, write_into)
    return inplace_operator(name, functional, library.find)


def inplace_operator(name: str, functional: str, find):
    """The in-place form of an operator; `find(functional)` returns the operator on JAX values."""
    operator = InPlace(name, functional, find)
    call_of, general_call, is_protocol = operator.fitting.get, operator.general_call, False
    short_call = operator.short_call

    def call(*args, **kwargs):
        try:
            if not args or kwargs or interception.is_general:
                return general_call(args, kwargs)
            target, other = args[0], args[-1]
            is_pair = type(target) in PLAIN_TENSORS and type(other) in PLAIN_TENSORS
            if len(args) != 2 or not is_pair:
                result = short_call(args)
                return general_call(args, kwargs) if result is None else result
            alias = target._alias
            if alias is not None and alias.seen != alias.storage.epoch:
                alias.refresh(target)
            alias = other._alias
            if alias is not None and alias.seen != alias.storage.epoch:
                alias.refresh(other)
            program = call_of((target._aval, other._aval))
            if program is None:
                return general_call(args, kwargs)
            arrays, mask = (target._raw, other._raw), (target._tracked, other._tracked)
            return operator.write(program, args, arrays, mask)
        except Exception as error:
            if interception.override is None and meets_override(args, kwargs):
                return general_call(args, kwargs)
            if type(error) is HalfComplexResult:
                return operator.write_half_complex(args, kwargs, error)
            if is_protocol and is_foreign(args):
                return NotImplemented
            hide_frames(error)
            raise

    return operator.called_by(call, name)


class InPlace(Operator):
    """The plans of an operator that writes to its first argument.

    `fitting`: calls on a tensor, or on one and a tensor or a float, whose result needs no
    conversion, by the abstract values, and `float` for an input that is one.
    """

    def __init__(self, name, functional, find):
        super().__init__(functional, find, write_into)
        self.written_as = name
        self.fitting: dict[tuple, object] = {}

    def short_call(self, args):
        """The result for a tensor alone, or one and a number, while nothing takes part in calls.
        None where no call of the kind is known.
        """
        target, number = args[0], args[-1]
        if len(args) < 3 and type(target) in PLAIN_TENSORS:
            alias = target._alias
            if alias is not None and alias.seen != alias.storage.epoch:
                alias.refresh(target)
            if number is target:
                kinds, arrays, mask = (target._aval,), (target._raw,), (target._tracked,)
            elif type(number) is float and number not in CONSTANTS:
                kinds, arrays = (target._aval, float), (target._raw, number)
                mask = (target._tracked, False)
            else:
                return None
            program = self.fitting.get(kinds)
            if program is not None:
                return self.write(program, args, arrays, mask)
        return None

    def write(self, program, args, arrays, mask):
        """Run a call of `fitting`, and write its result into the first argument."""
        target = args[0]
        # `permit` refuses tracked tensors, views and inference tensors alone
        if True in mask or target._alias is not None or target._node is not None:
            is_equal = self.written_as in FILLING and True not in mask[1:]
            permit(self.written_as, target, True in mask, overlapping=is_equal)
            if target._alias is not None and len(args) > 1:
                check_sources(self.written_as, target, args)
        result = finish(program, args, arrays, mask)
        follow = current_mode.get() is RECORD
        assign(target, result, follow)
        return target

    def general_call(self, args, kwargs, method: str | None = None, beside_array=None):
        if interception.override is not None:
            result = interception.override(self.public(method), args, kwargs)
            if result is not NOT_OVERRIDDEN:
                return result
        if beside_array is not None and isinstance(args[-1], ARRAYS):
            return beside_array(*args)
        return self.overwrite(args, kwargs)

    def overwrite(self, args, kwargs):
        """Write to the first argument, and return it."""
        if not args or not isinstance(args[0], Tensor):
            raise TypeError(
                f"{self.written_as}(): argument 'input' (position 1) must be Tensor, not "
                f"{type_name(args[0]) if args else 'missing'}"
            )
        target = args[0]
        if kwargs and kwargs.get("dtype") not in (None, target.dtype):
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {target.dtype} and output tensor dtype "
                f"{kwargs['dtype']} should match: {self.written_as} keeps the dtype of its tensor"
            )
        fills = self.written_as in FILLING
        if (fills or self.written_as in OF_MATRICES) and view_ops.overlaps(target._aval):
            whole = unexpanded(target, 0 if fills else max(target.ndim - 1, 2))
            if whole is not None:
                permit(self.written_as, target, target.requires_grad, overlapping=True)
                self.overwrite((whole, *args[1:]), kwargs)
                return target
        call, leaves = self.bind(args, kwargs)
        if call is None:  # an argument is sparse
            return sparse_tensor.implementation().write(self.written_as, self.name, args, kwargs)
        overwrite(self.written_as, call, leaves, target, fills)
        # the fast paths pass the arguments as they are, so none may have been converted
        is_short = len(leaves) == len(args) < 3 and not kwargs and leaves[-1] is args[-1]
        if is_short and (call.only_arrays or type(args[-1]) is float):
            self.remember(call, args)
        return target

    def write_half_complex(self, args, kwargs, error):
        """Write to the first argument what is computed in complex32, and return it."""
        target = args[0]
        permit(self.written_as, target, target.requires_grad)
        result = interception.lacking_dtype(self.public(self.name), args, kwargs, error)
        if result.dtype.is_complex:
            raise RuntimeError(
                f"{self.written_as}: result type ComplexHalf can't be cast to the desired output "
                f"type {target.dtype.scalar_type}"
            )
        return target.copy_(result)

    def remember(self, call, args):
        """Add a call to `fitting`, if its result needs no cast and the target cannot lose its
        history by it.
        """
        target = args[0]
        kinds = tuple([operand._aval if isinstance(operand, Tensor) else float for operand in args])
        tracked = call.tracked[0] and call.differentiable_outputs
        if fits(call, target) and (tracked or not target._aval.differentiable):
            self.fitting[kinds] = call
