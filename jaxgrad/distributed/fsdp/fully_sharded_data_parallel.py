"""`FullyShardedDataParallel`, the wrapper; `fully_shard` is the newer form."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable

from ...autograd.grad_mode import no_grad
from ...names.not_provided import names_of
from ...nn.containers import ModuleDict, ModuleList
from ...nn.module import Module
from ...nn.parameter import Parameter
from ...nn.utils.clip_grad import get_total_norm
from ...tape import pytree
from ...tape.tensor import Tensor
from ..collectives import broadcast
from ..device_mesh import DeviceMesh, current_mesh
from ..process_group import ProcessGroup, is_initialized
from ..tensor._dtensor import full_tensor, is_distributed
from ..tensor.placement_types import Replicate, is_single_process
from ._flat_parameter import FlatParameter, FlatParamHandle
from ._fully_shard import MixedPrecisionPolicy, is_sharded, sharded_modules, sharded_state
from ._optim_states import OptimizerStates
from ._optim_states import OptimStateKeyType as OptimStateKeyType
from ._state_dicts import PREFIX, WRAPPED, clean
from ._summon import check_summoned, summoned
from .api import *  # noqa: F403
from .api import BackwardPrefetch, CPUOffload, MixedPrecision, ShardingStrategy
from .wrap import CustomPolicy as CustomPolicy
from .wrap import ModuleWrapPolicy as ModuleWrapPolicy
from .wrap import (
    _or_policy,
    _Policy,
    _post_order_apply,
    _recursive_wrap,
    _wrap_module_cls_individually,
)

HYBRID_SHARDING_STRATEGIES = [ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2]
KEEPING = [ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2]
FSDP_WRAPPED_MODULE, FSDP_PREFIX = WRAPPED, PREFIX


class FullyShardedDataParallel(OptimizerStates):
    """A unit: a module whose parameters are sharded, and gathered for its computation alone. It
    shards those that no unit inside of the module has, as `fully_shard` does, in place.

    auto_wrap_policy: chooses the modules inside that become units, see
    torch.distributed.fsdp.wrap. sharding_strategy: see ShardingStrategy. device_mesh: by default
    one of all devices. mixed_precision: dtypes, see MixedPrecision. ignored_states: parameters or
    modules that are not sharded, whose gradients stay those of the process; ignored_modules:
    modules alone. param_init_fn: called with each module inside of one on the device meta; by
    default those with tensors on it call `reset_parameters`. sync_module_states: all processes
    take the buffers of rank 0; its parameters they take always.

    Parameters keep their names and shapes, also with `use_orig_params=False`: there is no flat
    parameter. backward_prefetch, forward_prefetch, limit_all_gathers: taken and of no effect, as
    XLA schedules the communication. process_group: of all processes.

    Raises NotImplementedError for CPUOffload(offload_params=True), for
    MixedPrecision(keep_low_precision_grads=True) and for a group of some processes; ValueError for
    HYBRID_SHARD without a mesh of two dimensions.

    >>> from jaxgrad.distributed.fsdp import FullyShardedDataParallel
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> model = FullyShardedDataParallel(jaxgrad.nn.Linear(2, 4), device_mesh=mesh)
    >>> model(jaxgrad.ones(3, 2)).shape, model.module.weight.placements
    (torch.Size([3, 4]), (Shard(dim=0),))
    """

    def __init__(
        self,
        module: Module,
        process_group: ProcessGroup | None = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy=None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None,
        device_id=None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Parameter] | Iterable[Module] | None = None,
        device_mesh: DeviceMesh | None = None,
    ):
        super().__init__()
        self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        self.mixed_precision = mixed_precision or MixedPrecision()
        self.cpu_offload, self._use_orig_params = cpu_offload or CPUOffload(), use_orig_params
        self.backward_prefetch, self.forward_prefetch = backward_prefetch, forward_prefetch
        self.limit_all_gathers, self._is_summoned = limit_all_gathers, False
        _check(module, self.cpu_offload, self.mixed_precision)
        mesh = _mesh(process_group, device_mesh, self.sharding_strategy, device_id)
        modules, parameters = _ignored(module, ignored_modules, ignored_states)
        if auto_wrap_policy is not None:
            options = {
                "process_group": process_group,
                "sharding_strategy": sharding_strategy,
                "cpu_offload": cpu_offload,
                "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision,
                "param_init_fn": param_init_fn,
                "device_id": device_id,
                "sync_module_states": sync_module_states,
                "forward_prefetch": forward_prefetch,
                "limit_all_gathers": limit_all_gathers,
                "use_orig_params": use_orig_params,
                "ignored_states": parameters,
                "device_mesh": device_mesh,
            }
            _auto_wrap(module, auto_wrap_policy, modules, parameters, options)
        _materialize(module, modules, param_init_fn, mesh)
        if sync_module_states and not is_single_process(mesh):
            _share_buffers(module)
        self._fsdp = self._shard(module, mesh, parameters)
        self._cast_buffers(module, modules)
        self._fsdp_wrapped_module = module

    def _shard(self, module, mesh, ignored):
        reshards = False if self.sharding_strategy in KEEPING else None
        is_whole = self.sharding_strategy is ShardingStrategy.NO_SHARD
        choose = (lambda _: Replicate()) if is_whole else None
        dtypes = self.mixed_precision
        policy = MixedPrecisionPolicy(dtypes.param_dtype, dtypes.reduce_dtype)
        return sharded_state(module, mesh, reshards, choose, policy, ignored)

    @no_grad()
    def _cast_buffers(self, module, ignored):
        dtype = self.mixed_precision.buffer_dtype
        for path, owner in _own_modules(module, ignored) if dtype is not None else ():
            for name, buffer in owner.named_buffers(recurse=False):
                if buffer.is_floating_point():
                    self._buffer_dtypes[path + name] = buffer.dtype
                    buffer.data = buffer.to(dtype)

    def forward(self, *args, **kwargs):
        state, dtypes = self._fsdp, self.mixed_precision
        casts_root = state.is_outermost and dtypes.cast_root_forward_inputs
        state.casts_inputs = casts_root or dtypes.cast_forward_inputs
        args, kwargs = state.prepared(type(self).__name__, args, kwargs)
        with state.gathered(args, kwargs):
            return self._fsdp_wrapped_module(*args, **kwargs)

    # ---- the wrapped module

    @property
    def module(self) -> Module:
        """The wrapped module."""
        return self._fsdp_wrapped_module

    @property
    def _has_params(self) -> bool:
        """Whether the unit shards parameters of its own."""
        return bool(self._fsdp.parameters)

    @property
    def _flat_param(self) -> FlatParameter | None:
        """Its parameters as one vector; None if it has none."""
        return FlatParameter(self.module, self._fsdp.parameters) if self._has_params else None

    @property
    def _handle(self) -> FlatParamHandle | None:
        """What has `_flat_param`."""
        return FlatParamHandle(self._flat_param) if self._has_params else None

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if WRAPPED not in self.__dict__.get("_modules", ()):
                raise  # of a wrapper under construction
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key):
        return self._fsdp_wrapped_module[key]

    def check_is_root(self) -> bool:
        """Whether no unit contains this one."""
        return self._fsdp.is_outermost

    def apply(self, fn: Callable[[Module], None]):
        """`Module.apply`, with whole parameters."""
        with self.summon_full_params(self, recurse=False):
            return super().apply(fn)

    def named_parameters(self, *args, **kwargs):
        """`Module.named_parameters`; in a block of `summon_full_params` with the names of the
        wrapped module.
        """
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield clean(name) if self._is_summoned else name, parameter

    def named_buffers(self, *args, **kwargs):
        """`Module.named_buffers`; in a block of `summon_full_params` with the names of the wrapped
        module.
        """
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield clean(name) if self._is_summoned else name, buffer

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ):
        """A block in which the parameters of a model are whole tensors in each process.

        recurse: those of the units inside too. writeback: keep what the block changes; each process
        keeps its shard of its own tensors. rank0_only: in the process of rank 0 alone.
        offload_to_cpu: on the CPU. with_grads: gradients too. Raises NotImplementedError for
        `writeback` with `rank0_only`, and for `with_grads` with `offload_to_cpu`.
        """
        check_summoned(writeback, rank0_only, offload_to_cpu, with_grads)
        units = FullyShardedDataParallel.fsdp_modules(module) if recurse else [module]
        units = [unit for unit in units if isinstance(unit, FullyShardedDataParallel)]
        options = writeback, rank0_only, offload_to_cpu, with_grads
        if any(unit._is_summoned for unit in units):
            raise AssertionError(
                "Cannot manually unshard parameters when already unsharding parameters"
            )
        with contextlib.ExitStack() as stack:
            for unit in units:
                stack.enter_context(summoned(unit._fsdp, *options))
                stack.callback(setattr, unit, "_is_summoned", False)
                unit._is_summoned = True
            yield

    # ---- gradients

    def _check_root(self, name: str):
        if not self.check_is_root():
            raise RuntimeError(f"`{name}()` should only be called on the root FSDP instance")

    @contextlib.contextmanager
    def no_sync(self):
        """A block whose gradients accumulate, for the first backward pass outside of it.

        The passes inside average their gradients over the processes too: the sum of the averages is
        the average of the sums. Raises RuntimeError on a unit inside of another one.
        """
        self._check_root("no_sync")
        yield

    @no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients, of all processes, to a total norm of at most `max_norm`; returns the
        norm before. Raises RuntimeError on a unit inside of another one.
        """
        self._check_root("clip_grad_norm_")
        grads = [p.grad for p in self.parameters() if p.grad is not None]
        kinds: dict[bool, list[Tensor]] = {}
        for grad in grads:
            kinds.setdefault(is_distributed(grad), []).append(grad)
        norms = [get_total_norm(alike, norm_type) for alike in kinds.values()]
        # a norm of tensors of the process meets that of DTensors as one of the process
        norms = norms if len(norms) == 1 else list(map(_of_process, norms))
        total = get_total_norm(norms, norm_type)
        scale = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(scale.to(grad.dtype))
        return _of_process(total)

    def register_comm_hook(self, state, hook):
        """Raise NotImplementedError: compiled programs have the communication of gradients in them;
        MixedPrecision(reduce_dtype=...) compresses it.
        """
        raise NotImplementedError(
            "register_comm_hook: XLA's programs have the communication of gradients in them. To "
            "send less, use MixedPrecision(reduce_dtype=torch.bfloat16)"
        )


