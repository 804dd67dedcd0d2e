"""Batched programs: `jax.vmap` maps the program of one example.

The forward and the backward program are mapped separately: residuals are saved for all examples,
and the gradient of a shared tensor is summed over them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .. import ops
from ..autograd.grad_mode import set_grad_enabled
from ..capture.replay import new_arrays, replay
from ..capture.side_effects import UNCHANGED, TensorEffect
from ..compiled.executable import Executable
from ..compiled.partition import depending
from ..core import executor
from ..core.aval import joint_mode, traced_aval, types_of_trace, with_dual
from ..core.program import Program
from ..storage.inplace_check import permit
from ..tape.mode import is_grad_enabled
from ..tape.record import apply
from ..tape.tensor import (
    Tensor,
    abstract_value,
    current,
    has_tangent,
    held,
    set_abstract_value,
    wrap,
)
from ..tape.version_counter import counter_of

# the kinds of results that the program computes
ARRAYS = ("created", "array")

DEPENDS = (
    "vmap({0}, ...): `{0}` can not return a BatchedTensor when out_dim is None: a result that "
    "depends on the example has one value for each example"
)

LEFT_BEHIND = "vmap: {} leaves behind a tensor of one example: return it instead"


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
