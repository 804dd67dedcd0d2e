"""Making DTensors: of tensors, of modules, and by factories."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ...autograd.grad_mode import no_grad
from ...core import communication as kinds
from ...core.aval import aval_of
from ...core.meta_array import MetaArray
from ...frontend import factories
from ...frontend.random import rand as rand_of_one
from ...frontend.random import randn as randn_of_one
from ...nn.module import Module
from ...nn.parameter import Parameter
from ...tape.communicate import among
from ...tape.tensor import Tensor, abstract_value, current, held, hold, is_on_meta, set_alias, wrap
from ..device_mesh import DeviceMesh, current_mesh
from ..process_group import default_group, is_initialized
from ._dtensor import is_abstract, is_distributed, redistribute
from .placement_types import (
    Placement,
    check_even,
    checked,
    sharding_of,
    spec_of,
)


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Tensor:
    """Shard a leaf over a mesh; a DTensor changes its placements.

    tensor: the whole tensor, in each process. placements: one for each dimension of the mesh,
    Replicate by default. src_data_rank: the process whose numbers count, which the others get; None
    if all processes have the same. A tensor on the device meta becomes one without data that knows
    its sharding.

    Raises RuntimeError for a tensor that was computed; ValueError for placements that do not fit
    the mesh, or do not cut the tensor into equal parts; NotImplementedError for Partial.

    >>> from jaxgrad.distributed.tensor import Shard, distribute_tensor
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> distribute_tensor(jaxgrad.ones(2), mesh, [Shard(0)]).placements
    (Shard(dim=0),)
    """
    mesh = current_mesh(device_mesh)
    if is_distributed(tensor):
        return redistribute(tensor, mesh, placements)
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf "
            "tensor: DTensor.from_local has a gradient"
        )
    chosen = checked("distribute_tensor", mesh, placements, tensor.ndim)
    spec = spec_of(mesh, chosen, tensor.ndim)
    check_even("distribute_tensor", tensor.shape, mesh, spec)
    array = sharded(tensor, sharding_of(mesh, spec), src_data_rank)
    leaf = wrap(array, requires_grad=tensor.requires_grad)
    return Parameter(leaf.detach(), leaf.requires_grad) if isinstance(tensor, Parameter) else leaf


@no_grad()
def sharded(tensor: Tensor, sharding: NamedSharding, source: int | None = None):
    """The array of a tensor with a sharding."""
    tensor = current(tensor)
    if is_on_meta(tensor):
        return MetaArray(abstract_value(tensor), sharding)
    if sharding.is_fully_addressable:
        with jax.enable_x64(True):
            return jax.device_put(held(tensor), sharding)
    if source is not None and is_initialized():
        tensor = among(tensor.detach(), default_group(), kinds.Broadcast, root=source)
    numbers = np.asarray(held(current(tensor)))
    with jax.enable_x64(True):
        return jax.make_array_from_callback(numbers.shape, sharding, numbers.__getitem__)


def place(tensor: Tensor, sharding: NamedSharding, source: int | None = None):
    """Give a leaf the sharding, in place: whoever holds it, such as an optimizer, keeps it."""
    if is_distributed(tensor) and not is_abstract(tensor):
        with jax.enable_x64(True):
            array = jax.device_put(held(current(tensor)), sharding)
    else:
        array = sharded(tensor, sharding, source)
    hold(tensor, array, aval_of(array))
    set_alias(tensor, None)


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable | None = None,
    input_fn: Callable | None = None,
    output_fn: Callable | None = None,
) -> Module:
    """Shard the parameters and buffers of a module, in place, and return it.

    partition_fn: called with the name and each submodule and the mesh, to shard its parameters;
    those that are no DTensors afterwards are replicated. input_fn: called with the module, its
    inputs and the mesh before each call, and returns the inputs; output_fn likewise after it.

    >>> from jaxgrad.distributed.tensor import distribute_module
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> distribute_module(jaxgrad.nn.Linear(2, 1), mesh).weight.placements
    (Replicate(),)
    """
    mesh = current_mesh(device_mesh)
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, mesh)
    whole = sharding_of(mesh, PartitionSpec())
    for tensor in (*module.parameters(), *module.buffers()):
        if not is_distributed(tensor):
            place(tensor, whole, 0)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda owner, inputs: input_fn(owner, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda owner, inputs, output: output_fn(owner, output, mesh))
    return module


def _factory(make, name: str, is_random: bool, values: str = "2, 3"):
    def factory(
        *size,
        requires_grad: bool = False,
        dtype=None,
        layout=None,
        device_mesh=None,
        placements=None,
        **options,
    ) -> Tensor:
        mesh = current_mesh(device_mesh)
        whole = make(*size, dtype=dtype, **options)
        dtensor = distribute_tensor(whole, mesh, placements, src_data_rank=None)
        return dtensor.requires_grad_() if requires_grad else dtensor

    factory.__name__ = factory.__qualname__ = name
    extra = " Each process draws the same numbers if its generator has the same state."
    factory.__doc__ = f"""A DTensor as `jaxgrad.{name}` makes it, with placements on a mesh:
    Replicate by default.{extra if is_random else ""}

    device_mesh: by default one of all devices. Raises ValueError where Shard does not cut the
    tensor into equal parts.

    >>> from jaxgrad.distributed import tensor
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> placements = [tensor.Shard(0)]
    >>> x = tensor.{name}({values}, device_mesh=mesh, placements=placements)
    >>> x.shape, x.placements
    (torch.Size([2, 3]), (Shard(dim=0),))
    """
    return factory


ones = _factory(factories.ones, "ones", False)
zeros = _factory(factories.zeros, "zeros", False)
empty = _factory(factories.empty, "empty", False)
full = _factory(factories.full, "full", False, "(2, 3), 7.0")
rand = _factory(rand_of_one, "rand", True)
randn = _factory(randn_of_one, "randn", True)
