"""Parameter groups, and the guards and side effects on them in compiled functions."""

from __future__ import annotations

import copy
import functools
import weakref

from ..autograd.grad_mode import no_grad
from ..capture import scope as tracing
from ..core import dtypes
from ..core.device import device_of_jax
from ..frontend import factories
from ..state.guards import ObjectRead
from ..tape import mode
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor
from .new_optimizers import is_new

VARIES = (
    "param_groups[...][{!r}] is set to a tuple with a symbolic number in a function that "
    "jaxgrad.jit is tracing: set it before the call, where a new value does not trace again"
)

UNKNOWN = (
    "param_groups[...][{!r}] after the step of a scheduler in a function that jaxgrad.jit is "
    "tracing. There schedulers step after the call: read and set the option before the step, or "
    "outside"
)

REMOVES = (
    "the option {!r} of param_groups[...] is removed in a function that jaxgrad.jit is tracing: "
    "remove it outside"
)


class Group(dict):
    """The options of a parameter group, with its `"params"`.

    In a function compiled by `jaxgrad.jit`, options that the function reads are guarded, and those
    that it sets are set again after each call. An optimizer's own `step` does not use this: its
    numbers are inputs of the program.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=0.5)
    >>> halve = jaxgrad.jit(lambda: optimizer.param_groups[0].update(lr=0.25))
    >>> halve()
    >>> optimizer.param_groups[0]["lr"]
    0.25
    """

    # known_rule: what a compiled step has found out about the options, see fused_step.py
    # waits_for: a weak reference to the scope after whose calls a scheduler sets options
    # owner: a weak reference to the optimizer, where the function being traced has made that
    __slots__ = ("__weakref__", "known_rule", "owner", "waits_for")

    def __new__(cls, *_, **__):
        group = super().__new__(cls)
        group.known_rule = group.waits_for = group.owner = None
        return group

    def owned_by(self, optimizer) -> Group:
        """Belong to an optimizer; gives the group itself."""
        self.owner = weakref.ref(optimizer) if is_new(optimizer) else None
        return self

    def _scope(self):
        """The scope to which reads and settings are reported."""
        is_plain = self.owner is not None and is_new(self.owner())
        return None if is_plain else mode.scope.get()

    def __getstate__(self):
        return None  # files hold the options alone

    def __deepcopy__(self, memo):
        # a plain dict, as in PyTorch: it may leave a compiled function
        options = memo[id(self)] = {}
        options.update({name: copy.deepcopy(value, memo) for name, value in self.copied().items()})
        return options

    def copied(self) -> dict:
        """The options for a copy. In a trace a float among them is a symbolic number, which each
        call reads anew, unless the function looks at it.
        """
        scope = self._scope()
        return options_of(self) if scope is None else {n: self._copied(scope, n) for n in self}

    def _copied(self, scope, name):
        value, around, place = raw(self, name), outermost(scope), (id(self), name)
        is_constant = around.rebound is None or place in around.looked_at
        if type(value) is not float or is_constant or place in settings(scope):
            return self[name]
        self._refuse_unknown(scope, name)
        scope.objects.guard(self, _kinds)
        around.rebound.add(place)
        return scope.number(functools.partial(_option, weakref.ref(self), name, value), place)

    def __getitem__(self, name):
        scope = self._scope()
        known = None
        if scope is not None:
            self._refuse_unknown(scope, name)
            known = settings(scope).get((id(self), name))
        if known is not None:
            return known.option
        value = raw(self, name)
        if scope is None or isinstance(value, Tensor):
            return value
        if name == "params":
            scope.objects.guard(self, _params)
        else:
            scope.objects.guard_attribute(self, name)
        return value

    def get(self, name, default=None):
        try:
            return self[name]
        except KeyError:
            self.keys()  # guards on the names: it may be set later
            return default

    def __contains__(self, name):
        return name in self.keys()

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def keys(self):
        scope = self._scope()
        if scope is None:
            return dict.keys(self)
        scope.objects.guard(self, _names)
        return as_set(scope, self).keys()

    def items(self):
        return dict.items(self if self._scope() is None else {n: self[n] for n in self})

    def values(self):
        return dict.values(self if self._scope() is None else {n: self[n] for n in self})

    def setdefault(self, name, default=None):
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, entries):
        self.update(entries)
        return self

    def __delitem__(self, name):
        self._refuse(name)
        dict.__delitem__(self, name)

    def pop(self, name, *default):
        self._refuse(name)
        return dict.pop(self, name, *default)

    def _refuse(self, name):
        if self._scope() is not None:
            raise RuntimeError(REMOVES.format(name))
        self.known_rule = None

    def is_waiting(self, scope) -> bool:
        """Whether a scheduler steps after the calls of the function being traced."""
        return self.waits_for is not None and self.waits_for() is outermost(scope)

    def _refuse_unknown(self, scope, name):
        """Raise RuntimeError for an option that a scheduler may set after the call."""
        if name not in ("params", "initial_lr") and self.is_waiting(scope):
            raise RuntimeError(UNKNOWN.format(name))

    def __setitem__(self, name, value):
        scope = self._scope()
        if scope is not None:
            self._refuse_unknown(scope, name)
        if scope is None or isinstance(value, Tensor | list):
            if scope is not None:
                outermost(scope).undo.append(functools.partial(self._put_back, options_of(self)))
            dict.__setitem__(self, name, value)
            return
        if isinstance(value, tuple) and any(isinstance(part, Varying) for part in value):
            raise RuntimeError(VARIES.format(name))
        known = settings(scope).setdefault((id(self), name), AssignedOption(self, name))
        known.take(value)
        scope.objects.record_set(known, "value")

    def update(self, *entries, **options):
        for name, value in dict(*entries, **options).items():
            self[name] = value

    def _put_back(self, options: dict):
        """Hold these options again, since the trace is discarded."""
        dict.clear(self)
        dict.update(self, options)

    def __getattr__(self, name):
        """An option as an attribute, for guards."""
        if not dict.__contains__(self, name):
            raise AttributeError(f"a parameter group has no option {name!r}")
        return raw(self, name)

    reinstate = dict.__setitem__  # an option, for a replay


