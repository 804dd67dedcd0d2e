"""An entry of a table as a function on JAX values, under every transformation.

A `Primitive` called on JAX values is a `jax.custom_jvp` whose tangent map is one linear primitive
(`core/tangent_map.py`). Evaluating that map runs the forward formula, transposing it the reverse
formula. A `Call` is a primitive with the structure and the abstract values of its arguments: the
program that the tape records and the executor compiles.
"""

from __future__ import annotations

import functools
import numbers
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import table
from ..cached import cached_property
from ..late import LateModule
from ..state.objects import exact
from . import aval, view_ops
from .bounded_cache import ENTRY, BoundedCache, kernels, settings_in_force
from .program import Program, bare, is_bare, renamed
from .promotion import promote_types
from .result_tuple import result_tuple
from .symbolic_extents import has_symbolic, is_exported
from .tracebacks import hide_frames

template_store = LateModule("jaxgrad.core.template_store")
templates = LateModule("jaxgrad.core.templates")

derivative_rules = LateModule("jaxgrad.core.derivative_rules")
device_axes = LateModule("jaxgrad.core.device_axes")
overloads = LateModule("jaxgrad.core.overloads")
tangent_map = LateModule("jaxgrad.core.tangent_map")


class _Slot:
    """Marks an array in the structure of a call's arguments."""

    def __repr__(self):
        return "array"


ARRAY = _Slot()


def is_array(value) -> bool:
    """Whether a value is an array of a call, not part of its structure."""
    return isinstance(value, jax.Array | np.ndarray)


def _is_value(value) -> bool:
    return is_array(value) or isinstance(value, numbers.Number)


def flatten(arguments, is_leaf=is_array):
    """The hashable structure of bound arguments, and their arrays in order, also those in lists."""
    leaves, structure = [], []
    for argument in arguments:
        if isinstance(argument, list | tuple):
            leaves.extend(item for item in argument if is_leaf(item))
            structure.append(tuple(ARRAY if is_leaf(item) else item for item in argument))
        elif is_leaf(argument):
            leaves.append(argument)
            structure.append(ARRAY)
        else:
            structure.append(argument)
    return tuple(structure), leaves


# Arguments whose integers are extents. Programs that differ in these alone have one pattern
# (core/templates.py); 0, 1 and negative numbers have meanings of their own.
EXTENTS = frozenset(
    (
        *("size", "sizes", "shape", "rows", "batch", "total_length", "length"),
        *("split_size", "split_sizes", "input_size", "input_sizes", "output_size"),
        *("normalized_shape", "N", "C", "HxW"),
    )
)
# stands for an integer of these in a structure
EXTENT = object()


def without_extents(structure, names) -> tuple[tuple, tuple[int, ...]]:
    """A structure with `EXTENT` in place of the extents among its arguments, and these."""
    extents = []

    def marked(part):
        if isinstance(part, tuple):
            is_whole = all(type(item) is int and item >= 0 for item in part)
            return tuple(map(marked, part)) if is_whole else part
        if type(part) is not int or part < 2:
            return part
        extents.append(part)
        return EXTENT

    pairs = zip(structure, names, strict=True)
    structure = tuple(marked(part) if name in EXTENTS else part for part, name in pairs)
    return structure, tuple(extents)


def with_extents(structure, extents) -> tuple:
    """The inverse of `without_extents`."""
    supply = iter(extents)

    def filled(part):
        if isinstance(part, tuple):
            return tuple(map(filled, part))
        return next(supply) if part is EXTENT else part

    return tuple(map(filled, structure))


def unflatten(structure, leaves):
    """The arguments of a structure with `leaves` as its arrays: the inverse of `flatten`."""
    supply = iter(leaves)
    return [
        tuple(next(supply) if item is ARRAY else item for item in part)
        if isinstance(part, tuple)
        else next(supply)
        if part is ARRAY
        else part
        for part in structure
    ]


CHECKS = "precondition", "postcondition"
MARKS = "returns_self", "crosses_devices", "undefined", "tells_missing"


