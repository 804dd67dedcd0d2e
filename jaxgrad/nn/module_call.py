"""Calls of modules: hooks around `forward`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tracebacks import hide_frames
from ..late import LateModule
from ..tape import interception
from ..tape.hooks import Hooks, RemovableHandle, register
from .module_hooks import (
    ForwardHook,
    ModuleHooks,
    follow_node,
    follows_node,
    hook_node_of_output,
    of_all,
    register_forward,
    with_options,
)
from .module_members import Members, note

backward_hooks = LateModule("jaxgrad.nn.backward_hooks")  # few modules have such hooks
pickled_module = LateModule("jaxgrad.nn.pickled_module")


TWO_KINDS = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use "
    "only one of them."
)


class UncompiledCall:
    """The call of a module, as it is where the module is not compiled in place."""

    def __init__(self, module: ModuleCall):
        self.__wrapped__ = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__._call_impl(*args, **kwargs)


# 0 until a hook of all modules is registered
_changes_of_all = of_all._changes

_NO_HOOKS = "{!r} object has no attribute '_backward_hooks': call super().__init__() first"

KINDS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class ModuleCall(Members):
    """The call protocol of a module: `forward` and the hooks around it."""

    def __init__(self):
        super().__init__()
        for kind in KINDS:
            self.__dict__[kind] = ModuleHooks(self._changes)

    _compiled_call_impl = None  # set by `compile`

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            attributes = self.__dict__
            if "_compiled_call_impl" in attributes:
                return attributes["_compiled_call_impl"](*args, **kwargs)
            if interception.read is not None:
                note(self)
            if (
                attributes["_forward_pre_hooks"]
                or attributes["_forward_hooks"]
                or attributes["_backward_hooks"]
                or attributes["_backward_pre_hooks"]
                or _changes_of_all.value
            ):
                return _call(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            if "_backward_hooks" not in attributes:
                raise AttributeError(_NO_HOOKS.format(type(self).__name__)) from None
            raise

    _wrapped_call_impl = __call__

    def _call_impl(self, *args, **kwargs):
        """Call the module as it is where it is not compiled in place."""
        if interception.read is not None:
            note(self)
        return _call(self, args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; a subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function; a list or '
            "dict of modules is not called itself: call each of its modules"
        )

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)`, or with `with_kwargs` `hook(module, args, kwargs)`, before
        `forward`.

        The hook may return new arguments: a tuple or one value; with kwargs a pair `(args,
        kwargs)`. prepend: call it before the hooks registered so far. Returns a handle with
        `remove()`. Raises TypeError if `hook` is not callable.

        >>> double = jaxgrad.nn.Identity()
        >>> handle = double.register_forward_pre_hook(lambda module, args: args[0] * 2)
        >>> double(jaxgrad.ones(1))
        tensor([2.])
        """
        return _register(self._forward_pre_hooks, ForwardHook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; with `with_kwargs`, kwargs follow
        args.

        The hook may return a new output. always_call: call it also if `forward` raises, with output
        None. prepend: call it before the hooks registered so far. Returns a handle with `remove()`.
        Raises TypeError if `hook` is not callable.

        >>> double = jaxgrad.nn.Identity()
        >>> handle = double.register_forward_hook(lambda module, args, output: output * 2)
        >>> double(jaxgrad.ones(1))
        tensor([2.])
        """
        hook = ForwardHook(hook, with_kwargs, always_call)
        return _register(self._forward_hooks, hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the gradients of the inputs are known.

        Both are tuples with None for each value that is no tensor. The hook may return new
        gradients of the inputs. Inputs and outputs of the module are then views, which in-place
        operators reject. Returns a handle with `remove()`.

        >>> layer = jaxgrad.nn.Linear(2, 1)
        >>> handle = layer.register_full_backward_hook(lambda m, gi, go: print(go[0].tolist()))
        >>> layer(jaxgrad.ones(1, 2, requires_grad=True)).sum().backward()
        [[1.0]]
        """
        if any(map(follows_node, self._forward_hooks.values())):
            raise RuntimeError(TWO_KINDS)
        return _register(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` in a backward pass through the last operator
        of the module, as older programs ask: `grad_input` are the gradients of its inputs.

        `register_full_backward_hook` gives those of the module's inputs; RuntimeError for a module
        that has both kinds. Returns a handle with `remove()`.

        >>> layer = jaxgrad.nn.Tanh()
        >>> handle = layer.register_backward_hook(lambda m, gi, go: print(go[0].tolist()))
        >>> layer(jaxgrad.zeros(2, requires_grad=True) * 1).sum().backward()
        [1.0, 1.0]
        """
        if self._backward_hooks:
            raise RuntimeError(TWO_KINDS)
        return register(self._forward_hooks, follow_node(hook))

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` once the gradients of the outputs are known.

        The hook may return new gradients of the outputs. Returns a handle with `remove()`.

        >>> layer = jaxgrad.nn.Linear(2, 1, bias=False)
        >>> handle = layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
        >>> layer(jaxgrad.ones(1, 2, requires_grad=True)).sum().backward()
        >>> layer.weight.grad
        tensor([[3., 3.]])
        """
        return _register(self._backward_pre_hooks, hook, prepend)


def _hook_option(name: str) -> property:
    """What PyTorch keeps beside the hooks of a module under a name: the numbers of those that have
    an option.
    """
    return property(lambda module: pickled_module.pickled(module.__dict__)[name])


for _name in (
    *("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    *("_forward_pre_hooks_with_kwargs", "_is_full_backward_hook"),
):
    setattr(ModuleCall, _name, _hook_option(_name))


def _register(hooks: Hooks, hook, prepend: bool) -> RemovableHandle:
    before = list(hooks.items())
    add = register_forward if isinstance(hook, ForwardHook) else register
    handle = add(hooks, hook)
    if prepend:
        for number, other in before:
            del hooks[number]
            hooks[number] = other
    return handle


def _call(module: ModuleCall, args, kwargs):
    """Call a module, with its hooks."""
    done = set()
    try:
        return _with_hooks(module, args, kwargs, done)
    except Exception:
        for number, hook in _forward_hooks(module):
            if hook.always_call and number not in done:
                _call_forward_hook(module, hook, args, kwargs, None)
        raise


def _forward_hooks(module) -> list[tuple[int, ForwardHook]]:
    """The forward hooks that a call of a module runs, by number."""
    hooks = *of_all.forward.items(), *module._forward_hooks.items()
    return [(number, with_options(hook)) for number, hook in hooks]


def _with_hooks(module, args, kwargs, done):
    for hook in (*of_all.forward_pre.values(), *module._forward_pre_hooks.values()):
        args, kwargs = _call_pre_hook(module, hook, args, kwargs)
    boundary = None
    backward = (*of_all.full_backward, *module._backward_hooks.values())
    backward_pre = (*of_all.backward_pre.values(), *module._backward_pre_hooks.values())
    if backward or backward_pre:
        boundary = backward_hooks.BackwardHook(module, backward, backward_pre)
        args = boundary.enter(args)
    output = module.forward(*args, **kwargs)
    for number, hook in _forward_hooks(module):
        done.add(number)
        result = _call_forward_hook(module, hook, args, kwargs, output)
        output = output if result is None else result
    output = output if boundary is None else boundary.leave(output)
    for hook in of_all.node_backward:
        hook_node_of_output(hook, module, args, output)
    return output


def _call_pre_hook(module, hook, args, kwargs):
    """Return the arguments after a pre-hook has run."""
    hook = with_options(hook)
    if not hook.with_kwargs:
        result = hook.function(module, args)
        if result is None:
            return args, kwargs
        return (result if isinstance(result, tuple) else (result,)), kwargs
    result = hook.function(module, args, kwargs)
    if result is None:
        return args, kwargs
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
            f"{result}."
        )
    return result


def _call_forward_hook(module, hook, args, kwargs, output):
    if hook.with_kwargs:
        return hook.function(module, args, kwargs, output)
    return hook.function(module, args, output)
