"""Communication between processes, as linear primitives of JAX.

A primitive takes a value from one *view* to another. In the local view each process has an array of
its own; in the global view all processes hold shards of one array. `to_local` and `from_local` lead
from one to the other, the collectives stay in the local view.

In a compiled program a local value is a replicated array whose copies differ (core/spread.py). Each
primitive is lowered to a `shard_map` of its own that begins and ends with whole copies, so XLA's
partitioner never has a reason to split the operators between two of them.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..cached import cached_property
from . import world
from .aval import IMMEDIATE, INLINE, SPREAD, Aval, make_aval
from .jaxprs import equations_of, jaxprs_within
from .program import Program, Reverse


@dataclasses.dataclass(frozen=True)
class Communication:
    """A linear map between views.

    mesh: the devices that take part; axes: the axes of the mesh over which they communicate;
    groups: for a mesh of processes, the ranks that communicate with one another, None if all do;
    source, target: the partition of the global array that it takes or gives, None in the local
    view.
    """

    mesh: Mesh
    axes: tuple[str, ...] = (world.AXIS,)
    groups: tuple[tuple[int, ...], ...] | None = None
    source: PartitionSpec | None = None
    target: PartitionSpec | None = None

    @property
    def axis(self):
        return self.axes[0] if len(self.axes) == 1 else self.axes

    @property
    def options(self) -> dict:
        return {} if self.groups is None else {"axis_index_groups": list(map(list, self.groups))}

    @property
    def size(self) -> int:
        """How many take part in each group."""
        if self.groups is not None:
            return len(self.groups[0])
        return int(np.prod([self.mesh.shape[axis] for axis in self.axes], dtype=int))

    def rank(self):
        """Within a program: the number of the device in its group."""
        index = jax.lax.axis_index(self.axis)
        if self.groups is None:
            return index
        places = {rank: place for group in self.groups for place, rank in enumerate(group)}
        return jnp.array([places[rank] for rank in sorted(places)], jnp.int32)[index]

    def local(self, x):
        """The results of one device from its part."""
        raise NotImplementedError(f"{type(self).__name__}.local")

    def transposed(self) -> Communication:
        raise NotImplementedError(f"{type(self).__name__}.transposed")

    def shape(self, shape) -> tuple[int, ...]:
        """The shape of the result."""
        return shape


def _of_kind(communication, kind, **changes) -> Communication:
    """A communication of another kind among the same devices."""
    known = {field.name: getattr(communication, field.name) for field in FIELDS}
    return kind(**(known | changes))


FIELDS = dataclasses.fields(Communication)


@dataclasses.dataclass(frozen=True)
class AllReduce(Communication):
    """The sum over all, which each gets; or another `op`, which has no derivative."""

    op: str = "sum"

    def local(self, x):
        if self.op in _DIRECT:
            return _DIRECT[self.op](x, self.axis, **self.options).astype(x.dtype)
        every = jax.lax.all_gather(x, self.axis, **self.options)
        return functools.reduce(_COMBINED[self.op], every)

    def transposed(self):
        if self.op != "sum":
            raise NotImplementedError(
                f"all_reduce with op {self.op!r} has no derivative: only sums and averages have"
            )
        return self


_DIRECT = {"sum": jax.lax.psum, "max": jax.lax.pmax, "min": jax.lax.pmin}
_COMBINED = {
    "product": jnp.multiply,
    "band": jnp.bitwise_and,
    "bor": jnp.bitwise_or,
    "bxor": jnp.bitwise_xor,
}


def _scaled(shape, dim, count, size):
    """`shape` with one extent times `count` and divided by `size`."""
    return tuple(n * count // size if i == dim else n for i, n in enumerate(shape))


@dataclasses.dataclass(frozen=True)
class AllGather(Communication):
    """The parts of all along a dimension, which each gets."""

    dim: int = 0

    def local(self, x):
        return jax.lax.all_gather(x, self.axis, axis=self.dim, tiled=True, **self.options)

    def transposed(self):
        return _of_kind(self, ReduceScatter, dim=self.dim)

    def shape(self, shape):
        return _scaled(shape, self.dim, self.size, 1)


@dataclasses.dataclass(frozen=True)
class ReduceScatter(Communication):
    """The sum over all, cut along a dimension: each gets its part."""

    dim: int = 0

    def local(self, x):
        return jax.lax.psum_scatter(
            x, self.axis, scatter_dimension=self.dim, tiled=True, **self.options
        )

    def transposed(self):
        return _of_kind(self, AllGather, dim=self.dim)

    def shape(self, shape):
        return _scaled(shape, self.dim, 1, self.size)


@dataclasses.dataclass(frozen=True)
class AllToAll(Communication):
    """Each gives one part along `split` to each, and gets the others' along `concat`."""

    split: int = 0
    concat: int = 0

    def local(self, x):
        return jax.lax.all_to_all(x, self.axis, self.split, self.concat, tiled=True, **self.options)

    def transposed(self):
        return _of_kind(self, AllToAll, split=self.concat, concat=self.split)

    def shape(self, shape):
        parts = _scaled(shape, self.split, 1, self.size)
        return _scaled(parts, self.concat, self.size, 1)


