"""A step of an optimizer: for the parameters of a group one program, from their values, gradients
and state to those after it.

Here and now it is one compiled kernel; inside of a trace it is part of it. A rate that changes is
data of the program.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import weakref
from itertools import chain

import jax
import jax.numpy as jnp

from ..autograd.grad_mode import enable_grad
from ..capture import scope
from ..core import dtypes, executor
from ..core.aval import Aval, make_aval, with_strides
from ..core.program import Program
from ..frontend import factories
from ..storage.alias import assign
from ..storage.inplace_check import permit
from ..tape import interception
from ..tape import mode as modes
from ..tape.mode import switch, with_grad
from ..tape.record import apply
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, current, wrap
from ..tape.version_counter import counter_of
from .groups import as_set, raw, settings
from .optimizer import Optimizer


class Update(Program):
    """The program of a rule. Its inputs: the parameters; their gradients; for each kind of state
    those that are there; counts of steps, and the numbers of the group. Its outputs: the
    parameters, each kind of state for all of them, the counts.

    count_of: for each parameter the number of its count; fresh: of those without state.
    """

    wide = True  # numbers have the precision of Python's

    def __init__(self, rule, count_of, fresh, inputs, counts: int):
        self.rule, self.count_of, self.fresh, self.inputs = rule, count_of, fresh, inputs
        self.name = f"{type(rule).__name__}Update"
        self.mode = max([i.mode for i in inputs if isinstance(i, Aval)])
        self.counts = slice(
            len(inputs) - len(rule.numbers) - counts, len(inputs) - len(rule.numbers)
        )

    def abstract_outputs(self):
        params = [_plain(each, self.mode) for each in self.inputs[: len(self.count_of)]]
        counts = [_plain(each, self.mode) for each in self.inputs[self.counts]]
        return (*params * (1 + len(self.rule.states)), *counts)

    def function(self, *arrays):
        size = len(self.count_of)
        params, grads, rest = list(arrays[:size]), arrays[size : 2 * size], iter(arrays[2 * size :])
        kept = [i not in self.fresh for i in range(size)]
        state = [[next(rest) if flag else None for flag in kept] for _ in self.rule.states]
        counts = [count + 1 for count in arrays[self.counts]]
        numbers = dict(zip(self.rule.numbers, arrays[self.counts.stop :], strict=True))
        for members in self.alike():
            count = counts[self.count_of[members[0]]] if counts else None
            parts = [_reals([values[i] for i in members]) for values in (params, grads, *state)]
            made, after = self.apply_to(*parts, count=count, numbers=numbers)
            for values, results in zip((params, *state), (made, *after), strict=True):
                for i, result in zip(members, results, strict=True):
                    values[i] = _as(result, params[i])
        return (*params, *[each for values in state for each in values], *counts)

    def alike(self) -> list[list[int]]:
        """The numbers of the parameters, those together that one call of the rule may take."""
        groups: dict[tuple, list[int]] = {}
        for i, (number, shown) in enumerate(zip(self.count_of, self.inputs, strict=False)):
            groups.setdefault((number, shown.dtype, i in self.fresh), []).append(i)
        return list(groups.values())

    def apply_to(self, params, grads, *state, count, numbers):
        dtype = params[0].dtype
        grads = [grad.astype(dtype) for grad in grads]
        numbers = {name: _fitting(number, dtype) for name, number in numbers.items()}
        if count is not None:
            count = count.astype(jnp.result_type(float))
        return self.rule.update(params, grads, state, count, numbers)


@functools.lru_cache(maxsize=1024)
def prepared(kind, rule, count_of, fresh, inputs, counts) -> Update:
    """The one `Update` of these, ready to run. `kind`: the rule's type, for rules are tuples."""
    return executor.prepare(Update(rule, count_of, fresh, inputs, counts))


def _plain(found, mode):
    return make_aval(found.shape, found.dtype, mode)


def _reals(values):
    """Complex arrays as pairs of real ones, which PyTorch's rules treat apart."""
    if values[0] is None or not jnp.iscomplexobj(values[0]):
        return values
    return [jnp.stack([each.real, each.imag], axis=-1) for each in values]


def _as(result, like):
    if jnp.iscomplexobj(like) and not jnp.iscomplexobj(result):
        result = jax.lax.complex(result[..., 0], result[..., 1])
    return result.astype(like.dtype)


def _fitting(number, dtype):
    """A number that was a tensor in the dtype of the parameters; Python's adapt by themselves."""
    if isinstance(number, float) or getattr(number, "weak_type", True):
        return number
    return number.reshape(()).astype(dtype)


# what happens at a step


