"""Programs that move a tensor to another sharding."""

from __future__ import annotations

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ...core import executor, spread, world
from ...core.aval import IMMEDIATE, SPREAD, Aval, is_concrete, make_aval
from ...core.bounded_cache import bounded
from ...core.pending import value_of
from ...core.program import Program, Reverse
from ...names.missing import missing_in
from ...tape.record import apply
from ...tape.tensor import Tensor, abstract_value, current


def _moved(array, target):
    if isinstance(target, NamedSharding):
        return jax.lax.with_sharding_constraint(array, target)
    return array


class Redistribute(Program):
    """A tensor in another sharding. back: that of its gradient, None to leave it."""

    name, may_run_on_host = "Redistribute", False

    def __init__(self, aval: Aval, target, back):
        self.inputs, self.target, self.back = (aval,), target, back
        self.outputs, self.mode = (_aval(aval, target),), aval.mode

    @property
    def to_compile(self):
        return lambda array: spread.moved(value_of(array), self.target)

    def function(self, array):
        return (_moved(array, self.target),)

    def make_reverse(self, mask):
        return RedistributeReverse(self, mask)


def _aval(aval: Aval, target) -> Aval:
    mode = aval.mode
    if is_concrete(mode):
        is_spread = world.is_several() and not target.is_fully_addressable
        mode = SPREAD if is_spread else IMMEDIATE
    return make_aval(tuple(aval.shape), aval.dtype, mode, aval.strides)


class RedistributeReverse(Reverse):
    """The gradient in the sharding of the input."""

    saved_inputs = saved_outputs = ()

    def __init__(self, program, mask, present=None):
        super().__init__(program, mask, present)
        self.target, self.back = program.back, program.target
        self.outputs = (program.inputs[0],)

    @property
    def to_compile(self):
        if self.target is None:
            return lambda array: array
        return lambda array: spread.moved(value_of(array), self.target)

    def function(self, array):
        return (array if self.target is None else _moved(array, self.target),)

    def make_reverse(self, mask):
        return RedistributeReverse(self, mask)


@bounded(Program.weight)
def _program(aval, target, back) -> Redistribute:
    return Redistribute(aval, target, back)


def redistributed(tensor: Tensor, target, back) -> Tensor:
    """A tensor in the sharding `target`, whose gradient comes in the sharding `back`."""
    tensor = current(tensor)
    return apply(executor.prepare(_program(abstract_value(tensor), target, back)), [tensor])


def replicated(mesh) -> NamedSharding:
    """The sharding of a tensor that each device has whole."""
    return NamedSharding(mesh, PartitionSpec())


__getattr__ = missing_in(__name__)
