"""The one path of every operator on tensors: bind the arguments, find the call, run its kernel,
record.

All that depends on the arguments' types and not on their numbers is done once and kept in a `Plan`:
which overload, how dtypes promote, the compiled kernel, what comes out. A later call of the same
kind finds its plan by the abstract values of the tensors and the values of the rest.
"""

from __future__ import annotations

import functools
import numbers

import jax
import numpy as np

from . import avals, execution
from .binding import resolve
from .modes import INFERENCE, RECORD, mode
from .nodes import Node
from .primitive import ARRAY, Overloads, flatten
from .programs import Program
from .tensor import INFERENCE_TENSOR, Tensor, edge_of, wrap

# A number is an input of the kernel, so that a new one compiles nothing. These few are part of it:
# formulas and XLA
# have shorter forms for them, and they are all that much code uses.
CONSTANTS = frozenset([-1, 0, 0.5, 1, 2, 3])

_new = object.__new__
_Tracer = jax.core.Tracer


def operator(name: str, find):
    """An operator on tensors, and on JAX values where no argument is a tensor; as a method it binds
    like a function.

    `find` gives the operator on JAX values by name; it is asked at the first call.
    """
    made = Operator(name, find)
    plan_of, general_call = made.plans.get, made.general_call

    def call(*args, **kwargs):
        # one or two tensors, most calls by far: without a loop
        count = len(args)
        if kwargs or count > 2:
            return general_call(args, kwargs)
        first = args[0] if count else None
        if count == 2:
            second = args[1]
            if type(second) is not Tensor or type(first) is not Tensor:
                return general_call(args, kwargs)
            plan = plan_of((first._aval, second._aval))
            if plan is not None:
                mask = (first._requires_grad, second._requires_grad)
                return finish(plan.call, args, (first._array, second._array), mask)
        elif count and type(first) is Tensor:
            plan = plan_of((first._aval,))
            if plan is not None:
                return finish(plan.call, args, (first._array,), (first._requires_grad,))
        return general_call(args, kwargs)

    call.__name__ = call.__qualname__ = name
    call.operator = made
    return call


class Operator:
    """The plans of an operator, and how a new one is made."""

    def __init__(self, name: str, find):
        self.name = name
        self._find = find
        self.plans: dict[tuple, Plan] = {}

    @functools.cached_property
    def overloads(self) -> Overloads:
        return self._find(self.name)

    @functools.cached_property
    def varying(self) -> frozenset:
        """Positions and names at which a number is data and no part of the program."""
        found, fixed = set(), set()
        for signature in self.overloads.signatures:
            for position, argument in enumerate(signature.arguments):
                kind = found if argument.type.base == "Scalar" else fixed
                if argument.type.base != "Tensor":
                    kind.update((position, argument.name))
        return frozenset(found - fixed)

    def general_call(self, args, kwargs):
        """A call with keywords, lists or numbers, or of a kind that comes for the first time."""
        key = [self.key_of(position, value) for position, value in enumerate(args)]
        for name, value in kwargs.items():
            key.append((name, self.key_of(name, value)))
        key, values = tuple(key), (*args, *kwargs.values())
        plan = self.plans.get(key)
        if plan is None:
            return self.first_call(key, args, kwargs)
        return apply(plan.call, [_pick(values, place) for place in plan.places])

    def key_of(self, place, value):
        """What of an argument a plan depends on."""
        kind = type(value)
        if kind is Tensor:
            return value._aval
        if kind is float or kind is int:
            return kind if value not in CONSTANTS and place in self.varying else (kind, value)
        if isinstance(value, Tensor):
            return value._aval
        if kind is list or kind is tuple:
            return tuple(
                [item._aval if type(item) is Tensor else self.key_of(None, item) for item in value]
            )
        return _Unhashable() if kind.__hash__ is None else (kind, value)

    def first_call(self, key, args, kwargs):
        if not any(map(_holds_tensor, (*args, *kwargs.values()))):
            return self.overloads(*args, **kwargs)
        overloads = self.overloads
        chosen, bound = resolve(self.name, overloads.signatures, args, kwargs, _is_tensor)
        signature, primitive = overloads.signatures[chosen], overloads.primitives[chosen]
        kinds = [argument.type.base for argument in signature.arguments]
        route = signature.route(args, tuple(kwargs))
        # a default that is a number never varies
        bound = [
            _prepare(value, kind) if position in route else value
            for position, (value, kind) in enumerate(zip(bound, kinds, strict=True))
        ]
        structure, leaves = flatten(bound, _is_leaf)
        leaves = [leaf.value if type(leaf) is _Number else leaf for leaf in leaves]
        call = primitive.call(structure, tuple([_input(leaf) for leaf in leaves]))
        places = _places(route, structure)
        values = (*args, *kwargs.values())
        execution.prepare(call)
        if all(_pick(values, place) is leaf for place, leaf in zip(places, leaves, strict=True)):
            self.plans[key] = Plan(call, places)
        return apply(call, leaves)


class _Unhashable:
    """A key that is never found again."""


class _Number:
    """A number that is data of a call."""

    def __init__(self, value):
        self.value = value


class Plan:
    """The call that arguments of one kind make, and where among them its arrays are."""

    __slots__ = ("call", "places")

    def __init__(self, call, places):
        self.call, self.places = call, places


def _pick(values, place):
    return values[place[0]][place[1]] if isinstance(place, tuple) else values[place]


