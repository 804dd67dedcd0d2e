"""What PyTorch's library tells about the backward pass that is running."""

from __future__ import annotations

from ...tape.mode import current_pass
from ...tape.node import AccumulateGrad, Node
from ...tape.traversal import in_backward_order
from ..grad_mode import is_multithreading_enabled


def _running(name: str):
    running = current_pass.get()
    if running is None:
        raise RuntimeError(f"{name} should only be called during the backward pass, by a hook")
    return running


def _current_graph_task_id() -> int:
    """Return the number of the running backward pass, -1 outside of one."""
    running = current_pass.get()
    return -1 if running is None else running.number


def _current_graph_task_execution_order() -> list[Node]:
    """Return the nodes that the running backward pass runs, in their order."""
    running = _running("_current_graph_task_execution_order")
    if is_multithreading_enabled():
        raise RuntimeError(
            "_current_graph_task_execution_order expects the current backward to be executed with "
            "multithreading disabled: call it in set_multithreading_enabled(False)"
        )
    return [n for n in in_backward_order([n for n, _ in running.roots]) if running.will_run(n)]


def _will_engine_execute_node(node: Node) -> bool:
    """Return whether the running backward pass runs a node."""
    running = _running("_will_engine_execute_node")
    if not isinstance(node, Node):
        raise RuntimeError(
            f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}"
        )
    is_of_grad = running.is_selective and not running.accumulates
    if is_of_grad and isinstance(node, AccumulateGrad) and node.sequence in running.ends:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running "
            "autograd.grad(): it has no such answer for the leaves that it is asked for"
        )
    return running.will_run(node)
