"""Selective checkpointing: a policy decides which operators' results are saved, and which are
recomputed.

Eagerly the policy is asked about each kernel that runs, and a recomputation takes a saved result
instead of running the kernel. In a trace no kernels run: there the policy is asked about each
recorded tensor, and XLA removes the computations that are no longer needed.
"""

from __future__ import annotations

import contextvars
import enum
import functools
from collections import defaultdict
from collections.abc import Callable

import jax

from .. import ops
from ..autograd._engine.saved_tensor_hooks import save_on_cpu
from ..core import executor
from ..core.aval import INLINE32, struct_of
from ..core.jaxprs import equations_of
from ..core.primitive import Call
from ..tape import mode
from ..tape.node import ProgramNode
from ..tape.tensor import Tensor, held, hold, node_or_mark, wrap

# the selective checkpointing that is entered in this context
selected = contextvars.ContextVar("jaxgrad.checkpoint_selected", default=None)

# operators without cost, about which no policy is asked
SAC_IGNORED_OPS = {ops.detach, ops.alias}


class CheckpointPolicy(enum.Enum):
    """Whether an operator's result is saved, recomputed, or saved in host memory. MUST and PREFER
    mean the same, since nothing else has an influence.

    >>> jaxgrad.utils.checkpoint.CheckpointPolicy.MUST_SAVE.value
    0
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVE = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOAD = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """The first argument of a policy: `op_output`, the result of the operator; `is_recompute`,
    which is False, since the policy is asked in the first run only.

    >>> import functools
    >>> cp = jaxgrad.utils.checkpoint
    >>> def is_small(context, op, *args):
    ...     return context.op_output.numel() < 10
    >>> contexts = functools.partial(cp.create_selective_checkpoint_contexts, is_small)
    >>> x = jaxgrad.zeros(2, requires_grad=True)
    >>> cp.checkpoint(jaxgrad.exp, x, use_reentrant=False, context_fn=contexts).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Selection:
    """A context that observes operators. `kept`: by operator and number of the call, what became of
    its result.
    """

    def __init__(self, kept):
        self.kept = kept

    def __enter__(self):
        self.counts, self.token = defaultdict(int), selected.set(self)
        self.scope = mode.scope.get()
        if self.scope is None:
            executor.observe(self.kernel)
        else:
            self.record, self.scope.record_created = self.scope.record_created, self.created
        return self

    def __exit__(self, *exception):
        if self.scope is None:
            executor.unobserve(self.kernel)
        else:
            self.scope.record_created = self.record
        selected.reset(self.token)

    def kernel(self, program, kernel, *arrays):
        op = _operator(program) if selected.get() is self else None
        if op is None:
            return kernel(*arrays)
        return self.result(op, functools.partial(kernel, *arrays), program, arrays)

    def created(self, tensor: Tensor):
        self.record(tensor)
        node = node_or_mark(tensor)
        if type(node) is not ProgramNode or selected.get() is not self:
            return
        op = _operator(node.reverse.program)
        if op is not None:
            array = held(tensor)
            hold(tensor, self.result(op, lambda: array, node.reverse.program, ()))

    def number(self, op) -> int:
        number, self.counts[op] = self.counts[op], self.counts[op] + 1
        return number


class _Caching(_Selection):
    """The first run, which saves the results that the policy chooses."""

    def __init__(self, policy, kept):
        super().__init__(kept)
        self.policy = policy

    def result(self, op, compute, program, arrays):
        number, result = self.number(op), compute()
        shown = jax.tree.map(wrap, result)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=shown)
        known = {"program": program} if isinstance(self.policy, JaxPolicy) else {}
        token = selected.set(None)
        try:
            chosen = self.policy(context, op, *map(_shown, arrays), **known)
        finally:
            selected.reset(token)
        if isinstance(chosen, bool):
            chosen = CheckpointPolicy.MUST_SAVE if chosen else CheckpointPolicy.PREFER_RECOMPUTE
        self.kept[op][number] = _keep(chosen, result)
        return result


