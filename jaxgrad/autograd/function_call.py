"""A call of a Function: its `forward`, the node it leaves, and the run of its `backward`.

`forward` runs without being recorded, and its outputs get the call's node for their history. What
it computed on the way from inputs that require grad is marked (`modes.MARK`): if such a tensor was
saved, a second derivative needs its history, and `forward` runs once more, recorded.
"""

from __future__ import annotations

import functools
import inspect
import warnings

import jax

from .. import execution, noting, ops, overwriting, versions
from ..aliasing import FUNCTION, FUNCTION_SEVERAL, assign
from ..modes import INFERENCE, MARK, PLAIN, RECORD, is_grad_enabled, mode, off, switch
from ..nodes import FREED, SECOND_TIME, Node, next_sequence_number
from ..tensor import DERIVED, INFERENCE_TENSOR, Tensor, edge_of, wrap
from .saving import Saved, SavedOutput, sever

CONSUMED = object()

BASE = None  # the class Function, once it is made


class FunctionNode(Node):
    """The node of a Function's call, which is also the call's `ctx`.

    Names without an underscore are the author's to set, but for those below.
    """

    to_save = saved_for_forward = dirty_tensors = non_differentiable = None
    materialize_grads = True
    needs_input_grad = ()
    _saved = ()  # what `backward` finds in `saved_tensors`: `Saved` or None each
    _again = None  # the arguments, where `forward` must run again for a second derivative
    _avals = ()  # of each output the abstract value, None for what is no tensor
    _checks = None  # the versions of what is saved, where they are to be checked

    def __init__(self):
        super().__init__((), 0)

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self):
        edges = iter(self.edges)
        pairs = zip(self.needs_input_grad, self._tensors, strict=True)
        return tuple(next(edges) if needed else (None, 0) for needed, tensor in pairs if tensor)

    def outputs(self):
        return self._avals

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `save_for_backward` was given. Raises RuntimeError once it is freed."""
        saved = self._saved
        if saved is FREED:
            raise RuntimeError(f"{SECOND_TIME} This is {self.name()}")
        if saved is CONSUMED:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True: "
                f"{self.name()} has read them before"
            )
        if self._checks is not None:
            self._checks.check(self.name())
        derived = is_grad_enabled() and any(s is not None and s.derived for s in saved)
        again = recomputed(self) if derived else [None] * len(saved)
        found = tuple(
            None if s is None else t if s.derived and derived else s.tensor(self)
            for s, t in zip(saved, again, strict=True)
        )
        if self._forward_cls.clear_saved_tensors_on_access and saved:
            self._saved = CONSUMED
        return found

    saved_variables = saved_tensors

    def run(self, run, gradients):
        """The author's `backward`, as the engine runs it."""
        if run.create_graph:
            sever(self)
        results = list(map(run.carried, gradients_of(self, list(map(run.as_tensor, gradients)))))
        if not run.retain_graph and self._saved:
            self._saved, self._again = FREED, None
        return results[0] if len(results) == 1 else results

    def _checked(self, found):
        """What `backward` gave: for each edge a gradient of its input's shape and dtype, or None.

        Raises RuntimeError for what cannot be one.
        """
        found = found if isinstance(found, tuple) else (found,)
        count = len(self.needs_input_grad)
        if len(found) < count or any(extra is not None for extra in found[count:]):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(found)}): one for each argument of forward, None for what has "
                "none"
            )
        inputs, results = iter(self._inputs), []
        for position, (gradient, needed) in enumerate(
            zip(found, self.needs_input_grad, strict=False)
        ):
            if gradient is not None and not isinstance(gradient, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(gradient).__name__}): {self.name()} "
                    f"returned it as the gradient of argument {position}"
                )
            if gradient is not None and not self._tensors[position]:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position "
                    f"{position + 1}, but the corresponding forward input was not a Variable"
                )
            if needed:
                results.append(self._conformed(gradient, next(inputs), len(results)))
        return results

    def _conformed(self, gradient, aval, index):
        """A gradient summed to its input's shape, in its dtype."""
        if gradient is None:
            return None
        shape, wanted = gradient.shape, aval.shape
        lead = len(shape) - len(wanted)
        pairs = list(zip(shape[max(lead, 0) :], wanted, strict=False))
        if lead < 0 or any(want not in (extent, 1) for extent, want in pairs):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {index} - got "
                f"{list(shape)} but expected shape compatible with {list(wanted)}"
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


def gradients_of(ctx, given) -> list:
    """For each edge of a call the gradient that the author's `backward` gives, or None.

    given: for each output its gradient, None where none has arrived.
    """
    cls = ctx._forward_cls
    backward = user_backward(cls)
    for position, aval in enumerate(ctx._avals):
        if given[position] is None and ctx.materialize_grads and aval is not None:
            given[position] = wrap(execution.filled(aval, 0))
    return ctx._checked(backward(ctx, given) if cls.boxed_grads_call else backward(ctx, *given))


