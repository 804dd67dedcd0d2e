"""A program in the primitives that the converter takes.

Calls of functions are inlined, and what depends on the platform is what every platform can run.
A loop that runs backwards becomes one that runs forwards on reversed arrays, and the kernel of a
transposed convolution is brought into the layout of ONNX.
"""

from __future__ import annotations

import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

from ..core.jax_internals import extent_of_carry
from ..core.symbolic_extents import is_symbolic


def expressed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, without what the converter lacks."""
    structs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in closed.in_avals]
    with jax.enable_x64(True):
        return jax.make_jaxpr(lambda *inputs: _evaluated(closed, inputs))(*structs)


def _evaluated(closed: ClosedJaxpr, inputs) -> list:
    """The outputs of a program, each of whose equations is a function of this module or itself."""
    jaxpr = closed.jaxpr
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values.update(zip(jaxpr.invars, inputs, strict=True))

    def value_of(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        rule = _RULES.get(equation.primitive.name, _as_it_is)
        results = rule(equation, *map(value_of, equation.invars))
        values.update(zip(equation.outvars, results, strict=True))
    return [value_of(atom) for atom in jaxpr.outvars]


def _as_it_is(equation, *operands) -> list:
    result = equation.primitive.bind(*operands, **equation.params)
    return [*result] if equation.primitive.multiple_results else [result]


def _closed(jaxpr) -> ClosedJaxpr:
    return ClosedJaxpr(jaxpr, ()) if isinstance(jaxpr, Jaxpr) else jaxpr


def _inlined(name):
    return lambda equation, *operands: _evaluated(_closed(equation.params[name]), operands)


_ANY_PLATFORM = object()  # in place of the number of a platform


def _cond(equation, index, *operands) -> list:
    branches = equation.params["branches"]
    if index is _ANY_PLATFORM:  # all compute the same, and the others help compilers of XLA
        return _evaluated(min(branches, key=lambda branch: len(branch.jaxpr.eqns)), operands)
    functions = [lambda *inputs, taken=taken: _evaluated(taken, inputs) for taken in branches]
    return lax.switch(index, functions, *operands)


def _while(equation, *operands) -> list:
    params = equation.params
    count, both = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    of_condition, of_body, carried = operands[:count], operands[count:both], operands[both:]
    return lax.while_loop(
        lambda state: _evaluated(params["cond_jaxpr"], [*of_condition, *state])[0],
        lambda state: _evaluated(params["body_jaxpr"], [*of_body, *state]),
        [*carried],
    )


def _scan(equation, *operands) -> list:
    params = equation.params
    start, end = extent_of_carry(params)
    constants, carried, items = operands[:start], operands[start:end], operands[end:]
    backwards = params["reverse"]

    def body(state, item):
        results = _evaluated(params["jaxpr"], [*constants, *state, *item])
        return results[: end - start], results[end - start :]

    def in_order(arrays):
        return [lax.rev(array, (0,)) for array in arrays] if backwards else [*arrays]

    state, results = lax.scan(body, [*carried], in_order(items), params["length"])
    return [*state, *in_order(results)]


def _convolution(equation, x, kernel) -> list:
    numbers = equation.params["dimension_numbers"]
    order = tuple(range(kernel.ndim))
    if numbers.rhs_spec == order:
        return _as_it_is(equation, x, kernel)
    params = {**equation.params, "dimension_numbers": numbers._replace(rhs_spec=order)}
    return [equation.primitive.bind(x, lax.transpose(kernel, numbers.rhs_spec), **params)]


def _pad(equation, operand, value) -> list:
    """Of an array with symbolic extents as a concatenation: the converter pads only others."""
    edges = equation.params["padding_config"]
    is_plain = all(low >= 0 and high >= 0 and not inside for low, high, inside in edges)
    if not is_plain or not any(map(is_symbolic, operand.shape)):
        return _as_it_is(equation, operand, value)
    for axis, (low, high, _) in enumerate(edges):
        parts = [_filled(operand, value, axis, low), operand, _filled(operand, value, axis, high)]
        parts = [part for part in parts if part is not None]
        operand = lax.concatenate(parts, axis) if len(parts) > 1 else operand
    return [operand]


def _filled(operand, value, axis, extent):
    shape = (*operand.shape[:axis], extent, *operand.shape[axis + 1 :])
    return lax.broadcast_in_dim(value, shape, ()) if extent else None


_RULES = {
    "pad": _pad,
    "jit": _inlined("jaxpr"),
    "pjit": _inlined("jaxpr"),
    "closed_call": _inlined("call_jaxpr"),
    "custom_jvp_call": _inlined("call_jaxpr"),
    "custom_vjp_call": _inlined("call_jaxpr"),
    "checkpoint": _inlined("jaxpr"),
    "remat2": _inlined("jaxpr"),
    "stop_gradient": lambda equation, operand: [operand],
    "optimization_barrier": lambda equation, *operands: [*operands],
    "platform_index": lambda equation: [_ANY_PLATFORM],
    "cond": _cond,
    "while": _while,
    "scan": _scan,
    "conv_general_dilated": _convolution,
}


def as_function(closed: ClosedJaxpr):
    """A program as a function of arrays; integers that arrive in 32 bits become those of 64 bits
    that it takes.
    """
    dtypes = [aval.dtype for aval in closed.in_avals]
    function = jaxpr_as_fun(closed)

    def call(*arrays):
        with jax.enable_x64(True):
            pairs = zip(arrays, dtypes, strict=True)
            return function(*[lax.convert_element_type(array, dtype) for array, dtype in pairs])

    return call
