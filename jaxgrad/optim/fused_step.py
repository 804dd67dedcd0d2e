"""The step of an optimizer: one program per parameter group, from parameters, gradients and state
to their new values.

Eagerly the program is one compiled kernel; under a trace it becomes part of the traced program.
Hyperparameters are inputs of the program, so a new learning rate does not compile again.
"""

from __future__ import annotations

import functools
import inspect
import operator
import weakref
from collections.abc import Callable
from itertools import chain, compress
from operator import is_
from typing import overload

import jax

from ..autograd.grad_mode import enable_grad, no_grad
from ..capture import scope
from ..compiled.jit import jit
from ..core.aval import IMMEDIATE, META
from ..core.device import are_several, places_of
from ..nn.parameter import is_lazy
from ..storage import commit
from ..storage.alias import assign
from ..storage.inplace_check import permit
from ..tape import mode as modes
from ..tape.mode import current_mode, switch, with_grad
from ..tape.record import apply
from ..tape.sparse_tensor import SparseTensor, is_sparse
from ..tape.symbolic_number import Varying
from ..tape.tensor import (
    Tensor,
    abstract_value,
    alias_of,
    is_tracked,
    may_have_tangents,
    spans_processes,
    wrap,
)
from .groups import as_set, options_of, raw, settings
from .initial_state import beginning, filled, new_counter
from .new_optimizers import scope_of
from .optimizer import Optimizer, StateLoader
from .options import Loss, Options
from .rules import Update
from .update_program import prepared

Part = tuple[Update, list[Tensor], list[Tensor]]

MOST_BYTES_COPIED = 2**26  # larger parameters are updated in place, smaller ones are copied


def _by_place(params, grads):
    """The parameters with their gradients; apart, in programs of their own, those that span
    processes and those that do not, and those of other devices.
    """
    places: dict[tuple, tuple[list, list]] = {}
    for param, grad in zip(params, grads, strict=True):
        place = places.setdefault((spans_processes(param), _devices_of(param)), ([], []))
        place[0].append(param)
        place[1].append(grad)
    return places.values()


def _devices_of(param) -> frozenset | None:
    """The devices that a parameter is on; None where there is one, or a trace."""
    if not are_several() or abstract_value(param).mode != IMMEDIATE:
        return None
    return frozenset(places_of(param._value))


# ---- one step


def structure_of(optimizer, active: frozenset | None = None):
    """Return what a compiled step depends on besides the values of tensors: the identities of the
    tensors in state and groups, and the rules.

    active: the positions of the parameters that have a gradient; all by default.
    """
    groups = optimizer.param_groups
    params = [raw(group, "params") for group in groups]
    states, shared = optimizer.state.values(), False
    if active is not None:
        states, shared = _split_states(optimizer.state, params, active)
    kept = tuple(map(id, chain.from_iterable(map(_values, states))))
    rules = [_rule_of(optimizer, group) for group in groups]
    return optimizer._changes, kept, shared, [tuple(map(id, members)) for members in params], rules


def _split_states(state, params, active):
    """Return the states of the active parameters, and whether others share step counters."""
    states, others = [], []
    for position, param in enumerate(chain.from_iterable(params)):
        if param in state:
            (states if position in active else others).append(state[param])
    counts = {id(param_state["step"]) for param_state in states if "step" in param_state}
    return states, any(id(param_state.get("step")) in counts for param_state in others)


@functools.lru_cache(maxsize=1024)
def structure_among(active: frozenset):
    """Return `structure_of` for the parameters at these positions."""
    return functools.partial(structure_of, active=active)


_values, _number = operator.methodcaller("values"), operator.attrgetter("id")


def _rule_of(optimizer, group):
    """Return a group's rule, the identities of the tensors among its options, and `differentiable`.

    A warm call asks for them; the group keeps them as long as its options are the same objects.
    """
    options = (*dict.values(group),)
    known = group.known_rule
    if known is None or len(options) != len(known[0]) or not all(map(is_, options, known[0])):
        named = options_of(group)
        pairs = chain.from_iterable(option for option in options if isinstance(option, tuple))
        tensors = tuple(id(value) for value in (*options, *pairs) if isinstance(value, Tensor))
        known = options, (optimizer.rule(named), tensors, named.get("differentiable", False))
        # a list may change in place
        lists = sum(isinstance(option, list) for option in options)
        group.known_rule = known if lists == 1 else None
    return known[1]