def _of_process(tensor: Tensor) -> Tensor:
    """A tensor as one of this process."""
    return full_tensor(tensor) if is_distributed(tensor) else tensor


# ---- arguments


def _check(module, cpu_offload, dtypes):
    if cpu_offload.offload_params:
        raise NotImplementedError(
            "CPUOffload(offload_params=True): jaxgrad keeps parameters on the devices; shard over "
            "more of them"
        )
    if dtypes.keep_low_precision_grads:
        raise NotImplementedError(
            "MixedPrecision(keep_low_precision_grads=True): a gradient has the dtype of its "
            "parameter; keep the parameters in the low precision, by model.to(dtype) before"
        )
    if isinstance(module, ModuleList | ModuleDict):
        warnings.warn(
            "FSDP will not all-gather parameters for containers that do not implement forward: "
            f"{module}",
            stacklevel=3,
        )


def _mesh(process_group, device_mesh, strategy, device_id) -> DeviceMesh:
    """The mesh over which parameters are sharded."""
    if process_group is not None and device_mesh is not None:
        raise ValueError(
            "Cannot pass both process_group and device_mesh at the same time. Please just pass "
            "only one of them."
        )
    if process_group is not None and not getattr(process_group, "is_world", False):
        raise NotImplementedError(
            "FullyShardedDataParallel: process_group must have all processes; to replicate over "
            'some, give device_mesh=init_device_mesh("cpu", (replicas, shards)) and HYBRID_SHARD'
        )
    mesh, is_hybrid = current_mesh(device_mesh), strategy in HYBRID_SHARDING_STRATEGIES
    if mesh.ndim != 1 + is_hybrid:
        raise ValueError(
            f"FullyShardedDataParallel: {strategy} needs device_mesh= of {1 + is_hybrid} "
            f"dimension(s), not {mesh}"
        )
    kind = getattr(device_id, "type", mesh.device_type)
    if kind != mesh.device_type:
        raise ValueError(
            f"FullyShardedDataParallel: device_id={device_id!r}, and the devices of {mesh} are of "
            f"type {mesh.device_type!r}"
        )
    return mesh


