"""How a module is split over the devices of a mesh: its parameters, inputs and outputs."""

from __future__ import annotations

from jax.sharding import PartitionSpec

from ....names.not_provided import names_of
from ....nn.embedding import Embedding
from ....nn.linear import Linear
from ....nn.module import Module
from ....tape import pytree
from ....tape.tensor import Tensor
from ...device_mesh import DeviceMesh
from .._distribute import place
from .._dtensor import DTensor, is_distributed, redistribute, sharding_held, to_local
from .._redistribute import redistributed
from ..placement_types import (
    Placement,
    Replicate,
    Shard,
    check_even,
    checked,
    is_single_process,
    sharding_of,
    spec_of,
)


class ParallelStyle:
    """A way to split a module; `parallelize_module` applies it.

    >>> from jaxgrad.distributed.tensor.parallel import ColwiseParallel, ParallelStyle
    >>> isinstance(ColwiseParallel(), ParallelStyle)
    True
    """

    src_data_rank: int | None = 0

    def check(self, module: Module):
        """Raise NotImplementedError if the style does not take a module."""

    def apply(self, module: Module, mesh: DeviceMesh):
        """Shard the parameters of a module, and its inputs and outputs at each call."""
        raise NotImplementedError(f"{type(self).__name__}.apply")

    def shard(self, module: Module, mesh: DeviceMesh, placements: dict[str, Placement]):
        """Shard the parameters of a module, by name; others are replicated."""
        chosen = []
        for name, parameter in module.named_parameters(recurse=False):
            placement = placements.get(name, Replicate())
            chosen.append((name, parameter, sharding_for(module, name, parameter, mesh, placement)))
        for _, parameter, sharding in chosen:
            place(parameter, sharding, self.src_data_rank)


def sharding_for(module, name, parameter, mesh, placement):
    """The sharding of a parameter along one dimension of a mesh; its sharding along the other
    dimensions stays.

    Raises ValueError if it cannot be cut into equal parts.
    """
    sharding = sharding_held(parameter)
    is_there = sharding is not None and sharding.mesh == mesh.jax_mesh
    around = sharding.spec if is_there else PartitionSpec()
    (placement,) = checked(type(module).__name__, mesh, [placement], parameter.ndim)
    spec = spec_of(mesh, [placement], parameter.ndim, around)
    check_even(f"{type(module).__name__}.{name}", parameter.shape, mesh, spec)
    return sharding_of(mesh, spec)


def entered(tensor, mesh: DeviceMesh, placement: Placement, wanted: Placement):
    """An input of a parallel module, in the placement that it computes with, and whether it was a
    tensor of this process.
    """
    if not isinstance(tensor, Tensor):
        return tensor, False
    was_local = not is_distributed(tensor)
    if was_local:
        tensor = DTensor.from_local(tensor, mesh, [placement])
    return laid(tensor, mesh, wanted), was_local


def laid(tensor: Tensor, mesh: DeviceMesh, placement: Placement) -> Tensor:
    """A DTensor in a placement on one dimension of a mesh.

    XLA chooses the sharding along the other dimensions of the mesh if a trace does not know it. It
    chooses too if the tensor is replicated, and so may put off a sum until it is needed.
    """
    if sharding_held(tensor) is not None or not is_single_process(mesh):
        return redistribute(tensor, mesh, [placement])
    if not placement.is_shard():
        return tensor
    dims = [PartitionSpec.UNCONSTRAINED] * tensor.ndim
    (placement,) = checked("redistribute", mesh, [placement], tensor.ndim)
    dims[placement.dim] = mesh.axes[0]
    sharding = sharding_of(mesh, PartitionSpec(*dims))
    return redistributed(tensor, sharding, sharding)


def left(value, mesh: DeviceMesh, placements, to_process: bool):
    """The outputs of a parallel module in placements; as tensors of this process if it took such.

    placements: one for all tensors, or a sequence with one or None for each output.
    """

    def placed_output(output, placement):
        if not isinstance(output, Tensor) or placement is None or not is_distributed(output):
            return output
        placed = laid(output, mesh, placement)
        return to_local(placed) if to_process and not is_single_process(mesh) else placed

    if isinstance(placements, Placement) or placements is None:
        leaves, structure = pytree.flatten(value)
        return structure.unflatten([placed_output(leaf, placements) for leaf in leaves])
    outputs = value if isinstance(value, tuple | list) else (value,)
    if len(outputs) != len(placements):
        raise ValueError("module outputs and output_layouts should have same length!")
    results = tuple(map(placed_output, outputs, placements))
    return results if isinstance(value, tuple | list) else results[0]


