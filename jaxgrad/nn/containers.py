"""Containers of modules and of parameters."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Self, overload

from ..core.tracebacks import users_stacklevel
from ..tape.tensor import Tensor
from .module import Module
from .module_members import note
from .parameter import Parameter


def _normalize_index(number, count: int) -> int:
    """Return an index in [0, count), counted from the end if negative; IndexError outside."""
    number = operator.index(number)
    if not -count <= number < count:
        raise IndexError(f"index {number} is out of range")
    return number % count


class _ModuleSequence(Module):
    """Modules by position."""

    def _modules_in_order(self) -> list[Module]:
        note(self)
        return list(self._modules.values())

    def _set_modules(self, modules):
        """Replace the content by `modules`, renumbered."""
        self._modules.clear()
        self._modules.update({str(number): module for number, module in enumerate(modules)})
        self._changes.count()

    def __len__(self) -> int:
        note(self)
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules_in_order())

    @overload
    def __getitem__(self, idx: int) -> Module: ...
    @overload
    def __getitem__(self, idx: slice) -> Self: ...

    def __getitem__(self, idx: int | slice) -> Module | Self:
        modules = self._modules_in_order()
        if isinstance(idx, slice):
            return self._slice(idx)
        return modules[_normalize_index(idx, len(modules))]

    def __setitem__(self, idx: int, module: Module) -> None:
        names = list(self._modules)
        self.add_module(names[_normalize_index(idx, len(names))], module)

    def __delitem__(self, idx: int | slice) -> None:
        modules = self._modules_in_order()
        del modules[idx if isinstance(idx, slice) else _normalize_index(idx, len(modules))]
        self._set_modules(modules)

    def append(self, module: Module) -> Self:
        """Append a module and return the container.

        >>> jaxgrad.nn.ModuleList().append(jaxgrad.nn.ReLU())[0]
        ReLU()
        """
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append modules and return the container. Raises TypeError unless they are iterable.

        >>> len(jaxgrad.nn.ModuleList().extend([jaxgrad.nn.ReLU(), jaxgrad.nn.Tanh()]))
        2
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before position `index` and return the container.

        Raises TypeError unless it is a module.

        >>> jaxgrad.nn.ModuleList([jaxgrad.nn.ReLU()]).insert(0, jaxgrad.nn.Tanh())[0]
        Tanh()
        """
        modules = self._modules_in_order()
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        modules.insert(index, module)
        self._set_modules(modules)
        return self

    def pop(self, key: int) -> Module:
        """Remove and return the module at position `key`. Raises IndexError outside.

        >>> jaxgrad.nn.ModuleList([jaxgrad.nn.ReLU()]).pop(-1)
        ReLU()
        """
        module = self[key]
        del self[key]
        return module