class _Cached(_Selection):
    """A recomputation, which computes only the results that were not saved."""

    def result(self, op, compute, program, arrays):
        number = self.number(op)
        entry = self.kept[op].get(number) if op in self.kept else None
        if entry is None:
            raise RuntimeError(
                f"{op.__name__} invocation index {number} encountered during backward but not "
                "found in storage. This can happen if the operations in the checkpointed region "
                "are nondeterministic or depend on global state that changed between forward and "
                "backward."
            )
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        if entry is _RECOMPUTE:
            return compute()
        self.kept[op][number] = _CONSUMED
        return entry()


_RECOMPUTE, _CONSUMED = object(), object()


def _keep(chosen, result):
    """A function that gives a saved result; `_RECOMPUTE` where it is not saved."""
    if chosen in _SAVE:
        return lambda: result
    if chosen not in _OFFLOAD:
        return _RECOMPUTE
    pair = save_on_cpu().pair
    packed, structure = jax.tree.flatten(result)
    packed = [pair.pack(wrap(array)) for array in packed]
    return lambda: jax.tree.unflatten(structure, [pair.unpack(leaf)._array for leaf in packed])


def _shown(value):
    return wrap(value) if hasattr(value, "shape") else value


def _operator(program):
    """The operator of a program; None where the policy is not asked about it."""
    if not isinstance(program, Call):
        return None
    name = program.primitive.name
    op = getattr(ops, name) if ops.has(name) else None
    return None if op in SAC_IGNORED_OPS else op


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """The contexts for `checkpoint(..., context_fn=...)` that save the results of some operators.

    policy_fn_or_list: a list of operators, such as `jaxgrad.matmul`, whose results are saved; or
    `policy(context, op, *args)`, which returns a CheckpointPolicy, or a bool for saving. `args` are
    the operator's tensors and numbers (none in a trace).
    allow_cache_entry_mutation: without effect: saved results are arrays, which never change.

    Raises TypeError for anything else, ValueError for a list element that is no operator. Only one
    pass can run through such a call: a second one raises RuntimeError.

    >>> import functools
    >>> cp = jaxgrad.utils.checkpoint
    >>> x = jaxgrad.ones(2, 2, requires_grad=True)
    >>> contexts = functools.partial(cp.create_selective_checkpoint_contexts, [jaxgrad.exp])
    >>> y = cp.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False, context_fn=contexts)
    >>> y.sum().backward()
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not hasattr(op, "operator"):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type "
                    f"{type(op)}: an operator of jaxgrad is meant, as jaxgrad.matmul"
                )
        policy = _Listed(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept = defaultdict(dict)
    return _Caching(policy, kept), _Cached(kept)


class _Listed:
    """The policy of a list of operators."""

    def __init__(self, listed):
        self.listed = listed

    def __call__(self, context, op, *args):
        return op in self.listed


# ---- policies of JAX


class JaxPolicy:
    """A policy of `jax.checkpoint_policies` for operators: a result is saved if the policy saves
    that of one of the operator's primitives.
    """

    def __init__(self, policy: Callable):
        self.policy, self.known = policy, {}

    def contexts(self):
        return create_selective_checkpoint_contexts(self)

    def __call__(self, context, op, *args, program):
        if program not in self.known:
            self.known[program] = self.choose(program)
        return self.known[program]

    def choose(self, program):
        structs = list(map(struct_of, program.inputs))
        with jax.enable_x64(program.mode != INLINE32):
            jaxpr = jax.make_jaxpr(program.value)(*structs)
        for equation in equations_of(jaxpr):
            inputs = [variable.aval for variable in equation.invars]
            chosen = self.policy(equation.primitive, *inputs, **equation.params)
            kind = type(chosen).__name__
            if kind == "Offloadable":
                return CheckpointPolicy.MUST_CPU_OFFLOAD
            if chosen and kind != "RecomputeType":
                return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE
