"""`Optimizer`: parameter groups with options, and the state of each parameter."""

from __future__ import annotations

import copy
import functools
import importlib
import itertools
import operator
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

from ..autograd._profiler.record_function import record_function
from ..core import dtypes, executor
from ..core.device import chosen_place, device_of_jax
from ..core.pytorch_tensors import type_name
from ..core.tracebacks import hide_frames, shows_users_frames, users_stacklevel
from ..frontend import tensor_data
from ..names.missing import missing_in
from ..storage.commit import clear_gradients
from ..tape.hooks import Hooks, RemovableHandle, register, share
from ..tape.symbolic_number import Varying
from ..tape.tensor import PLAIN_TENSORS, Tensor, is_concrete, wrap
from .groups import Group, OptimizerRead, named
from .new_optimizers import note_new, scope_of
from .options import Loss, Options, Params

# The default of an option that each group must set.
required = object()

NOT_A_LEAF = (
    "can't optimize a non-leaf Tensor: shape {}, computed by {}. Give the optimizer the leaf from "
    "which it was computed, or detach().requires_grad_() it"
)
DUPLICATES = (
    "optimizer contains a parameter group with duplicate parameters; in future, this will cause an "
    "error; see github.com/pytorch/pytorch/issues/40967 for more information"
)

_before_steps, _after_steps = share(Hooks()), share(Hooks())


def register_optimizer_step_pre_hook(hook: _StepPreHook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer.

    Returns a handle with `remove()`. The hook may return a new `(args, kwargs)`.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)])
    >>> register = jaxgrad.optim.optimizer.register_optimizer_step_pre_hook
    >>> handle = register(lambda optimizer, args, kwargs: print("before"))
    >>> optimizer.step()
    before
    >>> handle.remove()
    """
    return register(_before_steps, hook)


def register_optimizer_step_post_hook(hook: _StepPostHook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer.

    Returns a handle with `remove()`.

    >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)])
    >>> register = jaxgrad.optim.optimizer.register_optimizer_step_post_hook
    >>> handle = register(lambda optimizer, args, kwargs: print("after"))
    >>> optimizer.step()
    after
    >>> handle.remove()
    """
    return register(_after_steps, hook)


class _InPlace:
    """The state of an optimizer's steps in place, which fused_step.py makes.

    `size`: the bytes of its parameters, after the number of changes of its groups; `update`: the
    compiled step.
    """

    __slots__ = ("size", "update")  # slots are no state of the user

    def __init__(self):
        self.size = self.update = None


def _check_state(state_dict):
    """Raise AttributeError or KeyError for what is no state of an optimizer."""
    if not isinstance(state_dict, Mapping):
        raise AttributeError(
            "Optimizer.load_state_dict takes what state_dict() of an optimizer gave, not "
            f"{type_name(state_dict)}"
        )
    if "param_groups" not in state_dict:
        raise KeyError(
            "'param_groups': Optimizer.load_state_dict takes what state_dict() of an optimizer "
            f"gave, and this dict has the keys {list(state_dict)[:5]}"
        )


def _is_list_of_tensors(module) -> bool:
    """Whether a module gives its parameters when it is iterated over: a `ParameterList` does."""
    return isinstance(module, Iterable) and all(isinstance(item, Tensor) for item in module)


