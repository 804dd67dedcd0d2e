"""Kernels that NumPy runs on the host, until compiling them pays off.

XLA takes 8 to 30 milliseconds to compile the smallest program, and most programs of a script's
first minute only fill, copy, cut, rearrange or compare, or round once. NumPy gives the same bits
for these. Where it might not, XLA computes: a program that rounds what is rounded already, because
XLA may fuse the two; and a call whose numbers XLA takes for 0, since they are below the normal
ones, or is free to choose, since they are NaN.
"""

from __future__ import annotations

import functools

import jax
import ml_dtypes
import numpy as np
from jax.extend.core import Literal
from jax.sharding import NamedSharding

from .jax_internals import jitted_jaxpr

# A call takes 30 us longer here, and as much again for so many bytes; after so many times as long,
# it has taken as long as to compile a kernel.
BYTES, MOST = 1 << 14, 500


class _Refused(Exception):
    """XLA might give other bits."""


# ---- The primitives. Each function takes the equation and NumPy arrays, and gives one array, or a
# list for a primitive with several results.


def _shape(equation):
    return equation.outvars[0].aval.shape


def _reshape(equation, operand):
    return operand.reshape(_shape(equation))


def _broadcast(equation, operand):
    wanted = [1] * len(_shape(equation))
    for dim, extent in zip(equation.params["broadcast_dimensions"], operand.shape, strict=True):
        wanted[dim] = extent
    return np.broadcast_to(operand.reshape(wanted), _shape(equation))


def _slice(equation, operand):
    params = equation.params
    steps = params["strides"] or (1,) * operand.ndim
    bounds = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
    return operand[tuple([slice(*each) for each in bounds])]


def _split(equation, operand):
    ends = np.cumsum(equation.params["sizes"])[:-1]
    return np.split(operand, ends, equation.params["axis"])


def _pad(equation, operand, value):
    low, _, interior = zip(*equation.params["padding_config"], strict=True)
    made = np.full(_shape(equation), value, operand.dtype)
    triples = zip(low, operand.shape, interior, strict=True)
    places = [slice(begin, begin + n * (gap + 1), gap + 1) for begin, n, gap in triples]
    made[tuple(places)] = operand
    return made


def _select(_equation, which, *cases):
    return np.where(which, cases[1], cases[0])


def _converted(equation, operand):
    return operand.astype(equation.outvars[0].aval.dtype)


def _extreme(choose):
    def call(_equation, first, second):
        # of 0.0 and -0.0 XLA may give either
        if np.any((first == second) & (np.signbit(first) != np.signbit(second))):
            raise _Refused
        return choose(first, second)

    return call


def _joined(join, name):
    return lambda equation, *operands: join(operands, equation.params[name])


def _of(function):
    return lambda _equation, *operands: function(*operands)


MOVES = {
    "broadcast_in_dim": _broadcast,
    "concatenate": _joined(np.concatenate, "dimension"),
    "copy": _of(lambda operand: operand),
    "copy_p": _of(lambda operand: operand),
    "pad": _pad,
    "reshape": _reshape,
    "rev": lambda equation, operand: np.flip(operand, equation.params["dimensions"]),
    "select_n": _select,
    "slice": _slice,
    "split": _split,
    "squeeze": _reshape,
    "stack": _joined(np.stack, "axis"),
    "stop_gradient": _of(lambda operand: operand),
    "transpose": lambda equation, operand: operand.transpose(equation.params["permutation"]),
}

COMPARISONS = {
    "eq": _of(np.equal),
    "ge": _of(np.greater_equal),
    "gt": _of(np.greater),
    "le": _of(np.less_equal),
    "lt": _of(np.less),
    "max": _extreme(np.maximum),
    "min": _extreme(np.minimum),
    "ne": _of(np.not_equal),
}

# of IEEE's operations, those that XLA does not replace by others
ROUNDINGS = {
    "add": _of(np.add),
    "mul": _of(np.multiply),
    "neg": _of(np.negative),
    "sub": _of(np.subtract),
}

LOGIC = {"and": _of(np.bitwise_and), "not": _of(np.invert), "or": _of(np.bitwise_or)}

