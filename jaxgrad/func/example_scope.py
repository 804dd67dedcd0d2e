"""The scope in which a function is traced for one example of a `vmap`."""

from __future__ import annotations

import weakref
from contextlib import contextmanager

import jax

from ..capture.captured import CapturedTensor, TensorInput, outside_aval
from ..capture.dependence import depends_on
from ..capture.graph_input import ArgumentSource, GraphInput, scopes_around
from ..capture.scope import CaptureScope
from ..core.aval import strides_of, traced_aval
from ..frontend.batched_samples import samples_of_example
from ..frontend.printing.wrapped import Batch, Wrapper
from ..storage.alias import known_offset_of, offset_of_argument, snapshot
from ..tape import mode
from ..tape.node import Node, next_sequence_number
from ..tape.tensor import (
    Tensor,
    abstract_value,
    held,
    hold,
    is_traced,
    is_tracked,
    node_or_mark,
    wrap,
)
from .arguments import shown_as
from .examples import Examples, example_aval

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

    def array_around(self, captured):
        whole = self.whole_of(captured)
        return super().array_around(captured) if whole is captured.tensor else held(whole)

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
        maps = [scope for scope in scopes_around(self) if isinstance(scope, ExampleScope)]
        if any(scope.randomness == "error" for scope in maps):
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
