"""The state of a module that is exported: its parameters, buffers and other tensors."""

from __future__ import annotations

import contextlib
import warnings
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


class Installation:
    """A module whose tensors are others for a while. tensors: these, by their slots.

    replaced: the texts of attributes to which code has assigned a tensor in place of a constant, by
    the path of the constant; new: those of other attributes and of lists that have a new tensor.
    """

    def __init__(self, module: Module, tensors: dict[Slot, Tensor], lists):
        self.module, self.tensors, self.lists = module, tensors, lists
        for slot, tensor in tensors.items():
            for path in slot.paths:
                holder, name = holder_of(module, slot, path)
                holder[name] = tensor
        self._before = {path: {**vars(inner)} for path, inner in module.named_modules()}
        self.replaced: dict[str, str] = {}
        self.new: list[str] = []

    def end(self):
        """Note what code has assigned."""
        slots = {path: slot for slot in self.tensors for path in slot.paths}
        for path, inner in self.module.named_modules():
            known = self._before.get(path, {})
            for name, value in vars(inner).items():
                if not isinstance(value, Tensor) or value is known.get(name):
                    continue
                text = f"The tensor attribute self.{name} of {type(inner).__name__} was assigned"
                slot = slots.get(f"{path}.{name}" if path else name)
                if slot is None:
                    self.new.append(text)
                else:
                    self.replaced[slot.path] = text
        for holder, content in self.lists:
            if any(isinstance(element, Tensor) for element in holder[len(content) :]):
                self.new.append("A tensor was appended to a list of the module")

    def tensor_of(self, slot) -> Tensor:
        """The tensor of a slot; of a constant that an assignment has replaced, the one before."""
        if slot.path in self.replaced:
            return self.tensors[slot]
        holder, name = holder_of(self.module, slot, slot.path)
        return holder[name]


@contextlib.contextmanager
def installed(module: Module, members, tensors: dict[Slot, Tensor]):
    """A block in which the attributes of a module are those of `members_of`, but for other
    tensors. Gives the `Installation`. Afterwards all attributes are as they were before.
    """
    before = members_of(module)
    try:
        _restore(members)
        lists = [(holder, content) for holder, content in before if isinstance(holder, list)]
        yield Installation(module, tensors, lists)
    finally:
        _restore(before)


_ADVICE = (
    "register a buffer by `register_buffer` and write to it, or return the tensor: a program keeps "
    "nothing else from call to call"
)


def refuse_replaced(texts):
    """Raise UserError for the first of the constants that code reads and replaces."""
    if texts:
        raise UserError(f"{texts[0]} during export, and its tensor before that is read: {_ADVICE}")


def warn_of_new(texts):
    """Warn of tensors that code has left in the module."""
    for text in dict.fromkeys(texts):
        warnings.warn(f"{text} during export: {_ADVICE}", UserWarning, stacklevel=2)