class Container(Module):
    """A module with the submodules that its keywords name: derive from `Module` instead, as the
    warning says.
    """

    def __init__(self, **kwargs: Module):
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of it's functionality is now implemented in "
            "`nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=users_stacklevel(),
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(_ModuleSequence):
    """Modules applied one after the other, each to the output of the one before.

    args: modules, or one mapping of names to modules. Indexing returns a module, a slice a
    `Sequential`. Raises TypeError for other arguments.

    >>> net = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(2, 3), jaxgrad.nn.ReLU())
    >>> net(jaxgrad.ones(4, 2)).shape, net[1]
    (torch.Size([4, 3]), ReLU())
    """

    def __init__(self, *args: Module | Mapping[str, Module]):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
            return
        for number, module in enumerate(args):
            self.add_module(str(number), module)

    def _slice(self, idx):
        return type(self)(dict(list(self._modules.items())[idx]))

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before position `index` and return the container.

        Raises IndexError outside of it, AssertionError for a value that is no module.

        >>> jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()).insert(0, jaxgrad.nn.Tanh())[0]
        Tanh()
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}, not {type(module)}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}, of {len(self)} modules")
        return super().insert(index, module)

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *_layers(other))

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(_layers(other))

    def __mul__(self, other: int) -> Sequential:
        """The modules `other` times, one after the other; they share their parameters."""
        return Sequential(*self._repeated(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(self._repeated(other)[len(self) :])

    def _repeated(self, count) -> list[Module]:
        if not isinstance(count, int):
            raise TypeError(
                f"unsupported operand type(s) for *: {type(self)} and {type(count)}: int expected"
            )
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return [*self] * count

    def forward(self, input):  # as PyTorch's, whose annotations fx copies
        for module in self._modules.values():
            input = module(input)
        return input


def _layers(sequence) -> Sequential:
    if not isinstance(sequence, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(sequence)} is given"
        )
    return sequence


class ModuleList(_ModuleSequence):
    """A list of modules, without `forward`.

    modules: an iterable. Raises TypeError for a value that is no module.

    >>> layers = jaxgrad.nn.ModuleList([jaxgrad.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _slice(self, idx):
        return type(self)([*self._modules.values()][idx])

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def __repr__(self):
        """Show equal consecutive modules once."""
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
    """A dict of modules, without `forward`.

    modules: a mapping, or an iterable of pairs. Raises TypeError for a value that is no module.

    >>> heads = jaxgrad.nn.ModuleDict({"a": jaxgrad.nn.Linear(2, 1)})
    >>> heads["a"], "b" in heads
    (Linear(in_features=2, out_features=1, bias=True), False)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def _read_modules(self):
        """Return the submodules, with guards for a trace that is in progress."""
        note(self)
        return self._modules

    def __getitem__(self, key: str) -> Module:
        return self._read_modules()[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]
        self._changes.count()

    def __len__(self) -> int:
        return len(self._read_modules())

    def __iter__(self) -> Iterator[str]:
        return iter(self._read_modules())

    def __contains__(self, key: object) -> bool:
        return key in self._read_modules()

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._read_modules().keys()

    def values(self) -> ValuesView[Module]:
        """Return the modules."""
        return self._read_modules().values()

    def items(self) -> ItemsView[str, Module]:
        """Return pairs of name and module."""
        return self._read_modules().items()

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()
        self._changes.count()

    def pop(self, key: str) -> Module:
        """Remove and return a module. Raises KeyError for an unknown name.

        >>> jaxgrad.nn.ModuleDict({"a": jaxgrad.nn.ReLU()}).pop("a")
        ReLU()
        """
        module = self[key]
        del self[key]
        return module

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add the modules of a mapping or of pairs, replacing those of the same names.

        Raises TypeError unless `modules` is iterable.

        >>> heads = jaxgrad.nn.ModuleDict()
        >>> heads.update([("a", jaxgrad.nn.ReLU())])
        >>> list(heads.keys())
        ['a']
        """
        for key, module in _pairs(modules, ModuleDict):
            self[key] = module


def _pairs(values, container: type) -> Iterable[tuple[str, Any]]:
    """The pairs of a mapping, of a container of its kind, or of an iterable."""
    if isinstance(values, Mapping | container):
        return values.items()
    name = container.__name__
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got "
            f"{type(values).__name__}"
        )
    values = list(values)
    for number, pair in enumerate(values):
        place = f"{name} update sequence element #{number}"
        if not isinstance(pair, Iterable):
            raise TypeError(f"{place} should be Iterable; is {type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{place} has length {len(pair)}; 2 is required")
    return values


def _as_parameter(value):
    """Make a tensor a parameter; return other values unchanged."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


class ParameterList(Module):
    """A list of parameters: tensors become parameters, other values stay as they are.

    values: an iterable. Raises TypeError otherwise.

    >>> weights = jaxgrad.nn.ParameterList([jaxgrad.ones(2), jaxgrad.zeros(3)])
    >>> len(list(weights.parameters())), weights[1].requires_grad
    (2, True)
    """

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        self.extend(() if values is None else values)

    def __len__(self) -> int:
        note(self)
        return self._size

    @overload
    def __getitem__(self, idx: int) -> Any: ...
    @overload
    def __getitem__(self, idx: slice) -> Self: ...

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)([getattr(self, str(i)) for i in range(*idx.indices(len(self)))])
        return getattr(self, str(_normalize_index(idx, len(self))))

    def __setitem__(self, idx: int, value: Any) -> None:
        setattr(self, str(_normalize_index(idx, len(self))), _as_parameter(value))

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def append(self, value: Any) -> ParameterList:
        """Append a value and return the list.

        >>> len(jaxgrad.nn.ParameterList().append(jaxgrad.ones(1)))
        1
        """
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Append values and return the list. Raises TypeError unless they are iterable.

        >>> len(jaxgrad.nn.ParameterList().extend([jaxgrad.ones(1), jaxgrad.ones(2)]))
        2
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("ParameterList should not be called.")

    def extra_repr(self) -> str:
        return "\n".join(f"  ({number}): {_describe(value)}" for number, value in enumerate(self))