class FusedStep:
    """One call of an optimizer's `step`.

    `writes`: pairs of a tensor and its new array; `created`: what stores the state that this call
    creates; `counts`: by id the step counters that are advanced, and their arrays afterwards;
    `copies`: by id the copies of counters that are shared with parameters without a gradient;
    `new_counter`: the counter of all parameters whose state this call creates; `homes`: by id the
    devices of counters; `moved`: by id and devices the copies of counters that are shared with
    parameters on other devices.
    """

    def __init__(self, optimizer):
        self.optimizer, self.scope = optimizer, scope_of(optimizer)
        self.writes: list[tuple] = []
        self.is_complete = False
        self.created: list[functools.partial] = []
        self.counts: dict[int, tuple] = {}
        self.copies: dict[int, Tensor] = {}
        self.new_counter: Tensor | None = None
        self.homes: dict[int, frozenset] = {}
        self.moved: dict[tuple, Tensor] = {}

    def run(self):
        """Update all groups, then the step counters."""
        work, idle, sparse = [], [], []
        for number, group in enumerate(self.optimizer.param_groups):
            params, grads = [], []
            group = options_of(group) if self.scope is None else as_set(self.scope, group)
            for param in group["params"]:
                grad = param.grad
                if is_sparse(grad):
                    grad = self.optimizer.accepted(group, grad)
                if grad is None:
                    idle.append(param)
                elif is_sparse(grad):
                    sparse.append((number, group, param, grad))
                else:
                    params.append(param)
                    grads.append(grad)
            for chosen in _by_place(params, grads):
                parts = self.optimizer.parts(group, *chosen)
                work += [(number, group, *part) for part in parts]
        if self.scope is not None:
            self.guard_state(idle)
            self.undo_if_abandoned()
        dense = [param for *_, params, _ in work for param in params]
        # each of them counts its steps by itself
        apart = [param for _, _, param, _ in sparse]
        for position, param in enumerate(apart):
            self.separate_counters([*idle, *dense, *apart[:position]], [param])
            self.copies.clear()
        if idle:
            self.separate_counters(idle, dense)
        for arguments in work:
            self.update(*arguments)
        for arguments in sparse:
            self.update_sparse(*arguments)
        self.writes += self.counts.values()
        self.give([target for target, _ in self.writes], [array for _, array in self.writes])

    def give(self, targets, arrays):
        """Give tensors their new arrays, first those that are traced or share their memory."""
        plain, before = commit.are_plain(targets, arrays), commit.Before()
        done = functools.partial(setattr, self, "is_complete", True)
        try:
            for target, array, is_plain in zip(targets, arrays, plain, strict=True):
                if not is_plain:
                    before.save(target)
                    put(target, array)
            kept = ([*compress(values, plain)] for values in (targets, arrays))
            commit.give_all(*kept, [*self.created, done])
        except BaseException:
            if not self.is_complete:
                before.restore()
            raise

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

    def undo_if_abandoned(self):
        """Put the state back as it is now, if nothing comes of the trace."""
        state = self.optimizer.state
        before = {param: dict(entries) for param, entries in state.items()}
        self.scope.undo.append(functools.partial(_put_back, state, before))

    # ---- state

    def separate_counters(self, idle, active):
        """Give active parameters their own step counters where they share those of idle ones."""
        known = self.optimizer.state
        kept = {id(known[param].get("step")) for param in idle if param in known}
        for param in active if kept else ():
            count = known[param].get("step") if param in known else None
            if count is not None and id(count) in kept:
                if id(count) not in self.copies:
                    self.copies[id(count)] = wrap(count._array)
                known[param]["step"] = self.copies[id(count)]

    def separate_places(self, states, devices):
        """Give parameters on devices their own step counters where they share those of others."""
        for state in states:
            count = state["step"]
            if self.homes.setdefault(id(count), devices) != devices:
                if (id(count), devices) not in self.moved:
                    copy = wrap(jax.device_put(count._array, min(devices, key=_number)))
                    self.moved[id(count), devices] = copy
                    self.homes[id(copy)] = devices
                state["step"] = self.moved[id(count), devices]

    def state_for(self, rule, group, param):
        """Return the state of a parameter, created at its first step."""
        if not (rule.counts or rule.states):
            return {}
        state = self.optimizer.state[param]
        if rule.counts and "step" not in state:
            if self.new_counter is None:
                self.new_counter = new_counter()
            state["step"] = self.new_counter
        for name in rule.states:
            if state.get(name) is None:
                state[name] = self.optimizer.initial(group, name, param)
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
        name, _ = PARTS.get(name, (name, None))
        return (id(self.optimizer.param_groups[position]), name) in settings(self.scope)

    # ---- the program

    def update(self, position, group, rule, params, grads):
        """Run the program of one rule on parameters of a group and store its results."""
        states = [self.state_for(rule, group, param) for param in params]
        if rule.counts and (devices := _devices_of(params[0])) is not None:
            self.separate_places(states, devices)
        counts, count_of = distinct([state["step"] for state in states] if rule.counts else ())
        kept = [(state, name) for name in rule.states for state in states]
        fresh = [i for i, s in enumerate(states) if rule.states and s[rule.states[0]] is None]
        there = [state[name] for state, name in kept if state[name] is not None]
        numbers = [self.number(position, group, name) for name in rule.numbers]
        leaves = [*params, *grads, *there, *counts, *numbers]
        arrays = [x._value if isinstance(x, Tensor) else x for x in leaves]
        inputs = tuple([abstract_value(x) if isinstance(x, Tensor) else float for x in leaves])
        count_of = count_of or (0,) * len(params)
        program = prepared(type(rule), rule, count_of, tuple(fresh), inputs, len(counts))
        differentiable = group.get("differentiable", False)
        if differentiable or any(may_have_tangents(x) for x in leaves if isinstance(x, Tensor)):
            results = self.recorded(program, leaves, differentiable)
            give = follow if differentiable else follow_tangents
        else:
            results, give = program.kernel.call(*arrays), None
            results = (results,) if program.single else results
        after, size = results[len(params) :], len(params) + len(kept)
        pairs = [*zip(params, results, strict=False)]
        if len(there) == len(kept):
            pairs += zip(there, after, strict=False)
            kept = ()
        for (state, name), result in zip(kept, after, strict=False):
            if state[name] is None:
                tensor = result if isinstance(result, Tensor) else wrap(result)
                self.created.append(functools.partial(state.__setitem__, name, tensor))
            else:
                pairs.append((state[name], result))
        if give is None:
            self.writes += pairs
        else:
            for target, result in pairs:
                give(target, result)
        for count, result in zip(counts, _advanced(program, counts, results[size:]), strict=True):
            self.counts[id(count)] = count, getattr(result, "_array", result)

    def update_sparse(self, position, group, param, grad):
        """Update a parameter that has a sparse gradient."""
        with no_grad():
            pairs = self.optimizer.update_sparse(self, position, group, param, grad)
        self.writes += [(target, result._array) for target, result in pairs]

    def recorded(self, program, leaves, is_differentiable):
        """Return the results as tensors, recorded on the tape if the group is differentiable."""
        before = switch(with_grad(is_differentiable))
        try:
            results = apply(program, leaves)
        finally:
            current_mode.set(before)
        return (results,) if program.single else results


