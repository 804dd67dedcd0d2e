"""The names that the source of a random world may use without defining them."""

import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import operator
import random
import types
import weakref
from typing import NamedTuple

import numpy as np

import jaxgrad


class Doubled:
    """A descriptor that gives twice an attribute, and takes twice its new value."""

    def __init__(self, name):
        self.name = name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name) * 2

    def __set__(self, instance, value):
        setattr(instance, self.name, value * 0.5)


class Constant:
    """A descriptor without `__set__`: an entry in the instance hides it."""

    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner=None):
        return self.value


class Pair(NamedTuple):
    h: object
    n: object


@dataclasses.dataclass
class Data:
    h: object
    n: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    h: object
    n: object


class Mode(enum.Enum):
    FAST = 1.5
    SLOW = 0.5


class Missing(dict):
    """A dict that gives a number for a key that it lacks."""

    def __missing__(self, key):
        return 2.0


class Held:
    """Another value of an attribute while the block runs."""

    def __init__(self, owner, name, value):
        self.owner, self.name, self.value = owner, name, value

    def __enter__(self):
        self.before = getattr(self.owner, self.name)
        setattr(self.owner, self.name, self.value)

    def __exit__(self, *_):
        setattr(self.owner, self.name, self.before)


class Scaled(jaxgrad.autograd.Function):
    """Three times its input, with a gradient of five times."""

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


def tensor(*values, dtype=jaxgrad.float32):
    """A vector."""
    return jaxgrad.tensor(values, dtype=dtype)


def leaf(*values, dtype=jaxgrad.float32):
    """A vector that requires grad."""
    return jaxgrad.tensor(values, dtype=dtype, requires_grad=True)


def filled(module, value=0.5):
    """A module with the same number in all of its parameters."""
    with jaxgrad.no_grad():
        for parameter in module.parameters():
            parameter.fill_(value)
    return module


def parts(value):
    """What a container holds, or an object with attributes."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset | collections.deque):
        return list(value)
    if isinstance(value, functools.partial):
        return [*value.args, *value.keywords.values()]
    if isinstance(value, types.FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or ()]
    return list(getattr(value, "__dict__", {}).values())


def differentiable(value, seen=None):
    """The tensors in a result that require grad, in the order in which they stand there."""
    seen = {} if seen is None else seen
    if id(value) in seen or isinstance(value, jaxgrad.nn.Module):
        return []
    seen[id(value)] = value
    if isinstance(value, jaxgrad.Tensor):
        return [value] if value.requires_grad else []
    return [tensor for part in parts(value) for tensor in differentiable(part, seen)]


def total(value):
    """One number that depends on all tensors of a result that require grad."""
    tensors = differentiable(value)
    return sum(((t.double() * t.double()).sum() for t in tensors), leaf(0.0).sum() * 0)


def between(value):
    """The gradient of the first differentiable part of a result by the last one."""
    tensors = differentiable(value)
    if len(tensors) < 2:
        return None
    return jaxgrad.autograd.grad(
        tensors[0].sum(), tensors[-1], retain_graph=True, allow_unused=True
    )[0]


def slope(value, leaves):
    """The gradients of a result, or of gradients, by some leaves, with a history."""
    return list(jaxgrad.autograd.grad(total(value), leaves, create_graph=True, allow_unused=True))


def clear(parameters):
    """Let go of gradients."""
    for parameter in parameters:
        parameter.grad = None


def number(value):
    """A number that stands for a value of any kind."""
    if isinstance(value, jaxgrad.Tensor):
        return value.numel()
    if value is None:
        return 0
    return len(value) if hasattr(value, "__len__") else value


def first(value, *_):
    """The first of some values."""
    return value


NAMES = {
    "torch": jaxgrad,
    "nn": jaxgrad.nn,
    "F": jaxgrad.nn.functional,
    **{m.__name__: m for m in (collections, contextlib, contextvars, copy, functools, operator)},
    **{m.__name__: m for m in (types, weakref)},
    "np": np,
    "random": random,
    "Space": types.SimpleNamespace,
    **{f.__name__: f for f in (Doubled, Constant, Scaled)},
    **{f.__name__: f for f in (Pair, Data, Frozen, Mode, Missing, Held)},
    **{f.__name__: f for f in (tensor, leaf, filled, total, between, slope, clear, number, first)},
}


def namespace(name):
    """The globals of a program."""
    return {"__name__": name, **NAMES}