def structure_of(optimizer, active: frozenset | None = None):
    """What of an optimizer a compiled step depends on, beside the values of tensors: which tensors
    there are in its state and its groups, and what decides on their programs.

    active: the positions of the parameters that take part; by default all do.
    """
    groups = list(map(dict, optimizer.param_groups))
    states, shared = optimizer.state.values(), False
    if active is not None:
        states, shared = _parted(optimizer.state, groups, active)
    kept = chain.from_iterable(map(_values, states))
    groups = [(optimizer.rule(group), *_identity(group)) for group in groups]
    return optimizer._changes, tuple(map(id, kept)), shared, groups


def _parted(state, groups, active):
    """The states of the parameters that take part, and whether they share counts with others."""
    states, others = [], []
    for position, param in enumerate(chain.from_iterable(group["params"] for group in groups)):
        if param in state:
            (states if position in active else others).append(state[param])
    counts = {id(each["step"]) for each in states if "step" in each}
    return states, any(id(each.get("step")) in counts for each in others)


@functools.lru_cache(maxsize=1024)
def structure_among(active: frozenset):
    """`structure_of`, for the parameters of these positions alone."""
    return functools.partial(structure_of, active=active)


_values = operator.methodcaller("values")


def _identity(group):
    options = (*group.values(), *group.get("betas", ()))
    tensors = [id(value) for value in options if isinstance(value, Tensor)]
    return tuple(map(id, group["params"])), tensors, group["differentiable"]


class FusedStep:
    """One call of an optimizer's `step`.

    `counts`: by id the step counters that are advanced, and their arrays afterwards; `copies`: by
    id the copies of counters that are shared with parameters without a gradient; `new_counter`:
    the counter of all parameters whose state this call creates.
    """

    def __init__(self, optimizer):
        self.optimizer, self.scope = optimizer, modes.scope.get()
        self.counts: dict[int, tuple] = {}
        self.copies: dict[int, Tensor] = {}
        self.new_counter: Tensor | None = None

    def run(self):
        work, idle = [], []
        for number, group in enumerate(self.optimizer.param_groups):
            params, grads = [], []
            group = dict(group) if self.scope is None else as_set(self.scope, group)
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    idle.append(param)
                else:
                    params.append(param)
                    grads.append(grad)
            if params:
                work.append((number, group, params, grads))
        if self.scope is not None:
            self.guard_state(idle)
        if idle:
            self.separate_counters(idle, [param for _, _, params, _ in work for param in params])
        for each in work:
            self.update(*each)
        for count, array in self.counts.values():
            put(count, array)

    def guard_state(self, idle):
        """Guard on the structure of the optimizer's state, without that of the parameters in
        `idle`, which have no gradient.
        """
        read, idle = structure_of, set(map(id, idle))
        if idle:
            params = chain.from_iterable(raw(g, "params") for g in self.optimizer.param_groups)
            read = structure_among(
                frozenset(i for i, param in enumerate(params) if id(param) not in idle)
            )
        self.scope.objects.guard(self.optimizer, read)

    # ---- state

    def separate_counters(self, idle, active):
        """Give active parameters their own step counters where they share those of idle ones."""
        known = self.optimizer.state
        kept = {id(known[param].get("step")) for param in idle if param in known}
        for param in active if kept else ():
            count = known[param].get("step") if param in known else None
            if count is not None and id(count) in kept:
                if id(count) not in self.copies:
                    self.copies[id(count)] = wrap(current(count)._raw)
                known[param]["step"] = self.copies[id(count)]

    def state_for(self, rule, param):
        """The state of a parameter, which is made where it is not there yet."""
        if not (rule.counts or rule.states):
            return {}
        state = self.optimizer.state[param]
        if rule.counts and "step" not in state:
            if self.new_counter is None:
                self.new_counter = new_counter()
            state["step"] = self.new_counter
        for name in rule.states:
            if state.get(name) is None:
                state[name] = self.optimizer.initial(rule, name, param)
        return state

    def number(self, position, group, name):
        """A number of a group; inside of a trace a symbolic number, which each call reads anew."""
        value = entry(group, name)
        if isinstance(value, jax.Array):
            value = wrap(value)
        if isinstance(value, Tensor):
            return value
        if self.scope is not None and not self.is_constant(position, name):
            place = weakref.ref(self.optimizer), position, name
            value = scope.number(functools.partial(read, *place, float(value)))
        return value._array if isinstance(value, Varying) else float(value)

    def is_constant(self, position, name) -> bool:
        """Whether the function being traced has set a number of a group."""
        name = "betas" if name in ("beta1", "beta2") else name
        return (id(self.optimizer.param_groups[position]), name) in settings(self.scope)

    # ---- the program

    def update(self, position, group, params, grads):
        rule = self.optimizer.rule(group)
        states = [self.state_for(rule, param) for param in params]
        counts, count_of = distinct([state["step"] for state in states] if rule.counts else ())
        kept = [(state, name) for name in rule.states for state in states]
        fresh = [i for i, s in enumerate(states) if rule.states and s[rule.states[0]] is None]
        there = [state[name] for state, name in kept if state[name] is not None]
        numbers = [self.number(position, group, name) for name in rule.numbers]
        leaves = [*params, *grads, *there, *counts, *numbers]
        arrays = [current(x)._raw if isinstance(x, Tensor) else x for x in leaves]
        inputs = tuple([x._aval if isinstance(x, Tensor) else float for x in leaves])
        count_of = count_of or (0,) * len(params)
        program = prepared(type(rule), rule, count_of, tuple(fresh), inputs, len(counts))
        if group["differentiable"] or any(x._aval.dual for x in leaves if isinstance(x, Tensor)):
            results = self.recorded(program, leaves, group["differentiable"])
            give = follow if group["differentiable"] else follow_tangents
        else:
            results, give = program.kernel(*arrays), put
            results = (results,) if program.single else results
        for param, result in zip(params, results, strict=False):
            give(param, result)
        after = results[len(params) : len(params) + len(kept)]
        for (state, name), result in zip(kept, after, strict=True):
            if state[name] is None:
                state[name] = result if isinstance(result, Tensor) else wrap(result)
                if self.scope is not None:
                    self.scope.undo.append(functools.partial(state.__setitem__, name, None))
            else:
                give(state[name], result)
        after = results[len(params) + len(kept) :]
        for count, result in zip(counts, after, strict=True):
            self.counts[id(count)] = count, current(result)._raw if give is not put else result

    def recorded(self, program, leaves, is_differentiable):
        """The results as tensors, with a history where the group is differentiable."""
        before = switch(with_grad(is_differentiable))
        try:
            made = apply(program, leaves)
        finally:
            switch(before)
        return (made,) if program.single else made