raw = dict.__getitem__


def options_of(group) -> dict:
    """The options, without guards."""
    return dict(dict.items(group))


class OptimizerRead(ObjectRead):
    """The result of `read` for an optimizer. `hooks`, `options`: its hooks and options, for a
    replay.
    """

    __slots__ = ("hooks", "options")

    def __init__(self, owner, read, value):
        super().__init__(owner, read, value)
        optimizer = owner()
        self.hooks = dict(optimizer._before_step), dict(optimizer._after_step)
        self.options = list(map(_plain_options, optimizer.param_groups))

    def contents_of_trace(self):
        optimizer = self.owner()
        hooks = zip((optimizer._before_step, optimizer._after_step), self.hooks, strict=True)
        groups = zip(optimizer.param_groups, self.options, strict=False)
        return [*hooks, *[(group, {**options_of(group), **known}) for group, known in groups]]


def _plain_options(group) -> dict:
    """The options but for tensors, which a program captures, and does not keep alive."""
    plain = {}
    for name, value in dict.items(group):
        parts = value if isinstance(value, tuple | list) else (value,)
        if not any(isinstance(part, Tensor) for part in parts):
            plain[name] = value
    return plain


def _names(group) -> list:
    return [*dict.__iter__(group)]


def _params(group) -> list:
    return [*map(id, raw(group, "params"))]


def _kinds(group) -> list:
    return [*map(type, dict.values(group))]


def _option(reference, name, default):
    """An option of a group; `default` if the group, created in the trace, is gone."""
    group = reference()
    return default if group is None else raw(group, name)


class AssignedOption:
    """An option assigned while tracing; `value` is the side effect that assigns it after each call.

    `tensor`: for a symbolic number, the tensor in which each call leaves its value.
    """

    def __init__(self, group, name):
        self.group, self.name, self.tensor = group, name, None

    def take(self, option):
        self.option = option
        if not isinstance(option, Varying):
            self.tensor = None
            return
        with tracing.outside():
            kind = dtypes.int64 if option.kind is int else dtypes.float64
            self.tensor = factories.zeros((), dtype=kind, device=device_of_jax())
        with no_grad():
            self.tensor.fill_(option)

    @property
    def value(self):
        # a new tuple each time, so that it counts as changed and is set after each call
        if self.tensor is not None:
            self.option = None
        return self, self.option, self.tensor

    @value.setter
    def value(self, triple):
        _, option, tensor = triple
        self.group[self.name] = option if tensor is None else tensor.item()


# by the outermost scope, then by the id of a group and the name of an option
_settings = weakref.WeakKeyDictionary()


def settings(scope) -> dict[tuple, AssignedOption]:
    """The options that the function being traced has set."""
    return _settings.setdefault(outermost(scope), {})


def outermost(scope):
    while scope.parent is not None:
        scope = scope.parent
    return scope


def as_set(scope, group) -> dict:
    """The options of a group, with those that the function being traced has set."""
    options = options_of(group)
    for (owner, name), setting in settings(scope).items():
        if owner == id(group):
            options[name] = setting.option
    return options


def named(params) -> tuple[list | None, list]:
    """Return the names of parameters, or None, and the parameters."""
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of "
            "tensors in sets will change between runs. Please use a list instead."
        )
    params = [params] if isinstance(params, Tensor) else list(params)
    pairs = [entry for entry in params if isinstance(entry, tuple)]
    if not pairs:
        return None, params
    if len(pairs) < len(params):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    return [name for name, _ in pairs], [param for _, param in pairs]
