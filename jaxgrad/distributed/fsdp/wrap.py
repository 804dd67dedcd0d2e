"""Policies that choose which modules of a model become units, as torch.distributed.fsdp.wrap.

A policy is an object with `_run_policy`, such as ModuleWrapPolicy, or a function of three
arguments: a module, whether to look inside of it, and how many numbers of its parameters belong to
no unit inside.
"""

from __future__ import annotations

import abc
import contextlib
import contextvars
from collections.abc import Callable, Iterable

from ...names.not_provided import names_of
from ...nn.containers import ModuleDict, ModuleList
from ...nn.module import Module
from ...nn.multi_head_attention import MultiheadAttention


class _Policy(abc.ABC):
    """Chooses modules, with the arguments of the wrapper of each."""

    @abc.abstractmethod
    def _run_policy(self, root_module, ignored_modules, root_kwargs) -> dict[Module, dict]:
        """The chosen modules with the arguments of their wrappers."""


class ModuleWrapPolicy(_Policy):
    """Choose the modules of some classes.

    >>> from jaxgrad.distributed.fsdp.wrap import ModuleWrapPolicy
    >>> ModuleWrapPolicy({jaxgrad.nn.Linear})(jaxgrad.nn.Linear(1, 1), False)
    True
    """

    def __init__(self, module_classes: Iterable[type[Module]]):
        self._module_classes = set(module_classes)

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        return {
            module: dict(root_kwargs)
            for module in root_module.modules()
            if module not in ignored_modules and self(module, False)
        }

    def __call__(self, module: Module, recurse: bool, *args, **kwargs) -> bool:
        return _module_wrap_policy(module, recurse, -1, self._module_classes)

    def __repr__(self):
        return f"{super().__repr__()}({self._module_classes})"


class CustomPolicy(_Policy):
    """Choose the modules for which a function returns True, or a dict of arguments for their
    wrappers in place of those of the outermost one.

    Raises ValueError when the function returns neither a bool nor a dict.

    >>> from jaxgrad.distributed.fsdp import FullyShardedDataParallel, wrap
    >>> policy = wrap.CustomPolicy(lambda module: isinstance(module, jaxgrad.nn.Linear))
    >>> model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(2, 4))
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> model = FullyShardedDataParallel(model, device_mesh=mesh, auto_wrap_policy=policy)
    >>> type(model[0]).__name__
    'FullyShardedDataParallel'
    """

    def __init__(self, lambda_fn: Callable[[Module], bool | dict]):
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        chosen = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, dict | bool):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg "
                    f"dict, but it returned {answer}"
                )
            if answer:
                options = answer if isinstance(answer, dict) else {}
                chosen[module] = root_kwargs | options
        return chosen


# ---- functions that are policies


def always_wrap_policy(*args, **kwargs) -> bool:
    """Return True.

    >>> jaxgrad.distributed.fsdp.wrap.always_wrap_policy()
    True
    """
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable
) -> bool:
    """Whether a function says so of a module; fix `lambda_fn` by `functools.partial`.

    >>> from jaxgrad.distributed.fsdp.wrap import lambda_auto_wrap_policy
    >>> lambda_auto_wrap_policy(jaxgrad.nn.ReLU(), False, 0, lambda module: module.inplace)
    False
    """
    return recurse or lambda_fn(module)


def _module_wrap_policy(module, recurse, nonwrapped_numel, module_classes) -> bool:
    """Whether a module is of one of some classes."""
    return recurse or isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls
) -> bool:
    """Whether a module is of one of the classes `transformer_layer_cls`; fix these by
    `functools.partial`.

    >>> from jaxgrad.distributed.fsdp.wrap import transformer_auto_wrap_policy
    >>> transformer_auto_wrap_policy(jaxgrad.nn.ReLU(), False, 0, {jaxgrad.nn.Linear})
    False
    """
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _wrap_module_cls_individually(module, module_classes, recurse, *args, **kwargs) -> bool:
    """Whether a module is of one of some classes, with the arguments in another order."""
    return _module_wrap_policy(module, recurse, -1, module_classes)