def marks_of(function) -> dict:
    """The attributes by which a value function describes itself, as plain data."""
    marks = {name: getattr(function, name) for name in MARKS if hasattr(function, name)}
    checks = {name: getattr(function, name) for name in CHECKS if hasattr(function, name)}
    of_integers = {n: {"of_integers": hasattr(c, "of_integers")} for n, c in checks.items()}
    return marks | of_integers


class Primitive:
    """One overload of an operator on JAX values.

    `rule`: its entry in the table; `find_compute`: gives the value function; `scope`: the functions
    that its formulas may call, by name; `marks`: the marks of the value function where they are
    known without it.
    """

    def __init__(self, rule: table.Rule, find_compute, scope, marks=None):
        self.rule, self._find_compute, self.scope = rule, find_compute, scope
        self.marks = marks_of(self.compute) if marks is None else marks
        schema = rule.schema
        self.name = schema.name
        self.argument_names = tuple(argument.name for argument in schema.arguments)
        self.takes_tensor = tuple(argument.type.base == "Tensor" for argument in schema.arguments)
        self.positional = sum(not argument.keyword_only for argument in schema.arguments)
        self.keywords = self.argument_names[self.positional :]
        self.returns_self = self.marks.get("returns_self", False)
        # whether it copies tensors to the device of the first
        self.crosses_devices = self.marks.get("crosses_devices", False)
        # the error of a derivative that is infinite or NaN because it does not exist
        self.undefined = self.marks.get("undefined")
        self.tells_missing = self.marks.get("tells_missing", False)
        element_wise = table.Word("auto_element_wise") in rule.tangents.values()
        self.pointwise = element_wise or self.name in getattr(scope, "pointwise", ())
        # those that are in use, and those that were used last
        self.alive: weakref.WeakValueDictionary[tuple, Call] = weakref.WeakValueDictionary()
        self.calls = BoundedCache(kernels, lambda call: ENTRY)
        self.patterns = BoundedCache(kernels, lambda pattern: ENTRY)
        self.compiled: dict[table.Formula, Any] = {}

    @cached_property
    def compute(self):
        """The value function, whose module may be imported for it."""
        return self._find_compute()

    @cached_property
    def pack(self):
        """Makes the result of several: as in PyTorch, a named tuple where the schema names all."""
        names = tuple([result.name for result in self.rule.schema.returns])
        return result_tuple(self.name, names)._make if len(names) > 1 and all(names) else tuple

    def evaluate(self, arguments):
        """Call the value function with bound arguments, in the order of the schema."""
        keywords = dict(zip(self.keywords, arguments[self.positional :], strict=True))
        # names the operations in HLO; tracing alone pays for it
        with jax.named_scope(self.name):
            return self.compute(*arguments[: self.positional], **keywords)

    def __call__(self, arguments):
        if is_bare():
            return self.evaluate(arguments)
        arguments = [
            _strong(a) if k else a for a, k in zip(arguments, self.takes_tensor, strict=True)
        ]
        structure, arrays = flatten(arguments)
        # a call of a user's own trace has 64-bit types only if the user switched them on
        mode = aval.INLINE if jax.config.jax_enable_x64 else aval.INLINE32
        call = self.call(structure, tuple(_input_of(array, mode) for array in arrays))
        return call.result(call.function(*arrays))

    def evaluate_formula(self, formula: table.Formula, scope):
        """Evaluate a formula of this entry with the values in `scope`."""
        function = self.compiled.get(formula)
        names = tuple(sorted(formula.names))
        if function is None:
            function = self.compiled[formula] = formula.compile(names, self.scope)
        return function(*(scope[name] for name in names))

    def call(self, structure, inputs) -> Call:
        """The cached `Call` of this structure and these inputs."""
        # duals run the same call; tape/dual.py extends it by the tangents
        inputs = tuple(map(view_ops.plain, inputs))
        key = (*map(_typed, structure), *inputs)
        call = self.calls.get(key)
        if call is None:
            # a view or a node may hold it still, and there is never a second one
            alive_key = settings_in_force(), key
            call = self.alive.get(alive_key) or Call(self, structure, inputs)
            call = self.alive[alive_key] = self.calls.keep(key, call)
        return call

    def __repr__(self):
        return f"<primitive {self.rule.schema.full_name}>"


