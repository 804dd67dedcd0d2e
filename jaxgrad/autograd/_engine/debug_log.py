"""The log of the nodes that a backward pass runs, PyTorch's `torch.autograd.graph` at DEBUG."""

from __future__ import annotations

import logging

from ...core.aval import aval_of

logger = logging.getLogger("torch.autograd.graph")


def log_run(node, gradients):
    """Log that a node runs with these gradients."""
    # format now, so that a log record does not keep the node alive
    logger.debug(f"Executing: {node!r} with grad_outputs: [{','.join(map(_shown, gradients))}]")


def _shown(gradient) -> str:
    """A gradient's dtype and shape in PyTorch's form: bf16[2, 3]."""
    if gradient is None:
        return "None"
    aval = aval_of(getattr(gradient, "_array", gradient))
    kind = str(aval.dtype).removeprefix("torch.").replace("complex", "c").replace("float", "f")
    return f"{kind}{list(aval.shape)}"
