"""Exported programs, as torch.export.exported_program."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

from .. import ops
from ..late import LateModule
from ..names.missing import missing_in
from ..nn.parameter import Parameter
from ..ops.aten import OpOverload
from ..tape.tensor import Tensor
from ..utils import _pytree as pytree
from ._decomposing import decomposed
from ._extents import Range
from ._functional import functional, has_writes
from ._graph import Graph, LateGraph, opaque_graph, recorded_graph
from ._program_module import ProgramModule, caller_of, run_flat
from ._recorder import Recorder
from ._saved_graph import SavedRecording
from ._serialized import serialized
from ._signature import Signature
from ._state import Slot
from .graph_signature import ConstantArgument as ConstantArgument
from .graph_signature import ExportGraphSignature as ExportGraphSignature
from .graph_signature import InputKind as InputKind
from .graph_signature import InputSpec as InputSpec
from .graph_signature import OutputKind as OutputKind
from .graph_signature import OutputSpec as OutputSpec
from .graph_signature import SymIntArgument as SymIntArgument
from .graph_signature import TensorArgument as TensorArgument

_decompositions = LateModule("jaxgrad.export._decompositions")


@dataclasses.dataclass
class CallSpec:
    """The structures of `(args, kwargs)` and of the result."""

    in_spec: Any
    out_spec: Any


class ExportedProgram:
    """A module as one program in StableHLO, with its parameters and buffers beside it.

    `export` and `load` make it; `module()` gives a module that runs it. exported: the
    `jax.export.Exported`, a function `(state, inputs)` of a dict of arrays by their paths and a
    tuple of arrays, which gives a tuple of results and a dict of the state that it changes.

    >>> program = jaxgrad.export.export(jaxgrad.nn.Linear(2, 1), (jaxgrad.ones(3, 2),))
    >>> program.module()(jaxgrad.zeros(3, 2)).shape, [*program.state_dict]
    (torch.Size([3, 1]), ['weight', 'bias'])
    """

    def __init__(
        self,
        exported,
        signature: Signature,
        tensors: dict[Slot, Tensor],
        example_inputs,
        *,
        with_vjp: bool = False,
        data: bytes | None = None,
        recorder: Recorder | SavedRecording | None = None,
    ):
        self.exported, self._signature, self._tensors = exported, signature, tensors
        self._example_inputs, self.with_vjp, self._recorder = example_inputs, with_vjp, recorder
        self._data, self._graph = data, LateGraph(self._new_graph)

    # ---- calls

    @functools.cached_property
    def _call(self):
        return caller_of(self.exported)

    def _new_graph(self) -> Graph:
        """The graph that was recorded, or one with the program as one node."""
        signature, recorder = self._signature, self._recorder
        graph = None if recorder is None else recorded_graph(recorder, signature)
        if graph is not None:
            return graph
        reason = "it was read from a file" if recorder is None else recorder.reason
        run = functools.partial(run_flat, self._call, signature)
        note = f"the program is one node: {reason}"
        return opaque_graph(self.exported, signature, run, note)

    def module(self, check_guards: bool = True) -> ProgramModule:
        """A module that runs the program.

        It shares its parameters and buffers with this object. A call writes to the buffers that the
        original module writes to, and raises AssertionError for a shape outside of the range, which
        it names, for another dtype, and for another value of an argument that is no tensor;
        ValueError for arguments of another structure. check_guards: not used.
        """
        return ProgramModule(self._call, self._signature, self._tensors, self._graph)

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` "
            "instead."
        )

    @functools.cached_property
    def serialized(self) -> bytes:
        """The program as `jax.export.deserialize` reads it."""
        return self._data or serialized(self.exported, self.with_vjp)

    # ---- state

    def _paths(self, *kinds) -> dict[str, Tensor]:
        return {
            path: tensor
            for slot, tensor in self._tensors.items()
            if slot.kind in kinds
            for path in slot.paths
        }

    @property
    def state_dict(self) -> dict[str, Any]:
        """The parameters and persistent buffers by their paths."""
        hidden = {path for s in self._tensors if not s.persistent for path in s.paths}
        members = self._paths(InputKind.PARAMETER, InputKind.BUFFER)
        return {path: tensor for path, tensor in members.items() if path not in hidden}

    @property
    def constants(self) -> dict[str, Any]:
        """The other tensors by their paths: attributes, and buffers that are not persistent."""
        hidden = {p: t for s, t in self._tensors.items() if not s.persistent for p in s.paths}
        return {**hidden, **self._paths(InputKind.CONSTANT_TENSOR), **self._graph.graph.lifted}

    tensor_constants = constants

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        return (parameter for _, parameter in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths."""
        kept = InputKind.PARAMETER
        return ((slot.path, t) for slot, t in self._tensors.items() if slot.kind is kept)

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        return (buffer for _, buffer in self.named_buffers())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their paths."""
        kept = InputKind.BUFFER
        return ((slot.path, t) for slot, t in self._tensors.items() if slot.kind is kept)

    # ---- what it is

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the inputs and outputs of the program are."""
        return self._graph.graph.signature

    @property
    def range_constraints(self) -> dict[str, Range]:
        """The range of each size that varies, by its name."""
        return self._signature.range_constraints()

    @property
    def example_inputs(self):
        """The arguments of the export: a tuple and a dict; None if the file has none."""
        return self._example_inputs

    @property
    def call_spec(self) -> CallSpec:
        """The structures of the arguments and of the result."""
        return CallSpec(self._signature.in_spec, self._signature.results.spec)

    @property
    def dialect(self) -> str:
        """The language of the program."""
        return "STABLEHLO"

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms on which the program runs."""
        return tuple(self.exported.platforms)

    @property
    def module_call_graph(self) -> list:
        """Nothing: a program has no parts that are called as modules."""
        return []

    @property
    def verifiers(self) -> list:
        """Nothing: `jax.export` checks programs."""
        return []

    @property
    def draws(self) -> bool:
        """Whether a call draws random numbers. `exported` has a key of them in the state, then: the
        entry "random key", of four uint32.
        """
        return self._signature.results.draws

    def stablehlo(self) -> str:
        """The program as text."""
        return self.exported.mlir_module()

    @property
    def graph_module(self):
        """The operators that the module calls, as an `fx.GraphModule`.

        Its inputs are those of `graph_signature`: the state, and the leaves of the arguments; its
        output is a tuple of the leaves of the result. The operators are those of `torch.ops.aten`;
        writes in place are among them, as in PyTorch's programs before `run_decompositions`. Where
        code that is no operator takes part, as a function of JAX, the whole program is one node.
        """
        return self._graph.module

    @property
    def graph(self):
        """The graph of `graph_module`."""
        return self.graph_module.graph

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops: bool = False):
        """Return the program with a graph of fewer operators, without writes in place.

        What the program writes to is among the outputs of the graph, and of `graph_signature`.
        decomp_table: by an operator of aten a function of its arguments that calls others; by
        default `default_decompositions()`; {} leaves all operators as they are. The program that
        `module()` runs, and `save` writes, stays the same, and so does a graph in which writes go
        through views.

        >>> program = jaxgrad.export.export(jaxgrad.nn.Linear(2, 1), (jaxgrad.ones(3, 2),))
        >>> graph = program.run_decompositions().graph
        >>> [str(node.target) for node in graph.nodes if node.op == "call_function"]
        ['aten.permute.default', 'aten.addmm.default']
        """
        table = default_decompositions() if decomp_table is None else decomp_table
        functions = {
            (target if isinstance(target, OpOverload) else target.default).__name__: function
            for target, function in table.items()
        }
        other = copy.copy(self)
        other._graph = LateGraph(lambda: self._decomposed(functions))
        return other

    def _decomposed(self, functions) -> Graph:
        graph = functional(self._graph.graph)
        return graph if has_writes(graph) else decomposed(graph, functions)

    def validate(self):
        """Do nothing: `jax.export` has checked the program."""

    def __str__(self):
        return "\n".join(
            [
                "ExportedProgram:",
                *[f"    {line}".rstrip() for line in self.graph_text().splitlines()],
                f"Graph signature: {self.graph_signature}",
                f"Range constraints: {self.range_constraints}",
                f"Platforms: {', '.join(self.platforms)}",
                *["Random numbers: of a key, which each call draws"] * self.draws,
                "",
            ]
        )

    __repr__ = __str__

    def graph_text(self) -> str:
        """The graph as text."""
        return self._graph.text


def default_decompositions() -> dict:
    """Return the table of `ExportedProgram.run_decompositions`: for each operator a function that
    computes it by simpler operators.

    >>> table = jaxgrad.export.default_decompositions()
    >>> del table[jaxgrad.ops.aten.linear.default]
    >>> program = jaxgrad.export.export(jaxgrad.nn.Linear(2, 1), (jaxgrad.ones(3, 2),))
    >>> graph = program.run_decompositions(table).graph
    >>> [str(node.target) for node in graph.nodes if node.op == "call_function"]
    ['aten.linear.default']
    """
    return {
        functools.reduce(getattr, name.split("."), ops.aten): function
        for name, function in _decompositions.FUNCTIONS.items()
    }


def flat_arguments(args, kwargs):
    """The leaves and the structure of the arguments of a call."""
    return pytree.tree_flatten((tuple(args), dict(kwargs or {})))


__getattr__ = missing_in(__name__)
