"""A program in the primitives that the converter takes.

Calls of functions are inlined, and what depends on the platform is what every platform can run.
A loop that runs backwards becomes one that runs forwards on reversed arrays, and the kernel of a
transposed convolution is brought into the layout of ONNX.
"""

from __future__ import annotations

import contextvars
import itertools

import jax
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun
from jax.interpreters import partial_eval

from ..core.jax_internals import extent_of_carry
from ..core.symbolic_extents import is_symbolic

_ANY_PLATFORM = object()  # in place of the number of a platform
# what floats of 64 bits become in the open expression
_wide: contextvars.ContextVar = contextvars.ContextVar("wide")


def expressed(closed: ClosedJaxpr, is_double: bool) -> ClosedJaxpr:
    """The same program, without what the converter lacks and what no result needs.

    is_double: whether floats of 64 bits stay so; otherwise they have 32, as the converter has one
    precision.
    """
    structs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in closed.in_avals]
    token = _wide.set(np.dtype("float64" if is_double else "float32"))
    try:
        with jax.enable_x64(True):
            flat = jax.make_jaxpr(lambda *inputs: _outputs(closed, inputs))(*structs)
    finally:
        _wide.reset(token)
    needed = [True] * len(flat.out_avals)
    jaxpr, is_used, _ = partial_eval.dce_jaxpr_consts(flat.jaxpr, needed, instantiate=True)
    return ClosedJaxpr(jaxpr, [*itertools.compress(flat.consts, is_used)])


def _outputs(closed, inputs) -> list:
    """The outputs of a program, as values of their own: ONNX gives one name to each."""
    known, outputs = {*map(id, inputs)}, []
    for value in _evaluated(closed, inputs):
        if id(value) in known or not isinstance(value, jax.core.Tracer):
            value = lax.copy_p.bind(jax.numpy.asarray(value))
        known.add(id(value))
        outputs.append(value)
    return outputs


def _evaluated(closed: ClosedJaxpr, inputs) -> list:
    """The outputs of a program, each of whose equations is a function of this module or itself."""
    jaxpr = closed.jaxpr
    values = dict(zip(jaxpr.constvars, map(_narrowed, closed.consts), strict=True))
    values.update(zip(jaxpr.invars, inputs, strict=True))

    def value_of(atom):
        return _narrowed(atom.val) if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        rule = _RULES.get(equation.primitive.name, _bound)
        results = rule(equation, *map(value_of, equation.invars))
        values.update(zip(equation.outvars, results, strict=True))
    return [value_of(atom) for atom in jaxpr.outvars]


def _narrowed(constant):
    is_wide = getattr(constant, "dtype", None) == np.float64
    return np.asarray(constant, _wide.get()) if is_wide else constant


def _bound(equation, *operands, **changes) -> list:
    """The results of the primitive of an equation, with some parameters changed."""
    params = {**equation.params, **changes}
    for name, value in params.items():
        if isinstance(value, np.dtype) and value == np.float64:
            params[name] = _wide.get()
    result = equation.primitive.bind(*operands, **params)
    return [*result] if equation.primitive.multiple_results else [result]


def _closed(jaxpr) -> ClosedJaxpr:
    return ClosedJaxpr(jaxpr, ()) if isinstance(jaxpr, Jaxpr) else jaxpr


def _inlined(name):
    return lambda equation, *operands: _evaluated(_closed(equation.params[name]), operands)


def _jit(equation, *operands) -> list:
    if equation.params["name"] == "signbit" and operands[0].dtype.kind == "f":
        (x,) = operands
        one = lax.full_like(x, 1)
        return [lax.bitwise_or(x < 0, lax.bitwise_and(x == 0, lax.div(one, x) < 0))]
    return _evaluated(_closed(equation.params["jaxpr"]), operands)


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

    length = None if items else params["length"]  # one that varies is known from the items alone
    state, results = lax.scan(body, [*carried], in_order(items), length)
    return [*state, *in_order(results)]


# ---- products, in the precision that they are asked for


def _product(equation, *operands) -> list:
    """A matrix product; one of half precision in single, since the converter mixes the two."""
    result = equation.outvars[0].aval.dtype
    result = _wide.get() if result == np.float64 else result
    wanted = np.dtype("float32") if result.itemsize == 2 else result
    if operands[0].dtype == operands[1].dtype == result == wanted:
        return _bound(equation, *operands)
    wide = [lax.convert_element_type(operand, wanted) for operand in operands]
    (product,) = _bound(equation, *wide, preferred_element_type=wanted)
    return [lax.convert_element_type(product, result)]


def _convolution(equation, x, kernel) -> list:
    numbers = equation.params["dimension_numbers"]
    order = tuple(range(kernel.ndim))
    kernel = lax.transpose(kernel, numbers.rhs_spec)
    numbers = numbers._replace(rhs_spec=order)
    wanted = equation.params["preferred_element_type"]
    if wanted is not None and wanted != x.dtype:
        x, kernel = (lax.convert_element_type(operand, wanted) for operand in (x, kernel))
    is_volume = kernel.ndim == 5 and numbers == type(numbers)(order, order, order)
    if not is_volume or equation.params["batch_group_count"] != 1:
        return _bound(equation, x, kernel, dimension_numbers=numbers)
    return [_volume_convolution(equation.params, x, kernel)]


