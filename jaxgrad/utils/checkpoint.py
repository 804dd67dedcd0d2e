"""Less memory for more time: parts of a function that are computed again in the backward pass, as
torch.utils.checkpoint.

Nodes recorded inside of a checkpointed call keep no arrays. When a backward pass comes to one, the
function runs again, with the random numbers, grad mode and default dtype of its first run, and with
the values that its arguments and the tensors that it reaches had then, be they overwritten since.
Under `jaxgrad.jit` that run comes after the gradients have arrived and is kept apart from the first
(`jax.lax.optimization_barrier`), so that XLA does not make one of the two.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax

from ..core.dtypes import dtype
from ..core.tracebacks import api_boundary
from ..frontend.generator import get_rng_state, set_rng_state
from ..tape import dual_level
from ..tape.mode import is_grad_enabled
from ..tape.tensor import Tensor, is_moving
from . import checkpoint_traced
from .checkpoint_frame import Frame, group, tensors_in
from .checkpoint_reentrant import CheckpointFunction as CheckpointFunction
from .checkpoint_reentrant import check_backward_validity as check_backward_validity
from .checkpoint_reentrant import detach_variable as detach_variable
from .checkpoint_selective import SAC_IGNORED_OPS as SAC_IGNORED_OPS
from .checkpoint_selective import CheckpointPolicy as CheckpointPolicy
from .checkpoint_selective import OfJax
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

# what set_checkpoint_early_stop and set_checkpoint_debug_enabled say, None for what a call says
_early_stop = _debug = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """Whether the calls inside stop computing again once they have all that is needed, whatever
    their `early_stop` says. What counts is where the function first runs.

    >>> with jaxgrad.utils.checkpoint.set_checkpoint_early_stop(False):
    ...     pass
    """
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Whether a CheckpointError lists the operators of both runs, whatever `debug` says of the
    calls inside; None for what it says.

    >>> with jaxgrad.utils.checkpoint.set_checkpoint_debug_enabled(True):
    ...     pass
    """
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


def noop_context_fn():
    """Two contexts that do nothing: what a call and its recomputation run in by default.

    >>> len(jaxgrad.utils.checkpoint.noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class Options(NamedTuple):
    """How a function is to run again."""

    preserve_rng_state: bool
    early_stop: bool
    debug: bool
    shown: Callable
    recompute_context: contextlib.AbstractContextManager


class Metadata(NamedTuple):
    """What is compared of what is saved: quick to make, as that is done for every array."""

    shape: tuple
    dtype: dtype
    sharding: object

    @classmethod
    def of(cls, tensor: Tensor):
        array, aval = tensor._raw, tensor._aval
        traced = isinstance(array, jax.core.Tracer)
        return cls(aval.shape, aval.dtype, None if traced else array.sharding)

    def __repr__(self):
        place = "" if self.sharding is None else f", on {self.sharding}"
        return f"{self.dtype}{list(self.shape)}{place}"


# what must be the same of what is saved, by the name of the check
CHECKS = {"default": Metadata.of, "none": lambda tensor: None}

UNSAID = (
    "{}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
    "recommended; without it PyTorch 2.13, and this, take True"
)


@api_boundary
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
    """`function(*args, **kwargs)`, of which the backward pass keeps the arguments alone: what else
    it needs, the function computes again.

    Arguments and results are anything; tensors may stand in lists, tuples and dicts. The gradient
    is that of the values that were there at the call, also where an argument, or a tensor that the
    function reaches by closure, attribute or global, is written to afterwards; what the second run
    itself writes to such tensors is undone. Only where two tensors of one memory are in use and the
    function writes to one of them does the backward pass raise CheckpointError. In forward mode
    all is kept. Inside of `cond`, `scan` and the like, in a trace, the call is one of
    `jax.checkpoint`, and of the options `policy` alone counts.

    use_reentrant: False to record the function as it is, which works with `autograd.grad`, keyword
    arguments, nesting and derivatives of any order; True for one node that runs `function` without
    grad mode and calls `backward()` inside of the pass: only tensors given by position get a
    gradient from it, and `autograd.grad`, `inputs=` and second derivatives raise RuntimeError.
    None warns and means True.
    context_fn: gives two context managers, for the first run and for those after.
    determinism_check: "default" to compare shapes, dtypes and devices, "none" for nothing.
    debug: whether an error lists the operators of both runs.
    early_stop: whether a run ends once all that is needed is there.
    policy: (not PyTorch's) one of `jax.checkpoint_policies`: the results of operators that it would
    keep are kept; with use_reentrant=False, and in the place of `context_fn`.
    preserve_rng_state: (True) whether the function draws the same random numbers again.

    Raises ValueError for options that do not go together, and in the backward pass CheckpointError
    where the function, run again, saves other tensors than before.

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
    debug = debug if _debug is None else bool(_debug)
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    early_stop = early_stop if _early_stop is None else _early_stop
    if checkpoint_traced.concerns():
        return checkpoint_traced.call(function, args, kwargs, policy)
    forward_context, recompute_context = context_fn()
    if not is_grad_enabled() or _is_moving((args, kwargs)):
        return function(*args, **kwargs)
    shown = CHECKS[determinism_check]
    options = Options(preserve, early_stop, debug, shown, recompute_context)
    return Frame(function, args, kwargs, options).run(args, kwargs, forward_context)


def _is_moving(values) -> bool:
    """Whether this is forward mode: a run after its level has ended would save something else."""
    return bool(dual_level.entered.get()) or any(map(is_moving, tensors_in(values)))


def _contexts_of(policy, context_fn):
    if context_fn is not noop_context_fn:
        raise ValueError("policy= and context_fn= both say what is kept: give one of them")
    return OfJax(policy).contexts


def _refuse_options(kwargs, unsupported):
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if unsupported:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )


