"""The range of a histogram that rounds with the least error, as PyTorch's observers search it."""

from __future__ import annotations

import numpy as np

_STEP = 1e-5  # the part of all elements that the range may leave out in a step


def best_bins(histogram: np.ndarray, width: float, steps: int) -> tuple[int, int]:
    """The first and the last bin of the range of least error, if `steps` integers stand for it.

    histogram: the counts of the bins, float32; width: that of all bins.
    """
    total, sums = float(histogram.sum()), np.cumsum(histogram)
    start, end, least_error = 0, len(histogram) - 1, np.inf
    low, high = 0.0, 1.0
    while low < high:
        next_low, next_high = low + _STEP, high - _STEP
        first = min(end, max(start, _place(sums, next_low * total, "left")))
        last = max(start, min(end, _place(sums, next_high * total, "right") - 1))
        if first - start > end - last:
            candidate, low = (first, end), next_low
        else:
            candidate, high = (start, last), next_high
        if candidate == (start, end):
            continue
        error = _error(histogram, width / len(histogram), *candidate, steps)
        if error > least_error:
            break
        least_error = error
        start, end = candidate
    return start, end


def _place(sums, number, side):
    return int(np.searchsorted(sums, np.float32(number), side))


def _error(histogram, width, start, end, steps):
    """The squared error of rounding to `steps` numbers at equal distances in a range of bins, if
    the elements of a bin of this width are spread evenly.
    """
    step = width * (end - start + 1) / steps
    if step == 0.0:
        return 0.0
    begins = ((np.arange(len(histogram)) - start) * width).astype(np.float32)
    ends = begins + np.float32(width)
    density = histogram / np.float32(width)
    step = np.float32(step)
    first, last = (np.clip(np.floor(places / step), 0, steps - 1) for places in (begins, ends))
    half = np.float32(step / 2)
    errors = _moment(begins - (first + np.float32(0.5)) * step, half, density)
    errors = errors + (last - first - 1) * _moment(-half, half, density)
    return float((errors + _moment(-half, ends - (last * step + half), density)).sum())


def _moment(begin, end, density):
    """The density times the integral of x squared."""
    return density * ((end * end * end - begin * begin * begin) / np.float32(3))
