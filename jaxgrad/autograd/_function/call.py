"""A call of a Function: it runs `forward`, makes the call's node, and runs `backward`.

`forward` runs unrecorded, and its outputs get the call's node as their `grad_fn`. The mode `MARK`
marks the intermediate results that depend on inputs that require grad. If `forward` saves such a
result, a second derivative needs its history, and `forward` runs again, recorded.
"""

from __future__ import annotations

import functools
import inspect
import warnings

import jax

from ... import ops
from ...core import executor
from ...core.aval import META, has_numbers
from ...core.pytorch_tensors import type_name
from ...core.tracebacks import users_stacklevel
from ...storage.alias import assign
from ...storage.creation_meta import FUNCTION, FUNCTION_SEVERAL
from ...storage.inplace_check import permit
from ...tape import (
    dual_level,
    interception,
    node_annotations,
    source_location,
    untracked_reason,
    version_counter,
)
from ...tape.mode import (
    INFERENCE,
    MARK,
    PLAIN,
    RECORD,
    current_mode,
    is_grad_enabled,
    off,
    switch,
)
from ...tape.node import FREED, SECOND_TIME, Node, next_sequence_number
from ...tape.record import refuse_inference
from ...tape.sparse_tensor import is_sparse
from ...tape.tensor import DERIVED, INFERENCE_TENSOR, Tensor, current, held, known_edge_of, wrap
from .._engine.saved_tensor_hooks import SavedByFunction
from .forward_ad import move, moving
from .saved_variables import SavedOutput, SavedVariable, refuse_attributes, sever
from .user_rules import Rules, gradients_of, has_setup, put_aside, reserved

# inlined: the accessors of tape/tensor.py

CONSUMED = object()


