"""Batched programs: a function is traced for one example, and `jax.vmap` maps its program.

The forward and the backward program are mapped separately: residuals are saved for all examples,
and the gradient of a shared tensor is summed over them.
"""

from __future__ import annotations

import itertools
import math
import weakref
from contextlib import contextmanager

import jax
import jax.numpy as jnp

from .. import ops
from ..autograd.grad_mode import set_grad_enabled
from ..cached import cached_property
from ..capture.captured import CapturedTensor, HeldSource, TensorInput, outside_aval
from ..capture.dependence import depends_on
from ..capture.graph_input import (
    ArgumentInput,
    ArgumentSource,
    ExampleNumber,
    GraphInput,
    scopes_around,
)
from ..capture.guards import SeparateMemory
from ..capture.outputs import OutputSpec
from ..capture.replay import new_arrays, replay
from ..capture.scope import CaptureScope
from ..capture.side_effects import UNCHANGED, OutputTensor, TensorEffect
from ..capture.trace import Trace
from ..capture.tracing import Tracing
from ..compiled.executable import Executable
from ..compiled.partition import depending
from ..core import executor
from ..core.aval import (
    INLINE32,
    META,
    Aval,
    joint_mode,
    make_aval,
    mode_of,
    strides_of,
    traced_aval,
    tracing,
    types_of_trace,
    with_dual,
    with_shape,
    with_strides,
)
from ..core.program import Program, bare, is_bare
from ..core.strides import is_dense
from ..draws.seed_effects import RunningEffect, SeedEffect
from ..frontend.batched_samples import samples_of_example
from ..frontend.printing.wrapped import Batch, Wrapper
from ..storage.alias import known_offset_of, offset_of_argument, snapshot
from ..storage.inplace_check import permit, share_elements
from ..storage.sole_owner import is_shared
from ..tape import mode, pytree
from ..tape.mode import is_grad_enabled
from ..tape.node import Node, next_sequence_number
from ..tape.record import apply
from ..tape.tensor import (
    Tensor,
    abstract_value,
    current,
    has_tangent,
    held,
    hold,
    is_traced,
    is_tracked,
    node_or_mark,
    set_abstract_value,
    wrap,
)
from ..tape.version_counter import counter_of
from .arguments import shown_as
from .batched_view import Batched, view_of

# PyTorch's messages for operations that need the values of an example
_SHAPES = "vmap: We do not support batching operators that can output dynamic shape. "
HINTS = {
    "item()": "vmap: It looks like you're calling .item() on a Tensor. ",
    "bool()": "vmap: It looks like you're attempting to use a Tensor in some "
    "data-dependent control flow. ",
} | dict.fromkeys(
    (
        "nonzero()",
        "masked_select()",
        "indexing with a boolean mask",
        "unique()",
        "unique_consecutive()",
    ),
    _SHAPES,
)

# operators whose numbers decide the shape of their results, and which PyTorch calls example by
# example: the results of all examples must have one shape
LOOPED = frozenset(("argwhere()", "bincount()", "repeat_interleave() without output_size"))


# the kinds of results that the program computes
ARRAYS = ("created", "array")

SHARED = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor "
    "`other` in extra_args that has more elements than `self`: all examples of {} share the tensor "
    "of shape {} that each writes its own values to. Return the value, or map along a dimension of "
    "the tensor"
)
SAME_OF_BATCHED = (
    "Vmap does not currently support same randomness with a batched tensor input: the parameters "
    "of the distribution differ from example to example. Use randomness='different'"
)
DIFFERENT_IN_PLACE = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear "
    "like same randomness, since the examples share the tensor: write to a tensor that is made "
    "inside, or map along a dimension of this one"
)
DEPENDS = (
    "vmap({0}, ...): `{0}` can not return a BatchedTensor when out_dim is None: a result that "
    "depends on the example has one value for each example"
)
LEFT_BEHIND = "vmap: {} leaves behind a tensor of one example: return it instead"


class ExampleNode(Node):
    """Stands for the history of an argument, behind one example: a function may write to it."""

    __slots__ = ("aval", "extras", "sequence")

    edges = ()
    output_count = 1

    def __init__(self, aval):
        self.aval, self.extras, self.sequence = aval, None, next_sequence_number()

    def name(self) -> str:
        return "ExampleBackward0"

    def outputs(self):
        return (self.aval,)

    def run(self, _graph_task, _gradients):
        raise RuntimeError(
            "vmap: a backward pass inside of the function continues into the history of its "
            "argument: give autograd.grad the inputs to stop at"
        )


