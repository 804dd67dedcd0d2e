"""The hooks of modules: those of one module, and those of all, as torch.nn.modules.module
registers them.

>>> from jaxgrad.nn.modules.module import register_module_forward_hook
>>> with register_module_forward_hook(lambda module, args, output: print(type(module).__name__)):
...     _ = jaxgrad.nn.Linear(2, 1)(jaxgrad.ones(2))
Linear
"""

from __future__ import annotations

import copy
import functools
import operator
import types
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..core.tracebacks import users_stacklevel
from ..state.guards import ObjectRead
from ..tape.hooks import Hooks, RemovableHandle, register, share
from ..tape.tensor import Tensor

VALUE = operator.attrgetter("_changes.value")


class Changes:
    """A counter of the changes of a module, on which traced programs depend.

    `value`: the number of assignments to attributes other than `training`.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self):
        self.value = 0

    def count(self) -> None:
        """Record a change."""
        self.value += 1


class ModuleHooks(Hooks):
    """The hooks of a module; adding or removing one invalidates the programs traced with it."""

    __slots__ = ("changes",)

    def __init__(self, changes: Changes):
        super().__init__()
        self.changes = changes

    def __setitem__(self, number: int, hook: Callable[..., Any]) -> None:
        super().__setitem__(number, hook)
        self.changes.count()

    def pop(self, *arguments: Any) -> Any:
        self.changes.count()
        return super().pop(*arguments)

    def clear(self) -> None:
        self.changes.count()
        super().clear()

    def __deepcopy__(self, memo):
        result = ModuleHooks(copy.deepcopy(self.changes, memo))
        result.update(self)
        return result

    def __reduce__(self):
        # the hooks last: each counts as a change
        return ModuleHooks, (self.changes,), None, None, iter(self.items())


class ModuleRead(ObjectRead):
    """The count of changes of a module, or of the hooks of all. `members`: its submodules, weakly,
    and its hooks; `attributes`: its own other attributes, objects weakly.
    """

    __slots__ = ("attributes", "members")

    def __init__(self, owner: Any, read: Any, value: Any):
        super().__init__(owner, read, value)
        module = owner()
        self.members = [[*map(_member, held.items())] for held in module._replayed]
        self.attributes = [*map(_member, _attributes(module).items())]

    def contents_of_trace(self) -> list[Any]:
        module = self.owner()
        if any(_is_gone(member) for held in self.members for _, member in held):
            raise RuntimeError(
                "a derivative runs a function again that was compiled by jaxgrad.jit, and a "
                f"submodule of the {type(module).__name__} that it uses is gone"
            )
        contents = [{name: _value(member) for name, member in held} for held in self.members]
        present, attributes = vars(module), _attributes(module)
        kept = {name: value for name, value in present.items() if name not in attributes}
        kept |= {n: _value(member) for n, member in self.attributes if not _is_gone(member)}
        return [*zip(module._replayed, contents, strict=True), (present, kept)]


def _member(pair) -> tuple:
    name, member = pair
    is_weak = type(member).__weakrefoffset__ and not isinstance(member, _FUNCTIONS)
    return name, _Weak(member) if is_weak else member


class _Weak(weakref.ref):
    """A reference to a member, and no member that is one."""

    __slots__ = ()


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


def _value(known):
    return known() if type(known) is _Weak else known


def _is_gone(known) -> bool:
    return type(known) is _Weak and known() is None


def _attributes(module) -> dict:
    """The attributes of a module that code sets, but for tensors, which a program captures."""
    return {
        name: value
        for name, value in vars(module).items()
        if name[0] != "_" and name != "training" and not isinstance(value, Tensor)
    }


class ForwardHook(NamedTuple):
    """A forward hook and its options. The hooks of a module hold the function alone of one without
    options: programs look for theirs in `module._forward_pre_hooks.values()`.
    """

    function: Any
    with_kwargs: bool = False
    always_call: bool = False

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def with_options(hook: Callable[..., Any]) -> ForwardHook:
    return hook if isinstance(hook, ForwardHook) else ForwardHook(hook)


def hook_node_of_output(hook, module, args, output):
    """The forward hook by which a backward hook follows the first tensor of the output."""
    first = output
    while not isinstance(first, Tensor):
        is_dict = isinstance(first, dict)
        first = next(v for v in first.values() if isinstance(v, Tensor)) if is_dict else first[0]
    if first.grad_fn is None:
        return
    reason = _missed_by(first.grad_fn, args, output)
    if reason:
        warnings.warn(f"{reason}. {FULL_INSTEAD}", FutureWarning, stacklevel=users_stacklevel())
    first.grad_fn.register_hook(functools.partial(hook, module))


FULL_INSTEAD = (
    "That is deprecated and will be removed in future versions. This hook will be missing some of "
    "the grad_input or grad_output. Please use register_full_backward_hook to get the documented "
    "behavior."
)


def _missed_by(node, args, output) -> str:
    """Why a backward hook that follows a node does not see all gradients of a module, or ""."""
    for does, values in (("does not return", output), ("does not take as input", args)):
        parts = values if isinstance(values, tuple) else (values,)
        if not all(isinstance(part, Tensor) for part in parts):
            return (
                f"Using non-full backward hooks on a Module that {does} a single Tensor or a tuple "
                "of Tensors"
            )
    outputs = output if isinstance(output, tuple) else (output,)
    if len({part.grad_fn for part in outputs} - {None}) > 1:
        return (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes"
        )
    inputs = {part.grad_fn for part in args} - {None}
    if inputs != {edge[0] for edge in node.next_functions}:
        return "Using a non-full backward hook when the forward contains multiple autograd Nodes"
    return ""


def follow_node(hook: Callable[..., Any]) -> ForwardHook:
    """The forward hook that stands for a backward hook of the old kind."""
    return ForwardHook(functools.partial(hook_node_of_output, hook))


def follows_node(hook: Callable[..., Any]) -> bool:
    """Whether a forward hook stands for a backward hook of the old kind."""
    return getattr(with_options(hook).function, "func", None) is hook_node_of_output


def register_forward(hooks: Hooks, hook: ForwardHook) -> RemovableHandle:
    """Add a forward hook. Raises TypeError for an object that cannot be called."""
    if not callable(hook.function):
        raise TypeError(f"a hook is a function, but got {type(hook.function).__name__}")
    has_options = hook.with_kwargs or hook.always_call
    return register(hooks, hook if has_options else hook.function)


class HooksOfAll:
    """The hooks of all modules; they run before those of a module itself.

    is_full: whether the backward hooks get the gradients of the modules' inputs; None without any.
    """

    _read_guard = ModuleRead

    def __init__(self):
        self._changes, self.is_full = Changes(), None
        self.forward, self.forward_pre = ModuleHooks(self._changes), ModuleHooks(self._changes)
        self.backward, self.backward_pre = ModuleHooks(self._changes), ModuleHooks(self._changes)
        self.parameters, self.buffers, self.modules = Hooks(), Hooks(), Hooks()

    @property
    def full_backward(self) -> Iterable[Callable[..., Any]]:
        """The backward hooks that get the gradients of the modules' inputs."""
        return self.backward.values() if self.is_full else ()

    @property
    def node_backward(self) -> Iterable[Callable[..., Any]]:
        """The backward hooks that follow the last operator of a module."""
        return () if self.is_full else self.backward.values()

    @property
    def _replayed(self) -> list[dict]:
        """The attributes that a replay of a traced function must find in their state at
        the trace.
        """
        return [self.forward, self.forward_pre, self.backward, self.backward_pre]

    def add_backward(self, hook: Callable[..., Any], is_full: bool) -> RemovableHandle:
        """Add a backward hook; all are of one kind."""
        if self.is_full is not None and self.is_full is not is_full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks as a global Module "
                "hook. Please use only one of them."
            )
        self.is_full = is_full
        return register(self.backward, hook)