class FunctionNode(Node):
    """The node of a Function's call; it is also the call's `ctx`.

    The author may set any attribute of `ctx` that does not begin with an underscore.
    `user_rules.put_aside` moves those away that the node itself needs.
    """

    _residuals = ("_saved", "_again")
    edges, extras, output_count, sequence = (), None, 0, 0
    to_save = saved_for_forward = dirty_tensors = non_differentiable = None
    materialize_grads = True
    needs_input_grad = ()
    _saved = ()  # the entries of `saved_tensors`, each `SavedVariable` or None
    _in_jvp = False  # whether `_saved` now has the tensors of `save_for_forward`
    _again = None  # the arguments, if `forward` must run again for a second derivative
    _args = None  # the arguments, during the call
    _tensors = ()  # for each argument, whether it is a tensor
    _needs = ()  # for each argument, whether it needs a gradient; authors may set needs_input_grad
    _inputs = ()  # the abstract values of the arguments that need a gradient
    _avals = ()  # the abstract value of each output, None if it is not a tensor
    _moving = False  # whether an argument had a tangent
    _checks = None  # the versions of the saved tensors, under strict_versions
    _authors = None  # the author's attributes under reserved names, see put_aside
    _reserved = frozenset()
    _fills_missing = property(lambda self: self.materialize_grads)

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self):
        edges = iter(super().next_functions)
        pairs = zip(self._needs, self._tensors, strict=True)
        return tuple(next(edges) if needed else (None, 0) for needed, tensor in pairs if tensor)

    def outputs(self):
        return self._avals

    @property
    def is_freed(self):
        return self._saved is FREED

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that were given to `save_for_backward`.

        Raises RuntimeError after a backward pass has freed them. With
        `clear_saved_tensors_on_access` they can be read only once.
        """
        saved = self._saved
        if saved is FREED:
            raise RuntimeError(f"{SECOND_TIME} This is {self.name()}")
        if saved is CONSUMED:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True: "
                f"{self.name()} has already read them"
            )
        if self._checks is not None:
            self._checks.check(self.name())
        if is_grad_enabled() or (self._moving and dual_level.is_any_begun()):
            tensors = self._with_history(saved)
        else:
            tensors = tuple([None if entry is None else entry.tensor(self) for entry in saved])
        if self._forward_cls.clear_saved_tensors_on_access and saved:
            self._saved = CONSUMED
        return tensors

    def _with_history(self, saved):
        """The saved tensors; intermediate results come from a recorded run of `forward`."""
        if not any(entry is not None and entry.derived for entry in saved):
            return tuple([None if entry is None else entry.tensor(self) for entry in saved])
        return tuple(
            None if entry is None else again if entry.derived else entry.tensor(self)
            for entry, again in zip(saved, recomputed(self), strict=True)
        )

    @property
    def saved_variables(self):
        """The saved tensors, under the name that they had in the first PyTorch."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            users_stacklevel(),
        )
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self):
        if self._saved is FREED:
            raise RuntimeError(f"{SECOND_TIME} This is {self.name()}")
        saved = () if self._saved is CONSUMED else self._saved
        return tuple([SavedByFunction(self, position) for position in range(len(saved))])

    def run(self, run, gradients):
        """Run the author's `backward` for the engine."""
        if run.create_graph:
            sever(self)
        elif self._moving and dual_level.is_any_begun():
            refuse_attributes(self)
        results = list(map(run.carried, gradients_of(self, list(map(run.as_tensor, gradients)))))
        if not run.retain_graph and self._saved:
            self._saved, self._again = FREED, None
        return results[0] if len(results) == 1 else results

    def _checked(self, gradients):
        """The gradients that `backward` returned, one for each edge, in the shape and dtype of the
        input.

        Raises RuntimeError for a wrong number, type or shape.
        """
        gradients = as_tuple(gradients)
        needs, inputs, results = self._needs, self._inputs, []
        if len(gradients) != len(needs):
            self._check_count(gradients)
        for position, needed in enumerate(needs):
            gradient = gradients[position]
            if gradient is not None:
                self._check_kind(gradient, position)
            if needed:
                aval = inputs[len(results)]
                if gradient is not None and gradient._aval is not aval:
                    gradient = self._conformed(gradient, aval, len(results))
                results.append(gradient)
        return results

    def _check_count(self, gradients):
        count = len(self._needs)
        if len(gradients) < count or any(extra is not None for extra in gradients[count:]):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(gradients)}): return one for each argument of forward, None "
                "for an argument without gradient"
            )

    def _check_kind(self, gradient, position):
        if not isinstance(gradient, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type_name(gradient)}): {self.name()} "
                f"returned it as the gradient of argument {position}"
            )
        if not self._tensors[position]:
            raise RuntimeError(
                f"function {self.name()} returned a gradient different than None at position "
                f"{position + 1}, but the corresponding forward input was not a Variable"
            )

    def _conformed(self, gradient, aval, index):
        """A gradient, summed to the shape of its input and cast to its dtype."""
        shape, wanted = gradient.shape, aval.shape
        lead = len(shape) - len(wanted)
        pairs = list(zip(shape[max(lead, 0) :], wanted, strict=False))
        if lead < 0 or any(want not in (extent, 1) for extent, want in pairs):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {index} - got "
                f"{list(shape)} but expected shape compatible with {list(wanted)}"
            )
        if (gradient._aval.mode == META) != (aval.mode == META):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {index} - its input "
                f"and the gradient are on different devices, and the gradient on {gradient.device}"
            )
        if gradient.dtype.is_complex and not aval.dtype.is_complex:
            raise RuntimeError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == "
                f"grad_is_complex) to be true: {self.name()} returned a complex gradient at index "
                f"{index} for a real input of {aval.dtype}; take its real part"
            )
        if shape != wanted:
            stretched = [lead + i for i, (e, want) in enumerate(pairs) if want == 1 != e]
            gradient = ops.sum(gradient, (*range(lead), *stretched), True).reshape(wanted)
        return gradient if gradient.dtype is aval.dtype else gradient.to(aval.dtype)


AUTHORS = (
    *("to_save", "saved_for_forward", "dirty_tensors", "non_differentiable"),
    *("materialize_grads", "needs_input_grad"),
)
FunctionNode._reserved = reserved(FunctionNode, AUTHORS)


@functools.lru_cache(maxsize=1024)
def _signature(cls):
    """The signature of `forward` without `ctx`, and the defaults of its positional parameters.

    Keyword-only parameters are left out: a tensor passed through one would get no gradient.
    """
    signature = inspect.signature(cls.forward)
    named = list(signature.parameters.values())[0 if has_setup(cls) else 1 :]
    alone = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    named = [parameter for parameter in named if parameter.kind not in alone]
    defaults = [p.default for p in named if p.kind is not inspect.Parameter.VAR_POSITIONAL]
    return signature.replace(parameters=named), tuple(defaults)


