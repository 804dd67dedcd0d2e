"""Large tensors as HTML, which notebooks show: figures, a picture or histogram, and the text."""

from __future__ import annotations

import base64
import math
import struct
import zlib

import jax
import numpy as np

from ... import html
from ...tape.mode import transform_levels
from ...tape.tensor import Tensor, kind_of, name_of_node, shown_array, spans_processes
from . import arrays as printing
from .shardings import placements_text

# elements of the largest tensor whose figures are computed; pixels of the longer side of a picture
MOST_ELEMENTS, PIXELS, SHOWN_PIXELS = 2**24, 80, 160
# the fewest rows and columns of a picture; the bars of a histogram
LEAST_SIDE, BARS = 8, 40
# the colors of the smallest value, of values between and of the largest; that of a NaN
COLORS = ((24, 28, 84), (35, 99, 142), (38, 154, 130), (142, 200, 80), (250, 232, 60))
NAN_COLOR = (220, 50, 47)


def of_tensor(tensor: Tensor) -> str | None:
    """The HTML of a tensor; None where its text tells as much: for small ones, and for those that
    have no numbers here.
    """
    if transform_levels.get() or tensor.is_sparse or tensor.is_meta or spans_processes(tensor):
        return None
    array = shown_array(tensor)
    if isinstance(array, jax.core.Tracer) or array.is_deleted():
        return None
    if tensor.numel() <= _threshold():
        return None
    values = np.asarray(array)
    parts = [html.line(_heading(tensor, array), is_bold=True)]
    if tensor.numel() <= MOST_ELEMENTS:
        values = _as_numbers(values)
        pictures = [_histogram(values)]
        if values.ndim == 2 and min(values.shape) >= LEAST_SIDE:
            pictures.insert(0, _picture(values))
        shown = "".join(filter(None, pictures))
        parts += [html.line(_figures(values, tensor.dtype)), f"<div>{shown}</div>" if shown else ""]
    return "\n".join([*filter(None, parts), html.code(repr(tensor), "values")])


def _threshold() -> float:
    return printing.get_printoptions()["threshold"]


def _heading(tensor, array) -> str:
    kind = kind_of(tensor) or type(tensor)  # Parameter marks its tensors
    name, place = kind.__name__, placements_text(getattr(array, "sharding", None))
    size = tensor.numel() * tensor.element_size()
    parts = [f"{name} {list(tensor.shape)}", str(tensor.dtype), place or str(tensor.device)]
    parts.append(_bytes(size))
    if tensor.requires_grad:
        node = name_of_node(tensor)
        parts.append("requires grad" if node is None else node)
    return " \N{MIDDLE DOT} ".join(parts)


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _as_numbers(values) -> np.ndarray:
    """The values as integers or wide floats; the sizes of complex numbers."""
    if values.dtype.kind == "c":
        return np.abs(values)
    if values.dtype.kind in "iu":
        return values
    return values.astype(np.float64 if values.dtype == np.float64 else np.float32)


def _figures(values, dtype) -> str:
    finite, of = _finite(values), " |x|" if dtype.is_complex else ""
    parts = []
    if finite.size:
        with np.errstate(over="ignore"):
            mean = f"{finite.mean(dtype=np.float64):.4g}"
        figures = {"min": _number(finite.min()), "mean": mean, "max": _number(finite.max())}
        parts = [f"{name}{of} {number}" for name, number in figures.items()]
    counts = {"NaN": np.isnan(values).sum(), "infinite": np.isinf(values).sum()}
    parts += [f"{count:,} {what}" for what, count in counts.items() if count]
    zeros = values.size - np.count_nonzero(values)
    parts += [f"{zeros / values.size:.1%} zeros"] if zeros else []
    return " \N{MIDDLE DOT} ".join(parts)


def _number(number) -> str:
    return f"{number:,}" if isinstance(number, np.integer) else f"{number:.4g}"


def _finite(values) -> np.ndarray:
    return values[np.isfinite(values)]


def _histogram(values) -> str | None:
    """The bars of a histogram, in the color of the text."""
    finite = _finite(values).astype(np.float64)
    if not finite.size or finite.min() == finite.max():
        return None
    with np.errstate(over="ignore"):
        if not math.isfinite(finite.max() - finite.min()):
            return None
    counts, edges = np.histogram(finite, BARS)
    heights = np.ceil(counts / counts.max() * 60).astype(int)
    bars = "".join(f"M{4 * at} 60h3v-{height}h-3z" for at, height in enumerate(heights) if height)
    title = f"histogram from {edges[0]:.4g} to {edges[-1]:.4g}"
    return (
        f'<svg width="{4 * BARS}" height="61" role="img" style="margin:4px 12px 4px 0">'
        f"<title>{title}</title>"
        f'<path d="{bars}" fill="currentColor" fill-opacity="0.55"/>'
        f'<path d="M0 60.5h{4 * BARS}" stroke="currentColor" stroke-opacity="0.4"/></svg>'
    )


def _picture(values) -> str:
    """A matrix as a picture; a pixel is the mean of a block."""
    means = _blocks(values.astype(np.float64))
    finite = _finite(means)
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    scale = 254 / (high - low) if high > low and math.isfinite(high - low) else 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        levels = np.nan_to_num(np.clip((means - low) * scale, 0, 254)).astype(np.uint8)
    levels[np.isnan(means)] = 255
    height, width = levels.shape
    ratio = max(1, SHOWN_PIXELS // max(height, width))
    data = base64.b64encode(_png(levels)).decode()
    style = "image-rendering:pixelated;margin:4px 16px 4px 0;vertical-align:bottom"
    title = f"the matrix as a picture, {low:.4g} dark and {high:.4g} light"
    return (
        f'<img src="data:image/png;base64,{data}" width="{width * ratio}" '
        f'height="{height * ratio}" style="{style}" alt="{title}" title="{title}">'
    )


def _blocks(values) -> np.ndarray:
    """The means of blocks of a matrix: at most as many blocks as there are pixels."""
    for axis, length in enumerate(values.shape):
        count = min(length, max(1, round(PIXELS * length / max(values.shape))))
        starts = np.arange(count) * length // count
        sizes = np.diff([*starts, length])
        values = np.add.reduceat(values, starts, axis) / np.expand_dims(sizes, 1 - axis)
    return values


def _png(levels) -> bytes:
    """A matrix of numbers of colors as a PNG file."""
    height, width = levels.shape
    at = np.linspace(0, len(COLORS) - 1, 255)
    colors = [np.interp(at, range(len(COLORS)), part) for part in zip(*COLORS, strict=True)]
    palette = np.stack(colors, 1).round().astype(np.uint8).tobytes() + bytes(NAN_COLOR)
    rows = b"".join(b"\0" + row.tobytes() for row in levels)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = {b"IHDR": header, b"PLTE": palette, b"IDAT": zlib.compress(rows, 9), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )
