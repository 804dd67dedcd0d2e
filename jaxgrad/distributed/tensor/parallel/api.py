"""Which modules of a model are parallel, and how."""

from __future__ import annotations

from fnmatch import fnmatch

from ....names.not_provided import names_of
from ....nn.module import Module
from ...device_mesh import DeviceMesh, current_mesh
from .style import ParallelStyle


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Shard modules over a mesh of one dimension, in place, and return the module.

    device_mesh: of one dimension; of a mesh of several, the part `mesh["tp"]`. parallelize_plan: a
    style for the module itself, or styles by the paths of submodules, in which `*` stands for any
    part of one name, and "" for the module itself. src_data_rank: as of `distribute_tensor`.

    Raises ValueError for a mesh of several dimensions and for a path that no submodule has,
    TypeError for what is no style, NotImplementedError for a style that does not take the module.

    >>> from jaxgrad.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> layer = parallelize_module(jaxgrad.nn.Linear(2, 4), mesh, ColwiseParallel())
    >>> layer.weight.placements
    (Shard(dim=0),)
    """
    mesh = current_mesh(device_mesh)
    if mesh.ndim != 1:
        raise ValueError(
            f'parallelize_module: {mesh} has {mesh.ndim} dimensions: give one, such as mesh["tp"]'
        )
    plan = parallelize_plan if isinstance(parallelize_plan, dict) else {"": parallelize_plan}
    matches = [(path, style, _matching(module, path)) for path, style in plan.items() if style]
    for path, style, modules in matches:
        if not isinstance(style, ParallelStyle):
            raise TypeError(
                f"Expect ParallelStyle object for parallelize_plan at {path!r}, not {style!r}"
            )
        if not modules:
            names = ", ".join(name for name, _ in module.named_modules() if name)
            raise ValueError(f"parallelize_module: no submodule is {path!r}: there are {names}")
        for submodule in modules:
            style.check(submodule)
    for _, style, modules in matches:
        style.src_data_rank = src_data_rank
        for submodule in modules:
            style.apply(submodule, mesh)
    return module


def _matching(module, path) -> list[Module]:
    """The submodules whose path has names as `path` has."""
    wanted = path.split(".") if path else []
    chosen = []
    for name, submodule in module.named_modules():
        parts = name.split(".") if name else []
        if len(parts) == len(wanted) and all(map(fnmatch, parts, wanted)):
            chosen.append(submodule)
    return chosen


__getattr__, __dir__ = names_of(__name__)
