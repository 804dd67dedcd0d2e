"""Arrays in programs of several processes: how one process takes part in a program of all.

A tensor of one process is an array on its own device. A program that communicates runs on one
device of each process, and all of them take part. In it such an array counts as replicated: each
device has a copy, and the copies differ. This holds as long as every operator of the program runs
on whole copies, which `core/communication.py` sees to. An array that spans processes is one of
JAX's: each process holds its shards.
"""

from __future__ import annotations

import functools

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from . import world
from .jax_internals import is_of_lost_process
from .world import DistBackendError

# the meshes that there have been, by what JAX's abstract values know of them
meshes: dict = {}


def raise_lost(error: Exception):
    """Raise the error of a kernel, as DistBackendError where a communication has failed."""
    if is_of_lost_process(error):
        raise DistBackendError(
            f"rank {world.current.rank} of {world.current.size}: a communication failed, most "
            "likely because another process has ended, or waits for something else; its own error "
            f"is in its output. The backend says: {error}"
        ) from error
    raise error


def ready(array, what: str):
    """The array, whose numbers are there. Raises RuntimeError if other processes have some of them,
    DistBackendError if a communication failed that they come from.
    """
    if not (array.is_fully_addressable or array.is_fully_replicated):
        raise RuntimeError(
            f"{what} needs all numbers of a DTensor of shape {list(array.shape)}, and other "
            "processes have some of them: full_tensor() gets them, in all processes, and "
            "to_local() gives the part of this one"
        )
    try:
        return array.block_until_ready()
    except (ValueError, jax.errors.JaxRuntimeError) as error:
        raise_lost(error)


def note_mesh(mesh: Mesh):
    """Note a mesh over which tensors may be sharded."""
    meshes[mesh.abstract_mesh] = mesh


def mesh_of_value(value) -> Mesh:
    """The mesh of a global array, or of a tracer of one."""
    if isinstance(value, jax.core.Tracer):
        return meshes.get(value.aval.sharding.mesh, world.current.mesh)
    sharding = value.sharding
    return sharding.mesh if isinstance(sharding, NamedSharding) else world.current.mesh


def placed_as(array, like):
    """An array where another one lies, if that is sharded, has the same shape, and neither is
    traced.
    """
    sharding = getattr(like, "sharding", None)
    is_sharded = isinstance(sharding, NamedSharding) and isinstance(like, jax.Array)
    if not is_sharded or array.shape != like.shape or isinstance(array, jax.core.Tracer):
        return array
    if isinstance(like, jax.core.Tracer) or sharding.is_equivalent_to(array.sharding, array.ndim):
        return array
    return moved(array, sharding)


def moved(array, sharding):
    """An array with a sharding. One of this process alone counts as the same in all."""
    if not sharding.is_fully_addressable and array.is_fully_addressable:
        array = shared(array, sharding.mesh)
    with jax.enable_x64(True):
        return jax.device_put(array, sharding)


@functools.lru_cache(64)
def _whole(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec())


def shared(array, mesh: Mesh):
    """An array as an input of a program on a mesh that has one device of this process: one of this
    process as its copy of a replicated array, one that spans processes itself.
    """
    if type(array) in NUMBERS:
        return number_on(mesh, array)
    if not getattr(array, "is_fully_addressable", True):
        return array
    local = world.current.device
    if not isinstance(array, jax.Array) or array.devices() != {local}:
        array = jax.device_put(array, local)
    return jax.make_array_from_single_device_arrays(array.shape, _whole(mesh), [array])


def placer(mesh: Mesh, by_values=frozenset()):
    """The function that turns arguments into inputs of a program on a mesh; by_values: the numbers
    of the arguments that are passed as NumPy arrays.
    """

    def placed(arrays):
        return [
            np.asarray(array) if number in by_values else shared(array, mesh)
            for number, array in enumerate(arrays)
        ]

    return placed


