"""Which submodules are sharded by themselves, as torch.distributed.fsdp.wrap."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from ...core.not_provided import names_of
from ...nn.module import Module


class ModuleWrapPolicy:
    """Shard the submodules of some classes by themselves.

    >>> from jaxgrad.distributed.fsdp.wrap import ModuleWrapPolicy
    >>> ModuleWrapPolicy({jaxgrad.nn.Linear})(jaxgrad.nn.Linear(1, 1), False)
    True
    """

    def __init__(self, module_classes: Iterable[type[Module]]):
        self.classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args, **kwargs) -> bool:
        return recurse or isinstance(module, self.classes)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls
) -> bool:
    """Whether a module is of one of the classes `transformer_layer_cls`; fix these by
    `functools.partial`.
    """
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = 100_000_000
) -> bool:
    """Whether a module has at least so many numbers in parameters that no submodule of it takes."""
    return nonwrapped_numel >= min_num_params


def always_wrap_policy(*args, **kwargs) -> bool:
    """Return True."""
    return True


def chosen_by(policy, module: Module) -> list[Module]:
    """The submodules that a policy shards by themselves, the innermost first, without `module`."""
    if isinstance(policy, ModuleWrapPolicy | functools.partial) or callable(policy):
        return _chosen(policy, module, module)[0]
    raise TypeError(f"auto_wrap_policy must be a policy or a function, not {policy!r}")


def _chosen(policy, module, root):
    """The chosen submodules, and how many numbers of parameters they have."""
    found, taken = [], 0
    for child in module.children():
        inner, numbers = _chosen(policy, child, root)
        found += inner
        taken += numbers
    own = sum(each.numel() for each in module.parameters()) - taken
    if module is not root and own and policy(module, False, own):
        return [*found, module], taken + own
    return found, taken


__getattr__, __dir__ = names_of(__name__)
