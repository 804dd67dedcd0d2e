"""Programs besides those of operators: sums of gradients, and arrays of one value."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding

from ..cached import cached_property
from ..late import LateModule
from ..state.objects import exact
from . import bounded_cache, device
from .aval import IMMEDIATE, META, Aval, is_concrete, meta_array, types_of_trace
from .executor import prepare
from .pending import value_of
from .program import Program

template_store = LateModule("jaxgrad.core.template_store")
templates = LateModule("jaxgrad.core.templates")

_patterns = bounded_cache.BoundedCache(bounded_cache.kernels, lambda pattern: bounded_cache.ENTRY)


def _pattern_of(program, remade, *numbers):
    """The pattern of a program that its kind, its output and some numbers decide."""
    if program.mode != IMMEDIATE:
        return None

    def text():
        values = ",".join([template_store.text_of(number) for _, number in numbers])
        return f"{type(program).__name__}({values})"

    return templates.pattern_of(_patterns, (type(program), *numbers), program.outputs, text, remade)


class Added(Program):
    """The sum of two arrays of one abstract value."""

    name, defers = "add", True

    def __init__(self, aval: Aval):
        self.inputs, self.outputs, self.mode = (aval, aval), (aval,), IMMEDIATE

    @cached_property
    def pattern(self):
        return _pattern_of(self, lambda outputs: Added(*outputs))

    def function(self, first, second):
        return (first + second,)


class Filled(Program):
    """An array filled with one value."""

    inputs, wide, defers = (), True, True

    def __init__(self, aval: Aval, value):
        self.outputs, self.mode, self.filling = (aval,), IMMEDIATE, value
        self.name = {0: "zeros_like", 1: "ones_like"}.get(value, "full")

    @cached_property
    def pattern(self):
        remade = functools.partial(_filled_like, self.filling)
        return _pattern_of(self, remade, exact(self.filling))

    def function(self):
        (aval,) = self.outputs
        return (jnp.full(aval.shape, self.filling, aval.dtype.numpy),)


def _filled_like(value, outputs) -> Program:
    return Filled(*outputs, value)


@bounded_cache.bounded()
def _adder(aval: Aval) -> Program:
    return prepare(Added(aval))


def add(first, second, aval: Aval):
    """The sum of two arrays of this abstract value."""
    if aval.mode == META:
        return meta_array(aval.shape, aval.dtype)
    if isinstance(first, jax.core.Tracer) or isinstance(second, jax.core.Tracer):
        with types_of_trace():
            return value_of(first) + value_of(second)
    return _adder(aval).kernel.call(first, second)


@bounded_cache.bounded()
def _filler(aval: Aval, value) -> Program:
    return prepare(Filled(aval, value))


def filled(aval: Aval, value):
    """A new array filled with one value. Never a shared array, since users may donate it."""
    if is_concrete(aval.mode):
        return _filler(aval, value).kernel.call()
    if aval.mode == META:
        return meta_array(aval.shape, aval.dtype)
    with types_of_trace():
        return jnp.full(aval.shape, value, jax.dtypes.canonicalize_dtype(aval.dtype.numpy))


def filled_beside(array, aval: Aval, value):
    """As `filled`, on the device that an array, or a pending result, was moved to."""
    chip = _other_device(array)
    if chip is None:
        return filled(aval, value)
    return filled_over(aval.shape, aval.dtype, value, SingleDeviceSharding(chip))


def moved_beside(array, constant):
    """A new array, on the device that another one was moved to."""
    chip = _other_device(array)
    return constant if chip is None else jax.device_put(constant, chip)


def _other_device(array):
    """The device that an array was moved to, None for JAX's default device and for several."""
    place = device.chosen_place(array) if device.may_differ() else None
    if place is None or len(place) > 1:
        return None
    (chip,) = place
    return None if chip == device.jax_device(device.device_of_jax()) else chip


@functools.lru_cache(128)
def _filler_over(shape, dtype, value, sharding):
    return jax.jit(lambda: jnp.full(shape, value, dtype.numpy), out_shardings=sharding)


def filled_over(shape, dtype, value, sharding):
    """A new array filled with one value: each device makes its part."""
    with jax.enable_x64(True):
        return _filler_over(shape, dtype, value, sharding)()
