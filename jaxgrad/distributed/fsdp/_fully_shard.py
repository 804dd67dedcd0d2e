"""`fully_shard`: parameters, gradients and optimizer state are sharded over the devices, and a
module's parameters are gathered for its own computation alone.

On the devices of one process, and for inputs that are DTensors, a gathered parameter is a
replicated DTensor. Where each process calls the module on a batch of its own, it is a tensor of the
process, and the gradients of all processes are averaged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ...autograd.function import Function
from ...autograd.grad_mode import no_grad
from ...autograd.graph import saved_tensors_hooks
from ...core import communication as kinds
from ...core.promotion import promote_types
from ...frontend.jax_interop import from_jax
from ...names.missing import missing_in
from ...nn.module import Module
from ...nn.parameter import Parameter
from ...tape import pytree
from ...tape.communicate import communicated
from ...tape.tensor import Tensor, current, held
from ...utils import checkpoint_frame
from ..device_mesh import DeviceMesh, current_mesh
from ..tensor._distribute import place
from ..tensor._dtensor import install, is_distributed, noted, sharding_held
from ..tensor._inputs import sharded_inputs
from ..tensor._redistribute import redistributed
from ..tensor.placement_types import check_even, is_single_process, sharding_of

install()


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a sharded module: `param_dtype` that it computes in, `reduce_dtype` in which
    processes add gradients, by default the same, and `output_dtype` of its outputs; None keeps
    that of the parameters. With a `reduce_dtype` parameters are gathered in it too, and cast then.
    On the devices of one process XLA adds in the dtype in which it computes. cast_forward_inputs:
    whether floating-point inputs are cast to `param_dtype`.

    >>> from jaxgrad.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> policy = MixedPrecisionPolicy(param_dtype=jaxgrad.bfloat16)
    >>> layer = fully_shard(jaxgrad.nn.Linear(2, 4), mesh=mesh, mp_policy=policy)
    >>> layer(jaxgrad.ones(3, 2)).dtype, layer.weight.dtype
    (torch.bfloat16, torch.float32)
    """

    param_dtype: object = None
    reduce_dtype: object = None
    output_dtype: object = None
    cast_forward_inputs: bool = True


class OffloadPolicy:
    """The place of parameters: on the devices.

    >>> from jaxgrad.distributed.fsdp import OffloadPolicy, fully_shard
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> layer = jaxgrad.nn.Linear(2, 4)
    >>> fully_shard(layer, mesh=mesh, offload_policy=OffloadPolicy()) is layer
    True
    """


class CPUOffloadPolicy(OffloadPolicy):
    """Keeping parameters in the memory of the host, which jaxgrad does not provide.

    >>> try:
    ...     jaxgrad.distributed.fsdp.CPUOffloadPolicy()
    ... except NotImplementedError as error:
    ...     print(error)
    CPUOffloadPolicy: jaxgrad keeps parameters on the devices; shard over more of them
    """

    def __init__(self, pin_memory: bool = True):
        raise NotImplementedError(
            "CPUOffloadPolicy: jaxgrad keeps parameters on the devices; shard over more of them"
        )


class Sharded:
    """A parameter that `fully_shard` has sharded.

    owner, name: its module, and its name there; sharding: its sharding; whole: the partition once
    it is gathered; dim: the dimension along which it is sharded, None if no extent is a multiple of
    the number of devices, so that it is replicated.
    """

    def __init__(self, owner, name, parameter, mesh: DeviceMesh, dim):
        self.owner, self.name, self.parameter, self.mesh = owner, name, parameter, mesh
        known = sharding_held(parameter)
        self.whole = known.spec if known is not None else PartitionSpec()
        self.dim, spec = dim, self.whole
        if dim is not None:
            spec = with_axis(self.whole, dim, mesh.axes[-1])
            check_even(f"fully_shard, parameter {name}", parameter.shape, mesh, spec)
        self.sharding = sharding_of(mesh, spec)

    def follow(self):
        """Take note of a parameter that has been put in the place of the one before, as
        `load_state_dict(assign=True)` does.
        """
        present = self.owner._parameters[self.name]
        if isinstance(present, Parameter) and present is not self.parameter:
            self.parameter = present
            if sharding_held(present) != self.sharding:
                place(present, self.sharding)

    def gathered(self, local: bool, parameter: Tensor) -> Tensor:
        """The whole of the parameter. local: as a tensor of this process."""
        if not local:
            target = NamedSharding(self.mesh.jax_mesh, self.whole)
            if parameter.dtype != self.parameter.dtype:
                # or XLA would gather first and cast then, and send more bytes
                parameter = redistributed(parameter, self.sharding, self.sharding)
            whole = redistributed(parameter, target, self.sharding)
            # the sum over devices comes before the cut, or XLA would gather the tokens of all
            # devices for an embedding's gradient
            return noted(redistributed(whole, target, target), target)
        mean = 1 / self.mesh.size()
        options = {"source": self.sharding.spec, "back_scale": mean}
        if self.dim is None:
            kind = kinds.ToLocal(
                self.mesh.jax_mesh, axes=self.mesh.axes, sums=self.mesh.axes, **options
            )
        else:
            *replicas, axis = self.mesh.axes
            kind = kinds.Unshard(
                self.mesh.jax_mesh, axes=(axis,), sums=tuple(replicas), dim=self.dim, **options
            )
        return communicated(parameter, kind)