def _typed(part):
    """A part of a structure as a key in which different numbers differ."""
    if isinstance(part, tuple):
        return tuple(map(_typed, part))
    return part if part is ARRAY or part is None else exact(part)


def _strong(value):
    """An argument that takes tensors as an array without a weak type, such as JAX gives 1.0."""
    if isinstance(value, tuple):
        return tuple(map(_strong, value))
    if isinstance(value, numbers.Number):
        value = jnp.asarray(value)
    return (
        jax.lax.convert_element_type(value, value.dtype)
        if getattr(value, "weak_type", False)
        else value
    )


def _input_of(array, mode):
    return aval.scalar_type(array) or aval.make_aval(
        array.shape, aval.dtypes.from_numpy(array.dtype), mode
    )


class Call(Program):
    """A primitive, the structure of its arguments, and the abstract values of its arrays."""

    defers = True
    TRAITS = Program.TRAITS | {"several_seen": bool, "self_seen": bool, "missing_seen": tuple}

    def __init__(self, primitive: Primitive, structure, inputs):
        self.primitive, self.structure, self.inputs = primitive, structure, inputs
        self._refuse_float8()
        # set when the value function has run
        self.several_seen, self.self_seen, self.missing_seen = False, False, ()
        self.mode = aval.joint_mode(primitive.name, inputs, primitive.crosses_devices)
        if is_exported() and self.mode == aval.IMMEDIATE and has_symbolic(structure):
            self.mode = aval.mode_of_trace()  # sizes that vary have numbers in the trace alone
        self.name = table.camel_case(primitive.name)
        self.tangent_maps: dict[tuple, derivative_rules.TangentMap] = {}

    def _refuse_float8(self):
        """Raise NotImplementedError for numbers of 8 bits, unless the operator takes them."""
        dtypes = [operand.dtype for operand in self.inputs if isinstance(operand, aval.Aval)]
        float8 = [dtype for dtype in dtypes if dtype in aval.dtypes.FLOAT8]
        name, rule = self.primitive.name, self.primitive.rule
        if not float8 or "float8" in rule.tags or rule.is_view:
            return
        functools.reduce(promote_types, dtypes)  # raises for two dtypes
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{float8[0].scalar_type}': numbers of 8 bits are for "
            "storage; convert to another dtype first, as by .to(torch.bfloat16)"
        )

    @cached_property
    def compact(self) -> Call:
        """The same call on contiguous arrays, which computes for this one too."""
        inputs = tuple(map(view_ops.compact, self.inputs))
        return self if inputs == self.inputs else self.primitive.call(self.structure, inputs)

    @cached_property
    def pattern(self):
        if self.mode != aval.IMMEDIATE or self.compact is not self:
            return None
        primitive = self.primitive
        structure, extents = without_extents(self.structure, primitive.argument_names)
        text = functools.partial(template_store.text_of_call, primitive, structure)

        def remade(inputs, extents=()):
            return Call(primitive, with_extents(structure, extents), inputs)

        key = tuple(map(_typed, structure))
        patterns, inputs = primitive.patterns, self.inputs
        return templates.pattern_of(patterns, key, inputs, text, remade, extents)

    @cached_property
    def outputs(self) -> tuple[aval.Aval, ...]:
        outputs = self.abstract_outputs() if self.compact is self else self.compact.outputs
        return view_ops.arranged(self, outputs)

    @cached_property
    def single(self) -> bool:
        return len(self.outputs) == 1 and not self.several

    def gives_one(self, results):
        return len(results) == 1 and not self.several_seen

    @cached_property
    def several(self) -> bool:
        """Whether the value function returns a list or a tuple."""
        return self.compact.several_seen if self.outputs else True

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """The positions of the outputs that the value function leaves out, None in their places."""
        return self.compact.missing_seen if self.outputs else ()

    @cached_property
    def is_identity(self) -> bool:
        """Whether the result is the argument itself, which the value function returns."""
        return self.primitive.returns_self and bool(self.outputs) and self.compact.self_seen

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """The argument that each array belongs to, by name."""
        counts = (
            part.count(ARRAY) if isinstance(part, tuple) else int(part is ARRAY)
            for part in self.structure
        )
        names = self.primitive.argument_names
        return tuple(name for name, count in zip(names, counts, strict=True) for _ in range(count))

    @cached_property
    def tracked(self) -> tuple[bool, ...]:
        """For each input whether it can have a gradient."""
        constant = self.primitive.rule.non_differentiable
        return tuple(
            isinstance(array, aval.Aval) and array.differentiable and owner not in constant
            for array, owner in zip(self.inputs, self.owners, strict=True)
        )

    @cached_property
    def differentiable_outputs(self) -> tuple[int, ...]:
        flags = self.primitive.rule.output_differentiability
        outputs = enumerate(self.outputs)
        # the flag of a list of tensors holds for each of them
        return tuple(
            i for i, output in outputs if output.differentiable and flags[min(i, len(flags) - 1)]
        )

    @cached_property
    def slots(self) -> tuple[int | None, ...]:
        """The position of the array for each differentiable argument, None without an array.

        A number in the place of another overload's tensor counts too if both overloads have one
        node: PyTorch converts it to a tensor.
        """
        rule, slots, position = self.primitive.rule, [], 0
        overloads = [p.rule for p in self.primitive.scope[rule.schema.name].primitives]
        names = {name for r in overloads if r.node == rule.node for name in r.differentiable_inputs}
        for name, part in zip(self.primitive.argument_names, self.structure, strict=True):
            for item in part if isinstance(part, tuple) else (part,):
                is_array = item is ARRAY
                if name in names:
                    tensor = is_array and isinstance(self.inputs[position], aval.Aval)
                    slots.append(position if tensor else None)
                position += is_array
        return tuple(slots)

    def arguments(self, leaves):
        """The bound arguments with `leaves` as arrays."""
        return unflatten(self.structure, leaves)

    def is_list(self, argument: str) -> bool:
        """Whether an argument is a list of tensors."""
        return isinstance(self.structure[self.primitive.argument_names.index(argument)], tuple)

    def plain(self, *arrays) -> tuple:
        """The outputs of the value function as a tuple of arrays without weak types."""
        # the value function's lists and tuples become the operator's several results
        results = self.primitive.evaluate(self.arguments(arrays))
        self.several_seen = isinstance(results, list | tuple)
        self.self_seen = bool(arrays) and results is arrays[0]
        results = results if self.several_seen else (results,)
        if self.several_seen:
            self.missing_seen = tuple(i for i, result in enumerate(results) if result is None)
        if self.missing_seen:
            # an empty array stands for None, so that every output has a position
            left_out = jnp.zeros(0, jnp.float32)
            results = [left_out if result is None else result for result in results]
        results = [jax.lax.convert_element_type(r, r.dtype) for r in map(jnp.asarray, results)]
        if jax.sharding.get_abstract_mesh().manual_axes:
            # also a constant, such as zeros, varies over the devices where its tangent does
            results = device_axes.alike([*results, *arrays])[: len(results)]
        return tuple(results)

    def value(self, *arrays):
        with bare():
            return self.plain(*arrays)

    @cached_property
    def function(self):
        """`plain` with derivative rules, for JAX to differentiate."""
        function = jax.custom_jvp(renamed(self.plain, self.primitive.name))
        # symbolic zeros, so that no formula runs for an input that is constant
        function.defjvp(self.jvp, symbolic_zeros=True)
        return function

    def jvp(self, primals, tangents):
        """The rule that JAX calls: outputs, and their tangents by one linear map of the nonzero
        input tangents.
        """
        # `function`, not `plain`: at the next order the outputs need their rules too
        outputs = self.function(*primals)
        mask = tuple(
            tracked and not isinstance(tangent, jax.custom_derivatives.SymbolicZero)
            for tracked, tangent in zip(self.tracked, tangents, strict=True)
        )
        output_tangents = [
            jax.custom_derivatives.SymbolicZero(jax.typeof(output).to_tangent_aval())
            for output in outputs
        ]
        if any(mask):
            moving = [tangent for tangent, flag in zip(tangents, mask, strict=True) if flag]
            results = tangent_map.apply_tangent_map(
                self.tangent_map(mask), primals, outputs, moving
            )
            for position, tangent in zip(self.differentiable_outputs, results, strict=True):
                output_tangents[position] = tangent
        return outputs, tuple(output_tangents)

    def tangent_map(self, mask) -> derivative_rules.TangentMap:
        """The derivative as a linear map of the tangents of the inputs in `mask`."""
        linear_map = self.tangent_maps.get(mask)
        if linear_map is None:
            linear_map = self.tangent_maps.setdefault(mask, derivative_rules.TangentMap(self, mask))
        return linear_map

    @cached_property
    def writable(self) -> bool:
        """For a view: whether values can be written through it."""
        return view_ops.is_writable(self)

    @cached_property
    def reverses(self):
        # strides do not change a gradient
        return {} if self.compact is self else self.compact.reverses

    def make_reverse(self, mask):
        return derivative_rules.CallReverse(self.compact, mask)

    @property
    def undefined_derivative(self):
        return self.primitive.undefined

    @property
    def precondition(self):
        marks = self.primitive.marks
        if "precondition" not in marks:
            return None
        # floats have values for what is refused in integers, as a division by 0
        if marks["precondition"]["of_integers"] and self.outputs[0].differentiable:
            return None
        check = self.primitive.compute.precondition
        return lambda *arrays: check(*self.arguments(arrays))

    @property
    def postcondition(self):
        if "postcondition" not in self.primitive.marks:
            return None
        check = self.primitive.compute.postcondition
        return lambda results, *arrays: check(results, *self.arguments(arrays))

    def result(self, outputs):
        """The outputs as the operator returns them: an array, a tuple or a named tuple."""
        if not self.several:
            return outputs[0]
        if self.missing:
            pairs = enumerate(outputs)
            outputs = [None if i in self.missing else output for i, output in pairs]
        return self.primitive.pack(outputs)


