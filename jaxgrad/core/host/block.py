"""Jaxprs as the host executor runs them: a list of functions of NumPy arrays."""

from __future__ import annotations

import itertools

import jax
import numpy

from ...cached import cached_property
from ...late import LateModule
from ...state.objects import exact
from ..jax_internals import CALLS, INNER
from ..jaxprs import equations_of, opened
from .equation import Equation, Form, NotOnHostError, function_of
from .steps import Step, function_of_steps

jax_core = LateModule("jax.extend.core")

# The two words of a key of threefry are one integer on the host, so that keys move like numbers.
KEY = numpy.dtype(numpy.uint64)

# A result of equations that read no input is computed once, if it is as small as this in bytes.
KEPT = 1 << 12


class Block:
    """A jaxpr whose calls of other jaxprs are written out.

    Values have numbers: the inputs come first, then the constants and the literals, then the
    results of the equations in order. inputs, outputs: the forms of both; results: the numbers of
    the outputs.
    """

    def __init__(self, jaxpr):
        closed = jaxpr if isinstance(jaxpr, jax_core.ClosedJaxpr) else None
        jaxpr = opened(jaxpr)
        self.inputs = tuple([form_of(atom.aval) for atom in (*jaxpr.constvars, *jaxpr.invars)])
        self.outputs = tuple([form_of(atom.aval) for atom in jaxpr.outvars])
        self.equations: list[tuple[Equation, list, range]] = []
        self.constants: dict[int, numpy.ndarray] = {}
        self.count = 0
        if closed is not None and closed.consts:
            self.inputs = self.inputs[len(closed.consts) :]
        operands = [self.new() for _ in self.inputs]
        if closed is not None:
            operands = [*map(self.constant, closed.consts), *operands]
        self.results = self.write_out(jaxpr, operands)

    @classmethod
    def of_parts(cls, inputs, outputs, equations, constants, results) -> Block:
        """A block of equations, each with the numbers of its operands and those of its results."""
        block = object.__new__(cls)
        block.inputs, block.outputs, block.equations = tuple(inputs), tuple(outputs), equations
        block.constants, block.results = constants, results
        return block

    def new(self) -> int:
        self.count += 1
        return self.count - 1

    def constant(self, value) -> int:
        place = self.new()
        self.constants[place] = array_of(value)
        return place

    def write_out(self, jaxpr, operands) -> list[int]:
        """Add the equations of a jaxpr for operands given by number; gives those of its results."""
        places = dict(zip((*jaxpr.constvars, *jaxpr.invars), operands, strict=True))

        def look_up(atom):
            if isinstance(atom, jax_core.Literal):
                return self.constant(numpy.asarray(atom.val, atom.aval.dtype))
            return places[atom]

        for equation in jaxpr.eqns:
            operands = [*map(look_up, equation.invars)]
            called = _called(equation)
            if called is None:
                results = range(self.count, self.count + len(equation.outvars))
                self.count += len(equation.outvars)
                self.equations.append((_plain(equation), operands, results))
            else:
                consts = [*map(self.constant, getattr(called, "consts", ()))]
                # the first operand of branches is the number of one
                operands = operands[len(operands) - len(opened(called).invars) :]
                results = self.write_out(opened(called), consts + operands)
            places.update(zip(equation.outvars, results, strict=True))
        return [*map(look_up, jaxpr.outvars)]

    @cached_property
    def function(self):
        """A function from the arrays of the inputs to a list of those of the outputs. Raises
        NotOnHostError.
        """
        return function_of_steps(len(self.inputs), *self.steps)

    @cached_property
    def steps(self) -> tuple[dict, list[Step], list[int]]:
        """The values that are known before a call, by number; the steps of a call; and the numbers
        of the outputs. Equal equations are computed once. Raises NotOnHostError.
        """
        known, steps, same, seen = dict(self.constants), [], {}, {}
        for equation, operands, results in self.needed():
            operands = [same.get(place, place) for place in operands]
            first = seen.setdefault(_key_of(equation, operands), results)
            if first is not results:
                same.update(zip(results, first, strict=True))
                continue
            call = function_of(equation)
            is_small = sum(map(bytes_of, equation.outputs)) <= KEPT
            if is_small and all(place in known for place in operands):
                with numpy.errstate(all="ignore"):  # as in a call
                    values = call(*[known[i] for i in operands])
                known.update(
                    zip(results, values if type(values) is list else [values], strict=True)
                )
            else:
                steps.append(Step(call, operands, results, equation.outputs))
        outputs = [same.get(place, place) for place in self.results]
        read = {*outputs, *itertools.chain.from_iterable(step.operands for step in steps)}
        known = {place: numpy.asarray(value) for place, value in known.items() if place in read}
        for value in known.values():  # results that share memory with them are read-only too
            value.flags.writeable = False
        return known, steps, outputs

    @cached_property
    def read(self) -> set[int]:
        """The numbers of the values that a result depends on."""
        operands = [operands for _, operands, _ in self.needed()]
        return {*self.results, *itertools.chain.from_iterable(operands)}

    def needed(self) -> list:
        """The equations that a result depends on."""
        used, needed = set(self.results), []
        for equation, operands, results in reversed(self.equations):
            if not used.isdisjoint(results):
                used.update(operands)
                needed.append((equation, operands, results))
        return needed[::-1]


