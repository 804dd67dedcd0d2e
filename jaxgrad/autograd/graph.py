"""The recorded graph, as torch.autograd.graph: nodes, edges, and settings of what nodes keep."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from contextlib import contextmanager

from ..core.pytorch_tensors import type_name
from ..names.missing import MissingName
from ..tape import node_annotations, source_location, version_counter
from ..tape.asked_edge import GradientEdge, find_edge
from ..tape.node import Node as Node
from ..tape.node import shown
from ..tape.tensor import Tensor, edge_of
from ._engine.saved_tensor_hooks import SavedTensor as SavedTensor
from ._engine.saved_tensor_hooks import disable_saved_tensors_hooks as disable_saved_tensors_hooks
from ._engine.saved_tensor_hooks import save_on_cpu as save_on_cpu
from ._engine.saved_tensor_hooks import saved_tensors_hooks as saved_tensors_hooks
from ._engine.tensor_hooks import register_multi_grad_hook as register_multi_grad_hook
from .grad_mode import _Setting

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "draw",  # noqa: F822 - found by __getattr__
    "explain",  # noqa: F822
    "get_gradient_edge",
    "increment_version",
    "memory_report",  # noqa: F822
    "record_lines",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
    "strict_versions",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge along which the gradient of a tensor arrives.

    tensor: a tensor of any shape that requires grad.

    Raises RuntimeError for one that does not.

    >>> x = jaxgrad.tensor(2.0, requires_grad=True)
    >>> edge = jaxgrad.autograd.graph.get_gradient_edge(x)
    >>> jaxgrad.autograd.grad(x * x, edge)
    (tensor(4.),)
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            f"gradients: one of shape {list(tensor.shape)}"
        )
    node, output_nr = edge_of(find_edge(tensor))
    return GradientEdge(shown(node), output_nr)


class strict_versions(_Setting):
    """Raise PyTorch's error if a value that a backward pass needs was overwritten.

    Without this setting the gradient is that of the saved value, and no error is necessary. As with
    `set_grad_enabled`, it applies from the call on, or to a `with` block. It must be on both where
    an operator is recorded and where the backward pass runs.

    mode: whether it is on.

    Raises TypeError if it is not a bool.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.autograd.graph.strict_versions():
    ...     y = x.exp()
    ...     y.add_(1)
    ...     try:
    ...         y.sum().backward()
    ...     except RuntimeError as error:
    ...         print(str(error)[:80])
    tensor([3.7183, 3.7183], grad_fn=<AddBackward0>)
    one of the variables needed for gradient computation has been modified by an inp
    """

    def __init__(self, mode: bool = True):
        super().__init__(mode)

    def set(self):
        version_counter.watch()
        node_annotations.activate()
        before = version_counter.strict.get()
        version_counter.strict.set(self.mode)
        return before

    def reset(self, before):
        version_counter.strict.set(before)


class record_lines(_Setting):
    """Note the source line of every recorded operator, and the reason for every unrecorded one.

    A node then has its line in `node.metadata["place"]`; `draw`, `memory_report` and `explain` show
    it. As with `set_grad_enabled`, it applies from the call on, or to a `with` block.

    mode: whether it is on.

    Raises TypeError if it is not a bool.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.autograd.graph.record_lines():
    ...     y = x * 2
    >>> "place" in y.grad_fn.metadata
    True
    """

    def __init__(self, mode: bool = True):
        super().__init__(mode)

    def set(self):
        node_annotations.activate()
        before = source_location.lines.get()
        source_location.lines.set(self.mode)
        return before

    def reset(self, before):
        source_location.lines.set(before)


@contextmanager
def allow_mutation_on_saved_tensors():
    """Kept for PyTorch's code: saved values are never overwritten in jaxgrad.

    PyTorch's restrictions apply. Raises RuntimeError inside of another such block. A backward pass
    outside of the block through operators recorded inside of it raises AssertionError.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.exp()
    ...     _ = y.detach().zero_()
    ...     y.sum().backward()
    >>> x.grad
    tensor([2.7183, 2.7183])
    """
    if version_counter.mutation.get() is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    version_counter.watch()
    node_annotations.activate()
    token = version_counter.mutation.set(object())
    try:
        yield
    finally:
        version_counter.mutation.reset(token)


def region_activation_memory_budget(budget: float):
    """Raise RuntimeError: the option belongs to PyTorch's compiler.

    budget: a number.

    Raises TypeError if it is not, ValueError if it is not between 0 and 1.

    >>> try:
    ...     jaxgrad.autograd.graph.region_activation_memory_budget(2.0)
    ... except ValueError as error:
    ...     print(error)
    torch.autograd.graph.region_activation_memory_budget: must be in [0, 1], got 2.0
    """
    where = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, int | float):
        raise TypeError(f"{where}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{where}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{where} can only be used inside a torch.compile region; it has no effect in eager mode. "
        "Under jaxgrad.jit XLA decides what is kept"
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool):
    """Kept for PyTorch's code, without effect: XLA has no streams that a program could mix up.

    >>> jaxgrad.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    """


def set_override_stale_capture_stream(enabled: bool):
    """Kept for PyTorch's code, without effect: XLA has no streams that a program could mix up.

    >>> jaxgrad.autograd.graph.set_override_stale_capture_stream(False)
    """


def increment_version(tensor: Tensor | Iterable[Tensor]):
    """Raise the version of a tensor, or of several, as an in-place write does.

    tensor: a tensor or an iterable of tensors. Inference tensors have no version and are skipped.
        Raises TypeError for another object.

    >>> x = jaxgrad.ones(2)
    >>> jaxgrad.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    tensors = [tensor] if isinstance(tensor, Tensor) else list(tensor)
    for entry in tensors:
        if not isinstance(entry, Tensor):
            raise TypeError(f"increment_version takes tensors, not {type_name(entry)}")
    for entry in tensors:
        if not entry.is_inference():
            version_counter.counter_of(entry).count()


def _drawing_of(node):
    """The drawing of the graph of a node, which notebooks show."""
    draw = importlib.import_module(f"{__package__}._inspect.draw")
    return draw.shown_in_notebook(node)


Node._repr_html_ = _drawing_of

# imported at their first use, to keep `import jaxgrad` fast
_LATER = {
    "draw": "_inspect.draw",
    "explain": "_inspect.explain",
    "memory_report": "_inspect.memory_report",
}


__path__ = []  # as of a package: names that are absent can be imported


def __getattr__(name):
    if name not in _LATER:
        raise MissingName(__name__, name)
    return getattr(importlib.import_module(f"{__package__}.{_LATER[name]}"), name)
