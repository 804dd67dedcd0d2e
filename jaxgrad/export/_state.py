"""The state of a module that is exported: its parameters, buffers and other tensors."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import NamedTuple

from ..nn.module import Module
from ..tape.tensor import Tensor
from ._errors import UserError
from .graph_signature import InputKind

_PREFIX = {
    InputKind.PARAMETER: "p_",
    InputKind.BUFFER: "b_",
    InputKind.CONSTANT_TENSOR: "c_",
}


class Slot(NamedTuple):
    """A tensor of a module. paths: all of its paths, the first one before; persistent: whether the
    state dict has it.
    """

    kind: InputKind
    paths: tuple[str, ...]
    persistent: bool = True

    @property
    def path(self) -> str:
        """The path under which a program has the tensor."""
        return self.paths[0]


def node_name(slot: Slot) -> str:
    """The name of the input of a slot in the graph."""
    return _PREFIX[slot.kind] + slot.path.replace(".", "_")


def slots_of(module) -> dict[Slot, Tensor]:
    """The tensors of a module, each once."""
    members = [
        (InputKind.PARAMETER, module.named_parameters(remove_duplicate=False)),
        (InputKind.BUFFER, module.named_buffers(remove_duplicate=False)),
        (InputKind.CONSTANT_TENSOR, _constants(module)),
    ]
    known: dict[int, tuple] = {}
    for kind, pairs in members:
        for path, tensor in pairs:
            _, paths, _ = known.setdefault(id(tensor), (kind, [], tensor))
            paths.append(path)
    return {
        Slot(kind, tuple(paths), _is_persistent(module, kind, paths)): tensor
        for kind, paths, tensor in known.values()
    }


def _constants(module):
    """The tensors that are attributes of modules, by their paths."""
    for path, inner in module.named_modules():
        for name, value in vars(inner).items():
            if isinstance(value, Tensor):
                yield f"{path}.{name}" if path else name, value


def _is_persistent(module, kind, paths) -> bool:
    if kind is not InputKind.BUFFER:
        return True
    owner, _, name = paths[0].rpartition(".")
    return name not in module.get_submodule(owner)._non_persistent_buffers_set


def holder_of(module: Module, slot: Slot, path: str) -> tuple[dict, str]:
    """The dict of a module that holds the tensor at a path, and its key."""
    owner, _, name = path.rpartition(".")
    inner = module.get_submodule(owner)
    holders = {InputKind.PARAMETER: inner._parameters, InputKind.BUFFER: inner._buffers}
    return holders.get(slot.kind, vars(inner)), name


def members_of(module: Module) -> list[tuple]:
    """The attributes of a module and its submodules, and the dicts and lists among them, with
    copies of their contents.
    """
    holders = [
        holder
        for inner in module.modules()
        for holder in (vars(inner), *[v for v in vars(inner).values() if type(v) in _CONTAINERS])
    ]
    return [(holder, holder.copy()) for holder in holders]


_CONTAINERS = (dict, OrderedDict, list)


def _restore(members):
    for holder, content in members:
        holder.clear()
        (holder.extend if isinstance(holder, list) else holder.update)(content)


@contextlib.contextmanager
def installed(module: Module, members, tensors: dict[Slot, Tensor]):
    """A block in which the attributes of a module are those of `members_of`, but for other
    tensors. Gives a function that tells which tensor a slot has. Afterwards all attributes are as
    they were before.

    Raises UserError if the block leaves a tensor in an attribute, which is no output of a program.
    """
    before = members_of(module)
    try:
        _restore(members)
        modules = [*module.modules()]
        for slot, tensor in tensors.items():
            for path in slot.paths:
                holder, name = holder_of(module, slot, path)
                holder[name] = tensor
        during = [{**vars(inner)} for inner in modules]

        def tensor_of(slot):
            holder, name = holder_of(module, slot, slot.path)
            return holder[name]

        yield tensor_of
        for inner, known in zip(modules, during, strict=True):
            _refuse_assigned(inner, known)
        for holder, content in before:
            _refuse_appended(holder, content)
    finally:
        _restore(before)


def _refuse_appended(holder, content):
    """Raise UserError for a list that a trace has made longer by a tensor."""
    if isinstance(holder, list) and any(isinstance(e, Tensor) for e in holder[len(content) :]):
        raise UserError(
            "A tensor was appended to a list of the module during export, which no program does: "
            "return it, or write to a buffer"
        )


def _refuse_assigned(module, known):
    for name, value in vars(module).items():
        if isinstance(value, Tensor) and value is not known.get(name):
            raise UserError(
                f"The tensor attribute self.{name} of {type(module).__name__} was assigned during "
                "export. Such attributes must be registered as buffers using the "
                "`register_buffer` API, or be returned"
            )