NUMBERS = {float, int, complex}


def number_on(mesh: Mesh, number):
    """A Python number on all devices of a mesh. It is kept: a learning rate is the same at most
    calls, and to place it takes long.
    """
    return _number_on(mesh, number, repr(number), jax.config.jax_enable_x64)


@functools.lru_cache(256, typed=True)
def _number_on(mesh: Mesh, number, text: str, is_x64: bool):
    """text: the repr of the number, which tells 0.0 from -0.0."""
    if _whole(mesh).is_fully_addressable:
        return jax.device_put(number, _whole(mesh))
    return shared(jax.device_put(number, world.current.device), mesh)


def number_described(mesh: Mesh, number) -> jax.ShapeDtypeStruct:
    """The abstract value of `number_on(mesh, number)`, whose devices need not be there."""
    aval = jax.typeof(number)
    return jax.ShapeDtypeStruct((), aval.dtype, sharding=_whole(mesh), weak_type=aval.weak_type)


# whether processes tell one another what they run before they do, and raise where they differ
compares_calls = False


def set_compares_calls(compares: bool):
    """Choose whether processes compare what they run."""
    global compares_calls
    compares_calls = compares


# of what a process runs so many bytes are compared
MOST_BYTES = 128


@functools.cache
def _teller(mesh: Mesh):
    """The function that gives all processes of a mesh what each of them tells."""
    axes = tuple(mesh.axis_names)
    return jax.jit(
        jax.shard_map(
            lambda values: jax.lax.all_gather(values, axes),
            mesh=mesh,
            in_specs=PartitionSpec(),
            out_specs=PartitionSpec(),
            check_vma=False,
        )
    )


def compare_calls(what: str, mesh: Mesh):
    """Raise DistBackendError, in all processes of a mesh, where they are about to run other
    programs. what: the program of this one.
    """
    encoded = np.frombuffer(what.encode()[:MOST_BYTES].ljust(MOST_BYTES), np.uint8)
    every = np.asarray(_teller(mesh)(shared(encoded, mesh)).addressable_data(0))
    texts = [bytes(row).decode(errors="replace").rstrip() for row in every.reshape(-1, MOST_BYTES)]
    if len(set(texts)) > 1:
        ranks = [device.process_index for device in mesh.devices.flat]
        shown = "; ".join(f"rank {n} runs {t}" for n, t in zip(ranks, texts, strict=True))
        raise DistBackendError(
            f"processes run different programs, which would exchange wrong numbers or wait for "
            f"ever: {shown}. All processes must call the same collectives, and the same operators "
            "on DTensors, in the same order"
        )


def compared(kernel, what: str):
    """`kernel` of arrays that span processes, which compares what the processes run."""

    def call(*arrays):
        if compares_calls:
            meshes = [mesh_of_value(array) for array in arrays if hasattr(array, "sharding")]
            compare_calls(what, max(meshes, key=lambda mesh: mesh.size, default=world.current.mesh))
        return kernel(*arrays)

    return call


def on_mesh(kernel, mesh: Mesh, stays_shared, what: str = "a program", placed=None):
    """`kernel`, which runs on a mesh, as a function of arrays of this process and of arrays that
    span processes. stays_shared: for each result whether it spans them; what: a description;
    placed: what makes the arguments inputs, by default `placer(mesh)`.
    """
    placed = placer(mesh) if placed is None else placed

    def call(*arrays):
        if compares_calls:
            compare_calls(what, mesh)
        try:
            inputs = placed(arrays)
            results = kernel(*inputs)
        except (ValueError, jax.errors.JaxRuntimeError) as error:
            raise_lost(error)
        if isinstance(results, jax.Array):
            return results if stays_shared[0] else results.addressable_data(0)
        pairs = zip(results, stays_shared, strict=True)
        copies = [result if stays else result.addressable_data(0) for result, stays in pairs]
        return type(results)(copies)

    return call
