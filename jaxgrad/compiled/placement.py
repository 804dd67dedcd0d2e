"""Where a compiled program runs: on the devices of its inputs, or on those of all processes.

A program that communicates, or that takes an array that spans processes, runs on one device of each
of them. What belongs to one process is then an array with a copy on each device, and the copies
differ (core/spread.py).
"""

from __future__ import annotations

import operator

import jax
from jax.extend.core import Literal
from jax.sharding import NamedSharding, PartitionSpec

from ..core import spread, world
from ..core.aval import MIXED, SPREAD, with_dual, with_mode, with_strides
from ..core.communication import communicate_p, is_global, mesh_of, mesh_of_equation
from ..core.deferred import pending
from ..core.host_values import is_new
from ..core.jaxprs import jaxprs_within, opened
from ..core.pending import OwnCopy, Pending
from ..core.reference_counts import Held
from ..tape import interception
from ..tape.tensor import Tensor, held, wrap
from .donation import saves_inputs

# inlined: the accessors of tape/tensor.py


def compiled(program, compiling, tensors, jaxpr, outputs, **options):
    """`jax.jit` of a program with this jaxpr, with the right placement of inputs and outputs: an
    output that replaces a captured tensor keeps the sharding of the tensor.

    compiling: the Executable; tensors: the captured ones; outputs: the variables of the program's
    outputs. Raises RuntimeError if a tensor of one process meets one that spans processes.
    """
    mesh = _mesh(jaxpr) if world.is_several() else None
    written = written_by(compiling.output, tensors)
    places = [None] * len(outputs)
    for number, array in written.items():
        if isinstance(getattr(array, "sharding", None), NamedSharding):
            places[number] = array.sharding
    if mesh is None:
        options |= {"out_shardings": places} if any(places) else {}
        jitted, sharded = jax.jit(program, **options), _sharded(tensors)
        return jitted if sharded is None else MeshProgram(jitted, sharded)
    views = views_of(compiling.name, jaxpr)
    is_spread = [not isinstance(v, Literal) and views.get(v) is GLOBAL for v in outputs]
    note_views(compiling, is_spread)
    whole = NamedSharding(mesh, PartitionSpec())
    pairs = zip(places, is_spread, strict=True)
    places = [place if stays else whole for place, stays in pairs]
    effects = compiling.output.tensor_effects.effects
    avals = {
        effect.value.output: effect.value.aval for effect in effects if effect.value is not None
    }
    copies = {n: _plain(aval) for n, aval in avals.items() if not is_spread[n]}
    stays = [spans or number in copies for number, spans in enumerate(is_spread)]
    by_values = frozenset()
    if jax.default_backend() == "cpu" and not any(map(is_global, jaxpr.invars)):
        by_values = _unchanged_arguments(compiling)
        options["in_shardings"] = whole  # else JAX may spread what NumPy holds
    jitted = jax.jit(program, out_shardings=places, **options)
    placed = spread.placer(mesh, by_values)
    call = spread.on_mesh(jitted, mesh, stays, f"{compiling.name}, a compiled function", placed)
    return SpanningProgram(jitted, call, placed, copies)


def _unchanged_arguments(compiling) -> set[int]:
    """The numbers of the captured tensors that are arguments and stay unchanged. Most are new at
    each call, such as a batch, and JAX makes arrays of NumPy's values in C. Tensors with an array
    are passed as values too: JAX would compile the program a second time for arrays.
    """
    changed = {*compiling.donation, *compiling.output.written}
    arguments = [
        captured.number for captured in compiling.trace.captured if captured.position is not None
    ]
    return {*arguments} - changed


def note_views(compiling, spread):
    """Note which of the result tensors span processes: JAX's types do not tell after every
    operator.
    """
    output, pullback = compiling.output, compiling.trace.pullback
    effects = [effect.value for effect in output.tensor_effects.effects]
    for value in (*output.created, *effects):
        if value is not None and spread[value.output]:
            value.aval = with_mode(value.aval, SPREAD)
            if value.root is not None:
                pullback.avals[value.root] = value.aval


def written_by(output, tensors) -> dict[int, jax.Array]:
    """By the number of an output the array of the captured tensor that it replaces.

    output: what a function returns and changes; tensors: the captured ones.
    """
    effects = [effect for effect in output.tensor_effects.effects if effect.value is not None]
    return {effect.value.output: held(tensors[effect.number]) for effect in effects}