def entry(group, name):
    if name in ("beta1", "beta2"):
        return raw(group, "betas")[name == "beta2"]
    return raw(group, name)


def read(reference, position, name, found):
    """A number of a group; `found` if the optimizer, created in the trace, is gone."""
    optimizer = reference()
    return found if optimizer is None else float(entry(optimizer.param_groups[position], name))


def distinct(counts) -> tuple[list, tuple[int, ...]]:
    """The different ones among tensors, and for each tensor the number of its own."""
    numbers: dict[int, int] = {}
    found = tuple([numbers.setdefault(id(count), len(numbers)) for count in counts])
    different = {id(count): count for count in counts}
    return list(different.values()), found


def outside_of_trace():
    """A context in which new tensors are no part of the trace under way."""
    return contextlib.nullcontext() if modes.scope.get() is None else scope.outside()


def new_counter() -> Tensor:
    """A step counter that starts at zero."""
    wide = dtypes.get_default_dtype() is dtypes.float64
    with outside_of_trace():
        return factories.zeros((), dtype=dtypes.float64 if wide else dtypes.float32)


def filled(param: Tensor, value) -> Tensor:
    """A tensor like a parameter, of one value."""
    with outside_of_trace():
        made = factories.full(tuple(param.shape), value, dtype=param.dtype)
    made._aval = with_strides(made._aval, param._aval.strides)
    return made


# writing the results


def put(target: Tensor, array):
    """Give a tensor another array, in place."""
    alone = target._alias is None and not target._aval.mode and not interception.is_noted
    if alone and not isinstance(array, jax.core.Tracer):
        target._raw = array
        (target._counter or counter_of(target)).count()
    else:
        permit("step", target, False)
        assign(target, wrap(array), False)


def follow(target: Tensor, made: Tensor):
    """Give a tensor the value of another, and its history."""
    before = switch(with_grad(True))
    try:
        permit("step, of an optimizer with differentiable=True,", target, made._tracked)
        assign(target, made, True)
    finally:
        switch(before)


def follow_tangents(target: Tensor, made: Tensor):
    permit("step", target, False)
    assign(target, made, False)


class Updating(Optimizer):
    """An optimizer whose step is a rule of `rules.py`."""

    def rule(self, group):
        """The rule of a parameter group."""
        raise NotImplementedError(f"{type(self).__name__}.rule")

    def initial(self, rule, name: str, param: Tensor) -> Tensor | None:
        """The state of that name before the first step; None where the rule begins it."""
        return filled(param, 0)

    def step(self, closure=None):
        """Take a step with the gradients that are there; parameters whose `.grad` is None stay.

        closure: called first, with grad mode on; gives the loss, which `step` then returns.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        FusedStep(self).run()
        return loss
