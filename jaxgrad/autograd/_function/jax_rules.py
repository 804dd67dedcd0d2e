"""A Function under JAX's transformations: the author's rules for `jax.grad`, `jax.jvp`, `jax.vmap`
and their nestings.

A call is a `jax.custom_jvp`, as every operator is (`core/primitive.py`). Its tangent map is one
linear primitive: evaluated, it runs the author's `jvp`; transposed, the author's `backward`. The
residuals are the inputs and outputs. The rules trace `forward` again on them, and the inputs and
outputs that it saves are the residuals themselves, so a second derivative runs the author's rules
too.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...cached import cached_property
from ...core import executor, tangent_map
from ...core.aval import (
    aval_of,
    is_concrete,
    mode_of_trace,
    strong,
    types_of_trace,
    users_setting,
    with_mode,
)
from ...core.program import bare, conjugate, is_bare, renamed
from ...storage.alias import assign
from ...tape import mode
from ...tape.mode import RECORD, RULE, Draws, current_mode, switch
from ...tape.tensor import (
    ReadsNumbers,
    Tensor,
    abstract_value,
    alias_of,
    hold,
    may_require_grad,
    reads_traced_value,
    wrap,
)
from . import call as function_call
from . import linearity, user_rules
from .saved_variables import SavedOutput, SavedVariable


class VmapInfo(NamedTuple):
    """The first argument of a Function's `vmap`.

    batch_size: the size of the mapped dimension.
    randomness: that of the innermost `vmap` where the Function is called, "error" without one.
    """

    batch_size: int
    randomness: str


def concerns(cls, args) -> bool:
    """Whether a call has JAX arrays, or tensors of tracers, among its arguments."""
    for argument in args:
        if isinstance(argument, Tensor):
            # where JAX does not differentiate, `func.vmap` may still map the trace
            is_known = is_concrete(abstract_value(argument).mode)
            if not is_known and (not is_bare() or user_rules.has_vmap(cls)):
                return True
        elif isinstance(argument, jax.Array):
            return True
    return False


def apply(cls, args):
    """Call a Function on tensors of tracers, or on JAX arrays, for which it returns JAX arrays."""
    plain = not any(isinstance(argument, Tensor) for argument in args)
    wrapped_args = tuple([wrap(strong(a)) if isinstance(a, jax.Array) else a for a in args])
    if any(isinstance(a, Tensor) and isinstance(a._array, jax.core.Tracer) for a in wrapped_args):
        output = _traced(cls, wrapped_args)
    else:
        output = function_call.apply(cls, wrapped_args)
    if not plain:
        return output
    outputs = output if isinstance(output, tuple) else (output,)
    outputs = tuple([v._array if isinstance(v, Tensor) else v for v in outputs])
    return outputs if isinstance(output, tuple) else outputs[0]


def _traced(cls, args):
    """Call a Function on tracers, with the author's rules attached for JAX."""
    call = CallOnArrays(cls, args)
    try:
        arrays = call.function(*call.arrays(args))
    except RuntimeError as error:
        if reads_traced_value(error) and user_rules.has_vmap(cls):
            raise ReadsNumbers(*error.args) from error
        raise
    with call.draws.again():
        output, ctx = function_call.begin(cls, args)
    outputs = output if isinstance(output, tuple) else (output,)
    tensors = [value for value in outputs if isinstance(value, Tensor)]
    for value, array in zip(tensors, arrays, strict=True):
        if alias_of(value) is not None and any(value is argument for argument in args):
            # `forward` wrote to its memory
            assign(value, wrap(array, abstract_value(value)), False)
        else:
            hold(value, array)
    for saved in ctx._saved:
        if isinstance(saved, SavedOutput) and saved.packed is None:
            saved.array = outputs[saved.number]._array
    return output