def bound(cls, args, kwargs):
    """The arguments of a call as positional arguments; with `setup_context`, defaults included."""
    if not kwargs and not has_setup(cls):
        return args
    signature, defaults = _signature(cls)
    if kwargs or inspect.Parameter.empty in defaults[len(args) :]:
        binding = signature.bind(*args, **kwargs)
        binding.apply_defaults()
        return binding.args
    return (*args, *defaults[len(args) :])


def apply(cls, args):
    """Call a Function on tensors."""
    return begin(cls, args)[0]


def begin(cls, args):
    """Call a Function; returns its outputs and its node."""
    ctx, mode = cls._backward_cls(), current_mode.get()
    tensors, needs, edges, inputs, before = [], [], [], [], []
    for argument in args:
        is_tensor = isinstance(argument, Tensor)
        tensors.append(is_tensor)
        needed = is_tensor and current(argument)._tracked
        needs.append(needed)
        if needed and mode is RECORD:
            refuse_sparse(cls, argument)
            node = argument._node
            edges.append(known_edge_of(argument) if node is None else (node, argument._nr))
            inputs.append(argument._aval)
            before.append(held(argument))
    ctx.needs_input_grad = tuple(needs)
    recorded = bool(edges)
    if recorded:
        number = next_sequence_number()  # after `known_edge_of`, which may make nodes of leaves
    moved = () if interception.tangents is None or mode >= INFERENCE else moving(args)
    output = forward(cls, ctx, args, recorded or bool(moved), mode)
    if not ctx._reserved.isdisjoint(ctx.__dict__):
        put_aside(ctx)
    ctx._tensors, ctx._needs = tensors, tuple(needs)
    result = finished(ctx, args, output, recorded)
    if recorded or moved:
        ctx.edges, ctx._inputs, ctx._args, ctx._moving = edges, inputs, args, bool(moved)
        if recorded:
            ctx.sequence = number
        if ctx.to_save:
            keep(ctx, output, result, before)
        if interception.is_noted:
            node_annotations.note(ctx)
            if source_location.lines.get():
                untracked_reason.note_call(ctx, args, as_tuple(result))
    if moved:
        move(ctx, as_tuple(output), as_tuple(result), moved)
    ctx._args = ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = None
    return result, ctx


def as_tuple(outputs) -> tuple:
    """The outputs of a Function, which may be one, as a tuple."""
    return outputs if isinstance(outputs, tuple) else (outputs,)


def refuse_sparse(cls, value):
    """Raise NotImplementedError for a sparse tensor whose gradient a Function would compute."""
    if is_sparse(value):
        raise NotImplementedError(
            f"{cls.__name__}: a Function takes a sparse tensor that requires grad, or returns a "
            "sparse tensor with a gradient, in no version yet: pass and return values()"
        )


def finished(ctx, args, output, recorded):
    """The outputs that the caller of `apply` gets."""
    if recorded:
        for value in as_tuple(output):
            refuse_sparse(ctx._forward_cls, value)
    if recorded and is_new(ctx, output, args):
        ctx._avals, ctx.output_count = (output._aval,), 1
        output._tracked, output._node, output._nr = True, ctx, 0
        return output
    several = isinstance(output, tuple)
    results = Outputs(ctx, args, output if several else (output,), recorded).finished()
    return results if several else results[0]


def is_new(ctx, output, args) -> bool:
    """Whether the output is a single differentiable tensor that shares no memory with an input.

    Most calls return one. They need no `Outputs`.
    """
    return (
        isinstance(output, Tensor)
        and output._alias is None
        and ctx.dirty_tensors is None
        and ctx.non_differentiable is None
        and output._aval.differentiable
        and output._node is not INFERENCE_TENSOR
        and all([output is not argument for argument in args])  # noqa: C419 (quicker)
    )


