"""The attributes of a module as PyTorch pickles them, so that either reads the files of the other.

Hooks are functions by number there, and the options of those that have some stand in dicts beside
them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..tape.hooks import Hooks, register
from .module_hooks import (
    Changes,
    ForwardHook,
    ModuleHooks,
    follow_node,
    follows_node,
    with_options,
)

FORWARD = "_forward_pre_hooks", "_forward_hooks"
BACKWARD = "_backward_pre_hooks", "_backward_hooks"
STATE = (
    *("_state_dict_pre_hooks", "_state_dict_hooks"),
    *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
)

# by the name of a dict of PyTorch: the hooks that it is about, and the option
OPTIONS = {
    "_forward_pre_hooks_with_kwargs": ("_forward_pre_hooks", "with_kwargs"),
    "_forward_hooks_with_kwargs": ("_forward_hooks", "with_kwargs"),
    "_forward_hooks_always_called": ("_forward_hooks", "always_call"),
}
IS_FULL = "_is_full_backward_hook"

# what stays in the process: the compiled form, and the count on which traces depend
OMITTED = "_compiled_call_impl", "_changes"


def pickled(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a module in PyTorch's form."""
    state = {name: value for name, value in attributes.items() if name not in OMITTED}
    for name in (*FORWARD, *BACKWARD, *STATE):
        state[name] = OrderedDict(attributes.get(name, {}))  # programs delete them
    for options, (name, option) in OPTIONS.items():
        hooks = state[name].items()
        state[options] = OrderedDict((n, True) for n, hook in hooks if getattr(hook, option, False))
    for name in FORWARD:
        for number, hook in [*state[name].items()]:
            function = with_options(hook).function
            if follows_node(hook):
                state["_backward_hooks"][number] = function.args[0]
                del state[name][number]
            else:
                state[name][number] = function
    has_any = bool(state["_backward_hooks"])
    state[IS_FULL] = bool(attributes.get("_backward_hooks")) if has_any else None
    return state


def restore(module: Any, state: dict[str, Any]) -> None:
    """Set the attributes of a module, in PyTorch's form or in that of `vars(module)`."""
    attributes, changes = module.__dict__, Changes()
    attributes.update(state)
    attributes["_changes"] = changes
    for name, default in (("_parameters", {}), ("_buffers", {}), ("_modules", {})):
        attributes[name] = dict(attributes.get(name, default))
    attributes.setdefault("_non_persistent_buffers_set", set())
    attributes.setdefault("training", True)
    read = {name: attributes.pop(name, None) or {} for name in OPTIONS}
    is_full = attributes.pop(IS_FULL, None)
    for name in (*FORWARD, *BACKWARD):
        kept, attributes[name] = attributes.get(name) or {}, ModuleHooks(changes)
        for number, hook in kept.items():
            options = {o: number in read[flags] for flags, (n, o) in OPTIONS.items() if n == name}
            is_plain = not any(options.values()) or isinstance(hook, ForwardHook)
            if name == "_backward_hooks" and is_full is False:
                register(attributes["_forward_hooks"], follow_node(hook))
            else:
                register(attributes[name], hook if is_plain else ForwardHook(hook, **options))
    for name in STATE:
        kept, attributes[name] = attributes.get(name) or {}, Hooks()
        for hook in kept.values():
            register(attributes[name], hook)
