"""The state of a module as a dict of tensors, and back."""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from ..autograd.grad_mode import no_grad
from ..core.tracebacks import api_boundary
from ..tape.hooks import Hooks, RemovableHandle, register
from ..tape.tensor import Tensor
from .module_members import Members
from .parameter import Parameter

KINDS = (
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """What `load_state_dict` did not find, and what it had no place for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self):
        missing, unexpected = self
        if not missing and not unexpected:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={missing!r}, unexpected_keys={unexpected!r})"


class Stated(Members):
    """A module's parameters and persistent buffers, by their paths."""

    # of what a class saves: goes into the metadata of a state dict
    _version = 1

    def __init__(self):
        super().__init__()
        for kind in KINDS:
            self.__dict__[kind] = Hooks()

    # ---- out

    def state_dict(self, *, destination=None, prefix: str = "", keep_vars: bool = False):
        """The parameters and persistent buffers of this module and all below it, by their paths.

        They share the memory of the module's, and are outside of the graph unless `keep_vars`.

        >>> layer = jaxgrad.nn.Linear(1, 2)
        >>> {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
        {'weight': (2, 1), 'bias': (2,)}
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            found = hook(self, destination, prefix, local)
            destination = destination if found is None else found
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, tensor in self._saved():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not Stated.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def _saved(self):
        """The module's own tensors that are part of its state, by their names."""
        transient = self._non_persistent_buffers_set
        buffers = ((name, b) for name, b in self._buffers.items() if name not in transient)
        both = itertools.chain(self._parameters.items(), buffers)
        return [(name, tensor) for name, tensor in both if tensor is not None]

    def get_extra_state(self):
        """What else a subclass has in its state dict, for its `set_extra_state`."""
        raise RuntimeError(
            f"{type(self).__name__}.get_extra_state: the class has none. To save more than tensors "
            "with state_dict(), give it this method and set_extra_state"
        )

    def set_extra_state(self, state):
        """Take what `get_extra_state` gave."""
        raise RuntimeError(
            f"{type(self).__name__}.set_extra_state: the class has none, but there is extra state "
            "in what is loaded"
        )

    # ---- in

    @api_boundary
    def load_state_dict(
        self, state_dict: Mapping, strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy what a state dict holds into the parameters and buffers of its paths.

        strict: there must be neither more nor less. assign: let the module have the tensors
        themselves, as new parameters. Raises RuntimeError that names all that does not fit.

        >>> layer = jaxgrad.nn.Linear(1, 1)
        >>> layer.load_state_dict({"weight": jaxgrad.ones(1, 1), "bias": jaxgrad.zeros(1)})
        <All keys matched successfully>
        >>> layer(jaxgrad.tensor([3.0])).item()
        3.0
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata
        found, mistakes = _IncompatibleKeys([], []), []
        _load(self, state, "", assign, found, mistakes)
        if strict:
            mistakes[:0] = _sentences(found)
        if mistakes:
            listed = "\n\t".join(mistakes)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            )
        return found

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Take from a state dict what is this module's own."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                error_msgs,
            )  # fmt: skip
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in self._saved():
            key = prefix + name
            if key not in state_dict:
                missing_keys.extend([key] if strict else [])
                continue
            mistake = _mistake(key, tensor, state_dict[key])
            if mistake is None:
                mistake = _taken(self, name, tensor, state_dict[key], assign, key)
            error_msgs.extend([] if mistake is None else [mistake])
        self._load_extra(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(key for key in state_dict if self._is_unexpected(key, prefix))

    def _load_extra(self, state_dict, prefix, strict, missing_keys, unexpected_keys):
        key = prefix + EXTRA
        wanted = type(self).set_extra_state is not Stated.set_extra_state
        if wanted and key in state_dict:
            self.set_extra_state(state_dict[key])
        elif strict and wanted:
            missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _is_unexpected(self, key, prefix):
        if not key.startswith(prefix) or key == prefix + EXTRA:
            return False
        name, dot, _ = key[len(prefix) :].partition(".")
        return name not in (self._modules if dot else dict(self._saved()))

    # ---- hooks

    def register_state_dict_pre_hook(self, hook) -> RemovableHandle:
        """Have `hook(module, prefix, keep_vars)` called before `state_dict` reads the module."""
        return register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook) -> RemovableHandle:
        """Have `hook(module, state_dict, prefix, local_metadata)` change what `state_dict`
        gives, in place."""
        return register(self._state_dict_hooks, functools.partial(_in_place, hook))

    def _register_state_dict_hook(self, hook) -> RemovableHandle:
        """The same, with a hook that may return another dict."""
        return register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook) -> RemovableHandle:
        """Have `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` called before the module takes its own from a state dict."""
        return register(self._load_state_dict_pre_hooks, _WithModule(self, hook))

    def register_load_state_dict_post_hook(self, hook) -> RemovableHandle:
        """Have `hook(module, incompatible_keys)` called when the module has been loaded."""
        return register(self._load_state_dict_post_hooks, hook)


def _in_place(hook, *arguments):
    if hook(*arguments) is not None:
        raise RuntimeError("state_dict post-hook must return None: change the dict in place")


class _WithModule:
    """A hook that gets the module first."""

    def __init__(self, module, hook):
        self.module, self.hook = module, hook

    def __call__(self, *arguments):
        return self.hook(self.module, *arguments)


def _load(module, state, prefix, assign, found, mistakes):
    """Load a module and all below it."""
    metadata = getattr(state, "_metadata", None) or {}
    local = dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = True
    # a hook or a subclass may take out what it has used
    state = OrderedDict((key, value) for key, value in state.items() if key.startswith(prefix))
    state._metadata = metadata
    module._load_from_state_dict(
        state, prefix, local, True, found.missing_keys, found.unexpected_keys, mistakes
    )
    for name, child in module._modules.items():
        if child is not None:
            _load(child, state, f"{prefix}{name}.", assign, found, mistakes)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, found) is not None:
            raise AssertionError(
                "Hooks registered with `register_load_state_dict_post_hook` are not expected to "
                "return new values: change incompatible_keys in place"
            )


def _sentences(found: _IncompatibleKeys):
    for words, keys in (
        ("Missing key(s)", found.missing_keys),
        ("Unexpected key(s)", found.unexpected_keys),
    ):
        if keys:
            yield "{} in state_dict: {}. ".format(words, ", ".join(f'"{key}"' for key in keys))


def _mistake(key, tensor, given) -> str | None:
    """Why a tensor cannot take a value, if so."""
    if not isinstance(given, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(given)}"
        )
    if given.shape != tensor.shape and (tensor.ndim or given.shape != (1,)):
        return (
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {tensor.shape}."
        )
    return None


def _taken(module, name, tensor, given, assign, key) -> str | None:
    """Have a module take a value; gives what went wrong, if anything did."""
    try:
        with no_grad():
            if not assign:
                tensor.copy_(given.reshape(tensor.shape))
            elif not isinstance(tensor, Parameter):
                setattr(module, name, given)
            elif isinstance(given, Parameter):
                setattr(module, name, given.requires_grad_(tensor.requires_grad))
            else:
                setattr(module, name, Parameter(given, tensor.requires_grad))
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{tensor.shape} and whose dimensions in the checkpoint are {given.shape}, "
            f"an exception occurred : {error.args}."
        )
    return None
