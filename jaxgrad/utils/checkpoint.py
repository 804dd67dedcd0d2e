"""Activation checkpointing, as torch.utils.checkpoint: less memory for more time.

Nodes recorded inside of a checkpointed call save no arrays. When a backward pass reaches one, the
function is recomputed, with the random numbers, grad mode and default dtype of its first run, and
with the values that its arguments and the tensors that it reaches had then, even if they have been
overwritten since. Under `jaxgrad.jit` the recomputation depends on the gradients
(utils/delayed_recompute.py), so that XLA does not merge it with the first run.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax

from ..core.aval import has_numbers
from ..core.dtypes import dtype
from ..core.tracebacks import shows_users_frames
from ..frontend.generator import get_rng_state, set_rng_state
from ..names.missing import missing_in
from ..tape import dual_level, settings
from ..tape.mode import is_grad_enabled
from ..tape.tensor import Tensor, abstract_value, has_tangent, held
from . import checkpoint_traced
from .checkpoint_frame import CheckpointedCall, group, tensors_in
from .checkpoint_reentrant import CheckpointFunction as CheckpointFunction
from .checkpoint_reentrant import check_backward_validity as check_backward_validity
from .checkpoint_reentrant import detach_variable as detach_variable
from .checkpoint_selective import SAC_IGNORED_OPS as SAC_IGNORED_OPS
from .checkpoint_selective import CheckpointPolicy as CheckpointPolicy
from .checkpoint_selective import JaxPolicy
from .checkpoint_selective import SelectiveCheckpointContext as SelectiveCheckpointContext
from .checkpoint_selective import (
    create_selective_checkpoint_contexts as create_selective_checkpoint_contexts,
)
from .checkpoint_state import CheckpointError as CheckpointError

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """A context manager that overrides `early_stop` of the checkpointed calls inside.

    enable: whether a recomputation ends once every needed tensor is saved. What counts is the
    context of the first run.

    >>> with jaxgrad.utils.checkpoint.set_checkpoint_early_stop(False):
    ...     pass
    """
    with settings.put_for_block("checkpoint_early_stop", enable):
        yield


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """A context manager that overrides `debug` of the checkpointed calls inside.

    enabled: whether a CheckpointError lists the operators of both runs; None: what the call says.

    >>> with jaxgrad.utils.checkpoint.set_checkpoint_debug_enabled(True):
    ...     pass
    """
    with settings.put_for_block("checkpoint_debug", enabled):
        yield


def noop_context_fn():
    """Two context managers that do nothing: the default contexts of a call and its recomputation.

    >>> len(jaxgrad.utils.checkpoint.noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class CheckpointOptions(NamedTuple):
    """How a function is recomputed."""

    preserve_rng_state: bool
    early_stop: bool
    debug: bool
    shown: Callable
    recompute_context: contextlib.AbstractContextManager


class SavedMetadata(NamedTuple):
    """The compared properties of a saved tensor. It is created for every saved array, so it is
    cheap.
    """

    shape: tuple
    dtype: dtype
    sharding: object

    @classmethod
    def of(cls, tensor: Tensor):
        array, aval = held(tensor), abstract_value(tensor)
        place = array.sharding if has_numbers(array) else None
        return cls(aval.shape, aval.dtype, place)

    def __repr__(self):
        place = "" if self.sharding is None else f", on {self.sharding}"
        return f"{self.dtype}{list(self.shape)}{place}"


# by the name of a determinism check, what it compares of a saved tensor
CHECKS = {"default": SavedMetadata.of, "none": lambda tensor: None}

UNSAID = (
    "{}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
    "recommended; without it PyTorch 2.13, and this, take True"
)


@shows_users_frames
def checkpoint(
    function,
    *args,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    policy: Callable | None = None,
    **kwargs,
):
    """Call `function(*args, **kwargs)` and save only its arguments for the backward pass, which
    recomputes the rest.

    function: takes and returns anything; tensors may be in lists, tuples and dicts.
    use_reentrant: False records the function as it is; this works with `autograd.grad`, keyword
    arguments, nesting and derivatives of any order. True makes one node, which runs `function`
    without grad mode and calls `backward()` inside of the pass: only tensors passed by position get
    a gradient, and `autograd.grad`, `inputs=` and second derivatives raise RuntimeError. None warns
    and means True.
    context_fn: returns two context managers, for the first run and for recomputations.
    determinism_check: "default" compares shapes, dtypes and devices of the saved tensors, "none"
    compares nothing.
    debug: whether an error lists the operators of both runs.
    early_stop: whether a recomputation ends once every needed tensor is saved.
    policy: (not in PyTorch) one of `jax.checkpoint_policies`: results of operators that it saves
    are saved; needs use_reentrant=False, and replaces `context_fn`.
    preserve_rng_state: (True) whether a recomputation draws the same random numbers.

    The gradient is that of the values at the call, even if an argument, or a tensor that the
    function reaches by closure, attribute or global, is written to afterwards. What a recomputation
    writes to such tensors is undone. In forward mode everything is saved. Inside of `cond`, `scan`
    and the like, in a trace, the call becomes one of `jax.checkpoint`, which uses `policy` only.

    Raises ValueError for options that exclude each other. The backward pass raises CheckpointError
    where the recomputation saves other tensors than the first run, and where two tensors that share
    memory were in use and the function wrote to one of them.

    >>> x = jaxgrad.tensor([0.5, 1.0], requires_grad=True)
    >>> y = jaxgrad.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.4174, 1.2534])
    """
    if use_reentrant is None:
        warnings.warn(UNSAID.format("torch.utils.checkpoint"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        _refuse_options(kwargs, context_fn is not noop_context_fn or debug is not False)
        _refuse_options({"policy": policy} if policy is not None else {}, False)
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in CHECKS:
        raise ValueError(
            f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}"
        )
    if policy is not None:
        context_fn = _contexts_of(policy, context_fn)
    wanted = settings.get("checkpoint_debug")
    debug = debug if wanted is None else bool(wanted)
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    wanted = settings.get("checkpoint_early_stop")
    early_stop = early_stop if wanted is None else wanted
    if checkpoint_traced.concerns():
        return checkpoint_traced.call(function, args, kwargs, policy)
    forward_context, recompute_context = context_fn()
    if not is_grad_enabled() or _is_moving((args, kwargs)):
        return function(*args, **kwargs)
    shown = CHECKS[determinism_check]
    options = CheckpointOptions(preserve, early_stop, debug, shown, recompute_context)
    call = CheckpointedCall(function, args, kwargs, options)
    return call.run(args, kwargs, forward_context)


def _is_moving(values) -> bool:
    """Whether forward mode is in use: recomputed after its level has ended, the function would save
    other tensors.
    """
    return bool(dual_level.entered.get()) or any(map(has_tangent, tensors_in(values)))


def _contexts_of(policy, context_fn):
    if context_fn is not noop_context_fn:
        raise ValueError("policy= and context_fn= both say what is kept: give one of them")
    return JaxPolicy(policy).contexts


def _refuse_options(kwargs, unsupported):
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if unsupported:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )


@shows_users_frames
def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Call functions one after another, in checkpointed segments; the last one is not checkpointed.

    A chain of n functions needs least memory with about sqrt(n) segments.

    functions: a list of functions, or a module with children.
    segments: the number of segments.
    input: the argument of the first function.
    use_reentrant, preserve_rng_state: as for `checkpoint`.

    Raises ValueError for other keywords.

    >>> x = jaxgrad.tensor(0.5, requires_grad=True)
    >>> sequential = jaxgrad.utils.checkpoint.checkpoint_sequential
    >>> sequential([jaxgrad.sin] * 4, 2, x, use_reentrant=False).backward()
    >>> x.grad
    tensor(0.6293)
    """
    if use_reentrant is None:
        warnings.warn(UNSAID.format("torch.utils.checkpoint.checkpoint_sequential"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    _refuse_options(kwargs, False)
    functions = list(functions.children() if hasattr(functions, "children") else functions)
    size, end = len(functions) // segments, 0
    for _ in range(segments - 1 if size else 0):
        start, end = end, end + size
        input = checkpoint(
            functools.partial(_in_order, functions[start:end]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return _in_order(functions[end:], input)


def _in_order(functions, input):
    for function in functions:
        input = function(input)
    return input


# ---- groups of passes


class GraphExecGroup:
    """A context manager in which several backward passes share one recomputation of a call.

    No two of the passes may need the same saved tensor. It has no effect with `use_reentrant=True`.
    Raises RuntimeError inside of another group.

    >>> x = jaxgrad.tensor(0.5, requires_grad=True)
    >>> f = lambda x: (x.sin(), x.exp())
    >>> first, second = jaxgrad.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    >>> with jaxgrad.utils.checkpoint.GraphExecGroup():
    ...     first.backward()
    ...     second.backward()
    """

    def __enter__(self):
        if group.get() is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {group.get()}"
            )
        self.key = _Key()
        group.set(self.key)
        return self

    def __exit__(self, *exception):
        group.set(None)
        self.key = None

    @classmethod
    def _get_current_group(cls):
        return group.get()


class _Key:
    """The key of a group's recomputed tensors, which are dropped with it."""


# ---- devices


class DefaultDeviceType:
    """The device type whose random state is preserved where no argument tells it. It exists for
    PyTorch's code: one generator serves all devices here.

    >>> jaxgrad.utils.checkpoint.DefaultDeviceType.set_device_type("cuda")
    >>> jaxgrad.utils.checkpoint.DefaultDeviceType.get_device_type()
    'cuda'
    """

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the default device type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The device type that was set, by default that of JAX's default device."""
        if DefaultDeviceType._default_device_type is None:
            backend = jax.default_backend()
            DefaultDeviceType._default_device_type = {"gpu": "cuda"}.get(backend, backend)
        return DefaultDeviceType._default_device_type


def get_device_states(*args) -> tuple[list[int], list[Tensor]]:
    """The indices of the devices, other than the CPU, of the tensors in the arguments, and for each
    the random state: that of the default generator, which serves all of them.

    >>> jaxgrad.utils.checkpoint.get_device_states(jaxgrad.ones(2))
    ([], [])
    """
    devices = [tensor.device for tensor in tensors_in(args)]
    numbers = [device.index or 0 for device in devices if device.type not in ("cpu", "meta")]
    return numbers, [get_rng_state() for _ in numbers]


def set_device_states(devices, states, *, device_type: str | None = None) -> None:
    """Set the default generator to the states that `get_device_states` returned.

    >>> jaxgrad.utils.checkpoint.set_device_states([], [])
    """
    for _, state in zip(devices, states, strict=False):
        set_rng_state(state)


__getattr__ = missing_in(__name__)
