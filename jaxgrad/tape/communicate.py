"""Communication of tensors, recorded by the tape."""

from __future__ import annotations

from ..core import executor, world
from ..core.aval import is_concrete
from ..core.bounded_cache import bounded
from ..core.communication import Communicated, Communication
from ..core.program import Program
from .record import apply
from .tensor import Tensor, abstract_value, current


@bounded(Program.weight)
def _program(communication, aval) -> Communicated:
    return Communicated(communication, aval)


def communicated(tensor: Tensor, communication: Communication) -> Tensor:
    """The result of a communication of a tensor, differentiable."""
    tensor = current(tensor)
    program = _program(communication, abstract_value(tensor))
    return apply(executor.prepare(program), [tensor])


def among(tensor: Tensor, group, kind, **options) -> Tensor:
    """The result of a communication of one kind within a process group, differentiable.

    Raises RuntimeError in a compiled function if the other groups of the processes are not known:
    all processes run one program.
    """
    if group.size() == 1:
        return tensor
    tensor = current(tensor)
    if is_concrete(abstract_value(tensor).mode):
        return communicated(tensor, kind(group.mesh, **options))
    if not group.is_world and group.partition is None:
        raise RuntimeError(
            f"{kind.__name__} in a compiled function: all processes run one program, so make the "
            "group by new_subgroups, split_group or a DeviceMesh, which tell the groups of the "
            f"others too, and not by new_group: {group}"
        )
    groups = None if group.is_world else group.partition
    return communicated(tensor, kind(world.current.mesh, groups=groups, **options))
