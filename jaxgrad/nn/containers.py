"""Modules that hold others: in a row, by name, or parameters."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping

from ..tape.tensor import Tensor
from .module import Module
from .module_members import note
from .parameter import Parameter


def _place(number, count: int) -> int:
    """A position, counted from the end where it is negative."""
    number = operator.index(number)
    if not -count <= number < count:
        raise IndexError(f"index {number} is out of range")
    return number % count


class _Row(Module):
    """Modules by their positions."""

    def _modules_in_order(self) -> list[Module]:
        note(self)
        return list(self._modules.values())

    def _take(self, modules):
        """Hold these, in this order."""
        self._modules.clear()
        self._modules.update({str(number): each for number, each in enumerate(modules)})
        self._changes.count()

    def __len__(self) -> int:
        note(self)
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules_in_order())

    def __getitem__(self, idx):
        modules = self._modules_in_order()
        if isinstance(idx, slice):
            return self._of(modules[idx])
        return modules[_place(idx, len(modules))]

    def __setitem__(self, idx: int, module: Module):
        names = list(self._modules)
        self.add_module(names[_place(idx, len(names))], module)

    def __delitem__(self, idx):
        modules = self._modules_in_order()
        del modules[idx if isinstance(idx, slice) else _place(idx, len(modules))]
        self._take(modules)

    def append(self, module: Module):
        """Add a module at the end; gives the container itself."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]):
        """Add modules at the end; gives the container itself."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module):
        """Put a module before the one at a position; gives the container itself."""
        modules = self._modules_in_order()
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        modules.insert(index, module)
        self._take(modules)
        return self

    def pop(self, key):
        """Take a module out, and give it."""
        module = self[key]
        del self[key]
        return module

    def __add__(self, other):
        return self._of([*self, *other])

    def __iadd__(self, other):
        return self.extend(other)


class Sequential(_Row):
    """Modules that are called one after the other, each with what the one before it gives.

    args: modules, or a dict of them by their names.

    >>> net = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(2, 3), jaxgrad.nn.ReLU())
    >>> net(jaxgrad.ones(4, 2)).shape, net[1]
    (torch.Size([4, 3]), ReLU())
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
            return
        for number, module in enumerate(args):
            self.add_module(str(number), module)

    def _of(self, modules):
        return type(self)(*modules)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            note(self)
            return type(self)(dict(list(self._modules.items())[idx]))
        return super().__getitem__(idx)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Row):
    """A list of modules, which has no `forward` of its own.

    >>> layers = jaxgrad.nn.ModuleList([jaxgrad.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _of(self, modules):
        return type(self)(modules)

    def __repr__(self):
        """Equal ones in a row are shown once."""
        runs = []
        for number, shown in enumerate(map(repr, self._modules.values())):
            if runs and runs[-1][2] == shown:
                runs[-1][1] = number
            else:
                runs.append([number, number, shown])
        if not runs:
            return f"{self._get_name()}()"
        lines = []
        for first, last, shown in runs:
            text = shown.replace("\n", "\n  ")
            if first == last:
                lines.append(f"({first}): {text}")
            else:
                lines.append(f"({first}-{last}): {last - first + 1} x {text}")
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name.

    >>> heads = jaxgrad.nn.ModuleDict({"a": jaxgrad.nn.Linear(2, 1)})
    >>> heads["a"], "b" in heads
    (Linear(in_features=2, out_features=1, bias=True), False)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def _known(self):
        note(self)
        return self._modules

    def __getitem__(self, key: str) -> Module:
        return self._known()[key]

    def __setitem__(self, key: str, module: Module):
        self.add_module(key, module)

    def __delitem__(self, key: str):
        del self._modules[key]
        self._changes.count()

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __contains__(self, key) -> bool:
        return key in self._known()

    def keys(self):
        return self._known().keys()

    def values(self):
        return self._known().values()

    def items(self):
        return self._known().items()

    def clear(self):
        """Take all out."""
        self._modules.clear()
        self._changes.count()

    def pop(self, key: str) -> Module:
        """Take a module out, and give it."""
        module = self[key]
        del self[key]
        return module

    def update(self, modules: Mapping[str, Module] | Iterable):
        """Add modules of another dict, or of pairs, in the place of those of the same names."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        pairs = modules.items() if isinstance(modules, Mapping | ModuleDict) else modules
        for key, module in pairs:
            self[key] = module


def _held(value):
    """What a container of parameters makes of a value."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


class ParameterList(Module):
    """A list of parameters; tensors become some, and other values are kept as they are.

    >>> weights = jaxgrad.nn.ParameterList([jaxgrad.ones(2), jaxgrad.zeros(3)])
    >>> len(list(weights.parameters())), weights[1].requires_grad
    (2, True)
    """

    def __init__(self, values: Iterable | None = None):
        super().__init__()
        self._size = 0
        self.extend(() if values is None else values)

    def __len__(self) -> int:
        note(self)
        return self._size

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)([getattr(self, str(i)) for i in range(*idx.indices(len(self)))])
        return getattr(self, str(_place(idx, len(self))))

    def __setitem__(self, idx: int, value):
        setattr(self, str(_place(idx, len(self))), _held(value))

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def append(self, value) -> ParameterList:
        """Add a value at the end; gives the list itself."""
        setattr(self, str(self._size), _held(value))
        self._size += 1
        return self

    def extend(self, values: Iterable) -> ParameterList:
        """Add values at the end; gives the list itself."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values):
        return self.extend(values)

    def extra_repr(self):
        return "\n".join(f"({number}): {_shown(value)}" for number, value in enumerate(self))


class ParameterDict(Module):
    """Parameters by name; tensors become some, and other values are kept as they are.

    >>> weights = jaxgrad.nn.ParameterDict({"w": jaxgrad.ones(2)})
    >>> weights["w"].requires_grad, list(weights)
    (True, ['w'])
    """

    def __init__(self, parameters: Mapping | Iterable | None = None):
        super().__init__()
        self._keys = {}
        self.update({} if parameters is None else parameters)

    def __getitem__(self, key):
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, str(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        setattr(self, str(key), _held(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, str(key))

    def __len__(self) -> int:
        note(self)
        return len(self._keys)

    def __iter__(self):
        note(self)
        return iter(self._keys)

    def __contains__(self, key) -> bool:
        note(self)
        return key in self._keys

    def keys(self):
        note(self)
        return self._keys.keys()

    def values(self):
        return [self[key] for key in self]

    def items(self):
        return [(key, self[key]) for key in self]

    def get(self, key, default=None):
        """The value of a key, or another where there is none."""
        try:
            return self[key]
        except KeyError:
            return default

    def pop(self, key):
        """Take a value out, and give it."""
        value = self[key]
        del self[key]
        return value

    def update(self, parameters: Mapping | Iterable):
        """Add values of another dict, or of pairs, in the place of those of the same keys."""
        known = isinstance(parameters, Mapping | ParameterDict)
        for key, value in parameters.items() if known else parameters:
            self[key] = value

    def extra_repr(self):
        return "\n".join(f"({key}): {_shown(value)}" for key, value in self.items())


def _shown(value) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    shape = "x".join(map(str, value.shape))
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value.dtype} of size {shape}]"
