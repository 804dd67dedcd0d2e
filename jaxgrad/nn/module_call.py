"""The call of a module: its hooks, and then its `forward`."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from ..core.tracebacks import hide_frames
from ..tape import interception
from ..tape.hooks import Hooks, RemovableHandle, register
from .backward_hooks import BackwardHook
from .module_members import Changes, Members, note


class ModuleHooks(Hooks):
    """Hooks of a module, whose programs are traced anew when one comes or goes."""

    __slots__ = ("changes",)

    def __init__(self, changes: Changes):
        super().__init__()
        self.changes = changes

    def __setitem__(self, number, hook):
        super().__setitem__(number, hook)
        self.changes.count()

    def pop(self, *arguments):
        self.changes.count()
        return super().pop(*arguments)

    def __deepcopy__(self, memo):
        made = ModuleHooks(copy.deepcopy(self.changes, memo))
        made.update(self)
        return made


class ForwardHook(NamedTuple):
    """A hook of the forward pass, and how it wants to be called."""

    function: Any
    with_kwargs: bool = False
    always_call: bool = False

    def __call__(self, *arguments):
        return self.function(*arguments)


KINDS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class Called(Members):
    """A module as a function, with the hooks around it."""

    def __init__(self):
        super().__init__()
        for kind in KINDS:
            self.__dict__[kind] = ModuleHooks(self._changes)

    def __call__(self, *args, **kwargs):
        try:
            if interception.read is not None:
                note(self)
            own = self.__dict__
            if (
                own["_forward_pre_hooks"]
                or own["_forward_hooks"]
                or own["_backward_hooks"]
                or own["_backward_pre_hooks"]
            ):
                return _call(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def forward(self, *args, **kwargs):
        """What the module computes: a subclass says."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def register_forward_pre_hook(
        self, hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Have `hook(module, args)` called before `forward`, or `hook(module, args, kwargs)`.

        It may return other arguments: a tuple, or one value; with kwargs a pair of both. prepend:
        before the hooks that are there.

        >>> double = jaxgrad.nn.Identity()
        >>> handle = double.register_forward_pre_hook(lambda module, args: args[0] * 2)
        >>> double(jaxgrad.ones(1))
        tensor([2.])
        """
        return _register(self._forward_pre_hooks, ForwardHook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Have `hook(module, args, output)` called after `forward`, or
        `hook(module, args, kwargs, output)`.

        It may return another output. always_call: also where `forward` raises, with None.

        >>> double = jaxgrad.nn.Identity()
        >>> handle = double.register_forward_hook(lambda module, args, output: output * 2)
        >>> double(jaxgrad.ones(1))
        tensor([2.])
        """
        hook = ForwardHook(hook, with_kwargs, always_call)
        return _register(self._forward_hooks, hook, prepend)

    def register_full_backward_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Have `hook(module, grad_input, grad_output)` called when the gradients of the inputs are
        known, both tuples with None for what is no tensor.

        It may return other gradients of the inputs. The outputs, and inside the inputs, are views
        that must not be written to in place.

        >>> layer = jaxgrad.nn.Linear(2, 1)
        >>> handle = layer.register_full_backward_hook(lambda m, gi, go: print(go[0].tolist()))
        >>> layer(jaxgrad.ones(1, 2, requires_grad=True)).sum().backward()
        [[1.0]]
        """
        return _register(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Have `hook(module, grad_output)` called when the gradients of the outputs are known.

        It may return others.

        >>> layer = jaxgrad.nn.Linear(2, 1, bias=False)
        >>> handle = layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
        >>> layer(jaxgrad.ones(1, 2, requires_grad=True)).sum().backward()
        >>> layer.weight.grad
        tensor([[3., 3.]])
        """
        return _register(self._backward_pre_hooks, hook, prepend)


def _register(hooks: Hooks, hook, prepend: bool) -> RemovableHandle:
    if isinstance(hook, ForwardHook) and not callable(hook.function):
        raise TypeError(f"a hook is a function, but got {type(hook.function).__name__}")
    before = list(hooks.items())
    handle = register(hooks, hook)
    if prepend:
        for number, other in before:
            del hooks[number]
            hooks[number] = other
    return handle


def _call(module: Called, args, kwargs):
    """A call of a module that has hooks."""
    done = set()
    try:
        return _with_hooks(module, args, kwargs, done)
    except Exception:
        for number, hook in list(module._forward_hooks.items()):
            if hook.always_call and number not in done:
                _result_of(module, hook, args, kwargs, None)
        raise


def _with_hooks(module, args, kwargs, done):
    for hook in list(module._forward_pre_hooks.values()):
        args, kwargs = _given_by(module, hook, args, kwargs)
    boundary = None
    if module._backward_hooks or module._backward_pre_hooks:
        boundary = BackwardHook(
            module, module._backward_hooks.values(), module._backward_pre_hooks.values()
        )
        args = boundary.enter(args)
    output = module.forward(*args, **kwargs)
    for number, hook in list(module._forward_hooks.items()):
        done.add(number)
        found = _result_of(module, hook, args, kwargs, output)
        output = output if found is None else found
    return output if boundary is None else boundary.leave(output)


def _given_by(module, hook, args, kwargs):
    """The arguments after a hook has seen them."""
    if not hook.with_kwargs:
        found = hook.function(module, args)
        if found is None:
            return args, kwargs
        return (found if isinstance(found, tuple) else (found,)), kwargs
    found = hook.function(module, args, kwargs)
    if found is None:
        return args, kwargs
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError(
            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
            f"{found}."
        )
    return found


def _result_of(module, hook, args, kwargs, output):
    if hook.with_kwargs:
        return hook.function(module, args, kwargs, output)
    return hook.function(module, args, output)
