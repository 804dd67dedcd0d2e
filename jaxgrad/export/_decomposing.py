"""Graphs with some operators as the operators that they consist of, as `run_decompositions` has it.

The functions of a table run on tensors without numbers, and a recorder writes what they call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

import jax

from ..autograd import grad_mode
from ..core.aval import with_strides
from ..frontend.jax_interop import to_jax
from ..late import LateModule
from ..tape.symbolic_number import GuardOnDataDependentSymNode, Varying
from ..tape.symbolic_size import exporting
from ..tape.tensor import Tensor, abstract_value, set_abstract_value, wrap
from . import _composed
from ._graph import Graph
from ._python_calls import call_of
from ._recorder import Recorder, is_node
from ._saved_graph import NUMBER_FUNCTIONS
from ._tracing import KEY_STRUCT, drawing_of
from .graph_signature import ExportGraphSignature, OutputSpec

fx_node = LateModule("jaxgrad.fx.node")


class DecomposingRecorder(Recorder):
    """A recorder of what the functions of a table call in place of the operators for which they
    stand. table: the functions by names such as `linear.default`; one that returns NotImplemented
    leaves its operator as it is.
    """

    def __init__(self, table: Mapping[str, Callable]):
        super().__init__(None)
        self.table, self.origin = {**table, **_composed.CALLS}, {}
        self._open: list[str] = []

    def __torch_function__(self, public, types, args=(), kwargs=None):
        call = None
        with self._guarded():
            call = call_of(public, args, kwargs or {})
        if call is not None and call.full_name not in self._open:
            result = self.decomposed(call.full_name, call.args, call.kwargs)
            if result is not NotImplemented:
                return result
        return super().__torch_function__(public, types, args, kwargs)

    def decomposed(self, full_name: str, args, kwargs):
        """The result of the function for an operator; NotImplemented if it stays as it is."""
        function = self.table.get(full_name)
        if function is None:
            return NotImplemented
        # its function may call an operator itself, which is recorded then
        self._open.append(full_name)
        try:
            with self.inside():
                return function(*args, **kwargs)
        except (jax.errors.InconclusiveDimensionOperation, GuardOnDataDependentSymNode):
            # it depends on a number that varies; what it has written is unused
            return NotImplemented
        finally:
            self._open.pop()

    def _origin(self) -> dict:
        return {**self.origin}


def decomposed(graph: Graph, table: Mapping[str, Callable]) -> Graph:
    """The graph without the operators of a table; table: as in `DecomposingRecorder`."""
    names = {_full_name(node.target) for node in graph.nodes.nodes if node.op == "call_function"}
    if names.isdisjoint({**table, **_composed.CALLS}):
        graph.nodes.eliminate_dead_code()
        return graph
    rewriting = _Rewriting(graph, table)
    structs = [abstract_value(tensor).struct for tensor in rewriting.inputs()]
    with exporting(), jax.enable_x64(True):
        jax.eval_shape(to_jax(rewriting), *structs)
    return rewriting.result()


def _full_name(target) -> str:
    """The name of an overload of aten, `linear.default`, or of a function of nn.functional or a
    private one, `functional.normalize`; "" for another target.
    """
    if hasattr(target, "overloadpacket"):
        return target.__name__
    space, name = getattr(target, "__module__", ""), getattr(target, "__name__", "")
    is_known = space.startswith("jaxgrad.nn.") or name.startswith("_")
    return f"functional.{name}" if is_known else ""


class _Rewriting:
    """One rewriting, as a function of the inputs of the graph.

    values: by an old node its tensor, which the trace has; nodes: by an old node the new one.
    """

    def __init__(self, graph: Graph, table):
        self.old, self.recorder = graph, DecomposingRecorder(table)
        self.values: dict = {}
        self.nodes: dict = {}

    def inputs(self) -> list[Tensor]:
        """The tensors of the placeholders."""
        known = [node.meta.get("val") for node in self.old.nodes.find_nodes(op="placeholder")]
        return [value for value in known if isinstance(value, Tensor)]

    def __call__(self, *inputs: Tensor):
        supply = iter(inputs)
        key = wrap(jax.numpy.zeros(KEY_STRUCT.shape, KEY_STRUCT.dtype))
        with grad_mode.no_grad(), drawing_of(key):
            for node in self.old.nodes.nodes:
                self._add(node, supply)
        return ()

    def _add(self, node, supply):
        if node.op == "placeholder":
            value = node.meta.get("val")
            value = _laid_out(next(supply), value) if isinstance(value, Tensor) else value
            self.values[node] = value
            self.nodes[node] = self.recorder.placeholder(node.name, value)
            self.nodes[node].meta = {**node.meta}
        elif node.op == "output":
            self.recorder.graph.output(fx_node.map_arg(node.args[0], self._new_node)).meta = {
                **node.meta
            }
        elif not self._is_decomposed(node):
            self._copy(node)

    def _new_node(self, node):
        """The new node of an old one."""
        if node not in self.nodes:
            self.nodes[node] = self.recorder._argument(self.values[node])
        return self.nodes[node]

    def _is_decomposed(self, node) -> bool:
        """Whether a function of the table has written what a node consists of."""
        if node.target is operator.getitem and node.args[0] not in self.nodes:
            self.values[node] = self.values[node.args[0]][node.args[1]]
            return True
        name = _full_name(node.target)
        if name not in self.recorder.table:
            return False
        kept = ("stack_trace", "nn_module_stack")
        self.recorder.origin = {key: node.meta[key] for key in kept if key in node.meta}
        arguments = fx_node.map_arg((node.args, node.kwargs), self.values.__getitem__)
        result = self.recorder.decomposed(name, *arguments)
        if result is NotImplemented:
            return False
        self.values[node] = result
        return True

    def _copy(self, node):
        new = self.recorder.graph.node_copy(node, self._new_node)
        self.nodes[node] = new
        value = self._run(node)
        self.values[node] = self._stand_in(node.meta.get("val") if value is None else value, new)

    def _run(self, node):
        """What an operator gives for the values of its arguments, whose strides may be others than
        before; None of what is no operator.
        """
        if node.target is operator.getitem:
            return tuple(self.values[node.args[0]])[node.args[1]]
        if not hasattr(node.target, "overloadpacket") and node.target not in NUMBER_FUNCTIONS:
            return None
        args, kwargs = fx_node.map_arg((node.args, node.kwargs), self.values.__getitem__)
        return node.target(*args, **kwargs)

    def _stand_in(self, value, new):
        """A tensor, or several, of the kind of the value of a node, which is a new node."""
        if isinstance(value, list | tuple):
            # each has a node of its own, by getitem
            return [self._stand_in(item, None) for item in value]
        if type(value) is Varying:
            self.recorder.know_number(value, new)
        if not isinstance(value, Tensor):
            return value
        tensor = wrap(jax.numpy.zeros(tuple(value.shape), value.dtype.numpy))
        _laid_out(tensor, value)
        if new is not None:
            self.recorder._know(tensor, new)
        return tensor

    def result(self) -> Graph:
        """The new graph."""
        graph = self.recorder.graph
        graph.eliminate_dead_code()
        signature = self.old.signature
        results = graph.output_node().args[0]
        outputs = [
            OutputSpec(spec.kind, type(spec.arg)(node.name), spec.target) if is_node(node) else spec
            for node, spec in zip(results, signature.output_specs, strict=True)
        ]
        signature = ExportGraphSignature(signature.input_specs, outputs)
        return Graph(graph, signature, self.old.lifted, self.old.note)


def _laid_out(tensor: Tensor, example: Tensor) -> Tensor:
    """The tensor with the strides of another one."""
    strides = abstract_value(example).strides
    set_abstract_value(tensor, with_strides(abstract_value(tensor), strides))
    return tensor