def _put_back(state, before):
    """Give the state of an optimizer the entries of before."""
    for param in [param for param in state if param not in before]:
        del state[param]
    for param, known in before.items():
        state[param].clear()
        state[param].update(known)


def _advanced(program, counts, results):
    """The step counters after a step: where parameters have no data, counters may have some."""
    return [count + 1 for count in counts] if program.mode == META else results


# hyperparameters that are parts of an option, with its name and their position in it
PARTS = {
    "beta1": ("betas", 0),
    "beta2": ("betas", 1),
    "eta_minus": ("etas", 0),
    "eta_plus": ("etas", 1),
    "smallest_step": ("step_sizes", 0),
    "largest_step": ("step_sizes", 1),
    "eps1": ("eps", 0),
    "eps2": ("eps", 1),
}


def entry(group, name):
    """Return a hyperparameter of a group."""
    if name in PARTS:
        option, position = PARTS[name]
        return raw(group, option)[position]
    return raw(group, name)


def read(reference, position, name, default):
    """A number of a group; `default` if the optimizer, created in the trace, is gone."""
    optimizer = reference()
    return default if optimizer is None else float(entry(optimizer.param_groups[position], name))


def distinct(counts) -> tuple[list, tuple[int, ...]]:
    """Return the distinct tensors, and the index of each tensor among them."""
    numbers: dict[int, int] = {}
    indices = tuple([numbers.setdefault(id(count), len(numbers)) for count in counts])
    different = {id(count): count for count in counts}
    return list(different.values()), indices


# ---- writing the results