@dataclasses.dataclass(frozen=True)
class Permute(Communication):
    """Sends values between the `pairs` of a sender and a receiver; a process that receives nothing
    gets zeros.
    """

    pairs: tuple[tuple[int, int], ...] = ()

    def local(self, x):
        return jax.lax.ppermute(x, self.axis, self.every_pair())

    def every_pair(self):
        groups = self.groups or [range(self.size)]
        return [(group[a], group[b]) for group in groups for a, b in self.pairs]

    def transposed(self):
        return _of_kind(self, Permute, pairs=tuple([(b, a) for a, b in self.pairs]))


@dataclasses.dataclass(frozen=True)
class Broadcast(Communication):
    """The value of `root`, for all."""

    root: int = 0

    def local(self, x):
        mine = jnp.where(self.rank() == self.root, x, jnp.zeros_like(x))
        return jax.lax.psum(mine, self.axis, **self.options).astype(x.dtype)

    def transposed(self):
        return _of_kind(self, Reduce, root=self.root)


@dataclasses.dataclass(frozen=True)
class Reduce(Communication):
    """The sum over all, which `root` gets; the others get zeros."""

    root: int = 0

    def local(self, x):
        total = jax.lax.psum(x, self.axis, **self.options).astype(x.dtype)
        return jnp.where(self.rank() == self.root, total, jnp.zeros_like(x))

    def transposed(self):
        return _of_kind(self, Broadcast, root=self.root)


@dataclasses.dataclass(frozen=True)
class Scatter(Communication):
    """The parts of the value of `root` along the first dimension, one for each."""

    root: int = 0

    def local(self, x):
        mine = jnp.where(self.rank() == self.root, x, jnp.zeros_like(x))
        return jax.lax.psum_scatter(mine, self.axis, tiled=True, **self.options).astype(x.dtype)

    def transposed(self):
        return _of_kind(self, Gather, root=self.root)

    def shape(self, shape):
        return _scaled(shape, 0, 1, self.size)


@dataclasses.dataclass(frozen=True)
class Gather(Communication):
    """The parts of all along the first dimension, which `root` gets; the others get zeros."""

    root: int = 0

    def local(self, x):
        every = jax.lax.all_gather(x, self.axis, tiled=True, **self.options)
        return jnp.where(self.rank() == self.root, every, jnp.zeros_like(every))

    def transposed(self):
        return _of_kind(self, Scatter, root=self.root)

    def shape(self, shape):
        return _scaled(shape, 0, self.size, 1)


# ---- from view to view


def part_of(shape, spec: PartitionSpec, mesh: Mesh) -> tuple[int, ...]:
    """The shape of one device's part of a global array."""
    return NamedSharding(mesh, spec).shard_shape(tuple(shape))


def whole_of(shape, spec: PartitionSpec, mesh: Mesh) -> tuple[int, ...]:
    """The shape of the global array whose parts have a shape."""
    extents = list(shape)
    for dim, names in enumerate(spec):
        for name in (names,) if isinstance(names, str) else names or ():
            extents[dim] *= mesh.shape[name]
    return tuple(extents)


@dataclasses.dataclass(frozen=True)
class _View(Communication):
    """A step from one view to the other.

    sums: the axes over which values in the local view are summed; scale: a factor of the result;
    back, back_scale: the partition and the factor of the gradient.
    """

    sums: tuple[str, ...] = ()
    scale: float = 1.0
    back: PartitionSpec | None = None
    back_scale: float = 1.0

    def local(self, x):
        result = self.moved(x)
        return result if self.scale == 1 else (result * self.scale).astype(x.dtype)

    def moved(self, x):
        raise NotImplementedError(f"{type(self).__name__}.moved")


class ToLocal(_View):
    """A device's part of a global array, in the local view. The gradients of the parts are those of
    the processes, which `sums` adds.
    """

    def moved(self, x):
        return x

    def transposed(self):
        target = self.source if self.back is None else self.back
        return _of_kind(
            self,
            FromLocal,
            source=None,
            target=target,
            sums=self.sums,
            scale=self.back_scale,
            back_scale=self.back_scale,
        )

    def shape(self, shape):
        return part_of(shape, self.source, self.mesh)


class FromLocal(_View):
    """The global array of the parts in the local view, or of their sums."""

    def moved(self, x):
        return jax.lax.psum(x, self.sums) if self.sums else x

    def transposed(self):
        # each summand has the gradient of the sum
        return _of_kind(
            self,
            ToLocal,
            source=self.target,
            target=None,
            back=self.target,
            sums=self.sums,
            scale=self.scale,
            back_scale=self.scale,
        )

    def shape(self, shape):
        return whole_of(shape, self.target, self.mesh)


