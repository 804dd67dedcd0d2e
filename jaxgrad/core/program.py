"""Programs: functions on arrays that know their derivative as another program.

An operator's call is one, its reverse formula is another, and the derivative of that again one: the
tape records programs and nothing else. A gradient is a program in PyTorch's convention for complex
numbers, the conjugate of JAX's cotangent; `pullback` is where the two conventions meet.
"""

from __future__ import annotations

import functools
import threading
from contextlib import contextmanager

import jax
import jax.numpy as jnp
from jax.extend.core import get_opaque_trace_state

from . import aval

_local = threading.local()


@contextmanager
def bare():
    """Operators called right here compute their value only: nobody will ask JAX for a derivative of
    this trace.

    It holds for the current trace alone: inside a `jax.vjp` or `jax.jit` begun within, operators
    carry their rules again.
    """
    previous = getattr(_local, "state", None)
    _local.state = get_opaque_trace_state()
    try:
        yield
    finally:
        _local.state = previous


def is_bare() -> bool:
    """Whether an operator called here may leave its derivative rules out."""
    state = getattr(_local, "state", None)
    return state is not None and state == get_opaque_trace_state()


def still(array):
    """The array, of which JAX asks no derivative: where it might ask for one, behind
    `stop_gradient`.
    """
    if not isinstance(array, jax.core.Tracer) or is_bare():
        return array
    return jax.lax.stop_gradient(array)


def renamed(function, name: str):
    """`function` on arrays under the name that JAX gives its call in jaxprs."""

    def call(*arrays):
        return function(*arrays)

    call.__name__ = call.__qualname__ = name
    return call


def conjugate(array):
    """The complex conjugate; a real array as it is."""
    return jnp.conj(array) if jnp.iscomplexobj(array) else array


def sum_to_shape(gradient, shape):
    """`gradient` summed over the dimensions along which `shape` was broadcast to the gradient's
    shape.
    """
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    if extra < 0:
        return jnp.broadcast_to(gradient, shape)
    stretched = [
        extra + i for i, extent in enumerate(shape) if extent == 1 != gradient.shape[extra + i]
    ]
    summed = jnp.sum(gradient, axis=(*range(extra), *stretched), keepdims=True)
    return jnp.broadcast_to(summed.reshape(summed.shape[extra:]), shape)


class GradientError(RuntimeError):
    """A formula's result that does not fit the input or output it is for; `why` says how."""

    def __init__(self, where: str, why: str):
        super().__init__(f"{where}: {why}")
        self.why = why


def conform(gradient, like: aval.Aval, where: str):
    """The gradient as its input asks for it: of its shape, its dtype, and real where the input is
    real.

    `like`: the input's `Aval`; `where`: names the formula in the error, a GradientError, raised
    when it does not fit.
    """
    gradient = jnp.asarray(gradient)
    if not jnp.issubdtype(gradient.dtype, jnp.inexact):
        raise GradientError(
            where, f"the formula gives {gradient.dtype}, which is no floating point"
        )
    try:
        summed = sum_to_shape(gradient, tuple(like.shape))
    except (ValueError, TypeError, IndexError) as error:
        why = f"the formula gives shape {list(gradient.shape)} where {list(like.shape)} is wanted"
        raise GradientError(where, why) from error
    if jnp.iscomplexobj(summed) and not like.dtype.is_complex:
        summed = summed.real
    return jax.lax.convert_element_type(summed, like.dtype.numpy)


def pullback(function, primals):
    """The map from gradients of `function`'s outputs (a tuple) to gradients of `primals`, both in
    PyTorch's convention.
    """
    _, transposed = jax.vjp(function, *primals)

    def gradients(*output_gradients):
        cotangents = transposed(tuple(conjugate(gradient) for gradient in output_gradients))
        return tuple(conjugate(cotangent) for cotangent in cotangents)

    return gradients