def forward(cls, ctx, args, recorded, mode):
    """Run the author's `forward` with grad mode off."""
    inside = MARK if recorded or mode == MARK else PLAIN
    within = INFERENCE if mode >= INFERENCE else inside
    if not executor.observers:
        return run_forward(cls, ctx, args, within, inside)
    run = cls, ctx, args, within, inside
    return executor.run(cls.__name__, run_forward, *run, inputs=args)


def run_forward(cls, ctx, args, within, turned_off):
    """Run `forward` in the mode `within`, where `no_grad` switches to `turned_off`."""
    before, outer, seen = current_mode.get(), off.get(), None
    current_mode.set(within)
    off.set(turned_off)
    if interception.tangents is not None and within != RECORD and dual_level.is_any_begun():
        seen = dual_level.hide()  # `jvp` computes the tangents
    try:
        if cls.setup_context is Rules.setup_context:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output
    finally:
        off.set(outer)
        current_mode.set(before)
        if seen is not None:
            dual_level.window.reset(seen)


def recomputed(ctx) -> list:
    """The tensors that a call saved, from a recorded run of its `forward`.

    Raises RuntimeError if this run gives other values than the first, for example because `forward`
    draws random numbers: the history of the saved tensors is then unknown.
    """
    cls, again = ctx._forward_cls, type(ctx)()
    args = arguments(ctx) if ctx._again is None else ctx._again
    args = [a.tensor(ctx).clone() if isinstance(a, SavedVariable) else a for a in args]
    again.needs_input_grad = ctx._needs
    run_forward(cls, again, tuple(args), RECORD, RECORD)
    tensors = list((again.saved_for_forward if ctx._in_jvp else again.to_save) or ())
    if len(tensors) != len(ctx._saved) or not all(map(_same, tensors, ctx._saved)):
        raise RuntimeError(
            f"{ctx.name()} saved an intermediate result of its forward, and running forward once "
            "more gave another value: without its history the second derivative would be wrong. "
            "Return it as an output, or compute it in backward from the saved inputs"
        )
    return tensors


def _same(tensor, saved) -> bool:
    if saved is None or tensor is None:
        return saved is tensor
    if not saved.derived:
        return True
    before = saved.array if saved.packed is None else saved.packed.tensor()._array
    if not (has_numbers(before) and has_numbers(tensor._array)):
        return tensor.shape == saved.aval.shape  # a trace draws no random numbers
    with jax.enable_x64(True):
        return tensor.shape == saved.aval.shape and bool(
            jax.numpy.array_equal(tensor._array, before, equal_nan=True)
        )


def keep(ctx, output, results, before):
    """Save the tensors that were given to `save_for_backward`.

    before: the arrays of the inputs that need a gradient, as they were before `forward` ran.
    """
    values, results = (output, results) if isinstance(output, tuple) else ((output,), (results,))
    numbers = {id(value): i for i, value in enumerate(values) if isinstance(value, Tensor)}
    if version_counter.strict.get() or version_counter.mutation.get() is not None:
        ctx._checks = version_counter.Checks()
    pair, saved = node_annotations.packing.get(), []
    for tensor in ctx.to_save:
        if tensor is None:
            saved.append(None)
            continue
        number = numbers.get(id(tensor))
        refuse_inference(ctx.name(), tensor)
        saved.append(
            SavedVariable(tensor) if number is None else SavedOutput(results[number], number)
        )
        if ctx._checks is not None:
            source = version_counter.source_of(tensor)
            ctx._checks.note(tensor, source, tensor._nr)
        if pair is not None:
            saved[-1].pack(pair)
    ctx._saved = tuple(saved)
    if any(entry is not None and entry.derived for entry in saved):
        ctx._again = arguments(ctx, before)


def arguments(ctx, before=()) -> list:
    """The arguments of a call, saved so that `forward` can run on them again."""
    saved_arguments, places = [], iter(zip(before, ctx.edges, strict=False))
    for argument, needed in zip(ctx._args, ctx._needs, strict=True):
        saved = SavedVariable(argument) if isinstance(argument, Tensor) else argument
        if needed and before:
            saved.array, saved.edge = next(places)
        saved_arguments.append(saved)
    return saved_arguments


# outputs