class CallOnArrays:
    """A Function with all its arguments but the arrays bound: a function of arrays.

    The arrays are those of positional tensors, then those inside of lists, tuples and dicts, which
    get no gradient. Every run of `forward` draws the same random numbers.
    """

    def __init__(self, cls, args):
        self.cls, self.draws = cls, Draws()
        # where the Function is called
        self.enable_x64, scope = jax.config.jax_enable_x64, mode.scope.get()
        self.randomness = "error" if scope is None else scope.randomness
        inner = tuple([None if isinstance(a, Tensor) else a for a in args])
        self.positions = tuple([i for i, a in enumerate(args) if isinstance(a, Tensor)])
        self.tensors = tuple([isinstance(a, Tensor) for a in args])
        self.avals = tuple([abstract_value(args[i]) for i in self.positions])
        self.nested = tuple(arrays_in(inner))
        # JAX calls the rules after the trace, when tensors no longer hold its tracers
        self.arguments = with_slots(inner)
        self.differentiable = ()

    def arrays(self, args):
        """The arrays to call `function` with."""
        return [*[args[i]._array for i in self.positions], *self.nested]

    def filled(self, arrays) -> list:
        """The arguments with these arrays inside of containers; positional tensors stay None."""
        return replaced(list(self.arguments), iter(arrays[len(self.positions) :]))

    def run(self, arrays, mask, results=None):
        """Run `forward` on arrays; returns its outputs and its `ctx`.

        mask: which arrays have a gradient.
        results: the arrays of the outputs, if they are known.
        """
        args, needs = self.filled(arrays), [False] * len(self.arguments)
        # inside of a trace `forward` may write tracers to a residual that is no tracer
        traced = executor.is_traced()
        for position, array, needed in zip(self.positions, arrays, mask, strict=False):
            # JAX passes Python numbers as they are
            array = strong(jnp.asarray(array))
            aval = with_mode(aval_of(array), mode_of_trace()) if traced else None
            args[position] = wrap(array, aval, needed)
            needs[position] = needed
        ctx = self.cls._backward_cls()
        ctx.needs_input_grad, args = tuple(needs), tuple(args)
        with self.draws.again(), users_setting(self.enable_x64):
            output = function_call.run_forward(self.cls, ctx, args, RULE, RULE)
        user_rules.put_aside(ctx)
        ctx._tensors, ctx._args, ctx._needs = self.tensors, args, tuple(needs)
        ctx._inputs = [aval for aval, needed in zip(self.avals, mask, strict=True) if needed]
        outputs = output if isinstance(output, tuple) else (output,)
        ctx._avals = tuple(abstract_value(v) if isinstance(v, Tensor) else None for v in outputs)
        if results is not None:
            supply = iter(results)
            numbers = {id(v): next(supply) for v in outputs if isinstance(v, Tensor)}
            ctx._saved = tuple(_saved(tensor, numbers) for tensor in ctx.to_save or ())
            if ctx.saved_for_forward is not None:
                ctx.saved_for_forward = tuple(
                    None if t is None else _saved(t, numbers).source for t in ctx.saved_for_forward
                )
        return outputs, ctx

    def value(self, *arrays):
        outputs, ctx = self.run(arrays, [aval.differentiable for aval in self.avals])
        constant = {id(tensor) for tensor in ctx.non_differentiable or ()}
        tensors = [value for value in outputs if isinstance(value, Tensor)]
        self.differentiable = tuple(
            i
            for i, value in enumerate(tensors)
            if id(value) not in constant and may_require_grad(value)
        )
        self.outputs = tuple(abstract_value(value).struct for value in tensors)
        self.numbers = tuple(i for i, value in enumerate(outputs) if isinstance(value, Tensor))
        return tuple(value._array for value in tensors)

    @cached_property
    def function(self):
        """The value with the author's rules, which JAX can differentiate and batch."""
        value = renamed(self.value, self.cls.__name__)
        if user_rules.has_vmap(self.cls):
            value = jax.custom_batching.custom_vmap(value)
            value.def_vmap(self.batched)
        function = jax.custom_jvp(value)
        function.defjvp(self.jvp, symbolic_zeros=True)
        return function

    def batched(self, axis_size, in_batched, *arrays):
        """The batching rule that JAX calls: the author's `vmap`, batch dimensions first."""
        args, flags = self.filled(arrays), iter(in_batched[len(self.positions) :])
        dims = [marked(argument, flags) for argument in self.arguments]
        for position, array, flag in zip(self.positions, arrays, in_batched, strict=False):
            args[position], dims[position] = wrap(array), 0 if flag else None
        with users_setting(self.enable_x64):
            result = self.cls.vmap(VmapInfo(axis_size, self.randomness), tuple(dims), *args)
        outputs, out_dims = user_rules.batched(self.cls, result)
        pairs = [p for p in zip(outputs, out_dims, strict=True) if isinstance(p[0], Tensor)]
        moved = [t._array if d is None else jnp.moveaxis(t._array, d, 0) for t, d in pairs]
        return tuple(moved), tuple(dim is not None for _, dim in pairs)

    def jvp(self, primals, tangents):
        """The tangent rule that JAX calls: outputs, and tangents as one linear map."""
        outputs = self.function(*primals)
        mask = tuple(
            aval.differentiable and not isinstance(t, jax.custom_derivatives.SymbolicZero)
            for aval, t in zip(self.avals, tangents, strict=False)
        )
        output_tangents = [_zero_tangent(output) for output in outputs]
        if any(mask) and self.differentiable:
            moving = [t for t, flag in zip(tangents, mask, strict=False) if flag]
            linear = _TangentOfCall(self, mask)
            results = tangent_map.apply_tangent_map(linear, primals, outputs, moving)
            for position, tangent in zip(self.differentiable, results, strict=True):
                output_tangents[position] = tangent
        return outputs, tuple(output_tangents)