_EVALUATIONS = {**MOVES, **COMPARISONS, **ROUNDINGS, **LOGIC, "convert_element_type": _converted}


# ---- Which programs the host runs

# what is known of a value: it depends on no input; it is an input, or a part of one; it is made of
# several, or rounded
_CONSTANT, _MOVED, _MADE = range(3)


def serves(jaxpr) -> bool:
    """Whether the host may run a program, a closed jaxpr without results of weak type."""
    if jaxpr.consts or any(each.weak_type for each in jaxpr.out_avals):
        return False
    try:
        _check(jaxpr.jaxpr, [_MOVED] * len(jaxpr.in_avals))
    except _Refused:
        return False
    return True


def _check(jaxpr, given):
    """What is known of the results, from what is known of the inputs."""
    known = dict(zip(jaxpr.invars, given, strict=True))

    def look_up(atoms):
        return [_CONSTANT if isinstance(each, Literal) else known[each] for each in atoms]

    for equation in jaxpr.eqns:
        operands = look_up(equation.invars)
        inner = _within(equation)
        made = _check(inner, operands) if inner else [_result_of(equation, operands)]
        if len(made) != len(equation.outvars):
            made *= len(equation.outvars)
        known.update(zip(equation.outvars, made, strict=True))
    return look_up(jaxpr.outvars)


def _within(equation):
    """The jaxpr that an equation calls, None if it is another one."""
    closed = jitted_jaxpr(equation)
    return None if closed is None or closed.consts else closed.jaxpr


def _result_of(equation, operands):
    name, dtypes = equation.primitive.name, [each.aval.dtype for each in equation.invars]
    if name in MOVES and not _is_odd(equation, dtypes):
        return max(operands) if len({*operands}) == 1 else _MADE
    exact = all(each.kind in "biu" for each in dtypes)
    if name in LOGIC and exact:
        return max(operands)
    if name == "convert_element_type":
        return _kind_of_cast(dtypes[0], equation.outvars[0].aval.dtype, operands[0])
    usual = exact or all(each in _SINGLE_OR_DOUBLE for each in dtypes)
    if name in COMPARISONS and usual and _MADE not in operands:
        return max(operands)
    if name in ROUNDINGS and exact:
        return max(operands)
    may_vanish = name in ("add", "sub") and any(map(_may_be_zero, equation.invars, operands))
    if name in ROUNDINGS and usual and _MADE not in operands and not may_vanish:
        return _MADE
    raise _Refused


def _is_odd(equation, dtypes):
    """Whether this is a form of a move that is not known here."""
    name, params = equation.primitive.name, equation.params
    if name == "pad":
        return any(low < 0 or high < 0 for low, high, _ in params["padding_config"])
    is_transposed = name == "reshape" and params["dimensions"] is not None
    return is_transposed or (name == "select_n" and dtypes[0].kind != "b")


def _may_be_zero(atom, kind):
    """Whether an operand may be a constant 0. XLA adds none, though that makes 0.0 of -0.0."""
    return kind == _CONSTANT and not (isinstance(atom, Literal) and atom.val)


def _kind_of_cast(old, new, operand):
    if old == new or (old.kind in "biu" and new.kind in "iu"):
        return operand
    is_small = old.kind in "bi" and old.itemsize <= 4
    # XLA rounds double precision to single before it rounds to half
    is_known = new in _SINGLE_OR_DOUBLE and (old in _SINGLE_OR_DOUBLE or is_small)
    is_half = np.float32 in (old, new) and old in _FLOATS and new in _FLOATS
    if operand != _MADE and (is_known or is_half):
        return _MADE
    raise _Refused


# those in which NumPy and XLA round alike
_SINGLE_OR_DOUBLE = (np.dtype(np.float32), np.dtype(np.float64))
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_FLOATS = (*_SINGLE_OR_DOUBLE, np.dtype(np.float16), _BFLOAT16)


# ---- Running them