class ExampleScope(CaptureScope):
    """The capture scope of one example.

    randomness: that of `vmap`. example: the number of the example, if randomness is "different".
    printed: gets an element for each tensor that is printed.
    """

    is_inner = True
    hints, looped = HINTS, LOOPED
    level = None  # of forward mode
    may_seed, randomness = True, "error"

    def __init__(self, name, randomness, examples: Examples, printed):
        super().__init__(name)
        self.randomness, self.example, self.printed = randomness, None, printed
        self.mapped, self.size = examples, examples.size
        # by the tracer of one example: the argument, its mapped dimension, the abstract value that
        # the example shows, and the strides of the argument
        self.batches = {}

    @contextmanager
    def open(self):
        with super().open(), mode.transform(self):
            yield

    def wrapper(self, value):
        """How a tensor prints inside of the `vmap`; None for one that holds no tracer."""
        self.printed.append(True)
        if isinstance(value, Batch):
            return Wrapper("BatchedTensor", Batch((self.size, *value.shape), value.example), 0)
        whole, dim = self.batch_of(value)
        if whole is not None:
            return Wrapper("BatchedTensor", whole, dim)
        if id(value) in self.captured:
            return Wrapper(None, self.captured[id(value)].snapshot.copy())
        if self.is_outside(value):
            return Wrapper(None, snapshot(value))  # to read it would capture it
        if not is_traced(value):
            return None
        return Wrapper("BatchedTensor", Batch((self.size, *value.shape), value), 0)

    def batch_of(self, value: Tensor):
        """The argument and its mapped dimension, for a tensor that is an example of one; else None
        and 0.
        """
        reference, dim, *_ = self.batches.get(id(held(value)), (None, 0))
        return (None if reference is None else reference()), dim

    def show(self, value: Tensor) -> Tensor | None:
        """All examples of an argument, for code that shows them; None for another tensor."""
        whole, _ = self.batch_of(value)
        if whole is None:
            return None
        self.printed.append(True)
        with self.outer_trace():
            return wrap(whole._array, abstract_value(whole))

    def capture_slice(self, tensor: Tensor, source: ArgumentSource, dim: int) -> Tensor:
        """Capture one example of an argument, with a guard on the whole batched argument."""
        aval = example_aval(abstract_value(tensor), dim)
        node = ExampleNode(aval) if isinstance(node_or_mark(tensor), Node) else None
        example = shown_as(tensor, wrap(None, aval, is_tracked(tensor), node))
        captured = CapturedTensor(example, source, len(self.captured))
        with self.outer_trace():
            captured.expect(tensor)
        self.captured[id(example)] = captured
        struct = jax.ShapeDtypeStruct(aval.shape, aval.dtype.numpy)
        captured.tracer = self.add_input(struct, TensorInput(captured))
        hold(example, captured.tracer, traced_aval(abstract_value(example), captured.tracer))
        steps = strides_of(abstract_value(tensor))
        self.batches[id(captured.tracer)] = weakref.ref(tensor), dim, outside_aval(example), steps
        return example

    @property
    def examples(self):
        here = [(self.size, self.example)] if self.randomness == "different" else []
        return [*super().examples, *here]

    def check_draw(self, parameters, target=None):
        is_of_batched = any(map(self.is_batched, parameters))
        if self.randomness == "same" and is_of_batched:
            raise RuntimeError(SAME_OF_BATCHED)
        if self.randomness == "different" and target is not None and self.is_shared(target):
            refusal = SHARED.format(self.name, list(target.shape))
            raise RuntimeError(refusal if is_of_batched else DIFFERENT_IN_PLACE)
        super().check_draw(parameters, None if target is None else self.outer_tensor(target))

    def refuses_write(self, target, values):
        if self.is_shared(target) and any(map(self.is_batched, values)):
            return True
        outer = self.outer_tensor(target)
        return outer is not None and super().refuses_write(outer, values)

    def whole_of(self, captured: CapturedTensor) -> Tensor:
        """The captured tensor, or the argument that it is an example of."""
        reference, *_ = self.batches.get(id(captured.tracer), (None,))
        return captured.tensor if reference is None else reference()

    def steps_of_draw(self, tensor, strides):
        captured = self.captured.get(id(tensor))
        if captured is None or self.mapped.dim_of(captured) is None:
            return strides
        if self.randomness == "same":
            return None  # the numbers of one example, which all get
        reference, dim, _, steps = self.batches[id(captured.tracer)]
        around = super().steps_of_draw(reference(), ())
        return None if around is None else (*around, steps[dim], *strides)

    def offset_outside(self, tensor: Tensor) -> int:
        captured = self.captured.get(id(tensor))
        if captured is None or self.mapped.dim_of(captured) is None:
            return super().offset_outside(tensor)
        whole = self.batches[id(captured.tracer)][0]()
        self.objects.guard(whole, known_offset_of)
        self.objects.guard(whole, offset_of_argument)
        with self.outer_trace():
            return whole.storage_offset()

    def outer_tensor(self, tensor: Tensor) -> Tensor | None:
        """The tensor in the trace around that a write would change; None for one from inside."""
        captured = self.captured.get(id(tensor))
        if captured is not None and self.mapped.dim_of(captured) is not None:
            return self.batches[id(captured.tracer)][0]()
        return tensor if self.is_outside(tensor) else None

    def is_batched(self, tensor: Tensor) -> bool:
        """Whether the numbers of a tensor depend on the example."""
        scopes = [*scopes_around(mode.scope.get())]
        return depends_on(tensor._array, self.is_mapped, scopes)

    def is_mapped(self, scope, source: GraphInput) -> bool:
        """Whether an input of this scope, or of another one, differs from example to example."""
        return scope is self and self.mapped.axis(source) is not None

    def is_shared(self, tensor: Tensor) -> bool:
        """Whether a tensor is from outside, and one for all examples."""
        captured = self.captured.get(id(tensor))
        is_mapped = captured is not None and self.mapped.dim_of(captured) is not None
        return self.is_outside(tensor) and not is_mapped

    def samples_in_turn(self, generator, name, sampler, parameters):
        self._check_randomness()
        numbers = [number for _, number in self.examples]
        state = self.running_state(generator)
        samples, state = samples_of_example(sampler, state, numbers, parameters)
        self.seeded.run_on(generator, state)
        return samples

    def running_state(self, generator):
        """The state of a generator as a value of the program, taken over from the trace around."""
        if not self.draws_outside or self.seeded.is_running(generator):
            return self.seeded.running_state(generator)
        with self.outer_trace():
            parent = self.parent
            is_mapped = isinstance(parent, ExampleScope)
            return (parent if is_mapped else parent.seeded).running_state(generator)

    def _check_randomness(self):
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use "
                "the 'same' or 'different' randomness flags on vmap or perform the randomness "
                "operation out of vmap"
            )

    def draw(self, generator, request):
        self._check_randomness()
        if not self.draws_outside or self.seeded.is_running(generator):
            return super().draw(generator, request)
        with self.outer_trace():
            return self.parent.draw(generator, request)

    @property
    def draws_outside(self):
        return self.parent is not None


