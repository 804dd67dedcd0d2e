"""Why an operator turns a gradient into zeros, as far as derivative and saved values show it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .gradient_probe import FLAT_WHERE_REACHED, STEEP, Finding
from .graph_reader import kept_by

IS_FLAT = "it is flat at all of its inputs"
IS_SATURATED = "it is saturated: its derivative is too small for the dtype"

# why the derivative of an operator is zero
WHY_ZERO = {
    "Relu Threshold Hardtanh Relu6 Clamp ClampMin ClampMax Hardsigmoid Elu": IS_FLAT,
    "Round Floor Ceil Trunc Sign Sgn": "its derivative is zero everywhere",
    "Mul Mm Addmm Mv Dot Bmm Div": "the gradient is multiplied by zeros",
    "MaskedFill Where Select Slice Index Gather Max Min Maximum Minimum": (
        "the gradient goes to other elements, or to another input"
    ),
    "Exp Sigmoid Tanh Softmax LogSoftmax Softplus": IS_SATURATED,
    "NllLoss": "its targets are ignored, or their weights are zero",
}
REASONS = {name: reason for names, reason in WHY_ZERO.items() for name in names.split()}


def reason(finding: Finding) -> str:
    """The reason in brackets, after a space; empty if it is unknown."""
    if finding.slope is None:
        return ""
    if finding.slope == STEEP:
        return " (its derivative is not zero, but its product with the gradient that arrives is)"
    node = finding.node
    cause = REASONS.get(node.name().partition("Backward")[0])
    if cause == IS_FLAT and finding.slope == FLAT_WHERE_REACHED:
        cause += " that a gradient arrives at"
    # It has the node of `nll_loss`. Its derivative is zero at a minimum too.
    if _operator(node) == "cross_entropy_loss":
        cause = "it is saturated, or its targets are ignored" if _is_certain(node) else None
    return "" if cause is None else f" ({cause})"


def _operator(node) -> str | None:
    primitive = getattr(node.reverse.program, "primitive", None)
    return getattr(primitive, "name", None)


def _is_certain(node) -> bool:
    """Whether the probabilities of the scores that a cross entropy has saved are all 0 or 1, to
    rounding.
    """
    if node.extras is not None and node.extras.packed:
        return False
    (scores,) = [kept.array for kept in kept_by(node) if kept.owner == "self"]
    rounding = jnp.finfo(scores.dtype).eps
    with jax.enable_x64(True):
        probabilities = jax.nn.softmax(scores, min(1, scores.ndim - 1))
        return bool(((probabilities < rounding) | (probabilities > 1 - rounding)).all())