def _places(route, structure):
    """Where the arrays of a structure come from: a place, or a place and the position in the list
    there.
    """
    places = []
    for position, part in enumerate(structure):
        if part is ARRAY:
            places.append(route[position])
        elif isinstance(part, tuple):
            places.extend((route[position], i) for i, item in enumerate(part) if item is ARRAY)
    return places


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor | jax.Array | np.ndarray)


def _is_leaf(value) -> bool:
    return isinstance(value, Tensor | _Number)


def _holds_tensor(value) -> bool:
    return (
        any(map(_holds_tensor, value))
        if isinstance(value, list | tuple)
        else isinstance(value, Tensor)
    )


def _prepare(value, kind):
    """A bound argument as a call takes it: arrays as tensors, numbers that vary marked, the rest as
    it is.
    """
    if kind == "Tensor":
        if isinstance(value, tuple):
            return tuple(map(_as_tensor, value))
        return _as_tensor(value)
    if kind != "Scalar":
        return value
    if isinstance(value, Tensor):
        if value._requires_grad:
            raise TypeError(
                "a number is expected here, not a tensor that requires grad: its gradient would "
                "be lost"
            )
        if value._aval.mode != avals.IMMEDIATE:
            return value
        value = value._array.item()
    return _Number(value) if isinstance(value, numbers.Number) and value not in CONSTANTS else value


def _as_tensor(value):
    if value is None or isinstance(value, Tensor):
        return value
    # JAX would read a numpy array later, when its owner may have written to it
    value = value.copy() if isinstance(value, np.ndarray) else value
    with jax.enable_x64(True):
        return wrap(jax.numpy.asarray(value))


def _input(leaf):
    return leaf._aval if isinstance(leaf, Tensor) else type(leaf)


def apply(program: Program, leaves: list):
    """Run a program on tensors and numbers; record it where a tensor requires grad and grad mode is
    on.
    """
    if program.only_arrays:
        arrays = [leaf._array for leaf in leaves]
        mask = tuple([leaf._requires_grad for leaf in leaves])
    else:
        arrays = [leaf._array if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        mask = tuple([isinstance(leaf, Tensor) and leaf._requires_grad for leaf in leaves])
    return finish(program, leaves, arrays, mask)


def finish(program: Program, leaves, arrays, mask):
    """`apply`, given the arrays of the leaves and for each leaf whether it requires grad."""
    results = program.kernel(*arrays)
    current = mode.get()
    node, requires_grad = None, False
    if current is RECORD:
        if True in mask:
            reverse = program.reverses.get(mask) or _reverse_of(program, mask)
            if reverse.wanted:
                node, requires_grad = _record(reverse, leaves, arrays, results), True
    elif current >= INFERENCE:
        node = INFERENCE_TENSOR
    if program.single:
        # as `_wrap`, without its call
        aval = program.outputs[0]
        if isinstance(results, _Tracer) and aval.mode == avals.IMMEDIATE:
            aval = avals.aval_of(results)
        made = _new(Tensor)
        made._array = results
        made._aval = aval
        made._requires_grad = requires_grad
        made._grad_fn = node
        made._output_nr = 0
        made._leaf = None
        return made
    return program.result(list(_wrap_all(program, results, requires_grad, node)))


def _record(reverse, leaves, arrays, results) -> Node:
    if reverse.constants:
        _refuse_inference(reverse, leaves)
    # loops and no comprehensions: before Python 3.12 each of those is a call
    saved, edges = [], []
    for i in reverse.saved_inputs:
        saved.append(arrays[i])
    for i in reverse.saved_outputs:
        saved.append(results if reverse.program.single else results[i])
    for i in reverse.wanted:
        leaf = leaves[i]
        node = leaf._grad_fn
        edges.append(edge_of(leaf) if node is None else (node, leaf._output_nr))
    return Node(reverse, saved, edges, 1 if reverse.program.single else len(results))


def _wrap_all(program, results, requires_grad, node):
    differentiable = program.differentiable_outputs if requires_grad else ()
    plain = INFERENCE_TENSOR if node is INFERENCE_TENSOR else None
    for i, (result, aval) in enumerate(zip(results, program.outputs, strict=True)):
        if i in differentiable:
            yield _wrap(result, aval, True, node, i)
        else:
            yield _wrap(result, aval, False, plain, 0)


def _wrap(array, aval, requires_grad, node, output_nr):
    # a kernel run under somebody's trace gives a tracer, although its inputs are concrete
    if isinstance(array, _Tracer) and aval.mode == avals.IMMEDIATE:
        aval = avals.aval_of(array)
    made = _new(Tensor)
    made._array = array
    made._aval = aval
    made._requires_grad = requires_grad
    made._grad_fn = node
    made._output_nr = output_nr
    made._leaf = None
    return made


def _reverse_of(program: Program, mask):
    """The reverse program for the inputs that require grad and can have one."""
    wanted = tuple(flag and tracked for flag, tracked in zip(mask, program.tracked, strict=True))
    if not program.differentiable_outputs:
        wanted = (False,) * len(mask)
    reverse = program.reverses[mask] = program.reverse(wanted)
    return reverse


def _refuse_inference(reverse, leaves):
    for i in reverse.constants:
        if isinstance(leaves[i], Tensor) and leaves[i].is_inference():
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors "
                "created in inference mode in "
                f"computation tracked by autograd: {reverse.program.name} got one of shape "
                f"{list(leaves[i].shape)}; "
                "use its clone(), made outside of inference mode"
            )