class ExampleOutput(OutputSpec):
    """The outputs of one example. By `batch` they become those of all examples.

    `moved`: puts the mapped dimensions of results where `out_dims` says; `created_dims`,
    `captured_dims`, `root_dims`: by number where these dimensions are, None for a captured tensor
    that the examples share.
    """

    shares_memory = False
    views = ()  # the results that are views of captured tensors

    def result(self, value):
        if not isinstance(value, Tensor) or self.scope.is_outside(value):
            return super().result(value)
        number = self.add_created(value)
        # a replay computes values alone
        view = view_of(self.scope, number, value) if isinstance(self.scope, ExampleScope) else None
        if view is not None:
            self.views = *self.views, view
        return "created", number

    def batch(self, examples: Examples, moved, is_in_front):
        """Turn the outputs of one example into those of all.

        is_in_front: whether the mapped dimensions of all results stay in front.
        """
        self.size, self.moved, self.is_in_front = examples.size, moved, is_in_front
        self.captured_dims = list(map(examples.dim_of, self.scope.captured.values()))
        self.created_dims = [0] * len(self.created)
        batched_aval = examples.batched_aval
        for value in self.created:
            # also of one that no example changes, such as `zeros_like(x)`: users write to it
            value.aval = batched_aval(value.aval, 0)
        self.root_dims = [0] * len(self.roots)
        self.roots = [(edge, batched_aval(aval, 0), array) for edge, aval, array in self.roots]

    def batch_written(self, value: OutputTensor, dim: int, aval: Aval):
        """Let the value of a written argument have its mapped dimension where the argument has it.

        aval: the abstract value of all examples.
        """
        value.aval = aval
        if value.root is not None:
            edge, _, array = self.roots[value.root]
            self.root_dims[value.root], self.roots[value.root] = dim, (edge, aval, array)

    @cached_property
    def is_in_place(self) -> bool:
        """Whether the mapped dimensions of all results are where they have to be."""
        is_captured = any(kind == "captured" for kind, _ in self.results)
        return self.is_in_front and not (self.views or is_captured)

    @cached_property
    def only(self):
        return super().only if self.is_in_place else None

    def result_of(self, run):
        if self.is_in_place:
            return super().result_of(run)
        for number in self.retaining:
            run.created[number].retain_grad()
        return self.results_of(run.created, self.created_dims, run.tensors, run.value)

    def results_of(self, created, dims, captured, value_of):
        """The results of a call, from its tensors.

        dims: the mapped dimensions of the created ones. value_of: gives a result of another kind.
        """
        size = self.size
        batches = [Batched(tensor, dim, size) for tensor, dim in zip(created, dims, strict=True)]
        for view in self.views:
            batches[view.number] = view.of(captured[view.source], batches[view.number])
        pairs = zip(captured, self.captured_dims, strict=False)
        kinds = {"created": batches, "captured": [Batched(t, dim, size) for t, dim in pairs]}
        leaves = [
            kinds[kind][value] if kind in kinds else value_of((kind, value))
            for kind, value in self.results
        ]
        return self.moved(jax.tree.unflatten(self.structure, leaves))