def tangents_of(ctx, given) -> list:
    """For each output of a call the tangent that the author's `jvp` gives, or None.

    given: for each argument its tangent, None where it does not move. Raises RuntimeError for what
    cannot be a tangent of the output.
    """
    for position, is_tensor in enumerate(ctx._tensors):
        if is_tensor and given[position] is None and ctx.materialize_grads:
            aval = ctx._args[position]._aval
            given[position] = wrap(execution.filled(aval, 0)) if aval.differentiable else None
    saved = ctx._saved
    if ctx.saved_for_forward is not None:
        ctx._saved = tuple(None if t is None else Saved(t) for t in ctx.saved_for_forward)
    try:
        found = ctx._forward_cls.jvp(ctx, *given)
    finally:
        ctx._saved = saved
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(ctx._avals):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(ctx._avals)} but got {len(found)}): {ctx._forward_cls.__name__}"
        )
    return [_tangent(*item) for item in zip(found, ctx._avals, range(len(found)), strict=True)]


def _tangent(found, aval, number):
    if found is None or aval is None or not aval.differentiable:
        return None
    if not isinstance(found, Tensor):
        raise RuntimeError(
            f"expected Variable or None (got {type(found).__name__}) for grad output {number}."
        )
    if found.shape != aval.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(aval.shape)} while the given "
            f"forward gradient is of size {list(found.shape)}."
        )
    return found if found.dtype is aval.dtype else found.to(aval.dtype)


def has_jvp(cls) -> bool:
    return cls.jvp is not BASE.jvp


def has_vmap(cls) -> bool:
    """Whether a Function says itself how it is batched. Raises RuntimeError where it also asks for
    a rule to be made.
    """
    own = cls.vmap is not BASE.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overridden vmap staticmethod to avoid ambiguity."
        )
    return own


def is_once_differentiable(cls) -> bool:
    return getattr(user_backward(cls), "is_once_differentiable", False)


TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


def user_backward(cls):
    """The `backward` of a Function, or its `vjp`. Raises RuntimeError where it has both."""
    if cls.vjp is BASE.vjp:
        return cls.backward
    if cls.backward is not BASE.backward:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
            f"should only implement one of them: {cls.__name__}"
        )
    return cls.vjp


@functools.lru_cache(maxsize=1024)
def _defaults(cls):
    """How many arguments a `forward` takes by position, their defaults, and its signature."""
    signature = inspect.signature(cls.forward)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [p for p in signature.parameters.values() if p.kind in kinds]
    return tuple(p.default for p in named), signature


def has_setup(cls) -> bool:
    """Whether what is kept for `backward` is told by `setup_context`."""
    return cls.setup_context is not BASE.setup_context


def bound(cls, args, kwargs):
    """The arguments of a call: with `setup_context`, all by position, defaults included."""
    if not has_setup(cls):
        return args, kwargs
    defaults, signature = _defaults(cls)
    if kwargs or inspect.Parameter.empty in defaults[len(args) :]:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return given.args, {}
    return (*args, *defaults[len(args) :]), {}


def apply(cls, args, kwargs):
    """Call a Function on tensors."""
    return begin(cls, args, kwargs)[0]


def begin(cls, args, kwargs):
    """The outputs of a call, as `forward` gave them, and its node."""
    ctx = cls._backward_cls()
    ctx.needs_input_grad = needs = tuple(
        [isinstance(argument, Tensor) and argument._requires_grad for argument in args]
    )
    ctx._args = args
    edges = ()
    recorded = mode.get() is RECORD and True in needs
    if recorded:
        edges = [edge_of(a) for a, needed in zip(args, needs, strict=True) if needed]
        ctx._inputs = [a._aval for a, needed in zip(args, needs, strict=True) if needed]
        ctx.sequence = next_sequence_number()  # higher than those of the leaves' new nodes
    ctx._tensors = tuple([isinstance(argument, Tensor) for argument in args])
    output = forward(cls, ctx, args, kwargs, recorded)
    several = isinstance(output, tuple)
    outputs = _Outputs(ctx, args, output if several else (output,), recorded)
    made = outputs.finished()
    if recorded:
        ctx.edges = edges
        keep(ctx, outputs.values, made, kwargs)
        noting.note(ctx)
    ctx._args = ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = None
    return (made if several else made[0]), ctx


def forward(cls, ctx, args, kwargs, recorded):
    """Run the author's `forward`, with grad mode off."""
    inside = MARK if recorded or mode.get() == MARK else PLAIN
    within = INFERENCE if mode.get() >= INFERENCE else inside
    return run_forward(cls, ctx, args, kwargs, within, inside)


def run_forward(cls, ctx, args, kwargs, within, turned_off):
    """`forward` in the mode `within`, in which switching grad mode off leads to `turned_off`."""
    before, token = switch(within), off.set(turned_off)
    try:
        if not has_setup(cls):
            return cls.forward(ctx, *args, **kwargs)
        output = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, args, output)
        return output
    finally:
        off.reset(token)
        switch(before)


