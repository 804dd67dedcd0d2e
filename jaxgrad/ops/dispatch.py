"""The path of every operator on tensors: find the plan, run its kernel, record.

The first call with arguments of one kind makes a `Plan`: it chooses the overload, promotes dtypes,
compiles the kernel and evaluates the outputs abstractly. Later calls find the plan by the abstract
values of their tensors and the values of their other arguments.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from operator import itemgetter

import jax
import numpy as np

from ..cached import cached_property
from ..core import bounded_cache, device, executor, promotion
from ..core.aval import LargeInteger
from ..core.dtypes import FLOATING, LackingDtype
from ..core.primitive import ARRAY, Overloads, flatten
from ..core.pytorch_tensors import is_of_pytorch
from ..core.symbolic_extents import is_symbolic
from ..core.tracebacks import hide_frames
from ..late import LateModule
from ..state.objects import exact
from ..storage.alias import watch
from ..tape import dual, interception, sparse_tensor
from ..tape.drawn_array import DrawnArray
from ..tape.record import apply, finish
from ..tape.sparse_tensor import is_sparse
from ..tape.symbolic_number import Varying
from ..tape.tensor import PLAIN_TENSORS, Tensor, current, has_tangent, is_concrete, wrap
from ..tape.torch_function import NOT_OVERRIDDEN, meets_override, stands_for_tensor
from .number_operand import PLAIN, with_first_tensor, with_tensors
from .old_forms import present_form

# inlined: the accessors of tape/tensor.py

resolution = LateModule("jaxgrad.core.overloads")
warned_calls = LateModule("jaxgrad.ops.warned_calls")

# Numbers are inputs of the kernel, so that a new number compiles nothing. These few are part of the
# kernel, since formulas and XLA have shorter forms for them.
CONSTANTS = frozenset([-1, 0, 0.5, 1, 2, 3])

# by operator what a layer above does to a new call, such as setting its `attach`
PREPARING: dict[str, Callable] = {}


def prepare_calls(name: str, prepare: Callable):
    """Let `prepare(call)` see each new call of an operator."""
    PREPARING[name] = prepare


def _refuse_other_device(name, leaves, out):
    """Raise RuntimeError unless what is written is on the device of what is read."""
    operands = *leaves, *(out if isinstance(out, tuple | list) else [out])
    device.together(name, [x._value for x in operands if isinstance(x, Tensor)], is_strict=True)


ARRAYS = (np.ndarray, DrawnArray)
# what the operators know as an operand
OPERANDS = (Tensor, numbers.Number, np.ndarray, np.generic, jax.Array)


def is_foreign(args) -> bool:
    """Whether the last operand of a special method, such as `==`, is an object that operators do
    not know: Python then asks that object, compares by identity, or raises TypeError.
    """
    if isinstance(args[-1], OPERANDS):
        return False
    # errors about PyTorch's tensors say more
    return not (hasattr(args[-1], "__torch_function__") or is_of_pytorch(args[-1]))


def result_after(error, call, general_call, args, kwargs):
    """The result of a call that has failed, since an argument overrides functions, or since it
    needs complex32; else NOT_OVERRIDDEN.
    """
    if interception.override is None and meets_override(args, kwargs):
        return general_call(args, kwargs)
    if isinstance(error, LackingDtype):
        return interception.lacking_dtype(call, args, kwargs, error)
    return NOT_OVERRIDDEN


def operator(name: str, find, write):
    """An operator on tensors, or on JAX values if no argument is a tensor: a function, so that it
    binds as a method.

    `find(name)` returns the operator on JAX values; the first call calls it. `write(name, call,
    leaves, out)` writes results into tensors. In a special method `is_protocol` is True
    (ops/documentation.py).
    """
    operator = Operator(name, find, write)
    plan_of, number_call, is_protocol = operator.plans.get, operator.number_call, False
    general_call = operator.general_call  # of a method one of its own, which `number_call` has not

    def call(*args, **kwargs):
        try:
            # most calls have one or two tensors: no loop for these
            count = len(args)
            if kwargs or not 0 < count < 3 or interception.is_general:
                return general_call(args, kwargs)
            first, second = args[0], args[-1]
            if type(first) not in PLAIN_TENSORS or type(second) not in PLAIN_TENSORS:
                result = number_call(args)
                return general_call(args, kwargs) if result is None else result
            alias = first._alias
            if alias is not None and alias.seen != alias.storage.epoch:
                alias.refresh(first)
            if count == 1:
                plan = plan_of((first._aval,))
                if plan is not None:
                    return finish(plan.call, args, (first._raw,), (first._tracked,))
                return general_call(args, kwargs)
            alias = second._alias
            if alias is not None and alias.seen != alias.storage.epoch:
                alias.refresh(second)
            plan = plan_of((first._aval, second._aval))
            if plan is not None:
                mask = (first._tracked, second._tracked)
                return finish(plan.call, args, (first._raw, second._raw), mask)
            return general_call(args, kwargs)
        except Exception as error:
            result = result_after(error, call, general_call, args, kwargs)
            if result is not NOT_OVERRIDDEN:
                return result
            if is_protocol and is_foreign(args):
                return NotImplemented
            hide_frames(error)
            raise

    return operator.called_by(call, name)


class Operator:
    """An operator's plans, and its general call, which makes new ones."""

    def __init__(self, name: str, find, write):
        self.name = name
        self._find, self._write = find, write
        self.plans = bounded_cache.BoundedCache(bounded_cache.kernels, Plan.weight)
        # those whose result is the first argument itself
        self.identities = bounded_cache.BoundedCache(bounded_cache.kernels, Plan.weight)

    @cached_property
    def overloads(self) -> Overloads:
        return self._find(self.name)

    @cached_property
    def policy(self) -> str | None:
        """The tag of the table that says to which dtype autocast converts; None for no autocast."""
        tags = (tag for tag in self.overloads.tags if tag.startswith("autocast_"))
        return next(tags, None)

    @cached_property
    def varying(self) -> frozenset:
        """The positions and names of arguments whose numbers are inputs of the kernel."""
        scalars, fixed = set(), set()
        for signature in self.overloads.signatures:
            for position, argument in enumerate(signature.arguments):
                kind = scalars if argument.type.base == "Scalar" else fixed
                if argument.type.base != "Tensor":
                    kind.update((position, argument.name))
        # in doubt fixed: another overload may have an int there, such as a dim
        return frozenset(scalars - fixed)

    def called_by(self, function: Callable, name: str) -> Callable:
        """Name the function that users call, and return it."""
        function.__name__ = function.__qualname__ = name
        function.operator, self.function = self, function
        return function

    def public(self, method: str | None = None):
        """The function that users call, or the method of `Tensor` of a name."""
        return self.function if method is None else getattr(Tensor, method)

    def general_call(self, args, kwargs, method: str | None = None, beside_array=None):
        """Call with any arguments: keywords, lists, numbers, and kinds without a plan yet.

        method: the name of the method of `Tensor` that is called; None: it is the function.
        beside_array: `beside_array(*args)` is the result for a last argument of NumPy.
        """
        if interception.override is not None:
            result = interception.override(self.public(method), args, kwargs)
            if result is not NOT_OVERRIDDEN:
                return result
        if beside_array is not None and isinstance(args[-1], ARRAYS):
            return beside_array(*args)
        if kwargs and "out" in kwargs:
            if kwargs["out"] is not None:
                return self.write_into(args, kwargs)
            kwargs = {name: value for name, value in kwargs.items() if name != "out"}
        # not for out=: autocast leaves writes alone, as PyTorch does
        if interception.arguments is not None:
            args, kwargs = interception.arguments(self, args, kwargs)
        call, leaves = self.bind(args, kwargs)
        if call is None:
            return self.without_plan(args, kwargs)
        return leaves[0] if call.is_identity else apply(call, leaves)

    def number_call(self, args):
        """The result for one or two arguments, not all of them tensors, while nothing takes part
        in calls: the second is mostly a number. None where no plan is known.
        """
        first, number = args[0], args[-1]
        kind = type(number)
        if type(first) in PLAIN_TENSORS and (kind is int or kind is float):
            alias = first._alias
            if alias is not None and alias.seen != alias.storage.epoch:
                alias.refresh(first)
            if kind is float and number not in CONSTANTS:
                plan = self.plans.get((first._aval, float))
                if plan is not None:
                    mask = (first._tracked, False)
                    return finish(plan.call, args, (first._raw, number), mask)
            else:
                plan = self.plans.get((first._aval, (kind, number)))
                # a part of the program, such as a dim, and not an input of it
                if plan is not None and len(plan.call.inputs) == 1:
                    return finish(plan.call, args[:1], (first._raw,), (first._tracked,))
        return None

    def without_plan(self, args, kwargs):
        """The operator on sparse tensors, on numbers alone, or on JAX values alone."""
        arguments = (*args, *kwargs.values())
        if any(map(stands_for_tensor, arguments)) and interception.override is None:
            raise TypeError(f"{self.name}: an argument overrides functions")  # and is asked to
        if any(map(_holds_sparse, arguments)):
            return sparse_tensor.implementation().call(self.name, args, kwargs)
        overloads = self.overloads
        operands = with_first_tensor(args) if "number_first" in overloads.tags else args
        if operands is not args:
            return self.function(*operands, **kwargs)
        if args and type(args[0]) in PLAIN and not any(map(_holds_array, arguments)):
            self.refuse_numbers(args)
        return overloads(*args, **kwargs)

    def refuse_numbers(self, args):
        """Raise TypeError for numbers alone, if no overload is without a tensor."""
        lists = [signature.arguments for signature in self.overloads.signatures]
        if all(any(argument.type.base == "Tensor" for argument in known) for known in lists):
            text = resolution.refusal(lists[0][0], 0, args[0])
            raise TypeError(f"{self.name}(): {text}")

    def write_into(self, args, kwargs):
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        if isinstance(out, Tensor) and self._computes_in_dtype_of_out(args, kwargs):
            dtype = kwargs.setdefault("dtype", out.dtype)
            if (dtype or out.dtype) is not out.dtype:
                raise RuntimeError(f"{self.name}: {promotion.other_out(dtype, out.dtype)}")
            kwargs["dtype"] = out.dtype
        call, leaves = self.bind(args, kwargs)
        if call is None and any(map(_holds_sparse, (*args, *kwargs.values()))):
            return sparse_tensor.implementation().write_out(self.name, args, kwargs, out)
        if call is None:
            raise TypeError(
                f"{self.name}(): out= takes a tensor, and one of the inputs must be one"
            )
        if device.may_differ():
            _refuse_other_device(self.name, leaves, out)
        return self._write(self.name, call, leaves, out)

    def _computes_in_dtype_of_out(self, args, kwargs) -> bool:
        tags = self.overloads.tags
        if "in_floats_of_out" not in tags:
            return "in_dtype_of_out" in tags
        input = args[0] if args else kwargs.get("input")
        is_integral = isinstance(input, Tensor) and input.dtype.category < FLOATING
        return not is_integral or kwargs.get("dtype") is not None

    def bind(self, args, kwargs):
        """The `Call` for arguments, and its leaves; (None, None) if no argument is a tensor."""
        key, varying, key_of = [], self.varying, self.key_of
        for position, value in enumerate(args):
            # the usual kinds of `key_of` inlined
            kind = type(value)
            if kind in PLAIN_TENSORS and interception.read is None:
                alias = value._alias
                if alias is not None and alias.seen != alias.storage.epoch:
                    alias.refresh(value)
                key.append(value._aval)
            elif kind is float and position in varying and value not in CONSTANTS:
                key.append(float)
            elif (kind is int and value and position not in varying) or kind is bool:
                key.append((kind, value))
            else:
                key.append(key_of(position, value))
        for name, value in kwargs.items():
            key.append((name, key_of(name, value)))
        key, values = tuple(key), (*args, *kwargs.values())
        plan = self.plans.get(key) or self.identities.get(key)
        if plan is None:
            plan = self.plans.find(key) or self.identities.find(key)
        if plan is None:
            return self.first_call(key, args, kwargs)
        return plan.call, plan.leaves_of(values)

    def key_of(self, place, value):
        """The part of a plan's key for one argument."""
        kind = type(value)
        if kind in PLAIN_TENSORS:
            return current(value)._aval
        # the type alone, so that x * i in a loop finds one plan
        if kind is float or kind is int:
            if value in CONSTANTS or place not in self.varying:
                return (kind, value) if value else exact(value)
            if kind is float or -(2**31) <= value < 2**31:
                return kind
            return _kind_of_int(value) or (kind, value)
        if isinstance(value, Tensor):
            # no plan serves a sparse tensor, so that `first_call` gets it
            return _Unhashable() if is_sparse(value) else current(value)._aval
        if kind is Varying and place in self.varying:
            return value.kind
        if kind is list or kind is tuple:
            return tuple(
                [
                    current(item)._aval if type(item) in PLAIN_TENSORS else self.key_of(None, item)
                    for item in value
                ]
            )
        return _Unhashable() if kind.__hash__ is None else exact(value)

    def first_call(self, key, args, kwargs):
        arguments = (*args, *kwargs.values())
        if not any(map(_holds_tensor, arguments)) or any(map(_holds_sparse, arguments)):
            return None, None
        overloads, tags = self.overloads, self.overloads.tags
        if "old_form" in tags:
            name = getattr(self, "written_as", self.name)
            schema = overloads.primitives[0].rule.schema
            present = present_form(schema, args, kwargs, name)
            if present is not None:
                return self.bind(*present)
        if "number_first" in tags:
            is_quotient = overloads.name == "div" and kwargs.get("rounding_mode") is None
            args = with_tensors(args, is_quotient)
        chosen, bound = resolution.resolve(
            self.name, overloads.signatures, args, kwargs, _is_tensor
        )
        signature, primitive = overloads.signatures[chosen], overloads.primitives[chosen]
        kinds = [argument.type.base for argument in signature.arguments]
        route = signature.route(args, tuple(kwargs))
        # the value of a tensor in a number's place is read now, so its plan serves this call only
        reads_value = any(
            kinds[position] != "Tensor" and _holds_tensor(arguments[place])
            for position, place in route.items()
        )
        # numbers among the defaults are part of the program
        bound = [
            _prepare(value, kind) if position in route else value
            for position, (value, kind) in enumerate(zip(bound, kinds, strict=True))
        ]
        structure, leaves = flatten(bound, _is_leaf)
        leaves = [leaf.value if type(leaf) is _Number else leaf for leaf in leaves]
        call = primitive.call(structure, tuple([_input(leaf) for leaf in leaves]))
        places = _places(route, structure)
        call = dual.extended(self.prepared(call), leaves)
        pairs = zip(places, leaves, strict=True)
        # a leaf that is no argument itself, as a converted numpy array, has no place in later calls
        if not reads_value and all(_pick(arguments, place) is leaf for place, leaf in pairs):
            plans = self.identities if call.is_identity else self.plans
            plans.keep(key, Plan(call, places))
        return call, leaves

    def prepared(self, call):
        """A new call, ready to run."""
        call = watch(executor.prepare(call))
        if self.name in PREPARING:
            PREPARING[self.name](call)
        if "warns" in self.overloads.tags:
            warned_calls.prepare(call)
        return call


