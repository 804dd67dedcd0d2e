"""Programs: functions on arrays whose derivatives are programs too.

An operator's call is a program, so is its reverse formula, and so is the derivative of that. The
tape records only programs. Gradients follow PyTorch's convention for complex numbers, the conjugate
of JAX's cotangents; `pullback` converts between the two.
"""

from __future__ import annotations

import contextvars
import itertools
import operator
import threading
import types
from contextlib import contextmanager

import jax
import jax.numpy as jnp

from ..cached import cached_property
from ..late import LateModule
from . import aval, bounded_cache, device, dtypes
from .jax_internals import JOINS_TRACE
from .jax_state import keeps_jax_state
from .jaxprs import equations_of, has_wide_types

executor = LateModule("jaxgrad.core.executor")
host_kernel = LateModule("jaxgrad.core.host_kernel")
jax_core = LateModule("jax.extend.core")
templates = LateModule("jaxgrad.core.templates")

_local = threading.local()


@contextmanager
def bare():
    """Let operators leave their derivative rules out, since JAX does not differentiate this trace.

    This holds for the current trace alone: inside a `jax.vjp` or `jax.jit` that begins within,
    operators carry their rules again.
    """
    previous = getattr(_local, "state", None)
    # the state and no flag: a trace that begins inside has a state of its own
    _local.state = jax_core.get_opaque_trace_state()
    try:
        yield
    finally:
        _local.state = previous


# While a program is traced for the host: a list, to which each question about it adds.
_host_trace = contextvars.ContextVar("jaxgrad.host_trace", default=None)


def is_for_host() -> bool:
    """Whether only the host executor will run the trace: an operator may then leave out its form
    for XLA, which gets a second trace.
    """
    questions = _host_trace.get()
    if questions is not None:
        questions.append(True)
    return questions is not None


def is_bare() -> bool:
    """Whether an operator called here may leave its derivative rules out."""
    state = getattr(_local, "state", None)
    return state is not None and state == jax_core.get_opaque_trace_state()


def stop_gradient(array):
    """The array as a constant of JAX's derivatives: a tracer gets `stop_gradient`, unless bare."""
    if not isinstance(array, jax.core.Tracer) or is_bare():
        return array
    return jax.lax.stop_gradient(array)


def renamed(function, name: str):
    """`function` under a name, which JAX shows in jaxprs."""

    def call(*arrays):
        return function(*arrays)

    call.__name__ = call.__qualname__ = name
    return call


def conjugate(array):
    """The complex conjugate; a real array itself."""
    return jnp.conj(array) if jnp.iscomplexobj(array) else array


def broadcasts(shape, to) -> bool:
    """Whether an array of `shape` broadcasts to the shape `to`."""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(extent in (1, wanted) for extent, wanted in pairs)


def sum_to_shape(gradient, shape):
    """`gradient` summed over the dimensions that broadcasting from `shape` added or stretched."""
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    stretched = [
        extra + i for i, extent in enumerate(shape) if extent == 1 != gradient.shape[extra + i]
    ]
    summed = jnp.sum(gradient, axis=(*range(extra), *stretched), keepdims=True)
    return summed.reshape(shape)


class GradientError(RuntimeError):
    """The result of a formula does not fit its input or output; `why` says how."""

    def __init__(self, where: str, why: str):
        super().__init__(f"{where}: {why}")
        self.why = why


def conform(result, like: aval.Aval, where: str):
    """A formula's result in the dtype of `like`, the `Aval` of its input or output; real where that
    is real.

    `where`: the formula, for the error message. Raises GradientError if the shape is another, or
    the result no floating-point array.
    """
    # a formula may give a Python number
    result = jnp.asarray(result)
    if not jnp.issubdtype(result.dtype, jnp.inexact):
        raise GradientError(where, f"the formula gives {result.dtype}, which is not floating point")
    if result.shape != tuple(like.shape):
        why = f"the formula gives shape {list(result.shape)} where {list(like.shape)} is wanted"
        raise GradientError(where, why)
    if jnp.iscomplexobj(result) and not like.dtype.is_complex:
        result = result.real
    return jax.lax.convert_element_type(result, like.dtype.numpy)


