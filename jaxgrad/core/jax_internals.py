"""Everything that jaxgrad uses of JAX beyond its documentation: internals, and texts of errors.

Other modules use this module and no internals of JAX. Each part names the internal that it uses,
and what goes wrong if a new JAX changes it. tests/core/test_jax_internals.py has a test for each
part, which fails in that case. Modules that interpret jaxprs also depend on the names of JAX's
primitives and parameters, and the same tests compare these names with JAX's.
"""

from __future__ import annotations

import contextlib
import contextvars
import dis
import functools
import itertools
import os
import re
import sys
import threading
import warnings

import jax
import jax.numpy as jnp

from ..late import LateModule

export = LateModule("jax.export")
jax_core = LateModule("jax.extend.core")

# ---- the trace that is under way

# The argument `inline` of `jax.jit` for a function whose equations become a part of the trace
# around, in place of a call. Until JAX 0.10 that is True; from 0.11 on, True leaves a call in the
# trace until it is lowered. With such calls, equations of operators have other names in profiles,
# and some numbers that are known while a function is traced are not.
JOINS_TRACE = jax.Inline.JAX_EARLY if hasattr(jax, "Inline") else True


def current_trace():
    """The trace that JAX is in.

    Leans on `take_current_trace`, whose block has another trace than the one around it, and from
    JAX 0.12 on none: an interrupt inside must not leave it so, or nothing runs in this process any
    more.
    """
    taking = jax_core.take_current_trace()
    try:
        with taking as trace:
            return trace
    except BaseException:
        put_back_trace(taking)
        raise


def put_back_trace(taking):
    """Set the trace that a `take_current_trace()` has taken.

    Leans on its `__exit__`, which may be called again. Where it may not, an interrupt leaves the
    process in a trace that has ended, or in none.
    """
    # without the attribute it has not taken anything yet
    with contextlib.suppress(AttributeError):
        taking.__exit__(None, None, None)


# JAX has no public function that tells. A kernel without inputs gives a tracer exactly where JAX
# traces; the state is compared first, because a kernel call takes longer.
_probe = jax.jit(lambda: jnp.zeros((), bool), inline=JOINS_TRACE)


@functools.cache
def _outside():
    """JAX's trace state and trace outside of all traces, which are those of a new thread."""
    pairs = []

    def note():
        pairs.append((jax_core.get_opaque_trace_state(), current_trace()))

    thread = threading.Thread(target=note)
    thread.start()
    thread.join()
    return pairs[0]


@contextlib.contextmanager
def outside_of_traces():
    """Compute at once inside of the block, where JAX may be tracing around it.

    Unlike in `jax.ensure_compile_time_eval()`, functions can be traced inside: there, what a trace
    computes without its arguments is computed at once too, so that it has no inputs.
    """
    _, trace = _outside()
    with jax_core.set_current_trace(trace):
        yield


def is_traced() -> bool:
    """Whether JAX is tracing, as inside `jax.jit`; inside `jax.grad` alone it computes at once.

    Leans on what `get_opaque_trace_state` gives in a new thread. Where threads do not begin outside
    of all traces, each call takes longer; the answer is the same.
    """
    if jax_core.get_opaque_trace_state() == _outside()[0]:
        return False
    # the state alone does not tell: in `jax.ensure_compile_time_eval()` it is that of the trace
    return isinstance(_probe(), jax.core.Tracer)


# ---- what tracers stand for, which capture/known_numbers.py evaluates while a function is traced


def lowered(tracer):
    """The array or the other tracer that a tracer stands for, or the tracer itself.

    Leans on `full_lower`. Without it, constants inside of a trace have no numbers.
    """
    return tracer.full_lower()


def equation_behind(tracer):
    """The equation that computes a tracer; None for an argument, and for tracers of other kinds.

    Leans on the attribute `parent` of the tracers of `make_jaxpr`. Without it, `bool(mask.any())`
    of a tensor from outside raises in compiled functions, as for an argument.
    """
    return getattr(tracer, "parent", None)


def is_equation(value) -> bool:
    """Whether a value is an equation of a trace that is under way. Leans on `in_tracers`, as
    `operands_of` does.
    """
    return hasattr(value, "in_tracers")