def _mesh(jaxpr):
    """The mesh of a program that spans processes, else None."""
    mesh = mesh_of(jaxpr)
    return world.current.mesh if mesh is None and any(map(is_global, jaxpr.invars)) else mesh


def _sharded(tensors) -> int | None:
    """The number of a tensor that is sharded over several devices, else None."""
    meshes = [_mesh_of_array(held(tensor)) for tensor in tensors]
    return next((n for n, mesh in enumerate(meshes) if mesh and mesh.size > 1), None)


def is_on_mesh(tensor) -> bool:
    """Whether the array of a tensor has a place on a mesh of devices, be it of one."""
    return _mesh_of_array(tensor._raw) is not None


def _mesh_of_array(array):
    sharding = getattr(array, "sharding", None)
    return sharding.mesh if isinstance(sharding, NamedSharding) else None


def reader(compiling):
    """The function that reads the array of a captured tensor for a call of an Executable."""
    if saves_inputs(compiling.trace):
        return held
    return held_whole if isinstance(compiling.program, SpanningProgram) else held_on_host


def arrays_of(tensors, read) -> list:
    """The function that reads the arrays of tensors, pending ones included."""
    values = [*map(raw, tensors)]
    return [*map(read, tensors)] if Pending in map(type, values) else values


def form_of(tensor: Tensor):
    """The shape and dtype of a tensor for a trace: its array, or a struct if NumPy holds its
    values.
    """
    value = tensor._raw
    if not is_new(value):
        return held(tensor)
    return jax.ShapeDtypeStruct(tuple(value.shape), value.dtype)


# what a tensor holds, pending or not
raw = operator.attrgetter("_raw")


def wrap_all(arrays, avals, tracked, nodes, output_nrs) -> list[Tensor]:
    """Tensors of new arrays, in less time than `wrap` takes for each."""
    are_concrete = _concrete.issuperset(map(type, arrays)) or _are_concrete(arrays)
    if interception.created is not None or not are_concrete:
        return [*map(wrap, arrays, avals, tracked, nodes, output_nrs)]
    wrapped = []
    columns = arrays, avals, tracked, nodes, output_nrs
    for array, aval, is_tracked, node, output_nr in zip(*columns, strict=True):
        tensor = _new(Tensor)
        tensor._raw, tensor._aval, tensor._tracked, tensor._node = array, aval, is_tracked, node
        tensor._nr, tensor._leaf, tensor._alias, tensor._counter = output_nr, None, None, None
        wrapped.append(tensor)
    return wrapped


_new = object.__new__

# the classes of arrays that have come up and are no tracers: to ask JAX's classes takes 1 us
_concrete: set[type] = {Pending}


def _are_concrete(arrays) -> bool:
    """Whether no array is a tracer."""
    kinds = {*map(type, arrays)}
    are_concrete = not any(issubclass(kind, jax.core.Tracer) for kind in kinds)
    _concrete.update(kinds if are_concrete else ())
    return are_concrete


def held_on_host(tensor: Tensor):
    """`held`, or the values of a new tensor that NumPy holds, the first time."""
    value = tensor._raw
    if type(value) is not Pending:
        return value
    values = value.stretch.take() if is_new(value) else None
    return held(tensor) if values is None else values


def held_whole(tensor: Tensor):
    """`held_on_host`, or an array that spans processes, if the tensor stands for this process's
    copy of the array and no code has read the copy.
    """
    value = tensor._raw
    if (
        type(value) is Pending
        and type(value.stretch) is OwnCopy
        and value.array is None
        and tensor._alias is None
    ):
        whole = value.stretch.whole
        del value
        if _RAW.is_sole(tensor):  # no other handle holds the copy, so the array may be donated
            return whole
    return held_on_host(tensor)


def _sole() -> Tensor:
    tensor = object.__new__(Tensor)
    tensor._raw = object()
    return tensor


_RAW = Held(operator.attrgetter("_raw"), _sole())