class Program:
    """A function from arrays to a tuple of arrays, with the abstract values of both.

    `inputs`: one `Aval` an array, or a Python number type for a scalar that varies from call to
    call; `outputs`: one `Aval` an array. Subclasses give `function`, whose operators carry their
    rules.
    """

    name: str
    inputs: tuple
    mode: int
    kernel = None  # what `execution` runs, once prepared
    attach = None  # called with inputs and results where these share memory
    is_linear = False  # whether a tangent of its one input goes through it as a value does
    extends = False  # whether it is the extension of another
    extension = None  # the same program, which computes tangents too (tape/dual.py)
    precondition = None  # called first, with the same arrays: a check of indices, say

    def function(self, *arrays) -> tuple:
        """What the program computes, on JAX values, differentiable by JAX."""
        raise NotImplementedError(f"{type(self).__name__}.function")

    def value(self, *arrays) -> tuple:
        """`function` where nobody asks JAX for a derivative of this trace."""
        with bare():
            return self.function(*arrays)

    @property
    def compact(self) -> Program:
        """The program that does the work: another only where the two show other strides."""
        return self

    @functools.cached_property
    def outputs(self) -> tuple[aval.Aval, ...]:
        return self.abstract_outputs()

    def abstract_outputs(self) -> tuple[aval.Aval, ...]:
        structs = [i.struct if isinstance(i, aval.Aval) else i(0) for i in self.inputs]
        with jax.enable_x64(self.mode != aval.INLINE32):
            results = jax.eval_shape(self.value, *structs)
        return tuple(
            aval.make_aval(r.shape, aval.dtypes.from_numpy(r.dtype), self.mode) for r in results
        )

    @functools.cached_property
    def single(self) -> bool:
        """Whether there is one output, which a kernel gives as it is and not in a tuple."""
        return len(self.outputs) == 1

    @functools.cached_property
    def only_arrays(self) -> bool:
        """Whether no input is a number."""
        return all(isinstance(i, aval.Aval) for i in self.inputs)

    @functools.cached_property
    def tracked(self) -> tuple[bool, ...]:
        """For each input whether a gradient of it can be asked for."""
        return tuple(isinstance(i, aval.Aval) and i.differentiable for i in self.inputs)

    @functools.cached_property
    def differentiable_outputs(self) -> tuple[int, ...]:
        """The positions of the outputs that have gradients."""
        return tuple(i for i, output in enumerate(self.outputs) if output.differentiable)

    def result(self, outputs):
        """Several outputs, as whoever runs the program gets them."""
        return tuple(outputs)

    @functools.cached_property
    def wide(self) -> bool:
        """Whether 64-bit numbers go in or come out."""
        return any(i.wide for i in (*self.inputs, *self.outputs) if isinstance(i, aval.Aval))

    @functools.cached_property
    def reverses(self) -> dict[tuple[bool, ...], Reverse]:
        return {}

    @functools.cached_property
    def tangents(self) -> dict[tuple[bool, ...], Program]:
        """The programs of its tangents, by which inputs move."""
        return {}

    def reverse(self, mask: tuple[bool, ...]) -> Reverse:
        """The program of the gradients of the inputs that `mask` names, one flag an input."""
        found = self.reverses.get(mask)
        if found is None:
            found = self.reverses.setdefault(mask, self.make_reverse(mask))
        return found

    def make_reverse(self, mask) -> Reverse:
        return DerivedReverse(self, mask)


class Reverse(Program):
    """Gradients of a program: from the gradients of its outputs and saved arrays to the gradients
    of some inputs.

    `saved_inputs`, `saved_outputs`: which arrays of the program the gradients are computed from, by
    position; `function` takes one gradient for each of the program's `differentiable_outputs`, then
    these arrays.
    """

    saved_inputs: tuple[int, ...]
    saved_outputs: tuple[int, ...]
    tells_apart = False  # whether a gradient is None where none that it depends on arrived

    def __init__(self, program: Program, mask: tuple[bool, ...]):
        self.program, self.mask, self.mode = program, mask, program.mode
        self.name = f"{program.name}Backward"
        self.node_name = f"{self.name}0"
        self.wanted = tuple(i for i, flag in enumerate(mask) if flag)

    @functools.cached_property
    def constants(self) -> tuple[int, ...]:
        """The saved inputs that no gradient is wanted of."""
        return tuple(i for i in self.saved_inputs if i not in self.wanted)

    @functools.cached_property
    def shown(self) -> tuple[int | None, ...]:
        """For each edge that users see the position of the input, None for what is no tensor."""
        return tuple(i for i, a in enumerate(self.program.inputs) if not isinstance(a, type))

    @functools.cached_property
    def inputs(self):
        gradients = [self.program.outputs[i] for i in self.program.differentiable_outputs]
        saved = [self.program.inputs[i] for i in self.saved_inputs]
        return (*gradients, *saved, *(self.program.outputs[i] for i in self.saved_outputs))


class DerivedReverse(Reverse):
    """The reverse of a program that has no formulas of its own: JAX derives it, from all inputs."""

    saved_outputs = ()

    def __init__(self, program, mask):
        super().__init__(program, mask)
        self.saved_inputs = tuple(range(len(program.inputs)))

    def function(self, *arrays):
        differentiable = self.program.differentiable_outputs
        gradients, inputs = arrays[: len(differentiable)], arrays[len(differentiable) :]

        def outputs(*wanted):
            replaced = list(inputs)
            for position, array in zip(self.wanted, wanted, strict=True):
                replaced[position] = array
            results = self.program.function(*replaced)
            return tuple(results[i] for i in differentiable)

        return pullback(outputs, [inputs[i] for i in self.wanted])(*gradients)