class BatchedCall(Program):
    """A call of a batched program that JAX differentiates as a whole: it has the tensors that the
    function creates, followed by the new values of those that it writes to.
    """

    def __init__(self, batched, inputs):
        self.batched, self.name, self.inputs = batched, batched.name, tuple(inputs)
        self.mode = joint_mode(self.name, inputs)

    def function(self, *arrays):
        output, examples = self.batched.output, self.batched.examples
        written = [effect.value.output for effect in output.tensor_effects.effects]
        run = jax.vmap(
            lambda *one: new_arrays(self.batched.trace, one),
            in_axes=tuple(self.batched.axes[: len(arrays)]),
            out_axes=(*[0] * len(output.created), *map(examples.written_axes.get, written)),
            axis_size=examples.size,
        )
        return run(*arrays)


def joined(arrays, dims) -> list:
    """Gradients from those of the examples, which are summed where the examples share a tensor.

    dims: the mapped dimension of each, None if it is shared.
    """
    return [
        array.sum(0) if dim is None else jnp.moveaxis(array, 0, dim)
        for array, dim in zip(arrays, dims, strict=True)
    ]


def example_aval(aval: Aval, dim: int) -> Aval:
    """The abstract value of one example: that of a tensor without its mapped dimension."""
    shape, strides = ((*of[:dim], *of[dim + 1 :]) for of in (aval.shape, strides_of(aval)))
    return make_aval(shape, aval.dtype, aval.mode, strides)


def size_of(leaves, dims) -> int:
    """The number of examples."""
    return next(leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None)


class Examples:
    """The examples that a function is mapped over. `size`: their number; `dims`: the mapped
    dimension of each argument, or None; `written_axes`: by the number of an output that a captured
    tensor is set to its mapped dimension.
    """

    def __init__(self, leaves, dims):
        self.size, self.dims = size_of(leaves, dims), dims
        self.written_axes: dict[int, int] = {}

    def dim_of(self, captured):
        """The mapped dimension of a captured tensor, None for a shared one."""
        return None if captured.position is None else self.dims[captured.position]

    def axis(self, source: GraphInput):
        """The mapped dimension of an input, None for a shared one."""
        if source.captured is not None:
            return self.dim_of(source.captured)
        if isinstance(source, ExampleNumber):
            return 0
        return self.dims[source.position] if isinstance(source, ArgumentInput) else None

    def batched_aval(self, aval, dim):
        shape, strides = tuple(aval.shape), strides_of(aval)
        whole = with_shape(aval, (*shape[:dim], self.size, *shape[dim:]))
        # the examples lie one behind the other, if there are no places between their elements
        is_compact = dim == 0 and is_dense(shape, strides)
        return with_strides(whole, (math.prod(shape), *strides)) if is_compact else whole


