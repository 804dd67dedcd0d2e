"""`jaxgrad.from_jax`: functions of JAX as operators, and modules of its libraries as modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from ..autograd.grad_mode import no_grad
from ..core.aval import is_key
from ..frontend import jax_interop
from ..names.missing import missing_in
from ..tape import interception
from ..tape.pytree import is_tensor
from ..tape.tensor import wrap
from .module import Module
from .module_members import note
from .parameter import Parameter


def from_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of JAX arrays into an operator on tensors, which records one node; and a
    module of equinox or flax into an `nn.Module`.

    function: a pure function of JAX arrays. It is compiled for each kind of arguments.

    The operator takes and returns pytrees of tensors, of any shapes and dtypes. Random keys
    (`jax.random.key`) are arrays too, and stay keys. Other arguments go to `function` unchanged and
    must be hashable. A call without tensors calls `function`.

    JAX computes the derivatives, of any order and in both modes. So diffrax solvers and kernels
    with a `custom_vjp` work. In `jaxgrad.jit` the operator is part of the program. JAX's 64-bit
    setting at the call of `from_jax` holds: if it is off and no argument is float64, int64 arrives
    as int32.

    A module of equinox, one of flax.nnx, and a bound one of flax.linen (`module.bind(variables)`)
    become a `JaxModule`: its parameters are those of the module.

    Raises TypeError for an argument that is not hashable, for a module of flax.linen that is not
    bound or is bound with `rngs`, and the errors of `function`.

    >>> import jax.numpy as jnp
    >>> hypot = jaxgrad.from_jax(jnp.hypot)
    >>> x = jaxgrad.tensor([3.0], requires_grad=True)
    >>> hypot(x, jaxgrad.tensor([4.0])).sum().backward()
    >>> x.grad
    tensor([0.6000])
    """
    for library, kind in (("flax.nnx", _Nnx), ("flax.linen", _Linen), ("equinox", _Equinox)):
        imported = sys.modules.get(library)
        if imported is not None and isinstance(function, imported.Module):
            return JaxModule(kind(function))
    return jax_interop.from_jax(function)


class _Part(Module):
    """The parameters and buffers under one name.

    Its switches are the attributes that the library's own train() and eval() set, and mean the
    opposite of `training`.
    """

    def __init__(self):
        super().__init__()
        # _switch_values: the values of switches that do not follow `training`, until it is set
        self.__dict__.update(_switches=set(), _switch_values={})

    def __getattr__(self, name: str):
        if name not in self.__dict__.get("_switches", ()):
            return super().__getattr__(name)
        if interception.read is not None:
            note(self)
        return self._switch_values.get(name, not self.training)

    def __setattr__(self, name: str, value):
        if name not in self.__dict__.get("_switches", ()):
            super().__setattr__(name, value)
            return
        self._switch_values[name] = value
        self._changes.count()

    def train(self, mode: bool = True):
        super().train(mode)
        if self._switch_values:
            self._switch_values.clear()
            self._changes.count()
        return self

    def _start(self, mode):
        """Set `training` as the switches tell: those of this part, or those below, or `mode`."""
        flags = self._flags()
        self.__dict__["training"] = mode = not all(flags) if flags else mode
        for name, value in list(self._switch_values.items()):
            if value is (not mode):
                del self._switch_values[name]
        for part in self._modules.values():
            part._start(mode)

    def _flags(self):
        flags = [value for value in self._switch_values.values() if value is not None]
        return flags or [flag for part in self._modules.values() for flag in part._flags()]


class _Items(_Part):
    """The elements of a list, a tuple or a dict. Those without arrays are as JAX has them."""

    def __init__(self, elements):
        super().__init__()
        object.__setattr__(self, "_names", _names_of(elements))

    def __len__(self):
        return len(self._names)

    def _complete(self, elements):
        """Add the elements that have no arrays."""
        for key, name in self._pairs():
            if not hasattr(self, name):
                object.__setattr__(self, name, elements[key])


class _List(_Items):
    def __getitem__(self, index):
        if isinstance(index, slice):
            return list(self)[index]
        return getattr(self, self._names[index])

    def __iter__(self):
        return (getattr(self, name) for name in self._names)

    def _pairs(self):
        return enumerate(self._names)


class _Dict(_Items):
    def __getitem__(self, key):
        return getattr(self, self._names[key])

    def __iter__(self):
        return iter(self._names)

    def __contains__(self, key):
        return key in self._names

    def _pairs(self):
        return self._names.items()


def _names_of(elements):
    """The names of the elements of a container: a list, or a dict of those of its keys."""
    if isinstance(elements, Mapping):
        return {key: str(key) for key in elements}
    return list(getattr(elements, "_fields", map(str, range(len(elements)))))