class Outputs:
    """The outputs of a call, made ready for the caller: history, views, inputs written in place."""

    def __init__(self, ctx, args, values, recorded):
        self.ctx, self.values, self.recorded = ctx, values, recorded
        self.args = {id(argument) for argument in args if isinstance(argument, Tensor)}
        self.dirty = {id(tensor) for tensor in ctx.dirty_tensors or ()}
        self.constant = {id(tensor) for tensor in ctx.non_differentiable or ()}
        self.count = sum(isinstance(value, Tensor) for value in values)
        if self.dirty:
            self.check_dirty(args)

    def check_dirty(self, args):
        if self.dirty - {id(value) for value in self.values}:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
        strangers = self.dirty - self.args
        if strangers:
            message = (
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
                "have been mutated should be passed to ctx.mark_dirty()."
            )
            marked = [value for value in self.values if id(value) in strangers]
            if self.recorded and any(value._base is not None for value in marked):
                raise RuntimeError(message)
            warnings.warn(message, UserWarning, stacklevel=users_stacklevel())
        for argument in args:
            is_view = id(argument) in self.dirty and argument._base is not None
            if is_view and self.count > 1 and self.recorded:
                raise RuntimeError(
                    "If your Function modifies inplace an input that is a view of another Tensor, "
                    "your Function cannot return more than one Tensor. This is not supported by "
                    "the current autograd engine. You should either make sure the input is not a "
                    "view (using .clone() for example) or make your Function only return one "
                    "Tensor: "
                    f"{self.ctx.name()} returns {self.count}"
                )

    def finished(self):
        values = [value if isinstance(value, Tensor) else None for value in self.values]
        self.ctx._avals = tuple([None if value is None else value._aval for value in values])
        self.ctx.output_count = len(values)
        return tuple([self.output(number) for number in range(len(values))])

    def output(self, number):
        value = self.values[number]
        if not isinstance(value, Tensor):
            return value
        constant = id(value) in self.constant or not value._aval.differentiable
        if id(value) in self.args and id(value) in self.dirty:
            return self.written(value, number, constant)
        if id(value) in self.args:
            value = self.shown_again(value, constant)
        # a tensor that is returned twice is one tensor, the last of its outputs
        if self.recorded:
            self.give_history(value, number, constant)
        elif value._node is DERIVED and current_mode.get() != MARK:
            value._node = None
        return value

    def written(self, value, number, constant):
        """An input that `forward` wrote to: the same tensor, with the call as its history."""
        if not self.recorded:
            refuse_view_of_leaf(self.ctx, value)
        if not self.recorded or constant:
            version_counter.counter_of(value).count()
            return value.detach() if value._requires_grad else value
        permit_dirty(self.ctx, [value])
        permit(self.ctx.name(), value, True)
        assign(value, wrap(value._array, value._aval, True, self.ctx, number), True)
        return value

    def shown_again(self, value, constant):
        """A new tensor for an input that `forward` returned unchanged."""
        before = switch(current_mode.get() if current_mode.get() >= INFERENCE else PLAIN)
        try:
            return value.detach() if constant else ops.alias(value)
        finally:
            current_mode.set(before)

    def give_history(self, value, number, constant):
        if value._node is INFERENCE_TENSOR:
            return
        value._tracked = not constant
        value._node, value._nr = (None, 0) if constant else (self.ctx, number)
        alias = value._alias
        if alias is not None and alias.base is not None:
            alias.creation = FUNCTION if self.count == 1 else FUNCTION_SEVERAL


def refuse_view_of_leaf(ctx, tensor):
    """Raise RuntimeError for a view that does not require grad, of a leaf that does."""
    base = tensor._base
    if base is not None and is_grad_enabled() and tensor._aval.differentiable and base._tracked:
        raise RuntimeError(
            f"a leaf Variable that requires grad has been used in an in-place operation. "
            f"{ctx.name()} writes to a view of it, of shape {list(tensor.shape)}, that was made "
            "under no_grad or before the leaf required grad"
        )


def permit_dirty(ctx, tensors):
    """Raise RuntimeError if one of `tensors` is a leaf that requires grad."""
    recorded = current_mode.get() == MARK or is_grad_enabled()
    for tensor in tensors:
        if recorded and tensor._requires_grad and tensor.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation. "
                f"{ctx.name()} writes to a leaf of shape {list(tensor.shape)}"
            )