of_all = HooksOfAll()
for _hooks in (of_all.forward, of_all.forward_pre, of_all.backward, of_all.backward_pre):
    share(_hooks)


def replaced(hooks: Hooks, module: Any, name: str, member: Any) -> Any:
    """A new parameter, buffer or submodule after the hooks of its registration."""
    for hook in hooks.values():
        result = hook(module, name, member)
        member = member if result is None else result
    return member


# ---- what torch.nn.modules.module has


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the `forward` of each module; it may return new arguments.

    Returns a handle with `remove()`. Raises TypeError if `hook` is not callable.

    >>> from jaxgrad.nn.modules.module import register_module_forward_pre_hook
    >>> with register_module_forward_pre_hook(lambda module, args: args[0] * 2):
    ...     jaxgrad.nn.Identity()(jaxgrad.ones(1))
    tensor([2.])
    """
    return register_forward(of_all.forward_pre, ForwardHook(hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the `forward` of each module; with `with_kwargs`,
    kwargs follow args. The hook may return a new output.

    always_call: call it also if `forward` raises, with output None. Returns a handle with
    `remove()`. Raises TypeError if `hook` is not callable.

    >>> from jaxgrad.nn.modules.module import register_module_forward_hook
    >>> with register_module_forward_hook(lambda module, args, output: output + 1):
    ...     jaxgrad.nn.Identity()(jaxgrad.ones(1))
    tensor([2.])
    """
    return register_forward(of_all.forward, ForwardHook(hook, with_kwargs, always_call))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` for each module once the gradients of its
    inputs are known; it may return new ones.

    Returns a handle with `remove()`. Raises RuntimeError after `register_module_backward_hook`.

    >>> from jaxgrad.nn.modules.module import register_module_full_backward_hook
    >>> x = jaxgrad.ones(1, requires_grad=True)
    >>> with register_module_full_backward_hook(lambda module, gi, go: (gi[0] * 3,)):
    ...     jaxgrad.nn.ReLU()(x).backward()
    >>> x.grad
    tensor([3.])
    """
    return of_all.add_backward(hook, True)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` for each module once the gradients of its outputs are known;
    it may return new ones. Returns a handle with `remove()`.

    >>> from jaxgrad.nn.modules.module import register_module_full_backward_pre_hook
    >>> x = jaxgrad.ones(1, requires_grad=True)
    >>> with register_module_full_backward_pre_hook(lambda module, go: (go[0] * 5,)):
    ...     jaxgrad.nn.ReLU()(x).backward()
    >>> x.grad
    tensor([5.])
    """
    return register(of_all.backward_pre, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` in a backward pass through the last operator of
    each module, as older programs ask; see `Module.register_backward_hook`.

    Returns a handle with `remove()`. Raises RuntimeError after
    `register_module_full_backward_hook`.
    """
    return of_all.add_backward(hook, False)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` whenever a parameter is added to a module; the hook may
    return another one. Returns a handle with `remove()`.

    >>> from jaxgrad.nn.modules.module import register_module_parameter_registration_hook
    >>> with register_module_parameter_registration_hook(lambda m, name, value: print(name)):
    ...     _ = jaxgrad.nn.Linear(2, 1)
    weight
    bias
    """
    return register(of_all.parameters, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a buffer is added to a module; the hook may return
    another one. Returns a handle with `remove()`.
    """
    return register(of_all.buffers, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a submodule is added to a module; the hook may
    return another one. Returns a handle with `remove()`.
    """
    return register(of_all.modules, hook)


def has_any() -> bool:
    """Whether a call of a module runs a hook of all modules."""
    hooks = (of_all.forward, of_all.forward_pre, of_all.backward, of_all.backward_pre)
    return any(map(len, hooks))