def recomputed(ctx) -> list:
    """The tensors that a call saved, computed again by a `forward` that is recorded.

    Raises RuntimeError where it does not come to the same, by drawing random numbers, say: the
    history of what was saved is then not to be had.
    """
    arguments, kwargs = ctx._again
    cls, again = ctx._forward_cls, type(ctx)()
    given = [a.tensor(ctx).clone() if isinstance(a, Saved) else a for a in arguments]
    again.needs_input_grad = ctx.needs_input_grad
    run_forward(cls, again, tuple(given), kwargs, RECORD, RECORD)
    found = list(again.to_save or ())
    if len(found) != len(ctx._saved) or not all(map(_same, found, ctx._saved)):
        raise RuntimeError(
            f"{ctx.name()} saved an intermediate result of its forward, and running forward once "
            "more gave another: without its history the second derivative would be wrong. Return "
            "it as an output, or compute it in backward from what was saved"
        )
    return found


def _same(tensor, saved) -> bool:
    if saved is None or tensor is None:
        return saved is tensor
    if not saved.derived:
        return True
    before = saved.array if saved.packed is None else saved.packed.tensor()._array
    if isinstance(before, jax.core.Tracer) or isinstance(tensor._array, jax.core.Tracer):
        return tensor.shape == saved.aval.shape  # nothing random can be drawn in a trace
    with jax.enable_x64(True):
        return tensor.shape == saved.aval.shape and bool(
            jax.numpy.array_equal(tensor._array, before, equal_nan=True)
        )


def keep(ctx, values, made, kwargs):
    """Keep what `save_for_backward` was given."""
    if not ctx.to_save:
        return
    numbers = {id(value): i for i, value in enumerate(values) if isinstance(value, Tensor)}
    if versions.strict.get() or versions.mutation.get() is not None:
        ctx._checks = versions.Checks()
    pair, saved = noting.packing.get(), []
    for tensor in ctx.to_save:
        number = None if tensor is None else numbers.get(id(tensor))
        if tensor is None:
            saved.append(None)
            continue
        saved.append(Saved(tensor) if number is None else SavedOutput(made[number], number))
        if ctx._checks is not None:
            source = versions.source_of(tensor)
            ctx._checks.note(tensor, source, tensor._nr)
        if pair is not None:
            saved[-1].pack(pair)
    ctx._saved = tuple(saved)
    if any(each is not None and each.derived for each in saved):
        arguments = [Saved(a) if isinstance(a, Tensor) else a for a in ctx._args]
        ctx._again = arguments, kwargs


def permit_dirty(ctx, tensors):
    """Raises RuntimeError for a leaf that requires grad and is to be written to."""
    recorded = mode.get() == MARK or is_grad_enabled()
    for tensor in tensors:
        if recorded and tensor._requires_grad and tensor.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation. "
                f"{ctx.name()} writes to a leaf of shape {list(tensor.shape)}"
            )


class _Outputs:
    """The outputs of a call as its caller gets them."""

    def __init__(self, ctx, args, values, recorded):
        self.ctx, self.values, self.recorded = ctx, values, recorded
        self.args = {id(argument) for argument in args if isinstance(argument, Tensor)}
        self.dirty = {id(tensor) for tensor in ctx.dirty_tensors or ()}
        self.constant = {id(tensor) for tensor in ctx.non_differentiable or ()}
        self.count = sum(isinstance(value, Tensor) for value in values)
        self.seen = set()
        if self.dirty:
            self.check_dirty(args)

    def check_dirty(self, args):
        if self.dirty - {id(value) for value in self.values}:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
        if self.dirty - self.args:
            warnings.warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
                "have been mutated should be passed to ctx.mark_dirty().",
                UserWarning,
                stacklevel=5,
            )
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
        if id(value) in self.args or id(value) in self.seen:
            value = self.shown_again(value, constant)
        self.seen.add(id(value))
        if self.recorded:
            self.give_history(value, number, constant)
        elif value._node is DERIVED and mode.get() != MARK:
            value._node = None
        return value

    def written(self, value, number, constant):
        """An input that `forward` wrote to: the same tensor, with a new history."""
        if self.recorded:
            permit_dirty(self.ctx, [value])
            overwriting.permit(self.ctx.name(), value, True)
            made = wrap(value._array, value._aval, not constant, self.ctx, number)
            assign(value, made, True)
        else:
            versions.counter_of(value).count()
        return value

    def shown_again(self, value, constant):
        """Another tensor for an input that was returned as it is."""
        before = switch(mode.get() if mode.get() >= INFERENCE else PLAIN)
        try:
            return value.detach() if constant else ops.alias(value)
        finally:
            switch(before)

    def give_history(self, value, number, constant):
        if value._node is INFERENCE_TENSOR:
            return
        value._tracked = not constant
        value._node, value._nr = (None, 0) if constant else (self.ctx, number)
        alias = value._alias
        if alias is not None and alias.base is not None:
            alias.made = FUNCTION if self.count == 1 else FUNCTION_SEVERAL