def _saved(tensor, numbers):
    """An entry of `saved_tensors`; an output is the residual that holds its array."""
    if tensor is None:
        return None
    array = numbers.get(id(tensor))
    return SavedVariable(tensor if array is None else wrap(array, abstract_value(tensor)))


def _zeros(shape, dtype):
    with types_of_trace():
        return jnp.zeros(shape, dtype)


def _zero_tangent(output):
    if jnp.issubdtype(output.dtype, jnp.inexact):
        return jnp.zeros_like(output)
    return np.zeros(output.shape, jax.dtypes.float0)


class _TangentOfCall:
    """The tangent map of a call, for the inputs in `mask`; see `core/tangent_map.py`."""

    is_reused, takes_none, is_plain = False, True, False

    def __init__(self, call: CallOnArrays, mask):
        self.call, self.mask = call, mask
        self.positions, self.numbers = call.differentiable, call.numbers
        self.outputs = [call.outputs[i] for i in self.positions]
        self.count = len(mask) + len(call.nested)

    def select(self, primals, outputs):
        return (*primals, *outputs)

    def run(self, saved):
        """Run `forward` again; returns its outputs and its `ctx`."""
        return self.call.run(saved[: self.count], self.mask, saved[self.count :])

    def forward(self, saved, tangents):
        if not user_rules.has_jvp(self.call.cls):
            return self.derived(saved, tangents)
        (outputs, ctx), supply = self.run(saved), iter(tangents)
        argument_tangents = [None] * len(self.call.arguments)
        for position, flag in zip(self.call.positions, self.mask, strict=True):
            argument_tangents[position] = wrap(next(supply)) if flag else None
        with with_grad(), users_setting(self.call.enable_x64):
            output_tangents = user_rules.tangents_of(ctx, argument_tangents, outputs)
        output_tangents = [output_tangents[self.numbers[i]] for i in self.positions]
        return tuple(
            _zeros(struct.shape, struct.dtype) if tangent is None else tangent._array
            for tangent, struct in zip(output_tangents, self.outputs, strict=True)
        )

    def derived(self, saved, tangents):
        """The tangents, as the transpose of the author's `backward`.

        Raises NotImplementedError if there is no `backward`, or if it is not linear in its
        gradients.
        """
        zeros = tuple([_zeros(struct.shape, struct.dtype) for struct in self.outputs])
        if not user_rules.has_backward(self.call.cls):
            raise NotImplementedError(user_rules.no_jvp(self.call.cls, "it has no backward"))

        def transpose(*cotangents):
            return self.transpose(saved, cotangents)

        if not self.is_linear(transpose, zeros):
            why = "its backward is not linear in the gradients"
            raise NotImplementedError(user_rules.no_jvp(self.call.cls, why))
        return jax.vjp(transpose, *zeros)[1](tuple(tangents))

    def is_linear(self, transpose, zeros) -> bool:
        def value(*cotangents):
            with bare():
                return transpose(*cotangents)

        return linearity.is_linear(value, *zeros)

    def transpose(self, saved, cotangents):
        if not user_rules.is_once_differentiable(self.call.cls):
            return self.backward(saved, cotangents)
        # The residuals must not move; the results stay linear in the gradients.
        still = tuple(map(jax.lax.stop_gradient, saved))
        return _once(self.call.cls.__name__)(tuple(saved), self.backward(still, cotangents))

    def backward(self, saved, cotangents):
        _, ctx = self.run(saved)
        output_gradients = [None] * len(ctx._avals)
        for position, cotangent in zip(self.positions, cotangents, strict=True):
            if cotangent is not None:
                output_gradients[self.numbers[position]] = wrap(conjugate(cotangent))
        with with_grad(), users_setting(self.call.enable_x64):
            results = user_rules.gradients_of(ctx, output_gradients)
        return tuple(
            _zeros(aval.shape, aval.dtype.numpy) if g is None else conjugate(g._array)
            for g, aval in zip(results, ctx._inputs, strict=True)
        )