def _ignored(module, ignored_modules, ignored_states) -> tuple[set[Module], list[Parameter]]:
    """The modules that are left alone, and all parameters that are."""
    if ignored_modules is not None and ignored_states is not None:
        raise ValueError(
            "Cannot pass both ignored_modules and ignored_states at the same time. Please just "
            "pass ignored_states."
        )
    chosen = list(ignored_modules or ignored_states or ())
    roots = [root for root in chosen if isinstance(root, Module)]
    if roots and len(roots) < len(chosen):
        raise ValueError("ignored_states expects all nn.Parameter or all nn.Module list elements")
    if any(isinstance(root, FullyShardedDataParallel) for root in roots):
        raise ValueError("`ignored_modules` should not include FSDP modules")
    modules = {inner for root in roots for inner in root.modules() if not is_sharded(inner)}
    parameters = [] if roots else chosen
    return modules, [*parameters, *(p for m in modules for p in m.parameters(recurse=False))]


def _own_modules(module: Module, ignored, path: str = ""):
    """The modules of a unit, none of a unit inside, with the paths of their members."""
    yield path, module
    for name, child in module.named_children():
        if not is_sharded(child) and child not in ignored:
            yield from _own_modules(child, ignored, f"{path}{name}.")


@no_grad()
def _materialize(module, ignored, init, mesh):
    """Give the tensors of a unit that are on the device meta data."""
    owners = [owner for _, owner in _own_modules(module, ignored)]
    empty = [owner for owner in owners if any(tensor.is_meta for tensor in _tensors(owner))]
    for owner in owners if empty and init is not None else empty:
        if init is not None:
            init(owner)
            continue
        if not hasattr(owner, "reset_parameters"):
            raise AttributeError(
                f"FullyShardedDataParallel: {type(owner).__name__} is on the device meta, and has "
                "no reset_parameters(): give param_init_fn="
            )
        owner.to_empty(device=mesh.device_type, recurse=False)
        owner.reset_parameters()