class BatchedProgram(Executable):
    """The program of a mapped function. `axes`, `output_axes`: the mapped dimensions of its inputs
    and outputs; `uncompiled`: the program itself.
    """

    runs_jaxpr = False

    def __init__(self, tracing, trace, tensors, leaves):
        self.examples = tracing.examples
        super().__init__(tracing, trace, tensors, leaves)

    def forward(self, run, order):
        self.refuse_escaped()
        self.axes = [*map(self.examples.axis, order), *[None] * len(self.trace.constants)]
        axes = [self.examples.written_axes.get(number, 0) for number in range(self.output.count)]
        if self.trace.pullback is not None:
            pairs = zip(self.partition.inputs, self.axes, strict=True)
            variables = [variable for variable, axis in pairs if axis is not None]
            mapped = depending(self.partition.equations, variables)
            rest = self.partition.outputs[self.output.count :]
            axes += [0 if variable in mapped else None for variable in rest]
        self.output_axes = axes
        size = self.examples.size
        mapped_run = jax.vmap(run, in_axes=tuple(self.axes), out_axes=axes, axis_size=size)
        constants, unbatched = self.trace.constants, self.unbatched_outputs()

        def program(*arrays):
            if unbatched:
                self.check_unbatched(run, unbatched, [*arrays, *constants])
            return mapped_run(*arrays, *constants)

        self.uncompiled = program
        return program

    def unbatched_outputs(self) -> list[int]:
        """The numbers of the outputs for which `out_dims` is None."""
        numbers = jax.tree.unflatten(self.output.structure, range(len(self.output.results)))
        dims = self.trace.function.out_dims_of(numbers)
        pairs = zip(self.output.results, dims, strict=True)
        chosen = [result for result, dim in pairs if dim is None]
        captured_dims = self.output.captured_dims
        if any(kind == "captured" and captured_dims[n] is not None for kind, n in chosen):
            raise ValueError(DEPENDS.format(self.name))
        created = self.output.created
        chosen = [result for result in chosen if result[0] in ARRAYS]
        return [created[value].output if kind == "created" else value for kind, value in chosen]

    def check_unbatched(self, run, unbatched, arrays):
        """Raise ValueError if an output with `out_dims` None depends on the example."""

        def chosen(*one):
            outputs = run(*one)
            return [outputs[number] for number in unbatched]

        size = self.examples.size
        every = jax.vmap(chosen, in_axes=tuple(self.axes), out_axes=None, axis_size=size)
        try:
            jax.eval_shape(every, *arrays)
        except ValueError:
            raise ValueError(DEPENDS.format(self.name)) from None

    def refuse_escaped(self):
        if self.escaped_tensors:
            raise RuntimeError(LEFT_BEHIND.format(self.name))

    def backward(self, group, run, cotangents, residuals, reads):
        axes = [self.output.root_dims[number] for number in cotangents]
        for is_output, number in reads:
            axes.append(self.output_axes[number] if is_output else self.axes[number])
        run = jax.vmap(run, in_axes=tuple(axes), axis_size=self.examples.size)
        dims = [self.examples.dim_of(self.trace.captured[number]) for number in group.reached]
        return joined(run(*cotangents.values(), *residuals), dims)

    def replayed(self, inputs, passes=()):
        count, present_cotangents, axes = len(inputs), [], []
        # the mapped dimensions of what a pass differentiates, and of its cotangents
        dims, dims_of_cotangents = list(self.axes[:count]), self.output.root_dims
        for cotangents, wanted in passes:
            pairs = zip(cotangents, dims_of_cotangents, strict=True)
            present = [pair for pair in pairs if pair[0] is not None]
            present_cotangents += [cotangent for cotangent, _ in present]
            axes += [dim for _, dim in present]
            dims_of_cotangents = [dims[number] for number in wanted]
            dims = [*[dim for _, dim in present], *dims]

        def replay_example(*arrays):
            supply = iter(arrays[count:])
            traced = [
                ([None if c is None else next(supply) for c in cotangents], wanted)
                for cotangents, wanted in passes
            ]
            return replay(self.trace, arrays[:count], traced)

        axes, size = (*self.axes[:count], *axes), self.examples.size
        # the gradients of shared tensors are summed by `joined`
        out_axes = 0 if passes else tuple(self.output.root_dims)
        run = jax.vmap(replay_example, in_axes=axes, out_axes=out_axes, axis_size=size)
        results = run(*inputs, *present_cotangents)
        return tuple(joined(results, dims_of_cotangents)) if passes else results

    def inputs_of(self, leaves, tensors):
        # of tensors with tangents, JAX differentiates the whole call
        return None if any(map(has_tangent, tensors)) else super().inputs_of(leaves, tensors)

    def __call__(self, leaves, tensors, inputs):
        if inputs is None:
            return self.run_with_tangents(leaves, tensors)
        return super().__call__(leaves, tensors, inputs)

    def change(self, leaves, tensors):
        if any(map(has_tangent, tensors)):
            return self.run_with_tangents(leaves, tensors)
        self.permit_writes(tensors)
        return super().change(leaves, tensors)

    def permit_writes(self, tensors):
        """Raise RuntimeError if an argument that the function writes to may not be written to: the
        examples do not show what it is a view of.
        """
        for effect in self.output.effects:
            if isinstance(effect, TensorEffect) and effect.value is not None:
                permit(self.name, tensors[effect.number], effect.value.root is not None)

    def run_with_tangents(self, leaves, tensors):
        """Run on tensors with tangents: JAX differentiates the whole call."""
        self.refuse_effects()
        self.permit_writes(tensors)
        with jax.enable_x64(True):  # the state of a generator has 64 bits
            others = [wrap(jnp.asarray(source.array(leaves))) for source in self.trace.other_inputs]
        inputs = [*tensors, *others]
        program = BatchedCall(
            self, [with_dual(abstract_value(current(tensor)), False) for tensor in inputs]
        )
        results = apply(executor.prepare(program), inputs)
        results = [results] if program.single else list(results)
        created, written = results[: len(self.output.created)], results[len(self.output.created) :]
        for tensor, value in zip(created, self.output.created, strict=True):
            tensor.__class__ = value.kind
        for effect, value in zip(self.output.tensor_effects.effects, written, strict=True):
            write(tensors[effect.number], value, effect)
        dims = [0] * len(created)
        return self.output.results_of(created, dims, tensors, lambda result: result[1])

    def refuse_effects(self):
        """Raise RuntimeError if the function changes more than the values of tensors."""
        for effect in self.output.effects:
            is_write = isinstance(effect, TensorEffect) and effect.value is not None
            if not is_write or effect.place is not None or effect.grad is not UNCHANGED:
                raise RuntimeError(
                    f"vmap: {self.name} sets a seed, or changes an object or more of an argument "
                    "than its elements, and gets a tensor with a forward-mode tangent: do that "
                    "outside of the vmap"
                )

    def run_inline(self, leaves, tensors):
        """Run as part of the open trace."""
        if any(map(has_tangent, tensors)):
            return self.run_with_tangents(leaves, tensors)
        self.permit_writes(tensors)
        inputs = [tensor._array for tensor in tensors]
        inputs += [source.array(leaves) for source in self.trace.other_inputs]
        with types_of_trace():
            arrays = self.uncompiled(*inputs)
        nodes = ()
        if self.trace.pullback is not None:
            recorded = self.recorded or self.record(inputs, arrays)
            nodes = recorded.nodes(tensors, inputs, arrays)
        run = self.output.run(arrays, tensors, nodes)
        for tensor in run.created:
            set_abstract_value(tensor, traced_aval(abstract_value(tensor), held(tensor)))
        self.output.apply(run)
        return self.output.result_of(run)