class Optimizer:
    """The base class of optimizers.

    params: an iterable of tensors, of pairs `(name, tensor)`, or of dicts, each a group of options
    with such an iterable as `"params"`. defaults: the options of groups that do not set them.

    A subclass defines `step`, and may keep state in `self.state[parameter]`, a dict. Raises
    TypeError for parameters that are no tensors, ValueError for no parameters, for one that is not
    a leaf and for one in two groups.

    >>> class Signs(jaxgrad.optim.Optimizer):
    ...     @jaxgrad.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for param in group["params"]:
    ...                 param.sub_(group["lr"] * param.grad.sign())
    >>> x = jaxgrad.tensor([1.0, -1.0], requires_grad=True)
    >>> optimizer = Signs([x], {"lr": 0.5})
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5000, -0.5000], requires_grad=True)
    """

    # reported to a trace by the optimizer, not observed
    _reported = frozenset(
        (
            "_changes",
            "_stepping",
            "_opt_called",
            "_is_scheduled",
            "_is_traced",
            "_in_place",
        )
    )
    _read_guard = OptimizerRead
    defaults: Options
    state: defaultdict[Any, Any]  # by parameter
    # other code reads `param_groups` too
    _reported_when_set = _reported | {"param_groups"}

    def __new__(cls, *args, **kwargs):
        # not in `__init__`: wrappers of another optimizer share its groups and do not call it
        optimizer = super().__new__(cls)
        optimizer._set_up()
        return optimizer

    def __init__(self, params: Params, defaults: Options):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got one Tensor of shape {list(params.shape)}: put it into a list"
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        if hasattr(params, "named_parameters") and not _is_list_of_tensors(params):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got the module {type(params).__name__}: pass its parameters()"
            )
        if not isinstance(params, Iterable):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {type_name(params)}{': call it' if callable(params) else ''}"
            )
        groups = list(params)
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list: a generator such as parameters() gives its "
                "tensors to one optimizer only, and a module has no parameters of layers in a list "
                "or dict of Python: use nn.ModuleList or nn.ModuleDict"
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    @property
    def param_groups(self) -> list[Options]:
        """The groups of parameters, each a dict with its `"params"` and its options. Settable."""
        try:
            return self.__dict__["param_groups"]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no param_groups yet") from None

    @param_groups.setter
    def param_groups(self, groups: list[Options]):
        if not all(isinstance(group, Group) for group in groups):
            groups = [Group(group).owned_by(self) for group in groups]
        self.__dict__["param_groups"] = groups

    def _set_up(self):
        note_new(self)
        self._changes, self._stepping = 0, False
        self._in_place = _InPlace()
        self._opt_called = self._is_scheduled = self._is_traced = False
        self._before_step, self._after_step = Hooks(), Hooks()
        self._before_saving, self._after_saving = Hooks(), Hooks()
        self._before_loading, self._after_loading = Hooks(), Hooks()

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = shows_users_frames(cls.__dict__["__init__"])
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a step with the hooks of steps, which those of subclasses have anyway."""
        return _with_hooks(func)

    def __getstate__(self):
        # plain dicts, as in PyTorch's files; in a trace the options of a copy are constants
        groups = [dict(group.items()) for group in self.param_groups]
        return {"defaults": self.defaults, "state": self.state, "param_groups": groups}

    def __setstate__(self, state):
        """Restore what `__getstate__` or `load_state_dict` provides."""
        self.__dict__.update(state)
        self.param_groups = [Group(group).owned_by(self) for group in self.param_groups]
        self.defaults.setdefault("differentiable", False)
        loader = self._loader()
        for values in self.state.values():
            for key in values.keys() & _SCALARS if isinstance(values, dict) else ():
                if not isinstance(values[key], Tensor):
                    values[key] = loader.copy(values[key], None, key)
        self._changes += 1

    def __repr__(self):
        lines = []
        for number, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {number}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return f"{type(self).__name__} (" + "\n".join(lines) + "\n)"

    def _repr_html_(self):
        # imported late: few programs show optimizers in notebooks
        return importlib.import_module(f"{__package__}.optimizer_html").of_optimizer(self)

    # ---- groups

    def add_param_group(self, param_group: Options) -> None:
        """Add a group: a dict of options, with its parameters as `"params"`.

        Errors are those of the constructor; also ValueError for a required option that is missing.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)], lr=0.1)
        >>> further = {"params": [jaxgrad.ones(2, requires_grad=True)], "lr": 0.5}
        >>> optimizer.add_param_group(further)
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.5]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        names, params = named(param_group["params"])
        for param in params:
            self._check(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
        if len(set(params)) < len(params):
            warnings.warn(DUPLICATES, stacklevel=users_stacklevel())
        for group in self.param_groups:
            if (names is not None) != ("param_names" in group):
                kind = "with names" if names is not None else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {kind} to the optimizer"
                )
            if not set(params).isdisjoint(group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(Group(param_group).owned_by(self))
        self._changes += 1

    def _check(self, param):
        if not isinstance(param, Tensor):
            raise TypeError(
                "optimizer can only optimize Tensors, but one of the params is "
                f"{type_name(param)}: pass model.parameters(), or the values of a dict"
            )
        if self.defaults.get("differentiable") or param.is_leaf or param.retains_grad:
            return
        raise ValueError(NOT_A_LEAF.format(list(param.shape), param.grad_fn.name()))

    def _check_rates(self, scope):
        if any(group.is_waiting(scope) for group in self.param_groups):
            raise RuntimeError(
                f"{type(self).__name__}.step() after the step of a scheduler in a function that "
                "jaxgrad.jit is tracing. There schedulers step after the call: step the scheduler "
                "last, or outside"
            )

    def _cuda_graph_capture_health_check(self) -> None:
        # optimizers of packages call it in each step; XLA captures no kernels, so any step may run
        pass

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set `.grad` of all parameters to None, or with `set_to_none=False` fill it with zeros.

        >>> x = jaxgrad.ones(1, requires_grad=True)
        >>> x.sum().backward()
        >>> jaxgrad.optim.SGD([x]).zero_grad()
        >>> x.grad is None
        True
        """
        params = [param for group in self.param_groups for param in group["params"]]
        if set_to_none:
            clear_gradients(params)
            return
        for param in params:
            if param.grad is not None:
                _clear(param.grad)

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], Loss]) -> Loss: ...

    def step(self, closure: Callable[[], Loss] | None = None) -> Loss | None:
        """Update the parameters; a subclass defines it.

        closure: evaluates the model again and returns the loss.
        """
        raise NotImplementedError(f"{type(self).__name__}.step")

    # ---- hooks

    def register_step_pre_hook(self, hook: _StepPreHook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return a new `(args,
        kwargs)`.

        Returns a handle with `remove()`.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)])
        >>> handle = optimizer.register_step_pre_hook(lambda *arguments: print("before"))
        >>> optimizer.step()
        before
        """
        return register(self._before_step, hook)

    def register_step_post_hook(self, hook: _StepPostHook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step.

        Returns a handle with `remove()`.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)])
        >>> handle = optimizer.register_step_post_hook(lambda *arguments: print("after"))
        >>> optimizer.step()
        after
        """
        return register(self._after_step, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`.

        prepend: call it before the hooks registered so far. Returns a handle with `remove()`.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)])
        >>> handle = optimizer.register_state_dict_pre_hook(lambda optimizer: print("saving"))
        >>> state = optimizer.state_dict()
        saving
        """
        return _register(self._before_saving, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: _StateDictHook, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another dict.

        prepend: call it before the hooks registered so far. Returns a handle with `remove()`.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)])
        >>> handle = optimizer.register_state_dict_post_hook(lambda _, state: state | {"a": 1})
        >>> optimizer.state_dict()["a"]
        1
        """
        return _register(self._after_saving, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: _StateDictHook, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`, with a shallow copy of the
        dict.

        The hook may return another dict. prepend: call it before the hooks registered so far.
        Returns a handle with `remove()`.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)])
        >>> handle = optimizer.register_load_state_dict_pre_hook(lambda _, s: print(list(s)))
        >>> optimizer.load_state_dict(optimizer.state_dict())
        ['state', 'param_groups']
        """
        return _register(self._before_loading, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after `load_state_dict`.

        prepend: call it before the hooks registered so far. Returns a handle with `remove()`.

        >>> optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)])
        >>> handle = optimizer.register_load_state_dict_post_hook(lambda optimizer: print("loaded"))
        >>> optimizer.load_state_dict(optimizer.state_dict())
        loaded
        """
        return _register(self._after_loading, hook, prepend)

    # ---- saving and loading

    def state_dict(self) -> Options:
        """Return `{"state": ..., "param_groups": ...}` with integers for parameters, as PyTorch
        does.

        >>> x = jaxgrad.ones(1, requires_grad=True)
        >>> optimizer = jaxgrad.optim.SGD([x], lr=0.1, momentum=0.9)
        >>> x.grad = jaxgrad.ones(1)
        >>> optimizer.step()
        >>> optimizer.state_dict()["state"]
        {0: {'momentum_buffer': tensor([1.])}}
        """
        for hook in list(self._before_saving.values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups, begin = [], 0
        for group in self.param_groups:
            for number, param in enumerate(group["params"], begin):
                numbers.setdefault(id(param), number)
            begin += len(group["params"])
            packed = {key: value for key, value in group.copied().items() if key != "params"}
            groups.append(packed | {"params": [numbers[id(param)] for param in group["params"]]})
        known: set[int] = set()
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: _with_own_step(value, known)
            for key, value in self.state.items()
        }
        return _run_hooks(self._after_saving, self, {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: Options) -> None:
        """Copy the state of a `state_dict`, from here or PyTorch, in the dtypes of the parameters,
        and to their devices.

        Raises ValueError if the numbers of groups or of their parameters differ.

        >>> x = jaxgrad.ones(1, requires_grad=True)
        >>> state = jaxgrad.optim.SGD([x], lr=0.1).state_dict()
        >>> optimizer = jaxgrad.optim.SGD([x], lr=0.5)
        >>> optimizer.load_state_dict(state)
        >>> optimizer.param_groups[0]["lr"]
        0.1
        """
        _check_state(state_dict)
        loaded = _run_hooks(self._before_loading, self, state_dict.copy())
        groups = [dict(group) for group in loaded["param_groups"]]
        if len(groups) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(groups)}, and the optimizer has {len(self.param_groups)}"
            )
        for known, group in zip(self.param_groups, groups, strict=True):
            if len(known["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    f"optimizer's group: {len(group['params'])} parameters, and the optimizer has "
                    f"{len(known['params'])} there"
                )
        param_of = {
            number: param
            for known, group in zip(self.param_groups, groups, strict=True)
            for number, param in zip(group["params"], known["params"], strict=True)
        }
        loader = self._loader()
        state = defaultdict(dict)
        for key, value in loaded["state"].items():
            param = param_of.get(key)
            state[key if param is None else param] = loader.copy(value, param)
        for known, group in zip(self.param_groups, groups, strict=True):
            group.update({k: loader.copy(v, None) for k, v in group.items() if k != "params"})
            group["params"] = known["params"]
            if "param_names" in known:
                group.setdefault("param_names", known["param_names"])
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._after_loading.values()):
            hook(self)

    def _loader(self) -> StateLoader:
        return StateLoader()


_Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_StepPreHook = Callable[[Optimizer, tuple[Any, ...], dict[str, Any]], _Arguments | None]
_StepPostHook = Callable[[Optimizer, tuple[Any, ...], dict[str, Any]], None]
_StateDictHook = Callable[[Optimizer, Options], Options | None]


# by the names that PyTorch has for them
ParamsT = Params
Optimizer.OptimizerPreHook, Optimizer.OptimizerPostHook = _StepPreHook, _StepPostHook
for _name, _place in {
    "_optimizer_step_pre_hooks": "_before_step",
    "_optimizer_step_post_hooks": "_after_step",
    "_optimizer_state_dict_pre_hooks": "_before_saving",
    "_optimizer_state_dict_post_hooks": "_after_saving",
    "_optimizer_load_state_dict_pre_hooks": "_before_loading",
    "_optimizer_load_state_dict_post_hooks": "_after_loading",
}.items():
    setattr(Optimizer, _name, property(operator.attrgetter(_place)))
_global_optimizer_pre_hooks, _global_optimizer_post_hooks = _before_steps, _after_steps


# state that is a number in state dicts of older versions
_SCALARS = frozenset(("step", "mu_product", "eta", "mu"))


class StateLoader:
    """Copies values of a state dict.

    counts_in_tensors: whether numbers that count become tensors. shares_counts: whether equal step
    counters become one tensor; an optimizer that counts in place would count for all parameters.
    """

    def __init__(self, counts_in_tensors: bool = False, shares_counts: bool = False):
        self.counts_in_tensors, self.shares_counts = counts_in_tensors, shares_counts
        self.counts: dict[tuple, Tensor] = {}

    def copy(self, value: Any, param: Tensor | None, key: str | None = None) -> Any:
        """Copy a value of the state of `param`, or of a group if that is None; `key`: its name."""
        if isinstance(value, Tensor) or hasattr(value, "__array__"):
            return self.tensor(value, param, key)
        if self.counts_in_tensors and key in _SCALARS and isinstance(value, int | float):
            wide = dtypes.get_default_dtype() is dtypes.float64
            kind = dtypes.float64 if wide else dtypes.float32
            tensor = tensor_data.tensor(float(value), dtype=kind, device=device_of_jax())
            return self.count(tensor) if key == "step" else tensor
        if isinstance(value, dict):
            return {name: self.copy(item, param, name) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)([self.copy(item, param) for item in value])
        # a symbolic number becomes a constant, as which the function is traced again
        return value.kind(value) if type(value) is Varying else copy.deepcopy(value)

    def tensor(self, value: Any, param: Tensor | None, key: str | None) -> Tensor:
        if not isinstance(value, Tensor):
            value = tensor_data.as_tensor(value, device=device_of_jax())
        if key == "step":
            return self.count(value)
        if param is not None and (param.is_meta != value.is_meta or _is_elsewhere(value, param)):
            value = value.to(param.device)
        kind = None if param is None else param.dtype
        if kind is not None and (
            kind.is_floating_point or (kind.is_complex and value.is_complex())
        ):
            value = value.detach().to(kind)
        return wrap(value._array)

    def count(self, value: Tensor) -> Tensor:
        if not self.shares_counts:
            return wrap(value._array)
        key = value.dtype, value.item() if is_concrete(value) else id(value)
        return self.counts.setdefault(key, wrap(value._array))


def _is_elsewhere(value, param) -> bool:
    """Whether a parameter was moved to one device, on which a tensor is not."""
    place = chosen_place(param._value)
    return place is not None and len(place) == 1 and place != chosen_place(value._value)


def _with_own_step(state, known: set[int]):
    """The state of a parameter, with another counter of steps in place of one that is `known`.

    Parameters share it, and PyTorch, which may load the state, would count in place for each.
    """
    step = state.get("step") if isinstance(state, dict) else None
    if not isinstance(step, Tensor):
        return state
    if id(step) in known:
        return state | {"step": wrap(step._array)}
    known.add(id(step))
    return state


def _run_hooks(hooks, optimizer, state_dict):
    """Pass a state dict through hooks."""
    for hook in list(hooks.values()):
        result = hook(optimizer, state_dict)
        state_dict = state_dict if result is None else result
    return state_dict


def _register(hooks, hook, prepend):
    handle = register(hooks, hook)
    if prepend:
        others = [(key, hooks.pop(key)) for key in list(hooks) if key != handle.id]
        hooks.update(others)
    return handle


def _clear(gradient):
    if gradient.grad_fn is not None:
        gradient.detach_()
    else:
        gradient.requires_grad_(False)
    gradient.zero_()


def _with_hooks(step):
    """Wrap a `step` with hooks, which do not run for nested calls of `super().step()`."""
    if getattr(step, "has_hooks", False):
        return step

    @functools.wraps(step)
    def call(self, *args, **kwargs):
        if self._stepping:
            return step(self, *args, **kwargs)
        scope = scope_of(self)
        if scope is not None:
            self._is_traced = True
            self._check_rates(scope)
            scope.objects.guard(self, _step_hooks)
        self._stepping = self._opt_called = True
        try:
            if not executor.observers:
                return _step_with_hooks(step, self, args, kwargs)
            with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                return _step_with_hooks(step, self, args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise
        finally:
            self._stepping = False

    call.has_hooks = True
    return call


def _step_hooks(optimizer) -> tuple:
    """The numbers of the hooks that a step runs."""
    before, after = optimizer._before_step, optimizer._after_step
    return tuple(_before_steps), tuple(before), tuple(after), tuple(_after_steps)


def _step_with_hooks(step, optimizer, args, kwargs):
    before = itertools.chain(_before_steps.values(), optimizer._before_step.values())
    for hook in list(before):
        answer = hook(optimizer, (optimizer, *args), kwargs)
        if answer is None:
            continue
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise RuntimeError(
                f"{step} must return None or a tuple of (new_args, new_kwargs), but got {answer}."
            )
        (_, *args), kwargs = answer
    result = step(optimizer, *args, **kwargs)
    for hook in list(itertools.chain(optimizer._after_step.values(), _after_steps.values())):
        hook(optimizer, (optimizer, *args), kwargs)
    return result


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The kinds of devices whose parameters take `capturable=True`: all, since XLA compiles each
    step.
    """
    return ["cpu", "cuda", "tpu"]


def _default_to_fused_or_foreach(
    params: list, differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether an optimizer for these parameters takes a fused step by default, and whether it takes
    one by `torch._foreach_NAME`: the latter on GPUs, neither if it is `differentiable`.
    """
    params = [param for param in params if param is not None]
    if differentiable or any(type(param) not in PLAIN_TENSORS for param in params):
        return False, False
    fused = use_fused and all(param.is_floating_point() for param in params)
    return fused, not fused and all(param.device.type == "cuda" for param in params)


__getattr__ = missing_in(__name__)