def refuse_numbers_in_lists(schema, bound):
    """Raise TypeError for a number in a list of tensors: only one by itself may stand for one."""
    for place, (argument, value) in enumerate(zip(schema.arguments, bound, strict=True)):
        elements = value if argument.type.tensor and argument.type.list else ()
        for number, element in enumerate(elements):
            if not is_array(element):
                raise TypeError(
                    f"{schema.name}(): expected Tensor as element {number} in argument {place}, "
                    f"but got {type(element).__name__}: make one by torch.tensor"
                )


class Overloads:
    """An operator on JAX values: calls the first of its primitives whose schema fits the arguments.

    `make()` returns the primitives; the first call of the operator calls it.
    """

    def __init__(self, name: str, make):
        self.name, self._make = name, make

    @cached_property
    def primitives(self) -> list[Primitive]:
        return self._make()

    @cached_property
    def tags(self) -> frozenset[str]:
        """What the table says of the operator; see the head of derivatives.yaml."""
        return self.primitives[0].rule.tags

    @cached_property
    def signatures(self) -> list[overloads.Signature]:
        return [overloads.Signature(primitive.rule.schema) for primitive in self.primitives]

    def __call__(self, *args, **kwargs):
        try:
            position, bound = self.resolved(args, kwargs)
            return self.primitives[position](bound)
        except Exception as error:
            hide_frames(error)
            raise

    def resolved(self, args, kwargs):
        """The position of the overload that fits, and the arguments bound to its schema."""
        try:
            return overloads.resolve(self.name, self.signatures, args, kwargs, is_array)
        except TypeError:
            # as in JAX, a number may be passed for an array where no schema has a Scalar
            position, bound = overloads.resolve(self.name, self.signatures, args, kwargs, _is_value)
            refuse_numbers_in_lists(self.primitives[position].rule.schema, bound)
            return position, bound

    def __repr__(self):
        return f"<operator {self.name} on JAX values>"


class Operators:
    """The operators of the shipped table as attributes, for rules: `op.sum(grad, dim)`."""

    def install(self, find):
        """Find operators by `find(name)`; each becomes an attribute at its first use."""
        self._find = find

    def __getattr__(self, name):
        operator = self._find(name)
        setattr(self, name, operator)
        return operator


# rules import it, and lie below ops/, which installs the operators once it has the table
op = Operators()
