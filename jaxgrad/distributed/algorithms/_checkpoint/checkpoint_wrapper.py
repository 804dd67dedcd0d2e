"""Modules in wrappers that compute what they would save for the backward pass again, or keep it on
the host, as torch.distributed.algorithms._checkpoint.checkpoint_wrapper.

The parameters of a wrapped module have the names that they have without the wrapper, in
`named_parameters()` and in `state_dict()`, so models load the states of models without wrappers.
"""

from __future__ import annotations

import abc
import enum
import functools
from collections.abc import Callable

from ....autograd.graph import save_on_cpu
from ....names.not_provided import names_of
from ....nn.module import Module
from ....utils.checkpoint import checkpoint
from ...fsdp import wrap

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = f"{_CHECKPOINT_WRAPPED_MODULE}."


class CheckpointImpl(enum.Enum):
    """The form of `torch.utils.checkpoint`: with `use_reentrant=True`, or without."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(Module, abc.ABC):
    """A module around another one, whose attributes, items and names of parameters it has.

    A subclass defines `forward`.
    """

    def __init__(self, mod: Module):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_remove_prefix)
        self.register_load_state_dict_pre_hook(_add_prefix)

    @abc.abstractmethod
    def forward(self, *args, **kwargs):
        """Call the wrapped module."""

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _CHECKPOINT_WRAPPED_MODULE:  # before there is one
                raise
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args, **kwargs):
        """The parameters, by the names that they have without wrappers."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter


def _remove_prefix(module, state_dict, prefix, *_):
    _rename(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
    return state_dict


def _add_prefix(module, state_dict, prefix, *_):
    _rename(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


def _rename(state_dict, before: str, after: str):
    for name in [name for name in state_dict if name.startswith(before)]:
        state_dict[after + name.removeprefix(before)] = state_dict.pop(name)


class OffloadWrapper(ActivationWrapper):
    """A module that keeps on the host what it saves for its gradient: see `offload_wrapper`."""

    def forward(self, *args, **kwargs):
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module that is computed again in the backward pass: see `checkpoint_wrapper`."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable | None = None,
        **checkpoint_fn_kwargs,
    ):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            is_reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn = functools.partial(checkpoint, use_reentrant=is_reentrant)
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)

        # this form has gradients for positional arguments alone
        def call(*inputs):
            named = dict(zip(kwargs, inputs[len(args) :], strict=True))
            return self._checkpoint_wrapped_module(*inputs[: len(args)], **named)

        return self.checkpoint_fn(call, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """A module whose tensors for the backward pass are kept in the memory of the host.

    >>> from jaxgrad.distributed.algorithms._checkpoint.checkpoint_wrapper import offload_wrapper
    >>> layer = offload_wrapper(jaxgrad.nn.Linear(2, 1))
    >>> layer(jaxgrad.ones(2)).backward()
    >>> layer.weight.grad
    tensor([[1., 1.]])
    """
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None,
    **checkpoint_fn_kwargs,
) -> Module:
    """A module that saves its arguments, and in the backward pass computes the rest again.

    checkpoint_impl: the form of `torch.utils.checkpoint.checkpoint`; checkpoint_fn: a function to
    call in its place; checkpoint_fn_kwargs: arguments of either.

    >>> from jaxgrad.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    ...     checkpoint_wrapper,
    ... )
    >>> layer = checkpoint_wrapper(jaxgrad.nn.Linear(2, 1), preserve_rng_state=False)
    >>> [*layer.state_dict()]
    ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy=None,
):
    """Put modules of a model, but not the model itself, into wrappers, in place.

    check_fn: says which modules; auto_wrap_policy: chooses them in its place, as a policy of
    `torch.distributed.fsdp.wrap`. What is neither a function nor a policy raises ValueError.

    >>> from jaxgrad.distributed.algorithms._checkpoint import checkpoint_wrapper
    >>> model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(2, 2), jaxgrad.nn.ReLU())
    >>> checkpoint_wrapper.apply_activation_checkpointing(
    ...     model, check_fn=lambda module: isinstance(module, jaxgrad.nn.Linear)
    ... )
    >>> [type(module).__name__ for module in model]
    ['CheckpointWrapper', 'ReLU']
    """
    policy = auto_wrap_policy
    if policy is None:
        policy = functools.partial(wrap.lambda_auto_wrap_policy, lambda_fn=check_fn)
    if callable(policy):
        wrap._recursive_wrap(
            model, policy, checkpoint_wrapper_fn, set(), set(), only_wrap_children=True
        )
        return
    if not isinstance(policy, wrap._Policy):
        raise ValueError(f"Expected {policy} to be callable or be a pre-defined wrap policy")
    chosen = policy._run_policy(model, ignored_modules=set(), root_kwargs={})
    chosen.pop(model, None)
    wrap._post_order_apply(
        model,
        lambda module: (
            checkpoint_wrapper_fn(module, **chosen[module]) if module in chosen else None
        ),
    )


__getattr__, __dir__ = names_of(__name__)