class _OneInput(ParallelStyle):
    """A style of a module with one input and one output."""

    wanted: Placement

    def __init__(self, input_layouts, output_layouts, use_local_output):
        self.input_layouts, self.output_layouts = input_layouts, output_layouts
        self.use_local_output = use_local_output

    def hook(self, module: Module, mesh: DeviceMesh):
        """Redistribute the input and the output at each call of the module."""
        was_local = []

        def before(_, inputs):
            first, is_local = entered(inputs[0], mesh, self.input_layouts, self.wanted)
            was_local[:] = [is_local]
            return (first, *inputs[1:])

        def after(_, inputs, output):
            to_process = self.use_local_output and was_local == [True]
            return left(output, mesh, self.output_layouts, to_process)

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)

    def check(self, module):
        if not isinstance(module, Linear | Embedding):
            raise NotImplementedError(
                f"{type(self).__name__} supports nn.Linear and nn.Embedding, "
                f"not {type(module).__name__}"
            )


class ColwiseParallel(_OneInput):
    """A Linear whose outputs are split over the devices, or an Embedding whose features are.

    input_layouts: how an input lies, Replicate by default. output_layouts: how the output is to
    lie, Shard(-1) by default. use_local_output: whether the output is the part of this process,
    where the input was; on the devices of one process it stays a DTensor.

    >>> from jaxgrad.distributed.tensor.parallel import ColwiseParallel
    >>> ColwiseParallel().output_layouts
    Shard(dim=-1)
    """

    wanted = Replicate()

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        input_layout, output_layout = input_layouts or Replicate(), output_layouts or Shard(-1)
        super().__init__(input_layout, output_layout, use_local_output)

    def apply(self, module, mesh):
        placement = Shard(1) if isinstance(module, Embedding) else Shard(0)
        self.shard(module, mesh, {"weight": placement, "bias": placement})
        self.hook(module, mesh)


class RowwiseParallel(_OneInput):
    """A Linear whose inputs are split over the devices, which add their results; or an Embedding
    whose rows are split.

    input_layouts: how an input lies, Shard(-1) by default, for an Embedding Replicate.
    output_layouts: Replicate by default; Shard adds and splits. use_local_output: see
    ColwiseParallel.

    >>> from jaxgrad.distributed.tensor.parallel import RowwiseParallel
    >>> RowwiseParallel().input_layouts
    Shard(dim=-1)
    """

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        input_layout, output_layout = input_layouts or Shard(-1), output_layouts or Replicate()
        super().__init__(input_layout, output_layout, use_local_output)

    def apply(self, module, mesh):
        is_embedding = isinstance(module, Embedding)
        self.wanted = Replicate() if is_embedding else Shard(-1)
        self.shard(module, mesh, {"weight": Shard(0) if is_embedding else Shard(1)})
        self.hook(module, mesh)


