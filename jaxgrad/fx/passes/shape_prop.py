"""The shapes of the values of a graph, as torch.fx.passes.shape_prop."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ...core.device import contiguous_format, memory_format
from ...core.dtypes import dtype as _dtype
from ...names.not_provided import names_of
from ...tape.tensor import Tensor
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__getattr__, __dir__ = names_of(__name__)


class TensorMetadata(NamedTuple):
    """What is known of a tensor besides its values."""

    shape: Any
    dtype: _dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What is known of a tensor. include_contiguity: its memory format too."""
    layout = None
    if include_contiguity and result.is_contiguous():
        layout = contiguous_format
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph, and notes in `node.meta["tensor_meta"]` the shapes and dtypes of values.

    gm: a GraphModule; fake_mode: unused here.

    >>> from jaxgrad.fx.passes.shape_prop import ShapeProp
    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x.sum(0))
    >>> ShapeProp(gm).propagate(jaxgrad.ones(2, 3))
    tensor([2., 2., 2.])
    >>> [node.meta["tensor_meta"].shape for node in gm.graph.nodes]
    [torch.Size([2, 3]), torch.Size([3]), torch.Size([3])]
    """

    def __init__(self, gm, fake_mode=None):
        super().__init__(gm)
        self.fake_module = self.fake_mode = None
        self.real_module = self.module

    def run_node(self, n: Node):
        """Return the value of a node, and note its shape and its type."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()} with meta={n.meta}"
            ) from error
        has_tensor = False

        def note(value):
            nonlocal has_tensor
            if not isinstance(value, Tensor):
                return value
            has_tensor = True
            return _extract_tensor_metadata(value)

        noted = map_aggregate(result, note)
        if has_tensor:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run the graph on arguments, and return the result."""
        return super().run(*args)