def _kind_of_int(number):
    """The kind of a varying int; None if it has more than 64 bits, which no kernel takes."""
    if -(2**31) <= number < 2**31:
        return int
    return LargeInteger if -(2**63) <= number < 2**63 else None


class _Unhashable:
    """A key that equals no other, so that its plan never serves again."""


class _Number:
    """A number that is an input of the kernel."""

    def __init__(self, value):
        self.value = value


class Plan:
    """The call for arguments of one kind. leaves_of: gives the arrays among a tuple of arguments,
    from their places.
    """

    __slots__ = ("call", "leaves_of")

    def __init__(self, call, places):
        self.call = call
        if len(places) == 1 and not isinstance(places[0], tuple):
            self.leaves_of = _only(*places)
        elif any(isinstance(place, tuple) for place in places):
            self.leaves_of = lambda values: [_pick(values, place) for place in places]
        else:
            self.leaves_of = itemgetter(*places) if places else lambda values: ()

    def weight(self) -> float:
        return self.call.weight()


def _only(place):
    return lambda values: (values[place],)


def _pick(values, place):
    return values[place[0]][place[1]] if isinstance(place, tuple) else values[place]


def _places(route, structure):
    """The places of a structure's arrays among the values: `place`, or `(place, position)` for an
    item of a list.
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


def _holds_array(value) -> bool:
    """Whether a value is, or holds, a tensor or an array of NumPy or JAX."""
    if isinstance(value, list | tuple):
        return any(map(_holds_array, value))
    return isinstance(value, OPERANDS) and not isinstance(value, numbers.Number)


def _holds_sparse(value) -> bool:
    return any(map(_holds_sparse, value)) if isinstance(value, list | tuple) else is_sparse(value)


def _prepare(value, kind):
    """A bound argument with its arrays as tensors, and inputs of the kernel marked by `_Number`."""
    if kind == "Tensor":
        if isinstance(value, tuple):
            return tuple(map(_as_tensor, value))
        return _as_tensor(value)
    if kind != "Scalar":
        return value
    if isinstance(value, Tensor):
        if value._requires_grad or has_tangent(value):
            what, lost = ("requires grad", "gradient")
            if not value._requires_grad:
                what, lost = ("has a tangent of forward mode", "tangent")
            raise TypeError(
                f"a number is expected here, not a tensor that {what}: its {lost} would be lost"
            )
        if not is_concrete(value):
            return value
        value = value._array.item()
    if type(value) is Varying:
        return _Number(value)
    if is_symbolic(value):
        return _Number(Varying.of_extent(value))
    is_input = isinstance(value, numbers.Number) and value not in CONSTANTS
    if type(value) is int:
        is_input = is_input and _kind_of_int(value) is not None
    return _Number(value) if is_input else value


def _as_tensor(value):
    if value is None or isinstance(value, Tensor):
        return value
    if type(value) is DrawnArray:
        return wrap(value.traced(np.copy))
    is_host = isinstance(value, np.ndarray)
    # copy: JAX may read a numpy array after its owner has written to it
    value = value.copy() if is_host else value
    with jax.enable_x64(True):
        # jnp.asarray compiles for each new shape
        put = jax.device_put if is_host and not executor.is_traced() else jax.numpy.asarray
        return wrap(put(value))


def _input(leaf):
    if isinstance(leaf, Tensor):
        return leaf._aval
    if type(leaf) is int:
        return _kind_of_int(leaf)
    return leaf.kind if type(leaf) is Varying else type(leaf)