def _volume_convolution(params, x, kernel):
    """A convolution of volumes as a sum of convolutions of images, one for each slice of the
    kernel: the converter has those of images alone.
    """
    (low, high), *padding = params["padding"]
    stride, *strides = params["window_strides"]
    spread, *lhs_dilation = params["lhs_dilation"]
    step, *rhs_dilation = params["rhs_dilation"]
    edges = [(0, 0, 0)] * 5
    edges[2] = low, high, spread - 1
    x = _padded(x, lax.full((), 0, x.dtype), edges)
    depth = kernel.shape[2]
    count = (x.shape[2] - step * (depth - 1) - 1) // stride + 1
    total = None
    for number in range(depth):
        start = number * step
        part = lax.slice_in_dim(x, start, start + (count - 1) * stride + 1, stride, 2)
        images = lax.transpose(part, (0, 2, 1, 3, 4))
        term = lax.conv_general_dilated(
            images.reshape(-1, *images.shape[2:]),
            kernel[:, :, number],
            strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            feature_group_count=params["feature_group_count"],
            precision=params["precision"],
        )
        total = term if total is None else total + term
    volumes = total.reshape(x.shape[0], count, *total.shape[1:])
    return lax.transpose(volumes, (0, 2, 1, 3, 4))


# ---- padding


def _pad(equation, operand, value) -> list:
    """Of an array with symbolic extents, and between elements, as concatenations: the converter
    pads only others.
    """
    edges = equation.params["padding_config"]
    if not any(inside for _, _, inside in edges) and not any(map(is_symbolic, operand.shape)):
        return _bound(equation, operand, value)
    return [_padded(operand, value, edges)]


def _padded(operand, value, edges):
    for axis, (low, high, inside) in enumerate(edges):
        operand = _spread(operand, value, axis, inside) if inside else operand
        parts = [_filled(operand, value, axis, low), operand, _filled(operand, value, axis, high)]
        parts = [part for part in parts if part is not None]
        operand = lax.concatenate(parts, axis) if len(parts) > 1 else operand
        if _is_negative(low) or _is_negative(high):
            end = operand.shape[axis] + min(high, 0)
            operand = lax.slice_in_dim(operand, max(-low, 0), end, axis=axis)
    return operand


def _is_negative(edge) -> bool:
    return not is_symbolic(edge) and edge < 0


def _filled(operand, value, axis, extent):
    if _is_negative(extent) or (not is_symbolic(extent) and extent == 0):
        return None
    shape = (*operand.shape[:axis], extent, *operand.shape[axis + 1 :])
    return lax.broadcast_in_dim(value, shape, ())


def _spread(operand, value, axis, inside):
    """The elements of a dimension with `inside` values between two of them."""
    shape, count = operand.shape, operand.shape[axis]
    column = lax.expand_dims(operand, (axis + 1,))
    between = lax.broadcast_in_dim(value, (*shape[: axis + 1], inside, *shape[axis + 1 :]), ())
    wide = lax.concatenate([column, between], axis + 1)
    length = count * (inside + 1)
    wide = wide.reshape(*shape[:axis], length, *shape[axis + 1 :])
    return lax.slice_in_dim(wide, 0, length - inside, axis=axis)


# ---- elementwise


def _broadcast(equation, operand, *extents) -> list:
    """Of a copy, where sizes vary: the converter takes a size that a slice has given to an operand
    for that of the result.
    """
    if any(map(is_symbolic, equation.params["shape"])):
        operand = lax.copy_p.bind(operand)
    return _bound(equation, operand, *extents)


def _remainder(equation, x, y) -> list:
    if jax.numpy.issubdtype(x.dtype, jax.numpy.floating):
        return _bound(equation, x, y)
    return [x - lax.div(x, y) * y]  # the converter has it for extents that do not vary


def _power(equation, x) -> list:
    exponent = equation.params["y"]
    if exponent >= 0:
        return _bound(equation, x)
    return [lax.div(lax.full_like(x, 1), lax.integer_pow(x, -exponent))]


def _shift(shift, is_arithmetic=False):
    """Of integers with a sign, which ONNX does not shift, by those without."""

    def rule(equation, x, count):
        def shifted(x):
            bits = lax.convert_element_type(x, "uint64")
            return lax.convert_element_type(
                shift(bits, lax.convert_element_type(count, "uint64")), x.dtype
            )

        if x.dtype.kind == "u":
            return _bound(equation, x, count)
        if not is_arithmetic:
            return [shifted(x)]
        return [lax.select(x < 0, lax.bitwise_not(shifted(lax.bitwise_not(x))), shifted(x))]

    return rule


def _cumulative(combine):
    """A running product or extremum, as a loop."""

    def rule(equation, x):
        axis, backwards = equation.params["axis"], equation.params["reverse"]
        rows = jax.numpy.moveaxis(x, axis, 0)
        rows = lax.rev(rows, (0,)) if backwards else rows

        def step(last, row):
            joined = combine(last, row)
            return joined, joined

        first = lax.index_in_dim(rows, 0, keepdims=False)
        first = lax.full_like(first, 1) if combine is lax.mul else first
        rows = lax.scan(step, first, rows)[1]
        rows = lax.rev(rows, (0,)) if backwards else rows
        return [jax.numpy.moveaxis(rows, 0, axis)]

    return rule


_RULES = {
    "broadcast_in_dim": _broadcast,
    "pad": _pad,
    "jit": _jit,
    "pjit": _jit,
    "jaxgrad_unrecorded": lambda equation, value, *old: [value],
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
    "dot_general": _product,
    "rem": _remainder,
    "integer_pow": _power,
    "shift_left": _shift(lax.shift_left),
    "shift_right_logical": _shift(lax.shift_right_logical),
    "shift_right_arithmetic": _shift(lax.shift_right_logical, is_arithmetic=True),
    "cumprod": _cumulative(lax.mul),
    "cummax": _cumulative(lax.max),
    "cummin": _cumulative(lax.min),
    "lt_to": lambda equation, x, y: [lax.lt(x, y)],
    "le_to": lambda equation, x, y: [lax.le(x, y)],
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