def operands_of(equation) -> list:
    """The tracers and the arrays that an equation of a trace that is under way reads."""
    return equation.in_tracers


def result_behind(tracer, equation, results):
    """Of the results of an equation that of a tracer. Leans on its attribute `val`, a variable."""
    pairs = zip(equation.outvars, results, strict=True)
    return next(result for variable, result in pairs if variable is tracer.val)


def results_of(equation, operands) -> list:
    """The results of an equation for other operands.

    Leans on `ctx.manager`, the settings under which the equation was traced, and on
    `get_bind_params`.
    """
    primitive = equation.primitive
    with equation.ctx.manager:
        results = primitive.bind(*operands, **primitive.get_bind_params(equation.params))
    return results if primitive.multiple_results else [results]


# ---- symbolic extents


def _is_comparing(frame) -> bool:
    """Whether code compares, other than by JAX's lookups in its caches, which meet other shapes."""
    code = frame.f_code
    is_own = not code.co_filename.startswith(os.path.dirname(jax.__file__))
    return is_own or dis.opname[code.co_code[frame.f_lasti]] in ("COMPARE_OP", "CONTAINS_OP")


class _OfExtents(type):
    """The class of a class derived from that of symbolic extents, of which all of these are
    instances: `==` of extents asks whether the other one is an instance of its class.
    """

    def __instancecheck__(cls, value):
        return export.is_symbolic_dim(value)


def derived_extents(method_of):
    """A class derived from JAX's class of symbolic extents, and a function that gives an extent as
    an instance of it. method_of: gives a method from its name and that of JAX.

    Leans on the class having slots alone, which hold all of its state, and on JAX asking whether a
    value is an instance of the class. Where that changes, no program with a size that varies is
    exported.
    """
    (symbol,) = export.symbolic_shape("n")
    kind = type(symbol)
    methods = {name: method_of(getattr(kind, name)) for name in _CALCULATING}
    methods |= _noting_tests(kind, methods["__mod__"])
    derived = _OfExtents(kind.__name__, (kind,), {"__slots__": (), **methods})

    def extent_of(extent):
        if type(extent) is not kind:
            return extent
        copied = object.__new__(derived)
        for name in kind.__slots__:
            setattr(copied, name, getattr(extent, name))
        return copied

    return derived, extent_of


# what gives another number; `==` is not among them, which JAX's caches use
_CALCULATING = (
    *[
        f"__{side}{name}__"
        for name in ("add", "sub", "mul", "pow", "truediv")
        for side in ("", "r")
    ],
    *[f"__{side}{name}__" for name in ("floordiv", "mod", "divmod") for side in ("", "r")],
    *["__neg__", "__lt__", "__le__", "__gt__", "__ge__"],
)
_TESTS = ("POP_JUMP", "JUMP_IF", "UNARY_NOT", "TO_BOOL")


def _is_tested(frame) -> bool:
    """Whether the code of a frame uses the result of its current operation as a truth value."""
    after = (op for op in dis.get_instructions(frame.f_code) if op.offset > frame.f_lasti)
    name = next((op.opname for op in after if op.opname != "CACHE"), "")
    return any(test in name for test in _TESTS)


# of the open `watched_tests` of this thread
_note = contextvars.ContextVar("jaxgrad.watched_tests", default=None)


def _noting_tests(kind, remainder) -> dict:
    """The methods of a class derived from that of symbolic extents which call the function of
    `watched_tests`. remainder: its `__mod__`.
    """

    def compared(extent, other):
        outcome = kind.__eq__(extent, other)
        note = _note.get()
        if note is not None and outcome is False:
            note(sys._getframe(2), (extent, other))
        return outcome

    def equal(extent, other):
        return compared(extent, other)

    def unequal(extent, other):
        outcome = compared(extent, other)
        return outcome if outcome is NotImplemented else not outcome

    def modulo(extent, other):
        result = remainder(extent, other)
        note = _note.get()
        if note is not None and export.is_symbolic_dim(result) and _is_tested(sys._getframe(1)):
            note(sys._getframe(1), (kind.__mod__(extent, other), 0))
        return result

    return {
        "__eq__": equal,
        "__ne__": unequal,
        "__mod__": modulo,
        "__hash__": kind.__hash__,
    }