@dataclasses.dataclass(frozen=True)
class Unshard(_View):
    """A global array that is partitioned along a dimension, whole in the local view. The gradients
    of all processes are summed, over `sums` too, and each keeps its part.
    """

    dim: int = 0

    def moved(self, x):
        return jax.lax.all_gather(x, self.axis, axis=self.dim, tiled=True)

    def transposed(self):
        return _of_kind(
            self,
            Reshard,
            source=None,
            target=self.source,
            dim=self.dim,
            sums=self.sums,
            scale=self.back_scale,
            back_scale=self.back_scale,
        )


@dataclasses.dataclass(frozen=True)
class Reshard(_View):
    """The sum over processes of whole arrays in the local view, partitioned along a dimension over
    `axes` and replicated over `sums`.
    """

    dim: int = 0

    def moved(self, x):
        part = jax.lax.psum_scatter(x, self.axis, scatter_dimension=self.dim, tiled=True)
        return jax.lax.psum(part, self.sums) if self.sums else part

    def transposed(self):
        return _of_kind(
            self,
            Unshard,
            source=self.target,
            target=None,
            dim=self.dim,
            sums=self.sums,
            scale=self.scale,
            back_scale=self.scale,
        )


# ---- the primitive

communicate_p = Primitive("communicate")


def communicate(array, communication: Communication):
    """The result of a communication, as JAX's transformations know it."""
    return communicate_p.bind(array, communication=communication)


@communicate_p.def_abstract_eval
def _aval_of_result(aval, communication):
    result_aval = ShapedArray(communication.shape(aval.shape), aval.dtype)
    if communication.target is None:
        return result_aval
    whole = PartitionSpec(*[None] * result_aval.ndim)
    return result_aval.update(sharding=NamedSharding(communication.mesh.abstract_mesh, whole))


def _on_devices(array, communication):
    source, target = communication.source, communication.target
    return jax.shard_map(
        communication.local,
        mesh=communication.mesh,
        in_specs=PartitionSpec() if source is None else source,
        out_specs=PartitionSpec() if target is None else target,
        check_vma=False,
    )(array)


def _transpose(cotangent, _operand, communication):
    return [communicate(cotangent, communication.transposed())]


def _batched(operands, dims, communication):
    (array,), (dim,) = operands, dims
    # at the end, where it leaves the numbers of the other dimensions as they are
    array = jnp.moveaxis(array, dim, -1)
    return communicate(array, communication), array.ndim - 1


mlir.register_lowering(communicate_p, mlir.lower_fun(_on_devices, multiple_results=False))
ad.deflinear2(communicate_p, _transpose)
batching.primitive_batchers[communicate_p] = _batched


def mesh_of(jaxpr) -> Mesh | None:
    """The mesh on which a jaxpr communicates; None if it does not."""
    for equation in equations_of(jaxpr):
        if equation.primitive is communicate_p:
            return equation.params["communication"].mesh
    return None


def mesh_of_equation(equation) -> Mesh | None:
    """The mesh on which the jaxprs within an equation communicate; None if they do not."""
    meshes = (mesh_of(jaxpr) for jaxpr in jaxprs_within(equation))
    return next((mesh for mesh in meshes if mesh is not None), None)


def is_global(value) -> bool:
    """Whether a tracer, or a value of a jaxpr, is a global array."""
    place = getattr(getattr(value, "aval", None), "sharding", None)
    return place is not None and not place.mesh.empty


# ---- programs


class Communicated(Program):
    """The program of a communication."""

    may_run_on_host = False

    def __init__(self, communication: Communication, aval: Aval):
        self.communication, self.inputs = communication, (aval,)
        self.name = type(communication).__name__
        shape = communication.shape(tuple(aval.shape))
        concrete = IMMEDIATE if communication.target is None else SPREAD
        mode = aval.mode if aval.mode >= INLINE else concrete
        self.mode, self.outputs = max(mode, aval.mode), (make_aval(shape, aval.dtype, mode),)

    def function(self, array):
        return (communicate(array, self.communication),)

    def make_reverse(self, mask):
        return CommunicatedReverse(self, mask)


class CommunicatedReverse(Reverse):
    """The gradient of a communication: the transposed one of the gradient of its result."""

    saved_inputs = saved_outputs = ()

    def __init__(self, program, mask, present=None):
        super().__init__(program, mask, present)
        aval = program.inputs[0]
        self.outputs = (make_aval(tuple(aval.shape), aval.dtype, aval.mode),)

    @cached_property
    def communication(self) -> Communication:
        # not before a backward pass: a result without a derivative may well require grad
        return self.program.communication.transposed()

    def function(self, array):
        return (communicate(array, self.communication),)

    def make_reverse(self, mask):
        return CommunicatedReverse(self, mask)