class ParameterDict(Module):
    """A dict of parameters: tensors become parameters, other values stay as they are.

    parameters: a mapping, or an iterable of pairs; the keys of a plain dict are sorted. Raises
    TypeError for a key that is no string, AttributeError where a key that is not there is read.

    >>> weights = jaxgrad.nn.ParameterDict({"w": jaxgrad.ones(2)})
    >>> weights["w"].requires_grad, list(weights)
    (True, ['w'])
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[Any] | None = None):
        super().__init__()
        self._keys = {}
        self.update({} if parameters is None else parameters)

    def __getitem__(self, key: str) -> Any:
        if _checked_key(key) not in self._keys:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}")
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[_checked_key(key)] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[_checked_key(key)]
        delattr(self, key)

    def __len__(self) -> int:
        note(self)
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        note(self)
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        note(self)
        return key in self._keys

    def keys(self) -> KeysView[str]:
        """Return the keys."""
        note(self)
        return self._keys.keys()

    def values(self) -> list[Any]:
        """Return the values."""
        return [self[key] for key in self]

    def items(self) -> list[tuple[str, Any]]:
        """Return pairs of key and value."""
        return [(key, self[key]) for key in self]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, or `default` if there is none.

        >>> jaxgrad.nn.ParameterDict().get("w", 0)
        0
        """
        try:
            return self[key]
        except AttributeError:
            return default

    def __reversed__(self) -> Iterator[str]:
        note(self)
        return reversed(self._keys)

    def __or__(self, other: ParameterDict) -> ParameterDict:
        union = self.copy()
        union.update(other)
        return union

    def __ror__(self, other: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**other, **dict(self.items())}

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return another dict of the same values.

        >>> list(jaxgrad.nn.ParameterDict({"n": 3}).copy())
        ['n']
        """
        return ParameterDict(self.items())

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, which is `default` from now on if there is none.

        >>> jaxgrad.nn.ParameterDict({"n": 3}).setdefault("n", 4)
        3
        """
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all values.

        >>> values = jaxgrad.nn.ParameterDict({"n": 3})
        >>> values.clear()
        >>> len(values)
        0
        """
        for key in list(self._keys):
            del self[key]

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last pair of key and value. Raises KeyError if there is none.

        >>> jaxgrad.nn.ParameterDict({"n": 3}).popitem()
        ('n', 3)
        """
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return another dict, of `keys`, whose values are `default`.

        >>> jaxgrad.nn.ParameterDict().fromkeys(["n"], 3).items()
        [('n', 3)]
        """
        return ParameterDict((key, default) for key in keys)

    def pop(self, key: str) -> Any:
        """Remove and return the value of `key`. Raises AttributeError if there is none.

        >>> jaxgrad.nn.ParameterDict({"n": 3}).pop("n")
        3
        """
        value = self[key]
        del self[key]
        return value

    def update(self, parameters: Mapping[str, Any] | Iterable[Any]) -> None:
        """Add the values of a mapping or of pairs, replacing those of the same keys. The keys of a
        plain dict are sorted.

        >>> weights = jaxgrad.nn.ParameterDict()
        >>> weights.update({"w": jaxgrad.ones(2)})
        >>> list(weights)
        ['w']
        """
        pairs = _pairs(parameters, ParameterDict)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs, key=operator.itemgetter(0))
        for key, value in pairs:
            self[key] = value

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("ParameterDict should not be called.")

    def extra_repr(self) -> str:
        shown = {key: _describe(value, Tensor.type) for key, value in self.items()}
        return "\n".join(f"  ({key}): {text}" for key, text in shown.items())


def _checked_key(key) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
            f"{type(key).__name__!r})"
        )
    return key


def _describe(value, kind_of=lambda tensor: tensor.dtype) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    shape = "x".join(map(str, value.shape))
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{kind_of(value)} of size {shape}]"