def _part_of(elements) -> _Part:
    """The part for an attribute of JAX: a container of `elements`, or None for another."""
    if elements is None:
        return _Part()
    return _Dict(elements) if isinstance(elements, Mapping) else _List(elements)


class JaxModule(_Part):
    """A module of equinox or flax as an `nn.Module`; `jaxgrad.from_jax` makes it.

    Its parameters are the arrays that the library trains, under their paths in the module, so that
    optimizers, `state_dict()` and `to()` work on them; other arrays of numbers are buffers. The
    values are copied: the module that was given does not change. A call takes the arguments of the
    module, tensors in place of arrays.

    `train()` and `eval()` set what the library's own switch sets: `inference` of equinox,
    `deterministic` and `use_running_average` of flax.nnx. `training` starts as the module is set.
    Modules of flax.linen have no switch: pass them their arguments.

    Of flax.nnx, what a call changes (running statistics, the counts of random keys) is kept in the
    buffers. Of flax.linen, the collections named in `mutable=` of the call or of `bind` are, and
    the call returns the output alone.

    >>> import equinox, jax
    >>> net = jaxgrad.from_jax(equinox.nn.Linear(2, 1, key=jax.random.key(0)))
    >>> [(name, tuple(p.shape)) for name, p in net.named_parameters()]
    [('weight', (1, 2)), ('bias', (1,))]
    >>> jaxgrad.vmap(net)(jaxgrad.ones(3, 2)).sum().backward()
    >>> net.bias.grad
    tensor([3.])
    """

    def __init__(self, library):
        super().__init__()
        # past `__setattr__`: what the library knows is no state of this module
        object.__setattr__(self, "_library", library)
        containers, switches = library.containers(), library.switches()
        leaves, structure = jax.tree.flatten_with_path(library.state)
        places = []
        for path, leaf in leaves:
            *above, name = library.names(path)
            part = self._inside(above, containers)
            if name not in switches.get(tuple(above), ()):
                _place(part, name, leaf, library.is_parameter(path, leaf))
            places.append((part, name))
        object.__setattr__(self, "_places", (places, structure))
        # after the leaves, whose order is that of the parameters
        switched = [(self._inside(names, containers), values) for names, values in switches.items()]
        for part, values in switched:
            part._switches.update(values)
            part._switch_values.update(values)
        pairs = [(part, name) for part, values in switched for name in values]
        object.__setattr__(self, "_switched", pairs)
        self._complete_items(containers)
        self._start(True)

    def _complete_items(self, containers):
        for names, elements in containers.items():
            part = self._at(names)
            if part is not None:
                part._complete(elements)

    def _inside(self, names, containers):
        """The part at a path, made where it is missing."""
        part = self
        for depth, name in enumerate(names, 1):
            if name not in part._modules:
                part.add_module(name, _part_of(containers.get(tuple(names[:depth]))))
            part = part._modules[name]
        return part

    def _at(self, names):
        """The part at a path, or None."""
        part = self
        for name in names:
            part = None if part is None else part._modules.get(name)
        return part

    def forward(self, *args, **kwargs):
        """Call the module of the library."""
        places, structure = self._places
        state = jax.tree.unflatten(structure, [getattr(part, name) for part, name in places])
        switches = tuple([getattr(part, name) for part, name in self._switched])
        output, changed = self._library.call(state, switches, args, kwargs)
        self._keep(changed)
        return output

    def _keep(self, changed):
        """Write the state that a call has changed into the buffers."""
        with no_grad():
            for path, new in jax.tree.flatten_with_path(changed, is_leaf=is_tensor)[0]:
                *above, name = self._library.names(path)
                part = self._at(above)
                if part is not None and name in part._buffers:
                    getattr(part, name).copy_(new)

    def __deepcopy__(self, memo):
        # a copy shares what never changes: JAX compares some of it by identity
        places, structure = self._places
        constants = [part.__dict__[name] for part, name in places if name in part.__dict__]
        memo.update({id(constant): constant for constant in (self._library, structure, *constants)})
        return super().__deepcopy__(memo)

    def extra_repr(self):
        return self._library.shown


def _place(part, name, leaf, is_parameter):
    """Add a leaf of the state of a module to a part."""
    if is_parameter:
        part.register_parameter(name, Parameter(wrap(leaf)))
    elif _is_numbers(leaf):
        part.register_buffer(name, wrap(leaf))
    else:
        object.__setattr__(part, name, leaf)


def _name_of(key) -> str:
    """The name of a key of a path: of an attribute, an item or an element."""
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _is_numbers(leaf) -> bool:
    return isinstance(leaf, jax.Array) and not is_key(leaf)


def _is_inexact(leaf) -> bool:
    return _is_numbers(leaf) and jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact)


def _is_container(value) -> bool:
    return isinstance(value, Sequence | Mapping) and not isinstance(value, str | bytes)


