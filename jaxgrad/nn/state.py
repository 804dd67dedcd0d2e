"""State dicts of modules: saving and loading."""

from __future__ import annotations

import functools
import itertools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, NamedTuple

from ..autograd.grad_mode import no_grad
from ..core.pytorch_tensors import is_of_pytorch
from ..core.tracebacks import shows_users_frames, users_stacklevel
from ..frontend.tensor_data import as_tensor
from ..storage.commit import all_or_nothing
from ..tape.hooks import Hooks, RemovableHandle, register
from ..tape.tensor import Tensor
from .module_members import Members, note
from .parameter import Parameter, is_lazy

KINDS = (
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)

EXTRA_STATE_KEY = "_extra_state"

NOT_IN_PLACE = "state_dict post-hook must return None: change the dict in place"

NO_OP = (
    "for {}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
    "current model, which is a no-op. assign=True makes the tensors of the state dict those of the "
    'module; to_empty(device="cpu") before gives the module memory to copy to'
)

POSITIONAL = (
    "Positional args are being deprecated, use kwargs instead: destination=, prefix= and keep_vars="
)


class _IncompatibleKeys(NamedTuple):
    """The keys that `load_state_dict` did not find, and those that it did not use."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self):
        missing, unexpected = self
        if not missing and not unexpected:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={missing!r}, unexpected_keys={unexpected!r})"


class ModuleState(Members):
    """The state dict of a module: parameters and persistent buffers by dotted path."""

    # The format version of a class, kept in the metadata of a state dict.
    _version = 1

    def __init__(self):
        super().__init__()
        for kind in KINDS:
            self.__dict__[kind] = Hooks()

    # ---- saving

    def state_dict(
        self,
        *args: Any,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Return the parameters and persistent buffers of this module and its descendants by dotted
        path.

        The tensors share the storage of the module's and are detached, unless `keep_vars`.
        destination: the dict to fill. prefix: precedes each path. args: the three by position,
        which warns.

        >>> layer = jaxgrad.nn.Linear(1, 2)
        >>> {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
        {'weight': (2, 1), 'bias': (2,)}
        """
        note(self)
        if args:
            warnings.warn(POSITIONAL, FutureWarning, stacklevel=users_stacklevel())
            first, second, third = (*args, *(None, "", False)[len(args) :])
            destination = first if destination is None else destination
            prefix, keep_vars = prefix or second, keep_vars or third
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
            result = hook(self, destination, prefix, local)
            if result is not None and getattr(hook, "_from_public_api", False):
                raise RuntimeError(NOT_IN_PLACE)
            destination = destination if result is None else result
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, tensor in self._persistent_tensors():
            keeps = keep_vars or is_lazy(tensor)
            destination[prefix + name] = tensor if keeps else tensor.detach()
        if type(self).get_extra_state is not ModuleState.get_extra_state:
            destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()

    def _persistent_tensors(self):
        """Return the parameters and persistent buffers of this module alone, with their names."""
        transient = self._non_persistent_buffers_set
        buffers = ((name, b) for name, b in self._buffers.items() if name not in transient)
        both = itertools.chain(self._parameters.items(), buffers)
        return [(name, tensor) for name, tensor in both if tensor is not None]

    def get_extra_state(self) -> Any:
        """Return further state for the state dict; a subclass overrides it with `set_extra_state`.

        Raises RuntimeError unless the class overrides it.

        >>> class Counted(jaxgrad.nn.Module):
        ...     count = 0
        ...     def get_extra_state(self):
        ...         return {"count": self.count}
        ...     def set_extra_state(self, state):
        ...         self.count = state["count"]
        >>> dict(Counted().state_dict())
        {'_extra_state': {'count': 0}}
        """
        raise RuntimeError(
            f"{type(self).__name__}.get_extra_state: the class has none. To save more than tensors "
            "with state_dict(), give it this method and set_extra_state"
        )

    def set_extra_state(self, state: Any) -> None:
        """Load what `get_extra_state` returned; see there for an example.

        Raises RuntimeError unless the class overrides it.
        """
        raise RuntimeError(
            f"{type(self).__name__}.set_extra_state: the class has none, but there is extra state "
            "in what is loaded"
        )

    # ---- loading

    @shows_users_frames
    def load_state_dict(
        self, state_dict: Mapping, strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the tensors of a state dict into the parameters and buffers of the same paths.

        state_dict: tensors of jaxgrad or of PyTorch. strict: the paths must be the same. assign:
        use the tensors themselves, as new parameters; so a module on the device meta gets data, to
        which a copy is a no-op and warns. Returns the missing and the unexpected keys. Raises
        RuntimeError that lists all mismatches of keys and shapes, TypeError unless `state_dict` is
        a mapping.

        >>> layer = jaxgrad.nn.Linear(1, 1)
        >>> layer.load_state_dict({"weight": jaxgrad.ones(1, 1), "bias": jaxgrad.zeros(1)})
        <All keys matched successfully>
        >>> layer(jaxgrad.tensor([3.0])).item()
        3.0
        """
        if not isinstance(state_dict, Mapping):
            is_path = isinstance(state_dict, str | PathLike)
            source = "torch.load of the path" if is_path else "state_dict()"
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict)}. Pass what {source} "
                "gives"
            )
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict((key, _as_jaxgrad_tensor(value)) for key, value in state_dict.items())
        if metadata is not None:
            state._metadata = metadata
        keys, errors = _IncompatibleKeys([], []), []
        tensors = [
            tensor for tensor in (*self.parameters(), *self.buffers()) if not is_lazy(tensor)
        ]
        with all_or_nothing(tensors):
            _load(self, state, "", assign, keys, errors)
        if strict:
            errors[:0] = _key_errors(keys)
            errors += _key_hints(keys, state)
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            )
        return keys

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Load the entries of this module alone from a state dict."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in self._persistent_tensors():
            key = prefix + name
            if key not in state_dict:
                missing_keys.extend([key] if strict else [])
                continue
            error = _mismatch(key, tensor, state_dict[key])
            if error is None:
                error = _load_tensor(self, name, tensor, state_dict[key], assign, key)
            error_msgs.extend([] if error is None else [error])
        self._load_extra(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(key for key in state_dict if self._is_unexpected(key, prefix))

    def _load_extra(self, state_dict, prefix, strict, missing_keys, unexpected_keys):
        key = prefix + EXTRA_STATE_KEY
        loads_extra = type(self).set_extra_state is not ModuleState.set_extra_state
        if loads_extra and key in state_dict:
            self.set_extra_state(state_dict[key])
        elif strict and loads_extra:
            missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _is_unexpected(self, key, prefix):
        if not key.startswith(prefix) or key == prefix + EXTRA_STATE_KEY:
            return False
        name, dot, _ = key[len(prefix) :].partition(".")
        return name not in (self._modules if dot else dict(self._persistent_tensors()))

    # ---- hooks

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads the module.

        Returns a handle with `remove()`.

        >>> layer = jaxgrad.nn.Identity()
        >>> handle = layer.register_state_dict_pre_hook(lambda module, *_: print(module))
        >>> state = layer.state_dict()
        Identity()
        """
        return register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`, to edit it in
        place.

        Returns a handle with `remove()`. A hook that returns a value raises RuntimeError.

        >>> layer = jaxgrad.nn.Identity()
        >>> handle = layer.register_state_dict_post_hook(lambda m, state, *_: state.update(a=1))
        >>> dict(layer.state_dict())
        {'a': 1}
        """
        try:
            hook._from_public_api = True  # as PyTorch, since files name the hook itself
        except AttributeError:  # a method, or a function in C
            hook = functools.partial(_in_place, hook)
        return register(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook) -> RemovableHandle:
        """Register a `state_dict` hook that may return another dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via register_state_dict_post_hook"
            )
        return register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook` before the module loads its own entries of a state dict.

        Its arguments are module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys and error_msgs; it may edit the dict and the lists. Returns a handle with
        `remove()`.

        >>> layer = jaxgrad.nn.Identity()
        >>> handle = layer.register_load_state_dict_pre_hook(lambda m, state, *_: state.clear())
        >>> layer.load_state_dict({"unused": jaxgrad.ones(1)})
        <All keys matched successfully>
        """
        return register(self._load_state_dict_pre_hooks, _WrappedHook(hook, self))

    def _register_load_state_dict_pre_hook(self, hook, with_module: bool = False):
        """Register a hook as `register_load_state_dict_pre_hook` does, whose first argument is the
        module only where `with_module`.
        """
        called = _WrappedHook(hook, self) if with_module else hook
        return register(self._load_state_dict_pre_hooks, called)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the module has been loaded.

        The hook may edit the lists of keys. Returns a handle with `remove()`. A hook that returns a
        value raises AssertionError.

        >>> layer = jaxgrad.nn.Identity()
        >>> handle = layer.register_load_state_dict_post_hook(lambda module, keys: print(keys))
        >>> result = layer.load_state_dict({})
        <All keys matched successfully>
        """
        return register(self._load_state_dict_post_hooks, hook)


def _as_jaxgrad_tensor(value):
    """A PyTorch tensor as one of jaxgrad's; any other value unchanged."""
    return as_tensor(value) if is_of_pytorch(value) else value


def _in_place(hook, *arguments):
    if hook(*arguments) is not None:
        raise RuntimeError(NOT_IN_PLACE)


class _WrappedHook:
    """A hook that receives the module as its first argument, if there is one; files have its
    attributes.
    """

    def __init__(self, hook: Callable[..., Any], module: Any = None):
        self.__setstate__({"hook": hook, "with_module": module is not None, "module": module})

    def __call__(self, *arguments: Any) -> Any:
        return self.hook(self.module(), *arguments) if self.with_module else self.hook(*arguments)

    def __getstate__(self):
        return {**vars(self), "module": self.module() if self.with_module else None}

    def __setstate__(self, state):
        self.hook, self.with_module = state["hook"], state["with_module"]
        # weakly, so that a module without other references is freed at once
        self.module = weakref.ref(state["module"]) if self.with_module else None


def _load(module, state, prefix, assign, keys, errors):
    """Load a module and its descendants."""
    metadata = getattr(state, "_metadata", None) or {}
    local = dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = True
    # A hook or a subclass may remove the entries that it has loaded.
    state = OrderedDict((key, value) for key, value in state.items() if key.startswith(prefix))
    state._metadata = metadata
    module._load_from_state_dict(
        state, prefix, local, True, keys.missing_keys, keys.unexpected_keys, errors
    )
    for name, child in module._modules.items():
        if child is not None:
            _load(child, state, f"{prefix}{name}.", assign, keys, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with `register_load_state_dict_post_hook` are not expected to "
                "return new values: change incompatible_keys in place"
            )


def _key_errors(keys: _IncompatibleKeys):
    for words, names in (
        ("Missing key(s)", keys.missing_keys),
        ("Unexpected key(s)", keys.unexpected_keys),
    ):
        if names:
            yield "{} in state_dict: {}. ".format(words, ", ".join(f'"{name}"' for name in names))


def _key_hints(keys: _IncompatibleKeys, state):
    """What to do where the keys are right, and lie elsewhere or differ by a prefix."""
    missing, unexpected = keys.missing_keys, keys.unexpected_keys
    if not missing:
        return
    for entry, value in state.items():
        if isinstance(value, Mapping) and set(missing) <= set(value):
            yield f"The entry {entry!r} has these keys: pass state_dict[{entry!r}]."
    if prefix := _prefix(missing, unexpected):
        yield (
            f"Without the prefix {prefix!r} the keys are those of the module: remove it, by "
            f"{{key.removeprefix({prefix!r}): value for key, value in state_dict.items()}}."
        )
    if prefix := _prefix(unexpected, missing):
        begins = f"The keys of the module begin with {prefix!r}"
        yield f"{begins}: load the state into its .{prefix[:-1]}."


def _prefix(names, longer_names) -> str | None:
    """What all names lack to be among the longer ones."""
    if not names:
        return None
    for longer in longer_names:
        prefix = longer.removesuffix(names[0])
        if (
            prefix != longer
            and prefix.endswith(".")
            and {prefix + n for n in names} <= {*longer_names}
        ):
            return prefix
    return None


def _mismatch(key, tensor, value) -> str | None:
    """Return why a tensor cannot take a value, or None."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(value)}"
        )
    if is_lazy(tensor):
        return None  # and so is what is given, as lazy modules see to
    if value.shape != tensor.shape and (tensor.ndim or value.shape != (1,)):
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {tensor.shape}."
        )
    return None


def _load_tensor(module, name, tensor, value, assign, key) -> str | None:
    """Load one tensor of a module; return the error message if that fails, or None."""
    if is_lazy(value):
        return None
    if not (assign or is_lazy(tensor) or value.is_meta) and tensor.is_meta:
        warnings.warn(NO_OP.format(key), UserWarning, stacklevel=users_stacklevel())
    try:
        with no_grad():
            if not assign:
                tensor.copy_(value.reshape(tensor.shape))
            elif not isinstance(tensor, Parameter):
                setattr(module, name, value)
            elif isinstance(value, Parameter):
                setattr(module, name, value.requires_grad_(tensor.requires_grad))
            else:
                setattr(module, name, Parameter(value, tensor.requires_grad))
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{tensor.shape} and whose dimensions in the checkpoint are {value.shape}, "
            f"an exception occurred : {error.args}."
        )
    return None