def write(target: Tensor, value: Tensor, effect: TensorEffect):
    """Write the value that a function gives a tensor, with its tangents; and with its history, if
    the function has recorded the write.
    """
    is_recorded = effect.value.root is not None and is_grad_enabled()
    with set_grad_enabled(is_recorded):
        ops.copy_(target, value)
    counter_of(target).value += effect.writes - 1  # `copy_` counts one


class ApartInMemory(SeparateMemory):
    """The arguments that are written to show no element that another captured tensor shows, and
    those in `alone` share their memory with no tensor at all.
    """

    def check(self, leaves, tensors):
        return self.is_separate(tensors)

    def is_separate(self, tensors):
        pairs = itertools.product(self.written, range(len(tensors)))
        is_apart = all(a == b or not share_elements(tensors[a], tensors[b]) for a, b in pairs)
        return is_apart and not any(is_shared(tensors[number]) for number in self.alone)


class BatchedTracing(Tracing):
    """The trace of a mapped function, for one example. is_inline: whether it is part of an open
    trace. `printed`: has an element for each tensor that the function printed.
    """

    is_inner, output_class, executable_class = True, ExampleOutput, BatchedProgram
    sees_containers = False

    def __init__(self, mapped, leaves, structure, is_inline=False):
        self.examples, self.printed = Examples(leaves, mapped.dims), []
        arrays = [held(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self.is_narrow = any(
            isinstance(array, jax.Array) and mode_of(array) == INLINE32 for array in arrays
        )
        self.is_inline, self.is_bare = is_inline, not is_inline or is_bare()
        super().__init__(mapped, leaves, structure)

    def new_scope(self):
        return ExampleScope(self.name, self.jitted.randomness, self.examples, self.printed)

    def wide(self):
        return tracing(not self.is_narrow)

    def rules(self):
        return bare() if self.is_bare else jax.named_scope(self.name)

    def traced_leaves(self, leaves):
        scope, inputs, positions = self.scope, [], self.arguments.positions
        examples = {}
        if scope.randomness == "different":
            number = ExampleNumber(self.examples.size)
            scope.example = scope.add_input(jax.ShapeDtypeStruct((), jnp.int32), number)
        for position, (whole, dim) in enumerate(zip(leaves, self.examples.dims, strict=True)):
            source, leaf = self.source_of(position), whole
            if isinstance(leaf, Tensor) and dim is not None:
                # one example of a tensor that is given twice: a write to it shows in both
                leaf = examples.get((id(whole), dim))
                leaf = scope.capture_slice(whole, source, dim) if leaf is None else leaf
                number = scope.captured[id(leaf)].number
                examples[id(whole), dim] = leaf
                positions.setdefault(number, []).append(position)
            elif isinstance(leaf, Tensor):
                number = scope.capture(leaf, source).number
                positions.setdefault(number, []).append(position)
            elif isinstance(leaf, jax.Array):
                shape = leaf.shape if dim is None else leaf.shape[:dim] + leaf.shape[dim + 1 :]
                struct = jax.ShapeDtypeStruct(shape, leaf.dtype)
                leaf = scope.add_input(struct, ArgumentInput(position))
            inputs.append(leaf)
        return inputs

    def source_of(self, position):
        # code may look at the numbers of an argument that all examples share
        is_shared = self.examples.dims[position] is None
        return HeldSource(position) if is_shared else super().source_of(position)

    def take_captured(self):
        super().take_captured()
        if any(captured.aval.mode == META for captured in self.captured):
            raise RuntimeError(
                f"vmap: Expected all tensors to be on the same device, but {self.name} maps "
                "tensors with data, and reads one on meta"
            )

    def output_of(self, held):
        self.jitted.check_results(held[0])
        output, captured = super().output_of(held), list(self.scope.captured.values())
        output.batch(self.examples, self.jitted.moved, self.jitted.is_in_front)
        for effect in output.effects:
            self.batch_effect(captured[effect.number], effect, output)
        self.refuse_overlaps(captured, output)
        return output

    def refuse_overlaps(self, captured, output):
        """Raise RuntimeError if the function writes to an argument whose memory it also reads by
        another tensor, which would show the old values.
        """
        written = [effect.number for effect in output.effects if effect.value is not None]
        if not written:
            return
        moved = [] if output.separate is None else output.separate.alone
        output.separate = ApartInMemory(written, moved)
        if not output.separate.is_separate([self.scope.whole_of(one) for one in captured]):
            raise RuntimeError(
                f"vmap: {self.name} writes to an argument that shares its memory with another "
                "tensor that it reads: give it a clone() of one"
            )

    def attribute_effects(self):
        # the enclosing program has these side effects itself
        return [] if self.is_inline else super().attribute_effects()

    def add_effects(self, changes):
        super().add_effects(changes)
        bound = [value for change in changes for value in change.bound.values()]
        leaves = itertools.chain(*[pytree.flatten(value)[0] for value in bound])
        is_outside = self.scope.is_outside
        if any(isinstance(leaf, Tensor) and not is_outside(leaf) for leaf in leaves):
            raise RuntimeError(LEFT_BEHIND.format(self.name))
        for effect in self.output.effects:
            is_state = isinstance(effect, SeedEffect | RunningEffect)
            if is_state and effect.output is not None:
                self.examples.written_axes[effect.output] = None

    def batch_effect(self, captured, effect: TensorEffect, output: OutputSpec):
        """Turn a side effect on one example into one on the batched argument."""
        dim = self.examples.dim_of(captured)
        if dim is None and self.is_shared_write(effect, output):
            self.examples.written_axes[effect.value.output] = None
            return
        self.refuse_shared(captured, effect, dim)
        effect.grad = UNCHANGED  # the .grad of one example is not that of the argument
        effect.tracked = captured.tracked
        if effect.value is not None:
            effect.tracked |= effect.value.root is not None
            self.examples.written_axes[effect.value.output] = dim
            reference, dim, shown, steps = self.scope.batches[id(captured.tracer)]
            is_elsewhere = captured.is_elsewhere_than(shown)
            aval = self.examples.batched_aval(effect.value.aval, dim)
            output.batch_written(
                effect.value, dim, aval if is_elsewhere else with_strides(aval, steps)
            )
            if is_elsewhere:
                self.move(reference(), dim, captured, effect, output)

    def is_shared_write(self, effect: TensorEffect, output: OutputSpec) -> bool:
        """Whether all examples write the same constant to a tensor that they share."""
        value = effect.value
        if effect.grad is not UNCHANGED or value is None:
            return False
        array, scopes = output.arrays[value.output], [*scopes_around(self.scope)]
        if depends_on(array, self.scope.is_mapped, scopes):
            return False
        if value.root is not None:
            raise NotImplementedError(
                f"vmap: {self.name} writes a value that requires grad to a tensor of shape "
                f"{list(array.shape)} that its examples share: write it outside of the vmap"
            )
        return True

    def refuse_shared(self, captured, effect, dim):
        """Raise RuntimeError if the examples would change a tensor that they share."""
        if dim is None:
            shape = list(captured.aval.shape)
            if effect.grad is UNCHANGED:
                raise RuntimeError(SHARED.format(self.name, shape))
            raise RuntimeError(
                f"vmap: all examples of {self.name} share a tensor of shape {shape}, and each "
                "gives it a .grad: use autograd.grad instead of backward()"
            )

    def move(self, whole, dim, captured, effect: TensorEffect, output: OutputSpec):
        """Let the whole argument take another shape or memory in place, as each example does."""
        why = None
        if is_shared(whole):
            why = "shares its memory with another tensor: clone() it first"
        elif dim and effect.value.aval.shape != captured.aval.shape:
            why = f"is mapped along dimension {dim}: map dimension 0"
        if why is not None:
            raise RuntimeError(
                f"vmap: {self.name} gives each example another shape or memory in place (t_, "
                f"unsqueeze_, data= and the like), and the argument, of shape "
                f"{list(whole.shape)}, {why}"
            )
        effect.place = len(output.created)
        output.created.append(effect.value)
        output.created_dims.append(0)
        output.separate = SeparateMemory([], [effect.number])

    def run_inline(self, leaves):
        """Run as part of the open trace."""
        tensors, shared = self.tensors_of(leaves), []
        for captured in self.captured:
            is_whole = self.examples.dim_of(captured) is None
            shared += [captured.number] if captured.position is not None and is_whole else []
        # the function may reach them by itself too
        trace = Trace(self, [], {number: weakref.ref(tensors[number]) for number in shared})
        return self.executable(trace, tensors, leaves).run_inline(leaves, tensors)