def conform_gradient(gradient, like: aval.Aval, where: str):
    """`conform` for a gradient, which may have the larger shape that its input broadcasts to."""
    gradient, shape = jnp.asarray(gradient), tuple(like.shape)
    if broadcasts(shape, gradient.shape):
        gradient = sum_to_shape(gradient, shape)
    return conform(gradient, like, where)


def pullback(function, primals):
    """The map from gradients of `function`'s outputs, a tuple, to gradients of `primals`.

    Both are in PyTorch's convention.
    """
    _, transposed = jax.vjp(function, *primals)

    def gradients(*output_gradients):
        cotangents = transposed(tuple(conjugate(gradient) for gradient in output_gradients))
        return tuple(conjugate(cotangent) for cotangent in cotangents)

    return gradients


# JAX's primitives whose precision has a default that a user may set
HEEDING = frozenset(["dot_general", "conv_general_dilated", "ragged_dot_general"])


class Program:
    """A function from arrays to a tuple of arrays, with the abstract values of both.

    `inputs`: the `Aval` of each array, or the Python type of a number that is an input; `outputs`:
    the `Aval` of each array. Subclasses define `function`, whose operators carry their rules.
    """

    name: str
    inputs: tuple
    mode: int
    TRAITS = types.MappingProxyType(
        {"equations": int, "heeds_settings": bool}
    )  # a trace shows them
    kernel = None  # what computes it (core/kernel.py), set by `executor.prepare`
    cost = None  # that of a call, once it is known (core/host/cost.py)
    may_run_on_host = True  # whether it computes what its jaxpr says, wherever its arrays lie
    attach = None  # called with inputs and results if these share memory
    is_identity = False  # whether its result on tensors is its first argument itself
    is_linear = False  # whether the program itself maps the tangent of its one input
    extends = False  # whether it is the extension of another program
    extension = None  # the program that computes tangents too (tape/dual.py)
    equations = 0  # how many its jaxpr has, once `abstract_outputs` has seen it
    traced = None  # its jaxpr and the structure of its results, if no setting of JAX changes them
    host_jaxpr = None  # what `abstract_outputs` has traced for the host, until it has a block
    heeds_settings = True  # whether JAX's default precision or device changes what it computes
    defers = False  # whether an eager call may be noted and run later (core/pending.py)
    may_get_pending = True  # whether its kernel may be called with what is still pending
    precondition = None  # called before the kernel with its arrays, such as a check of indices
    postcondition = None  # called after it with its results and arrays, as for a singular matrix
    is_partial = False  # whether its tangents have a part of its gradients, see `takes_part`
    undefined = None  # for a derivative: the error where it is infinite or NaN for finite inputs

    def function(self, *arrays) -> tuple:
        """Compute the outputs from JAX values; JAX can differentiate it."""
        raise NotImplementedError(f"{type(self).__name__}.function")

    def value(self, *arrays) -> tuple:
        """`function` for a trace that JAX does not differentiate."""
        with bare():
            return self.function(*arrays)

    @property
    def compact(self) -> Program:
        """The program that is compiled: the same one on contiguous arrays."""
        return self

    @cached_property
    def outputs(self) -> tuple[aval.Aval, ...]:
        return self.abstract_outputs()

    @cached_property
    def pattern(self) -> tuple[templates.Pattern, tuple[int, ...]] | None:
        """The pattern that the program belongs to, and the extents of its symbols; None if it has
        none (core/templates.py).
        """
        return None

    @cached_property
    def ready(self):
        """The block for the host and the facts that a trace would show, without a trace; None if
        there is no template.
        """
        if self.pattern is None:
            return None
        pattern, extents = self.pattern
        return pattern.ready(self, extents)

    @property
    def block(self):
        """What the host runs, if that is known without a trace."""
        return self.ready and self.ready[0]

    def abstract_outputs(self) -> tuple[aval.Aval, ...]:
        if self.ready is None:
            return self.traced_outputs()
        block, traits = self.ready
        for name, trait in traits.items():
            setattr(self, name, trait)
        dtype = aval.dtypes.from_numpy
        return tuple(
            [aval.make_aval(shape, dtype(kind), self.mode) for shape, kind in block.outputs]
        )

    @keeps_jax_state
    def traced_outputs(self) -> tuple[aval.Aval, ...]:
        structs = list(map(aval.struct_of, self.inputs))
        # as where the program will run: a trace of the user's own may have 64-bit types off
        with jax.enable_x64(self.mode != aval.INLINE32):
            traced, is_of_host = self.traced_for(self.runs_on_host, structs)
        equations, is_wide = [*equations_of(traced.jaxpr)], has_wide_types(traced.jaxpr)
        self.equations = len(equations)
        self.heeds_settings = any(equation.primitive.name in HEEDING for equation in equations)
        if not (is_of_host or self.heeds_settings or traced.jaxpr.consts or is_wide):
            self.traced = traced.jaxpr, jax.tree.structure(traced.out_info)
        if self.runs_on_host and not is_wide:
            self.host_jaxpr = traced.jaxpr
        return tuple(
            aval.make_aval(r.shape, aval.dtypes.from_numpy(r.dtype), self.mode)
            for r in jax.tree.leaves(traced.out_info)
        )

    @property
    def runs_on_host(self) -> bool:
        """Whether the host executor may make its calls."""
        return (
            self.mode == aval.IMMEDIATE
            and self.may_run_on_host
            and executor.chosen != "compiled"
            and host_kernel.has_one_cpu()
        )

    def traced_for(self, host: bool, arrays):
        """The function that `jitted` traces, and whether it is for the host alone."""
        questions = [] if host else None
        before = _host_trace.set(questions)
        try:
            traced = self.jitted.trace(*arrays)
        finally:
            _host_trace.reset(before)
            if questions:
                vars(self).pop("jitted", None)  # XLA is to get another trace
        return traced, bool(questions)

    def trace_for_host(self, *arrays):
        """The jaxpr for the host."""
        if self.traced is not None:
            return self.traced[0]
        return self.traced_for(True, arrays)[0].jaxpr

    @cached_property
    def jitted(self):
        """`value` as a jitted function: JAX keeps its equations. Like the kernel it gives an array
        or a tuple.
        """

        def value(*arrays):
            results = self.value(*arrays)
            return results[0] if self.gives_one(results) else results

        # the name that HLO and profiles show
        value.__name__ = value.__qualname__ = self.name
        # the result is on the device of the arguments, although it depends on their shapes alone
        return jax.jit(value, inline=JOINS_TRACE, keep_unused=device.may_differ())

    @property
    def to_compile(self):
        """The jitted function that is the kernel."""
        return self.jitted

    def trace(self, *arrays):
        """The jaxpr of the kernel for arrays, or for what stands for them, and the structure of its
        results.
        """
        if self.traced is not None:
            return self.traced
        traced = self.jitted.trace(*arrays)
        return traced.jaxpr, jax.tree.structure(traced.out_info)

    def gives_one(self, results: tuple) -> bool:
        """Whether the kernel gives the first of these results, and not a tuple: see `single`, which
        is known after the first trace.
        """
        return len(results) == 1

    @property
    def undefined_derivative(self) -> str | None:
        """The error that its derivatives raise where they do not exist and are NaN."""
        return self.undefined

    @cached_property
    def single(self) -> bool:
        """Whether the kernel returns one array instead of a tuple."""
        return len(self.outputs) == 1

    @cached_property
    def only_arrays(self) -> bool:
        """Whether no input is a number."""
        return all(isinstance(i, aval.Aval) for i in self.inputs)

    @cached_property
    def tracked(self) -> tuple[bool, ...]:
        """For each input whether it can have a gradient."""
        return tuple(isinstance(i, aval.Aval) and i.differentiable for i in self.inputs)

    @cached_property
    def differentiable_outputs(self) -> tuple[int, ...]:
        """The positions of the outputs that can have gradients."""
        return tuple(i for i, output in enumerate(self.outputs) if output.differentiable)

    def result(self, outputs):
        """Several outputs as the caller gets them."""
        return tuple(outputs)

    @cached_property
    def wide(self) -> bool:
        """Whether an input or output has a 64-bit dtype, or an input is a large integer; or whether
        integers and a number may be compared in a default dtype of 64 bits.
        """
        if any(map(aval.is_wide, (*self.inputs, *self.outputs))):
            return True
        compares = all(output.dtype is dtypes.bool for output in self.outputs)
        return compares and dtypes.get_default_dtype() is dtypes.float64

    @cached_property
    def reverses(self) -> dict[tuple[bool, ...], Reverse]:
        return {}

    @cached_property
    def tangents(self) -> dict[tuple[bool, ...], Program]:
        """The programs of its tangents, by the mask of the inputs that have tangents."""
        return {}

    def reverse(self, mask: tuple[bool, ...]) -> Reverse:
        """The program of the gradients of the inputs in `mask`, which has a flag for each input."""
        reverse = self.reverses.get(mask)
        if reverse is None:
            # two threads may both make it; they go on with the same one
            candidate = self.make_reverse(mask)
            candidate.is_partial = self.is_partial
            reverse = self.reverses.setdefault(mask, candidate)
        return reverse

    def make_reverse(self, mask) -> Reverse:
        return DerivedReverse(self, mask)

    def weight(self) -> bounded_cache.Weight:
        """The weight of the kernels that it keeps, those of its derivatives included."""
        fields, kernel_weight = vars(self), self.own_weight()
        names = ("reverses", "tangents", "partial_reverses")
        kinds = [fields[name].values() for name in names if name in fields]
        if not any(kinds):
            return kernel_weight
        derived = {program for kind in kinds for program in kind} - {self}
        return bounded_cache.total([kernel_weight, *[program.weight() for program in derived]])

    def own_weight(self) -> bounded_cache.Weight:
        if not aval.is_concrete(self.mode):
            return bounded_cache.ENTRY
        kernel = self.kernel
        if kernel is not None and kernel.host is not None and not kernel.is_compiled:
            return bounded_cache.HOSTED
        return bounded_cache.weight_of_kernel(self.equations)