class SequenceParallel(_OneInput):
    """A LayerNorm, RMSNorm or Dropout on a sequence that is split over the devices; its parameters
    are replicated.

    sequence_dim: the dimension of the input that is the sequence. use_local_output: see
    ColwiseParallel.

    >>> from jaxgrad.distributed.tensor.parallel import SequenceParallel
    >>> SequenceParallel().wanted
    Shard(dim=1)
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        self.wanted = Shard(sequence_dim)
        super().__init__(self.wanted, self.wanted, use_local_output)

    def check(self, module):
        pass

    def apply(self, module, mesh):
        self.shard(module, mesh, {})
        self.hook(module, mesh)


def _sequence(layouts) -> tuple:
    return (layouts,) if layouts is None or isinstance(layouts, Placement) else tuple(layouts)


class PrepareModuleInput(ParallelStyle):
    """Redistribute the inputs of a module at each call.

    input_layouts: how the inputs by position lie, None for what is no tensor or stays.
    desired_input_layouts: how they are to lie. input_kwarg_layouts, desired_input_kwarg_layouts:
    those of inputs by keyword. use_local_output: whether they become tensors of this process again.
    Raises ValueError where layouts and desired layouts differ in number.

    >>> from jaxgrad.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
    >>> from jaxgrad.distributed.tensor import Replicate, Shard
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> style = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(0))
    >>> module = parallelize_module(jaxgrad.nn.ReLU(), mesh, style)
    >>> module(jaxgrad.ones(2, 3)).placements
    (Shard(dim=0),)
    """

    def __init__(
        self,
        *,
        input_layouts=None,
        desired_input_layouts=None,
        input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None,
        use_local_output: bool = False,
    ):
        self.layouts, self.wanted = _sequence(input_layouts), _sequence(desired_input_layouts)
        self.named = input_kwarg_layouts or {}
        self.wanted_named = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if len(self.layouts) != len(self.wanted) or self.named.keys() != self.wanted_named.keys():
            raise ValueError("input_layouts and desired_input_layouts should have same length!")

    def apply(self, module, mesh):
        def before(_, inputs, named):
            if input_counts_differ(inputs, self.layouts):
                raise ValueError("module inputs and input_layouts should have same length!")
            layouts = zip(inputs, self.layouts, self.wanted, strict=False)
            prepared = [self.prepared(*triple, mesh) for triple in layouts]
            named = dict(named)
            for name, layout in self.named.items():
                if name in named:
                    named[name] = self.prepared(named[name], layout, self.wanted_named[name], mesh)
            return tuple(prepared) or inputs, named

        module.register_forward_pre_hook(before, with_kwargs=True)

    def prepared(self, value, placement, wanted, mesh):
        if placement is None or wanted is None:
            return value
        placed, _ = entered(value, mesh, placement, wanted)
        is_process = self.use_local_output and not is_single_process(mesh)
        return to_local(placed) if is_process and isinstance(placed, Tensor) else placed


def input_counts_differ(inputs, layouts) -> bool:
    """Whether there are inputs by position, and not as many as layouts."""
    return layouts != (None,) and len(inputs) != len(layouts)


class PrepareModuleOutput(ParallelStyle):
    """Redistribute the outputs of a module at each call.

    output_layouts: how the outputs lie, where they are tensors of this process.
    desired_output_layouts: how they are to lie. use_local_output: whether they become tensors of
    this process.

    >>> from jaxgrad.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
    >>> from jaxgrad.distributed.tensor import Replicate, Shard
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> style = PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0))
    >>> module = parallelize_module(jaxgrad.nn.ReLU(), mesh, style)
    >>> module(jaxgrad.ones(2, 3)).placements
    (Shard(dim=0),)
    """

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output: bool = True):
        self.layouts, self.wanted = _sequence(output_layouts), _sequence(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.layouts) != len(self.wanted):
            raise ValueError("output_layouts and desired_output_layouts should have same length!")

    def apply(self, module, mesh):
        def after(_, inputs, output):
            outputs = output if isinstance(output, tuple | list) else (output,)
            if len(outputs) != len(self.layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            pairs = zip(outputs, self.layouts, self.wanted, strict=True)
            prepared = tuple([self.prepared(*triple, mesh) for triple in pairs])
            return prepared if isinstance(output, tuple | list) else prepared[0]

        module.register_forward_hook(after)

    def prepared(self, value, placement, wanted, mesh):
        if placement is None or wanted is None:
            return value
        placed, _ = entered(value, mesh, placement, wanted)
        return left(placed, mesh, wanted, self.use_local_output)


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module.

    >>> from jaxgrad.distributed.tensor.parallel import PrepareModuleInputOutput, parallelize_module
    >>> from jaxgrad.distributed.tensor import Replicate, Shard
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> style = PrepareModuleInputOutput(
    ...     input_layouts=Replicate(), desired_input_layouts=Shard(0),
    ...     output_layouts=Shard(0), desired_output_layouts=Replicate(),
    ... )
    >>> parallelize_module(jaxgrad.nn.ReLU(), mesh, style)(jaxgrad.ones(2, 3)).placements
    (Replicate(),)
    """

    def __init__(
        self,
        *,
        input_layouts=None,
        desired_input_layouts=None,
        input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None,
        use_local_input: bool = False,
        output_layouts,
        desired_output_layouts,
        use_local_output: bool = True,
    ):
        self.before = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.after = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def apply(self, module, mesh):
        self.before.apply(module, mesh)
        self.after.apply(module, mesh)


__getattr__, __dir__ = names_of(__name__)