@contextlib.contextmanager
def watched_tests(note):
    """While the block runs, in this thread, call `note(frame, extents)` for what code takes to be
    decided of extents of `derived_extents` though numbers decide it: two that are compared by `==`,
    and a remainder that is used as a truth value.
    """
    token = _note.set(note)
    try:
        yield
    finally:
        _note.reset(token)


# Calls and returns, of Python's functions and of others, of a trace with symbols. JAX simplifies
# symbols by the constraints that they have, and some constraints have kept it at that forever.
MOST_EVENTS = 5_000_000


@contextlib.contextmanager
def watched_trace(pairs: list):
    """Add to a list the pairs of extents, of which one is symbolic, that are found to be unequal
    while the block runs, in this thread. Raises UserWarning where the block warns: other threads
    share the filters of Python's warnings, so a filter cannot do that.

    JAX's `==` of symbolic extents is False where it depends on numbers. Leans on their `__eq__`,
    which is Python code whose arguments are the two. A profile function sees its calls, so none may
    be set. Where that changes, templates are made without conditions, and
    tests/core/test_jax_internals.py fails.
    """
    (symbol,) = export.symbolic_shape("n")
    code, unequal = type(symbol).__eq__.__code__, getattr(type(symbol).__ne__, "__code__", None)
    names = code.co_varnames[:2]

    events = itertools.count()

    def watch(frame, event, result):
        if next(events) > MOST_EVENTS:
            raise RecursionError("a trace with symbolic extents that does not come to an end")
        if event == "c_call" and (result is warnings.warn or result is warnings.warn_explicit):
            raise UserWarning("a trace with symbolic extents warns")
        is_unequal = event == "return" and frame.f_code is code and result is False
        if is_unequal and (frame.f_back.f_code is unequal or _is_comparing(frame.f_back)):
            pair = tuple([frame.f_locals[name] for name in names])
            if all(isinstance(extent, int) or export.is_symbolic_dim(extent) for extent in pair):
                pairs.append(pair)

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)


# ---- calls of jitted functions in traces

# primitives of equations that run a jaxpr with their own operands. One that is not known is an
# operation like others: a derivative is not proven to be linear.
CALLS = frozenset(
    [
        "checkpoint",
        "closed_call",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_vmap_call",
        "jit",
        "pjit",
        "remat2",
    ]
)
# the parameters of primitives that are the jaxpr which they run
INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")


def jitted_jaxpr(equation) -> jax_core.ClosedJaxpr | None:
    """The jaxpr of the call of a jitted function; None of any other equation.

    Leans on the primitive's name and its parameter. Where it is not known, XLA compiles what NumPy
    would have computed.
    """
    return equation.params["jaxpr"] if equation.primitive.name in ("jit", "pjit") else None


def traced_function(closed: jax_core.ClosedJaxpr):
    """A jaxpr as a function. A trace has it as one equation, and lowers it as it is;
    `jax.extend.core.jaxpr_as_fun` would trace all its equations again.

    Leans on the parameters of the call of a jitted function: tuples whose names begin with "in_",
    "donated_" and "out_" have an element for each input or output. Where that changes, compiled
    programs raise as they are traced.
    """
    counts = {"in": len(closed.in_avals), "out": len(closed.out_avals)}
    counts["donated"] = counts["in"]

    def equations(*arrays):
        # with what JAX keeps of each input and each output
        call = _call_of(jax.sharding.get_abstract_mesh())
        parameters = {
            name: value * counts.get(name.partition("_")[0], 1) if type(value) is tuple else value
            for name, value in call.params.items()
        }
        parameters |= {"jaxpr": closed, "name": "equations"}
        return call.primitive.bind(*arrays, **parameters)

    return equations


@functools.lru_cache(maxsize=16)
def _call_of(_mesh):
    """The call of any jitted function while a mesh is in use, as an equation."""
    (call,) = jax.make_jaxpr(jax.jit(lambda array: array))(0.0).eqns
    return call


def extent_of_carry(params: dict) -> tuple[int, int] | None:
    """The positions where the carried operands of a `scan` begin and end; None for an unknown
    layout, in which a function is not found to be linear.

    Leans on parameters of the equation: until JAX 0.10 on `num_consts` and `num_carry`, from 0.11
    on `ft_in`, the trees of constants, carried operands and items.
    """
    if "num_consts" in params:
        return params["num_consts"], params["num_consts"] + params["num_carry"]
    trees = getattr(params.get("ft_in"), "elts", ())
    if len(trees) != 3:
        return None
    consts, carried, _ = (len(list(tree)) for tree in trees)
    return consts, consts + carried


def scopes_of(equation) -> str:
    """The scopes of `jax.named_scope` around an equation, the outermost first, as one text.

    Leans on `source_info.name_stack`. Without them `summary` cannot tell layers apart.
    """
    return str(equation.source_info.name_stack)


def lines_of(equation) -> list[tuple[str, int]]:
    """Pairs of a file and a line that ran when an equation was traced, the innermost first.

    Leans on `source_info.traceback`. Without it errors of exports lack the user's line.
    """
    trace = equation.source_info.traceback
    return [] if trace is None else [(frame.file_name, frame.line_num) for frame in trace.frames]


# ---- events and errors, which JAX words

TRACE_EVENT = "/jax/core/compile/jaxpr_trace_duration"
LOWER_EVENT = "/jax/core/compile/jaxpr_to_mlir_module_duration"
# Profiles lack the phases of a compilation whose events have other names.
COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"

_TRACER = re.compile(r"\b\w+Tracer\b")


def names_tracer(message: str) -> bool:
    """Whether a message mentions one of JAX's tracers. Leans on the names of their types. Without
    them an error lacks the note that says what to do.
    """
    return _TRACER.search(message) is not None


def is_of_broken_cache(error: RecursionError) -> bool:
    """Whether an interrupt has left an unfinished entry in one of JAX's caches, which each later
    look-up then finds. Leans on the message; if it changes, such calls raise until the process
    ends.
    """
    return str(error).startswith("Recursively calling")


_INCONCLUSIVE = re.compile(
    r"comparison '(?P<first>[^']+)' (?P<comparison>[<>]=?) '(?P<second>[^']+)' is inconclusive"
    r"|dimension '(?P<number>[^']+)' used in a context that requires a constant"
    r"|The remainder (?P<remainder>mod\(.+\)) should be 0"
)


# the functions behind `array - other`: in JAX 0.10 to 0.12, and before
_OPERATORS = ("_operator_", "deferring_binary_op")


def is_asked_as_operand(frame) -> bool:
    """Whether a frame is that of an operator of JAX's arrays, `array - other`, which asks whether
    `other` becomes an array.

    Leans on the names of these functions. Where they change, a size that varies, minus a tensor
    that requires grad, is refused, and tests/export/test_dynamic_shapes.py fails.
    """
    name = str(frame.f_globals.get("__name__"))
    return name.startswith("jax.") and frame.f_code.co_name.startswith(_OPERATORS)


def inconclusive(error: Exception) -> tuple[str, str, str | None] | None:
    """The comparison of symbolic extents that JAX could not decide, if the error comes from one: an
    extent, a comparison, and another extent, None if JAX needed a number, which the first extent
    equals.

    Leans on the message; if it changes, fewer programs have templates.
    """
    if not isinstance(error, jax.errors.InconclusiveDimensionOperation):
        return None
    match = _INCONCLUSIVE.search(str(error))
    if match is None:
        return None
    if match["comparison"]:
        return match["first"], match["comparison"], match["second"]
    return (match["number"], "==", None) if match["number"] else (match["remainder"], "==", "0")


# what XLA says of a communication that failed
_LOST = ("Gloo ", "NCCL", "coordination service")


def is_of_lost_process(error: Exception) -> bool:
    """Whether the error of a kernel says that a communication has failed. Leans on the message; if
    it changes, users see XLA's error in place of DistBackendError.
    """
    return any(word in str(error) for word in _LOST)


def is_of_late_initialization(error: RuntimeError) -> bool:
    """Whether `jax.distributed.initialize` came after JAX had chosen its devices. Leans on the
    message; if it changes, the error of `init_process_group` speaks of other processes.
    """
    return "before" in str(error)