def put(target: Tensor, array):
    """Assign an array to a tensor in place, without history."""
    permit("step", target, False)
    assign(target, wrap(array), False)


def follow(target: Tensor, source: Tensor):
    """Assign a tensor to another in place, with its history."""
    before = switch(with_grad(True))
    try:
        permit("step, of an optimizer with differentiable=True,", target, is_tracked(source))
        assign(target, source, True)
    finally:
        current_mode.set(before)


def follow_tangents(target: Tensor, source: Tensor):
    """Assign a tensor to another in place, with its tangents and without history."""
    permit("step", target, False)
    assign(target, source, False)


class FusedOptimizer(Optimizer):
    """An optimizer whose step applies a rule of `rules.py`."""

    # options that state dicts of older versions lack, which get the defaults of the signature
    added_options: tuple[str, ...] = ()

    def _loader(self) -> StateLoader:
        # a subclass may count in a step of its own
        return StateLoader(True, shares_counts=type(self).step is FusedOptimizer.step)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name in self.added_options:
                group.setdefault(name, self._default(name))

    @classmethod
    def _default(cls, name):
        """The default of an option, as the class declares it that names it among the added ones."""
        (owner, *_) = (base for base in cls.__mro__ if "added_options" in vars(base))
        return inspect.signature(owner.__init__).parameters[name].default

    def rule(self, group: Options) -> Update:
        """Return the update rule of a parameter group."""
        raise NotImplementedError(f"{type(self).__name__}.rule")

    def parts(self, group: Options, params: list[Tensor], grads: list[Tensor]) -> list[Part]:
        """Return a rule, the parameters that it updates and their gradients; and so on, if a group
        needs several rules.
        """
        return [(self.rule(group), params, grads)]

    def initial(self, group: Options, name: str, param: Tensor) -> Tensor | None:
        """Return the initial state of that name; None if the rule creates it from the first
        gradient.
        """
        return filled(param, 0)

    def accepted(self, group: Options, gradient: SparseTensor) -> Tensor:
        """Return a sparse gradient in the layout of this optimizer's rule. Raises RuntimeError if
        it takes none.
        """
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def update_sparse(
        self,
        step: FusedStep,
        position: int,
        group: Options,
        param: Tensor,
        gradient: SparseTensor,
    ) -> list[tuple[Tensor, Tensor]]:
        """Return pairs of a tensor and its new value, for a parameter with a sparse gradient."""
        raise NotImplementedError(f"{type(self).__name__}.update_sparse")

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], Loss]) -> Loss: ...

    def step(self, closure: Callable[[], Loss] | None = None) -> Loss | None:
        """Update the parameters that have a `.grad`.

        closure: called first, with grad mode enabled; returns the loss, which `step` then returns.
        For an example see the optimizer's class.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if modes.scope.get() is None and self._is_large():
            self._update_in_place()
        else:
            self._update()
        return loss

    def _update(self):
        if modes.scope.get() is None:
            FusedStep(self).run()
            return
        with beginning(self):
            FusedStep(self).run()

    def _is_large(self) -> bool:
        """Whether two copies of parameters and state are too much memory."""
        known = self._in_place.size
        if known is None or known[0] != self._changes:
            params = [*chain.from_iterable(raw(group, "params") for group in self.param_groups)]
            if any(map(is_lazy, params)):
                return False  # their size is not known yet
            known = self._changes, sum(param.nbytes for param in params)
            self._in_place.size = known
        return known[1] >= MOST_BYTES_COPIED

    def _update_in_place(self):
        """`_update` as a compiled function, which gives the results the memory of what they replace
        where nothing else refers to it.
        """
        if not self._is_plain():
            self._update()
            return
        if self._in_place.update is None:
            self._in_place.update = jit(self._update, verify=0)
            self._in_place.update.rename(type(self).__name__)
        self._in_place.update()

    def _is_plain(self) -> bool:
        """Whether parameters have arrays of their own and dense gradients, and no step is recorded
        on the tape.
        """
        params = [*chain.from_iterable(raw(group, "params") for group in self.param_groups)]
        return (
            not any(dict.get(group, "differentiable") for group in self.param_groups)
            and all(map(_is_alone, params))
            and len({*map(_devices_of, params)}) < 2
            and not any(is_sparse(param.grad) for param in params)
        )


def _is_alone(param) -> bool:
    """Whether a parameter has an array of its own, in this process."""
    return alias_of(param) is None and abstract_value(param).mode == IMMEDIATE