def _containers(tree, above=()) -> dict:
    """The lists, tuples and dicts in a tree, by the names of their paths."""
    containers = {}
    within = jax.tree.flatten_with_path(tree, is_leaf=lambda e: e is not tree and _is_container(e))
    for path, value in within[0]:
        names = (*above, *map(_name_of, path))
        if path and _is_container(value):  # without a path it is no node of JAX
            containers |= {names: value} | _containers(value, names)
    return containers


# ---- what each library knows: state, a tree of arrays; which are parameters; the call


class _Library:
    def names(self, path) -> list[str]:
        """The path of an array in the module, as names."""
        return list(map(_name_of, path))

    def containers(self) -> dict:
        """The lists, tuples and dicts in the module, by the names of their paths."""
        return _containers(self.state)

    def switches(self) -> dict:
        """For the path of each part that train() and eval() switch, the values it has."""
        return {}


class _Equinox(_Library):
    def __init__(self, module):
        self.state, self.shown = module, type(module).__name__
        self._call = jax_interop.from_jax(_call_module)

    def is_parameter(self, path, leaf):
        return _is_inexact(leaf)

    def switches(self):
        # those that `equinox.nn.inference_mode` sets
        return {
            tuple(self.names(above)): {"inference": leaf}
            for (*above, key), leaf in jax.tree.leaves_with_path(self.state)
            if key == jax.tree_util.GetAttrKey("inference") and isinstance(leaf, bool)
        }

    def call(self, state, switches, args, kwargs):
        return self._call(state, *args, **kwargs), {}


def _call_module(module, *args, **kwargs):
    return module(*args, **kwargs)


class _Linen(_Library):
    def __init__(self, module):
        if module.scope is None:
            raise TypeError(
                f"from_jax() takes a bound module of flax.linen, and {type(module).__name__} has "
                "no variables: pass module.bind(variables), of variables = module.init(key, x)"
            )
        self.shown = type(module).__name__
        if module.scope.rngs:
            raise TypeError(
                f"from_jax() of a bound {self.shown} cannot keep the rngs that bind() was given, "
                "which draw other numbers at each call: bind without them, and pass "
                "rngs={'dropout': key} at each call"
            )
        self._mutable = module.scope.mutable
        self._module, self.state = module.unbind()
        self._apply = jax_interop.from_jax(self._module.apply)

    def is_parameter(self, path, leaf):
        return _name_of(path[0]) == "params" and _is_inexact(leaf)

    def call(self, state, switches, args, kwargs):
        kwargs = {"mutable": self._mutable} | kwargs
        result = self._apply(state, *args, **_hashable(kwargs))
        return (result, {}) if kwargs["mutable"] is False else result


def _hashable(kwargs):
    """Keyword arguments with a list or a set of names as a tuple."""
    names = kwargs["mutable"]
    return kwargs | {"mutable": tuple(names)} if isinstance(names, list | set) else kwargs


class _Nnx(_Library):
    def __init__(self, module):
        self._nnx = sys.modules["flax.nnx"]
        self._definition, self.state = self._nnx.split(module)
        self.shown = type(module).__name__
        self._call = jax_interop.from_jax(self._merged)
        parameters = self._nnx.state(module, self._nnx.Param)
        leaves = jax.tree.flatten_with_path(parameters)[0]
        self._parameters = {tuple(self.names(path)) for path, _ in leaves}
        self._containers = {
            tuple(map(str, path)): value
            for path, value in self._nnx.iter_graph(module)
            if _is_container(value)
        }
        # those that the `train` and `eval` of a module set
        flags = [(path, _flags_of(submodule)) for path, submodule in self._nnx.iter_modules(module)]
        self._switches = [(path, values) for path, values in flags if values]

    def names(self, path):
        return super().names(path)[:-1]  # the last is `value`, of a Variable

    def is_parameter(self, path, leaf):
        return tuple(self.names(path)) in self._parameters and _is_inexact(leaf)

    def containers(self):
        return self._containers

    def switches(self):
        return {tuple(map(str, path)): values for path, values in self._switches}

    def _merged(self, state, switches, *args, **kwargs):
        module = self._nnx.merge(self._definition, state)
        modules, values = dict(self._nnx.iter_modules(module)), iter(switches)
        for path, names in self._switches:
            for name in names:
                setattr(modules[path], name, next(values))
        output = module(*args, **kwargs)
        return output, self._nnx.state(module, self._nnx.Not(self._nnx.Param))

    def call(self, state, switches, args, kwargs):
        return self._call(state, switches, *args, **kwargs)


def _flags_of(module) -> dict:
    flags = {name: getattr(module, name, 0) for name in ("deterministic", "use_running_average")}
    return {
        name: value for name, value in flags.items() if value is None or isinstance(value, bool)
    }


__getattr__ = missing_in(__name__)