def evaluate(jaxpr, arrays) -> list[np.ndarray]:
    """The results, new arrays. Raises _Refused where XLA might give other bits."""
    avals = jaxpr.in_avals
    operands = [np.asarray(each, aval.dtype) for each, aval in zip(arrays, avals, strict=True)]
    with np.errstate(all="ignore"):
        results = _evaluated(jaxpr.jaxpr, operands)
    # never the memory of an array that somebody may hold or donate
    return [np.array(each, order="C") for each in results]


def _evaluated(jaxpr, given):
    values = dict(zip(jaxpr.invars, given, strict=True))

    def look_up(atoms):
        return [
            np.asarray(each.val, each.aval.dtype) if isinstance(each, Literal) else values[each]
            for each in atoms
        ]

    for equation in jaxpr.eqns:
        operands, inner = look_up(equation.invars), _within(equation)
        made = _evaluated(inner, operands) if inner else _results(equation, operands)
        values.update(zip(equation.outvars, made, strict=True))
    return look_up(jaxpr.outvars)


def _results(equation, operands):
    name = equation.primitive.name
    made = _EVALUATIONS[name](equation, *operands)
    made = made if isinstance(made, list) else [made]
    for each in (*operands, *made):
        # XLA also moves bfloat16 by way of single precision
        if name not in MOVES or each.dtype == _BFLOAT16:
            _check_usual(each)
    return made


def _check_usual(array):
    """Raise _Refused for NaN and numbers that XLA takes for 0, or may have rounded from these."""
    if array.dtype in _FLOATS:
        size = np.abs(array)
        if not np.all((size > ml_dtypes.finfo(array.dtype).smallest_normal) | (size == 0)):
            raise _Refused


class FirstOnHost:
    """A kernel whose first calls the host makes, if it gives the same bits.

    kernel: what XLA compiles; jaxpr_of: gives the jaxpr of a call and the structure of its results;
    put: makes an array of JAX; is_traced: whether JAX is tracing; retire: called when the kernel is
    to be used alone. `spent`: how much longer the calls took than by the kernel, `cost`: each.
    """

    def __init__(self, kernel, jaxpr_of, put, is_traced, retire):
        self.kernel, self.jaxpr_of, self.put = kernel, jaxpr_of, put
        self.is_traced, self.retire = is_traced, retire
        self.jaxpr, self.structure, self.spent, self.cost = None, None, 0, 0

    def __call__(self, *arrays):
        if self.spent > MOST or not (_is_usual() and all(map(_is_known, arrays))):
            return self.kernel(*arrays)
        jaxpr = None if self.is_traced() else self.jaxpr or self.first_jaxpr(arrays)
        if jaxpr is None:
            return self.kernel(*arrays)
        self.spent += self.cost
        if self.spent > MOST:
            self.jaxpr = None
            self.retire()
            return self.kernel(*arrays)
        try:
            made = evaluate(jaxpr, arrays)
        except _Refused:
            return self.kernel(*arrays)
        return jax.tree.unflatten(self.structure, [*map(self.put, made)])

    def first_jaxpr(self, arrays):
        """The jaxpr of the kernel."""
        jaxpr, self.structure = self.jaxpr_of(*arrays)
        self.cost = _cost(jaxpr) if serves(jaxpr) else MOST + 1
        self.jaxpr = jaxpr
        return jaxpr


def starts_on_host(jaxpr) -> bool:
    """Whether the host makes the first call of a kernel."""
    return _is_usual() and _cost(jaxpr) <= MOST and serves(jaxpr)


def _cost(jaxpr) -> int:
    """How much longer a call takes here than by a kernel, in units of 30 us."""
    return 1 + sum(each.size * each.dtype.itemsize for each in jaxpr.out_avals) // BYTES


def _is_known(array) -> bool:
    if isinstance(array, jax.Array):
        # results that XLA computes of what lies on a mesh lie there too
        is_traced = isinstance(array, jax.core.Tracer)
        return not (is_traced or isinstance(array.sharding, NamedSharding))
    return type(array) in (float, int, bool, complex)


def _is_usual() -> bool:
    config = jax.config
    is_watched = config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit
    return not is_watched and _has_one_cpu()


@functools.cache
def _has_one_cpu() -> bool:
    """Whether all arrays are in the memory of the host, on one device."""
    return jax.default_backend() == "cpu" and jax.device_count() == 1