def _or_policy(module, recurse, nonwrapped_numel, policies) -> bool:
    """Whether one of some policies says so."""
    options = {"module": module, "recurse": recurse, "nonwrapped_numel": nonwrapped_numel}
    return any(policy(**options) for policy in policies)


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: set[type] | None = None,
    exclude_wrap_modules: set[type] | None = None,
) -> bool:
    """Whether a module has at least so many numbers in parameters that no unit inside takes.

    force_leaf_modules: classes inside of which no module is chosen, `nn.MultiheadAttention` by
    default; exclude_wrap_modules: classes that are not chosen, `nn.ModuleList` and `nn.ModuleDict`.

    >>> from jaxgrad.distributed.fsdp.wrap import size_based_auto_wrap_policy
    >>> size_based_auto_wrap_policy(jaxgrad.nn.Linear(2, 4), False, 12, min_num_params=10)
    True
    """
    policy = size_based_auto_wrap_policy
    leaves = policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    others = policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    is_large = nonwrapped_numel >= min_num_params
    return is_large and not isinstance(module, tuple(leaves if recurse else others))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}


# ---- wrapping by hand

# the class and the options of the wrappers in a block of `enable_wrap`
_wrapper = contextvars.ContextVar("wrapper", default=None)


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """A block in which `wrap` puts a module into a wrapper, with these arguments.

    Raises NotImplementedError inside of another one.

    >>> from jaxgrad.distributed.fsdp import FullyShardedDataParallel, wrap
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> with wrap.enable_wrap(wrapper_cls=FullyShardedDataParallel, device_mesh=mesh):
    ...     layer = wrap.wrap(jaxgrad.nn.Linear(2, 4))
    >>> type(layer).__name__, type(wrap.wrap(jaxgrad.nn.Linear(2, 4))).__name__
    ('FullyShardedDataParallel', 'Linear')
    """
    if _wrapper.get() is not None:
        raise NotImplementedError(
            "You are already within an autowrap context and we currently do not supported nested "
            "autowrap."
        )
    token = _wrapper.set((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _wrapper.reset(token)


def wrap(module: Module, **wrap_overrides) -> Module:
    """A module in the wrapper of the block of `enable_wrap`; outside of one the module itself.
    See there for an example.

    wrap_overrides: arguments of the wrapper in place of those of the block.
    """
    if _wrapper.get() is None:
        return module
    wrapper_cls, options = _wrapper.get()
    return _wrap(module, wrapper_cls, **(options | wrap_overrides))


def _wrap(module, wrapper_cls, **kwargs) -> Module:
    """A module in a wrapper, with the arguments that it asks for itself."""
    return wrapper_cls(module, **(kwargs | getattr(module, "_wrap_overrides", {})))


def _recursive_wrap(
    module,
    auto_wrap_policy,
    wrapper_cls,
    ignored_modules,
    ignored_params,
    only_wrap_children=False,
    **kwargs,
) -> tuple[Module, int]:
    """Wrap the modules inside of a module that a function chooses, and the module itself unless
    `only_wrap_children`; the result, and how many numbers of parameters have been wrapped.
    """
    for inner in module.modules():
        is_wrapped = isinstance(wrapper_cls, type) and isinstance(inner, wrapper_cls)
        if is_wrapped and inner not in ignored_modules:
            raise AssertionError(f"Child module {inner} is already wrapped by {wrapper_cls}")
    ignored = {id(parameter) for parameter in ignored_params}
    total = sum(p.numel() for p in module.parameters() if id(p) not in ignored)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=total):
        return module, 0
    wrapped = 0
    for name, child in list(module.named_children()):
        if child in ignored_modules:
            continue
        child, count = _recursive_wrap(
            child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
        )
        setattr(module, name, child)
        wrapped += count
    rest = total - wrapped
    if only_wrap_children or not auto_wrap_policy(
        module=module, recurse=False, nonwrapped_numel=rest
    ):
        return module, wrapped
    return _wrap(module, wrapper_cls, **kwargs), total


def _post_order_apply(root_module: Module, fn: Callable[[Module], Module | None]):
    """Call a function with the modules of a model, the inner ones first; a module that it returns
    takes the place of the one that it was called with.
    """
    visited = {root_module}

    def visit(module, name, parent):
        for child_name, child in list(module.named_children()):
            if child not in visited:
                visited.add(child)
                visit(child, child_name, module)
        replacement = fn(module)
        if replacement is None:
            return
        if parent is None:
            raise AssertionError(f"the outermost module has no place to put {replacement} in")
        setattr(parent, name, replacement)

    visit(root_module, "", None)


__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]

__getattr__, __dir__ = names_of(__name__)