@contextmanager
def with_grad():
    """Switch grad mode on, as `create_graph` does: JAX may differentiate a rule's results."""
    before = switch(RECORD)
    try:
        yield
    finally:
        current_mode.set(before)


def _once(name):
    """The identity of its second argument; differentiating it in its first raises RuntimeError."""

    @jax.custom_jvp
    def guarded(saved, results):
        return results

    def refuse(primals, tangents):
        moving = jax.tree.leaves(tangents[0], is_leaf=_is_symbolic_zero)
        if not all(map(_is_symbolic_zero, moving)):
            raise RuntimeError(f"{user_rules.TWICE}: the gradient that {name}Backward gave")
        return primals[1], jax.tree.map(_instantiated, tangents[1], is_leaf=_is_symbolic_zero)

    guarded.defjvp(refuse, symbolic_zeros=True)
    return guarded


def _is_symbolic_zero(value) -> bool:
    return isinstance(value, jax.custom_derivatives.SymbolicZero)


def _instantiated(tangent):
    return _zeros(tangent.shape, tangent.dtype) if _is_symbolic_zero(tangent) else tangent


# arrays inside of lists, tuples and dicts, each of which is one argument


class Slot(NamedTuple):
    """The place of a traced array inside of an argument. is_tensor: whether a tensor holds it."""

    is_tensor: bool

    def filled(self, array):
        return wrap(array) if self.is_tensor else array


def arrays_in(value):
    """Yield the traced arrays of the tensors and JAX arrays inside of a value, in order."""
    for leaf in leaves_of(value):
        if _is_traced(leaf):
            yield leaf._array if isinstance(leaf, Tensor) else leaf


def leaves_of(value):
    """Yield what lists, tuples and dicts contain, in order."""
    if isinstance(value, Slot) or not isinstance(value, list | tuple | dict):
        yield value
        return
    for item in value.values() if isinstance(value, dict) else value:
        yield from leaves_of(item)


def with_slots(value):
    """The value with a `Slot` for each traced array."""
    return _mapped(value, _is_traced, lambda leaf: Slot(isinstance(leaf, Tensor)))


def replaced(value, supply):
    """The value with its slots filled by the arrays of an iterator."""
    return _mapped(value, _is_slot, lambda slot: slot.filled(next(supply)))


def marked(value, flags):
    """The structure of a value, with 0 or None for each slot by the next flag, and None for other
    leaves; None for a value without slots.
    """
    if not any(map(_is_slot, leaves_of(value))):
        return None
    return _mapped(
        value, lambda _: True, lambda leaf: 0 if _is_slot(leaf) and next(flags) else None
    )


def _mapped(value, is_chosen, function):
    """The value with a function applied to the chosen leaves; the value itself without any."""
    if isinstance(value, Slot) or not isinstance(value, list | tuple | dict):
        return function(value) if is_chosen(value) else value
    if not any(map(is_chosen, leaves_of(value))):
        return value
    if isinstance(value, dict):
        items = value.items()
        return type(value)((name, _mapped(item, is_chosen, function)) for name, item in items)
    items = [_mapped(item, is_chosen, function) for item in value]
    return value._make(items) if hasattr(value, "_fields") else type(value)(items)


def _is_slot(value) -> bool:
    return isinstance(value, Slot)


def _is_traced(value) -> bool:
    array = value._array if isinstance(value, Tensor) else value
    return isinstance(array, jax.core.Tracer)