@api_boundary
def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """`functions` called one after another, in as many checkpointed segments, of which the last is
    not checkpointed. Chains of n functions need least memory with about sqrt(n) segments.

    functions: a list, or a module with children; preserve_rng_state: as of `checkpoint`. Raises
    ValueError for other keywords.

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


# passes that belong together


class GraphExecGroup:
    """Backward passes inside of it compute a checkpointed call again once in all, not once each.

    No two of them may need the same of what was saved. It has no meaning for `use_reentrant=True`.
    Raises RuntimeError for one inside another.

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
    """What a group's recomputed values are kept by, until it is left."""


# devices


class DefaultDeviceType:
    """The device type whose random state would be kept where no argument says another. Kept for
    PyTorch's code: here one generator serves all devices.

    >>> jaxgrad.utils.checkpoint.DefaultDeviceType.set_device_type("cuda")
    >>> jaxgrad.utils.checkpoint.DefaultDeviceType.get_device_type()
    'cuda'
    """

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """What was set, else the type of JAX's default device."""
        if DefaultDeviceType._default_device_type is None:
            found = jax.default_backend()
            DefaultDeviceType._default_device_type = {"gpu": "cuda"}.get(found, found)
        return DefaultDeviceType._default_device_type


def get_device_states(*args) -> tuple[list[int], list[Tensor]]:
    """The indices of the devices, but the CPU, that tensors among the arguments are on, and for
    each the random state: that of the default generator, which serves all of them.

    >>> jaxgrad.utils.checkpoint.get_device_states(jaxgrad.ones(2))
    ([], [])
    """
    found = [tensor.device for tensor in tensors_in(args)]
    numbers = [device.index or 0 for device in found if device.type not in ("cpu", "meta")]
    return numbers, [get_rng_state() for _ in numbers]


def set_device_states(devices, states, *, device_type: str | None = None) -> None:
    """Give the default generator the states that `get_device_states` gave.

    >>> jaxgrad.utils.checkpoint.set_device_states([], [])
    """
    for _, state in zip(devices, states, strict=False):
        set_rng_state(state)
