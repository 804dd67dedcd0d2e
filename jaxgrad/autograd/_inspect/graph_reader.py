"""What drawings, reports and explanations read from a recorded graph: nodes, saved arrays, names.

Reading changes nothing and computes nothing.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from typing import Any, NamedTuple

import jax

from ...core.meta_array import MetaArray
from ...core.pending import value_of
from ...core.primitive import Call
from ...core.pytorch_tensors import type_name
from ...tape.node import FREED, AccumulateGrad, Node, ProgramNode
from ...tape.tensor import Tensor, current, known_edge_of
from ...tape.traversal import in_backward_order
from ...tape.version_counter import CheckedNode
from .._function.call import CONSUMED, FunctionNode


def roots_of(outputs) -> list[tuple[Node, int]]:
    """The edges to a tensor, a GradientEdge, a node, or a sequence of them.

    Raises TypeError for other objects, RuntimeError for a tensor that does not require grad.
    """
    if isinstance(outputs, Node):
        return [(outputs, 0)]
    if isinstance(outputs, Tensor):
        if not outputs.requires_grad:
            raise RuntimeError(
                f"a tensor of shape {list(outputs.shape)} has no graph: it does not require grad. "
                "autograd.graph.explain(tensor) says why"
            )
        return [known_edge_of(current(outputs))]
    if isinstance(outputs, tuple) and len(outputs) > 1 and isinstance(outputs[0], Node):
        return [outputs[:2]]
    if isinstance(outputs, list | tuple) and outputs:
        return [edge for output in outputs for edge in roots_of(output)]
    raise TypeError(f"a graph is that of a tensor or of several, not of {type_name(outputs)}")


def nodes_of(roots) -> list[Node]:
    """All nodes that edges lead to, in the order in which gradients reach them."""
    return in_backward_order([node for node, _ in roots])


def place_of(node: Node) -> str | None:
    """The source line that recorded a node; None if it was not noted."""
    metadata = None if node.extras is None else node.extras.metadata
    return None if metadata is None else metadata.get("place")


def short(place: str) -> str:
    """A source line without directories; of a notebook the cell and its line, as `In[3]:2`."""
    return os.path.basename(shown_place(place))


def shown_place(place: str) -> str:
    """A source line; of a notebook the cell and its line, in place of a temporary file."""
    file, _, line = place.rpartition(":")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)
    cell = name_of(file)  # such as ("Cell", "In[3]")
    return place if cell is None else f"{cell[1]}:{line}"


def shown_bytes(count: int) -> str:
    """A number of bytes, for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"


# saved arrays


class Kept(NamedTuple):
    """An array that a node has saved, and the name of the argument or output that it is.

    array: a JAX array, a numpy array or a tracer.
    """

    owner: str
    array: Any

    @property
    def bytes(self) -> int:
        """The size of the array in bytes; 0 after its buffer was deleted."""
        if isinstance(self.array, jax.Array) and _is_deleted(self.array):
            return 0
        return math.prod(self.array.shape) * self.array.dtype.itemsize

    @property
    def key(self):
        """A key that is equal for two arrays with the same buffer."""
        array = self.array
        if isinstance(array, jax.core.Tracer) or not isinstance(array, jax.Array):
            return id(array)
        if not self.bytes or not array.is_fully_addressable or len(array.devices()) != 1:
            return id(array)
        return str(array.sharding), array.unsafe_buffer_pointer()

    @property
    def device(self) -> str | None:
        """The device of the array, "host" for numpy, "meta" for one without data; None for tracers
        and empty arrays.
        """
        if isinstance(self.array, jax.core.Tracer) or not self.bytes:
            return None
        if isinstance(self.array, MetaArray):
            return "meta"
        if not isinstance(self.array, jax.Array):
            return "host"
        return ", ".join(sorted(map(str, self.array.devices())))

    def __str__(self):
        return f"{self.owner} {self.array.dtype}{list(self.array.shape)}"


def _is_deleted(array) -> bool:
    return not isinstance(array, jax.core.Tracer) and array.is_deleted()


def is_freed(node: Node) -> bool:
    """Whether the saved values of a node were freed."""
    if isinstance(node, FunctionNode):
        return node._saved is FREED
    return isinstance(node, ProgramNode) and _saved(node) is FREED


def _saved(node):
    # `saved` of a CheckedNode raises if a saved tensor was overwritten
    saved = node.kept if isinstance(node, CheckedNode) else node.saved
    return saved if saved is FREED else list(map(value_of, saved))


