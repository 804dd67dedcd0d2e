"""`DistributedDataParallel`: each process trains on its own batches, and gradients are averaged.

Where one process has all devices of a mesh, the batch is sharded over them, parameters are
replicated, and XLA adds the gradients.
"""

from __future__ import annotations

import contextlib
import functools

from jax.sharding import PartitionSpec

from .. import ops
from ..autograd.grad_mode import no_grad
from ..autograd.variable import Variable
from ..core import communication as kinds
from ..frontend import factories
from ..frontend.tensor_data import tensor as tensor_of
from ..nn.module import Module
from ..nn.parallel.data_parallel import beside
from ..tape.communicate import among
from ..tape.tensor import is_concrete
from .collectives import broadcast
from .device_mesh import DeviceMesh
from .process_group import ProcessGroup, default_group
from .tensor._distribute import place
from .tensor._dtensor import install
from .tensor._inputs import sharded_inputs
from .tensor.placement_types import is_single_process, sharding_of

install()

BUCKET_MB = 25


class DistributedDataParallel(Module):
    """Train a module in several processes, which average its gradients after each backward pass.

    module: on its device; all processes begin with the parameters and buffers of rank 0. Each
    process calls it on a batch of its own, and its gradients become the means over all processes:
    those of the mean of the losses. In a function compiled by `jaxgrad.jit` the whole step is one
    program. process_group: the processes; device_mesh: instead of it, a mesh of one dimension; one
    whose devices belong to this process alone shards the batch over them.
    broadcast_buffers: whether the buffers of rank 0, such as running averages, replace those of the
    others at each call in training. bucket_cap_mb: gradients are averaged in groups of about so
    many megabytes. find_unused_parameters: allow backward passes that do not reach all parameters;
    else they raise RuntimeError. gradient_as_bucket_view, static_graph, device_ids, output_device:
    taken, and of no effect here.

    Raises ValueError before `init_process_group` without `device_mesh`; RuntimeError for a module
    without parameters that require grad.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> model = jaxgrad.nn.parallel.DistributedDataParallel(jaxgrad.nn.Linear(2, 1))
    >>> model(jaxgrad.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad.shape
    torch.Size([1, 2])
    >>> jaxgrad.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids=None,
        output_device=None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        *,
        device_mesh: DeviceMesh | None = None,
    ):
        super().__init__()
        self.module, self.dim, self.device_mesh = module, dim, device_mesh
        self.require_backward_grad_sync = True
        self.find_unused_parameters = find_unused_parameters
        self.broadcast_buffers = broadcast_buffers is not False
        self.bucket_bytes = int((bucket_cap_mb or BUCKET_MB) * 2**20)
        self._trained = [param for param in module.parameters() if param.requires_grad]
        if not self._trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        if device_mesh is not None and device_mesh.ndim != 1:
            raise ValueError(
                f"DistributedDataParallel: device_mesh must have one dimension, not {device_mesh}"
            )
        self.process_group = None
        if device_mesh is not None and is_single_process(device_mesh):
            self._replicate()
        else:
            self.process_group = process_group or _group(device_mesh)
            self._watch(init_sync)

    def _replicate(self):
        whole = sharding_of(self.device_mesh, PartitionSpec())
        for tensor in (*self.module.parameters(), *self.module.buffers()):
            place(tensor, whole)

    def _watch(self, init_sync: bool):
        if init_sync:
            self._share([*self.module.parameters(), *self.module.buffers()])
        # the numbers of the parameters whose gradients a backward pass has accumulated
        self._arrived: set[int] = set()
        for number, parameter in enumerate(self._trained):
            parameter.register_post_accumulate_grad_hook(functools.partial(self._note, number))

    @no_grad()
    def _share(self, tensors):
        """Give all processes the tensors of rank 0 of the group."""
        for tensor in tensors:
            broadcast(tensor, group=self.process_group, group_src=0)

    def forward(self, *args, **kwargs):
        if self.process_group is None:
            inputs, name = (args, kwargs), type(self).__name__
            args, kwargs = sharded_inputs(name, self.device_mesh, inputs, self.dim)
        elif self.broadcast_buffers and self.training and self.require_backward_grad_sync:
            self._share(self.module.buffers())
        args, kwargs = beside(self.module, (args, kwargs))
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """A block whose backward passes do not average: gradients accumulate in each process, and
        the first pass outside of it averages the sums.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _note(self, number: int, _parameter):
        """Note that a backward pass has accumulated the gradient of a parameter."""
        if not self.require_backward_grad_sync:
            return
        if not self._arrived:
            Variable._execution_engine.queue_callback(self._average)
        self._arrived.add(number)

    def _average(self):
        """Average the gradients at the end of a backward pass, in buckets."""
        arrived = set(self._arrived)
        self._arrived.clear()
        pairs = enumerate(self._trained)
        missing = [param for n, param in pairs if n not in arrived and param.requires_grad]
        if missing and not self.find_unused_parameters:
            names = {id(p): name for name, p in self.module.named_parameters()}
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new "
                "one. This error indicates that your module has parameters that were not used in "
                f"producing loss: {', '.join(names.get(id(p), '?') for p in missing)}. "
                "Give find_unused_parameters=True, or use all of them; nothing was averaged"
            )
        with no_grad():
            if missing and is_concrete(missing[0]):
                # in a compiled function all processes have used the same
                self._average_unused(arrived)
            # the last gradients come first, as they are needed last
            ready = [param for param in reversed(self._trained) if param.grad is not None]
            for bucket in buckets(ready, self.bucket_bytes):
                average([param.grad for param in bucket], self.process_group)

    def _average_unused(self, arrived):
        """Give a gradient of zeros to each parameter that only other processes have used."""
        flags = tensor_of([float(n in arrived) for n in range(len(self._trained))])
        used = among(flags, self.process_group, kinds.AllReduce)
        for parameter, count in zip(self._trained, used.tolist(), strict=True):
            if count and parameter.grad is None:
                parameter.grad = factories.zeros_like(parameter)


def _group(mesh: DeviceMesh | None) -> ProcessGroup:
    return default_group() if mesh is None else mesh.get_group()


def buckets(tensors, limit: int):
    """Tensors in order, in groups of one dtype whose gradients have about `limit` bytes."""
    open_buckets: dict = {}
    for tensor in tensors:
        bucket, size = open_buckets.get(tensor.grad.dtype, ([], 0))
        bucket.append(tensor)
        size += tensor.grad.numel() * tensor.grad.element_size()
        if size >= limit:
            yield bucket
            bucket, size = [], 0
        open_buckets[tensor.grad.dtype] = bucket, size
    yield from [bucket for bucket, _ in open_buckets.values() if bucket]


def average(gradients, group: ProcessGroup):
    """Replace gradients by their means over the processes, in one communication."""
    if group.size() == 1:
        return
    flat = ops.cat([gradient.reshape(-1) for gradient in gradients])
    mean = among(flat, group, kinds.AllReduce) / group.size()
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, part in zip(gradients, ops.split(mean, sizes), strict=True):
        gradient.copy_(part.view(gradient.shape))