def with_axis(spec: PartitionSpec, dim: int, axis: str) -> PartitionSpec:
    """A partition that also cuts a dimension over an axis."""
    entries = list(spec) + [None] * (dim + 1 - len(spec))
    names = (entries[dim],) if isinstance(entries[dim], str) else entries[dim] or ()
    names = (*names, axis)
    entries[dim] = names[0] if len(names) == 1 else names
    return PartitionSpec(*entries)


class FSDPModule:
    """What `fully_shard` adds to the class of a module.

    >>> jaxgrad.distributed.fsdp.FSDPModule.__name__
    'FSDPModule'
    """

    def forward(self, *args, **kwargs):
        state = self._fsdp
        args, kwargs = state.prepared(type(self).__name__, args, kwargs)
        with state.gathered(args, kwargs):
            result = super().forward(*args, **kwargs)
        return state.cast_outputs(result)

    def unshard(self, async_op: bool = False):
        """Do nothing: XLA gathers parameters when they are needed."""

    def reshard(self):
        """Do nothing: parameters are gathered for a call alone."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True):
        """Take note only: the sum of averages is the average of sums, so gradients that are summed
        over devices in each backward pass accumulate to the same, sharded as the parameters are.
        """

    set_is_last_backward = set_requires_all_reduce = set_requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True):
        """Whether backward passes gather parameters anew, instead of keeping them."""
        for module in self.modules() if recurse else (self,):
            if isinstance(module, FSDPModule):
                module._fsdp.reshards = reshard_after_forward

    def set_modules_to_forward_prefetch(self, modules):
        """Do nothing: XLA schedules the communication."""

    set_modules_to_backward_prefetch = set_modules_to_forward_prefetch


class FSDPState:
    """The state that `fully_shard` keeps for a module: its parameters, and how they are gathered.

    reshards: whether backward passes gather parameters anew; is_default: whether that was left to
    jaxgrad; is_outermost: whether no sharded module contains this one; casts_inputs: whether
    floating-point inputs are cast to the dtype in which the module computes.
    """

    def __init__(self, mesh: DeviceMesh, parameters: list[Sharded], reshards, policy):
        self.mesh, self.parameters, self.policy = mesh, parameters, policy
        self.reshards, self.is_default = bool(reshards), reshards is None
        self.is_outermost, self.casts_inputs = True, policy.cast_forward_inputs

    def is_local(self, args, kwargs) -> bool:
        """Whether this process calls the module on a batch of its own."""
        leaves = pytree.flatten((args, kwargs))[0]
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        return not is_single_process(self.mesh) and not any(map(is_distributed, tensors))

    @contextlib.contextmanager
    def gathered(self, args, kwargs):
        """A block in which the module has whole parameters."""
        local = self.is_local(args, kwargs)
        if local and tuple(self.mesh.jax_mesh.axis_names) != self.mesh.axes:
            raise RuntimeError(
                f"fully_shard on {self.mesh}, which is a part of a mesh with the dimensions "
                f"{tuple(self.mesh.jax_mesh.axis_names)}: give the module DTensors on the whole "
                "mesh, such as DTensor.from_local(x, mesh, [Shard(0), Replicate()])"
            )
        # a checkpoint around the call saves nothing, and calls again for the backward pass
        call, rerun = checkpoint_frame.around.get() or (None, None)
        for slot in self.parameters:
            slot.follow()
        whole = [self.whole(slot, local, again=bool(rerun)) for slot in self.parameters]
        regathers = self.reshards and call is None
        hooks = self.regathering(whole, local) if regathers else contextlib.nullcontext()
        with self.placed(whole), hooks, self.for_inner_checkpoints(local):
            yield

    @contextlib.contextmanager
    def placed(self, whole):
        """A block in which the module has the given parameters."""
        before = [slot.owner._parameters[slot.name] for slot in self.parameters]
        try:
            for slot, tensor in zip(self.parameters, whole, strict=True):
                slot.owner._parameters[slot.name] = tensor
            yield
        finally:
            for slot, parameter in zip(self.parameters, before, strict=True):
                slot.owner._parameters[slot.name] = parameter

    @contextlib.contextmanager
    def for_inner_checkpoints(self, local):
        """A block whose checkpointed calls have whole parameters when they are called again."""

        def make():
            return self.placed([self.whole(slot, local, again=True) for slot in self.parameters])

        inside = (*checkpoint_frame.surroundings.get(), make)
        token = checkpoint_frame.surroundings.set(inside)
        try:
            yield
        finally:
            checkpoint_frame.surroundings.reset(token)

    def whole(self, sharded: Sharded, local, again=False) -> Tensor:
        """The whole of a parameter. again: gathered anew, for a backward pass."""
        parameter = sharded.parameter
        if again:
            # a barrier, or XLA would keep what was gathered for the forward pass
            parameter = _barrier(parameter.detach()).requires_grad_(parameter.requires_grad)
        if not parameter.is_floating_point():
            return sharded.gathered(local, parameter)
        dtype = self.policy.param_dtype or parameter.dtype
        reduced = self.policy.reduce_dtype or dtype
        gathered = sharded.gathered(local, parameter.to(reduced))
        if promote_types(reduced, dtype) == reduced:
            return gathered.to(dtype)
        # what is computed with has not passed through the narrower dtype
        exact = sharded.gathered(local, parameter.detach().to(dtype))
        return _GradientOf.apply(exact, gathered)

    def regathering(self, whole, local):
        """Hooks that save sharded parameters in place of whole ones, and gather them anew."""
        known = {id(held(current(t))): slot for t, slot in zip(whole, self.parameters, strict=True)}

        def pack(tensor):
            slot = known.get(id(held(current(tensor))))
            return tensor if slot is None else slot

        def unpack(saved):
            if not isinstance(saved, Sharded):
                return saved
            with no_grad():
                return self.whole(saved, local, again=True)

        return saved_tensors_hooks(pack, unpack)

    def prepared(self, name: str, args, kwargs):
        """The inputs of a call: on the devices of this process the batch is sharded over them."""
        args, kwargs = self.cast_inputs(args, kwargs)
        if not is_single_process(self.mesh):
            return args, kwargs
        return sharded_inputs(name, self.mesh, (args, kwargs))

    def cast_inputs(self, args, kwargs):
        dtype = self.policy.param_dtype
        if dtype is None or not self.casts_inputs:
            return args, kwargs
        return pytree.map_leaves(lambda leaf: _cast(leaf, dtype), (args, kwargs))

    def cast_outputs(self, result):
        dtype = self.policy.output_dtype
        return result if dtype is None else pytree.map_leaves(lambda x: _cast(x, dtype), result)


class _GradientOf(Function):
    """A tensor whose gradient goes to another one, in the dtype of that."""

    @staticmethod
    def forward(context, tensor, other):
        context.dtype = other.dtype
        return tensor.clone()

    @staticmethod
    def backward(context, cotangent):
        return None, cotangent.to(context.dtype)


def _cast(leaf, dtype):
    is_real = isinstance(leaf, Tensor) and leaf.is_floating_point()
    return leaf.to(dtype) if is_real else leaf


_barrier = from_jax(jax.lax.optimization_barrier)


def fully_shard(
    module: Module,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set | None = None,
) -> Module:
    """Shard the parameters of a module over the devices, in place, and return it.

    Call it on the blocks of a model first and then on the model: each call takes the parameters
    that no call inside has taken, and they are gathered together. Optimizers that were made before
    keep them. Gradients and the state of optimizers are sharded as the parameters are.

    mesh: of one dimension, by default of all devices; of a mesh of several, the part `mesh["dp"]`;
    of two dimensions, parameters are replicated over the first. reshard_after_forward: whether the
    backward pass gathers parameters anew instead of keeping them; by default for all but the model
    itself. shard_placement_fn: gives for a parameter the `Shard` to use, or None. A parameter is
    sharded along its first dimension that is a multiple of the number of devices, and replicated
    if there is none. mp_policy: dtypes, see MixedPrecisionPolicy. ignored_params: not sharded.

    Raises ValueError for a module without parameters of its own left, for a module that is sharded
    already, and for a Shard that does not cut into equal parts.

    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> layer = jaxgrad.distributed.fsdp.fully_shard(jaxgrad.nn.Linear(2, 4), mesh=mesh)
    >>> type(layer).__name__, layer.weight.placements
    ('FSDPLinear', (Shard(dim=0),))
    """
    if is_sharded(module):
        raise ValueError(f"fully_shard: {type(module).__name__} is sharded already")
    policy, ignored = mp_policy or MixedPrecisionPolicy(), ignored_params or ()
    module._fsdp = sharded_state(
        module, current_mesh(mesh), reshard_after_forward, shard_placement_fn, policy, ignored
    )
    kind = type(module)
    members = {"__module__": kind.__module__}
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), members)
    return module


def sharded_state(
    module: Module, mesh: DeviceMesh, reshards: bool | None, choose, policy, ignored_params
) -> FSDPState:
    """Shard the parameters of a module that no module inside has sharded.

    reshards: whether backward passes gather parameters anew; None for all but the outermost module.
    choose: gives for a parameter its placement, or None.
    """
    ignored = {id(parameter) for parameter in ignored_params}
    sharded = [
        Sharded(owner, name, parameter, mesh, _dim(parameter, mesh, choose))
        for owner, name, parameter in _members(module)
        if id(parameter) not in ignored
    ]
    for slot in sharded:
        place(slot.parameter, slot.sharding, 0)
    for inner in sharded_modules(module):
        if inner._fsdp.is_default:
            inner._fsdp.reshards = True
        inner._fsdp.is_outermost = False
    return FSDPState(mesh, sharded, reshards, policy)


def is_sharded(module: Module) -> bool:
    """Whether `fully_shard` or `FullyShardedDataParallel` has been applied to a module."""
    return "_fsdp" in vars(module)


def sharded_modules(module: Module) -> list[Module]:
    """The modules to which one of them has been applied, the outer ones first."""
    return [inner for inner in module.modules() if is_sharded(inner)]


def _members(module):
    """The parameters of a module that no module inside has sharded: owner, name and parameter."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield module, name, parameter
    for inner in module.children():
        if not is_sharded(inner):
            yield from _members(inner)


def _dim(parameter: Parameter, mesh: DeviceMesh, choose) -> int | None:
    """The dimension along which a parameter is sharded, None for one that is replicated."""
    chosen = None if choose is None else choose(parameter)
    if chosen is not None and chosen.is_replicate():
        return None
    if chosen is not None:
        return chosen.dim % max(parameter.ndim, 1)
    sharding = sharding_held(parameter)
    spec = PartitionSpec() if sharding is None else sharding.spec
    for dim, extent in enumerate(parameter.shape):
        entry = spec[dim] if dim < len(spec) else None
        names = (entry,) if isinstance(entry, str) else entry or ()
        parts = mesh.jax_mesh.shape[mesh.axes[-1]]
        for name in names:
            parts *= mesh.jax_mesh.shape[name]
        if extent and extent % parts == 0:
            return dim
    return None


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Gather the parameters of a sharded module for a method other than `forward` too.

    Raises AttributeError for a name that it does not have.

    >>> from jaxgrad.distributed.fsdp import fully_shard, register_fsdp_forward_method
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> class Encoder(jaxgrad.nn.Linear):
    ...     def encode(self, x):
    ...         return F.linear(x, self.weight).relu()
    >>> encoder = fully_shard(Encoder(2, 4), mesh=mesh)
    >>> register_fsdp_forward_method(encoder, "encode")
    >>> encoder.encode(jaxgrad.ones(3, 2)).shape
    torch.Size([3, 4])
    """
    method = getattr(module, method_name)
    if not isinstance(module, FSDPModule):
        return

    def call(*args, **kwargs):
        args, kwargs = module._fsdp.prepared(type(module).__name__, args, kwargs)
        with module._fsdp.gathered(args, kwargs):
            return module._fsdp.cast_outputs(method(*args, **kwargs))

    setattr(module, method_name, call)


__getattr__ = missing_in(__name__)