def kept_by(node: Node) -> list[Kept]:
    """The arrays that a node has saved for its backward pass; empty after they were freed."""
    if isinstance(node, FunctionNode):
        return _kept_by_function(node)
    if not isinstance(node, ProgramNode) or _saved(node) is FREED:
        return []
    packed = (node.extras and node.extras.packed) or {}
    kept = []
    for position, (owner, saved) in enumerate(zip(_owners(node), _saved(node), strict=True)):
        kept.extend(_arrays(owner, packed[position].value if position in packed else saved))
    for held in (node.extras and node.extras.tangents) or ():
        for tangent in held.of.values() if held is not None else ():
            kept.append(Kept("tangent", tangent._array))
    return kept


def _owners(node):
    """The argument or output that each saved array of a node is."""
    call, reverse = node.reverse.program, node.reverse
    if not isinstance(call, Call):
        return [f"saved {i}" for i in range(len(_saved(node)))]
    outputs = call.primitive.rule.outputs
    results = [outputs[min(i, len(outputs) - 1)] for i in reverse.saved_outputs]
    return [call.owners[i] for i in reverse.saved_inputs] + results


def _kept_by_function(ctx):
    saved = () if ctx._saved in (FREED, CONSUMED) else ctx._saved
    again = ctx._again or ()
    kept = []
    for position, entry in enumerate([*saved, *again]):
        if hasattr(entry, "packed"):
            value = entry.array if entry.packed is None else entry.packed.value
            kept.extend(_arrays(f"saved {position}", value))
    for name, value in vars(ctx).items():
        if not name.startswith("_"):
            kept.extend(_arrays(name, value))
    return kept


def _arrays(owner, value) -> list[Kept]:
    leaves = jax.tree_util.tree_leaves(value)
    return [Kept(owner, leaf) for leaf in leaves if hasattr(leaf, "shape") and leaf is not FREED]


# names of tensors

# how deep the search for tensors goes, and how many values it looks at
DEEPEST, MOST_VALUES = 3, 20_000


class Names:
    """Names of leaves, and of the outputs of nodes.

    namespace: a dict of tensors by name, an object with `named_parameters`, or the variables of a
        caller. Dicts, lists and modules inside of it are searched too.
    """

    def __init__(self, namespace):
        self.leaves, self.outputs, self.looked_at = {}, {}, 0
        if hasattr(namespace, "named_parameters"):
            namespace = dict(namespace.named_parameters())
        for name, value in namespace.items():
            self.add(str(name), value, 0)

    def add(self, name, value, depth):
        if isinstance(value, Tensor):
            self.add_tensor(name, value)
        elif depth < DEEPEST:
            for part, child in _parts(value):
                self.looked_at += 1
                if self.looked_at > MOST_VALUES:
                    return
                self.add(name + part, child, depth + 1)

    def add_tensor(self, name, tensor):
        node = tensor.grad_fn
        if node is None:
            self.leaves.setdefault(id(tensor), name)
        else:
            self.outputs.setdefault((node, tensor.output_nr), name)

    def of(self, node: Node, output_nr: int = 0) -> str | None:
        """The name of an output of a node, or of a leaf; None if it has none."""
        if isinstance(node, AccumulateGrad):
            return self.leaves.get(id(node.variable))
        return self.outputs.get((node, output_nr))

    def of_tensor(self, tensor: Tensor) -> str | None:
        """The name of a tensor; None if it has none."""
        if tensor.grad_fn is None:
            return self.leaves.get(id(tensor))
        return self.outputs.get((tensor.grad_fn, tensor.output_nr))


def _parts(value):
    """The objects inside of a value that may be tensors, each with the suffix of its name."""
    if isinstance(value, dict):
        return ((f".{key}", child) for key, child in list(value.items()))
    if isinstance(value, list | tuple):
        return ((f"[{position}]", child) for position, child in enumerate(value))
    if callable(getattr(type(value), "named_parameters", None)):
        return ((f".{name}", parameter) for name, parameter in value.named_parameters())
    return ()


def variables_of(frame) -> dict:
    """The public local variables of a frame."""
    variables = frame.f_locals
    kept = _public(variables)
    if isinstance(variables, dict) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        # Before Python 3.13 the frame keeps this dict, and with it the values, alive.
        variables.clear()
    return kept


def variables_of_program() -> dict:
    """The public global variables of the program, such as those of a notebook."""
    return _public(vars(sys.modules["__main__"]))


def _public(variables) -> dict:
    # IPython keeps the results of a notebook in `Out`, beside the names that the user gave them
    hidden = ("In", "Out") if "get_ipython" in variables else ()
    return {
        name: value
        for name, value in variables.items()
        if name.isidentifier() and name[0] != "_" and name not in hidden
    }