def _key_of(equation: Equation, operands: list[int]):
    """A key that equal equations share. Values that cannot be hashed make it unique."""
    params = tuple([(name, exact(value)) for name, value in equation.params.items()])
    key = equation.name, tuple(operands), equation.outputs, params
    try:
        hash(key)
    except TypeError:
        return object()
    return key


def form_of(aval) -> Form:
    """The form of the arrays that stand for a value of JAX. Raises NotOnHostError."""
    dtype = getattr(aval, "dtype", None)
    if isinstance(dtype, numpy.dtype):
        return Form(aval.shape, dtype)
    if getattr(dtype, "name", None) == "key<fry>":
        return Form(aval.shape, KEY)
    raise NotOnHostError(f"a value of type {aval}")  # a token, or a key of another algorithm


def array_of(value) -> numpy.ndarray:
    """The NumPy array that stands for an array of JAX."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
        form_of(value)
        return numpy.asarray(jax.random.key_data(value)).view(KEY)[..., 0]
    return numpy.asarray(value)


def blocks_within(equation: Equation) -> list[Block]:
    """The blocks among the parameters of an equation."""
    blocks = []
    for value in equation.params.values():
        values = value if type(value) is tuple else (value,)
        blocks += [part for part in values if isinstance(part, Block)]
    return blocks


def bytes_of(form: Form) -> int:
    """The bytes of an array of a form."""
    size = form.dtype.itemsize
    for extent in form.shape:
        size *= extent
    return size


def _called(equation):
    """The jaxpr that an equation runs with its own operands, or with all but the first; None for
    other equations.
    """
    params = equation.params
    if params.get("branches_platforms"):
        return _branch_of_host(params)
    if equation.primitive.name not in CALLS:
        return None
    return next(params[name] for name in INNER if name in params)


def _branch_of_host(params):
    """The branch for CPUs. If this branch exists for the sake of a grouped convolution, the branch
    for all platforms: sums of shifted products are fast as one loop of XLA, and slow one by one.
    """
    by_platforms = [*zip(params["branches_platforms"], params["branches"], strict=True)]
    of_all = next((branch for names, branch in by_platforms if names is None), None)
    if of_all is not None and any(map(is_grouped, equations_of(of_all))):
        return of_all
    for names, branch in by_platforms:
        if names is None or "cpu" in names:
            return branch
    raise NotOnHostError("branches for other platforms")


def is_grouped(equation) -> bool:
    """Whether an equation of JAX or of the host is a convolution in groups."""
    counts = [equation.params.get(f"{axis}_group_count", 1) for axis in ("feature", "batch")]
    return max(counts) > 1


def _plain(equation) -> Equation:
    kinds = jax_core.ClosedJaxpr, jax_core.Jaxpr

    def prepared(value):
        if isinstance(value, kinds):
            return Block(value)
        if isinstance(value, tuple | list) and any(isinstance(part, kinds) for part in value):
            return tuple(map(prepared, value))
        return value

    if equation.effects:
        raise NotOnHostError(f"{equation.primitive.name} with effects")
    inputs, outputs = (
        tuple([form_of(atom.aval) for atom in atoms])
        for atoms in (equation.invars, equation.outvars)
    )
    params = {name: prepared(value) for name, value in equation.params.items()}
    return Equation(equation.primitive.name, params, inputs, outputs)
