"""Optimizers as HTML, which notebooks show: the groups with their options, and the state."""

from __future__ import annotations

from .. import html
from ..tape.tensor import Tensor


def of_optimizer(optimizer) -> str:
    """The groups of an optimizer with the options that are set, and the size of its state."""
    groups = optimizer.param_groups
    known = dict.fromkeys(name for group in groups for name in group)
    names = [n for n in known if any(_is_set(n, group.get(n)) for group in groups)]
    rows = []
    for number, group in enumerate(groups):
        params = group["params"]
        options = [_shown(group.get(name)) for name in names]
        rows.append([number, len(params), sum(param.numel() for param in params), *options])
    title = html.line(type(optimizer).__name__, is_bold=True)
    table = html.table(("group", "tensors", "elements", *names), rows, numbers=[0, 1, 2])
    return "\n".join([title, table, html.line(_state(optimizer))])


def _is_set(name: str, value) -> bool:
    return name not in ("params", "param_names") and value is not None and value is not False


def _shown(value) -> str:
    if value is None:
        return ""
    if isinstance(value, Tensor):
        return str(value.tolist())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _state(optimizer) -> str:
    tensors = [
        tensor
        for state in optimizer.state.values()
        if isinstance(state, dict)
        for tensor in state.values()
        if isinstance(tensor, Tensor)
    ]
    if not tensors:
        return "no state yet"
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return f"state: {len(tensors):,} tensors, {size / 1e6:,.2f} MB"
