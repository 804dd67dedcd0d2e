"""Where a compiled program runs: on the devices of its inputs, or on those of all processes.

A program that communicates, or that takes an array that spans processes, runs on one device of each
of them. What belongs to one process is then an array with a copy on each device, and the copies
differ (core/world.py).
"""

from __future__ import annotations

import jax
from jax.extend.core import Literal
from jax.sharding import NamedSharding, PartitionSpec

from ..core import world
from ..core.aval import MIXED
from ..core.communication import communicate_p, is_global, mesh_of
from ..tape.tensor import held


def compiled(program, name: str, jaxpr, written: dict[int, jax.Array], outputs: int, **options):
    """`jax.jit` of a program with this jaxpr, whose inputs and outputs lie where they belong.

    written: by the number of an output the array in whose place it comes, which keeps its sharding;
    outputs: how many outputs there are. Raises RuntimeError where a tensor of one process meets one
    that spans processes.
    """
    mesh = _mesh(jaxpr) if world.is_several() else None
    places = [None] * outputs
    for number, array in written.items():
        if isinstance(getattr(array, "sharding", None), NamedSharding):
            places[number] = array.sharding
    if mesh is None:
        options |= {"out_shardings": places} if any(places) else {}
        return jax.jit(program, **options)
    refuse_mixed(name, jaxpr)
    spread = [is_global(each) for each in jaxpr.outvars[:outputs]]
    whole = NamedSharding(mesh, PartitionSpec())
    pairs = zip(places, spread, strict=True)
    places = [place if stays else whole for place, stays in pairs]
    return SpanningProgram(jax.jit(program, out_shardings=places, **options), mesh, spread)


def written(output, tensors) -> dict[int, jax.Array]:
    """By the number of an output the array of the captured tensor that it replaces.

    output: what a function returns and changes; tensors: the captured ones.
    """
    effects = [each for each in output.tensor_effects.effects if each.value is not None]
    return {each.value.output: held(tensors[each.number]) for each in effects}


def _mesh(jaxpr):
    """The mesh of a program that spans processes, else None."""
    found = mesh_of(jaxpr)
    return world.current.mesh if found is None and any(map(is_global, jaxpr.invars)) else found


class SpanningProgram:
    """A jitted function on a mesh of several processes, as one of arrays of this process and of
    arrays that span processes. spread: for each result whether it spans them.
    """

    def __init__(self, jitted, mesh, spread):
        self.jitted, self.mesh = jitted, mesh
        self.call = world.on_mesh(jitted, mesh, spread)

    def __call__(self, *arrays):
        return self.call(*arrays)

    def shared(self, arrays):
        return [world.shared(array, self.mesh) for array in arrays]

    def lower(self, *arrays):
        return self.jitted.lower(*self.shared(arrays))

    def trace(self, *arrays):
        return self.jitted.trace(*self.shared(arrays))

    def eval_shape(self, *arrays):
        return self.jitted.eval_shape(*arrays)


LOCAL, GLOBAL = "local", "global"

DIFFERENT_MESHES = (
    "{}: {} takes DTensors on different meshes: use one DeviceMesh, and its parts such as "
    'mesh["tp"], for all tensors of a function'
)


def refuse_mixed(name: str, jaxpr):
    """Raise RuntimeError where an equation takes arrays of one process and arrays that span them.

    Constants and numbers may meet both.
    """
    views = {}
    for variable in jaxpr.invars:
        if is_global(variable):
            views[variable] = GLOBAL
        elif variable.aval.shape:
            views[variable] = LOCAL
    for equation in jaxpr.eqns:
        atoms = [each for each in equation.invars if not isinstance(each, Literal)]
        found = {views.get(each) for each in atoms}
        if equation.primitive is communicate_p:
            found = {LOCAL} if equation.params["communication"].target is None else {GLOBAL}
        elif GLOBAL in found:
            _check(name, equation, atoms, views)
            if not all(map(is_global, equation.outvars)):
                raise RuntimeError(DIFFERENT_MESHES.format(name, equation.primitive.name))
        view = GLOBAL if GLOBAL in found else LOCAL if LOCAL in found else None
        views |= dict.fromkeys(equation.outvars, view)


def _check(name, equation, atoms, views):
    local = [each for each in atoms if views.get(each) is LOCAL and each.aval.shape]
    if local:
        spread = next(each for each in atoms if views.get(each) is GLOBAL)
        where = f"{name}, {equation.primitive.name}"
        shown = {"local": local[0].aval, "spread": spread.aval}
        raise RuntimeError(MIXED.format(name=where, **shown))