class MeshProgram:
    """A jitted function on a mesh of devices of this process, on which numbers stay. sharded: the
    number of an argument that may lie on a mesh, though not at every call.
    """

    def __init__(self, jitted, sharded: int):
        self.jitted, self.sharded = jitted, sharded

    def __call__(self, *arrays):
        return self.jitted(*self.placed(arrays))

    def placed(self, arrays, number_on=spread.number_on):
        """The arguments on the mesh."""
        numbers, mesh = spread.NUMBERS, _mesh_of_array(arrays[self.sharded])
        if mesh is None:
            return arrays
        return [number_on(mesh, array) if type(array) in numbers else array for array in arrays]

    def described(self, arrays):
        """The arguments, numbers by dtype and place: the mesh of a topology has no devices here."""
        return self.placed(arrays, spread.number_described)

    def lower(self, *arrays):
        return self.jitted.lower(*self.described(arrays))

    def trace(self, *arrays):
        return self.jitted.trace(*self.described(arrays))

    def eval_shape(self, *arrays):
        return self.jitted.eval_shape(*arrays)


class SpanningProgram(MeshProgram):
    """A jitted function on a mesh of several processes; `call`: the function of arrays of this
    process and of arrays that span processes (`spread.on_mesh`). placed: turns arguments into
    inputs (`spread.placer`); copies: by number the abstract values of the results that replace
    captured tensors of this process. They become pending copies, since most are arguments of the
    next call, and no other code reads them.
    """

    def __init__(self, jitted, call, placed, copies):
        self.jitted, self.call, self.copies = jitted, call, copies.items()
        self.placed = self.described = placed

    def __call__(self, *arrays):
        results = [*self.call(*arrays)]
        for number, aval in self.copies:
            results[number] = pending(aval, OwnCopy(results[number]))
        return results


def _plain(aval):
    """The part of a tensor's abstract value that the array itself shows."""
    return with_dual(with_strides(aval, None), False)


LOCAL, GLOBAL = "local", "global"

UNKNOWN = (
    "{}: JAX does not tell that a tensor of shape {}, computed from DTensors, is one, so it was "
    "taken for one of this process: redistribute(device_mesh, placements) it first, or use one "
    "DeviceMesh for all tensors of the function"
)


def views_of(name: str, jaxpr) -> dict:
    """The values of a jaxpr that belong to one process, and those that span processes; constants
    and numbers, which may be either, are left out. Raises RuntimeError if an equation takes both.
    """
    views = {}
    for variable in jaxpr.invars:
        if is_global(variable):
            views[variable] = GLOBAL
        elif variable.aval.shape:
            views[variable] = LOCAL
    _follow(name, jaxpr, views)
    return views


def _follow(name, jaxpr, views):
    """Add the views of the values that the equations of a jaxpr compute."""
    for equation in jaxpr.eqns:
        result_views = _views_of_results(name, equation, views)
        pairs = zip(equation.outvars, result_views, strict=True)
        views |= {variable: view for variable, view in pairs if view is not None}


def _views_of_results(name, equation, views) -> list:
    atoms = [atom for atom in equation.invars if not isinstance(atom, Literal)]
    operand_views, count = {views.get(atom) for atom in atoms} - {None}, len(equation.outvars)
    if equation.primitive is communicate_p:
        communication = equation.params["communication"]
        if communication.source is None and GLOBAL in operand_views:
            raise RuntimeError(UNKNOWN.format(name, list(atoms[0].aval.shape)))
        return [LOCAL if communication.target is None else GLOBAL]
    inner = [*map(opened, jaxprs_within(equation))]
    if len(inner) == 1 and len(inner[0].invars) == len(equation.invars):
        return _views_within(name, inner[0], equation, views)
    if mesh_of_equation(equation) is not None:
        return [GLOBAL if is_global(variable) else LOCAL for variable in equation.outvars]
    if GLOBAL in operand_views:
        _check(name, equation, atoms, views)
    return [GLOBAL if GLOBAL in operand_views else LOCAL if operand_views else None] * count


def _views_within(name, jaxpr, equation, views) -> list:
    """The views of the results of an equation that calls a jaxpr."""
    pairs = zip(jaxpr.invars, equation.invars, strict=True)
    input_views = [(v, views.get(a)) for v, a in pairs if not isinstance(a, Literal)]
    known = {variable: view for variable, view in input_views if view is not None}
    _follow(name, jaxpr, known)
    return [None if isinstance(v, Literal) else known.get(v) for v in jaxpr.outvars]


def _check(name, equation, atoms, views):
    local = [atom for atom in atoms if views.get(atom) is LOCAL and atom.aval.shape]
    if local:
        spread = next(atom for atom in atoms if views.get(atom) is GLOBAL)
        where = f"{name}, {equation.primitive.name}"
        shown = {"local": local[0].aval, "spread": spread.aval}
        raise RuntimeError(MIXED.format(name=where, **shown))