# Whether the gradients being computed are summands: those of a call with tangents come from the
# call and from its tangents, and only their sum has the symmetries of the whole function.
takes_part = contextvars.ContextVar("jaxgrad.takes_part", default=False)


class Reverse(Program):
    """The gradients of a program's inputs in `mask`, from gradients of its outputs and residuals.

    `saved_inputs`, `saved_outputs`: the residuals, as positions of inputs and outputs. `function`
    takes the gradients of the program's `differentiable_outputs`, those that `present` has a flag
    for, then the residuals.
    """

    saved_inputs: tuple[int, ...]
    saved_outputs: tuple[int, ...]
    tells_missing = False  # whether it has a program for some of the gradients only
    tells_apart = False  # whether a gradient is None if it depends on no gradient that arrived

    def __init__(self, program: Program, mask: tuple[bool, ...], present=None):
        self.program, self.mask, self.mode = program, mask, program.mode
        self.may_run_on_host = program.may_run_on_host
        self.present = present or (True,) * len(program.differentiable_outputs)
        self.name = f"{program.name}Backward"
        self.node_name = f"{self.name}0"
        self.wanted = tuple(i for i, flag in enumerate(mask) if flag)

    @cached_property
    def pattern(self):
        if self.is_partial or self.program.pattern is None or not aval.is_concrete(self.mode):
            return None
        pattern, extents = self.program.pattern
        return pattern.reverse(self.mask, self.present), extents

    @cached_property
    def constants(self) -> tuple[int, ...]:
        """The saved inputs that get no gradient."""
        return tuple(i for i in self.saved_inputs if i not in self.wanted)

    @property
    def checked(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The inputs and outputs that PyTorch saves, whose versions `strict_versions` checks."""
        return self.saved_inputs, self.saved_outputs

    @cached_property
    def recipe(self) -> tuple:
        """The parts of a recorded call, as one tuple: the saved tensors that get no gradient, a
        function from the inputs to the tuple of the saved ones, the saved outputs, the inputs that
        get a gradient, and whether there is one output.
        """
        saved, inputs = self.saved_inputs, self.program.inputs
        constants = [i for i in self.constants if not isinstance(inputs[i], type)]
        return constants, _taking(saved), self.saved_outputs, self.wanted, self.program.single

    @cached_property
    def saves_tensors(self) -> bool:
        """Whether a residual is a tensor. A pass frees tensors; numbers alone let it come again."""
        inputs = self.program.inputs
        return bool(self.saved_outputs) or not all(
            isinstance(inputs[i], type) for i in self.saved_inputs
        )

    @cached_property
    def shown(self) -> tuple[int | None, ...]:
        """The input position of each edge that users see, None for a number."""
        return tuple(i for i, a in enumerate(self.program.inputs) if not isinstance(a, type))

    @cached_property
    def inputs(self):
        positions = itertools.compress(self.program.differentiable_outputs, self.present)
        saved = [self.program.inputs[i] for i in self.saved_inputs]
        outputs = self.program.outputs
        return (*(outputs[i] for i in positions), *saved, *(outputs[i] for i in self.saved_outputs))

    def with_missing(self, arrays) -> tuple[tuple, tuple]:
        """The gradients of all outputs, None for those that are missing, and the residuals."""
        supply = iter(arrays)
        return tuple([next(supply) if flag else None for flag in self.present]), tuple(supply)

    def without_missing(self, gradients):
        """The program for those gradients that are not None, and these."""
        present = tuple([gradient is not None for gradient in gradients])
        return self.only(present), [gradient for gradient in gradients if gradient is not None]

    def only(self, present: tuple[bool, ...]) -> Reverse:
        """The program for some of the gradients."""
        reverse = self.partial_reverses.get(present)
        if reverse is None:
            candidate = type(self)(self.program, self.mask, present)
            candidate.is_partial = self.is_partial
            reverse = self.partial_reverses.setdefault(present, candidate)
        return reverse

    @cached_property
    def partial_reverses(self) -> dict[tuple[bool, ...], Reverse]:
        """The programs for fewer gradients."""
        return {self.present: self}


def _taking(positions):
    """A function from a tuple to a new tuple of its items at these positions. A slice of all items
    would be the tuple itself, and the references to an item would not tell that it is held twice.
    """
    if len(positions) == 1:
        (position,) = positions
        return lambda items: (items[position],)
    return operator.itemgetter(*positions or [slice(0, 0)])


class DerivedReverse(Reverse):
    """The reverse of a program without formulas: JAX derives it and all inputs are residuals."""

    saved_outputs = ()

    def __init__(self, program, mask):
        super().__init__(program, mask)
        self.defers = program.defers
        self.undefined = program.undefined_derivative
        # JAX's pullback may read any of the inputs
        self.saved_inputs = tuple(range(len(program.inputs)))

    @cached_property
    def wide(self):
        return self.program.wide or any(map(aval.is_wide, self.outputs))

    def function(self, *arrays):
        before = takes_part.set(self.is_partial or takes_part.get())
        try:
            return self.pulled_back(*arrays)
        finally:
            takes_part.reset(before)

    def pulled_back(self, *arrays):
        differentiable = self.program.differentiable_outputs
        gradients, inputs = arrays[: len(differentiable)], arrays[len(differentiable) :]

        def outputs(*wanted):
            replaced = list(inputs)
            for position, array in zip(self.wanted, wanted, strict=True):
                replaced[position] = array
            results = self.program.function(*replaced)
            return tuple(results[i] for i in differentiable)

        return pullback(outputs, [inputs[i] for i in self.wanted])(*gradients)
