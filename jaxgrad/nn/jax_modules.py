"""`jaxgrad.from_jax`: functions of JAX as operators, and modules of its libraries as modules."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

import jax

from ..autograd.grad_mode import no_grad
from ..core.aval import is_key
from ..core.missing_names import missing_in
from ..frontend import jax_interop
from ..tape.pytree import is_tensor
from ..tape.tensor import wrap
from .module import Module
from .parameter import Parameter


def from_jax(function: Callable):
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

    Raises TypeError for an argument that is not hashable and for an unbound module of flax.linen,
    and the errors of `function`.

    >>> import jax.numpy as jnp
    >>> hypot = jaxgrad.from_jax(jnp.hypot)
    >>> x = jaxgrad.tensor([3.0], requires_grad=True)
    >>> hypot(x, jaxgrad.tensor([4.0])).sum().backward()
    >>> x.grad
    tensor([0.6000])
    """
    for library, made in (("flax.nnx", _Nnx), ("flax.linen", _Linen), ("equinox", _Equinox)):
        imported = sys.modules.get(library)
        if imported is not None and isinstance(function, imported.Module):
            return JaxModule(made(function))
    return jax_interop.from_jax(function)


class JaxModule(Module):
    """A module of equinox or flax as an `nn.Module`; `jaxgrad.from_jax` makes it.

    Its parameters are the arrays that the library trains, under their paths in the module, so that
    optimizers, `state_dict()` and `to()` work on them; other arrays of numbers are buffers. The
    values are copied: the module that was given does not change. A call takes the arguments of the
    module, tensors in place of arrays.

    Of flax.nnx, what a call changes (running statistics, the counts of random keys) is kept in the
    buffers. Of flax.linen, the collections named in `mutable=` are, and the call returns the output
    alone.

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
        leaves, structure = jax.tree.flatten_with_path(library.state)
        places = []
        for path, leaf in leaves:
            *above, name = library.names(path)
            part = functools.reduce(_part, above, self)
            if library.is_parameter(path, leaf):
                part.register_parameter(name, Parameter(wrap(leaf)))
            elif _is_numbers(leaf):
                part.register_buffer(name, wrap(leaf))
            else:
                object.__setattr__(part, name, leaf)
            places.append((part, name))
        object.__setattr__(self, "_places", (places, structure))

    def forward(self, *args, **kwargs):
        """Call the module of the library."""
        places, structure = self._places
        state = jax.tree.unflatten(structure, [getattr(part, name) for part, name in places])
        output, changed = self._library.call(state, args, kwargs)
        self._keep(changed)
        return output

    def _keep(self, changed):
        """Write the state that a call has changed into the buffers."""
        with no_grad():
            for path, new in jax.tree.flatten_with_path(changed, is_leaf=is_tensor)[0]:
                *above, name = self._library.names(path)
                part = functools.reduce(_part, above, self)
                if name in part._buffers:
                    getattr(part, name).copy_(new)

    def extra_repr(self):
        return self._library.shown


class _Part(Module):
    """The parameters and buffers under one name."""


def _part(module, name):
    if name not in module._modules:
        module.add_module(name, _Part())
    return module._modules[name]


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


# ---- what each library knows: state, a tree of arrays; which are parameters; the call


class _Library:
    def names(self, path) -> list[str]:
        """The path of an array in the module, as names."""
        return list(map(_name_of, path))


class _Equinox(_Library):
    def __init__(self, module):
        self.state, self.shown = module, type(module).__name__
        self._call = jax_interop.from_jax(_call_module)

    def is_parameter(self, path, leaf):
        return _is_inexact(leaf)

    def call(self, state, args, kwargs):
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
        self._module, self.state = module.unbind()
        self.shown = type(module).__name__
        self._apply = jax_interop.from_jax(self._module.apply)

    def is_parameter(self, path, leaf):
        return _name_of(path[0]) == "params" and _is_inexact(leaf)

    def call(self, state, args, kwargs):
        found = self._apply(state, *args, **_hashable(kwargs))
        if not kwargs.get("mutable", False):
            return found, {}
        return found


def _hashable(kwargs):
    """Keyword arguments with a list of names as a tuple."""
    names = kwargs.get("mutable")
    return kwargs | {"mutable": tuple(names)} if isinstance(names, list) else kwargs


class _Nnx(_Library):
    def __init__(self, module):
        self._nnx = sys.modules["flax.nnx"]
        self._definition, self.state = self._nnx.split(module)
        self.shown = type(module).__name__
        self._call = jax_interop.from_jax(self._merged)
        parameters = self._nnx.state(module, self._nnx.Param)
        found = jax.tree.flatten_with_path(parameters)[0]
        self._parameters = {tuple(self.names(path)) for path, _ in found}

    def names(self, path):
        return super().names(path)[:-1]  # the last is `value`, of a Variable

    def is_parameter(self, path, leaf):
        return tuple(self.names(path)) in self._parameters and _is_inexact(leaf)

    def _merged(self, state, *args, **kwargs):
        module = self._nnx.merge(self._definition, state)
        output = module(*args, **kwargs)
        return output, self._nnx.state(module, self._nnx.Not(self._nnx.Param))

    def call(self, state, args, kwargs):
        return self._call(state, *args, **kwargs)


__getattr__ = missing_in(__name__)
