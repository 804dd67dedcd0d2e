"""What JAX's allocator counts of a device's memory, for torch.cuda and torch.accelerator."""

from __future__ import annotations

# PyTorch's names of what JAX counts: the first of these that there is
_COUNTS = {
    "allocated_bytes.all.current": ("bytes_in_use",),
    "allocated_bytes.all.peak": ("peak_bytes_in_use",),
    "active_bytes.all.current": ("bytes_in_use",),
    "active_bytes.all.peak": ("peak_bytes_in_use",),
    "reserved_bytes.all.current": ("pool_bytes", "bytes_reserved", "bytes_in_use"),
    "reserved_bytes.all.peak": (
        *("peak_pool_bytes", "pool_bytes", "bytes_reserved", "peak_bytes_in_use"),
    ),
    "allocation.all.allocated": ("num_allocs",),
}


def with_pytorch_names(counted: dict | None) -> dict:
    """Counts of JAX under its names, and under those that PyTorch has for the same; empty for None.

    >>> from jaxgrad.frontend.memory_stats import with_pytorch_names
    >>> with_pytorch_names({"bytes_in_use": 8})["allocated_bytes.all.current"]
    8
    """
    counts = dict(counted or {})
    for name, sources in _COUNTS.items():
        source = next((source for source in sources if source in counts), None)
        if source is not None:
            counts[name] = counts[source]
    return counts


def nested(stats: dict) -> dict:
    """Counts whose names have parts as dicts in dicts.

    >>> from jaxgrad.frontend.memory_stats import nested
    >>> nested({"allocation.all.allocated": 3, "bytes_in_use": 8})
    {'allocation': {'all': {'allocated': 3}}, 'bytes_in_use': 8}
    """
    result: dict = {}
    for name, number in stats.items():
        *outer, last = name.split(".")
        inner = result
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[last] = number
    return result


def summary_of(counted: dict | None, index: int) -> str:
    """A table of counts of JAX, those of bytes in MiB, for the GPU of an index.

    >>> from jaxgrad.frontend.memory_stats import summary_of
    >>> print(summary_of({"bytes_in_use": 3 << 20, "num_allocs": 2}, 1))
    |     PyTorch CUDA memory summary, device ID 1     |
    |--------------------------------------------------|
    | bytes_in_use                   |         3.0 MiB |
    | num_allocs                     |               2 |
    """
    lines = [f"|{f'PyTorch CUDA memory summary, device ID {index}':^50}|", f"|{'-' * 50}|"]
    for name, count in sorted((counted or {}).items()):
        number = f"{count / 2**20:,.1f} MiB" if "bytes" in name else f"{count:,}"
        lines.append(f"| {name:30} | {number:>15} |")
    if not counted:
        lines.append(f"|{'JAX counts no memory of this device':^50}|")
    return "\n".join(lines)