def _tensors(module):
    yield from module.parameters(recurse=False)
    yield from module.buffers(recurse=False)


@no_grad()
def _share_buffers(module):
    """Give all processes the buffers of rank 0."""
    for buffer in module.buffers() if is_initialized() else ():
        broadcast(buffer, 0)


# ---- units inside


def _auto_wrap(module: Module, policy, ignored_modules, ignored_parameters, options):
    """Make units of the modules that a policy chooses."""
    if sharded_modules(module):
        raise ValueError(
            "FSDP auto wrapping requires modules to not already have FSDP applied but found "
            f"{sharded_modules(module)[0]} in\n{module}"
        )
    kept, exact = _modules_without_mixed_precision(module, options["mixed_precision"])
    if not isinstance(policy, _Policy):
        individually = functools.partial(_wrap_module_cls_individually, module_classes=kept)
        either = functools.partial(_or_policy, policies=[policy, individually])
        _recursive_wrap(
            module,
            either if kept else policy,
            FullyShardedDataParallel,
            ignored_modules,
            ignored_parameters,
            only_wrap_children=True,
            **options,
        )
        return
    chosen = policy._run_policy(module, ignored_modules, options)
    for inner in exact:
        if inner not in ignored_modules:
            chosen[inner] = chosen.get(inner, options) | inner._wrap_overrides

    def wrapped(inner):
        is_chosen = inner in chosen and inner is not module
        return FullyShardedDataParallel(inner, **chosen[inner]) if is_chosen else None

    _post_order_apply(module, wrapped)


def _modules_without_mixed_precision(module: Module, dtypes):
    """The classes of modules that compute in float32, and the modules of them in a module."""
    kept = () if dtypes is None else tuple(dtypes._module_classes_to_ignore)
    exact = [inner for inner in module.modules() if isinstance(inner, kept)]
    for inner in exact:
        _compute_in_float32(inner)
    if exact:
        names = {type(inner) for inner in exact}
        warnings.warn(
            "Both mixed precision and an auto_wrap_policy were specified to FSDP, where the "
            f"wrapped module has submodules of type:\n{names}\nThese modules will be wrapped as "
            "separate FSDP instances with mixed precision disabled.",
            stacklevel=4,
        )
    return kept, exact


def _compute_in_float32(module: Module):
    """Let a module take inputs in float32, and give outputs in the dtype that they had."""
    module._wrap_overrides = {"mixed_precision": None}
    before = {}

    def widened(_, args):
        def cast(leaf):
            if not isinstance(leaf, Tensor) or not leaf.is_floating_point():
                return leaf
            before["dtype"] = leaf.dtype
            return leaf.float()

        return pytree.map_leaves(cast, args)

    def narrowed(_, _args, output):
        dtype = before.pop("dtype", None)
        is_cast = dtype is not None
        return pytree.map_leaves(lambda leaf: leaf.to(dtype), output) if is_cast else output

    module.register_forward_pre_hook(widened)
    module.register_forward_hook(narrowed)


__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

__getattr__, __dir__ = names_of(__name__)
